from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp.propagation.montecarlo.simulated import (
    critical,
    intervals,
    layout,
    precision_of,
    quantiles,
)


@pytest.mark.parametrize("draws", [512, 513, 1000, 10_000, 16_384, 100_000, 999_999, 2**20])
def test_layout_is_balanced_and_hardly_more_than_asked(draws: int) -> None:
    replicates, each = layout(draws)
    assert 16 <= replicates <= 32
    assert each & (each - 1) == 0
    assert draws <= replicates * each < draws + each
    assert replicates * each <= 1.07 * draws


@pytest.mark.parametrize("n", [2, 5, 1000])
def test_quantiles_are_those_of_numpy(n: int) -> None:
    values = np.sort(np.random.default_rng(n).standard_normal(n))
    q = np.array([0.0, 1e-4, 0.05, 0.3, 0.5, 0.77, 0.95, 0.9999, 1.0])
    np.testing.assert_allclose(
        quantiles(values, q), np.quantile(values, q, method="hazen"), rtol=1e-12
    )


def test_quantiles_of_rows_and_of_one_value() -> None:
    values = np.array([[1.0, 2.0], [3.0, 5.0]])
    np.testing.assert_array_equal(quantiles(values, np.array([0.5])), [[1.5], [4.0]])
    np.testing.assert_array_equal(quantiles(np.array([7.0]), np.array([0.1, 0.9])), [7.0, 7.0])


def test_infinite_values_are_never_averaged() -> None:
    values = np.array([1.0, 2.0, np.inf, np.inf])
    got = quantiles(values, np.array([0.25, 0.45, 0.55, 0.75, 1.0]))
    np.testing.assert_array_equal(got, [1.5, 2.0, np.inf, np.inf, np.inf])


def test_critical_value_is_that_of_student() -> None:
    assert critical(16) == pytest.approx(stats.t(15).ppf(0.975))


def test_interval_of_independent_draws_is_about_the_binomial_one() -> None:
    values = np.random.default_rng(1).random((16, 4096))
    q = np.array([0.05, 0.5, 0.95])
    x, low, high = intervals(values, q)
    np.testing.assert_allclose(x, np.quantile(values, q), atol=1e-4)
    expected = critical(16) * np.sqrt(q * (1 - q) / values.size)
    # A standard deviation of 16 values: the square root of χ² with 15 degrees of freedom over 15.
    least, most = np.sqrt(stats.chi2(15).ppf([5e-4, 1 - 5e-4]) / 15)
    half = (high - low) / 2
    assert (least * expected < half).all()
    assert (half < most * expected).all()


def test_interval_is_never_narrower_than_a_draw() -> None:
    # Each replicate is the same perfect net: no scatter at all.
    values = np.tile((np.arange(64) + 0.5) / 64, (16, 1))
    _, low, high = intervals(values, np.array([0.5]))
    assert low[0] < 0.5 < high[0]


def test_interval_next_to_infinity() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((16, 64))
    values[values > 0.9] = np.inf
    x, low, high = intervals(values, np.array([0.5, 0.9, 0.99]))
    assert np.isfinite([x[0], low[0], high[0], low[1]]).all()
    assert high[1] == np.inf
    assert low[2] == x[2] == np.inf


def test_precision() -> None:
    values = 10 + np.random.default_rng(3).standard_normal((16, 1024))
    q = np.array([0.05, 0.5, 0.95])
    x, low, high = intervals(values, q)
    assert precision_of(values) == pytest.approx(float(((high - low) / 2 / x).max()))
    assert precision_of(-values) == pytest.approx(precision_of(values), rel=1e-9)


def test_precision_of_what_is_infinite_or_zero() -> None:
    rng = np.random.default_rng(3)
    certain = np.where(rng.random((16, 1024)) < 0.5, 2.0, np.inf)
    certain[:, :600] = 2.0
    assert precision_of(certain) == 0.0  # the 95 % quantile is infinite beyond doubt
    doubtful = np.where(rng.random((16, 1024)) < 0.95, 2.0, np.inf)
    assert precision_of(doubtful) == math.inf
    assert precision_of(np.zeros((16, 64))) == 0.0
    around_zero = rng.standard_normal((16, 1025))
    around_zero -= quantiles(np.sort(around_zero, axis=None), np.array([0.5]))
    assert precision_of(around_zero) > 1e6
