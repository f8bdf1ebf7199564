"""Common parts of all nodes of an execution graph: their keys, the operations, reading.

A node is written once, in terms of the operations of an `Algebra`. Each engine has its own kind of
quantity: arrays of draws (Monte Carlo), linear forms with mean and variance (moments), intervals
(bounds). One table of keys (`Field`) serves to check values, to read JSON and to write the JSON
Schema.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, cast

from errcomp.errors import InputError
from errcomp.propagation.terms import Floats, is_number

T = TypeVar("T")
Holds = Literal["value", "node", "nodes", "parameter"]
_SHOWN = 60
_LONGEST_NAME = 4096


@dataclass(frozen=True)
class Field:
    """One key.

    Attributes
    ----------
    check : callable
        Takes a value and its place; returns it with the right type or raises InputError.
    schema : mapping
        The same rule as JSON Schema.
    holds : {"value", "node", "nodes", "parameter"}
        A plain value, a graph node, a list of nodes, or a number or uncertain quantity.
    """

    check: Callable[[Any, str], Any]
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    holds: Holds = "value"


def shown(value: object) -> str:
    """Write a given value, cut to one line."""
    if isinstance(value, dict | list | tuple) and len(value) > 3:
        return f"{type(value).__name__} of {len(value)}"
    try:
        written = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return written if len(written) <= _SHOWN else written[: _SHOWN - 1] + "…"


def number(
    *, low: float | None = None, above: float | None = None, high: float | None = None
) -> Field:
    """Return the field of a finite number within bounds (``above``: strictly)."""
    limits = [
        (bound, words, key, holds)
        for bound, words, key, holds in (
            (low, "of at least", "minimum", operator.ge),
            (above, "greater than", "exclusiveMinimum", operator.gt),
            (high, "at most", "maximum", operator.le),
        )
        if bound is not None
    ]
    bounds = " and ".join(f"{words} {bound:g}" for bound, words, _, _ in limits)
    wanted = f"a finite number {bounds}".rstrip()

    def check(value: Any, where: str) -> float:
        if is_number(value):
            try:
                x = float(value)
            except OverflowError:
                x = math.inf
            if math.isfinite(x) and all(holds(x, bound) for bound, _, _, holds in limits):
                return x
        raise InputError(f"{where}: must be {wanted}, got {shown(value)}")

    return Field(check, {"type": "number", **{key: bound for bound, _, key, _ in limits}})


def integer(low: int) -> Field:
    """Return the field of a whole number of at least ``low`` that fits 64 bits."""

    def check(value: Any, where: str) -> int:
        whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value) % 1 == 0)
        if whole and not isinstance(value, bool) and low <= value < 2**63:
            return int(value)
        raise InputError(f"{where}: must be a whole number of at least {low}, got {shown(value)}")

    return Field(check, {"type": "integer", "minimum": low})


def text() -> Field:
    """Return the field of any text."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise InputError(f"{where}: must be text, got {shown(value)}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{where}: is not valid Unicode text: {shown(value)}") from error
        return value

    return Field(check, {"type": "string"})


