"""Tools that are equally accurate are rarely called different, whatever the law of their errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.caveats.tools import Tools
from errcomp.claims.board import _compared
from errcomp.tables import Pairs

Rng = np.random.Generator
#: Errors of n cases in given models, of equally many tools: (rng, models, tools) → array.
LAWS: dict[str, Callable[[Rng, Any, int], Any]] = {
    "normal": lambda rng, models, tools: rng.normal(0, 0.1, (tools, len(models))),
    "heavy tails": lambda rng, models, tools: 0.05 * rng.standard_t(2, (tools, len(models))),
    "log-normal": lambda rng, models, tools: np.expm1(rng.normal(0, 0.5, (tools, len(models)))),
    "outliers": lambda rng, models, tools: np.where(
        rng.random((tools, len(models))) < 0.05, 3.0, 0.1
    ) * rng.normal(0, 1, (tools, len(models))),
    "models differ": lambda rng, models, tools: (
        rng.normal(0, 0.2, (tools, models.max() + 1))[:, models]
        + rng.normal(0, 0.05, (tools, len(models)))
    ),
    "hard models": lambda rng, models, tools: rng.normal(0, 0.1, (tools, len(models)))
    * np.exp(rng.normal(0, 1, models.max() + 1))[models],
}  # fmt: skip


def _words(rng: Rng, errors: Any, models: Any) -> list[str]:
    tools, n = errors.shape
    measured = np.exp(rng.normal(0, 1, n))
    columns = {
        "tool": np.repeat([f"tool {i}" for i in range(tools)], n),
        "model": np.tile(models, tools),
        "batch": np.tile(np.arange(n), tools),
        "measured": np.tile(measured, tools),
        "predicted": (measured * np.maximum(1 + errors, 0)).ravel(),
    }
    found = _compared(Tools(Pairs(columns), "tool"), 0.95, 0)
    return [one["compared"] for one in found.values()]


def _models(rng: Rng, count: int, n: int) -> Any:
    """Draw models of unequal size; each has a case."""
    share = rng.dirichlet(np.ones(count))
    return np.sort(np.concatenate([np.arange(count), rng.choice(count, n - count, p=share)]))


def _rate(law: str, models: int, n: int, tools: int, runs: int) -> float:
    rng = np.random.default_rng([7, [*LAWS].index(law), models, tools])
    wrong = 0
    for _ in range(runs):
        of = _models(rng, models, n)
        words = _words(rng, LAWS[law](rng, of, tools), of)
        wrong += any(word.endswith("accurate") for word in words)
    return wrong / runs


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("models", "n", "tools"), [(5, 40, 2), (12, 60, 3), (30, 120, 4)])
def test_equal_tools_are_rarely_called_different(law: str, models: int, n: int, tools: int) -> None:
    runs = 400
    assert _rate(law, models, n, tools, runs) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "least"), [("normal", 0.95), ("heavy tails", 0.7),
                                            ("outliers", 0.25), ("hard models", 0.6)])  # fmt: skip
def test_a_tool_that_errs_twice_as_much_is_found(law: str, least: float) -> None:
    rng = np.random.default_rng([8, [*LAWS].index(law)])
    found = []
    for _ in range(200):
        of = _models(rng, 20, 100)
        errors = LAWS[law](rng, of, 2) * [[1.0], [2.0]]
        words = _words(rng, errors, of)
        found.append("more accurate" in words or "less accurate" in words)
    assert np.mean(found) >= least, np.mean(found)
