"""Nsight Systems: kernels and copies from its SQLite export and from tables of ``nsys stats``."""

from __future__ import annotations

import re
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sqlite import (
    opened,
    refuse_views,
    select,
    select_parts,
    tables_in,
    tables_of,
    whole_numbers,
)
from errcomp.readers.core.values import count_of, dict_of
from errcomp.readers.profilers.nsys import stats as _nsys_stats
from errcomp.readers.profilers.phases import PHASES, phase_of, phases_at
from errcomp.readers.profilers.spans import containing
from errcomp.results import Dropped
from errcomp.system.strict_json import DoubledNameError, refuse_doubles

if TYPE_CHECKING:
    import polars as pl


__all__ = ["FORMATS", "read"]

# The SQLite export of Nsight Systems.

_ACTIVITY = "CUPTI_ACTIVITY_KIND_"
#: Tables of GPU work, and the kinds of their rows.
_WORK = {"KERNEL": "", "MEMCPY": "memcpy", "MEMSET": "memset", "GRAPH_TRACE": "graph"}
#: Columns of these tables, common ones and those of single tables.
_NUMBERS = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_MORE: tuple[str, ...] = ("demangledName", "shortName", "bytes", "copyKind", "graphId")
_MORE += ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
#: CUpti_ActivityMemcpyKind.
COPIES: tuple[str, ...] = (
    "",
    "Host-to-Device",
    "Device-to-Host",
    "Host-to-Array",
    "Array-to-Host",
)
COPIES += ("Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device")
COPIES += ("Host-to-Host", "Peer-to-Peer")
COPIES += ("Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device")
#: Run of work launched outside of ranges, if there are ranges.
_NO_RUN = "outside of ranges"
_PUSH_POP, _START_END = 59, 60
#: The last three bytes of a thread's id number the thread in its process.
_THREAD_BITS = 24


def is_export(source: Source) -> bool:
    """Say whether this is a database that nsys wrote."""
    tables = tables_in(source)
    if tables is None:
        # Damaged or packed: names of some tables are still readable at the start.
        head = source.head if source.head.startswith(b"SQLite format 3") else b""
        return b"StringIds" in head and any(text in head for text in (b"CUPTI_ACTIVITY", b"NVTX_"))
    nsys = any(table.startswith((_ACTIVITY, "NVTX_", "TARGET_INFO_")) for table in tables)
    return "StringIds" in tables and nsys


_tool = ToolFormats("Nsight Systems", gives="measurements", reference="hardware")


@_tool.reads(
    "nsys-sqlite",
    "SQLite export (nsys export --type sqlite)",
    "kernel, model: time, host time (ns)",
    is_export,
    sample="2023.1 and 2025.5",
    limits="The kernels of a CUDA graph form one row, unless the graph was traced by node. "
    "Runs are the outermost NVTX ranges; without NVTX there are no runs.",
)
def read_export(source: Source) -> Rows:
    """Read kernels, memory copies and sets, and graphs, with the NVTX ranges of their launch."""
    import polars as pl

    with opened(source) as database:
        refuse_views(source, database, _ACTIVITY)
        tables = tables_of(database)
        names = _strings(database)
        work = _work(source, database, tables, names)
        ranges = _ranges(database, names)
        launches = _launches(database, tables) if ranges else None
        facts = _facts(database)
    dropped = []
    complete = pl.col("start").is_not_null() & (pl.col("end") >= pl.col("start"))
    if bad := len(work) - len(work := work.filter(complete)):
        dropped.append(Dropped("GPU work without a start or an end", bad))
    if work.is_empty():
        raise source.error(
            "no kernel or copy finished on a GPU. Profile with --trace cuda, and let the "
            "program end."
        )
    work = work.sort("start", maintain_order=True)
    devices = facts["devices"]
    common = {"date": facts["date"]}
    work = work.with_columns(
        device=pl.col("deviceId").replace_strict(devices, default=None, return_dtype=pl.String)
    )
    notes = []
    runs: list[dict[str, Any]] = []
    if ranges:
        if launches is None:
            notes.append(
                "The file has NVTX ranges but no calls that launched kernels "
                "(CUPTI_ACTIVITY_KIND_RUNTIME), so the ranges of the kernels are unknown."
            )
        else:
            work, runs = _with_ranges(work, launches, ranges)
    if runs:
        notes.append(
            "Runs are the outermost NVTX ranges. The time of a run is from the start of its first "
            "GPU work to the end of its last; its host time is the duration of the range."
        )
    rows = _kernel_rows(work, common)
    if runs:
        of_runs = pl.DataFrame([{**run, **common} for run in runs], infer_schema_length=None)
        rows = pl.concat([rows, of_runs], how="diagonal_relaxed")
    return Rows(rows, dropped=dropped, notes=notes)


