"""Profilers of ROCm: rocprof, rocprofv2, rocprofv3 and rocmProfileData: CSV, JSON, SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet
from errcomp.readers.core.sqlite import (
    opened,
    refuse_views,
    select,
    tables_in,
    tables_of,
    whole_numbers,
)
from errcomp.readers.profilers.rocprof import json as of_json

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "read"]


def read(path: AnyPath) -> Output:
    r"""Read profiles of rocprof, rocprofv2, rocprofv3 and rocmProfileData (RPD).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files: ``results.csv``, ``results.stats.csv`` and
        ``results.json``; ``*_kernel_trace.csv``, ``*_memory_copy_trace.csv``,
        ``*_counter_collection.csv``, ``*_kernel_stats.csv``, ``*_results.json`` and
        ``*_results.db`` of rocprofv3; ``*.rpd``.

    Returns
    -------
    Output
        Measured ``time`` of each kernel and copy in ns, end less begin; in a table of sums the mean
        of the ``count`` calls. ``start`` is its begin, ``stream`` its stream or, without streams,
        its queue.

    Raises
    ------
    InputError
        A file is damaged, or holds no times of kernels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.csv"
    >>> _ = path.write_text('"Index","KernelName","BeginNs","EndNs"\n0,"gemm.kd",100,350\n')
    >>> read(path).rows.select("kernel", "measured", "unit", "start").rows()
    [('gemm.kd', 250.0, 'ns', 100)]
    """
    return read_as(path, FORMATS)


_TRACES = (
    {"KernelName", "BeginNs", "EndNs"},
    {"Kernel_Name", "Start_Timestamp", "End_Timestamp"},
    {"Direction", "Correlation_Id", "Start_Timestamp", "End_Timestamp"},
)
#: Columns of counters in older and newer versions, without times.
_COUNTED = (
    {"Index", "KernelName", "gpu-id", "grd", "wgr"},
    {"Kernel_Name", "Dispatch_Id", "Counter_Name", "Counter_Value"},
)
_STATS = {"Name", "Calls", "TotalDurationNs"}
#: Prefixes of calls on the host, and groups of a table of domains.
_HOST_CALL = re.compile(
    r"(?:hip|hsa|roctx|ompt|rocdec|rocjpeg)[_A-Z]\w*|nccl(?!DevKernel|Kernel)[A-Z]\w*|__hip\w+|"
    r"(?!MEMORY_COPY_)[A-Z_]+"
)


def _is_trace(source: Source) -> bool:
    return any(needed <= set(source.header) for needed in _TRACES)


def _of_host(source: Source) -> bool:
    """Say whether a table of sums lists calls, not kernels."""
    rows = [line for line in source.head_lines if line.strip()][1:]
    names = [row.split(",")[0].strip().strip('"') for row in rows]
    return bool(names) and all(_HOST_CALL.fullmatch(name) for name in names)


def _is_host(source: Source) -> bool:
    header = set(source.header)
    if header >= _STATS:
        return _of_host(source)
    return header >= {"Function", "Start_Timestamp", "End_Timestamp"} or header >= {
        "Domain",
        "Function",
        "Correlation_Id",
    }


def _is_counters(source: Source) -> bool:
    header = set(source.header)
    return not _is_trace(source) and any(needed <= header for needed in _COUNTED)


# The CSV files of rocprof, rocprofv2 and rocprofv3.

#: Names of the columns in all versions.
_ALIASES = {
    "kernel": ("KernelName", "Kernel_Name"),
    "start": ("BeginNs", "Start_Timestamp"),
    "end": ("EndNs", "End_Timestamp"),
    "dispatch": ("Index", "Dispatch_Id", "Dispatch_ID"),
    "device_id": ("gpu-id", "GPU_ID", "Agent_Id", "Source_Agent_Id"),
    "process": ("pid", "PID", "Process_Id"),
    "grid": ("grd", "GRD", "Grid_Size"),
    "block": ("wgr", "WGR", "Workgroup_Size"),
    "direction": ("Direction",),
}
_STREAMS = ("Stream_Id", "queue-id", "Queue_ID", "Queue_Id")
_TRACE = re.compile(r"(?:kernel|memory_copy|counter_collection)(?:_trace)?\.csv(?:\.gz)?$")
_COPIED = re.compile(r"MEMORY_COPY_|Copy(?:Host|Device|Peer)")
_COUNTERS = frozenset(("Counter_Name", "Counter_Value"))


_tool = ToolFormats(
    "rocprof",
    gives="measurements",
    reference="hardware",
    limits="Calls on the host, counters and samples are left out.",
)


@_tool.reads(
    "rocprof-trace",
    "results.csv; kernel, memory copy and counter traces of rocprofv3",
    "kernel: time (ns)",
    _is_trace,
    sample="1.x",
    limits="Counters are left out.",
)
def read_trace(source: Source) -> Rows:
    """Read one line per dispatch of a kernel, or per copy."""
    import polars as pl

    sheet = source.sheet()
    named = {
        role: next((name for name in names if name in sheet.columns), None)
        for role, names in _ALIASES.items()
    }
    start, end = (_whole_times(sheet, str(named[role])) for role in ("start", "end"))
    # Differences of whole numbers: as floats, these times lose their last ns.
    measured = (end - start).cast(pl.Float64)
    keys: dict[str, Any] = {"measured": measured, "start": start}
    if named["kernel"] is None:
        keys["kernel"] = [f"copy {text}".strip() for text in sheet.texts(str(named["direction"]))]
        keys["kernel_class"] = ["memcpy"] * len(sheet)
    else:
        keys["kernel"] = [text or "kernel without a name" for text in sheet.texts(named["kernel"])]
    for role in ("dispatch", "device_id", "process"):
        if (column := named[role]) is not None:
            keys[role] = [text or None for text in sheet.texts(column)]
    stream = next((column for column in _STREAMS if column in sheet.columns), None)
    if stream is not None:
        keys["stream"] = sheet.texts(stream)
    for shape, name in (("grid", "Grid_Size"), ("block", "Workgroup_Size")):
        keys |= _shape(sheet, shape, name, named[shape])
    if (devices := _devices_beside(source)) and "device_id" in keys:
        keys["device"] = [devices.get(text or "") for text in keys["device_id"]]
    frame = pl.DataFrame(keys)
    notes, gone = [], 0
    if set(sheet.columns) >= _COUNTERS and {"dispatch", "process"} <= set(keys):
        # One line per counter of a dispatch.
        frame = frame.unique(["process", "dispatch"], keep="first", maintain_order=True)
        notes.append("Counters were collected: kernels ran one at a time, and may have run longer.")
        gone = len(sheet) - len(frame)
    return Rows(frame, dropped={"further counters of the same dispatch": gone}, notes=notes)


@_tool.reads(
    "rocprof-stats",
    "results.stats.csv, kernel_stats.csv",
    "kernel: time (ns)",
    lambda source: set(source.header) >= _STATS and not _of_host(source),
    sample="1.x",
    limits="",
)
def read_stats(source: Source) -> Rows:
    """Read one line per kernel, with the number and the total time of its runs."""
    import polars as pl

    sheet = source.sheet(("Name", "Calls", "TotalDurationNs"))
    calls, total = sheet.numbers("Calls"), sheet.numbers("TotalDurationNs")
    # The average of the older versions has no decimals.
    mean = total / calls
    whole = np.where(np.isfinite(calls) & (calls < 2**53), calls, 0)
    fields: dict[str, Any] = {
        "kernel": (names := [text or "kernel without a name" for text in sheet.texts("Name")]),
        "kernel_class": ["memcpy" if _COPIED.match(name) else name for name in names],
        "count": pl.Series(whole).cast(pl.Int64, strict=False),
        "measured": mean,
    }
    for column, key in (("MinNs", "minimum"), ("MaxNs", "maximum"), ("StdDev", "deviation")):
        if column in sheet.columns:
            fields[key] = sheet.numbers(column)
    return Rows(pl.DataFrame(fields, nan_to_null=True))


def _whole_times(sheet: Sheet, column: str) -> pl.Series:
    """Return times as whole numbers; null where missing."""
    import polars as pl

    sheet.numbers(column)  # raises on fields that are not numbers
    return pl.Series(sheet.texts(column), dtype=pl.String).cast(pl.Int64, strict=False)


def _shape(sheet: Sheet, shape: str, name: str, single: str | None) -> dict[str, Sequence[Any]]:
    """Return a grid or block; rocprofv3 has its axes, the older ones their product."""
    axes = [f"{name}_{axis}" for axis in "XYZ"]
    if set(axes) <= set(sheet.columns):
        columns = [sheet.texts(axis) for axis in axes]
        return {shape: ["x".join(sizes) for sizes in zip(*columns, strict=True)]}
    if single is None:
        return {}
    return {shape: [text or None for text in sheet.texts(single)]}


def _devices_beside(source: Source) -> dict[str, str]:
    """Return the names of the devices, from the file that rocprofv3 writes with a trace."""
    own = source.path.name
    beside = source.sibling(_TRACE.sub("agent_info.csv", own)) if _TRACE.search(own) else None
    if beside is None:
        return {}
    try:
        agents = beside.sheet(("Node_Id", "Agent_Type", "Product_Name"))
    except InputError:
        return {}
    columns = (agents.texts(column) for column in ("Node_Id", "Agent_Type", "Product_Name"))
    devices: dict[str, str] = {}
    for node, kind, name in zip(*columns, strict=True):
        if kind == "GPU" and name:
            # The number alone (before version 0.6), and numbers over all nodes (the default).
            devices |= {node: name, f"Agent {node}": name}
    return devices


_tool.reads(
    "rocprof-json",
    "results.json of rocprofv3",
    "kernel: time (ns)",
    lambda source: "rocprofiler-sdk-tool" in source.json_names,
    sample="rocprofv3 (2025)",
)(of_json.read_json)


# SQLite databases: of rocprofv3 (rocpd) and of rocmProfileData (RPD).

_DISPATCH, _COPY = "rocpd_kernel_dispatch", "rocpd_memory_copy"
_TIMES = ("start", "end")
_OF_DISPATCH = (*_TIMES, "pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id")
_AXES = tuple(f"{shape}_size_{axis}" for shape in ("grid", "workgroup") for axis in "xyz")
_OF_COPY = (*_TIMES, "pid", "dst_agent_id", "name_id", "size", "stream_id")


def is_rocpd(source: Source) -> bool:
    """Say whether this is a database that rocprofv3 wrote."""
    tables = tables_in(source) or set()
    return any(table.startswith(_DISPATCH) for table in tables)


@_tool.reads("rocprof-rocpd", "results.db (rocpd) of rocprofv3", "kernel: time (ns)", is_rocpd)
def read_rocpd(source: Source) -> Rows:
    """Read the dispatches and copies of all processes of a database."""
    import polars as pl

    frames: list[pl.DataFrame | None] = []
    with opened(source) as database:
        for table in (_DISPATCH, _COPY):
            refuse_views(source, database, f"{table}_")
        tables = tables_of(database)
        own = sorted(table for table in tables if table.startswith(f"{_DISPATCH}_"))
        # Each process has its own tables; views without a process name show all of them.
        for suffix in [table.removeprefix(_DISPATCH) for table in own] or [""]:
            frames.append(_dispatches(source, database, suffix))
            if f"{_COPY}{suffix}" in tables:
                frames.append(_copies(database, suffix))
    frame = pl.concat([frame for frame in frames if frame is not None], how="diagonal_relaxed")
    if frame.is_empty():
        raise source.error("the file lists no kernel. Profile with --kernel-trace.")
    frame = frame.sort("start", maintain_order=True).with_columns(
        measured=(pl.col("end") - pl.col("start")).cast(pl.Float64),
    )
    return Rows(frame.drop("end"))


def _dispatches(source: Source, database: sqlite3.Connection, suffix: str) -> pl.DataFrame:
    import polars as pl

    columns, rows = select(database, _DISPATCH + suffix, _OF_DISPATCH + _AXES)
    if not {*_TIMES, "kernel_id"} <= set(columns):
        raise source.error(
            f"table {_DISPATCH}{suffix} lacks at least one of the columns start, end and "
            "kernel_id. The file may come from an unsupported version of rocprofv3: convert it to "
            "CSV with rocpd."
        )
    frame = whole_numbers(columns, rows)
    names = _texts(database, f"rocpd_info_kernel_symbol{suffix}", ("display_name", "kernel_name"))
    kernels = [
        names.get(key) or f"kernel {key}" for key in frame["kernel_id"].fill_null(-1).to_list()
    ]
    shapes = {
        shape: pl.concat_str([pl.col(f"{column}_size_{axis}") for axis in "xyz"], separator="x")
        for shape, column in (("grid", "grid"), ("block", "workgroup"))
        if {f"{column}_size_{axis}" for axis in "xyz"} <= set(columns)
    }
    stream = next((column for column in ("stream_id", "queue_id") if column in columns), None)
    return frame.select(
        *_TIMES,
        *((pl.col(stream).alias("stream"),) if stream else ()),
        *(pl.col(old).alias(new) for old, new in _ROCPD_KEYS.items() if old in columns),
        kernel=pl.Series(kernels, dtype=pl.String),
        kernel_class=pl.Series(kernels, dtype=pl.String),
        device=_devices(database, frame, "agent_id", suffix),
        **shapes,
    )


_ROCPD_KEYS = {
    "pid": "process",
    "dispatch_id": "dispatch",
    "agent_id": "device_id",
    "size": "bytes",
}


def _copies(database: sqlite3.Connection, suffix: str) -> pl.DataFrame | None:
    import polars as pl

    columns, rows = select(database, _COPY + suffix, _OF_COPY)
    if not set(_TIMES) <= set(columns) or not rows:
        return None
    frame = whole_numbers(columns, rows)
    names = _texts(database, f"rocpd_string{suffix}", ("string",))
    ids = frame["name_id"].to_list() if "name_id" in columns else [None] * len(frame)
    kinds = [(names.get(name_id) or "").removeprefix("MEMORY_COPY_") for name_id in ids]
    return frame.select(
        *_TIMES,
        *(pl.col(old).alias(new) for old, new in _ROCPD_KEYS.items() if old in columns),
        kernel=pl.Series([f"copy {kind}".strip() for kind in kinds], dtype=pl.String),
        kernel_class=pl.lit("memcpy"),
        device=_devices(database, frame, "dst_agent_id", suffix),
        **({"stream": pl.col("stream_id")} if "stream_id" in columns else {}),
    )


def _texts(
    database: sqlite3.Connection, table: str, wanted: tuple[str, ...]
) -> dict[int | None, str]:
    """Return the first text that each numbered row of a table has."""
    columns, rows = select(database, table, ("id", *wanted))
    if columns[:1] != ["id"]:
        return {}
    names: dict[int | None, str] = {}
    for number, *texts in rows:
        text = next((text for text in texts if isinstance(text, str) and text), None)
        if isinstance(number, int) and text is not None:
            names[number] = text
    return names


def _devices(
    database: sqlite3.Connection, frame: pl.DataFrame, column: str, suffix: str
) -> pl.Series:
    import polars as pl

    names = _texts(database, f"rocpd_info_agent{suffix}", ("product_name", "name"))
    ids = frame[column].to_list() if column in frame.columns else [None] * len(frame)
    return pl.Series([names.get(agent) for agent in ids], dtype=pl.String)


# The SQLite database (RPD) of rocmProfileData.

_TABLES = {"rocpd_op", "rocpd_string"}

_RPD_COLUMNS = (*_TIMES, "gpuId", "queueId", "description_id", "opType_id")
_COPY_KIND, _FILL = "Copy", "Fill"
#: Operations that are not work.
_MARKERS = frozenset(("Barrier", "Marker", "Task", "UserMarker"))


@_tool.reads(
    "rocprof-rpd",
    "*.rpd of rocmProfileData",
    "kernel: time (ns)",
    lambda source: (tables_in(source) or set()) >= _TABLES,
    limits="Calls on the host are left out.",
)
def read_rpd(source: Source) -> Rows:
    """Read the kernels and copies of a database."""
    import polars as pl

    with opened(source) as database:
        columns, rows = select(database, "rocpd_op", _RPD_COLUMNS)
        names, texts = select(database, "rocpd_string", ("id", "string"))
    if not {*_TIMES, "description_id", "opType_id"} <= set(columns) or len(names) < 2:
        raise source.error(
            "its tables rocpd_op and rocpd_string lack columns that rocmProfileData writes. "
            "Convert it with rpd2tracing."
        )
    known = {number: text for number, text in texts if isinstance(text, str)}
    frame = whole_numbers(columns, rows)
    kinds = [known.get(number, "") for number in frame["opType_id"].to_list()]
    described = [known.get(number, "") for number in frame["description_id"].to_list()]
    kernels = [
        text or kind or "kernel without a name" for text, kind in zip(described, kinds, strict=True)
    ]
    classes = [_class_of(kind, kernel) for kind, kernel in zip(kinds, kernels, strict=True)]
    work = frame.select(
        *((pl.col("gpuId").alias("device_id"),) if "gpuId" in columns else ()),
        *((pl.col("queueId").alias("stream"),) if "queueId" in columns else ()),
        *_TIMES,
        measured=(pl.col("end") - pl.col("start")).cast(pl.Float64),
        kernel=pl.Series(kernels, dtype=pl.String),
        kernel_class=pl.Series(classes, dtype=pl.String),
    )
    markers = pl.Series([kind in _MARKERS for kind in kinds], dtype=pl.Boolean)
    work = work.filter(~markers).sort("start", maintain_order=True).drop("end")
    return Rows(work, dropped={"barriers and markers": int(markers.sum())})


def _class_of(kind: str, kernel: str) -> str:
    if kind.startswith(_COPY_KIND):
        return "memcpy"
    return "memset" if kind.startswith(_FILL) else kernel


_tool.reads(
    "rocprof-chrome",
    "results.json of rocprof 1.x (Chrome trace)",
    "kernel: time (ns)",
    of_json.is_chrome,
    limits="Calls on the host are left out.",
)(of_json.read_chrome)
_tool.knows(
    "rocprof-counters",
    "results.csv without times, counter_collection.csv without times",
    _is_counters,
    "The file holds counters of kernels, but no times. Profile with --timestamp on (rocprof), or "
    "give the kernel trace (rocprofv3 --kernel-trace).",
)
_tool.knows(
    "rocprof-host",
    "hip_stats.csv, hsa_stats.csv, domain_stats.csv, hip_api_trace.csv, …",
    _is_host,
    "The file holds times of calls on the host, but not of kernels. Give the kernel trace.",
)
_tool.knows(
    "rocprof-agents",
    "agent_info.csv of rocprofv3",
    ("Node_Id", "Agent_Type", "Cu_Count", "Product_Name"),
    "The file lists the devices.",
    part_of="rocprof-trace",
)

FORMATS = _tool.formats
