"""Reader of the Chrome traces of JAX."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import jax
from errcomp.readers.profilers import jax as _jax_trace

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
GOOD = FIXTURES / "jax-trace" / "good" / "host.trace.json"
HOST = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}
KERNEL = {"ph": "X", "pid": 1, "tid": 2, "ts": 5, "dur": 1, "name": "a", "args": {"hlo_op": "a.1"}}


def written(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": [HOST, *events, {}]}))
    return path


def test_kernels_of_a_gpu_and_the_program_they_belong_to() -> None:
    found = jax.read(GOOD)
    assert found.formats == ("jax-trace",)
    keys = ("level", "kernel", "measured", "unit", "start", "layer", "run")
    assert found.rows.select(keys).rows() == [
        ("kernel", "MemcpyH2D", 2.5e6, "ps", 90_000_000, None, "outside of steps"),
        ("kernel", "fusion_2", 12_000_001, "ps", 100_250_000, "fusion.2", "jit_step(7)"),
        ("kernel", "sgemm_nt", 4e7, "ps", 115_000_000, "dot.1", "jit_step(7)"),
        ("model", None, 54_750_000, "ps", 100_250_000, None, "jit_step(7)"),
    ]
    kernels = found.rows.head(3)
    assert kernels["model"].to_list() == [None, "jit_step", "jit_step"]
    assert kernels["stream"].to_list() == [
        "Stream #22(MemcpyH2D)",
        *["Stream #21(Compute)"] * 2,
    ]
    assert kernels["device_id"].to_list() == ["GPU:0"] * 3


def test_operations_of_the_host_where_no_device_did_anything(tmp_path: Path) -> None:
    step = {**KERNEL, "ts": 4, "dur": 9.5, "name": "train", "args": {"step_num": "3"}}
    found = jax.read(written(tmp_path, step, KERNEL))
    assert found.rows.select("level", "kernel", "measured", "run").rows() == [
        ("kernel", "a", 1e6, "train 3"),
        ("model", None, 9.5e6, "train 3"),
    ]


def test_processes_may_be_named_after_their_machine(tmp_path: Path) -> None:
    def trace(*machines: str) -> Path:
        events = []
        for pid, name in enumerate(machines, start=5):
            process = {"ph": "M", "pid": pid, "name": "process_name"}
            thread = {"ph": "M", "pid": pid, "tid": 2, "name": "thread_name"}
            events += [{**process, "args": {"name": f"{name} /device:GPU:0"}}]
            events += [{**thread, "args": {"name": "Stream #2"}}, {**KERNEL, "pid": pid}]
        path = tmp_path / "machines.json"
        path.write_text(json.dumps({"traceEvents": events}))
        return path

    assert jax.read(trace("node-1")).rows["device_id"].to_list() == ["GPU:0"]
    found = jax.read(trace("node-1", "node-2"))
    assert found.rows["device_id"].to_list() == ["GPU:0 on node-1", "GPU:0 on node-2"]


def test_packed_and_beside_the_other_file(tmp_path: Path) -> None:
    path = tmp_path / "host.trace.json.gz"
    path.write_bytes(gzip.compress(GOOD.read_bytes()))
    assert len(jax.read(path).rows) == 4
    shutil.copy(FIXTURES / "jax-xplane" / "good" / "host.xplane.pb", tmp_path / "host.xplane.pb")
    with pytest.raises(
        InputError, match=r"the events of host\.xplane\.pb.*Give host\.xplane\.pb\."
    ):
        jax.read(path)
    found = jax.read(tmp_path)
    assert found.formats == ("jax-xplane",)
    assert [one.name for one in found.skipped] == [path.name]


def test_a_note_where_events_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, KERNEL, {**KERNEL, "ts": 8})
    assert not any("leaves out" in note for note in jax.read(path).notes)
    monkeypatch.setattr(_jax_trace, "_MOST_EVENTS", 2)
    assert jax.read(path).notes[0].startswith("The trace has 2 events: the profiler drops events")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ts": "5"}, "ts of 'a' must be a number, got '5'"),
        ({"dur": None}, "dur of 'a' must be a number, got 'None'"),
        ({"dur": True}, "dur of 'a' must be a number, got 'True'"),
        ({"ts": 1e300}, "ts of 'a' is out of range: 1e"),
        ({"dur": -4}, "duration -4000000 ps"),
        ({"args": [1]}, "no operations on a device"),
    ],
)
def test_events_that_cannot_be_used(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        jax.read(written(tmp_path, {**KERNEL, **change}))


@pytest.mark.parametrize("text", ['{"traceEvents": 5, "a": {"name": "/host:CPU"}}', "", "}"])
def test_damaged_traces_are_refused(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, KERNEL)
    content = path.read_text()
    path.write_text(text if text.startswith("{") else content[:-2] + text)
    with pytest.raises(InputError, match="not a trace of XLA"):
        jax.read(path)


def test_traces_of_others_are_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for name in ("/job:localhost/replica:0/task:0/device:GPU:0 Compute", "python"):
        process = {**HOST, "args": {"name": name}}
        path.write_text(json.dumps({"traceEvents": [process, KERNEL]}))
        assert not recognise(Source(path))


MUTATIONS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30), st.binary(max_size=6)), min_size=1, max_size=3
)


@given(changes=MUTATIONS)
def test_mutations_are_read_or_refused(
    changes: list[tuple[float, int, bytes]], tmp_path_factory: Any
) -> None:
    content = GOOD.read_bytes()
    for where, length, put in changes:
        at = int(where * len(content))
        content = content[:at] + put + content[at + length :]
    path = tmp_path_factory.mktemp("mutated") / "trace.json"
    path.write_bytes(content)
    recognise(Source(path), jax.FORMATS)
    with contextlib.suppress(InputError):
        assert len(_jax_trace.read_trace(Source(path)).rows)
