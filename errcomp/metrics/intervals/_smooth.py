"""Intervals of smooth functions of means, from the residuals of pairs or clusters.

A metric is point = scale · R^root + offset with R = sum(x) / sum(y) (MAPE: y = 1), or
point = exp(R) (geometric means). An interval is a pair of deviations (low, high) of log R (of R
for geometric means), with low <= 0 <= high; `Smooth.value` turns one into a value of the figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from errcomp.metrics._registry import FIGURES, Means, NoSpreadError
from errcomp.metrics.intervals._coverage import COVERAGE
from errcomp.metrics.intervals.dependence import Dependence
from errcomp.metrics.pointwise import Checked
from errcomp.tables.frames import refined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Sums = tuple[Floats, Floats, Floats, Floats, Floats]

#: A standard error this small against the deviation is rounding.
_ROUNDING = 1e-7

#: Residuals below this are rounding, and so are deviations this small beside the largest.
_EQUAL = 1e-12

#: exp of more than this overflows.
_LARGEST = 700.0

#: How much more skewed than gamma-distributed terms the terms may be: see `allowance`.
_SKEWEST = 16.0
#: The allowance for skewness is at most this share of Student's deviation.
_MOST = 0.6
#: A bound this many times the metric is not useful.
USABLE = 12.0
#: With fewer degrees of freedom, one cluster dominates the variance.
FEWEST_FREEDOM = 1.5
#: With fewer effective pairs (Kish), one or two measurements dominate.
FEWEST_EFFECTIVE = 3.0

Bounds = tuple[float, float]

#: The result of `deviations`: D and its standard error.
Draws = tuple["Floats", "Floats"]


class Spread(NamedTuple):
    """The standard error of log R (of R for geometric means) from pairs or clusters.

    Attributes
    ----------
    error : float
    freedom : float
        Degrees of freedom of Student's t.
    clustered : bool
        Whether whole clusters are resampled.
    """

    error: float
    freedom: float
    clustered: bool


@dataclass(frozen=True, slots=True)
class Smooth:
    """A metric prepared for intervals.

    Attributes
    ----------
    point, offset, root : float
        See the head of this module.
    log : bool
        Whether the interval is computed for log R; False for geometric means (R is a mean log).
    spreads : tuple of Spread
        Of single pairs first, then of the clusters, if whole clusters are resampled.
    effective : float
        Kish's effective number of pairs: smaller where their weights are unequal.
    r : ndarray, shape (units,)
        Residuals (x - R y) / mean(x) of the units that a bootstrap draws, relative to R if ``log``;
        they sum to zero. Empty where two keys cross, because no bootstrap here supports that.
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
        """Return the metric at this deviation from the point; infinite if it overflows."""
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
    # M = A (I - h 1') W (I - 1 h') A: a diagonal and two vectors, so no matrix is needed.
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
    r"""Return the increase of the upper bound for the skewness of the terms.

    .. math:: \min\big(\kappa \, s^2 (t^2 + 2) / 6, \; \min(\nu/5, \; 0.6) \, t \, s\big)

    For a mean of terms with skewness :math:`\gamma` and coefficient of variation c, the studentised
    log mean has skewness :math:`(3c - 2\gamma)/\sqrt n`: the first term of Cornish and Fisher with
    :math:`\kappa = 2\gamma/c - 3`. It is 1 for gamma-distributed terms (squared normal errors,
    exponential ones) and 3 for log-normal ones. A sample seldom shows how skewed its population is.
    If it has missed a rare kind of error, :math:`\kappa` must grow with the number of pairs, up to
    the number that shows such errors. At 95 % it is :math:`1 + (n - 4)/5` for pairs, from 1 to 16;
    for clusters, whose means vary little around their common part, it is 16. At lower levels
    :math:`\kappa - 1` is smaller by ``tail``, the square of the ratio of the normal quantiles.

    References
    ----------
    Hall (1992), "On the removal of skewness by transformation", Journal of the Royal Statistical
    Society B 54(1), 221-228 (the expansion of the studentised mean).
    """
    growing: Floats = np.clip(1 + (freedom - 3) / 5, 1.0, _SKEWEST)
    kappa: Floats = 1 + tail * ((np.full_like(growing, _SKEWEST) if clustered else growing) - 1)
    # Student's t already allows for much at two or three degrees of freedom.
    most = np.minimum(freedom / 5, _MOST)
    shift: Floats = np.minimum(kappa * s * s * (t * t + 2) / 6, most * t * s)
    return shift


