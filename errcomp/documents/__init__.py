"""Documents that commands wrote with ``--json`` or ``-o FILE.json``, turned back into results.

``docs/json.md`` says what each holds. A document is read strictly: every key that a result is made
of must be there and of its type, and what follows from other values must agree with them, so that
a page never shows what a command did not find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from errcomp.documents._common import within
from errcomp.documents._fields import Field
from errcomp.documents._file import check_values, looks_like_document, parse, read_text
from errcomp.documents._tables import KINDS
from errcomp.errors import InputError
from errcomp.report.forms import figure
from errcomp.report.model import Cell, Column, Form, Report, Table
from errcomp.report.writing import plain
from errcomp.results import Written

__all__ = ["is_document", "load", "read", "view", "view_of_file", "view_of_rows"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind of document is made into a result, and by which command it is written anew."""

    module: str
    read: str
    command: str
    #: Function that makes the document again, where that is more than the result's `to_dict`.
    again: str = ""


_KINDS: Mapping[str, _Kind] = {
    "audit": _Kind("audit", "read_audit", "audit"),
    "propagate": _Kind("propagation", "read_propagation", "propagate", "propagation_again"),
    "validation": _Kind("propagation", "read_validation", "propagate validate"),
    "calibration": _Kind("calibration", "read_evaluation", "calibrate evaluate"),
    "half-lives": _Kind("half_lives", "read_half_lives", "halflife fit"),
    "half-life-forecast": _Kind("forecast", "read_forecast", "halflife forecast"),
    "half-life-check": _Kind("check", "read_check", "halflife check", "check_again"),
    "search": _Kind("claims", "read_search", "claims search"),
    "metrics": _Kind("figures", "read_summary", "metrics", "summary_again"),
    "drivers": _Kind("figures", "read_drivers", "metrics drivers", "drivers_again"),
    "replication": _Kind("claims", "read_replication", "replicate"),
}
#: Documents of which there is no result to make: their rows say all, or need the model.
_ROWS_ONLY = (
    *("claims", "dataset", "datasets", "figures", "readers", "histories", "history-add"),
    *("model", "calibrate-fit", "predictions", "half-life-study"),
)
_VERSION = 1
_SCHEMA = re.compile(r"errcomp\.([a-z-]{1,40})/([1-9][0-9]{0,5})")


def is_document(path: str | Path) -> bool:
    """Say whether a file is, or was meant to be, a document of errcomp.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    bool
        True for a JSON object with a key ``schema`` that begins with ``errcomp.``, be it damaged
        behind that; False for everything else, also for what is no file.

    Examples
    --------
    >>> is_document("neusight")
    False
    """
    return looks_like_document(Path(path))


def read(path: str | Path) -> tuple[str, Mapping[str, Any], Any]:
    """Read a file that a command wrote with ``-o FILE.json``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    schema : str
        E.g. ``"errcomp.audit/1"``.
    document : mapping
    result : object or None
        As of `load`; None where the document is one of rows only.

    Raises
    ------
    InputError
        The file is no such document, is damaged, or was written by a newer errcomp. The message
        names the file, the key with its path, the value seen and the remedy.
    """
    try:
        document = parse(read_text(Path(path)))
        name = _name(document)
        if name in _KINDS:
            return document["schema"], document, load(document)
        check_values(document)
        return document["schema"], document, None
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def load(document: Mapping[str, Any]) -> Any:
    """Turn a document back into the result that it was written from.

    Parameters
    ----------
    document : mapping
        What ``json.loads`` makes of it.

    Returns
    -------
    object
        ``audit``: `Audit`; ``propagate``: `Propagation` and the name of its table; ``validation``:
        `Validation`; ``calibration``: `Evaluation`; ``half-lives``: `HalfLives`;
        ``half-life-forecast``: `HalfLifeForecast`; ``half-life-check``: `ValidationCheck`;
        ``search``: `SearchResult`; ``metrics``: `Summary`; ``drivers``: `DriversResult`;
        ``replication``: `Replication`. What a document does not hold (the errors of single series
        of a history) raises InputError when it is asked for.

    Raises
    ------
    InputError
        It is no document of errcomp, of another version, or one of rows only; a key is missing or
        of another type; a value cannot be, or does not follow from the others.

    Examples
    --------
    >>> import errcomp as ec
    >>> pairs = {"predicted": [11.0, 90.0], "measured": [10.0, 100.0]}
    >>> found = load(plain({"schema": "errcomp.audit/1", **ec.audit(pairs).to_dict()}))
    >>> round(found.overall[0].figures["mape"].value, 3)
    0.1
    """
    name = _name(document)
    if name not in _KINDS:
        raise InputError(f"of {document['schema']} there is no result to make: it holds rows only.")
    kind = _KINDS[name]
    try:
        check_values(document)
        module = import_module(f"errcomp.documents.{kind.module}")
        make: Callable[[Field], Any] = getattr(module, kind.read)
        result = make(Field(document))
        again = getattr(module, kind.again)(result) if kind.again else result.to_dict()
        within(document, plain(again))
        KINDS[name](result, Field(document))
    except InputError as error:
        said = str(error).rstrip(".")
        raise InputError(
            f"{document['schema']}: {said}. Write the document again with this errcomp: errcomp "
            f"{kind.command} … -o FILE.json"
        ) from error
    return result


