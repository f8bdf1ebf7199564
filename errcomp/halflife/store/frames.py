"""A history as the rows of a store, and back: columns with types, keys as JSON, identities."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from errcomp.errors import InputError, describe_rows
from errcomp.tables import History
from errcomp.tables.columns import Origin, dates_of, texts
from errcomp.tables.frames import column_values, to_eager
from errcomp.tables.memory.history_columns import validated

Kind = Literal["text", "integer", "number", "boolean"]

#: Prefix of the columns that hold versions of further components of the software stack.
_STACK = "stack_"
#: Columns of the tables of series and of setups.
SERIES = ("series", "keys", "level", "predictor", "unit")
SETUP = ("predictor_version", "stack")
#: Columns of a validation: its results, and its identity other than series, version and setup.
VALUES = ("measured", "predicted", "measured_spread", "n_repeats", "status")
_WHEN = ("date", "repeat")
_TEXTS = ("series", "version", "level", "predictor", "predictor_version", "status", "unit")
_NUMBERS = ("measured", "predicted", "measured_spread", "n_repeats")
_NUMBER_TYPES = {**dict.fromkeys(_NUMBERS, pl.Float64), "n_repeats": pl.Int64}
_DATES = ("date", "released")
_RESERVED = {*_TEXTS, *_NUMBERS, *_DATES, "repeat"}
_ISO = "%Y-%m-%dT%H:%M:%SZ"
_TYPES: dict[Kind, type[pl.DataType]]
_TYPES = {"text": pl.String, "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
#: Beyond this, a float does not represent all whole numbers.
_WHOLE = 2.0**53


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """A history of any library in one form: names are text, dates are UTC.

    Attributes
    ----------
    frame : polars.DataFrame, n rows
        Columns that are not empty. Dates are ISO 8601 text.
    rows : ndarray of int, shape (n,)
        Number of each row as the user counts rows.
    ok : ndarray of bool, shape (n,)
        Validations with a result.
    source : str
        Name of the table in messages.
    """

    frame: pl.DataFrame
    rows: NDArray[np.int64]
    ok: NDArray[np.bool_]
    source: str

    @property
    def prefix(self) -> str:
        """Return the start of a message."""
        return f"{self.source}: " if self.source else ""

    def name(self, which: Any) -> str:
        """Name the rows at these positions, or of this mask."""
        return describe_rows(self.rows[which].tolist())

    def kinds(self) -> dict[str, Kind]:
        """Return the type of each column."""
        names: dict[type[pl.DataType], Kind] = {dtype: kind for kind, dtype in _TYPES.items()}
        return {name: names[dtype.base_type()] for name, dtype in self.frame.schema.items()}


def plain(history: History) -> Plain:
    """Return the validations of a history; a selection excludes those without a result.

    Raises
    ------
    InputError
        A value cannot be stored (lists, infinities, text with a zero character), or a validation
        without a result (failed, or not measured) has no version or an invalid date.
    """
    every = to_eager(history.native)
    used = history.positions
    number = int(history.rows[0] - used[0])
    failed = np.flatnonzero(~validated(every))
    # A selection excludes validations without a result.
    failed = failed if len(used) + len(failed) == len(every) else failed[:0]
    index = np.sort(np.concatenate([used, failed]))
    frame = every if len(index) == len(every) else every[index.tolist()]
    ok = np.isin(index, used)
    origin = Origin(history.source, index + number, "row")
    data = {
        name: _column(frame, name, origin) for name in frame.columns if name not in _RESERVED
    } | {name: _text(frame, name, origin) for name in _TEXTS if name in frame.columns}
    if "repeat" in frame.columns:
        data["repeat"] = _column(frame, "repeat", origin)
    if history.unit is not None:
        data["unit"] = pl.Series([history.unit] * len(frame))
    for name, values in _numbers(history, frame, ok).items():
        data[name] = pl.Series(values, nan_to_null=True).cast(_NUMBER_TYPES[name])
    for name in _DATES:
        data[name] = _dates(getattr(history, name), name, frame, ok, origin)
    texts(frame, "version", np.ones(len(frame), dtype=bool), origin)
    order = [n for n in frame.columns if n in data] + [n for n in data if n not in frame.columns]
    table = pl.DataFrame({n: data[n] for n in order if data[n].null_count() < len(frame)})
    return Plain(table, origin.rows, ok, history.source)


def _numbers(
    history: History, frame: nw.DataFrame[Any], ok: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    """Return the results; unreadable values of validations without a result are NaN."""
    known = (history.measured, history.predicted, history.spread, history.runs)
    figures = {}
    for name, values in zip(_NUMBERS, known, strict=True):
        column = np.full(len(frame), np.nan)
        if name in frame.columns and not ok.all():
            given = pl.Series(column_values(frame, name)[~ok].tolist(), strict=False)
            column[~ok] = given.cast(pl.Float64, strict=False).to_numpy()
            column[~np.isfinite(column)] = np.nan
        if values is not None:
            column[ok] = values
        figures[name] = column
    figures["n_repeats"][~(np.abs(figures["n_repeats"]) < _WHOLE)] = np.nan
    return figures


def _dates(
    known: NDArray[np.datetime64],
    name: str,
    frame: nw.DataFrame[Any],
    ok: NDArray[np.bool_],
    origin: Origin,
) -> pl.Series:
    dates = np.full(len(frame), "NaT", dtype="M8[s]")
    if name in frame.columns and not ok.all():
        dates[~ok] = dates_of(frame, name, ~ok, origin)[~ok]
    dates[ok] = known
    return pl.Series(dates.astype("M8[ms]")).dt.strftime(_ISO)


def _text(frame: nw.DataFrame[Any], name: str, origin: Origin) -> pl.Series:
    """Return a column of names."""
    return _checked(_native(frame, name, origin).cast(pl.String), name, origin)


def _column(frame: nw.DataFrame[Any], name: str, origin: Origin) -> pl.Series:
    """Return a column of text, numbers or booleans; every other type becomes text."""
    if name.startswith(_STACK):
        return _text(frame, name, origin)
    column = _native(frame, name, origin)
    if column.dtype.is_integer():
        try:
            return column.cast(pl.Int64)
        except pl.exceptions.InvalidOperationError:  # an identifier of more than 64 bits
            return column.cast(pl.String)
    if column.dtype.is_numeric():
        column = column.cast(pl.Float64).fill_nan(None)
        if (bad := column.is_infinite().fill_null(value=False).to_numpy()).any():
            raise InputError(
                f"{origin.prefix}{name} is infinite in {origin.name(bad)}. Fix the value, or leave "
                "the column out."
            )
        return column
    if column.dtype == pl.Boolean:
        return column
    return _checked(column.cast(pl.String), name, origin)


def _native(frame: nw.DataFrame[Any], name: str, origin: Origin) -> pl.Series:
    native = frame[name].to_native()
    if not isinstance(native, pl.Series):
        native = _of_objects(column_values(frame, name))
    if native.dtype.is_nested() or native.dtype in (pl.Object, pl.Binary):
        raise InputError(
            f"{origin.prefix}the values of {name} have the type {native.dtype}, which cannot be "
            "stored. Put each element in a column of its own, or leave the column out."
        )
    return native


def _of_objects(values: NDArray[Any]) -> pl.Series:
    """Return values of another library with one type; values of several types become text."""
    if values.dtype.kind != "O":
        return pl.Series(values, nan_to_null=True)
    column = values.tolist()
    kinds = {type(v) for v in column} - {type(None)}
    if kinds <= {int, float} or len(kinds) == 1:
        return pl.Series(column, strict=False)
    return pl.Series([None if v is None else str(v) for v in column], dtype=pl.String)


def _checked(column: pl.Series, name: str, origin: Origin) -> pl.Series:
    bare = column.str.strip_chars().replace("", None)
    if (bad := bare.str.contains("\0", literal=True).fill_null(value=False).to_numpy()).any():
        raise InputError(
            f"{origin.prefix}{name} contains a null character in {origin.name(bad)}, which a "
            "database cannot store. Remove it."
        )
    return bare


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A history as the rows of a store, each part numbered from 0.

    Attributes
    ----------
    rows : polars.DataFrame, n rows
        ``series_code``, ``version_code``, ``setup_code``: positions in the frames below;
        ``identity``, ``occurrence``, ``date``, ``repeat`` and the values.
    series, version, setup : polars.DataFrame
        Each combination once.
    """

    rows: pl.DataFrame
    series: pl.DataFrame
    version: pl.DataFrame
    setup: pl.DataFrame


