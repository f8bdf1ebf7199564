from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp import metrics
from errcomp.errors import InputError

P, M = [11.0, 12.0, 15.0, 13.0], [10.0] * 4
GROUPS = ["b", "b", "a", "b"]


def test_pooled_counts_pairs_and_macro_counts_groups() -> None:
    kw: dict[str, Any] = {"predicted": P, "measured": M, "groups": GROUPS}
    assert metrics.pooled("mape", **kw) == pytest.approx(1.1 / 4, rel=1e-15)
    result = metrics.macro("mape", **kw)
    assert result.value == pytest.approx((0.5 + 0.2) / 2, rel=1e-15)
    assert result.groups == ("a", "b")
    np.testing.assert_allclose(result.values, [0.5, 0.2], rtol=1e-15)
    assert result.sizes.tolist() == [1, 3]


@pytest.mark.parametrize("name", metrics.FIGURES)
def test_one_group_is_the_pooled_figure_and_equals_the_figure(name: str) -> None:
    rng = np.random.default_rng(1)
    m = rng.uniform(1, 5, 12)
    kw: dict[str, Any] = {"predicted": m * rng.uniform(0.8, 1.3, 12), "measured": m}
    value = metrics.figure(name).function(**kw)
    assert metrics.pooled(name, **kw, groups=[0] * 12) == value
    assert metrics.macro(name, **kw, groups=[0] * 12).value == value


def test_groups_of_equal_size_have_equal_means() -> None:
    rng = np.random.default_rng(2)
    m = rng.uniform(1, 5, 30)
    kw: dict[str, Any] = {"predicted": m * 1.2 * rng.uniform(0.5, 1, 30), "measured": m}
    groups = np.arange(30) % 3
    assert metrics.macro("mape", **kw, groups=groups).value == pytest.approx(
        metrics.pooled("mape", **kw, groups=groups), rel=1e-14
    )


@pytest.mark.parametrize("groups", [GROUPS, np.array(GROUPS, dtype=object), [7, 7, 3, 7]])
def test_labels_of_any_one_kind(groups: Any) -> None:
    result = metrics.macro("max_ape", predicted=P, measured=M, groups=groups)
    assert result.values.tolist() == [0.5, 0.3]


def test_excluded_rows_do_not_count_in_the_size() -> None:
    kw: dict[str, Any] = {"predicted": P, "measured": [10.0, 0.0, 10.0, 10.0], "groups": GROUPS}
    result = metrics.macro("mape", **kw, zeros="exclude")
    assert result.sizes.tolist() == [1, 2]
    np.testing.assert_allclose(result.values, [0.5, 0.2], rtol=1e-15)
    assert metrics.pooled("mape", **kw, zeros="exclude") == pytest.approx(0.9 / 3, rel=1e-15)


def test_values_below_one_count_in_the_size() -> None:
    result = metrics.macro("mape", predicted=P, measured=[0.5, 0.5, 0.5, 2.0], groups=GROUPS)
    assert result.sizes.tolist() == [1, 3]


def test_group_that_loses_all_its_rows_raises() -> None:
    with pytest.raises(InputError, match="group 'a' .*no pairs"):
        metrics.macro(
            "mape", predicted=P, measured=[10.0, 10.0, 0.0, 10.0], groups=GROUPS, zeros="exclude"
        )


def test_figure_not_defined_in_a_group_names_the_group() -> None:
    with pytest.raises(InputError, match="group 'a' .*Pearson's correlation is not defined"):
        metrics.macro("pearson", predicted=P, measured=[1.0, 2.0, 3.0, 4.0], groups=GROUPS)


def test_bad_measurement_is_named_by_its_row_in_the_whole() -> None:
    for aggregate in (metrics.pooled, metrics.macro):
        with pytest.raises(InputError, match="^measured must be positive, got 0.0 in row 4"):
            aggregate("mape", predicted=P, measured=[1.0, 1.0, 1.0, 0.0], groups=GROUPS)


@pytest.mark.parametrize("aggregate", [metrics.pooled, metrics.macro])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "b"], r"one label per pair, shape \(4,\), got shape \(2,\)"),
        ([["a"] * 4], r"one label per pair, shape \(4,\), got shape \(1, 4\)"),
        (["a", None, "b", None], r"must not be missing, got no label in rows 2, 4"),
        ([1.0, float("nan"), 1.0, 2.0], r"must not be missing, got no label in row 2"),
        (np.array(["a", 1, "b", 2], dtype=object), r"labels of one kind"),
    ],
    ids=["length", "2-D", "none", "nan", "mixed"],
)
def test_bad_groups_raise(aggregate: Any, groups: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        aggregate("mape", predicted=P, measured=M, groups=groups)


@pytest.mark.parametrize("aggregate", [metrics.pooled, metrics.macro])
def test_unknown_figure_raises(aggregate: Any) -> None:
    with pytest.raises(InputError, match="no metric 'maep'. Did you mean 'mape'"):
        aggregate("maep", predicted=P, measured=M, groups=GROUPS)
