"""Figures of half-life: axes in, axes out, one message each.

* `draw_error_by_release`: how the error of a frozen model grew, and the releases responsible
* `draw_survival`: how many series are still valid
* `draw_variogram`: how far errors drift, by lag
* `draw_releases_heat`: which groups changed at which release

These functions do not open a window, use pyplot or change Matplotlib's settings. Matplotlib is
imported at first use (``pip install 'errcomp[figures]'``). `errcomp.report.drawing.saving.save`
writes a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError, describe_names, renamed
from errcomp.halflife.view import parts
from errcomp.halflife.view.curves import draw_survival, draw_variogram
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

    from errcomp.halflife.panel import HalfLife, Panel
    from errcomp.halflife.results import GroupHalfLife, HalfLives, ReleaseStep

    Floats = NDArray[np.float64]
    Extend = Literal["neither", "both", "min", "max"]

__all__ = [
    "FIGURES",
    "draw",
    "draw_error_by_release",
    "draw_releases_heat",
    "draw_survival",
    "draw_variogram",
]

#: More series than this are drawn as bands of their quantiles.
_MOST_LINES = 30
#: Shares of the height: errors, and the steps that hang from the top.
_ERRORS, _STEPS = 0.78, 0.17
#: Beyond this many thresholds the scale is logarithmic.
_FAR = 5.0
#: The half-life that is marked is that of the first available method.
_METHODS = ("trajectory", "expiry", "turnbull")
_SOURCES = {"given": "promised", "measured": "calibrated", "assumed": "assumed"}
_UNTIL = {
    "trajectory": " (RMS error doubled)",
    "turnbull": " (error doubled in half of the series)",
}


class _Curve(NamedTuple):
    """The main line: positions of versions, errors and their bounds."""

    label: str
    at: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bounds: str


def draw_error_by_release(group: GroupHalfLife, *, note: str = "", ax: Axes | None = None) -> Axes:
    r"""Draw how the error of a frozen model grows from release to release.

    Errors are :math:`e^{|\log(\text{predicted} / \text{measured})|} - 1`: 10 % is a factor of 1.1
    in either direction. The thick line is the root mean square over series, minus noise, with its
    interval if there are enough clusters. It is the median if series were calibrated at different
    versions, and the error itself for a single series. Thin lines are series; more than 30 are
    drawn as grey bands of their quantiles. Bars that hang from the top are the shares of series
    with a step at that release, relative to the largest. If all series start at one version, the
    half-life is marked on the line of the doubled error.

    Misleads where series join or leave on the way: the line then changes although no error does.
    The numbers of series are below the title.

    Parameters
    ----------
    group : GroupHalfLife
        From `errcomp.half_life`.
    note : str
        Written below the title, e.g. which predictions the errors belong to.
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
    notes = [*parts.group_notes(group, note), *_error_notes(group, marked)]
    ax = _style.canvas(ax, parts.height_for(notes))
    curve = _curve(group)
    seen = np.unique(panel.version)
    ax.set_xlim(seen[0] - 0.5, seen[-1] + 0.5)
    _limits(ax, curve, panel, parts.percent_of(threshold.value or threshold.error))
    size = parts.percent(curve.value)
    texts = [
        f"{_text.shorten(panel.versions[at])}\n{curve.label}: {value:.3g} %"
        for at, value in zip(curve.at.tolist(), size, strict=True)
    ]
    tell(ax, curve.at.astype(float), size, texts)
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
    title = f"Error of a frozen model, {parts.series_and_clusters(panel)}"
    parts.entitle(ax, title, notes, handles, below)
    return ax


def _marked(group: GroupHalfLife) -> HalfLife | None:
    """Return the first estimate that was not refused, or else the first one."""
    fits = [fit for name in _METHODS if (fit := group.estimate(name, "releases"))]
    return next((fit for fit in fits if not fit.refused), fits[0] if fits else None)


def _one_start(panel: Panel) -> bool:
    return bool(np.ptp(panel.version[panel.starts[:-1]]) == 0)


def _curve(group: GroupHalfLife) -> _Curve:
    """Choose the main line: the error of a single series, the RMS, or the median."""
    panel = group.panel
    level = f"{100 * group.trajectory.level:g} %"
    if panel.n_series == 1:
        noise = panel.sd
        if panel.frozen_at_first:  # every later error contains the noise of the first measurement
            noise = np.where(np.arange(len(noise)) > 0, np.hypot(noise, noise[0]), 0.0)
        value = np.abs(panel.error)
        low = np.maximum(value - 2 * noise, 0.0)
        high, bounds = value + 2 * noise, "± 2 standard deviations of noise"
        return _Curve("|error|", panel.version, value, low, high, bounds)
    if _one_start(panel):
        course = group.trajectory
        at, bounds = (
            np.rint(course.lag).astype(np.int64) + panel.version[0],
            f"its {level} interval",
        )
        rms = course.rms, course.rms_low, course.rms_high
        return _Curve("RMS, noise subtracted", at, *rms, bounds)
    at = np.unique(panel.version)
    middle = np.array([np.median(np.abs(panel.error[panel.version == place])) for place in at])
    none = np.full(len(at), np.nan)
    return _Curve("median of the series", at, middle, none, none, "")


