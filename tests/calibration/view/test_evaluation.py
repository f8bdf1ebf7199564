from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import Composition
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.estimators.bayesian.hierarchical import Columns, HierarchicalModel
from errcomp.calibration.evaluation import Difference, Evaluation, Refused, VendorTransfer, evaluate
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.view.evaluation import draw
from errcomp.calibration.view.model import fit_tables, model_document, model_tables
from errcomp.datasets import example_runs
from errcomp.errors import InputError
from errcomp.report.model import Table
from errcomp.results import Estimate, format_fraction
from errcomp.tables import Kernels

SPLIT = "leave-device-out"


def make(train: Kernels) -> dict[str, Any]:
    """Predict a tenth too much; bands are wider where kernels are longer, but for three widths."""

    def predict(new: Kernels) -> Predictions:
        total = new.totals().measured
        time = 1.1 * total
        half = (0.05 + 0.05 * np.digitize(total, [4.0, 8.0]))[:, None] * np.array(LEVELS)
        return Predictions(
            run=new.totals().run, total=total, predicted=time, low=time[:, None] * (1 - half),
            high=time[:, None] * (1 + half), quantiles=time[:, None].repeat(len(QUANTILES), 1),
            parts={}, fallback=new.totals().run, calibrated=np.ones(len(total), bool),
            warnings=((),) * len(total), estimator="global", unit=new.unit,
        )  # fmt: skip

    return {"global": predict}


@pytest.fixture(scope="module")
def found() -> Evaluation:
    n = 12
    table = {
        "run": [f"r{i}" for i in range(n)],
        "kernel": ["k"] * n,
        "kernel_class": ["k"] * n,
        "count": [1] * n,
        "device": [f"D{i % 6}" for i in range(n)],
        "measured": [1.0 + i for i in range(n)],
        "run_measured": [(1.0 + 0.02 * (i % 5)) * (1.0 + i) for i in range(n)],
    }
    return evaluate(make, Kernels(table, unit="ms"), splits=[SPLIT])


@pytest.mark.extras
def test_the_surest_runs_err_in_the_table_as_in_the_figure(found: Evaluation) -> None:
    pytest.importorskip("matplotlib")
    from errcomp.report.drawing import words as _text

    (row,) = found.rows
    table = found.view().tables_for("text")[0]
    column = next(one for one in table.columns if one.header == "Most confident 80 %")
    assert row.abstention is not None
    assert {figure.name.rpartition("-")[2] for figure in found.view().figures} == {"1"}
    surest = row.abstention.at(0.8)
    # Runs of one width are not told apart: all of them are in what a limit of width would answer.
    assert row.answered.n == row.n
    assert surest != pytest.approx(row.figures["mean_ape"].value)
    assert column.cell(table.rows[0]).text == format_fraction(surest)
    beside = [text.get_text() for text in draw("abstention", found, SPLIT).texts]
    assert f"global {_text.share(surest)}" in beside


def test_brackets_say_of_which_others_they_speak(found: Evaluation) -> None:
    method = dict(found.view().method)
    assert "groups (models, devices, …) like those held out" in method["[low, high]"]
    how = method["Groups, and interval method of the MAPE"]
    assert how == f"{SPLIT}: 6 devices ({found.rows[0].figures['mean_ape'].method})"


def test_where_nothing_was_judged_the_reasons_are_shown(found: Evaluation) -> None:
    reasons = {"leave-device-out": "leave-device-out: there is one device"}
    nothing = replace(found, rows=(), held_out={}, transfer=(), not_done=reasons)
    assert repr(nothing) == "Evaluation(nothing evaluated)"
    assert "Not done: leave-device-out: there is one device" in str(nothing)
    with pytest.raises(InputError, match="nothing was evaluated"):
        nothing.plot()


def test_features_of_a_model_are_told_apart_by_their_names() -> None:
    document = Composition(estimators=()).fit(example_runs()).to_dict()
    table = next(one for one in model_tables(document) if one.title == "Features of a run")
    assert [column.header for column in table.columns if column.key] == ["Feature"]


LESS = Estimate("mape", -0.1, low=-0.2, high=-0.05)


def test_the_verdict_is_about_the_sum_of_kernels(found: Evaluation) -> None:
    from errcomp.calibration.view.evaluation import _verdict

    (row,) = found.rows
    better = replace(row, against=tuple(replace(one, difference=LESS) for one in row.against))
    assert {one.against for one in row.against} == {"sum"}
    assert row.beats_sum is not True
    assert better.beats_sum
    three = (row, better, replace(better, estimator="sum"))
    said = [_verdict([one], "composition").head for one in three]
    assert said == ["Undecided", "Better than the sum", "Add the kernels up"]
    said = [_verdict([one], "prediction").head for one in three]
    assert said == ["Undecided", "Better than the sum", "Use the predictions as they are"]
    _, good, plain = (_verdict([one], "prediction").text for one in three)
    assert good.endswith("it beats the uncorrected predictions.")
    assert "kernels" not in plain


