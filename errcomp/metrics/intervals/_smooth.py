"""Intervals of figures that are smooth functions of means, from the residuals of pairs or clusters.

A figure is point = scale · R^root + offset with R = sum(x) / sum(y) (MAPE: y = 1), or
point = exp(R) (geometric means). An interval is a pair of deviations (low, high) of log R (of R
for geometric means), with low <= 0 <= high; `Smooth.value` turns one into a value of the figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from errcomp.metrics.intervals._resample import five_sums, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "Draws",
    "Smooth",
    "Spread",
    "allowance",
    "bca",
    "bootstrap_t",
    "crossed",
    "log_t",
    "of_clusters",
    "of_pairs",
    "percentile",
    "too_wide",
    "upper",
]

#: A standard error this small against the deviation is what rounding leaves of zero.
_ROUNDING = 1e-7

#: exp of more than this overflows.
_LARGEST = 700.0

#: How much more skewed than gamma distributed terms the terms may be: see `allowance`.
_SKEWEST = 16.0
#: The allowance for skewness is at most this share of Student's deviation.
_MOST = 0.6
#: A bound this many times the figure says nothing that anybody could use.
USABLE = 12.0
#: Of a variance with fewer degrees of freedom one cluster makes nearly all.
FEWEST_FREEDOM = 1.5
#: Weights that count as fewer pairs (Kish) let one or two measurements decide.
FEWEST_EFFECTIVE = 3.0

Bounds = tuple[float, float]

#: What `errcomp.metrics.intervals._resample.deviations` returns: D and its standard error.
Draws = tuple["Floats", "Floats"]


class Spread(NamedTuple):
    """The standard error of log R (of R for geometric means) under one way of drawing.

    Attributes
    ----------
    error : float
    freedom : float
        Degrees of freedom of Student's t.
    clustered : bool
        Whether whole clusters are drawn.
    """

    error: float
    freedom: float
    clustered: bool


@dataclass(frozen=True, slots=True)
class Smooth:
    """A figure ready for intervals.

    Attributes
    ----------
    point, offset, root : float
        See the head of this module.
    log : bool
        Whether the interval is made for log R; False for geometric means (R is a mean log).
    spreads : tuple of Spread
        Of single pairs first, then of the clusters, if whole clusters are drawn.
    effective : float
        Kish's effective number of pairs: smaller where their weights are unequal.
    r : ndarray, shape (units,)
        Residuals (x - R y) / mean(x) of the units that a bootstrap draws, relative to R if ``log``;
        they sum to zero. Empty where two keys cross, which no bootstrap here draws.
    y : ndarray, shape (units,), or None
        Sizes of the units, scaled to mean 1; None where all are equal.
    """

    point: float
    offset: float
    root: float
    log: bool
    spreads: tuple[Spread, ...]
    effective: float
    r: Floats
    y: Floats | None

    def value(self, deviation: float) -> float:
        """Return the figure that lies this far from the point; infinite if it overflows."""
        if self.root * deviation > _LARGEST:
            return math.inf
        return (self.point - self.offset) * math.exp(self.root * deviation) + self.offset

    def standard_error(self) -> float:
        """Return the standard error of the units that a bootstrap draws, by the delta method."""
        y = np.ones_like(self.r) if self.y is None else self.y
        sums = five_sums(self.r[np.newaxis], y[np.newaxis])
        return float(spread(sums, len(self.r))[1][0])


def of_pairs(squares: float, n: int, effective: float) -> Spread:
    r"""Return the spread of single pairs.

    .. math:: s^2 = \frac{n}{n - 1} \frac{\sum_i r_i^2}{(\sum_i y_i)^2}

    with Kish's effective number less one as degrees of freedom.

    Parameters
    ----------
    squares : float
        Sum of the squared residuals over the squared sum of y.
    n : int
    effective : float
        :math:`(\sum y)^2 / \sum y^2`.
    """
    return Spread(math.sqrt(squares * n / max(n - 1, 1)), effective - 1, False)


def of_clusters(r: Floats, y: Floats, squares: Floats) -> Spread:
    r"""Return the spread of whole clusters: CR2 with the degrees of freedom of Bell and McCaffrey.

    .. math:: s^2 = \frac{1}{(\sum_j y_j)^2} \sum_j \frac{r_j^2}{1 - h_j}, \quad
              h_j = y_j / \textstyle\sum y, \quad
              \nu = \frac{(\operatorname{tr} M)^2}{\operatorname{tr} M^2}

    with M the matrix of that quadratic form under independent pairs, whose residuals scatter in
    proportion to y.

    Parameters
    ----------
    r, y : ndarray, shape (clusters,)
        Residuals and sizes of each cluster.
    squares : ndarray, shape (clusters,)
        Sum of the squared sizes of the pairs in each cluster.

    References
    ----------
    Bell and McCaffrey (2002), "Bias reduction in standard errors for linear regression with
    multi-stage samples", Survey Methodology 28(2), 169-181.
    """
    total = y.sum()
    h, w = y / total, squares / squares.sum()
    a2 = 1 / np.maximum(1 - h, 1e-12)
    error = math.sqrt(float((a2 * r * r).sum())) / float(total)
    # M = A (I - h 1') W (I - 1 h') A: a diagonal and two vectors, so that no matrix is made.
    p, q, s = (float((a2 * u).sum()) for u in (h * h, h * w, w * w))
    trace = float((a2 * (w - 2 * h * w + h * h)).sum())
    square = float((a2 * a2 * (w * w + 2 * w * (h * h - 2 * h * w))).sum())
    square += 2 * (p * s + q * q) + p * p - 4 * p * q
    return Spread(error, trace * trace / square, True)


def crossed(first: Spread, second: Spread, squares: float) -> Spread:
    r"""Return the spread where two keys cross.

    .. math:: s^2 = \max(s_A^2 + s_B^2 - s_{A \cap B}^2, \; s_A^2, \; s_B^2)

    with Satterthwaite's degrees of freedom of the sum.

    Parameters
    ----------
    first, second : Spread
        Of the clusters of each key.
    squares : float
        Sum of the squared residuals of the cells in which they cross, over the squared sum of y.

    References
    ----------
    Cameron, Gelbach and Miller (2011), "Robust inference with multiway clustering", Journal of
    Business & Economic Statistics 29(2), 238-249, doi:10.1198/jbes.2010.07136.
    """
    a, b = first.error**2, second.error**2
    if a + b == 0:
        return first
    freedom = (a + b) ** 2 / (a * a / first.freedom + b * b / second.freedom)
    return Spread(math.sqrt(max(a + b - squares, a, b)), freedom, True)


def allowance(
    s: Floats, t: Floats, freedom: Floats, *, clustered: bool, tail: float = 1.0
) -> Floats:
    r"""Return by how much the upper bound is moved up for the skewness of the terms.

    .. math:: \min\big(\kappa \, s^2 (t^2 + 2) / 6, \; \min(\nu/5, \; 0.6) \, t \, s\big)

    For a mean of terms with skewness :math:`\gamma` and coefficient of variation c, the studentised
    log mean has skewness :math:`(3c - 2\gamma)/\sqrt n`: the first term of Cornish and Fisher with
    :math:`\kappa = 2\gamma/c - 3`. It is 1 for gamma distributed terms (squared normal errors,
    exponential ones) and 3 for log-normal ones. A sample seldom shows how skewed its population is:
    with a rare kind of error that it has missed, :math:`\kappa` would have to be larger the more
    pairs there are, up to the number that shows such errors. At 95 % it is
    :math:`1 + (n - 4)/5` for pairs, from 1 to 16; for clusters, whose means hardly vary around what
    they have in common, 16. At lower levels :math:`\kappa - 1` is less by ``tail``, the square of
    the ratio of the normal quantiles.

    References
    ----------
    Hall (1992), "On the removal of skewness by transformation", Journal of the Royal Statistical
    Society B 54(1), 221-228 (the expansion of the studentised mean).
    """
    growing: Floats = np.clip(1 + (freedom - 3) / 5, 1.0, _SKEWEST)
    kappa: Floats = 1 + tail * ((np.full_like(growing, _SKEWEST) if clustered else growing) - 1)
    # Student's t of two or three degrees of freedom allows for much by itself.
    most = np.minimum(freedom / 5, _MOST)
    found: Floats = np.minimum(kappa * s * s * (t * t + 2) / 6, most * t * s)
    return found


def log_t(figure: Smooth, level: float) -> Bounds:
    r"""Student t for log R, its upper bound moved up by the `allowance` for skewness.

    .. math:: \log R - t\,s \;\ldots\; \log R + t\,s + \text{allowance}

    The lowest and highest of these over single pairs and clusters: few clusters that happen to
    agree do not make an interval narrower than that of independent pairs. The lower bound is left
    uncorrected: that is right for :math:`\gamma = 1.5 c`. For geometric means (plain means of
    logarithms) both are Student's.
    """
    low = high = 0.0
    for one in figure.spreads:
        s, freedom = np.asarray(one.error), np.asarray(one.freedom)
        t, high_at = upper(s, freedom, level, figure.log, one.clustered)
        low, high = min(low, -float(t) * one.error), max(high, float(high_at))
    return low, high


def upper(
    s: Floats, freedom: Floats, level: float, log: bool, clustered: bool
) -> tuple[Floats, Floats]:
    """Return Student's quantile and the upper deviation of `log_t`, for any number of figures."""
    t: Floats = np.asarray(special.stdtrit(freedom, (1 + level) / 2), dtype=np.float64)
    # What a sample has missed lies in the tail: it matters less to bounds that are nearer.
    z = special.ndtri((1 + level) / 2) / special.ndtri(0.975)
    tail = min(1.0, float(z) ** 2)
    if not log:
        return t, t * s
    high: Floats = t * s + allowance(s, t, freedom, clustered=clustered, tail=tail)
    return t, high


