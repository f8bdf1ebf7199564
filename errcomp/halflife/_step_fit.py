"""Levels, sizes and places of the steps of one series, once it is known where they about are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife._step_scan import winsorised

__all__ = ["Found", "Sample", "Step", "fitted", "left_over", "settled", "variance"]

Floats = NDArray[Any]
_LEVEL = 0.95
# Leave a millionth of the bracket.
_HALVINGS = 20
_TINY = float(np.finfo(float).tiny)


class Sample(NamedTuple):
    """Values with the variance ``given / weight`` each, where ``df > 0``; else with one unknown."""

    x: Floats
    weight: Floats
    given: float
    df: float


class Found(NamedTuple):
    """A cut before the value at ``at``, and the p-value of the test that found it."""

    at: int
    p: float


class Step(NamedTuple):
    """One step on the scale of the values; places are positions of the first value after it."""

    at: int
    low: int
    high: int
    size: float
    size_low: float
    size_high: float
    before: float
    after: float
    p: float


class _Levels(NamedTuple):
    """Edges of the segments with the total weight, mean and squares left of each."""

    edges: list[int]
    weight: Floats
    mean: Floats
    squares: Floats


def _levels(sample: Sample, cuts: list[Found]) -> _Levels:
    edges = [0, *(cut.at for cut in cuts), len(sample.x)]
    starts = edges[:-1]
    weight = np.add.reduceat(sample.weight, starts)
    mean = np.add.reduceat(sample.weight * sample.x, starts) / weight
    left = sample.weight * (sample.x - np.repeat(mean, np.diff(edges))) ** 2
    return _Levels(edges, weight, mean, np.add.reduceat(left, starts))


def left_over(sample: Sample, cuts: list[Found]) -> float:
    """Return the weighted squares about the levels."""
    return float(_levels(sample, cuts).squares.sum())


def variance(sample: Sample, squares: Any, parameters: int) -> tuple[Any, float]:
    """Return the variance at weight 1 and its degrees of freedom: what was given and the rest."""
    if np.isinf(sample.df):
        return sample.given + 0 * squares, sample.df
    freedom = sample.df + len(sample.x) - parameters
    return (sample.df * sample.given + squares) / freedom, freedom


class _Splits(NamedTuple):
    """Admissible splits of a stretch: place, size, its variance at weight 1, squares left."""

    at: NDArray[Any]
    size: Floats
    spread: Floats
    squares: Floats


def _splits(x: Floats, weight: Floats, m: int) -> _Splits:
    k = np.arange(m, len(x) - m + 1)
    centred = x - x.mean()
    sums, total = np.cumsum(weight * centred), np.cumsum(weight)
    left, right = total[k - 1], total[-1] - total[k - 1]
    before, after = sums[k - 1] / left, (sums[-1] - sums[k - 1]) / right
    explained = left * before**2 + right * after**2
    squares = np.maximum((weight * centred**2).sum() - explained, 0.0)
    return _Splits(k, after - before, 1 / left + 1 / right, squares)


def _robust_splits(sample: Sample, a: int, b: int, m: int) -> _Splits:
    spread = 1 / np.sqrt(sample.weight[None, a:b])
    return _splits(winsorised(sample.x[None, a:b], spread)[0], sample.weight[a:b], m)


def settled(sample: Sample, found: list[Found], min_segment: int, alpha: float) -> list[Found]:
    """Move each cut to its best place between its neighbours and drop those that do not hold.

    An interval puts two cuts where one may be enough: each must pass a t-test by itself.
    """
    cuts = sorted(found)
    while cuts:
        # A cut moves its neighbours' ends, so that a second pass may move them.
        for i in [*range(len(cuts)), *range(len(cuts) - 1)]:
            a = cuts[i - 1].at if i else 0
            b = cuts[i + 1].at if i + 1 < len(cuts) else len(sample.x)
            splits = _robust_splits(sample, a, b, min_segment)
            cuts[i] = Found(a + int(splits.at[splits.squares.argmin()]), cuts[i].p)
        levels = _levels(sample, cuts)
        square, freedom = variance(sample, levels.squares.sum(), len(levels.mean))
        error = np.sqrt(square * (1 / levels.weight[1:] + 1 / levels.weight[:-1]))
        # Levels without noise about them differ for sure, or not at all.
        gap = np.abs(np.diff(levels.mean))
        t = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0), where=error > 0)
        weakest = int(t.argmin())
        if 2 * special.stdtr(freedom, -t[weakest]) <= alpha:
            break
        del cuts[weakest]
    return cuts


def _chances(sample: Sample, splits: _Splits, rest: float, parameters: int) -> Floats:
    """Return the posterior probability of each place, all alike beforehand."""
    if np.isinf(sample.df):
        log = -0.5 * splits.squares / sample.given
    else:
        total = sample.df * sample.given + rest + splits.squares
        freedom = sample.df + len(sample.x) - parameters
        # A perfect fit has all the probability: its squares are those of rounding.
        smallest = max(np.finfo(float).eps ** 2 * float(total.max()), _TINY)
        log = -0.5 * freedom * np.log(np.maximum(total, smallest))
    chances = np.exp(log - log.max())
    return np.asarray(chances / chances.sum())


def _place(splits: _Splits, chances: Floats) -> tuple[int, int]:
    """Return the ends of the smallest set of places with the probability wanted."""
    order = np.argsort(-chances, kind="stable")
    kept = order[: int(np.searchsorted(np.cumsum(chances[order]), _LEVEL)) + 1]
    places = splits.at[kept]
    return int(places.min()), int(places.max())


def _size(size: Floats, error: Floats, freedom: float, chances: Floats) -> tuple[float, float]:
    """Quantiles of the size over all places it may have: a mixture of Student t, by halving."""
    kept = chances > 1e-4
    size, error, chances = size[kept], np.maximum(error[kept], _TINY), chances[kept]
    chances = chances / chances.sum()
    wanted = np.array([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    parts = size + special.stdtrit(freedom, wanted)[:, None] * error
    # A quantile of the mixture lies between those of its parts.
    low, high = parts.min(axis=1), parts.max(axis=1)
    for _ in range(_HALVINGS if len(size) > 1 else 0):
        middle = (low + high) / 2
        below = special.stdtr(freedom, (middle[:, None] - size) / error) @ chances < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    ends = (low + high) / 2
    return float(ends[0]), float(ends[1])


def fitted(sample: Sample, cuts: list[Found], min_segment: int) -> list[Step]:
    """Return each step with its size, its place and the levels on both sides."""
    levels = _levels(sample, cuts)
    steps = []
    for i, cut in enumerate(cuts):
        a, b = levels.edges[i], levels.edges[i + 2]
        rest = float(levels.squares.sum() - levels.squares[i : i + 2].sum())
        parameters = len(levels.mean)
        robust = _robust_splits(sample, a, b, min_segment)
        chances = _chances(sample, robust, rest, parameters)
        low, high = _place(robust, chances)
        plain = _splits(sample.x[a:b], sample.weight[a:b], min_segment)
        square, freedom = variance(sample, rest + plain.squares, parameters)
        error = np.sqrt(square * plain.spread)
        size_low, size_high = _size(plain.size, error, freedom, chances)
        before, after = float(levels.mean[i]), float(levels.mean[i + 1])
        steps.append(
            Step(
                at=cut.at,
                low=a + low,
                high=a + high,
                size=after - before,
                size_low=size_low,
                size_high=size_high,
                before=before,
                after=after,
                p=cut.p,
            )
        )
    return steps
