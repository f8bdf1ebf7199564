"""Profilers of ROCm: rocprof, rocprofv2, rocprofv3 and rocmProfileData: CSV, JSON, SQLite."""

from __future__ import annotations

import re
from os import PathLike

from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.profilers.rocprof import chrome as _rocprof_chrome
from errcomp.readers.profilers.rocprof import csv as _rocprof_csv
from errcomp.readers.profilers.rocprof import json as _rocprof_json
from errcomp.readers.profilers.rocprof import rocpd as _rocprof_rocpd
from errcomp.readers.profilers.rocprof import rpd as _rocprof_rpd

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
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
        Measured ``time`` of each kernel and copy in ns, end less begin; of a table of sums the
        mean of the ``count`` calls. ``start`` is when it began, ``stream`` the stream or, where
        there is none, the queue.

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
#: Of the older and the newer versions, without times.
_COUNTED = (
    {"Index", "KernelName", "gpu-id", "grd", "wgr"},
    {"Kernel_Name", "Dispatch_Id", "Counter_Name", "Counter_Value"},
)
_STATS = {"Name", "Calls", "TotalDurationNs"}
#: What the host calls, and the groups of a table of domains.
_HOST_CALL = re.compile(
    r"(?:hip|hsa|roctx|ompt|rocdec|rocjpeg)[_A-Z]\w*|nccl(?!DevKernel|Kernel)[A-Z]\w*|__hip\w+|"
    r"(?!MEMORY_COPY_)[A-Z_]+"
)


def _is_trace(source: Source) -> bool:
    return any(needed <= set(source.header) for needed in _TRACES)


def _is_json(source: Source) -> bool:
    return "rocprofiler-sdk-tool" in source.json_names


def _is_stats(source: Source) -> bool:
    return set(source.header) >= _STATS and not _of_host(source)


def _of_host(source: Source) -> bool:
    """Say whether the names of a table of sums are those of calls, not of kernels."""
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


def _is_agents(source: Source) -> bool:
    return set(source.header) >= {"Node_Id", "Agent_Type", "Cu_Count", "Product_Name"}


FORMATS = (
    Format(
        name="rocprof-trace",
        tool="rocprof",
        files="results.csv; kernel, memory copy and counter traces of rocprofv3",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="1.x",
        recognise=_is_trace,
        read=_rocprof_csv.read_trace,
        limits="Counters are left out.",
    ),
    Format(
        name="rocprof-stats",
        tool="rocprof",
        files="results.stats.csv, kernel_stats.csv",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="1.x",
        recognise=_is_stats,
        read=_rocprof_csv.read_stats,
    ),
    Format(
        name="rocprof-json",
        tool="rocprof",
        files="results.json of rocprofv3",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="rocprofv3 (2025)",
        recognise=_is_json,
        read=_rocprof_json.read_json,
        limits="Calls of the host, counters and samples are left out.",
    ),
    Format(
        name="rocprof-rocpd",
        tool="rocprof",
        files="results.db (rocpd) of rocprofv3",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_rocprof_rocpd.is_rocpd,
        read=_rocprof_rocpd.read_rocpd,
        limits="Calls of the host, counters and samples are left out.",
    ),
    Format(
        name="rocprof-rpd",
        tool="rocprof",
        files="*.rpd of rocmProfileData",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_rocprof_rpd.is_rpd,
        read=_rocprof_rpd.read_rpd,
        limits="Calls of the host are left out.",
    ),
    Format(
        name="rocprof-chrome",
        tool="rocprof",
        files="results.json of rocprof 1.x (Chrome trace)",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_rocprof_chrome.is_chrome,
        read=_rocprof_chrome.read_chrome,
        limits="Calls of the host are left out.",
    ),
    no_times(
        "rocprof-counters",
        "rocprof",
        "results.csv without times, counter_collection.csv without times",
        _is_counters,
        "It holds counters of kernels and no times. Profile with --timestamp on (rocprof), or give "
        "the kernel trace (rocprofv3 --kernel-trace).",
    ),
    no_times(
        "rocprof-host",
        "rocprof",
        "hip_stats.csv, hsa_stats.csv, domain_stats.csv, hip_api_trace.csv, …",
        _is_host,
        "It holds times of calls on the host, none of kernels. Give the kernel trace.",
    ),
    no_times(
        "rocprof-agents",
        "rocprof",
        "agent_info.csv of rocprofv3",
        _is_agents,
        "It says which devices there were.",
        part_of="rocprof-trace",
    ),
)
