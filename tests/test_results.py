from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable

import pytest

from errcomp.errors import InputError, MissingExtraError, describe_rows
from errcomp.results import Caveat, Dropped, Estimate, format_fraction, format_number

MAPE = Estimate("mape", 0.0874, low=0.056, high=0.121, level=0.95, method="bootstrap-t", n=16)


def test_an_estimate_prints_as_people_write_it() -> None:
    assert str(MAPE) == "8.74 % [5.6, 12.1], n=16"
    assert str(Estimate("max_ape", 0.653, n=3)) == "65.30 %, n=3"
    assert str(Estimate("rmse", 12.3456, low=10.0, high=15.0, n=4, unit="ms")) == (
        "12.35 ms [10, 15], n=4"
    )
    assert Estimate("gm_ratio", 1.05, unit="ratio").format() == "1.05"


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_estimates_refuse_to_be_ranked(compare: Callable[[object, object], bool]) -> None:
    with pytest.raises(TypeError, match="mape is uncertain"):
        compare(MAPE, MAPE)
    with pytest.raises(TypeError, match="mape is uncertain"):
        max([MAPE, MAPE])
    assert float(MAPE) == 0.0874


def test_an_estimate_becomes_a_dict_and_a_row() -> None:
    estimate = Estimate(
        "mape",
        math.nan,
        dropped=(Dropped("measured is zero", 2, (4, 7)),),
        caveats=(Caveat("few-configurations", "only 2", {"n": 2}),),
    )
    text = json.dumps(estimate.to_dict(), allow_nan=False)
    assert json.loads(text)["value"] is None
    assert json.loads(text)["dropped"] == [{"reason": "measured is zero", "n": 2, "rows": [4, 7]}]
    assert json.loads(text)["caveats"][0]["evidence"] == {"n": 2}
    assert MAPE.to_row() == {"mape": 0.0874, "mape_low": 0.056, "mape_high": 0.121}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05869, "5.87 %"), (-0.1, "-10.00 %"), (9.999, "999.9 %"), (52.45, "5245 %")],
)
def test_fractions_are_shown_as_percent(value: float, text: str) -> None:
    assert format_fraction(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1e-9, "1.000e-09"), (3.14159, "3.142"), (1e9, "1.000e+09")]
)
def test_numbers_have_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text


def test_not_a_number_is_not_a_number() -> None:
    assert format_fraction(math.nan) == format_number(math.nan) == "n/a"


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(InputError, ValueError)
    error = MissingExtraError("statsmodels", "drivers", "the mixed regression")
    assert isinstance(error, ImportError)
    assert "pip install 'errcomp[drivers]'" in str(error)
    assert describe_rows([1, 2, 3]) == "rows 1, 2, 3"
