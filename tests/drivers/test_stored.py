"""Which factors make errors larger, whole: documents, tables, notes and figures, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.drivers import error_drivers

pytest.importorskip("matplotlib")
pytest.importorskip("statsmodels")
pytestmark = pytest.mark.extras


def table(seed: int = 0, *, crossed: bool = True, **more: Any) -> dict[str, Any]:
    """Six devices, four models, three batch sizes, two modes: training errs twice as much."""
    rng = np.random.default_rng(seed)
    i = np.arange(144)
    device, model, batch, mode = i // 24, i // 6 % 4, 2 ** (i // 2 % 3 + 1), i % 2
    if not crossed:  # each device has one mode
        mode = device % 2
    size = 0.05 * (1 + mode) * np.exp(0.3 * rng.normal(size=6))[device] * (1 + 0.1 * batch)
    columns = {
        "device": [f"d{k}" for k in device],
        "vendor": [f"v{k % 2}" for k in device],
        "model": [f"m{k}" for k in model],
        "batch": batch.tolist(),
        "mode": np.where(mode == 1, "training", "inference").tolist(),
        "predicted": np.exp(0.02 + size * rng.normal(size=144)).tolist(),
        "measured": [1.0] * 144,
    }
    return {**columns, **more}


FOUND: Mapping[str, Callable[[], Any]] = {
    "crossed": lambda: error_drivers(table()),
    "one mode a device": lambda: error_drivers(table(1, crossed=False), level=0.99, seed=2),
    "two factors": lambda: error_drivers(table(2), factors=["mode", "batch"]),
    "few rows": lambda: error_drivers({k: column[:20] for k, column in table(3).items()}),
    "a published tool": lambda: error_drivers(ec.datasets.load("neusight"), tool="neusight"),
}


@pytest.mark.parametrize("name", FOUND)
def test_drivers(
    name: str, seen: Callable[[Any], dict[str, Any]], stored: Callable[[str, Any], None]
) -> None:
    found = FOUND[name]()
    stored(f"drivers/{name}", {"document": json.loads(found.to_json()), **seen(found)})
