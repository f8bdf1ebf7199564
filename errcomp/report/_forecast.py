"""Picture of a forecast: how likely a promise still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.outlook import Outlook

__all__ = ["forecast"]


def forecast(found: Outlook, ax: Axes | None = None) -> Axes:
    """Draw how likely each group is within its promise, by months or releases from now.

    Each group by the method that answers for it; bars are intervals. A group that cannot be told is
    left out and counted.

    Parameters
    ----------
    found : Outlook
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No group can be told.
    MissingExtraError
        Matplotlib is not installed.
    """
    clock = found.clocks[-1]
    told = []
    for group in found.groups:
        method = group.method(clock)
        for one in group.answers:
            if one.forecast is not None and (one.method, one.unit) == (method, clock):
                name = ", ".join(map(str, group.key.values())) or "all series"
                told.append((name, group.n_series, one.forecast))
    if not told:
        raise InputError("the forecast of no group can be told: see the reasons in its table")
    ax = _style.canvas(ax, 3.6)
    names = [name for name, _, _ in told]
    ends = []
    tints, marks = _style.colours(names), _style.markers(names)
    for (name, n, curve), tint, mark in zip(told, tints, marks, strict=True):
        there = np.isfinite(curve.probability)
        x, y = np.asarray(curve.ahead)[there], 100 * np.asarray(curve.probability)[there]
        low, high = (100 * np.asarray(end)[there] for end in (curve.low, curve.high))
        ax.plot(x, y, marker=mark, color=tint, lw=1.4, ms=5, zorder=3)
        ax.vlines(x, low, high, color=_style.blend(tint, 0.6), lw=1.2, zorder=2)
        tell(ax, x, y, [f"{name}\n{a:g} {clock} ahead: {p:.0f} % [{lo:.0f}, {hi:.0f}]"
                        for a, p, lo, hi in zip(x, y, low, high, strict=True)])  # fmt: skip
        ends.append((float(x[-1]), float(y[-1]), f"{_text.shorten(name)} n={n:,}"))
    ax.set_ylim(-2, 102)
    ax.grid(axis="y", color=_style.GRID)
    line = ax.axhline(100 * found.below, color=_style.INK, lw=1.0, ls=(0, (4, 2)))
    line.set_label(f"{100 * found.below:g} %")
    _style.name_axes(ax, x=f"{clock} from now", y="series within the promise (%)")
    _style.side_labels(ax, [e[0] for e in ends], [e[1] for e in ends], [e[2] for e in ends], tints)
    left_out = len(found.groups) - len(told)
    notes = [f"bars: {100 * found.level:g} % intervals"]
    if left_out:
        notes.append(f"{_text.count(left_out, 'group')} cannot be told")
    title = f"Does the promise hold? n={_text.count(len(told), 'group')}"
    _style.heading(ax, title, notes, room=_style.keys(ax, [[line]]))
    return ax
