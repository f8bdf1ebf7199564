"""The columns of a history as codes and arrays, and the order of its versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from errcomp.errors import InputError, describe_names, offer
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
    frame: nw.DataFrame[Any], ok: NDArray[np.bool_], origin: Origin
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the version of each row and their names, in order of appearance.

    Only versions of rows in use get a name; other rows may have any code.
    """
    for value in frame["version"].drop_nulls().head(1).to_list():
        if isinstance(value, float) and not is_missing(value):
            raise InputError(
                f"{origin.prefix}version must be text, got the number {value}: as numbers, 1.1 and "
                "1.10 would be the same version. Read the column as text."
            )
    codes, values = codes_of(frame, ["version"], origin)
    names = values["version"].to_list()
    if None in names:
        missing = ok & (codes == names.index(None))
        origin.refuse_missing(missing, "version", "Fill it in, or remove the row.")
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


OrderBy = Literal["order", "released", "number", "date", "single"]

#: Release, pre-release, post-release, development release, local label.
_NUMBER = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_n>\d*))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*)|-(?P<implicit>\d+))?"
    r"(?:[-_.]?(?P<dev>dev|nightly)[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
#: A date such as 20260131; longer or other whole numbers are as likely to be hashes of commits.
_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])")
_LONGEST_WHOLE = 6

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class VersionOrder:
    """Versions, oldest first, and what they were ordered by.

    Attributes
    ----------
    names : tuple of str
    by : {"order", "released", "number", "date", "single"}
        The given order, release dates, version numbers, dates of the first validation, or a single
        version.
    notes : tuple of str
        Remarks, e.g. that numbers and release dates disagree.
    """

    names: tuple[str, ...]
    by: OrderBy
    notes: tuple[str, ...]


#: Not a number of a version: Python does not convert thousands of digits.
_LONG = re.compile(r"\d{19}")


def version_number(name: str) -> _Key | None:
    """Return the sort key of a version number; None if the name is not a version number.

    The order is that of PEP 440: 1.9 < 1.10, 2.7.0.dev1 < 2.7.0rc1 < 2.7.0 < 2.7.0.post1, and 1.0
    equals 1.0.0. A whole number of more than six digits counts as a hash unless it is a date.

    Parameters
    ----------
    name : str

    Returns
    -------
    tuple or None

    Examples
    --------
    >>> sorted(["1.10", "v1.9", "1.10rc1", "25.09"], key=version_number)
    ['v1.9', '1.10rc1', '1.10', '25.09']
    >>> version_number("3012eb184330") is None
    True
    """
    match = _NUMBER.fullmatch(name.strip().lower())
    if match is None or _looks_like_a_hash(match) or _LONG.search(name):
        return None
    release = tuple(map(int, match["release"].split(".")))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    pre, post, dev = match["pre"], match["post"] or match["implicit"], match["dev"]
    # A development release without a stage comes before all stages, a final release after them.
    first = -1 if dev and not pre and not post else 3
    stage = (_STAGES[pre], int(match["pre_n"] or 0)) if pre else (first, 0)
    after = int(match["post_n"] or match["implicit"] or 0) if post else -1
    before = (0, int(match["dev_n"] or 0)) if dev else (1, 0)
    parts = re.split(r"[-_.]", match["local"]) if match["local"] else []
    local = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts)
    return release, stage, after, before, local


def _looks_like_a_hash(match: re.Match[str]) -> bool:
    whole = match["release"]
    if "." in whole:
        return False
    # "3723b12" is a hash rather than the twelfth beta of release 3723.
    return match.end("release") < len(match.string) or not (
        len(whole) <= _LONGEST_WHOLE or _DATE.fullmatch(whole)
    )


def order_versions(
    names: Sequence[str],
    *,
    order: Sequence[str] | None,
    released: NDArray[np.datetime64],
    first: NDArray[np.datetime64],
    source: str = "",
) -> VersionOrder:
    """Put versions in order.

    Ordered by the first of these that applies: the given order; release dates, if every version
    has one; numbers, if every name is a version number; dates of the first validation, if every
    version has one. Versions with the same date are ordered by number, then by the other date.

    Parameters
    ----------
    names : sequence of str, shape (m,)
        Different names.
    order : sequence of str, optional
        Names, oldest first. Names that do not occur are left out, with a note.
    released, first : ndarray of datetime64[s], shape (m,)
        When each was released and first validated; NaT where unknown.
    source : str
        Name of the table in messages.

    Returns
    -------
    VersionOrder

    Raises
    ------
    InputError
        The given order lacks a version or repeats one, or nothing orders all versions; the message
        names those that could not be ordered.

    Notes
    -----
    Misleads if the numbers are from several products, or from parallel branches: a patch of an old
    branch is newer than the first release of the next branch. Release dates order them correctly.

    Examples
    --------
    >>> unknown = np.full(3, "NaT", "M8[s]")
    >>> order_versions(["1.10", "1.9", "1.9rc1"], order=None, released=unknown, first=unknown).names
    ('1.9rc1', '1.9', '1.10')
    """
    prefix = f"{source}: " if source else ""
    known = tuple(names)
    if order is not None:
        return _as_given(known, [str(name) for name in order], released, prefix)
    if len(known) == 1:
        return VersionOrder(known, "single", ())
    numbers = [version_number(name) for name in known]
    ordered, why = _by_date(known, released, first, numbers, "release date")
    if ordered is not None:
        notes = _disagreement(known, released, numbers, "released")
        return VersionOrder(ordered, "released", notes)
    reasons = [why]
    ordered, why = _by_number(known, numbers)
    if ordered is not None:
        return VersionOrder(ordered, "number", _disagreement(known, released, numbers, "number"))
    reasons.append(why)
    ordered, why = _by_date(known, first, released, numbers, "date of validation")
    if ordered is not None:
        return VersionOrder(ordered, "date", ())
    raise InputError(
        f"{prefix}the versions cannot be ordered: {'; '.join([*reasons, why])}. List the versions, "
        "oldest first, with order=[...] (--order A,B,C), or add their release dates in a column "
        "'released'."
    )


