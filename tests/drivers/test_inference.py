"""Tests and intervals for cluster means, against SciPy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, stats

from errcomp.drivers import inference
from errcomp.drivers.inference import (
    Cells,
    between_test,
    bias_reduced,
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


def test_check_level_accepts_the_lowest_and_nothing_below_it():
    for level in (inference.MIN_LEVEL, 0.95, 0.99):
        check_level(level)
    with pytest.raises(InputError, match="level must be at least"):
        check_level(np.nextafter(inference.MIN_LEVEL, 0))


def cells_of(configuration, unit, is_b):
    return Cells(np.array(configuration), np.array(unit), np.array(is_b, dtype=bool))


def test_one_configuration_gives_the_difference_of_means_and_its_welch_error():
    rng = np.random.default_rng(1)
    y = rng.normal(size=9)
    side = np.arange(9) >= 5
    beta, se, df = bias_reduced(cells_of([0] * 9, range(9), side), y)
    a, b = y[~side], y[side]
    assert beta == pytest.approx(b.mean() - a.mean())
    assert se == pytest.approx(np.sqrt(a.var(ddof=1) / 5 + b.var(ddof=1) / 4))
    # Imbens and Kolesár (2016), closed form of the Bell-McCaffrey degrees of freedom.
    n0, n1 = 5, 4
    closed = (n0 + n1) ** 2 * (n0 - 1) * (n1 - 1)
    closed /= n1**2 * (n1 - 1) + n0**2 * (n0 - 1)
    assert df == pytest.approx(closed)


def test_unbalanced_cells_equal_the_textbook_matrices():
    rng = np.random.default_rng(2)
    configuration = np.repeat(np.arange(6), 7)
    unit = np.tile(np.arange(7), 6)
    keep = rng.random(42) < 0.7
    configuration, unit = configuration[keep], unit[keep]
    is_b = unit >= 4
    y = rng.normal(size=len(unit)) + 0.5 * is_b + configuration
    beta, se, df = bias_reduced(cells_of(configuration, unit, is_b), y)
    x = np.column_stack([is_b, *(configuration == c for c in range(6))]).astype(float)
    bread = np.linalg.inv(x.T @ x)
    residual_maker = np.eye(len(y)) - x @ bread @ x.T
    contrast = bread[0] @ x.T
    weights = []
    for u in range(7):
        rows = unit == u
        root = linalg.sqrtm(np.linalg.inv(residual_maker[np.ix_(rows, rows)])).real
        weights.append(residual_maker[:, rows] @ root @ contrast[rows])
    gram = np.array([[p @ q for q in weights] for p in weights])
    assert beta == pytest.approx((bread @ x.T @ y)[0])
    assert se == pytest.approx(np.sqrt(sum((p @ y) ** 2 for p in weights)))
    assert df == pytest.approx(np.trace(gram) ** 2 / np.sum(gram**2))


def test_hard_configurations_are_not_blamed_on_the_devices_that_ran_them():
    # Device 3 to 5 (level b) ran the hard configuration 1 more often; within each, b adds 1.
    configuration = [0, 0, 0, 0, 1, 1, 1, 1]
    unit = [0, 1, 2, 3, 0, 3, 4, 5]
    is_b = [u >= 3 for u in unit]
    y = np.array([10.0 * c + b for c, b in zip(configuration, is_b, strict=True)])
    beta, _, _ = bias_reduced(cells_of(configuration, unit, is_b), y)
    assert beta == pytest.approx(1.0)


def test_a_unit_that_alone_fixes_a_direction_does_not_break_the_error():
    # Unit 0 holds the only entry at a: its block of I - H is singular.
    beta, se, df = bias_reduced(
        cells_of([0, 0, 0], [0, 1, 2], [False, True, True]), np.array([0.0, 1.0, 3.0])
    )
    assert beta == pytest.approx(2.0)
    assert np.isfinite([se, df]).all()


def test_interval_p_value_and_check_belong_together():
    rng = np.random.default_rng(3)
    y = rng.normal(size=8)
    side = np.arange(8) >= 4
    cells = cells_of([0] * 8, range(8), side)
    test = between_test(cells, y, level=0.95, rng=rng)
    beta, se, df = bias_reduced(cells, y)
    half = stats.t.ppf(0.975, df) * se
    assert (test.low, test.high) == pytest.approx((beta - half, beta + half))
    assert test.p_value == pytest.approx(2 * stats.t.sf(abs(beta) / se, df))
    assert test.p_check == pytest.approx(
        stats.mannwhitneyu(y[~side], y[side], method="exact").pvalue
    )


@pytest.mark.parametrize("n_b", [1, 2])
def test_fewer_than_three_units_on_a_side_give_no_interval(n_b):
    rng = np.random.default_rng(4)
    n = 5 + n_b
    cells = cells_of([0] * n, range(n), np.arange(n) >= 5)
    test = between_test(cells, rng.normal(size=n), level=0.95, rng=rng)
    assert test.low is None
    assert "3 needed on each side" in test.method


def test_identical_values_have_no_spread():
    cells = cells_of([0] * 6, range(6), np.arange(6) >= 3)
    test = between_test(cells, np.full(6, 0.2), level=0.95, rng=np.random.default_rng(0))
    assert test.method == "none: no spread between clusters"
