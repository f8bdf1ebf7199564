from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp import metrics
from errcomp.errors import InputError


def of_errors(errors: list[float]) -> dict[str, Any]:
    """Pairs whose absolute percentage errors are these (exact for multiples of 1/8)."""
    return {"predicted": [8 + 8 * e for e in errors], "measured": [8.0] * len(errors)}


EIGHTHS = of_errors([0.5, 0.125, 0.75, 0.25])


class TestMedian:
    def test_odd_and_even(self) -> None:
        assert metrics.median_ape(**of_errors([0.5, 0.125, 0.25])) == 0.25
        assert metrics.median_ape(**EIGHTHS) == 0.375

    @pytest.mark.parametrize(
        ("weights", "expected"),
        [
            ([1, 1, 1, 1], 0.375),
            ([0.1, 0.1, 0.1, 0.1], 0.375),  # a running sum of 0.1 does not hit half exactly
            ([1, 5, 1, 1], 0.125),
            ([1, 1, 9, 1], 0.75),
            ([1, 2, 2, 1], 0.375),
            ([3, 1, 0, 0], 0.5),
        ],
    )
    def test_weighted(self, weights: list[float], expected: float) -> None:
        assert metrics.median_ape(**EIGHTHS, weights=weights) == expected

    def test_many_equal_weights_of_a_tenth(self) -> None:
        errors = (np.arange(1000) / 8).tolist()
        weighted = metrics.median_ape(**of_errors(errors), weights=[0.1] * 1000)
        assert weighted == metrics.median_ape(**of_errors(errors)) == 499.5 / 8

    def test_middle_of_two_errors_near_the_largest_float(self) -> None:
        pairs = {"predicted": [1.6e308, 1.4e308], "measured": [1.0, 1.0]}
        assert metrics.median_ape(**pairs) == pytest.approx(1.5e308, rel=1e-15)


class TestQuantile:
    def test_rules_differ(self) -> None:
        def at(q: float, rule: Any) -> float:
            return metrics.ape_quantile(**EIGHTHS, q=q, rule=rule)

        assert at(0.5, "linear") == 0.375
        assert at(0.5, "inverted_cdf") == 0.25
        assert at(0.5, "higher") == 0.5
        assert at(0.9, "linear") == pytest.approx(0.675, rel=1e-15)
        assert at(0.9, "inverted_cdf") == 0.75

    def test_ends(self) -> None:
        assert metrics.ape_quantile(**EIGHTHS, q=0) == 0.125
        assert metrics.ape_quantile(**EIGHTHS, q=1) == metrics.max_ape(**EIGHTHS) == 0.75

    @pytest.mark.parametrize(
        ("q", "expected"), [(0.0, 0.125), (0.25, 0.25), (0.75, 0.25), (0.76, 0.5), (1.0, 0.75)]
    )
    def test_weighted_inverted_cdf(self, q: float, expected: float) -> None:
        # Ordered errors 0.125, 0.25, 0.5, 0.75 carry 1, 5, 1, 1 of a total of 8.
        weights = [1, 1, 1, 5]
        value = metrics.ape_quantile(**EIGHTHS, q=q, rule="inverted_cdf", weights=weights)
        assert value == expected

    @pytest.mark.parametrize("q", [95, -0.1, 1.1, float("nan"), True, "0.9", None])
    def test_bad_q(self, q: Any) -> None:
        with pytest.raises(InputError, match="q must be a fraction from 0 to 1, got .*0.95"):
            metrics.ape_quantile(**EIGHTHS, q=q)

    def test_unknown_rule_lists_the_rules(self) -> None:
        unknown: Any = "excel"
        with pytest.raises(InputError, match="no quantile rule 'excel'.*inverted_cdf.*linear"):
            metrics.ape_quantile(**EIGHTHS, q=0.5, rule=unknown)

    def test_weights_need_the_rule_that_has_them(self) -> None:
        with pytest.raises(InputError, match="rule=.inverted_cdf., or leave the weights out"):
            metrics.ape_quantile(**EIGHTHS, q=0.5, weights=[1, 1, 1, 1])


class TestShare:
    def test_a_pair_on_the_threshold_is_within(self) -> None:
        assert metrics.share_within(**EIGHTHS, threshold=0.25) == 0.5
        assert metrics.share_within(**EIGHTHS, threshold=0.2499999) == 0.25

    @pytest.mark.parametrize(
        ("predicted", "measured", "threshold"),
        [(1.05, 1.0, 0.05), (0.95, 1.0, 0.05), (1.1, 1.0, 0.1), (3.3, 3.0, 0.1), (0.8, 1.0, 0.2)],
    )
    def test_decimal_numbers_on_the_threshold_are_within(
        self, predicted: float, measured: float, threshold: float
    ) -> None:
        pair = {"predicted": [predicted], "measured": [measured]}
        assert metrics.share_within(**pair, threshold=threshold) == 1.0
        assert metrics.share_within(**pair, threshold=threshold * (1 - 1e-13)) == 0.0

    def test_weighted(self) -> None:
        assert metrics.share_within(**EIGHTHS, threshold=0.3, weights=[1, 2, 3, 4]) == 0.6

    def test_threshold_zero_counts_exact_predictions(self) -> None:
        pairs = {"predicted": [8.0, 9.0], "measured": [8.0, 8.0]}
        assert metrics.share_within(**pairs, threshold=0) == 0.5

    @pytest.mark.parametrize("threshold", [-0.1, float("nan"), float("inf"), True, "0.1"])
    def test_bad_threshold(self, threshold: Any) -> None:
        with pytest.raises(InputError, match="threshold must be a fraction, 0 or more, got"):
            metrics.share_within(**EIGHTHS, threshold=threshold)
