"""The same networks in every release of ONNX Runtime, measured by the project."""

from __future__ import annotations

from errcomp.datasets._measured import followed

__all__ = ["SPEC"]

SPEC = followed(
    "ort-releases",
    "Small networks in every release of ONNX Runtime, against a model frozen at the first",
    "longitudinal_ort.py and freeze_ort.py",
    "ONNX Runtime",
)
