"""Nsight Compute: the duration of kernels from what ``ncu`` prints, as text or CSV."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from errcomp.readers import _ncu_files
from errcomp.readers._no_times import no_times
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


def _recognise_session(source: Source) -> bool:
    head = source.head_lines[:400]
    return any("Launch Attribute" in line for line in head) and any(
        "Profiler Command Line" in line or "Session Attribute" in line for line in head
    )


#: What it is, the kind of file, the version of the sample, and what reads it.
_PROFILES: tuple[tuple[str, _ncu_files.Kind, str, Callable[[Source], Output]], ...] = (
    ("ncu --csv (page details), also with --metrics", "details", "2025.2", _ncu_files.read_details),
    ("ncu --page raw --csv", "raw", "2025.2", _ncu_files.read_raw),
    ("report that ncu prints", "text", "", _ncu_files.read_text),
)


def _profile(
    files: str, kind: _ncu_files.Kind, sample: str, call: Callable[[Source], Output]
) -> Format:
    return Format(
        name=f"ncu-{kind}",
        tool="Nsight Compute",
        files=files,
        levels=("kernel",),
        quantities=("time",),
        units=("ns", "us", "ms", "s", "cycles"),
        gives="measurements",
        reference="hardware",
        sample=sample,
        recognise=lambda source: _ncu_files.kind_of(source) == kind,
        read=call,
        limits="Metrics other than the duration, the cycles and the clock are left out.",
    )


FORMATS = (
    *(_profile(*one) for one in _PROFILES),
    no_times(
        "ncu-session",
        "Nsight Compute",
        "ncu --page session --csv",
        _recognise_session,
        "It says on what device and with what options the profile was taken.",
        sample="2025.2",
        part_of="ncu-details",
    ),
)
