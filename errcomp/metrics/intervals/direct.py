r"""Intervals without resampling: of shares, quantiles and correlations; and a bound of maxima.

Intervals of correlations are a jackknife of Fisher's z by pairs or whole clusters. Textbook
intervals of correlations hold for normal data. Predictions are not normal: sizes span orders of
magnitude and errors are shares of them, so a few pairs dominate the correlation. The jackknife
measures the influence of each pair, or each cluster:

.. math:: z \pm t_\nu\, s, \qquad s^2 = \frac{k - 1}{k} \sum_c (z_{(c)} - \bar z)^2, \qquad
    \nu = \frac{2k}{\hat\kappa - 1}

with :math:`z = \operatorname{artanh} r` (:math:`-\tfrac12 \ln(1 - R^2)` for R²), :math:`z_{(c)}`
the same without unit c, and :math:`\hat\kappa` the kurtosis of the :math:`z_{(c)}`: if one unit
dominates, the standard error has few degrees of freedom (never more than k - 1).

The end towards 0 is :math:`\sqrt{(t_\nu s)^2 + u^2}` away. Here u is the decrease of z if pairs of
an unseen kind have `UNSEEN_ERROR` times the errors of the seen ones. At the level of the interval,
up to :math:`1 - (1 - level)^{1/k}` of the population may be such pairs.

Spearman's correlation of n pairs tends to be too low. Without ties,
:math:`r + 3 (r - \tau) / (n - 2)` is unbiased, where τ is Kendall's (Daniels); the middle of its
interval is therefore :math:`z + 3 (r - \tau) / ((n - 2)(1 - r^2))`.

Rarer and larger errors are not allowed for: they make intervals too high, which never makes a true
claim look overstated (docs/intervals.md says how often).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from errcomp.errors import InputError
from errcomp.metrics.intervals._smooth import add_up
from errcomp.stats.significance import ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


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
    # At 0 and n successes the bound is exactly 0 or 1; rounding would change it.
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
    """Return the number of independent pairs that give a share as precisely as these clusters.

    ``inside`` and ``size`` are the pairs inside, and all pairs, of each cluster.

    It follows from the share's variance between clusters and that of independent pairs. It is at
    most the number of pairs, and reduced for the degrees of freedom of few clusters. If all pairs
    are on one side, so that the variance is zero, a cluster counts as one pair.

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
    # One cluster that outweighs all others leaves no degrees of freedom.
    return max(min(independent, n) * (wide[0] / wide[1]) ** 2, 1e-6)


def quantile_in_clusters(
    values: NDArray[np.float64], q: float, cluster: NDArray[np.int64], level: float
) -> tuple[float, float] | None:
    """Bound a quantile by the quantiles at the bounds of its share (Clopper-Pearson, effective n).

    None if a bound is beyond the sample.

    References
    ----------
    Woodruff (1952), "Confidence intervals for medians and other position measures", Journal of the
    American Statistical Association 47(260), 635-646.
    """
    n = len(values)
    middle = float(np.quantile(values, q))
    # Errors that differ by the last bits of their decimal numbers are equal.
    rounding = 4 * float(np.finfo(np.float64).eps) * (1 + abs(middle))
    below = (values <= middle + rounding).astype(np.float64)
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


def lower_share(share: float) -> str:
    """Write a lower bound of a share: rounded down, with the digits that show how far it is from 1.

    Examples
    --------
    >>> lower_share(tolerance_share(6)), lower_share(tolerance_share(1000))
    ('60 %', '99.7 %')
    """
    decimals = max(0, math.ceil(-math.log10(1 - share)) - 2) if share < 1 else 0
    # Not below by a rounding error of its own: 0.29 is 29 %.
    floor = math.floor(round(share * 10 ** (decimals + 2), 6)) / 10**decimals
    return f"{floor:.{decimals}f} %"


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
        raise InputError(f"share must be between 0 and 1, got {share}")
    return _round_up(math.log(1 - check_level(level)) / math.log(share))


