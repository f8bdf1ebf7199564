from __future__ import annotations

import numpy as np
import pytest

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
)

JITTER = Quantity("jitter", 1.0, spread=0.05)
#: One of every kind, with nothing at its default.
EVERY = [
    Kernel("gemm", 2, chakra_node=17),
    Kernel("softmax", 2, chakra_node="rank0:17"),
    Quantity("q", 3.0, spread=0.1, bias=-0.2, kind="relative"),
    Constant(0.5),
    Scaled(Kernel("gemm"), 3.0),
    Scaled(Kernel("gemm"), Quantity("factor", 1.5, 0.1)),
    Serial([Kernel("gemm"), Constant(1.0)]),
    Repeat(Serial([Kernel("gemm")]), 4),
    Parallel([Kernel("gemm"), Kernel("softmax", 3)]),
    Overlap(Kernel("gemm"), Kernel("softmax"), 0.3),
    Overlap(Kernel("gemm"), Kernel("softmax"), Quantity("contention", 0.3, 0.2)),
    Replicas(Kernel("gemm"), 8, JITTER, correlation=0.25),
    Pipeline([Kernel("gemm"), Kernel("softmax")], 8),
    Collective("all-gather", 8, 1e6, 1e-6, 1e9, "direct", "ms"),
    Collective("all-reduce", 8, 1e6, Quantity("alpha", 1e-6, 0.1), Quantity("beta", 1e9, 0.2)),
    Queue(Kernel("gemm"), 0.5, 2, 0.5, 2.0, "quantile", 0.9),
    Dag(
        {"x": "gemm", "y": 1.5, "z": Repeat(Kernel("softmax"), 2)},
        edges=[("x", "y")],
        streams={"x": "0", "z": "0"},
        chakra={"x": 4, "z": "n4"},
    ),
]


class Draws:
    """Independent log-normal leaves as arrays; instances of a kernel are drawn anew."""

    def __init__(self, leaves, draws=1000, seed=0):
        self.leaves = leaves  # name -> (median, log-sd)
        self.draws = draws
        self.rng = np.random.default_rng(seed)
        self.asked = []

    def leaf(self, name):
        self.asked.append(name)
        median, spread = self.leaves[name]
        return median * np.exp(spread * self.rng.standard_normal(self.draws))

    def repeated(self, name, count):
        return sum(self.leaf(name) for _ in range(count))

    def constant(self, value):
        return np.full(self.draws, value)

    def total(self, parts):
        return np.sum(parts, axis=0)

    def scaled(self, x, factor):
        return x * factor

    def maximum(self, parts):
        return np.max(parts, axis=0)

    def product(self, x, y):
        return x * y

    def apply(self, x, function):
        return function(x)


class BlockDraws(Draws):
    """As `Draws`, and gives many durations at once."""

    def block(self, names):
        self.asked.append("block")
        rows = [Draws.leaf(self, name) for name in names]
        return np.array(rows).reshape(len(names), self.draws)


@pytest.fixture
def draws():
    return Draws


@pytest.fixture
def block_draws():
    return BlockDraws


@pytest.fixture
def every_node():
    return EVERY
