"""Metrics, quantiles and intervals from sums over rows, without fetching the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.metrics._registry import FIGURES, figure
from errcomp.metrics.intervals._kinds import few_weigh, unusable
from errcomp.metrics.intervals._smooth import FEWEST_EFFECTIVE, too_wide, upper
from errcomp.metrics.intervals.dependence import Dependence
from errcomp.metrics.intervals.direct import quantile_needs, ranks_in_clusters
from errcomp.tables.sums import MOST_HISTOGRAMS, Histogram, Sum, Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables.engine.pairs import PairRows, PairTotals

    Floats = NDArray[np.float64]

#: A smaller relative variance, as a difference of sums, is rounding.
ROUNDING = 1e-13
#: Relative errors that differ by less are equal, as in `errcomp.metrics.intervals._smooth`.
_EQUAL = 1e-12


#: Terms whose product is x of each metric (see `errcomp.tables.engine`); `MEANS` says which
#: function of sums of x and y it is. The x of signed metrics do not include the offset, because
#: sums of errors lose no digits, but sums of ratios would.
MEANS = {spec.name: spec.means for spec in FIGURES.values() if spec.means}
TERMS = {name: means.sums for name, means in MEANS.items()}


def sums_for(figures: Iterable[str], *, intervals: bool) -> list[Sum]:
    """Return the sums that these metrics need, each once.

    Raises
    ------
    InputError
        A metric cannot be computed from sums over rows; the message lists those that can.
    """
    return list(dict.fromkeys(total for name in figures for total in _sums_of(name, intervals)))


def within(name: str) -> Sum:
    """Return the sum that counts pairs within the limit of a share."""
    limit: float = getattr(figure(name).function, "keywords", {})["threshold"]
    # The binary rounding of 10 % must not decide whether 10 % is within 10 %, as in `share_within`.
    return Sum(("ape",), "within", limit + 4 * np.finfo(np.float64).eps * (1 + limit))


def _sums_of(name: str, intervals: bool) -> list[Sum]:
    spec = figure(name)
    if spec.kind == "share":
        return [within(name)]
    if spec.kind == "maximum":
        return [Sum(("ape",), "max")]
    if name.endswith("_approx"):
        return []  # read off a histogram
    if name not in TERMS:
        if f"{name}_approx" in FIGURES:
            raise InputError(
                f"{name} needs all pairs in memory, but these pairs are in a query engine. Use "
                f"{name}_approx, which is within 0.5 % of {name}, or collect the rows first."
            )
        able = [key for key in FIGURES if key in TERMS or FIGURES[key].kind in ("share", "maximum")]
        able += [key for key in FIGURES if key.endswith("_approx")]
        raise InputError(
            f"{name} needs all pairs in memory, but these pairs are in a query engine. "
            f"{offer('Metrics that an engine can compute', able, wanted=name)}. Or collect the "
            "rows first."
        )
    x, weighted = TERMS[name], MEANS[name].weighted
    sums = [Sum(x)]
    if _is_log(name):  # not every pair has a logarithm
        sums.append(Sum((x[0],), "count"))
    if intervals:
        sums.append(Sum((*x, *x)))
    if weighted:
        sums.append(Sum(("m",)))
        if intervals:
            sums += [Sum((*x, "m")), Sum(("m", "m"))]
    return sums


def _is_log(name: str) -> bool:
    return name in TERMS and TERMS[name][0].startswith("log_")


class Bounds(NamedTuple):
    """Bounds of each group, NaN where they do not exist, and the reasons.

    Attributes
    ----------
    low, high : ndarray
    few : ndarray
        The effective number of pairs where it is too small, else NaN.
    wide : ndarray of bool
        Whether the upper bound would be too far above the metric.
    """

    low: Floats
    high: Floats
    few: Floats
    wide: NDArray[np.bool_]


def values(name: str, totals: Totals) -> Floats:
    """Return a metric for each group; NaN where it is not defined."""
    kind, n = figure(name).kind, totals.n.astype(np.float64)
    if kind == "share":
        return totals.sums[within(name)] / n
    if kind == "maximum":
        return totals.sums[Sum(("ape",), "max")]
    form, mean = MEANS[name], _mean(name, totals)
    return mean**form.root if form.log else np.exp(mean)


def undefined(name: str, totals: Totals) -> NDArray[np.int64]:
    """Count the pairs of each group without the logarithm that a metric needs."""
    if not _is_log(name):
        return np.zeros(len(totals), dtype=np.int64)
    return totals.n - totals.sums[Sum((TERMS[name][0],), "count")].astype(np.int64)


def _mean(name: str, totals: Totals) -> Floats:
    """Return sum x / sum y, with undefined logarithms taken into account."""
    x = totals.sums[Sum(TERMS[name])]
    if not _is_log(name):
        with np.errstate(over="ignore"):  # its value is reported as beyond all numbers
            return x / (totals.sums[Sum(("m",))] if MEANS[name].weighted else totals.n)
    # An exact prediction makes the geometric mean of APE zero; for others the mean is undefined.
    nothing = -math.inf if TERMS[name][0] == "log_ape" else math.nan
    return np.where(undefined(name, totals) > 0, nothing, x / totals.n)


class Residuals(NamedTuple):
    """Inputs of the standard error of R = sum x / sum y, for each group.

    Attributes
    ----------
    mean : ndarray
        R, with the offset of its form.
    scale : ndarray
        Scale of deviations: R itself if its logarithm is studentised, else 1.
    squares, xx, y, yy : ndarray
        Sums of squared residuals, of squared x, of y and of squared y.
    """

    mean: Floats
    scale: Floats
    squares: Floats
    xx: Floats
    y: Floats
    yy: Floats


def residuals(name: str, totals: Totals) -> Residuals:
    """Return the inputs of the standard error of a mean or smooth function of means."""
    form, x, n = MEANS[name], TERMS[name], totals.n.astype(np.float64)
    mean = _mean(name, totals)
    xx = totals.sums[Sum((*x, *x))]
    with np.errstate(all="ignore"):
        if form.weighted:
            y, xy, yy = (totals.sums[Sum(t)] for t in (("m",), (*x, "m"), ("m", "m")))
        else:
            y, xy, yy = n, mean * n, n
        squares = np.maximum(xx - 2 * mean * xy + mean * mean * yy, 0)
    scale = mean - form.offset if form.log else np.ones_like(mean)
    return Residuals(mean, scale, squares, xx, y, yy)


def log_t_bounds(name: str, totals: Totals, level: float) -> Bounds:
    """Return the log-t interval of independent pairs for each group (see `_smooth.log_t`)."""
    form, n = MEANS[name], totals.n.astype(np.float64)
    fit = residuals(name, totals)
    with np.errstate(all="ignore"):
        s = np.sqrt(fit.squares * n / (n - 1)) / fit.y / fit.scale
        effective = fit.y**2 / fit.yy
        t, high_at = upper(s, effective - 1, level, form.log, clustered=False)
        point = fit.scale**form.root if form.log else np.exp(fit.mean)
        low, high = (
            point * np.exp(form.root * end) + (form.offset if form.log else 0.0)
            for end in (-t * s, high_at)
        )
        usual = high_at
        if level != 0.95:
            usual = upper(s, effective - 1, 0.95, form.log, clustered=False)[1]
        wide = too_wide(usual, form.root)
    few = effective < FEWEST_EFFECTIVE
    good = (
        (n > 1)
        & _has_spread(name, totals, fit)
        & ~few
        & ~wide
        & np.isfinite(low)
        & np.isfinite(high)
    )
    return Bounds(
        np.where(good, low, np.nan),
        np.where(good, np.minimum(high, form.largest), np.nan),
        np.where(few, effective, np.nan),
        wide,
    )


def _has_spread(name: str, totals: Totals, fit: Residuals) -> NDArray[np.bool_]:
    """Say for each group whether it gives a standard error."""
    form = MEANS[name]
    with np.errstate(all="ignore"):
        # Equal errors have no spread but rounding.
        spread = fit.squares > ROUNDING * fit.xx
        spread &= fit.squares > (_EQUAL * fit.scale) ** 2 * fit.yy
    spread &= np.isfinite(fit.xx) & (undefined(name, totals) == 0)
    return spread & (fit.scale > 0) if form.log else spread


def no_spread(name: str, totals: Totals, i: int) -> str:
    """Say why a group gives no standard error; empty if it does."""
    form, fit, missing = MEANS[name], residuals(name, totals), undefined(name, totals)[i]
    if _has_spread(name, totals, fit)[i]:
        return ""
    if missing:
        return (
            f"no interval: {missing} prediction{'s are' if missing > 1 else ' is'} exact, which "
            "makes the geometric mean zero whatever the other errors are"
        )
    if not np.isfinite(fit.xx[i]):
        return "no interval: a sum of squares is beyond the largest float64"
    if form.log and form.offset and fit.scale[i] <= 0:
        return "no interval: the mean ratio of predicted to measured is not positive"
    if form.log and fit.scale[i] == 0:
        return "no interval: every prediction is exact"
    return "no interval: all errors are equal"


def no_bounds(name: str, totals: Totals, bounds: Bounds, i: int) -> str:
    """Say why `log_t_bounds` gives no bounds for a group."""
    n = int(totals.n[i])
    if reason := no_spread(name, totals.select(np.array([i])), 0):
        return reason
    if not np.isnan(bounds.few[i]):
        return few_weigh(n, float(bounds.few[i]))
    if bounds.wide[i]:
        return unusable(n, Dependence())
    return "no interval: the errors of too few pairs differ (log-t gives no finite bound)"


# Quantiles of APE, from histograms on a logarithmic scale.


class Errors(NamedTuple):
    """Histograms of errors, from which quantiles are read.

    Attributes
    ----------
    whole : Histogram
        Of each group.
    by_cell : list of Histogram, optional
        For each group, the histograms of its cells: pairs that share all clusters.
    cell : ndarray of int, optional
        Number of the cell of each of these histograms, in the order of the groups.
    """

    whole: Histogram
    by_cell: list[Histogram] | None = None
    cell: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        pairs: PairRows | PairTotals,
        fine: Totals,
        by: Sequence[str],
        clusters: Sequence[str],
    ) -> Errors:
        """Fetch histograms of rows with known sums by these keys.

        Parameters
        ----------
        pairs : PairRows or PairTotals
        fine : Totals
            Sums by group and cluster.
        by, clusters : sequence of str
            Keys of the groups, and keys that may carry a dependence; empty for single pairs.
        """
        keys = list(dict.fromkeys((*by, *clusters)))
        if not clusters or not pairs.has_histogram(keys):
            return cls(pairs.histogram(by))
        cells = fine.merged(keys)
        if len(cells) > MOST_HISTOGRAMS:
            return cls(pairs.histogram(by))
        by_keys = pairs.histogram(keys)
        parts = [by_keys.select(index) for index in cells.parts(by)]
        return cls(by_keys.merged(cells.numbered(by)[0]), parts, cells.numbered(clusters)[0])

    def pooled(self) -> Errors:
        """Return the errors of all groups together; a cell in several groups becomes one."""
        if self.by_cell is None or self.cell is None:
            return Errors(self.whole.pooled())
        every = Histogram(
            [bucket for part in self.by_cell for bucket in part.bucket],
            [count for part in self.by_cell for count in part.count],
            np.concatenate([part.n for part in self.by_cell]),
        )
        return Errors(self.whole.pooled(), [every.merged(self.cell)])


def quantiles(histogram: Histogram, q: float) -> Floats:
    """Return a quantile of each group, as `errcomp.metrics.ranked.approximate_ape_quantile`."""
    share, rank = np.modf(q * (histogram.n - 1))
    first = 1 + rank.astype(np.int64)
    low = Histogram.value(histogram.at(first), 0.5)
    high = Histogram.value(histogram.at(np.minimum(first + 1, histogram.n)), 0.5)
    with np.errstate(invalid="ignore"):  # ∞ - ∞
        return np.asarray(np.where(share == 0, low, low + share * (high - low)))


def quantile_bounds(histogram: Histogram, q: float, level: float) -> tuple[Floats, Floats, int]:
    """Return the bounds of each group, NaN where it is too small, and the needed pairs.

    The ranks are those of `errcomp.metrics.intervals.direct.order_statistics`; the bounds are the
    outer edges of their buckets.
    """
    needed = quantile_needs(q, level)
    sizes, which = np.unique(histogram.n, return_inverse=True)
    enough = sizes >= needed
    both = [
        _ranks(n, q, (1 - level) / 2) if able else (1, 1)
        for n, able in zip(sizes.tolist(), enough.tolist(), strict=True)
    ]
    first, last = (np.array(ranks)[which] for ranks in zip(*both, strict=True))
    fine = enough[which]
    low = np.where(fine, Histogram.value(histogram.at(first), 0.0), np.nan)
    high = np.where(fine, Histogram.value(histogram.at(last), 1.0), np.nan)
    return low, high, needed


def bounds_in_clusters(clusters: Histogram, q: float, level: float) -> tuple[float, float] | None:
    """Return the bounds of a quantile of one group from the histograms of its clusters.

    As `errcomp.metrics.intervals.direct.quantile_in_clusters`, to the outer edges of buckets.
    """
    whole = clusters.pooled()
    middle = whole.at(np.array([1 + int(q * (int(whole.n[0]) - 1))]))
    both = zip(clusters.bucket, clusters.count, strict=True)
    below = np.asarray([count[bucket <= middle].sum() for bucket, count in both], dtype=np.float64)
    ranks = ranks_in_clusters(below, clusters.n.astype(np.float64), q, level)
    if ranks is None:
        return None
    low = Histogram.value(whole.at(np.array([ranks[0]])), 0.0)
    high = Histogram.value(whole.at(np.array([ranks[1]])), 1.0)
    return float(low[0]), float(high[0])


def _ranks(n: int, q: float, tail: float) -> tuple[int, int]:
    """Return the largest rank below and the smallest above with at most this probability beyond."""
    from scipy import special  # scipy.stats takes longer to import than the sums take

    first = _binomial_quantile(tail, n, q)
    beyond = int(special.bdtr(first, n, q) <= tail)
    return first + beyond, _binomial_quantile(1 - tail, n, q) + 1


def _binomial_quantile(p: float, n: int, q: float) -> int:
    """Return the smallest number of n draws of probability q that is not exceeded with p."""
    from scipy import special

    upper = math.ceil(special.bdtrik(p, n, q))
    return upper - 1 if upper > 0 and special.bdtr(upper - 1, n, q) >= p else upper
