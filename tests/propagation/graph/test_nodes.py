from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Constant,
    Dag,
    Kernel,
    Node,
    Overlap,
    Parallel,
    Quantity,
    Repeat,
    Scaled,
    Serial,
    read_node,
    time_at,
    walk,
)
from errcomp.propagation.graph._node import MAX_DEPTH, registered


def test_every_registered_node_is_among_the_examples(every_node) -> None:
    assert {type(node) for node in every_node} == set(registered().values())


def test_documents_give_the_node_back(every_node) -> None:
    for node in every_node:
        again = read_node(node.to_dict())
        assert again == node
        assert again.to_dict() == node.to_dict()
        assert again.leaves() == node.leaves()


@pytest.mark.parametrize("kind", registered().values(), ids=lambda kind: kind.__name__)
def test_checks_cover_every_field(kind: type[Node]) -> None:
    if kind is not Dag:
        assert list(kind.fields) == [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]


def test_nodes_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Kernel("a").count = 3  # type: ignore[misc]


def test_what_has_its_default_is_left_out() -> None:
    assert Kernel("a").to_dict() == {"node": "kernel", "name": "a"}
    assert Overlap(Kernel("a"), Constant(1)).to_dict() == {
        "node": "overlap",
        "compute": {"node": "kernel", "name": "a"},
        "communication": {"node": "constant", "value": 1.0},
    }


def test_the_document_of_the_issue() -> None:
    graph = read_node(
        {
            "node": "serial",
            "children": [
                {"node": "kernel", "name": "Linear_1", "count": 24},
                {
                    "node": "overlap",
                    "compute": {"node": "kernel", "name": "gemm"},
                    "communication": {"node": "constant", "value": 4},
                    "contention": 0.2,
                },
            ],
        }
    )
    assert time_at(graph, {"Linear_1": 1.0, "gemm": 10.0}) == pytest.approx(24 + 10 + 0.2 * 4)


def test_sequence_and_repetition(draws) -> None:
    graph = Serial([Repeat(Serial([Kernel("a", 2), Constant(1.0)]), 3), Scaled(Kernel("b"), 0.5)])
    assert time_at(graph, {"a": 10.0, "b": 4.0}) == 3 * (20 + 1) + 2
    assert graph.multiplicity() == {"a": 6, "b": 1}
    assert [type(node).__name__ for node in walk(graph)] == [
        "Serial",
        "Repeat",
        "Serial",
        "Kernel",
        "Constant",
        "Scaled",
        "Kernel",
    ]


def test_a_repeated_kernel_is_drawn_anew_and_a_repeated_graph_is_not(draws) -> None:
    engine = draws({"a": (1.0, 0.1)}, draws=40_000)
    own = Repeat(Kernel("a", 2), 5).evaluate(engine)
    assert engine.asked == ["a"] * 10
    same = Repeat(Serial([Kernel("a")]), 10).evaluate(engine)
    assert len(engine.asked) == 11
    assert same.std() / own.std() == pytest.approx(np.sqrt(10), rel=0.03)


def test_a_quantity_has_one_value_in_the_whole_graph(draws) -> None:
    q = Quantity("q", 2.0, spread=0.5)
    engine = draws({"q": (2.0, 0.5)})
    both = Serial([q, Scaled(q, 3.0), Repeat(q, 2)]).evaluate(engine)
    assert engine.asked == ["q"]
    assert both.std() > 0
    np.testing.assert_allclose(
        Parallel([q, q]).evaluate(draws({"q": (2.0, 0.5)})), both / 6, rtol=1e-12
    )


