"""Figures of pairs: predicted against measured, the distribution of errors, errors by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.claims.view import parts
from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics import ape_quantile, median_ape, share_within
from errcomp.report.drawing import axes
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell
from errcomp.results import format_fraction
from errcomp.tables import check_keys

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.tables import Group, Pairs

# Every pair: predicted against measured -----------------------------------------------------------


def predicted_against_measured(
    pairs: Any, ax: Axes | None = None, within: Sequence[float] = (0.1, 0.25)
) -> Axes:
    r"""Draw every prediction against its measurement, on logarithmic scales.

    On the dashed line a prediction is exact. A band holds the pairs whose absolute percentage
    error is at most w:

    .. math:: (1 - w)\, m \le p \le (1 + w)\, m

    A band is relative to the measurement, so on the logarithmic scale it is wider below the line
    than above. The share of the pairs inside is written below the title. Tools have different
    colours and markers if there are several, else devices do: the seven with the most pairs have
    their own, all others share one. Predictions of 0 or less cannot be drawn and are counted.

    Misleads over many orders of magnitude, where an error of 20 % is hardly visible: `ecdf` and
    `by_group` show the errors themselves.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.
    within : sequence of float
        Half-widths of the bands, fractions above 0.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No pairs, or ``within`` holds a value that is not a fraction above 0.
    NotDefinedError
        No prediction is positive.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = predicted_against_measured({"predicted": [11.0, 70.0], "measured": [10.0, 100.0]})
    >>> axes.get_title(loc="left")
    'Predicted against measured, n=2 pairs'
    """
    table = parts.checked(pairs)
    widths = fractions("within", within)
    shown = table.predicted > 0
    if not shown.any():
        raise NotDefinedError(
            f"none of the predictions is positive ({_text.count(table.n, 'pair')}), but a "
            "logarithmic scale needs positive numbers. Draw the errors instead (ecdf, by_group)."
        )
    ax = _style.canvas(ax, 4.7)
    values = np.concatenate([table.predicted[shown], table.measured[shown]])
    room = max(1.15, float(values.max() / values.min()) ** 0.03)
    ends = (float(values.min()) / room, float(values.max()) * room)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_box_aspect(1)
    ax.set_anchor("W")
    axes.log_ticks(ax.xaxis, apart=0.12)
    axes.log_ticks(ax.yaxis, apart=0.08)
    _bands(ax, widths)
    dense = table.n > parts.DENSE
    key, looks = parts.looks(table)
    names = _text.fitting([look.name or "pairs" for look in looks], 20)
    by_size = sorted(zip(looks, names, strict=True), key=lambda one: -len(one[0].index))
    for look, name in by_size:  # small ones on top
        index = look.index[shown[look.index]]
        x, y = table.measured[index], table.predicted[index]
        parts.dots(ax, x, y, look, dense=dense, label=name)
    _legend(ax, table, key, looks, names)
    index = np.flatnonzero(shown)
    parts.tell_pairs(ax, table, index, table.measured[index], table.predicted[index])
    ax.grid(color=_style.GRID)
    _style.name_axes(ax, *(_text.with_unit(side, table.unit) for side in ("measured", "predicted")))
    _style.heading(
        ax,
        f"Predicted against measured{parts.of_table(table)}, n={_text.count(table.n, 'pair')}",
        _scatter_notes(table, widths, int((~shown).sum())),
        room=2,
    )
    return ax


def fractions(name: str, values: Sequence[float]) -> list[float]:
    """Return fractions above 0, ascending.

    Raises
    ------
    InputError
        A value is not a fraction above 0.
    """
    given = list(values) if isinstance(values, Sequence | np.ndarray) else [values]
    for value in given:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise InputError(
                f"{name} must contain only fractions above 0, got {value!r}. 0.1 stands for 10 %."
            )
    return sorted({float(value) for value in given})


def _bands(ax: Axes, widths: Sequence[float]) -> None:
    low, high = ax.get_xlim()
    for rank, width in enumerate(reversed(widths)):
        tint = _style.blend(_style.INK, 0.04 + 0.12 * (rank + 1) / len(widths))
        # A band of 100 % or more has no lower edge on this scale.
        below = max(1 - width, 1e-3 * low / high)
        ax.fill_between([low, high], [below * low, below * high],
                        [(1 + width) * low, (1 + width) * high], facecolor=tint, lw=0.5,
                        edgecolor=_style.FAINT, zorder=1 + 0.01 * rank)  # fmt: skip
    ax.plot([low, high], [low, high], color=_style.INK, lw=0.9, ls=(0, (4, 2)), zorder=3)


def _legend(
    ax: Axes, table: Pairs, key: str, looks: Sequence[parts.Look], names: Sequence[str]
) -> None:
    """List the groups beside the axes, each with its number of pairs and its error."""
    from matplotlib.lines import Line2D

    errors = parts.errors_of(table)
    handles = [
        Line2D([], [], ls="", marker=look.marker, ms=5.5, color=look.colour,
               mfc=_style.blend(look.colour, 0.55),
               label=f"{name}\nn={len(look.index):,}, MAPE "
                     f"{format_fraction(float(errors[look.index].mean()))}")
        for name, look in zip(names, looks, strict=True)
    ]  # fmt: skip
    legend = ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0,
        frameon=False, fontsize=_style.SMALL, labelcolor=_style.INK, handlelength=1.0,
        labelspacing=0.8, title=key or None, title_fontsize=_style.SMALL, alignment="left",
    )  # fmt: skip
    legend.get_title().set_color(_style.MUTED)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _scatter_notes(table: Pairs, widths: Sequence[float], missing: int) -> list[str]:
    told = [
        f"±{100 * width:g} %{'' if i else ' of measured'} ({_text.share(_share(table, width))}"
        f"{'' if i else ' of the pairs'})"
        for i, width in enumerate(widths)
    ]
    notes = [f"shaded: {', '.join(told)}"] if told else []
    if missing:
        notes.append(f"not drawn: {_text.count(missing, 'prediction')} of 0 or less")
    return notes


def _share(table: Pairs, width: float) -> float:
    return share_within(predicted=table.predicted, measured=table.measured, threshold=width)


# How many pairs err by how much -------------------------------------------------------------------

#: Tools with a style of their own, and thresholds written on one line.
_MOST_LINES, _PER_LINE = 7, 3
#: Fewest pairs for a 90th percentile, and for a band narrow enough to be useful.
_FEWEST_FOR_P90, _FEWEST_FOR_BAND = 10, 5
#: Confidence of the band, and steps of a line that is drawn.
_LEVEL, _MOST_STEPS = 0.95, 500
#: Lines in print without colour: solid, dashed, dotted, both; and their marks as letters.
_DASHES = ("-", (0, (5, 1.2)), (0, (1.2, 0.8)), (0, (5, 1.2, 1.2, 1.2)))
_SIGNS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚", "*": "★"}
#: Distance of lines of text beside the axes, in points.
_SPACING = 11.5


class _Line(NamedTuple):
    name: str
    errors: NDArray[np.float64]  # in per cent, ascending
    median: float
    p90: float
    shares: tuple[float, ...]


def ecdf(
    pairs: Any, ax: Axes | None = None, thresholds: Sequence[float] = (0.05, 0.1, 0.2)
) -> Axes:
    r"""Draw the cumulative distribution of absolute percentage errors.

    .. math:: \hat F(e) = \frac{1}{n} \#\{ i : |p_i - m_i| / m_i \le e \}

    Several tools have one line each, those with the most pairs first; the eighth and further lines
    are grey. A filled mark is the median. An open mark is the 90th percentile (for ten pairs or
    more, interpolated as in `errcomp.summarize`). The share under each threshold is written out. A
    single line of five pairs or more has the simultaneous 95 % band of Dvoretzky, Kiefer and
    Wolfowitz with Massart's constant:

    .. math:: \hat F(e) \pm \sqrt{\ln(2 / 0.05) \,/\, 2n}

    If the pairs are independent, it holds the whole true distribution with at least that
    probability, for any distribution. The axis is logarithmic where few errors are far larger than
    the others.

    Misleads where pairs of one model or device have correlated errors: the band is then too narrow.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.
    thresholds : sequence of float
        Errors whose shares are written out, fractions above 0.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No pairs, or a threshold is not a fraction above 0.
    MissingExtraError
        Matplotlib is not installed.

    References
    ----------
    Massart (1990), "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of
    Probability 18(3), 1269-1283, doi:10.1214/aop/1176990746.

    Examples
    --------
    >>> axes = ecdf({"predicted": [11.0, 70.0], "measured": [10.0, 100.0]}, thresholds=[0.2])
    >>> [text.get_text() for text in axes.texts if "within" in text.get_text()]
    ['within 20 %: 50 %']
    """
    table = parts.checked(pairs)
    marks = fractions("thresholds", thresholds)
    lines = _lines(table, marks)
    names = [line.name for line in lines[:_MOST_LINES]]
    tints, shapes = _style.colours(names), _style.markers(names)
    rows = _texts_beside(lines, marks, tints, shapes)
    ax = _style.canvas(ax, max(4.2, 1.3 + _SPACING * len(rows) / 72))
    every = np.concatenate([line.errors for line in lines])
    low, high = parts.error_scale(ax, every, least=1.1 * 100 * max(marks, default=0.0))
    ax.set_ylim(0, 103)
    ax.set_yticks(range(0, 101, 10), [f"{y} %" for y in range(0, 101, 10)])
    _thresholds(ax, marks)
    for height in (50, 90):
        ax.axhline(height, color=_style.FAINT, lw=0.6, zorder=1)
    for i, line in enumerate(lines):
        own = i < _MOST_LINES
        look = (tints[i], shapes[i], _DASHES[i % len(_DASHES)]) if own else (_style.MUTED, "", "-")
        _draw_line(ax, line, look, (low, high))
    if _has_band(lines):
        _band(ax, lines[0])
    _lines_beside(ax, rows)
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(ax, x="absolute error (% of measured)", y="pairs with at most this error")
    _style.heading(
        ax,
        f"How large are the errors{parts.of_table(table)}? n={_text.count(table.n, 'pair')}",
        _ecdf_notes(lines, low, ax.get_xscale() == "log"),
        room=12 if marks else 2,
    )
    return ax


def _lines(table: Pairs, marks: Sequence[float]) -> list[_Line]:
    groups = table.groups("tool") if len(table.tools) > 1 else table.groups(())
    lines = []
    for group in sorted(groups, key=lambda group: -len(group.index)):
        predicted, measured = table.predicted[group.index], table.measured[group.index]
        shares = (
            share_within(predicted=predicted, measured=measured, threshold=mark) for mark in marks
        )
        lines.append(
            _Line(
                parts.value_text(group.key["tool"]) if group.key else "",
                np.sort(100 * parts.errors_of(table)[group.index]),
                median_ape(predicted=predicted, measured=measured),
                ape_quantile(predicted=predicted, measured=measured, q=0.9),
                tuple(shares),
            )
        )
    return lines


def _thresholds(ax: Axes, marks: Sequence[float]) -> None:
    """Draw thresholds, and label them above the axes where they have room."""
    scale = ax.transScale + ax.transLimits
    room = 4.5 * _style.CHARACTER / _style.length_of(ax.xaxis)
    last = -1.0
    for mark in marks:
        ax.axvline(100 * mark, color=_style.MUTED, lw=0.8, ls=(0, (4, 2)), zorder=1.5)
        place = float(scale.transform((100 * mark, 50.0))[0])
        if 0 <= place <= 1 and place - last >= room:
            ax.annotate(
                f"{100 * mark:g} %",
                xy=(100 * mark, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=_style.SMALL,
                color=_style.MUTED,
            ).set_in_layout(False)  # the title's distance leaves the room
            last = place


def _draw_line(
    ax: Axes, line: _Line, look: tuple[str, str, Any], ends: tuple[float, float]
) -> None:
    """Draw one line from the left edge to the right, with its median and P90."""
    tint, shape, dashes = look
    n = len(line.errors)
    # Thin out very many steps; each one kept has its own height, so the line is exact there.
    steps = np.unique(np.linspace(0, n - 1, min(n, _MOST_STEPS)).round().astype(int))
    x = np.concatenate([[ends[0]], np.maximum(line.errors[steps], ends[0]), [ends[1]]])
    y = 100 * np.concatenate([[0.0], (steps + 1) / n, [1.0]])
    ax.plot(x, y, drawstyle="steps-post", color=tint, ls=dashes, lw=1.8 if shape else 0.7,
            zorder=4 if shape else 3, label=line.name or "pairs")  # fmt: skip
    head = f"{_text.shorten(line.name)}, n={n:,}" if line.name else f"n={_text.count(n, 'pair')}"
    spots = [(line.median, 50.0, "median"), (line.p90, 90.0, "P90")]
    spots = spots if n >= _FEWEST_FOR_P90 else spots[:1]
    if shape:
        for (value, height, _), face in zip(spots, (tint, "white"), strict=False):
            ax.plot([max(100 * value, ends[0])], [height], shape, color=tint, mfc=face, ms=6,
                    mew=1.4, zorder=5)  # fmt: skip
    tell(
        ax,
        [max(100 * value, ends[0]) for value, _, _ in spots],
        [height for _, height, _ in spots],
        [f"{head}\n{word} {format_fraction(value)}" for value, _, word in spots],
    )


def _has_band(lines: Sequence[_Line]) -> bool:
    return len(lines) == 1 and len(lines[0].errors) >= _FEWEST_FOR_BAND


def _band(ax: Axes, line: _Line) -> None:
    n = len(line.errors)
    half = 100 * math.sqrt(math.log(2 / (1 - _LEVEL)) / (2 * n))
    (drawn,) = (curve for curve in ax.lines if curve.get_label() == "pairs")
    x, y = np.asarray(drawn.get_xdata(), float), np.asarray(drawn.get_ydata(), float)
    ax.fill_between(x, np.maximum(y - half, 0), np.minimum(y + half, 100), step="post", lw=0.5,
                    edgecolor=_style.BLUE, facecolor=_style.blend(_style.BLUE, 0.2),
                    zorder=0.5)  # fmt: skip


def _texts_beside(
    lines: Sequence[_Line], marks: Sequence[float], tints: Sequence[str], shapes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the text about each line, with its colour; empty texts separate the lines."""
    own = lines[:_MOST_LINES]
    rows: list[tuple[str, str]] = []
    for line, name, tint, shape in zip(
        own, _text.fitting([line.name for line in own], 22), tints, shapes, strict=True
    ):
        n = f"n={len(line.errors):,}"
        rows.append((f"{_SIGNS[shape]} {name}, {n}", tint) if line.name else (n, _style.INK))
        middle, high = format_fraction(line.median), format_fraction(line.p90)
        tail = f", P90 {high}" if len(line.errors) >= _FEWEST_FOR_P90 else ""
        rows.append((f"median {middle}{tail}", _style.INK))
        for i in range(0, len(marks), _PER_LINE):
            limits = ", ".join(f"{100 * mark:g}" for mark in marks[i : i + _PER_LINE])
            shares = ", ".join(
                _text.share(share).removesuffix(" %") for share in line.shares[i : i + _PER_LINE]
            )
            rows.append((f"within {limits} %: {shares} %", _style.INK))
        rows.append(("", ""))
    if len(lines) > len(own):
        rows.append(
            (f"thin lines: {_text.count(len(lines) - len(own), 'other tool')}", _style.MUTED)
        )
    return rows


