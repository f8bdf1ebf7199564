"""Columns that match the rows of several tools, and those that name the tool."""

from __future__ import annotations

import pytest

from errcomp.tables.configurations import RUN_KEYS, VARIANT_KEYS, cannot_match


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("trace", [["a.csv"], ["b.csv", "b.csv"]], True),
        ("trace", [["a.csv"], ["a.csv"]], False),
        ("trace", [["a.csv", "c.csv"], ["b.csv"]], False),
        ("trace", [["a.csv"], ["b.csv"], ["b.csv", "c.csv"]], False),
        ("device", [["H100"], ["L4"]], False),
        ("precision", [["fp16"], ["fp32"]], False),
    ],
)
def test_a_column_with_one_value_for_each_tool_matches_nothing(
    name: str, values: list[list[str]], expected: bool
) -> None:
    assert cannot_match(name, values) is expected


def test_variants_say_what_was_run() -> None:
    assert set(VARIANT_KEYS) < set(RUN_KEYS)
