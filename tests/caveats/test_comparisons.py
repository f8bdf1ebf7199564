"""Variants, distributions and groups: what fires, what it says, and where it does not apply."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.caveats import check
from errcomp.caveats._case import NOTHING, Case
from errcomp.caveats.comparisons import (
    in_vs_out_of_distribution,
    pooled_variants,
    unbalanced_groups,
)
from errcomp.tables import Pairs


def case_of(errors: list[float] | np.ndarray, by: tuple[str, ...] = (), **keys: object) -> Case:
    """A case whose absolute percentage errors are these."""
    errors = np.asarray(errors, dtype=float)
    table = {"predicted": 1 + errors, "measured": np.ones(len(errors)), **keys}
    return Case(Pairs(table), None, by)


def test_matched_variants_that_differ_are_named_with_both_figures() -> None:
    base = np.linspace(0.05, 0.09, 8)
    case = case_of(
        np.concatenate([base, 2 * base]),
        variant=["base"] * 8 + ["fusion"] * 8,
        batch=[*range(8), *range(8)],
    )
    found = pooled_variants(case)
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.message == (
        "Pooled variant: fusion has a MAPE of 14.00 % and base 7.00 % on the same 8 "
        "configurations. The pooled 10.50 % describes neither."
    )
    assert found.p == pytest.approx(2 / 2**8)
    assert found.caveat.evidence["matched"] == 8
    assert found.caveat.evidence["mape_variant_matched"] == pytest.approx(0.14)


def test_unmatched_variants_are_named_with_their_sizes() -> None:
    case = case_of(
        np.concatenate([np.linspace(0.05, 0.09, 20), np.linspace(0.2, 0.3, 5)]),
        precision=["fp16"] * 20 + ["fp8"] * 5,
        batch=[*range(25)],
    )
    found = pooled_variants(case)
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.message == (
        "Pooled precision: fp8 (5 pairs) has a MAPE of 25.00 %, fp16 (20 pairs) 7.00 %. The pooled "
        "10.60 % describes neither."
    )
    assert found.caveat.evidence["mape_variant_matched"] is None


def test_distributed_is_compared_with_single_device_as_a_whole() -> None:
    # Two ways to distribute: one contrast of all distributed runs, none for each way.
    errors = [*np.linspace(0.05, 0.09, 20), *np.linspace(0.2, 0.3, 8)]
    case = case_of(
        errors,
        devices=[1] * 20 + [2] * 4 + [4] * 4,
        variant=["base"] * 20 + ["dp2"] * 4 + ["tp4"] * 4,
        batch=[*range(28)],
    )
    found = pooled_variants(case)
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.evidence["contrasts"] == 1
    assert (
        "distributed (8 pairs) has a MAPE of 25.00 %, single-device (20 pairs) 7.00 %. The pooled"
        in found.caveat.message
    )


def test_all_distributed_or_all_single_device_is_no_contrast() -> None:
    assert pooled_variants(case_of([0.1] * 6, devices=[2, 4] * 3)) is None


def test_missing_values_and_columns_with_many_values_name_no_variants() -> None:
    assert pooled_variants(case_of([0.1] * 6, variant=["base", None] * 3)) is None
    assert (
        pooled_variants(case_of(np.arange(1.0, 15), variant=[f"v{i}" for i in range(14)])) is None
    )


def test_a_small_difference_of_variants_is_nothing() -> None:
    base = np.linspace(0.05, 0.09, 8)
    case = case_of(
        np.concatenate([base, 1.2 * base]),
        variant=["base"] * 8 + ["fusion"] * 8,
        batch=[*range(8), *range(8)],
    )
    assert pooled_variants(case) is NOTHING


@pytest.mark.parametrize(("yes", "no"), [(True, False), ("true", "False"), (1, 0), (1.0, 0.0)])
def test_in_and_out_of_the_training_set(yes: object, no: object) -> None:
    inside, outside = np.linspace(0.04, 0.06, 10), np.linspace(0.08, 0.12, 10)
    case = case_of(np.concatenate([inside, outside]), in_training=[yes] * 10 + [no] * 10)
    found = in_vs_out_of_distribution(case)
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.message == (
        "Outside the training set the MAPE is 10.00 % (10 pairs), inside it 5.00 % (10 pairs): a "
        "difference of +5.0 points [4.0, 6.0]."
    )


def test_the_interval_of_the_difference_is_welchs() -> None:
    # Closed form: t quantile with Welch and Satterthwaite's degrees of freedom.
    from scipy.stats import t

    rng = np.random.default_rng(0)
    inside, outside = rng.random(9), 1 + rng.random(14)
    case = case_of(np.concatenate([inside, outside]), in_training=[True] * 9 + [False] * 14)
    found = in_vs_out_of_distribution(case)
    assert found is not None
    assert found.caveat is not None
    a, b = outside.var(ddof=1) / 14, inside.var(ddof=1) / 9
    half = t.ppf(0.975, (a + b) ** 2 / (a**2 / 13 + b**2 / 8)) * np.sqrt(a + b)
    gap = outside.mean() - inside.mean()
    evidence = found.caveat.evidence
    assert evidence["difference"] == pytest.approx(gap)
    assert evidence["difference_low"] == pytest.approx(gap - half)
    assert evidence["difference_high"] == pytest.approx(gap + half)


def test_unknown_membership_is_counted_and_not_used() -> None:
    errors = [*np.linspace(0.04, 0.06, 10), *np.linspace(0.08, 0.12, 10), 5.0, 5.0]
    case = case_of(errors, in_training=[True] * 10 + [False] * 10 + [None, None])
    found = in_vs_out_of_distribution(case)
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.evidence["n_unknown"] == 2
    assert found.caveat.evidence["mape_in"] == pytest.approx(0.05)


def test_in_and_out_needs_five_pairs_on_either_side_that_vary() -> None:
    assert in_vs_out_of_distribution(case_of([0.1, 0.2] * 5)) is None
    few = case_of(np.arange(1.0, 11), in_training=[True] * 4 + [False] * 6)
    assert in_vs_out_of_distribution(few) is None
    enough = case_of(np.arange(1.0, 11), in_training=[True] * 5 + [False] * 5)
    assert in_vs_out_of_distribution(enough) is not None
    constant = case_of([0.1] * 6 + [0.2] * 6, in_training=[True] * 6 + [False] * 6)
    assert in_vs_out_of_distribution(constant) is None


def test_in_and_out_alike_is_nothing() -> None:
    case = case_of(np.linspace(0.1, 0.2, 12), in_training=[True, False] * 6)
    assert in_vs_out_of_distribution(case) is NOTHING


def test_groups_of_unequal_size_that_set_the_pooled_figure() -> None:
    errors = [*np.linspace(0.01, 0.03, 30), *np.linspace(0.1, 0.3, 3), *np.linspace(0.2, 0.4, 3)]
    case = case_of(errors, device=["A"] * 30 + ["B"] * 3 + ["C"] * 3)
    found = unbalanced_groups(case)
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.message == (
        "The pooled MAPE is 5.83 %, the mean over the 3 groups by device is 17.33 %: A alone has "
        "30 of 36 pairs, with a MAPE of 2.00 %."
    )
    assert found.p == pytest.approx(1 / 2000)


def test_the_readers_grouping_is_the_one_that_is_judged() -> None:
    errors = [*np.linspace(0.01, 0.03, 30), *np.linspace(0.2, 0.4, 6)]
    keys = {"device": ["A"] * 30 + ["B"] * 6, "mode": ["i"] * 30 + ["i"] * 3 + ["t"] * 3}
    found = unbalanced_groups(case_of(errors, by=("device", "mode"), **keys))
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.evidence["keys"] == ["device", "mode"]
    assert "3 groups by device × mode" in found.caveat.message
    assert "A i alone has 30 of 36" in found.caveat.message


def test_inside_one_of_the_readers_groups_the_usual_keys_are_tried() -> None:
    errors = [*np.linspace(0.01, 0.03, 30), *np.linspace(0.2, 0.4, 6)]
    keys = {"device": ["A"] * 36, "model": ["m"] * 30 + ["n"] * 6}
    found = unbalanced_groups(case_of(errors, by=("device",), **keys))
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.evidence["keys"] == ["model"]


def test_balanced_groups_and_small_gaps_are_no_matter() -> None:
    assert unbalanced_groups(case_of([0.1, 0.2, 0.3, 0.4], device=list("AABB"))) is None
    assert unbalanced_groups(case_of([0.1, 0.1, 0.1, 0.11], device=list("AAAB"))) is NOTHING
    assert unbalanced_groups(case_of([0.0, 0.0, 0.0], device=list("AAB"))) is None


def test_one_large_group_of_equal_errors_has_no_gap_by_chance() -> None:
    assert unbalanced_groups(case_of([0.1] * 900, device=["A"] * 800 + ["B"] * 100)) is NOTHING


def test_the_first_of_several_groupings_is_not_simply_taken() -> None:
    rng = np.random.default_rng(2)
    model = np.array(["m"] * 50 + ["n"] * 6)
    errors = np.where(model == "m", 0.02, 0.3) * (1 + 0.1 * rng.random(56))
    shuffled = rng.permutation(["A"] * 40 + ["B"] * 16)
    found = unbalanced_groups(case_of(errors, device=shuffled.tolist(), model=model.tolist()))
    assert found is not None
    assert found.caveat is not None
    assert found.caveat.evidence["keys"] == ["model"]


def test_grouping_by_does_not_hide_a_pooled_variant() -> None:
    base = np.linspace(0.05, 0.09, 10)
    table = {
        "predicted": 1 + np.concatenate([base, 3 * base]) * np.tile([1, -1], 10),
        "measured": np.ones(20),
        "mode": ["inference"] * 10 + ["training"] * 10,
        "batch": [*range(10), *range(10)],
    }
    assert [c.code for c in check(table, by=["mode"])] == ["pooled-variants"]


def test_devices_in_words_are_variants_like_any_other() -> None:
    base = np.linspace(0.05, 0.09, 8)
    errors = np.concatenate([base, 2 * base])
    case = case_of(errors, devices=["one"] * 8 + ["two"] * 8, batch=[*range(8), *range(8)])
    found = pooled_variants(case)
    assert found is not None
    assert found.caveat is not None
    assert (found.caveat.evidence["variant"], found.caveat.evidence["usual"]) == ("two", "one")


@pytest.mark.parametrize(("n", "p"), [(5, None), (6, 2 / 2**6), (7, 2 / 2**7)])
def test_six_matched_configurations_are_enough_for_a_test_of_their_own(
    n: int, p: float | None
) -> None:
    """Half as large on each, beside others of either kind that are equally large."""
    base = np.linspace(0.05, 0.09, n)
    rest = np.linspace(0.05, 0.09, 20)
    case = case_of(
        np.concatenate([base, 2 * base, rest, rest]),
        variant=["base"] * n + ["fusion"] * n + ["base"] * 20 + ["fusion"] * 20,
        batch=[*range(n), *range(n), *range(100, 120), *range(200, 220)],
    )
    found = pooled_variants(case)
    assert found is not None
    if p is None:
        # Five prove nothing: on all rows the difference is too small to mention.
        assert found is NOTHING
        return
    assert found.caveat is not None
    assert found.p == pytest.approx(p)
    assert found.caveat.evidence["matched"] == n
