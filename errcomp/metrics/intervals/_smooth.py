"""Intervals of figures that are smooth functions of means, from the residuals of pairs or clusters.

A figure is point = scale · R^root + offset with R = sum(x) / sum(y) (MAPE: y = 1), or
point = exp(R) (geometric means). An interval is a pair of deviations (low, high) of log R (of R
for geometric means), with low <= 0 <= high; `Smooth.value` turns one into a value of the figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from errcomp.metrics.intervals._resample import Nesting, add_up, five_sums, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Draws", "Smooth", "bca", "bootstrap_t", "log_t", "percentile", "widest"]

#: A standard error this small against the deviation is what rounding leaves of zero.
_ROUNDING = 1e-7

#: exp of more than this overflows.
_LARGEST = 700.0

Bounds = tuple[float, float]

#: What `errcomp.metrics.intervals._resample.deviations` returns: D and its standard error.
Draws = tuple["Floats", "Floats"]


@dataclass(frozen=True, slots=True)
class Smooth:
    """A figure ready for intervals.

    Attributes
    ----------
    point, offset, root : float
        See the head of this module.
    log : bool
        Whether the interval is made for log R; False for geometric means (R is a mean log).
    r : ndarray, shape (units,)
        Residuals (x - R y) / mean(x) of the units, relative to R if ``log``; they sum to zero.
    y : ndarray, shape (units,), or None
        Sizes of the units, scaled to mean 1; None where all are equal.
    nesting : Nesting or None
        How the units lie in clusters.
    """

    point: float
    offset: float
    root: float
    log: bool
    r: Floats
    y: Floats | None
    nesting: Nesting | None = None

    @property
    def units(self) -> int:
        """Number of outermost units: the sample size that counts."""
        return len(self.r) if self.nesting is None else self.nesting.outer

    def value(self, deviation: float) -> float:
        """Return the figure that lies this far from the point; infinite if it overflows."""
        if self.root * deviation > _LARGEST:
            return math.inf
        return (self.point - self.offset) * math.exp(self.root * deviation) + self.offset

    def outermost(self) -> tuple[Floats, Floats]:
        """Return residuals and sizes summed over each outermost unit."""
        r, y = self.r, np.ones_like(self.r) if self.y is None else self.y
        if self.nesting is None:
            return r, y
        outer = self.nesting.outermost()
        return add_up(r, outer, self.units), add_up(y, outer, self.units)

    def effective(self) -> float:
        """Return Kish's effective number of outermost units: smaller where sizes are unequal."""
        _, y = self.outermost()
        return float(y.sum() ** 2 / (y * y).sum())

    def standard_error(self) -> float:
        """Return the standard error of log R (of R for geometric means), by the delta method."""
        r, y = self.outermost()
        return float(spread(five_sums(r[np.newaxis], y[np.newaxis]), self.units)[1][0])


def log_t(figure: Smooth, level: float) -> Bounds:
    r"""Student t for log R, its upper bound corrected for the skewness of gamma distributed terms.

    .. math:: \log R - t\,s \;\ldots\; \log R + t\,s + s^2 (t^2 + 2) / 6

    with s the relative standard error and t the quantile with k - 1 degrees of freedom, k being the
    effective number of units. For a mean of terms with skewness :math:`\gamma` and coefficient of
    variation c, the studentised log mean has skewness :math:`(3c - 2\gamma)/\sqrt n`; for gamma
    distributed terms (squared normal errors, exponential errors) :math:`\gamma = 2c`, and the
    Cornish-Fisher term is the one above. The lower bound is left uncorrected: that is right for
    :math:`\gamma = 1.5 c`. For geometric means (plain means of logarithms) both are Student's.

    References
    ----------
    Hall (1992), "On the removal of skewness by transformation", Journal of the Royal Statistical
    Society B 54(1), 221-228 (the expansion of the studentised mean).
    """
    s = figure.standard_error()
    t = float(special.stdtrit(figure.effective() - 1, (1 + level) / 2))
    skew = s * s * (t * t + 2) / 6 if figure.log else 0.0
    return -t * s, t * s + skew


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


def widest(figure: Smooth, level: float, draws: Draws) -> Bounds:
    """Take the wider of `log_t` and `bootstrap_t` on each side: the default.

    Few errors seldom show how skewed errors are. The bootstrap takes the sample's skewness for the
    truth and stops too low; `log_t` supplies the skewness that errors have at least, the bootstrap
    what the sample shows beyond it.
    """
    low, high = log_t(figure, level)
    low_b, high_b = bootstrap_t(figure, level, draws)
    return min(low, low_b), max(high, high_b)


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
    r, y = figure.outermost()
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
