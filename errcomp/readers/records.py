"""Records that people wrote: JSON and JSON lines."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError, describe_rows
from errcomp.readers.core.content import tell_left_out
from errcomp.system.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import polars as pl

_BLOCK = 1 << 18


def json_lines_frame(path: Path, text: str, needed: Collection[str] = ()) -> pl.DataFrame:
    """Read one JSON object per line; columns of lists that are not needed are left out."""
    table = _Columns(path, "line", needed)
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


def json_frame(path: Path, text: str, needed: Collection[str] = ()) -> pl.DataFrame:
    """Read a list of records, or an object whose ``rows`` are one; see `json_lines_frame`."""
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
    table = _Columns(path, "row", needed)
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

    def __init__(self, path: Path, word: str, needed: Collection[str]) -> None:
        self.path, self.word, self.needed, self.n = path, word, needed, 0
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
        columns, nested = [], []
        for name in list(self.values):
            values = self.values.pop(name)
            values += [None] * (self.n - len(values))
            if self._is_nested(name, values):
                nested.append(name)
                continue
            self._check(name, values)
            columns.append(_column(name, values))
        tell_left_out(self.path, nested)
        return pl.DataFrame(columns)

    def _is_nested(self, name: str, values: Sequence[Any]) -> bool:
        """Say whether a column holds lists or objects; refuse it if it was asked for."""
        nested = [i for i, value in enumerate(values, start=1) if isinstance(value, list | dict)]
        if nested and name in self.needed:
            raise InputError(
                f"{self.path}: {name} must be one value per row, got "
                f"{_short(values[nested[0] - 1])} in {describe_rows(nested, word=self.word)}. Put "
                "each element in a column of its own."
            )
        return bool(nested)

    def _check(self, name: str, values: Sequence[Any]) -> None:
        broken = [i for i, value in enumerate(values, start=1) if not _is_text(value)]
        if broken or not _is_text(name):
            shown = _short(values[broken[0] - 1] if broken else name)
            where = describe_rows(broken, word=self.word) if broken else "the names"
            raise InputError(
                f"{self.path}: {_short(name)} holds half a character (a lone surrogate), got "
                f"{shown} in {where}. Write the whole character as UTF-8."
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
