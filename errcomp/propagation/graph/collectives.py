"""Communication between ranks by the alpha-beta model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar, get_args

from errcomp.errors import InputError
from errcomp.propagation.graph._fields import choice, integer, number
from errcomp.propagation.graph._node import Node
from errcomp.propagation.graph.algebra import Algebra
from errcomp.propagation.graph.nodes import Quantity, parameter

__all__ = ["UNITS", "Algorithm", "Collective", "Operation"]

T = TypeVar("T")
Operation = Literal["all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all", "send"]
Algorithm = Literal["ring", "tree", "halving-doubling", "direct"]

#: How many of the unit are a second.
UNITS: dict[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6}

#: Messages in sequence and volume per rank over the size of the message, of p ranks and
#: d = ceil(log2 p).
_Cost = Callable[[int, int], tuple[float, float]]
_COSTS: dict[tuple[str, str], _Cost] = {
    ("all-reduce", "ring"): lambda p, _: (2 * (p - 1), 2 * (p - 1) / p),
    ("all-reduce", "tree"): lambda _, d: (2 * d, 2 * d),
    ("all-reduce", "halving-doubling"): lambda p, d: (2 * d, 2 * (p - 1) / p),
    ("all-reduce", "direct"): lambda p, _: (2, 2 * (p - 1) / p),
    ("all-gather", "ring"): lambda p, _: (p - 1, (p - 1) / p),
    ("all-gather", "halving-doubling"): lambda p, d: (d, (p - 1) / p),
    ("all-gather", "direct"): lambda p, _: (1, (p - 1) / p),
    ("reduce-scatter", "ring"): lambda p, _: (p - 1, (p - 1) / p),
    ("reduce-scatter", "halving-doubling"): lambda p, d: (d, (p - 1) / p),
    ("reduce-scatter", "direct"): lambda p, _: (1, (p - 1) / p),
    ("broadcast", "ring"): lambda p, d: (d + p - 1, 2 * (p - 1) / p),
    ("broadcast", "tree"): lambda _, d: (d, d),
    ("broadcast", "direct"): lambda p, _: (1, p - 1),
    ("all-to-all", "ring"): lambda p, _: (p - 1, (p - 1) / p),
    ("all-to-all", "tree"): lambda _, d: (d, d / 2),
    ("all-to-all", "direct"): lambda p, _: (1, (p - 1) / p),
    ("send", "direct"): lambda p, _: (1, 1),
}


@dataclass(frozen=True)
class Collective(Node, node="collective"):
    r"""Time of a collective operation or of one message, by its latency and bandwidth.

    .. math:: T = A \, \alpha + B \, n / \beta

    α is the time of an empty message, β the bandwidth of one rank in one direction, n the size in
    bytes, p the number of ranks and :math:`d = \lceil \log_2 p \rceil`. One rank costs nothing.

    ============== ================ ================ ================== ==============
    operation      ring             tree             halving-doubling   direct
    ============== ================ ================ ================== ==============
    all-reduce     2(p−1), 2(p−1)/p 2d, 2d           2d, 2(p−1)/p       2, 2(p−1)/p
    all-gather     p−1, (p−1)/p                      d, (p−1)/p         1, (p−1)/p
    reduce-scatter p−1, (p−1)/p                      d, (p−1)/p         1, (p−1)/p
    broadcast      d+p−1, 2(p−1)/p  d, d                                1, p−1
    all-to-all     p−1, (p−1)/p     d, d/2                              1, (p−1)/p
    send                                                                1, 1
    ============== ================ ================ ================== ==============

    The table gives A, B. n is what each rank holds at the end (all-gather), at the start
    (reduce-scatter, all-to-all), or both (all-reduce, broadcast). *ring*: neighbours in a circle;
    for broadcast scatter and ring all-gather (van de Geijn), for all-to-all pairwise exchange.
    *tree*: binomial tree without pipelining, all-reduce as reduce and broadcast; for all-to-all
    Bruck, exact for powers of two. *halving-doubling*: recursive halving and doubling
    (Rabenseifner); p a power of two, for all-gather any p (Bruck). *direct*: one message to every
    other rank at once over links that together have the bandwidth β.

    Misleads where messages are small enough to change protocol, where the network is shared or has
    levels (sum one node per level in a `Serial`), and where trees are pipelined: their volume is
    about 2 n as in halving-doubling. The arithmetic of reductions is not in it.

    Attributes
    ----------
    operation : {"all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all", "send"}
        What is done.
    ranks : int
        p ≥ 1.
    bytes : float
        n ≥ 0.
    latency : float or Quantity
        α in seconds, ≥ 0.
    bandwidth : float or Quantity
        β in bytes per second, > 0. A quantity needs a log-ratio error; its term holds 1/β.
    algorithm : {"ring", "tree", "halving-doubling", "direct"}
        Which algorithm; a send is always direct.
    unit : {"s", "ms", "us"}
        Unit of the graph, in which the time is given.

    Raises
    ------
    InputError
        A number is out of range, the algorithm does not do this operation or not with this number
        of ranks.

    References
    ----------
    Thakur, Rabenseifner and Gropp (2005), "Optimization of collective communication operations in
    MPICH", International Journal of High Performance Computing Applications 19(1), 49-66,
    doi:10.1177/1094342005051521. Hockney (1994), "The communication challenge for MPP: Intel
    Paragon and Meiko CS-2", Parallel Computing 20(3), 389-398.

    Examples
    --------
    1 GB over 8 ranks at 300 GB/s and 5 µs per message, in milliseconds:

    >>> from errcomp.propagation.graph import time_at
    >>> ring = Collective("all-reduce", 8, 1e9, latency=5e-6, bandwidth=300e9, unit="ms")
    >>> round(float(time_at(ring)), 4)
    5.9033
    """

    operation: Operation
    ranks: int
    bytes: float
    latency: float | Quantity
    bandwidth: float | Quantity
    algorithm: Algorithm = "ring"
    unit: str = "s"

    fields: ClassVar = {
        "operation": choice(get_args(Operation)),
        "ranks": integer(1),
        "bytes": number(low=0),
        "latency": parameter(low=0),
        "bandwidth": parameter(above=0),
        "algorithm": choice(get_args(Algorithm)),
        "unit": choice(UNITS),
    }

    def _check(self) -> None:
        if self.operation == "send":
            object.__setattr__(self, "algorithm", "direct")
        if (self.operation, self.algorithm) not in _COSTS:
            known = [how for what, how in _COSTS if what == self.operation]
            raise InputError(
                f"Collective.algorithm: {self.algorithm} does no {self.operation}. "
                f"Use one of {', '.join(known)}."
            )
        uneven = self.ranks & (self.ranks - 1) != 0 and self.operation != "all-gather"
        if self.algorithm == "halving-doubling" and uneven:
            raise InputError(
                f"Collective.ranks: halving-doubling {self.operation} needs a power of two, got "
                f"{self.ranks}. Use ring or direct."
            )
        if isinstance(self.bandwidth, Quantity):
            self.bandwidth.inverse()

    def cost(self) -> tuple[float, float]:
        """Return A and B: messages in sequence, and volume over the size of the message.

        Examples
        --------
        >>> Collective("all-gather", 4, 1e6, latency=0, bandwidth=1e9).cost()
        (3, 0.75)
        """
        if self.ranks == 1:
            return 0, 0
        levels = (self.ranks - 1).bit_length()
        return _COSTS[self.operation, self.algorithm](self.ranks, levels)

    def _factors(self) -> list[tuple[float, float | Quantity]]:
        """Return what is summed: certain factors, each with a number or quantity; no zeros."""
        messages, volume = self.cost()
        one = UNITS[self.unit]
        inverse = (
            self.bandwidth.inverse() if isinstance(self.bandwidth, Quantity) else 1 / self.bandwidth
        )
        pairs = [(messages * one, self.latency), (volume * self.bytes * one, inverse)]
        return [(factor, what) for factor, what in pairs if factor and what]

    def _parts(self) -> tuple[Node, ...]:
        return tuple(what for _, what in self._factors() if isinstance(what, Quantity))

    def time(self, algebra: Algebra[T]) -> T:
        """Return the time in the unit of the graph."""
        certain, uncertain = 0.0, []
        for factor, what in self._factors():
            if isinstance(what, Quantity):
                uncertain.append(algebra.scaled(what.time(algebra), factor))
            else:
                certain += factor * what
        if certain or not uncertain:
            uncertain.append(algebra.constant(certain))
        return algebra.total(uncertain)
