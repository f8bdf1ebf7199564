"""Basic nodes of an execution graph, and the graph's own uncertain quantities."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, describe_names
from errcomp.propagation.graph._node import (
    Algebra,
    Field,
    Node,
    T,
    choice,
    integer,
    listed,
    node_field,
    nodes_field,
    number,
    shown,
    walk,
)
from errcomp.propagation.graph._node import name as name_field
from errcomp.propagation.terms import EVERYTHING, KINDS, Floats, Kind, Level, Terms


def _chakra(value: Any, where: str) -> int | str | None:
    if value is None:
        return None
    field = name_field() if isinstance(value, str) else integer(0)
    node_id: int | str = field.check(value, where)
    return node_id


#: Id of a node of a Chakra execution trace.
CHAKRA = Field(
    _chakra, {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}]}
)


@dataclass(frozen=True)
class Kernel(Node, node="kernel"):
    """A kernel of the table, run ``count`` times in sequence.

    The instances share errors as the error model says; each has the rest on its own.

    Attributes
    ----------
    name : str
        Id of the term.
    count : int
        Number of times, ≥ 1.
    chakra_node : int or str, optional
        Id of its node in a Chakra trace.

    Raises
    ------
    InputError
        The name is empty or the count is not a positive integer.

    Examples
    --------
    >>> Kernel("Linear_1", 24).to_dict()
    {'node': 'kernel', 'name': 'Linear_1', 'count': 24}
    """

    name: str
    count: int = 1
    chakra_node: int | str | None = None

    fields: ClassVar = {"name": name_field(), "count": integer(1), "chakra_node": CHAKRA}

    def own_leaves(self) -> tuple[tuple[str, int], ...]:
        return ((self.name, self.count),)

    def time(self, algebra: Algebra[T]) -> T:
        return algebra.repeated(self.name, self.count)


@dataclass(frozen=True)
class Quantity(Node, node="quantity"):
    r"""An uncertain parameter of the graph itself: a latency, a bandwidth, an efficiency.

    With Z standard normal (or Student t, like the terms) the quantity is :math:`v e^{b + sZ}`
    (log-ratio), :math:`v (1 + b + sZ)` (relative) or :math:`v + b + sZ` (absolute). It has one
    value in the whole graph, and is independent of the kernels and of other quantities. `attach`
    adds it to the terms.

    Attributes
    ----------
    name : str
        Unique among the terms and quantities.
    value : float
        Central value, > 0 for log-ratio errors.
    spread, bias : float
        Scale (≥ 0) and location of its error.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of spread and bias.

    Raises
    ------
    InputError
        A number is not finite, the spread is negative, the value of a log-ratio quantity is not
        positive.

    Examples
    --------
    >>> Quantity("efficiency", 0.45, spread=0.1).inverse()
    Quantity(name='efficiency', value=2.2222222222222223, spread=0.1, bias=-0.0, kind='log-ratio')
    """

    name: str
    value: float
    spread: float = 0.0
    bias: float = 0.0
    kind: Kind = "log-ratio"

    fields: ClassVar = {
        "name": name_field(),
        "value": number(),
        "spread": number(low=0),
        "bias": number(),
        "kind": choice(KINDS),
    }

    def _check(self) -> None:
        if self.kind == "log-ratio" and self.value <= 0:
            raise InputError(
                f"Quantity.value: must be positive for log-ratio errors, got {self.value:g}. Give "
                "the error as relative or absolute."
            )

    def own_leaves(self) -> tuple[tuple[str, int], ...]:
        return ((self.name, 1),)

    def time(self, algebra: Algebra[T]) -> T:
        return algebra.leaf(self.name)

    @property
    def median(self) -> float:
        """Value at Z = 0, corrected by the bias."""
        if self.kind == "log-ratio":
            return self.value * math.exp(self.bias)
        return self.value * (1 + self.bias) if self.kind == "relative" else self.value + self.bias

    def inverse(self) -> Quantity:
        """Return 1 / quantity: the same kind, with the signs of bias and error changed.

        Raises
        ------
        InputError
            The error is not a log-ratio: the inverse of a normal variable has no mean.

        Examples
        --------
        >>> Quantity("bandwidth", 2.0, spread=0.1).inverse().value
        0.5
        """
        if self.kind != "log-ratio":
            raise InputError(
                f"quantity {self.name!r} is a divisor, so its error must be a log-ratio, got "
                f"{self.kind}. Give spread and bias of its logarithm."
            )
        return Quantity(self.name, 1.0 / self.value, self.spread, -self.bias)

    def expressed(self, kind: Kind) -> Quantity:
        """Return the same quantity with its error on another scale.

        Raises
        ------
        InputError
            The scales belong to different distributions (log-normal and normal).

        Examples
        --------
        >>> Quantity("gap", 20.0, spread=0.1, kind="relative").expressed("absolute")
        Quantity(name='gap', value=20.0, spread=2.0, bias=0.0, kind='absolute')
        """
        if kind == self.kind:
            return self
        if self.spread == 0:
            return Quantity(self.name, self.median, kind=kind)
        if "log-ratio" in (kind, self.kind) or self.value == 0:
            raise InputError(
                f"quantity {self.name!r} has {self.kind} errors, but the kernels have {kind} "
                f"errors, a different distribution. Give the quantity's spread and bias as {kind}."
            )
        size = self.value if kind == "absolute" else 1 / self.value
        return Quantity(self.name, self.value, abs(self.spread * size), self.bias * size, kind)


@dataclass(frozen=True)
class Constant(Node, node="constant"):
    """A certain time.

    Attributes
    ----------
    value : float
        In the unit of the graph, ≥ 0.

    Examples
    --------
    >>> from errcomp.propagation.graph import Kernel, Serial, time_at
    >>> float(time_at(Serial([Constant(1.5), Kernel("gemm")]), {"gemm": 2.0}))
    3.5
    """

    value: float

    fields: ClassVar = {"value": number(low=0)}

    def time(self, algebra: Algebra[T]) -> T:
        return algebra.constant(self.value)


def parameter(
    *, low: float | None = None, above: float | None = None, high: float | None = None
) -> Field:
    """Return a field that holds a number within bounds or a `Quantity`."""
    plain = number(low=low, above=above, high=high)

    def check(value: Any, where: str) -> float | Quantity:
        if isinstance(value, Quantity):
            return value
        if isinstance(value, Node):
            raise InputError(f"{where}: must be a number or a Quantity, got {shown(value)}")
        number: float = plain.check(value, where)
        return number

    schema = {"oneOf": [dict(plain.schema), {"$ref": "#/$defs/quantity"}]}
    return Field(check, schema, "parameter")


def parameter_times(algebra: Algebra[T], x: T, factor: float | Quantity) -> T:
    """Return x times a certain or uncertain number."""
    if isinstance(factor, Quantity):
        return algebra.product(x, factor.time(algebra))
    return algebra.scaled(x, factor)


@dataclass(frozen=True)
class Scaled(Node, node="scaled"):
    """A product: work times the time per unit of work, or a time divided by an efficiency.

    Attributes
    ----------
    child : Node
        A time, or the time per unit of work.
    factor : float or Quantity
        > 0; a certain or uncertain number.

    Examples
    --------
    A roofline: 2 TFLOP at 312 TFLOP/s or 1 GB at 2 TB/s, whichever takes longer; in seconds.

    >>> from errcomp.propagation.graph import Parallel, time_at
    >>> compute = Scaled(Constant(2e12 / 312e12), Quantity("1/efficiency", 1 / 0.6, spread=0.1))
    >>> memory = Scaled(Quantity("s per byte", 1 / 2e12, spread=0.05), 1e9)
    >>> round(float(time_at(Parallel([compute, memory]))), 6)
    0.010684
    """

    child: Node
    factor: float | Quantity

    fields: ClassVar = {"child": node_field(), "factor": parameter(above=0)}

    def time(self, algebra: Algebra[T]) -> T:
        return parameter_times(algebra, self.child.time(algebra), self.factor)


@dataclass(frozen=True)
class Serial(Node, node="serial"):
    """Parts in sequence: the sum.

    Attributes
    ----------
    children : tuple of Node
        At least one.

    Examples
    --------
    >>> Serial([Kernel("a", 2), Constant(1.5)]).leaves()
    ('a',)
    """

    children: Sequence[Node]

    fields: ClassVar = {"children": nodes_field()}

    def time(self, algebra: Algebra[T]) -> T:
        return algebra.total([child.time(algebra) for child in self.children])


@dataclass(frozen=True)
class Repeat(Node, node="repeat"):
    r"""The same part ``count`` times in sequence.

    A kernel as the direct child is repeated as instances of one term (`Kernel`). Any other child
    has an uncertain time that is the same in each repetition: :math:`T = n \, t`. This models a
    systematic error, which is the same on all layers. It overstates the spread if part of the error
    differs between repetitions (jitter): put the count on the kernels instead.

    Attributes
    ----------
    child : Node
        The repeated part.
    count : int
        Number of times, ≥ 1.

    Examples
    --------
    >>> from errcomp.propagation.graph import time_at
    >>> layer = Serial([Kernel("attention"), Kernel("mlp")])
    >>> float(time_at(Repeat(layer, 80), {"attention": 2.0, "mlp": 3.0}))
    400.0
    """

    child: Node
    count: int

    fields: ClassVar = {"child": node_field(), "count": integer(1)}

    @property
    def repetitions(self) -> int:
        """Number of times that the child runs."""
        return self.count

    def time(self, algebra: Algebra[T]) -> T:
        if isinstance(self.child, Kernel):
            return algebra.repeated(self.child.name, self.child.count * self.count)
        return algebra.scaled(self.child.time(algebra), float(self.count))


#: Class of the quantities in the error budget.
QUANTITY_CLASS = "graph"


def quantities(graph: Node) -> tuple[Quantity, ...]:
    """Return the uncertain parameters of a graph, in order of first use.

    Includes those that nodes make themselves: inverse bandwidths, the jitter of ranks.

    Raises
    ------
    InputError
        Two different quantities have the same name.

    Examples
    --------
    >>> from errcomp.propagation.graph import Collective
    >>> link = Quantity("link", 300e9, spread=0.1)
    >>> node = Collective("all-reduce", 8, 1e9, latency=Quantity("alpha", 5e-6), bandwidth=link)
    >>> [q.name for q in quantities(node)]
    ['alpha', 'link']
    """
    by_name: dict[str, Quantity] = {}
    for node in walk(graph):
        if isinstance(node, Quantity):
            first = by_name.setdefault(node.name, node)
            if first != node:
                raise InputError(
                    f"graph: two quantities are named {node.name!r}: {_brief(first)} and "
                    f"{_brief(node)}. Rename one. (A bandwidth is listed as its inverse.)"
                )
    return tuple(by_name.values())


def _brief(quantity: Quantity) -> str:
    return (
        f"value {quantity.value:g}, spread {quantity.spread:g}, bias {quantity.bias:g}, "
        f"{quantity.kind}"
    )


def attach(terms: Terms, graph: Node) -> Terms:
    """Return the terms with the quantities of the graph added.

    They are independent of all others, except where all errors are treated as correlated (a level
    named ``"all"``, as under "comonotonic").

    `Node.evaluate` needs the result: every name in the graph is then a term. Terms that the graph
    does not use stay. With Student t errors (``df``) the quantities also have such tails: they are
    uncorrelated with the terms, but are large when those are.

    Parameters
    ----------
    terms : Terms
        The kernels.
    graph : Node
        Its kernels must be among them.

    Returns
    -------
    Terms
        The given terms first, then one for each quantity, with the class ``"graph"`` and its own
        group at each level but ``"all"``.

    Raises
    ------
    InputError
        A kernel of the graph is not among the terms, a quantity has the name of a term, or the
        error of a quantity cannot be expressed in the kind of the terms.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones(1)
    >>> name, count = np.array(["gemm"]), np.ones(1, dtype=int)
    >>> terms = Terms(name, name, ones, count, bias=0 * ones, spread=0.1 * ones)
    >>> from errcomp.propagation.graph import Kernel, Overlap
    >>> wire, slowdown = Quantity("wire", 0.5, 0.2), Quantity("contention", 0.3, 0.1)
    >>> graph = Overlap(Kernel("gemm"), wire, slowdown)
    >>> attach(terms, graph).ids.tolist()
    ['gemm', 'wire', 'contention']
    """
    added = [quantity.expressed(terms.kind) for quantity in quantities(graph)]
    names = [quantity.name for quantity in added]
    ids = [str(i) for i in terms.ids]
    known = set(ids)
    if taken := [name for name in names if name in known]:
        raise InputError(
            f"graph: {listed(taken)} is the name of both a quantity and a kernel. Rename the "
            "quantity."
        )
    unknown = [leaf for leaf in graph.leaves() if leaf not in known and leaf not in set(names)]
    if unknown:
        raise InputError(
            f"graph: no kernel or quantity is named {listed(unknown)}. Kernels: "
            f"{describe_names(ids, wanted=unknown[0])}."
        )
    if not added:
        return terms
    k, matrix = len(added), terms.matrix
    if matrix is not None:
        matrix = np.pad(matrix, (0, k))
        np.fill_diagonal(matrix, 1.0)
    return dataclasses.replace(
        terms,
        ids=np.concatenate([terms.ids, np.array(names)]),
        classes=np.concatenate([terms.classes, np.full(k, QUANTITY_CLASS)]),
        value=np.append(terms.value, [q.value for q in added]),
        count=np.append(terms.count, np.ones(k, dtype=np.int64)),
        bias=np.append(terms.bias, [q.bias for q in added]),
        spread=np.append(terms.spread, [q.spread for q in added]),
        levels=tuple(_extended(level, k) for level in terms.levels),
        matrix=matrix,
    )


def _extended(level: Level, k: int) -> Level:
    """Put each of k quantities into its own group, or into the group of all."""
    first = int(level.codes.max(initial=-1)) + 1
    added = np.arange(first, first + k) if level.name != EVERYTHING else np.zeros(k, np.int64)
    return Level(level.name, np.append(level.codes, added), level.share)


@dataclass(frozen=True)
class _Fixed:
    """Algebra of known times; arrays of one shape, one element per case."""

    times: Mapping[str, Floats]
    shape: tuple[int, ...]

    def leaf(self, name: str) -> Floats:
        return self.times[name]

    def repeated(self, name: str, count: int) -> Floats:
        return self.times[name] * float(count)

    def constant(self, value: float) -> Floats:
        return np.full(self.shape, value)

    def total(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.sum(parts, axis=0))

    def scaled(self, x: Floats, factor: float) -> Floats:
        return x * factor

    def maximum(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.max(parts, axis=0))

    def product(self, x: Floats, y: Floats) -> Floats:
        return x * y

    def apply(self, x: Floats, function: Callable[[Floats], Floats]) -> Floats:
        return function(x)


def time_at(graph: Node, times: Mapping[str, ArrayLike] | None = None) -> Floats:
    r"""Return the time of the graph for given kernel times.

    With measured kernel times it shows the error of the graph itself, without that of the kernels.
    It is not the mean of the prediction: the mean of a maximum exceeds the maximum of the means.

    Parameters
    ----------
    graph : Node
        An execution graph.
    times : mapping of str to array_like
        Time of one instance of each kernel; a number, or arrays of one shape for several cases.
        Quantities may also be given; others have their median :math:`v e^b` (or
        :math:`v (1 + b)`, :math:`v + b`).

    Returns
    -------
    ndarray
        Shape of the times given, () for numbers.

    Raises
    ------
    InputError
        A kernel is missing, or times have different shapes or are not finite.

    Examples
    --------
    >>> from errcomp.propagation.graph import Kernel, Parallel, Serial
    >>> graph = Serial([Kernel("a", 2), Parallel([Kernel("b"), Kernel("c")])])
    >>> time_at(graph, {"a": 1.0, "b": [1.0, 5.0], "c": 3.0})
    array([5., 7.])
    """
    known: dict[str, ArrayLike] = {q.name: q.median for q in quantities(graph)}
    known.update(times or {})
    if lost := [leaf for leaf in graph.leaves() if leaf not in known]:
        raise InputError(
            f"times: no time for {listed(lost)}. Given: "
            f"{describe_names(list(known), wanted=lost[0])}."
        )
    names = list(graph.leaves())
    try:
        arrays = [np.asarray(known[leaf], dtype=float) for leaf in names]
        rows = np.broadcast_arrays(np.zeros(()), *arrays)
    except (TypeError, ValueError) as error:
        raise InputError(f"times: must be numbers or arrays of one shape ({error})") from error
    for leaf, row in zip(names, rows[1:], strict=True):
        wrong = row[~np.isfinite(row)].ravel()
        if len(wrong):
            raise InputError(f"times: {leaf!r} must be finite, got {float(wrong[0])}")
    engine = _Fixed(dict(zip(names, rows[1:], strict=True)), rows[0].shape)
    return np.asarray(graph.evaluate(engine))
