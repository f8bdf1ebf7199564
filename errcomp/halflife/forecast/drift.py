"""Forecasts from how errors drift: by a normal law of their variance, or by the steps seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from errcomp.errors import InputError
from errcomp.halflife.forecast.checks import as_level, as_times, positive
from errcomp.halflife.forecast.compound_poisson import bounds_by_draws, within_steps
from errcomp.halflife.forecast.results import Forecast
from errcomp.halflife.panel import Clock

__all__ = ["STEPS_ASSUMED", "forecast_drift", "forecast_steps"]

Floats = NDArray[np.float64]

#: What a forecast by steps assumes.
STEPS_ASSUMED = (
    "Steps come at a constant rate, independent of each other, with the sizes seen.",
    "Changes too small to be found as steps are left out.",
    "A model that left its promise and came back counts as within.",
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

    with e the error today where it is known, and s its standard deviation where it is not (the
    calibrated error e0, for any series of a group).

    Valid where drift is the sum of many small changes. Misleads where it is a few large steps: too
    sure at once, too pessimistic later (see the table in
    `errcomp.halflife.forecast.probabilities`); use `forecast_steps` there. A model that left its
    promise and came back counts as within.

    Parameters
    ----------
    ahead : array_like, shape (h,)
        Times from today on, increasing, >= 0.
    c : float
        Mean squared change after one unit of time, >= 0.
    beta : float
        Power, between 0 and 2; 1 is a random walk.
    threshold : float
        Error that was promised, on the log scale, > 0.
    error : float
        Error today.
    spread : float
        Standard deviation of the error today, >= 0: what is not known of it.
    draws : array_like, shape (b, 2), optional
        Draws of (c, beta), e.g. of a bootstrap; the bounds are quantiles over them. Without any
        the bounds are not known.
    unit : {"releases", "months"}
    level : float

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        Values out of range.

    Examples
    --------
    >>> found = forecast_drift([0, 1, 10], c=0.002, beta=1.0, threshold=0.1)
    >>> found.probability.round(3).tolist()
    [1.0, 0.975, 0.52]
    """
    level = as_level(level)
    when = as_times(ahead, "ahead")
    threshold = positive(threshold, "threshold")
    spread = positive(spread, "spread", zero=True)
    law = np.array([[c, beta]], dtype=float)
    all_draws = law if draws is None else np.asarray(draws, dtype=float)
    if all_draws.ndim != 2 or all_draws.shape[1] != 2 or not len(all_draws):
        raise InputError(f"draws must have two columns, c and beta, got shape {all_draws.shape}.")
    for one in (law, all_draws):
        if not (np.isfinite(one).all() and (one >= 0).all() and (one[:, 1] <= 2).all()):
            raise InputError(
                "a variogram law has c >= 0 and beta between 0 and 2, got "
                f"c from {one[:, 0].min():g} to {one[:, 0].max():g} and beta from "
                f"{one[:, 1].min():g} to {one[:, 1].max():g}."
            )
    if not np.isfinite(error):
        raise InputError(f"error must be finite, on the log scale, got {error}.")

    def chance(laws: Floats) -> Floats:
        # Nothing has moved at time 0, whatever the power.
        moved = np.where(when > 0, laws[:, :1] * when ** laws[:, 1:], 0.0)
        return _normal_within(error, np.sqrt(spread**2 + moved), threshold)

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
            "Drift is normal: the sum of many small changes, not a few steps.",
            "It goes on as the law says, also beyond the lags that it was fitted to.",
            "A model that left its promise and came back counts as within.",
        ),
    )


def _normal_within(error: float, sd: Floats, threshold: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = special.ndtr((threshold - error) / sd) - special.ndtr((-threshold - error) / sd)
    return np.where(sd > 0, found, float(abs(error) < threshold))


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
    r"""Forecast from the steps that were seen: is the error within the threshold, ahead?

    .. math:: P\Big(\Big|e + \mathcal N(0, s^2) + \sum_{k=1}^{N_h} J_k\Big| < \theta\Big),
              \qquad N_h \sim \mathrm{Poisson}(h n / T)

    with n steps seen in T units of time over all series, and J drawn from their sizes. Computed by
    the fast Fourier transform on a grid of θ / 256. The bounds are quantiles over draws of the
    rate (gamma, n + 1/2) and of the weights of sizes (Bayesian bootstrap); with fewer than five
    steps, whose sizes say little, any step may or may not be fatal.

    Valid where steps are independent of each other and of time. Misleads where steps below the
    detection limit add up (give what they leave as ``spread``), and where releases differ: a major
    one steps more often.

    Parameters
    ----------
    ahead : array_like, shape (h,)
        Times from today on, increasing, >= 0.
    sizes : array_like, shape (n,)
        Steps on the log scale, with sign; may be empty.
    exposure : float
        Time over which they were seen, summed over series, > 0.
    threshold : float
        Error that was promised, on the log scale, > 0.
    error : float
        Error today.
    spread : float
        Standard deviation of the error today, >= 0.
    unit : {"releases", "months"}
    level : float
    seed : int
        Of the draws behind the bounds.

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        Values out of range.

    References
    ----------
    Rubin (1981), "The Bayesian Bootstrap", doi:10.1214/aos/1176345338. Embrechts and Frei (2009),
    "Panjer recursion versus FFT for compound distributions", doi:10.1007/s00186-008-0249-2.

    Examples
    --------
    >>> found = forecast_steps([0, 1, 10], sizes=[0.2, -0.2] * 10, exposure=400, threshold=0.1)
    >>> found.probability.round(3).tolist()
    [1.0, 0.952, 0.645]
    """
    level = as_level(level)
    when = as_times(ahead, "ahead")
    threshold = positive(threshold, "threshold")
    exposure = positive(exposure, "exposure")
    spread = positive(spread, "spread", zero=True)
    steps = np.asarray(sizes, dtype=float)
    if steps.ndim != 1 or not np.isfinite(steps).all() or not np.isfinite(error):
        raise InputError(
            "sizes of steps must be one row of finite numbers on the log scale, and error a finite "
            f"one, got shape {steps.shape} and error {error}."
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
