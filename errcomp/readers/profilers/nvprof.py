"""nvprof: kernels and copies from its traces and summaries, as CSV or text."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import MISSING
from errcomp.readers.core.values import number_at
from errcomp.tables.units import factor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


# The tables of nvprof: a trace or a summary, as CSV or as text in columns.

Kind = Literal["trace", "summary", "host"]
_UNIT_NAMES = {
    "ns": "ns",
    "us": "us",
    "µs": "us",
    "ms": "ms",
    "s": "s",
    "min": "min",
    "m": "min",
}
_PROCESS = re.compile(r"\s*==(\d+)==")
_OWN = re.compile(r"\s*==(?:=+|[^\s=]+==)\s")
_US = "us"
#: Headers of the tables as text; CSV has the same names in quotes.
_TEXT_SUMMARY = re.compile(r"\s*(?:Type\s+)?Time\(%\)\s+Time\s+Calls\s+Avg\s+Min\s+Max\s+Name\s*")
_TEXT_TRACE = re.compile(r"\s*Start\s+Duration\s+.*\bName\s*")
_BETWEEN = re.compile(r"\s{2,}|\t")
_TIME = r"[-+\d.e]+(?:[nuµm]?s|min|m)"
_LINE = re.compile(
    rf"\s*(?:(?P<type>[A-Z][\w .()/-]*):)?\s*(?P<share>[\d.]+)%\s+(?P<total>{_TIME})\s+"
    rf"(?P<calls>\d+)\s+(?P<mean>{_TIME})\s+(?P<low>{_TIME})\s+(?P<high>{_TIME})\s+(?P<name>\S.*)"
)
_LIKE_LINE = re.compile(r"\s*(?:[A-Z][\w .()/-]*:\s*)?\S+%\s")
_CELL = re.compile(r"([-+\d.e]+?)([nuµm]?s|min|m)")
#: A number at the end of a name in a trace as text: the number of the launch.
_LAUNCH = re.compile(r"\s\[\d+\]$")
_ON_DEVICE = "GPU activities"
_HOST = "calls on the host"


@dataclass(frozen=True, slots=True)
class _Table:
    """A table: position of its header, its kind, and its process."""

    kind: Kind
    at: int
    is_csv: bool
    columns: tuple[str, ...]
    process: str | None


def kind_of(source: Source) -> Kind | None:
    """Return the kind of a file's tables; None if they are not nvprof's.

    The program's own output may exceed the head: then the whole file is searched.
    """
    kinds = {table.kind for table in _tables(source.head_lines)}
    if not kinds and any("NVPROF is profiling process" in line for line in source.head_lines):
        try:
            kinds = {table.kind for table in _tables(source.lines())}
        except InputError:
            return None
    order: tuple[Kind, ...] = ("trace", "summary", "host")
    return next((kind for kind in order if kind in kinds), None)


def _read(
    source: Source,
    kind: Kind,
    read: Callable[[Source, Sequence[str], _Table], Iterator[dict[str, Any] | None]],
) -> Rows:
    lines = source.lines()
    tables = [table for table in _tables(lines) if table.kind == kind]
    rows: list[dict[str, Any]] = []
    host = 0
    for table in tables:
        for row in read(source, lines, table):
            if row is None:
                host += 1
                continue
            name = row["kernel"]
            moved = next((call for call in ("memcpy", "memset") if f"CUDA {call}" in name), name)
            rows.append(row | {"kernel_class": moved, "process": table.process})
    if not rows:
        raise source.error(
            f"the file lists no kernel ({host} {_HOST}). The program may have run no kernels on "
            "the GPU."
        )
    return Rows(rows, dropped={_HOST: host})


def _tables(lines: Sequence[str]) -> Iterator[_Table]:
    """Yield the tables by their headers."""
    process, of_host = None, False
    for at, line in enumerate(lines):
        if match := _PROCESS.match(line):
            process = match[1]
        if _OWN.match(line):
            of_host = "API calls" in line
            continue
        is_csv = line.lstrip().startswith(('"Start"', '"Type"', '"Time(%)"', '"Device","Kernel"'))
        columns: tuple[str, ...] = ()
        if is_csv:
            columns = tuple(cell.strip().strip('"') for cell in line.strip().split(","))
        elif _TEXT_SUMMARY.fullmatch(line) or _TEXT_TRACE.fullmatch(line):
            columns = tuple(_BETWEEN.split(line.strip()))
        kind = _kind(columns, lines, at, is_csv=is_csv) if columns else None
        if kind is not None:
            kind = "host" if of_host else kind
            yield _Table(kind, at, is_csv, columns, process)


def _kind(columns: Sequence[str], lines: Sequence[str], at: int, *, is_csv: bool) -> Kind | None:
    present = set(columns)
    if present >= {"Start", "Duration", "Name"}:
        # CSV files of other tools may have such columns, but no units below them.
        if is_csv and not set(_line(lines, at + 1).split(",")[:2]) <= set(_UNIT_NAMES):
            return None
        return "trace" if present >= {"Device", "Context", "Stream"} else "host"
    if present >= {"Time(%)", "Time", "Calls", "Avg", "Name"}:
        if "Type" not in present:
            return "summary"
        # The type is in the first row of its kind, or in each row.
        below = (_line(lines, line) for line in range(at + 1, len(lines)))
        table = takewhile(lambda line: line.strip() and not _OWN.match(line), below)
        return "summary" if any(_ON_DEVICE in line for line in table) else "host"
    return "host" if present >= {"Kernel", "Invocations", "Metric Name"} else None


def _line(lines: Sequence[str], at: int) -> str:
    return lines[at] if at < len(lines) else ""


def _csv_rows(
    source: Source, lines: Sequence[str], table: _Table
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table as CSV up to its end, the units first."""
    for at in range(table.at + 1, len(lines)):
        line = lines[at]
        if not line.strip() or _OWN.match(line):
            return
        try:
            fields = next(csv.reader([line], strict=True))
        except csv.Error as error:
            raise source.error(
                f"a quote is not closed, or is inside a field ({error}). The file may be cut "
                "off: copy it again.",
                line=at + 1,
            ) from None
        if len(fields) == 1 < len(table.columns):
            continue  # output of the program in between
        if len(fields) != len(table.columns):
            raise source.error(
                f"{len(fields)} fields, but the header has {len(table.columns)}. The file may be "
                "incomplete: copy it again.",
                line=at + 1,
            )
        yield at + 1, dict(zip(table.columns, map(str.strip, fields), strict=True))


