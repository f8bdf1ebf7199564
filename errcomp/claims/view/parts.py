"""Common parts of the figures of pairs: axes of errors, styles of groups, hovering."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.metrics import ape
from errcomp.report.drawing import axes
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell
from errcomp.results import format_number
from errcomp.tables import RESERVED_KEYS, Pairs
from errcomp.tables.columns import with_roles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: More points than this are drawn as one image, and only the worst have a hover text.
DENSE = 2000
_WORST = 50
#: Groups with their own colour.
_MOST_LOOKS = 7
#: The axis is logarithmic if the largest error is more than this multiple of the median.
_WIDE = 12.0
#: Errors smaller than the median by this factor are drawn at its lower edge.
_AS_GOOD_AS_NONE = 100.0
#: Keys that say how a pair was made, not which configuration it is.
_NOT_A_NAME = ("level", "date")


def checked(pairs: Any) -> Pairs:
    """Return the pairs as a table with at least one pair.

    Raises
    ------
    InputError
        No pairs, or not a table of pairs.
    """
    table = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    if not table.n:
        raise InputError(
            f"{table.source + ': ' if table.source else ''}no pairs to draw. Give at least one "
            "prediction with its measurement."
        )
    return table


def errors_of(pairs: Pairs) -> Floats:
    """Return the absolute percentage errors, fractions, shape (n,)."""
    return ape(predicted=pairs.predicted, measured=pairs.measured)


def of_table(pairs: Pairs) -> str:
    """Say whose pairs these are, if they are of one tool: ``" of neusight"``."""
    return f" of {_text.shorten(pairs.tools[0])}" if len(pairs.tools) == 1 else ""


def value_text(value: Any) -> str:
    """Write the value of a key.

    Examples
    --------
    >>> value_text("H100"), value_text(None), value_text(8.0)
    ('H100', '(none)', '8')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "(none)"
    return f"{value:g}" if isinstance(value, float) else str(value)


# Styles of groups --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """Pairs of one group and how they are drawn; ``name`` is empty if there is only one group."""

    name: str
    index: Ints
    colour: str
    marker: str


def looks(pairs: Pairs) -> tuple[str, list[Look]]:
    """Choose the key that distinguishes pairs (tool, else device), and a style for each value.

    Values with the most pairs come first; the eighth and further values share one style.
    """
    usual = with_roles(("tool", "device"), pairs.keys)
    key = next((k for k in usual if _values(pairs, k) > 1), "")
    if not key:
        return "", [Look("", np.arange(pairs.n), _style.BLUE, "o")]
    groups = sorted(pairs.groups(key), key=lambda group: -len(group.index))
    most = _MOST_LOOKS if len(groups) > _MOST_LOOKS + 1 else len(groups)
    own, rest = groups[:_MOST_LOOKS], groups[_MOST_LOOKS:]
    names = [value_text(group.key[key]) for group in own]
    tints, marks = _style.colours(names), _style.markers(names)
    drawn = [
        Look(name, group.index, tint, mark)
        for name, group, tint, mark in zip(names, own, tints, marks, strict=True)
    ]
    if rest:
        name = f"{len(rest)} others" if most < len(groups) else value_text(rest[0].key[key])
        index = np.concatenate([group.index for group in rest])
        drawn.append(Look(name, index, _style.MUTED, "x"))
    return key, drawn


def _values(pairs: Pairs, key: str) -> int:
    return len({str(value) for value in pairs.column(key)}) if key in pairs.keys else 0


def dots(
    ax: Axes,
    x: Floats,
    y: Floats,
    look: Look,
    *,
    dense: bool,
    zorder: float = 4,
    label: str | None = None,
) -> None:
    """Draw pairs as points: small, pale and as one image where there are very many."""
    face = look.colour if look.marker == "x" else _style.blend(look.colour, 0.55)
    ax.plot(
        x, y, ls="", marker=look.marker, ms=2.5 if dense else 4.5, mew=0.3 if dense else 0.8,
        color=look.colour, alpha=0.35 if dense else 0.9, rasterized=dense, zorder=zorder, mfc=face,
        label=label,
    )  # fmt: skip


# Text of a pair ----------------------------------------------------------------------------------


def named(pairs: Pairs, index: Ints) -> list[str]:
    """Name pairs by the keys that distinguish them: ``"H100, inference, batch 8"``."""
    known = [k for k in RESERVED_KEYS if k in pairs.keys and k not in _NOT_A_NAME]
    keys = [k for k in known if _values(pairs, k) > 1] or known
    if not keys:
        return [f"row {row}" for row in pairs.rows[index]]
    columns = [(key, pairs.column(key)[index]) for key in keys]
    return [", ".join(_part(key, column[i]) for key, column in columns) for i in range(len(index))]


def _part(key: str, value: Any) -> str:
    text = _text.shorten(value_text(value))
    return text if isinstance(value, str) else f"{key} {text}"


def tell_pairs(ax: Axes, pairs: Pairs, index: Ints, x: Floats, y: Floats) -> None:
    """Add a hover text to each of these pairs, or only to the worst if there are very many."""
    errors = errors_of(pairs)[index]
    if pairs.n > DENSE:
        worst = np.argsort(-errors, kind="stable")[:_WORST]
        index, x, y = index[worst], x[worst], y[worst]
    unit = f" {pairs.unit}" if pairs.unit else ""
    texts = []
    for name, row in zip(named(pairs, index), index.tolist(), strict=True):
        predicted, measured = float(pairs.predicted[row]), float(pairs.measured[row])
        off = _text.signed(predicted / measured - 1, _text.exact)
        texts.append(
            f"{name}\npredicted {format_number(predicted)}{unit}, measured "
            f"{format_number(measured)}{unit}, {off}"
        )
    tell(ax, x, y, texts)


# Axes --------------------------------------------------------------------------------------------


def error_scale(ax: Axes, percent: Floats, *, least: float = 0.0) -> tuple[float, float]:
    """Scale the x axis for errors in per cent, logarithmic if needed; return its limits.

    The axis extends at least to ``least``. Draw errors below the lower limit at the limit.
    """
    positive = percent[percent > 0]
    high = max(float(percent.max()), least) or 1.0
    middle = float(np.median(positive)) if len(positive) else high
    if high <= _WIDE * middle:
        ax.set_xlim(0.0, 1.04 * high)
        ax.xaxis.set_major_formatter(lambda value, _: f"{_text.number(value)} %")
    else:
        low = max(float(positive.min()) / 1.15, middle / _AS_GOOD_AS_NONE)
        ax.set_xscale("log")
        ax.set_xlim(low, 1.15 * high)
        axes.log_ticks(ax.xaxis, " %", apart=0.11)
    ax.grid(axis="x", color=_style.GRID)
    low, high = ax.get_xlim()
    return low, high
