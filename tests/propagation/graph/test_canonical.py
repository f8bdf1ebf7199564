"""Linear forms: what is exact is exact, what is refused is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.graph import (
    Kernel,
    Parallel,
    Quantity,
    Queue,
    Replicas,
    Serial,
    attach,
    canonical,
)
from errcomp.propagation.graph.canonical import Canonical, MomentsAlgebra, graph_moments
from errcomp.propagation.graph.maxima import maximum_of_ranks, maximum_of_two
from errcomp.propagation.sums import total_moments
from errcomp.propagation.terms import Floats, Level, Terms

KINDS = ("log-ratio", "relative", "absolute")


def make(
    value: Any, spread: Any, *, count: Any = 1, bias: Any = 0.0, levels: Any = (), **more: Any
) -> Terms:
    value = np.atleast_1d(np.asarray(value, dtype=float))
    n = len(value)
    return Terms(
        ids=np.array([f"t{i}" for i in range(n)]),
        classes=np.array(["c"] * n),
        value=value,
        count=np.broadcast_to(np.asarray(count, dtype=np.int64), n),
        bias=np.broadcast_to(np.asarray(bias, dtype=float), n),
        spread=np.broadcast_to(np.asarray(spread, dtype=float), n),
        levels=tuple(
            Level(f"l{i}", np.asarray(codes, dtype=np.int64), share)
            for i, (codes, share) in enumerate(levels)
        ),
        **more,
    )


def everything(algebra: MomentsAlgebra, terms: Terms) -> Canonical:
    return algebra.total(
        [algebra.repeated(str(i), int(n)) for i, n in zip(terms.ids, terms.count, strict=True)]
    )


LEVELS = [([0, 0, 0, 1], 0.3), ([0, 0, 1, 2], 0.4)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [[], LEVELS])
def test_every_term_has_its_mean_and_deviation(kind: str, levels: Any) -> None:
    terms = make([1, 2, 3, 4], [0.1, 0.5, 0.0, 1.0], bias=0.2, levels=levels, kind=kind)
    algebra = MomentsAlgebra(terms)
    for i, name in enumerate(terms.ids):
        for count in (1, 7):
            alone = dataclasses.replace(terms.take([i]), count=np.array([count]))
            expected = total_moments(alone)
            x = algebra.repeated(str(name), count)
            assert x.mean == pytest.approx(expected.mean, rel=1e-13)
            assert x.sd == pytest.approx(expected.sd, rel=1e-12)
    assert algebra.untracked == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_of_equal_spreads_is_exact(kind: str) -> None:
    terms = make([1, 2, 3, 4], 0.5, count=[1, 3, 1, 2], bias=0.1, levels=LEVELS, kind=kind)
    total, exact = everything(MomentsAlgebra(terms), terms), total_moments(terms)
    assert (total.mean, total.sd) == pytest.approx((exact.mean, exact.sd), rel=1e-12)


def test_a_sum_of_unequal_spreads() -> None:
    spreads = [0.1, 0.5, 0.3, 0.6]
    for kind in KINDS:
        terms = make([1, 2, 3, 4], spreads, count=2, levels=LEVELS, kind=kind)
        total, exact = everything(MomentsAlgebra(terms), terms), total_moments(terms)
        assert total.mean == pytest.approx(exact.mean, rel=1e-12)
        assert total.sd == pytest.approx(exact.sd, rel=2e-3 if kind == "log-ratio" else 1e-12)
        assert total.sd >= exact.sd * (1 - 1e-12)  # correlations are never too small


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_is_exact_and_shared_by_repetitions(kind: str) -> None:
    rng = np.random.default_rng(1)
    matrix = np.corrcoef(rng.normal(size=(5, 9)))
    terms = make(
        rng.lognormal(size=5),
        [0.1, 0.5, 0.0, 0.2, 0.9],
        count=[1, 2, 1, 3, 1],
        matrix=matrix,
        kind=kind,
    )
    total, exact = everything(MomentsAlgebra(terms), terms), total_moments(terms)
    assert (total.mean, total.sd) == pytest.approx((exact.mean, exact.sd), rel=1e-9)


def test_a_singular_matrix_is_taken_and_an_impossible_one_is_not() -> None:
    algebra = MomentsAlgebra(make([1, 1], 0.1, matrix=np.ones((2, 2)), kind="absolute"))
    difference = algebra.total([algebra.leaf("t0"), algebra.scaled(algebra.leaf("t1"), -1.0)])
    assert difference.sd < 1e-5
    bad = np.array([[1, -0.9, -0.9], [-0.9, 1, -0.9], [-0.9, -0.9, 1]])
    for kind in KINDS:
        with pytest.raises(InputError, match="not positive semi-definite"):
            MomentsAlgebra(make([1, 1, 1], 0.1, matrix=bad, kind=kind))


def test_two_leaves_are_two_instances_and_one_leaf_twice_is_one() -> None:
    algebra = MomentsAlgebra(make([1.0], 0.1, levels=[([0], 0.25)], kind="absolute"))
    x, y = algebra.leaf("t0"), algebra.leaf("t0")
    assert x.covariance(y) == pytest.approx(0.25 * 0.01)
    assert algebra.total([x, y]).variance == pytest.approx(0.025)
    assert algebra.total([x, x]).variance == pytest.approx(0.04)
    assert algebra.total([]).mean == 0


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_larger_of_two_normals(rho: float) -> None:
    algebra = MomentsAlgebra(
        make([10.0, 10.5], [1.0, 2.0], levels=[([0, 0], rho)], kind="absolute")
    )
    x = algebra.maximum([algebra.leaf("t0"), algebra.leaf("t1")])
    exact = maximum_of_two(10.0, 1.0, 10.5, 2.0, correlation=rho)
    assert (x.mean, x.sd) == pytest.approx((exact.mean, exact.sd), rel=1e-12)


def test_the_larger_of_two_log_normals_scales_with_what_is_common() -> None:
    # A common factor multiplies both: the maximum has its relative error in full.
    algebra = MomentsAlgebra(make([10.0, 10.0], 0.4, levels=[([0, 0], 0.5)]))
    x = algebra.maximum([algebra.leaf("t0"), algebra.leaf("t1")])
    s = 0.4 * math.sqrt(0.5)  # of the common factor, and of each one's own
    own = stats.norm.cdf(math.sqrt(2) * s / 2) * 2 * math.exp(s**2 / 2)
    square = 2 * math.exp(2 * s**2) * stats.norm.cdf(math.sqrt(2) * s)
    mean, second = math.exp(s**2 / 2) * own, math.exp(2 * s**2) * square
    assert x.mean == pytest.approx(10 * mean, rel=1e-12)
    assert x.sd == pytest.approx(10 * math.sqrt(second - mean**2), rel=1e-12)
    assert x.loadings[0] / x.mean == pytest.approx(math.sqrt(math.expm1(s**2)), rel=1e-12)


def test_a_maximum_that_is_used_twice_is_one_time() -> None:
    for kind in KINDS:
        algebra = MomentsAlgebra(make([1.0, 1.0], 0.1, kind=kind))
        x = algebra.maximum([algebra.leaf("t0"), algebra.leaf("t1")])
        assert algebra.total([x, x]).sd == pytest.approx(2 * x.sd, rel=1e-12)
        again = algebra.maximum([x, x, algebra.scaled(x, 1.0)])
        assert (again.mean, again.sd) == pytest.approx((x.mean, x.sd), rel=1e-6)


def test_who_waits_for_the_same_waits_for_one_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    algebra = MomentsAlgebra(make([1.0, 1.1, 1.2], 0.1, kind="absolute"))
    x, y, z = (algebra.leaf(f"t{i}") for i in range(3))
    first = algebra.maximum([x, y])
    assert algebra.maximum([y, x]) is first
    assert algebra.maximum([x, z]) is not first
    monkeypatch.setattr(canonical, "_REMEMBERED", 2)
    algebra.maximum([y, z])
    forgotten = algebra.maximum([x, y])
    assert forgotten is not first
    assert (forgotten.mean, forgotten.sd) == pytest.approx((first.mean, first.sd), rel=1e-14)


def test_barriers_between_normal_times_are_exact() -> None:
    # Twenty layers of ten nodes that wait for all of the layer before: a sum of twenty maxima.
    algebra = MomentsAlgebra(make(np.full(200, 10.0), 1.0, kind="absolute"))
    layer = [algebra.constant(0.0)]
    for start in range(0, 200, 10):
        layer = [
            algebra.total([algebra.maximum(layer), algebra.leaf(f"t{i}")])
            for i in range(start, start + 10)
        ]
    end, one = algebra.maximum(layer), maximum_of_ranks(10, 10.0, 1.0)
    assert end.mean == pytest.approx(20 * one.mean, rel=1e-9)
    assert end.sd == pytest.approx(math.sqrt(20) * one.sd, rel=1e-9)


def test_a_maximum_of_one_that_always_wins_is_that_one() -> None:
    for kind in ("log-ratio", "absolute"):
        algebra = MomentsAlgebra(make([100.0, 1.0, 2.0], [0.1, 0.1, 0.0], kind=kind))
        x = algebra.leaf("t0")
        small = [algebra.leaf("t1"), algebra.leaf("t2"), algebra.constant(0.0)]
        assert algebra.maximum([x, *small]) is x
        assert algebra.maximum([x]) is x
        certain = algebra.maximum([algebra.constant(3.0), algebra.constant(4.0)])
        assert (certain.mean, certain.sd) == (4.0, 0.0)


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_the_largest_of_alike_normals_is_exact(rho: float) -> None:
    terms = make(np.full(64, 10.0), 1.0, levels=[(np.zeros(64), rho)], kind="absolute")
    algebra = MomentsAlgebra(terms)
    x = algebra.maximum([algebra.leaf(f"t{i}") for i in range(64)])
    exact = maximum_of_ranks(64, 10.0, 1.0, correlation=rho)
    assert (x.mean, x.sd) == pytest.approx((exact.mean, exact.sd), rel=1e-9)
    if rho > 0:
        assert x.loadings[0] == pytest.approx(math.sqrt(rho), rel=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_the_largest_of_alike_log_normals_is_exact(rho: float) -> None:
    terms = make(np.full(64, 10.0), 0.4, levels=[(np.zeros(64), rho)])
    algebra = MomentsAlgebra(terms)
    x = algebra.maximum([algebra.leaf(f"t{i}") for i in range(64)])
    z = np.linspace(-12, 16, 20001)
    density = 64 * stats.norm.pdf(z) * stats.norm.cdf(z) ** 63
    own = np.exp(0.4 * math.sqrt(1 - rho) * z)
    mean, second = (density @ own**k / density.sum() for k in (1, 2))
    mean *= math.exp(0.08 * rho)
    second *= math.exp(0.32 * rho)
    assert x.mean == pytest.approx(10 * mean, rel=1e-9)
    assert x.sd == pytest.approx(10 * math.sqrt(second - mean**2), rel=1e-9)


@pytest.mark.parametrize(
    "levels",
    [[], [([0, 0, 1, 2], 0.5)], [([0, 1, 2, 3], 0.5)]],
    ids=["independent", "unequal correlations", "own groups"],
)
@pytest.mark.parametrize("odd", ["none", "mean", "spread"])
def test_times_that_are_not_alike_are_taken_two_at_a_time(levels: Any, odd: str) -> None:
    value, spread = np.full(4, 10.0), np.full(4, 1.0)
    if odd == "mean":
        value[1] = 10.001
    if odd == "spread":
        spread[1] = 1.001
    algebra = MomentsAlgebra(make(value, spread, levels=levels, kind="absolute"))
    x = algebra.maximum([algebra.leaf(f"t{i}") for i in range(4)])
    rng = np.random.default_rng(1)
    own = rng.standard_normal((4, 200_000))
    shared = rng.standard_normal((4, 200_000))
    rho = 0.5 if levels else 0.0
    codes = levels[0][0] if levels else range(4)
    draws = 10 + math.sqrt(1 - rho) * own + math.sqrt(rho) * shared[list(codes)]
    assert x.mean == pytest.approx(draws.max(axis=0).mean(), abs=0.02)
    assert x.sd == pytest.approx(draws.max(axis=0).std(), rel=0.03)


def test_products_of_independent_times_are_exact() -> None:
    for kind in ("log-ratio", "relative"):
        terms = make([2.0, 5.0], [0.3, 0.5], kind=kind)
        algebra = MomentsAlgebra(terms)
        x, y = algebra.leaf("t0"), algebra.leaf("t1")
        xy = algebra.product(x, y)
        assert xy.mean == pytest.approx(x.mean * y.mean, rel=1e-12)
        variance = (x.variance + x.mean**2) * (y.variance + y.mean**2) - (x.mean * y.mean) ** 2
        assert xy.variance == pytest.approx(variance, rel=1e-12)
        fixed = algebra.product(x, algebra.constant(3.0))
        np.testing.assert_allclose(fixed.loadings, 3 * x.loadings)


def test_squares() -> None:
    normal = MomentsAlgebra(make([0.01], 0.005, kind="absolute"))
    x = normal.leaf("t0")
    square = normal.product(x, x)
    assert square.mean == pytest.approx(0.01**2 + 0.005**2)
    assert square.variance == pytest.approx(4 * 0.01**2 * 0.005**2 + 2 * 0.005**4)
    log_normal = MomentsAlgebra(make([3.0], 0.3))
    y = log_normal.leaf("t0")
    law = stats.lognorm(0.6, scale=9)
    square = log_normal.product(y, y)
    assert (square.mean, square.sd) == pytest.approx((law.mean(), law.std()), rel=1e-12)


def test_product_with_something_of_mean_zero() -> None:
    algebra = MomentsAlgebra(make([2.0], 0.1))
    x = algebra.leaf("t0")
    difference = algebra.total([x, algebra.scaled(algebra.leaf("t0"), -1.0)])
    assert algebra.product(x, difference).mean == pytest.approx(x.variance)
    assert algebra.product(x, algebra.constant(0.0)).sd == 0


def test_functions() -> None:
    for kind in KINDS:
        algebra = MomentsAlgebra(make([2.0], 0.3, kind=kind))
        x = algebra.leaf("t0")
        same = algebra.apply(x, lambda v: v)
        assert (same.mean, same.sd) == pytest.approx((x.mean, x.sd), rel=1e-10)
        np.testing.assert_allclose(same.loadings, x.loadings, rtol=1e-10)
        assert algebra.apply(algebra.constant(2.0), np.square).mean == 4.0
    algebra = MomentsAlgebra(make([0.1], 0.5, kind="absolute"))
    x = algebra.leaf("t0")
    law = stats.lognorm(0.5, scale=math.exp(0.1))
    grown = algebra.apply(x, np.exp)
    assert (grown.mean, grown.sd) == pytest.approx((law.mean(), law.std()), rel=1e-10)
    # By Stein's lemma: E f'(X) times the variance.
    assert grown.covariance(x) == pytest.approx(law.mean() * 0.25, rel=1e-10)
    wide = MomentsAlgebra(make([1.0], 2.0))
    squared = wide.apply(wide.leaf("t0"), np.sqrt)
    law = stats.lognorm(1.0)
    assert (squared.mean, squared.sd) == pytest.approx((law.mean(), law.std()), rel=1e-8)


def saturating(limit: float) -> Any:
    def function(x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.where(x < limit, 1 / np.maximum(limit - x, 0), np.inf)

    return function


def test_a_function_that_becomes_infinite() -> None:
    algebra = MomentsAlgebra(make([1.0], 0.1, kind="absolute"))
    x = algebra.leaf("t0")
    with pytest.raises(NotDefinedError, match=r"probability of 0\.023 \(a saturated queue\)"):
        algebra.apply(x, saturating(1.2))
    far = algebra.apply(x, saturating(1.5))
    rng = np.random.default_rng(1)
    draws = 1 / (1.5 - np.minimum(1 + 0.1 * rng.standard_normal(400_000), 1.4))
    assert far.mean == pytest.approx(draws.mean(), rel=0.002)
    assert far.sd == pytest.approx(draws.std(), rel=0.02)
    with pytest.raises(NotDefinedError, match="probability of 1 "):
        algebra.apply(algebra.constant(2.0), saturating(1.2))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.where(x > 1, np.nan, x), r"got an array of shape \(\d+,\) with \d+ NaN"),
        (lambda x: x[:3], r"got an array of shape \(3,\)"),
        (lambda x: 1.0, r"got an array of shape \(\)"),
    ],
)
def test_functions_that_return_something_else(function: Any, message: str) -> None:
    algebra = MomentsAlgebra(make([1.0], 0.1, kind="absolute"))
    with pytest.raises(InputError, match=message):
        algebra.apply(algebra.leaf("t0"), function)


def test_bad_input() -> None:
    algebra = MomentsAlgebra(make([1.0], 0.1))
    with pytest.raises(InputError, match="no term is named 'x'. Terms: t0"):
        algebra.leaf("x")
    for count in (0, -1, 1.5):
        with pytest.raises(InputError, match="positive integer, got"):
            algebra.repeated("t0", count)  # type: ignore[arg-type]
    with pytest.raises(NotDefinedError, match="df = 3"):
        MomentsAlgebra(make([1.0], 0.1, df=3.0))
    with pytest.raises(InputError, match="40 for t0"):
        MomentsAlgebra(make([1.0], 40.0))
    with pytest.raises(InputError, match="at least one term"):
        MomentsAlgebra(make([1.0], 0.1).take([]))


def test_causes_beyond_the_limit_count_as_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "FACTORS", 4)
    # Three groups at the first level fit, six at the second do not: one place is left.
    codes = np.arange(6)
    terms = make(np.ones(6), 0.1, levels=[(codes // 2, 0.5), (codes, 0.3)], kind="absolute")
    algebra = MomentsAlgebra(terms)
    times = [algebra.repeated(f"t{i}", 2) for i in range(6)]
    assert times[0].covariance(times[1]) == pytest.approx(4 * 0.005)
    assert [x.own > 0 for x in times] == [False, *[True] * 5]
    for x in times:
        assert x.variance == pytest.approx(4 * 0.008 + 2 * 0.002)
    assert algebra.untracked == 6 + 5
    twice = algebra.total([times[5], times[5]])
    assert twice.variance < 4 * times[5].variance  # what was lost

    # Groups that fill the last place are followed: only what belongs to a term alone is lost.
    monkeypatch.setattr(canonical, "FACTORS", 9)
    full = MomentsAlgebra(terms)
    assert [full.repeated(f"t{i}", 2).own for i in range(6)] == pytest.approx([2 * 0.002] * 6)
    monkeypatch.setattr(canonical, "FACTORS", 4)

    def both(on: MomentsAlgebra) -> Canonical:
        return on.maximum([on.leaf(f"t{i}") for i in range(6)])

    caveats = graph_moments(terms, both).caveats
    assert [c.code for c in caveats] == ["untracked-causes"]
    assert (
        "only the first 4 common causes of error are followed; correlation from 12 more is"
        in caveats[0].message
    )


class TestGraphMoments:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_sum_is_the_sum(self, kind: str) -> None:
        terms = make([1, 2, 3, 4], 0.2, count=[1, 3, 1, 2], bias=0.1, levels=LEVELS, kind=kind)
        graph = graph_moments(terms, lambda on: everything(on, terms))
        exact = total_moments(terms)
        for level in (0.05, 0.5, 0.99):
            assert graph.quantile(level) == pytest.approx(exact.quantile(level), rel=1e-10)
        assert (graph.mean, graph.sd) == pytest.approx((exact.mean, exact.sd), rel=1e-12)
        assert graph.prediction == exact.prediction
        assert (graph.n_terms, graph.n_instances) == (4, None)
        json.dumps(graph.to_dict(), allow_nan=False)

    @pytest.mark.parametrize("df", [3.0, 10.0])
    @pytest.mark.parametrize("kind", ["relative", "absolute"])
    def test_a_student_t_sum_stays_one(self, kind: str, df: float) -> None:
        terms = make([1, 2, 3, 4], 0.2, count=[1, 3, 1, 2], bias=0.1, levels=LEVELS, kind=kind)
        terms = dataclasses.replace(terms, df=df)
        graph, exact = graph_moments(terms, lambda on: everything(on, terms)), total_moments(terms)
        assert (graph.mean, graph.sd) == pytest.approx((exact.mean, exact.sd), rel=1e-6)
        for level in (0.01, 0.5, 0.95):
            assert graph.quantile(level) == pytest.approx(exact.quantile(level), rel=1e-5)

    @pytest.mark.parametrize(("df", "known"), [(1.0, (False, False)), (2.0, (True, False))])
    def test_moments_that_do_not_exist(self, df: float, known: tuple[bool, bool]) -> None:
        terms = make([1.0, 1.0], 0.2, kind="absolute", df=df)
        graph = graph_moments(terms, lambda on: everything(on, terms))
        assert (graph.mean is not None, graph.sd is not None) == known
        assert graph.quantile(0.5) == pytest.approx(2.0)

    @pytest.mark.parametrize("df", [2.05, 3.0, 5.0])
    def test_the_larger_of_two_student_t(self, df: float) -> None:
        # Given the mixing variable two normals: mean and variance integrate in closed form, and
        # as both are proportional to the factor, what lies beyond the last node is exact.
        terms = make([10.0, 10.0], 1.0, kind="absolute", df=df)
        graph = graph_moments(terms, lambda on: on.maximum([on.leaf("t0"), on.leaf("t1")]))
        factor = math.sqrt(df / 2) * math.gamma((df - 1) / 2) / math.gamma(df / 2)
        shift = factor / math.sqrt(math.pi)
        assert graph.mean == pytest.approx(10 + shift, rel=1e-12)
        assert graph.sd == pytest.approx(math.sqrt(df / (df - 2) - shift**2), rel=1e-10)

    def test_a_log_ratio_t_has_quantiles_alone(self) -> None:
        terms = make(np.ones(20), 0.2, levels=[(np.zeros(20), 0.5)], df=4.0)
        graph, total = graph_moments(terms, lambda on: everything(on, terms)), total_moments(terms)
        assert (graph.mean, graph.sd, graph.law) == (None, None, "log-normal mixture")
        for level in (0.05, 0.5, 0.95):
            assert graph.quantile(level) == pytest.approx(total.quantile(level), rel=1e-3)

    def test_a_difference_of_log_normals_is_taken_for_normal(self) -> None:
        terms = make([1.0, 2.0], 0.1)
        for df, law in ((math.inf, "normal"), (4.0, "normal mixture")):
            graph = graph_moments(
                dataclasses.replace(terms, df=df),
                lambda on: on.total([on.leaf("t0"), on.scaled(on.leaf("t1"), -1.0)]),
            )
            assert graph.law == law
            assert graph.quantile(0.5) < 0

    def test_certain_heavy_tails(self) -> None:
        graph = graph_moments(make([3.0], 0.0, df=3.0), lambda on: on.leaf("t0"))
        assert (graph.mean, graph.sd, graph.quantile(0.9)) == pytest.approx((3.0, 0.0, 3.0))

    def test_prediction_has_no_bias(self) -> None:
        terms = make([3.0, 2.0], 0.1, bias=[-2.0, 0.0])
        graph = graph_moments(terms, lambda on: on.maximum([on.leaf("t0"), on.leaf("t1")]))
        assert graph.prediction == 3.0
        assert graph.mean == pytest.approx(2 * math.exp(0.005), rel=1e-6)

    def test_beyond_floating_point(self) -> None:
        for kind in KINDS:
            for unit in (1e200, 1e-200):
                with pytest.raises(InputError, match="another unit"):
                    MomentsAlgebra(
                        make([unit], 0.1 * (unit if kind == "absolute" else 1), kind=kind)
                    )


class TestGraphs:
    """The nodes of execution graphs, with this engine."""

    def test_serial_and_parallel(self) -> None:
        terms = make([10.0, 10.0, 5.0], 1.0, kind="absolute")
        graph = Serial([Parallel([Kernel("t0"), Kernel("t1")]), Kernel("t2", 4)])
        found = graph_moments(terms, graph.evaluate)
        assert found.prediction == 30.0
        assert found.mean == pytest.approx(30 + 1 / math.sqrt(math.pi))
        assert found.sd == pytest.approx(math.sqrt(1 - 1 / math.pi + 4))

    def test_queue(self) -> None:
        terms = make([0.5], 0.1)
        queue = Queue(Kernel("t0"), arrival_rate=1.0)
        found = graph_moments(terms, queue.evaluate)
        rng = np.random.default_rng(1)
        service = 0.5 * np.exp(0.1 * rng.standard_normal(400_000))
        draws = service / (1 - service)
        assert found.mean == pytest.approx(draws.mean(), rel=0.002)
        assert found.sd == pytest.approx(draws.std(), rel=0.01)
        with pytest.raises(NotDefinedError, match="Monte Carlo"):
            graph_moments(terms, Queue(Kernel("t0"), arrival_rate=1.9).evaluate)

    def test_replicas(self) -> None:
        graph = Replicas(Kernel("t0"), 64, Quantity("jitter", 1.0, spread=0.1), correlation=0.3)
        terms = attach(make([10.0], 0.2), graph)
        found = graph_moments(terms, graph.evaluate)
        rng = np.random.default_rng(1)
        own = rng.standard_normal((100_000, 64)).max(axis=1)
        common, step = rng.standard_normal((2, 100_000))
        draws = 10 * np.exp(0.2 * step + 0.1 * (math.sqrt(0.3) * common + math.sqrt(0.7) * own))
        assert found.mean == pytest.approx(draws.mean(), rel=0.005)
        assert found.sd == pytest.approx(draws.std(), rel=0.02)
