from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation import montecarlo
from errcomp.propagation.montecarlo import SamplingAlgebra, Simulated, simulate
from errcomp.propagation.terms import Floats, Level, Terms


def terms(n: int = 4, **fields: Any) -> Terms:
    given: dict[str, Any] = {
        "ids": np.array([f"k{i}" for i in range(n)]),
        "classes": np.array(["c"] * n),
        "value": np.arange(1.0, n + 1),
        "count": np.ones(n, np.int64),
        "bias": np.zeros(n),
        "spread": np.full(n, 0.3),
        "unit": "ms",
    }
    return Terms(**{**given, **fields})


def levels(*shares: float) -> tuple[Level, ...]:
    codes = ([0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 3, 3])
    return tuple(
        Level(str(i), np.array(code), share)
        for i, (code, share) in enumerate(zip(codes, shares, strict=False))
    )


def agrees(result: Simulated, mean: float, sd: float) -> None:
    assert abs(result.mean - mean) <= 4.5 * result.mean_standard_error + 1e-6 * abs(mean)
    # The kurtosis of what is simulated here is below 6.
    assert result.sd == pytest.approx(sd, rel=4 * math.sqrt(5 / (4 * len(result) / 2)))


METHODS = pytest.mark.parametrize("method", ["sobol", "random"])


# Sums with closed forms


@METHODS
def test_independent_log_normals(method: Any) -> None:
    t = terms(40, spread=np.linspace(0, 0.5, 40), bias=np.linspace(-0.1, 0.1, 40))
    mean = t.value * np.exp(t.bias + t.spread**2 / 2)
    sd = math.sqrt(float((mean**2 * np.expm1(t.spread**2)).sum()))
    agrees(simulate(t, method=method), float(mean.sum()), sd)


@METHODS
def test_comonotonic_log_normals_have_exact_quantiles(method: Any) -> None:
    spread = np.array([0.1, 0.2, 0.3, 0.4])
    t = terms(spread=spread, levels=(Level("all", np.zeros(4, np.int64), 1.0),))
    q = np.array([0.05, 0.5, 0.95])
    exact = (t.value * np.exp(np.outer(stats.norm.ppf(q), spread))).sum(axis=1)
    result = simulate(t, method=method)
    assert np.abs(result.quantile(q) / exact - 1).max() < (5e-4 if method == "sobol" else 1e-2)
    low, high = result.interval(q)
    assert ((low <= exact) & (exact <= high)).all()


@METHODS
@pytest.mark.parametrize("kind", ["relative", "absolute", "log-ratio"])
@pytest.mark.parametrize("shares", [(), (0.2, 0.3, 0.1), (0.0, 0.5, 0.5)])
def test_correlated_sums_with_counts(method: Any, kind: Any, shares: tuple[float, ...]) -> None:
    t = terms(
        6,
        kind=kind,
        levels=levels(*shares),
        count=np.array([1, 2, 9, 30, 4, 1]),
        spread=np.array([0.1, 0.2, 0.05, 0.1, 0.3, 0.0]),
        bias=np.full(6, 0.1),
    )
    own = t.own_share
    rho = t.correlation()
    same = rho * np.outer(t.count, t.count)
    np.fill_diagonal(same, (1 - own) * t.count**2 + own * t.count)
    if kind == "log-ratio":
        s = np.outer(t.spread, t.spread)
        one = t.value * np.exp(t.bias + t.spread**2 / 2)
        pairs = np.expm1(rho * s) * np.outer(t.count, t.count)
        repeated = t.count * (t.count - 1) * np.expm1((1 - own) * t.spread**2)
        np.fill_diagonal(pairs, t.count * np.expm1(t.spread**2) + repeated)
        mean, variance = float(t.count @ one), float(one @ pairs @ one)
    else:
        scale = t.spread * (t.value if kind == "relative" else 1)
        one = t.value * 1.1 if kind == "relative" else t.value + 0.1
        mean, variance = float(t.count @ one), float(scale @ same @ scale)
    result = simulate(t, method=method)
    agrees(result, mean, math.sqrt(variance))
    assert result.unit == "ms"


