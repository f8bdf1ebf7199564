"""A picture of what moved when: groups of series by release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.report import _halflife_parts as parts
from errcomp.report import _style, _text
from errcomp.report._hover import tell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

    from errcomp.halflife.panel import Panel
    from errcomp.halflife.results import HalfLives

    Floats = NDArray[np.float64]
    Extend = Literal["neither", "both", "min", "max"]

__all__ = ["draw_releases_heat"]

#: Colours end at the first of these relative changes that so many cells lie within.
_CLIPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
_WITHIN = 0.95
#: Share of the scale from which cells below 0 are hatched: print in grey has no sign.
_HATCHED = 0.2
#: Edges of more columns would hide the cells.
_MOST_EDGED = 40
#: Pixels that the colour bar and the numbers of series take.
_BESIDE = 90.0


def draw_releases_heat(found: HalfLives, *, note: str = "", ax: Axes | None = None) -> Axes:
    r"""Draw the median change of the error since the first version, by group and release.

    A cell is :math:`\operatorname{median}_i (e_{iv} - e_{i1})` over the series of a group that were
    validated under the version, e = log(predicted / measured), shown as a relative change. Above 0
    what was measured became smaller (faster, if it is a time), or the prediction larger. Colours
    end at the stated value; cells below 0 are hatched, so that print in grey tells them; a cell
    without series is blank but for a dash. Dots are releases at which series of the group stepped,
    the larger the more of them.

    Misleads where series of a group move in different ways: their median stays.

    Parameters
    ----------
    found : HalfLives
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
    >>> found = ec.half_life(
    ...     {
    ...         "version": versions * 2,
    ...         "op": ["Gelu"] * 3 + ["Conv"] * 3,
    ...         "measured": [4.0, 4.0, 2.0, 3.0, 3.0, 3.1],
    ...     },
    ...     by="op",
    ... )
    >>> axes = draw_releases_heat(found)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['Conv', 'Gelu']
    """
    if len(found.groups) < 2:
        raise InputError(
            f"a heat map needs two groups or more, got {len(found.groups)}. Group the series "
            "(by=, e.g. kernel_class), or draw the errors of the one group."
        )
    panels = [group.panel for group in found.groups]
    seen = np.unique(np.concatenate([panel.version for panel in panels]))
    cells = np.array([_medians(panel, len(found.versions)) for panel in panels])[:, seen]
    clip = _clip(cells)
    rows = len(panels)
    notes = [*([note] if note else []), *_notes(cells, clip)]
    ax = _style.canvas(ax, 1.9 + 0.15 * len(notes) + max(0.24 * rows, 1.2))
    mesh = _cells(ax, cells, clip)
    _tell(ax, found, cells, seen)
    handles = _dots(ax, found, seen)
    names = [", ".join(map(str, group.key.values())) for group in found.groups]
    _style.names_on_y(ax, names)
    ax.set_ylim(rows - 0.5, -0.5)
    for y, panel in enumerate(panels):
        _style.beside(ax, y, f"n={panel.n_series:,}")
    beside = _BESIDE + parts.room_of_names(names)
    label = parts.release_ticks(ax, panels[0], seen.tolist(), range(len(seen)), beside=beside)
    _colour_bar(ax, mesh, clip, cells)
    ax.spines[["left", "bottom"]].set_visible(False)
    _style.name_axes(ax, x=label, y=" / ".join(map(_text.shorten, found.by)))
    n = sum(panel.n_series for panel in panels)
    _style.heading(
        ax,
        f"Change of predicted / measured, n={n:,} series in {rows} groups",
        notes,
        room=_style.keys(ax, [handles]) if handles else 0.0,
    )
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
    """Return the log ratio at which colours end."""
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


def _dots(ax: Axes, found: HalfLives, seen: NDArray[np.int64]) -> list[Artist]:
    """Put dots at releases at which series stepped, with areas by their share."""
    place = {found.versions[position]: x for x, position in enumerate(seen.tolist())}
    dots = [
        (place[step.version], y, step.n_series / max(step.n_looked_at, 1))
        for y, group in enumerate(found.groups)
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
        for size, label in ((6.7, "all series stepped there"), (3.2, "few of them"))
    ]


def _tell(ax: Axes, found: HalfLives, cells: Floats, seen: NDArray[np.int64]) -> None:
    """Say in each cell which group it is of, under which version, and its change."""
    there = np.argwhere(np.isfinite(cells))
    names = _text.fitting([", ".join(map(str, group.key.values())) for group in found.groups])
    tell(
        ax,
        there[:, 1].astype(float),
        there[:, 0].astype(float),
        [
            f"{names[y]}, {_text.shorten(found.versions[seen[x]])}\n"
            f"{_text.signed(math.expm1(cells[y, x]))}"
            for y, x in there.tolist()
        ],
    )


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


def _notes(cells: Floats, clip: float) -> list[str]:
    low, high, hatched = (_text.signed(math.expm1(one * clip)) for one in (-1, 1, -_HATCHED))
    blank = "; dash: no series" if np.isnan(cells).any() else ""
    return [
        "orange: measured fell (a time: faster) or predicted rose; blue: reverse",
        f"colours end at {low} and {high}; hatched: below {hatched}{blank}",
    ]
