"""Confidence intervals of error metrics. Coverage of each method: docs/intervals.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, NotDefinedError, offer
from errcomp.metrics._registry import figure as look_up
from errcomp.metrics.intervals._coverage import small_sample
from errcomp.metrics.intervals._kinds import BOOTSTRAPS, SHARES, Request, interval, sample_of
from errcomp.metrics.intervals.dependence import Dependence, dependence
from errcomp.metrics.intervals.direct import check_level, tolerance_n, tolerance_share
from errcomp.metrics.pointwise import Checked, checked
from errcomp.results import Dropped, Estimate
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "METHODS",
    "check_options",
    "estimate",
    "fewest_resamples",
    "tolerance_n",
    "tolerance_share",
]

#: Names of methods; ``"default"`` is the tested choice for each metric.
METHODS = ("default", "log-t", *BOOTSTRAPS, *SHARES, "order-statistics")

_OF_MEANS = ("log-t", *BOOTSTRAPS)
_OF_KIND: dict[str, tuple[str, ...]] = {
    "mean": _OF_MEANS,
    "smooth": _OF_MEANS,
    "share": tuple(SHARES),
    "quantile": ("order-statistics",),
}


def estimate(
    figure: str,
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    level: float = 0.95,
    method: str = "default",
    clusters: ArrayLike | Sequence[ArrayLike] | None = None,
    resamples: int = 9999,
    seed: int = 0,
    zeros: Zeros = "raise",
) -> Estimate:
    r"""Compute a metric with a confidence interval whose coverage was simulated.

    .. math:: P(\mathrm{low} \le \theta \le \mathrm{high}) \approx \mathrm{level}

    Definition: θ is the metric of the population from which the pairs (with ``clusters``, the
    clusters) were drawn independently.

    ``"default"`` depends on the metric:

    * means and smooth functions of means: Student's interval of the logarithm of the metric, with
      an allowance for skewness (``"log-t"``);
    * shares: Wilson's interval; quantiles: order statistics;
    * a maximum: no interval, but a tolerance statement in ``method``;
    * correlations (Pearson's, Spearman's, Kendall's tau-b) and R²: a jackknife of Fisher's z;
    * regret: none, because one choice is one value.

    With clusters the standard error is cluster-robust (two-way where two keys cross), and never
    below that of single pairs.

    Misleads where pairs are not independent: configurations of one model on one device share their
    error, so give ``clusters``. Also misleads where the pairs are all existing configurations: the
    metric then has no sampling error.

    Parameters
    ----------
    figure : str
        A key of `errcomp.metrics.FIGURES`.
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    level : float
        Nominal coverage, between 0 and 1.
    method : str
        One of ``METHODS``: ``"default"``; for means ``"log-t"``, ``"bootstrap-t"``,
        ``"percentile"``, ``"bca"``; for shares ``"wilson"``, ``"clopper-pearson"``; for quantiles
        ``"order-statistics"``. If it does not apply, ``method`` of the result says why there is no
        interval.
    clusters : array_like, shape (n,), or list of two, optional
        Labels; whole clusters are the sample instead of single pairs. Two arrays may cross; if
        they are nested, the coarser clusters count.
    resamples : int
        Of the bootstrap methods.
    seed : int
        Same seed, same bytes.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive; excluded ones are counted in
        ``dropped``.

    Returns
    -------
    Estimate
        ``low`` and ``high`` contain the value, or are None and ``method`` says why. ``seed`` is
        set if random numbers were used. ``caveats`` has ``"few-configurations"`` or
        ``"few-clusters"`` if the method did not reach its nominal coverage in simulations of
        samples of this size.

    Raises
    ------
    InputError
        The metric or the method does not exist, the arrays cannot be used (see the metric), or
        level, resamples or seed are out of range.
    NotDefinedError
        The metric has no value for these pairs (a correlation of one pair).

    References
    ----------
    DiCiccio and Efron (1996), "Bootstrap confidence intervals", Statistical Science 11(3),
    189-228, doi:10.1214/ss/1032280214. Coverage of each method: docs/intervals.md.

    Examples
    --------
    >>> predicted = [11.0, 90.0, 7.0, 55.0, 130.0, 24.0, 31.0, 9.0]
    >>> measured = [10.0, 100.0, 10.0, 50.0, 100.0, 25.0, 40.0, 8.0]
    >>> e = estimate("mape", predicted=predicted, measured=measured)
    >>> print(e, "by", e.method)
    16.12 % [9.6, 30.2], n=8 by log-t
    >>> print(estimate("within_20", predicted=predicted, measured=measured))
    62.50 % [30.6, 86.3], n=8
    >>> estimate("p90_ape", predicted=predicted, measured=measured).method
    'no interval: 95 % confidence needs 36 pairs, got 8'
    """
    check_options(level=level, method=method, resamples=resamples, seed=seed)
    data = checked(predicted, measured, None, zeros)
    drawn = Dependence()
    if clusters is not None:
        drawn = dependence(_labels(clusters, len(np.asarray(measured)), data), given=True)
    return estimate_of(
        figure,
        predicted=predicted,
        measured=measured,
        ask=Request(method, level, resamples, seed, drawn),
        zeros=zeros,
    )


def estimate_of(
    figure: str, *, predicted: ArrayLike, measured: ArrayLike, ask: Request, zeros: Zeros = "raise"
) -> Estimate:
    """Compute a metric with the requested interval; see `estimate`."""
    spec = look_up(figure)
    data = checked(predicted, measured, None, zeros)
    try:
        value = spec.function(predicted=predicted, measured=measured, zeros=zeros)
        bounds = interval(spec, value, data, ask)
    except InputError as error:  # pairs and options are valid, so the metric is not defined
        raise NotDefinedError(str(error)) from error
    n = len(data.predicted)
    return Estimate(
        figure=spec.name,
        value=value,
        low=bounds.low,
        high=bounds.high,
        level=None if bounds.low is None else ask.level,
        method=bounds.method,
        n=n,
        unit=spec.unit,
        definition=spec.definition,
        dropped=_dropped(data, len(np.asarray(measured))),
        caveats=small_sample(spec.label, bounds.coverage, sample_of(n, ask.drawn)),
        seed=bounds.seed,
    )


def check_options(
    figures: Sequence[str] = (),
    *,
    level: float = 0.95,
    method: str = "default",
    resamples: int = 9999,
    seed: int = 0,
) -> None:
    """Raise if these options give no interval, whatever the pairs.

    Parameters
    ----------
    figures : sequence of str
        The method must give an interval for at least one of these metrics.
    level, method, resamples, seed
        As in `estimate`.

    Raises
    ------
    InputError
        A metric or the method does not exist, the method applies to none of the metrics, or level,
        resamples or seed are out of range.

    Examples
    --------
    >>> check_options(["mape"], method="wilson")
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: method 'wilson' gives no interval for mape. Use one of: \
default, log-t, bootstrap-t, percentile, bca
    """
    if method not in METHODS:
        raise InputError(
            f"no interval method {method!r}. {offer('Methods', METHODS, wanted=str(method))}"
        )
    able = [_OF_KIND.get(look_up(name).kind, ()) for name in figures]
    if able and method != "default" and not any(method in methods for methods in able):
        known = dict.fromkeys(["default", *(m for methods in able for m in methods)])
        raise InputError(
            f"method {method!r} gives no interval for {' or '.join(figures)}. "
            f"Use one of: {', '.join(known)}"
        )
    if not isinstance(level, Real):
        raise InputError(f"level must be a number, got {level!r}. 95 % is level=0.95.")
    check_level(float(level))
    for name, whole in (("resamples", resamples), ("seed", seed)):
        if not isinstance(whole, Integral):
            raise InputError(f"{name} must be a whole number, got {whole!r}")
    fewest = fewest_resamples(level)
    if resamples < fewest:
        raise InputError(
            f"resamples must be at least {fewest} for level={level:.9g}, got {resamples}. "
            f"{max(9999, fewest)} is usual."
        )
    if seed < 0:
        raise InputError(f"seed must not be negative, got {seed}")


def fewest_resamples(level: float) -> int:
    """Return the number of resamples that the bounds of a level need: one in each tail.

    Examples
    --------
    >>> fewest_resamples(0.95)
    39
    """
    return math.ceil(round(2 / (1 - level) - 1, 6))


def _labels(clusters: Any, total: int, data: Checked) -> dict[str, NDArray[Any]]:
    several = (
        isinstance(clusters, list | tuple)
        and len(clusters) > 0
        and all(isinstance(c, np.ndarray | list | tuple) for c in clusters)
    )
    arrays = [_one_label(c, total) for c in (clusters if several else [clusters])]
    if len(arrays) > 2:
        raise InputError(f"clusters takes at most two arrays of labels, got {len(arrays)}")
    names = ("cluster",) if len(arrays) == 1 else ("first key", "second key")
    return {name: labels[data.rows - 1] for name, labels in zip(names, arrays, strict=True)}


def _one_label(labels: Any, total: int) -> NDArray[Any]:
    array = np.asarray(labels, dtype=object)
    if array.shape != (total,):
        raise InputError(
            f"clusters must have one label per pair, shape ({total},), got shape {array.shape}"
        )
    return array


def _dropped(data: Checked, total: int) -> tuple[Dropped, ...]:
    if len(data.rows) == total:
        return ()
    rows = np.setdiff1d(np.arange(1, total + 1), data.rows)
    return (Dropped("measured is not positive", len(rows), tuple(rows[:3].tolist())),)
