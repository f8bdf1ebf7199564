"""Nodes for concurrent work: branches, overlap, ranks, pipelines, collectives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy import special

from errcomp.errors import InputError
from errcomp.propagation.graph._node import (
    Algebra,
    Field,
    Node,
    T,
    choice,
    integer,
    node_field,
    nodes_field,
    number,
    shown,
)
from errcomp.propagation.graph.nodes import Quantity, parameter
from errcomp.propagation.terms import Floats

_WIDEST_JITTER = 3.0
_NO_JITTER = 1e-9


@dataclass(frozen=True)
class Parallel(Node, node="parallel"):
    """Branches that start together and wait for each other: the maximum.

    Attributes
    ----------
    children : tuple of Node
        At least one. Branches that use the same kernels share their error.

    Examples
    --------
    >>> from errcomp.propagation.graph import Kernel, time_at
    >>> float(time_at(Parallel([Kernel("a"), Kernel("b")]), {"a": 10.0, "b": 11.0}))
    11.0
    """

    children: Sequence[Node]

    fields: ClassVar = {"children": nodes_field()}

    def time(self, algebra: Algebra[T]) -> T:
        return algebra.maximum([child.time(algebra) for child in self.children])


@dataclass(frozen=True)
class Overlap(Node, node="overlap"):
    r"""Concurrent computation and communication that slow each other down.

    .. math:: T = \max(a, b) + \kappa \min(a, b)

    While both run, each progresses at the rate :math:`1/(1+\kappa)`. The shorter one takes
    :math:`\min(a, b)` alone, so it ends after :math:`(1+\kappa) \min(a, b)`. By then the longer one
    has done the same amount of work, and its rest, :math:`\max(a, b) - \min(a, b)`, runs alone at
    full rate. The sum is T. With κ = 0 the overlap is perfect, with κ = 1 it saves nothing
    (:math:`a + b`). Computed as :math:`\max(a + \kappa b, \, b + \kappa a)`, which is the same for
    κ ≤ 1 and needs no difference of dependent times.

    Misleads where the slowdown is not mutual, or where only part of the work can overlap: add the
    rest in a `Serial`.

    Attributes
    ----------
    compute, communication : Node
        Times a and b without overlap.
    contention : float or Quantity
        κ, from 0 to 1. An uncertain κ is clipped to this range: work that is faster in sequence
        would not be overlapped.

    Raises
    ------
    InputError
        The contention is outside 0 to 1.

    Examples
    --------
    >>> from errcomp.propagation.graph import Constant, time_at
    >>> float(time_at(Overlap(Constant(10.0), Constant(4.0), contention=0.25)))
    11.0
    """

    compute: Node
    communication: Node
    contention: float | Quantity = 0.0

    fields: ClassVar = {
        "compute": node_field(),
        "communication": node_field(),
        "contention": parameter(low=0, high=1),
    }

    def time(self, algebra: Algebra[T]) -> T:
        a, b = self.compute.time(algebra), self.communication.time(algebra)
        if self.contention == 0:
            return algebra.maximum([a, b])
        if self.contention == 1:
            return algebra.total([a, b])
        if isinstance(self.contention, Quantity):
            share = algebra.apply(self.contention.time(algebra), _within_0_and_1)
            slowed = [algebra.product(x, share) for x in (a, b)]
        else:
            slowed = [algebra.scaled(x, self.contention) for x in (a, b)]
        return algebra.maximum([algebra.total([a, slowed[1]]), algebra.total([b, slowed[0]])])


def _within_0_and_1(x: Floats) -> Floats:
    return np.clip(x, 0.0, 1.0)


def _jitter(value: object, where: str) -> Quantity:
    if not isinstance(value, Quantity):
        raise InputError(
            f"{where}: must be a Quantity such as Quantity('jitter', 1.0, spread=0.03), got "
            f"{shown(value)}"
        )
    if value.kind != "log-ratio" or value.spread > _WIDEST_JITTER:
        raise InputError(
            f"{where}: must have a log-ratio error with a spread of at most {_WIDEST_JITTER:g} "
            f"(jitter is the factor by which ranks differ), got a {value.kind} error with a spread "
            f"of {value.spread:g}."
        )
    return value


@dataclass(frozen=True)
class Replicas(Node, node="replicas"):
    r"""The slowest of n ranks with the same work: stragglers.

    .. math::
        T = t \cdot \max_{k \le n} v e^{b + s Z_k}, \qquad
        Z_k = \sqrt{\rho} \, C + \sqrt{1 - \rho} \, E_k

    The child's time t, with its error, is the same for all ranks. A rank differs from it by a
    log-normal jitter; the jitters of two ranks have the correlation ρ. The maximum factorises into
    :math:`v e^{b + s \sqrt\rho C}` and :math:`e^{s \sqrt{1-\rho} M}` with M the largest of n
    independent standard normals, :math:`M = \Phi^{-1}(\Phi(Z)^{1/n})` for one standard normal Z. So
    two quantities suffice for any n. The second is a log-normal quantity with the mean and variance
    of the factor, and an increasing function turns it into the factor: exact for draws, and close
    to the identity for engines that approximate functions.

    Misleads where ranks differ permanently (another device, another share of the work): use
    branches of a `Parallel`. The distribution of M is for normal errors; with Student t errors of
    the terms (``df``) all ranks share one mixing variable, and the maximum is only approximate.

    Attributes
    ----------
    child : Node
        Time of a rank without jitter.
    n : int
        Number of ranks, ≥ 1.
    jitter : Quantity
        Factor of one rank: value v (usually 1), bias b and spread s, log-ratio, s ≤ 3. The common
        part has its name, the other part ``"<name>: slowest of <n>"``. Nodes with the same jitter,
        n and correlation have the same stragglers.
    correlation : float
        ρ, from 0 to 1.

    Raises
    ------
    InputError
        n is not a positive integer, ρ is outside 0 to 1, or the jitter has no log-ratio error.

    References
    ----------
    David and Nagaraja (2003), "Order Statistics", 3rd ed., Wiley, section 2.1: the distribution
    of the largest of n is the n-th power.

    Examples
    --------
    The slowest of 64 ranks that jitter by 3 % takes 7.3 % longer on average.

    >>> from errcomp.propagation.graph import Kernel
    >>> step = Replicas(Kernel("step"), 64, Quantity("jitter", 1.0, spread=0.03))
    >>> step.leaves()
    ('step', 'jitter: slowest of 64')
    >>> value, spread = lognormal_like_slowest(64, 0.03)
    >>> round(value * math.exp(spread**2 / 2), 3)
    1.073
    """

    child: Node
    n: int
    jitter: Quantity
    correlation: float = 0.0

    fields: ClassVar = {
        "child": node_field(),
        "n": integer(1),
        "jitter": Field(_jitter, {"$ref": "#/$defs/quantity"}, "node"),
        "correlation": number(low=0, high=1),
    }

    @property
    def _own_spread(self) -> float:
        """Log-sd of each rank's own part; 0 for a single rank, where everything is common."""
        own = self.jitter.spread * math.sqrt(1 - self.correlation)
        return 0.0 if self.n == 1 or own < _NO_JITTER else own

    def _common(self) -> Quantity:
        own = self._own_spread
        spread = self.jitter.spread * math.sqrt(self.correlation) if own else self.jitter.spread
        return Quantity(self.jitter.name, self.jitter.value, spread, self.jitter.bias)

    def _slowest(self) -> Quantity:
        value, spread = lognormal_like_slowest(self.n, self._own_spread)
        return Quantity(f"{self.jitter.name}: slowest of {self.n}", value, spread)

    def _parts(self) -> tuple[Node, ...]:
        parts: list[Node] = [self.child]
        common = self._common()
        if common.spread or common.value * math.exp(common.bias) != 1.0:
            parts.append(common)
        if self._own_spread:
            parts.append(self._slowest())
        return tuple(parts)

    def time(self, algebra: Algebra[T]) -> T:
        time = self.child.time(algebra)
        for quantity in self.children[1:]:
            factor = quantity.time(algebra)
            if quantity != self._common():
                factor = algebra.apply(factor, self._as_slowest)
            time = algebra.product(time, factor)
        return time

    def _as_slowest(self, x: Floats) -> Floats:
        """Turn draws of the log-normal quantity into draws of the factor of the slowest rank."""
        like = self._slowest()
        with np.errstate(divide="ignore"):  # ln 0
            z = (np.log(x) - math.log(like.value)) / like.spread
        largest = special.ndtri_exp(special.log_ndtr(z) / self.n)
        return np.asarray(np.exp(self._own_spread * largest))


