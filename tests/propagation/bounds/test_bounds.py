from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.bounds import (
    BoundsAlgebra,
    Interval,
    QuantileBounds,
    band,
    comonotonic_quantile,
    frechet_max,
    frechet_max_cdf,
    frechet_max_table,
    graph_band,
    quantile_bounds,
    variance_bounds,
    worst_case,
)
from errcomp.propagation.terms import Level, Terms


def terms(value, spread, *, bias=0.0, count=1, kind="log-ratio", df=math.inf, unit=None):
    value, spread, bias, count = np.broadcast_arrays(
        *(np.atleast_1d(x) for x in (value, spread, bias, count))
    )
    ids = np.array([f"k{i}" for i in range(len(value))])
    return Terms(
        ids,
        ids,
        value.astype(float),
        count.astype(np.int64),
        bias.astype(float),
        spread.astype(float),
        kind=kind,
        df=df,
        unit=unit,
    )


NONE = terms([], [])
KINDS = ["log-ratio", "relative", "absolute"]


# --- standard deviation


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_linear_errors_have_the_polygon_bounds(kind: str) -> None:
    t = terms([10, 10, 10], [0.1, 0.2, 0.7], bias=0.01, kind=kind, unit="ms")
    scale = 10 if kind == "relative" else 1
    found = variance_bounds(t)
    assert found.mean == pytest.approx(30.3 if kind == "relative" else 30.03)
    assert (found.low, found.high) == pytest.approx((0.4 * scale, 1.0 * scale))
    assert found.triangle == found.high
    assert found.low_attained
    assert found.unit == "ms"
    assert json.loads(json.dumps(found.to_dict()))["low"] == found.low


def test_repetitions_may_cancel() -> None:
    found = variance_bounds(terms([10], [0.5], count=[2], kind="absolute"))
    assert (found.low, found.high) == (0.0, 1.0)


def test_student_errors_use_their_variance() -> None:
    found = variance_bounds(terms([10], [0.5], kind="absolute", df=4.0))
    assert found.high == pytest.approx(0.5 * stats.t.std(4))


def comonotonic_sd(t: Terms) -> float:
    mean = t.count * t.value * np.exp(t.bias + t.spread**2 / 2)
    return math.sqrt(mean @ np.expm1(np.outer(t.spread, t.spread)) @ mean)


@pytest.mark.parametrize("spread", [[0.1, 0.1], [0.05, 0.9], [0.0, 2.5], [1e-9, 1e-8], [3.0, 5.0]])
def test_log_normal_comonotonic_deviation(spread: list[float]) -> None:
    t = terms([3.0, 8.0], spread, bias=[0.1, -0.2], count=[2, 5])
    found = variance_bounds(t)
    assert found.high == pytest.approx(comonotonic_sd(t), rel=1e-12)
    mean = t.value * np.exp(t.bias + t.spread**2 / 2)
    assert found.mean == pytest.approx(t.count @ mean)
    assert found.triangle == pytest.approx(t.count @ (mean * np.sqrt(np.expm1(t.spread**2))))
    assert found.high <= found.triangle
    assert not found.low_attained
    if spread == [0.05, 0.9]:
        assert found.high < 0.999 * found.triangle


def test_comonotonic_draws_have_the_largest_deviation() -> None:
    t = terms([3.0, 8.0, 1.0], [0.1, 0.4, 0.8])
    z = np.random.default_rng(0).standard_normal(400_000)
    total = (t.value * np.exp(t.spread * z[:, None])).sum(axis=1)
    found = variance_bounds(t)
    assert total.std() == pytest.approx(found.high, rel=0.01)
    assert total.mean() == pytest.approx(found.mean, rel=0.005)


def test_one_dominant_term_leaves_its_excess() -> None:
    found = variance_bounds(terms([100.0, 1.0], [0.1, 0.1]))
    assert found.low == pytest.approx(99 * math.exp(0.005) * math.sqrt(math.expm1(0.01)))
    alone = variance_bounds(terms([100.0, 1.0], [0.1, 0.0]))
    assert alone.low_attained
    assert alone.low == pytest.approx(alone.high)


