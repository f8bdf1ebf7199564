"""What LLMServingSim's benchmark records of vLLM: requests, their run, and its load over time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers._keys import keys_of
from errcomp.readers._values import number, whole
from errcomp.readers._wide import Value, as_dropped, long
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["is_meta", "is_requests", "is_series", "read_requests", "read_series"]

_STAMPS = ("queued_ts", "first_token_ts", "last_token_ts")
#: Requests end within a day: stamps that are further apart are of two clocks.
_ONE_CLOCK = 100_000.0
_NAME = re.compile(r"bench-(\d{1,15})")


def is_requests(source: Source) -> bool:
    """Say whether this is ``requests.jsonl``."""
    names = source.json_names
    return all(name in names for name in ("request_id", "output_toks", *_STAMPS[1:]))


def is_meta(source: Source) -> bool:
    """Say whether this is ``meta.json``."""
    names = source.json_names
    return "vllm_version" in names and "engine_kwargs" in names


def is_series(source: Source) -> bool:
    """Say whether this is ``timeseries.csv``."""
    return {"t", "prompt_throughput", "gen_throughput", "running", "waiting"} <= set(source.header)


def read_requests(source: Source) -> Output:
    """Read time, ttft, tpot and queueing delay of each request, by the benchmark's definitions."""
    keys, notes = _run(source, "requests.jsonl")
    rows: list[dict[str, Any]] = []
    single = other_clock = 0
    for line, record in source.json_lines():
        if not isinstance(record, dict) or "request_id" not in record:
            raise source.error("must be an object with a request_id.", line=line)
        queued, first, last = (_stamp(source, line, record, name) for name in _STAMPS)
        arrival = _stamp(source, line, record, "arrival_time")
        begin = arrival
        if queued is not None and (arrival is None or _apart(arrival, first, last)):
            begin = queued
            other_clock += arrival is not None
        tokens = number(record.get("output_toks"))
        common = {
            **keys,
            "tool": "vLLM",
            "level": "request",
            "unit": "s",
            "request": _request(record["request_id"]),
            "input_tokens": whole(record.get("input_toks")),
            "output_tokens": whole(record.get("output_toks")),
        }
        times = {
            "time": _between(begin, last),
            "ttft": _between(begin, first),
            "queueing delay": _between(queued, _stamp(source, line, record, "scheduled_ts")),
        }
        if tokens is not None and tokens > 1:
            decode = _between(first, last)
            times["tpot"] = None if decode is None else decode / (tokens - 1)
        else:
            single += 1
        rows += [
            {
                **common,
                "quantity": what,
                "measured": value,
                "status": "not finished" if value is None else None,
            }
            for what, value in times.items()
        ]
    if other_clock:
        notes = (
            *notes,
            f"arrival_time of {other_clock} requests is of another clock than the other stamps: "
            "they are taken to arrive when they are queued, as the benchmark itself does.",
        )
    dropped = as_dropped("tpot of one output token, which has none", single)
    return output(source.name, "llmservingsim-vllm-requests", rows, dropped=dropped, notes=notes)


def read_series(source: Source) -> Output:
    """Read the throughputs over time."""
    keys, notes = _run(source, "timeseries.csv")
    sheet = source.sheet(["prompt_throughput", "gen_throughput"])
    values = [
        Value("prompt throughput", "tokens/s", "", "prompt_throughput"),
        Value("generation throughput", "tokens/s", "", "gen_throughput"),
    ]
    names = {"t": "t", "running": "running", "waiting": "waiting", "kv_cache_pct": "kv_cache_pct"}
    of_rows: dict[str, pl.Series] = keys_of(sheet, names)
    frame = long(sheet, values, of_rows, tool="vLLM", level="system", **keys)
    return output(source.name, "llmservingsim-vllm-series", frame, notes=notes)


def _run(source: Source, ending: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what ``meta.json`` beside says: the file of the same beginning, or of that name."""
    name = source.path.name
    beside = source.sibling("meta.json")
    if name.endswith(ending):
        beside = source.sibling(name.removesuffix(ending) + "meta.json") or beside
    if beside is None:
        return {}, ()
    try:
        content = beside.json()
    except InputError as error:
        return {}, (f"Model, device and version are not known: {error}",)
    if not isinstance(content, dict):
        return {}, (f"Model, device and version are not known: {beside.name} is no object.",)
    hardware, engine = content.get("hardware"), content.get("engine_kwargs")
    found = {
        "model": content.get("model"),
        "version": content.get("vllm_version"),
        "date": content.get("started_at"),
        "device": hardware.get("device_name") if isinstance(hardware, dict) else None,
        "dtype": engine.get("dtype") if isinstance(engine, dict) else None,
    }
    return {name: value for name, value in found.items() if isinstance(value, str)}, ()


def _stamp(source: Source, line: int, record: dict[str, Any], name: str) -> float | None:
    if record.get(name) is None:
        return None
    value = number(record[name])
    if value is None:
        what = repr(record[name])[:40]
        raise source.error(f"{name} must be a time in s, got {what}.", line=line)
    # vLLM leaves stamps at 0 that were never set.
    return value or None


def _apart(arrival: float, *stamps: float | None) -> bool:
    return any(one is None or abs(arrival - one) > _ONE_CLOCK for one in stamps)


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin


def _request(value: Any) -> int | str:
    """Return the number of a request, by which the simulator knows it too."""
    match = _NAME.fullmatch(str(value))
    return int(match[1]) if match else str(value)
