"""Several files that are one table."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.readers.plain import read_pairs
from errcomp.readers.rows import is_output
from errcomp.readers.several import as_one_frame, is_pattern, notes_on_table, table_files

pytestmark = pytest.mark.core

ROWS = "device,predicted,measured\nA,11,10\nB,90,100\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "a.csv").write_text(ROWS)
    (runs / "b.csv").write_text("measured,device,predicted\n100,C,95\n")
    (runs / ".notes").write_text("hidden")
    return runs


@pytest.mark.parametrize("end", ["", "/*.csv", "/[ab].csv"])
def test_files_of_a_folder_or_a_pattern_are_one_table(folder: Path, end: str) -> None:
    pairs = ec.read(f"{folder}{end}").pairs
    assert sorted(pairs.predicted.tolist()) == [11.0, 90.0, 95.0]
    assert pairs.column("file").tolist() == ["a", "a", "b"]
    assert pairs.source == f"{folder}{end}"
    assert ec.summarize(f"{folder}{end}", by="file").pooled.n == 3


def test_one_file_gets_no_column(folder: Path) -> None:
    assert ec.read(folder / "a*").pairs.keys == ("device",)


def test_a_column_of_that_name_stays(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"file,predicted,measured\nmy{name},11,10\n")
    assert read_pairs(tmp_path).column("file").tolist() == ["mya", "myb"]


def test_columns_may_hold_numbers_in_one_file_and_text_in_another(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("batch,predicted,measured\n8,11,10\n")
    (tmp_path / "b.csv").write_text("batch,predicted,measured\nmany,90,100\n")
    pairs = read_pairs(tmp_path)
    assert pairs.column("batch").tolist() == ["8", "many"]
    assert pairs.measured.tolist() == [10.0, 100.0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.csv", "device,predicted,measured\nA,11,0\n", "c.csv: measured must be positive, got 0.0"
         " in line 2"),
        ("c.csv", "device,predicted,measured\nA,x,1\n", "c.csv: predicted must be a number, got 'x'"
         " in line 2"),
        ("c.csv", "gpu,predicted,measured\nA,1,1\n",
         "a.csv and .*c.csv have different columns: only one of them has device, gpu"),
        ("c.csv", "device,predicted,measured\nA,11\n", "c.csv: line 2: 2 fields"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_and_its_line(
    folder: Path, name: str, text: str, message: str
) -> None:
    (folder / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_pairs(folder)


def test_files_that_contradict_only_each_other_are_refused(tmp_path: Path) -> None:
    for unit in ("ms", "us"):
        (tmp_path / f"{unit}.csv").write_text(f"predicted,measured,unit\n1,1,{unit}\n")
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path))}: mixed units"):
        read_pairs(tmp_path)


def test_a_pattern_without_a_file(folder: Path) -> None:
    with pytest.raises(InputError, match=r"\*.txt: no file matches this pattern. Check the folder"):
        ec.audit(f"{folder}/*.txt")


def test_an_existing_name_is_no_pattern(tmp_path: Path) -> None:
    path = tmp_path / "run[1].csv"
    path.write_text(ROWS)
    assert not is_pattern(path)
    assert is_pattern(tmp_path / "run[[]1].csv")
    assert not is_pattern(tmp_path / "run[2].csv")
    assert read_pairs(path).n == 2
    assert table_files(path) == []


@pytest.mark.parametrize("change", ["a file of a tool", "another suffix", "a folder"])
def test_other_folders_are_output_of_tools(folder: Path, change: str) -> None:
    assert not is_output(folder)
    if change == "a file of a tool":
        (folder / "c.csv").write_text(
            "tool,level,quantity,unit,predicted,measured,status\nx,model,time,ms,2.5,2,\n"
        )
    elif change == "another suffix":
        (folder / "README.txt").write_text("about")
    else:
        (folder / "more").mkdir()
    assert (table_files(folder) == []) is (change != "a file of a tool")
    assert is_output(folder)


def test_compressed_files_and_json_lines_count(tmp_path: Path) -> None:
    pl.DataFrame({"predicted": [1.0], "measured": [1.0]}).write_ndjson(tmp_path / "a.jsonl")
    assert [file.name for file in table_files(tmp_path)] == ["a.jsonl"]
    (tmp_path / "a.jsonl").rename(tmp_path / "a.csv.gz")
    assert [file.name for file in table_files(tmp_path)] == ["a.csv.gz"]


def test_each_file_that_may_be_cut_off_is_named(folder: Path) -> None:
    assert notes_on_table(folder) == ()
    (folder / "b.csv").write_text("device,predicted,measured\nC,95,100")
    (note,) = notes_on_table(folder)
    assert "b.csv" in note
    assert notes_on_table(folder / "b.csv") == (note,)
    assert notes_on_table(folder / "none.csv") == ()


def test_columns_of_types_that_have_nothing_in_common_are_text() -> None:
    frames = {
        "a.b.csv": pl.DataFrame({"when": [date(2026, 1, 31)], "predicted": [1.5]}),
        "c.csv": pl.DataFrame({"predicted": [2], "when": [True]}),
    }
    found = as_one_frame([*map(Path, frames)], lambda path: frames[path.name])
    assert found.rows() == [("2026-01-31", "1.5", "a"), ("true", "2", "c")]
