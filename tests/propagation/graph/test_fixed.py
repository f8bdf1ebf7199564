from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Constant,
    Kernel,
    Parallel,
    Quantity,
    Queue,
    Repeat,
    Replicas,
    Scaled,
    Serial,
    time_at,
)


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
        ({}, "times: none for 'a', 'b'. Given: none"),
        ({"a": 1.0, "B": 1.0}, "times: none for 'b'. Given: a, B"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, "times: must be numbers or arrays of one shape"),
        ({"a": "x", "b": 1.0}, "times: must be numbers or arrays of one shape"),
        ({"a": [1.0, float("nan")], "b": 1.0}, r"times: 'a' must be finite, got nan"),
    ],
)
def test_what_is_wrong_is_named(times, message: str) -> None:
    with pytest.raises(InputError, match=message):
        time_at(Serial([Kernel("a"), Kernel("b")]), times)
