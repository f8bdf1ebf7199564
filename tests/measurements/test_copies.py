"""Sets of rows that state one measurement: where a chain of near values ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.measurements import check
from errcomp.measurements.finding.copies import _agreeing


@pytest.mark.parametrize(
    ("steps", "sets"),
    [
        ([0.0, 0.9], [[0, 1]]),
        ([0.0, 1.1], []),
        ([0.0, 0.9, 1.8], [[0, 1]]),
        ([0.0, 0.5, 1.0, 1.5], [[0, 1, 2]]),
        ([0.9 * i for i in range(7)], [[0, 1], [2, 3], [4, 5]]),
        ([0.4 * i for i in range(8)], [[0, 1, 2], [3, 4, 5], [6, 7]]),
        # A chain after a gap begins anew.
        ([0.0, 0.9, 1.8, 5.0, 5.9, 6.8, 7.7], [[0, 1], [3, 4], [5, 6]]),
    ],
)
def test_a_chain_ends_where_it_is_a_limit_away_from_its_first_row(
    steps: list[float], sets: list[list[int]]
) -> None:
    x = 1e-3 * np.array([steps]).T
    one = np.zeros(len(x), dtype=np.int64)
    free = np.zeros(len(x), dtype=bool)
    # Rounding must not decide.
    limit = 1e-3 * (1 + 1e-9)
    assert [rows.tolist() for rows in _agreeing(one, x, free, limit)] == sets
    # Groups are apart, wherever their rows are in the table.
    twice = _agreeing(np.r_[one + 1, one][::-1], np.r_[x, x][::-1], np.r_[free, free], limit)
    n = 2 * len(x) - 1
    wanted = [sorted(n - len(x) - row for row in rows) for rows in sets]
    wanted += [sorted(n - row for row in rows) for rows in sets]
    assert sorted(rows.tolist() for rows in twice) == sorted(wanted)


def test_chains_agree_in_all_columns_and_missing_values_agree() -> None:
    first = [0.0, 0.9, 1.8, 2.7]
    for second, sets in (
        ([0.0, 0.0, 0.0, 0.0], [[0, 1], [2, 3]]),
        ([0.0, 2.0, 0.0, 0.0], [[2, 3]]),
        ([np.nan] * 4, [[0, 1], [2, 3]]),
    ):
        x = 1e-3 * np.array([first, second]).T
        found = _agreeing(np.zeros(4, dtype=np.int64), x, np.zeros(4, dtype=bool), 1e-3)
        assert [rows.tolist() for rows in found] == sets
    taken = np.array([False, True, False, False])
    found = _agreeing(np.zeros(4, dtype=np.int64), x[:, :1], taken, 1e-3)
    assert [rows.tolist() for rows in found] == [[2, 3]]


def test_a_check_names_the_sets_of_a_chain() -> None:
    rng = np.random.default_rng(0)
    chain = 1.2345 * np.exp(0.9e-6 * np.arange(5))
    again = [2.3456, 3.4567, 4.5678]
    table: dict[str, Any] = {
        "batch": [*range(600), *[600] * 5, *[601, 602, 603] * 2],
        "ms": [*np.exp(rng.normal(size=600)), *chain, *again, *again],
    }
    copies = check(table, measured="ms").copies
    assert [(one.kind, one.rows) for one in copies.sets] == [
        ("equal", (601, 602)),
        ("equal", (603, 604)),
        *(("equal", (row, row + 3)) for row in (606, 607, 608)),
        ("near", (601, 603, 605)),
    ]
    assert (copies.n, copies.extra) == (11, 7)
