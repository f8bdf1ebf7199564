from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Collective,
    Constant,
    Kernel,
    Overlap,
    Parallel,
    Quantity,
    Queue,
    Repeat,
    Replicas,
    Scaled,
    Serial,
    attach,
    quantities,
    time_at,
)
from errcomp.propagation.terms import Level, Terms


def terms(ids=("a", "b", "c"), **changes) -> Terms:
    n = len(ids)
    values = {
        "ids": np.array(ids),
        "classes": np.array(["gemm"] * n),
        "value": np.arange(1.0, n + 1),
        "count": np.full(n, 2),
        "bias": np.zeros(n),
        "spread": np.full(n, 0.1),
        "unit": "ms",
    }
    return Terms(**{**values, **changes})


GRAPH = Serial(
    [
        Kernel("a"),
        Overlap(Kernel("b"), Quantity("wire", 2.0, 0.3), Quantity("contention", 0.2, 0.1)),
        Replicas(Kernel("c"), 8, Quantity("jitter", 1.0, 0.05)),
        Scaled(Constant(1.0), Quantity("wire", 2.0, 0.3)),
    ]
)


def test_quantities_in_order_of_first_use() -> None:
    assert [q.name for q in quantities(GRAPH)] == ["wire", "contention", "jitter: slowest of 8"]
    assert quantities(Kernel("a")) == ()


def test_two_quantities_of_one_name() -> None:
    graph = Parallel([Quantity("q", 1.0, 0.1), Quantity("q", 1.0, 0.2)])
    with pytest.raises(InputError, match=r"two quantities are named 'q': value 1, spread 0.1, .*"):
        quantities(graph)


def test_a_bandwidth_is_not_the_quantity_itself() -> None:
    beta = Quantity("beta", 4.0, 0.1)
    graph = Serial([beta, Collective("send", 2, 1, 0, beta)])
    with pytest.raises(InputError, match=r"\(A bandwidth is listed as its inverse.\)"):
        quantities(graph)


def test_quantities_join_the_terms_in_groups_of_their_own() -> None:
    levels = (
        Level("device", np.array([0, 0, 1]), 0.3),
        Level("class", np.array([0, 1, 2]), 0.2),
    )
    found = attach(terms(levels=levels), GRAPH)
    assert found.ids.tolist() == ["a", "b", "c", "wire", "contention", "jitter: slowest of 8"]
    assert found.classes.tolist() == ["gemm"] * 3 + ["graph"] * 3
    np.testing.assert_array_equal(found.count, [2, 2, 2, 1, 1, 1])
    assert found.count.dtype == np.int64
    np.testing.assert_array_equal(found.value[3:5], [2.0, 0.2])
    np.testing.assert_array_equal(found.spread[3:5], [0.3, 0.1])
    expected = np.eye(6)
    expected[0, 1] = expected[1, 0] = 0.3
    np.testing.assert_allclose(found.correlation(), expected)
    assert [level.name for level in found.levels] == ["device", "class"]
    assert found.unit == "ms"


def test_a_given_matrix_is_extended() -> None:
    matrix = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    found = attach(terms(matrix=matrix), GRAPH)
    assert found.matrix is not None
    np.testing.assert_array_equal(found.matrix[:3, :3], matrix)
    np.testing.assert_array_equal(found.matrix[3:], np.eye(6)[3:])


def test_nothing_to_add_and_terms_that_are_not_used() -> None:
    given = terms()
    assert attach(given, Kernel("a")) is given


def test_names_that_are_not_there() -> None:
    with pytest.raises(InputError, match="no kernel or quantity is named 'x', 'y'. Kern"):
        attach(terms(), Serial([Kernel("x"), Kernel("a"), Kernel("y"), Quantity("z", 1.0)]))


def test_names_that_are_taken() -> None:
    with pytest.raises(InputError, match="'a' is the name of both a quantity and a kernel. Rename"):
        attach(terms(), Serial([Kernel("b"), Quantity("a", 1.0)]))