def view(document: Mapping[str, Any], result: Any) -> Report:
    """Return what people see of a result, as the command that wrote its document shows it.

    Parameters
    ----------
    document : mapping
    result : object
        What `load` made of it.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        A key that only the view needs is of another type.

    Examples
    --------
    >>> import errcomp as ec
    >>> pairs = {"predicted": [11.0, 90.0], "measured": [10.0, 100.0]}
    >>> document = plain({"schema": "errcomp.audit/1", **ec.audit(pairs).to_dict()})
    >>> view(document, load(document)).tables[0].title
    'Claimed and recomputed accuracy: the table given'
    """
    return KINDS[_name(document)](result, Field(document))


def view_of_file(name: str) -> Report:
    """Return what people see of a file that a command wrote with ``-o FILE.json``.

    Raises
    ------
    InputError
        It is no such document, or a damaged one.
    """
    _, document, result = read(name)
    return view_of_rows(document, name) if result is None else view(document, result)


def view_of_rows(document: Mapping[str, Any], name: str) -> Report:
    """Return the rows of a document of which nothing more is known.

    Raises
    ------
    InputError
        It has no rows.
    """
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{name}: the document has no rows that a page could show")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    kept = [key for key in keys if not any(isinstance(row.get(key), list | dict) for row in rows)]
    columns = [
        Column(key, partial(_of_row, key), _NUMBER if _is_number(rows, key) else _ANY)
        for key in kept
    ]
    left = [key for key in keys if key not in kept]
    notes = [f"Not shown, as they are nested: {', '.join(left)}."] if left else []
    schema = str(document.get("schema", "a document"))
    table = Table(f"{schema} of {name}", columns, rows, notes)
    return Report(table.title, tables=[table])


def _of_row(key: str, row: Mapping[str, Any]) -> Any:
    return row.get(key)


def _written(value: Any) -> Cell:
    return Cell("–" if value is None else repr(value) if isinstance(value, float) else str(value))


def _written_number(value: float | None) -> Cell:
    """Return the cell of a number with all its digits; a truth value is a word."""
    cell = _written(value)
    if value is None or isinstance(value, bool):
        return cell
    return figure(Written(cell.text), value)


_ANY = Form(_written)
_NUMBER = Form(_written_number, right=True)


def _is_number(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    values = [row.get(key) for row in rows if row.get(key) is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _name(document: Any) -> str:
    """Return which document this is; refuse those of other tools and versions."""
    if not isinstance(document, Mapping) or "schema" not in document:
        what = "it has no key 'schema'" if isinstance(document, Mapping) else "it is no object"
        raise InputError(
            f"is JSON, but no document of errcomp: {what}. Give what a command of errcomp wrote "
            "with -o FILE.json."
        )
    schema = document["schema"]
    found = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if found is None:
        raise InputError(
            f"is JSON, but no document of errcomp: its key 'schema' is {schema!r:.60}. Give what a "
            "command of errcomp wrote with -o FILE.json."
        )
    name, version = found[1], int(found[2])
    if version > _VERSION or name not in (*_KINDS, *_ROWS_ONLY):
        raise InputError(
            f"its key 'schema' is {schema!r}: written by a newer errcomp. This one reads "
            f"errcomp.NAME/{_VERSION} with the names {', '.join(sorted((*_KINDS, *_ROWS_ONLY)))}. "
            "Upgrade errcomp, or write the document again with this one."
        )
    return name
