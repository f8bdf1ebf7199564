"""Rows in an engine reduced to groups: a small table whose messages name rows by their keys.

For times it holds counts, logarithms and their squares, and extremes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from errcomp.errors import InputError
from errcomp.results import Dropped
from errcomp.tables.columns import Origin, nothing_left, rename
from errcomp.tables.engine import Grouped, Rows, shown
from errcomp.tables.frames import frame_from_columns, is_missing
from errcomp.tables.table import Backend

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


#: Width of the buckets of logarithms. Squares are summed about the middle of a bucket. About 0,
#: they would lose the digits of a scatter that is small compared with the logarithm itself.
WIDTH = 0.125
#: Largest number of groups that are fetched.
_MOST = 10_000_000
#: A day has ten characters; longer texts have a time of day.
_DAY = 10

#: Engines that compute days in the time zone of the session.
_OWN_ZONE = ("DuckDB", "Spark")

_FINE, _NULL, _ZERO, _NAN, _OTHER = range(5)


class EngineRows(Backend):
    """Rows of a table in an engine, without failed ones.

    Attributes
    ----------
    native
        The frame that went in.
    """

    def __init__(
        self,
        data: Any,
        columns: Mapping[str, str] | None,
        source: str,
        *,
        required: Sequence[str],
        optional: Sequence[str] = (),
        options: str,
        numbers: Sequence[str],
        failed: str,
    ) -> None:
        rows = Rows(data)
        self.native, self.engine, self.source = data, rows.engine, source
        known = (*required, *(name for name in optional if name in rows.schema))
        columns = dict(columns or {})
        sides = {"predicted", "measured"}
        if set(required) == sides and not sides <= {*rows.schema, *columns}:
            from errcomp.tables.guessing import with_guess

            numeric = {name: kind.is_numeric() for name, kind in rows.schema.items()}
            columns = with_guess(columns, numeric, source)
        renamed = rows.asked(lambda: rename(rows.frame, columns, source, known, options))
        self._rows, self._renamed, self.dropped = Rows(renamed), columns, ()
        for name in numbers:
            if name in self._rows.schema and not self._rows.is_number(name):
                # Engines do not parse numbers from text.
                raise InputError(
                    f"{self.prefix}{name} must be a number, but the column holds "
                    f"{shown(self._rows.schema[name])}. Cast it in {self.engine} first."
                )
        self._rows = self._rows.with_floats(numbers)
        if "status" in self._rows.schema:
            self._leave_out(self._rows.ok(), failed)

    def _leave_out(self, rows: Rows, reason: str) -> None:
        """Keep these rows, and count the others."""
        n = self._rows.count() - rows.count()
        self._rows = rows
        if n:
            self.dropped = (*self.dropped, Dropped(reason, n))

    def _cells(self, noun: str, by: Sequence[str], **options: Any) -> Cells:
        """Group the rows inside the engine; see `cells_of`."""
        cells = cells_of(self._rows, by, prefix=self.prefix, **options)
        if not len(cells.n):
            raise nothing_left(noun, self.dropped, self.prefix)
        return cells


class Logs(NamedTuple):
    """A column of times by group; arrays of shape (groups,).

    Attributes
    ----------
    value : ndarray
        The value that all rows of the group share, else their geometric mean. Without a logarithm:
        a value of one of the rows, i.e. 0, NaN, negative or infinite.
    missing : ndarray of bool
        The group has no value.
    alike : ndarray of bool
        All rows of the group have this value.
    scatter : ndarray
        Sum of squares of the logarithms about their mean; 0 if all values are equal, or if it was
        not requested.
    """

    value: Floats
    missing: NDArray[np.bool_]
    alike: NDArray[np.bool_]
    scatter: Floats

    def written(self) -> list[float | None]:
        """Return the values, None where missing; NaN is a value."""
        both = zip(self.value.tolist(), self.missing.tolist(), strict=True)
        return [None if missing else value for value, missing in both]


class Cells(NamedTuple):
    """Groups of rows.

    Attributes
    ----------
    keys : dict
        Values of each key, one per group; None where missing.
    n : ndarray of int, shape (groups,)
    logs : dict of str to Logs
    spread : ndarray, shape (groups,)
        Root mean square of the relative standard deviations, from the mean variance of their
        logarithms; NaN where missing.
    timed : ndarray of int, shape (groups,)
        Number of rows whose date had a time of day, which was left out.
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
    prefix: str = "",
    width: float = WIDTH,
) -> Cells:
    """Group rows inside the engine, and fetch the sums of each group.

    Parameters
    ----------
    rows : Rows
    by : sequence of str
        Columns to group by.
    bucketed : str
        Column of times; rows are also grouped by the bucket of its logarithm. Values that are not
        positive and finite form groups of their own.
    logs : sequence of str
        Further columns of times whose logarithms are summed.
    spread : str, optional
        Column of relative standard deviations.
    day : str, optional
        Column of dates; rows are also grouped by its day.
    prefix : str
        Beginning of messages.
    width : float
        Width of the buckets.

    Raises
    ------
    InputError
        There are too many groups, or a date is a text with a time of day.
    EngineError
    """
    names, widths = [*by, *([day] if day else [])], {bucketed: width, **dict.fromkeys(logs)}
    keys = {f"key:{name}": nw.col(name) for name in by}
    figures: dict[str, tuple[str, nw.Expr]] = {}
    for name, bin_width in widths.items():
        of_value, added = _of_times(name, bin_width)
        keys |= of_value
        figures |= added
    if spread is not None:
        known, added = _of_spread(spread)
        keys |= known
        figures |= added
    if day is not None:
        date, timed = _of_day(rows, day, prefix)
        keys[f"key:{day}"] = date
        figures["timed"] = ("sum", timed)
    groups = rows.grouped(keys, figures, _MOST + 1, by=names)
    if len(groups.n) > _MOST:
        raise InputError(
            f"{prefix}more than {_MOST:,} groups by {', '.join(map(shown, names))}: "
            "they would need as much memory as the rows themselves. Leave out columns that "
            f"differ from row to row, or select rows in {rows.engine} first."
        )
    return Cells(
        {n: [None if is_missing(v) else v for v in groups.keys[f"key:{n}"]] for n in names},
        groups.n,
        {name: _logs(groups, name, bin_width) for name, bin_width in widths.items()},
        _spreads(groups) if spread is not None else np.full(len(groups.n), np.nan),
        _whole(groups.figures["timed"]) if day is not None else np.zeros(len(groups.n), np.int64),
    )


