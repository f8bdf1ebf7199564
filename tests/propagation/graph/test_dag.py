from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Constant,
    Dag,
    Kernel,
    Parallel,
    Quantity,
    Repeat,
    Scaled,
    Serial,
    read_node,
    time_at,
)


def random_dag(n: int, seed: int, streams: int = 0) -> Dag:
    rng = np.random.default_rng(seed)
    place = rng.permutation(n)  # the order of the ids is not that of the graph
    edges = []
    for i in range(1, n):
        before = rng.integers(0, i, rng.integers(0, 4))
        edges.extend((f"n{place[j]}", f"n{place[i]}") for j in before)
    durations = {f"n{i}": f"k{i}" for i in range(n)}
    if streams:  # in an order that agrees with the edges
        durations = {f"n{i}": f"k{i}" for i in place}
        chosen = {f"n{i}": str(rng.integers(streams)) for i in place[: n // 2]}
        return Dag(durations, edges, chosen)
    return Dag(durations, edges)


def brute_force(dag: Dag, durations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finish times and critical counts, draw by draw, by following definitions."""
    ids = list(dag.durations)
    before: dict[str, list[str]] = {event: [] for event in ids}
    for a, b in dag.edges:
        before[b].append(a)
    latest: dict[str, str] = {}
    for event in ids:
        if event in dag.streams:
            stream = dag.streams[event]
            if stream in latest:
                before[event].append(latest[stream])
            latest[stream] = event
    makespan, counts = [], np.zeros(len(ids), dtype=int)
    for column in durations.T:
        takes = dict(zip(ids, column, strict=True))
        finish: dict[str, float] = {}
        while len(finish) < len(ids):
            for event in ids:
                if event not in finish and all(b in finish for b in before[event]):
                    start = max((finish[b] for b in before[event]), default=0.0)
                    finish[event] = start + takes[event]
        makespan.append(max(finish.values()))
        event = max(ids, key=finish.__getitem__)
        while True:
            counts[ids.index(event)] += 1
            if not before[event]:
                break
            event = max(before[event], key=finish.__getitem__)
    return np.array(makespan), counts


@pytest.mark.parametrize("streams", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_finish_times_and_critical_paths(seed: int, streams: int) -> None:
    dag = random_dag(30, seed, streams)
    durations = np.random.default_rng(seed).lognormal(size=(30, 50))
    makespan, counts = brute_force(dag, durations)
    np.testing.assert_allclose(dag.finish_times(durations), makespan, rtol=1e-12)
    times, found = dag.critical_paths(durations)
    np.testing.assert_allclose(times, makespan, rtol=1e-12)
    np.testing.assert_array_equal(found, counts)
    np.testing.assert_array_equal(dag.critical_counts(durations), counts)


def test_draws_beyond_one_chunk_and_counts_beyond_one_flush(monkeypatch) -> None:
    from errcomp.propagation.graph import schedule

    dag = random_dag(40, 7)
    durations = np.random.default_rng(0).lognormal(size=(40, 5000))
    makespan, counts = dag.critical_paths(durations)
    monkeypatch.setattr(schedule, "_DRAWS", 100_000)
    monkeypatch.setattr(schedule, "_COUNTED", 10)
    again, counts_again = dag.critical_paths(durations)
    np.testing.assert_array_equal(makespan, again)
    np.testing.assert_array_equal(counts, counts_again)
    np.testing.assert_array_equal(makespan, dag.finish_times(durations))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("draws", [300, 1024, 1025])
def test_passes_by_level_and_by_node_agree(monkeypatch, draws: int, seed: int) -> None:
    from errcomp.propagation.graph import schedule

    dag = random_dag(200, seed)
    durations = np.random.default_rng(seed).lognormal(size=(200, draws))
    durations[:, :50] = 1.0  # many finish together
    monkeypatch.setattr(schedule, "_WIDE", 0)
    found = []
    for short in (0, 1024, 10_000):
        monkeypatch.setattr(schedule, "_SHORT", short)
        found.append((dag.finish_times(durations), *dag.critical_paths(durations)))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_chunks_write_into_the_array_of_the_chunk_before() -> None:
    from errcomp.propagation.montecarlo import simulate
    from errcomp.propagation.terms import Terms

    names = np.array([f"k{i}" for i in range(60)])
    value, blocks = np.ones(60), []

    def evaluate(algebra):
        block = algebra.block(names.tolist())
        blocks.append((block.shape, block.ctypes.data))
        time = block.sum(axis=0)
        algebra.reuse(block)
        return time

    terms = Terms(names, names, value, value.astype(int), 0 * value, 0.2 * value)
    found = simulate(terms, evaluate, draws=16_384)
    assert len(blocks) > 3
    assert len(set(blocks[1:])) == 1
    plain = simulate(terms, lambda on: on.block(names.tolist()).sum(axis=0), draws=16_384)
    assert (found.mean, found.sd) == (plain.mean, plain.sd)


def test_the_input_is_not_written_to() -> None:
    dag = random_dag(30, 1)
    durations = np.random.default_rng(0).lognormal(size=(30, 20))
    durations.setflags(write=False)
    before = durations.copy()
    dag.finish_times(durations)
    dag.critical_counts(durations)
    np.testing.assert_array_equal(durations, before)


def test_of_several_that_finish_together_the_first_is_critical() -> None:
    dag = Dag({"a": 1.0, "b": 1.0, "c": 1.0}, edges=[("b", "c"), ("a", "c")])
    np.testing.assert_array_equal(dag.critical_counts(np.ones((3, 4))), [0, 4, 4])
    ends = Dag({"a": 1.0, "b": 1.0})
    np.testing.assert_array_equal(ends.critical_counts(np.ones((2, 4))), [4, 0])


def test_infinite_durations_are_infinite_and_critical() -> None:
    dag = Dag({"a": 1.0, "b": 1.0, "c": 1.0}, edges=[("a", "c"), ("b", "c")])
    durations = [[1.0], [np.inf], [1.0]]
    assert dag.finish_times(durations)[0] == np.inf
    np.testing.assert_array_equal(dag.critical_counts(durations), [0, 1, 1])


def test_a_join_of_more_than_one_byte() -> None:
    n = 300
    durations = {f"n{i}": 1.0 for i in range(n)}
    dag = Dag({**durations, "end": 1.0}, edges=[(f"n{i}", "end") for i in range(n)])
    block = np.ones((n + 1, 2))
    block[280, 0], block[10, 1] = 3.0, 2.0
    times, counts = dag.critical_paths(block)
    np.testing.assert_array_equal(times, [4.0, 3.0])
    assert np.flatnonzero(counts).tolist() == [10, 280, n]


def test_streams_run_in_the_order_given() -> None:
    streams = {"compute": [("a", 2.0), ("b", 3.0)], "copy": [("c", 1.0), ("d", 4.0)]}
    dag = Dag.from_streams(streams, dependencies=[("a", "d")])
    assert float(time_at(dag)) == 6.0
    assert dag.streams == {"a": "compute", "b": "compute", "c": "copy", "d": "copy"}
    assert float(time_at(Dag.from_streams(streams))) == 5.0
    explicit = Dag(dag.durations, edges=[("a", "b"), ("c", "d"), ("a", "d")])
    assert float(time_at(explicit)) == 6.0


def test_edges_given_twice_are_one() -> None:
    dag = Dag({"a": 1.0, "b": 2.0}, edges=[("a", "b"), ("a", "b")], streams={"a": "0", "b": "0"})
    assert float(time_at(dag)) == 3.0


def nested() -> Dag:
    alpha = Quantity("alpha", 1.0, 0.3)
    return Dag(
        {
            "a": "k",
            "b": Repeat(Kernel("k"), 3),
            "c": Parallel([Kernel("l"), alpha]),
            "d": 0.5,
            "e": Scaled(alpha, 2.0),
        },
        edges=[("a", "c"), ("b", "c"), ("c", "d"), ("b", "e")],
    )


def test_leaves_of_a_dag() -> None:
    assert nested().leaves() == ("k", "l", "alpha")
    assert nested().multiplicity() == {"k": 4, "l": 1, "alpha": 2}
    assert Repeat(nested(), 2).multiplicity()["k"] == 8


def test_all_engines_see_the_same_graph(draws, block_draws) -> None:
    leaves = {"k": (1.0, 0.0), "l": (5.0, 0.0), "alpha": (7.0, 0.0)}
    expected = 17.0  # b: 3, e: 14
    generic = nested().evaluate(draws(leaves, 4))
    at_once = nested().evaluate(block_draws(leaves, 4))
    np.testing.assert_array_equal(generic, expected)
    np.testing.assert_array_equal(at_once, expected)
    assert float(time_at(nested(), {"k": 1.0, "l": 5.0, "alpha": 7.0})) == expected


def test_draws_at_once_and_event_by_event_have_one_law(draws, block_draws) -> None:
    dag = random_dag(25, 3)
    leaves = {f"k{i}": (1.0, 0.4) for i in range(25)}
    x = dag.evaluate(draws(leaves, 20_000, seed=1))
    y = dag.evaluate(block_draws(leaves, 20_000, seed=2))
    assert x.mean() == pytest.approx(y.mean(), abs=4 * x.std() / 100)
    assert x.std() == pytest.approx(y.std(), rel=0.05)


def test_kernels_only_are_drawn_in_one_block(block_draws) -> None:
    engine = block_draws({"k": (1.0, 0.1)}, 10)
    Dag({"a": "k", "b": "k"}).evaluate(engine)
    assert engine.asked[0] == "block"
    block = Dag({"a": "k", "b": "k"}).duration_block(engine)
    assert block.shape == (2, 10)
    assert (block[0] != block[1]).all()  # instances of their own


def test_a_quantity_is_one_in_a_dag_too(block_draws) -> None:
    engine = block_draws({"alpha": (1.0, 0.5)}, 10)
    alpha = Quantity("alpha", 1.0, 0.5)
    block = Dag({"a": alpha, "b": Scaled(alpha, 2.0)}).duration_block(engine)
    np.testing.assert_allclose(block[1], 2 * block[0])
    graph = Serial([alpha, Dag({"a": alpha, "b": 1.0}, [("a", "b")])])
    both = graph.evaluate(block_draws({"alpha": (1.0, 0.5)}, 10))
    np.testing.assert_allclose(both, 2 * block[0] + 1)


def test_results_no_longer_needed_are_dropped() -> None:
    class Counting:
        alive = most = 0

        def __init__(self) -> None:
            Counting.alive += 1
            Counting.most = max(Counting.most, Counting.alive)

        def __del__(self) -> None:
            Counting.alive -= 1

    class Engine:
        def repeated(self, name, count):
            return Counting()

        def total(self, parts):
            return Counting()

        def maximum(self, parts):
            return Counting()

    n = 500
    durations = {f"n{i}": "k" for i in range(n)}
    chain = Dag(durations, edges=[(f"n{i}", f"n{i + 1}") for i in range(n - 1)])
    chain.evaluate(Engine())
    assert Counting.most < 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dag({}), "Dag.durations: a graph needs at least one event"),
        (lambda: Dag([("a", 1.0), ("b", 1.0), ("a", 2.0)]), "several events are named 'a'. Give"),
        (lambda: Dag(["a"]), "Dag.durations: must be a pair that begins with a name, got 'a'"),
        (lambda: Dag({"a": -1.0}), r"Dag.durations\['a'\]: must be a finite number of at least 0"),
        (lambda: Dag({"a": ""}), r"Dag.durations\['a'\]: must be a name"),
        (lambda: Dag({"": 1.0}), "Dag.durations: must be a name"),
        (lambda: Dag({3: 1.0}), r"Dag.durations: must be a pair that begins with a name, got \(3"),
        (lambda: Dag({"a": 1.0}, ["ab"]), "Dag.edges: must be a pair that begins with a name"),
        (lambda: Dag({"a": 1.0}, [("a", 3)]), r"Dag.edges: must be a pair of names, got \('a', 3"),
        (
            lambda: Dag({"a": 1.0, "b1": 1.0}, [("a", "b"), ("c", "a"), ("d", "a"), ("e", "a")]),
            r"Dag.edges: no event is named 'b', 'c', 'd' \(and 1 more\). Events: a, b1",
        ),
        (lambda: Dag({"a": 1.0}, [("a", "a")]), "wait for each other: 'a' -> 'a'. Remove one"),
        (lambda: Dag({"a": 1.0}, streams={"b": "0"}), "Dag.streams: no event is named 'b'"),
        (
            lambda: Dag({"a": 1.0}, streams=[("a", "0")]),
            "Dag.streams: must be a mapping whose keys are event ids",
        ),
        (lambda: Dag({"a": 1.0}, streams={"a": 0}), "Dag.streams: must be text, got 0"),
        (lambda: Dag({"a": 1.0}, chakra={"b": 1}), "Dag.chakra: no event is named 'b'"),
        (lambda: Dag({"a": 1.0}, chakra={"a": -1}), "Dag.chakra: must be a whole number"),
        (lambda: Dag.from_streams([("a", 1.0)]), "Dag.streams: must map each stream to its events"),
        (lambda: Dag.from_streams({"0": ["a"]}), "stream '0': must be a pair that begins with a"),
        (
            lambda: Dag.from_streams({"0": [("a", 1.0)], "1": [("a", 1.0)]}),
            "several events are named 'a'",
        ),
        (
            lambda: Dag.from_streams({"0": [("a", 1.0), ("b", 1.0)]}, [("b", "a")]),
            "events wait for each other: 'a' -> 'b' -> 'a'",
        ),
    ],
)
def test_what_is_wrong_is_named(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_long_circle_names_its_first_events() -> None:
    ids = [f"e{i}" for i in range(10)]
    edges = [(ids[i], ids[(i + 1) % 7]) for i in range(7)] + [("e7", "e8"), ("e6", "e9")]
    with pytest.raises(InputError, match=r"'e0' -> 'e1' -> 'e2' -> … \(4 more\) -> 'e0'. Remove"):
        Dag(dict.fromkeys(ids, 1.0), edges)


@pytest.mark.parametrize("durations", [[1.0, 2.0], [[1.0], [2.0], [3.0]], 1.0])
def test_blocks_of_another_shape(durations) -> None:
    dag = Dag({"a": 1.0, "b": 1.0})
    with pytest.raises(InputError, match=r"must have the shape \(2 events, draws\), got"):
        dag.finish_times(durations)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"nodes": []}, "graph: Dag.durations: a graph needs at least one event"),
        ({"nodes": {}}, "graph.nodes: must be a list, got {}"),
        ({"nodes": [{"id": "a", "duration": 1}], "edges": 3}, "graph.edges: must be a list"),
        ({"nodes": [{"id": "a"}]}, r"graph.nodes\[0\]: needs exactly one of kernel, duration, gr"),
        (
            {"nodes": [{"id": "a", "duration": 1, "kernel": "k"}]},
            r"graph.nodes\[0\]: needs exactly one of kernel, .* got 'kernel', 'duration'",
        ),
        ({"nodes": [{"duration": 1}]}, r"graph.nodes\[0\]: missing key 'id'"),
        ({"nodes": [3]}, r"graph.nodes\[0\]: must be an object, got 3"),
        ({"nodes": [{"id": 3, "duration": 1}]}, r"graph.nodes\[0\].id: must be text, got 3"),
        ({"nodes": [{"id": "a", "duration": -1}]}, r"graph.nodes\[0\].duration: must be a finite"),
        (
            {"nodes": [{"id": "a", "graph": {"node": "constant"}}]},
            r"graph.nodes\[0\].graph: missing key 'value'",
        ),
        (
            {"nodes": [{"id": "a", "duration": 1, "stream": 0}]},
            r"graph.nodes\[0\].stream: must be text",
        ),
        (
            {"nodes": [{"id": "a", "duration": 1}], "edges": [["a", "b", "c"]]},
            r"graph.edges\[0\]: must be a pair",
        ),
        (
            {"nodes": [{"id": "a", "duration": 1}], "edges": [["a", "b"]]},
            "graph: Dag.edges: no event is named 'b'. Events: a",
        ),
        ({"nodes": [{"id": "a", "duration": 1}], "streams": {}}, "graph: unknown key 'streams'"),
    ],
)
def test_documents_that_are_wrong(document, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_node({"node": "dag", **document})


def test_a_dag_as_a_document() -> None:
    document = {
        "node": "dag",
        "nodes": [
            {"id": "n1", "kernel": "k1", "stream": "0"},
            {"id": "n2", "kernel": "k1", "stream": "0", "chakra_node": 12},
            {"id": "n3", "graph": {"node": "constant", "value": 2.0}},
        ],
        "edges": [["n1", "n3"]],
    }
    dag = read_node(document)
    assert dag.to_dict() == document
    assert dag == Dag(
        {"n1": "k1", "n2": "k1", "n3": Constant(2.0)},
        [("n1", "n3")],
        {"n1": "0", "n2": "0"},
        {"n2": 12},
    )


def layered(n: int, width: int, seed: int = 0) -> Dag:
    rng = np.random.default_rng(seed)
    edges = [
        (f"n{(i // width - 1) * width + j}", f"n{i}")
        for i in range(width, n)
        for j in rng.choice(width, 2, replace=False)
    ]
    return Dag({f"n{i}": "k" for i in range(n)}, edges)


def test_memory_is_for_rows_in_use_only() -> None:
    dag = layered(2000, 20)
    durations = np.random.default_rng(0).random((2000, 3000))
    tracemalloc.start()
    dag.finish_times(durations)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * durations.nbytes


def test_a_thousand_nodes_are_quick() -> None:
    dag = layered(1002, 20)
    durations = np.random.default_rng(0).random((1002, 10_000))
    took = []
    for _ in range(5):
        begun = time.perf_counter()
        dag.finish_times(durations)
        took.append(time.perf_counter() - begun)
    assert min(took) < 0.1


def test_long_chains_need_no_recursion() -> None:
    n = 5 * sys.getrecursionlimit()
    dag = Dag.from_streams({"0": [(f"n{i}", 1.0) for i in range(n)]})
    assert dag.finish_times(np.ones((n, 1)))[0] == n
    assert dag.critical_counts(np.ones((n, 1))).tolist() == [1] * n
    assert float(time_at(dag)) == n
