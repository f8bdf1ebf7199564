"""How many pairs, how independent, what is twice in the table and what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.caveats import check
from errcomp.caveats._case import NOTHING, Case
from errcomp.caveats.sample import (
    clustered,
    duplicated_configurations,
    failures,
    few_configurations,
)
from errcomp.results import Caveat
from errcomp.tables import Pairs


def case_of(errors: list[float] | np.ndarray, **keys: object) -> Case:
    errors = np.asarray(errors, dtype=float)
    return Case(Pairs({"predicted": 1 + errors, "measured": np.ones(len(errors)), **keys}))


def caveat_of(found: object) -> Caveat:
    assert getattr(found, "caveat", None) is not None
    return found.caveat  # type: ignore[attr-defined, no-any-return]


def test_nine_are_few_and_ten_are_not() -> None:
    nine = caveat_of(few_configurations(case_of([0.1] * 9)))
    assert nine.message == (
        "Only 9 pairs: with Gaussian errors, the MAPE is uncertain by about ± 58 % of its "
        "value. About 36 pairs would narrow the uncertainty to ± 25 %."
    )
    assert few_configurations(case_of([0.1] * 10)) is None
    one = caveat_of(few_configurations(case_of([0.1])))
    assert one.message.startswith(
        "Only 1 pair: the uncertainty of the MAPE is unknown. About 36 pairs"
    )
    assert one.evidence["relative_uncertainty"] is None


def test_the_number_needed_gives_gaussian_errors_an_interval_of_a_quarter() -> None:
    needed = caveat_of(few_configurations(case_of([0.1]))).evidence["n_for_quarter"]
    means = np.abs(np.random.default_rng(0).standard_normal((20_000, needed))).mean(axis=1)
    within = np.abs(means / np.sqrt(2 / np.pi) - 1) <= 0.25
    assert within.mean() == pytest.approx(0.95, abs=0.01)


def test_pairs_of_one_model_that_err_alike() -> None:
    model = np.repeat(list("abcde"), 8)
    errors = np.repeat([0.05, 0.1, 0.2, 0.3, 0.4], 8) + np.tile(np.linspace(0, 0.02, 8), 5)
    found = clustered(case_of(errors, model=model.tolist(), batch=list(range(40))))
    caveat = caveat_of(found)
    assert caveat.message == (
        "Pairs of one model have correlated errors (intraclass correlation 1.00): 40 pairs are "
        "as informative as about 5 independent pairs."
    )
    assert caveat.evidence["effective_n"] == pytest.approx(5, abs=0.1)
    assert found is not None
    assert found.p == pytest.approx(1 / 2000)


def test_of_two_clusterings_the_more_costly_one_is_named() -> None:
    # Four devices err alike; each model is on one device, so that models do too, but less costly.
    device = np.repeat(list("ABCD"), 12)
    model = [f"m{i // 3}" for i in range(48)]
    errors = np.repeat([0.05, 0.15, 0.3, 0.5], 12) + np.tile(np.linspace(0, 0.02, 12), 4)
    caveat = caveat_of(clustered(case_of(errors, device=device.tolist(), model=model)))
    assert caveat.evidence["key"] == "device"


def test_clusters_of_one_pair_or_equal_errors_are_no_clusters() -> None:
    assert clustered(case_of([0.1, 0.2, 0.3], model=["a", "b", "c"])) is None
    assert clustered(case_of([0.1] * 6, model=list("aabbcc"))) is None
    assert clustered(case_of([0.1, 0.2] * 6, model=["a", "a", "b", "b"] * 3)) is NOTHING


def test_identical_rows_are_counted_and_left_out() -> None:
    caveat = caveat_of(
        duplicated_configurations(
            case_of([0.1, 0.1, 0.1, 0.5], model=["a", "a", "a", "b"], batch=[1, 1, 2, 1])
        )
    )
    assert caveat.message == (
        "4 rows hold only 3 configurations: 1 row repeats the keys and the prediction of "
        "another row (and 1 of these also its measurement). If each configuration counts once, the "
        "MAPE is 23.33 %, not 20.00 %."
    )


def test_repeated_measurements_of_a_configuration_are_found() -> None:
    table = {
        "predicted": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
        "measured": [1.1, 1.2, 1.3, 2.1, 2.2, 2.3],
        "model": ["a"] * 3 + ["b"] * 3,
        "repeat": [1, 2, 3] * 2,
    }
    caveat = caveat_of(duplicated_configurations(Case(Pairs(table))))
    assert caveat.evidence["configurations"] == 2
    assert (caveat.evidence["repeated"], caveat.evidence["identical"]) == (4, 0)


def test_a_repeat_that_changes_nothing_is_said_to_change_nothing() -> None:
    table = {
        "predicted": [102.0, 102.0, 204.0], "measured": [100.0, 100.0, 200.0], "model": [*"aab"],
    }  # fmt: skip
    caveat = caveat_of(duplicated_configurations(Case(Pairs(table))))
    assert caveat.message.endswith("If each configuration counts once, the MAPE stays 2.00 %.")


def test_keys_that_do_not_settle_the_prediction_do_not_make_duplicates() -> None:
    # Two values of a device, many configurations each: two equal rows may be rounding.
    rng = np.random.default_rng(0)
    measured = rng.permutation(np.arange(1.0, 41.0))
    predicted = measured + 1
    measured[1], predicted[1] = measured[0], predicted[0]
    table = {"predicted": predicted, "measured": measured, "device": ["A", "B"] * 20}
    assert duplicated_configurations(Case(Pairs(table))) is None
    table["device"] = ["A"] * 40
    assert duplicated_configurations(Case(Pairs(table))) is None


def test_without_keys_a_tenth_of_equal_rows_is_no_accident() -> None:
    doubled = np.tile(np.arange(1.0, 11.0), 2)
    found = duplicated_configurations(Case(Pairs({"predicted": doubled + 1, "measured": doubled})))
    assert caveat_of(found).evidence["identical"] == 10


def test_a_constant_prediction_without_keys_is_no_duplicate() -> None:
    table = {"predicted": [5.0] * 20, "measured": np.arange(1.0, 21.0)}
    assert duplicated_configurations(Case(Pairs(table))) is None


def test_distinct_configurations_are_no_duplicates() -> None:
    assert duplicated_configurations(case_of([0.1, 0.1, 0.1], batch=[1, 2, 3])) is None


def test_a_derived_column_is_no_part_of_the_configuration() -> None:
    keys = {"model": ["a", "b", "c"], "operators": [10, 20, 30]}
    assert case_of([0.1, 0.2, 0.3], **keys).configuration_keys == ("model",)


def test_a_column_that_tells_rows_apart_is_part_of_the_configuration() -> None:
    keys = {"model": ["a", "a", "b"], "hidden": [10, 20, 10], "sparsity": [0.5, 0.5, 0.25]}
    assert case_of([0.1, 0.2, 0.3], **keys).configuration_keys == ("model", "hidden")


def test_a_swept_fraction_is_part_of_it_and_a_measured_one_is_not() -> None:
    measured = [1.23, 1.24, 1.25, 1.26]
    keys = {"model": ["a"] * 4, "sparsity": [0.25, 0.5, 0.25, 0.5], "power": measured}
    assert case_of([0.1, 0.2, 0.3, 0.4], **keys).configuration_keys == ("model", "sparsity")


def test_failed_rows_are_counted_with_their_reasons() -> None:
    table = {
        "predicted": [1.1] * 19 + [0.0],
        "measured": [1.0] * 18 + [0.0, 1.0],
        "status": ["ok"] * 19 + ["out of memory"],
        "batch": list(range(20)),
    }
    pairs = Pairs(table, zeros="exclude")
    caveat = caveat_of(failures(Case(pairs)))
    assert caveat.message == (
        "2 of 20 rows (10.00 %) are left out: the prediction failed (status), 1 row; measured is "
        "not positive, 1 row. The metric applies only to the other rows."
    )
    assert caveat.evidence["reasons"] == {
        "the prediction failed (status)": 1,
        "measured is not positive": 1,
    }


def test_less_than_one_failure_in_a_hundred_is_left_to_the_count() -> None:
    table = {"predicted": [1.1] * 200, "measured": [1.0] * 200, "batch": list(range(200))}
    one = Pairs({**table, "status": ["ok"] * 199 + ["failed"]})
    two = Pairs({**table, "status": ["ok"] * 198 + ["failed"] * 2})
    assert failures(Case(one)) is None
    assert failures(Case(two)) is not None
    assert failures(Case(Pairs(table))) is None


def test_clusters_are_found_through_the_entry_point() -> None:
    rng = np.random.default_rng(1)
    model = np.repeat(list("abcdef"), 6)
    errors = np.repeat(rng.lognormal(-2, 0.8, 6), 6) * rng.lognormal(0, 0.1, 36)
    sign = rng.choice([-1, 1], 36)
    table = {"predicted": 1 + sign * errors, "measured": np.ones(36), "model": model.tolist()}
    assert [c.code for c in check({**table, "batch": list(range(36))})] == ["clustered"]
