"""What is said of every series: its steps in the names of versions, its noise, what it can show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife.steps.batch import Batch, Cuts, Levels, by_length, levels_of, variance
from errcomp.halflife.steps.null import critical_evidence, p_values
from errcomp.halflife.steps.results import Step, Steps
from errcomp.halflife.steps.scan import evidence, locate, winsorised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["steps_of", "too_short"]


# Levels, sizes and places of the steps of many series, once it is known where they about are.
#
# What is alike in length is worked on together: stretches between two cuts, of whatever series.

# Quantiles of many mixtures of Student t at once.


# Steps from the first guess; exact steps before halving takes over, which leaves a millionth of the
# bracket.
_FIRST_STEPS, _STEPS, _HALVINGS = 2, 12, 20
# No other step is needed after one so small, in standard deviations.
_SMALL = 5e-3

# Only slopes take more degrees of freedom for these.
_LIKE_NORMAL = 1e6


class Mixtures(NamedTuple):
    """Components one mixture after the other.

    Attributes
    ----------
    size, error, chance : ndarray, shape (c,)
        Centre, scale and probability of each component.
    first : ndarray of int, shape (k,)
        First component of each mixture; there is at least one.
    freedom : ndarray, shape (k,)
        Degrees of freedom of each mixture, above 0; inf for normal components.
    """

    size: Floats
    error: Floats
    chance: Floats
    first: NDArray[Any]
    freedom: Floats

    @classmethod
    def of(
        cls, parts: Sequence[tuple[NDArray[Any], Floats, Floats, Floats]], freedom: Floats
    ) -> Mixtures:
        """Put components in order, each with the mixture that it belongs to; they add to 1."""
        empty = (np.zeros(0, dtype=int), np.zeros(0), np.zeros(0), np.zeros(0))
        mixture, size, error, chance = (
            np.concatenate(column) for column in zip(empty, *parts, strict=True)
        )
        order = np.argsort(mixture, kind="stable")
        first = np.searchsorted(mixture[order], np.arange(len(freedom)))
        chance = chance[order] / np.bincount(mixture, chance, len(freedom))[mixture[order]]
        return cls(size[order], np.maximum(error[order], _TINY), chance, first, freedom)

    @property
    def mixture(self) -> NDArray[Any]:
        """The mixture of each component."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.size)))

    def take(self, kept: NDArray[Any]) -> Mixtures:
        """Return some of the mixtures, by a mask."""
        count = np.diff(self.first, append=len(self.size))[kept]
        which = kept[self.mixture]
        first = np.cumsum(count) - count
        return Mixtures(
            self.size[which], self.error[which], self.chance[which], first, self.freedom[kept]
        )

    def sums(self, values: Floats) -> Floats:
        """Add what components have, weighted by their probability."""
        return np.asarray(np.add.reduceat(self.chance * values, self.first))


def interval(mixtures: Mixtures, level: float) -> tuple[Floats, Floats]:
    """Return the central interval of each mixture, to a millionth of its width or better."""
    share = (1 - level) / 2
    mirrored = mixtures._replace(size=-mixtures.size)
    return _quantile(mixtures, share), -_quantile(mirrored, share)


def _quantile(mixtures: Mixtures, share: float) -> Floats:
    """Return a lower quantile: between those of the components, by Halley's steps."""
    freedom, place = np.unique(mixtures.freedom, return_inverse=True)
    t = special.stdtrit(freedom, share)[place]
    ends = mixtures.size + t[mixtures.mixture] * mixtures.error
    low = np.minimum.reduceat(ends, mixtures.first)
    high = np.maximum.reduceat(ends, mixtures.first)
    found = (low + high) / 2
    wide = high > low
    if wide.any():
        some = mixtures.take(wide)
        found[wide] = _bracketed(some, share, low[wide], high[wide], t[wide])
    return np.asarray(found)


def _bracketed(mixtures: Mixtures, share: float, low: Floats, high: Floats, t: Floats) -> Floats:
    found = np.zeros(len(low))
    places = np.arange(len(low))
    x = _first(mixtures, share, low, high, t)
    # The density hardly bends over so little: what is left goes with the third power.
    small = _SMALL * np.minimum.reduceat(mixtures.error, mixtures.first)
    for turn in range(_STEPS + _HALVINGS):
        below, step = _step(mixtures, share, x, special.stdtr)
        low, high = np.where(below, x, low), np.where(below, high, x)
        x = x + step
        inside = (low <= x) & (x <= high)
        last = inside & (np.abs(step) < small)
        x = np.where(last | (inside & (turn < _STEPS)), x, (low + high) / 2)
        found[places] = x
        if last.all():
            break
        mixtures, places, small = mixtures.take(~last), places[~last], small[~last]
        low, high, x = low[~last], high[~last], x[~last]
    return found


def _first(mixtures: Mixtures, share: float, low: Floats, high: Floats, t: Floats) -> Floats:
    """Guess a quantile: from one t of the same mean and variance, on a near distribution."""
    mean = mixtures.sums(mixtures.size)
    square = mixtures.sums(mixtures.error**2 + (mixtures.size - mean[mixtures.mixture]) ** 2)
    x = np.clip(mean + t * np.sqrt(square), low, high)
    for _ in range(_FIRST_STEPS):
        _, step = _step(mixtures, share, x, _near_stdtr)
        x = np.where(np.isfinite(step), np.clip(x + step, low, high), x)
    return np.asarray(x)


