"""Do the points of parts keep what they promise? Coverage, width, false blame and power."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.halflife.steps.blame import blame
from errcomp.tables import History

pytestmark = pytest.mark.slow

RUNS, PARTS, STEP = 6, 5, 0.06


def noise(rng, n, law="normal", ar=0.0):
    e = rng.standard_t(4, n) / np.sqrt(2) if law == "t4" else rng.standard_normal(n)
    if law == "bad":
        e += 6 * (rng.random(n) < 0.05)
    for i in range(1, n if ar else 0):
        e[i] = ar * e[i - 1] + np.sqrt(1 - ar**2) * e[i]
    return e


def history_of(rng, n, at, *, law="normal", ar=0.0, machine=0.0):
    """Six networks of five operators and a rest; in every other one an operator adds 6 points."""
    columns = {name: [] for name in ("version", "level", "model", "op", "measured")}
    truth = {}
    for r in range(RUNS):
        base = 8 * rng.dirichlet(np.ones(PARTS))
        added = np.where(np.arange(PARTS) == 0, 10 * STEP * (r % 2 == 0), 0.0)
        common = machine * noise(rng, n)
        later = np.arange(n) >= at
        parts = [
            (b + a * later) * np.exp(0.02 * noise(rng, n, law, ar) + common)
            for b, a in zip(base, added, strict=True)
        ]
        whole = (np.sum(parts, axis=0) + 2 * np.exp(common)) * np.exp(0.01 * noise(rng, n, law, ar))
        truth[f"net{r}"] = added / 10
        for op, times in ((None, whole), *((f"op{i}", part) for i, part in enumerate(parts))):
            columns["version"] += [f"1.{k}" for k in range(n)]
            columns["level"] += ["operator" if op else "network"] * n
            columns["model"] += [f"net{r}"] * n
            columns["op"] += [op] * n
            columns["measured"] += times.tolist()
    return History(columns, unit="ms"), truth


@pytest.mark.parametrize(
    ("n", "at", "noise_of", "least"),
    [
        (24, 12, {}, 0.94),
        (10, 6, {}, 0.94),
        (24, 22, {}, 0.94),
        (24, 12, {"law": "t4"}, 0.93),
        (24, 12, {"law": "bad"}, 0.93),
        (24, 12, {"machine": 0.02}, 0.92),
        (24, 12, {"ar": 0.3}, 0.92),
        (40, 20, {"ar": 0.5}, 0.89),
    ],
)
def test_points_of_parts(n, at, noise_of, least):
    rng = np.random.default_rng(n + at)
    inside, widths, falsely, found, wholes, rests = [], [], [], [], [], []
    for _ in range(40):
        history, truth = history_of(rng, n, at, **noise_of)
        for event in blame(history, version=f"1.{at}").events:
            added = truth[event.whole]
            for part in event.parts:
                true = added[int(part.name[2:])]
                inside.append(part.low <= true <= part.high)
                widths.append(part.high - part.low)
                (found if true else falsely).append(part.p <= 0.05)
            wholes.append(event.low <= added.sum() <= event.high)
            rests.append(event.rest.low <= 0 <= event.rest.high)
    # 1,200 parts: one standard error is 0.7 %; 240 wholes: 1.4 %.
    assert least - 0.015 < np.mean(inside)
    assert least - 0.045 < np.mean(wholes)
    assert least - 0.045 < np.mean(rests)
    # A part is 16 % of its network on average, so its points have a noise of 0.3 %.
    assert np.mean(widths) < 0.018
    assert np.mean(falsely) < 0.03
    assert np.mean(found) > 0.95


def test_events_that_the_search_finds():
    """A step that was found because it is large covers nearly as often."""
    rng = np.random.default_rng(7)
    inside, at_right, false = [], [], 0
    for _ in range(40):
        history, truth = history_of(rng, 24, 12)
        for event in blame(history).events:
            added = truth[event.whole]
            if not added.any() or abs(int(event.version[2:]) - 12) > 1:
                false += 1
                continue
            at_right.append(event.version == "1.12")
            first = next(part for part in event.parts if part.name == "op0")
            inside.append(first.low <= STEP <= first.high)
    # 120 true events; 240 networks with 6 series each, at a false-alarm rate of 5 %.
    assert len(inside) >= 114
    assert np.mean(at_right) > 0.95
    assert np.mean(inside) > 0.88
    assert false < 120
