"""Batches of VIDUR and Frontier: their times, their operators, and the trace of their stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from errcomp.readers.core.keys import keys_of
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import number, whole
from errcomp.readers.core.wide import Value, long, without
from errcomp.readers.serving.config import Config, config_beside, dry_run
from errcomp.readers.serving.tables import CPU_OPERATIONS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["is_trace", "read_batches", "read_operations", "read_trace"]

_COUNTS = {
    "Batch Id": "batch_id",
    "batch_size": "batch",
    "batch_num_tokens": "tokens",
    "batch_num_prefill_tokens": "prefill_tokens",
    "batch_num_decode_tokens": "decode_tokens",
}
_ARGUMENTS = ("batch_id", "batch_size", "request_ids", "num_tokens")


def is_trace(source: Source) -> bool:
    """Say whether this is a Chrome trace with a batch for each event."""
    return source.json_names[:1] == ("traceEvents",) and all(
        f'"{name}"'.encode() in source.head for name in _ARGUMENTS
    )


def read_batches(source: Source, tool: str, name: str, unit: str) -> Output:
    """Read the time of each batch."""
    sheet = source.sheet(["Batch Id", "batch_execution_time"])
    config = config_beside(source)
    keys = keys_of(sheet, _COUNTS)
    keys["run"] = _runs(config, keys["batch_id"])
    values = [
        Value("time", unit, predicted="batch_execution_time"),
        Value("inter-batch delay", unit, predicted="inter_batch_delay"),
    ]
    frame = long(sheet, values, keys, tool=tool, level="model", **_fixed(config))
    return output(source.name, name, frame, notes=(*config.notes, *dry_run(config.dummy)))


def read_operations(source: Source, tool: str, name: str) -> Output:
    """Read the times of operators: of one layer, the mean over the layers of the batch."""
    import polars as pl

    sheet, config = source.sheet(["Batch Id"]), config_beside(source)
    keys = keys_of(sheet, {"Batch Id": "batch_id"})
    keys["run"] = _runs(config, keys["batch_id"])
    columns = [one for one in sheet.columns if one != "Batch Id"]
    values = [
        Value(
            "time",
            "ms",
            predicted=column,
            fixed={
                "level": "model" if column == "model_execution_e2e" else "kernel",
                "kernel": None if column == "model_execution_e2e" else column,
                "kernel_class": "cpu" if column in CPU_OPERATIONS else column,
                "count": _count(column, config),
            },
        )
        for column in columns
    ]
    frame = long(sheet, values, keys, tool=tool, **_fixed(config))
    frame, dropped = without(frame, pl.col("predicted").is_nan(), "operator not run in this batch")
    notes = [*config.notes, *dry_run(config.dummy)]
    if config.layers is None and "attn_pre_proj" in columns:
        notes.append(
            "How many layers the model has is not known without config.json: the operators have "
            "no count."
        )
    return output(source.name, name, frame, dropped=dropped, notes=notes)


def _count(column: str, config: Config) -> int | None:
    """Return how often an operator runs in a batch."""
    if column in CPU_OPERATIONS or column == "model_execution_e2e":
        return None
    return config.stages if column == "pipeline_send_recv" else config.layers


def read_trace(source: Source, tool: str, name: str) -> Output:
    """Read the time of each batch in each stage of the pipeline."""
    content = source.json()
    events = content.get("traceEvents") if isinstance(content, dict) else None
    if not isinstance(events, list):
        raise source.error("traceEvents is no list: this is no Chrome trace of VIDUR or Frontier.")
    config = config_beside(source)
    rows = []
    for i, event in enumerate(events, start=1):
        arguments = event.get("args") if isinstance(event, dict) else None
        if not isinstance(arguments, dict):
            raise source.error(f"event {i} has no args. The file may be damaged: copy it.")
        batch = arguments.get("batch_id")
        rows.append(
            {
                **_fixed(config),
                "tool": tool,
                "level": "model",
                "quantity": "time",
                "unit": "us",
                "predicted": number(event.get("dur")),
                "run": f"{config.keys.get('run', 'batch')}/{batch}",
                "batch_id": whole(batch),
                "batch": whole(arguments.get("batch_size")),
                "tokens": _sum(arguments.get("num_tokens")),
                "replica": whole(event.get("pid")),
                "stage": whole(event.get("tid")),
                "start": number(event.get("ts")),
            }
        )
    return output(source.name, name, rows, notes=(*config.notes, *dry_run(config.dummy)))


def _sum(values: Any) -> float | None:
    found = [number(one) for one in values] if isinstance(values, list) else []
    return sum(one for one in found if one is not None) if found and None not in found else None


def _runs(config: Config, batches: pl.Series) -> pl.Series:
    import polars as pl

    return (str(config.keys.get("run", "batch")) + "/" + batches.cast(pl.String)).alias("run")


def _fixed(config: Config) -> dict[str, Any]:
    return {name: value for name, value in config.keys.items() if name != "run"}
