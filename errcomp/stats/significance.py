"""Tests, tails of common distributions, and corrections for multiple tests.

The tests use special functions only: importing `scipy.stats` takes as long as computing an audit.
The values agree with `scipy.stats` to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from errcomp.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


#: The exact distribution is used up to this size of the smaller sample, or this number of
#: differences, if no values are equal.
_FEW_OF_A_SAMPLE = 8
_FEW_DIFFERENCES = 50
#: The same number of differences if values are equal.
_FEW_WITH_TIES = 13
#: Up to this number of signs, the distribution is summed exactly, in whole numbers.
_FEW_SIGNS = 1000
#: Larger counts need whole numbers of any size.
_BEYOND_INT64 = 2**62


def student_sf(x: float | Floats, df: float | NDArray[Any]) -> Floats:
    """Return the probability that Student's t exceeds x.

    Examples
    --------
    >>> round(float(student_sf(2.0, 10)), 4)
    0.0367
    """
    tail: Floats = np.asarray(special.stdtr(df, np.negative(x)), dtype=np.float64)
    return tail


def student_ppf(q: float, df: float) -> float:
    """Return the quantile of Student's t.

    Examples
    --------
    >>> round(student_ppf(0.975, 10), 3)
    2.228
    """
    return float(special.stdtrit(df, q))


def student_logpdf(x: Floats, df: float) -> Floats:
    """Return the log density of Student's t.

    Examples
    --------
    >>> student_logpdf(np.array([0.0, 2.0]), 10).round(4).tolist()
    [-0.9439, -2.7945]
    """
    constant = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - math.log(df * math.pi) / 2
    density: Floats = constant - (df + 1) / 2 * np.log1p(x**2 / df)
    return density


def ranks(values: ArrayLike) -> Floats:
    """Return the rank of each value, from 1; equal values share their mean rank.

    Examples
    --------
    >>> ranks([0.0, 2.0, 3.0, 2.0]).tolist()
    [1.0, 2.5, 4.0, 2.5]
    """
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    shared: Floats = (last - (sizes - 1) / 2)[group.ravel()]
    return shared


def _ties(values: Floats) -> float:
    """Return the sum of s^3 - s over the sizes s of groups of equal values."""
    sizes = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((sizes**3 - sizes).sum())


def rank_sum_p(x: Floats, y: Floats) -> float:
    """Return the two-sided p-value of Mann and Whitney's test that neither sample is larger.

    Exact if a sample has at most 8 values and no values are equal; otherwise normal, with
    corrections for ties and for continuity. Mann and Whitney (1947), Annals of Mathematical
    Statistics 18, 50-60.

    Examples
    --------
    >>> round(rank_sum_p(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0, 7.0])), 4)
    0.0571
    """
    n, m = len(x), len(y)
    both = np.concatenate((x, y))
    u = float(ranks(both)[:n].sum()) - n * (n + 1) / 2
    u = max(u, n * m - u)
    ties = _ties(both)
    if min(n, m) <= _FEW_OF_A_SAMPLE and ties == 0:
        few = n * m - int(u)
        counts = _rank_sum_counts(min(n, m), max(n, m), few)
        tail = float(np.cumsum(counts.astype(np.float64) / special.binom(n + m, n))[few])
    else:
        total = n + m
        spread = math.sqrt(n * m / 12 * ((total + 1) - ties / (total * (total - 1))))
        tail = float(special.ndtr(-(u - n * m / 2 - 0.5) / spread)) if spread else 1.0
    return min(1.0, 2 * tail)


def _rank_sum_counts(few: int, many: int, largest: int) -> NDArray[np.int64]:
    """Count the orders of two samples by their U, from 0 to the largest requested.

    The counts are the coefficients of a Gaussian binomial: multiplied by 1 - q^(many + i) and
    divided by 1 - q^i for i = 1, ..., few.
    """
    kind = np.int64 if math.comb(few + many, few) < _BEYOND_INT64 else object
    counts = np.zeros(largest + 1, dtype=kind)
    counts[0] = 1
    for i in range(1, few + 1):
        if many + i <= largest:
            counts[many + i :] = counts[many + i :] - counts[: largest + 1 - many - i]
        for start in range(min(i, largest + 1)):
            counts[start::i] = np.cumsum(counts[start::i])
    return counts


def signed_rank_p(a: Floats, b: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of symmetry around 0.

    Differences of 0 are left out. Exact for at most 50 differences (at most 13 if some are 0 or of
    equal size); otherwise normal, with a correction for ties. Wilcoxon (1945), Biometrics Bulletin
    1, 80-83.

    Examples
    --------
    >>> round(signed_rank_p(np.array([1.0, 2.0, 3.0, 4.5, 6.0]), np.array([0.5, 1, 1, 1, 1])), 4)
    0.0625
    """
    difference = a - b
    some = difference[difference != 0]
    n, size = len(some), np.abs(some)
    rank, ties = ranks(size), _ties(size)
    positive = float(rank[some > 0].sum())
    plain = ties == 0 and n == len(difference)
    if len(difference) <= (_FEW_DIFFERENCES if plain else _FEW_WITH_TIES):
        chances = _signed_rank_chances(rank)
        middle = round(2 * positive)
        tail = min(float(chances[: middle + 1].sum()), float(chances[middle:].sum()))
        return min(1.0, 2 * tail)
    deviation = math.sqrt((n * (n + 1.0) * (2.0 * n + 1.0) - ties / 2) / 24)
    z = (positive - n * (n + 1.0) * 0.25) / deviation
    return 2 * float(special.ndtr(-abs(z)))