def _of_times(
    name: str, width: float | None
) -> tuple[dict[str, nw.Expr], dict[str, tuple[str, nw.Expr]]]:
    """Return the keys that group a column of times, and the sums over it."""
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
    """Return the keys that group a relative standard deviation, and the sums over it."""
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


def _of_day(rows: Rows, name: str, prefix: str) -> tuple[nw.Expr, nw.Expr]:
    """Return the day of a column of dates, and whether the dates have a time of day."""
    date, kind = nw.col(name), rows.schema[name]
    if isinstance(kind, nw.Datetime):
        if kind.time_zone not in (None, "UTC") and rows.engine not in _OWN_ZONE:
            date = date.dt.convert_time_zone("UTC")
        day = date.dt.truncate("1d")
        return day, nw.when(date != day).then(nw.lit(1)).otherwise(nw.lit(0))
    if kind == nw.String and (n := rows.filtered(date.str.len_chars() > _DAY).count()):
        raise InputError(
            f"{prefix}{name} is text that has a time of day in {n:,} rows; an engine cannot group "
            f"such text by day. Cast the column to a timestamp or a date in {rows.engine} first."
        )
    return date, nw.lit(0)


def _logs(groups: Grouped, name: str, width: float | None) -> Logs:
    state = np.asarray(groups.keys[f"state:{name}"], dtype=np.int64)
    fine, missing = state == _FINE, state == _NULL
    low, high = groups.figures[f"low:{name}"], groups.figures[f"high:{name}"]
    alike = ~fine | (low == high)
    total = np.where(fine, groups.figures[f"sum:{name}"], 0.0)
    mean, scatter = total / groups.n, np.zeros(len(groups.n))
    if width is not None:
        bucket = np.asarray(
            [b if ok else 0.0 for b, ok in zip(groups.keys[f"bucket:{name}"], fine, strict=True)],
            dtype=np.float64,
        )
        square = np.where(fine, groups.figures[f"square:{name}"], 0.0) - total * mean
        # Different values must not look equal after rounding.
        scatter = np.where(alike, 0.0, np.maximum(square, np.finfo(np.float64).tiny))
        mean = mean + (bucket + 0.5) * width
    value = np.where(alike, low, np.exp(mean))
    value[state == _ZERO] = 0.0
    value[missing | (state == _NAN)] = np.nan
    return Logs(value, missing, alike, scatter)


