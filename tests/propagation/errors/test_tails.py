"""Tails of the totals' errors: quantiles, the shape that is fitted, and degrees of freedom.

That shapes are recovered and tails keep their standard deviation is simulated in
tests/statistical/test_propagation_estimated.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.propagation.errors.tails import (
    NORMAL_TAILS,
    Observed,
    Tails,
    estimate_df,
    normal_scores,
    observe,
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
    assert NORMAL_TAILS.stretch(5).tolist() == [1.0] * 5


def test_stretched_normal_draws_are_the_tails():
    rng = np.random.default_rng(2)
    tails = Tails(4.0, 10.0)
    draws = np.sort(rng.standard_normal(50_000)) * tails.stretch(50_000)
    assert stats.kstest(draws, tails.cdf).pvalue > 0.01


def test_as_plain_values():
    assert NORMAL_TAILS.to_dict() == {"df": None, "variance_df": None, "observed": None}
    observed = Observed((1.0, 2.0), (0.5, 1.0), 2.0, 2)
    assert Tails(3.0, 9.0, observed).to_dict() == {
        "df": 3.0,
        "variance_df": 9.0,
        "observed": {"sizes": [1.0, 2.0], "below": [0.5, 1.0], "number": 2.0, "n_clusters": 2},
    }


# --- errors that were observed ---

SIX = observe(np.array([0.2, -0.3, 0.5, 0.6, -0.8, 2.4]), np.arange(6))


def test_each_device_counts_as_one_however_many_totals_it_has():
    found = observe(np.array([1.0, -3.0, 2.0, 4.0]), np.array([0, 1, 1, 1]))
    assert found.sizes == (1.0, 2.0, 3.0, 4.0)
    assert found.below == pytest.approx((1 / 2, 2 / 3, 5 / 6, 1))
    assert found.n_clusters == 2


def test_totals_that_err_alike_say_as_much_as_their_devices():
    cluster = np.repeat(np.arange(3), 2)
    alike = observe(np.array([1.0, 1.0, -2.0, -2.0, 1.0, 1.0]), cluster)
    apart = observe(np.array([1.0, -1.0, -2.0, 2.0, 1.0, -1.0]), cluster)
    assert (alike.number, apart.number) == (3.0, 6.0)
    assert alike.beyond == 1 / 4


def test_many_errors_are_kept_as_quantiles_and_the_largest():
    z = np.random.default_rng(4).standard_normal(5000)
    found = observe(z, np.arange(5000))
    assert len(found.sizes) <= 401
    assert found.sizes[-1] == np.abs(z).max()
    assert found.below[-1] == 1
    assert found.share(np.array([1.0])) == pytest.approx((np.abs(z) <= 1).mean(), abs=0.01)


def test_the_mixture_by_hand():
    tails = Tails(4.0, observed=SIX)
    # Six devices and four for the Student t; 6/7 of the observed part is up to the largest.
    student = stats.t.sf(0.8 / math.sqrt(0.5), 4)
    outside = 0.4 * 2 * student + 0.6 * (1 - 5 / 6 * 6 / 7)
    assert tails.cdf(-0.8) == pytest.approx(outside / 2)
    ends = 2 * stats.t.sf(2.4 / math.sqrt(0.5), 4)
    assert tails.cdf(-2.4) == pytest.approx((0.4 * ends + 0.6 / 7) / 2)
    far = 2 * stats.t.sf(5 / math.sqrt(0.5), 4)
    assert tails.cdf(-5.0) == pytest.approx((0.4 * far + 0.6 / 7 * far / ends) / 2)


def test_one_device_in_six_that_is_far_out_is_inside_the_90_percent_band_of_two_such():
    sizes = np.array([0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.5, 0.5, 0.6, 0.6, 2.4, 2.5])
    assert Tails(2.5, 5.0).quantile(0.95) < 2
    assert Tails(2.5, 5.0, observe(sizes, np.arange(12))).quantile(0.95) > 2.2


@pytest.mark.parametrize("tails", [Tails(4.0, 5.0, SIX), Tails(observed=SIX)], ids=["t", "normal"])
def test_bands_of_observed_errors_are_symmetric_and_nested(tails):
    levels = np.linspace(0.0005, 0.9995, 1999)
    found = tails.quantile(levels)
    assert np.all(np.diff(found) > 0)
    assert found == pytest.approx(-found[::-1], abs=1e-9)
    assert tails.cdf(found) == pytest.approx(levels, abs=1e-9)


def test_bands_end_beyond_an_error_that_no_law_expects():
    absurd = Tails(observed=Observed((1.0, 1e4), (0.9, 1.0), 10.0, 10))
    assert np.isfinite(absurd.quantile(np.array([0.9, 0.99, 0.9999]))).all()
    assert absurd.quantile(0.9999) >= 1e4


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (((), (), 1.0, 1), "sizes of observed errors must increase"),
        (((2.0, 1.0), (0.5, 1.0), 1.0, 1), "sizes of observed errors must increase"),
        (((-1.0,), (1.0,), 1.0, 1), "sizes of observed errors must increase"),
        (((math.nan,), (1.0,), 1.0, 1), "sizes of observed errors must increase"),
        (((math.inf,), (1.0,), 1.0, 1), "must be finite, got inf"),
        (
            ((1.0,), (0.5,), 1.0, 1),
            "the last share must be 1; got 1 sizes, and 1 shares that end with",
        ),
        (((1.0, 2.0), (1.0,), 1.0, 1), "got 2 sizes, and 1 shares"),
        (((1.0,), (1.0,), 0.0, 1), "must be positive, got 0.0 and 1"),
        (((1.0,), (1.0,), 1.0, 0), "must be positive, got 1.0 and 0"),
    ],
)
def test_what_is_no_distribution_of_errors_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        Observed(*values)


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
