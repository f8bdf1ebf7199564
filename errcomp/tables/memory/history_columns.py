"""The columns of a history as codes and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.tables.columns import Origin, dropped_rows, failures, nothing_left, numeric, status_ok
from errcomp.tables.frames import column_values, is_missing

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl
    from numpy.typing import NDArray

    from errcomp.results import Dropped


#: Reason for leaving out validations.
FAILED = "the validation failed (status)"
#: Columns that begin with this hold versions of other components of the software stack.
STACK = "stack_"
VALUES = ("measured", "predicted", "measured_spread", "n_repeats")
NOT_KEYS = (*VALUES, "status", "unit")
#: Columns that identify the validation, not the thing validated.
OCCASION = ("version", "predictor_version", "date", "released", "repeat")
#: Columns that may be empty, e.g. in tables from a store.
MAY_BE_EMPTY = ("series", "predictor", "level", *VALUES[1:], *OCCASION[1:], "status", "unit")


def validated(frame: nw.DataFrame[Any]) -> NDArray[np.bool_]:
    """Say which rows did not fail and have a measurement, of any value."""
    return status_ok(frame) & ~_blank(frame, "measured")


def used_rows(
    frame: nw.DataFrame[Any], origin: Origin
) -> tuple[NDArray[np.bool_], tuple[Dropped, ...]]:
    """Return which rows are validations with a result, and how many are not, by reason.

    Raises
    ------
    InputError
        There are no such rows.
    """
    succeeded, ok = status_ok(frame), validated(frame)
    dropped = (
        *dropped_rows(FAILED, origin.rows[~succeeded]),
        *dropped_rows("no measurement", origin.rows[succeeded & ~ok]),
    )
    if not ok.any():
        failed = failures(frame, succeeded, origin)
        raise nothing_left("validations", dropped, origin.prefix, failed=failed)
    return ok, dropped


def _blank(frame: nw.DataFrame[Any], name: str) -> NDArray[np.bool_]:
    """Say where a column is empty: missing or blank text, but not NaN."""
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

    Values are compared as text without surrounding spaces; missing and empty are equal.

    Returns
    -------
    codes : ndarray of int, shape (n,)
    values : polars.DataFrame
        The combination of each code, as text; null where missing.

    Raises
    ------
    InputError
        The values of a column are lists or similar.
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
        f"{origin.prefix}the values of {name} are lists or similar, but the column identifies what "
        "was validated. Put each element in a column of its own, or leave the column out."
    )


def version_codes(
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin, stack: Sequence[str] = ()
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the version of each row and their names, in order of appearance.

    Only versions of rows in use get a name; other rows may have any code. With columns of the
    ``stack``, each combination is a version: ``2.1 (driver 550)``.
    """
    for value in frame["version"].drop_nulls().head(1).to_list():
        if isinstance(value, float) and not is_missing(value):
            raise InputError(
                f"{origin.prefix}version must be text, got the number {value}: as numbers, 1.1 and "
                "1.10 would be the same version. Read the column as text."
            )
    known = [name for name in stack if name in frame.columns]
    codes, values = codes_of(frame, ["version", *known], origin)
    for name in ("version", *known):
        missing = ok & np.isin(codes, np.flatnonzero(values[name].is_null().to_numpy()))
        origin.refuse_missing(missing, name, "Fill it in, or remove the row.")
    names = values["version"].to_list()
    if known:
        components = [name.removeprefix(STACK) for name in known]
        names = [
            f"{name} ({', '.join(f'{c} {v}' for c, v in zip(components, own, strict=True))})"
            for name, *own in values.iter_rows()
        ]
    # Versions under which every validation failed are not compared.
    used, codes[ok] = np.unique(codes[ok], return_inverse=True)
    return codes, [names[i] for i in used]


def series_names(values: pl.DataFrame) -> tuple[str, ...]:
    """Return a name for each series: its values joined, quoted if the name would be ambiguous."""
    rows = values.fill_null("-").rows()
    names = ["/".join(row) for row in rows]
    if len(set(names)) < len(names):
        names = ["/".join(map(repr, row)) for row in values.rows()]
    return tuple(names)


def positive(
    frame: nw.DataFrame[Any], name: str, ok: NDArray[np.bool_], origin: Origin
) -> NDArray[np.float64]:
    """Return a column whose logarithm is taken."""
    numbers = numeric(frame, name, ok, origin)
    bad = ok & ~((numbers > 0) & (numbers < np.inf))
    remedy = (
        "Errors are computed as ratios: fix the value, or give the row a status if the validation "
        "failed."
    )
    origin.refuse(bad, numbers, f"{name} must be positive and finite", remedy)
    return numbers


def spreads(
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return measured_spread and n_repeats, NaN where missing."""
    columns = []
    for name, least, rule in (
        ("measured_spread", 0.0, "a relative standard deviation: finite and ≥ 0 (0.02 is 2 %)"),
        ("n_repeats", 1.0, "a whole number ≥ 1"),
    ):
        if name not in frame.columns:
            columns.append(np.full(len(frame), np.nan))
            continue
        numbers = numeric(frame, name, ok, origin, blank=True)
        fine = (numbers >= least) & (numbers < np.inf)
        if name == "n_repeats":
            fine &= numbers == np.floor(numbers)
        bad = ok & ~fine & ~np.isnan(numbers)
        remedy = "Fix the value, or leave it empty if unknown."
        origin.refuse(bad, numbers, f"{name} must be {rule}", remedy)
        columns.append(numbers)
    return columns[0], columns[1]


def unit_of(
    frame: nw.DataFrame[Any],
    unit: str | None,
    ok: NDArray[np.bool_],
    used: Origin,
    series: NDArray[np.int64],
    series_names: Sequence[str],
) -> tuple[str | None, tuple[str, ...]]:
    """Return the unit of all rows and notes; None if series differ, which ratios allow.

    Raises
    ------
    InputError
        A series has several units, or another than the given unit.
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
        old, new = (repr(name) if name else "no unit" for name in (was, names[codes[at]]))
        raise InputError(
            f"{used.prefix}mixed units: {old} and {new} in series {series_names[series[at]]!r} "
            f"(the second in {used.name(other)}). Convert all rows of a series to one unit first."
        )
    units = [names[code] for code in np.unique(codes)]
    if len(units) == 1:
        return units[0] or None, ()
    return None, (f"series have different units: {', '.join(map(repr, sorted(units)))}",)


def n_pairs(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Count the different pairs of numbers ≥ 0."""
    return len(np.unique(a * (b.max() + 1) + b))


def first_dates(
    versions: NDArray[np.int64], dates: NDArray[np.datetime64], n: int
) -> NDArray[np.datetime64]:
    """Return the earliest date of each version, NaT where it has none."""
    latest = np.iinfo(np.int64).max
    earliest = np.full(n, latest)
    known = ~np.isnat(dates)
    np.minimum.at(earliest, versions[known], dates[known].view(np.int64))
    return np.where(earliest == latest, np.iinfo(np.int64).min, earliest).view("M8[s]")


def known_keys(
    series: Sequence[str] | None, columns: Sequence[str], prefix: str
) -> tuple[str, ...]:
    """Return the given columns that name a series; raise if any is missing."""
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
    """Leave out empty reserved columns: they mean the same as no column."""
    empty = [
        name
        for name in frame.columns
        if (name in MAY_BE_EMPTY or name.startswith(STACK))
        and frame[name].null_count() == len(frame) > 0
    ]
    return frame.drop(empty) if empty else frame
