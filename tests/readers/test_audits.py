"""What the published files of tools say when they are audited: the facts behind the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp import datasets
from errcomp.caveats import check, relative_difference
from errcomp.claims.registry import user_claim
from errcomp.errors import InputError
from errcomp.readers import read as read_any
from errcomp.readers.core.output import Output
from errcomp.readers.learned.survey import build
from errcomp.readers.serving import blis, echo, llmservingsim
from errcomp.results import Caveat
from errcomp.tables import Pairs

pytestmark = pytest.mark.shared


@pytest.fixture
def tools(shared_data: Path) -> Path:
    return shared_data / "tools"


def codes(pairs: Pairs, claim: object = None) -> set[str]:
    return {caveat.code for caveat in check(pairs, claim=claim)}


def mape(pairs: Pairs) -> float:
    return ec.summarize(pairs, figures=["mape"]).pooled.figures["mape"].value


def off(pairs: Pairs) -> float:
    """Return by how much the sum of the predictions misses that of the measurements."""
    return ec.summarize(pairs, figures=["total_error"]).pooled.figures["total_error"].value


def noted(caveats: Sequence[Caveat], code: str) -> Mapping[str, Any]:
    """Return the evidence of the only caveat of this code."""
    (found,) = (caveat for caveat in caveats if caveat.code == code)
    return found.evidence


def test_a_difference_of_means_is_not_the_error_of_a_request(tools: Path) -> None:
    folder = tools / "llmservingsim"
    requests = llmservingsim.read(folder / "per_request_sim_vs_vllm.csv")
    stated = llmservingsim.read(folder / "RTX4090_Llama-3.1-8B.summary.txt")
    mean = stated.of(quantity="ttft", statistic="mean").pairs
    pairs = requests.of(quantity="ttft", device="RTX4090").pairs
    # The summary follows from the requests ...
    assert off(pairs) == pytest.approx(off(mean), abs=1e-5)
    assert f"{off(mean):.1%}" == "0.6%"
    # ... whose errors are six times as large, and their weighted mean about the same.
    result = ec.audit(pairs, by=(), claims=[user_claim("0.6%", aggregation="mean")])
    row = result.overall
    assert row.verdict.word == "overstated"
    assert row.figures["mape"].value == pytest.approx(0.0376, abs=5e-5)
    assert row.figures["wape"].value == pytest.approx(0.0068, abs=5e-5)
    assert {"small-quantities", "tail", "aggregation-matters"} <= codes(pairs)
    # As what it is, the error of a mean, it holds; and is set beside the error of a request.
    held = ec.audit(pairs, by=(), claims=[user_claim("0.6%", aggregation="total")]).overall
    assert held.verdict.word == "consistent"
    evidence = noted(held.caveats, "cancelling-errors")
    assert evidence["total_error"] == pytest.approx(0.0056, abs=5e-5)
    assert evidence["mape"] == pytest.approx(0.0376, abs=5e-5)
    # Without a stated average, the claim cannot be judged: another average could print it.
    unstated = ec.audit(pairs, by=(), claims=[user_claim("0.6%")]).overall
    assert unstated.verdict.word == "not verifiable"
    noted_codes = {caveat.code for caveat in unstated.caveats}
    assert {"aggregation-not-stated", "cancelling-errors"} <= noted_codes


def test_that_is_so_in_all_configurations(tools: Path) -> None:
    requests = llmservingsim.read(tools / "llmservingsim" / "per_request_sim_vs_vllm.csv")
    pairs = requests.of(quantity="ttft").pairs
    for group in pairs.groups(["device", "model"]):
        part = pairs.take(group.index)
        assert mape(part) > 1.5 * abs(off(part))


def test_the_simulator_s_accuracy_has_a_history(tools: Path) -> None:
    found = llmservingsim.read(tools / "llmservingsim" / "validation_summary_history.csv")
    assert found.rows["version"].n_unique() == 6
    ttft = found.of(quantity="ttft", statistic="mean")
    worst = ttft.rows.with_columns(off=(pl.col("predicted") / pl.col("measured") - 1).abs())
    assert worst["off"].max() == pytest.approx(0.7906, abs=1e-4)
    assert len(ttft.rows) == 20
    # Two commits of one day: their order must be given.
    with pytest.raises(InputError, match="share one date of validation"):
        _ = ttft.history
    order = found.rows.sort("date", maintain_order=True)["version"].unique(maintain_order=True)
    history = ec.History(ttft.rows.drop("quantity"), order=order.to_list())
    assert (history.n, len(history.versions)) == (20, 6)


def test_errors_of_steps_cancel_in_their_sum(tools: Path) -> None:
    name = "round1_step_predictions.sample130_per_experiment.csv"
    pairs = blis.read(tools / "blis" / name).pairs
    assert (pairs.n, mape(pairs)) == (2080, pytest.approx(0.3530, abs=5e-5))
    assert off(pairs) == pytest.approx(-0.0141, abs=5e-5)
    totals = [off(pairs.take(group.index)) for group in pairs.groups(["experiment"])]
    assert len(totals) == 16
    assert float(np.mean(np.abs(totals))) == pytest.approx(0.0751, abs=5e-5)
    assert min(totals) == pytest.approx(-0.518, abs=5e-4)
    row = ec.audit(pairs, by=["experiment"]).overall
    evidence = noted(row.caveats, "cancelling-errors")
    assert evidence["keys"] == ["experiment"]
    assert evidence["lowest_total_error"] == pytest.approx(min(totals))
    assert evidence["mean_group_total_error"] == pytest.approx(0.0699, abs=5e-5)


def test_a_fit_of_the_whole_can_spoil_its_parts(tools: Path) -> None:
    def error(file: str, quantity: str) -> float:
        return mape(blis.read(tools / "blis" / file).of(quantity=quantity).pairs)

    before, after = "round3_trace_replay_results.csv", "round3_e2e_opt_results.csv"
    assert error(before, "time") == pytest.approx(0.562, abs=5e-4)
    assert error(after, "time") == pytest.approx(0.151, abs=5e-4)
    assert error(before, "itl") == pytest.approx(0.095, abs=6e-4)
    assert error(after, "itl") == pytest.approx(0.874, abs=5e-4)


@pytest.fixture
def overlap(tools: Path) -> Output:
    found = echo.read(tools / "echo" / "slowdown_output_df_merged_features.csv")
    return found.of(quantity="time")


def test_a_constant_wins_on_the_total_and_loses_by_kernel(overlap: Output) -> None:
    own, constant = (overlap.of(tool=tool).pairs for tool in ("Echo", "Echo's constant slowdown"))
    assert abs(off(own)) > 1.7 * abs(off(constant))
    assert mape(own) < 0.62 * mape(constant)
    assert off(own) == pytest.approx(-0.0902, abs=5e-5)
    assert off(constant) == pytest.approx(0.0514, abs=5e-5)
    found = ec.audit(overlap.pairs).caveats
    assert {"under-over-asymmetry", "other-base"} <= {caveat.code for caveat in found}
    evidence = noted(found, "cancelling-errors")
    assert (evidence["first"], evidence["second"]) == ("Echo", "Echo's constant slowdown")
    # On the total the constant wins here; that it would again is not shown by 404 kernels.
    assert evidence["p_value_of_totals"] == pytest.approx(0.2745, abs=5e-5)


def test_leakage_cannot_be_seen_without_a_column(overlap: Output) -> None:
    pairs = overlap.of(tool="Echo").pairs
    assert "in-vs-out-of-distribution" not in codes(pairs)
    assert not any("train" in key for key in pairs.keys)
    assert any("trained on;" in note for note in overlap.notes)
    # Most rows nearly exact, a few far off: what seen and unseen rows would look like.
    figures = ec.summarize(pairs, figures=["mape", "median_ape"]).pooled.figures
    assert figures["mape"].value > 7 * figures["median_ape"].value


def test_a_correlation_ranks_otherwise_than_the_error(tools: Path) -> None:
    path = tools / "accel-sim" / "accelwattch_power_sim_vs_hw.csv"
    found = read_any(path)
    assert isinstance(found, Output)
    pairs = found.pairs
    summary = ec.summarize(pairs, by=["tool", "device"], figures=["pearson", "mape"])
    rows = {tuple(row.key.values()): row.figures for row in summary.rows}
    volta = rows["AccelWattch PTX SIM", "Volta"]
    pascal = rows["AccelWattch SASS SIM, tech scaled", "Pascal"]
    assert volta["pearson"].value > pascal["pearson"].value
    assert volta["mape"].value > pascal["mape"].value
    pooled = np.corrcoef(pairs.predicted, pairs.measured)[0, 1]
    below = [row for row in rows.values() if row["pearson"].value < pooled]
    assert (round(pooled, 2), len(rows), len(below)) == (0.83, 10, 8)
    part = found.of(tool="AccelWattch HW").pairs
    claim = user_claim("0.91", metric="correlation")
    row = ec.audit(part, by=(), claims=[claim]).overall
    assert row.verdict.word == "consistent"
    evidence = noted(row.caveats, "metric-mismatch")
    assert evidence["value"] == pytest.approx(0.9101, abs=5e-5)
    assert evidence["mape"] == pytest.approx(0.0746, abs=5e-5)


def test_a_share_within_ten_percent_is_not_an_accuracy(tools: Path) -> None:
    path = tools / "nn-meter" / "bench_dataset_alexnets_predict_vs_real.csv"
    found = read_any(path)
    assert isinstance(found, Output)
    pairs = found.pairs
    names = ["within_5", "within_10", "mape", "max_ape"]
    figures = ec.summarize(pairs, figures=names).pooled.figures
    assert [round(figures[name].value, 4) for name in names] == [0.75, 0.95, 0.0319, 0.1313]
    assert figures["within_10"].low == pytest.approx(0.764, abs=5e-4)
    claim = user_claim("95%", metric="share within 10%")
    row = ec.audit(pairs, by=(), claims=[claim]).overall
    assert row.verdict.word == "consistent"
    evidence = noted(row.caveats, "metric-mismatch")
    assert (evidence["figure"], evidence["value"]) == ("within_10", 0.95)


def test_one_error_has_several_denominators(tools: Path, overlap: Output) -> None:
    found = blis.read(tools / "blis" / "round3_trace_replay_results.csv")
    pairs = found.of(quantity="time").pairs
    (caveat,) = (c for c in check(pairs) if c.code == "under-over-asymmetry")
    of_prediction = float(np.mean(pairs.measured / pairs.predicted - 1))
    assert mape(pairs) == pytest.approx(0.5619, abs=5e-5)
    assert of_prediction == pytest.approx(1.297, abs=5e-4)
    assert (
        "MAPE is 56.19 %; the mean error as a factor, max(p/m, m/p) - 1, is 129.7 %."
        in caveat.message
    )
    assert "one-sided" in codes(pairs)
    both = [mape(overlap.of(tool=tool).pairs) for tool in ("Echo", "Echo's constant slowdown")]
    apart = relative_difference(*both)
    shares = sorted(abs(value) for value in (apart.of_first, apart.of_second))
    assert shares == pytest.approx([0.3912, 0.6426], abs=5e-5)


@pytest.mark.slow
def test_the_survey_s_tables_come_out_of_the_raw_files(shared_data: Path) -> None:
    derived = build(shared_data)["runs.csv"]
    assert derived == (datasets.folder("survey") / "runs.csv").read_bytes()
    tables = ec.replicate_survey().tables()
    for name in ("table7_astrasim", "table8_vidur"):
        assert not [cell for cell in tables[name] if cell.status == "not reproduced"]
    assert [c.status for c in tables["table8_vidur"]].count("reproduced") >= 16