def _lines_beside(ax: Axes, rows: Sequence[tuple[str, str]]) -> None:
    """Write lines to the right of the axes, from the top."""
    for i, (text, tint) in enumerate(rows):
        if text:
            ax.annotate(
                text, xy=(1, 1), xycoords="axes fraction", xytext=(10, -_SPACING * i),
                textcoords="offset points", va="top", fontsize=_style.SMALL,
                color=_style.legible(tint),
                annotation_clip=False, parse_math=False,
            )  # fmt: skip


def _ecdf_notes(lines: Sequence[_Line], low: float, logarithmic: bool) -> list[str]:
    some = any(len(line.errors) >= _FEWEST_FOR_P90 for line in lines)
    notes = ["filled mark: median" + ("; open: P90 (9 of 10 errors are smaller)" if some else "")]
    if _has_band(lines):
        notes.append(
            "shaded: 95 % confidence band of the whole line (DKW), if pairs are independent"
        )
    nothing = sum(int((line.errors < low).sum()) for line in lines)
    if logarithmic and nothing:
        notes.append(
            f"at the left edge: {_text.count(nothing, 'pair')} with errors below {low:.2g} %"
        )
    return notes


# The errors of each group -------------------------------------------------------------------------

#: Most groups that are drawn (the others are counted), and fewest pairs for quartiles.
_MOST_GROUPS, _FEWEST_FOR_BOX = 30, 5
#: Step between consecutive points of a row, as a share of its height: neighbours are never close.
_GOLDEN = (5**0.5 - 1) / 2


