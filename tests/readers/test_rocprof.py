"""Reader of rocprof, rocprofv2 and rocprofv3."""

from __future__ import annotations

import contextlib
import csv
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import rocprof
from errcomp.readers.profilers.rocprof import json as of_json

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
ROCPD = FIXTURES / "rocprof-rocpd" / "good" / "9_results.db"
TRACE, STATS, JSON = (FIXTURES / f"rocprof-{kind}" for kind in ("trace", "stats", "json"))


def formats_of(path: Path) -> list[str]:
    return [one.name for one in recognise(Source(path))]


def written(folder: Path, text: str, name: str = "results.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_trace_of_version_3() -> None:
    found = rocprof.read(TRACE / "good")
    assert found.formats == ("rocprof-trace",)
    assert found.skipped == ()
    rows = found.rows
    # Times of this size have no last digits as floating-point numbers.
    assert rows.select("kernel", "measured", "unit", "start").rows() == [
        ("void gemm<float, 4>(float*)", 123.0, "ns", 9007199254740993000),
        ("add", 50.0, "ns", 9007199254740994000),
        ("add", None, "ns", 9007199254740995000),
    ]
    assert rows["status"].to_list() == [None, None, "negative"]
    assert rows["device"].to_list() == ["Example Instinct", "Example Instinct", None]
    assert rows.select("device_id", "stream", "dispatch", "grid", "block").row(0) == (
        "Agent 4",
        "2",
        "1",
        "512x4x1",
        "64x2x1",
    )


def test_agents_are_read_along(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is read together with results.csv"):
        rocprof.read(TRACE / "good" / "9_agent_info.csv")
    trace = (TRACE / "good" / "9_kernel_trace.csv").read_text()
    path = written(tmp_path, trace, "kernel_trace.csv")
    assert "device" not in rocprof.read(path).rows.columns
    written(tmp_path, "Node_Id\n1\n", "agent_info.csv")
    assert "device" not in rocprof.read(path).rows.columns
    agents = "Node_Id,Agent_Type,Product_Name\n4,GPU,Some GPU\n5,CPU,Some CPU\n"
    written(tmp_path, agents, "agent_info.csv")
    assert rocprof.read(path).rows["device"].to_list() == ["Some GPU", "Some GPU", None]
    path.write_text(trace.replace("Agent 5", "4"))
    assert rocprof.read(path).rows["device"].to_list() == ["Some GPU"] * 3
    # Numbers among the GPUs only (--agent-index=type-relative) are others.
    path.write_text(trace.replace("Agent 4", "GPU 4"))
    assert "device" not in rocprof.read(path).rows.columns


def test_traces_of_versions_1_and_2() -> None:
    rows = rocprof.read(TRACE / "version_1").rows
    assert rows.select("kernel", "measured", "stream", "device_id", "grid", "block").rows() == [
        ("__amd_rocclr_copyBuffer.kd", 5573.0, "0", "2", "155648", "512"),
        ("gemm(float*, int) [clone .kd]", 100.0, "1", "2", "512", "256"),
    ]
    rows = rocprof.read(TRACE / "version_2").rows
    assert rows.select("kernel", "measured", "stream", "device_id", "process").rows() == [
        ("gemm.kd", 250.0, "1", "4", "77")
    ]


def test_counters_do_not_multiply_kernels() -> None:
    found = rocprof.read(TRACE / "counters")
    assert found.rows["measured"].to_list() == [250.0, 260.0]
    assert [(one.n, one.reason) for one in found.dropped] == [
        (1, "further counters of the same dispatch")
    ]
    assert found.notes == (
        "Counters were collected: kernels ran one at a time, and may have run longer.",
    )


def test_kernels_with_counters_keep_their_order(tmp_path: Path) -> None:
    lines = (TRACE / "counters" / "counter_collection.csv").read_text().splitlines()
    header = lines[0].replace('"', "").split(",")
    first = dict(zip(header, next(csv.reader(lines[1:2])), strict=True))
    rows = [
        first | {"Dispatch_Id": str(i), "Counter_Name": counter, "Kernel_Name": f"k{i}"}
        for i in range(300)
        for counter in ("A", "B")
    ]
    text = [",".join(header), *(",".join(f'"{row[name]}"' for name in header) for row in rows)]
    found = rocprof.read(written(tmp_path, "\n".join(text)))
    assert found.rows["kernel"].to_list() == [f"k{i}" for i in range(300)]


def test_one_counter_of_each_dispatch(tmp_path: Path) -> None:
    lines = (TRACE / "counters" / "counter_collection.csv").read_text().splitlines()
    found = rocprof.read(written(tmp_path, "\n".join([lines[0], lines[1], lines[3]])))
    assert (len(found.rows), found.dropped) == (2, ())


def test_copies() -> None:
    rows = rocprof.read(TRACE / "copies").rows
    assert rows.select("kernel", "kernel_class", "measured").rows() == [
        ("copy HOST_TO_DEVICE", "memcpy", 2500.0)
    ]


def test_fields_that_are_missing_or_wrong(tmp_path: Path) -> None:
    path = written(tmp_path, "KernelName,BeginNs,EndNs\n,1,n/a\ngemm,5,7\n")
    rows = rocprof.read(path).rows
    assert rows.select("kernel", "measured", "status").rows() == [
        ("kernel without a name", None, "no value"),
        ("gemm", 2.0, None),
    ]
    with pytest.raises(InputError, match="EndNs must be a number, got 'soon' in line 2"):
        rocprof.read(written(tmp_path, "KernelName,BeginNs,EndNs\ngemm,1,soon\n"))
    with pytest.raises(InputError, match="line 2: 2 fields, but the header has 3"):
        rocprof.read(written(tmp_path, "KernelName,BeginNs,EndNs\ngemm,1\n"))


def test_sums_are_means_of_their_calls() -> None:
    found = rocprof.read(STATS / "good")
    assert found.formats == ("rocprof-stats",)
    assert found.rows.select("kernel", "count", "measured", "minimum", "deviation").rows() == [
        ("void gemm<float, 4>(float*)", 3, 1000 / 3, 300.0, 57.7),
        ("__amd_rocclr_copyBuffer.kd", 19, 100 / 19, 4.0, 0.5),
        ("hipified_add", 1, 10.0, 10.0, None),
    ]
    assert found.kernels.count.tolist() == [3, 19, 1]


def test_sums_of_copies_are_not_those_of_the_host(tmp_path: Path) -> None:
    for name in ("MEMORY_COPY_HOST_TO_DEVICE", "CopyHostToDevice"):
        path = written(tmp_path, f"Name,Calls,TotalDurationNs\n{name},2,8\n")
        assert formats_of(path) == ["rocprof-stats"]
        rows = rocprof.read(path).rows
        assert rows.select("kernel", "kernel_class", "measured").rows() == [(name, "memcpy", 4.0)]


def test_sums_without_calls_have_a_status(tmp_path: Path) -> None:
    path = written(tmp_path, "Name,Calls,TotalDurationNs\na,0,0\nb,nan,5\nc,2,8\n")
    rows = rocprof.read(path).rows
    assert rows["status"].to_list() == ["no value", "no value", None]
    assert "minimum" not in rows.columns


@pytest.mark.parametrize(
    "names",
    [
        ("hipMemcpy", "hipFree", "__hipPushCallConfiguration"),
        ("hipLaunchKernel", "hipMemcpy"),
        ("hsa_signal_wait_scacquire", "hsa_amd_memory_lock"),
        ("KERNEL_DISPATCH", "HIP_API"),
    ],
)
def test_sums_of_calls_of_the_host_are_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    rows = [f'"{name}",2,583182462,291591231,99.7' for name in names]
    header = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"'
    path = written(tmp_path, "\n".join([header, *rows, ""]))
    assert formats_of(path) == ["rocprof-host"]
    with pytest.raises(InputError, match="Give the kernel trace"):
        rocprof.read(path)


def test_kernels_of_a_library_of_collectives_are_kernels(tmp_path: Path) -> None:
    path = written(tmp_path, "Name,Calls,TotalDurationNs\nncclDevKernel_Generic(a*),2,8\n")
    assert formats_of(path) == ["rocprof-stats"]


@pytest.mark.parametrize(
    "header",
    [
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp",
        "Function,Start_Timestamp,End_Timestamp",
    ],
)
def test_traces_of_the_host_are_refused(header: str, tmp_path: Path) -> None:
    assert formats_of(written(tmp_path, header + "\n")) == ["rocprof-host"]


@pytest.mark.parametrize("header", ["Name,Calls", "kernel,measured", "Kernel_Name,Start_Timestamp"])
def test_tables_of_others_are_not_recognised(header: str, tmp_path: Path) -> None:
    assert formats_of(written(tmp_path, f"{header}\na,1\n")) == []


def test_json() -> None:
    found = rocprof.read(JSON / "good")
    assert found.formats == ("rocprof-json",)
    columns = ("kernel", "kernel_class", "measured", "device", "stream", "process")
    assert found.rows.select(columns).rows() == [
        ("gemm(float*)", "gemm(float*)", 123.0, "Example Instinct", 5, 9),
        ("add.kd", "add.kd", 50.0, "Example Instinct", 16, 9),
        ("kernel 10", "kernel 10", 1.0, None, None, 9),
        ("copy HOST_TO_DEVICE", "memcpy", 800.0, "Example Instinct", None, 9),
    ]
    assert found.rows["grid"].to_list() == ["512x4x1", None, None, None]
    assert found.rows["block"].to_list() == ["64x2x1", None, None, None]
    assert found.rows["bytes"].to_list() == [None, None, None, 4096]
    assert [(one.n, one.reason) for one in found.dropped] == [(1, "records without times")]


def test_json_of_several_processes(tmp_path: Path) -> None:
    whole = json.loads((JSON / "good" / "9_results.json").read_text())
    other = json.loads(json.dumps(whole["rocprofiler-sdk-tool"][0]))
    other["metadata"] = {"pid": 10}
    other["kernel_symbols"][0]["formatted_kernel_name"] = "other"
    whole["rocprofiler-sdk-tool"].append(other)
    rows = rocprof.read(written(tmp_path, json.dumps(whole), "x.json")).rows
    assert rows["process"].to_list() == [9] * 4 + [10] * 4
    assert rows["kernel"].to_list()[4] == "other"


def test_json_that_names_no_copies(tmp_path: Path) -> None:
    records = {"memory_copy": [{"operation": 3, "start_timestamp": 1, "end_timestamp": 3}]}
    text = json.dumps({"rocprofiler-sdk-tool": [{"buffer_records": records}]})
    rows = rocprof.read(written(tmp_path, text, "x.json")).rows
    assert rows.select("kernel", "measured").rows() == [("copy DEVICE_TO_HOST", 2.0)]


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (5, "Expected `array`"),
        ([5], "Expected `object`"),
        ([{"buffer_records": []}], "Expected `object`"),
        ([{"buffer_records": {"kernel_dispatch": {}}}], "Expected `array`"),
        ([{"buffer_records": {"kernel_dispatch": [7]}}], "Expected `object`"),
        ([{}], r"no kernel has times \(0 records"),
        (
            [{"buffer_records": {"kernel_dispatch": [{}]}}],
            r"no kernel has times \(1 records without times",
        ),
    ],
)
def test_json_of_other_shapes_is_refused(tool: Any, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"rocprofiler-sdk-tool": tool}), "x.json")
    with pytest.raises(InputError, match=message):
        rocprof.read(path)


