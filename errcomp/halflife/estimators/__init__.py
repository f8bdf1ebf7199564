r"""When series of validations expire: single series and groups, with and without a distribution.

This module has units with interval-censored times and covariates, and distributions of log time
fitted to them. In :math:`z = \phi \log t - \eta` with :math:`\phi = 1/\sigma` the log-likelihood is
concave if the density is log-concave (Burridge 1981, doi:10.1111/j.2517-6161.1981.tb01149.x).
Newton's method then finds the only maximum from any start, with covariates and with a fixed
parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from errcomp.errors import InputError, describe_rows

Floats = NDArray[np.float64]


def checked_intervals(left: ArrayLike, right: ArrayLike) -> tuple[Floats, Floats]:
    """Return the bounds of intervals as floats.

    Raises
    ------
    InputError
        There are no intervals, shapes differ, or an interval is empty, negative or NaN.
    """
    lower, upper = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if lower.ndim != 1 or lower.shape != upper.shape or not len(lower):
        raise InputError(
            "left and right must have one value per observed unit (e.g. a series), got shapes "
            f"{lower.shape} and {upper.shape}."
        )
    bad = ~((lower >= 0) & (lower < upper) & np.isfinite(lower))
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(
            "the interval (left, right] in which a unit expired must have 0 <= left < right, got "
            f"({lower[i]}, {upper[i]}] in "
            f"{describe_rows((np.flatnonzero(bad) + 1).tolist(), word='unit')}. Leave out units "
            "that had already expired at the start."
        )
    return lower, upper


def numbered_clusters(clusters: ArrayLike | None, n: int) -> NDArray[np.int64]:
    """Return the clusters of n units as numbers from 0; by default each unit is a cluster.

    Raises
    ------
    InputError
        The number of clusters is not n.
    """
    if clusters is None:
        return np.arange(n)
    names = np.asarray(clusters)
    if names.shape != (n,):
        raise InputError(f"clusters must be {n} values, one per unit, got shape {names.shape}.")
    return np.asarray(np.unique(names, return_inverse=True)[1])


_ROUNDS = 100
#: Log-likelihood that a Newton step may leave to gain.
_GAIN = 1e-10
_ROUNDING = 1e-6
_ROOT = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Ends of intervals as linear functions of the parameters: z = slope @ theta + offset.

    Attributes
    ----------
    slope_left, slope_right : ndarray, shape (k, p)
        Finite; values of missing ends are ignored.
    offset_left, offset_right : ndarray, shape (k,)
    has_left, has_right : ndarray of bool, shape (k,)
        Whether the unit was observed valid, and observed expired.
    weight : ndarray, shape (k,)
    normal : bool
        Whether log T is normal; otherwise it has the smallest extreme value distribution.
    """

    slope_left: Floats
    slope_right: Floats
    offset_left: Floats
    offset_right: Floats
    has_left: NDArray[np.bool_]
    has_right: NDArray[np.bool_]
    weight: Floats
    normal: bool


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """Parameters of largest likelihood.

    Attributes
    ----------
    theta : ndarray, shape (p,)
    log_likelihood : float
    curvature : ndarray, shape (p, p)
        Minus the second derivative.
    converged : bool
    """

    theta: Floats
    log_likelihood: float
    curvature: Floats
    converged: bool


def _log_survival(z: Floats, normal: bool) -> Floats:
    return np.asarray(special.log_ndtr(-z) if normal else -np.exp(np.minimum(z, 700.0)))


def _log_density(z: Floats, normal: bool) -> Floats:
    return np.asarray(-0.5 * z**2 - _ROOT if normal else z - np.exp(np.minimum(z, 700.0)))


def log_between(a: Floats, b: Floats, normal: bool) -> Floats:
    """Return log(S(a) - S(b)) for a < b; -inf and inf stand for missing ends."""
    if normal:
        # The upper tail uses differences of S, the lower tail those of its complement.
        flip = b < -a
        a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    top, bottom = _log_survival(a, normal), _log_survival(b, normal)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass: Floats = top + np.log(-np.expm1(np.minimum(bottom - top, 0.0)))
    return np.where(np.isnan(log_mass), -np.inf, log_mass)


