"""The wholes of a history and their parts: times of networks, and of the operators in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError, describe_names
from errcomp.halflife.noise import noise_floor
from errcomp.tables import History
from errcomp.tables.units import kind_of

__all__ = ["Times", "Whole", "levels_in", "times_of", "wholes_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Levels of wholes and of parts, in order of preference where none is given.
WHOLES = ("run", "network", "model", "end-to-end", "e2e", "request", "application", "system")
PARTS = ("kernel", "operator", "op", "layer", "node")
#: Keys that name a part where none is given.
_NAMES = ("kernel_class", "op_type", "operator", "op", "kernel", "layer", "node")


class Whole(NamedTuple):
    """A whole and its parts, as positions among the series of the history."""

    name: str
    series: int
    parts: Ints


class Times(NamedTuple):
    """Times by series and version, the mean over repeats; NaN where there is none.

    Attributes
    ----------
    value : ndarray, shape (series, versions)
        Geometric mean over the repeats.
    variance : ndarray, shape (series, versions)
        Of that mean, from repeats and relative to its square; NaN if unknown.
    df : ndarray, shape (series,)
        Degrees of freedom of the variance.
    """

    value: Floats
    variance: Floats
    df: Floats


def levels_in(history: History, whole: str | None, part: str | None) -> tuple[str, str]:
    """Return the level of wholes and that of parts: those given, or the first that are usual.

    Raises
    ------
    InputError
        The history has no such levels.
    """
    prefix = f"{history.source}: " if history.source else ""
    if "level" not in history.keys:
        raise InputError(
            f"{prefix}no column 'level'. It must say whether a row describes a whole (run, "
            "network) or one of its parts (kernel, operator). Add this column, or name the column "
            "that says so: --column level=COLUMN."
        )
    known = [str(name) for name in dict.fromkeys(history.per_series("level").tolist())]
    found = []
    for given, usual, option in ((whole, WHOLES, "whole"), (part, PARTS, "part")):
        name = next((one for one in usual if one in known), None) if given is None else given
        if name not in known:
            raise InputError(
                f"{prefix}no level {' or '.join(map(repr, [given] if given else usual[:3]))} in "
                "the history. Levels: "
                f"{describe_names(known)}. Give --{option} LEVEL ({option}=)."
            )
        found.append(name)
    if found[0] == found[1]:
        raise InputError(
            f"{prefix}the level of wholes and the level of parts are both {found[0]!r}. Give two "
            "different levels: --whole LEVEL --part LEVEL (whole=, part=)."
        )
    return found[0], found[1]


def wholes_of(
    history: History, whole: str, part: str, by: Sequence[str] = ()
) -> tuple[list[Whole], int]:
    """Return the wholes with their parts, and the number of parts that belong to none.

    A part belongs to the whole that has the same value in every column that all wholes and all
    parts have; where several do, to the one with whose name its own name begins. A column whose
    values are mostly those of parts alone does not count, and neither do ``count`` and the keys
    that group parts.

    Raises
    ------
    InputError
        No part belongs to a whole, or one belongs to several.
    """
    level = history.per_series("level")
    wholes, parts = (np.flatnonzero(level == name) for name in (whole, part))
    values = {
        name: history.per_series(name)
        for name in history.keys
        if name not in ("series", "level", "version", "count", *by)
    }
    shared = [name for name, column in values.items() if _links(column[wholes], column[parts])]
    names = _own_names(history)
    own: dict[tuple[Any, ...], list[int]] = {}
    for i in wholes.tolist():
        own.setdefault(tuple(values[name][i] for name in shared), []).append(i)
    members: dict[int, list[int]] = {i: [] for i in wholes.tolist()}
    without = 0
    for k in parts.tolist():
        among = own.get(tuple(values[name][k] for name in shared), [])
        if len(among) > 1:
            begins = [i for i in among if _begins(names[k], names[i])]
            longest = max((len(names[i]) for i in begins), default=0)
            among = [i for i in begins if len(names[i]) == longest]
        if len(among) > 1:
            raise _ambiguous(history, names, k, among)
        if among:
            members[among[0]].append(k)
        without += not among
    found = [Whole(names[i], i, np.array(m, dtype=int)) for i, m in members.items() if m]
    if not found:
        prefix = f"{history.source}: " if history.source else ""
        raise InputError(
            f"{prefix}none of the {len(parts)} series of level {part!r} belongs to one of the "
            f"{len(wholes)} of level {whole!r}. Give each part the same values as its whole in "
            "some columns (e.g. model, input), or, in the column 'series', begin the name of each "
            "part with the name of its whole."
        )
    return found, without


def _links(of_wholes: NDArray[Any], of_parts: NDArray[Any]) -> bool:
    """Say whether a column is about wholes, and parts repeat it."""
    if not (all(map(_given, of_wholes)) and all(map(_given, of_parts))):
        return False
    known = set(of_wholes.tolist())
    return sum(value in known for value in of_parts.tolist()) * 2 >= len(of_parts)


def _own_names(history: History) -> list[str]:
    """Return the names of series without their level, or it alone where they have no other."""
    levels = history.per_series("level").tolist()
    if "series" in history.series_columns:
        whole = zip(history.series_names, levels, strict=True)
        return [name.removesuffix(f"/{level}") for name, level in whole]
    columns = [history.per_series(n) for n in history.series_columns if n != "level"]
    names = ["/".join(map(str, filter(_given, values))) for values in zip(*columns, strict=True)]
    return [own or str(level) for own, level in zip(names, levels, strict=True)]


def _given(value: Any) -> bool:
    # An empty cell of numbers is NaN.
    return value is not None and value == value


def _begins(name: str, start: str) -> bool:
    """Say whether a name begins with another one, up to a character that ends a word."""
    return name.startswith(start) and not name[len(start) : len(start) + 1].isalnum()


def _ambiguous(history: History, names: Sequence[str], part: int, among: list[int]) -> InputError:
    prefix = f"{history.source}: " if history.source else ""
    return InputError(
        f"{prefix}{names[part]!r} may be a part of {describe_names([names[i] for i in among])}. "
        "Add a column that has the same value in a whole and in its parts, e.g. input."
    )


def labels_of(
    history: History, wholes: Sequence[Whole], by: Sequence[str]
) -> list[tuple[str, ...]]:
    """Name the parts of each whole: by keys, or by the first key that is usual for them."""
    names = _own_names(history)
    # Read once, as it takes all rows of the history.
    wanted = by or [name for name in _NAMES if name in history.keys]
    columns = {name: history.per_series(name) for name in wanted}

    def labels(whole: Whole) -> tuple[str, ...]:
        parts = whole.parts.tolist()
        known = [name for name in wanted if all(map(_given, columns[name][whole.parts]))]
        if keys := list(by) or known[:1]:
            return tuple(
                " / ".join(str(columns[key][k]) if _given(columns[key][k]) else "–" for key in keys)
                for k in parts
            )
        rest = (
            names[k][len(whole.name) :].lstrip(" /:") if _begins(names[k], whole.name) else ""
            for k in parts
        )
        return tuple(own or names[k] for own, k in zip(rest, parts, strict=True))

    return [labels(whole) for whole in wholes]


def times_of(history: History, parts: str) -> Times:
    """Return the mean times of all series, multiplied by the column ``count`` if there is one.

    Raises
    ------
    InputError
        The unit is that of a rate or another quantity of which parts do not add up; or ``count`` is
        not a number above 0, or differs between versions.
    """
    prefix = f"{history.source}: " if history.source else ""
    if history.unit and (kind_of(history.unit) or "time") not in ("time", "energy"):
        raise InputError(
            f"{prefix}the history is in {history.unit}, and such values of parts do not add up to "
            "the value of their whole. Give times or energies."
        )
    m = len(history.versions)
    cells, codes = np.unique(history.series * m + history.version, return_inverse=True)
    behind = history.behind.n
    log = np.bincount(codes, behind * np.log(history.measured)) / np.bincount(codes, behind)
    noise = noise_floor(history)
    series, version = np.divmod(cells, m)
    value, variance = (np.full((history.n_series, m), np.nan) for _ in range(2))
    value[series, version] = np.exp(log)
    variance[series, version] = noise.series_sd[series] ** 2 * noise.of_means(history, codes)
    return Times(value * _count(history, parts)[:, None], variance, noise.series_df)


def _count(history: History, parts: str) -> Floats:
    """Return how often each part runs; 1 where the history does not say so."""
    counts = np.ones(history.n_series)
    if "count" not in history.keys:
        return counts
    values = history.per_series("count")
    for i in np.flatnonzero(history.per_series("level") == parts).tolist():
        name, value = history.series_names[i], values[i]
        if not _given(value):
            raise InputError(
                f"the column 'count' has no value for {name!r}, or not the same value in all "
                "versions. Leave out this column, and give the total time of each part in each "
                "version."
            )
        try:
            counts[i] = float(value)
        except ValueError:
            counts[i] = np.nan
        if not 0 < counts[i] < np.inf:
            raise InputError(f"count of {name!r} must be a number above 0, got {value!r}.")
    return counts
