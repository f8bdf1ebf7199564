"""Tests of new correction factors by hand: factors, honest errors, intervals, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.gate.checking import recalibrate
from errcomp.halflife.panel import Panel


def panel_of_rows(error):
    error = np.atleast_2d(np.asarray(error, dtype=float))
    s, n = error.shape
    validated = ~np.isnan(error)
    return Panel(
        versions=tuple(f"1.{k}" for k in range(n)),
        months=np.arange(float(n)),
        names=tuple(f"op{i}" for i in range(s)),
        clusters=np.arange(s),
        starts=np.concatenate([[0], np.cumsum(validated.sum(axis=1))]),
        version=np.tile(np.arange(n), (s, 1))[validated],
        error=error[validated],
        sd=np.full(int(validated.sum()), np.nan),
        noise_df=np.zeros(s),
        frozen_at_first=False,
    )


def test_a_group_by_hand():
    error = np.array([[0.0, 0.4, 0.6], [0.1, 0.3, 0.3], [0.2, 0.7, np.nan]])
    factors = recalibrate(panel_of_rows(error), groups=["a"] * 3, since=1)
    means = np.array([0.5, 0.3, 0.7])
    assert factors.factor[0] == pytest.approx(np.exp(-0.5))
    half = stats.sem(means) * stats.t.isf(0.025, 2)
    assert (factors.low[0], factors.high[0]) == pytest.approx(
        (np.exp(-0.5 - half), np.exp(-0.5 + half))
    )
    # Every series weighs the same, however many rows it has.
    old = np.mean([np.mean([0.16, 0.36]), 0.09, 0.49])
    assert factors.old_error[0] == factors.old_total == pytest.approx(np.sqrt(old))
    new = np.mean([np.mean([(0.4 - 0.5) ** 2, (0.6 - 0.5) ** 2]), 0.3**2, 0.3**2])
    assert factors.new_error[0] == factors.new_total == pytest.approx(np.sqrt(new))
    assert (factors.n_series[0], factors.n_rows[0], factors.old_bias[0]) == (
        3,
        5,
        pytest.approx(0.5),
    )
    assert factors.judged_by[0] == "other series"
    assert factors.helps.tolist() == [True]


def test_a_single_series_is_judged_by_its_other_versions():
    factors = recalibrate(panel_of_rows([[0.4, 0.5, 0.9], [0.1, np.nan, np.nan]]))
    left = [0.4 - 0.7, 0.5 - 0.65, 0.9 - 0.45]
    assert factors.new_error[0] == pytest.approx(np.sqrt(np.mean(np.square(left))))
    half = stats.sem([0.4, 0.5, 0.9]) * stats.t.isf(0.025, 2)
    assert factors.high[0] == pytest.approx(np.exp(-0.6 + half))
    assert factors.judged_by.tolist() == ["other versions", "not judged"]
    # One row is a factor, but nothing to judge it by.
    assert factors.factor[1] == pytest.approx(np.exp(-0.1))
    assert np.isnan([factors.low[1], factors.high[1], factors.new_error[1]]).all()
    assert factors.helps.tolist() == [True, False]
    assert factors.old_total == pytest.approx(factors.old_error[0])


def test_a_factor_of_series_that_did_not_move_together_does_not_help():
    factors = recalibrate(panel_of_rows([[0.0], [0.0], [0.9]]), groups=["a"] * 3)
    assert factors.new_error[0] > factors.old_error[0]
    assert factors.helps.tolist() == [False]


def test_a_factor_that_leaves_the_error_as_it_is_does_not_help():
    factors = recalibrate(panel_of_rows([[0.0], [0.0], [0.0]]), groups=["a"] * 3)
    assert factors.new_error[0] == factors.old_error[0] == 0
    assert factors.helps.tolist() == [False]


def test_groups_keep_their_order():
    factors = recalibrate(panel_of_rows([[0.1], [0.2], [0.3]]), groups=["b", "a", "b"])
    assert factors.groups == ("b", "a")
    assert factors.factor == pytest.approx(np.exp([-0.2, -0.2]))
    assert np.isnan(recalibrate(panel_of_rows([[0.1]])).old_total)


def test_the_interval_covers():
    rng = np.random.default_rng(1)
    gates, series = 2000, 5
    true = rng.standard_normal(gates)
    error = np.repeat(true, series)[:, None] + 0.3 * rng.standard_normal((gates * series, 1))
    groups = np.repeat(np.arange(gates), series).astype(str).tolist()
    factors = recalibrate(panel_of_rows(error), groups=groups, level=0.9)
    covered = ((factors.low <= np.exp(-true)) & (np.exp(-true) <= factors.high)).mean()
    assert covered == pytest.approx(0.9, abs=3.3 * np.sqrt(0.09 / gates))


def test_the_new_error_is_that_of_a_series_that_was_not_seen():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(2000), 4)
    mean = rng.standard_normal(2000)[groups]
    seen = mean + 0.2 * rng.standard_normal(8000)
    factors = recalibrate(panel_of_rows(seen[:, None]), groups=groups.astype(str).tolist())
    # A factor of three series on a fourth: 0.2 * sqrt(1 + 1/3).
    assert factors.new_total == pytest.approx(0.2 * np.sqrt(4 / 3), rel=0.02)


def test_result_is_json():
    document = recalibrate(panel_of_rows([[0.4, 0.5], [0.1, np.nan]])).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["groups"][1]["new_error"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"groups": ["a"]}, "groups must be 2 names"),
        ({"since": 1.5}, "since must be positions of versions"),
        ({"since": [0, 3]}, r"1 of 2 groups have no validation since their last step: op1\."),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        recalibrate(panel_of_rows([[0.1, 0.2], [0.1, 0.2]]), **options)
