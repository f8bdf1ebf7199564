"""The board of tools: sources, levels and quantities apart, and which differences are real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp import datasets
from errcomp.claims.auditing import audit
from errcomp.claims.board import Board, BoardRow, board
from errcomp.claims.view.board import errors_of_tools, short_names
from errcomp.errors import InputError, NotDefinedError
from errcomp.report.model import Table


def _csv(path: Path, rows: list[tuple[Any, ...]], names: str) -> Path:
    lines = [names, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _two_tools(path: Path, errors: dict[str, list[float]], models: int = 8) -> Path:
    rows = [
        (tool, f"m{i % models}", i, 100 * (1 + error), 100)
        for tool, of_tool in errors.items()
        for i, error in enumerate(of_tool)
    ]
    return _csv(path, rows, "tool,model,batch,predicted,measured")


@pytest.fixture(scope="module")
def published() -> Board:
    """Return the board of the built-in tables, those of no source that is named."""
    return board()


@pytest.mark.slow
def test_each_number_is_that_of_the_audit(published: Board) -> None:
    found = published
    pairs = datasets.load("neusight")
    for row in found.rows:
        (audited,) = audit(pairs, by=(), tool=row.tool).by_tool
        estimate = audited.figures["mape"]
        assert (row.mape, row.low, row.high, row.n) == (
            estimate.value, estimate.low, estimate.high, audited.n,
        )  # fmt: skip
        assert row.command == f"errcomp audit neusight --tool {row.tool}"
    first = found.rows[0]
    assert (first.tool, first.n, first.cases, first.claim) == ("neusight", 146, 146, "2.3%")
    assert (first.verdict, first.against, first.common, first.compared) == ("overstated", "", 0, "")
    assert {row.against for row in found.rows[1:]} == {"neusight"}
    assert {row.n for row in found.rows[1:]} == {row.common for row in found.rows[1:]} == {80}


def test_differences_are_those_of_common_cases(tmp_path: Path) -> None:
    path = _two_tools(tmp_path / "two.csv", {"A": [0.1] * 40, "B": [0.3, -0.2] * 10})
    a, b = board(path).rows
    assert (a.tool, a.n, a.cases) == ("A", 40, 40)
    assert (b.tool, b.n, b.common, b.against) == ("B", 20, 20, "A")
    assert b.difference == pytest.approx(0.15)
    assert (b.lower_in, b.units, b.unit) == (0, 8, "model")
    assert b.compared == "less accurate"
    assert b.difference_low is not None
    assert 0 < b.difference_low < 0.15


def test_signs_decide_where_one_error_makes_the_interval_wide(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    low = rng.uniform(0.01, 0.02, 40)
    high = rng.uniform(0.05, 0.2, 40)
    high[7] = 60.0
    path = _two_tools(tmp_path / "wide.csv", {"A": [*low], "B": [*high]}, models=20)
    _, b = board(path).rows
    assert b.difference_low is None or b.difference_low < 0
    assert (b.lower_in, b.units, b.compared) == (0, 20, "less accurate")
    few = _two_tools(tmp_path / "few.csv", {"A": [*low], "B": [*high]}, models=4)
    assert board(few).rows[1].compared == "undecided"  # 0 of 4 models may be chance


def test_tools_that_differ_by_chance_are_indistinguishable(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    errors = {name: [*rng.normal(0, 0.1, 60)] for name in "AB"}
    _, b = board(_two_tools(tmp_path / "same.csv", errors, models=12)).rows
    assert b.compared == "indistinguishable"
    assert b.difference_low is not None
    assert b.difference_high is not None
    assert b.difference_low < 0 < b.difference_high


def test_tools_without_common_cases_are_not_compared(tmp_path: Path) -> None:
    rows = [("A", "m", i, 11.0, 10.0) for i in range(9)]
    rows += [("B", "m", i, 12.0, 10.0) for i in range(20, 26)]
    rows += [("C", "m", i, 13.0, 10.0) for i in range(20, 24)]
    path = _csv(tmp_path / "apart.csv", rows, "tool,model,batch,predicted,measured")
    a, b, c = board(path).rows
    assert (a.against, b.against, c.against) == ("", "", "B")
    assert (b.cases, c.common, c.compared) == (15, 4, "undecided")


def test_equal_tools_have_no_difference(tmp_path: Path) -> None:
    errors = {name: [0.1, -0.2, 0.3, 0.1] * 8 for name in "AB"}
    _, b = board(_two_tools(tmp_path / "equal.csv", errors)).rows
    assert (b.difference, b.lower_in, b.units) == (0.0, 0, 0)
    assert b.compared in ("indistinguishable", "undecided")


@pytest.mark.shared
def test_a_folder_is_taken_apart(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A board does not show what is left of errors without the noise of measurements.
    monkeypatch.setattr("errcomp.measurements.without_noise._DRAWS", 2)
    found = board(shared_data / "tools" / "simumax", shared_data / "tools" / "echo")
    kinds = [(row.tool, row.level, row.quantity, row.n) for row in found.rows]
    assert kinds == [
        ("SimuMax", "model", "time", 43),
        ("SimuMax", "model", "memory", 19),
        ("SimuMax", "model", "memory of a stage", 8),
        ("Echo", "kernel", "time", 404),
        ("Echo's constant slowdown", "kernel", "time", 404),
    ]
    assert found.rows[1].command.endswith("tools/simumax --where quantity=memory")
    assert found.rows[0].low is not None  # keys of other files of a folder group nothing
    assert found.rows[4].compared == "less accurate"
    (left_out,) = found.left_out
    assert left_out.reason.startswith("measured must be positive, got 0.0 in rows 125")


def test_what_cannot_be_compared_leaves_the_others(tmp_path: Path) -> None:
    for name, real in (("a", 0.0), ("b", 24.0)):
        rows = [("alexnets.jsonl", i, 23.5, real) for i in range(3)]
        _csv(tmp_path / f"{name}.csv", rows, "model_group_file,index,predicted_ms,real_ms")
    found = board(tmp_path)
    assert [(row.source, row.n) for row in found.rows] == [(str(tmp_path / "b.csv"), 3)]
    (left_out,) = found.left_out
    assert "measured must be positive" in left_out.reason


def test_sources_without_pairs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "astra.log"
    path.write_text("sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    with pytest.raises(InputError, match=r"astra.log: no row has a prediction and a measurement\."):
        board(path)
    zero = _csv(tmp_path / "zero.csv", [(1.0, 0.0)], "predicted,measured")
    with pytest.raises(InputError, match="measured must be positive"):
        board(zero)
    with pytest.raises(InputError, match="no such file"):
        board(tmp_path / "nothing.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        board(tmp_path / "empty")


@pytest.mark.slow
@pytest.mark.core
def test_tables_show_each_level_and_quantity(run: Any, tmp_path: Path) -> None:
    path = _two_tools(tmp_path / "two.csv", {"A": [0.1] * 40, "B": [0.3, -0.2] * 10})
    ran = run("claims", "board", path, "neusight", "--json")
    assert [row["tool"] for row in ran.json["rows"]][:2] == ["A", "B"]
    assert (ran.json["sources"], ran.json["left_out"]) == (2, [])
    out = run("claims", "board", path, "neusight").out
    assert "20 of 40  25.00 %" in out
    commands = out.partition("Sources")[2].splitlines()
    numbers = dict.fromkeys(line.split()[0] for line in commands if line.startswith("["))
    assert list(numbers) == ["[1]", "[2]"]
    assert "0 of 8 models  less accurate" in out
    why = "Where a MAPE has no interval, the command listed for its source says why."
    assert out.count(why) == 2
    assert "Rows of different sources are about different cases" not in out  # levels differ
    assert f"errcompaudit{path}" in "".join(out.split())
    assert max(map(len, out.splitlines())) <= 100
    page = tmp_path / "board.html"
    assert run("claims", "board", path, "-o", page).code == 0
    written = page.read_text(encoding="utf-8")
    assert "tools of one source compared" in written
    assert "1 comparison: 1 less accurate" in written


def test_the_answer_counts_the_comparisons(tmp_path: Path) -> None:
    alone = board(_two_tools(tmp_path / "one.csv", {"A": [0.1, -0.2] * 20}))
    assert alone.view().line == ["1 source", "1 tool"]
    assert not any("without an interval" in str(t.notes) for t in alone.view().tables)


def test_without_sources_the_built_in_tables_are_shown(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def noted(*sources: str, **more: Any) -> Board:
        asked.append(sources)
        return board(*sources, **more)

    monkeypatch.setattr("errcomp.claims.board.board", noted)
    # Which tables are read, without their audits.
    monkeypatch.setattr("errcomp.claims.board._rows", lambda of, *_: [_row(source=of.source)])
    document = json.loads(run("claims", "board", "--json").out)
    assert asked == [()]
    assert {row["source"] for row in document["rows"]} == {"neusight"}


def test_short_names_keep_what_differs() -> None:
    assert short_names(["/a/b/c/x.csv"]) == {"/a/b/c/x.csv": "c/x.csv"}
    assert short_names(["/a/b/c/x.csv", "/a/d/y.csv"]) == {
        "/a/b/c/x.csv": "b/c/x.csv",
        "/a/d/y.csv": "d/y.csv",
    }


@pytest.mark.extras
def test_the_picture_shows_each_tool(published: Board) -> None:
    pytest.importorskip("matplotlib")
    axes = errors_of_tools(published)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert [name.split(",")[0] for name in names] == ["neusight", "roofline", "micro", "habitat"]
    assert axes.get_xscale() == "log"


def _row(**changes: Any) -> BoardRow:
    known = {
        "source": "/data/a/x.csv", "command": "errcomp audit x.csv", "level": "model",
        "quantity": "time", "reference": "hardware", "tool": "A", "n": 1200, "cases": 3000,
        "mape": 0.08, "low": 0.05, "high": 0.12, "claim": "<5%", "verdict": "overstated",
        "against": "B", "common": 40, "difference": -0.0211, "difference_low": -0.0402,
        "difference_high": -0.0013, "lower_in": 3, "units": 4, "unit": "rack",
        "compared": "more accurate",
    }  # fmt: skip
    return BoardRow(**(known | changes))


def _texts(table: Table) -> list[dict[str, str]]:
    return [{one.header: one.cell(row).text for one in table.columns} for row in table.rows]


def test_what_a_row_holds_is_what_its_cells_say() -> None:
    rows = (
        _row(),
        _row(tool="B", n=3000, claim="", verdict="", low=None, high=None, against="",
             command="errcomp audit x.csv --tool B", compared=""),
        _row(tool="C", units=0, lower_in=0, difference=None, compared="undecided"),
        _row(tool="D", unit="model", difference_low=None, difference_high=None),
    )  # fmt: skip
    errors, compared, sources = Board(rows, (), 0.95).view().tables
    assert errors.title == "Time, model level"
    assert _texts(errors)[:2] == [
        {"From": "[1]", "Tool": "A", "Cases": "1,200 of 3,000", "MAPE": "8.00 % [5.0, 12.0]",
         "Claim": "<5%: overstated"},
        {"From": "[1]", "Tool": "B", "Cases": "3,000", "MAPE": "8.00 %", "Claim": ""},
    ]  # fmt: skip
    found = {name: [row[name] for row in _texts(compared)] for name in ("Difference", "Lower in")}
    assert found == {
        "Difference": ["-2.1 [-4.0, -0.1]", "", "-2.1"],
        "Lower in": ["3 of 4 values of rack", "", "3 of 4 models"],
    }
    commands = ("errcomp audit x.csv", "errcomp audit x.csv --tool B")
    assert _texts(sources) == [
        {"": "[1]", "Measured on": "hardware", "Command": command} for command in commands
    ]
    keys = [[one.header for one in table.columns if one.key] for table in (errors, compared)]
    assert keys == [["From", "Tool"], ["From", "Tool"]]
    assert [one.header for one in sources.columns if one.key] == [""]
    lower = next(column for column in compared.columns if column.header == "Lower in")
    assert [lower.cell(row).value for row in compared.rows] == [0.75, None, 0.75]


@pytest.mark.extras
def test_exact_tools_have_no_place_on_a_logarithmic_axis() -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(NotDefinedError, match="nothing to draw: no tool has an error above 0"):
        errors_of_tools(Board((_row(mape=0.0),), (), 0.95))


def test_a_source_that_cannot_be_audited_is_left_out_with_the_reason(tmp_path: Path) -> None:
    good = _csv(tmp_path / "good.csv", [(11.0, 10.0)] * 3, "predicted,measured")
    bad = _csv(tmp_path / "bad.csv", [("1e300", "1e-300"), (11, 10)], "predicted,measured")
    found = board(bad, good)
    assert [row.source for row in found.rows] == [str(good)]
    (left_out,) = found.left_out
    assert left_out.source == str(bad)
    assert left_out.reason.startswith("(predicted - measured) / measured is beyond the largest")
    with pytest.raises(InputError, match=r"bad\.csv: no row has a prediction and a measurement\. "):
        board(bad)


def test_a_level_outside_its_range_is_no_fault_of_the_tables() -> None:
    with pytest.raises(InputError, match="^level must be between 0 and 1, got 95"):
        board("neusight", level=95)
