"""Units with interval-censored times and covariates, and laws of log time fitted to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from errcomp.halflife.estimators.intervals import checked_intervals, numbered_clusters
from errcomp.halflife.estimators.location_scale import Ends, Maximum, newton, scores

__all__ = [
    "HALF",
    "LAWS",
    "Law",
    "Units",
    "bounds_of",
    "cutoff",
    "design_effect",
    "ends_of",
    "maximum",
]

Floats = NDArray[np.float64]
#: Laws of the time to expiry.
Law = Literal["exponential", "weibull", "log-normal"]

#: All laws.
LAWS: tuple[Law, ...] = ("exponential", "weibull", "log-normal")
#: log(log 2): where half of a Weibull law has gone.
_LOGLOG2 = math.log(math.log(2.0))
HALF: dict[Law, float] = {"exponential": _LOGLOG2, "weibull": _LOGLOG2, "log-normal": 0.0}
_FEWEST_EVENTS: dict[Law, int] = {"exponential": 1, "weibull": 3, "log-normal": 3}
#: Largest and smallest 1/sigma that is told from intervals.
_STEEP, _FLAT = 50.0, 0.05
#: Log-likelihood of a unit (with its sign) that says that the law is sure of all of them.
_CERTAIN = 1e-6
#: Log of a factor beyond which a bound is not looked for.
_FAR = math.log(1e6)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Units that expired in (left, right]; equal ones once.

    Attributes
    ----------
    left, right : ndarray, shape (k,)
        Of different rows.
    x : ndarray, shape (k, q)
        Covariates.
    weight : ndarray, shape (k,)
        How many units are alike.
    of, cluster : ndarray of int, shape (n,)
        Row and cluster of each unit.
    """

    left: Floats
    right: Floats
    x: Floats
    weight: Floats
    of: NDArray[np.int64]
    cluster: NDArray[np.int64]

    @classmethod
    def of_intervals(
        cls,
        left: ArrayLike,
        right: ArrayLike,
        clusters: ArrayLike | None = None,
        covariates: Floats | None = None,
    ) -> Self:
        """Check, and join equal units."""
        lower, upper = checked_intervals(left, right)
        cluster = numbered_clusters(clusters, len(lower))
        x = np.empty((len(lower), 0)) if covariates is None else covariates
        rows, of = np.unique(np.column_stack([lower, upper, x]), axis=0, return_inverse=True)
        of = of.ravel()
        return cls(rows[:, 0], rows[:, 1], rows[:, 2:], _counted(of, len(rows)), of, cluster)

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.of)

    @property
    def n_events(self) -> int:
        """Number of units that expired."""
        return int(self.weight[np.isfinite(self.right)].sum())

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(np.unique(self.cluster))

    def take(self, which: NDArray[np.bool_]) -> Self:
        """Return some of the units; rows that none of them has weigh nothing."""
        of = self.of[which]
        weight = _counted(of, len(self.weight))
        return replace(self, weight=weight, of=of, cluster=self.cluster[which])


def _counted(of: NDArray[np.int64], rows: int) -> Floats:
    found: Floats = np.bincount(of, minlength=rows).astype(float)
    return found


def ends_of(
    units: Units, law: Law, *, median: float | None = None, effect: tuple[int, float] | None = None
) -> Ends:
    """Return the ends of intervals as functions of the parameters.

    Parameters are 1/sigma (not of the exponential law), the location and the effects, each over
    sigma. With a log median (where all covariates are 0), or an effect, held, its parameter is
    gone.
    """
    free = law != "exponential"
    slopes, offsets = [], []
    for time in (units.left, units.right):
        there = (time > 0) & np.isfinite(time)
        log_time = np.log(np.where(there, time, 1.0))
        scale = log_time
        columns = [*(-units.x.T)]
        offset = np.zeros(len(time))
        if effect is not None:
            place, value = effect
            scale = scale - value * units.x[:, place]
            del columns[place]
        if median is None:
            columns.insert(0, -np.ones(len(time)))
        else:
            scale, offset = scale - median, offset + HALF[law]
        if free:
            columns.insert(0, scale)
        else:
            offset = offset + scale
        slopes.append(np.column_stack(columns) if columns else np.empty((len(time), 0)))
        offsets.append(offset)
    return Ends(
        slopes[0],
        slopes[1],
        offsets[0],
        offsets[1],
        units.left > 0,
        np.isfinite(units.right),
        units.weight,
        law == "log-normal",
    )


