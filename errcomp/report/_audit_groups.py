"""Picture of the errors group by group: every pair, and the middle half of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.report import _audit_parts as parts
from errcomp.report import _style, _text
from errcomp.results import format_fraction
from errcomp.tables import check_keys

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.tables import Group, Pairs

__all__ = ["by_group"]

#: More groups than this are counted instead of drawn; quartiles of fewer pairs are not drawn.
_MOST_ROWS, _FEWEST = 30, 5
#: Places that follow each other within a row are this share of it apart: never close to each other.
_GOLDEN = (5**0.5 - 1) / 2


def by_group(pairs: Any, by: str | Sequence[str] = ("device",), ax: Axes | None = None) -> Axes:
    r"""Draw the absolute percentage error of every pair, one row per group.

    Rows are sorted by their median, the largest first. The thick line of a row is the median, the
    box the middle half of the errors, from the lower to the upper quartile (linear interpolation);
    groups of fewer than five pairs have no box. Points are pairs, spread over the height of the row
    only so that none hides another. The axis is logarithmic where few errors are far larger than
    the others.

    Misleads where groups are compared that hold different workloads: compare like with like, by
    more keys or by selecting rows.

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
        There is no pair, or a key does not exist (the message names the nearest).
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
    shown = [groups[i] for i in order[:_MOST_ROWS]]
    drawn = np.concatenate([group.index for group in shown])
    ax = _style.canvas(ax, 1.75 + 0.27 * max(len(shown), 2))
    low, _ = parts.error_scale(ax, percent[drawn])
    dense = table.n > parts.DENSE
    places = np.concatenate(
        [_row(ax, y, percent[group.index], low, dense) for y, group in enumerate(shown)]
    )
    parts.label_rows(ax, [_name(group) for group in shown], [len(g.index) for g in shown],
                     above=0.6)  # fmt: skip
    texts = [format_fraction(medians[i] / 100) for i in order[:_MOST_ROWS]]
    parts.columns_beside(ax, [("median", texts, [_style.INK] * len(texts))])
    parts.tell_pairs(ax, table, drawn, np.maximum(percent[drawn], low), places)
    _style.name_axes(ax, x="absolute error (% of measured)")
    notes = [_how(shown)]
    if len(groups) > len(shown):
        rest = [medians[i] for i in order[_MOST_ROWS:]]
        notes.append(
            f"{_text.count(len(rest), 'group')} not drawn, median up to "
            f"{format_fraction(max(rest) / 100)}"
        )
    few = int((percent[drawn] < low).sum())
    if few:
        notes.append(f"{_text.count(few, 'pair')} with errors below {low:.2g} % at the left edge")
    _style.heading(ax, _title(table, keys, len(groups)), notes, room=2)
    return ax


def _name(group: Group) -> str:
    return ", ".join(parts.value_text(value) for value in group.key.values()) or "all"


def _title(table: Pairs, keys: Sequence[str], groups: int) -> str:
    by = f" by {' and '.join(_text.shorten(key) for key in keys)}" if keys else ""
    told = f"n={_text.count(table.n, 'pair')}"
    many = f" in {_text.count(groups, 'group')}" if keys else ""
    return f"Errors{parts.of_table(table)}{by}, {told}{many}"


def _row(
    ax: Axes, y: int, percent: NDArray[np.float64], low: float, dense: bool
) -> NDArray[np.float64]:
    """Draw one group and return the heights of its points."""
    rank = np.argsort(np.argsort(percent, kind="stable"), kind="stable")
    place = np.asarray(y + 0.56 * ((0.5 + rank * _GOLDEN) % 1 - 0.5), dtype=np.float64)
    look = parts.Look("", np.arange(len(percent)), _style.BLUE, "o")
    if len(percent) >= _FEWEST:
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


def _how(shown: Sequence[Group]) -> str:
    sizes = [len(group.index) for group in shown]
    if max(sizes) < _FEWEST:
        return "thick line: median; points: pairs"
    small = f" (from {_FEWEST} pairs on)" if min(sizes) < _FEWEST else ""
    return f"thick line: median; box: middle half{small}; points: pairs"