def _step(
    mixtures: Mixtures, share: float, x: Floats, stdtr: Callable[[Floats, Floats], Floats]
) -> tuple[NDArray[Any], Floats]:
    """Return whether x is below the quantile, and Halley's step towards it."""
    each = mixtures.mixture
    freedom = mixtures.freedom[each]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        t = (x[each] - mixtures.size) / mixtures.error
        excess = mixtures.sums(stdtr(freedom, t)) - share
        like = np.minimum(mixtures.freedom, _LIKE_NORMAL)
        peak = special.gammaln((like + 1) / 2) - special.gammaln(like / 2)
        peak = np.exp(peak) / np.sqrt(math.pi * like)
        like = like[each]
        square = t * t
        slope = np.exp(-(like + 1) / 2 * np.log1p(square / like)) / mixtures.error
        bend = -slope * (like + 1) * t / ((like + square) * mixtures.error)
        slope, bend = peak * mixtures.sums(slope), peak * mixtures.sums(bend)
        step = -2 * excess * slope / (2 * slope**2 - excess * bend)
    return excess < 0, step


def _near_stdtr(freedom: Floats, t: Floats) -> Floats:
    """Distribution of Student t after Wallace (1959): a tenth of the time for three digits."""
    like = np.minimum(freedom, _LIKE_NORMAL)
    z = np.sqrt(like * np.log1p(t * t / like)) * (8 * like + 1) / (8 * like + 3)
    return np.asarray(special.ndtr(np.copysign(z, t)))


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


# Find the steps of many series at once: the test first, all parts of a length together.


Ints = NDArray[Any]


class _Part(NamedTuple):
    """Parts of one length: of which series, and from where."""

    series: Ints
    start: Ints


def search(batch: Batch, alpha: float, min_segment: int) -> tuple[Floats, Cuts]:
    """Cut series where a step stands out, then their parts, until nothing does.

    A part is tested at the share of alpha that its length has: less than alpha on the whole.

    Returns
    -------
    ndarray, shape (s,)
        The p-value of each whole series.
    Cuts
        Their p-values are for the whole series.
    """
    sizes = batch.sizes
    p = np.ones(len(sizes))
    waiting = {
        length: [_Part(series, np.zeros(len(series), dtype=int))]
        for length, series in by_length(sizes)
    }
    cuts: list[Cuts] = []
    # Parts are shorter than what they are part of: those of a length are complete when it is their
    # turn.
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
                    waiting.setdefault(shorter, []).append(_Part(series[hit][which], begin[which]))
    return p, Cuts.joined(cuts)


class _Tested(NamedTuple):
    """A p-value of each part, whether an interval stands out, and the values tested."""

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


Floats = NDArray[Any]
_POWER_80 = 0.8416
# Noise of the residuals against that of repeats: said where chance gives as much in 1 of 100.
_RATIO_ALPHA = 0.01


def too_short(n: int, alpha: float, min_segment: int) -> Steps:
    """Refuse a series of fewer than two segments."""
    refused = (
        f"{n} value{'' if n == 1 else 's'}: two levels of {min_segment} need "
        f"{2 * min_segment} at least"
    )
    return Steps(n, (), None, alpha, None, 0.0, None, None, None, n, refused)


def steps_of(
    batch: Batch, alpha: float, min_segment: int, names: Sequence[str], version: NDArray[Any]
) -> list[Steps]:
    """Find the steps of each series, of two segments at least.

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


def _steps(found: Fitted, batch: Batch, names: Sequence[str], version: NDArray[Any]) -> list[Step]:
    start = batch.starts[found.series]
    named = [
        [names[i] for i in version[start + place].tolist()]
        for place in (found.at - 1, found.at, found.low, found.high)
    ]
    columns = [column.tolist() for column in found[1:]]
    return [
        Step(
            at=at,
            at_low=at_low,
            at_high=at_high,
            versions=(last, first),
            earliest=earliest,
            latest=latest,
            size=size,
            size_low=size_low,
            size_high=size_high,
            before=before,
            after=after,
            p=p,
        )
        for (
            (at, at_low, at_high, size, size_low, size_high, before, after, p),
            (last, first, earliest, latest),
        ) in zip(zip(*columns, strict=True), zip(*named, strict=True), strict=True)
    ]


def _smallest(
    sizes: NDArray[Any], df: Floats, alpha: float, min_segment: int
) -> tuple[Floats, Floats]:
    """Sizes found in 4 of 5 series, in standard deviations of one value: middle and end."""
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
    """Do values scatter about their levels as repeats do? Where not, repeats miss a part."""
    found: list[tuple[float | None, tuple[str, ...]]] = [(None, ())] * len(freedom)
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
            f"Values scatter {ratio:.1f} times as much about their levels as repeats do: repeats "
            "miss a part of the noise, and some steps may be none."
        )
        found[i] = ratio, () if alike else (note,)
    return found
