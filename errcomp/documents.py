"""Read documents that commands wrote with ``--json`` or ``-o FILE.json``.

``docs/json.md`` describes each kind, and the site has a JSON Schema of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from errcomp.codec import DIALECT, Document, decode, schema_of
from errcomp.codec.text import check_values, looks_like_document, parse, read_text
from errcomp.errors import InputError
from errcomp.report.forms import figure
from errcomp.report.model import Cell, Column, Form, Report, Table
from errcomp.results import Written

__all__ = [
    "is_document",
    "json_schema",
    "load",
    "read",
    "read_result",
    "result_class",
    "view_of_file",
    "view_of_rows",
]

#: The class of each kind of document; it is imported when such a document is read.
CLASSES = {
    "audit": "errcomp.claims.auditing.Audit",
    "propagate": "errcomp.propagation.outcome.Propagation",
    "validation": "errcomp.propagation.validation.Validation",
    "calibration": "errcomp.calibration.evaluation.Evaluation",
    "plausibility": "errcomp.calibration.plausibility.Plausibility",
    "adaptation": "errcomp.calibration.transfer.adaptation.Adaptation",
    "plan-runs": "errcomp.calibration.transfer.choosing.RunPlan",
    "plan-claim": "errcomp.planning.claim.ClaimPlan",
    "plan-gate": "errcomp.halflife.gate.planning.GatePlan",
    "half-lives": "errcomp.halflife.results.HalfLives",
    "half-life-forecast": "errcomp.halflife.forecast.results.HalfLifeForecast",
    "half-life-check": "errcomp.halflife.gate.checking.ValidationCheck",
    "half-life-dry-run": "errcomp.halflife.gate.dry_run.DryRun",
    "half-life-blame": "errcomp.halflife.steps.blame.Blame",
    "error-budget": "errcomp.measurements.results.ErrorBudget",
    "leakage": "errcomp.measurements.leaking.Leakage",
    "measurements": "errcomp.measurements.results.MeasurementCheck",
    "comparison": "errcomp.decisions.comparing.Comparison",
    "decisions": "errcomp.decisions.results.Decisions",
    "decision-kinds": "errcomp.decisions.kinds.DecisionKinds",
    "search": "errcomp.claims.search.SearchResult",
    "forensics": "errcomp.claims.forensics.Forensics",
    "board": "errcomp.claims.board.Board",
    "metrics": "errcomp.summary.Summary",
    "drivers": "errcomp.drivers.results.DriversResult",
    "replication": "errcomp.claims.replicate.judging.Replication",
}
#: Documents without a class of results: they hold only rows, or need the model.
ROWS_ONLY = (
    *(
        "claims",
        "claims-check",
        "claims-extract",
        "dataset",
        "datasets",
        "figures",
        "readers",
        "histories",
        "history-add",
    ),
    *("model", "calibrate-fit", "predictions", "half-life-study", "doctor"),
)
_VERSION = 1
_SCHEMA = re.compile(r"errcomp\.([a-z-]{1,40})/([1-9][0-9]{0,5})")


def is_document(path: str | Path) -> bool:
    """Return whether a file looks like a document of errcomp, even if it is damaged.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    bool
        True for a JSON object with a key ``schema`` that begins with ``errcomp.``, even if the rest
        is damaged; False for everything else, and if the file does not exist.

    Examples
    --------
    >>> is_document("neusight")
    False
    """
    return looks_like_document(Path(path))


def read(path: str | Path) -> tuple[str, Mapping[str, Any], Any]:
    """Read a file that a command wrote with ``-o FILE.json``, and name its schema.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    schema : str
        E.g. ``"errcomp.audit/1"``.
    document : mapping
    result : object or None
        As from `load`; None if the document holds only rows.

    Raises
    ------
    InputError
        The file is not such a document, is damaged, or was written by a newer errcomp. The message
        names the file, the key with its path, the value and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> import errcomp as ec
    >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "audit.json")
    ...     _ = path.write_text(audit.to_json())
    ...     schema, document, result = read(path)
    >>> schema, document["n"], result
    ('errcomp.audit/1', 2, Audit(MAPE 10.00 %, n=2))
    """
    try:
        document = parse(read_text(Path(path)))
        if _name(document) in CLASSES:
            return document["schema"], document, load(document)
        check_values(document)
        return document["schema"], document, None
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def read_result(path: str | Path) -> Any:
    """Read a result from the file that a command wrote with ``-o FILE.json`` or ``--json``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    object
        As from `load`: the result of the command.

    Raises
    ------
    InputError
        As for `read`; or the document holds only rows.

    Examples
    --------
    >>> import tempfile
    >>> import errcomp as ec
    >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "audit.json")
    ...     _ = path.write_text(audit.to_json())
    ...     ec.read_result(path).to_json() == audit.to_json()
    True
    """
    schema, _, result = read(path)
    if result is None:
        raise InputError(f"{path}: {_rows_only(schema)}")
    return result


def load(document: Mapping[str, Any]) -> Any:
    """Turn a document back into the result that it was written from.

    Parameters
    ----------
    document : mapping
        From ``json.loads`` or ``result.to_dict()``.

    Returns
    -------
    object
        ``audit``: `Audit`; ``propagate``: `Propagation`; ``validation``: `Validation`;
        ``calibration``: `Evaluation`; ``half-lives``: `HalfLives`; ``half-life-forecast``:
        `HalfLifeForecast`; ``half-life-check``: `ValidationCheck`; ``search``: `SearchResult`;
        ``metrics``: `Summary`; ``drivers``: `DriversResult`; ``replication``: `Replication`.
        Attributes that documents do not hold (the errors of single series of a history) raise
        InputError.

    Raises
    ------
    InputError
        It is not a document of errcomp, has another version, or holds only rows; a key is missing
        or has another type; a value is impossible, or contradicts the others.

    Examples
    --------
    >>> import errcomp as ec
    >>> pairs = {"predicted": [11.0, 90.0], "measured": [10.0, 100.0]}
    >>> audit = load(ec.audit(pairs).to_dict())
    >>> round(audit.overall.figures["mape"].value, 3)
    0.1
    """
    name = _name(document)
    if name not in CLASSES:
        raise InputError(_rows_only(document["schema"]))
    return decode(result_class(name), document)


def result_class(name: str) -> type[Document]:
    """Return the result class whose documents have this name, e.g. ``audit``.

    Examples
    --------
    >>> result_class("audit").__name__
    'Audit'
    """
    module, _, cls = CLASSES[name].rpartition(".")
    found: type[Document] = getattr(import_module(module), cls)
    return found


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of the documents with this name, e.g. ``audit``.

    For documents that hold only rows, it describes nothing else.

    Examples
    --------
    >>> json_schema("audit")["properties"]["level"]["exclusiveMaximum"]
    1.0
    """
    if name in CLASSES:
        return schema_of(result_class(name))
    schema = f"errcomp.{name}/{_VERSION}"
    rows = {"type": "array", "items": {"type": "object"}}
    return {
        "$schema": DIALECT,
        "title": schema,
        "type": "object",
        "properties": {"schema": {"const": schema}, "rows": rows},
        "required": ["schema"],
    }


