"""Timeloop: the stats file of a mapping of a layer to an accelerator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number_at

# The stats file of Timeloop and Sparseloop: levels, networks and a summary.

PER_COMPUTE = "energy per compute"
#: Word before a count of computes → quantity of the energies below, divided by it.
_PER = {"Algorithmic": "energy per algorithmic compute"}
QUANTITIES = (
    *("time", "energy", "EDP", "area", "throughput", "utilization"),
    *(PER_COMPUTE, _PER["Algorithmic"], "component energy", "component area"),
)
UNITS = (
    *("cycles", "uJ", "fJ", "pJ", "J*cycle", "mm^2", "um^2", "GFLOP/s at 1 GHz", "%", "fraction"),
)
_FIRST = "Buffer and Arithmetic Levels"
_NAME = re.compile(r"=== (.+) ===$")
_FIELD = re.compile(r"\s*([^\s:](?:[^:]*[^\s:])?)\s*:\s*(\S.*)$")
_SUMMARY = re.compile(
    r"(?P<name>GFLOPs \(@1GHz\)|Utilization|Cycles|Energy|EDP\(J\*cycle\)|Area)\s*:\s*"
    r"(?P<value>[^\s%]+)\s*+(?P<unit>%|uJ|pJ|mm\^2|um\^2)?\s*$"
)
_NAMED = re.compile(r"(?:GFLOPs \(@1GHz\)|Utilization|Cycles|Energy|EDP\(J\*cycle\)|Area)\s*:")
_COUNT = re.compile(r"(?:(Algorithmic|Actual) )?(?:Computes|MACCs) = (\S+)\s*$")
_ENERGY_UNIT = re.compile(r"(fJ|pJ)/(?:Algorithmic-)?(?:Compute|MACC)\s*$")
_SHARE = re.compile(r"\s+(\S(?:.*\S)?)\s*= (\S+)\s*$")
#: Energies of a whole level: sums over its data spaces.
_ENERGIES = (
    *("Energy (total)", "Leakage energy (total)"),
    *("Temporal Reduction Energy (total)", "Address Generation Energy (total)"),
)
_SPARSE = re.compile(r"\s*(?:Algorithmic|Gated|Skipped) (?:Computes|scalar)")


@dataclass(slots=True)
class _Level:
    """A level: its name and the fields that become columns or rows."""

    name: str
    keys: dict[str, Any] = field(default_factory=dict)
    energy: float | None = None
    area: float | None = None


@dataclass(slots=True)
class _Stats:
    """The content of the file."""

    levels: list[_Level] = field(default_factory=list)
    summary: dict[str, tuple[float, str, str]] = field(default_factory=dict)
    #: For each count of computes: quantity divided by it, count, unit and shares.
    computes: list[tuple[str, int, str, list[tuple[str, float]]]] = field(default_factory=list)


def is_stats(source: Source) -> bool:
    """Say whether this is a stats file, dense or sparse."""
    lines = [line.rstrip() for line in source.head_lines]
    return _FIRST in lines and any(_NAME.match(line) for line in lines)


def is_sparse(source: Source) -> bool:
    """Say whether a stats file counts gated or skipped operations."""
    return any(_SPARSE.match(line) for line in source.head_lines)


def _parse(source: Source) -> _Stats:
    lines = source.lines()
    at = [i for i, line in enumerate(lines) if line.strip() == "Summary Stats"]
    if not at:
        raise source.error(
            "no line 'Summary Stats' at the end. The file may be incomplete: copy it again."
        )
    if len(at) > 1:
        raise source.error(
            f"a second summary (the first is on line {at[0] + 1}): the file holds several results. "
            "Give one file per result.",
            line=at[1] + 1,
        )
    stats = _Stats()
    end = next(
        (i for i, line in enumerate(lines[: at[0]]) if line.rstrip() in ("Networks",)), at[0]
    )
    _levels(source, lines[:end], stats)
    _tail(source, lines, at[0] + 1, stats)
    return stats


def _levels(source: Source, lines: Sequence[str], stats: _Stats) -> None:
    level: _Level | None = None
    for i, line in enumerate(lines, start=1):
        if match := _NAME.match(line):
            level = _Level(match[1])
            stats.levels.append(level)
        elif level is not None and (match := _FIELD.match(line)):
            _level_field(source, level, match[1], match[2], i)


def _level_field(source: Source, level: _Level, name: str, text: str, line: int) -> None:
    if name in _ENERGIES:
        value = number_at(source, name, text.removesuffix(" pJ"), line)
        level.energy = value + (level.energy or 0.0)
    elif name in ("Area", "Area (total)"):
        # Buffers state the area of one instance, the arithmetic level that of all.
        value = number_at(source, name, re.sub(r" um\^?2$", "", text), line)
        many = level.keys.get("instances") or 1 if name == "Area" else 1
        level.area = value * many
    elif name == "Instances":
        # "8 (4*2)"
        instances = number_at(source, name, text.partition(" ")[0], line)
        level.keys["instances"] = int(instances) if 0 <= instances < 1e15 else None
    elif name.startswith("Utilized instances") and "utilized_instances" not in level.keys:
        level.keys["utilized_instances"] = number_at(source, name, text, line)


def _tail(source: Source, lines: Sequence[str], start: int, stats: _Stats) -> None:
    count, quantity, unit = 0, PER_COMPUTE, ""
    for i, line in enumerate(lines[start:], start=start + 1):
        if match := _SUMMARY.match(line):
            value = number_at(source, match["name"], match["value"], i)
            stats.summary[match["name"]] = (value, match["unit"] or "", match["value"])
        elif _NAMED.match(line):
            raise source.error(
                f"this line of the summary is damaged: {line.strip()[:60]!r}. Copy the file again.",
                line=i,
            )
        elif match := _COUNT.match(line):
            counted = number_at(source, "Computes", match[2], i)
            count, unit = int(counted) if 0 <= counted < 1e18 else 0, ""
            quantity = _PER.get(match[1] or "", PER_COMPUTE)
        elif match := _ENERGY_UNIT.match(line):
            unit = match[1]
            stats.computes.append((quantity, count, unit, []))
        elif unit and (match := _SHARE.match(line)):
            value = number_at(source, match[1], match[2], i)
            stats.computes[-1][3].append((match[1], value))
    if "Cycles" in stats.summary:
        ends = [shares[-1][0] if shares else "" for _, _, _, shares in stats.computes]
        if not ends or set(ends) != {"Total"}:
            raise source.error(
                "the energies by component at the end have no Total. The file may be incomplete: "
                "copy it again.",
            )


def _summary(stats: _Stats, common: dict[str, Any], notes: list[str]) -> list[dict[str, Any]]:
    summary = stats.summary
    # The last count is of actual computes, after that of algorithmic computes.
    keys = {**common, "computes": stats.computes[-1][1]}
    rows = [
        {**keys, "quantity": "time", "unit": "cycles", "predicted": summary["Cycles"][0]},
        {**keys, **_energy(stats, notes)},
    ]
    if "EDP(J*cycle)" in summary:
        value = summary["EDP(J*cycle)"][0]
        rows.append({**keys, "quantity": "EDP", "unit": "J*cycle", "predicted": value})
    rows += _area(stats, keys)
    if "GFLOPs (@1GHz)" in summary:
        value = summary["GFLOPs (@1GHz)"][0]
        row = {**keys, "quantity": "throughput", "unit": "GFLOP/s at 1 GHz", "predicted": value}
        rows.append(row)
    if "Utilization" in summary:
        value, unit, _ = summary["Utilization"]
        unit = unit or "fraction"
        rows.append({**keys, "quantity": "utilization", "unit": unit, "predicted": value})
    return rows


def _energy(stats: _Stats, notes: list[str]) -> dict[str, Any]:
    """Return the stated energy; if rounded to 0, the energy per compute times computes.

    The summary always has two decimals of a microjoule.
    """
    value, unit, text = stats.summary.get("Energy", (0.0, "uJ", ""))
    if value:
        return {"quantity": "energy", "unit": unit or "uJ", "predicted": value}
    _, count, unit, shares = stats.computes[-1]
    notes.append(
        f"The summary rounds the energy to {text or 'nothing'} uJ, so errcomp computes it: the "
        "total energy per compute times the number of computes."
    )
    return {"quantity": "energy", "unit": unit, "predicted": shares[-1][1] * count}


def _area(stats: _Stats, common: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the area; files without areas state it as 0.00."""
    value, unit, _ = stats.summary.get("Area", (0.0, "", ""))
    if value:
        return [{**common, "quantity": "area", "unit": unit, "predicted": value}]
    return []


