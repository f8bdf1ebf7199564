"""Chakra: execution traces, as protobuf (.et) and as the JSON that PyTorch writes."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core import protobuf as wire
from errcomp.readers.core.output import prediction
from errcomp.readers.core.sheet import as_dropped
from errcomp.system.strict_json import DoubledNameError, refuse_doubles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl
    from numpy.typing import NDArray


# Nodes of a Chakra execution trace: the protobuf messages of et_def.proto, decoded.

#: Types of nodes and of collectives, by number.
TYPES = (
    *("invalid", "metadata", "memory load", "memory store", "compute", "send", "receive"),
    *("collective", "storage", "batch", "checkpoint"),
)
METADATA = 1
#: Newer schemas add types: accept numbers up to this one.
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

#: Nodes that are decoded together.
_BLOCK = 1 << 17
#: First bytes of these: most attributes of a node are others and need not be decoded.
_WANTED_STARTS = tuple(b"\n" + bytes([len(name)]) + name.encode() for name in sorted(_WANTED))


@dataclass(slots=True)
class Node:
    """A node of a trace.

    Attributes
    ----------
    id : int
    name : str
    type : int
        Index into `TYPES`.
    after : list of int
        Nodes that it depends on (control and data).
    start, duration : int
        Microseconds; 0 where missing.
    shapes : str
        Shapes of its inputs.
    attributes : dict
        The attributes that are used here.
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
    """Say whether a trace begins here: global metadata, then a node, each after its length."""
    messages = []
    try:
        for message in wire.messages(head):
            messages.append(list(wire.fields(message)))
            if len(messages) == 2:
                break
    except ValueError:
        # The head may cut off the first message, if that is long.
        if not messages:
            return _begins_long(head)
    if not messages or not _is_metadata(messages[0]):
        return False
    return _is_node(messages[1]) if len(messages) > 1 else _has_version(messages[0])


def _begins_long(head: bytes) -> bool:
    """Say whether metadata begin here that are longer than the head: a named attribute."""
    size = re.match(rb"[\x80-\xff]{1,4}[\x01-\x7f]\x12[\x01-\x7f]\x0a[\x01-\x7f]schema", head)
    return size is not None


def _is_metadata(fields: list[tuple[int, int, int | bytes]]) -> bool:
    return all(number in (1, 2) and kind == wire.LENGTH for number, kind, _ in fields)


def _has_version(fields: list[tuple[int, int, int | bytes]]) -> bool:
    return any(
        number == 1 and isinstance(value, bytes) and _VERSION.fullmatch(value) is not None
        for number, _, value in fields
    )


def _is_node(fields: list[tuple[int, int, int | bytes]]) -> bool:
    kinds = {number: kind for number, kind, _ in fields}
    types = [value for number, _, value in fields if number == 3]
    return (
        kinds.get(2) == wire.LENGTH
        and kinds.get(3) == wire.VARINT
        and kinds.get(1, wire.VARINT) == wire.VARINT
        and set(kinds) <= set(range(1, 16))
        and all(isinstance(value, int) and value < _MOST_TYPES for value in types)
    )


def read_nodes(source: Source) -> tuple[str, list[Node]]:
    """Return the version of the schema, and all nodes.

    Raises
    ------
    InputError
        The file is cut off or not such a trace, or two nodes have the same id.
    """
    content = source.content()
    version: str = ""
    nodes: list[Node] = []
    try:
        for i, message in enumerate(wire.messages(content)):
            if i == 0:
                version = _version(message)
                if (together := _nodes_together(content)) is not None:
                    nodes = together
                    break
            else:
                nodes.append(_node(message))
    except ValueError as error:
        raise source.error(
            f"not an execution trace, or cut off ({error}, after {len(nodes)} nodes). Copy it "
            "again."
        ) from None
    if not nodes:
        raise source.error("this trace has no nodes. The file may be incomplete: copy it again.")
    if len({node.id for node in nodes}) < len(nodes):
        raise source.error(
            "two nodes have the same id: the file may hold several traces. Give one file per trace."
        )
    return version, nodes


