"""nvprof: kernels and copies from its traces and summaries, as CSV or as it prints them."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from errcomp.readers import _nvprof_files
from errcomp.readers._no_times import no_times
from errcomp.readers.output import Output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
    r"""Read profiles of nvprof, the profiler of CUDA before Nsight.

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files: what nvprof prints or writes, with or without
        ``--csv``: its summary, or the trace of ``--print-gpu-trace``. Lines of nvprof (``==12==``)
        and of the program may stand before and between.

    Returns
    -------
    Output
        Measured ``time`` of each kernel, copy and set of memory, in the unit of the file; in us
        where each time has a unit of its own (without ``--csv``). Of a summary it is the mean of
        the ``count`` calls. ``process`` tells processes apart where
        the file does.

    Raises
    ------
    InputError
        A file is damaged, or holds no work of a GPU.

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


def _is(kind: _nvprof_files.Kind) -> Callable[[Source], bool]:
    return lambda source: _nvprof_files.kind_of(source) == kind


_UNITS = ("ns", "us", "ms", "s", "min")

FORMATS = (
    Format(
        name="nvprof-trace",
        tool="nvprof",
        files="nvprof --print-gpu-trace, also --csv",
        levels=("kernel",),
        quantities=("time",),
        units=_UNITS,
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_is("trace"),
        read=_nvprof_files.read_trace,
        limits="Calls of the host in the same table are left out.",
    ),
    Format(
        name="nvprof-summary",
        tool="nvprof",
        files="summary that nvprof prints, also --csv",
        levels=("kernel",),
        quantities=("time",),
        units=_UNITS,
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_is("summary"),
        read=_nvprof_files.read_summary,
        limits="Calls of the host are left out.",
    ),
    no_times(
        "nvprof-host",
        "nvprof",
        "nvprof --print-api-trace, --print-api-summary, --metrics or --events",
        _is("host"),
        "It holds calls on the host or counters, no times of kernels. Give the summary, or the "
        "trace of --print-gpu-trace.",
    ),
)
