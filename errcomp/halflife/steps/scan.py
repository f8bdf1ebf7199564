"""Scan series for the split or interval with the most evidence, and its probability by chance.

Rows are series of one length. A *split* at k compares the values before k with the others; an
*interval* [i, j) compares the values inside with all others (one bad release, fixed later).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife.panel import rows_among
from errcomp.halflife.steps.null import independent

Floats = NDArray[Any]
Ints = NDArray[Any]


class Batch(NamedTuple):
    """Series end to end, with relative weights and the known noise of each.

    Attributes
    ----------
    x, weight : ndarray, shape (n,)
        Values; each has the variance ``given / weight`` where ``df > 0``, else an unknown one that
        goes with 1 / weight.
    starts : ndarray of int, shape (s + 1,)
        Values of series i are ``starts[i]:starts[i + 1]``; there is at least one of each.
    given, df : ndarray, shape (s,)
        Variance at weight 1 and its degrees of freedom: 0 if unknown, inf if exact.
    correlated : ndarray, shape (s, g)
        Probability of each autocorrelation of `autocorrelations`.
    runs : ndarray of int, shape (s, 2)
        Fewest neighbouring values above, and below, that may be a step.
    """

    x: Floats
    weight: Floats
    starts: Ints
    given: Floats
    df: Floats
    correlated: Floats
    runs: Ints

    @classmethod
    def of(cls, x: Floats, sd: Floats, starts: Ints, df: Floats) -> Batch:
        """Weight values by their noise; without degrees of freedom ``sd`` is relative.

        The mean weight of a series is 1; with a single ``sd`` each weight is exactly 1. Neighbours
        are independent, and two bad runs do not follow each other.
        """
        sizes, first = np.diff(starts), sd[starts[:-1]]
        precision = (np.repeat(first, sizes) / sd) ** 2
        mean = np.add.reduceat(precision, starts[:-1]) / sizes
        given = np.where(df > 0, first**2 / mean, 0.0)
        weight, runs = precision / np.repeat(mean, sizes), np.full((len(sizes), 2), SHORTEST_RUN)
        return cls(x, weight, starts, given, df, independent(len(sizes)), runs)

    @property
    def sizes(self) -> Ints:
        """Number of values of each series."""
        return np.asarray(np.diff(self.starts))

    def take(self, series: Ints) -> Batch:
        """Return some of the series."""
        rows, starts = rows_among(self.starts, series)
        own = (column[series] for column in self[3:])
        return Batch(self.x[rows], self.weight[rows], starts, *own)

    def stretches(self, series: Ints, start: Ints, length: int) -> tuple[Floats, Floats]:
        """Return stretches of one length as rows; equal weights are a single row."""
        rows = (self.starts[series] + start)[:, None] + np.arange(length)
        weight = self.weight[rows]
        alike = bool((weight == weight[:1]).all())
        return self.x[rows], weight[:1] if alike else weight


class Cuts(NamedTuple):
    """Cuts before the value at ``at`` of a series, in order of series and of position.

    ``p`` is that of the test that found it, and ``p_independent`` is without correlation.
    """

    series: Ints
    at: Ints
    p: Floats
    p_independent: Floats

    def take(self, which: NDArray[Any]) -> Cuts:
        """Return some of the cuts."""
        return Cuts(*(column[which] for column in self))

    @staticmethod
    def joined(parts: list[Cuts]) -> Cuts:
        """Put cuts together and in order."""
        empty = Cuts(*(np.zeros(0, dtype=kind) for kind in (int, int, float, float)))
        whole = Cuts(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))
        return whole.take(np.lexsort((whole.at, whole.series)))


class Levels(NamedTuple):
    """The segments between the cuts of a batch, one after the other.

    Attributes
    ----------
    edges : ndarray of int, shape (k + 1,)
        Segment j is the values ``edges[j]:edges[j + 1]`` of the batch.
    weight, mean, squares : ndarray, shape (k,)
        Total weight, level and weighted squares about it, of each segment.
    segments : ndarray of int, shape (s,)
        Number of segments of each series.
    left : ndarray of int, shape (c,)
        The segment before each cut; that after it is the next.
    total : ndarray, shape (s,)
        Weighted squares about the levels of each series.
    """

    edges: Ints
    weight: Floats
    mean: Floats
    squares: Floats
    segments: Ints
    left: Ints
    total: Floats


def levels_of(batch: Batch, cuts: Cuts) -> Levels:
    """Return the levels of every series of a batch, cut or not."""
    segments = np.bincount(cuts.series, minlength=len(batch.given)) + 1
    edges = np.sort(np.concatenate([batch.starts, batch.starts[cuts.series] + cuts.at]))
    starts = edges[:-1]
    weight = np.add.reduceat(batch.weight, starts)
    mean = np.add.reduceat(batch.weight * batch.x, starts) / weight
    left_over = batch.weight * (batch.x - np.repeat(mean, np.diff(edges))) ** 2
    squares = np.add.reduceat(left_over, starts)
    total = np.add.reduceat(squares, np.cumsum(segments) - segments)
    left = np.arange(len(cuts.at)) + cuts.series
    return Levels(edges, weight, mean, squares, segments, left, total)


def variance(given: Floats, df: Floats, squares: Floats, freedom: Ints) -> tuple[Floats, Floats]:
    """Return the variance at weight 1 and its degrees of freedom, from given and residual noise.

    Parameters
    ----------
    given, df : ndarray
        Given variance and degrees of freedom.
    squares, freedom : ndarray
        Weighted squares about the levels, and their degrees of freedom.
    """
    exact = np.isinf(df)
    known = np.where(exact, 0.0, df)
    pooled = (known * given + squares) / (known + freedom)
    return np.where(exact, given, pooled), np.asarray(df + freedom)


def by_length(lengths: Ints) -> Iterator[tuple[int, Ints]]:
    """Return each length with its positions."""
    order = np.argsort(lengths, kind="stable")
    values, starts = np.unique(lengths[order], return_index=True)
    parts = np.split(order, starts[1:])
    return zip(values.tolist(), parts, strict=False)


# Ratio of the standard deviation of a normal sample to its median absolute deviation, and to its
# mean absolute deviation, which is used if more than half of the values are equal.
_MAD_TO_SD, _MEAN_AD_TO_SD = 1.4826, 1.2533
_CLIP = 3.0
# Where bad runs are so frequent that two follow each other, they are pulled in further.
_CLIP_OFTEN = 2.0
#: One value alone is never a step.
SHORTEST_RUN = 2
# Elements per block, which fit into the cache.
_BLOCK = 2**17
# Beyond this the tail of t underflows.
_LARGEST = 700.0


def winsorised(x: Floats, spread: Floats, runs: Ints) -> Floats:
    """Pull bad runs in: values far off that have too few similar neighbours.

    A value without a similar neighbour is one bad run, not a step: beyond 3 robust standard
    deviations it is pulled to that limit, or to its nearer neighbour if that is beyond it, too.
    If two neighbours are both far off, the farther one is pulled to the nearer one, so that short
    steps of any size stay visible. Where bad runs are frequent, three or more must be far off, and
    the limit is 2 standard deviations.

    Parameters
    ----------
    x : ndarray, shape (r, n)
    spread : ndarray, shape (r, n) or (1, n)
        Relative standard deviation of each value.
    runs : ndarray of int, shape (r, 2)
        Fewest neighbouring values above, and below, that may be a step.

    Returns
    -------
    ndarray, shape (r, n)
    """
    middle = _median(x)
    z = (x - middle) / spread
    scale = robust_scale(z)
    fewest = np.minimum(runs, max(x.shape[1] // 2, SHORTEST_RUN)).T
    above, below = _pulled(z, scale, fewest[0]), _pulled(-z, scale, fewest[1])
    return np.asarray(middle + spread * np.clip(z, -below, above))


def _pulled(z: Floats, scale: Floats, runs: Ints) -> Floats:
    """Return the largest value that each may have."""
    limit = np.empty_like(z)
    for run in np.unique(runs).tolist():
        which = runs == run
        far = (_CLIP if run == SHORTEST_RUN else _CLIP_OFTEN) * scale[which]
        limit[which] = np.maximum(_in_runs(z[which], run), far)
    return limit


def _in_runs(z: Floats, run: int) -> Floats:
    """Return the largest value that each reaches with a run of its neighbours."""
    n = z.shape[1]
    lowest = z[:, : n - run + 1]
    for i in range(1, run):
        lowest = np.minimum(lowest, z[:, i : n - run + 1 + i])
    reached = np.full_like(z, -np.inf)
    for i in range(run):
        part = reached[:, i : n - run + 1 + i]
        np.maximum(part, lowest, out=part)
    return reached


def robust_scale(z: Floats) -> Floats:
    """Return the standard deviation of each row about 0, as a column, from absolute values."""
    size = np.abs(z)
    scale = _MAD_TO_SD * _median(size)
    return np.where(scale > 0, scale, _MEAN_AD_TO_SD * size.mean(axis=1, keepdims=True))


def _median(x: Floats) -> Floats:
    """Return the median of each row as a column; for short rows five times as fast as NumPy."""
    ordered = np.sort(x, axis=1)
    n = x.shape[1]
    return np.asarray((ordered[:, (n - 1) // 2, None] + ordered[:, n // 2, None]) / 2)


def penalty(n: int, min_segment: int) -> float:
    """Return the penalty of intervals against splits on the scale of -ln p.

    Intervals are more numerous. Splits are more common in practice and get seven tenths of the
    false alarms.
    """
    splits, rest = n - 2 * min_segment + 1, max(n - 3 * min_segment + 1, 0)
    return math.log(7 / 3 * max(rest * (rest + 1) / 2, 1) / splits)


def _sums(x: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the squares about the mean, and cumulative sums of deviations and of weights."""
    total = weight.sum(axis=1, keepdims=True)
    centred = x - (weight * x).sum(axis=1, keepdims=True) / total
    squares = (weight * centred**2).sum(axis=1)
    # Rounding errors of constant series count as 0.
    largest = np.abs(x).max(axis=1)
    noise = x.shape[1] * (4 * np.finfo(float).eps * largest) ** 2 * weight.max(axis=1)
    flat = squares <= noise
    centred[flat] = 0.0
    zero = np.zeros((len(x), 1))
    sums = np.concatenate([zero, np.cumsum(weight * centred, axis=1)], axis=1)
    weights = np.concatenate([np.zeros((len(weight), 1)), np.cumsum(weight, axis=1)], axis=1)
    return np.where(flat, 0.0, squares), sums, weights


