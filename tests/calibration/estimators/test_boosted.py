"""The boosted model: what it learns, what it leaves out, what it refuses."""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.design import QUANTILES
from errcomp.calibration.estimators.boosted.trees import TreeModel
from errcomp.errors import InputError, MissingExtraError

pytest.importorskip("sklearn")
xgboost = pytest.importorskip("xgboost")

from errcomp.calibration.estimators.boosted import residual as boosted  # noqa: E402
from errcomp.calibration.estimators.boosted.residual import BoostedResidual  # noqa: E402

pytestmark = pytest.mark.extras


def runs(n: int = 90, seed: int = 0, effect: float = 0.0, noise: float = 0.01) -> dict[str, Any]:
    """Runs of 6 devices and 5 models: an offset, a step, a column without meaning."""
    rng = np.random.default_rng(seed)
    device, model = rng.integers(6, size=n), rng.integers(5, size=n)
    x = rng.uniform(size=(n, 3))
    x[:, 0] *= -0.3
    y = x[:, 0] + 0.2 * (x[:, 1] > 0.5) + effect * (device - 2.5) / 2.5
    return {
        "X": x,
        "y": y + noise * rng.standard_t(4, size=n),
        "device": np.array([f"d{i}" for i in device], dtype=object),
        "model": np.array([f"m{i}" for i in model], dtype=object),
    }


def quick(**changes: Any) -> BoostedResidual:
    return BoostedResidual(**({"offset": 0, "max_rounds": 20, "learning_rate": 0.3} | changes))


class TestLocation:
    def test_learns_what_the_offset_leaves(self):
        found = quick().fit(**runs()).predict([[-0.1, 0.2, 0.5], [-0.1, 0.8, 0.5]])
        np.testing.assert_allclose(found, [-0.1, 0.1], atol=0.02)

    def test_offset_has_coefficient_one_beyond_the_fit(self):
        model = quick().fit(**runs())
        one, far = model.predict([[-0.1, 0.2, 0.5], [-50.0, 0.2, 0.5]])
        assert one - far == pytest.approx(49.9, abs=1e-9)

    def test_without_offset_it_starts_at_the_median(self):
        data = runs()
        data["y"] = 5 + data["y"]
        found = quick(offset=None).fit(**data)
        assert np.median(found.predict(data["X"]) - data["y"]) == pytest.approx(0, abs=0.05)

    def test_features_that_do_not_help_are_left_alone(self):
        data = runs()
        data["y"] = data["X"][:, 0] + 0.01 * np.random.default_rng(5).standard_normal(90)
        model = quick().fit(**data)
        assert model.rounds_["location"] <= 3
        np.testing.assert_allclose(model.predict(data["X"]), data["X"][:, 0], atol=0.005)

    def test_nothing_is_left_to_learn(self):
        data = runs()
        data["y"] = data["X"][:, 0]
        model = quick().fit(**data)
        assert model.rounds_ == {"location": 0, "log_scale": 0}
        assert model.boosters_ == {"location": b"", "log_scale": b""}
        assert model.predict(data["X"]).tolist() == data["y"].tolist()
        assert (np.diff(model.predict_interval(data["X"])) > 0).all()

    def test_offset_may_be_the_only_feature(self):
        data = runs() | {"X": runs()["X"][:, :1]}
        assert quick().fit(**data).rounds_ == {"location": 0, "log_scale": 0}

    def test_unknown_features_are_allowed(self):
        data = runs()
        data["X"][::7, 1] = np.nan
        found = quick().fit(**data).predict([[-0.1, np.nan, np.nan]])
        assert np.isfinite(found).all()

    def test_monotone(self):
        rng = np.random.default_rng(1)
        x = rng.uniform(size=(120, 2))
        y = np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(120)
        grid = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.5)])
        free = quick(offset=None).fit(x, y).predict(grid)
        rising = quick(offset=None, monotone={0: 1}).fit(x, y).predict(grid)
        falling = quick(offset=None, monotone={0: -1}).fit(x, y).predict(grid)
        assert np.diff(free).min() < -0.01 < 0.01 < np.diff(free).max()
        assert (np.diff(rising) >= 0).all()
        assert (np.diff(falling) <= 0).all()
        assert np.ptp(falling) > 0.1

    def test_columns_by_name(self):
        import polars

        data = runs()
        frame = polars.DataFrame(data["X"], schema=["physics", "step", "noise"])
        few = {"max_rounds": 6}
        named = quick(offset="physics", monotone={"step": 1}, **few).fit(**data | {"X": frame})
        plain = quick(monotone={1: 1}, **few).fit(**data)
        assert named.predict(frame).tolist() == plain.predict(data["X"]).tolist()


