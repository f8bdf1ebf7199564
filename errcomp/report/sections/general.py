"""A section about any result: its tables as the terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from errcomp.errors import InputError
from errcomp.report.forms import as_written, text
from errcomp.report.model import Column, Table
from errcomp.report.page import Section, grid_of
from errcomp.report.sections._common import pictures

__all__ = ["section_of_document", "section_of_result", "section_of_tables"]


def section_of_tables(tables: Sequence[Table]) -> Section:
    """Return a section with these tables, named after the first."""
    title = next((table.title for table in tables), "Nothing was found")
    return Section(title=title, grids=[grid_of(table) for table in tables])


def section_of_result(result: Any, tables: Sequence[Table]) -> Section:
    """Return a section with these tables and the figure of the result."""
    from errcomp.report.sections import kind
    from errcomp.report.showing import CAPTIONS, plot

    drawn, notes = pictures([("figure", CAPTIONS[kind(result)], partial(plot, result))])
    return replace(section_of_tables(tables), pictures=drawn, notes=notes)


def section_of_document(document: Mapping[str, Any], name: str) -> Section:
    """Return a section with the rows of a document of which nothing more is known.

    Raises
    ------
    InputError
        It has no rows.
    """
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{name}: the document has no rows that a page could show")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    kept = [key for key in keys if not any(isinstance(row.get(key), list | dict) for row in rows)]
    columns = [
        Column(
            key,
            partial(_of_row, key),
            form=as_written if _is_number(rows, key) else text,
        )
        for key in kept
    ]
    left = [key for key in keys if key not in kept]
    notes = [f"Not shown, as they are nested: {', '.join(left)}."] if left else []
    schema = str(document.get("schema", "a document"))
    return section_of_tables([Table(f"{schema} of {name}", columns, rows, notes)])


def _of_row(key: str, row: Mapping[str, Any]) -> str:
    return _shown(row.get(key))


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return repr(value) if isinstance(value, float) else str(value)


def _is_number(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    values = [row.get(key) for row in rows if row.get(key) is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)
