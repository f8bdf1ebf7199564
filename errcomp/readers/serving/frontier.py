"""Frontier: simulated requests, operators and stages, and the profiles that it learns from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, long, number_key, without
from errcomp.readers.core.values import dict_of, number, text, whole
from errcomp.readers.serving import tables

if TYPE_CHECKING:
    from collections.abc import Sequence


# Frontier: operators of each batch, from its operator trace and from its ledger of stages.


def is_operators(source: Source) -> bool:
    """Say whether this is ``op_traces.jsonl``: a line about the run, then operators."""
    lines = [line for line in source.head_lines if line.strip()][:3]
    if not any('"duration_ms"' in line and '"layer_id"' in line for line in lines):
        return any('"simulation_info"' in line and '"sys_arch"' in line for line in lines[:1])
    return any('"batch_id"' in line for line in lines)


def is_ledger(source: Source) -> bool:
    """Say whether this is ``frontier_stage_batch_ledger.jsonl``."""
    first = next((line for line in source.head_lines if line.strip()), "")
    return '"component_ledger_ms"' in first and '"stage_id"' in first


def _run(record: dict[str, Any]) -> str:
    """Return the name of a run: one batch in one stage of one replica, executed in sequence."""
    parts = (
        text(record.get("cluster") or record.get("cluster_type")),
        *(f"{word} {record[name]}" for word, name in _PARTS if whole(record.get(name)) is not None),
    )
    return " ".join(part for part in parts if part)


_PARTS = (("replica", "replica_id"), ("stage", "stage_id"), ("batch", "batch_id"))


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def _list(values: Sequence[float]) -> str:
    return " or ".join(f"{value:g}" for value in values)


_QUANTITIES = {
    "request_e2e_time": "time",
    "ttft": "ttft",
    "tpot": "tpot",
    "request_first_scheduling_delay": "queueing delay",
    "request_scheduling_delay": "queueing delay",
    "request_waiting_time_total": "waiting time",
    "request_execution_time": "execution time",
    "request_model_execution_time": "model execution time",
    "prefill_e2e_time": "prefill time",
    "decode_e2e_time": "decode time",
}
_BLOCKS = {
    "ttft_statistics": "ttft",
    "tpot_statistics": "tpot",
    "request_e2e_time_statistics": "time",
}
_STATISTICS = ("mean", "median", "min", "max", "p50", "p90", "p95", "p99")
_THROUGHPUTS = {
    "requests_per_second": ("request throughput", "requests/s"),
    "tokens_per_second": ("token throughput", "tokens/s"),
    "decode_tokens_per_second": ("decode throughput", "tokens/s"),
}


def read(path: AnyPath) -> Output:
    r"""Read the output of Frontier and its profiles.

    Parameters
    ----------
    path : path
        ``request_metrics.csv`` (in ms, unlike VIDUR's), ``system_metrics.json``,
        ``op_traces.jsonl``, ``frontier_stage_batch_ledger.jsonl``, ``chrome_trace.json``,
        ``*_batch_metrics.csv``, ``*_operation_metrics.csv``, a profile, or a folder or archive of
        such files. ``config.json`` in the same folder gives model, device and scheduler.

    Returns
    -------
    Output
        Requests: end-to-end time, ttft, tpot, queueing delay, waiting, execution, prefill and
        decode time in ms. Summary of a run: the same as statistics of its requests, the duration of
        the run and its throughputs. Operators in ms; those of a ``run`` are executed in sequence.
        All are predictions; profiles (ms, median) are measurements. A note marks a dry run (with a
        constant time for operators).

    Raises
    ------
    InputError
        A file is damaged, or no file is Frontier's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "request_metrics.csv"
    >>> _ = path.write_text(
    ...     "Request Id,request_e2e_time,prefill_e2e_time,ttft,tpot,request_num_decode_tokens\n"
    ...     "0,500,125,125,12.5,31\n")
    >>> found = read(path)
    >>> found.rows.select("quantity", "unit", "predicted").rows()[:3]
    [('time', 'ms', 500.0), ('ttft', 'ms', 125.0), ('tpot', 'ms', 12.5)]
    """
    return read_as(path, FORMATS)


def _is_own_requests(source: Source) -> bool:
    return tables.is_requests(source) and "ttft" in source.header and "tpot" in source.header


def _is_summary(source: Source) -> bool:
    names = source.json_names
    return "simulation_metadata" in names and "throughput_metrics" in names


def _is_own_profile(source: Source) -> bool:
    names = source.header
    return tables.is_profile(source) and (
        "measurement_type" in names or "profiling_precision" in names
    )


def _is_events(source: Source) -> bool:
    names = source.json_names
    return names[:2] == ("time", "event_type") and b'"cluster_type"' in source.head


_tool = ToolFormats("Frontier", gives="predictions", sample="a4b22df")


@_tool.reads(
    "frontier-requests",
    "request_metrics.csv",
    "request",
    _is_own_requests,
    quantities=tuple(dict.fromkeys(_QUANTITIES.values())),
    units=("ms",),
    sample="a4b22df (smoke runs)",
    limits="VIDUR's file of the same name is in seconds and lacks the columns ttft and tpot. "
    "Columns of transfers, clusters, preemption and speculation are left out.",
)
def _requests(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["Request Id", "request_e2e_time", "ttft", "tpot"])
    config = tables.config_beside(source)
    keys = tables.request_keys(sheet)
    if "decode_tokens" in keys:
        keys["decode_tokens"] = number_key(sheet, "request_num_decode_tokens", "decode_tokens")
    values = [Value(quantity, "ms", predicted=column) for column, quantity in _QUANTITIES.items()]
    frame = long(sheet, values, keys, level="request", **config.keys)
    unfinished = pl.when(pl.col("predicted").is_nan()).then(pl.lit("no value (NaN)"))
    frame = frame.with_columns(status=unfinished)
    dropped: tuple[Any, ...] = ()
    if "decode_tokens" in keys:
        none = (pl.col("quantity") == "tpot") & (pl.col("decode_tokens") <= 1)
        frame, dropped = without(
            frame, none, "tpot of requests with one output token, which is undefined"
        )
    return Rows(frame, dropped=dropped, notes=(*config.notes, *tables.dry_run(config.dummy)))


_tool.knows(
    "frontier-config",
    "config.json",
    tables.is_frontier,
    "The file holds the configuration of the run, but no times.",
    part_of="frontier-requests",
)


@_tool.reads(
    "frontier-summary",
    "system_metrics.json",
    "request, system",
    _is_summary,
    quantities=("time", "ttft", "tpot", *(quantity for quantity, _ in _THROUGHPUTS.values())),
    units=("ms", "requests/s", "tokens/s"),
    sample="a4b22df (smoke runs)",
    limits="The values are statistics over all requests, named by the key `statistic`. Memory, "
    "preemption and speculation are left out.",
)
def _summary(source: Source) -> Rows:
    content, config = source.json(), tables.config_beside(source)
    if not isinstance(content, dict):
        raise source.error(
            "not a system_metrics.json of Frontier: the content must be a JSON object."
        )
    common = {**config.keys}
    rows: list[dict[str, Any]] = []
    for name, block in content.items():
        if not isinstance(block, dict) or not isinstance(block.get("unit"), str):
            continue
        quantity = _BLOCKS.get(name, name.removesuffix("_statistics").replace("_", " "))
        requests = block.get("count")
        rows += [
            {
                **common,
                "level": "request",
                "quantity": quantity,
                "unit": block["unit"],
                "predicted": number(block[statistic]),
                "statistic": statistic,
                "requests": whole(requests),
            }
            for statistic in _STATISTICS
            if statistic in block
        ]
    rates = content.get("throughput_metrics")
    if isinstance(rates, dict):
        system = {**common, "level": "system"}
        if "total_duration_ms" in rates:
            value = number(rates["total_duration_ms"])
            rows.append({**system, "quantity": "time", "unit": "ms", "predicted": value})
        rows += [
            {**system, "quantity": quantity, "unit": unit, "predicted": number(rates[name])}
            for name, (quantity, unit) in _THROUGHPUTS.items()
            if name in rates
        ]
    return Rows(rows, notes=(*config.notes, *tables.dry_run(config.dummy)))


@_tool.reads(
    "frontier-operators",
    "op_traces.jsonl",
    "kernel: time (ms)",
    is_operators,
    sample="a4b22df (dummy mode)",
    limits="Without per-layer expansion (layer_id -1), a row covers an operator in all layers.",
)
def read_operators(source: Source) -> Rows:
    """Read the time of each operator; operators of a batch and replica form a run."""
    config = tables.config_beside(source)
    rows: list[dict[str, Any]] = []
    constant: set[float] = set()
    for line, record in source.json_lines():
        if not isinstance(record, dict):
            raise source.error(
                f"a record must be a JSON object, got {str(record)[:40]!r}.", line=line
            )
        if "duration_ms" not in record:
            continue
        meta = dict_of(record.get("meta"))
        time, start = number(record["duration_ms"]), number(record.get("ts_start"))
        layer = record.get("layer_id")
        if record.get("type") == "COMPUTE" and time is not None:
            constant.add(time)
        rows.append(
            {
                "predicted": time,
                "run": _run(record),
                "kernel": text(record.get("name")),
                "kernel_class": text(record.get("type")),
                "layer": layer if isinstance(layer, int) and layer >= 0 else None,
                # ts_start is in seconds, the durations are in ms.
                "start": None if start is None else 1e3 * start,
                "tokens": number(meta.get("total_tokens")),
                "model": text(meta.get("model_name")) or config.keys.get("model"),
                "device": config.keys.get("device"),
                "cluster": text(record.get("cluster")),
                "batch_id": whole(record.get("batch_id")),
                "replica": whole(record.get("replica_id")),
            }
        )
    how = config.dummy
    if not how and len(rows) > 20 and len(constant) <= 2:
        how = "all compute operators take " + _list(sorted(constant)) + " ms"
    return Rows(rows, notes=(*config.notes, *tables.dry_run(how)))


@_tool.reads(
    "frontier-ledger",
    "frontier_stage_batch_ledger.jsonl",
    "kernel, model: time (ms)",
    is_ledger,
    sample="a4b22df (dummy mode)",
    limits="The time of a component covers all layers of the stage. Left out are components of 0 "
    "ms, and the diagnostic ledger, which is not part of the total.",
)
def read_ledger(source: Source) -> Rows:
    """Read the components of each batch in each stage, and the time of the stage."""
    config = tables.config_beside(source)
    rows: list[dict[str, Any]] = []
    apart = 0
    for line, record in source.json_lines():
        times = record.get("execution_time") if isinstance(record, dict) else None
        parts = times.get("component_ledger_ms") if isinstance(times, dict) else None
        if not isinstance(times, dict) or not isinstance(parts, dict):
            raise source.error(
                "this record has no execution_time with a component_ledger_ms, so the file is not "
                "Frontier's ledger.",
                line=line,
            )
        common: dict[str, Any] = {
            "run": _run(record),
            "batch_id": whole(record.get("batch_id")),
            "replica": whole(record.get("replica_id")),
            "stage": whole(record.get("stage_id")),
            "cluster": text(record.get("cluster_type")),
            "batch": _length(record.get("request_ids")),
            **{k: config.keys[k] for k in ("model", "device") if k in config.keys},
        }
        total = number(times.get("total_time_ms"))
        rows.append({**common, "level": "model", "predicted": total})
        components = {name: number(value) for name, value in parts.items()}
        # Components of 0 did not run: the ledger lists those of any model.
        rows += [
            {
                **common,
                "level": "kernel",
                "predicted": value,
                "kernel": name.removesuffix("_time"),
                "kernel_class": name.removesuffix("_time"),
            }
            for name, value in components.items()
            if value != 0
        ]
        together = math.fsum(value for value in components.values() if value is not None)
        apart += total is not None and abs(together - total) > 1e-6 * max(total, 1e-3)
    notes = [*config.notes, *tables.dry_run(config.dummy)]
    if apart:
        notes.append(f"Stages in which the components do not sum to the total: {apart}.")
    return Rows(rows, notes=notes)


_tool.reads(
    "frontier-batches",
    "*_batch_metrics.csv",
    "model: time, inter-batch delay (ms)",
    lambda source: tables.is_batches(source) and tables.is_frontier_beside(source),
    sample="",
    limits="VIDUR writes the same columns in s; the other files in the folder show which tool "
    "wrote this file.",
)(lambda source: tables.read_batches(source, "ms"))

_tool.reads(
    "frontier-operations",
    "*_operation_metrics.csv",
    "kernel, model: time (ms)",
    lambda source: tables.is_operations(source) and tables.is_frontier_beside(source),
    sample="",
    limits="VIDUR writes the same columns; the other files in the folder show which tool wrote "
    "this file.",
)(tables.read_operations)

_tool.reads(
    "frontier-trace",
    "chrome_trace.json",
    "model: time (us)",
    lambda source: tables.is_trace(source) and tables.is_frontier_beside(source),
    sample="a4b22df (dummy mode)",
    limits="There is one row per batch and stage. VIDUR writes the same columns; the other files "
    "in the folder show which tool wrote this file.",
)(tables.read_trace)

_tool.reads(
    "frontier-profile",
    "profiles: linear_op.csv, attention.csv, moe.csv, …",
    "kernel, collective: time (ms)",
    _is_own_profile,
    gives="measurements",
    reference="hardware",
    sample="a4b22df (A800: linear_op, attention)",
    limits="errcomp reads the median of each operator; minimum, maximum and standard deviation are "
    "left out. The device is not in the file.",
)(tables.read_profile)

_tool.knows(
    "frontier-events",
    "event_trace.json",
    _is_events,
    "The file holds the times at which the simulator handled events. Durations are in "
    "chrome_trace.json and op_traces.jsonl.",
)

_tool.knows(
    "frontier-self-profile",
    "performance_profile.json",
    lambda source: {"component_breakdown", "event_type_breakdown"} <= set(source.json_names),
    "The file holds the run time of the simulator itself, but no simulated times.",
)

_tool.knows(
    "frontier-precisions",
    "op_precision_metadata.csv",
    ("operation", "precision", "data_source", "approximation_factor"),
    "The file holds the precision of each operator, but no times.",
)

FORMATS = _tool.formats
