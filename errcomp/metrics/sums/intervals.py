"""Metrics of all groups as columns, with intervals, from sums and histograms of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._registry import NoSpreadError, figure
from errcomp.metrics.intervals._coverage import COVERAGE, WILSON, Sample, is_offered, small_sample
from errcomp.metrics.intervals._kinds import (
    BOOTSTRAPS,
    FEWEST_OF_SHARE,
    FEWEST_PAIRS,
    SHARES,
    Interval,
    Request,
    maximum,
    not_offered,
    of_means,
    quantile_interval,
    refused,
    sample_of,
    share_interval,
    too_few,
)
from errcomp.metrics.intervals._smooth import Cells, Single, Smooth, add_up, of_units
from errcomp.metrics.intervals.dependence import Dependence, dependence
from errcomp.metrics.sums import (
    MEANS,
    TERMS,
    Errors,
    bounds_in_clusters,
    log_t_bounds,
    no_bounds,
    no_spread,
    quantile_bounds,
    quantiles,
    residuals,
    undefined,
    values,
    within,
)
from errcomp.results import Caveat, Estimate, why_none
from errcomp.tables.sums import Histogram, Sum, Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Intervals that need only sums over pairs.
METHODS = ("default", "log-t", *SHARES, "order-statistics")
_LARGEST = "the largest number a float64 can hold (1.8e308)"


class _Note(NamedTuple):
    """Method, seed and caveats of an interval."""

    method: str
    caveats: tuple[Caveat, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """One metric of all groups.

    Attributes
    ----------
    name : str
    value, low, high : ndarray, shape (groups,)
        NaN where it does not exist.
    level : float or None
    say : callable
        Returns the method of the interval of one group, only when it is needed.
    """

    name: str
    value: Floats
    low: Floats
    high: Floats
    level: float | None
    say: Callable[[int], _Note]

    def reasons(self) -> Iterator[tuple[int, str]]:
        """Yield the groups without a value or a valid interval, and the reason."""
        # Without intervals, only a missing value needs a reason.
        none = np.isnan(self.value if self.level is None else self.low)
        for i in np.flatnonzero(none).tolist():
            method = self.say(i).method
            if why_none(float(self.value[i]), None, method):
                yield i, method

    def bare(self, unit: str | None) -> Iterator[Estimate]:
        """Yield the values and bounds of all groups."""
        spec = figure(self.name)
        unit = unit or "measured" if spec.unit == "measured" else spec.unit
        numbers = (column.tolist() for column in (self.value, self.low, self.high))
        for value, low, high in zip(*numbers, strict=True):
            if low == low:  # not NaN
                yield Estimate(self.name, value, low, high, unit=unit)
            else:
                yield Estimate(self.name, value, unit=unit)

    def estimate(self, i: int, n: int, unit: str | None) -> Estimate:
        """Return the metric of one group of n pairs."""
        spec, note = figure(self.name), self.say(i)
        has = not np.isnan(self.low[i])
        return Estimate(
            self.name,
            float(self.value[i]),
            low=float(self.low[i]) if has else None,
            high=float(self.high[i]) if has else None,
            level=self.level if has else None,
            method=note.method,
            n=n,
            unit=unit or "measured" if spec.unit == "measured" else spec.unit,
            definition=spec.definition,
            caveats=note.caveats if has else (),
            seed=note.seed,
        )


def columns_by(
    by: Sequence[str],
    fine: Totals,
    *,
    figures: Sequence[str],
    clusters: tuple[str, ...],
    ask: Request | None,
    errors: Errors | None,
    given: bool,
) -> tuple[Totals, list[FigureColumn]]:
    """Return the groups by these keys, and their metrics.

    Parameters
    ----------
    by : sequence of str
    fine : Totals
        Sums by these keys and all clusters.
    figures, clusters : sequence of str
        Metrics, and keys that may carry a dependence.
    ask : Request, optional
        Options of the intervals; None for no intervals.
    errors : Errors, optional
        Histograms, from which quantiles are read.
    given : bool
        Whether the user named the clusters.
    """
    totals = fine.merged(by) if clusters or not by else fine
    parts: list[Totals] = []
    if clusters:
        # A cell in several groups becomes one cell when groups are pooled.
        cells = fine.merged(list(dict.fromkeys((*by, *clusters))))
        parts = [cells.select(index) for index in cells.parts(by)]
    drawn = [
        dependence({key: part.keys[key] for key in clusters}, given=given, counts=part.n)
        for part in parts
    ]
    histogram, by_cell = (None, None) if errors is None else (errors.whole, errors.by_cell)
    columns = [
        column(name, totals, ask, parts=parts, drawn=drawn, histogram=histogram, by_cell=by_cell)
        for name in figures
    ]
    return totals, columns


def column(
    name: str,
    totals: Totals,
    ask: Request | None,
    *,
    parts: Sequence[Totals] = (),
    drawn: Sequence[Dependence] = (),
    histogram: Histogram | None = None,
    by_cell: Sequence[Histogram] | None = None,
) -> FigureColumn:
    """Compute one metric of all groups.

    Parameters
    ----------
    name : str
    totals : Totals
        Sums of each group.
    ask : Request, optional
        Options of the interval; None for no interval.
    parts : sequence of Totals
        Sums over the cells of each group that share all clusters, if there are cluster keys.
    drawn : sequence of Dependence
        The independent units of each group, by the cells of ``parts``.
    histogram : Histogram, optional
        Of the errors of each group, for quantiles.
    by_cell : sequence of Histogram, optional
        For each group, the histograms of its cells.
    """
    if ask is not None and (refusal := refused(figure(name), ask)) is not None:
        none, note = np.full(len(totals), np.nan), _Note(refusal.method)
        alone = column(name, totals, None, histogram=histogram)
        return FigureColumn(name, alone.value, none, none, ask.level, lambda i: note)
    value, missing = _values(name, totals, histogram), undefined(name, totals)
    say: Callable[[int], _Note]
    if ask is None:
        low, high, say = _no_values(len(totals)), _no_values(len(totals)), _not_asked
    else:
        if histogram is not None and figure(name).kind == "quantile":
            low, high, say = _from_histogram(name, histogram, ask)
        else:
            low, high, say = _by_pairs(name, totals, ask)
        if any(draw.names or draw.reason for draw in drawn):
            by_cluster = _by_clusters(name, value, parts, drawn, by_cell, ask)
            low, high, say = _replaced((low, high, say), by_cluster)

    def words(i: int) -> _Note:
        if value[i] == value[i]:  # not NaN
            return say(i)
        if missing[i]:
            return _Note(
                f"not defined here: {missing[i]} prediction{_are(missing[i])} not positive, and "
                f"{figure(name).label} needs logarithms"
            )
        return _Note(
            f"not defined here: an error, or a sum of errors, is beyond {_LARGEST}. Check that "
            "predicted and measured have the same unit."
        )

    none = np.isnan(value)
    low, high = np.where(none, np.nan, low), np.where(none, np.nan, high)
    return FigureColumn(name, value, low, high, None if ask is None else ask.level, words)


def _values(name: str, totals: Totals, histogram: Histogram | None) -> Floats:
    if figure(name).kind != "quantile":
        numbers = values(name, totals)
    else:
        assert histogram is not None  # fetched for every quantile
        numbers = quantiles(histogram, _quantile_of(name))
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _are(n: int) -> str:
    return "s are" if n > 1 else " is"


def _no_values(groups: int) -> Floats:
    return np.full(groups, np.nan)


def _not_asked(_: int) -> _Note:
    return _Note("no interval was requested")


Bounds = tuple["Floats", "Floats", Callable[[int], _Note]]


class _Ends(NamedTuple):
    """The interval of one group."""

    low: float | None
    high: float | None
    note: _Note


def _by_pairs(name: str, totals: Totals, ask: Request) -> Bounds:
    """Compute intervals from independent pairs."""
    label, kind = figure(name).label, figure(name).kind
    if kind == "share":
        return _shares_by_pairs(name, totals, ask)
    if kind == "maximum":
        none = _no_values(len(totals))
        return (
            none,
            none,
            lambda i: _Note(maximum(Sample(int(totals.n[i]), False), ask.level).method),
        )
    if ask.method in BOOTSTRAPS:
        none = _no_values(len(totals))
        drawing = "no interval: resampling needs the pairs in memory, not in an engine"
        return none, none, lambda i: _Note(drawing)
    row = COVERAGE["log-t"][name]
    bounds = log_t_bounds(name, totals, ask.level)
    low, high = bounds.low, bounds.high
    sizes = {
        n: n >= FEWEST_PAIRS and _is_offered(name, row, n, ask) for n in set(totals.n.tolist())
    }
    offered = np.fromiter(map(sizes.__getitem__, totals.n.tolist()), bool, len(totals))
    low, high = np.where(offered, low, np.nan), np.where(offered, high, np.nan)

    @cache
    def bounded(n: int) -> _Note:
        return _Note("log-t", small_sample(label, row, Sample(n, False)))

    @cache
    def too_small(n: int) -> _Note | None:
        sample = Sample(n, False)
        if sample.units < FEWEST_PAIRS:
            return _Note(too_few(sample, FEWEST_PAIRS).method)
        return None if sizes[n] else _Note(not_offered(sample).method)

    def say(i: int) -> _Note:
        n = int(totals.n[i])
        if low[i] == low[i]:
            return bounded(n)
        return too_small(n) or _Note(no_bounds(name, totals, bounds, i))

    return low, high, say


def _shares_by_pairs(name: str, totals: Totals, ask: Request) -> Bounds:
    method = "wilson" if ask.method == "default" else ask.method
    counts = zip(totals.sums[within(name)].tolist(), totals.n.tolist(), strict=True)
    both = [SHARES[method](inside, n, ask.level) for inside, n in counts]
    low, high = np.asarray(both, dtype=np.float64).reshape(-1, 2).T
    tested: tuple[float, ...] = WILSON if method == "wilson" else ()
    few = totals.n < (FEWEST_OF_SHARE if tested else 0)

    def say(i: int) -> _Note:
        sample = Sample(int(totals.n[i]), False)
        if few[i]:
            return _Note(too_few(sample, FEWEST_OF_SHARE).method)
        return _Note(method, small_sample(figure(name).label, tested, sample))

    return np.where(few, np.nan, low), np.where(few, np.nan, high), say


def _is_offered(name: str, row: tuple[float, ...], n: int, ask: Request) -> bool:
    return ask.method == "log-t" or is_offered(name, row, Sample(n, False))


def _by_clusters(
    name: str,
    value: Floats,
    parts: Sequence[Totals],
    drawn: Sequence[Dependence],
    by_cell: Sequence[Histogram] | None,
    ask: Request,
) -> dict[int, _Ends]:
    """Compute the intervals of groups with clusters, or say that none is valid."""
    intervals = {}
    for i, draw in enumerate(drawn):
        if np.isnan(value[i]) or not (draw.names or draw.reason):
            continue
        asked = ask._replace(drawn=draw)
        if draw.reason:
            made = Interval(draw.reason)
        elif figure(name).kind == "quantile":
            cells = None if by_cell is None else by_cell[i]
            made = _quantile(name, float(value[i]), int(parts[i].n.sum()), cells, asked)
        else:
            made = _cluster_interval(name, float(value[i]), parts[i], asked)
        sample = sample_of(int(parts[i].n.sum()), draw)
        caveats = small_sample(figure(name).label, made.coverage, sample)
        intervals[i] = _Ends(made.low, made.high, _Note(made.method, caveats, made.seed))
    return intervals


def _cluster_interval(name: str, value: float, part: Totals, ask: Request) -> Interval:
    """Compute the interval of a metric of one group.

    Parameters
    ----------
    name : str
        The metric.
    value : float
        Of the whole group.
    part : Totals
        Sums over each cell of the group that shares all clusters.
    ask : Request
        Its ``drawn`` numbers these cells.
    """
    n, kind = int(part.n.sum()), figure(name).kind
    if kind == "maximum":
        return maximum(sample_of(n, ask.drawn), ask.level)
    if kind == "share":
        inside, size = part.sums[within(name)], part.n.astype(np.float64)
        by_key = []
        for code in ask.drawn.codes:
            count = int(code.max()) + 1
            by_key.append((add_up(inside, code, count), add_up(size, code, count)))
        return share_interval(float(inside.sum()), n, by_key, ask)
    return of_means(name, ask, n, lambda: _smooth_of(name, value, part, ask.drawn))


def _smooth_of(name: str, value: float, part: Totals, drawn: Dependence) -> Smooth:
    form, whole = MEANS[name], part.merged(())
    if reason := no_spread(name, whole, 0):
        raise NoSpreadError(reason)
    fit = residuals(name, whole)
    scale = float(fit.scale[0])
    size = part.n.astype(np.float64)
    y = part.sums[Sum(("m",))] if form.weighted else size
    squares = part.sums[Sum(("m", "m"))] if form.weighted else size
    r = (part.sums[Sum(TERMS[name])] - float(fit.mean[0]) * y) / scale
    single = Single(
        float(fit.squares[0]) / scale**2, int(whole.n[0]), float(fit.y[0] ** 2 / fit.yy[0])
    )
    return of_units(form, value, Cells(r, y, squares, single), drawn)


def _replaced(pairs: Bounds, by_cluster: Mapping[int, _Ends]) -> Bounds:
    """Replace the intervals from independent pairs for some groups."""
    low, high, say = pairs
    low, high = low.copy(), high.copy()
    for i, interval in by_cluster.items():
        low[i], high[i] = (np.nan if end is None else end for end in (interval.low, interval.high))
    return low, high, lambda i: by_cluster[i].note if i in by_cluster else say(i)


def _quantile(name: str, value: float, n: int, cells: Histogram | None, ask: Request) -> Interval:
    """Bound a quantile of one group from the histograms of its cells."""
    if cells is None:
        return Interval("no interval: there are too many clusters to keep a histogram for each")

    def bounds() -> Iterator[tuple[float, float] | None]:
        for code in ask.drawn.codes:
            yield bounds_in_clusters(cells.merged(code), _quantile_of(name), ask.level)

    return quantile_interval(name.removesuffix("_approx"), value, n, ask, bounds)


def _quantile_of(name: str) -> float:
    q: float = getattr(figure(name).function, "keywords", {})["q"]
    return q


def _from_histogram(name: str, histogram: Histogram, ask: Request) -> Bounds:
    """Take order statistics as bounds of a quantile, to the edges of buckets."""
    low, high, needed = quantile_bounds(histogram, _quantile_of(name), ask.level)

    def say(i: int) -> _Note:
        if not np.isnan(low[i]):
            return _Note("order statistics of a histogram")
        return _Note(
            f"no interval: {ask.percent} confidence needs {needed} pairs, got {histogram.n[i]}"
        )

    return low, high, say
