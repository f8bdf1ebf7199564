from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from errcomp.codec import Count, Document, Field
from errcomp.errors import InputError, MissingExtraError, describe_rows
from errcomp.results import (
    Caveat,
    Dropped,
    Estimate,
    FlatEstimate,
    format_change,
    format_fraction,
    format_number,
)

MAPE = Estimate("mape", 0.0874, low=0.056, high=0.121, level=0.95, method="bootstrap-t", n=16)


def test_an_estimate_prints_as_people_write_it() -> None:
    assert str(MAPE) == "8.74 % [5.6, 12.1], n=16"
    assert str(Estimate("max_ape", 0.653, n=3)) == "65.30 %, n=3"
    assert str(Estimate("rmse", 12.3456, low=10.0, high=15.0, n=4, unit="ms")) == (
        "12.3 ms [10.0, 15.0], n=4"
    )
    assert Estimate("gm_ratio", 1.05, unit="ratio").format() == "1.05"


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_estimates_refuse_to_be_ranked(compare: Callable[[object, object], bool]) -> None:
    with pytest.raises(TypeError, match="mape has an interval"):
        compare(MAPE, MAPE)
    with pytest.raises(TypeError, match="mape has an interval"):
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
    [
        (0.05869, "5.87 %"),
        (-0.1, "-10.00 %"),
        (0.99996, "100.0 %"),
        (9.999, "999.9 %"),
        (9.99996, "1000 %"),
        (52.45, "5245 %"),
        (999.99, "99999 %"),
        (1e4, "1.00e+06 %"),
        (4e-5, "<0.01 %"),
        (-4e-5, ">-0.01 %"),
        (0.0, "0.00 %"),
        (-0.0, "0.00 %"),
        (math.inf, "∞ %"),
        (math.nan, "n/a"),
    ],
)
def test_fractions_are_shown_as_percent(value: float, text: str) -> None:
    assert format_fraction(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1e-9, "1.000e-09"),
        (3.14159, "3.142"),
        (1234567.89, "1234568"),
        (1e9, "1.000e+09"),
        (-math.inf, "-∞"),
        (math.nan, "n/a"),
    ],
)
def test_numbers_have_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0207, "+2.1 %"), (-0.397, "-39.7 %"), (0.0, "0.0 %"), (4e-4, "<0.1 %"),
     (-4e-4, ">-0.1 %"), (12.345, "+1234 %"), (1e5, "+1.00e+07 %"), (math.nan, "n/a")],
)  # fmt: skip
def test_changes_have_a_sign_unless_there_is_none(value: float, text: str) -> None:
    assert format_change(value) == text


def test_no_text_of_an_interval_contradicts_its_numbers() -> None:
    rng = np.random.default_rng(0)
    # From ten times the smallest digit to beyond 100 %, some of them nearly equal.
    middle = np.exp(rng.uniform(np.log(5e-4), np.log(1.2), 4_000))
    for value, off in zip(middle.tolist(), rng.uniform(0, 0.3, 4_000) ** 4, strict=True):
        low, high = value * (1 - off), value * (1 + off)
        written = Estimate("mape", value, low=low, high=high).written()
        texts = [float(text.lstrip("<>")) for text in (written.low, written.number, written.high)]
        assert texts == sorted(texts), written
        if low < high and round(100 * low, 2) < round(100 * high, 2) < 100:
            assert written.low != written.high, written
        # One decimal, or two where one would not do.
        one = (f"{100 * low:.1f}", f"{100 * high:.1f}")
        fine = one[0] != one[1] and float(one[0]) <= round(100 * value, 2) <= float(one[1])
        if fine and 100 * low > 0.05 and 100 * high < 99.9:
            assert (written.low, written.high) == one


