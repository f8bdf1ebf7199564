"""Tests of likeness by hand: exact p, few groups, distances, ranges, bad input.

False alarms and power are simulated in tests/statistical.
"""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.bands.exchangeability import (
    errors_exchangeable,
    features_exchangeable,
    nearest_of_groups,
    scales,
)
from errcomp.errors import InputError


def old_runs(groups=20, size=4, features=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((groups * size, features)), np.repeat(np.arange(groups), size)


# Errors


def test_p_of_the_largest_group_is_the_smallest_possible():
    scores, groups = np.arange(60.0), np.repeat(np.arange(20), 3)
    found = errors_exchangeable(scores, groups, [100.0, 101.0])
    assert found.p == found.smallest_p == 1 / 21
    assert found.alarm
    assert found.method == "choices of groups"
    assert (found.groups_old, found.groups_new, found.n_old, found.n_new) == (20, 1, 60, 2)


@pytest.mark.parametrize(("larger", "p"), [(0, 1 / 20), (1, 2 / 20), (7, 8 / 20), (19, 1.0)])
def test_exact_p_counts_groups_as_large(larger, p):
    # Old groups have the scores 0 to 18.
    found = errors_exchangeable(np.arange(19.0), np.arange(19), [18.5 - larger])
    assert found.p == pytest.approx(p)
    # 19 old groups can just raise an alarm at 5 %.
    assert found.alarm == (larger == 0)


def test_exact_p_of_several_new_groups_by_hand():
    rng = np.random.default_rng(1)
    scores, groups = rng.random(27), np.repeat(np.arange(9), 3)
    old = groups < 6
    found = errors_exchangeable(scores[old], groups[old], scores[~old], groups_new=groups[~old])
    ranks = stats.norm.ppf((stats.rankdata(scores) - 0.5) / 27).reshape(9, 3).mean(axis=1)
    mine = ranks[6:].mean()
    choices = [ranks[list(chosen)].mean() >= mine - 1e-12 for chosen in combinations(range(9), 3)]
    assert found.p == pytest.approx(np.mean(choices))
    assert found.smallest_p == pytest.approx(1 / 84)


def test_many_choices_are_drawn_with_a_seed():
    rng = np.random.default_rng(1)
    old, new = np.abs(rng.standard_normal(60)), np.abs(rng.standard_normal(12)) * 1.3
    groups, groups_new = np.repeat(np.arange(20), 3), np.repeat(np.arange(4), 3)
    p = [
        errors_exchangeable(old, groups, new, groups_new=groups_new, seed=seed).p
        for seed in (0, 0, 1, 2, 3)
    ]
    assert p[0] == p[1]
    assert len(set(p)) > 2
    # Normal scores of groups are near normal: the share of choices is near a normal tail.
    ranks = stats.norm.ppf((stats.rankdata(np.concatenate([old, new])) - 0.5) / 72)
    means = ranks.reshape(24, 3).mean(axis=1)
    spread = means.std() * np.sqrt(20 / (4 * 23))
    assert p[0] == pytest.approx(stats.norm.sf(means[20:].mean() / spread), abs=0.05)
    assert errors_exchangeable(old, groups, 100 + new, groups_new=groups_new).smallest_p == 1e-3


def test_errors_are_drawn_with_the_seed_0_unless_another_is_given():
    x, groups = old_runs(24, 1, features=1)
    size, old = np.abs(x[:, 0]), groups < 20

    def p(**seed):
        new = {"groups_new": groups[~old], **seed}
        return errors_exchangeable(size[old], groups[old], 1.3 * size[~old], **new).p

    assert p() == p(seed=0) != p(seed=1)


def test_few_groups_use_the_t_of_groups():
    rng = np.random.default_rng(2)
    scores, groups = rng.random(24), np.repeat(np.arange(8), 3)
    found = errors_exchangeable(scores, groups, scores[:3] * 0.9)
    assert found.method == "t of groups"
    assert found.smallest_p == 1 / 9
    assert "approximate with only 8 old groups and 1 new group)" in found.verdict
    far = errors_exchangeable(scores, groups, [50.0, 60.0, 70.0])
    assert far.alarm
    assert 0 < far.p < 0.05 < 1 / 9
    assert far.verdict.startswith("The new runs have larger errors")


def test_the_t_of_groups_by_hand():
    scores, groups = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)
    found = errors_exchangeable(scores, groups, [5.0])
    normal = stats.norm.ppf((np.arange(1, 6) - 0.5) / 5)
    t = (normal[4] - normal[:4].mean()) / (normal[:4].std(ddof=1) * np.sqrt(1.25))
    assert found.p == pytest.approx(stats.t.sf(t, 1.5))


def test_smaller_errors_raise_no_alarm():
    scores, groups = 1 + np.random.default_rng(0).random(60), np.repeat(np.arange(20), 3)
    assert errors_exchangeable(scores, groups, [0.1, 0.2]).p == 1.0


