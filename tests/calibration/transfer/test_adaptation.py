"""A model that is adapted: predictions, files, repeated and impossible adaptations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import Composition, adapt_model, load_model, save_model
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.modelfile import Member
from errcomp.calibration.storing import content_of, model_of
from errcomp.calibration.transfer.adaptation import Adaptation, LeftOutRun
from errcomp.calibration.transfer.adapting import Adapted
from errcomp.calibration.transfer.held_out import HeldOut
from errcomp.documents import load
from errcomp.errors import InputError, LeftOutWarning
from errcomp.tables import Kernels

pytestmark = pytest.mark.usefixtures("few_choices")
KNOWN = ("A100", "L4", "MI210", "V100")


def slow(runs: Kernels, factor: float) -> Kernels:
    """Make all runs of a table take longer than their kernels say."""
    changed = runs.take(np.arange(runs.n))
    changed.run_measured = runs.run_measured * factor
    return changed


def some(runs: Kernels, *names: str) -> Kernels:
    return runs.take(np.isin(runs.run.astype(str), names))


@pytest.fixture(scope="module")
def new(runs_of: Any) -> Kernels:
    """Runs of a device that takes 15 % longer than the kernels of the others would say."""
    return slow(runs_of(("H100",), seed=4), 1.15)


NAMES = ("H100/bert/1", "H100/opt/8", "H100/xlnet/1")


@pytest.fixture(scope="module")
def result(model: CompositionModel, new: Kernels, few_choices: None) -> Adaptation:
    return adapt_model(model, some(new, *NAMES))


@pytest.fixture(scope="module")
def adapted(result: Adaptation) -> CompositionModel:
    assert result.model is not None
    return result.model


@pytest.mark.slow
def test_predictions_move_to_the_device(model: CompositionModel, new: Kernels) -> None:
    rest = new.take(~np.isin(new.run.astype(str), NAMES))
    truth = rest.totals().run_measured
    found = model.adapt(some(new, *NAMES))
    before, after = model.predict(rest), found.predict(rest)
    errors = [np.abs(p.predicted / truth - 1).mean() for p in (before, after)]
    assert errors[1] < 0.6 * errors[0]
    assert (after.predicted > before.predicted).all()
    assert set(after.fallback) == {"adapted"}
    assert "predicted from all devices and 3 runs of its own" in after.warnings[0][0]
    for estimator in model.estimators:
        moved = found.predict(rest, estimator=estimator)
        assert (moved.low[:, 0] <= moved.predicted).all()
        assert (np.diff(moved.high, axis=1) >= 0).all()
        assert (np.diff(moved.quantiles, axis=1) >= 0).all()
        assert sum(moved.parts.values()) + moved.total == pytest.approx(moved.predicted)


@pytest.mark.slow
def test_other_devices_stay_as_they_were(
    model: CompositionModel, new: Kernels, runs_of: Any
) -> None:
    found, others = model.adapt(some(new, *NAMES)), runs_of(("V100", "T4"), seed=9)
    assert found.predict(others).to_dict() == model.predict(others).to_dict()
    assert not model.adapted


def test_the_result_says_what_changed(
    model: CompositionModel, result: Adaptation, new: Kernels
) -> None:
    found = result
    (row,) = found.rows
    assert (row.device, row.in_fit, row.runs, row.groups) == ("H100", False, 3, 4)
    truth, predicted = (
        some(new, *NAMES).totals().run_measured,
        model.predict(some(new, *NAMES)).predicted,
    )
    assert row.error_before == pytest.approx(np.mean(np.abs(predicted / truth - 1)))
    assert 0.02 < row.shift < 0.2
    assert 0.1 < row.width < 1.0
    assert repr(found) == "Adaptation(H100: 3 runs)"
    again = load(found.to_dict())
    assert (again.rows, again.estimator, again.model) == (found.rows, "physics", None)


@pytest.mark.parametrize(("names", "told"), [("a", "run a left out"), ("ab", "runs a, b left out")])
def test_runs_that_were_left_out_are_named(names: str, told: str) -> None:
    left_out = tuple(LeftOutRun(name, "not measured end to end") for name in names)
    assert Adaptation(rows=(), estimator="sum", left_out=left_out).dropped == told


def test_a_device_of_the_fit_is_adapted_too(model: CompositionModel, runs_of: Any) -> None:
    """After an update the runs of a known device take longer."""
    later = slow(runs_of(("V100",), seed=7), 1.2)
    found = adapt_model(model, some(later, "V100/bert/1", "V100/gpt2/8", "V100/opt/1"))
    (row,) = found.rows
    assert (row.in_fit, row.groups) == (True, 4)
    rest = some(later, "V100/xlnet/8")
    assert found.model.predict(rest).predicted[0] > model.predict(rest).predicted[0]


def test_a_file_holds_the_adaptation(
    adapted: CompositionModel, new: Kernels, tmp_path: Path
) -> None:
    found = adapted
    save_model(found, tmp_path / "new.errcomp", created="2026-01-31")
    again = load_model(tmp_path / "new.errcomp")
    assert again.predict(new).to_dict() == found.predict(new).to_dict()
    assert again.to_dict()["adapted"] == [{"device": "H100", "runs": 3, "in_fit": False}]
    more = again.adapt(some(new, "H100/gpt2/8"))
    assert [str(run) for run in more.adapted["H100"].run] == [*NAMES, "H100/gpt2/8"]


@pytest.mark.slow
def test_runs_one_by_one_are_as_good_as_together(model: CompositionModel, new: Kernels) -> None:
    together, one_by_one = model.adapt(some(new, *NAMES)), model
    for name in NAMES:
        one_by_one = one_by_one.adapt(some(new, name))
    assert one_by_one.predict(new).predicted == pytest.approx(together.predict(new).predicted)


def test_times_in_another_unit_are_the_same_runs(
    model: CompositionModel, result: Adaptation, new: Kernels
) -> None:
    micro = some(new, *NAMES)
    for name in ("measured", "predicted", "run_measured"):
        setattr(micro, name, getattr(micro, name) * 1000)
    micro.unit = "us"
    found = adapt_model(model, micro)
    assert found.rows[0].shift == pytest.approx(result.rows[0].shift)
    micro.unit = None
    with pytest.raises(InputError, match="unit"):
        model.adapt(micro)


def test_runs_that_tell_nothing_are_left_out(
    model: CompositionModel, new: Kernels, runs_of: Any
) -> None:
    """A run of the fit, one without an end-to-end time, one that was used already."""
    fit = some(runs_of(KNOWN), "A100/bert/1")
    with pytest.raises(InputError, match=r"the model was fitted to this run \(1 run\)\. "):
        model.adapt(fit)
    lacking = some(new, *NAMES)
    lacking.run_measured = np.where(lacking.run == NAMES[0], np.nan, lacking.run_measured)
    with pytest.warns(LeftOutWarning, match="H100/bert/1 left out: not measured end to end"):
        once = model.adapt(lacking)
    with pytest.warns(LeftOutWarning, match="already adapted"):
        twice = once.adapt(some(new, *NAMES))
    assert len(twice.adapted["H100"]) == 3
    with pytest.raises(InputError, match=r"already adapted .*\(3 runs\)\. "):
        twice.adapt(some(new, *NAMES))


def test_a_run_needs_a_device(model: CompositionModel, runs_of: Any) -> None:
    nameless = runs_of(("",), ("bert",), seed=4)
    with pytest.raises(InputError, match="no device is given"):
        model.adapt(nameless)


@pytest.mark.slow
def test_another_task_is_refused(runs_of: Any, new: Kernels) -> None:
    model = Composition(task="prediction", estimators=()).fit(runs_of(KNOWN)).model_
    unpredicted = some(new, *NAMES)
    unpredicted.predicted = np.full(unpredicted.n, np.nan)
    with pytest.raises(InputError, match="some kernels were not predicted"):
        model.adapt(unpredicted)
    assert model.adapt(some(new, *NAMES)).adapted["H100"].regime == "global"


def test_too_few_devices_are_said(runs_of: Any, new: Kernels) -> None:
    """Two devices do not show how much devices differ: the usual shift, no calibrated band."""
    model = Composition(estimators=()).fit(runs_of(("A100", "V100"))).model_
    found = adapt_model(model, some(new, *NAMES))
    assert found.rows[0].groups == 0
    assert "taken to differ by 10 %" in str(found)
    assert not found.model.predict(new).calibrated.any()


def test_a_model_of_an_earlier_version_is_refused(model: CompositionModel, new: Kernels) -> None:
    with pytest.raises(InputError, match="written by an earlier version of errcomp"):
        replace(model, held_out=None).adapt(new)


@pytest.mark.slow
def test_an_estimator_adapts_in_place(runs_of: Any, new: Kernels) -> None:
    fitted = Composition(estimators=()).partial_fit(runs_of(KNOWN))
    before = fitted.predict(new).predicted
    assert fitted.partial_fit(some(new, *NAMES)) is fitted
    assert (fitted.predict(new).predicted > before).all()
    assert fitted.adapt(some(new, "H100/opt/1")).model_ is fitted.model_
    assert len(fitted.model_.adapted["H100"]) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {**a, "run": a["run"][:1]},
        lambda a: {**a, "x": a["x"][:, :3]},
        lambda a: {**a, "errors": a["errors"] * np.inf},
        lambda a: {k: v for k, v in a.items() if k != "x"},
    ],
)
def test_damaged_arrays_of_an_adaptation(adapted: CompositionModel, change: Any) -> None:
    meta, arrays = adapted.adapted["H100"].to_arrays()
    with pytest.raises(InputError, match="run, x and errors"):
        Adapted.from_arrays(meta, change(arrays))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": [0.1, 0.0, 0.0, 0.03]}, "impossible numbers"),
        ({"settings": [0.1, 0.0]}, "incomplete"),
        ({"factors": [1.0]}, "impossible numbers"),
        ({"factors": [1.0, 1.0, 1.0, float("nan")]}, "impossible numbers"),
        ({"groups": -1}, "impossible numbers"),
        ({"groups": None}, "incomplete"),
    ],
)
def test_damaged_numbers_of_an_adaptation(
    adapted: CompositionModel, change: dict[str, Any], message: str
) -> None:
    meta, arrays = adapted.adapted["H100"].to_arrays()
    meta["learnt"]["sum"] |= change
    with pytest.raises(InputError, match=message):
        Adapted.from_arrays(meta, arrays)
    with pytest.raises(InputError, match="and a regime"):
        Adapted.from_arrays({**meta, "regime": "moon"}, arrays)


def test_parts_that_do_not_fit_the_model(
    model: CompositionModel, adapted: CompositionModel
) -> None:
    content = content_of(adapted, created="2026-01-31")
    twice = Member.of("adapted_1", adapted.adapted["H100"])
    twice = replace(twice, non_finite=("x",))
    with pytest.raises(InputError, match="is there twice"):
        model_of(replace(content, members=(*content.members, twice)))
    assert model.held_out is not None
    few = HeldOut(dict([*model.held_out.by_kind.items()][:2]))
    part = replace(Member.of("held_out", few), non_finite=("error", "below", "above"))
    members = tuple(part if m.name == "held_out" else m for m in content.members)
    with pytest.raises(InputError, match="held-out errors do not match"):
        model_of(replace(content, members=members))


def test_damaged_held_out_errors(model: CompositionModel) -> None:
    assert model.held_out is not None
    meta, arrays = model.held_out.to_arrays()
    with pytest.raises(InputError, match="pairs of estimator and regime"):
        HeldOut.from_arrays({"kinds": "sum"}, arrays)
    with pytest.raises(InputError, match="below must be float64 of shape"):
        HeldOut.from_arrays(meta, {**arrays, "below": arrays["below"][:, :2]})
    with pytest.raises(InputError, match="above must be finite and not negative"):
        HeldOut.from_arrays(meta, {**arrays, "above": -arrays["above"]})
