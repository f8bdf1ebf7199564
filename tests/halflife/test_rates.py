"""Why the steps of a group cannot explain its drift, in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errcomp.halflife.drift import fit_variogram
from errcomp.halflife.panel import Panel
from errcomp.halflife.steps import Steps, find_steps
from errcomp.halflife.steps.rates import detects, why_no_rates


def searched(smallest: float | None, **changes: Any) -> Steps:
    return replace(find_steps([0.0, 0.01, -0.01, 0.0]), smallest_middle=smallest, **changes)


def panel_of(error: np.ndarray) -> Panel:
    s, n = error.shape
    return Panel(
        versions=tuple(f"1.{k}" for k in range(n)),
        months=np.full(n, np.nan),
        names=tuple(f"op{i}" for i in range(s)),
        clusters=np.arange(s),
        starts=n * np.arange(s + 1),
        version=np.tile(np.arange(n), s),
        error=error.ravel(),
        sd=np.full(s * n, 0.001),
        noise_df=np.full(s, 20.0),
        frozen_at_first=True,
    )


def test_a_step_as_large_as_the_limit_is_detected() -> None:
    assert detects(searched(0.1), 0.1)
    assert not detects(searched(0.11), 0.1)
    assert not detects(searched(None), 0.1)
    assert not detects(searched(0.01, refused="too few"), 0.1)


def test_why_steps_explain_no_drift() -> None:
    rare = np.zeros((20, 12))
    rare[np.arange(20), np.arange(20) % 10 + 1] = 0.3
    small = np.random.default_rng(0).normal(0, 0.03, (20, 12))
    few, many = (
        fit_variogram(panel_of(moves.cumsum(axis=1)), "releases") for moves in (rare, small)
    )
    refused = searched(0.05, refused="3 values")

    def why(*steps: Steps, fit: Any = few, **options: str) -> str:
        return why_no_rates(steps, 0.1, fit, "threshold", **options)

    assert why(refused, refused) == "no series could be searched for steps: 3 values."
    assert why(searched(None), refused) == "noise hides steps as large as the threshold."
    sizes = [searched(math.log(1.25)), searched(None), searched(math.log(1.5)), refused]
    assert why(*sizes) == (
        "noise hides steps as large as the threshold (the smallest detectable is 25.00 %)."
    )
    assert why(*sizes, searched(0.1)) == ""
    assert why(searched(0.1), fit=many, remedy=" Use drift.") == (
        "drift consists of many small changes, not a few steps, so the detected steps are not "
        "real. Use drift."
    )
    assert why(searched(0.1), fit=replace(many, law=None)) == ""


@pytest.mark.parametrize("n", [1, 3])
def test_every_series_counts(n: int) -> None:
    fit = fit_variogram(panel_of(np.zeros((4, 6))), "releases")
    steps = [*[searched(0.2)] * n, searched(0.05)]
    assert why_no_rates(steps, 0.1, fit, "promise") == ""
