"""A column of dates turned into UTC, whichever way they were written."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Hashable
from datetime import date, datetime
from itertools import compress
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from errcomp.errors import InputError
from errcomp.tables.columns import Origin
from errcomp.tables.frames import is_missing

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["dates_of"]

_NAT = np.iinfo(np.int64).min


def dates_of(
    frame: nw.DataFrame[Any], name: str, used: NDArray[np.bool_], origin: Origin
) -> NDArray[np.datetime64]:
    """Return a column of dates or time stamps as datetime64[s] in UTC, NaT where missing.

    Time stamps with an offset are turned to UTC; those without one are taken to be UTC. Rows that
    are not used may hold anything and are NaT.

    Raises
    ------
    InputError
        A value is neither a date nor ISO 8601, or only some of them have an offset.
    """
    found = np.full(len(frame), "NaT", dtype="M8[s]")
    quick = _of_polars(frame.to_native(), name)
    if quick is not None:
        found[used] = quick[used]
        return found
    values = list(compress(frame[name].to_list(), used))
    try:
        known = dict.fromkeys(values)
    except TypeError:
        _refuse(name, values, [not isinstance(v, Hashable) for v in values], origin.of(used))
    stamps = {value: _stamp(value) for value in known}
    bad = {value for value, stamp in stamps.items() if stamp is None}
    if bad:
        _refuse(name, values, [v in bad for v in values], origin.of(used))
    aware = {value for value, stamp in stamps.items() if stamp is not None and stamp[1]}
    naive = {v for v, stamp in stamps.items() if stamp is not None and stamp[1] is False}
    if aware and naive:
        first = next(v for v in values if v in naive)
        without = np.asarray([v in naive for v in values], dtype=bool)
        raise InputError(
            f"{origin.prefix}{name} mixes times with and without a time zone: {str(first)!r} in "
            f"{origin.of(used).name(without)} has none. Give all of them an offset "
            "(2026-11-20T09:30:00Z), or none."
        )
    seconds = {value: stamp[0] for value, stamp in stamps.items() if stamp is not None}
    found[used] = np.fromiter(map(seconds.__getitem__, values), np.int64, len(values)).view("M8[s]")
    return found


def _of_polars(native: Any, name: str) -> NDArray[np.datetime64] | None:
    """Read a typed column of Polars without making an object of each value."""
    import polars as pl

    if not isinstance(native, pl.DataFrame):
        return None
    column = native[name]
    if column.dtype == pl.Datetime:
        if getattr(column.dtype, "time_zone", None) is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif column.dtype != pl.Date:
        return None
    return column.to_numpy().astype("M8[s]")


def _stamp(value: Any) -> tuple[int, bool | None] | None:
    """Return seconds since 1970 in UTC and whether there is an offset; None if it is no date."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return _NAT, None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime):
        # A time without an offset is taken as it is, never as that of this machine.
        return timegm(value.utctimetuple()), value.utcoffset() is not None
    if isinstance(value, date):
        return timegm(value.timetuple()), False
    return None


def _refuse(name: str, values: list[Any], which: list[bool], origin: Origin) -> NoReturn:
    bad = np.asarray(which, dtype=bool)
    raise InputError(
        f"{origin.prefix}{name} must be a date or a time stamp (ISO 8601: 2026-11-20 or "
        f"2026-11-20T09:30:00Z), got {str(values[int(np.argmax(bad))])[:60]!r} in "
        f"{origin.name(bad)}. Write it so."
    )