def coded(given: Plain, name: str) -> Coded:
    """Return the rows of a history of this name in a store."""
    frame = given.frame
    keys = [n for n in frame.columns if n not in _RESERVED and not n.startswith(_STACK)]
    stack = [n for n in frame.columns if n.startswith(_STACK)]
    missing = {**dict.fromkeys((*_TEXTS, *_DATES, "repeat"), pl.String), **_NUMBER_TYPES}
    frame = frame.with_columns(
        pl.lit(None, dtype).alias(n) for n, dtype in missing.items() if n not in frame.columns
    ).with_columns(
        _json_texts(frame, keys).alias("keys"),
        _json_texts(frame, stack).alias("stack"),
        pl.col("repeat").map_batches(_as_text, pl.String),
    )
    # The release date of a validation without a result is used only if there is no other.
    used = pl.when(pl.Series(given.ok)).then("released")
    dates = frame.select("version", "released", used=used).group_by("version", maintain_order=True)
    first = dates.agg(pl.col(n).drop_nulls().first() for n in ("used", "released"))
    version = first.select("version", released=pl.coalesce("used", "released"))
    series = frame.select(SERIES).unique(maintain_order=True)
    setup = frame.select(SETUP).unique(maintain_order=True)
    rows = frame.select(
        numbered(frame, series, "series_code"),
        numbered(frame, version.select("version"), "version_code"),
        numbered(frame, setup, "setup_code"),
        _identities(frame, name),
        *_WHEN,
        *VALUES,
    )
    occurrence = pl.int_range(pl.len()).over("identity").alias("occurrence")
    return Coded(rows.with_columns(occurrence), series, version, setup)