def test_matrix_sum() -> None:
    matrix = np.array([[1, 0.5, -0.3], [0.5, 1, 0.2], [-0.3, 0.2, 1]])
    count = np.array([1, 2, 3])
    t = terms(3, matrix=matrix, kind="relative", count=count)
    scale = 0.3 * t.value * count
    agrees(simulate(t), 14.0, math.sqrt(float(scale @ matrix @ scale)))
    log = terms(3, matrix=matrix, count=count)
    mean = t.value * count * math.exp(0.045)
    covariance = np.expm1(0.09 * matrix)
    agrees(simulate(log), float(mean.sum()), math.sqrt(float(mean @ covariance @ mean)))


def test_student_sum_is_student() -> None:
    t = terms(6, kind="absolute", levels=levels(0.2, 0.3, 0.1), df=3.0)
    scale = math.sqrt(float(t.spread @ t.correlation() @ t.spread))
    exact = stats.t(3, loc=21, scale=scale)
    q = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
    result = simulate(t, draws=2**16)
    assert (np.abs(result.quantile(q) - exact.ppf(q)) < 4.5 * result.standard_error(q)).all()


def test_a_million_rows() -> None:
    n = 1_000_000
    codes = np.arange(n) % 100
    level = Level("class", codes, 0.5)
    t = replace(terms(1), ids=np.arange(n).astype("U6"), classes=np.full(n, "c"), value=np.ones(n),
                count=np.ones(n, np.int64), bias=np.zeros(n), spread=np.full(n, 0.3),
                levels=(level,))  # fmt: skip
    result = simulate(t, draws=1024)
    mean = n * math.exp(0.045)
    between = math.expm1(0.5 * 0.09) / 100 + math.expm1(0.09) / n
    assert result.mean == pytest.approx(mean, rel=4 * math.sqrt(between / 1024))
    assert result.sd == pytest.approx(mean * math.sqrt(between), rel=4 / math.sqrt(2 * 1024))


# Graphs


def test_maximum_of_two_normals() -> None:
    two = terms(2, value=np.full(2, 10.0), spread=np.ones(2), kind="absolute")
    for method in ("sobol", "random"):
        result = simulate(two, lambda a: a.maximum([a.leaf("k0"), a.leaf("k1")]), method=method)
        agrees(result, 10 + 1 / math.sqrt(math.pi), math.sqrt(1 - 1 / math.pi))


def test_maximum_of_correlated_normals() -> None:
    level = Level("class", np.zeros(2, np.int64), 0.6)
    two = terms(2, value=np.full(2, 10.0), spread=np.ones(2), kind="absolute", levels=(level,))
    result = simulate(two, lambda a: a.block(["k0", "k1"]).max(axis=0))
    theta = math.sqrt(2 * 0.4)
    mean = 10 + theta / math.sqrt(2 * math.pi)
    agrees(result, mean, math.sqrt(1 - theta**2 / (2 * math.pi)))


def test_sum_graph_agrees_with_the_sum() -> None:
    t = terms(6, levels=levels(0.2, 0.3, 0.1), count=np.array([1, 2, 9, 30, 4, 1]))

    def total(a: SamplingAlgebra) -> Floats:
        return a.total([a.repeated(f"k{i}", int(c)) for i, c in enumerate(t.count)])

    graph, plain = simulate(t, total, draws=2**16), simulate(t, draws=2**16)
    q = [0.05, 0.5, 0.95]
    error = np.hypot(graph.standard_error(q), plain.standard_error(q))
    assert (np.abs(graph.quantile(q) - plain.quantile(q)) < 4.5 * error).all()


def test_operations() -> None:
    t = terms(2, spread=np.zeros(2))

    def work(a: SamplingAlgebra) -> Floats:
        x, y = a.leaf("k0"), a.leaf("k1")
        doubled = a.scaled(a.total([x, y, a.constant(4)]), 2.0)  # 14
        return a.apply(a.product(doubled, y), np.sqrt)  # sqrt(28)

    result = simulate(t, work, draws=512)
    np.testing.assert_allclose(result.draws, math.sqrt(28), rtol=1e-15)
    assert result.standard_error(0.5) == 0
    assert result.sd == pytest.approx(0, abs=1e-12)


