"""What the factor of a level rests on, as a record that goes to a model file and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from errcomp.errors import InputError

__all__ = ["LevelInfo", "read_infos", "read_texts"]


@dataclass(frozen=True, slots=True)
class LevelInfo:
    """The factor of one level and what it rests on.

    Attributes
    ----------
    level : float
        Of the band.
    factor : float
        By which both half-widths of the model's band are multiplied, > 0.
    method : str
        ``"group"`` or ``"pooled"``.
    n, groups : int
        Runs and groups that it was calibrated on.
    groups_needed : int
        The smallest number of groups for which the method ``"group"`` guarantees this level.
    correlation : float or None
        Intraclass correlation of the scores; None where it was not used.
    effective : float or None
        Effective number of independent scores, between groups and n; None where it was not used.
    beyond : bool
        Whether the factor lies beyond the largest score and follows an assumed tail.
    guarantee : str
        What is promised, and on which condition.
    """

    level: float
    factor: float
    method: str
    n: int
    groups: int
    groups_needed: int
    correlation: float | None
    effective: float | None
    beyond: bool
    guarantee: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def _wrong(what: str, value: object, expected: str) -> InputError:
    return InputError(
        f"stored conformal bands: {what} must be {expected}, got {value!r}. "
        "The file was changed, or written by something else: fit the model again."
    )


def _number(what: str, value: object, low: float, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _wrong(what, value, f"a number from {low:g} to {high:g}")
    if not math.isfinite(value):
        raise _wrong(what, value, "finite")
    return float(value)


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(what, value, "a whole number from 1 on")
    return value


def read_texts(what: str, value: object) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise _wrong(what, value, "a list of texts")
    return tuple(value)


def read_infos(what: str, value: object, levels: tuple[float, ...]) -> tuple[LevelInfo, ...]:
    """Return the stored records of the levels, checked."""
    if not isinstance(value, list | tuple) or len(value) != len(levels):
        raise _wrong(what, value, f"a list of {len(levels)} records, one a level")
    found = tuple(
        _read_info(f"{what}, {level:g}", one) for one, level in zip(value, levels, strict=True)
    )
    got = tuple(info.level for info in found)
    if got != levels:
        raise _wrong(what, got, f"of the levels {levels}")
    return found


def _read_info(what: str, value: object) -> LevelInfo:
    names = {field.name for field in fields(LevelInfo)}
    if not isinstance(value, Mapping) or set(value) != names:
        raise _wrong(what, value, f"a record of {', '.join(sorted(names))}")
    optional = {
        name: None if value[name] is None else _number(f"{what}, {name}", value[name], 0)
        for name in ("correlation", "effective")
    }
    if value["method"] not in ("group", "pooled"):
        raise _wrong(f"{what}, method", value["method"], "group or pooled")
    if not isinstance(value["beyond"], bool):
        raise _wrong(f"{what}, beyond", value["beyond"], "true or false")
    factor = _number(f"{what}, factor", value["factor"], 0)
    if factor == 0:
        raise _wrong(f"{what}, factor", factor, "> 0")
    return LevelInfo(
        level=_number(f"{what}, level", value["level"], 0, 1),
        factor=factor,
        method=value["method"],
        n=_count(f"{what}, n", value["n"]),
        groups=_count(f"{what}, groups", value["groups"]),
        groups_needed=_count(f"{what}, groups_needed", value["groups_needed"]),
        beyond=value["beyond"],
        guarantee=read_texts(f"{what}, guarantee", [value["guarantee"]])[0],
        **optional,
    )
