"""nccl-tests: measured times and bandwidths of collectives."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import has
from errcomp.readers.core.values import digits, number_at
from errcomp.results import Dropped
from errcomp.system.strict_json import is_number

#: Column, quantity and unit.
_MEASURES = (
    ("time", "time", "us"),
    ("cputime", "CPU time", "us"),
    ("algbw", "algorithm bandwidth", "GB/s"),
    ("busbw", "bus bandwidth", "GB/s"),
)
_JSON = {"time": "time", "cpu_time": "cputime", "alg_bw": "algbw", "bus_bw": "busbw"}


def read(path: AnyPath) -> Output:
    r"""Read logs of nccl-tests (also rccl-tests), and its JSON reports.

    Parameters
    ----------
    path : path
        A log, with or without the tags of a launcher, a report (``-J``), or a folder or archive
        of them.

    Returns
    -------
    Output
        For each size and placement (out-of-place, in-place) the measured ``time`` (us),
        ``algorithm bandwidth`` and ``bus bandwidth`` (GB/s), with ``collective``, ``size_bytes``,
        ``ranks``, ``nodes`` and ``device``. Equal points of one run have a ``repeat``.

    Raises
    ------
    InputError
        There is no table, or a value is not a number.

    Notes
    -----
    Wrong results are rows with a status. Old logs do not name the collective: it is inferred from
    sizes and columns if these leave a single possibility (all_reduce or reduce_scatter on two ranks
    or more), else it is left open.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.txt"
    >>> _ = path.write_text(
    ...     "#   Rank  0 Pid 1 on a device  0 [0x00] A100\n"
    ...     "#   Rank  1 Pid 2 on b device  0 [0x00] A100\n"
    ...     "# size count type redop time algbw busbw error time algbw busbw error\n"
    ...     "1024 256 float sum 34.5 0.03 0.03 0e+00 34.0 0.03 0.03 0e+00\n")
    >>> read(path).of(quantity="time").rows.select("collective", "ranks", "measured").rows()
    [('all_reduce', 2, 34.5), ('all_reduce', 2, 34.0)]
    """
    return read_as(path, FORMATS)


_LEVELS = ("collective",)
_QUANTITIES = ("time", "algorithm bandwidth", "bus bandwidth")
_tool = ToolFormats(
    "nccl-tests",
    gives="measurements",
    reference="hardware",
    sample="Echo 15f0d12 and superbenchmark 700d650, before 2.13",
)


@_tool.reads(
    "nccl-tests-log",
    "log (stdout)",
    "",
    lambda source: any(is_header(without_launcher(line)) for line in source.head_lines),
    levels=_LEVELS,
    quantities=_QUANTITIES,
    units=("us", "GB/s"),
    limits="Old logs do not name the collective; it is inferred where possible.",
)
def _read_log(source: Source) -> Rows:
    tables = tables_of(source)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    unknown = 0
    for i, table in enumerate(tables, start=1):
        added = _rows(table, str(i) if len(tables) > 1 else None)
        unknown += sum(row["collective"] is None for row in added)
        rows += added
        where = f" of run {i}" if len(tables) > 1 else ""
        if not table.complete:
            notes.append(
                f"The last line of the table{where} is missing: the test was stopped, or the log "
                "is cut off."
            )
        if table.out_of_bounds:
            notes.append(
                f"The test{where} failed: it found {table.out_of_bounds} out-of-bounds "
                f"value{'s' * (table.out_of_bounds != 1)}."
            )
    if unknown:
        notes.append(
            f"For {unknown} row{'s' * (unknown > 1)}, the log does not name the collective."
        )
    cut = sum(table.cut for table in tables)
    dropped = [Dropped("row that is cut off", cut)] if cut else []
    absent = sum(point["time_of"] is None for table in tables for point in _points(table))
    if absent:
        dropped.append(
            Dropped("in-place or out-of-place operation that the test did not run", absent)
        )
    return Rows(rows, dropped=dropped, notes=notes)


def _points(table: Table) -> list[dict[str, Any]]:
    """Return the points of a table, with the time from the column that has it."""
    return [{**row, "time_of": row.get("time", row.get("cputime"))} for row in table.rows]


def _status(table: Table, row: dict[str, Any]) -> str | None:
    wrong = row.get("#wrong")
    if wrong:
        return f"wrong values: {wrong:.0f}"
    if wrong is None and table.out_of_bounds:
        return f"{table.out_of_bounds} values of the run are out of bounds"
    return None


def _rows(table: Table, run: str | None) -> list[dict[str, Any]]:
    points = [row for row in _points(table) if row["time_of"] is not None]
    names = ("placement", "size_bytes", "elements", "dtype", "redop", "root")
    places = [tuple(row[name] for name in names) for row in points]
    times = Counter(places)
    seen: Counter[tuple[Any, ...]] = Counter()
    rows = []
    collective = collective_of(table)
    for row, place in zip(points, places, strict=True):
        seen[place] += 1
        common = {
            "run": run,
            "collective": collective,
            **dict(zip(names, place, strict=True)),
            "repeat": seen[place] if times[place] > 1 else None,
            "ranks": table.ranks or None,
            "nodes": len(table.hosts) or None,
            "device": ", ".join(sorted(table.devices)) or None,
            "version": table.version,
            "status": _status(table, row),
        }
        for column, quantity, unit in _MEASURES:
            if column in row:
                value = None if common["status"] else row[column]
                rows.append({**common, "quantity": quantity, "unit": unit, "measured": value})
    return rows


def _is_report(source: Source) -> bool:
    return has(source.json_names, "start_time", "args", "env") and b'"nthreads"' in source.head


@_tool.reads(
    "nccl-tests-json",
    "JSON report (-J)",
    "",
    _is_report,
    levels=_LEVELS,
    quantities=_QUANTITIES,
    units=("us", "GB/s"),
    sample="",
    limits="Times of single iterations are not read.",
)
def _read_report(source: Source) -> Rows:
    report = source.json()
    if not isinstance(report, dict) or not isinstance(report.get("results"), list):
        raise source.error(
            "expected a list of results. The test may have been stopped: run it again."
        )
    config = report.get("config")
    devices = config.get("devices") if isinstance(config, dict) else None
    devices = [device for device in devices or [] if isinstance(device, dict)]
    args = report.get("args")
    program = str(args[0]).rpartition("/")[2] if isinstance(args, list) and args else ""
    table = Table(
        program=program.removesuffix("_perf") or None,
        version=None if report.get("nccl_version") is None else str(report["nccl_version"]),
        hosts={str(device.get("hostname")) for device in devices},
        devices={str(device.get("device_info")) for device in devices},
        ranks=len(devices),
    )
    short = 0
    for result in report["results"]:
        added = _result(result) if isinstance(result, dict) else []
        table.rows += added
        short += not added
    rows = _rows(table, None)
    return Rows(rows, dropped={"result without size or time": short})


def _result(result: dict[str, Any]) -> list[dict[str, Any]]:
    size, count = result.get("size"), result.get("count")
    if not isinstance(size, int) or not isinstance(count, int):
        return []
    root = str(result.get("root", "")).strip()
    redop = result.get("redop")
    common = {
        "size_bytes": size,
        "elements": count,
        "dtype": str(result.get("type")),
        "redop": None if redop in (None, "none", "") else str(redop),
        "root": digits(root) if root.isascii() and root.isdigit() else None,
    }
    rows = []
    for place in ("out-of-place", "in-place"):
        values = result.get(place.replace("-", "_"))
        if isinstance(values, dict):
            cells = {column: _float(values.get(name)) for name, column in _JSON.items()}
            cells = {name: value for name, value in cells.items() if value is not None}
            wrong = _float(values.get("nwrong"))
            rows.append({**common, "placement": place, "#wrong": wrong, **cells})
    return rows


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


FORMATS = _tool.formats


# Lines of nccl-tests: the header that names the columns, and the rows below it.

#: Prefix of each line by launchers: mpirun --tag-output (which PRRTE adds to), srun -l.
_LAUNCHER = re.compile(r"\[(?:[\w.@-]*\D)?\d+,\d+\](?:\[[^\]]*\])?<std\w+>:|^\s*\d+:\s")
_START = re.compile(r"^#\s*(?:nThread|nccl-tests version|rccl-tests)|^#\s*Collective test starting")
_STARTING = re.compile(r"^#\s*Collective test starting:\s*(\S+)")
_PROGRAM = re.compile(r"\b(\w+)_perf\b")
_RANK = re.compile(
    r"^#\s*Rank\s+(\d+)(?:\s+Group\s+\d+)?\s+Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+"
    r"\[[^\]]*\]\s*((?:.*\S)?)\s*$"
)
_LIBRARY = re.compile(r"nccl-library=(\d+)|NCCL version (\d[\w.+-]*)")
_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d{1,18})\b")
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
    """Return a line without the tags of a launcher, and without indentation."""
    return _LAUNCHER.sub("", line).lstrip()


def is_header(line: str) -> bool:
    """Say whether a line is the header of a table."""
    words = line.lstrip("# ").split()
    return line.startswith("#") and words[:3] == ["size", "count", "type"] and "busbw" in words


@dataclass
class Table:
    """A run of a test: program, devices, and its rows."""

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
        """Read a line of comment."""
        if (match := _RANK.match(text)) and len(match.group(1)) < 10:
            self.ranks = max(self.ranks, int(match.group(1)) + 1)
            self.hosts.add(match.group(2))
            self.devices.add(match.group(3))
        elif match := _STARTING.match(text):
            self.program = match.group(1).rpartition("/")[2].removesuffix("_perf")
        elif match := _OUT_OF_BOUNDS.match(text):
            self.out_of_bounds = digits(match.group(1))
        elif _AVERAGE.match(text):
            self.complete = True
        elif is_header(text):
            self.columns = text.lstrip("# ").split()[3:]
        if match := _LIBRARY.search(text):
            self.version = match.group(1) or match.group(2)

    def row(self, source: Source, line: int, text: str) -> None:
        """Read a row; ignore other lines."""
        words = text.split()
        if len(words) > 8 and _STAMP.fullmatch(words[-2]):
            words = words[:-2]
        # The header names the columns twice, once per placement.
        named = [name for name in self.columns if name not in ("redop", "root", "timestamp")]
        single = named[: len(named) // 2]
        if not (len(words) > 2 and all(map(_is_size, words[:2])) and not words[2].isdigit()):
            # A damaged row has the numbers of the others.
            self.cut += len(single) > 0 and sum(map(is_number, words)) > len(single)
            return
        places = next((n for n in (2, 1) if 0 <= len(words) - 3 - n * len(single) <= 2), 0)
        if not single or not places:
            self.cut += 1
            return
        tail = words[len(words) - places * len(single) :]
        common = _common(words[:3], words[3 : len(words) - len(tail)])
        names = ("out-of-place", "in-place")[-places:]
        for i, place in enumerate(names):
            cells = dict(zip(single, tail[i * len(single) : (i + 1) * len(single)], strict=True))
            self.rows.append({**common, "placement": place, **_values(source, line, cells)})


def _is_size(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 19


def _common(first: list[str], middle: list[str]) -> dict[str, Any]:
    root = next((word for word in middle if re.fullmatch(r"-?\d{1,18}", word)), None)
    redop = next((word for word in middle if word != root), None)
    return {
        "size_bytes": int(first[0]),
        "elements": int(first[1]),
        "dtype": first[2],
        "redop": None if redop == "none" else redop,
        "root": None if root in (None, "-1") else int(root or 0),
    }


def _values(source: Source, line: int, cells: dict[str, str]) -> dict[str, Any]:
    return {
        name: None if text in ("N/A", "NA") else number_at(source, name, text, line, missing=False)
        for name, text in cells.items()
    }


def tables_of(source: Source) -> list[Table]:
    """Return all runs of tests in a log."""
    tables: list[Table] = []
    program: str | None = None
    for line, raw in enumerate(source.lines(), start=1):
        text = without_launcher(raw)
        if not text.startswith("#"):
            if tables and tables[-1].columns:
                tables[-1].row(source, line, text)
            if match := _PROGRAM.search(text):  # the command, as echoed by a script
                program = match.group(1)
            continue
        begins = _START.match(text) and (not tables or tables[-1].columns)
        if begins or not tables or (is_header(text) and tables[-1].columns):
            tables.append(Table(program=program))
        tables[-1].comment(text)
    return [table for table in tables if table.columns]


def collective_of(table: Table) -> str | None:
    """Return the collective of a table, from the log or inferred from its columns."""
    if table.program:
        return table.program
    possible = {_collective_by_size(table, row) for row in table.rows if row["elements"]}
    return possible.pop() if len(possible) == 1 else None


def _collective_by_size(table: Table, row: dict[str, Any]) -> str | None:
    width = _WIDTHS.get(row["dtype"])
    if width is None or table.ranks < 2 or row["root"] is not None:
        return None
    share = row["size_bytes"] / (row["elements"] * width)
    if row["redop"] is None:
        return None
    if share == 1:
        return "all_reduce"
    return "reduce_scatter" if share == table.ranks else None
