"""The first rows of a dataframe, as a table."""

from __future__ import annotations

import polars as pl

from errcomp.report.preview import preview
from errcomp.report.text import render


def test_what_is_shown_and_what_is_named() -> None:
    n = 12
    wide = {f"c{i}": range(n) for i in range(8)}
    frame = pl.DataFrame(
        {**wide, "kernel": ["k" * 50] * (n - 1) + [None], "unit": ["ms"] * n, "none": [None] * n}
    )
    text = render(preview(frame, "The end."))
    assert text.splitlines()[:3] == [
        "12 rows, 11 columns",
        "",
        f"{'kernel':36}  c0  c1  c2  c3  c4  c5",
    ]
    assert f"{'k' * 35}…   9   9" in text
    assert "The same in all rows: unit=ms." in text
    assert "Shown are the first 10 of 12 rows.\nFurther columns: c6, c7.\nThe end." in text


def test_one_row_has_all_its_columns() -> None:
    text = render(preview(pl.DataFrame({"run": ["a"], "measured": [None], "count": [2.5]})))
    assert text.splitlines()[0] == "1 row, 3 columns"
    assert "same in all rows" not in text
    assert text.splitlines()[-1].split() == ["2.5", "a"]


def test_missing_values_are_dashes() -> None:
    text = render(preview(pl.DataFrame({"run": ["a", None], "measured": [None, 2.0]})))
    assert [line.split() for line in text.splitlines()[-2:]] == [["–", "a"], ["2", "–"]]
