"""Values within groups: their variance, and shuffles of them for permutation tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["shuffles", "tail", "variance_within", "without_means"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def without_means(values: Floats, group: Ints) -> Floats:
    """Return each value minus the mean of its group.

    Parameters
    ----------
    values : ndarray, shape (n,)
    group : ndarray of int, shape (n,)
        From 0.

    Examples
    --------
    >>> without_means(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1])).tolist()
    [-1.0, 1.0, 0.0]
    """
    mean = np.bincount(group, values) / np.maximum(np.bincount(group), 1)
    return np.asarray(values - mean[group])


def variance_within(values: Floats, group: Ints) -> tuple[float, int]:
    """Return the variance of values within groups, and its degrees of freedom.

    It is NaN where no group has two values.

    Parameters
    ----------
    values : ndarray, shape (n,)
    group : ndarray of int, shape (n,)
        Any numbers.

    Examples
    --------
    >>> variance_within(np.array([1.0, 3.0, 7.0]), np.array([4, 4, 9]))
    (2.0, 1)
    """
    code = np.unique(group, return_inverse=True)[1]
    free = len(code) - int(code.max(initial=-1)) - 1
    left = without_means(values, code)
    return (float((left**2).sum()) / free if free else float("nan")), free


def shuffles(values: Floats, group: Ints, n: int) -> Iterator[Floats]:
    """Yield n shuffles of the values within groups; the same in each call.

    Parameters
    ----------
    values : ndarray, shape (m,)
    group : ndarray of int, shape (m,)
        In ascending order.
    n : int

    Examples
    --------
    >>> ends = [one[:2].sum() for one in shuffles(np.arange(4.0), np.array([0, 0, 1, 1]), 3)]
    >>> [float(end) for end in ends]
    [1.0, 1.0, 1.0]
    """
    rng = np.random.default_rng(0)
    for _ in range(n):
        # By group, then by chance: quicker than a sort by both, as the groups are in order.
        yield values[np.argsort(group + rng.random(len(values)), kind="stable")]


def tail(value: float, chance: Floats) -> float:
    """Return how often chance gives as much, or more.

    Beyond the largest shuffle, a gamma law with the mean and the variance of the shuffles says it:
    400 shuffles alone cannot go below 1/400.

    Parameters
    ----------
    value : float
        A statistic that is not negative.
    chance : ndarray, shape (n,)
        The same of shuffles.

    Examples
    --------
    >>> chance = np.random.default_rng(0).chisquare(3, 400)
    >>> tail(7.8, chance), f"{tail(30.0, chance):.0e}"  # of chi-square: 0.05 and 1e-6
    (0.0375, '3e-07')
    """
    from scipy.special import gammaincc  # scipy.stats takes longer to import

    if value <= chance.max():
        return float((chance >= value).mean())
    mean, variance = float(chance.mean()), float(chance.var())
    if variance <= 0 or mean <= 0:
        return 1 / (len(chance) + 1)
    return float(gammaincc(mean**2 / variance, value * mean / variance))
