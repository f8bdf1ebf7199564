r"""How a covariate stretches the time to doubling, such as the age of a workload.

The logarithm of the time is linear in the covariates (accelerated failure time), fitted to
interval-censored times with the likelihood of `errcomp.halflife.estimators.parametric`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_names, describe_rows
from errcomp.halflife.estimators.laws import (
    LAWS,
    Law,
    Units,
    bounds_of,
    cutoff,
    design_effect,
    ends_of,
    maximum,
)
from errcomp.halflife.estimators.location_scale import Maximum, newton
from errcomp.halflife.threshold import check_level

if TYPE_CHECKING:
    from errcomp.halflife.estimators.expiry import Expiry

__all__ = ["TimeRatio", "time_ratios"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """How a covariate stretches the time to doubling.

    Attributes
    ----------
    name : str
        Of the covariate.
    ratio, low, high : float or None
        Factor of the time for each unit of the covariate, with bounds; None where refused.
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
    r"""Return how covariates stretch the time to doubling, each with the others held.

    .. math:: \log T = \mu + \sum_j \beta_j x_j + \sigma \varepsilon

    The ratio is :math:`e^{\beta_j}`: 2 says that a series with one more unit of the covariate takes
    twice as long. Its bounds come from the profile likelihood, as those of a median.

    Valid where the covariate acts on log time alike at all of its values, and noise is small
    against the threshold: expiries are taken at face value. Misleads where it stands for something
    else that differs between the series.

    Parameters
    ----------
    expiry : Expiry
    covariates : mapping of str to array_like, each one value per series of the panel
        Finite for all series that can be judged.
    law : {"exponential", "weibull", "log-normal"}
    level : float

    Returns
    -------
    tuple of TimeRatio
        In the order of the covariates.

    Raises
    ------
    InputError
        There is no covariate, one is constant or not finite, or its length is wrong; the law is
        not known.

    References
    ----------
    Wei (1992), "The accelerated failure time model: a useful alternative to the Cox regression
    model in survival analysis", Statistics in Medicine 11, doi:10.1002/sim.4780111409.
    """
    check_level(level)
    if law not in LAWS:
        raise InputError(f"law must be one of {', '.join(LAWS)}, got {law!r}.")
    names, x = list(covariates), _columns(covariates, expiry)
    spread = x.std(axis=0)
    constant = [name for name, one in zip(names, spread, strict=True) if one == 0]
    if constant:
        raise InputError(
            f"{describe_names(constant)}: the same for all series. Leave it out, or add series."
        )
    left, right = expiry.intervals("face")
    units = Units.of_intervals(left, right, expiry.cluster, (x - x.mean(axis=0)) / spread)
    counts = (units.n, units.n_events, units.n_clusters)
    found = maximum(units, law)
    if isinstance(found, str):
        return tuple(
            TimeRatio(name, None, None, None, level, law, *counts, refused=found) for name in names
        )
    return tuple(
        _ratio(units, law, level, found, j, name, float(spread[j])) for j, name in enumerate(names)
    )


def _ratio(
    units: Units, law: Law, level: float, found: Maximum, j: int, name: str, spread: float
) -> TimeRatio:
    """Profile the likelihood over the effect of the standardised covariate j."""
    free = law != "exponential"
    place = 1 + free + j
    scale = float(found.theta[0]) if free else 1.0
    at = float(found.theta[place]) / scale
    gradient = np.zeros(len(found.theta))
    gradient[0] = -at / scale if free else 0.0
    gradient[place] = 1 / scale
    limit = cutoff(units, level, len(found.theta))
    limit *= design_effect(units, law, found, gradient)
    others = np.delete(found.theta, place)

    def excess(held: float) -> float:
        got = newton(ends_of(units, law, effect=(j, held)), others, positive=free)
        return 2 * (found.log_likelihood - got.log_likelihood) - limit

    step = float(np.sqrt(gradient @ np.linalg.solve(found.curvature, gradient)))
    low, high = bounds_of(excess, at, step)
    return TimeRatio(
        name,
        math.exp(at / spread),
        0.0 if low is None else math.exp(low / spread),
        math.inf if high is None else math.exp(high / spread),
        level,
        law,
        units.n,
        units.n_events,
        units.n_clusters,
    )


def _columns(covariates: Mapping[str, ArrayLike], expiry: Expiry) -> Floats:
    """Return the covariates of the series that can be judged."""
    if not covariates or not expiry.n:
        what = "covariate" if expiry.n else "series that can be judged"
        raise InputError(f"there is no {what}: a time ratio needs both.")
    columns = []
    for name, given in covariates.items():
        values = np.asarray(given, dtype=float)
        expiry.check_length(len(values), name)
        mine = values[expiry.series]
        bad = ~np.isfinite(mine)
        if bad.any():
            rows = (expiry.series[bad] + 1).tolist()
            raise InputError(
                f"{name} must be finite, got {mine[bad][0]} in "
                f"{describe_rows(rows, word='series')}. Leave these series out."
            )
        columns.append(mine)
    return np.column_stack(columns)
