r"""How likely is today's model still within its promised error at a version or date ahead?

Three answers, depending on the available data:

* `forecast_survival`, from a survival curve over many series: has it *stayed* within its promise
  until then? Makes no assumption on steps, and ends with the record.
* `forecast_drift`, from a variogram law :math:`V(h) = c h^\beta`: is it within its promise then?
  It may have left and come back. Assumes normal drift.
* `forecast_steps`, from the sizes of steps and the time over which they were observed: the same
  question, for drift that is a few large steps (a compound Poisson process).

The cost of a normal law if drift is steps: probability in per cent that a model is within its
promise of 10 %, with steps of 20 % in 5 % of all releases (V is 0.002 per release)

==============  ====  ====  ====  ====  ====
releases ahead  1     2     5     10    20
==============  ====  ====  ====  ====  ====
true            95    91    79    65    47
normal          97    89    68    52    38
==============  ====  ====  ====  ====  ====

The normal law is too optimistic for the next release, because one in 20 breaks the model, and too
pessimistic further ahead, because most of the time there is no step at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.codec import Coverage, Document, Each, Share, Undefined
from errcomp.errors import InputError, describe_rows
from errcomp.halflife.forecast.compound_poisson import bounds_by_draws, normal_within, within_steps
from errcomp.halflife.panel import DAYS_PER_MONTH, Clock, check_level

__all__ = [
    "Drop",
    "Forecast",
    "date_after",
    "drops_below",
    "forecast_drift",
    "forecast_steps",
    "forecast_survival",
]

Floats = NDArray[np.float64]


_Shares: TypeAlias = Annotated[Floats, Each(Annotated[Share, Undefined])]


@dataclass(frozen=True, slots=True, eq=False)
class Forecast(Document):
    """Probability that a model is within its promised error, at times from today.

    Attributes
    ----------
    method : {"survival", "drift", "steps"}
    unit : {"releases", "months"}
    ahead : ndarray, shape (h,)
        Time since today.
    probability : ndarray, shape (h,)
        NaN if unknown: beyond the record.
    low, high : ndarray, shape (h,)
        Bounds; NaN if unknown.
    level : float
        Nominal coverage of the bounds, pointwise.
    assumptions : tuple of str
        Assumptions of the method, each a sentence.
    """

    method: Literal["survival", "drift", "steps"]
    unit: Clock
    ahead: Annotated[Floats, Each(float)]
    probability: _Shares
    low: _Shares
    high: _Shares
    level: Coverage
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """When a forecast drops below a probability.

    Attributes
    ----------
    below : float
        The probability.
    time : float or None
        Since today; None if not reached at the times of the forecast.
    low, high : float or None
        Its interval; inf is longer than the times of the forecast. None without bounds.
    unit : {"releases", "months"}
    refused : str
        Why there is no time; empty otherwise.
    """

    below: float
    time: float | None
    low: float | None
    high: float | None
    unit: Clock
    refused: str = ""


def positive(value: float, name: str, *, zero: bool = False) -> float:
    """Return a finite number above 0 (or 0 itself)."""
    if not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "0 or larger" if zero else "above 0"
        raise InputError(f"{name} must be finite and {least}, got {value}.")
    return float(value)


def as_times(values: ArrayLike, name: str) -> Floats:
    """Return increasing times of 0 or more."""
    times = np.atleast_1d(np.asarray(values, dtype=float))
    if times.ndim != 1 or not len(times):
        raise InputError(
            f"{name} must be a one-dimensional list of times, got shape {times.shape}."
        )
    bad = ~np.isfinite(times) | (times < 0)
    bad[1:] |= ~(np.diff(times) > 0)
    if bad.any():
        first = np.flatnonzero(bad)
        raise InputError(
            f"{name} must be finite increasing times of 0 or more, got {times[first[0]]} in "
            f"{describe_rows((first + 1).tolist())}. Sort them and leave out duplicates."
        )
    return times


def as_curve(
    times: ArrayLike, survival: ArrayLike, low: ArrayLike, high: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return times, a survival curve and its bounds, all beginning with 1 at time 0."""
    t = as_times(times, "times")
    curves = [np.asarray(values, dtype=float) for values in (survival, low, high)]
    if any(curve.shape != t.shape for curve in curves):
        shapes = ", ".join(str(curve.shape) for curve in curves)
        raise InputError(
            f"survival, low and high must have one value for each of the {len(t)} times, got "
            f"shapes {shapes}."
        )
    s, lower, upper = curves
    bad = ~((lower >= 0) & (lower <= s) & (s <= upper) & (upper <= 1))
    for curve in curves:
        bad[1:] |= np.diff(curve) > 1e-12
    if bad.any():
        first = np.flatnonzero(bad)
        raise InputError(
            "survival and its bounds low and high must be between 0 and 1, with low <= survival <= "
            f"high, and must not increase, got low={lower[first[0]]:g}, survival={s[first[0]]:g}, "
            f"high={upper[first[0]]:g} in {describe_rows((first + 1).tolist())}."
        )
    if t[0] > 0:
        t, s, lower, upper = (
            np.concatenate([[start], values])
            for start, values in zip((0.0, 1.0, 1.0, 1.0), (t, s, lower, upper), strict=True)
        )
    return t, s, lower, upper


