"""Tables of the scripts around Accel-Sim: get_stats.py, plot-correlation.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.sheet import MISSING
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import number_at
from errcomp.results import Dropped

__all__ = ["is_correlation", "is_stats", "read_correlation", "read_stats"]

_RULE = re.compile(r"-{20,},*$")
_CORRELATION = ("Name", "Hardware", "Simulator", "Sim/HW")
#: What is known of the statistics: they are named by the regular expression that finds them.
_KNOWN = (
    (re.compile(r"gpu_(?:tot_)?sim_cycle"), "time", "cycles"),
    (re.compile(r"gpgpu_simulation_time"), "host time", "s"),
    (re.compile(r"kernel_avg_power|gpu_tot_avg_power"), "power", "W"),
)
_KEYS = (
    (re.compile(r"gpu_tot_sim_insn"), "instructions"),
    (re.compile(r"gpu_(?:tot_)?ipc"), "ipc"),
)
_BUILDS = ("Accel-Sim-build", "GPGPU-Sim-build")
_INSTANCE = re.compile(r"(.+)--(\d+)")


def is_stats(source: Source) -> bool:
    """Say whether this is what get_stats.py prints."""
    lines = [line.strip() for line in source.head_lines if line.strip()]
    rules = [i for i, line in enumerate(lines) if _RULE.fullmatch(line)]
    return any(
        len(lines) > i + 2 and lines[i + 2].split(",")[0] in ("APPS", "CFG", "CONFIGS")
        for i in rules
    )


def _cells(source: Source) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(source.lines(), start=1):
        if text.strip():
            try:
                cells = next(csv.reader([text], strict=True))
            except csv.Error as error:
                raise source.error(
                    f"not CSV ({error}). The file may be cut off: copy it again.", line=line
                ) from None
            yield line, [cell.strip() for cell in cells]


class _Stats:
    """The table of get_stats.py, block by block."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.values: dict[tuple[str, str], dict[str, str]] = {}
        self.lines: dict[tuple[str, str, str], int] = {}
        self.stats: list[str] = []
        self._stat, self._columns, self._by_config = "", [""], False
        self._expect = "rule"

    def take(self, line: int, cells: list[str]) -> None:
        if _RULE.fullmatch(cells[0]):
            self._expect = "stat"
        elif self._expect == "stat":
            # A regular expression may have commas.
            self._stat = ",".join(cells).rstrip(", ")
            self.stats.append(self._stat)
            self._expect = "columns"
        elif self._expect == "columns":
            while len(cells) > 2 and not cells[-1]:
                cells.pop()
            self._by_config, self._columns = cells[0] != "APPS", cells[1:]
            self._expect = "values"
        elif self._expect == "values":
            self._row(line, cells)

    def _row(self, line: int, cells: list[str]) -> None:
        while len(cells) - 1 > len(self._columns) and not cells[-1]:
            cells.pop()
        if len(cells) - 1 != len(self._columns):
            raise self.source.error(
                f"{len(cells) - 1} values, while {len(self._columns)} columns are named above. The "
                "file may be cut off: copy it again.",
                line=line,
            )
        for column, value in zip(self._columns, cells[1:], strict=True):
            key = (column, cells[0]) if self._by_config else (cells[0], column)
            self.values.setdefault(key, {})[self._stat] = value
            self.lines[*key, self._stat] = line


def read_stats(source: Source) -> Output:
    """Read what get_stats.py prints.

    Raises
    ------
    InputError
        A row has too few values, a value is no number, or there are no cycles, times or powers.
    """
    table = _Stats(source)
    for line, cells in _cells(source):
        table.take(line, cells)
    rows: list[dict[str, Any]] = []
    builds = {
        (app.partition("--")[0], config): values
        for (app, config), values in table.values.items()
        if app.endswith("--all_kernels")
    }
    for (app, config), values in table.values.items():
        if not app.endswith("--all_kernels"):
            rows += _rows(table, app, config, values, builds)
    sums = any(row["level"] == "kernel" and row.get("launch") is None for row in rows)
    notes = []
    if sums:
        notes.append(
            "Without -K get_stats.py adds up all launches of a kernel: its value is of all of them "
            "together, and how many there were is not in the file."
        )
    other = [stat for stat in table.stats if not _known(stat) and stat not in _BUILDS]
    left = [stat for stat in other if not any(found.search(stat) for found, _ in _KEYS)]
    if left:
        notes.append(f"{len(left)} statistics that are no time, energy or power are left out.")
    return output(source.name, "accel-sim-stats", rows, notes=notes)


