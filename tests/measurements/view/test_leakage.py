"""The report of a comparison with a training table, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errcomp.measurements.leaking import DistanceClass, Leakage, LeftOut, UnseenValue
from errcomp.report.model import Table
from errcomp.results import Estimate


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate("mape", value, low, high, 0.95)


def compared(**changes: Any) -> Leakage:
    classes = (
        DistanceClass("same configuration", 2, estimate(0.05), (1, 2)),
        DistanceClass("further", 8, estimate(0.1), (3, 4, 5)),
    )
    plain = Leakage(
        source="",
        training="t.csv",
        tool="",
        n=10,
        trained=30,
        shared=("device", "batch"),
        mape=estimate(0.09, 0.08, 0.1),
        classes=classes,
        new=estimate(0.1, 0.08, 0.12),
        unseen=(),
        left_out=(),
        dropped=(),
    )
    return replace(plain, **changes)


def tables(found: Leakage) -> dict[str, Table]:
    return {table.title: table for table in found.view().tables}


def notes_of(found: Leakage) -> list[str]:
    return [str(note) for note in found.view().tables[0].notes]


@pytest.mark.parametrize(
    ("new", "text"),
    [
        (estimate(0.12, 0.091, 0.15), "make the pooled error look better."),
        (estimate(0.12, 0.09, 0.15), "may make the pooled error look better."),
        (estimate(0.12), "may make the pooled error look better."),
        (estimate(0.09, 0.07, 0.11), "do not make the pooled error look better."),
    ],
)
def test_notes_say_whether_seen_pairs_make_the_error_look_better(new: Estimate, text: str) -> None:
    first, second, last = notes_of(compared(new=new))
    assert first == f"All 10 pairs: MAPE {compared().mape.format()}."
    assert second == (
        "Without the 2 pairs whose configuration is in the training table: "
        f"{new.format()}. The pairs seen in training {text}"
    )
    assert last == "Compared with 30 training rows by device, batch."


def test_notes_where_all_or_none_were_seen() -> None:
    classes = compared().classes
    all_seen = compared(classes=classes[:1], new=None)
    assert notes_of(all_seen)[1:-1] == [
        "Every configuration is in the training table: nothing is known about others."
    ]
    assert all_seen.view().verdicts[0].head == "Seen in training"
    assert all_seen.view().verdicts[0].text == (
        "2 of 10 pairs have a configuration of the training table"
    )
    none = compared(classes=classes[1:])
    assert len(notes_of(none)) == 2
    assert none.view().verdicts[0].head == "Nothing seen"
    # Pairs without a new estimate, of which none was seen.
    assert len(notes_of(compared(classes=classes[1:], new=None))) == 2


def test_titles_name_the_tool_and_the_table() -> None:
    (title,) = tables(compared())
    assert title == "Error by distance to the training table: the given pairs"
    (title,) = tables(compared(tool="mine", source="p.csv"))
    assert title == "Error of mine by distance to the training table: p.csv"


def test_three_unseen_values_are_listed_and_the_others_counted() -> None:
    many = UnseenValue("device", tuple("ABCDE"), 6, estimate(0.1), None)
    few = UnseenValue("batch", ("1", "2", "3"), 4, estimate(0.1), estimate(0.05))
    table = tables(compared(unseen=(many, few)))["Values that the training table does not have"]
    (values,) = [column for column in table.columns if column.header == "Not in training"]
    assert [values.value(row) for row in table.rows] == ["A, B, C (+2)", "1, 2, 3"]
    assert "Values that the training table does not have" not in tables(compared())


def test_a_split_that_is_harder_than_a_random_one_is_named() -> None:
    title = "What other splits would report"
    rows, device = LeftOut("rows", 10, 0.05), LeftOut("device", 10, 0.12)
    table = tables(compared(left_out=(rows, device)))[title]
    assert str(table.notes[-1]) == (
        "A split by device would report a MAPE of 12.00 %, a random split only 5.00 %."
    )
    for left_out in ((rows, replace(device, mape=0.1)), (device,)):
        assert len(tables(compared(left_out=left_out))[title].notes) == 1
    assert title not in tables(compared())
