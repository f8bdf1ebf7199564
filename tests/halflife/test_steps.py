"""Tests of steps by hand: places, sizes, bursts, lone values, noise known, bad input.

False alarms, power and coverage are simulated in tests/statistical/test_halflife_steps.py.
"""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.halflife.panel import Panel
from errcomp.halflife.steps import find_steps, find_steps_of
from errcomp.halflife.steps import scan as scan
from errcomp.halflife.steps.null import (
    autocorrelations,
    critical_evidence,
    independent,
    p_values,
    segments_tabulated,
)
from errcomp.halflife.steps.scan import Batch
from errcomp.halflife.steps.search import search


def wiggle(n, seed=0, sd=0.01):
    return sd * np.random.default_rng(seed).standard_normal(n)


def panel_of(rows, *, sd=None, df=None):
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    return Panel(
        versions=tuple(f"v{i}" for i in range(longest)),
        months=np.arange(float(longest)),
        names=tuple(f"s{i}" for i in range(len(rows))),
        clusters=np.arange(len(rows)),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        version=np.concatenate([np.arange(n) for n in lengths]),
        error=np.concatenate(rows),
        sd=np.full(sum(lengths), np.nan) if sd is None else np.concatenate(sd),
        noise_df=np.zeros(len(rows)) if df is None else np.asarray(df, dtype=float),
        frozen_at_first=False,
    )


@pytest.fixture
def independent_noise(monkeypatch):
    """Neighbours are independent, and series say nothing of each other."""
    monkeypatch.setattr("errcomp.halflife.steps.learned", lambda batch, clusters: batch)


# The step that is found


def test_one_step_by_hand(independent_noise):
    x = wiggle(16) + np.where(np.arange(16) < 6, 0.0, 0.3)
    result = find_steps(x, labels=[f"1.{i}" for i in range(16)])
    (step,) = result.steps
    assert (step.at, step.at_low, step.at_high) == (6, 6, 6)
    assert (step.versions, step.earliest, step.latest) == (("1.5", "1.6"), "1.6", "1.6")
    assert step.before == pytest.approx(x[:6].mean())
    assert step.after == pytest.approx(x[6:].mean())
    assert step.size == pytest.approx(x[6:].mean() - x[:6].mean())
    # With its place beyond doubt the interval is that of a t-test of two samples.
    pooled = stats.ttest_ind(x[6:], x[:6]).confidence_interval(0.95)
    assert (step.size_low, step.size_high) == pytest.approx((pooled.low, pooled.high), rel=1e-6)
    assert result.sd == pytest.approx(math.sqrt((6 * x[:6].var() + 10 * x[6:].var()) / 14))
    assert (result.n, result.df, result.noise_ratio, result.unseen) == (16, 14, None, 1)
    assert result.p == step.p < 1e-6
    assert step.change == pytest.approx(
        tuple(math.expm1(v) for v in (step.size, step.size_low, step.size_high))
    )


def test_moving_scaling_and_turning_the_series_moves_scales_and_turns_the_step():
    x = wiggle(14, 3) + np.where(np.arange(14) < 9, 0.0, 0.05)
    (step,) = find_steps(x).steps
    (scaled,) = find_steps(7 - 100 * x).steps
    (turned,) = find_steps(x[::-1]).steps
    assert (scaled.at, turned.at) == (step.at, 14 - step.at)
    assert scaled.p == pytest.approx(step.p, rel=1e-6)
    assert turned.p == pytest.approx(step.p, rel=1e-6)
    assert scaled.size == pytest.approx(-100 * step.size)
    assert scaled.size_low == pytest.approx(-100 * step.size_high, rel=1e-5)
    assert turned.size == pytest.approx(-step.size)


def test_a_bad_release_mended_two_releases_later():
    x = wiggle(12, 1)
    x[5:7] += 0.2
    up, down = find_steps(x).steps
    assert (up.at, down.at) == (5, 7)
    assert up.size_low < 0.2 < up.size_high
    assert down.size_low < -0.2 < down.size_high
    assert up.p == down.p