def _parts(
    ends: Ends, theta: Floats
) -> tuple[Floats, tuple[Floats, Floats], tuple[Floats, Floats, Floats]]:
    """Return log-likelihoods, and first and second derivatives by both ends."""
    a = np.where(ends.has_left, ends.slope_left @ theta + ends.offset_left, -np.inf)
    b = np.where(ends.has_right, ends.slope_right @ theta + ends.offset_right, np.inf)
    log_likelihoods = log_between(a, b, ends.normal)
    first, second = [], []
    # Values without an observation may be impossible: their derivatives are infinite.
    counted = ends.weight > 0
    for z, has_end, sign in ((a, ends.has_left, -1.0), (b, ends.has_right, 1.0)):
        has_end = has_end & counted
        at = np.where(has_end, z, 0.0)
        bend = -at if ends.normal else 1 - np.exp(np.minimum(at, 700.0))
        # Impossible values (to rounding) have no derivatives; they are not used.
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.where(has_end, np.exp(_log_density(at, ends.normal) - log_likelihoods), 0.0)
            first.append(sign * ratio)
            second.append(sign * ratio * bend - ratio**2)
    with np.errstate(over="ignore", invalid="ignore"):
        both = -first[0] * first[1]
    return log_likelihoods, (first[0], first[1]), (second[0], second[1], both)


def _total(ends: Ends, each: Floats) -> float:
    """Return the sum over observations; values without an observation may be impossible."""
    counted = ends.weight > 0
    return float(ends.weight[counted] @ each[counted])


def log_likelihood(ends: Ends, theta: Floats) -> float:
    """Return the log-likelihood of all observations."""
    log_likelihoods, _, _ = _parts(ends, theta)
    return _total(ends, log_likelihoods)


def scores(ends: Ends, theta: Floats) -> Floats:
    """Return the derivative of each observation's log-likelihood, shape (k, p)."""
    _, (left, right), _ = _parts(ends, theta)
    return left[:, None] * ends.slope_left + right[:, None] * ends.slope_right


def newton(ends: Ends, start: Floats, positive: bool) -> Maximum:
    """Maximise from a start; the first parameter stays positive if asked."""
    theta = start.astype(float)
    log_likelihoods, first, second = _parts(ends, theta)
    identity = np.eye(len(theta))
    curvature = identity
    for _ in range(_ROUNDS):
        if np.isfinite(_total(ends, log_likelihoods)):
            break
        # Impossible to rounding: try a wider distribution.
        theta = theta / 2
        log_likelihoods, first, second = _parts(ends, theta)
    else:
        return Maximum(theta, -np.inf, curvature, False)
    value = _total(ends, log_likelihoods)
    for _ in range(_ROUNDS):
        w, (a, b) = ends.weight, first
        gradient = (w * a) @ ends.slope_left + (w * b) @ ends.slope_right
        cross = ends.slope_left.T @ ((w * second[2])[:, None] * ends.slope_right)
        curvature = -(
            ends.slope_left.T @ ((w * second[0])[:, None] * ends.slope_left)
            + ends.slope_right.T @ ((w * second[1])[:, None] * ends.slope_right)
            + cross
            + cross.T
        )
        raised = curvature + 1e-10 * max(float(np.trace(curvature)), 1e-6) * identity
        # A profile has one parameter, and many are fitted.
        one = len(theta) == 1
        step = gradient / raised[0] if one else np.linalg.lstsq(raised, gradient, rcond=None)[0]
        gain = float(gradient @ step)
        if gain < _GAIN:
            return Maximum(theta, value, curvature, True)
        for _ in range(40):
            if not positive or theta[0] + step[0] > 0:
                log_likelihoods, new_first, new_second = _parts(ends, theta + step)
                if _total(ends, log_likelihoods) > value:
                    break
            step = step / 2
        else:
            # No step gains more than rounding.
            return Maximum(theta, value, curvature, gain < _ROUNDING * abs(value))
        theta, value = theta + step, _total(ends, log_likelihoods)
        first, second = new_first, new_second
    return Maximum(theta, value, curvature, False)


#: Distributions of the time to expiry.
Law = Literal["exponential", "weibull", "log-normal"]

#: All distributions.
LAWS: tuple[Law, ...] = ("exponential", "weibull", "log-normal")
#: log(log 2): the median of a Weibull distribution.
_LOGLOG2 = math.log(math.log(2.0))
HALF: dict[Law, float] = {"exponential": _LOGLOG2, "weibull": _LOGLOG2, "log-normal": 0.0}
_FEWEST_EVENTS: dict[Law, int] = {"exponential": 1, "weibull": 3, "log-normal": 3}
#: Largest and smallest 1/sigma that intervals can determine.
_STEEP, _FLAT = 50.0, 0.05
#: Log-likelihood per unit (with its sign) of a distribution that predicts all units with certainty.
_CERTAIN = 1e-6
#: Log of the factor within which bounds are searched.
_FAR = math.log(1e6)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Units that expired in (left, right]; equal ones once.

    Attributes
    ----------
    left, right : ndarray, shape (k,)
        Different intervals.
    x : ndarray, shape (k, q)
        Covariates.
    weight : ndarray, shape (k,)
        Number of units with this interval and these covariates.
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
    def counts(self) -> tuple[int, int, int]:
        """Numbers of units, of those that expired, and of clusters."""
        return self.n, self.n_events, self.n_clusters

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(np.unique(self.cluster))

    def take(self, which: NDArray[np.bool_]) -> Self:
        """Return some of the units; rows without a unit get the weight 0."""
        of = self.of[which]
        weight = _counted(of, len(self.weight))
        return replace(self, weight=weight, of=of, cluster=self.cluster[which])


