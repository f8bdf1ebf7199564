"""SQLite databases of profilers, opened read-only and as files of a stranger.

A database is a program: views and triggers run queries of whoever made the file. Only ordinary
tables are read, functions and recursion are denied, and a query may take a number of steps that is
proportional to the size of the file (https://www.sqlite.org/security.html).
"""

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
#: What a query may do: read columns of a table, and ask for the columns that it has.
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
_ASKED = ("table_info",)
#: Steps between two looks at the budget, and steps for each byte of a file: a row of a table takes
#: some ten steps and at least as many bytes.
_STEPS, _PER_BYTE = 100_000, 20
#: What the budget does not go below.
_LEAST = 10_000_000
#: Rows that are fetched at once.
_PART = 1 << 16
#: How a journal begins that was not rolled back.
_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"


class _Budget:
    """The steps that queries may take; a signal ends them, too (Ctrl-C, SIGTERM)."""

    def __init__(self, size: int) -> None:
        self.left = max(_LEAST, _PER_BYTE * size) // _STEPS
        self.signal: BaseException | None = None

    def spend(self) -> Iterator[int]:
        """Yield 0 as long as a query may go on.

        Python handles a signal where it resumes: in a generator that is within the `try`. From a
        function, it would be raised at the first line, and SQLite would swallow it.
        """
        while self.left > 0:
            self.left -= 1
            try:
                yield 0
            except GeneratorExit:
                raise
            except BaseException as signal:
                self.signal = signal
                break
        yield 1


@contextmanager
def opened(source: Source, *, whole: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a database read-only; errors of SQLite become an InputError.

    Raises
    ------
    InputError
        It is not a database, is damaged, needs more steps than its size explains, or, if it is to
        be `whole`, a part of it stands in a log beside it.
    """
    with source.path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise source.error("is a packed SQLite database. Unpack it first: gunzip FILE.")
    if whole:
        _refuse_unfinished(source)
    # Immutable: no file is written next to it, not even a lock.
    address = f"{source.path.absolute().as_uri()}?mode=ro&immutable=1"
    budget, database = _Budget(source.path.stat().st_size), None
    try:
        database = sqlite3.connect(address, uri=True)
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        _distrust(database, budget)
        yield database
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        if budget.signal is not None:
            raise budget.signal from None
        if budget.left <= 0:
            raise source.error(
                "SQLite takes more steps to read this file than a file of its size should need. "
                "The file may be damaged or malicious: export it again."
            ) from None
        # The last error: SQLite quotes damaged content in its message.
        raise source.error(
            f"SQLite cannot read this file ({error}). It may be incomplete: export it again."
        ) from None
    finally:
        if database is not None:
            database.close()


def _refuse_unfinished(source: Source) -> None:
    """Refuse a database of which a part stands in another file."""
    log = source.path.with_name(f"{source.path.name}-wal")
    if log.is_file() and log.stat().st_size > 0:
        raise source.error(
            f"{log.name} in the same folder holds rows that are not in the database yet. Let the "
            "profiler finish, or copy both files and merge the copies with: "
            f"sqlite3 {source.path.name} 'PRAGMA wal_checkpoint(TRUNCATE)'."
        )
    journal = source.path.with_name(f"{source.path.name}-journal")
    if journal.is_file():
        with journal.open("rb") as file:
            hot = file.read(len(_JOURNAL)) == _JOURNAL
        if hot:
            raise source.error(
                f"{journal.name} in the same folder shows that a write to the database did not "
                "finish. Let the profiler finish, or copy both files and repair the copy with: "
                f"sqlite3 {source.path.name} 'PRAGMA user_version'."
            )


def _distrust(database: sqlite3.Connection, budget: _Budget) -> None:
    """Limit what the content of a file can make SQLite do."""
    for pragma in ("trusted_schema = off", "cell_size_check = on", "temp_store = memory"):
        database.execute(f"PRAGMA {pragma}")
    database.set_progress_handler(budget.spend().__next__, _STEPS)
    database.set_authorizer(
        lambda action, name, *_: (
            sqlite3.SQLITE_OK
            if action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and name in _ASKED)
            else sqlite3.SQLITE_DENY
        )
    )


def tables_in(source: Source) -> set[str] | None:
    """Return the names of ordinary tables; None if it is not a readable database."""
    if not source.head.startswith(_MAGIC):
        return None
    try:
        with opened(source, whole=False) as database:
            return tables_of(database)
    except (InputError, OSError):
        return None


def tables_of(database: sqlite3.Connection) -> set[str]:
    """Return the names of ordinary tables: views and virtual tables run what the file says."""
    cursor = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    )
    return {str(name) for (name,) in cursor.fetchall()}


def refuse_views(source: Source, database: sqlite3.Connection, start: str) -> None:
    """Refuse views with the names of tables to be read: their rows may be anything, or endless."""
    cursor = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'view' OR (type = 'table' AND rootpage = 0)"
    )
    for name in sorted(str(name) for (name,) in cursor.fetchall()):
        if name.startswith(start):
            raise source.error(
                f"{name} is a view, but the profiler writes a table of this name. Export the file "
                "again."
            )


def select(
    database: sqlite3.Connection, table: str, wanted: Sequence[str]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns among these that an ordinary table has, and its rows.

    Raises
    ------
    sqlite3.DatabaseError
        It is a view or a virtual table.
    """
    columns, parts = select_parts(database, table, wanted)
    return columns, [row for part in parts for row in part]


def select_parts(
    database: sqlite3.Connection, table: str, wanted: Sequence[str]
) -> tuple[list[str], Iterator[list[tuple[Any, ...]]]]:
    """Return the same, the rows some thousand at a time; there is a part even without rows."""
    if table not in tables_of(database):
        query = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?"
        if database.execute(query, (table,)).fetchall():
            raise sqlite3.DatabaseError(f"{table} is a view, but the profiler writes a table")
        return [], iter([[]])
    name = _quoted(table)
    present = {str(row[1]) for row in database.execute(f"PRAGMA table_info({name})")}
    columns = [column for column in wanted if column in present]
    if not columns:
        return [], iter([[]])
    listed = ", ".join(map(_quoted, columns))
    cursor = database.execute(f"SELECT {listed} FROM {name}")

    def parts() -> Iterator[list[tuple[Any, ...]]]:
        yield cursor.fetchmany(_PART)
        while rows := cursor.fetchmany(_PART):
            yield rows

    return columns, parts()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def whole_numbers(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Return rows as whole numbers, which SQLite does not guarantee."""
    import polars as pl

    series = {}
    by_column = zip(*rows, strict=True) if rows else [()] * len(columns)
    for column, values in zip(columns, by_column, strict=True):
        try:
            series[column] = pl.Series(column, values, dtype=pl.Int64)
        except TypeError:
            whole = [value if isinstance(value, int) else None for value in values]
            series[column] = pl.Series(column, whole, dtype=pl.Int64)
    return pl.DataFrame(series)