def _as_given(
    names: tuple[str, ...], order: list[str], released: NDArray[np.datetime64], prefix: str
) -> VersionOrder:
    twice = [name for i, name in enumerate(order) if name in set(order[:i])]
    if twice:
        raise InputError(f"{prefix}order names {twice[0]!r} twice. Name every version once.")
    missing = [name for name in names if name not in set(order)]
    if missing:
        raise InputError(
            f"{prefix}order lacks {len(missing)} of {len(names)} versions: "
            f"{describe_names(missing)}. Name all versions, oldest first."
        )
    dates = dict(zip(names, released, strict=True))
    ordered = tuple(name for name in order if name in dates)
    notes = []
    if left := len(order) - len(ordered):
        notes.append(
            f"{left} version{'s were' if left > 1 else ' was'} named in the given order "
            "but never validated: left out"
        )
    if pair := _inversion(ordered, np.asarray([dates[name] for name in ordered], dtype="M8[s]")):
        notes.append(f"the given order differs from the release dates: {pair}")
    return VersionOrder(ordered, "order", tuple(notes))


def _by_date(
    names: tuple[str, ...],
    dates: NDArray[np.datetime64],
    others: NDArray[np.datetime64],
    numbers: Sequence[_Key | None],
    noun: str,
) -> tuple[tuple[str, ...] | None, str]:
    """Order by date, and equal dates by number or by the other date; or say why not."""
    without = [name for name, date in zip(names, dates, strict=True) if np.isnat(date)]
    if without:
        return None, f"no {noun}: {_first_few(without)}"
    order: list[str] = []
    for date in np.unique(dates):
        same = np.flatnonzero(dates == date).tolist()
        if len(same) == 1:
            order.append(names[same[0]])
            continue
        keys: list[object] = [numbers[i] for i in same]
        if None in keys or len(set(keys)) < len(keys):
            keys = [others[i] for i in same if not np.isnat(others[i])]
        if len(set(keys)) < len(same):
            return None, f"{_first_few([names[i] for i in same])} share one {noun}, {_day(date)}"
        rank = sorted(range(len(same)), key=keys.__getitem__)  # type: ignore[arg-type]
        order += [names[same[i]] for i in rank]
    return tuple(order), ""


def _by_number(
    names: tuple[str, ...], numbers: Sequence[_Key | None]
) -> tuple[tuple[str, ...] | None, str]:
    others = [name for name, number in zip(names, numbers, strict=True) if number is None]
    if others:
        return None, f"not a version number: {_first_few(others)}"
    seen: dict[_Key | None, str] = {}
    for name, number in zip(names, numbers, strict=True):
        if number in seen:
            return None, f"{seen[number]!r} and {name!r} are the same number"
        seen[number] = name
    rank = sorted(range(len(names)), key=numbers.__getitem__)  # type: ignore[arg-type]
    return tuple(names[i] for i in rank), ""


def _disagreement(
    names: tuple[str, ...],
    released: NDArray[np.datetime64],
    numbers: Sequence[_Key | None],
    by: str,
) -> tuple[str, ...]:
    """Say where a higher number was released earlier, if that occurs."""
    order, _ = _by_number(names, numbers)
    if order is None:
        return ()
    dates = dict(zip(names, released, strict=True))
    pair = _inversion(order, np.asarray([dates[name] for name in order], dtype="M8[s]"))
    used = "release date" if by == "released" else "number"
    return (f"numbers and release dates disagree: {pair}; ordered by {used}",) if pair else ()


def _inversion(names: Sequence[str], dates: NDArray[np.datetime64]) -> str:
    """Name the first version released before a version that precedes it in this order."""
    known = np.flatnonzero(~np.isnat(dates))
    for before, after in pairwise(known.tolist()):
        if dates[after] < dates[before]:
            return (
                f"{names[after]} ({_day(dates[after])}) was released before {names[before]} "
                f"({_day(dates[before])})"
            )
    return ""


def _day(date: np.datetime64) -> str:
    return str(date.astype("M8[D]"))


def _first_few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown + (f" (and {len(names) - 3} more)" if len(names) > 3 else "")
