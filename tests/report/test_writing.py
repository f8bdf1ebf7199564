from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers.plain import csv_frame, read_pairs
from errcomp.report.model import Column, Table
from errcomp.report.writing import FORMATS, SUFFIXES, rendered, write, write_frame
from errcomp.system.formulas import inert, inert_frame, original

Run = Callable[..., Any]

TABLE = Table("A title", [Column("Name", lambda r: r["name"])], [{"name": "a"}], ["a note"])


@pytest.mark.parametrize("suffix", [suffix[1:] for suffix in SUFFIXES])
def test_every_suffix_holds_the_figures(run: Run, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figures.{suffix}"
    ran = run("metrics", "neusight", "--by", "mode", "--figures", "mape", "-o", path)
    assert ran.code == 0
    assert f"wrote {path}" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == "csv":
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        assert sum(int(row["n"]) for row in rows) == 146
    elif suffix == "parquet":
        assert pl.read_parquet(path)["n"].sum() == 146
    elif suffix == "json":
        assert json.loads(path.read_text(encoding="utf-8"))["pooled"]["n"] == 146
    else:
        text = path.read_text(encoding="utf-8")
        assert "10.08" in text
        assert ("\\toprule" if suffix == "tex" else "| --- |") in text


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "text"])
def test_what_is_printed_is_what_is_written(tmp_path: Path, form: str) -> None:
    document = {"rows": [{"name": "a", "value": 0.1}]}
    write(tmp_path / f"t.{form}", document, [TABLE, TABLE])
    text = rendered(form, document, [TABLE, TABLE])
    assert (tmp_path / f"t.{form}").read_bytes().decode() == f"{text}\n"
    assert not text.endswith("\n")


def test_a_form_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(InputError, match=r"'xml'. Use one of: md, tex, csv"):
        rendered("xml", {}, [])


def test_csv_holds_all_digits_and_keeps_what_would_break_it() -> None:
    rows = [
        {"gpu": 'a,"b"\nc', "mape": 0.1 + 0.2, "levels": [0.5, 0.9], "none": float("nan")},
        {"gpu": "d", "mape": 1e-300, "more": True},
    ]
    found = list(csv.DictReader(io.StringIO(rendered("csv", {"rows": rows}, []), newline="")))
    assert float(found[0]["mape"]) == 0.1 + 0.2
    assert float(found[1]["mape"]) == 1e-300
    assert found[0] == {
        "gpu": 'a,"b"\nc', "mape": "0.30000000000000004", "levels": "0.5; 0.9", "none": "",
        "more": "",
    }  # fmt: skip
    assert found[1]["more"] == "True"
    assert rendered("csv", {"rows": []}, []) == ""


FORMULAS = ["=1+1", "+A1", "-O3", "@sum(a)", "\t=1", "\r=1", "＝1", "-1+cmd|' /C calc'!A0"]


@pytest.mark.parametrize("cell", ["a\rb", "a\nb", "a\r\nb", '"', ",", "", " x ", "é😀", None])
def test_any_text_is_one_cell_again(cell: str | None) -> None:
    for row in ({"x": cell}, {"x": cell, "n": 1}):
        text = rendered("csv", {"rows": [row, row]}, [])
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        assert head == list(row)
        assert rows == [["" if cell is None else cell, *(["1"] if "n" in row else [])]] * 2


@pytest.mark.parametrize("name", FORMULAS)
def test_text_of_users_is_no_formula_in_a_spreadsheet(tmp_path: Path, name: str) -> None:
    document = {"rows": [{name: "a", "gpu": name, "parts": [name, "b"]}]}
    write(tmp_path / "t.csv", document, [])
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        head, row = csv.reader(file)
    assert head == [f"'{name}", "gpu", "parts"]
    assert row == ["a", f"'{name}", f"'{name}; b"]
    write(tmp_path / "t.parquet", document, [])
    assert pl.read_parquet(tmp_path / "t.parquet").rows() == [("a", name, f"{name}; b")]


#: Text that survives a CSV table of errcomp: without surrounding space, lines ending in "\n".
TEXTS = st.text("='+-@\t\n＝＋－＠\",;a1.%e \u00a0é", min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and text.strip("\n") == text
)
FORMULA, NUMBER = "=+-@\t\r\n＝＋－＠", "+-0123456789.,eE %"


# The separator of a table is looked for in its first line.
@pytest.mark.slow
@given(
    st.lists(TEXTS | st.none(), min_size=1, max_size=5), TEXTS.filter(lambda text: "\n" not in text)
)
@settings(max_examples=300, deadline=None)
def test_a_table_is_read_as_written_and_holds_no_formula(
    texts: list[str | None], name: str
) -> None:
    frame = pl.DataFrame({name: texts, "n": range(len(texts))}, schema_overrides={name: pl.String})
    text = inert_frame(frame).write_csv()
    names = frozenset({name})
    assert csv_frame(Path("t.csv"), text, names)[0].cast({name: pl.String}).equals(frame)
    for cell in (cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row):
        assert cell[:1] not in [*FORMULA] or not set(cell) - set(NUMBER)


@given(st.text("='+-@\t\r\n＝1.%e ", max_size=8))
@settings(max_examples=400, deadline=None)
def test_one_text_and_a_column_are_escaped_alike(text: str) -> None:
    frame = inert_frame(pl.DataFrame({text: [text]}))
    assert frame.columns == [inert(text)] == frame.to_series().to_list()
    assert original(inert(text)) == text


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "jsonl"])
def test_a_table_of_data_is_read_as_written(tmp_path: Path, suffix: str, run: Run) -> None:
    frame = pl.DataFrame(
        {
            "device": ["=cmd|' /C calc'!A0", "'=1", "-O3", "'quoted'"],
            "@key": ["+a", None, "''=b", "＝c"],
            "predicted": [1.5, 2.0, 3.0, 4.0],
            "measured": [1.0, 2.0, 3.0, 4.0],
        },
        schema_overrides={"device": pl.Categorical},
    )
    path = tmp_path / f"t.{suffix}"
    write_frame(path, frame)
    found = read_pairs(path).native
    assert found.equals(frame.cast({"device": pl.String}))
    if suffix == "csv":
        head, first, *_ = csv.reader(path.read_text(encoding="utf-8").splitlines())
        assert (head[1], first[0]) == ("'@key", "'=cmd|' /C calc'!A0")
    ran = run("metrics", path, "--by", "device", "--json")
    devices = [row["device"] for row in json.loads(ran.out)["rows"]]
    assert sorted(devices) == sorted(frame["device"].cast(pl.String).to_list())


@pytest.mark.extras
def test_numbers_and_other_names_are_what_pandas_reads_again() -> None:
    row = {
        "a": -0.5,
        "b": "-2.3%",
        "c": "+1,024",
        "d": "A-1 = @",
        "e": -1e-300,
        "f": "'x",
        "g": "-1",
    }
    pandas = pytest.importorskip("pandas")
    text = rendered("csv", {"rows": [row]}, [])
    (found,) = pandas.read_csv(io.StringIO(text), dtype={"g": str}).to_dict("records")
    assert found == row


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
    [("t.xlsx", r"cannot determine the format from '\.xlsx'\."), ("t", "a name without suffix")],
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
