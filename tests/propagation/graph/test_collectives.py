from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import Collective, Quantity, quantities, time_at
from errcomp.propagation.graph.parallelism import _COSTS

ALPHA, BETA, SIZE = 5e-6, 1e9, 4e6


def cost(operation: str, algorithm: str, ranks: int) -> float:
    node = Collective(operation, ranks, SIZE, ALPHA, BETA, algorithm)
    return float(time_at(node))


@pytest.mark.parametrize(
    ("operation", "algorithm", "ranks", "messages", "volume"),
    # Thakur, Rabenseifner and Gropp (2005), table of costs; n is the size, p the ranks.
    [
        ("all-gather", "ring", 8, 7, 7 / 8),
        ("all-gather", "halving-doubling", 8, 3, 7 / 8),  # recursive doubling
        ("all-gather", "halving-doubling", 6, 3, 5 / 6),  # Bruck
        ("broadcast", "tree", 8, 3, 3),
        ("broadcast", "tree", 5, 3, 3),
        ("broadcast", "ring", 8, 3 + 7, 2 * 7 / 8),  # van de Geijn
        ("reduce-scatter", "halving-doubling", 8, 3, 7 / 8),
        ("reduce-scatter", "ring", 6, 5, 5 / 6),
        ("all-reduce", "halving-doubling", 16, 8, 2 * 15 / 16),  # Rabenseifner
        ("all-reduce", "ring", 6, 10, 10 / 6),
        ("all-reduce", "tree", 6, 6, 6),
        ("all-to-all", "tree", 8, 3, 1.5),  # Bruck
        ("all-to-all", "ring", 8, 7, 7 / 8),
        ("all-reduce", "direct", 8, 2, 2 * 7 / 8),
        ("all-gather", "direct", 8, 1, 7 / 8),
        ("reduce-scatter", "direct", 8, 1, 7 / 8),
        ("all-to-all", "direct", 8, 1, 7 / 8),
        ("broadcast", "direct", 8, 1, 7),
        ("send", "direct", 2, 1, 1),
    ],
)
def test_costs_of_the_algorithms(operation, algorithm, ranks, messages, volume) -> None:
    node = Collective(operation, ranks, SIZE, ALPHA, BETA, algorithm)
    assert node.cost() == pytest.approx((messages, volume))
    expected = messages * ALPHA + volume * SIZE / BETA
    assert float(time_at(node)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("operation", "algorithm"), _COSTS)
def test_one_rank_costs_nothing(operation: str, algorithm: str) -> None:
    assert cost(operation, algorithm, 1) == 0.0


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "direct"])
def test_all_reduce_is_reduce_scatter_and_all_gather(algorithm: str, ranks: int) -> None:
    both = cost("reduce-scatter", algorithm, ranks) + cost("all-gather", algorithm, ranks)
    assert cost("all-reduce", algorithm, ranks) == pytest.approx(both)


@pytest.mark.parametrize(("operation", "algorithm"), [key for key in _COSTS if key[0] != "send"])
def test_nothing_beats_the_lower_bounds(operation: str, algorithm: str) -> None:
    # Chan et al. (2007), doi:10.1002/cpe.1206: least volume per rank.
    least = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
    for ranks in (2, 4, 16, 128):
        _, volume = Collective(operation, ranks, 1, 1, 1, algorithm).cost()
        assert volume >= least.get(operation, 1) * (ranks - 1) / ranks - 1e-12


def test_units() -> None:
    seconds = float(time_at(Collective("send", 2, SIZE, ALPHA, BETA)))
    for unit, factor in (("ms", 1e3), ("us", 1e6)):
        node = Collective("send", 2, SIZE, ALPHA, BETA, unit=unit)
        assert float(time_at(node)) == pytest.approx(factor * seconds)


def test_uncertain_latency_and_bandwidth(draws) -> None:
    alpha = Quantity("alpha", ALPHA, 0.2)
    beta = Quantity("beta", BETA, 0.1, bias=0.05)
    node = Collective("all-reduce", 8, SIZE, alpha, beta, "ring", "us")
    assert node.leaves() == ("alpha", "beta")
    found = {q.name: q for q in quantities(node)}
    assert found["beta"] == Quantity("beta", 1e-9, 0.1, -0.05)
    engine = draws({"alpha": (ALPHA, 0.2), "beta": (math.exp(-0.05) / BETA, 0.1)}, 40_000)
    x = node.evaluate(engine)
    transfer, latency = 1.75 * SIZE / BETA * 1e6, 14 * ALPHA * 1e6
    mean = latency * math.exp(0.02) + transfer * math.exp(-0.05 + 0.005)
    assert x.mean() == pytest.approx(mean, rel=0.003)
    variance = (latency**2 * math.exp(0.04) * math.expm1(0.04)) + (
        transfer**2 * math.exp(-0.1 + 0.01) * math.expm1(0.01)
    )
    assert x.std() == pytest.approx(math.sqrt(variance), rel=0.02)


def test_what_costs_nothing_is_not_uncertain() -> None:
    alpha, beta = Quantity("alpha", ALPHA, 0.2), Quantity("beta", BETA, 0.1)
    assert Collective("all-reduce", 1, SIZE, alpha, beta).leaves() == ()
    assert Collective("all-reduce", 8, 0, alpha, beta).leaves() == ("alpha",)
    assert Collective("all-reduce", 8, SIZE, 0, beta).leaves() == ("beta",)
    assert float(time_at(Collective("all-reduce", 8, 0, 0, beta))) == 0.0


def test_certain_and_uncertain_parts_add_up() -> None:
    node = Collective("send", 2, SIZE, ALPHA, Quantity("beta", BETA, 0.1))
    np.testing.assert_allclose(
        time_at(node, {"beta": [1 / BETA, 2 / BETA]}), [ALPHA + 0.004, ALPHA + 0.008]
    )


def test_a_send_is_direct() -> None:
    assert Collective("send", 2, 1, 0, 1, "tree").algorithm == "direct"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reduce", 8, 1, 0, 1), "Collective.operation: must be one of all-reduce, .*, got 'red"),
        (("all-reduce", 0, 1, 0, 1), "Collective.ranks: must be a whole number of at least 1"),
        (("all-reduce", 8, -1, 0, 1), "Collective.bytes: must be a finite number of at least 0"),
        (("all-reduce", 8, 1, -1e-6, 1), "Collective.latency: must be a finite number of at least"),
        (("all-reduce", 8, 1, 0, 0), "Collective.bandwidth: must be a finite number greater than"),
        (("all-reduce", 8, 1, 0, 1, "star"), "Collective.algorithm: must be one of ring, tree"),
        (
            ("broadcast", 8, 1, 0, 1, "halving-doubling"),
            "halving-doubling does not support broadcast. Use one of ring, tree, direct",
        ),
        (("all-gather", 8, 1, 0, 1, "tree"), "tree does not support all-gather"),
        (
            ("all-reduce", 6, 1, 0, 1, "halving-doubling"),
            "Collective.ranks: halving-doubling all-reduce needs a power of two, got 6",
        ),
        (("all-reduce", 8, 1, 0, 1, "ring", "h"), "Collective.unit: must be one of s, ms, us"),
        (
            ("all-reduce", 8, 1, 0, Quantity("b", 1e9, 0.1, kind="relative")),
            "quantity 'b' is a divisor, so its error must be a log-ratio, got relative",
        ),
    ],
)
def test_what_is_wrong_is_named(arguments, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Collective(*arguments)