def _spreads(groups: Grouped) -> Floats:
    known = np.asarray(groups.keys["known"], dtype=bool)
    least, most = groups.figures["least"], groups.figures["most"]
    mean = np.sqrt(np.expm1(np.where(known, groups.figures["spread"], 0.0) / groups.n))
    # Keep impossible values: the caller checks them.
    shown = np.where(np.isposinf(most), most, np.where(least < 0, least, mean))
    return np.where(known, np.where(least == most, least, shown), np.nan)


def _whole(values: Floats) -> NDArray[np.int64]:
    return np.nan_to_num(values).astype(np.int64)


# Groups as a table.


@dataclass(frozen=True, slots=True)
class GroupOrigin(Origin):
    """Where groups of rows came from: rows in an engine have keys, but no row numbers.

    Attributes
    ----------
    n : ndarray of int, shape (n,)
        Number of rows in each group.
    keys : mapping of str to sequence
        Values of each key, one per group of the table.
    """

    n: NDArray[np.int64]
    keys: Mapping[str, Sequence[Any]]

    def name(self, which: Any) -> str:
        """Return the number of rows in these groups, and the keys of the first three groups."""
        total = int(self.n[which].sum())
        places = (self.rows[which] - 1).tolist()
        # Groups that differ only in other columns than keys share a label.
        labels = (
            ", ".join(f"{shown(k)}={shown(v[i])}" for k, v in self.keys.items()) for i in places
        )
        different = list(dict.fromkeys(labels))
        more = f" (and {len(different) - 3:,} more)" if len(different) > 3 else ""
        return f"{total:,} row{'s' if total > 1 else ''}: {'; '.join(different[:3])}{more}"

    def of(self, which: Any) -> GroupOrigin:
        """Return the origin of some of the groups."""
        return GroupOrigin(self.source, self.rows[which], self.word, self.n[which], self.keys)

    @classmethod
    def of_groups(
        cls, frame: nw.DataFrame[Any], keys: Sequence[str], n: NDArray[np.int64], source: str
    ) -> GroupOrigin:
        """Name groups by their keys."""
        values = {name: frame[name].to_list() for name in keys}
        return cls(source, np.arange(1, len(n) + 1), "group", n, values)


def group_table(
    columns: Mapping[str, Any], by: Sequence[str]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return groups as a frame, sorted by these columns, and the order.

    Engines send groups in no particular order.
    """
    import polars as pl

    frame: pl.DataFrame = frame_from_columns(columns)
    # The reader of the table reports an error for lists.
    plain = [n for n in by if not frame.schema[n].is_nested() and frame.schema[n] != pl.Object]
    keys = frame.select(pl.col(plain).cast(pl.String, strict=False)).with_row_index("\0at")
    order = keys.sort(plain, nulls_last=True, maintain_order=True)["\0at"]
    return frame[order], order.to_numpy().astype(np.int64)
