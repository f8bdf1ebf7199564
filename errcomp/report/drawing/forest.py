"""Forest plots: one row per value with its interval, against a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.report.drawing import axes
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


#: Largest number of rows drawn; a note states the number of others.
MOST_ROWS = 30
#: Intervals extend the axis at most by this multiple of the range of the values and the reference,
#: or by this multiple of the median distance by which intervals exceed it, whichever is longer.
_MOST, _OF_TYPICAL = 2.5, 3.0
#: Characters of a name in the hover text of its point.
_NAME = 80
#: Relative rounding error of numbers.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes
    ----------
    name : str
    value : float
        NaN without a value: the row shows only its name.
    low, high : float or None
        Bounds of its interval; may be infinite.
    text : str
        Text to the right of the row.
    n : int or None
        Number of pairs of the row.
    strong : bool
        Whether to draw the row in the main colour, with a filled marker.
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
    ticks: tuple[Sequence[float], str] | None = None,
    log: bool = False,
) -> Axes:
    """Draw rows of values with intervals; an interval beyond the axis ends in an arrow.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
    rows : sequence of Row
        From the top; a note states the number of rows beyond `MOST_ROWS`.
    title : str
    notes : sequence of str
    x : str
        Label of the axis, with its unit.
    beside : str
        Heading of the texts.
    reference : (float, str), optional
        Position and label of a reference line.
    ticks : (sequence of float, str), optional
        A second value of each row and the label of all, drawn as a tick.
    log : bool
        Draw on a logarithmic axis; values must be positive.
    """
    shown = list(rows[:MOST_ROWS])
    if len(rows) > len(shown):
        notes = [*notes, f"not drawn: {len(rows) - len(shown):,} more"]
    ax = _style.canvas(ax, 1.6 + 0.25 * len(shown))
    if any(row.n is not None for row in shown):
        axes.label_rows(ax, [r.name for r in shown], [r.n or 0 for r in shown], above=0.6)
    else:
        _style.names_on_y(ax, [row.name for row in shown], above=0.6)
    _limits(ax, shown, reference, ticks[0] if ticks else (), log)
    left, right = ax.get_xlim()
    for y, row in enumerate(shown):
        _row(ax, y, row, left, right)
    axes.columns_beside(ax, [(beside, [r.text for r in shown], [_style.INK] * len(shown))])
    room = _keys(ax, reference, ticks, len(shown))
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x=x)
    _style.heading(ax, title, notes, room=room)
    points = [
        (min(max(r.value, left), right), y, r) for y, r in enumerate(shown) if r.value == r.value
    ]
    tell(ax, [v for v, _, _ in points], [float(y) for _, y, _ in points],
         [f"{_text.shorten(r.name, _NAME)}\n{r.text}" for _, _, r in points])  # fmt: skip
    return ax


def _limits(
    ax: Axes,
    rows: Sequence[Row],
    reference: tuple[float, str] | None,
    ticks: Sequence[float],
    log: bool,
) -> None:
    """Set limits that include values, ticks and the reference, and intervals within limits."""
    core = [v for v in (*(row.value for row in rows), *ticks[: len(rows)]) if math.isfinite(v)]
    core += [reference[0]] if reference else []
    ends = [e for r in rows for e in (r.low, r.high) if e is not None and math.isfinite(e)]
    if log:
        core, ends = ([math.log(v) for v in some if v > 0] for some in (core, ends))
    core = core or [0.0 if log else 1.0]
    low, high = min(core), max(core)
    size = max(abs(low), abs(high), 1.0)
    spread = high - low if high - low > _ROUNDING * size else 0.0
    beyond = [max(low - end, end - high) for end in ends if not low <= end <= high]
    most = max(_MOST * spread, _OF_TYPICAL * float(np.median(beyond)) if beyond else 0.0)
    left, right = max(min([low, *ends]), low - most), min(max([high, *ends]), high + most)
    room = 0.04 * (right - left)
    if room <= _ROUNDING * size:
        room = 0.05 * size
    if log:
        ax.set_xscale("log")
        ax.set_xlim(math.exp(left - room), math.exp(right + room))
        texts = _style.CHARACTER * max(len(row.text) for row in rows)
        axes.log_ticks(ax.xaxis, apart=0.1, beside=texts)
    else:
        from_zero = reference is None and left >= 0  # an axis of errors starts at zero
        ax.set_xlim(0.0 if from_zero else left - room, right + room)


def _row(ax: Axes, y: int, row: Row, left: float, right: float) -> None:
    if not math.isfinite(row.value):
        return
    colour = _style.BLUE if row.strong else _style.MUTED
    if row.low is not None and row.high is not None:
        ends = [max(row.low, left), min(row.high, right)]
        ax.plot(ends, [y, y], color=_style.interval(colour), lw=2.4, solid_capstyle="butt",
                zorder=2)  # fmt: skip
        for beyond, edge, mark in ((row.low < left, 0, "<"), (row.high > right, 1, ">")):
            if beyond:
                ax.plot([edge], [y], mark, color=colour, ms=5.5, clip_on=False, zorder=5,
                        transform=ax.get_yaxis_transform())  # fmt: skip
    face = colour if row.strong else "white"
    ax.plot([row.value], [y], "o", color=colour, mfc=face, mew=1.3, ms=5.5, zorder=4)


def _keys(
    ax: Axes,
    reference: tuple[float, str] | None,
    ticks: tuple[Sequence[float], str] | None,
    n: int,
) -> float:
    """Draw the reference line and the ticks of the first n rows, and name both above the axes."""
    drawn: list[Line2D] = []
    if reference is not None:
        line = ax.axvline(reference[0], color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
        line.set_label(reference[1])
        drawn.append(line)
    if ticks is not None:
        drawn += ax.plot(ticks[0][:n], range(n), "|", color=_style.ORANGE, ms=11, mew=1.6,
                         label=ticks[1], zorder=3)  # fmt: skip
    return _style.keys(ax, [drawn]) if drawn else 0.0