def _limits(ax: Axes, curve: _Curve, panel: Panel, doubled: float) -> None:
    """Choose scale and limits of the errors."""
    each = np.abs(panel.error)
    if panel.n_series > _MOST_LINES:
        each = np.array([np.quantile(each[panel.version == place], 0.9) for place in curve.at])
    high = parts.percent_of(max(each.max(), curve.value.max()))
    bounds = parts.percent(curve.high[np.isfinite(curve.high)])
    # Bounds of few clusters may be far off: they do not decide the scale.
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
    bounded = np.isfinite(curve.low) & np.isfinite(curve.high)
    if not bounded.any():
        return [line]
    low, high = parts.percent(curve.low[bounded]), parts.percent(curve.high[bounded])
    bars = ax.vlines(x[bounded], low, high, color=_style.BLUE, lw=0.9, zorder=4,
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
    bands = np.array([np.quantile(size[panel.version == place], shares) for place in at]).T
    wide = ax.fill_between(at, bands[0], bands[3], facecolor="#dcdcdc", lw=0.5, zorder=1,
                           edgecolor=_style.FAINT, label="80 % of the series")  # fmt: skip
    half = ax.fill_between(at, bands[1], bands[2], facecolor="#bdbdbd", lw=0.5, zorder=1.5,
                           edgecolor=_style.FAINT, label="half of them")  # fmt: skip
    return [wide, half]


def _steps(ax: Axes, group: GroupHalfLife) -> list[Artist]:
    """Hang bars from the top at releases with steps."""
    if not group.steps:
        return []
    from matplotlib.patches import Patch

    at = [group.panel.versions.index(step.version) for step in group.steps]
    shares = np.array([step.n_series / max(step.n_looked_at, 1) for step in group.steps])
    heights = _STEPS * shares / shares.max()
    look: Any = {"facecolor": _style.blend(_style.ORANGE, 0.45), "edgecolor": _style.ORANGE}
    ax.bar(at, -heights, bottom=1.0, width=0.5, lw=0.8, zorder=2, **look,
           transform=ax.get_xaxis_transform())  # fmt: skip
    most = _most(group)
    longest = f"{most.n_series:,} of {most.n_looked_at:,}"
    return [Patch(label=f"series with a step at that version (longest bar: {longest})", **look)]


def _most(group: GroupHalfLife) -> ReleaseStep:
    """Return the release with the largest share of series with a step."""
    return max(group.steps, key=lambda step: step.n_series / max(step.n_looked_at, 1))


def _error_notes(group: GroupHalfLife, marked: HalfLife | None) -> list[str]:
    panel, threshold = group.panel, group.threshold
    notes = []
    if threshold.value is None:
        notes.append(f"half-life cannot be determined: {threshold.refused}")
    elif marked is not None:
        until = _UNTIL.get(marked.method, "")
        since = "" if _one_start(panel) else " since the first version of each series (not marked)"
        notes.append(f"half-life{until}{since}: {parts.half_life_text(marked)}")
    counts = np.bincount(panel.version)
    counts = counts[counts > 0]
    if counts.min() < counts.max():
        notes.append(f"{parts.span_text(int(counts.min()), int(counts.max()))} series per version")
    if group.steps:
        chance = group.steps[0].false_alarms
        n_steps = sum(step.n_series for step in group.steps)
        most = _most(group)
        notes.append(
            f"{_text.count(n_steps, 'step')} found ({chance:.2g} expected by chance); most at "
            f"{_text.shorten(most.version)}: predicted / measured changed by "
            f"{_text.signed(most.change)}"
        )
    return notes


#: Colours end at the first of these relative changes that holds this share of the cells.
_CLIPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
_WITHIN = 0.95
#: Cells below 0 by more than this share of the scale are hatched: grey print shows no sign.
_HATCHED = 0.2
#: With more columns, edges would hide the cells.
_MOST_EDGED = 40
#: Pixels that the colour bar and the numbers of series take.
_BESIDE = 90.0


@renamed(found="half_lives")
def draw_releases_heat(half_lives: HalfLives, *, note: str = "", ax: Axes | None = None) -> Axes:
    r"""Draw the median change of the error since the first version, by group and release.

    A cell is :math:`\operatorname{median}_i (e_{iv} - e_{i1})` over the series of a group that were
    validated under the version, e = log(predicted / measured), shown as a relative change. Above 0,
    the measured value became smaller (faster, if it is a time), or the prediction larger. Colours
    end at the stated value. Cells below 0 are hatched, which shows their sign in grey print. A cell
    without series has a dash. Dots are releases at which series of the group have a step; more
    series make a larger dot.

    Misleads where series of a group change in different directions: their median stays.

    Parameters
    ----------
    half_lives : HalfLives
        From `errcomp.half_life` with ``by=``, of two groups or more.
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
        There are fewer than two groups.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> versions = ["1.0", "1.1", "1.2"]
    >>> half_lives = ec.half_life(
    ...     {
    ...         "version": versions * 2,
    ...         "op": ["Gelu"] * 3 + ["Conv"] * 3,
    ...         "measured": [4.0, 4.0, 2.0, 3.0, 3.0, 3.1],
    ...     },
    ...     by="op",
    ... )
    >>> axes = draw_releases_heat(half_lives)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['Conv', 'Gelu']
    """
    if len(half_lives.groups) < 2:
        raise InputError(
            f"a heat map needs two or more groups, got {len(half_lives.groups)}. Group the series "
            "(by=, e.g. kernel_class), or draw the errors of the group."
        )
    panels = [group.panel for group in half_lives.groups]
    seen = np.unique(np.concatenate([panel.version for panel in panels]))
    cells = np.array([_medians(panel, len(half_lives.versions)) for panel in panels])[:, seen]
    clip = _clip(cells)
    rows = len(panels)
    notes = [*([note] if note else []), *_heat_notes(cells, clip)]
    ax = _style.canvas(ax, 1.9 + 0.15 * len(notes) + max(0.24 * rows, 1.2))
    mesh = _cells(ax, cells, clip)
    names = parts.names_of(half_lives.groups)
    _tell(ax, names, [half_lives.versions[i] for i in seen], cells)
    handles = _dots(ax, half_lives, seen)
    _style.names_on_y(ax, names)
    ax.set_ylim(rows - 0.5, -0.5)
    for y, panel in enumerate(panels):
        _style.beside(ax, y, f"n={panel.n_series:,}")
    beside = _BESIDE + parts.room_of_names(names)
    label = parts.release_ticks(ax, panels[0], seen.tolist(), range(len(seen)), beside=beside)
    _colour_bar(ax, mesh, clip, cells)
    ax.spines[["left", "bottom"]].set_visible(False)
    _style.name_axes(ax, x=label, y=" / ".join(map(_text.shorten, half_lives.by)))
    n = sum(panel.n_series for panel in panels)
    title = f"Change of predicted / measured, n={n:,} series in {rows} groups"
    parts.entitle(ax, title, notes, handles)
    return ax


def _medians(panel: Panel, versions: int) -> Floats:
    """Return the median change of the series since their first version; NaN without series."""
    series = np.repeat(np.arange(panel.n_series), np.diff(panel.starts))
    change = panel.error - panel.error[panel.starts[:-1]][series]
    out = np.full(versions, np.nan)
    for version in np.unique(panel.version):
        out[version] = np.median(change[panel.version == version])
    return out


def _clip(cells: Floats) -> float:
    """Return the log-ratio at which colours end."""
    largest = float(np.nanquantile(np.abs(cells), _WITHIN))
    return math.log1p(next((clip for clip in _CLIPS if math.log1p(clip) >= largest), _CLIPS[-1]))


def _cells(ax: Axes, cells: Floats, clip: float) -> QuadMesh:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    colours = LinearSegmentedColormap.from_list(
        "change", [_style.BLUE, _style.blend(_style.BLUE, 0.5), "#ffffff",
                   _style.blend(_style.ORANGE, 0.5), _style.ORANGE]
    )  # fmt: skip
    edges_x = np.arange(cells.shape[1] + 1) - 0.5
    edges_y = np.arange(cells.shape[0] + 1) - 0.5
    width = 0.4 if cells.shape[1] <= _MOST_EDGED else 0.0
    mesh = ax.pcolormesh(edges_x, edges_y, np.ma.masked_invalid(cells), cmap=colours, vmin=-clip,
                         vmax=clip, edgecolors=_style.GRID, linewidth=width)  # fmt: skip
    with np.errstate(invalid="ignore"):
        down = np.argwhere(cells < -_HATCHED * clip)
    for y, x in down:
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", lw=0,
                               edgecolor="white", zorder=2))  # fmt: skip
    y, x = np.nonzero(np.isnan(cells))
    ax.hlines(y, x - 0.2, x + 0.2, color=_style.MUTED, lw=0.8, zorder=2)
    return mesh


