r"""Waiting and response times of a station with c servers, in units of the mean service time.

Arrays of utilisations ρ in [0, 1) in, arrays out; nothing is checked here.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from errcomp.propagation.terms import Floats

__all__ = ["mean_response", "probability_of_waiting", "response_quantile"]

_ITERATIONS = 80
_REGULAR = 1e-16


def probability_of_waiting(utilisation: Floats, servers: int) -> Floats:
    r"""Erlang's C: the share of customers that find all servers busy (M/M/c).

    .. math::
        B = \frac{a^c / c!}{\sum_{k \le c} a^k / k!}, \qquad
        C = \frac{B}{1 - \rho (1 - B)}, \qquad a = c \rho
    """
    offered = servers * utilisation
    log_term = special.xlogy(servers, offered) - offered - special.gammaln(servers + 1)
    blocked = np.exp(log_term) / special.pdtr(servers, offered)
    return np.asarray(blocked / (1 - utilisation * (1 - blocked)))


def mean_response(
    utilisation: Floats, servers: int, service_cv2: float, arrival_cv2: float
) -> Floats:
    """Return the mean of wait and service (Allen and Cunneen)."""
    waiting = probability_of_waiting(utilisation, servers)
    return 1 + waiting * _mean_wait_of_those_who_wait(
        utilisation, servers, service_cv2, arrival_cv2
    )


def _mean_wait_of_those_who_wait(
    utilisation: Floats, servers: int, service_cv2: float, arrival_cv2: float
) -> Floats:
    return (arrival_cv2 + service_cv2) / 2 / (servers * (1 - utilisation))


def response_quantile(
    utilisation: Floats, servers: int, service_cv2: float, arrival_cv2: float, q: float
) -> Floats:
    r"""Return the q-quantile of wait plus service.

    The wait is 0 with probability 1 − C, else exponential with the mean of Allen and Cunneen; the
    service is exponential behind a fixed part (cv² < 1) or one of two exponentials (cv² > 1), with
    the mean and variance given. Of each the tail of the sum is known:

    .. math::
        P(T > t) = (1 - C) e^{-t/b} + C \, \frac{b e^{-t/b} - w e^{-t/w}}{b - w}
    """
    waiting = probability_of_waiting(utilisation, servers)
    wait = _mean_wait_of_those_who_wait(utilisation, servers, service_cv2, arrival_cv2)
    if service_cv2 < _REGULAR:
        with np.errstate(divide="ignore"):  # nobody waits
            beyond = np.log(waiting) - math.log1p(-q)
        return np.asarray(1 + wait * np.maximum(beyond, 0))
    fixed = max(0.0, 1 - math.sqrt(service_cv2))
    branches = [(1.0, 1 - fixed)]
    if service_cv2 > 1:
        skew = math.sqrt((service_cv2 - 1) / (service_cv2 + 1))
        branches = [(p, 0.5 / p) for p in ((1 + skew) / 2, (1 - skew) / 2)]
    return fixed + _solve(waiting, wait, branches, 1 - q)


def _solve(
    waiting: Floats, wait: Floats, branches: list[tuple[float, float]], target: float
) -> Floats:
    """Newton on the logarithm of the tail, kept within a bracket by bisection."""
    longest = max(mean for _, mean in branches)
    low = np.zeros_like(waiting)
    # More than twice the larger of the two quantiles at which each part alone is rarer than half.
    high = 2 * np.maximum(longest, wait) * (math.log(2 / target) + 1)
    t = low + 0.5 * high
    for _ in range(_ITERATIONS):
        tail, density = _tail(t, waiting, wait, branches)
        above = tail > target
        low, high = np.where(above, t, low), np.where(above, high, t)
        with np.errstate(divide="ignore", invalid="ignore"):  # both underflow far out
            step = t + np.log(tail / target) * tail / density
        inside = (step >= low) & (step <= high)
        following = np.where(inside, step, (low + high) / 2)
        if np.all(np.abs(following - t) <= 1e-13 * following):
            break
        t = following
    return t


def _tail(
    t: Floats, waiting: Floats, wait: Floats, branches: list[tuple[float, float]]
) -> tuple[Floats, Floats]:
    """Return P(T > t) and the density; with the two rates m < M, stable where they are equal."""
    tail, density = np.zeros_like(t), np.zeros_like(t)
    for share, mean in branches:
        alone = np.exp(-t / mean)
        slow, fast = 1 / np.maximum(mean, wait), 1 / np.minimum(mean, wait)
        together = np.exp(-slow * t) * t * special.exprel(-(fast - slow) * t)
        tail += share * ((1 - waiting) * alone + waiting * (np.exp(-slow * t) + slow * together))
        density += share * ((1 - waiting) * alone / mean + waiting * slow * fast * together)
    return tail, density
