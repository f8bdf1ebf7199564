r"""Half-lives of groups of series that share information: a hierarchical survival model.

.. math:: \log T_{gi} = \log m_g + \sigma (\varepsilon_{gi} - \varepsilon_{1/2}), \qquad
          \log m_g \sim N(\mu, \tau^2)

with the median m of each group g (an operator, a device), and a Weibull or log-normal distribution.
A group with few or no expired series is pulled towards the other groups; the more similar the
groups are, the more. Priors: :math:`\mu` normal around the log of half the observed time, standard
deviation 2 (a factor of 7); :math:`\tau` half-normal with 1 (medians of groups differ by a factor
of e); :math:`\sigma` log-normal around 0.8 with 0.7 (Weibull shapes of 0.3 to 5).

Given :math:`\mu, \tau, \sigma` the groups are independent, and the posterior is three nested sums
over a grid. It is computed without sampling: the same data give the same bytes, and no other
package is needed. It is computed on two grids, and refused if they differ.

Share of groups within their 95 % credible interval, simulated with 8 groups of 2 to 9 series each,
followed for 3 to 15 releases (25 sets each): 94 to 96 % where log medians of groups differ by 0.5
and 1.2 (standard deviation), 99 % if they do not differ. New groups: 93 to 98 %.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from errcomp.halflife.estimators import HALF, Law, check_law, log_between
from errcomp.halflife.estimators.expiry import Expiry, check_length, of_views
from errcomp.halflife.panel import HalfLife, check_level

__all__ = ["Pooled", "pooled_half_lives"]


# Posterior of group medians under a common normal, by sums over a grid: no sampling, no seed.
#
# Given the centre m, the spread tau and the scale sigma the groups are independent: each
# (m, tau, sigma) needs only one sum over log medians per group.


#: Standard deviation of the log centre around the log of the observed time; that of the half-normal
#: spread of groups; median and log standard deviation of the log-normal scale.
PRIORS = {"center_sd": 2.0, "tau_sd": 1.0, "sigma_median": 0.8, "sigma_log_sd": 0.7}
#: First box of the grid: log centre (relative to that of the prior), log tau, log sigma.
_BOX = ((-6.0, 6.0), (np.log(0.03), np.log(3.5)), (np.log(0.06), np.log(6.0)))
#: Points of each axis, on successively narrower boxes.
_POINTS = ((13, 13, 13), (15, 21, 17), (17, 31, 21), (21, 41, 25))
#: Weight below which a plane of the grid is outside the next box.
_NEGLIGIBLE = 1e-6
#: Most points of log medians, and how many standard deviations they extend beyond the centre.
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
        Centre of the prior of the log centre.
    """

    log_left: Floats
    log_right: Floats
    counts: Floats
    law: Law
    center: float

    def log_likelihood(self, log_medians: Floats, sigma: float) -> Floats:
        """Return that of each group at each log median, shape (groups, medians)."""
        log_likelihood = np.zeros((len(self.counts), len(log_medians)))
        for k in range(len(self.log_left)):
            a = (self.log_left[k] - log_medians) / sigma + HALF[self.law]
            b = (self.log_right[k] - log_medians) / sigma + HALF[self.law]
            log_mass = np.maximum(log_between(a, b, self.law == "log-normal"), -1e6)
            log_likelihood += self.counts[:, k, None] * log_mass
        return log_likelihood


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
    estimates = []
    for points in _POINTS:
        axes = [np.linspace(*ends, n) for ends, n in zip(box, points, strict=True)]
        weights, estimate = _on_grid(times, axes)
        estimates.append(estimate)
        box = [_narrowed(axes[i], weights, i) for i in range(3)]
    return estimates[-1], estimates[-2]


def _on_grid(times: Times, axes: list[Floats]) -> tuple[Floats, Posterior]:
    center, tau, sigma = axes[0], np.exp(axes[1]), np.exp(axes[2])
    grid = _log_medians(times, center, tau, sigma)
    m, t = (mesh.ravel() for mesh in np.meshgrid(center, tau, indexing="ij"))
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
    """Return log medians that resolve the spread of groups and the likelihood of each group."""
    low, high = center[0] - _REACH * tau[-1], center[-1] + _REACH * tau[-1]
    of_group = float(sigma[0]) / np.sqrt(times.counts.sum(axis=1).max())
    step = min(float(tau[0]), of_group) / 2
    return np.linspace(low, high, int(np.clip((high - low) / step, 200, _MOST_MEDIANS)))


