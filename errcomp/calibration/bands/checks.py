"""Checks of what conformal bands and tests of exchangeability are given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.calibration.design import Floats
from errcomp.errors import InputError, describe_rows

__all__ = ["as_floats", "as_groups", "as_levels", "as_names"]


def as_floats(values: ArrayLike, what: str, *, ndim: int, missing: bool = False) -> Floats:
    """Return finite numbers of so many dimensions; NaN passes where values may be missing."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers in {ndim} dimension(s): {error}") from error
    if found.ndim != ndim or not len(found):
        raise InputError(
            f"{what} must have {ndim} dimension(s) and one row at least, got shape {found.shape}."
        )
    bad = ~np.isfinite(found) & ~(np.isnan(found) & missing)
    if bad.any():
        rows = np.flatnonzero(bad.reshape(len(found), -1).any(axis=1))
        raise InputError(
            f"{what} must be finite, got {found[bad][0]} in {describe_rows(rows.tolist())}. "
            "Leave these rows out, or find out where the value was lost."
        )
    return found


def as_names(values: ArrayLike, what: str, n: int) -> NDArray[np.str_]:
    """Return n names as text; a missing one is refused, as it would make a group of its own."""
    found = np.asarray(values, dtype=object)
    if found.shape != (n,):
        raise InputError(f"{what} must be {n} names, one a row, got shape {found.shape}.")
    bad = [i for i, name in enumerate(found) if name is None or name != name]
    if bad:
        raise InputError(
            f"{what} must be known, got {found[bad[0]]} in {describe_rows(bad)}. "
            "Name the group of these rows, or leave them out."
        )
    return np.array([str(name) for name in found])


def as_groups(values: ArrayLike, what: str, n: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the distinct names in order and, of each row, the position of its name among them."""
    names, index = np.unique(as_names(values, what, n), return_inverse=True)
    return names, index.astype(np.int64)


def as_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return probabilities in strictly ascending order: they belong to columns in that order."""
    found = tuple(levels)
    good = all(isinstance(v, Real) and not isinstance(v, bool) and 0 < v < 1 for v in found)
    if not found or not good or any(a >= b for a, b in pairwise(found)):
        raise InputError(
            f"levels must be numbers between 0 and 1 in ascending order, got {found!r}. "
            "They belong to the columns of the bands, e.g. (0.5, 0.9)."
        )
    return tuple(float(v) for v in found)
