"""VIDUR: simulated requests and batches, and the profiles that it learns from."""

from __future__ import annotations

import re
from typing import Literal

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, long
from errcomp.readers.serving import tables

#: Quantities of a request. Other columns are these divided by a number of tokens.
_QUANTITIES = {
    "request_e2e_time": "time",
    "prefill_e2e_time": "ttft",
    "decode_time_execution_plus_preemption_normalized": "tpot",
    "request_scheduling_delay": "queueing delay",
    "request_execution_time": "execution time",
    "request_model_execution_time": "model execution time",
    "request_preemption_time": "preemption time",
}
#: Columns of the serving system that VIDUR simulates, and not of VIDUR.
_SERVED = ("request_num_ignored", "request_num_pauses")
_PLOT = re.compile(r"Request Id|Batch Id|Time \(sec\)|cdf")


def read(path: AnyPath) -> Output:
    r"""Read the output of VIDUR, of Sarathi-Serve (which it simulates), and its profiles.

    Parameters
    ----------
    path : path
        ``request_metrics.csv``, ``batch_metrics.csv``, ``operation_metrics.csv``,
        ``cpu_operation_metrics.csv``, ``chrome_trace.json``, a profile (columns
        ``time_stats.<operator>.<statistic>``), ``sequence_metrics.csv`` of Sarathi-Serve, or a
        folder or archive of such files. ``config.json`` in the same folder gives model, device,
        scheduler and load.

    Returns
    -------
    Output
        Requests (s): end-to-end time, ttft, tpot, queueing delay, execution time, model execution
        time and preemption time, as predictions; for Sarathi-Serve as measurements. tpot is the
        decode time divided by all output tokens, including the first. Batches (s) and operators
        (ms, for one layer) are predictions. Profiles (ms): the median of each operator or
        collective, as measurement; ``repeat`` numbers rows with the same configuration.

    Raises
    ------
    InputError
        A file is damaged, or no file is VIDUR's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "request_metrics.csv"
    >>> _ = path.write_text("Request Id,request_e2e_time,prefill_e2e_time\n0,0.5,0.125\n")
    >>> read(path).rows.select("quantity", "unit", "predicted", "request").rows()
    [('time', 's', 0.5, 0), ('ttft', 's', 0.125, 0)]
    """
    return read_as(path, FORMATS)


def _requests(source: Source, tool: str, side: Literal["predicted", "measured"]) -> Rows:
    import polars as pl

    sheet = source.sheet(["Request Id", "request_e2e_time", "prefill_e2e_time"])
    config = tables.config_beside(source)
    values = [
        Value(name, "s", predicted=column) if side == "predicted" else Value(name, "s", "", column)
        for column, name in _QUANTITIES.items()
    ]
    keys = config.keys if tool == "VIDUR" else {}
    frame = long(sheet, values, tables.request_keys(sheet), tool=tool, level="request", **keys)
    unfinished = pl.when(pl.col(side).is_nan()).then(pl.lit("no value (NaN)"))
    frame = frame.with_columns(status=unfinished)
    return Rows(frame, notes=config.notes if tool == "VIDUR" else ())


def _is_own_requests(source: Source) -> bool:
    names = source.header
    return (
        tables.is_requests(source) and "ttft" not in names and not any(n in names for n in _SERVED)
    )


def _is_served_requests(source: Source) -> bool:
    return tables.is_requests(source) and any(name in source.header for name in _SERVED)


def _is_own_profile(source: Source) -> bool:
    frontier = {"measurement_type", "profiling_precision"}
    return tables.is_profile(source) and not frontier & set(source.header)


def _is_plot(source: Source) -> bool:
    """Say whether these are points of a figure; a column of row numbers may be first."""
    names = source.header
    if names[0] != "":
        return len(names) in (2, 3) and names[0] in ("cdf", "Time (sec)")
    return len(names) in (3, 4) and bool(_PLOT.fullmatch(names[1]))


