"""For each type of value: how it is written as JSON, read back, and described by a JSON Schema."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, TypeAlias, Union, get_args, get_origin

from errcomp.codec.fields import Field
from errcomp.errors import InputError


@dataclass(frozen=True, slots=True)
class Meta:
    """Bounds of a type, named like those of ``msgspec.Meta``, which is imported on demand."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None


@dataclass(frozen=True, slots=True)
class NullAs:
    """Marks the value that is null in a document, e.g. NaN, which JSON does not have."""

    value: Any


@dataclass(frozen=True, slots=True)
class Each:
    """Marks an array: a list of values of this type in a document."""

    type: Any


#: Largest logarithm whose exponential is finite, rounded down.
_LARGEST_LOG = 700.0

Count: TypeAlias = Annotated[int, Meta(ge=0)]
#: A fraction of a whole, or a probability.
Share: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
#: A probability that is neither 0 nor 1: the coverage of an interval.
Coverage: TypeAlias = Annotated[float, Meta(gt=0.0, lt=1.0)]
#: A standard deviation, or another number that cannot be negative.
Size: TypeAlias = Annotated[float, Meta(ge=0.0)]
Positive: TypeAlias = Annotated[float, Meta(gt=0.0)]
#: A value on the log scale.
Log: TypeAlias = Annotated[float, Meta(ge=-_LARGEST_LOG, le=_LARGEST_LOG)]
#: The value of a grouping key.
Scalar: TypeAlias = str | int | float | bool | None

#: Undefined values (NaN) and infinite times are null in a document.
Undefined, Endless = NullAs(math.nan), NullAs(math.inf)


class Shape(Protocol):
    """A type of value: how to write it, read it, and describe it in a schema."""

    def write(self, value: Any) -> Any:
        """Return a value as plain JSON data."""

    def read(self, field: Field) -> Any:
        """Return the value; raise InputError with its path if it is invalid."""

    def schema(self, names: Names) -> dict[str, Any]:
        """Return its JSON Schema."""


#: Schemas of the classes in a document, by name.
Names: TypeAlias = dict[str, dict[str, Any]]


def plain(value: Any) -> Any:
    """Convert a value to plain JSON data: no NumPy types; NaN and infinity become None.

    Examples
    --------
    >>> plain({"a": float("nan"), "b": (1, 2.5)})
    {'a': None, 'b': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def plain_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return these keys with plain values; see `plain`."""
    return {name: plain(value) for name, value in values.items()}


def json_text(document: Any) -> str:
    """Return a document as the JSON text that commands print."""
    return json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Anything:
    """Any JSON value."""

    def write(self, value: Any) -> Any:
        """Return plain values."""
        return plain(value)

    def read(self, field: Field) -> Any:
        """Return the value as it is."""
        return field.value

    def schema(self, names: Names) -> dict[str, Any]:
        """Allow everything."""
        return {}


@dataclass(frozen=True)
class Leaf:
    """Text, a number, true or false, or one of several words, within bounds."""

    annotation: Any
    meta: Meta

    def write(self, value: Any) -> Any:
        """Return a plain value."""
        return plain(value)

    def read(self, field: Field) -> Any:
        """Return the value if it is of this type and within its bounds."""
        import msgspec

        try:
            return msgspec.convert(field.value, self.type)
        except msgspec.ValidationError:
            field.refuse(_wanted(self.annotation, self.meta))

    def schema(self, names: Names) -> dict[str, Any]:
        """Return the schema of the type with its bounds."""
        import msgspec

        return msgspec.json.schema(self.type)

    @cached_property
    def type(self) -> Any:
        """The type with its bounds, as msgspec expects it."""
        import msgspec

        return Annotated[self.annotation, msgspec.Meta(**asdict(self.meta))]


@dataclass(frozen=True)
class Day:
    """A date."""

    def write(self, value: date) -> str:
        """Return the day as text."""
        return value.isoformat()

    def read(self, field: Field) -> date:
        """Return the day."""
        try:
            return date.fromisoformat(field.value)
        except (TypeError, ValueError):
            field.refuse("a date such as 2026-01-31")

    def schema(self, names: Names) -> dict[str, Any]:
        """Return the schema of a date."""
        return {"type": "string", "format": "date"}


@dataclass(frozen=True)
class Nullable:
    """A value, or null for a value that JSON does not have."""

    inner: Shape
    null: Any

    def write(self, value: Any) -> Any:
        """Return the value, or None."""
        return None if value is None or value == self.null else self.inner.write(value)

    def read(self, field: Field) -> Any:
        """Return the value, or the meaning of null."""
        return self.null if field.value is None else self.inner.read(field)

    def schema(self, names: Names) -> dict[str, Any]:
        """Return the schema of the value, extended by null."""
        inner = self.inner.schema(names)
        if isinstance(inner.get("type"), str):
            return {**inner, "type": [inner["type"], "null"]}
        return {"anyOf": [inner, {"type": "null"}]}


@dataclass(frozen=True)
class Items:
    """A list; `make` converts it to its type in memory."""

    item: Shape
    fewest: int
    make: Callable[[list[Any]], Any]

    def write(self, value: Any) -> list[Any]:
        """Return a list."""
        values = value.tolist() if hasattr(value, "tolist") else value
        return [self.item.write(element) for element in values]

    def read(self, field: Field) -> Any:
        """Return the elements, converted by `make`."""
        return self.make([self.item.read(element) for element in field.items(self.fewest)])

    def schema(self, names: Names) -> dict[str, Any]:
        """Return the schema of an array."""
        array: dict[str, Any] = {"type": "array", "items": self.item.schema(names)}
        return array | ({"minItems": self.fewest} if self.fewest else {})


