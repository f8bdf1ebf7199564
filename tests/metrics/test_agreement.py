from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp import metrics
from errcomp.errors import InputError

CORRELATIONS = [metrics.pearson, metrics.spearman, metrics.kendall]


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_constant_input_raises_with_a_remedy(correlation: Any) -> None:
    with pytest.raises(
        InputError, match=r"predicted has the same value, 5.0, in all 3 pairs\. Report an error"
    ):
        correlation(predicted=[5.0, 5.0, 5.0], measured=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"measured has the same value, 2.0, in all 3 pairs"):
        correlation(predicted=[1.0, 2.0, 3.0], measured=[2.0, 2.0, 2.0])


@pytest.mark.parametrize("correlation", [*CORRELATIONS, metrics.r2])
def test_one_pair_raises(correlation: Any) -> None:
    with pytest.raises(InputError, match="is not defined: .* in the only pair"):
        correlation(predicted=[5.0], measured=[1.0])


def test_r2_needs_measurements_that_differ_only() -> None:
    with pytest.raises(InputError, match="R² is not defined: measured"):
        metrics.r2(predicted=[1.0, 2.0], measured=[3.0, 3.0])
    assert metrics.r2(predicted=[2.0, 2.0], measured=[1.0, 3.0]) == 0.0


def test_weight_zero_may_leave_nothing_that_varies() -> None:
    with pytest.raises(InputError, match="measured has the same value, 1.0, in all 2 pairs"):
        metrics.pearson(predicted=[1, 2, 3], measured=[1, 1, 2], weights=[1, 1, 0])


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_two_pairs_correlate_perfectly(correlation: Any) -> None:
    assert correlation(predicted=[1.0, 7.0], measured=[2.0, 3.0]) == pytest.approx(1, rel=1e-15)
    assert correlation(predicted=[7.0, 1.0], measured=[2.0, 3.0]) == pytest.approx(-1, rel=1e-15)


def test_correlation_stays_within_its_bounds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        m = rng.uniform(1, 2, 7)
        value = metrics.pearson(predicted=0.1 * m + 0.7, measured=m)
        assert 1 - 1e-13 < value <= 1
        assert -1 <= metrics.pearson(predicted=-0.3 * m, measured=m) < -1 + 1e-13


def test_ties_in_ranks() -> None:
    kw = {"predicted": [1.0, 2.0, 2.0, 3.0], "measured": [1.0, 2.0, 3.0, 4.0]}
    # Ranks 1, 2.5, 2.5, 4; tau-b: 5 in order, none against, 1 tied in the predictions.
    assert metrics.spearman(**kw) == pytest.approx(4.5 / np.sqrt(4.5 * 5), rel=1e-14)
    assert metrics.kendall(**kw) == pytest.approx(5 / np.sqrt(5 * 6), rel=1e-14)


class TestTopKRegret:
    P, M = [3.0, 1.0, 2.0, 4.0], [10.0, 16.0, 12.0, 20.0]

    def regret(self, k: Any, **options: Any) -> float:
        return metrics.top_k_regret(predicted=self.P, measured=self.M, k=k, **options)

    def test_lowest_is_best(self) -> None:
        assert [self.regret(k) for k in (1, 2, 3, 4)] == pytest.approx([0.6, 0.2, 0.0, 0.0])

    def test_highest_is_best(self) -> None:
        assert self.regret(1, best="highest") == 0.0
        reversed_scores = [-p for p in self.P]
        regrets = [
            metrics.top_k_regret(predicted=reversed_scores, measured=self.M, k=k, best="highest")
            for k in (1, 2, 3, 4)
        ]
        assert regrets == pytest.approx([0.2, 0.2, 0.2, 0.0])

    @pytest.mark.parametrize("best", ["lowest", "highest"])
    def test_equal_predictions_are_resolved_against_the_predictor(self, best: Any) -> None:
        for measured in ([10.0, 20.0, 15.0], [20.0, 15.0, 10.0]):
            value = metrics.top_k_regret(predicted=[1, 1, 1], measured=measured, k=1, best=best)
            assert value == (1.0 if best == "lowest" else 0.5)

    @pytest.mark.parametrize("k", [0, 5, -1, 1.0, True, "1"])
    def test_bad_k(self, k: Any) -> None:
        with pytest.raises(InputError, match="k must be an integer from 1 to .*, 4, got"):
            self.regret(k)

    def test_numpy_integer_is_an_integer(self) -> None:
        assert self.regret(np.int64(2)) == self.regret(2)

    def test_bad_best(self) -> None:
        with pytest.raises(InputError, match="best must be .* got 'smallest'"):
            self.regret(1, best="smallest")