def _dots(ax: Axes, half_lives: HalfLives, seen: NDArray[np.int64]) -> list[Artist]:
    """Put dots at releases with steps; their areas show the share of series."""
    place = {half_lives.versions[position]: x for x, position in enumerate(seen.tolist())}
    dots = [
        (place[step.version], y, step.n_series / max(step.n_looked_at, 1))
        for y, group in enumerate(half_lives.groups)
        for step in group.steps
    ]
    if not dots:
        return []
    from matplotlib.lines import Line2D

    x, y, share = np.array(dots).T
    ax.scatter(x, y, s=9 + 36 * share, color=_style.INK, edgecolors="white", linewidths=0.8,
               zorder=4)  # fmt: skip
    return [
        Line2D([], [], ls="", marker="o", ms=size, color=_style.INK, mec="white", label=label)
        for size, label in ((6.7, "step in all series"), (3.2, "step in few series"))
    ]


def _tell(ax: Axes, names: Sequence[str], versions: Sequence[str], cells: Floats) -> None:
    """Name the group, the version and the change of each cell."""
    known = np.argwhere(np.isfinite(cells))
    names = _text.fitting(names)
    y, x = known.astype(float).T
    texts = [
        f"{names[y]}, {_text.shorten(versions[x])}\n{_text.signed(math.expm1(cells[y, x]))}"
        for y, x in known.tolist()
    ]
    tell(ax, x, y, texts)


