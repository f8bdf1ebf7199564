from __future__ import annotations

import itertools

import numpy as np
import pytest

from errcomp.claims.search import lattice as module
from errcomp.claims.search.keys import Factor
from errcomp.claims.search.lattice import (
    NEVER,
    Lattice,
    as_matrix,
    build_lattice,
    distinct,
    pack,
    unpack,
)


def random_factors(n: int, sizes: tuple[int, ...], seed: int = 0) -> list[Factor]:
    rng = np.random.default_rng(seed)
    factors = []
    for i, size in enumerate(sizes):
        codes = rng.integers(0, size, n)
        codes[:size] = np.arange(size)
        listed = min(5, size // 2) if size > 12 else size // 2
        factors.append(Factor(f"k{i}", list(range(size)), codes, listed))
    return sorted(factors, key=lambda f: -len(f.values))


def row_sets(lattice: Lattice) -> list[bytes]:
    found = []
    for block in lattice.blocks:
        cells = lattice.sets_of_cells(block.rows)[:, lattice.cell_of]
        values = lattice.sets_of_values(block.values)[:, lattice.value_of]
        costs = block.costs(0, len(block.rows))
        for r in range(len(block.rows)):
            found += [
                np.packbits(cells[r] & values[c]).tobytes()
                for c in np.flatnonzero(costs[r] < NEVER)
            ]
    return found


def test_bits_round_trip() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 7, 8, 63, 64, 65, 200):
        sets = rng.random((5, size)) < 0.5
        assert (unpack(pack(sets), size) == sets).all()
        masks = [sum(1 << int(i) for i in np.flatnonzero(row)) for row in sets]
        assert (as_matrix(masks, size) == sets).all()


def test_distinct_with_several_words() -> None:
    rows = np.array([[1, 2], [1, 3], [1, 2], [0, 3]], dtype=np.uint64)
    first, group = distinct(rows, np.array([5, 0, 4, 0]))
    assert sorted(first.tolist()) == [1, 2, 3]
    assert group[0] == group[2]
    assert len(set(group.tolist())) == 3


def test_every_set_of_rows_comes_once() -> None:
    for seed in range(5):
        lattice = build_lattice(random_factors(12, (4, 3, 2), seed), 12)
        found = row_sets(lattice)
        assert len(found) == len(set(found))
        assert lattice.descriptions == 15 * 7 * 3


def test_more_cells_than_a_word_has_bits() -> None:
    factors = random_factors(300, (5, 14, 6), 3)
    for factor in factors:
        factor.listed = 1
    lattice = build_lattice(factors, 300)
    assert lattice.n_cells > 64
    found = row_sets(lattice)
    assert len(found) == len(set(found)) > 1_000


def test_without_keys_there_is_one_subset() -> None:
    lattice = build_lattice([], 4)
    assert row_sets(lattice) == [np.packbits(np.ones(4, dtype=bool)).tobytes()]
    naming, count = lattice.describe(0, 1)
    assert (naming.cost, naming.where, count) == (0, (), 1)


def test_too_many_values_set_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = random_factors(60, (20, 3))
    build_lattice(factors, 60)
    assert [f.complete for f in factors] == [False, True]
    monkeypatch.setattr(module, "_MOST_CROSSED", 50)
    factors = random_factors(60, (20, 3))
    lattice = build_lattice(factors, 60)
    assert factors[0].listed == 1
    monkeypatch.setattr(module, "_MOST_CROSSED", 1)
    factors = random_factors(60, (20, 3))
    lattice = build_lattice(factors, 60)
    assert factors[0].listed == 0
    # A key that is given up does not split the rows any longer.
    assert lattice.n_cells == 1
    assert len(row_sets(lattice)) == 7


@pytest.mark.parametrize("limit", ["_MOST_MERGED", "_MOST_WORK", "_MOST_COSTS"])
def test_too_much_work_sets_a_bound(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    complete = build_lattice(random_factors(40, (6, 5, 3)), 40)
    monkeypatch.setattr(module, limit, 2_000)
    factors = random_factors(40, (6, 5, 3))
    bounded = build_lattice(factors, 40)
    assert not all(f.complete for f in factors)
    assert set(row_sets(bounded)) < set(row_sets(complete))


def test_bounded_unions_keep_only_what_can_be_described() -> None:
    factors = random_factors(30, (6, 4), 2)
    for factor in factors:
        factor.listed = 1
    lattice = build_lattice(factors, 30)
    singles = [{v} for v in range(6)]
    sixes = [*singles, *({0, 1, 2, 3, 4, 5} - s for s in singles), set(range(6))]
    singles = [{v} for v in range(4)]
    fours = [*singles, *({0, 1, 2, 3} - s for s in singles), set(range(4))]
    expected = {
        np.packbits(
            np.isin(factors[0].codes, list(a)) & np.isin(factors[1].codes, list(b))
        ).tobytes()
        for a in sixes
        for b in fours
    } - {np.packbits(np.zeros(30, dtype=bool)).tobytes()}
    assert set(row_sets(lattice)) == expected
    for block in lattice.blocks:
        costs = block.costs(0, len(block.rows))
        for r, c in np.argwhere(costs < NEVER):
            naming, count = lattice.describe(int(block.rows[r]), int(block.values[c]))
            assert naming.cost == costs[r, c]
            assert count >= 1


def test_describe_counts_all_descriptions_of_the_same_rows() -> None:
    # Device 0 has only model 0; device 1 has both models.
    device = Factor("device", ["a", "b"], np.array([0, 1, 1]), 1)
    model = Factor("model", ["x", "y"], np.array([0, 0, 1]), 1)
    lattice = build_lattice([device, model], 3)
    counts = {}
    for block in lattice.blocks:
        for row in block.rows.tolist():
            for value in block.values.tolist():
                naming, count = lattice.describe(row, value)
                counts[naming.where] = count
    assert counts[()] == 1
    assert counts[(("device", ("a",)),)] == 2  # any model, or model x
    assert counts[(("model", ("y",)),)] == 2  # any device, or device b
    assert sum(counts.values()) == lattice.descriptions - 1  # device a with model y is empty


def test_descriptions_of_all_subsets_add_up() -> None:
    factors = random_factors(6, (3, 3, 2, 2), 0)
    lattice = build_lattice(factors, 6)
    counted = sum(
        lattice.describe(row, value)[1]
        for block in lattice.blocks
        for row in block.rows.tolist()
        for value in block.values.tolist()
    )
    empty = 0
    for chosen in itertools.product(*(range(1, 1 << len(f.values)) for f in factors)):
        inside = [mask >> f.codes & 1 for f, mask in zip(factors, chosen, strict=True)]
        empty += not np.logical_and.reduce(inside).any()
    assert empty > 0
    assert counted == lattice.descriptions - empty
