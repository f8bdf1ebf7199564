"""Comparisons and evaluations, whole: documents, tables, notes and figures, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.decisions import compare_draws, compare_kinds
from errcomp.decisions.view.check import report_decisions
from errcomp.errors import InputError
from tests.decisions.draws import fewer
from tests.decisions.laws import choices

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

Stored = Callable[[str, Any], None]
Seen = Callable[[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer(monkeypatch, 20, 100)


DEVICES = ["A100-40G", "H100", "L4", "T4", "V100", "MI100"]


def table(*, conditions: int = 7, hidden: Any = False) -> pl.DataFrame:
    """Five devices under seven conditions, with prices; some rows are not measured."""
    frame = choices(3, devices=5, conditions=conditions, models=3, present=0.9)
    names = {f"D{i:02}": name for i, name in enumerate(DEVICES)}
    frame = frame.with_columns(pl.col("device").replace_strict(names, default="P4"))
    price = pl.col("device").str.len_chars() * 0.5 + 1
    return frame.with_columns(
        price=price, measured=pl.when(hidden).then(None).otherwise(pl.col("measured"))
    )


def two_tools() -> pl.DataFrame:
    one = table()
    other = one.with_columns(predicted=pl.col("predicted") * pl.col("price"))
    return pl.concat([one.with_columns(tool=pl.lit("x")), other.with_columns(tool=pl.lit("y"))])


LAST = pl.col("batch") == pl.lit(6)
EVALUATED: Mapping[str, Callable[[], Any]] = {
    "devices": lambda: ec.compare(table(), "device", evaluate=True),
    "by cost": lambda: ec.compare(table(), "device", evaluate=True, price="price", seed=1),
    "more is better": lambda: ec.compare(table(), "device", evaluate=True, higher=True, level=0.8),
    "of two tools": lambda: ec.compare(two_tools(), "device", tool="x", evaluate=True),
    "of few": lambda: ec.compare(
        table().filter(pl.col("device").is_in(DEVICES[:2])), "device", evaluate=True
    ),
}
COMPARED: Mapping[str, Callable[[], Any]] = {
    "one condition": lambda: ec.compare(table(hidden=LAST), "device", unit="ms"),
    "with a limit": lambda: ec.compare(table(hidden=LAST), "device", at_most=2.0, price="price"),
    "at least": lambda: ec.compare(table(hidden=LAST), "device", at_least=0.4, level=0.7),
    "a limit that none keeps": lambda: ec.compare(table(hidden=LAST), "device", at_most=1e-3),
    "several conditions": lambda: ec.compare(
        table(hidden=pl.col("batch") > 3), "device", cluster="model", seed=2
    ),
    "errors of other pairs": lambda: ec.compare(
        table(conditions=3, hidden=True), "device", errors=table()
    ),
    "measured": lambda: ec.compare(table(), "device", evaluate=False),
}


def told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("name", EVALUATED)
def test_evaluations(name: str, seen: Seen, stored: Stored) -> None:
    found = EVALUATED[name]()
    checks = {}
    for condition in ("regret>1%", "regret-max>40%", "right<99%"):
        made = report_decisions(found, fail_on=[condition])
        checks[condition] = [made.junit(timestamp=None).decode(), made.markdown, made.failed]
    rows = found.to_frame().head(20)
    stored(
        f"decisions/evaluated/{name}",
        {"document": json.loads(found.to_json()), "rows": rows, "checks": checks, **seen(found)},
    )


@pytest.mark.parametrize("name", COMPARED)
def test_comparisons(name: str, seen: Seen, stored: Stored) -> None:
    found = told(COMPARED[name])
    if not isinstance(found, str):
        rows = found.to_frame().head(20)
        found = {"document": json.loads(found.to_json()), "rows": rows, **seen(found)}
    stored(f"decisions/compared/{name}", found)


def test_draws(seen: Seen, stored: Stored) -> None:
    rng = np.random.default_rng(8)
    shared = rng.normal(0, 0.2, 500)
    times = {f"a{i}": (10 + i) * np.exp(shared + rng.normal(0, 0.05, 500)) for i in range(5)}
    prices = {name: 1 + 0.1 * i for i, name in enumerate(times)}
    options: Mapping[str, dict[str, Any]] = {
        "plain": {},
        "limit": {"at_most": "13 ms", "unit": "ms"},
        "prices": {"prices": prices, "level": 0.8},
        "rates": {"at_least": 11.0},
    }
    made = {name: compare_draws(times, **how) for name, how in options.items()}
    stored(
        "decisions/drawn",
        {name: {"document": json.loads(one.to_json()), **seen(one)} for name, one in made.items()},
    )


def test_kinds(seen: Seen, stored: Stored) -> None:
    frame = table().with_columns(variant=(pl.col("batch") % 2).cast(pl.String))
    found = compare_kinds(frame, seed=4)
    stored("decisions/kinds", {"document": json.loads(found.to_json()), **seen(found)})
