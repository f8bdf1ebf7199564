"""``errcomp compare``: the tables that people read, and bad usage in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from errcomp.decisions.kinds import DecisionKinds
from errcomp.report.model import Report
from tests.decisions.laws import choices


@pytest.mark.slow
def test_the_headline_answers(run: Callable[..., Any]) -> None:
    ran = run("compare", "neusight", "--between", "device", "--evaluate")
    assert ran.code == 0
    assert "A predicted difference must be at least 20 % [14, 31] for its order" in ran.out
    assert "Comparisons right            96.34 %" in ran.out
    assert "MI210     MI250   50.00 %  16" in ran.out


@pytest.mark.slow
def test_rows_of_a_file_without_measurements_are_the_choices(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    frame = choices(1, present=1.0)
    lines = [
        ",".join(
            str(row[key]) if key != "measured" or row["device"] > "D01" else ""
            for key in frame.columns
        )
        for row in frame.iter_rows(named=True)
    ]
    path = tmp_path / "choices.csv"
    path.write_text("\n".join([",".join(frame.columns), *lines]) + "\n", encoding="utf-8")
    found = run("compare", path, "--between", "device", "--json").json
    assert len(found["rows"]) == 20 * (1 + 2 * 4)
    assert {row["word"] for row in found["rows"]} <= {"faster", "too close to call"}
    assert len(found["choices"]) == 20
    printed = run("compare", path, "--between", "device").out
    assert printed.startswith("Best device")


@pytest.mark.slow
def test_conditions_can_be_named(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "choices.csv"
    choices(1, devices=3, conditions=6, present=1.0).write_csv(path)
    argv = ("compare", path, "--between", "device", "--json")
    assert run(*argv).json["within"] == ["model", "batch"]
    assert run(*argv, "--within", "batch").json["within"] == ["batch"]


@pytest.mark.slow
def test_batches_are_compared_by_item(run: Callable[..., Any]) -> None:
    argv = ("compare", "neusight", "--between", "batch", "--evaluate")
    assert "For the time of one item: --per batch." in run(*argv).out
    per_item = run(*argv, "--per", "batch", "--json").json
    assert per_item["per"] == "batch"
    assert per_item["right_share"] < 0.9


@pytest.mark.slow
def test_a_check_fails_on_a_condition_that_is_true(run: Callable[..., Any], tmp_path: Path) -> None:
    argv = ("compare", "neusight", "--between", "batch", "--per", "batch", "--evaluate")
    passed = run(*argv, "--fail-on", "regret>5%", "--fail-on", "right<60%")
    assert passed.code == 0
    files = ("--junit", tmp_path / "c.xml", "--markdown", tmp_path / "c.md")
    failed = run(*argv, "--fail-on", "regret>2%", "--fail-on", "wrong>5%", *files)
    assert failed.code == 1
    suite = ET.parse(tmp_path / "c.xml")
    assert {case.get("name"): len(case) for case in suite.iter("testcase")} == {
        "regret>2%": 1,
        "wrong>5%": 0,
    }
    told = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert "**Mean regret: 2.17 % (60 comparisons, 60 choices).**" in told


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("neusight",), "--between"),
        (("neusight", "--between", "colour"), "no column 'colour'"),
        (("neusight", "--between", "device", "--level", "40%"), "level must be between 0.5 and 1"),
        (("neusight", "--between", "device", "--errors", "no.csv"), "no.csv"),
        (("neusight", "--between", "device", "--fail-on", "regret>5%"), "a check needs --evaluate"),
        (("neusight", "--between", "device", "--evaluate", "--junit", "j.xml"), "a check needs"),
        (
            ("neusight", "--between", "device", "--evaluate", "--fail-on", "regret"),
            "'regret' is not a condition. Conditions look like: regret>5%, regret-max>5%",
        ),
        (
            ("neusight", "--between", "device", "--evaluate", "--fail-on", "right>90%"),
            "'right>90%' fails when the result is good. Reverse the < or >",
        ),
    ],
)
def test_bad_usage(run: Callable[..., Any], argv: tuple[str, ...], message: str) -> None:
    ran = run("compare", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_condition_is_read_before_anything_is_evaluated(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.decisions.compare", None)
    ran = run("compare", "neusight", "--between", "device", "--evaluate", "--fail-on", "regret")
    assert ran.code == 2
    assert "'regret' is not a condition" in ran.err


def test_without_a_kind_of_choice_every_kind_is_evaluated(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("device,tool,predicted,measured\nA,x,1,\nB,x,2,2\n", encoding="utf-8")
    asked: list[Any] = []

    def compare_kinds(pairs: Any, **options: Any) -> DecisionKinds:
        asked.append((pairs.n, options))
        return DecisionKinds("here", "x", 3, ())

    monkeypatch.setattr("errcomp.decisions.compare_kinds", compare_kinds)
    monkeypatch.setattr(DecisionKinds, "view", lambda self: Report("Choices"))
    ran = run("compare", path, "--evaluate", "--level", "80%", "--tool", "x", "--seed", 3, "--json")
    assert ran.code == 0, ran.err
    assert asked == [(2, {"tool": "x", "level": 0.8, "seed": 3})]
    assert ran.json == {
        "schema": "errcomp.decision-kinds/1", "source": "here", "tool": "x", "seed": 3, "rows": []
    }  # fmt: skip
