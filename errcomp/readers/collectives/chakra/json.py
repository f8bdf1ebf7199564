"""Operators of the execution trace that PyTorch writes as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from errcomp.readers.core.source import Source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_operators"]

_ROOT = "[pytorch|profiler|execution_"
_NO_TIME = "no duration in the trace"


class _Node(msgspec.Struct):
    """What is used of a node; the rest is passed over."""

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


class _Trace(msgspec.Struct):
    nodes: list[_Node]


def read_operators(source: Source) -> tuple[pl.DataFrame, int]:
    """Return a row for each operator, and how many nodes are none.

    Raises
    ------
    InputError
        It is no JSON of this form, or there is no operator.
    """
    import polars as pl

    nodes = _decoded(source)
    operators = [node for node in nodes if not node.name.startswith(_ROOT)]
    if not operators:
        raise source.error("no operator in this trace. It may be cut off: copy it again.")
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
    same = {"tool": "Chakra", "level": "kernel", "quantity": "time", "unit": "us"}
    fixed = {name: pl.lit(value) for name, value in same.items()}
    return frame.with_columns(**fixed), len(nodes) - len(operators)


def _decoded(source: Source) -> list[_Node]:
    try:
        return msgspec.json.decode(source.text, type=_Trace).nodes
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise source.error(
            f"no execution trace of PyTorch, or it is cut off ({error}). Copy it again."
        ) from None


def _time(value: Any) -> float | None:
    """Return a time; 0 and what is no number are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e300:
        return None
    return float(value)


def _whole(value: Any) -> int | None:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and abs(value) < 1 << 62 else None


def _parent(node: _Node) -> int | None:
    """Return the operator that this one is within: ``ctrl_deps`` since schema 1.0.2."""
    return _whole(node.ctrl_deps) if node.parent is None else _whole(node.parent)


def _record_function(node: _Node) -> int | None:
    if node.rf_id is not None:
        return _whole(node.rf_id)
    attributes = node.attrs if isinstance(node.attrs, list) else []
    for one in attributes:
        if isinstance(one, dict) and one.get("name") == "rf_id":
            return _whole(one.get("value"))
    return None


def _shape(node: _Node) -> str | None:
    """Return the shapes of the inputs: ``[[512,3,224,224],[64]]``, without those of numbers."""
    text = bytes(node.input_shapes)
    try:
        found = json.loads(text) if text else json.loads(bytes(node.inputs) or b"null")
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        found = found.get("shapes")
    if not isinstance(found, list):
        return None
    sizes = [one for one in found if isinstance(one, list) and one]
    known = [one for one in sizes if all(isinstance(size, int) for size in one)]
    return ";".join("x".join(map(str, one)) for one in known) or None
