"""What can be compared: factors, keys to match on, and which devices are one and the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.tables import RESERVED_KEYS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables import Pairs

__all__ = [
    "MAX_LEVELS",
    "NUMERIC_FACTORS",
    "UNITS",
    "Matching",
    "choose_factors",
    "determines",
    "is_complete",
    "level_text",
    "match_keys",
    "merged_devices",
    "reference_level",
]

#: Keys whose values repeat like subjects in a trial: errors of the same unit are dependent.
UNITS = ("device", "model")
#: Keys that count something: compared as multiples (batch 8 against 16), not as labels.
NUMERIC_FACTORS = ("batch", "seq_len")
#: A key with more values than this is a list of names, not a factor, unless it is asked for.
MAX_LEVELS = 8
_ORDER = (
    "variant",
    "mode",
    "batch",
    "seq_len",
    "devices",
    "in_training",
    "in_distribution",
    "vendor",
)
_NOT_FACTORS = ("tool", "level", "date", "repeat", *UNITS)
_REFERENCES = {
    "mode": "inference",
    "variant": "base",
    "in_training": "true",
    "in_distribution": "true",
}
_MIN_SHARED = 3


@dataclass(frozen=True, slots=True)
class Matching:
    """Keys on which two levels of a factor are matched, and those on which they cannot be.

    Attributes
    ----------
    on : tuple of str
        Keys whose values are the same on both sides.
    impossible : tuple of str
        Keys that a factor fixes or that fix the factor: no two rows can agree on them.
    """

    on: tuple[str, ...]
    impossible: tuple[str, ...]


def level_text(value: Any) -> str:
    """Write a key value as users do: whole numbers without a decimal point.

    Examples
    --------
    >>> level_text(8.0), level_text("fusion"), level_text(True)
    ('8', 'fusion', 'true')
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_complete(pairs: Pairs, key: str) -> bool:
    """Say whether no row lacks the key."""
    return not any(v is None or v != v for v in pairs.column(key).tolist())


def _is_label(pairs: Pairs, key: str) -> bool:
    return pairs.column(key).dtype.kind in "Ob"


def choose_factors(pairs: Pairs, factors: Sequence[str] | None) -> tuple[str, ...]:
    """Return the factors to compare: those asked for, or every key that can be one.

    A key can be a factor where no row lacks it, it takes two or more values and, for labels, at
    most ``MAX_LEVELS``; a second name of the device or the model is none. Numbers other than batch,
    seq_len and devices are measurements more often than factors and count only where they are
    asked for.

    Raises
    ------
    InputError
        A factor asked for is not a column, has one value only, or is missing in some rows.
    """
    if factors is not None:
        for name in factors:
            _check_factor(pairs, name)
        return tuple(dict.fromkeys(factors))
    found = []
    for name in pairs.keys:
        if name in _NOT_FACTORS or not is_complete(pairs, name) or _names_unit(pairs, name):
            continue
        levels = len(set(pairs.column(name).tolist()))
        numeric = name in NUMERIC_FACTORS
        label = _is_label(pairs, name) or name == "devices"
        if levels >= 2 and (numeric or (label and levels <= MAX_LEVELS)):
            found.append(name)
    known = [name for name in _ORDER if name in found]
    return tuple(known + [name for name in found if name not in known])


def _names_unit(pairs: Pairs, name: str) -> bool:
    """Say whether a key of the user's own is another name of the device or the model."""
    if name in _ORDER or not _is_label(pairs, name):
        return False
    values = pairs.column(name).tolist()
    units = [pairs.column(unit).tolist() for unit in UNITS if unit in pairs.keys]
    return any(determines(values, unit) and determines(unit, values) for unit in units)


def _check_factor(pairs: Pairs, name: str) -> None:
    values = pairs.column(name)
    if not is_complete(pairs, name):
        missing = [i for i, v in enumerate(values.tolist()) if v is None or v != v]
        raise InputError(
            f"factor {name!r} has no value in {len(missing)} of {pairs.n} rows. "
            f"Fill it in, or leave {name!r} out of the factors."
        )
    if len(set(values.tolist())) < 2:
        raise InputError(
            f"factor {name!r} is {level_text(values[0])!r} in every row, so nothing can be "
            f"compared. Leave it out, or choose among: {', '.join(pairs.keys)}"
        )


