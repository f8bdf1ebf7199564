"""What a printed figure says about the number behind it."""

from __future__ import annotations

import math

import pytest

from errcomp.claims.printed import in_percent, parse_printed
from errcomp.errors import InputError


@pytest.mark.parametrize(
    ("text", "value", "low", "high", "decimals"),
    [
        ("2.3%", 0.023, 0.0225, 0.0235, 1),
        ("121.4%", 1.214, 1.2135, 1.2145, 1),
        ("7%", 0.07, 0.065, 0.075, 0),
        ("27.10%", 0.271, 0.27095, 0.27105, 2),
        ("~15%", 0.15, 0.145, 0.155, 0),
        (" 2.3 % ", 0.023, 0.0225, 0.0235, 1),
        ("0.97", 0.97, 0.965, 0.975, 2),
        (0.97, 0.97, 0.965, 0.975, 2),
        (5, 5.0, 4.95, 5.05, 1),
        ("3.8×", 3.8, 3.75, 3.85, 1),
        ("3.8x", 3.8, 3.75, 3.85, 1),
        ("-2.3%", -0.023, -0.0235, -0.0225, 1),
        ("1e-3", 0.001, 0.0005, 0.0015, 3),
    ],
)
def test_value_is_an_interval_of_the_printed_precision(text, value, low, high, decimals):
    p = parse_printed(text)
    assert (p.value, p.low, p.high, p.kind, p.decimals) == (value, low, high, "value", decimals)
    assert p.contains(low)
    assert not p.contains(high)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("<5%", [0.0, 0.0499], [0.05, -0.01]),
        ("≤5%", [0.0, 0.05], [0.0501]),
        ("<=5%", [0.05], [0.0501]),
        (">5%", [0.0501, 10.0], [0.05]),
        ("≥5%", [0.05], [0.0499]),
        (">=5 %", [0.05], [0.0499]),
        ("5–10%", [0.05, 0.10], [0.0499, 0.1001]),
        ("5-10%", [0.05, 0.10], [0.0499]),
        ("5% to 10%", [0.05, 0.10], [0.1001]),
        ("0.90–0.97", [0.90, 0.97], [0.98]),
        ("2–4×", [2.0, 4.0], [4.1]),
    ],
)
def test_bounds_and_ranges(text, inside, outside):
    p = parse_printed(text)
    assert p.value is None
    assert all(p.contains(x) for x in inside)
    assert not any(p.contains(x) for x in outside)


def test_a_lower_bound_has_no_upper_end():
    assert math.isinf(parse_printed(">5%").high)


@pytest.mark.parametrize(
    ("text", "value", "below", "above"),
    [
        ("≤5%", 0.05, False, False),
        ("<5%", 0.05, True, False),
        ("<=5%", 0.0501, True, False),
        ("5–10%", 0.10, False, False),
        ("5–10%", 0.05, False, False),
        ("5–10%", 0.0499, False, True),
        (">5%", 0.05, False, True),
        ("≥5%", 0.05, False, False),
        ("2.3%", 0.0235, True, False),
        ("2.3%", 0.0225, False, False),
    ],
)
def test_a_number_lies_on_one_side_of_a_figure_or_within(text, value, below, above):
    p = parse_printed(text)
    # The last bits of a sum do not decide.
    for near in (value, math.nextafter(value, 0), math.nextafter(value, math.inf)):
        assert (p.lies_below(near), p.lies_above(near)) == (below, above)
        assert p.contains(near) == (not below and not above)


@pytest.mark.parametrize(
    ("text", "ends", "inside", "outside"),
    [
        ("97.6%", (0.0235, 0.0245), [0.0245, 0.024], [0.0235]),  # 97.65 % rounds to 97.7 %
        (">95%", (0.0, 0.05), [0.0, 0.0499], [0.05]),
        ("≥95%", (0.0, 0.05), [0.05], [0.0501]),
        ("<95%", (0.05, 1.0), [0.0501, 1.0], [0.05]),
        ("≤95%", (0.05, 1.0), [0.05], [0.0499]),
        ("95–97%", (0.03, 0.05), [0.03, 0.05], [0.0299, 0.0501]),
    ],
)
def test_what_an_accuracy_leaves_has_the_ends_that_belong_to_it(text, ends, inside, outside):
    p = parse_printed(text).complement()
    assert p.ends == ends
    assert all(p.contains(x) for x in inside)
    assert not any(p.contains(x) for x in outside)
    assert p.text == text


@pytest.mark.parametrize(
    "text", ["", "N/A", "—", "2.3% MAPE", "0.97 Kendall tau", "nan", "inf", "5–", "%", "<"]
)
def test_what_is_not_one_figure_is_refused_with_the_remedy(text):
    with pytest.raises(InputError, match="Write a number as it was printed"):
        parse_printed(text)


def test_not_a_number_is_refused():
    with pytest.raises(InputError, match="cannot read the figure nan"):
        parse_printed(float("nan"))


@pytest.mark.parametrize(
    ("text", "message"),
    [("10–5%", "begins with its larger end"), ("5×–10%", "different units")],
)
def test_impossible_ranges_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_printed(text)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("2.3%", "2.3 %"),
        ("2.3 %", "2.3 %"),
        ("0.05", "5 %"),
        ("0.050", "5.0 %"),
        ("1e-3", "0.1 %"),
        ("≤0.1", "≤10 %"),
        ("~15%", "~15 %"),
        ("0.05-0.10", "5-10 %"),
        ("5–10%", "5–10 %"),
        ("2–4×", "2–4×"),
        ("", ""),
    ],
)
def test_errors_are_shown_in_per_cent(printed: str, shown: str) -> None:
    assert in_percent(printed) == shown
    if "%" in shown:  # the same figure, to the digit
        one, other = parse_printed(printed), parse_printed(shown)
        assert (one.low, one.high) == (other.low, other.high)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("٢.٣%", r"cannot read the figure '٢\.٣%'\. Write a number as it was printed"),
        ("1e400", "the exponent of the figure '1e400' is out of range. Write the number without"),
        ("1e-400%", "the exponent of the figure '1e-400%' is out of range"),
    ],
)
def test_other_digits_and_huge_exponents_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_printed(text)
    assert parse_printed("1e300").value == 1e300
