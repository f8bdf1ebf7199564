r"""Levels, sizes and positions of the steps of many series, after the search.

Stretches between two cuts are processed together if they have the same length, whatever their
series. Where neighbours are correlated, with :math:`\rho` the mean of its posterior, the variance
of a mean of n values is

.. math:: \frac{\sigma^2}{n} \Big( \frac{1 + \rho}{1 - \rho}
          - \frac{2 \rho (1 - \rho^n)}{n (1 - \rho)^2} \Big)

and the squares about a mean are smaller than those of independent values, for which they are
corrected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife.steps.null import autocorrelations
from errcomp.halflife.steps.scan import (
    Batch,
    Cuts,
    Levels,
    by_length,
    levels_of,
    variance,
    winsorised,
)
from errcomp.stats.mixtures import StudentMixtures, central_intervals

Floats = NDArray[Any]
Ints = NDArray[Any]
_LEVEL = 0.95
# Positions below this probability do not count for the size.
_NEGLIGIBLE = 1e-4
_TINY = float(np.finfo(float).tiny)


class Fitted(NamedTuple):
    """Steps on the scale of the values; the position is that of the first value after a step."""

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
    p_independent: Floats


def correlation_of(batch: Batch) -> Floats:
    """Return the mean autocorrelation of each series."""
    return np.asarray(batch.correlated @ autocorrelations())


def variance_of_mean(n: Ints, rho: Floats) -> Floats:
    """Return the variance of the mean of n correlated values, over that of a value."""
    rest = 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)
    return np.asarray(((1 + rho) / (1 - rho) - rest) / n)


def variance_of_gap(left: Ints, right: Ints, rho: Floats) -> Floats:
    """Return the variance of the difference of two neighbouring means over that without rho."""
    common = rho * (1 - rho**left) * (1 - rho**right) / ((1 - rho) ** 2 * left * right)
    both = variance_of_mean(left, rho) + variance_of_mean(right, rho) - 2 * common
    return np.asarray(both / (1 / left + 1 / right))


def correction(batch: Batch, levels: Levels) -> Floats:
    """Return by how much the squares about the levels of each series are too small."""
    n = np.diff(levels.edges)
    rho = np.repeat(correlation_of(batch), levels.segments)
    first = np.cumsum(levels.segments) - levels.segments
    expected = np.add.reduceat(n * (1 - variance_of_mean(n, rho)), first)
    return np.asarray((batch.sizes - levels.segments) / expected)


class _Splits(NamedTuple):
    """All splits of each row: size, its variance at weight 1, residual squares; the first at m."""

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


def _robust_splits(x: Floats, weight: Floats, m: int, runs: Ints) -> _Splits:
    return _splits(winsorised(x, 1 / np.sqrt(weight), runs), weight, m)


def settled(batch: Batch, cuts: Cuts, min_segment: int, alpha: float) -> Cuts:
    """Move each cut to its best position between its neighbours, and drop those that fail.

    An interval makes two cuts where one may be enough: each cut must pass its own t-test. The
    weakest cut of a series is dropped, and the others are tested again.
    """
    held: list[Cuts] = []
    while len(cuts.at):
        names, series = np.unique(cuts.series, return_inverse=True)
        part, own = batch.take(names), cuts._replace(series=series)
        own = own._replace(at=_moved(part, own, min_segment))
        t, freedom = _gaps(part, own)
        firsts = np.searchsorted(series, np.arange(len(names)))
        weakest = np.lexsort((t, series))[firsts]
        holds = 2 * special.stdtr(freedom, -t[weakest]) <= alpha
        pending = ~holds[series]
        cuts = cuts._replace(at=own.at)
        held.append(cuts.take(~pending))
        pending[weakest] = False
        cuts = cuts.take(pending)
    return Cuts.joined(held)


def _moved(batch: Batch, cuts: Cuts, m: int) -> Ints:
    """Put each cut at its best position between its neighbours; every series has a cut."""
    count = np.bincount(cuts.series)
    order = np.arange(len(cuts.at)) - (np.cumsum(count) - count)[cuts.series]
    # Both ends of a series are edges, too.
    edges = np.zeros(len(cuts.at) + 2 * len(count), dtype=int)
    edges[np.cumsum(count + 2) - 1] = batch.sizes
    place = np.arange(len(cuts.at)) + 2 * cuts.series + 1
    edges[place] = cuts.at
    # A cut changes the ends of its neighbours, so a second pass may move all cuts but the last.
    for rest in (0, 1):
        for i in range(count.max() - rest):
            which = np.flatnonzero((order == i) & (count[cuts.series] > i + rest))
            a, b = edges[place[which] - 1], edges[place[which] + 1]
            edges[place[which]] = a + _best(batch, cuts.series[which], a, b, m)
    return np.asarray(edges[place])


def _best(batch: Batch, series: Ints, a: Ints, b: Ints, m: int) -> Ints:
    """Return the split of each stretch with the smallest sum of residual squares."""
    best = np.zeros(len(a), dtype=int)
    for length, which in by_length(b - a):
        x, weight = batch.stretches(series[which], a[which], length)
        splits = _robust_splits(x, weight, m, batch.runs[series[which]])
        best[which] = m + splits.squares.argmin(axis=1)
    return best


def _gaps(batch: Batch, cuts: Cuts) -> tuple[Floats, Floats]:
    """Return t of each gap between levels, and the degrees of freedom of each series."""
    levels = levels_of(batch, cuts)
    freedom = batch.sizes - levels.segments
    squares = levels.total * correction(batch, levels)
    square, df = variance(batch.given, batch.df, squares, freedom)
    left = levels.left
    n, rho = np.diff(levels.edges), correlation_of(batch)[cuts.series]
    spread = 1 / levels.weight[left + 1] + 1 / levels.weight[left]
    spread *= variance_of_gap(n[left], n[left + 1], rho)
    error = np.sqrt(square[cuts.series] * spread)
    # Levels without noise either differ with certainty or are equal.
    gap = np.abs(levels.mean[left + 1] - levels.mean[left])
    t = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0), where=error > 0)
    return t, df


class _Around(NamedTuple):
    """The noise of each stretch, as columns.

    ``rest`` are the squares elsewhere in the series and ``freedom`` its degrees of freedom; squares
    are too small by ``factor``.
    """

    given: Floats
    df: Floats
    rest: Floats
    freedom: Ints
    factor: Floats
    rho: Floats

    def of(self, which: Ints) -> _Around:
        return _Around(*(column[which, None] for column in self))


def _chances(splits: _Splits, around: _Around) -> Floats:
    """Return the posterior probability of each position, with a uniform prior."""
    exact = np.isinf(around.df[:, 0])
    known = np.where(exact[:, None], 0.0, around.df)
    total = known * around.given + around.factor * (around.rest + splits.squares)
    # A perfect fit has all the probability: its squares are rounding errors.
    largest = total.max(axis=1, keepdims=True)
    smallest = np.maximum(np.finfo(float).eps ** 2 * largest, _TINY)
    log = -0.5 * (known + around.freedom) * np.log(np.maximum(total, smallest))
    log[exact] = -0.5 * splits.squares[exact] / around.given[exact]
    # Correlated values say as much as fewer independent ones.
    log *= (1 - around.rho) / (1 + around.rho)
    chances = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _place(chances: Floats) -> tuple[Ints, Ints]:
    """Return the ends of the smallest set of positions with the requested probability."""
    order = np.argsort(-chances, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(chances, order, axis=1), axis=1)
    # Up to the first position that reaches the probability.
    included = np.pad(reached[:, :-1], ((0, 0), (1, 0))) < _LEVEL
    lowest = np.where(included, order, chances.shape[1]).min(axis=1)
    return lowest, np.where(included, order, -1).max(axis=1)


def fitted(batch: Batch, cuts: Cuts, levels: Levels, min_segment: int) -> Fitted:
    """Return each step with its size, its position and the levels on both sides."""
    series, left, m = cuts.series, levels.left, min_segment
    a, b = (levels.edges[left + i] - batch.starts[series] for i in (0, 2))
    rest = levels.total[series] - (levels.squares[left] + levels.squares[left + 1])
    df, freedom = batch.df[series], (batch.sizes - levels.segments)[series]
    around = _Around(
        batch.given[series],
        df,
        rest,
        freedom,
        correction(batch, levels)[series],
        correlation_of(batch)[series],
    )
    low, high = np.zeros_like(a), np.zeros_like(a)
    parts: list[tuple[Ints, Floats, Floats, Floats]] = []
    for length, which in by_length(b - a):
        x, weight = batch.stretches(series[which], a[which], length)
        here = around.of(which)
        chances = _chances(_robust_splits(x, weight, m, batch.runs[series[which]]), here)
        low[which], high[which] = _place(chances)
        plain = _splits(x, weight, m)
        squares = here.factor * (here.rest + plain.squares)
        square, _ = variance(here.given, here.df, squares, here.freedom)
        k = np.arange(m, length - m + 1)
        error = np.sqrt(square * plain.spread * variance_of_gap(k, length - k, here.rho))
        likely = chances > _NEGLIGIBLE
        stretch = which[np.nonzero(likely)[0]]
        parts.append((stretch, plain.size[likely], error[likely], chances[likely]))
    size_low, size_high = central_intervals(StudentMixtures.of(parts, df + freedom), _LEVEL)
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
        p_independent=cuts.p_independent,
    )
