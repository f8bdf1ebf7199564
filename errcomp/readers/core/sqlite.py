"""SQLite databases of profilers, opened read-only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers.core.source import Source

if TYPE_CHECKING:
    import polars as pl


_MAGIC = b"SQLite format 3\0"


@contextmanager
def opened(source: Source) -> Iterator[sqlite3.Connection]:
    """Open a database read-only; errors of SQLite become an InputError."""
    with source.path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise source.error("is a packed SQLite database. Unpack it first: gunzip FILE.")
    # Immutable: no file is written next to it, not even a lock.
    address = f"{source.path.absolute().as_uri()}?mode=ro&immutable=1"
    database = None
    try:
        database = sqlite3.connect(address, uri=True)
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        yield database
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        # The last error: SQLite quotes damaged content in its message.
        raise source.error(
            f"SQLite cannot read it ({error}). The file may be cut off: export it again."
        ) from None
    finally:
        if database is not None:
            database.close()


def tables_in(source: Source) -> set[str] | None:
    """Return the names of tables and views; None if it is not a readable database."""
    if not source.head.startswith(_MAGIC):
        return None
    try:
        with opened(source) as database:
            return tables_of(database)
    except (InputError, OSError):
        return None


def tables_of(database: sqlite3.Connection) -> set[str]:
    """Return the names of tables and views."""
    cursor = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return {str(name) for (name,) in cursor.fetchall()}


def select(
    database: sqlite3.Connection, table: str, wanted: Sequence[str]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns among these that a table has, and its rows."""
    name = _quoted(table)
    present = {str(row[1]) for row in database.execute(f"PRAGMA table_info({name})")}
    columns = [column for column in wanted if column in present]
    if not columns:
        return [], []
    listed = ", ".join(map(_quoted, columns))
    return columns, database.execute(f"SELECT {listed} FROM {name}").fetchall()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def whole_numbers(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Return rows as whole numbers, which SQLite does not guarantee."""
    import polars as pl

    series = {}
    for i, column in enumerate(columns):
        values = [row[i] if isinstance(row[i], int) else None for row in rows]
        series[column] = pl.Series(column, values, dtype=pl.Int64)
    return pl.DataFrame(series)
