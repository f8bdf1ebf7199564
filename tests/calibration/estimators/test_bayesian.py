"""The Bayesian model: what it samples, what it says of it, what it refuses."""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from errcomp.errors import InputError, MissingExtraError, SmallSampleWarning

sklearn_exceptions = pytest.importorskip("sklearn.exceptions")

from errcomp.calibration.estimators.bayesian import diagnostics as _bayes_checks  # noqa: E402
from errcomp.calibration.estimators.bayesian import diagnostics as _bayes_compat  # noqa: E402
from errcomp.calibration.estimators.bayesian import model as _bayes_model  # noqa: E402
from errcomp.calibration.estimators.bayesian import residual as bayesian  # noqa: E402
from errcomp.calibration.estimators.bayesian.diagnostics import import_arviz, import_pymc  # noqa: E402
from errcomp.calibration.estimators.bayesian.hierarchical import Columns, HierarchicalModel  # noqa: E402
from errcomp.calibration.estimators.bayesian.model import (  # noqa: E402
    PRIORS,
    GraphData,
    Structure,
    assign_columns,
    effects,
    padded_sizes,
    prior_draws,
)
from errcomp.calibration.estimators.bayesian.residual import (  # noqa: E402
    BayesianResidual,
    SamplingError,
    SamplingWarning,
)

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module", autouse=True)
def _sampler() -> None:
    # Not where tests are collected: they take seconds to import.
    try:
        import_arviz()
        import_pymc()
    except MissingExtraError as missing:
        pytest.skip(str(missing))


#: Costs, offset, two linear features of which the first varies by device.
PARTS: dict[str, Any] = {"launch": [0], "offset": 1, "varying": [2]}
SHORT: dict[str, Any] = {"draws": 150, "tune": 250, "chains": 2, "check": "ignore"}
#: Where it does not matter how well it is sampled.
BARE: dict[str, Any] = {"draws": 50, "tune": 50}
GRID = (0.05, 0.25, 0.5, 0.75, 0.95)
SLOPES = np.array([0.03, -0.03, 0.0, 0.05, -0.05])


def runs(n: int = 60, seed: int = 0) -> dict[str, Any]:
    """Runs of 5 devices and 3 models: launches hide once, devices differ in level and slope."""
    rng = np.random.default_rng(seed)
    device, model = np.arange(n) % 5, np.arange(n) // 5 % 3
    x = np.column_stack([rng.uniform(0, 0.3, n), rng.normal(0, 0.05, n), rng.normal(size=(n, 2))])
    y = np.log1p(-x[:, 0]) + x[:, 1] + 0.02 * x[:, 3]
    y += np.array([-0.1, 0.1, 0.0, 0.05, -0.05])[device] + SLOPES[device] * x[:, 2]
    return {
        "X": x,
        "y": y + 0.01 * rng.standard_t(4, size=n),
        "device": np.array([f"d{i}" for i in device], dtype=object),
        "model": np.array([f"m{i}" for i in model], dtype=object),
    }


def quick(**changes: Any) -> BayesianResidual:
    return BayesianResidual(**(PARTS | SHORT | changes))


def names(*given: str) -> NDArray[Any]:
    return np.array(given, dtype=object)


@pytest.fixture(scope="module")
def fitted() -> BayesianResidual:
    return quick().fit(**runs())


def contents(model: BayesianResidual) -> list[bytes]:
    return [array.tobytes() for array in model.portable_.to_arrays()[1].values()]


