"""A table within a text file: every field as text, every row with its line, numbers on demand."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names, describe_rows
from errcomp.results import Dropped

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


#: Spellings of missing numbers in the output of tools, in lower case.
MISSING = frozenset(("", "-", "--", "n/a", "na", "nan", "-nan", "none", "null", "(null)", "nil"))
_LONGEST_FIELD = 1 << 30
#: Lines converted to columns at a time: all at once would take several times the memory.
_LINES = 1 << 14
_THOUSANDS = r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$"


class Sheet:
    """A table of text.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    frame : polars.DataFrame
        All columns are text, without surrounding spaces.
    lines : ndarray of int, shape (n,)
        Line of the file of each row.

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
        """Return a column as numbers, NaN where missing (see `MISSING`).

        Parameters
        ----------
        column : str
        required : bool
            Raise if a number is missing.

        Raises
        ------
        InputError
            A field is not a number, or there is no such column.
        """
        values, bad = to_numbers(self._column(column))
        if required:
            bad |= np.isnan(values)
        if bad.any():
            value = self._column(column)[int(np.argmax(bad))]
            where = describe_rows(self.lines[bad].tolist(), word="line")
            raise InputError(
                f"{self.name}: {column} must be a number, got {value[:40]!r} in {where}. The file "
                "may be damaged: copy it again."
            )
        return values

    def take(self, which: NDArray[np.bool_]) -> Sheet:
        """Return the rows under a mask as a new table."""
        return Sheet(self.name, self.frame.filter(which), self.lines[which])

    def _column(self, column: str) -> pl.Series:
        if column not in self.frame.columns:
            raise InputError(
                f"{self.name}: missing column {column!r}. Columns found: "
                f"{describe_names(self.columns, wanted=column)}. The file may be from a newer "
                "version of the tool, or written with other options."
            )
        return self.frame[column]