def by_group(pairs: Any, by: str | Sequence[str] = ("device",), ax: Axes | None = None) -> Axes:
    r"""Draw the absolute percentage error of every pair, one row per group.

    Rows are sorted by their median, the largest first. The thick line of a row is the median. The
    box is the middle half of the errors, from the lower to the upper quartile (linear
    interpolation); groups of fewer than five pairs have no box. Each point is a pair; its height
    within the row means nothing and only keeps points apart. The axis is logarithmic where few
    errors are far larger than the others.

    Misleads where groups hold different workloads: compare like with like, by more keys or by
    selecting rows.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
    by : str or sequence of str
        Keys whose values make a group.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No pairs, or a key that does not exist (the message names the nearest).
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = by_group({"predicted": [11.0, 70.0, 9.0], "measured": [10.0, 100.0, 10.0],
    ...                  "device": ["A", "B", "A"]})
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['B  n=1', 'A  n=2']
    """
    table = parts.checked(pairs)
    keys = check_keys(by, ())
    groups = table.groups(keys)
    percent = 100 * parts.errors_of(table)
    medians = [float(np.median(percent[group.index])) for group in groups]
    order = np.argsort(-np.array(medians), kind="stable")
    shown = [groups[i] for i in order[:_MOST_GROUPS]]
    drawn = np.concatenate([group.index for group in shown])
    ax = _style.canvas(ax, 1.75 + 0.27 * max(len(shown), 2))
    low, _ = parts.error_scale(ax, percent[drawn])
    dense = table.n > parts.DENSE
    places = np.concatenate(
        [_draw_group(ax, y, percent[group.index], low, dense) for y, group in enumerate(shown)]
    )
    axes.label_rows(ax, [_group_name(group) for group in shown], [len(g.index) for g in shown],
                     above=0.6)  # fmt: skip
    texts = [format_fraction(medians[i] / 100) for i in order[:_MOST_GROUPS]]
    axes.columns_beside(ax, [("median", texts, [_style.INK] * len(texts))])
    parts.tell_pairs(ax, table, drawn, np.maximum(percent[drawn], low), places)
    _style.name_axes(ax, x="absolute error (% of measured)")
    notes = [_how_drawn(shown)]
    if len(groups) > len(shown):
        rest = [medians[i] for i in order[_MOST_GROUPS:]]
        notes.append(
            f"not drawn: {_text.count(len(rest), 'group')}, median error up to "
            f"{format_fraction(max(rest) / 100)}"
        )
    few = int((percent[drawn] < low).sum())
    if few:
        notes.append(f"at the left edge: {_text.count(few, 'pair')} with errors below {low:.2g} %")
    _style.heading(ax, _groups_title(table, keys, len(groups)), notes, room=2)
    return ax


