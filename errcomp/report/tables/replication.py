"""Published tables recomputed, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item

if TYPE_CHECKING:
    from errcomp.claims.replicate import Cell, Replication

__all__ = ["replication_tables"]


def replication_tables(result: Replication, shown: Mapping[str, Sequence[Cell]]) -> list[Table]:
    """Return the tables shown, cell by cell, and the count of the cells of all tables."""
    return [*(_table(name, cells) for name, cells in shown.items()), _counts(result)]


def _table(name: str, cells: Sequence[Cell]) -> Table:
    """Show the recomputed cells as rows; rules and notes below, once for all they are about."""
    notes: dict[str, int] = {}
    rows = []
    for cell in cells:
        if cell.status != "no data":
            number = notes.setdefault(f"{cell.rule}. {cell.note}".strip(), len(notes) + 1)
            rows.append({"cell": cell, "note": f"[{number}]"})
    columns = [
        Column("Row", lambda r: r["cell"].row),
        Column("Column", lambda r: r["cell"].column),
        Column("Printed", lambda r: r["cell"].printed, form=forms.as_written),
        Column("Recomputed", lambda r: r["cell"].recomputed_text, form=forms.as_written),
        Column("Status", lambda r: r["cell"].status),
        Column("Rule", lambda r: r["note"]),
    ]
    below = [Note(text, f"[{number}]") for text, number in notes.items()]
    without: dict[str, list[str]] = {}
    for cell in cells:
        if cell.status == "no data":
            without.setdefault(cell.note, []).append(f"{cell.row} ({cell.column})")
    below += [item(f"No data for {', '.join(names)}. {why}") for why, names in without.items()]
    return Table(f"{cells[0].where} ({name})", columns, rows, below)


def _counts(result: Replication) -> Table:
    from errcomp.claims.replicate.results import STATUSES

    columns = [
        Column("Table", lambda r: r["name"]),
        *(_count_column(status) for status in STATUSES),
    ]
    rows = [{"name": name, "count": count} for name, count in result.counts().items()]
    return Table("Cells by status", columns, rows)


def _count_column(status: str) -> Column:
    return Column(
        status.capitalize(), lambda r: str(r["count"][status] or "·"), form=forms.as_written
    )
