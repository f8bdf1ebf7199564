"""The keys of a result in a document: one list for writing, for reading and for the schema."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from errcomp.codec.fields import Field
from errcomp.codec.shapes import Names, Shape, json_text, plain, shape_of
from errcomp.errors import InputError

_END = shape_of(float | None)


class Part:
    """Some keys of an object, and the fields of the class whose values they hold.

    Subclass it where fields and keys do not correspond one to one.
    """

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the keys with their values."""
        raise NotImplementedError

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the values of the fields, by name, from the object in a document."""
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
        """Return the schema of the field's type."""
        return {self.key: self.shape.schema(names)}


@dataclass(frozen=True)
class Derived(Part):
    """A key whose value is derived from the fields; compared when a document is read."""

    key: str
    type: Any
    get: Callable[[Any], Any]

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the key with the derived value."""
        return {self.key: plain(self.get(result))}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Check that the key exists; return no fields."""
        field.at(self.key)
        return {}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return the schema of its type."""
        return {self.key: shape_of(self.type).schema(names)}


@dataclass(frozen=True)
class Ends(Part):
    """The bounds of an interval: two nulls mean no interval, a null upper bound means infinity.

    The keys have the names of the fields.
    """

    low: str = "low"
    high: str = "high"

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return both bounds."""
        return {name: plain(getattr(result, name)) for name in (self.low, self.high)}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return both bounds."""
        return dict(zip((self.low, self.high), interval(field, self.low, self.high), strict=True))

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return the schemas of two numbers that may be null."""
        return {name: _END.schema(names) for name in (self.low, self.high)}


def interval(field: Field, low: str, high: str) -> tuple[float | None, float | None]:
    """Read the bounds of an interval: two nulls are None, a null upper bound alone is infinity."""
    start, end = _END.read(field.at(low)), _END.read(field.at(high))
    if start is None:
        if end is not None:
            field.at(low).refuse("a number, because the upper bound is a number")
        return None, None
    if end is not None and end < start:
        field.at(high).refuse(f"at least the lower bound, {start:g}")
    return start, math.inf if end is None else end


@dataclass(frozen=True)
class Within(Part):
    """Fields that are written as an inner object."""

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
        """Return the schema of the object."""
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
    """A field whose keys are written among the keys of the object that holds it."""

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
        """Return the schemas of the field's keys."""
        return dict(self.of.json_schema(names)["properties"])


@dataclass(frozen=True)
class Rows(Part):
    """Fields that are columns of equal length: in a document, a list with one object per row.

    Attributes
    ----------
    key : str
        Key of the list.
    columns : mapping of str to (str, type, callable)
        Key in a row → field of the class, type of its values, and a callable that turns a list of
        values into the field (`numpy.array`, `tuple`, `words`).
    fewest : int
        Least number of rows.
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
        rows = [
            [shape.read(row.at(name)) for name, shape in self._shapes.items()]
            for row in field.at(self.key).items(self.fewest)
        ]
        return {
            name: make([row[i] for row in rows])
            for i, (name, _, make) in enumerate(self.columns.values())
        }

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return the schema of an array of objects."""
        properties = {name: shape.schema(names) for name, shape in self._shapes.items()}
        rows = {"type": "array", "items": closed(properties), "minItems": self.fewest}
        return {self.key: rows}

    @cached_property
    def _shapes(self) -> dict[str, Shape]:
        """The shapes of the columns, by the names in the document."""
        return {name: shape_of(type_) for name, (_, type_, _) in self.columns.items()}


def words(values: list[str]) -> Any:
    """Return an array of texts."""
    import numpy as np

    return np.array(values, dtype=object)


@dataclass(frozen=True)
class IfKnown(Part):
    """A field that is written only where it is known, so that older documents need not have it."""

    name: str
    shape: Shape

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return the key with the value; nothing for None."""
        value = getattr(result, self.name)
        return {} if value is None else {self.name: self.shape.write(value)}

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the field; None without the key."""
        known = field.has(self.name)
        return {self.name: self.shape.read(field.at(self.name)) if known else None}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Return the schema of the field's type."""
        return {self.name: self.shape.schema(names)}


@dataclass(frozen=True)
class GroupKeys(Part):
    """The values of the grouping keys, which are written among the keys of a row.

    A key of the document, by default ``by``, lists their names. A row for all groups together has
    none.
    """

    name: str = "key"
    names: str = "by"

    def write(self, result: Any) -> Mapping[str, Any]:
        """Return each key with its value."""
        return dict(plain(getattr(result, self.name)))

    def read(self, field: Field) -> Mapping[str, Any]:
        """Return the values of the keys that this row has."""
        values = {}
        for key in field.document[self.names]:
            if field.has(key):
                values[key] = field.value[key]
                if isinstance(values[key], Mapping | list | tuple):
                    field.at(key).refuse("text or a number")
        return {self.name: values}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        """Allow keys of any name, whose values are text or a number."""
        return {"*": {"type": ["string", "number", "boolean", "null"]}}


