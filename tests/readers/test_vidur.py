"""VIDUR: requests in seconds with the configuration beside them, batches, traces, profiles."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.serving import vidur
from errcomp.readers.serving.tables import is_vidur

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def fixture(path: str) -> Path:
    return FIXTURES / path


def names(path: Path) -> list[str]:
    return [one.name for one in recognise(Source(path), vidur.FORMATS)]


def test_requests_are_in_seconds_and_know_their_run() -> None:
    found = vidur.read(fixture("vidur-requests/good"))
    rows = found.rows.filter(pl.col("quantity") == "time")
    assert rows["unit"].unique().to_list() == ["s"]
    assert rows["predicted"].to_list() == [0.5, 0.75, None]
    assert rows["status"].to_list() == [None, None, "no value (NaN)"]
    assert rows["request"].to_list() == [0, 1, 2]
    assert rows["prefill_tokens"].to_list() == [128, 256, 64]
    assert rows.row(0, named=True)["run"] == "2030-01-01_00-00-00-000001"
    keys = rows.select("model", "device", "scheduler", "tensor_parallel", "pipeline_stages", "qps")
    assert set(keys.rows()) == {("example/tiny-7b", "gpu9", "sarathi", 4, 2, 1.5)}
    others = dict(found.rows.filter(pl.col("request") == 1).select("quantity", "predicted").rows())
    assert others == {
        "time": 0.75,
        "ttft": 0.25,
        "tpot": 0.0833,
        "queueing delay": 0.125,
        "execution time": 0.5,
        "model execution time": 0.45,
        "preemption time": 0.125,
    }


def test_an_old_flat_configuration() -> None:
    found = vidur.read(fixture("vidur-requests/old_config"))
    keys = found.rows.select("model", "device", "scheduler", "pipeline_stages", "run").unique()
    assert keys.rows() == [("example/tiny-7b", "gpu9", "orca", 1, "2029-12-31")]


@pytest.mark.parametrize("text", ["{", "[1]", '"x"', '{"cluster_config": 3, "metrics_config": []}'])
def test_a_useless_configuration_takes_no_rows(text: str, tmp_path: Path) -> None:
    content = fixture("vidur-requests/good/request_metrics.csv").read_text()
    (tmp_path / "request_metrics.csv").write_text(content)
    (tmp_path / "config.json").write_text(text)
    found = vidur.read(tmp_path / "request_metrics.csv")
    assert len(found.rows) == 21
    assert "model" not in found.rows.columns
    assert bool(found.notes) == ("cluster_config" not in text)


def test_the_serving_system_that_it_imitates_is_measured() -> None:
    found = vidur.read(fixture("sarathi-serve-requests/good"))
    assert found.rows["tool"].unique().to_list() == ["Sarathi-Serve"]
    assert found.rows["predicted"].null_count() == len(found.rows) == 14
    assert found.of(quantity="time").rows["measured"].to_list() == [0.5, 0.75]


def test_batches() -> None:
    rows = vidur.read(fixture("vidur-batches/good")).rows
    assert rows.select("predicted", "unit", "batch", "tokens", "run").rows() == [
        (0.0125, "s", 1, 128, "2030-01-01_00-00-00-000001/0"),
        (0.004, "s", 2, 2, "2030-01-01_00-00-00-000001/1"),
    ]


def test_operators_run_once_in_each_layer() -> None:
    found = vidur.read(fixture("vidur-operations/good"))
    first = found.rows.filter((pl.col("batch_id") == 0) & (pl.col("unit") == "ms"))
    kernels = first.filter(pl.col("kernel").is_not_null())
    counts = dict(kernels.select("kernel", "count").rows())
    assert counts["attn_prefill"] == 8
    assert counts["pipeline_send_recv"] == 2
    assert counts["schedule"] is None
    assert "attn_decode" not in counts
    assert sum(one.n for one in found.dropped) == 2
    whole = first.filter(pl.col("level") == "model")
    assert whole.select("quantity", "predicted").rows() == [("time", 9.5)]
    classes = dict(kernels.select("kernel", "kernel_class").rows())
    assert classes["schedule"] == "cpu"
    alone = vidur.read(fixture("vidur-operations/without_config"))
    assert "count" not in alone.rows.columns
    assert "config.json" in alone.notes[0]


def test_the_trace_has_stages() -> None:
    rows = vidur.read(fixture("vidur-trace/good")).rows
    assert rows.select("predicted", "unit", "batch", "tokens", "start").rows() == [
        (12500.0, "us", 1, 128.0, 0.0),
        (4000.0, "us", 2, 2.0, 12500.0),
    ]


@pytest.mark.parametrize(
    ("event", "message"),
    [("3", "event 1 has no args"), ('{"args": []}', "event 1 has no args")],
)
def test_a_trace_of_something_else(event: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + event + "]}")
    with pytest.raises(InputError, match=message):
        next(one for one in vidur.FORMATS if one.name == "vidur-trace").read(Source(path))  # type: ignore[misc]
    path.write_text('{"traceEvents": {}}')
    with pytest.raises(InputError, match="traceEvents must be a list"):
        next(one for one in vidur.FORMATS if one.name == "vidur-trace").read(Source(path))  # type: ignore[misc]


def test_odd_values_of_a_trace_are_no_values(tmp_path: Path) -> None:
    arguments = {"batch_id": [], "batch_size": True, "request_ids": 3, "num_tokens": [None]}
    event = {"dur": "long", "args": arguments}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event]}))
    rows = vidur.read(tmp_path / "t.json").rows
    assert rows["status"].to_list() == ["no value"]


def test_profiles_are_medians_in_ms_and_count_repetitions() -> None:
    rows = vidur.read(fixture("vidur-profile/good/mlp.csv")).rows
    assert set(rows.select("unit", "statistic", "level").rows()) == {("ms", "median", "kernel")}
    up = rows.filter(pl.col("kernel") == "mlp_up_proj")
    assert up["measured"].to_list() == [0.6, 0.65, 0.25]
    assert up["repeat"].to_list() == [0, 1, 0]
    assert up["tensor_parallel"].to_list() == [1, 1, 2]
    assert (rows["kernel"] == "add").sum() == 2
    assert rows["kernel_class"].to_list() == rows["kernel"].to_list()


def test_profiles_of_collectives() -> None:
    rows = vidur.read(fixture("vidur-profile/good/all_reduce.csv")).rows
    keys = ("level", "collective", "ranks", "size_bytes", "devices_per_node", "measured")
    assert rows.select(keys).rows() == [
        ("collective", "all_reduce", 2, 2048, 1, 0.043),
        ("collective", "all_reduce", 4, 2048, 2, 0.056),
    ]


def test_overheads_have_a_mean_where_there_is_no_median() -> None:
    rows = vidur.read(fixture("vidur-profile/good/cpu_overheads.csv")).rows
    assert rows.select("kernel", "measured", "statistic", "batch", "model").rows() == [
        ("schedule", 0.1, "median", 8, "example/tiny-7b"),
        ("sampler_e2e", 0.2, "mean", 8, "example/tiny-7b"),
        ("ray_comm_time", 0.3, "mean", 8, "example/tiny-7b"),
    ]


def test_older_profiles() -> None:
    rows = vidur.read(FIXTURES / "vidur-profile/old_overheads").rows
    assert rows.select("kernel", "measured", "statistic").rows() == [
        ("schedule", 0.165, "median"),
        ("sampler_launch", 0.84, "mean"),
        ("ray_comm_time", 0.156, "median"),
    ]
    rows = vidur.read(FIXTURES / "vidur-profile/old_network").rows
    keys = ("level", "collective", "measured", "tensor_parallel", "num_tokens")
    assert rows.select(keys).rows() == [("collective", "send_recv", 0.0389, 1, 0)]


def test_figures_and_events_are_named_and_not_read() -> None:
    folder = fixture("vidur-requests/plots")
    assert names(folder / "plots" / "request_e2e_time.csv") == ["vidur-plots"]
    assert names(folder / "plots" / "batch_size.csv") == ["vidur-plots"]
    assert names(folder / "event_trace.json") == ["vidur-events"]
    with pytest.raises(InputError, match=r"does not read\. The file holds the points of a plot"):
        vidur.read(folder / "plots" / "batch_size.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cdf,input_layernorm,replica\n0.0,0.004,0\n", "The file holds the points of a plot"),
        ("Time (sec),Memory Usage (%),replica\n0.7,0.1,0\n", "The file holds the points of a plot"),
        (
            "Request Id,request_num_tokens,request_arrived_at,replica\n0,7770,0.18,0\n",
            "no request finished\\) of VIDUR, which errcomp does not read. The file has no times",
        ),
    ],
)
def test_figures_and_requests_of_later_versions(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        vidur.read(path)


def test_a_table_of_the_user_is_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("Request Id,predicted,measured\n0,1,2\n")
    assert names(path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Request Id,request_e2e_time,prefill_e2e_time\n0,x,1\n", "request_e2e_time must be a num"),
        ("Request Id,request_e2e_time,prefill_e2e_time\n0,1\n", "line 2: 2 fields"),
        ("Request Id,request_e2e_time,prefill_e2e_time\n", "a header without rows"),
    ],
)
def test_damaged_requests(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        vidur.read(path)


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "vidur"
    found = ingest(folder)
    assert {one.name for one in found.skipped} == {"SOURCE.md"}
    counts = dict(found.rows["file"].value_counts().rows())
    assert counts == {
        "vllm/request_metrics.csv": 1400,
        "sarathi/request_metrics.csv": 350,
        "profiling/compute_a100_meta-llama_Llama-2-7b-hf_mlp.first300.csv": 3000,
        "profiling/network_a100_dgx_all_reduce.first300.csv": 300,
        "profiling/network_a100_dgx_send_recv.first300.csv": 300,
    }
    requests = vidur.read(folder / "vllm" / "request_metrics.csv").rows
    time = requests.filter(pl.col("quantity") == "time")
    assert time["predicted"][0] == 0.07339803290043312
    assert set(time.select("device", "scheduler", "qps").rows()) == {("a100", "vllm", 2.0)}
    # End to end is queueing, execution and preemption.
    wide = requests.pivot("quantity", index="request", values="predicted")
    parts = wide["queueing delay"] + wide["execution time"] + wide["preemption time"]
    assert (parts - wide["time"]).abs().max() < 1e-9  # type: ignore[operator]
    mlp = found.rows.filter(pl.col("kernel") == "mlp_up_proj")
    assert (mlp["measured"][0], mlp["unit"][0], mlp["repeat"].max()) == (3.3655, "ms", 1)


@pytest.mark.parametrize(
    ("more", "recognised"),
    [
        ({"execution_time_predictor_config": {}}, True),
        ({"execution_time_predictor_config": {}, "sys_arch": "x"}, False),
        ({}, False),
    ],
)
def test_configurations_of_forks_are_told_apart(
    more: dict[str, object], recognised: bool, tmp_path: Path
) -> None:
    nested = {"cluster_config": {}, "request_generator_config": {}, "metrics_config": {}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(nested | more))
    assert is_vidur(Source(path)) is recognised
