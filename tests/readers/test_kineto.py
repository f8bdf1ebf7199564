"""Reader of PyTorch profiler traces."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import time_at
from errcomp.propagation.graph.document import read_document
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import kineto
from errcomp.readers.profilers.kineto import columns
from errcomp.readers.profilers.kineto import events as _kineto_events
from errcomp.readers.profilers.kineto import graph as _kineto_graph
from errcomp.readers.profilers.kineto import rows as _kineto_rows
from errcomp.readers.profilers.kineto.classes import class_of

FIXTURES = Path(__file__).parents[1] / "data" / "readers" / "kineto-trace"
GOOD = FIXTURES / "good" / "trace.json"
WHOLE = {
    "busy time": 65.0,
    "idle time": 43.0,
    "computation time": 38.0,
    "communication time": 30.0,
    "overlap": 8.0,
    "exposed communication": 22.0,
}
Event = dict[str, Any]


def kernels(found: Output) -> pl.DataFrame:
    return found.rows.filter(pl.col("level") == "kernel")


def times(found: Output, run: str = "trace") -> dict[str, float]:
    of_run = found.rows.filter((pl.col("level") == "system") & (pl.col("run") == run))
    return dict(of_run.select("quantity", "measured").rows())


def events() -> list[Event]:
    found: list[Event] = json.loads(GOOD.read_text())["traceEvents"]
    return found


def kernel(**more: Any) -> Event:
    args = {"device": 0, "stream": 7, "correlation": 1} | more.pop("args", {})
    named = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2}
    return {**named, **more, "args": args}


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., Output]:
    """Write a trace with these events and read it."""

    def read(found: list[Event] | str, **beside: Any) -> Output:
        path = tmp_path / "trace.json"
        if isinstance(found, str):
            path.write_text(found)
        else:
            path.write_text(json.dumps({"schemaVersion": 1, **beside, "traceEvents": found}))
        return kineto.read(path)

    return read


def total(document: dict[str, Any]) -> float:
    """Return the time that a graph takes with the times that its terms have."""
    read = read_document(document)
    assert read.graph is not None
    return float(time_at(read.graph, dict(zip(read.terms.ids, read.terms.value, strict=True))))


def test_kernels() -> None:
    columns = ("run", "kernel_class", "stream", "measured", "op", "launch_call", "launch", "gap")
    found = kernels(kineto.read(GOOD))
    one, two = "ProfilerStep#1", "ProfilerStep#2"
    assert found.select(columns).rows() == [
        (one, "gemm", 7, 20.0, "aten::addmm", "cudaLaunchKernel", 1014.0, None),
        (one, "memcpy", 7, 4.0, "aten::copy_", "cudaMemcpyAsync", 1032.0, 1.0),
        (one, "communication", 20, 30.0, "record_param_comms", "cuLaunchKernelEx", 1040.0, None),
        (one, "elementwise", 7, 8.0, "aten::add", "cudaLaunchKernel", 1046.0, 7.0),
        (two, "gemm", 7, 10.0, "aten::mm", "cudaLaunchKernel", 1110.0, 56.0),
        (two, "memset", 7, 1.0, "aten::zero_", "cudaMemsetAsync", 1120.0, 1.0),
    ]
    assert found["kernel"][2] == "ncclDevKernel_AllReduce_Sum_f32_RING_LL(" + (
        "ncclDevKernelArgsStorage<4096ul>)"
    )
    assert found["shape"].to_list()[:2] == ["[[4],[2,4],[4,4],[],[]]", "[[32,32],[32,32],[]]"]
    assert found["correlation"].to_list() == [1, 2, 5, 6, 8, 9]
    assert found["start"].to_list() == [1020.0, 1041.0, 1046.0, 1052.0, 1116.0, 1127.0]
    assert set(found["device"]) == {"Made Up 100"}
    assert set(found["device_id"]) == {0}
    assert set(found["rank"]) == {3}
    assert set(found["count"]) == {1}
    messages = found.select("collective", "ranks", "size_bytes").rows()
    assert messages[1:3] == [(None, None, 4096), ("allreduce", 2, 4096)]


def test_steps_and_devices() -> None:
    found = kineto.read(GOOD)
    steps = found.rows.filter(pl.col("level") == "model")
    assert steps.select("run", "quantity", "unit", "measured", "start", "rank").rows() == [
        ("ProfilerStep#1", "time", "us", 100.0, 1000.0, 3),
        ("ProfilerStep#2", "time", "us", 100.0, 1100.0, 3),
    ]
    assert times(found) == WHOLE
    assert times(found, "ProfilerStep#1") == {
        "busy time": 54.0,
        "idle time": 2.0,
        "computation time": 28.0,
        "communication time": 30.0,
        "overlap": 8.0,
        "exposed communication": 22.0,
    }
    assert times(found, "ProfilerStep#2")["idle time"] == 1.0
    assert found.notes == ()
    assert found.dropped == ()


def test_calibration_takes_the_kernels_with_their_steps() -> None:
    totals = kineto.read(GOOD).kernels.totals()
    assert totals.run.tolist() == ["ProfilerStep#1", "ProfilerStep#2"]
    assert totals.measured.tolist() == [62.0, 11.0]
    assert totals.run_measured.tolist() == [100.0, 100.0]


@pytest.mark.parametrize("variant", ["old_version", "bare_list"])
def test_other_layouts_give_the_same(variant: str) -> None:
    found, good = kineto.read(FIXTURES / variant / "trace.json"), kineto.read(GOOD)
    assert times(found) == WHOLE
    columns = ("run", "kernel", "kernel_class", "stream", "measured", "launch", "op", "shape")
    wanted = kernels(good).select(columns)
    assert kernels(found).select(columns).sort("launch").rows() == wanted.sort("launch").rows()


def test_without_a_gpu_operators_have_their_own_time() -> None:
    found = kineto.read(FIXTURES / "cpu_only" / "trace.json")
    columns = ("kernel", "kernel_class", "measured", "op", "shape")
    assert kernels(found).select(columns).rows()[:2] == [
        ("aten::linear", "gemm", 4.0, None, "[[2,4],[4,4],[]]"),
        ("aten::addmm", "gemm", 16.0, "aten::linear", "[[4],[2,4],[4,4],[],[]]"),
    ]
    assert times(found)["busy time"] == 49.0
    assert kernels(found)["measured"].sum() == 49.0
    assert found.rows.filter(pl.col("level") == "model")["measured"].to_list() == [113.0]
    assert "operators on the CPU" in found.notes[0]
    assert "no steps" in found.notes[1]
    assert found.graph is None


def test_traces_before_kineto() -> None:
    found = kineto.read(FIXTURES / "legacy" / "trace.json")
    assert kernels(found).select("kernel_class", "measured", "device_id").rows() == [
        ("gemm", 6.25, 0)
    ]


def test_a_trace_that_is_cut_off_is_refused() -> None:
    with pytest.raises(InputError, match=r"line 41: the file ends before its list of events does"):
        kineto.read(FIXTURES / "killed" / "trace.json")


def test_gzip_byte_order_marks_and_other_encodings(tmp_path: Path) -> None:
    text = GOOD.read_text()
    packed = tmp_path / "packed.pt.trace.json.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    wide = tmp_path / "wide.json"
    wide.write_bytes(text.replace("\n", "\r\n").encode("utf-16"))
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + text.encode())
    for path in (packed, wide, marked):
        assert times(kineto.read(path)) == WHOLE
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(InputError, match="broken gzip"):
        kineto.read(packed)


def test_it_is_recognised_among_all_formats(tmp_path: Path) -> None:
    for path in FIXTURES.glob("*/trace.json"):
        assert [one.name for one in recognise(Source(path))] == ["kineto-trace"], path
    others = {
        "jax": '{"displayTimeUnit":"ns","traceEvents":[{"ph":"M","pid":1,"name":"x","args":{}}]}',
        "ort": '[{"cat":"Node","pid":1,"tid":2,"dur":5,"ts":3,"ph":"X","name":"n","args":{}}]',
        "execution": '{"schema":"1.0.2-chakra.0.0.4","pid":1,"nodes":[]}',
        "list": "[1, 2]",
        "none": "a,b\n1,2\n",
    }
    for name, text in others.items():
        path = tmp_path / name
        path.write_text(text)
        assert not recognise(Source(path), kineto.FORMATS)


def test_any_size_of_pieces_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = kineto.read(GOOD).rows
    for size in (1, 7, 64, 300, 1000, 4096):
        monkeypatch.setattr(_kineto_events, "_BLOCK", size)
        assert kineto.read(GOOD).rows.equals(wanted)
        with pytest.raises(InputError, match="line 41: the file ends"):
            kineto.read(FIXTURES / "killed" / "trace.json")


def test_strings_that_look_like_ends_of_events(
    trace: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_kineto_events, "_BLOCK", 200)
    names = ['a}, {"ph": "b"', 'c}],"traceEvents":[{', "d\\", "e" * 3000 + "}, {" * 99]
    found = trace([kernel(name=name, ts=10 * i) for i, name in enumerate(names)])
    assert kernels(found)["kernel"].to_list() == names


def test_what_profilers_write_and_json_forbids(trace: Callable[..., Output]) -> None:
    text = (
        '{"schemaVersion": 1, "dir": "C:\\work\\users", "traceEvents": [{"ph": "X", '
        '"cat": "gpu_memcpy", "name": "Memcpy\tC:\\new \\"x\\"", "pid": 0, "tid": 7, "ts": 1.5, '
        '"dur": 2, "args": {"device": 0, "stream": 7, "memory bandwidth (GB/s)": inf, '
        '"x": [NaN, -Infinity], "bytes": 12}}], "distributedInfo": {"rank": 1}, '
        '"traceName": "C:\\unwell"}'
    )
    found = kernels(trace(text))
    # "\n" and "\t" after a colon are escapes of JSON: only others can be told to be backslashes.
    assert found["kernel"].to_list() == ['Memcpy C:\new "x"']
    assert found.select("measured", "size_bytes", "rank").rows() == [(2.0, 12, 1)]


def test_text_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(GOOD.read_bytes().replace(b"aten::mm", b"aten\xff\xfemm"))
    assert times(kineto.read(path)) == WHOLE


def test_numbers_that_no_column_holds(trace: Callable[..., Output]) -> None:
    message = {"Collective name": "x", "In msg nelems": 1 << 61, "dtype": "Double"}
    found = trace(
        [
            kernel(name="ncclKernel", args=message | {"Group size": 1 << 80}),
            kernel(name="\0", args={"stream": 1 << 70, "device": 1 << 80}),
            kernel(args={"Collective name": "y", "In msg nelems": None, "dtype": "odd"}),
            kernel(ts=-1e17, dur=1e14, name=""),
        ],
        distributedInfo={"rank": 1 << 90},
        baseTimeNanoseconds=10**400,
        deviceProperties=[{"id": [], "name": "x"}],
    )
    assert kernels(found)["stream"].to_list() == ["7", str(1 << 70), "7", "7"]
    assert kernels(found)["kernel"].to_list() == ["ncclKernel", "\0", "k", "unnamed"]
    assert {"ranks", "size_bytes", "rank"}.isdisjoint(found.rows.columns)
    assert found.graph is not None
    document = found.graph()
    assert document["provenance"]["created"] == "1970-01-01T00:00:00+00:00"
    read_document(document)


def test_half_a_character(trace: Callable[..., Output]) -> None:
    text = json.dumps({"schemaVersion": 1, "traceEvents": [kernel(name="\ud800 a")]})
    assert kernels(trace(text))["kernel"].to_list() == ["? a"]


def test_broken_json_names_its_line(trace: Callable[..., Output]) -> None:
    text = GOOD.read_text().replace('"name": "aten::addmm",', '"name": "aten::addmm" :', 1)
    with pytest.raises(InputError, match=r"line 13: not valid JSON \(expected ',' or '}'\)\."):
        trace(text)
    with pytest.raises(InputError, match=r"the list traceEvents is missing"):
        trace('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": {}}')
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(InputError, match=r"nested too deeply"):
        trace('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "x": ' + deep + "}]}")


def test_an_event_without_end(
    trace: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_kineto_events, "_MOST", 1 << 12)
    monkeypatch.setattr(_kineto_events, "_BLOCK", 1 << 8)
    with pytest.raises(InputError, match=r"an event does not end"):
        trace([kernel(name="x" * 9000), kernel()])
    with pytest.raises(InputError, match=r"the list traceEvents is missing"):
        trace([kernel()], record_shapes="x" * 9000)


def test_what_cannot_be_used_is_counted(trace: Callable[..., Output]) -> None:
    odd: list[Any] = [
        kernel(),
        kernel(ts="soon"),
        5,
        kernel(dur=None),
        kernel(dur=-3),
        kernel(ts=1e300),
        kernel(ph="i"),
        {"ph": "X", "cat": "kernel", "name": None, "ts": 9, "dur": 1},
        kernel(ts=20, pid=[1], tid={"a": 1}, args={"stream": [7], "device": 1.5}),
        kernel(ts=30, args={"correlation": 2**70, "External id": "x", "bytes": {}}),
        {"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "dur": 2, "pid": [1], "tid": {}},
        {"ph": "X", "cat": "cuda_sync", "name": "x", "ts": 1, "dur": 2, "args": None},
        {"ph": "X", "name": "x", "ts": 1, "dur": 2, "pid": ["CPU functions"]},
    ]
    found = trace(odd, deviceProperties=[5, {"name": 7}], distributedInfo={"rank": "0"})
    assert len(kernels(found)) == 4
    assert kernels(found)["stream"].to_list() == ["7", None, "[7]", "7"]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (2, "an event with a field of the wrong type"),
        (1, "an event without a duration"),
        (2, "an event with an impossible time"),
    ]
    assert "rank" not in found.rows.columns
    assert "launch of 4 of 4" in found.notes[0]


@pytest.mark.parametrize("found", [[], [kernel(ph="B")], [kernel(dur=None)]])
def test_without_kernels_and_operators(trace: Callable[..., Output], found: list[Event]) -> None:
    with pytest.raises(InputError, match="no kernels and no operators"):
        trace(found)


def test_flows_stand_in_for_correlations(trace: Callable[..., Output]) -> None:
    found = events()
    for event in found:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime"):
            event["args"].pop("correlation", None)
            event["args"].pop("External id", None)
    got = kernels(trace(found))
    wanted = kernels(kineto.read(GOOD))
    assert got["op"].to_list() == wanted["op"].to_list()
    # The launch of the communication kernel kept its correlation.
    assert got["launch"].to_list() == wanted["launch"].to_list()


def test_without_launches_a_kernel_is_in_the_step_in_which_it_starts(
    trace: Callable[..., Output],
) -> None:
    found = trace([e for e in events() if e.get("cat") in ("kernel", "user_annotation")])
    assert kernels(found)["run"].to_list() == ["ProfilerStep#1"] * 3 + ["ProfilerStep#2"]
    assert "the launch of 4 of 4 kernels and copies" in found.notes[0]
    assert found.graph is not None
    assert total(found.graph()) == pytest.approx(1126 - 1020)


def test_kernels_outside_the_steps(trace: Callable[..., Output]) -> None:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "ts": 100, "dur": 50}
    again = {**step, "dur": 60, "tid": 2}
    found = trace([kernel(ts=10), kernel(ts=110), kernel(ts=170), step, again])
    outside = "outside the steps"
    assert kernels(found)["run"].to_list() == [outside, "ProfilerStep#4", outside]
    assert found.rows.filter(pl.col("level") == "model")["measured"].to_list() == [60.0]
    assert "kernels launched outside the steps: 2." in found.notes
    assert times(found)["busy time"] == 6.0
    assert times(found, "ProfilerStep#4")["busy time"] == 2.0


def test_several_devices(trace: Callable[..., Output]) -> None:
    found = trace(
        [kernel(), kernel(ts=20, args={"device": 1}), kernel(ts=6, args={"stream": 9})],
        deviceProperties=[{"id": 1, "name": "Made Up 200"}],
    )
    system = found.rows.filter(pl.col("quantity") == "busy time")
    assert system.select("device", "device_id", "measured").rows() == [
        (None, 0, 3.0),
        ("Made Up 200", 1, 2.0),
    ]


def test_operators_are_found_by_time_where_ids_say_nothing(trace: Callable[..., Output]) -> None:
    def op(name: str, ts: float, dur: float, tid: int = 1) -> Event:
        return {"cat": "cpu_op", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid}

    def launch(correlation: int, ts: float) -> list[Event]:
        args = {"correlation": correlation, "External id": correlation}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts, "dur": 1}
        return [{**call, "pid": 1, "tid": 1, "args": args}, kernel(ts=ts + 50, args=args)]

    found: list[Event] = [
        op("outer", 0, 30),
        op("inner", 5, 10),
        op("empty", 15, 0),
        op("next", 15, 5),
        op("other thread", 0, 90, tid=2),
        *launch(1, 2),
        *launch(2, 5),
        *launch(3, 15),
        *launch(4, 22),
        *launch(5, 30),
        *launch(6, 40),
    ]
    got = kernels(trace([{"ph": "X", **event} for event in found]))
    names = ["outer", "inner", "next", "outer", "outer", None]
    assert got.sort("launch")["op"].to_list() == names


def test_graph_takes_as_long_as_the_trace() -> None:
    found = kineto.read(GOOD)
    assert found.graph is not None
    document = found.graph()
    # From the first launch to the end of the last kernel.
    assert total(document) == pytest.approx(1128 - 1014)
    nodes = {node["id"]: node for node in document["graph"]["nodes"]}
    edges = {tuple(edge) for edge in document["graph"]["edges"]}
    assert [term["value"] for term in document["terms"]] == [20.0, 4.0, 30.0, 8.0, 10.0, 1.0]
    ids = [term["id"] for term in document["terms"]]
    assert set(ids) == set(found.kernels.ids)
    gemm, copy, nccl, add = ids[:4]
    assert nodes[gemm]["stream"] == "device 0 stream 7"
    assert nodes[nccl]["stream"] == "device 0 stream 20"

    def waits(before: str, after: str) -> bool:
        """Does one wait for the other, if only through a certain time."""
        return (before, after) in edges or (
            (before, f"before {after}") in edges and (f"before {after}", after) in edges
        )

    # Stream order, the event that stream 20 waits for, launches, and the synchronised host.
    assert waits(gemm, copy)
    assert waits(copy, add)
    assert waits(copy, nccl)
    assert waits("launch 4", nccl)
    wait = next(name for name in nodes if name.startswith("wait "))
    assert (nccl, wait) in edges
    assert (add, wait) in edges
    assert document["provenance"]["inputs"][0]["name"] == "trace.json"


def test_errors_go_through_the_graph() -> None:
    """A kernel that is off the critical path may be slower; one that is on it may not."""
    found = kineto.read(GOOD)
    assert found.graph is not None
    document = found.graph()
    usual = total(document)
    for place, longer in ((0, 10.0), (2, 10.0), (3, 0.0)):
        document = found.graph()
        document["terms"][place]["value"] += 10.0
        assert total(document) == pytest.approx(usual + longer)


def test_graph_of_odd_traces(trace: Callable[..., Output]) -> None:
    # Kernels of one stream that overlap, one of no length, one before its launch.
    overlapping = [kernel(ts=0, dur=10), kernel(ts=5, dur=10), kernel(ts=12, dur=3)]
    found = trace([*overlapping, kernel(ts=20, dur=0, name="y" * 9000), kernel(ts=25, dur=1)])
    assert found.graph is not None
    document = found.graph()
    assert total(document) == pytest.approx(26)
    assert not any("stream" in node for node in document["graph"]["nodes"])
    late = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 50, "dur": 1}
    late |= {"pid": 1, "tid": 1, "args": {"correlation": 1}}
    found = trace([kernel(ts=10), late])
    assert found.graph is not None
    assert total(found.graph()) == pytest.approx(2)
    found = trace([kernel(dur=0)])
    assert found.graph is not None
    with pytest.raises(InputError, match="all kernels have a duration of 0, so"):
        found.graph()


def test_the_host_waits_for_streams_events_and_copies(trace: Callable[..., Output]) -> None:
    def call(name: str, ts: float, dur: float, correlation: int, **more: Any) -> Event:
        args = {"correlation": correlation}
        where = {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1}
        return {**where, "name": name, "ts": ts, "dur": dur, "args": args, **more}

    copy = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)"}
    sync = {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 21}
    found = [
        call("cudaLaunchKernel", 0, 1, 1),
        kernel(ts=5, dur=20, args={"correlation": 1}),
        call("cudaLaunchKernel", 2, 1, 2),
        kernel(ts=6, dur=50, name="far", args={"correlation": 2, "stream": 9}),
        call("cudaStreamSynchronize", 20, 7, 3),
        {**sync, "dur": 5, "args": {"stream": 7, "correlation": 3}},
        call("cudaMemcpyAsync", 30, 15, 4),
        kernel(**copy, ts=33, dur=10, args={"correlation": 4}),
        call("cudaEventSynchronize", 50, 8, 5),
        call("cudaLaunchKernel", 60, 1, 6),
        kernel(ts=64, dur=4, name="last", args={"correlation": 6}),
    ]
    got = trace(found)
    assert got.graph is not None
    document = got.graph()
    assert total(document) == pytest.approx(68)
    after: dict[str, set[str]] = {}
    for before, node in document["graph"]["edges"]:
        after.setdefault(node, set()).add(before)
    # The first for its stream, the second for its copy, the third for what ended then.
    waits = sorted((name for name in after if name.startswith("wait ")), key=lambda n: int(n[5:]))
    assert "trace/k" in after[waits[0]]
    assert "trace/far" not in after[waits[0]]
    assert f"trace/{copy['name']}" in after[waits[1]]
    assert "trace/far" in after[waits[2]]


def test_classes() -> None:
    names = {
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)": "communication",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>": "communication",
        "Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs": "gemm",
        "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT": "gemm",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(Flash_fwd_params)": "attention",
        "sm80_xmma_fprop_implicit_gemm_tf32f32": "conv",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>": "norm",
        "void (anonymous namespace)::softmax_warp_forward<float>(float*)": "softmax",
        "triton_poi_fused_convolution_relu_3": "elementwise",
        "triton_red_fused_native_layer_norm_0": "norm",
        "triton_per_fused_sum_1": "reduction",
        "void at::native::reduce_kernel<512>(at::native::ReduceOp)": "reduction",
        "void cub::DeviceRadixSortHistogramKernel<long>": "other",
        "Memset (Device)": "memset",
        "Memcpy DtoD (Device -> Device)": "memcpy",
        "(x)": "other",
    }
    assert {name: class_of(name) for name in names} == names


def test_a_namespace_or_a_library_is_no_operation() -> None:
    names = {
        "void fbgemm_gpu::permute_2D_data_kernel<false, int>(int, int const*)": "elementwise",
        "void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>(int)": (
            "elementwise"
        ),
        "void fbgemm_gpu::(anonymous namespace)::_FP8rowwise_to_float_cuda_kernel<float>(int)": (
            "elementwise"
        ),
        "void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_float_to_hfp8_gpu("
        "at::Tensor const&)::{lambda(float)#1}, at::detail::Array<char*, 2> >(int)": "elementwise",
        "void fbgemm_gpu::_offsets_range_cuda_kernel<int>(long, int*)": "other",
        "void bounds_check_indices_kernel<long>(long*, fbgemm_gpu::FixedDivisor)": "other",
        "void split_embedding_codegen_forward_kernel<c10::Half>(int)": "other",
        "fbgemm::f8f8bf16_rowwise": "gemm",
        "void deep_gemm::transpose_and_pack_fp32_into_ue8m0<512>(float*)": "elementwise",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<128>(float*)": "gemm",
        "sm50_xmma_pooling_fw_4d_FP16FP32NHWC_Average_FastDiv_CAlign8_execute_kernel_trt": "other",
        "void flashinfer::activation::act_and_mul_kernel<__half>(__half*)": "elementwise",
        "void flashinfer::sampling::TopKSamplingFromProbKernel<1024>(float*)": "other",
        "void vllm::reshape_and_cache_flash_kernel<__half>(__half*)": "elementwise",
        "_ZN10fbgemm_gpu22permute_2D_data_kernelILb0EiEEvi": "elementwise",
    }
    assert {name: class_of(name) for name in names} == names


def test_a_kernel_beside_a_product_is_none() -> None:
    names = {
        "void splitKreduce_kernel<float, float>(cublasSplitKParams<float>)": "reduction",
        "void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::Params)": "reduction",
        "Cijk_SS_BiasS_HAS_ScaleAlphaVec_PostGSU16_VW4": "reduction",
        "void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 32>"
        ", cutlass::gemm::Gemm>>(Params)": "reduction",
        "sm90_xmma_wgrad_indexed_implicit_gemm_f32_nhwc_g1_execute_split_k_kernel_cudnn": (
            "reduction"
        ),
        "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float>>(int)": (
            "reduction"
        ),
        "void get_group_gemm_starts<cutlass::half_t>(int*)": "other",
        "void cudnn::gemm::computeOffsetsKernel(cudnn::gemm::ComputeOffsetsParams)": "other",
        "void xmma_cudnn::init_device_workspace_kernel<xmma_cudnn::implicit_gemm::P>(int)": "other",
        "nvjet_hsh_64x8_64x16_4x1_v_bz_splitK_TNT": "gemm",
        "quantized_matmul_kernel": "gemm",
    }
    assert {name: class_of(name) for name in names} == names


def test_the_template_argument_counts_where_the_own_name_shows_nothing() -> None:
    names = {
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_nn>(Params)": "gemm",
        "void cutlass_cudnn_train::Kernel<cutlass_tensorop_s1688wgrad_optimized>(P)": "conv",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>>>(P)": (
            "gemm"
        ),
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::half_t>>(P)": "attention",
        "void ck_tile::kentry<ck_tile::gfx950_t, 1, ck_tile::FmhaBwdConvertQGradKernel<int>>(P)": (
            "attention"
        ),
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, cublasGemvParams<int>>"
        "(int)": "gemm",
        "autograd::engine::evaluate_function: AddmmBackward0": "gemm",
        "volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1": "conv",
        "aten::_scaled_mm": "gemm",
        "foo<" * 5000: "other",
        "(" * 5000: "other",
        "": "other",
    }
    assert {name: class_of(name) for name in names} == names


@pytest.mark.shared
def test_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "kineto")
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    counts = dict(kernels(found).group_by("file").len().rows())
    assert counts == {
        "alexnet_trace.json.gz": 98,
        "mi250_minitoy_train_rocm6.2_trace.json.gz": 16,
        "sampled_rank-0_trace.json.gz": 1204,
        "simple_add_trace.json.gz": 4,
        "triton_example_trace.json.gz": 1,
    }
    # In the sample of a larger trace some operators are left out.
    assert kernels(found)["op"].null_count() == 16


@pytest.mark.shared
def test_samples_as_holistic_trace_analysis_reads_them(shared_data: Path) -> None:
    """Kernel breakdown, temporal breakdown, overlap and idle time of version 0.5.0."""
    found = kineto.read(shared_data / "tools" / "kineto" / "sampled_rank-0_trace.json.gz")
    work = kernels(found)
    assert work["measured"].sum() == 607844
    assert work["kernel"].n_unique() == 199
    whole = times(found)
    assert whole["idle time"] == 675191
    assert whole["computation time"] == 210320
    share = 100 * whole["overlap"] / whole["communication time"]
    assert round(share, 2) == 14.95
    gaps = dict(work.group_by("stream").agg(pl.col("gap").sum()).rows())
    assert gaps == {
        23: 1214793 + 160 + 34,
        84: 794901 + 6 + 3142,
        25: 560120 + 35 + 100413,
        7: 397917 + 3765 + 598335,
        203: 558073,
    }
    assert dict(work.group_by("run").len().rows()) == {
        "ProfilerStep#551": 602,
        "ProfilerStep#552": 602,
    }
    other = kineto.read(shared_data / "tools" / "triosim" / "profiler_vgg13-iter41.json.gz")
    assert kernels(other)["measured"].sum() == 346370
    assert times(other) == {
        "busy time": 346366,
        "idle time": 655,
        "computation time": 346340,
    }
    assert set(kernels(other)["device"]) == {"NVIDIA H100 80GB HBM3"}


@pytest.mark.shared
def test_graphs_of_samples_take_as_long_as_their_traces(shared_data: Path) -> None:
    for path in [
        *sorted((shared_data / "tools" / "kineto").glob("*.gz")),
        shared_data / "tools" / "triosim" / "profiler_vgg13-iter41.json.gz",
    ]:
        found = kineto.read(path)
        work = kernels(found)
        last, first = (work["start"] + work["measured"]).max(), work["launch"].min()
        assert isinstance(last, float)
        assert isinstance(first, float)
        assert found.graph is not None
        assert total(found.graph()) == pytest.approx(last - first, abs=1)


def test_steps_are_in_the_order_of_their_starts() -> None:
    steps = [("b", 1.0, 5.0), ("a", 0.0, 10.0), ("b", 1.0, 4.0)]
    ordered, of = columns.steps_of(steps, np.array([0.5, 2.0, 7.0, 11.0]))
    assert ordered == [("a", 0.0, 10.0), ("b", 1.0, 5.0)]
    assert of.tolist() == [0, 1, -1, -1]
    ordered, of = columns.steps_of([], np.array([0.5, 2.0]))
    assert (ordered, of.tolist()) == ([], [-1, -1])


WIDTHS = {
    8: ("double", "long", "float64", "int64", "long int", "Double"),
    4: ("float", "int", "float32", "int32", "Float"),
    2: ("half", "bfloat16", "short", "float16", "int16", "BFloat16"),
    1: ("bool", "byte", "char", "int8", "uint8", "float8_e4m3fn", "Float8_e5m2"),
}


def test_the_size_of_a_message_comes_from_its_elements_and_their_type(
    trace: Callable[..., Output],
) -> None:
    types = [(name, width) for width, names in WIDTHS.items() for name in names]
    message = {"Collective name": "allreduce", "In msg nelems": 3, "Group size": 0}
    other = {**message, "dtype": "complex"}
    found = trace(
        [
            *(kernel(name="nccl", args={**message, "dtype": name}) for name, _ in types),
            kernel(name="nccl", args=other),
            kernel(name="nccl", args=message),
            kernel(name="nccl", args={**message, "In msg nelems": 0, "dtype": "int8"}),
            kernel(name="nccl", args={**message, "In msg nelems": (1 << 62) - 1, "dtype": "int8"}),
            kernel(name="nccl", args={**message, "In msg nelems": 1 << 62, "dtype": "int8"}),
            kernel(name="nccl", args={**message, "In msg nelems": True, "dtype": "int8"}),
            kernel(name="plain", args={"bytes": 5}),
            kernel(name="copy", cat="gpu_memcpy", args={"bytes": 5}),
        ]
    )
    rows = kernels(found)
    assert rows["size_bytes"].to_list() == [
        *(3 * width for _, width in types),
        *(None, None, 0, (1 << 62) - 1, None, None, None, 5),
    ]
    assert rows["ranks"].to_list() == [0] * (len(types) + 6) + [None, None]
    assert rows["collective"].to_list() == ["allreduce"] * (len(types) + 6) + [None, None]


def test_categories_of_all_versions_and_vendors(trace: Callable[..., Output]) -> None:
    found = []
    work = {
        "kernel": "gemm", "Kernel": "gemm", "concurrent_kernel": "gemm", "gpu_memcpy": "memcpy",
        "Memcpy": "memcpy", "gpu_memset": "memset", "Memset": "memset",
    }  # fmt: skip
    vendors = ("cuda", "hip", "xpu", "mtia", "privateuse1")
    calls = [f"{one}_{layer}" for one in vendors for layer in ("runtime", "driver")] + ["Runtime"]
    for i, call in enumerate(calls):
        cat = [*work][i % len(work)]
        found.append(kernel(name="gemm", cat=cat, ts=100 + i, dur=1, args={"correlation": i}))
        launch = {"ph": "X", "cat": call, "name": f"of {call}", "ts": 2 * i + 1, "dur": 1}
        found.append({**launch, "pid": 1, "tid": 1, "args": {"correlation": i}})
        op = {"ph": "X", "cat": ("cpu_op", "Operator")[i % 2], "name": f"op {i}", "pid": 1}
        found.append({**op, "tid": 1, "ts": 2 * i + 0.5, "dur": 1})
    rows = kernels(trace(found))
    kinds = [*work.values()]
    assert rows["kernel_class"].to_list() == [kinds[i % 7] for i in range(len(calls))]
    assert rows["launch_call"].to_list() == [f"of {call}" for call in calls]
    assert rows["launch"].to_list() == [2.0 * i + 1 for i in range(len(calls))]
    assert rows["op"].to_list() == [f"op {i}" for i in range(len(calls))]


def test_times_at_the_limits(trace: Callable[..., Output]) -> None:
    found = trace(
        [
            kernel(ts=0, dur=0),
            kernel(ts=0, dur=1e15),
            kernel(ts=1e18, dur=1),
            kernel(ts=-1e18, dur=1),
            kernel(ts=0, dur=1.1e15),
            kernel(ts=1.1e18, dur=1),
            kernel(ts=-1.1e18, dur=1),
        ]
    )
    assert kernels(found)["measured"].to_list() == [0.0, 1e15, 1.0, 1.0]
    assert kernels(found)["start"].to_list() == [0.0, 0.0, 1e18, -1e18]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (3, "an event with an impossible time")
    ]


def test_a_number_of_a_stream_that_fits_stays_a_number(trace: Callable[..., Output]) -> None:
    largest = (1 << 62) - 1
    streams = [7, largest, -largest]
    fits = kernels(trace([kernel(args={"stream": one}) for one in streams]))
    assert fits["stream"].to_list() == streams
    wide = kernels(trace([kernel(args={"stream": one}) for one in (7, largest + 1)]))
    assert wide["stream"].to_list() == ["7", str(largest + 1)]
    rank = (1 << 31) - 1
    for given, expected in ((rank, {rank}), (0, {0}), (-1, None), (rank + 1, None), (True, None)):
        rows = trace([kernel()], distributedInfo={"rank": given}).rows
        assert (set(rows["rank"]) if "rank" in rows.columns else None) == expected


def test_fields_after_the_events_may_hold_lists(
    trace: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = ", ".join(json.dumps(kernel(ts=10 * i, args={"device": i})) for i in range(2))
    devices = [{"id": i, "name": f"GPU {i}", "of": [{"a": 1}, {"b": 2}]} for i in range(2)]
    text = f'{{"schemaVersion": 1, "traceEvents": [{listed}], "deviceProperties": '
    text += f'{json.dumps(devices)}, "distributedInfo": {{"rank": 4}}}}'
    packed = json.dumps(json.loads(text), separators=(",", ":"))
    for size in (1 << 19, len(text) - 20, 300):
        monkeypatch.setattr(_kineto_events, "_BLOCK", size)
        assert trace(packed).rows.equals(trace(text).rows)
        rows = kernels(trace(text))
        assert rows.select("device", "start", "rank").rows() == [
            ("GPU 0", 0.0, 4),
            ("GPU 1", 10.0, 4),
        ]


def call(name: str, ts: float, correlation: int) -> Event:
    where = {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1}
    return {**where, "name": name, "ts": ts, "dur": 0.5, "args": {"correlation": correlation}}


def test_a_stream_waits_for_the_events_that_are_known(trace: Callable[..., Output]) -> None:
    def wait(correlation: int, stream: int, on: int, recorded: int) -> Event:
        named = {"ph": "X", "cat": "cuda_sync", "name": "wait", "pid": 0, "tid": 1, "ts": 1}
        args = {
            "cuda_sync_kind": "Stream Wait Event",
            "stream": stream,
            "wait_on_stream": on,
            "wait_on_cuda_event_record_corr_id": recorded,
            "correlation": correlation,
        }
        return {**named, "dur": 1, "args": args}

    found = [
        call("cudaLaunchKernel", 0, 1),
        kernel(name="first", ts=10, dur=5, args={"correlation": 1, "stream": 7}),
        call("cudaEventRecord", 1, 2),
        call("cudaLaunchKernel", 2, 3),
        kernel(name="later", ts=15, dur=50, args={"correlation": 3, "stream": 7}),
        call("cudaStreamWaitEvent", 3, 4),
        wait(4, 9, 7, 999),  # an event that the trace does not hold
        wait(4, 9, 7, -1),
        wait(999, 9, 7, 2),  # a wait without a call
        wait(4, 11, 7, 2),  # of a stream without kernels
        wait(4, 9, 13, 2),  # for a stream without kernels
        wait(4, 9, 7, 2),
        call("cudaLaunchKernel", 4, 5),
        kernel(name="second", ts=20, dur=5, args={"correlation": 5, "stream": 9}),
        call("cudaLaunchKernel", 5, 6),
        kernel(name="third", ts=30, dur=5, args={"correlation": 6, "stream": 9}),
    ]
    got = trace(found)
    assert got.graph is not None
    edges = {tuple(edge) for edge in got.graph()["graph"]["edges"]}
    into = {name: sorted(a for a, b in edges if b == f"before trace/{name}") for name in
            ("first", "later", "second", "third")}  # fmt: skip
    assert into["second"] == ["launch 4", "trace/first"]
    assert into["third"] == ["launch 5", "trace/second"]


def test_names_of_nodes_are_unique_and_of_limited_length() -> None:
    assert _kineto_graph._unique(["a", "a", "a#2"]) == ["a", "a#3", "a#2"]
    assert _kineto_graph._unique(["a", "a", "a#2", "b", "a", "a#3", "a#2"]) == [
        *("a", "a#4", "a#2", "b", "a#5", "a#3", "a#2#2"),
    ]
    assert _kineto_graph._unique(["x\0y", "x" * 4001, "x" * 4000]) == [
        *("x y", "x" * 4000, "x" * 4000 + "#2"),
    ]


def test_a_graph_says_when_and_from_which_file_it_was_made(
    trace: Callable[..., Output], tmp_path: Path
) -> None:
    # 2026-01-31T00:00:00Z, and 1.5 s in microseconds.
    found = trace([kernel(ts=1_500_000)], baseTimeNanoseconds=1_769_817_600 * 10**9)
    assert found.graph is not None
    made = found.graph()["provenance"]
    assert made["created"] == "2026-01-31T00:00:01+00:00"
    digest = hashlib.sha256((tmp_path / "trace.json").read_bytes()).hexdigest()
    assert made["inputs"] == [{"name": "trace.json", "sha256": digest}]
    (tmp_path / "trace.json").unlink()  # of an archive that was unpacked
    assert found.graph()["provenance"]["inputs"] == []


def test_shapes_are_json_without_blanks() -> None:
    texts = [b"[[2, 3], []]", b"", b"[1", b"[" * 100_000]
    found = _kineto_rows._shapes(columns.Trace(shapes=texts))
    assert found == ["[[2,3],[]]", None, None, None]


def test_no_work_takes_no_time() -> None:
    none, of_none = np.zeros(0), np.zeros(0, dtype=np.int64)
    assert _kineto_rows.union(none, none) == 0.0
    marks = np.zeros(0, dtype=bool)
    assert [*_kineto_rows.device_times(none, none, of_none, marks, marks)] == []


@pytest.mark.parametrize(
    "name", ["ph", "cat", "name", "ts", "dur", "args", "device", "stream", "correlation"]
)
def test_a_name_twice_in_an_event_is_refused(name: str, trace: Callable[..., Output]) -> None:
    whole, lacking = kernel(), kernel()
    (lacking["args"] if name in lacking["args"] else lacking).pop(name)
    rest = json.dumps([lacking] * 4)[1:-1]
    once = json.dumps(whole)
    value = json.dumps(whole["args"].get(name, whole.get(name)))
    twice = once.replace(f'"{name}": {value}', f'"{name}": {value}, "{name}": {value}')
    assert twice != once
    trace(f'{{"schemaVersion": 1, "traceEvents": [{rest}, {once}]}}')
    with pytest.raises(InputError, match=rf"an object names '{name}' twice\. The trace may be"):
        trace(f'{{"schemaVersion": 1, "traceEvents": [{rest}, {twice}]}}')
    # Event by event where one has a field of the wrong type.
    with pytest.raises(InputError, match=f"an object names '{name}' twice"):
        trace(f'{{"schemaVersion": 1, "traceEvents": [5, {rest}, {twice}]}}')


@pytest.mark.parametrize("size", [64, 1 << 19])
def test_flows_at_time_zero_and_beside_correlations(
    size: int, trace: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_kineto_events, "_BLOCK", size)

    def flow(end: str, ts: float, number: int, pid: int, tid: int) -> Event:
        named = {"ph": end, "cat": "ac2g", "name": "ac2g", "id": number}
        return {**named, "ts": ts, "pid": pid, "tid": tid}

    launch = {"ph": "X", "cat": "cuda_runtime", "name": "call", "ts": 0, "dur": 1}
    launch |= {"pid": 1, "tid": 1, "args": {}}
    alone = kernel(ts=0, dur=4, args={"correlation": None})
    flows = [flow("s", 0, 5, 1, 1), flow("f", 0, 5, 0, 7)]
    rows = kernels(trace([launch, alone, *flows]))
    assert rows.select("correlation", "launch", "launch_call").rows() == [(5, 0.0, "call")]
    # Where one kernel has a correlation, the flows only repeat what the others lack.
    rows = kernels(trace([launch, alone, kernel(ts=50, args={"correlation": 8}), *flows]))
    assert rows["correlation"].to_list() == [None, 8]
    assert "launch" not in rows.columns


def test_steps_at_time_zero_and_without_length(trace: Callable[..., Output]) -> None:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1}
    found = trace(
        [
            {**step, "ts": 0, "dur": 9},
            {**step, "name": "ProfilerStep#2", "ts": 9, "dur": 0},
            kernel(),
        ]
    )
    runs = found.rows.filter(level="model")
    assert runs.select("run", "start", "measured").rows() == [
        ("ProfilerStep#1", 0.0, 9.0),
        ("ProfilerStep#2", 9.0, 0.0),
    ]


def of(ts: float, dur: float) -> _kineto_events.Event:
    return _kineto_events.Event(ts=ts, dur=dur)


def test_the_operator_of_a_launch_and_the_caller_of_an_operator() -> None:
    trace = columns.Trace()
    # Name, thread, external ID and shape; two threads.
    trace.ops.add(
        [of(0, 1), of(40, 20), of(42, 5), of(44, 2), of(40, 90)],
        range(5), [0, 0, 0, 0, 1], [5, -1, -1, -1, -1], [0] * 5,
    )  # fmt: skip
    assert columns.parents(trace.ops).tolist() == [-1, -1, 1, 2, -1]
    # Name, thread, correlation and external ID.
    trace.runtime.add(
        [of(50, 1), of(45, 1), of(80, 1), of(80, 1), of(30, 1)],
        [0] * 5, [0, 0, 0, 1, 0], [0, 1, 2, 3, 4], [-1] * 5,
    )  # fmt: skip
    # Name, kind, device, stream, correlation, external ID and bytes.
    trace.gpu.add(
        [of(100 + i, 1) for i in range(7)],
        *([0] * 7 for _ in range(4)), [0, 0, 1, 2, 3, 9, -1], [5, 0, 7, -1, -1, 5, -1], [0] * 7,
    )  # fmt: skip
    calls = columns.launches(trace)
    assert calls.tolist() == [0, 0, 1, 2, 3, -1, -1]
    # By its ID, though another ran at the time; by time, the innermost; none; of its thread.
    assert columns.launching_ops(trace, calls).tolist() == [0, 1, 3, -1, 4, 0, -1]


def test_idle_times_of_streams() -> None:
    trace = columns.Trace()
    trace.gpu.add(
        [of(10, 5), of(0, 4), of(20, 1), of(30, 2), of(12, 1), of(40, 1)],
        [0] * 6, [0] * 6, [0, 0, 0, 1, 0, 1], [1, 1, 1, 1, 2, 1], *([0] * 6 for _ in range(3)),
    )  # fmt: skip
    nan = math.nan
    assert columns.gaps(trace.gpu) == pytest.approx([6, nan, 5, nan, nan, 8], nan_ok=True)


@pytest.mark.parametrize("name", ["k", 'a}, {"ph": "b', "c}, {" * 9])
def test_events_are_decoded_a_few_at_a_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [kernel(name=name, ts=i) for i in range(200)]
    listed = ", ".join(map(json.dumps, many))
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{listed}]}}')
    monkeypatch.setattr(_kineto_events, "_BLOCK", 4 * len(json.dumps(many[-1])))
    blocks = [[event.ts for event in block] for block in _kineto_events.Events(Source(path))]
    assert [ts for block in blocks for ts in block] == [*range(200)]
    assert max(map(len, blocks)) <= 8


@pytest.mark.parametrize("blank", ["", " "])
def test_a_trace_that_is_cut_off_after_what_json_forbids(
    blank: str, trace: Callable[..., Output]
) -> None:
    listed = json.dumps([kernel(), kernel(args={"x": math.nan}), kernel()])
    for end in range(-30, 0):
        text = f'{{"schemaVersion": 1,{blank} "traceEvents": {listed[:end]}'
        with pytest.raises(InputError, match="the file ends before its list of events does"):
            trace(text)


def test_a_launch_after_its_kernel_counts_within_a_microsecond(
    trace: Callable[..., Output],
) -> None:
    for late, counts in ((-5.0, True), (1.0, True), (1.25, False)):
        found = trace([kernel(ts=10, args={"correlation": 3}), call("launch", 10 + late, 3)])
        assert found.graph is not None
        names = [node["id"] for node in found.graph()["graph"]["nodes"]]
        assert ("launch 0" in names) is counts


@pytest.mark.parametrize(("early", "waits"), [(0.0, True), (1.0, True), (1.25, False)])
def test_a_kernel_waits_for_one_of_its_stream_that_ended_within_a_microsecond(
    early: float, waits: bool, trace: Callable[..., Output]
) -> None:
    found = trace([kernel(ts=5, dur=20), kernel(ts=25 - early, dur=4, name="next")])
    assert found.graph is not None
    document = found.graph()
    edges = {tuple(edge) for edge in document["graph"]["edges"]}
    assert (("trace/k", "trace/next") in edges) is waits
    assert total(document) == pytest.approx(24 if waits else 24 - early)
