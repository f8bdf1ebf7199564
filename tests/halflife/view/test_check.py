"""The report of new validations: how many series it lists, and what it says of the noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errcomp.halflife.gate import GateResult, check
from errcomp.halflife.gate.checking import Recalibration, ValidationCheck
from errcomp.halflife.gate.results import Law
from errcomp.halflife.panel import Panel
from errcomp.halflife.view.check import about_noise, check_view
from errcomp.report.model import Table


def checked(last: list[float], **options: Any) -> GateResult:
    """Check series that were quiet under three versions; the last error of each is given."""
    n = len(last)
    error = np.array([[0.0, 0.01, -0.01, value] for value in last])
    panel = Panel(
        versions=("1.0", "1.1", "1.2", "1.3"),
        months=np.arange(4.0),
        names=tuple(f"op{i}" for i in range(n)),
        clusters=np.arange(n),
        starts=4 * np.arange(n + 1),
        version=np.tile(np.arange(4), n),
        error=error.ravel(),
        sd=np.full(4 * n, 0.01),
        noise_df=np.full(n, 20.0),
        frozen_at_first=True,
    )
    return check(panel, **options)


def table_of(result: GateResult, *notes: str) -> Table:
    return check_view(ValidationCheck(result, None, notes)).tables[0]


def notes_of(table: Table) -> list[str]:
    return [getattr(note, "text", note) for note in table.notes]


def values_of(table: Table, header: str) -> list[Any]:
    (column,) = [column for column in table.columns if column.header == header]
    return [column.value(row) for row in table.rows]


def test_the_twenty_largest_shifts_are_listed_and_the_others_counted() -> None:
    result = checked([*(0.5 + 0.01 * i for i in range(22)), 0.0])
    table = table_of(result)
    assert values_of(table, "Series") == [f"op{i}" for i in range(21, 1, -1)]
    assert "2 more series changed; --json lists all." in notes_of(table)
    assert notes_of(table)[0] == "REGRESSION. 23 series; error grew: 22, unchanged: 1."
    whole = table_of(checked([0.5 + 0.01 * i for i in range(20)]))
    assert len(whole.rows) == 20
    assert not any("more series changed" in note for note in notes_of(whole))


def test_what_may_be_a_bad_run_is_listed_with_the_runs_that_decide() -> None:
    result = checked([0.5, 0.3, 0.0])
    again = replace(
        result,
        verdict=np.array(["error grew", "repeat", "as before"]),
        p_adjusted=np.array([0.0, 0.2, 0.9]),
        repeats_needed=np.array([7, 3, 5]),
    )
    table = table_of(again)
    assert values_of(table, "Series") == ["op0", "op1"]
    assert values_of(table, "Verdict") == ["error grew", "repeat needed"]
    assert [column.header for column in table.columns[:3]] == [
        *("Series", "Verdict", "Runs to decide"),
    ]
    assert values_of(table, "Runs to decide") == ["–", "3"]
    many = replace(again, repeats_needed=np.zeros(3, dtype=int))
    assert values_of(table_of(many), "Runs to decide") == ["–", "over 20"]
    older = replace(again, repeats_needed=None)
    assert values_of(table_of(older), "Runs to decide") == ["–", "–"]
    # The level is part of what alarms.
    at = replace(result, p_adjusted=np.array([result.level, result.level * 1.01, np.nan]))
    assert values_of(table_of(at), "Series") == ["op0"]


def test_reasons_and_notes_are_told_once() -> None:
    why = np.array(["too few", "", "too few"], dtype=object)
    result = replace(checked([0.0, 0.0, 0.0]), why=why)
    assert notes_of(table_of(result, "as read", "too few"))[-2:] == ["too few", "as read"]


@pytest.mark.parametrize(
    ("shift", "text"),
    [
        (math.log(1.5), "of 50.00 %"),
        (0.69, "of 99.37 %"),
        (math.log(2), "by a factor of 2"),
        (math.log(9.94), "by a factor of 9.9"),
        (math.log(10), "by a factor of 10"),
        (math.log(1234), "by a factor of 1,234"),
        (math.log(2e6), "by a factor of 2e+06"),
        (800.0, "by a factor of 1e+304"),
    ],
)
def test_the_shift_that_would_be_detected_is_that_of_the_median_series(
    shift: float, text: str
) -> None:
    result = checked([0.0, 0.0, 0.0, 0.0])
    known = replace(result, detectable=np.array([0.0, shift, math.inf, 900.0]))
    wanted = (
        f"In the median series, a shift {text} would be detected half of the time. A pass does "
        "not rule out smaller shifts."
    )
    assert wanted in notes_of(table_of(known))
    unknown = replace(known, noise=np.array(["other versions"] * 4))
    assert wanted.replace("time.", "time within five checks.") in notes_of(table_of(unknown))
    nothing = replace(known, detectable=np.full(4, math.inf))
    assert not any("In the median series" in note for note in notes_of(table_of(nothing)))


@pytest.mark.parametrize(
    ("law", "autocorrelation", "said"),
    [
        (Law(1.19, 8.0, 50), 0.09, []),
        (Law(1.2, 8.0, 50), None, ["scatter 1.2 times as much as repeats"]),
        (Law(1.0, 7.9, 50), 0.0, ["Student t distribution of 7.9 degrees of freedom"]),
        (Law(1.0, 7.9, 49), 0.0, []),
        (Law(1.0, math.inf, 50), 0.1, ["noise of successive checks is correlated (0.10)"]),
    ],
)
def test_noise_that_is_not_normal_is_told(
    law: Law, autocorrelation: float | None, said: list[str]
) -> None:
    result = replace(checked([0.0]), law=law, autocorrelation=autocorrelation)
    lines = about_noise(result)
    assert len(lines) == len(said)
    assert all(text in line for text, line in zip(said, lines, strict=True))


def test_the_report_says_the_levels_of_the_check() -> None:
    report = check_view(ValidationCheck(checked([0.0], look=2), None, ("a note",)))
    assert report.method == [
        ("Number of this check", "2"),
        (
            "False-alarm rate of this check",
            "0.00068, out of 0.05 for the first 1,000 checks together",
        ),
        ("Margin", "none"),
    ]
    assert (report.verdicts[0].head, report.verdicts[0].tone) == ("Pass", "good")
    assert report.verdicts[0].text == "— 1 series; unchanged: 1."
    assert report.line == ["pass", "n=1 series"]
    assert list(report.notes) == ["a note"]
    wide = check_view(ValidationCheck(checked([0.0], margin=math.log(1.1)), None, ()))
    assert dict(wide.method)["Margin"] == "10.00 %"
    grew = check_view(ValidationCheck(checked([0.5]), None, ())).verdicts[0]
    assert (grew.head, grew.tone) == ("Regression", "bad")


def recalibration(**changes: Any) -> Recalibration:
    given = {
        "groups": ("Gelu", "Conv", "Add", "Mul"),
        "factor": np.array([1.234567] * 4),
        "low": np.array([1.2341, 1.13, 0.2, np.nan]),
        "high": np.array([1.2350, 1.33, 42.0, np.nan]),
        "level": 0.95,
        "old_error": np.log([1.5, 1.2, 1.1, np.nan]),
        "new_error": np.log([1.25, 1.1, 1.2, np.nan]),
        "old_bias": np.zeros(4),
        "judged_by": np.array(["other series"] * 3 + ["not judged"]),
        "n_series": np.array([2, 3, 4, 1]),
        "n_rows": np.array([2, 3, 4, 1]),
        "old_total": math.log(1.5),
        "new_total": math.log(1.25),
    }
    return Recalibration(**{**given, **changes})


def test_factors_have_the_decimals_that_their_intervals_support() -> None:
    report = check_view(ValidationCheck(checked([0.0]), recalibration(), ()))
    table = report.tables[1]
    (factor,) = [c for c in table.columns if c.header == "Multiply predictions by"]
    assert [factor.cell(row).text for row in table.rows] == [
        *("1.235 [1.234, 1.235]", "1.2 [1.1, 1.3]", "1.2 [0.2, 42.0]", "1.23"),
    ]
    assert values_of(table, "RMS error, old")[:3] == pytest.approx([0.5, 0.2, 0.1])
    assert values_of(table, "RMS error, new")[:3] == pytest.approx([0.25, 0.1, 0.2])
    assert values_of(table, "Evaluated on") == ["other series"] * 3 + ["not evaluated"]
    assert values_of(table, "Series") == [2, 3, 4, 1]
    assert notes_of(table)[1] == (
        "RMS error over all groups that could be evaluated: 50.00 % before, 25.00 % with new "
        "factors."
    )
    unknown = recalibration(new_total=math.nan)
    table = check_view(ValidationCheck(checked([0.0]), unknown, ())).tables[1]
    assert len(table.notes) == 1
