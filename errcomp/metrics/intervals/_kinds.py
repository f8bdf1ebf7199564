"""The interval of each kind of metric, with its method or the reason why it does not exist."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._registry import Figure, NoSpreadError
from errcomp.metrics.intervals import _smooth, direct
from errcomp.metrics.intervals._coverage import COVERAGE, IN_CLUSTERS, WILSON, Sample, is_offered
from errcomp.metrics.intervals._smooth import SMOOTH, add_up, deviations, smooth
from errcomp.metrics.intervals.dependence import Dependence
from errcomp.metrics.intervals.direct import FEWEST_OF_ALL, correlation_bounds
from errcomp.metrics.pointwise import Checked, relative_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BOOTSTRAPS = {
    "bootstrap-t": _smooth.bootstrap_t,
    "percentile": _smooth.percentile,
    "bca": _smooth.bca,
}
SHARES = {"wilson": direct.wilson, "clopper-pearson": direct.clopper_pearson}

#: Fewest different pairs for any method.
FEWEST_PAIRS = 4
#: Fewest different pairs for the interval of a share: with fewer, Wilson's covers less than 90 %.
FEWEST_OF_SHARE = 5


class Interval(NamedTuple):
    """Bounds with their method, or no bounds with the reason.

    Attributes
    ----------
    method : str
        How they were computed, or why they do not exist.
    low, high : float or None
    seed : int or None
        Set if random numbers were used.
    coverage : tuple of float
        Its simulated coverage (see `errcomp.metrics.intervals._coverage`); empty if exact.
    """

    method: str
    low: float | None = None
    high: float | None = None
    seed: int | None = None
    coverage: tuple[float, ...] = ()


class Request(NamedTuple):
    """The checked options of an interval, and its independent units."""

    method: str
    level: float
    resamples: int
    seed: int
    drawn: Dependence = Dependence()

    @property
    def percent(self) -> str:
        """Return the level in per cent."""
        return f"{100 * self.level:.6g} %"


def sample_of(n: int, drawn: Dependence) -> Sample:
    """Count the independent units: clusters of the key with the fewest, or different pairs."""
    return Sample(drawn.units or n, bool(drawn.names))


def interval(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    """Compute the interval of one metric."""
    if (refusal := refused(figure, ask)) is not None:
        return refusal
    n = len(data.predicted)
    if figure.name in SMOOTH:
        form = SMOOTH[figure.name]
        return of_means(figure.name, ask, n, lambda: smooth(form, value, data, ask.drawn))
    if figure.kind == "share":
        return _of_share(figure, value, data, ask)
    if figure.kind == "quantile":
        return _of_quantile(figure, value, data, ask)
    if figure.kind == "maximum":
        return maximum(sample_of(n, ask.drawn), ask.level)
    return _of_correlation(figure, value, data, ask)


def refused(figure: Figure, ask: Request) -> Interval | None:
    """Say that a method is not for a metric of this kind, or that no interval is valid."""
    if figure.name in SMOOTH:
        kind, use = "a mean", ("default", "log-t", *BOOTSTRAPS)
    elif figure.kind == "share":
        kind, use = "a share", tuple(SHARES)
    elif figure.kind == "quantile":
        kind, use = "a quantile", ("order-statistics",)
    elif figure.name in FEWEST_OF_ALL:
        kind, use = "a correlation", ("default",)
    elif figure.kind == "maximum" or ask.drawn.reason:
        return Interval(ask.drawn.reason) if ask.drawn.reason else None
    else:
        return Interval(f"no tested interval for {figure.label}")
    if ask.method not in ("default", *use):
        named = " or ".join(filter(None, (", ".join(use[:-1]), use[-1])))
        return Interval(f"no interval: method {ask.method} does not apply to {kind}; use {named}")
    return Interval(ask.drawn.reason) if ask.drawn.reason else None


def of_means(name: str, ask: Request, n: int, prepare: Callable[[], _smooth.Smooth]) -> Interval:
    """Compute the interval of a mean or a smooth function of means, prepared by ``prepare``."""
    sample = sample_of(n, ask.drawn)
    if sample.units < FEWEST_PAIRS and not sample.clustered:
        return too_few(sample, FEWEST_PAIRS)
    method = "log-t" if ask.method == "default" else ask.method
    row = IN_CLUSTERS[name] if sample.clustered else COVERAGE[method][name]
    if ask.method == "default" and not is_offered(name, row, sample):
        return not_offered(sample)
    try:
        figure = prepare()
    except NoSpreadError as reason:
        return Interval(str(reason))
    if nothing := undecided(figure, n, ask.drawn):
        return Interval(nothing)
    if method not in BOOTSTRAPS:
        bounds, words = _smooth.log_t(figure, ask.level), method
    elif len(figure.r) == 0:
        return Interval(
            f"no interval: {method} can resample the groups of one key only, not of two crossed "
            f"keys ({ask.drawn.words})"
        )
    else:
        bounds, words = _resampled(figure, ask), f"{method}, {ask.resamples} resamples"
    words += f", {ask.drawn.words}" if ask.drawn.words else ""
    low, high = (figure.value(b) if math.isfinite(b) else math.inf for b in bounds)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Interval(
            f"no interval: the errors of too few {sample.word} differ ({words} gives no finite "
            "bound)"
        )
    # At a fixed level, so that intervals for several claims together exist if this one does.
    too_wide = _smooth.too_wide(np.asarray(_smooth.log_t(figure, 0.95)[1]), figure.root)
    if method not in BOOTSTRAPS and too_wide:
        return Interval(unusable(sample.units, ask.drawn))
    high = min(high, SMOOTH[name].largest)
    return Interval(words, low, high, ask.seed if method in BOOTSTRAPS else None, row)


def undecided(figure: _smooth.Smooth, n: int, drawn: Dependence) -> str:
    """Say if one or two measurements, or one cluster, dominate; else nothing."""
    if figure.effective < _smooth.FEWEST_EFFECTIVE:
        return few_weigh(n, figure.effective)
    freedom = min(spread.freedom for spread in figure.spreads)
    if freedom < _smooth.FEWEST_FREEDOM:
        units = drawn.words or f"{n:,} pairs"
        return (
            f"no interval: one of {units} determines the metric almost alone; measure more on the "
            "others"
        )
    return ""


def few_weigh(n: int, effective: float) -> str:
    """Say that a few large measurements dominate a weighted metric."""
    return (
        f"no interval: the largest measurements dominate; weighted by size, {n:,} pairs count as "
        f"only {effective:.2g} equal pairs, and at least {_smooth.FEWEST_EFFECTIVE:.0f} are needed"
    )


def unusable(pairs: int, drawn: Dependence) -> str:
    """Say that bounds would be too wide to be useful."""
    return (
        f"no interval: {drawn.words or f'{pairs:,} pairs'} differ so much that a bound "
        f"of the interval would be more than {_smooth.USABLE:.0f} times the metric"
    )


def _resampled(figure: _smooth.Smooth, ask: Request) -> _smooth.Bounds:
    draws = deviations(
        figure.r, figure.y, resamples=ask.resamples, rng=np.random.default_rng(ask.seed)
    )
    return BOOTSTRAPS[ask.method](figure, ask.level, draws)


def _of_share(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    n = len(data.predicted)
    inside = np.zeros(n)
    inside[np.argsort(_ape(data))[: round(value * n)]] = 1
    by_key = [_by_cluster(inside, code) for code in ask.drawn.drawn]
    return share_interval(round(value * n), n, by_key, ask)


def share_interval(
    inside: float, n: int, by_key: Sequence[tuple[Floats, Floats]], ask: Request
) -> Interval:
    """Compute the interval of a share.

    Parameters
    ----------
    inside, n : float, int
        Pairs inside, and all pairs.
    by_key : sequence of (ndarray, ndarray)
        For each cluster key, the pairs inside and all pairs of each cluster.
    ask : Request
    """
    method = "wilson" if ask.method == "default" else ask.method
    sample = sample_of(n, ask.drawn)
    if not by_key and method != "wilson":
        return Interval(method, *SHARES[method](inside, n, ask.level))
    if sample.units < FEWEST_OF_SHARE and not sample.clustered:
        return too_few(sample, FEWEST_OF_SHARE)
    if not by_key:
        return Interval(method, *SHARES[method](inside, n, ask.level), coverage=WILSON)
    row = IN_CLUSTERS["share"] if sample.clustered else WILSON
    if not is_offered("share", row, sample):
        return not_offered(sample)
    n_eff = min(direct.effective_n(*sums, ask.level) for sums in by_key)
    low, high = SHARES[method](inside / n * n_eff, n_eff, ask.level)
    words = f"{method} with {n_eff:.3g} effective pairs, {ask.drawn.words}"
    return Interval(words, low, high, coverage=row)


def _of_quantile(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    # The median is a function of its own; other quantiles are one function with q filled in.
    q = float(getattr(figure.function, "keywords", {}).get("q", 0.5))
    errors = _ape(data)
    if ask.drawn.drawn:

        def bounds() -> Iterator[tuple[float, float] | None]:
            for code in ask.drawn.drawn:
                yield direct.quantile_in_clusters(errors, q, code, ask.level)

        exact = figure.name.removesuffix("_approx")
        return quantile_interval(exact, value, len(errors), ask, bounds)
    limits = direct.order_statistics(errors, q, ask.level)
    if limits is None:
        needed = direct.quantile_needs(q, ask.level)
        return Interval(
            f"no interval: {ask.percent} confidence needs {needed} pairs, got {len(errors)}"
        )
    return Interval("order statistics", min(limits[0], value), max(limits[1], value))


def quantile_interval(
    name: str,
    value: float,
    n: int,
    ask: Request,
    bounds_of: Callable[[], Iterable[tuple[float, float] | None]],
) -> Interval:
    """Compute the interval of a quantile from whole clusters: the widest over the keys."""
    sample, row = sample_of(n, ask.drawn), IN_CLUSTERS.get(name, ())
    if sample.units < FEWEST_PAIRS and not sample.clustered:
        return too_few(sample, FEWEST_PAIRS)
    if sample.clustered and not is_offered(name, row, sample):
        return not_offered(sample)
    bounds = list(bounds_of())
    known = [ends for ends in bounds if ends is not None]
    if len(known) < len(bounds):
        return Interval(
            f"no interval: {ask.percent} confidence needs more than {sample.units} {sample.word}"
        )
    low, high = min(ends[0] for ends in known), max(ends[1] for ends in known)
    words = f"order statistics, {ask.drawn.words}"
    return Interval(words, min(low, value), max(high, value), coverage=row)


def maximum(sample: Sample, level: float) -> Interval:
    """Give the tolerance statement that replaces the interval of a maximum."""
    noun = "clusters" if sample.clustered else "configurations"
    share = direct.tolerance_share(sample.units, level)
    return Interval(
        f"no interval for a maximum; with {100 * level:.6g} % confidence at least "
        f"{direct.lower_share(share)} of {noun} like these are below this maximum"
    )


def _of_correlation(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    """Compute the interval of a correlation; of two crossing keys, the wider interval."""
    lows, highs = [value], [value]
    for cluster in ask.drawn.drawn or (None,):
        bounds = correlation_bounds(figure.name, data.predicted, data.measured, cluster, ask.level)
        if isinstance(bounds, str):
            return Interval(bounds)
        lows.append(bounds[0])
        highs.append(bounds[1])
    words = ", ".join(filter(None, ("jackknife of z", ask.drawn.words)))
    return Interval(words, min(lows), max(highs))


def _by_cluster(inside: Floats, cluster: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the pairs inside, and all pairs, of each cluster."""
    count = int(cluster.max()) + 1
    return add_up(inside, cluster, count), add_up(np.ones(len(inside)), cluster, count)


def too_few(sample: Sample, fewest: int) -> Interval:
    """Say that there are too few units for any interval."""
    word = sample.word if sample.units > 1 else sample.word.removesuffix("s")
    return Interval(f"no interval from {sample.units} {word}: at least {fewest} are needed")


def not_offered(sample: Sample) -> Interval:
    """Say that no interval covers well enough with this few units."""
    return Interval(
        "no interval: with every tested method, the interval contains the true value in less than "
        f"90 % of samples of {sample.units} {sample.word}"
    )


def _ape(data: Checked) -> Floats:
    return np.abs(relative_error(data))
