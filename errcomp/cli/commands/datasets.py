"""The built-in tables and where they come from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.output import add_output_arguments, add_target_argument, emit
from errcomp.report import forms
from errcomp.report.model import Column, Table, report_of

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "datasets": ("errcomp datasets list", "errcomp datasets show neusight"),
    "datasets list": ("errcomp datasets list",),
    "datasets show": ("errcomp datasets show neusight",),
    "datasets build": ("errcomp datasets build neusight --from neusight-artifact --to rebuilt",),
    "datasets export": (
        "errcomp datasets export neusight -o neusight.csv",
        "errcomp datasets export survey -o survey",
    ),
}


def build(parser: Parser) -> None:
    """Add ``datasets list|show|build|export``."""
    parser.description = (
        "The tables that come with errcomp: list them, show their content and sources, rebuild "
        "them from the sources, export copies."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list",
        help="the built-in tables, one per line",
        description="List the built-in tables with their content, number of rows and licence.",
    )
    add_output_arguments(listing)
    listing.set_defaults(run=_list)

    show = actions.add_parser(
        "show",
        help="source, licence, columns and units of one table",
        description="Show where a built-in table comes from, its licence, its checksum, and the "
        "meaning and unit of each column.",
    )
    _add_name(show)
    add_output_arguments(show)
    show.set_defaults(run=_show)

    build = actions.add_parser(
        "build",
        help="rebuild a table from its source",
        description="Rebuild a built-in table from its original files: the same files give the "
        "same bytes. `errcomp datasets show NAME` says where the files are published.",
    )
    _add_name(build)
    build.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="PATH",
        help="folder with the original files",
    )
    build.add_argument(
        "--to",
        default=".",
        metavar="FOLDER",
        help="folder to write to (default: the current folder)",
    )
    build.set_defaults(run=_build)

    export = actions.add_parser(
        "export",
        help="copy a table to a file; the suffix sets the format",
        description="Copy a built-in table to a file, or a dataset of several tables to a folder.",
    )
    _add_name(export)
    add_target_argument(
        export,
        "the file to write, in the format of its suffix (csv, parquet, json, jsonl); a name "
        "without a suffix is a folder",
    )
    export.set_defaults(run=_export)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="name of a built-in table (see: errcomp datasets list)"
    )


def _list(args: argparse.Namespace) -> None:
    from errcomp import datasets

    rows = [info.to_dict() for info in datasets.list()]
    columns = [
        Column("Name", lambda row: row["name"]),
        Column("Holds", lambda row: row["holds"]),
        Column("Rows", lambda row: row["rows"], forms.count),
        Column("Title", lambda row: row["title"]),
        Column("Licence of the source", lambda row: row["licence"]),
    ]
    note = "Details: errcomp datasets show NAME"
    table = Table("Built-in tables", columns, rows, [note])
    emit(args, {"schema": "errcomp.datasets/1", "rows": rows}, report_of(table))


def _show(args: argparse.Namespace) -> None:
    from errcomp import datasets

    info = datasets.info(args.name).to_dict()
    columns = [
        Column("Column", lambda row: row["name"]),
        Column("Unit", lambda row: row["unit"]),
        Column("Meaning", lambda row: row["meaning"]),
    ]
    facts = ("source", "commit", "licence", "reference")
    head = [f"{name}: {info[name]}" for name in facts if info[name]]
    tables = [Table(info["title"], (), (), head)]
    tables += [
        Table(
            f"{t['file']}: {t['rows']} rows, sha256 {t['sha256'][:16]}…",
            columns,
            [column for column in info["columns"] if column["table"] == t["file"]],
        )
        for t in info["tables"]
    ]
    document = {"schema": "errcomp.dataset/1", **info, "rows": info["columns"]}
    emit(args, document, report_of(*tables))


def _build(args: argparse.Namespace) -> None:
    from errcomp import datasets

    for path in datasets.build(args.name, Path(args.source), Path(args.to)):
        print(f"wrote {path}", file=sys.stderr)


def _export(args: argparse.Namespace) -> None:
    from errcomp import datasets

    path = datasets.export(args.name, Path(args.output))
    print(f"wrote {path}", file=sys.stderr)
