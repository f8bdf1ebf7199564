"""Figures of the survey that were worked out by hand, against the built-in dataset."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from errcomp import datasets
from errcomp.claims import replicate_survey
from errcomp.claims.replicate.judging import INPUTS


@pytest.fixture(scope="module")
def runs():
    frame = datasets.tables("survey")["runs"]
    return {
        (row["run"], row["quantity"], row["statistic"]): row["value"]
        for row in frame.iter_rows(named=True)
    }


@pytest.fixture(scope="module")
def printed():
    return {
        (name, row["row"], row["column"]): row["printed"]
        for name, frame in datasets.tables("survey").items()
        if name not in INPUTS
        for row in frame.iter_rows(named=True)
    }


@pytest.fixture(scope="module")
def module_patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def found(module_patch):
    """Return the replication without the search for published figures, which no test looks at."""
    module_patch.setattr("errcomp.claims.replicate.neusight._search", lambda source: None)
    return replicate_survey(printed=datasets.tables("survey"))


def test_decimals_lost_in_the_transcription_are_back(printed):
    # As the second edition prints them.
    assert printed["table6_neusight", "H100, training", "survey"] == "6.60"
    assert printed["table6_neusight", "P4, inference", "survey"] == "27.10"
    assert printed["table6_neusight", "MI210, inference", "survey"] == "8.40"
    assert printed["table8_vidur", "Avg TPOT", "sarathi"] == "0.0090"
    row = ("table7_astrasim", "All-Reduce, 8 NPUs 1 MB", "ratio to all-reduce")
    assert printed[row] == "1.000"
    assert printed["table4_accuracy", "NeuSight", "survey result"] == "5.87–27.1%"


def test_serving_runs(runs):
    # Means and P99 of the real request tables, computed with another library.
    assert runs["vllm", "E2E latency", "mean"] == pytest.approx(0.17669385244036065, rel=1e-11)
    assert runs["sarathi", "E2E latency", "mean"] == pytest.approx(0.15752800014337384, rel=1e-11)
    assert runs["vllm", "P99 E2E latency", "linear"] == pytest.approx(0.31355390553819745)
    assert runs["sarathi", "P99 E2E latency", "linear"] == pytest.approx(0.2619254348585689)
    assert runs["vllm", "requests with preemption time above 0", "count"] == 53
    assert runs["vllm", "requests restarted", "count"] == 0


def test_the_published_difference_is_mostly_one_of_load(runs):
    same = runs["vllm, its first 50 requests", "requests as long as those of sarathi", "count"]
    assert same == 50
    first = runs["vllm, its first 50 requests", "E2E latency", "mean"]
    assert 1 - runs["sarathi", "E2E latency", "mean"] / first == pytest.approx(0.01996, abs=1e-5)


@pytest.mark.slow
def test_collectives_by_hand(runs, found):
    assert runs["microbench_all_reduce_8npus_1MB", "wall time", "mean"] == 57426
    eight, four = (f"resnet50_hgx_h100_{n}gpu_{n}npus" for n in (8, 4))
    for run in (four, eight):
        exposed = runs[run, "exposed communication", "mean"]
        assert runs[run, "wall time", "mean"] == exposed + runs[run, "compute time", "mean"]
    ring = Fraction(2 * 7, 8) / Fraction(2 * 3, 4)
    cell = found.cell("table7_astrasim", "ring formula 2(N-1)/N, 4 to 8", "ratio")
    assert cell.recomputed == pytest.approx(float(ring))
    assert cell.status == "reproduced"


def test_the_layer_by_hand(found):
    # ResNet-50's first convolution: 7x7 kernels over 3 channels into 64, output 112x112.
    macs = math.prod((7, 7, 3, 64, 112, 112))
    assert macs == 118013952
    assert macs / 168 == 702464
    assert macs * 5500e-9 == pytest.approx(649.08, abs=0.005)
    for row in ("MACs", "ideal cycles", "total energy"):
        assert found.cell("timeloop_resnet50_conv1", row, "value").status == "reproduced"


def test_shares_are_those_of_the_example_that_ships_with_timeloop(runs):
    run = "eyeriss_like, reference output of the example"
    total = runs[run, "energy per MAC", "Total"]
    shares = [
        100 * runs[run, "energy per MAC", part] / total for part in ("DRAM", "weights_spad", "mac")
    ]
    assert [round(share, 1) for share in shares] == [61.8, 18.4, 3.8]
    # Another layer: 32 kernels of 3x3 over 3 channels, output 112x112.
    assert runs[run, "MACs", "total"] == math.prod((3, 3, 3, 32, 112, 112))


def test_coverage_by_hand(found):
    # NeuSight 5S 3P, ASTRA-sim 7S 4P, VIDUR 6S 3P of 36.
    for tool, value in (("neusight", 6.5 / 36), ("astrasim", 9 / 36), ("vidur", 7.5 / 36)):
        cell = found.cell("table9_totals", "coverage, % weighted", tool)
        assert cell.recomputed == pytest.approx(value)
    # Full support: T1 3, T2 2, T3 2, I1 5, I2 3, I3 1; with partial support 22 at least.
    union = found.cell("table9_totals", "union of all tools, scenarios", "suite")
    assert union.recomputed == 16
    assert "22 to 24" in union.note
