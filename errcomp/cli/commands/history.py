"""Keep validations under successive versions: add, list, check, export."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli.input import add_history_arguments, read_history
from errcomp.cli.output import add_output_arguments, check_targets, emit
from errcomp.cli.streams import say
from errcomp.report import forms
from errcomp.report.model import Column, Table, report_of

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {
    "history": (
        "errcomp history add history.db validations.csv",
        "errcomp history list history.db",
        "errcomp history check history.db",
    ),
    "history add": (
        "errcomp history add history.db validations.csv",
        "errcomp history add history.db log.csv --column measured=latency --skip-known",
    ),
    "history list": ("errcomp history list history.db",),
    "history check": ("errcomp history check history.db",),
    "history export": ("errcomp history export history.db -o history.parquet",),
}

_STORE = (
    "the store: an SQLite file, or postgresql://user:password@host/database (needs the extra "
    "errcomp[postgres])"
)


def build(parser: Parser) -> None:
    """Add ``history add|list|export``."""
    parser.description = (
        "Half-lives are estimated from validations under successive versions of the software. "
        "Keep them in a store: several writers may add at once, and a writer that is killed "
        "cannot damage it."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser(
        "add",
        help="add a table of validations: all rows or none",
        description="Add the validations of a table to a store: all of them, or none if one is "
        "refused. The first addition creates the store.",
    )
    add.add_argument("store", metavar="STORE", help=_STORE)
    add.add_argument(
        "table", metavar="TABLE", help="table of validations (CSV, Parquet, JSON, JSON lines)"
    )
    _add_name(add)
    add.add_argument(
        "--skip-known",
        action="store_true",
        help="skip validations that the store already holds with the same values; by default they "
        "are refused",
    )
    add_history_arguments(add)
    add.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    add.set_defaults(run=_add, output=None)

    listing = actions.add_parser(
        "list",
        help="the histories in a store: size, content and dates",
        description="List the histories in a store: how many validations, series and versions "
        "each has, its predictors and its dates.",
    )
    listing.add_argument("store", metavar="STORE", help=_STORE)
    add_output_arguments(listing)
    listing.set_defaults(run=_list)

    check = actions.add_parser(
        "check",
        help="compare a store with its checksums: exit 1 if anything changed",
        description="Compare the validations in a store with the checksums that `errcomp history "
        "add` stored with them. The exit code is 1 if any validation has changed since.",
    )
    check.add_argument("store", metavar="STORE", help=_STORE)
    check.set_defaults(run=_check)

    export = actions.add_parser(
        "export",
        help="write a history to a Parquet or CSV file",
        description="Write a history to a file that `errcomp history add` reads. Parquet keeps "
        "types and all digits; CSV keeps all digits.",
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


def _add(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    check_targets(args, [args.store, args.table])
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
        notes.append(f"{_validations(added.n_known)} already in the store, skipped")
    notes += [
        f"{_validations(d.n)} stored, but without an error value: {d.reason}"
        for d in history.dropped
    ]
    title = f"Added {_validations(added.n)} to {args.name} in {shown}"
    emit(args, document, report_of(Table(title, (), (), notes)))


def _validations(n: int) -> str:
    return f"{n:,} validation{'' if n == 1 else 's'}"


def _list(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    check_targets(args, [args.store])
    with HistoryStore(args.store) as store:
        rows = [history.to_dict() for history in store.list()]
        shown = store.shown
    columns = [
        Column("History", lambda row: row["name"], key=True),
        Column("Validations", lambda row: row["validations"], forms.count),
        Column("Series", lambda row: row["series"], forms.count),
        Column("Versions", lambda row: row["versions"], forms.count),
        Column("Predictors", lambda row: ", ".join(row["predictors"]) or "-"),
        Column("Validated", _dates),
    ]
    notes = (
        () if rows else ("The store is empty. Add validations: errcomp history add STORE TABLE",)
    )
    table = Table(f"Histories in {shown}", columns, rows, notes)
    emit(args, {"schema": "errcomp.histories/1", "store": shown, "rows": rows}, report_of(table))


def _dates(row: Any) -> str:
    """Return the days of the first and the last validation."""
    if row["first"] is None:
        return "-"
    return " – ".join(dict.fromkeys((row["first"][:10], row["last"][:10])))


def _check(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    with HistoryStore(args.store) as store:
        found, shown = store.check(), store.shown
    for one in found.differences:
        addition = f", addition {one.addition}" if one.addition else ""
        where = f"history {one.history}{addition}: " if one.history else ""
        say(f"{shown}: {where}{one.what}")
    n = f"{found.additions:,} addition{'' if found.additions == 1 else 's'}"
    if found.ok:
        held = _validations(found.validations)
        say(f"{shown}: {n} with {held}, unchanged since they were written")
    else:
        args.exit_code = 1
        say("Restore the store from a copy, or export the intact data and add it to a new store.")
    if found.unchecked:
        say(
            f"{_validations(found.unchecked)} without a checksum: they were added by a version "
            "of errcomp before 0.3, or by another program."
        )


def _export(args: argparse.Namespace) -> None:
    from errcomp.halflife.store import HistoryStore

    with HistoryStore(args.store) as store:
        rows = store.export(args.output, name=args.name)
    print(f"wrote {rows:,} validations to {args.output}", file=sys.stderr)
