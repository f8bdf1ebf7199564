"""VIDUR: simulated requests and batches, and the profiles that it learns from."""

from __future__ import annotations

import re
from os import PathLike
from typing import Literal

from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.core.wide import Value, long
from errcomp.readers.serving.batches import is_trace, read_batches, read_operations, read_trace
from errcomp.readers.serving.config import config_beside, is_frontier_beside, is_vidur
from errcomp.readers.serving.tables import (
    is_batches,
    is_operations,
    is_profile,
    is_requests,
    read_profile,
    request_keys,
)

__all__ = ["FORMATS", "read"]

#: Quantities of a request. The other columns are these divided by a number of tokens.
_QUANTITIES = {
    "request_e2e_time": "time",
    "prefill_e2e_time": "ttft",
    "decode_time_execution_plus_preemption_normalized": "tpot",
    "request_scheduling_delay": "queueing delay",
    "request_execution_time": "execution time",
    "request_model_execution_time": "model execution time",
    "request_preemption_time": "preemption time",
}
#: Columns that the serving system has which VIDUR imitates, and VIDUR has not.
_SERVED = ("request_num_ignored", "request_num_pauses")
_PLOT = re.compile(r"Request Id|Batch Id|Time \(sec\)|cdf")


def read(path: str | PathLike[str]) -> Output:
    r"""Read the output of VIDUR, of Sarathi-Serve (which it imitates), and its profiles.

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
        Requests (s): time (end to end), ttft, tpot, queueing delay, execution time, model
        execution time and preemption time, as predictions; those of Sarathi-Serve as measurements.
        tpot is the decode time divided by all output tokens, the first among them. Batches (s)
        and operators (ms, of one layer) as predictions. Profiles (ms): the median of each operator
        or collective as measurement; ``repeat`` numbers rows of one configuration.

    Raises
    ------
    InputError
        A file is damaged, or nothing there is of VIDUR.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "request_metrics.csv"
    >>> _ = path.write_text("Request Id,request_e2e_time,prefill_e2e_time\n0,0.5,0.125\n")
    >>> read(path).rows.select("quantity", "unit", "predicted", "request").rows()
    [('time', 's', 0.5, 0), ('ttft', 's', 0.125, 0)]
    """
    return read_as(path, FORMATS)


def _requests(
    source: Source, tool: str, name: str, side: Literal["predicted", "measured"]
) -> Output:
    import polars as pl

    sheet = source.sheet(["Request Id", "request_e2e_time", "prefill_e2e_time"])
    config = config_beside(source)
    values = [
        Value(what, "s", predicted=column) if side == "predicted" else Value(what, "s", "", column)
        for column, what in _QUANTITIES.items()
    ]
    keys = config.keys if tool == "VIDUR" else {}
    frame = long(sheet, values, request_keys(sheet), tool=tool, level="request", **keys)
    unfinished = pl.when(pl.col(side).is_nan()).then(pl.lit("no value (NaN)"))
    frame = frame.with_columns(status=unfinished)
    return output(source.name, name, frame, notes=config.notes if tool == "VIDUR" else ())


def _is_own_requests(source: Source) -> bool:
    names = source.header
    return is_requests(source) and "ttft" not in names and not any(n in names for n in _SERVED)


def _is_served_requests(source: Source) -> bool:
    return is_requests(source) and any(name in source.header for name in _SERVED)


def _is_own_profile(source: Source) -> bool:
    frontier = {"measurement_type", "profiling_precision"}
    return is_profile(source) and not frontier & set(source.header)


def _is_plot(source: Source) -> bool:
    """Say whether these are points of a figure; a column of row numbers may be first."""
    names = source.header
    if names[0] != "":
        return len(names) in (2, 3) and names[0] in ("cdf", "Time (sec)")
    return len(names) in (3, 4) and bool(_PLOT.fullmatch(names[1]))


def _is_unfinished(source: Source) -> bool:
    """Say whether no request of the run ended: the columns of times are missing."""
    names = source.header
    arrived = {"Request Id", "request_arrived_at", "request_num_tokens"} <= set(names)
    return arrived and not is_requests(source)


