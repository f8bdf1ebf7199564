"""Fit, calibrate, predict, store: the whole of it, with what is fitted at once."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.composition import Composition
from errcomp.calibration.composition import fits as parts
from errcomp.calibration.composition.fits import Fits
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.estimators import BASELINES
from errcomp.calibration.evaluation import Evaluation
from errcomp.calibration.evaluation.composed import evaluate_composition
from errcomp.calibration.features import FEATURE_NAMES
from errcomp.calibration.fitted import CompositionModel, widened
from errcomp.calibration.storing import load_model, save_model
from errcomp.calibration.view.model import fit_tables, model_document
from errcomp.datasets import example_runs
from errcomp.errors import InputError
from errcomp.report.model import Table
from errcomp.results import format_number
from errcomp.tables import Kernels

PLAIN = ("device",)
#: Corrections of kernels take their time: a table as small as it may be.
FEW: tuple[tuple[str, ...], tuple[str, ...]] = (("A100", "L4", "V100"), ("bert", "gpt2", "opt"))


def said(tables: list[Table]) -> str:
    """What people read of tables."""
    cells = [column.cell(row).text for one in tables for row in one.rows for column in one.columns]
    return "\n".join([*cells, *(note.text for one in tables for note in one.remarks())])


@pytest.fixture(scope="module")
def predicting(runs_of: Any, few_rounds: Any) -> Composition:
    """A fit to few runs, in ms; no test changes it."""
    with few_rounds():
        return Composition(task="prediction", estimators=PLAIN).fit(runs_of(FEW[0][:2], FEW[1]))


@pytest.fixture(scope="module")
def by_device(runs_of: Any) -> Evaluation:
    return evaluate_composition(runs_of(), estimators=PLAIN, splits=["leave-device-out"])


def test_learns_what_launches_and_devices_cost(fitted: Composition, runs_of: Any) -> None:
    new = runs_of(seed=1)
    found = fitted.predict(new, estimator="linear")
    truth = new.totals().run_measured
    naive = np.abs(new.totals().measured / truth - 1).mean()
    assert naive > 0.05
    assert np.abs(found.predicted / truth - 1).mean() < 0.6 * naive
    assert found.total == pytest.approx(new.totals().measured)


def test_the_sum_is_left_as_it_is(fitted: Composition, runs_of: Any) -> None:
    new = runs_of(seed=1)
    found = fitted.predict(new, estimator="sum")
    assert found.predicted == pytest.approx(new.totals().measured)


def test_bands_hold_what_they_promise_on_new_runs(fitted: Composition, runs_of: Any) -> None:
    new = runs_of(seed=2)
    truth = new.totals().run_measured
    found = fitted.predict(new, estimator="linear")
    inside = [(found.band(p)[0] <= truth) & (truth <= found.band(p)[1]) for p in LEVELS]
    assert np.all(np.diff([one.mean() for one in inside]) >= 0)
    assert inside[LEVELS.index(0.9)].mean() > 0.8
    assert np.all(np.diff(found.low, axis=1) <= 0)
    assert np.all(np.diff(found.quantiles, axis=1) >= 0)


def test_new_devices_are_answered_from_all_with_a_wider_band(
    fitted: Composition, runs_of: Any
) -> None:
    known = fitted.predict(runs_of(("L4",), seed=3))
    new = fitted.predict(runs_of(("B200",), seed=3))
    assert set(known.fallback) == {"device"}
    assert set(new.fallback) == {"global"}
    assert new.relative_width.mean() > 1.5 * known.relative_width.mean()
    assert "device 'B200' was not in the fit" in new.warnings[0][0]
    assert known.warnings[0] == ()


def test_parts_add_up(fitted: Composition, runs_of: Any) -> None:
    found = fitted.predict(runs_of(seed=1))
    assert found.total + sum(found.parts.values()) == pytest.approx(found.predicted)


def test_order_of_rows_does_not_matter(runs_of: Any) -> None:
    table = runs_of(*FEW)
    new = runs_of(seed=1)
    mixed = table.take(np.random.default_rng(0).permutation(table.n))
    one, other = (
        Composition(estimators=PLAIN).fit(each).predict(new, estimator="linear")
        for each in (table, mixed)
    )
    assert other.predicted == pytest.approx(one.predicted, rel=1e-9)
    assert other.low == pytest.approx(one.low, rel=1e-9)


@pytest.mark.parametrize("task", ["composition", "prediction"])
def test_units_do_not_matter(runs_of: Any, task: Any, request: pytest.FixtureRequest) -> None:
    table = runs_of(("A100", "L4"), ("bert", "gpt2", "opt"))
    names = ("predicted", "measured", "run_measured")
    keys = ("run", "device", "model", "mode", "kernel", "kernel_class")
    columns = {**{name: table.column(name) for name in keys}, "count": table.count}
    times = {name: 1e3 * getattr(table, name) for name in names}
    micro = Kernels({**columns, **times}, unit="us")
    if task == "prediction":  # corrections of kernels take their time: of ms, and used for µs
        model = request.getfixturevalue("predicting")
        assert model.model_.training.x.shape[0] == table.n_runs
    else:
        model = Composition(task=task, estimators=PLAIN).fit(micro)
    expected, found = (model.predict(one, estimator="linear") for one in (micro, table))
    assert 1e3 * found.predicted == pytest.approx(expected.predicted, rel=1e-9)
    assert 1e3 * found.high == pytest.approx(expected.high, rel=1e-9)
    assert found.unit == "ms"


@pytest.mark.slow
def test_kernels_measured_in_a_prediction_are_not_looked_at(
    predicting: Composition, runs_of: Any
) -> None:
    new = runs_of(seed=1)
    blind = runs_of(seed=1, measured=[None] * new.n, run_measured=[None] * new.n)
    for name in predicting.model_.estimators:
        seen, unseen = (predicting.predict(one, estimator=name) for one in (new, blind))
        assert np.array_equal(seen.predicted, unseen.predicted)
        assert np.array_equal(seen.low, unseen.low)


@pytest.mark.slow
def test_kernels_without_like_ones_widen_the_band(predicting: Composition, runs_of: Any) -> None:
    new = runs_of(("L4",), seed=1)
    strange = runs_of(("L4",), seed=1, kernel_class=["Conv"] * new.n, kernel=["conv"] * new.n)
    known, unknown = (predicting.predict(one, estimator="device") for one in (new, strange))
    assert unknown.relative_width.mean() > 1.1 * known.relative_width.mean()
    assert "kernel classes were not measured on the device" in unknown.warnings[0][-1]
    assert "100 % corrected from other classes on the device)" in unknown.warnings[0][-1]


@pytest.mark.slow
def test_modes_with_enough_models_have_bands_of_their_own(runs_of: Any, tmp_path: Any) -> None:
    """Training errs fifteen times as much."""
    models = tuple(f"net{i:02}" for i in range(20))
    table = runs_of(("A100",), models)
    at = np.array([models.index(name) for name in table.column("model")])
    training = np.char.endswith(table.run.astype(str), "/8")
    noise = np.random.default_rng(5).standard_normal((2, 20))
    mode = np.where(training, "training", "inference")
    shift = np.where(training, 0.3 * noise[1, at], 0.02 * noise[0, at])
    total = dict(zip(table.totals().run, table.totals().measured, strict=True))
    ends = np.array([total[run] for run in table.run]) * np.exp(shift)
    changed = runs_of(("A100",), models, mode=mode, run_measured=ends)
    fitted = Composition(estimators=PLAIN).fit(changed)
    found = fitted.predict(changed, estimator="sum")
    own = fitted.model_.bands["sum", "device"].categories_
    assert set(own) == {"inference", "training"}
    which = np.char.endswith(found.run.astype(str), "/8")
    width = found.relative_width
    assert width[which].min() > 4 * width[~which].max()
    document = {**model_document(fitted.model_), "source": ""}
    row, text = document["rows"][0], said(fit_tables(document))
    factors = row["factor_90_by_mode"]
    assert factors["training"] > 4 * factors["inference"]
    assert f"inference {format_number(factors['inference'], 2)}, training" in text
    shown = said(found.view(fitted.model_).tables)
    assert "Separate bands: inference, training." in shown
    path = tmp_path / "m.errcomp"
    save_model(fitted.model_, path, created="2030-01-31")
    assert load_model(path).predict(changed, estimator="sum").low == pytest.approx(found.low)


@pytest.mark.extras
def test_too_few_runs_are_refused(runs_of: Any) -> None:
    runs = runs_of(("A100",), ("bert", "opt", "xlnet"))
    with pytest.raises(
        InputError, match=r"at least 8 measured runs, got 6\. Measure 2 more.*3 runs"
    ):
        Composition(estimators=("boosted",)).fit(runs)
    Composition(estimators=PLAIN).fit(runs)  # six are enough for baselines
    with pytest.raises(InputError, match=r"at least 3 measured runs, got 2\. Measure 1 more"):
        Composition(estimators=PLAIN).fit(runs_of(("A100",), ("bert",)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(lambda rng, n: rng.standard_t(3, n) * 0.06, id="heavy tails"),
        pytest.param(
            lambda rng, n: np.where(rng.random(n) < 0.2, 0.18, -0.05) + rng.normal(0, 0.03, n),
            id="a mixture",
        ),
    ],
)
def test_bands_of_baselines_hold_from_three_runs(noise: Any) -> None:
    rng, fitted, new, repeats = np.random.default_rng(5), 3, 8, 25
    inside = dict.fromkeys(BASELINES, 0)
    for _ in range(repeats):
        n = fitted + new
        total = rng.lognormal(3, 1, n)
        run = total * np.exp(0.15 + noise(rng, n))
        names = [f"r{i}" for i in range(n)]
        runs = Kernels(
            {"run": names, "model": names, "measured": total, "run_measured": run}
            | {"kernel": ["k"] * n, "device": ["d"] * n, "mode": ["inference"] * n},
            unit="ms",
        )
        model = Composition(estimators=()).fit(runs.where({"run": names[:fitted]}))
        for name in BASELINES:
            found = model.predict(runs.where({"run": names[fitted:]}), estimator=name)
            at, true = found.levels.index(0.9), run[fitted:]
            held = (found.low[:, at] <= true) & (true <= found.high[:, at])
            inside[name] += int(held.sum())
    # Runs of one fit share its error: two standard errors of 25 fits.
    for name, n in inside.items():
        assert n / (repeats * new) > 0.9 - 2 * np.sqrt(0.9 * 0.1 / repeats), name


def test_runs_without_a_measurement_are_not_used(runs_of: Any) -> None:
    ends = runs_of(*FEW).run_measured.copy()
    ends[:24] = np.nan
    found = Composition(estimators=PLAIN).fit(runs_of(*FEW, run_measured=ends.tolist()))
    assert len(found.model_.training) == 12
    assert found.model_.training.devices == ("L4", "V100")


def test_one_device_has_no_band_for_others(runs_of: Any) -> None:
    found = Composition(estimators=PLAIN).fit(runs_of(("A100",)))
    regimes = {regime for _, regime in found.model_.bands}
    assert regimes == {"device"}
    new = found.predict(runs_of(("H100",), seed=1))
    assert any("too few devices in the fit to calibrate" in text for text in new.warnings[0])
    # Devices usually differ by 10 %, whatever one of them says: 1.64 times that to either side.
    assert new.relative_width.min() > 2 * 1.6 * 0.1


def test_estimators_that_were_not_fitted_are_named(fitted: Composition, runs_of: Any) -> None:
    with pytest.raises(
        InputError, match="'boosted' is not in this model. Estimators in the model: sum, global"
    ):
        fitted.predict(runs_of(), estimator="boosted")


def test_progress_ends_at_all(runs_of: Any) -> None:
    said: list[tuple[float, float]] = []
    Composition(estimators=PLAIN).fit(runs_of(*FEW), progress=lambda *at: said.append(at))
    # Four models: fitted, and without each of 3 models and 3 devices.
    assert said == [(i + 1, 28) for i in range(28)]


@pytest.mark.parametrize("task", ["fitted", "predicting"])
def test_a_stored_model_says_the_same(
    task: str, runs_of: Any, tmp_path: Any, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(task).model_
    path = tmp_path / "gpu.errcomp"
    save_model(model, path, created="2026-01-31")
    found = load_model(path)
    assert isinstance(found, CompositionModel)
    new = runs_of(("L4", "B200"), seed=4)
    for name in model.estimators:
        one, other = model.predict(new, estimator=name), found.predict(new, estimator=name)
        for what in ("predicted", "low", "high", "quantiles"):
            assert np.array_equal(getattr(one, what), getattr(other, what))
        assert one.rows() == other.rows()
        assert one.notes == other.notes
    assert found.training.ranges == model.training.ranges
    assert found.fingerprint == model.fingerprint
    assert found.created == "2026-01-31"
    before = path.read_bytes()
    save_model(found, path, created="2026-01-31")
    assert path.read_bytes() == before


@pytest.mark.slow
def test_classes_that_a_device_lacks_can_be_stored(runs_of: Any, tmp_path: Any) -> None:
    table = runs_of(*FEW)
    kept = table.take(~((table.device == "L4") & (table.kernel_class == "Gelu")))
    model = Composition(task="prediction", estimators=PLAIN).fit(kept).model_
    save_model(model, tmp_path / "m.errcomp", created="2026-01-31")
    found = load_model(tmp_path / "m.errcomp").predict(table)
    assert np.array_equal(found.high, model.predict(table).high)


@pytest.mark.slow
def test_evaluation_is_of_models_that_saw_nothing(runs_of: Any, by_device: Evaluation) -> None:
    table = runs_of()
    new = table.take(table.device == "L4")
    rest = Composition(estimators=PLAIN).fit(table.take(table.device != "L4"))
    held = by_device.held_out["leave-device-out", "linear"]
    expected = rest.predict(new, estimator="linear")
    assert held.predicted[held.device == "L4"] == pytest.approx(expected.predicted, rel=1e-12)
    assert held.low[held.device == "L4"] == pytest.approx(expected.low, rel=1e-12)
    assert by_device.row("leave-device-out", "linear").verdict.startswith("beats sum")


@pytest.mark.slow
def test_an_evaluation_counts_bands_that_nothing_calibrated(
    runs_of: Any, by_device: Evaluation
) -> None:
    """Of three devices one left out leaves two: too few; of five it leaves four."""
    split, few = "leave-device-out", runs_of(*FEW)
    found = evaluate_composition(few, estimators=PLAIN, splits=[split])
    assert found.row(split, "linear").uncalibrated == few.n_runs
    assert found.to_dict()["rows"][0]["uncalibrated"] == few.n_runs
    text = said(found.view().tables)
    assert "sum, global, device, linear: the bands of 18 runs are not calibrated" in text
    assert by_device.row(split, "linear").uncalibrated == 0


@pytest.mark.slow
def test_an_evaluation_says_what_one_device_does_not_allow(runs_of: Any) -> None:
    splits = ["leave-device-out", "leave-model-out"]
    table = runs_of(("A100",), tuple("abcdefg"))
    found = evaluate_composition(table, estimators=PLAIN, splits=splits)
    assert {row.split for row in found.rows} == {"leave-model-out"}
    text = said(found.view().tables)
    assert "Not done: leave-device-out needs runs of at least 2 devices, got 1" in text


def test_unknown_estimators_are_refused_before_the_work(runs_of: Any) -> None:
    with pytest.raises(InputError, match="unknown estimator 'oracle'"):
        evaluate_composition(runs_of(), estimators=["oracle"])


def test_widened_quantiles_stay_in_order_around_the_median() -> None:
    q = np.linspace(-0.1, 0.1, len(QUANTILES))[None, :] + 0.3
    assert widened(q, np.zeros(1)) == pytest.approx(q)
    wide = widened(q, np.array([0.2]))
    middle = QUANTILES.index(0.5)
    assert wide[0, middle] == q[0, middle]
    assert np.all(np.diff(wide) > 0)
    # At 95 % the error of the sum alone is 1.64 standard deviations.
    at = QUANTILES.index(0.95)
    expected = np.hypot(q[0, at] - q[0, middle], 0.2 * 1.6448536)
    assert wide[0, at] - q[0, middle] == pytest.approx(expected)


def test_a_wrong_unit_is_asked_for(fitted: Composition, runs_of: Any) -> None:
    new = runs_of(seed=1)
    names = ("run", "device", "model", "mode", "kernel", "kernel_class")
    columns = {**{name: new.column(name) for name in names}, "count": new.count}
    said = [
        fitted.predict(Kernels({**columns, "measured": f * new.measured}, unit="ms")).notes
        for f in (1.0, 1e3, 1e-3)
    ]
    assert not any("is the unit right?" in note for note in said[0])
    assert "times longer than in any run of the fit" in said[1][0]
    assert "times shorter than in any run of the fit" in said[2][0]


def test_a_unit_is_asked_for_before_the_splits(runs_of: Any) -> None:
    bare = Kernels({"run": ["a"], "kernel": ["k"], "measured": [1.0], "run_measured": [1.0]})
    with pytest.raises(
        InputError, match="uses launch times in µs. State the unit of the times, e.g."
    ):
        evaluate_composition(bare, estimators=PLAIN)


@pytest.mark.slow
@pytest.mark.extras
@pytest.mark.parametrize("task", ["composition", "prediction"])
def test_processes_change_nothing(task: Any, runs_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("joblib")
    few = runs_of(("A100", "L4"), ("bert", "gpt2", "opt", "xlnet"))
    seen: list[tuple[int, int]] = []
    options: dict[str, Any] = {
        "task": task, "estimators": PLAIN, "splits": ["leave-device-out"],
        "progress": lambda *done: seen.append(done),
    }  # fmt: skip
    one = evaluate_composition(few, **options)
    folds = len(seen)
    for name in ("fit_member", "KernelCorrection"):  # nothing is fitted here
        monkeypatch.setattr(parts, name, None)
    two = evaluate_composition(few, n_jobs=2, **options)
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())
    counted = seen[folds:]
    assert counted == sorted(set(counted))
    assert counted[-1][0] == counted[-1][1] > folds


@pytest.mark.extras
def test_is_cloned_and_set_like_an_estimator_of_scikit_learn(fitted: Composition) -> None:
    clone = pytest.importorskip("sklearn.base").clone
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")
    assert copy.set_params(task="prediction", seed=3) is copy
    assert repr(copy) == "Composition(task='prediction', estimators=('device',), seed=3)"
    assert fitted.get_params()["task"] == "composition"


def held_out_fits() -> tuple[Fits, Composition, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Held-out quantiles of three models: one is right, one too high, one knows no new device.

    Of ten runs the first is flagged and the last is not in the fit; the right model is wrong there.
    """
    at = np.arange(10)
    measured = 1.0 + at
    table = Kernels(
        {
            "run": [f"r{i}" for i in at],
            "device": [*"ABCDABCDAB"],
            "model": [*"xyzxyzxyzx"],
            "kernel": ["gemm"] * 10,
            "measured": measured.tolist(),
            "run_measured": (1.1 * measured).tolist(),
        },
        unit="ms",
    )
    fits = Fits(table, "composition", seed=0, n_jobs=1)
    runs = at < 9
    truth = np.log(fits.measured[runs])
    spread = np.linspace(-0.01, 0.01, len(QUANTILES))
    right, high = truth[:, None] + spread, truth[:, None] + 2 + spread
    wrong = right.copy()
    wrong[0] += 9
    unknown = np.full_like(right, np.nan)
    composition = Composition(estimators=())
    composition.left_out_ = {
        "device": {"bayesian": high, "boosted": high, "physics": wrong},
        "global": {"bayesian": unknown, "boosted": high, "physics": wrong},
    }
    return fits, composition, runs, runs & (at > 0)


