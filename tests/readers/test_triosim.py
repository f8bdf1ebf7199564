"""TrioSim: the trace that it takes and the lines that it prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.triosim import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
TRACE = FIXTURES / "triosim-trace" / "good"
LOG = FIXTURES / "triosim-log"


def test_a_trace_with_the_shapes_of_its_tensors() -> None:
    found = ingest(TRACE)
    rows = found.rows.filter(quantity="time")
    columns = ("layer", "kernel", "kernel_class", "stage", "measured", "unit", "shape", "rank")
    assert rows.select(columns).rows() == [
        (1, "aten::conv2d", "conv2d", "forward", 270.0, "us", "2x3x16x16;64x3x3x3", 0),
        (2, "aten::relu_", "relu_", "forward", 108.0, "us", "scalar", 0),
        # Its tensor is not in the table.
        (3, "aten::relu_", "relu_", "backward", 90.0, "us", None, 0),
    ]
    other = found.rows.filter(quantity="time without overlap")["measured"]
    assert other.to_list() == [267.0, 108.0, 80.0]
    assert found.skipped == ()


@pytest.mark.parametrize("name", ["trace.csv", "other.csv"])
def test_a_trace_alone(tmp_path: Path, name: str) -> None:
    shutil.copy(TRACE / "trace.csv", tmp_path / name)
    found = read(tmp_path)
    assert found.rows.height == 6
    assert "shape" not in found.rows.columns


def test_a_trace_without_what_is_not_essential(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("OperatorID,OperatorName,Operator_cudatime\n1,aten::mm,n/a\n")
    path.with_name("tensor.csv").write_text("TensorID,TensorShape,TensorEachByte\n1,[],4\n")
    assert read(path).rows["status"].to_list() == ["no value"]


def test_what_it_prints() -> None:
    rows = read(LOG / "good").rows
    kernels = rows.filter(level="kernel")
    assert kernels.select("rank", "layer", "start").rows() == [(0, 0, 0.001), (1, 0, 0.003)]
    assert kernels["predicted"].to_list() == pytest.approx([0.002, 0.0025])
    assert set(kernels["unit"]) == {"s"}
    whole = rows.filter(level="model")
    assert whole.select("phase", "predicted", "unit").rows() == [
        ("Current time after Data parallesim execution", 5.6, "ms")
    ]


def test_a_run_that_was_killed() -> None:
    found = read(LOG / "killed")
    assert found.rows.filter(layer=1)["status"].to_list() == ["did not finish"]
    whole = found.rows.filter(level="model")["status"].to_list()
    assert whole == ["did not finish: no line with the total time"]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (1, "layers that end without a start")
    ]


def test_a_time_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("Estimated execution time ms, 1.2.3\n")
    with pytest.raises(InputError, match=r"line 1: '1\.2\.3' is not a time"):
        read(path)


def test_both_phases_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "Estimated execution time ms, 1.5\nCurrent time after AllReduce stage ms, 2.5\n"
        "Current time after HOP test ms,, 3.5\n"
    )
    assert read(path).rows["predicted"].to_list() == [1.5, 2.5, 3.5]


def test_other_files_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in ("OperatorID,OperatorName\n1,a\n", "0.5, gpu 1\n", "TensorID,x\n1,2\n"):
        path.write_text(content)
        assert recognise(Source(path), FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "triosim"
    found = read(folder / "vgg13_h100_bs128.trace.csv")
    rows = found.rows.filter(quantity="time")
    assert rows.height == 77
    assert rows.row(0, named=True)["measured"] == 2673.0
    assert rows["shape"][0] == "128x3x224x224;64x3x3x3;64"
    assert rows["shape"].null_count() == 0
    assert read(folder / "resnet50_h100_bs128.trace.csv").rows.height == 2 * 396
    for path in folder.glob("*.csv"):
        assert len(recognise(Source(path))) == 1
