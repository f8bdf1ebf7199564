"""Tests of smooth decay by hand and against ordinary least squares.

Coverage and false identification are simulated in tests/statistical/test_halflife_decay.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import optimize, stats

from errcomp.errors import InputError
from errcomp.halflife.estimators.decay import (
    decay_half_lives,
    group_decay_half_life,
    profile,
    rolling_losses,
)
from errcomp.halflife.panel import Panel


def panel_of(rows, *, version=None, months=None):
    version = [range(len(row)) for row in rows] if version is None else version
    count = 1 + max(max(v) for v in version)
    n = sum(map(len, rows))
    return Panel(
        versions=tuple(f"v{i}" for i in range(count)),
        months=np.full(count, np.nan) if months is None else np.asarray(months, float),
        names=tuple(f"s{i}" for i in range(len(rows))),
        clusters=np.arange(len(rows)),
        starts=np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        version=np.concatenate([np.asarray(v) for v in version]),
        error=np.concatenate([np.asarray(row, float) for row in rows]),
        sd=np.full(n, 0.01),
        noise_df=np.full(len(rows), np.inf),
        frozen_at_first=False,
    )


def noise(*shape, seed=0, sd=0.01):
    return sd * np.random.default_rng(seed).standard_normal(shape)


def saturating(n, tau, most=0.15):
    return most * (1 - np.exp(-np.arange(n) / tau))


# Forecasts


def test_forecasts_by_hand():
    y = noise(1, 9, seed=3)
    time = np.arange(9.0)[None]
    losses = rolling_losses(time, y)
    assert losses.shape == (5, 1, 4)
    for column, k in enumerate(range(5, 9)):
        seen = y[0, :k]
        line = np.polyval(np.polyfit(np.arange(k), seen, 1), k)
        splits = range(2, k - 1)
        rss = [seen[:j].var() * j + seen[j:].var() * (k - j) for j in splits]
        after = seen[splits[int(np.argmin(rss))] :].mean()
        expected = (y[0, k] - np.array([line, seen.mean(), after, seen[-1]])) ** 2
        np.testing.assert_allclose(losses[[0, 2, 3, 4], 0, column], expected, rtol=1e-7)


def test_saturation_forecasts_its_own_curve():
    y = saturating(20, 0.33 * 19)[None]
    losses = rolling_losses(np.arange(20.0)[None], y)
    assert np.sqrt(losses[1].mean()) < 2e-3
    assert losses[1].mean() < losses[[0, 2, 3, 4]].mean(axis=(1, 2)).min() / 5


# Profile


def test_profile_of_a_line_agrees_with_fieller():
    # The interval of a calibration by a line; the curved forms can only widen it.
    n = 60
    t = np.arange(float(n))
    y = 0.004 * t + noise(n)
    best, low, high, _ = profile(t[None], y[None], np.array([0.1]), 1 + stats.f.ppf(0.95, 1, n) / n)
    fit = stats.linregress(t, y)
    s2 = ((y - fit.intercept - fit.slope * t) ** 2).sum() / n
    sxx = ((t - t.mean()) ** 2).sum()

    def off(x):
        variance = s2 * (1 / n + (x - t.mean()) ** 2 / sxx)
        gap = fit.intercept + fit.slope * x - 0.1
        return gap**2 - stats.f.ppf(0.95, 1, n) * variance

    exact = (0.1 - fit.intercept) / fit.slope
    fieller = optimize.brentq(off, 0, exact), optimize.brentq(off, exact, 100)
    assert best[0] == pytest.approx(exact, rel=1e-3)
    assert low[0] <= fieller[0] + 0.05
    assert high[0] >= fieller[1] - 0.05
    assert high[0] - low[0] < 2 * (fieller[1] - fieller[0])


def test_profile_of_saturation_agrees_with_nonlinear_least_squares():
    t = np.arange(50.0)
    y = saturating(50, 10.0) + noise(50, sd=0.003)
    ratio = 1 + stats.f.ppf(0.95, 1, 46) / 46
    best, low, high, _ = profile(t[None], y[None], np.array([0.1]), ratio)

    def curve(x, a, b, tau):
        return a + b * (1 - np.exp(-x / tau))

    (a, b, tau), _ = optimize.curve_fit(curve, t, y, p0=(0, 0.1, 5))
    exact = -tau * np.log1p(-(0.1 - a) / b)
    assert best[0] == pytest.approx(exact, rel=0.005)
    assert low[0] < exact < high[0]
    least = ((y - curve(t, a, b, tau)) ** 2).sum()

    def at(when):
        def rest(p):
            slope, tau = p
            return y - 0.1 - slope * (np.exp(-when / tau) - np.exp(-t / tau))

        return 2 * optimize.least_squares(rest, (b, tau)).cost - least * ratio

    ends = optimize.brentq(at, exact - 3, exact), optimize.brentq(at, exact, exact + 3)
    assert (low[0], high[0]) == pytest.approx(ends, abs=0.05)


def test_a_curve_that_never_gets_there_is_beyond():
    t = np.arange(30.0)
    y = saturating(30, 5.0, 0.1) + noise(30, sd=0.002)
    best, low, high, _ = profile(t[None], y[None], np.array([0.3]), 1.2)
    assert best[0] == high[0] == np.inf
    assert low[0] == pytest.approx(58)


def test_a_curve_that_starts_beyond():
    y = 0.2 + 0.01 * np.arange(30.0) + noise(30)
    half_lives = decay_half_lives(panel_of([y, -y]), threshold=0.1)
    for half_life, start in zip(half_lives, ("0.199", "-0.199"), strict=True):
        assert half_life.half_life is None
        assert half_life.refused == (
            f"the fitted error at the first version, {start}, was already beyond the threshold of "
            "0.1."
        )
    # Down through all that is allowed.
    (down,) = decay_half_lives(panel_of([0.3 - 0.02 * np.arange(30.0)]), threshold=0.1)
    assert "beyond the threshold" in down.refused


# Half-lives


def test_drift_in_either_direction_is_found():
    up = 0.01 * np.arange(24) + noise(24)
    half_lives = decay_half_lives(panel_of([up, -up]), threshold=0.1)
    for half_life in half_lives:
        assert half_life.low < 10 < half_life.high < 13
        assert half_life.half_life == pytest.approx(10, abs=1)
        assert not half_life.refused
        assert half_life.censored_share == 0
    assert half_lives[0].high == pytest.approx(half_lives[1].high)
    assert half_lives[0].details["slope"] == pytest.approx(-half_lives[1].details["slope"])
    assert half_lives[0].details["slope"] == pytest.approx(0.01, rel=0.1)
    assert half_lives[0].details["forecasts"] == 19
    json.dumps(dict(half_lives[0].details))


def test_months_scale():
    up = 0.01 * np.arange(24) + noise(24)
    panel = panel_of([up], months=3 * np.arange(24))
    (releases,) = decay_half_lives(panel, threshold=0.1)
    (months,) = decay_half_lives(panel, threshold=0.1, clock="months")
    assert months.half_life == pytest.approx(3 * releases.half_life)
    assert months.high == pytest.approx(3 * releases.high)
    assert months.unit == "months"


@pytest.mark.parametrize(
    ("row", "rival"),
    [
        (noise(24), "constant"),
        (0.05 * (np.arange(24) > 4) + noise(24, sd=0.02), "step"),
        (np.cumsum(noise(24, seed=8, sd=0.03)), "last value"),
    ],
)
def test_rivals_that_forecast_better(row, rival):
    (half_life,) = decay_half_lives(panel_of([row]), threshold=0.1)
    assert half_life.half_life is half_life.low is half_life.high is None
    assert half_life.refused.startswith("not identifiable: over 19 forecasts, ")
    assert f"the error of a forecast by the {rival}, 0.0" in half_life.refused
    errors = half_life.details["held_out_rms"]
    assert min(errors, key=errors.get) == rival


def test_series_of_different_lengths_keep_their_order():
    line = 0.01 * np.arange(30) + noise(30)
    half_lives = decay_half_lives(panel_of([line[:5], line, noise(20), line[:24]]), threshold=0.1)
    assert [half_life.half_life is None for half_life in half_lives] == [True, False, True, False]
    assert "has 5 versions, and a fit needs at least 12" in half_lives[0].refused
    assert half_lives[0].details == {}
    (alone,) = decay_half_lives(panel_of([line]), threshold=0.1)
    assert half_lives[1].high == pytest.approx(alone.high)


def test_chunks_change_nothing(monkeypatch):
    rows = 0.01 * np.arange(20) + noise(7, 20)
    whole = decay_half_lives(panel_of(rows), threshold=0.1)
    monkeypatch.setattr("errcomp.halflife.estimators.decay._CHUNK", 2)
    parts = decay_half_lives(panel_of(rows), threshold=0.1)
    assert [half_life.high for half_life in parts] == pytest.approx(
        [half_life.high for half_life in whole]
    )


def test_versions_of_one_day_cannot_be_fitted_in_months():
    panel = panel_of([noise(14)], months=np.zeros(14))
    (half_life,) = decay_half_lives(panel, threshold=0.1, clock="months")
    assert "at different times" in half_life.refused


# Groups


def test_a_group_shows_what_its_series_have_in_common():
    rows = 0.005 * np.arange(20) + noise(60, 20, sd=0.05)
    half_life = group_decay_half_life(panel_of(rows), threshold=0.05)
    assert half_life.low < 10 < half_life.high
    assert half_life.n_series == 60
    opposite = group_decay_half_life(
        panel_of(rows * np.repeat([1, -1], 30)[:, None]), threshold=0.05
    )
    assert opposite.half_life is None


def test_a_group_takes_the_stretch_with_most_values():
    rows = 0.01 * np.arange(16) + noise(8, 16, sd=0.005)
    short = [row[:3] for row in rows[:3]]
    gap = [[0.0, 9.0, 9.0]]
    version = [*([range(16)] * 8), *([range(3)] * 3), [0, 4, 5]]
    panel = panel_of([*rows, *short, *gap], version=version)
    half_life = group_decay_half_life(panel, threshold=0.08)
    assert half_life.n_series == 8
    assert half_life.low < 8 < half_life.high
    later = panel_of(list(rows), version=[range(i, i + 16) for i in range(8)])
    same = group_decay_half_life(later, threshold=0.08)
    assert (same.low, same.high) == (half_life.low, half_life.high)


# Bad input


def test_bad_input():
    panel = panel_of([noise(14)])
    for function in (decay_half_lives, group_decay_half_life):
        with pytest.raises(InputError, match="threshold must be positive"):
            function(panel, threshold=-1)
        with pytest.raises(InputError, match="versions without a date"):
            function(panel, threshold=0.1, clock="months")
        with pytest.raises(InputError, match="clock must be"):
            function(panel, threshold=0.1, clock="weeks")
        with pytest.raises(InputError, match="level must be"):
            function(panel, threshold=0.1, level=2)
