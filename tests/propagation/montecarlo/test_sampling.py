from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from errcomp.propagation.montecarlo import rows as _rows
from errcomp.propagation.montecarlo import sampling as _sampling
from errcomp.propagation.montecarlo.rows import rows_of, rows_of_sum, sum_of_lognormals
from errcomp.propagation.montecarlo.sampling import Draws, Plan, ScrambledSobol, Span, normals, plan
from errcomp.propagation.terms import Level, Terms


def terms(n: int = 4, **fields: Any) -> Terms:
    given: dict[str, Any] = {
        "ids": np.array([f"k{i}" for i in range(n)]),
        "classes": np.array(["c"] * n),
        "value": np.arange(1.0, n + 1),
        "count": np.ones(n, np.int64),
        "bias": np.zeros(n),
        "spread": np.full(n, 0.3),
    }
    return Terms(**{**given, **fields})


def planned(t: Terms, method: Any = "random", seed: int = 0) -> Plan:
    return plan(t, rows_of(t), t.count, method=method, seed=seed)


def drawn(t: Terms, draws: int = 2**15, method: Any = "random", seed: int = 0) -> Draws:
    prepared = planned(t, method, seed)
    net = ScrambledSobol(prepared.dimensions, draws, seed) if prepared.dimensions else None
    return Draws(prepared, net, Span(0, 1, 0, draws))


def nested() -> tuple[Level, ...]:
    return (
        Level("device", np.array([0, 0, 0, 0, 1, 1]), 0.2),
        Level("class", np.array([0, 0, 1, 1, 2, 2]), 0.3),
        Level("kernel", np.array([0, 0, 1, 2, 3, 3]), 0.1),
    )


# Normals


def test_normals_are_normal_and_mirrored() -> None:
    z = normals(np.random.default_rng(1), 64, 4096)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z[:, 2048:], -z[:, :2048])
    half = z[:, :2048].ravel().astype(float)
    assert stats.kstest(half, "norm").pvalue > 0.01
    assert abs(half.var() - 1) < 4 * math.sqrt(2 / half.size)
    # Both halves of the transform, and rows, are uncorrelated.
    assert abs(np.corrcoef(z[:, :1024].ravel(), z[:, 1024:2048].ravel())[0, 1]) < 4 / 2**8
    assert np.abs(np.corrcoef(z[:, :2048]) - np.eye(64)).max() < 5 / math.sqrt(2048)


def test_normals_of_given_scales() -> None:
    scale = np.array([[0.0], [2.0]], np.float32)
    z = normals(np.random.default_rng(1), 2, 8, scale)
    np.testing.assert_array_equal(z, scale * normals(np.random.default_rng(1), 2, 8))


def test_largest_normal_is_finite() -> None:
    class Ones:
        def random_raw(self, size: int) -> np.ndarray:
            return np.full(size, 2**64 - 1, np.uint64)

    class Generator:
        bit_generator = Ones()

    z: np.ndarray = normals(Generator(), 1, 4)  # type: ignore[arg-type]
    assert 5.6 < np.abs(z).max() < 5.66


# Sums of many instances


@pytest.mark.parametrize(("tau", "count"), [(0.0, 9), (1e-6, 9), (0.2, 9), (0.5, 9), (0.8, 40)])
def test_sum_of_lognormals_has_the_moments(tau: float, count: int) -> None:
    # Gauss-Hermite nodes: exact for the moments of such smooth functions.
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    spread, share = np.array([[tau]]), np.array([[1 / count]])
    x = sum_of_lognormals(nodes[None, :], spread, share, share**2)[0]
    omega = math.exp(tau**2)
    mean = math.sqrt(omega)
    sd = math.sqrt(omega * math.expm1(tau**2) / count)
    assert weights @ x == pytest.approx(mean, rel=1e-12)
    assert math.sqrt(weights @ (x - mean) ** 2) == pytest.approx(sd, rel=1e-6, abs=1e-15)
    if tau > 1e-3:
        skewness = (omega + 2) * math.sqrt(omega - 1) / math.sqrt(count)
        assert weights @ ((x - mean) / sd) ** 3 == pytest.approx(skewness, rel=1e-6)


def test_sum_of_lognormals_is_positive_and_finite_far_out() -> None:
    z = np.array([[-9.0, 0.0, 9.0]])
    for tau in (0.1, 1.0, 7.0, 100.0):
        x = sum_of_lognormals(z, np.array([[tau]]), np.array([[0.1]]), np.array([[0.01]]))
        assert (x >= 0).all()
        assert np.isfinite(x).all()