def test_the_stack_weighs_models_by_runs_that_are_not_flagged() -> None:
    fits, composition, runs, sound = held_out_fits()
    weights = composition._weights(fits, runs, sound)
    assert [*weights] == ["device", "global"]
    assert weights["device"] == pytest.approx({"bayesian": 0, "boosted": 0, "physics": 1}, abs=1e-9)
    # Nothing is known about all three: they weigh the same.
    assert weights["global"] == dict.fromkeys(("bayesian", "boosted", "physics"), 1 / 3)
    # Without the runs that one of them does not know, the right one is still the best.
    some = composition.left_out_["device"]["physics"].copy()
    some[1:3] = np.nan
    composition.left_out_["global"] = {**composition.left_out_["device"], "bayesian": some}
    again = composition._weights(fits, runs, sound)["global"]
    assert again["boosted"] == pytest.approx(0, abs=1e-9)


def test_bands_of_the_stack_are_those_of_its_weighted_quantiles() -> None:
    fits, composition, runs, sound = held_out_fits()
    weights = {key: {"boosted": 0.25, "physics": 0.75} for key in ("device", "global")}
    each = composition.left_out_["device"]
    mixed = 0.25 * each["boosted"] + 0.75 * each["physics"]
    composition.left_out_ = {regime: {**each, "linear": mixed} for regime in weights}
    doubts = dict.fromkeys(weights, np.zeros(9))
    names = ("linear", "physics", "stack")
    bands, held_out = composition._bands(fits, runs, sound, names, weights, doubts)
    assert {*held_out.by_kind} == {(name, regime) for name in names for regime in weights}
    assert {*bands} == {*held_out.by_kind}
    for regime in weights:
        stack, own, other = (
            held_out.by_kind[name, regime] for name in ("stack", "linear", "physics")
        )
        assert stack.error == pytest.approx(own.error)
        assert stack.error != pytest.approx(other.error)
        found = [info.factor for info in bands["stack", regime].info_]
        assert found == pytest.approx([info.factor for info in bands["linear", regime].info_])
    without, _ = composition._bands(fits, runs, sound, names[:2], {}, doubts)
    assert {name for name, _ in without} == {"linear", "physics"}


