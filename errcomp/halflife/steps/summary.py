"""The result for every series: its steps by version, its noise, and its power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.codec import Count, Derived, Document, Log
from errcomp.halflife.steps.scan import (
    Batch,
    Cuts,
    Levels,
    by_length,
    critical_evidence,
    evidence,
    levels_of,
    locate,
    p_values,
    variance,
    winsorised,
)
from errcomp.stats.mixtures import StudentMixtures, central_intervals


@dataclass(frozen=True, slots=True)
class Step(Document):
    """A step of the mean between two versions.

    Attributes
    ----------
    at : int
        Position of the first value after the step.
    at_low, at_high : int
        Ends of the 95 % set of positions for ``at``.
    versions : tuple of str
        The last version before and the first version after it.
    earliest, latest : str
        The versions at ``at_low`` and ``at_high``.
    size, size_low, size_high : float
        Level after minus level before, on the scale of the values (log), and its 95 % interval.
    before, after : float
        Levels on both sides.
    p : float
        Probability of as much evidence in a series without a step. For a step detected in a part of
        the series, multiplied by the length of the series over that of the part.
    """

    KEYS: ClassVar = (
        *("at", "at_low", "at_high", "versions", "earliest", "latest", "size", "size_low"),
        *("size_high", "before", "after", "p"),
        Derived("change", float, lambda step: step.change[0]),
        Derived("change_low", float, lambda step: step.change[1]),
        Derived("change_high", float, lambda step: step.change[2]),
    )

    at: Count
    at_low: Count
    at_high: Count
    versions: tuple[str, str]
    earliest: str
    latest: str
    size: Log
    size_low: Log
    size_high: Log
    before: Log
    after: Log
    p: float

    @property
    def change(self) -> tuple[float, float, float]:
        """Relative change and its interval, as fractions (0.1 is 10 %), for values on log scale."""
        low, value, high = np.expm1([self.size_low, self.size, self.size_high])
        return float(value), float(low), float(high)


@dataclass(frozen=True, slots=True)
class Steps(Document):
    """The steps of one series, or why it cannot be searched.

    Attributes
    ----------
    n : int
        Number of values.
    steps : tuple of Step
        In order.
    p : float or None
        Probability of as much evidence for any step in a series without one; None if refused.
    alpha : float
        False-alarm rate per series without a step.
    sd : float or None
        Standard deviation of a value about its level, from the series and the given noise.
    df : float
        Its degrees of freedom.
    noise_ratio : float or None
        Standard deviation of the series about its levels over that of repeats; None without
        repeats.
    smallest_middle, smallest_end : float or None
        Approximate size of a step that would be detected in 4 of 5 such series: in the middle, and
        with ``min_segment`` versions after it.
    unseen : int
        Number of last versions in which a step cannot be detected yet.
    refused : str
        Why the series cannot be searched; empty otherwise.
    notes : tuple of str
        Remarks for the reader, each a sentence.
    """

    n: int
    steps: tuple[Step, ...]
    p: float | None
    alpha: float
    sd: float | None
    df: float
    noise_ratio: float | None
    smallest_middle: float | None
    smallest_end: float | None
    unseen: int
    refused: str = ""
    notes: tuple[str, ...] = ()


Floats = NDArray[Any]
Ints = NDArray[Any]
_LEVEL = 0.95
_POWER_80 = 0.8416
# Noise of the residuals against that of repeats: reported if chance gives as much in 1 of 100.
_RATIO_ALPHA = 0.01
# Positions below this probability do not count for the size.
_NEGLIGIBLE = 1e-4
_TINY = float(np.finfo(float).tiny)

# Levels, sizes and positions of the steps of many series, after the search. Stretches between two
# cuts are processed together if they have the same length, whatever their series.


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


def _robust_splits(x: Floats, weight: Floats, m: int) -> _Splits:
    return _splits(winsorised(x, 1 / np.sqrt(weight)), weight, m)


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
        best[which] = m + _robust_splits(x, weight, m).squares.argmin(axis=1)
    return best


def _gaps(batch: Batch, cuts: Cuts) -> tuple[Floats, Floats]:
    """Return t of each gap between levels, and the degrees of freedom of each series."""
    levels = levels_of(batch, cuts)
    freedom = batch.sizes - levels.segments
    square, df = variance(batch.given, batch.df, levels.total, freedom)
    left = levels.left
    error = np.sqrt(square[cuts.series] * (1 / levels.weight[left + 1] + 1 / levels.weight[left]))
    # Levels without noise either differ with certainty or are equal.
    gap = np.abs(levels.mean[left + 1] - levels.mean[left])
    t = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0), where=error > 0)
    return t, df


def _chances(splits: _Splits, given: Floats, df: Floats, rest: Floats, freedom: Ints) -> Floats:
    """Return the posterior probability of each position, with a uniform prior.

    ``rest`` are the squares elsewhere in the series and ``freedom`` its degrees of freedom.
    """
    exact = np.isinf(df)
    known = np.where(exact, 0.0, df)
    total = (known * given + rest)[:, None] + splits.squares
    # A perfect fit has all the probability: its squares are rounding errors.
    smallest = np.maximum(np.finfo(float).eps ** 2 * total.max(axis=1), _TINY)
    log = -0.5 * (known + freedom)[:, None] * np.log(np.maximum(total, smallest[:, None]))
    log[exact] = -0.5 * splits.squares[exact] / given[exact, None]
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
        known, known_df, others, left_over = (column[:, None] for column in elsewhere)
        square, _ = variance(known, known_df, others + plain.squares, left_over)
        error = np.sqrt(square * plain.spread)
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
    )


# Find the steps of many series at once: first the test, for all parts of a length together.


def search(batch: Batch, alpha: float, min_segment: int) -> tuple[Floats, Cuts]:
    """Cut series at significant steps, then their parts, until no step is significant.

    A part is tested with a share of alpha proportional to its length: at most alpha in total.

    Returns
    -------
    ndarray, shape (s,)
        The p-value of each whole series.
    Cuts
        Their p-values are for the whole series.
    """
    sizes = batch.sizes
    p = np.ones(len(sizes))
    # Parts by their length: series and start of each.
    waiting = {
        length: [(series, np.zeros(len(series), dtype=int))] for length, series in by_length(sizes)
    }
    cuts: list[Cuts] = []
    # A part is shorter than its whole, so all parts of a length exist before they are tested.
    for length in range(max(waiting, default=0), 2 * min_segment - 1, -1):
        if length not in waiting:
            continue
        series, start = (np.concatenate(column) for column in zip(*waiting[length], strict=True))
        size = sizes[series]
        part = _tested(batch, series, start, length, min_segment)
        whole = size == length
        p[series[whole]] = part.p[whole]
        for interval in (False, True):
            hit = np.flatnonzero((part.p <= alpha * length / size) & (part.interval == interval))
            if not len(hit):
                continue
            weight = part.weight if len(part.weight) == 1 else part.weight[hit]
            places = locate(part.x[hit], weight, min_segment, interval=interval)
            corrected = np.minimum(part.p[hit] * size[hit] / length, 1.0)
            edges = np.pad(places, ((0, 0), (1, 1)), constant_values=(0, length))
            for i in range(edges.shape[1] - 1):
                begin, long = start[hit] + edges[:, i], edges[:, i + 1] - edges[:, i]
                if i:
                    cuts.append(Cuts(series[hit], begin, corrected))
                for shorter, which in by_length(long):
                    waiting.setdefault(shorter, []).append((series[hit][which], begin[which]))
    return p, Cuts.joined(cuts)


class _Tested(NamedTuple):
    """The p-value of each part, whether an interval is its best contrast, and the tested values."""

    p: Floats
    interval: NDArray[Any]
    x: Floats
    weight: Floats


def _tested(batch: Batch, series: Ints, start: Ints, n: int, min_segment: int) -> _Tested:
    x, weight = batch.stretches(series, start, n)
    x = winsorised(x, 1 / np.sqrt(weight))
    given, df = batch.given[series], batch.df[series]
    split, interval = evidence(x, weight, given, df, min_segment)
    share = (n - 2) / (n - 2 + df)
    p = p_values(np.maximum(split, interval), n, share, min_segment)
    return _Tested(p, interval > split, x, weight)


def too_short(n: int, alpha: float, min_segment: int) -> Steps:
    """Refuse a series of fewer than two segments."""
    refused = (
        f"{n} value{'' if n == 1 else 's'}: a search for steps needs at least {2 * min_segment} "
        f"({min_segment} before and {min_segment} after a step)"
    )
    return Steps(n, (), None, alpha, None, 0.0, None, None, None, n, refused)


def steps_of(
    batch: Batch, alpha: float, min_segment: int, names: Sequence[str], version: NDArray[Any]
) -> list[Steps]:
    """Find the steps of each series of at least two segments.

    ``names[version[i]]`` is the version of value i of the batch.
    """
    p, cuts = search(batch, alpha, min_segment)
    cuts = settled(batch, cuts, min_segment, alpha)
    levels = levels_of(batch, cuts)
    sizes = batch.sizes
    left = sizes - levels.segments
    square, df = variance(batch.given, batch.df, levels.total, left)
    sd = np.sqrt(square)
    middle, end = (limit * sd for limit in _smallest(sizes, batch.df, alpha, min_segment))
    steps = []
    if len(cuts.at):
        steps = _steps(fitted(batch, cuts, levels, min_segment), batch, names, version)
    ends = np.cumsum(levels.segments - 1)
    columns = (sizes, ends - levels.segments + 1, ends, p, sd, df, middle, end)
    return [
        Steps(
            n=n,
            steps=tuple(steps[first:last]),
            p=p_value,
            alpha=alpha,
            sd=spread,
            df=freedom,
            noise_ratio=ratio,
            smallest_middle=at_middle,
            smallest_end=at_end,
            unseen=min_segment - 1,
            notes=notes,
        )
        for (n, first, last, p_value, spread, freedom, at_middle, at_end), (ratio, notes) in zip(
            zip(*(column.tolist() for column in columns), strict=True),
            _against_repeats(batch, levels.total, left),
            strict=True,
        )
    ]


def _steps(fit: Fitted, batch: Batch, names: Sequence[str], version: NDArray[Any]) -> list[Step]:
    start = batch.starts[fit.series]
    named = [
        [names[i] for i in version[start + place].tolist()]
        for place in (fit.at - 1, fit.at, fit.low, fit.high)
    ]
    columns = [column.tolist() for column in fit[1:]]
    return [
        Step(at, at_low, at_high, (last, first), earliest, latest, *figures)
        for (at, at_low, at_high), (last, first, earliest, latest), figures in zip(
            zip(*columns[:3], strict=True),
            zip(*named, strict=True),
            zip(*columns[3:], strict=True),
            strict=True,
        )
    ]


def _smallest(
    sizes: NDArray[Any], df: Floats, alpha: float, min_segment: int
) -> tuple[Floats, Floats]:
    """Return sizes detected in 4 of 5 series, in standard deviations of a value: middle and end."""
    limit = np.zeros(len(sizes))
    for n in np.unique(sizes).tolist():
        of_size = sizes == n
        for known in np.unique(df[of_size]).tolist():
            share = 0.0 if math.isinf(known) else (n - 2) / (n - 2 + known)
            log_p = -critical_evidence(n, share, min_segment, alpha)
            t = -float(special.stdtrit(n - 2 + known, math.exp(log_p) / 2))
            limit[of_size & (df == known)] = t + _POWER_80
    middle = np.sqrt(1 / (sizes // 2) + 1 / (sizes - sizes // 2))
    end = np.sqrt(1 / min_segment + 1 / (sizes - min_segment))
    return limit * middle, limit * end


def _against_repeats(
    batch: Batch, squares: Floats, freedom: NDArray[Any]
) -> list[tuple[float | None, tuple[str, ...]]]:
    """Compare the scatter of values about their levels with that of repeats."""
    comparisons: list[tuple[float | None, tuple[str, ...]]] = [(None, ())] * len(freedom)
    known = np.flatnonzero(batch.df > 0)
    df, freedom = batch.df[known], freedom[known]
    square = squares[known] / freedom / batch.given[known]
    exact = np.isinf(df)
    p = np.where(
        exact,
        special.chdtrc(freedom, square * freedom),
        special.fdtrc(freedom, np.where(exact, 1.0, df), square),
    )
    for i, ratio, alike in zip(
        known.tolist(), np.sqrt(square).tolist(), (p > _RATIO_ALPHA).tolist(), strict=True
    ):
        note = (
            f"Between steps, the values scatter {ratio:.1f} times as much as repeats do. Repeats "
            "miss part of the noise, and some steps may be false alarms."
        )
        comparisons[i] = ratio, () if alike else (note,)
    return comparisons
