"""Analytic moments against simulation: the exact ones, and the stated errors of the others.

Tolerances of exact values are four standard errors of the simulation. Those of approximations are
what their docstrings say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.propagation.graph.canonical import Canonical, MomentsAlgebra, graph_moments
from errcomp.propagation.graph.maxima import maximum_of_ranks, maximum_of_two
from errcomp.propagation.sums import error_budget, total_moments
from errcomp.propagation.terms import Floats, Level, Terms

Preceding = list[list[int]]


def make(value: Any, spread: Any, *, count: int = 1, levels: Any = (), **more: Any) -> Terms:
    value = np.asarray(value, dtype=float)
    n = len(value)
    return Terms(
        ids=np.array([f"t{i}" for i in range(n)]),
        classes=np.array([f"c{i % 3}" for i in range(n)]),
        value=value,
        count=np.full(n, count),
        bias=np.full(n, more.pop("bias", 0.0)),
        spread=np.broadcast_to(np.asarray(spread, dtype=float), n),
        levels=tuple(
            Level(f"l{i}", np.asarray(codes, dtype=np.int64), share)
            for i, (codes, share) in enumerate(levels)
        ),
        **more,
    )


def draw(terms: Terms, draws: int, rng: np.random.Generator) -> Floats:
    """One instance of each term, shape (n, draws)."""
    return instances(terms, shared(terms, draws, rng), rng)


def shared(terms: Terms, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    z = np.zeros((len(terms), draws))
    for level in terms.levels:
        z += (
            math.sqrt(level.share)
            * rng.standard_normal((level.codes.max() + 1, draws))[level.codes]
        )
    mixing = np.ones(draws) if math.isinf(terms.df) else rng.chisquare(terms.df, draws) / terms.df
    return z, mixing


def instances(terms: Terms, common: tuple[Floats, Floats], rng: np.random.Generator) -> Floats:
    z, mixing = common
    z = (z + math.sqrt(terms.own_share) * rng.standard_normal(z.shape)) / np.sqrt(mixing)
    p, b, s = (x[:, None] for x in (terms.value, terms.bias, terms.spread))
    if terms.kind == "log-ratio":
        return np.asarray(p * np.exp(b + s * z))
    return np.asarray(p * (1 + b + s * z) if terms.kind == "relative" else p + b + s * z)


def totals(terms: Terms, draws: int, rng: np.random.Generator) -> Floats:
    common = shared(terms, draws, rng)
    return np.sum([instances(terms, common, rng).sum(0) for _ in range(terms.count.max())], axis=0)


def assert_moments(found: Any, x: Floats) -> None:
    """Mean and sd within four standard errors."""
    centred = x - x.mean()
    error = math.sqrt((np.mean(centred**4) / np.mean(centred**2) ** 2 - 1) / len(x)) / 2
    assert found.mean == pytest.approx(x.mean(), abs=4 * x.std() / math.sqrt(len(x)))
    assert found.sd == pytest.approx(x.std(), rel=4 * error)


def inside(found: Any, x: Floats, level: float = 0.9) -> float:
    low, high = found.band(level)
    return float(np.mean((x > low) & (x < high)))


CORRELATIONS = {
    "independent": [],
    "blocks": [([0] * 6, 0.2), ([0, 0, 1, 1, 2, 2], 0.3), ([0, 0, 1, 2, 3, 3], 0.2)],
    "common": [([0] * 6, 1.0)],
}


@pytest.mark.parametrize("levels", CORRELATIONS.values(), ids=CORRELATIONS)
@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_moments_of_a_sum(kind: str, levels: Any) -> None:
    spreads = [0.1, 0.3, 0.5, 0.2, 0.4, 0.3]
    terms = make([1, 2, 3, 1, 5, 2], spreads, count=3, bias=0.1, levels=levels, kind=kind)
    x = totals(terms, 100_000, np.random.default_rng(1))
    total = total_moments(terms)
    assert_moments(total, x)
    assert inside(total, x) == pytest.approx(0.9, abs=0.012)


def test_matrix() -> None:
    rng = np.random.default_rng(2)
    matrix = np.corrcoef(rng.normal(size=(6, 8)))
    terms = make([1, 2, 3, 1, 5, 2], [0.1, 0.3, 0.5, 0.2, 0.4, 0.3], count=2, matrix=matrix)
    z = np.linalg.cholesky(matrix) @ rng.standard_normal((6, 100_000))
    x = 2 * terms.value @ np.exp(terms.spread[:, None] * z)
    assert_moments(total_moments(terms), x)

    def everything(on: MomentsAlgebra) -> Canonical:
        return on.total([on.repeated(str(i), 2) for i in terms.ids])

    assert_moments(graph_moments(terms, everything), x)


@pytest.mark.parametrize("levels", CORRELATIONS.values(), ids=CORRELATIONS)
@pytest.mark.parametrize("kind", ["log-ratio", "relative"])
def test_heavy_tails(kind: str, levels: Any) -> None:
    terms = make([1, 2, 3, 1, 5, 2], 0.2, count=3, levels=levels, kind=kind, df=4.0)
    x = totals(terms, 100_000, np.random.default_rng(3))
    total = total_moments(terms)
    for level in (0.5, 0.9, 0.98):
        assert inside(total, x, level) == pytest.approx(level, abs=0.012)


def test_heavy_tails_of_many_terms_shift_the_total() -> None:
    # The total at Z = 0 is not the median: a first-order band would miss nearly all totals.
    terms = make(np.ones(400), 0.3, df=5.0)
    x = totals(terms, 10_000, np.random.default_rng(4))
    total = total_moments(terms)
    assert inside(total, x) == pytest.approx(0.9, abs=0.012)
    scale = 0.3 / math.sqrt(400)
    assert np.mean(np.abs(np.log(x / 400)) < 2.015 * scale) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("df", "spread", "low", "high"),
    [
        (math.inf, 0.1, 0.893, 0.907),
        (math.inf, 0.3, 0.893, 0.907),
        (math.inf, 0.6, 0.893, 0.915),
        (math.inf, 1.0, 0.893, 0.948),
        (5.0, 0.3, 0.893, 0.912),
        (3.0, 0.3, 0.893, 0.914),
        (3.0, 0.6, 0.888, 0.939),
        (3.0, 1.0, 0.875, 0.945),
    ],
)
def test_stated_coverage_of_bands(df: float, spread: float, low: float, high: float) -> None:
    rng = np.random.default_rng(5)
    found = []
    for n in (2, 10, 100):
        zeros, classes = np.zeros(n), np.arange(n) % max(1, n // 5)
        for levels in ([], [(zeros, 0.2), (classes, 0.3)], [(zeros, 1.0)]):
            for unequal in (False, True):
                values = rng.lognormal(0, 1, n) if unequal else np.ones(n)
                spreads = spread * rng.uniform(0.5, 1, n) if unequal else spread
                terms = make(values, spreads, levels=levels, df=df)
                x = totals(terms, 200_000 // max(1, n // 10), rng)
                found.append(inside(total_moments(terms), x))
    assert low <= min(found)
    assert max(found) <= high


def test_total_contribution_is_what_a_perfect_predictor_buys() -> None:
    levels = [([0] * 6, 0.3), ([0, 1, 2, 0, 1, 2], 0.4)]
    terms = make([1, 2, 3, 1, 5, 2], [0.1, 0.3, 0.5, 0.2, 0.4, 0.3], count=2, levels=levels)
    rng = np.random.default_rng(6)
    common = shared(terms, 200_000, rng)
    times = instances(terms, common, rng) + instances(terms, common, rng)
    total = times.sum(0)
    budget = error_budget(terms)
    for name, share in zip(budget.names, budget.total, strict=True):
        perfect = total - times[terms.classes == name].sum(0)
        assert share == pytest.approx(1 - perfect.var() / total.var(), abs=0.02)


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.7])
def test_larger_of_two(rho: float) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 400_000))
    x = np.maximum(10 + a, 10.5 + 2 * (rho * a + math.sqrt(1 - rho**2) * b))
    assert_moments(maximum_of_two(10, 1, 10.5, 2, correlation=rho), x)


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("n", [3, 64])
def test_slowest_rank(n: int, rho: float) -> None:
    rng = np.random.default_rng(8)
    common, own = rng.standard_normal(50_000), rng.standard_normal((n, 50_000))
    x = 10 + 2 * (math.sqrt(rho) * common + math.sqrt(1 - rho) * own).max(0)
    assert_moments(maximum_of_ranks(n, 10, 2, correlation=rho), x)


def test_products_and_functions_of_what_shares_a_cause() -> None:
    terms = make([2.0, 3.0], [0.2, 0.3], levels=[([0, 0], 0.5)])
    x, y = draw(terms, 400_000, np.random.default_rng(9))
    leaf = lambda on, i: on.leaf(f"t{i}")  # noqa: E731
    for rule, expected in (
        (lambda on: on.product(leaf(on, 0), leaf(on, 1)), x * y),
        (lambda on: on.apply(leaf(on, 0), np.sqrt), np.sqrt(x)),
    ):
        assert_moments(graph_moments(terms, rule), expected)
    # First-order loadings, then a sum: to a few percent of the deviation.
    chain = graph_moments(
        terms,
        lambda on: on.total(
            [on.product(a := leaf(on, 0), leaf(on, 1)), on.scaled(on.apply(a, np.square), 2.0)]
        ),
    )
    z = x * y + 2 * x**2
    assert chain.mean == pytest.approx(z.mean(), rel=0.005)
    assert chain.sd == pytest.approx(z.std(), rel=0.03)


def layered(rng: np.random.Generator, layers: int, width: int, waits: int) -> Preceding:
    before: Preceding = []
    last: list[int] = []
    for _ in range(layers):
        now = range(len(before), len(before) + width)
        before += [
            sorted(rng.choice(last, min(len(last), waits), replace=False)) if last else []
            for _ in now
        ]
        last = list(now)
    return [*before, last]


def series_parallel(rng: np.random.Generator, n: int) -> Preceding:
    before: Preceding = []

    def build(size: int, waits: list[int]) -> list[int]:
        if size == 1:
            before.append(waits)
            return [len(before) - 1]
        first = int(rng.integers(1, size))
        if rng.random() < 0.5:
            return build(size - first, build(first, waits))
        return build(first, waits) + build(size - first, waits)

    ends = build(n - 1, [])
    return [*before, ends]


def simulated(before: Preceding, times: Floats) -> Floats:
    ends: list[Floats] = []
    for waits, time in zip(before, times, strict=True):
        ends.append(time + np.max([ends[j] for j in waits], axis=0) if waits else time)
    return ends[-1]


def analytic(before: Preceding) -> Callable[[MomentsAlgebra], Canonical]:
    def evaluate(on: MomentsAlgebra) -> Canonical:
        ends: list[Canonical] = []
        for i, waits in enumerate(before):
            time = on.leaf(f"t{i}")
            ends.append(on.total([on.maximum([ends[j] for j in waits]), time]) if waits else time)
        return ends[-1]

    return evaluate


#: Graph, then the stated error: of the mean, and of the standard deviation low and high.
STATED = {
    "series-parallel": (lambda rng: series_parallel(rng, 1002), 0.004, 0.97, 1.03),
    "parallel": (lambda rng: layered(rng, 1, 1001, 1), 0.025, 0.94, 1.02),
    "layers that wait for 2": (lambda rng: layered(rng, 77, 13, 2), 0.025, 0.83, 1.07),
    "layers that wait for 5": (lambda rng: layered(rng, 77, 13, 5), 0.025, 0.83, 1.07),
    "layers that wait for all": (lambda rng: layered(rng, 100, 10, 10), 0.035, 0.83, 1.07),
    "wide layers": (lambda rng: layered(rng, 10, 100, 3), 0.025, 0.83, 1.07),
}


@pytest.mark.slow
@pytest.mark.parametrize("graph", STATED)
@pytest.mark.parametrize("kind", ["log-ratio", "relative"])
@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_stated_error_on_graphs_of_a_thousand_nodes(kind: str, spread: float, graph: str) -> None:
    build, mean_error, low, high = STATED[graph]
    rng = np.random.default_rng(10)
    before = build(rng)
    n = len(before)
    half_shared = [(np.zeros(n), 0.2), (rng.integers(0, 6, n), 0.3)]
    for unequal in (True, False):
        values = rng.lognormal(0, 0.5, n) if unequal else np.ones(n)
        for levels in ([], half_shared):
            terms = make(values, spread, levels=levels, kind=kind)
            x = np.concatenate([simulated(before, draw(terms, 2000, rng)) for _ in range(5)])
            found = graph_moments(terms, analytic(before))
            assert not found.caveats
            worst = unequal or levels or graph in ("series-parallel", "parallel")
            noise = 4 / math.sqrt(2 * len(x))
            assert found.mean == pytest.approx(x.mean(), rel=mean_error if worst else 0.045)
            assert (low if worst else 0.61) - noise <= found.sd / x.std() <= high + noise


@pytest.mark.slow
def test_following_shared_causes_alone_is_wrong_by_a_factor_of_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(11)
    before = series_parallel(rng, 1002)
    terms = make(np.ones(len(before)), 0.3)
    x = np.concatenate([simulated(before, draw(terms, 2000, rng)) for _ in range(3)])
    assert graph_moments(terms, analytic(before)).sd == pytest.approx(x.std(), rel=0.06)
    monkeypatch.setattr("errcomp.propagation.graph.canonical.FACTORS", 0)
    textbook = graph_moments(terms, analytic(before))
    assert textbook.sd < 0.5 * x.std()
    assert textbook.mean > 1.02 * x.mean()
    assert [c.code for c in textbook.caveats] == ["untracked-causes"]