def check_level(level: float) -> float:
    """Return the level, or raise InputError if it is not between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, got {level}. 95 % is level=0.95.")
    return level


def _round_up(n: float) -> int:
    # Rounding may move a whole quotient of logarithms up or down.
    return max(math.ceil(n - 1e-9), 1)


#: Fewest pairs, and fewest clusters if whole clusters are left out. R² needs more: a sample seldom
#: has the largest measurements of the population, which determine the denominator.
FEWEST_OF_ALL = {"pearson": (8, 3), "kendall": (10, 5), "spearman": (20, 5), "r2": (50, 50)}
#: No interval if z is less certain than this: 1 - r could be 150 times as large, or as small.
WIDEST = 2.5
#: Error of unseen pairs that is allowed for, as a multiple of that of seen pairs.
UNSEEN_ERROR = 5.0

#: These compare every pair with every other; more pairs than this would take too long.
_ALL_PAIRS = {"kendall": ("Kendall's tau", 20_000), "spearman": ("Spearman's correlation", 5_000)}
_CHUNK = 512
#: A correlation this close to 1 is exact up to rounding.
_ROUNDING = 1e-12
#: A difference of sums smaller than this share of them is rounding.
_NOTHING = 1e-12


def correlation_bounds(
    name: str,
    predicted: Floats,
    measured: Floats,
    cluster: Integers | None,
    level: float,
) -> tuple[float, float] | str:
    r"""Return the interval of a correlation, or the reason why it does not exist.

    Parameters
    ----------
    name : {"pearson", "kendall", "spearman", "r2"}
    predicted, measured : ndarray, shape (n,)
        Checked pairs.
    cluster : ndarray of int, shape (n,), optional
        Codes from 0 without gaps; whole clusters are left out. None for independent pairs.
    level : float

    Returns
    -------
    tuple of float, or str

    References
    ----------
    Daniels (1950), "Rank correlation and population models", Journal of the Royal Statistical
    Society B 12(2), 171-181.
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, Chapman and Hall, chapter 11.
    Satterthwaite (1946), "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2(6), 110-114, doi:10.2307/3002019.

    Examples
    --------
    >>> m = np.arange(1.0, 21.0)
    >>> p = m * np.tile([1.1, 0.9, 1.05, 0.95, 1.0], 4)
    >>> low, high = correlation_bounds("pearson", p, m, None, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.95, 0.997)
    >>> correlation_bounds("pearson", p[:5], m[:5], None, 0.95)
    'no interval from 5 pairs: at least 8 are needed'
    """
    n = len(measured)
    units = n if cluster is None else int(cluster.max()) + 1
    if too_few := _too_few(name, n, None if cluster is None else units):
        return too_few
    label, most = _ALL_PAIRS.get(name, ("", n))
    if n > most:
        return (
            f"no interval: for {label} all pairs are compared with each other, and {n:,} pairs are "
            f"too many (at most {most:,})"
        )
    word = "pair" if cluster is None else "cluster"
    unit = np.arange(n) if cluster is None else cluster
    whole, without = _JACKKNIFES[name](predicted, measured, unit, units)
    size = abs if name != "r2" else float  # R² may be far below -1
    if not size(whole) < 1 - _ROUNDING:
        return "no interval: apart from scale, predictions and measurements agree in all pairs"
    if not all(size(value) < 1 - _ROUNDING for value in without.tolist()):
        return (
            f"no interval: one {word} determines the metric; in all other {word}s, predictions "
            "and measurements agree or do not vary"
        )
    value = float(_transformed(name, np.asarray(whole)))
    z = value + (_too_low(whole, predicted, measured) if name == "spearman" else 0.0)
    half = _half_width(_transformed(name, without), level)
    if half > WIDEST:
        return (
            f"no interval: too few {word}s determine the metric; 1 minus the correlation could "
            f"be more than {10 * round(math.exp(2 * WIDEST) / 10)} times larger or smaller"
        )
    loss = _lost_to_unseen(name, z, units, level)
    below, above = math.hypot(half, loss), half
    if z < 0 and name != "r2":
        below, above = above, below
    low, high = min(z - below, value), max(z + above, value)
    return _inverse(name, low), _inverse(name, high)


def _too_few(name: str, pairs: int, clusters: int | None) -> str:
    fewest_pairs, fewest_clusters = FEWEST_OF_ALL[name]
    if clusters is not None and clusters < fewest_clusters:
        word = "cluster" if clusters == 1 else "clusters"
        return f"no interval from {clusters} {word}: at least {fewest_clusters} are needed"
    if pairs < fewest_pairs:
        word = "pair" if pairs == 1 else "pairs"
        return f"no interval from {pairs} {word}: at least {fewest_pairs} are needed"
    return ""


def _half_width(without: Floats, level: float) -> float:
    """Return t times the standard error of z from z without each unit."""
    k = len(without)
    d = without - without.mean()
    squares = float((d * d).sum())
    if squares == 0:
        return math.inf
    kurtosis = k * float((d**4).sum()) / squares**2
    freedom = min(2 * k / max(kurtosis - 1, _ROUNDING), k - 1)
    t = float(special.stdtrit(freedom, (1 + level) / 2))
    return t * math.sqrt((k - 1) / k * squares)


def _too_low(r: float, predicted: Floats, measured: Floats) -> float:
    """Return by how much z of Spearman's correlation is expected to be below the population's."""
    every = np.zeros(len(measured), dtype=np.int64)
    tau, _ = _jackknife_kendall(predicted, measured, every, 1)
    return 3 * (r - tau) / ((len(measured) - 2) * (1 - r * r))


def _lost_to_unseen(name: str, z: float, units: int, level: float) -> float:
    """Return the decrease of |z| with unseen pairs."""
    unseen = 1 - (1 - level) ** (1 / units)
    grown = 1 + (UNSEEN_ERROR**2 - 1) * unseen  # the mean squared error
    if name == "r2":
        return math.log(grown) / 2
    if name == "kendall":  # an upper limit of the pairs that are then out of order
        return 0.0
    r = math.tanh(abs(z))
    if r == 0:
        return 0.0
    return abs(z) - math.atanh(1 / math.sqrt(1 + grown * (1 / (r * r) - 1)))


def _transformed(name: str, value: Floats) -> Floats:
    z: Floats = -np.log1p(-value) / 2 if name == "r2" else np.arctanh(value)
    return z


def _inverse(name: str, z: float) -> float:
    return -math.expm1(-2 * z) if name == "r2" else math.tanh(z)


def _jackknife_pearson(
    predicted: Floats, measured: Floats, unit: Integers, units: int
) -> tuple[float, Floats]:
    p, m = _standardised(predicted), _standardised(measured)
    terms = (np.ones_like(p), p, m, p * p, m * m, p * m)

    def correlation(n: Floats, a: Floats, b: Floats, aa: Floats, bb: Floats, ab: Floats) -> Floats:
        return (ab - a * b / n) / np.sqrt(_less_mean(aa, a * a / n) * _less_mean(bb, b * b / n))

    return _left_out(correlation, terms, unit, units)


def _jackknife_r2(
    predicted: Floats, measured: Floats, unit: Integers, units: int
) -> tuple[float, Floats]:
    largest = float(np.abs(measured).max())
    error, m = predicted / largest - measured / largest, measured / largest
    m = m - m.mean()
    terms = (np.ones_like(m), error * error, m, m * m)

    def share(n: Floats, ee: Floats, a: Floats, aa: Floats) -> Floats:
        return 1 - ee / _less_mean(aa, a * a / n)

    return _left_out(share, terms, unit, units)


def _jackknife_kendall(
    predicted: Floats, measured: Floats, unit: Integers, units: int
) -> tuple[float, Floats]:
    """Tau-b counts pairs of pairs: in order, not tied in one, not tied in the other."""
    n = len(measured)
    all_of, own = np.zeros((3, n)), np.zeros((3, n))
    for start in range(0, n, _CHUNK):
        rows = slice(start, start + _CHUNK)
        x = np.sign(predicted[rows, None] - predicted)
        y = np.sign(measured[rows, None] - measured)
        same = unit[rows, None] == unit
        for i, count in enumerate((x * y, np.abs(x), np.abs(y))):
            all_of[i, rows] = count.sum(axis=1)
            own[i, rows] = (count * same).sum(axis=1)
    # Without a unit: minus its rows and columns, plus its own block, which these count twice.
    gone = [add_up(2 * a - o, unit, units) for a, o in zip(all_of, own, strict=True)]

    def tau(s: Floats, x: Floats, y: Floats) -> Floats:
        return s / np.sqrt(x * y)

    total = all_of.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = tau(*(t - g for t, g in zip(total, gone, strict=True)))
    return float(tau(*total)), rest


def _jackknife_spearman(
    predicted: Floats, measured: Floats, unit: Integers, units: int
) -> tuple[float, Floats]:
    """Without a unit, ranks are lower by the number of its pairs below; equal ones count half."""
    whole = np.stack([ranks(predicted), ranks(measured)])
    rest = np.empty(units)
    for c in range(units):
        own = unit == c
        kept = whole[:, ~own]
        for row, gone in zip(kept, np.sort(whole[:, own]), strict=True):
            row -= (np.searchsorted(gone, row) + np.searchsorted(gone, row, side="right")) / 2
        rest[c] = _of_ranks(kept)
    return _of_ranks(whole), rest


def _of_ranks(both: Floats) -> float:
    x, y = both - (both.shape[1] + 1) / 2
    squares = float(x @ x) * float(y @ y)
    return float(x @ y) / math.sqrt(squares) if squares > 0 else math.nan


def _left_out(
    figure: Callable[..., Floats], terms: tuple[Floats, ...], unit: Integers, units: int
) -> tuple[float, Floats]:
    """Compute a function of sums from all units, and without each of them."""
    sums = [add_up(term, unit, units) for term in terms]
    total = [part.sum() for part in sums]
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = figure(*(t - part for t, part in zip(total, sums, strict=True)))
        return float(figure(*total)), rest


def _less_mean(squares: Floats, mean: Floats) -> Floats:
    """Return squares minus their mean; NaN where the difference is only rounding."""
    rest = squares - mean
    return np.where(rest > _NOTHING * (squares + mean), rest, np.nan)


def _standardised(values: Floats) -> Floats:
    scaled = values / np.abs(values).max()
    centred: Floats = scaled - scaled.mean()
    return centred / math.sqrt(float((centred * centred).mean()))


_JACKKNIFES = {
    "pearson": _jackknife_pearson,
    "kendall": _jackknife_kendall,
    "spearman": _jackknife_spearman,
    "r2": _jackknife_r2,
}
