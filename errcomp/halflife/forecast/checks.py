"""Checks of what a forecast is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_rows

__all__ = ["as_curve", "as_level", "as_times", "positive"]

Floats = NDArray[np.float64]


def positive(value: float, what: str, *, zero: bool = False) -> float:
    """Return a finite number above 0 (or 0 itself)."""
    if not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "0 or larger" if zero else "above 0"
        raise InputError(f"{what} must be finite and {least}, got {value}.")
    return float(value)


def as_level(level: float) -> float:
    """Return a coverage between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, e.g. 0.95, got {level}.")
    return float(level)


def as_times(values: ArrayLike, what: str) -> Floats:
    """Return increasing times from 0 on."""
    found = np.atleast_1d(np.asarray(values, dtype=float))
    if found.ndim != 1 or not len(found):
        raise InputError(f"{what} must be one row of times, got shape {found.shape}.")
    bad = ~np.isfinite(found) | (found < 0)
    bad[1:] |= ~(np.diff(found) > 0)
    if bad.any():
        first = np.flatnonzero(bad)
        raise InputError(
            f"{what} must be finite times that increase from 0 on, got {found[first[0]]} in "
            f"{describe_rows((first + 1).tolist())}. Sort them and leave out what is double."
        )
    return found


def as_curve(
    times: ArrayLike, survival: ArrayLike, low: ArrayLike, high: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return times, a survival curve and its bounds, all beginning with 1 at time 0."""
    t = as_times(times, "times")
    curves = [np.asarray(values, dtype=float) for values in (survival, low, high)]
    if any(curve.shape != t.shape for curve in curves):
        shapes = ", ".join(str(curve.shape) for curve in curves)
        raise InputError(
            f"survival, low and high must have one value for each of {len(t)} times, got shapes "
            f"{shapes}."
        )
    s, lower, upper = curves
    bad = ~((lower >= 0) & (lower <= s) & (s <= upper) & (upper <= 1))
    for curve in curves:
        bad[1:] |= np.diff(curve) > 1e-12
    if bad.any():
        first = np.flatnonzero(bad)
        raise InputError(
            "survival and its bounds must lie between 0 and 1, low <= survival <= high, and never "
            f"increase, not so in {describe_rows((first + 1).tolist())}: "
            f"{lower[first[0]]:g}, {s[first[0]]:g}, {upper[first[0]]:g}."
        )
    if t[0] > 0:
        t, s, lower, upper = (
            np.concatenate([[start], values])
            for start, values in zip((0.0, 1.0, 1.0, 1.0), (t, s, lower, upper), strict=True)
        )
    return t, s, lower, upper
