"""Intervals that need no resampling: shares, quantiles, and what can be said about a maximum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from errcomp.errors import InputError
from errcomp.metrics.intervals._resample import add_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "check_level",
    "clopper_pearson",
    "effective_n",
    "order_statistics",
    "quantile_in_clusters",
    "quantile_needs",
    "ranks_in_clusters",
    "tolerance_n",
    "tolerance_share",
    "wilson",
]


def wilson(successes: float, n: float, level: float) -> tuple[float, float]:
    """Invert the score test of a share.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference", Journal
    of the American Statistical Association 22(158), 209-212.
    """
    z2 = float(special.ndtri((1 + level) / 2)) ** 2
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * n)) / n) / (1 + z2 / n)
    # At 0 and n successes the bound is exactly 0 or 1; rounding would miss it.
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == n else middle + half
    return min(max(low, 0.0), share), max(min(high, 1.0), share)


def clopper_pearson(successes: float, n: float, level: float) -> tuple[float, float]:
    """Invert the two one-sided binomial tests of a share: covers at least ``level``, always.

    References
    ----------
    Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case
    of the binomial", Biometrika 26(4), 404-413, doi:10.1093/biomet/26.4.404.
    """
    alpha = (1 - level) / 2
    k = successes
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, alpha))
    high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1 - alpha))
    return low, high


def order_statistics(
    values: NDArray[np.float64], q: float, level: float
) -> tuple[float, float] | None:
    r"""Bound a quantile by two order statistics, whatever the distribution.

    .. math:: P(x_{(l)} \le Q_q \le x_{(u)}) \ge P(l \le \mathrm{Bin}(n, q) \le u - 1)

    with l the largest and u the smallest rank whose tail has at most (1 - level)/2. None if the
    sample is too small to have such ranks (see `quantile_needs`).

    References
    ----------
    Conover (1999), Practical Nonparametric Statistics, 3rd ed., Wiley, section 3.2.
    """
    n, tail = len(values), (1 - level) / 2
    below = special.bdtr(np.arange(n), n, q)  # P(Bin <= 0), ..., P(Bin <= n - 1)
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    if low < 1 or high > n:
        return None
    ordered = np.partition(values, (low - 1, high - 1))
    return float(ordered[low - 1]), float(ordered[high - 1])


def quantile_needs(q: float, level: float) -> int:
    """Return the smallest n for which `order_statistics` has both ranks.

    Examples
    --------
    >>> quantile_needs(0.5, 0.95), quantile_needs(0.9, 0.95), quantile_needs(0.99, 0.95)
    (6, 36, 368)
    """
    return _round_up(math.log((1 - level) / 2) / math.log(max(q, 1 - q)))


def effective_n(inside: NDArray[np.float64], size: NDArray[np.float64], level: float) -> float:
    """Return the number of independent pairs that know a share as precisely as these clusters do.

    ``inside`` and ``size`` are the pairs inside, and all pairs, of each cluster.

    The share's variance between clusters against that of independent pairs, not above the number
    of pairs, and reduced for the degrees of freedom that few clusters leave. Where all pairs are on
    one side, which leaves no variance, a cluster counts as one pair.

    References
    ----------
    Korn and Graubard (1998), "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data", Survey Methodology 24(2), 193-201.
    """
    n = float(size.sum())
    share = float(inside.sum()) / n
    residual = inside - share * size
    variance = float((residual**2).sum()) * len(size) / (len(size) - 1) / n**2
    independent = share * (1 - share) / variance if variance > 0 else float(len(size))
    freedom = n - 1, n**2 / float((size**2).sum()) - 1
    wide = [float(special.stdtrit(df, (1 + level) / 2)) for df in freedom]
    # One cluster that outweighs all others leaves no degrees of freedom: nothing is known then.
    return max(min(independent, n) * (wide[0] / wide[1]) ** 2, 1e-6)


def quantile_in_clusters(
    values: NDArray[np.float64], q: float, cluster: NDArray[np.int64], level: float
) -> tuple[float, float] | None:
    """Bound a quantile by the quantiles at the bounds of its share (Clopper-Pearson, effective n).

    None if a bound would lie beyond the sample.

    References
    ----------
    Woodruff (1952), "Confidence intervals for medians and other position measures", Journal of the
    American Statistical Association 47(260), 635-646.
    """
    n = len(values)
    below = (values <= np.quantile(values, q)).astype(np.float64)
    count = int(cluster.max()) + 1
    inside, size = add_up(below, cluster, count), add_up(np.ones(n), cluster, count)
    ranks = ranks_in_clusters(inside, size, q, level)
    if ranks is None:
        return None
    low, high = ranks
    ordered = np.partition(values, (low - 1, high - 1))
    return float(ordered[low - 1]), float(ordered[high - 1])


def ranks_in_clusters(
    below: NDArray[np.float64], size: NDArray[np.float64], q: float, level: float
) -> tuple[int, int] | None:
    """Return the ranks (from 1) of the bounds of a quantile: see `quantile_in_clusters`.

    ``below`` and ``size`` are the pairs up to the quantile, and all pairs, of each cluster.
    """
    n = int(size.sum())
    n_eff = effective_n(below, size, level)
    shares = clopper_pearson(q * n_eff, n_eff, level)
    low, high = math.floor(n * shares[0]), math.ceil(n * shares[1])
    return None if low < 1 or high >= n else (low, high)


def tolerance_share(n: int, level: float = 0.95) -> float:
    r"""Share of future values that stay at or below the maximum of n, with this confidence.

    .. math:: s = (1 - \mathrm{level})^{1/n}

    Definition: one-sided, distribution-free; the largest s with P(share below the maximum >= s)
    >= level. Valid for pairs drawn independently from the same population as the future ones;
    misleads where the future is another population (a new device, a new model).

    Parameters
    ----------
    n : int
        Pairs behind the maximum.
    level : float
        Confidence, between 0 and 1.

    Returns
    -------
    float
        A fraction.

    Raises
    ------
    InputError
        n < 1, or level not between 0 and 1.

    References
    ----------
    Wilks (1941), "Determination of sample sizes for setting tolerance limits", Annals of
    Mathematical Statistics 12(1), 91-96, doi:10.1214/aoms/1177731788.

    Examples
    --------
    >>> round(tolerance_share(16), 3), round(tolerance_share(59), 4)
    (0.829, 0.9505)
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    return float((1 - check_level(level)) ** (1 / n))


