"""JSON and JSON lines to a frame."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError, describe_rows
from errcomp.readers._strict import loads

if TYPE_CHECKING:
    import polars as pl

__all__ = ["json_frame", "json_lines_frame"]

_BLOCK = 1 << 18


def json_lines_frame(path: Path, text: str) -> pl.DataFrame:
    """Read one JSON object per line."""
    table = _Columns(path, "line")
    for lines in _some_lines(text.rstrip("\n")):
        try:
            # Many lines at once are parsed three times as fast as one by one.
            records = loads(f"[{','.join(lines)}]")
        except ValueError:
            records = []
        if len(records) != len(lines):
            first = table.n + 1
            records = [_line(path, number, line) for number, line in enumerate(lines, first)]
        table.add(records)
    return table.frame()


def _some_lines(text: str) -> Iterator[list[str]]:
    """Yield the lines of some hundred KiB at a time."""
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
    # The line of a mistake within a record is known only if there is but one.
    content = _loads(path, text, first_line=1 if text.strip().count("\n") == 0 else None)
    if isinstance(content, dict):
        content = content.get("rows")
    if not isinstance(content, list):
        raise InputError(
            f'{path}: expected a list of records, or an object with such a list as "rows". '
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
            "The file may be cut off; JSON lines hold one object per line."
        ) from error
    except ValueError as error:
        where = "" if first_line is None else f"line {first_line}: "
        raise InputError(f"{path}: {where}{error}. Fix the record.") from error


class _Columns:
    """The values of records by name: lists of values take a fraction of the memory of records."""

    def __init__(self, path: Path, word: str) -> None:
        self.path, self.word, self.n = path, word, 0
        self.values: dict[str, list[Any]] = {}
        self.bad: list[int] = []
        self.first_bad: Any = None

    def add(self, records: Iterable[Any]) -> None:
        """Take more records."""
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
        """Return them as columns; the lists are given up."""
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
                "Leave it out, or give each part a column."
            )
        broken = [i for i, value in enumerate(values, start=1) if not _is_text(value)]
        if broken or not _is_text(name):
            shown = _short(values[broken[0] - 1] if broken else name)
            where = describe_rows(broken, word=self.word) if broken else "the names"
            raise InputError(
                f"{self.path}: {_short(name)}: a lone surrogate (half a character), got {shown} in "
                f"{where}. Write the character as UTF-8."
            )


def _is_text(value: Any) -> bool:
    """Can this be stored; JSON may hold lone surrogates, which are halves of characters."""
    if not isinstance(value, str) or value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(name: str, values: list[Any]) -> pl.Series:
    """Choose one type for a column; a mixture becomes text, so that no value is lost."""
    import polars as pl

    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int} and all(v is None or abs(v) < 2**63 for v in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= {int, float}:
        with contextlib.suppress(OverflowError):  # an integer that no float can hold
            floats = [None if v is None else float(v) for v in values]
            # Two integers (numbers of runs, say) must not become one as floats: they stay text.
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
