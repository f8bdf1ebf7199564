"""The likelihood of interval-censored times over any distribution, and its maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells", "Fit", "cells_of", "maximise"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_ROUNDS = 2000
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Innermost intervals: where a distribution of largest likelihood has its mass.

    Attributes
    ----------
    left, right : ndarray of float, shape (m,)
        Cell j is (left[j], right[j]]; in order, not overlapping.
    low, high : ndarray of int, shape (k,)
        Observation i covers the cells ``low[i]:high[i]``.
    weight : ndarray of float, shape (k,)
        How many units have it.
    """

    left: Floats
    right: Floats
    low: Integers
    high: Integers
    weight: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A distribution over cells.

    Attributes
    ----------
    cumulative : ndarray, shape (m + 1,)
        Probability of the cells before each boundary; from 0 to 1.
    log_likelihood : float
    gap : float
        Bound on what is left to gain (Gentleman and Geyer): 0 at the maximum.
    """

    cumulative: Floats
    log_likelihood: float
    gap: float


def cells_of(left: Floats, right: Floats, weight: Floats, cut: float | None = None) -> Cells:
    """Return the innermost intervals; those on either side of a cut are found by themselves."""
    lefts, rights = np.unique(left), np.unique(right)
    if cut is not None:
        # There may have to be mass on a side of the cut where no unit needs any.
        lefts, rights = np.union1d(lefts, [0.0, cut]), np.union1d(rights, [cut, np.inf])
    # A right end comes before a left end at the same time: intervals are open on the left.
    value = np.concatenate([rights, lefts])
    is_left = np.arange(len(value)) >= len(rights)
    order = np.lexsort((is_left, value))
    value, is_left = value[order], is_left[order]
    inner = np.flatnonzero(is_left[:-1] & ~is_left[1:])
    start, end = value[inner], value[inner + 1]
    return Cells(
        left=start,
        right=end,
        low=np.searchsorted(start, left),
        high=np.searchsorted(end, right, side="right"),
        weight=weight,
    )


def maximise(
    cells: Cells, before: int | None = None, share: float = 0.5, *, gap: float = 1e-10
) -> Fit:
    """Maximise the likelihood, or that of distributions with a share of their mass before a cell.

    At most `gap` of log-likelihood a unit is left to gain.

    Steps of expectation-maximisation alternate with the iterative convex minorant, which moves all
    boundaries at once (Wellner and Zhan 1997, doi:10.1080/01621459.1997.10474037).
    """
    m, total = len(cells.left), float(cells.weight.sum())
    sides = [(0, m, 1.0)] if before is None else [(0, before, share), (before, m, 1 - share)]
    mass = np.empty(m)
    for start, end, of in sides:
        mass[start:end] = of / max(end - start, 1)
    best = -np.inf
    f = _sums(mass)
    left = np.inf
    for _ in range(_MOST_ROUNDS):
        seen = np.maximum(f[cells.high] - f[cells.low], _TINY)
        ratio = cells.weight / seen
        expected = np.cumsum(_scatter(cells.low, ratio, m) - _scatter(cells.high, ratio, m))[:m]
        mass = np.diff(f)
        left = _gap(mass, expected, sides)
        best = float(cells.weight @ np.log(seen))
        if left <= gap * total:
            break
        f = _sums(_scaled(mass * np.maximum(expected, 0.0), sides))
        f = _convex_minorant(cells, f, before, share)
    return Fit(f, best, left)


def _sums(mass: Floats) -> Floats:
    f: Floats = np.concatenate([[0.0], np.cumsum(mass)])
    f /= f[-1]
    return f


def _scatter(at: Integers, values: Floats, m: int) -> Floats:
    sums: Floats = np.bincount(at, values, minlength=m + 1).astype(float)
    return sums


def _scaled(mass: Floats, sides: list[tuple[int, int, float]]) -> Floats:
    """Give each side its share; what has no mass left stays so."""
    mass = mass.copy()
    for start, end, of in sides:
        whole = mass[start:end].sum()
        if whole > 0:
            mass[start:end] *= of / whole
        elif end > start:
            mass[start:end] = of / (end - start)
    return mass


def _gap(mass: Floats, expected: Floats, sides: list[tuple[int, int, float]]) -> float:
    """Bound the log-likelihood left to gain by moving mass within each side."""
    total = 0.0
    for start, end, of in sides:
        if end > start and of > 0:
            total += of * expected[start:end].max() - float(mass[start:end] @ expected[start:end])
    return total


def _convex_minorant(cells: Cells, f: Floats, before: int | None, share: float) -> Floats:
    """Take one step of the iterative convex minorant, halved until the likelihood grows."""
    from scipy.optimize import isotonic_regression

    m = len(f) - 1
    if m < 2:
        return f
    seen = np.maximum(f[cells.high] - f[cells.low], _TINY)
    slope, curve = cells.weight / seen, cells.weight / seen**2
    gradient = _scatter(cells.high, slope, m) - _scatter(cells.low, slope, m)
    weight = _scatter(cells.high, curve, m) + _scatter(cells.low, curve, m)
    inner = slice(1, m)
    target = np.clip(f[inner] + gradient[inner] / np.maximum(weight[inner], _TINY), -1.0, 2.0)
    aim = np.empty(m + 1)
    aim[0], aim[m] = 0.0, 1.0
    fixed = [] if before is None or before in (0, m) else [before]
    ends = [0, *fixed, m]
    bounds = [0.0, *([share] if fixed else []), 1.0]
    for start, end, least, most in zip(ends[:-1], ends[1:], bounds[:-1], bounds[1:], strict=True):
        part = slice(start + 1, end)
        if end - start > 1:
            solved: Any = isotonic_regression(
                target[start : end - 1], weights=np.maximum(weight[part], _TINY)
            )
            aim[part] = np.clip(solved.x, least, most)
        aim[end] = most
    old = float(cells.weight @ np.log(seen))
    step = 1.0
    for _ in range(12):
        new = f + step * (aim - f)
        got = new[cells.high] - new[cells.low]
        if (got > 0).all() and float(cells.weight @ np.log(got)) > old:
            return new
        step /= 2
    return f
