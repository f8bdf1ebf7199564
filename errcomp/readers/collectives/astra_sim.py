"""ASTRA-sim: the log's results for each system that finished."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import DAMAGED, digits, loosened, number_at

if TYPE_CHECKING:
    from collections.abc import Sequence


# ASTRA-sim 1: tables with one row per layer, and the lines of its log about layers.

#: Last line of a log: the time of the whole run.
_ALL_FINISHED = re.compile(r"^all passes finished at time: (\d{1,18})(?:,|\s*$)")
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
    """Say whether this is EndToEnd.csv: two columns without a name, then columns of phases."""
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


def _phases(values: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for name, value in values.items():
        phase, _, ending = name.partition(" ")
        quantity = _ENDINGS.get(ending)
        # A phase without communication gets no row, instead of a row with 0.
        if phase in _PHASES.values() and quantity and (value or ending != "total comm"):
            level = "collective" if ending == "total comm" else "kernel"
            kind = {"level": level, "quantity": quantity, "phase": phase}
            rows.append({**kind, "predicted": value})
    return rows


def row_of(line: str) -> dict[str, Any] | None:
    """Return the times of a layer or of the whole run in a line of a log, in cycles."""
    common = {"unit": "cycles"}
    if match := _ALL_FINISHED.match(line):
        value = {"quantity": "time", "predicted": float(match[1])}
        return {**common, "level": "system", **value}
    if (match := _LAYER.match(line)) is None:
        return None
    ending = {"comm": "total comm", "finish": "exposed comm"}.get(match[4], match[4])
    row = _phases({f"{_PHASES[match[3]]} {ending}": float(match[5])})
    return {**common, "kernel": match[1], **row[0]} if row else None


_FINISHED = re.compile(
    r"sys\[(\d{1,9})\] (?:iteration (\d{1,9}) )?finished, (\d+) cycles, "
    r"exposed communication (-?\d+) cycles"
)
_SPENT = re.compile(r"sys\[(\d{1,9})\], ([A-Z][A-Za-z ]*) time: (\d+)\s*$")
_NODE = re.compile(
    r"Node (\d{1,18}): Size: (\d{1,18}) bytes, Duration: (\d+) ns, Bandwidth: ([0-9.]+) GB/s"
)
_DETAILS = re.compile(r"sys\[(\d{1,9})\], Network bandwidth details:")
_FAILED = re.compile(r"\[(?:critical|error)\] (.*\S)")
#: Lines of ASTRA-sim only: they identify a log in which nothing finished.
_MARKS = re.compile(
    r"ring of node \d+, id: \d+ dimension: |sys\[\d+\]\. Post statistics processing|"
    r"\[(?:workload|statistics|system::\S+|network)\] \[\w+\] |"
    r"sys\[\d+\], (?:Wall|Comm) time: |"
    r"^all passes finished at time: \d+, id of first layer: "
)
#: Kind of operator → name of its total.
_QUANTITIES = {
    "Comm": "communication",
    "GPU": "compute",
    "CPU": "host compute",
    "Remote mem": "remote memory",
    "Replay": "replay",
    "Wall": "wall time",
}
_NO_OUTPUT = "no output: the run failed or was killed"
_NOT_FINISHED = "did not finish: no line says that a system finished"
_COMMON = {"level": "system", "unit": "cycles"}
#: Number of the system in version 1, which does not name it.
_FIRST: tuple[int, str | None] = (-1, None)


def read(path: AnyPath) -> Output:
    r"""Read logs of ASTRA-sim of versions 1 and 2 (plain or spdlog), and tables of version 1.

    Parameters
    ----------
    path : path
        A log, ``EndToEnd.csv`` of version 1, the JSON in which the survey of Li et al. collected
        logs, or a folder or archive.

    Returns
    -------
    Output
        For each system ("rank") the simulated ``time``, the ``exposed communication`` and, where
        stated, the time spent in ``communication``, ``compute``, …, in cycles (1 ns in the
        analytical back end), as predictions. Version 1 has one time of the run, and the times of
        each layer by ``phase``; its tables are in us. A log in which systems finish again holds
        several runs, which are numbered. If the log lists them: the ``time`` (ns) and ``bandwidth``
        of each communication, level "collective". A run that did not finish is a row with a status.

    Raises
    ------
    InputError
        The file is not text, or its JSON has another form.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.txt"
    >>> _ = path.write_text("sys[1] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> read(path).rows.select("quantity", "predicted", "rank").rows()
    [('time', 1200.0, 1), ('exposed communication', 300.0, 1)]
    """
    return read_as(path, FORMATS)


def _log(source: Source) -> bool:
    if source.json_names:
        return False
    return any(_FINISHED.search(line) or _MARKS.search(line) for line in source.head_lines)


@dataclass
class _Log:
    """State while reading a log."""

    runs: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])
    finished: set[tuple[int, str | None]] = field(default_factory=set)
    why: str = ""
    rank_of_nodes: int | None = None
    several: bool = False
    damaged: int = 0

    def take(self, line: str) -> None:
        if match := _FINISHED.search(line):
            rank, iteration = digits(match[1]), match[2]
            if (rank, iteration) in self.finished:
                self._another_run()
            self.finished.add((rank, iteration))
            keys: dict[str, Any] = {**_COMMON, "rank": rank}
            if iteration is not None:
                keys["iteration"] = digits(iteration)
            exposed = {"quantity": "exposed communication", "predicted": float(match[4])}
            self.runs[-1] += [
                {**keys, "quantity": "time", "predicted": float(match[3])},
                {**keys, **exposed},
            ]
        elif row := row_of(line):
            if _FIRST in self.finished:
                self._another_run()
            if row["level"] == "system":
                self.finished.add(_FIRST)
            self.runs[-1].append(row)
        else:
            self._take_other(line)

    def _another_run(self) -> None:
        self.runs.append([])
        self.finished.clear()
        self.several = True

    def _take_other(self, line: str) -> None:
        if match := _SPENT.search(line):
            quantity = _QUANTITIES.get(match[2], f"{match[2].lower()} time")
            value = {"quantity": quantity, "predicted": float(match[3])}
            self.runs[-1].append({**_COMMON, "rank": digits(match[1]), **value})
        elif match := _DETAILS.search(line):
            self.rank_of_nodes = digits(match[1])
        elif match := _NODE.search(line):
            self.runs[-1] += _communication(match, self.rank_of_nodes)
        elif match := _FAILED.search(line):
            self.why = match[1]
        else:
            self.damaged += any(loose.search(line) is not None for loose in _LOOSE)


def _rows(lines: Sequence[str], name: str) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a log, and its damaged lines; a second run is named ``name#2``."""
    log = _Log()
    for line in lines:
        log.take(line)
    for i, run in enumerate(log.runs):
        number = f"#{i + 1}" if log.several else ""
        _name(run, f"{name}{number}" if name else f"run {i + 1}" if log.several else "")
    if not log.finished:
        named = {"run": name} if name else {}
        status = log.why or _NOT_FINISHED
        log.runs[-1].append({**_COMMON, **named, "quantity": "time", "status": status})
    return [row for run in log.runs for row in _without_repeats(run)], log.damaged


def _communication(match: re.Match[str], rank: int | None) -> list[dict[str, Any]]:
    keys = {
        **{"level": "collective", "rank": rank},
        **{"node": digits(match[1]), "size_bytes": digits(match[2])},
    }
    bandwidth = float(match[4]) if match[4].count(".") < 2 and match[4] != "." else None
    return [
        {**keys, "quantity": "time", "unit": "ns", "predicted": float(match[3])},
        {**keys, "quantity": "bandwidth", "unit": "GB/s", "predicted": bandwidth},
    ]


def _name(rows: Sequence[dict[str, Any]], run: str) -> None:
    ranks = len({row["rank"] for row in rows if row["level"] == "system" and "rank" in row})
    for row in rows:
        if run:
            row["run"] = run
        row["ranks"] = ranks or None


def _without_repeats(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out wall times that repeat the time of the same system."""
    times = {(r["rank"], r["predicted"]) for r in rows if r["quantity"] == "time" and "rank" in r}
    return [
        row
        for row in rows
        if row["quantity"] != "wall time" or (row["rank"], row["predicted"]) not in times
    ]


def _network(source: Source) -> bool:
    starts = {line.split(":")[0].strip() for line in source.head_lines if ":" in line}
    return {"topology", "npus_count"} <= starts and not source.json_names


def _system(source: Source) -> bool:
    return {"all-reduce-implementation", "scheduling-policy"} <= set(source.json_names)


_LOOSE = [loosened(one) for one in (_FINISHED, _SPENT, _NODE, _ALL_FINISHED, _LAYER)]
_ALL = ("time", "exposed communication", *_QUANTITIES.values())
_tool = ToolFormats("ASTRA-sim", gives="predictions")


@_tool.reads(
    "astra-sim-log",
    "log (stdout)",
    "system, collective, kernel",
    _log,
    quantities=(*_ALL, "bandwidth"),
    units=("cycles", "ns", "GB/s"),
    sample="2.x, plain and spdlog",
    limits="A cycle is 1 ns only in the analytical back end. The roofline utilisation is not read.",
)
def _read_log(source: Source) -> Rows:
    rows, damaged = _rows(source.lines(), "")
    return Rows(rows, dropped={DAMAGED: damaged})


@_tool.reads(
    "astra-sim-survey",
    "astra_sim_results.json of the survey's repository",
    "system",
    lambda source: "log_files" in source.json_names and b'"raw_lines"' in source.head,
    quantities=_ALL,
    units=("cycles",),
    sample="ml-perf-survey",
    limits="The published errors in the file are not read.",
)
def _read_survey(source: Source) -> Rows:
    content = source.json()
    logs = content.get("log_files") if isinstance(content, dict) else None
    if not isinstance(logs, list):
        raise source.error('the key "log_files" must hold a list. Copy the file again.')
    rows: list[dict[str, Any]] = []
    damaged = 0
    for i, log in enumerate(logs, start=1):
        name = log.get("file") if isinstance(log, dict) else None
        lines = log.get("raw_lines") if isinstance(log, dict) else None
        if not isinstance(name, str) or not isinstance(lines, list):
            raise source.error(
                f'entry {i} of "log_files" needs the keys "file" and "raw_lines". Copy the file '
                "again."
            )
        run = name.removesuffix(".log")
        if lines:
            found, more = _rows([line for line in lines if isinstance(line, str)], run)
            rows += found
            damaged += more
        else:
            rows.append({**_COMMON, "quantity": "time", "run": run, "status": _NO_OUTPUT})
    return Rows(rows, dropped={DAMAGED: damaged})


@_tool.reads(
    "astra-sim-end-to-end",
    "EndToEnd.csv of version 1",
    "system, kernel, collective: time, compute, exposed communication, communication (us)",
    is_end_to_end,
    limits="ASTRA-sim divides cycles by 1000, as if a cycle were 1 ns: at another clock rate, "
    "the times are wrong. The communication time of a layer runs from issue to end, including "
    "waiting.",
)
def read_end_to_end(source: Source) -> Rows:
    """Read the times of layers, and of each run as a whole.

    Raises
    ------
    InputError
        A row is cut off or has no run, or a value is not a number.
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
                "this row has no run, or fewer fields than the header. The file "
                "may be incomplete: copy it again.",
                line=number,
            )
        # Only the first row of a layer has its name; there is one row per run.
        layer, run = cells[0] or layer, cells[1]
        values = {
            name: number_at(source, name, cells[i], number) for name, i in names.items() if cells[i]
        }
        common = {"unit": "us", "run": run}
        keys = {**common, "kernel": layer, "layer": layers.setdefault(run, 0)}
        layers[run] += 1
        rows += [{**keys, **row} for row in _phases(values)]
        for name, quantity in _WHOLE.items():
            if name in values:
                value = {"level": "system", "quantity": quantity, "predicted": values[name]}
                whole[(run, name)] = {**common, **value}
    return Rows([*whole.values(), *rows])


_tool.knows(
    "astra-sim-delays",
    "detailed.csv of version 1",
    is_delays,
    "The file holds mean delays of messages in queues and links. Times of layers are in "
    "EndToEnd.csv.",
    part_of="astra-sim-end-to-end",
)

_tool.knows(
    "astra-sim-utilization",
    "*_dimension_utilization_*.csv",
    is_utilization,
    "The file holds the utilisation of each network dimension over time, but no durations. "
    "Durations are in EndToEnd.csv.",
)

_tool.knows(
    "astra-sim-network",
    "network.yml",
    _network,
    "The file describes the network to simulate; it holds no times.",
    sample="HGX-H100-validated of its examples",
)

_tool.knows(
    "astra-sim-system",
    "system.json",
    _system,
    "The file describes the system to simulate; it holds no times.",
    sample="HGX-H100-validated of its examples",
)

FORMATS = _tool.formats