def _colour_bar(ax: Axes, mesh: QuadMesh, clip: float, cells: Floats) -> None:
    figure = ax.get_figure()
    assert figure is not None  # axes without a figure were refused
    low, high = bool(np.nanmin(cells) < -clip), bool(np.nanmax(cells) > clip)
    extend: Extend = "both" if low and high else "min" if low else "max" if high else "neither"
    bar = figure.colorbar(mesh, ax=ax, extend=extend, fraction=0.05, pad=0.02, aspect=25)
    at = np.linspace(-clip, clip, 5)
    bar.set_ticks(at.tolist(), labels=[_text.signed(math.expm1(value)) for value in at])
    bar.ax.tick_params(labelsize=_style.SMALL, labelcolor=_style.INK, color=_style.MUTED)
    bar.outline.set_visible(False)
    bar.set_label("median change since the first version", fontsize=_style.SMALL, color=_style.INK)


def _heat_notes(cells: Floats, clip: float) -> list[str]:
    low, high, hatched = (_text.signed(math.expm1(share * clip)) for share in (-1, 1, -_HATCHED))
    blank = "; dash: no series" if np.isnan(cells).any() else ""
    return [
        "orange: measured values fell (times: faster) or predictions rose; blue: the opposite",
        f"the colour scale ends at {low} and {high}; hatched: below {hatched}{blank}",
    ]


def _alone(name: str, drawn: Callable[..., Axes]) -> Callable[..., Axes]:
    """Return a function that draws the only group of half-lives."""

    def figure(half_lives: HalfLives, ax: Axes | None = None) -> Axes:
        return drawn(_only_group(half_lives, name), note=half_lives.source, ax=ax)

    return figure


def _heat(half_lives: HalfLives, ax: Axes | None = None) -> Axes:
    return draw_releases_heat(half_lives, note=half_lives.source, ax=ax)


#: Figures of half-lives, by name. All but ``heat`` show one group and refuse several.
FIGURES: Mapping[str, Callable[..., Axes]] = {
    "errors": _alone("errors", draw_error_by_release),
    "survival": _alone("survival", draw_survival),
    "variogram": _alone("variogram", draw_variogram),
    "heat": _heat,
}


@renamed(found="half_lives")
def draw(half_lives: HalfLives, name: str, ax: Axes | None = None) -> Axes:
    """Draw one of `FIGURES`.

    Parameters
    ----------
    half_lives : HalfLives
    name : str
        A key of `FIGURES`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        There is no such figure, or it shows one group and there are several.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> versions = [f"1.{i}" for i in range(4)]
    >>> half_lives = ec.half_life({"version": versions, "measured": [4.0, 4.1, 4.0, 5.0]})
    >>> draw(half_lives, "variogram").get_title(loc="left")
    'Drift by lag, n=1 series'
    """
    if name not in FIGURES:
        known = describe_names(list(FIGURES), wanted=name)
        raise InputError(f"unknown figure {name!r} of half-lives. Available: {known}.")
    return FIGURES[name](half_lives, ax)


def _only_group(half_lives: HalfLives, name: str) -> GroupHalfLife:
    if len(half_lives.groups) == 1:
        return half_lives.groups[0]
    labels = parts.names_of(half_lives.groups)
    raise InputError(
        f"the figure {name!r} shows one group, but there are {len(labels)} groups: "
        f"{describe_names(labels)}. Select one (--where KEY=VALUE), leave out --by, or draw 'heat'."
    )
