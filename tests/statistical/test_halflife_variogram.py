"""Simulated coverage of the half-lives read off a variogram and a trajectory, and of drift by age.

Each test names the truth of its law. Refusals are counted; what is refused has no coverage.
"""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.halflife.drift.age import drift_by_age
from errcomp.halflife.drift.trajectory import error_trajectory, trajectory_half_life
from errcomp.halflife.drift.variogram import variogram_half_life
from errcomp.halflife.panel import Panel

pytestmark = pytest.mark.slow

E0 = 0.05
TARGET = 3 * E0**2


def panel_of(rows, noise, clusters=None):
    s, n = rows.shape
    return Panel(
        versions=tuple(map(str, range(n))),
        months=np.arange(float(n)),
        names=tuple(map(str, range(s))),
        clusters=np.arange(s) if clusters is None else clusters,
        starts=np.arange(s + 1) * n,
        version=np.tile(np.arange(n), s),
        error=rows.ravel(),
        sd=np.full(s * n, noise),
        noise_df=np.full(s, np.inf),
        frozen_at_first=False,
    )


def draw(rng, kind, s, n, noise, rms):
    """Errors of s series at n versions; steps of their own, half or all of them common, or rare."""
    if kind in ("own", "half", "common"):
        share = {"own": 0.0, "half": 0.5, "common": 1.0}[kind]
        own, common = rng.standard_normal((s, n)), rng.standard_normal((1, n))
        steps = rms * (np.sqrt(1 - share) * own + np.sqrt(share) * common)
    else:
        rows = 1 if kind == "rare common" else s
        steps = 0.2 * (rng.random((rows, n)) < 0.05) * rng.choice([-1, 1], (rows, n))
        steps = np.broadcast_to(steps if kind != "none" else 0 * steps, (s, n))
    return steps.cumsum(axis=1) + noise * rng.standard_normal((s, n))


def half_lives(kind, s, n, noise, rms, runs, seed=0):
    """Truth, and the answers: rows of (half_life, low, high), and the share refused."""
    rng = np.random.default_rng([seed, s, n, len(kind)])
    per_release = {"none": 0.0, "rare": 0.002, "rare common": 0.002}.get(kind, rms**2)
    fits = [
        variogram_half_life(panel_of(draw(rng, kind, s, n, noise, rms), noise), error=E0)
        for _ in range(runs)
    ]
    answers = [(fit.half_life, fit.low, fit.high) for fit in fits if not fit.refused]
    truth = TARGET / per_release if per_release else np.inf
    return truth, np.array(answers).reshape(-1, 3), 1 - len(answers) / runs


def covered(truth, answers):
    return (answers[:, 1] <= truth) & (truth <= answers[:, 2])


def test_variogram_covers_where_steps_are_normal():
    # Steps of a series' own, half common and all common; noise up to 10 %.
    hits, bounded = [], []
    for kind, s, n, noise, rms in (
        ("own", 20, 20, 0.01, 0.03),
        ("own", 20, 60, 0.01, 0.02),
        ("own", 100, 12, 0.02, 0.04),
        ("own", 200, 20, 0.1, 0.04),
        ("half", 20, 40, 0.03, 0.03),
        ("common", 20, 60, 0.02, 0.03),
        ("own", 1, 100, 0.02, 0.03),
    ):
        truth, answers, refused = half_lives(kind, s, n, noise, rms, 60)
        assert refused == 0
        hits.append(covered(truth, answers))
        bounded.append(np.isfinite(answers[:, 2]).mean())
        # Ratio of the bounds to the truth: the intervals say something.
        assert truth / 8 < np.median(answers[:, 1]) < truth
    assert 0.93 <= np.concatenate(hits).mean() <= 0.98
    assert np.mean(bounded) > 0.6


