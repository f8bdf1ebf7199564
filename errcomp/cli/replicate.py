"""``errcomp replicate``: published tables, recomputed cell by cell."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from errcomp.cli._output import add_output_arguments, emit
from errcomp.cli._progress import progress

if TYPE_CHECKING:
    pass

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
    from errcomp.report.tables.replication import replication_tables

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
    args.exit_code = 1 if any(c.status == args.fail_on for c in cells) else 0
    emit(args, document, replication_tables(result, tables))
