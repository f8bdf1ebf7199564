"""BLIS: runs, steps and experiments as pairs, signed errors as ratios, unsigned ones refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import Format, recognise
from errcomp.readers.core.source import Source
from errcomp.readers.serving import blis

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


_FILE = '{"vllm_estimated_duration_s": 1, "e2e_mean_ms": %s}'


def form(name: str) -> Format:
    return next(one for one in blis.FORMATS if one.name == name)


def test_a_run_has_its_requests() -> None:
    found = blis.read(FIXTURES / "blis-run/good")
    requests = found.rows.filter(pl.col("request").is_not_null())
    keys = ("quantity", "predicted", "status", "request", "prefill_tokens", "instance")
    assert requests.select(keys).rows() == [
        ("time", 120.5, None, "request_0", 64, "instance_1"),
        ("ttft", 20.5, None, "request_0", 64, "instance_1"),
        ("time", None, "not finished", "request_1", 32, "cluster"),
        ("ttft", 30.5, None, "request_1", 32, "cluster"),
    ]
    assert set(requests["unit"]) == {"ms"}
    others = found.rows.filter(pl.col("request").is_null())
    assert others.select("level", "quantity", "unit", "statistic", "predicted").rows() == [
        ("system", "time", "s", None, 2.5),
        ("system", "request throughput", "requests/s", None, 0.4),
        ("system", "generation throughput", "tokens/s", None, 4.4),
        ("request", "itl", "ms", "mean", 10.0),
        ("request", "queueing delay", "ms", "p99", 1.5),
    ]
    # Older versions write ticks under the name of ms.
    assert [(one.n, "µs or ms" in one.reason) for one in found.dropped] == [(4, True), (3, False)]
    note = "1 request of cluster was not finished: the statistics leave out unfinished requests."
    assert found.notes == (note,)


_OBJECT = """{
  "instance_id": "%s",
  "completed_requests": %d,
  "vllm_estimated_duration_s": 2.5,
  "e2e_mean_ms": %s
}
"""


def test_a_run_as_it_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(
        "=== Simulation Metrics ===\nCompleted Requests   : 100\nRequest Rate(req/s)  : 1\n"
        "Simulation Duration(s): 0.125\nvLLM estimated Duration(s): 103.75\n"
        "e2e_mean_ms  : 3724.5\nttft_p90_ms  : 23.25\ntokens_per_sec   : 494.75\n"
        "other words\ne2e_p90_ms : 1\n"
    )
    found = ingest(path)
    assert found.formats == ("blis-run",)
    columns = ("level", "quantity", "unit", "statistic", "predicted", "measured")
    assert found.rows.select(columns).rows() == [
        ("system", "host time", "s", None, None, 0.125),
        ("system", "time", "s", None, 103.75, None),
        ("request", "time", "ms", "mean", 3724.5, None),
        ("request", "ttft", "ms", "p90", 23.25, None),
        ("system", "generation throughput", "tokens/s", None, 494.75, None),
    ]
    title = "=== Simulation Metrics ===\n"
    blocks = [title + _OBJECT % block for block in (("a", 3, "9.5"), ("cluster", 0, "0"))]
    path.write_text("time=1 msg=start\n" + "".join(blocks) + "=== Trace ===\ne2e_mean_ms: 1\n")
    rows = blis.read(path).rows.filter(pl.col("level") == "request")
    assert rows.select("instance", "predicted", "status").rows() == [
        ("a", 9.5, None),
        ("cluster", None, "no request completed"),
    ]
    path.write_text(title + "e2e_mean_ms : 1\n" + title + "vLLM estimated Duration(s): 2\n")
    assert blis.read(path).rows["predicted"].to_list() == [1.0, 2.0]


def test_the_metrics_of_tests() -> None:
    found = blis.read(FIXTURES / "blis-tests/good")
    keys = ("quantity", "unit", "predicted", "run", "model", "rate", "device", "tensor_parallel")
    about = ("1", "some/model", 2.5, "H100", 2)
    assert found.rows.select(keys).rows() == [
        ("time", "s", 12.5, *about),
        ("request throughput", "requests/s", 0.8, *about),
        ("time", "ms", 250.5, *about),
        ("ttft", "ms", 20.25, *about),
    ]


def test_steps_are_pairs() -> None:
    found = blis.read(FIXTURES / "blis-steps/good")
    keys = ("predicted", "measured", "unit", "level", "experiment", "step", "variant")
    assert found.rows.select(keys).rows() == [
        (550.5, 500.0, "us", "model", "exp-a", 7, "xgboost_per_exp"),
        (190.0, 200.0, "us", "model", "exp-a", 8, "xgboost_per_exp"),
    ]
    assert found.pairs.n == 2


def test_experiments_are_pairs_of_means() -> None:
    found = blis.read(FIXTURES / "blis-experiments/good")
    first = found.rows.filter(pl.col("experiment") == "exp-a")
    columns = ("quantity", "predicted", "measured", "statistic")
    assert sorted(first.select(columns).rows()) == [
        ("itl", 9.0, 10.0, "mean"),
        ("time", 150.0, 200.0, "mean"),
        ("ttft", 20.0, 40.0, "mean"),
    ]
    failed = found.rows.filter(pl.col("experiment") == "exp-b")
    assert set(failed["status"]) == {"blis_failed"}
    assert failed["measured"].to_list() != [None] * 3
    pairs = found.of(quantity="time").pairs
    assert (pairs.n, [one.n for one in pairs.dropped]) == (1, [1])
    assert not found.notes


def test_stated_errors_are_checked() -> None:
    found = blis.read(FIXTURES / "blis-experiments/percent")
    assert found.notes == (
        "In 1 of 2 rows, e2e_error_pct contradicts the values (first lines: 3).",
    )


def test_experiments_that_were_not_finished() -> None:
    found = blis.read(FIXTURES / "blis-experiments/unfinished")
    assert found.rows.select("held_out", "status").rows() == [("tiny", None), ("tiny", "negative")]
    assert found.notes == (
        "In 1 of 2 experiments, BLIS completed fewer requests than were measured, so simulated "
        "and measured means are over different requests.",
    )


def test_mean_steps() -> None:
    found = blis.read(FIXTURES / "blis-mean-steps/good")
    assert found.rows.select("predicted", "measured", "status", "regime", "steps").rows() == [
        (115.9, 151.4, None, "decode_only", 1384),
        (None, 275.3, "negative", "mixed", 136),
    ]
    assert [one.n for one in found.dropped] == [1]
    assert "so it hides errors that cancel between steps" in found.notes[0]


def test_signed_errors_are_ratios() -> None:
    found = blis.read(FIXTURES / "blis-errors/good")
    keys = ("tool", "quantity", "statistic", "unit", "predicted", "measured", "status")
    assert found.rows.select(keys).rows() == [
        ("roofline", "time", "mean", "ratio", 0.75, 1.0, None),
        ("roofline", "ttft", "p99", "ratio", 2.5, 1.0, None),
        ("roofline", "itl", "mean", "ratio", None, 1.0, "no error stated"),
    ]
    assert found.rows.select("experiment", "device", "tensor_parallel").unique().rows() == [
        ("exp_1", "GPU9", 2)
    ]
    assert "Totals, and errors weighted by size (WAPE), are meaningless." in found.notes[0]
    assert [one.n for one in found.dropped] == [1]
    mape = ec.summarize(found.of(quantity="ttft").pairs, figures=["mape"]).pooled.figures["mape"]
    assert mape.value == 1.5


def test_the_summary_of_signed_errors_is_checked(tmp_path: Path) -> None:
    text = (FIXTURES / "blis-errors/good/errors.json").read_text()
    path = tmp_path / "errors.json"
    path.write_text(text.replace('"total_measurements": 3', '"total_measurements": 4'))
    assert "The summary counts 4 errors, but the file has 3." in blis.read(path).notes


def test_unsigned_errors_are_refused() -> None:
    folder = FIXTURES / "blis-experiments/refused"
    unsigned = ("blis-unsigned-errors", "mean errors without a sign, but neither predictions nor")
    absolute = (
        "blis-cross-validation",
        "absolute percentage errors, but neither predictions nor",
    )
    for file, (name, why) in (
        ("evaluation_results.csv", unsigned),
        ("cv.json", absolute),
        ("ablation.csv", unsigned),
        ("lomo_results.csv", unsigned),
    ):
        assert [one.name for one in recognise(Source(folder / file), blis.FORMATS)] == [name]
        with pytest.raises(InputError, match=why):
            blis.read(folder / file)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("blis-errors", "[]", r"experiments must be a JSON object\."),
        ("blis-errors", '{"experiments": []}', r"experiments must be a JSON object\."),
        ("blis-errors", '{"experiments": {"a": 1}}', "experiment 'a' has no simulators"),
        (
            "blis-errors",
            '{"experiments": {"a": {"simulators": {"x": 1}}}}',
            "'a': the errors of x are missing",
        ),
        (
            "blis-errors",
            '{"experiments": {"a": {"simulators": {"x": {"e2e_p90_mpe": "1"}}}}}',
            "a: e2e_p90_mpe must be a number, got '?1",
        ),
        ("blis-experiments", "a\n1\n", "no column of times was found"),
        ("blis-run", "a\n=== Simulation Metrics ===\n\nb\n", "no metrics below the title"),
        ("blis-run", "=== Simulation Metrics ===\n{\n", "line 2: the metrics are cut off"),
        ("blis-run", "=== Simulation Metrics ===\n{\n,\n}\n", "line 2: .*not valid JSON"),
        ("blis-run", "=== Simulation Metrics ===\ne2e_mean_ms : x\n", "e2e_mean_ms must be"),
        ("blis-run", _FILE % "null", "e2e_mean_ms must be a number, got 'None'"),
        ("blis-run", "[" + _FILE % 1 + ", 1]", r"a run must be a JSON object, got 1\."),
        ("blis-run", _FILE % '1, "requests": [1]', "a request must be a JSON object, got 1"),
        ("blis-run", _FILE % '1, "requests": [{"ttft_ms": 1}]', "e2e_ms of request"),
        (
            "blis-run",
            _FILE % '1, "requests": [{"requestID": "r7", "e2e_ms": "x"}]',
            "e2e_ms of request r7 must be a number, got 'x'",
        ),
        ("blis-tests", "[]", "tests must be a list"),
        ("blis-tests", '{"tests": [{}]}', "test 1 has no metrics"),
        ("blis-steps", "a\n1\n", "missing column"),
        ("blis-experiments", "gt_e2e_ms,blis_e2e_ms\nx,1\n", "gt_e2e_ms must be a number"),
    ],
)
def test_other_shapes_are_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    reader = form(name).read
    assert reader is not None
    with pytest.raises(InputError, match=message):
        reader(Source(path))


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "blis"
    found = ingest(folder)
    skipped = {one.name: one.reason for one in found.skipped}
    assert set(skipped) == {
        "SOURCE.md",
        "iter24_cv-1.json",
        "iter24_cv-2.json",
        "iter24_cv-3.json",
        "round1_evaluation_results.csv",
        "round2_lowo_per_step_results.csv",
        "round2_regime_ridge_results.csv",
    }
    assert all("does not read" in reason for name, reason in skipped.items() if name[-2:] != "md")
    counts = dict(found.rows["file"].value_counts().rows())
    assert counts["round1_step_predictions.sample130_per_experiment.csv"] == 2080
    assert counts["round3_trace_replay_results.csv"] == 30
    assert counts["round2_lomo_per_step_results.csv"] == 11
    # Every error that the tables state follows from their values.
    assert not any("contradicts" in note for note in found.notes)


@pytest.mark.shared
def test_the_sample_of_errors_is_smaller_than_its_summary_says(shared_data: Path) -> None:
    path = shared_data / "tools" / "blis" / "baseline_errors_vidur_aic_llmopt_roofline.json"
    found = blis.read(path)
    assert "The summary counts 190 errors, but the file has 150." in found.notes
    assert dict(found.rows["tool"].value_counts().rows()) == {
        "blis-roofline": 91,
        "vidur": 14,
        "llm-optimizer-estimate": 24,
        "aiconfigurator-estimate": 21,
    }
    first = found.rows.row(0, named=True)
    assert first["predicted"] == pytest.approx(1 - 0.9915733058044)
