"""What holds for bounds of any terms under any dependence."""

from __future__ import annotations

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from errcomp.propagation.bounds import (
    BoundsAlgebra,
    band,
    comonotonic_quantile,
    frechet_max,
    frechet_max_cdf,
    quantile_bounds,
    variance_bounds,
)
from errcomp.propagation.bounds.marginals import Marginals, inside, locations, outside, standard_isf
from errcomp.propagation.psd import check_correlation, nearest_correlation
from errcomp.propagation.terms import KINDS, Terms

CELLS = 400
#: Each example takes 30 ms: half of them, but all where many are tried (`make simulations`).
FEW = hypothesis.settings(
    max_examples=hypothesis.settings.default.max_examples
    // (1 if hypothesis.settings.default.max_examples > 25 else 2)
)


@st.composite
def any_terms(draw, dfs=(math.inf, 12.0, 4.0, 2.0, 0.9), smallest=1e-12):
    n = draw(st.integers(1, 6))

    def column(low, high):
        return np.array(draw(st.lists(st.floats(low, high), min_size=n, max_size=n)))

    ids = np.array([f"k{i}" for i in range(n)])
    return Terms(
        ids,
        ids,
        np.exp(column(-6, 6)),
        np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))),
        column(-0.5, 0.5),
        np.array(draw(st.lists(st.just(0.0) | st.floats(smallest, 1.0), min_size=n, max_size=n))),
        kind=draw(st.sampled_from(KINDS)),
        df=draw(st.sampled_from(dfs)),
    )


def cells(terms, upper):
    """Values of each instance at one end of cells of equal probability, shape (cells, copies)."""
    k = np.arange(CELLS) + upper
    # The outermost end is infinite: of the lowest cell no lower one, of the highest no upper one.
    p = np.clip(k / CELLS, 1e-12, 1 - 1e-12)
    center, spread = (np.repeat(x, terms.count) for x in locations(terms))
    x = center + spread * -standard_isf(p, terms.df)[:, None]
    with np.errstate(over="ignore"):
        return np.exp(x) if terms.kind == "log-ratio" else x


def quantile(x, q, side):
    """Quantile of equally probable values; at a jump the lower or the upper one."""
    k = q * len(x)
    index = math.ceil(k - 1e-9) - 1 if side == "lower" else math.floor(k + 1e-9)
    return np.sort(x)[index]


def some_dependence(rng, x):
    """Permute each column by one of several mechanisms; the columns keep their laws."""
    n, d = x.shape
    common = rng.standard_normal(n)
    loading = rng.choice([-1.0, 1.0], d) * rng.uniform(0, 1, d) ** rng.choice([0.1, 1, 10])
    z = common[:, None] * loading + rng.standard_normal((n, d)) * np.sqrt(1 - loading**2)
    if rng.random() < 0.5:  # the tail of the columns differently from the body
        z[rng.random(n) < 0.5] *= -1
    return np.take_along_axis(np.sort(x, axis=0), np.argsort(np.argsort(z, axis=0), axis=0), axis=0)


@FEW
@hypothesis.given(terms=any_terms(), q=st.integers(1, 19), seed=st.integers(0, 10**6))
def test_no_dependence_goes_beyond_the_bounds(terms, q, seed):
    q = q / 20
    found = quantile_bounds(terms, q)
    rng = np.random.default_rng(seed)
    size = 1e-9 * (abs(found.low) + abs(found.high))
    assert found.low <= found.low_attained <= found.high_attained + size
    assert found.high_attained <= found.high
    assert found.gap >= 0
    below, above = cells(terms, 0), cells(terms, 1)
    for _ in range(5):
        # Cell by cell a variable is at least its lower and at most its upper end.
        assert quantile(some_dependence(rng, below).sum(axis=1), q, "lower") <= found.high + size
        assert quantile(some_dependence(rng, above).sum(axis=1), q, "lower") >= found.low - size
        highest = some_dependence(rng, below).max(axis=1)
        low, high = frechet_max(terms, q)
        assert quantile(highest, q, "lower") <= high + size
        assert quantile(some_dependence(rng, above).max(axis=1), q, "lower") >= low - size


@FEW
@hypothesis.given(
    terms=any_terms(),
    alpha=st.floats(1e-4, 0.99),
    sign=st.sampled_from([1, -1]),
)
def test_what_a_dependence_attains_is_within_the_outer_bound(terms, alpha, sign):
    m = Marginals.of(terms)
    hypothesis.assume(len(m))
    m = m if sign > 0 else m.negated()
    outer = outside(m, alpha)
    reached = inside(m, alpha, outer=outer, tolerance=1e-3)
    assert reached <= outer + 1e-9 * (abs(reached) + abs(outer))


@hypothesis.given(terms=any_terms(dfs=(math.inf, 12.0)), seed=st.integers(0, 10**6))
def test_standard_deviations_are_in_their_range(terms, seed):
    hypothesis.assume(math.isinf(terms.df) or terms.kind != "log-ratio")
    found = variance_bounds(terms)
    assert 0 <= found.low <= found.high * (1 + 1e-12)
    assert found.high <= found.triangle * (1 + 1e-12)
    rng = np.random.default_rng(seed)
    # The middles of cells vary less than the law, so only the upper end is tested.
    assert (
        some_dependence(rng, cells(terms, 0.5)).sum(axis=1).std() <= found.high * (1 + 1e-9) + 1e-12
    )


@FEW
@hypothesis.given(
    terms=any_terms(), q=st.floats(0.01, 0.99), unit=st.sampled_from([1e-6, 7.0, 1e9])
)
def test_bounds_carry_units(terms, q, unit):
    hypothesis.assume(terms.kind != "absolute")
    other = Terms(
        terms.ids,
        terms.classes,
        terms.value * unit,
        terms.count,
        terms.bias,
        terms.spread,
        kind=terms.kind,
        df=terms.df,
    )
    one, two = band(terms, q), band(other, q)
    size = abs(one[0]) + abs(one[1])
    np.testing.assert_allclose(np.array(two) / unit, one, rtol=1e-4, atol=1e-6 * size)
    assert comonotonic_quantile(other, q) == pytest.approx(
        unit * comonotonic_quantile(terms, q), rel=1e-9, abs=1e-9 * size * unit
    )


@FEW
@hypothesis.given(terms=any_terms(), level=st.floats(0.1, 0.95))
def test_bands_are_nested(terms, level):
    inner, outer = band(terms, level), band(terms, level + 0.04)
    slack = 1e-4 * (outer[1] - outer[0]) + 1e-9 * abs(outer[1])
    assert outer[0] <= inner[0] + slack
    assert inner[1] <= outer[1] + slack
    algebra = BoundsAlgebra(terms, level)
    total = algebra.total(
        [algebra.repeated(str(i), int(c)) for i, c in zip(terms.ids, terms.count, strict=True)]
    )
    assert total.low <= total.high


# A time has 16 digits: of a spread of 1e-12 it knows four.
@hypothesis.given(terms=any_terms(smallest=1e-6), q=st.floats(0.01, 0.99))
def test_maximum_and_its_probability_agree(terms, q):
    low, high = frechet_max(terms, q)
    assert low <= high
    at_low, at_high = frechet_max_cdf(terms, low), frechet_max_cdf(terms, high)
    assert at_high[0] >= q - 1e-6
    assert at_low[1] >= q - 1e-6
    assert 0 <= at_low[0] <= at_low[1] <= 1


@hypothesis.given(n=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_nearest_correlation_is_one(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-2, 2, (n, n))
    found = nearest_correlation((a + a.T) / 2)
    np.testing.assert_array_equal(check_correlation(found), found)
