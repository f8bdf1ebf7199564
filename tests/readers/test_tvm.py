"""Tuning logs of TVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.learned import tvm

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=tvm.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_mean_of_costs_and_failures() -> None:
    rows = fixture("tvm-autotvm-log").rows
    assert rows.select("config", "measured", "status").rows() == [
        ("5", 0.003, None),
        ("6", None, "build timeout"),
        ("7", 0.003, None),
        ("8", None, "instantiation error"),
        ("9", None, "unknown error (99)"),
        ("10", None, "no time"),
        ("11", None, "no time"),
    ]
    first = rows.row(0, named=True)
    assert first["n_repeats"] == 2
    assert first["measured_spread"] == pytest.approx(0.4714045)
    assert (first["device"], first["version"]) == ("t4", "0.8.dev0")
    assert first["date"] == "2020-09-13T12:26:40Z"


def test_a_log_of_an_old_version() -> None:
    rows = fixture("tvm-autotvm-log", "old_version").rows
    row = rows.row(0, named=True)
    assert (row["kernel"], row["config"], row["measured"]) == ("conv2d", "12", 0.5)
    assert row["device"] == "core-avx2"


def test_the_auto_scheduler() -> None:
    rows = fixture("tvm-ansor-log").rows
    assert rows.select("kernel", "shape", "measured", "status", "device").rows() == [
        ("matmul_add", '[64, 64, "float32"]', 0.5, None, "skylake"),
        ("hash", "[]", None, "runtime error on the device", "cuda"),
        ("no json", "[]", 0.5, None, "cuda"),
    ]
    assert rows["date"].to_list()[2] is None
    assert rows["config"].n_unique() == 2


GOOD = '{"input": ["llvm", "t", []], "config": {"index": 1}, "result": [[1.0], 0, 1, 1]}\n'
ANSOR = '{"i": [[7, "llvm"], []], "r": [[0.5], 0, 1, true], "v": "v0.2"}\n'


def test_workloads_of_other_kinds(tmp_path: Path) -> None:
    rows = tvm.read(text_of(tmp_path, ANSOR)).rows
    assert rows.select("kernel", "shape").rows() == [("7", "[]")]


@pytest.mark.parametrize("bad", ["[]", "7", '{"input": 1}', '{"input": ["a"], "result": []}', "{"])
@pytest.mark.parametrize("good", [GOOD, ANSOR])
def test_what_cannot_be_used(good: str, bad: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2: not (a record of|valid JSON)"):
        tvm.read(text_of(tmp_path, good + bad + "\n"))


@pytest.mark.parametrize("text", ["# no record\n", "no json\n", '{"i": 1, "r": 2}', '{"i": []}'])
def test_what_is_not_recognised(text: str, tmp_path: Path) -> None:
    assert recognise(Source(text_of(tmp_path, text)), tvm.FORMATS) == []


def test_records_of_the_meta_schedule() -> None:
    found = fixture("tvm-meta-schedule-records")
    assert found.along == ("database_workload.json",)
    columns = ("kernel", "workload", "device", "measured", "n_repeats", "status")
    assert found.rows.select(columns).rows() == [
        ("workload 0", 0, "core-x", 0.003, 2, None),
        ("workload 0", 0, "core-x", None, None, "no time"),
        ("workload 1", 1, "sm_99", None, None, "no time"),
    ]
    first, second, third = found.rows.rows(named=True)
    assert first["config"] != second["config"]
    assert first["shape"] == ('[["TENSOR", "float32", [64, 64]], ["TENSOR", "float32", [64, 64]]]')
    assert third["shape"] is None
    assert first["tool"] == "MetaSchedule"


@pytest.mark.parametrize(
    "line", ["[0, [[[], []], [0.1]]]", '["a", [[], [0.1], "llvm", null]]', "[0, 3]", "3"]
)
def test_records_of_the_meta_schedule_that_cannot_be_used(line: str, tmp_path: Path) -> None:
    first = '[0, [[[], []], [0.25], "llvm -mcpu=core-x", null]]\n'
    assert tvm.read(text_of(tmp_path, first)).rows["device"].to_list() == ["core-x"]
    with pytest.raises(InputError, match="line 2: not a record of the meta schedule"):
        tvm.read(text_of(tmp_path, f"{first}{line}\n"))
    assert recognise(Source(text_of(tmp_path, line)), tvm.FORMATS) == []


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    found = ingest(shared_data / "tools" / "tvm", among=tvm.FORMATS)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    assert dict(found.rows.group_by("file").len().rows()) == {
        "ansor_conv2d.json": 1,
        "ansor_matmul.json": 1,
        "autotvm_bert_platinum-8124m.kernel.first200.log": 200,
        "autotvm_bert_t4.kernel.first200.log": 200,
        "autotvm_resnet50_platinum-8124m.graph.log": 53,
    }
    assert found.of(file="ansor_conv2d.json").rows["measured"].to_list() == [0.000429498]
    failed = found.rows.filter(found.rows["status"].is_not_null())
    assert dict(failed.group_by("status").len().rows()) == {
        "build timeout": 24,
        "compile error on the host": 6,
        "instantiation error": 108,
        "runtime error on the device": 5,
    }
    assert found.rows["measured"].max() < 10


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ("[[true], 0, 1.5, 1600000000]", "no time"),
        ("[[0.5, true], 0, 1.5, 1600000000]", "no time"),
        (f"[[1{'0' * 400}], 0, 1.5, 1600000000]", "no time"),
        ("[[0.5], false, 1.5, 1600000000]", "unknown error (False)"),
        ("[[0.5], true, 1.5, 1600000000]", "unknown error (True)"),
    ],
)
def test_what_is_no_number_is_no_time(result: str, status: str, tmp_path: Path) -> None:
    lines = (DATA / "tvm-autotvm-log" / "good").glob("*")
    first = next(lines).read_text().splitlines()[0]
    record = first[: first.index('"result": ') + 10] + result + first[first.index(', "version"') :]
    rows = tvm.read(text_of(tmp_path, first + "\n" + record + "\n", "tuning.log")).rows
    assert rows["status"].to_list() == [None, status]
    assert rows["measured"].to_list() == [pytest.approx(0.003), None]
