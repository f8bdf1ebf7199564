"""Nsight Compute: the duration of kernels from what ``ncu`` prints, as text or CSV."""

from __future__ import annotations

from os import PathLike

from errcomp.readers import _ncu_files
from errcomp.readers.output import Output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
    r"""Read profiles of Nsight Compute (ncu).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files: what ncu writes with ``--csv`` (page details, one
        line for each metric, or ``--page raw``, one line for each kernel), or its report as plain
        text. Lines of ncu (``==PROF==``) and of the program may stand before and between.

    Returns
    -------
    Output
        The measured ``time`` of each launch of a kernel, in the unit that the file says of it, with
        ``cycles`` and ``clock_hz`` (of the multiprocessors) where they were collected. Where only
        the cycles were, the ``time`` is in cycles. Beside a CSV file of details, ``session.csv``
        says which ``device`` it was.

    Raises
    ------
    InputError
        A file is damaged, or has neither durations nor cycles.

    Notes
    -----
    Misleads where these times are compared with those of a program that runs by itself: ncu runs
    each kernel alone, with cold caches and, if not told otherwise, the clock locked at its base.

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


def _is(kind: str) -> _ncu_files.Recogniser:
    return lambda source: _ncu_files.kind_of(source) == kind


def _recognise_session(source: Source) -> bool:
    head = source.head_lines[:400]
    return any("Launch Attribute" in line for line in head) and any(
        "Profiler Command Line" in line or "Session Attribute" in line for line in head
    )


_LIMITS = "Metrics other than the duration, the cycles and the clock are left out."

FORMATS = (
    Format(
        name="ncu-details",
        tool="Nsight Compute",
        files="ncu --csv (page details), also with --metrics",
        levels=("kernel",),
        quantities=("time",),
        units=("ns", "us", "ms", "s", "cycles"),
        gives="measurements",
        sample="2025.2",
        recognise=_is("details"),
        read=_ncu_files.read_details,
        limits=_LIMITS,
    ),
    Format(
        name="ncu-raw",
        tool="Nsight Compute",
        files="ncu --page raw --csv",
        levels=("kernel",),
        quantities=("time",),
        units=("ns", "us", "ms", "s", "cycles"),
        gives="measurements",
        sample="2025.2",
        recognise=_is("raw"),
        read=_ncu_files.read_raw,
        limits=_LIMITS,
    ),
    Format(
        name="ncu-text",
        tool="Nsight Compute",
        files="report that ncu prints",
        levels=("kernel",),
        quantities=("time",),
        units=("ns", "us", "ms", "s", "cycles"),
        gives="measurements",
        sample="",
        recognise=_is("text"),
        read=_ncu_files.read_text,
        limits=_LIMITS,
    ),
    Format(
        name="ncu-session",
        tool="Nsight Compute",
        files="ncu --page session --csv",
        levels=(),
        quantities=(),
        units=(),
        gives="neither",
        sample="2025.2",
        recognise=_recognise_session,
        read=None,
        limits="It says on what device and with what options the profile was taken.",
        part_of="ncu-details",
    ),
)