#: A level of a mapping: its name, and the tile size of each data space.
_LEVEL = re.compile(r"\S+ \[ (?:\w+:\d++ ?(?:\([\d.]+\) ?)?)+\]\s*$")


def read(path: AnyPath) -> Output:
    r"""Read ``timeloop-mapper.stats.txt`` or ``timeloop-model.stats.txt``.

    Parameters
    ----------
    path : path
        A stats file, or a folder or archive of them (maps are ignored).

    Returns
    -------
    Output
        Predictions for the layer, level "kernel", with its number of ``computes``:

        * ``time`` in cycles (the file states no clock; GFLOP/s are for 1 GHz), ``energy`` in uJ,
          ``EDP``, ``area``, ``throughput``, ``utilization`` (% or, in older versions, a fraction);
        * by ``component``: ``energy per compute`` (fJ, older versions pJ; "Total" is their sum),
          ``component energy`` (pJ, all accesses, leakage, reductions and addresses) and
          ``component area`` (um^2, all ``instances``).

        The summary has two decimals. An energy that it rounds to 0 is the total per compute times
        the computes, in fJ or pJ; an area that it rounds to 0 is left out.

    Raises
    ------
    InputError
        The file is cut off, holds several results, or has text instead of a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "timeloop-model.stats.txt"
    >>> _ = path.write_text('''Buffer and Arithmetic Levels
    ... Level 0
    ... === mac ===
    ... Summary Stats
    ... Cycles: 16
    ... Energy: 2.50 uJ
    ...
    ... Computes = 16
    ... fJ/Compute
    ...     Total = 156250000.00
    ... ''')
    >>> read(path).rows.select("quantity", "predicted", "unit").rows()[:2]
    [('time', 16.0, 'cycles'), ('energy', 2.5, 'uJ')]
    """
    return read_as(path, FORMATS)


