"""Bands under "estimated" cover what they promise, and components are recovered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp import Kernels
from errcomp.propagation import correlation, fit_errors
from errcomp.propagation.distribution import FromMoments
from errcomp.propagation.scores import coverage_interval
from errcomp.propagation.sums import total_moments
from errcomp.propagation.tails import Tails, estimate_df, normal_scores, variance_df

#: Standard deviation of the effect of a device, a class on it, a class in a run, and a kernel.
CLASSES = (0.02, 0.08, 0.06, 0.10)
DEVICES = (0.10, 0.03, 0.03, 0.05)
SHARES = np.array([0.6, 0.15, 0.1, 0.1, 0.05])


def effects(rng, shape, sd, law):
    if law == math.inf:
        return rng.standard_normal(shape) * sd
    return stats.t.rvs(law, size=shape, random_state=rng) * sd * math.sqrt((law - 2) / law)


def simulated(rng, devices, runs, sds, law=math.inf, kernels=4, equal=False):
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
        + effects(rng, (devices, runs, classes), sds[2], law)[d, r, c]
        + effects(rng, n, sds[3], law)
    )
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
        model = fit_errors(kernels.take(~new), confidence=None)
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
@pytest.mark.parametrize("law", [math.inf, 4], ids=["normal", "t4"])
@pytest.mark.parametrize("sds", [CLASSES, DEVICES], ids=["classes", "devices"])
@pytest.mark.parametrize(("devices", "runs", "slack"), [(4, 5, 0.06), (7, 10, 0.05), (20, 4, 0.03)])
def test_bands_for_a_new_device_cover_what_they_promise(devices, runs, slack, sds, law):
    repeats = 120
    stands, independent = outcomes(devices, runs, sds, law, repeats, seed=devices)
    for level in (0.5, 0.8, 0.9):
        error = 2.6 * math.sqrt(level * (1 - level) / repeats)
        assert abs(covered(stands, level) - level) <= slack + error, level
    assert covered(independent, 0.9) < 0.6


@pytest.mark.slow
def test_components_are_recovered_with_the_uncertainty_of_the_locations():
    rng, devices = np.random.default_rng(5), 8
    variances = np.array(CLASSES) ** 2
    variances[:2] *= devices / (devices - 1)  # what a new device shares holds that of the location
    true = np.cumsum(variances) / variances.sum()
    found = np.array(
        [
            fit_errors(
                simulated(rng, devices, 6, CLASSES, equal=True), confidence=None
            ).components.correlation
            for _ in range(60)
        ]
    )
    error = found.std(axis=0) / math.sqrt(len(found))
    # Truncation at 0 and pooling bias the estimates by a little.
    assert np.all(np.abs(found.mean(axis=0) - [*true[:3], 1, 1]) <= 3 * error + 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [4, 8, 20])
def test_intervals_of_components_cover(devices):
    rng, repeats = np.random.default_rng(devices), 100
    variances = np.array(CLASSES) ** 2
    variances[:2] *= devices / (devices - 1)
    true = (np.cumsum(variances) / variances.sum())[1:3]
    hits = []
    for _ in range(repeats):
        found = fit_errors(simulated(rng, devices, 5, CLASSES, equal=True)).components
        ends = zip(found.low[1:3], true, found.high[1:3], strict=True)
        hits.append([low <= t <= high for low, t, high in ends])
    error = 2.6 * math.sqrt(0.9 * 0.1 / repeats)
    assert np.all(np.mean(hits, axis=0) >= 0.86 - error)


def test_correlations_agree_with_variance_components_of_reml_in_a_balanced_design():
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(11)
    kernels = simulated(rng, 60, 1, (0.0, 0.08, 0.0, 0.05), equal=True)
    found = fit_errors(kernels).components
    # In per cent: the optimiser takes small variances for the boundary.
    log = 100 * np.log(kernels.measured / kernels.predicted)
    frame = pd.DataFrame({"e": log, "c": kernels.kernel_class, "d": kernels.device})
    frame["cell"] = frame.d + frame.c
    fit = mixed.MixedLM.from_formula("e ~ C(c)", frame, groups="cell").fit(reml=True)
    between, within = float(fit.cov_re.iloc[0, 0]), float(fit.scale)
    # With one run per device, kernels of a class share the run as well.
    assert found.correlation[2] == pytest.approx(between / (between + within), abs=0.03)


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
    alike = [
        variance_df(np.repeat(rng.standard_normal(30), 10), np.repeat(np.arange(30), 10))
        for _ in range(200)
    ]
    apart = [variance_df(rng.standard_normal(300), np.arange(300)) for _ in range(200)]
    assert np.median(alike) == pytest.approx(30, rel=0.25)
    assert np.median(apart) == pytest.approx(300, rel=0.1)


def test_normal_scores_of_a_t_are_normal():
    z = stats.t.rvs(4, size=20_000, random_state=4) * math.sqrt(0.5)
    assert stats.kstest(normal_scores(z, 4.0), "norm").pvalue > 0.01


def test_tails_have_the_standard_deviation_that_was_propagated():
    rng = np.random.default_rng(6)
    tails = Tails(6.0)
    z = rng.standard_normal(400_000) * tails.stretch(400_000, rng)
    assert z.std() == pytest.approx(1, abs=0.01)
    for level in (0.05, 0.5, 0.9):
        assert (z <= tails.quantile(level)).mean() == pytest.approx(level, abs=0.003)


# Coverages of 50 to 90 % in clusters of alike totals: the interval must hold the true share.
@pytest.mark.slow
@pytest.mark.parametrize("clusters", [8, 12, 30])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_interval_of_a_coverage_respects_clusters(clusters, share):
    rng, repeats, hits, naive = np.random.default_rng(7), 1500, 0, 0
    for _ in range(repeats):
        sizes = rng.integers(3, 16, clusters)
        cluster = np.repeat(np.arange(clusters), sizes)
        # Half of the variance of the latent score is that of the cluster.
        score = math.sqrt(0.5) * rng.standard_normal(clusters)[cluster]
        score += math.sqrt(0.5) * rng.standard_normal(len(cluster))
        inside = score <= stats.norm.ppf(share)
        _, low, high = coverage_interval(inside, cluster)
        hits += low <= share <= high
        plain = stats.binomtest(int(inside.sum()), len(inside)).proportion_ci()
        naive += plain.low <= share <= plain.high
    assert hits / repeats >= 0.93
    assert naive / repeats < 0.85
