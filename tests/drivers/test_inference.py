"""Tests and intervals for cluster means, against SciPy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.drivers import inference
from errcomp.drivers.inference import (
    check_level,
    cluster_means,
    mean_test,
    rank_sum_p,
    share_interval,
    signed_rank_p,
)
from errcomp.errors import InputError


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_cluster_means_weigh_every_cluster_once():
    means = cluster_means(np.array([1.0, 3.0, 10.0]), ["x", "x", "y"])
    assert means.tolist() == [2.0, 10.0]


@pytest.mark.parametrize("level", [0.92, 0.95, 0.99])
def test_mean_test_is_students_t(rng, level):
    x = rng.normal(0.3, 1.0, size=7)
    test = mean_test(x, level=level, rng=rng)
    expected = stats.ttest_1samp(x, 0.0)
    half = stats.t.ppf(0.5 + level / 2, 6) * x.std(ddof=1) / np.sqrt(7)
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert (test.low, test.high) == pytest.approx((x.mean() - half, x.mean() + half))
    assert test.p_check == pytest.approx(stats.wilcoxon(x, method="exact").pvalue)
    assert test.method == "t over clusters, df=6"


@pytest.mark.parametrize(
    ("n", "reason"),
    [(1, "1 independent cluster, 3 needed"), (2, "2 independent clusters, 3 needed")],
)
def test_two_clusters_give_a_value_and_the_reason_for_no_interval(rng, n, reason):
    test = mean_test(np.arange(1.0, n + 1), level=0.95, rng=rng)
    assert test.value == np.arange(1.0, n + 1).mean()
    assert (test.low, test.high, test.p_value, test.p_check) == (None, None, None, None)
    assert test.method == f"none: {reason}"


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_clusters_that_all_say_the_same_give_no_interval(rng, value):
    test = mean_test(np.full(5, value) + 1e-16, level=0.95, rng=rng)
    assert test.low is None
    assert test.method == "none: no spread between clusters"


@pytest.mark.parametrize("n", [3, 6, 12, 16])
def test_signed_rank_is_exact(n):
    rng = np.random.default_rng(n)
    x = rng.normal(0.4, 1, size=n)
    expected = stats.wilcoxon(x, method="exact").pvalue
    assert signed_rank_p(x, rng=rng) == pytest.approx(expected, rel=1e-12)


def test_signed_rank_with_ties_equals_enumeration_by_scipy(rng):
    x = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0, -0.5])
    method = stats.PermutationMethod(n_resamples=np.inf)
    expected = stats.wilcoxon(x, method=method).pvalue
    assert signed_rank_p(x, rng=rng) == pytest.approx(expected, rel=1e-12)


def test_signed_rank_of_many_values_is_near_the_exact_value():
    x = np.random.default_rng(5).normal(0.35, 1, size=40)
    exact = stats.wilcoxon(x, method="exact").pvalue
    drawn = signed_rank_p(x, rng=np.random.default_rng(0))
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))
    assert drawn == signed_rank_p(x, rng=np.random.default_rng(0))


def test_signed_rank_without_any_sign_says_nothing(rng):
    assert signed_rank_p(np.zeros(5), rng=rng) == 1.0


@pytest.mark.parametrize("sizes", [(3, 3), (8, 3), (2, 5)])
def test_rank_sum_is_exact(sizes):
    rng = np.random.default_rng(sizes)
    a, b = rng.normal(size=sizes[0]), rng.normal(0.7, 1, size=sizes[1])
    expected = stats.mannwhitneyu(a, b, method="exact").pvalue
    assert rank_sum_p(a, b, rng=rng) == pytest.approx(expected, rel=1e-12)


def test_rank_sum_of_many_values_is_near_the_exact_value():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=12), rng.normal(0.6, 1, size=12)
    exact = stats.mannwhitneyu(a, b, method="exact").pvalue
    drawn = rank_sum_p(a, b, rng=np.random.default_rng(0))
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))


@pytest.mark.extras
@pytest.mark.parametrize("k", [0, 1, 7, 20])
def test_share_of_independent_pairs_is_clopper_and_pearson(k):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    hits = np.arange(20) < k
    value, low, high = share_interval(hits, range(20), level=0.95)
    expected = proportion.proportion_confint(k, 20, alpha=0.05, method="beta")
    assert value == k / 20
    assert (low, high) == pytest.approx(expected, abs=1e-12)


def test_share_of_clustered_pairs_follows_korn_and_graubard():
    hits = np.array(
        [True, True, True, False, False, False, True, False, False, False, False, False]
    )
    clusters = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    value, low, high = share_interval(hits, clusters, level=0.95)
    p, n, q = 4 / 12, 12, 4
    totals = np.array([3 - 3 * p, -3 * p, 1 - 3 * p, -3 * p])
    variance = q / (q - 1) * np.sum(totals**2) / n**2
    n_star = p * (1 - p) / variance * (stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, q - 1)) ** 2
    assert value == pytest.approx(p)
    assert low == pytest.approx(stats.beta.ppf(0.025, p * n_star, n_star - p * n_star + 1))
    assert high == pytest.approx(stats.beta.ppf(0.975, p * n_star + 1, n_star - p * n_star))


def test_share_never_gains_from_clusters_that_agree_with_each_other():
    hits = np.array([True, False] * 6)
    clusters = np.repeat(np.arange(6), 2).tolist()
    assert share_interval(hits, clusters, level=0.95) == share_interval(hits, range(12), level=0.95)


@pytest.mark.parametrize("all_hit", [True, False])
def test_share_of_pairs_that_all_agree_counts_clusters(all_hit):
    hits = np.full(12, all_hit)
    got = share_interval(hits, np.repeat(np.arange(4), 3).tolist(), level=0.95)
    assert got == share_interval(np.full(4, all_hit), range(4), level=0.95)
    assert got[2] - got[1] == pytest.approx(1 - 0.025 ** (1 / 4))


@pytest.mark.parametrize("level", [0.5, 0.9, 1.0, float("nan")])
def test_levels_without_a_promise_are_refused(level):
    with pytest.raises(InputError, match="level must be at least 0.917 and below 1"):
        check_level(level)


def test_check_level_accepts_the_usual_ones():
    for level in (inference.MIN_LEVEL, 0.95, 0.99):
        check_level(level)
