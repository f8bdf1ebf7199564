from __future__ import annotations

import json
import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.errors.reference_chain import Chain, Step

SURROGATE = Step("surrogate", "simulator", mape=0.0061)
SIMULATOR = Step("simulator", "RTL", mape=(0.05, 0.10))


def three(*spreads: float) -> Chain:
    names = ["a", "b", "c", "d"]
    return Chain([Step(names[i], names[i + 1], spread=s) for i, s in enumerate(spreads)])


def test_a_mape_is_the_mean_of_normal_log_ratios() -> None:
    low, high = SIMULATOR.spreads
    z = np.random.default_rng(0).standard_normal(1_000_000)
    assert np.abs(high * z).mean() == pytest.approx(0.10, rel=0.005)
    assert SIMULATOR.mean_absolute == pytest.approx((0.05, 0.10))
    # The size of the approximation that the documentation states.
    assert np.abs(np.expm1(high * z)).mean() == pytest.approx(0.1005, rel=0.005)
    assert low == pytest.approx(high / 2)


def test_mean_absolute_error_with_bias() -> None:
    z = np.random.default_rng(1).standard_normal(1_000_000)
    step = Step("a", "b", bias=-0.05, spread=0.04)
    assert step.mean_absolute[0] == pytest.approx(np.abs(-0.05 + 0.04 * z).mean(), rel=0.003)
    assert Step("a", "b", bias=-0.05, spread=0).mean_absolute == (0.05, 0.05)


def test_surrogate_of_a_simulator() -> None:
    found = Chain([SURROGATE, SIMULATOR]).compose()
    assert found.error == pytest.approx((math.hypot(0.0061, 0.05), math.hypot(0.0061, 0.10)))
    assert found.error_any == pytest.approx((0.0439, 0.1061))
    assert found.first == pytest.approx((0.0061, 0.0061))
    assert found.bias_unknown == ("surrogate", "simulator")
    text = (
        "surrogate: 0.61 % against simulator; against RTL 5.04–10.02 % if the errors are "
        "independent, 4.39–10.61 % for any correlation; bias of surrogate and "
        "simulator unknown"
    )
    assert str(found) == repr(found) == f"{found}" == text
    assert f"{found:>200}".endswith(text)


def test_the_first_figure_is_no_number_alone() -> None:
    found = Chain([SURROGATE, SIMULATOR]).compose()
    with pytest.raises(TypeError, match="not a single number: surrogate: 0.61 % against simulator"):
        float(found)
    with pytest.raises(TypeError, match="the format '.2%' does not apply"):
        f"{found:.2%}"


def test_the_chain_ends_where_it_ends() -> None:
    chain = Chain([SURROGATE, SIMULATOR])
    assert chain.compose(against="RTL").names == ("surrogate", "simulator", "RTL")
    with pytest.raises(InputError, match="ends at RTL, not at hardware: surrogate → simulator → R"):
        chain.compose(against="hardware")


def test_biases_add_with_their_signs() -> None:
    chain = Chain([Step("a", "b", bias=0.02, spread=0.03), Step("b", "c", bias=-0.05, spread=0.04)])
    found = chain.compose(0.0)
    assert found.bias == pytest.approx(-0.03)
    assert found.spread == pytest.approx((0.05, 0.05))
    assert found.spread_any == pytest.approx((0.01, 0.07))
    assert found.error_any[0] == pytest.approx(0.03)
    assert found.error_any[0] <= found.error[0] <= found.error_any[1]
    assert str(found).endswith("for any correlation; bias -3.00 %")
    assert "at correlation 0," in str(found)


@pytest.mark.parametrize(
    ("correlation", "expected"), [(0.0, 0.05), (1.0, 0.07), (-1.0, 0.01), (0.5, math.sqrt(0.0037))]
)
def test_two_spreads(correlation: float, expected: float) -> None:
    found = three(0.03, 0.04).compose(correlation)
    assert found.spread == pytest.approx((expected, expected))
    matrix = three(0.03, 0.04).compose([[1, correlation], [correlation, 1]])
    assert matrix.spread == pytest.approx(found.spread)
    assert "at the given correlations" in str(matrix)


def test_unknown_correlation_is_not_zero() -> None:
    found = three(0.03, 0.04).compose()
    assert found.correlation is None
    assert found.spread == pytest.approx((0.05, 0.05))
    assert "if the errors are independent" in str(found)
    assert found.to_dict()["correlation"] is None


def test_three_steps() -> None:
    chain = three(0.01, 0.02, 0.09)
    assert chain.compose(0.0).spread[0] == pytest.approx(math.sqrt(0.0086))
    assert chain.compose(1.0).spread[0] == pytest.approx(0.12)
    assert chain.compose().spread_any == pytest.approx((0.06, 0.12))
    assert three(0.02, 0.03, 0.04).compose().spread_any == pytest.approx((0.0, 0.09))
    with pytest.raises(InputError, match="cannot all hold"):
        chain.compose(-1.0)


