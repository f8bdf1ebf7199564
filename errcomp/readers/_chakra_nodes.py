"""Nodes of a Chakra execution trace: the protobuf messages of et_def.proto, decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers._wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    double,
    fields,
    messages,
    signed,
    single,
    varints,
)
from errcomp.readers.source import Source

__all__ = ["COLLECTIVES", "METADATA", "TYPES", "Node", "begins_trace", "edges", "read_nodes"]

#: Types of nodes and of collectives, by number.
TYPES = (
    *("invalid", "metadata", "memory load", "memory store", "compute", "send", "receive"),
    *("collective", "storage", "batch", "checkpoint"),
)
METADATA = 1
#: Newer schemas add types: so many are still taken for one.
_MOST_TYPES = 64
COLLECTIVES = (
    *("all-reduce", "reduce", "all-gather", "gather", "scatter", "broadcast", "all-to-all"),
    *("reduce-scatter", "reduce-scatter-block", "barrier"),
)
_VERSION = re.compile(rb"\d+(?:\.\d+)*(?:[-+.\w]*)")
#: Attributes that become columns; the others (values of operators, schemas) may be long.
_WANTED = frozenset(
    (
        *("is_cpu_op", "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag"),
        *("pg_name", "stream", "num_ops", "tensor_size", "rf_id"),
    )
)

#: With what they begin: most attributes of a node are others, and need not be decoded.
_WANTED_STARTS = tuple(b"\n" + bytes([len(name)]) + name.encode() for name in sorted(_WANTED))


@dataclass(slots=True)
class Node:
    """One node.

    Attributes
    ----------
    id : int
    name : str
    type : int
        Index into `TYPES`.
    after : list of int
        Nodes that it waits for: its control and data dependencies.
    start, duration : int
        Microseconds; 0 where there is none.
    shapes : str
        Of its inputs.
    attributes : dict
        Those that are used here.
    """

    id: int = 0
    name: str = ""
    type: int = 0
    after: list[int] = field(default_factory=list)
    start: int = 0
    duration: int = 0
    shapes: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)


def begins_trace(head: bytes) -> bool:
    """Is this the begin of a trace: global metadata, then a node, each after its length."""
    found = []
    try:
        for message in messages(head):
            found.append(list(fields(message)))
            if len(found) == 2:
                break
    except ValueError:
        # What the head cuts off is too long for it: the first message may be.
        if not found:
            return _begins_long(head)
    if not found or not _is_metadata(found[0]):
        return False
    return _is_node(found[1]) if len(found) > 1 else _has_version(found[0])


def _begins_long(head: bytes) -> bool:
    """Is the begin of metadata here that is longer than the head: an attribute with a name."""
    size = re.match(rb"[\x80-\xff]{1,4}[\x01-\x7f]\x12[\x01-\x7f]\x0a[\x01-\x7f]schema", head)
    return size is not None


def _is_metadata(found: list[tuple[int, int, int | bytes]]) -> bool:
    return all(number in (1, 2) and kind == LENGTH for number, kind, _ in found)


def _has_version(found: list[tuple[int, int, int | bytes]]) -> bool:
    return any(
        number == 1 and isinstance(value, bytes) and _VERSION.fullmatch(value) is not None
        for number, _, value in found
    )


def _is_node(found: list[tuple[int, int, int | bytes]]) -> bool:
    kinds = {number: kind for number, kind, _ in found}
    types = [value for number, _, value in found if number == 3]
    return (
        kinds.get(2) == LENGTH
        and kinds.get(3) == VARINT
        and kinds.get(1, VARINT) == VARINT
        and set(kinds) <= set(range(1, 16))
        and all(isinstance(value, int) and value < _MOST_TYPES for value in types)
    )


def read_nodes(source: Source) -> tuple[str, list[Node]]:
    """Return the version of the schema, and all nodes.

    Raises
    ------
    InputError
        The file is cut off, is no such trace, or two nodes have one id.
    """
    version, nodes = "", []
    try:
        for i, message in enumerate(messages(source.content())):
            if i == 0:
                version = _version(message)
            else:
                nodes.append(_node(message))
    except ValueError as error:
        raise source.error(
            f"no execution trace, or it is cut off ({error}, after {len(nodes)} nodes). Copy it "
            "again."
        ) from None
    if not nodes:
        raise source.error("no node in this trace. It may be cut off: copy it again.")
    if len({node.id for node in nodes}) < len(nodes):
        raise source.error(
            "two nodes have one id: several traces may be in one file. Give one file for each."
        )
    return version, nodes


def _version(message: bytes) -> str:
    for number, kind, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if number == 2 and kind == LENGTH and isinstance(value, bytes):
            name, found = _attribute(value, frozenset(("schema",)))
            if name == "schema" and isinstance(found, str):
                return found
    return ""


def _node(message: bytes) -> Node:
    node = Node()
    for number, _, value in fields(message):
        if isinstance(value, bytes):
            _part(node, number, value)
        elif number == 1:
            node.id = value
        elif number == 3:
            node.type = value
        elif number in (4, 5):
            node.after.append(value)
        elif number == 6:
            node.start = value
        elif number == 7:
            node.duration = value
    return node


def _part(node: Node, number: int, value: bytes) -> None:
    """Take text, a packed list or a message into a node."""
    if number == 2:
        node.name = value.decode("utf-8", "replace")
    elif number in (4, 5):
        node.after += varints(value)
    elif number == 8:
        node.shapes = _shapes(value)
    elif number == 10 and value.startswith(_WANTED_STARTS):
        name, found = _attribute(value, _WANTED)
        if found is not None:
            node.attributes[name] = found


def _shapes(message: bytes) -> str:
    found = (v for number, _, v in fields(message) if number == 2 and isinstance(v, bytes))
    return next((value.decode("utf-8", "replace") for value in found), "")


def _attribute(message: bytes, wanted: frozenset[str]) -> tuple[str, Any]:
    """Return the name of an attribute and, if it is wanted and no list, its value."""
    name = ""
    for number, kind, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif name in wanted and number > 2:
            return name, _value(number, kind, value)
    return name, None


def _value(number: int, kind: int, value: int | bytes) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") if number == 29 else None
    if number == 27:
        return bool(value)
    if kind == FIXED64:
        return double(value) if number == 3 else value
    if kind == FIXED32:
        return single(value) if number == 5 else value
    if number in (15, 17):  # zigzag: the sign is in the last bit
        return (value >> 1) ^ -(value & 1)
    return signed(value) if number in (7, 9) else value


def edges(nodes: list[Node]) -> Iterator[tuple[int, int]]:
    """Yield what must be finished before what, of nodes that there are."""
    known = {node.id for node in nodes}
    for node in nodes:
        for before in dict.fromkeys(node.after):
            if before in known:
                yield before, node.id