def _signed_rank_chances(rank: Floats) -> Floats:
    """Return the probability of each sum of the ranks with random sign +, in halves from 0."""
    chances = np.ones(1)
    for twice in np.rint(2 * rank).astype(int):
        longer = np.zeros(len(chances) + twice)
        longer[: len(chances)] = chances * 0.5
        longer[twice:] += chances * 0.5
        chances = longer
    return chances


def sign_p(high: int, n: int) -> float:
    """Return the two-sided p-value of a sign test: half of n are expected on either side.

    Examples
    --------
    >>> round(sign_p(9, 10), 4)
    0.0215
    """
    fewer = min(high, n - high)
    if 2 * fewer == n:
        return 1.0
    # Both tails are equal, because both signs are equally likely.
    if n <= _FEW_SIGNS:
        return float(sum(math.comb(n, k) for k in range(fewer + 1)) / 2 ** (n - 1))
    return float(2 * special.bdtr(fewer, n, 0.5))


def spearman_less(x: Floats, y: Floats) -> tuple[float, float]:
    """Return Spearman's rank correlation, and Student's p-value of one that is below 0.

    Examples
    --------
    >>> rho, p = spearman_less(np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 3.0, 1.0, 2.0]))
    >>> round(rho, 6), round(p, 6)
    (-0.8, 0.1)
    """
    rho = float(np.corrcoef(ranks(x), ranks(y))[1, 0])
    df = len(x) - 2
    with np.errstate(divide="ignore"):
        t = rho * np.sqrt(np.maximum(df / ((np.float64(rho) + 1.0) * (1.0 - rho)), 0))
    return rho, float(special.stdtr(df, t))


def _checked(p_values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise InputError(f"p-values must be one-dimensional, got shape {p.shape}.")
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        raise InputError(
            f"p-values must be between 0 and 1, got {p[bad][0]} at position "
            f"{np.flatnonzero(bad)[0] + 1}."
        )
    return p


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Return Holm's step-down adjusted p-values, which bound the probability of any false alarm.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\{1, (m - j + 1)\, p_{(j)}\}

    Definition: reject if the adjusted value is at most alpha. The probability of one or more false
    rejections is then at most alpha, for any dependence between the tests. Misleads if tests are
    left out: the correction does not cover them.

    Parameters
    ----------
    p_values : sequence of float, shape (m,)
        In any order, each in [0, 1].

    Returns
    -------
    list of float
        Adjusted p-values in the given order.

    Raises
    ------
    InputError
        A value is not in [0, 1].

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6, 65-70.

    Examples
    --------
    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def holm_adjusted(p_values: ArrayLike) -> Floats:
    """Adjust p-values by Holm's method, see `holm`; NaN is a hypothesis that was not tested.

    Parameters
    ----------
    p_values : array_like, shape (m,)

    Returns
    -------
    ndarray of float, shape (m,)

    Raises
    ------
    InputError
        A value is neither in [0, 1] nor NaN.

    Examples
    --------
    >>> holm_adjusted([0.01, 0.04, float("nan"), 0.02]).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    adjusted[tested] = holm(p[tested].tolist())
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    r"""Return Benjamini-Hochberg adjusted p-values, which bound the expected share of false alarms.

    .. math:: \tilde p_{(i)} = \min_{j \ge i} \min\{1, m\, p_{(j)} / j\}

    Definition: reject if the adjusted value is at most alpha. The expected share of false
    rejections among the rejections is then at most alpha for independent or positively dependent
    tests. Weaker than :func:`holm`: some rejections are expected to be false.

    Parameters
    ----------
    p_values : sequence of float, shape (m,)
        In any order, each in [0, 1].

    Returns
    -------
    list of float
        Adjusted p-values in the given order.

    Raises
    ------
    InputError
        A value is not in [0, 1].

    References
    ----------
    Benjamini and Hochberg (1995), "Controlling the false discovery rate", Journal of the Royal
    Statistical Society B 57, 289-300.

    Examples
    --------
    >>> [round(p, 4) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    p = _checked(p_values)
    m = len(p)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * m / np.arange(1, m + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return [float(value) for value in adjusted]