def test_kinds_that_can_be_expressed() -> None:
    graph = Serial(
        [
            Quantity("r", 20.0, 0.1, bias=0.05, kind="relative"),
            Quantity("l", 2.0, bias=0.5),
        ]
    )
    found = attach(terms(kind="absolute"), graph)
    np.testing.assert_allclose(found.value[3:], [20.0, 2 * math.exp(0.5)])
    np.testing.assert_allclose(found.bias[3:], [1.0, 0.0])
    np.testing.assert_allclose(found.spread[3:], [2.0, 0.0])


def test_absolute_to_relative_and_back() -> None:
    q = Quantity("q", -4.0, 0.5, bias=0.2, kind="absolute")
    relative = q.expressed("relative")
    assert (relative.spread, relative.bias) == (0.125, -0.05)
    assert relative.expressed("absolute") == q
    assert Quantity("q", 3.0, bias=0.5, kind="absolute").expressed("log-ratio").value == 3.5
    assert Quantity("q", 3.0, bias=0.5, kind="relative").expressed("log-ratio").value == 4.5


@pytest.mark.parametrize(
    ("quantity", "kind"),
    [
        (Quantity("q", 1.0, 0.1), "relative"),
        (Quantity("q", 1.0, 0.1, kind="absolute"), "log-ratio"),
        (Quantity("q", 0.0, 0.1, kind="absolute"), "relative"),
    ],
)
def test_kinds_that_are_other_distributions(quantity: Quantity, kind: str) -> None:
    with pytest.raises(
        InputError, match=f"quantity 'q' has .* errors, but the kernels have {kind}"
    ):
        attach(terms(kind=kind), quantity)


def test_inverse_of_a_log_ratio() -> None:
    assert Quantity("q", 4.0, 0.1, bias=0.2).inverse() == Quantity("q", 0.25, 0.1, bias=-0.2)


def test_numbers_and_arrays() -> None:
    graph = Serial([Kernel("a", 3), Constant(1.0), Kernel("b")])
    assert time_at(graph, {"a": 2, "b": 4}).shape == ()
    np.testing.assert_array_equal(time_at(graph, {"a": [1, 2], "b": 4, "c": [9]}), [8, 11])
    assert time_at(graph, {"a": np.ones((2, 3)), "b": 1.0}).shape == (2, 3)
    assert float(time_at(Constant(2.0))) == 2.0


def test_quantities_have_their_median_or_what_is_given() -> None:
    graph = Parallel([Scaled(Kernel("a"), Quantity("q", 2.0, 0.3, bias=0.1)), Constant(0.0)])
    assert float(time_at(graph, {"a": 3.0})) == pytest.approx(6 * math.exp(0.1))
    assert float(time_at(graph, {"a": 3.0, "q": 5.0})) == 15.0
    relative = Quantity("q", 2.0, 0.3, bias=0.1, kind="relative")
    assert float(time_at(relative)) == pytest.approx(2.2)
    assert float(time_at(Quantity("q", 2.0, 0.3, bias=0.1, kind="absolute"))) == 2.1


def test_every_operation() -> None:
    node = Queue(Replicas(Repeat(Kernel("s"), 2), 4, Quantity("j", 1.0, 0.1), 0.5), 0.25)
    slowest = float(time_at(node.service, {"s": 1.0}))
    assert slowest > 2.0
    assert float(time_at(node, {"s": 1.0})) == pytest.approx(1 / (1 / slowest - 0.25))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({}, "times: no time for 'a', 'b'. Given: none"),
        ({"a": 1.0, "B": 1.0}, "times: no time for 'b'. Given: a, B"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, "times: must be numbers or arrays of one shape"),
        ({"a": "x", "b": 1.0}, "times: must be numbers or arrays of one shape"),
        ({"a": [1.0, float("nan")], "b": 1.0}, r"times: 'a' must be finite, got nan"),
    ],
)
def test_what_is_wrong_is_named(times, message: str) -> None:
    with pytest.raises(InputError, match=message):
        time_at(Serial([Kernel("a"), Kernel("b")]), times)
