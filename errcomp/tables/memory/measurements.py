"""Measurements: rows of measured values, the keys of their configurations, and other columns.

Columns are codes (integers) here, so that tables of millions of rows fit and group quickly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError, LeftOutWarning, describe_rows, offer, warn_caller
from errcomp.results import Dropped
from errcomp.tables.columns import MISSING_WORDS, STATUS_OK, words_of
from errcomp.tables.frames import LISTS, is_missing, renumbered, to_eager

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Words of a name that stand for a row, a repetition or a moment: never part of a configuration.
_REPEATS = frozenset(
    (
        *("repeat", "repetition", "repeats", "trial", "iteration", "attempt", "sample"),
        *("order", "index", "row", "process", "pass", "round", "replicate"),
    )
)
_TIMES = frozenset(("date", "day", "time", "timestamp", "datetime", "started", "submitted"))
#: Words of a name that stand for an identifier, if most of its values occur once.
_IDS = frozenset(
    ("id", "ids", "uuid", "guid", "hash", "sha", "url", "number", "no", "nr", "unnamed")
)
#: Words of a name that stand for a quantity, not for a setting.
_QUANTITIES = frozenset(
    (
        *("predicted", "prediction", "simulated", "estimated", "measured", "latency", "runtime"),
        *("duration", "throughput", "ttft", "tpot", "itl", "e2e", "spread", "std", "stdev", "sd"),
        *("cv", "var", "error", "mape", "ape", "mean", "median", "avg", "average", "min", "max"),
        *("p50", "p75", "p90", "p95", "p99", "p999", "elapsed", "energy", "power", "speedup"),
    )
)
#: A text is taken apart where at least this share of its values holds ``key=value``.
_WITH_PARTS = 0.5
#: Identifiers, and quantities with decimals, have more distinct values than this share of rows.
_MEASURED = 0.5
#: Settings with decimals have at most this many values.
_SETTINGS = 100
#: The years 2001 and 2065, in seconds since 1970.
_CENTURY = (1e9, 3e9)
MISSING = "the measurement is missing"
FAILED = "the run failed (status)"


@dataclass(frozen=True, slots=True)
class Part:
    """A column beside the keys: a part of a text, a date, a repetition, an identifier.

    Attributes
    ----------
    name : str
        Of a part of a text: its column, a colon and its key.
    kind : {"part", "time", "repeat", "id", "text"}
    codes : ndarray of int, shape (n,)
        Equal where the values are equal; in the order of the values.
    values : list
        The value of each code.
    """

    name: str
    kind: str
    codes: Ints
    values: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Measurements:
    """A table of measurements.

    Attributes
    ----------
    source : str
        Name of the table in messages.
    measured : tuple of str
        Columns of measured values; the first is the one that is checked.
    values : ndarray, shape (n, columns)
        NaN where a value is missing.
    keys : dict of str to ndarray of int, shape (n,)
        Codes of the columns that identify a configuration.
    parts : tuple of Part
        Columns beside the keys, by which rows with equal keys may still differ.
    others : tuple of str
        Columns of quantities that are neither measured here nor keys.
    rows : ndarray of int, shape (n,)
        Number of each row (or line) as the user counts them.
    dropped : tuple of Dropped
    unit : str or None
    frame : polars.DataFrame
        The rows in use.

    Examples
    --------
    >>> from errcomp.tables.memory.measurements import measurements_of
    >>> table = measurements_of(
    ...     {"device": ["A", "A", "B"], "ms": [1.0, 1.1, 2.0], "note": ["c=1; d=x", "c=2", "c=1"]},
    ...     measured="ms")
    >>> list(table.keys), [part.name for part in table.parts], table.group.tolist()
    (['device'], ['note:c', 'note:d'], [0, 0, 1])
    """

    source: str
    measured: tuple[str, ...]
    values: Floats
    keys: Mapping[str, Ints]
    parts: tuple[Part, ...]
    others: tuple[str, ...]
    rows: Ints
    dropped: tuple[Dropped, ...]
    unit: str | None
    frame: pl.DataFrame = field(repr=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @cached_property
    def group(self) -> Ints:
        """Number of the configuration of each row, from 0."""
        return numbered(list(self.keys.values()), self.n)

    def key(self, row: int) -> dict[str, Any]:
        """Return the values of the keys in a row; those without a value are left out."""
        found = {name: self.frame[name][int(row)] for name in self.keys}
        return {name: value for name, value in found.items() if value is not None}


def numbered(columns: Sequence[Ints], n: int) -> Ints:
    """Return a number for each distinct combination, from 0, in the order of the codes.

    Examples
    --------
    >>> numbered([np.array([0, 1, 0]), np.array([2, 2, 2])], 3).tolist()
    [0, 1, 0]
    """
    result = np.zeros(n, dtype=np.int64)
    most = 1
    for codes in columns:
        width = int(codes.max(initial=0)) + 1
        if most * width > 2**62:
            result = renumbered(result)
            most = int(result.max(initial=0)) + 1
        result = result * width + codes
        most *= width
    return renumbered(result)


def measurements_of(
    data: Any,
    *,
    measured: str | Sequence[str],
    keys: Sequence[str] | None = None,
    unit: str | None = None,
    source: str = "",
    line_offset: int | None = None,
) -> Measurements:
    """Read a table of measurements.

    Parameters
    ----------
    data : dataframe or mapping of columns
    measured : str or sequence of str
        Columns of measured values.
    keys : sequence of str, optional
        Columns that identify a configuration. By default every column but: the measured ones,
        other quantities (by their name, or numbers with decimals that hardly repeat), identifiers,
        dates and repetitions (by their name), and texts of ``key=value`` parts, which are taken
        apart.
    unit : str, optional
    source : str
    line_offset : int, optional
        Row i (from 0) is on line ``i + line_offset``.

    Raises
    ------
    InputError
        A column is missing or holds lists, a value is not a number, or no row has a measurement.

    Warns
    -----
    LeftOutWarning
        Columns of lists were left out.

    Examples
    --------
    >>> measurements_of({"batch": [1, 1, 2], "ms": [2.0, None, 3.5]}, measured="ms").dropped
    (Dropped(reason='the measurement is missing', n=1, rows=(2,)),)
    """
    import polars as pl

    frame = in_polars(to_eager(data))
    names = tuple(dict.fromkeys((measured,) if isinstance(measured, str) else measured))
    prefix = f"{source}: " if source else ""
    for name in (*names, *(keys or ())):
        if name not in frame.columns:
            raise InputError(
                f"{prefix}no column {name!r}. {offer('Columns', frame.columns, wanted=name)}"
            )
    for name in (*names, *(keys or ())):
        if frame[name].dtype.is_nested():
            raise InputError(f"{prefix}{name}: {LISTS}. Put each element in a column of its own.")
    if twice := [name for name in keys or () if name in names]:
        raise InputError(
            f"{prefix}column {twice[0]!r} is given as the measured column and as a key. Give it "
            "once."
        )
    rows = np.arange(frame.height, dtype=np.int64) + (1 if line_offset is None else line_offset)
    failed = _failed(frame)
    word = "row" if line_offset is None else "line"
    values = np.column_stack(
        [_numbers(frame, name, ~failed, rows, word=word, prefix=prefix) for name in names]
    )
    missing = ~failed & np.isnan(values[:, 0])
    kept = ~failed & ~missing
    dropped = tuple(
        Dropped(reason, int(which.sum()), tuple(rows[which][:3].tolist()))
        for reason, which in ((FAILED, failed), (MISSING, missing))
        if which.any()
    )
    if not kept.any():
        raise InputError(f"{prefix}no row has a value of {names[0]}. Name another column.")
    frame = frame.filter(pl.Series(kept))
    if lists := [name for name in frame.columns if frame[name].dtype.is_nested()]:
        warn_caller(f"{prefix}columns left out: {', '.join(lists)} ({LISTS})", LeftOutWarning)
        frame = frame.drop(lists)
    chosen, parts, others = _sorted_out(frame, names, keys)
    return Measurements(
        source,
        names,
        values[kept],
        {name: _codes(frame[name]) for name in chosen},
        tuple(parts),
        tuple(others),
        rows[kept],
        dropped,
        unit if unit is not None else _unit(frame),
        frame,
    )


def in_polars(frame: nw.DataFrame[Any]) -> pl.DataFrame:
    """Return a frame of any library in Polars; a column of several types becomes text."""
    import polars as pl

    try:
        return frame.to_polars()
    except (TypeError, ValueError, OverflowError, ImportError):
        pass  # a column of several types, or of a library without PyArrow
    columns = []
    for name in frame.columns:
        values = [None if is_missing(value) else value for value in frame[name].to_list()]
        try:
            columns.append(pl.Series(name, values))
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            texts = [None if value is None else str(value) for value in values]
            columns.append(pl.Series(name, texts))
    return pl.DataFrame(columns)


def _numbers(
    frame: pl.DataFrame, name: str, used: NDArray[np.bool_], rows: Ints, *, word: str, prefix: str
) -> Floats:
    """Return a column of numbers, NaN where one is missing; infinite values and zeros stay.

    In a row that is not used, anything may stand.
    """
    import polars as pl

    column = frame[name]
    if column.dtype.is_numeric():
        return column.cast(pl.Float64).fill_null(math.nan).to_numpy().astype(np.float64)
    text = column.cast(pl.String, strict=False).str.strip_chars()
    absent = text.is_null() | text.str.to_lowercase().is_in(["", *MISSING_WORDS])
    numbers = text.cast(pl.Float64, strict=False)
    bad = used & (numbers.is_null() & ~absent).to_numpy()
    if bad.any():
        raise InputError(
            f"{prefix}{name} must be a number, got {text.filter(pl.Series(bad))[0]!r} in "
            f"{describe_rows(rows[bad].tolist(), word=word)}. Name a column of numbers, or fix "
            "the value."
        )
    return numbers.fill_null(math.nan).to_numpy().astype(np.float64)


def _failed(frame: pl.DataFrame) -> NDArray[np.bool_]:
    import polars as pl

    if "status" not in frame.columns:
        return np.zeros(frame.height, dtype=bool)
    status = frame["status"].cast(pl.String, strict=False).fill_null("").str.strip_chars()
    return ~status.str.to_lowercase().is_in(list(STATUS_OK)).to_numpy()


def _unit(frame: pl.DataFrame) -> str | None:
    if "unit" not in frame.columns:
        return None
    units = frame["unit"].drop_nulls().unique().to_list()
    return str(units[0]) if len(units) == 1 else None


def _codes(column: pl.Series) -> Ints:
    """Return a number for each value, in their order, from 0; a missing value is 0."""
    return column.rank("dense").fill_null(0).to_numpy().astype(np.int64)


# Which columns are keys.


def _sorted_out(
    frame: pl.DataFrame, measured: Sequence[str], keys: Sequence[str] | None
) -> tuple[list[str], list[Part], list[str]]:
    """Return the keys, other columns and the parts of texts, and the names of other quantities."""
    chosen: list[str] = []
    parts: list[Part] = []
    others: list[str] = []
    for name in [name for name in frame.columns if name not in (*measured, "status", "unit")]:
        if keys is not None and name in keys:
            continue
        column = frame[name]
        if column.null_count() == len(column):
            continue
        kind = _kind(name, column)
        if kind == "parts":
            parts += list(_taken_apart(name, column))
        elif kind == "quantity":
            others.append(name)
        elif kind == "key" and keys is None:
            chosen.append(name)
        else:
            shown = "text" if kind == "key" else kind
            parts.append(Part(name, shown, _codes(column), _values(column)))
    return list(keys) if keys is not None else chosen, parts, others


def _values(column: pl.Series) -> list[Any]:
    """Return the value of each code of a column; None stands first where a value is missing."""
    known = column.drop_nulls().unique().sort().to_list()
    return [None, *known]  # ranks begin with 1


def _kind(name: str, column: pl.Series) -> str:
    """Say what a column is: a key, parts, a time, a repeat, an identifier or a quantity."""
    import polars as pl

    words = set(words_of(name))
    present = column.drop_nulls()
    distinct = present.n_unique() / max(len(present), 1)
    if column.dtype.is_temporal() or (words & _TIMES and column.dtype == pl.String):
        return "time"
    if words & _REPEATS:
        return "repeat"
    if words & _IDS and distinct > _MEASURED and len(present) > 2:
        return "id"
    if column.dtype == pl.String:
        with_parts = present.str.contains("=", literal=True).sum()
        return "parts" if with_parts >= _WITH_PARTS * len(present) else "key"
    if not column.dtype.is_numeric():
        return "key"
    if words & _QUANTITIES or _compact(name) & _QUANTITIES:
        return "quantity"
    if _since_1970(present):
        return "time"
    decimals = column.dtype.is_float() and not bool((present == present.round(0)).all())
    many = distinct > _MEASURED or present.n_unique() > _SETTINGS
    return "quantity" if decimals and many and len(present) > 2 else "key"


def _since_1970(numbers: pl.Series) -> bool:
    """Say whether numbers are times of this century, in seconds or milliseconds since 1970."""
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    return any(unit * _CENTURY[0] < low <= high < unit * _CENTURY[1] for unit in (1.0, 1e3))


def _compact(name: str) -> set[str]:
    """Return words with the digits that follow them: p99 of ``ttft_p99``."""
    words = words_of(name)
    return {a + b for a, b in pairwise(words) if b.isdigit()}


def _taken_apart(name: str, column: pl.Series) -> Iterator[Part]:
    """Yield the parts of a text: one for each key, and one for what has none."""
    texts = column.unique(maintain_order=True).to_list()
    place = {text: i for i, text in enumerate(texts)}
    which = np.array([place[text] for text in column.to_list()], dtype=np.int64)
    found = [_parts_of(text) for text in texts]
    for key in dict.fromkeys(key for parts in found for key in parts):
        values = [parts.get(key) for parts in found]
        known = sorted({value for value in values if value is not None}, key=_by_number)
        code: dict[str | None, int] = {value: i + 1 for i, value in enumerate(known)}
        code[None] = 0
        label = f"{name}:{key}" if key else f"{name}:(rest)"
        kind = "time" if set(words_of(key)) & {*_TIMES, "measured"} else "part"
        codes = np.array([code[value] for value in values], dtype=np.int64)[which]
        yield Part(label, kind, codes, [None, *known])


def _parts_of(text: str | None) -> dict[str, str]:
    """Take ``a=1; b=2; rest`` apart."""
    parts: dict[str, str] = {}
    for piece in (text or "").split(";"):
        key, mark, value = piece.strip().partition("=")
        if not mark:
            key, value = "", key
        if value:
            parts[key] = f"{parts[key]}; {value}" if key in parts else value.strip()
    return parts


def _by_number(text: str) -> tuple[float, str]:
    try:
        return float(text), text
    except ValueError:
        return math.inf, text


def once_for_each_tool(table: Measurements) -> NDArray[np.bool_]:
    """Say which rows state a measurement for the first time, where it is predicted several times.

    A table of pairs repeats each measurement for every tool, and may repeat it for every level at
    which it is predicted; these are not copies.
    """
    names = [name for name in ("tool", "level") if name in table.keys]
    if not names:
        return np.ones(table.n, dtype=bool)
    way = numbered([table.keys[name] for name in names], table.n)
    value = np.unique(np.nan_to_num(table.values[:, 0]), return_inverse=True)[1]
    first = np.unique(value, return_index=True)[1]
    return np.asarray(way == way[first][value])