def test_leaf_is_one_instance_and_block_draws_anew() -> None:
    def same(a: SamplingAlgebra) -> Floats:
        return np.asarray(a.leaf("k0") - a.leaf("k0"))

    def block(a: SamplingAlgebra) -> Floats:
        return np.asarray(np.diff(a.block(["k0", "k0"]), axis=0)[0])

    def repeated(a: SamplingAlgebra) -> Floats:
        return np.asarray(a.repeated("k0", 1) - a.repeated("k0", 1))

    t = terms(1, kind="absolute")
    assert not simulate(t, same, draws=512).draws.any()
    for anew in (block, repeated):
        assert simulate(t, anew).sd == pytest.approx(0.3 * math.sqrt(2), rel=0.03)


def test_terms_that_the_graph_does_not_use_change_nothing() -> None:
    few = terms(3, levels=(Level("class", np.array([0, 1, 1]), 0.5),))
    many = terms(5000, levels=(Level("class", np.array([7, 2, 2] + [5] * 4997), 0.5),))

    def work(a: SamplingAlgebra) -> Floats:
        return a.maximum([a.leaf("k0"), a.leaf("k1"), a.leaf("k2")])

    np.testing.assert_array_equal(simulate(few, work).draws, simulate(many, work).draws)


def test_what_is_observed_is_added_up() -> None:
    def work(a: SamplingAlgebra) -> Floats:
        x = a.block(["k0", "k1"])
        first = x[0] > x[1]
        a.observe("critical", np.array([first.sum(), (~first).sum()]))
        a.observe("critical", [0, 0])
        return np.asarray(x.max(axis=0))

    two = terms(2, value=np.full(2, 10.0))
    result = simulate(two, work, draws=20_000)
    critical = result.observed["critical"]
    assert critical.sum() == len(result)
    assert critical[0] / len(result) == pytest.approx(0.5, abs=0.02)
    assert simulate(two, lambda a: a.leaf("k0"), draws=512).observed == {}


def test_empty_block_and_a_certain_graph() -> None:
    def work(a: SamplingAlgebra) -> Floats:
        assert a.block([]).shape == (0, a.draws)
        return a.constant(3.0)

    assert simulate(terms(), work, draws=512).quantile(0.5) == 3.0


# Bytes, chunks and precision


@METHODS
def test_same_seed_same_bytes(method: Any) -> None:
    t = terms(6, levels=levels(0.2, 0.3, 0.1), df=5.0)

    def work(a: SamplingAlgebra) -> Floats:
        return np.asarray(a.block([f"k{i}" for i in range(6)]).max(axis=0))

    for evaluate in (None, work):
        first, again, other = (
            simulate(t, evaluate, draws=1000, method=method, seed=seed) for seed in (3, 3, 4)
        )
        assert first.draws.tobytes() == again.draws.tobytes()
        assert not (first.draws == other.draws).any()


@METHODS
def test_no_draw_comes_twice(method: Any) -> None:
    # A graph of 2,000 durations at a time needs several chunks.
    t = terms(2000)
    names = [f"k{i}" for i in range(2000)]
    options: dict[str, Any] = {"draws": 600, "precision": 1e-9, "max_draws": 4096}
    result = simulate(t, lambda a: a.block(names).sum(axis=0), method=method, **options)
    assert len(result) == 2432
    assert len(np.unique(result.draws)) == len(result)
    assert result.reached is False


