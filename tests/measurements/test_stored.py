"""Checks of measurements, budgets and comparisons with training tables, whole, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.measurements import budget, check, leakage
from errcomp.measurements.view.junit import report_check
from tests.measurements.laws import clean, hidden, planted, single_cause

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

Stored = Callable[[str, Any], None]
Seen = Callable[[Any], dict[str, Any]]


def whole(found: Any, seen: Seen) -> dict[str, Any]:
    return {"document": json.loads(found.to_json()), **seen(found)}


def days() -> dict[str, Any]:
    """Forty configurations a day for twelve days; from the seventh on they take 30 % longer."""
    rng = np.random.default_rng(6)
    day = np.repeat(np.arange(12), 40)
    times = (1 + np.tile(np.arange(40), 12)) * np.exp(0.02 * rng.normal(size=480))
    return {
        "batch": np.tile(np.arange(40), 12).tolist(),
        "date": [f"2026-02-{1 + i:02d}" for i in day],
        "device": ["A" if i % 3 else "B" for i in range(480)],
        "ms": (times * np.where(day >= 6, 1.3, 1.0)).tolist(),
    }


def copied() -> pl.DataFrame:
    table = pl.DataFrame(clean("mixture", 0.03, np.random.default_rng(2), 5))
    return planted(table, "ms", 1e-4, np.random.default_rng(3))[0]


def doubtful() -> dict[str, Any]:
    """Times that end in few digits, fall where more is done, exceed a limit, or are impossible."""
    rng = np.random.default_rng(5)
    batch = np.repeat(2 ** np.arange(8), 12)
    network = np.tile(np.arange(12), 8)
    times = np.round((1 + network) * batch * np.exp(0.05 * rng.normal(size=96)), 1)
    times[7], times[20] = -1.0, times[8] * 40
    return {
        "model": [f"m{i}" for i in network],
        "batch": batch.tolist(),
        "device": ["A100"] * 48 + ["V100"] * 48,
        "measured": times.tolist(),
        "p50": (times * 1.1).tolist(),
        "p99": (times * 1.05).tolist(),
    }


CHECKED: Mapping[str, Callable[[], Any]] = {
    "hidden settings": lambda: check(
        hidden("laplace", 4, 6.0, np.random.default_rng(1), named=True)[0], measured="ms"
    ),
    "hidden settings without a name": lambda: check(
        hidden("normal", 6, 8.0, np.random.default_rng(1), named=False)[0], measured="ms"
    ),
    "copies": lambda: check(copied(), measured="ms", by="batch", unit="ms"),
    "a step in time": lambda: check(days(), measured="ms", by=["device"]),
    "doubtful rows": lambda: check(doubtful(), unit="ms"),
    "no repeats": lambda: check({"batch": [1, 2, 3], "measured": [1.0, 2.0, 3.5]}),
    "a published table": lambda: check("neusight"),
}
CAUSES = ("noise", "rest", "factor", "load", "hidden", "kernels", "composition")


@pytest.mark.parametrize("name", CHECKED)
def test_checks(name: str, seen: Seen, stored: Stored) -> None:
    found = CHECKED[name]()
    made = report_check(found, fail_on=())
    checks = [made.junit(timestamp=None).decode(), made.markdown, made.failed]
    rows = json.loads(json.dumps(found.rows_document(), default=str))
    stored(f"measurements/check/{name}", {"checks": checks, "rows": rows, **whole(found, seen)})


@pytest.mark.parametrize("cause", CAUSES)
def test_budgets(cause: str, seen: Seen, stored: Stored) -> None:
    table, _ = single_cause(cause, "t3", np.random.default_rng(11))
    if cause == "factor":
        table = {name: [*column, *column[:9]] for name, column in table.items()}
    stored(f"measurements/budget/{cause}", whole(budget(table, seed=2, unit="ms"), seen))


def test_a_budget_of_kernels(seen: Seen, stored: Stored) -> None:
    found = budget(ec.datasets.load("neusight-kernels"))
    stored("measurements/budget/of kernels", whole(found, seen))


def evaluated(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    batch = np.tile(2 ** np.arange(6), 12)
    device, model = np.repeat(["A", "B", "C", "D"], 18), np.tile(np.repeat(range(3), 6), 4)
    measured = (1.0 + model) * batch * np.exp(0.1 * rng.normal(size=72))
    return {
        "device": device.tolist(),
        "model": [f"m{i}" for i in model],
        "batch": batch.tolist(),
        "measured": measured.tolist(),
        "predicted": (measured * np.exp(0.05 * rng.normal(size=72) * np.log2(1 + batch))).tolist(),
    }


def part(table: dict[str, Any], rows: slice, **more: Any) -> dict[str, Any]:
    return {**{name: column[rows] for name, column in table.items()}, **more}


def test_training_tables(seen: Seen, stored: Stored) -> None:
    table = evaluated()
    trained = part(table, slice(0, 30), batch=[1.05 * b for b in table["batch"][:30]])
    training: Mapping[str, Callable[[], Any]] = {
        "the same rows": partial(part, table, slice(0, 40)),
        "near ones": lambda: trained,
        "of other keys": lambda: {"device": ["A", "E"], "memory": [1, 2], "measured": [1.0, 2.0]},
        "one device": lambda: part(table, slice(0, 18), measured=[9.0] * 18),
    }
    made = {name: leakage(table, of(), seed=1) for name, of in training.items()}
    named = leakage(table, trained, keys=["device", "model"])
    made["by two keys"] = named
    stored("measurements/leakage", {name: whole(one, seen) for name, one in made.items()})
