"""Figures of samples whose value is known on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp import metrics

SIGMA, MU, N = 0.4, 0.1, 200_000


@pytest.fixture(scope="module")
def log_normal() -> dict[str, np.ndarray]:
    """Predictions whose ratio to the measurement is log-normal, as quantiles: no sampling error."""
    levels = (np.arange(N) + 0.5) / N
    measured = np.random.default_rng(3).lognormal(1, 1, N)
    return {
        "predicted": measured * np.exp(MU + SIGMA * stats.norm.ppf(levels)),
        "measured": measured,
    }


def test_log_normal_error_has_the_expected_moments(log_normal: dict[str, np.ndarray]) -> None:
    mean_ratio = math.exp(MU + SIGMA**2 / 2)
    mean_square = math.exp(2 * MU + 2 * SIGMA**2) - 2 * mean_ratio + 1
    # E|R - 1| = E R - 1 + 2 E (1 - R)+, and E (1 - R)+ is a put option's value (Black's formula).
    put = stats.norm.cdf(-MU / SIGMA) - mean_ratio * stats.norm.cdf(-MU / SIGMA - SIGMA)
    expected = {
        "gm_ratio": math.exp(MU),
        "bias": mean_ratio - 1,
        "mape": mean_ratio - 1 + 2 * put,
        "rmspe": math.sqrt(mean_square),
        "rmsle": math.hypot(MU, SIGMA),
    }
    for name, value in expected.items():
        assert metrics.figure(name).function(**log_normal) == pytest.approx(value, rel=2e-4), name


def test_log_normal_error_has_the_expected_quantiles(log_normal: dict[str, np.ndarray]) -> None:
    def share_below(error: float) -> float:
        high = stats.norm.cdf((math.log(1 + error) - MU) / SIGMA)
        low = stats.norm.cdf((math.log(1 - error) - MU) / SIGMA) if error < 1 else 0.0
        return float(high - low)

    for name, error in [("within_5", 0.05), ("within_10", 0.1), ("within_20", 0.2)]:
        value = metrics.figure(name).function(**log_normal)
        assert value == pytest.approx(share_below(error), abs=2 / N), name
    for name, share in [("median_ape", 0.5), ("p90_ape", 0.9), ("p99_ape", 0.99)]:
        value = metrics.figure(name).function(**log_normal)
        assert share_below(value) == pytest.approx(share, abs=2 / N), name


def test_one_constant_factor() -> None:
    m = np.array([1.0, 4.0, 16.0, 64.0])
    for factor in (0.5, 1.5, 4.0):
        kw = {"predicted": factor * m, "measured": m}
        error = abs(factor - 1)
        for name in ("mape", "median_ape", "gmape", "wape", "rmspe", "max_ape", "p95_ape"):
            assert metrics.figure(name).function(**kw) == pytest.approx(error, rel=1e-14), name
        assert metrics.bias(**kw) == factor - 1
        assert metrics.gm_ratio(**kw) == pytest.approx(factor, rel=1e-14)
        assert metrics.rmsle(**kw) == pytest.approx(abs(math.log(factor)), rel=1e-14)
        assert metrics.smape(**kw) == pytest.approx(2 * error / (factor + 1), rel=1e-14)
        assert metrics.pearson(**kw) == pytest.approx(1, abs=1e-14)
        assert metrics.spearman(**kw) == pytest.approx(1, abs=1e-14)
        assert metrics.kendall(**kw) == pytest.approx(1, abs=1e-14)


def test_kendall_is_the_share_of_comparisons_decided_correctly() -> None:
    rng = np.random.default_rng(2)
    p, m = rng.uniform(1, 2, 40), rng.uniform(1, 2, 40)
    upper = np.triu_indices(40, 1)
    right = ((p[:, None] < p) == (m[:, None] < m))[upper].mean()
    assert (1 + metrics.kendall(predicted=p, measured=m)) / 2 == pytest.approx(right, rel=1e-12)


def test_spearman_without_ties_is_the_textbook_formula() -> None:
    # 1 - 6 sum d^2 / (n (n^2 - 1)), the rank differences d being 1, -1, 1, -1, 0.
    value = metrics.spearman(predicted=[2, 1, 5, 3, 9], measured=[1, 2, 3, 5, 9])
    assert value == pytest.approx(1 - 6 * 4 / (5 * 24), rel=1e-14)


def test_mean_of_measurements_has_r2_zero_and_reversal_is_negative() -> None:
    m = np.array([1.0, 2.0, 3.0, 6.0])
    assert metrics.r2(predicted=np.full(4, 3.0), measured=m) == pytest.approx(0, abs=1e-15)
    assert metrics.r2(predicted=m, measured=m) == 1.0
    assert metrics.r2(predicted=[3.0, 2.0, 1.0], measured=[1.0, 2.0, 3.0]) == -3.0
