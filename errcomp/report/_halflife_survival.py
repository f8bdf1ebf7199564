"""A picture of survival: the share of series still within twice the calibrated error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.report import _halflife_parts as parts
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from errcomp.halflife.estimators.expiry import Expiry
    from errcomp.halflife.estimators.turnbull import Turnbull
    from errcomp.halflife.panel import Clock, HalfLife
    from errcomp.halflife.results import GroupHalfLife

    Floats = NDArray[np.float64]

__all__ = ["draw_survival"]

#: Times at which the band is worked out, at most.
_MOST_TIMES = 40
_TICKS = 8


def draw_survival(
    group: GroupHalfLife,
    clock: Clock = "releases",
    *,
    note: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of series still within twice the calibrated error, by time since calibration.

    The line is Turnbull's estimate, of errors at face value: more series may have doubled so than
    surely have, noise allowed for, and the note counts both. Where the line falls between two looks
    a box shows the range within which it may fall anywhere; on the clock of releases a series that
    was looked at at each release falls at one of them. Ticks are series that were last seen there
    and had not expired at face value. The band holds each share by itself at its level; it goes
    from the earliest to the latest expiries that noise of the measurement allows, as the
    half-life's interval does. The dotted line is the law with the best held-out score. Below the
    axis stands how many series were at risk: still looked at, and not expired.

    Misleads at the right end, where a few series decide, and where series are no longer looked at
    because they have drifted.

    Parameters
    ----------
    group : GroupHalfLife
        From `errcomp.half_life`, of two series or more.
    clock : {"releases", "months"}
    note : str
        What the series are, written below the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no threshold, fewer than two series can be judged, or no version has a date where
        months are asked for.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Turnbull (1976), doi:10.1111/j.2517-6161.1976.tb01597.x.

    Examples
    --------
    >>> import errcomp as ec
    >>> found = ec.half_life(
    ...     {
    ...         "version": ["1", "2", "3", "4"] * 3,
    ...         "op": ["Gelu"] * 4 + ["Conv"] * 4 + ["Add"] * 4,
    ...         "measured": [4.0, 4.1, 5.0, 5.1, 2.0, 2.1, 2.0, 3.0, 1.0, 1.03, 1.0, 1.01],
    ...     }
    ... )
    >>> axes = draw_survival(found.groups[0])
    >>> axes.get_title(loc="left")
    'Series whose error has not doubled, n=3'
    """
    expiry = _expiry(group, clock)
    from errcomp.halflife.estimators.turnbull import turnbull

    left, right = expiry.intervals("face")
    curve = turnbull(left, right, clusters=expiry.cluster)
    median = group.estimate("turnbull", clock)
    notes = [*parts.group_notes(group, note), *_notes(expiry, curve, median)]
    ax = _style.canvas(ax, parts.height_for(notes))
    last = float(expiry.last_seen.max())
    ax.set_xlim(0, 1.02 * last)
    ax.set_ylim(0, 104)
    # On the clock of releases a series that expired in (2, 3] did so at release 3.
    later = 1.0 if clock == "releases" else 0.0
    handles: list[Artist] = [*_band(ax, group, expiry, last, later), *_line(ax, curve, last, later)]
    handles += _censored(ax, curve, expiry)
    law = _best_law(group, clock)
    below: list[Artist] = []
    if law is not None:
        below += _law(ax, law, expiry, last)
    ax.axhline(50, color=_style.MUTED, lw=0.9, ls=(0, (4, 2)), zorder=1, label="half")
    below += parts.mark_half_life(ax, median, 50.0)
    _ticks(ax, expiry, last)
    ax.set_yticks(range(0, 101, 25), [f"{y} %" for y in range(0, 101, 25)])
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(
        ax,
        x=f"{clock} since calibration; below: series at risk",
        y="series whose error has not doubled",
    )
    _style.heading(
        ax,
        f"Series whose error has not doubled, {_counted(curve)}",
        notes,
        room=_style.keys(ax, [row for row in (handles, below) if row]),
    )
    return ax


def _expiry(group: GroupHalfLife, clock: Clock) -> Expiry:
    if clock not in ("releases", "months"):
        raise InputError(f"clock must be 'releases' or 'months', got {clock!r}.")
    if group.threshold.value is None:
        raise InputError(
            "survival cannot be drawn: there is no error at which the calibrated one has doubled "
            f"({group.threshold.refused.rstrip('.')}). Give the promised error (error=)."
        )
    if clock not in group.expiry:
        raise InputError(
            "survival in months cannot be drawn: versions have no dates. Add dates, or draw "
            "releases."
        )
    found = group.expiry[clock]
    if found.n < 2:
        why = "; ".join(f"{one.n} left out: {one.reason}" for one in found.dropped)
        raise InputError(
            f"survival needs two series or more that can be judged, got {found.n} of "
            f"{found.n_panel}{f' ({why})' if why else ''}. Draw the errors instead, or group by "
            "fewer keys."
        )
    return found


def _counted(curve: Turnbull) -> str:
    told = f"n={curve.n:,}"
    if curve.n_clusters == curve.n:
        return told
    return f"{told} in {_text.count(curve.n_clusters, 'cluster')}"


