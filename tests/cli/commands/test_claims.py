"""``errcomp claims`` and the claims of ``errcomp audit``: what is read, and from where."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

PAPER = "| GPU | MAPE |\n|--|--|\n| V100 | 5.2% |\n| H100 | 30% |\n"
PRINTED = "quantity,value,n\nmean,2.0%,12\nmax,50%,12\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "paper.md").write_text(PAPER, encoding="utf-8")
    rows = "".join(
        f"{device},{i},{100 + i % 9 + 20 * (device == 'H100')},100\n"
        for device in ("V100", "H100")
        for i in range(40)
    )
    (tmp_path / "pairs.csv").write_text(f"device,batch,predicted,measured\n{rows}")
    (tmp_path / "printed.csv").write_text(PRINTED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_claims_of_a_table_are_shown_then_written_and_checked(run: Run) -> None:
    argv = ("claims", "extract", "paper.md", "--tool", "mine", "--source", "Paper")
    hint = "Compare the rows with the paper, then write them: --to claims.json"
    preview = run(*argv)
    assert hint in " ".join(preview.out.split())
    assert "wrote" not in preview.err
    written = run(*argv, "--to", "claims.json")
    assert hint not in " ".join(written.out.split())
    assert written.err.endswith("wrote claims.json\n")
    entries = json.loads(Path("claims.json").read_text(encoding="utf-8"))
    assert [one["printed"] for one in entries["claims"]] == ["5.2%", "30%"]
    judged = run("audit", "pairs.csv", "--by", "device", "--claims", "claims.json", "--json").json
    assert [(row["device"], row["claimed_printed"], row["verdict"]) for row in judged["rows"]] == [
        ("H100", "30%", "understated"),
        ("V100", "5.2%", "consistent"),
    ]


@pytest.mark.usefixtures("folder")
def test_printed_figures_come_from_a_file_or_from_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("claims", "forensics", "printed.csv")
    named = run(*argv, "--json")
    assert (named.code, named.json["impossible"], named.json["source"]) == (0, 1, "printed.csv")
    assert run(*argv, "--fail-on", "impossible").code == 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PRINTED.encode())))
    piped = run("claims", "forensics", "-", "--json")
    assert piped.json == {**named.json, "source": "standard input"}
    possible = PRINTED.replace("50%", "5%")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(possible.encode())))
    assert run("claims", "forensics", "-", "--fail-on", "impossible").code == 0


@pytest.mark.usefixtures("folder")
def test_a_figure_without_a_tool_is_that_of_the_only_one(run: Run) -> None:
    text = Path("pairs.csv").read_text(encoding="utf-8")
    first, *rest = text.splitlines()
    rows = [f"{first},tool", *(f"{line},mine" for line in rest)]
    Path("named.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for table, value, tool in (
        ("pairs.csv", "3.9%", ""),
        ("named.csv", "mine=3.9%", "mine"),
    ):
        found = run("claims", "search", table, "--value", value, "--top", "1", "--json")
        assert found.json["figures"][tool]["text"] == "3.9%"