def _strings(database: sqlite3.Connection) -> dict[int, str]:
    columns, rows = select(database, "StringIds", ("id", "value"))
    return {number: str(text) for number, text in rows} if len(columns) == 2 else {}


def _work(
    source: Source, database: sqlite3.Connection, tables: set[str], names: dict[int, str]
) -> pl.DataFrame:
    """Return all GPU work in the columns of the tables, with names and classes."""
    import polars as pl

    frames = []
    copies = dict(enumerate(COPIES))
    columns, rows = select(database, "ENUM_CUDA_MEMCPY_OPER", ("id", "label"))
    if len(columns) == 2:
        copies |= {number: str(label) for number, label in rows}
    for kind, kernel_class in _WORK.items():
        if _ACTIVITY + kind not in tables:
            continue
        columns, parts = select_parts(database, _ACTIVITY + kind, _NUMBERS + _MORE)
        missing = [name for name in ("start", "end", "deviceId", "streamId") if name not in columns]
        if missing:
            raise source.error(
                f"table {_ACTIVITY}{kind} has no column {', '.join(missing)}. The file may come "
                "from an unsupported version of nsys: export it with a newer version."
            )
        for rows in parts:
            frame = whole_numbers(columns, rows)
            texts = _texts(kind, columns, rows, names, copies)
            classes = texts if not kernel_class else [kernel_class] * len(texts)
            if "shortName" in columns:
                at = columns.index("shortName")
                short = zip(rows, texts, strict=True)
                classes = [names.get(row[at]) or text for row, text in short]
            named = {"kernel": texts, "kernel_class": classes}
            frames.append(
                frame.with_columns(pl.Series(k, v, dtype=pl.String) for k, v in named.items())
            )
    if not frames:
        raise source.error(
            "the file has no table of kernels or copies (CUPTI_ACTIVITY_KIND_KERNEL). Profile with "
            "--trace cuda."
        )
    return pl.concat(frames, how="diagonal_relaxed")


def _texts(
    kind: str,
    columns: list[str],
    rows: list[tuple[Any, ...]],
    names: dict[int, str],
    copies: dict[int, str],
) -> list[str]:
    """Return the name of each row of a table, as in ``nsys stats``."""
    place = {name: i for i, name in enumerate(columns)}
    if kind == "MEMSET":
        return ["[CUDA memset]"] * len(rows)
    if kind == "MEMCPY":
        at = place.get("copyKind")
        labels = [None if at is None else copies.get(row[at]) for row in rows]
        return [f"[CUDA memcpy {label}]" if label else "[CUDA memcpy]" for label in labels]
    if kind == "GRAPH_TRACE":
        at = place.get("graphId")
        return ["CUDA graph" if at is None else f"CUDA graph {row[at]}" for row in rows]
    of_name = [place[column] for column in ("demangledName", "shortName") if column in place]
    texts = [""] * len(rows)
    for at in of_name:
        texts = [text or names.get(row[at], "") for row, text in zip(rows, texts, strict=True)]
    return [text or "kernel without a name" for text in texts]