@dataclass(frozen=True)
class Fixed:
    """A list of fixed length, each value of its own type."""

    parts: tuple[Shape, ...]

    def write(self, value: Sequence[Any]) -> list[Any]:
        """Return a list."""
        return [part.write(element) for part, element in zip(self.parts, value, strict=True)]

    def read(self, field: Field) -> Any:
        """Return a tuple."""
        elements = list(field.items())
        if len(elements) != len(self.parts):
            field.refuse(f"a list of length {len(self.parts)}")
        return tuple(part.read(x) for part, x in zip(self.parts, elements, strict=True))

    def schema(self, names: Names) -> dict[str, Any]:
        """Return the schema of an array of this length."""
        n = len(self.parts)
        parts = [part.schema(names) for part in self.parts]
        return {"type": "array", "prefixItems": parts, "minItems": n, "maxItems": n}


@dataclass(frozen=True)
class Table:
    """An object whose values are all of one type."""

    value: Shape

    def write(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object."""
        return {str(key): self.value.write(element) for key, element in value.items()}

    def read(self, field: Field) -> dict[str, Any]:
        """Return the keys with their values."""
        return {key: self.value.read(field.at(key)) for key in field.object()}

    def schema(self, names: Names) -> dict[str, Any]:
        """Return the schema of an object."""
        return {"type": "object", "additionalProperties": self.value.schema(names)}


@dataclass(frozen=True)
class Nested:
    """An object of a class that defines its own JSON: a `Document`."""

    cls: Any

    def write(self, value: Any) -> dict[str, Any]:
        """Return the object."""
        written: dict[str, Any] = value.keys()
        return written

    def read(self, field: Field) -> Any:
        """Return the object of the class."""
        return self.cls.from_field(field)

    def schema(self, names: Names) -> dict[str, Any]:
        """Return a reference to the schema of the class."""
        name = self.cls.__name__
        if name not in names:
            names[name] = {}
            names[name] = self.cls.json_schema(names)
        return {"$ref": f"#/$defs/{name}"}


@dataclass(frozen=True)
class AnyOf:
    """A value of one of several types: the first that accepts it."""

    parts: tuple[Shape, ...]

    def write(self, value: Any) -> Any:
        """Return a plain value."""
        return plain(value)

    def read(self, field: Field) -> Any:
        """Return the value as read by the first type that accepts it."""
        for part in self.parts[:-1]:
            with contextlib.suppress(InputError):
                return part.read(field)
        return self.parts[-1].read(field)

    def schema(self, names: Names) -> dict[str, Any]:
        """Return a schema that allows each type."""
        return {"anyOf": [part.schema(names) for part in self.parts]}


def array(values: list[Any]) -> Any:
    """Return an array; import NumPy only when a document is read."""
    import numpy as np

    return np.array(values)


def shape_of(annotation: Any) -> Shape:
    """Return the shape of a type, which may be annotated with bounds and `NullAs`.

    Examples
    --------
    >>> shape_of(tuple[Annotated[float, Undefined], ...]).write([0.5, math.nan])
    [0.5, None]
    >>> shape_of(Mapping[str, Count]).schema({})["additionalProperties"]
    {'type': 'integer', 'minimum': 0}
    """
    marks: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        marks = tuple(rest)
    given = next((mark for mark in marks if isinstance(mark, Each)), None)
    if given is not None:
        return Items(shape_of(given.type), 0, array)
    meta = next((mark for mark in marks if isinstance(mark, Meta)), Meta())
    null = next((mark for mark in marks if isinstance(mark, NullAs)), None)
    shape = _bare(annotation, meta)
    return shape if null is None else Nullable(shape, null.value)


def _bare(annotation: Any, meta: Meta) -> Shape:
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object:
        return Anything()
    if origin in (Union, UnionType) and set(parts) == set(get_args(Scalar)):
        return Leaf(annotation, meta)
    if origin in (Union, UnionType) and NoneType in parts:
        rest = [part for part in parts if part is not NoneType]
        return Nullable(shape_of(Annotated[Union[tuple(rest)], meta]), None)  # noqa: UP007
    if origin in (Union, UnionType):
        return AnyOf(tuple(map(shape_of, parts)))
    if annotation is date:
        return Day()
    if hasattr(annotation, "from_field"):
        return Nested(annotation)
    if origin is tuple and parts[-1] is not ...:
        return Fixed(tuple(map(shape_of, parts)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Table(shape_of(parts[1]))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        make = list if origin is list else tuple
        return Items(shape_of(parts[0]), meta.min_length or 0, make)
    return Leaf(annotation, meta)


def _wanted(annotation: Any, meta: Meta) -> str:
    """Describe in words the values that a leaf allows."""
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    if annotation is str:
        return "text"
    if get_origin(annotation) in (Union, UnionType):
        return "text or a number"
    if annotation is bool:
        return "true or false"
    if annotation is int:
        most = "" if meta.le is None else f", at most {meta.le}"
        return "a whole number" + (", not negative" if meta.ge == 0 else "") + most
    if meta.ge is not None:
        if meta.le is None:
            return f"a number of at least {meta.ge:g}"
        return f"a number from {meta.ge:g} to {meta.le:g}"
    above = "" if meta.gt is None else f" above {meta.gt:g}"
    return f"a number{above}" + ("" if meta.lt is None else f" and below {meta.lt:g}")
