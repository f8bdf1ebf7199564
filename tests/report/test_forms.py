"""How values are written, and that media sort and align them by value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from errcomp.report import forms
from errcomp.report.latex import latex
from errcomp.report.model import Cell, Column, Form, Table
from errcomp.results import Estimate, Written


@pytest.mark.parametrize(
    ("form", "value", "text", "parts"),
    [
        (forms.percent, 0.0874, "8.74 %", Written("8.74", " %")),
        (forms.percent, 2e-7, "<0.01 %", None),
        (forms.percent, math.inf, "∞ %", None),
        (forms.change, -0.0004, ">-0.1 %", None),
        (forms.change, 0.0207, "+2.1 %", Written("+2.1", " %")),
        (forms.count, 3197, "3,197", Written("3,197")),
        (forms.number, 2.5e9, "2.500e+09", Written("2.500e+09")),
        (forms.significant(3, "ms"), 12.345, "12.3 ms", Written("12.3", " ms")),
        (forms.fixed(2), 0.5, "0.50", Written("0.50")),
        (forms.p_value, 0.0002, "< 0.001", None),
        (forms.p_value, 0.034, "0.034", Written("0.034")),
        (forms.share, 0.449, "45 %", Written("45", " %")),
        (forms.number_or("·"), 0, "·", None),
        (forms.number_or("·"), 3197, "3,197", Written("3,197")),
        (forms.words_or(forms.share), 0.449, "45 %", Written("45", " %")),
        (forms.finite_percent, 0.0874, "8.74 %", Written("8.74", " %")),
    ],
)
def test_a_number_has_a_text_a_value_and_parts(
    form: Form, value: float, text: str, parts: Written | None
) -> None:
    assert form.write(value) == Cell(text, value, parts)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        *((form, "–") for form in (forms.percent, forms.change, forms.count, forms.number)),
        *((form, "–") for form in (forms.estimate, forms.fixed(2), forms.interval(1), forms.share)),
        (forms.finite_percent, "–"),
        (forms.p_value, "—"),
    ],
)
def test_nothing_has_no_value(form: Form, text: str) -> None:
    assert form.write(None) == Cell(text)


def test_what_is_not_a_number_is_a_word() -> None:
    assert forms.number.write(math.nan) == forms.percent.write(math.nan) == Cell("n/a")
    assert forms.finite_percent.write(math.inf) == Cell("–")


def test_two_ends_sort_by_the_lower() -> None:
    assert forms.band.write((3.0, 41.5)) == Cell("3 … 41.5", 3.0)


@pytest.mark.parametrize(
    ("form", "ends", "text", "parts"),
    [
        (forms.interval(0, scale=100), (0.96, 0.9, 0.992), "96 [90, 99]", ("96", "", "90", "99")),
        (forms.interval(1, unit=" %"), (0.96, 0.9, 1.0), "1.0 % [0.9, 1.0]",
         ("1.0", " %", "0.9", "1.0")),
        (forms.interval(3, signed=True), (0.1, -0.2, 0.4), "+0.100 [-0.200, 0.400]",
         ("+0.100", "", "-0.200", "0.400")),
        (forms.interval(1, scale=100, signed=True, ends_signed=True), (-0.021, -0.05, 0.004),
         "-2.1 [-5.0, +0.4]", ("-2.1", "", "-5.0", "+0.4")),
        (forms.interval(1), (2.0, None, 3.0), "2.0", ("2.0",)),
        (forms.interval(1), (2.0, 1.0, None), "2.0", ("2.0",)),
        (forms.changes(), (0.021, -0.0033, 0.05), "+2.1 % [-0.3, 5.0]",
         ("+2.1", " %", "-0.3", "5.0")),
        (forms.changes(unit=""), (0.021, None, None), "+2.1", ("+2.1", "")),
    ],
)  # fmt: skip
def test_a_value_has_the_ends_of_its_interval(
    form: Form, ends: forms.Ends, text: str, parts: tuple[str, ...]
) -> None:
    assert form.write(ends) == Cell(text, ends[0], Written(*parts))
    value, low, high = ends
    assert form.write(Estimate("bias", value, low=low, high=high)) == form.write(ends)


def test_a_negative_zero_would_lose_its_sign_in_a_paper() -> None:
    assert forms.fixed(1).write(-0.01) == Cell("-0.0", -0.01)
    assert forms.fixed(1).write(-0.06) == Cell("-0.1", -0.06, Written("-0.1"))
    assert forms.interval(1).write((-0.01, -1.0, 1.0)) == Cell("-0.0 [-1.0, 1.0]", -0.01)


def test_a_word_may_stand_for_a_value() -> None:
    form = forms.words_or(forms.percent)
    assert form.right
    assert form.write("3 of 8, after 2") == Cell("3 of 8, after 2")
    assert form.write(None) == Cell("–")


def test_values_are_plain_numbers() -> None:
    for form, value in (
        (forms.number, np.float64(1.5)),
        (forms.percent, np.float64(1.5)),
        (forms.p_value, np.float64(0.5)),
        (forms.count, np.int64(2)),
        (forms.band, (np.float64(1.5), np.float64(2.5))),
    ):
        assert type(form.write(value).value) is float


@pytest.mark.parametrize(
    ("text", "number", "parts"),
    [
        ("5.2%", 0.052, Written("5.2", "%")),
        ("5.2 %", 0.052, Written("5.2", " %")),
        ("3.8×", 3.8, Written("3.8", "×")),
        ("218,432", 218432.0, Written("218,432")),
        ("−3.5 %", -0.035, Written("−3.5", " %")),
        ("-0.0%", -0.0, None),
        ("<5%", 0.05, None),
        ("5–10%", 0.05, None),
        ("~15%", 0.15, None),
        ("2.3% MAPE", None, None),
        ("—", None, None),
        ("", None, None),
    ],
)
def test_what_others_printed_keeps_its_text_and_sorts_by_its_number(
    text: str, number: float | None, parts: Written | None
) -> None:
    assert forms.printed.write((text, number)) == Cell(text, number, parts)


def figures(*values: Any) -> Table:
    """Make a table of one column of estimates, with a sign behind the first."""
    column = Column(
        "MAPE",
        lambda value: value,
        forms.estimate,
        marks=lambda value: "‡" if value is values[0] else "",
    )
    return Table("T", [column], values)


def test_a_page_sorts_by_the_value_not_by_what_is_shown() -> None:
    tiny, wide = Estimate("mape", 2e-7), Estimate("mape", 0.5, 0.1, 30.0)
    table = figures(wide, tiny)
    cells = [table.columns[0].cell(row) for row in table.rows]
    assert [cell.text for cell in cells] == ["50.00 % [10.0, >999]‡", "<0.01 %"]
    assert [cell.value for cell in cells] == [0.5, 2e-7]


def test_a_paper_aligns_parts_and_keeps_signs_and_bounds_without_digits() -> None:
    made = latex([figures(Estimate("mape", 0.5, 0.1, 30.0), Estimate("mape", 0.0874))])
    lines = [line for line in made.splitlines() if line.startswith(("50", "8.7"))]
    assert lines == [r"50.00 & [\num{10.0}, $>$999]\ddag{} \\", r"8.74 &  \\"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "< 1 %"), (0.0049, "< 1 %"), (0.005, "< 1 %"), (0.0051, "1 %"), (0.449, "45 %"),
        (0.9949, "99 %"), (0.995, "> 99 %"), (1.0, "> 99 %"),
    ],
)  # fmt: skip
def test_a_probability_is_neither_impossible_nor_certain(value: float, text: str) -> None:
    cell = forms.probability.write(value)
    assert (cell.text, cell.value) == (text, value)


def test_an_unknown_probability_is_a_dash() -> None:
    nothing = forms.probability.write(None)
    assert (nothing.text, nothing.value) == (forms.percent.write(None).text, None)
