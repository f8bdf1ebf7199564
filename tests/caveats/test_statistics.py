"""The small tests behind the checks, against SciPy, statsmodels and published values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway, false_discovery_control, mannwhitneyu, quantile_test, wilcoxon

from errcomp.caveats import quantile_caveat
from errcomp.caveats._case import GAUSS_CV, STUDENT, Case
from errcomp.caveats._statistics import (
    Moments,
    _fit,
    discoveries,
    grouped_means,
    out_of_sample_factor,
    simulated_p,
)
from errcomp.caveats.comparisons import _macro_p, contrast
from errcomp.caveats.sample import _one_way, _one_way_p
from errcomp.caveats.shape import _largest, _worst, p_of_averages, p_of_weighted_mean
from errcomp.errors import InputError
from errcomp.stats.significance import holm
from errcomp.tables import Pairs


def case_of(errors: np.ndarray, **keys: object) -> Case:
    """A case whose absolute percentage errors are these."""
    return Case(Pairs({"predicted": 1 + errors, "measured": np.ones(len(errors)), **keys}))


@pytest.mark.extras
def test_holm_agrees_with_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(0).random(12) ** 3
    np.testing.assert_allclose(holm(p.tolist()), multitest.multipletests(p, method="holm")[1])


def test_holm_on_the_example_of_the_definition() -> None:
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([]) == []


def test_discoveries_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 20):
        p = rng.random(size) ** 4
        assert discoveries(p.tolist(), 0.05) == (false_discovery_control(p) <= 0.05).tolist()
    assert discoveries([], 0.05) == []


def test_a_simulated_p_value_counts_the_observation_itself() -> None:
    null = np.arange(1.0, 100.0)
    assert simulated_p(1000.0, null) == pytest.approx(0.01)
    assert simulated_p(99.0 + 1e-12, null) == pytest.approx(0.02)


def test_grouped_means_of_a_matrix_are_those_of_its_rows() -> None:
    values, codes = np.random.default_rng(2).random((3, 7)), np.array([0, 1, 1, 2, 0, 2, 2])
    means, sizes = grouped_means(values, codes, 3)
    assert sizes.tolist() == [2, 2, 3]
    for row, expected in zip(values, means, strict=True):
        np.testing.assert_allclose(grouped_means(row, codes, 3)[0], expected)


#: Six targets rated by four judges: the data of Shrout and Fleiss (1979), Psychological Bulletin
#: 86(2), 420-428, table 2; their ICC(1,1) is .17, with mean squares 11.24 and 6.26.
RATINGS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
)


def test_intraclass_correlation_of_the_published_example() -> None:
    errors = RATINGS.ravel().astype(float)
    codes = np.repeat(np.arange(6), 4)
    case = case_of(errors)
    groups, icc, effect, p = _one_way(case, codes, case.moments(codes))
    assert groups == 6
    assert icc == pytest.approx((11.24 - 6.26) / (11.24 + 3 * 6.26), abs=5e-4)
    assert icc == pytest.approx(0.17, abs=0.005)
    assert effect == pytest.approx(1 + 3 * icc)
    # The permutation p-value is near that of the F distribution, F = 1.79 on 5 and 18.
    assert p == pytest.approx(float(f_oneway(*RATINGS).pvalue), abs=0.03)


def test_one_way_p_value_of_a_large_table_is_that_of_the_f_distribution() -> None:
    rng = np.random.default_rng(3)
    errors, codes = rng.random(900), rng.integers(0, 7, 900)
    expected = f_oneway(*(np.log(errors[codes == g]) for g in range(7)))
    case = case_of(errors)
    found = _one_way(case, codes, case.moments(codes))
    assert found[3] == pytest.approx(float(expected.pvalue), rel=1e-6)


def test_groups_without_spread_inside_are_perfectly_clustered() -> None:
    codes = np.repeat([0, 1, 2], 300)
    case = case_of(codes / 10 + 0.1)
    found = _one_way(case, codes, case.moments(codes))
    assert found[1:] == pytest.approx((1.0, 300.0, 0.0))


def test_macro_gap_of_a_large_table_has_the_p_value_of_a_permutation_test() -> None:
    rng = np.random.default_rng(4)
    errors = rng.random(800)
    codes = rng.choice(4, 800, p=[0.7, 0.2, 0.08, 0.02])
    case = case_of(errors)
    observed = abs(grouped_means(errors, codes, 4)[0].mean() - errors.mean())
    shuffled = np.array([rng.permutation(errors) for _ in range(4000)])
    null = np.abs(grouped_means(shuffled, codes, 4)[0].mean(axis=1) - errors.mean())
    assert _macro_p(case, codes, case.moments(codes)) == pytest.approx(
        simulated_p(observed, null), abs=0.03
    )


def test_largest_of_many_errors_has_the_p_value_of_a_simulation() -> None:
    rng = np.random.default_rng(5)
    # Of the two shapes, Student's has the larger ones in samples of this size.
    errors = np.abs(rng.standard_t(STUDENT, (4000, 600)))
    ratios = errors.max(axis=1) / errors.mean(axis=1)
    usual, p = _largest(case_of(errors[0]), 10.0)
    assert usual == pytest.approx(np.median(ratios), rel=0.02)
    assert p == pytest.approx(simulated_p(10.0, ratios), abs=0.03)


def test_share_of_the_worst_of_many_errors_has_the_p_value_of_a_simulation() -> None:
    rng = np.random.default_rng(6)
    errors = rng.exponential(size=(4000, 600))
    shares = np.sort(errors, axis=1)[:, -60:].sum(axis=1) / errors.sum(axis=1)
    usual, p = _worst(case_of(errors[0]), 60, 0.345)
    assert usual == pytest.approx(np.median(shares), rel=0.01)
    assert p == pytest.approx(simulated_p(0.345, shares), abs=0.03)


def test_weighted_mean_of_many_errors_has_the_p_value_of_a_simulation() -> None:
    rng = np.random.default_rng(6)
    # Weights of which a few are large: the weighted mean is not normal.
    weights = rng.lognormal(0, 2, 600)
    weights /= weights.sum()
    errors = rng.exponential(size=(4000, 600))
    ratios = errors @ weights / errors.mean(axis=1)
    spread = float(((weights - 1 / 600) ** 2).sum())
    for share in (0.01, 0.05, 0.95, 0.99):
        p = p_of_weighted_mean(float(np.quantile(ratios, share)), spread)
        # On the safe side: the gamma law has the heavier end towards zero.
        chance = 2 * min(share, 1 - share)
        assert chance - 0.02 <= p <= chance + 0.08
    assert p_of_weighted_mean(4.0, spread) < 1e-6


def test_averages_of_many_errors_have_the_p_value_of_a_simulation() -> None:
    rng = np.random.default_rng(7)
    errors = rng.exponential(size=(4000, 600))
    ratios = errors.mean(axis=1) / np.exp(np.log(errors).mean(axis=1))
    assert p_of_averages(1.86, 600) == pytest.approx(simulated_p(1.86, ratios), abs=0.02)


def test_coefficient_of_variation_of_absolute_gaussian_errors() -> None:
    sample = np.abs(np.random.default_rng(7).standard_normal(400_000))
    assert pytest.approx(sample.std() / sample.mean(), rel=0.01) == GAUSS_CV


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 9, 20])
def test_out_of_sample_factor_is_that_of_leaving_out_one_at_a_time(n: int) -> None:
    rng = np.random.default_rng(n)
    measured = rng.lognormal(0, 1, n)
    predicted = measured * rng.lognormal(0.3, 0.3, n)
    ratio = predicted / measured
    errors = [
        abs(predicted[i] / np.median(np.delete(ratio, i)) - measured[i]) / measured[i]
        for i in range(n)
    ]
    factor, after = out_of_sample_factor(predicted, measured)
    assert factor == pytest.approx(1 / np.median(ratio))
    assert after == pytest.approx(np.mean(errors))


@pytest.mark.parametrize(
    "predicted", [[1.0], [0.0, -1.0, 2.0], [1.0, -3.0, 2.0], [5e-324, 5e-324, 1.0]]
)
def test_no_factor_is_fitted_where_a_median_is_not_positive(predicted: list[float]) -> None:
    assert out_of_sample_factor(np.array(predicted), np.ones(len(predicted))) == (None, None)


def test_matched_configurations_are_compared_by_the_signed_rank_test() -> None:
    rng = np.random.default_rng(8)
    base, change = rng.random(7), rng.random(7)
    errors = np.concatenate([base, base + change, rng.random(5)])
    variant = ["base"] * 7 + ["fusion"] * 7 + ["base"] * 5
    batch = [*range(7), *range(7), *range(100, 105)]
    case = case_of(errors, variant=variant, batch=batch)
    fused = np.asarray(variant) == "fusion"
    found = contrast(case, fused, ~fused, "variant")
    assert found.matched == 7
    assert found.p == pytest.approx(float(wilcoxon(base + change, base).pvalue))
    assert found.matched_figures == pytest.approx(((base + change).mean(), base.mean()))
    assert found.figures[1] == pytest.approx(errors[~fused].mean())
    assert found.sizes == (7, 12)


def test_repeated_rows_of_a_configuration_count_once_when_matched() -> None:
    errors = np.array([0.1, 0.3, 0.5, 0.7])
    case = case_of(errors, variant=["base", "base", "fusion", "fusion"], batch=[1, 1, 1, 1])
    fused = np.array([False, False, True, True])
    found = contrast(case, fused, ~fused, "variant")
    assert found.matched == 1
    assert found.matched_figures == pytest.approx((0.6, 0.2))


def test_unmatched_configurations_are_compared_by_the_rank_sum_test() -> None:
    rng = np.random.default_rng(9)
    errors = rng.random(20)
    fused = np.arange(20) < 5
    case = case_of(errors, variant=np.where(fused, "f", "b").tolist(), batch=list(range(20)))
    found = contrast(case, fused, ~fused, "variant")
    assert (found.matched, found.sizes) == (0, (5, 15))
    assert found.p == pytest.approx(float(mannwhitneyu(errors[fused], errors[~fused]).pvalue))


def test_a_key_that_differs_throughout_does_not_prevent_matching() -> None:
    case = case_of(
        np.arange(1.0, 15.0),
        variant=["base"] * 7 + ["dp4"] * 7,
        devices=[1] * 7 + [4] * 7,
        batch=[*range(7), *range(7)],
    )
    distributed = np.arange(14) >= 7
    assert contrast(case, distributed, ~distributed, "variant").matched == 7


def test_equal_errors_of_matched_configurations_are_no_difference() -> None:
    errors = np.tile(np.arange(1.0, 8.0), 2)
    case = case_of(errors, variant=["a"] * 7 + ["b"] * 7, batch=[*range(7), *range(7)])
    first = np.arange(14) < 7
    found = contrast(case, first, ~first, "variant")
    assert (found.p, found.material) == (1.0, False)


def test_a_few_matched_configurations_must_not_say_the_opposite() -> None:
    # Over all rows fusion errs more; on the one configuration that both have it errs less.
    errors = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.5, 0.5, 0.5, 0.5, 0.2])
    case = case_of(
        errors, variant=["base"] * 5 + ["fusion"] * 5, batch=[1, 2, 3, 4, 5, 6, 7, 8, 9, 5]
    )
    fused = np.arange(10) >= 5
    found = contrast(case, fused, ~fused, "variant")
    assert found.figures == pytest.approx((0.44, 0.26))
    assert found.matched_figures == pytest.approx((0.2, 0.9))
    assert not found.material


@pytest.mark.parametrize("q", [0.99, 0.9, 0.5, 0.05])
@pytest.mark.parametrize("n", [3, 20, 58])
def test_bounds_of_a_quantile_are_those_of_scipy(q: float, n: int) -> None:
    sample = np.random.default_rng(n).random(n)
    found = quantile_caveat(sample, q)
    if found is None:
        assert n >= np.log(0.05) / np.log(max(q, 1 - q))
        return
    test = quantile_test(sample, p=q)
    for key, side in (("low", "greater"), ("high", "less")):
        interval = quantile_test(sample, p=q, alternative=side).confidence_interval(0.95)
        expected = getattr(interval, key)
        assert found.evidence[key] == (None if np.isnan(expected) else pytest.approx(expected))
    assert test.statistic >= 0


@pytest.mark.parametrize(("q", "needed"), [(0.99, 299), (0.95, 59), (0.9, 29), (0.01, 299)])
def test_sizes_from_which_a_bound_exists(q: float, needed: int) -> None:
    # The sizes of Wilks's one-sided 95 % tolerance limits (59 and 299 are his).
    assert quantile_caveat(np.arange(needed), q) is None
    found = quantile_caveat(np.arange(needed - 1), q)
    assert found is not None
    assert found.evidence["n_needed"] == needed
    assert found.evidence["high" if q > 0.5 else "low"] is None


def test_the_rules_of_a_quantile_and_the_sentence() -> None:
    found = quantile_caveat([0.1, 0.2, 0.3, 0.4, 0.5], 0.9, unit="s")
    assert found is not None
    assert (found.evidence["rules_low"], found.evidence["rules_high"]) == pytest.approx((0.4, 0.5))
    assert found.message == (
        "P90 from 5 values: 0.4 to 0.5 s, depending on the definition of the quantile. With 95 % "
        "confidence, the quantile is at least 0.3 s; an upper bound needs 29 values."
    )
    nothing = quantile_caveat([1.0], 0.5)
    assert nothing is not None
    assert "No bound has 95 % confidence" in nothing.message
    low = quantile_caveat(np.arange(1.0, 21.0), 0.05)
    assert low is not None
    assert "confidence, the quantile is at most 4; a lower bound needs 59 values" in low.message


@pytest.mark.parametrize(
    ("values", "q", "level"),
    [([], 0.9, 0.95), ([np.nan], 0.9, 0.95), ([1.0], 1.0, 0.95), ([1.0], 0.9, 1.0)],
)
def test_a_quantile_of_nothing_is_refused(values: list[float], q: float, level: float) -> None:
    with pytest.raises(InputError):
        quantile_caveat(values, q, level=level)


def test_weights_of_huge_measurements_do_not_overflow() -> None:
    case = Case(Pairs({"predicted": [1e308] * 4, "measured": [1e308] * 4}), None, ())
    assert case.weights == pytest.approx([0.25] * 4)


def test_no_slope_is_fitted_where_nothing_differs() -> None:
    ones, y = np.ones(4), np.array([1.0, 2.0, 3.0, 9.0])
    assert _fit(ones, 3 * ones, y) == (0.0, 0.0)
    assert _fit(ones, np.arange(4.0), 5 + 2 * np.arange(4.0)) == pytest.approx((5.0, 2.0))
    # Least absolute values: the last, far off, does not count.
    a, b = _fit(np.ones(9), np.arange(9.0), np.where(np.arange(9) < 8, np.arange(9.0), 100.0))
    assert (a, b) == pytest.approx((0.0, 1.0), abs=1e-3)


def test_a_one_way_test_needs_groups_that_can_differ() -> None:
    def p(means: list[float], squares: list[float], sizes: list[int]) -> float:
        return _one_way_p(Moments(np.array(means), np.array(squares), np.array(sizes)))

    assert p([1.0], [2.0], [4]) == 1.0
    assert p([1.0, 2.0], [0.0, 0.0], [1, 1]) == 1.0
    assert p([1.0, 1.0], [0.0, 0.0], [3, 3]) == 1.0
    assert p([1.0, 2.0], [0.0, 0.0], [3, 3]) == 0.0
    groups = [1.0, 2.0, 4.0], [3.0, 5.0, 4.0, 6.0]
    moments = [(np.mean(g), np.sum((g - np.mean(g)) ** 2), len(g)) for g in map(np.array, groups)]
    means, squares, sizes = (list(one) for one in zip(*moments, strict=True))
    assert p(means, squares, sizes) == pytest.approx(float(f_oneway(*groups).pvalue))
