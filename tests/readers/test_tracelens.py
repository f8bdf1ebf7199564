"""Reader of the tables of TraceLens reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import tracelens

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
GOOD = sorted(FIXTURES.glob("tracelens-*/good/*.csv"))


def rows(kind: str, scenario: str = "good") -> pl.DataFrame:
    return ingest(FIXTURES / f"tracelens-{kind}" / scenario, among=tracelens.FORMATS).rows


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.parents[1].name)
def test_each_table_is_recognised_by_its_header(path: Path, tmp_path: Path) -> None:
    moved = tmp_path / "table.txt"
    shutil.copy(path, moved)
    assert [one.name for one in recognise(Source(moved))] == [path.parents[1].name]


def test_every_format_has_a_fixture() -> None:
    assert {path.parents[1].name for path in GOOD} == {one.name for one in tracelens.FORMATS}


def test_timeline() -> None:
    found = rows("gpu-timeline").select("level", "quantity", "unit", "measured", "run").rows()
    assert ("model", "time", "ms", 10.0, "trace") in found
    assert ("system", "exposed communication", "ms", 1.5, "trace") in found
    assert ("system", "communication time", "ms", 2.5, "trace") in found
    assert ("system", "busy time", "ms", 8.0, "trace") in found
    assert ("system", "memcpy time", "ms", 0.75, "trace") in found
    assert len(found) == 8


def test_timeline_of_several_gpus() -> None:
    found = rows("gpu-timeline", "several_gpus").select("run", "quantity", "measured").rows()
    assert found == [
        ("gpu 8", "computation time", 3.0),
        ("gpu 8", "micro idle time", 1.0),
        ("gpu 8", "time", 4.0),
        ("gpu 1", "time", 5.0),
    ]


def test_kernels_with_the_time_of_their_run() -> None:
    found = rows("kernel-summary")
    kernels = found.filter(pl.col("level") == "kernel")
    columns = ("kernel_class", "op", "stream", "count", "measured", "unit", "run")
    assert kernels.select(columns).rows() == [
        ("gemm", "aten::mm", "7", 4, 15.0, "us", "trace"),
        ("elementwise", "aten::add", "7", 3, 5.0, "us", "trace"),
        ("softmax", None, "20", 1, 5.0, "us", "trace"),
    ]
    assert found.filter(pl.col("level") == "model")["measured"].to_list() == [100.0]
    totals = tracelens.read(FIXTURES / "tracelens-kernel-summary" / "good").kernels.totals()
    assert totals.measured.tolist() == [80.0]
    assert totals.run_measured.tolist() == [100.0]


def test_kernels_that_do_not_fit_in_the_run_are_one_of_their_own() -> None:
    found = ingest(FIXTURES / "tracelens-kernel-summary" / "outside_operators")
    kernels = found.rows.filter(pl.col("level") == "kernel")
    assert kernels.select("run", "measured", "count").rows() == [
        ("trace", 20.0, 4),
        ("without an operator", 20.0, 2),
    ]
    assert "120 %" in found.notes[1]


def test_operators() -> None:
    found = rows("ops-summary").select("kernel", "kernel_class", "op_category", "count", "measured")
    assert found.rows() == [
        ("aten::mm", "gemm", "['GEMM']", 4, 15.0),
        ("aten::add", "elementwise", "['elementwise']", 3, 5.0),
    ]


def test_no_number_and_no_count_are_no_times() -> None:
    found = rows("ops-summary", "nan_text").select("kernel", "measured", "count", "status").rows()
    assert found == [
        ("aten::mm", None, 4, "no value"),
        ("aten::add", None, None, "no value"),
        ("aten::mul", 400.0, 3, None),
    ]


def test_operators_by_arguments() -> None:
    found = rows("ops-unique-args").select("kernel", "shape", "input_types", "count", "measured")
    assert found.rows() == [
        ("aten::mm", "((2, 4), (4, 8))", "('float', 'float')", 3, 15.0),
        ("aten::mm", "((2, 8), (8, 8))", "('float', 'float')", 1, 15.0),
    ]


def test_operators_with_parameters() -> None:
    found = rows("op-metrics")
    keys = ("kernel", "param_m", "param_n", "param_k", "param_bias", "gflops", "count", "measured")
    assert found.select(keys).rows() == [
        ("aten::mm", "2", "8", "4", "False", "1.28e-07", 3, 15.0),
        ("aten::addmm", "2", "8", "8", "True", "2.56e-07", 1, 20.5),
    ]
    unified = rows("op-metrics", "unified").select("kernel", "op_category", "count", "measured")
    assert unified.rows() == [("aten::sort", "other", 2, 7.5)]


def test_calls_of_operators() -> None:
    found = rows("ops").select("kernel", "shape", "count", "measured").rows()
    assert found == [
        ("loop_add_fusion", "((1, 2),)", 1, 6.5),
        ("input_reduce_fusion", "((1, 4),)", 1, 40.0),
    ]


def test_collectives() -> None:
    columns = ("collective", "size_bytes", "ranks", "rank", "count", "measured", "unit")
    assert rows("collectives").select(columns).rows() == [
        ("allreduce", 4 << 20, 2, 0, 2, 100.0, "us"),
        ("broadcast", None, 2, 0, 1, 11.5, "us"),
    ]
    synced = rows("collectives-synced")
    assert set(synced["level"]) == {"collective"}
    assert synced.select("quantity", "measured", "unit", "size_bytes", "count").rows() == [
        ("time", 100.0, "us", 4 << 20, 2),
        ("bus bandwidth", 40.0, "GB/s", 4 << 20, 2),
        ("algorithm bandwidth", 40.0, "GB/s", 4 << 20, 2),
    ]


@pytest.mark.parametrize("kind", ["categories", "short-kernels"])
def test_sums_are_refused(kind: str) -> None:
    with pytest.raises(InputError, match=r"errcomp does not read\. The file holds .* Give "):
        rows(kind)


def test_fields_of_any_length(tmp_path: Path) -> None:
    header, first, *_ = (
        (GOOD[0].parents[2] / "tracelens-ops-unique-args/good")
        .joinpath("ops_unique_args.csv")
        .read_text()
        .splitlines()
    )
    path = tmp_path / "ops_unique_args.csv"
    long = first.replace("'stream': 7", "'stream': 7, " * 20_000)
    path.write_text(f"{header}\n{long}\n")
    found = tracelens.read(path).rows
    assert found.select("kernel", "shape", "count", "measured").rows() == [
        ("aten::mm", "((2, 4), (4, 8))", 3, 15.0)
    ]
    # A column of numbers is read as it is written, whatever its length.
    path.write_text(f"{header}\n{long.replace('aten::mm', '007')}\n")
    assert tracelens.read(path).rows["kernel"].to_list() == ["007"]
    path.write_text(f"{header}\n{long}\n1,2,3,{'x,' * 50}\n")
    with pytest.raises(InputError, match="not valid CSV"):
        tracelens.read(path)
    path.write_text(header + "\n" * 200_000)
    with pytest.raises(InputError, match="a header without rows"):
        tracelens.read(path)


def test_text_where_a_number_belongs(tmp_path: Path) -> None:
    path = tmp_path / "ops_summary.csv"
    path.write_text("name,total_direct_kernel_time_sum,Count\naten::mm,fast,4\n")
    with pytest.raises(InputError, match="total_direct_kernel_time_sum must be a number, got 'fa"):
        tracelens.read(path)


@pytest.mark.shared
def test_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "tracelens")
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    assert len(found.rows) == 170

    def of(file: str) -> pl.DataFrame:
        return tracelens.read(shared_data / "tools" / file).rows

    # The time of the run is the same in the table where it is worked out.
    for device, time in (("h100", 34.8924189453125), ("mi300", 33.13133349609375)):
        timeline = of(f"tracelens/{device}_qwen.gpu_timeline.csv")
        kernels = of(f"tracelens/{device}_qwen.kernel_summary.csv")
        whole = pl.col("level") == "model"
        assert timeline.filter(whole)["measured"].to_list() == [time]
        assert kernels.filter(whole)["measured"].to_list() == pytest.approx([time * 1e3])
        # The operators' times add up to the time in which the GPU is busy.
        busy = timeline.filter(pl.col("quantity") == "busy time")["measured"].item()
        operators = of(f"tracelens/{device}_qwen.ops_summary.csv")
        total = (operators["measured"] * operators["count"]).sum()
        assert total == pytest.approx(busy * 1e3)
    collectives = of("tracelens/coll_analysis.csv")
    assert collectives["size_bytes"].to_list()[0] == 8921600 * 4
    total = (collectives["measured"] * collectives["count"]).sum()
    assert total == pytest.approx(1285513.172)


@pytest.mark.shared
def test_samples_of_jax(shared_data: Path) -> None:
    kinds = {
        "df_xla_perf": ("tracelens-ops", 15),
        "gpu_events_averages": ("tracelens-gpu-timeline", 8),
        "gpu_timeline": ("tracelens-gpu-timeline", 16),
        "kernel_launchers_summary": ("tracelens-ops-summary", 5),
        "op_conv": ("tracelens-op-metrics", 2),
        "xla_summary": ("tracelens-ops-summary", 3),
    }
    for name, (kind, n) in kinds.items():
        path = shared_data / "tools" / "jax" / f"tracelens_mi300_jax_conv.{name}.csv"
        assert [one.name for one in recognise(Source(path))] == [kind]
        assert len(tracelens.read(path).rows) == n
    launchers = tracelens.read(path.with_name(path.name.replace("xla", "kernel_launchers")))
    total = (launchers.rows["measured"] * launchers.rows["count"]).sum()
    assert total == pytest.approx(3586.493)


def test_differences_are_kernels_of_two_traces() -> None:
    found = tracelens.read(FIXTURES / "tracelens-diff" / "good")
    assert found.formats == ("tracelens-diff",)
    assert found.rows.select("run", "kernel", "op", "measured", "unit", "count").rows() == [
        ("trace1", "Cijk_MT16x16", "aten::mm", 3.5, "us", 1),
        ("trace2", "void gemm_nt<float>(float*)", "aten::mm", 2.25, "us", 1),
        ("trace2", "void copy<4>(char*)", "aten::copy_", 1.125, "us", 1),
    ]
    assert found.rows["shape"].to_list()[0] == "((64, 32), (32, 16))"
