"""What one key of a node or of a document may hold: checked, described and shown in one place.

The same table validates arguments in Python, reads JSON and makes the published JSON Schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal

from errcomp.errors import InputError

__all__ = [
    "Field",
    "choice",
    "integer",
    "listed",
    "name",
    "number",
    "read_object",
    "shown",
    "text",
]

Holds = Literal["value", "node", "nodes", "parameter"]
_SHOWN = 60
_LONGEST_NAME = 4096


@dataclass(frozen=True)
class Field:
    """One key.

    Attributes
    ----------
    check : callable
        Takes a value and where it stands; returns it in its proper type or raises InputError.
    schema : mapping
        The same as JSON Schema.
    holds : {"value", "node", "nodes", "parameter"}
        A plain value, a graph node, a list of nodes, or a number or uncertain quantity.
    """

    check: Callable[[Any, str], Any]
    schema: Mapping[str, Any] = field(default_factory=dict)
    holds: Holds = "value"


def shown(value: object) -> str:
    """Write a value as it was given, cut to one line."""
    if isinstance(value, dict | list | tuple) and len(value) > 3:
        return f"{type(value).__name__} of {len(value)}"
    try:
        written = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return written if len(written) <= _SHOWN else written[: _SHOWN - 1] + "…"


def number(
    *, low: float | None = None, above: float | None = None, high: float | None = None
) -> Field:
    """Return a finite number within bounds (``above``: strictly)."""
    bounds = [
        words
        for bound, words in (
            (low, f"of at least {low:g}" if low is not None else ""),
            (above, f"greater than {above:g}" if above is not None else ""),
            (high, f"at most {high:g}" if high is not None else ""),
        )
        if bound is not None
    ]
    wanted = "a finite number" + (f" {' and '.join(bounds)}" if bounds else "")

    def check(value: Any, where: str) -> float:
        if isinstance(value, Real) and not isinstance(value, bool):
            try:
                found = float(value)
            except OverflowError:
                found = math.inf
            outside = (
                (low is not None and found < low)
                or (above is not None and found <= above)
                or (high is not None and found > high)
            )
            if math.isfinite(found) and not outside:
                return found
        raise InputError(f"{where}: must be {wanted}, got {shown(value)}")

    schema: dict[str, Any] = {"type": "number"}
    if low is not None:
        schema["minimum"] = low
    if above is not None:
        schema["exclusiveMinimum"] = above
    if high is not None:
        schema["maximum"] = high
    return Field(check, schema)


def integer(low: int) -> Field:
    """Return a whole number of at least ``low`` that fits 64 bits."""

    def check(value: Any, where: str) -> int:
        whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value) % 1 == 0)
        if whole and not isinstance(value, bool) and low <= value < 2**63:
            return int(value)
        raise InputError(f"{where}: must be a whole number of at least {low}, got {shown(value)}")

    return Field(check, {"type": "integer", "minimum": low})


def text() -> Field:
    """Return any text."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise InputError(f"{where}: must be text, got {shown(value)}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{where}: is not valid Unicode text: {shown(value)}") from error
        return value

    return Field(check, {"type": "string"})


def name() -> Field:
    """Return text that can name something: not empty, without zero characters, not endless."""
    plain = text().check

    def check(value: Any, where: str) -> str:
        found: str = plain(value, where)
        if not found or "\0" in found or len(found) > _LONGEST_NAME:
            raise InputError(
                f"{where}: must be a name of 1 to {_LONGEST_NAME:,} characters without zero "
                f"characters, got {shown(value)}"
            )
        return found

    return Field(check, {"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME})


def choice(values: Iterable[str]) -> Field:
    """Return one of these words."""
    known = tuple(values)

    def check(value: Any, where: str) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise InputError(f"{where}: must be one of {', '.join(known)}, got {shown(value)}")

    return Field(check, {"enum": list(known)})


def read_object(
    value: Any, where: str, keys: Iterable[str], required: Iterable[str]
) -> Mapping[str, Any]:
    """Check that this is an object with the keys required and none that is unknown."""
    dot = f"{where}: " if where else ""
    if not isinstance(value, Mapping):
        raise InputError(f"{dot}must be an object, got {shown(value)}")
    known = list(keys)
    unknown = [key for key in value if key not in known]
    if unknown:
        raise InputError(f"{dot}unknown key {listed(unknown)}. Known here: {', '.join(known)}.")
    missing = [key for key in required if key not in value]
    if missing:
        raise InputError(f"{dot}missing key {listed(missing)}")
    return value


def listed(names: Iterable[object]) -> str:
    """Write the first three names and count the others."""
    items = list(names)
    more = f" (and {len(items) - 3:,} more)" if len(items) > 3 else ""
    return ", ".join(shown(item) for item in items[:3]) + more
