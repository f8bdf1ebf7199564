"""Write results as JSON and read them back; each result class declares its keys once.

A class derives from `Document`. The types of its fields define the JSON: `Share`, `Count` and
similar types bound a number, `Undefined` and `Endless` define the meaning of null, and `Each` the
type of an array's elements. Where keys and fields differ, the class lists its keys (`KEYS`).
Reading is strict: every key must exist and have its type, and derived values must agree with the
values that they are derived from. So a page only shows values that a command computed.
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
    if_known,
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
    "if_known",
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
    """Turn a document into the result that it was written from.

    Raises
    ------
    InputError
        A key is missing or has another type; a value is impossible, or contradicts the others.

    Examples
    --------
    >>> import errcomp as ec
    >>> from errcomp.claims.auditing import Audit
    >>> document = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]}).to_dict()
    >>> decode(Audit, document)
    Audit(MAPE 10.00 %, n=2)
    """
    from errcomp.codec.text import check_values

    try:
        check_values(document)
        result = cls.from_field(Field(document, "", document))
        _within(document, result.to_dict())
    except InputError as error:
        reason = str(error).rstrip(".")
        raise InputError(
            f"{cls.SCHEMA}: {reason}. Write the document again with this errcomp: errcomp "
            f"{cls.COMMAND} … -o FILE.json"
        ) from error
    return result


def schema_of(cls: type[Document]) -> dict[str, Any]:
    """Return the JSON Schema of the documents of a result class.

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
    """Placeholder for a part of a result that its document does not hold.

    Access to any other attribute raises InputError.

    Parameters
    ----------
    of : str
        Name of the part, e.g. ``"the errors of single series"``.
    remedy : str
        How to get the part.
    known : object
        Attributes that the document does hold.
    """

    def __init__(self, of: str, remedy: str, **known: Any) -> None:
        self._of, self._remedy = of, remedy
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InputError(f"the document does not hold {self._of} ({name}). {self._remedy}")


def _within(document: Mapping[str, Any], again: Mapping[str, Any], path: str = "") -> None:
    """Refuse a document whose derived values disagree with the result that was read from it.

    Derived values (a count, a ratio, whether an interval excludes 0) are computed again. A
    difference means that somebody changed a part of the document. Texts may differ: they change
    between versions.
    """
    for name, value in again.items():
        here = f"{path}.{name}" if path else name
        if name not in document:
            raise InputError(f"{path or 'the document'} has no key {name!r}")
        _same(document[name], value, here)


def _same(given: Any, made: Any, path: str) -> None:
    if isinstance(made, Mapping) and isinstance(given, Mapping):
        _within(given, made, path)
    elif isinstance(made, list) and isinstance(given, list | tuple) and len(made) == len(given):
        for i, (one, other) in enumerate(zip(given, made, strict=True)):
            _same(one, other, f"{path}[{i}]")
    elif not _agree(given, made):
        raise InputError(
            f"{path} is {_brief(given)}, but the rest of the document gives {_brief(made)}: part "
            "of the document was changed"
        )


def _brief(value: Any) -> str:
    return f"a list of length {len(value)}" if isinstance(value, list | tuple) else f"{value!r:.60}"


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
