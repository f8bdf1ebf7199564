r"""Quantiles of scores that come in groups: how large will the score of a run of a new group be?

With K groups of :math:`n_k` rows, scores :math:`s_{ki}` and row weights :math:`w_k`, the calibrated
score of a level p is read off the weighted distribution with one more unit of mass at infinity,
which stands for the new run:

.. math:: F(s) = \frac{1}{W + 1} \sum_k w_k \sum_i 1\{s_{ki} \le s\}, \qquad W = \sum_k w_k n_k

* :math:`w_k = 1`: split conformal over rows (W = n). Right where the rows of a group are no more
  alike than others.
* :math:`w_k = 1 / n_k`: hierarchical conformal over groups (W = K). Right whatever the likeness.
* :math:`w_k = 1 / (1 + (n_k - 1) \hat\rho)`: between the two, by the intraclass correlation of the
  scores. W is the effective number of independent scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from errcomp.calibration.design import Floats

__all__ = [
    "POOLED_GROUPS",
    "ROUNDING",
    "PooledQuantile",
    "groups_needed",
    "hierarchical_quantile",
    "intraclass_correlation",
    "pooled_needed",
    "pooled_quantile",
]

Integers = NDArray[np.int64]

#: Below this number of groups their likeness cannot be told from chance.
POOLED_GROUPS = 3
# Beyond the largest score quantiles follow a Student t of these degrees: heavier than normal, as
# errors of runs are. Simulated coverage at few groups decided between 3, 5 and 10.
_TAIL = 3
# ... and no further than to a fifth of the tail that the scores themselves reach.
_REACH = 5
#: Of masses that are sums of fractions.
ROUNDING = 1e-9


def groups_needed(level: float) -> int:
    """Return the smallest number of groups for a guarantee: K / (K + 1) must reach the level.

    Examples
    --------
    >>> [groups_needed(level) for level in (0.5, 0.8, 0.9, 0.95)]
    [1, 4, 9, 19]
    """
    return max(1, math.ceil(level / (1 - level) - ROUNDING))


def pooled_needed(level: float) -> int:
    """Return the smallest effective number of scores from which the pooled quantile is drawn.

    Examples
    --------
    >>> [pooled_needed(level) for level in (0.5, 0.95, 0.99)]
    [3, 3, 19]
    """
    return max(POOLED_GROUPS, math.ceil(1 / (_REACH * (1 - level)) - 1 - ROUNDING))


def _ranked(scores: Floats, weights: Floats) -> tuple[Floats, Floats, float]:
    """Return the sorted scores, the mass up to each, and the whole mass without the new run's."""
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(weights[order])
    return scores[order], mass / (mass[-1] + 1), float(mass[-1])


def hierarchical_quantile(scores: Floats, group: Integers, level: float) -> float:
    """Return the smallest score whose mass reaches the level; infinite with too few groups.

    Examples
    --------
    >>> scores, group = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 2, 2])
    >>> [hierarchical_quantile(scores, group, level) for level in (0.5, 0.75, 0.8)]
    [2.0, 4.0, inf]
    """
    found, mass, _ = _ranked(scores, 1 / np.bincount(group)[group])
    place = int(np.searchsorted(mass, level - ROUNDING))
    return float(found[place]) if place < len(found) else math.inf


def intraclass_correlation(scores: Floats, group: Integers) -> float:
    r"""Return how alike the scores of one group are, in [0, 1]: 0 no more than others, 1 equal.

    One-way analysis of variance of the normal scores of ranks, which no wild score can upset:

    .. math:: \hat\rho = \frac{MS_b - MS_w}{MS_b + (n_0 - 1) MS_w}, \qquad
              n_0 = \frac{n - \sum n_k^2 / n}{K - 1}

    Where nothing can be seen (one row per group, or all scores equal) it is 1, the careful value.

    References
    ----------
    Donner (1986), "A Review of Inference Procedures for the Intraclass Correlation Coefficient in
    the One-Way Random Effects Model", International Statistical Review 54(1), 67-82.

    Examples
    --------
    >>> group = np.repeat([0, 1, 2], 2)
    >>> round(intraclass_correlation(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), group), 2)
    0.83
    """
    n, sizes = len(scores), np.bincount(group)
    if n == len(sizes):
        return 1.0
    normal = stats.norm.ppf((stats.rankdata(scores) - 0.5) / n)
    means = np.bincount(group, normal) / sizes
    between = float((sizes * (means - normal.mean()) ** 2).sum()) / (len(sizes) - 1)
    within = float(((normal - means[group]) ** 2).sum()) / (n - len(sizes))
    size = (n - float((sizes**2).sum()) / n) / (len(sizes) - 1)
    whole = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else 1.0


@dataclass(frozen=True, slots=True)
class PooledQuantile:
    """A quantile of pooled scores and what it rests on.

    Attributes
    ----------
    value : float
    correlation : float
        Intraclass correlation of the scores.
    effective : float
        Effective number of independent scores, between the numbers of groups and of rows.
    beyond : bool
        Whether it lies beyond the largest score and follows a tail that was assumed.
    """

    value: float
    correlation: float
    effective: float
    beyond: bool


def pooled_quantile(scores: Floats, group: Integers, level: float) -> PooledQuantile:
    """Return the quantile between that of rows and that of groups, by the likeness of the scores.

    The scores are interpolated at their mass. Beyond the largest one the quantile grows like that
    of the size of a Student t with three degrees of freedom. Groups must be two at least.

    Examples
    --------
    >>> scores, group = np.arange(1.0, 10.0), np.arange(9)
    >>> [round(pooled_quantile(scores, group, level).value, 2) for level in (0.5, 0.9, 0.95)]
    [5.0, 9.0, 12.17]
    """
    correlation = intraclass_correlation(scores, group)
    found, mass, effective = _ranked(
        scores, 1 / (1 + (np.bincount(group)[group] - 1) * correlation)
    )
    reached = float(mass[-1])
    beyond = level > reached + ROUNDING
    value = float(np.interp(level, mass, found))
    if beyond:
        value *= float(stats.t.ppf((1 + level) / 2, _TAIL) / stats.t.ppf((1 + reached) / 2, _TAIL))
    return PooledQuantile(value, correlation, effective, beyond)
