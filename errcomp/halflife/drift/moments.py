"""Intervals for mean squares, and for what is left of one when noise is subtracted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaincinv, ndtri

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["chi_square_bounds", "difference_bounds", "group_sums", "sampling_df"]


def group_sums(values: Floats, codes: NDArray[Any], n: int) -> Floats:
    """Sum values by code from 0 to n - 1."""
    return np.bincount(codes, weights=values, minlength=n).astype(float, copy=False)


def sampling_df(relative_variance: ArrayLike, most: ArrayLike = np.inf) -> Floats:
    r"""Degrees of freedom of the χ² with a relative variance: 2 over it, ``most`` at most.

    Satterthwaite (1946), doi:10.2307/3002019. ``most`` keeps a few squares that happen to be equal
    from passing for many: normal ones have one degree of freedom each.
    """
    relative = np.asarray(relative_variance, float)
    df = np.divide(2.0, relative, out=np.full(relative.shape, np.inf), where=relative > 0)
    return np.asarray(np.minimum(df, most))


def chi_square_bounds(mean_square: ArrayLike, df: ArrayLike, tail: float) -> tuple[Floats, Floats]:
    r"""Bounds of the expectation of a mean square that is distributed like χ²/df.

    .. math:: \Big[\frac{\nu\,m}{\chi^2_{1-\alpha/2,\nu}},
              \ \frac{\nu\,m}{\chi^2_{\alpha/2,\nu}}\Big]
    """
    mean, half = np.asarray(mean_square, float), np.asarray(df, float) / 2
    # Beyond a million degrees of freedom the quantiles are those of their expectation to 0.3 %.
    half = np.minimum(half, 5e5)
    # Below one the lower bound of a χ² stops falling; that of a log-normal with the same spread
    # goes on.
    spread = np.sqrt(1 / np.clip(half, 1e-9, 0.5)) - np.sqrt(2.0)
    half = np.maximum(half, 0.5)
    low = mean * half / gammaincinv(half, 1 - tail) * np.exp(ndtri(tail) * spread)
    scale = half / gammaincinv(half, tail) * np.exp(np.minimum(-ndtri(tail) * spread, 500.0))
    high = np.multiply(mean, scale, out=np.zeros(np.broadcast(mean, scale).shape), where=mean > 0)
    return low, high


def difference_bounds(
    total: tuple[ArrayLike, ArrayLike, ArrayLike], noise: tuple[ArrayLike, ArrayLike, ArrayLike]
) -> tuple[Floats, Floats]:
    """Bounds of total - noise, each given as (value, low, high); never below 0.

    Method of variance estimates recovery: Zou and Donner (2008), doi:10.1002/sim.3095.
    """
    t, t_low, t_high = (np.asarray(x, float) for x in total)
    s, s_low, s_high = (np.asarray(x, float) for x in noise)
    low = t - s - np.sqrt((t - t_low) ** 2 + (s_high - s) ** 2)
    high = t - s + np.sqrt((t_high - t) ** 2 + (s - s_low) ** 2)
    return np.maximum(low, 0.0), np.maximum(high, 0.0)