@cache
def lognormal_like_slowest(n: int, spread: float) -> tuple[float, float]:
    r"""Median and log-sd of the log-normal variable with mean and variance of the slowest of n.

    .. math::
        \mathrm{E} \, e^{k s M} = \int e^{k s z} \, n \, \varphi(z) \, \Phi(z)^{n-1} \, dz,
        \quad k = 1, 2

    Parameters
    ----------
    n : int
        Number of ranks.
    spread : float
        Log-sd s of one rank, 0 < s ≤ 3.

    Returns
    -------
    tuple of float
        Median and log-sd.

    Examples
    --------
    >>> value, spread = lognormal_like_slowest(1, 0.25)
    >>> round(value, 12), round(spread, 12)
    (1.0, 0.25)
    """
    # Analytic and vanishing at both ends: the trapezoidal rule is exact to rounding.
    z = np.linspace(-12.0, 16.0 + 2 * spread, 4001)
    weight = np.exp(math.log(n) - z**2 / 2 + (n - 1) * special.log_ndtr(z))
    weight /= weight.sum()
    centre = float(weight @ z)
    growth = np.exp(spread * (z - centre))
    mean = float(weight @ growth)
    variance = math.log1p(float(weight @ (growth - mean) ** 2) / mean**2)
    return math.exp(spread * centre - variance / 2) * mean, math.sqrt(variance)


