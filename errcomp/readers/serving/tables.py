"""Tables that VIDUR and what was made from it (Frontier) share: requests, batches, profiles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from errcomp.readers.core.keys import key, keys_of
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.readers.core.wide import Value, long, without

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.core.sheet import Sheet

__all__ = [
    "CPU_OPERATIONS",
    "is_batches",
    "is_operations",
    "is_profile",
    "is_requests",
    "read_profile",
    "request_keys",
]

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
    # Of the row's values, not of the run's.
    "mode": "sequence_mode",
}
#: Columns of the rows that no column of a file may replace.
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
    """Return what identifies and explains a request."""
    names = {
        "Request Id": "request",
        "request_num_prefill_tokens": "prefill_tokens",
        "request_num_decode_tokens": "decode_tokens",
        "request_num_restarts": "restarts",
    }
    return keys_of(sheet, names)


def read_profile(source: Source, tool: str, name: str) -> Output:
    """Read measured times: the median of each operator (its mean where there is no median)."""
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
    frame = long(sheet, values, keys, tool=tool, level=level)
    frame, dropped = without(
        frame, pl.col("measured").is_nan(), "times missing: operator not run in this configuration"
    )
    if not network:
        frame = frame.with_columns(kernel_class=pl.col("kernel"))
    return output(source.name, name, frame, dropped=dropped)


def _operators(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the column and the statistic of each operator: the median where there is one."""
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        match = _TIME.fullmatch(name) or _CPU.fullmatch(name)
        if match and (match[2].lower() == "median" or match[1].lower() not in found):
            found[match[1].lower()] = (name, match[2].lower())
    return found


def _configuration(sheet: Sheet) -> dict[str, pl.Series]:
    """Return the columns that are no statistics as keys, and which repetition a row is."""
    import polars as pl

    kept = [name for name in sheet.columns if not _STATISTICS.fullmatch(name)]
    names = {name: _RENAMED.get(name, name) for name in kept}
    keys = {f"{new}_" if new in _TAKEN else new: key(sheet, old) for old, new in names.items()}
    if kept:
        seen = sheet.frame.select(
            pl.int_range(pl.len()).over(kept, mapping_strategy="group_to_rows").alias("repeat")
        )["repeat"]
        if seen.max():
            keys["repeat"] = seen
    return keys