def _group_name(group: Group) -> str:
    return ", ".join(parts.value_text(value) for value in group.key.values()) or "all"


def _groups_title(table: Pairs, keys: Sequence[str], groups: int) -> str:
    by = f" by {' and '.join(_text.shorten(key) for key in keys)}" if keys else ""
    told = f"n={_text.count(table.n, 'pair')}"
    many = f" in {_text.count(groups, 'group')}" if keys else ""
    return f"Errors{parts.of_table(table)}{by}, {told}{many}"


def _draw_group(
    ax: Axes, y: int, percent: NDArray[np.float64], low: float, dense: bool
) -> NDArray[np.float64]:
    """Draw one group and return the heights of its points."""
    rank = np.argsort(np.argsort(percent, kind="stable"), kind="stable")
    place = np.asarray(y + 0.56 * ((0.5 + rank * _GOLDEN) % 1 - 0.5), dtype=np.float64)
    look = parts.Look("", np.arange(len(percent)), _style.BLUE, "o")
    if len(percent) >= _FEWEST_FOR_BOX:
        first, third = np.maximum(np.quantile(percent, [0.25, 0.75]), low)
        face, edge, zorder = _style.blend(_style.BLUE, 0.2), _style.BLUE, 2.0
        if dense:  # seen through the points
            face, edge, zorder = "none", _style.INK, 3.5
        ax.barh([y], [third - first], left=first, height=0.7, zorder=zorder, linewidth=0.8,
                facecolor=face, edgecolor=edge)  # fmt: skip
    parts.dots(ax, np.maximum(percent, low), place, look, dense=dense, zorder=3)
    middle = max(float(np.median(percent)), low)
    ax.plot([middle] * 2, [y - 0.4, y + 0.4], color=_style.INK, lw=2.0, zorder=4,
            solid_capstyle="butt")  # fmt: skip
    return place


def _how_drawn(shown: Sequence[Group]) -> str:
    sizes = [len(group.index) for group in shown]
    if max(sizes) < _FEWEST_FOR_BOX:
        return "thick line: median; points: pairs"
    small = f" (if at least {_FEWEST_FOR_BOX} pairs)" if min(sizes) < _FEWEST_FOR_BOX else ""
    return f"thick line: median; box: middle half of the errors{small}; points: pairs"