class TestPriors:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", PRIORS)
    def test_are_drawn_as_they_are_written(self, name):
        prior = PRIORS[name]
        law = {
            "Normal": lambda mean, sd: stats.norm(mean, sd),
            "HalfNormal": lambda sd: stats.halfnorm(scale=sd),
            "LogNormal": lambda mean, sd: stats.lognorm(sd, scale=np.exp(mean)),
            "Gamma": lambda shape, rate: stats.gamma(shape, scale=1 / rate),
        }[prior.distribution](*prior.args)
        sizes = Structure(devices=2, models=2, launch=1, linear=1, varying=1)
        drawn = prior_draws(np.random.default_rng(0), 4000, sizes)[name].ravel()
        assert stats.kstest(drawn, law.cdf).pvalue > 0.01

    def test_say_their_unit_and_reason(self):
        assert {prior.unit for prior in PRIORS.values()} == {"ln", "1"}
        assert all(prior.reason for prior in PRIORS.values())

    def test_predictive_needs_no_pymc(self, monkeypatch):
        for module in ("pymc", "nutpie", "arviz"):
            monkeypatch.setitem(sys.modules, module, None)
        data = runs()
        found = quick().prior_predictive(
            data["X"], device=data["device"], model=data["model"], draws=400
        )
        assert found.log_ratio.shape == (400, 60)
        assert found.share_within_tenfold > 0.95
        assert found.low < found.median < found.high
        assert found.median == pytest.approx(1, abs=0.3)
        assert np.median(np.exp(found.log_ratio)) == pytest.approx(found.median)

    def test_predictive_tells_priors_that_cannot_be(self, monkeypatch):
        monkeypatch.setitem(
            PRIORS, "linear_sd", bayesian.Prior("HalfNormal", (10.0,), "ln", "absurd")
        )
        found = quick().prior_predictive(runs()["X"])
        assert found.share_within_tenfold < 0.6

    def test_predictive_leaves_a_fit_as_it_is(self, fitted):
        before = fitted.n_features_in_
        fitted.prior_predictive([[0.0, 0.0, 1.0], [0.1, 0.1, 2.0]])
        assert fitted.n_features_in_ == before == 4

    def test_predictive_same_seed_same_bytes(self):
        one, two, three = (
            quick(seed=seed).prior_predictive(runs()["X"]).log_ratio.tobytes() for seed in (1, 1, 2)
        )
        assert one == two != three

    def test_predictive_refuses(self):
        with pytest.raises(InputError, match="draws must be a whole number of at least 1, got 0"):
            quick().prior_predictive(runs()["X"], draws=0)


class TestGraph:
    def test_density_is_that_of_the_formulas(self):
        """Priors, effects and likelihood, against SciPy and the model that predicts."""
        pymc, _ = import_pymc()
        data = runs()
        columns = Columns(
            ("a", "b", "c", "d"), (0,), 1, (2, 3), np.zeros(2), np.ones(2), varying=(2,)
        )
        costs, offset, linear = columns.split(data["X"])
        device, model = np.arange(60) % 5, np.arange(60) // 5 % 3
        sizes, arrays = GraphData.of(
            costs, linear, np.column_stack([data["y"], offset]),
            varying=columns.varying_at, device=device, model=model,
        )  # fmt: skip
        with _bayes_compat.quiet():
            graph = _bayes_model._graph(pymc, sizes, arrays)
            density = graph.compile_logp(jacobian=False, mode="FAST_COMPILE")
        drawn = prior_draws(np.random.default_rng(1), 3, sizes)
        shapes = _bayes_model.effect_shapes(sizes)
        for s in range(3):
            values = {name: v[s] for name, v in drawn.items()}
            z = np.concatenate([values[f"{name}_z"].ravel() for name in shapes])
            point = {name: values[name] for name in ("intercept", "launch", "offset")}
            logs = ("device_sd", "launch_sd", "model_sd", "linear_sd", "slope_sd", "sigma")
            point |= {f"{name}_log__": np.log(values[name]) for name in (*logs, "nu_above")}
            expected = stats.norm.logpdf(z).sum() + self.log_prior(values)
            one = {name: v[s : s + 1] for name, v in drawn.items()}
            found = effects(self.cut(one), devices=True, models=True)
            portable = HierarchicalModel(
                columns, [f"d{i}" for i in range(5)], ["m0", "m1", "m2"], found
            )
            mu = portable.location(data["X"], device=data["device"], model=data["model"])[:, 0]
            nu = 2 + values["nu_above"]
            expected += stats.t.logpdf(data["y"], nu, mu, values["sigma"]).sum()
            assert density(point | {"effects_z": z}) == pytest.approx(expected, rel=1e-9)

    @staticmethod
    def log_prior(values: dict[str, Any]) -> float:
        law: dict[str, Callable[..., Any]] = {
            "Normal": lambda mean, sd: stats.norm(mean, sd),
            "HalfNormal": lambda sd: stats.halfnorm(scale=sd),
            "LogNormal": lambda mean, sd: stats.lognorm(sd, scale=np.exp(mean)),
            "Gamma": lambda shape, rate: stats.gamma(shape, scale=1 / rate),
        }
        return float(
            sum(
                np.sum(law[p.distribution](*p.args).logpdf(values[name]))
                for name, p in PRIORS.items()
            )
        )

    @staticmethod
    def cut(drawn: dict[str, Any]) -> dict[str, Any]:
        """Leave out what only fills the sizes; the last group is never asked for."""
        sizes = {
            "launch": (1,), "linear_z": (2,), "device_shift_z": (6,), "device_launch_z": (6,),
            "device_slope_z": (6, 1), "model_shift_z": (4,),
        }  # fmt: skip
        return {n: v[(..., *map(slice, sizes.get(n, ())))] for n, v in drawn.items()}

    def test_sizes_are_shared(self):
        small = padded_sizes(Structure(1, 1, 0, 0, 0))
        assert small == padded_sizes(Structure(8, 8, 4, 8, 2))
        assert padded_sizes(Structure(8, 8, 4, 8, 3)) == (8, 8, 4, 8, 4)
        assert padded_sizes(Structure(40, 9, 5, 20, 0)) == (64, 16, 8, 32, 2)

    def test_without_levels_effects_are_0(self):
        drawn = prior_draws(np.random.default_rng(0), 5, Structure(2, 3, 1, 1, 1))
        found = effects(drawn, devices=False, models=False)
        for name in ("device_shift", "device_launch", "device_slope", "model_shift"):
            assert not found[name].any()
        assert found["linear"].all()


