"""From kernels to what models see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.calibration.features import fit_features
from errcomp.calibration.kernels import KernelCorrection
from errcomp.calibration.preparing import Preparation, runs_at, usable_runs
from errcomp.errors import InputError


def test_only_runs_with_all_times_are_used(runs_of: Any) -> None:
    whole = runs_of()
    assert usable_runs(whole, "composition") == (whole, {})
    ends, measured, predicted = (
        getattr(whole, name).copy() for name in ("run_measured", "measured", "predicted")
    )
    ends[:8] = np.nan
    measured[9] = np.nan
    predicted[12:16] = 0
    status = ["ok"] * 159 + ["failed"]
    changed = {"run_measured": ends.tolist(), "measured": measured.tolist()}
    table = runs_of(**changed, predicted=predicted.tolist(), status=status)
    runs = list(whole.runs)
    shared = dict.fromkeys(runs[:2], "not measured end to end (run_measured)")
    failed = {runs[39]: "the prediction of a kernel failed"}
    used, unused = usable_runs(table, "composition")
    assert unused == {**shared, runs[2]: "some kernels were not measured", **failed}
    assert list(used.runs) == runs[3:39]
    used, unused = usable_runs(table, "prediction")
    assert unused == {**shared, runs[3]: "all kernels were predicted as 0", **failed}
    assert list(used.runs) == [runs[2], *runs[4:39]]


def test_no_usable_run_is_refused(runs_of: Any) -> None:
    with pytest.raises(
        InputError,
        match=r"simulated.csv: no run has .* table: 40\. .* not measured end to end .*table of r",
    ):
        usable_runs(runs_of(run_measured=[None] * 160), "composition")


def test_runs_that_can_be_predicted_and_why_not_the_others(runs_of: Any) -> None:
    whole = runs_of()
    measured, predicted = whole.measured.copy(), whole.predicted.copy()
    measured[4], predicted[8:12] = np.nan, 0.0
    changed = runs_of(measured=measured.tolist(), predicted=predicted.tolist())
    for task, correction, lost in (
        ("composition", None, {whole.runs[1]: "some kernels were not measured"}),
        ("prediction", None, {whole.runs[2]: "all kernels were predicted as 0"}),
        # What is predicted as 0 is corrected to what such kernels take.
        ("prediction", KernelCorrection(), {}),
    ):
        preparation = Preparation(fit_features(whole, task=task), correction)
        kept, unused = preparation.usable(changed)
        assert unused == lost
        assert list(kept.runs) == [run for run in whole.runs if run not in lost]
    none = runs_of(measured=[None] * whole.n)
    assert Preparation(fit_features(whole, task="composition")).usable(none) == (none, {})


def test_runs_at_positions_and_under_a_mask(runs_of: Any) -> None:
    table = runs_of()
    mask = np.zeros(40, dtype=bool)
    mask[[3, 5]] = True
    assert list(runs_at(table, mask).runs) == [table.runs[3], table.runs[5]]
    assert list(runs_at(table, np.array([5])).runs) == [table.runs[5]]


def test_spread_beyond_the_typical_one(runs_of: Any) -> None:
    table = runs_of(("A100", "L4"), ("bert", "opt"))
    state = fit_features(table, task="prediction")
    correction = KernelCorrection().fit(table)
    plain = Preparation(state, correction, 0.0)
    found = plain.prepare(table)
    assert (found.spread > 0).all()
    assert plain.excess(found) == pytest.approx(found.spread)
    typical = float(found.spread[0])
    excess = Preparation(state, correction, typical).excess(found)
    assert excess[0] == 0
    assert excess == pytest.approx(np.sqrt(np.maximum(found.spread**2 - typical**2, 0)))


def test_failed_kernels_are_refused(runs_of: Any) -> None:
    table = runs_of(("A100", "L4"), ("bert", "opt"))
    preparation = Preparation(
        fit_features(table, task="prediction"), KernelCorrection().fit(table), 0.0
    )
    failed = runs_of(("A100", "L4"), ("bert", "opt"), status=["failed", *["ok"] * 31])
    with pytest.raises(InputError, match="A100/bert/1"):
        preparation.prepare(failed)


def test_runs_in_another_unit_than_their_kernels_are_refused(runs_of: Any) -> None:
    changed = runs_of(run_measured=runs_of().run_measured * 1e-3)
    with pytest.raises(
        InputError, match="take 0.001 times as long as their kernels.*different units"
    ):
        usable_runs(changed, "composition")


def test_runs_that_kernels_hardly_explain_are_refused_with_the_share(runs_of: Any) -> None:
    totals = dict(zip(runs_of().runs, runs_of().totals().measured, strict=True))
    ends = [80 * totals[run] for run in runs_of().run]
    with pytest.raises(
        InputError, match=r"kernels explain only 1\.2 % of the time of .* host or waiting time"
    ):
        usable_runs(runs_of(run_measured=ends), "composition")
    assert usable_runs(runs_of(run_measured=[end / 2 for end in ends]), "composition")[1] == {}


def test_a_run_of_ages_is_refused(runs_of: Any) -> None:
    table = runs_of()
    for column, longest in (("measured", r"9\.6e\+301"), ("run_measured", r"1e\+300")):
        times = getattr(table, column).copy()
        times[table.run == "L4/opt/8"] = 1e300
        with pytest.raises(InputError, match=f"run L4/opt/8 took up to {longest} ms, more than"):
            usable_runs(runs_of(**{column: times}), "composition")


def test_names_that_no_model_file_holds_are_refused_before_the_work(runs_of: Any) -> None:
    table = runs_of()
    model = ["m" * 300 if name == "opt" else name for name in table.column("model")]
    with pytest.raises(
        InputError, match=r"model m{40}… has 300 characters, but a model file allow"
    ):
        usable_runs(runs_of(model=model), "composition")
