"""Tables within text files."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core import sheet as sheets
from errcomp.readers.core.sheet import sheet_of, to_numbers


def test_blanks_commas_at_the_end_and_repeated_headers() -> None:
    lines = [" Layer, Cycles ,", "1, 10 ,", "", " Layer, Cycles ,", "2, 20 ,"]
    sheet = sheet_of("a.csv", lines, first_line=5)
    assert sheet.columns == ("Layer", "Cycles")
    assert sheet.numbers("Cycles").tolist() == [10.0, 20.0]
    assert sheet.lines.tolist() == [6, 9]
    assert sheet_of("a.csv", ["a,b", "1,2,"]).numbers("b").tolist() == [2.0]
    assert sheet_of("a.csv", ["a,b,", "1,2"]).numbers("b").tolist() == [2.0]


def test_fields_with_line_breaks_keep_their_line() -> None:
    sheet = sheet_of("a.csv", ["a,b", '"x', 'y",1', "z,2"])
    assert sheet.texts("a") == ["x\ny", "z"]
    assert sheet.lines.tolist() == [2, 4]


def test_columns_without_a_name() -> None:
    assert sheet_of("a.csv", [",a,", "0,1,"]).columns == ("column_1", "a")
    assert sheet_of("a.csv", ["a,a,a_2", "0,1,2"]).columns == ("a", "a_2", "a_2_2")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,b", "1"], r"line 2: 1 field, but the header has 2"),
        (["a,b", "1,2,3"], r"line 2: 3 fields"),
        (["a,b", '1,"2'], r"line 2: a quote is not closed"),
        (["a,b"], r"a header without rows"),
        (["", " "], r"not a table"),
        (["a,b", "1,2"], r"line 1: missing column 'c'. Columns found: a, b"),
    ],
)
def test_what_is_no_table(lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=rf"^a\.csv: {message}"):
        sheet_of("a.csv", lines, needed=["c"] if "missing" in message else ())


def test_numbers() -> None:
    texts = ["1", " 2.5 ", "1,205.50", "12,345,678", "-nan", "N/A", "NONE", "", "-", "1e-3", "inf"]
    found, bad = to_numbers(pl.Series(texts))
    wanted = [1, 2.5, 1205.5, 12345678, *[np.nan] * 5, 1e-3, np.inf]
    np.testing.assert_array_equal(found, wanted)
    assert not bad.any()
    _, bad = to_numbers(pl.Series(["1,5", "x", "1_000", "0x10", "١"]))
    assert bad.all()


def test_a_field_that_is_no_number_is_named() -> None:
    sheet = sheet_of("a.csv", ["a", "1", "x", "n/a"])
    with pytest.raises(InputError, match=r"a must be a number, got 'x' in line 3\. "):
        sheet.numbers("a")
    part = sheet.take(np.array([True, False, True]))
    assert np.isnan(part.numbers("a")[1])
    with pytest.raises(InputError, match=r"a must be a number, got 'n/a' in line 4"):
        part.numbers("a", required=True)
    with pytest.raises(
        InputError,
        match=r"missing column 'b'\. Columns found: a\. The file may be from a newer version of "
        "the tool,",
    ):
        part.texts("b")


def test_long_fields() -> None:
    text = "1;" * 100_000
    sheet = sheet_of("a.csv", ["a,b", f'"{text}",1'])
    assert sheet.texts("a") == [text]


def test_parts_of_any_size_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a,b,", "1, x,", "", "a,b,", '2,"y', 'z",', "3,w,", "4,v,"]
    for some in (1, 2, 3, 100):
        monkeypatch.setattr("errcomp.readers.core.sheet._LINES", some)
        sheet = sheet_of("a.csv", iter(lines), first_line=10)
        assert sheet.numbers("a").tolist() == [1, 2, 3, 4]
        assert sheet.texts("b") == ["x", "y\nz", "w", "v"]
        assert sheet.lines.tolist() == [11, 14, 16, 17]
        with pytest.raises(InputError, match=r"^a\.csv: line 12: 1 field, but the header has 2\."):
            sheet_of("a.csv", ["a,b", "1,2", '"3",4', "5"], first_line=9)
        with pytest.raises(InputError, match=r"^a\.csv: line 3: 3 fields, but the header has 2"):
            sheet_of("a.csv", ["a,b", "1,2", "3,4,5"])


@pytest.mark.parametrize("seed", range(200))
def test_lines_parsed_at_once_give_the_table_of_lines_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    cells = ["1", "x y", "", " z", "a,b", 'say ""hi""', "two\nlines"]

    def row() -> str:
        return ",".join(
            f'"{cell}"' if rng.random() < 0.6 or {",", '"', "\n"} & {*cell} else cell
            for cell in rng.choices(cells[: rng.choice([4, 5, 7])], k=2)
        )

    header = rng.choice(["a,b", '"a","b"', '"a",b', "a,b,"])
    body = [rng.choice([row(), row(), row(), "", header, "1,2"]) for _ in range(9)]
    if rng.random() < 0.2:
        body.insert(rng.randrange(9), rng.choice(['"open,1', "1", "1,2,3", '1,"2"x', "1,2,"]))
    lines = "\n".join([header, *body]).split("\n")

    def found() -> Any:
        try:
            sheet = sheet_of("a.csv", lines)
        except InputError as error:
            return str(error)
        return sheet.frame.to_dict(as_series=False), sheet.lines.tolist()

    monkeypatch.setattr(sheets, "_LINES", rng.randint(1, 6))
    at_once = found()
    monkeypatch.setattr(sheets._Table, "_one_a_line", lambda self, lines: None)
    assert at_once == found()


def test_other_columns_get_names_of_their_own() -> None:
    sheet = sheet_of("a.csv", ["Time (us),a b,A-B,a.b,c", "1,2,3,4,5"])
    assert sheets.other_keys(sheet, ["Time (us)", "c"]) == {
        "a_b": "a b",
        "a_b_2": "A-B",
        "a_b_3": "a.b",
    }


def test_the_column_of_a_key_must_exist() -> None:
    sheet = sheet_of("a.csv", ["kernel,us", "x,1"])
    value = sheets.Value("time", "us", predicted="us")
    with pytest.raises(
        InputError, match=r"^a\.csv: missing column 'kernels'\. Columns found: kernel, us\.$"
    ):
        sheets.rows_of(sheet, [value], {"op": "kernel", "kernel": "kernels"})
