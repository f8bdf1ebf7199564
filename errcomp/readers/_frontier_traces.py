"""Frontier: operators of each batch, from its operator trace and from its ledger of stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from errcomp.readers._serving_config import config_beside, dry_run
from errcomp.readers._values import number, text, whole
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["is_ledger", "is_operators", "read_ledger", "read_operators"]


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


def read_operators(source: Source) -> Output:
    """Read the time of each operator; those of one batch and replica are one run."""
    config = config_beside(source)
    rows: list[dict[str, Any]] = []
    constant: set[float] = set()
    for line, record in source.json_lines():
        if not isinstance(record, dict):
            raise source.error(f"must be an object, got {str(record)[:40]!r}.", line=line)
        if "duration_ms" not in record:
            continue
        meta = record.get("meta")
        meta = meta if isinstance(meta, dict) else {}
        time, start = number(record["duration_ms"]), number(record.get("ts_start"))
        layer = record.get("layer_id")
        if record.get("type") == "COMPUTE" and time is not None:
            constant.add(time)
        rows.append(
            {
                "tool": "Frontier",
                "level": "kernel",
                "quantity": "time",
                "unit": "ms",
                "predicted": time,
                "run": _run(record),
                "kernel": text(record.get("name")),
                "kernel_class": text(record.get("type")),
                "layer": layer if isinstance(layer, int) and layer >= 0 else None,
                # ts_start is in seconds, the durations are not.
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
        how = "its compute operators have only " + _list(sorted(constant)) + " ms as times"
    notes = (*config.notes, *dry_run(how))
    return output(source.name, "frontier-operators", rows, notes=notes)


def read_ledger(source: Source) -> Output:
    """Read the components of each batch in each stage, and the time of the stage."""
    config = config_beside(source)
    rows: list[dict[str, Any]] = []
    apart = 0
    for line, record in source.json_lines():
        times = record.get("execution_time") if isinstance(record, dict) else None
        parts = times.get("component_ledger_ms") if isinstance(times, dict) else None
        if not isinstance(times, dict) or not isinstance(parts, dict):
            raise source.error(
                "no execution_time with a component_ledger_ms: not Frontier's ledger.", line=line
            )
        common: dict[str, Any] = {
            "tool": "Frontier",
            "quantity": "time",
            "unit": "ms",
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
        found = {name: number(value) for name, value in parts.items()}
        # What is 0 was not run: the ledger has every component that any model may have.
        rows += [
            {
                **common,
                "level": "kernel",
                "predicted": value,
                "kernel": name.removesuffix("_time"),
                "kernel_class": name.removesuffix("_time"),
            }
            for name, value in found.items()
            if value != 0
        ]
        together = math.fsum(value for value in found.values() if value is not None)
        apart += total is not None and abs(together - total) > 1e-6 * max(total, 1e-3)
    notes = [*config.notes, *dry_run(config.dummy)]
    if apart:
        notes.append(f"In {apart} stages the components do not add up to the total of the stage.")
    return output(source.name, "frontier-ledger", rows, notes=notes)


def _run(record: dict[str, Any]) -> str:
    """Name what runs one after the other: one batch in one stage of one replica."""
    parts = (
        text(record.get("cluster") or record.get("cluster_type")),
        *(f"{what} {record[name]}" for what, name in _PARTS if whole(record.get(name)) is not None),
    )
    return " ".join(part for part in parts if part)


_PARTS = (("replica", "replica_id"), ("stage", "stage_id"), ("batch", "batch_id"))


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def _list(values: Sequence[float]) -> str:
    return " and ".join(f"{value:g}" for value in values)
