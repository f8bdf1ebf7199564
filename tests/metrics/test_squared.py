from __future__ import annotations

import math

import pytest

from errcomp import metrics


def test_values_by_hand() -> None:
    kw = {"predicted": [13.0, 96.0], "measured": [10.0, 100.0]}
    assert metrics.rmse(**kw) == pytest.approx(math.sqrt(12.5), rel=1e-15)
    assert metrics.rmspe(**kw) == pytest.approx(math.sqrt((0.09 + 0.0016) / 2), rel=1e-15)
    logs = math.log(1.3) ** 2 + math.log(0.96) ** 2
    assert metrics.rmsle(**kw) == pytest.approx(math.sqrt(logs / 2), rel=1e-15)


def test_weighted_values_by_hand() -> None:
    kw = {"predicted": [13.0, 96.0], "measured": [10.0, 100.0], "weights": [3.0, 1.0]}
    assert metrics.rmse(**kw) == pytest.approx(math.sqrt((27 + 16) / 4), rel=1e-15)
    assert metrics.rmspe(**kw) == pytest.approx(math.sqrt((0.27 + 0.0016) / 4), rel=1e-15)


def test_perfect_predictions_have_no_error() -> None:
    for figure in (metrics.rmse, metrics.rmspe, metrics.rmsle):
        assert figure(predicted=[3.0, 4.0], measured=[3.0, 4.0]) == 0.0


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200, 1e300])
def test_squares_neither_overflow_nor_vanish(unit: float) -> None:
    value = metrics.rmse(predicted=[3 * unit, 5 * unit], measured=[4 * unit, 12 * unit])
    assert value == pytest.approx(5 * unit, rel=1e-15)


def test_rmsle_does_not_depend_on_the_unit() -> None:
    seconds = metrics.rmsle(predicted=[0.002, 0.004], measured=[0.001, 0.005])
    assert metrics.rmsle(predicted=[2.0, 4.0], measured=[1.0, 5.0]) == pytest.approx(
        seconds, rel=1e-14
    )
