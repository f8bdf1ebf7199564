"""Picture of how many pairs err by how much: the empirical distribution of the errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.metrics import ape_quantile, median_ape, share_within
from errcomp.report import _audit_parts as parts
from errcomp.report import _style, _text
from errcomp.report._audit_scatter import fractions
from errcomp.report._hover import tell
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.tables import Pairs

__all__ = ["ecdf"]

#: Tools with a look of their own, and thresholds told on one line.
_MOST_LINES, _PER_LINE = 7, 3
#: Fewer pairs have no 90th percentile, and a band that says nothing.
_FEWEST_FOR_P90, _FEWEST_FOR_BAND = 10, 5
#: Confidence of the band, and steps of a line that is drawn.
_LEVEL, _MOST_STEPS = 0.95, 500
#: Lines in print without colour: solid, dashed, dotted, both; and their marks as letters.
_DASHES = ("-", (0, (5, 1.2)), (0, (1.2, 0.8)), (0, (5, 1.2, 1.2, 1.2)))
_SIGNS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚", "*": "★"}
#: Points from line to line beside the axes.
_SPACING = 11.5


class _Line(NamedTuple):
    name: str
    errors: NDArray[np.float64]  # percent, ascending
    median: float
    p90: float
    shares: tuple[float, ...]


def ecdf(
    pairs: Any, ax: Axes | None = None, thresholds: Sequence[float] = (0.05, 0.1, 0.2)
) -> Axes:
    r"""Draw the share of pairs whose absolute percentage error is at most so much.

    .. math:: \hat F(e) = \frac{1}{n} \#\{ i : |p_i - m_i| / m_i \le e \}

    One line per tool where there are several, those with the most pairs first; from the eighth on
    they are grey. A filled mark is the median, an open one the 90th percentile (P90 of ten pairs or
    more, interpolated as in `errcomp.summarize`). The share under each threshold is written out.
    Around a single line of five pairs or more lies the simultaneous 95 % band of Dvoretzky, Kiefer
    and Wolfowitz with Massart's constant,

    .. math:: \hat F(e) \pm \sqrt{\ln(2 / 0.05) \,/\, 2n}

    which holds the whole true distribution with at least that probability, whatever it is, if the
    pairs are independent. The axis is logarithmic where few errors are far larger than the others.

    Misleads where pairs of one model or device err alike: the band is then too narrow.

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
        There is no pair, or a threshold is no fraction above 0.
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
    rows = _texts(lines, marks, tints, shapes)
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
        _draw(ax, line, look, (low, high))
    if _has_band(lines):
        _band(ax, lines[0])
    _beside(ax, rows)
    ax.grid(axis="y", color=_style.GRID)
    _style.name_axes(ax, x="absolute error (% of measured)", y="pairs that err by no more")
    _style.heading(
        ax,
        f"How large are the errors{parts.of_table(table)}? n={_text.count(table.n, 'pair')}",
        _notes(lines, low, ax.get_xscale() == "log"),
        room=12 if marks else 2,
    )
    return ax


def _lines(table: Pairs, marks: Sequence[float]) -> list[_Line]:
    groups = table.groups("tool") if len(table.tools) > 1 else table.groups(())
    found = []
    for group in sorted(groups, key=lambda group: -len(group.index)):
        predicted, measured = table.predicted[group.index], table.measured[group.index]
        shares = (
            share_within(predicted=predicted, measured=measured, threshold=mark) for mark in marks
        )
        found.append(
            _Line(
                parts.value_text(group.key["tool"]) if group.key else "",
                np.sort(100 * parts.errors_of(table)[group.index]),
                median_ape(predicted=predicted, measured=measured),
                ape_quantile(predicted=predicted, measured=measured, q=0.9),
                tuple(shares),
            )
        )
    return found


def _thresholds(ax: Axes, marks: Sequence[float]) -> None:
    """Draw thresholds, and name them above the axes where there is room."""
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


def _draw(ax: Axes, line: _Line, look: tuple[str, str, Any], ends: tuple[float, float]) -> None:
    """Draw one line from the left edge to the right, with its median and P90."""
    tint, shape, dashes = look
    n = len(line.errors)
    # Of very many steps some: each at its own height, so that the line stays exact there.
    kept = np.unique(np.linspace(0, n - 1, min(n, _MOST_STEPS)).round().astype(int))
    x = np.concatenate([[ends[0]], np.maximum(line.errors[kept], ends[0]), [ends[1]]])
    y = 100 * np.concatenate([[0.0], (kept + 1) / n, [1.0]])
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
    (drawn,) = (one for one in ax.lines if one.get_label() == "pairs")
    x, y = np.asarray(drawn.get_xdata(), float), np.asarray(drawn.get_ydata(), float)
    ax.fill_between(x, np.maximum(y - half, 0), np.minimum(y + half, 100), step="post", lw=0.5,
                    edgecolor=_style.BLUE, facecolor=_style.blend(_style.BLUE, 0.2),
                    zorder=0.5)  # fmt: skip


def _texts(
    lines: Sequence[_Line], marks: Sequence[float], tints: Sequence[str], shapes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return what is written of each line, with colours; empty texts part them."""
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
        rows.append((f"thin: {_text.count(len(lines) - len(own), 'other tool')}", _style.MUTED))
    return rows


def _beside(ax: Axes, rows: Sequence[tuple[str, str]]) -> None:
    """Write lines to the right of the axes, from the top."""
    for i, (text, tint) in enumerate(rows):
        if text:
            ax.annotate(
                text, xy=(1, 1), xycoords="axes fraction", xytext=(10, -_SPACING * i),
                textcoords="offset points", va="top", fontsize=_style.SMALL,
                color=_style.legible(tint),
                annotation_clip=False, parse_math=False,
            )  # fmt: skip


def _notes(lines: Sequence[_Line], low: float, logarithmic: bool) -> list[str]:
    some = any(len(line.errors) >= _FEWEST_FOR_P90 for line in lines)
    notes = ["filled mark: median" + ("; open: P90 (9 of 10 pairs err less)" if some else "")]
    if _has_band(lines):
        notes.append("shaded: 95 % band of the whole line (DKW), if pairs are independent")
    nothing = sum(int((line.errors < low).sum()) for line in lines)
    if logarithmic and nothing:
        notes.append(
            f"{_text.count(nothing, 'pair')} with errors below {low:.2g} % at the left edge"
        )
    return notes
