"""Results as JSON: every class of a result says its keys once, and is written and read by them.

A class derives from `Document`. What its fields hold is said by their types: `Share`, `Count` and
the like bound a number, `Undefined` and `Endless` say what null stands for, `Each` what an array
holds. Where keys and fields differ, the class lists its keys (`KEYS`). A document is read strictly:
every key must be there and of its type, and what follows from other values must agree with them,
so that a page never shows what a command did not find.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from errcomp.codec.fields import Field
from errcomp.codec.keys import (
    Derived,
    Document,
    Ends,
    GroupKeys,
    Inline,
    Key,
    Part,
    Rows,
    Within,
    closed,
    interval,
    key,
    words,
)
from errcomp.codec.shapes import (
    Count,
    Coverage,
    Each,
    Endless,
    Log,
    Meta,
    Names,
    NullAs,
    Positive,
    Scalar,
    Shape,
    Share,
    Size,
    Undefined,
    json_text,
    plain,
    plain_keys,
    shape_of,
)
from errcomp.errors import InputError

__all__ = [
    "DIALECT",
    "Absent",
    "Count",
    "Coverage",
    "Derived",
    "Document",
    "Each",
    "Endless",
    "Ends",
    "Field",
    "GroupKeys",
    "Inline",
    "Key",
    "Log",
    "Meta",
    "Names",
    "NullAs",
    "Part",
    "Positive",
    "Rows",
    "Scalar",
    "Shape",
    "Share",
    "Size",
    "Undefined",
    "Within",
    "closed",
    "decode",
    "interval",
    "json_text",
    "key",
    "plain",
    "plain_keys",
    "schema_of",
    "shape_of",
    "words",
]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
T = TypeVar("T", bound=Document)


def decode(cls: type[T], document: Mapping[str, Any]) -> T:
    """Make a result of its document.

    Raises
    ------
    InputError
        A key is missing or of another type; a value cannot be, or does not follow from the others.
    """
    from errcomp.codec.text import check_values

    try:
        check_values(document)
        result = cls.from_field(Field(document, "", document))
        _within(document, result.to_dict())
    except InputError as error:
        said = str(error).rstrip(".")
        raise InputError(
            f"{cls.SCHEMA}: {said}. Write the document again with this errcomp: errcomp "
            f"{cls.COMMAND} … -o FILE.json"
        ) from error
    return result


def schema_of(cls: type[Document]) -> dict[str, Any]:
    """Return the JSON Schema of the documents of a class of results.

    Examples
    --------
    >>> from errcomp.claims.auditing import Audit
    >>> schema_of(Audit)["properties"]["schema"]
    {'const': 'errcomp.audit/1'}
    """
    names: Names = {}
    whole = cls.json_schema(names)
    return {"$schema": DIALECT, "title": cls.SCHEMA, **whole, "$defs": names}


class Absent:
    """Stands where a result has what its document cannot hold.

    Parameters
    ----------
    of : str
        What it stands for, e.g. ``"the errors of single series"``.
    remedy : str
        Where that is to be had.
    known : object
        What the document does say.
    """

    def __init__(self, of: str, remedy: str, **known: Any) -> None:
        self._of, self._remedy = of, remedy
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InputError(f"a document does not hold {self._of} ({name}). {self._remedy}")


def _within(document: Mapping[str, Any], again: Mapping[str, Any], path: str = "") -> None:
    """Refuse a document that says otherwise than what was made of it.

    What follows from other values (a count, a ratio, whether an interval excludes 0) is made anew;
    where it differs somebody has changed a part of the document. Words may change with a version.
    """
    for name, value in again.items():
        here = f"{path}.{name}" if path else name
        if name not in document:
            raise InputError(f"{path + ' has' if path else 'there is'} no key {name!r}")
        _same(document[name], value, here)


def _same(given: Any, made: Any, path: str) -> None:
    if isinstance(made, Mapping) and isinstance(given, Mapping):
        _within(given, made, path)
    elif isinstance(made, list) and isinstance(given, list | tuple) and len(made) == len(given):
        for i, (one, other) in enumerate(zip(given, made, strict=True)):
            _same(one, other, f"{path}[{i}]")
    elif not _agree(given, made):
        seen = "a list of another length" if isinstance(made, list) else f"{given!r:.60}"
        raise InputError(
            f"{path} is {seen}, but {'' if isinstance(made, list) else f'{made!r:.60} '}"
            "follows from the rest of the document: a part of it was changed"
        )


def _agree(given: Any, made: Any) -> bool:
    if isinstance(made, str):
        return isinstance(given, str)
    if isinstance(made, bool) or made is None:
        return given is made
    if isinstance(made, int | float) and isinstance(given, int | float):
        return not isinstance(given, bool) and math.isclose(
            given, made, rel_tol=1e-9, abs_tol=1e-12
        )
    return bool(given == made)
