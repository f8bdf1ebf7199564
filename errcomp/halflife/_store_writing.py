"""What is to be added to a store, checked against what is there, and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import polars.selectors as cs
import sqlalchemy as sa

from errcomp._columns import status_ok
from errcomp._frames import to_eager
from errcomp.errors import InputError
from errcomp.halflife import _store_schema as schema
from errcomp.halflife._store_frames import (
    SERIES,
    SETUP,
    VALUES,
    Coded,
    Kind,
    Plain,
    numbered,
    widened,
)
from errcomp.halflife._store_reading import fetched, history_id, kinds_of, parts_of

__all__ = ["write"]

#: Rows that are written at a time.
_AT_ONCE = 20_000
#: Values that a query may be asked for at a time: SQLite took no more than 999 for long.
_ASKED = 900
#: Reading all of a history costs as much as asking for one in so many of its validations.
_SCAN = 4


def write(
    connection: sa.Connection, name: str, found: Plain, rows: Coded, *, skip_known: bool
) -> int:
    """Add a history within the transaction of the only writer; return how many rows were new.

    Raises
    ------
    InputError
        Something of it is there already, or does not fit what is there.
    """
    number = history_id(connection, name)
    if number is None:
        number = _next(connection, schema.history)
        connection.execute(schema.history.insert().values(id=number, name=name))
        series = parts_of(connection, schema.series, number, SERIES)
        new = pl.Series([True]).new_from_index(0, rows.rows.height)
    else:
        _check_columns(kinds_of(connection, number), found, name)
        series = parts_of(connection, schema.series, number, SERIES)
        _check_units(connection, number, series, found, rows)
        new = _unknown(connection, number, found, rows.rows, skip_known=skip_known)
        if not new.any():
            return 0
    _write_kinds(connection, number, found.kinds())
    version_ids = _write_versions(connection, number, found, rows.version)
    series_ids = _write_parts(connection, schema.series, number, series, rows.series)
    setup = parts_of(connection, schema.setup, number, SETUP)
    setup_ids = _write_parts(connection, schema.setup, number, setup, rows.setup)
    added = rows.rows.filter(new)
    start = _next(connection, schema.validation)
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
    _insert(connection, schema.validation, complete)
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


def _hex(found: pl.Series) -> pl.Series:
    return pl.select("\\\\x" + found.bin.encode("hex")).to_series().alias(found.name)


def _check_columns(there: Mapping[str, Kind], found: Plain, name: str) -> None:
    """Refuse what would make a table with gaps where every row needs a value."""
    for column, why in (
        ("series", "it names the series in all rows or in none"),
        ("predicted", "all validations of a history have predictions, or none"),
    ):
        here = column in found.frame.columns
        if here != (column in there):
            has, lacks = ("the table", f"the history {name!r}")[:: 1 if here else -1]
            raise InputError(
                f"{found.prefix}{has} has a column {column} and {lacks} has none: {why}. Change "
                "the table, or add it under another name (name=, --name)."
            )


def _unknown(
    connection: sa.Connection, number: int, found: Plain, rows: pl.DataFrame, *, skip_known: bool
) -> pl.Series:
    """Return which rows are not in the store yet; raise on those that are and may not be."""
    table = schema.validation
    query = sa.select(*(table.c[n] for n in ("identity", *VALUES)))
    every = table.c.history_id == number
    count = connection.execute(sa.select(sa.func.count()).where(every)).scalar() or 0
    if count < _SCAN * rows.height:
        stored = fetched(connection, query.where(every))
    else:
        asked = rows["identity"].unique().to_list()
        parts = (asked[i : i + _ASKED] for i in range(0, len(asked), _ASKED))
        stored = pl.concat(fetched(connection, query.where(table.c.identity.in_(p))) for p in parts)
    there = numbered(rows.select("identity"), stored.select("identity").unique(), "\0code")
    same = numbered(
        rows.select("identity", *VALUES), stored.unique().select("identity", *VALUES), "\0code"
    )
    other = (there.is_not_null() & same.is_null()).to_numpy()
    if other.any():
        at = int(other.argmax())
        mine = rows.row(at, named=True)
        stored = stored.filter(pl.col("identity") == mine["identity"])
        value = next((n for n in VALUES if stored[n][0] != mine[n]), VALUES[0])
        raise InputError(
            f"{found.prefix}duplicate validations: {found.name(other)} are there already with "
            f"another value ({value} {stored[value][0]} in the store against {mine[value]} in "
            f"{found.name([at])}). Give repetitions another date or a number in a column repeat; "
            "to correct a value, export the history, change it and add it under another name."
        )
    known = there.is_not_null()
    if known.any() and not skip_known:
        raise InputError(
            f"{found.prefix}duplicate validations: {known.sum()} of {len(known)} are there "
            f"already ({found.name(known.to_numpy())}). Nothing was added. Leave them out, or skip "
            "them with skip_known=True (--skip-known)."
        )
    return ~known


def _check_units(
    connection: sa.Connection, number: int, stored: pl.DataFrame, found: Plain, rows: Coded
) -> None:
    """Refuse a series whose validations in the store have another unit."""
    by = ["series", "level", "predictor"]
    if rows.series["series"].is_null().all():
        by[0] = "keys"
    used = rows.rows["series_code"].filter(pl.Series(found.ok)).unique()
    mine = rows.series.with_row_index("code")[used].select("code", *by, "unit")
    both = mine.join(stored.select("id", *by, "unit"), on=by, nulls_equal=True, suffix="_there")
    both = both.filter(pl.col("unit").ne_missing(pl.col("unit_there")))
    if both.is_empty():
        return
    # Validations that failed need no unit.
    table = schema.validation
    query = sa.select(table.c.series_id, table.c.status).distinct()
    seen = fetched(connection, query.where(table.c.history_id == number))
    both = both.join(seen.filter(status_ok(to_eager(seen))), left_on="id", right_on="series_id")
    if both.is_empty():
        return
    first = both.row(0, named=True)
    one, two = (repr(first[n]) if first[n] else "no unit" for n in ("unit_there", "unit"))
    which = (rows.rows["series_code"] == first["code"]).to_numpy() & found.ok
    raise InputError(
        f"{found.prefix}mixed units: {one} in the store and {two} in {found.name(which)} of the "
        "same series. Convert one of them first."
    )


def _write_kinds(connection: sa.Connection, number: int, kinds: Mapping[str, Kind]) -> None:
    """Say which columns the history has now."""
    table, there = schema.column, kinds_of(connection, number)
    for name, kind in kinds.items():
        if name not in there:
            row = {"id": _next(connection, table), "history_id": number, "name": name, "kind": kind}
            connection.execute(table.insert().values(row))
        elif (wide := widened(there[name], kind)) != there[name]:
            mine = (table.c.history_id == number) & (table.c.name == name)
            connection.execute(table.update().where(mine).values(kind=wide))


def _write_versions(
    connection: sa.Connection, number: int, found: Plain, versions: pl.DataFrame
) -> pl.Series:
    """Add versions that are new, and release dates that were not known; return their numbers."""
    there = parts_of(connection, schema.version, number, ("version", "released"))
    both = versions.join(there, on="version", how="left", suffix="_there", maintain_order="left")
    differ = both.filter(pl.col("released") != pl.col("released_there"))
    if not differ.is_empty():
        first = differ.row(0, named=True)
        which = (found.frame["version"] == first["version"]).to_numpy()
        raise InputError(
            f"{found.prefix}version {first['version']!r} was released {first['released_there']} "
            f"by the store and {first['released']} by {found.name(which)}. Fix the date; the time "
            "of a validation belongs in date."
        )
    table = schema.version
    late = both["id"].is_not_null() & both["released_there"].is_null()
    for row in both.filter(late & both["released"].is_not_null()).iter_rows(named=True):
        mine = table.c.id == row["id"]
        connection.execute(table.update().where(mine).values(released=row["released"]))
    return _numbers_of(connection, table, number, versions, both["id"])


def _write_parts(
    connection: sa.Connection,
    table: sa.Table,
    number: int,
    there: pl.DataFrame,
    parts: pl.DataFrame,
) -> pl.Series:
    """Add series or setups that are new; return the number of each."""
    ids = there["id"].gather(numbered(parts, there.drop("id"), "\0code"))
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
