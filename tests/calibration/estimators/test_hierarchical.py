"""The hierarchical model: what it predicts from draws made by hand, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.estimators.bayesian.hierarchical import (
    Columns,
    HierarchicalModel,
    log_remainder,
)
from errcomp.errors import InputError
from errcomp.stats import mixtures
from errcomp.stats.mixtures import StudentMixture

S = 400
DEVICES, MODELS = ("A100", "V100"), ("bert",)
NAMES = ("idle", "work", "slow", "mode", "size", "constant")
X = np.array([[0.1, 0.2, 0.03, 1.0, 2.0, 7.0], [0.0, 0.4, 0.0, 0.0, 3.0, 7.0]])
GRID = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def columns(**changes: Any) -> Columns:
    known: dict[str, Any] = {
        "names": NAMES,
        "launch": (0, 1),
        "offset": 2,
        "linear": (3, 4),
        "center": np.array([0.5, 2.0]),
        "scale": np.array([0.5, 0.4]),
        "varying": (4,),
    }
    return Columns(**known | changes)


def made(seed: int = 0) -> dict[str, np.ndarray]:
    """Draws in which nothing is 0 and devices differ."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "intercept": (),
        "offset": (),
        "launch": (2,),
        "linear": (2,),
        "device_shift": (3,),
        "device_launch": (3,),
        "device_slope": (3, 1),
        "model_shift": (2,),
    }
    draws = {name: 0.05 * rng.standard_normal((S, *shape)) for name, shape in shapes.items()}
    draws["launch"] += 1
    draws["offset"] += 1
    draws["device_shift"] += [0.1, -0.1, 0.0]
    draws["device_slope"][:, :2, 0] += [0.05, -0.05]
    # The last is unknown: as wide as devices differ.
    draws["device_shift"][:, 2] *= 3
    draws["sigma"] = rng.uniform(0.01, 0.03, S)
    draws["nu"] = rng.uniform(2.1, 8, S)
    return draws


@pytest.fixture
def model() -> HierarchicalModel:
    return HierarchicalModel(columns(), DEVICES, MODELS, made())


class TestRemainder:
    def test_is_the_logarithm_of_what_is_left(self):
        u = np.linspace(-2, 0.5, 50)
        np.testing.assert_allclose(log_remainder(u), np.log1p(-u), atol=1e-5)

    def test_falls_for_ever_where_nothing_is_left(self):
        u = np.linspace(0, 60, 2000)
        found = log_remainder(u)
        assert np.isfinite(found).all()
        assert (np.diff(found) < 0).all()
        assert found[-1] == pytest.approx(20 * (1 - 60) - np.log(20))
        # No step at 2.5, where the formula changes.
        assert np.ptp(log_remainder(np.array([2.5 - 1e-9, 2.5 + 1e-9]))) < 1e-6


