"""Intervals by whole clusters from the sums over each: those of `errcomp.metrics.intervals`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from errcomp._frames import Sum
from errcomp.metrics._registry import figure
from errcomp.metrics.intervals._coverage import Sample
from errcomp.metrics.intervals._features import SMOOTH, of_units
from errcomp.metrics.intervals._kinds import (
    Interval,
    Request,
    maximum,
    of_means,
    share_in_clusters,
)
from errcomp.metrics.intervals._resample import Nesting, add_up, nest
from errcomp.metrics.intervals._smooth import Smooth
from errcomp.scale._forms import FORMS, within
from errcomp.scale._totals import Totals

__all__ = ["cluster_intervals", "without_cluster"]


def cluster_intervals(
    name: str, value: float, part: Totals, clusters: Sequence[str], ask: Request
) -> Interval:
    """Make the interval of a figure of one group.

    Parameters
    ----------
    name : str
        The figure.
    value : float
        Of the whole group.
    part : Totals
        Sums over each innermost cluster of the group, ordered by cluster.
    clusters : sequence of str
        Keys, outermost first.
    ask : Request
        Its ``clusters`` are filled in here.
    """
    code, nesting = nest([np.asarray(part.keys[key], dtype=object) for key in clusters])
    ask = ask._replace(clusters=(code, nesting))
    sample, kind = Sample(nesting.outer, True), figure(name).kind
    if kind == "maximum":
        return maximum(sample, ask.level)
    if kind == "share":
        outer = nesting.outermost()[code]
        inside, size = (
            add_up(v, outer, nesting.outer) for v in (part.sums[within(name)], part.n.astype(float))
        )
        method = "wilson" if ask.method == "default" else ask.method
        return share_in_clusters(inside, size, method, ask.level)
    return of_means(name, ask, sample, lambda: _prepared(name, value, part, nesting))


def _prepared(name: str, value: float, part: Totals, nesting: Nesting) -> Smooth:
    form = FORMS[name]
    y = part.sums[Sum(("m",))] if form.weighted else part.n.astype(np.float64)
    x = part.sums[Sum(form.x)] + form.shift * y
    return of_units(SMOOTH[name], value, x, y, nesting)


def without_cluster(part: Totals, clusters: Sequence[str]) -> str:
    """Say that rows of a group belong to no cluster; nothing if all do."""
    for key in clusters:
        missing = [i for i, label in enumerate(part.keys[key]) if label is None]
        if missing:
            return (
                f"clusters must not be missing, but {key} is in {int(part.n[missing].sum()):,} "
                "rows. Give these rows a cluster of their own."
            )
    return ""
