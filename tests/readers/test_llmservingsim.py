"""LLMServingSim: requests in ns, vLLM's stamps of two clocks, logs, and pairs of statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import Format, recognise
from errcomp.readers.core.source import Source
from errcomp.readers.serving import llmservingsim

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


def form(name: str) -> Format:
    return next(one for one in llmservingsim.FORMATS if one.name == name)


def test_simulated_requests_are_in_nanoseconds() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-requests/good")
    rows = found.rows.filter(pl.col("request") == 1)
    assert rows.select("quantity", "predicted", "unit").rows() == [
        ("time", 60000.0, "ns"),
        ("ttft", 20000.0, "ns"),
        ("tpot", 20000.0, "ns"),
        ("queueing delay", 500.0, "ns"),
        ("itl", 20000.0, "ns"),
    ]
    assert rows["statistic"].to_list() == [None] * 4 + ["mean"]
    # One output token: neither a time per further token nor a gap.
    other = found.rows.filter(pl.col("request") == 0)
    assert other["quantity"].to_list() == ["time", "ttft", "queueing delay"]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (1, "tpot of requests with one output token, which is undefined")
    ]


def test_the_first_release_has_no_gaps_and_no_instances() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-requests/first_release")
    assert found.rows["quantity"].to_list() == ["time", "ttft", "tpot", "queueing delay"]
    assert "instance" not in found.rows.columns
    assert "The number of tokens of a request is unknown" in found.notes[0]


def test_output_may_count_the_input() -> None:
    rows = llmservingsim.read(FIXTURES / "llmservingsim-requests/total_output").rows
    assert rows.select("request", "output_tokens").unique().sort("request").rows() == [
        (7, 3),
        (8, 1),
    ]
    assert rows.filter(pl.col("request") == 8)["quantity"].to_list() == [
        "time",
        "ttft",
        "queueing delay",
    ]


@pytest.mark.parametrize("gaps", ['"[1, 2"', '"[1, null]"', '"{}"', '"[true]"', "3"])
def test_gaps_must_be_a_list_of_numbers(gaps: str, tmp_path: Path) -> None:
    path = tmp_path / "sim.csv"
    header = "request id,model,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT,ITL"
    path.write_text(f"{header}\n0,m,1,3,0,9,9,0,3,3,{gaps}\n")
    with pytest.raises(InputError, match="line 2: ITL must be a list of numbers"):
        llmservingsim.read(path)


def test_measured_requests_begin_in_the_queue_where_clocks_differ() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-vllm-requests/good")
    assert found.rows["predicted"].null_count() == len(found.rows)
    rows = found.rows.filter(pl.col("request") == 0)
    assert dict(rows.select("quantity", "measured").rows()) == {
        "time": 2.5,
        "ttft": 0.5,
        "queueing delay": 0.25,
        "tpot": 0.5,
    }
    keys = rows.select("tool", "model", "version", "device", "unit").unique().rows()
    assert keys == [("vLLM", "example/tiny-8b", "0.19.0", "GPU 9", "s")]
    assert "3 requests, arrival_time is from another clock than the" in found.notes[0]
    assert [one.n for one in found.dropped] == [2]
    failed = found.rows.filter(pl.col("request") == 2)
    assert failed.select("quantity", "status").rows() == [
        ("time", "not finished"),
        ("ttft", "not finished"),
        ("queueing delay", None),
    ]


def test_one_clock_begins_at_the_arrival() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-vllm-requests/one_clock")
    assert dict(found.rows.select("quantity", "measured").rows())["ttft"] == 1.0
    assert not found.notes
    assert found.rows["version"].unique().to_list() == ["0.19.0"]
    assert "device" not in found.rows.columns


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", r"line 1: a record must be a JSON object with a request_id\."),
        ("{}", r"line 1: a record must be a JSON object with a request_id\."),
        ('{"request_id": 1, "queued_ts": "x"}', "line 1: queued_ts must be a time in s, got 'x'"),
        ('{"request_id": 1', "line 1: not valid JSON"),
    ],
)
def test_other_records_are_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(line + "\n")
    reader = form("llmservingsim-vllm-requests").read
    assert reader is not None
    with pytest.raises(InputError, match=message):
        reader(Source(path))


@pytest.mark.parametrize("meta", ["{", "[]"])
def test_a_useless_meta_takes_no_rows(meta: str, tmp_path: Path) -> None:
    content = (FIXTURES / "llmservingsim-vllm-series/good/timeseries.csv").read_text()
    (tmp_path / "timeseries.csv").write_text(content)
    (tmp_path / "meta.json").write_text(meta)
    found = llmservingsim.read(tmp_path / "timeseries.csv")
    assert "Model, device and version are unknown" in found.notes[0]
    assert found.rows.select("quantity", "measured", "t", "waiting").rows() == [
        ("prompt throughput", 3392.0, 1.0, 2),
        ("generation throughput", 2.0, 1.0, 2),
        ("prompt throughput", 9045.0, 2.0, 0),
        ("generation throughput", 79.0, 2.0, 0),
    ]


def test_the_log_has_totals_statistics_and_a_series() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-log/good")
    rows = found.rows.select("level", "quantity", "unit", "statistic", "t", "predicted").rows()
    assert ("system", "time", "ns", None, None, 2.5e9) in rows
    assert ("system", "request throughput", "requests/s", None, None, 0.8) in rows
    assert ("system", "generation throughput", "tokens/s", None, None, 295.4) in rows
    assert ("system", "generation throughput", "tokens/s", None, 2.0, 506.5) in rows
    assert ("request", "ttft", "ms", "median", None, 11.5) in rows
    assert ("request", "tpot", "ms", "p99", None, 37.58) in rows
    assert found.of(quantity="itl").rows["status"].to_list() == ["no value"]
    assert not found.notes


def test_a_run_that_was_stopped() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-log/killed")
    assert len(found.rows) == 4
    assert "The log ends before the results" in found.notes[0]


def test_a_log_of_vllm_is_another_tool_s(tmp_path: Path) -> None:
    path = tmp_path / "vllm.log"
    path.write_text("INFO Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0\n")
    assert not recognise(Source(path), llmservingsim.FORMATS)


def test_the_summary_is_pairs_and_its_differences_are_checked() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-summary/good")
    assert found.rows.select("quantity", "statistic", "measured", "predicted").rows() == [
        ("ttft", "mean", 100.0, 110.0),
        ("ttft", "p99", 200.0, 190.0),
        ("tpot", "mean", 32.4, 32.5),
        ("time", "mean", 500.0, 505.0),
    ]
    assert found.of(quantity="ttft").pairs.n == 2
    assert not found.notes
    other = llmservingsim.read(FIXTURES / "llmservingsim-summary/wrong_difference")
    assert other.notes == (
        "The differences that the file states contradict its values: TTFT Mean.",
    )


def test_a_summary_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "summary.txt"
    path.write_text("Metric   vLLM   Sim   Diff%\nTTFT Mean   nan   nan   +nan%\n")
    assert llmservingsim.read(path).rows["status"].to_list() == ["no value"]
    path.write_text("Metric   vLLM   Sim   Diff%\nTTFT Mean   1.2.3   4   +1%\n")
    with pytest.raises(InputError, match="line 2: the measured and the predicted value must be"):
        llmservingsim.read(path)


def test_tables_with_both_sides() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-pairs/good")
    assert found.of(quantity="time").pairs.n == 2
    assert found.of(quantity="tpot").rows["request"].to_list() == [0]
    assert found.notes == ("Requests with a simulated output length unlike the measured one: 1.",)


def test_the_history_has_versions() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-history/good")
    keys = ("version", "date", "quantity", "statistic", "measured", "predicted")
    assert found.rows.select(keys).rows()[:2] == [
        ("0012345", "2030-01-01", "ttft", "mean", 100.0, 110.0),
        ("0012345", "2030-01-01", "time", "p99", 500.0, 450.0),
    ]
    assert found.of(quantity="ttft").history.n == 2


def test_a_history_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("commit,metric,vllm_ms,sim_ms\na,TTFT Mean,1,1\nb,Goodput,1,1\n")
    with pytest.raises(InputError, match="line 3: metric must be TTFT"):
        llmservingsim.read(path)


def test_profiles_of_layers() -> None:
    found = llmservingsim.read(FIXTURES / "llmservingsim-layers/good")
    assert found.rows.select("kernel", "measured", "unit", "kv_cache").rows() == [
        ("embedding", 2575.0, "ns", 0),
        ("attn", 5310.0, "ns", 16),
    ]


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "llmservingsim"
    found = ingest(folder)
    assert {one.name for one in found.skipped} == {"SOURCE.md"}
    simulated = llmservingsim.read(folder / "RTX4090_Llama-3.1-8B.sim.first20.csv").rows
    gaps = simulated.filter(pl.col("quantity") == "itl")["predicted"]
    steps = simulated.filter(pl.col("quantity") == "tpot")["predicted"]
    assert ((gaps - steps).abs() < 1).all()


@pytest.mark.shared
def test_the_pairs_are_those_of_the_native_files(shared_data: Path) -> None:
    folder = shared_data / "tools" / "llmservingsim"
    pairs = llmservingsim.read(folder / "per_request_sim_vs_vllm.csv").rows
    pairs = pairs.filter(pl.col("device") == "RTX4090")
    measured = llmservingsim.read(folder / "RTX4090_Llama-3.1-8B.vllm_requests.jsonl").rows
    simulated = llmservingsim.read(folder / "RTX4090_Llama-3.1-8B.sim.first20.csv").rows
    for side, native, scale, n in (
        ("measured", measured, 1e3, 300),
        ("predicted", simulated, 1e-6, 20),
    ):
        for quantity in ("time", "ttft", "tpot"):
            both = pairs.filter(pl.col("quantity") == quantity).join(
                native.filter(pl.col("quantity") == quantity), on="request", suffix="_native"
            )
            assert len(both) == n
            apart = both[side] - scale * both[f"{side}_native"]
            assert apart.abs().max() < 1e-3  # type: ignore[operator]


@pytest.mark.shared
def test_the_summary_is_that_of_the_requests(shared_data: Path) -> None:
    folder = shared_data / "tools" / "llmservingsim"
    requests = llmservingsim.read(folder / "RTX4090_Llama-3.1-8B.vllm_requests.jsonl").rows
    summary = llmservingsim.read(folder / "RTX4090_Llama-3.1-8B.summary.txt").rows
    for quantity, statistic, measured in summary.select("quantity", "statistic", "measured").rows():
        values = 1e3 * requests.filter(pl.col("quantity") == quantity)["measured"].to_numpy()
        mean = statistic == "mean"
        level = {"median": 50}.get(statistic) or (0 if mean else float(statistic[1:]))
        found = values.mean() if mean else np.percentile(values, level)
        assert found == pytest.approx(measured, abs=0.0501)


@pytest.mark.parametrize("column", ["measured_output_toks", "sim_output_toks"])
def test_numbers_of_tokens_are_numbers(tmp_path: Path, column: str) -> None:
    names = "hardware,model,request_id,measured_output_toks,sim_output_toks,sim_ttft_ms,"
    names += "vllm_ttft_ms,sim_tpot_ms,vllm_tpot_ms,sim_latency_ms,vllm_latency_ms"
    fields = dict.fromkeys(names.split(","), "5") | {column: "5x"}
    path = tmp_path / "pairs.csv"
    path.write_text(f"{names}\n{','.join(fields.values())}\n")
    with pytest.raises(InputError, match=f"{column} must be a number, got '5x' in line 2"):
        llmservingsim.read(path)
    path.write_text(path.read_text().replace("5x", "n/a"))
    assert llmservingsim.read(path).rows["predicted"].to_list() == [5.0, 5.0, 5.0]
