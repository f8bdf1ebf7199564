"""The figures against scikit-learn, SciPy and statsmodels, where they have them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp import metrics

RNG = np.random.default_rng(5)
M = RNG.lognormal(2.0, 1.5, 211)
P = M * RNG.lognormal(0.1, 0.3, 211)
W = RNG.uniform(0.1, 5.0, 211)
APE = np.abs(P - M) / M


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-14)


def test_geometric_means_agree_with_scipy() -> None:
    assert metrics.gmape(predicted=P, measured=M) == close(stats.gmean(APE))
    assert metrics.gmape(predicted=P, measured=M, weights=W) == close(stats.gmean(APE, weights=W))
    assert metrics.gm_ratio(predicted=P, measured=M) == close(stats.gmean(P / M))
    assert metrics.gm_ratio(predicted=P, measured=M, weights=W) == close(
        stats.gmean(P / M, weights=W)
    )


def test_smape_term_is_the_error_over_the_arithmetic_mean_and_wape_a_harmonic_relation() -> None:
    # With m as weights the MAPE has the WAPE's denominator; the weighted harmonic mean of p/m with
    # weights p is sum(p)/sum(m), which leaves 1 + WAPE when every prediction is too high.
    high = M * (1 + RNG.uniform(0.01, 1, len(M)))
    ratio_of_totals = stats.hmean(high / M, weights=high)
    assert metrics.wape(predicted=high, measured=M) == close(ratio_of_totals - 1)
    assert metrics.mape(predicted=P, measured=M, weights=M) == close(
        metrics.wape(predicted=P, measured=M)
    )


def test_correlations_agree_with_scipy() -> None:
    ties_p, ties_m = np.round(P), np.round(M) + 1
    for p, m in [(P, M), (ties_p, ties_m), (-P, M)]:
        assert metrics.pearson(predicted=p, measured=m) == close(stats.pearsonr(p, m).statistic)
        assert metrics.spearman(predicted=p, measured=m) == close(stats.spearmanr(p, m).statistic)
        assert metrics.kendall(predicted=p, measured=m) == close(stats.kendalltau(p, m).statistic)


def test_weighted_pearson_agrees_with_numpy_cov() -> None:
    covariance = np.cov(P, M, aweights=W)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert metrics.pearson(predicted=P, measured=M, weights=W) == close(expected)


def test_weighted_kinds_agree_with_numpy_average() -> None:
    def rms(values: np.ndarray) -> float:
        return float(np.sqrt(np.average(values**2, weights=W)))

    assert metrics.bias(predicted=P, measured=M, weights=W) == close(
        np.average((P - M) / M, weights=W)
    )
    assert metrics.smape(predicted=P, measured=M, weights=W) == close(
        np.average(np.abs(P - M) / ((P + M) / 2), weights=W)
    )
    assert metrics.rmspe(predicted=P, measured=M, weights=W) == close(rms((P - M) / M))
    assert metrics.rmsle(predicted=P, measured=M, weights=W) == close(rms(np.log(P / M)))
    assert metrics.share_within(predicted=P, measured=M, threshold=0.1, weights=W) == close(
        np.average(APE <= 0.1, weights=W)
    )


@pytest.mark.parametrize("rule", ["linear", "inverted_cdf", "hazen", "nearest", "median_unbiased"])
@pytest.mark.parametrize("q", [0.0, 0.05, 0.5, 0.9, 0.99, 1.0])
def test_quantiles_agree_with_numpy(q: float, rule: str) -> None:
    value = metrics.ape_quantile(predicted=P, measured=M, q=q, rule=rule)
    assert value == close(np.quantile(APE, q, method=rule))


@pytest.mark.extras
def test_errors_agree_with_scikit_learn() -> None:
    sk = pytest.importorskip("sklearn.metrics")
    for w in (None, W):
        kw = {"predicted": P, "measured": M, "weights": w}
        assert metrics.mape(**kw) == close(sk.mean_absolute_percentage_error(M, P, sample_weight=w))
        assert metrics.mae(**kw) == close(sk.mean_absolute_error(M, P, sample_weight=w))
        assert metrics.rmse(**kw) == close(sk.root_mean_squared_error(M, P, sample_weight=w))
        assert metrics.r2(**kw) == close(sk.r2_score(M, P, sample_weight=w))
        assert metrics.wape(**kw) == close(
            sk.mean_absolute_error(M, P, sample_weight=w) / np.average(M, weights=w)
        )
    assert metrics.max_ape(predicted=P, measured=M) == close(sk.max_error(np.ones_like(M), P / M))
    assert metrics.median_ape(predicted=P, measured=M) == close(
        sk.median_absolute_error(np.ones_like(M), P / M)
    )
    assert metrics.absolute_error(predicted=P, measured=M).mean() == close(
        sk.mean_absolute_error(M, P)
    )


@pytest.mark.extras
def test_rmsle_is_scikit_learns_of_values_less_one() -> None:
    # scikit-learn takes ln((1 + p)/(1 + m)): with 1 subtracted beforehand the two must agree, and
    # without it they must not.
    sk = pytest.importorskip("sklearn.metrics")
    p, m = P + 1, M + 1
    ours = metrics.rmsle(predicted=p, measured=m)
    assert ours == close(sk.root_mean_squared_log_error(m - 1, p - 1))
    assert ours != pytest.approx(sk.root_mean_squared_log_error(m, p), rel=1e-3)


@pytest.mark.extras
def test_squared_errors_agree_with_statsmodels() -> None:
    peer = pytest.importorskip("statsmodels.tools.eval_measures")
    assert metrics.rmse(predicted=P, measured=M) == close(peer.rmse(P, M))
    # statsmodels has sqrt(100 mean(e^2)): ten times the root mean square of the fractions.
    assert 10 * metrics.rmspe(predicted=P, measured=M) == close(peer.rmspe(M, P))
    assert metrics.absolute_error(predicted=P, measured=M).max() == close(peer.maxabs(P, M))


@pytest.mark.extras
def test_weighted_median_agrees_with_statsmodels() -> None:
    peer = pytest.importorskip("statsmodels.stats.weightstats")
    for w in (W, RNG.integers(1, 6, len(M)).astype(float)):
        expected = peer.DescrStatsW(APE, weights=w).quantile(0.5, return_pandas=False)[0]
        assert metrics.median_ape(predicted=P, measured=M, weights=w) == close(expected)