def test_certain_terms_have_no_deviation() -> None:
    found = variance_bounds(terms([1.0, 2.0], [0.0, 0.0]))
    assert (found.mean, found.low, found.high) == (3.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (terms([1.0], [0.1], df=5.0), "a time with a Student t log-ratio error has no mean"),
        (terms([1.0], [0.1], df=2.0, kind="relative"), "df = 2 ≤ 2 have no variance"),
        (terms([1.0, 1.0], [0.1, 40.0]), r"largest spread is 40 \(term k1, df = inf\)\."),
    ],
)
def test_variance_that_does_not_exist(t: Terms, message: str) -> None:
    with pytest.raises(NotDefinedError, match=message):
        variance_bounds(t)


# --- quantiles


@pytest.mark.parametrize("kind", KINDS)
def test_comonotonic_quantile_is_that_of_one_common_draw(kind: str) -> None:
    t = terms([3.0, 8.0], [0.1, 0.4], bias=[0.05, 0.0], count=[4, 1], kind=kind, df=5.0)
    z = stats.t.ppf(0.8, 5)
    one = {
        "log-ratio": t.value * np.exp(t.bias + t.spread * z),
        "relative": t.value * (1 + t.bias + t.spread * z),
        "absolute": t.value + t.bias + t.spread * z,
    }[kind]
    assert comonotonic_quantile(t, 0.8) == pytest.approx(t.count @ one)


def test_two_normals_have_makarovs_bounds() -> None:
    t = terms([10.0, 10.0], [1.0, 1.0], kind="absolute", unit="us")
    found = quantile_bounds(t, 0.95, tolerance=1e-4)
    assert found.high == pytest.approx(20 + 2 * stats.norm.isf(0.025), abs=1e-3)
    assert found.low == pytest.approx(20 - 2 * stats.norm.isf(0.475), abs=1e-3)
    assert found.high_attained == pytest.approx(found.high, abs=3e-3)
    assert found.low_attained == pytest.approx(found.low, abs=3e-3)
    assert found.gap < 3e-3
    assert found.caveats == ()
    assert str(found).startswith("95 % quantile within [19.87, 23.92] us for any dependence")
    assert json.loads(json.dumps(found.to_dict()))["unit"] == "us"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_bounds_are_in_order_around_the_comonotonic_quantile(kind: str, q: float) -> None:
    rng = np.random.default_rng(5)
    t = terms(rng.lognormal(1, 1, 12), rng.uniform(0.05, 0.5, 12), count=3, kind=kind)
    found = quantile_bounds(t, q)
    assert found.low <= found.low_attained <= comonotonic_quantile(t, q)
    assert comonotonic_quantile(t, q) <= found.high_attained <= found.high
    assert found.gap == max(found.high - found.high_attained, found.low_attained - found.low)
    assert found.gap < 0.01 * (found.high - found.low)


@pytest.mark.parametrize("spread", [1.0, 2.0, 3.0, 5.0, 10.0])
@pytest.mark.parametrize("different", [True, False])
def test_so_are_bands_of_errors_by_orders_of_magnitude(spread: float, different: bool) -> None:
    values = np.random.default_rng(6).lognormal(1, 2, 40)
    spreads = spread * (np.linspace(0.5, 1.0, 40) if different else np.ones(40))
    t = terms(values, spreads, count=25)
    for level in (0.5, 0.95, 0.999):
        low, high = band(t, level)
        ends = [comonotonic_quantile(t, q) for q in ((1 - level) / 2, (1 + level) / 2)]
        assert 0 <= low <= ends[0] < ends[1] <= high


def test_dependence_given_in_the_terms_is_not_looked_at() -> None:
    t = terms([3.0, 8.0], [0.1, 0.4])
    shared = Terms(*(getattr(t, f) for f in ("ids", "classes", "value", "count", "bias", "spread")))
    level = (Level("device", np.zeros(2, dtype=np.int64), 0.9),)
    other = Terms(t.ids, t.classes, t.value, t.count, t.bias, t.spread, levels=level)
    assert band(shared, 0.9) == band(other, 0.9)


def test_repetitions_count_as_terms() -> None:
    once = terms([2.0] * 6, [0.3] * 6)
    assert band(once, 0.8) == pytest.approx(band(terms([2.0], [0.3], count=[6]), 0.8))


def test_equal_terms_in_any_order_give_the_same_bytes() -> None:
    rng = np.random.default_rng(6)
    value, spread = rng.lognormal(size=40), rng.uniform(0.1, 0.3, 40)
    order = rng.permutation(40)
    assert band(terms(value, spread), 0.9) == band(terms(value[order], spread[order]), 0.9)


