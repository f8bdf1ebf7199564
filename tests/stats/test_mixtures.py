"""Quantiles of mixtures of Student t, against root finding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from errcomp.stats import mixtures
from errcomp.stats.mixtures import StudentMixture, StudentMixtures, central_intervals


def mixtures_of(parts, freedom):
    """Each part: sizes, errors and chances of a mixture."""
    each = [
        (np.full(len(size), i), *(np.asarray(column, dtype=float) for column in (size, *others)))
        for i, (size, *others) in enumerate(parts)
    ]
    # In any order.
    return StudentMixtures.of(each[::-1], np.asarray(freedom, dtype=float))


def quantile(part, freedom, share):
    size, error, chance = (np.asarray(column, dtype=float) for column in part)

    def beyond(x):
        return chance @ special.stdtr(freedom, (x - size) / error) / chance.sum() - share

    ends = size + error * special.stdtrit(freedom, share)
    return optimize.brentq(beyond, ends.min() - 1e-9, ends.max() + 1e-9, xtol=1e-13)


def test_quantiles_of_mixtures_against_root_finding():
    rng = np.random.default_rng(0)
    parts, freedom = [], []
    for df in (1.0, 2.0, 3.5, 9.0, 40.0, 1e5, np.inf):
        for spread in (0.01, 1.0, 20.0):
            for count in (2, 3, 15):
                size, error = spread * rng.standard_normal(count), rng.uniform(0.2, 2, count)
                parts.append((size, error, rng.dirichlet(np.ones(count))))
                freedom.append(df)
    low, high = central_intervals(mixtures_of(parts, freedom), 0.95)
    for i, (part, df) in enumerate(zip(parts, freedom, strict=True)):
        close = 1e-6 * (high[i] - low[i])
        assert low[i] == pytest.approx(quantile(part, df, 0.025), abs=close), (i, df)
        assert high[i] == pytest.approx(quantile(part, df, 0.975), abs=close), (i, df)


def test_quantiles_of_unlike_components_are_within_their_bracket():
    # Steps lead astray where scales differ by orders of magnitude: halving takes over.
    rng = np.random.default_rng(5)
    parts = []
    for _ in range(600):
        size, error = rng.standard_normal((2, 3)) * 10.0 ** rng.uniform(-6, 1, (2, 3))
        parts.append((size, np.abs(error), rng.dirichlet(np.full(3, 0.3)) + 1e-12))
    low, _ = central_intervals(mixtures_of(parts, np.full(600, 2.0)), 0.95)
    for part, found in zip(parts, low, strict=True):
        ends = part[0] + part[1] * special.stdtrit(2, 0.025)
        assert found == pytest.approx(quantile(part, 2, 0.025), abs=1.1e-6 * np.ptp(ends))


def test_quantile_in_the_gap_between_two_sizes():
    # As much as is asked for lies below the gap, but for next to nothing.
    for chance in (0.025 - 1e-9, 0.025, 0.025 + 1e-9):
        part = ([0.0, 100.0], [1.0, 1.0], [chance, 1 - chance])
        (low,), (high,) = central_intervals(mixtures_of([part], [30.0]), 0.95)
        below = chance * stats.t.cdf(low, 30) + (1 - chance) * stats.t.cdf(low - 100, 30)
        assert below == pytest.approx(0.025, abs=2e-9)
        assert high == pytest.approx(quantile(part, 30, 0.975))


def test_quantiles_of_one_component_and_of_like_ones_are_those_of_t():
    parts = [([3.0], [0.5], [1.0]), ([3.0, 3.0], [0.5, 0.5], [0.9, 0.1])]
    low, high = central_intervals(mixtures_of(parts, [7.0, 7.0]), 0.95)
    assert low == pytest.approx([stats.t.ppf(0.025, 7, 3, 0.5)] * 2, rel=1e-12)
    assert high == pytest.approx([stats.t.ppf(0.975, 7, 3, 0.5)] * 2, rel=1e-12)


def test_quantiles_without_noise_are_sizes(recwarn):
    # Distributions with jumps have no slope: the bracket is halved.
    parts = [([1.0, 2.0], [0.0, 0.0], [0.5, 0.5]), ([1e9, 1e9 + 1], [0.0, 1e-3], [0.5, 0.5])]
    low, high = central_intervals(mixtures_of(parts, [5.0, 5.0]), 0.95)
    assert low == pytest.approx([1, 1e9], abs=1e-6)
    assert high[0] == pytest.approx(2, abs=1e-6)
    assert high[1] - 1e9 == pytest.approx(1 + 1e-3 * stats.t.ppf(0.95, 5), abs=1e-5)
    assert not recwarn.list


def test_few_steps_lead_to_a_quantile(monkeypatch):
    counts = []
    step = mixtures._step

    def counted(some, share, x, stdtr):
        counts.append(len(x) * (stdtr is not mixtures._near_stdtr))
        return step(some, share, x, stdtr)

    monkeypatch.setattr(mixtures, "_step", counted)
    rng = np.random.default_rng(1)
    parts = [
        (rng.standard_normal(5), rng.uniform(0.5, 1, 5), rng.dirichlet(np.ones(5)))
        for _ in range(300)
    ]
    central_intervals(mixtures_of(parts, np.full(300, 12.0)), 0.95)
    # Exact distributions, which take most of the time: about one an end.
    assert sum(counts) < 1.5 * 600


def test_halving_takes_over_where_steps_lead_nowhere(monkeypatch):
    step = mixtures._step

    def short(*args):
        below, there = step(*args)
        return below, np.copysign(0.06, there)

    monkeypatch.setattr(mixtures, "_step", short)
    part = ([0.0, 1000.0], [10.0, 10.0], [0.5, 0.5])
    (low,), _ = central_intervals(mixtures_of([part], [30.0]), 0.95)
    assert low == pytest.approx(quantile(part, 30, 0.025), abs=1e-3)


def test_no_mixtures():
    low, high = central_intervals(mixtures_of([], []), 0.95)
    assert (len(low), len(high)) == (0, 0)


def test_quantiles_of_one_mixture_at_many_places_against_root_finding(monkeypatch):
    rng = np.random.default_rng(2)
    sigma, nu = rng.uniform(0.2, 2, 6), np.array([2.0, 3.5, 5.0, 9.0, 40.0, 200.0])
    mu, q = 3 * rng.standard_normal((12, 6)), np.array([0.025, 0.5, 0.9])
    mixture, calls = StudentMixture(sigma, nu), []
    cdf = mixture._cdf
    monkeypatch.setattr(mixture, "_cdf", lambda *where: calls.append(0) or cdf(*where))
    found = mixture.quantiles(mu, q)
    assert len(calls) < 45  # of 60 at most
    for row, sizes in zip(found, mu, strict=True):
        for x, share in zip(row, q, strict=True):
            below = stats.t.cdf((x - sizes) / sigma, nu).mean()
            assert below == pytest.approx(share, abs=1e-5)
    # In blocks of few rows, too.
    monkeypatch.setattr(mixtures, "_BLOCK", 6 * 3 * 5)
    assert StudentMixture(sigma, nu).quantiles(mu, q) == pytest.approx(found, abs=1e-4)


def test_quantiles_of_one_mixture_in_its_gaps_are_found_by_halving():
    mixture = StudentMixture(np.array([1e-3, 1e-3]), np.array([5.0, 5.0]))
    low, high = mixture.quantiles(np.array([[-9.0, 9.0]]), np.array([0.25, 0.75]))[0]
    assert (low, high) == pytest.approx((-9.0, 9.0), abs=1e-6)
    (edge,) = mixture.quantiles(np.array([[-9.0, 9.0]]), np.array([0.499]))[0]
    assert edge == pytest.approx(-9 + 1e-3 * stats.t.ppf(0.998, 5), abs=1e-4)
