"""Nsight Systems: kernels and copies from its SQLite export and from tables of ``nsys stats``."""

from __future__ import annotations

from os import PathLike

from errcomp.readers import _nsys_lines, _nsys_sqlite, _nsys_stats
from errcomp.readers._no_times import no_times
from errcomp.readers.output import Output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

__all__ = ["FORMATS", "read"]

_TOOLS = ("nsys", "ncu")


def read(path: str | PathLike[str]) -> Output:
    r"""Read profiles of Nsight Systems (nsys): SQLite exports and tables of ``nsys stats``.

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files:

        * what ``nsys export`` writes, with ``--type sqlite`` or ``jsonlines``;
        * what ``nsys stats`` prints or writes, as CSV, TSV, JSON, in columns or in boxes:
          cuda_gpu_trace, cuda_kern_exec_trace, cuda_kern_exec_sum, cuda_gpu_kern_sum,
          cuda_gpu_kern_gb_sum, cuda_gpu_mem_time_sum, cuda_gpu_sum, cuda_api_gpu_sum,
          nvtx_kern_sum, and their older names (gputrace, gpukernsum, …).

    Returns
    -------
    Output
        Measured ``time`` of each kernel, copy and set of memory, in ns (a table says its own
        unit); of a table of sums the mean of the ``count`` instances. Of tables that list the same
        work in several ways one is read. An export to SQLite also says which outermost NVTX range
        launched it (``run``) and all ranges around the launch (``range``); of each such run there
        are the ``time`` from the first to the last thing that it did on the GPU, and the
        ``host time`` of the range itself, which may end before the GPU does.

    Raises
    ------
    InputError
        A file is damaged, or holds no work of a GPU.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "kernels.csv"
    >>> _ = path.write_text("Time (%),Total Time (ns),Instances,Name\n100.0,3000,2,gemm\n")
    >>> read(path).rows.select("kernel", "count", "measured", "unit").rows()
    [('gemm', 2, 1500.0, 'ns')]
    """
    return read_as(path, FORMATS)


def _recognise_stats(source: Source) -> bool:
    return _nsys_stats.kind_of(source) in ("trace", "sum")


def _recognise_host(source: Source) -> bool:
    return _nsys_stats.kind_of(source) == "other"


def _recognise_wrapper(source: Source) -> bool:
    """Recognise notes of a script that calls nsys or ncu: they say what the tools' files say."""
    if set(source.json_names) >= {"case_id", "command", "outputs", "tool", "tool_versions"}:
        return any(f'"tool": "{tool}"' in line for line in source.head_lines for tool in _TOOLS)
    lines = [*source.head_lines[:2], "", ""]
    if lines[0].startswith("cwd: ") and lines[1].startswith("command: "):
        return any(f"/{tool} " in lines[1] or f" {tool} " in lines[1] for tool in _TOOLS)
    return set(source.header) >= {"trace_row_index", "name_index", "start_ns", "corr_id"}


FORMATS = (
    Format(
        name="nsys-sqlite",
        tool="Nsight Systems",
        files="SQLite export (nsys export --type sqlite)",
        levels=("kernel", "model"),
        quantities=("time", "host time"),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="2023.1 and 2025.5",
        recognise=_nsys_sqlite.is_export,
        read=_nsys_sqlite.read_export,
        limits="A kernel that a CUDA graph launched is counted with its graph unless it was traced "
        "by node. Runs are the outermost NVTX ranges; without NVTX there are none.",
    ),
    Format(
        name="nsys-lines",
        tool="Nsight Systems",
        files="JSON export, an event a line (nsys export --type jsonlines)",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_nsys_lines.is_lines,
        read=_nsys_lines.read_lines,
        limits="NVTX ranges and calls of the host are left out: the SQLite export has them.",
    ),
    Format(
        name="nsys-stats",
        tool="Nsight Systems",
        files="tables of nsys stats: cuda_gpu_trace, cuda_gpu_kern_sum, …",
        levels=("kernel",),
        quantities=("time",),
        units=("ns", "us", "ms", "s"),
        gives="measurements",
        reference="hardware",
        sample="2025.5",
        recognise=_recognise_stats,
        read=_nsys_stats.read_tables,
        limits="Tables of what the host did (cuda_api_sum, osrt_sum, nvtx_sum) are left out.",
    ),
    no_times(
        "nsys-host-stats",
        "Nsight Systems",
        "tables of nsys stats about the host: cuda_api_sum, osrt_sum, nvtx_sum, …",
        _recognise_host,
        "It holds times of calls on the host, none of kernels. Give cuda_gpu_trace or "
        "cuda_gpu_kern_sum.",
    ),
    no_times(
        "nsys-wrapper",
        "Nsight Systems",
        "kernel_list.csv, meta.json or invocation.txt of a script around nsys and ncu",
        _recognise_wrapper,
        "A script wrote it beside the profiler's own files and it repeats them. Give those.",
        sample="2026",
    ),
)
