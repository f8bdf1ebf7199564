"""Which columns of a table of measurements are keys."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.tables.memory.measurements import measurements_of, numbered

N = 12


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("device", ["a", "b"] * 6, "key"),
        ("size_gb", [0.5, 1.5, 2.5, 0.5] * 3, "key"),
        ("size_gb", list(np.linspace(0.5, 2, N)), "quantity"),
        ("seq_len", list(range(10, 10 + 3 * N, 3)), "key"),
        ("row_number", list(range(N)), "repeat"),
        ("number", list(range(5, 5 + N)), "id"),
        ("batch", list(range(1, 1 + N)), "key"),
        ("kernel_name", [f"k{i}" for i in range(N)], "key"),
        ("job_id", [7, 3, 9, 4, 1, 8, 2, 12, 15, 11, 22, 21], "id"),
        ("uuid", [f"x{i}" for i in range(N)], "id"),
        ("date", ["2026-01-01"] * N, "time"),
        ("batch", list(range(1_613_330_854, 1_613_330_854 + N)), "time"),
        ("repeat", [1, 2] * 6, "repeat"),
        ("predicted_ms", [1, 2] * 6, "quantity"),
        ("ttft_p99", [1.5, 2.5] * 6, "quantity"),
        ("note", ["a=1; b=2"] * N, "part"),
        ("flag", [True, False] * 6, "key"),
    ],
)
def test_a_column_is_sorted_out(name: str, values: list[object], kind: str) -> None:
    table = measurements_of({name: values, "ms": np.arange(1.0, N + 1)}, measured="ms")
    kinds = {part.name.partition(":")[0]: part.kind for part in table.parts}
    kinds |= dict.fromkeys(table.others, "quantity") | dict.fromkeys(table.keys, "key")
    assert kinds == {name: kind}


def test_parts_of_a_text_are_in_the_order_of_numbers() -> None:
    texts = ["c=10; image=x:1", "c=9; image=x:1; rest", None, "c=10; c=3"]
    table = measurements_of({"note": texts, "ms": [1.0, 2.0, 3.0, 4.0]}, measured="ms")
    parts = {part.name: [part.values[i] for i in part.codes] for part in table.parts}
    assert parts == {
        "note:c": ["10", "9", None, "10; 3"],
        "note:image": ["x:1", "x:1", None, None],
        "note:(rest)": [None, "rest", None, None],
    }
    assert table.parts[0].values[1:] == ["9", "10", "10; 3"]


def test_named_keys_are_the_only_ones() -> None:
    data = {"a": [1, 1, 2], "b": [1, 2, 3], "ms": [1.0, 2.0, 3.0]}
    table = measurements_of(data, measured="ms", keys=["a"])
    assert table.group.tolist() == [0, 0, 1]
    assert [(part.name, part.kind) for part in table.parts] == [("b", "text")]


def test_missing_values_of_a_key_are_equal() -> None:
    table = measurements_of({"a": [None, "x", None], "ms": [1.0, 2.0, 3.0]}, measured="ms")
    assert table.group.tolist() == [0, 1, 0]
    assert table.key(0) == {}


def test_a_unit_stands_in_its_column() -> None:
    table = measurements_of({"unit": ["ms", "ms"], "t": [1.0, 2.0]}, measured="t")
    assert (table.unit, list(table.keys)) == ("ms", [])


def test_many_columns_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 1000, 50) for _ in range(12)]
    twice = [np.r_[column, column] for column in columns]
    found = numbered(twice, 100)
    assert (found[:50] == found[50:]).all()
    assert len(set(found.tolist())) == 50
