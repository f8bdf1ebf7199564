"""Averages, tail, sign, size and asymmetry of the errors."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from errcomp.caveats._case import NOTHING, Case
from errcomp.caveats._statistics import factor_errors, out_of_sample_factor
from errcomp.caveats.shape import (
    aggregation_matters,
    agreeing,
    asymmetric_error,
    largest_over_mean,
    one_sided,
    small_quantities,
    tail,
)
from errcomp.claims.registry import user_claim
from errcomp.results import Caveat
from errcomp.tables import Pairs


def case_of(
    predicted: np.ndarray | list[float], measured: np.ndarray | list[float], claim: object = None
) -> Case:
    return Case(Pairs({"predicted": predicted, "measured": measured}), claim)


def caveat_of(found: object) -> Caveat:
    assert getattr(found, "caveat", None) is not None
    return found.caveat  # type: ignore[attr-defined, no-any-return]


def test_averages_that_disagree() -> None:
    errors = np.array([0.01] * 20 + [2.0] * 4)
    found = aggregation_matters(case_of(1 + errors, np.ones(24)))
    caveat = caveat_of(found)
    assert caveat.message == (
        "Mean 34.17 %, median 1.00 %, geometric mean 2.42 %, weighted mean 34.17 %: the choice "
        "of average alone changes the figure by a factor of 34.2."
    )
    assert caveat.evidence["geometric_mean"] == pytest.approx(0.01 * 200 ** (1 / 6))
    assert found is not None
    assert found.p == pytest.approx(1 / 2000)


def test_a_claim_that_only_another_average_gives() -> None:
    claim = SimpleNamespace(printed="2.4%", low=0.0235, high=0.0245, aggregation="mean")
    errors = np.array([0.01] * 20 + [2.0] * 4)
    found = aggregation_matters(case_of(1 + errors, np.ones(24), claim))
    caveat = caveat_of(found)
    assert caveat.message.startswith("The claim 2.4% matches only the geometric mean: mean 34.17 %")
    assert caveat.evidence["fits"] == ["geometric mean"]
    assert found is not None
    assert found.p is None


def test_an_average_that_is_not_stated_is_left_to_the_other_check() -> None:
    claim = SimpleNamespace(printed="2.4%", low=0.0235, high=0.0245, aggregation="not stated")
    assert aggregation_matters(case_of([1.1] * 5, [1.0] * 5, claim)) is None


def test_averages_that_agree_are_nothing() -> None:
    assert aggregation_matters(case_of([1.1, 1.2, 1.3], [1.0, 1.0, 1.0])) is NOTHING
    assert aggregation_matters(case_of([1.1, 1.2], [1.0, 1.0])) is None
    assert aggregation_matters(case_of([1.0] * 3, [1.0] * 3)) is None


def test_an_exact_prediction_alone_does_not_make_averages_disagree() -> None:
    errors = np.array([0.0] + [0.1, 0.12, 0.14, 0.16] * 4)
    case = case_of(1 + errors, np.ones(17))
    assert case.averages["geometric mean"] == 0
    assert aggregation_matters(case) is NOTHING


@pytest.mark.parametrize("heavy", [True, False])
def test_averages_of_many_pairs_need_no_simulation(heavy: bool) -> None:
    rng = np.random.default_rng(0)
    measured = rng.lognormal(0, 2, 2000)
    # Either the errors are spread over decades, or large quantities have small errors.
    errors = rng.lognormal(-3, 2, 2000) if heavy else 0.1 / measured.clip(0.5)
    found = aggregation_matters(case_of(measured * (1 + errors), measured))
    assert found is not None
    assert found.caveat is not None
    assert found.p is not None
    assert found.p < 0.001


def test_no_claimed_figure_fits_no_average() -> None:
    assert agreeing(case_of([1.1], [1.0])) == []
    assert agreeing(case_of([1.1], [1.0], SimpleNamespace(low=None, high=None))) == []
    for printed, fits in (("≤10%", True), ("<10%", False)):
        exact = case_of([11.0, 11.0], [10.0, 10.0], user_claim(printed))
        assert ("mean" in agreeing(exact)) == fits
    claim = SimpleNamespace(low=0.05, high=0.15)
    assert agreeing(case_of([1.1], [1.0], claim)) == [
        "mean",
        "median",
        "geometric mean",
        "weighted mean",
    ]


def test_a_tail_is_described_by_share_maximum_and_tolerance() -> None:
    errors = np.array([*np.linspace(0.01, 0.05, 57), 1.0, 2.0, 3.0])
    found = tail(case_of(1 + errors, np.ones(60)))
    caveat = caveat_of(found)
    assert caveat.message == (
        "The worst 6 of 60 errors make up 80 % of the sum. The largest, 300.0 %, is 23.3 times the "
        "mean. At least 95 % of independent cases err less (95 % confidence)."
    )
    # (1 - confidence) ** (1 / n): the tolerance limit of the largest of n.
    assert caveat.evidence["share_below_max"] ** 60 == pytest.approx(0.05)
    # Of Laplace errors, whose largest are further from the mean than normal ones (3.1).
    assert caveat.evidence["max_over_mean_usual"] == pytest.approx(4.5, abs=0.15)
    assert caveat.evidence["share_of_worst_usual"] == pytest.approx(0.32, abs=0.01)


def test_even_errors_have_no_tail() -> None:
    assert tail(case_of(1 + np.linspace(0.01, 0.1, 30), np.ones(30))) is NOTHING
    assert tail(case_of([1.1, 1.2], [1.0, 1.0])) is None
    assert tail(case_of([1.0] * 9, [1.0] * 9)) is None


def test_a_tail_of_many_moderate_errors_is_found_by_their_share() -> None:
    # One in ten is five times as large: none alone is further off than Student's t may be.
    rng = np.random.default_rng(0)
    errors = np.abs(rng.standard_normal(3000)) * np.where(np.arange(3000) % 10 == 0, 0.05, 0.01)
    found = tail(case_of(1 + errors, np.ones(3000)))
    caveat = caveat_of(found)
    assert caveat.evidence["max_over_mean"] < 1.5 * caveat.evidence["max_over_mean_usual"]
    assert caveat.evidence["share_of_worst"] == pytest.approx(0.4, abs=0.02)
    assert found is not None
    assert found.p is not None
    assert found.p < 0.001


@pytest.mark.parametrize("n", [9, 60, 900])
def test_one_error_alone_is_a_tail(n: int) -> None:
    errors = np.zeros(n)
    errors[0] = 1.0
    caveat = caveat_of(tail(case_of(1 + errors, np.ones(n))))
    assert caveat.evidence["share_of_worst"] == 1.0


def test_errors_of_one_sign_and_what_a_factor_would_remove() -> None:
    factors = np.linspace(1.15, 1.25, 21)
    found = one_sided(case_of(factors, np.ones(21)))
    caveat = caveat_of(found)
    assert caveat.message == (
        "21 of 21 predictions are too high; multiplying all 21 by 0.83 would reduce the MAPE from "
        "20.00 % to 2.38 % (estimated by leaving out one pair at a time)."
    )
    assert found is not None
    assert found.p == pytest.approx(2 / 2**21)


def test_the_gain_of_a_factor_is_not_flattered() -> None:
    # In the sample the best factor always helps; out of it, it does not for errors like these.
    measured = np.ones(7)
    predicted = np.array([1.0001] * 3 + [3.0] * 4)
    caveat = caveat_of(one_sided(case_of(predicted, measured)))
    assert caveat.evidence["mape_after"] > np.mean(np.abs(predicted / np.median(predicted) - 1))
    assert caveat.evidence["side"] == "high"


def test_a_factor_that_gains_little_is_said_to() -> None:
    caveat = caveat_of(one_sided(case_of([0.996, 0.995, 0.994] * 4, [1.0] * 12)))
    assert "12 of 12 predictions are too low; but a single factor gains little" in caveat.message
    assert caveat.evidence["mape_after"] < caveat.evidence["mape_before"]


def test_a_factor_that_does_not_help_is_said_so() -> None:
    caveat = caveat_of(one_sided(case_of([1.01] * 6 + [3.0] * 5, [1.0] * 11)))
    assert caveat.message == (
        "11 of 11 predictions are too high; but no single factor helps: the best would change "
        "the MAPE from 91.45 % to 116.6 % (estimated by leaving out one pair at a time)."
    )


def test_predictions_of_zero_cannot_be_corrected_by_a_factor() -> None:
    caveat = caveat_of(one_sided(case_of([0.0] * 10, np.arange(1.0, 11))))
    assert caveat.message == (
        "10 of 10 predictions are too low; most predictions are zero or negative, so no factor "
        "can correct them."
    )
    assert caveat.evidence["factor"] is None


def test_errors_of_both_signs_are_nothing() -> None:
    assert one_sided(case_of([1.1, 0.9] * 10, [1.0] * 20)) is NOTHING
    assert one_sided(case_of([1.0] * 10, [1.0] * 10)) is None


def test_small_quantities_that_make_the_mape() -> None:
    measured = np.geomspace(0.01, 100, 40)
    predicted = measured * (1 + 0.02 * np.tile([1, -1], 20)) + 0.01
    found = small_quantities(case_of(predicted, measured))
    caveat = caveat_of(found)
    assert caveat.message == (
        "The smallest 10 measurements make up 84 % of the MAPE, but only 0.08 % of the measured "
        "total. The MAPE is 12.85 %; if errors are weighted by size, it is 2.03 %."
    )
    assert caveat.evidence["rank_correlation"] < -0.5
    assert found is not None
    assert found.p == pytest.approx(1 / 2000)


def test_small_quantities_in_a_large_table() -> None:
    measured = np.geomspace(0.01, 100, 2000)
    found = small_quantities(case_of(measured * 1.02 + 0.01, measured))
    assert found is not None
    assert found.caveat is not None
    assert found.p is not None
    assert found.p < 1e-100


def test_errors_that_do_not_depend_on_size_are_nothing() -> None:
    measured = np.geomspace(0.01, 100, 40)
    assert small_quantities(case_of(measured * np.tile([1.1, 0.95], 20), measured)) is NOTHING


@pytest.mark.parametrize(
    ("predicted", "measured"),
    [
        ([1.1, 1.2, 1.3], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]),
        ([1.1, 1.2, 1.3, 1.4], [1.0, 1.0, 1.0, 1.0]),
        ([2.0, 4.0, 6.0, 8.0], [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_size_cannot_matter_without_sizes_or_errors_that_vary(
    predicted: list[float], measured: list[float]
) -> None:
    assert small_quantities(case_of(predicted, measured)) is None


def test_half_and_twice_are_equally_wrong_as_factors() -> None:
    np.testing.assert_allclose(
        factor_errors(np.array([2.0, 0.5, 1.0]), np.ones(3)), [1.0, 1.0, 0.0]
    )
    assert factor_errors(np.array([1e-300]), np.array([1e300]))[0] == np.inf


def test_under_prediction_is_cheaper_in_the_mape() -> None:
    caveat = caveat_of(asymmetric_error(case_of([0.5, 0.5, 0.5, 1.5], [1.0] * 4)))
    assert caveat.message == (
        "75 % of the predictions are too low, and their APEs cannot exceed 100 %. The MAPE is "
        "50.00 %; the mean error as a factor, max(p/m, m/p) - 1, is 87.50 %."
    )


def test_the_threshold_of_asymmetry_is_20_percent_too_low_throughout() -> None:
    assert asymmetric_error(case_of([0.81] * 4, [1.0] * 4)) is None
    assert asymmetric_error(case_of([0.79] * 4, [1.0] * 4)) is not None
    assert asymmetric_error(case_of([1.0] * 4, [1.0] * 4)) is None


def test_predictions_that_are_not_positive_are_counted() -> None:
    one = caveat_of(asymmetric_error(case_of([0.0, 1.0], [1.0, 1.0])))
    assert one.message.startswith("1 prediction of 2 is zero or negative")
    two = caveat_of(asymmetric_error(case_of([0.0, -1.0], [1.0, 1.0])))
    assert two.message.startswith("2 predictions of 2 are zero or negative")
    assert two.evidence == {"n_not_positive": 2}
    assert caveat_of(asymmetric_error(case_of([5e-324, 1.0], [1.0, 1.0]))).evidence == one.evidence


def test_errors_near_the_largest_float_do_not_overflow() -> None:
    for predicted, measured in (([1.7e308] * 2, [1.0] * 2), ([1e308, 2.0, 3.0], [1e-308, 1, 1])):
        factor = out_of_sample_factor(np.asarray(predicted), np.asarray(measured))
        assert factor == (None, None)
    found = caveat_of(asymmetric_error(case_of([1e-300, 1e-308, 1.0], [1.0, 1.0, 1.0])))
    assert np.isfinite(found.evidence["symmetric"])


def test_the_largest_error_of_the_heavier_law_counts() -> None:
    # The median of the largest of ten exponential errors; of one error, t is the heavier law.
    assert largest_over_mean(10) == pytest.approx(-math.log(1 - 0.5**0.1))
    assert largest_over_mean(1) > math.log(2)
