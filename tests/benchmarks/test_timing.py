"""What the benchmarks make of seconds; how long anything takes is not tested."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

Script = Callable[[str], ModuleType]


def lasting(seconds: Iterator[float]) -> Callable[[], tuple[float, None]]:
    return lambda: (next(seconds), None)


def test_sides_run_in_turn_and_the_first_round_does_not_count(script: Script) -> None:
    order: list[str] = []

    def side(name: str) -> Callable[[], tuple[float, str]]:
        return lambda: (order.append(name) or float(len(order)), name)

    seconds, values = script("timing").in_turn([side("a"), side("b")], 4, 60.0)
    assert order == ["a", "b"] * 5
    assert values == ["a", "b"]
    assert seconds.tolist() == [[3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]


def test_a_budget_that_is_spent_leaves_five_rounds_and_the_first_one_counts(
    script: Script,
) -> None:
    ticks = itertools.count(1.0)
    seconds, _ = script("timing").in_turn([lasting(ticks)], 9, 0.0)
    assert seconds.ravel().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(script("timing").in_turn([lasting(ticks)], 3, 0.0)[0]) == 3


@pytest.mark.parametrize(("n", "covered"), [(5, None), (9, 0.95), (30, 0.95)])
def test_the_interval_of_a_median_holds_it(script: Script, n: int, covered: float | None) -> None:
    middle = script("timing").middle
    rng = np.random.default_rng(0)
    if covered is None:
        assert middle(np.arange(float(n))) == (2.0, 0.0, 4.0)
        return
    found = [middle(rng.lognormal(size=n)) for _ in range(1_000)]
    share = np.mean([low <= 1.0 <= high for _, low, high in found])
    assert covered - 0.01 <= share < 0.99


def test_a_slope_is_that_of_the_power(script: Script) -> None:
    slope = script("timing").slope
    found = slope([10, 100, 1000], [2e-3, 2e-1, 2e1])
    assert found["slope"] == pytest.approx(2)
    assert found["low"] == pytest.approx(found["high"], abs=1e-6)
    # Of noise it says how little it knows.
    noisy = slope([10, 100, 1000], [1.0, 30.0, 90.0])
    assert noisy["low"] < 0.98 < noisy["high"]
    assert slope([10, 100], [1.0, 2.0]) is None


def test_differences_are_the_largest_one_and_what_is_missing_is_one(script: Script) -> None:
    difference = script("timing").difference
    assert difference([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert difference({"a": 1.0, "b": 3.0}, {"b": 3.0, "a": 1.0}) == 0
    assert difference({"a": 1.0, "c": 3.0}, {"b": 3.0, "a": 1.0}) == 1
    assert difference([0.0], [0.0]) == 0
    assert difference(None, [1.0]) is None


def test_short_work_is_repeated_and_one_run_of_it_counted(script: Script) -> None:
    clock = itertools.count()
    runs = itertools.count()
    once = script("peer_side").repeated(lambda: next(runs), lambda: next(clock) * 0.001)
    # The clock goes on by 1 ms a look: 5 runs make the 5 ms that a timing takes at least.
    assert once() == (pytest.approx(0.001), 0)
    assert once() == (pytest.approx(0.001 / 5), 2)
    assert next(runs) == 7


def test_nothing_names_the_machine_and_documents_are_json(script: Script) -> None:
    question = script("asking").Question("q", "Title", "What?")
    seconds = np.array([[1.0, 2.0]] * 6 + [[3.0, 2.0]])
    question.keep("case", 10, "rows", "peer", seconds, math.nan, why="both add")
    question.runs = 3
    assert question.takes("alone", 10, "rows", lambda: None)["runs"] == 3
    question.keep_growth("case", "rows", {10: 1.0, 100: 10.0, 1000: 100.0})
    question.target("limit", 3.0, 2.0, "s")
    document = json.loads(json.dumps(question.document(), allow_nan=False))
    assert document["cases"][0]["ratio"] == 0.5
    assert document["cases"][0]["difference"] is None
    assert (document["cases"][0]["ours_slowest"], document["cases"][0]["ratio_worst"]) == (3, 1.5)
    assert document["cases"][1]["peer"] is None
    assert document["growth"][0]["fit"]["slope"] == pytest.approx(1)
    assert not document["targets"][0]["met"]
    assert {*document["machine"]} == {"cpu", "cores", "memory_gib", "system"}
    assert str(Path.home()) not in json.dumps(document)
