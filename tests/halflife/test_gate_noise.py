"""The noise of a gate by hand: laws, sums, scales, autocorrelation, and replays of a history."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from errcomp.errors import InputError
from errcomp.halflife.gate import monitor, monitor_of, spent
from errcomp.halflife.gate.laws import SIZES, noise_law
from errcomp.halflife.gate.monitor import Monitor
from errcomp.halflife.gate.replay import replayed
from errcomp.halflife.gate.scales import (
    SHARES,
    Repeats,
    autocorrelation,
    centres,
    medians,
    memory,
    scales,
)
from tests.halflife.test_gate import panel_of_rows


def normal(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def sums(law, size, at):
    return law.p(SIZES.index(size), np.array([at]), np.array([at]))[0]


# The law


@pytest.mark.parametrize("size", [1, 2, 5, 11, 30])
def test_sums_of_normal_noise_are_normal(size):
    law = noise_law(normal(20_000), 1e-6, repeated=False)
    for z in (2.0, 3.0, 4.5):
        p = sums(law, size, z * np.sqrt(size))
        assert p == pytest.approx(2 * stats.norm.sf(z), rel=0.3)
        assert sums(law, size, -z * np.sqrt(size)) == pytest.approx(p, rel=0.1)


def test_runs_of_bad_values_are_as_frequent_as_they_are():
    rng = np.random.default_rng(1)
    bad = rng.random(40_000) < 0.05
    law = noise_law(np.where(bad, 9.0, rng.standard_normal(40_000)), 1e-6, repeated=False)
    # They are on one side: nothing comes down by as much.
    for size in (2, 3, 4):
        # Sums are those beyond their mean.
        top = law.clip * size
        assert sums(law, size, top) == pytest.approx(2 * 0.05**size, rel=0.3)
        assert sums(law, size, -top) < sums(law, size, top) / 20
    assert law.clip <= 3


def test_a_sum_beyond_all_is_as_rare_as_the_largest():
    law = noise_law(normal(2000), 1e-6, repeated=False)
    assert sums(law, 2, 2 * law.clip + 0.2) == sums(law, 2, 2 * law.clip + 0.06)


def test_single_values_far_off_have_a_heavy_tail():
    law = noise_law(normal(2000), 1e-6, repeated=True)
    p = law.p_of_one(*np.tile([6.0, 12.0, 60.0], (2, 1)))
    assert p[0] / p[1] == pytest.approx(8)
    assert p[0] / p[2] == pytest.approx(1000)
    down = law.p_of_one(np.array([-12.0]), np.array([-12.0]))
    assert down[0] == pytest.approx(p[1], rel=0.1)


def test_few_scores_leave_room_for_bad_runs():
    few, many = (noise_law(normal(n), 1e-6, repeated=False) for n in (10, 3000))
    assert few.clip <= 3 < many.clip
    assert sums(few, 1, 6.0) > 1000 * sums(many, 1, 6.0)
    # Means of repeats have no single bad run.
    repeated = noise_law(normal(10), 1e-6, repeated=True)
    assert sums(repeated, 1, 5.0) < sums(few, 1, 5.0) / 50


def test_noise_in_two_levels_is_learned_from_its_histogram():
    rng = np.random.default_rng(2)
    scores = np.where(rng.random(20_000) < 0.5, -1.0, 1.0) + 0.05 * rng.standard_normal(20_000)
    law = noise_law(scores, 1e-6, repeated=False)
    # Ten equal ones: a coin that falls on one side.
    assert sums(law, 6, 5.7) == pytest.approx(2 * 0.5**6, rel=0.3)
    assert law.tail_df == np.inf


def test_the_tail_is_that_of_the_student_it_came_from():
    rng = np.random.default_rng(3)
    for df in (3, 5):
        law = noise_law(stats.t.rvs(df, size=40_000, random_state=rng), 1e-6, repeated=False)
        scores = stats.t.rvs(df, size=40_000, random_state=rng)
        assert law.n == len(scores)
        assert law.tail_df < 10
    assert noise_law(normal(40_000), 1e-6, repeated=False).tail_df > 30


# Scales and correlation


def test_memory_is_the_variance_of_a_mean_of_an_autoregression():
    for ar in (0.0, 0.3, 0.7):
        for n in (1, 2, 5, 40):
            lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
            assert memory(float(n), ar) == pytest.approx((ar**lags).sum() / n)


def test_centres_and_medians_leave_gaps_out():
    x = np.array([[1.0, np.nan, 3.0, 2.0], [np.nan] * 4, [0.0, 0.0, 0.0, 100.0], [5.0, 6.0, 8, 7]])
    assert medians(x)[[0, 2, 3]].tolist() == [2.0, 0.0, 6.5]
    assert centres(x)[[0, 3]] == pytest.approx([2.0, 6.5])
    assert np.isnan(medians(x)[1])
    assert np.isnan(centres(x)[1])
    many = normal(1000)
    assert centres(many[None])[0] == pytest.approx(many.mean(), abs=0.02)


def without(s):
    return Repeats(np.full(s, np.nan), np.zeros(s), np.zeros(s, dtype=bool))


def test_scales_are_recovered_and_bad_runs_count_little():
    x = normal((40, 60)) * np.repeat([1.0, 4.0], 20)[:, None]
    found = scales(x, np.ones(40), np.ones(40), without(40))
    assert np.median(found.sd[:20]) == pytest.approx(1, rel=0.07)
    assert np.median(found.sd[20:]) == pytest.approx(4, rel=0.07)
    x[:, ::20] += 50
    bad = scales(x, np.ones(40), np.ones(40), without(40))
    assert np.median(bad.sd[:20]) < 1.35
    # Each baseline costs a degree of freedom.
    more = scales(x, np.ones(40), np.full(40, 6.0), without(40))
    assert (more.df <= bad.df).all()
    assert (more.sd[:20] > bad.sd[:20] * 1.02).all()


def test_equal_values_have_no_scale():
    x = np.zeros((3, 10))
    x[1] = normal(10)
    found = scales(x, np.ones(3), np.ones(3), without(3))
    assert found.flat.tolist() == [True, False, True]
    assert found.df[[0, 2]].tolist() == [0, 0]


def test_repeats_are_combined_with_the_scatter_between_looks():
    x, s = 3 * normal((30, 40)), 30
    repeats = Repeats(np.ones(s), np.full(s, 10.0), np.ones(s, dtype=bool))
    found = scales(x, np.ones(s), np.ones(s), repeats)
    assert found.of_repeats == pytest.approx(3, rel=0.05)
    assert np.median(found.sd) == pytest.approx(3, rel=0.07)
    assert found.df == pytest.approx(np.full(s, 10 + 0.95 * 39))
    # Without looks there are the repeats alone.
    first = scales(np.full((s, 1), np.nan), np.ones(s), np.ones(s), repeats)
    assert first.sd == pytest.approx(np.ones(s))
    assert first.of_repeats == 1


@pytest.mark.parametrize("ar", [0.0, 0.3, 0.6])
def test_the_autocorrelation_is_recovered(ar):
    x = normal((20, 300))
    for k in range(1, 300):
        x[:, k] = ar * x[:, k - 1] + np.sqrt(1 - ar**2) * x[:, k]
    found = autocorrelation(x, np.full(20, 300))
    assert found == pytest.approx(ar, abs=0.04)
    # Few values count as uncorrelated.
    assert autocorrelation(x[:1, :8], np.array([8])) < 0.35
    assert autocorrelation(np.zeros((2, 5)), np.array([5, 5])) == 0


def test_a_mixture_over_scales_is_students_t():
    at, weight = SHARES
    assert weight.sum() == pytest.approx(1)
    for df in (5, 30):
        scale = np.sqrt(stats.chi2.ppf(at, df) / df)
        for z in (3, 6):
            p = weight @ (2 * stats.norm.sf(z * scale))
            assert 1 <= p / (2 * stats.t.sf(z, df)) < 1.07


# Replays


def test_a_replay_is_the_gate_look_by_look():
    error = 0.01 * normal((5, 60))
    error[2, 40:] += 0.08
    panel = panel_of_rows(error)
    found = replayed(panel)
    assert found.series.tolist() == [2]
    assert found.begin.tolist() == [40]
    assert 1 <= found.version[0] - found.begin[0] <= 3
    assert found.shift[0] == pytest.approx(0.08, abs=0.015)
    assert found.p[0] <= spent(int(found.version[0]))
    assert 40 < found.looks < 60
    assert found.repeats < 5
    assert not len(replayed(panel, margin=0.2).version)


def test_a_bad_replay_is_refused():
    with pytest.raises(InputError, match="one version only"):
        replayed(panel_of_rows([[0.0]]))
    with pytest.raises(InputError, match="margin must be 0 or larger"):
        replayed(panel_of_rows([[0.0, 0.1]]), margin=-1)
    with pytest.raises(InputError, match="repeats must be 2 numbers of at least 1"):
        replayed(panel_of_rows([[0.0, 0.1]]), repeats=[1.0])


def test_series_that_begin_late_and_have_gaps_are_watched():
    error = 0.01 * normal((4, 60))
    error[1, :30] = np.nan
    error[2, ::3] = np.nan
    error[1, 50:] += 0.1
    error[2, 50:] += 0.1
    found = replayed(panel_of_rows(error))
    assert sorted(found.series.tolist()) == [1, 2]
    assert (found.begin >= 49).all()


def test_the_same_history_gives_the_same_state_whatever_comes_later():
    error = 0.01 * normal((3, 30))
    states = []
    for n in (20, 30):
        monitor = Monitor(panel_of_rows(error[:, :n]), np.ones(3 * n), np.zeros(3, int), 0.0)
        monitor.skip(0)
        looks = [monitor.look(k, spent(k)).p for k in range(1, 20)]
        states.append(np.array(looks))
    assert states[0] == pytest.approx(states[1], rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("ar", [False, True])
def test_many_series_are_averaged_over_the_scale_in_parts(monkeypatch, ar):
    rng = np.random.default_rng(3)
    error = 0.02 * rng.standard_normal((11, 30))
    if ar:
        for k in range(1, 30):
            error[:, k] += 0.4 * error[:, k - 1]
    error[:, 20:] += np.linspace(0.03, 0.2, 11)[:, None]
    whole = replayed(panel_of_rows(error))
    monkeypatch.setattr(monitor, "_AT_ONCE", 3)
    parts = replayed(panel_of_rows(error))
    assert len(whole.p) > 5
    assert parts.series.tolist() == whole.series.tolist()
    assert parts.p == pytest.approx(whole.p, rel=1e-9)


def averaged_by_hand(gate, series, first, at):
    """Average the probability of a window over the likely scales, one after the other."""
    of_baseline = gate._baseline(np.array([series]), np.array([first]))
    m, precision, mean = (float(one[0]) for one in of_baseline)
    away = gate._x[series, first : at + 1] - gate._centre[series, at]
    w, df = len(away), float(gate.df[series])
    size = max(k for k, one in enumerate(SIZES) if one <= w)

    def inflation(ar):
        return float(memory(float(w), ar) + w / precision * memory(m, ar))

    def p_of(total, ar):
        part = np.array([total * np.sqrt(SIZES[size] / w / inflation(ar))])
        return float(gate.law.p(size, part, part)[0])

    total = 0.0
    for share, weight in zip(*SHARES, strict=True):
        factor = np.sqrt(df / 2 / special.gammaincinv(df / 2, share))
        scores, below = away / (gate._scale[series] * factor), w * mean / factor
        summed = np.clip(scores, -gate.law.clip, gate.law.clip).sum() - below
        p = p_of(summed, gate.ar)
        if gate.ar > 0:
            nearest = max(scores.min(), (-scores).min(), 0.0)
            error = np.sqrt(1 + float(memory(m, gate.ar)) / precision)
            p = min(p, max(p_of(summed, 0.0), 2 * stats.norm.cdf(-nearest / error)))
        if w == 1:
            one = (scores - below) / np.sqrt(inflation(gate.ar))
            p = float(gate.law.p_of_one(one, one)[0])
        total += weight * p
    return total


@pytest.mark.parametrize("ar", [0.0, 0.5])
def test_the_probability_is_averaged_over_the_scale(ar):
    rng = np.random.default_rng(3)
    error = 0.02 * rng.standard_normal((6, 50))
    for k in range(1, 50):
        error[:, k] += ar * error[:, k - 1]
    error[:, 44:] += np.array([0.03, 0.06, -0.06, 0.1, 0.0, -0.02])[:, None]
    gate = monitor_of(panel_of_rows(error), None, None, 0.0)
    for version in range(50):
        gate.look(version, 1e-3)
    assert (gate.ar > 0) == (ar > 0)
    for size in (1, 2, 5, 7):
        series, at = np.arange(6), np.full(6, 49)
        found = gate._mixed(series, at, at + 1 - size)
        by_hand = [averaged_by_hand(gate, one, 50 - size, 49) for one in range(6)]
        assert found == pytest.approx(by_hand, rel=1e-9)