class TestGroups:
    def test_rounds_are_those_of_groups_left_out(self):
        """A feature that names the model helps rows at random, and no new model."""
        rng = np.random.default_rng(2)
        model = np.repeat(np.arange(6), 15)
        x = model[:, None] + 0.1 * rng.uniform(size=(90, 1))
        y = 0.3 * rng.normal(size=6)[model] + 0.01 * rng.normal(size=90)
        names = np.array([f"m{i}" for i in model], dtype=object)
        grouped, at_random = (quick(offset=None).fit(x, y, model=m) for m in (names, None))
        assert at_random.rounds_["location"] >= 15
        assert grouped.rounds_["location"] <= 5
        wide, narrow = (np.diff(m.predict_interval(x))[:, 0].mean() for m in (grouped, at_random))
        assert wide > 2 * narrow

    def test_effects_of_devices(self):
        model = quick().fit(**runs(effect=0.2))
        found = model.predict([[0.0, 0.2, 0.5]] * 3, device=["d0", "d5", "new"])
        np.testing.assert_allclose(found[:2] - found[2], [-0.2, 0.2], atol=0.05)
        assert model.shrinkage_ < np.inf

    def test_devices_that_are_alike_have_hardly_an_effect(self):
        effects = quick().fit(**runs()).portable_.spreads.effects
        assert set(effects) == {f"d{i}" for i in range(6)}
        assert max(map(abs, effects.values())) < 0.01

    def test_new_devices_have_the_wider_band(self):
        model = quick().fit(**runs(effect=0.2))
        band = model.predict_interval([[0.0, 0.2, 0.5]] * 2, device=["d0", "new"])
        known, new = np.diff(band)[:, 0]
        assert new > 2 * known

    def test_columns_that_name_the_device_are_not_learnt_from(self):
        data = runs(effect=0.2)
        figure = np.array([int(name[1]) for name in data["device"]], dtype=float)
        figure[figure == 3] = np.nan
        wide = data | {"X": np.column_stack([data["X"], figure])}
        model = quick().fit(**wide)
        assert model.attributions_[3] == 0
        assert model.attributions_[1] > 0
        assert model.n_features_in_ == 4
        unnamed = quick().fit(wide["X"], data["y"])
        assert unnamed.attributions_[3] > 0

    def test_many_devices_are_learnt_from(self, monkeypatch):
        monkeypatch.setattr(boosted, "_DEVICES_TO_LEARN_FROM", 6)
        data = runs(effect=0.2)
        figure = np.array([int(name[1]) for name in data["device"]], dtype=float)
        model = quick().fit(**data | {"X": np.column_stack([data["X"], figure])})
        assert model.attributions_[3] > 0

    def test_devices_with_one_run_each_hide_no_column(self):
        data = runs(30)
        data["device"] = np.array([f"d{i // 2}" for i in range(30)], dtype=object)
        data["device"][::2] = [f"e{i}" for i in range(15)]
        assert quick().fit(**data).attributions_[1] > 0


