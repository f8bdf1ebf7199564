"""Every metric with every method for its interval, on samples of several kinds, as stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.errors import InputError, NotDefinedError
from errcomp.metrics import FIGURES
from errcomp.metrics.intervals import METHODS, estimate

Stored = Callable[[str, Any], None]

#: Metrics of each kind, for the methods that are no default.
SOME = (
    *("mape", "gmape", "wape", "bias", "rmsle", "r2", "within_10"),
    *("median_ape", "p90_ape", "kendall"),
)


def samples() -> dict[str, dict[str, Any]]:
    """Few, many, with equal values, with outliers, in clusters, and in clusters that cross."""
    rng = np.random.default_rng(7)
    made: dict[str, dict[str, Any]] = {}
    for name, n, sd in (("few", 9, 0.1), ("many", 120, 0.2), ("small errors", 40, 0.001)):
        measured = np.exp(rng.normal(1, 1, n))
        made[name] = {"measured": measured, "predicted": measured * np.exp(rng.normal(0, sd, n))}
    measured = np.round(np.exp(rng.normal(1, 1, 60)), 1) + 1
    odd = np.where(np.arange(60) % 20 == 0, 6.0, 1.05)
    made["outliers"] = {"measured": measured, "predicted": measured * odd}
    group, other = np.repeat(np.arange(10), 8), np.tile(np.arange(8), 10)
    off = rng.normal(0, 0.1, 10)[group] + rng.normal(0, 0.1, 8)[other]
    measured = np.exp(rng.normal(0, 1, 80))
    pairs = {"measured": measured, "predicted": measured * np.exp(off + rng.normal(0, 0.05, 80))}
    made["clusters"] = {**pairs, "clusters": group}
    made["crossed clusters"] = {**pairs, "clusters": [group, other]}
    return made


def found(figure: str, sample: dict[str, Any], method: str) -> Any:
    try:
        one = estimate(figure, **sample, method=method, resamples=399, seed=5)
    except (InputError, NotDefinedError) as error:
        return str(error)
    return [one.value, one.low, one.high, one.method, [caveat.code for caveat in one.caveats]]


@pytest.mark.parametrize("method", METHODS)
def test_intervals(method: str, stored: Stored) -> None:
    names = FIGURES if method == "default" else SOME
    stored(
        f"metrics/{method}",
        {
            name: {figure: found(figure, sample, method) for figure in names}
            for name, sample in samples().items()
        },
    )


def test_other_levels(stored: Stored) -> None:
    every = samples()
    stored(
        "metrics/levels",
        {
            f"{name}, {level}": {
                figure: str(estimate(figure, **every[name], level=level))
                for figure in ("mape", "within_20", "median_ape", "pearson", "spearman")
            }
            for name in ("many", "clusters")
            for level in (0.5, 0.8, 0.99)
        },
    )
