"""Picture of a forecast: how likely a promise still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.forecast import Outlook
    from errcomp.halflife.panel import Clock

__all__ = ["forecast"]

#: More groups than this are counted instead of drawn; characters of the name of one.
_MOST, _BESIDE = 12, 24
#: Distance of points of one time, as a share of the longest.
_DODGE = 0.006


class _Curve(NamedTuple):
    """What is told of one group: times ahead, probabilities and their bounds in per cent."""

    name: str
    n: int
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def forecast(found: Outlook, ax: Axes | None = None) -> Axes:
    """Draw how likely each group is within its promise, by months or releases from now.

    Each group by the method that answers for it; vertical lines are intervals. A group that cannot
    be told is left out and counted; of very many those least likely to hold are drawn.

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
    told = _told(found, clock)
    if not told:
        raise InputError("the forecast of no group can be told: see the reasons in its table")
    shown = sorted(told, key=lambda one: one.y[-1])[:_MOST] if len(told) > _MOST else told
    ax = _style.canvas(ax, 3.6)
    tints, marks = (look([one.name for one in shown]) for look in (_style.colours, _style.markers))
    longest = max(float(one.x[-1]) for one in shown) or 1.0
    for i, (one, tint, mark) in enumerate(zip(shown, tints, marks, strict=True)):
        # Side by side, so that intervals do not hide each other.
        x = one.x + _DODGE * longest * (i - (len(shown) - 1) / 2)
        ax.plot(x, one.y, marker=mark, color=tint, lw=1.4, ms=5, zorder=3)
        ax.vlines(x, one.low, one.high, color=tint, lw=0.9, zorder=2)
        tell(ax, x, one.y, [f"{_text.shorten(one.name)}\n{a:g} {clock} ahead: {p:.0f} % "
                            f"[{low:.0f}, {high:.0f}]" for a, p, low, high in
                            zip(one.x, one.y, one.low, one.high, strict=True)])  # fmt: skip
    ax.set_ylim(-2, 102)
    ax.grid(axis="y", color=_style.GRID)
    line = ax.axhline(100 * found.below, color=_style.INK, lw=1.0, ls=(0, (4, 2)))
    line.set_label(f"asked for: when it drops below {100 * found.below:g} %")
    _style.name_axes(ax, x=f"{clock} from now", y="series within the promise (%)")
    names = _text.fitting([one.name for one in shown], _BESIDE)
    _style.side_labels(
        ax,
        [float(one.x[-1]) for one in shown],
        [float(one.y[-1]) for one in shown],
        [f"{name} n={one.n:,}" for name, one in zip(names, shown, strict=True)],
        tints,
    )
    notes = [f"vertical: {100 * found.level:g} % intervals"]
    left_out = len(found.groups) - len(told)
    if left_out:
        notes.append(f"{_text.count(left_out, 'group')} cannot be told")
    if len(told) > len(shown):
        notes.append(
            f"{_text.count(len(told) - len(shown), 'group')} more likely to hold not drawn"
        )
    title = f"Does the promise hold? n={_text.count(len(told), 'group')}"
    _style.heading(ax, title, notes, room=_style.keys(ax, [[line]]))
    return ax


def _told(found: Outlook, clock: Clock) -> list[_Curve]:
    """Return the curve of each group that has one, by the method that answers for it."""
    told = []
    for group in found.groups:
        method = group.method(clock)
        for one in group.answers:
            if one.forecast is None or (one.method, one.unit) != (method, clock):
                continue
            there = np.isfinite(one.forecast.probability)
            name = ", ".join(map(str, group.key.values())) or "all series"
            y, low, high = (
                100 * np.asarray(values)[there]
                for values in (one.forecast.probability, one.forecast.low, one.forecast.high)
            )
            x = np.asarray(one.forecast.ahead)[there]
            told.append(_Curve(name, group.n_series, x, y, low, high))
    return told
