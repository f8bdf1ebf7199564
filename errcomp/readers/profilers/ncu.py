"""Nsight Compute: the duration of kernels from the output of ``ncu``, text or CSV."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import MISSING, Sheet, sheet_of, to_numbers
from errcomp.readers.core.values import COMMA, decimal_comma, loosened, with_point
from errcomp.results import Dropped
from errcomp.system.strict_json import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl


# The files of Nsight Compute: two kinds of CSV, and text for people.

Kind = Literal["details", "raw", "text"]
_UNITS = {"nsecond": "ns", "usecond": "us", "msecond": "ms", "second": "s"}
_UNITS |= {"ns": "ns", "us": "us", "µs": "us", "ms": "ms", "s": "s"}
_UNITS |= {"nanosecond": "ns", "microsecond": "us", "millisecond": "ms"}
_HERTZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_HERTZ |= {f"cycle/{unit}": scale for unit, scale in (("nsecond", 1e9), ("usecond", 1e6))}
_HERTZ |= {f"cycle/{unit}": scale for unit, scale in (("msecond", 1e3), ("second", 1.0))}
_HERTZ |= {f"cycle/{unit}": scale for unit, scale in (("ns", 1e9), ("us", 1e6), ("s", 1.0))}
#: Names of the metrics, on the page of details and in hardware; the best first.
_DURATION: tuple[str, ...] = ("Duration", "gpu__time_duration.sum", "gpu__time_duration.avg")
_DURATION += ("gpu__time_duration.max", "gpu__time_duration_measured_wallclock.sum")
_CYCLES: tuple[str, ...] = ("Elapsed Cycles", "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg")
_CYCLES += ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg")
_CLOCK: tuple[str, ...] = (
    "SM Frequency",
    "gpc__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second",
)
_CLOCK += ("smsp__cycles_elapsed.avg.per_second",)
_NEEDED = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
#: The columns of --print-summary, which has the number of launches instead of launches.
_SUMMED = ("Invocations", "Kernel Name", "Metric Name", "Metric Unit", "Average")
_CYCLE = {"cycle": "cycles", "": "cycles"}
_METRICS = frozenset(_DURATION + _CYCLES + _CLOCK)
_DEVICE = "device__attribute_display_name"
_HEADER = re.compile(
    r'\s*"?ID"?,(?=.*\bKernel Name\b)(?:.*(?P<long>\bMetric Name\b)|.*\b[a-z]\w*__\w)|'
    r'\s*"?(?:Process ID|Kernel Name)"?,(?=.*\bInvocations\b)(?P<sum>.*\bMetric Name\b)'
    r".*\bAverage\b"
)
_LAUNCH = re.compile(
    r"^\s{0,8}(?P<name>\S(?:.*?\S)??)?\s*"
    r"(?:\((?P<grid>\d+, *\d+, *\d+)\)x\((?P<block>\d+, *\d+, *\d+)\)|"
    r", \d{4}-[A-Z][a-z]{2}-\d{2} [\d:]{8})(?:, Context (?P<context>\d+), Stream (?P<stream>\d+)|"
    r"(?=.*, Invocations ))(?:, Device (?P<device>\d+))?(?:, CC (?P<cc>[\d.]+))?"
    r"(?:, Invocations (?P<count>\d+))?\s*$"
)
_LOOSE_LAUNCH = loosened(_LAUNCH)
_LINE = re.compile(
    rf"^\s+(?P<name>{'|'.join(map(re.escape, sorted(_METRICS, key=len, reverse=True)))})"
    r"\s+(?P<unit>\S+)\s+(?:\S+\s+\S+\s+)?(?P<value>\S+)\s*$"
)
_PROCESS = re.compile(r"^\[(\d+)\] (\S.*)@[^\s@]+\s*$")
_NOTE = (
    "ncu runs each kernel alone and with cold caches. It also locks the clock at its base "
    "frequency, unless run with '--clock-control none'. So times are longer than in a normal run."
)


@dataclass(slots=True)
class _Launch:
    """A launch of a kernel, with unit, value (as text) and line of the metrics used."""

    keys: dict[str, Any]
    metrics: dict[str, tuple[str, str, int]] = field(default_factory=dict)


def kind_of(source: Source) -> Kind | None:
    """Return the kind of ncu file; None if it is not ncu's.

    The program's own output may exceed the head: then the whole file is searched.
    """
    kind = _kind(source.head_lines)
    if kind is None and any(line.startswith("==PROF==") for line in source.head_lines):
        try:
            return _kind(source.lines())
        except InputError:
            return None
    return kind


def _kind(lines: Iterable[str]) -> Kind | None:
    for line in lines:
        if match := _HEADER.match(line):
            return "details" if match["long"] or match["sum"] else "raw"
        if (", Context " in line or ", Invocations " in line) and _LAUNCH.match(line):
            return "text"
    return None


#: Columns of the CSV files, and their names here.
_KEYS = {
    "ID": "launch",
    "Process ID": "process",
    "Kernel Name": "kernel",
    "Stream": "stream",
    "Grid Size": "grid",
    "Block Size": "block",
    "Device": "device_id",
    "CC": "compute_capability",
    "Invocations": "count",
}


def _table(source: Source) -> tuple[list[str], int, list[Dropped]]:
    """Return the lines of the table within the output, and its first line number."""
    lines = source.lines()
    start = next((i for i, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise source.error("no header (ID, Process ID, …). Copy the file again.")
    table = list(lines[start:])
    if not table[0].lstrip().startswith('"'):
        return table, start + 1, []
    # All fields are quoted, unlike other output after the header.
    within, gone = False, 0
    for i, line in enumerate(table):
        if within or line.lstrip().startswith('"'):
            within ^= line.count('"') % 2 == 1
        elif line.strip():
            table[i] = ""
            gone += 1
    dropped = [Dropped("lines outside the table", gone)] if gone else []
    return table, start + 1, dropped


def _session(source: Source) -> Sequence[str]:
    beside = source.sibling("session.csv")
    if beside is None:
        return []
    try:
        return beside.lines()
    except InputError:
        return []


def _session_device(source: Source) -> str | None:
    """Return the device, if the session file in the folder names exactly one."""
    for line in _session(source):
        fields = [part.strip('"') for part in line.strip().split('","')]
        if fields[0] == "display_name" and len(set(fields[1:])) == 1:
            return fields[1]
    return None


def _session_notes(source: Source) -> list[str]:
    free = any(re.search(r"--clock-control[ =]none", line) for line in _session(source))
    return ["The clock was not locked (--clock-control none)."] if free else []


def _rows(
    source: Source,
    launches: Sequence[_Launch],
    notes: Sequence[str],
    dropped: Sequence[Dropped],
    device: str | None,
    *,
    comma: bool,
) -> Rows:
    if not launches:
        raise source.error(
            "the file lists no kernel. Its first lines may say why the profile failed."
        )
    rows = []
    for launch in launches:
        keys: dict[str, Any] = {
            _KEYS.get(key, key): text or None for key, text in launch.keys.items()
        }
        count = keys.pop("count", None)
        if count is not None and re.fullmatch(r"[0-9]{1,15}", count):
            keys["count"] = int(count)
        for shape in ("grid", "block"):
            keys[shape] = "x".join(re.findall(r"\d+", keys.get(shape) or "")) or None
        if device is not None:
            keys["device"] = device
        rows.append(keys | _time(source, launch, comma=comma))
    if all(row.get("status") for row in rows):
        raise source.error(
            "the profile has neither durations nor cycles. Profile with --section SpeedOfLight or "
            "--metrics gpu__time_duration.sum."
        )
    return Rows(rows, dropped=dropped, notes=[_NOTE, *notes])


def _time(source: Source, launch: _Launch, *, comma: bool) -> dict[str, Any]:
    """Return the time of a launch, or the reason for missing it, with cycles and clock."""
    duration = _metric(source, launch, _DURATION, _UNITS, comma=comma)
    cycles = _metric(source, launch, _CYCLES, _CYCLE, comma=comma)
    clock = _metric(source, launch, _CLOCK, _HERTZ, comma=comma)
    fields: dict[str, Any] = {"cycles": None if cycles is None else cycles[0]}
    fields["clock_hz"] = None if clock is None else clock[0] * clock[1]
    best = duration or cycles
    if best is None:
        return {**fields, "unit": "ns", "measured": None, "status": "no duration was collected"}
    return {**fields, "unit": best[1], "measured": best[0], "status": None}


def _metric(
    source: Source, launch: _Launch, names: Sequence[str], units: dict[str, Any], *, comma: bool
) -> tuple[float, Any] | None:
    """Return the first of these metrics that a launch has, and the meaning of its unit."""
    for name in names:
        unit, text, line = launch.metrics.get(name, ("", "", 0))
        text = re.sub(r"(?<=\d),(?=\d{3})", "", with_point(text.strip(), comma=comma))
        if text.lower() in MISSING:
            continue
        try:
            value = number(text)
        except ValueError:
            raise source.error(
                f"{name} must be a number, got {text[:40]!r}. Copy the file again.",
                line=line,
            ) from None
        plain = unit.strip().lower()
        known = units.get(plain) or units.get(plain.removesuffix("s"))
        if known is None:
            raise source.error(
                f"{name} is in {unit!r}, an unknown unit. Profile with --print-units base.",
                line=line,
            )
        return value, known
    return None


def read(path: AnyPath) -> Output:
    r"""Read profiles of Nsight Compute (ncu).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files: output of ncu with ``--csv`` (page details, one
        line per metric, or ``--page raw``, one line per kernel), or its report as plain text. Lines
        of ncu (``==PROF==``) and of the program may come before and between.

    Returns
    -------
    Output
        The measured ``time`` of each launch of a kernel, in the unit of the file, with ``cycles``
        and ``clock_hz`` (of the multiprocessors) if collected. With only cycles, the ``time`` is in
        cycles. For CSV details, ``session.csv`` in the same folder gives the ``device``.

    Raises
    ------
    InputError
        A file is damaged, or has neither durations nor cycles.

    Notes
    -----
    Misleads if these times are compared with those of a program that runs normally: ncu runs each
    kernel alone, with cold caches and, by default, the clock locked at its base frequency.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ncu.txt"
    >>> _ = path.write_text(
    ...     "  gemm(float *) (8, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
    ...     "    Section: GPU Speed Of Light Throughput\n"
    ...     "    Elapsed Cycles        cycle        4,591\n"
    ...     "    Duration            usecond         3.36\n")
    >>> read(path).rows.select("kernel", "measured", "unit", "cycles").rows()
    [('gemm(float *)', 3.36, 'us', 4591.0)]
    """
    return read_as(path, FORMATS)


def _recognise_session(source: Source) -> bool:
    head = source.head_lines[:400]
    return any("Launch Attribute" in line for line in head) and any(
        "Profiler Command Line" in line or "Session Attribute" in line for line in head
    )


def _is_kind(kind: Kind) -> Callable[[Source], bool]:
    return lambda source: kind_of(source) == kind


_HELD = "kernel: time (ns, us, ms, s, cycles)"
_tool = ToolFormats(
    "Nsight Compute",
    gives="measurements",
    reference="hardware",
    sample="2025.2",
    limits="Metrics other than the duration, the cycles and the clock are left out.",
)


@_tool.reads(
    "ncu-details",
    "ncu --csv (page details), also with --metrics",
    _HELD,
    _is_kind("details"),
)
def read_details(source: Source) -> Rows:
    """Read one line for each metric of each launch."""
    lines, first_line, dropped = _table(source)
    reader = csv.reader(lines, strict=True, skipinitialspace=True)
    launches: dict[tuple[str, ...], _Launch] = {}
    comma, before = False, 0
    try:
        header = next(reader)
        place = {name: i for i, name in enumerate(header)}
        needed = _NEEDED if "ID" in place else _SUMMED
        missing = [name for name in needed if name not in place]
        if missing:
            raise source.error(f"missing column {missing[0]!r}. Export it again.", line=first_line)
        keys = {name: place[name] for name in _KEYS if name in place}
        metric, unit, value = (place[name] for name in needed[-3:])
        # Rows may end early.
        shortest = max(*(place[name] for name in needed), *keys.values())
        parts = [place[name] for name in ("Process ID", "ID") if name in place]
        numbered = parts if "ID" in place else []
        parts = parts if "ID" in place else list(keys.values())
        before = reader.line_num
        for row in reader:
            line, before = first_line + before, reader.line_num
            if not row or row == header:
                continue
            if any(not row[place].strip().isdigit() for place in numbered if place < len(row)):
                raise source.error(
                    "the ID of a launch is not a number. Copy the file again.", line=line
                )
            if len(row) <= shortest:
                raise source.error(
                    f"{len(row)} fields, expected at least {shortest + 1}. The file may be cut "
                    "off: copy it again.",
                    line=line,
                )
            comma = comma or decimal_comma((row[value],))
            which = tuple(row[i] for i in parts)
            if which not in launches:
                launches[which] = _Launch({name: row[i] for name, i in keys.items()})
            if row[metric] in _METRICS:
                launches[which].metrics.setdefault(row[metric], (row[unit], row[value], line))
    except csv.Error as error:
        raise source.error(
            f"a quote is not closed, or is inside a field ({error}). The file may be incomplete: "
            "copy it again.",
            line=first_line + before,
        ) from None
    notes = _session_notes(source)
    device = _session_device(source)
    return _rows(source, list(launches.values()), notes, dropped, device, comma=comma)


@_tool.reads("ncu-raw", "ncu --page raw --csv", _HELD, _is_kind("raw"))
def read_raw(source: Source) -> Rows:
    """Read one line for each launch; the line below the header has the units."""
    lines, first_line, dropped = _table(source)
    sheet = sheet_of(source.name, lines, first_line=first_line, needed=("ID", "Kernel Name"))
    columns = [name for name in _KEYS if name in sheet.columns]
    metrics = [name for name in (*_DURATION, *_CYCLES, *_CLOCK) if name in sheet.columns]
    if (regular := _regular_rows(sheet, columns, metrics)) is not None:
        return Rows(regular, dropped=dropped, notes=[_NOTE])
    ids = sheet.texts("ID")
    texts = {name: sheet.texts(name) for name in (*columns, *metrics)}
    devices = sheet.texts(_DEVICE) if _DEVICE in sheet.columns else None
    units: dict[str, str] = {}
    launches = []
    for i, number_of in enumerate(ids):
        if not number_of:
            units = {name: texts[name][i] for name in metrics}
            continue
        launch, line = _Launch({name: texts[name][i] for name in columns}), int(sheet.lines[i])
        launch.metrics = {name: (units.get(name, ""), texts[name][i], line) for name in metrics}
        if devices is not None:
            launch.keys["device"] = devices[i]
        launches.append(launch)
    every = (text for name in sheet.columns if "__" in name for text in set(sheet.texts(name)))
    return _rows(source, launches, [], dropped, None, comma=decimal_comma(every))


def _regular_rows(
    sheet: Sheet, columns: Sequence[str], metrics: Sequence[str]
) -> pl.DataFrame | None:
    """Convert a raw page by columns: one line of units, known ones, and plain numbers.

    None of others: those are read launch by launch, which takes 20 times as long and names lines.
    """
    import polars as pl

    is_unit = sheet.frame["ID"] == ""
    if not is_unit[0] or int(is_unit.sum()) != 1 or len(is_unit) == 1:
        return None
    units = dict(zip(sheet.columns, sheet.frame.row(0), strict=True))
    frame = sheet.frame.slice(1)
    shown = [name for name in sheet.columns if "__" in name]
    if any(frame[name].str.contains(f"^(?:{COMMA})$").any() for name in shown):
        return None
    found = []
    for names, known in ((_DURATION, _UNITS), (_CYCLES, _CYCLE), (_CLOCK, _HERTZ)):
        values = np.full(len(frame), np.nan)
        meaning = np.full(len(frame), None, dtype=object)
        for name in (name for name in names if name in metrics):
            numbers, bad = to_numbers(frame[name])
            new = np.isnan(values) & ~np.isnan(numbers)
            unit = units[name].strip().lower()
            means = known.get(unit) or known.get(unit.removesuffix("s"))
            if bad.any() or np.isinf(numbers).any() or (means is None and new.any()):
                return None
            values[new], meaning[new] = numbers[new], means
        found.append((values, meaning))
    (times, unit_of), (cycles, _), (clock, scale) = found
    none = np.isnan(times)
    best = np.where(none, cycles, times)
    lost = np.isnan(best)
    if lost.all():
        return None
    unit_of = np.where(none, np.where(lost, "ns", "cycles"), unit_of)
    hertz = clock * np.where(np.isnan(clock), 1.0, scale).astype(np.float64)
    keys = _keys_of(frame, columns)
    return keys.with_columns(
        cycles=pl.Series(cycles, nan_to_null=True),
        clock_hz=pl.Series(hertz, nan_to_null=True),
        unit=pl.Series(unit_of.tolist(), dtype=pl.String),
        measured=pl.Series(best, nan_to_null=True),
        status=pl.when(pl.Series(lost)).then(pl.lit("no duration was collected")),
    )


def _keys_of(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return the keys of launches, in the order of `_rows`."""
    import polars as pl

    empty = {name: pl.when(pl.col(name) != "").then(pl.col(name)) for name in frame.columns}
    keys: dict[str, pl.Expr] = {
        _KEYS[name]: empty[name] for name in columns if name != "Invocations"
    }
    if _DEVICE in frame.columns:
        keys["device"] = empty[_DEVICE]
    if "Invocations" in columns:
        whole = pl.col("Invocations").str.extract("^([0-9]{1,15})$")
        keys["count"] = whole.cast(pl.Int64)
    for shape, name in (("grid", "Grid Size"), ("block", "Block Size")):
        if name in columns:
            parts = pl.col(name).str.extract_all(r"\d+").list.join("x")
            keys[shape] = pl.when(parts != "").then(parts)
    return frame.select(**keys)


