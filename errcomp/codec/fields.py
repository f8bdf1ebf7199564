"""One value of a document and where it stands, so that what is wrong can be said with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from errcomp.errors import InputError

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Field:
    """A value with its path, e.g. ``rows[3].mape_low``; the document itself has the path "".

    Attributes
    ----------
    value : object
    path : str
    document : mapping
        The whole document, for what is said once and holds of every row.
    """

    value: Any
    path: str
    document: Mapping[str, Any]

    def at(self, key: str) -> Field:
        """Return the value of a key of this object, which must be there."""
        if key not in self.object():
            here = f"{self.path} has" if self.path else "there is"
            raise InputError(f"{here} no key {key!r}")
        path = f"{self.path}.{key}" if self.path else key
        return Field(self.value[key], path, self.document)

    def has(self, key: str) -> bool:
        """Say whether there is such a key."""
        return key in self.object()

    def object(self) -> Mapping[str, Any]:
        """Return the keys and values."""
        if not isinstance(self.value, Mapping):
            self.refuse("an object")
        return self.value

    def items(self, fewest: int = 0) -> Iterator[Field]:
        """Iterate over the elements of this list."""
        if not isinstance(self.value, list | tuple):
            self.refuse("a list")
        if len(self.value) < fewest:
            self.refuse(f"a list of at least {fewest}")
        for i, value in enumerate(self.value):
            yield Field(value, f"{self.path}[{i}]", self.document)

    def refuse(self, wanted: str) -> NoReturn:
        """Say what must stand here, and what does."""
        raise InputError(
            f"{self.path or 'the document'} must be {wanted}, got {_shown(self.value)}"
        )

    def contradicts(self, wanted: str) -> NoReturn:
        """Say that other values of the document ask for another one here."""
        value = self.value
        shown = f"{value:.6g}" if isinstance(value, float) else _shown(value)
        raise InputError(
            f"{self.path} is {shown}, but must be {wanted}: a part of the document was changed"
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
