"""How long do the kernels of small networks take in PyTorch, and the networks as a whole?

Run: python benchmarks/collect_torch.py FOLDER [--device cuda] [--quick] [--anyway]. Linux. Needs
numpy and torch, for torch.compile on the CPU a C++ compiler, and nothing of errcomp: an environment
of its own will do. Measured is one pinned thread of the CPU, or a CUDA device.

The networks of `torch_models` run forwards (inference) and as steps of gradient descent
(training), as they are (eager), on the CPU also compiled by torch.compile, and on a CUDA device
also captured as CUDA graphs. The phases of a run are forward pass, backward pass and optimizer.
How they are measured, and what FOLDER gets, is in `slices` and `collecting`.
"""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import collecting
import numpy as np
import slices
import torch
import torch_models
from collecting import Protocol


def describe(folder: Path, protocol: Protocol) -> dict[str, Any]:
    """Return what must be the same in all pieces of a measurement."""
    machine, on_cuda = collecting.machine(), protocol.on == "cuda"
    if on_cuda and not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device. Leave out --device cuda.")
    return {
        "unit": "ms",
        "device": torch.cuda.get_device_name() if on_cuda else machine["device"],
        "version": torch.__version__,
        "protocol": {
            "threads": "1, pinned",
            "variants": ["eager", "graph" if on_cuda else "compile"],
            "phases": torch_models.PHASES,
            "type": str(torch_models.type_on(protocol.on)),
            **slices.RULES,
            "seed": collecting.SEED,
            **asdict(protocol),
        },
        "machine": {**machine, **(accelerator() if on_cuda else {})},
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
        },
        "models": models(protocol),
    }


def accelerator() -> dict[str, Any]:
    """Describe the CUDA device."""
    found = torch.cuda.get_device_properties(0)
    asked = "driver_version,clocks.max.sm,clocks.max.mem,power.limit"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader", "--id=0"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        "accelerator": found.name,
        "accelerator_memory_gib": round(found.total_memory / 2**30, 1),
        "multiprocessors": found.multi_processor_count,
        **dict(zip(asked.split(","), said.strip().split(", "), strict=True)),
    }


def models(protocol: Protocol) -> dict[str, dict[str, Any]]:
    """Return the descriptions of the models by name."""
    found = {}
    for model, network in torch_models.MODELS.items():
        make = functools.partial(network.make, torch_models.SCALES[protocol.on])
        for shape in network.shapes[protocol.on][: 1 if protocol.smallest_only else None]:
            given = "x".join(map(str, shape))
            for mode in torch_models.MODES:
                found[f"{model}_{given}_{mode}"] = {
                    "model": model,
                    "mode": mode,
                    "input": given,
                    "path": [mode, given],
                    "batch": shape[0],
                    "about": (network.make.__doc__ or "").split("\n")[0],
                    "parameters": sum(p.numel() for p in make().parameters()),
                }
    return found


#: Compiling takes most of a piece on the CPU, and profiles most of one on a CUDA device.
PROTOCOLS = {
    "cpu": Protocol(rounds=6, parts=3),
    "cuda": Protocol(
        rounds=3,
        parts=1,
        seconds=60.0,
        least_passes=2,
        slice_ms=10.0,
        most_profiled_runs=5,
        on="cuda",
    ),
}

if __name__ == "__main__":
    sys.exit(collecting.main(__doc__, "torch_timing.py", describe, PROTOCOLS))
