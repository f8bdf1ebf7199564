"""A table within a text file: every field as text, every row with its line, numbers on demand."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, describe_names, describe_rows

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["MISSING", "Sheet", "sheet_of", "to_numbers"]

#: What tools write where they have no number, in lower case.
MISSING = frozenset(("", "-", "--", "n/a", "na", "nan", "-nan", "none", "null", "(null)", "nil"))
_LONGEST_FIELD = 1 << 30
_THOUSANDS = r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$"


class Sheet:
    """A table of text.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    frame : polars.DataFrame
        All columns are text without blanks around it.
    lines : ndarray of int, shape (n,)
        Line of the file on which each row stands.

    Examples
    --------
    >>> sheet = sheet_of("stats.csv", ["Name, Time (us), Time (us)", 'gemm,"1,205.5",n/a'])
    >>> sheet.columns, sheet.numbers("Time (us)").tolist(), sheet.numbers("Time (us)_2").tolist()
    (('Name', 'Time (us)', 'Time (us)_2'), [1205.5], [nan])
    """

    def __init__(self, name: str, frame: pl.DataFrame, lines: NDArray[np.int64]) -> None:
        self.name, self.frame, self.lines = name, frame, lines

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.columns)

    def texts(self, column: str) -> list[str]:
        """Return the fields of a column; empty ones are ``""``."""
        return self._column(column).to_list()

    def numbers(self, column: str, *, required: bool = False) -> NDArray[np.float64]:
        """Return a column as numbers, NaN where the tool had none (see `MISSING`).

        Parameters
        ----------
        column : str
        required : bool
            Raise where there is none.

        Raises
        ------
        InputError
            A field is no number, or there is no such column.
        """
        found, bad = to_numbers(self._column(column))
        if required:
            bad |= np.isnan(found)
        if bad.any():
            value = self._column(column)[int(np.argmax(bad))]
            where = describe_rows(self.lines[bad].tolist(), word="line")
            raise InputError(
                f"{self.name}: {column} must be a number, got {value[:40]!r} in {where}. The file "
                "may be damaged: copy it again."
            )
        return found

    def take(self, which: NDArray[np.bool_]) -> Sheet:
        """Return the rows under a mask as a table of their own."""
        return Sheet(self.name, self.frame.filter(which), self.lines[which])

    def _column(self, column: str) -> pl.Series:
        if column not in self.frame.columns:
            raise InputError(
                f"{self.name}: missing column {column!r}. Columns found: "
                f"{describe_names(self.columns, wanted=column)}. The tool may have written it with "
                "other options, or in a version that is not known here."
            )
        return self.frame[column]


def to_numbers(column: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Turn text into numbers.

    Thousands separators (1,205.5) are left out; what tools write for no number is NaN.

    Returns
    -------
    numbers : ndarray, shape (n,)
    bad : ndarray of bool, shape (n,)
        Neither a number nor what stands for none.
    """
    import polars as pl

    text = column.str.strip_chars()
    commas = text.str.contains(_THOUSANDS)
    if commas.any():
        text = pl.select(pl.when(commas).then(text.str.replace_all(",", "")).otherwise(text))[
            text.name
        ]
    missing = text.str.to_lowercase().is_in(list(MISSING)) | text.is_null()
    numbers = text.cast(pl.Float64, strict=False)
    bad = (numbers.is_null() & ~missing).to_numpy()
    found = numbers.fill_null(float("nan")).to_numpy().astype(np.float64)
    found[missing.to_numpy()] = np.nan
    return found, bad


