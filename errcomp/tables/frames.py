"""The user's own dataframe, of any library: read as arrays, returned as native frames.

Frames in memory become arrays; rows in an engine stay there (see `errcomp.tables.engine`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, LeftOutWarning, warn_caller
from errcomp.tables.units import number_and_unit

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl
    from numpy.typing import NDArray


#: Prefix of columns made here, so that they do not collide with the user's.
MARK = "_errcomp_"
#: Rows that show whether a column of texts holds numbers.
_SAMPLE = 100
#: From this number of rows on, texts that occur this often on average are shared objects.
_MANY, _SHARED = 1_000, 10
#: Numbers up to this times the rows are counted, which is faster than to sort them.
_SPARSE = 4
#: Mixes the bits of a number with those of the next.
_ODD = np.uint64(0x9E3779B97F4A7C15)
#: Why a column cannot be a key.
LISTS = "its values are lists or similar"


def in_engine(native: Any) -> bool:
    """Say whether the rows of a frame are not in memory: lazy, distributed, a relation."""
    import narwhals as nw

    try:
        return isinstance(nw.from_native(native, pass_through=True), nw.LazyFrame)
    except nw.exceptions.DuplicateError:
        return False  # collecting it reports the error


def to_eager(native: Any) -> nw.DataFrame[Any]:
    """Wrap a dataframe of any supported library; collect lazy ones; mappings become Polars."""
    import narwhals as nw

    if isinstance(native, Mapping):
        native = _from_mapping(native)
    frame = wrapped(native)
    try:
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        names: list[Any] = frame.columns
    except nw.exceptions.DuplicateError as error:
        raise InputError(_TWICE) from error
    _check_names(names)
    return frame


def wrapped(native: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Wrap a dataframe of any supported library, in memory or not."""
    import narwhals as nw

    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(native)
    except TypeError as error:
        raise InputError(
            f"expected a dataframe (pandas, Polars, PyArrow, …) or a mapping of columns, "
            f"got {type(native).__name__}"
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise InputError(_TWICE) from error
    return frame


def check_names(names: Sequence[Any], engine: str) -> None:
    """Raise if an engine would silently confuse columns of similar names."""
    _check_names(names)
    # Spark ignores case, and reads a dot as access to a part of a column.
    same = [name.lower() if engine == "Spark" else name for name in names]
    if len(set(same)) < len(same):
        raise InputError(_TWICE)
    for name in names:
        if engine == "Spark" and ("." in name or "`" in name):
            raise InputError(
                f"column {name!r}: Spark reads dots and backticks in a name as parts of its "
                "syntax. Rename the column."
            )


_TWICE = "the table has two columns of the same name. Rename one of them."


def _check_names(names: Collection[Any]) -> None:
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise InputError(f"column names must be text, got {other[0]!r}. Rename the column.")
    for name in names:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(f"column {name[:40]!r}: its name is not valid Unicode. Rename it.")
        if "\0" in name:
            raise InputError(f"column {name[:40]!r}: its name contains a zero byte. Rename it.")
        # Polars expands both, and DuckDB the first.
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise InputError(
                f"column {name!r}: engines read this name as a pattern for several columns. Rename "
                "it."
            )


def _from_mapping(columns: Mapping[Any, Any]) -> pl.DataFrame:
    import polars as pl

    _check_names(columns)
    refused = (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError)
    data = {}
    for name, values in columns.items():
        try:
            scalar = isinstance(values, str | bytes) or not isinstance(values, Iterable)
            # A single value is repeated in all rows, as in Polars.
            data[name] = values if scalar else pl.Series(name, _with_one_type(values))
        except refused as error:
            reason = str(error).split("\n", maxsplit=1)[0][:120]
            raise InputError(
                f"column {name!r} cannot be read: {reason}. Give all values one type, and one "
                "value per row."
            ) from error
    try:
        return pl.DataFrame(data)
    except refused as error:
        lengths = ", ".join(f"{n}: {len(v)}" for n, v in data.items() if isinstance(v, pl.Series))
        raise InputError(
            f"columns must have the same length, got lengths {lengths}. Give each column one value "
            "per row."
        ) from error


def _with_one_type(values: Any) -> Any:
    """Convert a list of integers and floats to floats; Polars would refuse it."""
    kinds = {type(v) for v in values} if isinstance(values, list | tuple) else set()
    if {int, float} <= kinds <= {int, float, type(None)}:
        return [None if v is None else float(v) for v in values]
    return values


def is_missing(value: Any) -> bool:
    """Say whether this is None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ArithmeticError):  # NA, a signalling NaN
        return True
    except ValueError:  # an array
        return False


def column_values(frame: nw.DataFrame[Any], name: str) -> NDArray[Any]:
    """Return one column as an array; missing values are NaN in floats, None in all other types."""
    import narwhals as nw

    series = frame.get_column(name)
    beyond_numpy = series.dtype in (nw.Int128, nw.UInt128) or series.dtype == nw.Decimal
    if series.dtype.is_numeric() and not beyond_numpy and series.null_count() == 0:
        return np.asarray(series.to_numpy())
    if series.dtype.is_float():
        return np.asarray(
            [np.nan if is_missing(v) else v for v in _to_list(series, name)], dtype=float
        )
    if series.dtype == nw.String and (shared := _shared_texts(series.to_native())) is not None:
        return shared
    values = np.empty(len(series), dtype=object)
    values[:] = [None if is_missing(v) else v for v in _to_list(series, name)]
    return _without_decimals(values) if series.dtype == nw.Decimal else values


def _shared_texts(native: Any) -> NDArray[Any] | None:
    """Return texts of Polars that often recur, one object for each; None for others."""
    import polars as pl

    if not isinstance(native, pl.Series) or len(native) < _MANY:
        return None
    names = native.drop_nulls().unique()
    if len(names) > len(native) / _SHARED:
        return None
    codes = native.cast(pl.Enum(names)).to_physical().cast(pl.Int64).fill_null(len(names))
    texts: NDArray[Any] = np.array([*names.to_list(), None], dtype=object)
    return np.asarray(texts[codes.to_numpy()])


def holds_numbers(frame: nw.DataFrame[Any]) -> dict[str, bool]:
    """Say which columns hold numbers, or mostly texts of numbers, which may have units."""
    import narwhals as nw

    kinds = {}
    for name, kind in frame.schema.items():
        kinds[name] = kind.is_numeric()
        if kind in (nw.String, nw.Object, nw.Categorical):
            some = [v for v in frame.get_column(name).head(_SAMPLE).to_list() if not is_missing(v)]
            kinds[name] = 2 * sum(map(_is_number, some)) > len(some)
    return kinds


def _is_number(value: Any) -> bool:
    if number_and_unit(value) is not None:
        return True
    try:
        float(value.replace(",", ".") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return False
    except OverflowError:  # an integer of hundreds of digits
        return True
    return True


def key_columns(
    frame: nw.DataFrame[Any], names: Iterable[str], kept: NDArray[np.bool_], source: str
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return the values of each key in these rows, and why other columns cannot be keys.

    A column of lists, or of dates that Python lacks, is left out with a `LeftOutWarning`.
    """
    keys: dict[str, NDArray[Any]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        if frame.get_column(name).dtype.is_nested():
            left_out[name] = LISTS
            continue
        try:
            values = column_values(frame, name)[kept]
        except InputError as error:
            left_out[name] = str(error)
            continue
        if any(kind.__hash__ is None for kind in set(map(type, values.tolist()))):
            left_out[name] = LISTS
        else:
            keys[name] = values
    if left_out:
        prefix = f"{source}: " if source else ""
        reasons = "; ".join(f"{name!r} ({reason})" for name, reason in left_out.items())
        warn_caller(
            f"{prefix}columns left out, because they cannot be keys: {reasons}", LeftOutWarning
        )
    return keys, left_out


def _to_list(series: nw.Series[Any], name: str) -> list[Any]:
    try:
        return list(series.to_list())
    except (ValueError, OverflowError) as error:
        reason = str(error).split("\n", maxsplit=1)[0][:120]
        raise InputError(
            f"the values of {name!r} cannot be read ({reason}). Turn the column into plain text."
        ) from error


def _without_decimals(values: NDArray[Any]) -> NDArray[Any]:
    """Convert decimals to floats, or to texts if floats would make different ones equal."""
    floats = [None if v is None else float(v) for v in values]
    exact = all(f is None or Decimal(repr(f)) == v for f, v in zip(floats, values, strict=True))
    result = np.empty(len(values), dtype=object)
    result[:] = floats if exact else [None if v is None else str(v) for v in values]
    return result


def _in_64_bits(values: Iterable[Any]) -> list[Any]:
    """Convert integers (identifiers) that some libraries cannot hold to texts."""
    column = list(values)
    kinds = set(map(type, column))
    if kinds == {int}:
        large = max(column) >= 2**63 or min(column) <= -(2**63)
    else:
        large = int in kinds and any(isinstance(v, int) and abs(v) >= 2**63 for v in column)
    return [None if v is None else str(v) for v in column] if large else column


def frame_from_columns(columns: Mapping[str, Iterable[Any]], like: Any = None) -> Any:
    """Build a native frame of the same library as ``like`` (Polars without it).

    NaN counts as missing in arrays of floats.
    """
    import polars as pl

    data: dict[str, Any] = {
        name: pl.Series(name, v, nan_to_null=True) if isinstance(v, np.ndarray) else _in_64_bits(v)
        for name, v in columns.items()
    }
    if like is None:
        return pl.DataFrame(data, strict=False)
    import narwhals as nw

    implementation = nw.from_native(like).implementation
    if implementation.is_dask() or implementation.is_pyspark():
        implementation = (
            nw.Implementation.PANDAS
        )  # what users of these engines have for small tables
    elif not (implementation.is_pandas_like() or implementation.is_pyarrow()):
        return pl.DataFrame(data, strict=False)
    plain = {name: v.to_list() if isinstance(v, pl.Series) else v for name, v in data.items()}
    return nw.from_dict(plain, backend=implementation).to_native()


# Codes of groups.


def renumbered(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers from 0, in the order of different integers, none of them below 0.

    Examples
    --------
    >>> renumbered(np.array([7, 3, 7, 0])).tolist()
    [2, 1, 2, 0]
    """
    most = int(numbers.max(initial=0))
    if most > _SPARSE * len(numbers):
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    there = np.zeros(most + 1, dtype=bool)
    there[numbers] = True
    return (np.cumsum(there) - 1)[numbers].astype(np.int64)


def all_differ(*columns: NDArray[np.float64]) -> bool:
    """Say whether no row repeats the numbers of another; quick, but False may be wrong.

    Examples
    --------
    >>> one, two = np.array([1.0, 1.0, 2.0]), np.array([5.0, 6.0, 5.0])
    >>> all_differ(one), all_differ(one, two)
    (False, True)
    """
    # Equal rows get equal numbers, other rows hardly ever. Adding 0.0 makes -0.0 equal to 0.0.
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = mixed * _ODD + (column + 0.0).view(np.uint64)
    mixed.sort()
    return not bool((mixed[1:] == mixed[:-1]).any())


def refined(cell: NDArray[np.int64], code: NDArray[np.int64]) -> NDArray[np.int64]:
    """Split cells by another code; number the cells from 0.

    Examples
    --------
    >>> refined(np.array([0, 0, 1, 1]), np.array([5, 6, 5, 5])).tolist()
    [0, 1, 2, 2]
    """
    return renumbered(cell * (int(code.max(initial=0)) + 1) + code)
