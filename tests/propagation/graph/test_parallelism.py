from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Constant,
    Dag,
    Kernel,
    Overlap,
    Parallel,
    Pipeline,
    Quantity,
    Replicas,
    Serial,
    quantities,
    time_at,
)
from errcomp.propagation.graph.parallelism import lognormal_like_slowest


def test_parallel_is_the_longest_branch_of_each_draw() -> None:
    graph = Parallel([Kernel("a"), Kernel("b"), Constant(2.5)])
    times = {"a": [1.0, 5.0, 2.0], "b": [3.0, 4.0, 1.0]}
    np.testing.assert_array_equal(time_at(graph, times), [3.0, 5.0, 2.5])


def fluid(a: float, b: float, contention: float, step: float = 1e-4) -> float:
    """Progress of both in small steps: slower while both have work left."""
    time, left = 0.0, [a, b]
    while max(left) > 1e-12:
        rate = 1 / (1 + contention) if min(left) > 1e-12 else 1.0
        for i in (0, 1):
            left[i] = max(0.0, left[i] - rate * step)
        time += step
    return time


@pytest.mark.parametrize("contention", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize(("a", "b"), [(1.0, 0.4), (0.3, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_overlap_is_what_two_fluids_do(a: float, b: float, contention: float) -> None:
    expected = max(a, b) + contention * min(a, b)
    node = Overlap(Kernel("a"), Kernel("b"), contention)
    assert float(time_at(node, {"a": a, "b": b})) == pytest.approx(expected, rel=1e-12)
    assert fluid(a, b, contention) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("value", "expected"), [(0.25, 11.0), (1.7, 14.0)])
def test_an_uncertain_contention_counts_up_to_one(value: float, expected: float) -> None:
    node = Overlap(Kernel("a"), Constant(4.0), Quantity("contention", value, 0.3))
    assert float(time_at(node, {"a": 10.0})) == pytest.approx(expected)
    assert node.leaves() == ("a", "contention")


def test_an_uncertain_contention_does_not_count_below_zero() -> None:
    node = Overlap(Kernel("a"), Constant(4.0), Quantity("c", 0.1, 0.3, kind="absolute"))
    assert float(time_at(node, {"a": 10.0, "c": -0.5})) == 10.0


@cache
def slowest_and_common(n: int, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    own = np.full(draws, -np.inf)
    for _ in range(n):
        np.maximum(own, rng.standard_normal(draws), out=own)
    return own, rng.standard_normal(draws)


def brute_force(n: int, spread: float, correlation: float, draws: int, seed: int) -> np.ndarray:
    own, common = slowest_and_common(n, draws, seed)
    return np.exp(spread * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own))


@pytest.mark.parametrize("correlation", [0.0, 0.3])
@pytest.mark.parametrize("n", [2, 8, 64, pytest.param(1024, marks=pytest.mark.slow)])
def test_replicas_are_the_slowest_of_so_many_ranks(draws, n: int, correlation: float) -> None:
    spread, size = 0.2, 20_000
    node = Replicas(Constant(1.0), n, Quantity("j", 1.0, spread), correlation)
    leaves = {q.name: (q.value, q.spread) for q in quantities(node)}
    assert len(leaves) == (1 if correlation == 0 else 2)
    x = node.evaluate(draws(leaves, size, seed=n))
    y = brute_force(n, spread, correlation, size, seed=1)
    # Both are samples: the test is exact whatever the law.
    assert stats.ks_2samp(x, y).pvalue > 1e-3
    error = math.hypot(x.std(), y.std()) / math.sqrt(size)
    assert abs(x.mean() - y.mean()) < 4 * error
    assert x.std() == pytest.approx(y.std(), rel=0.05)


@pytest.mark.parametrize("n", [2, 8, 64, pytest.param(1024, marks=pytest.mark.slow)])
def test_the_lognormal_quantity_has_mean_and_variance_of_the_slowest(n: int) -> None:
    value, spread = lognormal_like_slowest(n, 0.2)
    x = np.concatenate([brute_force(n, 0.2, 0.0, 20_000, seed) for seed in range(2)])
    mean = value * math.exp(spread**2 / 2)
    sd = mean * math.sqrt(math.expm1(spread**2))
    assert x.mean() == pytest.approx(mean, abs=4 * sd / math.sqrt(len(x)))
    assert x.std() == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize(
    ("n", "expected"),
    # Expected largest of n standard normals: 1/sqrt(pi), 3/(2 sqrt(pi)); then published tables
    # (Harter 1961, Biometrika 48).
    [(1, 0.0), (2, 0.5641896), (3, 0.8462844), (10, 1.5387527), (100, 2.5075936)],
)
def test_small_jitters_have_the_mean_of_order_statistics(n: int, expected: float) -> None:
    value, spread = lognormal_like_slowest(n, 1e-4)
    assert math.log(value) / 1e-4 == pytest.approx(expected, abs=2e-5)
    if n == 2:
        assert spread / 1e-4 == pytest.approx(math.sqrt(1 - 1 / math.pi), rel=1e-4)


def test_what_replicas_need() -> None:
    jitter = Quantity("j", 1.0, 0.1)
    assert Replicas(Kernel("a"), 64, jitter).leaves() == ("a", "j: slowest of 64")
    assert Replicas(Kernel("a"), 64, jitter, 1.0).leaves() == ("a", "j")
    assert Replicas(Kernel("a"), 64, jitter, 0.5).leaves() == ("a", "j", "j: slowest of 64")
    assert Replicas(Kernel("a"), 1, jitter).leaves() == ("a", "j")
    assert Replicas(Kernel("a"), 8, Quantity("j", 1.0)).leaves() == ("a",)
    slower = Replicas(Kernel("a"), 8, Quantity("j", 1.1))
    assert float(time_at(slower, {"a": 10.0})) == pytest.approx(11.0)


def test_one_rank_and_full_correlation_are_the_jitter_itself() -> None:
    jitter = Quantity("j", 1.0, 0.1, bias=0.05)
    for node in (Replicas(Kernel("a"), 1, jitter), Replicas(Kernel("a"), 99, jitter, 1.0)):
        assert quantities(node) == (jitter,)
        assert float(time_at(node, {"a": 2.0, "j": 1.3})) == pytest.approx(2.6)


def test_the_slowest_is_an_increasing_function_down_to_zero() -> None:
    node = Replicas(Constant(1.0), 16, Quantity("j", 1.0, 0.1))
    times = time_at(node, {"j: slowest of 16": [0.0, 0.9, 1.0, 1.2, 1.5]})
    assert times[0] == 0.0
    assert (np.diff(times) > 0).all()


@pytest.mark.parametrize("microbatches", [1, 2, 8])
@pytest.mark.parametrize("times", [[2.0], [1.0, 3.0, 2.0], [5.0, 1.0, 1.0, 4.0]])
def test_pipeline_is_the_makespan_of_the_schedule(times: list[float], microbatches: int) -> None:
    stages = range(len(times))
    streams = {f"stage {s}": [(f"{s},{m}", times[s]) for m in range(microbatches)] for s in stages}
    passed_on = [(f"{s},{m}", f"{s + 1},{m}") for s in stages[:-1] for m in range(microbatches)]
    expected = float(time_at(Dag.from_streams(streams, passed_on)))
    node = Pipeline([Constant(t) for t in times], microbatches)
    assert float(time_at(node)) == pytest.approx(expected)


def gpipe(forward: list[float], backward: list[float], m: int) -> float:
    """All forward passes, then all backward passes in reverse, stage by stage."""
    p = len(forward)
    streams = {
        str(s): [
            *((f"F{s},{i}", forward[s]) for i in range(m)),
            *((f"B{s},{i}", backward[s]) for i in reversed(range(m))),
        ]
        for s in range(p)
    }
    passed = [(f"F{s},{i}", f"F{s + 1},{i}") for s in range(p - 1) for i in range(m)]
    back = [(f"B{s + 1},{i}", f"B{s},{i}") for s in range(p - 1) for i in range(m)]
    return float(time_at(Dag.from_streams(streams, passed + back)))


def one_forward_one_backward(forward: list[float], backward: list[float], m: int) -> float:
    """1F1B: stage s runs p - s forward passes ahead, then one of each in turn."""
    p = len(forward)
    streams = {}
    for s in range(p):
        ahead = min(p - s, m)
        events = [("F", i) for i in range(ahead)]
        for i in range(m):
            events.append(("B", i))
            if ahead + i < m:
                events.append(("F", ahead + i))
        takes = {"F": forward[s], "B": backward[s]}
        streams[str(s)] = [(f"{what}{s},{i}", takes[what]) for what, i in events]
    passed = [(f"F{s},{i}", f"F{s + 1},{i}") for s in range(p - 1) for i in range(m)]
    back = [(f"B{s + 1},{i}", f"B{s},{i}") for s in range(p - 1) for i in range(m)]
    turn = [(f"F{p - 1},{i}", f"B{p - 1},{i}") for i in range(m)]
    return float(time_at(Dag.from_streams(streams, passed + back + turn)))


def formula(forward: list[float], backward: list[float], m: int) -> float:
    stages = [Constant(f + b) for f, b in zip(forward, backward, strict=True)]
    return float(time_at(Pipeline(stages, m)))


def test_training_schedules_take_the_time_of_the_formula() -> None:
    equal = ([1.0] * 4, [2.0] * 4, 8)
    assert gpipe(*equal) == pytest.approx(formula(*equal))
    assert one_forward_one_backward(*equal) == pytest.approx(formula(*equal))
    one_is_slowest = ([1.0, 1.5, 1.2], [2.0, 3.0, 2.0], 6)
    assert gpipe(*one_is_slowest) == pytest.approx(formula(*one_is_slowest))
    differ = ([1.0, 3.0, 1.0], [5.0, 1.0, 1.0], 6)
    assert gpipe(*differ) > 1.1 * formula(*differ)


@pytest.mark.parametrize(
    ("spread", "repeats", "worst"), [(0.1, 1, 0.09), (0.1, 4, 0.03), (0.3, 1, 0.2), (0.3, 4, 0.07)]
)
def test_unequal_stages_cost_one_forward_one_backward_less(spread, repeats, worst) -> None:
    rng = np.random.default_rng(0)
    errors = []
    for p in (2, 3, 4, 8):
        for _ in range(10):
            forward = rng.uniform(1 - spread, 1 + spread, p)
            case = (forward.tolist(), (2 * forward).tolist(), repeats * p)
            errors.append(formula(*case) / one_forward_one_backward(*case) - 1)
    assert min(errors) >= -1e-9
    assert max(errors) <= worst
    assert np.mean(errors) <= spread / 6


@pytest.mark.parametrize(("p", "m"), [(4, 8), (8, 8), (1, 5), (16, 64)])
def test_bubble_of_equal_stages(p: int, m: int) -> None:
    total = float(time_at(Pipeline([Constant(1.0)] * p, m)))
    assert 1 - m / total == pytest.approx((p - 1) / (m + p - 1))


def test_a_pipeline_repeats_its_stages() -> None:
    graph = Serial([Pipeline([Kernel("a"), Kernel("b", 2)], 8), Kernel("a")])
    assert graph.multiplicity() == {"a": 9, "b": 16}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: Parallel([]), "Parallel.children: must be a list of at least one node"),
        (lambda a: Overlap(a, a, 1.5), "Overlap.contention: must be a finite number of at least 0"),
        (lambda a: Overlap(a, a, -0.1), "Overlap.contention: must be"),
        (lambda a: Overlap(a, "b"), "Overlap.communication: must be a node"),
        (lambda a: Replicas(a, 0, Quantity("j", 1.0)), "Replicas.n: must be a whole number"),
        (lambda a: Replicas(a, 4, 0.03), "Replicas.jitter: must be a Quantity such as"),
        (
            lambda a: Replicas(a, 4, Quantity("j", 1.0, 0.1, kind="relative")),
            "Replicas.jitter: must have a log-ratio error",
        ),
        (
            lambda a: Replicas(a, 4, Quantity("j", 1.0, 4.0)),
            "spread of at most 3 .*, got a log-ratio error",
        ),
        (
            lambda a: Replicas(a, 4, Quantity("j", 1.0, 0.1), correlation=1.2),
            "Replicas.correlation: must be a finite number of at least 0 and at most 1, got 1.2",
        ),
        (lambda a: Pipeline([], 4), "Pipeline.stages: must be a list of at least one"),
        (lambda a: Pipeline([a], 0), "Pipeline.microbatches: must be a whole number"),
    ],
)
def test_what_is_wrong_is_named(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(Kernel("a"))
