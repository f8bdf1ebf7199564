"""Reports of SCALE-Sim in its versions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.scale_sim import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "data" / "readers"


FIRST_ACCESSES = next(one for one in FORMATS if one.name == "scale-sim-first-accesses")


def good(name: str) -> Path:
    return FIXTURES / name / "good"


def test_cycles_of_version_2() -> None:
    rows = read(good("scale-sim-compute")).rows
    columns = ("kernel", "layer", "quantity", "predicted", "unit")
    assert rows.select(columns).rows() == [
        ("layer 0", 0, "time", 2000.0, "cycles"),
        ("layer 0", 0, "stall", 0.0, "cycles"),
        ("layer 1", 1, "time", 3000.0, "cycles"),
        ("layer 1", 1, "stall", 120.0, "cycles"),
    ]
    assert rows["compute_util"].to_list() == [90.75, 90.75, 60.75, 60.75]


def test_cycles_of_version_3() -> None:
    found = ingest(FIXTURES / "scale-sim-compute" / "version3")
    assert dict(found.rows.select("quantity", "predicted").rows()) == {
        "time": 2000.0,
        "time with prefetch": 2200.0,
        "stall": 1500.0,
    }
    reasons = {one.name: one.reason for one in found.skipped}
    assert "sizes of filters" in reasons["SPARSE_REPORT.csv"]
    assert "describes the layers" in reasons["net.csv"]


def test_a_report_read_as_another_says_what_it_lacks() -> None:
    with pytest.raises(InputError, match=r"net_cycles.csv: no column of accesses \(DRAM_IFMAP"):
        FIRST_ACCESSES.read(Source(good("scale-sim-cycles") / "net_cycles.csv"))
    (bandwidths,) = good("scale-sim-bandwidth").iterdir()
    accesses = next(one for one in FORMATS if one.name == "scale-sim-accesses")
    with pytest.raises(InputError, match=r"no column of accesses \(SRAM IFMAP Reads, …\)"):
        accesses.read(Source(bandwidths))


def test_cycles_of_version_1() -> None:
    rows = read(good("scale-sim-cycles")).rows
    assert rows.select("kernel", "predicted", "overall_util").rows() == [
        ("Conv1", 2000.0, 45.5),
        ("FC", 300.0, 99.5),
    ]


def test_bandwidths_of_version_1(tmp_path: Path) -> None:
    path = good("scale-sim-first-bandwidth") / "net_avg_bw.csv"
    rows = read(path).rows.filter(kernel="FC")
    assert rows.select("memory", "operation", "statistic", "predicted", "unit").rows() == [
        ("DRAM IFMAP", "read", "mean", 0.25, "bytes/cycle"),
        ("DRAM Filter", "read", "mean", 8.0, "bytes/cycle"),
        ("DRAM OFMAP", "write", "mean", 0.125, "bytes/cycle"),
        ("SRAM", "read", "mean", 30.5, "bytes/cycle"),
        ("SRAM OFMAP", "write", "mean", 1.0, "bytes/cycle"),
    ]
    other = tmp_path / "net_max_bw.csv"
    text = path.read_text().replace("\tDRAM", "\tMax DRAM").replace("\tSRAM", "\tMax SRAM")
    other.write_text(text.replace("Conv Layer Num", "Layer"))
    highest = read(other).rows
    assert set(highest["statistic"]) == {"max"}
    assert highest["memory"].to_list() == read(path).rows["memory"].to_list()


def test_accesses_of_version_1() -> None:
    rows = read(good("scale-sim-first-accesses")).rows
    assert rows.select("memory", "operation", "predicted", "unit", "start", "stop").rows() == [
        ("DRAM IFMAP", "read", 4096.0, "bytes", -100, 900),
        ("DRAM Filter", "read", 2048.0, "bytes", -50, 800),
        ("DRAM OFMAP", "write", 1024.0, "bytes", 10, 1000),
        ("SRAM", "read", 65536.0, "bytes", 0, 990),
        ("SRAM", "write", 16384.0, "bytes", 5, 1000),
    ]


def test_bandwidth_and_accesses_by_memory() -> None:
    rows = read(good("scale-sim-bandwidth")).rows
    assert rows.select("memory", "predicted", "unit").rows()[1] == (
        "FILTER SRAM",
        0.25,
        "words/cycle",
    )
    assert rows.height == 6
    rows = read(good("scale-sim-accesses")).rows
    columns = ("memory", "operation", "predicted", "start", "stop")
    assert rows.select(columns).rows() == [
        ("SRAM IFMAP", "read", 3294.0, 33, 1176),
        ("SRAM Filter", "read", 348.0, 1, 1097),
        # Prefetched before the start.
        ("DRAM IFMAP", "read", 1805.0, -3243, 1824),
        ("DRAM Filter", "read", 349.0, -3275, 1937),
        ("SRAM OFMAP", "write", 3484.0, 63, 1283),
        ("DRAM OFMAP", "write", 3485.0, 1102, 1639),
    ]


def test_times_are_times_only_with_a_time_model(tmp_path: Path) -> None:
    rows = read(good("scale-sim-time")).rows
    assert rows.select("predicted", "unit").rows() == [(12.5, "us"), (30.25, "us")]
    folder = FIXTURES / "scale-sim-time" / "no_model"
    found = read(folder / "TIME_REPORT.csv")
    assert found.rows.select("predicted", "unit").rows() == [(2000.0, "cycles"), (3000.0, "cycles")]
    assert "no time model" in found.notes[0]
    # Other cycles beside it: those are times.
    shutil.copy(good("scale-sim-time") / "TIME_REPORT.csv", tmp_path)
    shutil.copy(folder / "COMPUTE_REPORT.csv", tmp_path)
    assert set(read(tmp_path / "TIME_REPORT.csv").rows["unit"]) == {"us"}


def test_operators_and_their_total() -> None:
    found = read(good("scale-sim-operators"))
    rows = found.rows.filter(quantity="time")
    assert rows.select("level", "kernel_class", "predicted", "status").rows() == [
        ("kernel", "dot_general", 10.5, None),
        ("kernel", "reshape", None, "no value"),
        ("kernel", "add", 3.5, None),
        ("model", None, 14.0, None),
    ]
    assert set(rows["run"]) == {"model"}
    # N/A: what is no layer of the accelerator.
    assert rows["layer"].to_list() == [0, None, None, None]


def test_only_a_total_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "TIME_REPORT.csv"
    path.write_text("OpID,time_us,layer\nTOTAL,14.0,\n")
    with pytest.raises(InputError, match="no operators"):
        read(path)
    path.write_text("OpID,time_us,layer\n0,14.0,0\n")
    assert read(path).rows.height == 1


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "COMPUTE_REPORT.csv"
    path.write_text("LayerID, Total Cycles, Stall Cycles,\n0, 12, 3,\n1, 1\n")
    with pytest.raises(InputError, match="line 3: 2 fields, but the header has 4"):
        read(path)
    path.write_text("LayerID, Total Cycles, Stall Cycles,\n0, many, 3,\n")
    with pytest.raises(InputError, match="Total Cycles must be a number, got 'many'"):
        read(path)


def test_other_tables_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for header in ("LayerID,Cycles", "Layer,Cycles", "OpID,time", "LayerID,Time (us),x"):
        path.write_text(header + "\n1,2,3\n")
        assert recognise(Source(path), FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "scale-sim")
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    assert found.rows.height == 2 + 6 + 6
    values = dict(found.rows.filter(quantity="accesses").select("memory", "predicted").rows())
    assert values["SRAM IFMAP"] == 3294225.0
    cycles = found.rows.filter(quantity="time")["predicted"][0]
    assert cycles == 112283.0
    # The report gives the same reads as words per cycle.
    rates = dict(found.rows.filter(quantity="bandwidth").select("memory", "predicted").rows())
    assert rates["IFMAP SRAM"] * cycles == pytest.approx(values["SRAM IFMAP"])
