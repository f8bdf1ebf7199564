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


#: What tools write where they have no number, in lower case.
MISSING = frozenset(("", "-", "--", "n/a", "na", "nan", "-nan", "none", "null", "(null)", "nil"))
_LONGEST_FIELD = 1 << 30
#: As many lines are turned into columns at a time: all at once would take several times the memory.
_LINES = 1 << 14
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

    numbers = column.cast(pl.Float64, strict=False)
    other = numbers.is_null()
    values = numbers.fill_null(float("nan")).to_numpy(writable=True)
    bad = np.zeros(len(values), dtype=np.bool_)
    if other.any():  # few as a rule: the rest is not gone through as text
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
    """Turn lines into a table: a header, and rows with as many fields.

    Blanks around fields and header cells are left out, as are a last header cell that is empty
    (a comma at the end of each line), blank lines, and repetitions of the header (files put one
    below the other). A name that the header has twice is numbered from the second on: ``x_2``.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    lines : iterable of str
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
    rest = iter(lines)
    first = ""
    for first in rest:
        if first.strip():
            break
        first_line += 1
    else:
        raise InputError(f"{name}: no table, there are blank lines only. Copy the file again.")
    separator = separator or next((s for s in "\t;" if s in first and "," not in first), ",")
    table = _Table(name, separator, first_line)
    parts = list(table.parts(chain((first,), rest)))
    names = _names(table.header)
    missing = [column for column in needed if column not in names]
    if missing:
        raise InputError(
            f"{name}: line {first_line}: missing column {', '.join(map(repr, missing))}. "
            f"Columns found: {describe_names(names, wanted=missing[0])}."
        )
    at = np.concatenate([lines for _, lines in parts]) if parts else np.zeros(0, dtype=np.int64)
    if not len(at):
        raise InputError(f"{name}: there is a header but no row below it. Copy the file again.")
    import polars as pl

    frame = pl.concat([part for part, _ in parts], rechunk=False)
    columns = [pl.nth(i).alias(column) for i, column in enumerate(names) if column]
    return Sheet(name, frame.select(columns), at)


@dataclass(slots=True)
class _Table:
    """The rows below a header, some thousand at a time, each with its line."""

    name: str
    separator: str
    first_line: int
    header: Sequence[str] = ()

    def parts(self, lines: Iterator[str]) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
        """Yield the rows, all fields without blanks around them."""
        line = self.first_line
        head = ""
        while some := list(islice(lines, _LINES)):
            if any('"' in text for text in some):
                yield from self._quoted(chain(some, lines), line)
                return
            if not self.header:
                head, *rest = some
                self.header = head.split(self.separator)
            else:
                rest = some
            yield self._unquoted(rest, head, line + len(some) - len(rest))
            line += len(some)

    def _quoted(
        self, lines: Iterator[str], line: int
    ) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
        """Yield the same of lines in which fields are quoted, and of all that follow them."""
        ended = (f"{text}\n" for text in lines)
        reader = csv.reader(ended, delimiter=self.separator, strict=True, skipinitialspace=True)
        begin = 0
        # A field may be long (a list of a million times); the limit is the whole process's.
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
                f"{self.name}: line {line + begin}: a quote is not closed, or stands within "
                f"a field ({error}). The file may be cut off: copy it again."
            ) from None
        finally:
            csv.field_size_limit(limit)
        if rows:
            yield self._columns(rows, at)

    def _take(self, row: list[str], line: int) -> bool:
        """Make a row as wide as the header; say whether it is a row at all."""
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
        self, rows: list[list[str]], at: list[int]
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
        """Return the same of lines without quotes, of which most large tables are, in columns."""
        import polars as pl

        width, separator = len(self.header), self.separator
        every = pl.Series("line", lines, dtype=pl.String)
        is_row = (every.str.strip_chars() != "") & (every != head)
        at = np.flatnonzero(is_row.to_numpy()) + line
        every = every.filter(is_row)
        fields = every.str.count_matches(separator, literal=True).to_numpy() + 1
        blank_end = every.str.strip_chars_end(" ").str.ends_with(separator).to_numpy()
        # A separator at the end of the rows but not of the header, or the other way round.
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
        f"{name}: line {line}: {fields} fields, the header has {width}. The file may be cut off: "
        "copy it again."
    )


def _names(header: Sequence[str]) -> list[str]:
    """Return a name of its own for each column; ``""`` for a last one without name or values."""
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

#: Keys that are text although they may look like a number: 12 is not 12.0, nor 1.10 1.1.
_TEXT = frozenset(
    ("version", "model", "device", "run", "kernel", "variant", "config", "app", "args", "series")
)
_RESERVED = frozenset(("tool", "level", "quantity", "unit", "predicted", "measured", "status"))
_WHOLE = r"^-?(?:0|[1-9]\d{0,17})$"
#: What stands for no name; "none" may be one (a precision, a scheduler).
_NO_TEXT = MISSING - {"none"}


def has(names: Collection[str], *wanted: str) -> bool:
    """Say whether all these names are there."""
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
    """Return a column as a key: whole numbers or numbers where all of it is, else text.

    What tools write where they have nothing is null. What is called a version or a name by
    ``name`` (the column's own when not given) stays text.

    Examples
    --------
    >>> from errcomp.readers.core.sheet import sheet_of
    >>> sheet = sheet_of("t.csv", ["batch,rate,version", "8.0,0.5,1.10", "n/a,1,1.2"])
    >>> [key(sheet, column).to_list() for column in sheet.columns]
    [[8, None], [0.5, 1.0], ['1.10', '1.2']]
    """
    import polars as pl

    name = name or column
    # A table that was not written as text may have blanks around its values.
    text = sheet.frame[column].alias(name).str.strip_chars()
    lower = text.str.to_lowercase()
    named = text.set(lower.is_in(list(_NO_TEXT)), None)
    if name in _TEXT or name.startswith("stack_") or "version" in name:
        return named
    plain = text.set(lower.is_in(list(MISSING)), None)
    if plain.drop_nulls().str.contains(_WHOLE).all() and plain.null_count() < len(plain):
        # Numbers of requests may be too large for a float.
        return plain.cast(pl.Int64)
    numbers, bad = to_numbers(plain)
    if bad.any() or not np.isfinite(numbers).any():
        return named
    numeric = pl.Series(name, numbers, nan_to_null=True)
    known = numbers[~np.isnan(numbers)]
    whole = bool(np.all(np.abs(known) < 2**53) and np.all(known == np.floor(known)))
    return numeric.cast(pl.Int64) if whole else numeric


def number_key(sheet: Sheet, column: str, name: str = "") -> pl.Series:
    """Return a column as a key that rows are chosen by as a number: text in it is an error.

    Raises
    ------
    InputError
        A field is no number, or there is no such column.

    Examples
    --------
    >>> from errcomp.readers.core.sheet import sheet_of
    >>> number_key(sheet_of("t.csv", ["a,tokens", "x,n/a", "y,8"]), "tokens").to_list()
    [None, 8]
    """
    import polars as pl

    sheet.numbers(column)  # this is where it is checked
    series = key(sheet, column, name)
    return series.cast(pl.Float64) if series.dtype == pl.String else series


def keys_of(sheet: Sheet, names: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return those of the columns that there are as keys, by the names given."""
    return {new: key(sheet, old, new) for old, new in names.items() if old in sheet.columns}


def other_keys(sheet: Sheet, used: Collection[str]) -> dict[str, str]:
    """Name every column that is not used yet as a key."""
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
    """One quantity of a table: in which columns it is, and what is true of all its rows.

    Attributes
    ----------
    quantity, unit : str
    predicted, measured : str
        Columns; empty where the table has none.
    fixed : mapping
        Keys with one value for all rows of this quantity.
    """

    quantity: str
    unit: str
    predicted: str = ""
    measured: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold it."""
        return tuple(name for name in (self.predicted, self.measured) if name)


def long(
    sheet: Sheet, values: Iterable[Value], keys: Mapping[str, pl.Series], **fixed: Any
) -> pl.DataFrame:
    """Return the values of each row of a table below each other, row by row.

    Parameters
    ----------
    sheet : Sheet
    values : iterable of Value
        Those whose columns the table does not have are left out.
    keys : mapping of str to polars.Series
        Of the rows of the table.
    **fixed
        Columns with one value for all.

    Raises
    ------
    InputError
        The table has none of the columns, or a field of one is no number.
    """
    values = list(values)
    present = [value for value in values if set(value.columns) <= set(sheet.columns)]
    if not present:
        wanted = ", ".join(name for value in values for name in value.columns) or "any known one"
        raise InputError(
            f"{sheet.name}: no column of times. Expected {wanted}; found "
            f"{describe_names(sheet.columns)}."
        )
    return _below_each_other(sheet, present, keys, fixed)


def rows_of(
    sheet: Sheet, values: Sequence[Value], keys: Mapping[str, str], **fixed: Any
) -> pl.DataFrame:
    """Return the same of columns that must all be there.

    Parameters
    ----------
    sheet : Sheet
    values : sequence of Value
        A row without any value of a quantity gets none of it where there are several.
    keys : mapping of str to str
        Names of keys and their columns.
    **fixed
        What all rows have in common.

    Raises
    ------
    InputError
        There is no such column, or a value is no number.
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
        # The values of one row of the table below each other.
        order = np.arange(len(frames) * len(sheet)).reshape(len(frames), -1).T.ravel()
        rows = pl.concat(frames, how="diagonal_relaxed")[order]
    # What all rows have in common comes last: it takes no memory as long as no row is moved.
    return rows.with_columns(**constant({k: v for k, v in fixed.items() if k not in own}))


def with_repeats(rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows that agree in all but their values a number: they were measured again."""
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
    """Return what was left out, if anything was."""
    return (Dropped(reason, n, tuple(rows[:3])),) if n else ()
