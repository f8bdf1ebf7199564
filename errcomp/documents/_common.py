"""What documents of several kinds hold: caveats, rows left out, figures with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errcomp.documents._fields import (
    Field,
    anything,
    count,
    many,
    mapping,
    maybe,
    number,
    or_nan,
    scalar,
    text,
)
from errcomp.errors import InputError
from errcomp.results import Caveat, Dropped, Estimate

__all__ = ["Absent", "caveat", "dropped", "ends", "estimate", "keys_of", "within"]


@dataclass(frozen=True)
class Absent:
    """Stands where a result has what its document cannot hold.

    Attributes
    ----------
    of : str
        What it stands for, e.g. ``"the errors of single series"``.
    remedy : str
        Where that is to be had.
    """

    of: str
    remedy: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InputError(f"a document does not hold {self.of} ({name}). {self.remedy}")


def caveat(field: Field) -> Caveat:
    """Read a caveat."""
    return field.make(Caveat, code=text, message=text, evidence=mapping(anything))


def dropped(field: Field) -> Dropped:
    """Read what was left out, and why."""
    return field.make(Dropped, reason=text, n=count, rows=many(count))


def estimate(field: Field) -> Estimate:
    """Read a figure with its interval, as `Estimate.to_dict` writes it."""
    low, high = ends(field, "low", "high")
    return Estimate(
        field("figure", text),
        field("value", or_nan(number)),
        low,
        high,
        level=field("level", maybe(number)),
        method=field("method", text),
        n=field("n", count),
        unit=field("unit", text),
        definition=field("definition", text),
        dropped=field("dropped", many(dropped)),
        caveats=field("caveats", many(caveat)),
        seed=field("seed", maybe(count)),
    )


def ends(field: Field, low: str, high: str) -> tuple[float | None, float | None]:
    """Read an interval; null is None for both ends, and endless for the upper one alone."""
    start, end = field(low, maybe(number)), field(high, maybe(number))
    if start is None:
        if end is not None:
            field.at(low).refuse("a number, as the upper end is one")
        return None, None
    if end is not None and end < start:
        field.at(high).refuse(f"at least the lower end, {start:g}")
    return start, math.inf if end is None else end


def keys_of(field: Field, by: tuple[str, ...]) -> dict[str, Any]:
    """Read the values of the grouping keys in a row."""
    return {name: field(name, scalar) for name in by}


def within(document: Mapping[str, Any], again: Mapping[str, Any], path: str = "") -> None:
    """Refuse a document that says otherwise than what was made of it.

    What follows from other values (a count, a ratio, whether an interval excludes 0) is made anew;
    where it differs somebody has changed a part of the document. Words may change with a version.
    """
    for key, value in again.items():
        here = f"{path}.{key}" if path else key
        if key not in document:
            raise InputError(f"{path + ' has' if path else 'there is'} no key {key!r}")
        _same(document[key], value, here)


def _same(given: Any, made: Any, path: str) -> None:
    if isinstance(made, Mapping) and isinstance(given, Mapping):
        within(given, made, path)
    elif isinstance(made, list) and isinstance(given, list | tuple) and len(made) == len(given):
        for i, (one, other) in enumerate(zip(given, made, strict=True)):
            _same(one, other, f"{path}[{i}]")
    elif not _agree(given, made):
        found = "a list of another length" if isinstance(made, list) else f"{given!r:.60}"
        raise InputError(
            f"{path} is {found}, but {'' if isinstance(made, list) else f'{made!r:.60} '}"
            "follows from the rest of the document: a part of it was changed"
        )


def _agree(given: Any, made: Any) -> bool:
    if isinstance(made, str):
        return isinstance(given, str)
    if isinstance(made, bool) or made is None:
        return given is made
    if isinstance(made, int | float) and isinstance(given, int | float):
        return not isinstance(given, bool) and math.isclose(
            given, made, rel_tol=1e-9, abs_tol=1e-12
        )
    return bool(given == made)