class TestPosterior:
    def test_groups_and_names(self, fitted):
        data = fitted.posterior_
        # A DataTree of ArviZ 1 has children, whose names `groups` lists with slashes.
        assert set(getattr(data, "children", ()) or data.groups()) == {
            "posterior", "sample_stats", "log_likelihood", "observed_data"
        }  # fmt: skip
        posterior = data.posterior
        assert set(posterior.data_vars) == {
            "intercept", "sigma", "nu", "offset", "launch", "linear",
            "device_shift", "device_launch", "device_slope", "model_shift",
            "device_sd", "launch_sd", "slope_sd", "model_sd", "linear_sd",
        }  # fmt: skip
        assert posterior.device_slope.dims == ("chain", "draw", "device", "varying_feature")
        assert posterior.device.values.tolist() == ["d0", "d1", "d2", "d3", "d4"]
        assert posterior.model.values.tolist() == ["m0", "m1", "m2"]
        assert posterior.feature.values.tolist() == ["2", "3"]
        assert posterior.varying_feature.values.tolist() == ["2"]
        assert posterior.launch.shape == (2, 150, 1)
        assert data.log_likelihood.y.shape == (2, 150, 60)
        assert data.observed_data.y.values.tolist() == runs()["y"].tolist()
        assert set(data.sample_stats.data_vars) == {"diverging", "energy", "n_steps"}

    def test_log_likelihood(self, fitted):
        data, p = runs(), fitted.posterior_.posterior.isel(chain=1, draw=7)
        z = (data["X"] - data["X"].mean(axis=0)) / data["X"].std(axis=0)
        device, model = np.arange(60) % 5, np.arange(60) // 5 % 3
        hidden = np.exp(p.device_launch.values)[device] * p.launch.values[0] * data["X"][:, 0]
        mu = (
            float(p.intercept) + p.device_shift.values[device] + p.model_shift.values[model]
            + np.log(np.log1p(np.exp(20 * (1 - hidden))) / 20) + float(p.offset) * data["X"][:, 1]
            + z[:, 2:] @ p.linear.values + z[:, 2] * p.device_slope.values[device, 0]
        )  # fmt: skip
        expected = stats.t.logpdf(data["y"], float(p.nu), mu, float(p.sigma))
        found = fitted.posterior_.log_likelihood.y.isel(chain=1, draw=7)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_finds_what_devices_do(self, fitted):
        p = fitted.posterior_.posterior.mean(("chain", "draw"))
        np.testing.assert_allclose(p.device_slope.values[:, 0], SLOPES, atol=0.015)
        shift = p.device_shift.values
        np.testing.assert_allclose(shift - shift[2], [-0.1, 0.1, 0.0, 0.05, -0.05], atol=0.03)
        assert float(p.launch[0]) == pytest.approx(1, abs=0.3)
        assert float(p.offset) == pytest.approx(1, abs=0.1)

    def test_parts_that_are_not_there_are_not_in_it(self):
        data = runs()
        model = quick(**BARE, launch=[], offset=None, varying=[]).fit(data["X"][:, 2:], data["y"])
        assert set(model.posterior_.posterior.data_vars) == {
            "intercept", "sigma", "nu", "linear", "linear_sd"
        }  # fmt: skip
        only = quick(**BARE, varying=[]).fit(data["X"][:, :2], data["y"], device=data["device"])
        assert "linear" not in only.posterior_.posterior
        assert "device_slope" not in only.posterior_.posterior
        assert np.isfinite(only.predict(data["X"][:, :2], device=data["device"])).all()