def test_bands_say_for_which_runs_they_are() -> None:
    document = Composition(estimators=()).fit(example_runs()).to_dict()
    (table,) = (
        one for one in model_tables(document) if "Band for" in [c.header for c in one.columns]
    )
    (column,) = (one for one in table.columns if one.header == "Band for")
    assert {column.value(row) for row in table.rows} <= {
        *("a run on a known device", "a run on a new device"),
    }


def keys(table: Table) -> list[str]:
    return [column.header for column in table.columns if column.key]


def texts(table: Table) -> list[list[str]]:
    return [[column.cell(row).text for column in table.columns] for row in table.rows]


def test_the_first_note_is_the_conclusion(found: Evaluation) -> None:
    (row,) = found.rows
    better = replace(row, against=tuple(replace(one, difference=LESS) for one in row.against))
    said = {}
    for task in ("composition", "prediction"):
        for one in (row, better, replace(row, estimator="sum")):
            shown = replace(found, task=task, rows=(one,)).view().tables[0]
            said[task, one.estimator, one.beats_sum] = shown.notes[0]
    best = "Best: the estimator global has the lowest mean error"
    sums = {"composition": "the sum of kernels", "prediction": "the uncorrected predictions"}
    advice = {"composition": "Add the kernels up", "prediction": "Use the predictions as they are"}
    expected = {}
    for task, plain in sums.items():
        few = f"{best}, but with 6 devices it is not significantly better than {plain}."
        expected[task, "global", row.beats_sum] = few
        expected[task, "global", True] = f"{best}; it beats {plain}."
        none = f"{advice[task]}: no estimator has a lower mean error than {plain}."
        expected[task, "sum", row.beats_sum] = none
    assert said == expected


def test_what_is_missing_is_said_last(found: Evaluation) -> None:
    refused = [Refused(SPLIT, "stack", f"D{i}", i + 1, "not sure.") for i in range(3)]
    more = replace(
        found,
        not_judged=("r1", "r2", "r3"),
        not_done={"random": "random: there is one run"},
        refused=(*refused, Refused("random", "", "1", 1, "too few runs")),
    )
    missing = (
        "Not evaluated: {} without an end-to-end time, or without the times of all kernels ({})."
    )
    stack = f"{SPLIT}: stack did not predict {{}} ({{}} held out): not sure."
    assert more.view().tables[-1].notes == [
        "Not done: random: there is one run",
        missing.format("3 runs", "r1, r2, r3"),
        stack.format("6 runs", "D0, D1, D2"),
        "random: no estimator predicted 1 run (1 held out): too few runs.",
    ]
    four = replace(
        more,
        not_judged=("r1", "r2", "r3", "r4"),
        not_done={},
        refused=(*refused, Refused(SPLIT, "stack", "D3", 4, "not sure.")),
    )
    assert four.view().tables[-1].notes == [
        missing.format("4 runs", "r1, r2, r3, …"),
        stack.format("10 runs", "D0, D1, D2, …"),
    ]
    one = replace(more, not_judged=("r1",), not_done={}, refused=())
    assert one.view().tables[-1].notes == [missing.format("1 run", "r1")]


def test_rows_are_named_by_their_keys(found: Evaluation) -> None:
    flags = {"r0": "too fast: 3 of 9 kernels", "r5": "too fast: all"}
    cost = Difference("leave-vendor-out", "linear", SPLIT, 3, 0.25, 0.2, LESS)
    transfer = VendorTransfer("linear", "AMD", 3, 9, 0.25, 0.125, 0.125, cost)
    whole = replace(found, not_flagged=found.rows, flagged=flags, transfer=(transfer,))
    whole = replace(whole, known={"r5": "many launches"})
    split, without, worst, vendors = whole.view().tables
    named = [keys(one) for one in (split, without, worst, vendors)]
    assert named == [["Estimator"], ["Estimator"], ["Run"], ["Estimator", "Vendor"]]
    assert without.title == f"{SPLIT}: all runs, and without 2 flagged runs"
    assert vendors.title == "leave-vendor-out: transfer to a vendor that was not in the fit"
    headers = ["Estimator", "Vendor", "Unseen", "Others", "Gap (points)", "Cost (points)"]
    assert [column.header for column in vendors.columns] == headers
    assert texts(vendors) == [
        ["linear", "AMD (3)", "25.00 %", "12.50 %", "+12.5", "-10.0 [-20.0, -5.0]"]
    ]
    # The largest errors are those of every fifth run.
    assert {row[0]: row[-1] for row in texts(worst)} == {
        **{"r0": "too fast", "r5": "many launches; too fast", "r10": "–"},
        **dict.fromkeys(("r1", "r6"), "–"),
    }
    # Both are needed for a comparison.
    for nothing in ({"not_flagged": ()}, {"flagged": None}):
        assert len(replace(whole, **nothing).view().tables) == 3


