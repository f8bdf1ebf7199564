"""Tables of the history store, and what turns those of an older version into them.

A validation refers to what was validated (its series), to its version and to its setup (the rest of
the software) by number: a history has many validations of few of each. Keys that have no column of
their own are one JSON text, by name in order. All tables have a prefix, since a server's database
holds those of others too.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from errcomp.errors import InputError

__all__ = [
    "MIGRATIONS",
    "SCHEMA",
    "column",
    "ensure_schema",
    "history",
    "schema_of",
    "series",
    "setup",
    "validation",
    "version",
]

#: Version of the tables that is written.
SCHEMA = 1

metadata = sa.MetaData()

# SQLite numbers rows itself where the type is INTEGER; it has 64 bits there.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

meta = sa.Table("errcomp_meta", metadata, sa.Column("schema_version", sa.Integer, nullable=False))


def _of_history(*, index: bool = False) -> sa.Column[int]:
    refers = sa.ForeignKey("errcomp_history.id")
    return sa.Column("history_id", _Id, refers, nullable=False, index=index)


history = sa.Table(
    "errcomp_history",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False, unique=True),
)

#: Which columns a history has, in the order in which they first came, and what they hold.
column = sa.Table(
    "errcomp_column",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=False),
    _of_history(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.UniqueConstraint("history_id", "name"),
)

version = sa.Table(
    "errcomp_version",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=False),
    _of_history(),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("released", sa.Text),
    sa.UniqueConstraint("history_id", "version"),
)

series = sa.Table(
    "errcomp_series",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=False),
    _of_history(index=True),
    sa.Column("series", sa.Text),
    sa.Column("keys", sa.Text, nullable=False),
    sa.Column("level", sa.Text),
    sa.Column("predictor", sa.Text),
    sa.Column("unit", sa.Text),
)

setup = sa.Table(
    "errcomp_setup",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=False),
    _of_history(index=True),
    sa.Column("predictor_version", sa.Text),
    sa.Column("stack", sa.Text, nullable=False),
)

validation = sa.Table(
    "errcomp_validation",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=False),
    # No foreign keys here: a server looks up each of them in each row, four times the cost of all
    # else, and what is referred to is written in the same transaction.
    sa.Column("history_id", _Id, nullable=False, index=True),
    sa.Column("series_id", _Id, nullable=False),
    sa.Column("version_id", _Id, nullable=False),
    sa.Column("setup_id", _Id, nullable=False),
    # What makes it this validation and no other, hashed; repeats without a number are counted.
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

#: For each older version, what makes the next one of its tables. A version that has been written
#: keeps its step for ever, in plain SQL: `metadata` says what the tables are now.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}


def schema_of(connection: sa.Connection, shown: str) -> int | None:
    """Return the version of the tables; None where there are none.

    Parameters
    ----------
    connection : sqlalchemy.Connection
    shown : str
        Name of the store, for messages.

    Raises
    ------
    InputError
        They are of a newer version, or there are tables of something else.
    """
    there = set(sa.inspect(connection).get_table_names())
    if meta.name in there:
        found = connection.execute(sa.select(meta.c.schema_version)).scalars().all()
        if len(found) != 1 or not isinstance(found[0], int) or not found[0] >= 1:
            raise InputError(
                f"{shown}: the store does not say which version it has (got {found}): it is "
                "damaged. Restore it from a copy."
            )
        if found[0] > SCHEMA:
            raise InputError(
                f"{shown}: the store was written by a newer errcomp (version {found[0]} of its "
                f"tables; this one knows up to {SCHEMA}). Upgrade errcomp."
            )
        return found[0]
    # On a server the tables of others are none of our business.
    if connection.dialect.name != "sqlite":
        there &= set(metadata.tables)
    if there:
        raise InputError(
            f"{shown}: this is no history store: it holds the table {min(there)}. Name another "
            "file or database."
        )
    return None


def ensure_schema(connection: sa.Connection, shown: str) -> None:
    """Make the tables, or bring older ones up to date, within the transaction there is.

    Raises
    ------
    InputError
        As for `schema_of`; or the server's database cannot hold every text.
    """
    found = schema_of(connection, shown)
    if found is None:
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
    if found < SCHEMA:
        for step in range(found, SCHEMA):
            MIGRATIONS[step](connection)
        connection.execute(meta.update().values(schema_version=SCHEMA))