class TestLocation:
    @pytest.mark.parametrize(("name", "at"), [("A100", 0), ("V100", 1), ("H100", 2), ("", 2)])
    def test_is_the_formula(self, model, name, at):
        d = model.draws
        z = (X[:, 3:5] - [0.5, 2.0]) / [0.5, 0.4]
        for s in (0, 7, S - 1):
            launches = np.exp(d["device_launch"][s, at]) * X[:, :2] @ d["launch"][s]
            expected = (
                d["intercept"][s]
                + d["device_shift"][s, at]
                + d["model_shift"][s, 0]
                + np.log(np.log1p(np.exp(20 * (1 - launches))) / 20)
                + d["offset"][s] * X[:, 2]
                + z @ (d["linear"][s] + [0.0, d["device_slope"][s, at, 0]])
            )
            found = model.location(
                X, device=np.array([name] * 2, dtype=object), model=np.array(["bert"] * 2)
            )
            np.testing.assert_allclose(found[:, s], expected, rtol=1e-12)

    def test_unknown_without_names(self, model):
        unknown = np.array(["H100", ""], dtype=object)
        expected = model.location(X, device=unknown, model=unknown)
        assert model.location(X).tobytes() == expected.tobytes()

    def test_parts_add_up(self, model):
        device = np.array(["A100", "new"], dtype=object)
        parts = model.parts(X, device=device)
        assert set(parts) == {"launches", "offset", "linear", "device", "model", "intercept"}
        total = np.sum(list(parts.values()), axis=0)
        np.testing.assert_allclose(total, model.location(X, device=device).mean(axis=1))
        # The second run's offset is 0, and its launches are the work that it names.
        assert parts["offset"][1] == 0
        assert parts["launches"][1] == pytest.approx(np.log(0.6), abs=0.05)
        slope = model.draws["device_slope"][:, 0, 0].mean()
        shift = model.draws["device_shift"][:, 0].mean()
        assert parts["device"][0] == pytest.approx(shift)
        one_up = model.parts(X + 0.4 * (np.arange(6) == 4), device=device)
        assert one_up["device"][0] == pytest.approx(shift + slope)

    def test_less_of_everything(self):
        """Without costs, offset, linear features, devices or models there is a constant."""
        nothing = columns(
            launch=(), offset=None, linear=(), center=np.empty(0), scale=np.empty(0), varying=()
        )
        draws = {name: made()[name] for name in ("intercept", "sigma", "nu", "offset")}
        draws |= {
            name: np.zeros((S, 1)) for name in ("device_shift", "device_launch", "model_shift")
        }
        plain = HierarchicalModel(nothing, (), (), draws)
        expected = np.tile(draws["intercept"], (2, 1))
        np.testing.assert_allclose(plain.location(np.full((2, 6), np.nan)), expected, atol=1e-9)
        assert plain.launch_overhead(5.0) == ()
        again = HierarchicalModel.from_arrays(*plain.to_arrays())
        assert again.location(X).tobytes() == plain.location(X).tobytes()

    def test_columns_that_are_not_used_may_be_unknown(self, model):
        x = X.copy()
        x[:, 5] = np.nan
        assert model.location(x).tobytes() == model.location(X).tobytes()


class TestQuantiles:
    def test_of_one_draw_are_those_of_student(self):
        one = {name: values[:1] for name, values in made().items()}
        model = HierarchicalModel(columns(), DEVICES, MODELS, one)
        found = model.predict_quantiles(X, GRID)
        expected = model.location(X) + one["sigma"] * stats.t.ppf(GRID, one["nu"])
        np.testing.assert_allclose(found, expected, rtol=1e-4)

    @pytest.mark.parametrize("device", ["A100", "new"])
    def test_have_their_probability(self, model, device):
        names = np.array([device] * 2, dtype=object)
        found = model.predict_quantiles(X, GRID, device=names)
        z = (found[:, :, None] - model.location(X, device=names)[:, None]) / model.draws["sigma"]
        np.testing.assert_allclose(
            stats.t.cdf(z, model.draws["nu"]).mean(axis=2), [GRID, GRID], atol=1e-5
        )
        assert (np.diff(found) > 0).all()

    def test_are_those_of_samples(self, model):
        n = 250
        found = model.predict_quantiles(X[:1], GRID)[0]
        drawn = np.concatenate([model.sample(X[:1], seed=seed)[:, 0] for seed in range(n)])
        below = (drawn[:, None] < found).mean(axis=0)
        q = np.array(GRID)
        assert (np.abs(below - q) < 4 * np.sqrt(q * (1 - q) / (n * S))).all()

    def test_unknown_devices_are_wider(self, model):
        names = np.array(["A100", "H100"], dtype=object)
        band = model.predict_quantiles(X[[0, 0]], (0.05, 0.95), device=names)
        known, new = np.diff(band)[:, 0]
        assert new > 1.3 * known

    def test_in_blocks(self, model, monkeypatch):
        expected = model.predict_quantiles(X, GRID)
        monkeypatch.setattr(mixtures, "_BLOCK", 1)
        np.testing.assert_allclose(model.predict_quantiles(X, GRID), expected, atol=1e-12)

    def test_far_components(self):
        """Between far components the distribution function is flat: Newton alone would leave."""
        mixture = StudentMixture(np.array([1e-3, 1.0, 1e-3]), np.array([30.0, 2.01, 30.0]))
        mu = np.array([[-50.0, 0.0, 50.0], [1e5, 0.0, 1e5], [0.0, 0.0, 0.0]])
        q = np.array([0.001, 0.3, 1 / 3, 0.5, 0.7, 0.999])
        found = mixture.quantiles(mu, q)
        cdf = stats.t.cdf((found[..., None] - mu[:, None]) / mixture.sigma, mixture.nu).mean(-1)
        np.testing.assert_allclose(cdf, np.tile(q, (3, 1)), atol=1e-5)


