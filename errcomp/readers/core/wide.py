"""Tables with a column for each quantity, turned into one row for each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.readers.core.keys import key
from errcomp.results import Dropped

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.core.sheet import Sheet

__all__ = ["Value", "as_dropped", "long", "rows_of", "with_repeats", "without"]


@dataclass(frozen=True, slots=True)
class Value:
    """One quantity of a table: in which columns it is, and what is true of all its rows.

    Attributes
    ----------
    quantity, unit : str
    predicted, measured : str
        Columns; empty where the table has none.
    fixed : mapping
        Keys with one value for all rows of this quantity.
    """

    quantity: str
    unit: str
    predicted: str = ""
    measured: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold it."""
        return tuple(one for one in (self.predicted, self.measured) if one)


def long(
    sheet: Sheet, values: Iterable[Value], keys: Mapping[str, pl.Series], **fixed: Any
) -> pl.DataFrame:
    """Return the values of each row of a table below each other, row by row.

    Parameters
    ----------
    sheet : Sheet
    values : iterable of Value
        Those whose columns the table does not have are left out.
    keys : mapping of str to polars.Series
        Of the rows of the table.
    **fixed
        Columns with one value for all.

    Raises
    ------
    InputError
        The table has none of the columns, or a field of one is no number.
    """
    values = list(values)
    there = [one for one in values if set(one.columns) <= set(sheet.columns)]
    if not there:
        wanted = ", ".join(one for value in values for one in value.columns) or "any known one"
        raise InputError(
            f"{sheet.name}: no column of times. Expected {wanted}; found "
            f"{describe_names(sheet.columns)}."
        )
    return _below_each_other(sheet, there, keys, fixed)


def rows_of(
    sheet: Sheet, tool: str, level: str, values: Sequence[Value], keys: Mapping[str, str]
) -> pl.DataFrame:
    """Return the same of columns that must all be there.

    Parameters
    ----------
    sheet : Sheet
    tool, level : str
    values : sequence of Value
        A row without any value of a quantity gets none of it where there are several.
    keys : mapping of str to str
        Names of keys and their columns.

    Raises
    ------
    InputError
        There is no such column, or a value is no number.
    """
    import polars as pl

    if missing := [column for column in keys.values() if column not in sheet.columns]:
        raise InputError(
            f"{sheet.name}: missing column {missing[0]!r}. Columns found: "
            f"{describe_names(sheet.columns, wanted=missing[0])}."
        )
    found = {name: key(sheet, column, name) for name, column in keys.items()}
    rows = _below_each_other(sheet, values, found, {"tool": tool, "level": level})
    sides = pl.col([name for name in ("predicted", "measured") if name in rows.columns])
    rows = rows.with_columns(sides.fill_nan(None))
    return rows.filter(pl.any_horizontal(sides.is_not_null())) if len(values) > 1 else rows


def _below_each_other(
    sheet: Sheet,
    values: Sequence[Value],
    keys: Mapping[str, pl.Series],
    fixed: Mapping[str, Any],
) -> pl.DataFrame:
    import polars as pl

    def constant(same: Mapping[str, Any]) -> dict[str, pl.Expr]:
        return {name: pl.lit(one) for name, one in same.items() if one is not None}

    own = {name for value in values for name in value.fixed}
    mixed = {name: one for name, one in fixed.items() if name in own}
    frames = []
    for value in values:
        found = {
            side: sheet.numbers(column)
            for side, column in (("predicted", value.predicted), ("measured", value.measured))
            if column
        }
        same = {**mixed, **value.fixed, "quantity": value.quantity, "unit": value.unit}
        frames.append(pl.DataFrame({**found, **keys}).with_columns(**constant(same)))
    rows = frames[0]
    if len(frames) > 1:
        # The values of one row of the table below each other.
        order = np.arange(len(frames) * len(sheet)).reshape(len(frames), -1).T.ravel()
        rows = pl.concat(frames, how="diagonal_relaxed")[order]
    # What all rows have in common comes last: it takes no memory as long as no row is moved.
    return rows.with_columns(**constant({k: v for k, v in fixed.items() if k not in own}))


def with_repeats(rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows that agree in all but their values a number: they were measured again."""
    import polars as pl

    keys = [name for name in rows.columns if name not in ("predicted", "measured")]
    times, place = pl.len().over(keys), pl.int_range(1, pl.len() + 1).over(keys)
    return rows.with_columns(repeat=pl.when(times > 1).then(place))


def without(
    frame: pl.DataFrame, which: pl.Expr, reason: str
) -> tuple[pl.DataFrame, tuple[Dropped, ...]]:
    """Leave out rows, and count them."""
    left = frame.filter(~which.fill_null(value=False))
    return left, as_dropped(reason, len(frame) - len(left))


def as_dropped(reason: str, n: int, rows: Sequence[int] = ()) -> tuple[Dropped, ...]:
    """Return what was left out, if anything was."""
    return (Dropped(reason, n, tuple(rows[:3])),) if n else ()