def _narrowed(axis: Floats, weights: Floats, i: int) -> tuple[float, float]:
    """Return the part of an axis that has weight, plus a point on either side."""
    along = weights.sum(axis=tuple(j for j in range(3) if j != i))
    supported = np.flatnonzero(along > _NEGLIGIBLE * along.max())
    low, high = max(int(supported[0]) - 1, 0), min(int(supported[-1]) + 1, len(axis) - 1)
    return float(axis[low]), float(axis[high])


Floats = NDArray[np.float64]

_FEWEST_EVENTS = 3
#: Difference in log of a bound between the two finest grids that is too much.
_APART = 0.1
_ALIKE = (
    "The log medians of the groups are normally distributed around a common centre, and all groups "
    "have the same scale."
)
_ALONE = "Within a group, series are independent of each other."


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Half-lives of groups, and their common distribution.

    Attributes
    ----------
    groups : dict of str to HalfLife
        By group, with credible intervals.
    new_group : HalfLife
        Of a new group.
    tau, tau_low, tau_high : float or None
        Standard deviation of log medians between groups; None if refused.
    sigma : float or None
        Scale of log time within groups: posterior median.
    """

    groups: dict[Hashable, HalfLife]
    new_group: HalfLife
    tau: float | None
    tau_low: float | None
    tau_high: float | None
    sigma: float | None


def pooled_half_lives(
    expiry: Expiry,
    groups: Sequence[Hashable],
    *,
    law: Law = "weibull",
    level: float = 0.95,
) -> Pooled:
    """Return the half-life of each group, pooled over groups.

    Valid if nothing but their data distinguishes the groups. Misleads if a group of a different
    kind has few series: it is still pulled towards the others.

    Parameters
    ----------
    expiry : Expiry
    groups : sequence, one per series of the panel
        Group of each series.
    law : {"weibull", "log-normal", "exponential"}
    level : float
        Of the credible intervals.

    Returns
    -------
    Pooled
        Half-lives are refused if fewer than three series expired in all groups together, or with a
        single group.

    Raises
    ------
    InputError
        The number of names is wrong, the distribution is unknown, or `level` is not between 0 and
        1.

    References
    ----------
    Gelman, Carlin, Stern, Dunson, Vehtari and Rubin (2013), "Bayesian Data Analysis", chapter 5,
    doi:10.1201/b16018.

    Examples
    --------
    No gather expired within five releases.

    >>> from errcomp.halflife.panel import Panel
    >>> from errcomp.halflife.estimators.expiry import expiry_of
    >>> times = np.array([3, 4, 4, 6, 7, 5, 3, 8, 9, 9])
    >>> panel = Panel(
    ...     versions=tuple(f"1.{i}" for i in range(6)),
    ...     months=2.0 * np.arange(6),
    ...     names=tuple(f"s{i}" for i in range(10)),
    ...     clusters=np.arange(10),
    ...     starts=6 * np.arange(11),
    ...     version=np.tile(np.arange(6), 10),
    ...     error=0.3 * (np.arange(6) >= times[:, None]).ravel(),
    ...     sd=np.full(60, 0.001),
    ...     noise_df=np.full(10, np.inf),
    ...     frozen_at_first=True,
    ... )
    >>> groups = ["gelu"] * 8 + ["gather"] * 2
    >>> pooled = pooled_half_lives(expiry_of(panel, 0.1, "releases"), groups)
    >>> {name: half_life.half_life for name, half_life in pooled.groups.items()}
    {'gather': 11.0, 'gelu': 5.0}
    """
    check_level(level)
    check_law(law)
    check_length(expiry, len(groups), "groups")
    labels = [groups[int(i)] for i in expiry.series]
    names = sorted(set(labels), key=str)
    at = {name: i for i, name in enumerate(names)}
    of = np.asarray([at[name] for name in labels], dtype=np.int64)
    refused = _too_little(expiry, len(names))
    if refused:
        nothing = (
            _half_life(expiry, of == i, law, level, None, refused) for i in range(len(names))
        )
        of_all = _half_life(expiry, of >= 0, law, level, None, refused)
        return Pooled(dict(zip(names, nothing, strict=True)), of_all, None, None, None, None)
    views = of_views(
        expiry, lambda left, right: posterior(_times(left, right, of, len(names), law))
    )
    tails = (0.5, (1 - level) / 2, (1 + level) / 2)
    tau, tau_low, tau_high = (math.exp(_quantile(*views[1][0].log_tau, p)) for p in tails)
    return Pooled(
        {
            name: _half_life(expiry, of == i, law, level, _bounds(views, tails, i))
            for i, name in enumerate(names)
        },
        _half_life(expiry, of >= 0, law, level, _bounds(views, tails, None)),
        tau,
        tau_low,
        tau_high,
        math.exp(_quantile(*views[1][0].log_sigma, 0.5)),
    )


def _too_little(expiry: Expiry, n_groups: int) -> str:
    """Say what is missing for pooling; empty if nothing is."""
    events = int(np.isfinite(expiry.intervals("face")[1]).sum())
    if n_groups < 2:
        return (
            f"pooling needs at least two groups with series that can be evaluated, got {n_groups}."
        )
    if events < _FEWEST_EVENTS:
        return (
            f"{events} of {expiry.n} series expired; pooling needs {_FEWEST_EVENTS} or more "
            "expired series, because otherwise the result depends on the priors alone."
        )
    return ""


def _times(left: Floats, right: Floats, of: NDArray[np.int64], n_groups: int, law: Law) -> Times:
    """Count equal intervals by group."""
    pairs, row = np.unique(np.column_stack([left, right]), axis=0, return_inverse=True)
    counts = np.zeros((n_groups, len(pairs)))
    np.add.at(counts, (of, row.ravel()), 1.0)
    seen = np.where(np.isfinite(right), right, left)
    with np.errstate(divide="ignore"):
        ends = np.log(pairs)
    return Times(ends[:, 0], ends[:, 1], counts, law, float(np.log(seen.max() / 2)))


def _bounds(
    views: list[tuple[Posterior, Posterior]], tails: tuple[float, ...], group: int | None
) -> Floats:
    """Return log median, low and high on both grids; shape (3, 2).

    The median is that of the errors as measured. The bounds are the widest of the early, measured
    and late expiries: late expiries may differ less from each other and have a lower upper bound.
    """
    quantiles = np.asarray(
        [
            [
                [
                    _quantile(
                        grid.log_medians, grid.new if group is None else grid.groups[group], p
                    )
                    for grid in view
                ]
                for p in tails
            ]
            for view in views
        ]
    )
    return np.stack([quantiles[1, 0], quantiles[:, 1].min(axis=0), quantiles[:, 2].max(axis=0)])


def _quantile(values: Floats, probability: Floats, p: float) -> float:
    """Return the value below which a share p lies, between points of a grid."""
    below = np.cumsum(probability) - probability / 2
    return float(np.interp(p, below / probability.sum(), values))


def _half_life(
    expiry: Expiry,
    which: NDArray[np.bool_],
    law: Law,
    level: float,
    bounds: Floats | None,
    refused: str = "",
) -> HalfLife:
    right = expiry.intervals("face")[1][which]
    if bounds is not None and (apart := float(np.ptp(bounds, axis=1).max())) > _APART:
        refused = (
            "the posterior is not accurate enough: the logarithm of a bound differs by "
            f"{apart:.2f} between two grids."
        )
    half_life = low = high = None
    if bounds is not None and not refused:
        half_life, low, high = (float(time) for time in np.exp(bounds[:, 0]))
        if expiry.unit == "releases":
            half_life, low, high = (float(np.ceil(time)) for time in (half_life, low, high))
    return HalfLife(
        method=f"pooled-{law}",
        half_life=half_life,
        low=low,
        high=high,
        level=level,
        unit=expiry.unit,
        n_series=int(which.sum()),
        censored_share=float(np.mean(np.isinf(right))),
        refused=refused,
        assumptions=(_ALIKE, _ALONE, *expiry.assumptions),
        details={"n_events": int(np.isfinite(right).sum()), "interval": "credible"},
    )