def test_only_figures_and_splits_of_the_evaluation_are_drawn(found: Evaluation) -> None:
    show: Any = found.view().draw
    figures = "coverage, abstention, predicted, residuals"
    with pytest.raises(InputError, match=f"^no figure or split 'bars'. Known: {figures}$"):
        show("bars")
    with pytest.raises(InputError, match=f"^no figure or split 'random'. Known: {SPLIT}$"):
        show("coverage", "random")


@pytest.mark.extras
def test_the_figure_of_an_evaluation_is_that_of_its_first_split(found: Evaluation) -> None:
    pytest.importorskip("matplotlib")
    show: Any = found.view().draw
    first = [text.get_text() for text in draw("coverage", found, SPLIT).texts]
    assert [text.get_text() for text in show().texts] == first
    assert [text.get_text() for text in show("abstention", SPLIT).texts] != first


def test_launch_costs_are_shown_by_device_and_kind() -> None:
    """Costs are in launch floors: those of a device, and the common one of others."""
    runs = example_runs()
    plain = Composition(estimators=()).fit(runs).model_
    names = ("first", "second", "third")
    none = np.empty(0)
    columns = Columns(names, (0, 2), None, (), none, none, ())
    one = np.ones(2)
    draws = {
        "intercept": one, "sigma": one, "nu": 5 * one, "offset": one,
        "device_shift": np.zeros((2, 3)), "device_launch": np.log([[1.0, 2.0, 4.0]] * 2),
        "model_shift": np.zeros((2, 1)), "launch": np.array([[1.0, 10.0]] * 2),
    }  # fmt: skip
    physical = HierarchicalModel(columns, ("A", "B"), (), draws)
    state = replace(plain.preparation.state, floor=5e-6, floors={"A": 2e-6})

    def document(task: Any) -> dict[str, Any]:
        preparation = replace(plain.preparation, state=replace(state, task=task))
        members = {**plain.members, "bayesian": physical}
        return model_document(replace(plain, preparation=preparation, members=members))

    shown = document("composition")
    kinds = [row["launches"] for row in shown["overhead"][:2]]
    found = [(row["device"], row["launches"], row["median_us"]) for row in shown["overhead"]]
    expected = {"A": 2.0, "B": 2 * 5.0, None: 4 * 5.0}
    near: Any = pytest.approx
    assert found == [
        (device, kind, near(cost * times))
        for device, cost in expected.items()
        for kind, times in zip(kinds, (1, 10), strict=True)
    ]
    assert len({*kinds}) == 2
    # Without measured kernels every device has the common floor.
    assert document("prediction")["overhead"][0]["median_us"] == near(5.0)
    tables = fit_tables({**shown, "source": ""})
    assert [one.title for one in tables[1:]] == ["Basis of the bands", "Overhead per launch in µs"]
    assert [keys(one) for one in tables] == [[], ["Estimator"], ["Device"]]
    assert [row[0] for row in texts(tables[2])] == ["A", "B", "(a new device)"]
    assert texts(tables[2])[1][2] == "100.0 [100.0, 100.0]"
    without = fit_tables({**model_document(plain), "source": ""})
    assert [one.title for one in without[1:]] == ["Basis of the bands"]


def test_the_facts_of_a_fit_end_with_what_was_not_used_and_how_it_was_sampled() -> None:
    document = Composition(estimators=()).fit(example_runs()).to_dict()
    checks = {
        "chains": 4, "draws": 500, "interrupted": False, "max_rhat": 1.00456,
        "min_ess_bulk": 812.4, "min_ess_tail": 640.6, "divergences": 1, "min_bfmi": 0.875,
        "problems": ("R-hat is high.",), "caveats": ("a column was dropped",),
    }  # fmt: skip
    unused = {"x": "no time", "y": "no kernels", "z": "no time"}
    sampled = (
        "Sampling: {}, R-hat at most 1.0046, effective sample size at least {}, 1 divergence, "
        "BFMI at least 0.88."
    )
    first = model_tables({**document, "unused": unused, "diagnostics": checks})[0]
    assert [note.text for note in first.remarks()] == [
        "Not used: 2 runs (x, z): no time.",
        "Not used: 1 run (y): no kernels.",
        sampled.format("4 chains of 500 draws", 641),
        "R-hat is high.",
        "a column was dropped.",
    ]
    cut = {**checks, "interrupted": True, "min_ess_tail": 1e4, "problems": (), "caveats": ()}
    (note,) = model_tables({**document, "diagnostics": cut})[0].remarks()
    assert note.text == sampled.format("4 chains of 500 draws (others were interrupted)", 812)
    assert not model_tables(document)[0].remarks()
