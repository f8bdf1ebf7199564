"""The plain nodes of an execution graph: kernels, parameters, sequence and repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from errcomp.errors import InputError
from errcomp.propagation.graph._fields import Field, choice, integer, number, shown
from errcomp.propagation.graph._fields import name as name_field
from errcomp.propagation.graph._node import Node, node_field, nodes_field
from errcomp.propagation.graph.algebra import Algebra
from errcomp.propagation.terms import KINDS, Kind

__all__ = ["Constant", "Kernel", "Quantity", "Repeat", "Scaled", "Serial"]

T = TypeVar("T")


def _chakra(value: Any, where: str) -> int | str | None:
    if value is None:
        return None
    check = name_field().check if isinstance(value, str) else integer(0).check
    found: int | str = check(value, where)
    return found


#: A node of a Chakra execution trace: its id.
CHAKRA = Field(
    _chakra, {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}]}
)


@dataclass(frozen=True)
class Kernel(Node, node="kernel"):
    """A kernel of the table, carried out ``count`` times in sequence.

    The instances share what the error model says that they share; the rest is drawn anew for each.

    Attributes
    ----------
    name : str
        Id of the term.
    count : int
        How often, ≥ 1.
    chakra_node : int or str, optional
        Id of the node of a Chakra trace that this is.

    Raises
    ------
    InputError
        The name is empty or the count is no positive integer.

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
        """Return the term and its count."""
        return ((self.name, self.count),)

    def time(self, algebra: Algebra[T]) -> T:
        """Return the sum of the instances."""
        return algebra.repeated(self.name, self.count)


@dataclass(frozen=True)
class Quantity(Node, node="quantity"):
    r"""An uncertain parameter of the graph itself: a latency, a bandwidth, an efficiency.

    With Z standard normal (or Student t, as the terms have it) the quantity is
    :math:`v e^{b + sZ}` (log-ratio), :math:`v (1 + b + sZ)` (relative) or :math:`v + b + sZ`
    (absolute). It has one value in the whole graph: used twice, it is the same, and it is
    independent of the kernels and of the other quantities. `attach` adds it to the terms.

    Attributes
    ----------
    name : str
        Unique among the terms and quantities.
    value : float
        Central value, > 0 for log-ratio errors.
    spread, bias : float
        Scale (≥ 0) and location of its error.
    kind : {"log-ratio", "relative", "absolute"}
        What spread and bias are relative to.

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
        """Return its own name."""
        return ((self.name, 1),)

    def time(self, algebra: Algebra[T]) -> T:
        """Return the quantity."""
        return algebra.leaf(self.name)

    def inverse(self) -> Quantity:
        """Return 1 / quantity: the same family with the signs of location and error changed.

        Raises
        ------
        InputError
            The error is not a log-ratio: the inverse of a normal variable has no mean.
        """
        if self.kind != "log-ratio":
            raise InputError(
                f"quantity {self.name!r} is divided by, so its error must be a log-ratio, got "
                f"{self.kind}. State spread and bias as those of its logarithm."
            )
        return Quantity(self.name, 1.0 / self.value, self.spread, -self.bias)

    def expressed(self, kind: Kind) -> Quantity:
        """Return the same quantity with its error on another scale.

        Raises
        ------
        InputError
            The two scales are different distributions (log-normal and normal).

        Examples
        --------
        >>> Quantity("gap", 20.0, spread=0.1, kind="relative").expressed("absolute")
        Quantity(name='gap', value=20.0, spread=2.0, bias=0.0, kind='absolute')
        """
        if kind == self.kind:
            return self
        if self.spread == 0:
            value = {
                "log-ratio": self.value * math.exp(self.bias) if self.kind == "log-ratio" else 0.0,
                "relative": self.value * (1 + self.bias),
                "absolute": self.value + self.bias,
            }[self.kind]
            return Quantity(self.name, value, kind=kind)
        if "log-ratio" in (kind, self.kind) or self.value == 0:
            raise InputError(
                f"quantity {self.name!r} has errors of kind {self.kind}, the kernels {kind}: they "
                f"are different distributions. State the quantity's spread and bias as {kind}."
            )
        size = self.value if kind == "absolute" else 1 / self.value
        return Quantity(self.name, self.value, abs(self.spread * size), self.bias * size, kind)


@dataclass(frozen=True)
class Constant(Node, node="constant"):
    """A time that is certain.

    Attributes
    ----------
    value : float
        In the unit of the graph, ≥ 0.
    """

    value: float

    fields: ClassVar = {"value": number(low=0)}

    def time(self, algebra: Algebra[T]) -> T:
        """Return the time."""
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
        found: float = plain.check(value, where)
        return found

    schema = {"oneOf": [dict(plain.schema), {"$ref": "#/$defs/quantity"}]}
    return Field(check, schema, "parameter")


def parameter_times(algebra: Algebra[T], x: T, factor: float | Quantity) -> T:
    """Return x times a certain or uncertain number."""
    if isinstance(factor, Quantity):
        return algebra.product(x, factor.time(algebra))
    return algebra.scaled(x, factor)


@dataclass(frozen=True)
class Scaled(Node, node="scaled"):
    """A time multiplied: work times the time per unit of work, or a time divided by an efficiency.

    Attributes
    ----------
    child : Node
        A time, or the time per unit of work.
    factor : float or Quantity
        > 0. A certain number or an uncertain one.

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

    def _parts(self) -> tuple[Node, ...]:
        return (self.child, self.factor) if isinstance(self.factor, Quantity) else (self.child,)

    def time(self, algebra: Algebra[T]) -> T:
        """Return the product."""
        return parameter_times(algebra, self.child.time(algebra), self.factor)


@dataclass(frozen=True)
class Serial(Node, node="serial"):
    """One after the other: the sum.

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

    def _parts(self) -> tuple[Node, ...]:
        return tuple(self.children)

    def time(self, algebra: Algebra[T]) -> T:
        """Return the sum of the parts."""
        return algebra.total([child.time(algebra) for child in self.children])


@dataclass(frozen=True)
class Repeat(Node, node="repeat"):
    r"""The same thing ``count`` times in sequence.

    A kernel that is the direct child is repeated as instances of one term (`Kernel`). Of anything
    else the time is unknown but the same each time: :math:`T = n \, t`. That is what a systematic
    error does: a model that errs on one layer errs on all layers alike. It overstates the spread
    where part of the error is drawn anew each time (jitter): put the count on the kernels instead.

    Attributes
    ----------
    child : Node
        What is repeated.
    count : int
        How often, ≥ 1.

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

    def _parts(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def repetitions(self) -> int:
        """How often the child is carried out."""
        return self.count

    def time(self, algebra: Algebra[T]) -> T:
        """Return the time of all repetitions."""
        if isinstance(self.child, Kernel):
            return algebra.repeated(self.child.name, self.child.count * self.count)
        return algebra.scaled(self.child.time(algebra), float(self.count))
