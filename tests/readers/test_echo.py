"""Echo: durations under overlap of two predictors, checked against the authors' own metrics."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.serving import echo

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
GOOD = FIXTURES / "echo-overlap" / "good"
TABLE = "slowdown_output_df_merged_features.csv"
FULL = "slowdown_output_full_df_merged_features.csv"


def names(path: Path) -> list[str]:
    return [one.name for one in recognise(Source(path), echo.FORMATS)]


def test_both_predictors_have_the_same_measurement() -> None:
    found = echo.read(GOOD)
    time = found.of(quantity="time").rows
    keys = ("tool", "predicted", "measured", "unit", "kernel", "kernel_id", "overlap_ratio")
    assert time.select(keys).rows() == [
        ("Echo", 1100.0, 1050.0, "ns", "gemm", 11, 0.5),
        ("Echo's constant slowdown", 1150.0, 1050.0, "ns", "gemm", 11, 0.5),
        ("Echo", 300.0, 190.0, "ns", "relu", 12, 1.0),
        ("Echo's constant slowdown", 260.0, 190.0, "ns", "relu", 12, 1.0),
    ]
    assert time["duration_alone_ns"].to_list() == [1000, 1000, 200, 200]
    assert found.of(quantity="time").pairs.n == 4


def test_a_slowdown_below_zero_is_none() -> None:
    rows = echo.read(GOOD).of(quantity="slowdown").rows
    assert rows.select("tool", "predicted", "measured", "status", "unit").rows() == [
        ("Echo", 0.2, 0.1, None, "ratio"),
        ("Echo", 0.5, None, "negative", "ratio"),
    ]


def test_the_authors_metrics_are_checked() -> None:
    found = ingest(GOOD)
    assert any("slowdown_output_metrics.txt agree with these kernels" in n for n in found.notes)
    other = echo.read(FIXTURES / "echo-overlap/other_metrics")
    assert other.notes[-1] == (
        "slowdown_output_metrics.txt states different metrics for these kernels: sum of "
        "calculated, "
        "Our 0.05 error."
    )


def test_metrics_that_are_none_are_not_compared(tmp_path: Path) -> None:
    shutil.copy(GOOD / TABLE, tmp_path)
    metrics = tmp_path / "slowdown_output_metrics.txt"
    metrics.write_text("something else")
    assert len(echo.read(tmp_path / TABLE).notes) == 2
    metrics.write_bytes(
        b"Our MAE of slowdown 1\nBaseline MAE of slowdown 2\nOur 0.1 error: 1e5e\n\xff"
    )
    assert len(echo.read(tmp_path / TABLE).notes) == 2
    metrics.write_text("Our MAE of slowdown 1\nBaseline MAE of slowdown 2\nOur 0.1 error: 1e5e\n")
    assert "Our 0.1 error" in echo.read(tmp_path / TABLE).notes[-1]


def test_the_table_with_features_counts_once() -> None:
    assert names(GOOD / TABLE) == ["echo-overlap"]
    assert names(GOOD / FULL) == ["echo-overlap-features"]
    assert names(GOOD / "slowdown_output_metrics.txt") == ["echo-metrics"]
    found = ingest(GOOD)
    assert found.files == (TABLE,)
    alone = FIXTURES / "echo-overlap/full_alone" / FULL
    assert names(alone) == ["echo-overlap"]
    rows = echo.read(alone).rows
    assert rows["kernel"].to_list() == echo.read(GOOD / TABLE).rows["kernel"].to_list()


def test_a_table_without_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("calculated duration with overlap,ground truth duration with overlap\n2,1\n")
    found = echo.read(path)
    assert found.rows["tool"].to_list() == ["Echo"]


def test_training_data_are_measurements() -> None:
    rows = echo.read(FIXTURES / "echo-features/good").rows
    assert rows.select("quantity", "measured", "unit", "kernel").rows() == [
        ("time", 1050.0, "ns", "gemm"),
        ("time without overlap", 1000.0, "ns", "gemm"),
        ("slowdown", 0.1, "ratio", "gemm"),
    ]


def test_throughputs_are_no_times() -> None:
    path = FIXTURES / "echo-overlap/refused/kernel_metric_output.csv"
    assert names(path) == ["echo-kernel-metrics"]
    with pytest.raises(InputError, match="no times"):
        echo.read(path)


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "echo"
    found = ingest(folder)
    assert {one.name for one in found.skipped} == {"SOURCE.md", "kernel_metric_output.csv"}
    time = found.of(quantity="time").rows
    assert len(time) == 2 * 404
    # What the authors state: sums, and shares within 5, 10 and 15 %.
    assert any("agree with these kernels" in note for note in found.notes)
    sums = dict(time.group_by("tool").agg(pl.col("predicted").sum()).rows())
    assert sums["Echo"] == pytest.approx(128818133.05879396)
    assert sums["Echo's constant slowdown"] == pytest.approx(148867994.16274637)
    assert time.filter(pl.col("tool") == "Echo")["measured"].sum() == 141596797
