"""The order of the versions of a history."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from errcomp.errors import InputError, describe_names, offer
from errcomp.tables.columns import Origin, dates_of
from errcomp.tables.frames import column_values, is_missing
from errcomp.tables.memory.history_columns import STACK

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray


#: Instead of a column to order by: the order in which versions appear in the table.
ROWS = "rows"
OrderBy = Literal["order", "columns", "rows", "released", "number", "date", "single"]

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

#: The hash of a commit, or the beginning of one.
_SHORTEST = 7
_HASH = re.compile(rf"[0-9a-f]{{{_SHORTEST},64}}")

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class VersionOrder:
    """Versions, oldest first, and what they were ordered by.

    Attributes
    ----------
    names : tuple of str
    by : {"order", "columns", "rows", "released", "number", "date", "single"}
        The given order, columns, the rows of the table, release dates, version numbers, dates of
        the first validation, or a single version.
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
        "oldest first, with order=[...] (--order A,B,C), name columns that order them "
        "(--order-by), or add their release dates in a column 'released'."
    )


def _as_given(
    names: tuple[str, ...], order: list[str], released: NDArray[np.datetime64], prefix: str
) -> VersionOrder:
    place = {name: i for i, name in enumerate(order)}
    if len(place) < len(order):
        twice = next(name for i, name in enumerate(order) if place[name] != i)
        raise InputError(f"{prefix}the order has version {twice!r} twice. Name each version once.")
    hashes = sorted(filter(_HASH.fullmatch, order))
    same = {
        name: name if name in place else _same_hash(name, place, hashes, prefix) for name in names
    }
    missing = [name for name in names if not same[name]]
    if missing:
        raise InputError(
            f"{prefix}order lacks {len(missing)} of {len(names)} versions: "
            f"{describe_names(missing)}. Name all versions, oldest first."
        )
    dates = dict(zip(names, released, strict=True))
    ordered = tuple(sorted(names, key=lambda name: place[same[name]]))
    for a, b in pairwise(ordered):
        if same[a] == same[b]:
            raise InputError(f"{prefix}{a} and {b} are the same commit. Use one name.")
    notes = []
    # That most commits were never validated goes without saying.
    if (left := len(order) - len(ordered)) and not hashes:
        notes.append(
            f"{left} version{'s were' if left > 1 else ' was'} named in the given order "
            "but never validated: left out"
        )
    if pair := _inversion(ordered, np.asarray([dates[name] for name in ordered], dtype="M8[s]")):
        notes.append(f"the given order differs from the release dates: {pair}")
    return VersionOrder(ordered, "order", tuple(notes))


def _same_hash(name: str, place: Mapping[str, int], hashes: Sequence[str], prefix: str) -> str:
    """Return the hash that a hash is the beginning of, or begins with; empty if there is none."""
    if not _HASH.fullmatch(name):
        return ""
    at = bisect_left(hashes, name)
    longer = [other for other in hashes[at : at + 2] if other.startswith(name)]
    if len(longer) > 1:
        raise InputError(
            f"{prefix}version {name!r} may be commit {longer[0]!r} or commit {longer[1]!r}: both "
            "begin with it. Write more digits of its hash."
        )
    shorter = (name[:n] for n in range(len(name) - 1, _SHORTEST - 1, -1))
    return next(iter(longer), next((part for part in shorter if part in place), ""))


def order_by_columns(
    frame: nw.DataFrame[Any],
    columns: Sequence[str],
    names: Sequence[str],
    version: NDArray[np.int64],
    origin: Origin,
) -> list[str]:
    """Return versions by the values of columns: the first, then the second for equal values, ….

    Parameters
    ----------
    frame : dataframe of n rows
    columns : sequence of str
        Numbers, dates, or numbers of versions (``version`` itself, and columns of the stack), one
        value per version; or only `ROWS`, for the order of first appearance.
    names : sequence of str
        Versions in order of appearance.
    version : ndarray of int, shape (n,)
        Position of the version of each row in ``names``.
    origin : Origin
        Of the n rows.

    Raises
    ------
    InputError
        There is no such column, or its values are missing, are neither numbers nor dates, differ
        within a version, or are the same for two versions.
    """
    if tuple(columns) == (ROWS,) and ROWS not in frame.columns:
        return list(names)
    first = np.unique(version, return_index=True)[1]
    keys = []
    for column in columns:
        if column not in frame.columns:
            able = [name for name in frame.columns if name != "version"]
            raise InputError(
                f"{origin.prefix}no column {column!r} to order versions by. "
                f"{offer('Columns', able, wanted=column)}"
            )
        values = _sortable(frame, column, origin)
        differ = values != values[first][version]
        if differ.any():
            name = names[version[np.argmax(differ)]]
            raise InputError(
                f"{origin.prefix}version {name!r} has several values of {column} (another one in "
                f"{origin.name(differ)}). Order by a column that has one value per version."
            )
        keys.append(values[first])
    order = np.lexsort(keys[::-1])
    for a, b in pairwise(order.tolist()):
        if all(values[a] == values[b] for values in keys):
            raise InputError(
                f"{origin.prefix}{names[a]} and {names[b]} have the same {' and '.join(columns)}. "
                "Add a column that orders them: --order-by COLUMN,COLUMN (order_by=)."
            )
    return [names[i] for i in order]


def _sortable(frame: nw.DataFrame[Any], name: str, origin: Origin) -> NDArray[Any]:
    values = column_values(frame, name)
    missing = np.asarray([is_missing(value) for value in values], dtype=bool)
    origin.refuse_missing(missing, name, "Fill it in, or order by another column.")
    if values.dtype.kind in "iufM":
        return values
    if name == "version" or name.startswith(STACK):
        return _ranks([str(value) for value in values], name, origin)
    try:
        return values.astype(float)
    except (TypeError, ValueError):  # not numbers
        return dates_of(frame, name, ~missing, origin)


def _ranks(names: Sequence[str], column: str, origin: Origin) -> NDArray[np.int64]:
    """Return the places of versions of a component among all of its versions."""
    keys = {name: version_number(name) for name in dict.fromkeys(names)}
    for name, key in keys.items():
        if key is None:
            raise InputError(
                f"{origin.prefix}cannot order by {column}: {name!r} is not a version number. "
                "Order by a column of numbers or dates, or use the order of the rows (--order-by "
                "rows)."
            )
    place = {key: i for i, key in enumerate(sorted(set(filter(None, keys.values()))))}
    return np.array([place[keys[name]] for name in names])  # type: ignore[index]


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
