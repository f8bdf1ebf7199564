"""The keys of a result in a document: one list from which it is written, read and described."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, cast

from errcomp.codec.fields import Field
from errcomp.codec.shapes import Names, Shape, json_text, plain, shape_of
from errcomp.errors import InputError


class Part:
    """Some keys of an object, and the fields of the class that they hold.

    The base is subclassed where fields and keys do not correspond one to one.
    """

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the keys with their values."""
        raise NotImplementedError

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the fields of the class with their values, from the object in a document."""
        raise NotImplementedError

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return the JSON Schema of each key."""
        raise NotImplementedError


@dataclass(frozen=True)
class Key(Part):
    """One field of the class under a key of the document.

    Attributes
    ----------
    key : str
    name : str
        The field.
    shape : Shape
    """

    key: str
    name: str
    shape: Shape

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the key with the value of the field."""
        return {self.key: self.shape.write(getattr(result, self.name))}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the field with the value of the key."""
        return {self.name: self.shape.read(field.at(self.key))}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return that of the type of the field."""
        return {self.key: self.shape.schema(names)}


@dataclass(frozen=True)
class Derived(Part):
    """A key that follows from the fields: written, and compared when a document is read."""

    key: str
    type: Any
    get: Callable[[Any], Any]

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the key with what follows."""
        return {self.key: plain(self.get(result))}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return nothing, but see that it is there."""
        field.at(self.key)
        return {}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return that of its type."""
        return {self.key: shape_of(self.type).schema(names)}


@dataclass(frozen=True)
class Ends(Part):
    """The ends of an interval: null is None for both, and endless for the upper one alone.

    The keys are called as the fields.
    """

    low: str = "low"
    high: str = "high"

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return both ends."""
        return {name: plain(getattr(result, name)) for name in (self.low, self.high)}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return both ends."""
        return dict(zip((self.low, self.high), interval(field, self.low, self.high), strict=True))

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return those of two numbers, or null."""
        return {name: shape_of(float | None).schema(names) for name in (self.low, self.high)}


def interval(field: Field, low: str, high: str) -> tuple[float | None, float | None]:
    """Read the ends of an interval; null is None for both, and endless for the upper one alone."""
    shape = shape_of(float | None)
    start, end = shape.read(field.at(low)), shape.read(field.at(high))
    if start is None:
        if end is not None:
            field.at(low).refuse("a number, as the upper end is one")
        return None, None
    if end is not None and end < start:
        field.at(high).refuse(f"at least the lower end, {start:g}")
    return start, math.inf if end is None else end


@dataclass(frozen=True)
class Within(Part):
    """Fields that stand in an object of their own."""

    key: str
    parts: tuple[Part, ...]

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the object."""
        inner: dict[str, Any] = {}
        for part in self.parts:
            inner.update(part.write(result))
        return {self.key: inner}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the fields."""
        values: dict[str, Any] = {}
        for part in self.parts:
            values.update(part.read(field.at(self.key)))
        return values

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return that of the object."""
        properties: dict[str, Any] = {}
        for part in self.parts:
            properties |= part.schema(names)
        return {self.key: closed(properties)}


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Inline(Part):
    """A field whose own keys stand among those of the object that holds it."""

    name: str
    of: type[Document]

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the keys of the field."""
        inner: Document = getattr(result, self.name)
        return inner.keys()

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the field, read from the same object."""
        return {self.name: self.of.from_field(field)}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return those of the keys of the field."""
        return dict(self.of.json_schema(names)["properties"])


@dataclass(frozen=True)
class Rows(Part):
    """Fields that are columns of equal length: in a document a list with an object for each row.

    Attributes
    ----------
    key : str
        Of the list.
    columns : mapping of str to (str, type, callable)
        By the key in a row, the field of the class, the type of its values, and what makes a field
        of them (`numpy.array`, `tuple`, `words`).
    fewest : int
        Rows that there must be.
    """

    key: str
    columns: Mapping[str, tuple[str, Any, Callable[[list[Any]], Any]]]
    fewest: int = 0

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the list."""
        values = [plain(list(getattr(result, name))) for name, *_ in self.columns.values()]
        return {
            self.key: [
                dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)
            ]
        }

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the columns."""
        shapes = [(name, shape_of(type_)) for name, (_, type_, _) in self.columns.items()]
        rows = [
            [shape.read(row.at(name)) for name, shape in shapes]
            for row in field.at(self.key).items(self.fewest)
        ]
        return {
            name: make([row[i] for row in rows])
            for i, (name, _, make) in enumerate(self.columns.values())
        }

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return that of an array of objects."""
        properties = {
            name: shape_of(type_).schema(names) for name, (_, type_, _) in self.columns.items()
        }
        rows = {"type": "array", "items": closed(properties), "minItems": self.fewest}
        return {self.key: rows}


def words(values: list[str]) -> Any:
    """Return an array of text."""
    import numpy as np

    return np.array(values, dtype=object)


