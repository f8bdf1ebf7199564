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
from typing import Any, Self

import polars as pl
import polars.selectors as cs
import sqlalchemy as sa
from sqlalchemy import Connection

from errcomp.errors import InputError, describe_names
from errcomp.halflife.store import database
from errcomp.halflife.store.database import locate
from errcomp.halflife.store.frames import (
    SERIES,
    SETUP,
    VALUES,
    Coded,
    Kind,
    Plain,
    coded,
    numbered,
    plain,
    widened,
)
from errcomp.readers.history import read
from errcomp.system.files import replacing
from errcomp.tables import History
from errcomp.tables.columns import status_ok
from errcomp.tables.frames import to_eager

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
        given = plain(table)
        rows = coded(given, name)
        with self._use():
            # Before anything is changed in a file that may be somebody else's.
            self._schema()
            with self._place.writing() as connection:
                database.ensure_schema(connection, self._place.shown)
                n = write(connection, name, given, rows, skip_known=skip_known)
        return Added(n, len(given.rows) - n)

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
            rows = [] if connection is None else database.contents(connection)
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
            number = None if connection is None else database.history_id(connection, name)
            if connection is None or number is None:
                names = [stored.name for stored in self.list()]
                raise InputError(
                    f"{self._place.shown}: there is no history {name!r} in it. Histories: "
                    f"{describe_names(names, wanted=name)}"
                )
            return database.frame_of(connection, number)

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
            return database.schema_of(connection, self._place.shown)

    @contextmanager
    def _reading(self) -> Iterator[Connection | None]:
        """Yield a connection to tables that are up to date; None where there are none yet."""
        with self._use():
            if not self._place.exists:
                raise InputError(
                    f"{self._place.shown}: there is no such store. `errcomp history add` makes one."
                )
            version = self._schema()
            if version is not None and version < database.SCHEMA:
                with self._place.writing() as connection:
                    database.ensure_schema(connection, self._place.shown)
            with self._place.reading() as connection:
                yield None if version is None else connection


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a history needs a name that can be printed, got {name!r}")


# What is to be added to a store, checked against what is there, and written.

#: Rows that are written at a time.
_AT_ONCE = 20_000
#: Values that a query may be asked for at a time: SQLite took no more than 999 for long.
_ASKED = 900
#: Reading all of a history costs as much as asking for one in so many of its validations.
_SCAN = 4


def write(
    connection: sa.Connection, name: str, given: Plain, rows: Coded, *, skip_known: bool
) -> int:
    """Add a history within the transaction of the only writer; return how many rows were new.

    Raises
    ------
    InputError
        Something of it is there already, or does not fit what is there.
    """
    number = database.history_id(connection, name)
    if number is None:
        number = _next(connection, database.history)
        connection.execute(database.history.insert().values(id=number, name=name))
        series = database.parts_of(connection, database.series, number, SERIES)
        new = pl.Series([True]).new_from_index(0, rows.rows.height)
    else:
        _check_columns(database.kinds_of(connection, number), given, name)
        series = database.parts_of(connection, database.series, number, SERIES)
        _check_units(connection, number, series, given, rows)
        new = _unknown(connection, number, given, rows.rows, skip_known=skip_known)
        if not new.any():
            return 0
    _write_kinds(connection, number, given.kinds())
    version_ids = _write_versions(connection, number, given, rows.version)
    series_ids = _write_parts(connection, database.series, number, series, rows.series)
    setup = database.parts_of(connection, database.setup, number, SETUP)
    setup_ids = _write_parts(connection, database.setup, number, setup, rows.setup)
    added = rows.rows.filter(new)
    start = _next(connection, database.validation)
    complete = added.select(
        pl.int_range(start, start + added.height, dtype=pl.Int64).alias("id"),
        pl.lit(number, pl.Int64).alias("history_id"),
        series_ids.gather(added["series_code"]).alias("series_id"),
        version_ids.gather(added["version_code"]).alias("version_id"),
        setup_ids.gather(added["setup_code"]).alias("setup_id"),
        "identity",
        "occurrence",
        "date",
        "repeat",
        *VALUES,
    )
    _insert(connection, database.validation, complete)
    return added.height


