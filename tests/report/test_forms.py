"""How values are written, and that media sort and align them by value."""

from __future__ import annotations

import math
from typing import Any

import pytest

from errcomp.report import forms
from errcomp.report.model import Cell, Column, Form, Table
from errcomp.report.page import grid_of
from errcomp.report.tables.latex import latex
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
        (forms.estimate, "–"),
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
    cells = [row[0] for row in grid_of(figures(wide, tiny)).rows]
    assert [cell.text for cell in cells] == ["50.00 % [10.0, >999]‡", "<0.01 %"]
    assert [cell.value for cell in cells] == [0.5, 2e-7]


def test_a_paper_aligns_parts_and_keeps_signs_and_bounds_without_digits() -> None:
    made = latex([figures(Estimate("mape", 0.5, 0.1, 30.0), Estimate("mape", 0.0874))])
    lines = [line for line in made.splitlines() if line.startswith(("50", "8.7"))]
    assert lines == [r"50.00 & [\num{10.0}, $>$999]\ddag{} \\", r"8.74 &  \\"]
