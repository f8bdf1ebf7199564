"""What must not change the moments of a sum, and what must change them in a known way."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from errcomp.propagation.graph.canonical import Canonical, MomentsAlgebra, graph_moments
from errcomp.propagation.graph.maxima import maximum_of_two
from errcomp.propagation.sums import (
    effective_number,
    error_budget,
    growth_factor,
    total_moments,
)
from errcomp.propagation.terms import KINDS, Floats, Level, Terms

close = {"rel": 1e-10, "abs": 1e-300}


@st.composite
def terms_strategy(draw: Any, *, kinds: tuple[str, ...] = KINDS, most: int = 8) -> Terms:
    n = draw(st.integers(1, most))
    numbers = lambda low, high: draw(  # noqa: E731
        st.lists(st.floats(low, high), min_size=n, max_size=n)
    )
    codes = [np.zeros(n, dtype=np.int64)]
    for _ in range(2):
        finer = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        codes.append(np.unique(codes[-1] * 3 + finer, return_inverse=True)[1].astype(np.int64))
    shares = draw(st.lists(st.floats(0, 1 / 3), min_size=3, max_size=3))
    return Terms(
        ids=np.array([f"t{i}" for i in range(n)]),
        classes=np.array(draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))),
        value=np.array(numbers(0.01, 100.0)),
        count=np.array(draw(st.lists(st.integers(1, 20), min_size=n, max_size=n))),
        bias=np.array(numbers(-0.5, 0.5)),
        spread=np.array(numbers(0.001, 1.0)),
        levels=tuple(
            Level(f"l{i}", c, share) for i, (c, share) in enumerate(zip(codes, shares, strict=True))
        ),
        kind=draw(st.sampled_from(kinds)),
    )


def sd(terms: Terms) -> float:
    value = total_moments(terms).sd
    assert value is not None
    return value


@hypothesis.given(terms=terms_strategy(), more=st.floats(1.0, 3.0), data=st.data())
def test_more_spread_is_never_less_uncertainty(terms: Terms, more: float, data: Any) -> None:
    at = data.draw(st.integers(0, len(terms) - 1))
    wider: Floats = terms.spread.copy()
    wider[at] *= more
    assert sd(dataclasses.replace(terms, spread=wider)) >= sd(terms) * (1 - 1e-12)


@hypothesis.given(terms=terms_strategy(), power=st.integers(-300, 300))
def test_the_unit_does_not_matter(terms: Terms, power: int) -> None:
    absolute = terms.kind == "absolute"
    scaled = dataclasses.replace(
        terms,
        value=np.ldexp(terms.value, power),
        bias=np.ldexp(terms.bias, power) if absolute else terms.bias,
        spread=np.ldexp(terms.spread, power) if absolute else terms.spread,
    )
    one, other = total_moments(terms), total_moments(scaled)
    assert other.mean == pytest.approx(math.ldexp(one.mean or 0.0, power), **close)
    assert other.sd == pytest.approx(math.ldexp(one.sd or 0.0, power), **close)
    assert other.quantile(0.9) == pytest.approx(math.ldexp(one.quantile(0.9), power), rel=1e-9)
    assert effective_number(scaled) == pytest.approx(effective_number(terms), rel=1e-10)


@hypothesis.given(terms=terms_strategy(), data=st.data())
def test_the_order_does_not_matter(terms: Terms, data: Any) -> None:
    order = data.draw(st.permutations(range(len(terms))))
    shuffled = terms.take(order)
    assert sd(shuffled) == pytest.approx(sd(terms), **close)
    one, other = error_budget(terms), error_budget(shuffled)
    by_name = dict(zip(other.names, other.total, strict=True))
    for name, total in zip(one.names, one.total, strict=True):
        assert by_name[name] == pytest.approx(total, rel=1e-8, abs=1e-8)


@hypothesis.given(terms=terms_strategy(), part=st.floats(0.05, 0.95), data=st.data())
def test_splitting_a_term_in_two_changes_nothing(terms: Terms, part: float, data: Any) -> None:
    # Both halves in one finest group that explains everything: their error is the same one.
    at = data.draw(st.integers(0, len(terms) - 1))
    last = terms.levels[-1]
    own = Level(
        "kernel",
        np.arange(len(terms)),
        max(0.0, 1.0 - float(sum(level.share for level in terms.levels))),
    )
    whole = dataclasses.replace(terms, levels=(*terms.levels[:-1], last, own))
    halves = whole.take([*range(len(terms)), at])
    value = halves.value.copy()
    value[at], value[-1] = part * terms.value[at], (1 - part) * terms.value[at]
    if terms.kind == "absolute":
        bias, spread = halves.bias.copy(), halves.spread.copy()
        for column in (bias, spread):
            column[at], column[-1] = part * column[at], (1 - part) * column[-1]
        halves = dataclasses.replace(halves, bias=bias, spread=spread)
    halves = dataclasses.replace(halves, value=value)
    one, two = total_moments(whole), total_moments(halves)
    assert two.mean == pytest.approx(one.mean, **close)
    assert two.sd == pytest.approx(one.sd, rel=1e-7)
    assert two.quantile(0.05) == pytest.approx(one.quantile(0.05), rel=1e-7, abs=1e-9)


@hypothesis.given(terms=terms_strategy(), data=st.data())
def test_a_count_is_as_many_terms_of_the_finest_group(terms: Terms, data: Any) -> None:
    at = data.draw(st.integers(0, len(terms) - 1))
    split = data.draw(st.integers(1, 5))
    count = terms.count.copy()
    count[at] += split
    whole = dataclasses.replace(terms, count=count)
    apart = dataclasses.replace(terms, count=terms.count).take([*range(len(terms)), at])
    fewer = apart.count.copy()
    fewer[-1] = split
    assert sd(dataclasses.replace(apart, count=fewer)) == pytest.approx(sd(whole), **close)


@hypothesis.given(terms=terms_strategy())
def test_between_independent_and_common(terms: Terms) -> None:
    independent = dataclasses.replace(terms, levels=())
    everything = Level("all", np.zeros(len(terms), dtype=np.int64), 1.0)
    common = dataclasses.replace(terms, levels=(everything,))
    low, middle, high = sd(independent), sd(terms), sd(common)
    assert low * (1 - 1e-12) <= middle <= high * (1 + 1e-12)
    means = [total_moments(t).mean for t in (independent, terms, common)]
    assert means == pytest.approx([means[0]] * 3, rel=1e-12)
    assert growth_factor(common) <= 1 + 1e-12
    assert 1 - 1e-12 <= effective_number(terms) <= terms.count.sum() * (1 + 1e-12)


@hypothesis.given(terms=terms_strategy(), by=st.sampled_from(["class", "term"]))
def test_the_budget_adds_up(terms: Terms, by: Any) -> None:
    budget = error_budget(terms, by=by)
    assert budget.first_order.sum() == pytest.approx(1, abs=1e-10)
    assert bool((budget.first_order >= -1e-12).all())
    # With correlations that are not negative a perfect predictor of a row buys at least its share.
    assert bool((budget.total >= budget.first_order - 1e-9).all())
    assert bool((budget.total <= 1 + 1e-9).all())


@hypothesis.given(terms=terms_strategy(), level=st.floats(0.01, 0.98))
def test_quantiles_increase(terms: Terms, level: float) -> None:
    for df in (math.inf, 4.0):
        total = total_moments(dataclasses.replace(terms, df=df))
        assert total.quantile(level) < total.quantile(level + 0.01)


normals = st.tuples(
    st.floats(-10, 10), st.floats(0.01, 5), st.floats(-10, 10), st.floats(0.01, 5), st.floats(-1, 1)
)


@hypothesis.given(case=normals)
def test_a_maximum_is_at_least_the_larger_mean(case: tuple[float, ...]) -> None:
    mean1, sd1, mean2, sd2, rho = case
    m = maximum_of_two(mean1, sd1, mean2, sd2, correlation=rho)
    assert m.mean >= max(mean1, mean2)
    assert m.sd <= math.hypot(sd1, sd2)
    assert 0 <= m.tightness <= 1


@hypothesis.given(terms=terms_strategy(most=6))
def test_a_graph_of_one_sum_is_the_sum(terms: Terms) -> None:
    def together(on: MomentsAlgebra) -> Canonical:
        return on.total(
            [on.repeated(str(i), int(n)) for i, n in zip(terms.ids, terms.count, strict=True)]
        )

    graph, exact = graph_moments(terms, together), total_moments(terms)
    assert graph.mean == pytest.approx(exact.mean, rel=1e-10, abs=1e-10)
    # Log-normal terms of unequal spread: too large, by what the docstring says.
    assert graph.sd >= (exact.sd or 0.0) * (1 - 1e-10)
    assert graph.sd == pytest.approx(exact.sd, rel=0.1 if terms.kind == "log-ratio" else 1e-10)


@hypothesis.given(terms=terms_strategy(most=6), power=st.integers(-100, 100))
def test_the_unit_of_a_graph_does_not_matter(terms: Terms, power: int) -> None:
    terms = dataclasses.replace(terms, kind="log-ratio" if terms.kind == "absolute" else terms.kind)
    scaled = dataclasses.replace(terms, value=np.ldexp(terms.value, power))

    def barrier(on: MomentsAlgebra) -> Canonical:
        longest = on.maximum([on.leaf(str(i)) for i in terms.ids])
        return on.total([longest, on.scaled(longest, 0.5), on.leaf("t0")])

    one, other = graph_moments(terms, barrier), graph_moments(scaled, barrier)
    assert other.mean == pytest.approx(math.ldexp(one.mean or 0.0, power), rel=1e-9)
    assert other.sd == pytest.approx(math.ldexp(one.sd or 0.0, power), rel=1e-7)
