"""Rows of a document as columns of plain values, for csv and parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from errcomp.report.tables.plain import plain

__all__ = ["flat_columns"]

#: What the rows of a document are called: of most, of a search, of a check of a history.
_ROWS = ("rows", "matches", "series")


def flat_columns(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the rows of a document as columns whose cells are numbers, text or nothing.

    A document without rows is a row itself. An object becomes a column for each of its keys
    (``claim.metric``), a list one text with its parts between semicolons: caveats and other things
    that have a code by their codes, other objects as ``key=value``.

    Parameters
    ----------
    document : mapping
        As a command prints it with ``--json``.

    Returns
    -------
    dict of str to list
        Columns of one length, in the order of the keys.

    Examples
    --------
    >>> caveats = [{"code": "tail", "message": "…"}, {"code": "one-sided", "message": "…"}]
    >>> flat_columns({"rows": [{"key": {"gpu": "A"}, "levels": [0.5, 0.9], "caveats": caveats}]})
    {'key.gpu': ['A'], 'levels': ['0.5; 0.9'], 'caveats': ['tail; one-sided']}
    """
    rows = plain(next((document[name] for name in _ROWS if name in document), [document]))
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        _add(columns, name, [row.get(name) for row in rows])
    return columns


def _add(columns: dict[str, list[Any]], name: str, cells: Sequence[Any]) -> None:
    objects = [cell for cell in cells if isinstance(cell, dict)]
    others = [None if isinstance(cell, dict) else _told(cell) for cell in cells]
    if not objects or any(cell is not None for cell in others):
        columns[name] = others
    for key in dict.fromkeys(key for cell in objects for key in cell):
        inner = [cell.get(key) if isinstance(cell, dict) else None for cell in cells]
        _add(columns, f"{name}.{key}", inner)


def _told(cell: Any) -> Any:
    """Write a list as text; leave all else as it is."""
    if not isinstance(cell, list):
        return cell
    return "; ".join(_part(part) for part in cell)


def _part(part: Any) -> str:
    if isinstance(part, dict):
        if "code" in part:
            return str(part["code"])
        return ", ".join(f"{key}={_part(value)}" for key, value in part.items())
    if isinstance(part, list):
        return " ".join(map(_part, part))
    return "" if part is None else str(part)