def test_scaled_by_a_quantity(draws) -> None:
    engine = draws({"a": (4.0, 0.1), "f": (0.5, 0.2)}, draws=40_000)
    x = Scaled(Kernel("a"), Quantity("f", 0.5, 0.2)).evaluate(engine)
    assert np.median(x) == pytest.approx(2.0, rel=0.01)
    assert np.log(x).std() == pytest.approx(np.hypot(0.1, 0.2), rel=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Kernel(""), "Kernel.name: must be a name of 1 to 4,096 characters"),
        (lambda: Kernel("a\0b"), "Kernel.name: must be a name"),
        (lambda: Kernel("x" * 4097), "Kernel.name: must be a name"),
        (lambda: Kernel("\ud800"), "Kernel.name: is not valid Unicode"),
        (lambda: Kernel(3), "Kernel.name: must be text, got 3"),
        (lambda: Kernel("a", 0), "Kernel.count: must be a whole number of at least 1, got 0"),
        (lambda: Kernel("a", True), "Kernel.count: must be a whole number"),
        (lambda: Kernel("a", 1.5), "Kernel.count: must be a whole number of at least 1, got 1.5"),
        (lambda: Kernel("a", float("nan")), "Kernel.count: must be a whole number"),
        (lambda: Kernel("a", float("inf")), "Kernel.count: must be a whole number"),
        (lambda: Kernel("a", "2"), "Kernel.count: must be a whole number of at least 1, got '2'"),
        (lambda: Kernel("a", 2**63), "Kernel.count: must be a whole number"),
        (lambda: Kernel("a", 10**5000), "got a number of thousands of digits"),
        (lambda: Kernel("a", chakra_node=-1), "Kernel.chakra_node: must be a whole number"),
        (lambda: Kernel("a", chakra_node=""), "Kernel.chakra_node: must be a name"),
        (lambda: Constant(-1.0), "Constant.value: must be a finite number of at least 0, got -1.0"),
        (lambda: Constant(float("nan")), "Constant.value: must be a finite number"),
        (
            lambda: Constant(10**400),
            "must be a finite number of at least 0, got 1000",
        ),
        (lambda: Constant(True), "Constant.value: must be a finite number"),
        (lambda: Constant("1"), "Constant.value: must be a finite number"),
        (lambda: Quantity("q", 0.0), "Quantity.value: must be positive for log-ratio errors"),
        (lambda: Quantity("q", 1.0, spread=-0.1), "Quantity.spread: must be a finite number of at"),
        (lambda: Quantity("q", 1.0, kind="log"), "Quantity.kind: must be one of log-ratio, relat"),
        (lambda: Quantity("q", 1.0, kind=["log-ratio"]), "Quantity.kind: must be one of"),
        (lambda: Scaled(Kernel("a"), 0.0), "Scaled.factor: must be a finite number greater than 0"),
        (lambda: Scaled(Kernel("a"), Kernel("b")), "Scaled.factor: must be a number or a Quantity"),
        (lambda: Scaled("a", 1.0), r"Scaled.child: must be a node such as Kernel\('name'\)"),
        (lambda: Serial([]), "Serial.children: must be a list of at least one node"),
        (lambda: Serial("ab"), "Serial.children: must be a list of at least one node, got 'ab'"),
        (lambda: Serial([Kernel("a"), "b"]), r"Serial.children\[1\]: must be a node such as"),
        (lambda: Repeat(Kernel("a"), 0), "Repeat.count: must be a whole number of at least 1"),
    ],
)
def test_what_is_wrong_is_named(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], r"graph: must be a graph node \(an object\), got \[\]"),
        ({}, "graph.node: must be one of collective, .*serial, got none"),
        ({"node": "sum"}, "graph.node: must be one of collective, .* got 'sum'"),
        ({"node": ["kernel"]}, "graph.node: must be one of"),
        ({"node": "kernel"}, "graph: missing key 'name'"),
        ({"node": "kernel", "name": "a", "times": 2}, "graph: unknown key 'times'. Known here: no"),
        ({"node": "kernel", "name": "a", "count": 0}, "graph.count: must be a whole number"),
        ({"node": "serial", "children": {}}, "graph.children: must be a list of at least one node"),
        (
            {"node": "serial", "children": [{"node": "constant", "value": float("nan")}]},
            r"graph.children\[0\].value: must be a finite number of at least 0, got nan",
        ),
        (
            {"node": "repeat", "count": 2, "child": {"node": "constant", "value": 1, "a": 1}},
            "graph.child: unknown key 'a'",
        ),
        ({"node": "repeat", "count": 2, "child": "kernel"}, "graph.child: must be a graph node"),
        (
            {"node": "quantity", "name": "q", "value": -1},
            "graph: Quantity.value: must be positive",
        ),
        (
            {
                "node": "scaled",
                "child": {"node": "constant", "value": 1},
                "factor": {"node": "constant", "value": 1},
            },
            "graph.factor: must be a number or a Quantity, got Constant",
        ),
    ],
)
def test_documents_that_are_wrong(document, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_node(document)


def test_counts_may_be_written_as_floats_and_come_from_numpy() -> None:
    assert Kernel("a", np.int64(3)).count == 3
    assert read_node({"node": "kernel", "name": "a", "count": 24.0}) == Kernel("a", 24)
    assert Constant(np.float32(0.5)).value == 0.5


def nested(depth: int) -> dict:
    document: dict = {"node": "constant", "value": 1.0}
    for _ in range(depth - 1):
        document = {"node": "serial", "children": [document]}
    return document


def test_nesting_up_to_the_limit_works(draws) -> None:
    graph = read_node(nested(MAX_DEPTH))
    assert graph.depth == MAX_DEPTH
    assert graph.to_dict() == nested(MAX_DEPTH)
    assert graph == read_node(nested(MAX_DEPTH))
    assert graph.leaves() == ()
    np.testing.assert_array_equal(graph.evaluate(draws({}, draws=3)), 1.0)


def test_deeper_nesting_is_refused() -> None:
    with pytest.raises(InputError, match="nested more than 200 levels deep. Use Repeat"):
        read_node(nested(MAX_DEPTH + 1))
    with pytest.raises(InputError, match=re.escape("graph" + ".children[0]" * 200)):
        read_node(nested(10_000))
    with pytest.raises(InputError, match="Serial: nested more than 200 levels deep"):
        Serial([read_node(nested(MAX_DEPTH))])


def test_nodes_of_other_engines_and_long_values_are_shown_short() -> None:
    with pytest.raises(InputError) as caught:
        Constant(["x" * 500] * 100)  # type: ignore[arg-type]
    assert str(caught.value).endswith("got list of 100")
    with pytest.raises(InputError) as caught:
        Constant("x" * 500)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 150