def test_certain_terms_have_one_quantile() -> None:
    sure = quantile_bounds(terms([1.0, 2.0], [0.0, 0.0], kind="relative"), 0.3)
    assert (sure.low, sure.high, sure.gap) == (3.0, 3.0, 0.0)
    assert band(terms([2.0], [0.0], bias=math.log(2)), 0.9) == pytest.approx((4.0, 4.0))


def test_terms_without_a_mean_say_so() -> None:
    found = quantile_bounds(terms([1.0] * 5, [0.1] * 5, df=3.0), 0.9)
    assert isinstance(found, QuantileBounds)
    assert [c.code for c in found.caveats] == ["infinite-mean"]
    assert found.caveats[0].evidence == {"df": 3.0, "instances": 5.0}
    assert math.isfinite(found.high)


def test_a_wide_gap_is_said() -> None:
    found = quantile_bounds(terms([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]), 0.9, tolerance=1e-9)
    assert [c.code for c in found.caveats] == ["bounds-not-sharp"]
    assert found.to_dict()["caveats"][0]["evidence"]["gap"] == found.gap


def test_band_is_made_of_the_outer_quantiles() -> None:
    t = terms([1.0, 2.0, 3.0], [0.1, 0.2, 0.3])
    low, high = band(t, 0.9)
    assert low == pytest.approx(quantile_bounds(t, 0.05).low)
    assert high == pytest.approx(quantile_bounds(t, 0.95).high)


def test_many_terms_are_quick_enough() -> None:
    rng = np.random.default_rng(7)
    n = 3_000
    t = terms(rng.lognormal(size=n), rng.uniform(0.05, 0.5, n), count=rng.integers(1, 50, n))
    found = quantile_bounds(t, 0.95)
    assert found.gap < 0.01 * found.high


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 95, math.nan, "x", None])
def test_quantiles_and_levels_are_within_0_and_1(bad: object) -> None:
    t = terms([1.0], [0.1])
    for call in (
        lambda: band(t, bad),
        lambda: quantile_bounds(t, bad),
        lambda: comonotonic_quantile(t, bad),
        lambda: frechet_max(t, bad),
        lambda: BoundsAlgebra(t, bad),
        lambda: frechet_max_table([0.5], [[1.0]], bad),
    ):
        with pytest.raises(InputError, match="must be a number between 0 and 1"):
            call()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, "x"])
def test_tolerance_is_positive(bad: object) -> None:
    with pytest.raises(InputError, match="tolerance: must be positive"):
        quantile_bounds(terms([1.0], [0.1]), 0.5, tolerance=bad)


def test_no_terms() -> None:
    for call in (
        lambda: band(NONE, 0.9),
        lambda: quantile_bounds(NONE, 0.9),
        lambda: comonotonic_quantile(NONE, 0.9),
        lambda: variance_bounds(NONE),
        lambda: frechet_max(NONE, 0.9),
        lambda: frechet_max_cdf(NONE, 1.0),
        lambda: BoundsAlgebra(NONE, 0.9),
    ):
        with pytest.raises(InputError, match="at least one term"):
            call()


def test_bounds_beyond_floating_point_are_refused() -> None:
    t = terms([1.0] * 3, [5.0, 6.0, 900.0])
    for call in (lambda: band(t, 0.9), lambda: quantile_bounds(t, 0.9)):
        with pytest.raises(NotDefinedError, match=r"largest spread is 900 \(term k2, df = inf\)\."):
            call()
    for call in (lambda: comonotonic_quantile(t, 0.9), lambda: frechet_max(t, 0.9)):
        with pytest.raises(NotDefinedError, match="largest spread is 900"):
            call()
    with pytest.raises(NotDefinedError, match="beyond the largest"):
        frechet_max(terms([1.0], [0.0], bias=800.0), 0.5)


# --- worst case


