"""``errcomp replicate``: published tables, recomputed cell by cell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from errcomp.cli._output import Column, Table, add_output_arguments, emit
from errcomp.cli._progress import progress

if TYPE_CHECKING:
    from errcomp.claims.replicate import Cell, Replication

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``replicate``."""
    parser = commands.add_parser(
        "replicate", help="recompute published tables cell by cell, and say what came out"
    )
    parser.add_argument("what", choices=("survey",), help="whose tables")
    parser.add_argument("--table", metavar="NAME", help="only this table, e.g. table6_neusight")
    parser.add_argument(
        "--fail-on",
        choices=("not reproduced",),
        help="exit with 1 when a cell has this status",
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Replicate, print the tables and the count."""
    from errcomp.claims.replicate import replicate_survey

    with progress("recomputing", quiet=args.json):
        result = replicate_survey()
    tables = result.tables()
    if args.table is not None:
        if args.table not in tables:
            from errcomp.errors import InputError

            raise InputError(f"no table {args.table!r}. Tables: {', '.join(tables)}")
        tables = {args.table: tables[args.table]}
    cells = [cell for found in tables.values() for cell in found]
    document = {"schema": "errcomp.replication/1", **result.to_dict()}
    document["rows"] = [cell.to_dict() for cell in cells]
    shown = [_table(name, found) for name, found in tables.items()]
    args.exit_code = 1 if any(c.status == args.fail_on for c in cells) else 0
    emit(args, document, [*shown, _counts(result)])


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
        Column("Printed", lambda r: r["cell"].printed, right=True),
        Column("Recomputed", lambda r: r["cell"].recomputed_text, right=True),
        Column("Status", lambda r: r["cell"].status),
        Column("Rule", lambda r: r["note"]),
    ]
    below = [f"[{number}] {text}" for text, number in notes.items()]
    without: dict[str, list[str]] = {}
    for cell in cells:
        if cell.status == "no data":
            without.setdefault(cell.note, []).append(f"{cell.row} ({cell.column})")
    below += [f" · No data for {', '.join(names)}. {why}" for why, names in without.items()]
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
    return Column(status.capitalize(), lambda r: str(r["count"][status] or "·"), right=True)
