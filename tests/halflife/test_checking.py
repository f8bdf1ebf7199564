"""A new validation against a history: what the gate gets from the tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.halflife.gate.checking import check_validation
from errcomp.tables import History


def rows(
    first: int, end: int, slow: float = 1.0, seed: int = 0, runs: int = 1
) -> dict[str, list[Any]]:
    """Six operators of two classes under versions first to end; the Gelus slower by a factor."""
    rng = np.random.default_rng([seed, first])
    columns: dict[str, list[Any]] = {
        name: [] for name in ("version", "kernel_class", "shape", "measured", "predicted")
    }
    for version in range(first, end):
        for kind in ("Conv", "Gelu"):
            for shape in [0, 1, 2] * runs:
                time = (shape + 1) * (slow if kind == "Gelu" else 1.0)
                values = (f"1.{version}", kind, shape, time * math.exp(rng.normal(0, 0.01)))
                for name, value in zip(columns, (*values, shape + 1.0), strict=True):
                    columns[name].append(value)
    return columns


HISTORY = History(rows(0, 10), unit="ms")


def test_a_version_like_those_before_passes() -> None:
    check = check_validation(HISTORY, History(rows(10, 11), unit="ms"), by="kernel_class")
    assert check.result.outcome == "pass"
    assert check.recalibration is None


def test_both_tables_may_be_of_any_kind() -> None:
    found = check_validation(rows(0, 10), pl.DataFrame(rows(10, 11, slow=1.3, runs=4)))
    assert found.result.outcome == "regression"


def test_who_moved_is_named() -> None:
    check = check_validation(
        HISTORY, History(rows(10, 11, slow=1.3, runs=4), unit="ms"), by="kernel_class"
    )
    result = check.result
    assert result.outcome == "regression"
    grew = {g for g, v in zip(result.groups, result.verdict, strict=True) if v == "error grew"}
    assert grew == {"Gelu"}
    assert set(result.moved_by[result.verdict == "error grew"]) == {"reference"}


def test_one_run_asks_for_a_repeat() -> None:
    one = check_validation(HISTORY, History(rows(10, 11, slow=1.3), unit="ms"), by="kernel_class")
    assert one.result.outcome == "repeat"
    again = {g for g, v in zip(one.result.groups, one.result.verdict, strict=True) if v == "repeat"}
    assert again == {"Gelu"}
    needed = one.result.repeats_needed[one.result.verdict == "repeat"]
    assert ((needed >= 1) & (needed <= 3)).all()


def test_a_step_without_repeats_is_found_in_later_versions() -> None:
    old, moved = rows(0, 10), rows(10, 12, slow=1.3)
    history = History({name: old[name] + moved[name] for name in old}, unit="ms")
    found = check_validation(history, History(rows(12, 13, slow=1.3), unit="ms")).result
    assert found.outcome == "regression"
    assert {found.releases(i) for i in found.blamed().tolist()} == {"1.9 to 1.10"}


def test_new_validations_without_a_figure_are_told() -> None:
    new: dict[str, list[Any]] = rows(10, 11, slow=1.3, runs=4)
    new["measured"] = [None, *new["measured"][1:]]
    check = check_validation(HISTORY, History(new, unit="ms"), by="kernel_class")
    assert check.result.outcome == "regression"
    assert check.notes[0] == "1 new validations left out: no measurement"
    # A version that gave no figure at all has not been validated.
    both = {name: rows(9, 10)[name] + new[name][:6] for name in new}
    both["measured"] = [*both["measured"][:6], *[None] * 6]
    with pytest.raises(InputError, match="all versions.*1.9; 6 new validations left out: no meas"):
        check_validation(HISTORY, History(both, unit="ms"))
    with pytest.raises(InputError, match="no usable validations .24 dropped: no measurement"):
        check_validation(HISTORY, {**new, "measured": [None] * 24})
    # Blanks of the history count no more than their rows.
    old = rows(0, 10)
    old["measured"] = [None, *old["measured"][1:]]
    same = check_validation(History(old, unit="ms"), History(rows(10, 11), unit="ms"))
    assert same.result.outcome == "pass"


def test_growth_within_the_promise_or_the_margin_is_none() -> None:
    new = History(rows(10, 11, slow=1.1, runs=4), unit="ms")
    assert check_validation(HISTORY, new).result.outcome == "regression"
    assert check_validation(HISTORY, new, error=0.2).result.outcome == "pass"
    assert check_validation(HISTORY, new, margin=0.2).result.outcome == "pass"


def test_a_step_that_was_accepted_is_not_found_again() -> None:
    old = rows(0, 10)
    moved = rows(10, 14, slow=1.5)
    history = History({name: old[name] + moved[name] for name in old}, unit="ms")
    same = check_validation(history, History(rows(14, 15, slow=1.5), unit="ms"))
    assert same.result.outcome == "pass"


def test_new_factors_are_judged_on_other_series() -> None:
    new = History(rows(10, 11, slow=1.3, runs=4), unit="ms")
    check = check_validation(HISTORY, new, by="kernel_class", recalibrated=True)
    assert check.recalibration is not None
    gelu = check.recalibration.groups.index("Gelu")
    assert check.recalibration.factor[gelu] == pytest.approx(1.3, abs=0.02)
    assert check.recalibration.helps[gelu]


def test_of_several_new_versions_the_last_is_checked() -> None:
    new = History(rows(10, 13, slow=1.3), unit="ms")
    assert check_validation(HISTORY, new).result.version == "1.12"


def test_an_order_that_was_given_goes_on() -> None:
    named = {"version": list("zyxwvuts"), "measured": [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01]}
    history = History(named, order=list("zyxwvuts"))
    new = {"version": ["b"] * 4, "measured": [5.0, 5.01, 4.99, 5.02]}
    check = check_validation(history, History(new))
    assert check.result.version == "b"
    assert check.result.outcome == "regression"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (History(rows(9, 10, seed=1), unit="ms"), "has all versions of the new table"),
        (
            History(rows(10, 11), unit="us"),
            "the unit of the new table is us, but the unit of the history is ms",
        ),
        (
            History({**rows(10, 11), "shape": [[1]] * 6, "series": list("abcdef")}, unit="ms"),
            "columns do not match the columns of the history",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(new: History, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_validation(HISTORY, new)


def test_an_older_version_cannot_be_new() -> None:
    history = History(rows(5, 10), unit="ms")
    with pytest.raises(InputError, match=r"1\.0 comes before 1\.5"):
        check_validation(history, History(rows(0, 1), unit="ms"))
