"""Units of time."""

from __future__ import annotations

import pytest

from errcomp.errors import InputError
from errcomp.tables.units import SECONDS, factor, kind_of, seconds_in


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)])
def test_units_are_multiples_of_a_second(unit: str, seconds: float) -> None:
    assert seconds_in(unit) == seconds
    assert SECONDS["µs"] == SECONDS["us"]


def test_a_missing_unit_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"k\.csv: the times have no unit.*--unit ms"):
        seconds_in(None, source="k.csv")


def test_another_unit_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"^'cycles' is not a known unit of time.*s, ms, us"):
        seconds_in("cycles")


@pytest.mark.parametrize(
    ("unit", "to", "times"),
    [
        ("us", "ms", 1e-3),
        ("ms", "us", 1e3),
        ("µs", "us", 1.0),
        ("ps", "s", 1e-12),
        ("uJ", "pJ", 1e6),
        ("min", "s", 60.0),
        ("min", "h", 1 / 60),
        ("mW", "W", 1e-3),
        ("uW", "W", 1e-6),
        ("kW", "W", 1e3),
        ("mJ", "J", 1e-3),
        ("nJ", "J", 1e-9),
        ("fJ", "J", 1e-15),
        ("um^2", "mm^2", 1e-6),
        ("MB/s", "GB/s", 1e-3),
        ("TB/s", "GB/s", 1e3),
        ("kHz", "Hz", 1e3),
        ("MHz", "Hz", 1e6),
        ("GHz", "Hz", 1e9),
        ("cycles", "cycles", 1.0),
    ],
)
def test_factors(unit: str, to: str, times: float) -> None:
    assert factor(unit, to) == times


def test_cycles_need_a_clock() -> None:
    assert factor("cycles", "us", clock_hz=1.5e9) == pytest.approx(1 / 1500)
    assert factor("us", "cycles", clock_hz=1.5e9) == pytest.approx(1500)
    with pytest.raises(InputError, match=r"'cycles' and 'us' cannot be converted.*--clock"):
        factor("cycles", "us")
    with pytest.raises(InputError, match=r"a\.csv: mixed units: 'J' and 'W' cannot"):
        factor("J", "W", source="a.csv", clock_hz=1e9)


def test_what_a_unit_measures() -> None:
    assert [kind_of(unit) for unit in ("ns", "pJ", "mW", "GB/s", "GHz", "mm^2", "cycles")] == [
        "time",
        "energy",
        "power",
        "bandwidth",
        "frequency",
        "area",
        None,
    ]
