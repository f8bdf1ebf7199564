"""Tables shared by VIDUR and Frontier, which is based on it: requests, batches, profiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers.core import Rows, Source
from errcomp.readers.core.sheet import Sheet, Value, key, keys_of, long, without
from errcomp.readers.core.values import number, text, whole

if TYPE_CHECKING:
    import polars as pl


# The configuration of a run, from a file next to the output of VIDUR or Frontier.

_NESTED = ("cluster_config", "request_generator_config", "metrics_config")
#: Key of a row → its path in nested files, which is a single name in flat files.
_WHERE = {
    "model": (("cluster_config", "replica_config", "model_name"), "replica_model_name"),
    "device": (("cluster_config", "replica_config", "device"), "replica_device"),
    "network": (("cluster_config", "replica_config", "network_device"), "replica_network_device"),
    "tensor_parallel": (
        ("cluster_config", "replica_config", "tensor_parallel_size"),
        "replica_num_tensor_parallel_workers",
    ),
    "attention_tensor_parallel": (
        ("cluster_config", "replica_config", "attn_tensor_parallel_size"),
        "",
    ),
    "pipeline_stages": (
        ("cluster_config", "replica_config", "num_pipeline_stages"),
        "replica_num_pipeline_stages",
    ),
    "replicas": (("cluster_config", "num_replicas"), "cluster_num_replicas"),
    "scheduler": (
        ("cluster_config", "replica_scheduler_config", "name"),
        "replica_scheduler_provider",
    ),
    "qps": (
        ("request_generator_config", "interval_generator_config", "qps"),
        "poisson_request_interval_generator_qps",
    ),
}
_LAYERS = ("cluster_config", "replica_config", "model_config", "num_layers")


@dataclass(frozen=True, slots=True)
class Config:
    """The known facts about a run.

    Attributes
    ----------
    keys : dict
        Keys for its rows.
    layers, stages : int or None
        Number of layers of the model, and of stages of the pipeline.
    dummy : str
        The constants that replace the predictor; empty with a predictor.
    notes : tuple of str
    """

    keys: dict[str, Any] = field(default_factory=dict)
    layers: int | None = None
    stages: int | None = None
    dummy: str = ""
    notes: tuple[str, ...] = ()


def is_vidur(source: Source) -> bool:
    """Say whether this is a configuration that VIDUR writes."""
    names = source.json_names
    if all(name in names for name in _NESTED):
        return "execution_time_predictor_config" in names and "sys_arch" not in names
    return any(line.startswith("replica_scheduler_provider:") for line in source.head_lines)


def is_frontier(source: Source) -> bool:
    """Say whether this is a configuration that Frontier writes."""
    return all(name in source.json_names for name in (*_NESTED, "sys_arch"))


def is_frontier_beside(source: Source) -> bool:
    """Say whether the other files in the folder are Frontier's, for formats that VIDUR shares."""
    try:
        config = source.sibling("config.json")
        if config is not None:
            return is_frontier(config)
        traces = source.sibling("op_traces.jsonl")
        if traces is not None and '"simulation_info"' in "".join(traces.head_lines[:1]):
            return True
        events = source.sibling("event_trace.json")
        return events is not None and b'"cluster_type"' in events.head
    except InputError:
        return False


def config_beside(source: Source) -> Config:
    """Read ``config.json`` (or the older ``config.yml``) in the same folder, if there is one.

    If it cannot be read, the rows lack its keys, and a note says so.
    """
    try:
        if (beside := source.sibling("config.json")) is not None:
            content = beside.json()
        elif (beside := source.sibling("config.yml")) is not None:
            content = beside.yaml()
        else:
            return Config()
    except InputError as error:
        return Config(notes=(f"Model, device and scheduler are unknown: {error}",))
    if not isinstance(content, dict):
        return Config(
            notes=(
                f"Model, device and scheduler are unknown: {beside.name} is not a configuration.",
            )
        )
    keys = {}
    for name, (path, flat) in _WHERE.items():
        value = _value_at(content, path)
        value = content.get(flat) if value is None else value
        setting = text(value) or whole(value) or number(value)
        if setting is not None:
            keys[name] = setting
    run = text(_value_at(content, ("metrics_config", "output_dir")) or content.get("output_dir"))
    if run and run.strip("/"):
        keys["run"] = run.rstrip("/").rsplit("/", 1)[-1]
    layers, stages = _value_at(content, _LAYERS), keys.get("pipeline_stages")
    return Config(
        keys,
        whole(layers) or None,
        whole(stages) or None,
        _dummy(content),
    )