def maximum(units: Units, law: Law) -> Maximum | str:
    """Return the parameters of largest likelihood, or why there are none."""
    fewest = _FEWEST_EVENTS[law] + units.x.shape[1]
    if units.n_events < fewest:
        return f"{units.n_events} of {units.n} units expired; the {law} law needs {fewest} or more."
    if units.n_clusters == 1 < units.n:
        return f"the {units.n} units are one cluster: what they share cannot be told from chance."
    ends = ends_of(units, law)
    found = newton(ends, _start(units, law), positive=law != "exponential")
    steep = law != "exponential" and found.theta[0] > _STEEP
    if steep or found.log_likelihood > -_CERTAIN * units.n:
        return f"all units can have expired at once: the intervals do not tell a {law} law."
    if law != "exponential" and found.theta[0] < _FLAT:
        return f"the units expired at times too far apart for a {law} law."
    if not found.converged or np.linalg.cond(found.curvature) > 1e12:
        return f"the intervals do not tell the parameters of a {law} law."
    return found


def _start(units: Units, law: Law) -> Floats:
    """Return parameters under which no unit is impossible."""
    time = np.where(np.isfinite(units.right), (units.left + units.right) / 2, units.left)
    log_time = np.log(np.maximum(time, 1e-3 * time.max()))
    location = float(np.average(log_time, weights=units.weight))
    if law == "exponential":
        return np.concatenate([[location], np.zeros(units.x.shape[1])])
    slope = 1 / max(float(np.ptp(log_time)) / 2, 0.5)
    return np.concatenate([[slope, slope * location], np.zeros(units.x.shape[1])])


def design_effect(units: Units, law: Law, found: Maximum, gradient: Floats) -> float:
    """Return how much clusters add to the variance of a figure with this gradient; at least 1."""
    k = units.n_clusters
    if k == units.n:
        return 1.0
    influence = scores(ends_of(units, law), found.theta) @ np.linalg.solve(
        found.curvature, gradient
    )
    of_cluster = np.bincount(units.cluster, influence[units.of])
    alone = float(units.weight @ influence**2)
    return max(float(of_cluster @ of_cluster) * k / (k - 1) / alone, 1.0) if alone > 0 else 1.0


def cutoff(units: Units, level: float, free: int) -> float:
    """Return what twice the log-likelihood ratio exceeds by chance; clusters count as few units."""
    # Not scipy.stats, which takes a second to import.
    d, tail, few = units.n_events, (1 - level) / 2, 1.0
    if units.n_clusters < units.n:
        few = float(
            special.stdtrit(units.n_clusters - 1, tail) / special.stdtrit(units.n - 1, tail)
        )
    if free == 1:
        # The mean of the ratio of an exponential law is 1 + 1/(6 d) (Bartlett).
        return float(special.chdtri(1, 1 - level) * (1 + 1 / (6 * d)) * few**2)
    rest = d - free + 1
    return float(d * np.log1p(special.stdtrit(rest, tail) ** 2 / rest) * few**2)


def bounds_of(
    excess: Callable[[float], float], at: float, step: float
) -> tuple[float | None, float | None]:
    """Return where a profile on either side of its maximum is rejected; None where nowhere."""
    from scipy.optimize import brentq

    found: list[float | None] = []
    for sign in (-1.0, 1.0):
        inner, outer, width = at, at + sign * step, step
        while excess(outer) < 0 and abs(outer - at) < _FAR:
            width *= 2
            inner, outer = outer, at + sign * width
        rejected = excess(outer) >= 0
        found.append(float(brentq(excess, inner, outer, xtol=1e-5)) if rejected else None)
    return found[0], found[1]
