"""A prediction with its error, for the next layer of the stack or for another tool.

The document is strict, versioned JSON, and every key is checked. `schema` returns its JSON Schema,
which is also in the file ``prediction.schema.json`` beside this module.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from errcomp.errors import InputError
from errcomp.propagation.graph._node import (
    Field,
    Node,
    choice,
    integer,
    listed,
    name,
    number,
    object_schema,
    read_fields,
    read_node,
    read_object,
    registered,
    shown,
    text,
    walk,
)
from errcomp.propagation.graph.nodes import Quantity, attach
from errcomp.propagation.graph.parallelism import UNITS, Collective
from errcomp.propagation.psd import check_correlation
from errcomp.propagation.terms import KINDS, Floats, Level, Terms
from errcomp.system.files import replacing
from errcomp.system.strict_json import loads

#: Layers of the stack, lowest first.
Layer = Literal["hardware", "kernel", "model", "system", "service"]
#: All layers, lowest first.
LAYERS: tuple[Layer, ...] = get_args(Layer)


@dataclass(frozen=True, slots=True)
class Input:
    """An input file of a prediction.

    Attributes
    ----------
    name : str
        Its name, e.g. ``"trace.0.et"``.
    sha256 : str
        Digest of its bytes: 64 hexadecimal digits in lower case.
    """

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Tool, date and inputs of a prediction.

    Attributes
    ----------
    tool, tool_version : str
        Predictor or program, e.g. ``"neusight"``, ``"1.0"``.
    created : str
        ISO 8601 date, or date and time.
    inputs : tuple of Input
        Files with their digests; Chakra node ids refer to the traces among them.
    note : str
        A note to readers.
    """

    tool: str
    tool_version: str
    created: str
    inputs: tuple[Input, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A predicted time with its error, for the next layer or tool.

    Attributes
    ----------
    name : str
        Name of the prediction, and id of its term as a leaf of the next layer.
    unit : str
        Unit of the terms and of the graph.
    level : {"hardware", "kernel", "model", "system", "service"}
        Layer of the terms.
    terms : Terms
        The predicted times with their errors, without the graph's own quantities (`attach` adds
        them).
    provenance : Provenance
        Their source.
    graph : Node or None
        How the terms make up the whole; None: terms for another graph.
    """

    name: str
    unit: str
    level: Layer
    terms: Terms
    provenance: Provenance
    graph: Node | None = None

    @classmethod
    def single(
        cls,
        quantity: Quantity,
        *,
        unit: str,
        level: Layer,
        provenance: Provenance,
        df: float = float("inf"),
    ) -> Prediction:
        """Make a prediction of a single quantity: the result of one layer as a leaf of the next.

        Examples
        --------
        >>> iteration = Quantity("iteration", 412.0, spread=0.06)
        >>> made = Provenance("errcomp", "0.1.0", "2025-01-31")
        >>> p = Prediction.single(iteration, unit="ms", level="model", provenance=made)
        >>> p.name, p.terms.spread
        ('iteration', array([0.06]))
        """
        terms = Terms(
            ids=np.array([quantity.name]),
            classes=np.array([level]),
            value=np.array([quantity.value]),
            count=np.ones(1, dtype=np.int64),
            bias=np.array([quantity.bias]),
            spread=np.array([quantity.spread]),
            kind=quantity.kind,
            df=df,
            unit=unit,
        )
        return cls(quantity.name, unit, level, terms, provenance)


FORMAT = "errcomp-prediction"
VERSION = 1
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def _created(value: Any, where: str) -> str:
    date: str = text().check(value, where)
    try:
        datetime.datetime.fromisoformat(date)
    except ValueError as error:
        raise InputError(
            f"{where}: must be an ISO 8601 date such as 2025-01-31 or 2025-01-31T12:00:00Z, got "
            f"{shown(value)}"
        ) from error
    return date


def _sha256(value: Any, where: str) -> str:
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return value
    raise InputError(f"{where}: must be 64 hexadecimal digits in lower case, got {shown(value)}")


def _inputs(value: Any, where: str) -> tuple[Input, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where}: must be a list, got {shown(value)}")
    return tuple(
        Input(**read_fields(item, f"{where}[{i}]", _INPUT, _INPUT)) for i, item in enumerate(value)
    )


_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_INPUT: Mapping[str, Field] = {"name": name(), "sha256": Field(_sha256, _DIGEST)}
_PROVENANCE: Mapping[str, Field] = {
    "tool": name(),
    "tool_version": text(),
    "created": Field(_created, {"type": "string"}),
    "note": text(),
    "inputs": Field(_inputs, {"type": "array", "items": object_schema(_INPUT, _INPUT)}),
}
#: Required keys of the provenance.
_MADE = ("tool", "tool_version", "created")
_HEAD: Mapping[str, Field] = {
    "format": choice([FORMAT]),
    "version": integer(1),
    "name": name(),
    "unit": name(),
    "level": choice(LAYERS),
}
_REQUIRED = [*_HEAD, "distribution", "correlation", "terms", "provenance"]


def to_document(prediction: Prediction) -> dict[str, Any]:
    """Return the document of a prediction as plain values for JSON.

    Examples
    --------
    >>> made = Provenance("errcomp", "0.1.0", "2025-01-31")
    >>> p = Prediction.single(Quantity("step", 5.0, 0.1), unit="ms", level="model", provenance=made)
    >>> document = to_document(p)
    >>> document["format"], document["terms"][0]["value"]
    ('errcomp-prediction', 5.0)
    """
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
        "provenance": {**asdict(made), "inputs": [asdict(item) for item in made.inputs]},
    }


def write_document(prediction: Prediction, path: str | Path) -> None:
    """Write a prediction as a JSON document, whole or not at all.

    An unreadable document is never written. The same prediction gives the same bytes.

    Parameters
    ----------
    prediction : Prediction
        The prediction.
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
            f"unit: the prediction is in {prediction.unit}, but its terms are in "
            f"{prediction.terms.unit}"
        )
    content = json.dumps(document, allow_nan=False, indent=1)
    with replacing(Path(path)) as temporary:
        temporary.write_text(content + "\n", encoding="utf-8")


