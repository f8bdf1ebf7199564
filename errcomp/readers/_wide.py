"""Tables with a column for each quantity, turned into one row for each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.readers.sheet import to_numbers
from errcomp.results import Dropped

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.sheet import Sheet

__all__ = ["Value", "as_dropped", "key", "keys_of", "long", "without"]


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
    import polars as pl

    frames = []
    values = list(values)
    for value in values:
        if any(one not in sheet.columns for one in value.columns):
            continue
        found = {
            side: sheet.numbers(column)
            for side, column in (("predicted", value.predicted), ("measured", value.measured))
            if column
        }
        same = {**fixed, **value.fixed, "quantity": value.quantity, "unit": value.unit}
        frames.append(
            pl.DataFrame({**found, **keys, "_row": np.arange(len(sheet))}).with_columns(
                **{name: pl.lit(one) for name, one in same.items() if one is not None}
            )
        )
    if not frames:
        wanted = ", ".join(one for value in values for one in value.columns) or "any known one"
        raise InputError(
            f"{sheet.name}: no column of times. Expected {wanted}; found "
            f"{describe_names(sheet.columns)}."
        )
    return pl.concat(frames, how="diagonal_relaxed").sort("_row", maintain_order=True).drop("_row")


def key(sheet: Sheet, column: str) -> pl.Series:
    """Return a column as a key: whole numbers or numbers where all of it is, else text.

    What a tool writes for no value is null.
    """
    import polars as pl

    text = sheet.frame[column]
    numbers, bad = to_numbers(text)
    if bad.any() or not np.isfinite(numbers).any():
        # Leading zeros and the like are kept: the text is the name.
        return pl.Series(column, [one or None for one in text.to_list()], dtype=pl.String)
    found = pl.Series(column, numbers, nan_to_null=True)
    known = numbers[~np.isnan(numbers)]
    whole = bool(np.all(np.abs(known) < 2**53) and np.all(known == np.floor(known)))
    return found.cast(pl.Int64) if whole else found


def keys_of(sheet: Sheet, names: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return those of the columns that there are as keys, by the names given."""
    return {new: key(sheet, old) for old, new in names.items() if old in sheet.columns}


def without(
    frame: pl.DataFrame, which: pl.Expr, reason: str
) -> tuple[pl.DataFrame, tuple[Dropped, ...]]:
    """Leave out rows, and count them."""
    left = frame.filter(~which.fill_null(value=False))
    return left, as_dropped(reason, len(frame) - len(left))


def as_dropped(reason: str, n: int, rows: Sequence[int] = ()) -> tuple[Dropped, ...]:
    """Return what was left out, if anything was."""
    return (Dropped(reason, n, tuple(rows[:3])),) if n else ()
