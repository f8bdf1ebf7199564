"""The interval of each kind of figure, with the words for it or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._numeric import Checked, relative_error
from errcomp.metrics._registry import Figure
from errcomp.metrics.intervals import _counts, _smooth
from errcomp.metrics.intervals._coverage import COVERAGE, IN_CLUSTERS, WILSON, Sample, is_offered
from errcomp.metrics.intervals._features import SMOOTH, NoSpreadError, smooth
from errcomp.metrics.intervals._resample import Nesting, add_up, deviations

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BOOTSTRAPS",
    "FEWEST_PAIRS",
    "SHARES",
    "Interval",
    "Request",
    "interval",
    "maximum",
    "not_offered",
    "of_means",
    "refused",
    "sample_of",
    "share_in_clusters",
    "too_few",
]

BOOTSTRAPS = {
    "bootstrap-t": _smooth.bootstrap_t,
    "percentile": _smooth.percentile,
    "bca": _smooth.bca,
}
SHARES = {"wilson": _counts.wilson, "clopper-pearson": _counts.clopper_pearson}

#: Below this number of pairs the default is log-t alone: resamples of so few pairs often have next
#: to no spread, which puts the upper bound of a bootstrap-t at many times the figure. Sums of
#: clusters do so less, and log-t alone covers too little there (docs/intervals.md).
_BOOTSTRAP_FROM = 10
#: From here on, pairs or clusters, the default is log-t alone too: it is nominal there under every
#: log-normal law of docs/intervals.md, and resampling takes time in proportion to the pairs.
_LOG_T_FROM = 5_000

#: No method is offered for fewer.
FEWEST_PAIRS = 3
_FEWEST_CLUSTERS = 5


class Interval(NamedTuple):
    """Bounds with the words for them, or no bounds with the reason.

    Attributes
    ----------
    method : str
        How they were made, or why there are none.
    low, high : float or None
    seed : int or None
        Set where randomness was used.
    coverage : tuple of float
        What was simulated of it (see `errcomp.metrics.intervals._coverage`); empty where exact.
    """

    method: str
    low: float | None = None
    high: float | None = None
    seed: int | None = None
    coverage: tuple[float, ...] = ()


class Request(NamedTuple):
    """What was asked for, checked."""

    method: str
    level: float
    resamples: int
    seed: int
    clusters: tuple[NDArray[np.int64], Nesting] | None

    @property
    def percent(self) -> str:
        """Return the level as people write it."""
        return f"{100 * self.level:.6g} %"


def sample_of(data: Checked, ask: Request) -> Sample:
    """Count what is drawn: outermost clusters, or pairs."""
    if ask.clusters is None:
        return Sample(len(data.predicted), False)
    return Sample(ask.clusters[1].outer, True)


def interval(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    """Make the interval of one figure."""
    if (refusal := refused(figure, ask.method)) is not None:
        return refusal
    if figure.name in SMOOTH:
        form = SMOOTH[figure.name]
        return of_means(
            figure.name, ask, sample_of(data, ask), lambda: smooth(form, value, data, ask.clusters)
        )
    if figure.kind == "share":
        return _of_share(figure, value, data, ask)
    if figure.kind == "quantile":
        return _of_quantile(figure, value, data, ask)
    if figure.kind == "maximum":
        return maximum(sample_of(data, ask), ask.level)
    return Interval(f"no tested interval for {figure.label}")


def refused(figure: Figure, method: str) -> Interval | None:
    """Say that a method is not for a figure of this kind, if it is not."""
    if figure.name in SMOOTH:
        what, use = "a mean", ("default", "log-t", *BOOTSTRAPS)
    elif figure.kind == "share":
        what, use = "a share", tuple(SHARES)
    elif figure.kind == "quantile":
        what, use = "a quantile", ("order-statistics",)
    else:
        return None
    if method in ("default", *use):
        return None
    named = " or ".join(filter(None, (", ".join(use[:-1]), use[-1])))
    return Interval(f"no interval: {method} is not for {what}; use {named}")


def of_means(
    name: str, ask: Request, sample: Sample, prepare: Callable[[], _smooth.Smooth]
) -> Interval:
    """Make the interval of a mean or a smooth function of means, which ``prepare`` prepares."""
    fewest = _FEWEST_CLUSTERS if sample.clustered else FEWEST_PAIRS
    if sample.units < fewest:
        return too_few(sample, fewest)
    row = IN_CLUSTERS[name] if sample.clustered else COVERAGE[ask.method][name]
    try:
        figure = prepare()
    except NoSpreadError as reason:
        return Interval(str(reason))
    if ask.method == "default" and not is_offered(row, sample):
        return not_offered(sample)
    resampled = ask.method in BOOTSTRAPS or (ask.method == "default" and _needs_resampling(sample))
    if resampled:
        bounds, words = _resampled(figure, ask)
    else:
        bounds, words = _smooth.log_t(figure, ask.level), "log-t"
    words += _in_clusters(sample)
    low, high = (figure.value(b) if math.isfinite(b) else math.inf for b in bounds)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Interval(
            f"no interval: too few {sample.word} differ ({words} gives no finite bound)"
        )
    high = min(high, SMOOTH[name].largest)
    return Interval(words, low, high, ask.seed if resampled else None, row)


def _needs_resampling(sample: Sample) -> bool:
    enough = sample.clustered or sample.units >= _BOOTSTRAP_FROM
    return enough and sample.units < _LOG_T_FROM


def _resampled(figure: _smooth.Smooth, ask: Request) -> tuple[_smooth.Bounds, str]:
    draws = deviations(
        figure.r,
        figure.y,
        figure.nesting,
        resamples=ask.resamples,
        rng=np.random.default_rng(ask.seed),
    )
    method = BOOTSTRAPS.get(ask.method, _smooth.widest)
    words = "bootstrap-t, at least log-t" if ask.method == "default" else ask.method
    return method(figure, ask.level, draws), f"{words}, {ask.resamples} resamples"


def _of_share(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    method = "wilson" if ask.method == "default" else ask.method
    n = len(data.predicted)
    if ask.clusters is None:
        bounds = SHARES[method](round(value * n), n, ask.level)
        return Interval(method, *bounds, coverage=WILSON if method == "wilson" else ())
    cluster = _outermost(ask.clusters)
    inside = np.zeros(n)
    inside[np.argsort(_ape(data))[: round(value * n)]] = 1
    return share_in_clusters(*_by_cluster(inside, cluster), method, ask.level)


def share_in_clusters(
    inside: NDArray[np.float64], size: NDArray[np.float64], method: str, level: float
) -> Interval:
    """Make the interval of a share from the pairs inside and all pairs of each cluster."""
    sample = Sample(len(size), True)
    if sample.units < _FEWEST_CLUSTERS:
        return too_few(sample, _FEWEST_CLUSTERS)
    if not is_offered(IN_CLUSTERS["share"], sample):
        return not_offered(sample)
    n_eff = _counts.effective_n(inside, size, level)
    low, high = SHARES[method](float(inside.sum() / size.sum()) * n_eff, n_eff, level)
    words = f"{method} with {n_eff:.3g} effective pairs{_in_clusters(sample)}"
    return Interval(words, low, high, coverage=IN_CLUSTERS["share"])


def _of_quantile(figure: Figure, value: float, data: Checked, ask: Request) -> Interval:
    # The median is a function of its own; other quantiles are one function with q filled in.
    q = float(getattr(figure.function, "keywords", {}).get("q", 0.5))
    errors = _ape(data)
    if ask.clusters is not None:
        cluster = _outermost(ask.clusters)
        exact = figure.name.removesuffix("_approx")
        return _of_quantile_in_clusters(exact, q, value, errors, cluster, ask)
    bounds = _counts.order_statistics(errors, q, ask.level)
    if bounds is None:
        needed = _counts.quantile_needs(q, ask.level)
        return Interval(
            f"no interval: {ask.percent} confidence needs {needed} pairs, there are {len(errors)}"
        )
    return Interval("order statistics", min(bounds[0], value), max(bounds[1], value))


def _of_quantile_in_clusters(
    name: str,
    q: float,
    value: float,
    errors: NDArray[np.float64],
    cluster: NDArray[np.int64],
    ask: Request,
) -> Interval:
    sample = Sample(int(cluster.max()) + 1, True)

    def bounds() -> tuple[float, float] | None:
        return _counts.quantile_in_clusters(errors, q, cluster, ask.level)

    return quantile_interval(name, sample, value, ask, bounds)


def quantile_interval(
    name: str,
    sample: Sample,
    value: float,
    ask: Request,
    bounds_of: Callable[[], tuple[float, float] | None],
) -> Interval:
    """Make the interval of a quantile where whole clusters are drawn, if there are enough."""
    row = IN_CLUSTERS.get(name, ())
    if sample.units < _FEWEST_CLUSTERS:
        return too_few(sample, _FEWEST_CLUSTERS)
    if not is_offered(row, sample):
        return not_offered(sample)
    bounds = bounds_of()
    if bounds is None:
        return Interval(
            f"no interval: {ask.percent} confidence needs more than {sample.units} clusters"
        )
    words = f"order statistics{_in_clusters(sample)}"
    return Interval(words, min(bounds[0], value), max(bounds[1], value), coverage=row)


def maximum(sample: Sample, level: float) -> Interval:
    """Say what there is instead of an interval of a maximum."""
    what = "clusters" if sample.clustered else "configurations"
    share = _counts.tolerance_share(sample.units, level)
    return Interval(
        f"no interval for a maximum; with {100 * level:.6g} % confidence at least "
        f"{100 * share:.1f} % of {what} like these stay below it"
    )


def _by_cluster(
    inside: NDArray[np.float64], cluster: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pairs inside, and all pairs, of each cluster."""
    count = int(cluster.max()) + 1
    return add_up(inside, cluster, count), add_up(np.ones(len(inside)), cluster, count)


def _outermost(clusters: tuple[NDArray[np.int64], Nesting]) -> NDArray[np.int64]:
    code, nesting = clusters
    return nesting.outermost()[code]


def _in_clusters(sample: Sample) -> str:
    return f", {sample.units} clusters" if sample.clustered else ""


def too_few(sample: Sample, fewest: int) -> Interval:
    """Say that there are too few for any interval."""
    word = sample.word if sample.units > 1 else sample.word.removesuffix("s")
    return Interval(f"no interval from {sample.units} {word}: at least {fewest} are needed")


def not_offered(sample: Sample) -> Interval:
    """Say that no interval covers well enough with so few."""
    return Interval(
        f"no interval: none that was tested covers in even 90 % of samples of {sample.units} "
        f"{sample.word}"
    )


def _ape(data: Checked) -> NDArray[np.float64]:
    return np.abs(relative_error(data))