def read_document(source: str | Path | Mapping[str, Any]) -> Prediction:
    """Read and check a prediction.

    Parameters
    ----------
    source : str, Path or mapping
        A file, or parsed JSON.

    Returns
    -------
    Prediction
        With groups numbered from 0.

    Raises
    ------
    InputError
        The file cannot be read, is not strict JSON, has another format, a newer version, unknown
        or missing keys, or invalid values. The message names the JSON path, such as
        ``terms[3].spread``.

    Examples
    --------
    See `write_document`.

    >>> read_document({"format": "errcomp-prediction", "version": 2})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: version: the document has version 2, but this errcomp reads ...
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
        As `read_document`, or the prediction has no graph.

    Examples
    --------
    >>> import json, tempfile
    >>> from errcomp.propagation.graph import Constant
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "job.json"
    ...     _ = path.write_text(json.dumps(Constant(1.5).to_dict()))
    ...     read_graph(path)
    Constant(value=1.5)
    """
    value = _parsed(Path(source))
    try:
        if isinstance(value, dict) and "node" in value and "format" not in value:
            return read_node(value)
        graph = _read(value).graph
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    if graph is None:
        raise InputError(f"{source}: graph: this prediction has no graph")
    return graph


def _parsed(path: Path) -> Any:
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{str(path)!r}: cannot be read ({reason}). Check the path and its permissions."
        ) from error
    try:
        return loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        at = f"byte {error.start}"
        raise InputError(f"{path}: is not valid UTF-8 ({at}). Re-export the file.") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: is not strict JSON ({error})") from error


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
        Provenance(**read_fields(document["provenance"], "provenance", _PROVENANCE, _MADE)),
        node,
    )


def _check_version(document: Mapping[str, Any]) -> None:
    """Check format and version first: keys of another version would be unknown."""
    if document.get("format") != FORMAT:
        got = shown(document["format"]) if "format" in document else "none"
        raise InputError(f"format: must be {FORMAT!r}, got {got}")
    if "version" in document:
        version = _HEAD["version"].check(document["version"], "version")
        if version > VERSION:
            raise InputError(
                f"version: the document has version {version}, but this errcomp reads versions up "
                f"to {VERSION}. Update errcomp, or get an older version of the document."
            )


