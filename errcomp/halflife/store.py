"""The store of validations: an SQLite file, or a PostgreSQL database that several machines use.

All that one call adds is kept, or nothing: a writer that is killed leaves no part of it. What
`HistoryStore.add` has returned from is on the disk. Several processes may add at once (they take
turns), and reading goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from errcomp._files import replacing
from errcomp.errors import InputError, describe_names
from errcomp.halflife._store_engine import locate
from errcomp.halflife._store_frames import coded, plain
from errcomp.halflife._store_reading import contents, frame_of, history_id
from errcomp.halflife._store_schema import SCHEMA, ensure_schema, schema_of
from errcomp.halflife._store_writing import write
from errcomp.readers.history import read
from errcomp.tables.history import History

if TYPE_CHECKING:
    import polars as pl
    from sqlalchemy import Connection

__all__ = ["Added", "HistoryStore", "StoredHistory"]


@dataclass(frozen=True, slots=True)
class Added:
    """What an addition did.

    Attributes
    ----------
    n : int
        Validations that were added.
    n_known : int
        Validations that were there already, with the same values, and were skipped.
    """

    n: int
    n_known: int


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """A history in a store.

    Attributes
    ----------
    name : str
    validations, series, versions : int
        How many there are; those that failed are validations too.
    predictors : tuple of str
        Names in the column ``predictor``.
    first, last : str or None
        Dates of validation (ISO 8601, UTC); None where none is known.
    """

    name: str
    validations: int
    series: int
    versions: int
    predictors: tuple[str, ...]
    first: str | None
    last: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "predictors": list(self.predictors)}


class HistoryStore:
    """Histories by name, in a file or a database.

    A validation is one and the same if history, series and keys, level, version, predictor and its
    version, stack, date and repeat agree. Rows of one addition that agree in all of them are
    repeats; a later addition cannot add to them unless its rows have another date or a number in
    ``repeat``.

    Parameters
    ----------
    where : path or str
        An SQLite file, which the first addition makes; or ``postgresql://user:password@host/name``.
        Not for files on a network drive: use a database there.

    Raises
    ------
    InputError
        The path can hold no store, or the URL is none of PostgreSQL.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "history.db"
    >>> checked = {"version": ["1.0", "1.1"], "op": ["Gelu", "Gelu"], "measured": [4.0, 2.0]}
    >>> with HistoryStore(path) as store:
    ...     store.add(checked)
    ...     store.add({"version": ["1.2"], "op": ["Gelu"], "measured": [2.1]})
    ...     store.load().measured.tolist()
    Added(n=2, n_known=0)
    Added(n=1, n_known=0)
    [4.0, 2.0, 2.1]
    """

    def __init__(self, where: str | PathLike[str]) -> None:
        self._place = locate(where)
        self._place.check()
        self._closed = False

    def __repr__(self) -> str:
        return f"HistoryStore({self._place.shown!r})"

    @property
    def shown(self) -> str:
        """Its name for people, without a password."""
        return self._place.shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the use of the store. Nothing is lost without: no connection outlives its call."""
        self._closed = True

    def add(self, history: Any, *, name: str = "default", skip_known: bool = False) -> Added:
        """Add validations: all of them or, where one is refused, none.

        Parameters
        ----------
        history : History or what one is made of
            A selection (``where``) is added without the validations that failed.
        name : str
            Of the history in the store; made if there is none.
        skip_known : bool
            Skip what is there already with the same values, instead of refusing it.

        Returns
        -------
        Added

        Raises
        ------
        InputError
            The table is no history; a validation is there already (with other values even if
            ``skip_known``); units, release dates or types of columns are other than those in the
            store; or it cannot be written (no room, read-only, locked, server gone).

        Examples
        --------
        See `HistoryStore`.
        """
        _check_name(name)
        table = history if isinstance(history, History) else History(history)
        found = plain(table)
        rows = coded(found, name)
        with self._use():
            # Before anything is changed in a file that may be somebody else's.
            self._schema()
            with self._place.writing() as connection:
                ensure_schema(connection, self._place.shown)
                n = write(connection, name, found, rows, skip_known=skip_known)
        return Added(n, len(found.rows) - n)

    def load(
        self,
        *,
        name: str = "default",
        where: Mapping[str, Any] | None = None,
        order: Sequence[str] | None = None,
    ) -> History:
        """Return a history, in the order in which it was added.

        Parameters
        ----------
        name : str
        where : mapping of str to values, optional
            Only these validations, as for `History.where`.
        order : sequence of str, optional
            Versions, oldest first, where neither release dates, numbers nor dates can order them.

        Returns
        -------
        History
            Its frame is Polars'. Numbers are those that were added to the last bit; dates have a
            resolution of a second.

        Raises
        ------
        InputError
            There is no such store or history, nothing satisfies the conditions, or the versions
            cannot be ordered.

        Examples
        --------
        See `HistoryStore`.
        """
        source = f"{self._place.shown} ({name})"
        history = History(self._frame(name), order=order, source=source)
        return history.where(where) if where else history

    def list(self) -> tuple[StoredHistory, ...]:
        """Return what is in the store, by name.

        Returns
        -------
        tuple of StoredHistory

        Raises
        ------
        InputError
            There is no such store.
        """
        with self._reading() as connection:
            rows = [] if connection is None else contents(connection)
        return tuple(StoredHistory(**row) for row in rows)

    def export(self, path: str | PathLike[str], *, name: str = "default") -> int:
        """Write a history to a Parquet or CSV file, whole or not at all; return its rows.

        Parameters
        ----------
        path : path
            ``*.parquet`` or ``*.csv``; a file of this name is replaced.
        name : str

        Raises
        ------
        InputError
            There is no such history, or the file cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() not in (".parquet", ".csv"):
            raise InputError(
                f"{target}: a history is exported as Parquet or CSV: end the name in .parquet or "
                ".csv."
            )
        if target.exists() and self._place.path is not None and target.samefile(self._place.path):
            raise InputError(f"{target} is the store itself; name another file")
        frame = self._frame(name)
        with replacing(target) as temporary:
            if target.suffix.lower() == ".csv":
                frame.write_csv(temporary, datetime_format="%Y-%m-%dT%H:%M:%SZ")
            else:
                frame.write_parquet(temporary)
        return frame.height

    def import_file(
        self, path: str | PathLike[str], *, name: str = "default", skip_known: bool = False
    ) -> Added:
        """Add the validations of a Parquet, CSV, JSON or JSON lines file, e.g. an exported one.

        Parameters
        ----------
        path : path
        name : str
        skip_known : bool
            As for `add`.

        Returns
        -------
        Added

        Raises
        ------
        InputError
            The file cannot be read, or as for `add`.
        """
        return self.add(read(path), name=name, skip_known=skip_known)

    def _frame(self, name: str) -> pl.DataFrame:
        """Return a history as one table."""
        with self._reading() as connection:
            number = None if connection is None else history_id(connection, name)
            if connection is None or number is None:
                there = [] if connection is None else [row["name"] for row in contents(connection)]
                raise InputError(
                    f"{self._place.shown}: there is no history {name!r} in it. Histories: "
                    f"{describe_names(there, wanted=name)}"
                )
            return frame_of(connection, number)

    @contextmanager
    def _use(self) -> Iterator[None]:
        """Refuse a store that was closed, or whose file has become something else."""
        if self._closed:
            raise InputError(f"{self._place.shown}: the store was closed. Open it again.")
        self._place.check()
        yield

    def _schema(self) -> int | None:
        """Return the version of the tables, None where there are none."""
        if not self._place.exists:
            return None
        with self._place.reading() as connection:
            return schema_of(connection, self._place.shown)

    @contextmanager
    def _reading(self) -> Iterator[Connection | None]:
        """Yield a connection to tables that are up to date; None where there are none yet."""
        with self._use():
            if not self._place.exists:
                raise InputError(
                    f"{self._place.shown}: there is no such store. `errcomp history add` makes one."
                )
            found = self._schema()
            if found is not None and found < SCHEMA:
                with self._place.writing() as connection:
                    ensure_schema(connection, self._place.shown)
            with self._place.reading() as connection:
                yield None if found is None else connection


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a history needs a name that can be printed, got {name!r}")