class TestPrediction:
    def test_is_close(self, fitted):
        data = runs()
        off = fitted.predict(data["X"], device=data["device"]) - data["y"]
        assert np.median(np.abs(off)) < 0.02

    @pytest.mark.parametrize("device", ["d3", "new"])
    def test_quantiles_are_those_of_the_posterior(self, fitted, device):
        """From the posterior as ArviZ has it, drawing the effects of a new device and model."""
        x = np.array([[0.2, 0.05, 1.5, -1.0]])
        found = fitted.predict_quantiles(x, GRID, device=[device])[0]
        rng = np.random.default_rng(3)
        p = fitted.posterior_.posterior
        p = (p.to_dataset() if hasattr(p, "to_dataset") else p).stack(sample=("chain", "draw"))
        each = {v: np.repeat(p[v].transpose("sample", ...).values, 400, axis=0) for v in p}
        n = len(each["sigma"])
        seen = runs()["X"]
        z = ((x - seen.mean(axis=0)) / seen.std(axis=0))[0, 2:]
        if device == "new":
            shift = each["device_sd"] * rng.normal(size=n)
            factor = np.exp(each["launch_sd"] * rng.normal(size=n))
            slope = each["slope_sd"] * rng.normal(size=n)
        else:
            shift, slope = each["device_shift"][:, 3], each["device_slope"][:, 3, 0]
            factor = np.exp(each["device_launch"][:, 3])
        mu = (
            each["intercept"] + shift + each["model_sd"] * rng.normal(size=n)
            + np.log(np.log1p(np.exp(20 * (1 - factor * each["launch"][:, 0] * 0.2))) / 20)
            + 0.05 * each["offset"] + each["linear"] @ z + slope * z[0]
        )  # fmt: skip
        y = mu + each["sigma"] * rng.standard_t(each["nu"])
        below = (y[:, None] < found).mean(axis=0)
        # The portable model has one value of the new groups per draw: 300 of them.
        np.testing.assert_allclose(below, GRID, atol=0.05 if device == "new" else 0.03)

    def test_unknown_devices_are_wider(self, fitted):
        x = np.zeros((3, 4))
        band = fitted.predict_interval(x, device=["d0", "new", ""])
        known, new, none = np.diff(band)[:, 0]
        assert new == none > 2 * known

    def test_unknown_devices_are_wider_where_slopes_matter(self, fitted):
        x = np.array([[0.1, 0.0, 0.0, 0.0], [0.1, 0.0, 6.0, 0.0]])
        at_the_middle, far = np.diff(fitted.predict_interval(x))[:, 0]
        assert far > 1.5 * at_the_middle

    def test_a_new_device_has_the_distribution_of_devices(self, fitted):
        p = fitted.posterior_.posterior
        for effect, sd in (("device_slope", "slope_sd"), ("device_shift", "device_sd")):
            new = fitted.portable_.draws[effect][:, -1].ravel() / p[sd].values.ravel()
            # Evenly spread: the sorted quotients are normal quantiles.
            expected = stats.norm.ppf((np.arange(300) + 0.5) / 300)
            np.testing.assert_allclose(np.sort(new), expected, rtol=1e-6)

    def test_interval_of_levels(self, fitted):
        x = runs()["X"]
        assert fitted.predict_interval(x).shape == (60, 2)
        assert fitted.predict_interval(x, (0.5, 0.9)).shape == (60, 2, 2)

    def test_posterior_predictive(self, fitted):
        data = runs()
        drawn = fitted.posterior_predictive(data["X"], device=data["device"])
        assert drawn.shape == (300, 60)
        again = fitted.posterior_predictive(data["X"], device=data["device"])
        assert again.tobytes() == drawn.tobytes()
        inside = (np.abs(drawn.mean(axis=0) - data["y"]) < 3 * drawn.std(axis=0)).mean()
        assert inside > 0.9

    def test_launch_overhead(self, fitted):
        found = fitted.launch_overhead({**dict.fromkeys((f"d{i}" for i in range(5)), 4.0), "": 4})
        assert [one.device for one in found] == ["d0", "d1", "d2", "d3", "d4", ""]
        assert all(one.low < 4 < one.high for one in found)
        assert found[-1].high - found[-1].low > found[0].high - found[0].low

    def test_is_portable(self, fitted):
        data = runs()
        again = HierarchicalModel.from_arrays(*fitted.portable_.to_arrays())
        expected = fitted.predict_quantiles(data["X"], GRID, device=data["device"])
        found = again.predict_quantiles(data["X"], GRID, device=data["device"])
        assert found.tobytes() == expected.tobytes()

    @pytest.mark.slow
    def test_at_most_1000_draws_are_stored(self):
        model = quick(draws=501).fit(**runs(30))
        assert model.portable_.n_draws == 1000
        assert model.posterior_.posterior.sizes["draw"] == 501


