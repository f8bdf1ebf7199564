"""Map of predictions: tools against workloads, with the number of pairs and their error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.claims.view import parts
from errcomp.errors import InputError
from errcomp.report.drawing import axes
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.tables import Pairs

_MOST_ROWS, _MOST_COLUMNS = 30, 24
#: Up to how many columns a cell has room for its error with a unit, and for any number.
_ROOMY, _NARROW = 8, 14
#: Larger errors are written in thousands of per cent in narrow cells.
_THOUSANDS = 9.995
#: Characters of a column's name, turned and upright.
_TURNED, _NOT_TURNED = 18, 60
#: Errors at which the tint is palest and darkest, fractions.
_PALEST, _DARKEST = 0.01, 1.0

#: Cells without a prediction.
_EMPTY: dict[str, Any] = {"edgecolor": _style.FAINT, "hatch": "///", "lw": 0}


@dataclass(frozen=True, slots=True)
class _Cells:
    """Pairs, mean errors (NaN without pairs) and failures, by row and column.

    ``n_rows`` and ``n_columns`` count all pairs, also those that are not drawn.
    """

    rows: list[str]
    columns: list[str]
    n: NDArray[np.int64]
    mape: NDArray[np.float64]
    failed: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    n_columns: NDArray[np.int64]


def coverage_map(
    pairs: Any, rows: str = "tool", columns: str = "model", ax: Axes | None = None
) -> Axes:
    r"""Draw which tool predicts which workload, with how many pairs and how well.

    Each cell shows the mean absolute percentage error (MAPE) of its pairs and their number n. A
    darker cell has a larger error, on a logarithmic scale from 1 % to 100 %. A hatched cell has no
    prediction. Failed predictions (by the column ``status``) are counted in their cell, as ``2 ×``,
    where the table says which rows they are.

    Misleads where cells hold different configurations: a tool may be better in a cell only because
    it had to predict the easy ones.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
    rows, columns : str
        Two keys.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No pairs, a key that does not exist (the message names the nearest), or the same key twice.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> axes = coverage_map({"predicted": [11.0, 70.0, 9.0], "measured": [10.0, 100.0, 10.0],
    ...                      "tool": ["A", "B", "A"], "model": ["x", "x", "y"]})
    >>> [text.get_text() for text in axes.texts if "n=" in text.get_text()]
    ['10.0 %\nn=1', '10.0 %\nn=1', '30.0 %\nn=1']
    """
    table = parts.checked(pairs)
    if rows == columns:
        raise InputError(f"rows and columns must be two different keys, got {rows!r} twice")
    full = _cells(table, rows, columns)
    cells = _largest(full)
    ax = _style.canvas(ax, 1.9 + 0.42 * max(len(cells.rows), 2))
    _draw(ax, cells)
    _write_numbers(ax, cells)
    _tell(ax, cells)
    _ticks(ax, cells)
    _style.name_axes(ax, x=_text.shorten(columns), y=_text.shorten(rows))
    empty = int((cells.n == 0).sum())
    _style.heading(
        ax,
        f"What is predicted, and how well? n={_text.count(table.n, 'pair')}",
        _notes(full, cells, table, rows, columns),
        room=_keys(ax, empty > 0),
    )
    return ax


# Counting ----------------------------------------------------------------------------------------


def _cells(table: Pairs, rows: str, columns: str) -> _Cells:
    errors = parts.errors_of(table)
    groups = table.groups((rows, columns))
    failures = _failures(table, rows, columns)
    names_of_rows, names_of_columns = (
        # In the order of the table's groups; those that only failed come last.
        list(
            dict.fromkeys(
                [
                    *(parts.value_text(group.key[key]) for group in table.groups(key)),
                    *(failure[side] for failure in failures),
                ]
            )
        )
        for side, key in enumerate((rows, columns))
    )
    row_at = {name: i for i, name in enumerate(names_of_rows)}
    column_at = {name: i for i, name in enumerate(names_of_columns)}
    n = np.zeros((len(row_at), len(column_at)), np.int64)
    failed, total = np.zeros_like(n), np.zeros(n.shape)
    for group in groups:
        place = (
            row_at[parts.value_text(group.key[rows])],
            column_at[parts.value_text(group.key[columns])],
        )
        n[place] += len(group.index)
        total[place] += errors[group.index].sum()
    for (row, column), count in failures.items():
        failed[row_at[row], column_at[column]] = count
    mape = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return _Cells(names_of_rows, names_of_columns, n, mape, failed, n.sum(axis=1), n.sum(axis=0))


def _failures(table: Pairs, rows: str, columns: str) -> Counter[tuple[str, str]]:
    """Count failed predictions, if the table has all the rows that were read."""
    from errcomp.tables.columns import status_ok
    from errcomp.tables.frames import column_values, to_eager

    frame = to_eager(table.native)
    keep = np.ones(len(frame), dtype=bool)
    for name, options in table.selection.items():
        keep &= np.isin(np.array([str(v) for v in column_values(frame, name)]), list(options))
    ok = status_ok(frame)
    dropped = sum(drop.n for drop in table.dropped if "status" not in drop.reason)
    if int((keep & ok).sum()) != table.n + dropped:
        return Counter()  # rows were selected by hand, so the failures may belong to others
    sides = [column_values(frame, name)[keep & ~ok] for name in (rows, columns)]
    return Counter((parts.value_text(a), parts.value_text(b)) for a, b in zip(*sides, strict=True))


def _largest(cells: _Cells) -> _Cells:
    """Keep the rows and columns with the most pairs, in the order of the table."""
    largest = []
    for axis, most in ((1, _MOST_ROWS), (0, _MOST_COLUMNS)):
        size = (cells.n + cells.failed).sum(axis=axis)
        largest.append(np.sort(np.argsort(-size, kind="stable")[:most]))
    grid = np.ix_(*largest)
    return _Cells(
        [cells.rows[i] for i in largest[0]],
        [cells.columns[i] for i in largest[1]],
        cells.n[grid],
        cells.mape[grid],
        cells.failed[grid],
        cells.n_rows[largest[0]],
        cells.n_columns[largest[1]],
    )


# Drawing -----------------------------------------------------------------------------------------


def _tint(error: float) -> str:
    place = np.log(max(error, _PALEST) / _PALEST) / np.log(_DARKEST / _PALEST)
    return _style.blend(_style.BLUE, float(0.06 + 0.94 * min(place, 1.0)))


def _draw(ax: Axes, cells: _Cells) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    tints = np.ones((*cells.n.shape, 3))
    for y, x in np.argwhere(cells.n):
        tints[y, x] = to_rgb(_tint(float(cells.mape[y, x])))
    edges_y, edges_x = (np.arange(size + 1) - 0.5 for size in cells.n.shape)
    ax.pcolormesh(edges_x, edges_y, tints, edgecolors="white", linewidth=1.5, zorder=1)
    empty = [
        Rectangle((x - 0.46, y - 0.46), 0.92, 0.92) for y, x in np.argwhere(cells.n == 0).tolist()
    ]
    ax.add_collection(PatchCollection(empty, facecolor="none", zorder=1.1, **_EMPTY))
    ax.set_xlim(-0.5, len(cells.columns) - 0.5)
    ax.set_ylim(len(cells.rows) - 0.5, -0.5)
    ax.spines[["left", "bottom"]].set_visible(False)


def _write_numbers(ax: Axes, cells: _Cells) -> None:
    wide = len(cells.columns)
    for y, x in np.argwhere(cells.n + cells.failed).tolist():
        n, failed = int(cells.n[y, x]), int(cells.failed[y, x])
        lines = []
        if n:
            percent = 100 * float(cells.mape[y, x])
            digits = f"{percent:.1f}" if percent < 99.95 else f"{percent:,.0f}"
            lines.append(f"{digits} %" if wide <= _ROOMY else _brief(percent))
        if wide <= _NARROW:
            lines += [f"n={n:,}"] if n else []
            lines += [f"{failed:,} ×"] if failed else []
        if wide <= _ROOMY:  # failures beside n, where there is room
            lines = [lines[0], ", ".join(lines[1:])] if len(lines) > 2 else lines
        ink = _style.on(_tint(float(cells.mape[y, x]))) if n else _style.INK
        ax.text(x, y, "\n".join(lines), ha="center", va="center", fontsize=_style.SMALL - 0.5,
                linespacing=1.05, color=ink, zorder=3,
                parse_math=False)  # fmt: skip


def _brief(percent: float) -> str:
    """Write a number with at most four characters.

    Examples
    --------
    >>> _brief(12.3), _brief(999.4), _brief(3251.0), _brief(2.5e7)
    ('12', '999', '3k', '>1M')
    """
    if percent >= 999_500:
        return ">1M"
    return f"{percent:.0f}" if percent < 100 * _THOUSANDS else f"{percent / 1000:.0f}k"


def _tell(ax: Axes, cells: _Cells) -> None:
    x, y, texts = [], [], []
    rows, columns = _text.fitting(cells.rows), _text.fitting(cells.columns)
    for row, column in np.ndindex(cells.n.shape):
        n, failed = int(cells.n[row, column]), int(cells.failed[row, column])
        told = (
            f"MAPE {format_fraction(float(cells.mape[row, column]))}, n={n:,}"
            if n
            else "no prediction"
        )
        told += f", {failed:,} failed" if failed else ""
        names = rows[row], columns[column]
        x.append(float(column))
        y.append(float(row))
        texts.append(f"{', '.join(names)}\n{told}")
    tell(ax, x, y, texts)


def _ticks(ax: Axes, cells: _Cells) -> None:
    axes.label_rows(ax, cells.rows, cells.n_rows.tolist(), above=0.0)
    ax.set_ylim(len(cells.rows) - 0.5, -0.5)
    counts = [f"n={n:,}" for n in cells.n_columns.tolist()]
    room = _style.right_of_names(ax) / len(cells.columns)
    turned = room < _style.CHARACTER * (1 + max(map(len, [*cells.columns, *counts])))
    names = _text.fitting(cells.columns, _TURNED if turned else _NOT_TURNED)
    texts = [f"{a}{'  ' if turned else chr(10)}{b}" for a, b in zip(names, counts, strict=True)]
    ax.set_xticks(range(len(texts)), texts)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
        if turned:
            label.set(rotation=40, ha="right", rotation_mode="anchor")
    ax.tick_params(axis="x", length=0)


def _keys(ax: Axes, empty: bool) -> float:
    from matplotlib.patches import Patch

    steps = [(0.01, "MAPE 1 % or less"), (0.1, "10 %"), (1.0, "100 % or more")]
    handles = [
        Patch(
            facecolor=_tint(value),
            edgecolor=_style.BLUE,
            lw=0.5,
            label=text,
        )
        for value, text in steps
    ]
    if empty:
        handles.append(Patch(facecolor="white", label="no prediction", **_EMPTY))
    return _style.keys(ax, [handles])


def _notes(full: _Cells, cells: _Cells, table: Pairs, rows: str, columns: str) -> list[str]:
    covered = int((full.n > 0).sum())
    notes = [f"{covered:,} of {_text.count(full.n.size, 'combination')} predicted"]
    failed = int(full.failed.sum())
    if failed:
        notes[0] += f"; ×: {_text.count(failed, 'prediction')} that failed"
    unplaced = sum(d.n for d in table.dropped if "status" in d.reason) - failed
    if unplaced > 0:
        notes.append(f"not in any cell: {_text.count(unplaced, 'failed prediction')}")
    for name, many, some in (
        (rows, full.rows, cells.rows),
        (columns, full.columns, cells.columns),
    ):
        if len(many) > len(some):
            notes.append(
                f"not drawn: {_text.count(len(many) - len(some), 'value')} of "
                f"{_text.shorten(name)} with the fewest pairs"
            )
    if len(cells.columns) > _ROOMY:
        large = " (k: thousand)" if np.nanmax(cells.mape, initial=0.0) >= _THOUSANDS else ""
        n = ", n" if len(cells.columns) <= _NARROW else ""
        notes.append(f"each cell: MAPE in %{large}{n}")
    return notes
