"""How often a rule fits a figure that has nothing to do with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.claims.replicate.chance import chance
from errcomp.claims.replicate.judging import Candidate, PrintedCell, judge, judge_range


def _cell(printed: str) -> PrintedCell:
    return PrintedCell("t", "Table 0", "second", "row", "column", printed, 0.0, "fraction")


@pytest.mark.parametrize("seed", range(3))
def test_unrelated_figures_fit_as_often_as_said(seed):
    rng = np.random.default_rng(seed)
    stated, unit = 100, 1
    others = rng.integers(50, 201, size=8)
    # The largest and smallest of the window: only the widest window holds them.
    said = chance([200], [[value] for value in others], [unit], stated=[stated])
    figures = rng.integers(50, 201, size=100_000)
    figures = figures[figures != stated]
    rate = np.isin(figures, others[others != stated]).mean()
    assert said == pytest.approx(rate, abs=4 * math.sqrt(said / len(figures)))
    # The same figures as the laws of the module: the largest share of any window is no less.
    assert chance([101], [[value] for value in others], [unit], stated=[stated]) >= said / 2


def test_ranges_are_drawn_end_by_end():
    rng = np.random.default_rng(1)
    others = [(8, 30), (12, 24), (5, 21)]
    said = chance([20, 50], others, [1, 1], stated=[10, 25])
    draws = np.column_stack([rng.integers(5, 21, 200_000), rng.integers(13, 51, 200_000)])
    draws = draws[~((draws[:, 0] == 10) & (draws[:, 1] == 25))]
    rate = np.mean([tuple(pair) in others for pair in draws.tolist()])
    assert said == pytest.approx(3 / (16 * 38 - 1))
    assert rate == pytest.approx(said, abs=4 * math.sqrt(said / len(draws)))


def test_by_hand():
    # Within a factor of 1.02: 99, 101 and 102. Of 1.05: 96 to 105 without 100.
    assert chance([101], [[101]], [1], stated=[100]) == 1 / 3
    assert chance([105], [[105]], [1], stated=[100]) == 1 / 9
    # The stated figure itself is no success of another rule.
    assert chance([105], [[100], [100]], [1], stated=[100]) == 0
    # Further away than a factor of 2, or without a stated rule: around the printed figure.
    assert chance([10], [[10]], [1], stated=[100]) == 1 / 16
    assert chance([10], [[10], [11]], [1]) == 2 / 16
    assert chance([10], [[11]], [1], stated=[10]) == 1 / 15
    # Rules that give the same figure are one.
    assert chance([10], [[11], [11], [30]], [1]) == 1 / 16


def test_finer_figures_prove_more():
    coarse = judge(_cell("9%"), [Candidate("mean", 0.06, True), Candidate("median", 0.0912)])
    fine = judge(_cell("9.12%"), [Candidate("mean", 0.06, True), Candidate("median", 0.0912)])
    assert coarse.status == fine.status == "reproduced under another rule"
    assert (coarse.tried, fine.tried) == (2, 2)
    assert coarse.chance > 50 * fine.chance


def test_the_stated_rule_needs_no_chance_and_a_failure_has_one():
    rules = [Candidate("mean", 0.06, True), Candidate("median", 0.0912)]
    assert judge(_cell("6%"), rules).chance is None
    failed = judge(_cell("7%"), rules)
    assert (failed.status, failed.tried) == ("not reproduced", 2)
    assert failed.chance == 1 / 5  # from 4 to 9 % without 6 %
    assert judge(_cell("7%"), rules[:1]).chance is None
    assert judge(_cell("<7%"), [rules[1]]).chance is None


def test_both_ends_of_a_range_have_the_chance_of_the_pair():
    rules = [Candidate("all", (0.02, 0.2), True), Candidate("some", (0.05, 0.1))]
    low, high = judge_range(_cell("5%"), _cell("10%"), rules)
    assert (low.tried, low.chance) == (high.tried, high.chance)
    assert low.chance == 1 / ((10 - 3 + 1) * (20 - 5 + 1))  # further than 2: around the printed
    outwards = Candidate("some", (0.056, 0.093), outwards=True)
    assert judge_range(_cell("5%"), _cell("10%"), [rules[0], outwards])[0].chance == low.chance


def test_a_search_brings_its_own_chance():
    found = Candidate("a subset", 0.0912, searched=(1000, 0.25))
    cell = judge(_cell("9.1%"), [Candidate("mean", 0.06, True), found])
    assert (cell.tried, cell.chance) == (1000, 0.25)
    many = Candidate("a subset", 0.0912, searched=(1000, 7.0))
    assert judge(_cell("9.1%"), [Candidate("mean", 0.06, True), many]).chance == 1.0