@pytest.mark.core
def test_a_number_has_the_digits_that_its_interval_supports() -> None:
    rng = np.random.default_rng(0)
    middle, sides = np.exp(rng.uniform(np.log(1e-3), np.log(900), 4_000)), rng.random((4_000, 2))
    for value, (down, up) in zip(middle.tolist(), (0.9 * sides**2).tolist(), strict=True):
        numbers = value * (1 - down), value, value * (1 + up)
        low, _, high = numbers
        written = Estimate("gm_ratio", value, low=low, high=high, unit="ratio").written()
        texts = (written.low, written.number, written.high)
        shown = [float(text) for text in texts]
        assert shown == sorted(shown), written
        digits = [len(text.replace(".", "").lstrip("0")) for text in texts]
        assert all(2 <= n <= 5 for n in digits), written
        nearer = value * min(down, up)
        for text, number, n in zip(texts, numbers, digits, strict=True):
            # The last digit is at most a tenth of the nearer side, unless four are not enough
            # (for 0.00099951, three: the first two are those of 0.0010).
            most = n >= 4 or (n == 3 and text.lstrip("0.").startswith("99"))
            assert abs(float(text) - number) <= 0.101 * nearer or most, written
            # It is at least a hundredth, unless there are two digits only.
            decimals = len(text.partition(".")[2])
            assert n <= 2 or not decimals or 10**-decimals >= 0.019 * nearer, written


@pytest.mark.parametrize(
    ("numbers", "percent", "number"),
    [
        ((0.0874, 0.056, 0.121), "8.74 % [5.6, 12.1]", "0.087 [0.056, 0.121]"),
        ((0.271, 0.013, 12.0), "27.10 % [1.3, >999]", "0.27 [0.013, 12.00]"),
        ((0.0877, 0.0876, 0.12), "8.77 % [8.76, 12.00]", "0.08770 [0.08760, 0.1200]"),
        ((0.0004, 0.0003, 0.0005), "0.04 % [0.03, 0.05]", "0.00040 [0.00030, 0.00050]"),
        ((-0.0211, -0.045, 0.0004), "-2.11 % [-4.50, 0.04]", "-0.021 [-0.045, 0.00040]"),
        ((9.9996, 9.9, 10.2), "1000 % [990, 1020]", "10.00 [9.90, 10.20]"),
        ((8.12, 1e-9, 3e8), "812.0 % [<0.1, >99999]", "8.1 [<0.0001, >9999999]"),
        ((2e7, 10.0, 3e8), "2.00e+09 % [1.00e+03, 3.00e+10]", "2.000e+07 [1.000e+01, 3.000e+08]"),
        ((0.1, 0.0, math.inf), "10.00 % [0.0, ∞]", "0.10 [0, ∞]"),
        ((math.nan, 0.0, 1.0), "n/a [0.0, 100.0]", "n/a [0, 1]"),
        ((math.inf, 0.0, math.inf), "∞ % [0.0, ∞]", "∞ [0, ∞]"),
    ],
)
def test_an_interval_has_the_form_of_its_value(
    numbers: tuple[float, float, float], percent: str, number: str
) -> None:
    value, low, high = numbers
    assert Estimate("mape", value, low=low, high=high).format() == percent
    assert Estimate("gm_ratio", value, low=low, high=high, unit="ratio").format() == number


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12) | (
    st.floats(-1, 1) | st.floats(90, 110) | st.floats(-1e-3, 1e-3)
)


def read(text: str) -> tuple[float, float]:
    """Return between which two numbers a text says that a figure lies, rounding allowed for."""
    if text[0] in "<>":
        end = float(text[1:])
        other = 0.0 if (text[0] == "<") == (end > 0) else math.copysign(math.inf, end)
        return min(end, other), max(end, other)
    mantissa, _, exponent = text.partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    if not exponent and "." not in text:
        half = max(half, abs(float(text)) * 5e-4)
    # Half a digit, and the half beside it that two roundings can make of a power of ten.
    return float(text) - 1.01 * half, float(text) + 1.01 * half


@given(NUMBERS)
@example(99.996)
@example(999.9996)
@example(-1e-300)
def test_what_is_shown_is_the_number_within_rounding(value: float) -> None:
    for text, shown in (
        (format_fraction(value), 100 * value),
        (format_change(value), 100 * value),
        (format_number(value), value),
    ):
        low, high = read(text.removesuffix(" %"))
        tolerance = 1e-9 * abs(shown)
        assert low - tolerance <= shown <= high + tolerance
        assert (shown != 0) == any(sign in text for sign in "123456789")
        assert not text.startswith("-0.0 ")


