"""The style of all figures: colours, sizes, names that fit and labels that do not overlap."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from io import BytesIO
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


#: Smallest contrast of text with its background (WCAG 2.1, 1.4.3).
_OF_TEXT = 4.5
#: Colours of text on a tint; the first is preferred.
_ON_TINTS = ("#000000", "#ffffff")
# Okabe and Ito (2008), distinguishable with any colour vision. Their light orange and sky blue have
# a contrast of 2.3 with white, but a mark needs 3 (WCAG 2.1, 1.4.11). Brown and the indigo of Tol
# (2021) replace them; these are also the darkest colours in greyscale print.
BLUE, ORANGE = "#0072B2", "#D55E00"
INK, MUTED, FAINT, GRID = "#222222", "#6b6b6b", "#8f8f8f", "#e2e2e2"
_CYCLE = (BLUE, ORANGE, "#009E73", "#CC79A7", "#6F4E00", "#332288", "#000000")
_MARKERS = "osD^vP*"
#: Each assumption has the same colour and marker in every figure.
_KNOWN = ("estimated", "independent", "classes", "comonotonic", "repeats", "devices", "matrix")
_OF_BOUNDS = "unknown"
TITLE, TEXT, SMALL = 10.0, 8.5, 8.0
#: Characters per line of a title and of a note in a figure 640 pixels wide, and least characters
#: per line.
_TITLE_WIDTH, _NOTE_WIDTH, _SHORTEST = 58, 74, 30
#: Spaces at which text must not wrap: between a number and the next word, and around a slash.
_ONE_LINE, _HELD = re.compile(r"(?<=\d) (?=\S)| (?=/ )|(?<= /) "), "\x1f"
#: Width of a character of small print, in points.
CHARACTER = 4.45
#: Height of a line of the legend, and width of a legend entry without its text, in points.
_KEY_LINE, _KEY = 14.0, 27.0
#: Margins left of the row labels and right of the last legend entry, in points.
_MARGINS = 18.0


#: Dots per inch of a picture in a notebook.
_SCREEN = 120


def canvas(ax: Axes | None, height: float) -> Axes:
    """Return the given axes, or new axes 640 pixels wide, without global state (pyplot).

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    InputError
        `ax` is not Matplotlib axes.
    """
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "figures", "drawing figures") from error
    if ax is None:
        figure = Figure(figsize=(6.4, height), dpi=100, layout="constrained", facecolor="white")
        ax = figure.add_subplot(facecolor="white")
        # IPython asks each object for its picture; axes have none of their own.
        ax._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    elif not isinstance(ax, Axes) or ax.get_figure() is None:
        raise InputError(f"ax must be Matplotlib axes of a figure or None, got {ax!r}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(labelsize=SMALL, labelcolor=INK, color=MUTED)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: number(value))
    ax.set_axisbelow(True)
    return ax


def _png(figure: Figure) -> bytes:
    """Return the picture that a notebook shows."""
    target = BytesIO()
    figure.savefig(target, format="png", dpi=_SCREEN)
    return target.getvalue()


def heading(ax: Axes, title: str, notes: Sequence[str] = (), *, room: float = 0.0) -> None:
    """Write a title with notes in small print below it, and leave ``room`` points below these.

    Lines wrap at the edge of the figure; the labels of the y axis must be final.
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
        note.set_in_layout(False)  # the padding of the title makes room


def keys(ax: Axes, groups: Sequence[Sequence[Artist]]) -> float:
    """Write the legend on lines above the axes, and return its height in points."""
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
        legend.set_in_layout(False)  # the padding of the title makes room
        if i < len(lines) - 1:
            ax.add_artist(legend)  # the next legend would replace it
    return _KEY_LINE * len(lines)


def right_of_names(ax: Axes) -> float:
    """Return the approximate width from the left edge of the axes to the end of the figure.

    In points; the labels of the y axis must be final.
    """
    figure = _figure(ax)
    texts = [label.get_text() for label in ax.get_yticklabels()]
    longest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    return 72 * float(figure.bbox.width) / figure.dpi - CHARACTER * longest - _MARGINS


def length_of(axis: Axis, beside: float | None = None) -> float:
    """Return the approximate length of a horizontal axis in points, before the figure is laid out.

    ``beside`` is the width of the columns to the right of the axes. Without it, the axes are
    assumed to fill half of the figure.
    """
    if beside is not None:
        return max(right_of_names(axis.axes) - beside, _MARGINS)
    figure = _figure(axis.axes)
    return 36 * float(figure.bbox.width) / figure.dpi


def _key_lines(handles: Sequence[Artist], width: float) -> list[list[Artist]]:
    """Split legend entries into lines of at most this width in points."""
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
    """Write the axis labels, and remove ticks whose labels overlap; the limits must be final."""
    _thin_out(ax.xaxis)
    ax.set_xlabel(x, fontsize=TEXT, color=INK, parse_math=False)
    ax.set_ylabel(y, fontsize=TEXT, color=INK, parse_math=False)


