"""How long do the operators of small networks take in ONNX Runtime, and the networks as a whole?

Run: python benchmarks/collect_ort.py FOLDER [--quick] [--anyway]. Linux. Needs numpy, onnx and
onnxruntime and nothing of errcomp: an environment of its own will do.

The networks of `ort_models` run on one pinned thread, with all graph optimisations and with none.
How they are measured, and what FOLDER gets, is in `slices` and `collecting`.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import collecting
import numpy as np
import onnx
import onnxruntime
import ort_models
import slices
from collecting import Protocol

VARIANTS = ("all", "disable")


def write_models(folder: Path, protocol: Protocol) -> dict[str, dict[str, Any]]:
    """Write the models to a folder and return their descriptions by name."""
    found = {}
    for built in ort_models.all_models(smallest=protocol.smallest_only):
        path = built.save(folder)
        found[built.name] = {
            "model": built.model,
            "mode": "inference",
            "input": built.input,
            "path": [built.input],
            "batch": built.batch,
            "about": ort_models.MODELS[built.model][0].__doc__.split("\n")[0],
            "operators": len(built.proto.graph.node),
            "parameters": built.parameters,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
    return found


def describe(folder: Path, protocol: Protocol) -> dict[str, Any]:
    """Return what must be the same in all pieces of a measurement."""
    machine = collecting.machine()
    return {
        "unit": "ms",
        "device": machine["device"],
        "version": onnxruntime.__version__,
        "protocol": {
            "threads": "intra_op 1, inter_op 1, pinned",
            "provider": "CPUExecutionProvider",
            "variants": VARIANTS,
            **slices.RULES,
            "seed": collecting.SEED,
            **asdict(protocol),
        },
        "machine": machine,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "onnx": onnx.__version__,
            "onnxruntime": onnxruntime.__version__,
        },
        "models": write_models(folder, protocol),
    }


if __name__ == "__main__":
    sys.exit(collecting.main(__doc__, "ort_timing.py", describe))
