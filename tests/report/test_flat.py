from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errcomp.report.writing import flat_columns


def test_an_object_becomes_columns_where_it_stands() -> None:
    rows = [
        {"n": 1, "claim": None, "last": True},
        {"n": 2, "claim": {"metric": "mape", "subset": {"gpu": "A"}, "notes": []}, "last": False},
    ]
    assert flat_columns({"rows": rows}) == {
        "n": [1, 2],
        "claim.metric": [None, "mape"],
        "claim.subset.gpu": [None, "A"],
        "claim.notes": [None, ""],
        "last": [True, False],
    }


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ([0.1 + 0.2, 1], "0.30000000000000004; 1"),
        (("a", None, True), "a; ; True"),
        ([{"code": "tail", "evidence": {"n": 1}}], "tail"),
        ([{"run": "A", "ape": 0.5}, {"run": "B", "ape": None}], "run=A, ape=0.5; run=B, ape="),
        ([[1, 2], [3]], "1 2; 3"),
        ([], ""),
        (math.nan, None),
    ],
)
def test_a_list_is_one_text(cell: Any, text: str) -> None:
    assert flat_columns({"rows": [{"x": cell}]}) == {"x": [text]}


def test_what_is_an_object_in_some_rows_only_is_kept_in_the_others() -> None:
    found = flat_columns({"rows": [{"x": 3.5}, {"x": {"low": 1.0}}, {}]})
    assert found == {"x": [3.5, None, None], "x.low": [None, 1.0, None]}


def test_an_empty_object_needs_no_column_and_a_document_without_rows_is_a_row() -> None:
    assert flat_columns({"rows": [{"n": 1, "weights": {}}]}) == {"n": [1]}
    assert flat_columns({"rows": []}) == {}
    assert flat_columns({"n": 3, "matches": [{"n": 1}, {"n": 2}]}) == {"n": [1, 2]}
    assert flat_columns({"added": 3, "noise": {"sd": 0.1}}) == {"added": [3], "noise.sd": [0.1]}


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
CELL = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), CELL), max_size=4))
def test_no_cell_is_nested_and_columns_are_as_long_as_the_rows(rows: list[dict[str, Any]]) -> None:
    for cells in flat_columns({"rows": rows}).values():
        assert len(cells) == len(rows)
        assert all(cell is None or isinstance(cell, str | bool | int | float) for cell in cells)
