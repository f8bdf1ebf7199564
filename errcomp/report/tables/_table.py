"""What people see of a result: columns over rows, with notes below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Column", "Table", "clean"]


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


def clean(text: str) -> str:
    """Show a line break or an escape code in a user's value as what it is."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
