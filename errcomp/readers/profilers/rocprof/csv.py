"""The CSV files of rocprof, rocprofv2 and rocprofv3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.sheet import Sheet
from errcomp.readers.core.source import Source
from errcomp.results import Dropped

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_stats", "read_trace"]

#: What the columns of the versions are called.
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
_COPY = re.compile(r"MEMORY_COPY_|Copy(?:Host|Device|Peer)")
_COUNTERS = frozenset(("Counter_Name", "Counter_Value"))


def read_trace(source: Source) -> Output:
    """Read one line for each dispatch of a kernel, or for each copy."""
    import polars as pl

    sheet = source.sheet()
    found = {
        role: next((one for one in names if one in sheet.columns), None)
        for role, names in _ALIASES.items()
    }
    start, end = (_whole(sheet, str(found[role])) for role in ("start", "end"))
    # Differences of whole numbers: as floating-point numbers these times have lost their last ns.
    measured = (end - start).cast(pl.Float64)
    keys: dict[str, Any] = {"measured": measured, "start": start}
    if found["kernel"] is None:
        keys["kernel"] = [f"copy {text}".strip() for text in sheet.texts(str(found["direction"]))]
        keys["kernel_class"] = ["memcpy"] * len(sheet)
    else:
        keys["kernel"] = [text or "kernel without a name" for text in sheet.texts(found["kernel"])]
    for role in ("dispatch", "device_id", "process"):
        if (column := found[role]) is not None:
            keys[role] = [text or None for text in sheet.texts(column)]
    stream = next((one for one in _STREAMS if one in sheet.columns), None)
    if stream is not None:
        keys["stream"] = sheet.texts(stream)
    for shape, name in (("grid", "Grid_Size"), ("block", "Workgroup_Size")):
        keys |= _shape(sheet, shape, name, found[shape])
    if (devices := _devices(source)) and "device_id" in keys:
        keys["device"] = [devices.get(text or "") for text in keys["device_id"]]
    frame = pl.DataFrame(keys)
    notes, dropped = [], []
    if set(sheet.columns) >= _COUNTERS and {"dispatch", "process"} <= set(keys):
        # One line for each counter of a dispatch.
        frame = frame.unique(["process", "dispatch"], keep="first", maintain_order=True)
        notes.append("Counters were collected: kernels ran one at a time, and may have run longer.")
        if gone := len(sheet) - len(frame):
            dropped.append(Dropped("further counters of the same dispatch", gone))
    frame = frame.with_columns(
        tool=pl.lit("rocprof"), level=pl.lit("kernel"), quantity=pl.lit("time"), unit=pl.lit("ns")
    )
    return output(source.name, "rocprof-trace", frame, dropped=dropped, notes=notes)


def read_stats(source: Source) -> Output:
    """Read one line for each kernel, with how often it ran and how long all its runs took."""
    import polars as pl

    sheet = source.sheet(("Name", "Calls", "TotalDurationNs"))
    calls, total = sheet.numbers("Calls"), sheet.numbers("TotalDurationNs")
    # The average of the older versions has no decimals.
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / calls
    whole = np.where(np.isfinite(calls) & (calls < 2**53), calls, 0)
    found: dict[str, Any] = {
        "kernel": (names := [text or "kernel without a name" for text in sheet.texts("Name")]),
        "kernel_class": ["memcpy" if _COPY.match(name) else name for name in names],
        "count": pl.Series(whole).cast(pl.Int64, strict=False),
        "measured": mean,
    }
    for column, key in (("MinNs", "minimum"), ("MaxNs", "maximum"), ("StdDev", "deviation")):
        if column in sheet.columns:
            found[key] = sheet.numbers(column)
    frame = pl.DataFrame(found, nan_to_null=True).with_columns(
        tool=pl.lit("rocprof"), level=pl.lit("kernel"), quantity=pl.lit("time"), unit=pl.lit("ns")
    )
    return output(source.name, "rocprof-stats", frame)


def _whole(sheet: Sheet, column: str) -> pl.Series:
    """Return times as whole numbers; null where the tool had none."""
    import polars as pl

    sheet.numbers(column)  # says what is wrong with a field that is no number
    return pl.Series(sheet.texts(column), dtype=pl.String).cast(pl.Int64, strict=False)


def _shape(sheet: Sheet, shape: str, name: str, single: str | None) -> dict[str, Sequence[Any]]:
    """Return a grid or block; rocprofv3 has its axes, the older ones their product."""
    axes = [f"{name}_{axis}" for axis in "XYZ"]
    if set(axes) <= set(sheet.columns):
        columns = [sheet.texts(axis) for axis in axes]
        return {shape: ["x".join(one) for one in zip(*columns, strict=True)]}
    if single is None:
        return {}
    return {shape: [text or None for text in sheet.texts(single)]}


def _devices(source: Source) -> dict[str, str]:
    """Return the names of the devices, from the file that rocprofv3 writes beside a trace."""
    own = source.path.name
    beside = source.sibling(_TRACE.sub("agent_info.csv", own)) if _TRACE.search(own) else None
    if beside is None:
        return {}
    try:
        agents = beside.sheet(("Node_Id", "Agent_Type", "Product_Name"))
    except InputError:
        return {}
    columns = (agents.texts(one) for one in ("Node_Id", "Agent_Type", "Product_Name"))
    found: dict[str, str] = {}
    for node, kind, name in zip(*columns, strict=True):
        if kind == "GPU" and name:
            # The number alone (versions before 0.6), and that of all nodes (the default).
            found |= {node: name, f"Agent {node}": name}
    return found
