"""All caveats of tables of many kinds, with their evidence, as stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import errcomp as ec
from errcomp.caveats import check, check_table
from errcomp.claims.auditing import grouped
from errcomp.claims.registry import user_claim
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows

Stored = Callable[[str, Any], None]


def table(n: int = 120, seed: int = 0) -> dict[str, Any]:
    """Ten models on four devices in two modes; each part of the error can be changed."""
    rng = np.random.default_rng(seed)
    i = np.arange(n)
    measured = np.exp(rng.normal(1, 1, n))
    return {
        "device": np.array([f"d{k}" for k in i % 4]),
        "model": np.array([f"m{k}" for k in i % 10]),
        "mode": np.where(i % 3 == 0, "training", "inference"),
        "batch": 2 ** (i % 5),
        "measured": measured,
        "predicted": measured * np.exp(0.05 * rng.normal(size=n)),
    }


def changed(**factors: Any) -> dict[str, Any]:
    """Return a table whose predictions are multiplied, or columns replaced."""
    made = table()
    factor = factors.pop("factor", 1.0)
    return {**made, "predicted": made["predicted"] * factor, **factors}


def tables() -> dict[str, dict[str, Any]]:
    plain = table()
    i = np.arange(120)
    size = plain["measured"] / np.median(plain["measured"])
    rng = np.random.default_rng(3)
    return {
        "plain": plain,
        "few": table(7),
        "two models": changed(model=np.where(i % 2 == 0, "a", "b")),
        "a bias": changed(factor=1.12),
        "sides that cancel": changed(factor=np.where(i % 2 == 0, 1.3, 1 / 1.3)),
        "one device is off": changed(factor=np.where(plain["device"] == "d2", 1.5, 1.0)),
        "one mode is off": changed(factor=np.where(plain["mode"] == "training", 1.4, 1.0)),
        "few outliers": changed(factor=np.where(i % 40 == 0, 9.0, 1.0)),
        "small ones are off": changed(factor=1 + 0.5 / (1 + size)),
        "large ones are off": changed(factor=np.where(size > 4, 1.6, 1.0)),
        "models err alike": changed(factor=np.exp(0.2 * rng.normal(size=10))[i % 10]),
        "another unit": changed(factor=1000.0),
        "copies": {name: np.concatenate([c, c[:60]]) for name, c in plain.items()},
        "heavy tails": changed(factor=np.exp(0.1 * rng.standard_t(2, 120))),
        "wrong order": changed(factor=np.exp(0.9 * rng.normal(size=4))[i % 4]),
        "wrong order, of equals": changed(
            measured=plain["measured"] ** 0.01, predicted=np.exp(0.25 * rng.normal(size=120))
        ),
        "exact": changed(predicted=plain["measured"]),
    }


def told(found: Any) -> list[Any]:
    return [[one.code, one.message, one.evidence] for one in found]


def test_caveats_of_one_tool(stored: Stored) -> None:
    claim = user_claim("4%")
    made = {
        name: {
            "plain": told(check(data, seed=1)),
            "by device": told(check(data, by=["device"], claim=claim)),
            "by two keys": told(check(data, by=["device", "mode"], level=0.8)),
        }
        for name, data in tables().items()
    }
    stored("caveats/tools", made)


def test_caveats_of_claims(stored: Stored) -> None:
    claims = {
        "median": user_claim("3%", aggregation="median"),
        "weighted": user_claim("3%", metric="WAPE"),
        "correlation": user_claim("0.99", metric="correlation"),
        "bound": user_claim("<10%"),
    }
    data = tables()
    made = {
        f"{name}, {of}": told(check(data[of], claim=claim))
        for name, claim in claims.items()
        for of in ("plain", "few outliers", "sides that cancel", "large ones are off")
    }
    stored("caveats/claims", made)


def test_caveats_of_sums(stored: Stored) -> None:
    made = {}
    for name, data in tables().items():
        rows = PairRows(pl.DataFrame(data).lazy())
        totals = grouped(rows, ["device"], [], ["model"])
        made[name] = told(check(totals, by=["device"], seed=2))
    stored("caveats/sums", made)


def test_caveats_of_comparisons(stored: Stored) -> None:
    one = table()
    made = {}
    for name, data in tables().items():
        both = {key: np.concatenate([one[key], data[key]]) for key in one}
        tool = ["x"] * 120 + ["y"] * len(data["measured"])
        made[name] = told(check_table(Pairs({**both, "tool": tool})))
    made["published"] = told(check_table(ec.datasets.load("neusight"), keys=["device", "model"]))
    stored("caveats/comparisons", made)
