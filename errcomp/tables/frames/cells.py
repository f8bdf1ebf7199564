"""Rows of times in an engine reduced to groups: counts, logarithms and their squares, extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from errcomp.errors import InputError
from errcomp.tables.frames.eager import is_missing
from errcomp.tables.frames.rows import Grouped, Rows

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["WIDTH", "Cells", "Logs", "cells_of"]

#: Width of the buckets of logarithms. Squares are added up about the middle of a bucket: about 0
#: they would lose the digits of a scatter that is small beside the logarithm itself.
WIDTH = 0.125
#: Groups that are fetched, at most.
_MOST = 10_000_000
#: What is written in ten characters is a day; what is longer has a time of day.
_DAY = 10

#: Engines whose days are those of a session's time zone.
_OWN_ZONE = ("DuckDB", "Spark")

_FINE, _NULL, _ZERO, _NAN, _OTHER = range(5)


class Logs(NamedTuple):
    """One column of times over groups; arrays of shape (groups,).

    Attributes
    ----------
    value : ndarray
        The one value that all rows of the group have, else their geometric mean. Where there is
        no logarithm, a value that the rows have: 0, NaN, negative or infinite.
    missing : ndarray of bool
        There is no value.
    alike : ndarray of bool
        All rows of the group have the value.
    scatter : ndarray
        Sum of squares of the logarithms about their mean: 0 where all are alike, and where it was
        not asked for.
    """

    value: Floats
    missing: NDArray[np.bool_]
    alike: NDArray[np.bool_]
    scatter: Floats

    def written(self) -> list[float | None]:
        """Return the values, None where there is none: NaN is a value."""
        both = zip(self.value.tolist(), self.missing.tolist(), strict=True)
        return [None if missing else value for value, missing in both]


class Cells(NamedTuple):
    """Groups of rows.

    Attributes
    ----------
    keys : dict
        For each key the values of the groups; missing is None.
    n : ndarray of int, shape (groups,)
    logs : dict of str to Logs
    spread : ndarray, shape (groups,)
        Root mean square of a relative standard deviation, as its logarithms' variances add up;
        NaN where it is missing.
    timed : ndarray of int, shape (groups,)
        Rows whose date has a time of day that was left out.
    """

    keys: dict[str, list[Any]]
    n: NDArray[np.int64]
    logs: dict[str, Logs]
    spread: Floats
    timed: NDArray[np.int64]


def cells_of(
    rows: Rows,
    by: Sequence[str],
    *,
    bucketed: str,
    logs: Sequence[str] = (),
    spread: str | None = None,
    day: str | None = None,
    source: str = "",
    width: float = WIDTH,
) -> Cells:
    """Group rows inside the engine, and fetch what is known of each group.

    Parameters
    ----------
    rows : Rows
    by : sequence of str
        Columns to group by.
    bucketed : str
        Column of times that are also grouped by the bucket of their logarithm; rows whose value
        is not positive and finite are groups of their own.
    logs : sequence of str
        Further columns of times whose logarithms are added up.
    spread : str, optional
        Column of relative standard deviations.
    day : str, optional
        Column of dates to group by, to the day.
    source : str
        Named in messages.
    width : float
        Of the buckets.

    Raises
    ------
    InputError
        There are too many groups, or a date is a text with a time of day.
    EngineError
    """
    import narwhals as nw

    names, widths = [*by, *([day] if day else [])], {bucketed: width, **dict.fromkeys(logs)}
    keys = {f"key:{name}": nw.col(name) for name in by}
    figures: dict[str, tuple[str, nw.Expr]] = {}
    for name, one in widths.items():
        of_value, added = _of_times(name, one)
        keys |= of_value
        figures |= added
    if spread is not None:
        known, added = _of_spread(spread)
        keys |= known
        figures |= added
    if day is not None:
        date, timed = _of_day(rows, day, source)
        keys[f"key:{day}"] = date
        figures["timed"] = ("sum", timed)
    found = rows.grouped(keys, figures, _MOST + 1)
    if len(found.n) > _MOST:
        raise InputError(
            f"{source + ': ' if source else ''}more than {_MOST:,} groups by {', '.join(names)}: "
            "they would fill the memory that the rows are not to fill. Leave out columns that "
            f"differ from row to row, or select rows in {rows.engine} first."
        )
    return Cells(
        {n: [None if is_missing(v) else v for v in found.keys[f"key:{n}"]] for n in names},
        found.n,
        {name: _logs(found, name, one) for name, one in widths.items()},
        _spreads(found) if spread is not None else np.full(len(found.n), np.nan),
        _whole(found.figures["timed"]) if day is not None else np.zeros(len(found.n), np.int64),
    )


def _of_times(
    name: str, width: float | None
) -> tuple[dict[str, nw.Expr], dict[str, tuple[str, nw.Expr]]]:
    """Return what to group a column of times by, and what to add up."""
    import narwhals as nw

    value = nw.col(name).cast(nw.Float64)
    fine = (value > 0) & value.is_finite()
    other = nw.when(value.is_nan()).then(nw.lit(_NAN)).otherwise(nw.lit(_OTHER))
    other = nw.when(value == 0).then(nw.lit(_ZERO)).otherwise(other)
    other = nw.when(fine).then(nw.lit(_FINE)).otherwise(other)
    keys = {f"state:{name}": nw.when(value.is_null()).then(nw.lit(_NULL)).otherwise(other)}
    log = nw.when(fine).then(value).log()
    figures = {f"low:{name}": ("min", value), f"high:{name}": ("max", value)}
    if width is None:
        return keys, {**figures, f"sum:{name}": ("sum", log)}
    keys[f"bucket:{name}"] = bucket = (log / width).floor()
    rest = log - (bucket + 0.5) * width
    return keys, {**figures, f"sum:{name}": ("sum", rest), f"square:{name}": ("sum", rest * rest)}


def _of_spread(name: str) -> tuple[dict[str, nw.Expr], dict[str, tuple[str, nw.Expr]]]:
    """Return what to group a relative standard deviation by, and what to add up."""
    import narwhals as nw

    value = nw.col(name).cast(nw.Float64)
    known = ~value.is_null() & ~value.is_nan()
    square = nw.when(known).then(value * value)
    # log(1 + x) loses the digits of a small x; engines have no log1p.
    small = square - square * square / 2 + square * square * square / 3
    log = nw.when(square > 1e-4).then((square + 1.0).log()).otherwise(small)
    shown = nw.when(known).then(value)
    return {"known": nw.when(known).then(nw.lit(1)).otherwise(nw.lit(0))}, {
        "spread": ("sum", log),
        "least": ("min", shown),
        "most": ("max", shown),
    }


def _of_day(rows: Rows, name: str, source: str) -> tuple[nw.Expr, nw.Expr]:
    """Return the day of a column of dates, and whether that leaves out a time of day."""
    import narwhals as nw

    date, kind = nw.col(name), rows.schema[name]
    if isinstance(kind, nw.Datetime):
        if kind.time_zone not in (None, "UTC") and rows.engine not in _OWN_ZONE:
            date = date.dt.convert_time_zone("UTC")
        day = date.dt.truncate("1d")
        return day, nw.when(date != day).then(nw.lit(1)).otherwise(nw.lit(0))
    if kind == nw.String and (n := rows.filtered(date.str.len_chars() > _DAY).count()):
        raise InputError(
            f"{source + ': ' if source else ''}{name} is a text with a time of day in {n:,} rows, "
            "which an engine cannot group by the day. Cast the column to a time stamp or a date "
            f"in {rows.engine} first."
        )
    return date, nw.lit(0)


def _logs(found: Grouped, name: str, width: float | None) -> Logs:
    state = np.asarray(found.keys[f"state:{name}"], dtype=np.int64)
    fine, missing = state == _FINE, state == _NULL
    low, high = found.figures[f"low:{name}"], found.figures[f"high:{name}"]
    alike = ~fine | (low == high)
    total = np.where(fine, found.figures[f"sum:{name}"], 0.0)
    mean, scatter = total / found.n, np.zeros(len(found.n))
    if width is not None:
        bucket = np.asarray(
            [b if ok else 0.0 for b, ok in zip(found.keys[f"bucket:{name}"], fine, strict=True)],
            dtype=np.float64,
        )
        square = np.where(fine, found.figures[f"square:{name}"], 0.0) - total * mean
        # What rounding leaves of values that differ must not look like values that are equal.
        scatter = np.where(alike, 0.0, np.maximum(square, np.finfo(np.float64).tiny))
        mean = mean + (bucket + 0.5) * width
    value = np.where(alike, low, np.exp(mean))
    value[state == _ZERO] = 0.0
    value[missing | (state == _NAN)] = np.nan
    return Logs(value, missing, alike, scatter)


def _spreads(found: Grouped) -> Floats:
    known = np.asarray(found.keys["known"], dtype=bool)
    least, most = found.figures["least"], found.figures["most"]
    mean = np.sqrt(np.expm1(np.where(known, found.figures["spread"], 0.0) / found.n))
    # A value that cannot be is kept as it is, for whoever checks values.
    shown = np.where(np.isposinf(most), most, np.where(least < 0, least, mean))
    return np.where(known, np.where(least == most, least, shown), np.nan)


def _whole(values: Floats) -> NDArray[np.int64]:
    return np.nan_to_num(values).astype(np.int64)
