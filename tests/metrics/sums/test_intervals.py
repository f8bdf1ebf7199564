"""Intervals from sums: those of the same pairs in memory, and refused where those are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from errcomp.metrics import sums
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.sums import within
from errcomp.metrics.sums.intervals import FigureColumn, column
from errcomp.summary import GroupRows, Summary, summarize
from errcomp.tables.engine.pairs import PairRows
from errcomp.tables.sums import Sum, Totals

SMOOTH = ("mape", "smape", "bias", "wape", "mae", "rmse", "rmspe", "rmsle", "gmape", "gm_ratio")


@pytest.fixture(scope="module")
def pairs() -> pl.DataFrame:
    """Groups that allow an interval and groups that do not: few, alike, or of one large pair."""
    rng = np.random.default_rng(5)
    sizes = {"many": 60, "few": 5, "two": 2, "one": 1, "alike": 12, "heavy": 12, "close": 30}
    group = np.repeat(list(sizes), list(sizes.values()))
    measured = np.exp(rng.normal(size=len(group)))
    error = rng.normal(0.05, 0.2, len(group))
    error[group == "alike"] = 0.1
    # Errors that are nearly equal have a short interval, but have one.
    error[group == "close"] = 0.1 + 1e-3 * rng.normal(size=30)
    measured[np.flatnonzero(group == "heavy")[0]] = 1e4
    return pl.DataFrame({"g": group, "predicted": measured * np.exp(error), "measured": measured})


@pytest.mark.parametrize("name", SMOOTH)
def test_bounds_of_sums_are_those_of_pairs(pairs: pl.DataFrame, name: str) -> None:
    inside = summarize(pairs, by="g", figures=[name])
    engine = summarize(pairs.lazy(), by="g", figures=[name])
    expected = {row.key["g"]: row.figures[name] for row in inside.rows}
    assert {row.key["g"] for row in engine.rows} == set(expected)
    for row in engine.rows:
        figure, match = row.figures[name], expected[row.key["g"]]
        assert figure.value == pytest.approx(match.value, rel=1e-9)
        assert (figure.low is None) == (match.low is None), row.key
        if figure.low is None:
            assert figure.method == match.method
        else:
            assert (figure.low, figure.high) == pytest.approx((match.low, match.high), rel=1e-6)


def test_one_large_pair_gives_a_weighted_mean_no_interval(pairs: pl.DataFrame) -> None:
    summary = summarize(pairs.lazy(), by="g", figures=["wape", "mape"])
    figures = {row.key["g"]: row.figures for row in summary.rows}
    assert figures["heavy"]["wape"].low is None
    assert figures["heavy"]["mape"].low is not None
    assert figures["close"]["mape"].low is not None
    assert figures["alike"]["mape"].low is None


#: Metrics of another kind, and one without tested intervals at any number of pairs.
OTHERS = ("within_10", "within_20", "max_ape", "median_ape_approx", "p90_ape_approx")


@pytest.fixture(scope="module")
def clustered() -> pl.DataFrame:
    """Groups of models and devices: crossing, of one key, too few, alike, heavy, with zeros."""
    rng = np.random.default_rng(7)
    shapes = {
        "crossed": (12, 4, 2),
        "models": (25, 1, 3),
        "two": (2, 5, 1),
        "single": (1, 1, 30),
        "alike": (12, 1, 2),
        "heavy": (12, 1, 2),
        "zero": (12, 1, 2),
        "few": (4, 1, 5),
    }
    rows = [
        (g, f"{g} {i}", f"d{j}")
        for g, (models, devices, repeats) in shapes.items()
        for i in range(models)
        for j in range(devices)
        for _ in range(repeats)
    ]
    group, model, device = (np.array(values) for values in zip(*rows, strict=True))
    code = np.unique(model, return_inverse=True)[1]
    error = rng.normal(0.05, 0.15, len(rows)) + rng.normal(0, 0.1, code.max() + 1)[code]
    error[group == "alike"] = 0.1
    measured = np.exp(rng.normal(size=len(rows)))
    measured[np.flatnonzero(group == "heavy")[0]] = 1e4
    predicted = measured * np.exp(error)
    zero = np.flatnonzero(group == "zero")
    predicted[zero[[0, 5]]] = 0.0
    predicted[zero[3]] = measured[zero[3]]
    return pl.DataFrame(
        {
            "g": group,
            "model": model,
            "device": device,
            "batch": np.arange(len(rows)) % 10,
            "predicted": predicted,
            "measured": measured,
        }
    )


def in_buckets(pairs: pl.DataFrame) -> pl.DataFrame:
    """Move each absolute error to the middle of its bucket."""
    error = ((pl.col("predicted") / pl.col("measured")) - 1).abs()
    middle = (((error.log() / math.log(1.01)).floor() + 0.5) * math.log(1.01)).exp()
    return pairs.with_columns(predicted=pl.col("measured") * (1 + middle))


def assert_equal(inside: Summary, engine: Summary) -> None:
    """Compare everything but why a metric is not defined."""
    assert inside.pooled is not None
    assert engine.pooled is not None
    both = zip((*inside.rows, inside.pooled), (*engine.rows, engine.pooled), strict=True)
    for one, two in both:
        assert (one.key, one.n) == (two.key, two.n)
        for name, known in one.figures.items():
            found, where = two.figures[name], (one.key, name)
            assert found.value == pytest.approx(known.value, rel=1e-9, nan_ok=True), where
            assert (found.level, found.unit, found.n) == (known.level, known.unit, known.n), where
            assert (found.seed, found.caveats) == (known.seed, known.caveats), where
            assert found.definition == known.definition, where
            assert (found.low is None) == (known.low is None), where
            if not math.isnan(known.value) and known.method != "order statistics":
                assert found.method == known.method, where
            if known.low is None or known.high is None:
                continue
            assert found.low is not None
            assert found.high is not None
            # In memory, bounds are the errors themselves: here the middles of buckets.
            half = 1.01**0.5 if name.endswith("_approx") else 1.0
            bounds = (known.low / half, known.high * half)
            assert (found.low, found.high) == pytest.approx(bounds, rel=1e-6), where


@pytest.mark.parametrize("figures", [SMOOTH[:5], (*SMOOTH[5:], "total_error"), OTHERS])
@pytest.mark.parametrize("cluster", [None, "model", "none"])
def test_intervals_in_clusters_are_those_of_pairs(
    clustered: pl.DataFrame, figures: tuple[str, ...], cluster: str | None
) -> None:
    how: dict[str, Any] = {"by": "g", "figures": figures, "cluster": cluster}
    pairs = in_buckets(clustered) if figures == OTHERS else clustered
    assert_equal(summarize(pairs, **how), summarize(pairs.lazy(), **how))


@pytest.mark.parametrize(
    "how",
    [
        {"level": 0.8},
        {"level": 0.99, "cluster": "none"},
        {"level": None},
        {"method": "log-t", "figures": ["rmse", "mae"]},
        {"method": "log-t", "figures": ["rmse", "mae", "within_10"], "cluster": "none"},
        {"method": "clopper-pearson", "figures": ["within_20", "mape", "p90_ape_approx"]},
        {"method": "order-statistics", "figures": ["median_ape_approx", "within_20"]},
        {
            "method": "percentile",
            "cluster": "model",
            "resamples": 60,
            "seed": 3,
            "figures": ["mape"],
        },
        {"method": "percentile", "cluster": ["model", "device"], "figures": ["wape", "max_ape"]},
        {"cluster": "batch"},
        {"cluster": ["device", "batch"], "figures": ["median_ape_approx", "within_20", "bias"]},
    ],
)
def test_options_of_intervals_mean_the_same_for_sums(
    clustered: pl.DataFrame, how: dict[str, Any]
) -> None:
    some = pl.col("g").is_in(["crossed", "models", "single", "few", "two"])
    pairs = in_buckets(clustered.filter(some))
    asked = {"figures": ["mape", "within_10", "median_ape_approx", "max_ape"], **how}
    assert_equal(summarize(pairs, by="g", **asked), summarize(pairs.lazy(), by="g", **asked))


def test_columns_of_a_summary_are_its_rows(clustered: pl.DataFrame) -> None:
    figures = ["rmsle", "mae", "median_ape_approx", "max_ape", "within_10"]
    for level in (0.95, None):
        summary = summarize(clustered.lazy(), by="g", figures=figures, level=level, unit="ms")
        assert isinstance(summary.rows, GroupRows)
        frame = summary.to_frame()
        assert ("mae_reason" in frame.columns) == (level is not None)
        assert "max_ape_reason" not in frame.columns
        for row, bare, line in zip(
            summary.rows, summary.rows.bare(), frame.rows(named=True), strict=True
        ):
            assert bare.key == row.key == {"g": line["g"]}
            for name, one in row.figures.items():
                short = bare.figures[name]
                assert (short.low, short.high, short.unit) == (one.low, one.high, one.unit)
                assert short.value == pytest.approx(one.value, rel=0, nan_ok=True)
                assert line[name] == (None if math.isnan(one.value) else one.value)
                assert (line[f"{name}_low"], line[f"{name}_high"]) == (one.low, one.high)
                told = line.get(f"{name}_reason")
                refused = one.method.startswith(("no interval:", "no interval from", "not defined"))
                assert told == (one.method if refused and name != "max_ape" else None)
        assert [one.unit for one in summary.rows[0].figures.values()] == [
            *("log", "ms", "fraction", "fraction", "fraction"),
        ]


def test_units_are_those_of_the_data_where_none_is_given(clustered: pl.DataFrame) -> None:
    rows = summarize(clustered.lazy(), by="g", figures=["mae", "mape"]).rows
    assert isinstance(rows, GroupRows)
    for row in (rows[0], rows.bare()[0]):
        assert [one.unit for one in row.figures.values()] == ["measured", "fraction"]


def groups(n: list[int], **of: list[float]) -> Totals:
    """Make totals of groups from sums of terms that are joined by a double underscore."""
    made = {Sum(tuple(terms.split("__"))): np.array(values) for terms, values in of.items()}
    return Totals({"g": list(range(len(n)))}, np.array(n), made)


ASKED = Request("default", 0.95, 9999, 0)


def methods(found: FigureColumn) -> list[str]:
    return [found.say(i).method for i in range(len(found.value))]


def test_shares_have_the_interval_of_wilson_and_a_caveat_from_few_pairs() -> None:
    counts = Totals(
        {"g": ["a", "b", "c"]},
        np.array([10, 5, 400]),
        {within("within_10"): np.array([5.0, 5.0, 100.0])},
    )
    found = column("within_10", counts, ASKED)
    assert found.value.tolist() == [0.5, 1.0, 0.25]
    by_scipy = [
        stats.binomtest(inside, n).proportion_ci(method="wilson")
        for inside, n in ((5, 10), (5, 5), (100, 400))
    ]
    assert found.low.tolist() == pytest.approx([one.low for one in by_scipy])
    assert found.high.tolist() == pytest.approx([one.high for one in by_scipy])
    assert methods(found) == ["wilson"] * 3
    caveats = [found.say(i).caveats for i in range(3)]
    assert [len(some) for some in caveats] == [1, 1, 0]
    assert [some[0].code for some in caveats[:2]] == ["few-configurations"] * 2
    exact = column("within_10", counts, ASKED._replace(method="clopper-pearson"))
    assert exact.low[1] == pytest.approx(0.025**0.2)
    assert [exact.say(i).caveats for i in range(3)] == [(), (), ()]
    assert methods(exact) == ["clopper-pearson"] * 3


def test_a_share_of_four_pairs_has_no_interval_but_the_exact_one() -> None:
    counts = Totals({"g": ["a"]}, np.array([4]), {within("within_10"): np.array([3.0])})
    found = column("within_10", counts, ASKED)
    assert np.isnan([found.low[0], found.high[0]]).all()
    assert methods(found) == ["no interval from 4 pairs: at least 5 are needed"]
    exact = column("within_10", counts, ASKED._replace(method="clopper-pearson"))
    assert 0 < exact.low[0] < 0.75 < exact.high[0] < 1


def test_a_share_counts_errors_at_its_limit() -> None:
    eps = 2.0**-52
    assert within("within_20") == Sum(("ape",), "within", 0.2 + 4 * eps * 1.2)
    # 10 % more than 3 is above 3.3 by a bit.
    predicted, measured = [3.0 * 1.1, 3.3001], [3.0, 3.0]
    lazy = pl.LazyFrame({"predicted": predicted, "measured": measured})
    summary = summarize(lazy, figures=["within_10", "max_ape"])
    assert summary.figures["within_10"].value == 0.5
    assert summary.figures["max_ape"].value == pytest.approx(0.10003333, rel=1e-6)


def test_why_there_is_no_standard_error() -> None:
    n = [10, 10, 10, 10, 10]
    logs = groups(n, log_ape=[-9.0] * 5, log_ape__log_ape=[30.0] * 5)
    there = {Sum(("log_ape",), "count"): np.array([10.0, 9.0, 8.0, 10.0, 10.0])}
    missing = Totals(logs.keys, logs.n, {**logs.sums, **there})
    found = column("gmape", missing, ASKED)
    assert found.value.tolist() == pytest.approx([math.exp(-0.9), 0, 0, *[math.exp(-0.9)] * 2])
    assert methods(found)[:3] == [
        "log-t",
        "no interval: 1 prediction is exact, which makes the geometric mean zero whatever the "
        "other errors are",
        "no interval: 2 predictions are exact, which makes the geometric mean zero whatever the "
        "other errors are",
    ]
    mape = groups(n, ape=[1.0, 0.0, 1e160, 1.0, np.inf], ape__ape=[0.1, 0.0, np.inf, 0.2, np.inf])
    found = column("mape", mape, ASKED)
    assert found.value.tolist() == pytest.approx([0.1, 0, 1e159, 0.1, np.nan], nan_ok=True)
    assert methods(found) == [
        "no interval: all errors are equal",
        "no interval: every prediction is exact",
        "no interval: a sum of squares is beyond the largest float64",
        "log-t",
        "not defined here: an error, or a sum of errors, is beyond the largest number a float64 "
        "can hold (1.8e308). Check that predicted and measured have the same unit.",
    ]
    assert [i for i, _ in found.reasons()] == [0, 1, 2, 4]
    bias = groups(
        [10] * 3, signed_ape=[-10.0, -5.0, -12.0], signed_ape__signed_ape=[11.0, 2.6, 15.0]
    )
    assert methods(column("bias", bias, ASKED)) == [
        "no interval: the mean ratio of predicted to measured is not positive",
        "log-t",
        "no interval: the mean ratio of predicted to measured is not positive",
    ]


def test_a_metric_that_needs_logarithms_says_how_many_predictions_have_none() -> None:
    logs = {Sum(("log_ratio",), "count"): np.array([4.0, 3.0, 5.0])}
    totals = groups([5, 5, 5], log_ratio=[1.0] * 3, log_ratio__log_ratio=[1.0] * 3)
    found = column("gm_ratio", Totals(totals.keys, totals.n, {**totals.sums, **logs}), None)
    assert found.value.tolist() == pytest.approx([np.nan, np.nan, math.exp(0.2)], nan_ok=True)
    needs = "not positive, and geometric mean of predicted/measured needs logarithms"
    assert methods(found) == [
        f"not defined here: 1 prediction is {needs}",
        f"not defined here: 2 predictions are {needs}",
        "no interval was requested",
    ]
    assert [i for i, _ in found.reasons()] == [0, 1]
    assert found.level is None
    assert np.isnan([*found.low, *found.high]).all()


def test_why_log_t_has_no_bounds() -> None:
    # The mean of logarithms is 709.5, with a standard deviation of 1; exp(710) is no float64.
    squares = 10 * 709.5**2 + 9
    totals = groups([10, 10], log_ratio=[7095.0, 0.0], log_ratio__log_ratio=[squares, 9.0])
    logs = {Sum(("log_ratio",), "count"): np.array([10.0, 10.0])}
    found = column("gm_ratio", Totals(totals.keys, totals.n, {**totals.sums, **logs}), ASKED)
    assert methods(found) == [
        "no interval: the errors of too few pairs differ (log-t gives no finite bound)",
        "log-t",
    ]
    # Student's t with nine degrees of freedom at 97.5 % is 2.2621572.
    half = 2.2621572 / math.sqrt(10)
    assert found.low[1] == pytest.approx(math.exp(-half))
    assert found.high[1] == pytest.approx(math.exp(half))
    # Standard errors of 0.65 and 0.6: with five degrees of freedom, 0.643 is usable at 95 %. The
    # bounds at other levels do not count.
    wide = groups([6, 6], ape=[6.0, 6.0], ape__ape=[18.675, 16.8])
    for level in (0.95, 0.5, 0.999):
        found = column("mape", wide, ASKED._replace(level=level))
        assert methods(found) == [
            "no interval: 6 pairs differ so much that a bound of the interval would be more than "
            "12 times the metric",
            "log-t",
        ]


@pytest.mark.parametrize("method", ["default", "log-t"])
def test_four_pairs_are_the_fewest(method: str) -> None:
    n = [1, 2, 3, 4, 5]
    means, squares = [0.1 * i for i in n], [0.011 * i for i in n]
    few = groups(n, ape=means, ape__ape=squares)
    found = column("mape", few, ASKED._replace(method=method))
    assert methods(found) == [
        "no interval from 1 pair: at least 4 are needed",
        "no interval from 2 pairs: at least 4 are needed",
        "no interval from 3 pairs: at least 4 are needed",
        "log-t",
        "log-t",
    ]
    assert np.isnan(found.low).tolist() == np.isnan(found.high).tolist() == [True] * 3 + [False] * 2
    whole = found.estimate(3, 4, "ms")
    assert (whole.n, whole.level, whole.unit) == (4, 0.95, "fraction")
    # The standard error of the mean is √(0.001 / 3), Student's t with three degrees is 3.1824463.
    assert whole.low == pytest.approx(0.1 * math.exp(-3.1824463 * math.sqrt(0.001 / 3) / 0.1))
    # Squares are not offered, but given on request.
    square = groups([20], ape__ape=[1.0], ape__ape__ape__ape=[0.06])
    found = column("rmspe", square, ASKED._replace(method=method))
    assert methods(found) == [
        "log-t"
        if method == "log-t"
        else "no interval: with every tested method, the interval contains the true value in less "
        "than 90 % of samples of 20 pairs"
    ]


def test_bounds_stay_below_the_largest_value() -> None:
    totals = groups([6], symmetric=[11.0], symmetric__symmetric=[20.6])
    found = column("smape", totals, ASKED)
    assert found.high.tolist() == [2.0]
    assert 1 < found.low[0] < 11 / 6


def test_resampling_of_single_pairs_is_left_to_memory() -> None:
    columns = {
        "g": [*"aaaaaaaa", *"bbbbb"],
        "model": [*"wwxxyyzz", *"pqrst"],
        "predicted": [1.1, 1.2, 0.8, 0.9, 1.3, 1.1, 0.7, 1.0, 1.2, 0.9, 1.1, 0.8, 1.05],
        "measured": [1.0] * 13,
    }
    rows = summarize(
        pl.LazyFrame(columns), by="g", figures="mape", method="percentile", cluster="model"
    ).rows
    assert [row.figures["mape"].method for row in rows] == [
        "percentile, 9999 resamples, 4 models",
        "no interval: resampling needs the pairs in memory, not in an engine",
    ]
    assert [row.figures["mape"].seed for row in rows] == [0, None]


def test_histograms_of_clusters_are_fetched_up_to_a_limit(
    clustered: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = clustered.filter(pl.col("g").is_in(["models", "alike"])).lazy()
    how: dict[str, Any] = {"by": "g", "figures": ["median_ape_approx"]}
    usual = summarize(some, **how)
    monkeypatch.setattr(sums, "MOST_HISTOGRAMS", 37)
    assert [row.to_dict() for row in summarize(some, **how).rows] == [
        row.to_dict() for row in usual.rows
    ]
    monkeypatch.setattr(sums, "MOST_HISTOGRAMS", 36)
    fewer = summarize(some, **how)
    assert fewer.pooled is not None
    for row in (*fewer.rows, fewer.pooled):
        assert row.figures["median_ape_approx"].method == (
            "no interval: there are too many clusters to keep a histogram for each"
        )
        assert row.figures["median_ape_approx"].low is None


def test_grouped_pairs_have_histograms_of_their_own_keys_only(clustered: pl.DataFrame) -> None:
    some = PairRows(clustered.filter(pl.col("g").is_in(["models", "alike"])).lazy())
    how: dict[str, Any] = {"by": "g", "figures": ["median_ape_approx"], "cluster": "model"}
    needed = sums.sums_for(how["figures"], intervals=True)
    by_model = summarize(some.grouped(["g"], sums=needed, cluster=["model"]), **how)
    by_group = summarize(some.grouped(["g"], sums=needed, within=["model"]), **how)
    assert [row.figures["median_ape_approx"].method for row in by_model.rows] == [
        "order statistics, 12 models",
        "order statistics, 25 models",
    ]
    assert by_group.pooled is not None
    assert {
        row.figures["median_ape_approx"].method for row in (*by_group.rows, by_group.pooled)
    } == {"no interval: there are too many clusters to keep a histogram for each"}
    assert [row.figures["median_ape_approx"].value for row in by_group.rows] == [
        row.figures["median_ape_approx"].value for row in by_model.rows
    ]
