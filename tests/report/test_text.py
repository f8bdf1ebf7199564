"""Names and numbers: short, different where they are, with the digits that matter."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from errcomp.report._text import count, fitting, share, shorten, span

NAMES = st.lists(st.text(max_size=80), min_size=1, max_size=6)


@settings(deadline=None)
@given(NAMES, st.integers(8, 40))
def test_names_fit_on_one_line(names, width):
    for name in [*fitting(names, width), *(shorten(name, width) for name in names)]:
        assert 0 < len(name) <= width
        assert name.isprintable()


def test_a_short_name_stays_as_it_is():
    assert shorten("softmax") == "softmax"
    assert shorten("two\nlines\x00") == "two lines"
    assert shorten(" \t") == "(no name)"


def test_long_names_that_differ_stay_different():
    names = [f"void kernel<{'int, ' * 9}tile{i}, {'float, ' * 9}>" for i in range(12)]
    short = fitting(names)
    assert len(set(short)) == 12
    assert all(f"tile{i}" in name for i, name in enumerate(short))
    # One is the start of the other: the first is told by where it ends.
    assert len(set(fitting(["x" * 30, "x" * 60], 12))) <= 2
    assert fitting(["same" * 20] * 2)[0] == shorten("same" * 20)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (128.84, 183.96, "129 – 184"),
        (150.96, 159.31, "151.0 – 159.3"),
        (1e6, 1e6 + 1, "1000000.0 – 1000001.0"),
        (0.0, 0.0, "0 – 0"),
        (5.0, 5.0, "5.00 – 5.00"),
        (-483.2, 503.0, "−483 – 503"),
        (1.5e-7, 3.5e-7, "1.5e-07 – 3.5e-07"),
        (1.5e12, 3e12, "1.5e+12 – 3e+12"),
        (7.5, math.inf, "7.50 – ∞"),
        (math.inf, math.inf, "∞ – ∞"),
    ],
)
def test_an_interval_has_the_digits_that_tell_its_ends_apart(low, high, text):
    assert span(low, high) == text


def test_shares_and_counts():
    assert [share(x) for x in (1.5, 0.0995, 0.0994, 0.001, 0.00099, -0.0001, -0.2)] == [
        "150 %", "10 %", "9.9 %", "0.1 %", "<0.1 %", ">−0.1 %", "−20 %",
    ]  # fmt: skip
    assert (count(0, "total"), count(2, "class")) == ("0 totals", "2 classes")
