"""Sum of kernels, factors and a robust line, and their portable model."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from errcomp.calibration.estimators.linear import baselines
from errcomp.calibration.estimators.linear.baselines import (
    DeviceFactor,
    GlobalFactor,
    Line,
    LinearModel,
    RobustLinear,
    SumOfKernels,
)
from errcomp.calibration.estimators.shared.spread import Spread, Spreads
from errcomp.errors import InputError

ALL = [SumOfKernels, GlobalFactor, DeviceFactor, RobustLinear]


def runs(n: int = 60, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    device = rng.integers(4, size=n)
    x = rng.normal(size=(n, 2))
    effect = np.array([-0.2, 0.0, 0.1, 0.2])[device]
    y = 0.1 + 0.05 * x[:, 0] + effect + 0.01 * rng.standard_t(3, size=n)
    names = np.array(["A", "B", "C", "D"], dtype=object)[device]
    model = np.array([f"m{i}" for i in rng.integers(5, size=n)], dtype=object)
    return {"X": x, "y": y, "device": names, "model": model}


class TestPoints:
    def test_sum_is_left_as_it_is(self):
        model = SumOfKernels().fit(**runs())
        assert (model.predict(np.ones((3, 2)), device=["A", "B", "new"]) == 0).all()

    def test_global_factor_is_the_median(self):
        data = runs()
        found = GlobalFactor().fit(**data).predict(np.ones((2, 2)), device=["A", "new"])
        np.testing.assert_allclose(found, np.median(data["y"]))

    def test_device_factor_is_the_median_of_the_device(self):
        data = runs()
        found = DeviceFactor().fit(**data).predict(np.ones((3, 2)), device=["A", "D", "new"])
        own = [np.median(data["y"][data["device"] == name]) for name in "AD"]
        np.testing.assert_allclose(found, [*own, np.median(data["y"])])

    def test_factors_do_not_look_at_features(self):
        data = runs() | {"X": np.full((60, 2), np.nan)}
        for kind in ALL[:3]:
            assert np.isfinite(kind().fit(**data).predict_quantiles(data["X"])).all()


class TestLine:
    def test_without_ridge_and_strange_runs_it_is_least_squares(self):
        x = np.random.default_rng(1).normal(size=(40, 3)) * [1, 100, 0.01] + [0, 5, 1]
        y = 2 + x @ [0.1, -0.002, 3.0]
        found = RobustLinear(ridge=0.0).fit(x, y).portable_.line
        np.testing.assert_allclose(found.coefficients, [0.1, -0.002, 3.0], rtol=1e-6)
        assert found.intercept == pytest.approx(2, rel=1e-6)

    def test_it_is_the_most_likely_line(self):
        data = runs()
        x, y, ridge, degrees = data["X"], data["y"], 3.0, 4.0
        line = RobustLinear(ridge=ridge).fit(x, y).portable_.line
        z, scale = (x - x.mean(0)) / x.std(0), x.std(0)
        slopes = line.coefficients * scale
        start = line.intercept + x.mean(0) @ line.coefficients

        def density(a: float, b: np.ndarray, variance: float) -> float:
            r = y - a - z @ b
            spread = (degrees + 1) / 2 * np.log1p(r**2 / degrees / variance)
            return -spread.sum() - (len(y) * np.log(variance) + ridge * b @ b / variance) / 2

        variances = np.geomspace(1e-4, 1, 2000)
        best = variances[np.argmax([density(start, slopes, v) for v in variances])]
        top = density(start, slopes, best)
        for step in 0.002 * np.vstack([np.eye(3), -np.eye(3)]):
            assert density(start + step[0], slopes + step[1:], best) < top

    def test_ridge_draws_to_flat(self):
        data = runs()
        sizes = [
            np.abs(RobustLinear(ridge=r).fit(**data).portable_.line.coefficients).sum()
            for r in (0.0, 30.0, 1e9)
        ]
        assert sizes[0] > sizes[1] > 1e3 * sizes[2]

    def test_units_of_features_do_not_matter(self):
        data = runs()
        other = data | {"X": data["X"] * [1e3, 1e-6] + [7, 0]}
        one, two = (RobustLinear().fit(**d).predict(d["X"]) for d in (data, other))
        np.testing.assert_allclose(one, two, atol=1e-9)

    def test_constant_columns_say_nothing(self):
        data = runs()
        data["X"] = np.column_stack([data["X"], np.full(60, 0.1)])
        model = RobustLinear(ridge=0.0).fit(**data)
        assert model.portable_.line.coefficients[2] == 0
        assert np.isfinite(model.predict(data["X"])).all()

    def test_equal_log_ratios_make_a_flat_line(self):
        model = RobustLinear().fit(np.arange(5.0)[:, None], np.full(5, 0.25))
        np.testing.assert_allclose(model.predict([[100.0]]), 0.25)

    def test_unknown_features_are_refused(self):
        data = runs()
        data["X"][[3, 8], 1] = np.nan
        with pytest.raises(InputError, match="got NaN in rows 3, 8"):
            RobustLinear().fit(**data)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"ridge": -1.0},
                r"ridge \(the penalty: as strong as this many runs",
            ),
            (
                {"ridge": float("nan")},
                r"ridge \(the penalty: as strong as this many runs",
            ),
            ({"degrees": 0.0}, r"degrees \(of freedom\) must be"),
            ({"degrees": float("inf")}, r"degrees \(of freedom\) must be"),
        ],
    )
    def test_parameters_that_cannot_be(self, parameters, message):
        with pytest.raises(InputError, match=message):
            RobustLinear(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])

    def test_stops_after_the_most_steps(self, monkeypatch):
        monkeypatch.setattr(baselines, "_MOST_STEPS", 1)
        assert np.isfinite(RobustLinear().fit(**runs()).predict(np.zeros((1, 2)))).all()


@pytest.mark.parametrize("kind", ALL)
class TestBands:
    def test_new_devices_have_wider_bands_where_devices_differ(self, kind):
        model = kind().fit(**runs(200))
        band = model.predict_interval(np.zeros((2, 2)), 0.9, device=["A", "new"])
        known, new = np.diff(band)[:, 0]
        if kind is DeviceFactor:
            assert new > 2 * known
        else:
            assert new > 0.5 * known

    def test_residuals_of_the_fit_do_not_count(self, kind):
        """Each device has one model: left out, nothing is known of it."""
        data = runs(80)
        data["model"] = data["device"]
        spreads = kind().fit(**data).portable_.spreads
        assert spreads.known == spreads.new

    def test_devices_and_models_may_be_missing(self, kind):
        data = runs()
        bare = kind().fit(data["X"], data["y"])
        assert bare.portable_.spreads.effects == {}
        assert np.isfinite(bare.predict_quantiles(data["X"])).all()

    def test_two_runs_are_enough(self, kind):
        assert np.isfinite(kind().fit([[0.0], [1.0]], [0.0, 0.1]).predict_quantiles([[0.5]])).all()

    def test_same_input_same_answer(self, kind):
        one, two = (kind().fit(**runs()).predict_quantiles(np.ones((2, 2))) for _ in range(2))
        assert one.tobytes() == two.tobytes()

    def test_portable_goes_through_a_file(self, kind):
        model = kind().fit(**runs())
        meta, arrays = model.portable_.to_arrays()
        again = LinearModel.from_arrays(json.loads(json.dumps(meta)), arrays)
        x, device = np.ones((2, 2)), np.array(["A", "new"], dtype=object)
        expected = model.predict_quantiles(x, [0.1, 0.5], device=device)
        assert again.predict_quantiles(x, [0.1, 0.5], device=device).tolist() == expected.tolist()
        assert again.KIND == "linear"


class TestLinearModel:
    model = LinearModel(
        Line(0.1, np.array([0.0, 2.0])), Spreads({}, Spread(1.0, 3.0), Spread(1.0, 3.0))
    )

    def test_only_features_that_count_must_be_known(self):
        assert self.model.predict_quantiles(np.array([[np.nan, 1.0]]), [0.5]) == 2.1
        with pytest.raises(InputError, match=r"got NaN in row 1 \(column 1\)"):
            self.model.predict_quantiles(np.array([[0.0, 1.0], [0.0, np.nan]]), [0.5])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"intercept": "0"}, "intercept must be a number"),
            ({"intercept": float("inf")}, "intercept must be a number"),
            ({"spreads": 1}, "spreads must be a mapping"),
        ],
    )
    def test_damaged_meta_is_refused(self, change, message):
        meta, arrays = self.model.to_arrays()
        with pytest.raises(InputError, match=message):
            LinearModel.from_arrays(meta | change, arrays)

    @pytest.mark.parametrize(
        "coefficients",
        [None, np.array([1, 2]), np.ones((1, 2)), np.array([np.nan]), [0.0]],
    )
    def test_damaged_arrays_are_refused(self, coefficients):
        meta, _ = self.model.to_arrays()
        with pytest.raises(InputError, match="coefficients must be one finite float64"):
            LinearModel.from_arrays(meta, {"coefficients": coefficients})


#: Checks of scikit-learn that do not apply, with the reason.
NOT_APPLICABLE = {
    "check_dtype_object": "asks for a TypeError; wrong input is an InputError, a ValueError",
    "check_estimators_empty_data_messages": "a baseline needs no feature",
    "check_estimators_unfitted": "NotFittedError is scikit-learn's, and predicting needs none",
    "check_supervised_y_2d": "log-ratios of shape (n, 1) are refused, not reshaped with a warning",
}


@pytest.mark.extras
@pytest.mark.parametrize("kind", ALL)
def test_is_a_scikit_learn_estimator(kind):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        # Announces checks that need array-API libraries.
        warnings.simplefilter("ignore", pytest.importorskip("sklearn.exceptions").SkipTestWarning)
        # The baselines work without scikit-learn, so they cannot inherit from it.
        warnings.filterwarnings("ignore", "Estimator .* does not inherit", UserWarning)
        found = checks.check_estimator(
            kind(), expected_failed_checks=NOT_APPLICABLE, on_skip=None, on_fail=None
        )
    by_status = {
        status: {check["check_name"] for check in found if check["status"] == status}
        for status in ("passed", "failed", "xfail")
    }
    assert by_status["failed"] == set()
    assert by_status["xfail"] == set(NOT_APPLICABLE)  # each still fails
    assert len(by_status["passed"]) > 40


@pytest.mark.extras
@pytest.mark.parametrize("kind", ALL)
def test_clones(kind):
    clone = pytest.importorskip("sklearn.base").clone
    model = RobustLinear(ridge=2.0) if kind is RobustLinear else kind()
    copy = clone(model.fit(**runs()))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "portable_")


class TestScore:
    @pytest.mark.extras
    def test_is_that_of_scikit_learn(self):
        r2_score = pytest.importorskip("sklearn.metrics").r2_score
        data = runs()
        weight = np.random.default_rng(1).uniform(size=60)
        model = RobustLinear().fit(**data)
        predicted = model.predict(data["X"], device=data["device"])
        found = model.score(data["X"], data["y"], weight, device=data["device"])
        assert found == pytest.approx(r2_score(data["y"], predicted, sample_weight=weight))
        found = model.score(data["X"], data["y"], device=data["device"])
        assert found == pytest.approx(r2_score(data["y"], predicted))

    def test_of_the_device_is_higher_than_without(self):
        data = runs()
        model = DeviceFactor().fit(**data)
        x, y = data["X"], data["y"]
        assert model.score(x, y, device=data["device"]) > 0.8 > model.score(x, y)

    def test_of_equal_log_ratios(self):
        model = GlobalFactor().fit([[0.0]] * 3, [0.5] * 3)
        assert model.score([[0.0]] * 2, [0.5, 0.5]) == 1
        assert model.score([[0.0]] * 2, [0.75, 0.75]) == 0

    def test_needs_one_log_ratio_per_row(self):
        model = GlobalFactor().fit([[0.0]] * 3, [0.5] * 3)
        with pytest.raises(InputError, match="y must have one value per row of X"):
            model.score([[0.0]] * 2, [0.5])
