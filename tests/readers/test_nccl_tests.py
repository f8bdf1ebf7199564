"""Logs of nccl-tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.collectives import nccl_tests
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=nccl_tests.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_times_and_bandwidths_of_both_placements() -> None:
    found = fixture("nccl-tests-log")
    rows = found.of(quantity="time").rows
    kept = ("collective", "placement", "size_bytes", "measured", "status")
    assert rows.select(kept).rows() == [
        ("all_reduce", "out-of-place", 8, 10.5, None),
        ("all_reduce", "in-place", 8, 10.25, None),
        ("all_reduce", "out-of-place", 16, None, "wrong values: 2"),
    ]
    assert rows.select("ranks", "nodes", "device", "version").unique().rows() == [
        (2, 2, "NVIDIA Made Up", "22706")
    ]
    assert found.of(quantity="bus bandwidth").rows["unit"].unique().to_list() == ["GB/s"]
    assert [one.reason for one in found.dropped] == [
        "in-place or out-of-place operation that the test did not run"
    ]
    assert found.notes == ()


def test_old_columns_with_the_tags_of_a_launcher() -> None:
    found = fixture("nccl-tests-log", "old_columns_tagged")
    rows = found.of(quantity="time").rows
    assert rows["collective"].unique().to_list() == ["reduce_scatter"]
    assert rows["repeat"].to_list() == [1, 1, 2, 2, None, None]
    # The test failed: no value is to be trusted.
    assert rows["measured"].null_count() == 6
    assert rows["status"].unique().to_list() == ["3 values of the run are out of bounds"]
    assert rows["nodes"].unique().to_list() == [1]
    assert found.notes == ("The test failed: it found 3 out-of-bounds values.",)


@pytest.mark.parametrize(
    "tag",
    ["   [1,0]<stdout>:", "    ", "[prterun-node-12@1,0]<stdout>: ", "[1,0][node:12]<stdout>:"],
)
def test_tags_and_blanks_before_the_lines(tag: str, tmp_path: Path) -> None:
    lines = [
        "# Collective test starting: all_reduce_perf",
        "#  Rank  0 Group  0 Pid 1 on  node device  0 [0009:01:00] X100",
        "#  Rank  1 Group  0 Pid 2 on  node device  1 [0019:01:00] X100",
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
        "  1024   256   float   sum   -1   34.5   0.03   0.03   0   34.0   0.04   0.04   N/A",
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 0.03",
    ]
    found = nccl_tests.read(text_of(tmp_path, "".join(f"{tag}{line}\n" for line in lines)))
    rows = found.of(quantity="time").rows
    assert rows.select("collective", "ranks", "placement", "measured").rows() == [
        ("all_reduce", 2, "out-of-place", 34.5),
        ("all_reduce", 2, "in-place", 34.0),
    ]
    assert found.notes == ()


def test_several_runs_of_which_the_last_was_killed() -> None:
    found = fixture("nccl-tests-log", "several_runs_killed")
    rows = found.of(quantity="time", placement="out-of-place").rows
    assert rows.select("run", "collective", "measured").rows() == [
        ("1", "all_gather", 35.06),
        ("2", "all_gather", 36.06),
    ]
    assert [(one.reason, one.n) for one in found.dropped] == [("row that is cut off", 1)]
    assert found.notes == (
        "The last line of the table of run 2 is missing: the test was stopped, or the log is cut "
        "off.",
    )


def test_time_stamps_and_the_time_of_the_cpu() -> None:
    found = fixture("nccl-tests-log", "timestamps_cpu_time")
    rows = found.of(quantity="CPU time").rows
    assert rows.select("placement", "measured", "root").rows() == [
        ("out-of-place", 11.5, 0),
        ("in-place", 11.0, 0),
        ("in-place", 11.25, 0),
    ]
    assert "For 9 rows, the log does not name the collective." in found.notes


OLD = "# size count type redop time algbw busbw error time algbw busbw error\n"
RANKS = "# Rank 0 Pid 1 on a device 0 [0x00] G\n# Rank 1 Pid 2 on a device 1 [0x01] G\n"


@pytest.mark.parametrize(
    ("row", "collective"),
    [
        ("8 2 float sum", "all_reduce"),
        ("16 2 float sum", "reduce_scatter"),
        ("24 2 float sum", None),
        ("16 2 float", None),
        ("16 2 strange sum", None),
        *(
            (f"{2 * width} 2 {name} sum", "all_reduce")
            for width, names in (
                (1, ("int8", "uint8", "f8e4m3", "f8e5m2")),
                (2, ("half", "bfloat16")),
                (4, ("int32", "uint32", "float")),
                (8, ("int64", "uint64", "double")),
            )
            for name in names
        ),
    ],
)
def test_a_collective_is_found_where_one_is_possible(
    row: str, collective: str | None, tmp_path: Path
) -> None:
    text = RANKS + OLD + row + " 1.5 0.1 0.1 0 1.5 0.1 0.1 0\n"
    rows = nccl_tests.read(text_of(tmp_path, text)).rows
    found = rows["collective"].unique().to_list() if "collective" in rows.columns else [None]
    assert found == [collective]


def test_a_number_that_is_none(tmp_path: Path) -> None:
    text = OLD + "8 2 float sum 1.5 0.1 0.1 0 fast 0.1 0.1 0\n"
    with pytest.raises(InputError, match=r"line 2: time must be a number, got 'fast'"):
        nccl_tests.read(text_of(tmp_path, text))


def test_a_header_without_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no predicted or measured value"):
        nccl_tests.read(text_of(tmp_path, OLD))


def test_a_report_in_json() -> None:
    found = fixture("nccl-tests-json")
    rows = found.of(quantity="time").rows
    assert rows.select("collective", "placement", "measured", "status").rows() == [
        ("all_reduce", "out-of-place", 10.5, None),
        ("all_reduce", "in-place", None, "wrong values: 1"),
    ]
    assert rows["ranks"].to_list() == [2, 2]
    assert found.dropped[0].n == 2


REPORT = '{"start_time": "x", "args": 1, "env": [], "config": {"nthreads": 1, "devices": [7]}'


def test_reports_of_other_shapes(tmp_path: Path) -> None:
    rest = ', "results": [{"size": 8, "count": 2, "out_of_place": {"time": true, "alg_bw": 1}}]}'
    with pytest.raises(InputError, match="no predicted or measured value"):
        nccl_tests.read(text_of(tmp_path, REPORT + rest))
    with pytest.raises(InputError, match="expected a list of results"):
        nccl_tests.read(text_of(tmp_path, REPORT + ', "results": {}}'))
    huge = "1" + "0" * 400
    rest = rest.replace("true", huge)
    with pytest.raises(InputError, match="no predicted or measured value"):
        nccl_tests.read(text_of(tmp_path, REPORT + rest))


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "nccl-tests"
    found = ingest(folder, among=nccl_tests.FORMATS)
    assert sorted(one.name for one in found.skipped) == ["SOURCE.md", "echo_README.md"]
    assert len(found.files) == 12
    assert found.dropped == ()
    for path in sorted(folder.glob("*.log")):
        one = nccl_tests.read(path)
        bus = one.of(quantity="bus bandwidth").rows
        stated = float(path.read_text().rpartition("Avg bus bandwidth    :")[2].split()[0])
        # Mean over both placements of the rounded figures of the table.
        assert bus["measured"].mean() == pytest.approx(stated, abs=0.01), path.name
    many = nccl_tests.read(folder / "echo_a100_nccl_128.log").rows
    assert many.select("ranks", "nodes").unique().rows() == [(128, 16)]
    one = nccl_tests.read(folder / "echo_a100_nccl_16.log").of(quantity="time").rows
    assert one["collective"].unique().to_list() == ["all_reduce"]
    assert one["measured"].to_list()[:2] == [34.66, 34.47]
    scatter = nccl_tests.read(folder / "superbench_nccl_reducescatter.log").rows
    assert scatter["collective"].unique().to_list() == ["reduce_scatter"]


@pytest.mark.parametrize("scenario", ["good", "old_columns_tagged", "timestamps_cpu_time"])
@pytest.mark.parametrize("size", ["10x8", "", "1" * 5000])
def test_a_row_with_a_damaged_size_is_counted(scenario: str, size: str, tmp_path: Path) -> None:
    (path,) = (DATA / "nccl-tests-log" / scenario).iterdir()
    text = path.read_text()
    whole = nccl_tests.read(path)
    row = next(line for line in text.splitlines() if re.search(r"\bfloat\b.*\d", line))
    first = re.search(r"(?<![\d\[,])\d+(?=\s+\d+\s+float)", row)
    assert first is not None
    damaged = row[: first.start()] + size + row[first.end() :]
    found = nccl_tests.read(text_of(tmp_path, text.replace(row, damaged, 1), path.name))
    assert len(found.rows) < len(whole.rows)
    lost = {one.reason: one.n for one in found.dropped}
    assert lost["row that is cut off"] == 1
