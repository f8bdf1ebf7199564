"""Quality of bands: coverage with an interval that respects clusters, width, interval score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import renamed

__all__ = ["coverage_interval", "interval_score"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@renamed(observed="measured")
def interval_score(*, low: Floats, high: Floats, measured: Floats, level: float) -> Floats:
    r"""Interval score of central prediction intervals: width plus a penalty for misses.

    .. math:: S_\alpha(l, u; y) = (u - l) + \tfrac{2}{\alpha} \left[ (l - y)^+ + (y - u)^+ \right],
              \qquad \alpha = 1 - \text{level}

    It is proper: the true quantiles have the smallest expected score. Lower is better.

    Parameters
    ----------
    low, high, measured : ndarray, shape (n,)
        Ends of the intervals and measured values, in one unit.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    ndarray, shape (n,)

    References
    ----------
    Gneiting and Raftery (2007), "Strictly Proper Scoring Rules, Prediction, and Estimation",
    JASA 102(477), doi:10.1198/016214506000001437.

    Examples
    --------
    >>> interval_score(low=np.array([9.0]), high=np.array([11.0]), measured=np.array([12.0]),
    ...                level=0.9).round(6).tolist()
    [22.0]
    """
    missed = np.maximum(low - measured, 0) + np.maximum(measured - high, 0)
    return high - low + 2 / (1 - level) * missed


@renamed(cluster="clusters", confidence="level")
def coverage_interval(
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]],
    clusters: Integers,
    *,
    level: float = 0.95,
) -> tuple[float, float, float]:
    r"""Return the share inside and its interval, with correlated outcomes within clusters.

    The exact binomial (Clopper-Pearson) interval for the effective number

    .. math:: n^* = \frac{\hat p (1 - \hat p)}{\hat V} \left(
              \frac{t_{n-1}}{t_{D-1}} \right)^2 \quad\text{capped at } n

    of independent outcomes, with the variance :math:`\hat V` of the share between the D clusters
    (linearised ratio). D is the effective number of clusters, :math:`n^2 / \sum n_c^2`. Where all
    totals are inside, or none, the variance is unknown, and each cluster counts as one outcome.

    Parameters
    ----------
    inside : ndarray of bool, shape (n,)
        Whether each total is inside its band.
    clusters : ndarray of int, shape (n,)
        Device (or model) of each.
    level : float
        Nominal coverage of the interval.

    Returns
    -------
    share, low, high : float
        With one cluster, low and high are 0 and 1: nothing is known about other clusters.

    References
    ----------
    Korn and Graubard (1998), "Confidence Intervals for Proportions With Small Expected Number of
    Positive Counts Estimated From Survey Data", Survey Methodology 24(2), 193-201.

    Examples
    --------
    >>> inside = np.array([True, True, True, False])
    >>> [round(x, 3) for x in coverage_interval(inside, np.arange(4))]
    [0.75, 0.132, 0.998]
    """
    n = len(inside)
    share = float(inside.mean())
    sums, sizes = np.bincount(clusters, inside), np.bincount(clusters)
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    d = len(sizes)
    if d < 2:
        return share, 0.0, 1.0
    variance = float(((sums - share * sizes) ** 2).sum()) * d / (d - 1) / n**2
    tail = (1 + level) / 2
    equal = n**2 / float((sizes**2).sum())
    from scipy.special import betaincinv

    from errcomp.stats.significance import student_ppf

    ratio = (student_ppf(tail, n - 1) / student_ppf(tail, max(equal - 1, 1))) ** 2
    effective = share * (1 - share) / variance * ratio if variance > 0 else equal
    effective = min(float(n), effective)
    hits = share * effective
    low = float(betaincinv(hits, effective - hits + 1, 1 - tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, effective - hits, tail)) if hits < effective else 1.0
    return share, low, high
