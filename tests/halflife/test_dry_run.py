"""Tests of a history that is gone through as the gate would have."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from errcomp.documents import load
from errcomp.errors import InputError
from errcomp.halflife.gate.dry_run import IN_ORDER, SHUFFLED, WITHOUT_STEPS, dry_run
from errcomp.halflife.panel import panel_of
from errcomp.halflife.steps.stability import REASONS
from errcomp.tables import History


@pytest.fixture(autouse=True)
def few_orders(monkeypatch):
    monkeypatch.setattr("errcomp.halflife.gate.dry_run._MOST_ORDERS", 4)


@pytest.fixture
def one_order(monkeypatch, few_orders):
    """For tests that look at the true order, or at what is made of the others."""
    monkeypatch.setattr("errcomp.halflife.gate.dry_run._MOST_ORDERS", 1)


def columns_of(series=6, versions=24, step=0.0, at=15, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    error = rng.normal(0, noise, (series, versions))
    error[0, at:] += step
    return {
        "version": [f"1.{k}" for k in range(versions)] * series,
        "op": np.repeat([f"op{i}" for i in range(series)], versions).tolist(),
        "measured": np.exp(error).ravel().tolist(),
    }


def history(**given):
    return History(columns_of(**given))


@pytest.mark.slow
def test_a_step_is_found_and_its_delay_is_counted():
    done = dry_run(history(step=0.3), by="op")
    [alarm] = done.alarms
    assert (alarm.series, alarm.group, alarm.version) == ("op0", "op0", "1.17")
    assert (alarm.first_version, alarm.step) == ("1.15", True)
    # Measured alone: the frozen prediction is now too small.
    assert alarm.shift == pytest.approx(-0.3, abs=0.02)
    [step] = done.steps
    assert (step.series, step.version, step.found_at, step.delay) == ("op0", "1.15", "1.17", 3)
    assert step.size == pytest.approx(-0.3, abs=0.02)
    rate = done.rate(IN_ORDER)
    assert (rate.gates, rate.fired, rate.alarms) == (1, 1, 1)
    assert rate.per_1000 == pytest.approx(1000 / rate.looks)


@pytest.mark.slow
def test_steps_that_the_search_would_have_reported():
    done = dry_run(history(step=0.3), by="op")
    assert done.reported is not None
    step = next(step for step in done.reported if step.series == "op0" and not step.reason)
    assert (step.version, step.reported_at, step.withdrawn_at) == ("1.15", "1.16", None)
    table = done.view().tables[-1]
    assert table.title == "Do steps stay once later versions are known?"
    clear, others = (
        [one for one in done.reported if (one.p <= 0.005) == which] for which in (True, False)
    )
    assert [column.value(table.rows[0]) for column in table.columns[1:]] == [
        len(clear),
        *(sum(one.reason == why for one in clear) for why in ("", *REASONS)),
    ]
    assert table.columns[1].value(table.rows[1]) == len(others)


@pytest.mark.slow
def test_a_document_from_before_steps_were_counted():
    document = json.loads(json.dumps(dry_run(history(step=0.3)).to_dict()))
    assert document["reported"]
    del document["reported"]
    older = load(document)
    assert older.reported is None
    assert len(older.view().tables) == 3


@pytest.mark.slow
def test_random_orders_without_steps_raise_no_alarms():
    done = dry_run(history(step=0.3))
    shuffled, without = done.rate(SHUFFLED), done.rate(WITHOUT_STEPS)
    assert shuffled.gates == without.gates == 4
    assert without.looks == pytest.approx(4 * done.rate(IN_ORDER).looks, rel=0.1)
    assert (without.alarms, without.fired) == (0, 0)
    # The step, in random order, is two levels of noise.
    assert shuffled.alarms >= without.alarms
    assert 0.005 < done.promised < 0.05
    assert "Few false alarms" in done.view().verdicts[0].head


@pytest.mark.slow
def test_there_are_orders_for_a_thousand_looks(monkeypatch):
    looks = dry_run(history(series=2, versions=40)).rate(IN_ORDER).looks
    monkeypatch.setattr("errcomp.halflife.gate.dry_run._LOOKS", 2 * looks)
    calls = []
    done = dry_run(history(series=2, versions=40), progress=lambda *done: calls.append(done))
    assert [rate.gates for rate in done.rates] == [1, 2, 2]
    assert calls == [(1, 2), (2, 2)]


@pytest.mark.slow
def test_random_orders_follow_the_seed():
    made = [dry_run(history(step=0.3, noise=0.05), seed=seed).to_dict() for seed in (1, 1, 2)]
    assert made[0] == made[1]
    assert made[0]["rates"] != made[2]["rates"]
    assert made[0]["alarms"] == made[2]["alarms"]


@pytest.mark.slow
def test_what_is_within_the_promise_is_no_alarm():
    assert dry_run(history(step=0.3)).alarms
    assert not dry_run(history(step=0.3), error=0.5).alarms
    wide = dry_run(history(step=0.3), margin=0.5)
    assert not wide.alarms
    assert dict(wide.view().method)["Margin"] == "50.00 %"
    assert dict(dry_run(history()).view().method)["Margin"] == "none"


def test_an_error_that_becomes_smaller_is_no_regression(one_order):
    # Predictions are half of what is measured before the step, and right after it.
    measured = np.exp(np.random.default_rng(3).normal(0, 0.01, 14))
    measured[:10] *= 2
    table = {
        "version": [f"1.{k}" for k in range(14)],
        "measured": measured.tolist(),
        "predicted": [1.0] * 14,
    }
    done = dry_run(History(table))
    assert (done.alarms, done.steps) == ((), ())
    assert done.rate(IN_ORDER).fired == 0
    assert "No steps" in done.view().verdicts[1].head


@pytest.mark.extras
def test_delays_are_drawn_where_there_is_a_step(one_order):
    drawn = dry_run(history(series=2, versions=14, step=0.3, at=10)).plot()
    [line] = drawn.lines
    assert line.get_ydata().tolist() == [0.0, 0.0, 100.0, 100.0, 100.0]
    with pytest.raises(InputError, match="the history has no step"):
        dry_run(history(series=2, versions=6)).plot()


def test_nothing_can_be_tested():
    done = dry_run(history(series=1, versions=3))
    assert [rate.looks for rate in done.rates] == [0, 0, 0]
    assert math.isnan(done.rates[0].per_1000)
    assert done.view().verdicts[0].head == "Cannot tell yet"


def test_a_noisy_history_is_said_to_be_noisy():
    # Repeats that show a hundredth of the noise, and few enough versions that this is not seen.
    rng = np.random.default_rng(0)
    level = rng.standard_t(1, (40, 5)).ravel() / 5
    rows = [
        {"version": f"1.{v}", "op": f"op{i}", "measured": math.exp(x + rng.normal(0, 1e-4))}
        for (i, v), x in zip(np.ndindex(40, 5), level, strict=True)
        for _ in range(3)
    ]
    done = dry_run(History({name: [row[name] for row in rows] for name in rows[0]}))
    rate = done.rate(WITHOUT_STEPS)
    assert rate.fired == 4
    verdict = done.view().verdicts[0]
    assert (verdict.head, verdict.tone) == ("More false alarms than promised", "bad")
    assert "4 of 4 gates" in verdict.text


def test_a_panel_in_another_order_keeps_its_values():
    panel = panel_of(history(series=3, versions=5)).panel
    order = np.array([3, 0, 4, 1, 2])
    rows, mixed = panel.reordered(order)
    assert mixed.versions == ("1.1", "1.3", "1.4", "1.0", "1.2")
    for old, new in zip(rows.tolist(), range(len(rows)), strict=True):
        assert panel.versions[panel.version[old]] == mixed.versions[mixed.version[new]]
        assert (panel.series[old], panel.error[old]) == (mixed.series[new], mixed.error[new])
    assert (np.diff(mixed.version.reshape(3, 5)) > 0).all()


def test_the_command(run, tmp_path, one_order):
    table = tmp_path / "history.csv"
    given = columns_of(series=2, versions=14, step=0.3, at=10)
    lines = [",".join(map(str, row)) for row in zip(*given.values(), strict=True)]
    table.write_text("\n".join([",".join(given), *lines]) + "\n")
    printed = run("halflife", "check", table, "--dry-run", "-o", tmp_path / "done.json").out
    document = json.loads((tmp_path / "done.json").read_text(encoding="utf-8"))
    assert document["schema"] == "errcomp.half-life-dry-run/1"
    assert [step["delay"] for step in document["steps"]] == [3]
    assert "FEW FALSE ALARMS" in printed
    assert "1 OF 1 STEP FOUND" in printed
    # What belongs to the check of a new version is refused.
    for more in ((table,), ("--recalibrate",), ("--fail-on", "repeat"), ("--junit", "x.xml")):
        refused = run("halflife", "check", table, *more, "--dry-run")
        assert refused.code == 2
        assert "--dry-run uses only the history" in refused.err
    missing = run("halflife", "check", table)
    assert missing.code == 2
    assert "add --dry-run" in missing.err