def _next(connection: sa.Connection, table: sa.Table) -> int:
    """Return the number after the last; there is one writer at a time."""
    return int(connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0) + 1


def _insert(connection: sa.Connection, table: sa.Table, rows: pl.DataFrame) -> None:
    """Add rows by the quickest way that the database has."""
    if connection.dialect.name == "postgresql":
        _copy(connection, table, rows)
        return
    statement = table.insert().compile(dialect=connection.dialect, column_keys=rows.columns)
    ordered = rows.select(statement.positiontup or rows.columns)
    for part in ordered.iter_slices(_AT_ONCE):
        connection.exec_driver_sql(str(statement), part.rows())


def _copy(connection: sa.Connection, table: sa.Table, rows: pl.DataFrame) -> None:
    """Add rows in the text format of PostgreSQL: tabs between columns, backslashes before both."""
    quoted = connection.dialect.identifier_preparer.quote
    order = f"COPY {quoted(table.name)} ({', '.join(map(quoted, rows.columns))}) FROM STDIN"
    escaped: pl.Expr = cs.string()
    for character, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        escaped = escaped.str.replace_all(character, written, literal=True)
    cursor: Any = connection.connection.cursor()
    with cursor, cursor.copy(order) as stream:
        for part in rows.iter_slices(_AT_ONCE):
            plain = part.with_columns(
                escaped, *(_hex(part[n]) for n in part.columns if part[n].dtype == pl.Binary)
            )
            text = plain.write_csv(
                include_header=False, separator="\t", null_value="\\N", quote_style="never"
            )
            stream.write(text)


def _hex(column: pl.Series) -> pl.Series:
    return pl.select("\\\\x" + column.bin.encode("hex")).to_series().alias(column.name)


def _check_columns(kinds: Mapping[str, Kind], given: Plain, name: str) -> None:
    """Refuse what would make a table with gaps where every row needs a value."""
    for column, why in (
        ("series", "it names the series in all rows or in none"),
        ("predicted", "all validations of a history have predictions, or none"),
    ):
        here = column in given.frame.columns
        if here != (column in kinds):
            has, lacks = ("the table", f"the history {name!r}")[:: 1 if here else -1]
            raise InputError(
                f"{given.prefix}{has} has a column {column} and {lacks} has none: {why}. Change "
                "the table, or add it under another name (name=, --name)."
            )


def _unknown(
    connection: sa.Connection, number: int, given: Plain, rows: pl.DataFrame, *, skip_known: bool
) -> pl.Series:
    """Return which rows are not in the store yet; raise on those that are and may not be."""
    table = database.validation
    query = sa.select(*(table.c[n] for n in ("identity", *VALUES)))
    every = table.c.history_id == number
    count = connection.execute(sa.select(sa.func.count()).where(every)).scalar() or 0
    if count < _SCAN * rows.height:
        stored = database.fetched(connection, query.where(every))
    else:
        asked = rows["identity"].unique().to_list()
        parts = (asked[i : i + _ASKED] for i in range(0, len(asked), _ASKED))
        stored = pl.concat(
            database.fetched(connection, query.where(table.c.identity.in_(p))) for p in parts
        )
    codes = numbered(rows.select("identity"), stored.select("identity").unique(), "\0code")
    same = numbered(
        rows.select("identity", *VALUES), stored.unique().select("identity", *VALUES), "\0code"
    )
    other = (codes.is_not_null() & same.is_null()).to_numpy()
    if other.any():
        at = int(other.argmax())
        row = rows.row(at, named=True)
        stored = stored.filter(pl.col("identity") == row["identity"])
        value = next((n for n in VALUES if stored[n][0] != row[n]), VALUES[0])
        raise InputError(
            f"{given.prefix}duplicate validations: {given.name(other)} are there already with "
            f"another value ({value} {stored[value][0]} in the store against {row[value]} in "
            f"{given.name([at])}). Give repetitions another date or a number in a column repeat; "
            "to correct a value, export the history, change it and add it under another name."
        )
    known = codes.is_not_null()
    if known.any() and not skip_known:
        raise InputError(
            f"{given.prefix}duplicate validations: {known.sum()} of {len(known)} are there "
            f"already ({given.name(known.to_numpy())}). Nothing was added. Leave them out, or skip "
            "them with skip_known=True (--skip-known)."
        )
    return ~known


