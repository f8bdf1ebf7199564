"""Tests of how many repeats the gate needs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.halflife.gate.planning import RepeatsNeed, _noise_of, plan_gate
from errcomp.halflife.gate.replay import replayed
from errcomp.halflife.panel import Panel
from errcomp.tables import History


@pytest.fixture(autouse=True)
def few_draws(request, monkeypatch):
    if "slow" not in request.keywords:
        monkeypatch.setattr("errcomp.halflife.gate.planning._CHANGES", 12)


def history(repeats=3, within=0.02, between=0.0, series=20, versions=30, seed=0):
    rng = np.random.default_rng(seed)
    look = rng.normal(0, between, (series, versions, 1)) if between else 0.0
    x = np.exp(look + rng.normal(0, within, (series, versions, repeats)))
    at = np.indices(x.shape).reshape(3, -1)
    return History(
        {
            "version": [f"1.{k}" for k in at[1]],
            "op": [f"op{k}" for k in at[0]],
            "measured": x.ravel().tolist(),
        }
    )


def test_more_repeats_find_a_smaller_change():
    plan = plan_gate(0.05, noise=0.02, series=20, looks=12)
    assert plan.change == pytest.approx(math.log(1.05))
    assert plan.repeats in (2, 3, 4)
    chances = [row.within for row in plan.rows]
    assert chances == sorted(chances)
    assert all(row.at_once <= row.within for row in plan.rows)
    for row in plan.rows:
        assert row.noise == pytest.approx(0.02 / math.sqrt(row.repeats))
    assert next(row for row in plan.rows if row.repeats == plan.repeats).within >= 0.9
    assert plan_gate(0.025, noise=0.02, series=20, looks=12).repeats > plan.repeats


def test_one_run_never_decides_at_once():
    plan = plan_gate(0.3, noise=0.02, looks=8, within=1)
    assert plan.repeats == 2
    assert next(row for row in plan.rows if row.repeats == 1).at_once == 0.0
    assert plan.view().verdicts[0].head == "2 repeats"


@pytest.mark.parametrize(
    ("enough", "tried", "found"),
    [
        (1, [6, 3, 2, 1], 1),
        (2, [6, 3, 2, 1], 2),
        (5, [6, 3, 5, 4], 5),
        (7, [6, 12, 10, 8], 8),
        (16, [6, 12, 20, 16], 16),
        (20, [6, 12, 20, 16], 20),
        (21, [6, 12, 20], None),
    ],
)
def test_the_smallest_number_that_reaches_the_power_is_found_by_halves(
    monkeypatch, enough, tried, found
):
    def reached(repeats, *_):
        return RepeatsNeed(repeats, 0.01, 0.1, 0.8 if repeats >= enough else 0.79)

    monkeypatch.setattr("errcomp.halflife.gate.planning._need", reached)
    told = []
    plan = plan_gate(0.3, noise=0.02, power=0.8, progress=lambda *at: told.append(at))
    assert plan.repeats == found
    assert [row.repeats for row in plan.rows] == sorted(tried)
    # The bound of eleven numbers: log2(11) rounded up, and one.
    assert told == [(i + 1, 5) for i in range(len(tried))]
    assert (plan.series, plan.looks, plan.within, plan.between) == (1, 30, 3, 0.0)
    assert (plan.alpha, plan.seed) == (0.05, 0)


def test_noise_between_looks_is_not_averaged_out():
    plan = plan_gate(0.05, noise=0.02, between=0.03, series=20, looks=12)
    assert plan.repeats is None
    assert plan.rows[-1].noise == pytest.approx(math.hypot(0.03, 0.02 / math.sqrt(20)))
    verdict = plan.view().verdicts[0]
    assert (verdict.head, verdict.tone) == ("More than 20 repeats", "doubt")
    assert "Most noise is between looks" in verdict.text
    # It is within looks here.
    verdict = plan_gate(0.01, noise=0.1, series=20, looks=12).view().verdicts[0]
    assert "less noisy" in verdict.text


@pytest.mark.parametrize(("within", "between"), [(0.02, 0.0), (0.02, 0.02), (0.01, 0.03)])
def test_noise_is_learned_from_repeats(within, between):
    found = _noise_of(history(within=within, between=between))
    assert found.noise == pytest.approx(within, rel=0.1)
    if between:
        assert found.between == pytest.approx(between, rel=0.15)
    else:
        assert found.between < within / 2
    assert (found.series, found.looks) == (20, 30)


def test_without_repeats_all_noise_counts_as_within_a_look():
    found = _noise_of(history(repeats=1, within=0.02, between=0.02))
    assert found.noise == pytest.approx(0.02 * math.sqrt(2), rel=0.1)
    assert found.between == 0
    assert "Without repeats it is unknown" in found.notes[0]


@pytest.mark.slow
def test_what_is_given_counts_before_the_history():
    plan = plan_gate(0.3, history=history(versions=10), noise=0.05, series=7, looks=12)
    assert (plan.noise, plan.series, plan.looks) == (0.05, 7, 12)


def test_a_history_too_short_to_show_its_noise():
    short = history(repeats=1, series=1, versions=3)
    assert (_noise_of(short).noise, _noise_of(short).looks) == (None, 8)
    with pytest.raises(InputError, match="too few validations to show it"):
        plan_gate(0.1, history=short)
    assert _noise_of(history(repeats=1, series=1, versions=8)).noise is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"change": 0.0}, "change must be"),
        ({"change": -1.0}, "change must be"),
        ({"noise": 0.0}, "noise must be"),
        ({"between": -0.1}, "noise must be"),
        ({"looks": 7}, "looks must be a whole number from 8"),
        ({"within": 0}, "within must be"),
        ({"series": True}, "series must be"),
        ({"power": 1.0}, "power must be"),
        ({"alpha": 0.0}, "alpha must be"),
    ],
)
def test_bad_values_are_refused(given, message):
    arguments = {"change": 0.05, "noise": 0.02, **given}
    with pytest.raises(InputError, match=message):
        plan_gate(arguments.pop("change"), **arguments)
    with pytest.raises(InputError, match="the noise is unknown"):
        plan_gate(0.05)


@pytest.mark.slow
def test_the_command(run, tmp_path):
    done = run("plan", "gate", "--change", "20%", "--noise", "2%", "--within", "1", "--json")
    document = json.loads(done.out)
    assert (document["schema"], document["repeats"]) == ("errcomp.plan-gate/1", 2)
    table = tmp_path / "history.csv"
    given = history(versions=10)
    rows = given.native.to_polars() if hasattr(given.native, "to_polars") else given.native
    rows.write_csv(table)
    printed = run("plan", "gate", table, "--change", "20%", "--unit", "ms").out
    assert "noise of the median series" in printed
    told = " ".join(printed.split())
    assert "that occurs in one of 20 series after the first 10 looks" in told


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "between"), [(3, 0.0), (2, 0.01)])
def test_the_chance_is_that_of_the_gate_on_a_history(repeats, between):
    plan = plan_gate(0.05, noise=0.02, between=between, series=20, within=5)
    [chance] = [row.within for row in plan.rows if row.repeats == repeats]
    found = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 99])
        look = rng.normal(0, between, (20, 35, 1))
        runs = look + rng.normal(0, 0.02, (20, 35, repeats))
        runs[0, 30:] += math.log(1.05)
        x = runs.mean(axis=2)
        pooled = math.sqrt(runs.var(axis=2, ddof=1).mean() / repeats)
        panel = Panel(
            tuple(map(str, range(35))), np.arange(35.0), tuple(map(str, range(20))), np.arange(20),
            np.arange(21) * 35, np.tile(np.arange(35), 20), x.ravel(), np.full(700, pooled),
            np.full(20, 35.0 * (repeats - 1)), frozen_at_first=False,
        )  # fmt: skip
        seen = replayed(panel, repeats=np.full(700, float(repeats)))
        found.append(bool(((seen.series == 0) & (seen.version >= 30)).any()))
    # Both are simulated: four standard errors.
    error = math.sqrt(max(chance * (1 - chance), 0.02) * (1 / 60 + 1 / 160))
    assert abs(np.mean(found) - chance) < 4 * error
