"""One look for all figures: colours, sizes, names that fit and labels that do not overlap."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, MissingExtraError
from errcomp.report.drawing.words import fitting, number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


#: Contrast of text against its ground (WCAG 2.1, 1.4.3).
_OF_TEXT = 4.5
#: Text on a tint, the first if it is as easy to read as the second.
_ON_TINTS = ("#000000", "#ffffff")
# Okabe and Ito (2008), distinguishable with any colour vision. Their light orange and sky blue have
# a contrast of 2.3 against white, where a mark needs 3 (WCAG 2.1, 1.4.11): brown and the indigo of
# Tol (2021) stand in, which are also the darkest in print without colour.
BLUE, ORANGE = "#0072B2", "#D55E00"
INK, MUTED, FAINT, GRID = "#222222", "#6b6b6b", "#8f8f8f", "#e2e2e2"
_CYCLE = (BLUE, ORANGE, "#009E73", "#CC79A7", "#6F4E00", "#332288", "#000000")
_MARKERS = "osD^vP*"
#: The same assumption looks the same in every figure.
_KNOWN = ("estimated", "independent", "classes", "comonotonic", "repeats", "devices", "matrix")
_OF_BOUNDS = "unknown"
TITLE, TEXT, SMALL = 10.0, 8.5, 8.0
#: Characters of a title and of the line below it that fit a figure 640 pixels wide, and that a
#: line has even where there is no room.
_TITLE_WIDTH, _NOTE_WIDTH, _SHORTEST = 58, 74, 30
#: A number stays on one line with its unit or with what it counts, and so do the two of a ratio.
_ONE_LINE, _HELD = re.compile(r"(?<=\d) (?=\S)| (?=/ )|(?<= /) "), "\x1f"
#: Points that a character of small print takes.
CHARACTER = 4.45
#: Points that a line of keys takes above the axes, and that one takes beside its text.
_KEY_LINE, _KEY = 14.0, 27.0
#: Points left of the labels of rows and right of the last key.
_MARGINS = 18.0


def canvas(ax: Axes | None, height: float) -> Axes:
    """Return the axes given, or new ones 640 pixels wide that no global state knows of.

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    InputError
        What was given are no axes.
    """
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "figures", "drawing figures") from error
    if ax is None:
        figure = Figure(figsize=(6.4, height), dpi=100, layout="constrained", facecolor="white")
        ax = figure.add_subplot(facecolor="white")
    elif not isinstance(ax, Axes) or ax.get_figure() is None:
        raise InputError(f"ax must be Matplotlib axes of a figure or None, got {ax!r}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(labelsize=SMALL, labelcolor=INK, color=MUTED)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: number(value))
    ax.set_axisbelow(True)
    return ax


def heading(ax: Axes, title: str, notes: Sequence[str] = (), *, room: float = 0.0) -> None:
    """Write a title, lines in small print below it, and leave ``room`` points below those.

    Lines break where the figure ends; the labels of the y axis must be final.
    """
    line = SMALL * 1.35
    fit = max(int(right_of_names(ax) / CHARACTER), _SHORTEST)
    lines = [part for note in notes for part in _wrapped(note, min(fit, _NOTE_WIDTH))]
    ax.set_title(
        "\n".join(_wrapped(title, min(int(fit * SMALL / TITLE), _TITLE_WIDTH))),
        loc="left",
        fontsize=TITLE,
        color=INK,
        pad=room + 8 + line * len(lines),
        parse_math=False,
    )
    for i, text in enumerate(reversed(lines)):
        note = ax.annotate(
            text,
            xy=(0, 1),
            xycoords="axes fraction",
            xytext=(0, room + 5 + line * i),
            textcoords="offset points",
            fontsize=SMALL,
            color=MUTED,
            parse_math=False,
        )
        note.set_in_layout(False)  # the title's distance leaves the room


def keys(ax: Axes, groups: Sequence[Sequence[Artist]]) -> float:
    """Say what marks mean, on lines above the axes, and return the points that those take."""
    from matplotlib.transforms import ScaledTranslation

    width = right_of_names(ax)
    lines = [line for group in groups for line in _key_lines(group, width)]
    for i, handles in enumerate(reversed(lines)):
        up = ScaledTranslation(0, (3 + _KEY_LINE * i) / 72, _figure(ax).dpi_scale_trans)
        legend = ax.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            bbox_transform=ax.transAxes + up,
            borderaxespad=0.0,
            borderpad=0.0,
            labelcolor=INK,
            ncols=len(handles),
            fontsize=SMALL,
            frameon=False,
            handlelength=1.4,
            handletextpad=0.5,
            columnspacing=1.2,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        legend.set_in_layout(False)  # the title's distance leaves the room
        if i < len(lines) - 1:
            ax.add_artist(legend)  # the next legend would replace it
    return _KEY_LINE * len(lines)


def right_of_names(ax: Axes) -> float:
    """Return about how many points there are from the left edge of the axes to that of the figure.

    The labels of the y axis must be final.
    """
    figure = _figure(ax)
    texts = [label.get_text() for label in ax.get_yticklabels()]
    longest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    return 72 * float(figure.bbox.width) / figure.dpi - CHARACTER * longest - _MARGINS


def length_of(axis: Axis, beside: float | None = None) -> float:
    """Return about how many points a horizontal axis will take, before the figure is laid out.

    ``beside`` are those that columns at its right take; without it axes are taken to have half of
    the figure.
    """
    if beside is not None:
        return max(right_of_names(axis.axes) - beside, _MARGINS)
    figure = _figure(axis.axes)
    return 36 * float(figure.bbox.width) / figure.dpi


def _key_lines(handles: Sequence[Artist], width: float) -> list[list[Artist]]:
    """Break keys into lines of so many points at most."""
    lines: list[list[Artist]] = []
    used = math.inf
    for handle in handles:
        takes = _KEY + CHARACTER * len(str(handle.get_label()))
        if used + takes > width:
            lines.append([])
            used = 0.0
        lines[-1].append(handle)
        used += takes
    return lines


def name_axes(ax: Axes, x: str = "", y: str = "") -> None:
    """Write what the axes are, and give labels at ticks room; the limits must be final."""
    _thin_out(ax.xaxis)
    ax.set_xlabel(x, fontsize=TEXT, color=INK, parse_math=False)
    ax.set_ylabel(y, fontsize=TEXT, color=INK, parse_math=False)


def _thin_out(axis: Axis) -> None:
    """Have no more ticks on a linear axis than labels of numbers as long as these have room for."""
    from matplotlib.ticker import AutoLocator, MaxNLocator

    if not isinstance(axis.get_major_locator(), AutoLocator):
        return  # chosen, or logarithmic
    ticks = axis.get_majorticklocs()
    fit = int(length_of(axis) / (CHARACTER * (2 + max(len(number(tick)) for tick in ticks))))
    if len(ticks) > fit + 2:  # the outermost lie beyond the limits
        axis.set_major_locator(MaxNLocator(max(fit, 2), steps=[1, 2, 5, 10]))


def _wrapped(text: str, width: int) -> list[str]:
    from textwrap import wrap

    held = _ONE_LINE.sub(_HELD, text)
    return [line.replace(_HELD, " ") for line in wrap(held, width)] or [""]


def names_on_y(ax: Axes, names: Sequence[str], *, above: float = 0.0) -> None:
    """Name rows 0, 1, … from the top, with room for a heading of the columns."""
    ax.set_yticks(range(len(names)), fitting(names))
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.tick_params(axis="y", length=0, pad=7)
    ax.set_ylim(len(names) - 0.4, -0.6 - above)


def beside(ax: Axes, y: float, text: str, *, points: float = 6.0, colour: str = INK) -> None:
    """Write to the right of the axes, at a height in data units."""
    ax.annotate(
        text,
        xy=(1, y),
        xycoords=("axes fraction", "data"),
        xytext=(points, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=legible(colour),
        annotation_clip=False,
        parse_math=False,
    )


def side_labels(
    ax: Axes, x: Sequence[float], y: Sequence[float], texts: Sequence[str], tints: Sequence[str]
) -> None:
    """Name lines at the right of the axes, moved apart where they would overlap.

    The limits of the axes must be final.
    """
    ends = _in_axes(ax, x, y)
    heights = apart(ax, x, y)
    for end, height, text, tint in zip(ends, heights, texts, tints, strict=True):
        ax.annotate(
            text,
            xy=(float(end[0]), float(end[1])),
            xycoords="axes fraction",
            xytext=(1.03, float(height)),
            textcoords="axes fraction",
            va="center",
            fontsize=SMALL,
            color=legible(tint),
            arrowprops={
                "arrowstyle": "-",
                "color": tint,
                "lw": 0.6,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
            parse_math=False,
        )


def apart(ax: Axes, x: Sequence[float], y: Sequence[float]) -> Floats:
    """Return heights (0 to 1 in the axes) for labels at these points, moved apart.

    The limits of the axes must be final.
    """
    return spread(_in_axes(ax, x, y)[:, 1], _line_height(ax, SMALL), low=0.0, high=1.0)


def _in_axes(ax: Axes, x: Sequence[float], y: Sequence[float]) -> Floats:
    points = np.column_stack([np.asarray(x, float), np.asarray(y, float)])
    return np.asarray((ax.transScale + ax.transLimits).transform(points), float)


def _line_height(ax: Axes, size: float) -> float:
    """Return the height of a line of text as a share of the axes, generously."""
    figure = _figure(ax)
    inches = ax.get_position().height * figure.bbox.height / figure.dpi
    return 1.6 * size / (72 * inches)


def _figure(ax: Axes) -> Figure | SubFigure:
    figure = ax.get_figure()
    assert figure is not None  # axes without a figure were refused
    return figure


def spread(wanted: Floats, gap: float, *, low: float, high: float) -> Floats:
    """Return the positions nearest to those wanted that lie at least a gap apart.

    Least squares: positions minus their rank times the gap must not decrease (isotonic
    regression, pool adjacent violators). Where there is no room for all, the gap shrinks.

    Examples
    --------
    >>> spread(np.array([0.5, 0.5, 0.9]), 0.2, low=0.0, high=1.0).round(3).tolist()
    [0.4, 0.6, 0.9]
    """
    n = len(wanted)
    gap = min(gap, (high - low) / max(n - 1, 1))
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, int]] = []
    for value in wanted[order] - gap * np.arange(n):
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            before, members = pools.pop()
            mean = (mean * size + before * members) / (size + members)
            size += members
        pools.append((mean, size))
    means = np.repeat([mean for mean, _ in pools], [size for _, size in pools])
    out = np.empty(n)
    out[order] = np.clip(means, low, high - gap * (n - 1)) + gap * np.arange(n)
    return out


def colours(assumptions: Sequence[str]) -> list[str]:
    """Return a colour per assumption: its own if it is a known one, else one left over."""
    return [_pick(name, assumptions, _CYCLE, MUTED, 0) for name in assumptions]


def markers(assumptions: Sequence[str]) -> list[str]:
    """Return a marker per assumption, so that colour is not all that tells them apart."""
    return [_pick(name, assumptions, _MARKERS, "p", 1) for name in assumptions]


def _pick(
    name: str, names: Sequence[str], choice: Sequence[str], of_bounds: str, later: int
) -> str:
    """Choose for a name; the n-th time round, n times ``later`` places on."""
    if name == _OF_BOUNDS:
        return of_bounds
    if name in _KNOWN:
        return choice[_KNOWN.index(name)]
    free = [i for i, known in enumerate(_KNOWN) if known not in names] or list(range(len(choice)))
    rank = [other for other in names if other not in (*_KNOWN, _OF_BOUNDS)].index(name)
    times, place = divmod(rank, len(free))
    return choice[(free[place] + later * times) % len(choice)]


# Tints, and which of them can be read on which (contrast after WCAG 2.1).


def interval(colour: str) -> str:
    """Return the tint of an interval behind a mark of this colour: paler, but not too pale to see.

    Examples
    --------
    >>> interval("#0072b2")
    '#4095c5'
    """
    return blend(colour, 0.75)


def on(ground: str) -> str:
    """Return black or white, whichever can be read better on a ground.

    Examples
    --------
    >>> on("#0072b2"), on("#80b9d9")
    ('#ffffff', '#000000')
    """
    dark = _luminance(np.array([int(ground[i : i + 2], 16) for i in (1, 3, 5)]) / 255)
    return _ON_TINTS[0] if (dark + 0.05) / 0.05 >= 1.05 / (dark + 0.05) else _ON_TINTS[1]


def _luminance(parts: Floats) -> float:
    """Return the relative luminance (WCAG 2.1) of red, green and blue, each from 0 to 1."""
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def legible(colour: str) -> str:
    """Return a colour in which text can be read on white: itself, or as much darker as it takes.

    Its contrast is (1 + 0.05) / (L + 0.05), L its relative luminance (WCAG 2.1), and at least 4.5.

    Examples
    --------
    >>> legible("#0072b2"), legible("#d55e00")
    ('#0072b2', '#c25600')
    """
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    for share in np.linspace(1.0, 0.0, 101):
        rounded = np.floor(255 * share * parts + 0.5) / 255
        if 1.05 / (_luminance(rounded) + 0.05) >= _OF_TEXT:
            break
    return "#" + "".join(f"{round(255 * part):02x}" for part in rounded)


def blend(colour: str, share: float) -> str:
    """Return a colour mixed with white, opaque: 1 is the colour, 0 is white.

    Examples
    --------
    >>> blend("#0072b2", 0.5)
    '#80b9d9'
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{math.floor(255 - share * (255 - part) + 0.5):02x}" for part in parts)
