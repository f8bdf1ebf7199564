"""The public function: what it returns, when it refuses, and what it says."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.metrics import FIGURES, figure
from errcomp.metrics.intervals import METHODS, estimate
from errcomp.metrics.intervals._features import SMOOTH

WITHOUT = ("max_ape", "r2", "pearson", "spearman", "kendall", "top_1_regret")


def pairs(n, sigma=0.3, seed=1):
    rng = np.random.default_rng(seed)
    measured = np.exp(rng.normal(size=n))
    return {"predicted": measured * np.exp(sigma * rng.normal(size=n)), "measured": measured}


class TestResult:
    @pytest.mark.parametrize("name", list(FIGURES))
    @pytest.mark.parametrize("n", [3, 5, 12, 80])
    def test_value_is_the_figure_and_lies_inside(self, name, n):
        data = pairs(n)
        e = estimate(name, **data, resamples=199)
        assert e.value == figure(name).function(**data)
        assert (e.figure, e.n, e.definition) == (name, n, figure(name).definition)
        assert (e.low is None) == (e.high is None) == (e.level is None)
        if e.low is not None:
            assert e.low <= e.value <= e.high
            assert e.level == 0.95
        else:
            assert e.method.startswith(("no interval", "no tested interval"))

    @pytest.mark.parametrize("method", ["log-t", "bootstrap-t", "percentile", "bca"])
    @pytest.mark.parametrize("name", list(SMOOTH))
    def test_every_method_of_means(self, name, method):
        e = estimate(name, **pairs(30, 0.5), method=method, resamples=499)
        assert e.low < e.value < e.high
        assert e.method.startswith(method)
        assert e.seed == (None if method == "log-t" else 0)

    @pytest.mark.parametrize("name", [n for n in SMOOTH if n not in ("bias", "total_error")])
    def test_positive_figures_have_positive_bounds(self, name):
        for seed in range(5):
            e = estimate(name, **pairs(4, 1.0, seed), method="log-t")
            assert 0 < e.low < e.high

    @pytest.mark.parametrize("name", ["bias", "total_error"])
    def test_signed_errors_are_above_minus_one(self, name):
        e = estimate(name, predicted=[0.1, 0.2, 2.5, 0.1], measured=[1.0, 1, 1, 1])
        assert -1 < e.low < e.value < e.high

    def test_smape_is_at_most_two(self):
        e = estimate("smape", predicted=[0.1, 9.0, 250.0], measured=[10.0, 10.0, 10.0])
        assert e.high == 2.0

    def test_same_seed_same_bytes_and_another_seed_another_interval(self):
        data = pairs(20)
        first, second = (json.dumps(estimate("mape", **data, seed=3).to_dict()) for _ in range(2))
        assert first == second
        other = [estimate("mape", **data, method="bootstrap-t", seed=s).high for s in (3, 4)]
        assert other[0] != other[1]

    def test_level_widens(self):
        data = pairs(20)
        widths = [
            (e := estimate("mape", **data, level=level)).high - e.low for level in (0.5, 0.9, 0.99)
        ]
        assert widths == sorted(widths)

    def test_default_below_ten_pairs_uses_no_bootstrap(self):
        assert estimate("mape", **pairs(9)).method == "log-t"
        e = estimate("mape", **pairs(10))
        assert e.method == "bootstrap-t, at least log-t, 9999 resamples"
        assert e.seed == 0

    @pytest.mark.parametrize("clusters", [False, True])
    def test_default_from_5000_on_uses_no_bootstrap(self, clusters):
        for n, bootstrap in ((4999, True), (5000, False)):
            labels = np.arange(n) if clusters else None
            e = estimate("mape", **pairs(n), clusters=labels, resamples=99)
            assert ("bootstrap" in e.method, e.seed is None) == (bootstrap, not bootstrap)
        assert (
            "bootstrap" in estimate("mape", **pairs(n), method="bootstrap-t", resamples=99).method
        )

    def test_default_of_200000_pairs_takes_no_time(self):
        data, start = pairs(200_000), time.perf_counter()
        for name in ("mape", "wape", "gmape", "median_ape", "within_10"):
            estimate(name, **data)
        assert time.perf_counter() - start < 3  # 0.1 s here; resampling took 30 s

    def test_bca_of_a_prediction_next_to_nothing(self):
        data = {"predicted": [1.1e300] * 4 + [5e-324], "measured": [1e300] * 5}
        e = estimate("gm_ratio", **data, method="bca", resamples=99)
        assert e.high == pytest.approx(1.1)

    @pytest.mark.parametrize("factor", [1e-280, 1e-3, 1e290])
    def test_unit_of_the_data_does_not_matter(self, factor):
        data = pairs(15)
        scaled = {k: v * factor for k, v in data.items()}
        for name in ("mape", "wape", "gmape", "rmse"):
            method = {"method": "bootstrap-t", "resamples": 199}
            plain, other = estimate(name, **data, **method), estimate(name, **scaled, **method)
            unit = factor if name == "rmse" else 1.0
            assert (other.low / unit, other.high / unit) == pytest.approx((plain.low, plain.high))


class TestNoInterval:
    @pytest.mark.parametrize("name", WITHOUT)
    @pytest.mark.parametrize("method", ["default", "bca", "bootstrap-t"])
    def test_some_figures_never_have_one(self, name, method):
        e = estimate(name, **pairs(30), method=method)
        assert (e.low, e.high, e.level, e.seed, e.caveats) == (None, None, None, None, ())

    def test_a_maximum_gets_a_tolerance_statement(self):
        method = estimate("max_ape", **pairs(16)).method
        assert method == (
            "no interval for a maximum; with 95 % confidence at least 82.9 % of configurations "
            "like these stay below it"
        )
        clustered = estimate("max_ape", **pairs(16), clusters=np.arange(16) // 4, level=0.9).method
        assert "90 % confidence at least 56.2 % of clusters" in clustered

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_pairs(self, n):
        e = estimate("mape", **pairs(n))
        assert e.method == f"no interval from {n} pair{'s' * (n > 1)}: at least 3 are needed"

    def test_quantile_says_how_many_it_needs(self):
        e = estimate("p99_ape", **pairs(100))
        assert e.method == "no interval: 95 % confidence needs 368 pairs, there are 100"
        assert estimate("p99_ape", **pairs(368)).low is not None

    def test_one_exact_prediction_ends_a_geometric_mean(self):
        e = estimate("gmape", predicted=[10.0, 11, 12, 13], measured=[10.0, 10, 10, 10])
        assert (e.value, e.low) == (0.0, None)
        assert "1 prediction is exact" in e.method

    def test_all_exact(self):
        e = estimate("mape", predicted=[1.0, 2, 3, 4], measured=[1.0, 2, 3, 4])
        assert (e.value, e.method) == (0.0, "no interval: every prediction is exact")

    def test_all_equal(self):
        measured = np.arange(1.0, 13.0)
        e = estimate("mape", predicted=1.1 * measured, measured=measured)
        assert e.method == "no interval: all errors are equal"
        # Unequal pairs in clusters whose means agree:
        measured = np.tile([1.0, 1.0], 6)
        e = estimate(
            "mape",
            predicted=np.tile([1.1, 1.3], 6),
            measured=measured,
            clusters=np.repeat(np.arange(6), 2),
        )
        assert e.method == "no interval: all clusters have the same error"

    def test_no_positive_ratio(self):
        e = estimate("bias", predicted=[-1.0, -2, -3, 0.5], measured=[1.0, 2, 3, 4])
        assert "not positive" in e.method

    def test_hardly_any_pair_differs(self):
        predicted = np.full(12, 10.0)
        predicted[3] = 14.0
        e = estimate("mape", predicted=predicted, measured=np.full(12, 10.0))
        assert e.low is None
        assert "no finite bound" in e.method

    @pytest.mark.parametrize(
        ("name", "method", "use"),
        [
            ("mape", "wilson", "bootstrap-t"),
            ("within_10", "bca", "wilson"),
            ("median_ape", "bca", "order-statistics"),
        ],
    )
    def test_a_method_that_does_not_apply(self, name, method, use):
        e = estimate(name, **pairs(40), method=method)
        assert e.low is None
        assert f"{method} is not for" in e.method
        assert use in e.method

    @pytest.mark.parametrize("name", ["rmse", "rmspe"])
    def test_squares_are_not_offered_but_given_on_request(self, name):
        assert "none that was tested covers" in estimate(name, **pairs(20)).method
        e = estimate(name, **pairs(20), method="bootstrap-t")
        assert e.low < e.value < e.high
        assert [c.code for c in e.caveats] == ["few-configurations"]


class TestClusters:
    def test_clusters_of_one_pair_are_pairs(self):
        data = pairs(24)
        one = estimate("mape", **data, clusters=[f"c{i:02}" for i in range(24)])
        plain = estimate("mape", **data)
        assert (one.low, one.high) == pytest.approx((plain.low, plain.high), rel=1e-12)
        assert one.method.endswith("24 clusters")

    @pytest.mark.parametrize("name", [*SMOOTH, "median_ape", "within_10"])
    def test_correlated_pairs_widen(self, name):
        """Four copies of each pair know no more than the pairs do."""
        data = {k: np.repeat(v, 4) for k, v in pairs(40).items()}
        label = np.repeat(np.arange(40), 4)
        method = "bootstrap-t" if name in ("rmse", "rmspe") else "default"
        clustered = estimate(name, **data, clusters=label, method=method)
        naive = estimate(name, **data, method=method)
        assert clustered.high - clustered.low > 1.5 * (naive.high - naive.low)
        assert clustered.n == 160

    def test_nested_clusters(self):
        data = pairs(60)
        outer, inner = np.repeat(np.arange(6), 10), np.tile(["a", "b", "c", "d", "e"], 12)
        nested = estimate("mape", **data, clusters=[outer, inner])
        assert nested.low < nested.value < nested.high
        assert nested.method.endswith("6 clusters")
        assert nested.seed == 0
        one = estimate("mape", **data, clusters=[outer])
        assert (one.low, one.high) != (nested.low, nested.high)
        same = estimate("mape", **data, clusters=outer)
        assert (one.low, one.high) == (same.low, same.high)

    @pytest.mark.parametrize("name", ["mape", "median_ape", "within_20"])
    def test_too_few_clusters(self, name):
        e = estimate(name, **pairs(40), clusters=np.arange(40) // 10)
        assert e.method == "no interval from 4 clusters: at least 5 are needed"
        e = estimate(name, **pairs(40), clusters=["same"] * 40)
        assert e.method == "no interval from 1 cluster: at least 5 are needed"

    def test_quantiles_that_were_not_tested_in_clusters(self):
        e = estimate("p99_ape", **pairs(400), clusters=np.arange(400) // 4)
        assert e.low is None
        assert "none that was tested" in e.method

    def test_quantile_beyond_the_clusters(self):
        data = pairs(40)
        e = estimate("p90_ape", **data, clusters=np.arange(40))
        assert e.low is None or e.low <= e.value <= e.high

    def test_one_cluster_that_outweighs_all_others_tells_nothing(self):
        data = pairs(3004)
        label = np.concatenate([np.zeros(3000), [1, 2, 3, 4]])
        share = estimate("within_20", **data, clusters=label)
        assert (share.low, share.high) == pytest.approx((0, 1), abs=1e-3)
        mean = estimate("mape", **data, clusters=label, method="log-t")
        assert mean.low is None or mean.high > 100 * mean.value

    def test_labels_of_any_kind(self):
        data = pairs(30)
        label = np.arange(30) // 3
        names = [f"model-{i}" for i in label]
        found = [
            estimate("mape", **data, clusters=c).high
            for c in (label, names, tuple(names), np.asarray(names), label.astype(float))
        ]
        assert len(set(found)) == 1


class TestBadInput:
    def test_unknown_figure_and_method(self):
        with pytest.raises(InputError, match="no figure 'mapee'. Did you mean 'mape'"):
            estimate("mapee", **pairs(5))
        with pytest.raises(
            InputError,
            match="no interval method 'bootstrap'. Did you mean 'bootstrap-t'. Methods: d",
        ):
            estimate("mape", **pairs(5), method="bootstrap")
        assert METHODS[0] == "default"

    @pytest.mark.parametrize("level", [0, 1, 95])
    def test_level(self, level):
        with pytest.raises(InputError, match="level must lie between 0 and 1"):
            estimate("mape", **pairs(5), level=level)

    def test_resamples_must_reach_the_level(self):
        with pytest.raises(
            InputError, match="resamples must be at least 39 for level=0.95, got 38"
        ):
            estimate("mape", **pairs(12), resamples=38)
        assert estimate("mape", **pairs(12), resamples=39).low is not None
        with pytest.raises(InputError, match="at least 1999"):
            estimate("mape", **pairs(12), resamples=999, level=0.999)

    def test_seed(self):
        with pytest.raises(InputError, match="seed must not be negative, got -1"):
            estimate("mape", **pairs(12), seed=-1)

    def test_cluster_labels(self):
        with pytest.raises(InputError, match=r"one label per pair, shape \(6,\), got shape \(5,\)"):
            estimate("mape", **pairs(6), clusters=[1, 2, 3, 4, 5])
        with pytest.raises(InputError, match=r"must not be missing, got None in rows 2, 4"):
            estimate("mape", **pairs(6), clusters=["a", None, "b", None, "c", "d"])
        with pytest.raises(InputError, match=r"must not be missing, got nan in row 1"):
            estimate("mape", **pairs(3), clusters=[np.nan, 1.0, 2.0])
        with pytest.raises(InputError, match=r"got shape \(0,\)"):
            estimate("mape", **pairs(3), clusters=[])

    def test_excluded_rows_are_counted_and_leave_the_clusters_too(self):
        data = pairs(30)
        bad = {k: np.concatenate([[1.0], v[:10], [2.0], v[10:]]) for k, v in data.items()}
        bad["measured"][[0, 11]] = 0.0, -1.0
        label = np.arange(30) // 5
        with_bad = np.concatenate([[99], label[:10], [98], label[10:]])
        with pytest.raises(InputError, match="measured must be positive, got 0.0 in rows 1, 12"):
            estimate("mape", **bad)
        e = estimate("mape", **bad, clusters=with_bad, zeros="exclude")
        clean = estimate("mape", **data, clusters=label)
        assert (e.low, e.high, e.n) == (clean.low, clean.high, 30)
        assert [(d.reason, d.n, d.rows) for d in e.dropped] == [
            ("measured is not positive", 2, (1, 12))
        ]
        assert clean.dropped == ()
