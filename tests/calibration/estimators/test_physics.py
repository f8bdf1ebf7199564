"""The physical model: its derivatives, what it recovers, and what it is worth on real runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp import datasets
from errcomp.calibration.estimators import columns_of, fit_member
from errcomp.calibration.estimators.physics.model import PhysicsModel, terms_of
from errcomp.calibration.estimators.physics.residual import PhysicsResidual
from errcomp.calibration.features import design
from errcomp.calibration.preparing import usable_runs
from errcomp.errors import InputError

Rng = np.random.Generator


def simulated(rng: Rng, n: int = 160, *, noise: float = 0.02, outliers: float = 0.0) -> Any:
    """Return features, log-ratios, devices and models of runs that wait for kernels or the host."""
    share = rng.uniform(0.0, 0.3, n)
    per_us = np.exp(rng.uniform(np.log(0.002), np.log(0.3), n))  # launches per µs of kernels
    offset = np.where(rng.random(n) < 0.1, -rng.uniform(0.05, 0.2, n), 0.0)
    device = np.array(list("ABCDEFGH"), dtype=object)[rng.integers(0, 8, n)]
    model = np.array([f"m{i}" for i in rng.integers(0, 10, n)], dtype=object)
    shift = dict(zip("ABCDEFGH", rng.normal(0, 0.02, 8), strict=True))
    ours, theirs = np.log(1 - 1.4 * share), np.log(12.0 * per_us)
    y = np.logaddexp(4 * ours, 4 * theirs) / 4 + offset + [shift[d] for d in device]
    y = y + noise * rng.standard_t(4, n)
    y = np.where(rng.random(n) < outliers, y + 1.0, y)
    return np.column_stack([share, per_us, offset]), y, device, model


def physics() -> PhysicsResidual:
    return PhysicsResidual(launch=(0,), host=(1,), offset=2)


@pytest.fixture(scope="module")
def runs() -> Any:
    return simulated(np.random.default_rng(5))


@pytest.fixture(scope="module")
def fitted(runs: Any) -> PhysicsResidual:
    x, y, device, model = runs
    return physics().fit(x, y, device=device, model=model)


def test_derivatives_are_those_of_the_location() -> None:
    rng = np.random.default_rng(1)
    costs, hosts = rng.uniform(0, 0.4, (30, 2)), rng.uniform(0.0, 0.3, (30, 2))
    launch, factor, host = np.array([0.8, 1.5]), rng.normal(0, 0.2, 30), np.log([3.0, 9.0])
    found = terms_of(costs, hosts, launch, factor, host)
    step = 1e-6

    def at(**change: Any) -> Any:
        given = {"launch": launch, "factor": factor, "host": host, **change}
        return terms_of(costs, hosts, **given).both

    for j in range(2):
        e = step * np.eye(2)[j]
        by_launch = (at(launch=launch + e) - at(launch=launch - e)) / (2 * step)
        by_host = (at(host=host + e) - at(host=host - e)) / (2 * step)
        assert found.by_launch[:, j] == pytest.approx(by_launch, abs=1e-7)
        assert found.by_host[:, j] == pytest.approx(by_host, abs=1e-7)
    by_factor = (at(factor=factor + step) - at(factor=factor - step)) / (2 * step)
    assert found.by_factor == pytest.approx(by_factor, abs=1e-7)
    far = terms_of(np.array([[9.0]]), np.zeros((1, 0)), np.ones(1), np.zeros(1), np.zeros(0))
    assert np.isfinite(far.both).all()
    assert far.by_launch[0, 0] < 0


@pytest.mark.slow
@pytest.mark.parametrize("outliers", [0.0, 0.08])
def test_what_was_planted_is_recovered(outliers: float) -> None:
    found = []
    for seed in range(12):
        x, y, device, model = simulated(np.random.default_rng(seed), outliers=outliers)
        fitted = physics().fit(x, y, device=device, model=model).portable_
        sets = {name: fitted.weights @ values for name, values in fitted.sets.items()}
        found.append((sets["launch"][0], np.exp(sets["host"][0]), sets["offset"]))
    launch, host, offset = np.mean(found, axis=0)
    assert launch == pytest.approx(1.4, abs=0.1)
    assert host == pytest.approx(12.0, rel=0.05)
    assert offset == pytest.approx(1.0, abs=0.1)


def test_parts_add_up_and_host_bound_runs_are_told(runs: Any, fitted: PhysicsResidual) -> None:
    x, _, device, _ = runs
    parts = fitted.portable_.parts(x, device=device)
    assert np.sum(list(parts.values()), axis=0) == pytest.approx(fitted.predict(x, device=device))
    bound = x[:, 1] > 0.2
    assert (parts["host"][bound] > 0.5).all()
    assert (parts["host"][x[:, 1] < 0.01] < 0.01).all()
    assert set(fitted.portable_.devices) == set(device)


def test_a_new_device_has_no_shift_and_a_wider_band() -> None:
    x, y, device, model = simulated(np.random.default_rng(4))
    y = y + np.where(device == "A", 0.3, 0.0)
    fitted = physics().fit(x, y, device=device, model=model)
    known, new = (
        fitted.predict_interval(x[:1], 0.9, device=np.array([name], dtype=object))
        for name in ("A", "Z")
    )
    assert fitted.portable_.parts(x[:1], device=np.array(["Z"], dtype=object))["device"] == 0
    assert np.ptp(new) > np.ptp(known)
    assert fitted.predict(x[:1]) == fitted.predict(x[:1], device=["Z"])


def _left_out(held: str, estimator: PhysicsResidual, data: Any) -> Any:
    """Return which of the runs of held-out groups lie in their 90 % band, and its width."""
    x, y, device, model = data
    group = device if held == "device" else model
    inside, width = [], []
    for name in sorted(set(group)):
        out = group == name
        fitted = estimator.fit(x[~out], y[~out], device=device[~out], model=model[~out])
        ends = fitted.predict_interval(x[out], 0.9, device=device[out])
        inside += [*((ends[:, 0] <= y[out]) & (y[out] <= ends[:, 1]))]
        width += [*(ends[:, 1] - ends[:, 0])]
    return np.mean(inside), np.mean(width)


@pytest.mark.slow
@pytest.mark.parametrize("held", ["device", "model"])
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_bands_of_new_groups_cover(held: str, outliers: float) -> None:
    found = [
        _left_out(held, physics(), simulated(np.random.default_rng(seed), outliers=outliers))
        for seed in range(6)
    ]
    covered, width = np.mean(found, axis=0)
    # 6 × 160 runs in 6 × 8 devices or 6 × 10 models: a binomial error of about 3 %.
    assert 0.84 <= covered <= 0.99
    assert width < (0.4 if outliers else 0.2)


def _errors(name: str, key: str) -> Any:
    """Return the APE of runs of held-out models or devices."""
    kernels, _ = usable_runs(datasets.load(name), "composition")
    runs = design(kernels, task="composition")
    columns = columns_of("physics", "composition")
    x, y = runs.x[:, columns], runs.log_ratio
    group, error = getattr(runs, key), np.empty(len(y))
    for value in set(group):
        out = group == value
        fitted = fit_member("physics", runs.take(~out), seed=0, n_jobs=1)
        predicted = fitted.portable_.predict_quantiles(x[out], [0.5], device=runs.device[out])
        error[out] = np.abs(np.exp(predicted[:, 0] - y[out]) - 1)
    return error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "mean", "median"),
    [
        ("neusight-kernels", "model", 0.046, 0.026),
        ("neusight-kernels", "device", 0.052, 0.025),
        ("torch-cuda", "device", 0.19, 0.075),
    ],
)
def test_runs_of_new_models_and_devices(name: str, key: str, mean: float, median: float) -> None:
    error = _errors(name, key)
    assert error.mean() < mean
    assert np.median(error) < median


def test_graphs_need_no_host() -> None:
    kernels = datasets.load("torch-cuda")
    runs = design(kernels, task="composition")
    host = runs.x[:, [runs.names.index(name) for name in ("host_inference", "host_start")]]
    graph = np.array(["graph" in run for run in runs.run])
    assert not host[graph].any()
    assert (host[~graph & (runs.mode == "inference")] > 0).all()


def test_it_is_stored_and_restored(runs: Any, fitted: PhysicsResidual) -> None:
    x, _, device, _ = runs
    again = PhysicsModel.from_arrays(*fitted.portable_.to_arrays())
    q = [0.05, 0.5, 0.95]
    assert (
        again.predict_quantiles(x, q, device=device)
        == fitted.portable_.predict_quantiles(x, q, device=device)
    ).all()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("width", 0, "width must be a whole number"),
        ("launch", [0, 0], "distinct positions among 3 columns"),
        ("launch", [7], "distinct positions"),
        ("offset_column", "a", "distinct positions"),
        ("devices", [1], "devices must be a list of strings"),
        ("devices", ["A"], "device_shift must be float64 of shape"),
        ("spreads", None, "spreads must be a mapping"),
        ("weights", np.array([0.5, 0.6]), "add up to 1"),
        ("weights", np.array([]), "add up to 1"),
        ("weights", np.array([[1.0]]), "weights must be float64 of one axis"),
        ("launch", np.zeros((2, 1)), "launch must be float64 of shape"),
        ("host", np.full((6, 1), 99.0), "from -50 to 50"),
        ("intercept", np.full(6, np.nan), "intercept must be float64"),
        ("offset", None, "offset must be float64"),
    ],
)
def test_a_damaged_model_is_refused(
    fitted: PhysicsResidual, key: str, value: Any, words: str
) -> None:
    meta, arrays = fitted.portable_.to_arrays()
    if key in arrays and (value is None or isinstance(value, np.ndarray)):
        arrays = {**arrays, key: value}
    else:
        meta = {**meta, key: value}
    with pytest.raises(InputError, match=words):
        PhysicsModel.from_arrays(meta, arrays)


def test_bad_input_is_refused() -> None:
    x, y = [[0.1, 0.2]] * 4, [0.1] * 4
    with pytest.raises(InputError, match="name a column twice"):
        PhysicsResidual(launch=[0], host=[0]).fit(x, y)
    with pytest.raises(InputError, match="launch"):
        PhysicsResidual(launch=[5]).fit(x, y)
    with pytest.raises(InputError, match="NaN"):
        PhysicsResidual(launch=[0]).fit([[np.nan, 1.0]] * 4, y)
    with pytest.raises(InputError, match="not fitted"):
        PhysicsResidual().predict(x)
    fitted = PhysicsResidual(launch=[0]).fit(x, y)
    with pytest.raises(InputError, match="2 features"):
        fitted.predict([[0.1]])
    assert repr(PhysicsResidual(launch=[0])) == "PhysicsResidual(launch=[0])"