def log_t(figure: Smooth, level: float) -> Bounds:
    r"""Student t for log R, with the upper bound raised by the `allowance` for skewness.

    .. math:: \log R - t\,s \;\ldots\; \log R + t\,s + \text{allowance}

    The bounds are the lowest and highest over single pairs and clusters: a few clusters that agree
    by chance do not make the interval narrower than that of independent pairs. The lower bound is
    not corrected, which is right for :math:`\gamma = 1.5 c`. For geometric means (plain means of
    logarithms) both are Student's.
    """
    low = high = 0.0
    for spread in figure.spreads:
        s, freedom = np.asarray(spread.error), np.asarray(spread.freedom)
        t, high_at = upper(s, freedom, level, figure.log, spread.clustered)
        low, high = min(low, -float(t) * spread.error), max(high, float(high_at))
    return low, high


def upper(
    s: Floats, freedom: Floats, level: float, log: bool, clustered: bool
) -> tuple[Floats, Floats]:
    """Return Student's quantile and the upper deviation of `log_t`, for any number of metrics."""
    different, which = np.unique(freedom, return_inverse=True)  # a quantile takes 2 µs
    quantiles = np.asarray(special.stdtrit(different, (1 + level) / 2), dtype=np.float64)
    t: Floats = quantiles[which].reshape(freedom.shape)
    # Missed errors are in the tail, so they matter less for bounds at lower levels.
    z = special.ndtri((1 + level) / 2) / special.ndtri(0.975)
    tail = min(1.0, float(z) ** 2)
    if not log:
        return t, t * s
    high: Floats = t * s + allowance(s, t, freedom, clustered=clustered, tail=tail)
    return t, high


def too_wide(high: Floats, root: float) -> NDArray[np.bool_]:
    """Say whether the upper bound at 95 % is too high to be useful."""
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
    # A resample without spread (up to rounding) is unlimited evidence against the point.
    usable = (se > _ROUNDING * np.abs(d)) & (scale > 0)
    t = np.where(d == 0, 0.0, np.copysign(np.inf, d))
    change = np.log1p(d[usable]) if figure.log else d[usable]
    t[usable] = change * scale[usable] / se[usable]
    low, high = _order_statistics(t, level)
    s = figure.standard_error()
    return min(-high * s, 0.0), max(-low * s, 0.0)


def percentile(figure: Smooth, level: float, draws: Draws) -> Bounds:
    """Quantiles of the resampled metric. Too narrow for small samples; on request only."""
    return _quantiles(figure, draws[0], (1 - level) / 2, (1 + level) / 2)


def bca(figure: Smooth, level: float, draws: Draws) -> Bounds:
    """Bias-corrected and accelerated percentiles; the acceleration is that of the metric itself.

    References
    ----------
    Efron (1987), "Better bootstrap confidence intervals", Journal of the American Statistical
    Association 82(397), 171-185, doi:10.1080/01621459.1987.10478410.
    """
    d = draws[0]
    # A resample equal to the sample, frequent with few clusters, differs from it by rounding only.
    size = np.abs(d)
    d = np.where(size <= _EQUAL * size[np.isfinite(size)].max(initial=0.0), 0.0, d)
    z0 = float(special.ndtri((np.count_nonzero(d < 0) + np.count_nonzero(d <= 0)) / (2 * len(d))))
    if math.isinf(z0):
        return -math.inf, math.inf
    r, y = figure.r, np.ones_like(figure.r) if figure.y is None else figure.y
    left_out = -r / (y.sum() - y)
    values = np.maximum(1 + left_out, 0) ** figure.root if figure.log else np.exp(left_out)
    change = values.mean() - values
    # The acceleration has no scale; cubes of unscaled data may overflow.
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


