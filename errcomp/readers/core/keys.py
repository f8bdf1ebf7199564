"""Columns of a table that identify or explain its rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from errcomp.readers.core.sheet import MISSING, to_numbers

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.core.sheet import Sheet

__all__ = ["has", "key", "keys_of", "number_key", "other_keys", "snake"]

#: Keys that are text although they may look like a number: 12 is not 12.0, nor 1.10 1.1.
_TEXT = frozenset(
    ("version", "model", "device", "run", "kernel", "variant", "config", "app", "args", "series")
)
_RESERVED = frozenset(("tool", "level", "quantity", "unit", "predicted", "measured", "status"))
_WHOLE = r"^-?(?:0|[1-9]\d{0,17})$"
#: What stands for no name; "none" may be one (a precision, a scheduler).
_NO_TEXT = MISSING - {"none"}


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


def key(sheet: Sheet, column: str, name: str = "") -> pl.Series:
    """Return a column as a key: whole numbers or numbers where all of it is, else text.

    What tools write where they have nothing is null. What is called a version or a name by
    ``name`` (the column's own when not given) stays text.

    Examples
    --------
    >>> from errcomp.readers.core.sheet import sheet_of
    >>> sheet = sheet_of("t.csv", ["batch,rate,version", "8.0,0.5,1.10", "n/a,1,1.2"])
    >>> [key(sheet, column).to_list() for column in sheet.columns]
    [[8, None], [0.5, 1.0], ['1.10', '1.2']]
    """
    import polars as pl

    name = name or column
    # A table that was not written as text may have blanks around its values.
    text = sheet.frame[column].alias(name).str.strip_chars()
    lower = text.str.to_lowercase()
    named = text.set(lower.is_in(list(_NO_TEXT)), None)
    if name in _TEXT or name.startswith("stack_") or "version" in name:
        return named
    plain = text.set(lower.is_in(list(MISSING)), None)
    if plain.drop_nulls().str.contains(_WHOLE).all() and plain.null_count() < len(plain):
        # Numbers of requests may be too large for a float.
        return plain.cast(pl.Int64)
    numbers, bad = to_numbers(plain)
    if bad.any() or not np.isfinite(numbers).any():
        return named
    found = pl.Series(name, numbers, nan_to_null=True)
    known = numbers[~np.isnan(numbers)]
    whole = bool(np.all(np.abs(known) < 2**53) and np.all(known == np.floor(known)))
    return found.cast(pl.Int64) if whole else found


def number_key(sheet: Sheet, column: str, name: str = "") -> pl.Series:
    """Return a column as a key that rows are chosen by as a number: text in it is an error.

    Raises
    ------
    InputError
        A field is no number, or there is no such column.

    Examples
    --------
    >>> from errcomp.readers.core.sheet import sheet_of
    >>> number_key(sheet_of("t.csv", ["a,tokens", "x,n/a", "y,8"]), "tokens").to_list()
    [None, 8]
    """
    import polars as pl

    sheet.numbers(column)  # this is where it is checked
    found = key(sheet, column, name)
    return found.cast(pl.Float64) if found.dtype == pl.String else found


def keys_of(sheet: Sheet, names: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return those of the columns that there are as keys, by the names given."""
    return {new: key(sheet, old, new) for old, new in names.items() if old in sheet.columns}


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
