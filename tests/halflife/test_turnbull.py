"""Survival without a law: closed forms, published values, bounds, clusters, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.estimators import turnbull as _npmle
from errcomp.halflife.estimators.turnbull import cells_of, maximise, turnbull

INF = np.inf
#: Twenty units looked at now and then.
LEFT = np.array([0, 1, 2, 2, 3, 5, 6, 0, 4, 8, 10, 3, 7, 12, 12, 12, 1, 2, 9, 5], dtype=float)
RIGHT = np.array(
    [2, 3, 4, 5, 4, 8, 7, 1, 9, 12, INF, 6, INF, INF, INF, INF, 4, 3, 11, 10], dtype=float
)


def random_units(rng, n, looks=7, scale=3.0):
    time = 8 * rng.weibull(1.3, n)
    seen = np.cumsum(rng.exponential(scale, (n, looks)), axis=1)
    left = np.where(seen < time[:, None], seen, 0).max(axis=1)
    return left, np.where(seen >= time[:, None], seen, INF).min(axis=1)


def test_kaplan_meier_where_all_are_looked_at_at_all_times():
    # Expired at 2, 3, 3, 6; valid when last seen at 1, 4, 7: the estimator by hand.
    curve = turnbull([1, 2, 2, 5, 1, 4, 7], [2, 3, 3, 6, INF, INF, INF])
    s2, s3 = 5 / 6, 5 / 6 * 3 / 5
    s6 = s3 / 2
    for times, expected in (([0, 1, 2], [1, 1, s2]), ([3, 4, 5], [s3] * 3), ([6, 7, 99], [s6] * 3)):
        least, most = curve.survival(times)
        np.testing.assert_allclose(most, expected, atol=1e-6)
        if max(times) < 7:
            np.testing.assert_allclose(least, expected, atol=1e-6)
    assert curve.survival(8)[0] == 0.0
    assert (curve.n, curve.n_events, curve.n_clusters) == (7, 4, 7)
    assert curve.gap < 1e-6


def test_agrees_with_lifelines_on_overlapping_intervals():
    # lifelines 0.30.3, KaplanMeierFitter.fit_interval_censoring(left + 0.001, right, tol=1e-10);
    # its intervals are closed, hence the shift.
    curve = turnbull(LEFT, RIGHT)
    times = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12]
    expected = [
        *(0.9, 0.9, 0.724318, 0.551802, 0.551802, 0.545351),
        *(0.366401, 0.366401, 0.275902, 0.219840, 0.219840),
    ]
    np.testing.assert_allclose(curve.survival(times)[0], expected, atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_maximum_has_no_direction_of_growth(seed):
    left, right = random_units(np.random.default_rng(seed), 80)
    curve = turnbull(left, right)
    # Gentleman and Geyer: no interval would gain from more mass, those with mass are in balance.
    covers = (left[:, None] <= curve.left) & (right[:, None] >= curve.right)
    gain = (covers / (covers @ curve.mass)[:, None]).sum(axis=0) / 80
    np.testing.assert_allclose(gain, 1.0, atol=1e-5)
    edges = np.unique(np.concatenate([left, right]))
    everywhere = (left[:, None] <= edges[:-1]) & (right[:, None] >= edges[1:])
    assert (everywhere / (covers @ curve.mass)[:, None]).sum(axis=0).max() / 80 < 1 + 1e-5
    assert curve.mass.sum() == pytest.approx(1.0)
    assert curve.gap < 1e-5


def test_constrained_maximum_by_hand():
    # Of n units x survive t: the likelihood ratio of p is that of a proportion.
    left, right = np.array([0.0] * 4 + [1.0] * 6), np.array([1.0] * 4 + [2.0] * 6)
    cells = cells_of(left, right, np.ones(10), cut=1.0)
    before = int(np.searchsorted(cells.right, 1.0, side="right"))
    free, held = maximise(cells), maximise(cells, before, 1 - 0.3)
    expected = 6 * np.log(0.6 / 0.3) + 4 * np.log(0.4 / 0.7)
    assert free.log_likelihood - held.log_likelihood == pytest.approx(expected, abs=1e-6)
    assert held.cumulative[before] == pytest.approx(0.7)


def test_constrained_maximum_is_below_and_touches_the_free_one():
    left, right = random_units(np.random.default_rng(1), 40)
    curve, cut = turnbull(left, right), 5.0
    cells = cells_of(left, right, np.ones(40), cut=cut)
    before = int(np.searchsorted(cells.right, cut, side="right"))
    s = curve.survival(cut)[0]
    values = [maximise(cells, before, 1 - p).log_likelihood for p in (s - 0.3, s, s + 0.3)]
    assert values[1] == pytest.approx(curve.log_likelihood, abs=1e-5)
    assert max(values[0], values[2]) < values[1] - 0.5


def test_what_is_not_at_the_maximum_says_so(monkeypatch):
    monkeypatch.setattr(_npmle, "_MOST_ROUNDS", 1)
    left, right = random_units(np.random.default_rng(1), 40)
    assert turnbull(left, right).gap > 0.1


# Bounds


def test_bounds_of_a_proportion_are_mid_p():
    curve = turnbull([0.0] * 4 + [1.0] * 6, [1.0] * 4 + [2.0] * 6)
    share = curve.surviving(1.0)
    assert share.value == pytest.approx(0.6)
    assert share.n_effective == pytest.approx(10)

    def as_many(p):
        return stats.binom.sf(6, 10, p) + stats.binom.pmf(6, 10, p) / 2

    assert as_many(share.low) == pytest.approx(0.025, abs=1e-4)
    assert 1 - as_many(share.high) == pytest.approx(0.025, abs=1e-4)


def test_bounds_at_the_ends():
    all_valid = turnbull([3.0] * 8, [INF] * 8)
    share = all_valid.surviving(3.0)
    assert (share.value, share.high) == (1.0, 1.0)
    assert share.low == pytest.approx(0.05 ** (1 / 8), abs=1e-4)
    gone = turnbull([0.0] * 8, [1.0] * 8).surviving(1.0)
    assert (gone.value, gone.low) == (0.0, 0.0)
    assert gone.high == pytest.approx(1 - 0.05 ** (1 / 8), abs=1e-4)


def test_censored_units_count_for_less():
    # Half of the units are lost after 1: they tell nothing of what happens after.
    left = np.array([1.0] * 10 + [1.0] * 4 + [2.0] * 6)
    right = np.array([INF] * 10 + [2.0] * 4 + [INF] * 6)
    share = turnbull(left, right).surviving(2.0)
    alone = turnbull(left[10:], right[10:]).surviving(2.0)
    assert share.value == pytest.approx(alone.value, abs=1e-5)
    assert share.n_effective == pytest.approx(10, abs=0.01)
    assert (share.low, share.high) == pytest.approx((alone.low, alone.high), abs=1e-3)


def test_median_of_all_times_seen_is_the_sign_test():
    curve = turnbull(np.arange(20), np.arange(1, 21))
    counts, times = curve.median(whole=True), curve.median()
    assert (counts.value, counts.low, counts.high) == (10.0, 6.0, 15.0)
    assert (times.value, times.low, times.high) == pytest.approx((10.0, 5.0, 15.0))
    narrow = curve.median(0.5, whole=True)
    assert 6 < narrow.low <= 10 <= narrow.high < 15


def test_median_in_a_wide_interval_is_in_its_middle():
    curve = turnbull([0.0] * 20, [4.0] * 20)
    assert curve.median().value == pytest.approx(2.0)
    assert (curve.median().low, curve.median().high) == (0.0, 4.0)
    assert curve.median(whole=True).value == 2.0


def test_median_not_reached_is_longer_than():
    median = turnbull([6.0] * 9 + [2.0], [INF] * 9 + [3.0]).median(whole=True)
    assert (median.value, median.low, median.high) == (INF, 7.0, INF)


def test_few_units_bound_nothing():
    median = turnbull([3.0] * 4, [4.0] * 4).median()
    assert (median.value, median.low, median.high) == (3.5, 0.0, INF)
    assert np.isnan(median.n_effective)
    # Five that agree are the least at 95 %.
    assert turnbull([3.0] * 5, [4.0] * 5).median().low == 3.0


# Clusters


def test_copies_in_a_cluster_tell_nothing_new():
    rng = np.random.default_rng(0)
    time = np.ceil(8 * rng.weibull(1.3, 30))
    median = turnbull(time - 1, time).median(whole=True)
    four = turnbull(
        np.repeat(time - 1, 4), np.repeat(time, 4), clusters=np.repeat(np.arange(30), 4)
    )
    assert four.n_clusters == 30
    same = four.median(whole=True)
    assert (same.value, same.low, same.high) == (median.value, median.low, median.high)
    # 29 / 30, and the ratio of t quantiles, are what is lost.
    assert same.n_effective == pytest.approx(median.n_effective, rel=0.1)
    naive = turnbull(np.repeat(time - 1, 4), np.repeat(time, 4)).median(whole=True)
    assert naive.high - naive.low < median.high - median.low


def test_clusters_of_one_are_no_clusters():
    plain, single = (
        turnbull(LEFT, RIGHT, clusters=c).median() for c in (None, [f"c{i}" for i in range(20)])
    )
    assert plain == single


def test_where_none_expired_a_cluster_counts_once():
    cluster = np.repeat(np.arange(6), 5)
    share = turnbull([3.0] * 30, [INF] * 30, clusters=cluster).surviving(3.0)
    assert share.n_effective == 6
    assert share.low == pytest.approx(0.05 ** (1 / 6), abs=1e-4)
    gone = turnbull([0.0] * 30, [1.0] * 30, clusters=cluster).surviving(1.0)
    assert gone.high == pytest.approx(1 - 0.05 ** (1 / 6), abs=1e-4)


def test_one_cluster_is_one_unit():
    median = turnbull([3.0] * 30, [4.0] * 30, clusters=np.zeros(30)).median()
    assert (median.low, median.high) == (0.0, INF)


def test_effective_number_where_nothing_is_rejected():
    # At S(t) = p there is no likelihood ratio to count by: all units are taken.
    curve = turnbull(np.arange(20), np.arange(1, 21))
    assert curve._effective(10.0, 0.5, 0.5) == 20


# Bad input


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([], [], "one value per observed unit"),
        ([1, 2], [3], "one value per observed unit"),
        ([[1.0]], [[2.0]], "one value per observed unit"),
        ([1, 2, 2], [2, 2, 2], r"got \(2.0, 2.0\] in units 2, 3"),
        ([-1], [2], r"got \(-1.0, 2.0\] in unit 1"),
        ([np.nan], [2], "got"),
        ([1], [np.nan], "got"),
        ([INF], [INF], "got"),
    ],
)
def test_bad_intervals(left, right, message):
    with pytest.raises(InputError, match=message):
        turnbull(left, right)


def test_bad_clusters_and_level():
    with pytest.raises(InputError, match="clusters must be 2 values, one per unit"):
        turnbull([0, 1], [1, 2], clusters=[1])
    curve = turnbull([0, 1], [1, 2])
    with pytest.raises(InputError, match="level"):
        curve.median(95)
    with pytest.raises(InputError, match="level"):
        curve.surviving(1.0, 0.0)
