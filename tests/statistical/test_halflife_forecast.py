"""Simulated: the probabilities that a forecast states against shares of fresh series.

Series of histories like those that are forecast are continued: the share of them still within the
promise h releases later must be the mean probability stated, and the intervals must hold it.
"""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.halflife.forecast import AHEAD, forecast_half_life
from errcomp.tables import History

pytestmark = pytest.mark.slow

LIMIT = float(np.log(1.1))
AT = np.asarray(AHEAD["releases"], dtype=int)
SERIES, VERSIONS, NOISE = 60, 24, 0.01


def moves(kind, rng, s, m):
    """Log changes of s series at m releases: rare steps of 25 %, in fours or alone, or drift."""
    if kind == "drift":
        return rng.normal(0, 0.03, (s, m))
    if kind == "steps":
        return rng.choice([-0.25, 0.25], (s, m)) * (rng.random((s, m)) < 0.05)
    return np.repeat(moves("steps", rng, s // 4, m), 4, axis=0)


def history(kind, rng):
    error = moves(kind, rng, SERIES, VERSIONS).cumsum(axis=1)[:, :, None]
    error = error + rng.normal(0, NOISE, (SERIES, VERSIONS, 2))
    names = np.repeat(np.arange(SERIES), 2 * VERSIONS)
    return History(
        {
            "version": [f"1.{i}" for i in range(VERSIONS) for _ in range(2)] * SERIES,
            "series": [f"op{i}" for i in names],
            "net": [f"net{i // 4}" for i in names],
            "repeat": [0, 1] * (SERIES * VERSIONS),
            "measured": np.exp(-error).ravel(),
        }
    )


def simulate(kind, runs):
    """Return by method: probabilities with bounds of each run, and how many refused."""
    rng = np.random.default_rng([7, len(kind)])
    cluster = "net" if kind == "clustered" else None
    by_method = {"survival": [], "drift": [], "steps": []}
    refused = dict.fromkeys(by_method, 0)
    for _ in range(runs):
        (group,) = forecast_half_life(history(kind, rng), error=0.1, cluster=cluster).groups
        for answer in group.answers:
            if answer.forecast is None:
                refused[answer.method] += 1
            else:
                forecast = answer.forecast
                values = (forecast.probability, forecast.low, forecast.high)
                by_method[answer.method].append(values)
    return {name: np.asarray(rows) for name, rows in by_method.items()}, refused


def truths(kind):
    """Return the shares of fresh series within the promise, and of those that never left it."""
    rng = np.random.default_rng(8)
    path = np.abs(moves(kind, rng, 200_000, AT[-1] + 1)[:, 1:].cumsum(axis=1)) < LIMIT
    path = np.column_stack([np.ones(len(path), dtype=bool), path])
    return path[:, AT].mean(axis=0), np.minimum.accumulate(path, axis=1)[:, AT].mean(axis=0)


def check(rows, truth, runs):
    """The mean probability is the share, and intervals hold it in 95 % of the runs or more."""
    mean, error = rows[:, 0].mean(axis=0), rows[:, 0].std(axis=0) / np.sqrt(runs)
    assert mean == pytest.approx(truth, abs=max(3.5 * error.max(), 0.005))
    covered = (rows[:, 1] <= truth + 1e-3) & (rows[:, 2] >= truth - 1e-3)
    assert (covered.mean(axis=0) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)).all()


@pytest.mark.parametrize("kind", ["steps", "clustered"])
def test_steps(kind):
    runs = 16
    by_method, refused = simulate(kind, runs)
    within, stayed = truths(kind)
    assert (refused["steps"], refused["survival"]) == (0, 0)
    # Taken for normal, rare steps would break the promise more often ahead than they do.
    assert refused["drift"] > (0.9 if kind == "steps" else 0.7) * runs
    check(by_method["steps"], within, runs)
    check(by_method["survival"], stayed, runs)


def test_drift():
    runs = 16
    by_method, refused = simulate("drift", runs)
    within, stayed = truths("drift")
    assert (refused["drift"], refused["survival"]) == (0, 0)
    assert refused["steps"] == runs
    check(by_method["drift"], within, runs)
    # Noise near the limit makes survival pessimistic, within its interval.
    survival = by_method["survival"]
    assert (survival[:, 1] <= stayed + 1e-3).all()
    assert (survival[:, 2] >= stayed - 1e-3).mean() > 0.9