# From pairs or clusters to the inputs of an interval.

#: Figures of which the coverage of an interval was simulated, each with the scale on which it is
#: studentised. Bias is 1 less than a mean of positive ratios, the error of the total 1 less than a
#: ratio of sums, so that they too are studentised as logarithms.
SMOOTH: dict[str, Means] = {
    spec.name: spec.means
    for spec in FIGURES.values()
    if spec.means and spec.name in COVERAGE["log-t"]
}


def smooth(form: Means, point: float, data: Checked, drawn: Dependence) -> Smooth:
    """Prepare a metric for intervals.

    Raises
    ------
    NoSpreadError
        The terms are all equal, all zero, or zero where a logarithm is needed.
    """
    x, y = form.term(data), np.ones(len(data.predicted))
    if form.log and x.any():
        x = x / np.abs(x).max()
    if form.weighted:
        y = data.measured / data.measured.max()
    mean = mean_of(form, float(x.sum()), float(y.sum()), exact=not x.any())
    r = (x - mean * y) / (mean if form.log else 1.0)
    if np.abs(r).max() < _EQUAL * y.mean():
        raise NoSpreadError("no interval: all errors are equal")
    single = Single(float((r * r).sum()), len(r), float(y.sum() ** 2 / (y * y).sum()))
    return of_units(form, point, Cells(r, y, y * y, single), drawn)


class Single(NamedTuple):
    """Single pairs: their squared residuals, number and effective number."""

    squares: float
    n: int
    effective: float


class Cells(NamedTuple):
    """Pairs, or cells of pairs that share all clusters.

    Attributes
    ----------
    r, y, squares : ndarray, shape (cells,)
        Sums over each cell of the residuals, of the sizes and of their squares.
    single : Single
    """

    r: Floats
    y: Floats
    squares: Floats
    single: Single


def of_units(form: Means, point: float, cells: Cells, drawn: Dependence) -> Smooth:
    """Prepare a metric from residuals of pairs, or of cells that share all clusters."""
    if len(drawn.drawn) == 2:
        r, y = np.empty(0), np.ones(1)  # no bootstrap here draws crossing clusters
    else:
        r, y, _ = _sums_by(drawn.drawn[0], cells) if drawn.drawn else cells[:3]
    sizes = None if np.ptp(y) == 0 else y / y.mean()
    return Smooth(
        point=point,
        offset=form.offset,
        root=form.root,
        log=form.log,
        spreads=spreads_of(cells, drawn),
        effective=cells.single.effective,
        r=r / y.mean(),
        y=sizes,
    )


def spreads_of(cells: Cells, drawn: Dependence) -> tuple[Spread, ...]:
    """Return the standard errors of single pairs, and of whole clusters if there are any."""
    single, total = cells.single, float(cells.y.sum())
    alone = of_pairs(single.squares / total**2, single.n, single.effective)
    spreads = [of_clusters(*_sums_by(code, cells)) for code in drawn.drawn]
    if not drawn.names:  # copies of pairs: the bootstrap draws distinct pairs
        return (spreads[0]._replace(clustered=False),) if spreads else (alone,)
    if len(spreads) == 2:
        first, second = drawn.codes
        inner = _sums_by(refined(first, second), cells)[0]
        spreads = [crossed(spreads[0], spreads[1], float((inner * inner).sum()) / total**2)]
    return alone, *spreads


def mean_of(form: Means, x: float, y: float, *, exact: bool) -> float:
    """Return R; its logarithm must exist if it is needed.

    Raises
    ------
    NoSpreadError
        It does not.
    """
    mean = x / y
    if form.log and mean <= 0:
        raise NoSpreadError(
            "no interval: every prediction is exact"
            if exact
            else "no interval: the mean ratio of predicted to measured is not positive"
        )
    return mean


