"""Intervals against SciPy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.metrics import figure
from errcomp.metrics.intervals import estimate
from errcomp.metrics.intervals._smooth import SMOOTH, smooth
from errcomp.metrics.intervals.dependence import dependence
from errcomp.metrics.intervals.direct import clopper_pearson, order_statistics, wilson
from errcomp.metrics.pointwise import checked

SHARES = [(0, 8), (1, 8), (8, 8), (3, 20), (47, 50), (150, 386)]


def pairs(n, sigma=0.5, seed=11):
    rng = np.random.default_rng(seed)
    measured = np.exp(0.5 * rng.normal(size=n))
    return {"predicted": measured * np.exp(sigma * rng.normal(size=n)), "measured": measured}


class TestSciPyBootstrap:
    """Other random numbers, so equal up to the noise of two bootstraps."""

    resamples = 30_000

    @pytest.mark.parametrize("method", ["percentile", "BCa"])
    @pytest.mark.parametrize("name", ["mape", "wape", "total_error", "rmspe", "gmape", "bias"])
    def test_percentile_and_bca(self, name, method):
        data = pairs(40)
        m, p = data["measured"], data["predicted"]
        ape = np.abs(p - m) / m
        statistic = {
            "mape": lambda a, p, m: a.mean(axis=-1),
            "wape": lambda a, p, m: np.abs(p - m).sum(axis=-1) / m.sum(axis=-1),
            "total_error": lambda a, p, m: p.sum(axis=-1) / m.sum(axis=-1) - 1,
            "rmspe": lambda a, p, m: np.sqrt((a**2).mean(axis=-1)),
            "gmape": lambda a, p, m: np.exp(np.log(a).mean(axis=-1)),
            "bias": lambda a, p, m: (p / m - 1).mean(axis=-1),
        }[name]
        theirs = stats.bootstrap(
            (ape, p, m),
            lambda a, p, m, axis=-1: statistic(a, p, m),
            paired=True,
            vectorized=True,
            n_resamples=self.resamples,
            method=method,
            batch=2000,
            rng=np.random.default_rng(1),
        ).confidence_interval
        ours = estimate(name, **data, method=method.lower(), resamples=self.resamples)
        width = theirs.high - theirs.low
        # A quantile at 2.5 % of B draws is off by about 2.7 sd / sqrt(B); two of them, 4 times.
        noise = 4 * np.sqrt(2) * 2.7 / np.sqrt(self.resamples) / 3.9 * width
        assert ours.low == pytest.approx(theirs.low, abs=noise)
        assert ours.high == pytest.approx(theirs.high, abs=noise)
        assert ours.value == pytest.approx(float(statistic(ape, p, m)))


class TestSciPyShares:
    @pytest.mark.parametrize(("k", "n"), SHARES)
    @pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
    def test_binomial_test_intervals(self, k, n, level):
        test = stats.binomtest(k, n)
        exact = test.proportion_ci(level, method="exact")
        score = test.proportion_ci(level, method="wilson")
        assert clopper_pearson(k, n, level) == pytest.approx((exact.low, exact.high), abs=1e-12)
        assert wilson(k, n, level) == pytest.approx((score.low, score.high), abs=1e-12)

    def test_of_a_figure(self):
        data = pairs(60, 0.2)
        inside = int((np.abs(data["predicted"] / data["measured"] - 1) <= 0.1).sum())
        e = estimate("within_10", **data)
        score = stats.binomtest(inside, 60).proportion_ci(0.95, method="wilson")
        assert (e.low, e.high) == pytest.approx((score.low, score.high))


class TestSciPyQuantiles:
    @pytest.mark.parametrize("name", ["median_ape", "p90_ape", "p95_ape", "p99_ape"])
    @pytest.mark.parametrize("n", [60, 400])
    def test_quantile_test(self, name, n):
        """SciPy's one-sided bounds at (1 - level) / 2 are our two-sided ones."""
        data = pairs(n)
        q = {"median_ape": 0.5}.get(name) or int(name[1:3]) / 100
        ape = np.abs(data["predicted"] - data["measured"]) / data["measured"]
        low = stats.quantile_test(ape, q=0, p=q, alternative="greater").confidence_interval(0.975)
        high = stats.quantile_test(ape, q=0, p=q, alternative="less").confidence_interval(0.975)
        e = estimate(name, **data)
        if np.isfinite(high.high):
            assert (e.low, e.high) == pytest.approx((low.low, high.high), rel=1e-12)
        else:
            assert e.low is None
        assert order_statistics(ape, q, 0.95) == (None if e.low is None else (e.low, e.high))


@pytest.mark.extras
class TestStatsmodels:
    @pytest.mark.parametrize(("k", "n"), SHARES)
    def test_shares(self, k, n):
        proportion = pytest.importorskip("statsmodels.stats.proportion")
        for ours, name in ((wilson, "wilson"), (clopper_pearson, "beta")):
            theirs = proportion.proportion_confint(k, n, alpha=0.05, method=name)
            assert ours(k, n, 0.95) == pytest.approx(theirs, abs=1e-12)

    @pytest.mark.parametrize("name", ["mape", "wape"])
    def test_cluster_robust_error_is_that_of_a_regression(self, name):
        """MAPE is the intercept of a regression on a constant, WAPE a slope through the origin."""
        models = pytest.importorskip("statsmodels.regression.linear_model")
        data, label = pairs(80), np.repeat(np.arange(10), 8)
        m = data["measured"]
        off = np.abs(data["predicted"] - m)
        y, x, w = (off / m, np.ones(80), 1.0) if name == "mape" else (off / m, np.ones(80), m)
        fit = models.WLS(y, x, weights=w * np.ones(80)).fit(
            cov_type="cluster", cov_kwds={"groups": label, "use_correction": False}
        )
        drawn = dependence({"model": label})
        checked_data = checked(**data, weights=None, zeros="raise")
        found = smooth(SMOOTH[name], fit.params[0], checked_data, drawn).spreads[1]
        assert figure(name).function(**data) == pytest.approx(fit.params[0])
        # CR2 divides each cluster's score by 1 - h; theirs by none. Equal sizes: the same factor.
        size = np.bincount(label, weights=m if name == "wape" else np.ones(80))
        h = size / size.sum()
        r = np.bincount(label, off - fit.params[0] * m if name == "wape" else off / m - off.mean())
        if name == "mape":
            assert found.error == pytest.approx(fit.bse[0] * np.sqrt(10 / 9) / fit.params[0])
            return
        plain = np.sqrt((r**2).sum()) / size.sum()
        assert plain == pytest.approx(fit.bse[0])
        corrected = np.sqrt((r**2 / (1 - h)).sum()) / size.sum()
        assert found.error == pytest.approx(corrected / fit.params[0])


def test_figure_with_interval_is_the_figure_without():
    data = pairs(20)
    assert estimate("smape", **data).value == figure("smape").function(**data)