def _traced(source: Source, lines: Sequence[str], table: _Table) -> Iterator[dict[str, Any] | None]:
    if not table.is_csv:
        yield from _traced_text(source, lines, table)
        return
    rows = _csv_rows(source, lines, table)
    units = _units(source, next(rows, None), table, ("Start", "Duration"))
    for line, row in rows:
        if not row["Stream"] and not row["Device"]:
            yield None
            continue
        yield {
            "kernel": row["Name"] or "kernel without a name",
            "measured": _number(source, row["Duration"], line, "Duration"),
            "unit": units["Duration"],
            "start": _in_unit(
                units, _number(source, row["Start"], line, "Start"), "Start", "Duration"
            ),
            **_device_fields(row["Device"], row["Stream"]),
            **{
                shape.lower(): _shape([row.get(f"{shape} {axis}", "") for axis in "XYZ"])
                for shape in ("Grid", "Block")
            },
        }


def _traced_text(
    source: Source, lines: Sequence[str], table: _Table
) -> Iterator[dict[str, Any] | None]:
    for at in range(table.at + 1, len(lines)):
        if not lines[at].strip() or _OWN.match(lines[at]):
            return
        fields = _BETWEEN.split(lines[at].strip(), maxsplit=len(table.columns) - 1)
        first = _CELL.fullmatch(fields[0])
        if first is None:
            if re.match(r"Regs: ", fields[0]):
                return
            continue  # output of the program in between
        if len(fields) != len(table.columns):
            raise source.error(
                f"{len(fields)} fields, but the header has {len(table.columns)}. The file may be "
                "incomplete: copy it again.",
                line=at + 1,
            )
        row = dict(zip(table.columns, fields, strict=True))
        if row["Stream"] == row["Device"] == "-":
            yield None
            continue
        yield {
            "kernel": _LAUNCH.sub("", row["Name"]),
            "measured": _cell(source, row["Duration"], at + 1, "Duration"),
            "unit": _US,
            "start": _cell(source, row["Start"], at + 1, "Start"),
            **_device_fields(row["Device"], row["Stream"]),
            "grid": _shape(re.findall(r"\d+", row.get("Grid Size", ""))),
            "block": _shape(re.findall(r"\d+", row.get("Block Size", ""))),
        }


def _summed(source: Source, lines: Sequence[str], table: _Table) -> Iterator[dict[str, Any] | None]:
    if not table.is_csv:
        yield from _summed_text(source, lines, table)
        return
    rows = _csv_rows(source, lines, table)
    units = _units(source, next(rows, None), table, ("Avg", "Min", "Max"))
    for line, row in rows:
        if row.get("Type", _ON_DEVICE) != _ON_DEVICE:
            yield None
            continue
        times = {name: _number(source, row[name], line, name) for name in units}
        calls = _number(source, row["Calls"], line, "Calls")
        yield {
            "kernel": row["Name"] or "kernel without a name",
            "measured": times["Avg"],
            "unit": units["Avg"],
            "count": int(calls) if 0 <= calls < 2**53 else None,
            "minimum": _in_unit(units, times["Min"], "Min", "Avg"),
            "maximum": _in_unit(units, times["Max"], "Max", "Avg"),
        }


