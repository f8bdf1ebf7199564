from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import errcomp as ec
from errcomp.claims.replicate import TITLES, Cell, Replication, Status
from errcomp.claims.view import replication_folder
from errcomp.claims.view.replication_folder import write_folder
from errcomp.errors import NotDefinedError

Run = Callable[..., Any]
WITHOUT = ("matplotlib", "matplotlib.artist", "matplotlib.axes", "matplotlib.figure")
FORMS = (".csv", ".md", ".tex")


def cell(table: str, row: str, column: str, printed: str, value: Any, status: Status) -> Cell:
    unit = "fraction" if "%" in printed else "text"
    return Cell(table, "Table 0", "second", row, column, printed, value, unit, status, "mean", "")


@pytest.fixture
def result() -> Replication:
    """Cells of two tables: figures that need all their digits, ranges, words."""
    return Replication(
        (
            cell("table6_neusight", "A_1", "survey", "30%", 0.1 + 0.2, "reproduced"),
            cell("table6_neusight", "B", "survey", "5%", None, "no data"),
            cell("table6_neusight", "C", "survey", "5–6%", (0.05, 0.0625), "not reproduced"),
            cell("error_by_level", "kernel", "low", "2%", 0.01, "not reproduced"),
            cell("error_by_level", "kernel", "high", "3%", 0.2, "not reproduced"),
            cell("error_by_level", "model, with a longer name", "low", "5%", 0.05, "reproduced"),
            cell("error_by_level", "model, with a longer name", "high", "<9%", 0.08, "reproduced"),
            cell("error_by_level", "overhead", "low", "5", None, "no data"),
            cell("error_by_level", "overhead", "high", "10", None, "no data"),
        )
    )


