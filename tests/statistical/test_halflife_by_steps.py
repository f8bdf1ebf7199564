"""Does the half-life by steps cover, and is it narrower than the survival methods?

The laws of steps are not those of the method: normal, heavy-tailed and two-point sizes; rates that
differ over series; series that step at the same releases, or in clusters; steps one way only, and
steps that are undone.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.halflife.drift import fit_variogram
from errcomp.halflife.estimators.by_steps import steps_half_life
from errcomp.halflife.estimators.expiry import expiry_of
from errcomp.halflife.estimators.survival import half_lives_of
from errcomp.halflife.panel import Panel
from errcomp.halflife.steps import find_steps_of

pytestmark = pytest.mark.slow

VERSIONS, THRESHOLD, RATE, SIZE = 24, 0.1 * math.sqrt(3), 0.12, 0.3


def errors(law, n, m, rng):
    sizes, rate = rng.normal(0, SIZE, (n, m)), np.full((n, m), RATE)
    if law == "heavy":
        sizes = SIZE * rng.standard_t(2, (n, m))
    elif law == "two sizes":
        sizes = rng.choice([-1, 1], (n, m)) * rng.choice([0.05, 0.5], (n, m))
    elif law == "one way":
        sizes = np.abs(sizes)
    elif law == "rates differ":
        rate = rng.gamma(1, RATE, (n, 1)) * np.ones((n, m))
    elif law == "releases":
        rate = rng.choice([0, 0.02, 0.6], (1, m), p=[0.4, 0.42, 0.18]) * np.ones((n, m))
    elif law == "undone":
        rate = rate / 2
    happened = rng.random((n, m)) < rate
    if law == "clusters":
        cluster = np.arange(n) // 3
        happened = happened[cluster]
        sizes = sizes[cluster] * rng.uniform(0.7, 1.3, (n, 1))
    happened[:, 0] = False
    moved = np.where(happened, sizes, 0.0)
    if law == "undone":
        moved[:, 3:] -= np.where(happened, sizes, 0.0)[:, :-3]
    return moved.cumsum(axis=1)


def truth(law):
    """Return the release by which half of many series have been beyond the threshold."""
    rng = np.random.default_rng(99)
    beyond = [np.abs(errors(law, 300, 150, rng)) >= THRESHOLD for _ in range(60)]
    first = np.concatenate([np.where(b.any(axis=1), b.argmax(axis=1), 1000) for b in beyond])
    return float(np.median(first))


def panel_of(law, n, noise, rng):
    true = errors(law, n, VERSIONS, rng)
    error = true + noise * rng.standard_normal(true.shape)
    m = VERSIONS
    return Panel(
        versions=tuple(map(str, range(m))),
        months=2.0 * np.arange(m),
        names=tuple(map(str, range(n))),
        clusters=np.arange(n) // (3 if law == "clusters" else 1),
        starts=m * np.arange(n + 1),
        version=np.tile(np.arange(m), n),
        error=(error - error[:, :1]).ravel(),
        sd=np.full(n * m, noise),
        noise_df=np.full(n, np.inf),
        frozen_at_first=True,
    )


LAWS = ("normal", "heavy", "two sizes", "one way", "rates differ", "releases", "clusters", "undone")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "noise"), [(30, 0.02), (30, 0.05)])
def test_intervals_cover_and_are_narrower(law, n, noise):
    true, rng, sets = truth(law), np.random.default_rng(5), 40
    inside, widths, others = [], [], []
    for _ in range(sets):
        panel = panel_of(law, n, noise, rng)
        fit = fit_variogram(panel, "releases")
        mine = steps_half_life(panel, THRESHOLD, "releases", find_steps_of(panel), fit)
        if mine.half_life is None:
            continue
        inside.append(mine.low <= true <= mine.high)
        widths.append(math.log(mine.high / mine.low))
        survival = half_lives_of(expiry_of(panel, THRESHOLD, "releases"))[0]
        others.append(
            math.inf if survival.half_life is None else math.log(survival.high / survival.low)
        )
    assert len(inside) > 0.85 * sets
    # Three binomial errors of 90 %, which steps at the same releases come down to.
    assert np.mean(inside) >= 0.90 - 3 * math.sqrt(0.09 / len(inside))
    # A factor of 2 to 5 between the ends, and 10 where releases or clusters step together.
    assert np.median(widths) < (2.4 if law in ("releases", "clusters") else 1.5)
    if law not in ("releases", "two sizes"):
        assert np.median(widths) < 0.8 * np.median(others)


def test_many_series():
    true, rng, inside, widths = truth("normal"), np.random.default_rng(6), [], []
    for _ in range(40):
        panel = panel_of("normal", 120, 0.02, rng)
        fit = fit_variogram(panel, "releases")
        mine = steps_half_life(panel, THRESHOLD, "releases", find_steps_of(panel), fit)
        inside.append(mine.low <= true <= mine.high)
        widths.append(mine.high / mine.low)
    assert np.mean(inside) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 40)
    assert np.median(widths) < 1.8