def too_wide(high: Floats, root: float) -> NDArray[np.bool_]:
    """Say whether the upper bound at 95 % lies so far up that nobody could use it."""
    return np.asarray(root * high > math.log(USABLE))


def bootstrap_t(figure: Smooth, level: float, draws: Draws) -> Bounds:
    """Studentised bootstrap for log R: the standard error is recomputed in every resample.

    References
    ----------
    Hall (1992), The Bootstrap and Edgeworth Expansion, Springer, chapter 3.
    Davison and Hinkley (1997), Bootstrap Methods and their Application, Cambridge University
    Press, sections 2.4 and 5.2.
    """
    d, se = draws
    scale = np.maximum(1 + d, 0) if figure.log else np.ones_like(d)
    # A resample without spread (but for rounding) is unlimited evidence against the point.
    usable = (se > _ROUNDING * np.abs(d)) & (scale > 0)
    t = np.where(d == 0, 0.0, np.copysign(np.inf, d))
    change = np.log1p(d[usable]) if figure.log else d[usable]
    t[usable] = change * scale[usable] / se[usable]
    low, high = _order_statistics(t, level)
    s = figure.standard_error()
    return min(-high * s, 0.0), max(-low * s, 0.0)


def percentile(figure: Smooth, level: float, draws: Draws) -> Bounds:
    """Quantiles of the resampled figure. Too narrow for small samples; on request only."""
    return _quantiles(figure, draws[0], (1 - level) / 2, (1 + level) / 2)


