from __future__ import annotations

import math

import pytest

from errcomp import metrics

# APE 0.1, 0.5, 0.25; signed +, -, +.
P, M = [11.0, 50.0, 5.0], [10.0, 100.0, 4.0]


def test_values_by_hand() -> None:
    kw = {"predicted": P, "measured": M}
    assert metrics.mape(**kw) == pytest.approx(0.85 / 3, rel=1e-15)
    assert metrics.bias(**kw) == pytest.approx(-0.15 / 3, rel=1e-14)
    assert metrics.gmape(**kw) == pytest.approx(0.0125 ** (1 / 3), rel=1e-15)
    assert metrics.gm_ratio(**kw) == pytest.approx((1.1 * 0.5 * 1.25) ** (1 / 3), rel=1e-15)
    assert metrics.wape(**kw) == pytest.approx(52 / 114, rel=1e-15)
    assert metrics.smape(**kw) == pytest.approx((1 / 10.5 + 50 / 75 + 1 / 4.5) / 3, rel=1e-15)


def test_weighted_values_by_hand() -> None:
    kw = {"predicted": P, "measured": M, "weights": [2.0, 1.0, 1.0]}
    assert metrics.mape(**kw) == pytest.approx(0.95 / 4, rel=1e-15)
    assert metrics.wape(**kw) == pytest.approx(53 / 124, rel=1e-15)
    assert metrics.gmape(**kw) == pytest.approx(0.00125**0.25, rel=1e-15)


class TestExactPredictions:
    """The zero rule of the geometric mean."""

    P, M = [10.0, 60.0, 7.0], [10.0, 100.0, 7.0]

    def test_one_exact_prediction_makes_the_geometric_mean_zero(self) -> None:
        assert metrics.gmape(predicted=self.P, measured=self.M) == 0.0

    def test_they_can_be_counted(self) -> None:
        assert metrics.exact_predictions(predicted=self.P, measured=self.M) == 2
        assert metrics.exact_predictions(predicted=P, measured=M) == 0

    def test_weight_zero_takes_them_out(self) -> None:
        kw = {"predicted": self.P, "measured": self.M, "weights": [0, 1, 0]}
        assert metrics.exact_predictions(**kw) == 0
        assert metrics.gmape(**kw) == pytest.approx(0.4, rel=1e-15)

    def test_nearly_exact_is_not_exact(self) -> None:
        kw = {"predicted": [math.nextafter(10.0, 11.0)], "measured": [10.0]}
        assert metrics.exact_predictions(**kw) == 0
        assert metrics.gmape(**kw) == pytest.approx(2.0**-49 / 10, rel=1e-15)

    def test_the_other_averages_keep_exact_predictions(self) -> None:
        kw = {"predicted": self.P, "measured": self.M}
        assert metrics.mape(**kw) == pytest.approx(0.4 / 3, rel=1e-15)
        assert metrics.gm_ratio(**kw) == pytest.approx(0.6 ** (1 / 3), rel=1e-15)


def test_opposite_errors_cancel_in_the_bias_and_opposite_factors_in_the_ratio() -> None:
    assert metrics.bias(predicted=[12.0, 8.0], measured=[10.0, 10.0]) == 0.0
    assert metrics.bias(predicted=[20.0, 5.0], measured=[10.0, 10.0]) == 0.25
    assert metrics.gm_ratio(predicted=[20.0, 5.0], measured=[10.0, 10.0]) == 1.0


def test_smape_of_predictions_not_positive_is_its_maximum() -> None:
    assert metrics.smape(predicted=[0.0, -5.0], measured=[10.0, 1.0]) == 2.0


def test_mape_has_no_limit_above_and_one_below() -> None:
    assert metrics.mape(predicted=[1000.0], measured=[1.0]) == 999.0
    assert metrics.mape(predicted=[0.0], measured=[1000.0]) == 1.0
