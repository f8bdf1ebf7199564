"""Levels, sizes and places of the steps of many series, once it is known where they about are.

What is alike in length is worked on together: stretches between two cuts, of whatever series.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife._step_batch import Batch, Cuts, Levels, by_length, levels_of, variance
from errcomp.halflife._step_mixture import Mixtures, interval
from errcomp.halflife._step_scan import winsorised

__all__ = ["Fitted", "fitted", "settled"]

Floats = NDArray[Any]
Ints = NDArray[Any]
_LEVEL = 0.95
# Places below this probability do not count for the size.
_NEGLIGIBLE = 1e-4
_TINY = float(np.finfo(float).tiny)


class Fitted(NamedTuple):
    """Steps on the scale of the values; places are positions of the first value after each."""

    series: Ints
    at: Ints
    low: Ints
    high: Ints
    size: Floats
    size_low: Floats
    size_high: Floats
    before: Floats
    after: Floats
    p: Floats


class _Splits(NamedTuple):
    """All splits of each row: size, its variance at weight 1, squares left; the first is at m."""

    size: Floats
    spread: Floats
    squares: Floats


def _splits(x: Floats, weight: Floats, m: int) -> _Splits:
    k = np.arange(m, x.shape[1] - m + 1)
    centred = x - x.mean(axis=1, keepdims=True)
    sums, total = np.cumsum(weight * centred, axis=1), np.cumsum(weight, axis=1)
    left = total[:, k - 1]
    right = total[:, -1:] - left
    before, after = sums[:, k - 1] / left, (sums[:, -1:] - sums[:, k - 1]) / right
    explained = left * before**2 + right * after**2
    whole = (weight * centred**2).sum(axis=1, keepdims=True)
    return _Splits(after - before, 1 / left + 1 / right, np.maximum(whole - explained, 0.0))


def _robust_splits(x: Floats, weight: Floats, m: int) -> _Splits:
    return _splits(winsorised(x, 1 / np.sqrt(weight)), weight, m)


def settled(batch: Batch, cuts: Cuts, min_segment: int, alpha: float) -> Cuts:
    """Move each cut to its best place between its neighbours and drop those that do not hold.

    An interval puts two cuts where one may be enough: each must pass a t-test by itself. The
    weakest of a series goes, and the others are tried again.
    """
    kept: list[Cuts] = []
    while len(cuts.at):
        names, series = np.unique(cuts.series, return_inverse=True)
        part, own = batch.take(names), cuts._replace(series=series)
        own = own._replace(at=_moved(part, own, min_segment))
        t, freedom = _gaps(part, own)
        firsts = np.searchsorted(series, np.arange(len(names)))
        weakest = np.lexsort((t, series))[firsts]
        holds = 2 * special.stdtr(freedom, -t[weakest]) <= alpha
        again = ~holds[series]
        cuts = cuts._replace(at=own.at)
        kept.append(cuts.take(~again))
        again[weakest] = False
        cuts = cuts.take(again)
    return Cuts.joined(kept)


def _moved(batch: Batch, cuts: Cuts, m: int) -> Ints:
    """Put each cut to its best place between its neighbours; every series has one."""
    count = np.bincount(cuts.series)
    order = np.arange(len(cuts.at)) - (np.cumsum(count) - count)[cuts.series]
    # Both ends of a series are edges, too.
    edges = np.zeros(len(cuts.at) + 2 * len(count), dtype=int)
    edges[np.cumsum(count + 2) - 1] = batch.sizes
    place = np.arange(len(cuts.at)) + 2 * cuts.series + 1
    edges[place] = cuts.at
    # A cut moves its neighbours' ends, so that a second pass may move all but the last.
    for rest in (0, 1):
        for i in range(count.max() - rest):
            which = np.flatnonzero((order == i) & (count[cuts.series] > i + rest))
            a, b = edges[place[which] - 1], edges[place[which] + 1]
            edges[place[which]] = a + _best(batch, cuts.series[which], a, b, m)
    return np.asarray(edges[place])


def _best(batch: Batch, series: Ints, a: Ints, b: Ints, m: int) -> Ints:
    """Return the split of each stretch that leaves the fewest squares."""
    best = np.zeros(len(a), dtype=int)
    for length, which in by_length(b - a):
        x, weight = batch.stretches(series[which], a[which], length)
        best[which] = m + _robust_splits(x, weight, m).squares.argmin(axis=1)
    return best


def _gaps(batch: Batch, cuts: Cuts) -> tuple[Floats, Floats]:
    """Return t of each gap between levels, and the degrees of freedom of each series."""
    levels = levels_of(batch, cuts)
    freedom = batch.sizes - levels.segments
    square, df = variance(batch.given, batch.df, levels.total, freedom)
    left = levels.left
    error = np.sqrt(square[cuts.series] * (1 / levels.weight[left + 1] + 1 / levels.weight[left]))
    # Levels without noise about them differ for sure, or not at all.
    gap = np.abs(levels.mean[left + 1] - levels.mean[left])
    t = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0), where=error > 0)
    return t, df


def _chances(splits: _Splits, given: Floats, df: Floats, rest: Floats, freedom: Ints) -> Floats:
    """Return the posterior probability of each place, all alike beforehand.

    ``rest`` are the squares elsewhere in the series and ``freedom`` its degrees of freedom.
    """
    exact = np.isinf(df)
    known = np.where(exact, 0.0, df)
    total = (known * given + rest)[:, None] + splits.squares
    # A perfect fit has all the probability: its squares are those of rounding.
    smallest = np.maximum(np.finfo(float).eps ** 2 * total.max(axis=1), _TINY)
    log = -0.5 * (known + freedom)[:, None] * np.log(np.maximum(total, smallest[:, None]))
    log[exact] = -0.5 * splits.squares[exact] / given[exact, None]
    chances = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _place(chances: Floats) -> tuple[Ints, Ints]:
    """Return the ends of the smallest set of places with the probability wanted."""
    order = np.argsort(-chances, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(chances, order, axis=1), axis=1)
    # Up to the first with which the probability is reached.
    kept = np.pad(reached[:, :-1], ((0, 0), (1, 0))) < _LEVEL
    lowest = np.where(kept, order, chances.shape[1]).min(axis=1)
    return lowest, np.where(kept, order, -1).max(axis=1)


def fitted(batch: Batch, cuts: Cuts, levels: Levels, min_segment: int) -> Fitted:
    """Return each step with its size, its place and the levels on both sides."""
    series, left, m = cuts.series, levels.left, min_segment
    a, b = (levels.edges[left + i] - batch.starts[series] for i in (0, 2))
    rest = levels.total[series] - (levels.squares[left] + levels.squares[left + 1])
    given, df = batch.given[series], batch.df[series]
    freedom = (batch.sizes - levels.segments)[series]
    low, high = np.zeros_like(a), np.zeros_like(a)
    parts: list[tuple[Ints, Floats, Floats, Floats]] = []
    for length, which in by_length(b - a):
        x, weight = batch.stretches(series[which], a[which], length)
        elsewhere = given[which], df[which], rest[which], freedom[which]
        chances = _chances(_robust_splits(x, weight, m), *elsewhere)
        low[which], high[which] = _place(chances)
        plain = _splits(x, weight, m)
        known, known_df, others, left_over = (one[:, None] for one in elsewhere)
        square, _ = variance(known, known_df, others + plain.squares, left_over)
        error = np.sqrt(square * plain.spread)
        kept = chances > _NEGLIGIBLE
        parts.append((which[np.nonzero(kept)[0]], plain.size[kept], error[kept], chances[kept]))
    size_low, size_high = interval(Mixtures.of(parts, df + freedom), _LEVEL)
    before, after = levels.mean[left], levels.mean[left + 1]
    return Fitted(
        series=series,
        at=cuts.at,
        low=a + m + low,
        high=a + m + high,
        size=after - before,
        size_low=size_low,
        size_high=size_high,
        before=before,
        after=after,
        p=cuts.p,
    )
