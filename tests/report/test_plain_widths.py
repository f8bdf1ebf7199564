"""How the columns of a table are split where the terminal is narrow."""

from __future__ import annotations

from errcomp.report.model import Column, Table
from errcomp.report.text import fitting


def headers(width: int, names: tuple[str, ...] = ("aaaa", "bbbb", "cccc")) -> list[list[str]]:
    columns = [
        Column("key", lambda row: "k", key=True),
        *(Column(name, lambda row: "1") for name in names),
    ]
    return [[c.header for c in grid] for grid in fitting(Table("t", columns, [{}]), width)]


def test_columns_that_fit_exactly_stay_together() -> None:
    # Three letters, three times four, and two blanks between columns.
    assert headers(3 + 3 * 4 + 3 * 2) == [["key", "aaaa", "bbbb", "cccc"]]
    assert headers(3 + 3 * 4 + 3 * 2 - 1) == [["key", "aaaa", "bbbb"], ["key", "cccc"]]


def test_each_grid_has_the_same_room() -> None:
    names = ("aaaa", "bbbb", "cccc", "dddd")
    assert headers(3 + 2 * 4 + 2 * 2, names) == [["key", "aaaa", "bbbb"], ["key", "cccc", "dddd"]]


def test_every_grid_has_the_key_and_one_column_at_least() -> None:
    assert headers(1) == [["key", "aaaa"], ["key", "bbbb"], ["key", "cccc"]]
