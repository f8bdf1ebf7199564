"""Scan series for the split or interval with the most evidence, and its probability by chance.

Rows are series of one length. A *split* at k compares the values before k with the others; an
*interval* [i, j) compares the values inside with all others (one bad release, fixed later).

A simulated table gives the probability of as much evidence by chance. It has upper quantiles of the
evidence in series of normal noise without a step, by number of values and by the share of the
noise's degrees of freedom that comes from the series itself. It does not depend on mean or
variance. ``benchmarks/step_rates.py`` makes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife.panel import rows_among

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
    """

    x: Floats
    weight: Floats
    starts: Ints
    given: Floats
    df: Floats

    @classmethod
    def of(cls, x: Floats, sd: Floats, starts: Ints, df: Floats) -> Batch:
        """Weight values by their noise; without degrees of freedom ``sd`` is relative.

        The mean weight of a series is 1; with a single ``sd`` each weight is exactly 1.
        """
        sizes, first = np.diff(starts), sd[starts[:-1]]
        precision = (np.repeat(first, sizes) / sd) ** 2
        mean = np.add.reduceat(precision, starts[:-1]) / sizes
        given = np.where(df > 0, first**2 / mean, 0.0)
        return cls(x, precision / np.repeat(mean, sizes), starts, given, df)

    @property
    def sizes(self) -> Ints:
        """Number of values of each series."""
        return np.asarray(np.diff(self.starts))

    def take(self, series: Ints) -> Batch:
        """Return some of the series."""
        rows, starts = rows_among(self.starts, series)
        return Batch(self.x[rows], self.weight[rows], starts, self.given[series], self.df[series])

    def stretches(self, series: Ints, start: Ints, length: int) -> tuple[Floats, Floats]:
        """Return stretches of one length as rows; equal weights are a single row."""
        rows = (self.starts[series] + start)[:, None] + np.arange(length)
        weight = self.weight[rows]
        alike = bool((weight == weight[:1]).all())
        return self.x[rows], weight[:1] if alike else weight


class Cuts(NamedTuple):
    """Cuts before the value at ``at`` of a series; ``p`` is that of the test that found it.

    In order of series, and of position within a series.
    """

    series: Ints
    at: Ints
    p: Floats

    def take(self, which: NDArray[Any]) -> Cuts:
        """Return some of the cuts."""
        return Cuts(self.series[which], self.at[which], self.p[which])

    @staticmethod
    def joined(parts: list[Cuts]) -> Cuts:
        """Put cuts together and in order."""
        empty = Cuts(np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))
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
# Elements per block, which fit into the cache.
_BLOCK = 2**17
# Beyond this the tail of t underflows.
_LARGEST = 700.0


def winsorised(x: Floats, spread: Floats) -> Floats:
    """Pull values beyond 3 robust standard deviations to that limit or to their nearer neighbour.

    A value without a similar neighbour is one bad run, not a step. If two neighbours are both far
    off, the farther one is pulled to the nearer one, so that short steps of any size stay visible.

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


class _Table(NamedTuple):
    lengths: Floats
    shares: Floats
    minus_log_tails: Floats
    quantiles: dict[int, Floats]


@cache
def _table() -> _Table:
    text = resources.files("errcomp.halflife").joinpath("step_null.json").read_text("utf-8")
    raw = json.loads(text)
    return _Table(
        np.array(raw["lengths"], dtype=float),
        np.array(raw["shares"]),
        -np.log(raw["tails"]),
        {int(m): np.array(rows) for m, rows in raw["quantiles"].items()},
    )


def segments_tabulated() -> tuple[int, ...]:
    """Return the minimum lengths of a segment with critical values."""
    return tuple(sorted(_table().quantiles))


@cache
def _of_length(n: int, min_segment: int) -> Floats:
    """Return the quantiles at one length, shape (shares, tails), interpolated linearly in log n."""
    table = _table()
    rows = table.quantiles[min_segment]
    log_lengths = np.log(table.lengths[-len(rows) :])
    right = int(np.clip(np.searchsorted(log_lengths, np.log(n)), 1, len(rows) - 1))
    step = log_lengths[right] - log_lengths[right - 1]
    at = (np.log(n) - log_lengths[right - 1]) / step
    return np.asarray((1 - at) * rows[right - 1] + at * rows[right])


def _quantiles(n: int, share: Floats, min_segment: int) -> Floats:
    shares = _table().shares
    rows = _of_length(n, min_segment)
    right = np.clip(np.searchsorted(shares, share), 1, len(shares) - 1)
    at = ((share - shares[right - 1]) / (shares[right] - shares[right - 1]))[:, None]
    return np.asarray((1 - at) * rows[right - 1] + at * rows[right])


def p_values(evidence: Floats, n: int, share: Floats, min_segment: int) -> Floats:
    """Return the probability of as much evidence without a step.

    Parameters
    ----------
    evidence : ndarray, shape (r,)
        The largest -ln p of one contrast, with the penalty of intervals.
    n : int
        Values in each series.
    share : ndarray, shape (r,)
        (n - 2) over all degrees of freedom: 1 if the noise is unknown, 0 if it is exact.
    min_segment : int

    Returns
    -------
    ndarray, shape (r,)
    """
    zero = np.zeros((len(evidence), 1))
    known = np.concatenate([zero, _quantiles(n, share, min_segment)], axis=1)
    logs = np.concatenate([[0.0], _table().minus_log_tails])
    right = np.clip((known < evidence[:, None]).sum(axis=1), 1, len(logs) - 1)
    rows = np.arange(len(evidence))
    low, high = known[rows, right - 1], known[rows, right]
    inside = logs[right - 1] + (logs[right] - logs[right - 1]) * (evidence - low) / (high - low)
    # Beyond the table p falls like that of one contrast.
    beyond = logs[-1] + evidence - known[:, -1]
    return np.asarray(np.exp(-np.where(evidence > known[:, -1], beyond, np.maximum(inside, 0.0))))


def critical_evidence(n: int, share: float, min_segment: int, alpha: float) -> float:
    """Return the evidence that chance exceeds with probability alpha."""
    known = _quantiles(n, np.array([share]), min_segment)[0]
    logs, wanted = _table().minus_log_tails, -np.log(alpha)
    if wanted > logs[-1]:
        return float(known[-1] + wanted - logs[-1])
    return float(np.interp(wanted, [0.0, *logs], [0.0, *known]))
