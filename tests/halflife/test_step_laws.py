"""Tests of the noise that a search for steps learns; rates are in tests/statistical."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.halflife.noise import moderated_variances
from errcomp.halflife.steps.laws import bad_runs, learned, residuals
from errcomp.halflife.steps.null import autocorrelations
from errcomp.halflife.steps.scan import Batch


def batch_of(rows, *, sd=1.0, df=0.0):
    s, n = rows.shape
    return Batch.of(rows.ravel(), np.full(s * n, sd), np.arange(s + 1) * n, np.full(s, df))


def chained(size, rho, seed=0):
    x = np.random.default_rng(seed).standard_normal(size)
    for i in range(1, size[1]):
        x[:, i] = rho * x[:, i - 1] + math.sqrt(1 - rho**2) * x[:, i]
    return x


def mean_correlation(batch):
    chances = learned(batch, np.arange(len(batch.given))).correlated
    assert chances.sum(axis=1) == pytest.approx(1)
    return float((chances @ autocorrelations()).mean())


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("n", [12, 40])
def test_a_group_shows_its_correlation(n, rho):
    assert mean_correlation(batch_of(chained((200, n), rho))) == pytest.approx(rho, abs=0.07)


def test_a_series_alone_keeps_near_the_prior_and_clusters_count_once():
    batch = batch_of(chained((40, 12), 0.5, seed=3))
    one = learned(batch.take(np.array([0])), np.zeros(1)).correlated @ autocorrelations()
    assert 0.05 < one[0] < 0.3
    apart = learned(batch, np.arange(40)).correlated @ autocorrelations()
    alike = learned(batch, np.zeros(40)).correlated @ autocorrelations()
    # As one cluster the series say less, so each is nearer to the prior.
    assert alike.mean() < apart.mean()
    assert learned(batch.take(np.zeros(0, int)), np.zeros(0)).given.shape == (0,)


def test_steps_and_bad_runs_are_not_correlation():
    x = chained((200, 40), 0.0, seed=1)
    x += 4 * (np.arange(40) >= np.arange(200)[:, None] % 30 + 5)
    x[np.arange(200), np.arange(200) % 38 + 1] += 12
    left = residuals(batch_of(x))
    assert abs(np.nanmean(left.r)) < 0.12
    # Left in, they would make it 8.
    assert left.square.mean() == pytest.approx(1, abs=0.2)
    assert np.isnan(residuals(batch_of(np.zeros((1, 8)))).r).all()


def test_bad_runs_are_beyond_both_neighbours():
    x = np.tile([0.0, 1.0, -1.0, 0.5], 5)
    x[[4, 9]] += 30
    x[14:16] += 30
    x[17] -= 30
    above, below = bad_runs(batch_of(np.array([x, -x])))
    # Two together are not beyond both neighbours.
    assert above.tolist() == [2, 1]
    assert below.tolist() == [1, 2]


def test_runs_are_longer_where_bad_runs_are_frequent():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((100, 50))
    assert learned(batch_of(x), np.arange(100)).runs.tolist() == [[2, 2]] * 100
    x += 8 * (rng.random(x.shape) < 0.05)
    runs = learned(batch_of(x), np.arange(100)).runs
    assert (runs[:, 0] >= 3).mean() > 0.9
    assert (runs[:, 1] == 2).mean() > 0.95


def test_repeats_miss_what_the_group_shows():
    scale = np.exp(np.random.default_rng(4).normal(0.5, 0.3, (300, 1)))
    batch = batch_of(scale * chained((300, 20), 0.0), df=50.0)
    after = learned(batch, np.arange(300))
    left = residuals(batch)
    usual = moderated_variances(left.square, left.df)
    assert after.given == pytest.approx(usual.prior_variance, rel=0.1)
    assert after.df == pytest.approx(usual.prior_df, rel=0.3)
    assert after.df[0] < 50
    # Repeats that scatter more than validations stay as they are, and so do those of few series.
    loose = learned(batch_of(chained((300, 20), 0.0), sd=3.0, df=50.0), np.arange(300))
    assert loose.given == pytest.approx(9.0)
    few = learned(batch.take(np.arange(9)), np.arange(9))
    assert (few.given.tolist(), few.df.tolist()) == ([1.0] * 9, [50.0] * 9)
    # Ten series with one degree of freedom each do not show how similar they are.
    pairs = batch_of(chained((12, 2), 0.0), df=50.0)
    unknown = learned(pairs.take(np.arange(10)), np.arange(10))
    assert (unknown.given.tolist(), unknown.df.tolist()) == ([1.0] * 10, [50.0] * 10)
    assert learned(pairs, np.arange(12)).df[0] < 50
