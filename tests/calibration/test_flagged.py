"""Runs with evidence against them: left out of a fit, kept for its bands, predicted with doubt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import Composition, check_runs, load_model, save_model
from errcomp.calibration.transfer.adapting import learn
from errcomp.calibration.transfer.held_out import Left
from errcomp.tables import Kernels

SLOW = "L4/opt/8"


def disturbed(runs: Kernels, name: str = SLOW, factor: float = 5.0) -> Kernels:
    """Make the matrix products of a run slower than they were in the run."""
    slow = (runs.run == name) & (runs.kernel_class == "Linear")
    runs.measured = np.where(slow, runs.measured * factor, runs.measured)
    return runs


def test_a_fit_leaves_out_flagged_runs_and_says_so(runs_of: Any) -> None:
    clean = runs_of()
    without = clean.take(clean.run != SLOW)
    fitted = Composition(estimators=()).fit(disturbed(runs_of()))
    assert [*fitted.unused_] == [SLOW]
    assert fitted.unused_[SLOW].startswith("flagged by slow-matmul, and used for the bands alone")
    assert len(fitted.model_.training) == without.n_runs == 39
    plain = Composition(estimators=()).fit(without)
    new = clean.take(clean.device == "H100")
    for name in ("global", "linear"):
        found, wanted = (
            each.predict(new, estimator=name).predicted.tolist() for each in (fitted, plain)
        )
        assert found == pytest.approx(wanted, rel=1e-9)


def test_bands_are_calibrated_on_flagged_runs_too(runs_of: Any) -> None:
    model = Composition(estimators=()).fit(disturbed(runs_of())).model_
    assert {band.info_[0].n for band in model.bands.values()} == {40}
    assert model.held_out is not None
    assert model.flagged is not None
    assert (model.flagged.device.tolist(), model.flagged.model.tolist()) == (["L4"], ["opt"])
    for left in model.held_out.by_kind.values():
        # The errors of the flagged run come last: its sum of kernels is far too long.
        assert len(left.error) == 40
        assert left.error[-1] == left.error.min() < -0.5


def test_a_model_without_flagged_runs_has_none(runs_of: Any) -> None:
    model = Composition(estimators=()).fit(runs_of()).model_
    assert model.flagged is None
    assert model.held_out is not None
    assert model.held_out.runs == 40


def test_a_model_file_keeps_flagged_runs(runs_of: Any, tmp_path: Path) -> None:
    model = Composition(estimators=()).fit(disturbed(runs_of())).model_
    save_model(model, tmp_path / "model.errcomp", created="2030-01-31")
    loaded = load_model(tmp_path / "model.errcomp")
    assert loaded.flagged is not None
    assert model.flagged is not None
    np.testing.assert_array_equal(loaded.flagged.x, model.flagged.x)


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


def test_flagged_runs_can_be_kept(runs_of: Any) -> None:
    fitted = Composition(estimators=(), keep_flagged=True).fit(disturbed(runs_of()))
    assert fitted.unused_ == {}
    assert len(fitted.model_.training) == 40
    assert fitted.get_params()["keep_flagged"] is True


def test_too_few_runs_are_all_kept(runs_of: Any) -> None:
    """A flag is no reason to refuse a fit."""
    fitted = Composition(estimators=("physics",)).fit(disturbed(runs_of(("L4",)), "L4/opt/8"))
    assert len(fitted.model_.training) == 8


def test_the_band_of_a_flagged_run_is_wider_by_the_doubt(runs_of: Any) -> None:
    model = Composition(estimators=()).fit(runs_of()).model_
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


def test_a_prediction_does_not_look_at_measured_phases(runs_of: Any) -> None:
    """They are part of what is to be predicted."""
    model = Composition(estimators=()).fit(runs_of()).model_
    plain = runs_of(("L4",), seed=5)
    rows = range(plain.n)
    phase = ["forward" if i % 2 else "backward" for i in rows]
    took = [3.0 if i in (1, 3) else 1.0 + 0.05 * (i // 4 % 7) * (i % 2) for i in rows]
    phased = runs_of(("L4",), seed=5, phase=phase, phase_measured=took)
    assert [row.rule for row in check_runs(phased).rows] == ["phases"]
    assert model.predict(phased).high.tolist() == model.predict(plain).high.tolist()
