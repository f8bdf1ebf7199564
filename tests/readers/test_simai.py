"""SimAI: three tables in one file, bandwidths that are none, and inputs that are refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.collectives import simai
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source

FOLDER = Path(__file__).parents[1] / "data" / "readers" / "simai-end-to-end"


def values(rows: pl.DataFrame, **keys: str) -> list[tuple[object, ...]]:
    rows = rows.filter(*(pl.col(name) == value for name, value in keys.items()))
    return rows.select("quantity", "unit", "predicted").rows()


def test_the_iteration() -> None:
    found = simai.read(FOLDER / "good")
    whole = found.of(level="system").rows
    assert values(whole.filter(pl.col("group").is_null())) == [
        ("time", "us", 340.0),
        ("compute time", "us", 300.0),
        ("exposed communication", "us", 40.0),
        ("bubble time", "us", 0.0),
    ]
    groups = whole.filter(pl.col("group").is_not_null()).select("group", "predicted").rows()
    assert dict(groups) == {"DP": 0.0, "DP_EP": 0.0, "TP": 40.0, "EP": 0.0, "PP": 0.0}
    assert found.rows["run"].unique().to_list() == ["run1"]
    assert not found.notes


def test_the_layers() -> None:
    rows = simai.read(FOLDER / "good").rows
    layer = rows.filter(pl.col("layer") == 0)
    assert values(layer, level="kernel", phase="fwd") == [
        ("time", "us", 100.0),
        ("exposed communication", "us", 30.0),
    ]
    assert values(layer, level="collective", phase="fwd") == [
        ("time", "us", 35.0),
        ("algorithm bandwidth", "GB/s", 110.5),
        ("bus bandwidth", "GB/s", 193.25),
    ]
    # "-nan" and "NaN or Inf" stand for no bandwidth.
    assert values(layer, level="collective", phase="wg") == []
    assert values(layer, level="collective", phase="ig") == [
        ("time", "us", 12.0),
        ("algorithm bandwidth", "GB/s", None),
        ("bus bandwidth", "GB/s", 80.5),
    ]
    assert rows.filter(pl.col("layer") == 1)["level"].unique().to_list() == ["kernel"]
    assert rows["kernel"].drop_nulls().unique().sort().to_list() == ["attention", "mlp"]


def test_a_pipeline_is_in_the_summary_only() -> None:
    found = simai.read(FOLDER / "pipeline").of(level="system").rows
    assert values(found.filter(pl.col("group").is_null()))[0] == ("time", "us", 400.0)
    assert values(found, quantity="bubble time") == [("bubble time", "us", 35.0)]


def test_reports_in_parts() -> None:
    cut = simai.read(FOLDER / "cut_off")
    assert cut.notes == ("The line of totals is missing: the report may be incomplete.",)
    assert values(cut.of(level="system").rows)[0] == ("time", "us", 340.0)
    layers = simai.read(FOLDER / "layers_only")
    assert values(layers.of(level="system").rows) == [
        ("time", "us", 340.0),
        ("compute time", "us", 300.0),
        ("exposed communication", "us", 40.0),
    ]
    other = simai.read(FOLDER / "other_total")
    assert "sum to 300 µs, but the report's total is 333 µs" in other.notes[0]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("nic_ratio.csv", "simai-ratios"),
        ("busbw.yaml", "simai-bandwidths"),
        ("workload.txt", "simai-workload"),
    ],
)
def test_inputs_are_refused(file: str, name: str) -> None:
    path = FOLDER / "refused" / file
    assert [one.name for one in recognise(Source(path), simai.FORMATS)] == [name]
    with pytest.raises(InputError, match="n input of the simulation"):
        simai.read(path)


HEADER = "File name, Expose DP comm, total comp, total exposed comm, Total time\n"
LAYERS = "layer_name,r,fwd compute,fwd exposed comm\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "line 1: no values below the summary's header"),
        (HEADER + "r, 1, 2\n", "line 2: 3 values, but the summary's header has 5 names"),
        (HEADER + "r, 1, 2, x, 4\n", "line 2: total exposed comm must be a time, got 'x'"),
        (LAYERS + "a,r,1,y\n", "fwd exposed comm must be a number, got 'y' in line 2"),
        (LAYERS + "a,r,1\n", "line 2: 3 fields, but the header has 4"),
        (LAYERS, "no predicted or measured value"),
        (LAYERS + "a,r,1,2\ntotal exposed comm,x\n", "line 3: expected total time, total comp"),
        (
            "layer_name,r,fwd compute x,fwd exposed comm x\na,r,1,2\n",
            "line 1: the table of layers has no column with times",
        ),
        (
            2 * (LAYERS + "a,r,1,2\ntotal exposed comm,2,total comp,1,total time,3\n"),
            "line 4: a se",
        ),
    ],
)
def test_damaged_reports(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "EndToEnd.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        simai.read(path)


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "simai")
    skipped = {one.name: one.reason for one in found.skipped}
    assert set(skipped) == {
        "SOURCE.md",
        "ata_ratio.csv",
        "nic_ratio.csv",
        "nvlink_ratio.csv",
        "busbw.yaml",
        "microAllReduce.txt",
        "workload_analytical.first60lines.txt",
    }
    assert all("n input of" in reason for name, reason in skipped.items() if name[-2:] != "md")
    assert len(found.rows) == 27
    assert values(found.of(level="system").rows)[:3] == [
        ("time", "us", 1688.03),
        ("compute time", "us", 1112.004),
        ("exposed communication", "us", 576.026),
    ]
    kernels = found.of(level="kernel", quantity="exposed communication").rows["predicted"]
    assert kernels.sum() == pytest.approx(576.02)
    assert not found.notes