def reference_level(pairs: Pairs, factor: str) -> Any:
    """Return the level that others are compared with: the usual one, else the most frequent."""
    values = pairs.column(factor).tolist()
    for value in dict.fromkeys(values):
        if level_text(value) == _REFERENCES.get(factor):
            return value
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return min(counts, key=lambda value: (-counts[value], level_text(value)))


def determines(a: Iterable[Hashable], b: Iterable[Hashable]) -> bool:
    """Say whether each value of ``a`` goes with one value of ``b`` only.

    Examples
    --------
    >>> determines(["H100", "H100", "MI100"], ["NVIDIA", "NVIDIA", "AMD"])
    True
    >>> determines(["NVIDIA", "NVIDIA", "AMD"], ["H100", "A100", "MI100"])
    False
    """
    seen: dict[Hashable, Hashable] = {}
    return all(seen.setdefault(x, y) == y for x, y in zip(a, b, strict=True))


def match_keys(
    pairs: Pairs, factor: str, factors: Sequence[str], *, rows: NDArray[np.bool_]
) -> Matching:
    """Return the keys on which two levels of the factor are matched.

    Candidates are the reserved keys, the other factors and every label without gaps. A key that
    fixes the factor (a device has one vendor) or is fixed by it (a distributed variant has four
    devices) cannot be matched on and is named as such. A key that another key fixes is matched
    with that key and not named. A label that device and model fix together (was this model on this
    device in the training data?) says nothing about a configuration that they do not, and is not
    matched on either: it would keep devices apart that the factor is to compare.
    """
    target = pairs.column(factor)[rows].tolist()
    on: dict[str, list[Any]] = {}
    impossible = []
    # Reserved keys first: of two keys that say the same, the one with the known name stays.
    for name in sorted(pairs.keys, key=lambda key: key not in RESERVED_KEYS):
        if name in (factor, "tool", "date", "repeat") or not is_complete(pairs, name):
            continue
        if name not in RESERVED_KEYS and not _is_own_label(pairs, name, factors):
            continue
        values = pairs.column(name)[rows].tolist()
        if len(set(values)) < 2:
            continue
        if determines(values, target) or determines(target, values):
            impossible.append(name)
        else:
            on[name] = values
    for name in [key for key in reversed(on) if key not in UNITS]:
        if any(other != name and determines(on[other], on[name]) for other in on):
            del on[name]
    return Matching(tuple(on), tuple(impossible))


def _is_own_label(pairs: Pairs, name: str, factors: Sequence[str]) -> bool:
    """Say whether a key of the user's own describes a configuration."""
    if name not in factors and not _is_label(pairs, name):
        return False
    if not all(unit in pairs.keys for unit in UNITS):
        return True
    values = pairs.column(name).tolist()
    units = [pairs.column(unit).tolist() for unit in UNITS]
    alone = any(determines(unit, values) for unit in units)
    return alone or not determines(list(zip(*units, strict=True)), values)


def merged_devices(pairs: Pairs) -> dict[str, str]:
    """Map each device to the first device with which it shares all its predictions.

    Where a tool predicts the same numbers for two devices (it takes one for the other), their
    errors are not two independent observations. Devices count as one where they share three or
    more configurations and every prediction of these is equal.
    """
    if "device" not in pairs.keys or not is_complete(pairs, "device"):
        return {}
    devices = pairs.column("device").tolist()
    keys = [
        name
        for name in RESERVED_KEYS
        if name in pairs.keys
        and name not in ("tool", "device")
        and not determines(devices, pairs.column(name).tolist())
    ]
    tables: dict[str, dict[tuple[Any, ...], float]] = {}
    for i, device in enumerate(devices):
        cell = tuple(pairs.column(name)[i] for name in keys)
        tables.setdefault(str(device), {})[cell] = float(pairs.predicted[i])
    merged: dict[str, str] = {}
    for device, table in tables.items():
        same = (merged[other] for other in merged if _same_predictions(tables[other], table))
        merged[device] = next(same, device)
    return merged


def _same_predictions(a: Mapping[Any, float], b: Mapping[Any, float]) -> bool:
    shared = [cell for cell in a if cell in b]
    if len(shared) < _MIN_SHARED:
        return False
    x: NDArray[np.float64] = np.array([a[cell] for cell in shared])
    return bool(np.allclose(x, [b[cell] for cell in shared], rtol=1e-9, atol=0.0))
