"""Units of time, in the one place that knows them."""

from __future__ import annotations

from errcomp.errors import InputError

__all__ = ["SECONDS", "seconds_in"]

#: Seconds in one unit.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def seconds_in(unit: str | None, *, source: str = "") -> float:
    """Return how many seconds one unit is.

    Raises
    ------
    InputError
        The unit is missing or is no unit of time.

    Examples
    --------
    >>> seconds_in("ms")
    0.001
    """
    prefix = f"{source}: " if source else ""
    if unit is None:
        raise InputError(
            f"{prefix}the times have no unit, and launches are known in µs. State the unit, "
            "for instance --unit ms (in Python unit='ms')."
        )
    if unit not in SECONDS:
        raise InputError(
            f"{prefix}{unit!r} is not a unit of time that is known. Known: "
            f"{', '.join(SECONDS)}. Convert the table, or state the unit it has."
        )
    return SECONDS[unit]
