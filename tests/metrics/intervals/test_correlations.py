"""Intervals of correlations against leaving units out one by one, and what has none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp import metrics
from errcomp.metrics.intervals import estimate
from errcomp.metrics.intervals.direct import FEWEST_OF_ALL, correlation_bounds

NAMES = list(FEWEST_OF_ALL)


def sample(n: int = 80, *, seed: int = 3, sigma: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    measured = np.exp(rng.standard_normal(n))
    return measured * np.exp(sigma * rng.standard_normal(n)), measured


def z_of(name: str, p: np.ndarray, m: np.ndarray) -> float:
    value = metrics.figure(name).function(predicted=p, measured=m)
    return -math.log(1 - value) / 2 if name == "r2" else math.atanh(value)


def middle(name: str, p: np.ndarray, m: np.ndarray) -> float:
    """z, plus what Spearman's correlation of n pairs is too low by (Daniels, 1950)."""
    if name != "spearman":
        return z_of(name, p, m)
    r, tau = stats.spearmanr(p, m).statistic, stats.kendalltau(p, m).statistic
    return math.atanh(r) + 3 * (r - tau) / ((len(p) - 2) * (1 - r**2))


def upper_by_hand(name: str, p: np.ndarray, m: np.ndarray, code: np.ndarray) -> float:
    """z + t s, each unit left out by computing the figure anew."""
    z = np.array([z_of(name, p[code != c], m[code != c]) for c in np.unique(code)])
    k, d = len(z), z - z.mean()
    df = min(2 * k / (k * (d**4).sum() / (d**2).sum() ** 2 - 1), k - 1)
    return middle(name, p, m) + stats.t.ppf(0.975, df) * np.sqrt((k - 1) / k * (d**2).sum())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clusters", [None, 60])
def test_the_upper_end_is_the_jackknife_done_by_hand(name: str, clusters: int | None) -> None:
    p, m = sample()
    code = np.arange(80) if clusters is None else np.arange(80) % clusters
    found = correlation_bounds(name, p, m, None if clusters is None else code, 0.95)
    assert not isinstance(found, str)
    z = upper_by_hand(name, p, m, code)
    expected = 1 - math.exp(-2 * z) if name == "r2" else math.tanh(z)
    assert found[1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["kendall", "spearman"])
def test_ties_are_counted_as_the_metric_counts_them(name: str) -> None:
    p, m = (np.round(4 * x) + 1 for x in sample(30))
    code = np.arange(30) % 10
    found = correlation_bounds(name, p, m, code, 0.95)
    assert found[1] == pytest.approx(math.tanh(upper_by_hand(name, p, m, code)), rel=1e-9)