def tolerance_n(share: float, level: float = 0.95) -> int:
    r"""Pairs needed so that their maximum bounds this share of future values.

    .. math:: n = \lceil \ln(1 - \mathrm{level}) / \ln s \rceil

    Definition: the smallest n with ``tolerance_share(n, level) >= share``.

    Parameters
    ----------
    share : float
        Between 0 and 1.
    level : float
        Confidence, between 0 and 1.

    Returns
    -------
    int

    Raises
    ------
    InputError
        share or level not between 0 and 1.

    References
    ----------
    Wilks (1941), "Determination of sample sizes for setting tolerance limits", Annals of
    Mathematical Statistics 12(1), 91-96, doi:10.1214/aoms/1177731788.

    Examples
    --------
    >>> tolerance_n(0.95), tolerance_n(0.99)
    (59, 299)
    """
    if not 0 < share < 1:
        raise InputError(f"share must lie between 0 and 1, got {share}")
    return _round_up(math.log(1 - check_level(level)) / math.log(share))


def check_level(level: float) -> float:
    """Return the level, or raise InputError if it is not between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, got {level}. 95 % is level=0.95.")
    return level


def _round_up(n: float) -> int:
    # A quotient of logarithms that should be whole is off by rounding, either way.
    return max(math.ceil(n - 1e-9), 1)
