"""Which figure is which smooth function of means, and its residuals by pair or by cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._numeric import Checked, difference, log_ratio, relative_error
from errcomp.metrics.intervals._resample import Nesting, add_up
from errcomp.metrics.intervals._smooth import Smooth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["SMOOTH", "Form", "NoSpreadError", "of_units", "smooth"]


class NoSpreadError(Exception):
    """The sample gives no standard error; the message says why, in words for the reader."""


class Form(NamedTuple):
    """A figure as scale · (sum x / sum y)^root + offset, or as exp(mean x) if not ``log``.

    Attributes
    ----------
    term : callable
        x of each pair, up to a constant factor, from checked pairs.
    weighted : bool
        Whether y is the measurement; otherwise it is 1.
    root, offset, log
        As in `errcomp.metrics.intervals._smooth`.
    largest : float
        The figure cannot be larger.
    """

    term: Callable[[Checked], Floats]
    weighted: bool = False
    root: float = 1.0
    offset: float = 0.0
    log: bool = True
    largest: float = math.inf


def _ape(data: Checked) -> Floats:
    return np.abs(relative_error(data))


def _symmetric(data: Checked) -> Floats:
    larger = np.maximum(np.abs(data.predicted), data.measured)
    p, m = data.predicted / larger, data.measured / larger
    return np.abs(p - m) / (np.abs(p) + m)


def _ratio(data: Checked) -> Floats:
    return data.predicted / data.measured


def _log_ape(data: Checked) -> Floats:
    error = np.abs(difference(data))
    exact = int(np.count_nonzero(error == 0))
    if exact:
        raise NoSpreadError(
            f"no interval: {exact} prediction{'s are' if exact > 1 else ' is'} exact, which makes "
            "the geometric mean zero whatever the other errors are"
        )
    return np.log(error) - np.log(data.measured)


def _square(values: Floats) -> Floats:
    largest = float(np.abs(values).max())
    return (values / largest) ** 2 if largest > 0 else values


#: Each figure with the scale on which it is studentised. Bias is 1 less than a mean of positive
#: ratios, the error of the total 1 less than a ratio of sums, so that they too are studentised as
#: logarithms.
SMOOTH: dict[str, Form] = {
    "mape": Form(_ape),
    "smape": Form(_symmetric, largest=2.0),
    "bias": Form(_ratio, offset=-1.0),
    "wape": Form(lambda data: np.abs(difference(data)), weighted=True),
    "total_error": Form(lambda data: data.predicted, weighted=True, offset=-1.0),
    "rmse": Form(lambda data: _square(difference(data)), root=0.5),
    "rmspe": Form(lambda data: _square(relative_error(data)), root=0.5),
    "rmsle": Form(lambda data: _square(log_ratio(data)), root=0.5),
    "gmape": Form(_log_ape, log=False),
    "gm_ratio": Form(log_ratio, log=False),
}

#: Residuals below this are rounding.
_EQUAL = 1e-12


def smooth(
    form: Form,
    point: float,
    data: Checked,
    clusters: tuple[NDArray[np.int64], Nesting] | None,
) -> Smooth:
    """Prepare a figure for intervals.

    Raises
    ------
    NoSpreadError
        The terms are all equal, all zero, or exactly zero where a logarithm is needed.
    """
    x, y = form.term(data), None
    if form.log and x.any():
        x = x / np.abs(x).max()
    if form.weighted:
        y = data.measured / data.measured.max()
    if clusters is None:
        return of_units(form, point, x, y, None)
    code, nesting = clusters
    count = int(code.max()) + 1
    y = add_up(np.ones_like(x) if y is None else y, code, count)
    return of_units(form, point, add_up(x, code, count), y, nesting)


def of_units(
    form: Form, point: float, x: Floats, y: Floats | None, nesting: Nesting | None
) -> Smooth:
    """Prepare a figure from the sums of x and y over each cluster; of pairs without ``nesting``.

    Raises
    ------
    NoSpreadError
        As in `smooth`.
    """
    if y is not None:
        x = x / y.mean()
        y = None if np.ptp(y) == 0 else y / y.mean()
    mean = float(x.mean())
    if form.log and mean <= 0:
        raise NoSpreadError(
            "no interval: every prediction is exact"
            if not x.any()
            else "no interval: the mean ratio of predicted to measured is not positive"
        )
    r = (x - mean) if y is None else (x - mean * y)
    r = r / mean if form.log else r
    if np.abs(r).max() < _EQUAL:
        raise NoSpreadError(
            "no interval: all errors are equal"
            if nesting is None
            else "no interval: all clusters have the same error"
        )
    inner = nesting if nesting is not None and nesting.children else None
    return Smooth(point, form.offset, form.root, form.log, r, y, inner)