def to_numbers(column: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Convert text to numbers.

    Thousands separators (1,205.5) are removed; spellings of a missing number become NaN.

    Returns
    -------
    numbers : ndarray, shape (n,)
    bad : ndarray of bool, shape (n,)
        Neither a number nor a spelling of a missing number.
    """
    import polars as pl

    numbers = column.cast(pl.Float64, strict=False)
    other = numbers.is_null()
    values = numbers.fill_null(float("nan")).to_numpy(writable=True)
    bad = np.zeros(len(values), dtype=np.bool_)
    if other.any():  # usually few: the rest is not processed as text
        which = other.to_numpy()
        text = column.filter(other).str.strip_chars()
        commas = text.str.contains(_THOUSANDS).fill_null(False)
        plain = pl.select(pl.when(commas).then(text.str.replace_all(",", "")).otherwise(text))
        numbers = plain.to_series().cast(pl.Float64, strict=False)
        missing = text.str.to_lowercase().is_in(list(MISSING)) | text.is_null()
        values[which] = numbers.fill_null(float("nan")).to_numpy()
        bad[which] = (numbers.is_null() & ~missing).to_numpy()
    return values, bad


def sheet_of(
    name: str,
    lines: Iterable[str],
    *,
    first_line: int = 1,
    needed: Sequence[str] = (),
    separator: str = "",
) -> Sheet:
    """Parse lines as a table: a header, and rows with the same number of fields.

    Left out are spaces around fields, an empty last header cell (a comma at the end of each line),
    blank lines, and repetitions of the header (from concatenated files). A name that the header
    repeats gets a number: ``x_2``.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    lines : iterable of str
        The lines, beginning with the header.
    first_line : int
        Number of the first line.
    needed : sequence of str
        Required columns.
    separator : str
        Default: a tab or semicolon if the header has one and no comma, else a comma.

    Raises
    ------
    InputError
        A column is missing, a row has more or fewer fields than the header, a quote is not closed,
        or there are no rows.
    """
    rest = iter(lines)
    first = ""
    for first in rest:
        if first.strip():
            break
        first_line += 1
    else:
        raise InputError(f"{name}: not a table: all lines are blank. Copy the file again.")
    separator = separator or next((s for s in "\t;" if s in first and "," not in first), ",")
    table = _Table(name, separator, first_line)
    parts = list(table.parts(chain((first,), rest)))
    names = _names(table.header)
    missing = [column for column in needed if column not in names]
    if missing:
        raise InputError(
            f"{name}: line {first_line}: missing column{'s' * (len(missing) > 1)} "
            f"{', '.join(map(repr, missing))}. "
            f"Columns found: {describe_names(names, wanted=missing[0])}."
        )
    at = np.concatenate([lines for _, lines in parts]) if parts else np.zeros(0, dtype=np.int64)
    if not len(at):
        raise InputError(f"{name}: a header without rows. Copy the file again.")
    import polars as pl

    frame = pl.concat([part for part, _ in parts], rechunk=False)
    columns = [pl.nth(i).alias(column) for i, column in enumerate(names) if column]
    return Sheet(name, frame.select(columns), at)


@dataclass(slots=True)
class _Table:
    """The rows below a header, some thousand at a time, with line numbers."""

    name: str
    separator: str
    first_line: int
    header: Sequence[str] = ()

    def parts(self, lines: Iterator[str]) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
        """Yield the rows, without spaces around fields."""
        line = self.first_line
        head = ""
        while some := list(islice(lines, _LINES)):
            if any('"' in text for text in some):
                rows = self._one_a_line(some)
                if rows is None:
                    yield from self._quoted(chain(some, lines), line)
                    return
                if rows:
                    below = line + len(some) - len(rows)
                    yield self._columns(rows, range(below, line + len(some)))
                line += len(some)
                head = head or self.separator.join(self.header)
                continue
            if not self.header:
                head, *rest = some
                self.header = head.split(self.separator)
            else:
                rest = some
            yield self._unquoted(rest, head, line + len(some) - len(rest))
            line += len(some)

    def _one_a_line(self, lines: Sequence[str]) -> list[list[str]] | None:
        """Parse lines with quoted fields at once; None unless each is a row of equal width."""
        ended = map("{}\n".format, lines)
        try:
            rows = list(
                csv.reader(ended, delimiter=self.separator, strict=True, skipinitialspace=True)
            )
        except csv.Error:  # names its line only where rows are read one by one
            return None
        if len(rows) != len(lines):
            return None
        header = self.header or rows.pop(0)
        if header in rows or any(len(row) != len(header) for row in rows):
            return None
        self.header = header
        return rows

    def _quoted(
        self, lines: Iterator[str], line: int
    ) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
        """Yield the rows of lines with quoted fields, and of all lines after them."""
        ended = (f"{text}\n" for text in lines)
        reader = csv.reader(ended, delimiter=self.separator, strict=True, skipinitialspace=True)
        begin = 0
        # A field may be long (a list of a million times); the limit applies to the whole process.
        limit = csv.field_size_limit(_LONGEST_FIELD)
        rows: list[list[str]] = []
        at: list[int] = []
        try:
            for row in reader:
                number, begin = line + begin, reader.line_num
                if not self.header:
                    self.header = row
                elif self._take(row, number):
                    rows.append(row)
                    at.append(number)
                if len(rows) == _LINES:
                    yield self._columns(rows, at)
                    rows, at = [], []
        except csv.Error as error:
            raise InputError(
                f"{self.name}: line {line + begin}: a quote is not closed, or is inside "
                f"a field ({error}). The file may be incomplete: copy it again."
            ) from None
        finally:
            csv.field_size_limit(limit)
        if rows:
            yield self._columns(rows, at)

    def _take(self, row: list[str], line: int) -> bool:
        """Fit a row to the width of the header; say whether it is a row at all."""
        width = len(self.header)
        if not row or row == self.header or (len(row) == 1 and not row[0].strip()):
            return False
        if len(row) == width + 1 and not row[-1].strip():
            row.pop()
        elif len(row) == width - 1 and not self.header[-1].strip():
            row.append("")
        elif len(row) != width:
            raise _ragged(self.name, line, len(row), width)
        return True

    def _columns(
        self, rows: list[list[str]], at: Sequence[int]
    ) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        import polars as pl

        data = [
            pl.Series(str(i), cells, dtype=pl.String).str.strip_chars()
            for i, cells in enumerate(zip(*rows, strict=True))
        ]
        return pl.DataFrame(data), np.asarray(at, dtype=np.int64)

    def _unquoted(
        self, lines: Sequence[str], head: str, line: int
    ) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """Return the columns of lines without quotes, as in most large tables."""
        import polars as pl

        width, separator = len(self.header), self.separator
        every = pl.Series("line", lines, dtype=pl.String)
        is_row = (every.str.strip_chars() != "") & (every != head)
        at = np.flatnonzero(is_row.to_numpy()) + line
        every = every.filter(is_row)
        fields = every.str.count_matches(separator, literal=True).to_numpy() + 1
        blank_end = every.str.strip_chars_end(" ").str.ends_with(separator).to_numpy()
        # A separator ends the rows but not the header, or vice versa.
        fine = (fields == width) | ((fields == width + 1) & blank_end)
        fine |= (fields == width - 1) & (not self.header[-1].strip())
        if not fine.all():
            bad = int(np.argmin(fine))
            raise _ragged(self.name, int(at[bad]), int(fields[bad]), width)
        parts = every.str.splitn(separator, width + 1).struct.unnest()
        fields_only = (
            pl.nth(i).fill_null("").str.strip_chars().alias(str(i)) for i in range(width)
        )
        return parts.select(fields_only), at


def _ragged(name: str, line: int, fields: int, width: int) -> InputError:
    return InputError(
        f"{name}: line {line}: {fields} field{'s' * (fields != 1)}, but the header has {width}. "
        "The file may be cut off: copy it again."
    )


def _names(header: Sequence[str]) -> list[str]:
    """Return a unique name for each column; ``""`` for a last column without a name."""
    names: list[str] = []
    for i, cell in enumerate(header, start=1):
        name = cell.strip() or ("" if i == len(header) else f"column_{i}")
        number = 2
        while name and name in names:
            name = f"{cell.strip()}_{number}"
            number += 1
        names.append(name)
    return names


# Columns that identify or explain the rows of a table.

#: Keys that stay text although they may look like numbers: 1.10 is not 1.1.
_TEXT = frozenset(
    ("version", "model", "device", "run", "kernel", "variant", "config", "app", "args", "series")
)
_RESERVED = frozenset(("tool", "level", "quantity", "unit", "predicted", "measured", "status"))
_WHOLE = r"^-?(?:0|[1-9]\d{0,17})$"
#: Spellings of a missing name; "none" may be a name (a precision, a scheduler).
_NO_TEXT = MISSING - {"none"}


def has(names: Collection[str], *wanted: str) -> bool:
    """Say whether all these names exist."""
    return all(name in names for name in wanted)


def snake(name: str) -> str:
    """Return a name in lower case with underscores.

    Examples
    --------
    >>> snake("Elapsed_Cycles"), snake("#SMs (active)"), snake("tokens/s/gpu")
    ('elapsed_cycles', 'sms_active', 'tokens_s_gpu')
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_") or "column"
    return f"{plain}_" if plain in _RESERVED else plain


def key(sheet: Sheet, column: str, name: str = "") -> pl.Series:
    """Return a column as a key: whole numbers or numbers if all values are, else text.

    Missing values become null. A column stays text if its ``name`` (by default its own) means a
    version or a name.

    Examples
    --------
    >>> from errcomp.readers.core.sheet import sheet_of
    >>> sheet = sheet_of("t.csv", ["batch,rate,version", "8.0,0.5,1.10", "n/a,1,1.2"])
    >>> [key(sheet, column).to_list() for column in sheet.columns]
    [[8, None], [0.5, 1.0], ['1.10', '1.2']]
    """
    import polars as pl

    name = name or column
    # A table that was not written as text may have spaces around its values.
    text = sheet.frame[column].alias(name).str.strip_chars()
    lower = text.str.to_lowercase()
    named = text.set(lower.is_in(list(_NO_TEXT)), None)
    if name in _TEXT or name.startswith("stack_") or "version" in name:
        return named
    plain = text.set(lower.is_in(list(MISSING)), None)
    if plain.drop_nulls().str.contains(_WHOLE).all() and plain.null_count() < len(plain):
        # Request numbers may be too large for a float.
        return plain.cast(pl.Int64)
    numbers, bad = to_numbers(plain)
    if bad.any() or not np.isfinite(numbers).any():
        return named
    numeric = pl.Series(name, numbers, nan_to_null=True)
    known = numbers[~np.isnan(numbers)]
    whole = bool(np.all(np.abs(known) < 2**53) and np.all(known == np.floor(known)))
    return numeric.cast(pl.Int64) if whole else numeric


def number_key(sheet: Sheet, column: str, name: str = "") -> pl.Series:
    """Return a column as a numeric key; text in it is an error.

    Raises
    ------
    InputError
        A field is not a number, or there is no such column.

    Examples
    --------
    >>> from errcomp.readers.core.sheet import sheet_of
    >>> number_key(sheet_of("t.csv", ["a,tokens", "x,n/a", "y,8"]), "tokens").to_list()
    [None, 8]
    """
    import polars as pl

    sheet.numbers(column)  # checks the column
    series = key(sheet, column, name)
    return series.cast(pl.Float64) if series.dtype == pl.String else series


def keys_of(sheet: Sheet, names: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return the existing columns among these as keys, under the given names."""
    return {new: key(sheet, old, new) for old, new in names.items() if old in sheet.columns}


def other_keys(sheet: Sheet, used: Collection[str]) -> dict[str, str]:
    """Name every column that is not used yet, to be a key."""
    columns: dict[str, str] = {}
    for column in sheet.columns:
        if column in used:
            continue
        name, number = snake(column), 2
        while name in columns:
            name, number = f"{snake(column)}_{number}", number + 1
        columns[name] = column
    return columns


@dataclass(frozen=True, slots=True)
class Value:
    """A quantity of a table: its columns, and constants of its rows.

    Attributes
    ----------
    quantity, unit : str
    predicted, measured : str
        Columns; empty if the table lacks them.
    fixed : mapping
        Keys with a constant value for this quantity.
    """

    quantity: str
    unit: str
    predicted: str = ""
    measured: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the quantity."""
        return tuple(name for name in (self.predicted, self.measured) if name)


def long(
    sheet: Sheet, values: Iterable[Value], keys: Mapping[str, pl.Series], **fixed: Any
) -> pl.DataFrame:
    """Return a table in long form: one row per row of the table and quantity.

    Parameters
    ----------
    sheet : Sheet
    values : iterable of Value
        Quantities; those without columns in the table are left out.
    keys : mapping of str to polars.Series
        Keys of the rows of the table.
    **fixed
        Columns with a constant value.

    Raises
    ------
    InputError
        The table has none of the columns, or a field is not a number.
    """
    values = list(values)
    present = [value for value in values if set(value.columns) <= set(sheet.columns)]
    if not present:
        wanted = "; or ".join(" and ".join(value.columns) for value in values)
        raise InputError(
            f"{sheet.name}: no column of times was "
            f"found{f' (expected {wanted})' if wanted else ''}. Columns found: "
            f"{describe_names(sheet.columns)}."
        )
    return _below_each_other(sheet, present, keys, fixed)


def rows_of(
    sheet: Sheet, values: Sequence[Value], keys: Mapping[str, str], **fixed: Any
) -> pl.DataFrame:
    """Return a table in long form; all columns must exist.

    Parameters
    ----------
    sheet : Sheet
    values : sequence of Value
        Quantities; with several of them, rows without a value of a quantity are left out.
    keys : mapping of str to str
        Name of a key → its column.
    **fixed
        Columns with a constant value.

    Raises
    ------
    InputError
        There is no such column, or a value is not a number.
    """
    import polars as pl

    if missing := [column for column in keys.values() if column not in sheet.columns]:
        raise InputError(
            f"{sheet.name}: missing column {missing[0]!r}. Columns found: "
            f"{describe_names(sheet.columns, wanted=missing[0])}."
        )
    key_columns = {name: key(sheet, column, name) for name, column in keys.items()}
    rows = _below_each_other(sheet, values, key_columns, fixed)
    sides = pl.col([name for name in ("predicted", "measured") if name in rows.columns])
    rows = rows.with_columns(sides.fill_nan(None))
    return rows.filter(pl.any_horizontal(sides.is_not_null())) if len(values) > 1 else rows


def _below_each_other(
    sheet: Sheet,
    values: Sequence[Value],
    keys: Mapping[str, pl.Series],
    fixed: Mapping[str, Any],
) -> pl.DataFrame:
    import polars as pl

    def constant(same: Mapping[str, Any]) -> dict[str, pl.Expr]:
        return {name: pl.lit(content) for name, content in same.items() if content is not None}

    own = {name for value in values for name in value.fixed}
    mixed = {name: content for name, content in fixed.items() if name in own}
    frames = []
    for value in values:
        numbers = {
            side: sheet.numbers(column)
            for side, column in (("predicted", value.predicted), ("measured", value.measured))
            if column
        }
        same = {**mixed, **value.fixed, "quantity": value.quantity, "unit": value.unit}
        frames.append(pl.DataFrame({**numbers, **keys}).with_columns(**constant(same)))
    rows = frames[0]
    if len(frames) > 1:
        # The quantities of a row become successive rows.
        order = np.arange(len(frames) * len(sheet)).reshape(len(frames), -1).T.ravel()
        rows = pl.concat(frames, how="diagonal_relaxed")[order]
    # Constants come last: they take no memory as long as rows keep their order.
    return rows.with_columns(**constant({k: v for k, v in fixed.items() if k not in own}))


def with_repeats(rows: pl.DataFrame) -> pl.DataFrame:
    """Give a number to rows that agree in all keys: they are repeated measurements."""
    import polars as pl

    keys = [name for name in rows.columns if name not in ("predicted", "measured")]
    times, place = pl.len().over(keys), pl.int_range(1, pl.len() + 1).over(keys)
    return rows.with_columns(repeat=pl.when(times > 1).then(place))


def without(
    frame: pl.DataFrame, which: pl.Expr, reason: str
) -> tuple[pl.DataFrame, tuple[Dropped, ...]]:
    """Leave out rows, and count them."""
    left = frame.filter(~which.fill_null(value=False))
    return left, as_dropped(reason, len(frame) - len(left))


def as_dropped(reason: str, n: int, rows: Sequence[int] = ()) -> tuple[Dropped, ...]:
    """Return the count of rows left out, if there are any."""
    return (Dropped(reason, n, tuple(rows[:3])),) if n else ()