@pytest.mark.parametrize("most", [4, 64, 4096])
def test_size_of_the_chunks_does_not_matter(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(montecarlo, "_MOST", most)
    monkeypatch.setattr(montecarlo, "_FEWEST", min(most, 256))
    t = terms(4, kind="relative", levels=(Level("class", np.array([0, 0, 1, 1]), 0.5),))
    sd = 0.3 * math.sqrt(0.5 * (9 + 49) + 0.5 * 30)
    agrees(simulate(t, draws=1024), 10.0, sd)
    agrees(simulate(t, lambda a: a.block(t.ids.tolist()).sum(axis=0), draws=1024), 10.0, sd)


def test_large_graphs_are_drawn_in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(montecarlo, "_AT_MOST", 2**12)
    seen = []

    def work(a: SamplingAlgebra) -> Floats:
        seen.append(a.draws)
        return np.asarray(a.block(["k0"] * 1000).sum(axis=0))

    simulate(terms(1), work, draws=512)
    assert set(seen) == {4}


def test_precision_is_reached_by_doubling() -> None:
    t = terms(40)
    first = simulate(t, draws=1024)
    assert first.precision > 0.005
    assert first.reached is None
    result = simulate(t, draws=1024, precision=0.005)
    assert result.reached is True
    assert result.precision <= 0.005
    assert len(result) in {1024 * 2**k for k in range(1, 10)}
    q = np.array([0.05, 0.5, 0.95])
    low, high = result.interval(q)
    assert ((high - low) / 2 / result.quantile(q)).max() == pytest.approx(result.precision)
    assert result.caveats == ()


def test_precision_that_is_not_reached_is_said() -> None:
    result = simulate(terms(40), draws=1024, precision=1e-4, max_draws=5000)
    assert result.reached is False
    assert len(result) == 4096
    (caveat,) = result.caveats
    assert caveat.code == "precision"
    assert "not reached: 4,096 draws" in caveat.message


def test_sobol_points_beat_random_ones() -> None:
    t = terms(6, levels=levels(0.4, 0.3, 0.3))
    exact = simulate(t, draws=2**18)
    error = {}
    for method in ("sobol", "random"):
        runs = [simulate(t, draws=4096, method=method, seed=s) for s in range(1, 25)]
        q = np.array([run.quantile([0.05, 0.5, 0.95]) for run in runs])
        error[method] = np.sqrt(np.mean((q - exact.quantile([0.05, 0.5, 0.95])) ** 2, axis=0))
    assert (error["sobol"][[0, 2]] < error["random"][[0, 2]] / 1.5).all()


# What the result says


def saturating(a: SamplingAlgebra) -> Floats:
    x = a.leaf("k0")
    return a.apply(x, lambda u: np.where(u < 1.2, 1 / np.maximum(1.2 - u, 1e-300), np.inf))


def test_saturation_is_counted_and_the_mean_is_not_defined() -> None:
    result = simulate(terms(1), saturating)
    expected = stats.norm.sf(math.log(1.2) / 0.3)
    assert result.probability_infinite == pytest.approx(expected, abs=0.01)
    assert math.isfinite(result.quantile(0.5))
    assert result.quantile(0.95) == math.inf
    assert result.standard_error(0.95) == 0
    assert result.standard_error(1 - expected) == math.inf
    with pytest.raises(NotDefinedError, match=r"the mean is not defined: 27\.\d+ % of the draws"):
        _ = result.mean
    with pytest.raises(NotDefinedError, match="mean"):
        _ = result.mean_standard_error
    with pytest.raises(NotDefinedError, match="standard deviation"):
        _ = result.sd
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["mean"] is plain["sd"] is plain["quantiles"][2]["value"] is None
    assert plain["caveats"][0]["code"] == "infinite"


@pytest.mark.parametrize(
    ("kind", "df", "codes"),
    [
        ("log-ratio", 30.0, ["no-mean"]),
        ("relative", 1.0, ["no-mean"]),
        ("relative", 2.0, ["no-sd"]),
        ("absolute", 2.5, []),
        ("log-ratio", math.inf, []),
    ],
)
def test_heavy_tails_have_no_mean(kind: Any, df: float, codes: list[str]) -> None:
    result = simulate(terms(kind=kind, df=df), draws=512)
    assert [caveat.code for caveat in result.caveats] == codes
    plain = result.to_dict()
    assert (plain["mean"] is None) == (codes == ["no-mean"])
    assert (plain["sd"] is None) == bool(codes)
    if codes:
        with pytest.raises(NotDefinedError, match="Student t tails"):
            _ = result.sd
    certain = terms(kind=kind, df=df, spread=np.zeros(4))
    assert simulate(certain, draws=512).mean == pytest.approx(10)


def test_t_errors_so_heavy_that_they_overflow() -> None:
    result = simulate(terms(1, df=0.3), draws=4096)
    assert result.probability_infinite > 0
    assert math.isfinite(result.quantile(0.5))
    many = simulate(terms(1, df=0.3, count=np.array([50])), draws=4096)
    assert not np.isnan(many.draws).any()


def test_result_as_plain_values() -> None:
    result = simulate(terms(), draws=1000, seed=7)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["n"] == len(result) == 1024
    assert plain["seed"] == 7
    assert plain["method"] == "sobol"
    assert plain["dimensions"] == 4
    assert plain["covered"] == pytest.approx(1)
    assert plain["unit"] == "ms"
    assert plain["mean"] == result.mean
    assert [row["q"] for row in plain["quantiles"]] == [0.05, 0.5, 0.95]
    assert plain["quantiles"][1]["value"] == result.quantile(0.5)
    assert plain["reached"] is None
    assert "draws" not in plain


def test_quantiles_come_in_the_shape_asked_for() -> None:
    result = simulate(terms(), draws=1000)
    assert isinstance(result.quantile(0.5), float)
    assert result.quantile([[0.1, 0.5], [0.6, 0.9]]).shape == (2, 2)
    assert result.interval([0.5])[0].shape == (1,)


# Bad input


@pytest.mark.parametrize("q", [0, 1, 0.001, 0.9999, -1, math.nan, "half", [0.5, 1.5]])
def test_quantiles_that_the_draws_cannot_tell(q: Any) -> None:
    result = simulate(terms(), draws=1024)
    with pytest.raises(InputError, match=r"between 0\.0098 and 0\.990234 for 1,024 draws"):
        result.quantile(q)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("draws", 511, "draws must be a whole number of at least 512, got 511"),
        ("draws", 1e4, "draws must be a whole number"),
        ("draws", True, "draws must be a whole number"),
        ("max_draws", 0, "max_draws must be"),
        ("seed", -1, "seed must be a whole number of at least 0"),
        ("seed", None, "seed must be"),
        ("method", "halton", "method must be one of sobol, random, got 'halton'"),
        ("precision", 0, "precision must be a fraction between 0 and 1"),
        ("precision", 1.0, "precision must be"),
        ("precision", True, "precision must be"),
        ("precision", "0.1", "precision must be"),
        ("precision", math.nan, "precision must be"),
    ],
)
def test_bad_options(option: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(terms(), **{option: value})


def test_no_terms() -> None:
    with pytest.raises(InputError, match="a simulation needs at least one term"):
        simulate(terms(0))


def test_unknown_names_get_the_nearest() -> None:
    t = terms(50)
    with pytest.raises(InputError, match=r"'k4711', but no term has this name\. Terms: k4[71]"):
        simulate(t, lambda a: a.leaf("k4711"))
    with pytest.raises(InputError, match="'gemm', but no term has this name"):
        simulate(t, lambda a: a.block(["k1", "gemm"])[0])


def test_a_graph_that_grows_is_refused() -> None:
    asked = []

    def work(a: SamplingAlgebra) -> Floats:
        asked.append(a.draws)
        return a.leaf(f"k{len(asked)}")

    with pytest.raises(InputError, match="'k2', but no term has this name"):
        simulate(terms(), work, draws=512)


def test_counts_must_be_positive() -> None:
    with pytest.raises(InputError, match="the count of 'k1' must be at least 1, got 0"):
        simulate(terms(), lambda a: a.repeated("k1", 0))


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [
        (lambda a: 3.0, "must return one time for each of"),
        (lambda a: np.ones(3), r"got an array of shape \(3,\)"),
        (lambda a: a.block(["k0", "k1"]), "must return one time"),
        (lambda a: np.array(["x"] * a.draws), "must return one time"),
        (lambda a: a.leaf("k0") * np.nan, r"returned nan in 512 of 512 draws"),
        (lambda a: a.maximum([]), "returned -inf in 512 of 512 draws"),
    ],
)
def test_a_graph_must_return_times(evaluate: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(terms(), evaluate, draws=512)


@pytest.mark.extras
@METHODS
def test_processes_change_no_draw(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("joblib")
    monkeypatch.setattr(montecarlo, "_MOST", 1024)

    def evaluate(algebra: SamplingAlgebra) -> Floats:
        times = algebra.maximum([algebra.leaf("k1"), algebra.repeated("k2", 3)])
        algebra.observe("long", (times > 10).sum())
        return times

    for graph in (None, evaluate):
        options: dict[str, Any] = {"draws": 4096, "precision": 1e-3, "max_draws": 8192}
        one, two = (
            simulate(terms(), graph, method=method, n_jobs=n_jobs, **options)
            for n_jobs in (None, 2)
        )
        assert len(one) == 8192
        assert one.draws.tobytes() == two.draws.tobytes()
        assert {k: int(v) for k, v in one.observed.items()} == {
            k: int(v) for k, v in two.observed.items()
        }
