"""Tests of the error trajectory by hand, and of the half-life read off it.

Coverage is simulated in tests/statistical/test_halflife_variogram.py.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.drift.trajectory import error_trajectory, trajectory_half_life
from errcomp.halflife.panel import Panel


def panel_of(rows, *, version=None, sd=0.0, clusters=None, months=None, frozen=False):
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
        frozen_at_first=frozen,
    )


def errors(profile, series=60, seed=0):
    return np.asarray(profile) * np.random.default_rng(seed).standard_normal((series, len(profile)))


# The trajectory


def test_trajectory_by_hand():
    panel = panel_of([[0.0, 0.3], [-0.1, 0.1, 0.4]], version=[[2, 3], [0, 1, 2]], sd=0.1)
    curve = error_trajectory(panel)
    assert curve.lag.tolist() == [0, 1, 2]
    assert curve.n.tolist() == curve.n_clusters.tolist() == [2, 2, 1]
    assert curve.bias == pytest.approx([-0.05, 0.2, 0.4])
    assert curve.size == pytest.approx([0.05, 0.2, 0.4])
    assert curve.rms == pytest.approx([0, np.sqrt(0.05 - 0.01), np.sqrt(0.15)])
    assert curve.noise == pytest.approx([0.1] * 3)
    assert curve.below_noise.tolist() == [True, False, False]
    assert np.isnan(curve.rms_low).all()
    assert curve.reference is None


def test_parts_are_averaged_by_lag():
    panel = panel_of([[0, 0.3], [0, 0.1]])
    curve = error_trajectory(panel, reference=[0, 0.1, 0, 0.3], predictor=[0, 0.2, 0, -0.2])
    assert curve.reference == pytest.approx([0, 0.2])
    assert curve.predictor == pytest.approx([0, 0])
    assert curve.reference + curve.predictor == pytest.approx(curve.bias)


def test_noise_of_the_first_measurement_counts_where_it_is_the_prediction():
    rows = [[0, 0.3], [0, 0.1]]
    curve = error_trajectory(panel_of(rows, sd=0.1, frozen=True))
    assert curve.noise == pytest.approx([0, np.sqrt(0.02)])
    assert curve.rms == pytest.approx([0, np.sqrt(0.05 - 0.02)])
    assert not curve.below_noise.any()


def test_months_are_rounded():
    panel = panel_of([[0, 1], [0, 2]], version=[[0, 1], [1, 2]], months=[0, 2.9, 6.1])
    curve = error_trajectory(panel, clock="months")
    assert curve.lag.tolist() == [0, 3]
    assert curve.unit == "months"
    assert curve.n.tolist() == [2, 2]


def test_bias_and_size_have_the_interval_of_student():
    rows = errors([0.05, 0.08], 12)
    curve = error_trajectory(panel_of(rows))
    for values, low, high in (
        (rows, curve.bias_low, curve.bias_high),
        (np.abs(rows), curve.size_low, curve.size_high),
    ):
        expected = stats.t.interval(0.95, 11, values.mean(0), stats.sem(values))
        np.testing.assert_allclose([low, high], expected, rtol=1e-7)


def test_rms_has_the_interval_of_a_chi_square_for_normal_errors():
    rows = errors([0.05], 2000)
    curve = error_trajectory(panel_of(np.hstack([rows, rows])))
    df = stats.chi2.ppf([0.975, 0.025], 2000)
    expected = np.sqrt((rows**2).mean() * 2000 / df)
    assert (curve.rms_low[0], curve.rms_high[0]) == pytest.approx(tuple(expected), rel=5e-3)


def test_clusters_widen_intervals():
    rows = np.repeat(errors([0.05, 0.1], 10), 8, axis=0)
    alone = error_trajectory(panel_of(rows))
    together = error_trajectory(panel_of(rows, clusters=np.repeat(np.arange(10), 8)))
    assert together.n_clusters.tolist() == [10, 10]
    np.testing.assert_allclose(alone.rms, together.rms)
    wider = (together.rms_high - together.rms_low) / (alone.rms_high - alone.rms_low)
    assert (wider > 2).all()


def test_trajectory_goes_to_json():
    curve = error_trajectory(panel_of([[0, 0.3], [0, 0.1]]))
    values = json.loads(json.dumps(curve.to_dict()))
    assert values["rms_low"] == [None, None]
    assert values["n"] == [2, 2]
    assert values["unit"] == "releases"


# The half-life


def test_half_life_where_a_release_doubles_the_error():
    profile = [0.05, 0.05, 0.05, 0.15, 0.15]
    half_life = trajectory_half_life(panel_of(errors(profile)), threshold=0.1)
    assert (half_life.half_life, half_life.low, half_life.high) == (3, 3, 3)
    assert half_life.censored_share < 0.5
    assert half_life.details["lag"] == [0, 1, 2, 3, 4]
    assert not half_life.refused
    json.dumps(dict(half_life.details))


def test_half_life_not_reached():
    half_life = trajectory_half_life(panel_of(errors([0.03] * 6)), threshold=0.1)
    assert half_life.half_life == half_life.high == np.inf
    assert half_life.low == 5
    assert half_life.censored_share > 0.9


def test_half_life_in_doubt_has_a_wide_interval():
    half_life = trajectory_half_life(panel_of(errors([0.05, 0.098, 0.1, 0.2])), threshold=0.1)
    assert half_life.low == 1
    assert half_life.low <= half_life.half_life <= half_life.high == 3


def test_chance_crossings_of_a_curve_do_not_count():
    # The curve touches the threshold at many lags by chance; it doubles at the last three.
    rows = errors([0.085] * 40 + [0.2] * 3, 30, seed=1)
    half_life = trajectory_half_life(panel_of(rows), threshold=0.1)
    assert (np.array(half_life.details["rms"][1:40]) >= 0.1).any()
    assert half_life.half_life == half_life.high == 40
    assert half_life.low == 1


def test_seed_decides_the_draws():
    panel = panel_of(errors(np.linspace(0.05, 0.15, 12), 12))
    first, same, other = (trajectory_half_life(panel, threshold=0.1, seed=s) for s in (0, 0, 1))
    assert first.details == same.details
    assert first.details["low"] != other.details["low"]


def test_refused_with_few_clusters_or_beyond_from_the_start():
    few = trajectory_half_life(panel_of(errors([0.05, 0.2], 4)), threshold=0.1)
    assert few.half_life is few.low is None
    assert "has at least 5 effective clusters of series (the most is 4.0), so" in few.refused
    late = trajectory_half_life(panel_of(errors([0.3, 0.3])), threshold=0.1)
    assert late.half_life is None
    assert "at calibration" in late.refused


def test_noise_unknown_is_said():
    panel = panel_of(errors([0.05, 0.05, 0.2]), sd=np.nan)
    half_life = trajectory_half_life(panel, threshold=0.1)
    assert "noise counts as error" in half_life.assumptions[-1]
    known = trajectory_half_life(replace(panel, sd=np.zeros(180)), threshold=0.1)
    assert len(known.assumptions) == 2


def test_errors_that_are_exactly_alike():
    half_life = trajectory_half_life(panel_of([[0.05, 0.2]] * 6), threshold=0.1)
    assert (half_life.half_life, half_life.low) == (1, 1)


# Bad input


def test_bad_input():
    panel = panel_of([[0, 1], [0, 1]])
    with pytest.raises(InputError, match=r"reference must have one value per row \(4\), got shape"):
        error_trajectory(panel, reference=[0, 1])
    with pytest.raises(InputError, match="versions without a date"):
        error_trajectory(panel, clock="months")
    with pytest.raises(InputError, match="clock must be"):
        trajectory_half_life(panel, threshold=0.1, clock="years")
    with pytest.raises(InputError, match="no series has two versions"):
        error_trajectory(panel_of([[0], [0]]))
    with pytest.raises(InputError, match="level must be"):
        error_trajectory(panel, level=1)
    with pytest.raises(InputError, match="threshold must be positive"):
        trajectory_half_life(panel, threshold=0)
