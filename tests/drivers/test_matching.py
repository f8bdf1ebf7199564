"""Factors, keys to match on, merged devices, and the errors that are compared."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.drivers.matching import (
    choose_factors,
    level_text,
    match_keys,
    merged_devices,
    outcomes_of,
    reference_level,
)
from errcomp.errors import InputError
from errcomp.tables import Pairs


def pairs_of(**columns):
    n = len(next(iter(columns.values())))
    predicted = columns.pop("predicted", [1.0 + 0.01 * i for i in range(n)])
    return Pairs({"predicted": predicted, "measured": [1.0] * n, **columns})


def matching_of(pairs, factor, rows=None):
    rows = np.ones(pairs.n, dtype=bool) if rows is None else np.array(rows, dtype=bool)
    return match_keys(pairs, factor, choose_factors(pairs, None), rows=rows)


def test_factors_are_complete_keys_with_a_few_labels_known_ones_first():
    n = 10
    pairs = pairs_of(
        dtype=["fp16", "fp32"] * 5,
        mode=["inference", "training"] * 5,
        batch=[1, 2] * 5,
        devices=[1, 4] * 5,
        layers=[12, 24] * 5,
        name=[f"run{i}" for i in range(n)],
        gap=["a", None] * 5,
        same=["x"] * n,
        device=["A", "B", "C", "A", "B"] * 2,
        nickname=["a", "b", "c", "a", "b"] * 2,
        model=["m", "m", "n", "n", "n"] * 2,
        tool=["t"] * n,
    )
    assert choose_factors(pairs, None) == ("mode", "batch", "devices", "dtype")


@pytest.mark.parametrize(("labels", "factors"), [(8, ("dtype",)), (9, ())])
def test_a_factor_has_at_most_eight_labels(labels, factors):
    pairs = pairs_of(dtype=[f"t{i % labels}" for i in range(18)])
    assert choose_factors(pairs, None) == factors


def test_factors_asked_for_are_taken_once_and_in_order():
    pairs = pairs_of(layers=[12, 24], device=["A", "B"])
    assert choose_factors(pairs, ["layers", "device", "layers"]) == ("layers", "device")


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        ("gap", "factor 'gap' has no value in 1 of 2 rows"),
        ("same", "factor 'same' is 'x' in every row"),
        ("absent", "no column 'absent'"),
    ],
)
def test_unusable_factors_are_refused_with_the_reason(factor, message):
    pairs = pairs_of(gap=["a", None], same=["x", "x"])
    with pytest.raises(InputError, match=message):
        choose_factors(pairs, [factor])


@pytest.mark.parametrize(
    ("values", "factor", "expected"),
    [
        (["training", "training", "inference"], "mode", "inference"),
        ([False, False, True], "in_training", True),
        (["b", "a", "b"], "dtype", "b"),
        (["b", "a"], "dtype", "a"),
        ([8, 4, 4], "devices", 4),
    ],
)
def test_reference_is_the_usual_level_or_the_most_frequent(values, factor, expected):
    assert reference_level(pairs_of(**{factor: values}), factor) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(8, "8"), (8.0, "8"), (0.5, "0.5"), (np.bool_(False), "false"), ("x", "x")],
)
def test_levels_are_written_as_users_write_them(value, text):
    assert level_text(value) == text


def test_keys_that_fix_the_factor_or_are_fixed_by_it_cannot_be_matched_on():
    pairs = pairs_of(
        device=["A", "A", "B", "B", "C", "C"],
        device_name=["dev A", "dev A", "dev B", "dev B", "dev C", "dev C"],
        vendor=["x", "x", "x", "x", "y", "y"],
        country=["i", "i", "i", "i", "j", "j"],
        mode=["inference", "training"] * 3,
    )
    matching = matching_of(pairs, "vendor")
    assert matching.on == ("mode",)
    assert set(matching.impossible) == {"device", "device_name", "country"}


def test_keys_that_another_fixes_are_matched_with_it_and_not_named():
    pairs = pairs_of(
        device=["A", "A", "B", "B"],
        device_name=["dev A", "dev A", "dev B", "dev B"],
        model=["m", "m", "n", "n"],
        seq_len=[128, 128, 256, 256],
        variant=["base", "fusion"] * 2,
    )
    assert matching_of(pairs, "variant").on == ("device", "model")


def test_levels_outside_the_question_do_not_decide_what_can_be_matched():
    # Four devices go with dp4 only; fused and base run on one device each.
    pairs = pairs_of(
        variant=["base", "fusion", "dp4", "base"],
        devices=[1, 1, 4, 1],
        batch=[1, 1, 1, 2],
    )
    assert matching_of(pairs, "variant").impossible == ("devices",)
    assert matching_of(pairs, "variant", [1, 1, 0, 1]).impossible == ()


def test_a_label_of_device_and_model_together_is_not_matched_on():
    pairs = pairs_of(
        device=["A", "A", "B", "B", "C", "C"],
        model=["m", "n", "m", "n", "m", "n"],
        vendor=["x", "x", "x", "x", "y", "y"],
        seen=[True, False, False, True, True, True],
    )
    assert matching_of(pairs, "vendor").on == ("model",)


def test_numbers_of_the_user_are_not_matched_on_unless_they_are_factors():
    pairs = pairs_of(variant=["base", "fusion"] * 2, layers=[1, 1, 2, 2], operators=[5, 9, 6, 8])
    rows = np.ones(4, dtype=bool)
    assert matching_of(pairs, "variant").on == ()
    assert match_keys(pairs, "variant", ("variant", "layers"), rows=rows).on == ("layers",)


def test_devices_with_the_same_predictions_count_as_one():
    pairs = pairs_of(
        device=["A"] * 3 + ["B"] * 3 + ["C"] * 3,
        model=["m", "n", "o"] * 3,
        vendor=["x"] * 6 + ["y"] * 3,
        predicted=[1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0],
    )
    assert merged_devices(pairs) == {"A": "A", "B": "A", "C": "C"}


def test_two_equal_predictions_are_too_few_to_merge_devices():
    pairs = pairs_of(
        device=["A", "A", "B", "B"], model=["m", "n"] * 2, predicted=[1.0, 2.0, 1.0, 2.0]
    )
    assert merged_devices(pairs) == {"A": "A", "B": "B"}


def test_nothing_is_merged_without_a_complete_device_key():
    assert merged_devices(pairs_of(model=["m", "n"])) == {}
    assert merged_devices(pairs_of(device=["A", None])) == {}


def test_scales_agree_with_their_definitions():
    out = outcomes_of(Pairs({"predicted": [110.0, 80.0], "measured": [100.0, 100.0]}))
    assert out.ape == pytest.approx([0.1, 0.2])
    assert out.log_ape == pytest.approx(np.log([0.1, 0.2]))
    assert out.signed == pytest.approx(np.log([1.1, 0.8]))
    assert out.n_floored == 0


def test_an_exact_hit_counts_as_one_hundredth_of_the_median_error():
    predicted = [100.0, 110.0, 120.0, 130.0, 100.01]
    out = outcomes_of(Pairs({"predicted": predicted, "measured": [100.0] * 5}))
    # Positive APEs: 0.0001, 0.1, 0.2, 0.3, so the median is 0.15.
    assert out.floor == pytest.approx(0.0015)
    assert np.exp(out.log_ape) == pytest.approx([0.0015, 0.1, 0.2, 0.3, 0.0015])
    assert out.n_floored == 2
    assert out.ape[0] == 0.0


def test_a_perfect_tool_has_equal_errors_everywhere():
    out = outcomes_of(Pairs({"predicted": [5.0, 7.0], "measured": [5.0, 7.0]}))
    assert out.log_ape.tolist() == [0.0, 0.0]


def test_floor_does_not_depend_on_the_unit():
    a = outcomes_of(Pairs({"predicted": [1.0, 2.2, 3.0], "measured": [1.1, 2.0, 3.0]}))
    b = outcomes_of(Pairs({"predicted": [1e3, 2.2e3, 3e3], "measured": [1.1e3, 2e3, 3e3]}))
    assert a.log_ape == pytest.approx(b.log_ape)


def test_predictions_that_are_not_positive_are_named():
    pairs = Pairs({"predicted": [1.0, 0.0, -2.0], "measured": [1.0, 1.0, 1.0]}, source="x.csv")
    with pytest.raises(
        InputError, match=r"x.csv: predicted must be positive.* got 0.0 in rows 2, 3"
    ):
        outcomes_of(pairs)


@pytest.mark.parametrize(("predicted", "measured"), [(1e80, 1.0), (1e308, 1e-308)])
def test_an_error_that_cannot_be_squared(predicted, measured):
    with pytest.raises(InputError, match=r"more than 1e\+75 times measured, .* in row 2\."):
        outcomes_of(Pairs({"predicted": [1.0, predicted], "measured": [1.0, measured]}))
