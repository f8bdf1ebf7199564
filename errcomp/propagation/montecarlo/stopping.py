"""How sure a simulated quantile is, and when it is sure enough.

The draws come in replicates: independent repetitions of the same simulation, within which draws may
depend on each other (Sobol points, mirrored normals). The scatter of a figure over the replicates
is therefore its honest error, where a formula for independent draws would not be.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from errcomp.propagation.terms import Floats

__all__ = ["QUANTILES", "critical", "intervals", "layout", "precision_of", "quantiles"]

#: The quantiles whose precision can be asked for.
QUANTILES = (0.05, 0.5, 0.95)
#: Replicates are at least so many, and fewer than twice that.
_REPLICATES = 16
#: Two-sided confidence of the intervals.
_CONFIDENCE = 0.95


def layout(draws: int) -> tuple[int, int]:
    """Return replicates and draws of each, a power of two, that make at least so many draws.

    Examples
    --------
    >>> layout(10_000), layout(16_384)
    ((20, 512), (16, 1024))
    """
    each = 2 ** int(math.log2(draws / _REPLICATES))
    return -(-draws // each), each


def quantiles(values: Floats, q: Floats) -> Floats:
    r"""Quantiles of values sorted along the last axis, infinite ones allowed.

    Linear between the values, the k-th of n at :math:`(k - 1/2) / n`; next to an infinite value the
    nearer of the two.

    Parameters
    ----------
    values : ndarray, shape (..., n)
        Sorted.
    q : ndarray, shape (m,)
        Probabilities.

    Returns
    -------
    ndarray, shape (..., m)

    References
    ----------
    Hyndman and Fan (1996), "Sample quantiles in statistical packages", The American Statistician
    50(4), 361-365, doi:10.1080/00031305.1996.10473566 (definition 5).

    Examples
    --------
    >>> quantiles(np.array([1.0, 2.0, 3.0, np.inf]), np.array([0.5, 0.7, 0.9]))
    array([2.5, 3. , inf])
    """
    n = values.shape[-1]
    place = np.clip(n * q - 0.5, 0, n - 1)
    below = np.minimum(place.astype(np.int64), max(n - 2, 0))
    part = place - below
    low, high = values[..., below], values[..., np.minimum(below + 1, n - 1)]
    with np.errstate(invalid="ignore"):
        between = low + part * (high - low)
    return np.asarray(np.where(np.isfinite(high), between, np.where(part <= 0.5, low, high)))


def critical(replicates: int) -> float:
    """Return how many standard errors the half width of a 95 % interval has."""
    return float(stdtrit(replicates - 1, (1 + _CONFIDENCE) / 2))


def intervals(values: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    r"""Quantiles of all draws, with 95 % intervals from the scatter over the replicates.

    With :math:`\hat p_r` the share of replicate r up to the quantile x of all draws, the standard
    error of the share is :math:`s = \mathrm{sd}(\hat p_r) / \sqrt R`, and the interval reaches from
    the quantile at :math:`q - t s` to that at :math:`q + t s`, t with R − 1 degrees of freedom.
    Coverage measured for 16 replicates of 32 draws or more and 1, 5, 50, 95 and 99 % quantiles: 93
    to 100 %, independent draws or Sobol points. The scatter of the replicates' own quantiles covers
    as little as 75 % with Sobol points of one dimension, as it misses what they have in common.

    Parameters
    ----------
    values : ndarray, shape (R, m)
        One replicate per row.
    q : ndarray, shape (k,)

    Returns
    -------
    quantile, low, high : ndarray, shape (k,)

    Examples
    --------
    >>> draws = np.random.default_rng(0).random((16, 256))
    >>> x, low, high = intervals(draws, np.array([0.5]))
    >>> bool(low[0] < 0.5 < high[0]), round(float(high[0] - low[0]), 3)
    (True, 0.042)
    """
    ordered = np.sort(values, axis=None)
    x = quantiles(ordered, q)
    # Where many draws are equal (or infinite), what lies below them is another share.
    below = np.stack([(values < bound).mean(axis=1) for bound in x])
    up_to = np.stack([(values <= bound).mean(axis=1) for bound in x])
    low, high = (
        quantiles(ordered, np.clip(q + side * _reach(shares, values.size), 0, 1))
        for side, shares in ((-1, below), (1, up_to))
    )
    return x, low, high


def _reach(shares: Floats, draws: int) -> Floats:
    """Half width of the interval of a share; none is known better than to half a draw."""
    replicates = shares.shape[1]
    error = shares.std(axis=1, ddof=1) / math.sqrt(replicates)
    return np.asarray(critical(replicates) * np.maximum(error, 0.5 / draws))


def precision_of(values: Floats) -> float:
    """Return the largest relative half width of the 5, 50 and 95 % quantiles' 95 % intervals.

    A quantile that is infinite beyond doubt is known; one that may be is not.

    Examples
    --------
    >>> precision_of(np.full((16, 32), 3.0))
    0.0
    """
    x, low, high = intervals(values, np.array(QUANTILES))
    known = np.isinf(low) | (low == high)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(np.isinf(high), math.inf, (high - low) / (2 * np.abs(x)))
    return float(np.where(known, 0.0, relative).max())
