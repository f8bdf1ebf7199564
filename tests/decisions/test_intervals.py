"""Intervals of shares and regrets: closed forms, corners, and which rows are together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from errcomp.decisions.intervals import best_taken, mean_regret, share_right
from errcomp.stats.comparisons import wilson


def every_pair(count: int) -> tuple[np.ndarray, np.ndarray]:
    one, two = np.array(list(combinations(range(count), 2))).T
    return one, two


@pytest.mark.extras
def test_wilson_is_that_of_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    expected = proportion.proportion_confint(27, 30, method="wilson")
    assert wilson(0.9, 30, 1.959964) == pytest.approx(expected, abs=1e-6)


def test_the_jackknife_leaves_out_each_alternative() -> None:
    one, two = every_pair(6)
    right = one != 0  # every comparison of the first alternative is wrong
    found = share_right(right, one, two, np.zeros(15, dtype=int))
    without = [right[(one != a) & (two != a)].mean() for a in range(6)]
    variance = 5 / 6 * np.sum((np.array(without) - np.mean(without)) ** 2)
    effective = found.value * (1 - found.value) / variance
    assert found.value == pytest.approx(10 / 15)
    assert f"{effective:.3g} effective comparisons" in found.method
    assert found.low < 0.3
    assert found.high > 0.9


def test_all_right_counts_each_alternative_once() -> None:
    one, two = every_pair(8)
    found = share_right(np.ones(28, dtype=bool), one, two, np.zeros(28, dtype=int))
    assert found.method == "Wilson, 8 alternatives, 8 effective comparisons"
    assert 0.5 < found.low < 0.7
    assert found.high == pytest.approx(1)


def test_few_alternatives_are_taken_as_given() -> None:
    one, two = np.zeros(40, dtype=int), np.ones(40, dtype=int)
    right, group = np.arange(40) % 4 > 0, np.repeat(np.arange(10), 4)
    found = share_right(right, one, two, group)
    assert found.method.startswith("wilson")
    assert found.low < 0.75 < found.high


def test_the_mean_regret_is_the_mean() -> None:
    regret = np.array([0.0, 0.1, 0.0, 0.3, 0.05, 0.2])
    found = mean_regret(regret, np.arange(6), "")
    assert found.value == pytest.approx(regret.mean())
    assert found.low is not None
    assert found.low < found.value < found.high
    nothing = mean_regret(np.zeros(4), np.arange(4), "")
    assert (nothing.value, nothing.low, nothing.method) == (
        0.0,
        None,
        "no interval: no choice lost time",
    )


def test_the_best_share_has_groups() -> None:
    best = np.array([True, True, False, True, True, True])
    found = best_taken(best, np.array([0, 0, 1, 1, 2, 2]), "model")
    assert found.value == pytest.approx(5 / 6)
    assert found.figure == "best_share"