def test_corrections_of_kernels_are_a_part_of_the_prediction() -> None:
    """Its share is what the model says with them, less what it says without."""
    plain = Composition(estimators=()).fit(example_runs()).model_
    design = plain.preparation.prepare(example_runs()).design
    corrected = np.linspace(-0.2, 0.3, len(design))
    design.x[:, FEATURE_NAMES.index("kernel_correction")] = corrected
    design = replace(design, task="prediction")

    def explained(x: Any, *, device: Any) -> dict[str, Any]:
        assert device is design.device
        n = np.ones(len(x))
        # The correction of kernels is the last feature of this model.
        return {"launches": 0.1 * n, "offset": 0.02 + 0.5 * x[:, -1], "host": 0.03 * n, "more": n}

    model = replace(
        plain,
        preparation=replace(plain.preparation, correction=object()),
        members={**plain.members, "bayesian": SimpleNamespace(parts=explained)},
    )
    predicted = 1.2 * design.total
    found = model._parts(design, predicted)
    assert [*found] == ["kernels", "launches", "slow_kernels", "host", "other"]
    at = design.total.copy()
    for name, share in (
        ("kernels", 0.5 * corrected),
        ("launches", 0.1),
        ("slow_kernels", 0.02),
        ("host", 0.03),
    ):
        assert found[name] == pytest.approx(at * (np.exp(share) - 1))
        at = at * np.exp(share)
    assert found["other"] == pytest.approx(predicted - at)
    assert (design.x[:, FEATURE_NAMES.index("kernel_correction")] == corrected).all()
    measured = replace(model, preparation=replace(plain.preparation, correction=None))
    without = measured._parts(design, predicted)
    assert [*without] == ["launches", "slow_kernels", "host", "other"]
    assert [*plain._parts(design, predicted)] == ["other"]
