"""The store of validations: an SQLite file, or a PostgreSQL database that several machines use.

A call adds all of its validations or none: a killed writer leaves no partial addition. When
`HistoryStore.add` returns, the validations are on the disk. Several processes may add at the same
time (they take turns), while others read.
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
from errcomp.halflife.store.checksums import StoreCheck, StoreDifference, compared, record
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
from errcomp.halflife.store.place import locate
from errcomp.readers.history import read
from errcomp.system.files import replacing
from errcomp.system.formulas import inert_frame
from errcomp.tables import History
from errcomp.tables.columns import status_ok
from errcomp.tables.frames import to_eager

__all__ = ["Added", "HistoryStore", "StoreCheck", "StoreDifference", "StoredHistory"]


@dataclass(frozen=True, slots=True)
class Added:
    """The result of an addition.

    Attributes
    ----------
    n : int
        Number of validations added.
    n_known : int
        Number of validations skipped because they were already in the store with the same values.
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
        Their numbers; failed validations count, too.
    predictors : tuple of str
        Names in the column ``predictor``.
    first, last : str or None
        Dates of validation (ISO 8601, UTC); None if unknown.
    """

    name: str
    validations: int
    series: int
    versions: int
    predictors: tuple[str, ...]
    first: str | None
    last: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> StoredHistory("default", 3, 1, 3, (), None, None).to_dict()["validations"]
        3
        """
        return {**asdict(self), "predictors": list(self.predictors)}


