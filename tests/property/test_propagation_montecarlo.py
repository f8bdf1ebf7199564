"""What must hold of a simulation whatever the terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from errcomp.propagation.montecarlo import SamplingAlgebra, simulate
from errcomp.propagation.montecarlo.rows import rows_of_sum
from errcomp.propagation.montecarlo.simulated import layout, quantiles
from errcomp.propagation.terms import KINDS, Floats, Kind, Level, Terms


@st.composite
def any_terms(draw: st.DrawFn, kinds: Sequence[Kind] = KINDS) -> Terms:
    n = draw(st.integers(1, 8))

    def array(elements: st.SearchStrategy[Any]) -> Any:
        return np.array(draw(st.lists(elements, min_size=n, max_size=n)))

    coarse = array(st.integers(0, 2))
    fine = np.unique(coarse * 3 + array(st.integers(0, 2)), return_inverse=True)[1]
    coarse = np.unique(coarse, return_inverse=True)[1]
    shares = draw(st.sampled_from([(), (0.0, 0.3), (0.5,), (0.4, 0.6), (1.0,), (0.2, 0.2)]))
    levels = [Level("l", c, s) for c, s in zip((coarse, fine), shares, strict=False)]
    return Terms(
        ids=np.array([f"k{i}" for i in range(n)]),
        classes=np.array(["c"] * n),
        value=array(st.floats(0.01, 100)),
        count=array(st.integers(1, 40)).astype(np.int64),
        bias=array(st.floats(-0.5, 0.5)),
        spread=array(st.floats(0, 0.8)),
        levels=tuple(levels),
        kind=draw(st.sampled_from(kinds)),
        df=draw(st.sampled_from([math.inf, 3.0])),
    )


def scaled(t: Terms, by: float) -> Terms:
    absolute = by if t.kind == "absolute" else 1.0
    fields = {name: getattr(t, name) for name in t.__dataclass_fields__}
    fields |= {"value": t.value * by, "bias": t.bias * absolute, "spread": t.spread * absolute}
    return Terms(**fields)


@given(any_terms(), st.sampled_from([2.0**-20, 0.5, 1024.0]), st.sampled_from(["sobol", "random"]))
def test_units_do_not_matter(t: Terms, by: float, method: Any) -> None:
    one = simulate(t, draws=512, method=method)
    other = simulate(scaled(t, by), draws=512, method=method)
    np.testing.assert_allclose(other.draws, by * one.draws, rtol=1e-6)


@given(any_terms())
def test_certain_terms_add_up_exactly(t: Terms) -> None:
    fields = {name: getattr(t, name) for name in t.__dataclass_fields__}
    certain = Terms(**{**fields, "spread": np.zeros(len(t))})
    one = {
        "log-ratio": t.value * np.exp(t.bias),
        "relative": t.value * (1 + t.bias),
        "absolute": t.value + t.bias,
    }[t.kind]
    result = simulate(certain, draws=512)
    np.testing.assert_allclose(result.draws, t.count @ one, rtol=1e-12, atol=1e-9)
    assert result.standard_error(0.5) <= 1e-9 * abs(result.quantile(0.5)) + 1e-12


@given(any_terms(), st.integers(0, 5))
def test_quantiles_rise_and_lie_in_their_intervals(t: Terms, seed: int) -> None:
    result = simulate(t, draws=1024, seed=seed)
    q = np.linspace(0.02, 0.98, 25)
    x = result.quantile(q)
    low, high = result.interval(q)
    assert (np.diff(x) >= 0).all()
    assert ((low <= x) & (x <= high)).all()
    assert result.draws.min() <= x[0]
    assert x[-1] <= result.draws.max()


@given(any_terms())
def test_maximum_is_between_its_parts_and_their_sum(t: Terms) -> None:
    def work(a: SamplingAlgebra) -> Floats:
        parts = [a.repeated(str(name), int(c)) for name, c in zip(t.ids, t.count, strict=True)]
        top, total = a.maximum(parts), a.total(parts)
        assert all((part <= top).all() for part in parts)
        if t.kind == "log-ratio":
            assert (top <= total * (1 + 1e-12)).all()
        return top

    simulate(t, work, draws=512)


@given(any_terms(kinds=("relative", "absolute")))
def test_rows_of_the_sum_keep_mean_and_variance_of_linear_terms(t: Terms) -> None:
    rows = rows_of_sum(t)
    scale = t.spread * (t.value if t.kind == "relative" else 1)
    own = t.own_share
    pairs = t.correlation() * np.outer(t.count, t.count)
    np.fill_diagonal(pairs, (1 - own) * t.count**2 + own * t.count)
    codes = [level.codes for level in t.levels if level.share > 0]
    shares = [level.share for level in t.levels if level.share > 0]
    variance = float((rows.own**2).sum())
    for code, share in zip(codes, shares, strict=True):
        group = np.zeros(len(rows), np.int64)
        group[codes[-1]] = code
        variance += share * float((np.bincount(group, rows.scale) ** 2).sum())
    np.testing.assert_allclose(variance, scale @ pairs @ scale, rtol=1e-9, atol=1e-12)


@given(st.integers(512, 2**24))
def test_layout(draws: int) -> None:
    replicates, each = layout(draws)
    assert draws <= replicates * each <= 1.07 * draws
    assert 16 <= replicates <= 32


@given(
    st.lists(st.floats(-1e6, 1e6) | st.just(math.inf), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_quantiles_are_values_in_order(values: list[float], q: list[float]) -> None:
    ordered = np.sort(np.array(values))
    got = quantiles(ordered, np.sort(np.array(q)))
    assert not np.isnan(got).any()
    assert (got[:-1] <= got[1:] + 1e-9 * np.abs(got[:-1])).all()
    assert ordered[0] <= got[0] + 1e-9
    assert got[-1] <= ordered[-1] + 1e-9 * abs(ordered[-1]) if ordered[-1] < math.inf else True
