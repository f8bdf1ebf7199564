"""Terms as rows of a document: written, read and checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
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
)
from errcomp.propagation.psd import check_correlation
from errcomp.propagation.terms import KINDS, Floats, Level, Terms

__all__ = ["CORRELATION", "DISTRIBUTION", "TERM", "read_terms", "term_documents"]

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