def write_without(path: Path, result: Replication) -> tuple[int, str]:
    """Write a folder as where Matplotlib is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        for name in WITHOUT:
            patch.setitem(sys.modules, name, None)
        return write_folder(path, result)


@pytest.fixture
def bare(result: Replication, tmp_path: Path) -> Path:
    path = tmp_path / "survey"
    n, without = write_without(path, result)
    assert "pip install 'errcomp[figures]'" in without
    assert n == len(list(path.iterdir()))
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(keepends=True)))


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.core
def test_every_table_is_there_in_each_form_and_again_the_same(
    bare: Path, result: Replication
) -> None:
    tables = ("table6_neusight", "error_by_level", "cells_by_status")
    files = {f"{name}{form}" for name in tables for form in FORMS}
    first = contents(bare)
    assert first.keys() == {*files, "README.md", "SHA256SUMS"}
    assert [p.name for p in bare.parent.iterdir()] == ["survey"]
    write_without(bare, result)
    assert contents(bare) == first
    assert first["table6_neusight.md"].startswith(b"**Table 0 (table6\\_neusight)**\n")
    tex = first["table6_neusight.tex"]
    assert tex.startswith(b"% Needs in the preamble: \\usepackage{booktabs,siunitx}\n")
    assert tex.count(rb"\begin{table}") == 1


@pytest.mark.core
def test_the_data_are_the_cells_with_all_their_digits(bare: Path) -> None:
    rows = rows_of(bare / "table6_neusight.csv")
    assert [row["status"] for row in rows] == ["reproduced", "no data", "not reproduced"]
    assert float(rows[0]["recomputed"]) == 0.1 + 0.2
    assert rows[1]["recomputed"] == ""
    assert rows[2]["recomputed"] == "0.05; 0.0625"
    assert rows_of(bare / "cells_by_status.csv")[-1] == {
        "table": "all", "reproduced": "3", "reproduced under another rule": "0",
        "not reproduced": "3", "no data": "3",
    }  # fmt: skip


@pytest.mark.core
def test_the_index_names_every_file_and_what_it_is(bare: Path) -> None:
    text = (bare / "README.md").read_text(encoding="utf-8")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    children = [child for token in tokens for child in token.children or []]
    linked = {child.attrs["href"] for child in children if child.type == "link_open"}
    assert linked == {p.name for p in bare.iterdir()} - {"README.md", "SHA256SUMS"}
    assert TITLES["table6_neusight"] in text
    assert "\n9 printed cells: 3 reproduced, 0 reproduced under another rule, 3 not" in text
    assert "None: drawing figures needs matplotlib" in text
    assert "Seed: 0" in text
    assert re.search(r"errcomp \d+\.\d+.*, Python 3\.\d+\.\d+, numpy \d", text)
    # The checksum that the dataset's own folder states.
    assert "`7ab2fadf3beb87c7e86c50dd9c1aeb2ad11d7c8266e38f5597ab975af4348fb9`" in text
    headers = [c.content for c in children if c.type == "text"]
    columns = rows_of(bare / "table6_neusight.csv")[0].keys()
    told = {name for c in children if c.type == "code_inline" for name in c.content.split(", ")}
    assert columns <= told
    assert "Meaning" in headers


@pytest.mark.extras
def test_figures_are_listed_where_they_can_be_drawn(
    bare: Path, result: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from errcomp.claims.view.replication import levels

    one = [("figure_x", "What it shows", levels(result))]
    monkeypatch.setattr(replication_folder, "_figures", lambda result: iter(one))
    assert write_folder(bare, result) == (13, "")  # over what was written without figures
    found = contents(bare)
    assert {"figure_x.svg", "figure_x.png"} < found.keys()
    line = b"| What it shows | [figure\\_x.svg](figure_x.svg), [figure\\_x.png](figure_x.png) |"
    assert line in found["README.md"]
    assert b", matplotlib 3." in found["README.md"]
    assert b"errcomp[figures]" not in found["README.md"]


@pytest.mark.extras
def test_the_levels_show_printed_and_recomputed_ranges(result: Replication) -> None:
    pytest.importorskip("matplotlib")
    from errcomp.claims.view.replication import levels

    axes = levels(result)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["kernel", "model, with a longer\nname"]
    bars = [(round(b.get_x(), 6), round(b.get_x() + b.get_width(), 6)) for b in axes.patches]
    assert bars == [(2, 3), (5, 9)]
    ranges = [[round(float(x), 6) for x in line.get_xdata()] for line in axes.lines]
    assert ranges == [[1, 20], [5, 8]]
    beside = [text.get_text() for text in axes.texts]
    assert beside.count("not reproduced") == 1
    assert "not drawn (no data, or not errors): 1 more range" in beside
    with pytest.raises(NotDefinedError, match="nothing to draw"):
        levels(Replication(()))


@pytest.mark.slow
@pytest.mark.extras
def test_the_survey_itself_fills_a_folder(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = run("replicate", "survey", "-o", tmp_path / "survey")
    assert (ran.code, "56 files" in ran.err) == (0, True)
    found = contents(tmp_path / "survey")
    drawn = {f"figure_{name}{form}" for name in ("claimed", "levels", "workloads")
             for form in (".png", ".svg")}  # fmt: skip
    tables = {f"{name}{form}" for name in (*TITLES, "cells_by_status") for form in FORMS}
    assert found.keys() == {*drawn, *tables, "README.md", "SHA256SUMS"}
    assert b"\n367 printed cells: 130 reproduced, 39 reproduced under" in found["README.md"]
    assert run("replicate", "survey", "-o", tmp_path / "survey").code == 0
    assert contents(tmp_path / "survey") == found


@pytest.mark.extras
def test_the_figures_are_of_the_audited_tool_and_of_all(
    result: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    pairs = ec.Pairs(
        {
            "predicted": [1.1, 1.2, 1.3, 1.4] * 2,
            "measured": [1.0] * 8,
            "tool": ["neusight"] * 4 + ["other"] * 4,
            "device": ["A", "A", "B", "B"] * 2,
            "mode": ["training"] * 8,
            "model": ["m", "n"] * 4,
        }
    )
    asked: list[Any] = []
    audit = ec.audit

    def audited(*args: Any, **options: Any) -> Any:
        asked.append(options)
        return audit(*args, **options, resamples=99)

    monkeypatch.setattr("errcomp.datasets.load", {"neusight": pairs}.__getitem__)
    monkeypatch.setattr("errcomp.claims.auditing.audit", audited)
    made = {name: (title, axes) for name, title, axes in replication_folder._figures(result)}
    assert {name: title for name, (title, _) in made.items()} == {
        "figure_levels": "Ranges of the error by level, as printed and as recomputed",
        "figure_claimed": "Claimed and recomputed errors of NeuSight, by device and mode",
        "figure_workloads": "Which tool predicts which workload of the NeuSight artifact, and how "
        "well",
    }
    assert asked == [{"tool": "neusight", "by": ["device", "mode"], "seed": 0}]
    claimed, workloads = (made[f"figure_{name}"][1] for name in ("claimed", "workloads"))
    rows = [label.get_text() for label in claimed.get_yticklabels()]
    assert rows == ["B, training  n=2", "A, training  n=2", "all  n=4"]
    assert (workloads.get_ylabel(), workloads.get_xlabel()) == ("tool", "model")
