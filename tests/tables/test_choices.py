"""Which rows are alternatives of one choice, and what is missing where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp import Pairs, datasets
from errcomp.errors import GuessedWarning, InputError
from errcomp.tables.choices import ALONE, NOT_POSITIVE, choices_of

COLUMNS: dict[str, list[Any]] = {
    "device": ["A", "B", "A", "B", "C"],
    "model": ["x", "x", "y", "y", "z"],
    "vendor": ["v", "w", "v", "w", "w"],
    "predicted": [1.0, 2.0, 3.0, 4.0, 5.0],
    "measured": [1.5, 2.5, 3.5, 4.5, 5.5],
}


def test_conditions_are_what_was_run_and_not_what_belongs_to_the_alternative() -> None:
    found = choices_of(Pairs(COLUMNS), between="device")
    assert found.within == ("model",)
    assert found.alternatives == ("A", "B")
    assert found.conditions == ({"model": "x"}, {"model": "y"})
    assert found.start.tolist() == [0, 2, 4]
    assert np.exp(found.rows.x).tolist() == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert np.exp(found.rows.y).tolist() == pytest.approx([1.5, 2.5, 3.5, 4.5])
    assert [(d.reason, d.rows) for d in found.dropped] == [(ALONE, (5,))]
    first, second = found.pairs(np.ones(4, dtype=bool))
    assert [first.tolist(), second.tolist()] == [[0, 2], [1, 3]]


def test_the_conditions_of_the_built_in_table() -> None:
    pairs = datasets.load("neusight").of_tool()
    found = choices_of(pairs, between="device")
    assert found.within == ("model", "mode", "batch", "seq_len", "devices", "variant")
    assert (len(found.conditions), len(found.rows), found.cluster) == (29, 141, "model")


def test_further_columns_count_where_an_alternative_has_several_rows() -> None:
    columns = {
        "gpu": [*"ABAB"],
        "kernel_id": [1, 1, 2, 2],
        "energy": [0.5, 0.25, 0.75, 0.125],
        "predicted": [1.0, 2.0, 3.0, 4.0],
        "measured": [1.0, 2.0, 3.0, 4.0],
    }
    found = choices_of(Pairs(columns), between="device")
    assert (found.between, found.within) == (("gpu",), ("kernel_id",))
    assert found.cluster == ""


def test_only_columns_that_separate_rows_are_added_to_those_named() -> None:
    columns = {
        "device": [*"ABABAB"],
        "batch": [1, 1, 1, 1, 2, 2],
        # The mode says what the batch says already.
        "mode": [*"iiiitt"],
        "seq_len": [64, 64, 128, 128, 64, 64],
        "predicted": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "measured": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    with pytest.warns(GuessedWarning, match="also compared at equal seq_len"):
        found = choices_of(Pairs(columns), between="device", within=["batch"])
    assert found.within == ("batch", "seq_len")


def test_repeats_are_averaged_and_counted() -> None:
    columns = {
        "device": [*"AAB"],
        "repeat": [1, 2, 1],
        "predicted": [2.0, 2.0, 3.0],
        "measured": [1.0, 4.0, 5.0],
    }
    found = choices_of(Pairs(columns), between="device")
    assert np.exp(found.rows.y).tolist() == pytest.approx([2.0, 5.0])
    assert found.repeated == 1


def test_a_repeat_without_a_measurement_does_not_hide_the_other() -> None:
    columns = {
        "device": [*"AAB"],
        "predicted": [2.0, 2.0, 3.0],
        "measured": [None, 4.0, None],
    }
    found = choices_of(Pairs(columns, missing="keep"), between="device")
    assert np.exp(found.rows.y).tolist() == pytest.approx([4.0, np.nan], nan_ok=True)


def test_several_keys_name_an_alternative_together() -> None:
    frame = pl.DataFrame(COLUMNS).with_columns(precision=pl.Series([*"pqpqp"]))
    found = choices_of(Pairs(frame), between=["device", "precision"])
    assert found.alternatives == ("A, p", "B, q")


def test_times_are_divided() -> None:
    columns = {
        "batch": [1, 2, 4],
        "predicted": [1.0, 1.5, 4.0],
        "measured": [1.0, 1.8, 3.0],
    }
    found = choices_of(Pairs(columns), between="batch", per="batch")
    assert np.exp(found.rows.x).tolist() == pytest.approx([1.0, 0.75, 1.0])
    assert np.exp(found.rows.y).tolist() == pytest.approx([1.0, 0.9, 0.75])
    assert (found.per, found.price, found.higher) == ("batch", "", False)


def test_choices_may_be_about_costs_and_more_may_be_better() -> None:
    columns: dict[str, list[Any]] = {
        "device": [*"ABAB"],
        "batch": [1, 1, 2, 2],
        "usd": ["0.5", "2", "0.5", None],
        "predicted": [1.0, 2.0, 3.0, 4.0],
        "measured": [1.5, 2.5, 3.5, 4.5],
    }
    found = choices_of(Pairs(columns), between="device", price="usd", within=["batch"])
    # A price may lack where a row was measured.
    assert np.exp(found.rows.price) == pytest.approx([0.5, 2.0, 0.5, np.nan], nan_ok=True)
    assert np.exp(found.rows.x) == pytest.approx([1.0, 2.0, 3.0, 4.0])
    costs = found.priced()
    assert np.exp(costs.rows.x) == pytest.approx([0.5, 4.0, 1.5, np.nan], nan_ok=True)
    assert np.exp(costs.rows.y) == pytest.approx([0.75, 5.0, 1.75, np.nan], nan_ok=True)
    assert (costs.price, costs.higher, costs.rows.group.tolist()) == ("usd", False, [0, 0, 1, 1])
    more = choices_of(Pairs(columns), between="device", within=["batch"], higher=True)
    assert np.exp(-more.rows.x) == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert np.exp(-more.rows.y) == pytest.approx([1.5, 2.5, 3.5, 4.5])
    assert more.higher
    columns["measured"][3] = None
    message = "'price' needs a column of positive numbers, but column 'usd' has None in row 4"
    with pytest.raises(InputError, match=message):
        choices_of(Pairs(columns, missing="keep"), between="device", price="usd")
    columns["usd"] = ["0.5", "-2", "0.5", "1"]
    with pytest.raises(InputError, match="column 'usd' has '-2' in row 2"):
        choices_of(Pairs(columns, missing="keep"), between="device", price="usd")


@pytest.mark.parametrize(
    ("cluster", "name", "groups"),
    [
        (None, "model", [0, 0, 0, 0, 1, 1]),
        ("none", "", [0, 0, 1, 1, 2, 2]),
        ("batch", "batch", [0, 0, 1, 1, 0, 0]),
        ("model", "model", [0, 0, 0, 0, 1, 1]),
    ],
)
def test_conditions_of_one_cluster_are_a_group(
    cluster: str | None, name: str, groups: list[int]
) -> None:
    columns = {
        "device": [*"ABABAB"],
        "model": [*"xxxxyy"],
        "batch": [1, 1, 2, 2, 1, 1],
        "predicted": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "measured": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    found = choices_of(Pairs(columns), between="device", cluster=cluster)
    assert (found.cluster, found.rows.group.tolist()) == (name, groups)
    columns["network"] = columns.pop("model")
    found = choices_of(Pairs(columns), between="device", cluster=cluster)
    assert (found.cluster, found.rows.group.tolist()) == (name.replace("model", "network"), groups)


def test_numbers_with_decimals_are_no_condition() -> None:
    columns = {
        "device": [*"ABAB"],
        "energy": [0.5, 0.5, 0.75, 0.75],
        "kernel_id": [1.0, 1.0, 2.0, 2.0],
        "predicted": [1.0, 2.0, 3.0, 4.0],
        "measured": [1.0, 2.0, 3.0, 4.0],
    }
    assert choices_of(Pairs(columns), between="device").within == ("kernel_id",)


def test_what_an_alternative_determines_is_no_condition_even_where_it_usually_is() -> None:
    columns = {**COLUMNS, "precision": [*"pqpqq"]}
    found = choices_of(Pairs(columns), between="device")
    assert found.within == ("model",)


def test_a_column_that_differs_in_every_row_separates_no_repeats() -> None:
    columns = {
        "device": [*"AAAAB"],
        "note": [*"uvwxy"],
        "predicted": [2.0, 2.0, 2.0, 2.0, 3.0],
        "measured": [1.0, 4.0, 1.0, 4.0, 5.0],
    }
    found = choices_of(Pairs(columns), between="device")
    assert (found.within, found.repeated) == ((), 3)
    assert np.exp(found.rows.y).tolist() == pytest.approx([2.0, 5.0])


def test_predictions_of_nothing_are_left_out() -> None:
    columns = {"device": [*"ABC"], "predicted": [0.0, 1.0, 2.0], "measured": [1.0, 1.0, 2.0]}
    found = choices_of(Pairs(columns), between="device")
    assert [(d.reason, d.rows) for d in found.dropped] == [(NOT_POSITIVE, (1,))]


@pytest.mark.parametrize(
    ("changed", "how", "message"),
    [
        ({"device": ["A"] * 5}, {}, "device has only one value, 'A'"),
        ({"model": [*"abcde"]}, {}, r"no two values of device were predicted under equal "
         r"conditions \(model\)\. Rows agree without model: leave it out with --within"),
        ({"model": [*"abcde"], "mode": [*"abcde"]}, {},
         "Predict the alternatives under the same conditions"),
        ({}, {"within": ["nothing"]}, "no column 'nothing'"),
        ({}, {"between": "nothing"}, "no column 'nothing'"),
        ({}, {"within": ["device"]}, "key 'device' is given in 'between' and in 'within'"),
        ({}, {"between": "tool"}, "the column 'tool' says which tool made a prediction, so"),
        ({}, {"cluster": "vendor"}, "cluster 'vendor' is not one of the conditions: model"),
        ({}, {"per": "vendor"},
         "'per' needs a column of positive numbers, but column 'vendor' has 'v' in row"),
        ({"best": [1, 1, 2, 2, 3]}, {"within": ["best"]}, "cannot group by 'best'"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(
    changed: dict[str, Any], how: dict[str, Any], message: str
) -> None:
    columns = {**COLUMNS, **changed}
    if how.get("between") == "tool":
        columns["tool"] = ["t"] * 5
    with pytest.raises(InputError, match=message):
        choices_of(Pairs(columns), **{"between": "device", **how})
