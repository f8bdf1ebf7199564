"""The columns of a history, turned into codes and arrays of all its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.tables.columns import Origin, nothing_left, numeric, status_ok
from errcomp.tables.frames import column_values, is_missing
from errcomp.tables.table import dropped_rows

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl
    from numpy.typing import NDArray

    from errcomp.results import Dropped

__all__ = [
    "NOT_KEYS",
    "OCCASION",
    "STACK",
    "codes_of",
    "first_dates",
    "known_keys",
    "n_pairs",
    "positive",
    "series_names",
    "spreads",
    "unit_of",
    "used_rows",
    "validated",
    "version_codes",
    "without_empty",
]

#: Columns that begin with this hold versions of further components of the software stack.
STACK = "stack_"
VALUES = ("measured", "predicted", "measured_spread", "n_repeats")
NOT_KEYS = (*VALUES, "status", "unit")
#: Columns that say which validation a row is, not what was validated.
OCCASION = ("version", "predictor_version", "date", "released", "repeat")
#: Columns that tables without anything in them may have, e.g. those from a store.
MAY_BE_EMPTY = ("series", "predictor", "level", *VALUES[1:], *OCCASION[1:], "status", "unit")


def validated(frame: nw.DataFrame[Any]) -> NDArray[np.bool_]:
    """Say which rows did not fail and have a measurement, whatever it is."""
    return status_ok(frame) & ~_blank(frame, "measured")


def used_rows(
    frame: nw.DataFrame[Any], origin: Origin
) -> tuple[NDArray[np.bool_], tuple[Dropped, ...]]:
    """Return which rows are validations with a figure, and how many are not, by reason.

    Raises
    ------
    InputError
        None is.
    """
    succeeded, ok = status_ok(frame), validated(frame)
    dropped = (
        *dropped_rows("the validation failed (status)", origin.rows[~succeeded]),
        *dropped_rows("no measurement", origin.rows[succeeded & ~ok]),
    )
    if not ok.any():
        why = [f"{d.n} dropped: {d.reason}" for d in dropped]
        raise nothing_left("validations", frame, succeeded, why, origin)
    return ok, dropped


def _blank(frame: nw.DataFrame[Any], name: str) -> NDArray[np.bool_]:
    """Say where a column has nothing: missing or blank text, but not a float that is NaN."""
    values = column_values(frame, name)
    if values.dtype.kind in "fiu":
        return np.asarray(frame[name].is_null().to_numpy(), dtype=bool)
    return np.asarray(
        [v is None or (isinstance(v, str) and not v.strip()) for v in values], dtype=bool
    )


def codes_of(
    frame: nw.DataFrame[Any], names: Sequence[str], origin: Origin
) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """Give a number to each combination of values in these columns, in order of appearance.

    Values are compared as text without blanks around it; missing and blank are equal.

    Returns
    -------
    codes : ndarray of int, shape (n,)
    values : polars.DataFrame
        The combination behind each code, as text; null where missing.

    Raises
    ------
    InputError
        The values of a column are lists or the like.
    """
    import polars as pl

    if not names:
        return np.zeros(len(frame), dtype=np.int64), pl.DataFrame()
    native = frame.to_native()
    if isinstance(native, pl.DataFrame):
        part = native.select(names)
        for column in part:
            if column.dtype.is_nested() or column.dtype == pl.Object:
                raise _not_plain(column.name, origin)
        part = part.select(pl.all().cast(pl.String))
    else:
        part = pl.DataFrame({name: _texts(frame, name, origin) for name in names})
    part = part.with_columns(pl.all().str.strip_chars().replace("", None))
    values = part.unique(maintain_order=True)
    codes = part.join(
        values.with_row_index("\0code"),
        on=list(names),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["\0code"]
    return codes.to_numpy().astype(np.int64), values


def _texts(frame: nw.DataFrame[Any], name: str, origin: Origin) -> pl.Series:
    import polars as pl

    values = column_values(frame, name).tolist()
    try:
        known = {v: None if is_missing(v) else str(v) for v in dict.fromkeys(values)}
    except TypeError as error:
        raise _not_plain(name, origin) from error
    return pl.Series(name, [known[v] for v in values], dtype=pl.String)


def _not_plain(name: str, origin: Origin) -> InputError:
    return InputError(
        f"{origin.prefix}the values of {name} are lists or the like, but it names what was "
        "validated. Give each part a column, or leave it out."
    )


def version_codes(
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the version of each row and their names, in the order in which they appear.

    Only those of rows that are used get a name; other rows may have any code.
    """
    for value in frame["version"].drop_nulls().head(1).to_list():
        if isinstance(value, float) and not is_missing(value):
            raise InputError(
                f"{origin.prefix}version must be text, got the number {value}: 1.1 and 1.10 would "
                "be one version. Read the column as text."
            )
    codes, values = codes_of(frame, ["version"], origin)
    names = values["version"].to_list()
    if None in names:
        missing = ok & (codes == names.index(None))
        if missing.any():
            raise InputError(
                f"{origin.prefix}version is missing in {origin.name(missing)}. Fill it in, or "
                "remove the row."
            )
    # Versions at which every validation failed are not among those compared.
    there, codes[ok] = np.unique(codes[ok], return_inverse=True)
    return codes, [names[i] for i in there]


