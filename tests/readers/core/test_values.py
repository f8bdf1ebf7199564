"""Values from files, converted to the expected type, or refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import (
    DamagedError,
    amount,
    count_of,
    decimal_comma,
    dicts_of,
    digits,
    number_at,
    text,
    whole,
    with_point,
)

SOURCE = Source(Path("a.log"))


def test_a_number_may_be_missing_where_it_may() -> None:
    assert number_at(SOURCE, "Time", " 1.5e3 ") == 1500.0
    for missing in ("n/a", "N/A", "-n/a"):
        assert math.isnan(number_at(SOURCE, "Time", missing))
    for given, may in (("n/a", False), ("na", True), ("1_0", True), ("x" * 50, True)):
        with pytest.raises(InputError) as caught:
            number_at(SOURCE, "Time", given, 7, missing=may)
        assert str(caught.value) == (
            f"a.log: line 7: Time must be a number, got {given[:40]!r}. The file may be damaged: "
            "copy it again."
        )


@pytest.mark.parametrize(
    ("value", "is_whole", "is_count"),
    [
        (0, True, True),
        (-1, True, False),
        (2**63 - 1, True, True),
        (2**63, False, False),
        (-(2**63) + 1, True, False),
        (-(2**63), False, False),
        (True, False, False),
        (1.0, False, False),
        ("7", False, False),
        (None, False, False),
    ],
)
def test_whole_numbers_of_64_bits(value: Any, is_whole: bool, is_count: bool) -> None:
    assert whole(value) == (value if is_whole else None)
    assert count_of(value) == (value if is_count else None)


def test_counts_may_be_digits() -> None:
    assert digits("9" * 18) == count_of("9" * 18, or_text=True) == 10**18 - 1
    for other in ("9" * 19, "-1", "1.0", "٣", "²", ""):
        assert count_of(other, or_text=True) is None
    with pytest.raises(DamagedError, match=r"^a whole number is too long \(19 digits\): 9{19}…$"):
        digits("9" * 19)


def test_what_is_of_another_type_is_left_out() -> None:
    assert dicts_of([{"a": 1}, 2, [{}], {}]) == [{"a": 1}, {}]
    assert dicts_of({"a": 1}) == []
    assert (text("x"), text(1)) == ("x", None)


@pytest.mark.parametrize("given", ["0", "2.5", "1e308"])
def test_amounts_are_finite_and_not_negative(given: str) -> None:
    assert amount("a.log: line 2", "Energy", given) == float(given)


@pytest.mark.parametrize("given", ["-1e-9", "inf", "nan", "many"])
def test_what_is_no_amount_is_refused(given: str) -> None:
    with pytest.raises(InputError, match=f"^a.log: line 2: Energy must be .* ≥ 0, got '{given}'"):
        amount("a.log: line 2", "Energy", given)


@pytest.mark.parametrize(
    ("written", "comma"),
    [
        *(("33,0", True), ("2.176,0", True), ("0,074", True), ("1,2345", True)),
        *(("1.234.567", True), (" 33,25 ", True), ("1.234,5678", True)),
        *(("2,176", False), ("2.176", False), ("1,234,567", False), ("1,234.5", False)),
        *(("12", False), ("1.234", False), ("33,", False)),
    ],
)
def test_a_decimal_comma_is_seen_where_it_can_be_nothing_else(written: str, comma: bool) -> None:
    assert decimal_comma([written]) is comma
    assert decimal_comma(["1", written, "2"]) is comma


def test_thousands_may_be_set_apart() -> None:
    assert with_point("1 234 567,5", comma=True) == "1234567.5"
    assert with_point("1’234’567.5", comma=False) == "1234567.5"
    assert with_point("1'234", comma=False) == "1234"
    assert with_point("1 23", comma=False) == "1 23"
    assert with_point("1.234,5", comma=False) == "1.234,5"
