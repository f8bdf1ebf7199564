"""The tables of a store.

A validation refers to its series, its version and its setup (the rest of the software) by number: a
history has many validations of a few series, versions and setups. Keys without a column are one
JSON text, sorted by name. All tables have a prefix, because a server's database also holds other
tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import sqlalchemy as sa

from errcomp.errors import InputError
from errcomp.halflife.store.frames import SERIES, SETUP, VALUES, Kind, joined

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
        They have a newer version, belong to another program, or hold queries of somebody else.
    """
    tables = set(sa.inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        _refuse_programs(connection, shown)
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
            f"{shown}: not a history store: it contains a table that errcomp did not create "
            f"({min(tables)}). Name another file or database."
        )
    return None


#: What runs as soon as a table of the store is read or written.
_PROGRAMS = """
WITH own AS (SELECT * FROM sqlite_schema WHERE tbl_name LIKE 'errcomp%')
SELECT name, type FROM own WHERE type NOT IN ('table', 'index')
UNION ALL SELECT name, 'virtual table' FROM own WHERE type = 'table' AND rootpage = 0
UNION ALL SELECT name, 'table with conditions' FROM own
    WHERE type = 'table' AND (sql LIKE '%CHECK%(%' OR sql LIKE '%DEFAULT%(%')
UNION ALL SELECT own.name || '.' || c.name, 'computed column'
    FROM own, pragma_table_xinfo(own.name) AS c
    WHERE own.type = 'table' AND own.rootpage > 0 AND c.hidden > 0
UNION ALL SELECT own.name, 'index of an expression' FROM own
    WHERE own.type = 'index' AND (own.sql LIKE '%WHERE%'
        OR EXISTS (SELECT 1 FROM pragma_index_xinfo(own.name) AS c WHERE c.cid = -2))
ORDER BY 1
"""


def _refuse_programs(connection: sa.Connection, shown: str) -> None:
    """Refuse views, triggers and the like: errcomp makes none, and a stranger may have."""
    rows = connection.exec_driver_sql(_PROGRAMS).fetchall()
    if rows:
        listed = ", ".join(f"{name} ({kind})" for name, kind in rows[:3])
        raise InputError(
            f"{shown}: the store contains objects that errcomp did not create and that could run "
            f"when the store is used: {listed}. Drop them, or use an older copy of the store "
            "without them."
        )


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
                    f"{shown}: the database has the encoding {encoding}, which cannot store every "
                    "character. Create a database with ENCODING 'UTF8'."
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
    result = connection.execute(query, execution_options={"yield_per": _AT_ONCE})
    frames = []
    for rows in result.partitions():
        columns = zip(names, zip(*rows, strict=True), types, strict=True)
        frames.append(pl.DataFrame([pl.Series(n, v, dtype=t) for n, v, t in columns]))
    empty = pl.DataFrame(schema=dict(zip(names, types, strict=True)))
    return pl.concat(frames) if frames else empty


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
