"""Rows of a store to frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import sqlalchemy as sa

from errcomp.halflife.store import schema as schema
from errcomp.halflife.store.frames import SERIES, SETUP, VALUES, Kind, joined

__all__ = ["contents", "fetched", "frame_of", "history_id", "kinds_of", "parts_of"]

#: Rows that are read at a time.
_AT_ONCE = 50_000
_TYPES: dict[type[Any], type[pl.DataType]] = {
    int: pl.Int64,
    float: pl.Float64,
    str: pl.String,
    bytes: pl.Binary,
}


def fetched(connection: sa.Connection, query: sa.Select[Any]) -> pl.DataFrame:
    """Return the rows of a query as a frame, never all of them as Python objects at once."""
    names = [column.name for column in query.selected_columns]
    types = [_TYPES[column.type.python_type] for column in query.selected_columns]
    frames = [pl.DataFrame(schema=dict(zip(names, types, strict=True)))]
    found = connection.execute(query, execution_options={"yield_per": _AT_ONCE})
    for rows in found.partitions():
        columns = zip(names, zip(*rows, strict=True), types, strict=True)
        frames.append(pl.DataFrame([pl.Series(n, v, dtype=t) for n, v, t in columns]))
    return pl.concat(frames)


def history_id(connection: sa.Connection, name: str) -> int | None:
    """Return the number of a history; None where there is none of this name."""
    query = sa.select(schema.history.c.id).where(schema.history.c.name == name)
    found: int | None = connection.execute(query).scalar()
    return found


def kinds_of(connection: sa.Connection, number: int) -> dict[str, Kind]:
    """Return the columns of a history in order, and what they hold."""
    table = schema.column
    query = sa.select(table.c.name, table.c.kind).where(table.c.history_id == number)
    return {row[0]: row[1] for row in connection.execute(query.order_by(table.c.id))}


def parts_of(
    connection: sa.Connection, table: sa.Table, number: int, names: Sequence[str]
) -> pl.DataFrame:
    """Return what a history has in one of the smaller tables, by number."""
    columns = [table.c[name] for name in ("id", *names)]
    query = sa.select(*columns).where(table.c.history_id == number)
    return fetched(connection, query.order_by(table.c.id))


def frame_of(connection: sa.Connection, number: int) -> pl.DataFrame:
    """Return a history as one table, in the order in which it was added."""
    kinds = kinds_of(connection, number)
    table = schema.validation
    # What a history has nothing of is not read: most of the columns, as a rule.
    names = [n for n in ("date", "repeat", *VALUES) if n in kinds]
    columns = [table.c[n] for n in ("series_id", "version_id", "setup_id", *names)]
    query = sa.select(*columns).where(table.c.history_id == number).order_by(table.c.id)
    return joined(
        fetched(connection, query),
        parts_of(connection, schema.series, number, SERIES),
        parts_of(connection, schema.version, number, ("version", "released")),
        parts_of(connection, schema.setup, number, SETUP),
        kinds,
    )


def contents(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return name, size, predictors and dates of each history, by name."""
    history, series, checked = schema.history, schema.series, schema.validation
    named = sa.func.coalesce(series.c.series, series.c["keys"])
    distinct = sa.select(series.c.history_id, named, series.c.level, series.c.predictor).distinct()
    n_series, n_versions = (
        _by_history(connection, part, sa.func.count())
        for part in (distinct.subquery(), schema.version)
    )
    first, last = sa.func.min(checked.c.date), sa.func.max(checked.c.date)
    found = _by_history(connection, checked, sa.func.count(), first, last)
    predictors: dict[int, list[str]] = {}
    query = sa.select(series.c.history_id, series.c.predictor).distinct()
    for number, name in connection.execute(query.where(series.c.predictor.is_not(None))):
        predictors.setdefault(number, []).append(name)
    names = connection.execute(sa.select(history.c.id, history.c.name)).all()
    return [
        {
            "name": name,
            "validations": found[number][0],
            "series": n_series[number][0],
            "versions": n_versions[number][0],
            "predictors": tuple(sorted(predictors.get(number, ()))),
            "first": found[number][1],
            "last": found[number][2],
        }
        for number, name in sorted(names, key=lambda row: row[1])
    ]


def _by_history(
    connection: sa.Connection, table: sa.FromClause, *figures: sa.ColumnElement[Any]
) -> dict[int, tuple[Any, ...]]:
    query = sa.select(table.c.history_id, *figures).select_from(table).group_by(table.c.history_id)
    return {number: tuple(rest) for number, *rest in connection.execute(query)}
