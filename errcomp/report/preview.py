"""The first rows of a dataframe, as a table that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.errors import describe_names
from errcomp.report.forms import significant
from errcomp.report.model import Column, Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["preview"]

_ROWS, _COLUMNS = 10, 7
#: Longer texts are cut.
_WIDTH = 36
#: Columns that people look for first; the others follow in the order of the frame.
_FIRST = (
    *("level", "quantity", "model", "device", "version", "batch", "kernel", "count"),
    *("predicted", "measured", "run_measured", "run"),
)


def preview(frame: pl.DataFrame, note: str = "") -> Table:
    """Return the first rows and the most important columns of a dataframe.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns with one value in all rows are written once, below the table.
    note : str
        Last line below the table.

    Returns
    -------
    Table

    Examples
    --------
    >>> import polars as pl
    >>> from errcomp.report.text import render
    >>> frame = pl.DataFrame({"kernel": ["gemm", "add"], "measured": [2.5, 1.0], "unit": "us"})
    >>> print(render(preview(frame)))
    2 rows, 3 columns
    <BLANKLINE>
    kernel  measured
    ────────────────
    gemm         2.5
    add            1
    <BLANKLINE>
    The same in all rows: unit=us.
    """
    given = [name for name in frame.columns if frame[name].null_count() < len(frame)]
    constant = {
        name: frame[name][0] for name in given if len(frame) > 1 and frame[name].n_unique() == 1
    }
    others = [name for name in given if name not in constant]
    order = [name for name in _FIRST if name in others]
    order += [name for name in others if name not in _FIRST]
    shown, left = order[:_COLUMNS], order[_COLUMNS:]
    notes = []
    if constant:
        same = ", ".join(f"{name}={value}" for name, value in constant.items())
        notes.append(f"The same in all rows: {same}.")
    if len(frame) > _ROWS:
        notes.append(f"Shown are the first {_ROWS} of {len(frame):,} rows.")
    if left:
        notes.append(f"Further columns: {describe_names(left)}.")
    columns = [_column(name, frame) for name in shown]
    title = f"{len(frame):,} row{'s'[: len(frame) != 1]}, {frame.width} columns"
    return Table(title, columns, frame.head(_ROWS).to_dicts(), [*notes, *([note] if note else [])])


def _column(name: str, frame: pl.DataFrame) -> Column:
    if frame.schema[name].is_numeric():
        return Column(name, lambda row: row[name], significant(4))
    return Column(name, lambda row: "–" if row[name] is None else _cut(str(row[name])))


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