@pytest.mark.slow
def test_spearman_of_a_sample_is_too_low_by_what_its_interval_adds() -> None:
    # Of 3,000 samples of 8 pairs: the mean correlation, and the mean of the corrected one.
    rng, found = np.random.default_rng(5), []
    for _ in range(3_000):
        m = np.exp(rng.standard_normal(8))
        p = m * np.exp(0.3 * rng.standard_normal(8))
        r, tau = stats.spearmanr(p, m).statistic, stats.kendalltau(p, m).statistic
        found.append((r, r + 3 * (r - tau) / (8 - 2)))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(3_000)
    truth = 6 / math.pi * math.asin(0.5 / math.sqrt(1.09))  # of the normal law of ln p and ln m
    assert mean[0] < truth - 5 * error[0]
    assert mean[1] == pytest.approx(truth, abs=3 * error[1])


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_the_lower_end_allows_for_pairs_that_none_of_these_is_like(name: str) -> None:
    p, m = sample(60, seed=5)
    low, high = correlation_bounds(name, p, m, None, 0.95)
    z = middle(name, p, m)
    unseen = 1 - 0.05 ** (1 / 60)
    lost = z - math.atanh(1 / math.sqrt(1 + (1 + 24 * unseen) * (1 / math.tanh(z) ** 2 - 1)))
    assert z - math.atanh(low) == pytest.approx(math.hypot(math.atanh(high) - z, lost), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_units_and_order_do_not_matter(name: str, factor: float) -> None:
    p, m = sample()
    order = np.random.default_rng(0).permutation(80)
    found = correlation_bounds(name, factor * p[order], factor * m[order], None, 0.95)
    assert found == pytest.approx(correlation_bounds(name, p, m, None, 0.95), rel=1e-6)


@pytest.mark.parametrize("name", ["pearson", "kendall", "spearman"])
def test_the_other_direction_is_the_mirror_image(name: str) -> None:
    p, m = sample()
    low, high = correlation_bounds(name, p, m, None, 0.95)
    assert correlation_bounds(name, -p, m, None, 0.95) == pytest.approx((-high, -low), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_higher_level_is_wider(name: str) -> None:
    p, m = sample(400)
    low, high = correlation_bounds(name, p, m, None, 0.9)
    lower, higher = correlation_bounds(name, p, m, None, 0.995)
    assert lower < low < metrics.figure(name).function(predicted=p, measured=m) < high < higher


@pytest.mark.parametrize(
    ("name", "pairs", "clusters", "reason"),
    [
        ("pearson", 7, None, "no interval from 7 pairs: at least 8 are needed"),
        ("pearson", 1, None, "no interval from 1 pair: at least 8 are needed"),
        ("pearson", 40, 2, "no interval from 2 clusters: at least 3 are needed"),
        ("pearson", 40, 1, "no interval from 1 cluster: at least 3 are needed"),
        ("pearson", 6, 3, "no interval from 6 pairs: at least 8 are needed"),
        ("kendall", 40, 4, "no interval from 4 clusters: at least 5 are needed"),
        ("spearman", 19, None, "no interval from 19 pairs: at least 20 are needed"),
        ("spearman", 40, 4, "no interval from 4 clusters: at least 5 are needed"),
        ("r2", 49, None, "no interval from 49 pairs: at least 50 are needed"),
        ("kendall", 20_001, None, "20,001 pairs are too many (at most 20,000)"),
        ("spearman", 5_001, None, "for Spearman's correlation all pairs are compared"),
    ],
)
def test_too_few_or_too_many(name: str, pairs: int, clusters: int | None, reason: str) -> None:
    p, m = sample(pairs)
    code = None if clusters is None else np.arange(pairs) % clusters
    assert reason in str(correlation_bounds(name, p, m, code, 0.95))


def test_what_one_pair_decides_has_no_interval() -> None:
    p, m = sample(20)
    p[7], m[7] = 1e3, 1.2e3
    assert "too few pairs determine the metric" in str(
        correlation_bounds("pearson", p, m, None, 0.95)
    )
    m = np.ones(20)
    m[7] = 2.0
    assert "one pair determines the metric" in str(correlation_bounds("pearson", p, m, None, 0.95))


def test_the_estimate_is_never_outside() -> None:
    # Ranks that agree but for one swap: the middle is far above the correlation of the sample.
    m = np.arange(1.0, 24.0)
    p = m.copy()
    p[[3, 4, 10, 11]] = m[[4, 3, 11, 10]]
    low, high = correlation_bounds("spearman", p, m, np.arange(23) // 4, 0.01)
    assert low == pytest.approx(stats.spearmanr(p, m).statistic, rel=1e-12)
    assert low < high
    opposite = correlation_bounds("spearman", -p, m, np.arange(23) // 4, 0.01)
    assert opposite == pytest.approx((-high, -low), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_exact_predictions_have_no_spread(name: str) -> None:
    _, m = sample()
    found = correlation_bounds(name, 2 * m if name != "r2" else m, m, None, 0.95)
    assert "agree in all pairs" in str(found)


@pytest.mark.parametrize("name", NAMES)
def test_an_estimate_has_it(name: str) -> None:
    p, m = sample()
    e = estimate(name, predicted=p, measured=m)
    assert e.low is not None
    assert e.low < e.value < (e.high or 0)
    assert (e.method, e.level, e.seed) == ("jackknife of z", 0.95, None)
    by_cluster = estimate(name, predicted=p, measured=m, clusters=np.arange(80) // 1)
    assert (by_cluster.low, by_cluster.high) == pytest.approx((e.low, e.high), rel=1e-12)
    assert by_cluster.method == "jackknife of z"
    other = estimate(name, predicted=p, measured=m, method="bca")
    assert other.low is None
    assert other.method == "no interval: method bca does not apply to a correlation; use default"


def test_clusters_that_repeat_each_other_say_nothing_about_others() -> None:
    p, m = np.tile([1.0, 2.5, 2.0, 4.5], 4), np.tile([1.0, 2.0, 3.0, 4.0], 4)
    assert correlation_bounds("pearson", p, m, np.repeat(np.arange(4), 4), 0.95) == (
        "no interval: too few clusters determine the metric; 1 minus the correlation could be more "
        "than 150 times larger or smaller"
    )


def test_without_a_correlation_there_is_none_to_lose_to_unseen_pairs() -> None:
    m = np.arange(1.0, 31.0)
    p = np.abs(m - 15.5) + 1
    low, high = correlation_bounds("spearman", p, m, None, 0.95)
    assert 0 < high < 1
    assert low == -high


def test_what_unseen_pairs_take_from_each_metric() -> None:
    p, m = sample(60, seed=5)
    low, high = correlation_bounds("kendall", p, m, None, 0.95)
    tau = metrics.kendall(predicted=p, measured=m)
    assert math.atanh(low) + math.atanh(high) == pytest.approx(2 * math.atanh(tau))
    low, high = correlation_bounds("r2", p, m, None, 0.95)
    share = metrics.r2(predicted=p, measured=m)
    z, below, above = (-math.log(1 - value) / 2 for value in (share, low, high))
    # Up to 1 - 0.05^(1/60) of the population may have five times the errors.
    loss = math.log(1 + 24 * (1 - 0.05 ** (1 / 60))) / 2
    assert z - below == pytest.approx(math.hypot(above - z, loss))