def sheet_of(
    name: str,
    lines: Sequence[str],
    *,
    first_line: int = 1,
    needed: Sequence[str] = (),
    separator: str = "",
) -> Sheet:
    """Turn lines into a table: a header, and rows with as many fields.

    Blanks around fields and header cells are left out, as are a last header cell that is empty
    (a comma at the end of each line), blank lines, and repetitions of the header (files put one
    below the other). A name that the header has twice is numbered from the second on: ``x_2``.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    lines : sequence of str
        The header first.
    first_line : int
        Its number.
    needed : sequence of str
        Columns that there must be.
    separator : str
        Tab or semicolon where the header has one and no comma, if not given.

    Raises
    ------
    InputError
        A column is missing, a row has more or fewer fields than the header, a quote is not closed,
        or there is no row.
    """
    start = next((i for i, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise InputError(f"{name}: no table, there are blank lines only. Copy the file again.")
    first = lines[start]
    separator = separator or next((s for s in "\t;" if s in first and "," not in first), ",")
    quoted = any('"' in line for line in lines)
    header, frame, at = (_quoted if quoted else _unquoted)(
        name, lines[start:], separator, first_line + start
    )
    names = _names(header)
    missing = [column for column in needed if column not in names]
    if missing:
        raise InputError(
            f"{name}: line {first_line + start}: missing column {', '.join(map(repr, missing))}. "
            f"Columns found: {describe_names(names, wanted=missing[0])}."
        )
    if not len(at):
        raise InputError(f"{name}: there is a header but no row below it. Copy the file again.")
    columns = [
        values.str.strip_chars().rename(column)
        for column, values in zip(names, frame.get_columns(), strict=True)
        if column
    ]
    return Sheet(name, type(frame)(columns), at)


def _quoted(
    name: str, lines: Sequence[str], separator: str, first_line: int
) -> tuple[list[str], pl.DataFrame, NDArray[np.int64]]:
    """Return header, rows and their lines, of a table in which fields are quoted."""
    import polars as pl

    ended = (f"{line}\n" for line in lines)
    reader = csv.reader(ended, delimiter=separator, strict=True, skipinitialspace=True)
    rows: list[list[str]] = []
    at: list[int] = []
    begin = 0
    # A field may be long (a list of a million times); the limit is the whole process's.
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        header = next(reader)
        width = len(header)
        begin = reader.line_num
        for row in reader:
            line, begin = first_line + begin, reader.line_num
            if not row or row == header or (len(row) == 1 and not row[0].strip()):
                continue
            if len(row) == width + 1 and not row[-1].strip():
                row.pop()
            elif len(row) == width - 1 and not header[-1].strip():
                row.append("")
            elif len(row) != width:
                raise _ragged(name, line, len(row), width)
            rows.append(row)
            at.append(line)
    except csv.Error as error:
        raise InputError(
            f"{name}: line {first_line + begin}: a quote is not closed, or stands within "
            f"a field ({error}). The file may be cut off: copy it again."
        ) from None
    finally:
        csv.field_size_limit(limit)
    columns = zip(*rows, strict=True) if rows else [()] * width
    data = [pl.Series(str(i), one, dtype=pl.String) for i, one in enumerate(columns)]
    return header, pl.DataFrame(data), np.asarray(at, dtype=np.int64)


def _unquoted(
    name: str, lines: Sequence[str], separator: str, first_line: int
) -> tuple[list[str], pl.DataFrame, NDArray[np.int64]]:
    """Return the same of a table without quotes, which is most of the large ones, in columns."""
    import polars as pl

    header = lines[0].split(separator)
    width = len(header)
    every = pl.Series("line", lines[1:], dtype=pl.String)
    kept = (every.str.strip_chars() != "") & (every != lines[0])
    at = np.flatnonzero(kept.to_numpy()) + first_line + 1
    every = every.filter(kept)
    fields = every.str.count_matches(separator, literal=True).to_numpy() + 1
    blank_end = every.str.strip_chars_end(" ").str.ends_with(separator).to_numpy()
    # A separator at the end of the rows but not of the header, or the other way round.
    fine = (fields == width) | ((fields == width + 1) & blank_end)
    fine |= (fields == width - 1) & (not header[-1].strip())
    if not fine.all():
        bad = int(np.argmin(fine))
        raise _ragged(name, int(at[bad]), int(fields[bad]), width)
    parts = every.str.splitn(separator, width + 1).struct.unnest()
    parts = parts.select(pl.nth(range(width)).fill_null(""))
    return header, parts, at


def _ragged(name: str, line: int, fields: int, width: int) -> InputError:
    return InputError(
        f"{name}: line {line}: {fields} fields, the header has {width}. The file may be cut off: "
        "copy it again."
    )


def _names(header: Sequence[str]) -> list[str]:
    """Return a name of its own for each column; ``""`` for a last one without name or values."""
    found: list[str] = []
    for i, field in enumerate(header, start=1):
        name = field.strip() or ("" if i == len(header) else f"column_{i}")
        again = 2
        while name and name in found:
            name = f"{field.strip()}_{again}"
            again += 1
        found.append(name)
    return found