@_tool.reads("ncu-text", "report that ncu prints", _HELD, _is_kind("text"), sample="")
def read_text(source: Source) -> Rows:
    """Read the text report: a line that names a launch, and tables of metrics below it."""
    launches: list[_Launch] = []
    process, before = "", ""
    for at, line in enumerate(source.lines(), start=1):
        if match := _PROCESS.match(line):
            process = match[1]
        elif match := _LAUNCH.match(line):
            # A long name may have a line of its own.
            name = match["name"] or before.strip()
            keys = {"ID": str(len(launches)), "Kernel Name": name, "Process ID": process}
            keys |= {"Stream": match["stream"] or "", "Device": match["device"] or ""}
            keys |= {"CC": match["cc"] or "", "Invocations": match["count"] or ""}
            keys |= {"Grid Size": match["grid"] or "", "Block Size": match["block"] or ""}
            launches.append(_Launch(keys))
        elif _LOOSE_LAUNCH.match(line):
            # Its metrics would be those of the launch before it.
            raise source.error(
                f"this line of a launch is damaged: {line.strip()[:60]!r}. Copy the file again.",
                line=at,
            )
        elif launches and (match := _LINE.match(line)):
            launches[-1].metrics.setdefault(match["name"], (match["unit"], match["value"], at))
        if line.strip():
            before = line
    comma = decimal_comma(text for launch in launches for _, text, _ in launch.metrics.values())
    return _rows(source, launches, [], [], None, comma=comma)


_tool.knows(
    "ncu-session",
    "ncu --page session --csv",
    _recognise_session,
    "The file holds the device and the options of the profile.",
    part_of="ncu-details",
)

FORMATS = _tool.formats
