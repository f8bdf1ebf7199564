"""Histories that commands read: a built-in one, a store, or a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.cli.input import (
    add_history_arguments,
    no_such_table,
    order_of,
    parse_keys,
    read_history,
    select,
)
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.tables import History

__all__ = ["HISTORY", "add_reading", "load_history"]

#: What HISTORY is, in the help of a command.
HISTORY = (
    "table of validations (CSV, Parquet, JSON, JSON lines), store of `errcomp history` (file or "
    "URL), or name of a built-in history"
)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add how to read a history."""
    parser.add_argument(
        "--name", default="default", help="name of the history in a store (default: default)"
    )
    add_history_arguments(parser)


def load_history(args: argparse.Namespace, name: str) -> History:
    """Read a history: a built-in one, a store, or a file."""
    from errcomp import datasets

    path = Path(name)
    # With a new table, these options say how to read that table.
    beside = getattr(args, "new", None) is not None
    if _is_store(name):
        from errcomp.halflife.store import HistoryStore

        if not beside and (args.column or args.unit):
            raise InputError(
                f"{HistoryStore(name).shown} is a store: its columns and units are known. "
                "Leave out --column and --unit."
            )
        series = None if beside else parse_keys(args.series) or None
        with HistoryStore(name) as store:
            history = store.load(name=args.name, series=series, **order_of(args))
        return select(history, args.where)
    if not path.exists() and name in datasets.histories():
        order = args.order or args.order_by or args.git_log
        if not beside and (args.column or args.series or args.unit or order):
            raise InputError(
                f"{name} is a built-in history: its columns, units and order are known. Leave out "
                "--column, --series, --unit, and --order, --order-by or --git-log."
            )
        embedded: History = datasets.load(name)
        return select(embedded, args.where)
    if not path.exists():
        raise no_such_table(name, "history", datasets.histories())
    return read_history(args, name)


def _is_store(name: str) -> bool:
    """Say whether it is a URL or an SQLite file; SQLAlchemy is only imported where it may be."""
    path = Path(name)
    if path.is_file():
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    if ":" not in name:
        return False
    from errcomp.halflife.store.place import is_url

    return is_url(name)