class TestSeeds:
    @pytest.mark.slow
    def test_same_seed_same_bytes(self, fitted):
        assert contents(quick(n_jobs=1).fit(**runs())) == contents(fitted)
        assert contents(quick(seed=1).fit(**runs())) != contents(fitted)

    @pytest.mark.slow
    def test_units_of_linear_features(self, fitted):
        """Factors of two leave no rounding behind."""
        data = runs()
        data["X"] = data["X"] * [1, 1, 1024, 0.25]
        model = quick().fit(**data)
        expected = fitted.predict(runs()["X"], device=data["device"])
        assert model.predict(data["X"], device=data["device"]).tobytes() == expected.tobytes()


class TestGroups:
    def test_no_devices(self):
        data = runs()
        model = quick(**BARE).fit(data["X"], data["y"])
        assert model.portable_.devices == model.portable_.models == ()
        assert "device_sd" not in model.posterior_.posterior
        band = model.predict_interval(data["X"][:2], device=["d0", "d0"])
        assert band.tobytes() == model.predict_interval(data["X"][:2]).tobytes()

    def test_runs_without_a_name_are_a_group_that_is_not_stored(self):
        data = runs()
        data["device"] = np.where(data["device"] == "d0", "", data["device"])
        model = quick(**BARE).fit(**data)
        assert model.portable_.devices == ("d1", "d2", "d3", "d4")
        assert "(unknown)" in model.posterior_.posterior.device
        assert model.portable_.draws["device_shift"].shape == (100, 5)

    # How well is not the question, and one divergence more or less depends on the processor.
    @pytest.mark.filterwarnings("ignore:the posterior was not sampled well")
    def test_one_device(self):
        data = runs(30) | {"device": names(*["d0"] * 30)}
        with pytest.warns(SmallSampleWarning, match=r"all runs are on one device \(d0\)"):
            model = quick(check="warn", draws=300, tune=400).fit(**data)
        assert "all runs are on one device" in model.caveats_[0]
        known, new = np.diff(model.predict_interval(np.zeros((2, 4)), device=["d0", "x"]))[:, 0]
        assert new > 1.2 * known

    def test_constant_features_are_dropped(self):
        data = runs()
        data["X"] = np.column_stack([data["X"], np.full(60, 3.0)])
        model = quick(**BARE, varying=[2, 4]).fit(**data)
        assert model.caveats_ == ("features dropped, because all runs have the same value: 4",)
        assert model.portable_.columns.linear == (2, 3)
        assert model.portable_.columns.varying == (2,)
        other = data["X"] + np.array([0, 0, 0, 0, 99.0])
        assert model.predict(other).tobytes() == model.predict(data["X"]).tobytes()

    # How well is not the question, and one divergence more or less depends on the processor.
    @pytest.mark.filterwarnings("ignore:the posterior was not sampled well")
    def test_costs_that_are_nowhere_keep_their_prior(self):
        data = runs()
        data["X"][:, 0] = 0
        with pytest.warns(SmallSampleWarning, match="launch costs that only the prior determines"):
            model = quick(check="warn", draws=500, tune=500).fit(**data)
        launch = model.posterior_.posterior.launch.values
        assert launch.mean() == pytest.approx(1, abs=0.3)
        assert launch.std() == pytest.approx(1.5, rel=0.2)

    @pytest.mark.slow
    def test_columns_by_name(self, fitted):
        import polars

        data = runs()
        frame = polars.DataFrame(data["X"], schema=["cost", "slow", "size", "mode"])
        model = quick(launch=["cost"], offset="slow", varying=["size"]).fit(**data | {"X": frame})
        assert contents(model) == contents(fitted)
        assert model.posterior_.posterior.feature.values.tolist() == ["size", "mode"]
        with pytest.raises(InputError, match="launch names the column 'costs', which X does "):
            quick(launch=["costs"]).fit(frame, data["y"])


