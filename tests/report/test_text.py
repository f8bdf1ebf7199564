"""Names and numbers: short, different where they are, with the digits that matter."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from errcomp.report.drawing.words import count, exact, fitting, number, share, shorten, signed, span

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
    assert fitting(["same" * 20] * 2)[0] == shorten("same" * 20)


@settings(deadline=None)
@given(NAMES, st.integers(8, 40))
def test_two_different_names_never_print_the_same(names, width):
    short = fitting(names, width)
    assert len(set(short)) == len(set(names))
    for name, text in zip(names, short, strict=True):
        assert text == short[names.index(name)]
        if name.isprintable() and len(name) <= width and " " not in name and name:
            assert text == name or text.startswith(name[:4])


def test_of_long_names_that_begin_alike_the_end_is_kept(long_names):
    names = long_names(40)
    assert {len(name) for name in names} == {80}
    short = fitting(names)
    assert all(text.startswith("…") and text[1:] in name
               for text, name in zip(short, names, strict=True))  # fmt: skip
    assert [text[-4:] for text in short] == [name[-4:] for name in names]
    assert len(set(short)) == 40


@pytest.mark.parametrize(
    "names",
    [
        ["x" * 30, "x" * 60],
        [f"{i}{'x' * 60}" for i in range(3)],
        [f"{'y' * 40}{i}{'x' * 40}" for i in range(3)],
        ["…" + "x" * 11, "z" * 40 + "x" * 11],
        ["a b", "a\nb", "a  b"],
        ["", "(no name)"],
    ],
)
def test_names_that_end_alike_stay_different(names):
    short = fitting(names, 12)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= 12


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (128.84, 183.96, "129 – 184"),
        (150.96, 159.31, "151.0 – 159.3"),
        (1e6, 1e6 + 1, "1,000,000.0 – 1,000,001.0"),
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
    assert (count(1, "series"), count(35, "series")) == ("1 series", "35 series")
    assert [signed(x) for x in (0.5, 0.0, -0.5)] == ["+50 %", "0 %", "−50 %"]
    assert [signed(x, exact) for x in (0.5, 0.0, -0.5)] == ["+50.00 %", "0.00 %", "−50.00 %"]


def test_numbers_at_ticks_have_no_exponent_where_people_use_none():
    ticks = (0.1 + 0.2, 1e6, 2.5e8, 1e9, -3600000.0, 0.0, 0.0001, 1e-5)
    assert [number(x) for x in ticks] == [
        "0.3", "1,000,000", "250,000,000", "1e+09", "−3,600,000", "0", "0.0001", "1e−05",
    ]  # fmt: skip


def test_a_name_that_ends_in_its_part_has_no_mark_there() -> None:
    # The names end alike, and the first ends before they differ.
    assert fitting(["a" * 20, "a" * 25], 12) == ["…aaaa", "…aaaaaaaaa"]
