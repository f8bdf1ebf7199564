"""Small networks in PyTorch on one core: operators and runs, measured by the project."""

from __future__ import annotations

from errcomp.datasets._measured import measured

__all__ = ["SPEC"]

SPEC = measured(
    "torch-cpu",
    "Small networks in PyTorch on one CPU core: operators and runs, measured",
    "collect_torch.py",
    "PyTorch",
)
