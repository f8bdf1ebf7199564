"""Nsight Systems: kernels and copies from its SQLite export and from tables of ``nsys stats``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from errcomp.errors import InputError
from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.profilers.nsys import sqlite as _nsys_sqlite
from errcomp.readers.profilers.nsys import stats as _nsys_stats
from errcomp.readers.profilers.nsys.sqlite import COPIES
from errcomp.results import Dropped

if TYPE_CHECKING:
    from os import PathLike

    from errcomp.readers.core.source import Source

__all__ = ["FORMATS", "read"]


# The JSON export of Nsight Systems: one event a line.

_TEXTS = re.compile(rb'\s*\{\s*"data"\s*:\s*\[\s*"')
_EVENT = b'"CudaEvent"'
#: How far the first event may stand behind the texts.
_MOST_TEXTS = 1 << 23
_COPY, _SET, _KERNEL = 1, 2, 3


class _Cuda(msgspec.Struct, gc=False):
    """What is used of an event of a GPU; numbers may be text."""

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


def read_lines(source: Source) -> Output:
    """Read kernels, copies and sets of memory."""
    decoder = msgspec.json.Decoder(_Line)
    texts: list[Any] = []
    rows: list[dict[str, Any]] = []
    bad = 0
    for number, text in enumerate(source.lines(), start=1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except msgspec.ValidationError:
            bad += _EVENT.decode() in text
            continue
        except (msgspec.DecodeError, RecursionError) as error:
            raise source.error(
                f"not valid JSON ({error}). The file may be cut off: export it again.", line=number
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
        raise source.error(f"no work of a GPU in it ({bad} events without times). Trace CUDA.")
    dropped = [Dropped("events without times", bad)] if bad else []
    return output(source.name, "nsys-lines", rows, dropped=dropped)


def _row(event: _Cuda, texts: list[Any]) -> dict[str, Any] | None:
    start, end = _whole(event.start), _whole(event.end)
    if start is None or end is None or end < start:
        return None
    kernel = _dict(event.kernel)
    moved = _dict(event.memcpy if event.kind == _COPY else event.memset)
    if event.kind == _KERNEL:
        name = _name(kernel, texts)
        found: dict[str, Any] = {"kernel": name, "kernel_class": name}
        for shape in ("grid", "block"):
            axes = [_whole(kernel.get(f"{shape}{axis}")) for axis in "XYZ"]
            found[shape] = None if None in axes else "x".join(map(str, axes))
    elif event.kind == _COPY:
        way = _whole(moved.get("copyKind"))
        what = COPIES[way] if way is not None and way < len(COPIES) else ""
        found = {"kernel": f"[CUDA memcpy {what}]".replace(" ]", "]"), "kernel_class": "memcpy"}
    else:
        found = {"kernel": "[CUDA memset]", "kernel_class": "memset"}
    device, stream = _whole(event.device), _whole(event.stream)
    return {
        "tool": "Nsight Systems",
        "level": "kernel",
        "quantity": "time",
        "unit": "ns",
        "measured": float(end - start),
        "start": start,
        **found,
        "device_id": device,
        "stream": stream,
        "bytes": _whole(moved.get("sizebytes")),
    }


def _name(kernel: dict[str, Any], texts: list[Any]) -> str:
    for key in ("demangledName", "shortName"):
        number = _whole(kernel.get(key))
        if number is not None and number < len(texts) and texts[number]:
            return str(texts[number])
    return "kernel without a name"


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if fine else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
        recognise=is_lines,
        read=read_lines,
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