def test_variogram_covers_rare_large_steps():
    # 5 % of the releases move by 20 %; common ones hit all series at once.
    hits = []
    for kind, s, n, noise in (
        ("rare", 20, 20, 0.01),
        ("rare", 200, 6, 0.05),
        ("rare", 5, 20, 0.03),
        ("rare", 1, 60, 0.01),
        ("rare common", 20, 60, 0.01),
        ("rare common", 200, 20, 0.05),
    ):
        truth, answers, refused = half_lives(kind, s, n, noise, 0, 50)
        assert refused <= (0.6 if kind == "rare common" and n == 20 else 0.05)
        hits.append(covered(truth, answers))
    assert np.concatenate(hits).mean() >= 0.95


def test_variogram_promises_nothing_of_few_releases():
    # One series, or steps common to all, at five releases: at most a lower bound.
    for kind, s, noise, rms in (
        ("own", 1, 0.01, 0.05),
        ("common", 200, 0.01, 0.05),
        ("rare", 1, 0.01, 0),
        ("rare common", 20, 0.01, 0),
    ):
        truth, answers, refused = half_lives(kind, s, 6, noise, rms, 60)
        assert covered(truth, answers).mean() >= 0.93
        assert np.isinf(answers[:, 2]).mean() > 0.9
        assert (refused > 0.5) == kind.startswith("rare")


def test_variogram_sees_no_drift_where_there_is_none():
    for s, n, noise in ((1, 20, 0.03), (20, 20, 0.1), (200, 6, 0.03)):
        _, _, refused = half_lives("none", s, n, noise, 0, 50)
        assert refused >= 0.96
    truth, answers, refused = half_lives("none", 1, 200, 0.01, 0, 30)
    assert refused == 0
    assert covered(truth, answers).all()
    assert np.isinf(answers[:, [0, 2]]).all()
    assert answers[:, 1].min() > 8


@pytest.mark.parametrize(("s", "n", "noise"), [(10, 12, 0.03), (60, 24, 0.01)])
def test_trajectory_covers(s, n, noise):
    # The error of series persists; that of all grows at two releases, and doubles at the second.
    rng = np.random.default_rng(s)
    profile = np.where(np.arange(n) < n // 2, 0.05, np.where(np.arange(n) < 3 * n // 4, 0.09, 0.13))
    truth = 3 * n // 4
    rms, half = [], []
    for _ in range(250):
        z = 0.8 * rng.standard_normal((s, 1)) + 0.6 * rng.standard_normal((s, n))
        panel = panel_of(z * profile + noise * rng.standard_normal((s, n)), noise)
        curve = error_trajectory(panel)
        rms.append((curve.rms_low <= profile) & (profile <= curve.rms_high))
        half_life = trajectory_half_life(panel, threshold=0.1)
        half.append((half_life.low <= truth, truth <= half_life.high))
    # 250 curves of which each is one or a few independent intervals.
    assert 0.93 <= np.mean(rms) <= 0.975
    # A lag is a whole number: more than the nominal 97.5 % on each side cannot be avoided.
    assert (np.mean(half, axis=0) >= 0.96).all()


@pytest.mark.parametrize(
    ("clusters", "size", "between"), [(12, 10, 1.0), (30, 4, 1.0), (100, 3, 1.0), (200, 1, 0.0)]
)
def test_drift_by_age_covers(clusters, size, between):
    rng = np.random.default_rng(clusters)
    of = np.repeat(np.arange(clusters), size)
    draws = np.abs(rng.standard_normal(10**6) * np.exp(between * rng.standard_normal(10**6)))
    truth, hits = np.median(draws), []
    for _ in range(300):
        scale = np.exp(between * rng.standard_normal(clusters))[of]
        steps = scale * rng.standard_normal(len(of))
        panel = panel_of(np.stack([0 * steps, steps], axis=1), 0.0, clusters=of)
        (drift,) = drift_by_age(panel)
        hits.append(drift.low <= truth <= drift.high)
    # 95 to 97 %, with three times the binomial error of 300 runs.
    assert 0.92 <= np.mean(hits) <= 0.995
