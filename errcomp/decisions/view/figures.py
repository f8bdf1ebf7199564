"""Figures of choices: reliability diagram, regret by measured alternatives, tournament."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import NotDefinedError
from errcomp.report.drawing import style as _style
from errcomp.report.drawing.hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.decisions.results import Decisions


def reliability(found: Decisions, ax: Axes | None = None) -> Axes:
    """Draw how often the alternative called faster was, against the stated probability.

    Raises
    ------
    NotDefinedError
        No comparison has a probability.
    """
    rows = found.calibration
    if not rows:
        raise NotDefinedError("reliability cannot be drawn: no comparison has a probability")
    ax = _style.canvas(ax, 4.2)
    stated = np.array([100 * row.stated for row in rows])
    share = np.array([100 * row.found.value for row in rows])
    ends = np.array(
        [
            [
                100 * (row.found.value if end is None else end)
                for end in (row.found.low, row.found.high)
            ]
            for row in rows
        ]
    )
    ax.plot([50, 100], [50, 100], color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
    ax.vlines(stated, ends[:, 0], ends[:, 1], color=_style.interval(_style.BLUE), lw=2.4, zorder=2)
    ax.plot(stated, share, "o", color=_style.BLUE, ms=5.5, zorder=4)
    tell(
        ax,
        stated,
        share,
        [
            f"stated {s:.1f} %\nright in {r:.1f} % of {row.n:,}"
            for s, r, row in zip(stated, share, rows, strict=True)
        ],
    )
    ax.grid(color=_style.GRID)
    ax.set_xlim(48, 102)
    _style.name_axes(ax, x="stated probability (%)", y="right (%)")
    note = "fifths of the comparisons; bars: 95 % interval; dashed: probabilities come true"
    _style.heading(ax, f"Do the probabilities hold? n={found.n:,} comparisons", [note])
    return ax


def top_regret(found: Decisions, ax: Axes | None = None) -> Axes:
    """Draw the mean and the largest regret if the k predicted fastest are measured."""
    ax = _style.canvas(ax, 3.6)
    k = [row.k for row in found.top]
    lines = []
    for name, colour, mark, values in (
        ("largest", _style.ORANGE, "s", [100 * row.regret_max for row in found.top]),
        ("mean", _style.BLUE, "o", [100 * row.regret_mean for row in found.top]),
    ):
        lines += ax.plot(k, values, color=colour, marker=mark, ms=5, lw=1.0, label=name)
        tell(ax, k, values, [f"{name}, k = {i}\n{v:.3g} %" for i, v in zip(k, values, strict=True)])
    ax.set_ylim(bottom=0)
    ax.set_xticks(k)
    ax.grid(axis="y", color=_style.GRID)
    room = _style.keys(ax, [lines])
    _style.name_axes(ax, x="alternatives measured, the predicted fastest first", y="regret (%)")
    note = "time of the best measured one over that of the best of all, minus 1"
    _style.heading(ax, f"Time lost by {found.choices:,} choices", [note], room=room)
    return ax


def tournament(found: Decisions, ax: Axes | None = None) -> Axes:
    """Draw the share of right comparisons of every two alternatives.

    Raises
    ------
    NotDefinedError
        There are more than 60 alternatives.
    """
    if not found.duels:
        raise NotDefinedError("the tournament cannot be drawn: there are more than 60 alternatives")
    names = sorted({name for duel in found.duels for name in (duel.first, duel.second)})
    at = {name: i for i, name in enumerate(names)}
    share = np.full((len(names), len(names)), np.nan)
    for duel in found.duels:
        i, j = at[duel.first], at[duel.second]
        share[i, j] = share[j, i] = 100 * duel.right / duel.n
    ax = _style.canvas(ax, 1.6 + 0.28 * len(names))
    ax.imshow(share, vmin=0, vmax=100, cmap="RdBu", aspect="auto")
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    points = [(at[d.first], at[d.second], d) for d in found.duels]
    points += [(j, i, d) for i, j, d in points]
    for i, j, _ in points:
        value = share[i, j]
        ink = "white" if abs(value - 50) > 30 else _style.INK
        ax.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=7, color=ink)
    tell(
        ax,
        [float(j) for _, j, _ in points],
        [float(i) for i, _, _ in points],
        [f"{d.first}, {d.second}\n{d.right:,} of {d.n:,} right" for _, _, d in points],
    )
    _style.heading(
        ax, "Comparisons that were right (%)", ["by two alternatives; empty: never compared"]
    )
    return ax
