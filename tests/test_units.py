"""Units of time."""

from __future__ import annotations

import pytest

from errcomp._units import SECONDS, seconds_in
from errcomp.errors import InputError


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)])
def test_units_are_multiples_of_a_second(unit: str, seconds: float) -> None:
    assert seconds_in(unit) == seconds
    assert SECONDS["µs"] == SECONDS["us"]


def test_a_missing_unit_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"k\.csv: the times have no unit.*--unit ms"):
        seconds_in(None, source="k.csv")


def test_another_unit_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"^'cycles' is not a unit of time.*s, ms, us"):
        seconds_in("cycles")
