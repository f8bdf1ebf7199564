"""Results and logs of MLPerf."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.serving import mlperf

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=mlperf.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_summary_of_loadgen() -> None:
    found = fixture("mlperf-summary")
    rows = found.rows.select("quantity", "unit", "statistic", "measured").rows()
    assert rows[:5] == [
        ("time", "ns", "p90", 7428935.0),
        ("ttft", "ns", "p90", 5428935.0),
        ("throughput", "queries/s", "QPS w/ loadgen overhead", 133.25),
        ("throughput", "queries/s", "QPS w/o loadgen overhead", 135.5),
        ("time", "ns", "min", 7231162.0),
    ]
    assert rows[8:] == [
        ("time", "ns", "p99.9", 7676371.0),
        ("ttft", "ns", "mean", 4395465.0),
        ("ttft", "ns", "p99", 5676371.0),
        ("tpot", "ns", "mean", 395465.0),
        ("tpot", "ns", "p99", 476371.0),
    ]
    assert found.rows.select("scenario", "mode", "valid").unique().rows() == [
        ("SingleStream", "PerformanceOnly", "VALID")
    ]


def test_an_invalid_result_has_no_value() -> None:
    rows = fixture("mlperf-summary", "invalid").rows
    assert rows.select("unit", "measured", "status").rows() == [
        ("samples/s", None, "result is INVALID"),
        ("tokens/s", None, "result is INVALID"),
    ]


TITLE = "MLPerf Results Summary\n"


def test_summaries_that_are_cut_off(tmp_path: Path) -> None:
    found = mlperf.read(text_of(tmp_path, TITLE + "Samples per second: 5\n"))
    assert found.notes == ("The summary does not state whether the result is valid.",)
    with pytest.raises(InputError, match=r"line 2: Samples per second must be a number"):
        mlperf.read(text_of(tmp_path, TITLE + "Samples per second: fast\n"))
    with pytest.raises(InputError, match="no predicted or measured value"):
        mlperf.read(text_of(tmp_path, TITLE))


def test_tokens_that_loadgen_inferred(tmp_path: Path) -> None:
    text = (
        "MLPerf Results Summary\nScenario : Offline\nSamples per second: 12.5\n"
        "Tokens per second (inferred): 800.5\nCompleted tokens per second (inferred) : 790\n"
        "Result is : VALID\n"
    )
    rows = mlperf.read(text_of(tmp_path, text)).rows
    assert rows.select("statistic", "unit", "measured").rows() == [
        ("Samples per second", "samples/s", 12.5),
        ("Tokens per second (inferred)", "tokens/s", 800.5),
        ("Completed tokens per second (inferred)", "tokens/s", 790.0),
    ]


def test_a_log_with_several_summaries_has_several_runs(tmp_path: Path) -> None:
    one = (
        "MLPerf Results Summary\nScenario : {}\nSamples per second: {}\nResult is : {}\n"
        "Test Parameters Used\nSamples per query : 8\n"
    )
    text = one.format("Offline", 10, "VALID") + one.format("Server", 20, "INVALID")
    rows = mlperf.read(text_of(tmp_path, text)).rows
    assert rows.select("run", "scenario", "measured", "status").rows() == [
        ("1", "Offline", 10.0, None),
        ("2", "Server", None, "result is INVALID"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        ':::MLLOG {"key": "loadgen_version", "value": "3", "time_ms": 0.1, '
        '"namespace": "mlperf::logging", "event_type": "POINT_IN_TIME", "metadata": {}}',
        '"pid": 28, "tid": 28, "ts": 5925ns : LoadgenVersionInfo:',
    ],
)
def test_the_detailed_log_of_loadgen_belongs_to_its_summary(line: str, tmp_path: Path) -> None:
    path = text_of(tmp_path, line + "\n")
    with pytest.raises(InputError, match=r"read together with mlperf_log_summary\.txt"):
        mlperf.read(path)


def test_results_of_a_round() -> None:
    found = fixture("mlperf-results")
    kept = ("version", "model", "quantity", "unit", "measured", "status")
    assert found.rows.select(kept).rows() == [
        ("v5.1", "llama2-70b-99", "throughput", "tokens/s", 34400.5, None),
        ("v5.1", "resnet", "time", "ms", 0.25, None),
        ("v5.1", "resnet", "throughput", "unknown", None, "no result"),
        ("v5.1", "resnet", "throughput", "queries/s", None, "2 errors"),
    ]
    assert found.dropped[0].n == 1
    old = fixture("mlperf-results", "old_names").rows
    assert old.select("system", "model", "unit", "measured").rows() == [
        ("S1", "resnet", "samples/s", 1000.5)
    ]


def test_results_of_other_shapes(tmp_path: Path) -> None:
    one = '{"Submitter": "a", "Scenario": "b", "Performance_Result": "fast"}'
    with pytest.raises(InputError, match="expected a list of results"):
        mlperf.read(text_of(tmp_path, one))
    rows = mlperf.read(text_of(tmp_path, f"[{one}]")).rows
    assert rows["status"].to_list() == ["not a number: fast"]


def test_inference_over_rounds_is_a_history() -> None:
    found = fixture("mlperf-inference-table")
    kept = ("level", "quantity", "unit", "statistic", "measured")
    assert found.rows.select(kept).rows() == [
        ("system", "throughput", "samples/s", None, 1000.5),
        ("system", "throughput", "samples/s", None, 1010.5),
        ("request", "time", "ms", "p90", 0.25),
        ("system", "throughput", "queries/s", None, 900.0),
        ("system", "samples per query", "samples", None, 240.0),
    ]
    history = found.of(quantity="throughput", unit="samples/s").history
    assert history.versions == ("v2.0", "v2.1")
    assert len(history.series_names) == 1
    assert found.rows["stack_cuda"].to_list()[0] == "11.6"
    assert [note.split()[0] for note in found.notes] == ["In", "Results"]
    assert found.notes[1].endswith("which are not new measurements: 1.")


def test_training_over_rounds() -> None:
    found = fixture("mlperf-training-table")
    kept = ("quantity", "unit", "version", "measured", "measured_spread", "n_repeats")
    assert found.rows.select(kept).rows() == [
        ("time to train", "min", "v5.0", 28.25, None, 9),
        ("throughput", "samples/s", "v5.0", 2.5, 0.001, 9),
        ("time to train", "min", "v5.1", 27.25, None, 10),
    ]
    assert found.rows["stack_cuda"].to_list() == ["12.8", "12.8", "12.10"]
    times = fixture("mlperf-training-table", "times_only").rows
    assert times["measured"].to_list() == [46.5]


def test_a_training_run() -> None:
    rows = fixture("mlperf-training-log").rows
    assert rows.select("quantity", "unit", "measured", "model", "batch").rows() == [
        ("time to train", "ms", 60000.0, "bert", "448"),
        ("throughput", "samples/s", 11.5, "bert", "448"),
    ]


@pytest.mark.parametrize(
    ("scenario", "status"),
    [("aborted", "the run ended with aborted"), ("killed", "the run did not end")],
)
def test_a_training_run_that_failed(scenario: str, status: str) -> None:
    rows = fixture("mlperf-training-log", scenario).rows
    assert rows.select("measured", "status").rows() == [(None, status), (11.5, None)]


def test_a_training_run_of_the_second_round(tmp_path: Path) -> None:
    text = (
        "Iteration: 20, Loss: 8.2\n"
        ':::MLL 1500000000.039 submission_benchmark: {"value": "net", "metadata": {"lineno": 1}}\n'
        ':::MLL 1500000000.139 run_start: {"value": null, "metadata": {"lineno": 2}}\n'
        ':::MLL 1500000060.389 run_stop: {"value": null, "metadata": {"status": "success"}}\n'
    )
    rows = mlperf.read(text_of(tmp_path, text)).rows
    assert rows.select("model", "quantity", "unit", "measured").rows() == [
        ("net", "time to train", "s", 60.25)
    ]
    failed = text.replace("success", "aborted")
    assert mlperf.read(text_of(tmp_path, failed)).rows["status"].to_list() == [
        "the run ended with aborted"
    ]


def test_a_training_run_of_the_first_round(tmp_path: Path) -> None:
    text = (
        ":::MLPv0.5.0 net 1500000000.25 (main.py:87) run_start\n"
        "I0122 log.py:136] NET_:::MLPv0.5.0 net 1500000300.5 (main.py:187) "
        'run_stop: {"success": true}\n'
        ":::MLPv0.5.0 net 1500000301.5 (main.py:193) run_final\n"
    )
    rows = mlperf.read(text_of(tmp_path, text)).rows
    assert rows.select("model", "unit", "measured").rows() == [("net", "s", 300.25)]
    failed = text.replace("true", "false")
    assert mlperf.read(text_of(tmp_path, failed)).rows["status"].to_list() == [
        "the run ended with no success"
    ]
    with pytest.raises(InputError, match="no run_start"):
        mlperf.read(text_of(tmp_path, text.replace("run_start", "run_begin")))


def test_training_logs_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run_start"):
        mlperf.read(text_of(tmp_path, ':::MLLOG {"key": ["x"]}\n'))
    with pytest.raises(InputError, match=r"line 1: not a record of MLLOG"):
        mlperf.read(text_of(tmp_path, ":::MLLOG {key}\n"))


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "longitudinal"
    found = ingest(folder / "mlperf_inference", among=mlperf.FORMATS)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    rows = found.of(file="mlperf_inference_longitudinal.csv")
    assert len(rows.rows) == 3403
    assert rows.rows["series"].n_unique() == 1384
    samples = rows.of(quantity="throughput", unit="samples/s").history
    assert samples.versions[0] == "v0.7"
    assert samples.versions[-1] == "v6.0"
    latencies = rows.of(quantity="time").rows
    assert (len(latencies), latencies["unit"].unique().to_list()) == (633, ["ms"])
    training = mlperf.read(folder / "mlperf_training" / "mlperf_training_longitudinal.csv")
    times = training.of(quantity="time to train").rows
    assert len(times) == 361
    assert (times["carried_over"] == 1).sum() == 55
    rates = training.of(quantity="throughput")
    assert rates.rows["measured_spread"].median() == pytest.approx(0.0016, abs=5e-4)
    assert len(rates.history.series_names) == 129
    old = mlperf.read(folder / "mlperf_training" / "mlperf_training_v1.0_v3.0_ttt.csv")
    assert len(old.rows) == 318


def test_a_damaged_percentile_is_refused(tmp_path: Path) -> None:
    text = TITLE + "50.00 percentile latency (ns) : 5\n5o.00 percentile latency (ns) : 5\n"
    with pytest.raises(
        InputError, match=r"line 3: '5o\.00 percentile latency \(ns\)': not a valid percentile"
    ):
        mlperf.read(text_of(tmp_path, text))
