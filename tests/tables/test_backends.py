"""Either backend is asked the same, and answers with a table."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.tables import History, Kernels, Pairs, Table
from errcomp.tables.backends import (
    Content,
    history_of,
    kernels_in_memory,
    kernels_of,
    pairs_in_memory,
    pairs_of,
    stays,
)
from errcomp.tables.engine.history import HistoryRows
from errcomp.tables.engine.kernels import KernelRows
from errcomp.tables.engine.pairs import PairRows, PairTotals

PAIRS: dict[str, Any] = {"predicted": [11.0, 9.0, 5.0], "measured": [10.0, 10.0, 4.0]}
KEYED = {**PAIRS, "device": ["A", "A", "B"]}
KERNELS = {**PAIRS, "kernel_class": ["BMM", "BMM", "VEC"]}
HISTORY = {"version": ["1.9", "1.9", "1.10"], "op": ["Conv"] * 3, "measured": [10.0, 10.2, 11.0]}


def test_pairs_are_those_in_memory_or_stay() -> None:
    inside = Pairs(KEYED)
    assert pairs_of(inside) is inside
    assert isinstance(pairs_of(KEYED), Pairs)
    rows = pairs_of(pl.LazyFrame(KEYED))
    assert isinstance(rows, PairRows)
    assert pairs_of(rows) is rows
    totals = rows.grouped(["device"])
    assert isinstance(totals, PairTotals)
    assert pairs_of(totals) is totals
    assert [stays(one) for one in (inside, rows, totals, KEYED)] == [False, True, True, False]


def test_pairs_answer_with_the_same_groups() -> None:
    inside, rows = (pairs_of(one).grouped(["device"]) for one in (KEYED, pl.LazyFrame(KEYED)))
    for table in (inside, rows):
        assert isinstance(table, Table)
        assert table.grouped(["device"]) is table
        groups = table.groups(["device"])
        assert [group.key for group in groups] == [{"device": "A"}, {"device": "B"}]
        assert [table.take(group.index).n for group in groups] == [2, 1]
        assert table.counts.sum() == table.n == 3
    assert (inside.engine, rows.engine) == ("", "Polars")


@pytest.mark.parametrize("rows", [pl.LazyFrame(KERNELS), KernelRows(pl.LazyFrame(KERNELS))])
def test_kernels_of_an_engine_stand_for_groups(rows: Any) -> None:
    inside, groups = kernels_of(KERNELS, None), kernels_of(rows, None)
    assert isinstance(inside, Kernels)
    assert isinstance(groups, Kernels)
    assert inside.behind.n.sum() == groups.behind.n.sum() == 3
    assert kernels_of(inside, "device") is inside
    family = pl.LazyFrame({**KERNELS, "predicted": [9.0] * 3, "measured": [9.0] * 3, "f": [*"aba"]})
    assert kernels_of(family, None).behind.n.tolist() == [2, 1]
    split = kernels_of(family, "f")
    assert ("f" in split.keys, split.behind.n.tolist()) == (True, [1, 1, 1])


@pytest.mark.parametrize("rows", [pl.LazyFrame(HISTORY), HistoryRows(pl.LazyFrame(HISTORY))])
def test_histories_of_an_engine_stand_for_groups(rows: Any) -> None:
    inside, groups = history_of(HISTORY, (), None), history_of(rows, "op", "op")
    assert isinstance(inside, History)
    assert isinstance(groups, History)
    assert inside.behind.n.tolist() == [1, 1, 1]
    assert sorted(groups.behind.n.tolist()) == [1, 2]
    assert groups.versions == inside.versions == ("1.9", "1.10")
    with pytest.raises(InputError, match="no column 'no'"):
        history_of(rows, "no", None)


def test_what_was_worked_out_from_all_rows_is_not_that_of_some() -> None:
    kernels = Kernels(KERNELS)
    assert kernels.behind.n.tolist() == [1, 1, 1]
    assert kernels.ids.tolist() == ["run/BMM/1", "run/BMM/2", "run/VEC/3"]
    part = kernels.take(kernels.kernel_class == "VEC")
    assert (part.behind.n.tolist(), part.ids.tolist()) == ([1], ["run/VEC/3"])


class Held(Content):
    """What a file holds."""

    pairs = Pairs(KEYED)
    kernels = Kernels(KERNELS)
    history = History(HISTORY)


def test_what_a_file_holds_is_taken_from_it() -> None:
    held = Held()
    assert pairs_of(held) is pairs_in_memory(held) is Held.pairs
    assert kernels_of(held, "device") is kernels_in_memory(held) is Held.kernels
    assert history_of(held, "op", "op") is Held.history


def test_every_pair_must_be_in_memory() -> None:
    inside = Pairs(KEYED)
    assert pairs_in_memory(inside) is inside
    for frame in (KEYED, pl.LazyFrame(KEYED)):
        found = pairs_in_memory(frame)
        assert isinstance(found, Pairs)
        assert (found.n, found.engine) == (3, "")
    for rows in (PairRows(pl.LazyFrame(KEYED)), pairs_of(pl.LazyFrame(KEYED)).grouped(["device"])):
        with pytest.raises(
            InputError,
            match=r"needs every pair in memory, but these pairs stay in Polars\. Give the path",
        ):
            pairs_in_memory(rows)


def test_every_kernel_must_be_in_memory() -> None:
    inside = Kernels(KERNELS)
    assert kernels_in_memory(inside) is inside
    for frame in (KERNELS, pl.LazyFrame(KERNELS)):
        assert kernels_in_memory(frame).behind.n.tolist() == [1, 1, 1]
    with pytest.raises(
        InputError,
        match=r"expected a table of kernels in memory, got PairRows\. errcomp needs every kernel",
    ):
        kernels_in_memory(PairRows(pl.LazyFrame(KEYED)))