def test_one_lognormal_is_itself() -> None:
    z, one = np.array([[-2.0, 0.0, 2.0]]), np.ones((1, 1))
    np.testing.assert_allclose(sum_of_lognormals(z, 0.4 * one, one, one), np.exp(0.4 * z))


@pytest.mark.slow
@pytest.mark.parametrize(("tau", "count"), [(0.5, 9), (0.8, 32), (1.0, 128), (0.2, 9)])
def test_quantiles_of_sums_are_as_right_as_documented(tau: float, count: int) -> None:
    rng = np.random.default_rng(3)
    x = np.zeros(1_000_000)
    for _ in range(count):
        x += np.exp(tau * rng.standard_normal(len(x)))
    q = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
    share = np.array([[1 / count]])
    got = sum_of_lognormals(stats.norm.ppf(q)[None, :], np.array([[tau]]), share, share**2)[0]
    error = np.abs(got * count / np.quantile(x, q) - 1)
    inner, outer = (0.003, 0.01) if tau > 0.2 else (0.0005, 0.001)
    assert error[1:4].max() < inner
    assert error.max() < outer


# Rows


def test_rows_of_each_kind() -> None:
    bias, spread = np.full(4, 0.1), np.full(4, 0.2)
    log = rows_of(terms(bias=bias, spread=spread))
    np.testing.assert_allclose(log.centre, np.arange(1, 5) * math.exp(0.1))
    np.testing.assert_array_equal(log.scale, spread)
    relative = rows_of(terms(bias=bias, spread=spread, kind="relative"))
    np.testing.assert_allclose(relative.centre, np.arange(1, 5) * 1.1)
    np.testing.assert_allclose(relative.scale, np.arange(1, 5) * 0.2)
    absolute = rows_of(terms(bias=bias, spread=spread, kind="absolute"))
    np.testing.assert_allclose(absolute.centre, np.arange(1, 5) + 0.1)
    np.testing.assert_array_equal(absolute.scale, spread)


def test_own_part_is_what_levels_leave() -> None:
    t = terms(6, levels=nested())
    rows = rows_of(t)
    np.testing.assert_allclose(rows.own, 0.3 * math.sqrt(0.4))
    np.testing.assert_array_equal(rows.code, nested()[-1].codes)
    matrix = rows_of(terms(matrix=np.eye(4)))
    assert not matrix.own.any()
    np.testing.assert_array_equal(matrix.code, np.arange(4))


def test_a_level_without_share_has_no_factors() -> None:
    idle = Level("kernel", np.arange(6), 0.0)
    t = terms(6, levels=(*nested(), idle))
    np.testing.assert_array_equal(rows_of(t).code, nested()[-1].codes)
    assert planned(t).factors == 2 + 3 + 4


def exact_moments(t: Terms) -> tuple[float, float]:
    """Mean and variance of the sum of independent log-normal terms with counts."""
    s2 = t.spread**2
    mean = t.value * np.exp(t.bias + s2 / 2)
    return float(t.count @ mean), float(t.count @ (mean**2 * np.expm1(s2)))


def moments_of_rows(rows: _rows.Rows) -> tuple[float, float]:
    mean = rows.count * rows.centre * np.exp(rows.own**2 / 2)
    return float(mean.sum()), float((mean**2 * np.expm1(rows.own**2) * rows.second).sum())


def test_linear_sums_become_one_row_for_each_group() -> None:
    count = np.arange(1, 7)
    t = terms(6, levels=nested(), kind="relative", count=count, bias=np.full(6, 0.1))
    rows = rows_of_sum(t)
    np.testing.assert_allclose(rows.centre, [1.1 * 5, 1.1 * 9, 1.1 * 16, 1.1 * (25 + 36)])
    np.testing.assert_allclose(rows.scale, [0.3 * 5, 0.3 * 9, 0.3 * 16, 0.3 * (25 + 36)])
    own = 0.4 * 0.3**2 * np.array([1 + 2 * 4, 3 * 9, 4 * 16, 5 * 25 + 6 * 36])
    np.testing.assert_allclose(rows.own**2, own)


def test_large_sums_are_gathered_without_a_change_of_moments() -> None:
    n = 20_000
    rng = np.random.default_rng(2)
    t = terms(
        n,
        value=rng.lognormal(size=n),
        spread=rng.uniform(0.05, 0.4, n),
        count=rng.integers(1, 5, n),
        bias=rng.normal(0, 0.1, n),
    )
    rows = rows_of_sum(t)
    assert len(rows) < 50
    assert rows.count.sum() == t.count.sum()
    mean, variance = exact_moments(t)
    got_mean, got_variance = moments_of_rows(rows)
    assert got_mean == pytest.approx(mean, rel=2e-5)
    assert got_variance == pytest.approx(variance, rel=4e-4)


