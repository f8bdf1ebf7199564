"""Figures and intervals from sums over rows, for all groups at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._registry import figure
from errcomp.metrics.intervals._coverage import Sample
from errcomp.metrics.intervals._kinds import few_weigh, unusable
from errcomp.metrics.intervals._smooth import FEWEST_EFFECTIVE, too_wide, upper
from errcomp.metrics.intervals.dependence import Dependence
from errcomp.scale._forms import FORMS, FromSums, within
from errcomp.scale._totals import Totals
from errcomp.tables.frames import Sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "ROUNDING",
    "Bounds",
    "log_t_bounds",
    "no_bounds",
    "no_spread",
    "residuals",
    "undefined",
    "values",
]

#: A relative variance below this is what rounding leaves of zero in a difference of sums.
ROUNDING = 1e-13
#: Relative errors that differ by less are equal, as in `errcomp.metrics.intervals._features`.
_EQUAL = 1e-12


class Bounds(NamedTuple):
    """Bounds of each group, NaN where there are none, with what speaks against them.

    Attributes
    ----------
    low, high : ndarray
    few : ndarray
        The effective number of pairs where it is too small, else NaN.
    wide : ndarray of bool
        Whether the upper bound would lie too far above the figure.
    """

    low: Floats
    high: Floats
    few: Floats
    wide: NDArray[np.bool_]


def values(name: str, totals: Totals) -> Floats:
    """Return a figure for each group; NaN where it is not defined."""
    kind, n = figure(name).kind, totals.n.astype(np.float64)
    if kind == "share":
        return totals.sums[within(name)] / n
    if kind == "maximum":
        return totals.sums[Sum(("ape",), "max")]
    form = FORMS[name]
    mean = _mean(form, totals)
    return mean**form.root if form.log else np.exp(mean)


def undefined(name: str, totals: Totals) -> NDArray[np.int64]:
    """Count in each group the pairs whose logarithm a figure needs and which have none."""
    form = FORMS.get(name)
    if form is None or not form.x[0].startswith("log_"):
        return np.zeros(len(totals), dtype=np.int64)
    return totals.n - totals.sums[Sum((form.x[0],), "count")].astype(np.int64)


def _mean(form: FromSums, totals: Totals) -> Floats:
    """Return sum x / sum y, and what an undefined logarithm makes of it."""
    x = totals.sums[Sum(form.x)]
    if not form.x[0].startswith("log_"):
        return x / (totals.sums[Sum(("m",))] if form.weighted else totals.n)
    missing = totals.n - totals.sums[Sum((form.x[0],), "count")]
    # An exact prediction makes the geometric mean of APE zero; one that is not positive has none.
    nothing = -math.inf if form.x[0] == "log_ape" else math.nan
    return np.where(missing > 0, nothing, x / totals.n)


class Residuals(NamedTuple):
    """What the standard error of R = sum x / sum y is made of, for each group.

    Attributes
    ----------
    mean : ndarray
        R, less the shift of its form.
    scale : ndarray
        What deviations are relative to: R itself where its logarithm is studentised, else 1.
    squares, xx, y, yy : ndarray
        Sums of squared residuals, of squared x, of y and of squared y.
    """

    mean: Floats
    scale: Floats
    squares: Floats
    xx: Floats
    y: Floats
    yy: Floats


def residuals(name: str, totals: Totals) -> Residuals:
    """Return what the standard error of a mean or smooth function of means is made of."""
    form, n = FORMS[name], totals.n.astype(np.float64)
    mean = _mean(form, totals)
    xx = totals.sums[Sum((*form.x, *form.x))]
    with np.errstate(all="ignore"):
        if form.weighted:
            y, xy, yy = (totals.sums[Sum(t)] for t in (("m",), (*form.x, "m"), ("m", "m")))
        else:
            y, xy, yy = n, mean * n, n
        squares = np.maximum(xx - 2 * mean * xy + mean * mean * yy, 0)
    scale = form.shift + mean if form.log else np.ones_like(mean)
    return Residuals(mean, scale, squares, xx, y, yy)


def log_t_bounds(name: str, totals: Totals, level: float) -> Bounds:
    """Return the log-t interval of independent pairs for each group (see `_smooth.log_t`)."""
    form, n = FORMS[name], totals.n.astype(np.float64)
    found = residuals(name, totals)
    with np.errstate(all="ignore"):
        s = np.sqrt(found.squares * n / (n - 1)) / found.y / found.scale
        effective = found.y**2 / found.yy
        t, high_at = upper(s, effective - 1, level, form.log, clustered=False)
        point = found.scale**form.root if form.log else np.exp(found.mean)
        low, high = (
            point * np.exp(form.root * end) - (form.shift if form.log else 0.0)
            for end in (-t * s, high_at)
        )
        wide = too_wide(upper(s, effective - 1, 0.95, form.log, clustered=False)[1], form.root)
    few = effective < FEWEST_EFFECTIVE
    good = (
        (n > 1)
        & _has_spread(name, totals, found)
        & ~few
        & ~wide
        & np.isfinite(low)
        & np.isfinite(high)
    )
    return Bounds(
        np.where(good, low, np.nan),
        np.where(good, np.minimum(high, form.largest), np.nan),
        np.where(few, effective, np.nan),
        wide,
    )


def _has_spread(name: str, totals: Totals, found: Residuals) -> NDArray[np.bool_]:
    """Say of each group whether it gives a standard error."""
    form = FORMS[name]
    with np.errstate(all="ignore"):
        # Rounding of equal errors is no spread.
        spread = found.squares > ROUNDING * found.xx
        spread &= found.squares > (_EQUAL * found.scale) ** 2 * found.yy
    spread &= np.isfinite(found.xx) & (undefined(name, totals) == 0)
    return spread & (found.scale > 0) if form.log else spread


def no_spread(name: str, totals: Totals, i: int) -> str:
    """Say why a group gives no standard error; nothing if it does."""
    form, found, missing = FORMS[name], residuals(name, totals), undefined(name, totals)[i]
    if _has_spread(name, totals, found)[i]:
        return ""
    if missing:
        return (
            f"no interval: {missing} prediction{'s are' if missing > 1 else ' is'} exact, which "
            "makes the geometric mean zero whatever the other errors are"
        )
    if not np.isfinite(found.xx[i]):
        return "no interval: a sum of squares is beyond the largest number a float64 can hold"
    if form.log and form.shift and found.scale[i] <= 0:
        return "no interval: the mean ratio of predicted to measured is not positive"
    if form.log and found.scale[i] == 0:
        return "no interval: every prediction is exact"
    return "no interval: all errors are equal"


def no_bounds(name: str, totals: Totals, bounds: Bounds, i: int) -> str:
    """Say why `log_t_bounds` has none for a group."""
    n = int(totals.n[i])
    if reason := no_spread(name, totals, i):
        return reason
    if not np.isnan(bounds.few[i]):
        return few_weigh(n, float(bounds.few[i]))
    if bounds.wide[i]:
        return unusable(Sample(n, False), Dependence())
    return "no interval: too few pairs differ (log-t gives no finite bound)"
