"""Frontier: VIDUR's file names with milliseconds in them, operators, stages, dry runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import Format, recognise
from errcomp.readers.core.source import Source
from errcomp.readers.serving import frontier, vidur
from errcomp.readers.serving.tables import is_frontier_beside

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def names(path: Path) -> list[str]:
    both = (*vidur.FORMATS, *frontier.FORMATS)
    return [one.name for one in recognise(Source(path), both)]


def form(name: str) -> Format:
    return next(one for one in frontier.FORMATS if one.name == name)


def test_requests_are_in_milliseconds() -> None:
    found = frontier.read(FIXTURES / "frontier-requests/good")
    first = found.rows.filter(pl.col("request") == 0)
    assert dict(first.select("quantity", "predicted").rows()) == {
        "time": 500.0,
        "ttft": 120.0,
        "tpot": 42.0,
        "queueing delay": 0.0,
        "waiting time": 20.0,
        "execution time": 480.0,
        "model execution time": 470.0,
        "prefill time": 120.0,
        "decode time": 380.0,
    }
    assert found.rows["unit"].unique().to_list() == ["ms"]
    keys = found.rows.select("model", "device", "scheduler", "run", "attention_tensor_parallel")
    assert keys.unique().rows() == [("example/tiny-7b", "gpu9", "vllm_v1", "run_a", 2)]
    # One token has no time per further token.
    assert found.of(quantity="tpot").rows["request"].to_list() == [0]
    assert [one.n for one in found.dropped] == [1]
    assert not found.notes


def test_the_same_file_name_is_told_by_its_columns() -> None:
    here = FIXTURES / "frontier-requests/good/request_metrics.csv"
    there = FIXTURES / "vidur-requests/good/request_metrics.csv"
    assert names(here) == ["frontier-requests"]
    assert names(there) == ["vidur-requests"]
    assert names(here.with_name("config.json")) == ["frontier-config"]
    assert names(there.with_name("config.json")) == ["vidur-config"]


@pytest.mark.parametrize("what", ["batches", "operations", "trace"])
def test_what_both_write_alike_is_told_by_the_files_beside(what: str) -> None:
    for tool in ("vidur", "frontier"):
        folder = FIXTURES / f"{tool}-{what}" / "good"
        files = [path for path in folder.iterdir() if "config" not in path.name]
        assert all(f"{tool}-{what}" in names(path) or "event" in path.name for path in files)
    units = {
        tool: ingest(FIXTURES / f"{tool}-batches" / "good").rows["unit"].unique().to_list()
        for tool in ("vidur", "frontier")
    }
    assert units == {"vidur": ["s"], "frontier": ["ms"]}


def test_a_dry_run_is_named() -> None:
    found = frontier.read(FIXTURES / "frontier-requests/dummy")
    assert "a dry run of the simulator (1 ms for every operator):" in found.notes[0]
    found = frontier.read(FIXTURES / "frontier-operators/dummy")
    assert "all compute operators take 24 ms" in found.notes[0]


@pytest.mark.parametrize(
    ("time", "said"), [(None, "a constant for every operator"), (2.5, "2.5 ms for every operator")]
)
def test_a_dry_run_of_another_configuration(time: float | None, said: str, tmp_path: Path) -> None:
    content = (FIXTURES / "frontier-requests/good/request_metrics.csv").read_text()
    (tmp_path / "request_metrics.csv").write_text(content)
    part = {"enable_dummy_mode": True, "dummy_execution_time_ms": time}
    config = {"sys_arch": "x", "cluster_config": {"decode": {"predictor": part}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert said in frontier.read(tmp_path / "request_metrics.csv").notes[0]


def test_the_summary_has_statistics_and_throughputs() -> None:
    found = frontier.read(FIXTURES / "frontier-summary/good")
    requests = found.of(level="request").rows
    assert requests.filter(pl.col("quantity") == "ttft").select(
        "statistic", "predicted"
    ).rows() == [
        ("mean", 105.0),
        ("median", 105.0),
        ("min", 104.0),
        ("max", 106.0),
        ("p50", 105.0),
        ("p90", 105.5),
        ("p99", 105.75),
    ]
    assert requests["requests"].unique().to_list() == [2]
    system = found.of(level="system").rows.select("quantity", "unit", "predicted").rows()
    assert system == [
        ("time", "ms", 600.0),
        ("request throughput", "requests/s", 3.333),
        ("token throughput", "tokens/s", 338.3),
        ("decode throughput", "tokens/s", 18.3),
    ]


def test_operators_are_the_kernels_of_a_batch() -> None:
    found = frontier.read(FIXTURES / "frontier-operators/good")
    columns = ("kernel", "kernel_class", "predicted", "unit", "layer", "start", "run")
    assert found.rows.select(columns).rows() == [
        ("schedule", "OVERHEAD", 0.5, "ms", None, 0.0, "MONOLITHIC replica 0 batch 0"),
        ("attn_prefill", "COMPUTE", 3.25, "ms", 0, 0.5, "MONOLITHIC replica 0 batch 0"),
        ("attn_allreduce", "COMM", 0.75, "ms", 0, 3.75, "MONOLITHIC replica 0 batch 0"),
        ("attn_decode", "COMPUTE", 1.5, "ms", 0, 4.5, "MONOLITHIC replica 0 batch 1"),
    ]
    assert found.kernels.totals().predicted.tolist() == [4.5, 1.5]


def test_the_ledger_adds_up() -> None:
    found = frontier.read(FIXTURES / "frontier-ledger/good")
    assert found.runs.predicted.tolist() == [4.5, 1.5]
    assert found.kernels.totals().predicted.tolist() == [4.5, 1.5]
    assert found.of(level="kernel").rows["kernel"].to_list() == [
        "attention_prefill_execution",
        "mlp_norm",
        "attention_decode_execution",
        "mlp_norm",
    ]
    assert not found.notes
    apart = frontier.read(FIXTURES / "frontier-ledger/apart")
    assert apart.notes == ("Stages in which the components do not sum to the total: 1.",)


def test_profiles() -> None:
    found = frontier.read(FIXTURES / "frontier-profile/good")
    keys = ("kernel", "measured", "unit", "batch", "sequence_mode", "measurement_type")
    assert found.rows.select(keys).rows() == [
        ("attn_prefill", 0.6, "ms", 1, "even", "CUDA_EVENT"),
        ("attn_decode", 0.0625, "ms", 4, "even", "CUDA_EVENT"),
    ]
    assert [one.n for one in found.dropped] == [2]


def test_files_without_times_are_named() -> None:
    folder = FIXTURES / "frontier-requests/refused"
    assert names(folder / "performance_profile.json") == ["frontier-self-profile"]
    assert names(folder / "op_precision_metadata.csv") == ["frontier-precisions"]
    assert names(FIXTURES / "frontier-trace/good/event_trace.json") == ["frontier-events"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("frontier-summary", "[]", r"must be a JSON object\."),
        ("frontier-summary", '{"throughput_metrics": 3}', "no predicted or measured value"),
        ("frontier-operators", "[1]\n", "line 1: a record must be a JSON object,"),
        ("frontier-operators", '{"meta": {}}\n', "no predicted or measured value"),
        (
            "frontier-ledger",
            '{"execution_time": []}\n',
            "line 1: this record has no execution_time",
        ),
        ("frontier-ledger", "3\n", "line 1: this record has no execution_time"),
        (
            "frontier-profile",
            "a,b\n1,2\n",
            r"no column of times was found\. Columns found: a, b\.",
        ),
        ("frontier-trace", "[]", "traceEvents must be a list"),
        ("frontier-batches", "a\n1\n", "missing columns 'Batch Id', 'batch_execution_time'"),
    ],
)
def test_other_shapes_are_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    reader = form(name).read
    assert reader is not None
    with pytest.raises(InputError, match=message):
        reader(Source(path))


def test_odd_values_are_no_values(tmp_path: Path) -> None:
    record = {"duration_ms": "x", "ts_start": [], "layer_id": {}, "batch_id": 10**30, "meta": 1}
    path = tmp_path / "ops.jsonl"
    path.write_text(json.dumps(record) + "\n" + json.dumps({"duration_ms": 10**400}) + "\n")
    reader = form("frontier-operators").read
    assert reader is not None
    assert reader(Source(path)).rows["status"].to_list() == ["no value", "not finite"]


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "frontier"
    found = ingest(folder)
    skipped = {one.name: one.reason for one in found.skipped}
    assert {name.rpartition("/")[2] for name in skipped} == {
        "SOURCE.md",
        "op_precision_metadata.csv",
        "event_trace.json",
        "performance_profile.json",
    }
    assert not any("not recognised" in reason for reason in skipped.values())
    case = folder / "online_dense"
    requests = frontier.read(case / "request_metrics.csv")
    summary = frontier.read(case / "system_metrics.json").rows
    # The summary has the means of the requests, in the same unit.
    for quantity in ("time", "ttft", "tpot"):
        of_requests = requests.of(quantity=quantity).rows
        stated = summary.filter((pl.col("quantity") == quantity) & (pl.col("statistic") == "mean"))
        assert of_requests["predicted"].mean() == pytest.approx(stated["predicted"][0], rel=1e-12)
        assert of_requests["unit"][0] == stated["unit"][0] == "ms"
    ledger = frontier.read(case / "frontier_stage_batch_ledger.jsonl")
    assert ledger.runs.predicted.tolist() == [456.0] * 4
    assert ledger.kernels.totals().predicted.tolist() == [456.0] * 4
    traces = folder / "trace_and_profile"
    operators = frontier.read(traces / "op_traces.jsonl")
    stages = frontier.read(traces / "chrome_trace.json").rows
    assert operators.kernels.totals().predicted.tolist() == [344.0, 344.0]
    assert (stages["predicted"] / 1e3).to_list() == [344.0, 344.0]
    for output in (requests, ledger, operators):
        assert any("dry run" in note for note in output.notes)
    attention = frontier.read(folder / "profiling_a800_qwen3-next_attention.csv").rows
    linear = frontier.read(folder / "profiling_a800_qwen3-next_linear_op.csv").rows
    assert (len(attention), len(linear)) == (176 * 5, 15 * 11)
    assert linear["measured"][0] == 0.028528000228106976


def test_a_file_beside_it_that_cannot_be_read_is_not_of_frontier(tmp_path: Path) -> None:
    metrics = tmp_path / "request_metrics.csv"
    metrics.write_text("a\n1\n")
    config = tmp_path / "config.json"
    config.write_bytes(gzip.compress(b"{}")[:6])
    with pytest.raises(InputError, match="broken gzip"):
        _ = Source(config).json_names
    assert not is_frontier_beside(Source(metrics))
    config.unlink()
    assert not is_frontier_beside(Source(metrics))
    (tmp_path / "op_traces.jsonl").write_text('{"simulation_info": {}}\n')
    assert is_frontier_beside(Source(metrics))
    (tmp_path / "op_traces.jsonl").write_text('{}\n{"simulation_info": {}}\n')
    assert not is_frontier_beside(Source(metrics))
    (tmp_path / "event_trace.json").write_text('[{"cluster_type": 1}]')
    assert is_frontier_beside(Source(metrics))