def test_what_cannot_be_drawn_at_once_stays_apart() -> None:
    n = 5000
    spread = np.where(np.arange(n) < 7, 0.21 + 0.02 * np.arange(n), 2.5)
    spread[7:2000] = 0.1
    rows = rows_of_sum(terms(n, value=np.ones(n), spread=spread))
    # One row of 1,993 terms; seven terms alone in their bins; 3,000 that are too skewed.
    assert sorted(set(rows.count.tolist())) == [1, 1993]
    assert len(rows) == 1 + 7 + 3000


def test_terms_without_own_part_are_gathered_exactly() -> None:
    n = 5000
    level = Level("class", np.arange(n) % 3, 1.0)
    rows = rows_of_sum(terms(n, value=np.ones(n), count=np.full(n, 2), levels=(level,)))
    assert len(rows) == 3
    np.testing.assert_array_equal(rows.count, 1)
    np.testing.assert_allclose(rows.centre.sum(), 2 * n)
    assert not rows.own.any()


def test_instances_drawn_at_once() -> None:
    t = terms(4, spread=np.array([0.3, 0.3, 1.0, 2.5]))
    rows = rows_of(t)
    assert not rows.times(np.full(4, 8)).at_once(math.inf).any()
    many = rows.times(np.full(4, 9))
    assert many.at_once(math.inf).tolist() == [True, True, False, False]
    assert many.at_once(2.0).tolist() == [False, False, False, False]
    huge = rows.times(np.full(4, 2**16 + 1))
    assert huge.at_once(math.inf).all()


# Which sources get Sobol points


def test_largest_sources_come_first() -> None:
    value = np.array([1.0, 10.0, 3.0, 1e-3])
    prepared = planned(terms(value=value, kind="relative"), "sobol")
    at, to = prepared.chosen[-1]
    assert dict(zip(at.tolist(), to.tolist(), strict=True)) == {1: 0, 2: 1}
    assert prepared.dimensions == 2
    assert prepared.covered == pytest.approx(109 / 110, abs=1e-6)


def test_factors_are_sources_too() -> None:
    t = terms(6, levels=nested(), kind="relative", value=np.ones(6))
    prepared = planned(t, "sobol")
    # In units of the square of a spread: share times the square of what lies in a group.
    weights = [0.2 * np.array([16, 4]), 0.3 * np.array([4, 4, 4]), 0.1 * np.array([4, 1, 1, 4])]
    weights.append(np.full(6, 0.4))
    total = float(t.spread @ t.correlation() @ t.spread) / 0.09
    assert sum(w.sum() for w in weights) == pytest.approx(total)
    large = [np.flatnonzero(w > 0.01 * total) for w in weights]
    assert [sorted(at) for at, _ in prepared.chosen] == [at.tolist() for at in large]
    assert [len(at) for at in large] == [2, 3, 2, 6]
    assert prepared.chosen[0][1].tolist() == [0, 4]
    covered = sum(w[at].sum() for w, at in zip(weights, large, strict=True)) / total
    assert prepared.covered == pytest.approx(covered)


def test_no_dimension_for_random_draws_nor_for_certain_terms() -> None:
    assert planned(terms(), "random").dimensions == 0
    certain = planned(terms(spread=np.zeros(4)), "sobol")
    assert (certain.dimensions, certain.covered) == (0, 0.0)
    # Student t: the mixing variable always has one.
    assert planned(terms(spread=np.zeros(4), df=3.0), "sobol").dimensions == 1
    assert planned(terms(df=3.0), "sobol").chosen[-1][1].min() == 1


def test_at_most_32_dimensions() -> None:
    assert planned(terms(50, value=np.ones(50)), "sobol").dimensions == 32


@pytest.mark.parametrize("method", ["sobol", "random"])
def test_own_part_has_its_sobol_points_once(method: str) -> None:
    draws = drawn(terms(2, spread=np.ones(2)), 1024, method)
    z = np.log(draws.block(np.array([0, 0, 1, 0])) / np.array([[1], [1], [2], [1]]))
    strata = [len(np.unique(np.floor(1024 * stats.norm.cdf(row)))) for row in z]
    expected = [1024, 700, 1024, 700] if method == "sobol" else [700] * 4
    for got, want in zip(strata, expected, strict=True):
        assert got == want if want == 1024 else got < 800
    assert np.abs(np.corrcoef(z) - np.eye(4)).max() < 5 / 32


