from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import Composition
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.evaluation import Evaluation, evaluate
from errcomp.calibration.predictions import Predictions
from errcomp.calibration.view.evaluation import draw
from errcomp.calibration.view.model import model_tables
from errcomp.datasets import example_runs
from errcomp.errors import InputError
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