def test_equal_errors_raise_no_alarm():
    for groups in (8, 20):
        found = errors_exchangeable(np.ones(2 * groups), np.repeat(np.arange(groups), 2), [1.0])
        assert found.p > 0.4


def test_row_p_weighs_groups_alike():
    scores = np.array([1.0] * 10 + [2.0, 3.0])
    found = errors_exchangeable(scores, [0] * 10 + [1, 2], [0.5, 1.5, 2.5, 9.0])
    np.testing.assert_allclose(found.row_p, [1.0, 3 / 4, 2 / 4, 1 / 4])


# Features


def test_new_groups_like_the_old_raise_no_alarm_and_far_ones_do():
    x, groups = old_runs(21)
    old = groups < 20
    same = features_exchangeable(x[old], groups[old], x[~old])
    assert not same.alarm
    assert same.verdict.startswith("The features of the new runs differ no more from the old")
    far = features_exchangeable(x[old], groups[old], x[~old] + 5, names=["a", "b", "c"])
    assert far.alarm
    assert far.p == far.smallest_p == 1 / 21
    assert far.verdict.startswith("The features of the new runs differ more from the old gr")
    assert "Features outside the range of the old runs: " in far.verdict
    assert (far.row_p == 1 / 21).all()
    assert same.row_p.min() > 1 / 21


def test_exact_p_of_features_by_brute_force():
    x, groups = old_runs(7, 3, seed=4)
    old = groups < 5
    found = features_exchangeable(x[old], groups[old], x[~old], groups_new=groups[~old])
    s = np.subtract(*np.quantile(x, [0.75, 0.25], axis=0)) / 1.349
    d = np.sqrt((((x[:, None] - x[None]) / s) ** 2).mean(axis=2))

    def statistic(chosen):
        rest = ~np.isin(groups, chosen)
        return np.mean([np.log(0.05 + d[groups == g][:, rest].min(axis=1).mean()) for g in chosen])

    mine = statistic((5, 6))
    every = [statistic(chosen) >= mine - 1e-9 for chosen in combinations(range(7), 2)]
    assert found.method == "choices of groups"
    assert found.p == pytest.approx(np.mean(every))


def test_features_are_compared_with_the_seed_0_unless_another_is_given():
    x, groups = old_runs(24, 1)
    old = groups < 20

    def p(**seed):
        new = {"groups_new": groups[~old], **seed}
        return features_exchangeable(x[old], groups[old], 1.3 * x[~old], **new).p

    assert p() == p(seed=0) != p(seed=1)


def test_two_strange_groups_do_not_hide_each_other():
    x, groups = old_runs(8, 4)
    x[groups >= 6] += 8
    old = groups < 6
    found = features_exchangeable(x[old], groups[old], x[~old], groups_new=groups[~old])
    assert found.p == found.smallest_p == pytest.approx(1 / 28)


def test_few_groups_of_features():
    x, groups = old_runs(6, 4)
    old = groups < 5
    assert features_exchangeable(x[old], groups[old], x[~old]).p > 0.05
    found = features_exchangeable(x[old], groups[old], x[~old] + 8)
    assert found.method == "t of groups"
    assert found.alarm
    assert "approximate" in found.verdict


def test_units_and_offsets_of_features_do_not_matter():
    x, groups = old_runs(21)
    old, scale = groups < 20, np.array([1e-6, 1.0, 1e9])
    one = features_exchangeable(x[old], groups[old], x[~old] + 1)
    other = features_exchangeable(x[old] * scale + 7, groups[old], (x[~old] + 1) * scale + 7)
    assert one.p == other.p
    np.testing.assert_array_equal(one.row_p, other.row_p)


def test_copies_of_old_runs_are_near():
    x, groups = old_runs(20)
    found = features_exchangeable(x, groups, x[:4])
    assert found.p == 1.0
    assert found.outside == ()


def test_a_feature_that_is_constant_or_never_known_says_nothing():
    x, groups = old_runs(8)
    dull = np.column_stack([x, np.ones(32), np.full(32, np.nan)])
    new = dull[:4] + 3
    new[:, 3] = 1
    assert features_exchangeable(dull, groups, new).p == pytest.approx(
        features_exchangeable(x, groups, x[:4] + 3).p
    )


def test_a_value_that_the_old_runs_never_had():
    # All old runs are inference, the new ones training; nothing else varies.
    x, groups = np.zeros((40, 1)), np.repeat(np.arange(20), 2)
    found = features_exchangeable(x, groups, [[1.0], [1.0]], names=["training"])
    assert found.alarm
    (outside,) = found.outside
    assert (outside.name, outside.value, outside.low, outside.high) == ("training", 1.0, 0.0, 0.0)
    assert outside.rows == 2


