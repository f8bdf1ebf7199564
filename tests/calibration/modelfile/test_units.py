"""Units are converted or refused."""

from __future__ import annotations

import pytest

from errcomp.calibration.modelfile import check_unit
from errcomp.errors import InputError
from errcomp.tables.units import SECONDS


@pytest.mark.parametrize("given", SECONDS)
@pytest.mark.parametrize("model", SECONDS)
def test_factors_are_exact_powers_of_ten(model, given):
    power = {"s": 0, "ms": -3, "us": -6, "µs": -6, "ns": -9, "ps": -12}
    assert check_unit(model, given) == float(f"1e{power[given] - power[model]}")


def test_times_in_the_other_unit_are_the_same_times():
    assert 1500.0 * check_unit("ms", "us") == 1.5


def test_no_unit_at_all_is_one_unit():
    assert check_unit(None, None) == 1.0


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        ("ms", None, r"fitted to times in ms, but the given times have no unit\. State their unit"),
        (None, "us", r"given times are in us, .* Fit the model again and state the unit"),
        ("ms", "cycles", r"'cycles' is not a known unit of time"),
        ("W", "ms", r"'W' is not a known unit of time"),
        ("W", "W", r"'W' is not a known unit of time"),
        (None, "MS", r"'MS' is not a known unit of time\. Known: s, ms"),
    ],
)
def test_units_that_do_not_fit(model, given, said):
    with pytest.raises(InputError, match=said):
        check_unit(model, given)
