from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.claims.search.keys import join
from errcomp.errors import InputError
from errcomp.tables import Pairs


def pairs(rows: list[tuple[Any, ...]], *names: str) -> Pairs:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    n = len(rows)
    return Pairs(
        {
            **columns,
            "measured": [10.0 + i for i in range(n)],
            "predicted": [11.0 + i for i in range(n)],
        }
    )


def test_join_takes_the_configurations_that_all_tools_have() -> None:
    table = join(
        pairs(
            [("t", "a", 1), ("t", "a", 2), ("u", "a", 2), ("t", "b", 1), ("u", "b", 1)],
            "tool",
            "device",
            "batch",
        ),
        ["u", "t"],
        "tool",
    )
    assert table.n == 2
    assert table.columns == {"device": ["a", "b"], "batch": [2, 1]}
    assert table.measured.tolist() == [[12.0, 14.0], [11.0, 13.0]]
    assert table.left_out == {"u": 0, "t": 1}


def test_a_column_of_one_value_in_each_tool_matches_nothing() -> None:
    rows = [("t", "a", "t.csv"), ("t", "b", "t.csv"), ("u", "a", "u.csv"), ("u", "b", "u.csv")]
    table = join(pairs(rows, "tool", "device", "trace"), ["t", "u"], "tool")
    assert table.n == 2
    assert table.ignored == {
        "trace": "constant within each tool, different between tools: not used to match rows"
    }


def test_one_tool_is_not_joined() -> None:
    table = join(pairs([("t", "a"), ("t", "a"), ("u", "a")], "tool", "device"), ["t"], "tool")
    assert (table.n, table.left_out) == (2, {})


def test_without_a_tool_column_one_figure_of_any_name_will_do() -> None:
    data = pairs([("a",), ("b",)], "device")
    assert join(data, [""], "tool").n == join(data, ["mine"], "tool").n == 2
    with pytest.raises(
        InputError,
        match="figures for different tools were given, but the table has no column 'tool'",
    ):
        join(data, ["x", "y"], "tool")


def test_a_table_of_one_tool_needs_no_name() -> None:
    data = pairs([("t", "a"), ("t", "b")], "tool", "device")
    assert join(data, [""], "tool").n == join(data, ["t"], "tool").n == 2
    with pytest.raises(InputError, match="no rows of tool 'x'. Tools in the table: t"):
        join(data, ["x"], "tool")


def test_unknown_tool_is_named_with_those_that_exist() -> None:
    data = pairs([("t", "a"), ("u", "a")], "tool", "device")
    with pytest.raises(InputError, match="no rows of tool 'neu'. Tools in the table: t, u"):
        join(data, ["neu"], "tool")
    with pytest.raises(InputError, match="no rows of tool ''"):
        join(data, [""], "tool")


def test_the_tool_column_can_have_another_name() -> None:
    data = pairs([("t", "a"), ("u", "a")], "simulator", "device")
    table = join(data, ["t", "u"], "simulator")
    assert (table.n, table.columns) == (1, {"device": ["a"]})


def test_what_only_one_tool_states_is_not_matched_by_but_kept() -> None:
    data = pairs(
        [("u", "a", None), ("u", "b", None), ("t", "a", "yes"), ("t", "b", "no")],
        "tool",
        "device",
        "in_training",
    )
    table = join(data, ["u", "t"], "tool")
    assert table.columns == {"device": ["a", "b"], "in_training": ["yes", "no"]}


def test_the_same_configuration_twice_cannot_be_matched() -> None:
    data = pairs([("t", "a"), ("t", "a"), ("u", "a")], "tool", "device")
    with pytest.raises(
        InputError, match=r"tool t has the configuration device=a twice \(rows 1, 2"
    ):
        join(data, ["t", "u"], "tool")


def test_nothing_in_common_or_nothing_to_match_by() -> None:
    with pytest.raises(InputError, match="t, u have no configuration in common"):
        join(pairs([("t", "a"), ("u", "b")], "tool", "device"), ["t", "u"], "tool")
    with pytest.raises(InputError, match="cannot match the rows of t, u: the table has no keys"):
        join(pairs([("t",), ("u",)], "tool"), ["t", "u"], "tool")


def test_quantities_are_no_keys() -> None:
    data = pairs(
        [("a", i, i / 2, 16 * (i % 3), "x" if i else None) for i in range(20)],
        "device",
        "operators",
        "operator_sum",
        "batch",
        "note",
    )
    table = join(data, [""], "tool")
    assert set(table.ignored) == {"operators", "operator_sum", "note"}
    assert "20 different numbers" in table.ignored["operators"]
    assert "fractions" in table.ignored["operator_sum"]
    assert "missing" in table.ignored["note"]


def test_missing_numbers_are_none_and_whole_numbers_integers() -> None:
    table = join(pairs([(8.0,), (float("nan"),), (16.0,)], "batch"), [""], "tool")
    assert table.columns["batch"] == [8, None, 16]
    assert all(v is None or isinstance(v, int) for v in table.columns["batch"])
    assert np.isfinite(table.measured).all()