@given(NUMBERS, NUMBERS)
@example(0.999949, 0.99996)
@example(999.994, 999.996)
@example(9_999_999.4, 9_999_999.6)
@example(9.999949e-5, 1e-4)
def test_a_larger_number_is_not_shown_as_a_smaller_one(first: float, second: float) -> None:
    first, second = sorted((first, second))
    for write in (format_fraction, format_change, format_number):
        one, other = (read(write(x).removesuffix(" %")) for x in (first, second))
        assert sum(one) <= sum(other)


@given(st.lists(NUMBERS, min_size=3, max_size=3).map(sorted), st.sampled_from(["fraction", "ms"]))
@example([0.0876, 0.0877, 0.12], "fraction")
@example([0.1, 9.0, 1e6], "fraction")
@example([-0.12, -0.0877, -0.0876], "fraction")
def test_an_interval_that_contains_its_value_does_so_as_shown(ends: list[float], unit: str) -> None:
    low, value, high = ends
    text = Estimate("x", value, low=low, high=high, unit=unit).format()
    shown, interval = text.removesuffix("]").split(" [")
    parts = [interval.split(", ")[0], shown.split()[0], interval.split(", ")[1]]
    ends = [float(part.lstrip("<>")) for part in parts]
    assert ends == sorted(ends)
    exponents = ["e" in part for part in parts if part.strip("<>") != "0"]
    assert all(exponents) or not any(exponents)
    assert not re.search(r"-0(\.0+)?(?![.\d])", text)


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(InputError, ValueError)
    error = MissingExtraError("statsmodels", "drivers", "the mixed regression")
    assert isinstance(error, ImportError)
    assert "pip install 'errcomp[drivers]'" in str(error)
    assert describe_rows([1, 2, 3]) == "rows 1, 2, 3"


def test_an_estimate_equals_no_number() -> None:
    one = Estimate("mape", 0.1, n=3)
    assert (one == one, one == "0.1", one == None) == (True, False, False)  # noqa: E711
    assert one != Estimate("mape", 0.1, n=3)
    assert len({one, one, Estimate("mape", 0.1, n=3)}) == 2
    for number in (0.1, np.float64(0.1), 1):
        with pytest.raises(TypeError, match="mape has an interval: compare .value"):
            _ = one == number
        with pytest.raises(TypeError, match="mape has an interval"):
            _ = one != number


@dataclass(frozen=True)
class _Judged(Document):
    """A row whose estimate has no name of its own."""

    KEYS: ClassVar = ("n", FlatEstimate("error", "mape", 0.9, "how"))

    n: Count
    error: Estimate


def test_an_estimate_in_the_columns_of_a_row_comes_back() -> None:
    row = _Judged(16, Estimate("mape", 0.08, 0.05, 0.12, level=0.9, method="bca", n=16))
    document = row.to_dict()
    assert document == {"n": 16, "mape": 0.08, "mape_low": 0.05, "mape_high": 0.12, "how": "bca"}
    found = _Judged.from_field(Field(document, "row", document)).error
    assert (found.figure, found.value, found.low, found.high) == ("mape", 0.08, 0.05, 0.12)
    assert (found.level, found.method, found.n) == (0.9, "bca", 16)
    bare = {**document, "mape_low": None, "mape_high": None}
    found = _Judged.from_field(Field(bare, "row", bare)).error
    assert (found.low, found.level, found.seed, found.method) == (None, None, None, "bca")
    for name, value, message in (
        ("how", 1, "row.how must be text, got 1"),
        ("mape", "x", "row.mape must be a number"),
        ("mape_low", None, "mape_low"),
    ):
        wrong = {**document, name: value}
        with pytest.raises(InputError, match=message):
            _Judged.from_field(Field(wrong, "row", wrong))
    properties = _Judged.json_schema({})["properties"]
    number = {"type": ["number", "null"]}
    assert {name: properties[name] for name in ("mape", "mape_low", "mape_high", "how")} == {
        "mape": number, "mape_low": number, "mape_high": number, "how": {"type": "string"}
    }  # fmt: skip
