"""What holds for any execution graph."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import hypothesis
import numpy as np
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Collective,
    Constant,
    Dag,
    Kernel,
    Overlap,
    Parallel,
    Pipeline,
    Quantity,
    Queue,
    Repeat,
    Replicas,
    Scaled,
    Serial,
    quantities,
    read_node,
    time_at,
    walk,
)

KERNELS = ("a", "b", "c")
kernels = st.builds(Kernel, st.sampled_from(KERNELS), st.integers(1, 3))
quantity = st.builds(
    lambda n, spread: Quantity(n, {"q": 1.5, "r": 0.5}[n], {"q": 0.1, "r": 0.3}[n]),
    st.sampled_from(["q", "r"]),
    st.none(),
)
leaves = st.one_of(kernels, st.builds(Constant, st.floats(0, 10)), quantity)
shares = st.one_of(st.floats(0, 1), st.just(Quantity("contention", 0.3, 0.1)))


def larger(nodes):
    several = st.lists(nodes, min_size=1, max_size=3)
    return st.one_of(
        st.builds(Serial, several),
        st.builds(Parallel, several),
        st.builds(Repeat, nodes, st.integers(1, 4)),
        st.builds(Scaled, nodes, st.floats(0.1, 3)),
        st.builds(Overlap, nodes, nodes, shares),
        st.builds(
            Replicas,
            nodes,
            st.integers(1, 64),
            st.just(Quantity("jitter", 1.0, 0.05)),
            st.just(0.25),
        ),
        st.builds(Pipeline, several, st.integers(1, 8)),
        st.builds(dag, several, st.integers(0, 2**9 - 1)),
    )


def dag(nodes, bits):
    ids = [f"n{i}" for i in range(len(nodes))]
    pairs = [(i, j) for j in range(len(ids)) for i in range(j)]
    edges = [(ids[i], ids[j]) for k, (i, j) in enumerate(pairs) if bits >> k & 1]
    return Dag(dict(zip(ids, nodes, strict=True)), edges)


graphs = st.recursive(leaves, larger, max_leaves=8)
times = st.fixed_dictionaries({name: st.floats(0.01, 100) for name in KERNELS})


def at(graph, values, **more):
    """Time of the graph; two Replicas of different n may not share a jitter's name."""
    try:
        return float(time_at(graph, {**values, **more}))
    except InputError as error:
        hypothesis.assume("two quantities" not in str(error))
        raise


@hypothesis.given(graph=graphs)
def test_documents_give_graphs_back(graph):
    again = read_node(json.loads(json.dumps(graph.to_dict())))
    assert again == graph
    assert again.multiplicity() == graph.multiplicity()
    assert again.depth == graph.depth


@hypothesis.given(graph=graphs, values=times, name=st.sampled_from(KERNELS), by=st.floats(1, 3))
def test_no_kernel_that_takes_longer_makes_the_whole_shorter(graph, values, name, by):
    before = at(graph, values)
    after = at(graph, {**values, name: by * values[name]})
    assert after >= before * (1 - 1e-12)
    if name not in graph.leaves():
        assert after == before


# Constants and quantities that are times would need the other unit too.
@hypothesis.given(graph=st.recursive(kernels, larger, max_leaves=8), values=times)
def test_the_unit_of_time_does_not_matter(graph, values):
    once = at(graph, values)
    thousand = at(graph, {name: 1000 * t for name, t in values.items()})
    assert math.isclose(thousand, 1000 * once, rel_tol=1e-9)


@hypothesis.given(graph=graphs, values=times)
def test_between_the_longest_part_and_all_parts_in_sequence(graph, values):
    """The time is at most that of every instance in sequence, slowed by every jitter."""
    hypothesis.assume(not any(isinstance(n, Scaled | Replicas) for n in walk(graph)))
    total = 0.0
    stack = [(graph, 1)]
    while stack:
        node, often = stack.pop()
        if isinstance(node, Constant):
            total += often * node.value
        elif isinstance(node, Kernel):
            total += often * node.count * values[node.name]
        elif isinstance(node, Quantity):
            total += often * node.value * (node.name != "contention")
        elif isinstance(node, Dag):
            stack.extend((child, often) for child in node.children)
        else:
            stack.extend((child, often * node.repetitions) for child in node.children)
    assert at(graph, values) <= total * (1 + 1e-9)


