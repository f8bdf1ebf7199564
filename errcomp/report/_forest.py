"""Rows of a value with its interval against one reference: the form of several figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.report import _audit_parts as parts
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Row", "forest"]

#: More rows than this are counted instead of drawn.
MOST_ROWS = 30
#: An interval makes the axis at most so many times as long as the values and the reference need.
_MOST = 2.5


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes
    ----------
    name : str
    value : float
        NaN where there is none: the row is named and left empty.
    low, high : float or None
        Ends of its interval; may be infinite.
    text : str
        Written beside it.
    n : int or None
        What stands behind it.
    strong : bool
        Whether it is one of those that the figure is about.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    text: str
    n: int | None = None
    strong: bool = True


def forest(
    ax: Axes | None,
    rows: Sequence[Row],
    *,
    title: str,
    notes: Sequence[str],
    x: str,
    beside: str,
    reference: tuple[float, str] | None = None,
    log: bool = False,
) -> Axes:
    """Draw rows of values with intervals; what does not fit the axis ends in an arrow.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
    rows : sequence of Row
        In the order drawn, from the top; those beyond `MOST_ROWS` are counted in a note.
    title : str
    notes : sequence of str
    x : str
        The axis with its unit.
    beside : str
        Heading of the texts.
    reference : (float, str), optional
        A line and what it means.
    log : bool
        On a logarithmic axis; values must be positive.
    """
    shown = list(rows[:MOST_ROWS])
    if len(rows) > len(shown):
        notes = [*notes, f"{len(rows) - len(shown):,} more not drawn"]
    ax = _style.canvas(ax, 1.6 + 0.25 * len(shown))
    _limits(ax, shown, reference, log)
    left, right = ax.get_xlim()
    for y, row in enumerate(shown):
        _row(ax, y, row, left, right)
    if any(row.n is not None for row in shown):
        parts.label_rows(ax, [r.name for r in shown], [r.n or 0 for r in shown], above=0.6)
    else:
        _style.names_on_y(ax, [row.name for row in shown], above=0.6)
    parts.columns_beside(ax, [(beside, [r.text for r in shown], [_style.INK] * len(shown))])
    room = _reference(ax, reference)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x=x)
    _style.heading(ax, title, notes, room=room)
    there = [
        (min(max(r.value, left), right), y, r) for y, r in enumerate(shown) if r.value == r.value
    ]
    tell(ax, [v for v, _, _ in there], [float(y) for _, y, _ in there],
         [f"{r.name}\n{r.text}" for _, _, r in there])  # fmt: skip
    return ax


def _limits(ax: Axes, rows: Sequence[Row], reference: tuple[float, str] | None, log: bool) -> None:
    core = [row.value for row in rows if math.isfinite(row.value)]
    core += [reference[0]] if reference else []
    core = core or [0.0, 1.0]
    ends = [e for r in rows for e in (r.low, r.high) if e is not None and math.isfinite(e)]
    if log:
        core, ends = [v for v in core if v > 0] or [1.0], [e for e in ends if e > 0]
        low, high = math.log(min(core)), math.log(max(core))
        ends = [math.log(e) for e in ends]
    else:
        low, high = min(core), max(core)
    span = _MOST * (high - low) or 0.5 * max(abs(high), 1.0)
    low, high = (
        max(min([low, *ends]), low - span),
        min(max([high, *ends]), high + span),
    )
    room = 0.04 * (high - low) or 0.5
    low, high = low - room, high + room
    if log:
        ax.set_xscale("log")
        ax.set_xlim(math.exp(low), math.exp(high))
        parts.log_ticks(ax.xaxis, apart=0.16)
    else:
        ax.set_xlim(low, high)


def _row(ax: Axes, y: int, row: Row, left: float, right: float) -> None:
    if not math.isfinite(row.value):
        return
    colour = _style.BLUE if row.strong else _style.MUTED
    if row.low is not None and row.high is not None:
        ends = [max(row.low, left), min(row.high, right)]
        ax.plot(ends, [y, y], color=_style.blend(colour, 0.55), lw=2.4, solid_capstyle="butt",
                zorder=2)  # fmt: skip
        for beyond, edge, mark in ((row.low < left, 0, "<"), (row.high > right, 1, ">")):
            if beyond:
                ax.plot([edge], [y], mark, color=colour, ms=5.5, clip_on=False, zorder=5,
                        transform=ax.get_yaxis_transform())  # fmt: skip
    face = colour if row.strong else "white"
    ax.plot([row.value], [y], "o", color=colour, mfc=face, mew=1.3, ms=5.5, zorder=4)


def _reference(ax: Axes, reference: tuple[float, str] | None) -> float:
    if reference is None:
        return 0.0
    line = ax.axvline(reference[0], color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
    line.set_label(_text.shorten(reference[1], 60))
    return _style.keys(ax, [[line]])
