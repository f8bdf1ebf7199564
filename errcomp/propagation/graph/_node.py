"""What all nodes of an execution graph have in common."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

from errcomp.errors import InputError
from errcomp.propagation.graph._fields import Field, read_object, shown
from errcomp.propagation.graph.algebra import Algebra

__all__ = [
    "MAX_DEPTH",
    "Node",
    "asking_once",
    "node_field",
    "nodes_field",
    "read_node",
    "registered",
    "walk",
]

#: How deep graphs may be nested: what is beyond was not written by people.
MAX_DEPTH = 200

T = TypeVar("T")
_REGISTRY: dict[str, type[Node]] = {}


class Node(ABC):
    """A part of an execution graph; frozen, checked when made.

    Attributes
    ----------
    kind_of_node : str
        Its name in documents (the key ``node``).
    fields : mapping of str to Field
        What it holds, with the checks.
    children : tuple of Node
        The parts that it is made of.
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
        """Check what concerns several fields; raises InputError."""

    def _parts(self) -> tuple[Node, ...]:
        """Return the nodes that this one is made of."""
        return ()

    def own_leaves(self) -> tuple[tuple[str, int], ...]:
        """Return the terms and quantities that this node itself uses, each with how often."""
        return ()

    @property
    def repetitions(self) -> int:
        """How often the children are carried out."""
        return 1

    def evaluate(self, algebra: Algebra[T]) -> T:
        """Return the time of this graph, computed with the operations of one engine.

        Parameters
        ----------
        algebra : Algebra
            The engine. Each quantity is asked for once, and is the same wherever it is used.

        Returns
        -------
        object
            What the engine computes with: draws, a linear form, an interval.
        """
        return self.time(asking_once(algebra))

    @abstractmethod
    def time(self, algebra: Algebra[T]) -> T:
        """Return the time of this node within a graph; `evaluate` begins."""

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
        """Return how many instances of each term or quantity are carried out.

        Examples
        --------
        >>> from errcomp.propagation.graph import Kernel, Repeat, Serial
        >>> Serial([Repeat(Serial([Kernel("a"), Kernel("b")]), 3), Kernel("a", 2)]).multiplicity()
        {'a': 5, 'b': 3}
        """
        found: dict[str, int] = {}
        stack: list[tuple[Node, int]] = [(self, 1)]
        while stack:
            node, times = stack.pop()
            for leaf, count in node.own_leaves():
                found[leaf] = found.get(leaf, 0) + times * count
            inner = times * node.repetitions
            stack.extend((child, inner) for child in reversed(node.children))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what has its default is left out."""
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
        """Return the node that this object describes; ``where`` is its JSON path."""
        read_object(value, where, ["node", *cls.fields], ["node", *_required(cls)])
        found: dict[str, Any] = {}
        for key, item in value.items():
            if key == "node":
                continue
            path, field = f"{where}.{key}", cls.fields[key]
            if field.holds == "node" or (field.holds == "parameter" and isinstance(item, Mapping)):
                found[key] = field.check(read_node(item, path, depth + 1), path)
            elif field.holds == "nodes" and isinstance(item, list):
                children = []
                for i, child in enumerate(item):
                    children.append(read_node(child, f"{path}[{i}]", depth + 1))
                found[key] = field.check(children, path)
            else:
                found[key] = field.check(item, path)
        try:
            return cls(**found)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return what `from_dict` takes, as JSON Schema."""
        return {
            "type": "object",
            "properties": {
                "node": {"const": cls.kind_of_node},
                **{key: dict(field.schema) for key, field in cls.fields.items()},
            },
            "required": ["node", *_required(cls)],
            "additionalProperties": False,
        }


class _Once(Generic[T]):
    """An engine that is asked for each quantity once: its value is the same in the whole graph."""

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
    """Return the engine, made to be asked for each quantity once."""
    return algebra if isinstance(algebra, _Once) else cast(Algebra[T], _Once(algebra))


def _required(cls: type[Node]) -> list[str]:
    """Return the keys that have no default."""
    items = dataclasses.fields(cast(Any, cls))
    return [item.name for item in items if item.default is dataclasses.MISSING]


def _too_deep(where: str) -> str:
    return (
        f"{where}: nested more than {MAX_DEPTH} levels deep. Say what is repeated with Repeat, and "
        "long sequences with one Serial or a Dag."
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
        How deep it is nested.

    Raises
    ------
    InputError
        It is no valid node; the message begins with the JSON path.
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
    """Return the nodes that there are, by their name in documents."""
    return dict(sorted(_REGISTRY.items()))


def walk(graph: Node) -> Iterator[Node]:
    """Yield the node and everything it is made of, a node before its parts."""
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
