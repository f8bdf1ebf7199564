"""Axes on which the shares inside bands are held against what the bands promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.report import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["promised"]


def promised(ax: Axes | None, levels: Sequence[float], height: float) -> tuple[Axes, float]:
    """Draw what bands of these levels promise.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        New axes of this height where there are none.
    levels : sequence of float
        Ascending, in (0, 1).
    height : float

    Returns
    -------
    ax : matplotlib.axes.Axes
        Both axes in per cent.
    room : float
        Width that the points of one level may take, beside each other.
    """
    ax = _style.canvas(ax, height)
    room = min(4.0, 0.8 * 100 * float(np.diff(levels).min(initial=0.05)))
    left, right = 100 * levels[0] - room, 100 * levels[-1] + room
    ax.set_xlim(left, right)
    ax.set_ylim(-2, 102)
    ax.plot([left, right], [left, right], color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=2,
            label="nominal")  # fmt: skip
    for level in levels:  # what the points beside each other are to be held against
        ax.plot([100 * level - room / 2, 100 * level + room / 2], [100 * level] * 2,
                color=_style.INK, lw=2.0, zorder=2)  # fmt: skip
    ax.set_xticks([100 * level for level in levels], [f"{100 * level:.6g} %" for level in levels])
    ax.set_yticks(range(0, 101, 20), [f"{y} %" for y in range(0, 101, 20)])
    ax.grid(axis="y", color=_style.GRID)
    return ax, room
