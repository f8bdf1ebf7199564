from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.report.tables import Column, Table
from errcomp.report.tables.plain import plain
from errcomp.report.tables.text import render
from errcomp.report.tables.writing import write, write_frame

Run = Callable[..., Any]


def table(rows: list[dict[str, Any]], *, notes: tuple[str, ...] = ()) -> Table:
    columns = [
        Column("Name", lambda r: r["name"], key=True),
        Column("Figure", lambda r: r["figure"], right=True),
    ]
    return Table("A title", columns, rows, notes)


def test_figures_are_never_broken_but_continue_below() -> None:
    figures = [
        Column(f"Figure {i}", lambda r, i=i: f"{i}.0 % [1.0, {i}00.0]", right=True)
        for i in range(10)
    ]
    keys = [Column("Key", lambda r: r["key"], key=True)]
    text = render(Table("Wide", [*keys, *figures], [{"key": "a"}, {"key": "b"}]))
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"{i}.0 % [1.0, {i}00.0]" in text for i in range(10))
    assert text.count("\nKey ") > 1


def test_notes_wrap_and_keep_a_figure_with_its_percent_sign() -> None:
    note = " · " + "word " * 17 + "and then 12.34 % of it"
    lines = render(table([], notes=(note,))).splitlines()
    assert max(map(len, lines)) <= 100
    assert any("12.34 %" in line for line in lines)
    assert lines[-1].startswith("   ")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md", "tex"])
def test_every_suffix_holds_the_figures(run: Run, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"audit.{suffix}"
    ran = run("audit", "neusight", "-o", path)
    assert ran.code == 0
    assert f"wrote {path}" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == "csv":
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        assert sum(int(row["n"]) for row in rows) == 146
    elif suffix == "parquet":
        assert pl.read_parquet(path)["n"].sum() == 146
    elif suffix == "json":
        assert json.loads(path.read_text(encoding="utf-8"))["n"] == 146
    else:
        text = path.read_text(encoding="utf-8")
        assert "5.87" in text
        assert ("\\toprule" if suffix == "tex" else "| --- |") in text


def test_latex_and_markdown_escape_what_they_must(tmp_path: Path) -> None:
    rows = [{"name": "a_b|c & 50%", "figure": "≤ 3 × {x}"}]
    write(tmp_path / "t.tex", {}, [table(rows)])
    write(tmp_path / "t.md", {}, [table(rows)])
    assert r"a\_b|c \& 50\% & $\le$ 3 $\times$ \{x\} \\" in (tmp_path / "t.tex").read_text()
    assert r"| a_b\|c & 50% | ≤ 3 × {x} |" in (tmp_path / "t.md").read_text(encoding="utf-8")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")

    class Broken(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write(path, Broken(), [])
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("t.xlsx", "cannot tell the format from '.xlsx'"), ("t", "a name without suffix")],
)
def test_an_unknown_format_names_the_known(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_frame(tmp_path / name, pl.DataFrame({"a": [1]}))


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "no" / "t.json", {}, [])
    (tmp_path / "d.json").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write(tmp_path / "d.json", {}, [])


def test_json_holds_no_nan_and_no_numpy() -> None:
    import numpy as np

    document = {"a": np.float64("nan"), "b": np.arange(2), "c": (np.int64(1), True, None, "x")}
    document["d"] = object
    text = json.dumps(plain({k: v for k, v in document.items() if k != "b"}), allow_nan=False)
    assert json.loads(text)["a"] is None
    assert json.loads(text)["c"] == [1, True, None, "x"]