def _check_units(
    connection: sa.Connection, number: int, stored: pl.DataFrame, given: Plain, rows: Coded
) -> None:
    """Refuse a series whose validations in the store have another unit."""
    by = ["series", "level", "predictor"]
    if rows.series["series"].is_null().all():
        by[0] = "keys"
    used = rows.rows["series_code"].filter(pl.Series(given.ok)).unique()
    added = rows.series.with_row_index("code")[used].select("code", *by, "unit")
    both = added.join(stored.select("id", *by, "unit"), on=by, nulls_equal=True, suffix="_there")
    both = both.filter(pl.col("unit").ne_missing(pl.col("unit_there")))
    if both.is_empty():
        return
    # Validations that failed need no unit.
    table = database.validation
    query = sa.select(table.c.series_id, table.c.status).distinct()
    seen = database.fetched(connection, query.where(table.c.history_id == number))
    both = both.join(seen.filter(status_ok(to_eager(seen))), left_on="id", right_on="series_id")
    if both.is_empty():
        return
    first = both.row(0, named=True)
    old, new = (repr(first[n]) if first[n] else "no unit" for n in ("unit_there", "unit"))
    which = (rows.rows["series_code"] == first["code"]).to_numpy() & given.ok
    raise InputError(
        f"{given.prefix}mixed units: {old} in the store and {new} in {given.name(which)} of the "
        "same series. Convert one of them first."
    )


def _write_kinds(connection: sa.Connection, number: int, kinds: Mapping[str, Kind]) -> None:
    """Say which columns the history has now."""
    table, stored = database.column, database.kinds_of(connection, number)
    for name, kind in kinds.items():
        if name not in stored:
            row = {"id": _next(connection, table), "history_id": number, "name": name, "kind": kind}
            connection.execute(table.insert().values(row))
        elif (wide := widened(stored[name], kind)) != stored[name]:
            same_column = (table.c.history_id == number) & (table.c.name == name)
            connection.execute(table.update().where(same_column).values(kind=wide))


def _write_versions(
    connection: sa.Connection, number: int, given: Plain, versions: pl.DataFrame
) -> pl.Series:
    """Add versions that are new, and release dates that were not known; return their numbers."""
    stored = database.parts_of(connection, database.version, number, ("version", "released"))
    both = versions.join(stored, on="version", how="left", suffix="_there", maintain_order="left")
    differ = both.filter(pl.col("released") != pl.col("released_there"))
    if not differ.is_empty():
        first = differ.row(0, named=True)
        which = (given.frame["version"] == first["version"]).to_numpy()
        raise InputError(
            f"{given.prefix}version {first['version']!r} was released {first['released_there']} "
            f"by the store and {first['released']} by {given.name(which)}. Fix the date; the time "
            "of a validation belongs in date."
        )
    table = database.version
    late = both["id"].is_not_null() & both["released_there"].is_null()
    for row in both.filter(late & both["released"].is_not_null()).iter_rows(named=True):
        same_version = table.c.id == row["id"]
        connection.execute(table.update().where(same_version).values(released=row["released"]))
    return _numbers_of(connection, table, number, versions, both["id"])


def _write_parts(
    connection: sa.Connection,
    table: sa.Table,
    number: int,
    stored: pl.DataFrame,
    parts: pl.DataFrame,
) -> pl.Series:
    """Add series or setups that are new; return the number of each."""
    ids = stored["id"].gather(numbered(parts, stored.drop("id"), "\0code"))
    return _numbers_of(connection, table, number, parts, ids)


def _numbers_of(
    connection: sa.Connection, table: sa.Table, number: int, parts: pl.DataFrame, ids: pl.Series
) -> pl.Series:
    """Add the parts that have no number yet; return the number of each."""
    new = ids.is_null()
    fresh = new.cum_sum().cast(pl.Int64) + (_next(connection, table) - 1)
    complete = parts.select(
        fresh.alias("id"), pl.lit(number, pl.Int64).alias("history_id"), pl.all()
    )
    _insert(connection, table, complete.filter(new))
    return fresh.zip_with(new, ids)
