"""Strict reading of numbers, JSON and CSV, without the leniency of Python's own functions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from errcomp.errors import InputError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
#: Python reads 1_000 as 1000, and digits of any script; in a table both are mistakes.
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)


def is_number(text: str) -> bool:
    """Is this a number in ASCII digits with a decimal point (or inf, or nan)."""
    return _NUMBER.fullmatch(text.strip()) is not None


def number(text: str) -> float:
    """Turn text into a number; raises ValueError."""
    if not is_number(text):
        raise ValueError(f"not a number: {text[:40]!r}")
    return float(text)


class DoubledNameError(ValueError):
    """An object of JSON holds a name twice: which of the values counts is unknown."""


def loads(text: str | bytes) -> Any:
    """Parse JSON, refusing repeated names in an object; raises only ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def loads_text(text: str) -> Any:
    """Parse JSON as `loads` does, and refuse halves of characters, which no table can hold."""
    found = loads(text)
    if _SURROGATE.search(text) is None:
        return found
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        lone = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(
            f"half a character (the lone surrogate {lone}), which is not text"
        ) from None
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        double = doubles(name for name, _ in pairs)[0]
        raise DoubledNameError(f"an object names {double!r} twice")
    return members


def refuse_doubles(text: str | bytes, decoded: Mapping[str, int]) -> None:
    """Refuse repeated names in JSON that a faster parser has decoded, which takes the last value.

    Parameters
    ----------
    text : str or bytes
        The JSON.
    decoded : mapping of str to int
        Names, and how many values of each were decoded. The text is parsed once more only if it
        holds one of them more often.

    Raises
    ------
    DoubledNameError
        An object names something twice.
    """
    if isinstance(text, bytes):
        often = any(text.count(b'"%b"' % name.encode()) > n for name, n in decoded.items())
    else:
        often = any(text.count(f'"{name}"') > n for name, n in decoded.items())
    if often:
        try:
            loads(text)
        except DoubledNameError:
            raise
        except ValueError:  # the other parser is more lenient
            return


def doubles(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def table(path: Path, text: str, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Read CSV text whose rows must match the header.

    Returns
    -------
    list of tuple of int and dict
        For each row the line on which it ends, and its fields by column.

    Raises
    ------
    InputError
        A column is missing or duplicated, a row has another number of fields, or it is not CSV.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        header = next(reader, [])
        missing = [name for name in needed if name not in header]
        if missing:
            raise InputError(
                f"{path}: line 1: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}. "
                f"Columns found: {', '.join(header) or 'none'}."
            )
        if double := doubles(header):
            raise InputError(
                f"{path}: line 1: the header names {double[0]!r} more than once. Copy the file "
                "again."
            )
        for row in reader:
            if len(row) != len(header):
                raise InputError(
                    f"{path}: line {reader.line_num}: {len(row)} fields, expected {len(header)}. "
                    "The file may be incomplete: copy it again."
                )
            rows.append((reader.line_num, dict(zip(header, row, strict=True))))
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num}: not valid CSV ({error}). Copy the file again."
        ) from error
    return rows
