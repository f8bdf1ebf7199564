r"""How likely is today's model still within its promised error at a version or date ahead?

Three answers, by what is known:

* `forecast_survival`, from a survival curve over many series: has it *stayed* within its promise
  up to then? Assumes nothing about steps, and does not look further than was observed.
* `forecast_drift`, from a variogram law :math:`V(h) = c h^\beta`: is it within its promise then,
  having perhaps left and come back? Takes drift for normal.
* `forecast_steps`, from the sizes of steps and the time over which they were seen: the same
  question, for drift that is a few large steps (a compound Poisson law).

What normality costs where drift is steps: of a model within 10 % of the truth, promised to 10 %,
under steps of 20 % in 5 % of all releases (V is 0.002 a release), in per cent

==============  ====  ====  ====  ====  ====
releases ahead  1     2     5     10    20
==============  ====  ====  ====  ====  ====
true            95    91    79    65    47
normal          97    89    68    52    38
==============  ====  ====  ====  ====  ====

It is too sure for the next release, of which one in 20 breaks the model, and too pessimistic
further ahead, because most of the time there has been no step at all.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError
from errcomp.halflife.forecast.checks import as_curve, as_level, as_times, positive
from errcomp.halflife.forecast.drift import forecast_drift, forecast_steps
from errcomp.halflife.forecast.results import Drop, Forecast
from errcomp.halflife.panel import Clock

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
_DAYS_PER_MONTH = 365.25 / 12


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
    r"""Forecast from a survival curve: stays a model that has held for ``age`` within its promise?

    .. math:: P(T > a + h \mid T > a) = S(a + h) / S(a)

    Between two times of the curve the probability is a straight line and the bounds are those of
    the earlier and the later time, whichever is wider. Beyond the last one only an upper bound is
    known. The bounds of the ratio come from those of S on the log scale, whose variances (those of
    Kaplan and Meier, by Greenwood) add up along the curve:

    .. math:: w(a, a + h)^2 = w(a + h)^2 - w(a)^2, \qquad w = \ln S - \ln S_{low}

    Valid for a series like those of the curve that is still valid today. Misleads where workloads
    differ in age: new ones expire sooner, so use the curve of their own stratum.

    Parameters
    ----------
    times : array_like, shape (t,)
        Increasing, >= 0, from calibration on.
    survival, low, high : array_like, shape (t,)
        S at those times and its bounds, between 0 and 1, never increasing; low <= S <= high.
    ahead : array_like, shape (h,)
        Times from today on, increasing, >= 0.
    age : float
        Time since calibration.
    unit : {"releases", "months"}
    level : float
        Coverage of the bounds that were given.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        Shapes differ, values out of range or order, or no series has lasted as long as ``age``.

    References
    ----------
    Kalbfleisch and Prentice (2002), "The Statistical Analysis of Failure Time Data",
    doi:10.1002/9781118032985.

    Examples
    --------
    >>> found = forecast_survival(
    ...     [2, 4, 6], [0.9, 0.6, 0.5], low=[0.8, 0.4, 0.3], high=[1, 0.8, 0.7],
    ...     ahead=[1, 2, 4, 5], age=2)
    >>> found.probability.round(2).tolist(), found.high.round(2).tolist()
    ([0.83, 0.67, 0.56, nan], [1.0, 0.87, 0.76, 0.76])
    """
    level = as_level(level)
    when = as_times(ahead, "ahead")
    age = positive(age, "age", zero=True)
    t, s, lower, upper = as_curve(times, survival, low, high)
    last = t[-1]
    now = _on_curve(np.array([age]), t, s, lower, upper)
    if age > last or not now[0][0] > 0:
        raise InputError(
            f"nothing is known of a model of age {age:g}: the curve ends at {last:g} with "
            f"{s[-1]:.3g} still valid. Forecast by drift, or calibrate anew."
        )
    there, lower_there, upper_there = _on_curve(age + when, t, s, lower, upper)
    probability = there / now[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        down = _between(np.log(there / lower_there), np.log(now[0] / now[1]))
        up = _between(np.log(upper_there / there), np.log(now[2] / now[0]))
        least = np.where(there > 0, probability * np.exp(-down), 0.0)
        most = np.where(there > 0, probability * np.exp(up), upper_there / now[0])
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
            "The model is like those of the curve, and is within its promise today.",
            "Releases to come are like those that were seen.",
            "Once out of its promise, a model does not count as valid again.",
        ),
    )


def _on_curve(
    at: Floats, t: Floats, s: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return S by straight lines, and the wider bounds of the two times around; the last beyond."""
    after = np.minimum(np.searchsorted(t, at, side="left"), len(t) - 1)
    before = np.searchsorted(t, at, side="right") - 1
    return np.interp(at, t, s), low[after], high[before]


def _between(width: Floats, before: Floats) -> Floats:
    """Return the width of a ratio from those of its parts; an infinite one stays so."""
    width = np.where(np.isnan(width), np.inf, width)
    squared = np.where(np.isinf(width), np.inf, width**2 - np.where(np.isinf(width), 0, before**2))
    return np.sqrt(np.maximum(squared, 0.0))


def drops_below(forecast: Forecast, probability: float) -> Drop:
    """Return when a forecast drops below a probability.

    Between two times of the forecast the line is straight, so give it times as fine as the answer
    is wanted. The interval is where its bounds cross: low by the lower one, high by the upper one.

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
    >>> found = drops_below(
    ...     forecast_drift(np.linspace(0, 20, 81), c=0.002, beta=1.0, threshold=0.1), 0.9)
    >>> round(found.time, 2), found.unit
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
        end = f"{known[-1]:.3g}" if len(known) else "not known"
        refused = (
            f"not reached within {last:g} {forecast.unit}: the last probability known is {end}, "
            f"{probability:g} was asked for"
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
    """Return the first time at which a curve is below a level; None where it is not."""
    under = np.flatnonzero(curve < level)
    if not len(under):
        return None
    k = int(under[0])
    if k == 0 or np.isnan(curve[k - 1]):
        return float(t[k])
    share = (curve[k - 1] - level) / (curve[k - 1] - curve[k])
    return float(t[k - 1] + share * (t[k] - t[k - 1]))


def date_after(today: date, months: float) -> date:
    """Return the date a number of months after another, a month being 365.25 / 12 days.

    Raises
    ------
    InputError
        The number of months is not finite, below 0, or leads beyond the calendar.

    Examples
    --------
    >>> date_after(date(2026, 1, 1), 6.0)
    datetime.date(2026, 7, 3)
    """
    try:
        return today + timedelta(
            days=round(positive(months, "months", zero=True) * _DAYS_PER_MONTH)
        )
    except OverflowError:
        raise InputError(
            f"{months:g} months after {today} is beyond the calendar: say that it is longer than "
            "can be told instead."
        ) from None