def _is_unfinished(source: Source) -> bool:
    """Say whether no request of the run finished: the columns of times are missing."""
    names = source.header
    arrived = {"Request Id", "request_arrived_at", "request_num_tokens"} <= set(names)
    return arrived and not tables.is_requests(source)


def _is_events(source: Source) -> bool:
    names = source.json_names
    return names[:2] == ("time", "event_type") and b'"cluster_type"' not in source.head


_tool = ToolFormats("VIDUR", gives="predictions")

_tool.reads(
    "vidur-requests",
    "request_metrics.csv",
    "request",
    _is_own_requests,
    quantities=tuple(_QUANTITIES.values()),
    units=("s",),
    sample="2026-02 (schedulers vllm and sarathi)",
    limits="Times per token are left out, except tpot. Unfinished requests have no value, and the "
    "status 'no value (NaN)'.",
)(lambda source: _requests(source, "VIDUR", "predicted"))

_tool.reads(
    "sarathi-serve-requests",
    "sequence_metrics.csv",
    "request",
    _is_served_requests,
    quantities=tuple(_QUANTITIES.values()),
    units=("s",),
    tool="Sarathi-Serve",
    gives="measurements",
    reference="hardware",
    limits="The file differs from VIDUR's in the columns request_num_ignored and "
    "request_num_pauses.",
)(lambda source: _requests(source, "Sarathi-Serve", "measured"))

_tool.knows(
    "vidur-config",
    "config.json, config.yml",
    tables.is_vidur,
    "The file holds the configuration of the run, but no times.",
    sample="2026-02",
    part_of="vidur-requests",
)

_tool.reads(
    "vidur-batches",
    "batch_metrics.csv",
    "model: time, inter-batch delay (s)",
    lambda source: tables.is_batches(source) and not tables.is_frontier_beside(source),
    limits="Frontier writes the same columns in ms; the other files in the folder show which tool "
    "wrote this file.",
)(lambda source: tables.read_batches(source, "s"))

_tool.reads(
    "vidur-operations",
    "operation_metrics.csv, cpu_operation_metrics.csv",
    "kernel, model: time (ms)",
    lambda source: tables.is_operations(source) and not tables.is_frontier_beside(source),
    limits="Times are of one layer, averaged over layers and stages; the number of executions is "
    "known only with config.json.",
)(tables.read_operations)

_tool.reads(
    "vidur-trace",
    "chrome_trace.json",
    "model: time (us)",
    lambda source: tables.is_trace(source) and not tables.is_frontier_beside(source),
    limits="There is one row per batch and pipeline stage. Frontier writes the same columns; the "
    "other files in the folder show which tool wrote this file.",
)(tables.read_trace)

_tool.reads(
    "vidur-profile",
    "profiles: mlp.csv, attention.csv, all_reduce.csv, send_recv.csv, cpu_overheads.csv",
    "kernel, collective: time (ms)",
    _is_own_profile,
    gives="measurements",
    reference="hardware",
    sample="microsoft/vidur 7d47513 (A100: mlp, all_reduce, send_recv)",
    limits="errcomp reads the median of each operator (or the mean, without a median); minimum, "
    "maximum and standard deviation are left out. The device is not in the file.",
)(tables.read_profile)

_tool.knows(
    "vidur-plots",
    "plots/*.csv",
    _is_plot,
    "The file holds the points of a plot (a distribution or a series over time). The values are in "
    "request_metrics.csv and batch_metrics.csv.",
)

_tool.knows(
    "vidur-unfinished",
    "request_metrics.csv (no request finished)",
    _is_unfinished,
    "The file has no times: simulate longer, or more requests.",
)

_tool.knows(
    "vidur-events",
    "event_trace.json",
    _is_events,
    "The file holds the times at which the simulator handled events. Durations are in "
    "chrome_trace.json.",
)

FORMATS = _tool.formats
