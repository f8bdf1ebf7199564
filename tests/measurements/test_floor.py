"""The floor of repeats of which most agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.measurements.floor import absolute_to_mape, floor_of_repeats
from errcomp.measurements.noise import Repeats, repeats_of


def groups_of(n: int, size: int, changed: dict[int, float]) -> Repeats:
    """Groups of equal logarithms, but for those of some rows."""
    logs = np.zeros(n * size)
    for row, value in changed.items():
        logs[row] = value
    return repeats_of(np.repeat(np.arange(n), size), logs, np.ones(n * size, dtype=bool))


def test_repeats_that_all_agree_have_no_floor_and_no_interval() -> None:
    found = floor_of_repeats(groups_of(10, 2, {}))
    assert found.mape == 0.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_where_most_repeats_agree_the_floor_is_that_of_normal_noise() -> None:
    # Ten pairs, of which two differ by 0.1: E|e| is the mean difference over the root of 2.
    found = floor_of_repeats(groups_of(10, 2, {1: 0.1, 3: -0.1}))
    assert found.mape == pytest.approx(absolute_to_mape(0.02 / math.sqrt(2)), rel=1e-9)
    assert 0 < found.low < found.mape < found.high


def test_a_single_group_that_differs_gives_no_interval() -> None:
    found = floor_of_repeats(groups_of(10, 2, {1: 0.1}))
    assert found.mape == pytest.approx(absolute_to_mape(0.01 / math.sqrt(2)), rel=1e-9)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_rows_count_with_their_weight() -> None:
    repeats = groups_of(10, 2, {1: 0.1, 3: 0.1})
    weight = np.array([3.0, 1.0, *[1.0] * 8])
    found = floor_of_repeats(repeats, weight)
    assert found.mape == pytest.approx(absolute_to_mape(0.4 / 12 / math.sqrt(2)), rel=1e-9)


def test_three_repeats_that_agree_are_not_skewed() -> None:
    # In 25 groups of four, only the last row of each differs: by 0.1 from three of the six pairs.
    found = floor_of_repeats(groups_of(25, 4, {4 * i + 3: 0.1 for i in range(25)}))
    assert found.mape == pytest.approx(absolute_to_mape(0.05 / math.sqrt(2)), rel=1e-9)


@pytest.mark.parametrize("n", [4, 5])
def test_five_groups_have_an_interval(n: int) -> None:
    changed = {2 * i: 0.01 * (i + 1) for i in range(n)}
    found = floor_of_repeats(groups_of(n, 2, changed))
    assert math.isnan(found.low) == math.isnan(found.high) == (n < 5)
    assert found.mape > 0
