"""The public function: what it returns, when it refuses, and what it says."""

from __future__ import annotations

import inspect
import json
import time

import numpy as np
import pytest

from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics import FIGURES, figure
from errcomp.metrics.intervals import METHODS, estimate, estimate_of
from errcomp.metrics.intervals._coverage import WILSON, Sample, is_offered
from errcomp.metrics.intervals._kinds import FEWEST_OF_SHARE, Request, share_interval
from errcomp.metrics.intervals._smooth import SMOOTH
from errcomp.metrics.intervals.dependence import Dependence

WITHOUT = ("max_ape", "top_1_regret")


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
            e = estimate(name, **pairs(8, 0.6, seed), method="log-t")
            assert e.low is None or 0 < e.low < e.high

    @pytest.mark.parametrize("name", ["bias", "total_error"])
    def test_signed_errors_are_above_minus_one(self, name):
        e = estimate(name, predicted=[0.2, 0.4, 1.1, 0.3, 0.6], measured=[1.0, 1, 1, 1, 1])
        assert -1 < e.low < e.value < e.high

    def test_smape_is_at_most_two(self):
        predicted = [0.1, 9.0, 250.0, 250.0, 300.0]
        e = estimate("smape", predicted=predicted, measured=[10.0] * 5)
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

    @pytest.mark.parametrize("n", [9, 10, 4999, 5000])
    def test_the_default_draws_no_resamples(self, n):
        e = estimate("mape", **pairs(n))
        assert (e.method, e.seed) == ("log-t", None)
        assert e.to_dict() == estimate("mape", **pairs(n), method="log-t").to_dict()

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
            "no interval for a maximum; with 95 % confidence at least 82 % of configurations "
            "like these are below this maximum"
        )
        clustered = estimate("max_ape", **pairs(16), clusters=np.arange(16) // 4, level=0.9).method
        assert "90 % confidence at least 56 % of clusters" in clustered

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_pairs(self, n):
        e = estimate("mape", **pairs(n))
        assert e.method == f"no interval from {n} pair{'s' * (n > 1)}: at least 4 are needed"

    def test_quantile_says_how_many_it_needs(self):
        e = estimate("p99_ape", **pairs(100))
        assert e.method == "no interval: 95 % confidence needs 368 pairs, got 100"
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

    def test_no_positive_ratio(self):
        e = estimate("bias", predicted=[-1.0, -2, -3, 0.5], measured=[1.0, 2, 3, 4])
        assert "not positive" in e.method

    def test_hardly_any_pair_differs(self):
        predicted = np.full(12, 10.0)
        predicted[3] = 14.0
        data = {"predicted": predicted, "measured": np.full(12, 10.0)}
        e = estimate("mape", **data, method="bootstrap-t")
        assert e.low is None
        assert "no finite bound" in e.method
        e = estimate("mape", **data)
        assert e.method == (
            "no interval: 12 pairs differ so much that a bound of the interval would be more than "
            "12 times the metric"
        )

    def test_what_holds_at_95_is_not_lost_at_a_higher_level(self):
        data = pairs(8, 0.8)
        options = {"resamples": 19_999}
        plain, high = (estimate("mape", **data, **options, level=v) for v in (0.95, 0.9999))
        assert plain.low is not None
        assert plain.high < 12 * plain.value
        assert high.high > 12 * high.value

    def test_large_measurements_that_decide(self):
        rng = np.random.default_rng(3)
        measured = np.array([1e6, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
        data = {"predicted": measured * np.exp(0.2 * rng.normal(size=10)), "measured": measured}
        assert estimate("wape", **data).method == (
            "no interval: the largest measurements dominate; weighted by size, 10 pairs count "
            "as only 1 equal pairs, and at least 3 are needed"
        )
        assert estimate("mape", **data).low is not None

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
        assert f"method {method} does not apply to" in e.method
        assert use in e.method

    @pytest.mark.parametrize("name", ["rmse", "rmspe"])
    def test_squares_are_not_offered_but_given_on_request(self, name):
        assert (
            "with every tested method, the interval contains the true"
            in estimate(name, **pairs(20)).method
        )
        e = estimate(name, **pairs(20), method="bootstrap-t")
        assert e.low < e.value < e.high
        assert [c.code for c in e.caveats] == ["few-configurations"]

    def test_a_level_next_to_one_has_no_finite_bound(self):
        e = estimate("mape", **pairs(4), level=1 - 1e-12, resamples=3 * 10**12)
        assert (e.low, e.high, e.level) == (None, None, None)
        assert e.method == (
            "no interval: the errors of too few pairs differ (log-t gives no finite bound)"
        )


class TestCopies:
    """Pairs that repeat others, as a table of keys knows them."""

    @pytest.mark.parametrize(("name", "fewest"), [("within_20", 5), ("median_ape", 4), ("mape", 4)])
    def test_three_different_pairs_are_too_few(self, name, fewest):
        drawn = Dependence(copies=np.array([0, 0, 1, 1, 2, 2]))
        data = {key: np.repeat(values, 2) for key, values in pairs(3).items()}
        e = estimate_of(name, **data, ask=Request("default", 0.95, 99, 0, drawn))
        assert e.method == f"no interval from 3 pairs: at least {fewest} are needed"

    @pytest.mark.parametrize("n", range(1, 9))
    def test_a_share_has_an_interval_where_wilsons_covers_often_enough(self, n):
        e = estimate("within_20", **pairs(n))
        offered = is_offered("share", WILSON, Sample(n, False))
        assert (e.low is not None) == offered == (n >= FEWEST_OF_SHARE)
        # Clopper and Pearson's is exact for any number.
        assert estimate("within_20", **pairs(n), method="clopper-pearson").low is not None

    def test_quantiles_need_more_different_pairs_at_a_high_level(self):
        drawn = Dependence(copies=np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]))
        data = {key: np.repeat(values, 2) for key, values in pairs(5).items()}
        e = estimate_of("median_ape", **data, ask=Request("default", 0.95, 99, 0, drawn))
        assert e.method == "no interval: 95 % confidence needs more than 5 pairs"
        e = estimate_of("within_20", **data, ask=Request("default", 0.9, 99, 0, drawn))
        assert e.method.endswith(" effective pairs, 5 different pairs")
        assert [c.code for c in e.caveats] == ["few-configurations"]

    def test_what_repeats_is_as_sure_as_what_does_not(self):
        drawn = Dependence(copies=np.repeat(np.arange(12), 2))
        data = {key: np.repeat(values, 2) for key, values in pairs(12).items()}
        ask = Request("default", 0.95, 99, 0, drawn)
        twice = estimate_of("median_ape", **data, ask=ask)
        assert (twice.method, twice.caveats) == ("order statistics, 12 different pairs", ())
        assert twice.low < twice.value < twice.high
        share, once = estimate_of("within_20", **data, ask=ask), estimate("within_20", **pairs(12))
        assert share.caveats == once.caveats
        assert share.caveats[0].evidence["coverage"] == 0.894
        in_clusters = estimate("within_20", **data, clusters=np.repeat(np.arange(12), 2))
        assert [c.code for c in in_clusters.caveats] == ["few-clusters"]
        assert in_clusters.caveats[0].evidence["coverage"] == 0.902
        exact = estimate("within_20", **pairs(12), method="clopper-pearson")
        assert exact.caveats == ()

    def test_shares_of_two_clusters_have_no_interval(self):
        drawn = Dependence(("model",), (np.array([0, 0, 1, 1]),))
        sums = [(np.array([1.0, 2.0]), np.array([2.0, 2.0]))]
        found = share_interval(3, 4, sums, Request("default", 0.95, 99, 0, drawn))
        assert (found.low, found.high) == (None, None)
        assert found.method == (
            "no interval: with every tested method, the interval contains the true value in less "
            "than 90 % of samples of 2 clusters"
        )


class TestClusters:
    def test_clusters_of_one_pair_are_pairs(self):
        data = pairs(24)
        one = estimate("mape", **data, clusters=[f"c{i:02}" for i in range(24)])
        assert one.to_dict() == estimate("mape", **data).to_dict()

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

    def test_of_clusters_within_clusters_the_outer_ones_count(self):
        data = pairs(60)
        outer, inner = np.repeat(np.arange(6), 10), np.arange(60) // 2
        both = estimate("mape", **data, clusters=[inner, outer])
        assert both.method == "log-t, 6 values of second key"
        assert both.low == estimate("mape", **data, clusters=outer).low

    def test_crossed_clusters(self):
        data = pairs(60)
        keys = [np.repeat(np.arange(6), 10), np.tile(np.arange(5), 12)]
        both = estimate("mape", **data, clusters=keys)
        assert both.method == "log-t, 6 values of first key x 5 values of second key"
        alone = estimate("mape", **data)
        assert both.low <= alone.low < alone.high <= both.high
        assert estimate("mape", **data, clusters=keys, method="bca").method == (
            "no interval: bca can resample the groups of one key only, not of two crossed keys "
            "(6 values of first key x 5 values of second key)"
        )

    @pytest.mark.parametrize("name", ["within_20", "median_ape"])
    def test_of_two_keys_that_cross_the_wider_interval_counts(self, name):
        data = pairs(120, 0.1)
        keys = [np.repeat(np.arange(8), 15), np.tile(np.arange(15), 8)]
        data["predicted"] = data["predicted"] * np.where(keys[0] < 3, 1.3, 1.0)
        both = estimate(name, **data, clusters=keys)
        alone = [estimate(name, **data, clusters=one) for one in keys]
        widths = [one.high - one.low for one in alone]
        assert widths[0] > 1.5 * widths[1]
        assert both.high - both.low >= 0.999 * widths[0]

    @pytest.mark.parametrize("name", ["mape", "median_ape", "within_20"])
    def test_too_few_clusters(self, name):
        e = estimate(name, **pairs(40), clusters=np.arange(40) // 20)
        assert e.method == (
            "no interval: 2 clusters are too few to represent others; at least 3 are needed"
        )
        e = estimate(name, **pairs(40), clusters=["same"] * 40)
        assert e.method == (
            "no interval: all 40 pairs are of one cluster, so they say nothing about other clusters"
        )

    def test_quantiles_that_were_not_tested_in_clusters(self):
        e = estimate("p99_ape", **pairs(400), clusters=np.arange(400) // 4)
        assert e.low is None
        assert "every tested method" in e.method

    def test_quantile_beyond_the_clusters(self):
        data = pairs(40)
        e = estimate("p90_ape", **data, clusters=np.arange(40))
        assert e.low is None or e.low <= e.value <= e.high

    def test_one_cluster_that_outweighs_all_others_tells_nothing(self):
        data = pairs(3004)
        label = np.concatenate([np.zeros(3000), [1, 2, 3, 4]])
        share = estimate("within_20", **data, clusters=label)
        assert (share.low, share.high) == pytest.approx((0, 1), abs=1e-3)
        assert estimate("mape", **data, clusters=label, method="log-t").method == (
            "no interval: one of 5 clusters determines the metric almost alone; measure more on "
            "the others"
        )

    def test_resamples_are_those_that_the_documentation_names(self):
        assert inspect.signature(estimate).parameters["resamples"].default == 9999

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
        with pytest.raises(InputError, match="no metric 'mapee'. Did you mean 'mape'"):
            estimate("mapee", **pairs(5))
        with pytest.raises(
            InputError,
            match="no interval method 'bootstrap'. Did you mean 'bootstrap-t'. Methods: d",
        ):
            estimate("mape", **pairs(5), method="bootstrap")
        assert METHODS[0] == "default"

    @pytest.mark.parametrize("level", [0, 1, 95])
    def test_level(self, level):
        with pytest.raises(InputError, match="level must be between 0 and 1"):
            estimate("mape", **pairs(5), level=level)

    def test_resamples_must_reach_the_level(self):
        with pytest.raises(
            InputError, match="resamples must be at least 39 for level=0.95, got 38"
        ):
            estimate("mape", **pairs(12), resamples=38)
        assert estimate("mape", **pairs(12), resamples=39).low is not None
        with pytest.raises(InputError, match="at least 1999"):
            estimate("mape", **pairs(12), resamples=999, level=0.999)

    @pytest.mark.parametrize("level", ["0.95", None, 0.9j])
    def test_level_that_is_no_number(self, level):
        with pytest.raises(InputError, match=rf"level must be a number, got {level!r}\. 95 % is "):
            estimate("mape", **pairs(5), level=level)

    @pytest.mark.parametrize("name", ["resamples", "seed"])
    def test_whole_numbers(self, name):
        for value in (99.5, "99"):
            with pytest.raises(
                InputError, match=rf"^{name} must be a whole number, got {value!r}$"
            ):
                estimate("mape", **pairs(5), **{name: value})

    @pytest.mark.parametrize("name", ["pearson", "r2"])
    def test_a_metric_that_the_pairs_do_not_define(self, name):
        with pytest.raises(NotDefinedError) as caught:
            estimate(name, predicted=[1.0], measured=[1.0])
        with pytest.raises(InputError) as plain:
            figure(name).function(predicted=[1.0], measured=[1.0])
        assert str(caught.value) == str(plain.value)
        assert caught.value.__cause__ is not None

    def test_seed(self):
        with pytest.raises(InputError, match="seed must not be negative, got -1"):
            estimate("mape", **pairs(12), seed=-1)

    def test_cluster_labels(self):
        with pytest.raises(InputError, match=r"one label per pair, shape \(6,\), got shape \(5,\)"):
            estimate("mape", **pairs(6), clusters=[1, 2, 3, 4, 5])
        with pytest.raises(InputError, match=r"one label per pair, shape \(6,\), got shape \(7,\)"):
            estimate("mape", **pairs(6), clusters=list(range(7)))
        with pytest.raises(InputError, match="at most two arrays of labels, got 3"):
            estimate("mape", **pairs(3), clusters=[[1, 2, 3], [1, 2, 3], [1, 2, 3]])
        for labels, rows in ((["a", None, "b", None, "c", "d"], "rows 2, 4"), ([1.0] * 6, "")):
            labels = [*labels[:5], np.nan] if not rows else labels
            assert estimate("mape", **pairs(6), clusters=labels).method == (
                f"no interval: the key cluster is missing in {rows or 'row 6'} of these "
                "pairs. Fill it in, or name another key as cluster"
            )
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
