"""Intervals by whole clusters from the sums over each: those of `errcomp.metrics.intervals`."""

from __future__ import annotations

import numpy as np

from errcomp.metrics._registry import figure
from errcomp.metrics.intervals._features import SMOOTH, Cells, NoSpreadError, Single, of_units
from errcomp.metrics.intervals._kinds import (
    Interval,
    Request,
    maximum,
    of_means,
    sample_of,
    share_interval,
)
from errcomp.metrics.intervals._resample import add_up
from errcomp.metrics.intervals._smooth import Smooth
from errcomp.metrics.intervals.dependence import Dependence, dependence
from errcomp.scale._forms import FORMS, within
from errcomp.scale._totals import Totals
from errcomp.scale._values import no_spread, residuals
from errcomp.tables.frames import Sum

__all__ = ["cluster_interval", "drawn_of"]


def drawn_of(part: Totals, clusters: tuple[str, ...], *, given: bool) -> Dependence:
    """Decide what is drawn as a unit in one group, by the cells that share all clusters."""
    return dependence({key: part.keys[key] for key in clusters}, given=given, counts=part.n)


def cluster_interval(name: str, value: float, part: Totals, ask: Request) -> Interval:
    """Make the interval of a figure of one group.

    Parameters
    ----------
    name : str
        The figure.
    value : float
        Of the whole group.
    part : Totals
        Sums over each cell of the group that shares all clusters.
    ask : Request
        Its ``drawn`` numbers these cells.
    """
    n, kind = int(part.n.sum()), figure(name).kind
    if kind == "maximum":
        return maximum(sample_of(n, ask.drawn), ask.level)
    if kind == "share":
        inside, size = part.sums[within(name)], part.n.astype(np.float64)
        by_key = []
        for code in ask.drawn.codes:
            count = int(code.max()) + 1
            by_key.append((add_up(inside, code, count), add_up(size, code, count)))
        return share_interval(float(inside.sum()), n, by_key, ask)
    return of_means(name, ask, n, lambda: _prepared(name, value, part, ask.drawn))


def _prepared(name: str, value: float, part: Totals, drawn: Dependence) -> Smooth:
    form, whole = FORMS[name], part.merged(())
    if reason := no_spread(name, whole, 0):
        raise NoSpreadError(reason)
    found = residuals(name, whole)
    scale = float(found.scale[0])
    size = part.n.astype(np.float64)
    y = part.sums[Sum(("m",))] if form.weighted else size
    squares = part.sums[Sum(("m", "m"))] if form.weighted else size
    r = (part.sums[Sum(form.x)] - float(found.mean[0]) * y) / scale
    single = Single(
        float(found.squares[0]) / scale**2, int(whole.n[0]), float(found.y[0] ** 2 / found.yy[0])
    )
    return of_units(SMOOTH[name], value, Cells(r, y, squares, single), drawn)