@dataclass(frozen=True)
class GroupKeys(Part):
    """The values of the grouping keys, which stand among the keys of a row.

    The document says in ``by`` what they are called. A row of all groups together has none.
    """

    name: str = "key"

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return each key with its value."""
        return dict(plain(getattr(result, self.name)))

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the values of the keys that this row has."""
        values = {}
        for key in field.document["by"]:
            if field.has(key):
                values[key] = field.value[key]
                if isinstance(values[key], Mapping | list | tuple):
                    field.at(key).refuse("text or a number")
        return {self.name: values}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Allow keys of any name, whose values are text or a number."""
        return {"*": {"type": ["string", "number", "boolean", "null"]}}


def key(name: str, field: str, type_: Any = None) -> Key:
    """Name the key under which a field is written; without a type the field's own is taken."""
    return Key(name, field, cast(Shape, None) if type_ is None else shape_of(type_))


class Document:
    """A result, or a part of one, that documents hold.

    A subclass is a dataclass. Its fields are written under their own names, in their order, unless
    `KEYS` lists other keys.

    Attributes
    ----------
    KEYS : tuple
        Names of fields and `Part`.
    SCHEMA, COMMAND : str
        Of a whole document: its name with its version, and the command that writes it.
    """

    __slots__ = ()
    KEYS: ClassVar[tuple[str | Part, ...]] = ()
    SCHEMA: ClassVar[str] = ""
    COMMAND: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: fractions, not percent; None for what is not defined."""
        return {"schema": self.SCHEMA, **self.keys()} if self.SCHEMA else self.keys()

    def keys(self) -> dict[str, Any]:
        """Return the same within another document: without the name of the schema."""
        written: dict[str, Any] = {}
        for part in parts_of(type(self)):
            written.update(part.write(self))
        return written

    def to_json(self) -> str:
        """Return the text that ``--json`` prints and `errcomp.read_result` reads."""
        return json_text(self.to_dict())

    @classmethod
    def from_field(cls, field: Field) -> Self:
        """Make a result of its object in a document; refuse one that contradicts itself."""
        values: dict[str, Any] = {}
        for part in parts_of(cls):
            values.update(part.read(field))
        try:
            result = cls(**values)
        except InputError as error:
            place = f"{field.path}: " if field.path else ""
            raise InputError(f"{place}{error}") from error
        result._agree(field)
        return result

    def _agree(self, field: Field) -> None:
        """Refuse values of the document that contradict each other; say where they stand."""

    @classmethod
    def json_schema(cls, names: Names) -> dict[str, Any]:
        """Return the JSON Schema of the object; those of classes within it are added to `names`."""
        told = attributes_told(cls)
        properties: dict[str, Any] = {"schema": {"const": cls.SCHEMA}} if cls.SCHEMA else {}
        for part in parts_of(cls):
            for name, schema in part.schema(names).items():
                meant = told.get(part.name if isinstance(part, Key) else name)
                properties[name] = {"description": meant, **schema} if meant else schema
        others = properties.pop("*", False)
        return {
            "description": (cls.__doc__ or "").partition("\n")[0],
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": others,
        }


_PARTS: dict[type, tuple[Part, ...]] = {}


def parts_of(cls: type[Document]) -> tuple[Part, ...]:
    """Return the parts that a class is written as, each with its type."""
    if cls not in _PARTS:
        _PARTS[cls] = tuple(_parts(cls))
    return _PARTS[cls]


def _parts(cls: type[Document]) -> Iterator[Part]:
    for part in cls.KEYS or tuple(field.name for field in fields(cast(Any, cls))):
        named = key(part, part) if isinstance(part, str) else part
        if isinstance(named, Key) and named.shape is None:
            yield replace(named, shape=shape_of(type_of(cls, named.name)))
        else:
            yield named


def type_of(cls: type, name: str) -> Any:
    """Return the type of a field, as it is written in its class."""
    own = {base: inspect.get_annotations(base) for base in cls.__mro__}
    owner = next(base for base, annotations in own.items() if name in annotations)
    written = own[owner][name]
    names = vars(sys.modules[owner.__module__])
    return eval(written, names) if isinstance(written, str) else written


def attributes_told(cls: type) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute.

    Examples
    --------
    >>> from errcomp.results import Caveat
    >>> attributes_told(Caveat)["evidence"]
    'The numbers behind it; fractions, not percent.'
    """
    section = inspect.cleandoc(cls.__doc__ or "").partition("Attributes\n----------\n")[2]
    section = re.split(r"\n\n[A-Z][A-Za-z ]+\n-+\n", section)[0]
    told: dict[str, str] = {}
    for head, text in re.findall(r"^(\S.*)\n((?:    .*\n?|\n)*)", section, re.MULTILINE):
        meaning = " ".join(text.split())
        told |= dict.fromkeys(head.partition(" : ")[0].split(", "), meaning)
    return told