def _counted(of: NDArray[np.int64], rows: int) -> Floats:
    return np.bincount(of, minlength=rows).astype(float)


def check_law(law: Law) -> None:
    """Raise unless a distribution is known."""
    if law not in LAWS:
        raise InputError(f"law must be one of {', '.join(LAWS)}, got {law!r}.")


def ends_of(
    units: Units, law: Law, *, median: float | None = None, effect: tuple[int, float] | None = None
) -> Ends:
    """Return the ends of intervals as functions of the parameters.

    Parameters are 1/sigma (except for the exponential distribution), the location and the effects,
    each over sigma. A fixed log median (at covariates of 0) or effect removes its parameter.
    """
    free = law != "exponential"
    slopes, offsets = [], []
    for time in (units.left, units.right):
        has_end = (time > 0) & np.isfinite(time)
        log_time = np.log(np.where(has_end, time, 1.0))
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
    """Return the parameters of largest likelihood, or why they are refused."""
    fewest = _FEWEST_EVENTS[law] + units.x.shape[1]
    if units.n_events < fewest:
        return (
            f"{units.n_events} of {units.n} series expired; at least {fewest} must have expired to "
            f"fit the {law} distribution."
        )
    if units.n_clusters == 1 < units.n:
        return (
            f"all {units.n} series are in one cluster, so changes that they share cannot be "
            "distinguished from chance."
        )
    ends = ends_of(units, law)
    fit = newton(ends, _start(units, law), positive=law != "exponential")
    steep = law != "exponential" and fit.theta[0] > _STEEP
    if steep or fit.log_likelihood > -_CERTAIN * units.n:
        return (
            f"all series may have expired at the same time, so the {law} distribution cannot be "
            "determined."
        )
    if law != "exponential" and fit.theta[0] < _FLAT:
        return f"the times of expiry are too far apart for the {law} distribution."
    if not fit.converged or np.linalg.cond(fit.curvature) > 1e12:
        return f"the times of expiry are not known well enough to fit the {law} distribution."
    return fit


def _start(units: Units, law: Law) -> Floats:
    """Return parameters under which no unit is impossible."""
    time = np.where(np.isfinite(units.right), (units.left + units.right) / 2, units.left)
    log_time = np.log(np.maximum(time, 1e-3 * time.max()))
    location = float(np.average(log_time, weights=units.weight))
    if law == "exponential":
        return np.concatenate([[location], np.zeros(units.x.shape[1])])
    slope = 1 / max(float(np.ptp(log_time)) / 2, 0.5)
    return np.concatenate([[slope, slope * location], np.zeros(units.x.shape[1])])


def design_effect(units: Units, law: Law, fit: Maximum, gradient: Floats) -> float:
    """Return the variance inflation by clusters for an estimate with this gradient; at least 1."""
    k = units.n_clusters
    if k == units.n:
        return 1.0
    influence = scores(ends_of(units, law), fit.theta) @ np.linalg.solve(fit.curvature, gradient)
    of_cluster = np.bincount(units.cluster, influence[units.of])
    alone = float(units.weight @ influence**2)
    return max(float(of_cluster @ of_cluster) * k / (k - 1) / alone, 1.0) if alone > 0 else 1.0


def cutoff(units: Units, level: float, free: int) -> float:
    """Return the critical value of twice the log-likelihood ratio; clusters count as few units."""
    # Avoids scipy.stats, which takes a second to import.
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


def bounds_of(excess: Callable[[float], float], at: float, step: float) -> tuple[float, float]:
    """Return where a profile on either side of its maximum is rejected; infinite if nowhere."""
    from scipy.optimize import brentq

    # Each is a fit of its own, and the ends are asked for again.
    known = cache(excess)
    bounds = []
    for sign in (-1.0, 1.0):
        inner, outer, width = at, at + sign * step, step
        while known(outer) < 0 and abs(outer - at) < _FAR:
            width *= 2
            inner, outer = outer, at + sign * width
        rejected = known(outer) >= 0
        end = brentq(known, inner, outer, xtol=1e-5) if rejected else sign * math.inf
        bounds.append(float(end))
    return bounds[0], bounds[1]
