"""A picture of drift by lag, and where it doubles the calibrated error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.report import _halflife_parts as parts
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from errcomp.halflife.drift.variogram import Variogram
    from errcomp.halflife.panel import HalfLife
    from errcomp.halflife.results import GroupHalfLife

    Floats = NDArray[np.float64]

__all__ = ["draw_variogram"]

#: Room of the vertical axis beyond what is drawn, and how far off a line is still shown: factors.
_ROOM, _FARTHEST = 1.6, 30.0


def draw_variogram(group: GroupHalfLife, *, note: str = "", ax: Axes | None = None) -> Axes:
    r"""Draw how far errors move apart, by the number of releases between two versions.

    .. math:: \sqrt{V(h)} = \sqrt{\operatorname{mean}(\Delta e_h^2) - \text{noise}}

    as :math:`e^{\sqrt V} - 1`, on logarithmic scales, on which a power law is a straight line.
    Vertical lines are pointwise intervals of V; those that reach an edge go on beyond it. A
    triangle at the lower edge is a lag at which noise explains all that was seen. Open diamonds are
    the median :math:`|\Delta e|`, noise included: far below the line where few large steps make the
    drift. A dotted line shows the noise of a difference where it is known; it counts as drift where
    it is not. A model whose drift reaches √3 times the calibrated error has twice the error, as
    :math:`\sqrt{e_0^2 + 3 e_0^2} = 2 e_0`; the half-life is marked there. Below the axis stands the
    number of series with such pairs.

    Misleads where drift is not of one kind all along: see the errors by release.

    Parameters
    ----------
    group : GroupHalfLife
        From `errcomp.half_life`.
    note : str
        What the errors are of, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        The group has no variogram, or no two errors of it differ.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> found = ec.half_life(
    ...     {"version": ["1.0", "1.1", "1.2", "1.3"], "measured": [4.0, 4.1, 4.0, 5.0]}
    ... )
    >>> axes = draw_variogram(found.groups[0])
    >>> axes.get_title(loc="left")
    'Drift by lag, n=1 series'
    """
    drift = group.variogram
    positive = np.array([]) if drift is None else np.append(drift.v, drift.median**2)
    positive = np.sqrt(positive[positive > 0])
    if drift is None or not len(positive):
        raise InputError(
            "the variogram cannot be drawn: no error moved from one version to another. Draw the "
            "errors instead, or add versions."
        )
    estimate = group.estimate("variogram", drift.unit)
    notes = [*parts.group_notes(group, note), *_notes(group, drift, estimate)]
    ax = _style.canvas(ax, parts.height_for(notes))
    target = math.sqrt(3) * group.threshold.error
    _limits(ax, drift, positive, target)
    handles = _points(ax, drift)
    below: list[Artist] = _law(ax, drift)
    levels: list[tuple[str, float, str, Any]] = [
        ("doubles", target, _style.ORANGE, "-"),
        ("noise", _noise(drift), _style.MUTED, (0, (1, 1.5))),
    ]
    bottom, top = ax.get_ylim()
    shown = [level for level in levels if bottom <= parts.percent_of(level[1]) <= top]
    if levels[0] in shown:
        below += parts.mark_half_life(ax, estimate, parts.percent_of(target))
    parts.mark_levels(ax, shown)
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax,
        x=f"lag in {drift.unit}; below: series with such pairs",
        y="drift of predicted / measured (RMS)",
    )
    _style.heading(
        ax,
        f"Drift by lag, {parts.series_and_clusters(group.panel)}",
        notes,
        room=_style.keys(ax, [row for row in (handles, below) if row]),
    )
    return ax


def _noise(drift: Variogram) -> float:
    """Return the standard deviation of the noise of a difference of two errors."""
    return math.sqrt(2 * drift.noise)


def _limits(ax: Axes, drift: Variogram, positive: Floats, target: float) -> None:
    """Set logarithmic scales around points, and the line where errors double if it is near."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = float(positive.min()), float(positive.max())
    lines = [target, _noise(drift)]
    ends = [low, high, *(line for line in lines if low / _FARTHEST < line < high * _FARTHEST)]
    # Bounds of few releases may be anywhere: they widen the axis by so much at most.
    bounds = np.sqrt(np.append(drift.low, drift.high))
    near = bounds[(bounds > low / 3) & (bounds < 3 * high)]
    ends += near.tolist()
    ax.set_ylim(parts.percent_of(min(ends)) / _ROOM, parts.percent_of(max(ends)) * _ROOM)
    parts.percent_axis(ax.yaxis, ax.get_ylim()[1], ax.get_ylim()[0])
    first, last = float(drift.lag.min()), float(drift.lag.max())
    room = max(1.25, (last / first) ** 0.06)
    ax.set_xlim(first / room, last * room)
    texts = [f"{lag:.2g}\n{n:,}" for lag, n in zip(drift.lag.tolist(), drift.n_series, strict=True)]
    gaps = np.diff(np.log(drift.lag))
    narrowest = gaps.min() / gaps.mean() if len(gaps) else 1.0
    every = parts.thinned(texts, parts.pixels(ax, "width") * narrowest)
    ax.set_xticks(drift.lag[::every], texts[::every])
    ax.set_xticks(drift.lag, [""] * len(texts), minor=True)