def test_missing_values():
    x, groups = old_runs(20)
    new = x[:4].copy()
    new[:, 1] = np.nan
    found = features_exchangeable(x, groups, new, names=["a", "b", "c"])
    assert found.missing == ("b",)
    # Where old runs miss them too it is no news.
    x[:40, 1] = np.nan
    again = features_exchangeable(x, groups, new, names=["a", "b", "c"])
    assert again.missing == ()
    assert again.p == 1.0


def test_distance_with_missing_values_by_hand():
    x = np.array([[0.0, 0.0], [2.0, np.nan], [4.0, 1.0], [6.0, np.nan]])
    found = nearest_of_groups(x, np.arange(4), np.array([2.0, 1.0]))
    assert found[0, 1] == pytest.approx(np.sqrt((1 + 1) / 2))  # missing on one side
    assert found[1, 3] == pytest.approx(np.sqrt((4 + 0) / 2))  # on both
    assert found[0, 2] == pytest.approx(np.sqrt((4 + 1) / 2))
    np.testing.assert_allclose(found, found.T)


def test_blocks_of_rows_change_nothing(monkeypatch):
    x, groups = old_runs(5, 6)
    scale = scales(x)
    whole = nearest_of_groups(x, groups, scale)
    monkeypatch.setattr("errcomp.calibration.bands.exchangeability._BLOCK", 1)
    np.testing.assert_array_equal(nearest_of_groups(x, groups, scale), whole)


def test_scales_are_robust_and_fall_back_to_the_standard_deviation():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(4000)
    normal[:40] = 1e9
    rare = (np.arange(4000) < 400).astype(float)
    found = scales(np.column_stack([normal, rare, np.ones(4000), np.full(4000, np.nan)]))
    np.testing.assert_allclose(found, [1.0, 0.3, 0.0, 0.0], atol=0.05)


def test_wild_values_neither_overflow_nor_pass():
    x, groups = old_runs(20)
    found = features_exchangeable(x, groups, x[:2] + np.array([0, 0, 1e200]))
    assert found.alarm
    assert np.isfinite(found.outside[0].distance)


def test_report_of_ranges_worst_first():
    x, groups = old_runs(20)
    new = x[:3].copy()
    new[0, 0] = x[:, 0].max() + 2
    new[1, 1] = x[:, 1].min() - 7
    new[2, 1] = x[:, 1].max() + 3
    found = features_exchangeable(x, groups, new, names=["a", "b", "c"])
    b, a = found.outside
    assert (a.name, a.rows, a.value) == ("a", 1, new[0, 0])
    assert (b.name, b.rows, b.value) == ("b", 2, new[1, 1])
    assert (b.low, b.high) == (x[:, 1].min(), x[:, 1].max())
    assert a.distance == pytest.approx(2 / scales(np.concatenate([x, new]))[0])
    plain = features_exchangeable(x, groups, new)
    assert [one.name for one in plain.outside] == ["feature 1", "feature 0"]


def test_result_is_frozen_and_goes_to_json():
    x, groups = old_runs(20)
    found = features_exchangeable(x, groups, x[:3] + 9, names=["a", "b", "c"])
    with pytest.raises(FrozenInstanceError):
        found.p = 0.5
    values = json.loads(json.dumps(found.to_dict()))
    assert values["alarm"] is True
    assert values["outside"][0]["rows"] == 3
    assert len(values["row_p"]) == 3
    assert values["missing"] == []


# Bad input


@pytest.mark.parametrize("alpha", [0, 1, -0.1, "0.05", True])
def test_alpha(alpha):
    with pytest.raises(InputError, match="alpha must be between 0 and 1"):
        errors_exchangeable([1, 2, 3], [0, 1, 2], [1], alpha=alpha)


def test_too_few_old_groups():
    with pytest.raises(InputError, match="needs at least 3 old groups, got 2"):
        errors_exchangeable([1, 2, 3], [0, 1, 1], [1])
    with pytest.raises(InputError, match="needs at least 3 old groups, got 1"):
        features_exchangeable(np.eye(3), [0, 0, 0], np.eye(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_new": np.zeros((2, 2))}, "same features, got 3 and 2"),
        ({"x_new": np.full((2, 3), np.inf)}, "x_new must be finite, got inf in rows 0, 1"),
        ({"x_new": np.zeros(3)}, "x_new must have 2 dimension"),
        ({"names": ["a"]}, "there must be 3 names, one per feature, got 1"),
        ({"groups_old": [1]}, "groups_old must be 80 names"),
        ({"groups_new": [1, None]}, "groups_new must be known, got None in row 1"),
        ({"x_old": np.zeros((80, 3)), "x_new": np.zeros((2, 3))}, "no feature varies"),
    ],
)
def test_bad_features(change, message):
    x, groups = old_runs(20)
    given = {"x_old": x, "groups_old": groups, "x_new": x[:2], **change}
    with pytest.raises(InputError, match=message):
        features_exchangeable(**given)


def test_bad_errors():
    with pytest.raises(InputError, match="scores_new must be finite, got nan in row 0"):
        errors_exchangeable([1, 2, 3], [0, 1, 2], [np.nan])
