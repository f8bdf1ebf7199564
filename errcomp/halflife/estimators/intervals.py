"""Checks of interval-censored times and their clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_rows

__all__ = ["checked_intervals", "numbered_clusters"]

Floats = NDArray[np.float64]


def checked_intervals(left: ArrayLike, right: ArrayLike) -> tuple[Floats, Floats]:
    """Return the bounds of intervals as floats.

    Raises
    ------
    InputError
        There are none, shapes differ, or an interval is empty, negative or no number.
    """
    lower, upper = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if lower.ndim != 1 or lower.shape != upper.shape or not len(lower):
        raise InputError(
            f"left and right must be one value a unit, got shapes {lower.shape} and {upper.shape}."
        )
    bad = ~((lower >= 0) & (lower < upper) & np.isfinite(lower))
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(
            f"a unit expires in (left, right] with 0 <= left < right, got ({lower[i]}, {upper[i]}] "
            f"in {describe_rows((np.flatnonzero(bad) + 1).tolist(), word='unit')}. Leave out units "
            "that had expired at the start."
        )
    return lower, upper


def numbered_clusters(clusters: ArrayLike | None, n: int) -> NDArray[np.int64]:
    """Return the clusters of n units as numbers from 0; each is one of its own by default.

    Raises
    ------
    InputError
        There are not n of them.
    """
    if clusters is None:
        return np.arange(n)
    names = np.asarray(clusters)
    if names.shape != (n,):
        raise InputError(f"clusters must be {n}, one a unit, got shape {names.shape}.")
    found: NDArray[np.int64] = np.unique(names, return_inverse=True)[1]
    return found