class HistoryStore:
    """Histories by name, in a file or a database.

    Two rows are the same validation if history, series and keys, level, version, predictor and its
    version, stack, date and repeat agree. Within an addition, such rows are repeats. A later
    addition can add repeats only with another date or a number in ``repeat``.

    Parameters
    ----------
    where : path or str
        An SQLite file, which the first addition creates, or a database
        ``postgresql://user:password@host/name``. Use a database instead of a file on a network
        drive.

    Raises
    ------
    InputError
        The path cannot hold a store, or the URL is not one of PostgreSQL.

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
        """The name of the store in messages, without a password."""
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
        """End the use of the store. Optional: no connection stays open after a call.

        Examples
        --------
        >>> import tempfile
        >>> store = HistoryStore(Path(tempfile.mkdtemp()) / "history.db")
        >>> store.close()
        >>> store.list()
        Traceback (most recent call last):
        errcomp.errors.InputError: ...history.db: the store was closed. Open it again.
        """
        self._closed = True

    def add(self, history: Any, *, name: str = "default", skip_known: bool = False) -> Added:
        """Add validations: all of them, or none if one is refused.

        Parameters
        ----------
        history : History, dataframe or mapping of columns
            A selection (``where``) is added without the validations that failed.
        name : str
            Of the history in the store; created if it does not exist.
        skip_known : bool
            Skip validations that are already in the store with the same values, instead of
            refusing them.

        Returns
        -------
        Added

        Raises
        ------
        InputError
            The table is not a history; a validation is already in the store (with ``skip_known``:
            with other values); units, release dates or types of columns differ from those in the
            store; or the store cannot be written (disk full, read-only, locked, server gone).

        Examples
        --------
        >>> import tempfile
        >>> store = HistoryStore(Path(tempfile.mkdtemp()) / "history.db")
        >>> store.add({"version": ["1.0"], "op": ["Gelu"], "measured": [4.0]})
        Added(n=1, n_known=0)
        >>> both = {"version": ["1.0", "1.1"], "op": ["Gelu"] * 2, "measured": [4.0, 2.0]}
        >>> store.add(both, skip_known=True)
        Added(n=1, n_known=1)
        """
        _check_name(name)
        table = history if isinstance(history, History) else History(history)
        given = plain(table)
        rows = coded(given, name)
        with self._use():
            # Check first: the file may belong to another program.
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
        series: Sequence[str] | None = None,
        order: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
    ) -> History:
        """Return a history, in the order in which it was added.

        Parameters
        ----------
        name : str
        where : mapping of str to values, optional
            Only these validations, as for `History.where`.
        series : sequence of str, optional
            Columns that together name a series, as for `errcomp.tables.History`.
        order : sequence of str, optional
            Versions, oldest first, if release dates, numbers or dates cannot order them.
        order_by : str or sequence of str, optional
            Columns that order them, as for `errcomp.tables.History`.

        Returns
        -------
        History
            As a Polars frame. Numbers are exact to the last bit; dates have a resolution of a
            second.

        Raises
        ------
        InputError
            The store or the history does not exist, no validation satisfies the conditions, or the
            versions cannot be ordered.

        Examples
        --------
        >>> import tempfile
        >>> store = HistoryStore(Path(tempfile.mkdtemp()) / "history.db")
        >>> store.add({"version": ["1.0", "1.1"], "op": ["Gelu"] * 2, "measured": [4.0, 2.0]}).n
        2
        >>> store.load(where={"op": "Gelu"}).measured.tolist()
        [4.0, 2.0]
        """
        source = f"{self._place.shown} ({name})"
        history = History(
            self._frame(name), series=series, order=order, order_by=order_by, source=source
        )
        return history.where(where) if where else history

    def list(self) -> tuple[StoredHistory, ...]:
        """Return the histories in the store, by name.

        Returns
        -------
        tuple of StoredHistory

        Raises
        ------
        InputError
            The store does not exist.

        Examples
        --------
        >>> import tempfile
        >>> store = HistoryStore(Path(tempfile.mkdtemp()) / "history.db")
        >>> store.add({"version": ["1.0", "1.1"], "measured": [4.0, 2.0]}, name="gelu").n
        2
        >>> [(stored.name, stored.validations) for stored in store.list()]
        [('gelu', 2)]
        """
        with self._reading() as connection:
            rows = [] if connection is None else database.contents(connection)
        return tuple(StoredHistory(**row) for row in rows)

    def check(self) -> StoreCheck:
        """Compare the store with the checksums of its additions.

        Returns
        -------
        StoreCheck
            With what differs. For a file, the structure is checked as well.

        Raises
        ------
        InputError
            The store does not exist, or is so damaged that it cannot be read.

        Examples
        --------
        >>> import tempfile
        >>> store = HistoryStore(Path(tempfile.mkdtemp()) / "history.db")
        >>> store.add({"version": ["1.0", "1.1"], "measured": [4.0, 2.0]}).n
        2
        >>> store.check()
        StoreCheck(additions=1, validations=2, unchecked=0, differences=())
        """
        with self._reading() as connection:
            return StoreCheck(0, 0, 0, ()) if connection is None else compared(connection)

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
            The history does not exist, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> store = HistoryStore(folder / "history.db")
        >>> store.add({"version": ["1.0", "1.1"], "measured": [4.0, 2.0]}).n
        2
        >>> store.export(folder / "history.csv")
        2
        """
        target = Path(path)
        if target.suffix.lower() not in (".parquet", ".csv"):
            raise InputError(
                f"{target}: a history can be exported as Parquet or CSV. End the name in .parquet "
                "or .csv."
            )
        if target.exists() and self._place.path is not None and target.samefile(self._place.path):
            raise InputError(f"{target} is the store itself. Name another file.")
        frame = self._frame(name)
        with replacing(target) as temporary, temporary.open("wb") as file:
            if target.suffix.lower() == ".csv":
                inert_frame(frame).write_csv(file, datetime_format="%Y-%m-%dT%H:%M:%SZ")
            else:
                frame.write_parquet(file)
        return frame.height

    def import_file(
        self, path: str | PathLike[str], *, name: str = "default", skip_known: bool = False
    ) -> Added:
        r"""Add the validations of a Parquet, CSV, JSON or JSON lines file, e.g. an exported one.

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

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "new.csv").write_text("version,op,measured\n1.0,Gelu,4.0\n")
        >>> HistoryStore(folder / "history.db").import_file(folder / "new.csv")
        Added(n=1, n_known=0)
        """
        return self.add(read(path), name=name, skip_known=skip_known)

    def _frame(self, name: str) -> pl.DataFrame:
        """Return a history as one table."""
        with self._reading() as connection:
            number = None if connection is None else database.history_id(connection, name)
            if connection is None or number is None:
                names = [stored.name for stored in self.list()]
                raise InputError(
                    f"{self._place.shown}: unknown history {name!r}. Histories: "
                    f"{describe_names(names, wanted=name)}."
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
        """Return the version of the tables, None without tables."""
        if not self._place.exists:
            return None
        with self._place.reading() as connection:
            return database.schema_of(connection, self._place.shown)

    @contextmanager
    def _reading(self) -> Iterator[Connection | None]:
        """Yield a connection to tables that are up to date; None before the first addition."""
        with self._use():
            if not self._place.exists:
                raise InputError(
                    f"{self._place.shown}: the store does not exist. Create it with `errcomp "
                    "history add`."
                )
            version = self._schema()
            if version is not None and version < database.SCHEMA:
                with self._place.writing() as connection:
                    database.ensure_schema(connection, self._place.shown)
            with self._place.reading() as connection:
                yield None if version is None else connection


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"the name of a history must be printable text, got {name!r}.")


# The rows of an addition: checked against the store, and written.

#: Rows per write.
_AT_ONCE = 20_000
#: Values per query: older versions of SQLite accept at most 999.
_ASKED = 900
#: Reading a whole history costs as much as querying this fraction (1 / n) of its validations.
_SCAN = 4


