"""Strict reading of numbers, JSON and CSV, without the leniency of Python's own functions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from errcomp.errors import InputError

#: Python reads 1_000 as 1000, and digits of any script; in a table both are mistakes.
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)",
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


def loads(text: str | bytes) -> Any:
    """Parse JSON, refusing repeated names in an object; raises only ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError(f"an object names {doubles(name for name, _ in pairs)[0]!r} twice")
    return members


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
                f"{path}: line 1: missing column {', '.join(missing)}. Columns found: "
                f"{', '.join(header) or 'none'}."
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
                    "The file may be cut off: copy it again."
                )
            rows.append((reader.line_num, dict(zip(header, row, strict=True))))
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num}: not valid CSV ({error}). Copy the file again."
        ) from error
    return rows
