"""The order of software versions: as given, by release, by number, or by first validation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from errcomp.errors import InputError, describe_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OrderBy", "VersionOrder", "order_versions", "version_number"]

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
    """Versions, oldest first, and what put them in this order.

    Attributes
    ----------
    names : tuple of str
    by : {"order", "released", "number", "date", "single"}
        What was given, release dates, version numbers, dates of the first validation; or there is
        one version only.
    notes : tuple of str
        What a reader should know, e.g. where numbers and release dates disagree.
    """

    names: tuple[str, ...]
    by: OrderBy
    notes: tuple[str, ...]


def version_number(name: str) -> _Key | None:
    """Return what a version number is sorted by; None where the name is no version number.

    The order is that of PEP 440: 1.9 < 1.10, 2.7.0.dev1 < 2.7.0rc1 < 2.7.0 < 2.7.0.post1, and 1.0
    equals 1.0.0. A whole number of more than six digits is taken for a hash unless it is a date.

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
    found = _NUMBER.fullmatch(name.strip().lower())
    if found is None or _looks_like_a_hash(found):
        return None
    release = tuple(map(int, found["release"].split(".")))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    pre, post, dev = found["pre"], found["post"] or found["implicit"], found["dev"]
    # A development release without a stage comes before all stages, a final release after them.
    first = -1 if dev and not pre and not post else 3
    stage = (_STAGES[pre], int(found["pre_n"] or 0)) if pre else (first, 0)
    after = int(found["post_n"] or found["implicit"] or 0) if post else -1
    before = (0, int(found["dev_n"] or 0)) if dev else (1, 0)
    parts = re.split(r"[-_.]", found["local"]) if found["local"] else []
    local = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts)
    return release, stage, after, before, local


def _looks_like_a_hash(found: re.Match[str]) -> bool:
    whole = found["release"]
    if "." in whole:
        return False
    # "3723b12" is a hash rather than the twelfth beta of release 3723.
    return found.end("release") < len(found.string) or not (
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

    As given if an order is given; else by release date if every version has one; else by number if
    every name is one; else by the date of the first validation if every version has one. Versions
    of one release date (or date of validation) are ordered by number, then by the other date.

    Parameters
    ----------
    names : sequence of str, shape (m,)
        Different from each other.
    order : sequence of str, optional
        Names, oldest first. More than there are is fine: the others are left out, with a note.
    released, first : ndarray of datetime64[s], shape (m,)
        When each was released and first validated; NaT where unknown.
    source : str
        Named in messages.

    Returns
    -------
    VersionOrder

    Raises
    ------
    InputError
        The order given lacks a version or names one twice, or nothing orders all versions; the
        message says which could not be ordered.

    Notes
    -----
    Misleads where numbers are those of several products, or of branches that live side by side:
    a patch of an old branch is newer than the first release of the next one. Release dates know.

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
    found, why = _by_date(known, released, first, numbers, "release date")
    if found is not None:
        return VersionOrder(found, "released", _disagreement(known, released, numbers, "released"))
    reasons = [why]
    found, why = _by_number(known, numbers)
    if found is not None:
        return VersionOrder(found, "number", _disagreement(known, released, numbers, "number"))
    reasons.append(why)
    found, why = _by_date(known, first, released, numbers, "date of validation")
    if found is not None:
        return VersionOrder(found, "date", ())
    raise InputError(
        f"{prefix}the versions cannot be ordered: {'; '.join([*reasons, why])}. Name them, oldest "
        "first, with order=[...] (--order A,B,C), or add a column released."
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
            f"{describe_names(missing)}. Name all of them, oldest first."
        )
    there = dict(zip(names, released, strict=True))
    found = tuple(name for name in order if name in there)
    notes = []
    if left := len(order) - len(found):
        notes.append(f"{left} versions of the order given were never validated: left out")
    if pair := _inversion(found, np.asarray([there[name] for name in found], dtype="M8[s]")):
        notes.append(f"the order given is not that of release: {pair}")
    return VersionOrder(found, "order", tuple(notes))


def _by_date(
    names: tuple[str, ...],
    dates: NDArray[np.datetime64],
    others: NDArray[np.datetime64],
    numbers: Sequence[_Key | None],
    what: str,
) -> tuple[tuple[str, ...] | None, str]:
    """Order by date, what shares one by number or the other date; or say why that cannot be."""
    without = [name for name, date in zip(names, dates, strict=True) if np.isnat(date)]
    if without:
        return None, f"without a {what}: {_few(without)}"
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
            return None, f"{_few([names[i] for i in same])} have one {what}, {_day(date)}"
        rank = sorted(range(len(same)), key=keys.__getitem__)  # type: ignore[arg-type]
        order += [names[same[i]] for i in rank]
    return tuple(order), ""


def _by_number(
    names: tuple[str, ...], numbers: Sequence[_Key | None]
) -> tuple[tuple[str, ...] | None, str]:
    others = [name for name, number in zip(names, numbers, strict=True) if number is None]
    if others:
        return None, f"no version number: {_few(others)}"
    seen: dict[_Key | None, str] = {}
    for name, number in zip(names, numbers, strict=True):
        if number in seen:
            return None, f"{seen[number]!r} and {name!r} are one number"
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
    there = dict(zip(names, released, strict=True))
    pair = _inversion(order, np.asarray([there[name] for name in order], dtype="M8[s]"))
    used = "release date" if by == "released" else "number"
    return (f"numbers and release dates disagree: {pair}; ordered by {used}",) if pair else ()


def _inversion(names: Sequence[str], dates: NDArray[np.datetime64]) -> str:
    """Name the first version that was released before one that comes earlier in this order."""
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


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown + (f" (and {len(names) - 3} more)" if len(names) > 3 else "")
