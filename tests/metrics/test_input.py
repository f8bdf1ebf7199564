"""What no figure accepts, and what each says about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from errcomp import metrics
from errcomp.errors import InputError

POINTWISE = [
    metrics.ape,
    metrics.signed_percentage_error,
    metrics.log_accuracy_ratio,
    metrics.absolute_error,
]
SCALAR = [one.function for one in metrics.FIGURES.values()]
EVERY = [*POINTWISE, metrics.exact_predictions, *SCALAR]
LOGARITHMIC = [metrics.log_accuracy_ratio, metrics.gm_ratio, metrics.rmsle]
WEIGHTED: list[Callable[..., Any]] = [
    metrics.mape,
    metrics.median_ape,
    metrics.gmape,
    metrics.exact_predictions,
    metrics.gm_ratio,
    metrics.wape,
    metrics.bias,
    metrics.total_error,
    metrics.smape,
    metrics.mae,
    metrics.rmse,
    metrics.rmspe,
    metrics.rmsle,
    metrics.r2,
    metrics.pearson,
    partial(metrics.share_within, threshold=0.1),
    partial(metrics.ape_quantile, q=0.9, rule="inverted_cdf"),
]


def name_of(function: Any) -> str:
    return str(getattr(function, "func", function).__name__)


every = pytest.mark.parametrize("function", EVERY, ids=name_of)
weighted = pytest.mark.parametrize("function", WEIGHTED, ids=name_of)


@every
@pytest.mark.parametrize(
    ("predicted", "measured", "message"),
    [
        ([1.0, float("nan"), 3.0], [1.0, 2.0, 4.0], r"predicted must be finite, got nan in row 2"),
        ([1.0, 2.0, 3.0], [float("inf"), 2.0, 4.0], r"measured must be finite, got inf in row 1"),
        ([1.0, 2.0, 3.0], [1.0, 0.0, 0.0], r"measured must be positive, got 0.0 in rows 2, 3\."),
        ([1.0, 2.0, 3.0], [1.0, 2.0, -4.0], r"measured must be positive, got -4.0 in row 3"),
        ([1.0, 2.0], [1.0, 2.0, 4.0], r"the same length, got 2 and 3"),
        ([], [], r"no pairs"),
        ([[1.0, 2.0]], [[1.0, 2.0]], r"one-dimensional, got shape \(1, 2\)"),
        (["fast", "slow"], [1.0, 2.0], r"predicted must be numbers.*'fast'"),
    ],
    ids=["nan", "inf", "zero", "negative", "length", "empty", "2-D", "text"],
)
def test_pairs_that_cannot_be_used_raise(
    function: Callable[..., Any], predicted: Any, measured: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        function(predicted=predicted, measured=measured)


@every
def test_arguments_are_keyword_only(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="positional argument"):
        function([1.0, 2.0], [1.0, 3.0])


@every
def test_excluding_zeros_equals_leaving_the_rows_out(function: Callable[..., Any]) -> None:
    p, m = np.array([3.0, 5.0, 1.0, 8.0]), np.array([2.0, 0.0, 3.0, 9.0])
    kept = m > 0
    np.testing.assert_array_equal(
        function(predicted=p, measured=m, zeros="exclude"),
        function(predicted=p[kept], measured=m[kept]),
    )


@every
def test_unknown_zeros_rule_raises(function: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match='zeros must be "raise" or "exclude"'):
        function(predicted=[1.0, 2.0], measured=[1.0, 3.0], zeros="ignore")


@every
def test_input_is_not_changed_and_integers_are_fine(function: Callable[..., Any]) -> None:
    p, m = np.array([3, 5, 1]), np.array([2, 4, 7])
    before = p.copy(), m.copy()
    from_integers = function(predicted=p, measured=m)
    np.testing.assert_array_equal((p, m), before)
    np.testing.assert_array_equal(
        from_integers, function(predicted=p.tolist(), measured=m.astype(float).tolist())
    )


@pytest.mark.parametrize("function", LOGARITHMIC, ids=name_of)
def test_logarithm_of_a_prediction_not_positive_names_the_original_rows(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(InputError, match=r"got 0.0 in rows 3, 5\..*status.*mape or wape"):
        function(predicted=[1, 2, 0, 1, -3], measured=[1, 0, 2, 1, 2], zeros="exclude")


@weighted
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0], r"finite and not negative, got -2.0 in row 2\..*weight 0"),
        ([1.0, 1.0, float("nan")], r"finite and not negative, got nan in row 3"),
        ([float("inf"), 1.0, 1.0], r"finite and not negative, got inf in row 1"),
        ([0.0, 0.0, 0.0], r"must not all be zero"),
        ([1.0, 2.0], r"one value per pair, shape \(3,\), got shape \(2,\)"),
        ([[1.0, 2.0, 3.0]], r"one value per pair, shape \(3,\), got shape \(1, 3\)"),
        (["a", "b", "c"], r"weights must be numbers"),
    ],
    ids=["negative", "nan", "inf", "all zero", "length", "2-D", "text"],
)
def test_weights_that_cannot_be_used_raise(
    function: Callable[..., Any], weights: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        function(predicted=[1.0, 2.0, 3.0], measured=[2.0, 3.0, 5.0], weights=weights)


@weighted
def test_weights_belong_to_the_rows_as_given(function: Callable[..., Any]) -> None:
    excluded = function(
        predicted=[3.0, 5.0, 1.0, 8.0, 1.0],
        measured=[2.0, 0.0, 3.0, 9.0, 8.0],
        weights=[1.0, 7.0, 2.0, 3.0, 0.0],
        zeros="exclude",
    )
    assert excluded == function(
        predicted=[3.0, 1.0, 8.0], measured=[2.0, 3.0, 9.0], weights=[1.0, 2.0, 3.0]
    )


@weighted
def test_only_weight_on_an_excluded_row_raises(function: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="must not all be zero"):
        function(predicted=[1, 2], measured=[0, 3], weights=[1, 0], zeros="exclude")


@weighted
@pytest.mark.parametrize("unit", [1e-300, 1e300], ids=["tiny", "huge"])
def test_weights_count_relative_to_each_other(function: Callable[..., Any], unit: float) -> None:
    p, m, w = [3.0, 1.0, 8.0], [2.0, 3.0, 9.0], np.array([1.0, 2.0, 4.0])
    expected = function(predicted=p, measured=m, weights=w)
    assert function(predicted=p, measured=m, weights=unit * w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "mape",
        "median_ape",
        "gmape",
        "wape",
        "bias",
        "total_error",
        "smape",
        "rmspe",
        "max_ape",
        "p99_ape",
    ],
)
def test_one_pair_is_enough_for_an_error(name: str) -> None:
    value = metrics.figure(name).function(predicted=[12.0], measured=[10.0])
    assert value == pytest.approx(2 / 11 if name == "smape" else 0.2, rel=1e-15)


@every
def test_extreme_values_set_off_no_floating_point_flag_but_underflow(
    function: Callable[..., Any],
) -> None:
    p = np.array([1e300, 3e-300, 1.0, 5e299, 2e-300])
    m = np.array([2e300, 1e-300, 3.0, 1e300, 7e-300])
    with np.errstate(all="raise", under="ignore"):
        value = function(predicted=p, measured=m)
    assert np.isfinite(value).all()


class TestOverflow:
    """A result that no float can hold raises: it is neither infinite nor a warning."""

    @pytest.mark.parametrize(
        "function",
        [
            metrics.ape,
            metrics.signed_percentage_error,
            metrics.mape,
            metrics.bias,
            metrics.rmspe,
            metrics.median_ape,
            metrics.max_ape,
        ],
        ids=name_of,
    )
    def test_percentage_error(self, function: Callable[..., Any]) -> None:
        with pytest.raises(
            InputError, match=r"beyond the largest.*row 3, got predicted=1e\+300, measured=1e-10"
        ):
            function(predicted=[1, 1, 1e300], measured=[1, 0, 1e-10], zeros="exclude")

    @pytest.mark.parametrize("function", [metrics.absolute_error, metrics.rmse], ids=name_of)
    def test_difference(self, function: Callable[..., Any]) -> None:
        with pytest.raises(InputError, match=r"predicted - measured is beyond.*row 1"):
            function(predicted=[-1.7e308, 1], measured=[1.7e308, 1])

    def test_ratios_of_means(self) -> None:
        far = {"predicted": [1e300, 1e300], "measured": [1e-300, 2e-300]}
        with pytest.raises(InputError, match="the weighted percentage error is beyond"):
            metrics.wape(**far)
        with pytest.raises(InputError, match="predicted / measured is beyond"):
            metrics.gm_ratio(**far)
        with pytest.raises(InputError, match="the geometric mean of APE is beyond"):
            metrics.gmape(**far)
        with pytest.raises(InputError, match="R² is beyond"):
            metrics.r2(**far)
        with pytest.raises(InputError, match="the regret is beyond"):
            metrics.top_k_regret(predicted=[1, 2], measured=[1e300, 1e-300], k=1)

    def test_mean_of_the_largest_float_is_itself(self) -> None:
        largest = np.finfo(np.float64).max
        assert metrics.rmse(predicted=[0.0, 0.0], measured=[largest, largest]) == largest