def _nodes_together(content: bytes) -> list[Node] | None:
    """Decode all messages but the first as nodes; None if one of them is unusual."""
    places = wire.places(content)
    if places is None:
        return None
    data = np.frombuffer(content, np.uint8)
    nodes: list[Node] = []
    texts: dict[bytes, str] = {}
    known: dict[bytes, tuple[str, Any]] = {}
    for first in range(1, len(places[0]), _BLOCK):
        starts, ends = (place[first : first + _BLOCK] for place in places)
        found = wire.columns(data, starts, ends, dict.fromkeys((1, 3, 6, 7), 0), (2, 8, 10), (4, 5))
        if found is None:
            return None
        names, shapes = ([""] * len(starts) for _ in range(2))
        after: list[list[int]] = [[] for _ in names]
        attributes: list[dict[str, Any]] = [{} for _ in names]
        for which, text in _texts(content, found.parts[2]):
            if text not in texts:
                texts[text] = text.decode("utf-8", "replace")
            names[which] = texts[text]
        for which, text in _texts(content, found.parts[8]):
            shapes[which] = _shapes(text)
        for which, text in _texts(content, found.parts[10]):
            if text.startswith(_WANTED_STARTS):
                if text not in known:
                    known[text] = _attribute(text, _WANTED)
                name, value = known[text]
                if value is not None:
                    attributes[which][name] = value
        numbers = (column.view(np.uint64).tolist() for column in found.lists[:2])
        ranges = (column.tolist() for column in found.lists[2:])
        for which, value, begin, end in zip(*numbers, *ranges, strict=True):
            after[which] += [value] if begin < 0 else wire.varints(content[begin:end])
        one, kind, start, time = (found.numbers[n].view(np.uint64).tolist() for n in (1, 3, 6, 7))
        nodes += map(Node, one, names, kind, after, start, time, shapes, attributes)
    return nodes


def _texts(content: bytes, parts: Sequence[NDArray[np.int64]]) -> Iterator[tuple[int, bytes]]:
    for which, begin, end in zip(*(column.tolist() for column in parts), strict=True):
        yield which, content[begin:end]


def _version(message: bytes) -> str:
    for number, kind, value in wire.fields(message):
        if number == 1 and isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if number == 2 and kind == wire.LENGTH and isinstance(value, bytes):
            name, schema = _attribute(value, frozenset(("schema",)))
            if name == "schema" and isinstance(schema, str):
                return schema
    return ""


def _node(message: bytes) -> Node:
    node = Node()
    for number, _, value in wire.fields(message):
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
    """Add text, a packed list or a message to a node."""
    if number == 2:
        node.name = value.decode("utf-8", "replace")
    elif number in (4, 5):
        node.after += wire.varints(value)
    elif number == 8:
        node.shapes = _shapes(value)
    elif number == 10 and value.startswith(_WANTED_STARTS):
        name, content = _attribute(value, _WANTED)
        if content is not None:
            node.attributes[name] = content


def _shapes(message: bytes) -> str:
    parts = (v for number, _, v in wire.fields(message) if number == 2 and isinstance(v, bytes))
    return next((value.decode("utf-8", "replace") for value in parts), "")


def _attribute(message: bytes, wanted: frozenset[str]) -> tuple[str, Any]:
    """Return the name of an attribute and, if wanted and not a list, its value."""
    name = ""
    for number, kind, value in wire.fields(message):
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
    if kind == wire.FIXED64:
        return wire.double(value) if number == 3 else value
    if kind == wire.FIXED32:
        return wire.single(value) if number == 5 else value
    if number in (15, 17):  # zigzag: the sign is in the last bit
        return (value >> 1) ^ -(value & 1)
    return wire.signed(value) if number in (7, 9) else value


