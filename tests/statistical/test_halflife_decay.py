"""Simulated coverage of half-lives by smooth decay, and how often it is seen without reason."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.halflife.estimators.decay import decay_half_lives
from errcomp.halflife.panel import Panel

pytestmark = pytest.mark.slow

SERIES = 1000
THRESHOLD = 0.1


def found_in(rows):
    s, n = rows.shape
    panel = Panel(
        versions=tuple(map(str, range(n))),
        months=np.arange(float(n)),
        names=tuple(map(str, range(s))),
        clusters=np.arange(s),
        starts=np.arange(s + 1) * n,
        version=np.tile(np.arange(n), s),
        error=rows.ravel(),
        sd=np.full(s * n, np.nan),
        noise_df=np.zeros(s),
        frozen_at_first=False,
    )
    half_lives = decay_half_lives(panel, threshold=THRESHOLD)
    return np.array(
        [(half_life.low, half_life.high) for half_life in half_lives if not half_life.refused]
    ).reshape(-1, 2)


def noise(n, sd, seed):
    return sd * np.random.default_rng(seed).standard_normal((SERIES, n))


def coverage(intervals, truth):
    return ((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean()


@pytest.mark.parametrize(
    ("n", "slope", "sd", "share"),
    [(12, 0.01, 0.01, 0.5), (20, 0.01, 0.02, 0.5), (60, 0.005, 0.05, 0.9), (200, 0.001, 0.1, 0.4)],
)
def test_linear_decay_is_covered(n, slope, sd, share):
    intervals = found_in(slope * np.arange(n) + noise(n, sd, n))
    assert len(intervals) > share * SERIES
    # Binomial error of what is kept: 1 % at most.
    assert 0.93 <= coverage(intervals, THRESHOLD / slope) <= 0.98
    if n > 12:
        assert np.isfinite(intervals[:, 1]).mean() > 0.9


@pytest.mark.parametrize(("n", "tau", "sd", "share"), [(30, 5, 0.01, 0.5), (60, 10, 0.02, 0.8)])
def test_saturating_decay_is_covered(n, tau, sd, share):
    curve = 0.15 * (1 - np.exp(-np.arange(n) / tau))
    intervals = found_in(curve + noise(n, sd, n))
    assert len(intervals) > share * SERIES
    assert 0.92 <= coverage(intervals, -tau * np.log(1 - THRESHOLD / 0.15)) <= 0.98


@pytest.mark.parametrize("n", [12, 20, 60])
def test_smooth_decay_is_not_seen_where_there_is_none(n):
    rng = np.random.default_rng(n)
    at = rng.integers(2, n - 1, SERIES)[:, None]
    steps = 0.02 * rng.standard_normal((SERIES, n))
    white = noise(n, 0.02, 1)
    assert len(found_in(white)) <= 0.01 * SERIES
    assert len(found_in(0.1 * (np.arange(n) >= at) + white)) <= 0.02 * SERIES
    # Short random walks do look like lines at times.
    walks = steps.cumsum(axis=1) + 0.005 * rng.standard_normal((SERIES, n))
    assert len(found_in(walks)) <= (0.06 if n == 12 else 0.03) * SERIES