def _known(stat: str) -> tuple[str, str] | None:
    return next(((what, unit) for found, what, unit in _KNOWN if found.search(stat)), None)


def _rows(
    table: _Stats,
    app: str,
    config: str,
    values: dict[str, str],
    builds: dict[tuple[str, str], dict[str, str]],
) -> list[dict[str, Any]]:
    name, _, kernel = app.partition("--")
    several = len({one for _, one in table.values}) > 1
    run = f"{name} on {config}" if several else name
    keys: dict[str, Any] = {"tool": "Accel-Sim", "run": run, "config": config}
    build = builds.get((name, config), {})
    keys["build"] = next((build[one] for one in _BUILDS if one in build), None)
    whole = kernel in ("", "final_kernel")
    if not whole:
        instance = _INSTANCE.fullmatch(kernel)
        keys["kernel"] = instance.group(1) if instance else kernel
        keys["launch"] = instance.group(2) if instance else None
    for stat, text in values.items():
        for found, key in _KEYS:
            if found.search(stat) and text.lower() not in MISSING:
                keys[key] = _number(table, app, config, stat, text)
    rows = []
    for stat, text in values.items():
        if not (known := _known(stat)):
            continue
        quantity, unit = known
        level = "kernel" if not whole else "system" if quantity == "host time" else "model"
        value = None if text.lower() in MISSING else _number(table, app, config, stat, text)
        column = "measured" if quantity == "host time" else "predicted"
        rows.append({**keys, "level": level, "quantity": quantity, "unit": unit, column: value})
    return rows


def _number(table: _Stats, app: str, config: str, stat: str, text: str) -> float:
    line = table.lines[app, config, stat]
    return number_at(table.source, f"the value of {app}", text, line)


def is_correlation(source: Source) -> bool:
    """Say whether this is a table that plot-correlation.py writes (.raw.csv)."""
    return any(
        tuple(cell.strip() for cell in line.split(",")) == _CORRELATION
        for line in source.head_lines
    )


def read_correlation(source: Source) -> Output:
    """Read pairs of plot-correlation.py: each table has a line of explanation above its header.

    Raises
    ------
    InputError
        A value is no number, or there is no pair.
    """
    rows: list[dict[str, Any]] = []
    title, before, short = "", "", 0
    within = False
    for line, text in enumerate(source.lines(), start=1):
        cells = [cell.strip() for cell in text.rsplit(",", 3)]
        if tuple(cells) == _CORRELATION:
            title, within = before, True
        elif not text.strip():
            within = False
        elif within and len(cells) == 4:
            rows.append(_pair(source, line, cells, title))
        else:
            short += within
            before = text.strip()
    dropped = [Dropped("not a name with three numbers", short)] if short else []
    note = (
        "The file does not say which statistic it compares (its name does, for people): the unit "
        "is that of the statistic. Numbers are rounded to two decimals."
    )
    return output(source.name, "accel-sim-correlation", rows, dropped=dropped, notes=[note])


def _pair(source: Source, line: int, cells: list[str], title: str) -> dict[str, Any]:
    values = [number_at(source, "a value", cell, line) for cell in cells[1:3]]
    app, _, kernel = cells[0].partition("--")
    instance = _INSTANCE.fullmatch(kernel)
    return {
        "tool": "Accel-Sim",
        "level": "kernel" if kernel else "model",
        "quantity": "compared statistic",
        "unit": "of the statistic",
        "measured": values[0],
        "predicted": values[1],
        "run": app,
        "kernel": (instance.group(1) if instance else kernel) or None,
        "launch": instance.group(2) if instance else None,
        "config": title.partition(" (")[0] or None,
    }
