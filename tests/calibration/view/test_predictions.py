"""Predictions as tables: one run by level, several runs by name."""

from __future__ import annotations

from errcomp.calibration import Composition
from errcomp.datasets import example_runs
from errcomp.report.model import Table


def tables(n: int) -> dict[str, Table]:
    runs = example_runs()
    chosen = runs.where({"run": [*"abcdefgh"[:n]]})
    model = Composition(estimators=()).fit(runs)
    view = model.predict(chosen).view(model.model_)
    return {table.columns[0].header: table for table in view.tables_for("text")}


def test_one_run_has_a_row_for_each_level() -> None:
    shown = tables(1)["Band"]
    assert [column.header for column in shown.columns if column.key] == ["Band"]
    assert [shown.columns[0].cell(row).text for row in shown.rows] == [
        "50 %",
        "80 %",
        "90 %",
        "95 %",
    ]


def test_several_runs_have_a_row_each() -> None:
    shown = tables(3)["Run"]
    assert [shown.columns[0].cell(row).text for row in shown.rows] == ["a", "b", "c"]