def _launches(database: sqlite3.Connection, tables: set[str]) -> pl.DataFrame | None:
    """Return the time and the thread of each launch; None if unknown."""
    import polars as pl

    table = _ACTIVITY + "RUNTIME"
    wanted = ("correlationId", "globalTid", "start")
    if table not in tables:
        return None
    columns, parts = select_parts(database, table, wanted)
    if len(columns) < len(wanted):
        return None
    frame = pl.concat(whole_numbers(columns, rows) for rows in parts)
    if frame.is_empty():
        return None
    # The driver's call is inside the runtime's call and has the same number.
    calls = frame.drop_nulls().sort("start").unique(["correlationId", "globalTid"], keep="first")
    return calls.select(
        "correlationId",
        globalPid=pl.col("globalTid") // 2**_THREAD_BITS * 2**_THREAD_BITS,
        thread="globalTid",
        launched="start",
    ).unique(["correlationId", "globalPid"], keep="first", maintain_order=True)


def _ranges(database: sqlite3.Connection, names: dict[int, str]) -> list[tuple[int, int, int, str]]:
    """Return start, end, thread and text of the NVTX ranges that ended."""
    wanted = ("start", "end", "eventType", "globalTid", "text", "textId")
    columns, rows = select(database, "NVTX_EVENTS", wanted)
    if not set(columns) >= {"start", "end", "globalTid"}:
        return []
    ranges = []
    for row in rows:
        span = dict(zip(columns, row, strict=True))
        if span.get("eventType", _PUSH_POP) not in (_PUSH_POP, _START_END):
            continue
        times = (span["start"], span["end"], span["globalTid"])
        if all(isinstance(value, int) for value in times) and span["end"] >= span["start"]:
            text = span.get("text") or names.get(span.get("textId") or -1) or "range without a name"
            ranges.append((*times, str(text)))
    return ranges


def _facts(database: sqlite3.Connection) -> dict[str, Any]:
    """Return the names of the devices and the start of the profile."""
    devices: dict[int, str] = {}
    columns, rows = select(database, "TARGET_INFO_GPU", ("id", "name"))
    if len(columns) == 2:
        devices = {gpu: str(name) for gpu, name in rows if isinstance(gpu, int) and name}
    if len(set(devices.values())) > 1:
        # The devices that a program sees, and their order, are set from outside.
        columns, rows = select(database, "TARGET_INFO_CUDA_DEVICE", ("cudaId", "gpuId"))
        if len(columns) == 2:
            devices = {cuda: devices[gpu] for cuda, gpu in rows if gpu in devices}
    _, rows = select(database, "TARGET_INFO_SESSION_START_TIME", ("utcTime",))
    date = str(rows[0][0]) if rows and rows[0][0] else None
    return {"devices": devices, "date": date}