def _is_events(source: Source) -> bool:
    names = source.json_names
    return names[:2] == ("time", "event_type") and b'"cluster_type"' not in source.head


FORMATS = (
    Format(
        name="vidur-requests",
        tool="VIDUR",
        files="request_metrics.csv",
        levels=("request",),
        quantities=tuple(_QUANTITIES.values()),
        units=("s",),
        gives="predictions",
        sample="2026-02 (schedulers vllm and sarathi)",
        recognise=_is_own_requests,
        read=lambda source: _requests(source, "VIDUR", "vidur-requests", "predicted"),
        limits="Columns divided by a number of tokens are left out, except tpot. A request that "
        "the simulation did not finish has no value, and the status 'no value (NaN)'.",
    ),
    Format(
        name="sarathi-serve-requests",
        tool="Sarathi-Serve",
        files="sequence_metrics.csv",
        levels=("request",),
        quantities=tuple(_QUANTITIES.values()),
        units=("s",),
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_is_served_requests,
        read=lambda source: _requests(
            source, "Sarathi-Serve", "sarathi-serve-requests", "measured"
        ),
        limits="Told from VIDUR by the columns request_num_ignored and request_num_pauses.",
    ),
    no_times(
        "vidur-config",
        "VIDUR",
        "config.json, config.yml",
        is_vidur,
        "Holds the configuration of the run, no times.",
        sample="2026-02",
        part_of="vidur-requests",
    ),
    Format(
        name="vidur-batches",
        tool="VIDUR",
        files="batch_metrics.csv",
        levels=("model",),
        quantities=("time", "inter-batch delay"),
        units=("s",),
        gives="predictions",
        sample="",
        recognise=lambda source: is_batches(source) and not is_frontier_beside(source),
        read=lambda source: read_batches(source, "VIDUR", "vidur-batches", "s"),
        limits="Frontier writes the same columns in ms: it is told by the files beside.",
    ),
    Format(
        name="vidur-operations",
        tool="VIDUR",
        files="operation_metrics.csv, cpu_operation_metrics.csv",
        levels=("kernel", "model"),
        quantities=("time",),
        units=("ms",),
        gives="predictions",
        sample="",
        recognise=lambda source: is_operations(source) and not is_frontier_beside(source),
        read=lambda source: read_operations(source, "VIDUR", "vidur-operations"),
        limits="The time of one layer, averaged over layers and stages; how often an operator "
        "runs is known with config.json only.",
    ),
    Format(
        name="vidur-trace",
        tool="VIDUR",
        files="chrome_trace.json",
        levels=("model",),
        quantities=("time",),
        units=("us",),
        gives="predictions",
        sample="",
        recognise=lambda source: is_trace(source) and not is_frontier_beside(source),
        read=lambda source: read_trace(source, "VIDUR", "vidur-trace"),
        limits="One row for each batch and stage of the pipeline. Frontier writes the same: it is "
        "told by the files beside.",
    ),
    Format(
        name="vidur-profile",
        tool="VIDUR",
        files="profiles: mlp.csv, attention.csv, all_reduce.csv, send_recv.csv, cpu_overheads.csv",
        levels=("kernel", "collective"),
        quantities=("time",),
        units=("ms",),
        gives="measurements",
        reference="hardware",
        sample="microsoft/vidur 7d47513 (A100: mlp, all_reduce, send_recv)",
        recognise=_is_own_profile,
        read=lambda source: read_profile(source, "VIDUR", "vidur-profile"),
        limits="Of each operator the median (the mean where there is no median); minimum, maximum "
        "and standard deviation are left out. The device is not in the file.",
    ),
    no_times(
        "vidur-plots",
        "VIDUR",
        "plots/*.csv",
        _is_plot,
        "Holds the points of a figure (a distribution or a series over time), not the values: "
        "request_metrics.csv and batch_metrics.csv have them.",
    ),
    no_times(
        "vidur-unfinished",
        "VIDUR",
        "request_metrics.csv (no request ended)",
        _is_unfinished,
        "It has no times: simulate longer, or more requests.",
    ),
    no_times(
        "vidur-events",
        "VIDUR",
        "event_trace.json",
        _is_events,
        "Holds when the simulator handled its events, no durations: chrome_trace.json has them.",
    ),
)
