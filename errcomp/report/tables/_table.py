"""What people see of a result: columns over rows, with notes below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Column", "Table", "caveat_text", "clean", "heading_of", "key_text"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column for people: ``show`` turns a row into text.

    ``right`` is for figures: aligned at the right and never broken. ``key`` columns are repeated
    when a table is too wide and continues below.
    """

    header: str
    show: Callable[[Mapping[str, Any]], str]
    right: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """What people see: columns over rows, with notes below."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = field(default_factory=tuple)


def heading_of(name: str) -> str:
    """Return the heading of a column: its name, with a capital unless it has capitals of its own.

    Examples
    --------
    >>> heading_of("device"), heading_of("GPU type"), heading_of("max APE"), heading_of("sMAPE")
    ('Device', 'GPU type', 'Max APE', 'sMAPE')
    """
    first = name.split(" ", 1)[0]
    return name[:1].upper() + name[1:] if first.islower() else name


def key_text(value: object) -> str:
    """Write the value of a key of the user's; a missing one is not a name.

    Examples
    --------
    >>> key_text("H100"), key_text(None), key_text("")
    ('H100', '(none)', '(none)')
    """
    return "(none)" if value is None or value == "" else str(value)


def caveat_text(code: str, title: str) -> str:
    """Name a caveat in a key or a list: the code that documentation is found by, and its meaning.

    Examples
    --------
    >>> caveat_text("one-sided", "Most errors have one sign")
    'one-sided: most errors have one sign'
    """
    return f"{code}: {title[:1].lower()}{title[1:]}"


def clean(text: str) -> str:
    """Show a line break or an escape code in a user's value as what it is."""
    # A no-break space is no break: it is what keeps a figure and its sign together.
    return "".join(c if c.isprintable() or c == "\xa0" else repr(c)[1:-1] for c in text)