@pytest.mark.parametrize("correlation", [-0.9, -0.3, 0.4])
def test_ranges_under_correlation_are_those_of_a_search(correlation: float) -> None:
    ranges = [(0.02, 0.2), (0.05, 0.1), (0.03, 0.03)]
    rho = np.eye(3)
    rho[0, 1] = rho[1, 0] = correlation
    rho[1, 2] = rho[2, 1] = -correlation / 3
    names = ["a", "b", "c", "d"]
    chain = Chain([Step(names[i], names[i + 1], mape=r) for i, r in enumerate(ranges)])
    found = chain.compose(rho)
    s = np.stack(np.meshgrid(*[np.linspace(*r, 201) for r in ranges[:2]], [0.03]), axis=-1)
    s = s.reshape(-1, 3) * math.sqrt(math.pi / 2)
    searched = np.sqrt(np.einsum("ki,ij,kj->k", s, rho, s))
    assert found.spread[0] <= searched.min() + 1e-9
    assert found.spread == pytest.approx((searched.min(), searched.max()), abs=1e-4)


def test_opposite_errors_of_overlapping_ranges_can_cancel() -> None:
    chain = Chain([Step("a", "b", mape=(0.02, 0.2)), Step("b", "c", mape=(0.05, 0.1))])
    low, high = chain.compose(-1.0).error
    assert low == pytest.approx(0.0, abs=1e-9)
    assert high == pytest.approx(0.15)


def test_the_range_holds_for_any_correlation() -> None:
    rng = np.random.default_rng(2)
    chain = Chain([Step("a", "b", mape=(0.01, 0.03)), Step("b", "c", mape=0.05), SIMULATOR_D])
    any_low, any_high = chain.compose().spread_any
    for _ in range(200):
        rho = np.corrcoef(rng.normal(size=(3, 4)))
        low, high = chain.compose(rho).spread
        assert any_low - 1e-12 <= low <= high <= any_high + 1e-12


SIMULATOR_D = Step("c", "d", mape=(0.05, 0.10))


def test_one_step_says_against_what() -> None:
    found = Chain([SURROGATE]).compose()
    assert (
        str(found) == "surrogate: 0.61 % against simulator; error against other references unknown"
    )


def test_dictionary_has_plain_numbers() -> None:
    found = Chain([SURROGATE, SIMULATOR]).compose([[1, 0.2], [0.2, 1]]).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["via"] == ["simulator"]
    assert found["first"] == {"against": "simulator", "error": pytest.approx([0.0061, 0.0061])}
    assert found["correlation"] == [[1.0, 0.2], [0.2, 1.0]]
    assert found["bias_unknown"] == ["surrogate", "simulator"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "b"), "give the error either as spread .* or as mape"),
        (("a", "b", None, 0.1, 0.1), "either as spread"),
        (("a", "b", 0.1, None, 0.1), "a MAPE includes the bias"),
        (("a", "b", math.nan, 0.1), "bias must be a finite number, got nan"),
        (("a", "b", 0.0, -0.1), "spread must be finite and 0 or more .* got -0.1"),
        (("a", "b", 0.0, (0.1, 0.2)), "spread must be finite"),
        (("a", "b", None, None, -0.1), "mape must be finite and 0 or more"),
        (("a", "b", None, None, (0.2, 0.1)), r"got \(0.2, 0.1\)"),
        (("a", "b", None, None, (0.1, 0.2, 0.3)), "mape must be finite"),
        (("a", "b", None, None, "5 %"), "Give fractions"),
        (("a", "b", None, None, True), "mape must be finite"),
        (("a", "a", None, 0.1), "its own reference"),
        (("", "a", None, 0.1), "name and against must be non-empty strings"),
        (("a", 3, None, 0.1), "name and against must be non-empty strings"),
    ],
)
def test_steps_refuse(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Step(*arguments)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "must have 1 to 16 steps, got 0"),
        (
            [SIMULATOR, SURROGATE],
            "'simulator' is compared with 'RTL', but the next step is 'surrogate'",
        ),
        ([Step("a", "b", spread=0.1), Step("b", "a", spread=0.1)], "'a' occurs twice"),
        (["a"], "each step must be a Step, got 'a'"),
    ],
)
def test_chains_refuse(steps: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Chain(steps)


@pytest.mark.parametrize("correlation", [1.5, -2.0, math.nan, "high", True])
def test_correlations_are_within_1(correlation: object) -> None:
    with pytest.raises(InputError, match=r"correlation: must be in \[-1, 1\]"):
        Chain([SURROGATE, SIMULATOR]).compose(correlation)


def test_correlation_matrices_name_the_predictors() -> None:
    with pytest.raises(InputError, match=r"\(surrogate, simulator\) = 1.5"):
        Chain([SURROGATE, SIMULATOR]).compose([[1, 1.5], [1.5, 1]])
    with pytest.raises(InputError, match="2 rows"):
        Chain([SURROGATE, SIMULATOR]).compose(np.eye(3))
