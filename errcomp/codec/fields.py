"""One value of a document with its path, so that messages can name the place of an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from errcomp.errors import InputError

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Field:
    """A value with its path, e.g. ``rows[3].mape_low``; the path of the document itself is "".

    Attributes
    ----------
    value : object
    path : str
    document : mapping
        The whole document, for values that it states once for all rows.
    """

    value: Any
    path: str
    document: Mapping[str, Any]

    def at(self, key: str) -> Field:
        """Return the value of a key of this object; raise InputError if the key is missing."""
        if key not in self.object():
            raise InputError(f"{self.path or 'the document'} has no key {key!r}")
        path = f"{self.path}.{key}" if self.path else key
        return Field(self.value[key], path, self.document)

    def has(self, key: str) -> bool:
        """Return whether this object has a key."""
        return key in self.object()

    def object(self) -> Mapping[str, Any]:
        """Return this value as a mapping; raise InputError if it is not an object."""
        if not isinstance(self.value, Mapping):
            self.refuse("an object")
        return self.value

    def items(self, fewest: int = 0) -> Iterator[Field]:
        """Iterate over the elements of this list, of at least `fewest` elements."""
        if not isinstance(self.value, list | tuple):
            self.refuse("a list")
        if len(self.value) < fewest:
            self.refuse(f"a list of length {fewest} or more")
        for i, value in enumerate(self.value):
            yield Field(value, f"{self.path}[{i}]", self.document)

    def refuse(self, wanted: str) -> NoReturn:
        """Raise InputError: the value must be `wanted`; show the actual value."""
        raise InputError(
            f"{self.path or 'the document'} must be {wanted}, got {_shown(self.value)}"
        )

    def contradicts(self, wanted: str) -> NoReturn:
        """Raise InputError: other values of the document require the value `wanted` here."""
        value = self.value
        shown = f"{value:.6g}" if isinstance(value, float) else _shown(value)
        raise InputError(
            f"{self.path} is {shown}, but must be {wanted}: part of the document was changed"
        )


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"an object with {len(value)} key{'' if len(value) == 1 else 's'}"
    if isinstance(value, list | tuple):
        return f"a list of length {len(value)}"
    written = repr(value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"