def write(
    connection: sa.Connection, name: str, given: Plain, rows: Coded, *, skip_known: bool
) -> int:
    """Add a history within the transaction of the only writer; return the number of new rows.

    Raises
    ------
    InputError
        Some rows are already in the store, or contradict it.
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
    record(connection, number, start, added.height)
    return added.height


def _next(connection: sa.Connection, table: sa.Table) -> int:
    """Return the number after the last one; there is only one writer at a time."""
    return int(connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0) + 1


def _insert(connection: sa.Connection, table: sa.Table, rows: pl.DataFrame) -> None:
    """Add rows by the fastest way that the database offers."""
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
    """Refuse columns that would leave gaps where every row needs a value."""
    for column, why in (
        ("series", "this column must name the series in all rows or in none"),
        ("predicted", "either all validations of a history have predictions, or none"),
    ):
        here = column in given.frame.columns
        if here != (column in kinds):
            has, lacks = ("the table", f"the history {name!r}")[:: 1 if here else -1]
            raise InputError(
                f"{given.prefix}{has} has a column '{column}', but {lacks} does not: {why}. Change "
                "the new table, or add it under another name (name=, --name)."
            )


def _unknown(
    connection: sa.Connection, number: int, given: Plain, rows: pl.DataFrame, *, skip_known: bool
) -> pl.Series:
    """Return which rows are not in the store yet; raise on duplicates that are not allowed."""
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
            f"{given.prefix}conflicting values: the store has other values for "
            f"{given.name(other)}: {value} is {stored[value][0]} in the store, but {row[value]} in "
            f"{given.name([at])}. If these validations are repetitions, give them another date, or "
            "a number in a column 'repeat'. To correct a value, export the history, correct the "
            "exported table, and add it under another name."
        )
    known = codes.is_not_null()
    if known.any() and not skip_known:
        raise InputError(
            f"{given.prefix}duplicate validations: {known.sum()} of {len(known)} are already in "
            f"the store ({given.name(known.to_numpy())}). Nothing was added. Remove these "
            "validations from the table, or skip them with skip_known=True (--skip-known)."
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
    # Failed validations need no unit.
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
        f"{given.prefix}mixed units: {old} in the store, but {new} in {given.name(which)} of the "
        "same series. Convert the new rows to the unit in the store."
    )


def _write_kinds(connection: sa.Connection, number: int, kinds: Mapping[str, Kind]) -> None:
    """Store which columns the history has now."""
    table, stored = database.column, database.kinds_of(connection, number)
    for name, kind in kinds.items():
        if name in stored and (wide := widened(stored[name], kind)) != stored[name]:
            same_column = (table.c.history_id == number) & (table.c.name == name)
            connection.execute(table.update().where(same_column).values(kind=wide))
    new = [name for name in kinds if name not in stored]
    if new:
        rows = [
            {"id": i, "history_id": number, "name": name, "kind": kinds[name]}
            for i, name in enumerate(new, start=_next(connection, table))
        ]
        connection.execute(table.insert(), rows)


def _write_versions(
    connection: sa.Connection, number: int, given: Plain, versions: pl.DataFrame
) -> pl.Series:
    """Add new versions, and release dates that were unknown; return the numbers of the versions."""
    stored = database.parts_of(connection, database.version, number, ("version", "released"))
    both = versions.join(stored, on="version", how="left", suffix="_there", maintain_order="left")
    differ = both.filter(pl.col("released") != pl.col("released_there"))
    if not differ.is_empty():
        first = differ.row(0, named=True)
        which = (given.frame["version"] == first["version"]).to_numpy()
        raise InputError(
            f"{given.prefix}conflicting release dates of version {first['version']!r}: "
            f"{first['released_there']} in the store, {first['released']} in {given.name(which)}. "
            "Fix the release date. If this is the time of a validation, put it in the column "
            "'date'."
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
    """Add new series or setups; return the number of each."""
    ids = stored["id"].gather(numbered(parts, stored.drop("id"), "\0code"))
    return _numbers_of(connection, table, number, parts, ids)


def _numbers_of(
    connection: sa.Connection, table: sa.Table, number: int, parts: pl.DataFrame, ids: pl.Series
) -> pl.Series:
    """Add the parts without a number; return the number of each."""
    new = ids.is_null()
    fresh = new.cum_sum().cast(pl.Int64) + (_next(connection, table) - 1)
    complete = parts.select(
        fresh.alias("id"), pl.lit(number, pl.Int64).alias("history_id"), pl.all()
    )
    _insert(connection, table, complete.filter(new))
    return fresh.zip_with(new, ids)
