"""The database of a store: connections to it, messages when they fail, and its tables.

A validation refers to its series, its version and its setup (the rest of the software) by number: a
history has many validations of a few series, versions and setups. Keys without a column are one
JSON text, sorted by name. All tables have a prefix, because a server's database also holds other
tables.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from errcomp.errors import InputError, MissingExtraError
from errcomp.halflife.store.frames import SERIES, SETUP, VALUES, Kind, joined

#: Seconds to wait for another writer; adding a million validations takes half a minute.
WAIT = 120
#: Seconds to wait for a server to answer.
CONNECT = 10
#: Pages kept in memory, in KiB: the index of identities is written in no order.
_CACHE = 256 * 1024
_MAGIC = b"SQLite format 3\0"
#: Number of the lock by which writers on a server take turns; any number that others do not use.
_TURN = 0x6572_7263_6F6D_70


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a database on a server.

    Attributes
    ----------
    shown : str
        Its name for messages, without a password.
    path : Path or None
        Of the file.
    url : sqlalchemy.URL or None
        Of the database.
    """

    shown: str
    path: Path | None
    url: sa.URL | None

    @property
    def exists(self) -> bool:
        """Say whether there is something to read; always true for a server."""
        return self.path is None or (self.path.exists() and self.path.stat().st_size > 0)

    def check(self) -> None:
        """Refuse a path that cannot hold a store.

        Raises
        ------
        InputError
            It is a folder, its folder does not exist, or it is a file of another kind.
        """
        if self.path is None:
            return
        try:
            if self.path.is_dir():
                raise InputError(f"{self.shown} is a folder. Name a file in it.")
            if not self.path.parent.is_dir():
                raise InputError(
                    f"{self.shown}: the folder {self.path.parent} does not exist. Create it."
                )
            if not self.exists:
                return
            with self.path.open("rb") as file:
                begins = file.read(len(_MAGIC))
        except OSError as error:
            raise InputError(f"{self.shown}: cannot be read ({error.strerror})") from error
        if begins != _MAGIC:
            raise InputError(
                f"{self.shown}: not a history store: it is not an SQLite file. Name another file."
            )

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a connection that sees the present state of the store, in spite of other writers.

        Raises
        ------
        InputError
            The store cannot be reached or read.
        """
        engine = self._engine(write=False)
        with self._explained("read"), engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Yield the connection of the only writer; its changes are kept as a whole or not at all.

        Raises
        ------
        InputError
            The store cannot be reached or written, or another writer did not finish in time.
        """
        committing, engine = False, self._engine(write=True)
        with self._explained("written") as lost:
            try:
                with engine.connect() as connection, connection.begin() as transaction:
                    yield connection
                    committing = True
                    transaction.commit()
            except DBAPIError as error:
                if committing and error.connection_invalidated:
                    lost.append(
                        "It is unknown whether the rows were stored: add them again with "
                        "skip_known=True (--skip-known)."
                    )
                raise

    def _engine(self, *, write: bool) -> sa.Engine:
        """Return an engine that opens a connection for each use, so that processes may fork."""
        if self.path is not None:
            path = self.path
            engine = sa.create_engine(
                "sqlite://",
                creator=lambda: _open_file(path, write=write),
                poolclass=sa.NullPool,
                hide_parameters=True,
            )
            start = "BEGIN IMMEDIATE" if write else "BEGIN"
            sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(start))
            return engine
        assert self.url is not None
        if find_spec("psycopg") is None:
            raise MissingExtraError("psycopg", "postgres", "a store on a PostgreSQL server")
        engine = sa.create_engine(
            self.url,
            poolclass=sa.NullPool,
            hide_parameters=True,
            connect_args={"connect_timeout": CONNECT},
            isolation_level="READ COMMITTED" if write else "REPEATABLE READ",
        )
        if write:
            sa.event.listen(engine, "begin", _take_turn)
        return engine

    @contextmanager
    def _explained(self, done: str) -> Iterator[list[str]]:
        """Turn errors of the database into messages; texts added to the list are appended."""
        more: list[str] = []
        known = _errors(self.path)
        try:
            yield more
        except known as error:
            original = error.orig if isinstance(error, DBAPIError) else error
            reason = (
                _of_file(original, done)
                if self.path is not None
                else _of_server(original, done, unsure=bool(more))
            )
            raise InputError(" ".join([f"{self.shown}: {reason}", *more])) from error


