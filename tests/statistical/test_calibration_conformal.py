"""Do calibrated bands hold runs of new groups? Do tests of likeness raise false alarms?

Scores are sizes of errors with a share of their variance between groups. Coverage is computed, not
counted: of each calibration set the quantile is put into the true distribution of a new group's
score, which leaves the noise of calibration sets alone.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.bands import (
    groups_needed,
    hierarchical_quantile,
    pooled_quantile,
)
from errcomp.calibration.bands.conformal import GroupConformal, cv_plus, split_conformal
from errcomp.calibration.bands.exchangeability import errors_exchangeable, features_exchangeable
from errcomp.calibration.design import LEVELS

Z = stats.norm.ppf(0.5 + np.array(LEVELS) / 2)


def noise(rng, tail, size):
    """Errors of variance 1; tail is the degrees of freedom of a Student t, or None."""
    if tail is None:
        return rng.standard_normal(size)
    return rng.standard_t(tail, size) * np.sqrt((tail - 2) / tail)


def hierarchy(rng, groups, share, tail=None, sizes=None):
    sizes = rng.integers(1, 21, groups) if sizes is None else sizes
    group = np.repeat(np.arange(groups), sizes)
    shared = np.sqrt(share) * noise(rng, tail, groups)[group]
    return shared + np.sqrt(1 - share) * noise(rng, tail, len(group)), group


@cache
def law(share, tail):
    """Sorted sizes of errors of runs of new groups."""
    rng, n = np.random.default_rng(99), 100_000
    x = np.sqrt(share) * noise(rng, tail, n) + np.sqrt(1 - share) * noise(rng, tail, n)
    return np.sort(np.abs(x))


def coverages(groups, share, tail, quantiles, *, reps, sizes=None):
    """Return the coverage of new groups, shape (reps, levels)."""
    rng = np.random.default_rng([groups, int(10 * share), tail or 0])
    truth, found = law(share, tail), np.empty((reps, len(LEVELS)))
    for i in range(reps):
        errors, group = hierarchy(rng, groups, share, tail, sizes)
        found[i] = np.searchsorted(truth, quantiles(np.abs(errors), group)) / len(truth)
    return found


def pooled(scores, group):
    return [pooled_quantile(scores, group, level).value for level in LEVELS]


def rows(scores, group):
    return [hierarchical_quantile(scores, np.arange(len(scores)), level) for level in LEVELS]


SHARES, TAILS = (0.0, 0.3, 0.6, 0.9), (None, 4)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [3, 4, 5, 8, 14, 20])
def test_pooled_is_near_its_levels_for_new_groups(groups):
    reps = 80
    cells = [
        coverages(groups, share, tail, pooled, reps=reps) for share in SHARES for tail in TAILS
    ]
    mean = np.mean(cells, axis=(0, 1))
    # Noise of the mean, from the calibration sets themselves, three times.
    slack = 3 * np.std(cells, axis=1).mean(axis=0) / np.sqrt(reps * len(cells))
    assert (mean - slack <= [0.55, 0.83, 0.93, 0.97]).all()
    assert (mean + slack >= [0.49, 0.79, 0.89, 0.94]).all()
    # ... and so in each cell.
    slack = 3 * np.std(cells, axis=1) / np.sqrt(reps)
    at_90 = np.mean(cells, axis=1)[:, 2]
    assert (at_90 + slack[:, 2] >= 0.88).all()
    assert (at_90 - slack[:, 2] <= 0.93).all()


@pytest.mark.slow
def test_pooled_bears_unequal_groups_and_one_row_per_group():
    for sizes in (np.ones(8, int), np.array([20, 1, 2, 3, 1, 2, 3, 1]), np.full(8, 20)):
        cells = [
            coverages(8, share, tail, pooled, reps=40, sizes=sizes)
            for share in SHARES
            for tail in TAILS
        ]
        assert 0.88 < np.mean(cells, axis=(0, 1))[2] < 0.93


@pytest.mark.slow
def test_rows_alone_miss_new_groups():
    found = coverages(4, 0.9, None, rows, reps=200)
    assert (found.mean(axis=0)[1:] < [0.78, 0.86, 0.91]).all()


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_guarantee_holds_from_the_fewest_groups_on(level):
    at = LEVELS.index(level)
    for groups in (groups_needed(level), 2 * groups_needed(level) + 1):
        for share in SHARES:
            found = coverages(
                groups,
                share,
                4,
                lambda s, g: [hierarchical_quantile(s, g, v) for v in LEVELS],
                reps=150,
                sizes=None,
            )[:, at]
            slack = 3 * found.std() / np.sqrt(len(found))
            assert found.mean() + slack >= level
            # The most it covers too much, with what rows interpolate.
            assert found.mean() - slack <= min(1.0, level + (1 + level) / groups)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.5, 1.0, 2.0])
def test_bands_of_a_model_fitted_without_the_group(wrong):
    """The whole way: a location model, each group predicted without itself, a band of any width."""
    rng, reps = np.random.default_rng(int(10 * wrong)), 400
    hits: list[list[np.ndarray]] = []
    for i in range(reps):
        groups, share = int(rng.integers(4, 13)), (0.2, 0.5, 0.8)[i % 3]
        y, group = hierarchy(rng, groups + 1, share, (None, 4)[i % 2])
        old = group < groups
        means = np.bincount(group[old], y[old]) / np.bincount(group[old])
        median = ((means.sum() - means) / (groups - 1))[group[old]]
        ends = wrong * Z
        bands = GroupConformal(method="pooled").fit(
            median, median[:, None] - ends, median[:, None] + ends, y[old], group[old]
        )
        new = np.full((~old).sum(), means.mean())
        low, high = bands.apply(new, new[:, None] - ends, new[:, None] + ends)
        hits.append([((low <= y[~old, None]) & (y[~old, None] <= high)).mean(axis=0)])
    found = np.concatenate(hits)
    slack = 3 * found.std(axis=0) / np.sqrt(reps)
    share = found.mean(axis=0)
    assert 0.45 - slack[0] < share[0] < 0.55 + slack[0]
    assert 0.87 - slack[2] < share[2] < 0.93 + slack[2]


@pytest.mark.slow
def test_categories_are_each_near_their_level():
    """Errors of the second category are three times as large; all together hide that."""
    rng, reps = np.random.default_rng(8), 150
    own, all_together = np.empty((reps, 2)), np.empty((reps, 2))
    truth = law(0.3, None)
    for i in range(reps):
        errors, group = hierarchy(rng, 12, 0.3, sizes=np.full(12, 8))
        category = np.tile(["a", "b"], 48)
        y = np.where(category == "b", 3 * errors, errors)
        zero, end = np.zeros(len(y)), np.ones((len(y), 1))
        found = GroupConformal([0.9], "pooled").fit(zero, -end, end, y, group, category=category)
        factors = np.array([found.categories_[name][0].factor for name in ("a", "b")])
        own[i] = np.searchsorted(truth, factors / [1, 3]) / len(truth)
        all_together[i] = np.searchsorted(truth, found.factors_ / np.array([1, 3])) / len(truth)
    np.testing.assert_allclose(own.mean(axis=0), 0.9, atol=0.03)
    assert all_together.mean(axis=0)[0] > 0.97
    assert all_together.mean(axis=0)[1] < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("by_group", [False, True])
def test_cv_plus_and_split_conformal_cover(by_group):
    """Location models without row i, or without its group; new runs of new groups."""
    rng, reps, level = np.random.default_rng(4), 1500, 0.8
    hits = np.zeros((reps, 2))
    for i in range(reps):
        sizes = np.full(13, 3) if by_group else np.ones(13, int)
        y, group = hierarchy(rng, 13, 0.7, sizes=sizes)
        new, old, index = y[-1], y[group < 12], group[group < 12]
        without = (old.sum() - np.bincount(index, old)[index]) / (len(old) - np.bincount(index)[0])
        groups = index if by_group else None
        low, high = cv_plus(without[None], old - without, level, groups=groups)
        half = split_conformal(old, level, groups=groups)
        hits[i] = low[0] <= new <= high[0], abs(new) <= half
    share = hits.mean(axis=0)
    noise_of = 3 * np.sqrt(level * (1 - level) / reps)
    assert (share >= level - noise_of).all()
    assert (share <= level + 2 / 13 + noise_of).all()


def alarms(groups, new_groups, reps, *, seed, factor=1.0, shift=0.0):
    """Rates of alarms of errors and of features over shares and tails."""
    rng, found = np.random.default_rng(seed), np.zeros((reps, 2))
    for i in range(reps):
        share, tail = (0.0, 0.5, 0.9)[i % 3], (None, 4)[i % 2]
        errors, group = hierarchy(rng, groups + new_groups, share, tail)
        old, scores = group < groups, np.abs(errors)
        found[i, 0] = errors_exchangeable(
            scores[old], group[old], factor * scores[~old], groups_new=group[~old]
        ).alarm
        sizes = rng.integers(1, 7, groups + new_groups)
        x = np.column_stack(
            [hierarchy(rng, groups + new_groups, share, tail, sizes)[0] for _ in range(4)]
        )
        x[:, 0], group = np.sign(x[:, 0]), np.repeat(np.arange(len(sizes)), sizes)
        x[rng.random(x.shape) < 0.05] = np.nan
        old = group < groups
        found[i, 1] = features_exchangeable(
            x[old], group[old], x[~old] + shift * np.array([0, 0, 1, 1]), groups_new=group[~old]
        ).alarm
    return found.mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "new_groups"), [(3, 1), (5, 1), (8, 1), (20, 1), (7, 2)])
def test_false_alarms(groups, new_groups):
    reps = 300
    rates = alarms(groups, new_groups, reps, seed=groups)
    # The t of few groups is approximate: one point more.
    claim = 0.05 if groups in (7, 20) else 0.06
    assert (rates <= claim + 3 * np.sqrt(claim * (1 - claim) / reps)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "new_groups"), [(8, 1), (20, 1), (7, 2)])
def test_power(groups, new_groups):
    rates = alarms(groups, new_groups, 90, seed=1, factor=6.0, shift=4.0)
    assert rates[0] > 0.6
    assert rates[1] > 0.8