def edges(nodes: list[Node]) -> Iterator[tuple[int, int]]:
    """Yield the dependencies between nodes of the trace: (before, after)."""
    known = {node.id for node in nodes}
    for node in nodes:
        for before in dict.fromkeys(node.after):
            if before in known:
                yield before, node.id


# Operators of the execution trace that PyTorch writes as JSON.

_ROOT = "[pytorch|profiler|execution_"


class _JsonNode(msgspec.Struct):
    """The fields of a node that are used."""

    id: int
    name: str
    parent: Any = None
    ctrl_deps: Any = None
    rf_id: Any = None
    attrs: Any = None
    inputs: msgspec.Raw = msgspec.Raw(b"")
    input_shapes: msgspec.Raw = msgspec.Raw(b"")
    dur: Any = None
    ts: Any = None
    stream: Any = None
    cat: str | None = None


class _JsonTrace(msgspec.Struct):
    nodes: list[_JsonNode]


def read_operators(source: Source) -> tuple[pl.DataFrame, int]:
    """Return one row per operator, and the number of other nodes.

    Raises
    ------
    InputError
        It is not JSON of this form, or has no operator.
    """
    import polars as pl

    nodes = _decoded(source)
    operators = [node for node in nodes if not node.name.startswith(_ROOT)]
    if not operators:
        raise source.error(
            "this trace has no operators. The file may be incomplete: copy it again."
        )
    columns: dict[str, list[Any]] = {
        "measured": [_time(node.dur) for node in operators],
        "status": [_NO_TIME if _time(node.dur) is None else None for node in operators],
        "kernel": [node.name for node in operators],
        "kernel_class": [node.cat for node in operators],
        "node": [node.id for node in operators],
        "parent": [_parent(node) for node in operators],
        "record_function": [_record_function(node) for node in operators],
        "start": [_time(node.ts) for node in operators],
        "stream": [None if node.stream is None else str(node.stream) for node in operators],
        "shape": [_shape(node) for node in operators],
    }
    frame = pl.DataFrame(columns, strict=False, infer_schema_length=None)
    return frame, len(nodes) - len(operators)


def _decoded(source: Source) -> list[_JsonNode]:
    try:
        nodes = msgspec.json.decode(source.text, type=_JsonTrace).nodes
        names = ("id", "name", "parent", "dur", "ts", "cat")
        refuse_doubles(
            source.text,
            {name: sum(getattr(node, name) is not None for node in nodes) for name in names},
        )
        return nodes
    except DoubledNameError as error:
        raise source.error(f"{error}. Copy the file again.") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise source.error(
            f"not an execution trace of PyTorch, or cut off ({error}). Copy it again."
        ) from None