def _points(ax: Axes, drift: Variogram) -> list[Artist]:
    bottom, _ = ax.get_ylim()
    there = drift.v > 0
    size = parts.percent(np.sqrt(np.maximum(drift.v, 0.0)))
    told = "noise subtracted" if drift.noise else "with noise"
    [line] = ax.plot(drift.lag[there], size[there], color=_style.BLUE, marker="o", ms=5, lw=1.2,
                     zorder=5, label=f"drift, {told}")  # fmt: skip
    tell(
        ax,
        drift.lag[there],
        size[there],
        [
            f"lag {lag:.3g} {drift.unit}\ndrift {value:.3g} %, n={n:,} series"
            for lag, value, n in zip(
                drift.lag[there], size[there], drift.n_series[there], strict=True
            )
        ],
    )
    low = np.maximum(parts.percent(np.sqrt(drift.low)), bottom)
    # Bounds that are none are beyond every scale.
    high = parts.percent(np.sqrt(np.minimum(drift.high, 100.0)))
    bars = ax.vlines(drift.lag, low, high, color=_style.BLUE, lw=0.9, zorder=3,
                     label=f"{100 * drift.level:g} % interval")  # fmt: skip
    handles: list[Artist] = [line, bars]
    if not there.all():
        handles += ax.plot(drift.lag[~there], np.full((~there).sum(), bottom), ls="", marker="v",
                           ms=7, mfc="white", color=_style.BLUE, clip_on=False, zorder=6,
                           label="less than noise")  # fmt: skip
    some = drift.median > 0
    if some.any():
        handles += ax.plot(drift.lag[some], parts.percent(drift.median[some]), ls="", marker="D",
                           ms=5, mfc="white", color=_style.INK, zorder=4,
                           label="median change, with noise")  # fmt: skip
    return handles


def _law(ax: Axes, drift: Variogram) -> list[Artist]:
    if drift.scale is None or drift.beta is None:
        return []
    lag = np.geomspace(*ax.get_xlim(), 100)
    size = parts.percent(np.sqrt(drift.scale * lag**drift.beta))
    return list(
        ax.plot(lag, size, color=_style.ORANGE, lw=1.6, ls=(0, (4, 2)), zorder=4,
                label=f"power law, drift ~ lag^{drift.beta / 2:.2g}")
    )  # fmt: skip


def _notes(group: GroupHalfLife, drift: Variogram, estimate: HalfLife | None) -> list[str]:
    notes = []
    if estimate is None:
        notes.append(f"half-life cannot be told: {group.threshold.refused}")
    else:
        notes.append(f"half-life, if drift goes on so: {parts.half_life_text(estimate)}")
        calibrated = _text.share(math.expm1(group.threshold.error))
        notes.append(f"doubles: a drift of √3 times the error at calibration, {calibrated}")
    if drift.noise == 0:
        notes.append("the noise is not known, and counts as drift")
    else:
        notes.append("noise: of the difference of two versions, root mean square over series")
    return notes
