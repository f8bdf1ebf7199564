"""Tables of measurements as they are read: which rows and columns are used, and what is refused."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError, LeftOutWarning
from errcomp.results import Dropped
from errcomp.tables.memory.measurements import (
    FAILED,
    MISSING,
    in_polars,
    measurements_of,
    once_for_each_tool,
)

GOOD: dict[str, Any] = {
    "device": ["A", "A", "B", "B", "B"],
    "ms": [1.0, None, 2.0, 3.0, np.nan],
    "status": ["OK", None, "crash", " success ", "timeout"],
}


def test_rows_that_failed_or_lack_a_measurement_are_counted() -> None:
    data = {**GOOD, "watts": [5, 6, 7, None, 8]}
    table = measurements_of(data, measured=["ms", "watts", "ms"], line_offset=2, source="m.csv")
    assert (table.measured, table.source, table.n) == (("ms", "watts"), "m.csv", 2)
    assert table.values == pytest.approx(np.array([[1.0, 5.0], [3.0, np.nan]]), nan_ok=True)
    assert table.rows.tolist() == [2, 5]
    assert table.dropped == (Dropped(FAILED, 2, (4, 6)), Dropped(MISSING, 1, (3,)))
    assert table.frame["device"].to_list() == ["A", "B"]
    assert (list(table.keys), table.group.tolist()) == (["device"], [0, 1])
    assert table.key(1) == {"device": "B"}
    # Rows are counted from 1 where lines are unknown.
    assert measurements_of(data, measured="ms").rows.tolist() == [1, 4]


def test_texts_are_numbers_where_all_of_them_are() -> None:
    data = {"a": ["1", " 2e3 ", "inf", "NaN", "-", "", None, "0"], "k": [1] * 8}
    table = measurements_of(data, measured="a")
    assert table.values[:, 0].tolist() == [1.0, 2000.0, np.inf, 0.0]
    assert table.dropped == (Dropped(MISSING, 4, (4, 5, 6)),)
    with pytest.raises(
        InputError, match=r"^m\.csv: a must be a number, got 'fast' in row 2\. Name a column of"
    ):
        measurements_of({**data, "a": ["1", "fast", *"345678"]}, measured="a", source="m.csv")


def test_what_stands_in_a_failed_row_does_not_matter() -> None:
    data = {"ms": ["1", "error", "2"], "status": ["ok", "crash", "ok"]}
    table = measurements_of(data, measured="ms")
    assert table.values[:, 0].tolist() == [1.0, 2.0]
    assert table.dropped == (Dropped(FAILED, 1, (2,)),)


def test_lines_of_a_file_are_called_lines() -> None:
    with pytest.raises(InputError, match=r"must be a number, got 'x' in lines 3, 4\. Name"):
        measurements_of({"ms": ["1", "x", "y"]}, measured="ms", line_offset=2)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"measured": "sm"}, r"^m\.csv: no column 'sm'\. .*device"),
        ({"measured": "ms", "keys": ["gpu"]}, r"^m\.csv: no column 'gpu'\. "),
        ({"measured": "ms", "keys": ["device", "ms"]},
         r"^m\.csv: column 'ms' is given as the measured column and as a key\. Give it once\.$"),
        ({"measured": "list"}, r"^m\.csv: list: its values are lists or similar\. Put each elem"),
        ({"measured": "ms", "keys": ["list"]}, r"^m\.csv: list: its values are lists or similar"),
        ({"measured": "none"}, r"^m\.csv: no row has a value of none\. Name another column\.$"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_used_are_refused(how: dict[str, Any], message: str) -> None:
    data = {**GOOD, "list": [[1], [2], [3], [4], [5]], "none": [None] * 5}
    with pytest.raises(InputError, match=message):
        measurements_of(data, source="m.csv", **how)


def test_columns_of_lists_are_left_out_with_a_warning() -> None:
    data = {"ms": [1.0, 2.0], "one": [[1], [2]], "two": [[1], [2]], "k": [1, 2]}
    with pytest.warns(
        LeftOutWarning,
        match=r"^m\.csv: columns left out: one, two \(its values are lists or similar\)$",
    ):
        table = measurements_of(data, measured="ms", source="m.csv")
    assert (list(table.keys), table.frame.columns) == (["k"], ["ms", "k"])


def test_a_column_without_values_is_neither_key_nor_part() -> None:
    data = {"ms": [1.0, 2.0], "empty": [None, None], "k": [1, 2]}
    table = measurements_of(data, measured="ms", unit="s")
    assert (list(table.keys), table.parts, table.others, table.unit) == (["k"], (), (), "s")


def test_units_that_differ_are_no_unit() -> None:
    for units, unit in ((["ms", None], "ms"), (["ms", "s"], None)):
        assert measurements_of({"ms": [1.0, 2.0], "unit": units}, measured="ms").unit == unit


@pytest.mark.extras
def test_columns_of_several_types_become_text() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "mixed": pandas.Series([1, "b", None], dtype=object),
            "whole": [1, 2, 3],
            "text": pandas.Series(["x", None, "z"], dtype=object),
            "float": [1.5, np.nan, 2.5],
        }
    )
    found = in_polars(nw.from_native(frame))
    assert found["mixed"].to_list() == ["1", "b", None]
    assert found["whole"].to_list() == [1, 2, 3]
    assert found["text"].to_list() == ["x", None, "z"]
    assert found["float"].to_list() == [1.5, None, 2.5]
    assert found.schema["whole"] == pl.Int64
    table = measurements_of(frame.assign(ms=[1.0, 2.0, 3.0]), measured="ms", keys=["mixed"])
    assert [table.key(i) for i in range(3)] == [{"mixed": "1"}, {"mixed": "b"}, {}]


def test_a_measurement_that_every_tool_repeats_is_stated_once() -> None:
    data: dict[str, Any] = {
        "tool": ["a", "a", "a", "b", "b"],
        "level": ["op", "op", "net", "op", "op"],
        "ms": [1.0, 1.0, 1.0, 1.0, 2.0],
        "k": [1, 2, 3, 1, 2],
    }
    named = measurements_of(data, measured="ms", keys=["tool", "level", "k"])
    assert once_for_each_tool(named).tolist() == [True, True, False, False, True]
    only = measurements_of(data, measured="ms", keys=["tool", "k"])
    assert once_for_each_tool(only).tolist() == [True, True, True, False, True]
    assert once_for_each_tool(measurements_of(data, measured="ms", keys=["k"])).all()