def test_several_steps_are_found_in_the_parts():
    levels = np.repeat([0.0, 0.2, 0.1, 0.5], 8)
    result = find_steps(wiggle(32, 2) + levels)
    assert [step.at for step in result.steps] == [8, 16, 24]
    assert [step.size for step in result.steps] == pytest.approx([0.2, -0.1, 0.4], abs=0.02)
    assert result.df == 28
    # The first cut is that of the whole series; parts pay for being a part.
    assert result.p in {step.p for step in result.steps}
    alone = find_steps((wiggle(32, 2) + levels)[:24])
    assert len({step.p for step in result.steps} - {result.p, alone.p}) >= 1


@pytest.mark.parametrize("n", [8, 12, 30, 100])
@pytest.mark.parametrize("where", [0, "middle", "last"])
def test_one_bad_run_is_no_step(n, where):
    x = wiggle(n, 4)
    x[{"middle": n // 2, "last": n - 1}.get(where, where)] += 0.5
    assert find_steps(x).steps == ()


def test_the_last_version_is_not_seen_yet_and_the_last_two_are():
    x = wiggle(20, 5)
    x[-1] += 0.2
    assert find_steps(x).steps == ()
    x[-2] += 0.2
    assert [step.at for step in find_steps(x).steps] == [18]


def test_longer_segments_on_request():
    x = wiggle(20, 6)
    x[10:12] += 0.3
    assert [step.at for step in find_steps(x).steps] == [10, 12]
    assert find_steps(x, min_segment=4).steps == ()
    x[12:14] += 0.3
    assert [step.at for step in find_steps(x, min_segment=4).steps] == [10, 14]
    assert find_steps(x, min_segment=4).unseen == 3


def test_place_is_a_set_where_values_do_not_tell():
    x = np.array([0.1, -0.2, 0.0, 0.2, -0.1, 0.1, 0.5, 0.95, 1.2, 0.9, 1.1, 1.0, 0.8])
    (step,) = find_steps(x).steps
    assert step.at_low <= step.at <= step.at_high
    assert (step.at_low, step.at_high) == (6, 7)
    # The size allows for both places.
    at = step.at
    alone = stats.ttest_ind(x[at:], x[:at]).confidence_interval(0.95)
    assert step.size_high - step.size_low > alone.high - alone.low


def test_a_cut_that_does_not_hold_is_dropped():
    # The interval from 5 to 10 stands out most, but its end is no step: what follows is as high.
    x = np.array([0.0, 0.4, -0.3, -0.2, 0.0, 1.0, 1.2, 1.1, 1.1, 1.1, 0.8, 0.9, 0.9])
    *_, cuts = search(Batch.of(x, np.ones(13), np.array([0, 13]), np.zeros(1)), 0.05, 2)
    assert cuts.at.tolist() == [5, 10]
    assert [step.at for step in find_steps(x).steps] == [5]


# Without noise, without steps, too short


def test_series_without_noise():
    (step,) = find_steps([0, 0, 0, 0, 1, 1, 1]).steps
    assert (step.at, step.size, step.size_low, step.size_high) == (4, 1, 1, 1)
    assert step.p < 1e-100
    up, down = find_steps([0.3] * 5 + [0.7] * 3 + [0.3] * 4).steps
    assert (up.at, down.at, up.size) == (5, 8, pytest.approx(0.4))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_constant_series(value):
    result = find_steps([value] * 11)
    assert result.steps == ()
    assert result.p == 1
    assert result.sd == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_short_is_refused(n):
    result = find_steps(np.arange(float(n)))
    assert result.steps == ()
    assert result.p is None
    assert result.refused.endswith(f"the series has {n}")
    assert result.unseen == n
    assert find_steps([0.0, 1.0] * 3, min_segment=4).refused.endswith(
        "at least 8 values are needed (4 before and 4 after a step), the series has 6"
    )


# Noise known from repeats


def test_known_noise_finds_what_the_series_alone_cannot():
    x = np.array([0.0, 0.1, 0.35, 0.25])
    assert find_steps(x).steps == ()
    result = find_steps(x, sd=0.02, df=np.inf)
    assert [step.at for step in result.steps] == [2]
    # One split, noise exact: a z-test.
    assert result.p == pytest.approx(2 * stats.norm.sf(0.25 / 0.02), rel=0.1, abs=0)
    assert (result.sd, result.df) == (0.02, np.inf)
    assert result.to_dict()["df"] is None


def test_one_split_with_known_noise_is_a_t_test():
    # Of four values there is one split: p is that of a t-test with all degrees of freedom.
    x, sd, df = np.array([0.0, 0.1, 0.3, 0.2]), 0.1, 8.0
    squares = 2 * x[:2].var() + 2 * x[2:].var()
    s = math.sqrt((df * sd**2 + squares) / (df + 2))
    result = find_steps(x, sd=sd, df=df)
    assert result.p == pytest.approx(2 * stats.t.sf(0.2 / s, df + 2), rel=0.05)
    assert result.df == df + 3


def test_repeats_that_miss_noise_are_named():
    # Part of the noise is taken for steps.
    result = find_steps(wiggle(30, 7), sd=0.001, df=40)
    assert 3 < result.noise_ratio < 13
    assert "times as much" in result.notes[0]
    calm = find_steps(wiggle(30, 7), sd=0.01, df=40)
    assert calm.noise_ratio == pytest.approx(1, rel=0.3)
    assert calm.notes == ()
    assert "times" in find_steps(wiggle(30, 7), sd=0.001, df=np.inf).notes[0]


def test_values_weigh_by_their_noise():
    sd = np.where(np.arange(12) % 3 == 1, 0.1, 0.01)
    x = wiggle(12, 8, 1.0) * sd + np.where(np.arange(12) < 6, 0.0, 0.1)
    (step,) = find_steps(x, sd=sd, df=1000).steps
    assert step.at == 6
    assert step.after == pytest.approx(np.average(x[6:], weights=sd[6:] ** -2.0))
    # Taken as alike the noisy values hide most of it.
    assert find_steps(x).p > 1e4 * find_steps(x, sd=sd, df=1000).p
    # The same for all, whether given once or for each.
    scalar, each = find_steps(x, sd=0.02, df=9), find_steps(x, sd=np.full(12, 0.02), df=9)
    assert scalar.p == pytest.approx(each.p)


# Many series


def test_panel_agrees_with_each_series_alone(independent_noise):
    rows = [wiggle(n, n) + 0.1 * (np.arange(n) >= n // 2) * (n % 2) for n in (3, 7, 9, 12, 9, 15)]
    sd = [np.full(len(row), 0.01) for row in rows]
    sd[3][2] = np.nan
    df = [5, 5, 0, 5, np.inf, 5]
    results = find_steps_of(panel_of(rows, sd=sd, df=df))
    assert [result.n for result in results] == [len(row) for row in rows]
    for i, (row, result) in enumerate(zip(rows, results, strict=True)):
        labels = [f"v{k}" for k in range(len(row))]
        known = df[i] > 0 and i != 3
        alone = (
            find_steps(row, sd=sd[i], df=df[i], labels=labels)
            if known
            else find_steps(row, labels=labels)
        )
        assert result.to_dict() == alone.to_dict()
    assert results[1].steps[0].versions == ("v2", "v3")


def test_panel_in_blocks_and_without_series(monkeypatch):
    rows = list(wiggle(9 * 50, 1).reshape(50, 9))
    whole = [result.p for result in find_steps_of(panel_of(rows))]
    monkeypatch.setattr(scan, "_BLOCK", 1)
    assert [result.p for result in find_steps_of(panel_of(rows))] == whole
    empty = panel_of([np.zeros(1)])
    none = Panel(
        empty.versions,
        empty.months,
        (),
        np.zeros(0, int),
        np.zeros(1, int),
        np.zeros(0, int),
        np.zeros(0),
        np.zeros(0),
        np.zeros(0),
        frozen_at_first=False,
    )
    assert find_steps_of(none) == []


def test_panel_with_an_error_that_is_not_finite():
    panel = panel_of([np.array([0.0, np.nan, 1.0, 2.0])])
    with pytest.raises(InputError, match="panel.error must be finite, got nan in row 1"):
        find_steps_of(panel)


def test_result_is_frozen_and_goes_to_json():
    result = find_steps([0, 0, 0.1, 0, 1, 1.1, 1])
    with pytest.raises(FrozenInstanceError):
        result.p = 1.0
    values = json.loads(json.dumps(result.to_dict()))
    (step,) = values["steps"]
    assert step["versions"] == ["3", "4"]
    assert step["change"] == pytest.approx(math.expm1(step["size"]))
    assert values["notes"] == []
    assert values["smallest_end"] > values["smallest_middle"] > 0


# Parts


def test_winsorised_pulls_lone_values_only():
    x = np.array([[0.0, 1.0, -1.0, 1.0, -1.0, 90.0, 1.0, -1.0, 50.0, 60.0]])
    pulled = scan.winsorised(x, np.ones((1, 10)), np.array([[2, 2]]))[0]
    middle = np.median(x)
    limit = 3 * 1.4826 * np.median(np.abs(x - middle))
    assert pulled[5] == pytest.approx(middle + limit)
    # Two together stay: the farther goes to the nearer.
    assert pulled[8:].tolist() == [50.0, 50.0]
    assert pulled[:5].tolist() == x[0, :5].tolist()
    # Where more than half of the values are equal the mean deviation is the scale.
    rare = np.array([[0.0] * 9 + [10.0]])
    pulled = scan.winsorised(rare, np.ones((1, 10)), np.array([[2, 2]]))
    assert pulled[0, -1] == pytest.approx(3 * 1.2533)


def test_where_bad_runs_are_frequent_two_together_are_pulled_in_too():
    x = np.array([[0.0, 1.0, -1.0, 1.0, -1.0, 0.5, 40.0, 50.0, 1.0, -1.0, -70.0, -80.0]] * 2)
    middle, scale = np.median(x[0]), 1.4826 * np.median(np.abs(x[0] - np.median(x[0])))
    # Three or more above may be a step, but two below.
    pulled = scan.winsorised(x, np.ones((1, 12)), np.array([[3, 2], [2, 2]]))
    assert pulled[0, 6:8] == pytest.approx(middle + 2 * scale)
    assert pulled[0, 10:].tolist() == pulled[1, 10:].tolist() == [-70.0, -70.0]
    assert pulled[1, 6:8].tolist() == [40.0, 40.0]
    x[0, 8] = 45.0
    three = scan.winsorised(x, np.ones((1, 12)), np.array([[3, 2], [2, 2]]))
    assert three[0, 6:9].tolist() == [40.0, 40.0, 40.0]
    # A run is never longer than half of the values.
    assert scan.winsorised(x[:, :4], np.ones((1, 4)), np.full((2, 2), 6)).shape == (2, 4)


def test_gains_by_brute_force():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((3, 11)), rng.uniform(0.5, 2, (3, 11))
    squares, split, interval = scan.gains(x, w, 2)
    splits_at, intervals_at = (scan.locate(x, w, 2, interval=of) for of in (False, True))

    def gain(row, inside):
        a, b = row[0][inside], row[0][~inside]
        wa, wb = row[1][inside], row[1][~inside]
        gap = np.average(a, weights=wa) - np.average(b, weights=wb)
        return gap**2 / (1 / wa.sum() + 1 / wb.sum())

    k = np.arange(11)
    for i, row in enumerate(zip(x, w, strict=True)):
        mean = np.average(row[0], weights=row[1])
        assert squares[i] == pytest.approx((row[1] * (row[0] - mean) ** 2).sum())
        splits = {j: gain(row, k < j) for j in range(2, 10)}
        assert split[i] == pytest.approx(max(splits.values()))
        assert splits_at[i].tolist() == [max(splits, key=splits.get)]
        intervals = {
            (a, b): gain(row, (k >= a) & (k < b)) for a in range(2, 8) for b in range(a + 2, 10)
        }
        assert interval[i] == pytest.approx(max(intervals.values()))
        assert tuple(intervals_at[i]) == max(intervals, key=intervals.get)


def test_p_is_monotone_and_its_inverse_is_the_critical_value():
    known = np.eye(len(autocorrelations()))
    chances = np.array([known.mean(axis=0), known[0], known[12]])
    for n, share, m in ((6, 1.0, 2), (21, 0.6, 2), (33, 0.0, 3), (150, 0.3, 4), (900, 1.0, 2)):
        for chance in chances:
            evidence = np.linspace(0, 30, 200)
            p = p_values(evidence, n, np.full(200, share), m, np.tile(chance, (200, 1)))
            assert (np.diff(p) <= 1e-12).all()
            assert p[0] == pytest.approx(1)
        shares = np.full(3, share)
        for alpha in (0.5, 0.05, 0.01, 1e-5):
            critical = critical_evidence(n, shares, m, alpha, chances)
            assert p_values(critical, n, shares, m, chances) == pytest.approx(alpha, rel=0.02)
            # The more the neighbours are correlated, the more evidence is needed.
            assert critical[1] < min(critical[0], critical[2])


def test_p_is_the_mean_over_what_the_autocorrelation_may_be():
    known = autocorrelations()
    assert known == pytest.approx(np.linspace(0, 0.75, 16))
    each = p_values(np.full(16, 8.0), 20, np.ones(16), 2, np.eye(16))
    assert (np.diff(each) > 0).all()
    # Every third is tabulated: between them ln p is linear.
    assert each[1] == pytest.approx(each[0] ** (2 / 3) * each[3] ** (1 / 3))
    mixed = np.random.default_rng(1).dirichlet(np.ones(16), 1)
    assert p_values(np.array([8.0]), 20, np.ones(1), 2, mixed) == pytest.approx(mixed @ each)


def test_p_lies_between_that_of_one_contrast_and_that_of_all_of_them():
    # Far out, where winsorising is no matter: Bonferroni from above, one test from below.
    for n in (4, 12, 40, 200):
        splits, rest = n - 3, max(n - 5, 0)
        all_of_them = splits + rest * (rest + 1) / 2 * math.exp(-scan.penalty(n, 2))
        for share in (0.0, 0.5, 1.0):
            p = p_values(np.array([7.0]), n, np.array([share]), 2, independent(1))[0]
            assert 0.8 * math.exp(-7) < p < 1.25 * all_of_them * math.exp(-7)


def test_segments_tabulated():
    assert segments_tabulated() == (2, 3, 4)


# Bad input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": [[1, 2]]}, "values must have 1 dimension, got 2"),
        ({"values": [1, np.nan, 2, np.inf]}, "values must be finite, got nan in rows 1, 3"),
        ({"values": ["a"]}, "values must be numbers"),
        ({"sd": 0.1}, "sd and df must be given together, got sd=given, df=0."),
        ({"df": 3}, "sd and df must be given together, got sd=None, df=3."),
        ({"sd": 0.1, "df": -1}, "df must be 0 or more, got -1"),
        ({"sd": 0.1, "df": math.nan}, "df must be 0 or more, got nan"),
        ({"sd": 0.1, "df": True}, "df must be 0 or more, got True"),
        ({"sd": [0.1, 0.1], "df": 3}, "sd must be one number or 5"),
        ({"sd": [0.1, 0, 1, 1, 1], "df": 3}, "sd must be positive, got 0 in row 1"),
        ({"sd": np.nan, "df": 3}, "sd must be finite"),
        ({"alpha": 0}, "alpha must be between 0 and 1, got 0"),
        ({"alpha": "0.05"}, "alpha must be between 0 and 1"),
        ({"alpha": True}, "alpha must be between 0 and 1"),
        ({"min_segment": 1}, "min_segment must be one of 2, 3, 4"),
        ({"min_segment": True}, "min_segment must be one of"),
        ({"labels": ["a"]}, "labels must be 5 names, one per value, got 1"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(InputError, match=message):
        find_steps(**{"values": [0.0, 0.1, 0.2, 0.1, 0.0], **given})
    if "alpha" in given:
        with pytest.raises(InputError, match=message):
            find_steps_of(panel_of([np.zeros(5)]), **given)
