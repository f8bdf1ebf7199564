"""Do intervals cover when errors are shared within clusters? And do naive ones not?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from errcomp.metrics.intervals import estimate

REPS = 700


def sample(rng, groups, icc, *, crossed=False, sigma=0.3):
    """Pairs in clusters of 1 to 20 whose log errors correlate by icc within a cluster."""
    outer = np.repeat(np.arange(groups), rng.integers(1, 21, size=groups))
    shared, clusters = rng.standard_normal(groups)[outer], [outer]
    if crossed:
        other = rng.integers(0, groups, size=len(outer))
        shared = (shared + rng.standard_normal(groups)[other]) / np.sqrt(2)
        clusters.append(other)
    x = sigma * (np.sqrt(icc) * shared + np.sqrt(1 - icc) * rng.standard_normal(len(outer)))
    measured = np.exp(rng.standard_normal(len(outer)))
    return measured * np.exp(x), measured, clusters


def mape_of(sigma):
    # E|exp(σZ) - 1| for normal Z.
    return float(np.exp(sigma**2 / 2) * (2 * special.ndtr(sigma) - 1))


def coverage(name, target, groups, icc, *, crossed=False, clustered=True, **law):
    rng, hits, given = np.random.default_rng([23, groups]), 0, 0
    for _ in range(REPS):
        predicted, measured, clusters = sample(rng, groups, icc, crossed=crossed, **law)
        e = estimate(
            name,
            predicted=predicted,
            measured=measured,
            clusters=clusters if clustered else None,
        )
        given += e.low is not None
        hits += e.low is not None and e.low <= target <= e.high
    assert given > 0.9 * REPS
    return hits / given


def noise(claim):
    return 3 * float(np.sqrt(claim * (1 - claim) / REPS))


def test_closed_form_of_the_truth():
    x = 0.6 * np.random.default_rng(0).standard_normal(2_000_000)
    assert mape_of(0.6) == pytest.approx(np.abs(np.expm1(x)).mean(), rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize(("groups", "claim"), [(6, 0.92), (10, 0.92), (20, 0.93)])
def test_mape(groups, claim, crossed):
    found = coverage("mape", mape_of(0.3), groups, 0.3, crossed=crossed)
    assert claim - noise(claim) <= found <= 0.99 + noise(0.99)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [6, 10, 20])
def test_mape_where_clusters_differ_much(groups):
    assert coverage("mape", mape_of(0.6), groups, 0.7, sigma=0.6) >= 0.90 - noise(0.90)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [6, 10, 20])
def test_wape(groups):
    # Errors and measurements are independent: the WAPE of the population is its MAPE.
    assert coverage("wape", mape_of(0.3), groups, 0.3) >= 0.92 - noise(0.92)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [6, 10, 20])
def test_share_and_median(groups):
    inside = float(special.ndtr(np.log(1.2) / 0.3) - special.ndtr(np.log(0.8) / 0.3))
    assert coverage("within_20", inside, groups, 0.3) >= 0.93 - noise(0.93)
    # |exp(x) - 1| is at most its median with probability one half.
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        share = special.ndtr(np.log1p(middle) / 0.3) - special.ndtr(np.log1p(-middle) / 0.3)
        low, high = (middle, high) if share < 0.5 else (low, middle)
    assert coverage("median_ape", low, groups, 0.3) >= 0.90 - noise(0.90)


@pytest.mark.slow
def test_ignoring_clusters_covers_far_too_little():
    assert coverage("mape", mape_of(0.3), 20, 0.7, clustered=False) < 0.75