class TestCompared:
    @pytest.fixture(autouse=True)
    def few_draws(self) -> Iterator[None]:
        # With so few draws ArviZ may warn of a run that matters much.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
            yield

    def test_loo(self, fitted):
        found = fitted.loo()
        # The later names are those of ArviZ 1.
        elpd, each = (
            (found.elpd_loo, found.loo_i) if hasattr(found, "loo_i") else (found.elpd, found.elpd_i)
        )
        assert elpd == pytest.approx(
            fitted.posterior_.log_likelihood.y.values.mean((0, 1)).sum(), rel=0.3
        )
        assert len(each) == 60

    def test_the_better_model_is_first(self, fitted):
        data = runs()
        plain = quick(varying=[]).fit(**data)
        table = fitted.compare({"no slopes": plain}, name="slopes")
        assert table.index.tolist() == ["slopes", "no slopes"]
        # ArviZ below 1 counts how much worse it is; ArviZ 1 subtracts the better one.
        assert abs(table.elpd_diff.iloc[1]) > 10

    def test_refused(self, fitted):
        with pytest.raises(InputError, match="two models are named 'this'"):
            fitted.compare({"this": fitted})
        with pytest.raises(sklearn_exceptions.NotFittedError):
            fitted.compare({"other": quick()})
        data = runs(30)
        with pytest.raises(InputError, match="other and this were fitted to different log-ratios"):
            fitted.compare({"other": quick(**BARE).fit(**data)})


