"""CSV text to a frame: every row counted and every field accounted for before it is used."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError, describe_rows
from errcomp.readers._strict import doubles

if TYPE_CHECKING:
    import polars as pl

__all__ = ["csv_frame", "decimal_commas"]

_COLUMNS = 8
_LEADING_ZERO = r"^[+-]?0\d"
_LONG_INTEGER = r"^[+-]?[0-9]{16,}(\.0*)?$"


def csv_frame(path: Path, text: str, names: frozenset[str]) -> tuple[pl.DataFrame, int | None]:
    """Read CSV text.

    Parameters
    ----------
    path : Path
        For messages.
    text : str
        Header and rows; comma, tab or semicolon between fields, whichever the header has.
    names : frozenset of str
        Columns that stay text even if all their values are numbers.

    Returns
    -------
    frame : polars.DataFrame
        Empty fields are null. Columns are numbers if all their values are.
    line_offset : int or None
        Line of the first row; None where a field holds a line break and lines are not rows.
    """
    import polars as pl

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    first = text.split("\n", 1)[0]
    separator = next((s for s in "\t;" if s in first and "," not in first), ",")
    header, rows, lines = _scan(path, text, separator)
    frame = pl.read_csv(
        io.BytesIO(text.encode()),
        has_header=False,
        new_columns=header,
        separator=separator,
        infer_schema=False,
    ).slice(1)
    if frame.height != rows:
        raise InputError(
            f"{path}: {rows} rows or {frame.height}, depending on how quotes are read. Quote the "
            'fields that hold quotes, and double those: "a ""b"" c".'
        )
    # Some columns at a time: a query for each is slow where they are many, one for all needs the
    # memory of all of them twice.
    columns: list[pl.Series] = []
    while frame.width:
        some = frame.select(pl.nth(range(min(_COLUMNS, frame.width))))
        frame = frame.drop(some.columns)
        some = some.with_columns(pl.all().str.strip_chars().replace("", None))
        # "007" is not a number.
        codes = some.select(pl.all().str.contains(_LEADING_ZERO).any()).row(0, named=True)
        columns += [c if c.name in names or codes[c.name] else _typed(c) for c in some]
    return pl.DataFrame(columns), 2 if lines == rows + 1 else None


def _scan(path: Path, text: str, separator: str) -> tuple[list[str], int, int]:
    """Check the shape of the table; return its header and the numbers of rows and of lines."""
    reader = csv.reader(_lines(text), delimiter=separator, strict=True)
    rows, start = 0, 0
    try:
        header = _header(path, next(reader))
        start, width = reader.line_num, len(header)
        for row in reader:
            if len(row) != width:
                _refuse(path, reader.line_num, len(row), width, separator)
            rows += 1
            start = reader.line_num
    except csv.Error as error:
        raise InputError(
            f"{path}: line {start + 1}: a quote is not closed, or stands within a field ({error}). "
            "Close it; the file may also be cut off."
        ) from error
    if rows == 0:
        raise InputError(f"{path}: there is a header but no row below it. Add rows.")
    return header, rows, reader.line_num


def _lines(text: str) -> Iterator[str]:
    """Yield the lines, one at a time: io.StringIO takes four bytes for each letter."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def _header(path: Path, fields: list[str]) -> list[str]:
    # Row labels written by other tools have no name of their own.
    header = [field.strip() or f"column_{i}" for i, field in enumerate(fields, start=1)]
    if double := doubles(header):
        raise InputError(
            f"{path}: line 1: the header names {', '.join(map(repr, double))} more than once. "
            "Rename one of them."
        )
    return header


def _refuse(path: Path, line: int, fields: int, width: int, separator: str) -> None:
    if fields == 0:
        raise InputError(f"{path}: line {line} is empty. Remove it.")
    remedy = "A row may be cut off, or a field holds the separator and needs quotes"
    if fields > width and separator == ",":
        remedy += "; numbers with a decimal comma (1,5) must be written with a point (1.5)"
    raise InputError(
        f"{path}: line {line}: {fields} field{'s' if fields > 1 else ''}, the header has {width}. "
        f"{remedy}."
    )


def _typed(column: pl.Series) -> pl.Series:
    """Turn a column of text into numbers if all of it is."""
    import polars as pl

    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        if numbers.null_count() == column.null_count():
            return column if kind == pl.Float64 and _rounded(column) else numbers
    return column


def _rounded(column: pl.Series) -> bool:
    """Would two integers (numbers of runs, say) become one as floats."""
    long = column.filter(column.str.contains(_LONG_INTEGER)).unique()
    return any(Decimal(text) != Decimal(float(text)) for text in long)


def decimal_commas(path: Path, column: pl.Series, line_offset: int | None) -> None:
    """Explain numbers written with a decimal comma, where numbers are needed."""
    import polars as pl

    if column.dtype != pl.String:
        return
    bad = column.str.contains(r"^[+-]?\d*,\d+$").fill_null(False).arg_true()
    if len(bad):
        word, offset = ("row", 1) if line_offset is None else ("line", line_offset)
        where = describe_rows((bad + offset).to_list(), word=word)
        raise InputError(
            f"{path}: {column.name} must be a number, got {column[bad[0]]!r} in {where}: a comma "
            "in it. Write decimals with a point (1.5) and thousands without a separator."
        )
