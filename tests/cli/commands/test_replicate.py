"""``errcomp replicate survey``: the tables printed, one written, or all in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.claims.replicate import Cell, Replication, Status

Run = Callable[..., Any]


def cell(row: str, status: Status) -> Cell:
    return Cell("table8_vidur", "Table 8", "second", row, "vllm", "53", 53.0, "count", status,
                "a rule", "", 0)  # fmt: skip


@pytest.fixture(autouse=True)
def result(monkeypatch: pytest.MonkeyPatch) -> Replication:
    """Have two cells at once instead of all of them."""
    found = Replication((cell("Requests", "reproduced"), cell("Latency", "not reproduced")))
    monkeypatch.setattr("errcomp.claims.replicate.replicate_survey", lambda: found)
    return found


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, result: Replication) -> list[Path]:
    """Say which folders would be written, instead of writing them."""
    folders: list[Path] = []

    def write(path: Path, given: Replication) -> tuple[int, str]:
        assert given is result
        folders.append(path)
        return 44, "drawing figures needs matplotlib"

    monkeypatch.setattr("errcomp.claims.view.replication_folder.write_folder", write)
    return folders


def test_a_name_without_suffix_is_a_folder_and_the_count_is_printed(
    run: Run, written: list[Path], tmp_path: Path
) -> None:
    ran = run("replicate", "survey", "-o", tmp_path / "survey")
    assert (ran.code, written) == (0, [tmp_path / "survey"])
    assert f"wrote {tmp_path / 'survey'}: 44 files; start with its README.md" in ran.err
    assert "no figures: drawing figures needs matplotlib" in ran.err
    assert ran.out.startswith("Cells by status\n")
    (tmp_path / "v1.0").mkdir()  # a folder that exists may have a dot in its name
    ran = run("replicate", "survey", "-o", tmp_path / "v1.0", "--json", "--fail-on",
              "not reproduced")  # fmt: skip
    assert (ran.code, written[1:]) == (1, [tmp_path / "v1.0"])
    assert [row["row"] for row in ran.json["rows"]] == ["Requests", "Latency"]


def test_a_folder_of_somebody_else_is_refused_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.claims.replicate.replicate_survey", None)  # not reached
    (tmp_path / "thesis.tex").write_text("years of work")
    ran = run("replicate", "survey", "-o", tmp_path)
    assert (ran.code, "not written by this command: it holds thesis.tex" in ran.err) == (2, True)
    ran = run("replicate", "survey", "--table", "table8_vidur", "-o", tmp_path / "new")
    assert (ran.code, "a folder always gets all tables" in ran.err) == (2, True)
    ran = run("replicate", "survey", "-o", tmp_path / "t.xlsx")
    assert (ran.code, "cannot determine the format from '.xlsx'" in ran.err) == (2, True)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_one_table_is_written_by_suffix(run: Run, written: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "t.tex"
    ran = run("replicate", "survey", "--table", "table8_vidur", "-o", path)
    assert (ran.code, written) == (0, [])
    assert r"\caption{Table 8 (table8\_vidur)}" in path.read_text()
    assert ran.out.startswith("Table 8 (table8_vidur)\n")
