"""Tails of the totals' errors: quantiles, the shape that is fitted, and degrees of freedom.

That shapes are recovered and tails keep their standard deviation is simulated in
tests/statistical/test_propagation_estimated.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp.propagation.tails import (
    NORMAL_TAILS,
    Tails,
    estimate_df,
    normal_scores,
    tail_scale,
    variance_df,
)

LEVELS = np.array([0.01, 0.05, 0.25, 0.5, 0.9, 0.99])


def test_the_scale_of_a_t_of_standard_deviation_1():
    for df in (2.5, 4.0, 30.0):
        assert stats.t.std(df, scale=tail_scale(df)) == pytest.approx(1.0)
    assert tail_scale(math.inf) == 1.0


def test_normal_tails_are_normal():
    assert NORMAL_TAILS.quantile(LEVELS) == pytest.approx(stats.norm.ppf(LEVELS))
    assert NORMAL_TAILS.cdf(1.0) == pytest.approx(stats.norm.cdf(1.0))
    assert math.isinf(NORMAL_TAILS.combined)


def test_a_known_variance_leaves_the_t():
    assert Tails(5.0).combined == 5.0
    expected = stats.t.ppf(LEVELS, 5, scale=math.sqrt(3 / 5))
    assert Tails(5.0).quantile(LEVELS) == pytest.approx(expected)


def test_a_variance_from_few_clusters_makes_a_t_of_normal_errors():
    assert Tails(variance_df=7.0).quantile(LEVELS) == pytest.approx(stats.t.ppf(LEVELS, 7))


def test_degrees_of_freedom_combine_by_their_inverses():
    assert Tails(6.0, 3.0).combined == pytest.approx(2.0)


def test_quantile_and_distribution_function_are_inverse():
    tails = Tails(3.2, 20.0)
    assert tails.cdf(tails.quantile(LEVELS)) == pytest.approx(LEVELS)


def test_quantiles_are_symmetric():
    tails = Tails(3.2, 20.0)
    assert tails.quantile(0.5) == pytest.approx(0, abs=1e-12)
    assert tails.quantile(0.95) == pytest.approx(-tails.quantile(0.05))


def test_a_poorly_known_variance_widens_bands():
    for level in (0.9, 0.99):
        assert Tails(5.0, 4.0).quantile(level) > Tails(5.0).quantile(level)


def test_normal_draws_are_not_stretched():
    assert NORMAL_TAILS.stretch(5, np.random.default_rng(1)).tolist() == [1.0] * 5


def test_stretched_normal_draws_are_the_tails():
    rng = np.random.default_rng(2)
    tails = Tails(4.0, 10.0)
    draws = rng.standard_normal(50_000) * tails.stretch(50_000, rng)
    assert stats.kstest(draws, tails.cdf).pvalue > 0.01


def test_as_plain_values():
    assert NORMAL_TAILS.to_dict() == {"df": None, "variance_df": None}
    assert Tails(3.0, 9.0).to_dict() == {"df": 3.0, "variance_df": 9.0}


def test_the_shape_does_not_hang_on_the_sign():
    z = stats.t.rvs(4, size=100, random_state=3)
    assert estimate_df(z) == pytest.approx(estimate_df(-z))


def test_the_variance_exists_however_far_out_an_error_is():
    assert estimate_df(np.array([0.1, -0.1, 1e6])) == pytest.approx(2.5, rel=1e-3)


def test_one_error_says_nothing_of_the_shape():
    # What is left is the prior and a little of the likelihood.
    assert 5 < estimate_df(np.array([1.0])) < 40


def test_many_normal_errors_are_normal():
    z = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert estimate_df(z) > 50


def test_scores_of_normal_errors_are_themselves():
    z = np.array([-2.0, 0.3])
    assert normal_scores(z, math.inf) is z


def test_scores_stay_finite_far_out():
    scores = normal_scores(np.array([-1e8, 0.0, 1e8]), 3.0)
    assert np.isfinite(scores).all()
    assert scores[2] == pytest.approx(-scores[0])
    assert 5 < scores[2] < 15


def test_one_cluster_has_one_degree_of_freedom():
    assert variance_df(np.array([1.0, -2.0, 0.5]), np.zeros(3, dtype=np.int64)) == 1.0


def test_errors_that_repeat_within_clusters_count_once():
    z = np.repeat([1.0, -2.0, 0.5, 3.0, -0.1], 4)
    # Squares within a cluster are equal: ρ = 1, five errors, one of them for the location.
    assert variance_df(z, np.repeat(np.arange(5), 4)) == pytest.approx(4.0)


def test_errors_that_differ_within_clusters_count_each():
    # Sums of pairs vanish: ρ = −1 is taken as 0, eight errors in four clusters.
    z = np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0])
    assert variance_df(z, np.repeat(np.arange(4), 2)) == pytest.approx(8 * 3 / 4)


def test_errors_that_are_alike_in_part_by_hand():
    # Clusters (2, 1) and (1, 2): mean product 2, mean square 2.5, ρ = 0.8.
    found = variance_df(np.array([2.0, 1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]))
    assert found == pytest.approx(max(1.0, 16 / (4 + 4 * 0.64) / 2))


def test_clusters_of_one_are_taken_as_alike():
    assert variance_df(np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)) == pytest.approx(3.0)


def test_no_error_says_nothing_of_how_alike_clusters_are():
    assert variance_df(np.zeros(6), np.repeat(np.arange(3), 2)) == pytest.approx(2.0)


def test_numbers_of_clusters_need_not_follow_each_other():
    z = np.array([1.0, 2.0, 0.5])
    assert variance_df(z, np.array([0, 4, 9])) == pytest.approx(variance_df(z, np.arange(3)))
