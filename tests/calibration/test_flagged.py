"""Runs with evidence against them: left out of a fit, kept for its bands, predicted with doubt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from errcomp.calibration import (
    Composition,
    check_runs,
    evaluate_composition,
    load_model,
    save_model,
)
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.transfer.adapting import learn
from errcomp.calibration.transfer.held_out import Left, calibrated
from errcomp.errors import InputError
from errcomp.tables import Kernels

SLOW = "L4/opt/8"
#: As few devices and models as calibrate all bands.
FEW = (("A100", "H100", "L4"), ("bert", "gpt2", "opt"))


def disturbed(runs: Kernels, name: str = SLOW, factor: float = 5.0) -> Kernels:
    """Make the matrix products of a run slower than they were in the run."""
    slow = (runs.run == name) & (runs.kernel_class == "Linear")
    runs.measured = np.where(slow, runs.measured * factor, runs.measured)
    return runs


@pytest.fixture(scope="module")
def flagging(runs_of: Any) -> Composition:
    """A fit to runs of which one is flagged."""
    return Composition(estimators=()).fit(disturbed(runs_of(*FEW)))


def test_a_fit_leaves_out_flagged_runs_and_says_so(flagging: Composition, runs_of: Any) -> None:
    clean = runs_of(*FEW)
    without = clean.take(clean.run != SLOW)
    assert [*flagging.unused_] == [SLOW]
    assert flagging.unused_[SLOW].startswith("flagged by slow-matmul, and used for the bands alone")
    assert len(flagging.model_.training) == without.n_runs == 17
    plain = Composition(estimators=()).fit(without)
    new = clean.take(clean.device == "H100")
    for name in ("global", "linear"):
        found, wanted = (
            each.predict(new, estimator=name).predicted.tolist() for each in (flagging, plain)
        )
        assert found == pytest.approx(wanted, rel=1e-9)


def test_bands_are_calibrated_on_flagged_runs_too(flagging: Composition) -> None:
    model = flagging.model_
    assert {band.info_[0].n for band in model.bands.values()} == {18}
    assert model.held_out is not None
    assert model.flagged is not None
    assert (model.flagged.device.tolist(), model.flagged.model.tolist()) == (["L4"], ["opt"])
    for left in model.held_out.by_kind.values():
        # The flagged run comes last; the doubt about its kernels explains all of its error.
        assert len(left.error) == 18
        assert abs(left.error[-1]) < 0.01
        assert np.abs(left.error[:-1]).max() > 0.05


def test_a_model_without_flagged_runs_has_none(fitted: Composition) -> None:
    model = fitted.model_
    assert model.flagged is None
    assert model.held_out is not None
    assert model.held_out.runs == 40


def test_a_model_file_keeps_flagged_runs(flagging: Composition, tmp_path: Path) -> None:
    model = flagging.model_
    save_model(model, tmp_path / "model.errcomp", created="2030-01-31")
    loaded = load_model(tmp_path / "model.errcomp")
    assert loaded.flagged is not None
    assert model.flagged is not None
    np.testing.assert_array_equal(loaded.flagged.x, model.flagged.x)


def test_a_flagged_run_of_the_fit_is_not_adapted_with(flagging: Composition, runs_of: Any) -> None:
    """Alone it might not be flagged again."""
    runs = disturbed(runs_of(*FEW))
    with pytest.raises(InputError, match="the fit left out this run, because a rule flags it"):
        flagging.model_.adapt(runs.take(runs.run == SLOW))


def test_flagged_runs_widen_the_bands_of_an_adaptation() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([f"gpu{i}" for i in range(8)], 6)
    sound = np.arange(48) % 6 > 0
    error = np.repeat(rng.normal(0, 0.1, 8), 6) + rng.normal(0, 0.02, 48) + 0.5 * ~sound
    z, reach = np.zeros((48, 1)), np.full((48, 4), 0.1) * [1, 2, 3, 4]
    left = Left(error, reach, reach)
    kept = left.at(np.flatnonzero(sound))
    wide = learn(z, groups, left, 2, 0, sound=sound)
    narrow = learn(z[sound], groups[sound], kept, 2, 0)
    assert wide.settings == narrow.settings
    assert wide.factors[2] > 1.5 * narrow.factors[2]


def test_flagged_runs_can_be_kept(flagging: Composition, runs_of: Any) -> None:
    kept = Composition(estimators=(), keep_flagged=True).fit(disturbed(runs_of(*FEW)))
    assert ([*flagging.unused_], kept.unused_) == ([SLOW], {})
    assert len(kept.model_.training) == 18
    assert kept.get_params()["keep_flagged"] is True


@pytest.mark.slow
def test_an_evaluation_leaves_flagged_runs_out_of_its_fits(runs_of: Any) -> None:
    runs = disturbed(runs_of(), factor=20.0)
    plain, without, kept = (
        evaluate_composition(runs, splits=["leave-model-out"], estimators=(), **options)
        for options in ({}, {"keep_flagged": False}, {"keep_flagged": True})
    )
    found, same, other = (
        each.row("leave-model-out", "linear").figures["mean_ape"].value
        for each in (plain, without, kept)
    )
    assert found == same != other


@pytest.mark.slow
def test_too_few_runs_are_all_kept(runs_of: Any) -> None:
    """A flag is no reason to refuse a fit."""
    fitted = Composition(estimators=("physics",)).fit(disturbed(runs_of(("L4",)), "L4/opt/8"))
    assert len(fitted.model_.training) == 8


def test_the_band_of_a_flagged_run_is_wider_by_the_doubt(fitted: Composition, runs_of: Any) -> None:
    model = fitted.model_
    new = runs_of(("L4",), seed=5)
    before = model.predict(new)
    after = model.predict(disturbed(runs_of(("L4",), seed=5)))
    at = after.run.tolist().index(SLOW)
    (row,) = [r for r in check_runs(disturbed(runs_of())).rows if r.rule == "slow-matmul"]
    assert row.run == SLOW
    wider = np.log(after.high / after.low)[:, 2] - np.log(before.high / before.low)[:, 2]
    assert wider[at] > 0.5
    assert np.delete(wider, at) == pytest.approx(0, abs=1e-9)
    (text,) = [text for text in after.warnings[at] if text.startswith("flagged by slow-matmul")]
    assert text.endswith("The band is wider by that")
    assert not any("flagged" in text for texts in before.warnings for text in texts)


def test_a_prediction_does_not_look_at_measured_phases(fitted: Composition, runs_of: Any) -> None:
    """They are part of what is to be predicted."""
    model = fitted.model_
    plain = runs_of(("L4",), seed=5)
    rows = range(plain.n)
    phase = ["forward" if i % 2 else "backward" for i in rows]
    took = [3.0 if i in (1, 3) else 1.0 + 0.05 * (i // 4 % 7) * (i % 2) for i in rows]
    phased = runs_of(("L4",), seed=5, phase=phase, phase_measured=took)
    assert [row.rule for row in check_runs(phased).rows] == ["phases"]
    assert model.predict(phased).high.tolist() == model.predict(plain).high.tolist()


def test_doubt_about_a_flagged_run_does_not_widen_other_bands() -> None:
    """Its own band will be wider by the doubt, so only what lies beyond counts."""
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 0.05, 80)
    groups = np.repeat([f"net{i}" for i in range(20)], 4)
    quantiles = np.tile(0.05 * norm.ppf(QUANTILES), (80, 1))
    slow = np.arange(80) % 8 == 0
    doubt = np.where(slow, 1.0, 0.0)
    plain, _ = calibrated(quantiles, truth, 0 * doubt, groups, None)
    off = truth + 0.9 * slow
    loose, _ = calibrated(quantiles, off, 0 * doubt, groups, None)
    told, left = calibrated(quantiles, off, doubt, groups, None)
    assert plain is not None
    assert loose is not None
    assert told is not None
    ninety = LEVELS.index(0.9)
    assert loose.factors_[ninety] > 3 * plain.factors_[ninety]
    assert told.factors_[ninety] == pytest.approx(plain.factors_[ninety], rel=0.15)
    np.testing.assert_array_equal(left.error[slow], 0.0)
    np.testing.assert_allclose(left.error[~slow], truth[~slow], atol=1e-12)
    _, left = calibrated(quantiles, off, 0.5 * doubt, groups, None)
    np.testing.assert_allclose(left.error[slow], off[slow] - 0.5, atol=1e-12)
    _, left = calibrated(quantiles, -off, 0.5 * doubt, groups, None)
    np.testing.assert_allclose(left.error[slow], 0.5 - off[slow], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("unseen_factor", "narrower"), [(1.0, 0.8), (1.3, 1.05)])
def test_bands_cover_new_runs_of_which_some_are_disturbed(
    runs_of: Any, unseen_factor: float, narrower: float
) -> None:
    """The kernels of a tenth of the runs were measured at lower clocks.

    A tenth of the runs may also be slow for a reason that nothing shows: then no band is narrow.
    """
    devices, models = tuple(f"gpu{i}" for i in range(6)), ("bert", "gpt", "opt", "mix", "vit")
    hits: dict[str, list[bool]] = {"all": [], "flagged": [], "kept": []}
    widths: dict[str, list[float]] = {"sound": [], "kept": []}
    for seed in range(16):
        table = runs_of(devices, models, seed=seed)
        rng = np.random.default_rng(1000 + seed)
        runs = np.asarray(table.runs)
        slow, unseen = (runs[rng.random(len(runs)) < 0.1].tolist() for _ in range(2))
        for name in slow:
            disturbed(table, name, 3.0)
        table.run_measured = table.run_measured * np.where(
            np.isin(table.run, unseen), unseen_factor, 1.0
        )
        new = table.take(table.device == "gpu5")
        flagged = np.isin(new.runs, slow)
        truth = np.log(new.totals().run_measured)
        for keep in (False, True):
            fitted = Composition(estimators=(), keep_flagged=keep)
            found = fitted.fit(table.take(table.device != "gpu5")).predict(new, estimator="linear")
            low, high = (np.log(part[:, LEVELS.index(0.9)]) for part in (found.low, found.high))
            inside = (low <= truth) & (truth <= high)
            hits["kept" if keep else "all"] += inside.tolist()
            if not keep:
                hits["flagged"] += inside[flagged].tolist()
            widths["kept" if keep else "sound"] += (high - low)[~flagged].tolist()
    # 160 runs in 16 tables: two standard errors are 5 points, more where errors are correlated.
    assert 0.86 <= np.mean(hits["all"]) <= 0.99
    assert np.mean(hits["flagged"]) >= 0.85
    assert np.median(widths["sound"]) < narrower * np.median(widths["kept"])
