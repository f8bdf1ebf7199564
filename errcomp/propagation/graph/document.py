"""The document that carries a prediction from one layer to the next, between tools.

Strict JSON, versioned, every key checked; `schema` describes it as JSON Schema, and the file
``prediction.schema.json`` beside this module is what it returns.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from errcomp.errors import InputError
from errcomp.propagation.graph._fields import (
    Field,
    choice,
    integer,
    listed,
    name,
    number,
    read_object,
    shown,
    text,
)
from errcomp.propagation.graph._node import Node, read_node, registered, walk
from errcomp.propagation.graph.collectives import UNITS, Collective
from errcomp.propagation.graph.prediction import LAYERS, Input, Prediction, Provenance
from errcomp.propagation.graph.quantities import attach
from errcomp.propagation.psd import check_correlation
from errcomp.propagation.terms import KINDS, Floats, Level, Terms
from errcomp.system.files import replacing
from errcomp.system.strict_json import loads

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


# Terms as rows of a document: written, read and checked.

_GROUP = integer(0)


def _groups(value: Any, where: str) -> list[int]:
    if not isinstance(value, list):
        raise InputError(f"{where}: must be a list of group numbers, got {shown(value)}")
    return [_GROUP.check(code, f"{where}[{i}]") for i, code in enumerate(value)]


#: Keys of one term; those with a default may be missing.
TERM: Mapping[str, Field] = {
    "id": name(),
    "class": name(),
    "value": number(),
    "count": integer(1),
    "bias": number(),
    "spread": number(low=0),
    "groups": Field(_groups, {"type": "array", "items": dict(_GROUP.schema)}),
}
_DEFAULTS = {"count": 1, "bias": 0.0, "spread": 0.0, "groups": []}

#: Keys of the distribution: ``df`` is null for normal errors.
DISTRIBUTION: Mapping[str, Field] = {"kind": choice(KINDS), "df": number(above=0)}

#: Keys of a level of the correlation; instead of levels there may be a matrix.
LEVEL: Mapping[str, Field] = {"name": name(), "share": number(low=0, high=1)}
_ENTRY = number(low=-1, high=1)
_ROW = {"type": "array", "items": dict(_ENTRY.schema)}
CORRELATION: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "levels": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {key: dict(field.schema) for key, field in LEVEL.items()},
                "required": list(LEVEL),
                "additionalProperties": False,
            },
        },
        "matrix": {"type": "array", "items": _ROW, "minItems": 1},
    },
    "oneOf": [{"required": ["levels"]}, {"required": ["matrix"]}],
    "additionalProperties": False,
}


def term_documents(terms: Terms) -> dict[str, Any]:
    """Return the keys ``distribution``, ``correlation`` and ``terms`` of a document."""
    if terms.matrix is None:
        levels = [{"name": v.name, "share": float(v.share)} for v in terms.levels]
        correlation: dict[str, Any] = {"levels": levels}
    else:
        correlation = {"matrix": terms.matrix.tolist()}
    columns = {
        "id": terms.ids.tolist(),
        "class": terms.classes.tolist(),
        "value": terms.value.tolist(),
        "count": terms.count.tolist(),
        "bias": terms.bias.tolist(),
        "spread": terms.spread.tolist(),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if terms.levels:
        codes = np.stack([level.codes for level in terms.levels], axis=1).tolist()
        for row, groups in zip(rows, codes, strict=True):
            row["groups"] = groups
    df = None if math.isinf(terms.df) else float(terms.df)
    return {
        "distribution": {"kind": terms.kind, "df": df},
        "correlation": correlation,
        "terms": rows,
    }


def read_terms(document: Mapping[str, Any], unit: str) -> Terms:
    """Return the terms of a document, checked."""
    where = "distribution"
    law = read_object(document[where], where, DISTRIBUTION, ["kind"])
    kind = DISTRIBUTION["kind"].check(law["kind"], f"{where}.kind")
    df = law.get("df")
    df = math.inf if df is None else DISTRIBUTION["df"].check(df, f"{where}.df")
    rows = _read_rows(document["terms"], kind)
    names, shares, matrix = _read_correlation(document["correlation"], rows)
    for i, row in enumerate(rows):
        if len(row["groups"]) != len(names):
            raise InputError(
                f"terms[{i}].groups: must have one group for each of the {len(names)} levels of "
                f"the correlation, got {shown(row['groups'])}"
            )
    codes = np.array([row["groups"] for row in rows], dtype=np.int64).reshape(len(rows), -1)
    levels = []
    for k, (level, share) in enumerate(zip(names, shares, strict=True)):
        _, compact = np.unique(codes[:, k], return_inverse=True)
        levels.append(Level(level, compact.astype(np.int64), share))
    _check_nested(levels)
    return Terms(
        ids=np.array([row["id"] for row in rows]),
        classes=np.array([row["class"] for row in rows]),
        value=np.array([row["value"] for row in rows]),
        count=np.array([row["count"] for row in rows], dtype=np.int64),
        bias=np.array([row["bias"] for row in rows]),
        spread=np.array([row["spread"] for row in rows]),
        levels=tuple(levels),
        matrix=matrix,
        kind=kind,
        df=df,
        unit=unit,
    )


def _read_rows(items: Any, kind: str) -> list[dict[str, Any]]:
    if not isinstance(items, list) or not items:
        raise InputError(f"terms: must be a list of at least one term, got {shown(items)}")
    rows: list[dict[str, Any]] = []
    first: dict[str, int] = {}
    for i, item in enumerate(items):
        path = f"terms[{i}]"
        read_object(item, path, TERM, ["id", "class", "value"])
        row = {
            key: TERM[key].check(value, f"{path}.{key}")
            for key, value in {**_DEFAULTS, **item}.items()
        }
        if kind == "log-ratio" and row["value"] <= 0:
            raise InputError(
                f"{path}.value: must be greater than 0 for log-ratio errors, got {row['value']:g}"
            )
        at = first.setdefault(row["id"], i)
        if at != i:
            raise InputError(
                f"{path}.id: {shown(row['id'])} is also the id of terms[{at}]. Give each term its "
                "own."
            )
        rows.append(row)
    return rows


def _read_correlation(
    value: Any, rows: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[float], Floats | None]:
    """Return the names and shares of the levels, or the matrix."""
    where = "correlation"
    read_object(value, where, ["levels", "matrix"], [])
    if ("levels" in value) == ("matrix" in value):
        raise InputError(
            f"{where}: needs either levels or a matrix, got {listed(value) or 'neither'}"
        )
    if "matrix" in value:
        return [], [], _read_matrix(value["matrix"], rows)
    if not isinstance(value["levels"], list):
        raise InputError(f"{where}.levels: must be a list, got {shown(value['levels'])}")
    names: list[str] = []
    shares: list[float] = []
    for i, item in enumerate(value["levels"]):
        path = f"{where}.levels[{i}]"
        read_object(item, path, LEVEL, LEVEL)
        level = LEVEL["name"].check(item["name"], f"{path}.name")
        if level in names:
            raise InputError(f"{path}.name: there are two levels {shown(level)}. Rename one.")
        names.append(level)
        shares.append(LEVEL["share"].check(item["share"], f"{path}.share"))
    if sum(shares) > 1 + 1e-9:
        raise InputError(
            f"{where}.levels: the shares sum to {sum(shares):g}, at most 1 is there to share"
        )
    return names, shares, None


def _read_matrix(value: Any, rows: Sequence[Mapping[str, Any]]) -> Floats:
    where, n = "correlation.matrix", len(rows)
    lists = value if isinstance(value, list) else []
    if len(lists) != n or any(not isinstance(row, list) or len(row) != n for row in lists):
        raise InputError(
            f"{where}: must be {n} lists of {n} numbers, one for each term, got {shown(value)}"
        )
    checked = [
        [_ENTRY.check(entry, f"{where}[{i}][{j}]") for j, entry in enumerate(row)]
        for i, row in enumerate(lists)
    ]
    try:
        return check_correlation(checked, names=[row["id"] for row in rows])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _check_nested(levels: Sequence[Level]) -> None:
    """Every group lies within one group of the level before."""
    for coarse, fine in itertools.pairwise(levels):
        parent = np.zeros(int(fine.codes.max()) + 1, dtype=np.int64)
        parent[fine.codes] = coarse.codes
        astray = np.flatnonzero(parent[fine.codes] != coarse.codes)
        if len(astray):
            raise InputError(
                f"terms[{int(astray[0])}].groups: its group at level {fine.name!r} also has terms "
                f"of another group at level {coarse.name!r}. Levels are nested from coarse to "
                "fine: number the groups anew."
            )
