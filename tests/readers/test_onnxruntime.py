"""Reader of the profiles of ONNX Runtime."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import onnxruntime

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
PROFILE = FIXTURES / "onnxruntime-profile"
GOOD = PROFILE / "good" / "onnxruntime_profile.json"
TABLE = FIXTURES / "onnxruntime-table" / "good" / "fields.csv"


def event(cat: str, name: str, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    plain = {"cat": cat, "name": name, "ts": ts, "dur": dur, "ph": "X", "pid": 1, "tid": 1}
    return {**plain, "args": {}, **more}


def node(name: str, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    return event("Node", f"{name}_kernel_time", ts, dur, **more)


def written(folder: Path, events: Any) -> Path:
    path = folder / "profile.json"
    path.write_text(json.dumps(events))
    return path


def test_nodes_belong_to_runs() -> None:
    found = onnxruntime.read(GOOD)
    assert found.formats == ("onnxruntime-profile",)
    nodes = found.of(level="kernel").rows
    assert nodes.select("run", "kernel", "kernel_class", "measured").rows() == [
        ("run 1", "conv", "Conv", 300.0),
        ("run 1", "body/add", "Add", 10.0),
        ("run 1", "body/add", "Add", 10.0),
        ("run 1", "fc", "Gemm", 150.0),
        ("run 2", "conv", "Conv", 100.0),
        ("run 2", "body/add", "Add", 10.0),
        ("run 2", "body/add", "Add", 10.0),
        ("run 2", "fc", "Gemm", 50.0),
        ("run 3", "conv", "Conv", 100.0),
        ("run 3", "body/add", "Add", 10.0),
        ("run 3", "body/add", "Add", 10.0),
        ("run 3", "fc", "Gemm", 50.0),
    ]
    assert nodes["repeat"].to_list() == [1] * 4 + [2] * 4 + [3] * 4
    assert nodes.select("layer", "shape", "provider", "parameter_bytes").row(0) == (
        "0",
        '[{"float": [1, 8]}]',
        "CPUExecutionProvider",
        "64",
    )
    runs = found.of(level="model").rows
    assert runs.select("run", "measured", "unit", "start").rows() == [
        ("run 1", 550.0, "us", 1000.0),
        ("run 2", 550.0, "us", 2000.0),
        ("run 3", 550.0, "us", 3000.0),
    ]
    assert set(found.kernels.run_measured) == {550.0}
    system = found.of(level="system").rows
    assert system.select("quantity", "measured").rows() == [
        ("loading time", 100.0),
        ("initialisation time", 200.0),
    ]
    assert "is a warm-up" in found.notes[0]
    assert {one.reason: one.n for one in found.dropped} == {
        "parts of a run or of the initialisation": 3,
        "nodes that contain other nodes (If, Loop, …)": 3,
    }


def test_old_versions_have_fences_and_no_names() -> None:
    found = onnxruntime.read(PROFILE / "old_version")
    nodes = found.of(level="kernel").rows
    assert nodes.select("run", "kernel", "kernel_class", "measured").rows() == [
        ("run 1", "Conv", "Conv", 90.0),
        ("run 1", "Add", "Add", 30.0),
    ]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (4, "fences (overhead before and after a node)")
    ]


def test_without_runs() -> None:
    found = onnxruntime.read(PROFILE / "no_runs")
    assert "run" not in found.rows.columns
    assert found.notes == ()
    assert found.kernels.measured.tolist() == [90.0, 30.0]


def test_a_session_that_was_killed() -> None:
    found = onnxruntime.read(PROFILE / "killed")
    assert found.notes[0] == "The file is cut off after 11 events: the session may not have ended."
    assert found.notes[2] == "Events of nodes in no run, or in several runs at once: 2."
    nodes = found.of(level="kernel").rows
    assert nodes["run"].to_list() == ["run 1"] * 4 + ["outside of runs"] * 2


def test_a_table_of_events() -> None:
    found = onnxruntime.read(TABLE)
    assert found.formats == ("onnxruntime-table",)
    assert found.rows.select("level", "run", "kernel", "measured").rows() == [
        ("system", None, None, 700.0),
        ("system", None, None, 1500.0),
        ("model", "run 1", None, 6200.0),
        ("kernel", "run 1", "conv", 6000.0),
        ("kernel", "run 2", "conv", 87.0),
    ]
    assert {one.reason: one.n for one in found.dropped} == {
        "parts of a run or of the initialisation": 1,
        "events without a time": 1,
    }


def test_events_of_a_gpu_are_device_time(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            node("conv", 10, 5, args={"op_name": "Conv"}),
            event("Kernel", "void conv<float>()", 12, 40, args={"stream": 7}),
            event("Api", "cudaLaunchKernel", 11, 1),
            event("Session", "model_run", 5, 60),
        ],
    )
    found = onnxruntime.read(path)
    assert found.rows.select("kernel", "quantity", "measured", "stream").rows() == [
        (None, "time", 60.0, None),
        ("conv", "time", 5.0, None),
        ("void conv<float>()", "device time", 40.0, "7"),
    ]
    assert found.kernels.measured.tolist() == [5.0]
    assert "device time" in found.notes[1]
    assert found.dropped[0].reason == "events of other kinds"


def test_runs_at_the_same_time_are_told_apart_by_their_threads(tmp_path: Path) -> None:
    events = []
    for thread in (1, 2):
        events += [
            node("a", 10 + thread, 5, tid=thread),
            event("Session", "model_run", 9, 20 + thread, tid=thread),
        ]
    found = onnxruntime.read(written(tmp_path, events))
    assert found.of(level="kernel").rows["run"].to_list() == ["run 1", "run 2"]


def test_runs_at_the_same_time_on_one_thread(tmp_path: Path) -> None:
    runs = [event("Session", "model_run", 9 + i, 20) for i in range(2)]
    found = onnxruntime.read(written(tmp_path, [node("a", 12, 5), *runs]))
    assert found.of(level="kernel").rows["run"].to_list() == ["outside of runs"]
    assert "several runs at once" in found.notes[1]


def test_a_node_at_the_boundary_is_in_the_later_run(tmp_path: Path) -> None:
    runs = [event("Session", "model_run", at, 10) for at in (0, 10)]
    found = onnxruntime.read(written(tmp_path, [node("a", 10, 5), *runs]))
    assert found.of(level="kernel").rows["run"].to_list() == ["run 2"]


def test_an_if_without_its_nodes_stays(tmp_path: Path) -> None:
    events = [
        node("a", 1, 5, args={"op_name": "If"}),
        node("b", 7, 5),
        node("c", 20, 5, args={"op_name": "If"}),
        node("d", 22, 1, tid=2),
        node("e", 23, 9),
    ]
    found = onnxruntime.read(written(tmp_path, events))
    assert found.rows["kernel"].to_list() == ["a", "b", "c", "d", "e"]


def test_events_in_an_object_and_with_other_arguments(tmp_path: Path) -> None:
    events = [
        node("a", 1, 5.5, args=None),
        node("", 7, 5, args={"op_name": {"x": 1}, "node_index": 3}),
        node("", 8, 5, args={"op_name": ""}),
        event("Node", "other", 7, 5),
        node("never ended", 9, None),
    ]
    found = onnxruntime.read(written(tmp_path, {"traceEvents": events}))
    assert found.rows.select("kernel", "kernel_class", "measured").rows() == [
        ("a", "a", 5.5),
        ('{"x": 1}', '{"x": 1}', 5.0),
        ("node without a name", "node without a name", 5.0),
    ]
    assert {one.reason: one.n for one in found.dropped} == {
        "events of nodes other than the kernel time": 1,
        "events without a time": 1,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[{"cat":"Node","name":"a_kernel_time","dur":"long","ts":1}]',
            r"Expected `float.*\$\[0\]",
        ),
        ('[{"cat":"Node","name":"a_kernel_time"},5]', r"Expected `object`"),
        ('[{"cat":"Node","name":"a_kernel_time","args":[]}]', "Expected `object"),
        ('{"cat":"Node","name":"a_kernel_time"}', "missing required field `traceEvents`"),
        ('[{"cat":"Node","name":"a_kernel_time",]', "not valid JSON"),
        ('[{"cat":"Node","name":"a_kernel_time"},\n{"cat":7},\n{"', "Expected `str`"),
        ('[{"cat":"Node","name":"a_kernel_time"},}{},\n{"', "not valid JSON"),
        ('[{"cat":"Session","name":"session_initialization","ts":1,"dur":2}]', "no times of nodes"),
        (
            '[{"cat":"Node","name":"a_kernel_time","x":' + "[" * 100_000 + "]" * 100_000 + "}]",
            "nested too deeply",
        ),
    ],
)
def test_damaged_profiles_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        onnxruntime.read(path)


@pytest.mark.parametrize(
    "text",
    ['[{"cat": "kernel", "name": "x"}]', '{"traceEvents": [{"cat": "Node"}]}', "run,cat,name\n"],
)
def test_traces_of_others_are_not_recognised(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert recognise(Source(path), onnxruntime.FORMATS) == []


@pytest.mark.shared
def test_real_files(shared_data: Path) -> None:
    folder = shared_data / "tools" / "onnxruntime"
    found = ingest(folder)
    assert found.formats == ("onnxruntime-profile", "onnxruntime-table")
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    counts = Counter(found.rows.select("file", "level").rows())
    nodes = {file: n for (file, level), n in counts.items() if level == "kernel"}
    assert nodes == {
        "ort_0.4_issue1297.excerpt.json": 1,
        "ort_cuda_lenet_two_runs.fields.csv": 16,
        "ort_genai_issue2031_dml.excerpt.json": 1,
        "profile_cnn_ort1.15.0.json": 160,
        "profile_cnn_ort1.31.1.json": 160,
        "profile_tfm_ort1.15.0.json": 368,
        "profile_tfm_ort1.31.1.json": 480,
    }
    lenet = found.rows.filter(pl.col("kernel") == "Convolution28")
    assert lenet.select("repeat", "measured").rows() == [(1, 66055.0), (2, 87.0)]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["cnn_ort1.15.0", "cnn_ort1.31.1", "tfm_ort1.15.0"])
def test_totals_of_real_profiles(name: str, shared_data: Path) -> None:
    path = shared_data / "tools" / "onnxruntime" / f"profile_{name}.json"
    events = json.loads(path.read_text())
    found = onnxruntime.read(path)
    nodes = found.of(level="kernel").rows
    assert nodes["measured"].sum() == sum(
        one["dur"] for one in events if one["name"].endswith("_kernel_time")
    )
    runs = found.of(level="model").rows
    assert runs["measured"].to_list() == [
        one["dur"] for one in events if one["name"] == "model_run"
    ]
    assert nodes["run"].n_unique() == 8
    each = nodes.group_by("run").len()["len"].to_list()
    assert len(set(each)) == 1
    # Nodes run one after the other: what is left is the overhead of the run.
    totals = found.kernels.totals()
    assert (totals.measured < totals.run_measured).all()
    assert (totals.measured > 0.5 * totals.run_measured).all()


@pytest.mark.parametrize("name", ["cat", "name", "ph", "ts", "dur", "args"])
def test_a_name_twice_in_an_event_is_refused(name: str, tmp_path: Path) -> None:
    text = json.dumps([node("a", 1, 2), node("b", 3, 4)])
    path = tmp_path / "profile.json"
    at = text.rindex(f'"{name}"')
    again = {"ts": "7", "dur": "7", "args": "{}"}.get(name, '"Node"')
    path.write_text(f'{text[:at]}"{name}": {again}, {text[at:]}')
    with pytest.raises(InputError, match=f"an object names '{name}' twice. Copy the file again."):
        onnxruntime._decoded(Source(path), path.read_text())
    events = onnxruntime._decoded(Source(path), f'{{"traceEvents": {text}}}')
    assert [(event.ts, event.dur) for event in events] == [(1.0, 2.0), (3.0, 4.0)]