def dry_run(how: str) -> tuple[str, ...]:
    """Return a note on a run without a predictor of times."""
    if not how:
        return ()
    return (
        f"This is a dry run of the simulator ({how}): its times do not predict hardware, so they "
        "do not show its accuracy.",
    )


def _dummy(content: dict[str, Any]) -> str:
    for part in _objects(content):
        if part.get("enable_dummy_mode") is True:
            time = number(part.get("dummy_execution_time_ms"))
            if time is None:
                return "a constant for every operator"
            return f"{time:g} ms for every operator"
    return ""


def _value_at(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(content, dict):
            return None
        content = content.get(name)
    return content


def _objects(content: Any, depth: int = 6) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict) and depth:
        yield content
        for value in content.values():
            yield from _objects(value, depth - 1)


CPU_OPERATIONS = (
    "schedule",
    "sample_e2e",
    "prepare_inputs_e2e",
    "process_model_outputs",
    "ray_comm_time",
)
_TIME = re.compile(r"time_stats\.(.+)\.(mean|median)")
_CPU = re.compile(
    r"(schedule|(?:sampler|prepare_inputs|model_execution)_(?:e2e|launch)|process_model_outputs"
    r"|post_prepare_inputs_barrier|ray_comm_time)_(mean|median)",
    re.IGNORECASE,
)
_STATISTICS = re.compile(
    r"time_stats\..+|.+_(?:mean|median|min|max|std)|column_1|Unnamed: 0|total_time", re.IGNORECASE
)
_COLLECTIVES = frozenset(("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"))
_RENAMED = {
    "size": "size_bytes",
    "num_workers": "ranks",
    "num_tensor_parallel_workers": "tensor_parallel",
    "tensor_parallel_degree": "tensor_parallel",
    "model_name": "model",
    "batch_size": "batch",
    # Keys of the row's values, not of the run.
    "mode": "sequence_mode",
}
#: Columns of rows that columns of a file must not replace.
_TAKEN = ("tool", "level", "quantity", "unit", "predicted", "measured", "status", "kernel")


def is_requests(source: Source) -> bool:
    """Say whether this is a table of requests of this family."""
    names = source.header
    return "Request Id" in names and "request_e2e_time" in names and "prefill_e2e_time" in names


def is_batches(source: Source) -> bool:
    """Say whether this is a table of batches."""
    return "Batch Id" in source.header and "batch_execution_time" in source.header


def is_operations(source: Source) -> bool:
    """Say whether this is a table of the operators of each batch."""
    names = source.header
    of_gpu = "attn_pre_proj" in names and "mlp_up_proj" in names
    return names[0] == "Batch Id" and (of_gpu or "prepare_inputs_e2e" in names)


def is_profile(source: Source) -> bool:
    """Say whether this is a table of measured operators or collectives."""
    names = source.header
    if any(_TIME.fullmatch(name) for name in names):
        return True
    return "tensor_parallel_degree" in names and any(_CPU.fullmatch(name) for name in names)


def request_keys(sheet: Sheet) -> dict[str, pl.Series]:
    """Return the columns that identify and describe a request."""
    names = {
        "Request Id": "request",
        "request_num_prefill_tokens": "prefill_tokens",
        "request_num_decode_tokens": "decode_tokens",
        "request_num_restarts": "restarts",
    }
    return keys_of(sheet, names)


def read_profile(source: Source) -> Rows:
    """Read measured times: the median of each operator (or its mean, without a median)."""
    import polars as pl

    sheet = source.sheet()
    columns = _operators(sheet.columns)
    network = bool(columns) and set(columns) <= _COLLECTIVES
    keys = _configuration(sheet)
    values = [
        Value(
            "time",
            "ms",
            measured=column,
            fixed={"statistic": statistic, "collective" if network else "kernel": operator},
        )
        for operator, (column, statistic) in columns.items()
    ]
    level = "collective" if network else "kernel"
    frame = long(sheet, values, keys, level=level)
    frame, dropped = without(
        frame,
        pl.col("measured").is_nan(),
        "no times: the operator does not run in this configuration",
    )
    if not network:
        frame = frame.with_columns(kernel_class=pl.col("kernel"))
    return Rows(frame, dropped=dropped)


