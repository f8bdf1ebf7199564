"""Axes of several figures: log ticks, rows with numbers, nominal against actual coverage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


def log_ticks(axis: Axis, unit: str = "", *, apart: float, beside: float | None = None) -> None:
    """Put ticks at 1, 2 and 5 times powers of ten, or fewer if they would be too close.

    ``apart`` is the least distance of ticks as a share of the axis. On a horizontal axis, ticks are
    also so far apart that their labels fit; ``beside`` is the width in points of the columns to its
    right. The limits must be final and the axis logarithmic.
    """
    from matplotlib.ticker import MaxNLocator

    low, high = sorted(axis.get_view_interval())
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    length = math.log10(high / low)
    points = _style.length_of(axis, beside) if axis is axis.axes.xaxis else math.inf
    for digits, finest in (((1.0, 2.0, 5.0), math.log10(2.0)), ((1.0, 3.0), math.log10(3.0))):
        ticks = _within([digit * 10.0**power for power in decades for digit in digits], low, high)
        if finest >= length * _spacing(ticks, unit, apart, points):
            break
    else:
        ticks = _within([10.0**power for power in decades], low, high)
        every = max(1, math.ceil(length * _spacing(ticks, unit, apart, points)))
        ticks = _within([10.0**power for power in decades[::every]], low, high)
    if len(ticks) < 3:
        ticks = _within(MaxNLocator(5).tick_values(low, high), low, high)
        while len(ticks) > 2 and _closest(ticks, length) < _spacing(ticks, unit, apart, points):
            ticks = ticks[::2]
    axis.set_ticks(ticks, [_text.number(value) + unit for value in ticks])
    axis.set_ticks([], minor=True)


def _within(values: Iterable[float], low: float, high: float) -> list[float]:
    return [float(value) for value in values if low <= value <= high]


def _closest(values: Sequence[float], length: float) -> float:
    """Return the smallest distance of two values as a share of the axis."""
    return float(np.diff(np.log10(values)).min()) / length


def _spacing(values: Sequence[float], unit: str, least: float, points: float) -> float:
    """Return the least distance at which labels of these values fit, as a share of the axis."""
    longest = max((len(_text.number(value) + unit) for value in values), default=0)
    return max(least, _style.CHARACTER * (longest + 1) / points)


def label_rows(ax: Axes, names: Sequence[str], counts: Sequence[int], *, above: float) -> None:
    """Label rows 0, 1, … from the top with name and number of pairs; numbers are never cut."""
    texts = [f"{name}  n={n:,}" for name, n in zip(_text.fitting(names), counts, strict=True)]
    ax.set_yticks(range(len(texts)), texts)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.tick_params(axis="y", length=0, pad=6)
    ax.set_ylim(len(texts) - 0.4, -0.6 - above)


def columns_beside(
    ax: Axes, columns: Sequence[tuple[str, Sequence[str], Sequence[str]]], *, first: float = 9.0
) -> None:
    """Write columns to the right of rows 0, 1, …: a heading, texts and their colours."""
    points = first
    for heading, texts, tints in columns:
        _style.beside(ax, -0.8, heading, points=points, colour=_style.MUTED)
        for y, (text, tint) in enumerate(zip(texts, tints, strict=True)):
            if text:
                _style.beside(ax, y, text, points=points, colour=tint)
        points += _style.CHARACTER * max(len(heading) + 1, *map(len, texts)) + 7.0


def promised(ax: Axes | None, levels: Sequence[float], height: float) -> tuple[Axes, float]:
    """Draw the nominal coverage of bands: the line to compare the actual coverage with.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        None for new axes of this height.
    levels : sequence of float
        Nominal coverages, ascending, in (0, 1).
    height : float
        In inches.

    Returns
    -------
    ax : matplotlib.axes.Axes
        Both axes in per cent.
    room : float
        Width for the points of one level, side by side, in units of the axis.
    """
    ax = _style.canvas(ax, height)
    room = min(4.0, 0.8 * 100 * float(np.diff(levels).min(initial=0.05)))
    left, right = 100 * levels[0] - room, 100 * levels[-1] + room
    ax.set_xlim(left, right)
    ax.set_ylim(-2, 102)
    ax.plot([left, right], [left, right], color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=2,
            label="nominal")  # fmt: skip
    for level in levels:  # reference line for the points
        ax.plot([100 * level - room / 2, 100 * level + room / 2], [100 * level] * 2,
                color=_style.INK, lw=2.0, zorder=2)  # fmt: skip
    ax.set_xticks([100 * level for level in levels], [f"{100 * level:.6g} %" for level in levels])
    ax.set_yticks(range(0, 101, 20), [f"{y} %" for y in range(0, 101, 20)])
    ax.grid(axis="y", color=_style.GRID)
    return ax, room
