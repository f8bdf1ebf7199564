"""Rows of readers, and the tables made from them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.output import Output, Skipped, output
from errcomp.results import Dropped

KERNEL: dict[str, Any] = {"tool": "x", "level": "kernel", "quantity": "time", "unit": "us"}
MODEL = {**KERNEL, "level": "model", "unit": "ms"}


def test_values_that_are_none() -> None:
    rows = [
        {**KERNEL, "predicted": float("inf")},
        {**KERNEL, "predicted": -1.0},
        {**KERNEL, "predicted": float("nan")},
        {**KERNEL, "predicted": None, "status": "compile error"},
        {**KERNEL, "predicted": 1.0, "status": "ok"},
        {**KERNEL, "predicted": 0},
    ]
    found = output("a", "x", rows).rows
    assert found["predicted"].to_list() == [None, None, None, None, 1.0, 0.0]
    assert found["status"].to_list() == [
        "not finite",
        "negative",
        "no value",
        "compile error",
        None,
        None,
    ]
    assert found.columns == [*KERNEL, "predicted", "measured", "status"]


def test_keys_without_a_value_are_left_out_and_rows_are_needed() -> None:
    rows = {**{k: [v] for k, v in KERNEL.items()}, "measured": [1], "run": [None], "op": ["a"]}
    assert output("a", "x", rows).rows.columns[-1] == "op"
    dropped = [Dropped("warm-up", 3, (1, 2, 3))]
    with pytest.raises(InputError, match=r"^a: holds no predicted or measured value.*3 warm-up"):
        output("a", "x", [], dropped=dropped)
    with pytest.raises(TypeError, match="the reader returned rows without required columns: unit"):
        output("a", "x", [{"tool": "x", "level": "kernel", "quantity": "time"}])


def test_pairs_are_rows_with_both_and_failed_predictions() -> None:
    rows = [
        {**KERNEL, "predicted": 1.0, "measured": 2.0, "op": "a"},
        {**KERNEL, "predicted": 1.0, "measured": None, "op": "b"},
        {**KERNEL, "predicted": None, "measured": 4.0, "op": "c", "status": "crashed"},
        {**KERNEL, "predicted": 0.003, "measured": 0.004, "op": "d", "unit": "ms"},
    ]
    pairs = output("a", "x", rows).pairs
    assert (pairs.unit, pairs.predicted.tolist()) == ("us", [1.0, 3.0])
    assert [(d.n, d.reason) for d in pairs.dropped] == [(1, "the prediction failed (status)")]
    only = output("a", "x", [{**KERNEL, "predicted": 1.0}])
    with pytest.raises(InputError, match=r"holds only predicted values.*file of measurements"):
        _ = only.pairs


def test_several_quantities_are_chosen_from() -> None:
    both = {"predicted": 1.0, "measured": 2.0}
    rows = [{**KERNEL, **both}, {**KERNEL, **both, "quantity": "energy", "unit": "pJ"}]
    found = output("a", "x", rows)
    with pytest.raises(InputError, match=r"several quantities: energy, time. Select one"):
        _ = found.pairs
    assert found.of(quantity="energy").pairs.unit == "pJ"
    rows = [{**KERNEL, **both}, {**MODEL, **both}]
    with pytest.raises(InputError, match=r"several levels: kernel, model. Select one: --where lev"):
        _ = output("a", "x", rows).pairs
    with pytest.raises(
        InputError, match=r"no row has quantity=power. Existing values: energy, time"
    ):
        found.of(quantity="power")
    with pytest.raises(InputError, match=r"no column 'device'. Columns: tool"):
        found.of(device=["a"])


def test_kernels_know_the_time_of_their_run() -> None:
    rows = [
        {**KERNEL, "measured": 5.0, "run": "1", "kernel": "a", "count": 2},
        {**KERNEL, "measured": 7.0, "run": "2", "kernel": "a", "count": 1},
        {**MODEL, "measured": 0.5, "run": "1"},
    ]
    found = output("a", "x", rows)
    kernels = found.kernels
    assert (kernels.unit, kernels.measured.tolist()) == ("us", [5.0, 7.0])
    assert kernels.totals().run_measured[0] == 500.0
    runs = found.runs
    assert (runs.unit, runs.run.tolist(), runs.measured.tolist()) == ("ms", ["1"], [0.5])
    with pytest.raises(
        InputError, match=r"no row holds the time of a model\. Available: time of a kernel\."
    ):
        _ = found.of(level="kernel").runs


def test_history_needs_versions() -> None:
    rows = [{**KERNEL, "measured": 5.0 + i, "version": f"1.{i}", "op": "a"} for i in range(3)]
    assert output("a", "x", rows).history.versions == ("1.0", "1.1", "1.2")
    rows = [{**KERNEL, "measured": 5.0, "version": v, "op": "a"} for v in ("c2d", "a1b")]
    found = output("a", "x", rows)
    assert found.history_of(order=["c2d", "a1b"], series=["op"]).versions == ("c2d", "a1b")
    with pytest.raises(InputError, match="cannot be ordered"):
        _ = found.history
    with pytest.raises(InputError, match="needs a column 'version', and there is none"):
        _ = output("a", "x", [{**KERNEL, "measured": 1.0}]).history


def test_the_report_counts() -> None:
    rows = pl.DataFrame(
        [{**KERNEL, "predicted": 1.0}, {**KERNEL, "predicted": None, "status": "crashed"}]
    )
    found = output("a.log", "x-log", rows, dropped=[Dropped("warm-up", 1, (1,))], notes=["Slow."])
    assert found.report.splitlines() == [
        "read a.log (x-log): 2 rows, 1 predicted",
        "1 row without a value: crashed",
        "1 row left out: warm-up",
        "note: Slow.",
    ]


def test_values_that_all_failed_say_why() -> None:
    row = {"tool": "x", "level": "model", "quantity": "time", "unit": "s", "run": "a"}
    found = output("a.log", "x", [{**row, "predicted": None, "status": "stopped"}])
    with pytest.raises(InputError, match=r"^a\.log: no model has a time \(stopped\)\.$"):
        _ = found.runs
    with pytest.raises(InputError, match=r"^a\.log: no row has a value \(stopped\)\.$"):
        _ = found.pairs


def test_the_time_of_the_simulator_itself_is_no_measurement() -> None:
    row = {"tool": "x", "level": "model", "unit": "s"}
    found = output(
        "a.log",
        "x",
        [
            {**row, "quantity": "time", "predicted": 1.0},
            {**row, "quantity": "host time", "measured": 9.0},
        ],
    )
    with pytest.raises(InputError, match=r"holds only predicted values.* a file of measurements"):
        _ = found.pairs


def test_rows_with_a_prediction_are_runs() -> None:
    known = {"level": "request", "tool": "MySim", "model": "bert"}
    rows = [
        {"quantity": "ttft", "unit": "ms", "request": 1, "predicted": 2.0, "measured": 3.0},
        {"quantity": "ttft", "unit": "s", "request": 2, "predicted": 0.004},
        {"quantity": "ttft", "unit": "ms", "request": 3, "measured": 5.0},
    ]
    kernels = output("sim.csv", "x", rows, **known).predicted_runs
    assert kernels.runs == ("1", "2")
    assert (kernels.unit, kernels.predicted.tolist()) == ("ms", [2.0, 4.0])
    assert kernels.run_measured[0] == 3.0


def test_rows_with_equal_keys_are_named_by_their_place() -> None:
    known = {"level": "request", "quantity": "ttft", "unit": "ms", "tool": "MySim"}
    rows = {"predicted": [2.0, 3.0, 4.0], "model": ["a", "a", "b"]}
    assert output("sim.csv", "x", rows, **known).predicted_runs.runs == ("row 1", "row 2", "row 3")
    alone = {"predicted": [2.0], "model": ["a"]}
    assert output("sim.csv", "x", alone, **known).predicted_runs.runs == ("row 1",)


def test_rows_without_a_prediction_are_no_runs() -> None:
    known = {"level": "request", "quantity": "ttft", "unit": "ms", "tool": "MySim"}
    read = output("sim.csv", "x", {"measured": [2.0], "model": ["a"]}, **known)
    with pytest.raises(InputError, match=r"sim.csv: no row has a prediction"):
        read.predicted_runs  # noqa: B018


@pytest.mark.parametrize(
    ("n", "last"), [(30, None), (31, "1 more file"), (1530, "1,500 more files")]
)
def test_the_report_names_some_of_what_was_skipped(n: int, last: str | None) -> None:
    rows = pl.DataFrame([{**KERNEL, "predicted": 1.0, "measured": None}])
    skipped = tuple(Skipped(f"{i}\nx", "empty") for i in range(n))
    lines = Output(rows, ("x",), ("a",), skipped=skipped).report.splitlines()
    named = [rf"skipped {i}\nx: empty" for i in range(30)]
    assert lines[1:] == named + ([] if last is None else [f"skipped {last}"])


def test_the_report_names_some_reasons_and_files_along() -> None:
    rows = pl.DataFrame(
        [{**KERNEL, "predicted": None, "measured": None, "status": f"s{i % 6}"} for i in range(7)]
    )
    for n, end in ((5, ""), (6, " and 1 more")):
        along = tuple(f"{i}.cfg" for i in range(n))
        lines = Output(rows, ("x", "y"), ("a", "b"), along=along).report.splitlines()
        assert lines == [
            "read 2 files (x, y): 7 rows, no value",
            "7 rows without a value: s0, s1, s2, s3, s4",
            f"files that only add settings or names: 0.cfg, 1.cfg, 2.cfg, 3.cfg, 4.cfg{end}",
        ]
