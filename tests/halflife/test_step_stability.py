"""Tests of what later versions take back of the steps that the search reported."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from errcomp import datasets
from errcomp.halflife.panel import Panel, panel_of
from errcomp.halflife.steps import find_steps_of
from errcomp.halflife.steps.stability import REASONS, _reason, reported_steps
from errcomp.tables import History

CAME_BACK, ELSEWHERE, WEAKER = REASONS


def panel_with(error, versions=None):
    series, n = error.shape
    return Panel(
        versions=tuple(f"1.{k}" for k in range(n)) if versions is None else versions,
        months=np.arange(float(n)),
        names=tuple(f"s{i}" for i in range(series)),
        clusters=np.arange(series),
        starts=np.arange(series + 1) * n,
        version=np.tile(np.arange(n), series),
        error=error.ravel(),
        sd=np.full(series * n, np.nan),
        noise_df=np.zeros(series),
        frozen_at_first=False,
    )


def noise(series=1, versions=30, seed=0):
    return 0.01 * np.random.default_rng(seed).standard_normal((series, versions))


def test_a_step_that_lasts_stays():
    error = noise()
    error[0, 15:] += 0.2
    [step] = reported_steps(panel_with(error))
    assert (step.series, step.version, step.reported_at, step.n_after) == ("s0", "1.15", "1.16", 2)
    assert (step.withdrawn_at, step.reason) == (None, "")
    assert step.size == pytest.approx(0.2, abs=0.02)
    assert step.p < 0.005


def test_what_is_reported_is_what_the_search_finds_then():
    error = noise(series=10, versions=24, seed=3)
    error[:5, 12:] += 0.03
    panel = panel_with(error)
    reported = reported_steps(panel)
    assert len(reported) > 5
    positions = {name: k for k, name in enumerate(panel.versions)}
    looks = {at: panel.until(positions[at])[1] for at in {step.reported_at for step in reported}}
    searched = {at: find_steps_of(known) for at, known in looks.items()}
    for step in reported:
        i = int(step.series[1:])
        then = {one.versions[1]: one for one in searched[step.reported_at][i].steps}
        assert then[step.version].size == step.size
        assert step.n_after == positions[step.reported_at] - positions[step.version] + 1
    now = sum(len(one.steps) for one in find_steps_of(panel))
    assert sum(not step.reason for step in reported) == now
    assert [positions[step.reported_at] for step in reported] == sorted(
        positions[step.reported_at] for step in reported
    )


def test_values_that_come_back():
    # Two of the first four values are larger by chance.
    first, second = reported_steps(panel_with(noise(versions=12, seed=39)))[:2]
    assert (first.version, first.reported_at, first.withdrawn_at) == ("1.3", "1.4", "1.7")
    assert first.reason == CAME_BACK
    assert second.reported_at != first.reported_at


def test_a_step_found_elsewhere():
    # A step needs two values: with one after it, a large one is found a version too early.
    error = noise(versions=18, seed=1)
    error[0, 11] += 0.02
    error[0, 12:] += 0.3
    early, late = reported_steps(panel_with(error))
    assert (early.version, early.reported_at, early.withdrawn_at) == ("1.11", "1.12", "1.13")
    assert early.reason == ELSEWHERE
    assert (late.version, late.reported_at, late.withdrawn_at) == ("1.12", "1.13", None)


def test_a_new_step_the_other_way_is_another():
    x = np.array([0.0, 0.0, 0.0, 0.1, 0.1, -0.5, -0.5])
    lost, down, up = (
        SimpleNamespace(at=at, size=size) for at, size in ((3, 0.1), (5, -0.6), (4, 0.4))
    )
    assert _reason(lost, (down,), [down], x) == WEAKER
    assert _reason(lost, (up,), [up], x) == ELSEWHERE
    assert _reason(lost, (), [], x) == CAME_BACK


def test_less_evidence():
    # The noise turns out larger than the first versions showed.
    error = noise(versions=24, seed=4)
    error[0, 6:9] += 0.045
    error[0, 9:] += 0.03 + 4 * noise(versions=15, seed=5)[0]
    reasons = {step.reason for step in reported_steps(panel_with(error))}
    assert WEAKER in reasons


def test_without_noise_or_steps_nothing_is_reported():
    assert reported_steps(panel_with(np.zeros((3, 12)))) == []
    assert reported_steps(panel_with(noise(versions=3))) == []


def test_series_that_begin_later_and_gaps():
    versions = [f"1.{k}" for k in range(20)]
    rng = np.random.default_rng(0)
    rows = {"version": [], "op": [], "measured": []}
    for op, kept in (("early", versions), ("late", versions[8:]), ("gaps", versions[::2])):
        for k in kept:
            rows["version"].append(k)
            rows["op"].append(op)
            up = 1.5 if op == "late" and versions.index(k) >= 14 else 1.0
            rows["measured"].append(up * np.exp(0.01 * rng.standard_normal()))
    [step] = [s for s in reported_steps(panel_of(History(rows)).panel) if not s.reason]
    assert (step.series, step.version, step.reported_at) == ("late", "1.14", "1.15")


def test_a_long_history_is_searched_at_a_hundred_versions(monkeypatch):
    import errcomp.halflife.steps.stability as module

    searched = []

    def nothing(panel, **given):
        searched.append(len(panel.versions))
        return [SimpleNamespace(steps=())]

    monkeypatch.setattr(module, "find_steps_of", nothing)
    assert reported_steps(panel_with(noise(versions=250))) == []
    assert len(searched) == 100
    assert searched[0] == 4
    assert searched[-1] == 250


@pytest.mark.slow
def test_the_operators_of_the_built_in_history():
    kernels = datasets.load("ort-releases").where({"level": "kernel"})
    reported = reported_steps(panel_of(kernels).panel)
    clear = [step for step in reported if step.p <= 0.005]
    assert (len(reported), len(clear)) == (177, 28)
    assert sum(not step.reason for step in clear) == 25
    assert sum(not step.reason for step in reported) == 25 + 102


@pytest.mark.slow
def test_how_many_steps_stay():
    """Steps that are clear stay; in series without a step, most that are reported do not."""
    rng = np.random.default_rng(20261128)
    panel = panel_with(rng.standard_normal((400, 40)))
    none = reported_steps(panel)
    # 37 looks at a false-alarm rate of 5 % each, of which neighbours share all values but one.
    series = {step.series for step in none}
    assert 120 < len(series) < 240
    assert sum(step.withdrawn_at is not None for step in none) > 0.8 * len(none)
    at = rng.integers(5, 35, 400)
    stepped = replace(
        panel,
        error=(panel.error.reshape(400, 40) + 4 * (np.arange(40) >= at[:, None])).ravel(),
    )
    clear = [step for step in reported_steps(stepped) if step.p <= 0.005]
    assert len(clear) > 100
    assert sum(step.withdrawn_at is not None for step in clear) <= 0.06 * len(clear)
