"""Text of tables that people wrote: CSV, separated by comma, tab or semicolon.

Most CSV is regular: it has no quotes or comments, and the same number of fields in each line. It is
read in parts, whose numbers become numbers at once: its text never stands in memory as a whole, and
Python looks at no line (`regular_frame`). Everything else is read line by line, which also explains
what is wrong with which line (`csv_frame`).
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core.content import detect, fits
from errcomp.readers.core.source import BOM, PACKED, UTF16, refuse_special
from errcomp.system.formulas import original, original_text
from errcomp.tables.columns import MISSING_WORDS

if TYPE_CHECKING:
    import polars as pl

#: Sign before the decimals of a number.
Decimals = Literal[".", ","]
DECIMALS: tuple[str, ...] = get_args(Decimals)
_COLUMNS = 8
_LEADING_ZERO = r"^[+-]?0\d"
_DECIMAL_COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$"
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_LONG_INTEGER = r"^[+-]?[0-9]{16,}(\.0*)?$"
#: Bytes of a part; of the first, which shows the types of the columns; of a block in the cache.
_PART, _FIRST, _BLOCK = 16 << 20, 1 << 20, 1 << 18
#: What only `csv_frame` can read: quotes, marks of formulas, zero bytes, other ends of lines.
_IRREGULAR = (b'"', b"'", b"\x00", b"\r")
#: Memory that a table takes, over the size of its text.
_TIMES = 6
_BLANKS = frozenset(" \t")
#: Integers from this size on may become equal as floats.
_EXACT = 1e15


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
    separator = separator_of(first)
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
            f"{path}: has {rows} rows or {height}, depending on how its quotes are read. Put each "
            'field that contains a quote in quotes, and write every inner quote twice: "a ""b"" c".'
        )
    frame = typed_frame(frame, names, decimal)
    return frame, before + 2 if lines == rows + 1 and not within else None


def separator_of(header: str) -> str:
    """Return the sign between the fields of a header: a tab or semicolon, or else a comma."""
    return next((s for s in "\t;" if s in header and "," not in header), ",")


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
    separator = separator_of(rows[0])
    separators = rows[0].count(separator)
    kept, open_quote = rows[:1], rows[0].count('"') % 2
    for row in rows[1:]:
        comment = row.startswith("#") and row.count(separator) != separators
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
            "; numbers with a decimal comma (1,5) need semicolons between the fields, and the "
            "option --decimal ',' (errcomp.read(path, decimal=',') in Python)"
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


# Regular CSV.


class _IrregularError(Exception):
    """A part is not regular."""


class _TextError(Exception):
    """A column of numbers holds text further below."""


def regular_frame(path: Path, names: frozenset[str]) -> pl.DataFrame | None:
    """Read regular CSV; None if it is not regular, or is not CSV.

    Parameters
    ----------
    path : Path
    names : frozenset of str
        Columns that stay text even if all their values are numbers.

    Returns
    -------
    polars.DataFrame or None
        As `csv_frame` returns it; its first row is on line 2.
    """
    if not path.is_file():
        return None
    while True:
        try:
            refuse_special(path)
            if not fits(path, _TIMES):
                return None
            with path.open("rb") as file:
                return _read(path, file, names)
        except _TextError as column:
            names |= {str(column)}
        except (_IrregularError, InputError, UnicodeDecodeError, OSError):
            return None  # read again, and explained


def _read(path: Path, file: IO[bytes], names: frozenset[str]) -> pl.DataFrame:
    """Read the parts of a file.

    Raises
    ------
    _IrregularError
        The file is not regular CSV.
    _TextError
        A column that is not among the names holds numbers first, and then text.
    """
    import polars as pl

    parts = _parts(file)
    first = next(parts, b"")
    if first.startswith((*PACKED, *UTF16)) or detect(path, first) != "csv":
        raise _IrregularError
    line, _, first = first.removeprefix(BOM).partition(b"\n")
    if line.startswith(b"#") or any(sign in line for sign in _IRREGULAR):
        raise _IrregularError
    text = line.decode()
    table = _Table(header_of(path, text.split(separator_of(text)), 1), separator_of(text), names)
    frames = [table.read(part) for part in chain([first] if first else [], parts)]
    if not frames or table.ends_blank:
        raise _IrregularError
    whole = pl.concat([table.widened(frame) for frame in frames])
    _check_exact(whole)
    return whole


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    """Yield whole lines, about 16 MB at a time, that end with line feeds."""
    rest = b""
    size = _FIRST
    while block := file.read(size):
        size = _PART
        end = block.rfind(b"\n") + 1
        if end:
            yield _unix(rest + block[:end])
            rest = block[end:]
        else:
            rest += block
    if rest:
        yield _unix(rest) + b"\n"


def _has_gap(lines: bytes) -> bool:
    """Say whether a line is empty: in tables of one column, it would be a missing value."""
    return lines.startswith(b"\n") or b"\n\n" in lines


def _unix(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n") if b"\r" in lines else lines


class _Table:
    """A table whose parts are read one after the other.

    Parameters
    ----------
    header : sequence of str
    separator : str
    names : frozenset of str
        Columns that stay text.

    Attributes
    ----------
    kinds : dict of str to polars.DataType
        Type of each column, once a part was read.
    ends_blank : bool
        The last line has nothing but blanks, which spreadsheets write below a table.
    """

    def __init__(self, header: list[str], separator: str, names: frozenset[str]) -> None:
        self.header, self.separator, self.names = header, separator, names
        self.kinds: dict[str, Any] = {}
        self.ends_blank = False

    def read(self, lines: bytes) -> pl.DataFrame:
        """Read some lines, and widen the types of columns where they need it."""
        import polars as pl

        sign = self.separator.encode()
        rows = lines.count(b"\n")
        # Polars refuses lines with more fields; and with this number of signs, none has fewer.
        if not rows or lines.count(sign) != rows * (len(self.header) - 1):
            raise _IrregularError
        if any(sign in lines for sign in _IRREGULAR) or (len(self.header) == 1 and _has_gap(lines)):
            raise _IrregularError
        if not lines.isascii():
            lines.decode()  # or it is not UTF-8
        self.ends_blank = not lines[lines.rfind(b"\n", 0, -1) + 1 :].strip()
        frame = None
        if self.kinds and not _leading_zeros(lines, sign):
            with suppress(pl.exceptions.PolarsError):  # a column may need another type
                frame = self._stripped(self._parsed(lines, self.kinds), lines)
        if frame is None:
            frame = self._typed(lines)
        if frame.height != rows:  # Polars leaves out empty lines
            raise _IrregularError
        return frame

    def _stripped(self, frame: pl.DataFrame, lines: bytes) -> pl.DataFrame:
        """Leave out blanks around names."""
        import polars as pl

        if lines.isascii() and not any(s.encode() in lines for s in _BLANKS - {self.separator}):
            return frame
        return frame.with_columns(pl.col(pl.String).str.strip_chars().replace("", None))

    def widened(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a part with the types of all parts."""
        import polars as pl

        # Not by pl.col: it takes a name such as ^.*$ for a pattern.
        return pl.DataFrame([column.cast(self.kinds[column.name]) for column in frame])

    def _parsed(self, lines: bytes, kinds: Mapping[str, Any]) -> pl.DataFrame:
        """Parse lines; lines with more fields than the header are an error of Polars."""
        import polars as pl

        return pl.read_csv(
            lines,
            has_header=False,
            schema=dict(kinds),
            separator=self.separator,
        )

    def _typed(self, lines: bytes) -> pl.DataFrame:
        """Read text, and decide which columns hold numbers."""
        import polars as pl

        texts = {name for name, kind in self.kinds.items() if kind == pl.String}
        try:
            frame = self._parsed(lines, dict.fromkeys(self.header, pl.String()))
        except pl.exceptions.PolarsError as error:
            raise _IrregularError from error
        frame = typed_frame(frame, self.names | texts, ".")
        for name, kind in frame.schema.items():
            before = self.kinds.get(name, kind)
            if kind == pl.String and before != pl.String:
                raise _TextError(name)
            self.kinds[name] = pl.Float64() if pl.Float64 in (kind, before) else kind
        return frame


def _leading_zeros(lines: bytes, separator: bytes) -> bool:
    """Say whether a field may begin with a zero and another digit, as text does."""
    starts, plus, minus = (ord("\n"), separator[0]), ord("+"), ord("-")
    letters = np.frombuffer(b"\n\n" + lines, dtype=np.uint8)
    for at in range(0, len(letters), _BLOCK):
        block = letters[at : at + _BLOCK + 3]
        found = (block[2:-1] == ord("0")) & (block[3:] - ord("0") < 10)
        if not found.any():
            continue
        before = block[1:-2]
        found &= (
            (before == starts[0]) | (before == starts[1]) | (before == plus) | (before == minus)
        )
        for i in np.flatnonzero(found).tolist():
            # The sign may be within a date.
            if block[i + 1] in starts or block[i] in starts:
                return True
    return False


def _check_exact(frame: pl.DataFrame) -> None:
    """Refuse integers that may become equal as floats: `csv_frame` may keep them as text."""
    import polars as pl

    largest = frame.select(pl.col(pl.Float64).abs().max()).rows()
    if any(value is not None and value >= _EXACT for row in largest for value in row):
        raise _IrregularError