class TestSpread:
    def test_runs_that_vary_more_have_wider_bands(self):
        data = runs(300, noise=0.0)
        rng, x = np.random.default_rng(3), data["X"]
        data["y"] = x[:, 0] + np.where(x[:, 2] > 0.5, 0.1, 0.01) * rng.normal(size=300)
        model = quick().fit(**data)
        widths = np.diff(model.predict_interval([[0, 0.5, 0.2], [0, 0.5, 0.8]]))[:, 0]
        assert widths[1] > 4 * widths[0]
        assert model.rounds_["log_scale"] > 0
        assert model.trust_ == 1

    def test_sizes_that_do_not_hold_on_groups_left_out_are_not_believed(self):
        # What varies by the last column in three models does the opposite in two.
        data = runs(200, noise=0.0)
        rng, x = np.random.default_rng(5), data["X"]
        turned = (x[:, 2] > 0.5) ^ np.isin(data["model"].astype(str), ["m3", "m4"])
        data["y"] = x[:, 0] + np.where(turned, 0.1, 0.01) * rng.normal(size=200)
        model = quick().fit(**data)
        assert model.trust_ < 1
        widths = np.diff(model.predict_interval([[0, 0.5, 0.2], [0, 0.5, 0.8]]))[:, 0]
        assert 0.3 < widths[1] / widths[0] < 3

    def test_quantiles_ascend(self):
        model = quick().fit(**runs())
        found = model.predict_quantiles(np.random.default_rng(0).normal(size=(200, 3)))
        assert (np.diff(found, axis=1) > 0).all()

    def test_degrees_do_not_depend_on_the_unit_of_features(self):
        data = runs()
        other = data | {"X": data["X"] * [1, 1000, 0.5] + [0, 7, 0]}
        one, two = (quick().fit(**d).predict_quantiles(d["X"]) for d in (data, other))
        np.testing.assert_allclose(one, two, atol=1e-6)


class TestPortable:
    def test_equal_to_xgboost(self):
        data = runs(effect=0.1)
        data["X"][::9, 2] = np.nan
        model = quick(max_rounds=40).fit(**data)
        assert model.rounds_["location"] > 3
        trained = xgboost.Booster(model_file=bytearray(model.boosters_["location"]))
        x = np.random.default_rng(1).uniform(-1, 1, size=(200, 3))
        x[::5, 1] = np.nan
        rest = xgboost.DMatrix(x[:, 1:], base_margin=np.zeros(200))
        y = data["y"] - data["X"][:, 0]
        unit = 1.4826 * np.median(np.abs(y - np.median(y)))
        expected = x[:, 0] + unit * trained.predict(rest)
        np.testing.assert_allclose(model.predict(x), expected, atol=1e-6)

    def test_goes_through_a_file(self):
        data = runs()
        model = quick().fit(**data)
        meta, arrays = model.portable_.to_arrays()
        assert all(array.dtype.kind in "fib" for array in arrays.values())
        again = TreeModel.from_arrays(json.loads(json.dumps(meta)), arrays)
        expected = model.predict_quantiles(data["X"], device=data["device"])
        found = again.predict_quantiles(data["X"], QUANTILES, device=data["device"])
        assert found.tobytes() == expected.tobytes()

    def test_same_seed_same_bytes(self):
        def contents(seed: int) -> list[bytes]:
            model = quick(seed=seed, subsample=0.5, max_rounds=6).fit(**runs())
            return [array.tobytes() for array in model.portable_.to_arrays()[1].values()]

        assert contents(1) == contents(1)
        assert contents(1) != contents(2)


class TestAttributions:
    def test_add_up_to_the_prediction_of_a_new_device(self):
        data = runs(effect=0.1)
        model = quick().fit(**data)
        found = model.attributions(data["X"])
        assert found.shape == (90, 4)
        np.testing.assert_allclose(found.sum(axis=1), model.predict(data["X"]), atol=1e-6)

    def test_without_offset_or_trees(self):
        data = runs()
        model = quick(offset=None).fit(**data)
        found = model.attributions(data["X"])
        np.testing.assert_allclose(found.sum(axis=1), model.predict(data["X"]), atol=1e-6)
        data["y"] = data["X"][:, 0]
        flat = quick().fit(**data)
        mean = data["X"][:, 0].mean()
        np.testing.assert_allclose(flat.attributions(data["X"])[:, 0], data["X"][:, 0] - mean)

    def test_rank_the_features(self):
        found = quick().fit(**runs()).attributions_
        assert found[1] == pytest.approx(0.1, rel=0.2)  # half the runs a step of 0.2
        assert found[0] == pytest.approx(0.3 / 4, rel=0.2)  # mean distance from the middle
        assert found[2] < 0.02


