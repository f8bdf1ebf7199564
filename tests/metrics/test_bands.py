"""Scores of bands against closed forms; coverage in clusters is simulated in tests/statistical."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.metrics.bands import coverage_interval, interval_score


def score(low, high, measured, level):
    ends = {"low": np.array([low]), "high": np.array([high]), "measured": np.array([measured])}
    return float(interval_score(**ends, level=level)[0])


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(10.0, 2.0), (9.0, 2.0), (11.0, 2.0), (12.0, 2.0 + 1 / 0.05), (8.5, 2.0 + 0.5 / 0.05)],
)
def test_width_and_penalty_by_hand(measured, expected):
    assert score(9.0, 11.0, measured, 0.9) == pytest.approx(expected)


def test_the_penalty_grows_with_the_level():
    assert score(0, 1, 2, 0.5) == pytest.approx(1 + 4)
    assert score(0, 1, 2, 0.95) == pytest.approx(1 + 40)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_true_quantiles_have_the_smallest_expected_score(level):
    y = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    best = stats.norm.ppf(0.5 + level / 2)

    def expected(low, high):
        n = np.ones(len(y))
        return interval_score(low=low * n, high=high * n, measured=y, level=level).mean()

    truth = expected(-best, best)
    others = [expected(-best * a, best * b) for a in (0.7, 1.0, 1.4) for b in (0.7, 1.0, 1.4)]
    assert truth == pytest.approx(min(others))
    assert sorted(others)[1] > truth


def clopper_pearson(hits, n, confidence=0.95):
    tail = (1 - confidence) / 2
    return stats.beta.ppf(tail, hits, n - hits + 1), stats.beta.isf(tail, hits + 1, n - hits)


def test_clusters_of_one_are_independent_outcomes():
    inside = np.array([True] * 15 + [False] * 5)
    share, low, high = coverage_interval(inside, np.arange(20))
    assert share == 0.75
    # The variance between clusters has one degree of freedom less.
    assert (low, high) == pytest.approx(clopper_pearson(0.75 * 19, 19))


def test_outcomes_of_one_cluster_count_once():
    inside = np.repeat([True, True, True, False], 25)
    share, low, high = coverage_interval(inside, np.repeat(np.arange(4), 25))
    ratio = (stats.t.ppf(0.975, 99) / stats.t.ppf(0.975, 3)) ** 2
    assert share == 0.75
    assert (low, high) == pytest.approx(clopper_pearson(0.75 * 3 * ratio, 3 * ratio))


def test_clusters_that_agree_with_each_other_count_as_one_outcome_each():
    found = coverage_interval(np.tile([True, False], 10), np.repeat(np.arange(10), 2))
    # There is no variance between them to see.
    assert found[1:] == pytest.approx(clopper_pearson(5, 10))


def test_clusters_of_unequal_size_say_less():
    inside = np.array([True] * 20)
    equal = coverage_interval(inside, np.repeat(np.arange(4), 5))[1]
    unequal = coverage_interval(inside, np.repeat(np.arange(4), [17, 1, 1, 1]))[1]
    assert unequal < equal == pytest.approx(0.025 ** (1 / 4))


@pytest.mark.parametrize("all_inside", [True, False])
def test_all_or_none(all_inside):
    share, low, high = coverage_interval(np.full(30, all_inside), np.repeat(np.arange(6), 5))
    assert share == float(all_inside)
    assert (high if all_inside else low) == float(all_inside)
    # Six clusters that agree are as six outcomes.
    assert (low if all_inside else 1 - high) == pytest.approx(0.025 ** (1 / 6))


def test_one_cluster_says_nothing_of_others():
    assert coverage_interval(np.array([True, False]), np.zeros(2, dtype=np.int64)) == (0.5, 0, 1)


def test_more_confidence_is_a_wider_interval():
    inside = np.array([True] * 8 + [False] * 2)
    narrow, wide = (coverage_interval(inside, np.arange(10), level=c)[1:] for c in (0.8, 0.99))
    assert wide[0] < narrow[0] < 0.8 < narrow[1] < wide[1]


def test_numbers_of_clusters_need_not_follow_each_other():
    inside = np.array([True, True, False])
    assert coverage_interval(inside, np.array([1, 5, 9])) == coverage_interval(inside, np.arange(3))
