"""``errcomp datasets``: the embedded tables, where they come from, and how they are made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from errcomp.cli._output import add_output_arguments, emit
from errcomp.report.tables import Column, Table

__all__ = ["add_parser"]


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``datasets list|show|build|export``."""
    parser = commands.add_parser("datasets", help="the embedded tables and where they come from")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="the embedded tables, a line each")
    add_output_arguments(listing)
    listing.set_defaults(run=_list)

    show = actions.add_parser("show", help="source, licence, columns and units of one table")
    show.add_argument("name")
    add_output_arguments(show)
    show.set_defaults(run=_show)

    build = actions.add_parser("build", help="derive a table again from its source")
    build.add_argument("name")
    build.add_argument("--from", dest="source", required=True, metavar="PATH")
    build.add_argument("--to", default=".", metavar="FOLDER", help="default: this folder")
    build.set_defaults(run=_build)

    export = actions.add_parser("export", help="copy a table out, in the format of the suffix")
    export.add_argument("name")
    export.add_argument("-o", "--output", required=True, metavar="FILE")
    export.set_defaults(run=_export)


def _list(args: argparse.Namespace) -> None:
    from errcomp import datasets

    rows = [info.to_dict() for info in datasets.list()]
    columns = [
        Column("Name", lambda row: row["name"]),
        Column("Holds", lambda row: row["holds"]),
        Column("Rows", lambda row: str(row["rows"]), right=True),
        Column("What", lambda row: row["title"]),
        Column("Licence of the source", lambda row: row["licence"]),
    ]
    note = "More on one of them: errcomp datasets show NAME"
    table = Table("Embedded tables", columns, rows, [note])
    emit(args, {"schema": "errcomp.datasets/1", "rows": rows}, [table])


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
    emit(args, document, tables)


def _build(args: argparse.Namespace) -> None:
    from errcomp import datasets

    for path in datasets.build(args.name, Path(args.source), Path(args.to)):
        print(f"wrote {path}")


def _export(args: argparse.Namespace) -> None:
    from errcomp import datasets

    print(f"wrote {datasets.export(args.name, Path(args.output))}")
