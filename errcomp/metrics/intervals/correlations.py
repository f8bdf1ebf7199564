r"""Intervals of correlations: a jackknife of Fisher's z by pairs or whole clusters.

Textbook intervals of correlations hold for normal data. Predictions are not: sizes span orders of
magnitude and errors are shares of them, so that few pairs decide the correlation. The jackknife
asks the pairs themselves how much each of them, or each cluster, matters:

.. math:: z \pm t_\nu\, s, \qquad s^2 = \frac{k - 1}{k} \sum_c (z_{(c)} - \bar z)^2, \qquad
    \nu = \frac{2k}{\hat\kappa - 1}

with :math:`z = \operatorname{artanh} r` (:math:`-\tfrac12 \ln(1 - R^2)` for R²), :math:`z_{(c)}`
the same without unit c, and :math:`\hat\kappa` the kurtosis of the :math:`z_{(c)}`: where one unit
decides, the standard error itself is known from few degrees of freedom (never more than k - 1).

The end towards 0 lies :math:`\sqrt{(t_\nu s)^2 + u^2}` away, where u is what z would lose if pairs
of a kind that none of the k units showed erred `UNSEEN_ERROR` times as much as those seen: up to
:math:`1 - (1 - level)^{1/k}` of the population may be such pairs, at the level of the interval.

Rarer and larger errors than that are not allowed for: where they are, intervals lie too high, which
never makes a true claim look overstated (docs/intervals.md has how often).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from errcomp.metrics.intervals._resample import add_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["FEWEST_OF_ALL", "WIDEST", "correlation_bounds"]

#: Pairs needed, and clusters where whole clusters are left out. R² needs more: a sample seldom has
#: the largest measurements, which its denominator takes from the population.
FEWEST_OF_ALL = {"pearson": (8, 3), "kendall": (10, 5), "r2": (50, 50)}
#: No interval where z is less certain than this: 1 - r could be 150 times as much, or as little.
WIDEST = 2.5
#: What the pairs not seen may err, as a multiple of those seen.
UNSEEN_ERROR = 5.0

#: Kendall's tau compares every pair with every other.
_MOST_FOR_KENDALL = 20_000
_CHUNK = 512
#: A correlation this close to 1 is exact but for rounding.
_ROUNDING = 1e-12
#: Less variation than this share of the sums that it is the difference of is rounding.
_NOTHING = 1e-12


def correlation_bounds(
    name: str,
    predicted: Floats,
    measured: Floats,
    cluster: Integers | None,
    level: float,
) -> tuple[float, float] | str:
    r"""Return the interval of a correlation, or the reason why there is none.

    Parameters
    ----------
    name : {"pearson", "kendall", "r2"}
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
    if name == "kendall" and n > _MOST_FOR_KENDALL:
        return f"no interval: Kendall's tau compares all pairs with all, too many from {n:,}"
    word = "pair" if cluster is None else "cluster"
    unit = np.arange(n) if cluster is None else cluster
    whole, without = _JACKKNIFES[name](predicted, measured, unit, units)
    size = abs if name != "r2" else float  # R² may be far below -1
    if not size(whole) < 1 - _ROUNDING:
        return "no interval: predictions and measurements agree in all pairs (but for a scale)"
    if not all(size(value) < 1 - _ROUNDING for value in without.tolist()):
        return f"no interval: one {word} decides it; without it the others agree, or do not vary"
    z = float(_transformed(name, np.asarray(whole)))
    half = _half_width(_transformed(name, without), level)
    if half > WIDEST:
        return (
            f"no interval: too few {word}s decide it; 1 minus the correlation could be more than "
            f"{10 * round(math.exp(2 * WIDEST) / 10)} times as much, or as little"
        )
    loss = _lost_to_unseen(name, z, units, level)
    below, above = math.hypot(half, loss), half
    if z < 0 and name != "r2":
        below, above = above, below
    low, high = z - below, z + above
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


def _lost_to_unseen(name: str, z: float, units: int, level: float) -> float:
    """Return by how much |z| would fall with pairs that no unit showed."""
    unseen = 1 - (1 - level) ** (1 / units)
    grown = 1 + (UNSEEN_ERROR**2 - 1) * unseen  # the mean squared error
    if name == "r2":
        return math.log(grown) / 2
    if name == "kendall":  # whose pairs out of order are at most so many more
        return 0.0
    r = math.tanh(abs(z))
    if r == 0:
        return 0.0
    return abs(z) - math.atanh(1 / math.sqrt(1 + grown * (1 / (r * r) - 1)))


def _transformed(name: str, value: Floats) -> Floats:
    found: Floats = -np.log1p(-value) / 2 if name == "r2" else np.arctanh(value)
    return found


def _inverse(name: str, z: float) -> float:
    return -math.expm1(-2 * z) if name == "r2" else math.tanh(z)


def _jackknife_pearson(
    predicted: Floats, measured: Floats, unit: Integers, units: int
) -> tuple[float, Floats]:
    p, m = _standardised(predicted), _standardised(measured)
    terms = (np.ones_like(p), p, m, p * p, m * m, p * m)

    def correlation(n: Floats, a: Floats, b: Floats, aa: Floats, bb: Floats, ab: Floats) -> Floats:
        return (ab - a * b / n) / np.sqrt(_left(aa, a * a / n) * _left(bb, b * b / n))

    return _left_out(correlation, terms, unit, units)


def _jackknife_r2(
    predicted: Floats, measured: Floats, unit: Integers, units: int
) -> tuple[float, Floats]:
    largest = float(np.abs(measured).max())
    error, m = predicted / largest - measured / largest, measured / largest
    m = m - m.mean()
    terms = (np.ones_like(m), error * error, m, m * m)

    def share(n: Floats, ee: Floats, a: Floats, aa: Floats) -> Floats:
        return 1 - ee / _left(aa, a * a / n)

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
    # What goes with a unit: its rows and columns, of which its own block was counted twice.
    gone = [add_up(2 * a - o, unit, units) for a, o in zip(all_of, own, strict=True)]

    def tau(s: Floats, x: Floats, y: Floats) -> Floats:
        return s / np.sqrt(x * y)

    total = all_of.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = tau(*(t - g for t, g in zip(total, gone, strict=True)))
    return float(tau(*total)), rest


def _left_out(
    figure: Callable[..., Floats], terms: tuple[Floats, ...], unit: Integers, units: int
) -> tuple[float, Floats]:
    """Compute a function of sums from all units, and without each of them."""
    sums = [add_up(term, unit, units) for term in terms]
    total = [one.sum() for one in sums]
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = figure(*(t - one for t, one in zip(total, sums, strict=True)))
        return float(figure(*total)), rest


def _left(squares: Floats, mean: Floats) -> Floats:
    """Return squares less their mean; nothing (NaN) where rounding is what is left of them."""
    rest = squares - mean
    return np.where(rest > _NOTHING * (squares + mean), rest, np.nan)


def _standardised(values: Floats) -> Floats:
    scaled = values / np.abs(values).max()
    centred: Floats = scaled - scaled.mean()
    return centred / math.sqrt(float((centred * centred).mean()))


_JACKKNIFES = {
    "pearson": _jackknife_pearson,
    "kendall": _jackknife_kendall,
    "r2": _jackknife_r2,
}
