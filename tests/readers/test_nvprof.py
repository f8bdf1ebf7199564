"""Reader of the tables of nvprof."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import nvprof

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
TRACE, SUMMARY = FIXTURES / "nvprof-trace", FIXTURES / "nvprof-summary"


def formats_of(path: Path) -> list[str]:
    return [one.name for one in recognise(Source(path))]


def read(text: str, folder: Path) -> Any:
    path = folder / "nvprof.txt"
    path.write_text(text)
    return nvprof.read(path)


def test_a_trace() -> None:
    found = nvprof.read(TRACE / "good")
    keys = ("kernel_class", "unit", "measured", "start", "stream", "grid", "block")
    assert found.rows.select(keys).rows() == [
        ("memcpy", "us", 4.25, 200500.0, "7", None, None),
        ("void scale<float>(float*, int)", "us", 12.5, 200750.0, "14", "64x2x1", "128x1x1"),
        ("memset", "us", 3.0, 201000.0, "7", None, None),
    ]
    assert set(found.rows.select("tool", "level", "quantity", "device", "process").rows()) == {
        ("nvprof", "kernel", "time", "Quadro X", "41")
    }
    assert [(one.reason, one.n) for one in found.dropped] == [("calls on the host", 1)]


def test_a_trace_as_printed() -> None:
    found = nvprof.read(TRACE / "printed")
    assert found.rows.select("kernel", "unit", "measured", "start", "stream", "grid").rows() == [
        ("[CUDA memcpy HtoD]", "us", 4.25, 1200500.0, "7", None),
        ("void scale<float>(float*, int)", "us", 1500.0, 1200750.0, "14", "64x2x1"),
    ]
    assert [one.n for one in found.dropped] == [1]


def test_a_summary_is_the_mean_of_its_calls() -> None:
    found = nvprof.read(SUMMARY / "good")
    keys = ("kernel", "unit", "measured", "count", "minimum", "maximum")
    assert found.rows.select(keys).rows() == [
        ("void scale<float>(float*, int)", "us", 750.0, 4, 700.0, 800.5),
        ("[CUDA memcpy DtoH]", "us", 500.0, 2, 400.0, 600.0),
    ]
    assert [one.n for one in found.dropped] == [1]


def test_a_summary_as_printed() -> None:
    found = nvprof.read(SUMMARY / "printed")
    keys = ("process", "kernel", "unit", "measured", "count", "minimum", "maximum")
    assert found.rows.select(keys).rows() == [
        ("74", "void scale<float>(float*, int)", "us", 748500.0, 4, 700000.0, 800500.0),
        ("74", "[CUDA memcpy DtoH]", "us", 500.0, 2000, 0.9, 1600.0),
        ("74", "[CUDA memset]", "us", 1200.0, 3, 1100.0, 1300.0),
        ("85", "shift(int*)", "us", 2.0, 1, 2.0, 2.0),
    ]
    assert [one.n for one in found.dropped] == [2]


def test_older_summaries_have_calls_in_a_table_of_their_own() -> None:
    found = nvprof.read(SUMMARY / "cuda7")
    assert found.rows.select("kernel", "measured", "unit", "count").rows() == [
        ("void scale<int=32>(float*)", 4000.0, "us", 300)
    ]


def test_a_program_may_print_much_before(tmp_path: Path) -> None:
    lines = ["==7== NVPROF is profiling process 7, command: ./a", *["loss 0.25"] * 20_000]
    text = "\n".join([*lines, (SUMMARY / "printed" / "summary.txt").read_text()])
    assert len(text) > 1 << 17
    assert len(read(text, tmp_path).rows) == 4


HEADER = '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n'
SHORT = '"Start","Duration","Device","Context","Stream","Name"\n'


@pytest.mark.parametrize(
    "text",
    [
        HEADER + ',%,us,,us,us,us,\n"API calls",100.0,6.0,2,3.0,2.0,4.0,"cudaFree"\n',
        '"Start","Duration","Name","Correlation_ID"\nus,us,,\n0.5,2.0,"cuDeviceGet",1\n',
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
        '"Quadro X (0)","k",2,"ipc","Executed IPC",0.5,0.7,0.6\n',
        "==1== API calls:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n"
        "100.00%  6.0000us         2  3.0000us  2.0000us  4.0000us  cudaFree\n",
    ],
)
def test_calls_of_the_host_and_counters_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"errcomp does not read.*no times of kernels"):
        read(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '"Start","Duration","Name"\n"1","2","k"\n',
        "Start,Duration,Name\nus,us,\n1,2,k\n",
        "Name  Time\nk  1\n",
    ],
)
def test_tables_of_others_are_not_recognised(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert formats_of(path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + '"GPU activities",9,6.0,2,3.0,2.0,4.0,"k"\n', r"line 2: .* unit of 'Avg'"),
        (HEADER + ",%,us,,us,us,ticks,\n" + '"GPU activities",9,6,2,3,2,4,"k"\n', "got 'ticks'"),
        (HEADER + ",%,us,,us,us,us,\n" + '"GPU activities",9,6.0,2,3.0\n', "line 3: 5 fields"),
        (HEADER + ",%,us,,us,us,us,\n" + '"GPU activities",9,6,2,x,2,4,"k"\n', "Avg must be a num"),
        (HEADER + ",%,us,,us,us,us,\n" + '"GPU activities",9,6,2,3,2,4,"k\n', "line 3: a quote"),
        (SHORT + 'us,us,,,,\n1.0,x,"Q (0)","1","7","k"\n', "line 3: Duration must be a number"),
        (SHORT + 'us,us,,,,\n1.0,2.0,,,,"cudaFree"\n', r"no kernel \(1 calls on the host\)"),
        (
            "   Start  Duration  Device  Context  Stream  Name\n1.0ms  2.0us  Q (0)\n",
            "line 2: 3 fields",
        ),
        (
            "   Start  Duration  Device  Context  Stream  Name\n1.0ms  2.0  Q (0)  1  7  k\n",
            "Duration must be a time with its unit, got '2.0'",
        ),
        (
            "Time(%)      Time     Calls       Avg       Min       Max  Name\n"
            "100.00%  1.20000s       300  4.0000ms\n",
            "line 2: a line of the table cannot be read",
        ),
    ],
)
def test_damaged_tables_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(text, tmp_path)


MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "delete", "insert", "double"]),
        st.floats(0, 1),
        st.integers(1, 40),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=4,
)


def mutated(content: bytes, changes: list[tuple[str, float, int, int]]) -> bytes:
    for kind, where, length, byte in changes:
        at = int(where * len(content))
        span = content[at : at + length]
        if kind == "flip":
            content = content[:at] + bytes([byte]) + content[at + 1 :]
        elif kind == "delete":
            content = content[:at] + content[at + length :]
        elif kind == "insert":
            content = content[:at] + bytes([byte]) * length + content[at:]
        else:
            content = content[:at] + span + content[at:]
    return content


@pytest.mark.parametrize(
    "good",
    [
        TRACE / "good" / "trace.csv",
        TRACE / "printed" / "trace.txt",
        SUMMARY / "good" / "summary.csv",
        SUMMARY / "printed" / "summary.txt",
    ],
    ids=lambda path: path.name,
)
@given(changes=MUTATIONS)
def test_mutations_are_read_or_refused(
    good: Path, changes: list[tuple[str, float, int, int]], tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("mutated") / good.name
    path.write_bytes(mutated(good.read_bytes(), changes))
    recognise(Source(path), nvprof.FORMATS)
    with contextlib.suppress(InputError):
        nvprof.read(path)
    for one in nvprof.FORMATS[:2]:
        assert one.read is not None
        with contextlib.suppress(InputError):
            one.read(Source(path))


def test_a_printed_trace_ends_with_its_remarks_and_may_be_interrupted(tmp_path: Path) -> None:
    lines = (TRACE / "printed" / "trace.txt").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "void scale" in line)
    interrupted = [*lines[:at], "loss 0.5", *lines[at:]]
    whole = nvprof.read(TRACE / "printed" / "trace.txt").rows
    assert read("\n".join(interrupted), tmp_path).rows.equals(whole)
    remarks = "Regs: Number of registers"
    ended = read("\n".join([*lines[:at], remarks, *lines[at:]]), tmp_path)
    assert ended.rows["kernel"].to_list() == ["[CUDA memcpy HtoD]"]
    assert ended.dropped == ()


def test_a_printed_summary_may_be_interrupted(tmp_path: Path) -> None:
    lines = (SUMMARY / "printed" / "summary.txt").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "[CUDA memset]" in line)
    found = read("\n".join([*lines[:at], "loss 0.5 after 3 steps", *lines[at:]]), tmp_path)
    assert found.rows.equals(nvprof.read(SUMMARY / "printed" / "summary.txt").rows)
