"""Files of a folder that do not all say the same things, merged into one result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest, same_captures
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format
from errcomp.readers.core.source import Source

KERNEL: dict[str, Any] = {"tool": "X", "level": "kernel", "quantity": "time", "unit": "us"}


def merged(folder: Path, **files: list[dict[str, Any]]) -> Output:
    """Ingest a folder of files with these rows."""
    for name in files:
        (folder / name).write_text("X")

    def read(source: Source) -> Output:
        return output(source.name, "x-log", [{**KERNEL, **row} for row in files[source.path.name]])

    form = Format(
        name="x-log",
        tool="X",
        files="log",
        levels=("kernel", "model"),
        quantities=("time",),
        units=("us",),
        gives="measurements",
        sample="",
        recognise=lambda source: source.head == b"X",
        read=read,
    )
    return ingest(folder, among=[form])


def test_a_file_without_runs_is_a_run_and_its_kernels_ran_once(tmp_path: Path) -> None:
    found = merged(
        tmp_path,
        trace=[
            {"kernel": "mm", "kernel_class": "gemm", "count": 3, "run": "1", "measured": 2.0},
            {"level": "model", "run": "1", "measured": 9.0},
        ],
        table=[{"kernel": "mm", "measured": 5.0}, {"kernel": "add", "measured": 1.0}],
    )
    assert found.rows["run"].to_list() == [None, None, "1", "1"]
    kernels = found.kernels
    assert kernels.run.tolist() == ["table", "table", "1"]
    assert kernels.count.tolist() == [1, 1, 3]
    assert kernels.kernel_class.tolist() == ["mm", "add", "gemm"]
    totals = kernels.totals()
    assert (totals.measured.tolist(), totals.run_measured.tolist()[1]) == ([6.0, 6.0], 9.0)
    assert totals.run_measured[0] != totals.run_measured[0]
    assert found.runs.run.tolist() == ["1"]


def test_what_was_measured_on_is_no_key_of_kernels_runs_and_histories(tmp_path: Path) -> None:
    row = {"kernel": "mm", "run": "1", "version": "1.0", "measured": 2.0}
    found = merged(tmp_path, a=[row, {**row, "version": "1.1"}, {**row, "level": "model"}])
    assert found.rows["reference"].to_list() == ["unknown"] * 3
    assert found.rows.columns.index("reference") == found.rows.columns.index("status") + 1
    kernels = found.of(level="kernel")
    for table in (found.kernels, found.runs, kernels.history):
        assert "reference" not in table.native.columns


def test_a_kernel_outside_the_runs_of_its_own_file_is_refused(tmp_path: Path) -> None:
    found = merged(
        tmp_path,
        a=[{"kernel": "mm", "run": "1", "measured": 2.0}, {"kernel": "mm", "measured": 2.0}],
        b=[{"kernel": "mm", "measured": 5.0}],
    )
    with pytest.raises(InputError, match="run is missing in row 2"):
        _ = found.kernels


def capture(name: str, form: str, *rows: tuple[str, int, float], **keys: str) -> Output:
    return output(
        name,
        form,
        [{**KERNEL, "kernel": k, "count": n, "measured": time, **keys} for k, n, time in rows],
    )


LAUNCHES = (("mm", 1, 2.0), ("mm", 1, 4.0), ("add", 1, 1.0))
SUMS = (("mm", 2, 3.0), ("add", 1, 1.0))


def test_files_of_one_capture_are_said() -> None:
    export = capture("run/a.sqlite", "x-export", *LAUNCHES)
    trace = capture("run/trace.csv", "x-tables", *LAUNCHES)
    # Rounded, in another unit, and without one kernel.
    sums = capture("run/sum.csv", "x-tables", ("mm", 2, 0.0030001), unit="ms")
    note = (
        "run/a.sqlite, run/trace.csv, run/sum.csv hold the same kernels with the same times, so "
        "they are probably exports of one profile. Together, they count each kernel more than "
        "once. Keep one: --where file=run/a.sqlite."
    )
    assert same_captures([export, trace, sums]) == (note,)
    others = [capture(f"more/{form}", form, *SUMS) for form in ("x-export", "x-tables")]
    (both,) = same_captures([export, trace, *others])
    assert both.startswith("run/a.sqlite, run/trace.csv hold")
    assert "exports of one profile (here and in 1 more folder). Together, they count" in both


@pytest.mark.parametrize(
    "other",
    [
        capture("run/b.csv", "x-export", *LAUNCHES),  # a repeat, or another rank
        capture("other/b.csv", "x-tables", *LAUNCHES),
        capture("run/b.csv", "x-tables", *LAUNCHES, tool="Y"),
        capture("run/b.csv", "x-tables", *LAUNCHES, unit="cycles"),
        capture("run/b.csv", "x-tables", ("mm", 2, 3.1), ("add", 2, 1.0)),
        capture("run/b.csv", "x-tables", ("add", 1, 1.0), ("mul", 1, 1.0), ("div", 1, 1.0)),
        capture("run/b.csv", "x-tables", *LAUNCHES, level="collective"),
        output("run/b.csv", "x-tables", [{**KERNEL, "level": "model", "measured": 1.0}]),
    ],
)
def test_other_files_are_not_of_one_capture(other: Output) -> None:
    assert same_captures([capture("run/a.sqlite", "x-export", *LAUNCHES), other]) == ()


def test_many_equal_files_have_another_reason() -> None:
    found = [capture(f"run/{i}", f"x-{i}", *SUMS) for i in range(9)]
    assert same_captures(found) == ()
    assert len(same_captures(found[1:])) == 1


@pytest.mark.shared
@pytest.mark.parametrize(
    "names",
    [
        ("nsys/algo23/capture.trimmed.sqlite", "nsys/algo23/cuda_gpu_trace.csv"),
        ("ncu/algo23/details.csv", "ncu/algo23/raw.csv"),
        ("rocprof/results.csv", "rocprof/results.stats.csv"),
    ],
)
def test_real_captures(names: tuple[str, str], shared_data: Path) -> None:
    found = [replace(ingest(shared_data / "tools" / name), files=(name,)) for name in names]
    (note,) = same_captures(found)
    assert note.startswith(f"{', '.join(names)} hold")


def test_copies_are_said(tmp_path: Path) -> None:
    text = "sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n"
    for name in ("train/a.log", "test/a.log", "b.log", "c.log", "other.log"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("1200", "1300") if name == "other.log" else text)
    found = ingest(tmp_path)
    (note,) = (note for note in found.notes if "byte-for-byte" in note)
    assert note == (
        "b.log and c.log and test/a.log and 1 more are byte-for-byte the same file: their rows "
        "are counted once per copy. Do not test a model on one copy after training it on "
        "another."
    )
    (tmp_path / "alone").mkdir()
    (tmp_path / "other.log").rename(tmp_path / "alone" / "a.log")
    assert ingest(tmp_path / "alone").notes == ()