def numbered(frame: pl.DataFrame, among: pl.DataFrame, name: str) -> pl.Series:
    """Return the position of each row's values in a table of values; null if missing."""
    columns = among.columns
    places = among.with_row_index(name)
    return frame.join(places, on=columns, how="left", nulls_equal=True, maintain_order="left")[
        name
    ].cast(pl.Int64)


def _identities(frame: pl.DataFrame, name: str) -> pl.Series:
    """Hash the identity of each validation; its parts have no zero characters."""
    parts = ("series", "keys", "level", "version", "predictor", "predictor_version", "stack")
    joint = frame.select(
        pl.concat_str(
            pl.lit(name),
            *(pl.col(part).fill_null("") for part in (*parts, *_WHEN)),
            separator="\0",
        )
    ).to_series()
    hashed = [blake2b(text.encode(), digest_size=16).digest() for text in joint.to_list()]
    return pl.Series("identity", hashed, dtype=pl.Binary)


def _json_texts(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Write the columns of each row as one JSON object of texts, sorted by name."""
    if not names:
        return pl.Series(["{}"]).new_from_index(0, frame.height)
    part = frame.select(_as_text(frame[name]) for name in sorted(names))
    values = part.unique(maintain_order=True)
    written = pl.Series([_json(row) for row in values.iter_rows(named=True)], dtype=pl.String)
    return written.gather(numbered(part, values, "\0code"))


def _json(values: Mapping[str, str | None]) -> str:
    present = {name: value for name, value in values.items() if value is not None}
    return json.dumps(present, ensure_ascii=False, separators=(",", ":"))


def _as_text(column: pl.Series) -> pl.Series:
    """Write a column as text: numbers exact to the last bit, whole numbers without a point."""
    if column.dtype != pl.Float64:
        return column.cast(pl.String)
    known = column.unique().drop_nulls()
    written = [repr(int(v) if v.is_integer() and abs(v) < _WHOLE else v) for v in known.to_list()]
    return _replaced(column, known, pl.Series(written, dtype=pl.String))


def _typed(column: pl.Series, kind: Kind) -> pl.Series:
    """Turn text back into values of their type."""
    if kind == "text":
        return column
    known = column.unique().drop_nulls()
    read: dict[Kind, Callable[[str], Any]] = {
        "integer": int,
        "number": float,
        "boolean": "true".__eq__,
    }
    values = pl.Series(list(map(read[kind], known.to_list())), dtype=_TYPES[kind])
    return _replaced(column, known, values)


def _replaced(column: pl.Series, known: pl.Series, values: pl.Series) -> pl.Series:
    replaced = column.replace_strict(known, values, default=None, return_dtype=values.dtype)
    return replaced.alias(column.name)


def joined(
    rows: pl.DataFrame,
    series: pl.DataFrame,
    version: pl.DataFrame,
    setup: pl.DataFrame,
    kinds: Mapping[str, Kind],
) -> pl.DataFrame:
    """Return the rows of a store as one table with the columns of the history.

    Parameters
    ----------
    rows : polars.DataFrame
        Validations with ``series_id``, ``version_id``, ``setup_id``.
    series, version, setup : polars.DataFrame
        The values for these numbers (``id``, the first column).
    kinds : mapping of str to str
        Columns of the history in order, and their types.
    """
    keys = [n for n in kinds if n not in _RESERVED and not n.startswith(_STACK)]
    stack = [n for n in kinds if n.startswith(_STACK)]
    data: dict[str, pl.Series] = {n: rows[n] for n in rows.columns if not n.endswith("_id")}
    for table, number in ((series, "series_id"), (version, "version_id"), (setup, "setup_id")):
        place = numbered(rows.select(id=number), table.select("id"), "\0place")
        for name in table.columns[1:]:
            if name == "keys":
                columns = _of_json(table[name], keys, kinds)
            elif name == "stack":
                columns = _of_json(table[name], stack, kinds)
            else:
                columns = {name: table[name]}
            data |= {n: values.gather(place) for n, values in columns.items() if n in kinds}
    if "repeat" in kinds:
        data["repeat"] = _typed(data["repeat"], kinds["repeat"])
    for name in _DATES:
        if name in kinds:
            data[name] = data[name].str.to_datetime(_ISO, time_unit="ms", time_zone="UTC")
    return pl.DataFrame({name: data[name] for name in kinds})


def _of_json(
    written: pl.Series, names: Sequence[str], kinds: Mapping[str, Kind]
) -> dict[str, pl.Series]:
    objects = [json.loads(text) for text in written.to_list()]
    return {
        name: _typed(pl.Series([o.get(name) for o in objects], dtype=pl.String), kinds[name])
        for name in names
    }


def widened(was: Kind, new: Kind) -> Kind:
    """Return the common type of a column that had one type and now has another, if need be text."""
    if was == new:
        return was
    return "number" if {was, new} == {"integer", "number"} else "text"