def _is_map(source: Source) -> bool:
    head = source.head
    # Versions before 2022 do not name the innermost level.
    level = b"<< Compute >>" in head or any(_LEVEL.match(line) for line in source.head_lines)
    return level and b"for " in head and b" in [0:" in head


def _xml(source: Source) -> bool:
    head = source.head
    return b"<boost_serialization" in head and b"model::ArithmeticUnits" in head


_tool = ToolFormats(
    "Timeloop",
    gives="predictions",
    sample="timeloop-accelergy-exercises of 2024, reference outputs",
)


@_tool.reads(
    "timeloop-stats",
    "timeloop-mapper.stats.txt, timeloop-model.stats.txt",
    "kernel",
    lambda source: is_stats(source) and not is_sparse(source),
    quantities=QUANTITIES,
    units=UNITS,
    limits="The file states neither the layer nor the clock. Bandwidths, accesses and networks of "
    "levels are left out.",
)
def read_stats(source: Source) -> Rows:
    """Read a stats file as rows; see `errcomp.readers.simulators.timeloop.read`."""
    stats = _parse(source)
    # The file does not name the layer.
    common = {"kernel": "layer"}
    notes: list[str] = []
    if "Cycles" in stats.summary:
        rows = _summary(stats, common, notes)
    else:
        rows = [{**common, "quantity": "time", "unit": "cycles", "status": "not evaluated"}]
        rows += _area(stats, common)
        notes.append("The file has only areas: no mapping was evaluated.")
    instances = {level.name: level.keys for level in stats.levels}
    for quantity, count, unit, shares in stats.computes:
        for component, value in shares:
            keys = {"component": component, "computes": count, **instances.get(component, {})}
            rows.append({**common, **keys, "quantity": quantity, "unit": unit, "predicted": value})
    for level in stats.levels:
        keys = {**common, "component": level.name, **level.keys}
        for kind, unit, total in (("energy", "pJ", level.energy), ("area", "um^2", level.area)):
            if total is not None:
                quantity = f"component {kind}"
                rows.append({**keys, "quantity": quantity, "unit": unit, "predicted": total})
    return Rows(rows, notes=notes)


_tool.knows(
    "timeloop-map",
    "timeloop-mapper.map.txt",
    _is_map,
    "The file states how loops are split, but holds no results.",
    part_of="timeloop-stats",
)

_tool.knows(
    "timeloop-xml",
    "timeloop-mapper.map+stats.xml",
    _xml,
    "The file repeats the numbers of stats.txt.",
    part_of="timeloop-stats",
)

FORMATS = _tool.formats
