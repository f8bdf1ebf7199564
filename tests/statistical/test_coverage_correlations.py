"""Do intervals of correlations cover, do they accuse true claims, and how wide are they?"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from errcomp.metrics.intervals.direct import correlation_bounds

REPS = 600


def normal(rng, n):
    return 0.3 * rng.standard_normal(n)


def laplace(rng, n):
    return rng.laplace(scale=0.3, size=n)


def mixture(rng, n):
    return 0.1 * np.where(rng.random(n) < 0.1, 5, 1) * rng.standard_normal(n)


def bimodal(rng, n):
    return np.where(rng.random(n) < 0.2, 0.34, 0) + 0.1 * rng.standard_normal(n)


def in_clusters(rng, code, sigma=0.4, icc=0.5):
    k = int(code.max()) + 1
    shared = np.sqrt(icc) * rng.standard_normal(k)[code]
    return sigma * (shared + np.sqrt(1 - icc) * rng.standard_normal(len(code)))


@cache
def true(name, law, spread):
    """Of sizes and errors that are independent, whose moments are those of 2 million."""
    ratio, g = np.exp(law(np.random.default_rng(1), 2_000_000)), np.exp(spread**2)
    if name == "r2":
        return 1 - ((ratio - 1) ** 2).mean() * g / (g - 1)
    return np.sqrt((g - 1) / (g * (ratio**2).mean() / ratio.mean() ** 2 - 1))


def found(name, law, spread, n, seed=61):
    rng, bounds = np.random.default_rng([seed, n]), []
    for _ in range(REPS):
        m = np.exp(spread * rng.standard_normal(n))
        one = correlation_bounds(name, m * np.exp(law(rng, n)), m, None, 0.95)
        if not isinstance(one, str):
            bounds.append(one)
    return np.array(bounds)


def found_in_clusters(name, spread, k, fewest, seed):
    """Clusters of ``fewest`` to 20 pairs whose sizes and errors are alike."""
    rng, bounds = np.random.default_rng([seed, k]), []
    for _ in range(REPS):
        code = np.repeat(np.arange(k), rng.integers(fewest, 21, size=k))
        alike, own = rng.standard_normal(k)[code], rng.standard_normal(len(code))
        m = np.exp(spread * (alike + own) / np.sqrt(2))
        one = correlation_bounds(name, m * np.exp(in_clusters(rng, code)), m, code, 0.95)
        if not isinstance(one, str):
            bounds.append(one)
    return np.array(bounds)


def noise(share, n=REPS):
    return 3 * np.sqrt(share * (1 - share) / n)


def test_the_closed_form_of_pearson():
    rng = np.random.default_rng(0)
    m = np.exp(0.5 * rng.standard_normal(1_000_000))
    r = np.corrcoef(m * np.exp(normal(rng, len(m))), m)[0, 1]
    assert true("pearson", normal, 0.5) == pytest.approx(r, abs=4e-3)


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 20, 100])
@pytest.mark.parametrize("law", [normal, laplace, bimodal])
@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_pearson_covers_and_seldom_accuses(spread, law, n):
    bounds, target = found("pearson", law, spread, n), true("pearson", law, spread)
    low, high = bounds.T
    assert len(bounds) >= (0.3 if spread == 2 else 0.6) * REPS
    # Where sizes span a factor of 2,500 and errors are heavy, intervals lie too high.
    least = 0.85 if law is laplace and spread == 2 else 0.94
    assert np.mean((low <= target) & (target <= high)) >= least - noise(least, len(bounds))
    assert np.mean(high < target) <= 0.04 + noise(0.04, len(bounds))


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 20, 100])
def test_outliers_that_few_samples_show_never_make_a_claim_look_overstated(n):
    bounds, target = found("pearson", mixture, 1.0, n), true("pearson", mixture, 1.0)
    low, high = bounds.T
    assert np.mean(high < target) <= 0.01 + noise(0.01, len(bounds))
    # That is all that is promised: see docs/intervals.md for how often the lower end is too high.
    assert np.mean(low <= target) >= 0.80 - noise(0.80, len(bounds))


@pytest.mark.slow
def test_r2_covers_from_50_pairs_on():
    for spread in (0.5, 1.0):
        low, high = found("r2", normal, spread, 50).T
        target = true("r2", normal, spread)
        assert np.mean((low <= target) & (target <= high)) >= 0.93 - noise(0.93)
        assert np.mean(high < target) <= 0.05 + noise(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 6, 20])
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_pearson_covers_where_errors_and_sizes_are_shared(spread, k):
    bounds = found_in_clusters("pearson", spread, k, 3, 67)
    low, high = bounds.T
    target = true("pearson", lambda rng, n: 0.4 * rng.standard_normal(n), spread)
    assert len(bounds) > 0.6 * REPS
    assert np.mean((low <= target) & (target <= high)) >= 0.94 - noise(0.94, len(bounds))
    assert np.mean(high < target) <= 0.06 + noise(0.06, len(bounds))


@pytest.mark.slow
def test_width():
    """Bounds that can be used: medians of the interval at n = 20 and 100, errors of 30 %."""
    for n, lowest, highest in ((20, 0.30, 0.998), (100, 0.75, 0.985)):
        low, high = np.median(found("pearson", normal, 1.0, n), axis=0)
        assert low > lowest
        assert high < highest


@cache
def true_order(law, spread):
    """Spearman's correlation of 400,000 pairs."""
    rng = np.random.default_rng(1)
    m = np.exp(spread * rng.standard_normal(400_000))
    return stats.spearmanr(m * np.exp(law(rng, len(m))), m).statistic


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("law", [normal, laplace, mixture, bimodal])
@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_spearman_covers_and_seldom_accuses(spread, law, n):
    bounds, target = found("spearman", law, spread, n), true_order(law, spread)
    low, high = bounds.T
    assert len(bounds) >= 0.7 * REPS
    # One pair in ten has five times the error, and few samples show how often.
    least = 0.90 if law is mixture else 0.94
    assert np.mean((low <= target) & (target <= high)) >= least - noise(least, len(bounds))
    assert np.mean(high < target) <= 0.05 + noise(0.05, len(bounds))


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 8, 20])
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_spearman_covers_where_errors_and_sizes_are_shared(spread, k):
    bounds = found_in_clusters("spearman", spread, k, 1, 68)
    low, high = bounds.T
    target = true_order(lambda rng, n: 0.4 * rng.standard_normal(n), spread)
    assert len(bounds) > 0.9 * REPS
    assert np.mean((low <= target) & (target <= high)) >= 0.94 - noise(0.94, len(bounds))
    assert np.mean(high < target) <= 0.05 + noise(0.05, len(bounds))


@pytest.mark.slow
def test_the_width_of_spearmans():
    """Medians of the interval, errors of 30 %."""
    for n, lowest, highest in ((20, 0.65, 0.993), (100, 0.90, 0.976)):
        low, high = np.median(found("spearman", normal, 1.0, n), axis=0)
        assert low > lowest
        assert high < highest