def forecast_survival(
    times: ArrayLike,
    survival: ArrayLike,
    *,
    low: ArrayLike,
    high: ArrayLike,
    ahead: ArrayLike,
    age: float = 0.0,
    unit: Clock = "releases",
    level: float = 0.95,
) -> Forecast:
    r"""Forecast from a survival curve: will a model that held for ``age`` stay within its promise?

    .. math:: P(T > a + h \mid T > a) = S(a + h) / S(a)

    Between two times of the curve, the probability is linear and the bounds are the wider ones of
    both times. Beyond the last time, only an upper bound is known. The bounds of the ratio come
    from those of S on the log scale. Their variances (Kaplan and Meier's, by Greenwood) add up
    along the curve:

    .. math:: w(a, a + h)^2 = w(a + h)^2 - w(a)^2, \qquad w = \ln S - \ln S_{low}

    Valid for a series like those of the curve that is still valid today. Misleads if workloads
    differ in age: new workloads expire sooner, so use the curve of their own stratum.

    Parameters
    ----------
    times : array_like, shape (t,)
        Increasing, >= 0, since calibration.
    survival, low, high : array_like, shape (t,)
        S at those times and its bounds, between 0 and 1, never increasing; low <= S <= high.
    ahead : array_like, shape (h,)
        Times since today, increasing, >= 0.
    age : float
        Time since calibration.
    unit : {"releases", "months"}
    level : float
        Coverage of the given bounds.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        Shapes differ, values are out of range or order, or no series has lasted as long as ``age``.

    References
    ----------
    Kalbfleisch and Prentice (2002), "The Statistical Analysis of Failure Time Data",
    doi:10.1002/9781118032985.

    Examples
    --------
    >>> forecast = forecast_survival(
    ...     [2, 4, 6], [0.9, 0.6, 0.5], low=[0.8, 0.4, 0.3], high=[1, 0.8, 0.7],
    ...     ahead=[1, 2, 4, 5], age=2)
    >>> forecast.probability.round(2).tolist(), forecast.high.round(2).tolist()
    ([0.83, 0.67, 0.56, nan], [1.0, 0.87, 0.76, 0.76])
    """
    check_level(level)
    when = as_times(ahead, "ahead")
    age = positive(age, "age", zero=True)
    t, s, lower, upper = as_curve(times, survival, low, high)
    last = t[-1]
    now = _on_curve(np.array([age]), t, s, lower, upper)
    if age > last or not now[0][0] > 0:
        raise InputError(
            f"no forecast for a model of age {age:g}: the survival curve ends at {last:g}, where "
            f"{100 * s[-1]:.3g} % of the series are still valid. Use the forecast by drift, or "
            "recalibrate the model."
        )
    then, lower_then, upper_then = _on_curve(age + when, t, s, lower, upper)
    probability = then / now[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        down = _between(np.log(then / lower_then), np.log(now[0] / now[1]))
        up = _between(np.log(upper_then / then), np.log(now[2] / now[0]))
        least = np.where(then > 0, probability * np.exp(-down), 0.0)
        most = np.where(then > 0, probability * np.exp(up), upper_then / now[0])
    beyond = age + when > last
    return Forecast(
        method="survival",
        unit=unit,
        ahead=when,
        probability=np.where(beyond, np.nan, probability),
        low=np.where(beyond, 0.0, least),
        high=np.minimum(most, 1.0),
        level=level,
        assumptions=(
            "The model is similar to the models behind the survival curve, and is within its "
            "promise today.",
            "Future releases change errors as past releases did.",
            "Once its error exceeds the promise, a model never counts as valid again.",
        ),
    )


def _on_curve(
    at: Floats, t: Floats, s: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return S by linear interpolation, and the wider bounds of both neighbours."""
    after = np.minimum(np.searchsorted(t, at, side="left"), len(t) - 1)
    before = np.searchsorted(t, at, side="right") - 1
    return np.interp(at, t, s), low[after], high[before]


def _between(width: Floats, before: Floats) -> Floats:
    """Return the width of a ratio from those of its parts; an infinite width stays infinite."""
    width = np.where(np.isnan(width), np.inf, width)
    squared = np.where(np.isinf(width), np.inf, width**2 - np.where(np.isinf(width), 0, before**2))
    return np.sqrt(np.maximum(squared, 0.0))


def drops_below(forecast: Forecast, probability: float) -> Drop:
    """Return when a forecast drops below a probability.

    The forecast is linear between two times, so use times that are as fine as the required answer.
    The interval is where its bounds cross: low by the lower bound, high by the upper bound.

    Parameters
    ----------
    forecast : Forecast
    probability : float
        Between 0 and 1, e.g. 0.9.

    Returns
    -------
    Drop

    Raises
    ------
    InputError
        The probability is not between 0 and 1.

    Examples
    --------
    >>> drop = drops_below(
    ...     forecast_drift(np.linspace(0, 20, 81), c=0.002, beta=1.0, threshold=0.1), 0.9)
    >>> round(drop.time, 2), drop.unit
    (1.85, 'releases')
    """
    if not 0 < probability < 1:
        raise InputError(f"probability must be between 0 and 1, e.g. 0.9, got {probability}.")
    last = forecast.ahead[-1]
    time = _crossing(forecast.ahead, forecast.probability, probability)
    bounded = not np.isnan(forecast.low).all()
    refused = ""
    if time is None:
        known = forecast.probability[~np.isnan(forecast.probability)]
        within = f"within {last:g} {forecast.unit}"
        refused = (
            f"the probability does not fall below {probability:g} {within}: its last known value "
            f"is {known[-1]:.3g}"
            if len(known)
            else f"the probability is unknown {within}"
        )
    low = _crossing(forecast.ahead, forecast.low, probability) if bounded else None
    high = _crossing(forecast.ahead, forecast.high, probability) if bounded else None
    return Drop(
        below=float(probability),
        time=time,
        low=(float(last) if low is None else low) if bounded else None,
        high=(np.inf if high is None else high) if bounded else None,
        unit=forecast.unit,
        refused=refused,
    )


def _crossing(t: Floats, curve: Floats, level: float) -> float | None:
    """Return the first time at which a curve is below a level; None if it never is."""
    under = np.flatnonzero(curve < level)
    if not len(under):
        return None
    k = int(under[0])
    if k == 0 or np.isnan(curve[k - 1]):
        return float(t[k])
    share = (curve[k - 1] - level) / (curve[k - 1] - curve[k])
    return float(t[k - 1] + share * (t[k] - t[k - 1]))


def date_after(today: date, months: float) -> date:
    """Return the date some months after another; a month has 365.25 / 12 days.

    Raises
    ------
    InputError
        The number of months is not finite or below 0, or the date is beyond the calendar.

    Examples
    --------
    >>> date_after(date(2026, 1, 1), 6.0)
    datetime.date(2026, 7, 3)
    """
    try:
        return today + timedelta(days=round(positive(months, "months", zero=True) * DAYS_PER_MONTH))
    except OverflowError:
        raise InputError(
            f"{months:g} months after {today} is after the last possible date (9999-12-31). Report "
            "the number of months instead."
        ) from None


#: Assumptions of a forecast by steps.
STEPS_ASSUMED = (
    "Assumed: steps occur independently and at a constant rate, with the observed sizes.",
    "Changes too small to be detected as steps are ignored.",
    "A model whose error exceeded the promise but fell below it again counts as within the "
    "promise.",
)


def forecast_drift(
    ahead: ArrayLike,
    *,
    c: float,
    beta: float,
    threshold: float,
    error: float = 0.0,
    spread: float = 0.0,
    draws: ArrayLike | None = None,
    unit: Clock = "releases",
    level: float = 0.95,
) -> Forecast:
    r"""Forecast from a variogram law: is the error within the threshold at a time ahead?

    .. math:: P(|e + \mathcal N(0, s^2 + c h^\beta)| < \theta)

    with the error e today if known, or its standard deviation s if not (the calibrated error e0,
    for any series of a group).

    Valid if drift is the sum of many small changes. Misleads if it is a few large steps: too
    optimistic at first, too pessimistic later (see the table in
    `errcomp.halflife.forecast.probabilities`). Use `forecast_steps` in that case. A model that left
    its promise and came back counts as within.

    Parameters
    ----------
    ahead : array_like, shape (h,)
        Times since today, increasing, >= 0.
    c : float
        Mean squared change after one unit of time, >= 0.
    beta : float
        Power, between 0 and 2; 1 is a random walk.
    threshold : float
        Error that was promised, on the log scale, > 0.
    error : float
        Error today.
    spread : float
        Standard deviation of the error today, >= 0, if the error is uncertain.
    draws : array_like, shape (b, 2), optional
        Draws of (c, beta), e.g. of a bootstrap; the bounds are quantiles over them. Without draws
        the bounds are unknown.
    unit : {"releases", "months"}
    level : float

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        Values are out of range.

    Examples
    --------
    >>> forecast = forecast_drift([0, 1, 10], c=0.002, beta=1.0, threshold=0.1)
    >>> forecast.probability.round(3).tolist()
    [1.0, 0.975, 0.52]
    """
    check_level(level)
    when = as_times(ahead, "ahead")
    threshold = positive(threshold, "threshold")
    spread = positive(spread, "spread", zero=True)
    law = np.array([[c, beta]], dtype=float)
    all_draws = law if draws is None else np.asarray(draws, dtype=float)
    if all_draws.ndim != 2 or all_draws.shape[1] != 2 or not len(all_draws):
        raise InputError(
            "draws must have two columns, c and beta of the power law of the drift, got shape "
            f"{all_draws.shape}."
        )
    for laws in (law, all_draws):
        if not (np.isfinite(laws).all() and (laws >= 0).all() and (laws[:, 1] <= 2).all()):
            raise InputError(
                "a variogram law must have c >= 0 and beta between 0 and 2, got c from "
                f"{laws[:, 0].min():g} to {laws[:, 0].max():g} and beta from {laws[:, 1].min():g} "
                f"to {laws[:, 1].max():g}."
            )
    if not np.isfinite(error):
        raise InputError(f"error must be a finite number (on the log scale), got {error}.")

    def chance(laws: Floats) -> Floats:
        # There is no drift at time 0, whatever the power.
        moved = np.where(when > 0, laws[:, :1] * when ** laws[:, 1:], 0.0)
        return normal_within(error, np.sqrt(spread**2 + moved), threshold)

    probability = chance(law)[0]
    unknown = np.full(len(when), np.nan)
    low, high = unknown, unknown
    if draws is not None:
        low, high = np.quantile(chance(all_draws), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Forecast(
        method="drift",
        unit=unit,
        ahead=when,
        probability=probability,
        low=low,
        high=high,
        level=level,
        assumptions=(
            "Assumed: drift is normally distributed, as the sum of many small changes is, and not "
            "that of a few steps.",
            "Drift follows the fitted power law, also beyond the longest lag in the history.",
            "A model whose error exceeded the promise but fell below it again counts as within the "
            "promise.",
        ),
    )


def forecast_steps(
    ahead: ArrayLike,
    *,
    sizes: ArrayLike,
    exposure: float,
    threshold: float,
    error: float = 0.0,
    spread: float = 0.0,
    unit: Clock = "releases",
    level: float = 0.95,
    seed: int = 0,
) -> Forecast:
    r"""Forecast from observed steps: is the error within the threshold, at a time ahead?

    .. math:: P\Big(\Big|e + \mathcal N(0, s^2) + \sum_{k=1}^{N_h} J_k\Big| < \theta\Big),
              \qquad N_h \sim \mathrm{Poisson}(h n / T)

    with n steps observed in T units of time over all series, and J drawn from their sizes. Computed
    by the fast Fourier transform on a grid of θ / 256. The bounds are quantiles over draws of the
    rate (gamma, n + 1/2) and of the weights of sizes (Bayesian bootstrap). With fewer than five
    steps, the bounds assume that any step may or may not exceed the threshold.

    Valid if steps are independent of each other and of time. Misleads if steps below the detection
    limit add up (give their sum as ``spread``), and if releases differ: a major release has more
    steps.

    Parameters
    ----------
    ahead : array_like, shape (h,)
        Times since today, increasing, >= 0.
    sizes : array_like, shape (n,)
        Steps on the log scale, with sign; may be empty.
    exposure : float
        Time over which they were observed, summed over series, > 0.
    threshold : float
        Error that was promised, on the log scale, > 0.
    error : float
        Error today.
    spread : float
        Standard deviation of the error today, >= 0.
    unit : {"releases", "months"}
    level : float
    seed : int
        Of the draws for the bounds.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        Values are out of range.

    References
    ----------
    Rubin (1981), "The Bayesian Bootstrap", doi:10.1214/aos/1176345338. Embrechts and Frei (2009),
    "Panjer recursion versus FFT for compound distributions", doi:10.1007/s00186-008-0249-2.

    Examples
    --------
    >>> forecast = forecast_steps([0, 1, 10], sizes=[0.2, -0.2] * 10, exposure=400, threshold=0.1)
    >>> forecast.probability.round(3).tolist()
    [1.0, 0.952, 0.645]
    """
    check_level(level)
    when = as_times(ahead, "ahead")
    threshold = positive(threshold, "threshold")
    exposure = positive(exposure, "exposure")
    spread = positive(spread, "spread", zero=True)
    steps = np.asarray(sizes, dtype=float)
    if steps.ndim != 1 or not np.isfinite(steps).all() or not np.isfinite(error):
        raise InputError(
            "sizes must be a one-dimensional list of finite step sizes (on the log scale), and "
            f"error must be a finite number, got sizes of shape {steps.shape} and error {error}."
        )
    n = len(steps)
    weights = np.full((1, n), 1 / max(n, 1))
    probability = within_steps(
        when, np.array([n / exposure]), weights, steps, threshold, error=error, spread=spread
    )[0]
    low, high = bounds_by_draws(
        when, steps, exposure, threshold, error=error, spread=spread, level=level, seed=seed
    )
    return Forecast(
        method="steps",
        unit=unit,
        ahead=when,
        probability=probability,
        low=low,
        high=high,
        level=level,
        assumptions=STEPS_ASSUMED,
    )
