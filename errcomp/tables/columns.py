"""Columns of a user's table turned into arrays, with the row or line numbers that messages name."""

from __future__ import annotations

import re
from calendar import timegm
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import compress
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from errcomp.errors import InputError, describe_rows, offer
from errcomp.results import Dropped
from errcomp.tables.frames import MARK, column_values, is_missing
from errcomp.tables.units import factor, number_and_unit

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import FrameT
    from numpy.typing import ArrayLike, NDArray


#: Measurements that are not positive: raise an error, or leave them out and count them.
Zeros = Literal["raise", "exclude"]
#: Rows without a prediction or a measurement: raise an error, or leave them out and count them.
Missing = Literal["raise", "exclude"]
#: As before; "keep": keep rows without a measurement, which is then NaN, for comparisons.
Gaps = Literal["raise", "exclude", "keep"]

#: Remedy for measurements that are not positive.
NOT_POSITIVE_REMEDY = (
    'Exclude such rows with zeros="exclude" (--zeros exclude; the result gives their number), or '
    "fix the measurement."
)
#: Words for a missing number in text, in lower case, where missing numbers are left out.
MISSING_WORDS = frozenset(("na", "n/a", "nan", "null", "none", "-", "--"))
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_MISSING_REMEDY = "Fill it in, remove the row, or give it a status if the prediction failed."
_EXCLUDE_MISSING = (
    ' To leave such rows out, use missing="exclude" (--missing exclude; the result counts them).'
)
_NOT_FINITE_REMEDY = (
    "Remove such rows, or give them a status (a failed prediction has a status instead of a "
    "number)."
)
#: Values of a status that mean success, in lower case.
STATUS_OK = ("", "ok", "success", "0", "none")
#: The same values in words, for messages.
STATUS_WORDS = "ok, success, 0, none or an empty status"
#: Names of the key that identifies a device, a model, …; the first is errcomp's name.
ROLES: Mapping[str, tuple[str, ...]] = {
    "device": (
        *("device", "gpu", "accelerator", "chip", "hardware", "hw", "platform", "machine"),
        *("device_name", "gpu_name", "device_type", "gpu_type"),
    ),
    "model": (
        *("model", "network", "net", "workload", "app", "application", "benchmark", "bench"),
        *("model_name", "network_name", "app_name", "benchmark_name"),
    ),
    "mode": ("mode",),
    "kernel_class": ("kernel_class", "op_type", "operator_type", "kernel_type"),
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a table came from, for messages.

    Attributes
    ----------
    source : str
        Name of the file or dataset; may be empty.
    rows : ndarray of int, shape (n,)
        Number of each row as the user counts them.
    word : {"row", "line"}
        Whether rows or lines are counted.
    """

    source: str
    rows: NDArray[np.int64]
    word: str

    @classmethod
    def of_table(cls, source: str, n: int, line_offset: int | None) -> Origin:
        """Count n rows from 1; as lines from ``line_offset`` if the table is a text file."""
        word, offset = ("row", 1) if line_offset is None else ("line", line_offset)
        return cls(source, np.arange(n, dtype=np.int64) + offset, word)

    @property
    def prefix(self) -> str:
        """Return the beginning of messages."""
        return f"{self.source}: " if self.source else ""

    def name(self, which: Any) -> str:
        """Name the rows at these positions (or under this mask): the first three and a count."""
        return describe_rows(self.rows[which].tolist(), word=self.word)

    def refuse(self, bad: NDArray[np.bool_], values: NDArray[Any], rule: str, remedy: str) -> None:
        """Raise if there are bad rows: the rule, the first value, where they are, what to do."""
        if bad.any():
            text = f"{rule}, got {values[bad][0]} in {self.name(bad)}. {remedy}"
            raise InputError(f"{self.prefix}{text}")

    def refuse_missing(self, missing: NDArray[np.bool_], name: str, remedy: str) -> None:
        """Raise if a column is missing in rows that need it."""
        if missing.any():
            raise InputError(f"{self.prefix}{name} is missing in {self.name(missing)}. {remedy}")

    def of(self, which: Any) -> Origin:
        """Return the origin of some of the rows."""
        return Origin(self.source, self.rows[which], self.word)


class MissingColumnsError(InputError):
    """A table lacks columns that are needed.

    Attributes
    ----------
    choices : tuple of (str, str)
        Columns of predictions and of measurements that may be meant, if they are few.
    """

    choices: tuple[tuple[str, str], ...] = ()


def rename(
    frame: FrameT,
    columns: Mapping[str, str],
    source: str,
    required: Sequence[str] = ("predicted", "measured"),
    options: str = "--predicted COLUMN --measured COLUMN",
) -> FrameT:
    """Rename the user's columns to the names used here, and require some of them.

    `options` are the options of the command line that name columns.
    """
    import narwhals as nw

    where = f"{source}: " if source else ""
    olds = {**{name: name for name in required}, **columns}
    # Not `frame.columns`: on a lazy frame some versions of Narwhals and Polars warn of its cost.
    there = frame.collect_schema().names()
    missing = [str(old) for old in olds.values() if old not in there]
    if missing:
        theirs = [name for name in there if not name.startswith(MARK)]
        raise MissingColumnsError(
            f"{where}missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}. "
            f"{offer('Columns found', theirs, wanted=missing[0])}. Name your columns with "
            f"{options} (columns={{...}} in Python)."
        )
    for old, uses in Counter(olds.values()).most_common(1):
        if uses > 1:
            both = " and ".join(new for new in olds if olds[new] == old)
            raise InputError(
                f"{where}{both} both name the column {old!r}. Name a different column for each."
            )
    news = {old: new for new, old in olds.items()}
    if all(old == new for old, new in news.items()):
        return frame
    # A column that a renamed one collides with was not asked for: leave it out.
    names = [name for name in there if name in news or name not in olds]
    return frame.select(nw.col(name).alias(news.get(name, name)) for name in names)


def status_ok(frame: nw.DataFrame[Any]) -> NDArray[np.bool_]:
    """Say which predictions did not fail; without a column ``status`` none did."""
    if "status" not in frame.columns:
        return np.ones(len(frame), dtype=bool)
    values = column_values(frame, "status")
    return np.asarray(
        [is_missing(v) or str(v).strip().lower() in STATUS_OK for v in values], dtype=bool
    )


def dropped_rows(reason: str, rows: NDArray[np.int64]) -> tuple[Dropped, ...]:
    """Return the count of rows that are not used, if there are any."""
    return (Dropped(reason, len(rows), tuple(rows[:3].tolist())),) if len(rows) else ()


def succeeded(
    frame: nw.DataFrame[Any], origin: Origin, noun: str, reason: str
) -> NDArray[np.bool_]:
    """Say which rows did not fail, see `status_ok`; raise if all did."""
    ok = status_ok(frame)
    if not ok.any():
        dropped = dropped_rows(reason, origin.rows)
        raise nothing_left(noun, dropped, origin.prefix, failed=failures(frame, ok, origin))
    return ok


def nothing_left(
    noun: str, dropped: Sequence[Dropped], prefix: str, *, failed: str = ""
) -> InputError:
    """Return the error for a table without usable rows: drops, and the text of `failures`."""
    reasons = [f"{drop.n} dropped: {drop.reason}" for drop in dropped]
    reasons += [failed] if failed else []
    because = "; ".join(reasons) or "the table is empty"
    return InputError(f"{prefix}no usable {noun} ({because})")


def failures(frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin) -> str:
    """Name the rows whose status does not mean success; empty if there are none."""
    if ok.all():
        return ""
    status = str(column_values(frame, "status")[~ok][0])
    return f"{origin.name(~ok)} with status {status!r}; only {STATUS_WORDS} mean success"


def without_units(
    frame: nw.DataFrame[Any], names: Sequence[str], unit: str | None
) -> nw.DataFrame[Any]:
    """Convert columns of numbers with units (``12 ms``) to one unit, and name it in ``unit``.

    The unit is that of a column ``unit``, the given one, or the first that occurs. Columns in which
    a number has no unit, or an unknown one, stay as they are.

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> frame = nw.from_native(pl.DataFrame({"measured": ["12 ms", "1.5s"]}))
    >>> without_units(frame, ["measured"], None).rows()
    [(12.0, 'ms'), (1500.0, 'ms')]
    """
    import narwhals as nw

    stated = [] if unit is None else [unit]
    if "unit" in frame.columns:
        given = (v for v in column_values(frame, "unit").tolist() if isinstance(v, str))
        stated = list(dict.fromkeys(given))
    for name in names:
        if len(stated) > 1 or name not in frame.columns or frame[name].dtype.is_numeric():
            continue
        values = column_values(frame, name).tolist()
        parts = [number_and_unit(value) for value in values]
        blank = [
            value.strip().lower() in ("", *MISSING_WORDS)
            if isinstance(value, str)
            else is_missing(value)
            for value in values
        ]
        units = list(dict.fromkeys(part[1] for part in parts if part is not None))
        if not units or any(part is None and not b for part, b in zip(parts, blank, strict=True)):
            continue
        to = stated[0] if stated else units[0]
        try:
            scales = {unit: factor(unit, to) for unit in units}
        except InputError:
            continue
        stated = [to]
        numbers = [None if part is None else part[0] * scales[part[1]] for part in parts]
        column = nw.new_series(name, numbers, nw.Float64, backend=frame.implementation)
        frame = frame.with_columns(column, nw.lit(to).alias("unit"))
    return frame


def two_numbers(
    frame: nw.DataFrame[Any], used: NDArray[np.bool_], origin: Origin, missing: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return predictions, measurements, and the rows in use where one of the two is missing.

    With ``missing="exclude"``, a number is missing where it is null, NaN, empty or a word such as
    "n/a"; otherwise such a row is an error. With "keep" only the predictions must be there.
    """
    check_choice("missing", missing, "keep")
    exclude = missing != "raise"
    words = MISSING_WORDS if exclude else frozenset[str]()
    p, m = (
        numeric(frame, name, used, origin, blank=exclude, words=words, also=_EXCLUDE_MISSING)
        for name in ("predicted", "measured")
    )
    lacking = np.isnan(p) | (np.isnan(m) & (missing == "exclude"))
    absent = used & lacking if exclude else np.zeros(len(p), dtype=bool)
    return p, m, absent


def texts(
    frame: nw.DataFrame[Any],
    name: str,
    used: NDArray[np.bool_],
    origin: Origin,
    *,
    blank: bool = False,
) -> NDArray[Any]:
    """Return a column of names as an array of text, one object per name.

    A missing name is an error in rows that are used, unless it may be ``blank``; elsewhere it is
    ``""``.
    """
    values = column_values(frame, name).tolist()
    shared: dict[str, str] = {}
    known: dict[Any, str] = {}
    try:
        for value in dict.fromkeys(values):
            text = "" if is_missing(value) else str(value)
            text = text if text.strip() else ""
            known[value] = shared.setdefault(text, text)
    except TypeError as error:
        raise InputError(
            f"{origin.prefix}{name} must be text, but its values are lists or similar. Put each "
            "element in a column of its own."
        ) from error
    names = np.empty(len(values), dtype=object)
    names[:] = [known[value] for value in values]
    if not blank:
        origin.refuse_missing((names == "") & used, name, "Fill it in.")
    return names


def numeric(
    frame: nw.DataFrame[Any],
    name: str,
    used: NDArray[np.bool_],
    origin: Origin,
    *,
    blank: bool = False,
    words: Container[str] = (),
    also: str = "",
) -> NDArray[np.float64]:
    """Return a column as float64; rows that are not used may hold anything.

    A missing number is an error in rows that are used, unless it may be ``blank``; it then is NaN.
    Text in ``words`` (lower case) is a missing number as well. ``also`` is a further remedy.
    """
    values = column_values(frame, name)
    if values.dtype.kind in "fiu":
        numbers = values.astype(np.float64)
        absent = np.asarray(frame[name].is_null().to_list(), dtype=bool) & used
    else:
        numbers, absent = _from_objects(values, name, used, origin, words, also)
    if not blank:
        origin.refuse_missing(absent, name, _MISSING_REMEDY + also)
    return numbers


def _from_objects(
    values: NDArray[Any],
    name: str,
    used: NDArray[np.bool_],
    origin: Origin,
    words: Container[str] = (),
    also: str = "",
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    numbers = np.full(len(values), np.nan)
    absent = np.zeros(len(values), dtype=bool)
    bad = []
    for i in np.flatnonzero(used):
        value = values[i]
        text = value.strip().lower() if isinstance(value, str) else None
        absent[i] = value is None or text == "" or text in words
        if absent[i]:
            continue
        try:
            numbers[i] = _to_float(value, text=True)
        except (TypeError, ValueError, OverflowError):
            bad.append(i)
    if bad:
        raise InputError(
            f"{origin.prefix}{name} must be a number, got {_short(values[bad[0]])} in "
            f"{origin.name(bad)}. {_remedy(values[bad[0]], also)}"
        )
    return numbers, absent


def _remedy(value: Any, also: str) -> str:
    """Return what to do about a value that is not a number."""
    text = value.strip() if isinstance(value, str) else ""
    if _DECIMAL_COMMA.fullmatch(text):
        return (
            "If this is a decimal comma, add --decimal , (errcomp.read(path, decimal=',') in "
            "Python). Write thousands without a separator."
        )
    if number_and_unit(text):
        return "Give all numbers of the column a unit, or none."
    known = "Fix the value, or give the row a status if the prediction failed."
    return known + (also if text.lower() in MISSING_WORDS else "")


def _to_float(value: Any, *, text: bool) -> float:
    """Convert a number, or with ``text`` its spelling in a file.

    Raises
    ------
    TypeError, ValueError, OverflowError
        It is not a number, although ``float`` may accept it: True, b"1", a complex number, "1_000"
        or digits of other scripts.
    """
    if isinstance(value, str):
        if not text or "_" in value or not value.isascii():
            raise ValueError(value)
    elif isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError(value)
    return float(value)


def as_float(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as float64, and refuse other types that NumPy would convert."""
    if np.ma.is_masked(values):
        raise InputError(
            f"{name} has masked values: remove these rows, or leave the values empty and give the "
            "reason in a column 'status'"
        )
    try:
        raw = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be one-dimensional: {error}") from error
    # NumPy would silently convert numeric text, complex numbers and dates.
    if raw.dtype.kind not in "biufO":
        example = f" such as {raw.ravel().tolist()[0]!r}" if raw.size else ""
        raise InputError(f"{name} must be numbers, got {raw.dtype} values{example}")
    if raw.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {raw.shape}")
    if raw.dtype.kind != "O":
        return raw.astype(np.float64)
    array = np.empty(len(raw))
    for i, value in enumerate(raw):
        try:
            array[i] = _to_float(value, text=False)
        except (TypeError, ValueError, OverflowError) as error:
            culprit = f"{type(value).__name__} in row {i + 1}"
            raise InputError(f"{name} must be numbers below 1.8e308, got {culprit}") from error
    return array


def check_choice(name: str, value: str, *others: str) -> None:
    """Raise unless the value is a known treatment of rows that cannot be used."""
    if value not in ("raise", "exclude", *others):
        raise InputError(f'{name} must be "raise" or "exclude", got {value!r}')


def check_values(
    predicted: NDArray[np.float64], measured: NDArray[np.float64], *, zeros: Zeros, origin: Origin
) -> NDArray[np.bool_]:
    """Raise on values that cannot be used; return which rows to keep."""
    check_choice("zeros", zeros)
    for name, values in (("predicted", predicted), ("measured", measured)):
        remedy = _NOT_FINITE_REMEDY + (_EXCLUDE_MISSING if np.isnan(values).any() else "")
        origin.refuse(~np.isfinite(values), values, f"{name} must be finite", remedy)
    bad = measured <= 0
    if zeros == "raise":
        origin.refuse(bad, measured, "measured must be positive", NOT_POSITIVE_REMEDY)
    return ~bad


def _short(value: Any) -> str:
    try:
        shown = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return f"a {type(value).__name__} of thousands of digits"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def one_unit(
    frame: nw.DataFrame[Any], unit: str | None, used: NDArray[np.bool_], origin: Origin
) -> str | None:
    """Return the unit of all rows in use; raise if they have several."""
    if "unit" not in frame.columns:
        return unit
    cells = column_values(frame, "unit")[used]
    values = ["" if is_missing(v) else str(v).strip() for v in cells]
    expected = unit if unit is not None else values[0]
    other = np.asarray([v != expected for v in values], dtype=bool)
    if other.any():
        other_unit = values[int(np.argmax(other))]
        first, second = (repr(v) if v else "no unit" for v in (expected, other_unit))
        raise InputError(
            f"{origin.prefix}mixed units: {first} and {second} "
            f"(the second in {origin.of(used).name(other)}). Convert all rows to one unit first."
        )
    return expected or None


# Dates, converted to UTC.

_NAT = np.iinfo(np.int64).min


def dates_of(
    frame: nw.DataFrame[Any], name: str, used: NDArray[np.bool_], origin: Origin
) -> NDArray[np.datetime64]:
    """Return a column of dates or timestamps as datetime64[s] in UTC, NaT where missing.

    Timestamps with an offset are converted to UTC; those without are taken as UTC. Rows that
    are not used may hold anything, and are NaT.

    Raises
    ------
    InputError
        A value is neither a date nor ISO 8601, or only some of them have an offset.
    """
    dates = np.full(len(frame), "NaT", dtype="M8[s]")
    quick = _of_polars(frame.to_native(), name)
    if quick is not None:
        dates[used] = quick[used]
        return dates
    values = list(compress(frame[name].to_list(), used))
    try:
        known = dict.fromkeys(values)
    except TypeError:
        _refuse(name, values, [not isinstance(v, Hashable) for v in values], origin.of(used))
    stamps = {value: _stamp(value) for value in known}
    bad = {value for value, stamp in stamps.items() if stamp is None}
    if bad:
        _refuse(name, values, [v in bad for v in values], origin.of(used))
    aware = {value for value, stamp in stamps.items() if stamp is not None and stamp[1]}
    naive = {v for v, stamp in stamps.items() if stamp is not None and stamp[1] is False}
    if aware and naive:
        first = next(v for v in values if v in naive)
        without = np.asarray([v in naive for v in values], dtype=bool)
        raise InputError(
            f"{origin.prefix}{name} mixes times with and without a time zone: {str(first)!r} in "
            f"{origin.of(used).name(without)} has no time zone. Give all times an offset "
            "(2026-11-20T09:30:00Z), or none of them."
        )
    seconds = {value: stamp[0] for value, stamp in stamps.items() if stamp is not None}
    dates[used] = np.fromiter(map(seconds.__getitem__, values), np.int64, len(values)).view("M8[s]")
    return dates


def _of_polars(native: Any, name: str) -> NDArray[np.datetime64] | None:
    """Read a typed column of Polars without an object per value."""
    import polars as pl

    if not isinstance(native, pl.DataFrame):
        return None
    column = native[name]
    if column.dtype == pl.Datetime:
        if getattr(column.dtype, "time_zone", None) is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif column.dtype != pl.Date:
        return None
    return column.to_numpy().astype("M8[s]")


def _stamp(value: Any) -> tuple[int, bool | None] | None:
    """Return seconds since 1970 in UTC and whether there is an offset; None if it is not a date."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return _NAT, None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime):
        # A time without an offset is never taken as the local time of this machine.
        return timegm(value.utctimetuple()), value.utcoffset() is not None
    if isinstance(value, date):
        return timegm(value.timetuple()), False
    return None


def _refuse(name: str, values: list[Any], which: list[bool], origin: Origin) -> NoReturn:
    bad = np.asarray(which, dtype=bool)
    raise InputError(
        f"{origin.prefix}{name} must be a date or a timestamp (ISO 8601: 2026-11-20 or "
        f"2026-11-20T09:30:00Z), got {str(values[int(np.argmax(bad))])[:60]!r} in "
        f"{origin.name(bad)}. Use one of these formats."
    )


# What a key is for, by the names that people give it.


def role_of(role: str, keys: Collection[str]) -> str | None:
    """Return the key that has a role (``"device"``, ``"model"``, …); None if no key has it.

    A key of that very name has it, and any name is a role of its own.

    Of several, the one whose name stands first in `ROLES`. Case and separators do not count.

    Examples
    --------
    >>> role_of("device", ["app", "GPU"]), role_of("model", ["app"]), role_of("mode", ["app"])
    ('GPU', 'app', None)
    """
    if role in keys or role not in ROLES:
        return role if role in keys else None
    names: dict[str, str] = {}
    for key in keys:
        names.setdefault("_".join(words_of(key)), key)
    return next((names[name] for name in ROLES[role] if name in names), None)


def with_roles(roles: Iterable[str], keys: Collection[str]) -> list[str]:
    """Return the keys that have these roles, in the order of the roles.

    Examples
    --------
    >>> with_roles(["model", "device", "mode"], ["gpu", "mode"])
    ['gpu', 'mode']
    """
    return [key for role in roles if (key := role_of(role, keys)) is not None]


def words_of(name: str) -> list[str]:
    """Split a name into its words, in lower case.

    Examples
    --------
    >>> words_of("simCycles_v2")
    ['sim', 'cycles', 'v', '2']
    """
    return [word.lower() for word in _WORD.findall(name)]
