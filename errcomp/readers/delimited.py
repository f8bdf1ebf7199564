"""Text of tables that people wrote: CSV, separated by comma, tab or semicolon."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from errcomp.errors import InputError
from errcomp.system.formulas import original, original_text
from errcomp.tables.columns import MISSING_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

#: Sign before the decimals of a number.
Decimals = Literal[".", ","]
DECIMALS: tuple[str, ...] = get_args(Decimals)
_COLUMNS = 8
_LEADING_ZERO = r"^[+-]?0\d"
_DECIMAL_COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONG_INTEGER = r"^[+-]?[0-9]{16,}(\.0*)?$"


def csv_frame(
    path: Path, text: str, names: frozenset[str], decimal: Decimals = "."
) -> tuple[pl.DataFrame, int | None]:
    """Read CSV text.

    Parameters
    ----------
    path : Path
        Path in messages.
    text : str
        Header and rows; comma, tab or semicolon between fields, whichever the header has. Lines
        that begin with ``#`` are comments, if they come before the header or do not have as many
        fields as it has. A header may begin with ``#``.
    names : frozenset of str
        Columns that stay text even if all their values are numbers.
    decimal : {".", ","}
        Sign before the decimals of a number.

    Returns
    -------
    frame : polars.DataFrame
        Empty fields are null. Columns are numbers if all their values are.
    line_offset : int or None
        Line of the first row; None if a field holds a line break or a comment follows a row, so
        that lines are not rows.
    """
    import polars as pl

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text, before, within = _without_comments(text)
    first = text.split("\n", 1)[0]
    separator = next((s for s in "\t;" if s in first and "," not in first), ",")
    header, rows, lines = _scan(path, text, separator, before)
    try:
        frame = pl.read_csv(
            io.BytesIO(text.encode()),
            has_header=False,
            new_columns=header,
            separator=separator,
            infer_schema=False,
        ).slice(1)
        height = f"{frame.height}"
    except pl.exceptions.PolarsError:
        height = "another number"
    if height != f"{rows}":
        raise InputError(
            f"{path}: has {rows} rows or {height}, depending on how its quotes are read. Enclose "
            'fields that contain quotes in quotes, and double the inner quotes: "a ""b"" c".'
        )
    frame = typed_frame(frame, names, decimal)
    return frame, before + 2 if lines == rows + 1 and not within else None


def typed_frame(frame: pl.DataFrame, names: frozenset[str], decimal: Decimals) -> pl.DataFrame:
    """Convert columns of text to numbers where all their values are."""
    import polars as pl

    # Some columns at a time: a query per column is slow, one for all needs twice the
    # memory of the table.
    columns: list[pl.Series] = []
    while frame.width:
        some = frame.select(pl.nth(range(min(_COLUMNS, frame.width))))
        frame = frame.drop(some.columns)
        some = some.with_columns(original_text(pl.all()).str.strip_chars().replace("", None))
        # "007" is text, not a number.
        codes = some.select(pl.all().str.contains(_LEADING_ZERO).any()).row(0, named=True)
        columns += [
            column
            if column.name in names or codes[column.name]
            else _typed(_with_points(column) if decimal == "," else column)
            for column in some
        ]
    return pl.DataFrame(columns)


def _without_comments(text: str) -> tuple[str, int, int]:
    """Leave out comments; return the text, and the number of comments before and after the header.

    A comment between rows is recognised by its number of fields, so that a value may begin
    with ``#``.
    """
    if not text.startswith("#") and "\n#" not in text:
        return text, 0, 0
    lines = text.split("\n")
    before = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if 0 < before < len(lines) and _is_header(lines[before - 1], lines[before]):
        before -= 1
        lines[before] = lines[before].lstrip("# ")
    rows = lines[before:]
    if not any(rows):  # nothing but comments
        return text, 0, 0
    separators = [rows[0].count(sign) for sign in ",;\t"]
    kept, open_quote = rows[:1], rows[0].count('"') % 2
    for row in rows[1:]:
        comment = row.startswith("#") and [row.count(sign) for sign in ",;\t"] != separators
        if open_quote or not comment:
            kept.append(row)
            open_quote ^= row.count('"') % 2
    return "\n".join(kept), before, len(rows) - len(kept)


def _is_header(comment: str, row: str) -> bool:
    """Say whether a comment names the columns of the row below it, as NumPy writes them."""
    separator = next((s for s in "\t;," if s in row), None)
    fields = row.split(separator)
    if separator is None or len(comment.split(separator)) != len(fields):
        return False
    return any(_NUMBER.fullmatch(field.strip()) for field in fields)


def _with_points(column: pl.Series) -> pl.Series:
    """Replace the commas in numbers by points, if all values are numbers or words for none."""
    numbers = column.str.contains(_DECIMAL_COMMA)
    others = column.filter(~numbers.fill_null(True))
    if not others.str.to_lowercase().is_in(sorted(MISSING_WORDS)).all():
        return column
    return column.str.replace(",", ".", literal=True)


def _scan(path: Path, text: str, separator: str, before: int) -> tuple[list[str], int, int]:
    """Check the shape of the table; return its header and the numbers of rows and of lines.

    ``before`` is the number of lines before the header.
    """
    reader = csv.reader(_lines(text), delimiter=separator, strict=True)
    rows, start = 0, 0
    try:
        header = header_of(path, next(reader), before + 1)
        start, width = reader.line_num, len(header)
        for row in reader:
            if len(row) != width:
                _refuse(path, before + reader.line_num, len(row), width, separator)
            rows += 1
            start = reader.line_num
    except csv.Error as error:
        raise InputError(
            f"{path}: line {before + start + 1}: a quote is not closed, or is inside a field "
            f"({error}). Close it; the file may also be cut off."
        ) from error
    if rows == 0:
        raise InputError(f"{path}: a header without rows. Add rows.")
    return header, rows, reader.line_num


def _lines(text: str) -> Iterator[str]:
    """Yield the lines, one at a time: io.StringIO takes four bytes per character."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def header_of(path: Path, fields: Sequence[str], line: int) -> list[str]:
    """Return the names of the columns, from the fields of the header."""
    # Columns of row labels from other tools have no name.
    header = [original(f).strip() or f"column_{i}" for i, f in enumerate(fields, start=1)]
    if double := sorted(name for name, times in Counter(header).items() if times > 1):
        raise InputError(
            f"{path}: line {line}: the header names {', '.join(map(repr, double))} more than once. "
            "Rename one of them."
        )
    return header


def _refuse(path: Path, line: int, fields: int, width: int, separator: str) -> None:
    if fields == 0:
        raise InputError(f"{path}: line {line} is empty. Remove it.")
    remedy = "A row may be incomplete, or a field holds the separator and needs quotes"
    if fields > width and separator == ",":
        remedy += (
            "; numbers with a decimal comma (1,5) need semicolons between the fields and "
            "--decimal , (errcomp.read(path, decimal=',') in Python)"
        )
    raise InputError(
        f"{path}: line {line}: {fields} field{'s' if fields > 1 else ''}, but the header has "
        f"{width}. {remedy}."
    )


def _typed(column: pl.Series) -> pl.Series:
    """Convert a column of text to numbers if all its values are."""
    import polars as pl

    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        if numbers.null_count() == column.null_count():
            return column if kind == pl.Float64 and _rounded(column) else numbers
    return column


def _rounded(column: pl.Series) -> bool:
    """Would different integers (e.g. run numbers) become equal as floats."""
    long = column.filter(column.str.contains(_LONG_INTEGER)).unique()
    return any(Decimal(text) != Decimal(float(text)) for text in long)
