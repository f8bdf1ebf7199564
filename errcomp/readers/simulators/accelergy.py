"""Accelergy: tables of the energy of actions (ERT) and the area of components (ART)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.system.strict_json import number

#: Kind of file → its outermost name, the list in it, and the content of a table.
_KINDS = {
    "accelergy-ert": ("ERT", "tables", "actions"),
    "accelergy-ert-summary": ("ERT_summary", "table_summary", "actions"),
    "accelergy-art": ("ART", "tables", "area"),
    "accelergy-art-summary": ("ART_summary", "table_summary", "area"),
    "accelergy-energy": ("energy_estimation", "components", "energy"),
}
#: Name of the tables of a summary in version 0.2.
_OLD_TABLES = "ERT summaries"
#: Statistics in a summary of an action whose energy depends on its arguments.
_STATISTICS = {"average": "mean", "max": "max", "min": "min"}
_RANGE = re.compile(r"\[(\d{1,9})\.\.(\d{1,9})\]")


def read(path: AnyPath) -> Output:
    r"""Read ``ERT.yaml``, ``ART.yaml``, their summaries, or ``energy_estimation.yaml``.

    Parameters
    ----------
    path : path
        A file, or a folder or archive of them. A summary repeats the values of its table.

    Returns
    -------
    Output
        Predictions of level "system": ``energy per action`` (pJ) by ``component``, ``action`` and
        ``arguments`` (in a summary by ``statistic``), ``area`` (um^2, for one of the
        ``instances``), ``energy`` (pJ) of a run.

    Raises
    ------
    InputError
        It is not YAML, or a table has another form.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ART.yaml"
    >>> _ = path.write_text('''ART:
    ...     version: '0.4'
    ...     tables:
    ...       - name: chip.mac[1..168]
    ...         area: 191.5
    ... ''')
    >>> read(path).rows.select("component", "instances", "predicted", "unit").rows()
    [('chip.mac', 168, 191.5, 'um^2')]
    """
    return read_as(path, FORMATS)


def _is(source: Source, kind: str) -> bool:
    outermost, tables, held = _KINDS[kind]
    lines = [line.rstrip() for line in source.head_lines]
    inner = any(line.lstrip() in (f"{tables}:", f"{_OLD_TABLES}:") for line in lines)
    # Version 0.2 uses the names of components and actions as keys, instead of lists.
    values = (f"{held}:", "energy:")
    has_values = any(value in line for line in lines for value in values)
    return f"{outermost}:" in lines and inner and has_values


def _read(source: Source, kind: str) -> Rows:
    outermost, tables, held = _KINDS[kind]
    content = source.yaml()
    whole = content.get(outermost) if isinstance(content, dict) else None
    entries = whole.get(tables, whole.get(_OLD_TABLES)) if isinstance(whole, dict) else None
    if isinstance(entries, dict):
        entries = [_of_version_2(name, table, held) for name, table in entries.items()]
    if not isinstance(entries, list):
        raise source.error(f'{outermost} must hold "{tables}", a list. Copy the file again.')
    version = whole.get("version") if isinstance(whole, dict) else None
    common = {} if version is None else {"version": str(version)}
    rows = []
    for i, table in enumerate(entries, start=1):
        where = f"{outermost}.{tables}, entry {i}"
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise source.error(f"{where}: must have a name. Copy the file again.")
        keys = {**common, **_component(table["name"])}
        if held == "actions":
            rows += [{**keys, **row} for row in _actions(source, table, where)]
        else:
            value = _number(source, table.get(held), f"{where}: {held}")
            rows.append({**keys, "predicted": value})
    return Rows(rows)


def _of_version_2(name: Any, table: Any, held: str) -> dict[str, Any]:
    """Convert a table of version 0.2, with names as keys, to the form of later versions."""
    if held != "actions":
        return {"name": name, held: table.get(held) if isinstance(table, dict) else table}
    if not isinstance(table, dict):
        return {"name": name}
    actions = [
        {"name": action, **(energy if isinstance(energy, dict) else {"energy": energy})}
        for action, energy in table.items()
    ]
    return {"name": name, "actions": actions}


def _component(name: str) -> dict[str, Any]:
    """Return the name without the range of its instances, and the number of instances."""
    instances = 1
    for first, last in _RANGE.findall(name):
        instances *= max(int(last) - int(first) + 1, 0)
    return {"component": _RANGE.sub("", name), "instances": min(instances, 1 << 60)}


def _actions(source: Source, table: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    actions = table.get("actions")
    if not isinstance(actions, list):
        raise source.error(f"{where}: must have a list of actions. Copy the file again.")
    for action in actions:
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            raise source.error(f"{where}: an action without a name. Copy the file again.")
        for keys, value in _energies(action):
            yield {
                "predicted": _number(source, value, f"{where}, {action['name']}: energy"),
                "action": action["name"],
                **keys,
            }


def _energies(action: Mapping[str, Any]) -> list[tuple[dict[str, Any], Any]]:
    """Return each energy of an action, with its arguments or its statistic."""
    energy = action.get("energy")
    if isinstance(energy, list):
        # Early versions write an energy for each combination of arguments.
        given = [item for item in energy if isinstance(item, dict)]
        return [({"arguments": _text(item.get("arguments"))}, item.get("energy")) for item in given]
    statistics = [
        ({"statistic": statistic}, action[name])
        for word, statistic in _STATISTICS.items()
        for name in (f"{word} energy", f"{word}_energy")
        if name in action
    ]
    if statistics and energy is None:
        return statistics
    return [({"arguments": _text(action.get("arguments"))}, energy)]


def _text(arguments: Any) -> str | None:
    try:
        return json.dumps(arguments, sort_keys=True, default=str) if arguments else None
    except TypeError:  # names of several types have no order
        return str(arguments)


def _number(source: Source, value: Any, title: str) -> float | None:
    """Return a number; YAML reads 1e-09 as text."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float("inf") if abs(value) >= 1e300 else float(value)
    try:
        return number(str(value))
    except ValueError:
        raise source.error(
            f"{title} must be a number, got {str(value)[:40]!r}. Copy the file again."
        ) from None


_SAMPLE = "0.4, timeloop-accelergy-exercises of 2024"
_LIMITS = "The files state no units: Accelergy uses pJ for energies and um^2 for areas."
_tool = ToolFormats("Accelergy", gives="predictions", limits=_LIMITS)


for _kind, _files, _holds, _sample in (
    ("accelergy-ert", "ERT.yaml", "energy per action (pJ)", _SAMPLE),
    ("accelergy-ert-summary", "ERT_summary.yaml", "energy per action (pJ)", _SAMPLE),
    ("accelergy-art", "ART.yaml", "area (um^2)", ""),
    ("accelergy-art-summary", "ART_summary.yaml", "area (um^2)", _SAMPLE),
    ("accelergy-energy", "energy_estimation.yaml", "energy (pJ)", ""),
):
    _is_kind, _read_kind = partial(_is, kind=_kind), partial(_read, kind=_kind)
    _tool.reads(_kind, _files, f"system: {_holds}", _is_kind, sample=_sample)(_read_kind)

FORMATS = _tool.formats
