"""Fits, evaluations, predictions, adaptations and checks of runs, whole, as stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.calibration import (
    KernelCorrection,
    adapt_model,
    check_runs,
    errors_exchangeable,
    evaluate_composition,
    features_exchangeable,
    plan_runs,
)
from errcomp.calibration.estimators import estimators
from errcomp.calibration.estimators.linear.baselines import RobustLinear
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.view import check as checks
from errcomp.calibration.view.predictions import predictions_view
from errcomp.tables import Kernels

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

Stored = Callable[..., None]
Seen = Callable[[Any], dict[str, Any]]

KNOWN = ("A100", "L4", "MI210", "V100")


def slow(runs: Kernels, factor: float) -> Kernels:
    changed = runs.take(np.arange(runs.n))
    changed.run_measured = runs.run_measured * factor
    return changed


def whole(found: Any, seen: Seen) -> dict[str, Any]:
    return {"document": json.loads(found.to_json()), **seen(found)}


def dated(document: Any) -> Any:
    """Return a document without what depends on the machine and the day."""
    if isinstance(document, dict):
        left_out = ("created", "versions", "fingerprint", "errcomp", "sha256")
        return {name: dated(value) for name, value in document.items() if name not in left_out}
    return [dated(one) for one in document] if isinstance(document, list) else document


def test_models(model: CompositionModel, stored: Stored) -> None:
    report = model.view()
    tables = [
        [[column.cell(row).text for column in table.columns] for row in table.rows]
        for table in report.tables
    ]
    # The digest of the table: its last bits are those of the processor that made it.
    name, digest = tables[0].pop(7)
    assert (name, len(digest)) == ("table", 64)
    parts = {"document": dated(model.to_dict()), "verdicts": report.verdicts, "tables": tables}
    stored("calibration/model", parts)


def test_predictions(model: CompositionModel, runs_of: Any, stored: Stored) -> None:
    tables = {
        "known device": runs_of(("L4",), seed=2),
        "new device": runs_of(("H100",), seed=3),
        "new classes": runs_of(("L4",), kernel_class=["Conv"] * 32),
        "no device": runs_of(("L4",), device=[""] * 32),
    }
    made = {}
    for name, table in tables.items():
        for estimator in ("physics", "linear", "device"):
            found = model.predict(table, estimator=estimator)
            report = predictions_view(found, model, source="new.csv")
            made[f"{name}, {estimator}"] = {
                "found": found,
                "tables": [
                    [[column.cell(row).text for column in one.columns] for row in one.rows]
                    for one in report.tables
                ],
                "notes": [[note.text for note in one.remarks()] for one in report.tables],
            }
    stored("calibration/predictions", made)


def test_evaluations(
    runs_of: Any, seen: Seen, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of physics only the name, and lines nearly of least squares, which take less time."""
    known = estimators()
    lines = {
        "physics": partial(RobustLinear, ridge=1.0, degrees=100.0),
        "linear": partial(RobustLinear, degrees=100.0),
    }
    for name, line in lines.items():
        changed = replace(known[name], make=lambda *_, line=line, **__: line(), explains=False)
        monkeypatch.setitem(known, name, changed)
    vendors = np.where(runs_of().column("device") == "MI210", "AMD", "NVIDIA")
    found = evaluate_composition(
        runs_of(vendor=vendors.tolist()),
        estimators=("physics",),
        splits=("leave-model-out", "leave-vendor-out"),
    )
    made = checks.report_evaluation(found, estimators=["linear"])
    report = [made.junit(timestamp=None).decode(), made.markdown, made.failed]
    stored("calibration/evaluation", {"checks": report, **whole(found, seen)})


def test_adaptations_and_plans(
    model: CompositionModel, runs_of: Any, seen: Seen, stored: Stored
) -> None:
    new = slow(runs_of(("H100",), seed=4), 1.15)
    adaptation = adapt_model(model, new.take(new.column("model") == "bert"), seed=1)
    again = model.adapt(new.take(new.column("model") != "gpt2")).predict(new)
    plan = plan_runs(model, new, k=2)
    made = {name: whole(one, seen) for name, one in (("adaptation", adaptation), ("plan", plan))}
    stored("calibration/adapting", {**made, "adapted": again})


def test_runs_that_cannot_be(runs_of: Any, seen: Seen, stored: Stored) -> None:
    odd = runs_of(seed=6)
    odd.run_measured = odd.run_measured.copy()
    odd.run_measured[:4] *= 0.3
    odd.run_measured[8:12] *= 20
    found = {"odd": check_runs(odd), "sound": check_runs(runs_of(seed=7))}
    published = check_runs(ec.datasets.load("neusight-kernels"))
    stored(
        "calibration/plausibility",
        {**{name: whole(one, seen) for name, one in found.items()},
         "published": json.loads(published.to_json())},
    )  # fmt: skip


def test_kernels_are_corrected(runs_of: Any, stored: Stored) -> None:
    correction = KernelCorrection().fit(runs_of(KNOWN))
    meta, arrays = correction.to_arrays()
    made = {name: correction.apply(runs_of((name,), seed=8)) for name in ("L4", "H100")}
    parts = {"meta": meta, "arrays": arrays, **made}
    stored("calibration/kernels", parts, rel=1e-4, least=1e-6)


def test_exchangeability(stored: Stored) -> None:
    rng = np.random.default_rng(3)
    old, groups = rng.normal(size=60), np.repeat(np.arange(12), 5)
    shift = {"alike": 0.0, "shifted": 2.5}
    made: dict[str, Any] = {}
    for name, by in shift.items():
        new = rng.normal(size=15) + by
        of = np.repeat(["x", "y", "z"], 5)
        made[f"errors, {name}"] = errors_exchangeable(old, groups, new, groups_new=of)
        made[f"errors of one group, {name}"] = errors_exchangeable(old, groups, new, seed=4)
        x_old, x_new = rng.normal(size=(60, 3)), rng.normal([by, 0, 0], size=(15, 3))
        names = ["batch", "size", "share"]
        made[f"features, {name}"] = features_exchangeable(
            x_old, groups, x_new, groups_new=of, names=names
        )
    stored("calibration/exchangeability", made)
