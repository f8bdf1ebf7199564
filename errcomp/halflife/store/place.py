"""Where a store is: the file or the server, connections to it, and messages when they fail."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from errcomp.errors import InputError, MissingExtraError

#: Seconds to wait for another writer; adding a million validations takes half a minute.
WAIT = 120
#: SQLAlchemy logs the traceback of a signal that comes while it closes a connection. Nobody who
#: has not set up logging wants to see it.
_LOG = "errcomp"
logging.getLogger(f"sqlalchemy.pool.impl.NullPool.{_LOG}").addHandler(logging.NullHandler())
#: Seconds to wait for a server to answer.
CONNECT = 10
#: Pages kept in memory, in KiB: the index of identities is written in no order.
_CACHE = 256 * 1024
_MAGIC = b"SQLite format 3\0"
#: How the URL of a store begins, with or without its slashes.
_URL = re.compile(r"(postgres\w*|sqlite)(\+\w+)?:|.*://", re.IGNORECASE | re.DOTALL)
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
                pool_logging_name=_LOG,
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
            pool_logging_name=_LOG,
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


def is_url(text: str) -> bool:
    """Say whether it is meant as a URL: a password in it must not be treated as a file's name."""
    return _URL.match(text) is not None


def locate(where: str | PathLike[str]) -> Place:
    """Return the place that a path or a URL names.

    Raises
    ------
    InputError
        It is another kind of URL, or not a valid name of a file.
    """
    text = os.fspath(where)
    if not is_url(text):
        if "\0" in text or text in ("", ":memory:"):
            raise InputError(f"a store needs the name of a file, got {text!r}.")
        return Place(text, Path(text), None)
    try:
        url = make_url(text) if "://" in text else None
    except (SQLAlchemyError, ValueError):
        url = None
    # The text is not shown: it may hold a password.
    if url is None:
        raise InputError(
            "the URL of the store is not valid. Write "
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
        # The file may come from a stranger: what it defines must not reach beyond it.
        safe = ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON")
        for order in (*safe, f"PRAGMA cache_size = -{_CACHE}", *orders):
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
    "SQLITE_FULL": "the disk is full. Nothing was added; free some space and add the rows again.",
    "SQLITE_READONLY": "the file or its folder is read-only. Make both writable, or copy the file "
    "to a writable folder.",
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
    "25006": "the server is read-only. Use a server that accepts writes.",
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
        "the database refused the request ({text}). Check the database."
        if code
        else "the server cannot be reached, refused the connection or closed it ({text}). {kept}"
    )
    outcome = "Check the server and try again."
    if done == "written":
        outcome = "" if unsure else "Nothing was added; check the server and try again."
    return reason.format(wait=WAIT, done=done, text=_line(error), kept=outcome).strip()


def _line(error: Any) -> str:
    """Return the first line of a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
