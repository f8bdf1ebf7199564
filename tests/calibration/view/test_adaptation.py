"""Reports of adapted models and of planned runs: what the cells, notes and figures say."""

from __future__ import annotations

from typing import Any

import pytest

from errcomp.calibration.plausibility import FlaggedRun
from errcomp.calibration.transfer.adaptation import Adaptation, AdaptedDevice, LeftOutRun
from errcomp.calibration.transfer.choosing import NextRun, RunPlan
from errcomp.report.model import Table


def texts(table: Table) -> list[list[str]]:
    return [[one.cell(row).text for one in table.columns] for row in table.rows]


def adapted(**changes: Any) -> Adaptation:
    rows = (
        AdaptedDevice("H100", False, 1, 0.123, 0.05, 0.456, 4),
        AdaptedDevice("T4", True, 3, 0.08, -0.02, 1.2, 1),
        AdaptedDevice("V100", True, 2, 0.02, 0.0, 1.0, 3),
        AdaptedDevice("L4", False, 2, 0.02, 0.0, 1.0, 1),
    )
    return Adaptation(**({"rows": rows, "estimator": "stack", "left_out": ()} | changes))


def plan(**changes: Any) -> RunPlan:
    rows = (NextRun("a", "H100", False, 0.304, 0.356), NextRun("b", "T4", True, 0.214, 0.331))
    known = {
        "rows": rows, "width": 0.412, "candidates": 5, "targets": 2, "estimator": "stack",
        "devices": 4, "devices_needed": 10,
    }  # fmt: skip
    return RunPlan(**(known | changes))


def test_a_device_says_what_its_runs_changed_and_from_what_that_was_learnt() -> None:
    view = adapted().view()
    (table,) = view.tables
    assert [column.header for column in table.columns if column.key] == ["Device"]
    assert texts(table) == [
        ["H100", "no", "1", "12.30 %", "+5.0 %", "0.46", "4 held-out devices"],
        ["T4", "yes", "3", "8.00 %", "-2.0 %", "1.2", "1 held-out model"],
        ["V100", "yes", "2", "2.00 %", "0.0 %", "1", "3 held-out models"],
        ["L4", "no", "2", "2.00 %", "0.0 %", "1", "1 held-out device"],
    ]
    assert view.line == ["H100: 1 run", "T4: 3 runs", "V100: 2 runs", "L4: 2 runs"]
    assert len(table.notes) == 1


def test_what_was_not_used_what_was_flagged_and_what_is_too_little_is_said() -> None:
    few = AdaptedDevice("H100", False, 1, 0.1, 0.05, 0.5, 0)
    left_out = (LeftOutRun("a", "no device is given"), LeftOutRun("b", "no device is given"))
    flagged = (FlaggedRun("c", "a-rule", "its time is below that of its kernels"),)
    (table,) = adapted(rows=(few,), left_out=left_out, flagged=flagged).view().tables
    assert texts(table)[0][-1] == "nothing: too few"
    told = [note.text for note in table.remarks()]
    assert told[1] == "Not used: 2 runs (a, b): no device is given."
    assert told[2] == "c was used, though flagged: its time is below that of its kernels."
    assert told[3].startswith("With fewer than three devices (models, for a device of the fit)")


def test_a_plan_says_what_each_run_narrows() -> None:
    view = plan(left_out=("c", "d")).view()
    (table,) = view.tables
    assert [column.header for column in table.columns if column.key] == ["Run"]
    assert texts(table) == [
        ["a", "H100", "30.40 %", "35.60 %"],
        ["b", "T4", "21.40 %", "33.10 %"],
    ]
    told = [note.text for note in table.remarks()]
    assert (
        "Today the mean width of the 90 % bands of 2 target runs is 41 % of the prediction"
    ) in told[0]
    assert told[1:] == [
        "Not used: 2 runs (c, d): no device is given.",
        "A 90 % band is guaranteed for a new device only with at least 10 devices in the fit; this "
        "fit has 4.",
    ]
    assert view.line == ["2 runs", "90 % bands 41 → 21 % wide", "2 targets"]


def test_a_plan_for_devices_of_the_fit_or_with_enough_of_them_needs_no_warning() -> None:
    known = (NextRun("b", "T4", True, 0.2, 0.3),)
    for enough in (plan(rows=known, targets=1), plan(devices=10)):
        (table,) = enough.view().tables
        assert len(table.remarks()) == 1
    assert plan(rows=known, targets=1).view().line[::2] == ["1 run", "1 target"]


@pytest.mark.extras
def test_each_device_is_drawn_with_its_change() -> None:
    pytest.importorskip("matplotlib")
    ax = adapted().plot()
    assert ax.get_title(loc="left") == "Adapted to 4 devices"
    told = [text.get_text() for text in ax.texts]
    assert "by stack; n: measured runs" in told
    assert [text for text in told if "band" in text] == [
        "+5.0 %, band × 0.46", "-2.0 %, band × 1.20", "+0.0 %, band × 1.00", "+0.0 %, band × 1.00",
    ]  # fmt: skip


@pytest.mark.extras
def test_the_widths_of_a_plan_are_drawn_with_those_of_random_runs() -> None:
    pytest.importorskip("matplotlib")
    ax = plan().plot()
    assert ax.get_title(loc="left") == "Expected width of 90 % bands, 2 targets"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1. a", "2. b"]
    told = [text.get_text() for text in ax.texts]
    assert {"30 %", "21 %", "by stack; each row: after this run and those above it"} <= {*told}
    places = {round(float(x), 6) for line in ax.lines for x in line.get_xdata()}
    assert {30.4, 21.4, 35.6, 33.1, 41.2} <= places