class TestSample:
    def test_runs_of_one_device_share_its_draw(self, model):
        drawn = model.sample(X[[0, 0]], seed=0)
        assert drawn.shape == (S, 2)
        assert np.corrcoef(drawn.T)[0, 1] > 0.7
        assert (drawn[:, 0] != drawn[:, 1]).all()

    def test_same_seed_same_bytes(self, model):
        one, two, three = (model.sample(X, seed=seed).tobytes() for seed in (1, 1, 2))
        assert one == two != three


class TestLaunchOverhead:
    def test_is_cost_times_floor(self, model):
        found = model.launch_overhead({"A100": 4.0, "V100": 8.0, "": 6.0})
        assert [(one.device, one.column) for one in found] == [
            ("A100", "idle"), ("A100", "work"), ("V100", "idle"), ("V100", "work"),
            ("", "idle"), ("", "work"),
        ]  # fmt: skip
        d = model.draws
        expected = 8.0 * np.exp(d["device_launch"][:, 1]) * d["launch"][:, 0]
        np.testing.assert_allclose(found[2].draws, expected)
        assert found[2].median == np.median(expected)
        assert (found[2].low, found[2].high) == pytest.approx(np.quantile(expected, (0.05, 0.95)))

    def test_one_floor_for_all(self, model):
        found = model.launch_overhead(5)
        assert len(found) == 6
        assert found[0].median == pytest.approx(5, rel=0.1)

    def test_unknown_device_is_left_out_where_it_has_no_floor(self, model):
        found = model.launch_overhead({"A100": 4.0, "V100": 8.0, "other": 3.0})
        assert {one.device for one in found} == {"A100", "V100"}

    @pytest.mark.parametrize(
        ("floors", "message"),
        [
            ({"A100": 4.0}, "floor_us lacks V100. Give the launch floor .* of every"),
            ({"A100": 4.0, "V100": 0.0}, "floor_us of V100 must be a number above 0, got 0.0"),
            ({"A100": 4.0, "V100": np.inf}, "of V100 must be a number above 0, got inf"),
            (np.nan, "of A100 must be a number above 0, got nan. Give microseconds"),
            ({"A100": 4.0, "V100": 4.0, "": -1}, "floor_us must be a number above 0, got -1"),
            ("7 µs", "must be a number above 0, got '7 µs'"),
        ],
    )
    def test_refused(self, model, floors, message):
        with pytest.raises(InputError, match=message):
            model.launch_overhead(floors)


