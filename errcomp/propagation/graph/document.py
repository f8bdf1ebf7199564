"""The document that carries a prediction from one layer to the next, between tools.

Strict JSON, versioned, every key checked; `schema` describes it as JSON Schema, and the file
``prediction.schema.json`` beside this module is what it returns.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from errcomp._files import replacing
from errcomp.errors import InputError
from errcomp.propagation.graph._document_terms import (
    CORRELATION,
    DISTRIBUTION,
    TERM,
    read_terms,
    term_documents,
)
from errcomp.propagation.graph._fields import Field, choice, integer, name, read_object, shown, text
from errcomp.propagation.graph._node import Node, read_node, registered, walk
from errcomp.propagation.graph.collectives import UNITS, Collective
from errcomp.propagation.graph.prediction import LAYERS, Input, Prediction, Provenance
from errcomp.propagation.graph.quantities import attach
from errcomp.readers._strict import loads

__all__ = [
    "FORMAT",
    "VERSION",
    "read_document",
    "read_graph",
    "schema",
    "to_document",
    "write_document",
]

FORMAT = "errcomp-prediction"
VERSION = 1
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def _created(value: Any, where: str) -> str:
    found: str = text().check(value, where)
    try:
        datetime.datetime.fromisoformat(found)
    except ValueError as error:
        raise InputError(
            f"{where}: must be an ISO 8601 date such as 2025-01-31 or 2025-01-31T12:00:00Z, got "
            f"{shown(value)}"
        ) from error
    return found


def _sha256(value: Any, where: str) -> str:
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return value
    raise InputError(f"{where}: must be 64 hexadecimal digits in lower case, got {shown(value)}")


_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_INPUT: Mapping[str, Field] = {"name": name(), "sha256": Field(_sha256, _DIGEST)}
_PROVENANCE: Mapping[str, Field] = {
    "tool": name(),
    "tool_version": text(),
    "created": Field(_created, {"type": "string"}),
    "note": text(),
}
_HEAD: Mapping[str, Field] = {
    "format": choice([FORMAT]),
    "version": integer(1),
    "name": name(),
    "unit": name(),
    "level": choice(LAYERS),
}
_REQUIRED = [*_HEAD, "distribution", "correlation", "terms", "provenance"]


def to_document(prediction: Prediction) -> dict[str, Any]:
    """Return the document of a prediction as plain values for JSON."""
    made = prediction.provenance
    graph = prediction.graph
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": prediction.name,
        "unit": prediction.unit,
        "level": prediction.level,
        **term_documents(prediction.terms),
        "graph": None if graph is None else graph.to_dict(),
        "provenance": {
            "tool": made.tool,
            "tool_version": made.tool_version,
            "created": made.created,
            "inputs": [{"name": item.name, "sha256": item.sha256} for item in made.inputs],
            "note": made.note,
        },
    }


def write_document(prediction: Prediction, path: str | Path) -> None:
    """Write a prediction as a JSON document, whole or not at all.

    What could not be read back is not written. The same prediction gives the same bytes.

    Parameters
    ----------
    prediction : Prediction
        What is handed on.
    path : str or Path
        Target; an existing file is replaced.

    Raises
    ------
    InputError
        The prediction is not valid (with its JSON path), or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from errcomp.propagation.graph import Quantity
    >>> made = Provenance("errcomp", "0.1.0", "2025-01-31")
    >>> p = Prediction.single(Quantity("step", 5.0, 0.1), unit="ms", level="model", provenance=made)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_document(p, f"{folder}/step.json")
    ...     read_document(f"{folder}/step.json").terms.value
    array([5.])
    """
    document = to_document(prediction)
    read_document(document)
    if prediction.terms.unit not in (None, prediction.unit):
        raise InputError(
            f"unit: the prediction is in {prediction.unit}, its terms in {prediction.terms.unit}"
        )
    content = json.dumps(document, allow_nan=False, indent=1)
    with replacing(Path(path)) as temporary:
        temporary.write_text(content + "\n", encoding="utf-8")


def read_document(source: str | Path | Mapping[str, Any]) -> Prediction:
    """Read and check a prediction.

    Parameters
    ----------
    source : str, Path or mapping
        A file, or what was parsed from one.

    Returns
    -------
    Prediction
        Groups are numbered anew from 0.

    Raises
    ------
    InputError
        The file cannot be read, is no strict JSON, has another format, a newer version, unknown or
        missing keys, or values that are not valid. The message names the JSON path, such as
        ``terms[3].spread``.
    """
    if isinstance(source, Mapping):
        return _read(source)
    value = _parsed(Path(source))
    try:
        return _read(value)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def read_graph(source: str | Path) -> Node:
    """Read an execution graph from a file: a bare graph, or the graph of a prediction.

    Raises
    ------
    InputError
        As `read_document`; or the prediction has no graph.
    """
    value = _parsed(Path(source))
    try:
        if isinstance(value, dict) and "node" in value and "format" not in value:
            return read_node(value)
        graph = _read(value).graph
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    if graph is None:
        raise InputError(f"{source}: graph: this prediction has none")
    return graph


def _parsed(path: Path) -> Any:
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{str(path)!r}: cannot be read ({reason}). Check the path and who may read it."
        ) from error
    try:
        return loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: is no strict JSON ({error})") from error


def _read(document: Any) -> Prediction:
    if isinstance(document, Mapping):
        _check_version(document)
    read_object(document, "", [*_REQUIRED, "graph"], _REQUIRED)
    head = {key: field.check(document[key], key) for key, field in _HEAD.items()}
    terms = read_terms(document, head["unit"])
    graph = document.get("graph")
    node = None if graph is None else read_node(graph)
    if node is not None:
        attach(terms, node)
        _check_units(node, head["unit"])
    return Prediction(
        head["name"],
        head["unit"],
        head["level"],
        terms,
        _read_provenance(document["provenance"]),
        node,
    )


def _check_version(document: Mapping[str, Any]) -> None:
    """Say what this is before its keys are looked at: those of another version are unknown."""
    if document.get("format") != FORMAT:
        got = shown(document["format"]) if "format" in document else "none"
        raise InputError(f"format: must be {FORMAT!r}, got {got}")
    if "version" in document:
        version = _HEAD["version"].check(document["version"], "version")
        if version > VERSION:
            raise InputError(
                f"version: the document has version {version}, this errcomp reads up to version "
                f"{VERSION}. Update errcomp, or ask for an older version of the document."
            )


def _check_units(graph: Node, unit: str) -> None:
    for node in walk(graph):
        if isinstance(node, Collective) and unit in UNITS and node.unit != unit:
            raise InputError(
                f"graph: a collective ({node.operation}) gives {node.unit}, the terms are in "
                f"{unit}. Use one unit."
            )


def _read_provenance(value: Any) -> Provenance:
    where = "provenance"
    read_object(value, where, [*_PROVENANCE, "inputs"], ["tool", "tool_version", "created"])
    found = {
        key: field.check(value[key], f"{where}.{key}")
        for key, field in _PROVENANCE.items()
        if key in value
    }
    items = value.get("inputs", [])
    if not isinstance(items, list):
        raise InputError(f"{where}.inputs: must be a list, got {shown(items)}")
    inputs = []
    for i, item in enumerate(items):
        path = f"{where}.inputs[{i}]"
        read_object(item, path, _INPUT, _INPUT)
        inputs.append(
            Input(**{key: _INPUT[key].check(item[key], f"{path}.{key}") for key in _INPUT})
        )
    return Provenance(**found, inputs=tuple(inputs))


def _object(fields: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    properties = {k: dict(v.schema) if isinstance(v, Field) else v for k, v in fields.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the document.

    Made of the same tables that reading checks against. Not in it, because it cannot be said there:
    unique ids, shares that sum to at most 1, nested groups, positive values of log-ratio terms,
    matrices that are positive semi-definite, graphs without cycles whose kernels are terms, one
    unit, and a nesting of at most 200 nodes.

    Examples
    --------
    >>> schema()["properties"]["format"]
    {'enum': ['errcomp-prediction']}
    """
    nodes = registered()
    df = {"oneOf": [dict(DISTRIBUTION["df"].schema), {"type": "null"}]}
    inputs = {"type": "array", "items": _object(_INPUT, list(_INPUT))}
    document = _object(
        {
            **_HEAD,
            "version": {"const": VERSION},
            "distribution": _object({"kind": DISTRIBUTION["kind"], "df": df}, ["kind"]),
            "correlation": CORRELATION,
            "terms": {
                "type": "array",
                "items": _object(TERM, ["id", "class", "value"]),
                "minItems": 1,
            },
            "graph": {"oneOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            "provenance": _object(
                {**_PROVENANCE, "inputs": inputs}, ["tool", "tool_version", "created"]
            ),
        },
        _REQUIRED,
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT}, version {VERSION}",
        "description": "A predicted time with its error, handed from one layer to the next.",
        **document,
        "$defs": {
            "node": {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in nodes]},
            **{kind: cls.schema() for kind, cls in nodes.items()},
        },
    }