def locate(where: str | PathLike[str]) -> Place:
    """Return the place that a path or a URL names.

    Raises
    ------
    InputError
        It is another kind of URL, or not a valid name of a file.
    """
    text = os.fspath(where)
    if "://" not in text:
        if "\0" in text or text in ("", ":memory:"):
            raise InputError(f"a store needs the name of a file, got {text!r}.")
        return Place(text, Path(text), None)
    try:
        url = make_url(text)
    except (SQLAlchemyError, ValueError):
        url = None
    # The text is not shown: it may hold a password.
    if url is None:
        raise InputError(
            "the URL of the store cannot be read. Write "
            "postgresql://user:password@host:5432/database, with %40 for @ within a password."
        )
    if url.get_backend_name() == "sqlite" and url.database:
        return Place(url.database, Path(url.database), None)
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise InputError(
            "a store must be a file or a PostgreSQL database (postgresql://…), got "
            f"{url.drivername}://…"
        )
    # Without the query, which may hold a password, too.
    shown = sa.URL.create(
        "postgresql", url.username, host=url.host, port=url.port, database=url.database
    )
    return Place(str(shown), None, url.set(drivername="postgresql+psycopg"))


def _open_file(path: Path, *, write: bool) -> sqlite3.Connection:
    if not write:
        return _open_to_read(path)
    # Readers are not blocked by a writer, and acknowledged rows survive a power failure.
    return _connect(path, "rwc", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL")


def _open_to_read(path: Path) -> sqlite3.Connection:
    try:
        return _connect(path, "rw")
    except sqlite3.Error as error:
        closed = error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))
        # If the folder is read-only and has no log of the file, the file is complete.
        if not closed or path.with_name(f"{path.name}-wal").exists():
            raise
    return _connect(path, "ro&immutable=1")


def _connect(path: Path, mode: str, *orders: str) -> sqlite3.Connection:
    where = f"file:{quote(str(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(where, uri=True, timeout=WAIT, isolation_level=None)
    try:
        for order in (f"PRAGMA cache_size = -{_CACHE}", *orders):
            _patiently(connection, order)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _patiently(connection: sqlite3.Connection, order: str) -> None:
    """Execute an order, and repeat it while another process is busy with the file.

    SQLite does not wait if two processes switch a new file to the write-ahead log.
    """
    deadline = time.monotonic() + WAIT
    while True:
        try:
            connection.execute(order)
            return
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _errors(path: Path | None) -> tuple[type[Exception], ...]:
    """Return the exceptions of a database, including those of the server's driver."""
    if path is not None:
        # SQLite quotes what is damaged in its message, which Python then cannot decode.
        return (SQLAlchemyError, UnicodeDecodeError)
    import psycopg

    return (SQLAlchemyError, psycopg.Error)


def _take_turn(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT}s'")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TURN})")


_FILE = {
    "SQLITE_BUSY": "another process has been writing to it for {wait} seconds. Try again.",
    "SQLITE_FULL": "the disk is full. Nothing was added; make room and add again.",
    "SQLITE_READONLY": "the file or its folder is read-only. Make both writable, or copy the file.",
    "SQLITE_CANTOPEN": "cannot be opened. Check that the file and its folder can be {done}.",
    "SQLITE_PERM": "cannot be opened. Check that the file and its folder can be {done}.",
    "SQLITE_IOERR": "the disk failed or is full ({text}). Nothing was added; check the disk.",
    "SQLITE_CORRUPT": "the file is damaged ({text}). Restore it from a copy.",
    "SQLITE_NOTADB": "not a history store: it is not an SQLite file, or it is damaged. Name "
    "another file.",
}
_SERVER = {
    "42501": "the user lacks a privilege ({text}). Grant CREATE on the schema and all privileges "
    "on its tables.",
    "25006": "the server is read-only. Name a server that can be {done}.",
    "53": "the server is out of disk space or connections ({text}). Nothing was added.",
    "55P03": "another process has been writing to it for {wait} seconds. Try again.",
    "57P": "the server is shutting down or ended the connection ({text}). {kept}",
}


def _of_file(error: BaseException | None, done: str) -> str:
    code = str(getattr(error, "sqlite_errorname", ""))
    reason = next((text for start, text in _FILE.items() if code.startswith(start)), None)
    if isinstance(error, UnicodeDecodeError):
        reason = _FILE["SQLITE_CORRUPT"]
    reason = reason or "cannot be {done} ({text}). Check the file."
    return reason.format(wait=WAIT, done=done, text=_line(error))


def _of_server(error: BaseException | None, done: str, *, unsure: bool) -> str:
    code = str(getattr(error, "sqlstate", None) or "")
    reason = next(
        (text for start, text in _SERVER.items() if code and code.startswith(start)), None
    )
    reason = reason or (
        "the database refuses the request ({text}). Check the database."
        if code
        else "the server cannot be reached, refuses the connection or has gone ({text}). {kept}"
    )
    outcome = "" if unsure else "Nothing was added; check the server and try again."
    return reason.format(wait=WAIT, done=done, text=_line(error), kept=outcome).strip()


