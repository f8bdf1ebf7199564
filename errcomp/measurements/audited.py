"""What the measured side says about an audit: its noise, and the error of each tool without it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from errcomp.measurements.results import Floor, MeasuredSide, TooClose, WithoutNoise

if TYPE_CHECKING:
    from errcomp.measurements.noise import Repeats
    from errcomp.tables import Pairs
    from errcomp.tables.memory.measurements import Measurements

__all__ = ["measured_side"]

Floats = NDArray[np.float64]

#: Larger tables are left to ``errcomp measurements check``, so that an audit stays fast.
MOST = 100_000
#: Up to this many tools, each is compared with each other; of more, with the next in the order.
_EACH = 10
#: Fewest predictions of a tool, and fewest degrees of freedom for a difference of two.
_SHARED = 5


def measured_side(pairs: Pairs, *, seed: int = 0) -> MeasuredSide | None:
    """Check the measurements of pairs; None for more than 100,000 pairs.

    Where no measurement was repeated, nothing but their number is returned: an audit is fast.

    Parameters
    ----------
    pairs : Pairs
        Which of their keys identify a configuration: see `errcomp.measurements.check`. Rows whose
        predictions differ are not repeats.
    seed : int
        Of the draws of noise.

    Examples
    --------
    >>> import errcomp as ec
    >>> rng = np.random.default_rng(0)
    >>> batch = np.repeat(np.arange(1, 101), 3)
    >>> table = {"batch": batch, "measured": batch * np.exp(0.05 * rng.normal(size=300)),
    ...          "predicted": 1.02 * batch}
    >>> side = measured_side(ec.Pairs(table))
    >>> side.configurations, round(side.floor.mape, 3)
    (100, 0.041)
    >>> print(f"{side.tools[0].mape:.3f} {side.tools[0].remaining:.3f}")
    0.046 0.020
    """
    if pairs.n > MOST:
        return None
    from errcomp.tables.memory.measurements import once_for_each_tool

    rows = rows_of(pairs)
    group = rows.group[once_for_each_tool(rows)]
    if len(np.unique(group)) == len(group):
        none = Floor(math.nan, math.nan, math.nan, "none", 0, 0, math.nan, None)
        return MeasuredSide(len(group), len(group), 0, 0, 0, (), math.nan, none, (), ())
    from errcomp.measurements import findings, floor_of, usual_repeats

    found = findings(rows)
    floor = floor_of(rows, found.once, found.hidden)
    tool = pairs.column("tool").astype(str) if pairs.tools else np.full(pairs.n, "")
    known = floor.method == "repeats" and not math.isnan(floor.low)
    repeats = usual_repeats(rows, found.once, found.hidden)
    tools = _without_noise(tool, pairs, floor, repeats, seed) if known else []
    close = _too_close(tools, tool, rows, pairs) if known else []
    explanations = found.hidden.explanations
    sizes = np.bincount(rows.group[found.use], minlength=1)
    return MeasuredSide(
        n=int(found.use.sum()),
        configurations=int((sizes > 0).sum()),
        repeated=int(sizes[sizes > 1].sum()),
        copies=len({row for one in found.copies for members in one.members for row in members}),
        differ=len(found.hidden.unexplained),
        explained_by=tuple(one.part.name for one in explanations),
        explained=min(explanations[0].share, 1.0) if explanations else math.nan,
        floor=floor,
        tools=tuple(tools),
        too_close=tuple(close),
    )


def rows_of(pairs: Pairs) -> Measurements:
    """Return the measured side of pairs.

    A tool predicts the same for repeats. Where it does not, it knows a key that the table lacks:
    the prediction is part of the configuration.
    """
    from errcomp.tables.memory.measurements import measurements_of
    from errcomp.tables.table import plain_values

    columns = {name: plain_values(name, pairs.column(name)) for name in pairs.keys}
    rows = measurements_of({**columns, "measured": pairs.measured}, measured="measured")
    above = pairs.predicted > 0
    logs = np.round(np.log(np.where(above, pairs.predicted, 1.0)), 6)
    # Others are below any logarithm.
    code = np.unique(np.where(above, logs, pairs.predicted - 1e6), return_inverse=True)[1]
    return replace(rows, keys={**rows.keys, "predicted": code})


def _without_noise(
    tool: NDArray[np.str_], pairs: Pairs, floor: Floor, repeats: Repeats, seed: int
) -> list[WithoutNoise]:
    """Return what remains of the error of each tool, the smallest MAPE first."""
    from errcomp.measurements.floor import FloorFigure, law_of_noise
    from errcomp.measurements.noise import MOST_LOG
    from errcomp.measurements.without_noise import remaining

    figure, shape = FloorFigure(floor.mape, floor.low, floor.high), law_of_noise(repeats)
    tools = []
    for name in dict.fromkeys(tool.tolist()):
        own = (tool == name) & (pairs.predicted > 0)
        if own.sum() < _SHARED:
            continue
        logs = np.log(pairs.predicted[own]) - np.log(pairs.measured[own])
        if np.abs(logs).max() > MOST_LOG:
            continue  # the columns are in other units, as the audit says
        left = remaining(logs, figure, shape, seed=seed)
        mape = float(np.abs(np.expm1(logs)).mean())
        tools.append(WithoutNoise(name, mape, left.mape, left.low, left.high))
    return sorted(tools, key=lambda one: one.mape)


def _matched(rows: Measurements) -> NDArray[np.int64]:
    """Return a number for each measurement: equal for the tools that predict it."""
    from errcomp.tables.memory.measurements import numbered

    columns = [codes for name, codes in rows.keys.items() if name not in ("tool", "predicted")]
    columns += [part.codes for part in rows.parts]
    return numbered([*columns, np.unique(rows.values[:, 0], return_inverse=True)[1]], rows.n)


def _too_close(
    tools: Sequence[WithoutNoise], tool: NDArray[np.str_], rows: Measurements, pairs: Pairs
) -> Iterator[TooClose]:
    """Yield the pairs of tools whose difference noise alone would often exceed.

    The differences of their errors vary between repeats of a configuration by noise only.
    """
    from errcomp.stats.permutation import variance_within

    matched = _matched(rows)
    with np.errstate(over="ignore"):  # such tools are not among those compared
        error = np.abs(pairs.predicted / pairs.measured - 1)
    names = [one.tool for one in tools]
    place = {}
    for name in names:
        own = np.flatnonzero((tool == name) & (pairs.predicted > 0))
        which, first = np.unique(matched[own], return_index=True)
        place[name] = (which, own[first])
    for left, right in combinations(names, 2) if len(names) <= _EACH else pairwise(names):
        _, at, to = np.intersect1d(place[left][0], place[right][0], return_indices=True)
        at, to = place[left][1][at], place[right][1][to]
        differences = error[at] - error[to]
        variance, freedom = variance_within(differences, rows.group[at])
        if freedom < _SHARED:
            continue
        difference, smallest = differences.mean(), 1.96 * math.sqrt(variance / len(at))
        if abs(difference) < smallest:
            better, other = (left, right) if difference <= 0 else (right, left)
            yield TooClose(better, other, float(abs(difference)), smallest, len(at))
