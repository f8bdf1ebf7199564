"""Bands under "estimated" cover what they promise, and components are recovered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp import Kernels
from errcomp.metrics.bands import coverage_interval
from errcomp.propagation import correlation, fit_errors
from errcomp.propagation.distribution import FromMoments
from errcomp.propagation.errors.fitting import _fit
from errcomp.propagation.errors.residuals import residuals
from errcomp.propagation.errors.tails import Tails, estimate_df, normal_scores, variance_df
from errcomp.propagation.sums import total_moments

#: Standard deviation of the effect of a device, a class on it, a run, a class in it, and a kernel.
CLASSES = (0.02, 0.08, 0.0, 0.06, 0.10)
DEVICES = (0.10, 0.03, 0.0, 0.03, 0.05)
RUNS = (0.02, 0.03, 0.10, 0.03, 0.05)
SHARES = np.array([0.6, 0.15, 0.1, 0.1, 0.05])


def effects(rng, shape, sd, law):
    if law == math.inf:
        return rng.standard_normal(shape) * sd
    return stats.t.rvs(law, size=shape, random_state=rng) * sd * math.sqrt((law - 2) / law)


def simulated(rng, devices, runs, sds, law=math.inf, kernels=4, equal=False, off=0.0):
    """Kernels of runs on devices whose log errors are sums of nested effects."""
    classes = len(SHARES)
    d, r, c, _ = (
        i.ravel()
        for i in np.meshgrid(*map(np.arange, (devices, runs, classes, kernels)), indexing="ij")
    )
    n = len(d)
    time = np.ones(n) if equal else SHARES[c] * rng.gamma(2.0, size=n)
    # A prediction to its last digit is what tells kernels apart.
    p = (
        time
        * (1 + 1e-9 * np.arange(n))
        * 10 ** rng.uniform(1, 3, (devices, runs))[d, r] ** (not equal)
    )
    e = (
        effects(rng, devices, sds[0], law)[d]
        + effects(rng, (devices, classes), sds[1], law)[d, c]
        + effects(rng, (devices, runs), sds[2], law)[d, r]
        + effects(rng, (devices, runs, classes), sds[3], law)[d, r, c]
        + effects(rng, n, sds[4], law)
    )
    if off:  # one device in six, this way or that
        e += off * ((rng.random(devices) < 1 / 6) * rng.choice([-1.0, 1.0], devices))[d]
    return Kernels(
        {
            "run": np.char.add(np.char.add(d.astype(str), "/"), r.astype(str)),
            "device": d.astype(str),
            "kernel": np.arange(n).astype(str),
            "kernel_class": c.astype(str),
            "count": np.full(n, 24),
            "predicted": p,
            "measured": p * np.exp(e + 0.05 * c),
        }
    )


def outcomes(devices, runs, sds, law, repeats, seed):
    """For three runs on a device that was not in the fit, where the total stands, in [0, 1]."""
    rng = np.random.default_rng(seed)
    stands, independent = [], []
    for _ in range(repeats):
        kernels = simulated(rng, devices + 1, runs, sds, law)
        new = kernels.device == str(devices)
        model = fit_errors(kernels.take(~new), level=None)
        for run in kernels.take(new).runs[:3]:
            part = kernels.take(kernels.run == run)
            total = float(part.totals().measured[0])
            terms = model.terms(part, correlation("estimated"))
            stands.append(FromMoments(total_moments(terms), model.tails).cdf(total))
            terms = model.terms(part, correlation("independent"))
            independent.append(FromMoments(total_moments(terms)).cdf(total))
    return np.array(stands), np.array(independent)


def covered(stands, level):
    return float((np.abs(2 * stands - 1) <= level).mean())


# Three totals of one device are alike: the error of a coverage is that of `repeats` outcomes.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sds", "law"),
    [(CLASSES, 4), (DEVICES, 4), (RUNS, 4), (CLASSES, math.inf)],
    ids=["classes-t4", "devices-t4", "runs-t4", "classes-normal"],
)
@pytest.mark.parametrize(("devices", "runs", "slack"), [(4, 5, 0.06), (7, 10, 0.05), (20, 4, 0.03)])
def test_bands_for_a_new_device_cover_what_they_promise(devices, runs, slack, sds, law):
    # A device more costs much and tells less: coverage is judged by the totals of one device.
    repeats = {4: 120, 7: 90, 20: 45}[devices]
    stands, independent = outcomes(devices, runs, sds, law, repeats, seed=devices)
    for level in (0.5, 0.8, 0.9):
        error = 2.6 * math.sqrt(level * (1 - level) / repeats)
        assert abs(covered(stands, level) - level) <= slack + error, level
    assert covered(independent, 0.9) < 0.6


def outlying(devices, runs, repeats, seed, off):
    """For totals on a new device, what bands hold and how wide they are: mixed tails, t alone."""
    rng = np.random.default_rng(seed)
    held, width = [], []
    for _ in range(repeats):
        kernels = simulated(rng, devices + 1, runs, CLASSES, off=off)
        new = kernels.device == str(devices)
        model = fit_errors(kernels.take(~new), level=None)
        part = kernels.take(kernels.run == kernels.take(new).runs[0])
        moments = total_moments(model.terms(part, correlation("estimated")))
        total = float(part.totals().measured[0])
        both = [
            FromMoments(moments, tails)
            for tails in (model.tails, Tails(model.tails.df, model.tails.variance_df))
        ]
        held.append([abs(2 * law.cdf(total) - 1) <= 0.9 for law in both])
        width.append([math.log(law.quantile(0.95) / law.quantile(0.05)) for law in both])
    return np.mean(held, axis=0), np.median(width, axis=0)


# The band that holds all devices has a width of 1.4 in logarithms, and that of the others 0.25.
@pytest.mark.slow
@pytest.mark.parametrize(("devices", "runs", "widest"), [(4, 4, 1.9), (8, 3, 1.7), (12, 3, 1.5)])
def test_bands_hold_where_one_device_in_six_is_far_off(devices, runs, widest):
    repeats = {4: 150, 8: 90, 12: 80}[devices]
    held, width = outlying(devices, runs, repeats, seed=20 + devices, off=0.7)
    error = 2.6 * math.sqrt(0.9 * 0.1 / repeats)
    assert 0.86 - error <= held[0] <= min(1.0, 0.94 + error)
    assert width[0] <= widest
    if devices == 12:  # what a Student t alone cannot reach
        assert held[1] < held[0]
        assert width[1] < 1.3


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "runs"), [(4, 4), (12, 3)])
def test_observed_errors_cost_little_width_where_no_device_is_off(devices, runs):
    repeats = {4: 120, 12: 60}[devices]
    held, width = outlying(devices, runs, repeats, seed=40 + devices, off=0.0)
    assert abs(held[0] - 0.9) <= 0.03 + 2.6 * math.sqrt(0.9 * 0.1 / repeats)
    assert width[0] <= 1.1 * width[1]


def true_correlations(sds, devices):
    """Of the run, the class in it, the device, and the class on it; locations are estimated."""
    device, device_class, run, run_class, kernel = np.array(sds) ** 2
    inflated = devices / (devices - 1)
    device, device_class = device * inflated, device_class * inflated
    total = device + device_class + run + run_class + kernel
    shared = np.array([device + run, total - kernel, device, device + device_class])
    return shared / total


def correlations_of(found):
    return [found.levels[0], found.levels[1], found.device, found.device_class]


@pytest.mark.slow
@pytest.mark.parametrize("sds", [CLASSES, RUNS], ids=["classes", "runs"])
def test_components_are_recovered_with_the_uncertainty_of_the_locations(sds):
    rng, devices = np.random.default_rng(5), 8
    found = []
    for _ in range(60):
        kernels = simulated(rng, devices, 6, sds, equal=True)
        components = fit_errors(kernels, level=None).components
        found.append([level.value for level in correlations_of(components)])
    error = np.std(found, axis=0) / math.sqrt(len(found))
    away = np.abs(np.mean(found, axis=0) - true_correlations(sds, devices))
    # Truncation at 0 and pooling bias the estimates by a little.
    assert np.all(away <= 3 * error + 0.025)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [4, 8, 20])
def test_intervals_of_components_cover(devices):
    rng, repeats = np.random.default_rng(devices), {4: 80, 8: 60, 20: 15}[devices]
    true = true_correlations(CLASSES, devices)
    hits = []
    for _ in range(repeats):
        found = fit_errors(simulated(rng, devices, 5, CLASSES, equal=True)).components
        hits.append(
            [x.low <= t <= x.high for x, t in zip(correlations_of(found), true, strict=True)]
        )
    error = 2.6 * math.sqrt(0.9 * 0.1 / repeats)
    assert np.all(np.mean(hits, axis=0) >= 0.84 - error)


def test_propagated_variances_are_on_average_the_squared_errors_of_the_totals():
    rng = np.random.default_rng(9)
    kernels = simulated(rng, 6, 5, RUNS)
    model = fit_errors(kernels, level=None)
    assert all(level.value > 0 for level in model.components.levels)  # nothing was truncated
    found, _ = residuals(kernels, "log-ratio", model.floor)
    fit = _fit(found, "log-ratio", by_size=False)
    errors = np.bincount(found.run, fit.weight * fit.residual)
    propagated = np.zeros(len(errors))
    scaled = fit.weight * fit.of_row * model.components.scale
    for group, share in zip(found.groups(), model.components.shares.values(), strict=True):
        run = np.zeros(group.max() + 1, dtype=int)
        run[group] = found.run
        propagated += share * np.bincount(run, np.bincount(group, scaled) ** 2)
    assert propagated.mean() == pytest.approx((errors**2).mean(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.extras
def test_correlations_agree_with_variance_components_of_reml_in_a_balanced_design():
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(11)
    kernels = simulated(rng, 60, 1, (0.0, 0.08, 0.0, 0.0, 0.05), equal=True)
    found = fit_errors(kernels).components
    # In per cent: the optimiser takes small variances for the boundary.
    log = 100 * np.log(kernels.measured / kernels.predicted)
    frame = pd.DataFrame({"e": log, "c": kernels.kernel_class, "d": kernels.device})
    frame["cell"] = frame.d + frame.c
    fit = mixed.MixedLM.from_formula("e ~ C(c)", frame, groups="cell").fit(reml=True)
    between, within = float(fit.cov_re.iloc[0, 0]), float(fit.scale)
    assert found.levels[1].value == pytest.approx(between / (between + within), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("df", [3.0, 5.0, 12.0])
def test_degrees_of_freedom_are_recovered(df):
    rng = np.random.default_rng(1)
    found = [
        estimate_df(stats.t.rvs(df, size=400, random_state=rng) * math.sqrt((df - 2) / df))
        for _ in range(40)
    ]
    assert np.median(found) == pytest.approx(df, rel=0.25)


def test_normal_errors_are_not_called_heavy_tailed():
    rng = np.random.default_rng(2)
    found = [estimate_df(rng.standard_normal(300)) for _ in range(60)]
    assert np.median(found) > 15
    assert min(found) > 5


def test_degrees_of_freedom_of_a_variance_count_what_is_independent():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(30), 10)
    alike = [variance_df(rng.standard_normal(30)[cluster], cluster) for _ in range(50)]
    apart = [variance_df(rng.standard_normal(300), cluster) for _ in range(50)]
    assert np.allclose(alike, 29)
    assert np.median(apart) == pytest.approx(290, rel=0.1)


def test_normal_scores_of_a_t_are_normal():
    z = stats.t.rvs(4, size=20_000, random_state=4) * math.sqrt(0.5)
    assert stats.kstest(normal_scores(z, 4.0), "norm").pvalue > 0.01


def test_tails_have_the_standard_deviation_that_was_propagated():
    rng = np.random.default_rng(6)
    tails = Tails(6.0)
    z = np.sort(rng.standard_normal(400_000)) * tails.stretch(400_000)
    assert z.std() == pytest.approx(1, abs=0.01)
    for level in (0.05, 0.5, 0.9):
        assert (z <= tails.quantile(level)).mean() == pytest.approx(level, abs=0.003)


# Coverages of 50 to 90 % in clusters of alike totals: the interval must hold the true share.
@pytest.mark.slow
@pytest.mark.parametrize("clusters", [8, 12, 30])
@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("alike", [0.5, 0.9])
def test_interval_of_a_coverage_respects_clusters(clusters, share, alike):
    rng, repeats, hits, naive = np.random.default_rng(7), 400, 0, 0
    for _ in range(repeats):
        sizes = rng.integers(1, 20, clusters)
        cluster = np.repeat(np.arange(clusters), sizes)
        # Part of the variance of the latent score is that of the cluster.
        score = math.sqrt(alike) * rng.standard_normal(clusters)[cluster]
        score += math.sqrt(1 - alike) * rng.standard_normal(len(cluster))
        inside = score <= stats.norm.ppf(share)
        _, low, high = coverage_interval(inside, cluster)
        hits += low <= share <= high
        plain = stats.binomtest(int(inside.sum()), len(inside)).proportion_ci()
        naive += plain.low <= share <= plain.high
    assert hits / repeats >= 0.9 - 2.6 * math.sqrt(0.9 * 0.1 / repeats)
    assert naive / repeats < 0.85
