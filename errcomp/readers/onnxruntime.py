"""ONNX Runtime: the time of nodes and runs in a profile of a session."""

from __future__ import annotations

import re
from os import PathLike

from errcomp.readers import _onnxruntime_events
from errcomp.readers.output import Output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
    r"""Read profiles of ONNX Runtime (``SessionOptions.enable_profiling``).

    Parameters
    ----------
    path : path
        A file ``onnxruntime_profile_*.json``, of old versions (with ``_fence_before`` events) or
        new ones, or a table of its events (run, cat, name, op_name, provider, ts_us, dur_us); or
        a folder or archive of them.

    Returns
    -------
    Output
        In µs, measured: the ``time`` of each node (level kernel) and of each run of the model
        (level model), which ``run`` connects; ``repeat`` counts the runs from 1. Events of a GPU
        have the quantity ``device time``: they are part of what nodes do. Loading and
        initialisation are of the level system. The name of a node is ``kernel``, its operator
        ``kernel_class``, its number in the graph ``layer``.

    Raises
    ------
    InputError
        A file is damaged, or has no time of a node or run.

    Notes
    -----
    Misleads where the first run is not left out: it warms up (``repeat`` 1).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "profile.json"
    >>> event = '{"cat" : "%s","pid" :1,"tid" :1,"dur" :%d,"ts" :%d,"ph" : "X","name" :"%s"'
    >>> node = event % ("Node", 7, 12, "a_kernel_time") + ',"args" : {"op_name" : "Add"}}'
    >>> run = event % ("Session", 9, 11, "model_run") + ',"args" : {}}'
    >>> _ = path.write_text(f"[\n{node},\n{run}\n]\n")
    >>> read(path).rows.select("run", "level", "kernel", "measured", "unit").rows()
    [('run 1', 'model', None, 9.0, 'us'), ('run 1', 'kernel', 'a', 7.0, 'us')]
    """
    return read_as(path, FORMATS)


_CATEGORY = re.compile(rb'"cat"\s*:\s*"(?:Session|Node)"')
_EVENT = re.compile(
    rb'"name"\s*:\s*"(?:model_loading_\w+|session_initialization|model_run|'
    rb'SequentialExecutor::Execute|ParallelExecutor::Execute|[^"]*_(?:kernel_time|fence_before))"'
)
_COLUMNS = {"run", "cat", "name", "op_name", "provider", "ts_us", "dur_us"}


def _is_profile(source: Source) -> bool:
    head = source.head
    return (
        head.lstrip()[:1] in (b"[", b"{")
        and _CATEGORY.search(head) is not None
        and _EVENT.search(head) is not None
    )


def _is_table(source: Source) -> bool:
    return set(source.header) >= _COLUMNS


FORMATS = (
    Format(
        name="onnxruntime-profile",
        tool="ONNX Runtime",
        files="onnxruntime_profile_*.json",
        levels=("kernel", "model", "system"),
        quantities=("time", "device time", "loading time", "initialisation time"),
        units=("us",),
        gives="measurements",
        reference="hardware",
        sample="0.4, 1.15, 1.31 (CPU); 2026 (DirectML)",
        recognise=_is_profile,
        read=_onnxruntime_events.read_profile,
        limits="Nodes that contain others (If, Loop, Scan) are left out where their nodes are "
        "there.",
    ),
    Format(
        name="onnxruntime-table",
        tool="ONNX Runtime",
        files="table of the events of a profile (CSV)",
        levels=("kernel", "model", "system"),
        quantities=("time", "loading time", "initialisation time"),
        units=("us",),
        gives="measurements",
        reference="hardware",
        sample="documentation of MQL5",
        recognise=_is_table,
        read=_onnxruntime_events.read_table,
    ),
)