def name() -> Field:
    """Return the field of a name: not empty, not too long, without zero characters."""
    plain = text().check

    def check(value: Any, where: str) -> str:
        label: str = plain(value, where)
        if not label or "\0" in label or len(label) > _LONGEST_NAME:
            raise InputError(
                f"{where}: must be a name of 1 to {_LONGEST_NAME:,} characters without null "
                f"characters, got {shown(value)}"
            )
        return label

    return Field(check, {"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME})


def choice(values: Iterable[str]) -> Field:
    """Return the field of one of these words."""
    known = tuple(values)

    def check(value: Any, where: str) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise InputError(f"{where}: must be one of {', '.join(known)}, got {shown(value)}")

    return Field(check, {"enum": list(known)})


def read_object(
    value: Any, where: str, keys: Iterable[str], required: Iterable[str]
) -> Mapping[str, Any]:
    """Check that this is an object with all required and no unknown keys."""
    dot = f"{where}: " if where else ""
    if not isinstance(value, Mapping):
        raise InputError(f"{dot}must be an object, got {shown(value)}")
    known = list(keys)
    unknown = [key for key in value if key not in known]
    if unknown:
        raise InputError(f"{dot}unknown key {listed(unknown)}. Known here: {', '.join(known)}.")
    missing = [key for key in required if key not in value]
    if missing:
        raise InputError(f"{dot}missing key {listed(missing)}")
    return value


def read_fields(
    value: Any, where: str, fields: Mapping[str, Field], required: Iterable[str]
) -> dict[str, Any]:
    """Return the checked values of the keys of an object."""
    read_object(value, where, fields, required)
    return {
        key: field.check(value[key], f"{where}.{key}")
        for key, field in fields.items()
        if key in value
    }


def object_schema(
    fields: Mapping[str, Field | Mapping[str, Any]], required: Iterable[str] = (), **more: Any
) -> dict[str, Any]:
    """Return the JSON Schema of an object with these keys and no others."""
    properties = {k: dict(v.schema if isinstance(v, Field) else v) for k, v in fields.items()}
    needed = {"required": list(required)} if required else {}
    return {
        "type": "object",
        "properties": properties,
        **needed,
        **more,
        "additionalProperties": False,
    }


def listed(names: Iterable[object]) -> str:
    """Write the first three names and count the others."""
    items = list(names)
    more = f" (and {len(items) - 3:,} more)" if len(items) > 3 else ""
    return ", ".join(shown(item) for item in items[:3]) + more


class Algebra(Protocol[T]):
    """Operations on uncertain times."""

    def leaf(self, name: str) -> T:
        """Return the quantity of this name; it has one value in the whole graph.

        A graph asks once and may use the result several times, as in α + 3 α, with the same error.
        Instances of kernels come from ``repeated``.

        Examples
        --------
        >>> from errcomp.propagation.graph import Quantity, time_at
        >>> float(time_at(Quantity("latency", 5.0)))  # a leaf of the graph
        5.0
        """
        ...

    def repeated(self, name: str, count: int) -> T:
        """Return the sum of ``count`` instances of a term, each with its own part of the error.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel, time_at
        >>> float(time_at(Kernel("gemm", count=3), {"gemm": 2.0}))  # three instances
        6.0
        """
        ...

    def constant(self, value: float) -> T:
        """Return a certain time.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant, time_at
        >>> float(time_at(Constant(1.5)))
        1.5
        """
        ...

    def total(self, parts: Sequence[T]) -> T:
        """Return the sum.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant, Serial, time_at
        >>> float(time_at(Serial([Constant(1.0), Constant(2.0)])))  # a total
        3.0
        """
        ...

    def scaled(self, x: T, factor: float) -> T:
        """Return x times a certain number.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant, Scaled, time_at
        >>> float(time_at(Scaled(Constant(2.0), 3.0)))
        6.0
        """
        ...

    def maximum(self, parts: Sequence[T]) -> T:
        """Return the larger; parts may share causes.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant, Parallel, time_at
        >>> float(time_at(Parallel([Constant(1.0), Constant(2.0)])))  # a maximum
        2.0
        """
        ...

    def product(self, x: T, y: T) -> T:
        """Return x times y, both uncertain.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel, Quantity, Scaled, time_at
        >>> slowed = Scaled(Kernel("gemm"), Quantity("slowdown", 1.5))  # a product
        >>> float(time_at(slowed, {"gemm": 2.0}))
        3.0
        """
        ...

    def apply(self, x: T, function: Callable[[Floats], Floats]) -> T:
        """Return an increasing function of x; it works on arrays and may return infinity.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel, Queue, time_at
        >>> queue = Queue(Kernel("request"), arrival_rate=0.5)  # a function of the service time
        >>> round(float(time_at(queue, {"request": 1.0})), 6)
        2.0
        """
        ...


#: Deepest nesting of graphs; no person writes deeper ones.
MAX_DEPTH = 200

_REGISTRY: dict[str, type[Node]] = {}


class Node(ABC):
    """A part of an execution graph; frozen, and checked when made.

    Attributes
    ----------
    kind_of_node : str
        Its name in documents (the key ``node``).
    fields : mapping of str to Field
        Its keys, with the checks.
    children : tuple of Node
        Its parts.
    depth : int
        Levels below it, itself included.
    """

    kind_of_node: ClassVar[str]
    fields: ClassVar[Mapping[str, Field]] = {}
    children: Sequence[Node]
    depth: int

    def __init_subclass__(cls, *, node: str) -> None:
        super().__init_subclass__()
        cls.kind_of_node = node
        _REGISTRY[node] = cls

    def __post_init__(self) -> None:
        for key, field in self.fields.items():
            where = f"{type(self).__name__}.{key}"
            object.__setattr__(self, key, field.check(getattr(self, key), where))
        self._check()
        children = self._parts()
        depth = 1 + max((child.depth for child in children), default=0)
        if depth > MAX_DEPTH:
            raise InputError(_too_deep(type(self).__name__))
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "depth", depth)

    def _check(self) -> None:  # noqa: B027 (most have nothing to add)
        """Check conditions on several fields; raises InputError."""

    def _parts(self) -> tuple[Node, ...]:
        """Return the nodes among its fields."""
        parts: list[Node] = []
        for key, field in self.fields.items():
            value = getattr(self, key)
            parts += value if field.holds == "nodes" else [value] if isinstance(value, Node) else []
        return tuple(parts)

    def own_leaves(self) -> tuple[tuple[str, int], ...]:
        """Return the terms and quantities that this node itself uses, with their counts.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel
        >>> Kernel("gemm", count=3).own_leaves()
        (('gemm', 3),)
        """
        return ()

    @property
    def repetitions(self) -> int:
        """Number of times that the children run."""
        return 1

    def evaluate(self, algebra: Algebra[T]) -> T:
        """Return the time of this graph, computed with the operations of one engine.

        Parameters
        ----------
        algebra : Algebra
            The engine. Each quantity has one value wherever it is used.

        Returns
        -------
        object
            The engine's kind of quantity: draws, a linear form, an interval.

        Examples
        --------
        >>> import numpy as np
        >>> from errcomp.propagation.graph import Kernel
        >>> from errcomp.propagation.graph.canonical import MomentsAlgebra
        >>> from errcomp.propagation.terms import Terms
        >>> one, name = np.ones(1), np.array(["gemm"])
        >>> terms = Terms(name, name, 10 * one, np.array([1]), 0 * one, one, kind="absolute")
        >>> time = Kernel("gemm", count=4).evaluate(MomentsAlgebra(terms))
        >>> float(time.mean), float(time.sd)  # independent errors: √4 · 1
        (40.0, 2.0)
        """
        return self.time(asking_once(algebra))

    @abstractmethod
    def time(self, algebra: Algebra[T]) -> T:
        """Return the time of this node within a graph; call `evaluate` on the whole graph.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant, Serial, time_at
        >>> float(time_at(Serial([Constant(1.0), Constant(2.0)])))  # of the parts, then the sum
        3.0
        """

    def leaves(self) -> tuple[str, ...]:
        """Return the names of the terms and quantities used, in order of first use.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel, Repeat, Serial
        >>> Serial([Repeat(Serial([Kernel("a"), Kernel("b")]), 3), Kernel("a", 2)]).leaves()
        ('a', 'b')
        """
        return tuple(self.multiplicity())

    def multiplicity(self) -> dict[str, int]:
        """Return how many instances of each term or quantity run.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel, Repeat, Serial
        >>> Serial([Repeat(Serial([Kernel("a"), Kernel("b")]), 3), Kernel("a", 2)]).multiplicity()
        {'a': 5, 'b': 3}
        """
        times_used: dict[str, int] = {}
        stack: list[tuple[Node, int]] = [(self, 1)]
        while stack:
            node, times = stack.pop()
            for leaf, count in node.own_leaves():
                times_used[leaf] = times_used.get(leaf, 0) + times * count
            inner = times * node.repetitions
            stack.extend((child, inner) for child in reversed(node.children))
        return times_used

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without defaults.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant
        >>> Constant(1.5).to_dict()
        {'node': 'constant', 'value': 1.5}
        """
        document: dict[str, Any] = {"node": self.kind_of_node}
        for item in dataclasses.fields(cast(Any, self)):
            value = getattr(self, item.name)
            if value == item.default:
                continue
            if isinstance(value, Node):
                value = value.to_dict()
            elif isinstance(value, tuple):
                value = [child.to_dict() for child in value]
            document[item.name] = value
        return document

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str, depth: int) -> Node:
        """Return the node that an object describes; ``where`` is its JSON path.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant
        >>> Constant.from_dict({"node": "constant", "value": 1.5}, "graph", 1)
        Constant(value=1.5)
        """
        read_object(value, where, ["node", *cls.fields], ["node", *_required(cls)])
        values: dict[str, Any] = {}
        for key, item in value.items():
            if key == "node":
                continue
            path, field = f"{where}.{key}", cls.fields[key]
            if field.holds == "node" or (field.holds == "parameter" and isinstance(item, Mapping)):
                item = read_node(item, path, depth + 1)
            elif field.holds == "nodes" and isinstance(item, list):
                item = [read_node(x, f"{path}[{i}]", depth + 1) for i, x in enumerate(item)]
            values[key] = field.check(item, path)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the objects that `from_dict` takes.

        Examples
        --------
        >>> from errcomp.propagation.graph import Constant
        >>> sorted(Constant.schema()["properties"])
        ['node', 'value']
        """
        node = {"const": cls.kind_of_node}
        return object_schema({"node": node, **cls.fields}, ["node", *_required(cls)])


class _Memoised(Generic[T]):
    """An engine that makes each quantity once, so that its value is the same in the whole graph."""

    def __init__(self, algebra: Algebra[T]) -> None:
        self._algebra = algebra
        self._leaves: dict[str, T] = {}

    def leaf(self, name: str) -> T:
        if name not in self._leaves:
            self._leaves[name] = self._algebra.leaf(name)
        return self._leaves[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._algebra, name)


def asking_once(algebra: Algebra[T]) -> Algebra[T]:
    """Return an engine that makes each quantity once."""
    return algebra if isinstance(algebra, _Memoised) else cast(Algebra[T], _Memoised(algebra))


def _required(cls: type[Node]) -> list[str]:
    """Return the keys without a default."""
    items = dataclasses.fields(cast(Any, cls))
    return [item.name for item in items if item.default is dataclasses.MISSING]


def _too_deep(where: str) -> str:
    return (
        f"{where}: nested more than {MAX_DEPTH} levels deep. Use Repeat for repetitions, and one "
        "Serial or Dag for long sequences."
    )


def read_node(value: Any, where: str = "graph", depth: int = 1) -> Node:
    """Return the node that a JSON object describes.

    Parameters
    ----------
    value : object
        Parsed JSON.
    where : str
        Its JSON path, for messages.
    depth : int
        Its depth of nesting.

    Raises
    ------
    InputError
        Not a valid node; the message begins with the JSON path.

    Examples
    --------
    >>> read_node({"node": "kernel", "name": "gemm", "count": 3})
    Kernel(name='gemm', count=3, chakra_node=None)
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: must be a graph node (an object), got {shown(value)}")
    if depth > MAX_DEPTH:
        raise InputError(_too_deep(where))
    kind = value.get("node")
    if not isinstance(kind, str) or kind not in _REGISTRY:
        got = shown(kind) if "node" in value else "none"
        raise InputError(f"{where}.node: must be one of {', '.join(registered())}, got {got}")
    return _REGISTRY[kind].from_dict(value, where, depth)


def registered() -> Mapping[str, type[Node]]:
    """Return all kinds of node, by their name in documents."""
    return dict(sorted(_REGISTRY.items()))


def walk(graph: Node) -> Iterator[Node]:
    """Yield the node and all its parts, a node before its parts.

    Examples
    --------
    >>> from errcomp.propagation.graph import Constant, Kernel, Serial
    >>> [type(node).__name__ for node in walk(Serial([Kernel("gemm"), Constant(1.0)]))]
    ['Serial', 'Kernel', 'Constant']
    """
    stack = [graph]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def _is_node(value: Any, where: str) -> Node:
    if isinstance(value, Node):
        return value
    raise InputError(
        f"{where}: must be a node such as Kernel('name'), Constant(1.0) or Serial([...]), got "
        f"{shown(value)}"
    )


def node_field() -> Field:
    """Return a field that holds one node."""
    return Field(_is_node, {"$ref": "#/$defs/node"}, "node")


def nodes_field() -> Field:
    """Return a field that holds one node or more."""

    def check(value: Any, where: str) -> tuple[Node, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise InputError(f"{where}: must be a list of at least one node, got {shown(value)}")
        return tuple(_is_node(child, f"{where}[{i}]") for i, child in enumerate(value))

    schema = {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 1}
    return Field(check, schema, "nodes")
