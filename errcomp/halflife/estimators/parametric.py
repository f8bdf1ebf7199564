r"""Parametric survival: exponential, Weibull or log-normal, with interval-censored times.

All three are location-scale distributions of log T,

.. math:: \log T = \log m + \sigma (\varepsilon - \varepsilon_{1/2}), \qquad
          P(\varepsilon > z) = e^{-e^z} \text{ (Weibull)}, \; 1 - \Phi(z) \text{ (log-normal)}

with the median m of T, and the exponential as the Weibull distribution with :math:`\sigma = 1`. A
unit that expired in (L, R] contributes F(R) - F(L), a unit still valid when last seen 1 - F(L).
Bounds of m come from its profile likelihood: m is rejected if twice the log-likelihood ratio, over
the design effect of clusters, exceeds

.. math:: d \log\Big(1 + \frac{t^2_{d-1}}{d - 1}\Big)

with d units that expired. This is exact for the log-normal distribution without censoring, and the
usual :math:`\chi^2_1` for large d.

Coverage at a nominal 95 %, simulated with 6 to 200 units that follow the fitted distribution: 93 to
97 % for all three (exponential: 94 % of 1500 sets of 60 units), 92 to 98 % in 8 to 60 clusters.
With 6 units, up to a fifth of the sets had too few expired units for a Weibull distribution.

The same likelihood estimates how a covariate (e.g. the age of a workload) stretches the time: the
logarithm of the time is then linear in the covariates (accelerated failure time).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_names, describe_rows
from errcomp.halflife.estimators import (
    HALF,
    LAWS,
    Law,
    Maximum,
    Units,
    bounds_of,
    check_law,
    cutoff,
    design_effect,
    ends_of,
    log_likelihood,
    maximum,
    newton,
)
from errcomp.halflife.estimators.expiry import Expiry, check_length
from errcomp.halflife.panel import check_level

__all__ = ["LAWS", "Law", "LawFit", "TimeRatio", "fit_law", "held_out_scores", "time_ratios"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LawFit:
    """A distribution fitted to interval-censored times, or why it was refused.

    Attributes
    ----------
    law : {"exponential", "weibull", "log-normal"}
    n, n_events, n_clusters : int
    median, low, high : float or None
        Of the time, with bounds; ``high`` is inf without an upper bound. None if refused.
    level : float
    sigma : float or None
        Scale of log T: the shape of a Weibull distribution is 1/sigma, the mean of an exponential
        distribution is median / log 2.
    log_likelihood, aic : float or None
    design_effect : float
        Variance inflation of the log median by clusters; 1 without clusters.
    refused : str
    """

    law: Law
    n: int
    n_events: int
    n_clusters: int
    median: float | None
    low: float | None
    high: float | None
    level: float
    sigma: float | None
    log_likelihood: float | None
    aic: float | None
    design_effect: float = 1.0
    refused: str = ""

    def survival(self, times: ArrayLike) -> Floats:
        """Return S(t) = P(T > t).

        Raises
        ------
        InputError
            The fit was refused.

        Examples
        --------
        >>> fit = fit_law([0, 1, 2, 3, 5], [1, 2, 3, 5, np.inf], "exponential")
        >>> fit.survival([0.0, fit.median]).round(3).tolist()
        [1.0, 0.5]
        """
        if self.median is None or self.sigma is None:
            raise InputError(f"the {self.law} distribution was not fitted: {self.refused}")
        t = np.asarray(times, dtype=float)
        with np.errstate(divide="ignore"):
            z = (np.log(t) - math.log(self.median)) / self.sigma
        from scipy.special import ndtr

        surviving: Floats = (
            ndtr(-z) if self.law == "log-normal" else np.exp(-np.exp(z + HALF[self.law]))
        )
        return surviving


def fit_law(
    left: ArrayLike,
    right: ArrayLike,
    law: Law,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> LawFit:
    """Fit a distribution by maximum likelihood, with profile-likelihood bounds of its median.

    Refused if too few units expired (the exponential distribution needs one, the others three), or
    if the intervals do not determine the scale. Misleads if the distribution does not hold: a
    median beyond the observed times follows from the distribution and not from the data.

    Parameters
    ----------
    left, right : array_like of float, shape (n,)
        0 <= left < right; right is inf where the unit was valid when last seen.
    law : {"exponential", "weibull", "log-normal"}
    clusters : array_like, shape (n,), optional
    level : float

    Returns
    -------
    LawFit

    Raises
    ------
    InputError
        The distribution is unknown, `level` is not between 0 and 1, or the intervals are refused as
        in `errcomp.halflife.estimators.turnbull.turnbull`.

    References
    ----------
    Kalbfleisch and Prentice (2002), "The Statistical Analysis of Failure Time Data",
    doi:10.1002/9781118032985. Burridge (1981), "Empirical Bayes analysis of survival time data",
    Journal of the Royal Statistical Society B 43, doi:10.1111/j.2517-6161.1981.tb01149.x.

    Examples
    --------
    >>> fit = fit_law([0, 1, 2, 3, 5], [1, 2, 3, 5, np.inf], "exponential")
    >>> round(fit.median, 2), round(fit.low, 2), round(fit.high, 2)
    (2.31, 0.97, 7.69)
    """
    check_law(law)
    check_level(level)
    return _fitted(Units.of_intervals(left, right, clusters), law, level)


def held_out_scores(
    left: ArrayLike,
    right: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    folds: int = 5,
    seed: int = 0,
) -> dict[Law, float | None]:
    """Return the mean log-likelihood of held-out units by distribution; larger is better.

    Whole clusters are left out together. Compare a difference with the spread over folds: with few
    expired units, the distributions are not distinguishable.

    Parameters
    ----------
    left, right : array_like of float, shape (n,)
    clusters : array_like, shape (n,), optional
    folds : int
        At most as many as there are clusters.
    seed : int
        Of the folds.

    Returns
    -------
    dict of str to float or None
        None if a distribution was refused in a fold.

    Examples
    --------
    >>> scores = held_out_scores([3, 4, 4, 5, 5, 5, 6, 6, 7, 9], [4, 5, 5, 6, 6, 6, 7, 7, 8, 10])
    >>> min(scores, key=scores.get)
    'exponential'
    """
    units = Units.of_intervals(left, right, clusters)
    k = units.n_clusters
    if k < 2:
        return dict.fromkeys(LAWS)
    fold = np.empty(k, dtype=np.int64)
    fold[np.random.default_rng(seed).permutation(k)] = np.arange(k) % min(folds, k)
    return {law: _held_out(units, law, fold[units.cluster]) for law in LAWS}


def _held_out(units: Units, law: Law, fold: NDArray[np.int64]) -> float | None:
    total = 0.0
    for number in np.unique(fold):
        out = fold == number
        fit = maximum(units.take(~out), law)
        if isinstance(fit, str):
            return None
        total += log_likelihood(ends_of(units.take(out), law), fit.theta)
    return total / len(fold)


def _fitted(units: Units, law: Law, level: float) -> LawFit:
    fit = maximum(units, law)
    if isinstance(fit, str):
        return LawFit(law, *units.counts, None, None, None, level, None, None, None, refused=fit)
    free = 1 if law == "exponential" else 2
    slope = 1.0 if free == 1 else float(fit.theta[0])
    at = (float(fit.theta[free - 1]) + HALF[law]) / slope
    gradient = np.array([1.0]) if free == 1 else np.array([-at / slope, 1 / slope])
    effect = design_effect(units, law, fit, gradient)
    limit = cutoff(units, level, free) * effect
    low, high = bounds_of(
        lambda log_median: 2 * (fit.log_likelihood - _profile(units, law, log_median, fit)) - limit,
        at,
        1 / (slope * math.sqrt(units.n_events)),
    )
    return LawFit(
        law,
        *units.counts,
        median=math.exp(at),
        low=math.exp(low),
        high=math.exp(high),
        level=level,
        sigma=1 / slope,
        log_likelihood=fit.log_likelihood,
        aic=2 * free - 2 * fit.log_likelihood,
        design_effect=effect,
    )


def _profile(units: Units, law: Law, log_median: float, fit: Maximum) -> float:
    """Return the largest log-likelihood of all parameters with this median."""
    ends = ends_of(units, law, median=log_median)
    if law == "exponential":
        return log_likelihood(ends, np.empty(0))
    return newton(ends, fit.theta[:1], positive=True).log_likelihood


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """How a covariate stretches the time to doubling.

    Attributes
    ----------
    name : str
        Of the covariate.
    ratio, low, high : float or None
        Factor of the time per unit of the covariate, with bounds; None if refused.
    level : float
    law : {"exponential", "weibull", "log-normal"}
    n, n_events, n_clusters : int
    refused : str
    """

    name: str
    ratio: float | None
    low: float | None
    high: float | None
    level: float
    law: Law
    n: int
    n_events: int
    n_clusters: int
    refused: str = ""


def time_ratios(
    expiry: Expiry,
    covariates: Mapping[str, ArrayLike],
    *,
    law: Law = "weibull",
    level: float = 0.95,
) -> tuple[TimeRatio, ...]:
    r"""Return how covariates stretch the time to doubling, each with the others held constant.

    .. math:: \log T = \mu + \sum_j \beta_j x_j + \sigma \varepsilon

    The ratio is :math:`e^{\beta_j}`: with a ratio of 2, one more unit of the covariate doubles the
    time. Its bounds come from the profile likelihood, like those of a median.

    Valid if the effect on log time is linear in the covariate, and noise is small compared with the
    threshold: expiries are those of the errors as measured. Misleads if the covariate is correlated
    with another property of the series.

    Parameters
    ----------
    expiry : Expiry
    covariates : mapping of str to array_like, each one value per series of the panel
        Finite for all series that can be evaluated.
    law : {"exponential", "weibull", "log-normal"}
    level : float

    Returns
    -------
    tuple of TimeRatio
        In the order of the covariates.

    Raises
    ------
    InputError
        There is no covariate, a covariate is constant, not finite or of the wrong length, or the
        distribution is unknown.

    References
    ----------
    Wei (1992), "The accelerated failure time model: a useful alternative to the Cox regression
    model in survival analysis", Statistics in Medicine 11, doi:10.1002/sim.4780111409.

    Examples
    --------
    >>> from errcomp.halflife.estimators.expiry import expiry_of
    >>> from errcomp.halflife.panel import panel_of
    >>> age, expires = [0, 0, 0, 1, 1, 1], [2, 3, 4, 4, 6, 8]
    >>> panel = panel_of({
    ...     "version": [f"1.{i}" for i in range(10)] * 6,
    ...     "op": np.repeat([f"op{i}" for i in range(6)], 10),
    ...     "measured": [2.0 if i >= at else 1.0 for at in expires for i in range(10)],
    ... }).panel
    >>> [ratio] = time_ratios(expiry_of(panel, 0.5, "releases"), {"age": age})
    >>> ratio.low < 2 < ratio.high
    True
    """
    check_level(level)
    check_law(law)
    names, x = list(covariates), _columns(covariates, expiry)
    spread = x.std(axis=0)
    constant = [name for name, sd in zip(names, spread, strict=True) if sd == 0]
    if constant:
        raise InputError(
            f"covariates that are constant over all series: {describe_names(constant)}. Leave them "
            "out, or add series."
        )
    left, right = expiry.intervals("face")
    units = Units.of_intervals(left, right, expiry.cluster, (x - x.mean(axis=0)) / spread)
    fit = maximum(units, law)
    if isinstance(fit, str):
        nothing = (None, None, None, level, law, *units.counts, fit)
        return tuple(TimeRatio(name, *nothing) for name in names)
    return tuple(
        _ratio(units, law, level, fit, j, name, float(spread[j])) for j, name in enumerate(names)
    )


def _ratio(
    units: Units, law: Law, level: float, fit: Maximum, j: int, name: str, spread: float
) -> TimeRatio:
    """Profile the likelihood over the effect of the standardised covariate j."""
    free = law != "exponential"
    place = 1 + free + j
    scale = float(fit.theta[0]) if free else 1.0
    at = float(fit.theta[place]) / scale
    gradient = np.zeros(len(fit.theta))
    gradient[0] = -at / scale if free else 0.0
    gradient[place] = 1 / scale
    limit = cutoff(units, level, len(fit.theta))
    limit *= design_effect(units, law, fit, gradient)
    others = np.delete(fit.theta, place)

    def excess(held: float) -> float:
        profiled = newton(ends_of(units, law, effect=(j, held)), others, positive=free)
        return 2 * (fit.log_likelihood - profiled.log_likelihood) - limit

    step = float(np.sqrt(gradient @ np.linalg.solve(fit.curvature, gradient)))
    low, high = bounds_of(excess, at, step)
    return TimeRatio(
        name,
        math.exp(at / spread),
        math.exp(low / spread),
        math.exp(high / spread),
        level,
        law,
        *units.counts,
    )


def _columns(covariates: Mapping[str, ArrayLike], expiry: Expiry) -> Floats:
    """Return the covariates of the series that can be evaluated."""
    if not covariates or not expiry.n:
        missing = "covariate" if expiry.n else "series that can be evaluated"
        raise InputError(f"a time ratio needs covariates and series, but there is no {missing}.")
    columns = []
    for name, given in covariates.items():
        values = np.asarray(given, dtype=float)
        check_length(expiry, len(values), name)
        column = values[expiry.series]
        bad = ~np.isfinite(column)
        if bad.any():
            rows = (expiry.series[bad] + 1).tolist()
            raise InputError(
                f"{name} must be finite, got {column[bad][0]} in "
                f"{describe_rows(rows, word='series')}. Leave these series out."
            )
        columns.append(column)
    return np.column_stack(columns)