class TestDiagnostics:
    @staticmethod
    def diagnose(shift: float = 0.0, **changes: Any) -> Any:
        rng = np.random.default_rng(0)
        chains = changes.pop("chains", 4)
        draws = {"device_slope": rng.normal(size=(chains, 600, 2, 1)), "sigma": rng.normal(
            size=(chains, 600))}  # fmt: skip
        draws["device_slope"][0, :, 1] += shift
        known = {
            "divergent": np.zeros((chains, 600), dtype=bool),
            "energy": rng.normal(size=(chains, 600)),
            "seconds": 1.0,
            "interrupted": False,
        }
        labels = {"device_slope": [["A100", "H100"], ["size"]]}
        return _bayes_checks.diagnose(draws, labels, **known | changes)

    def test_good_draws(self):
        found = self.diagnose()
        assert found.ok
        assert found.max_rhat < 1.01
        assert 1500 < found.min_ess_bulk < 3000
        assert (found.chains, found.draws, found.divergences) == (4, 600, 0)

    def test_chains_that_differ_are_named(self):
        found = self.diagnose(shift=1.0)
        assert not found.ok
        assert "R-hat of device_slope[H100, size] 1." in found.problems[0]
        assert any("bulk ESS of device_slope[H100, size]" in text for text in found.problems)

    def test_divergences_and_energy(self):
        divergent = np.zeros((4, 600), dtype=bool)
        divergent[0, :2] = True
        energy = np.cumsum(np.random.default_rng(0).normal(size=(4, 600)), axis=1)
        found = self.diagnose(divergent=divergent, energy=energy)
        assert found.problems[0] == "2 of 2400 draws diverged"
        assert found.problems[1].startswith("BFMI 0.")

    def test_constant_draws(self):
        rng = np.random.default_rng(0)
        draws = {f"x{i}": np.zeros((2, 1000)) for i in range(4)}
        draws["y"] = rng.normal(size=(2, 1000)) + np.array([[0.0], [9.0]])
        found = _bayes_checks.diagnose(
            draws, {}, divergent=[0], energy=rng.normal(size=(2, 1000)), seconds=0.0,
            interrupted=False,
        )  # fmt: skip
        assert not found.ok
        assert found.problems[0].startswith("R-hat of x0 nan, x1 nan, x2 nan and 2 more")

    def test_one_chain_is_judged_by_its_halves(self):
        assert self.diagnose(chains=1).ok
        rng = np.random.default_rng(0)
        drifting = {"x": rng.normal(size=(1, 600)) + np.linspace(0, 3, 600)}
        found = _bayes_checks.diagnose(
            drifting, {}, divergent=[0], energy=rng.normal(size=(1, 600)), seconds=0.0,
            interrupted=False,
        )  # fmt: skip
        assert found.max_rhat > 1.05

    @pytest.mark.slow
    def test_bad_draws_are_refused(self, monkeypatch):
        monkeypatch.setattr(_bayes_checks, "_MOST_RHAT_SHORT", 0.5)
        model = quick(**BARE, check="raise").fit
        with pytest.raises(SamplingError, match=r"R-hat of .* \(should be at most 0.5\).*draws"):
            model(**runs())

    def test_nothing_predicts_after_a_refusal(self, monkeypatch, fitted):
        model = quick(**BARE, varying=[]).fit(**runs())
        monkeypatch.setattr(_bayes_checks, "_LEAST_ESS_SHARE", 9.0)
        with pytest.raises(
            SamplingError, match=r"bulk ESS of .* and \d+ more \(should be above 400\)"
        ):
            model.set_params(check="raise").fit(**runs())
        assert not model.diagnostics_.ok
        assert model.posterior_.posterior.sizes["draw"] == 3 * 50
        with pytest.raises(sklearn_exceptions.NotFittedError):
            model.predict(runs()["X"])
        assert fitted.predict(runs()["X"]).shape == (60,)

    @pytest.mark.slow
    def test_bad_draws_are_sampled_once_more(self, monkeypatch):
        asked, judged = [], iter((0.5, 9.0))
        sample = bayesian.sample_graph

        def watched(*given: Any, **options: Any) -> Any:
            asked.append([options[name] for name in ("draws", "tune", "target_accept")])
            monkeypatch.setattr(_bayes_checks, "_MOST_RHAT_SHORT", next(judged))
            return sample(*given, **options)

        monkeypatch.setattr(bayesian, "sample_graph", watched)
        monkeypatch.setattr(_bayes_checks, "_LEAST_ESS_SHARE", 0.0)
        model = quick(**BARE, check="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallSampleWarning)
            model.fit(**runs())
        assert asked == [[50, 50, model.target_accept], [150, 100, 0.98]]
        assert model.diagnostics_.draws == 150

    def test_bad_draws_may_be_warned_of(self, monkeypatch):
        monkeypatch.setattr(_bayes_checks, "_MOST_RHAT_SHORT", 0.5)
        with pytest.warns(SamplingWarning, match="the posterior was not sampled well: R-hat"):
            model = quick(**BARE, check="warn").fit(**runs())
        assert np.isfinite(model.predict(runs()["X"])).all()

    def test_bad_draws_may_be_ignored(self, monkeypatch):
        monkeypatch.setattr(_bayes_checks, "_MOST_RHAT_SHORT", 0.5)
        model = quick(**BARE).fit(**runs())
        assert model.diagnostics_.problems
        assert np.isfinite(model.predict(runs()["X"])).all()


class Interrupted:
    """A sampler that somebody interrupts when so many chains are finished."""

    def __init__(self, finished: int, trace: Any) -> None:
        self.finished, self.trace = finished, trace

    def wait(self) -> Any:
        raise KeyboardInterrupt

    def abort(self) -> Any:
        for chain in range(self.finished, self.trace.posterior.sizes["chain"]):
            energy = self.trace.sample_stats["energy"].values
            energy[chain, 10 * chain :] = np.nan
        return self.trace


class TestInterrupted:
    @pytest.fixture
    def interrupt(self, monkeypatch) -> Callable[[int], None]:
        pymc, nutpie = import_pymc()

        def after(finished: int) -> None:
            def sample(*args: Any, blocking: bool, **options: Any) -> Interrupted:
                return Interrupted(finished, nutpie.sample(*args, blocking=True, **options))

            fake = types.SimpleNamespace(
                sample=sample, compile_pymc_model=nutpie.compile_pymc_model
            )
            monkeypatch.setattr(_bayes_model, "import_pymc", lambda: (pymc, fake))

        return after

    def test_finished_chains_are_kept_and_said_so(self, interrupt):
        first = quick(**BARE, chains=2).fit(**runs()).posterior_.posterior
        interrupt(2)
        with pytest.warns(
            SamplingWarning, match="interrupted: 2 of 3 chains were finished and are kept"
        ):
            model = quick(**BARE, chains=3).fit(**runs())
        assert model.diagnostics_.interrupted
        assert (model.diagnostics_.chains, model.portable_.n_draws) == (2, 100)
        assert model.posterior_.posterior.sigma.values.tobytes() == first.sigma.values.tobytes()

    def test_before_the_first_chain(self, interrupt):
        interrupt(0)
        model = quick(**BARE)
        with pytest.raises(KeyboardInterrupt):
            model.fit(**runs())
        with pytest.raises(sklearn_exceptions.NotFittedError):
            model.predict(runs()["X"])


class TestRefused:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"launch": [9]}, "launch is column 9, but X has columns 0 to 3"),
            ({"launch": "cost"}, r"launch must be a list of columns, got 'cost'. Write \['cost'\]"),
            ({"launch": 0}, "launch must be a list of columns, got 0"),
            ({"launch": ["cost"]}, r"launch names the column 'cost', .* none \(X has no names\)"),
            ({"launch": [0.5]}, "launch must be the name or position of a column, got 0.5"),
            ({"offset": -1}, "offset is column -1"),
            ({"offset": 0}, "name a column twice. A column can have only one"),
            ({"varying": [0]}, "name a column twice"),
            ({"varying": [2, 2]}, "name a column twice"),
            ({"draws": 10}, "draws must be a whole number of at least 50, got 10"),
            ({"tune": 100.0}, "tune must be a whole number of at least 50, got 100.0"),
            ({"chains": 0}, "chains must be a whole number of at least 1"),
            ({"n_jobs": 0}, "n_jobs must be a whole number of processes"),
            ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
            ({"target_accept": 1.0}, r"target_accept must be in \(0, 1\), got 1.0"),
            ({"check": "no"}, 'check must be "raise", "warn" or "ignore", got \'no\''),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(InputError, match=message):
            quick(**parameters).fit(**runs())

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"X": np.full((60, 4), np.inf)}, "infinity"),
            ({"X": np.full((60, 4), np.nan)}, r"got NaN in rows 0, 1, 2 \(and 57 more\)"),
            ({"y": np.full(60, np.nan)}, "NaN"),
            ({"y": np.zeros(5)}, "inconsistent numbers of samples"),
            ({"device": ["A"]}, "device must have one name per row of X"),
            ({"model": ["A"]}, "model must have one name per row of X"),
        ],
    )
    def test_values(self, changes, message):
        with pytest.raises(InputError, match=message):
            quick().fit(**runs() | changes)

    def test_unknown_features_are_named(self):
        data = runs()
        data["X"][4, 2] = np.nan
        with pytest.raises(InputError, match=r"got NaN in row 4 \(column 2\). Drop these runs"):
            quick().fit(**data)

    def test_columns_of_one_name(self):
        with pytest.raises(InputError, match="got more than one column named size. Rename"):
            assign_columns(
                runs()["X"], ["a", "size", "size", "b"], launch=(), offset=None, varying=()
            )

    def test_one_run(self):
        with pytest.raises(InputError, match="1 sample"):
            quick(offset=None, varying=[]).fit([[0.0]], [0.0])

    def test_features_of_another_fit(self, fitted):
        with pytest.raises(
            InputError, match="X has 2 features, but BayesianResidual is expecting 4"
        ):
            fitted.predict(np.zeros((1, 2)))

    def test_before_the_fit(self):
        for call in (
            lambda m: m.predict(runs()["X"]),
            lambda m: m.loo(),
            lambda m: m.launch_overhead(5.0),
            lambda m: m.posterior_predictive(runs()["X"]),
        ):
            with pytest.raises(sklearn_exceptions.NotFittedError):
                call(quick())


class TestExtras:
    @pytest.mark.parametrize("package", ["pymc", "nutpie", "arviz"])
    def test_without(self, monkeypatch, package):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(
            MissingExtraError, match=rf"Bayesian residual model needs {package}.*errcomp\[bayes\]"
        ):
            quick().fit(**runs())

    def test_without_scikit_learn(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.base", None)
        spec = importlib.util.spec_from_file_location("again", bayesian.__file__)
        assert spec is not None
        assert spec.loader is not None
        with pytest.raises(MissingExtraError, match=r"needs scikit-learn.*errcomp\[calibration\]"):
            spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.slow
def test_is_a_scikit_learn_estimator():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    model = BayesianResidual(draws=50, tune=100, chains=1, check="ignore")
    with warnings.catch_warnings():
        # Announces checks that need array-API libraries.
        warnings.simplefilter("ignore", sklearn_exceptions.SkipTestWarning)
        found = checks.check_estimator(model)
    assert {r["status"] for r in found} <= {"passed", "skipped"}
    assert sum(r["status"] == "passed" for r in found) > 40
