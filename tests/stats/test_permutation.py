"""Values within groups, and how often chance gives as much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from errcomp.stats.permutation import shuffles, tail, variance_within, without_means


def test_the_variance_within_groups_is_pooled() -> None:
    values, group = np.array([1.0, 5.0, 2.0, 4.0, 6.0, 9.0]), np.array([3, 3, 8, 8, 8, 1])
    left = without_means(values, np.unique(group, return_inverse=True)[1])
    assert left.tolist() == [-2.0, 2.0, -2.0, 0.0, 2.0, 0.0]
    assert variance_within(values, group) == (pytest.approx(16 / 3), 3)
    alone, free = variance_within(np.array([1.0, 2.0]), np.array([0, 1]))
    assert math.isnan(alone)
    assert free == 0
    assert variance_within(np.empty(0), np.empty(0, dtype=np.int64))[1] == 0


def test_shuffles_stay_within_groups_and_are_the_same_each_time() -> None:
    values, group = np.arange(9.0), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    first, again = (list(shuffles(values, group, 40)) for _ in range(2))
    assert len(first) == 40
    assert np.array_equal(first, again)
    rng = np.random.default_rng(0)
    assert first[0].tolist() == values[np.lexsort((rng.random(9), group))].tolist()
    assert all(sorted(one[:4]) == [0, 1, 2, 3] for one in first)
    assert len({tuple(one) for one in first}) > 30


def test_within_the_shuffles_the_tail_is_their_share() -> None:
    chance = np.array([0.5, 1.0, 1.0, 2.0])
    assert [tail(value, chance) for value in (0.0, 0.5, 1.0, 1.5, 2.0)] == [1, 1, 0.75, 0.25, 0.25]


def test_beyond_the_shuffles_a_gamma_law_says_it() -> None:
    chance = np.array([1.0, 2.0, 4.0, 1.0])
    # Mean 2 and variance 1.5: shape 8/3, scale 3/4.
    assert tail(5.0, chance) == pytest.approx(stats.gamma(8 / 3, scale=0.75).sf(5.0))


@pytest.mark.parametrize("chance", [np.full(9, 2.0), np.zeros(9)])
def test_beyond_shuffles_that_are_all_equal_the_tail_counts_the_value_itself(
    chance: np.ndarray,
) -> None:
    assert tail(2.5, chance) == 0.1
    assert tail(chance[0], chance) == 1.0
