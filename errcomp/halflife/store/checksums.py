"""Checksums of what was added to a store, and whether it is still as it was written.

Each addition keeps two SHA-256: of its rows, and of the history's smaller tables (columns,
versions, series, setups) as they were after it. The smaller tables grow, so only those of the last
addition are compared. Both are computed from what the database gives back, before the addition is
committed.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from errcomp.halflife.store import database

#: How a value of another type than its column ends: SQLite keeps whatever is written.
_UNREADABLE = (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError)
_PARTS = (database.column, database.version, database.series, database.setup)


@dataclass(frozen=True, slots=True)
class StoreDifference:
    """A part of a store that changed after it was written.

    Attributes
    ----------
    history : str
        Name of the history; empty if the file as a whole is damaged.
    addition : int
        Number of the addition, from 1; 0 if it is not one addition.
    what : str
        What differs.
    """

    history: str
    addition: int
    what: str


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """The result of comparing a store with its checksums.

    Attributes
    ----------
    additions : int
        Additions with checksums.
    validations : int
        Validations in them.
    unchecked : int
        Validations without a checksum: those that an earlier errcomp added, or that came into the
        database in another way.
    differences : tuple of StoreDifference
        The parts that changed.
    """

    additions: int
    validations: int
    unchecked: int
    differences: tuple[StoreDifference, ...]

    @property
    def ok(self) -> bool:
        """Whether all that has a checksum is as it was written."""
        return not self.differences

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> StoreCheck(1, 3, 0, ()).to_dict()["validations"]
        3
        """
        return {**asdict(self), "differences": [asdict(one) for one in self.differences]}


def record(connection: sa.Connection, number: int, first: int, n: int) -> None:
    """Keep the checksums of an addition, within its transaction."""
    table = database.batch
    last = first + n - 1
    rows, kept = _sha256_of_rows(connection, first, last)
    if kept != n:
        raise AssertionError(
            f"{n} rows were written, but the database returns {kept}: the addition is undone"
        )
    connection.execute(
        table.insert().values(
            id=(connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0) + 1,
            history_id=number,
            first_id=first,
            last_id=last,
            rows_sha256=rows,
            parts_sha256=_sha256_of_parts(connection, number),
        )
    )


def compared(connection: sa.Connection) -> StoreCheck:
    """Compare all additions with their checksums."""
    table = database.batch
    names = {row.id: row.name for row in connection.execute(sa.select(database.history))}
    known = sa.inspect(connection).has_table(table.name)
    found = connection.execute(sa.select(table).order_by(table.c.id)).all() if known else []
    differences = [StoreDifference("", 0, what) for what in _damage(connection)]
    checked, latest, numbers = 0, {}, dict.fromkeys(names, 0)
    for one in found:
        # SQLite keeps whatever is written, of any type.
        if any(type(number) is not int for number in (one.history_id, one.first_id, one.last_id)):
            differences.append(StoreDifference("", 0, "the list of additions is damaged"))
            continue
        numbers[one.history_id] = numbers.get(one.history_id, 0) + 1
        latest[one.history_id] = one
        try:
            digest, n = _sha256_of_rows(connection, one.first_id, one.last_id)
        except _UNREADABLE:
            digest, n = "", one.last_id - one.first_id + 1
        checked += n
        expected = one.last_id - one.first_id + 1
        if n != expected:
            what = f"{expected:,} rows were added, but {n:,} are in the store"
        elif digest != one.rows_sha256:
            what = f"its {n:,} rows were changed after they were written"
        else:
            continue
        name = names.get(one.history_id, f"history {one.history_id}")
        differences.append(StoreDifference(name, numbers[one.history_id], what))
    for number, one in latest.items():
        try:
            digest = _sha256_of_parts(connection, number)
        except _UNREADABLE:
            digest = ""
        if digest != one.parts_sha256:
            what = "its columns, versions, series or software setups were changed"
            differences.append(StoreDifference(names.get(number, f"history {number}"), 0, what))
    every = connection.execute(sa.select(sa.func.count()).select_from(database.validation)).scalar()
    return StoreCheck(len(found), checked, (every or 0) - checked, tuple(differences))


def _damage(connection: sa.Connection) -> list[str]:
    """Return what SQLite finds wrong with its file."""
    if connection.dialect.name != "sqlite":
        return []
    found = connection.exec_driver_sql("PRAGMA integrity_check(3)").scalars().all()
    return [f"the file is damaged ({text})" for text in found if text != "ok"]


def _sha256_of_rows(connection: sa.Connection, first: int, last: int) -> tuple[str, int]:
    """Return the checksum of the validations with these numbers, and how many there are."""
    table = database.validation
    query = sa.select(*table.c).where(table.c.id.between(first, last)).order_by(table.c.id)
    rows = database.fetched(connection, query)
    return _sha256([rows]), rows.height


def _sha256_of_parts(connection: sa.Connection, number: int) -> str:
    named = sa.select(*database.history.c).where(database.history.c.id == number)
    frames = [database.fetched(connection, named)]
    for table in _PARTS:
        query = sa.select(*table.c).where(table.c.history_id == number).order_by(table.c.id)
        frames.append(database.fetched(connection, query))
    return _sha256(frames)


def _sha256(frames: list[pl.DataFrame]) -> str:
    """Hash frames by their values: which are missing, the bits of numbers, lengths and bytes."""
    digest = hashlib.sha256()
    for frame in frames:
        for column in frame:
            n = len(column)
            digest.update(f"{column.name} {column.dtype} {n}\n".encode())
            # Most columns are complete or empty; a store of few rows has many columns.
            complete = column.null_count() == 0
            digest.update(bytes(n) if complete else column.is_null().to_numpy().tobytes())
            if column.dtype in (pl.String, pl.Binary):
                plain = column.cast(pl.Binary)
                values = plain.to_list() if complete else [one or b"" for one in plain.to_list()]
                digest.update(np.fromiter(map(len, values), np.uint32, n).tobytes())
                digest.update(b"".join(values))
            else:
                filled = column if complete else column.fill_null(0)
                digest.update(filled.to_numpy().tobytes())
    return digest.hexdigest()
