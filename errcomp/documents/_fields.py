"""One value of a document and where it stands: read as what it must be, or refused in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from errcomp.errors import InputError

__all__ = [
    "Field",
    "above",
    "anything",
    "between",
    "choice",
    "count",
    "coverage",
    "flag",
    "log",
    "many",
    "mapping",
    "maybe",
    "null_as",
    "number",
    "or_nan",
    "scalar",
    "share",
    "size",
    "text",
]

T = TypeVar("T")
Reader = Callable[["Field"], T]

_SHOWN = 60
#: Logarithms whose exponential exists.
_LARGEST_LOG = 700.0


@dataclass(frozen=True, slots=True)
class Field:
    """A value with its path, e.g. ``rows[3].mape_low``; the document itself has the path ""."""

    value: Any
    path: str = ""

    def __call__(self, key: str, reader: Reader[T]) -> T:
        """Read the value of a key of this object."""
        return reader(self.at(key))

    def at(self, key: str) -> Field:
        """Return the value of a key of this object, which must be there."""
        if key not in self.object():
            here = f"{self.path} has" if self.path else "there is"
            raise InputError(f"{here} no key {key!r}")
        return Field(self.value[key], f"{self.path}.{key}" if self.path else key)

    def has(self, key: str) -> bool:
        """Say whether there is such a key."""
        return key in self.object()

    def object(self) -> Mapping[str, Any]:
        """Return the keys and values."""
        if not isinstance(self.value, Mapping):
            self.refuse("an object")
        return self.value

    def make(self, cls: Callable[..., T], /, **readers: Reader[Any]) -> T:
        """Make a result of the keys of the same names."""
        return cls(**{name: self(name, reader) for name, reader in readers.items()})

    def refuse(self, wanted: str) -> NoReturn:
        """Say what must stand here, and what does."""
        raise InputError(
            f"{self.path or 'the document'} must be {wanted}, got {_shown(self.value)}"
        )


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"an object of {len(value)} keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    written = repr(value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"


def anything(field: Field) -> Any:
    """Return the value as it is."""
    return field.value


def text(field: Field) -> str:
    """Return text."""
    if not isinstance(field.value, str):
        field.refuse("text")
    return field.value


def flag(field: Field) -> bool:
    """Return true or false."""
    if not isinstance(field.value, bool):
        field.refuse("true or false")
    return field.value


def scalar(field: Field) -> Any:
    """Return the value of a grouping key: text, a number, true, false or null."""
    if isinstance(field.value, Mapping | list | tuple):
        field.refuse("text or a number")
    return field.value


def number(field: Field) -> float:
    """Return a number."""
    if isinstance(field.value, bool) or not isinstance(field.value, int | float):
        field.refuse("a number")
    return float(field.value)


def between(low: float, high: float) -> Reader[float]:
    """Return a reader of numbers from low to high."""

    def reader(field: Field) -> float:
        found = number(field)
        if not low <= found <= high:
            to = f" to {high:g}" if high < math.inf else " on"
            field.refuse(f"a number from {low:g}{to}")
        return found

    return reader


def above(low: float, *, below: float = math.inf) -> Reader[float]:
    """Return a reader of numbers greater than low, and less than another."""

    def reader(field: Field) -> float:
        found = number(field)
        if not low < found < below:
            field.refuse(f"a number above {low:g}{f' and below {below:g}' * (below < math.inf)}")
        return found

    return reader


#: A fraction of a whole, or a probability.
share = between(0.0, 1.0)
#: What is neither impossible nor certain: the coverage of an interval.
coverage = above(0.0, below=1.0)
#: A standard deviation, or what else cannot be negative.
size = between(0.0, math.inf)
#: A value on the log scale.
log = between(-_LARGEST_LOG, _LARGEST_LOG)


def count(field: Field) -> int:
    """Return a whole number, not negative."""
    if isinstance(field.value, bool) or not isinstance(field.value, int) or field.value < 0:
        field.refuse("a whole number, not negative")
    return field.value


def choice(words: Iterable[str]) -> Reader[Any]:
    """Return a reader of one of these words."""
    known = tuple(words)

    def reader(field: Field) -> str:
        if field.value not in known:
            field.refuse(f"one of {', '.join(known)}")
        return text(field)

    return reader


def maybe(reader: Reader[T]) -> Reader[T | None]:
    """Return a reader that takes null for None."""
    return lambda field: None if field.value is None else reader(field)


def null_as(reader: Reader[float], value: float) -> Reader[float]:
    """Return a reader that takes null for this number."""
    return lambda field: value if field.value is None else reader(field)


def or_nan(reader: Reader[float]) -> Reader[float]:
    """Return a reader that takes null for NaN: a figure that is not defined."""
    return null_as(reader, math.nan)


def many(reader: Reader[T], *, fewest: int = 0) -> Reader[tuple[T, ...]]:
    """Return a reader of lists."""

    def read(field: Field) -> tuple[T, ...]:
        if not isinstance(field.value, list | tuple):
            field.refuse("a list")
        if len(field.value) < fewest:
            field.refuse(f"a list of at least {fewest}")
        return tuple(reader(Field(v, f"{field.path}[{i}]")) for i, v in enumerate(field.value))

    return read


def mapping(reader: Reader[T]) -> Reader[dict[str, T]]:
    """Return a reader of objects whose values are all of one kind."""
    return lambda field: {key: field(key, reader) for key in field.object()}