def _with_ranges(
    work: pl.DataFrame, launches: pl.DataFrame, ranges: list[tuple[int, int, int, str]]
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Add ``run`` and ``range`` to the work of a GPU, and return the rows of the runs."""
    import polars as pl

    if "correlationId" not in work.columns:
        return work, []
    keys = ["correlationId", "globalPid"] if "globalPid" in work.columns else ["correlationId"]
    of_work = work.join(
        launches.unique(keys, keep="first"), on=keys, how="left", maintain_order="left"
    )
    threads = of_work["thread"].to_list()
    times = of_work["launched"].to_list()
    on_thread: dict[int, list[int]] = {}
    for i, thread in enumerate(threads):
        if thread is not None:
            on_thread.setdefault(thread, []).append(i)
    of_thread: dict[int, list[int]] = {}
    for i, span in enumerate(ranges):
        of_thread.setdefault(span[2], []).append(i)
    outer: list[int | None] = [None] * len(threads)
    path: list[str | None] = [None] * len(threads)
    for thread, which in on_thread.items():
        own = of_thread.get(thread, [])
        starts, ends = [ranges[i][0] for i in own], [ranges[i][1] for i in own]
        for i, inside in zip(
            which, containing(starts, ends, [times[i] for i in which]), strict=True
        ):
            if inside:
                outer[i] = own[inside[0]]
                path[i] = "/".join(ranges[own[j]][3] for j in inside)
    used = sorted({i for i in outer if i is not None}, key=lambda i: ranges[i][0])
    names = _names_of_runs([ranges[i][3] for i in used])
    of_range = dict(zip(used, names, strict=True))
    run = [_NO_RUN if i is None else of_range[i][0] for i in outer]
    work = work.with_columns(
        run=pl.Series(run, dtype=pl.String),
        range=pl.Series(path, dtype=pl.String),
        **_phase(ranges, times),
    )
    spans = work.group_by("run").agg(pl.col("start").min(), pl.col("end").max())
    on_gpu = {name: (start, end) for name, start, end in spans.rows()}
    rows = []
    for i, (name, repeat) in of_range.items():
        start, end = on_gpu[name]
        row = {"level": "model", "run": name, "repeat": repeat}
        host = float(ranges[i][1] - ranges[i][0])
        rows.append({**row, "quantity": "time", "measured": float(end - start), "start": start})
        rows.append({**row, "quantity": "host time", "measured": host, "start": ranges[i][0]})
    return work, rows


def _phase(
    ranges: list[tuple[int, int, int, str]], launched: list[int | None]
) -> dict[str, pl.Series]:
    """Return the column with the phase in which each row was launched; none without phases."""
    import polars as pl

    named = [(phase, a, b) for a, b, _, text in ranges if (phase := phase_of(text))]
    known = [i for i, time in enumerate(launched) if time is not None]
    phases = phases_at(named, np.array([launched[i] for i in known], dtype=np.int64))
    if phases is None:
        return {}
    column: list[str | None] = [None] * len(launched)
    for i, phase in zip(known, phases.tolist(), strict=True):
        column[i] = PHASES[phase] if phase >= 0 else None
    return {"phase": pl.Series(column, dtype=pl.String)}


def _names_of_runs(texts: list[str]) -> list[tuple[str, int]]:
    """Return a unique name for each range, and its number among equal texts."""
    seen: dict[str, int] = {}
    numbered = []
    for text in texts:
        seen[text] = seen.get(text, 0) + 1
        numbered.append((text, seen[text]))
    return [(text if seen[text] == 1 else f"{text} #{i}", i) for text, i in numbered]


def _kernel_rows(work: pl.DataFrame, common: dict[str, Any]) -> pl.DataFrame:
    import polars as pl

    columns = set(work.columns)
    shapes = {
        shape: pl.concat_str([pl.col(f"{shape}{axis}") for axis in "XYZ"], separator="x")
        for shape in ("grid", "block")
        if {f"{shape}{axis}" for axis in "XYZ"} <= columns
    }
    return work.select(
        *(pl.lit(value, dtype=pl.String).alias(name) for name, value in common.items()),
        *(pl.col(column) for column in ("run", "range", "phase", "bytes") if column in columns),
        "kernel",
        "device",
        "start",
        "kernel_class",
        level=pl.lit("kernel"),
        quantity=pl.lit("time"),
        measured=(pl.col("end") - pl.col("start")).cast(pl.Float64),
        device_id="deviceId",
        stream="streamId",
        **shapes,
    )


# The JSON export of Nsight Systems: one event per line.

_TEXTS = re.compile(rb'\s*\{\s*"data"\s*:\s*\[\s*"')
_EVENT = b'"CudaEvent"'
#: Largest distance of the first event from the texts.
_MOST_TEXTS = 1 << 23
_COPY, _SET, _KERNEL = 1, 2, 3
#: Numbers may be text.
_count = partial(count_of, or_text=True)


class _Cuda(msgspec.Struct, gc=False):
    """The fields of a GPU event that are used; numbers may be text."""

    start: Any = msgspec.field(default=None, name="startNs")
    end: Any = msgspec.field(default=None, name="endNs")
    device: Any = msgspec.field(default=None, name="deviceId")
    stream: Any = msgspec.field(default=None, name="streamId")
    kind: Any = msgspec.field(default=None, name="eventClass")
    kernel: Any = None
    memcpy: Any = None
    memset: Any = None


class _Line(msgspec.Struct, gc=False):
    data: Any = None
    cuda: _Cuda | None = msgspec.field(default=None, name="CudaEvent")


_ONCE = dict.fromkeys(("CudaEvent", "startNs", "endNs", "deviceId", "eventClass", "kernel"), 1)


def is_lines(source: Source) -> bool:
    """Say whether this is an export of nsys in which each line is an event."""
    if _EVENT in source.head:
        return source.head.lstrip()[:1] == b"{" and b'"eventClass"' in source.head
    if _TEXTS.match(source.head) is None or b"\n" in source.head.strip():
        return False
    try:
        with source.open() as file:
            return _EVENT in file.read(_MOST_TEXTS)
    except InputError:
        return False


@_tool.reads(
    "nsys-lines",
    "JSON export, one event per line (nsys export --type jsonlines)",
    "kernel: time (ns)",
    is_lines,
    limits="NVTX ranges and calls on the host are left out; the SQLite export has them.",
)
def read_lines(source: Source) -> Rows:
    """Read kernels, memory copies and memory sets."""
    decoder = msgspec.json.Decoder(_Line)
    texts: list[Any] = []
    rows: list[dict[str, Any]] = []
    bad = 0
    for number, text in enumerate(source.lines(), start=1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
            refuse_doubles(text, _ONCE)
        except DoubledNameError as error:
            raise source.error(f"{error}. Export it again.", line=number) from None
        except msgspec.ValidationError:
            bad += _EVENT.decode() in text
            continue
        except (msgspec.DecodeError, RecursionError) as error:
            raise source.error(
                f"not valid JSON ({error}). The file may be incomplete: export it again.",
                line=number,
            ) from None
        if isinstance(line.data, list) and not texts:
            texts = line.data
        if line.cuda is None or line.cuda.kind not in (_COPY, _SET, _KERNEL):
            continue
        row = _row(line.cuda, texts)
        if row is None:
            bad += 1
        else:
            rows.append(row)
    if not rows:
        raise source.error(f"no GPU work ({bad} events without times). Profile with --trace cuda.")
    return Rows(rows, dropped={"events without times": bad})


def _row(event: _Cuda, texts: list[Any]) -> dict[str, Any] | None:
    start, end = _count(event.start), _count(event.end)
    if start is None or end is None or end < start:
        return None
    kernel = dict_of(event.kernel)
    moved = dict_of(event.memcpy if event.kind == _COPY else event.memset)
    if event.kind == _KERNEL:
        name = _name(kernel, texts)
        fields: dict[str, Any] = {"kernel": name, "kernel_class": name}
        for shape in ("grid", "block"):
            axes = [_count(kernel.get(f"{shape}{axis}")) for axis in "XYZ"]
            fields[shape] = None if None in axes else "x".join(map(str, axes))
    elif event.kind == _COPY:
        way = _count(moved.get("copyKind"))
        label = COPIES[way] if way is not None and way < len(COPIES) else ""
        fields = {"kernel": f"[CUDA memcpy {label}]".replace(" ]", "]"), "kernel_class": "memcpy"}
    else:
        fields = {"kernel": "[CUDA memset]", "kernel_class": "memset"}
    device, stream = _count(event.device), _count(event.stream)
    return {
        "measured": float(end - start),
        "start": start,
        **fields,
        "device_id": device,
        "stream": stream,
        "bytes": _count(moved.get("sizebytes")),
    }


def _name(kernel: dict[str, Any], texts: list[Any]) -> str:
    for key in ("demangledName", "shortName"):
        number = _count(kernel.get(key))
        if number is not None and number < len(texts) and texts[number]:
            return str(texts[number])
    return "kernel without a name"


_TOOLS = ("nsys", "ncu")


def read(path: AnyPath) -> Output:
    r"""Read profiles of Nsight Systems (nsys): SQLite exports and tables of ``nsys stats``.

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files:

        * output of ``nsys export`` with ``--type sqlite`` or ``jsonlines``;
        * output of ``nsys stats`` as CSV, TSV, JSON, in columns or in boxes:
          cuda_gpu_trace, cuda_kern_exec_trace, cuda_kern_exec_sum, cuda_gpu_kern_sum,
          cuda_gpu_kern_gb_sum, cuda_gpu_mem_time_sum, cuda_gpu_sum, cuda_api_gpu_sum,
          nvtx_kern_sum, and their older names (gputrace, gpukernsum, …).

    Returns
    -------
    Output
        Measured ``time`` of each kernel, memory copy and memory set, in ns (tables state their own
        unit); for tables of sums the mean of the ``count`` instances. Of several tables that list
        the same work, one is read. An SQLite export also gives the outermost NVTX range around the
        launch (``run``), all ranges around it (``range``), and where ranges are named forward,
        backward or optimizer, that ``phase``. Each such run has the ``time`` from the start of its
        first GPU work to the end of the last, and the ``host time`` of the range itself, which may
        end before the GPU does.

    Raises
    ------
    InputError
        A file is damaged, or holds no GPU work.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "kernels.csv"
    >>> _ = path.write_text("Time (%),Total Time (ns),Instances,Name\n100.0,3000,2,gemm\n")
    >>> read(path).rows.select("kernel", "count", "measured", "unit").rows()
    [('gemm', 2, 1500.0, 'ns')]
    """
    return read_as(path, FORMATS)


def _recognise_wrapper(source: Source) -> bool:
    """Recognise notes of a script that calls nsys or ncu, which repeat the tools' files."""
    if set(source.json_names) >= {"case_id", "command", "outputs", "tool", "tool_versions"}:
        return any(f'"tool": "{tool}"' in line for line in source.head_lines for tool in _TOOLS)
    lines = [*source.head_lines[:2], "", ""]
    if lines[0].startswith("cwd: ") and lines[1].startswith("command: "):
        return any(f"/{tool} " in lines[1] or f" {tool} " in lines[1] for tool in _TOOLS)
    return set(source.header) >= {"trace_row_index", "name_index", "start_ns", "corr_id"}


_tool.reads(
    "nsys-stats",
    "tables of nsys stats: cuda_gpu_trace, cuda_gpu_kern_sum, …",
    "kernel: time (ns, us, ms, s)",
    lambda source: _nsys_stats.kind_of(source) in ("trace", "sum"),
    sample="2025.5",
    limits="Tables about the host (cuda_api_sum, osrt_sum, nvtx_sum) are left out.",
)(_nsys_stats.read_tables)
_tool.knows(
    "nsys-host-stats",
    "tables of nsys stats about the host: cuda_api_sum, osrt_sum, nvtx_sum, …",
    lambda source: _nsys_stats.kind_of(source) == "other",
    "The file holds times of calls on the host, but not of kernels. Give cuda_gpu_trace or "
    "cuda_gpu_kern_sum.",
)
_tool.knows(
    "nsys-wrapper",
    "kernel_list.csv, meta.json or invocation.txt of a script around nsys and ncu",
    _recognise_wrapper,
    "A script wrote this file, which repeats the profiler's own files. Give the profiler's files.",
    sample="2026",
)

FORMATS = _tool.formats
