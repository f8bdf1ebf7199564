"""Predictions as tables: one run by level, several runs by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from errcomp.calibration import Composition
from errcomp.calibration.view.predictions import predictions_view
from errcomp.datasets import example_runs
from errcomp.report.model import Table


def keys(table: Table) -> list[str]:
    return [column.header for column in table.columns if column.key]


def tables(n: int) -> dict[str, Table]:
    runs = example_runs()
    chosen = runs.where({"run": [*"abcdefgh"[:n]]})
    model = Composition(estimators=()).fit(runs)
    view = model.predict(chosen).view(model.model_)
    return {table.columns[0].header: table for table in view.tables_for("text")}


def test_one_run_has_a_row_for_each_level() -> None:
    both = tables(1)
    shown = both["Band"]
    assert (keys(shown), keys(both["Part"])) == (["Band"], ["Part"])
    assert [shown.columns[0].cell(row).text for row in shown.rows] == [
        "50 %",
        "80 %",
        "90 %",
        "95 %",
    ]


def test_several_runs_have_a_row_each() -> None:
    shown = tables(3)["Run"]
    assert keys(shown) == ["Run"]
    assert [shown.columns[0].cell(row).text for row in shown.rows] == ["a", "b", "c"]


def test_without_the_model_runs_have_a_row_each() -> None:
    runs = example_runs()
    found = Composition(estimators=()).fit(runs).predict(runs.where({"run": ["a", "b"]}))
    (shown,) = found.view().tables
    assert shown.title == "Predicted runs, by linear"
    assert keys(shown) == ["Run"]
    headers = ["Run", "Predicted (ms)", "90 % band (ms)", "Sum of kernels"]
    assert [column.header for column in shown.columns] == headers
    texts = [[column.cell(row).text for column in shown.columns] for row in shown.rows]
    assert [[row[0], row[1], row[3]] for row in texts] == [["a", "1.1", "1"], ["b", "2.2", "2"]]


def test_bands_of_adapted_devices_say_what_they_rest_on() -> None:
    runs = example_runs()
    fit = Composition(estimators=()).fit(runs.take(runs.column("device") == "A")).model_
    model = fit.adapt(runs.take(runs.run == "c"))
    # Adapted runs first.
    found = model.predict(runs.take(np.argsort(runs.column("device") == "A", kind="stable")))

    def notes(groups: int) -> list[str]:
        (new,) = model.adapted.values()
        learnt = {name: replace(one, groups=groups) for name, one in new.learnt.items()}
        both = {"B": replace(new, learnt=learnt), "A": replace(new, device="A", regime="device")}
        (table,) = predictions_view(found, replace(model, adapted=both)).tables
        return [note.text for note in table.remarks() if note.text.startswith("Band of")]

    few = "by 1 run: not calibrated, because the fit had too few"
    new, known, own = notes(0)
    assert own.startswith("Band of a run on a known device: the estimator's own, not calibrated")
    assert (new, known) == (
        f"Band of runs on B, {few} devices.",
        f"Band of runs on A, {few} models.",
    )
    assert notes(4)[0] == (
        "Band of runs on B, by 1 run: calibrated on 4 held-out devices, each adapted to 1 run in "
        "the same way. Guarantee: none; it covers about what it states in simulations."
    )