def _sums_by(code: NDArray[np.int64], cells: Cells) -> tuple[Floats, Floats, Floats]:
    count = int(code.max()) + 1
    r, y, squares = (add_up(v, code, count) for v in (cells.r, cells.y, cells.squares))
    return r, y, squares


# Bootstrap of a ratio of sums: of pairs, or of whole clusters.
#
# It uses residuals r (they sum to zero) and sizes y of the resampled units. The deviation of a
# resample from the data is D = sum(r) / sum(y). Its standard error is that of a ratio estimator,
# recomputed in every resample from the five sums of r, y, r², ry and y².

#: Draws held in memory at a time. Memory does not depend on n or on the number of resamples; the
#: buffers of one block stay in the cache. Another value changes the results.
BLOCK = 1 << 16
#: Up to this many units, draws use 16 bits: fewer to generate, but rejected more often the larger n
#: is. Another value changes the results, too.
_FEW_BITS = 5_000


def add_up(values: Floats, code: NDArray[np.int64], count: int) -> Floats:
    """Sum the values of each code from 0 to count - 1."""
    return np.bincount(code, weights=values, minlength=count).astype(np.float64, copy=False)


def spread(sums: Sums, units: int) -> tuple[Floats, Floats]:
    """Return D and its standard error from the five sums; the delta method for a ratio."""
    r, y, rr, ry, yy = sums
    d = r / y
    squares = np.maximum(rr - 2 * d * ry + d * d * yy, 0.0)
    return d, np.sqrt(squares * (units / (units - 1))) / y


def deviations(
    r: Floats,
    y: Floats | None,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Draw resamples and return D and its standard error for each.

    Parameters
    ----------
    r : ndarray, shape (units,)
        Residuals of the units drawn (pairs, or whole clusters); they sum to zero.
    y : ndarray, shape (units,), or None
        Sizes of the units; None where all are 1.
    resamples : int
    rng : numpy.random.Generator

    Returns
    -------
    d, se : ndarray, shape (resamples,)
    """
    d, se = np.empty(resamples), np.empty(resamples)
    done = 0
    for sums in _draw_units(r, y, resamples, rng):
        rows = slice(done, done + len(sums[0]))
        d[rows], se[rows] = spread(sums, len(r))
        done = rows.stop
    return d, se


def five_sums(r: Floats, y: Floats | None) -> Sums:
    """Sum r, y, r², ry and y² over the draws of each resample; shape (resamples, draws) in."""
    # Not r @ ones: BLAS would use threads, and the bytes would depend on how many there are.
    total, squares = r.sum(axis=1), np.einsum("ij,ij->i", r, r)
    if y is None:
        n = np.full(len(r), float(r.shape[1]))
        return total, n, squares, total, n
    products = np.einsum("ij,ij->i", r, y)
    return total, y.sum(axis=1), squares, products, np.einsum("ij,ij->i", y, y)


def _draw_units(
    r: Floats, y: Floats | None, resamples: int, rng: np.random.Generator
) -> Iterator[Sums]:
    n = len(r)
    columns = min(n, BLOCK)
    rows = max(1, BLOCK // columns)
    dtype = np.uint16 if n <= _FEW_BITS else np.int64
    buffer = np.empty(rows * columns), np.empty(rows * columns)

    def take(values: Floats, index: NDArray[Any], out: Floats) -> Floats:
        # Indices are in range; with "clip" NumPy skips its check before it writes.
        shape = out[: index.size].reshape(index.shape)
        return np.take(values, index, out=shape, mode="clip")

    for start in range(0, resamples, rows):
        height = min(rows, resamples - start)
        parts = []
        for left in range(0, n, columns):
            width = min(columns, n - left)
            index = rng.integers(0, n, size=(height, width), dtype=dtype)
            sizes = None if y is None else take(y, index, buffer[1])
            parts.append(five_sums(take(r, index, buffer[0]), sizes))
        yield _add(parts)


def _add(parts: list[Sums]) -> Sums:
    if len(parts) == 1:
        return parts[0]
    r, y, rr, ry, yy = (np.sum(column, axis=0) for column in zip(*parts, strict=True))
    return r, y, rr, ry, yy
