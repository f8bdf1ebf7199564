"""One figure of every group as columns: from sums, from sums by cluster, or from histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._registry import figure
from errcomp.metrics.intervals._coverage import (
    COVERAGE,
    WILSON,
    Sample,
    is_offered,
    small_sample,
)
from errcomp.metrics.intervals._kinds import (
    FEWEST_PAIRS,
    SHARES,
    Interval,
    Request,
    maximum,
    not_offered,
    quantile_interval,
    refused,
    too_few,
)
from errcomp.results import Caveat, Estimate
from errcomp.scale._clusters import cluster_intervals, without_cluster
from errcomp.scale._forms import within
from errcomp.scale._quantiles import Histogram, bounds_in_clusters, quantile_bounds, quantiles
from errcomp.scale._totals import Totals
from errcomp.scale._values import log_t_bounds, no_bounds, undefined, values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["FigureColumn", "column"]

_LARGEST = "the largest number a float64 can hold (1.8e308)"


class _Said(NamedTuple):
    """What an estimate says of its interval."""

    method: str
    caveats: tuple[Caveat, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """One figure of all groups.

    Attributes
    ----------
    name : str
    value, low, high : ndarray, shape (groups,)
        NaN where there is none.
    level : float or None
    say : callable
        The words for the interval of one group, which are made when they are looked at.
    """

    name: str
    value: Floats
    low: Floats
    high: Floats
    level: float | None
    say: Callable[[int], _Said]

    def estimate(self, i: int, n: int, unit: str | None) -> Estimate:
        """Return the figure of one group of n pairs."""
        spec, said = figure(self.name), self.say(i)
        has = not np.isnan(self.low[i])
        return Estimate(
            self.name,
            float(self.value[i]),
            low=float(self.low[i]) if has else None,
            high=float(self.high[i]) if has else None,
            level=self.level if has else None,
            method=said.method,
            n=n,
            unit=unit or "measured" if spec.unit == "measured" else spec.unit,
            definition=spec.definition,
            caveats=said.caveats if has else (),
            seed=said.seed,
        )


def column(
    name: str,
    totals: Totals,
    ask: Request | None,
    *,
    parts: Sequence[Totals] = (),
    clusters: Sequence[str] = (),
    histogram: Histogram | None = None,
    by_cluster: Sequence[Histogram] | None = None,
) -> FigureColumn:
    """Compute one figure of all groups.

    Parameters
    ----------
    name : str
    totals : Totals
        Sums of each group.
    ask : Request, optional
        How the interval is made; None for none.
    parts : sequence of Totals
        Sums over the clusters of each group, if whole clusters are drawn.
    clusters : sequence of str
        Keys of the clusters, outermost first.
    histogram : Histogram, optional
        Of the errors of each group, for quantiles.
    by_cluster : sequence of Histogram, optional
        For each group those of its clusters.
    """
    if ask is not None and (refusal := refused(figure(name), ask.method)) is not None:
        none, said = np.full(len(totals), np.nan), _Said(refusal.method)
        alone = column(name, totals, None, histogram=histogram)
        return FigureColumn(name, alone.value, none, none, ask.level, lambda i: said)
    value, missing = _values(name, totals, histogram), undefined(name, totals)
    lost = [without_cluster(part, clusters) for part in parts] if ask is not None else []
    value[[i for i, text in enumerate(lost) if text]] = np.nan
    say: Callable[[int], _Said]
    if ask is None:
        low, high, say = _nothing(len(totals)), _nothing(len(totals)), _not_asked
    elif histogram is not None and figure(name).kind == "quantile":
        if clusters:
            low, high, say = _in_clusters(name, value, by_cluster, ask)
        else:
            low, high, say = _from_histogram(name, histogram, ask)
    elif clusters:
        low, high, say = _by_clusters(name, value, parts, clusters, ask)
    else:
        low, high, say = _by_pairs(name, totals, ask)

    def words(i: int) -> _Said:
        if not np.isnan(value[i]):
            return say(i)
        if lost and lost[i]:
            return _Said(f"not defined here: {lost[i]}")
        if missing[i]:
            return _Said(
                f"not defined here: {missing[i]} prediction{_are(missing[i])} not positive, and "
                f"{figure(name).label} needs the logarithm"
            )
        return _Said(
            f"not defined here: an error, or a sum of errors, is beyond {_LARGEST}. Check that "
            "predicted and measured have the same unit."
        )

    none = np.isnan(value)
    low, high = np.where(none, np.nan, low), np.where(none, np.nan, high)
    return FigureColumn(name, value, low, high, None if ask is None else ask.level, words)


def _values(name: str, totals: Totals, histogram: Histogram | None) -> Floats:
    if figure(name).kind != "quantile":
        found = values(name, totals)
    else:
        assert histogram is not None  # fetched for every quantile
        found = quantiles(histogram, _quantile_of(name))
    return np.where(np.isfinite(found), found, np.nan)


def _are(n: int) -> str:
    return "s are" if n > 1 else " is"


def _nothing(groups: int) -> Floats:
    return np.full(groups, np.nan)


def _not_asked(_: int) -> _Said:
    return _Said("no interval was asked for")


Bounds = tuple["Floats", "Floats", Callable[[int], _Said]]


def _by_pairs(name: str, totals: Totals, ask: Request) -> Bounds:
    """Make intervals of pairs that are independent."""
    label, kind = figure(name).label, figure(name).kind
    if kind == "share":
        method = "wilson" if ask.method == "default" else ask.method
        counts = zip(totals.sums[within(name)].tolist(), totals.n.tolist(), strict=True)
        both = [SHARES[method](inside, n, ask.level) for inside, n in counts]
        low, high = np.asarray(both, dtype=np.float64).reshape(-1, 2).T
        tested: tuple[float, ...] = WILSON if method == "wilson" else ()
        return (
            low,
            high,
            lambda i: _Said(method, small_sample(label, tested, Sample(int(totals.n[i]), False))),
        )
    if kind == "maximum":
        none = _nothing(len(totals))
        return (
            none,
            none,
            lambda i: _Said(maximum(Sample(int(totals.n[i]), False), ask.level).method),
        )
    row = COVERAGE["log-t"][name]
    low, high, spread = log_t_bounds(name, totals, ask.level)
    sizes = {n: n >= FEWEST_PAIRS and _is_offered(row, n, ask) for n in set(totals.n.tolist())}
    offered = np.fromiter(map(sizes.__getitem__, totals.n.tolist()), bool, len(totals))
    low, high = np.where(offered, low, np.nan), np.where(offered, high, np.nan)
    missing = undefined(name, totals)

    def say(i: int) -> _Said:
        sample = Sample(int(totals.n[i]), False)
        if not np.isnan(low[i]):
            return _Said("log-t", small_sample(label, row, sample))
        if sample.units < FEWEST_PAIRS:
            return _Said(too_few(sample, FEWEST_PAIRS).method)
        if not offered[i]:
            return _Said(not_offered(sample).method)
        if missing[i]:
            return _Said(
                f"no interval: {missing[i]} prediction{_are(missing[i])} exact, which makes the "
                "geometric mean zero whatever the other errors are"
            )
        return _Said(f"no interval: {no_bounds(name, totals, spread, i)}")

    return low, high, say


def _is_offered(row: tuple[float, ...], n: int, ask: Request) -> bool:
    return ask.method == "log-t" or is_offered(row, Sample(n, False))


def _by_clusters(
    name: str, value: Floats, parts: Sequence[Totals], clusters: Sequence[str], ask: Request
) -> Bounds:
    """Make intervals that draw whole clusters."""
    found = [
        Interval("") if np.isnan(one) else cluster_intervals(name, float(one), part, clusters, ask)
        for one, part in zip(value, parts, strict=True)
    ]
    low, high = (_floats([one.low for one in found]), _floats([one.high for one in found]))

    return low, high, lambda i: _words(name, found[i], len(set(parts[i].keys[clusters[0]])))


def _words(name: str, found: Interval, clusters: int) -> _Said:
    caveats = small_sample(figure(name).label, found.coverage, Sample(clusters, True))
    return _Said(found.method, caveats, found.seed)


def _floats(ends: Sequence[float | None]) -> Floats:
    return np.asarray([np.nan if end is None else end for end in ends], dtype=np.float64)


def _quantile_of(name: str) -> float:
    q: float = getattr(figure(name).function, "keywords", {})["q"]
    return q


def _from_histogram(name: str, histogram: Histogram, ask: Request) -> Bounds:
    """Take order statistics as bounds of a quantile, as far as buckets tell."""
    low, high, needed = quantile_bounds(histogram, _quantile_of(name), ask.level)

    def say(i: int) -> _Said:
        if not np.isnan(low[i]):
            return _Said("order statistics of a histogram")
        return _Said(
            f"no interval: {ask.percent} confidence needs {needed} pairs, there are "
            f"{histogram.n[i]}"
        )

    return low, high, say


def _in_clusters(
    name: str, value: Floats, by_cluster: Sequence[Histogram] | None, ask: Request
) -> Bounds:
    """Bound a quantile of pairs of which whole clusters are drawn."""
    if by_cluster is None:
        text = "no interval: there are too many clusters for a histogram of each"
        none = _nothing(len(value))
        return none, none, lambda i: _Said(text)
    q, exact = _quantile_of(name), name.removesuffix("_approx")
    found = [
        quantile_interval(
            exact,
            Sample(len(part.n), True),
            float(one),
            ask,
            partial(bounds_in_clusters, part, q, ask.level),
        )
        for one, part in zip(value, by_cluster, strict=True)
    ]
    sizes = [len(part.n) for part in by_cluster]
    low, high = (_floats([getattr(one, end) for one in found]) for end in ("low", "high"))
    return low, high, lambda i: _words(name, found[i], sizes[i])