def _line(error: Any) -> str:
    """Return the first line of a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


#: Version of the tables that this errcomp writes.
SCHEMA = 1

metadata = sa.MetaData()

# SQLite numbers rows itself if the type is INTEGER, which has 64 bits.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

meta = sa.Table("errcomp_meta", metadata, sa.Column("schema_version", sa.Integer, nullable=False))


def _table(name: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    """Declare a table with row numbers assigned by errcomp."""
    number = sa.Column("id", _Id, primary_key=True, autoincrement=False)
    return sa.Table(f"errcomp_{name}", metadata, number, *columns)


def _of_history(*, index: bool = False) -> sa.Column[int]:
    refers = sa.ForeignKey("errcomp_history.id")
    return sa.Column("history_id", _Id, refers, nullable=False, index=index)


history = _table("history", sa.Column("name", sa.Text, nullable=False, unique=True))
#: The columns of a history, in order of first appearance, and their types.
column = _table(
    "column",
    _of_history(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.UniqueConstraint("history_id", "name"),
)

version = _table(
    "version",
    _of_history(),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("released", sa.Text),
    sa.UniqueConstraint("history_id", "version"),
)

series = _table(
    "series",
    _of_history(index=True),
    sa.Column("series", sa.Text),
    sa.Column("keys", sa.Text, nullable=False),
    sa.Column("level", sa.Text),
    sa.Column("predictor", sa.Text),
    sa.Column("unit", sa.Text),
)

setup = _table(
    "setup",
    _of_history(index=True),
    sa.Column("predictor_version", sa.Text),
    sa.Column("stack", sa.Text, nullable=False),
)

validation = _table(
    "validation",
    # No foreign keys here: a server checks each of them in each row, at four times the cost of
    # everything else, and the referenced rows are written in the same transaction.
    sa.Column("history_id", _Id, nullable=False, index=True),
    sa.Column("series_id", _Id, nullable=False),
    sa.Column("version_id", _Id, nullable=False),
    sa.Column("setup_id", _Id, nullable=False),
    # Hash of everything that identifies the validation; repeats without a number are counted.
    sa.Column("identity", sa.LargeBinary, nullable=False),
    sa.Column("occurrence", sa.Integer, nullable=False),
    sa.Column("date", sa.Text),
    sa.Column("repeat", sa.Text),
    sa.Column("status", sa.Text),
    sa.Column("measured", sa.Double),
    sa.Column("predicted", sa.Double),
    sa.Column("measured_spread", sa.Double),
    sa.Column("n_repeats", sa.BigInteger),
    sa.UniqueConstraint("identity", "occurrence"),
)

#: Checksums of each addition. Stores of errcomp 0.2.0 and earlier lack this table; the next
#: addition makes it, and those versions of errcomp still read and write the others.
batch = _table(
    "batch",
    sa.Column("history_id", _Id, nullable=False),
    sa.Column("first_id", _Id, nullable=False),
    sa.Column("last_id", _Id, nullable=False),
    sa.Column("rows_sha256", sa.Text, nullable=False),
    sa.Column("parts_sha256", sa.Text, nullable=False),
)

#: SQL that upgrades the tables of each older version to the next. A released version keeps its SQL
#: for ever; `metadata` describes the present tables.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}


def schema_of(connection: sa.Connection, shown: str) -> int | None:
    """Return the version of the tables; None without tables.

    Parameters
    ----------
    connection : sqlalchemy.Connection
    shown : str
        Name of the store, for messages.

    Raises
    ------
    InputError
        They have a newer version, or belong to another program.
    """
    tables = set(sa.inspect(connection).get_table_names())
    if meta.name in tables:
        versions = connection.execute(sa.select(meta.c.schema_version)).scalars().all()
        if len(versions) != 1 or not isinstance(versions[0], int) or not versions[0] >= 1:
            raise InputError(
                f"{shown}: the store is damaged: it must have exactly one schema version, got "
                f"{versions}. Restore it from a copy."
            )
        if versions[0] > SCHEMA:
            raise InputError(
                f"{shown}: the store was written by a newer errcomp (its tables have version "
                f"{versions[0]}; this errcomp reads up to {SCHEMA}). Upgrade errcomp."
            )
        return versions[0]
    # On a server, other tables are allowed.
    if connection.dialect.name != "sqlite":
        tables &= set(metadata.tables)
    if tables:
        raise InputError(
            f"{shown}: not a history store: the table {min(tables)} is not one of its tables. "
            "Name another file or database."
        )
    return None


def ensure_schema(connection: sa.Connection, shown: str) -> None:
    """Create the tables, or upgrade older ones, within the present transaction.

    Raises
    ------
    InputError
        As for `schema_of`, or the server's database cannot hold every text.
    """
    current = schema_of(connection, shown)
    if current is None:
        if connection.dialect.name == "postgresql":
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
            if encoding != "UTF8":
                raise InputError(
                    f"{shown}: the database has the encoding {encoding}, which cannot hold every "
                    "name. Create one with ENCODING 'UTF8'."
                )
        metadata.create_all(connection, checkfirst=False)
        connection.execute(meta.insert().values(schema_version=SCHEMA))
        return
    batch.create(connection, checkfirst=True)
    if current < SCHEMA:
        for step in range(current, SCHEMA):
            MIGRATIONS[step](connection)
        connection.execute(meta.update().values(schema_version=SCHEMA))


#: Rows per read.
_AT_ONCE = 50_000
_TYPES: dict[type[Any], type[pl.DataType]] = {
    int: pl.Int64,
    float: pl.Float64,
    str: pl.String,
    bytes: pl.Binary,
}


def fetched(connection: sa.Connection, query: sa.Select[Any]) -> pl.DataFrame:
    """Return the rows of a query as a frame; only some of them are Python objects at a time."""
    names = [column.name for column in query.selected_columns]
    types = [_TYPES[column.type.python_type] for column in query.selected_columns]
    frames = [pl.DataFrame(schema=dict(zip(names, types, strict=True)))]
    result = connection.execute(query, execution_options={"yield_per": _AT_ONCE})
    for rows in result.partitions():
        columns = zip(names, zip(*rows, strict=True), types, strict=True)
        frames.append(pl.DataFrame([pl.Series(n, v, dtype=t) for n, v, t in columns]))
    return pl.concat(frames)


def history_id(connection: sa.Connection, name: str) -> int | None:
    """Return the number of a history; None if it does not exist."""
    query = sa.select(history.c.id).where(history.c.name == name)
    number: int | None = connection.execute(query).scalar()
    return number


def kinds_of(connection: sa.Connection, number: int) -> dict[str, Kind]:
    """Return the columns of a history in order, and their types."""
    table = column
    query = sa.select(table.c.name, table.c.kind).where(table.c.history_id == number)
    return {row[0]: row[1] for row in connection.execute(query.order_by(table.c.id))}


def parts_of(
    connection: sa.Connection, table: sa.Table, number: int, names: Sequence[str]
) -> pl.DataFrame:
    """Return the rows of a history in one of the smaller tables, by number."""
    columns = [table.c[name] for name in ("id", *names)]
    query = sa.select(*columns).where(table.c.history_id == number)
    return fetched(connection, query.order_by(table.c.id))


def frame_of(connection: sa.Connection, number: int) -> pl.DataFrame:
    """Return a history as one table, in the order in which it was added."""
    kinds = kinds_of(connection, number)
    table = validation
    # Empty columns are not read; usually these are most of the columns.
    names = [n for n in ("date", "repeat", *VALUES) if n in kinds]
    columns = [table.c[n] for n in ("series_id", "version_id", "setup_id", *names)]
    query = sa.select(*columns).where(table.c.history_id == number).order_by(table.c.id)
    return joined(
        fetched(connection, query),
        parts_of(connection, series, number, SERIES),
        parts_of(connection, version, number, ("version", "released")),
        parts_of(connection, setup, number, SETUP),
        kinds,
    )


def contents(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return name, size, predictors and dates of each history, by name."""
    named = sa.func.coalesce(series.c.series, series.c["keys"])
    distinct = sa.select(series.c.history_id, named, series.c.level, series.c.predictor).distinct()
    n_series, n_versions = (
        _by_history(connection, part, sa.func.count()) for part in (distinct.subquery(), version)
    )
    first, last = sa.func.min(validation.c.date), sa.func.max(validation.c.date)
    validations = _by_history(connection, validation, sa.func.count(), first, last)
    predictors: dict[int, list[str]] = {}
    query = sa.select(series.c.history_id, series.c.predictor).distinct()
    for number, name in connection.execute(query.where(series.c.predictor.is_not(None))):
        predictors.setdefault(number, []).append(name)
    names = connection.execute(sa.select(history.c.id, history.c.name)).all()
    return [
        {
            "name": name,
            "validations": validations[number][0],
            "series": n_series[number][0],
            "versions": n_versions[number][0],
            "predictors": tuple(sorted(predictors.get(number, ()))),
            "first": validations[number][1],
            "last": validations[number][2],
        }
        for number, name in sorted(names, key=lambda row: row[1])
    ]


def _by_history(
    connection: sa.Connection, table: sa.FromClause, *figures: sa.ColumnElement[Any]
) -> dict[int, tuple[Any, ...]]:
    query = sa.select(table.c.history_id, *figures).select_from(table).group_by(table.c.history_id)
    return {number: tuple(rest) for number, *rest in connection.execute(query)}
