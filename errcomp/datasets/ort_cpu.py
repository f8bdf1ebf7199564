"""Small networks in ONNX Runtime on one core: operators and runs, measured by the project."""

from __future__ import annotations

from errcomp.datasets._measured import measured

__all__ = ["SPEC"]

SPEC = measured(
    "ort-cpu",
    "Small networks in ONNX Runtime on one CPU core: operators and runs, measured",
    "collect_ort.py",
    "ONNX Runtime",
)
