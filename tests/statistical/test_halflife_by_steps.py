"""Does the half-life by steps cover, and is it narrower than the survival methods?

The laws of steps are not those of the method: normal, heavy-tailed and two-point sizes; rates that
differ over series; series that step at the same releases, or in clusters; steps one way only, and
steps that are undone.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.halflife.drift import fit_variogram
from errcomp.halflife.estimators.by_steps import steps_half_life
from errcomp.halflife.estimators.expiry import expiry_of
from errcomp.halflife.estimators.survival import half_lives_of
from errcomp.halflife.steps import find_steps_of

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that simulates the histories, found as the scripts find it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("half_life_table")


LAWS = ("normal", "heavy", "two", "one way", "rates", "releases", "clusters", "undone")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "noise"), [(30, 0.02), (30, 0.05)])
def test_intervals_cover_and_are_narrower(law, n, noise, table):
    true, rng, sets = table.truth(law), np.random.default_rng(5), 40
    inside, widths, others = [], [], []
    for _ in range(sets):
        panel = table.panel_of(law, n, noise, rng)
        fit = fit_variogram(panel, "releases")
        mine = steps_half_life(panel, table.THRESHOLD, "releases", find_steps_of(panel), fit)
        if mine.half_life is None:
            continue
        inside.append(mine.low <= true <= mine.high)
        widths.append(math.log(mine.high / mine.low))
        survival = half_lives_of(expiry_of(panel, table.THRESHOLD, "releases"))[0]
        others.append(
            math.inf if survival.half_life is None else math.log(survival.high / survival.low)
        )
    assert len(inside) > 0.85 * sets
    # Three binomial errors of 90 %, which steps at the same releases come down to.
    assert np.mean(inside) >= 0.90 - 3 * math.sqrt(0.09 / len(inside))
    # A factor of 2 to 5 between the ends, and 10 where releases or clusters step together.
    assert np.median(widths) < (2.4 if law in ("releases", "clusters") else 1.5)
    if law not in ("releases", "two"):
        assert np.median(widths) < 0.8 * np.median(others)


def test_many_series(table):
    true, rng, inside, widths = table.truth("normal"), np.random.default_rng(6), [], []
    for _ in range(40):
        panel = table.panel_of("normal", 120, 0.02, rng)
        fit = fit_variogram(panel, "releases")
        mine = steps_half_life(panel, table.THRESHOLD, "releases", find_steps_of(panel), fit)
        inside.append(mine.low <= true <= mine.high)
        widths.append(mine.high / mine.low)
    assert np.mean(inside) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 40)
    assert np.median(widths) < 1.8
