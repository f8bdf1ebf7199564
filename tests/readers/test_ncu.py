"""Reader of Nsight Compute."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import ncu

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
DETAILS, RAW, TEXT = (FIXTURES / f"ncu-{kind}" for kind in ("details", "raw", "text"))
HEADER = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
COLUMNS = ("kernel", "measured", "unit", "cycles", "clock_hz")


def formats_of(path: Path) -> list[str]:
    return [one.name for one in recognise(Source(path))]


def written(folder: Path, text: str) -> Path:
    path = folder / "profile.csv"
    path.write_text(text)
    return path


def test_details_say_the_unit_of_each_metric() -> None:
    found = ncu.read(DETAILS / "good")
    assert found.formats == ("ncu-details",)
    assert found.files == ("details.csv",)
    assert found.skipped == ()
    assert found.rows.select(*COLUMNS).rows() == [
        ("gemm(const float *, int)", 20.0, "us", 25000.0, 1.25e9),
        ("add", 1205.5, "ms", None, None),
        ("add", None, "ns", None, None),
        ("add", 3000.0, "cycles", 3000.0, None),
    ]
    assert found.rows["status"].to_list() == [None, None, "no duration was collected", None]
    assert found.rows.select("launch", "process", "stream", "grid", "block").row(0) == (
        "0",
        "77",
        "7",
        "64x2x1",
        "128x1x1",
    )


def test_the_session_beside_it_says_more(tmp_path: Path) -> None:
    found = ncu.read(DETAILS / "good")
    assert set(found.rows["device"]) == {"Example GPU"}
    assert found.notes[1] == "The clock was not locked (--clock-control none)."
    alone = tmp_path / "details.csv"
    shutil.copy(DETAILS / "good" / "details.csv", alone)
    assert "device" not in ncu.read(alone).rows.columns
    assert len(ncu.read(alone).notes) == 1
    session = tmp_path / "session.csv"
    session.write_text('"display_name","A","B"\n')
    assert "device" not in ncu.read(alone).rows.columns
    session.write_text("")
    assert "device" not in ncu.read(alone).rows.columns
    with pytest.raises(InputError, match="is read together with ncu --csv"):
        ncu.read(DETAILS / "good" / "session.csv")


def test_what_was_printed_before_between_and_after() -> None:
    found = ncu.read(DETAILS / "printed" / "ncu.log")
    assert found.rows.select("process", "launch", "measured", "unit").rows() == [
        ("77", "0", 406240.0, "ns"),
        ("77", "1", 406000.0, "ns"),
        ("78", "0", 406.5, "us"),
    ]
    assert [(one.n, one.reason) for one in found.dropped] == [(2, "lines outside the table")]


def test_a_long_output_of_the_program_before(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "==PROF== Connected\n"
        + "step done\n" * 9000
        + HEADER
        + '"0","1","k","Duration","us","2"\n',
    )
    assert formats_of(path) == ["ncu-details"]
    assert ncu.read(path).rows["measured"].to_list() == [2.0]
    path.write_text("==PROF== Connected\n" + "step done\n" * 9000)
    assert formats_of(path) == []
    path.write_bytes(b"==PROF== Connected\n" + b"step\xff done\n" * 9000)
    assert formats_of(path) == []


def test_raw_has_units_in_its_second_line() -> None:
    found = ncu.read(RAW / "good" / "raw.csv")
    assert found.formats == ("ncu-raw",)
    assert found.rows.select(*COLUMNS).rows() == [
        ("gemm(const float *, int)", 20.25, "us", 25000.0, 1.25e9),
        ("add", 2.5, "us", 3000.0, 1.25e9),
    ]
    assert set(found.rows["device"]) == {"Example GPU"}
    assert found.rows["stream"].to_list() == ["7", "13"]


def test_raw_files_one_below_the_other(tmp_path: Path) -> None:
    text = (RAW / "good" / "raw.csv").read_text()
    path = written(tmp_path, text + text.replace("usecond", "nsecond"))
    assert ncu.read(path).rows["unit"].to_list() == ["us", "us", "ns", "ns"]


def test_raw_without_a_name_of_the_device(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '"ID","Process ID","Kernel Name","gpu__time_duration.sum"\n"","","","ns"\n'
        '"0","1","k","7"\n',
    )
    assert ncu.read(path).rows.select("kernel", "measured", "unit").rows() == [("k", 7.0, "ns")]


def test_the_report_for_people() -> None:
    found = ncu.read(TEXT / "good" / "ncu.txt")
    assert found.formats == ("ncu-text",)
    assert found.rows.select(*COLUMNS).rows() == [
        ("gemm(const float *, int)", 20.0, "us", 25000.0, 1.25e9),
        ("a_very_long_name<int, 4>(float *, float *)", 1.5, "ms", 1500.0, None),
    ]
    assert found.rows.select("launch", "process", "device_id", "grid", "block").rows() == [
        ("0", "77", "0", "64x2x1", "128x1x1"),
        ("1", "77", "1", "8x1x1", "32x1x1"),
    ]


def test_the_report_of_an_old_version() -> None:
    found = ncu.read(TEXT / "old_version")
    assert found.rows.select(*COLUMNS).rows() == [("gemm", 3.01, "us", 3461.0, 1.13e9)]


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    metrics = (("Duration", "us", "1.205,50"), ("Elapsed Cycles", "cycle", "25.591"))
    rows = [f'"0","1","k","{name}","{unit}","{value}"\n' for name, unit, value in metrics]
    found = ncu.read(written(tmp_path, HEADER + "".join(rows)))
    assert found.rows.select("measured", "cycles").rows() == [(1205.5, 25591.0)]


SUMMED = (
    '"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC",'
    '"Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
)


def test_summaries_have_means_of_invocations(tmp_path: Path) -> None:
    start = '"9","app","host","gemm(int)","(64, 1, 1)",'
    rows = [
        f'{start}"({grid}, 1, 1)","0","9.0","{n}","Speed","{metric}","{unit}","1","9","{mean}"'
        for grid, n, metric, unit, mean in (
            (2, 14, "Duration", "us", "42.50"),
            (2, 14, "Elapsed Cycles", "cycle", "51,000.5"),
            (4, 3, "Duration", "ms", "1.25"),
            (4, 3, "Achieved Occupancy", "%", "99"),
        )
    ]
    path = written(tmp_path, "==PROF== Connected to process 9\n" + SUMMED + "\n".join(rows) + "\n")
    assert formats_of(path) == ["ncu-details"]
    rows = ncu.read(path).rows
    assert rows.select("kernel", "grid", "count", "measured", "unit", "cycles").rows() == [
        ("gemm(int)", "2x1x1", 14, 42.5, "us", 51000.5),
        ("gemm(int)", "4x1x1", 3, 1.25, "ms", None),
    ]
    with pytest.raises(InputError, match="missing column 'Metric Unit'"):
        ncu.read(written(tmp_path, SUMMED.replace("Metric Unit", "Unit")))


def test_summaries_for_people(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "[12] app@127.0.0.1\n"
        "  gemm(float *) (8, 1, 1)x(64, 1, 1), Device 0, CC 8.0, Invocations 3\n"
        "    Section: GPU Speed Of Light Throughput\n"
        "    Metric Name      Metric Unit  Minimum  Maximum  Average\n"
        "    Elapsed Cycles         cycle    2,100    2,300    2,200\n"
        "    Duration                  us     1.50     1.75     1.60\n",
    )
    assert formats_of(path) == ["ncu-text"]
    rows = ncu.read(path).rows
    assert rows.select(*COLUMNS[:4], "count").rows() == [("gemm(float *)", 1.6, "us", 2200.0, 3)]


def test_points_between_thousands_show_in_any_metric(tmp_path: Path) -> None:
    row = '"0","1","k","gpu__time_duration.sum","ns","117.344"\n'
    assert ncu.read(written(tmp_path, HEADER + row)).rows["measured"].to_list() == [117.344]
    row += '"0","1","k","dram__bytes.sum","byte","27.595.520"\n'
    assert ncu.read(written(tmp_path, HEADER + row)).rows["measured"].to_list() == [117344.0]
    header = '"ID","Process ID","Kernel Name","dram__bytes.sum","gpu__time_duration.sum"\n'
    raw = header + '"","","","byte","ns"\n"0","1","k","27.595.520","117.344"\n'
    assert ncu.read(written(tmp_path, raw)).rows["measured"].to_list() == [117344.0]


def test_a_report_that_was_copied_without_its_blanks(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "sgemm_tn (86, 1, 2)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
        "    Section: Command line profiler metrics\n"
        "    gpu__time_duration.sum      us      538.94\n"
        "sgemm_tn (86, 1, 2)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
        "    gpu__time_duration.sum      us      (!) n/a\n",
    )
    assert ncu.read(path).rows.select("kernel", "measured", "status").rows() == [
        ("sgemm_tn", 538.94, None),
        ("sgemm_tn", None, "no duration was collected"),
    ]


UNITS = {
    ("Duration", "second"): ("s", None),
    ("Duration", "s"): ("s", None),
    ("Duration", "ms"): ("ms", None),
    ("Duration", "nsecond"): ("ns", None),
    ("gpu__time_duration.sum", "ns"): ("ns", None),
    ("gpu__time_duration.avg", "microseconds"): ("us", None),
}


@pytest.mark.parametrize("named", UNITS)
def test_units_of_the_versions(named: tuple[str, str], tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + f'"0","1","k","{named[0]}","{named[1]}","7"\n')
    assert ncu.read(path).rows.select("measured", "unit").rows() == [(7.0, UNITS[named][0])]


@pytest.mark.parametrize(
    ("unit", "hertz"),
    [("hz", 5.0), ("Khz", 5e3), ("Ghz", 5e9), ("cycle/usecond", 5e6), ("cycle/ns", 5e9)],
)
def test_units_of_the_clock(unit: str, hertz: float, tmp_path: Path) -> None:
    path = written(
        tmp_path,
        HEADER + f'"0","1","k","SM Frequency","{unit}","5"\n"0","1","k","Elapsed Cycles","","9"\n',
    )
    assert ncu.read(path).rows.select(*COLUMNS).rows() == [("k", 9.0, "cycles", 9.0, hertz)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + '"0","1","k","Duration","us"\n', "line 2: 5 fields, expected at least 6"),
        (HEADER + '"0","1","k","Duration","fortnight","1"\n', "line 2: .*'fortnight'.*base"),
        (HEADER + '"0","1","k","Duration","us","soon"\n', "line 2: .*a number, got 'soon'"),
        (HEADER + '"0","1","k","Duration","us","1', r"line 2: a quote is not closed"),
        (HEADER + '"0","1","k","Registers","","1"\n', "neither durations nor cycles"),
        (HEADER, "no kernel"),
        ('"ID","Kernel Name","Metric Name","Metric Value"\n', "missing column 'Metric Unit'"),
    ],
)
def test_damaged_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        ncu.read(written(tmp_path, text))


def test_a_file_without_its_header_is_refused(tmp_path: Path) -> None:
    source = Source(written(tmp_path, "a\n"))
    for one in ncu.FORMATS[:3]:
        with pytest.raises(InputError, match=r"no header|no kernel"):
            one.read(source)


def test_fields_without_quotes(tmp_path: Path) -> None:
    path = written(
        tmp_path, HEADER.replace('"', "") + "0,1,k,Duration,us,2\n\n0,1,k,Elapsed Cycles,cycle,8\n"
    )
    assert ncu.read(path).rows.select("measured", "cycles").rows() == [(2.0, 8.0)]


@pytest.mark.shared
def test_real_files(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "ncu")
    assert found.formats == ("ncu-details", "ncu-raw")
    assert not any("not recognised" in one.reason for one in found.skipped)
    columns = found.rows.select("file", "measured", "unit", "cycles", "clock_hz", "device")
    assert columns.rows() == [
        ("algo23/details.csv", 22.59, "us", 25591.0, 1.10e9, "NVIDIA B200"),
        ("algo23/raw.csv", 22.592, "us", 25591.0, 1.099255e9, "NVIDIA B200"),
        ("algo64/details.csv", 49.95, "us", 57528.0, 1.13e9, "NVIDIA B200"),
        ("algo64/raw.csv", 49.952, "us", 57528.0, 1.131121e9, "NVIDIA B200"),
        ("superbench_cublaslt_ncu.log", 406240.0, "ns", 508757.0, 1239496049.13, None),
    ]


@pytest.mark.shared
def test_the_same_kernel_takes_longer_than_under_nsys(shared_data: Path) -> None:
    path = shared_data / "tools" / "nsys" / "algo23" / "cuda_gpu_trace.csv"
    rows = ingest(path).rows.filter(pl.col("kernel").str.contains("cutlass"))
    alone = rows["measured"].item()
    profiled = ncu.read(shared_data / "tools" / "ncu" / "algo23" / "raw.csv").rows
    assert (alone, profiled["measured"].item()) == (11649.0, 22.592)
    assert rows["grid"].item() == profiled["grid"].item()


_NUMBERS = ["20.25", "1,250.5", "3", "", "n/a", "1.5e3", "0"]
_ODD = ["1,0000", "33,0", "6 816", "inf", "x", "1_000", "2,176"]


@pytest.mark.parametrize("seed", range(60))
def test_a_raw_page_by_columns_is_that_by_launches(seed: int, tmp_path: Path, monkeypatch) -> None:
    rng = random.Random(seed)
    numbers = _NUMBERS + (rng.sample(_ODD, 1) if rng.random() < 0.4 else [])
    columns = {
        "ID": lambda i: str(i),
        "Process ID": lambda i: "77",
        "Kernel Name": lambda i: rng.choice(["gemm(float *, int)", "", " add "]),
        "Grid Size": lambda i: rng.choice(["(64, 2, 1)", "(8, 1, 1)", "", "?"]),
        "Block Size": lambda i: "(32, 1, 1)",
        "Invocations": lambda i: rng.choice(["3", "12", "", "many"]),
        "device__attribute_display_name": lambda i: rng.choice(["GPU", "GPU 2"]),
        "gpu__time_duration.sum": lambda i: rng.choice(numbers),
        "gpu__time_duration.max": lambda i: rng.choice(numbers),
        "gpc__cycles_elapsed.max": lambda i: rng.choice(numbers),
        "gpc__cycles_elapsed.avg.per_second": lambda i: rng.choice(numbers),
        "sm__inst_executed.sum": lambda i: rng.choice(["1,000", "7"]),
    }
    chosen = [n for n in columns if n in ("ID", "Kernel Name") or rng.random() < 0.8]
    unit = {
        "gpu__time_duration.sum": rng.choice(["usecond", "ns", "Useconds", "parsec"]),
        "gpu__time_duration.max": "msecond",
        "gpc__cycles_elapsed.max": "cycle",
        "gpc__cycles_elapsed.avg.per_second": rng.choice(["Mhz", "cycle/nsecond", "hz"]),
    }
    rows = [[unit.get(name, "") for name in chosen]]
    rows += [[columns[name](i) for name in chosen] for i in range(rng.randint(1, 8))]
    if rng.random() < 0.2:  # two files, one below the other
        rows += [rows[0], [columns[name](9) for name in chosen]]
    quoted = (",".join(f'"{cell}"' for cell in row) for row in [chosen, *rows])
    path = written(tmp_path, "\n".join(quoted) + "\n")

    def found() -> Any:
        try:
            read = ncu.read(path)
        except InputError as error:
            return str(error)
        return read.rows.to_dicts(), dict(read.rows.schema), read.notes, read.dropped

    by_columns = found()
    monkeypatch.setattr(ncu, "_regular_rows", lambda *given: None)
    assert by_columns == found()


def test_raw_launches_of_which_none_has_a_time(tmp_path: Path) -> None:
    text = (
        '"ID","Process ID","Kernel Name","gpu__time_duration.sum"\n"","","","usecond"\n'
        '"0","7","a","n/a"\n"1","7","b","n/a"\n'
    )
    with pytest.raises(InputError, match="the profile has neither durations nor cycles"):
        ncu.read(written(tmp_path, text))
    found = ncu.read(written(tmp_path, text.replace('"b","n/a"', '"b","2.5"')))
    assert found.rows.select("kernel", "measured", "unit", "status").rows() == [
        ("a", None, "ns", "no duration was collected"),
        ("b", 2.5, "us", None),
    ]
