"""What must not change a figure, and what must change it in a known way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from errcomp import metrics

positive = st.floats(1e-6, 1e6)
pairs = st.lists(st.tuples(positive, positive), min_size=2, max_size=30)

WEIGHTED = [
    *("mape", "median_ape", "gmape", "gm_ratio", "wape", "bias", "total_error", "smape"),
    *("mae", "rmse", "rmspe", "rmsle", "within_10", "r2", "pearson"),
]
SCALE_FREE = [name for name in metrics.FIGURES if name not in ("mae", "rmse")]
SPREAD_NEEDED = {"r2", "pearson", "spearman", "kendall"}


def arrays(sample: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    p, m = np.array(sample).T
    # Correlations of values that differ by rounding only are not what is tested here.
    for values in (p, m):
        hypothesis.assume(np.ptp(values) > 1e-3 * values.max())
    return p, m


def value(name: str, p: np.ndarray, m: np.ndarray, **options: Any) -> float:
    return metrics.figure(name).function(predicted=p, measured=m, **options)


def close(expected: float, *, scale: float = 1.0) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)


@pytest.mark.parametrize("name", SCALE_FREE)
@hypothesis.given(sample=pairs, power=st.integers(-200, 200))
def test_unit_of_the_data_does_not_change_a_relative_figure(
    name: str, sample: list[tuple[float, float]], power: int
) -> None:
    p, m = arrays(sample)
    # A power of two scales floats exactly, so that not even the order of near ties may change.
    scaled = value(name, np.ldexp(p, power), np.ldexp(m, power))
    assert scaled == pytest.approx(value(name, p, m), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["mae", "rmse"])
@hypothesis.given(sample=pairs, power=st.integers(-200, 200))
def test_a_figure_with_a_unit_scales_with_it(
    name: str, sample: list[tuple[float, float]], power: int
) -> None:
    p, m = arrays(sample)
    scaled = value(name, np.ldexp(p, power), np.ldexp(m, power))
    assert scaled == pytest.approx(np.ldexp(value(name, p, m), power), rel=1e-14)


@pytest.mark.parametrize("name", metrics.FIGURES)
@hypothesis.given(sample=pairs, seed=st.integers(0, 99))
def test_order_of_the_pairs_does_not_matter(
    name: str, sample: list[tuple[float, float]], seed: int
) -> None:
    p, m = arrays(sample)
    order = np.random.default_rng(seed).permutation(len(p))
    assert value(name, p[order], m[order]) == close(value(name, p, m))


@pytest.mark.parametrize("name", WEIGHTED)
@hypothesis.given(sample=pairs, weight=st.floats(1e-3, 1e3))
def test_equal_weights_are_no_weights(
    name: str, sample: list[tuple[float, float]], weight: float
) -> None:
    p, m = arrays(sample)
    assert value(name, p, m, weights=np.full(len(p), weight)) == close(value(name, p, m))


@pytest.mark.parametrize("name", WEIGHTED)
@hypothesis.given(sample=pairs, seed=st.integers(0, 99))
def test_an_integer_weight_is_a_repetition(
    name: str, sample: list[tuple[float, float]], seed: int
) -> None:
    p, m = arrays(sample)
    counts = np.random.default_rng(seed).integers(0, 4, len(p))
    hypothesis.assume(counts.any())
    repeated = np.repeat(p, counts), np.repeat(m, counts)
    if name in SPREAD_NEEDED:
        hypothesis.assume(all(np.ptp(x) > 1e-3 * x.max() for x in repeated))
    assert value(name, p, m, weights=counts) == close(value(name, *repeated))


@hypothesis.given(
    sample=pairs, seed=st.integers(0, 99), q=st.sampled_from([0.0, 0.1, 0.5, 0.77, 0.9, 1.0])
)
def test_weighted_quantile_of_repetitions_is_the_inverted_cdf(
    sample: list[tuple[float, float]], seed: int, q: float
) -> None:
    p, m = arrays(sample)
    counts = np.random.default_rng(seed).integers(1, 4, len(p))
    error = np.sort(np.repeat(metrics.ape(predicted=p, measured=m), counts))
    # The rank in whole numbers: in floats 0.1 * 30 is above 3.
    rank = max(-(-round(100 * q) * len(error) // 100), 1)
    weighted = metrics.ape_quantile(
        predicted=p, measured=m, q=q, rule="inverted_cdf", weights=counts
    )
    assert weighted == error[rank - 1]


@hypothesis.given(sample=pairs)
def test_swapping_prediction_and_measurement(sample: list[tuple[float, float]]) -> None:
    p, m = arrays(sample)
    forward = metrics.log_accuracy_ratio(predicted=p, measured=m)
    backward = metrics.log_accuracy_ratio(predicted=m, measured=p)
    np.testing.assert_allclose(backward, -forward, rtol=1e-12, atol=0)
    assert metrics.gm_ratio(predicted=p, measured=m) == pytest.approx(
        1 / metrics.gm_ratio(predicted=m, measured=p), rel=1e-12
    )
    for name in ("rmsle", "smape", "pearson", "spearman", "kendall", "rmse"):
        assert value(name, m, p) == close(value(name, p, m)), name


@hypothesis.given(sample=pairs)
def test_figures_stand_in_the_order_that_they_must(sample: list[tuple[float, float]]) -> None:
    p, m = arrays(sample)
    figures = {name: value(name, p, m) for name in metrics.FIGURES}
    chain = [figures[name] for name in ("gmape", "mape", "rmspe", "max_ape")]
    for smaller, larger in pairwise(chain):
        assert smaller <= larger * (1 + 1e-12)
    assert abs(figures["bias"]) <= figures["mape"] * (1 + 1e-12)
    quantiles = [figures[n] for n in ("median_ape", "p90_ape", "p95_ape", "p99_ape", "max_ape")]
    assert quantiles == sorted(quantiles)
    shares = [0.0, *(figures[f"within_{t}"] for t in (5, 10, 20)), 1.0]
    assert shares == sorted(shares)
    assert 0 <= figures["smape"] <= 2
    assert figures["r2"] <= figures["pearson"] ** 2 + 1e-9
    assert figures["top_1_regret"] >= 0


@hypothesis.given(sample=pairs, best=st.sampled_from(["lowest", "highest"]))
def test_regret_falls_with_k_and_ends_at_zero(sample: list[tuple[float, float]], best: str) -> None:
    p, m = arrays(sample)
    regrets = [
        metrics.top_k_regret(predicted=p, measured=m, k=k, best=best) for k in range(1, len(p) + 1)
    ]
    assert regrets == sorted(regrets, reverse=True)
    assert regrets[-1] == 0