def _time(value: Any) -> float | None:
    """Return a time; None for 0 and for values that are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e300:
        return None
    return float(value)


def _whole_number(value: Any) -> int | None:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and abs(value) < 1 << 62 else None


def _parent(node: _JsonNode) -> int | None:
    """Return the enclosing operator: ``ctrl_deps`` since schema 1.0.2."""
    return _whole_number(node.ctrl_deps) if node.parent is None else _whole_number(node.parent)


def _record_function(node: _JsonNode) -> int | None:
    if node.rf_id is not None:
        return _whole_number(node.rf_id)
    attributes = node.attrs if isinstance(node.attrs, list) else []
    for attribute in attributes:
        if isinstance(attribute, dict) and attribute.get("name") == "rf_id":
            return _whole_number(attribute.get("value"))
    return None


def _shape(node: _JsonNode) -> str | None:
    """Return the shapes of the inputs: ``[[512,3,224,224],[64]]``, without those of numbers."""
    text = bytes(node.input_shapes)
    try:
        inputs = json.loads(text) if text else json.loads(bytes(node.inputs) or b"null")
    except (ValueError, RecursionError):
        return None
    if isinstance(inputs, dict):
        inputs = inputs.get("shapes")
    if not isinstance(inputs, list):
        return None
    sizes = [shape for shape in inputs if isinstance(shape, list) and shape]
    known = [shape for shape in sizes if all(isinstance(size, int) for size in shape)]
    return ";".join("x".join(map(str, shape)) for shape in known) or None


_NO_TIME = "no duration in the trace"
_LONGEST = 4000
_COMMUNICATION = frozenset(TYPES.index(name) for name in ("send", "receive", "collective"))
#: Attributes of nodes: their names here, and their types.
_KEYS: dict[str, tuple[str, type]] = {
    "comm_size": ("size_bytes", int),
    "comm_src": ("from_rank", int),
    "comm_dst": ("to_rank", int),
    "pg_name": ("group", str),
    "num_ops": ("operations", int),
    "tensor_size": ("tensor_bytes", int),
    "rf_id": ("record_function", int),
    "is_cpu_op": ("host", bool),
}


def read(path: AnyPath) -> Output:
    r"""Read execution traces: of Chakra (``.et``), or of PyTorch's ExecutionTraceObserver (JSON).

    Parameters
    ----------
    path : path
        A trace of one rank, or a folder or archive of traces.

    Returns
    -------
    Output
        One row for each ``node``: ``time`` (us) on the machine that was traced, with the key
        ``host`` for operators of the CPU (without the time of nested operators); level
        "collective" with ``collective``, ``size_bytes`` for communication. A synthetic workload has
        no times: its rows have a status. The JSON of PyTorch has times only after
        ``chakra_trace_link``; ``record_function`` links its operators to the profiler's trace
        ("Record function id").

        ``graph`` of one ``.et`` makes the ``errcomp-prediction`` document of its nodes: each waits
        for its control and data dependencies and, if nodes have start times, for the previous node
        on its stream.

    Raises
    ------
    InputError
        The file is cut off or not such a trace, or two nodes have the same id.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "trace.0.et"
    >>> _ = path.write_bytes(b"\x07\n\x050.0.4\x0a\x08\x01\x12\x02mm\x18\x04\x38\x07")
    >>> found = read(path)
    >>> found.rows.select("node", "kernel", "kernel_class", "measured", "unit").rows()
    [(1, 'mm', 'compute', 7.0, 'us')]
    >>> found.graph()["graph"]["nodes"]
    [{'id': '1', 'chakra_node': 1, 'kernel': 'mm'}]
    """
    return read_as(path, FORMATS)


_tool = ToolFormats(
    "Chakra", gives="measurements", reference="unknown", sample="0.0.4, inputs of ASTRA-sim"
)


@_tool.reads(
    "chakra-et",
    "execution trace of a rank (.et)",
    "kernel, collective: time (us)",
    lambda source: begins_trace(source.head),
    limits="Durations are whole microseconds. A node below 1 µs is read as a node without a "
    "duration: the format does not distinguish the two. Values of tensors are left out.",
)
def _read_trace(source: Source) -> Rows:
    version, nodes = read_nodes(source)
    operators = [node for node in nodes if node.type != METADATA]
    timed = any(node.duration for node in operators)
    unknown = len({number for node in nodes for number in node.after} - {node.id for node in nodes})
    notes = []
    if unknown:
        notes.append(
            f"The trace lacks {unknown} node{'s' * (unknown > 1)} that other nodes depend on."
        )
    if not timed:
        notes.append("No node has a duration: this is a workload to simulate, not a measurement.")
    return Rows(
        _rows(operators, version),
        dropped=as_dropped("metadata nodes", len(nodes) - len(operators)),
        notes=notes,
        graph=(lambda: _document(source, version, nodes)) if timed else None,
    )


def _rows(nodes: Sequence[Node], version: str) -> pl.DataFrame:
    import polars as pl

    kinds = [TYPES[node.type] if node.type < len(TYPES) else "unknown" for node in nodes]
    columns: dict[str, list[Any]] = {
        "level": ["collective" if n.type in _COMMUNICATION else "kernel" for n in nodes],
        "measured": [float(node.duration) or None for node in nodes],
        "status": [None if node.duration else _NO_TIME for node in nodes],
        "kernel": [node.name or kind for node, kind in zip(nodes, kinds, strict=True)],
        "kernel_class": kinds,
        "node": [node.id for node in nodes],
        "collective": [_collective(node) for node in nodes],
        "stream": [_text(node.attributes.get("stream")) for node in nodes],
        "start": [node.start or None for node in nodes],
        "shape": [node.shapes or None for node in nodes],
    }
    for name, (new, kind) in _KEYS.items():
        values = [node.attributes.get(name) for node in nodes]
        columns[new] = [value if type(value) is kind else None for value in values]
    frame = pl.DataFrame(columns, strict=False, infer_schema_length=None)
    return frame.with_columns(schema=pl.lit(version))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _collective(node: Node) -> str | None:
    if node.type not in _COMMUNICATION:
        return None
    if TYPES[node.type] != "collective":
        return TYPES[node.type]
    kind = node.attributes.get("comm_type", 0)
    known = isinstance(kind, int) and 0 <= kind < len(COLLECTIVES)
    return COLLECTIVES[kind] if known else "unknown"


def _document(source: Source, version: str, nodes: Sequence[Node]) -> dict[str, Any]:
    """Return the trace as a prediction: measured times without spread."""
    ordered = sorted(nodes, key=lambda node: node.start)
    streams = all(node.start for node in nodes if "stream" in node.attributes)
    kinds = [(node.name, node.type, node.duration) for node in ordered if node.duration]
    names = _names(kinds)
    items = []
    for node in ordered:
        item: dict[str, Any] = {"id": str(node.id), "chakra_node": node.id}
        if node.duration:
            item["kernel"] = names[node.name, node.type, node.duration]
        else:
            item["duration"] = 0.0
        if streams and (stream := _text(node.attributes.get("stream"))):
            item["stream"] = stream
        items.append(item)
    counts = Counter(kinds)
    terms = [
        {
            "id": names[kind],
            "class": TYPES[kind[1]] if kind[1] < len(TYPES) else "unknown",
            "value": float(kind[2]),
            "count": count,
        }
        for kind, count in counts.items()
    ]
    return prediction(
        source.path.name,
        terms,
        items,
        ((str(before), str(after)) for before, after in edges(list(nodes))),
        tool="Chakra",
        tool_version=version,
        created=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        inputs=[{"name": source.path.name, "sha256": hashlib.sha256(source.content()).hexdigest()}],
        note="Durations are from the trace and have no spread yet: set `spread` for each of the "
        "`terms`.",
    )


def _names(kinds: Sequence[tuple[str, int, int]]) -> dict[tuple[str, int, int], str]:
    """Return a name for each kind: that of its nodes, numbered if times differ."""
    names: dict[tuple[str, int, int], str] = {}
    taken: Counter[str] = Counter()
    for kind in dict.fromkeys(kinds):
        # Names must not hold zero characters, and have a limited length.
        plain = kind[0].replace("\0", "")[:_LONGEST] or "node"
        name = plain
        while name in taken:
            taken[plain] += 1
            name = f"{plain} #{taken[plain]}"
        taken[name] += 1
        names[kind] = name
    return names


@_tool.reads(
    "chakra-json",
    "PyTorch execution trace (JSON)",
    "kernel: time (us)",
    lambda source: {"schema", "pid", "nodes"} <= set(source.json_names),
    reference="hardware",
    sample="schema 1.0.1, PyTorch 2.x",
    limits="The file has times only if chakra_trace_link added them.",
)
def _read_json(source: Source) -> Rows:

    frame, left_out = read_operators(source)
    notes = []
    if frame["measured"].null_count() == len(frame):
        notes.append(
            "PyTorch writes no times into this file. The times are in the profiler's trace of the "
            "same run, where the operators have the same record function id."
        )
    reason = "threads and processes, not operators"
    return Rows(frame, dropped=as_dropped(reason, left_out), notes=notes)


FORMATS = _tool.formats
