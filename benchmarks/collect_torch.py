"""How long do the kernels of small networks take in PyTorch, and the networks as a whole?

Run: python benchmarks/collect_torch.py FOLDER [--quick] [--anyway]. Linux. Needs numpy and torch,
for torch.compile on the CPU a C++ compiler, and nothing of errcomp: an environment of its own will
do. Where there is a CUDA device, it is measured, otherwise one pinned thread of the CPU.

The networks of `torch_models` run forwards (inference) and as steps of gradient descent
(training), as they are (eager), compiled by torch.compile, and on a CUDA device also captured as
CUDA graphs. How they are measured, and what FOLDER gets, is in `slices` and `collecting`.
"""

from __future__ import annotations

import platform
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
    machine, on_cuda = collecting.machine(), torch.cuda.is_available()
    return {
        "unit": "ms",
        "device": torch.cuda.get_device_name() if on_cuda else machine["device"],
        "version": torch.__version__,
        "protocol": {
            "threads": "1, pinned",
            "variants": ["eager", "compile", *(["graph"] if on_cuda else [])],
            **slices.RULES,
            "seed": collecting.SEED,
            **asdict(protocol),
        },
        "machine": machine,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
        },
        "models": models(protocol),
    }


def models(protocol: Protocol) -> dict[str, dict[str, Any]]:
    """Return the descriptions of the models by name."""
    found = {}
    for model, (make, shapes) in torch_models.MODELS.items():
        for shape in shapes[: 1 if protocol.smallest_only else None]:
            given = "x".join(map(str, shape))
            for mode in torch_models.MODES:
                found[f"{model}_{given}_{mode}"] = {
                    "model": model,
                    "mode": mode,
                    "input": given,
                    "path": [mode, given],
                    "batch": shape[0],
                    "about": (make.__doc__ or "").split("\n")[0],
                    "parameters": sum(p.numel() for p in make().parameters()),
                }
    return found


if __name__ == "__main__":
    # Compiling takes most of a piece: fewer of them.
    sys.exit(collecting.main(__doc__, "torch_timing.py", describe, Protocol(rounds=3)))
