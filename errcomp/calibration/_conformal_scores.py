"""Bands as half-widths around a median, and by which factor they miss the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from errcomp.calibration._conformal_checks import as_floats
from errcomp.calibration.design import Floats
from errcomp.errors import InputError, describe_rows

__all__ = ["half_widths", "relative_scores"]

# A side narrower than this share of its band is taken as that wide: a truth just beyond a side of
# no width would otherwise need an infinite factor. It is a rule of each row alone, so what is
# exchangeable stays so.
_NARROWEST = 0.05
_ROUNDING = 1e-9


def half_widths(
    median: ArrayLike, lower: ArrayLike, upper: ArrayLike, levels: int
) -> tuple[Floats, Floats, Floats]:
    """Return the median, shape (n,), and both half-widths, shape (n, levels), all > 0.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, a median lies outside its band, or a band has no
        width.
    """
    middle = as_floats(median, "median", ndim=1)
    low, high = as_floats(lower, "lower", ndim=2), as_floats(upper, "upper", ndim=2)
    expected = (len(middle), levels)
    for name, found in (("lower", low), ("upper", high)):
        if found.shape != expected:
            raise InputError(
                f"{name} must have one row per median and one column per level, shape {expected}, "
                f"got {found.shape}."
            )
    below, above = middle[:, None] - low, high - middle[:, None]
    slack = _ROUNDING * (1 + np.abs(middle[:, None]))
    outside = ((below < -slack) | (above < -slack)).any(axis=1)
    if outside.any():
        rows = np.flatnonzero(outside).tolist()
        raise InputError(
            f"the median must lie within its bands, it does not in {describe_rows(rows)} (median "
            f"{middle[rows[0]]:.6g}). Sort the quantiles of each row."
        )
    width = np.maximum(below, 0) + np.maximum(above, 0)
    if not (width > 0).all():
        rows = np.flatnonzero((width <= 0).any(axis=1)).tolist()
        raise InputError(
            f"a band must have a width, it has none in {describe_rows(rows)}. No factor widens it: "
            "let the model give quantiles that differ."
        )
    return middle, np.maximum(below, _NARROWEST * width), np.maximum(above, _NARROWEST * width)


def relative_scores(truth: Floats, median: Floats, below: Floats, above: Floats) -> Floats:
    """Return by which factor each band must grow to reach the truth, shape (n, levels), >= 0."""
    gap = (truth - median)[:, None]
    with np.errstate(over="ignore"):
        found = np.maximum(-gap / below, gap / above)
    lost = ~np.isfinite(found).all(axis=1)
    if lost.any():
        raise InputError(
            "bands are too narrow for their distance to the truth in "
            f"{describe_rows(np.flatnonzero(lost).tolist())}. No factor reaches it: check units."
        )
    return np.asarray(found)
