"""Alternatives whose times come as draws, and draws of runs that share errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import errcomp as ec
from errcomp.decisions import compare_draws
from errcomp.errors import InputError

RNG = np.random.default_rng(0)
SHARED = RNG.normal(0, 0.3, 5_000)
DRAWS = {
    name: ms * np.exp(SHARED + RNG.normal(0, 0.02, 5_000))
    for name, ms in {"tp2": 104.0, "tp4": 100.0, "tp8": 150.0}.items()
}


def test_what_the_draws_share_cancels() -> None:
    found = compare_draws(DRAWS, unit="ms")
    (choice,) = found.choices
    assert choice.chosen == "tp4"
    assert choice.p_best == pytest.approx(
        stats.norm.cdf(np.log(1.04) / np.hypot(0.02, 0.02)), abs=0.02
    )
    words = {
        (a, b): word for a, b, word in zip(found.first, found.second, found.words, strict=True)
    }
    assert words["tp4", "tp8"] == "faster"
    apart = {name: RNG.permutation(values) for name, values in DRAWS.items()}
    assert compare_draws(apart).choices[0].p_best < 0.6
    assert "Comparisons of the alternative" in found.view().title


def test_an_array_is_the_same_as_a_mapping() -> None:
    one = compare_draws(
        DRAWS, prices={"tp2": 2.0, "tp4": 4.0, "tp8": 1.0}, at_most="200 ms", unit="ms"
    )
    two = compare_draws(
        np.column_stack(list(DRAWS.values())),
        names=list(DRAWS),
        prices=[2.0, 4.0, 1.0],
        at_most=200,
    )
    assert one.to_dict()["rows"] == two.to_dict()["rows"]
    assert one.choices[0].chosen == "tp2"
    within = {row.name: row.p_within for row in one.alternatives}
    assert within["tp4"] == pytest.approx(stats.norm.cdf(np.log(2) / np.hypot(0.3, 0.02)), abs=0.02)
    assert [row.p_within for row in two.alternatives] == list(within.values())


def test_throughput() -> None:
    rates = {name: 1e3 / values for name, values in DRAWS.items()}
    found = compare_draws(rates, at_least=5.0)
    assert found.word == "better"
    assert found.choices[0].chosen == "tp4"
    assert found.alternatives[0].median == pytest.approx(1e3 / 104, rel=0.02)
    assert found.alternatives[0].low < found.alternatives[0].median < found.alternatives[0].high


def test_many_alternatives_list_comparisons_with_the_chosen_one() -> None:
    rng = np.random.default_rng(1)
    draws = np.exp(rng.normal(0, 0.1, (300, 1_500)) + rng.normal(0, 0.3, 1_500))
    found = compare_draws(draws)
    assert not found.every
    assert len(found) == 1_499
    assert {*found.first.tolist()} | {*found.second.tolist()} == {str(i) for i in range(1_500)}
    none = compare_draws(draws, at_most=1e-9)
    assert len(none) == 0
    assert none.choices[0].chosen == ""


@pytest.mark.parametrize(
    ("draws", "how", "message"),
    [
        ({"a": [1.0, 2.0]}, {}, "at least 2 of each"),
        ({"a": [1.0, 2.0], "b": [1.0]}, {}, r"arrays of one length, got a \(2,\), b \(1,\)"),
        ({}, {}, "at least 2 of each"),
        (np.ones((4, 2)), {"names": ["a", "a"]}, "2 different names"),
        ({"a": [1.0, 2.0], "b": [1.0, 0.0]}, {}, "positive and finite, got 0.0 of 'b' in draw 1"),
        ({"a": [1.0, 2.0], "b": [np.nan, 1.0]}, {}, "got nan of 'b' in draw 0"),
        ({"a": ["x", "y"], "b": ["x", "y"]}, {}, "draws must be numbers"),
        (DRAWS, {"names": ["a", "b", "c"]}, "leave out names"),
        (DRAWS, {"prices": {"tp2": 1.0}}, "no price for tp4, tp8"),
        (DRAWS, {"prices": [1.0, 2.0]}, "prices must be 3 numbers"),
        (DRAWS, {"prices": [1.0, 2.0, 0.0]}, "a price must be positive, got 0.0 of 'tp8'"),
        (DRAWS, {"level": 0.4}, "level must be between"),
        (DRAWS, {"at_most": "2 s"}, "the table has no unit"),
    ],
)
def test_bad_draws(draws: Any, how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare_draws(draws, **how)


def test_the_document_comes_back(tmp_path: Any) -> None:
    found = compare_draws(DRAWS, prices=[2.0, 4.0, 1.0], at_most=120.0, unit="ms")
    found.save(tmp_path / "c.json")
    again = ec.read_result(tmp_path / "c.json")
    assert again.to_json() == found.to_json()