def series_names(values: pl.DataFrame) -> tuple[str, ...]:
    """Return a name for each series: its values joined, quoted where that would be ambiguous."""
    rows = values.fill_null("-").rows()
    found = ["/".join(row) for row in rows]
    if len(set(found)) < len(found):
        found = ["/".join(map(repr, row)) for row in values.rows()]
    return tuple(found)


def positive(
    frame: nw.DataFrame[Any], name: str, ok: NDArray[np.bool_], origin: Origin
) -> NDArray[np.float64]:
    """Return a column whose logarithm is taken."""
    numbers = numeric(frame, name, ok, origin)
    bad = ok & ~((numbers > 0) & (numbers < np.inf))
    if bad.any():
        raise InputError(
            f"{origin.prefix}{name} must be positive and finite, got {numbers[bad][0]} in "
            f"{origin.name(bad)}. Fix the value, or give the row a status if the validation "
            "failed: an error here is a ratio."
        )
    return numbers


def spreads(
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return measured_spread and n_repeats, NaN where missing."""
    found = []
    for name, least in (("measured_spread", 0.0), ("n_repeats", 1.0)):
        if name not in frame.columns:
            found.append(np.full(len(frame), np.nan))
            continue
        numbers = numeric(frame, name, ok, origin, blank=True)
        fine = (numbers >= least) & (numbers < np.inf)
        if name == "n_repeats":
            fine &= numbers == np.floor(numbers)
        bad = ok & ~fine & ~np.isnan(numbers)
        if bad.any():
            what = (
                "a relative standard deviation: finite and ≥ 0 (0.02 is 2 %)"
                if name == "measured_spread"
                else "a whole number ≥ 1"
            )
            raise InputError(
                f"{origin.prefix}{name} must be {what}, got {numbers[bad][0]} in "
                f"{origin.name(bad)}. Fix the value, or leave it empty where it is not known."
            )
        found.append(numbers)
    return found[0], found[1]


def unit_of(
    frame: nw.DataFrame[Any],
    unit: str | None,
    ok: NDArray[np.bool_],
    used: Origin,
    series: NDArray[np.int64],
    series_names: Sequence[str],
) -> tuple[str | None, tuple[str, ...]]:
    """Return the unit of all rows, None where series differ, which ratios do not mind; and notes.

    Raises
    ------
    InputError
        A series has several units, or not the one given.
    """
    if "unit" not in frame.columns:
        return unit, ()
    codes, values = codes_of(frame, ["unit"], used)
    names = [name or "" for name in values["unit"].to_list()]
    codes = codes[ok]
    first = codes[np.unique(series, return_index=True)[1]][series]
    if unit is not None:
        first = np.full(len(codes), names.index(unit) if unit in names else -1)
    if (other := codes != first).any():
        at = int(np.argmax(other))
        was = unit if unit is not None else names[first[at]]
        one, two = (repr(name) if name else "no unit" for name in (was, names[codes[at]]))
        raise InputError(
            f"{used.prefix}mixed units: {one} and {two} in series {series_names[series[at]]!r} "
            f"(the second in {used.name(other)}). Convert all rows of a series to one unit first."
        )
    found = [names[code] for code in np.unique(codes)]
    if len(found) == 1:
        return found[0] or None, ()
    return None, (f"series have different units: {', '.join(map(repr, sorted(found)))}",)


def n_pairs(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Count the different pairs of numbers ≥ 0."""
    return len(np.unique(a * (b.max() + 1) + b))


def first_dates(
    versions: NDArray[np.int64], dates: NDArray[np.datetime64], n: int
) -> NDArray[np.datetime64]:
    """Return the earliest date of each version, NaT where it has none."""
    latest = np.iinfo(np.int64).max
    found = np.full(n, latest)
    known = ~np.isnat(dates)
    np.minimum.at(found, versions[known], dates[known].view(np.int64))
    return np.where(found == latest, np.iinfo(np.int64).min, found).view("M8[s]")


def known_keys(
    series: Sequence[str] | None, columns: Sequence[str], prefix: str
) -> tuple[str, ...]:
    """Return the columns that were given to name a series, all of which are there."""
    given = () if series is None else (series,) if isinstance(series, str) else tuple(series)
    able = [name for name in columns if name not in (*NOT_KEYS, *OCCASION)]
    for name in given:
        if name not in able:
            raise InputError(
                f"{prefix}no column {name!r} that can name a series. "
                f"{offer('Columns', able, wanted=str(name))}"
            )
    return given


def without_empty(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Leave out reserved columns that hold nothing: a table with one is like one without."""
    empty = [
        name
        for name in frame.columns
        if (name in MAY_BE_EMPTY or name.startswith(STACK))
        and frame[name].null_count() == len(frame) > 0
    ]
    return frame.drop(empty) if empty else frame
