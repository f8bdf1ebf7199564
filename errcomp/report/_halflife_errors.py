"""A picture of the error of a frozen model, release by release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.report import _halflife_parts as parts
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from errcomp.halflife.panel import HalfLife, Panel
    from errcomp.halflife.results import GroupHalfLife, ReleaseStep

__all__ = ["draw_error_by_release"]

#: More series than this are drawn as bands of their quantiles.
_MOST_LINES = 30
#: Share of the height that errors take; steps hang from the top.
_ERRORS, _STEPS = 0.78, 0.17
#: Errors beyond this many thresholds need a scale that is logarithmic there.
_FAR = 5.0
#: Methods of the half-life that is marked, the first there is.
_METHODS = ("trajectory", "expiry", "turnbull")
_SOURCES = {"given": "promised", "measured": "calibrated", "assumed": "assumed"}
_UNTIL = {
    "trajectory": ", until the RMS error has doubled",
    "turnbull": ", until the error of half of the series has doubled",
}


class _Curve(NamedTuple):
    """What stands for the series: positions of versions, errors and their bounds."""

    label: str
    at: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bounds: str


def draw_error_by_release(group: GroupHalfLife, *, note: str = "", ax: Axes | None = None) -> Axes:
    r"""Draw how the error of a frozen model grows from release to release.

    Errors are :math:`e^{|\log(\text{predicted} / \text{measured})|} - 1`: 10 % is a factor of 1.1,
    either way. The thick line is the root mean square over series, noise subtracted, with its
    interval where there are clusters enough to tell one; the median where series were calibrated at
    different versions; the error itself where there is one series. Thin lines are series, or grey
    bands their quantiles where there are more than 30. Bars that hang from the top are the shares
    of series with a step at that release, relative to the largest. The half-life is marked on the
    line at which the calibrated error has doubled, where all series start at one version.

    Misleads where series join or leave on the way: the line then moves without any error moving.
    The numbers of series are below the title.

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
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> found = ec.half_life(
    ...     {"version": ["1.0", "1.1", "1.2", "1.3"], "measured": [4.0, 4.1, 4.0, 5.0]}
    ... )
    >>> axes = draw_error_by_release(found.groups[0])
    >>> axes.get_title(loc="left")
    'Error of a frozen model, n=1 series'
    """
    panel, threshold, marked = group.panel, group.threshold, _marked(group)
    notes = [*parts.group_notes(group, note), *_notes(group, marked)]
    ax = _style.canvas(ax, parts.height_for(notes))
    curve = _curve(group)
    seen = np.unique(panel.version)
    ax.set_xlim(seen[0] - 0.5, seen[-1] + 0.5)
    _limits(ax, curve, panel, parts.percent_of(threshold.value or threshold.error))
    tell(
        ax,
        curve.at.astype(float),
        parts.percent(curve.value),
        [
            f"{_text.shorten(panel.versions[at])}\n{curve.label}: {value:.3g} %"
            for at, value in zip(curve.at.tolist(), parts.percent(curve.value), strict=True)
        ],
    )
    handles: list[Artist] = [*_main(ax, curve), *_series(ax, panel)]
    levels: list[tuple[str, float, str, Any]] = [
        (_SOURCES[threshold.source], threshold.error, _style.INK, (0, (4, 2)))
    ]
    below: list[Artist] = _steps(ax, group)
    if threshold.value is not None:
        levels.append(("doubled", threshold.value, _style.ORANGE, "-"))
        if _one_start(panel):
            height = parts.percent_of(threshold.value)
            below += parts.mark_half_life(ax, marked, height, start=float(seen[0]))
    parts.mark_levels(ax, levels)
    ax.grid(axis="y", color=_style.GRID)
    label = parts.release_ticks(ax, panel, seen.tolist())
    _style.name_axes(ax, x=label, y="|error| of predicted / measured")
    _style.heading(
        ax,
        f"Error of a frozen model, {parts.series_and_clusters(panel)}",
        notes,
        room=_style.keys(ax, [row for row in (handles, below) if row]),
    )
    return ax


def _marked(group: GroupHalfLife) -> HalfLife | None:
    """Return the first estimate that was not refused, or else the first one."""
    found = [one for name in _METHODS if (one := group.estimate(name, "releases"))]
    return next((one for one in found if not one.refused), found[0] if found else None)


def _one_start(panel: Panel) -> bool:
    return bool(np.ptp(panel.version[panel.starts[:-1]]) == 0)


def _curve(group: GroupHalfLife) -> _Curve:
    """Choose what stands for the series: the error of one, the RMS, or the median."""
    panel = group.panel
    level = f"{100 * group.trajectory.level:g} %"
    if panel.n_series == 1:
        noise = panel.sd
        if panel.frozen_at_first:  # the noise of the first measurement is in every later error
            noise = np.where(np.arange(len(noise)) > 0, np.hypot(noise, noise[0]), 0.0)
        value = np.abs(panel.error)
        low = np.maximum(value - 2 * noise, 0.0)
        high, bounds = value + 2 * noise, "± 2 standard deviations of noise"
        return _Curve("|error|", panel.version, value, low, high, bounds)
    if _one_start(panel):
        found = group.trajectory
        at, bounds = np.rint(found.lag).astype(np.int64) + panel.version[0], f"its {level} interval"
        rms = found.rms, found.rms_low, found.rms_high
        return _Curve("RMS, noise subtracted", at, *rms, bounds)
    at = np.unique(panel.version)
    middle = np.array([np.median(np.abs(panel.error[panel.version == one])) for one in at])
    none = np.full(len(at), np.nan)
    return _Curve("median of the series", at, middle, none, none, "")


def _limits(ax: Axes, curve: _Curve, panel: Panel, doubled: float) -> None:
    """Choose scale and limits of the errors."""
    each = np.abs(panel.error)
    if panel.n_series > _MOST_LINES:
        each = np.array([np.quantile(each[panel.version == one], 0.9) for one in curve.at])
    high = parts.percent_of(max(each.max(), curve.value.max()))
    bounds = parts.percent(curve.high[np.isfinite(curve.high)])
    # Bounds of few clusters may be anywhere: they do not decide the scale.
    top = max(high, 1.3 * doubled, min(bounds.max(initial=0.0), 1.5 * high)) or 1.0
    far = doubled > 0 and top > _FAR * doubled
    if far:
        ax.set_yscale("symlog", linthresh=doubled, linscale=0.6)
    scale = ax.yaxis.get_transform()
    end = scale.transform(np.array([top])) / _ERRORS
    ax.set_ylim(0, scale.inverted().transform(end).item())
    if far:
        parts.percent_axis(ax.yaxis, top, doubled)
    else:
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.6g} %")
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.02 * top])


def _main(ax: Axes, curve: _Curve) -> list[Artist]:
    x = curve.at
    dense = len(x) > 60
    [line] = ax.plot(x, parts.percent(curve.value), color=_style.BLUE, lw=2.0, zorder=5,
                     marker="" if dense else "o", ms=4.5, label=curve.label)  # fmt: skip
    there = np.isfinite(curve.low) & np.isfinite(curve.high)
    if not there.any():
        return [line]
    low, high = parts.percent(curve.low[there]), parts.percent(curve.high[there])
    bars = ax.vlines(x[there], low, high, color=_style.BLUE, lw=0.9, zorder=4,
                     label=curve.bounds)  # fmt: skip
    return [line, bars]


def _series(ax: Axes, panel: Panel) -> list[Artist]:
    """Draw each series, or quantiles of many."""
    if panel.n_series == 1:
        return []
    size = parts.percent(np.abs(panel.error))
    if panel.n_series <= _MOST_LINES:
        lines = []
        for i in range(panel.n_series):
            rows = slice(panel.starts[i], panel.starts[i + 1])
            lines += ax.plot(panel.version[rows], size[rows], color=_style.FAINT, lw=0.6,
                             zorder=3, label="one series")  # fmt: skip
        return list(lines[:1])
    at = np.unique(panel.version)
    shares = (0.1, 0.25, 0.75, 0.9)
    bands = np.array([np.quantile(size[panel.version == one], shares) for one in at]).T
    wide = ax.fill_between(at, bands[0], bands[3], facecolor="#dcdcdc", lw=0.5, zorder=1,
                           edgecolor=_style.FAINT, label="80 % of the series")  # fmt: skip
    half = ax.fill_between(at, bands[1], bands[2], facecolor="#bdbdbd", lw=0.5, zorder=1.5,
                           edgecolor=_style.FAINT, label="half of them")  # fmt: skip
    return [wide, half]


def _steps(ax: Axes, group: GroupHalfLife) -> list[Artist]:
    """Hang bars from the top at releases at which series stepped."""
    if not group.steps:
        return []
    from matplotlib.patches import Patch

    at = [group.panel.versions.index(step.version) for step in group.steps]
    shares = np.array([step.n_series / max(step.n_looked_at, 1) for step in group.steps])
    heights = _STEPS * shares / shares.max()
    look: dict[str, Any] = {
        "facecolor": _style.blend(_style.ORANGE, 0.45),
        "edgecolor": _style.ORANGE,
    }
    ax.bar(at, -heights, bottom=1.0, width=0.5, lw=0.8, zorder=2, **look,
           transform=ax.get_xaxis_transform())  # fmt: skip
    most = _most(group)
    longest = f"{most.n_series:,} of {most.n_looked_at:,}"
    return [Patch(label=f"series with a step there (longest: {longest})", **look)]


def _most(group: GroupHalfLife) -> ReleaseStep:
    """Return the release at which the largest share of series stepped."""
    return max(group.steps, key=lambda step: step.n_series / max(step.n_looked_at, 1))


def _notes(group: GroupHalfLife, marked: HalfLife | None) -> list[str]:
    panel, threshold = group.panel, group.threshold
    notes = []
    if threshold.value is None:
        notes.append(f"half-life cannot be told: {threshold.refused}")
    elif marked is not None:
        until = _UNTIL.get(marked.method, "")
        since = "" if _one_start(panel) else " since each first version (not marked)"
        notes.append(f"half-life{until}{since}: {parts.half_life_text(marked)}")
    counts = np.bincount(panel.version)
    counts = counts[counts > 0]
    if counts.min() < counts.max():
        notes.append(f"{parts.span_text(int(counts.min()), int(counts.max()))} series a version")
    if group.steps:
        chance = group.steps[0].false_alarms
        found = sum(step.n_series for step in group.steps)
        most = _most(group)
        notes.append(
            f"{_text.count(found, 'step')} found ({chance:.2g} series would show one by chance); "
            f"most at {_text.shorten(most.version)}: predicted / measured "
            f"{_text.signed(most.change)}"
        )
    return notes
