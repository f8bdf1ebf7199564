"""The rules that are tried on pairs, and the order in which they are."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.claims.replicate.neusight import (
    AGGREGATIONS,
    composition,
    group_rules,
    narrowed_rules,
    select,
    selections,
)
from errcomp.tables import Pairs


def _pairs(errors, variants, **keys):
    n = len(errors)
    columns = {"device": ["A"] * n, "model": ["m"] * n, "mode": ["inference"] * n}
    columns |= {"seq_len": [8] * n, "batch": list(range(n)), **keys}
    predicted = [100 * (1 + e) for e in errors]
    return Pairs({"predicted": predicted, "measured": [100.0] * n, "variant": variants, **columns})


def test_aggregations_by_hand():
    pairs = _pairs([0.01237, 0.01237, 0.09], ["base"] * 3)
    values = [figure(pairs) for figure in AGGREGATIONS.values()]
    expected = [(2 * 0.01237 + 0.09) / 3, (2 * 0.0124 + 0.09) / 3, 0.01237]
    assert values[:3] == pytest.approx(expected, rel=1e-12)
    assert values[3] == pytest.approx(np.exp(np.mean(np.log([0.01237, 0.01237, 0.09]))))


def test_like_with_like_comes_first():
    pairs = _pairs([0.1, 0.3], ["base", "fusion"])
    rules = list(group_rules(pairs))
    assert len(rules) == 2 * len(AGGREGATIONS)
    assert [rule.stated for rule in rules] == [True] + [False] * (len(rules) - 1)
    assert rules[0].rule == "mean APE, the 1 single-device unfused configurations"
    assert [rule.value for rule in rules[:2]] == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        (["base", "fusion"], "fused and unfused configurations pooled (2)"),
        (["base", "dp4"], "distributed and single-device configurations pooled (2)"),
        (
            ["base", "fusion", "dp4"],
            "fused, distributed and single-device configurations pooled (3)",
        ),
        (["dp4", "tp4"], "all 2 configurations"),
        (["base", "base"], "all 2 configurations"),
    ],
)
def test_what_is_pooled_is_named(variants, words):
    *_, (last, part) = selections(_pairs([0.1] * len(variants), variants))
    assert last == words
    assert part.n == len(variants)


def test_composition_is_of_mixed_groups_only():
    assert composition(_pairs([0.1], ["base"])) == ""
    mixed = composition(_pairs([0.1, 0.3, 0.3], ["base", "fusion", "fusion"]))
    assert mixed == "By variant: 1 base 10.00 %, 2 fusion 30.00 %."


def test_narrowing_takes_one_value_then_one_configuration():
    pairs = _pairs([0.1, 0.2, 0.4], ["dp4"] * 3, device=["A", "B", "B"], batch=[4, 4, 8])
    rules = list(narrowed_rules(pairs))
    assert [rule.stated for rule in rules].count(True) == 1
    by_rule = {rule.rule: rule.value for rule in rules}
    assert by_rule["mean APE, all 3 configurations"] == pytest.approx(0.7 / 3)
    assert by_rule["mean APE, device A alone (one configuration of 3)"] == pytest.approx(0.1)
    assert by_rule["mean APE, device B alone (2 configurations of 3)"] == pytest.approx(0.3)
    assert by_rule["mean APE, batch 8 alone (one configuration of 3)"] == pytest.approx(0.4)
    assert sum(rule.rule.startswith("APE of one of 3 configurations") for rule in rules) == 3


def test_a_selection_that_is_empty_is_none():
    pairs = _pairs([0.1, 0.2], ["base", "dp4"])
    assert select(pairs, {"variant": "tp4"}) is None
    assert select(pairs, {"variant": "dp4", "batch": 1}).n == 1
