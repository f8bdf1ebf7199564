"""Closed forms of maxima against numerical integration and published values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from errcomp.errors import InputError
from errcomp.propagation.graph.maxima import (
    clark,
    clark_log_normal,
    largest_standard_normal,
    maximum_of_ranks,
    maximum_of_two,
)

CASES = [
    (10.0, 1.0, 10.0, 1.0, 0.0),
    (0.0, 1.0, 0.5, 2.0, 0.6),
    (3.0, 0.1, 2.0, 1.0, -0.9),
    (-5.0, 2.0, 1.0, 3.0, 0.3),
    (1.0, 0.0, 1.2, 0.5, 0.0),
]


def integrated(function: Any, case: tuple[float, ...]) -> float:
    """Expectation of a function of two correlated normals."""
    mean1, sd1, mean2, sd2, rho = case
    z = np.linspace(-9, 9, 1501)
    w = stats.norm.pdf(z)
    w /= w.sum()
    a, b = z[:, None], z[None, :]
    x, y = mean1 + sd1 * a, mean2 + sd2 * (rho * a + math.sqrt(1 - rho**2) * b)
    return float(w @ function(x, y) @ w)


def test_two_equal_independent_values() -> None:
    m = maximum_of_two(10.0, 1.0, 10.0, 1.0)
    assert m.mean == pytest.approx(10 + 1 / math.sqrt(math.pi), rel=1e-15)
    assert m.sd == pytest.approx(math.sqrt(1 - 1 / math.pi), rel=1e-14)
    assert m.tightness == 0.5
    assert (round(m.mean, 3), round(m.sd, 3)) == (10.564, 0.826)


@pytest.mark.parametrize("case", CASES)
def test_two_normals_against_integration(case: tuple[float, ...]) -> None:
    mean1, sd1, mean2, sd2, rho = case
    m = maximum_of_two(mean1, sd1, mean2, sd2, correlation=rho)
    mean = integrated(np.maximum, case)
    # The kink of the maximum costs the integration what is left of the tolerance.
    assert m.mean == pytest.approx(mean, abs=1e-5)
    square = integrated(lambda x, y: (np.maximum(x, y) - mean) ** 2, case)
    assert m.sd == pytest.approx(math.sqrt(square), abs=2e-5)
    difference = math.sqrt(sd1**2 + sd2**2 - 2 * rho * sd1 * sd2)
    assert m.tightness == pytest.approx(stats.norm.cdf((mean1 - mean2) / difference), rel=1e-12)


def test_order_shift_and_unit_do_not_matter() -> None:
    m = maximum_of_two(1.0, 2.0, 1.5, 0.5, correlation=0.4)
    swapped = maximum_of_two(1.5, 0.5, 1.0, 2.0, correlation=0.4)
    assert (swapped.mean, swapped.sd) == pytest.approx((m.mean, m.sd), rel=1e-14)
    assert swapped.tightness == pytest.approx(1 - m.tightness, rel=1e-14)
    for unit in (1e-200, 1e200):
        scaled = maximum_of_two(1.0 * unit, 2.0 * unit, 1.5 * unit, 0.5 * unit, correlation=0.4)
        assert (scaled.mean, scaled.sd) == pytest.approx(
            (m.mean * unit, m.sd * unit), rel=1e-14, abs=0
        )
    far = maximum_of_two(1e6 + 1.0, 2.0, 1e6 + 1.5, 0.5, correlation=0.4)
    assert (far.mean - 1e6, far.sd) == pytest.approx((m.mean, m.sd), rel=1e-9)


def test_one_variable_wins() -> None:
    for rho in (0.0, 1.0):
        m = maximum_of_two(1000.0, 1.0, 1.0, 1.0, correlation=rho)
        assert (m.mean, m.sd, m.tightness) == (1000.0, 1.0, 1.0)
        m = maximum_of_two(1.0, 1.0, 1000.0, 2.0, correlation=rho)
        assert (m.mean, m.sd, m.tightness) == (1000.0, 2.0, 0.0)
    m = maximum_of_two(1e308, 1.0, -1e308, 0.0)
    assert (m.mean, m.sd, m.tightness) == (1e308, 1.0, 1.0)


def test_one_variable_twice_is_itself() -> None:
    m = maximum_of_two(3.0, 1.0, 3.0, 1.0, correlation=1.0)
    assert (m.mean, m.sd, m.tightness) == (3.0, 1.0, 0.5)
    m = maximum_of_two(3.0, 0.0, 3.0, 0.0)
    assert (m.mean, m.sd, m.tightness) == (3.0, 0.0, 0.5)


def test_far_apart_values_do_not_cancel() -> None:
    # 38 standard deviations: what the loser adds is below rounding, and nothing is negative.
    mean, variance, first, second = clark(38.0, 0.5, 0.0, 0.5, 0.0)
    assert (mean, variance, first) == (38.0, 0.5, 1.0)
    assert 0 < second < 1e-300


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.5, 0.99])
@pytest.mark.parametrize("spreads", [(0.3, 0.3), (0.1, 1.0)])
@pytest.mark.parametrize("ratio", [1.0, 1.3, 0.2])
def test_two_log_normals_against_integration(
    rho: float, spreads: tuple[float, float], ratio: float
) -> None:
    s, t = spreads
    x, y = stats.lognorm(s, scale=2.0), stats.lognorm(t, scale=2.0 * ratio)
    covariance = x.mean() * y.mean() * math.expm1(rho * s * t)
    mean, variance, first, second = clark_log_normal(
        x.mean(), x.var(), y.mean(), y.var(), covariance
    )
    case = (math.log(2.0), s, math.log(2.0 * ratio), t, rho)
    expected = integrated(lambda a, b: np.exp(np.maximum(a, b)), case)
    assert mean == pytest.approx(expected, rel=1e-4)
    spread = integrated(lambda a, b: (np.exp(np.maximum(a, b)) - expected) ** 2, case)
    assert variance == pytest.approx(spread, rel=1e-4)
    # The weights: expectation of each where it is the larger, over its mean.
    assert first * x.mean() == pytest.approx(
        integrated(lambda a, b: np.exp(a) * (a > b) + np.exp(a) * (a == b) / 2, case), rel=0.01
    )
    assert first * x.mean() + second * y.mean() == pytest.approx(mean, rel=1e-12)


def test_narrow_log_normals_are_normal() -> None:
    for width in (1e-12, 0.9e-8, 1.1e-8, 1e-7):
        log_normal = clark_log_normal(1.0, width, 1.0, 2 * width, 0.5 * width)
        normal = clark(1.0, width, 1.0, 2 * width, 0.5 * width)
        assert log_normal[1] == pytest.approx(normal[1], rel=30 * math.sqrt(width) + 1e-7)
        assert log_normal[0] - 1 == pytest.approx(normal[0] - 1, rel=30 * math.sqrt(width) + 1e-7)


def test_proportional_log_normals() -> None:
    # Y = 2 X: the larger is Y, although the means are less than a standard deviation apart.
    law = stats.lognorm(1.5)
    m, v = law.mean(), law.var()
    assert clark_log_normal(m, v, 2 * m, 4 * v, 2 * v) == (2 * m, 4 * v, 0.0, 1.0)
    assert clark_log_normal(m, v, m, v, v) == (m, v, 0.5, 0.5)


def test_covariance_that_no_log_normals_have_falls_back() -> None:
    case = (1.0, 4.0, 1.0, 4.0, -2.0)
    assert clark_log_normal(*case) == clark(*case)


@pytest.mark.parametrize(
    ("n", "mean", "variance"),
    [
        (1, 0.0, 1.0),
        (2, 1 / math.sqrt(math.pi), 1 - 1 / math.pi),
        (3, 1.5 / math.sqrt(math.pi), 1 + (2 * math.sqrt(3) - 9) / (4 * math.pi)),
    ],
)
def test_largest_of_few_normals(n: int, mean: float, variance: float) -> None:
    got = largest_standard_normal(n)
    assert got == pytest.approx((mean, variance), abs=1e-13)


@pytest.mark.parametrize("n", [5, 64, 4096, 10**9])
def test_largest_of_many_normals(n: int) -> None:
    def moment(k: int) -> float:
        return integrate.quad(
            lambda z: z**k * n * stats.norm.pdf(z) * stats.norm.cdf(z) ** (n - 1),
            *(-8, 12),
            points=[0, 3, 6],
            epsabs=1e-12,
            limit=400,
        )[0]

    mean, variance = largest_standard_normal(n)
    assert mean == pytest.approx(moment(1), rel=1e-7)
    assert variance == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-5)


def test_ranks() -> None:
    two = maximum_of_ranks(2, 10.0, 1.0)
    assert (two.mean, two.sd, two.tightness) == pytest.approx((10.564, 0.826, 0.5), abs=5e-4)
    for rho in (-0.7, 0.0, 0.3, 1.0):
        pair = maximum_of_two(10.0, 2.0, 10.0, 2.0, correlation=rho)
        ranks = maximum_of_ranks(2, 10.0, 2.0, correlation=rho)
        assert (ranks.mean, ranks.sd) == pytest.approx((pair.mean, pair.sd), rel=1e-12)
    one = maximum_of_ranks(1, 10.0, 2.0, correlation=-1.0)
    assert (one.mean, one.sd, one.tightness) == pytest.approx((10.0, 2.0, 1.0), rel=1e-12)
    same = maximum_of_ranks(64, 10.0, 2.0, correlation=1.0)
    assert (same.mean, same.sd) == (10.0, 2.0)
    # The most negative correlation there is: the sum of three is certain.
    opposed = maximum_of_ranks(3, 0.0, 1.0, correlation=-0.5)
    variance = 1.5 * largest_standard_normal(3)[1] - 0.5
    assert opposed.sd == pytest.approx(math.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: maximum_of_two(0, -1, 0, 1),
            "sd1 is a standard deviation and must not be negative, got -1",
        ),
        (lambda: maximum_of_two(0, 1, math.nan, 1), "mean2 must be a finite number, got nan"),
        (lambda: maximum_of_two(0, 1, 0, math.inf), "sd2 must be a finite number"),
        (lambda: maximum_of_two(0, 1, 0, 1, correlation=1.1), "between -1 and 1, got 1.1"),
        (lambda: maximum_of_two("a", 1, 0, 1), "mean1 must be a finite number, got 'a'"),
        (lambda: maximum_of_ranks(0, 1, 1), "positive integer, got 0"),
        (lambda: maximum_of_ranks(2.5, 1, 1), "positive integer, got 2.5"),
        (lambda: maximum_of_ranks(True, 1, 1), "positive integer, got True"),
        (lambda: maximum_of_ranks(3, 1, 1, correlation=-0.6), "between -0.5 and 1, got -0.6"),
        (lambda: maximum_of_ranks(3, 1, -1), "sd is a standard deviation and must not be negative"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
