"""Accelergy: tables of the energy of actions (ERT) and the area of components (ART)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from errcomp.readers._strict import number
from errcomp.readers.output import Output, output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

__all__ = ["FORMATS", "read"]

#: Of each kind of file: its outermost name, the list in it, and what a table holds.
_KINDS = {
    "accelergy-ert": ("ERT", "tables", "actions"),
    "accelergy-ert-summary": ("ERT_summary", "table_summary", "actions"),
    "accelergy-art": ("ART", "tables", "area"),
    "accelergy-art-summary": ("ART_summary", "table_summary", "area"),
    "accelergy-energy": ("energy_estimation", "components", "energy"),
}
_RANGE = re.compile(r"\[(\d{1,9})\.\.(\d{1,9})\]")


def read(path: str | PathLike[str]) -> Output:
    r"""Read ``ERT.yaml``, ``ART.yaml``, their summaries, or ``energy_estimation.yaml``.

    Parameters
    ----------
    path : path
        A file, or a folder or archive of them. A summary repeats the figures of its table.

    Returns
    -------
    Output
        Predictions of level "system": ``energy per action`` (pJ) by ``component``, ``action`` and
        ``arguments``, ``area`` (um^2, of one of the ``instances``), ``energy`` (pJ) of a run.

    Raises
    ------
    InputError
        It is no YAML, or a table has another form.

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
    inner = any(line.lstrip() == f"{tables}:" for line in lines)
    return f"{outermost}:" in lines and inner and any(f"{held}:" in line for line in lines)


def _read(source: Source, kind: str) -> Output:
    outermost, tables, held = _KINDS[kind]
    content = source.yaml()
    whole = content.get(outermost) if isinstance(content, dict) else None
    found = whole.get(tables) if isinstance(whole, dict) else None
    if not isinstance(found, list):
        raise source.error(f"{outermost} must hold a list {tables}. Copy the file again.")
    version = whole.get("version") if isinstance(whole, dict) else None
    common = {"tool": "Accelergy", "level": "system"}
    if version is not None:
        common["version"] = str(version)
    rows = []
    for i, table in enumerate(found, start=1):
        where = f"{outermost}.{tables}, entry {i}"
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise source.error(f"{where}: must have a name. Copy the file again.")
        keys = {**common, **_component(table["name"])}
        if held == "actions":
            rows += [{**keys, **row} for row in _actions(source, table, where)]
        else:
            unit = "um^2" if held == "area" else "pJ"
            value = _number(source, table.get(held), f"{where}: {held}")
            rows.append({**keys, "quantity": held, "unit": unit, "predicted": value})
    return output(source.name, kind, rows)


def _component(name: str) -> dict[str, Any]:
    """Return the name without the range of its instances, and how many there are."""
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
        energy = action.get("energy")
        arguments = action.get("arguments")
        # Written by early versions: an energy for each combination of the arguments.
        entries = (
            [(one.get("arguments"), one.get("energy")) for one in energy if isinstance(one, dict)]
            if isinstance(energy, list)
            else [(arguments, energy)]
        )
        for given, value in entries:
            yield {
                "quantity": "energy per action",
                "unit": "pJ",
                "predicted": _number(source, value, f"{where}, {action['name']}: energy"),
                "action": action["name"],
                "arguments": json.dumps(given, sort_keys=True, default=str) if given else None,
            }


def _number(source: Source, value: Any, what: str) -> float | None:
    """Return a number; YAML takes 1e-09 for text."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float("inf") if abs(value) >= 1e300 else float(value)
    try:
        return number(str(value))
    except ValueError:
        raise source.error(
            f"{what} must be a number, got {str(value)[:40]!r}. Copy the file again."
        ) from None


def _format(kind: str, files: str, quantity: str, unit: str, sample: str) -> Format:
    return Format(
        name=kind,
        tool="Accelergy",
        files=files,
        levels=("system",),
        quantities=(quantity,),
        units=(unit,),
        gives="predictions",
        sample=sample,
        recognise=lambda source: _is(source, kind),
        read=lambda source: _read(source, kind),
        limits="The files state no units: energies are in pJ and areas in um^2, Accelergy's own.",
    )


_SAMPLE = "0.4, timeloop-accelergy-exercises of 2024"
FORMATS = (
    _format("accelergy-ert", "ERT.yaml", "energy per action", "pJ", _SAMPLE),
    _format("accelergy-ert-summary", "ERT_summary.yaml", "energy per action", "pJ", _SAMPLE),
    _format("accelergy-art", "ART.yaml", "area", "um^2", ""),
    _format("accelergy-art-summary", "ART_summary.yaml", "area", "um^2", _SAMPLE),
    _format("accelergy-energy", "energy_estimation.yaml", "energy", "pJ", ""),
)