# Draws


@pytest.mark.parametrize("method", ["sobol", "random"])
@pytest.mark.parametrize("kind", ["log-ratio", "relative", "absolute"])
def test_correlation_is_that_of_the_terms(kind: Any, method: str) -> None:
    t = terms(6, levels=nested(), kind=kind)
    x = drawn(t, method=method).block(np.arange(6))
    errors = np.log(x) if kind == "log-ratio" else x
    got = np.corrcoef(errors)
    assert np.abs(got - t.correlation()).max() < 5 / math.sqrt(2**15 / 2)
    sd = t.value * 0.3 if kind == "relative" else np.full(6, 0.3)
    np.testing.assert_allclose(errors.std(axis=1), sd, rtol=5 / math.sqrt(2**15))


@pytest.mark.parametrize("method", ["sobol", "random"])
def test_correlation_given_as_a_matrix(method: str) -> None:
    matrix = np.array([[1, 0.5, -0.3], [0.5, 1, 0.2], [-0.3, 0.2, 1]])
    x = drawn(terms(3, matrix=matrix), method=method).block(np.arange(3))
    assert np.abs(np.corrcoef(np.log(x)) - matrix).max() < 5 / math.sqrt(2**15 / 2)


def test_semidefinite_matrix() -> None:
    matrix = np.array([[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    z = np.log(drawn(terms(3, value=np.ones(3), matrix=matrix), 1024).block(np.arange(3)))
    np.testing.assert_allclose(z[1], z[0], atol=1e-6)
    np.testing.assert_allclose(z[2], -z[0], atol=1e-6)


@pytest.mark.parametrize("method", ["sobol", "random"])
@pytest.mark.parametrize("df", [1.5, 4.0])
def test_t_errors_have_t_marginals_and_one_mixing_variable(method: str, df: float) -> None:
    t = terms(2, kind="absolute", value=np.zeros(2), spread=np.ones(2), df=df)
    x = drawn(t, method=method, seed=5).block(np.arange(2))
    for row in x:
        assert stats.kstest(row[: 2**14], stats.t(df).cdf).pvalue > 0.01
    bound = stats.t(df).ppf(0.95)
    tail = stats.multivariate_t(np.zeros(2), np.eye(2), df=df, seed=1)
    expected = float(tail.cdf(np.full(2, -bound)))  # by symmetry
    got = float((x > bound).all(axis=0).mean())
    assert expected > 2 * 0.05**2
    assert got == pytest.approx(expected, abs=4 * math.sqrt(expected / 2**15))


def test_mixing_is_shared_by_factors_and_own_parts() -> None:
    level = Level("class", np.zeros(2, np.int64), 0.5)
    t = terms(2, kind="absolute", value=np.zeros(2), spread=np.ones(2), df=4.0, levels=(level,))
    x = drawn(t, seed=5).block(np.arange(2))
    for row in x:
        assert stats.kstest(row[: 2**14], stats.t(4).cdf).pvalue > 0.01
    # The difference has the own parts alone: a t of spread 1.
    assert stats.kstest((x[0] - x[1])[: 2**14], stats.t(4).cdf).pvalue > 0.01


def test_certain_terms_are_exact() -> None:
    t = terms(3, value=np.array([1.1, 2.7, 1e-9]), spread=np.zeros(3), bias=np.full(3, 0.3))
    x = drawn(t, 8).block(np.arange(3))
    np.testing.assert_array_equal(x, np.repeat((t.value * np.exp(t.bias))[:, None], 8, axis=1))


def test_large_spreads_are_computed_in_double_precision() -> None:
    x = drawn(terms(1, spread=np.full(1, 40.0)), 4096).block(np.array([0]))
    assert np.isfinite(x).all()
    assert x.max() > 1e45  # beyond float32
    assert planned(terms()).single
    assert not planned(terms(df=5.0)).single


def test_repeated_instances_share_factors_and_nothing_else() -> None:
    level = Level("class", np.zeros(1, np.int64), 0.5)
    t = terms(1, levels=(level,), kind="relative")
    for count in (2, 8, 9, 1000):
        x = drawn(t).repeated(0, count)
        sd = 0.3 * math.sqrt(0.5 * count**2 + 0.5 * count)
        assert x.mean() == pytest.approx(count, rel=1e-2)
        assert x.std() == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize("df", [math.inf, 8.0])
@pytest.mark.parametrize("count", [2, 8, 9, 200])
def test_repeated_log_ratios(count: int, df: float) -> None:
    level = Level("class", np.zeros(1, np.int64), 0.5)
    draws = drawn(terms(1, levels=(level,), df=df), seed=3)
    got = np.log(draws.repeated(0, count))
    one_by_one = np.log(draws.block(np.zeros(count, np.int64)).sum(axis=0))
    q = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose(np.quantile(got, q), np.quantile(one_by_one, q), atol=0.012)
    assert np.corrcoef(got, one_by_one)[0, 1] > 0.6  # the factors are the same


def test_sum_in_parts_is_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    t = terms(300, value=np.ones(300), spread=np.linspace(0, 0.4, 300), count=np.full(300, 3))
    rows = rows_of_sum(t)
    whole = plan(t, rows, np.ones(300, np.int64), method="random", seed=1)
    span = Span(0, 1, 0, 4096)
    first = Draws(whole, None, span).sum_of(rows, np.arange(300))
    monkeypatch.setattr(_sampling, "_AT_A_TIME", 4096 * 7)
    second = Draws(whole, None, span).sum_of(rows, np.arange(300))
    assert len(first) == 4096
    mean, variance = exact_moments(t)
    for x in (first, second):
        assert x.mean() == pytest.approx(mean, abs=4 * math.sqrt(variance / 4096))
        assert x.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / 2048))


def test_a_chunk_of_several_replicates_keeps_them_apart() -> None:
    t = terms(2, spread=np.ones(2))
    prepared = planned(t, "sobol")
    net = ScrambledSobol(prepared.dimensions, 256, 0)
    x = Draws(prepared, net, Span(4, 3, 0, 256)).block(np.array([0, 0]))
    z = np.log(x).reshape(2, 3, 256)
    for replicate in z[0]:
        assert len(np.unique(np.floor(256 * stats.norm.cdf(replicate)))) == 256
    np.testing.assert_allclose(z[1, :, 128:], -z[1, :, :128], atol=1e-5)


def test_one_point_in_each_interval_of_every_coordinate() -> None:
    points = ScrambledSobol(32, 512, seed=4).chunk(replicate=3, index=0, size=512)
    for row in points:
        np.testing.assert_array_equal(np.sort(np.floor(512 * row)), np.arange(512))


def test_first_two_coordinates_make_a_zero_net() -> None:
    x, y = ScrambledSobol(2, 1024, seed=4).chunk(replicate=0, index=0, size=1024)
    for bits in range(11):
        boxes = np.floor(2**bits * x) * 2**10 + np.floor(2 ** (10 - bits) * y)
        assert len(np.unique(boxes)) == 1024


def test_chunks_make_up_the_net_and_the_net_grows() -> None:
    small, large = ScrambledSobol(5, 256, seed=1), ScrambledSobol(5, 1024, seed=1)
    whole = large.chunk(replicate=2, index=0, size=1024)
    parts = [large.chunk(replicate=2, index=i, size=64) for i in range(16)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    np.testing.assert_array_equal(small.chunk(replicate=2, index=0, size=256), whole[:, :256])


def test_replicates_differ_and_seeds_repeat() -> None:
    sobol = ScrambledSobol(3, 64, seed=9)
    first = sobol.chunk(replicate=0, index=0, size=64)
    assert not (first == sobol.chunk(replicate=1, index=0, size=64)).any()
    again = ScrambledSobol(3, 64, seed=9).chunk(replicate=0, index=0, size=64)
    assert again.tobytes() == first.tobytes()


def test_a_point_is_uniform_over_the_scramblings() -> None:
    sobol = ScrambledSobol(2, 4, seed=0)
    points = np.array([sobol.chunk(replicate=r, index=0, size=4)[:, 1] for r in range(2000)])
    assert points.min() > 0
    assert points.max() < 1
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=4 / math.sqrt(12 * 2000))
    assert abs(np.corrcoef(points.T)[0, 1]) < 4 / math.sqrt(2000)


@pytest.mark.parametrize("points", [64, 512])
def test_error_is_that_of_the_usual_scrambling(points: int) -> None:
    def integrals(nets: list[np.ndarray]) -> float:
        return float(np.std([np.exp(net.sum(axis=0) / 8).mean() for net in nets]))

    ours = ScrambledSobol(8, points, seed=0)
    got = integrals([ours.chunk(replicate=r, index=0, size=points) for r in range(100)])
    usual = integrals([qmc.Sobol(8, seed=r).random(points).T for r in range(100)])
    chance = integrals([np.random.default_rng(r).random((8, points)) for r in range(100)])
    # Two standard deviations from 100 values each: their ratio is within a factor of 1.5.
    assert usual / 1.5 < got < 1.5 * usual
    assert got < chance / 10