@hypothesis.given(graph=graphs, values=times, part=st.floats(0.1, 0.9))
def test_splitting_a_kernel_in_two_changes_nothing(graph, values, part):
    def split(document):
        if isinstance(document, list):
            return [split(item) for item in document]
        if not isinstance(document, dict):
            return document
        if document.get("node") == "kernel" and document["name"] == "a":
            halves = [{**document, "name": "a1"}, {**document, "name": "a2"}]
            return {"node": "serial", "children": halves}
        return {key: split(value) for key, value in document.items()}

    other = read_node(split(graph.to_dict()))
    halves = {"a1": part * values["a"], "a2": (1 - part) * values["a"]}
    assert math.isclose(at(graph, values), at(other, values, **halves), rel_tol=1e-9)


@hypothesis.given(graph=graphs)
def test_what_is_used_is_named(graph):
    try:
        parameters = {q.name for q in quantities(graph)}
    except InputError:
        hypothesis.reject()
    assert parameters <= set(graph.leaves())
    assert set(graph.leaves()) - parameters <= set(KERNELS)
    assert all(count >= 1 for count in graph.multiplicity().values())


edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


@hypothesis.given(edges=edges, seed=st.integers(0, 100))
def test_any_edges_are_a_graph_or_a_named_circle(edges, seed):
    ids = [f"e{i}" for i in range(10)]
    named = [(ids[a], ids[b]) for a, b in edges]
    try:
        graph = Dag(dict.fromkeys(ids, "k"), named)
    except InputError as error:
        circle = str(error).split("other: ")[1].split(". Remove")[0].split(" -> ")
        steps = [part.strip("'") for part in circle]
        assert steps[0] == steps[-1]
        pairs = [p for p in pairwise(steps) if not p[1].startswith("…")]
        assert all(pair in named for pair in pairs if not pair[0].startswith("…"))
        return
    durations = np.random.default_rng(seed).random((10, 7))
    finish, counts = graph.critical_paths(durations)
    np.testing.assert_array_equal(finish, graph.finish_times(durations))
    assert (finish >= durations.max(axis=0) - 1e-12).all()
    assert (finish <= durations.sum(axis=0) + 1e-12).all()
    # The critical events of each draw are a chain, whose durations sum to the finish time.
    for d in range(7):
        on_path = graph.critical_counts(durations[:, d : d + 1]).astype(bool)
        assert math.isclose(durations[on_path, d].sum(), finish[d], rel_tol=1e-12)
    assert counts.max() <= 7


@hypothesis.given(
    rate=st.floats(0.01, 10),
    servers=st.integers(1, 50),
    service_cv2=st.floats(0, 10),
    arrival_cv2=st.floats(0, 10),
    q=st.floats(0.01, 0.999),
    time=st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=20),
)
def test_queues_are_increasing_and_never_undefined(
    rate, servers, service_cv2, arrival_cv2, q, time
):
    time = np.sort(time)
    for quantity_ in ("mean", "quantile"):
        arguments = (rate, servers, service_cv2, arrival_cv2, quantity_, q)
        queue = Queue(Constant(1), *arguments)
        response = queue.response(time)
        assert not np.isnan(response).any()
        np.testing.assert_array_equal(np.isinf(response), queue.utilisation(time) >= 1)
        known = response[np.isfinite(response)]
        assert (np.diff(known) >= -1e-9 * known[1:]).all()
        if quantity_ == "mean":
            assert (response >= time).all()


@hypothesis.given(
    operation=st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]),
    algorithm=st.sampled_from(["ring", "direct"]),
    ranks=st.integers(1, 2000),
    size=st.floats(0, 1e12),
    more=st.integers(1, 1000),
)
def test_more_ranks_and_bytes_never_take_less(operation, algorithm, ranks, size, more):
    def cost(p, n):
        return float(time_at(Collective(operation, p, n, 1e-6, 1e10, algorithm)))

    assert cost(ranks + more, size) >= cost(ranks, size)
    assert cost(ranks, 2 * size) >= cost(ranks, size)


@hypothesis.given(n=st.integers(1, 10**6), more=st.integers(1, 10**6), spread=st.floats(0.001, 1))
def test_more_ranks_are_slower(n, more, spread):
    def mean(ranks):
        node = Replicas(Constant(1.0), ranks, Quantity("j", 1.0, spread))
        (q,) = quantities(node)
        return q.value * math.exp(q.spread**2 / 2)

    assert mean(n + more) > mean(n)
