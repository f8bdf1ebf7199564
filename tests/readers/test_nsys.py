"""Reader of Nsight Systems."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import sqlite3
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import nsys
from errcomp.readers.profilers.nsys import stats

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
EXPORT = FIXTURES / "nsys-sqlite" / "good" / "report.sqlite"
TABLES = FIXTURES / "nsys-stats"
Table = tuple[Sequence[str], Sequence[Sequence[Any]]]
PID, TID = 7 << 24, (7 << 24) + 42
WORK = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
KERNEL = (*WORK, "demangledName", "shortName", "gridX", "gridY", "gridZ")
KERNEL += ("blockX", "blockY", "blockZ")
RUNTIME = ("start", "end", "globalTid", "correlationId", "nameId", "eventClass")
RANGES = ("start", "end", "eventType", "globalTid", "text", "textId")


def tables() -> dict[str, Table]:
    """Two steps of a copy and two kernels; the GPU ends the last one after its range."""
    kernels = [
        (1000, 1400, 0, 7, 11, PID, 1, 2, 8, 1, 1, 64, 2, 1),
        (1500, 1600, 0, 7, 12, PID, 3, 4, 4, 1, 1, 32, 1, 1),
        (3000, 3500, 0, 7, 21, PID, 1, 2, 8, 1, 1, 64, 2, 1),
        (3600, 3690, 0, 7, 22, PID, 3, 4, 4, 1, 1, 32, 1, 1),
    ]
    launches = [
        (500, 510, TID, 10, 9, 0),
        (600, 610, TID, 11, 9, 0),
        (603, 607, TID, 11, 9, 1),
        (700, 710, TID, 12, 9, 0),
        (2600, 2610, TID, 21, 9, 0),
        (2700, 2710, TID, 22, 9, 0),
        (5000, 5010, TID, 30, 9, 0),
    ]
    ranges = [
        (-5, None, 75, TID, "domain", None),
        (450, 900, 59, TID, "step", None),
        (590, 620, 59, TID, None, 5),
        (2500, 2900, 59, TID, "step", None),
        (2550, 2560, 34, TID, "a mark", None),
        (2690, 2720, 60, TID, "layer 2", None),
        (4000, None, 59, TID, "never ended", None),
    ]
    return {
        "StringIds": (
            ("id", "value"),
            [
                (1, "void gemm<64>(float*)"),
                (2, "gemm"),
                (3, "void add<float>(T1)"),
                (4, "add"),
                (5, "layer 1"),
                (9, "cudaLaunchKernel"),
            ],
        ),
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, kernels),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (
            (*WORK, "bytes", "copyKind"),
            [(800, 900, 0, 8, 10, PID, 4096, 1)],
        ),
        "CUPTI_ACTIVITY_KIND_MEMSET": (
            (*WORK, "bytes", "value"),
            [(6000, 6020, 0, 8, 30, PID, 16, 0)],
        ),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (RUNTIME, launches),
        "NVTX_EVENTS": (RANGES, ranges),
        "TARGET_INFO_GPU": (("id", "name", "smCount"), [(0, "Example GPU", 10)]),
        "TARGET_INFO_SESSION_START_TIME": (("utcTime",), [("2026-01-02T03:04:05",)]),
    }


def database(path: Path, content: Mapping[str, Table]) -> Path:
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        for name, (columns, rows) in content.items():
            connection.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        connection.commit()
    return path


def without(content: dict[str, Table], table: str, *columns: str) -> dict[str, Table]:
    names, rows = content[table]
    kept = [i for i, name in enumerate(names) if name not in columns]
    return {
        **content,
        table: ([names[i] for i in kept], [[row[i] for i in kept] for row in rows]),
    }


def formats_of(path: Path) -> list[str]:
    return [one.name for one in recognise(Source(path))]


def kernels(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("level") == "kernel")


# The SQLite export


def test_the_fixture_is_what_is_written_here(tmp_path: Path) -> None:
    written = database(tmp_path / "x.sqlite", tables())
    assert nsys.read(written).rows.equals(nsys.read(EXPORT).rows)


def test_kernels_copies_and_sets() -> None:
    found = nsys.read(EXPORT)
    assert found.formats == ("nsys-sqlite",)
    rows = kernels(found.rows)
    assert rows["measured"].to_list() == [100, 400, 100, 500, 90, 20]
    assert rows["kernel"].to_list() == [
        "[CUDA memcpy Host-to-Device]",
        "void gemm<64>(float*)",
        "void add<float>(T1)",
        "void gemm<64>(float*)",
        "void add<float>(T1)",
        "[CUDA memset]",
    ]
    assert rows["kernel_class"].to_list() == ["memcpy", "gemm", "add", "gemm", "add", "memset"]
    assert rows["grid"].to_list() == [None, "8x1x1", "4x1x1", "8x1x1", "4x1x1", None]
    assert rows["block"].to_list() == [None, "64x2x1", "32x1x1", "64x2x1", "32x1x1", None]
    assert rows["stream"].to_list() == [8, 7, 7, 7, 7, 8]
    assert rows["bytes"].to_list() == [4096, None, None, None, None, 16]
    assert set(found.rows["unit"]) == {"ns"}
    assert set(rows["device"]) == {"Example GPU"}
    assert set(found.rows["date"]) == {"2026-01-02T03:04:05"}


def test_ranges_are_runs() -> None:
    found = nsys.read(EXPORT)
    assert kernels(found.rows).select("run", "range").rows() == [
        ("step #1", "step"),
        ("step #1", "step/layer 1"),
        ("step #1", "step"),
        ("step #2", "step"),
        ("step #2", "step/layer 2"),
        ("outside of ranges", None),
    ]
    whole = found.of(level="model").rows
    assert whole.select("run", "quantity", "measured", "start", "repeat").rows() == [
        ("step #1", "time", 800.0, 800, 1),
        ("step #1", "host time", 450.0, 450, 1),
        ("step #2", "time", 690.0, 3000, 2),
        ("step #2", "host time", 400.0, 2500, 2),
    ]
    assert "first GPU work to the end of its last; its host time is the" in found.notes[0]
    assert (
        found.of(run=["step #1", "step #2"]).kernels.run_measured.tolist() == [800] * 3 + [690] * 2
    )


def test_without_launches_ranges_are_not_known(tmp_path: Path) -> None:
    content = tables()
    del content["CUPTI_ACTIVITY_KIND_RUNTIME"]
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert len(found.rows) == 6
    assert "run" not in found.rows.columns
    assert "so the ranges of the kernels are unknown" in found.notes[0]
    for columns in (("globalTid",), ("correlationId", "start")):
        content = without(tables(), "CUPTI_ACTIVITY_KIND_RUNTIME", *columns)
        found = nsys.read(database(tmp_path / "x.sqlite", content))
        assert "run" not in found.rows.columns


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("NVTX_EVENTS"),
        lambda content: content.update(NVTX_EVENTS=(RANGES, [])),
        lambda content: content.update(without(content, "NVTX_EVENTS", "globalTid")),
        lambda content: content.update(without(content, "NVTX_EVENTS", *RANGES)),
    ],
)
def test_without_ranges_there_are_no_runs(
    change: Callable[[dict[str, Table]], object], tmp_path: Path
) -> None:
    content = tables()
    content["NVTX_EVENTS"] = ((*RANGES, "color"), [(*row, 1) for row in content["NVTX_EVENTS"][1]])
    change(content)
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert len(found.rows) == 6
    assert found.notes == ()


def test_ranges_around_nothing_of_a_gpu(tmp_path: Path) -> None:
    content = tables()
    content["NVTX_EVENTS"] = (RANGES, [(8000, 9000, 59, TID, "later", None)])
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert set(found.rows["level"]) == {"kernel"}
    assert found.notes == ()


def test_ranges_without_names_types_and_text(tmp_path: Path) -> None:
    content = tables()
    content["NVTX_EVENTS"] = (("start", "end", "globalTid"), [(450, 900, TID), ("x", 5, TID)])
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert set(kernels(found.rows)["run"]) == {"range without a name", "outside of ranges"}


def test_threads_of_two_processes_are_not_confused(tmp_path: Path) -> None:
    content = tables()
    other, thread = 9 << 24, (9 << 24) + 1
    columns, rows = content["CUPTI_ACTIVITY_KIND_KERNEL"]
    more = (1010, 1020, 0, 7, 11, other, 1, 2, 8, 1, 1, 64, 2, 1)
    content["CUPTI_ACTIVITY_KIND_KERNEL"] = (columns, [*rows, more])
    columns, rows = content["CUPTI_ACTIVITY_KIND_RUNTIME"]
    content["CUPTI_ACTIVITY_KIND_RUNTIME"] = (columns, [*rows, (605, 606, thread, 11, 9, 0)])
    columns, rows = content["NVTX_EVENTS"]
    content["NVTX_EVENTS"] = (columns, [*rows, (600, 610, 59, thread, "other", None)])
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    at = kernels(found.rows).filter(pl.col("start").is_in([1000, 1010]))
    assert at.select("run", "range").rows() == [("step #1", "step/layer 1"), ("other", "other")]


def test_older_exports_have_fewer_columns(tmp_path: Path) -> None:
    content = without(tables(), "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid", "demangledName", "gridX")
    content = without(content, "CUPTI_ACTIVITY_KIND_MEMCPY", "globalPid", "copyKind", "bytes")
    content = without(content, "CUPTI_ACTIVITY_KIND_MEMSET", "globalPid", "bytes")
    del content["TARGET_INFO_SESSION_START_TIME"], content["TARGET_INFO_GPU"]
    rows = kernels(nsys.read(database(tmp_path / "x.sqlite", content)).rows)
    assert rows["kernel"].to_list()[:2] == ["[CUDA memcpy]", "gemm"]
    assert rows["run"].to_list()[:2] == ["step #1", "step #1"]
    assert not {"device", "date", "grid", "bytes"} & set(rows.columns)
    content = without(content, "CUPTI_ACTIVITY_KIND_KERNEL", "shortName", "correlationId")
    for table in ("MEMCPY", "MEMSET"):
        content = without(content, f"CUPTI_ACTIVITY_KIND_{table}", "correlationId")
    rows = nsys.read(database(tmp_path / "x.sqlite", content)).rows
    assert rows["kernel"].to_list()[1] == "kernel without a name"
    assert "run" not in rows.columns


def test_graphs_and_kinds_of_copies(tmp_path: Path) -> None:
    content = tables()
    del content["CUPTI_ACTIVITY_KIND_KERNEL"], content["CUPTI_ACTIVITY_KIND_MEMSET"]
    graphs = [(1000, 1900, 0, 7, 11, PID, 3), (2000, None, 0, 7, 11, PID, 3)]
    content["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = ((*WORK, "graphId"), graphs)
    content["ENUM_CUDA_MEMCPY_OPER"] = (("id", "label"), [(1, "Host to the Device")])
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert kernels(found.rows)["kernel"].to_list() == [
        "[CUDA memcpy Host to the Device]",
        "CUDA graph 3",
    ]
    assert kernels(found.rows)["kernel_class"].to_list() == ["memcpy", "graph"]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (1, "GPU work without a start or an end")
    ]
    content = without(content, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "graphId")
    content["ENUM_CUDA_MEMCPY_OPER"] = (("id",), [(1,)])
    rows = nsys.read(database(tmp_path / "x.sqlite", content)).rows
    assert kernels(rows)["kernel"].to_list() == ["[CUDA memcpy Host-to-Device]", "CUDA graph"]


def test_devices_in_the_order_the_program_sees(tmp_path: Path) -> None:
    content = tables()
    content["TARGET_INFO_GPU"] = (("id", "name"), [(0, "A"), (1, "B"), ("x", "C")])
    content["TARGET_INFO_CUDA_DEVICE"] = (("cudaId", "gpuId"), [(0, 1), (1, 0), (2, 9)])
    path = database(tmp_path / "x.sqlite", content)
    assert set(kernels(nsys.read(path).rows)["device"]) == {"B"}
    content["TARGET_INFO_CUDA_DEVICE"] = (("cudaId",), [(0,)])
    path = database(tmp_path / "x.sqlite", content)
    assert set(kernels(nsys.read(path).rows)["device"]) == {"A"}


def test_exports_without_work_of_a_gpu(tmp_path: Path) -> None:
    content = tables()
    for kind in ("KERNEL", "MEMCPY", "MEMSET"):
        content[f"CUPTI_ACTIVITY_KIND_{kind}"] = (content[f"CUPTI_ACTIVITY_KIND_{kind}"][0], [])
    with pytest.raises(InputError, match=r"x.sqlite: no kernel or copy finished on a GPU"):
        nsys.read(database(tmp_path / "x.sqlite", content))
    for kind in ("KERNEL", "MEMCPY", "MEMSET"):
        del content[f"CUPTI_ACTIVITY_KIND_{kind}"]
    with pytest.raises(InputError, match=r"no table of kernels or copies.*--trace cuda"):
        nsys.read(database(tmp_path / "x.sqlite", content))
    with pytest.raises(InputError, match=r"table CUPTI_ACTIVITY_KIND_KERNEL has no column end\."):
        nsys.read(
            database(tmp_path / "x.sqlite", without(tables(), "CUPTI_ACTIVITY_KIND_KERNEL", "end"))
        )


def test_values_of_the_wrong_kind_are_left_out(tmp_path: Path) -> None:
    content = tables()
    columns, rows = content["CUPTI_ACTIVITY_KIND_KERNEL"]
    wrong = ("soon", b"\xff", 0.5, None, "eleven", "p", "n", 2.5, None, 1, 1, 1, 1, 1)
    content["CUPTI_ACTIVITY_KIND_KERNEL"] = (columns, [wrong, *rows])
    content["StringIds"] = (("id", "value"), [("one", 5), (1, b"\xff\xfe"), (2, None)])
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert len(kernels(found.rows)) == 6
    assert found.dropped[0].n == 1
    content["StringIds"] = (("value",), [("x",)])
    found = nsys.read(database(tmp_path / "x.sqlite", content))
    assert "kernel without a name" in found.rows["kernel"].to_list()


def test_only_exports_of_nsys_are_recognised(tmp_path: Path) -> None:
    assert formats_of(EXPORT) == ["nsys-sqlite"]
    other = database(tmp_path / "store.sqlite", {"validations": (("id",), [(1,)])})
    assert formats_of(other) == []
    strings = database(tmp_path / "strings.sqlite", {"StringIds": (("id", "value"), [(1, "x")])})
    assert formats_of(strings) == []


def test_packed_and_damaged_exports_are_refused(tmp_path: Path) -> None:
    packed = tmp_path / "report.sqlite.gz"
    packed.write_bytes(gzip.compress(EXPORT.read_bytes()))
    with pytest.raises(InputError, match=r"report\.sqlite\.gz: is a packed SQLite.*gunzip"):
        nsys.read(packed)
    damaged = tmp_path / "report.sqlite"
    content = EXPORT.read_bytes()
    damaged.write_bytes(content[:1024] + b"\xa5" * 1024 + content[2048:])
    with pytest.raises(
        InputError,
        match=r"SQLite cannot read this file \(database disk image is malformed\)\. It.*export it "
        "again",
    ):
        nsys.FORMATS[0].read(Source(damaged))


def test_an_export_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    shutil.copy(EXPORT, path)
    before = path.read_bytes()
    path.chmod(stat.S_IRUSR)
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(nsys.read(path).rows) == 10
    finally:
        tmp_path.chmod(stat.S_IRWXU)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["report.sqlite"]


# Tables of nsys stats


def test_a_trace() -> None:
    found = nsys.read(TABLES / "good" / "cuda_gpu_trace.csv")
    assert found.formats == ("nsys-stats",)
    assert found.rows.select("kernel", "range", "measured", "unit", "start").rows() == [
        ("[CUDA memcpy Host-to-Device]", None, 2240.0, "ns", 1000.0),
        ("[CUDA memset]", None, 220.0, "ns", 4000.0),
        ("void gemm<(int)4 / 2>(T1::Params)", "step 1/layer a", 1165.0, "ns", 5000.0),
        ("void operator/(int)", None, 10.5, "ns", 7000.0),
    ]
    columns = found.rows.select("device", "device_id", "stream", "grid", "block", "size_unit")
    assert columns.rows()[0] == ("Example B200", "0", "7", None, None, "MB")
    assert columns.rows()[2] == ("Example B200", "0", "20", "128x1x1", "64x2x1", None)
    assert found.rows["kernel_class"].to_list()[:2] == ["memcpy", "memset"]
    assert found.kernels.kernel.tolist() == found.rows["kernel"].to_list()


def test_a_sum_is_the_mean_of_its_instances() -> None:
    found = nsys.read(TABLES / "kernel_sum" / "sum.csv")
    columns = found.rows.select("kernel", "count", "measured", "unit", "minimum", "grid")
    assert columns.rows() == [
        ("void gemm(T1)", 3, 3336.0, "us", 1000.0, "128x1x1"),
        ("add", 7, 10 / 7, "us", 1.0, "8x8x1"),
    ]


def test_older_names_without_units() -> None:
    found = nsys.read(TABLES / "old_version" / "gpukernsum.csv")
    assert found.rows.select("kernel", "count", "measured", "unit").rows() == [
        ("gemm", 2, 150.0, "ns"),
        ("add, then relu", 4, 25.0, "ns"),
    ]


def test_what_nsys_prints() -> None:
    found = nsys.read(TABLES / "printed" / "stats.txt")
    assert found.rows.select("kernel", "count", "measured", "maximum").rows() == [
        ("void gemm<float>(const float *, 'x')", 1200, 1000.0, 2500.0),
        ("add", 1, 1234567.0, 1234567.0),
    ]
    assert found.notes == ("Tables that are about the host are left out: 2 of 3.",)


def test_numbers_in_other_languages() -> None:
    found = nsys.read(TABLES / "languages")
    columns = found.rows.select("file", "kernel", "count", "measured", "minimum")
    assert columns.rows() == [
        ("comma.txt", "loop_2,1_gpu", 1, 2176.0, 2176.0),
        ("comma.txt", "loop_1", 1000, 2.144, 2.0),
        ("swiss.txt", "transpose(int *, int)", 2, 3408.0, 3400.0),
    ]
    assert found.rows["grid"].to_list() == [None, None, "17x170x1"]


def test_a_trace_is_preferred_to_its_sum(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    parts = ["NOTICE: Existing SQLite export found: a.sqlite", ""]
    for name in ("good/cuda_gpu_trace.csv", "kernel_sum/sum.csv"):
        parts += [f"Processing [a.sqlite] with [{name}]...", (TABLES / name).read_text()]
    path.write_text("\n".join(parts))
    found = nsys.read(path)
    assert len(found.rows) == 4
    assert found.notes == (
        "Tables that are about the host or summarise the trace are left out: 1 of 2.",
    )


HEADERS = {
    "Start (ns),Duration (ns),CorrId,Name\n1,2,3,k\n": [("k", 2.0, "ns")],
    "Start (us),Duration (µs),Corr Id,Strm,Name\n1,2,3,4,k\n": [("k", 2.0, "us")],
    "Start(sec),Duration(nsec),CorrId,Name\n1,2,3,k\n": [("k", 2.0, "ns")],
    "API Start (ns),API Dur (ns),Kernel Start (ns),Kernel Dur (ms),PID,TID,DevId,Kernel Name\n"
    "1,2,3,4,5,6,0,k\n": [("k", 4.0, "ms")],
    "Time (%),Total Time (ns),Count,Avg (ns),Operation\n100,30,3,10,[CUDA memset]\n": [
        ("[CUDA memset]", 10.0, "ns")
    ],
    "Time (%),Total Time (s),Instances,Category,Operation\n100,30,3,CUDA_KERNEL,k\n": [
        ("k", 10.0, "s")
    ],
    "NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Kernel Name\n"
    "step,PushPop,1,1,1,2,30,k\n": [("k", 15.0, "ns")],
    "Time(%),Total Time (ns),Operations,Average,Minimum,Maximum,Operation\n100,30,3,10,1,9,[c]\n": [
        ("[c]", 10.0, "ns")
    ],
    '"Time(%)","Total Time (ns)","Instances","Name"\n100,"1,234,000",1000,k\n': [
        ("k", 1234.0, "ns")
    ],
    "PID,TID,DevId,Count,QCount,TAvg (ns),AAvg (ns),QAvg (ns),KAvg (us),KMed (us),API Name,"
    "Kernel Name\n1,1,0,10,9,300,100,50,150.5,150,cudaLaunchKernel,k\n": [("k", 150.5, "us")],
}


@pytest.mark.parametrize("text", HEADERS)
def test_variants_of_columns(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert formats_of(path) == ["nsys-stats"]
    found = nsys.read(path)
    assert found.rows.select("kernel", "measured", "unit").rows() == HEADERS[text]
    if "Style" in text:
        assert found.rows["range"].to_list() == ["step"]


@pytest.mark.parametrize(
    "header",
    [
        "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),Style,Range",
        "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Range",
        "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
        "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name",
        "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Style,PID,TID",
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),Source,Name",
        "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation",
    ],
)
def test_tables_about_the_host_are_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(header + "\n" + ",".join("1" for _ in header.split(",")) + "\n")
    assert formats_of(path) == ["nsys-host-stats"]
    with pytest.raises(InputError, match=r"does not read.*Give cuda_gpu_trace"):
        nsys.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "device,predicted,measured\nA,1,2\n",
        "Name,Duration (ns)\nx,1\n",
        "Total Time (ns)\n1\n",
        "kernel,Total,Duration\na,1,2\n",
        "Duration\n--------  -----\n",
        "App Time (%),API Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
        "0.1,50,20,2,10,KernelDispatch,k\n",
        '[{"Name": "k", "Total Time (ns)": 3}]',
    ],
)
def test_tables_of_others_are_not_recognised(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert formats_of(path) == []


def test_tables_in_boxes_json_and_tsv() -> None:
    found = nsys.read(TABLES / "box")
    assert found.rows.select("kernel", "count", "measured", "unit", "minimum").rows() == [
        ("scale(float *, int | long)", 4, 750000.0, "ns", 700000.0),
        ("shift<a>(int *)", 2, 500000.0, "ns", 400000.0),
    ]
    assert found.notes == ("Tables that are about the host are left out: 1 of 2.",)
    found = nsys.read(TABLES / "json")
    assert found.rows.select("kernel", "measured", "start", "grid", "stream", "size").rows() == [
        ("void scale<float, 2>(float *)", 30.0, 100.0, "2x1x1", "7", None),
        ("[CUDA memcpy Host-to-Device]", 5.0, 200.0, None, "7", 0.004),
    ]
    found = nsys.read(TABLES / "tsv")
    assert found.rows.select("kernel", "count", "measured", "unit").rows() == [
        ("scale<a, b>(int)", 4, 750.0, "us"),
        ("shift(int)", 2, 500.0, "us"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"Total Time (ns)": 6, "Instances": 2, "Name": "k"}, 5]', "row 2 has no 'Total Time"),
        ('[{"Total Time (ns)": 6, "Instances": 2, "Name": "k"}', "not valid JSON"),
        ('[{"Total Time (ns)": [6], "Instances": 2, "Name": "k"}]', "must be a number, got '.6.'"),
        ('[[{"Total Time (ns)": 6, "Instances": 2, "Name": "k"}]]', "row 1 has no"),
        ('[{"Total Time (ns)": 6, "Instances": 2, "Name": "k", "Name": "l"}]', "twice"),
    ],
)
def test_damaged_json_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        nsys.read(path)


def test_work_that_several_tables_list_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    tables = {
        "range": "NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Kernel Name\n"
        "step,PushPop,1,1,1,2,30,k\n",
        "all": "Total Time (ns),Instances,Category,Operation\n30,2,CUDA_KERNEL,k\n8,1,MEM,[c]\n",
        "name": "Time (%),Total Time (ns),Instances,Name\n100,30,2,k\n",
        "copies": "Time (%),Total Time (ns),Count,Operation\n100,8,1,[c]\n",
        "launch": "PID,TID,DevId,Count,KAvg (ns),API Name,Kernel Name\n1,1,0,2,15,cuLaunch,k\n",
    }
    path.write_text("\n".join(tables.values()))
    found = nsys.read(path)
    assert sorted(found.rows.select("kernel", "measured").rows()) == [("[c]", 8.0), ("k", 15.0)]
    assert found.notes == (
        "Tables that list the same work as others are left out: all, by launch, by range.",
    )
    path.write_text(tables["copies"] + "\n" + tables["all"])
    assert nsys.read(path).rows["kernel"].to_list() == ["k", "[c]"]
    trace = "Start (ns),Duration (ns),CorrId,Name\n1,2,3,k\n"
    again = "Kernel Start (ns),Kernel Dur (ns),Kernel Name\n1,2,k\n"
    path.write_text(again + "\n" + trace)
    assert len(nsys.read(path).rows) == 1


def test_calls_among_the_kernels_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "cuda_api_gpu_sum.csv"
    header = "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
    path.write_text(header + "80,80,4,20,CUDA_API,cudaMalloc\n20,20,2,10,CUDA_KERNEL,k\n")
    found = nsys.read(path)
    assert found.rows.select("kernel", "measured").rows() == [("k", 10.0)]
    assert [(one.reason, one.n) for one in found.dropped] == [("calls on the host", 1)]
    path.write_text(header + "80,80,4,20,CUDA_API,cudaMalloc\n")
    with pytest.raises(InputError, match="1 calls on the host"):
        nsys.read(path)


def test_a_program_may_print_much_before(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    table = (TABLES / "box" / "table.txt").read_text()
    path.write_text("\n".join(["Collecting data...", *["loss 0.25"] * 10_000, table]))
    assert path.stat().st_size > 1 << 16
    assert len(nsys.read(path).rows) == 2
    path.write_bytes(path.read_bytes() + b"\xff")
    assert formats_of(path) == []


def test_rows_without_a_value_have_a_status(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(
        "Time (%),Total Time (ns),Instances,Name\n50,10,2,a\n50,n/a,2,b\n0,0,0,c\n1,5,-nan,d\n"
    )
    rows = nsys.read(path).rows
    assert rows["measured"].to_list() == [5.0, None, None, None]
    assert rows["status"].to_list() == [None, "no value", "no value", "no value"]


PRINTED_HEADER = " Total Time (ns)  Instances  Name\n ---------------  ---------  ----\n"
BOX_RULE = "+-----------------+-----------+------+\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Start (ns),Duration (ns),CorrId,Name\n1,2,3\n", "line 2: 3 fields"),
        ("Start (ns),Duration (ns),CorrId,Name\n1,long,3,k\n", r"Duration \(ns\) must be a number"),
        ("Start (ns),Duration (ticks),CorrId,Name\n1,2,3,k\n", "'ticks', an unknown unit"),
        ("Start (ns),Duration (ns),CorrId,Name\n", "a header but no rows"),
        ("Start (ns),Duration (ns),CorrId,Name\n\n1,2,3,k\n", "a header but no rows"),
        ('Start (ns),Duration (ns),CorrId,Name\n1,2,3,"k\n', "line 2: a quote"),
        ("Processing [a]\nStart (ns),Duration (ns),CorrId,Name\n1,2,3\n", "line 3: 3 fields"),
        (PRINTED_HEADER, "a header but no rows"),
        (f"{PRINTED_HEADER}\n  20  2  k\n", "a header but no rows"),
        (f"{PRINTED_HEADER} long             2          k\n", r"'long' in line 3\."),
        (f"{PRINTED_HEADER}Processing [b]\n", "a header but no rows"),
        (f"{BOX_RULE}| Total Time (ns) | Instances | Name |\n{BOX_RULE}{BOX_RULE}", "but no rows"),
    ],
)
def test_damaged_tables_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        nsys.read(path)


# Real files


@pytest.mark.shared
def test_real_files(shared_data: Path) -> None:
    folder = shared_data / "tools" / "nsys"
    found = ingest(folder)
    assert found.formats == ("nsys-sqlite", "nsys-stats")
    counts = dict(found.rows.group_by("file").len().rows())
    assert counts == {
        "algo23/capture.trimmed.sqlite": 5,
        "algo23/cuda_gpu_kern_gb_sum.csv": 1,
        "algo23/cuda_gpu_trace.csv": 4,
        "algo64/cuda_gpu_kern_gb_sum.csv": 1,
        "algo64/cuda_gpu_trace.csv": 4,
        "memfusion_tensorrt.trimmed.sqlite": 40,
    }
    skipped = {one.name: one.reason for one in found.skipped}
    assert not any("not recognised" in reason for reason in skipped.values())
    gemm = kernels(found.rows).filter(
        pl.col("kernel").str.contains("cutlass::Kernel2") & pl.col("file").str.contains("algo23")
    )
    assert gemm["measured"].to_list() == [11649.0] * 3
    assert gemm["grid"].to_list() == ["128x1x1"] * 3
    assert set(gemm["range"]) == {"ABT_view (forced)"}
    assert len(set(gemm["kernel"])) == 1


@pytest.mark.shared
def test_totals_of_a_real_export(shared_data: Path) -> None:
    path = shared_data / "tools" / "nsys" / "memfusion_tensorrt.trimmed.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as base:
        query = 'SELECT count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_'
        (n, total), (copies, copied) = (
            base.execute(query + kind).fetchone() for kind in ("KERNEL", "MEMCPY")
        )
    rows = nsys.read(path).rows
    is_copy = rows["kernel_class"] == "memcpy"
    assert (n, copies) == (36, 4)
    assert (len(rows.filter(~is_copy)), rows.filter(~is_copy)["measured"].sum()) == (n, total)
    assert (len(rows.filter(is_copy)), rows.filter(is_copy)["measured"].sum()) == (copies, copied)
    assert set(rows["device"]) == {"NVIDIA GeForce RTX 3090"}


def test_a_mean_over_an_unknown_number_of_calls_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "sum.csv"
    path.write_text(
        "PID,TID,DevId,Count,QCount,TAvg (ns),AAvg (ns),QAvg (ns),KAvg (us),KMed (us),API Name,"
        "Kernel Name\n1,1,0,,9,300,100,50,10,9,launch,a\n1,1,0,2,9,300,100,50,20,19,launch,b\n"
    )
    rows = nsys.read(path).rows
    assert rows.select("kernel", "count", "measured", "status").rows() == [
        ("a", 0, None, "no value"),
        ("b", 2, 20.0, None),
    ]


def test_an_export_without_rows_of_launches_has_no_launches(tmp_path: Path) -> None:
    content = tables()
    content["CUPTI_ACTIVITY_KIND_RUNTIME"] = (RUNTIME, [])
    empty = nsys.read(database(tmp_path / "a.sqlite", content))
    del content["CUPTI_ACTIVITY_KIND_RUNTIME"]
    without_it = nsys.read(database(tmp_path / "b.sqlite", content))
    assert empty.rows.equals(without_it.rows)
    assert empty.notes == without_it.notes


def test_a_table_of_other_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    (good,) = (one for one in TABLES.glob("*/*.json"))
    row = json.loads(good.read_text())[0]
    for text in (json.dumps(row), json.dumps([{"a": 1}])):
        path.write_text(text)
        with pytest.raises(InputError, match="not a list of rows with the columns of nsys stats"):
            stats._of_json(Source(path))