class TestRefused:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"offset": 3}, "offset is column 3, but X has columns 0 to 2"),
            ({"offset": "a"}, r"offset names the column 'a', .* Columns: none \(X has no names\)"),
            ({"monotone": {-1: 1}}, "monotone is column -1"),
            ({"monotone": {1: 2}}, r"monotone must be -1 \(falling\) or 1 \(rising\), got {1: 2}"),
            ({"max_rounds": 0}, "max_rounds must be a whole number of at least 1, got 0"),
            ({"max_depth": 2.5}, "max_depth must be a whole number"),
            ({"learning_rate": 0.0}, "learning_rate must be above 0 and at most 1"),
            ({"subsample": 1.5}, "subsample must be above 0 and at most 1, got 1.5"),
            ({"min_child_weight": -1.0}, "min_child_weight must not be negative"),
            ({"seed": -1}, "seed must not be negative"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(InputError, match=message):
            quick(**parameters).fit(**runs())

    def test_columns_that_are_not_there_are_named(self):
        import polars

        frame = polars.DataFrame(runs()["X"], schema=["physics", "step", "noise"])
        with pytest.raises(
            InputError, match="'phys', which X does not have. Columns: physics, step"
        ):
            quick(offset="phys").fit(frame, runs()["y"])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"X": np.full((90, 3), np.inf)}, "infinity"),
            ({"X": np.full((90, 3), 1e39)}, "fit into 32 bits"),
            ({"y": np.full(90, np.nan)}, "NaN"),
            ({"y": np.zeros(5)}, "inconsistent numbers of samples"),
            ({"device": ["A"]}, "device must have one name per row of X"),
            ({"model": ["A"]}, "model must have one name per row of X"),
        ],
    )
    def test_values(self, changes, message):
        with pytest.raises(InputError, match=message):
            quick().fit(**runs() | changes)

    def test_unknown_offset(self):
        data = runs()
        data["X"][4, 0] = np.nan
        with pytest.raises(
            InputError, match=r"offset \(column 0\) must be known, got NaN in row 4"
        ):
            quick().fit(**data)

    def test_one_run(self):
        with pytest.raises(InputError, match="1 sample"):
            quick().fit([[0.0]], [0.0])

    def test_features_of_another_fit(self):
        with pytest.raises(
            InputError, match="X has 2 features, but BoostedResidual is expecting 3"
        ):
            quick().fit(**runs()).predict(np.zeros((1, 2)))

    def test_without_xgboost(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(
            MissingExtraError, match=r"boosted model needs xgboost.*errcomp\[boost\]"
        ):
            quick().fit(**runs())

    def test_without_scikit_learn(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.base", None)
        spec = importlib.util.spec_from_file_location("again", boosted.__file__)
        assert spec is not None
        assert spec.loader is not None
        with pytest.raises(MissingExtraError, match=r"needs scikit-learn.*errcomp\[boost\]"):
            spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.slow
def test_processes_change_nothing() -> None:
    pytest.importorskip("joblib")
    one, two = (quick(n_jobs=n_jobs).fit(**runs(effect=0.1)) for n_jobs in (None, 2))
    assert one.rounds_["location"] > 0
    assert one.rounds_ == two.rounds_
    assert one.boosters_ == two.boosters_
    for mine, other in zip(one.portable_.to_arrays(), two.portable_.to_arrays(), strict=True):
        assert repr(mine) == repr(other)


@pytest.mark.slow
def test_is_a_scikit_learn_estimator():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        # Announces checks that need array-API libraries.
        warnings.simplefilter("ignore", pytest.importorskip("sklearn.exceptions").SkipTestWarning)
        found = checks.check_estimator(BoostedResidual(max_rounds=30, learning_rate=0.2))
    assert {r["status"] for r in found} <= {"passed", "skipped"}
    assert sum(r["status"] == "passed" for r in found) > 40
