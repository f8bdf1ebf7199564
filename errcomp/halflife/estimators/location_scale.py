r"""Likelihood of interval-censored log times under a law of location and scale, and its maximum.

Written in :math:`z = \phi \log t - \eta` with :math:`\phi = 1/\sigma` the log-likelihood is concave
where the density is log-concave (Burridge 1981, doi:10.1111/j.2517-6161.1981.tb01149.x), so that
Newton's method from anywhere finds the only maximum, with covariates and with a parameter held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

__all__ = ["Ends", "Maximum", "log_between", "log_likelihood", "newton", "scores"]

Floats = NDArray[np.float64]

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
        Finite; those of ends that do not exist do not matter.
    offset_left, offset_right : ndarray, shape (k,)
    has_left, has_right : ndarray of bool, shape (k,)
        Whether the unit was seen valid, and seen expired.
    weight : ndarray, shape (k,)
    normal : bool
        Of log T: normal, otherwise smallest extreme value.
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
    found: Floats = log_ndtr(-z) if normal else -np.exp(np.minimum(z, 700.0))
    return found


def _log_density(z: Floats, normal: bool) -> Floats:
    found: Floats = -0.5 * z**2 - _ROOT if normal else z - np.exp(np.minimum(z, 700.0))
    return found


def log_between(a: Floats, b: Floats, normal: bool) -> Floats:
    """Return log(S(a) - S(b)) for a < b, where -inf and inf are no ends."""
    if normal:
        # In the upper tail differences of S are kept, in the lower one those of its complement.
        flip = b < -a
        a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    top, bottom = _log_survival(a, normal), _log_survival(b, normal)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = top + np.log(-np.expm1(np.minimum(bottom - top, 0.0)))
    return np.where(np.isnan(found), -np.inf, found)


def _parts(
    ends: Ends, theta: Floats
) -> tuple[Floats, tuple[Floats, Floats], tuple[Floats, Floats, Floats]]:
    """Return log-likelihoods, and first and second derivatives by both ends."""
    a = np.where(ends.has_left, ends.slope_left @ theta + ends.offset_left, -np.inf)
    b = np.where(ends.has_right, ends.slope_right @ theta + ends.offset_right, np.inf)
    found = log_between(a, b, ends.normal)
    first, second = [], []
    for z, there, sign in ((a, ends.has_left, -1.0), (b, ends.has_right, 1.0)):
        at = np.where(there, z, 0.0)
        bend = -at if ends.normal else 1 - np.exp(np.minimum(at, 700.0))
        # Of what is impossible to rounding there are no derivatives; nobody takes them.
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.where(there, np.exp(_log_density(at, ends.normal) - found), 0.0)
            first.append(sign * ratio)
            second.append(sign * ratio * bend - ratio**2)
    with np.errstate(over="ignore", invalid="ignore"):
        both = -first[0] * first[1]
    return found, (first[0], first[1]), (second[0], second[1], both)


def _total(ends: Ends, each: Floats) -> float:
    """Return the sum over observations; what nobody has may be impossible."""
    counted = ends.weight > 0
    return float(ends.weight[counted] @ each[counted])


def log_likelihood(ends: Ends, theta: Floats) -> float:
    """Return the log-likelihood of all observations."""
    found, _, _ = _parts(ends, theta)
    return _total(ends, found)


def scores(ends: Ends, theta: Floats) -> Floats:
    """Return the derivative of each observation's log-likelihood, shape (k, p)."""
    _, (left, right), _ = _parts(ends, theta)
    return left[:, None] * ends.slope_left + right[:, None] * ends.slope_right


def newton(ends: Ends, start: Floats, positive: bool) -> Maximum:
    """Maximise from a start; the first parameter stays positive where asked."""
    theta = start.astype(float)
    found, first, second = _parts(ends, theta)
    curvature = np.eye(len(theta))
    for _ in range(_ROUNDS):
        if np.isfinite(_total(ends, found)):
            break
        # Impossible to rounding: a wider law is less so.
        theta = theta / 2
        found, first, second = _parts(ends, theta)
    else:
        return Maximum(theta, -np.inf, curvature, False)
    value = _total(ends, found)
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
        ridge = 1e-10 * max(float(np.trace(curvature)), 1e-6) * np.eye(len(theta))
        step = np.linalg.lstsq(curvature + ridge, gradient, rcond=None)[0]
        gain = float(gradient @ step)
        if gain < _GAIN:
            return Maximum(theta, value, curvature, True)
        for _ in range(40):
            if not positive or theta[0] + step[0] > 0:
                found, new_first, new_second = _parts(ends, theta + step)
                if _total(ends, found) > value:
                    break
            step = step / 2
        else:
            # No step gains more than rounding.
            return Maximum(theta, value, curvature, gain < _ROUNDING * abs(value))
        theta, value = theta + step, _total(ends, found)
        first, second = new_first, new_second
    return Maximum(theta, value, curvature, False)
