"""Scan series for the split or the interval that stands out most; arrays only.

Rows are series of one length. A *split* at k sets the values from k on against those before; an
*interval* [i, j) sets the values inside against all others (one bad release, mended later).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["evidence", "local_evidence", "locate", "penalty", "winsorised"]

Floats = NDArray[Any]

# Median absolute deviation of a normal sample to its standard deviation, and the same for the mean
# absolute deviation, which takes over where more than half of the values are equal.
_MAD_TO_SD, _MEAN_AD_TO_SD = 1.4826, 1.2533
_CLIP = 3.0
# Elements worked on at once: fits the cache.
_BLOCK = 2**17
# Beyond it the tail of t is below the smallest number.
_LARGEST = 700.0


def winsorised(x: Floats, spread: Floats) -> Floats:
    """Pull values beyond 3 robust standard deviations back to there, or to their nearer neighbour.

    A value that no neighbour supports is one bad run, not a step; of two neighbours that are both
    far off the farther is pulled to the nearer, so that short steps of any size stay visible.

    Parameters
    ----------
    x : ndarray, shape (r, n)
    spread : ndarray, shape (r, n) or (1, n)
        Relative standard deviation of each value.

    Returns
    -------
    ndarray, shape (r, n)
    """
    middle = _median(x)
    z = (x - middle) / spread
    size = np.abs(z)
    scale = _MAD_TO_SD * _median(size)
    scale = np.where(scale > 0, scale, _MEAN_AD_TO_SD * size.mean(axis=1, keepdims=True))
    left = np.concatenate([z[:, 1:2], z[:, :-1]], axis=1)
    right = np.concatenate([z[:, 1:], z[:, -2:-1]], axis=1)
    high = np.maximum(np.maximum(left, right), _CLIP * scale)
    low = np.minimum(np.minimum(left, right), -_CLIP * scale)
    return np.asarray(middle + spread * np.clip(z, low, high))


def _median(x: Floats) -> Floats:
    """Return the median of each row as a column: of short rows five times as fast as NumPy's."""
    ordered = np.sort(x, axis=1)
    n = x.shape[1]
    return np.asarray((ordered[:, (n - 1) // 2, None] + ordered[:, n // 2, None]) / 2)


def penalty(n: int, min_segment: int) -> float:
    """Handicap of intervals against splits on the scale of -ln p.

    There are more of them; splits, which are the rule, get seven tenths of the false alarms.
    """
    splits, rest = n - 2 * min_segment + 1, max(n - 3 * min_segment + 1, 0)
    return math.log(7 / 3 * max(rest * (rest + 1) / 2, 1) / splits)


def _sums(x: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the squares about the mean, and cumulative sums of deviations and of weights."""
    total = weight.sum(axis=1, keepdims=True)
    centred = x - (weight * x).sum(axis=1, keepdims=True) / total
    squares = (weight * centred**2).sum(axis=1)
    # What rounding leaves of constant series is none.
    largest = np.abs(x).max(axis=1)
    noise = x.shape[1] * (4 * np.finfo(float).eps * largest) ** 2 * weight.max(axis=1)
    flat = squares <= noise
    centred[flat] = 0.0
    zero = np.zeros((len(x), 1))
    sums = np.concatenate([zero, np.cumsum(weight * centred, axis=1)], axis=1)
    weights = np.concatenate([np.zeros((len(weight), 1)), np.cumsum(weight, axis=1)], axis=1)
    return np.where(flat, 0.0, squares), sums, weights


def _split_gains(sums: Floats, weights: Floats, m: int) -> Floats:
    """Squares explained by each split, shape (r, n - 2m + 1)."""
    n = sums.shape[1] - 1
    left = weights[:, m : n - m + 1]
    return np.asarray(sums[:, m : n - m + 1] ** 2 / (left * (1 - left / weights[:, -1:])))


def _interval_gains(sums: Floats, weights: Floats, m: int, length: int) -> Floats:
    """Squares explained by each interval of a length, shape (r, n - 2m - length + 1)."""
    n = sums.shape[1] - 1
    inside = weights[:, m + length : n - m + 1] - weights[:, m : n - m - length + 1]
    gap = sums[:, m + length : n - m + 1] - sums[:, m : n - m - length + 1]
    gap *= gap
    gap /= inside * (1 - inside / weights[:, -1:])
    return np.asarray(gap)


def gains(x: Floats, weight: Floats, min_segment: int) -> tuple[Floats, Floats, Floats]:
    """Return squares about the mean, and those that the best split and interval explain."""
    n, m = x.shape[1], min_segment
    found = np.zeros((3, len(x)))
    step = max(1, _BLOCK // n)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        w = weight if len(weight) == 1 else weight[rows]
        found[0, rows], sums, weights = _sums(x[rows], w)
        found[1, rows] = _split_gains(sums, weights, m).max(axis=1)
        best = found[2, rows]
        for length in range(m, n - 2 * m + 1):
            np.maximum(best, _interval_gains(sums, weights, m, length).max(axis=1), out=best)
    return found[0], found[1], found[2]


def local_evidence(gain: Floats, squares: Floats, n: int, given: Floats, df: Floats) -> Floats:
    """Return -ln p of a t-test of one contrast, as if it had been the only one.

    Parameters
    ----------
    gain : ndarray
        Squares that the contrast explains.
    squares : ndarray
        Squares about the mean.
    n : int
        Values.
    given, df : ndarray
        Variance known from elsewhere and its degrees of freedom: 0 for none, inf where exact.
    """
    exact = np.isinf(df)
    known = np.where(exact, 1.0, df)
    freedom = n - 2 + known
    left = np.maximum(squares - gain, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(exact, given, (known * given + left) / freedom)
        t = np.sqrt(np.where(gain > 0, gain / variance, 0.0))
        p = np.where(exact, 2 * special.ndtr(-t), 2 * special.stdtr(freedom, -t))
        return np.asarray(np.minimum(-np.log(p), _LARGEST))


def evidence(
    x: Floats, weight: Floats, given: Floats, df: Floats, min_segment: int
) -> tuple[Floats, Floats]:
    """Return the evidence for the best split and for the best interval less its handicap."""
    n = x.shape[1]
    squares, split, interval = gains(x, weight, min_segment)
    handicap = penalty(n, min_segment)
    return (
        local_evidence(split, squares, n, given, df),
        local_evidence(interval, squares, n, given, df) - handicap,
    )


def locate(x: Floats, weight: Floats, min_segment: int, *, interval: bool) -> NDArray[Any]:
    """Return where the best split, or the best interval, of each row begins (and ends)."""
    n, m = x.shape[1], min_segment
    _, sums, weights = _sums(x, weight)
    if not interval:
        return np.asarray(m + _split_gains(sums, weights, m).argmax(axis=1)[:, None])
    rows = np.arange(len(x))
    best = np.full(len(x), -math.inf)
    places = np.tile([m, 2 * m], (len(x), 1))
    for length in range(m, n - 2 * m + 1):
        gain = _interval_gains(sums, weights, m, length)
        at = gain.argmax(axis=1)
        better = gain[rows, at] > best
        best[better] = gain[rows, at][better]
        places[better] = m + at[better, None] + [0, length]
    return places
