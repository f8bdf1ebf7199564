"""Lines between prediction and measurement, fitted to relative errors and judged on other pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Line", "line_between"]

#: Fewer pairs than this leave too little to judge a line of two numbers by.
LEAST = 8
FOLDS = 10
_STEPS = 30


class Line(NamedTuple):
    """Measurements as a function of predictions.

    Attributes
    ----------
    form : {"line", "power"}
        a + b p, or a p^b.
    intercept, slope : float
        a and b.
    correlation : float
        Pearson's, of the numbers, or of their logarithms for a power.
    after : float
        Mean absolute percentage error of pairs left out of the fit.
    after_factor : float
        The same after one factor.
    """

    form: str
    intercept: float
    slope: float
    correlation: float
    after: float
    after_factor: float


def line_between(predicted: Floats, measured: Floats, after_factor: float) -> Line | None:
    """Return the line or power that explains measurements far better than one factor does.

    Far better: half the error or less, on pairs left out of the fit, of what one factor leaves
    (``after_factor``) and of what one constant does, and at most 50 %. A line is preferred to a
    power that is not 1.25 times as good.
    """
    n = len(measured)
    if n < LEAST or np.ptp(predicted) == 0 or not np.isfinite(after_factor):
        return None
    fold = np.random.default_rng(0).permutation(n) % min(n, FOLDS)
    # In units of the middle pair, whose squares cannot overflow.
    units = float(np.median(np.abs(predicted))) or 1.0, float(np.median(measured))
    p, m = predicted / units[0], measured / units[1]
    if not (
        np.isfinite(p).all() and np.isfinite(m).all() and max(np.abs(p).max(), m.max()) < 1e100
    ):
        return None
    constant = _off(np.full(n, _weighted_median(m, 1 / m)), m)
    limit = min(after_factor / 2, constant / 2, 0.5)
    straight = float(np.abs(_left_out(1 / m, p / m, np.ones(n), fold)).mean())
    power = np.inf
    if (p > 0).all() and m.min() > 0:
        with np.errstate(over="ignore"):
            power = float(
                np.abs(np.expm1(_left_out(np.ones(n), np.log(p), np.log(m), fold))).mean()
            )
    if min(straight, power) > limit:
        return None
    if straight <= 1.25 * power:
        a, b = _fit(1 / m, p / m, np.ones(n))
        r = float(np.corrcoef(p, m)[0, 1])
        return Line("line", a * units[1], b * units[1] / units[0], r, straight, after_factor)
    a, b = _fit(np.ones(n), np.log(p), np.log(m))
    r = float(np.corrcoef(np.log(p), np.log(m))[0, 1])
    scale = float(np.exp(a + np.log(units[1]) - b * np.log(units[0])))
    return Line("power", scale, b, r, power, after_factor)


def _off(estimate: Floats, measured: Floats) -> float:
    return float(np.abs(estimate / measured - 1).mean())


def _left_out(one: Floats, x: Floats, y: Floats, fold: NDArray[np.int64]) -> Floats:
    """Return a + b x - y of each pair, fitted to the other folds."""
    residual = np.empty_like(y)
    for k in range(int(fold.max()) + 1):
        out = fold == k
        a, b = _fit(one[~out], x[~out], y[~out])
        residual[out] = a * one[out] + b * x[out] - y[out]
    return residual


def _fit(one: Floats, x: Floats, y: Floats) -> tuple[float, float]:
    """Return a and b for which the absolute values of a·one + b·x - y have the least sum.

    Iteratively reweighted least squares (Schlossmacher 1973): a few pairs far off do not move it.
    """
    weight = np.ones_like(y)
    a = b = 0.0
    for _ in range(_STEPS):
        w1, wx = weight * one, weight * x
        s11, s1x, sxx = float(w1 @ one), float(w1 @ x), float(wx @ x)
        determinant = s11 * sxx - s1x**2
        if determinant <= 1e-14 * s11 * sxx:
            return a, b
        y1, yx = float(w1 @ y), float(wx @ y)
        a, b = (sxx * y1 - s1x * yx) / determinant, (s11 * yx - s1x * y1) / determinant
        residual = np.abs(a * one + b * x - y)
        scale = float(np.median(residual))
        if scale == 0:
            return a, b
        weight = 1 / np.maximum(residual, 1e-3 * scale)
    return a, b


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
