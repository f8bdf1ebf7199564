"""When a rule counts as printing a cell."""

from __future__ import annotations

import pytest

from errcomp.claims.replicate.judging import Candidate, PrintedCell, judge, judge_range, no_data


def _cell(printed: str, unit: str = "fraction", value: float | None = 0.0) -> PrintedCell:
    return PrintedCell("t", "Table 0", "second", "row", "column", printed, value, unit)


def test_the_stated_rule_reproduces():
    cell = judge(_cell("5.87%"), [Candidate("mean", 0.05872, stated=True)], "A note.")
    assert (cell.status, cell.rule, cell.note) == ("reproduced", "mean", "A note.")
    assert cell.recomputed_text == "5.872 %"


def test_another_rule_reproduces_and_the_stated_one_is_shown():
    cell = judge(
        _cell("14.08%"),
        [Candidate("mean", 0.14074, stated=True), Candidate("rounded first", 0.140755)],
    )
    assert (cell.status, cell.rule) == ("reproduced under another rule", "rounded first")
    assert cell.note == "Mean: 14.074 %."


def test_the_first_rule_that_fits_is_taken():
    rules = [Candidate(name, 0.02, stated=False) for name in "ab"]
    assert judge(_cell("2%"), rules).rule == "a"


def test_no_rule_reproduces():
    rules = [Candidate("mean", 0.04, stated=True), Candidate("median", 0.05)]
    cell = judge(_cell("2%"), rules)
    assert (cell.status, cell.recomputed, cell.note) == ("not reproduced", 0.04, "Median: 5.0 %.")


@pytest.mark.parametrize("value", [0.07655, 0.0765500000000001, 0.0765499999999999])
def test_a_tie_may_be_printed_downwards(value):
    cell = judge(_cell("7.65%"), [Candidate("mean", value, stated=True)])
    assert cell.status == "reproduced"
    assert "exactly halfway" in cell.note


def test_the_lower_edge_belongs_to_the_print():
    edge = 0.07645 - 1e-18
    assert judge(_cell("7.65%"), [Candidate("mean", edge, stated=True)]).note == ""


def test_a_range_in_a_text_needs_both_ends():
    cell = _cell("Overstated 2–4×", unit="text", value=None)
    assert judge(cell, [Candidate("ratio", (2.3, 3.8), stated=True)]).status == "reproduced"
    one_end = judge(cell, [Candidate("ratio", (2.3, 4.8), stated=True)])
    assert (one_end.status, one_end.unit) == ("not reproduced", "ratio")


def test_a_single_number_is_no_range():
    bounds = [Candidate("bounds", (1.0, 3.0), stated=True)]
    assert judge(_cell("2", unit="count"), bounds).status == "not reproduced"
    agree = [Candidate("bounds", (2.0, 2.0), stated=True)]
    assert judge(_cell("2", unit="count"), agree).status == "reproduced"


def test_words_are_never_reproduced_by_a_number():
    cell = judge(_cell("Complete failure", unit="text"), [Candidate("r", 1.0, stated=True)])
    assert cell.status == "not reproduced"


@pytest.mark.parametrize(
    ("ends", "outwards", "status"),
    [
        ((0.0587, 0.0891), True, "reproduced under another rule"),
        ((0.0587, 0.0891), False, "not reproduced"),
        ((0.05, 0.09), True, "reproduced under another rule"),
        # 0.07 * 100 is a little more than 7 in binary, and its ceiling must not be 8.
        ((0.05, 0.07), True, "not reproduced"),
        ((0.0587, 0.0901), True, "not reproduced"),
    ],
)
def test_ends_of_a_range_may_be_rounded_outwards(ends, outwards, status):
    low, high = _cell("5%"), _cell("9%")
    cells = judge_range(low, high, [Candidate("rows", ends, outwards=outwards)])
    assert {cell.status for cell in cells} == {status}
    assert tuple(cell.recomputed for cell in cells) == ends


def test_both_ends_must_follow_the_same_rule():
    rules = [
        Candidate("a", (0.05, 0.2), stated=True),
        Candidate("b", (0.01, 0.09)),
        Candidate("c", 0.05),
    ]
    cells = judge_range(_cell("5%"), _cell("9%"), rules, "Both.")
    assert [cell.status for cell in cells] == ["not reproduced"] * 2
    assert [cell.recomputed for cell in cells] == [0.05, 0.2]
    assert cells[0].note.startswith("Both. B: 1.0 % to 9.0 %.")


def test_one_number_can_be_both_ends():
    cells = judge_range(_cell("5%"), _cell("5%"), [Candidate("a", 0.05, stated=True)])
    assert {cell.status for cell in cells} == {"reproduced"}


def test_no_data_says_why():
    cell = no_data(_cell("5.2%"), "A claim.")
    assert (cell.status, cell.recomputed, cell.rule, cell.note) == (
        "no data",
        None,
        "none",
        "A claim.",
    )
    assert cell.recomputed_text == ""
    assert cell.describe() == "Table 0, row, column: 5.2% printed: no data. A claim."
