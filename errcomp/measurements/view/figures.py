"""Figures of measurements: spread of repeats, map of copies, errors beside the noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from errcomp.report.drawing import style as _style
from errcomp.report.drawing.hover import tell
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.measurements.results import MeasuredSide, MeasurementCheck

__all__ = ["copies_map", "errors_beside_noise", "spread"]

_COLOURS = (_style.BLUE, _style.ORANGE, "#009E73", "#CC79A7", "#332288")
#: Points of a map, and tools beside the noise, that can be distinguished.
_POINTS, _TOOLS = 4_000, 15


def spread(found: MeasurementCheck, ax: Axes | None = None) -> Axes:
    """Draw the spread of repeats of each configuration against its size."""
    ax = _style.canvas(ax, 4.2)
    sizes = np.array([one.size for one in found.spread])
    beyond = np.array([max(100 * (one.ratio - 1), 1e-3) for one in found.spread])
    ax.plot(sizes, beyond, "o", color=_style.BLUE, ms=4.5, alpha=0.7, zorder=3)
    tell(ax, sizes, beyond, [f"{one.n:,} rows\nratio {one.ratio:.4g}" for one in found.spread])
    ax.set_xscale("log")
    ax.set_yscale("log")
    notes = ["Each point is a configuration; copies are left out."]
    if not math.isnan(found.floor.mape):
        ax.axhline(100 * found.floor.mape, color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
        notes.append(f"dashed: floor of MAPE, {format_fraction(found.floor.mape)}")
    ax.grid(color=_style.GRID)
    unit = f" ({found.unit})" if found.unit else ""
    _style.name_axes(ax, x=f"{found.measured[0]}{unit}", y="largest over smallest, minus 1 (%)")
    _style.heading(ax, "How far do repeats of one configuration differ?", notes)
    return ax


def copies_map(found: MeasurementCheck, ax: Axes | None = None) -> Axes:
    """Draw each copy at its row, against the row that states its value first."""
    ax = _style.canvas(ax, 4.6)
    kinds = list(dict.fromkeys(one.kind for one in found.copies.sets))
    handles = []
    for kind, colour, marker in zip(kinds, _COLOURS, "osD^v", strict=False):
        some = [one for one in found.copies.sets if one.kind == kind]
        points = [(one.rows[0], row, one.differs) for one in some for row in one.rows[1:]]
        points = points[:: -(-len(points) // _POINTS)]
        x, y = (np.array([point[i] for point in points], dtype=float) for i in (0, 1))
        (drawn,) = ax.plot(x, y, marker, color=colour, ms=3.5, alpha=0.7, zorder=3, label=kind)
        handles.append(drawn)
        tell(ax, x, y, [_about(kind, *point) for point in points])
    rows = found.copies.rows
    ends = [rows[0], rows[-1]]
    ax.plot(ends, ends, color=_style.GRID, lw=1.0, zorder=1)
    ax.grid(color=_style.GRID)
    _style.name_axes(ax, x="row that states the value first", y="row of the copy")
    notes = ["Copies of a block of rows are on a line parallel to the diagonal."]
    room = _style.keys(ax, [handles]) if len(kinds) > 1 else 0.0
    if len(kinds) == 1:
        notes.append(f"all are {kinds[0]}")
    _style.heading(ax, "Which rows are copies of which?", notes, room=room)
    return ax


def _about(kind: str, first: int, row: int, differs: tuple[str, ...]) -> str:
    but = f"\ndiffers in {', '.join(differs[:3])}" if differs else ""
    return f"rows {first:,} and {row:,}\n{kind}{but}"


def errors_beside_noise(side: MeasuredSide, ax: Axes | None = None) -> Axes:
    """Draw the MAPE of each tool, what remains without noise, and the floor."""
    tools = side.tools[:_TOOLS]
    ax = _style.canvas(ax, 1.6 + 0.34 * len(tools))
    floor = side.floor
    ax.axvspan(100 * floor.low, 100 * floor.high, color=_style.GRID, lw=0, zorder=0)
    ax.axvline(100 * floor.mape, color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
    y = np.arange(len(tools), dtype=float)
    mape, left, low, high = (
        100 * np.array([getattr(one, name) for one in tools])
        for name in ("mape", "remaining", "low", "high")
    )
    ax.hlines(y, low, high, color=_style.ORANGE, lw=2.0, zorder=2)
    (without,) = ax.plot(left, y, "o", color=_style.ORANGE, ms=6, zorder=3, label="without noise")
    (with_,) = ax.plot(mape, y, "D", color=_style.BLUE, ms=6, zorder=3, label="as audited")
    texts = [
        f"{one.tool or 'tool'}\nMAPE {format_fraction(one.mape)}\nwithout noise "
        f"{format_fraction(one.remaining)}"
        for one in tools
    ]
    tell(ax, mape, y, texts)
    tell(ax, left, y, texts)
    _style.names_on_y(ax, [one.tool or "the tool" for one in tools])
    ax.set_xlim(left=0)
    _style.name_axes(ax, x="MAPE (%)")
    notes = [f"dashed: floor, {format_fraction(floor.mape)}, with its 95 % interval"]
    if len(side.tools) > len(tools):
        notes.append(f"{len(side.tools) - len(tools)} more tools have larger errors")
    room = _style.keys(ax, [[with_, without]])
    _style.heading(ax, "How much of each error is noise of the measurements?", notes, room=room)
    return ax
