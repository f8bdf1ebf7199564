"""Plans of how many pairs a claim needs, whole, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.planning import claim, plan_claim

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras


def pilot() -> dict[str, Any]:
    rng = np.random.default_rng(9)
    off = np.repeat(rng.normal(0, 0.05, 12), 4) + rng.normal(0, 0.04, 48)
    return {
        "model": np.repeat([f"m{i}" for i in range(12)], 4).tolist(),
        "predicted": (10 * np.exp(off)).tolist(),
        "measured": [10.0] * 48,
    }


def test_plans(
    seen: Callable[[Any], Any],
    stored: Callable[[str, Any], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claim, "_DRAWS", 400)
    made = {
        "by assumption": plan_claim(0.1, seed=1),
        "wider errors": plan_claim(0.1, spread=1.5, expected=[0.05, 0.09], power=0.9, level=0.9),
        "a pilot": plan_claim(0.09, pilot=pilot(), cluster="none"),
        "clusters": plan_claim(0.12, pilot=pilot(), seed=3),
        "too much": plan_claim(0.02, pilot=pilot()),
    }
    stored(
        "planning/claims",
        {name: {"document": json.loads(one.to_json()), **seen(one)} for name, one in made.items()},
    )
