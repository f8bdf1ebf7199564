"""Lines of nccl-tests: the header that names the columns, and the rows below it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers._strict import is_number
from errcomp.readers.source import Source

__all__ = ["Table", "collective_of", "is_header", "tables_of", "without_launcher"]

#: What launchers put before each line: mpirun --tag-output (which PRRTE adds to), srun -l.
_LAUNCHER = re.compile(r"\[(?:[\w.@-]*\D)?\d+,\d+\](?:\[[^\]]*\])?<std\w+>:|^\s*\d+:\s")
_START = re.compile(r"^#\s*(?:nThread|nccl-tests version|rccl-tests)|^#\s*Collective test starting")
_STARTING = re.compile(r"^#\s*Collective test starting:\s*(\S+)")
_PROGRAM = re.compile(r"\b(\w+)_perf\b")
_RANK = re.compile(
    r"^#\s*Rank\s+(\d+)(?:\s+Group\s+\d+)?\s+Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+"
    r"\[[^\]]*\]\s*(.*?)\s*$"
)
_LIBRARY = re.compile(r"nccl-library=(\d+)|NCCL version (\d[\w.+-]*)")
_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)")
_AVERAGE = re.compile(r"^#\s*Avg bus bandwidth\s*:")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d")
_WIDTHS = {
    "int8": 1,
    "uint8": 1,
    "half": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float": 4,
    "int64": 8,
    "uint64": 8,
    "double": 8,
    "f8e4m3": 1,
    "f8e5m2": 1,
}


def without_launcher(line: str) -> str:
    """Return a line without what a launcher put before it, or even into it; not indented."""
    return _LAUNCHER.sub("", line).lstrip()


def is_header(line: str) -> bool:
    """Say whether a line is the header of a table."""
    words = line.lstrip("# ").split()
    return line.startswith("#") and words[:3] == ["size", "count", "type"] and "busbw" in words


@dataclass
class Table:
    """One run of a test: what was run on what, and its rows."""

    program: str | None = None
    version: str | None = None
    hosts: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    ranks: int = 0
    columns: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    out_of_bounds: int | None = None
    complete: bool = False
    cut: int = 0

    def comment(self, text: str) -> None:
        if match := _RANK.match(text):
            self.ranks = max(self.ranks, int(match.group(1)) + 1)
            self.hosts.add(match.group(2))
            self.devices.add(match.group(3))
        elif match := _STARTING.match(text):
            self.program = match.group(1).rpartition("/")[2].removesuffix("_perf")
        elif match := _OUT_OF_BOUNDS.match(text):
            self.out_of_bounds = int(match.group(1))
        elif _AVERAGE.match(text):
            self.complete = True
        elif is_header(text):
            self.columns = text.lstrip("# ").split()[3:]
        if match := _LIBRARY.search(text):
            self.version = match.group(1) or match.group(2)

    def row(self, source: Source, line: int, text: str) -> None:
        """Take a row; a line of anything else is left out."""
        words = text.split()
        if len(words) < 3 or not (words[0].isdigit() and words[1].isdigit()) or words[2].isdigit():
            return
        if len(words) > 8 and _STAMP.fullmatch(words[-2]):
            words = words[:-2]
        # Columns of one placement: the header names them twice.
        named = [name for name in self.columns if name not in ("redop", "root", "timestamp")]
        one = named[: len(named) // 2]
        places = next((n for n in (2, 1) if 0 <= len(words) - 3 - n * len(one) <= 2), 0)
        if not one or not places:
            self.cut += 1
            return
        tail = words[len(words) - places * len(one) :]
        common = _common(words[:3], words[3 : len(words) - len(tail)])
        names = ("out-of-place", "in-place")[-places:]
        for i, place in enumerate(names):
            cells = dict(zip(one, tail[i * len(one) : (i + 1) * len(one)], strict=True))
            self.rows.append({**common, "placement": place, **_values(source, line, cells)})


def _common(first: list[str], middle: list[str]) -> dict[str, Any]:
    root = next((word for word in middle if re.fullmatch(r"-?\d+", word)), None)
    redop = next((word for word in middle if word != root), None)
    return {
        "size_bytes": int(first[0]),
        "elements": int(first[1]),
        "dtype": first[2],
        "redop": None if redop == "none" else redop,
        "root": None if root in (None, "-1") else int(root or 0),
    }


def _values(source: Source, line: int, cells: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in cells.items():
        if text in ("N/A", "NA"):
            found[name] = None
        elif is_number(text):
            found[name] = float(text)
        else:
            raise source.error(
                f"{name} must be a number, got {text[:40]!r}. The file may be damaged: copy it "
                "again.",
                line=line,
            )
    return found


def tables_of(source: Source) -> list[Table]:
    """Return every run of a test that a log holds."""
    found: list[Table] = []
    program: str | None = None
    for line, raw in enumerate(source.lines(), start=1):
        text = without_launcher(raw)
        if not text.startswith("#"):
            if found and found[-1].columns:
                found[-1].row(source, line, text)
            if match := _PROGRAM.search(text):  # the command, as a script shows it
                program = match.group(1)
            continue
        begins = _START.match(text) and (not found or found[-1].columns)
        if begins or not found or (is_header(text) and found[-1].columns):
            found.append(Table(program=program))
        found[-1].comment(text)
    return [table for table in found if table.columns]


def collective_of(table: Table) -> str | None:
    """Name the collective of a table; where the log does not, its columns may leave one only."""
    if table.program:
        return table.program
    possible = {_possible(table, row) for row in table.rows if row["elements"]}
    return possible.pop() if len(possible) == 1 else None


def _possible(table: Table, row: dict[str, Any]) -> str | None:
    width = _WIDTHS.get(row["dtype"])
    if width is None or table.ranks < 2 or row["root"] is not None:
        return None
    share = row["size_bytes"] / (row["elements"] * width)
    if row["redop"] is None:
        return None
    if share == 1:
        return "all_reduce"
    return "reduce_scatter" if share == table.ranks else None