def _line(ax: Axes, curve: Turnbull, last: float, later: float) -> list[Artist]:
    """Draw the curve, and boxes where it may fall anywhere."""
    x, y = [0.0], [100.0]
    boxes: Artist | None = None
    for left, right, mass in zip(curve.left, curve.right, curve.mass, strict=True):
        if math.isinf(right):
            continue
        start = min(left + later, right)
        before, after = y[-1], y[-1] - 100 * float(mass)
        x += [start, right]
        y += [before, after]
        if right > start:
            boxes = ax.fill_between([start, right], after, before, lw=0.6, zorder=3,
                                    facecolor=_style.blend(_style.BLUE, 0.35),
                                    edgecolor=_style.BLUE, label="falls within")  # fmt: skip
    x.append(max(last, x[-1]))
    y.append(y[-1])
    [line] = ax.plot(x, y, color=_style.BLUE, lw=2.0, zorder=5, label="share of the series")
    told = [f"{time:.3g} since calibration\n{share:.3g} % not doubled"
            for time, share in zip(x, y, strict=True)]  # fmt: skip
    tell(ax, x, y, told)
    return [line, boxes] if boxes is not None else [line]


def _band(
    ax: Axes, group: GroupHalfLife, expiry: Expiry, last: float, later: float
) -> list[Artist]:
    """Draw pointwise bounds: of the earliest and of the latest expiries that noise allows."""
    from errcomp.halflife.estimators.turnbull import turnbull

    early, late = (
        turnbull(*expiry.intervals(view), clusters=expiry.cluster) for view in ("early", "late")
    )
    if early.n_clusters < 2:
        return []
    level = group.estimates[0].level
    times, all_of_them = _times(early, late, last)
    # At calibration none has expired, by definition.
    low = 100 * np.array([1.0, *(early.surviving(time, level).low for time in times[1:])])
    high = 100 * np.array([1.0, *(late.surviving(time, level).high for time in times[1:])])
    # A share does not rise: the bound of a time holds from there on if it is an upper one, up to
    # there if it is a lower one. On the clock of releases nothing happens between two of them.
    upper = np.repeat(high, 2)[:-1]
    lower = np.repeat(low if later and all_of_them else np.append(low[1:], low[-1]), 2)[:-1]
    band = ax.fill_between(np.repeat(times, 2)[1:], lower, upper, facecolor="#dcdcdc", lw=0.5,
                           zorder=1, edgecolor=_style.FAINT,
                           label=f"{100 * level:g} % band")  # fmt: skip
    return [band]


def _times(early: Turnbull, late: Turnbull, last: float) -> tuple[Floats, bool]:
    """Return times at which shares may change, thinned if many, and whether those are all."""
    ends = np.concatenate([early.left, early.right, late.left, late.right, [0.0, last]])
    times = np.unique(ends[ends <= last])
    if len(times) <= _MOST_TIMES:
        return times, True
    kept = np.linspace(0, len(times) - 1, _MOST_TIMES).astype(np.int64)
    return times[kept], False


def _censored(ax: Axes, curve: Turnbull, expiry: Expiry) -> list[Artist]:
    """Mark where series were last seen that had not expired."""
    seen = expiry.last_seen[np.isinf(expiry.guess)]
    if not len(seen):
        return []
    at = np.unique(seen)
    least, most = curve.survival(at)
    return list(
        ax.plot(at, 50 * (least + most), ls="", marker="|", ms=9, mew=1.4, color=_style.INK,
                zorder=6, clip_on=False, label=f"last seen, not doubled ({len(seen):,})")
    )  # fmt: skip


def _best_law(group: GroupHalfLife, clock: Clock) -> HalfLife | None:
    """Return the estimate by the law that says best what it was not fitted to."""
    from errcomp.halflife.estimators.parametric import LAWS

    fitted = [group.estimate(law, clock) for law in LAWS]
    scored = [
        one for one in fitted if one is not None and one.details.get("held_out_score") is not None
    ]
    return max(scored, key=lambda one: float(one.details["held_out_score"]), default=None)


def _law(ax: Axes, best: HalfLife, expiry: Expiry, last: float) -> list[Artist]:
    from errcomp.halflife.estimators.parametric import LAWS, fit_law

    [law] = [name for name in LAWS if name == best.method]
    fit = fit_law(*expiry.intervals("face"), law)
    if fit.refused:
        return []
    times = np.linspace(0, last, 200)
    return list(
        ax.plot(times, 100 * fit.survival(times), color=_style.ORANGE, lw=1.6, ls=(0, (1, 1.4)),
                zorder=4, label=f"{law.replace('weibull', 'Weibull')} law (best score)")
    )  # fmt: skip


def _ticks(ax: Axes, expiry: Expiry, last: float) -> None:
    """Label times with the number of series that could still be seen to expire."""
    from matplotlib.ticker import MaxNLocator

    places = MaxNLocator(_TICKS, integer=True).tick_values(0, last)
    at = [float(time) for time in places if 0 <= time <= last]
    until = np.minimum(expiry.guess, expiry.last_seen)
    ax.set_xticks(at, [f"{time:g}\n{int((until >= time).sum()):,}" for time in at])


def _notes(expiry: Expiry, curve: Turnbull, median: HalfLife | None) -> list[str]:
    notes = [
        f"doubled: an error of {_text.share(math.expm1(expiry.threshold))} or more; of {curve.n} "
        f"series {curve.n_events} at face value, {int(np.isfinite(expiry.right).sum())} surely "
        f"({100 * expiry.level:g} %, noise allowed for)"
    ]
    if median is not None:
        told = parts.half_life_text(median)
        notes.append(f"half-life, until the error of half of them has doubled: {told}")
    if curve.n_clusters < 2:
        notes.append("no band: all series are in one cluster, which shares what happens to it")
    return notes + [
        f"{one.n} of {expiry.n_panel} series left out: {one.reason}" for one in expiry.dropped
    ]
