"""Units of predictions and measurements."""

from __future__ import annotations

import re
from typing import Any

from errcomp.errors import InputError

#: Unit → seconds.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}
#: Kind of quantity → its units, in terms of one of them.
_KINDS = {
    "time": {**SECONDS, "min": 60.0, "h": 3600.0},
    "energy": {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "nJ": 1e-9, "pJ": 1e-12, "fJ": 1e-15},
    "power": {"kW": 1e3, "W": 1.0, "mW": 1e-3, "uW": 1e-6},
    "area": {"mm^2": 1.0, "um^2": 1e-6},
    "bandwidth": {"GB/s": 1.0, "MB/s": 1e-3, "TB/s": 1e3},
    "frequency": {"GHz": 1e9, "MHz": 1e6, "kHz": 1e3, "Hz": 1.0},
}
UNITS = frozenset(unit for units in _KINDS.values() for unit in units)
_WITH_UNIT = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ][A-Za-zµ/^2]*)"
)


def kind_of(unit: str) -> str | None:
    """Return what a unit measures: time, energy, power, …; None if unknown.

    Examples
    --------
    >>> kind_of("ms"), kind_of("cycles")
    ('time', None)
    """
    return next((kind for kind, units in _KINDS.items() if unit in units), None)


def number_and_unit(value: Any) -> tuple[float, str] | None:
    """Return the number and the unit of a text such as ``12 ms``; None if it is something else.

    Examples
    --------
    >>> number_and_unit("12 ms"), number_and_unit("1e3us"), number_and_unit("12 apples")
    ((12.0, 'ms'), (1000.0, 'us'), None)
    """
    found = _WITH_UNIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or kind_of(found[2]) is None:
        return None
    return float(found[1]), found[2]


def ratios_of(unit: str) -> tuple[tuple[float, str], ...]:
    """Return the ratios of a unit to others of its kind, naming the smaller unit first.

    Examples
    --------
    >>> ratios_of("mW")
    ((1000000.0, 'mW beside kW'), (1000.0, 'mW beside W or uW beside mW'))
    """
    units = next((units for units in _KINDS.values() if unit in units), {})
    by_ratio: dict[float, list[str]] = {}
    for other, size in units.items():
        # µ is also written as u.
        if size == units[unit] or ("u" in other and other.replace("u", "µ", 1) in units):
            continue
        small, large = (other, unit) if size < units[unit] else (unit, other)
        ratio = max(size, units[unit]) / min(size, units[unit])
        by_ratio.setdefault(float(round(ratio)), []).append(f"{small} beside {large}")
    return tuple((ratio, " or ".join(names)) for ratio, names in by_ratio.items())


def factor(unit: str, to: str, *, source: str = "", clock_hz: float | None = None) -> float:
    """Return the factor that converts ``unit`` into ``to``.

    Cycles convert to times only with a clock rate.

    Parameters
    ----------
    unit, to : str
    source : str
        Name of the table in messages.
    clock_hz : float, optional
        Clock rate in cycles per second.

    Raises
    ------
    InputError
        The units measure different things, or one is unknown.

    Examples
    --------
    >>> factor("us", "ms"), factor("cycles", "ns", clock_hz=1e9)
    (0.001, 1.0)
    """
    if unit == to:
        return 1.0
    for first, second, power in ((unit, to, 1.0), (to, unit, -1.0)):
        if first == "cycles" and second in SECONDS and clock_hz:
            return float((1.0 / clock_hz / SECONDS[second]) ** power)
    for units in _KINDS.values():
        if unit in units and to in units:
            # Divide the other way if that is exact: 1e-6 / 1e-3 is not 0.001.
            return (
                1.0 / round(units[to] / units[unit])
                if units[to] > units[unit]
                else float(round(units[unit] / units[to]))
            )
    prefix = f"{source}: " if source else ""
    clock = (
        " Cycles convert to times only with a clock rate (--clock 1.2GHz)."
        if "cycles" in (unit, to)
        else ""
    )
    raise InputError(
        f"{prefix}mixed units: {unit!r} and {to!r} cannot be converted into each other.{clock} "
        f"Select rows with one unit: --where unit={unit}."
    )


def seconds_in(unit: str | None, *, source: str = "") -> float:
    """Return the seconds in one unit.

    Raises
    ------
    InputError
        The unit is missing or not a unit of time.

    Examples
    --------
    >>> seconds_in("ms")
    0.001
    """
    prefix = f"{source}: " if source else ""
    if unit is None:
        raise InputError(
            f"{prefix}the times have no unit, but the model uses launch times in µs. State the "
            "unit of the times, e.g. --unit ms (in Python unit='ms')."
        )
    if unit not in SECONDS:
        raise InputError(
            f"{prefix}{unit!r} is not a known unit of time. Known units: "
            f"{', '.join(SECONDS)}. Convert the table, or state its actual unit."
        )
    return SECONDS[unit]
