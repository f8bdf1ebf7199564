"""Figures and intervals from sums over rows, for all groups at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from errcomp._frames import Sum
from errcomp.metrics._registry import figure
from errcomp.scale._forms import FORMS, FromSums, within
from errcomp.scale._totals import Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["ROUNDING", "Bounds", "log_t_bounds", "no_bounds", "undefined", "values"]

#: A relative variance below this is what rounding leaves of zero in a difference of sums.
ROUNDING = 1e-13
#: Relative errors that differ by less are equal, as in `errcomp.metrics.intervals._features`.
_EQUAL = 1e-12


class Bounds(NamedTuple):
    """Bounds of each group, NaN where there are none; whether its errors differ at all."""

    low: Floats
    high: Floats
    spread: NDArray[np.bool_]


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


def log_t_bounds(name: str, totals: Totals, level: float) -> Bounds:
    """Return the log-t interval of a mean or smooth function of means (see `_smooth.log_t`)."""
    form, n = FORMS[name], totals.n.astype(np.float64)
    mean = _mean(form, totals)
    xx = totals.sums[Sum((*form.x, *form.x))]
    if form.weighted:
        y, xy, yy = (totals.sums[Sum(t)] for t in (("m",), (*form.x, "m"), ("m", "m")))
    else:
        y, xy, yy = n, mean * n, n
    with np.errstate(all="ignore"):
        squares = xx - 2 * mean * xy + mean * mean * yy
        s = np.sqrt(np.maximum(squares, 0) * n / (n - 1)) / y
        s = s / (form.shift + mean) if form.log else s
        t = special.stdtrit(y * y / yy - 1, (1 + level) / 2)
        skew = s * s * (t * t + 2) / 6 if form.log else 0.0
        point = form.shift + mean if form.log else np.exp(mean)
        ends = (np.exp(-form.root * t * s), np.exp(form.root * (t * s + skew)))
        low, high = (point**form.root * end - form.shift for end in ends)
        if not form.log:
            low, high = (point * end for end in ends)
        # Rounding of equal errors is no spread; a mean of 0 or less has no logarithm.
        scale = point if form.log else 1.0
        spread = (squares > ROUNDING * xx) & (squares > (_EQUAL * scale) ** 2 * yy)
    usable = (n > 1) & spread & (~form.log | (form.shift + mean > 0))
    good = usable & np.isfinite(low) & np.isfinite(high)
    return Bounds(
        np.where(good, low, np.nan), np.where(good, np.minimum(high, form.largest), np.nan), spread
    )


def no_bounds(name: str, totals: Totals, spread: NDArray[np.bool_], i: int) -> str:
    """Say why `log_t_bounds` has none for a group."""
    form = FORMS[name]
    mean = float(_mean(form, totals)[i])
    if not np.isfinite(totals.sums[Sum((*form.x, *form.x))][i]):
        return "a sum of squares is beyond the largest number a float64 can hold"
    if form.log and form.shift and form.shift + mean <= 0:
        return "the mean ratio of predicted to measured is not positive"
    if form.log and not form.shift and mean == 0:
        return "every prediction is exact"
    if spread[i]:
        return "too few pairs differ (log-t gives no finite bound)"
    return "all errors are equal"