@dataclass(frozen=True)
class Pipeline(Node, node="pipeline"):
    r"""One iteration of a synchronous pipeline: m micro-batches through p stages.

    .. math:: T = \sum_{i=1}^{p} t_i + (m - 1) \max_i t_i

    The first micro-batch passes all stages; the others follow at the pace of the slowest stage.
    Stages of equal length are idle for the share :math:`(p-1)/(m+p-1)` of the time, the bubble.
    :math:`t_i` is forward plus backward of one micro-batch on stage i, with the transfer to the
    next stage. Exact for one pass through the stages, for equal stages, and for GPipe if one
    stage is the slowest both forward and backward; otherwise a lower bound for GPipe.
    With 1F1B and unequal stages it is too long: if stages differ by ±10 % (±30 %) and backward
    takes twice forward, by at most 9 % (20 %) at m = p and 3 % (7 %) at m = 4 p, and by less than
    2 % (5 %) on average.
    Add work that runs once per iteration (gradients, optimizer) in a `Serial`.

    Attributes
    ----------
    stages : tuple of Node
        Time of one micro-batch on each stage.
    microbatches : int
        m ≥ 1.

    References
    ----------
    Huang et al. (2019), "GPipe: Efficient training of giant neural networks using pipeline
    parallelism", NeurIPS 32. Narayanan et al. (2021), "Efficient large-scale language model
    training on GPU clusters using Megatron-LM", SC '21, doi:10.1145/3458817.3476209.

    Examples
    --------
    >>> from errcomp.propagation.graph import Constant, time_at
    >>> float(time_at(Pipeline([Constant(2.0)] * 4, microbatches=8)))
    22.0
    """

    stages: Sequence[Node]
    microbatches: int

    fields: ClassVar = {"stages": nodes_field(), "microbatches": integer(1)}

    @property
    def repetitions(self) -> int:
        """Number of times that each stage runs."""
        return self.microbatches

    def time(self, algebra: Algebra[T]) -> T:
        times = [stage.time(algebra) for stage in self.stages]
        if self.microbatches == 1:
            return algebra.total(times)
        waiting = algebra.scaled(algebra.maximum(times), float(self.microbatches - 1))
        return algebra.total([*times, waiting])


Operation = Literal["all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all", "send"]
Algorithm = Literal["ring", "tree", "halving-doubling", "direct"]

#: Units per second.
UNITS: dict[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6}

#: Messages in sequence, and volume per rank over the size of the message, for p ranks and
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

    The table gives A, B. n is the size of each rank's data at the end (all-gather), at the start
    (reduce-scatter, all-to-all), or both (all-reduce, broadcast). *ring*: neighbours in a circle;
    for broadcast scatter and ring all-gather (van de Geijn), for all-to-all pairwise exchange.
    *tree*: binomial tree without pipelining, all-reduce as reduce and broadcast; for all-to-all
    Bruck, exact for powers of two. *halving-doubling*: recursive halving and doubling
    (Rabenseifner); p a power of two, for all-gather any p (Bruck). *direct*: one message to every
    other rank at once over links that together have the bandwidth β.

    Misleads where messages are small enough to change protocol, where the network is shared or has
    levels (sum one node per level in a `Serial`), and where trees are pipelined: their volume is
    about 2 n as in halving-doubling. The arithmetic of reductions is not included.

    Attributes
    ----------
    operation : {"all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all", "send"}
        The operation.
    ranks : int
        p ≥ 1.
    bytes : float
        n ≥ 0.
    latency : float or Quantity
        α in seconds, ≥ 0.
    bandwidth : float or Quantity
        β in bytes per second, > 0. A quantity needs a log-ratio error; its term holds 1/β.
    algorithm : {"ring", "tree", "halving-doubling", "direct"}
        The algorithm; a send is always direct.
    unit : {"s", "ms", "us"}
        Unit of the graph and of the time.

    Raises
    ------
    InputError
        A number is out of range, or the algorithm does not support this operation or this number
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
            known = [algorithm for operation, algorithm in _COSTS if operation == self.operation]
            raise InputError(
                f"Collective.algorithm: {self.algorithm} does not support {self.operation}. "
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
        """Return the summands: certain factors, each with a number or quantity; no zeros."""
        messages, volume = self.cost()
        per_second = UNITS[self.unit]
        inverse = (
            self.bandwidth.inverse() if isinstance(self.bandwidth, Quantity) else 1 / self.bandwidth
        )
        pairs = [(messages * per_second, self.latency), (volume * self.bytes * per_second, inverse)]
        return [(factor, quantity) for factor, quantity in pairs if factor and quantity]

    def _parts(self) -> tuple[Node, ...]:
        return tuple(quantity for _, quantity in self._factors() if isinstance(quantity, Quantity))

    def time(self, algebra: Algebra[T]) -> T:
        certain, uncertain = 0.0, []
        for factor, quantity in self._factors():
            if isinstance(quantity, Quantity):
                uncertain.append(algebra.scaled(quantity.time(algebra), factor))
            else:
                certain += factor * quantity
        if certain or not uncertain:
            uncertain.append(algebra.constant(certain))
        return algebra.total(uncertain)
