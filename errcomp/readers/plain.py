"""Tables of pairs written by users: CSV, Parquet, JSON and JSON lines."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
from contextlib import contextmanager
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError, describe_rows
from errcomp.readers.core.content import FILE_FORMATS, Format, decode, detect, load_bytes
from errcomp.readers.core.source import files_readable
from errcomp.system.formulas import original, original_text
from errcomp.system.limits import current, how_to_raise
from errcomp.system.strict_json import doubles, loads
from errcomp.tables import Missing, Pairs, Zeros

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

__all__ = ["NAMES", "read_frame", "read_pairs"]


#: Columns that stay text: version "1.10" is not version 1.1.
NAMES = frozenset(
    (
        "tool",
        "level",
        "device",
        "model",
        "mode",
        "variant",
        "kernel_class",
        "version",
        "date",
        "status",
        "unit",
    )
)
_NUMBERS = ("predicted", "measured")


def read_pairs(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Missing = "raise",
    format: Format | None = None,  # noqa: A002 - as in other readers
) -> Pairs:
    r"""Read predictions and measurements from a CSV, Parquet, JSON or JSON lines file.

    CSV is separated by comma, tab or semicolon (whichever its header has) and may be gzipped. A
    column is numeric if all its values are numbers; columns of names (device, version, …) stay
    text, and so do integers that a float would round. An apostrophe in front of ``=``, ``+``, ``-``
    or ``@``, by which spreadsheets and errcomp mark text, is removed. JSON is a list of records, or
    an object with such a list as ``rows``.

    Parameters
    ----------
    path : path
        The file; or a folder of CSV or JSON lines files, or a pattern such as ``runs/*.csv``, whose
        files have the same columns. With several files, the key ``file`` names the file of a row.
    columns : mapping of str to str, optional
        ``{"predicted": "pred_ms", "measured": "real_ms"}``: name here → column of the file.
    unit : str, optional
        Unit of both, e.g. ``"ms"``; a column ``unit`` must agree.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.
    missing : {"raise", "exclude"}
        What to do with rows without a prediction or a measurement.
    format : {"csv", "parquet", "jsonl", "json"}, optional
        Default: recognised by content.

    Returns
    -------
    Pairs
        Messages name the line (CSV, JSON lines) or row (Parquet, JSON) of the file.

    Raises
    ------
    InputError
        The file is missing, cut off, not text, has no rows, rows of unequal length, two columns
        with the same name, nested values, or invalid values (see ``Pairs``).

    Notes
    -----
    Misleads if an identifier looks like a number (``gpu`` 1.10 and 1.1 are then equal):
    name such a column ``device`` or ``version``, or use Parquet or JSON, which have types.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("device,pred,real\nA,11,10\nB,90,100\n")
    >>> pairs = read_pairs(path, columns={"predicted": "pred", "measured": "real"}, unit="ms")
    >>> pairs.n, pairs.keys, pairs.unit
    (2, ('device',), 'ms')
    """
    wanted = dict(columns or {})
    options: dict[str, Any] = {"unit": unit, "zeros": zeros, "missing": missing}
    with files_readable():
        one = Path(path).is_file()
    if one:
        frame, line_offset = read_frame(Path(path), wanted, NAMES, _NUMBERS, format)
        options["line_offset"] = line_offset
        return Pairs(frame, columns=wanted, source=str(path), **options)
    from errcomp.readers.several import as_one_frame, table_files

    files = table_files(path) or [Path(path)]
    frame = as_one_frame(files, lambda file: read_frame(file, wanted, NAMES, _NUMBERS, format)[0])
    try:
        return Pairs(frame, columns=wanted, source=str(path), **options)
    except InputError:
        for file in files:  # a file's own error names its line
            read_pairs(file, columns=columns, format=format, **options)
        raise


def read_frame(
    path: Path,
    columns: Mapping[str, str],
    names: frozenset[str],
    numbers: Sequence[str],
    format: Format | None = None,  # noqa: A002 - as in other readers
) -> tuple[pl.DataFrame, int | None]:
    r"""Read a CSV, Parquet, JSON or JSON lines file as a dataframe.

    Parameters
    ----------
    path : Path
        The file.
    columns : mapping of str to str
        Name here → column of the file; the columns keep their names.
    names, numbers
        Columns that stay text, and columns that must be numbers.
    format : {"csv", "parquet", "jsonl", "json"}, optional
        Default: recognised by content.

    Returns
    -------
    frame : polars.DataFrame
    line_offset : int or None
        Line of the first row; None if lines are not rows.

    Raises
    ------
    InputError
        See `read_pairs`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("version,pred\n1.10,11\n1.9,90\n")
    >>> frame, line_offset = read_frame(
    ...     path, {"predicted": "pred"}, frozenset({"version"}), ["predicted"])
    >>> frame.rows(), line_offset
    ([('1.10', 11), ('1.9', 90)], 2)
    """
    if format is not None and format not in FILE_FORMATS:
        raise InputError(f"format must be one of {', '.join(FILE_FORMATS)}, got {format!r}")
    content = load_bytes(path)
    kind = format or detect(path, content)
    line_offset: int | None = None
    if kind == "parquet":
        frame = _parquet_frame(path, content)
    elif kind == "csv":
        text_columns = names | {old for new, old in columns.items() if new in names}
        frame, line_offset = csv_frame(path, decode(path, content), text_columns)
    elif kind == "jsonl":
        frame, line_offset = json_lines_frame(path, decode(path, content)), 1
    else:
        frame = json_frame(path, decode(path, content))
    for new in numbers:
        _check_numbers(path, frame, columns.get(new, new), line_offset)
    return frame, line_offset


def _check_numbers(path: Path, frame: pl.DataFrame, name: str, line_offset: int | None) -> None:
    """Refuse a numeric column of another type; Pairs checks for missing columns."""
    import polars as pl

    if name not in frame.columns:
        return
    dtype = frame.schema[name]
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Null, pl.Categorical, pl.Enum)):
        raise InputError(
            f"{path}: {name} must be a column of numbers, but its type is {dtype}. Convert it."
        )
    decimal_commas(path, frame[name], line_offset)


def _parquet_frame(path: Path, content: bytes) -> pl.DataFrame:
    import polars as pl

    if not content.startswith(b"PAR1"):
        raise InputError(f"{path}: not Parquet: it does not begin with PAR1. Export it again.")
    if not content.endswith(b"PAR1"):
        raise InputError(f"{path}: cut off: Parquet must end with PAR1. Copy the file again.")
    most = current().most_rows(len(content))
    try:
        with _silent_stderr():
            stated = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
            frame = pl.read_parquet(io.BytesIO(content)) if stated <= most else None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        panic = isinstance(error, pl.exceptions.PanicException)
        reason = "damaged within" if panic else str(error).strip().split("\n")[0]
        raise InputError(f"{path}: broken Parquet ({reason}). Export it again.") from error
    if frame is None:
        raise InputError(
            f"{path}: claims {stated:,} rows in only {len(content):,} bytes. "
            f"{how_to_raise('rows', '1G')}"
        )
    if frame.height == 0:
        raise InputError(f"{path}: the table has no rows. Add rows.")
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype == pl.Binary:
            raise InputError(
                f"{path}: {name} must be one value per row, but its type is {dtype}. Leave it out, "
                "or put each element in a column of its own."
            )
    return frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64))


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Silence stderr: Polars prints there when it panics on a damaged file."""
    try:
        stderr = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    sys.stderr.flush()
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


# Parsing CSV text: every row and field is checked before use.

_COLUMNS = 8
_LEADING_ZERO = r"^[+-]?0\d"
_LONG_INTEGER = r"^[+-]?[0-9]{16,}(\.0*)?$"


def csv_frame(path: Path, text: str, names: frozenset[str]) -> tuple[pl.DataFrame, int | None]:
    """Read CSV text.

    Parameters
    ----------
    path : Path
        Path in messages.
    text : str
        Header and rows; comma, tab or semicolon between fields, whichever the header has.
    names : frozenset of str
        Columns that stay text even if all their values are numbers.

    Returns
    -------
    frame : polars.DataFrame
        Empty fields are null. Columns are numbers if all their values are.
    line_offset : int or None
        Line of the first row; None if a field holds a line break, so that lines are not rows.
    """
    import polars as pl

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    first = text.split("\n", 1)[0]
    separator = next((s for s in "\t;" if s in first and "," not in first), ",")
    header, rows, lines = _scan(path, text, separator)
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
    # Some columns at a time: a query per column is slow, one for all needs twice the
    # memory of the table.
    columns: list[pl.Series] = []
    while frame.width:
        some = frame.select(pl.nth(range(min(_COLUMNS, frame.width))))
        frame = frame.drop(some.columns)
        some = some.with_columns(original_text(pl.all()).str.strip_chars().replace("", None))
        # "007" is text, not a number.
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
            f"{path}: line {start + 1}: a quote is not closed, or is inside a field ({error}). "
            "Close it; the file may also be cut off."
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


def _header(path: Path, fields: list[str]) -> list[str]:
    # Columns of row labels from other tools have no name.
    header = [original(f).strip() or f"column_{i}" for i, f in enumerate(fields, start=1)]
    if double := doubles(header):
        raise InputError(
            f"{path}: line 1: the header names {', '.join(map(repr, double))} more than once. "
            "Rename one of them."
        )
    return header


def _refuse(path: Path, line: int, fields: int, width: int, separator: str) -> None:
    if fields == 0:
        raise InputError(f"{path}: line {line} is empty. Remove it.")
    remedy = "A row may be incomplete, or a field holds the separator and needs quotes"
    if fields > width and separator == ",":
        remedy += "; numbers with a decimal comma (1,5) must be written with a point (1.5)"
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


def decimal_commas(path: Path, column: pl.Series, line_offset: int | None) -> None:
    """Raise with an explanation if a numeric column has decimal commas."""
    import polars as pl

    if column.dtype != pl.String:
        return
    bad = column.str.contains(r"^[+-]?\d*,\d+$").fill_null(False).arg_true()
    if len(bad):
        word, offset = ("row", 1) if line_offset is None else ("line", line_offset)
        where = describe_rows((bad + offset).to_list(), word=word)
        raise InputError(
            f"{path}: {column.name} must be a number, got {column[bad[0]]!r} in {where}, with a "
            "comma. Write decimals with a point (1.5) and thousands without a separator."
        )


# JSON and JSON lines to a frame.

_BLOCK = 1 << 18


def json_lines_frame(path: Path, text: str) -> pl.DataFrame:
    """Read one JSON object per line."""
    table = _Columns(path, "line")
    for lines in _some_lines(text.rstrip("\n")):
        try:
            # Parsing many lines at once is three times as fast as one by one.
            records = loads(f"[{','.join(lines)}]")
        except ValueError:
            records = []
        if len(records) != len(lines):
            first = table.n + 1
            records = [_line(path, number, line) for number, line in enumerate(lines, first)]
        table.add(records)
    return table.frame()


def _some_lines(text: str) -> Iterator[list[str]]:
    """Yield lists of lines, some hundred KiB each."""
    at = 0
    while at <= len(text):
        end = text.find("\n", at + _BLOCK)
        end = len(text) if end < 0 else end
        yield text[at:end].split("\n")
        at = end + 1


def _line(path: Path, number: int, line: str) -> Any:
    if not line.strip():
        raise InputError(f"{path}: line {number} is empty. Remove it.")
    return _loads(path, line, first_line=number)


def json_frame(path: Path, text: str) -> pl.DataFrame:
    """Read a list of records, or an object whose ``rows`` are one."""
    # The line of an error within a record is known only if there is a single line.
    content = _loads(path, text, first_line=1 if text.strip().count("\n") == 0 else None)
    if isinstance(content, dict):
        content = content.get("rows")
    if not isinstance(content, list):
        raise InputError(
            f'{path}: expected a list of records, or an object with this list under "rows". '
            "Write one object per pair."
        )
    if not content:
        raise InputError(f"{path}: the list of records is empty. Add rows.")
    table = _Columns(path, "row")
    table.add(content)
    return table.frame()


def _loads(path: Path, text: str, *, first_line: int | None) -> Any:
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: line {(first_line or 1) + error.lineno - 1}: not valid JSON ({error.msg}). "
            "The file may be incomplete. In JSON lines, each line holds one object."
        ) from error
    except ValueError as error:
        where = "" if first_line is None else f"line {first_line}: "
        raise InputError(f"{path}: {where}{error}. Fix the record.") from error


class _Columns:
    """The values of records by column, which take a fraction of the memory of records."""

    def __init__(self, path: Path, word: str) -> None:
        self.path, self.word, self.n = path, word, 0
        self.values: dict[str, list[Any]] = {}
        self.bad: list[int] = []
        self.first_bad: Any = None

    def add(self, records: Iterable[Any]) -> None:
        """Add records."""
        for record in records:
            if not isinstance(record, dict):
                if not self.bad:
                    self.first_bad = record
                self.bad.append(self.n + 1)
                record = {}
            for name, value in record.items():
                values = self.values.setdefault(name, [])
                values += [None] * (self.n - len(values))
                values.append(value)
            self.n += 1

    def frame(self) -> pl.DataFrame:
        """Return the columns as a frame, and release the lists."""
        import polars as pl

        if self.bad:
            raise InputError(
                f"{self.path}: expected an object, got {_short(self.first_bad)} in "
                f"{describe_rows(self.bad, word=self.word)}. Write one object per pair."
            )
        columns = []
        for name in list(self.values):
            values = self.values.pop(name)
            values += [None] * (self.n - len(values))
            self._check(name, values)
            columns.append(_column(name, values))
        return pl.DataFrame(columns)

    def _check(self, name: str, values: Sequence[Any]) -> None:
        nested = [i for i, value in enumerate(values, start=1) if isinstance(value, list | dict)]
        if nested:
            raise InputError(
                f"{self.path}: {name} must be one value per row, got "
                f"{_short(values[nested[0] - 1])} in {describe_rows(nested, word=self.word)}. "
                "Leave it out, or put each element in a column of its own."
            )
        broken = [i for i, value in enumerate(values, start=1) if not _is_text(value)]
        if broken or not _is_text(name):
            shown = _short(values[broken[0] - 1] if broken else name)
            where = describe_rows(broken, word=self.word) if broken else "the names"
            raise InputError(
                f"{self.path}: {_short(name)}: half a character (a lone surrogate), got {shown} in "
                f"{where}. Write the whole character as UTF-8."
            )


def _is_text(value: Any) -> bool:
    """Can this be encoded; JSON may hold lone surrogates, which are halves of characters."""
    if not isinstance(value, str) or value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(name: str, values: list[Any]) -> pl.Series:
    """Choose one type for a column; mixed types become text, so that no value is lost."""
    import polars as pl

    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int} and all(v is None or abs(v) < 2**63 for v in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= {int, float}:
        with contextlib.suppress(OverflowError):  # an integer too large for a float
            floats = [None if v is None else float(v) for v in values]
            # Different integers (e.g. run numbers) must not become equal as floats: keep text.
            pairs = zip(floats, values, strict=True)
            if all(number == value for number, value in pairs if isinstance(value, int)):
                return pl.Series(name, floats, dtype=pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "something nested deeply"
    return text if len(text) <= 40 else text[:37] + "..."
