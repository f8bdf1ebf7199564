r"""Posterior of group medians under a common normal, by sums over a grid: no sampling, no seed.

Given the centre m, the spread tau and the scale sigma the groups are independent, so that one sum
over log medians for each group is all there is to do for each (m, tau, sigma).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from errcomp.halflife._laws import HALF, Law
from errcomp.halflife._location_scale import log_between

__all__ = ["PRIORS", "Posterior", "Times", "posterior"]

Floats = NDArray[np.float64]

#: Standard deviation of the log centre around the log of how long series are seen; that of the
#: half-normal spread of groups; median and log standard deviation of the log-normal scale.
PRIORS = {"center_sd": 2.0, "tau_sd": 1.0, "sigma_median": 0.8, "sigma_log_sd": 0.7}
#: Box that is looked at first: log centre (from that of the prior), log tau, log sigma.
_BOX = ((-6.0, 6.0), (np.log(0.03), np.log(3.5)), (np.log(0.06), np.log(6.0)))
#: Points of each axis, on successively narrower boxes.
_POINTS = ((13, 13, 13), (15, 21, 17), (17, 31, 21), (21, 41, 25))
#: Weight below which a plane of the grid is outside the next box.
_NEGLIGIBLE = 1e-6
#: Most points of log medians, and standard deviations that they reach beyond the centre.
_MOST_MEDIANS, _REACH = 3000, 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Different intervals, and how many units of each group have them.

    Attributes
    ----------
    log_left, log_right : ndarray, shape (k,)
        -inf and inf where there is no end.
    counts : ndarray, shape (groups, k)
    law : {"exponential", "weibull", "log-normal"}
    center : float
        Of the prior of the log centre.
    """

    log_left: Floats
    log_right: Floats
    counts: Floats
    law: Law
    center: float

    def log_likelihood(self, log_medians: Floats, sigma: float) -> Floats:
        """Return that of each group at each log median, shape (groups, medians)."""
        found = np.zeros((len(self.counts), len(log_medians)))
        for k in range(len(self.log_left)):
            a = (self.log_left[k] - log_medians) / sigma + HALF[self.law]
            b = (self.log_right[k] - log_medians) / sigma + HALF[self.law]
            one = np.maximum(log_between(a, b, self.law == "log-normal"), -1e6)
            found += self.counts[:, k, None] * one
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Marginal distributions on grids.

    Attributes
    ----------
    log_medians : ndarray, shape (k,)
    groups : ndarray, shape (groups, k)
        Probability of each log median, of each group.
    new : ndarray, shape (k,)
        That of a group that was not seen.
    center, log_tau, log_sigma : tuple of ndarray
        Values and probabilities.
    """

    log_medians: Floats
    groups: Floats
    new: Floats
    center: tuple[Floats, Floats]
    log_tau: tuple[Floats, Floats]
    log_sigma: tuple[Floats, Floats]


def posterior(times: Times) -> tuple[Posterior, Posterior]:
    """Return the posterior on the finest grid, and on the one before, to be compared."""
    box = [(times.center + low, times.center + high) for low, high in _BOX[:1]]
    box += list(_BOX[1:])
    found = []
    for points in _POINTS:
        axes = [np.linspace(*ends, n) for ends, n in zip(box, points, strict=True)]
        weights, one = _on_grid(times, axes)
        found.append(one)
        box = [_narrowed(axes[i], weights, i) for i in range(3)]
    return found[-1], found[-2]


def _on_grid(times: Times, axes: list[Floats]) -> tuple[Floats, Posterior]:
    center, tau, sigma = axes[0], np.exp(axes[1]), np.exp(axes[2])
    grid = _log_medians(times, center, tau, sigma)
    m, t = (one.ravel() for one in np.meshgrid(center, tau, indexing="ij"))
    bell = np.exp(-0.5 * ((grid - m[:, None]) / t[:, None]) ** 2)
    bell /= bell.sum(axis=1, keepdims=True)
    # On axes in logs the densities of tau and sigma are multiplied by their values.
    prior = (
        -0.5 * ((m - times.center) / PRIORS["center_sd"]) ** 2
        - 0.5 * (t / PRIORS["tau_sd"]) ** 2
        + np.log(t)
    )
    shape = (len(sigma), len(m))
    log_weight = np.empty(shape)
    parts = []
    for j, scale in enumerate(sigma):
        log_likelihood = times.log_likelihood(grid, float(scale))
        most = log_likelihood.max(axis=1)
        likelihood = np.exp(log_likelihood - most[:, None])
        seen = np.maximum(bell @ likelihood.T, 1e-300)
        narrow = (np.log(scale / PRIORS["sigma_median"])) / PRIORS["sigma_log_sd"]
        log_weight[j] = prior - 0.5 * narrow**2 + np.log(seen).sum(axis=1) + most.sum()
        parts.append((likelihood, seen))
    weight = np.exp(log_weight - logsumexp(log_weight))
    groups = np.zeros((len(times.counts), len(grid)))
    for w, (likelihood, seen) in zip(weight, parts, strict=True):
        groups += likelihood * ((w[:, None] / seen).T @ bell)
    whole = weight.reshape(len(sigma), len(center), len(tau)).transpose(1, 2, 0)
    return whole, Posterior(
        grid,
        groups / groups.sum(axis=1, keepdims=True),
        weight.sum(axis=0) @ bell,
        (center, whole.sum(axis=(1, 2))),
        (axes[1], whole.sum(axis=(0, 2))),
        (axes[2], whole.sum(axis=(0, 1))),
    )


def _log_medians(times: Times, center: Floats, tau: Floats, sigma: Floats) -> Floats:
    """Return log medians that are dense against the spread of groups and what one group tells."""
    low, high = center[0] - _REACH * tau[-1], center[-1] + _REACH * tau[-1]
    of_group = float(sigma[0]) / np.sqrt(times.counts.sum(axis=1).max())
    step = min(float(tau[0]), of_group) / 2
    return np.linspace(low, high, int(np.clip((high - low) / step, 200, _MOST_MEDIANS)))


def _narrowed(axis: Floats, weights: Floats, i: int) -> tuple[float, float]:
    """Return the part of an axis that has weight, and a point on either side."""
    along = weights.sum(axis=tuple(j for j in range(3) if j != i))
    kept = np.flatnonzero(along > _NEGLIGIBLE * along.max())
    low, high = max(int(kept[0]) - 1, 0), min(int(kept[-1]) + 1, len(axis) - 1)
    return float(axis[low]), float(axis[high])