def _thin_out(axis: Axis) -> None:
    """Limit the number of ticks of a linear axis so that their labels fit."""
    from matplotlib.ticker import AutoLocator, MaxNLocator

    if not isinstance(axis.get_major_locator(), AutoLocator):
        return  # ticks were set, or the axis is logarithmic
    ticks = axis.get_majorticklocs()
    fit = int(length_of(axis) / (CHARACTER * (2 + max(len(number(tick)) for tick in ticks))))
    if len(ticks) > fit + 2:  # the first and the last lie beyond the limits
        axis.set_major_locator(MaxNLocator(max(fit, 2), steps=[1, 2, 5, 10]))


def _wrapped(text: str, width: int) -> list[str]:
    from textwrap import wrap

    held = _ONE_LINE.sub(_HELD, text)
    return [line.replace(_HELD, " ") for line in wrap(held, width)] or [""]


def names_on_y(ax: Axes, names: Sequence[str], *, above: float = 0.0) -> None:
    """Label rows 0, 1, … from the top, with room above for a heading of the columns."""
    ax.set_yticks(range(len(names)), fitting(names))
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.tick_params(axis="y", length=0, pad=7)
    ax.set_ylim(len(names) - 0.4, -0.6 - above)


def beside(ax: Axes, y: float, text: str, *, points: float = 6.0, colour: str = INK) -> None:
    """Write text to the right of the axes, at a height in data units."""
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
    """Label lines at the right of the axes; move labels apart that would overlap.

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
    """Return heights (0 to 1 in the axes) of labels at these points, without overlap.

    The limits of the axes must be final.
    """
    return spread(_in_axes(ax, x, y)[:, 1], _line_height(ax, SMALL), low=0.0, high=1.0)


def _in_axes(ax: Axes, x: Sequence[float], y: Sequence[float]) -> Floats:
    points = np.column_stack([np.asarray(x, float), np.asarray(y, float)])
    return np.asarray((ax.transScale + ax.transLimits).transform(points), float)


def _line_height(ax: Axes, size: float) -> float:
    """Return the height of a line of text, with some space, as a share of the axes."""
    figure = _figure(ax)
    inches = ax.get_position().height * figure.bbox.height / figure.dpi
    return 1.6 * size / (72 * inches)


def _figure(ax: Axes) -> Figure | SubFigure:
    figure = ax.get_figure()
    assert figure is not None  # axes without a figure were refused
    return figure


def spread(wanted: Floats, gap: float, *, low: float, high: float) -> Floats:
    """Return the positions nearest to the wanted ones that are at least a gap apart.

    Least squares: positions minus rank times gap must not decrease (isotonic regression, pool
    adjacent violators). If there is not enough room, the gap shrinks.

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
    """Return a colour per assumption: a fixed colour if it is known, else an unused one."""
    return [_pick(name, assumptions, _CYCLE, MUTED, 0) for name in assumptions]


def markers(assumptions: Sequence[str]) -> list[str]:
    """Return a marker per assumption, so that assumptions differ without colour."""
    return [_pick(name, assumptions, _MARKERS, "p", 1) for name in assumptions]


def _pick(
    name: str, names: Sequence[str], choice: Sequence[str], of_bounds: str, later: int
) -> str:
    """Choose a colour or marker for a name; each reuse of the list shifts by ``later`` places."""
    if name == _OF_BOUNDS:
        return of_bounds
    if name in _KNOWN:
        return choice[_KNOWN.index(name)]
    free = [i for i, known in enumerate(_KNOWN) if known not in names] or list(range(len(choice)))
    rank = [other for other in names if other not in (*_KNOWN, _OF_BOUNDS)].index(name)
    times, place = divmod(rank, len(free))
    return choice[(free[place] + later * times) % len(choice)]


# Tints, and text colours with enough contrast (WCAG 2.1).


def interval(colour: str) -> str:
    """Return the tint of an interval behind a mark of this colour: paler, but still visible.

    Examples
    --------
    >>> interval("#0072b2")
    '#4095c5'
    """
    return blend(colour, 0.75)


def on(ground: str) -> str:
    """Return black or white, whichever has more contrast with a background.

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
    """Return a colour for text on white: the same colour, darkened if its contrast is too low.

    The contrast (1 + 0.05) / (L + 0.05), with relative luminance L, is at least 4.5 (WCAG 2.1).

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
    """Return a colour mixed with white: a share of 1 is the colour, 0 is white.

    Examples
    --------
    >>> blend("#0072b2", 0.5)
    '#80b9d9'
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{math.floor(255 - share * (255 - part) + 0.5):02x}" for part in parts)