def bca(figure: Smooth, level: float, draws: Draws) -> Bounds:
    """Bias-corrected and accelerated percentiles; the acceleration is that of the figure itself.

    References
    ----------
    Efron (1987), "Better bootstrap confidence intervals", Journal of the American Statistical
    Association 82(397), 171-185, doi:10.1080/01621459.1987.10478410.
    """
    d = draws[0]
    z0 = float(special.ndtri((np.count_nonzero(d < 0) + np.count_nonzero(d <= 0)) / (2 * len(d))))
    if math.isinf(z0):
        return -math.inf, math.inf
    r, y = figure.r, np.ones_like(figure.r) if figure.y is None else figure.y
    left_out = -r / (y.sum() - y)
    values = np.maximum(1 + left_out, 0) ** figure.root if figure.log else np.exp(left_out)
    change = values.mean() - values
    # The acceleration has no scale; that of the data may be one whose cube overflows.
    change = change / (np.abs(change).max() or 1.0)
    a = float((change**3).sum() / (6 * (change**2).sum() ** 1.5))
    z = z0 + special.ndtri(np.asarray([(1 - level) / 2, (1 + level) / 2]))
    low, high = special.ndtr(z0 + z / (1 - a * z))
    return _quantiles(figure, d, float(low), float(high))


def _quantiles(figure: Smooth, d: Floats, low: float, high: float) -> Bounds:
    bounds = np.quantile(d, [low, high])
    if figure.log:
        with np.errstate(divide="ignore"):
            bounds = np.log(np.maximum(1 + bounds, 0))
    return min(float(bounds[0]), 0.0), max(float(bounds[1]), 0.0)


def _order_statistics(t: Floats, level: float) -> Bounds:
    """Return the k-th smallest and k-th largest value, k = (resamples + 1)(1 - level) / 2."""
    k = math.floor((len(t) + 1) * (1 - level) / 2 + 1e-9)
    parts = np.partition(t, (k - 1, len(t) - k))
    return float(parts[k - 1]), float(parts[len(t) - k])