def test_json_with_values_of_other_kinds(tmp_path: Path) -> None:
    whole = json.loads((JSON / "good" / "9_results.json").read_text())
    one = whole["rocprofiler-sdk-tool"][0]
    one["kernel_symbols"] = [{"kernel_id": "8"}, 5, {"kernel_id": 8, "kernel_name": 3}]
    one["agents"], one["strings"], one["metadata"] = "many", [], None
    records = one["buffer_records"]["kernel_dispatch"]
    records[0]["dispatch_info"] = []
    records[1]["dispatch_info"]["kernel_id"] = True
    records[1]["start_timestamp"] = "1"
    one["buffer_records"]["memory_copy"].append({"start_timestamp": 1})
    rows = rocprof.read(written(tmp_path, json.dumps(whole), "x.json")).rows
    assert rows["kernel"].to_list() == ["kernel without a name", "kernel 10", "copy HOST_TO_DEVICE"]


def test_json_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    text = (JSON / "good" / "9_results.json").read_text()
    with pytest.raises(InputError, match="not valid JSON .*may be incomplete"):
        rocprof.read(written(tmp_path, text[:-9], "x.json"))


Table = tuple[Sequence[str], Sequence[Sequence[Any]]]
DISPATCH = ("id", "guid", "pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id")
DISPATCH += ("start", "end", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z")
DISPATCH += ("grid_size_x", "grid_size_y", "grid_size_z")
COPY = ("id", "pid", "start", "end", "name_id", "dst_agent_id", "size", "stream_id")


def tables(suffix: str = "_00a1") -> dict[str, Table]:
    dispatches = [
        (1, "g", 9, 2, 8, 1, 1, 5, 9007199254740993000, 9007199254740993123, 64, 2, 1, 512, 4, 1),
        (2, "g", 9, 7, 9, 2, 1, 5, 9007199254740994000, 9007199254740993999, 64, 1, 1, 64, 1, 1),
    ]
    content: dict[str, Table] = {
        "rocpd_kernel_dispatch": (DISPATCH, dispatches),
        "rocpd_info_kernel_symbol": (
            ("id", "kernel_name", "display_name"),
            [(8, "_Z4gemmPf.kd", "gemm(float*)"), ("x", "a", "b"), (9, None, 5)],
        ),
        "rocpd_info_agent": (("id", "name", "product_name"), [(2, "gfx0", "Example Instinct")]),
        "rocpd_memory_copy": (COPY, [(1, 9, 100, 900, 3, 2, 4096, 6)]),
        "rocpd_string": (("id", "string"), [(3, "MEMORY_COPY_HOST_TO_DEVICE")]),
    }
    return {name + suffix: table for name, table in content.items()}


def database(path: Path, content: Mapping[str, Table]) -> Path:
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        for name, (columns, rows) in content.items():
            listed = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TABLE "{name}" ({listed})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        connection.commit()
    return path


def test_a_database(tmp_path: Path) -> None:
    found = rocprof.read(ROCPD)
    assert found.formats == ("rocprof-rocpd",)
    columns = ("kernel", "kernel_class", "measured", "device", "stream", "process", "grid")
    assert found.rows.select(columns).rows() == [
        ("copy HOST_TO_DEVICE", "memcpy", 800.0, "Example Instinct", 6, 9, None),
        ("gemm(float*)", "gemm(float*)", 123.0, "Example Instinct", 5, 9, "512x4x1"),
        ("kernel 9", "kernel 9", None, None, 5, 9, "64x1x1"),
    ]
    assert found.rows["status"].to_list() == [None, None, "negative"]
    assert found.rows["bytes"].to_list() == [4096, None, None]
    written_here = database(tmp_path / "x.db", tables())
    assert rocprof.read(written_here).rows.equals(found.rows)


def test_databases_of_several_processes_and_without_names(tmp_path: Path) -> None:
    both = database(tmp_path / "x.db", tables("_1") | tables("_2"))
    assert len(rocprof.read(both).rows) == 6
    plain = database(tmp_path / "x.db", tables(""))
    assert len(rocprof.read(plain).rows) == 3
    content = tables()
    needed = (("start", "end", "kernel_id"), [(1, 5, 8)])
    few: dict[str, Table] = {"rocpd_kernel_dispatch_00a1": needed}
    rows = rocprof.read(database(tmp_path / "x.db", few)).rows
    assert rows.select("kernel", "measured").rows() == [("kernel 8", 4.0)]
    few["rocpd_info_kernel_symbol_00a1"] = (("number",), [(8,)])
    few["rocpd_memory_copy_00a1"] = (("start", "end"), [(2, 8)])
    rows = rocprof.read(database(tmp_path / "x.db", few)).rows
    assert rows.select("kernel", "measured").rows() == [("kernel 8", 4.0), ("copy", 6.0)]
    few["rocpd_memory_copy_00a1"] = (COPY, [])
    assert len(rocprof.read(database(tmp_path / "x.db", few)).rows) == 1
    content["rocpd_kernel_dispatch_00a1"] = (DISPATCH, [])
    content["rocpd_memory_copy_00a1"] = (COPY, [])
    with pytest.raises(InputError, match="the file lists no kernel|no kernel has times"):
        rocprof.read(database(tmp_path / "x.db", content))
    content["rocpd_kernel_dispatch_00a1"] = (("start", "end"), [])
    with pytest.raises(
        InputError, match=r"lacks at least one of the columns start, end and kernel_id\."
    ):
        rocprof.read(database(tmp_path / "x.db", content))


@pytest.mark.shared
def test_real_files(shared_data: Path) -> None:
    folder = shared_data / "tools" / "rocprof"
    found = ingest(folder)
    assert found.formats == ("rocprof-trace", "rocprof-stats", "rocprof-json")
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    counts = dict(found.rows.group_by("file").len().rows())
    assert counts == {
        "results.csv": 56,
        "results.stats.csv": 8,
        "rocprofv3_908_results.first250dispatches.json": 250,
    }
    trace = found.rows.filter(pl.col("file") == "results.csv")
    with (folder / "results.csv").open(newline="") as file:
        assert trace["measured"].to_list() == [
            float(row["DurationNs"]) for row in csv.DictReader(file)
        ]
    # The sums agree with the trace that they sum up.
    sums = found.rows.filter(pl.col("file") == "results.stats.csv")
    by_kernel = trace.group_by("kernel").agg(pl.len().alias("n"), pl.col("measured").sum())
    both = sums.join(by_kernel, on="kernel", suffix="_of_trace")
    assert len(both) == 8
    assert both["count"].to_list() == both["n"].to_list()
    total = both["measured"] * both["count"]
    assert total.to_list() == pytest.approx(both["measured_of_trace"].to_list())


@pytest.mark.shared
def test_a_real_json_file(shared_data: Path) -> None:
    path = shared_data / "tools" / "rocprof" / "rocprofv3_908_results.first250dispatches.json"
    records = json.loads(path.read_text())["rocprofiler-sdk-tool"][0]["buffer_records"]
    rows = rocprof.read(path).rows
    assert rows["measured"].sum() == sum(
        one["end_timestamp"] - one["start_timestamp"] for one in records["kernel_dispatch"]
    )
    assert set(rows["device"]) == {"AMD Instinct MI350X"}
    assert rows["kernel"].n_unique() == 3
    assert rows["measured"][0] == 2840.0


# The Chrome trace of rocprof 1.x

CHROME = FIXTURES / "rocprof-chrome" / "good" / "results.json"


def test_a_chrome_trace() -> None:
    found = rocprof.read(CHROME)
    assert found.formats == ("rocprof-chrome",)
    keys = ("kernel", "kernel_class", "measured", "unit", "start", "device_id", "stream")
    name = "scale(float*, int) [clone .kd]"
    assert found.rows.select(keys).rows() == [
        (name, name, 31350.0, "ns", 9005001, "1", "3"),
        ("CopyHostToDevice", "memcpy", 12500.0, "ns", 8000000, None, "0"),
    ]
    assert [(one.reason, one.n) for one in found.dropped] == [("calls on the host", 1)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"EndNs":"9036351"', '"EndNs":"9005000"', "events without times"),
        ('"EndNs":"9036351"', '"EndNs":"soon"', "events without times"),
        ('"GPU1"', '"CPU"', "calls on the host"),
    ],
)
def test_chrome_events_that_cannot_be_used(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    text = CHROME.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    found = rocprof.read(path)
    assert found.rows["kernel"].to_list() == ["CopyHostToDevice"]
    assert message in [one.reason for one in found.dropped]
    path.write_text(text.replace(old, new).replace('"COPY"', '"CPU"'))
    with pytest.raises(InputError, match="no kernel "):
        rocprof.read(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"otherData"', "otherData", "not valid JSON"),
        ('{ "traceEvents":[{}', '{ "traceEvents":[7', "not in the form that rocprof writes"),
    ],
)
def test_damaged_chrome_traces_are_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_text(CHROME.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        rocprof.read(path)


@pytest.mark.parametrize(
    "header",
    [
        "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,vgpr,SQ_WAVES",
        '"Correlation_Id","Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"',
    ],
)
def test_counters_without_times_are_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(header + "\n" + ",".join("1" for _ in header.split(",")) + "\n")
    with pytest.raises(InputError, match="counters of kernels, but no times"):
        rocprof.read(path)


# The database of rocmProfileData

RPD = FIXTURES / "rocprof-rpd" / "good" / "trace.rpd"


def test_a_database_of_rocm_profile_data() -> None:
    found = rocprof.read(RPD)
    assert found.formats == ("rocprof-rpd",)
    keys = ("kernel", "kernel_class", "measured", "unit", "start", "device_id", "stream")
    name = "scale(float*, int)"
    assert found.rows.select(keys).rows() == [
        ("CopyHostToDevice", "memcpy", 5.0, "ns", 9007199254740993, 2, 0),
        (name, name, 123.0, "ns", 9007199254741000, 2, 1),
        ("FillBuffer", "memset", 7.0, "ns", 9007199254741300, 2, 1),
    ]
    assert [(one.reason, one.n) for one in found.dropped] == [("barriers and markers", 1)]


def test_a_database_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.rpd"
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute('CREATE TABLE rocpd_op (id INTEGER, start INTEGER, "end" INTEGER)')
        base.execute("CREATE TABLE rocpd_string (id INTEGER, string TEXT)")
        base.commit()
    with pytest.raises(InputError, match="lack columns that rocmProfileData writes"):
        rocprof.read(path)


def test_a_name_twice_in_a_record_of_json_is_refused(tmp_path: Path) -> None:
    (good,) = (JSON / "good").glob("*.json")
    text = good.read_text()
    old = '"start_timestamp": 9007199254740993000'
    assert text.count(old) == 1
    path = written(tmp_path, text.replace(old, f'{old}, "start_timestamp": 1'), "results.json")
    with pytest.raises(InputError, match=r"names 'start_timestamp' twice\. Copy the file again\."):
        rocprof.read(path)
    for name in ("start_timestamp", "end_timestamp", "operation", "dispatch_info"):
        values = ("1", "2") if name != "dispatch_info" else ("{}", "{}")
        records = f'[{{"{name}": {values[0]}}}, {{"{name}": {values[0]}, "{name}": {values[1]}}}]'
        with pytest.raises(InputError, match=f"names '{name}' twice. Copy the file again."):
            of_json._records(Source(path), msgspec.Raw(records.encode()))
