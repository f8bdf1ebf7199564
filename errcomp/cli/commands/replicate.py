"""Recompute published tables cell by cell, and report which are reproduced."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.output import add_output_arguments, emit, output_path
from errcomp.cli.streams import progress

if TYPE_CHECKING:
    from errcomp.claims.replicate import Replication
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {"replicate": ("errcomp replicate survey --table table6_neusight",)}


def build(parser: Parser) -> None:
    """Add ``replicate``."""
    parser.description = (
        "Recompute every cell of the tables in a publication from the data behind them. For each "
        "cell, report the rule (how to average, over which rows) that reproduces its figure, or "
        "why none does."
    )
    parser.add_argument("what", choices=("survey",), help="publication to recompute")
    parser.add_argument("--table", metavar="NAME", help="only this table, e.g. table6_neusight")
    parser.add_argument(
        "--fail-on", choices=("not reproduced",), help="exit with 1 if any cell has this status"
    )
    add_output_arguments(
        parser,
        target=_place,
        metavar="FILE|FOLDER",
        about="also write to FILE (suffix: html, csv, parquet, json, md or tex), or to "
        "FOLDER (an existing folder, or a name without a suffix). A folder gets every "
        "table as csv, md and tex, the plots as svg and png, and an index",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Replicate, print the tables and the count, or write everything into a folder."""
    from errcomp.claims.replicate import replicate_survey
    from errcomp.claims.view.replication import counts_of
    from errcomp.report.model import report_of

    folder = args.output if args.output and _is_folder(args.output) else None
    if folder:
        _check(folder, args.table)
    with progress("recomputing", quiet=args.json):
        result = replicate_survey()
        if folder:
            _write(folder, result)
            args.output = None
    tables = result.tables()
    if args.table is not None:
        if args.table not in tables:
            from errcomp.errors import InputError

            raise InputError(f"no table {args.table!r}. Tables: {', '.join(tables)}")
        result = result.of_table(args.table)
    args.exit_code = 1 if any(c.status == args.fail_on for c in result.cells) else 0
    # Tables written to a folder are not printed; the counts say which to open.
    emit(args, result, report_of(counts_of(result)) if folder else result.view())


def _is_folder(path: Path) -> bool:
    return path.is_dir() or not path.suffix


def _place(text: str) -> Path:
    """Accept a folder, or a file whose suffix sets the format."""
    return Path(text) if _is_folder(Path(text)) else output_path(text)


def _check(folder: Path, table: str | None) -> None:
    """Refuse a target that cannot be written before the work is done."""
    from errcomp.claims.view.replication_folder import check_folder
    from errcomp.errors import InputError

    if table is not None:
        raise InputError(
            "a folder always gets all tables. Leave out --table, or write a single file: -o "
            f"{table}.tex"
        )
    check_folder(folder)


def _write(folder: Path, result: Replication) -> None:
    from errcomp.claims.view.replication_folder import write_folder

    n, without = write_folder(folder, result)
    print(f"wrote {folder}: {n} files; start with its README.md", file=sys.stderr)
    if without:
        print(f"no figures: {without}", file=sys.stderr)