def key(name: str, field: str, type_: Any = None) -> Key:
    """Return a `Key` for a field; without a type, it has the type of the field."""
    return Key(name, field, cast(Shape, None) if type_ is None else shape_of(type_))


def if_known(name: str) -> IfKnown:
    """Return an `IfKnown` with the type of its field."""
    return IfKnown(name, cast(Shape, None))


class Document:
    """A result, or a part of a result, that is written as JSON.

    A subclass is a dataclass. Its fields are written under their own names, in their order, unless
    `KEYS` lists other keys.

    Attributes
    ----------
    KEYS : tuple
        Names of fields, and `Part` objects.
    SCHEMA, COMMAND : str
        For a whole document: the name and version of its schema, and the command that writes it.
    """

    __slots__ = ()
    KEYS: ClassVar[tuple[str | Part, ...]] = ()
    SCHEMA: ClassVar[str] = ""
    COMMAND: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: fractions, not per cent; None for undefined values.

        Examples
        --------
        >>> import errcomp as ec
        >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> document = audit.to_dict()
        >>> document["schema"], document["n"], document["rows"][0]["n"]
        ('errcomp.audit/1', 2, 2)
        """
        return {"schema": self.SCHEMA, **self.keys()} if self.SCHEMA else self.keys()

    def keys(self) -> dict[str, Any]:
        """Return the keys of `to_dict` without the schema, for use within another document."""
        written: dict[str, Any] = {}
        for part in parts_of(type(self)):
            written.update(part.write(self))
        return written

    def to_json(self) -> str:
        """Return the text that ``--json`` prints and `errcomp.read_result` reads.

        Examples
        --------
        >>> import errcomp as ec
        >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> audit.to_json().splitlines()[1]
        '  "schema": "errcomp.audit/1",'
        """
        return json_text(self.to_dict())

    @classmethod
    def from_field(cls, field: Field) -> Self:
        """Return the result that an object in a document holds; refuse contradictory values."""
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
        """Refuse values of the document that contradict each other; name their paths."""

    @classmethod
    def json_schema(cls, names: Names) -> dict[str, Any]:
        """Return the JSON Schema of the object; add the schemas of inner classes to `names`."""
        described = attributes_told(cls)
        properties: dict[str, Any] = {"schema": {"const": cls.SCHEMA}} if cls.SCHEMA else {}
        optional = []
        for part in parts_of(cls):
            for name, schema in part.schema(names).items():
                text = described.get(part.name if isinstance(part, Key) else name)
                properties[name] = {"description": text, **schema} if text else schema
                optional += [name] if isinstance(part, IfKnown) else []
        others = properties.pop("*", False)
        return {
            "description": (cls.__doc__ or "").partition("\n")[0],
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name not in optional],
            "additionalProperties": others,
        }


_PARTS: dict[type, tuple[Part, ...]] = {}


def parts_of(cls: type[Document]) -> tuple[Part, ...]:
    """Return the parts of a class, each with its type."""
    if cls not in _PARTS:
        _PARTS[cls] = tuple(_parts(cls))
    return _PARTS[cls]


def _parts(cls: type[Document]) -> Iterator[Part]:
    for part in cls.KEYS or tuple(field.name for field in fields(cast(Any, cls))):
        named = key(part, part) if isinstance(part, str) else part
        if isinstance(named, Key | IfKnown) and named.shape is None:
            yield replace(named, shape=shape_of(type_of(cls, named.name)))
        else:
            yield named


def type_of(cls: type, name: str) -> Any:
    """Return the type of a field, from the annotation in its class."""
    own = {base: inspect.get_annotations(base) for base in cls.__mro__}
    owner = next(base for base, annotations in own.items() if name in annotations)
    written = own[owner][name]
    names = vars(sys.modules[owner.__module__])
    return eval(written, names) if isinstance(written, str) else written


def attributes_told(cls: type) -> dict[str, str]:
    """Return the description of each attribute, from the docstring of a class.

    Examples
    --------
    >>> from errcomp.results import Caveat
    >>> attributes_told(Caveat)["evidence"]
    'The numbers as a mapping; fractions, not per cent.'
    """
    section = inspect.cleandoc(cls.__doc__ or "").partition("Attributes\n----------\n")[2]
    section = re.split(r"\n\n[A-Z][A-Za-z ]+\n-+\n", section)[0]
    described: dict[str, str] = {}
    for head, text in re.findall(r"^(\S.*)\n((?:    .*\n?|\n)*)", section, re.MULTILINE):
        meaning = " ".join(text.split())
        described |= dict.fromkeys(head.partition(" : ")[0].split(", "), meaning)
    return described