def test_worst_case_is_attained_by_errors_of_one_sign() -> None:
    found = worst_case([1.0, 2.0], [0.5, 0.1], count=[3, 1])
    assert found.total == 5.0
    assert found.error == pytest.approx((3 * 0.5 + 2 * 0.1) / 5)
    assert found.high == pytest.approx(3 * 1.5 + 2 * 1.1)
    assert found.low == pytest.approx(3 * 0.5 + 2 * 0.9)
    assert json.loads(json.dumps(found.to_dict()))["error"] == found.error
    assert worst_case([1.0, 2.0], 0.1).error == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 0.0], [0.1, 0.1]), "value: must be positive and finite, got 0 in row 2"),
        (([1.0, 1.0], [0.1, -0.1]), "error: must be 0 or more and finite, got -0.1 in row 2"),
        (([1.0] * 5, [math.nan] * 5), r"got nan in rows 1, 2, 3 \(and 2 more\)"),
        (([1.0, 1.0], [0.1] * 3), "one of each per term"),
        (([], []), "at least one row"),
        (([[1.0]], [0.1]), "got shape"),
        (("a", [0.1]), "must be numbers"),
    ],
)
def test_worst_case_refuses(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        worst_case(*arguments)


def test_worst_case_counts_are_positive_integers() -> None:
    with pytest.raises(InputError, match="count: must be a positive integer and finite, got 1.5"):
        worst_case([1.0], [0.1], count=[1.5])


# --- maximum


def test_maximum_of_equal_ranks() -> None:
    t = terms([10.0], [1.0], count=[64], kind="absolute")
    low, high = frechet_max(t, 0.5)
    assert low == pytest.approx(10.0)
    assert high == pytest.approx(10 + stats.norm.isf(0.5 / 64), abs=1e-9)
    assert frechet_max_cdf(t, high) == pytest.approx((0.5, stats.norm.cdf(high - 10)), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_maximum_of_different_terms(kind: str) -> None:
    t = terms([10.0, 8.0, 3.0, 9.0], [0.1, 0.5, 0.2, 0.0], count=[2, 1, 1, 1], kind=kind, df=4.0)
    for q in (0.01, 0.5, 0.99):
        low, high = frechet_max(t, q)
        assert frechet_max_cdf(t, high)[0] >= q - 1e-9
        assert frechet_max_cdf(t, low)[1] >= q - 1e-9
        if low > 9.1:
            assert frechet_max_cdf(t, high * (1 - 1e-6))[0] < q
            assert frechet_max_cdf(t, low * (1 - 1e-6))[1] < q


def test_maximum_is_at_least_what_is_certain() -> None:
    t = terms([10.0, 50.0], [0.1, 0.0], kind="relative")
    assert frechet_max(t, 0.9) == pytest.approx((50.0, 50.0))
    assert frechet_max_cdf(t, 49.9) == (0.0, 0.0)
    low, high = frechet_max_cdf(t, 50.0)
    assert low == high == pytest.approx(1.0)
    sure = terms([4.0, 5.0], [0.0, 0.0])
    assert frechet_max(sure, 0.9) == pytest.approx((5.0, 5.0))
    assert frechet_max_cdf(sure, 5.001) == (1.0, 1.0)


def test_maximum_at_what_is_no_time() -> None:
    with pytest.raises(InputError, match="x: must be a number"):
        frechet_max_cdf(terms([1.0], [0.1]), "soon")


def test_tables_of_quantiles_bracket_the_exact_bounds() -> None:
    t = terms([10.0, 9.0], [1.0, 2.0], kind="absolute")
    low, high = frechet_max(t, 0.9)
    for points in (50, 5000):
        p = (np.arange(points) + 0.5) / points
        table = np.stack([stats.norm.ppf(p, 10, 1), stats.norm.ppf(p, 9, 2)])
        outer = frechet_max_table(p, table, 0.9)
        assert outer[0] <= low <= high <= outer[1]
    assert outer == pytest.approx((low, high), abs=0.01)


def test_table_at_its_own_probabilities() -> None:
    assert frechet_max_table([0.5, 0.9], [[1.0, 2.0]], 0.9) == (2.0, 2.0)
    assert frechet_max_table([0.5, 0.9], [[1.0, 2.0]], 0.8) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("p", "x", "q", "message"),
    [
        ([0.5, 0.9], [[1.0, 2.0], [1.0, 2.0]], 0.9, "Give quantiles up to probability 0.95"),
        ([0.5, 0.9], [[1.0, 2.0]], 0.4, "below the first probability"),
        ([0.5, 0.9], [[2.0, 1.0]], 0.6, "wrong in row 1"),
        ([0.5, 0.9], [[1.0, math.inf]], 0.6, "finite and not decrease"),
        ([0.9, 0.5], [[1.0, 2.0]], 0.6, "must increase between 0 and 1"),
        ([0.5, 1.0], [[1.0, 2.0]], 0.6, "must increase between 0 and 1"),
        ([0.5], [[1.0, 2.0]], 0.6, "one column per probability"),
        ([0.5], ["x"], 0.6, "must be numbers"),
    ],
)
def test_tables_that_do_not_do(p: object, x: object, q: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        frechet_max_table(p, x, q)


# --- graphs


def test_leaves_share_the_level_by_bonferroni() -> None:
    t = terms([10.0, 20.0], [1.0, 2.0], kind="absolute")
    algebra = BoundsAlgebra(t, 0.9)
    z = stats.norm.isf(0.025)
    a, b = algebra.leaf("k0"), algebra.leaf("k1")
    assert (a.low, a.high) == pytest.approx((10 - z, 10 + z))
    assert (b.low, b.high) == pytest.approx((20 - 2 * z, 20 + 2 * z))
    assert algebra.confidence == pytest.approx(0.9)
    assert algebra.leaf("k0") == a
    assert algebra.used == 2
    algebra.repeated("k0", 1)
    assert algebra.confidence == pytest.approx(0.85)


def test_operations_on_intervals() -> None:
    algebra = BoundsAlgebra(terms([1.0], [0.1]), 0.9)
    x, y = Interval(1.0, 2.0), Interval(-1.0, 3.0)
    assert algebra.total([x, y]) == Interval(0.0, 5.0)
    assert algebra.total([]) == Interval(0.0, 0.0)
    assert algebra.maximum([x, y]) == Interval(1.0, 3.0)
    assert algebra.product(x, y) == Interval(-2.0, 6.0)
    assert algebra.scaled(x, -2.0) == Interval(-4.0, -2.0)
    assert algebra.scaled(Interval(1.0, math.inf), 0.0) == Interval(0.0, 0.0)
    assert algebra.constant(4.0) == Interval(4.0, 4.0)
    queue = algebra.apply(x, lambda v: np.where(v < 2, v / (2 - np.minimum(v, 1.9)), np.inf))
    assert queue == Interval(1.0, math.inf)


def test_repetitions_are_bounded_as_a_sum() -> None:
    t = terms([10.0], [1.0], kind="absolute")
    found = BoundsAlgebra(t, 0.9, uses=1).repeated("k0", 100)
    shortfall = stats.norm.pdf(stats.norm.isf(0.05)) / 0.05
    assert (found.low, found.high) == pytest.approx(
        (1000 - 100 * shortfall, 1000 + 100 * shortfall)
    )
    heavy = BoundsAlgebra(terms([10.0], [0.1], df=3.0), 0.9, uses=1).repeated("k0", 10)
    assert heavy.high == pytest.approx(100 * math.exp(0.1 * stats.t.isf(0.005, 3)))
    sure = BoundsAlgebra(terms([10.0], [0.0], kind="relative", count=[7]), 0.9).repeated("k0", 3)
    assert sure == Interval(30.0, 30.0)


def test_graph_is_counted_first() -> None:
    t = terms([10.0, 20.0, 1.0], [1.0, 2.0, 1.0], kind="absolute")
    seen: list[BoundsAlgebra] = []

    def graph(algebra: BoundsAlgebra) -> Interval:
        seen.append(algebra)
        return algebra.total([algebra.repeated("k0", 1) for _ in range(5)])

    found = graph_band(t, graph, 0.9)
    assert len(seen) == 2
    assert seen[-1].confidence == pytest.approx(0.9)
    assert found.high == pytest.approx(50 + 5 * stats.norm.isf(0.01))
    assert graph_band(t, lambda a: a.constant(3.0), 0.9) == Interval(3.0, 3.0)


def test_nodes_of_a_graph() -> None:
    from errcomp.propagation.graph import nodes

    t = terms([10.0, 20.0], [0.1, 0.1])
    graph = nodes.Serial([nodes.Kernel("k0", 3), nodes.Kernel("k1"), nodes.Constant(5.0)])
    found = graph_band(t, graph.evaluate, 0.9)
    low, high = band(terms([10.0, 20.0], [0.1, 0.1], count=[3, 1]), 0.9)
    assert found.low < 5 + low
    assert 5 + high < found.high


def test_algebra_refuses() -> None:
    t = terms([1.0], [0.1])
    with pytest.raises(InputError, match="no term is named 'x'. Terms: k0"):
        BoundsAlgebra(t, 0.9).leaf("x")
    with pytest.raises(InputError, match="uses: must be a positive integer, got 0"):
        BoundsAlgebra(t, 0.9, uses=0)
    with pytest.raises(InputError, match="maximum needs at"):
        BoundsAlgebra(t, 0.9).maximum([])
    with pytest.raises(NotDefinedError, match="beyond the largest"):
        BoundsAlgebra(terms([1.0], [900.0]), 0.9).leaf("k0")