def _rows_only(schema: str) -> str:
    return f"{schema} cannot be read as a result, because documents of this kind hold only rows."


def view_of_file(name: str) -> Report:
    """Return the report of a file that a command wrote with ``-o FILE.json``.

    Raises
    ------
    InputError
        It is not such a document, or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import errcomp as ec
    >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "audit.json")
    ...     _ = path.write_text(audit.to_json())
    ...     view_of_file(str(path)).line
    ['MAPE 10.00 %', 'n=2']
    """
    _, document, result = read(name)
    if result is None:
        return view_of_rows(document, name)
    report: Report = result.view()
    return report


def view_of_rows(document: Mapping[str, Any], name: str) -> Report:
    """Return the rows of a document as a report.

    Raises
    ------
    InputError
        It has no rows.

    Examples
    --------
    >>> report = view_of_rows({"rows": [{"device": "H100", "n": 3}]}, "rows.json")
    >>> [(column.header, column.right) for column in report.tables[0].columns]
    [('device', False), ('n', True)]
    """
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{name}: the document has no rows to show")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    kept = [key for key in keys if not any(isinstance(row.get(key), list | dict) for row in rows)]
    columns = [
        Column(key, partial(_of_row, key), _NUMBER if _is_number(rows, key) else _ANY)
        for key in kept
    ]
    left = [key for key in keys if key not in kept]
    notes = (
        [f"Columns not shown, because their values are nested: {', '.join(left)}."] if left else []
    )
    schema = str(document.get("schema", "a document"))
    table = Table(f"{schema} of {name}", columns, rows, notes)
    return Report(table.title, tables=[table])


def _of_row(key: str, row: Mapping[str, Any]) -> Any:
    return row.get(key)


def _written(value: Any) -> Cell:
    return Cell("–" if value is None else repr(value) if isinstance(value, float) else str(value))


def _written_number(value: float | None) -> Cell:
    """Return the cell of a number with all its digits; true and false are words."""
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
    """Return the kind of a document; refuse those of other tools and versions."""
    if not isinstance(document, Mapping) or "schema" not in document:
        what = "it has no key 'schema'" if isinstance(document, Mapping) else "it is not an object"
        raise InputError(
            f"is JSON, but not an errcomp document: {what}. Give a file that a command of "
            "errcomp wrote with -o FILE.json."
        )
    schema = document["schema"]
    found = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if found is None:
        raise InputError(
            f"is JSON, but not an errcomp document: its key 'schema' is {schema!r:.60}. Give a "
            "file that a command of errcomp wrote with -o FILE.json."
        )
    name, version = found[1], int(found[2])
    if version > _VERSION or name not in (*CLASSES, *ROWS_ONLY):
        raise InputError(
            f"its key 'schema' is {schema!r}: a newer errcomp wrote it. This version reads "
            f"errcomp.NAME/{_VERSION} where NAME is one of "
            f"{', '.join(sorted((*CLASSES, *ROWS_ONLY)))}. Upgrade errcomp, or write the document "
            "again with this version."
        )
    return name