def _summed_text(
    source: Source, lines: Sequence[str], table: _Table
) -> Iterator[dict[str, Any] | None]:
    kind = _ON_DEVICE
    for at in range(table.at + 1, len(lines)):
        line = lines[at]
        if not line.strip() or _OWN.match(line):
            return
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            if "No kernels were profiled" not in line and _LIKE_LINE.match(line):
                raise source.error(
                    f"a line of the table cannot be read: {line.strip()[:60]!r}. The file may be "
                    "incomplete: copy it again.",
                    line=at + 1,
                )
            continue
        kind = match["type"] or kind
        if kind != _ON_DEVICE:
            yield None
            continue
        yield {
            "kernel": match["name"],
            "measured": _cell(source, match["mean"], at + 1, "Avg"),
            "unit": _US,
            "count": int(match["calls"]) if len(match["calls"]) < 16 else None,
            "minimum": _cell(source, match["low"], at + 1, "Min"),
            "maximum": _cell(source, match["high"], at + 1, "Max"),
        }


def _units(
    source: Source,
    first: tuple[int, dict[str, str]] | None,
    table: _Table,
    columns: Sequence[str],
) -> dict[str, str]:
    """Return the units, which are below the header."""
    line, row = first or (table.at + 1, {})
    missing = [column for column in columns if row.get(column) not in _UNIT_NAMES]
    if missing:
        raise source.error(
            f"the line below the header must give the unit of {missing[0]!r}, got "
            f"{row.get(missing[0], '')[:40]!r}. Copy the file again.",
            line=line,
        )
    return {column: _UNIT_NAMES[row[column]] for column in columns}


def _in_unit(units: dict[str, str], value: float, column: str, wanted: str) -> float:
    """Return a time in the unit of another column."""
    return value * factor(units[column], units[wanted])


def _number(source: Source, text: str, line: int, column: str) -> float:
    return (
        float("nan")
        if text.lower() in MISSING
        else number_at(source, column, text, line, missing=False)
    )


def _cell(source: Source, text: str, line: int, column: str) -> float:
    """Return a time in us; in text each time has its own unit: 4.5954ms."""
    match = _CELL.fullmatch(text)
    if match is None:
        raise source.error(
            f"{column} must be a time with its unit, got {text[:40]!r}. The file may be damaged: "
            "copy it again.",
            line=line,
        )
    return _number(source, match[1], line, column) * factor(_UNIT_NAMES[match[2]], _US)


def _device_fields(device: str, stream: str) -> dict[str, str | None]:
    match = re.fullmatch(r"(.*) \((\d+)\)", device)
    return {
        "device": (match[1] if match else device) or None,
        "device_id": match[2] if match else None,
        "stream": stream or None,
    }


def _shape(axes: Sequence[str]) -> str | None:
    return "x".join(axes) if all(axes) and axes else None


def read(path: AnyPath) -> Output:
    r"""Read profiles of nvprof, the profiler of CUDA before Nsight.

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files: output of nvprof, with or without ``--csv``: its
        summary, or the trace of ``--print-gpu-trace``. Lines of nvprof (``==12==``) and of the
        program may come before and between.

    Returns
    -------
    Output
        Measured ``time`` of each kernel, memory copy and memory set, in the unit of the file; in us
        if each time has its own unit (without ``--csv``). In a summary, it is the mean of the
        ``count`` calls. ``process`` identifies processes if the file does.

    Raises
    ------
    InputError
        A file is damaged, or holds no GPU work.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nvprof.txt"
    >>> _ = path.write_text(
    ...     "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
    ...     " GPU activities:   97.64%  3.2000ms         2  1.6000ms  1.5000ms  1.7000ms  gemm\n")
    >>> read(path).rows.select("kernel", "count", "measured", "unit").rows()
    [('gemm', 2, 1600.0, 'us')]
    """
    return read_as(path, FORMATS)


def _is_kind(kind: Kind) -> Callable[[Source], bool]:
    return lambda source: kind_of(source) == kind


_UNITS = ("ns", "us", "ms", "s", "min")

_tool = ToolFormats("nvprof", gives="measurements", reference="hardware")


@_tool.reads(
    "nvprof-trace",
    "nvprof --print-gpu-trace, also --csv",
    "kernel",
    _is_kind("trace"),
    quantities=("time",),
    units=_UNITS,
    limits="Calls on the host in the same table are left out.",
)
def read_trace(source: Source) -> Rows:
    """Read one line per kernel, memory copy and memory set."""
    return _read(source, "trace", _traced)


@_tool.reads(
    "nvprof-summary",
    "summary that nvprof prints, also --csv",
    "kernel",
    _is_kind("summary"),
    quantities=("time",),
    units=_UNITS,
    limits="Calls on the host are left out.",
)
def read_summary(source: Source) -> Rows:
    """Read one line per name, with the mean of its calls."""
    return _read(source, "summary", _summed)


_tool.knows(
    "nvprof-host",
    "nvprof --print-api-trace, --print-api-summary, --metrics or --events",
    _is_kind("host"),
    "The file holds calls on the host or counters, but no times of kernels. Give the summary, or "
    "the trace of --print-gpu-trace.",
)

FORMATS = _tool.formats
