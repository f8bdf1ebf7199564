"""Columns of a table of values turned into the tidy rows of a result."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.readers.sheet import MISSING

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.sheet import Sheet

__all__ = ["Measure", "has", "key_column", "other_keys", "rows_of", "snake", "with_repeats"]

#: Keys that are text although they may look like a number: 12 is not 12.0, nor 1.10 1.1.
_TEXT = frozenset(
    ("version", "model", "device", "run", "kernel", "variant", "config", "app", "args", "series")
)
_RESERVED = frozenset(("tool", "level", "quantity", "unit", "predicted", "measured", "status"))
_WHOLE = r"^-?(?:0|[1-9]\d{0,17})$"


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of a table: the columns that hold it, and what it is."""

    quantity: str
    unit: str
    predicted: str = ""
    measured: str = ""
    level: str = ""


def has(names: Collection[str], *wanted: str) -> bool:
    """Say whether all these names are there."""
    return all(name in names for name in wanted)


def snake(name: str) -> str:
    """Return a name in lower case with underscores.

    Examples
    --------
    >>> snake("Elapsed_Cycles"), snake("#SMs (active)"), snake("tokens/s/gpu")
    ('elapsed_cycles', 'sms_active', 'tokens_s_gpu')
    """
    found = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_") or "column"
    return f"{found}_" if found in _RESERVED else found


def key_column(values: Sequence[str | None], name: str) -> pl.Series:
    """Return a column as numbers where it holds nothing else, else as text.

    What tools write where they have nothing is null.
    """
    import polars as pl

    text = pl.Series(name, values, dtype=pl.String).str.strip_chars()
    missing = text.is_null() | text.str.to_lowercase().is_in(list(MISSING))
    text = text.set(missing, None)
    if name in _TEXT or name.startswith("stack_") or "version" in name:
        return text
    if text.drop_nulls().str.contains(_WHOLE).all():
        return text.cast(pl.Int64)
    numbers = text.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == text.null_count() else text


def other_keys(sheet: Sheet, used: Collection[str]) -> dict[str, str]:
    """Name every column that is not used yet as a key."""
    found: dict[str, str] = {}
    for column in sheet.columns:
        if column in used:
            continue
        name, again = snake(column), 2
        while name in found:
            name, again = f"{snake(column)}_{again}", again + 1
        found[name] = column
    return found


def rows_of(
    sheet: Sheet, tool: str, level: str, measures: Sequence[Measure], keys: Mapping[str, str]
) -> pl.DataFrame:
    """Return a row for every quantity of every row of a table.

    Parameters
    ----------
    sheet : Sheet
    tool, level : str
    measures : sequence of Measure
        A row without any value of a quantity gets none of it where there are several.
    keys : mapping of str to str
        Names of keys and their columns.

    Raises
    ------
    InputError
        A value is no number.
    """
    import numpy as np
    import polars as pl

    common = [key_column(sheet.texts(column), name) for name, column in keys.items()]
    frames = []
    for one in measures:
        values = [
            pl.Series(name, sheet.numbers(column), nan_to_null=True)
            for name, column in (("predicted", one.predicted), ("measured", one.measured))
            if column
        ]
        frame = pl.DataFrame([*values, *common]).with_columns(
            tool=pl.lit(tool),
            level=pl.lit(one.level or level),
            quantity=pl.lit(one.quantity),
            unit=pl.lit(one.unit),
            _order=pl.Series(np.arange(len(sheet))),
        )
        if len(measures) > 1:
            frame = frame.filter(pl.any_horizontal(pl.col(v.name).is_not_null() for v in values))
        frames.append(frame)
    return pl.concat(frames, how="diagonal").sort("_order", maintain_order=True).drop("_order")


def with_repeats(rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows that agree in all but their values a number: they were measured again."""
    import polars as pl

    keys = [name for name in rows.columns if name not in ("predicted", "measured")]
    times, place = pl.len().over(keys), pl.int_range(1, pl.len() + 1).over(keys)
    return rows.with_columns(repeat=pl.when(times > 1).then(place))