def _split_gains(sums: Floats, weights: Floats, m: int) -> Floats:
    """Return the squares explained by each split, shape (r, n - 2m + 1)."""
    n = sums.shape[1] - 1
    left = weights[:, m : n - m + 1]
    return np.asarray(sums[:, m : n - m + 1] ** 2 / (left * (1 - left / weights[:, -1:])))


def _interval_gains(sums: Floats, weights: Floats, m: int, length: int) -> Floats:
    """Return the squares explained by each interval of a length, shape (r, n - 2m - length + 1)."""
    n = sums.shape[1] - 1
    inside = weights[:, m + length : n - m + 1] - weights[:, m : n - m - length + 1]
    gap = sums[:, m + length : n - m + 1] - sums[:, m : n - m - length + 1]
    gap *= gap
    gap /= inside * (1 - inside / weights[:, -1:])
    return np.asarray(gap)


def gains(x: Floats, weight: Floats, min_segment: int) -> tuple[Floats, Floats, Floats]:
    """Return squares about the mean, and those explained by the best split and interval."""
    n, m = x.shape[1], min_segment
    squares = np.zeros((3, len(x)))
    step = max(1, _BLOCK // n)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        w = weight if len(weight) == 1 else weight[rows]
        squares[0, rows], sums, weights = _sums(x[rows], w)
        squares[1, rows] = _split_gains(sums, weights, m).max(axis=1)
        best = squares[2, rows]
        for length in range(m, n - 2 * m + 1):
            np.maximum(best, _interval_gains(sums, weights, m, length).max(axis=1), out=best)
    return squares[0], squares[1], squares[2]


def local_evidence(gain: Floats, squares: Floats, n: int, given: Floats, df: Floats) -> Floats:
    """Return -ln p of a t-test of one contrast, not corrected for the number of contrasts.

    Parameters
    ----------
    gain : ndarray
        Squares that the contrast explains.
    squares : ndarray
        Squares about the mean.
    n : int
        Values.
    given, df : ndarray
        Known variance and its degrees of freedom: 0 if unknown, inf if exact.
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
    """Return the evidence for the best split, and for the best interval minus its penalty."""
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
