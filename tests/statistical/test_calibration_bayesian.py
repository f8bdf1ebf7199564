"""Does the posterior of runs say what it should? Simulated worlds, each fitted once.

Worlds from the priors have closed answers: the rank of the truth among draws of the posterior is
uniform, and bands cover what they promise. Tolerances are those of so many worlds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import MissingExtraError

pytest.importorskip("sklearn")

from errcomp.calibration.estimators.bayesian.diagnostics import import_arviz, import_pymc
from errcomp.calibration.estimators.bayesian.hierarchical import HierarchicalModel
from errcomp.calibration.estimators.bayesian.model import (
    GraphData,
    Runs,
    Structure,
    assign_columns,
    effects,
    prior_draws,
    sample_graph,
)
from errcomp.calibration.estimators.bayesian.residual import BayesianResidual, Posterior

pytestmark = [pytest.mark.extras, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def _sampler() -> None:
    # Not where tests are collected: they take seconds to import.
    try:
        import_arviz()
        import_pymc()
    except MissingExtraError as missing:
        pytest.skip(str(missing))


WORLDS, DRAWS, KEPT = 32, 200, 20
RUNS, DEVICES, MODELS = 40, 5, 4
#: Of the parameters that have several values, the first is looked at.
PARAMETERS = (
    "intercept", "sigma", "nu", "offset", "launch", "linear",
    "device_shift", "device_launch", "device_slope", "model_shift",
    "device_sd", "launch_sd", "slope_sd", "model_sd", "linear_sd",
)  # fmt: skip
PARTS: dict[str, Any] = {"launch": [0, 1], "offset": 2, "varying": [3]}


def features(rng, n):
    return np.column_stack(
        [rng.uniform(0, 0.2, (n, 2)), rng.normal(0, 0.05, n), rng.normal(size=(n, 2))]
    )


def groups(n):
    return (
        np.array([f"d{i % DEVICES}" for i in range(n)], dtype=object),
        np.array([f"m{i // DEVICES % MODELS}" for i in range(n)], dtype=object),
    )


def sampled_posterior(runs, seed):
    costs, offset, linear = runs.columns.split(runs.x)
    structure, data = GraphData.of(
        costs, linear, np.column_stack([runs.y, offset]),
        varying=runs.columns.varying_at, device=runs.device.index, model=runs.model.index,
    )  # fmt: skip
    sampled = sample_graph(
        structure, data, draws=DRAWS, tune=200, chains=1, n_jobs=1, target_accept=0.8, seed=seed
    )
    return Posterior(sampled, runs.columns, runs.device, runs.model)


@pytest.fixture(scope="module")
def worlds():
    """Truths from the priors, runs simulated from them, and what their posteriors say."""
    ranks = {name: np.empty(WORLDS) for name in PARAMETERS}
    pit = {"known": np.empty(WORLDS), "new": np.empty(WORLDS)}
    device, model = groups(RUNS)
    for w in range(WORLDS):
        rng = np.random.default_rng([7, w])
        x = features(rng, RUNS + 1)
        assigned = assign_columns(x[:RUNS], None, **PARTS)
        raw = prior_draws(rng, 1, Structure(DEVICES + 1, MODELS + 1, 2, 2, 1))
        drawn = effects(raw, devices=True, models=True)
        names = [f"d{i}" for i in range(DEVICES)], [f"m{i}" for i in range(MODELS)]
        truth = HierarchicalModel(assigned[0], *names, drawn)
        y = truth.sample(x[:RUNS], device=device, model=model, seed=[w, 1])[0]
        posterior = sampled_posterior(Runs.of(x[:RUNS], y, assigned, device, model), seed=w)
        for name in PARAMETERS:
            true = {**raw, **drawn}[name].ravel()[0]
            chain = posterior.variables[name][0].reshape(DRAWS, -1)[:: DRAWS // KEPT, 0]
            # Spread evenly within its place among the draws.
            ranks[name][w] = ((chain < true).sum() + rng.uniform()) / (KEPT + 1)
        portable = posterior.portable(rng)
        for kind, of in (("known", "d1"), ("new", "new")):
            one = np.array([of], dtype=object)
            y_new = truth.sample(x[RUNS:], device=one, seed=[w, 2, *kind.encode()])[0, 0]
            q = np.linspace(0.005, 0.995, 199)
            found = portable.predict_quantiles(x[RUNS:], q, device=one)[0]
            pit[kind][w] = np.interp(y_new, found, q, left=0.0, right=1.0)
    return ranks, pit


@pytest.mark.parametrize("name", PARAMETERS)
def test_ranks_of_the_truth_are_uniform(worlds, name):
    """Simulation-based calibration: Talts et al. (2018), arXiv:1804.06788."""
    u = worlds[0][name]
    # 15 parameters: a false alarm on one of a thousand machines, whose chains all differ.
    assert stats.kstest(u, "uniform").pvalue > 0.001 / len(PARAMETERS)
    # Too narrow or too wide posteriors: mean square distance from the middle, 1/12.
    off = ((u - 0.5) ** 2).mean() - 1 / 12
    assert abs(off) < stats.norm.isf(0.005 / len(PARAMETERS)) * np.sqrt(1 / 180 / WORLDS)


@pytest.mark.parametrize("kind", ["known", "new"])
def test_bands_of_worlds_from_the_priors(worlds, kind):
    u = worlds[1][kind]
    assert stats.kstest(u, "uniform").pvalue > 0.01
    for level in (0.5, 0.9):
        covered = (np.abs(u - 0.5) < level / 2).mean()
        assert abs(covered - level) < 3 * np.sqrt(level * (1 - level) / WORLDS)


SIGMA, SLOPE_SD, FLOOR = 0.015, 0.02, 5.0
#: Launches disappear once; of a second kind nearly twice, as in training.
KAPPA = np.array([1.0, 1.8])


@pytest.fixture(scope="module")
def planted():
    """Worlds as real ones are, whose truth does not come from the priors."""
    found = []
    device, model = groups(2 * RUNS)
    at = np.array([int(name[1]) for name in device])
    for w in range(10):
        rng = np.random.default_rng([8, w])
        shift, factor = rng.normal(0, 0.05, DEVICES + 3), rng.normal(0, 0.25, DEVICES + 3)
        slope = rng.normal(0, SLOPE_SD, DEVICES + 3)

        def log_ratio(x, at, rng=rng, shift=shift, factor=factor, slope=slope):
            mu = 0.03 + shift[at] + np.log1p(-np.exp(factor[at]) * (x[:, :2] @ KAPPA)) + x[:, 2]
            return mu + slope[at] * x[:, 3] + SIGMA * rng.standard_t(4, len(at))

        x = features(rng, 2 * RUNS + 3)
        assigned = assign_columns(x[:-3], None, **PARTS)
        y = log_ratio(x[:-3], at)
        posterior = sampled_posterior(Runs.of(x[:-3], y, assigned, device, model), seed=w)
        portable = posterior.portable(rng)
        new = log_ratio(x[-3:], DEVICES + np.arange(3))
        q = portable.predict_quantiles(x[-3:], (0.05, 0.25, 0.75, 0.95))
        found.append((portable.launch_overhead(FLOOR), FLOOR * np.exp(factor), q - new[:, None]))
    return found


def test_recovers_planted_overheads(planted):
    log_error, inside, width = [], [], []
    for overheads, truth, _ in planted:
        for i, one in enumerate(overheads[: 2 * DEVICES]):
            true = truth[i // 2] * KAPPA[i % 2]
            log_error.append(np.log(one.median / true))
            inside.append(one.low < true < one.high)
            width.append((one.high - one.low) / true)
    log_error, inside = (np.reshape(v, (len(planted), -1)) for v in (log_error, inside))
    # Overheads of one world share a fit: for the bias, worlds are what is independent.
    worlds = log_error.mean(axis=1)
    assert abs(worlds.mean()) < 3 * worlds.std(ddof=1) / np.sqrt(len(worlds))
    assert np.sqrt((log_error**2).mean()) < 0.05
    # Overheads of one device share its factor.
    assert abs(inside.mean() - 0.9) < 3 * np.sqrt(0.9 * 0.1 / (len(planted) * DEVICES))
    # The data say it, not the prior, whose interval is five times as wide as a launch costs.
    assert np.median(width) < 0.2


def test_bands_of_new_devices(planted):
    off = np.concatenate([q for _, _, q in planted])
    for level, low, high in ((0.5, 1, 2), (0.9, 0, 3)):
        covered = ((off[:, low] < 0) & (off[:, high] > 0)).mean()
        # Priors leave room for devices that differ more: bands may cover more, hardly less.
        assert covered > level - 3 * np.sqrt(level * (1 - level) / len(off))
    width = np.median(off[:, 3] - off[:, 0])
    ideal = 2 * 1.645 * np.sqrt(0.05**2 + SLOPE_SD**2 + 0.25**2 * 0.28**2)
    assert 0.6 * ideal < width < 2.5 * ideal


def test_units_of_linear_features_do_not_matter():
    rng = np.random.default_rng(9)
    x = features(rng, RUNS)
    device, model = groups(RUNS)
    y = np.log1p(-x[:, 0]) + x[:, 2] + 0.03 * x[:, 3] + 0.02 * rng.standard_t(4, RUNS)
    known = {"device": device, "model": model}
    short: dict[str, Any] = {"draws": 500, "tune": 300, "chains": 2, "check": "ignore"}
    found = []
    for factor, shift in ((1.0, 0.0), (1000 / 3, 7.0)):
        given = x * [1, 1, 1, factor, factor] + np.array([0, 0, 0, shift, shift])
        fitted = BayesianResidual(**PARTS, **short).fit(given, y, **known)
        mu = fitted.portable_.location(given, device=device)
        found.append((mu.mean(axis=1), mu.std(axis=1)))
    (one, spread), (two, _) = found
    # Rounding makes other chains; of a thousand draws the mean is known to a fraction.
    assert np.abs((one - two) / spread).max() < 0.3
    assert not np.array_equal(one, two)