def _operators(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the column and the statistic of each operator: the median if there is one."""
    operators: dict[str, tuple[str, str]] = {}
    for name in names:
        match = _TIME.fullmatch(name) or _CPU.fullmatch(name)
        if match and (match[2].lower() == "median" or match[1].lower() not in operators):
            operators[match[1].lower()] = (name, match[2].lower())
    return operators


def _configuration(sheet: Sheet) -> dict[str, pl.Series]:
    """Return the columns other than statistics as keys, and the repetition of each row."""
    import polars as pl

    columns = [name for name in sheet.columns if not _STATISTICS.fullmatch(name)]
    names = {name: _RENAMED.get(name, name) for name in columns}
    keys = {f"{new}_" if new in _TAKEN else new: key(sheet, old) for old, new in names.items()}
    if columns:
        seen = sheet.frame.select(
            pl.int_range(pl.len()).over(columns, mapping_strategy="group_to_rows").alias("repeat")
        )["repeat"]
        if seen.max():
            keys["repeat"] = seen
    return keys


# Batches of VIDUR and Frontier: their times, their operators, and the trace of their stages.

_COUNTS = {
    "Batch Id": "batch_id",
    "batch_size": "batch",
    "batch_num_tokens": "tokens",
    "batch_num_prefill_tokens": "prefill_tokens",
    "batch_num_decode_tokens": "decode_tokens",
}
_ARGUMENTS = ("batch_id", "batch_size", "request_ids", "num_tokens")


def is_trace(source: Source) -> bool:
    """Say whether this is a Chrome trace with one batch per event."""
    return source.json_names[:1] == ("traceEvents",) and all(
        f'"{name}"'.encode() in source.head for name in _ARGUMENTS
    )


def read_batches(source: Source, unit: str) -> Rows:
    """Read the time of each batch."""
    sheet = source.sheet(["Batch Id", "batch_execution_time"])
    config = config_beside(source)
    keys = keys_of(sheet, _COUNTS)
    keys["run"] = _runs(config, keys["batch_id"])
    values = [
        Value("time", unit, predicted="batch_execution_time"),
        Value("inter-batch delay", unit, predicted="inter_batch_delay"),
    ]
    frame = long(sheet, values, keys, level="model", **_keys_without_run(config))
    return Rows(frame, notes=(*config.notes, *dry_run(config.dummy)))


def read_operations(source: Source) -> Rows:
    """Read the times of operators: for one layer, the mean over the layers of the batch."""
    import polars as pl

    sheet, config = source.sheet(["Batch Id"]), config_beside(source)
    keys = keys_of(sheet, {"Batch Id": "batch_id"})
    keys["run"] = _runs(config, keys["batch_id"])
    columns = [column for column in sheet.columns if column != "Batch Id"]
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
    frame = long(sheet, values, keys, **_keys_without_run(config))
    frame, dropped = without(
        frame, pl.col("predicted").is_nan(), "the operator does not run in this batch"
    )
    notes = [*config.notes, *dry_run(config.dummy)]
    if config.layers is None and "attn_pre_proj" in columns:
        notes.append(
            "Without config.json, the number of layers is unknown, so the operators have no count."
        )
    return Rows(frame, dropped=dropped, notes=notes)


def _count(column: str, config: Config) -> int | None:
    """Return the number of executions of an operator in a batch."""
    if column in CPU_OPERATIONS or column == "model_execution_e2e":
        return None
    return config.stages if column == "pipeline_send_recv" else config.layers


def read_trace(source: Source) -> Rows:
    """Read the time of each batch in each stage of the pipeline."""
    content = source.json()
    events = content.get("traceEvents") if isinstance(content, dict) else None
    if not isinstance(events, list):
        raise source.error("traceEvents must be a list: not a Chrome trace of VIDUR or Frontier.")
    config = config_beside(source)
    rows = []
    for i, event in enumerate(events, start=1):
        arguments = event.get("args") if isinstance(event, dict) else None
        if not isinstance(arguments, dict):
            raise source.error(f"event {i} has no args. The file may be damaged: copy it again.")
        batch = arguments.get("batch_id")
        rows.append(
            {
                **_keys_without_run(config),
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
    return Rows(rows, notes=(*config.notes, *dry_run(config.dummy)))


def _sum(values: Any) -> float | None:
    numbers = [number(value) for value in values] if isinstance(values, list) else []
    return sum(n for n in numbers if n is not None) if numbers and None not in numbers else None


def _runs(config: Config, batches: pl.Series) -> pl.Series:
    import polars as pl

    return (str(config.keys.get("run", "batch")) + "/" + batches.cast(pl.String)).alias("run")


def _keys_without_run(config: Config) -> dict[str, Any]:
    return {name: value for name, value in config.keys.items() if name != "run"}
