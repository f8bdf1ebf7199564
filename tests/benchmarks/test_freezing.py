"""What a model frozen at the first release would have predicted, from what was measured."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PROTOCOL = {"machine": {"device": "cpu"}, "releases": {"1.0": "2024-01-01", "1.1": "2024-06-01"}}


@pytest.fixture
def freezing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, found as the scripts find it: beside each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("collecting", "freeze_ort"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import freeze_ort  # type: ignore[import-not-found]

    return freeze_ort


def measured() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Nine networks of a Gemm and an Add; at 1.1 the Gemm takes twice as long."""
    runs, kernels = [], []
    for i in range(9):
        gemm, add = 0.5 + 0.1 * i, 0.01
        for version, piece, slow in (
            ("1.0", "start-1", 1.0),
            ("1.1", "1-1.1", 2.0),
            ("1.1", "2-1.1", 2.0),
        ):
            keys = {"version": version, "piece": piece, "model": f"net{i}", "input": "b1"}
            keys["anchor_first"] = 1
            before, after = gemm + add + 0.05, slow * gemm + add + 0.05
            change = math.log(after / before)
            runs.append({**keys, "anchor_run": before, "run": after, "log_ratio": change})
            for kind, time, factor in (("Gemm", gemm, slow), ("Add", add, 1.0)):
                kernels.append(
                    {
                        **keys,
                        "kernel_class": kind,
                        "kernel": f"{kind} 1x64->1x64",
                        "anchor_count": 1,
                        "count": 1,
                        "anchor_time": time,
                        "time": time * factor,
                        "log_ratio": math.log(factor),
                    }
                )
    return pl.DataFrame(runs), pl.DataFrame(kernels)


@pytest.mark.slow
def test_every_level_is_frozen_at_the_first_release(freezing: Any) -> None:
    rows = freezing.history(*measured(), PROTOCOL)
    found = {(row["level"], row["series"], row["version"]): row for row in rows}
    net = {level: found[level, "net3/b1", "1.1"] for level in ("operators", "run", "model")}
    assert (net["operators"]["predicted"], net["operators"]["measured"]) == (0.81, 1.61)
    assert (net["run"]["predicted"], net["run"]["measured"]) == (0.86, 1.66)
    assert net["model"]["measured"] == 1.66
    assert (net["run"]["n_repeats"], net["run"]["measured_spread"]) == (2, 0.0)
    gemm = found["kernel", "net3/b1 Gemm 1x64->1x64", "1.1"]
    assert (gemm["predicted"], gemm["measured"], gemm["released"]) == (0.8, 1.6, "2024-06-01")
    # The Add is too short for a profiler.
    assert {row["kernel_class"] for row in rows} == {"", "Gemm"}
    # The composition term is that of the release's own operators, by the same factor.
    factor = net["model"]["predicted"] / 0.81
    composition = found["composition", "net3/b1", "1.1"]
    assert composition["predicted"] == pytest.approx(1.61 * factor, rel=1e-4)
    assert factor == pytest.approx(0.86 / 0.81, rel=0.05)


@pytest.mark.slow
def test_a_network_has_no_part_in_its_own_factor(freezing: Any) -> None:
    runs, kernels = measured()
    slow = pl.col("model") == "net3"
    changed = runs.with_columns(
        pl.when(slow).then(5.0).otherwise(pl.col("anchor_run")).alias("anchor_run")
    )
    before = freezing.factors(freezing.anchor_kernels(kernels, runs, "cpu"))
    after = freezing.factors(freezing.anchor_kernels(kernels, changed, "cpu"))
    assert after["net3/b1"] == before["net3/b1"]
    assert after["net4/b1"] != before["net4/b1"]


def test_the_order_of_the_processes_is_taken_out(freezing: Any) -> None:
    # The process that starts first is 10 % slower; 1.1 is 20 % slower than 1.0.
    order = [1, 1, 0, 1, 1, 0]
    version = ["1.0"] * 3 + ["1.1"] * 3
    change = [
        (0.2 if v == "1.1" else 0.0) - 0.1 * (2 * o - 1)
        for v, o in zip(version, order, strict=True)
    ]
    rows = pl.DataFrame(
        {"version": version, "model": "net", "anchor_first": order, "log_ratio": change}
    )
    found = freezing.changes(rows, ["model"])
    assert found["log_ratio"].to_list() == pytest.approx([0.0, 0.2])
    assert found["measured_spread"].to_list() == pytest.approx([0.0, 0.0])
    alone = rows.filter(pl.col("anchor_first") == 1)
    # One order alone cannot tell, and stays as it is.
    assert freezing.changes(alone, ["model"])["log_ratio"].to_list() == pytest.approx([-0.1, 0.1])
