"""What a sum hides: claimed totals, groups that cancel, tools that a sum ranks otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.caveats import check
from errcomp.caveats._case import NOTHING, Case, signed
from errcomp.caveats.claim import claimed_total
from errcomp.caveats.comparisons import groups_that_cancel
from errcomp.caveats.tools import Tools, ranking_by_total
from errcomp.claims.registry import user_claim
from errcomp.results import Caveat
from errcomp.tables import Pairs


def caveat_of(found: object) -> Caveat:
    assert getattr(found, "caveat", None) is not None
    return found.caveat  # type: ignore[attr-defined, no-any-return]


def case(errors: list[float], claim: object = None, by: tuple[str, ...] = (), **keys: Any) -> Case:
    """Pairs measured as 100 each, with these signed errors."""
    table = {"predicted": [100 * (1 + e) for e in errors], "measured": [100.0] * len(errors)}
    return Case(Pairs({**table, **keys}), claim, by)


def test_a_stated_total_is_set_beside_the_error_of_a_pair() -> None:
    claim = user_claim("1%", aggregation="total")
    caveat = caveat_of(claimed_total(case([0.2, -0.18, 0.1, -0.08], claim)))
    assert caveat.message == (
        "The claim 1 % is the error of the total (+1.00 %), where errors of opposite sign cancel: "
        "the MAPE of single pairs is 14.00 % (14.00 % weighted by size)."
    )
    assert caveat.evidence["total_error"] == pytest.approx(0.01)
    assert caveat.evidence["stated"] is True


def test_a_claim_that_only_the_total_prints_as() -> None:
    errors = [0.2, -0.18, 0.1, -0.08]
    caveat = caveat_of(claimed_total(case(errors, user_claim("1%"))))
    assert "matches the error of the total" in caveat.message
    # Not where an average prints so as well, nor where nothing does, nor for bounds and ranges.
    assert claimed_total(case(errors, user_claim("14%"))) is None
    assert claimed_total(case(errors, user_claim("3%"))) is None
    assert claimed_total(case(errors, user_claim("<5%"))) is None
    assert claimed_total(case(errors, user_claim("0–2%"))) is None
    assert claimed_total(case(errors, user_claim("0.01", metric="correlation"))) is None
    assert claimed_total(case(errors)) is None
    assert claimed_total(case(errors, SimpleNamespace(printed="1%"))) is None


def test_a_total_of_errors_of_one_sign_is_no_news() -> None:
    assert claimed_total(case([0.1, 0.12], user_claim("11%", aggregation="total"))) is None


HIGH, LOW = [0.3, 0.28, 0.32, 0.31, 0.29], [-0.3, -0.28, -0.31, -0.29, -0.3]


def test_groups_that_are_off_to_either_side() -> None:
    caveat = caveat_of(
        groups_that_cancel(case([*HIGH, *LOW], model=["a"] * 5 + ["b"] * 5, device=["x"] * 10))
    )
    assert caveat.message == (
        "Errors cancel between groups by model: the total of all pairs is off by +0.20 %. The "
        "totals of the 2 groups are off by 29.80 % on average (weighted by size), from -29.60 % "
        "(b) to +30.00 % (a)."
    )
    assert caveat.evidence["keys"] == ["model"]
    assert caveat.evidence["mean_group_total_error"] == pytest.approx(0.298)
    assert caveat.evidence["lowest"] == "b"


def test_the_weight_of_a_group_is_its_time() -> None:
    measured = [300.0] * 5 + [100.0] * 5
    errors = [*(e / 3 for e in HIGH), *LOW]
    predicted = [m * (1 + e) for m, e in zip(measured, errors, strict=True)]
    keys = {"kernel_class": ["a"] * 5 + ["b"] * 5}
    found = Case(Pairs({"predicted": predicted, "measured": measured, **keys}))
    caveat = caveat_of(groups_that_cancel(found))
    assert caveat.evidence["total_error"] == pytest.approx(0.001)
    assert caveat.evidence["mean_group_total_error"] == pytest.approx(0.75 * 0.1 + 0.25 * 0.296)


def test_the_reader_s_own_grouping_is_looked_at_without_devices() -> None:
    groups = {"part": ["a"] * 5 + ["b"] * 5, "device": ["x", "y"] * 5}
    assert groups_that_cancel(case([*HIGH, *LOW], **groups)) is None
    caveat = caveat_of(groups_that_cancel(case([*HIGH, *LOW], by=("device", "part"), **groups)))
    assert caveat.evidence["keys"] == ["part"]
    devices = ["a"] * 5 + ["b"] * 5
    assert groups_that_cancel(case([*HIGH, *LOW], device=devices)) is None
    assert groups_that_cancel(case([*HIGH, *LOW], by=("device",), device=devices)) is None


def test_groups_that_do_not_cancel() -> None:
    models = ["a"] * 5 + ["b"] * 5
    assert groups_that_cancel(case([*HIGH, *HIGH], model=models)) is NOTHING
    # One group is off, the other not: little cancels.
    assert groups_that_cancel(case([*HIGH, *([0.001, -0.001] * 3)[:5]], model=models)) is NOTHING
    # Too few pairs in each group to be sure, and one pair alone is never sure.
    assert groups_that_cancel(case([*HIGH[:4], *LOW[:4]], model=["a"] * 4 + ["b"] * 4)) is None
    assert groups_that_cancel(case([*HIGH, *LOW], model=list("abcdefghij"))) is None
    # Exact predictions, and errors without any spread.
    assert groups_that_cancel(case([0.0] * 10, model=models)) is NOTHING
    certain = case([0.5] * 5 + [-0.5] * 5, model=models)
    assert caveat_of(groups_that_cancel(certain)).evidence["total_error"] == 0


def test_noise_around_zero_is_not_taken_for_opposite_groups() -> None:
    errors = np.random.default_rng(3).normal(0, 0.1, 60)
    found = groups_that_cancel(case(list(errors), model=list("abcdef") * 10))
    assert found is not None
    assert found.caveat is None or (found.p or 0) > 0.05


def test_huge_errors_do_not_overflow() -> None:
    table = {"predicted": [1e150, 2e150] * 5, "measured": [1e-150, 2e-150] * 5}
    found = groups_that_cancel(Case(Pairs({**table, "model": ["a"] * 5 + ["b"] * 5})))
    assert found is NOTHING


def tools_of(first: list[float], second: list[float], **keys: Any) -> Tools:
    n = len(first)
    batch = [*range(n), *range(n)]
    table = {
        "predicted": [100 * (1 + e) for e in (*first, *second)],
        "measured": [100.0] * (2 * n),
        "tool": ["first"] * n + ["second"] * n,
    }
    return Tools(Pairs({**table, "batch": batch, **keys}), "tool")


SMALL = [0.05, 0.06, 0.04, 0.05, 0.06, 0.05, 0.04, 0.05]
CANCELS = [0.3, -0.3, 0.31, -0.3, 0.29, -0.3, 0.3, -0.28]


def test_a_tool_that_wins_in_the_sum_and_loses_pair_by_pair() -> None:
    found = ranking_by_total(tools_of(SMALL, CANCELS))
    caveat = caveat_of(found)
    assert caveat.message == (
        "first beats second pair by pair (MAPE 5.00 % against 29.75 %), but loses in the sum "
        "(+5.00 % against +0.25 %; this difference may be chance, p = 0.69), where errors of "
        "opposite sign cancel."
    )
    assert found is not None
    assert found.p is not None
    assert found.p < 1e-6
    # The other way round it is the same statement.
    again = caveat_of(ranking_by_total(tools_of(CANCELS, SMALL)))
    assert (again.evidence["first"], again.evidence["second"]) == ("second", "first")


def test_a_difference_of_totals_beyond_chance_is_not_called_chance() -> None:
    cancels = [0.15 + 0.01 * (i % 3) for i in range(20)], [0.3, -0.28] * 10
    caveat = caveat_of(ranking_by_total(tools_of(*cancels)))
    assert "chance" not in caveat.message
    assert caveat.evidence["p_value_of_totals"] < 0.05


def test_rankings_that_agree_or_cannot_be_compared() -> None:
    assert ranking_by_total(tools_of(SMALL, [2 * e for e in SMALL])) is NOTHING
    assert ranking_by_total(tools_of(SMALL[:1], CANCELS[:1])) is None
    assert ranking_by_total(tools_of([0.1, -0.1], [0.2, -0.2])) is NOTHING


def test_the_claim_is_named_in_the_order_of_all_caveats() -> None:
    claim = user_claim("1%", aggregation="total")
    pairs = case([0.2, -0.18, 0.1, -0.08] * 5).pairs
    assert "cancelling-errors" in {c.code for c in check(pairs, claim=claim)}
    assert "cancelling-errors" not in {c.code for c in check(pairs)}


def test_signs_are_written() -> None:
    assert (signed(0.1), signed(-0.1), signed(0.0)) == ("+10.00 %", "-10.00 %", "0.00 %")
