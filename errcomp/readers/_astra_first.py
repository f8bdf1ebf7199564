"""ASTRA-sim 1: its tables with a row for each layer, and what its log says of layers."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers._values import number_at
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["is_delays", "is_end_to_end", "is_utilization", "read_end_to_end", "row_of"]

#: The line of a log that ends all: the time of the whole run.
_FINISHED = re.compile(r"^all passes finished at time: (\d{1,18})(?:,|\s*$)")
_LAYER = re.compile(
    r"^id: (\S.*?) ,Total cycles spent (on |idle waiting for )(fwd|weight grad|input grad)"
    r"(?: pass)? (compute|comm|finish): (\d{1,18})\s*$"
)
_PHASES = {"fwd": "fwd", "weight grad": "wg", "input grad": "ig"}
_ENDINGS = {
    "compute": "time",
    "exposed comm": "exposed communication",
    "total comm": "communication",
}
_WHOLE = {
    "workload finished at": "time",
    "total comp": "compute",
    "total exposed comm": "exposed communication",
}


def is_end_to_end(source: Source) -> bool:
    """Say whether this is EndToEnd.csv: two columns without name, then those of the phases."""
    names = source.header
    return names[:2] == ("", "") and {"fwd compute", "workload finished at"} <= set(names)


def is_delays(source: Source) -> bool:
    """Say whether this is detailed.csv."""
    names = source.header
    kinds = ("queuing delay phase", "network delay phase", "shared bus ")
    return names[:2] == ("", "") and any(name.startswith(kinds) for name in names)


def is_utilization(source: Source) -> bool:
    """Say whether this is the use of each dimension of the network over time."""
    names = source.header
    return names[0] == "time (us)" and names[1:2] == ("dim1 util",)


def read_end_to_end(source: Source) -> Output:
    """Read the times of layers, and of each run as a whole.

    Raises
    ------
    InputError
        A row is cut off or has no run, or a value is no number.
    """
    lines = source.lines()
    first = next(i for i, line in enumerate(lines) if line.strip())
    header = [cell.strip() for cell in lines[first].split(",")]
    names = {name: i for i, name in enumerate(header) if name}
    rows: list[dict[str, Any]] = []
    whole: dict[tuple[str, str], dict[str, Any]] = {}
    layers: dict[str, int] = {}
    layer = ""
    for number, line in enumerate(lines[first + 1 :], start=first + 2):
        cells = [cell.strip() for cell in line.split(",")]
        if not any(cells):
            continue
        if len(cells) <= max(names.values()) or not cells[1]:
            raise source.error(
                "a row with fewer fields than the header has names, or without a run. The file "
                "may be cut off: copy it again.",
                line=number,
            )
        # The name of a layer stands in the first of its rows, one for each run.
        layer, run = cells[0] or layer, cells[1]
        values = {
            name: number_at(source, name, cells[i], number) for name, i in names.items() if cells[i]
        }
        common = {"tool": "ASTRA-sim", "unit": "us", "run": run}
        keys = {**common, "kernel": layer, "layer": layers.setdefault(run, 0)}
        layers[run] += 1
        rows += [{**keys, **row} for row in _phases(values)]
        for name, quantity in _WHOLE.items():
            if name in values:
                value = {"level": "system", "quantity": quantity, "predicted": values[name]}
                whole[(run, name)] = {**common, **value}
    return output(source.name, "astra-sim-end-to-end", [*whole.values(), *rows])


def _phases(values: dict[str, float]) -> list[dict[str, Any]]:
    found = []
    for name, value in values.items():
        phase, _, ending = name.partition(" ")
        quantity = _ENDINGS.get(ending)
        # A phase without communication has none, and not one of no duration.
        if phase in _PHASES.values() and quantity and (value or ending != "total comm"):
            level = "collective" if ending == "total comm" else "kernel"
            kind = {"level": level, "quantity": quantity, "phase": phase}
            found.append({**kind, "predicted": value})
    return found


def row_of(line: str) -> dict[str, Any] | None:
    """Return what a line of a log says of a layer or of the whole run, in cycles."""
    common = {"tool": "ASTRA-sim", "unit": "cycles"}
    if match := _FINISHED.match(line):
        value = {"quantity": "time", "predicted": float(match[1])}
        return {**common, "level": "system", **value}
    if (match := _LAYER.match(line)) is None:
        return None
    ending = {"comm": "total comm", "finish": "exposed comm"}.get(match[4], match[4])
    row = _phases({f"{_PHASES[match[3]]} {ending}": float(match[5])})
    return {**common, "kernel": match[1], **row[0]} if row else None
