"""Quantiles of values that stand for several each: those of the values written out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats

__all__ = ["median", "quantile"]

Counts = NDArray[np.int64]


def median(values: Floats, n: Counts) -> float:
    """Return the median of values that occur n times each."""
    total = int(n.sum())
    return float(np.mean(_ranked(values, n, [(total - 1) // 2, total // 2])))


def quantile(values: Floats, n: Counts, q: float) -> float:
    """Return a quantile of values that occur n times each, interpolated as NumPy does."""
    at = (int(n.sum()) - 1) * q
    below = int(at)
    both = _ranked(values, n, [below, min(below + 1, int(n.sum()) - 1)])
    return float(np.quantile(both, at - below))


def _ranked(values: Floats, n: Counts, ranks: list[int]) -> Floats:
    """Return the values of these ranks, from 0."""
    order = np.argsort(values, kind="stable")
    at = np.searchsorted(np.cumsum(n[order]), ranks, side="right")
    return values[order[at]]
