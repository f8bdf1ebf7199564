"""Which figure is which smooth function of means, and its residuals by pair or by cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.metrics._numeric import Checked, difference, log_ratio, relative_error
from errcomp.metrics.intervals._resample import add_up
from errcomp.metrics.intervals._smooth import Smooth, Spread, crossed, of_clusters, of_pairs
from errcomp.metrics.intervals.dependence import Dependence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "SMOOTH",
    "Cells",
    "Form",
    "NoSpreadError",
    "Single",
    "mean_of",
    "of_units",
    "smooth",
    "spreads_of",
]


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
    "mae": Form(lambda data: np.abs(difference(data))),
    "rmse": Form(lambda data: _square(difference(data)), root=0.5),
    "rmspe": Form(lambda data: _square(relative_error(data)), root=0.5),
    "rmsle": Form(lambda data: _square(log_ratio(data)), root=0.5),
    "gmape": Form(_log_ape, log=False),
    "gm_ratio": Form(log_ratio, log=False),
}

#: Residuals below this are rounding.
_EQUAL = 1e-12


def smooth(form: Form, point: float, data: Checked, drawn: Dependence) -> Smooth:
    """Prepare a figure for intervals.

    Raises
    ------
    NoSpreadError
        The terms are all equal, all zero, or exactly zero where a logarithm is needed.
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
    """What is known of single pairs: their squared residuals, number and effective number."""

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


def of_units(form: Form, point: float, cells: Cells, drawn: Dependence) -> Smooth:
    """Prepare a figure from residuals of pairs, or of cells that share all clusters."""
    if len(drawn.drawn) == 2:
        r, y = np.empty(0), np.ones(1)  # which no bootstrap here draws
    else:
        r, y, _ = _by(drawn.drawn[0], cells) if drawn.drawn else cells[:3]
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
    """Return the standard errors of single pairs, and of whole clusters where these are drawn."""
    single, total = cells.single, float(cells.y.sum())
    alone = of_pairs(single.squares / total**2, single.n, single.effective)
    found = [of_clusters(*_by(code, cells)) for code in drawn.drawn]
    if not drawn.names:  # copies of pairs: the different pairs are what is drawn
        return (found[0]._replace(clustered=False),) if found else (alone,)
    if len(found) == 2:
        first, second = drawn.codes
        both = np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)[1]
        inner = _by(both, cells)[0]
        found = [crossed(found[0], found[1], float((inner * inner).sum()) / total**2)]
    return alone, *found


def mean_of(form: Form, x: float, y: float, *, exact: bool) -> float:
    """Return R, of which the logarithm must exist where one is taken.

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


def _by(code: NDArray[np.int64], cells: Cells) -> tuple[Floats, Floats, Floats]:
    count = int(code.max()) + 1
    r, y, squares = (add_up(v, code, count) for v in (cells.r, cells.y, cells.squares))
    return r, y, squares
