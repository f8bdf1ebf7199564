"""Tests of the variogram by hand, of its law and their errors against independent calculations.

Coverage is simulated in tests/statistical/test_halflife_variogram.py.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.drift import (
    Design,
    Law,
    chi_square_bounds,
    difference_bounds,
    fit_law,
    law_bounds,
    noise_of,
    pairs_of,
    sampling_covariance,
    sampling_df,
    steps_of,
)
from errcomp.halflife.drift.variogram import drift_variogram, variogram_half_life
from errcomp.halflife.panel import Panel


def panel_of(rows, *, version=None, sd=0.0, clusters=None, months=None):
    version = [range(len(row)) for row in rows] if version is None else version
    count = 1 + max(max(v) for v in version)
    n = sum(map(len, rows))
    return Panel(
        versions=tuple(f"v{i}" for i in range(count)),
        months=np.full(count, np.nan) if months is None else np.asarray(months, float),
        names=tuple(f"s{i}" for i in range(len(rows))),
        clusters=np.arange(len(rows)) if clusters is None else np.asarray(clusters),
        starts=np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        version=np.concatenate([np.asarray(v) for v in version]),
        error=np.concatenate([np.asarray(row, float) for row in rows]),
        sd=np.full(n, sd),
        noise_df=np.full(len(rows), 0.0 if np.isnan(sd) else np.inf),
        frozen_at_first=False,
    )


def walks(series=40, n=24, rms=0.02, noise=0.0, common=0.0, seed=0):
    rng = np.random.default_rng(seed)
    steps = np.sqrt(common) * rng.standard_normal((1, n)) + np.sqrt(1 - common) * (
        rng.standard_normal((series, n))
    )
    return rms * steps.cumsum(axis=1) + noise * rng.standard_normal((series, n))


def design(lags=(1, 2, 3, 4), n=12, clusters=1.0, **change):
    lag = np.asarray(lags, float)
    pairs = n - np.asarray(lags)
    given = {
        "lag": lag,
        "time": lag,
        "pairs": pairs,
        "pairs_common": pairs,
        "clusters": np.full(len(lag), clusters),
        "common": 0.0,
        "noise": 0.0,
        "noise_df": np.inf,
        "kurtosis": (0.0, 0.0),
        "between": 0.0,
    }
    return Design(**{**given, **change})


# The curve


def test_curve_by_hand():
    # Lags of the first: 1: 1, 4; 2: 9. Of the second: 1: 16.
    curve = drift_variogram(panel_of([[0, 1, 3], [0, 4]]))
    assert curve.lag.tolist() == [1, 2]
    assert curve.v.tolist() == [(2.5 + 16) / 2, 9]
    assert curve.median.tolist() == [2, 3]
    assert curve.n_pairs.tolist() == [3, 1]
    assert curve.n_series.tolist() == [2, 1]
    assert curve.noise == 0


def test_noise_is_subtracted_pair_by_pair():
    panel = panel_of([[0, 1, 3]])
    panel = replace(panel, sd=np.array([0.1, 0.2, 0.4]))
    curve = drift_variogram(panel)
    assert curve.v == pytest.approx([2.5 - (0.05 + 0.2) / 2, 9 - 0.17])
    unknown = drift_variogram(replace(panel, sd=np.full(3, np.nan), noise_df=np.zeros(1)))
    assert unknown.v == pytest.approx([2.5, 9])
    # A row without repeats is as noisy as the others are on average.
    partly = drift_variogram(replace(panel, sd=np.array([0.1, np.nan, 0.1])))
    assert partly.v == pytest.approx([2.5 - 0.02, 9 - 0.02])


def test_lags_are_differences_of_positions_in_classes():
    curve = drift_variogram(panel_of([[0, 1, 2], [0, 1]], version=[[0, 4, 9], [3, 8]]))
    # Lags 4, 5, 9 and 5: classes 4-5 and 8-11.
    assert curve.lag == pytest.approx([(4.5 + 5) / 2, 9])
    assert curve.n_pairs.tolist() == [3, 1]


def test_months_are_the_mean_of_a_class():
    panel = panel_of([[0, 1, 3]], months=[0, 3, 4])
    curve = drift_variogram(panel, clock="months")
    assert curve.lag.tolist() == [2, 4]
    assert curve.v.tolist() == [2.5, 9]
    assert curve.unit == "months"


def test_long_series_are_thinned_without_bias():
    rows = walks(3, 300, seed=1)
    curve = drift_variogram(panel_of(rows))
    every = [np.mean([(row[lag:] - row[:-lag]) ** 2 for row in rows]) for lag in range(96, 128)]
    at = np.argmin(np.abs(curve.lag - 111))
    assert curve.v[at] == pytest.approx(np.mean(every), rel=0.05)


def test_curve_goes_to_json():
    document = json.loads(json.dumps(drift_variogram(panel_of(walks(5, 8))).to_dict()))
    assert document["unit"] == "releases"
    assert len(document["lag"]) == len(document["v"]) == len(document["low"])


def test_pointwise_bounds_are_those_of_a_chi_square():
    # Independent steps of 50 walks, no noise: V(1) is a mean of 50·19 squares.
    curve = drift_variogram(panel_of(walks(50, 20, seed=3)))
    df = 50 * 19
    assert curve.low[0] == pytest.approx(curve.v[0] * df / stats.chi2.ppf(0.975, df), rel=0.02)
    assert curve.high[0] == pytest.approx(curve.v[0] * df / stats.chi2.ppf(0.025, df), rel=0.02)
    assert (curve.low < curve.v).all()
    assert (curve.v < curve.high).all()


# What steps share


def test_common_steps_are_seen():
    shares = [
        steps_of(panel, noise_of(panel)).common
        for panel in (panel_of(walks(60, 40, common=c, seed=2)) for c in (0.0, 0.5, 1.0))
    ]
    assert shares[0] < 0.05
    assert shares[1] == pytest.approx(0.5, abs=0.15)
    assert shares[2] == 1.0


def test_common_steps_are_seen_through_noise_and_within_clusters():
    rows = walks(40, 60, noise=0.02, common=1.0, seed=4)
    panel = panel_of(rows, sd=0.02, clusters=np.arange(40) // 2)
    assert steps_of(panel, noise_of(panel)).common > 0.8
    alone = panel_of(rows, sd=0.02, clusters=np.zeros(40, int))
    assert steps_of(alone, noise_of(alone)).common == 1.0


def test_heavy_tails_and_unequal_clusters_are_seen():
    rng = np.random.default_rng(0)
    jumps = np.cumsum((rng.random((40, 40)) < 0.05) * 0.2, axis=1)
    panel = panel_of(jumps)
    # Squares of steps that are 0 but for a share p: kurtosis 1/p - 3 = 17.
    assert steps_of(panel, noise_of(panel)).kurtosis[1] == pytest.approx(17, rel=0.25)
    normal = panel_of(walks(40, 40))
    assert steps_of(normal, noise_of(normal)).kurtosis[1] < 0.3
    assert steps_of(normal, noise_of(normal)).between < 0.02
    # Half of the clusters with four times the variance of the others: (1.5 / 2.5)² = 0.36.
    rows = walks(400, 40) * np.repeat([1, 2], 200)[:, None]
    unequal = panel_of(rows)
    assert steps_of(unequal, noise_of(unequal)).between == pytest.approx(0.36, rel=0.15)


def test_without_drift_nothing_is_said_of_steps():
    panel = panel_of(np.zeros((3, 6)), sd=0.1)
    steps = steps_of(panel, noise_of(panel))
    assert (steps.common, steps.kurtosis, steps.between, steps.releases) == (1.0, (0, 0), 0, 5)


def test_pairs_of_a_panel_count_clusters_in_effect():
    panel = panel_of(np.zeros((6, 4)), clusters=[0, 0, 0, 0, 1, 2])
    pairs = pairs_of(panel, "releases", noise_of(panel))
    assert pairs.clusters == pytest.approx(np.full(3, 36 / 18))
    assert pairs.in_series.tolist() == pairs.in_all.tolist() == [3, 2, 1]


# Covariance of the curve


def by_brute_force(n, lags, beta, noise, common, clusters):
    """Covariance of variogram values of normal series, from that of all their values."""
    t = np.arange(n, dtype=float)
    drift = 0.5 * (t[:, None] ** beta + t[None] ** beta - np.abs(t[:, None] - t[None]) ** beta)
    same = drift + noise * np.eye(n)
    between = common * drift
    weights = []
    for lag in lags:
        d = np.eye(n)[lag:] - np.eye(n)[:-lag]
        weights.append(d.T @ d / (n - lag))
    # Cov(x'Ax, y'By) = 2 tr(A S_xy B S_yx), over pairs of series.
    k = clusters
    return np.array(
        [
            [
                2 * np.trace(a @ same @ b @ same) / k
                + 2 * np.trace(a @ between @ b @ between) * (k - 1) / k
                for b in weights
            ]
            for a in weights
        ]
    )


@pytest.mark.parametrize(
    ("beta", "noise", "common", "clusters"),
    [(1, 0, 0, 1), (1, 0, 1, 8), (1, 0.7, 0.4, 8), (0.5, 0.2, 0.5, 3), (1.8, 0.1, 0, 5)],
)
def test_covariance_by_brute_force(beta, noise, common, clusters):
    lags = (1, 2, 3, 6)
    of = design(lags, clusters=float(clusters), noise=noise, common=common)
    covariance = sampling_covariance(of, 1.0, beta)
    expected = by_brute_force(12, lags, beta, noise, common, clusters)
    np.testing.assert_allclose(covariance, expected, rtol=1e-9)


def test_variance_of_a_random_walk_is_textbook():
    # A mean of n squares of normal steps.
    covariance = sampling_covariance(design((1,), n=21), 3.0, 1.0)
    assert covariance[0, 0] == pytest.approx(2 * 9 / 20)


def test_kurtosis_differences_and_noise_add():
    plain = sampling_covariance(design(), 1.0, 1.0)
    heavy = sampling_covariance(design(kurtosis=(0.0, 5.0)), 1.0, 1.0)
    # E(x⁴) - E(x²)² is 2 + κ.
    assert heavy[0, 0] - plain[0, 0] == pytest.approx(5 / 11)
    shared = sampling_covariance(design(kurtosis=(5.0, 0.0), common=1.0), 1.0, 1.0)
    assert shared[0, 0] == pytest.approx(heavy[0, 0])
    unequal = sampling_covariance(design(between=0.3, clusters=2.0), 1.0, 1.0)
    expected = sampling_covariance(design(clusters=2.0), 1.0, 1.0)
    np.testing.assert_allclose(unequal - expected, 0.15 * np.outer([1, 2, 3, 4], [1, 2, 3, 4]))
    guessed = sampling_covariance(design(noise=0.5, noise_df=10.0), 0.0, 1.0)
    known = sampling_covariance(design(noise=0.5), 0.0, 1.0)
    np.testing.assert_allclose(guessed - known, 2 / 10)


# The law


def test_law_is_recovered_exactly():
    of = design((1, 2, 3, 4, 6), n=30, clusters=50.0)
    for scale, beta in ((0.3, 1.0), (2.0, 0.4), (1e-4, 1.7)):
        law = fit_law(of, scale * of.time**beta)
        assert (law.scale, law.beta) == (pytest.approx(scale), pytest.approx(beta))


def test_law_keeps_its_exponent_in_bounds():
    of = design((1, 2, 3, 4, 6), n=30, clusters=50.0)
    steep = fit_law(of, of.time**3)
    assert steep.beta == 2.0
    flat = fit_law(of, np.full(5, 0.7))
    assert flat.beta == pytest.approx(0.05, abs=0.01)
    assert flat.at(np.array([2.0]))[0] == pytest.approx(0.7, rel=0.05)
    falling = fit_law(of, 1 / of.time)
    assert falling.beta == 0.05


def test_bounds_of_counts_are_those_of_a_poisson():
    # Ten large steps: 95 % limits of a Poisson count of 10 are 4.795 and 18.39.
    law = Law(10.0, 1.0, np.array([[2 / 20, 0], [0, 0]]))
    low, high, df = law_bounds(law, np.array([1.0]), 0.025, rare_steps=True)
    assert df[0] == pytest.approx(20)
    assert low[0] == pytest.approx(4.795, abs=5e-4)
    plain_low, plain_high, _ = law_bounds(law, np.array([1.0]), 0.025, rare_steps=False)
    assert plain_low[0] == pytest.approx(200 / stats.chi2.ppf(0.975, 20))
    assert high[0] == plain_high[0] == pytest.approx(200 / stats.chi2.ppf(0.025, 20))


# Intervals of mean squares


@pytest.mark.parametrize("df", [1.0, 2.5, 30.0, 1e5])
def test_bounds_of_a_mean_square(df):
    low, high = chi_square_bounds(2.0, df, 0.025)
    assert low == pytest.approx(2 * df / stats.chi2.ppf(0.975, df))
    assert high == pytest.approx(2 * df / stats.chi2.ppf(0.025, df))


def test_bounds_of_a_mean_square_widen_with_fewer_degrees_of_freedom():
    low, high = chi_square_bounds(1.0, np.array([2.0, 1.0, 0.5, 0.1, 1e-3]), 0.025)
    assert (np.diff(low) < 0).all()
    assert (np.diff(high) >= 0).all()
    assert chi_square_bounds(0.0, 1e-12, 0.025) == (0.0, 0.0)


def test_degrees_of_freedom_of_a_relative_variance():
    assert sampling_df([0.1, 0.0, 0.1], [np.inf, np.inf, 5.0]).tolist() == [20, np.inf, 5]


def test_difference_of_known_noise_shifts_bounds():
    low, high = difference_bounds((5.0, 3.0, 9.0), (1.0, 1.0, 1.0))
    assert (low, high) == (2.0, 8.0)
    low, high = difference_bounds((5.0, 3.0, 9.0), (1.0, 0.5, 2.5))
    assert low == pytest.approx(4 - np.hypot(2, 1.5))
    assert high == pytest.approx(4 + np.hypot(4, 0.5))
    assert difference_bounds((1.0, 0.5, 2.0), (4.0, 3.0, 5.0)) == (0.0, 0.0)


# Half-life


def test_half_life_of_a_random_walk():
    half_life = variogram_half_life(panel_of(walks(200, 40)), error=0.05)
    assert half_life.half_life == pytest.approx(18.75, rel=0.1)
    assert half_life.low < 18.75 < half_life.high < 25
    assert half_life.details["read_off"] == "law"
    assert half_life.details["beta"] == pytest.approx(1, abs=0.1)
    assert half_life.n_series == 200
    assert 0 < half_life.censored_share < 1
    assert not half_life.refused
    assert len(half_life.assumptions) == 3
    assert json.loads(json.dumps(dict(half_life.details)))["releases"] == 39


def test_half_life_in_months_is_that_in_releases_times_their_distance():
    rows = walks(100, 30)
    months = 2.5 * np.arange(30)
    by_release, by_month = (
        variogram_half_life(panel_of(rows, months=months), error=0.05, clock=clock)
        for clock in ("releases", "months")
    )
    for name in ("half_life", "low", "high"):
        ratio = getattr(by_month, name) / getattr(by_release, name)
        assert ratio == pytest.approx(2.5, rel=1e-3)


def test_what_series_share_widens_the_interval():
    alone, common = (
        variogram_half_life(panel_of(walks(100, 40, common=c, seed=6)), error=0.03)
        for c in (0.0, 1.0)
    )
    assert np.log(common.high / common.low) > 3 * np.log(alone.high / alone.low)
    assert common.details["df"] < 60 < alone.details["df"]


def test_a_half_life_beyond_twice_the_longest_lag_is_at_least_something():
    half_life = variogram_half_life(panel_of(walks(100, 12)), error=0.2)
    assert half_life.half_life == half_life.high == np.inf
    assert 11 < half_life.low <= 22
    assert half_life.censored_share == 1.0


def test_a_half_life_below_one_release():
    half_life = variogram_half_life(panel_of(walks(100, 12)), error=0.005)
    assert half_life.low == 0
    assert half_life.half_life < half_life.high == 1


def test_few_large_steps_give_no_upper_bound():
    row = np.zeros(40)
    row[10:] += 0.2
    row[25:] -= 0.2
    half_life = variogram_half_life(panel_of([row]), error=0.05)
    assert half_life.high == np.inf
    assert half_life.half_life < np.inf
    assert half_life.details["df"] < 10


def test_no_drift_is_at_least_or_not_identifiable():
    noise = 0.01 * np.random.default_rng(0).standard_normal((4, 200))
    half_life = variogram_half_life(panel_of(noise, sd=0.01), error=0.05)
    assert half_life.half_life == half_life.high == np.inf
    # 3·e0² of drift per release, if 3.7 steps of 4·e0 hid in 199 releases and the noise in nothing.
    assert 8 < half_life.low < 3 * 199 / (-np.log(0.025) * 16)
    assert "at most 4 times" in half_life.assumptions[-1]
    short = variogram_half_life(panel_of(noise[:, :10], sd=0.01), error=0.05)
    assert short.half_life is short.low is short.high is None
    assert "drift is not above the noise, but 9 releases" in short.refused


def test_nothing_moves_at_all():
    half_life = variogram_half_life(panel_of(np.zeros((3, 100)), sd=np.nan), error=0.05)
    assert half_life.half_life == np.inf
    assert half_life.low == pytest.approx(3 * 99 / (-np.log(0.025) * 16))


def test_noise_unknown_leaves_the_interval_open():
    rows = walks(100, 30)
    assert variogram_half_life(panel_of(rows), error=0.05).high < np.inf
    half_life = variogram_half_life(panel_of(rows, sd=np.nan), error=0.05)
    assert half_life.high == np.inf
    assert "noise counts as drift" in half_life.assumptions[-1]


def test_too_few_releases_are_refused():
    half_life = variogram_half_life(panel_of(walks(50, 5)), error=0.05)
    assert half_life.half_life is None
    assert "4 pairs of successive versions" in half_life.refused
    pairs = [[0, 0.1 * (i % 3)] for i in range(12)]
    version = [[i, i + 1] for i in range(12)]
    half_life = variogram_half_life(panel_of(pairs, version=version), error=0.05)
    assert "all pairs of versions are equally far apart (same lag)," in half_life.refused


def test_the_curve_is_read_off_where_no_power_law_fits():
    # Errors that return to their mean: V levels off at 2·0.08².
    rng = np.random.default_rng(0)
    rows = np.empty((300, 40))
    rows[:, 0] = 0.08 * rng.standard_normal(300)
    for t in range(1, 40):
        rows[:, t] = 0.8 * rows[:, t - 1] + 0.048 * rng.standard_normal(300)
    half_life = variogram_half_life(panel_of(rows), error=0.05)
    assert half_life.details["read_off"] == "curve"
    truth = np.log(1 - 0.0075 / 0.0128) / np.log(0.8)
    assert half_life.low < truth < half_life.high
    never = variogram_half_life(panel_of(rows), error=0.08)
    assert never.half_life == never.high == np.inf
    assert never.low == pytest.approx(never.details["lag"][-1])


def test_clusters_of_any_number():
    rows = walks(20, 20)
    codes = variogram_half_life(panel_of(rows, clusters=np.arange(20) * 7 + 3), error=0.05)
    plain = variogram_half_life(panel_of(rows), error=0.05)
    assert (codes.low, codes.high) == (plain.low, plain.high)


# Bad input


@pytest.mark.parametrize("error", [0, -1, np.nan, np.inf, "5", True])
def test_error_must_be_positive(error):
    with pytest.raises(InputError, match="error must be positive and finite"):
        variogram_half_life(panel_of([[0, 1]]), error=error)


def test_bad_input():
    panel = panel_of([[0, 1, 2]])
    with pytest.raises(InputError, match='clock must be "releases" or "months"'):
        drift_variogram(panel, clock="days")
    with pytest.raises(InputError, match="versions without a date: v0, v1, v2"):
        drift_variogram(panel, clock="months")
    with pytest.raises(InputError, match="no series has two versions"):
        drift_variogram(panel_of([[0], [1]]))
    with pytest.raises(InputError, match="level must be between 0 and 1, e.g. 0.95, got 95"):
        drift_variogram(panel, level=95)
