"""Shares of comparisons: the jackknife over alternatives written out, and where it says nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp.stats.comparisons import FEWEST, Share, share_of_comparisons


def every_two(count: int) -> tuple[np.ndarray, np.ndarray]:
    one, two = np.triu_indices(count, 1)
    return one, two


def test_fewer_than_five_alternatives_have_no_interval() -> None:
    assert FEWEST == 5
    for count, there in ((2, False), (4, False), (5, True), (6, True)):
        one, two = every_two(count)
        right = np.arange(len(one)) % 3 > 0
        # Numbers without comparisons are no alternatives.
        found = share_of_comparisons(right, 10 * one, 10 * two)
        assert (found is not None) == there
        assert found is None or found.alternatives == count


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_is_that_of_alternatives_left_out_one_by_one(level: float) -> None:
    one, two = every_two(7)
    # One alternative is mostly wrong.
    right = np.where((one == 2) | (two == 2), one % 2 == 1, (one + two) % 5 > 0)
    found = share_of_comparisons(right, one, two, level)
    assert found is not None
    share = right.mean()
    without = [right[(one != i) & (two != i)].mean() for i in range(7)]
    variance = 6 / 7 * sum((value - np.mean(without)) ** 2 for value in without)
    n = share * (1 - share) / variance
    assert n < len(right)
    z = stats.t.ppf((1 + level) / 2, 6)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    expected = Share(share, middle - half, middle + half, 7, n)
    assert found == pytest.approx(expected)


def test_where_all_are_right_each_alternative_counts_as_one() -> None:
    one, two = every_two(6)
    found = share_of_comparisons(np.ones(15, dtype=bool), one, two)
    assert found is not None
    assert (found.value, found.high, found.alternatives, found.effective) == (1.0, 1.0, 6, 6)
    z = stats.t.ppf(0.975, 5)
    assert found.low == pytest.approx(6 / (6 + z * z))
    # Never more than there are comparisons.
    few = share_of_comparisons(np.zeros(3, dtype=bool), np.array([0, 2, 4]), np.array([1, 3, 5]))
    assert few is not None
    assert (few.value, few.low, few.effective) == (0.0, 0.0, 3)
    assert few.high == pytest.approx(z * z / (3 + z * z))


def test_independent_comparisons_count_in_full_at_most() -> None:
    one, two = np.arange(0, 20, 2), np.arange(1, 20, 2)
    right = np.arange(10) < 7
    found = share_of_comparisons(right, one, two)
    assert found is not None
    assert found.effective <= 10
    without = [np.delete(right, i // 2).mean() for i in range(20)]
    variance = 19 / 20 * sum((value - np.mean(without)) ** 2 for value in without)
    assert found.effective == pytest.approx(min(0.7 * 0.3 / variance, 10))


def test_alternatives_that_are_right_equally_often_count_each_comparison_once() -> None:
    one, two = every_two(5)
    # Each alternative is right in two of its four comparisons.
    found = share_of_comparisons((two - one) % 3 == 1, one, two)
    assert found is not None
    assert (found.value, found.effective) == (0.5, 10)
