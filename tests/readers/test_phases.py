"""Phases of training steps in profiles: the names of ranges, and the work inside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.readers.profilers import kineto, nsys
from errcomp.readers.profilers.phases import phase_of, phases_at
from tests.readers.test_nsys import RANGES, TID, database, tables

Event = dict[str, Any]


@pytest.mark.parametrize(
    ("phase", "names"),
    [
        ("forward", ["forward", "Forward pass", "FWD", "## forward ##", "fwd_step", "[forward]"]),
        ("backward", ["backward", "bwd", "backward-pass", "loss.backward", "loss.backward()",
                      "autograd::engine::evaluate_function: AddmmBackward0"]),
        ("optimizer", ["optimizer", "optim", "opt_step", "Optimizer step", "optimizer.step()",
                       "optimiser", "Optimizer.step#SGD.step", "Optimizer.zero_grad#Adam.zero"]),
        (None, ["", "step", "layer 1", "forward_hook", "AddmmBackward0", "optimal", "zero",
                "aten::backward_something", "ProfilerStep#3", "forwards"]),
    ],
)  # fmt: skip
def test_names_of_phases(phase: str | None, names: list[str]) -> None:
    assert {name: phase_of(name) for name in names} == dict.fromkeys(names, phase)


def at(ranges: list[tuple[str, float, float]], *points: float) -> list[int] | None:
    found = phases_at(ranges, np.array(points))
    return None if found is None else found.tolist()


def test_ranges_hold_their_ends_and_the_innermost_counts() -> None:
    ranges = [("optimizer", 6.0, 7.0), ("backward", 4.0, 8.0), ("forward", 0.0, 3.0)]
    assert at(ranges, 7.5, 0.0, 3.0, 3.5, 4.0, 6.0, 7.0, 9.0) == [1, 0, 0, -1, 1, 2, 2, -1]
    # Of ranges that start together the shorter is inside the longer.
    assert at([("backward", 0.0, 2.0), ("forward", 0.0, 9.0)], 1.0, 3.0) == [1, 0]
    assert at([("forward", 0.0, 9.0), ("backward", 0.0, 2.0)], 1.0, 3.0) == [1, 0]


def test_without_forward_all_the_rest_is_forward_in_training_alone() -> None:
    assert at([("backward", 4.0, 8.0)], 1.0, 5.0, 9.0) == [0, 1, 0]
    assert at([("optimizer", 4.0, 8.0)], 1.0, 5.0) is None
    assert at([], 1.0) is None


def trace(tmp_path: Path, ranges: list[tuple[str, str, float, float, int]]) -> pl.DataFrame:
    """A trace with kernels launched at 10, 30, 50 and 70, and these ranges on their threads."""
    found: list[Event] = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
         "args": {}}
        for cat, name, ts, dur, tid in ranges
    ]  # fmt: skip
    for i in range(4):
        ts, same = 10.0 + 20 * i, {"correlation": i + 1}
        found += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
             "ts": ts, "dur": 1, "args": same},
            {"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": ts + 300,
             "dur": 2, "args": {"device": 0, "stream": 7, **same}},
        ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": found}))
    return kineto.read(path).rows.filter(level="kernel")


def test_annotations_of_a_trace(tmp_path: Path) -> None:
    """A kernel has the phase in which it was launched, not that in which it ran."""
    ranges = [
        ("user_annotation", "## forward ##", 5, 20, 1),
        ("user_annotation", "## backward ##", 26, 20, 2),
        ("user_annotation", "Optimizer.step#SGD.step", 45, 10, 1),
    ]
    rows = trace(tmp_path, ranges)
    assert rows["phase"].to_list() == ["forward", "backward", "optimizer", None]


def test_automatic_differentiation_shows_the_backward_pass(tmp_path: Path) -> None:
    ranges = [
        ("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 28, 10, 2),
        ("cpu_op", "Optimizer.step#SGD.step", 65, 10, 1),
    ]
    rows = trace(tmp_path, ranges)
    assert rows["phase"].to_list() == ["forward", "backward", "forward", "optimizer"]


def test_inference_has_no_phases(tmp_path: Path) -> None:
    assert "phase" not in trace(tmp_path, [("cpu_op", "aten::mm", 5, 20, 1)]).columns


def test_operators_on_the_cpu_have_phases(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    found = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur,
         "args": {}}
        for name, ts, dur in (
            ("aten::mm", 0, 5),
            ("autograd::engine::evaluate_function: MmBackward0", 10, 9),
            ("aten::mm", 12, 5),
        )
    ]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": found}))
    rows = kineto.read(path).rows.filter(level="kernel")
    assert rows["phase"].to_list() == ["forward", "backward", "backward"]


def test_ranges_of_nsight_systems(tmp_path: Path) -> None:
    """Backward passes are launched by another thread than the one that marks them."""
    content = tables()
    columns, rows = content["NVTX_EVENTS"]
    assert columns == RANGES
    more = [
        (460, 595, 59, TID, "forward", None),
        (595, 720, 59, TID + 1, "backward", None),
    ]
    found = nsys.read(
        database(tmp_path / "x.sqlite", {**content, "NVTX_EVENTS": (columns, [*rows, *more])})
    )
    kernels = found.rows.filter(level="kernel")
    assert kernels.select("kernel_class", "phase").rows() == [
        ("memcpy", "forward"),
        ("gemm", "backward"),
        ("add", "backward"),
        ("gemm", None),
        ("add", None),
        ("memset", None),
    ]
    plain = nsys.read(database(tmp_path / "y.sqlite", content))
    assert "phase" not in plain.rows.columns


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("mi250_minitoy_train_rocm6.2", {"forward": 8, "backward": 7, "optimizer": 1}),
        ("sampled_rank-0", {"forward": 454, "backward": 531, "optimizer": 78, None: 141}),
        ("alexnet", None),
    ],
)
def test_samples(shared_data: Path, name: str, phases: Any) -> None:
    path = shared_data / "tools" / "kineto" / f"{name}_trace.json.gz"
    rows = kineto.read(path).rows.filter(level="kernel")
    if phases is None:
        assert "phase" not in rows.columns
    else:
        assert dict(rows.group_by("phase").len().rows()) == phases
