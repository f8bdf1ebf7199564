"""Bands as a check: which assumption and levels can fail, and in what order."""

from __future__ import annotations

import pytest

from errcomp.propagation.validation import Validation, ValidationRow
from errcomp.propagation.view.check import report_validation
from errcomp.results import Caveat

HOLDS = {0.5: (0.5, 0.3, 0.7), 0.8: (0.8, 0.6, 0.9), 0.9: (0.9, 0.8, 0.97), 0.95: (0.95, 0.8, 1.0)}


def validation(assumptions, *, clusters=8, score=None, **options):
    rows = tuple(
        ValidationRow(name, level, *covered, 40, clusters, 0.2, (score or {}).get(name, 0.5))
        for name, levels in assumptions.items()
        for level, covered in levels.items()
    )
    given = {"left_out": "device", "cluster": "device", **options}
    return Validation(rows, {}, (), total="sum of the measured kernels", models=(), **given)


def narrow(*levels):
    return {
        level: (level - 0.3, level - 0.5, level - 0.1) if level in levels else covered
        for level, covered in HOLDS.items()
    }


def failed(result):
    return [case.name for case in report_validation(result).cases if case.outcome == "failure"]


def test_bands_that_hold_pass(schema):
    report = report_validation(validation({"estimated": HOLDS}))
    assert [case.name for case in report.cases] == [
        f"estimated, {level} % band" for level in ("50", "80", "90", "95")
    ]
    assert not report.failed
    assert schema(report.junit())[0].get("failures") == "0"
    assert (
        report.verdict
        == 'Pass: the 90 % band under "estimated" contains 90 % [80, 97] of 40 totals.'
    )
    assert "What to do: nothing." in report.markdown


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((0.9,), ["90"]),
        ((0.9, 0.95), ["90", "95"]),
        # Each level is tested only where the one before it in the order failed.
        ((0.5, 0.8, 0.95), []),
        ((0.5, 0.9), ["90"]),
        ((0.8, 0.9, 0.95), ["80", "90", "95"]),
        ((0.5, 0.8, 0.9, 0.95), ["50", "80", "90", "95"]),
    ],
)
def test_levels_are_tested_in_a_fixed_sequence(levels, expected):
    result = validation({"estimated": narrow(*levels)})
    assert failed(result) == [f"estimated, {level} % band" for level in expected]


def test_only_the_assumption_relied_on_can_fail():
    both = {"estimated": HOLDS, "independent": narrow(0.5, 0.8, 0.9, 0.95)}
    assert failed(validation(both)) == []
    assert len(failed(validation(dict(reversed(both.items()))))) == 4


def test_bands_that_are_too_wide_pass_and_are_said():
    wide = {**HOLDS, 0.9: (0.99, 0.92, 1.0)}
    report = report_validation(validation({"estimated": wide}))
    assert not report.failed
    assert report.verdict.endswith("of 40 totals. It is too wide.")
    assert "| too wide |" in report.markdown


def test_one_cluster_says_nothing_of_others(schema):
    blind = {level: (level - 0.3, 0.0, 1.0) for level in HOLDS}
    report = report_validation(validation({"estimated": blind}, clusters=1))
    assert {case.outcome for case in report.cases} == {"skipped"}
    assert "**Nothing could be checked: " in report.markdown
    assert "What to do: measure runs of more than one device." in report.markdown
    schema(report.junit())


def test_a_summary_says_what_holds_instead():
    result = validation(
        {"independent": narrow(0.9), "classes": HOLDS, "unknown": HOLDS, "repeats": narrow(0.9)},
        score={"classes": 0.4, "repeats": 0.1},
        not_judged=("r1", "r2"),
        caveats=(Caveat("few-clusters", "8 devices"),),
    )
    text = report_validation(result).markdown
    assert '**Too narrow: the 90 % band under "independent" contains 60 % \\[40, 80\\]' in text
    assert (
        '- Or use another assumption: under "classes" the band is 1.0 times as wide and contains '
        "90 %" in text
    )
    assert "chosen on these same totals" in text
    assert "few-clusters: an interval from few clusters" in text
    assert "Runs not evaluated: 2." in text
    assert "| independent (main) | 50 \\[30, 70\\] |" in text
    assert "| too narrow |" in text
    assert len(text.splitlines()) < 60


def test_caveats_are_said_of_a_pass_as_well():
    result = validation({"estimated": HOLDS}, caveats=(Caveat("few-clusters", "8 devices"),))
    assert (
        "What to know:\n\n- few-clusters: an interval from few clusters"
        in report_validation(result).markdown
    )


def test_other_levels_than_the_usual():
    levels = {0.6: (0.2, 0.1, 0.4), 0.99: (0.9, 0.7, 0.98)}
    report = report_validation(validation({"estimated": levels}))
    # 99 % is nearest to 90 %, then comes 60 %.
    assert failed(validation({"estimated": levels})) == [
        "estimated, 60 % band", "estimated, 99 % band",
    ]  # fmt: skip
    assert report.properties["order"] == "0.99, 0.6"


def test_any_name_is_escaped(nasty, schema, rendered):
    result = validation({nasty: narrow(0.9), "x": HOLDS}, cluster=nasty, left_out=nasty)
    report = report_validation(result, title=f"t{nasty}")
    schema(report.junit())
    html = rendered(report.markdown)
    assert html.count("<td") == 2 * 7
    assert "<script" not in html
    assert report.junit() == report_validation(result).junit()


@pytest.mark.parametrize(
    ("covered", "head", "tone"),
    [
        ((0.8, 0.7, 0.89), "Too narrow", "bad"),
        ((0.95, 0.91, 0.98), "Too wide", "doubt"),
        ((0.95, 0.9, 0.98), "Not refuted", "good"),
        ((0.8, 0.7, 0.9), "Not refuted", "good"),
    ],
)
def test_the_page_says_whether_bands_hold(
    covered: tuple[float, float, float], head: str, tone: str
) -> None:
    result = validation({"estimated": {0.5: (0.5, 0.3, 0.7), 0.9: covered}})
    (verdict,) = result.view().verdicts
    assert (verdict.head, verdict.tone) == (head, tone)
    share, low, high = (f"{100 * one:.0f}" for one in covered)
    assert verdict.text == (
        f"— estimated: the 90 % band contains {share} % [{low}, {high}] of 40 totals."
    )
    assert result.view().line == [f"estimated: 90 % band contains {share} %", "n=40"]
