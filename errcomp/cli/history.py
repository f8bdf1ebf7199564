"""``errcomp history``: validations kept in a store, one table after the other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli._input import (
    add_column,
    add_where,
    parse_columns,
    parse_keys,
    parse_where,
    select,
)
from errcomp.cli._output import add_output_arguments, emit
from errcomp.cli._targets import check_targets
from errcomp.report import forms
from errcomp.report.model import Column, Table

if TYPE_CHECKING:
    from errcomp.tables.history import History

__all__ = ["add_parser", "add_reading_arguments", "read_history"]

_STORE = (
    "the store: an SQLite file, or postgresql://user:password@host/database (with the extra "
    "errcomp[postgres])"
)


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``history add|list|export``."""
    parser = commands.add_parser(
        "history",
        help="keep validations under successive versions: add, list, export",
        description="A half-life is read off validations under successive versions of the "
        "software. Keep them in a store that several writers may add to at once and that a writer "
        "which is killed cannot damage.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser(
        "add",
        help="add a table of validations: all of it or nothing",
        description="Add the validations of a table to a store, all of them or, where one is "
        "refused, none. The first addition makes the store.",
    )
    add.add_argument("store", metavar="STORE", help=_STORE)
    add.add_argument(
        "table", metavar="TABLE", help="table of validations (CSV, Parquet, JSON, JSON lines)"
    )
    _add_name(add)
    add.add_argument(
        "--skip-known",
        action="store_true",
        help="skip validations that are there already with the same values; without it they are "
        "refused",
    )
    add_reading_arguments(add)
    add.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    add.set_defaults(run=_add, output=None)

    listing = actions.add_parser(
        "list",
        help="the histories in a store: how much, of what, from when to when",
        description="The histories in a store: validations, series, versions, predictors, dates.",
    )
    listing.add_argument("store", metavar="STORE", help=_STORE)
    add_output_arguments(listing)
    listing.set_defaults(run=_list)

    export = actions.add_parser(
        "export",
        help="write a history to a Parquet or CSV file",
        description="Write a history to a file that `errcomp history add` reads. Parquet keeps "
        "every type and digit; CSV every digit.",
    )
    export.add_argument("store", metavar="STORE", help=_STORE)
    _add_name(export)
    export.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FILE", help="*.parquet or *.csv"
    )
    export.set_defaults(run=_export)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--name",
        default="default",
        metavar="NAME",
        help="name of the history in the store (default: default)",
    )


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how to read a table of validations."""
    group = parser.add_argument_group("reading the table")
    add_column(group, "version, measured, predicted, date, released, series, …")
    group.add_argument(
        "--series",
        metavar="KEYS",
        help="columns that together name what is validated again and again, e.g. model,shape "
        "(default: a column series, else all that have no other meaning)",
    )
    group.add_argument("--unit", help="unit of all measurements, e.g. ms")
    group.add_argument(
        "--order",
        metavar="VERSION,VERSION",
        help="versions, oldest first, where neither release dates, numbers nor dates order them",
    )
    add_where(group)


def read_history(args: argparse.Namespace, name: str) -> History:
    """Read the table of validations that is named."""
    from errcomp.readers import history as reader
    from errcomp.readers import is_output

    columns = parse_columns(args.column)
    if is_output(name, columns):
        from errcomp.readers.core.ingest import ingest

        where = parse_where(args.where)
        output = ingest(name)
        chosen = output.of(**where) if where else output
        return chosen.history_of(
            order=parse_keys(args.order) or None, series=parse_keys(args.series) or None
        )
    found = reader.read(
        name,
        columns=columns,
        series=parse_keys(args.series) or None,
        order=parse_keys(args.order) or None,
        unit=args.unit,
    )
    return select(found, args.where)


def _add(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    check_targets(args, [name for name in (args.store, args.table) if "://" not in name])
    with HistoryStore(args.store) as store:
        history = read_history(args, args.table)
        added = store.add(history, name=args.name, skip_known=args.skip_known)
        shown = store.shown
    document = {
        "schema": "errcomp.history-add/1",
        "store": shown,
        "name": args.name,
        "source": history.source,
        "added": added.n,
        "known": added.n_known,
        "failed": sum(part.n for part in history.dropped),
    }
    notes = list(history.notes)
    if added.n_known:
        notes.append(f"{added.n_known:,} were there already and were skipped")
    notes += [f"{d.n:,} of the table kept without a figure: {d.reason}" for d in history.dropped]
    word = "validation" if added.n == 1 else "validations"
    title = f"Added {added.n:,} {word} to {args.name} in {shown}"
    emit(args, document, [Table(title, (), (), notes)])


def _list(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    check_targets(args, [] if "://" in args.store else [args.store])
    with HistoryStore(args.store) as store:
        rows = [one.to_dict() for one in store.list()]
        shown = store.shown
    columns = [
        Column("History", lambda row: row["name"], key=True),
        Column("Validations", lambda row: row["validations"], forms.count),
        Column("Series", lambda row: row["series"], forms.count),
        Column("Versions", lambda row: row["versions"], forms.count),
        Column("Predictors", lambda row: ", ".join(row["predictors"]) or "-"),
        Column("Validated", _dates),
    ]
    notes = () if rows else ("It holds nothing yet: errcomp history add STORE TABLE",)
    table = Table(f"Histories in {shown}", columns, rows, notes)
    emit(args, {"schema": "errcomp.histories/1", "store": shown, "rows": rows}, [table])


def _dates(row: Any) -> str:
    """Return the days of the first and the last validation."""
    if row["first"] is None:
        return "-"
    return " – ".join(dict.fromkeys((row["first"][:10], row["last"][:10])))


def _export(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    with HistoryStore(args.store) as store:
        rows = store.export(args.output, name=args.name)
    print(f"wrote {rows:,} validations to {args.output}", file=sys.stderr)
