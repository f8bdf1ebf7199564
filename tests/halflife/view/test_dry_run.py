"""The report of a history that was gone through: how much of it is shown, and in which words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from errcomp.halflife.gate.dry_run import Alarm, DryRun, KnownStep, Rate
from errcomp.halflife.steps.stability import ReportedStep
from errcomp.halflife.view.dry_run import delays, dry_run_view
from errcomp.report.model import Table


def step(k: int, delay: int, size: float = 0.1) -> KnownStep:
    return KnownStep(f"op{k}", f"op{k}", f"1.{k}", size, f"1.{k}" if delay else None, delay)


def gone_through(**changes: Any) -> DryRun:
    rates = tuple(
        Rate(order, 4, 40, 1, 2, fired) for order, fired in (("in order", 3), ("shuffled", 0))
    )
    done = DryRun(
        versions=tuple(f"1.{k}" for k in range(30)),
        n_series=6,
        alpha=0.05,
        promised=0.02,
        margin=0.0,
        rates=rates,
        alarms=(),
        steps=(),
        notes=(),
    )
    return replace(done, **changes)


def notes_of(table: Table) -> list[str]:
    return [str(note) for note in table.notes]


def values_of(table: Table, header: str) -> list[Any]:
    (column,) = [column for column in table.columns if column.header == header]
    return [column.value(row) for row in table.rows]


def test_the_twenty_largest_steps_are_shown_in_the_order_of_versions() -> None:
    # Those of the first two versions are the smallest; some go down.
    steps = [step(k, delay=k % 4, size=(-1) ** k * 0.01 * k) for k in range(1, 23)]
    table = dry_run_view(gone_through(steps=tuple(reversed(steps)))).tables[2]
    assert table.title == "How soon each step is found"
    assert values_of(table, "Step at") == [f"1.{k}" for k in range(3, 23)]
    assert values_of(table, "Found at")[:3] == ["1.3", "never", "1.5"]
    assert values_of(table, "After validations")[:3] == [3, None, 1]
    assert values_of(table, "Size")[0] == pytest.approx(math.expm1(-0.03))
    assert notes_of(table) == ["The 20 largest of 22 are shown; --json lists all."]
    assert notes_of(dry_run_view(gone_through(steps=tuple(steps[:20]))).tables[2]) == []


def test_the_twenty_largest_alarms_are_shown_in_the_order_of_versions() -> None:
    alarms = [
        Alarm(f"1.{k}", f"1.{k - 1}", f"op{k}", "all", (-1) ** k * 0.01 * k, 0.01, k % 2 == 0)
        for k in range(1, 22)
    ]
    table = dry_run_view(gone_through(alarms=tuple(reversed(alarms)))).tables[1]
    assert values_of(table, "Reported at") == [f"1.{k}" for k in range(2, 22)]
    assert values_of(table, "Since")[0] == "1.1"
    assert values_of(table, "Step there")[:2] == ["yes", "no"]
    assert notes_of(table) == [
        "21 series alarms; for 11 of them the search over the whole history finds no step there.",
        "The 20 largest are shown; --json lists all.",
    ]
    assert len(notes_of(dry_run_view(gone_through(alarms=tuple(alarms[:20]))).tables[1])) == 1


def test_the_verdicts_count_gates_and_steps() -> None:
    steps = (step(1, 5), step(2, 6), step(3, 0), step(4, 1))
    quiet, found = dry_run_view(gone_through(steps=steps)).verdicts
    assert (quiet.head, quiet.tone) == ("Few false alarms", "good")
    assert quiet.text == (
        "— in random order and without its steps, 0 of 4 gates raised an alarm; the promise is 2 % "
        "of gates."
    )
    assert found.head == "3 of 4 steps found"
    assert found.text.startswith("— 2 of them within 5 validations.")
    every = dry_run_view(gone_through(steps=steps[:1])).verdicts[1]
    assert every.head == "1 of 1 step found"
    assert every.text.startswith("— all of them within 5 validations.")
    # Of four gates that each fire with 2 %, one fires or none, in 99 of 100 histories.
    rates = gone_through().rates
    for fired, tone in ((1, "good"), (2, "bad")):
        done = gone_through(rates=(rates[0], replace(rates[1], fired=fired)))
        assert dry_run_view(done).verdicts[0].tone == tone


def test_rates_are_by_thousand_looks() -> None:
    table = dry_run_view(gone_through()).tables[0]
    assert values_of(table, "Alarms per 1,000 looks") == [25.0, 25.0]
    assert values_of(table, "Repeats per 1,000 looks") == [50.0, 50.0]
    none = replace(gone_through().rates[0], looks=0)
    report = dry_run_view(gone_through(rates=(none,)))
    assert math.isnan(values_of(report.tables[0], "Alarms per 1,000 looks")[0])
    assert report.verdicts[0].head == "Cannot tell yet"


def test_the_margin_is_a_fraction() -> None:
    method = dict(dry_run_view(gone_through(margin=math.log(1.25))).method)
    assert method == {"Promise": "5 % over the first 1,000 checks", "Margin": "25.00 %"}
    assert dict(dry_run_view(gone_through()).method)["Margin"] == "none"


def test_steps_that_were_withdrawn_are_counted_by_their_p_and_reason() -> None:
    def reported(p: float, reason: str) -> ReportedStep:
        return ReportedStep("op", "1.3", 0.1, p, "1.4", 1, None, reason)

    assert len(dry_run_view(gone_through()).tables) == 3
    clear = [reported(0.005, ""), reported(0.001, "less evidence")]
    others = [reported(0.0051, "later values came back")]
    table = dry_run_view(gone_through(reported=(*clear, *others))).tables[3]
    assert [column.header for column in table.columns] == [
        *("p when reported", "Steps", "Stayed", "Withdrawn: later values came back"),
        *("Withdrawn: found at another version", "Withdrawn: less evidence"),
    ]
    assert [[column.value(row) for column in table.columns] for row in table.rows] == [
        ["at most 0.005", 2, 1, 0, 0, 1],
        ["above 0.005", 1, 0, 1, 0, 0],
    ]


@pytest.mark.extras
def test_the_figure_of_delays_counts_steps_that_were_never_found() -> None:
    pytest.importorskip("matplotlib")
    ax = delays(gone_through(steps=(step(1, 2), step(2, 7), step(3, 0), step(4, 0))))
    [line] = ax.lines
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert line.get_ydata().tolist() == [0, 25, 25, 25, 25, 25, 50]
    told = " ".join(" ".join(text.get_text() for text in ax.texts).split())
    assert "not found before the next step: 2 steps" in told
    assert ax.get_title(loc="left") == "How soon does the gate find steps? n=4 steps"
    all_found = delays(gone_through(steps=(step(1, 5),)))
    assert all_found.lines[0].get_xdata().tolist() == [1, 2, 3, 4, 5]
    assert not any("not found" in text.get_text() for text in all_found.texts)
