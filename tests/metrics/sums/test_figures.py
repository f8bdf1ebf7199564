"""Histograms that add up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.metrics import approximate_ape_quantile
from errcomp.metrics.intervals.direct import order_statistics
from errcomp.metrics.ranked import BUCKET
from errcomp.metrics.sums import (
    _binomial_quantile,
    _ranks,
    quantile_bounds,
    quantiles,
    sums_for,
    within,
)
from errcomp.tables.sums import Histogram, Sum, Totals


def histogram(errors: np.ndarray, group: np.ndarray) -> Histogram:
    bucket = [None if e == 0 else int(np.floor(np.log(e) / BUCKET)) for e in errors]
    return Histogram.of(Totals({"g": group.tolist()}, np.ones(len(errors), int), {}), bucket)


def test_quantiles_of_groups_and_of_all() -> None:
    rng = np.random.default_rng(1)
    errors, group = rng.lognormal(-3, 1, 900), np.repeat([0, 1, 2], 300)
    made = histogram(errors, group)
    for q in (0.5, 0.9, 0.99):
        exact = [np.quantile(errors[group == g], q) for g in range(3)]
        assert quantiles(made, q) == pytest.approx(exact, rel=0.00501)
        whole = np.quantile(errors, q)
        assert quantiles(made.pooled(), q) == pytest.approx([whole], rel=0.00501)


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [6, 36, 400, 5000])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_bounds_are_the_buckets_of_the_order_statistics(q: float, n: int, level: float) -> None:
    errors = np.random.default_rng(n).lognormal(-3, 1, n)
    low, high, needed = quantile_bounds(histogram(errors, np.zeros(n, int)), q, level)
    exact = order_statistics(errors, q, level)
    if exact is None:
        assert np.isnan(low[0])
        assert needed > n
        return
    first, last = _ranks(n, q, (1 - level) / 2)
    assert (np.sort(errors)[first - 1], np.sort(errors)[last - 1]) == exact
    assert low[0] <= exact[0] < low[0] * 1.01
    assert high[0] / 1.01 <= exact[1] <= high[0]


@pytest.mark.parametrize(("n", "level"), [(2, 0.5), (3, 0.75), (6, 0.96875)])
def test_the_smallest_and_the_largest_bound_a_median_at_exactly_their_level(
    n: int, level: float
) -> None:
    assert _ranks(n, 0.5, (1 - level) / 2) == (1, n)
    low, high, needed = quantile_bounds(
        histogram(np.arange(1.0, n + 1), np.zeros(n, int)), 0.5, level
    )
    assert needed == n
    assert low[0] <= 1.0 < low[0] * 1.01
    assert high[0] / 1.01 <= n <= high[0]


def test_exact_predictions_have_a_bucket_of_their_own() -> None:
    made = histogram(np.asarray([0.0, 0.0, 0.0, 0.1]), np.zeros(4, int))
    assert quantiles(made, 0.5).tolist() == [0.0]
    assert quantiles(made, 1.0) == pytest.approx([0.1], rel=0.00501)
    assert approximate_ape_quantile(predicted=[1.0, 1.0], measured=[1.0, 2.0], q=0.0) == 0.0


def test_quantiles_of_binomials_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, q = int(10 ** rng.uniform(0, 7)), float(rng.choice([0.5, 0.9, 0.95, 0.99]))
        p = float(rng.choice([0.005, 0.025, 0.05, 0.95, 0.975]))
        assert _binomial_quantile(p, n, q) == stats.binom.ppf(p, n, q)
    assert _binomial_quantile(0.01, 1, 0.5) == 0


def test_each_metric_asks_for_its_sums_once() -> None:
    names = ["mape", "wape", "gm_ratio", "rmsle", "max_ape", "within_5", "p90_ape_approx"]
    log = "log_ratio"
    assert sums_for(names, intervals=False) == [
        Sum(("ape",)),
        Sum(("error",)),
        Sum(("m",)),
        Sum((log,)),
        Sum((log,), "count"),
        Sum((log, log)),
        Sum(("ape",), "max"),
        within("within_5"),
    ]
    assert sums_for(names, intervals=True) == [
        Sum(("ape",)),
        Sum(("ape", "ape")),
        Sum(("error",)),
        Sum(("error", "error")),
        Sum(("m",)),
        Sum(("error", "m")),
        Sum(("m", "m")),
        Sum((log,)),
        Sum((log,), "count"),
        Sum((log, log)),
        Sum((log, log, log, log)),
        Sum(("ape",), "max"),
        within("within_5"),
    ]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("p90_ape", r"Use p90_ape_approx, which is within 0\.5 % of p90_ape, or collect the rows "
         r"first\.$"),
        ("r2", r"Metrics that an engine can compute: mape, gmape, gm_ratio, wape, total_error, "
         r"bias, smape, mae, rmse, rmspe, rmsle, max_ape \(and 7 more\)\. Or collect the rows "
         r"first\.$"),
    ],
)  # fmt: skip
def test_what_sums_cannot_give_is_refused(name: str, advice: str) -> None:
    reason = "needs all pairs in memory, but these pairs are in a query engine"
    with pytest.raises(InputError, match=rf"^{name} {reason}\. {advice}"):
        sums_for(["mape", name], intervals=False)


def test_infinite_errors_are_quantiles_like_others() -> None:
    rows = Totals({"g": ["a"] * 3}, np.array([2, 1, 1]), {})
    made = Histogram.of(rows, [None, 0, 10**7])
    assert made.n.tolist() == [4]
    assert quantiles(made, 2 / 3).tolist() == pytest.approx([1.01**0.5])
    assert quantiles(made, 0.5).tolist() == pytest.approx([1.01**0.5 / 2])
    assert quantiles(made, 1.0).tolist() == [np.inf]
