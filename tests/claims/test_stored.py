"""Audits, searches and the replication, whole: documents, tables, notes and figures, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp import datasets
from errcomp.claims.auditing import Audit
from errcomp.claims.registry import user_claim
from errcomp.claims.view import agreement, audit_check, coverage, pairs, replication
from errcomp.claims.view.audit import audit_view

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

Stored = Callable[[str, Any], None]
Seen = Callable[[Any], dict[str, Any]]
Drawn = Callable[[Callable[[], Any]], Any]


def table(seed: int = 0, n: int = 60, **more: Any) -> dict[str, Any]:
    """Pairs of two devices in two modes: one biased, one scattered; a rest of two pairs."""
    rng = np.random.default_rng(seed)
    device = np.array(["A", "B"] * (n // 2) + ["C", "C"])
    mode = np.array(["inference"] * (n // 2) + ["training"] * (n // 2) + ["inference"] * 2)
    measured = np.exp(rng.normal(2, 1, n + 2))
    off = np.where(device == "A", 0.08, -0.02) + np.where(device == "B", 0.25, 0.03) * rng.normal(
        size=n + 2
    )
    columns = {"device": device, "mode": mode, "batch": 2 ** (np.arange(n + 2) % 5)}
    return {**columns, "measured": measured, "predicted": measured * np.exp(off), **more}


def failed() -> dict[str, Any]:
    """Pairs of which some have no prediction."""
    data = table(3, 30)
    data["predicted"][[2, 9]] = np.nan
    status = np.full(32, None, dtype=object)
    status[[2, 9]] = ["out of memory", "timeout"]
    return {**data, "status": status}


def several() -> dict[str, Any]:
    """Two tools on the same pairs, one of them always 30 % above."""
    one, other = table(1), table(2)
    # Whole numbers: what other products round to depends on the processor.
    measured = np.ceil(one["measured"]) * 10
    one["predicted"] *= measured / one["measured"]
    one["measured"] = other["measured"] = measured
    other["predicted"] = measured / 10 * 13
    both = {name: np.concatenate([one[name], other[name]]) for name in one}
    return {**both, "tool": ["x"] * 62 + ["y"] * 62}


AUDITS: Mapping[str, Callable[[], Audit]] = {
    "one group": lambda: ec.audit(table(), by=[]),
    "by device and mode": lambda: ec.audit(table(), by=["device", "mode"]),
    "a claim": lambda: ec.audit(table(), by=["device"], claims=[user_claim("<5%")]),
    "a claim about the mean": lambda: ec.audit(
        table(), by=["device", "mode"], claims=[user_claim("17%", aggregation="mean")]
    ),
    "claims of all metrics": lambda: ec.audit(
        table(),
        by=["mode"],
        claims=[
            user_claim("0.97", metric="correlation"),
            user_claim("0.9", metric="R2"),
            user_claim("0.95", metric="Kendall tau"),
            user_claim("60%", metric="share within 10%"),
            user_claim("0.8", metric="MAE"),
        ],
    ),
    "claims of all aggregations": lambda: ec.audit(
        table(),
        by=["mode"],
        claims=[
            user_claim("11%", aggregation=aggregation)
            for aggregation in ("mean", "median", "geometric mean", "weighted", "total")
        ],
    ),
    "clusters": lambda: ec.audit(table(), by=["mode"], cluster="batch"),
    "another level": lambda: ec.audit(table(), by=["device"], level=0.8, seed=3),
    "pairs without values": lambda: ec.audit(failed(), by=["device"]),
    "two tools": lambda: ec.audit(several(), by=["device"]),
    "one of two tools": lambda: ec.audit(several(), by=["device"], tool="y"),
    "a published tool": lambda: ec.audit(
        datasets.load("neusight"), tool="neusight", by=["device", "mode"]
    ),
    "published tools": lambda: ec.audit(datasets.load("neusight"), by=["mode"]),
    "three pairs": lambda: ec.audit(
        {"predicted": [1.0, 2.0, 4.0], "measured": [1.1, 1.9, 3.0]}, claims=[user_claim("<1%")]
    ),
}


@pytest.mark.parametrize("name", AUDITS)
def test_audits(name: str, seen: Seen, stored: Stored) -> None:
    found = AUDITS[name]()
    checks = {}
    for on in audit_check.CONDITIONS:
        made = audit_check.report_audit(found, fail_on=[on])
        checks[on] = [made.junit(timestamp=None).decode(), made.markdown, made.failed]
    stored(
        f"claims/audit/{name}",
        {"document": json.loads(found.to_json()), "checks": checks, **seen(found)},
    )


def test_pages_with_pairs(drawn: Drawn, stored: Stored) -> None:
    pages = {}
    for name, data in {"one tool": table(), "two tools": several(), "failed": failed()}.items():
        made = audit_view(ec.audit(data, by=["device"]), ec.Pairs(data, unit="ms"))
        pages[name] = {one.name: [one.caption, drawn(one.draw)] for one in made.figures}
    stored("claims/pages", pages)


FIGURES: Mapping[str, Callable[[Any], Any]] = {
    "scatter": pairs.predicted_against_measured,
    "scatter with bands": partial(pairs.predicted_against_measured, within=[0.05, 0.5]),
    "cumulated": pairs.ecdf,
    "cumulated, other marks": partial(pairs.ecdf, thresholds=[0.01, 0.3]),
    "groups": pairs.by_group,
    "groups of two keys": partial(pairs.by_group, by=["device", "mode"]),
    "agreement": agreement.bland_altman,
    "coverage": partial(coverage.coverage_map, rows="device", columns="mode"),
    "coverage of sizes": partial(coverage.coverage_map, rows="batch", columns="device"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_pairs(name: str, drawn: Drawn, stored: Stored) -> None:
    tables = {"plain": table(), "failed": failed(), "tools": several()}
    made = {one: drawn(partial(FIGURES[name], ec.Pairs(data))) for one, data in tables.items()}
    stored(f"claims/figures/{name}", made)


def test_searches(seen: Seen, stored: Stored) -> None:
    data = several()
    data["batch"] = [*(i // 2 for i in range(60)), 30, 31] * 2
    shown = {}
    for figures in ({"x": "10.9%"}, {"x": "10.9%", "y": "30%"}, {"y": 0.3}, {"x": "99%"}):
        found = ec.search_claim(ec.Pairs(data), figures, top=5, seed=1)
        shown[str(figures)] = {"document": json.loads(found.to_json()), **seen(found)}
    fewer = {name: list(values)[:-10] for name, values in data.items()}
    found = ec.search_claim(ec.Pairs(fewer), {"x": "10.9%", "y": "30%"}, top=5, seed=1)
    shown["fewer rows of y"] = {"document": json.loads(found.to_json()), **seen(found)}
    stored("claims/searches", shown)


def test_the_replication(seen: Seen, drawn: Drawn, stored: Stored) -> None:
    found = ec.replicate_survey()
    cells = [cell.to_dict() for cell in found.cells if cell.status != "no data"]
    levels = drawn(partial(replication.levels, found))
    stored("claims/replication", {"cells": cells, "levels": levels, **seen(found)})