def _check_units(graph: Node, unit: str) -> None:
    for node in walk(graph):
        if isinstance(node, Collective) and unit in UNITS and node.unit != unit:
            raise InputError(
                f"graph: the time of collective {node.operation} is in {node.unit}, but the terms "
                f"are in {unit}. Use one unit."
            )


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the document.

    Made from the tables that reading uses. JSON Schema cannot express some checks: unique ids,
    shares that sum to at most 1, nested groups, positive values of log-ratio terms, positive
    semi-definite matrices, graphs without cycles whose kernels are terms, one unit, and a nesting
    of at most 200 nodes.

    Examples
    --------
    >>> schema()["properties"]["format"]
    {'enum': ['errcomp-prediction']}
    """
    nodes = registered()
    df = {"oneOf": [dict(DISTRIBUTION["df"].schema), {"type": "null"}]}
    terms = {"type": "array", "items": object_schema(TERM, _TERM_REQUIRED), "minItems": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT}, version {VERSION}",
        "description": "A predicted time with its error, for use as input of another prediction.",
        **object_schema(
            {
                **_HEAD,
                "version": {"const": VERSION},
                "distribution": object_schema({**DISTRIBUTION, "df": df}, ["kind"]),
                "correlation": CORRELATION,
                "terms": terms,
                "graph": {"oneOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                "provenance": object_schema(_PROVENANCE, _MADE),
            },
            _REQUIRED,
        ),
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
#: Columns of `Terms` under their keys.
_COLUMNS = {
    "id": "ids",
    "class": "classes",
    "value": "value",
    "count": "count",
    "bias": "bias",
    "spread": "spread",
}
_TERM_REQUIRED = ("id", "class", "value")
_DEFAULTS = {"count": 1, "bias": 0.0, "spread": 0.0, "groups": []}

#: Keys of the distribution: ``df`` is null for normal errors.
DISTRIBUTION: Mapping[str, Field] = {"kind": choice(KINDS), "df": number(above=0)}

#: Keys of a level of the correlation; instead of levels there may be a matrix.
LEVEL: Mapping[str, Field] = {"name": name(), "share": number(low=0, high=1)}
_ENTRY = number(low=-1, high=1)
_ROW = {"type": "array", "items": dict(_ENTRY.schema)}
CORRELATION: Mapping[str, Any] = object_schema(
    {
        "levels": {"type": "array", "items": object_schema(LEVEL, LEVEL)},
        "matrix": {"type": "array", "items": _ROW, "minItems": 1},
    },
    oneOf=[{"required": ["levels"]}, {"required": ["matrix"]}],
)


def term_documents(terms: Terms) -> dict[str, Any]:
    """Return the keys ``distribution``, ``correlation`` and ``terms`` of a document."""
    if terms.matrix is None:
        levels = [{"name": v.name, "share": float(v.share)} for v in terms.levels]
        correlation: dict[str, Any] = {"levels": levels}
    else:
        correlation = {"matrix": terms.matrix.tolist()}
    columns = (getattr(terms, column).tolist() for column in _COLUMNS.values())
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
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
        **{column: np.array([row[key] for row in rows]) for key, column in _COLUMNS.items()},
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
        row = {**_DEFAULTS, **read_fields(item, path, TERM, _TERM_REQUIRED)}
        if kind == "log-ratio" and row["value"] <= 0:
            raise InputError(
                f"{path}.value: must be greater than 0 for log-ratio errors, got {row['value']:g}"
            )
        at = first.setdefault(row["id"], i)
        if at != i:
            raise InputError(
                f"{path}.id: {shown(row['id'])} is also the id of terms[{at}]. Give each term its "
                "own id."
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
        level = read_fields(item, path, LEVEL, LEVEL)
        if level["name"] in names:
            raise InputError(
                f"{path}.name: two levels are named {shown(level['name'])}. Rename one."
            )
        names.append(level["name"])
        shares.append(level["share"])
    if sum(shares) > 1 + 1e-9:
        raise InputError(
            f"{where}.levels: the shares sum to {sum(shares):g}, but must sum to at most 1"
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
    """Check that every group lies within one group of the level before."""
    for coarse, fine in itertools.pairwise(levels):
        parent = np.zeros(int(fine.codes.max()) + 1, dtype=np.int64)
        parent[fine.codes] = coarse.codes
        astray = np.flatnonzero(parent[fine.codes] != coarse.codes)
        if len(astray):
            raise InputError(
                f"terms[{int(astray[0])}].groups: its {fine.name!r} group lies in several "
                f"{coarse.name!r} groups. Levels must be nested from coarse to fine: renumber the "
                "groups."
            )
