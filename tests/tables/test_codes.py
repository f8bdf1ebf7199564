"""Numbers of groups, and groups that further columns split."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.tables.frames import refined, renumbered


@pytest.mark.parametrize("most", [1, 5, 400, 10**12])
def test_numbers_are_those_of_numpy(most: int) -> None:
    rng = np.random.default_rng(most)
    for n in (1, 7, 100):
        numbers = rng.integers(0, most, n)
        expected = np.unique(numbers, return_inverse=True)[1]
        assert renumbered(numbers).tolist() == expected.tolist()
        assert renumbered(numbers).dtype == np.int64


def test_no_rows_have_no_numbers() -> None:
    none = np.empty(0, dtype=np.int64)
    assert renumbered(none).tolist() == []
    assert refined(none, none).tolist() == []


def test_cells_are_pairs_of_numbers_in_their_order() -> None:
    rng = np.random.default_rng(0)
    cell, code = rng.integers(0, 5, 200), rng.integers(0, 7, 200)
    pairs = sorted(set(zip(cell.tolist(), code.tolist(), strict=True)))
    expected = [pairs.index(pair) for pair in zip(cell.tolist(), code.tolist(), strict=True)]
    assert refined(cell, code).tolist() == expected