class TestArrays:
    def test_there_and_back(self, model):
        meta, arrays = model.to_arrays()
        assert all(array.dtype == np.float64 for array in arrays.values())
        again = HierarchicalModel.from_arrays(json.loads(json.dumps(meta)), arrays)
        device = np.array(["V100", "new"], dtype=object)
        for call in ("predict_quantiles", "location"):
            args = (X, GRID)[: 2 if call == "predict_quantiles" else 1]
            one, two = (getattr(m, call)(*args, device=device) for m in (model, again))
            assert one.tobytes() == two.tobytes()
        assert again.columns.varying == (4,)
        assert repr(again) == "HierarchicalModel(devices=2, models=1, columns=6, draws=400)"

    def test_without_varying_columns_nothing_is_said_of_them(self):
        draws = made()
        del draws["device_slope"]
        plain = HierarchicalModel(columns(varying=()), DEVICES, MODELS, draws)
        meta, arrays = plain.to_arrays()
        del meta["varying"], arrays["device_slope"]
        again = HierarchicalModel.from_arrays(meta, arrays)
        assert again.location(X).tobytes() == plain.location(X).tobytes()

    @pytest.mark.parametrize("name", [*made(), "center", "scale"])
    @pytest.mark.parametrize("how", ["missing", "shape", "type", "nan"])
    def test_damaged_arrays(self, model, name, how):
        meta, arrays = model.to_arrays()
        arrays = dict(arrays)
        values = arrays.pop(name)
        if how == "shape":
            arrays[name] = values[..., None]
        elif how == "type":
            arrays[name] = values.astype(np.float32)
        elif how == "nan":
            arrays[name] = np.where(np.arange(len(values)) == 1, np.nan, values.T).T
        with pytest.raises(InputError, match=f"{name}.* Fit (the model|it) again"):
            HierarchicalModel.from_arrays(meta, arrays)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("sigma", 0.0, "sigma must be above 0, got 0.0"),
            ("nu", -1.0, "nu must be above 0, got -1.0"),
            ("scale", 0.0, "scale must be above 0"),
            ("intercept", 1e7, "intercept must be finite, from -1e"),
            ("device_launch", 800.0, "device_launch must be finite, from -100 to 100"),
        ],
    )
    def test_values_that_cannot_be(self, model, name, value, message):
        meta, arrays = model.to_arrays()
        with pytest.raises(InputError, match=message):
            HierarchicalModel.from_arrays(meta, arrays | {name: np.full_like(arrays[name], value)})

    def test_no_draws(self):
        none = {name: values[:0] for name, values in made().items()}
        with pytest.raises(InputError, match="must be float64 of shape"):
            HierarchicalModel(columns(), DEVICES, MODELS, none)

    def test_no_arrays_but_lists(self):
        with pytest.raises(InputError, match="lacks the arrays sigma. Fit the model again"):
            HierarchicalModel(columns(), DEVICES, MODELS, made() | {"sigma": [0.1] * S})  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"names": None}, "names must be a list of distinct strings, got None"),
            ({"devices": ["A100", "A100"]}, "devices must be a list of distinct strings"),
            ({"models": [1]}, "models must be a list of distinct strings"),
            ({"launch": None}, "launch, linear and varying must be lists of columns"),
            ({"varying": 4}, "launch, linear and varying must be lists of columns"),
            ({"launch": [0, 9]}, "must be distinct positions among 6 columns, got "),
            ({"launch": [0, True]}, "must be distinct positions among 6 columns"),
            ({"offset": 4}, "must be distinct positions among 6 columns"),
            ({"varying": [0]}, r"varying must be distinct linear columns, got \[0\]"),
            ({"varying": [4, 4]}, "varying must be distinct linear columns"),
            ({"devices": ["A100"]}, r"device_shift must be float64 of shape \(400, 2\)"),
        ],
    )
    def test_damaged_descriptions(self, model, changes, message):
        meta, arrays = model.to_arrays()
        with pytest.raises(InputError, match=message):
            HierarchicalModel.from_arrays(meta | changes, arrays)


class TestRefused:
    def test_unknown_features(self, model):
        x = X.copy()
        x[1, 4] = np.nan
        with pytest.raises(
            InputError, match=r"features must be known, got NaN in row 1 \(column size\)"
        ):
            model.predict_quantiles(x, GRID)

    def test_features_of_another_model(self, model):
        with pytest.raises(InputError, match="X has 2 features, but the model was fitted with 6"):
            model.location(X[:, :2])

    def test_names_that_are_not_one_per_run(self, model):
        with pytest.raises(InputError, match="device must have one name per row"):
            model.location(X, device=np.array(["A100"]))

    @pytest.mark.parametrize("q", [(0.5, 0.1), (0.0, 0.5), ()])
    def test_probabilities(self, model, q):
        with pytest.raises(InputError):
            model.predict_quantiles(X, q)
