"""Tools against each other: coverage, Simpson's paradox, rankings, bases, levels, references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.caveats import check_table, relative_difference
from errcomp.caveats.tools import (
    Tools,
    coverage_differs,
    level_differs,
    other_base,
    ranking_asymmetry,
    reference_differs,
    simpsons_paradox,
)
from errcomp.errors import InputError
from errcomp.results import Caveat
from errcomp.tables import Pairs


def tools_of(errors: dict[str, list[float]], **keys: list[Any]) -> Tools:
    """Tools with these signed errors; keys run over the rows of all tools in turn."""
    names = [name for name, values in errors.items() for _ in values]
    flat = np.array([value for values in errors.values() for value in values])
    table = {"predicted": 1 + flat, "measured": np.ones(len(flat)), "tool": names, **keys}
    return Tools(Pairs(table), "tool")


def caveat_of(found: object) -> Caveat:
    assert getattr(found, "caveat", None) is not None
    return found.caveat  # type: ignore[attr-defined, no-any-return]


def test_a_tool_that_ran_4_of_38_cases() -> None:
    errors = {"all": [0.1] * 4 + [0.3] * 34, "few": [0.2] * 4}
    caveat = caveat_of(coverage_differs(tools_of(errors, batch=[*range(38), *range(4)])))
    assert caveat.message == (
        "Of 38 configurations, all has 38 and few 4; on the 4 that all tools have, the MAPE of "
        "all is 10.00 % instead of 27.89 %."
    )
    assert caveat.evidence["tools"]["few"] == {
        "configurations": 4,
        "mape_own": pytest.approx(0.2),
        "mape_common": pytest.approx(0.2),
    }


def test_tools_without_a_common_case() -> None:
    caveat = caveat_of(
        coverage_differs(tools_of({"a": [0.1] * 3, "b": [0.2] * 3}, batch=[1, 2, 3, 4, 5, 6]))
    )
    assert caveat.message == (
        "Of 6 configurations, a has 3 and b 3; the tools have no configuration in common (nor "
        "any value of batch), so their metrics are not comparable."
    )
    assert caveat.evidence["tools"]["a"]["mape_common"] is None


def test_a_column_of_one_value_within_each_tool_is_no_key() -> None:
    # 79 configurations of one tool, 60 of them of the other, each with the name of its own trace.
    errors = {"a": [0.1] * 60 + [0.4] * 19, "b": [0.2] * 60}
    keys = {
        "batch": [*range(79), *range(60)],
        "trace": ["a.json"] * 79 + ["b.json"] * 60,
        "version": ["1.0"] * 79 + ["2.3"] * 60,
    }
    found = tools_of(errors, **keys)
    assert (found.keys, found.unmatched) == (("batch",), ("trace", "version"))
    caveat = caveat_of(coverage_differs(found))
    assert caveat.message == (
        "Of 79 configurations, a has 79 and b 60; on the 60 that all tools have, the MAPE of a is "
        "10.00 % instead of 17.22 %. Not used to match rows: trace, version (constant "
        "within each tool, different between tools)."
    )
    assert (caveat.evidence["common"], caveat.evidence["not_matched_by"]) == (
        60,
        ["trace", "version"],
    )
    # Two tools may share a trace that a third has not.
    third = tools_of(
        {"a": [0.1] * 3, "b": [0.2] * 3, "c": [0.3] * 3},
        batch=[1, 2, 3] * 3,
        trace=["x"] * 6 + ["y"] * 3,
    )
    assert third.unmatched == ("trace",)


def test_what_was_run_is_a_key_even_where_each_tool_has_one_value() -> None:
    found = tools_of(
        {"a": [0.1] * 3, "b": [0.2] * 3}, batch=[1, 2, 3] * 2, device=["A"] * 3 + ["B"] * 3
    )
    caveat = caveat_of(coverage_differs(found))
    assert "no configuration in common (nor any value of device)," in caveat.message
    assert found.unmatched == ()


def test_a_column_with_values_of_both_tools_or_several_of_one_stays_a_key() -> None:
    app = ["p", "q", "r", "s", "t", "u"]
    caveat = caveat_of(coverage_differs(tools_of({"a": [0.1] * 3, "b": [0.2] * 3}, app=app)))
    assert "no configuration in common (nor any value of app)," in caveat.message


def test_keys_of_the_user_name_the_configuration() -> None:
    table = {
        "predicted": [1.1, 1.2, 1.3, 1.2, 1.3],
        "measured": [1.0] * 5,
        "tool": ["a"] * 3 + ["b"] * 2,
        "batch": [1, 2, 3, 1, 2],
        "app": ["p", "q", "r", "s", "t"],
    }
    (none,) = [c for c in check_table(table) if c.code == "coverage-differs"]
    assert none.evidence["common"] == 0
    (some,) = [c for c in check_table(table, keys="batch") if c.code == "coverage-differs"]
    assert (some.evidence["common"], some.evidence["keys"]) == (2, ["batch"])
    with pytest.raises(InputError, match="'bach'"):
        check_table(table, keys=["bach"])
    with pytest.raises(InputError, match="'tool' names the tools"):
        check_table(table, keys=["tool", "batch"])


def test_a_single_case_more_matters_when_it_changes_the_figure() -> None:
    keys = {"batch": [*range(12), *range(11)]}
    same = tools_of({"a": [0.1] * 12, "b": [0.2] * 11}, **keys)
    assert coverage_differs(same) is None
    changed = tools_of({"a": [0.1] * 11 + [0.9], "b": [0.2] * 11}, **keys)
    assert coverage_differs(changed) is not None


def test_equal_coverage_and_nameless_rows_are_not_compared() -> None:
    assert coverage_differs(tools_of({"a": [0.1] * 3, "b": [0.2] * 3}, batch=[1, 2, 3] * 2)) is None
    assert coverage_differs(tools_of({"a": [0.1] * 9, "b": [0.2]})) is None


def test_simpsons_paradox_on_the_published_kidney_stones() -> None:
    # Failures of two treatments of kidney stones: open surgery 6 of 87 and 71 of 263, puncture 36
    # of 270 and 25 of 80, for small and large stones; better in both, worse over all (78 against
    # 83 % success). Charig et al. (1986), BMJ 292, 879-882; each failure as an error of 100 %.
    failed = {"surgery": [(6, 87), (71, 263)], "puncture": [(36, 270), (25, 80)]}
    errors = {
        tool: [e for bad, n in groups for e in [1.0] * bad + [0.0] * (n - bad)]
        for tool, groups in failed.items()
    }
    size = [
        s
        for g in failed.values()
        for s, (_, n) in zip(("small", "large"), g, strict=True)
        for _ in range(n)
    ]
    caveat = caveat_of(simpsons_paradox(tools_of(errors, model=size)))
    assert caveat.message == (
        "surgery has a lower MAPE than puncture in each of 2 groups of model, but a higher one "
        "overall (22.00 % against 17.43 %): the pairs of the two tools are distributed "
        "differently over the groups."
    )
    assert caveat.evidence["groups"]["small"] == pytest.approx([6 / 87, 36 / 270])
    assert caveat.evidence["groups"]["large"] == pytest.approx([71 / 263, 25 / 80])


def test_no_paradox_with_equal_composition_or_one_group() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        errors = {"a": rng.random(12).tolist(), "b": rng.random(12).tolist()}
        device = rng.choice(["A", "B"], 12).tolist()
        assert simpsons_paradox(tools_of(errors, device=device * 2)) is None
    one = tools_of({"a": [0.1], "b": [0.2]}, device=["A", "B"])
    assert simpsons_paradox(one) is None


def test_a_ranking_that_depends_on_whether_too_low_is_cheaper() -> None:
    # Half of the truth costs 50 % by APE and 100 % as a factor; 60 % too high costs 60 % by both.
    wobble = np.linspace(-0.02, 0.02, 10)
    errors = {"low": (-0.5 + wobble).tolist(), "high": (0.6 + wobble).tolist()}
    caveat = caveat_of(ranking_asymmetry(tools_of(errors, batch=[*range(10)] * 2)))
    assert caveat.message == (
        "low beats high by MAPE (50.00 % against 60.00 %), but loses by the mean error as a "
        "factor, max(p/m, m/p) - 1 (100.1 % against 60.00 %), which, unlike MAPE, does not favour "
        "predictions that are too low."
    )
    # The order of the tools in the table does not matter.
    swapped = {"high": errors["high"], "low": errors["low"]}
    again = caveat_of(ranking_asymmetry(tools_of(swapped, batch=[*range(10)] * 2)))
    assert again.message == caveat.message
    # Pairs of tools that agree, or where a factor is infinite, do not end the search.
    for name, other in (("good", 0.1), ("failed", -1.0)):
        three = {name: (other + (other > 0) * wobble).tolist(), **errors}
        found = caveat_of(ranking_asymmetry(tools_of(three, batch=[*range(10)] * 3)))
        assert found.message == caveat.message


def test_rankings_that_agree_or_cannot_be_compared() -> None:
    wobble = np.linspace(-0.02, 0.02, 10)
    errors = {"a": (0.1 + wobble).tolist(), "b": (0.3 + wobble).tolist()}
    agreed = ranking_asymmetry(tools_of(errors, batch=[*range(10)] * 2))
    assert agreed is not None
    assert agreed.caveat is None
    assert ranking_asymmetry(tools_of(errors)) is None
    failed = {"a": [-1.0] * 10, "b": errors["b"]}
    assert ranking_asymmetry(tools_of(failed, batch=[*range(10)] * 2)) is None


def test_relative_difference_has_two_bases() -> None:
    # The survey's own pair: 0.177 s and 0.158 s are 10.7 % one way and 12.0 % the other.
    d = relative_difference(0.177, 0.158)
    assert (round(d.of_first, 4), round(d.of_second, 4)) == (-0.1073, 0.1203)
    assert d.of_second == pytest.approx(-d.of_first / (1 + d.of_first))
    assert (d.first, d.second) == (0.177, 0.158)


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (1.0, np.inf)])
def test_relative_difference_needs_positive_numbers(values: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="must be finite and positive"):
        relative_difference(*values)


def test_both_bases_of_the_two_best_tools() -> None:
    errors = {"c": [0.9] * 3, "b": [0.177] * 3, "a": [0.158] * 3}
    caveat = caveat_of(other_base(tools_of(errors, batch=[1, 2, 3] * 3)))
    assert caveat.message == (
        "a's MAPE (15.80 %) is 10.73 % below b's (17.70 %); b's is 12.03 % above a's. State "
        "which of the two is the base."
    )


@pytest.mark.parametrize("other", [0.1, 0.105, 0.21, 0.5])
def test_bases_that_print_alike_or_factors_need_no_word(other: float) -> None:
    assert other_base(tools_of({"a": [0.1] * 3, "b": [other] * 3}, batch=[1, 2, 3] * 2)) is None


def test_bases_without_common_cases_use_each_tools_own_figure() -> None:
    assert other_base(tools_of({"a": [0.1] * 3, "b": [0.15] * 3}, batch=[1, 2, 3, 4, 5, 6]))
    assert other_base(tools_of({"a": [0.0] * 3, "b": [0.15] * 3})) is None


def test_tools_at_different_levels_or_references() -> None:
    errors = {"a": [0.1] * 2, "b": [0.1] * 2}
    level = caveat_of(level_differs(tools_of(errors, level=["kernel"] * 2 + ["model"] * 2)))
    assert level.message == (
        "The tools differ in level (a: kernel; b: model): their metrics are not comparable."
    )
    reference = ["hardware", "hardware", "RTL simulation", "RTL simulation"]
    found = caveat_of(reference_differs(tools_of(errors, reference=reference)))
    assert "differ in reference (a: hardware; b: RTL)" in found.message
    assert found.evidence == {"tools": {"a": ["hardware"], "b": ["RTL"]}}


def test_a_tool_of_unknown_reference_differs_from_none() -> None:
    errors = {"a": [0.1] * 2, "b": [0.1] * 2, "c": [0.1] * 2}
    unknown = ["unknown", None, "hardware", "unknown", "hardware", "hardware"]
    assert reference_differs(tools_of(errors, reference=unknown)) is None
    other = ["unknown", "unknown", "hardware", "hardware", "rtl", "rtl"]
    found = caveat_of(reference_differs(tools_of(errors, reference=other)))
    assert found.evidence == {"tools": {"b": ["hardware"], "c": ["RTL"]}}


def test_tools_at_one_level_or_without_one() -> None:
    errors = {"a": [0.1] * 2, "b": [0.1] * 2}
    assert level_differs(tools_of(errors)) is None
    assert level_differs(tools_of(errors, level=["kernel", "model"] * 2)) is None
    traces = ["hardware", "hardware traces", "hardware", "hardware"]
    assert reference_differs(tools_of(errors, reference=traces)) is None


def test_a_table_by_another_key() -> None:
    table = {
        "predicted": [1.1, 1.2, 1.15, 1.25],
        "measured": [1.0] * 4,
        "version": ["v1", "v1", "v2", "v2"],
        "batch": [1, 2, 1, 2],
    }
    assert [c.code for c in check_table(table, tool_key="version")] == ["other-base"]


def test_references_that_no_tool_states_are_not_compared() -> None:
    errors = {"a": [0.1] * 2, "b": [0.2] * 2}
    assert reference_differs(tools_of(errors, reference=["unclear", None, "", "n/a"])) is None
    assert reference_differs(tools_of(errors, reference=["hardware"] * 4)) is None
    caveat = caveat_of(
        reference_differs(tools_of(errors, reference=["hardware", None, "simulator", "RTL"]))
    )
    assert caveat.message == (
        "The tools differ in reference (a: hardware; b: RTL and simulator): their metrics are not "
        "comparable."
    )
    assert caveat.evidence == {"tools": {"a": ["hardware"], "b": ["RTL", "simulator"]}}
