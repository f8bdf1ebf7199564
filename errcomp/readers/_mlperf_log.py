"""Logs of MLPerf: the summary that LoadGen writes, and the lines of training runs."""

from __future__ import annotations

import re
import statistics
from typing import Any

from errcomp.readers._strict import loads, number
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["is_summary", "is_training", "read_summary", "read_training"]

_TITLE = re.compile(r"^\s*MLPerf Results Summary\s*$")
_PAIR = re.compile(r"^\s*([^:]+?)\s*:\s*(.*?)\s*$")
_PERCENTILE = re.compile(
    r"(?P<p>[\d.]+)(?:th)? (?:(?P<first>first token )percentile |percentile (?P<what>first token |"
    r"time to output token)?)\s*(?:latency )?\(ns\)"
)
_WORD = re.compile(r"(Min|Max|Mean) (?:(First Token) )?(latency|Time to Output Token) \(ns\)")
_RATES = {
    "Samples per second": "samples/s",
    "Scheduled samples per second": "samples/s",
    "Completed samples per second": "samples/s",
    "Samples per query": "samples",
    "Tokens per second": "tokens/s",
    "Completed tokens per second": "tokens/s",
    "QPS w/ loadgen overhead": "queries/s",
    "QPS w/o loadgen overhead": "queries/s",
    "TPS w/ loadgen overhead": "tokens/s",
    "TPS w/o loadgen overhead": "tokens/s",
}
_LINE = re.compile(r":::MLLOG\s*(\{.*\})")


def is_summary(source: Source) -> bool:
    """Say whether this is mlperf_log_summary.txt."""
    return any(_TITLE.match(line) for line in source.head_lines)


def read_summary(source: Source) -> Output:
    """Read rates and latencies of a run of LoadGen.

    Raises
    ------
    InputError
        There is none, or a value is no number.
    """
    said: dict[str, str] = {}
    pairs: list[tuple[int, str, str]] = []
    within = False
    for line, text in enumerate(source.lines(), start=1):
        if _TITLE.match(text):
            within = True
        elif within and text.strip() == "Test Parameters Used":
            break
        elif within and (match := _PAIR.match(text)):
            said.setdefault(match.group(1), match.group(2))
            pairs.append((line, match.group(1), match.group(2)))
    valid = said.get("Result is")
    keys = {
        "tool": "MLPerf LoadGen",
        "run": "1",
        "sut": said.get("SUT name"),
        "scenario": said.get("Scenario", "").replace(" ", "") or None,
        "mode": said.get("Mode"),
        "valid": valid,
        "status": None if valid in ("VALID", None) else f"result is {valid}",
    }
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line, name, text in pairs:
        if (kind := _kind(name)) and tuple(kind.items()) not in rows:
            value = _number(source, line, name, text)
            if keys["status"]:
                value = None
            rows[tuple(kind.items())] = {**keys, **kind, "measured": value}
    notes = [] if valid else ["The summary does not say whether the result is valid."]
    return output(source.name, "mlperf-summary", list(rows.values()), notes=notes)


def _kind(name: str) -> dict[str, Any] | None:
    """Return what a line is about: level, quantity, unit and statistic."""
    if unit := _RATES.get(name):
        return {"level": "system", "quantity": "throughput", "unit": unit, "statistic": name}
    if match := _PERCENTILE.fullmatch(name):
        what = f"{match['first'] or ''}{match['what'] or ''}"
        statistic = f"p{float(match['p']):g}"
    elif match := _WORD.fullmatch(name):
        what = f"{match.group(2) or ''}{match.group(3)}"
        statistic = match.group(1).lower()
    else:
        return None
    lower = what.lower()
    quantity = "ttft" if "first" in lower else "tpot" if "output" in lower else "time"
    return {"level": "request", "quantity": quantity, "unit": "ns", "statistic": statistic}


def _number(source: Source, line: int, name: str, text: str) -> float | None:
    try:
        return number(text)
    except ValueError:
        raise source.error(
            f"{name} must be a number, got {text[:40]!r}. The file may be damaged: copy it again.",
            line=line,
        ) from None


def is_training(source: Source) -> bool:
    """Say whether this is the log of an MLPerf training run."""
    return any(_LINE.search(line) for line in source.head_lines)


def read_training(source: Source) -> Output:
    """Read the time to train of a run, and its throughput.

    Raises
    ------
    InputError
        No run begins, or a line is no record.
    """
    said: dict[str, Any] = {}
    rates: list[float] = []
    start: Any = None
    stop: Any = None
    status: str | None = "the run did not end"
    for line, text in enumerate(source.lines(), start=1):
        if not (match := _LINE.search(text)):
            continue
        record = _record(source, line, match.group(1))
        key, value, at = record.get("key"), record.get("value"), record.get("time_ms")
        about = record.get("metadata")
        about = about if isinstance(about, dict) else {}
        if key == "run_start" and start is None:
            start = at
        elif key == "run_stop":
            stop = at
            ended = str(about.get("status", "success"))
            status = None if ended == "success" else f"the run ended with {ended}"
        elif key == "tracked_stats" and isinstance(value, dict):
            rates += [v for n, v in value.items() if n == "throughput" and _is_number(v)]
        elif isinstance(key, str):
            said.setdefault(key, value)
    if not _is_number(start):
        raise source.error("no run_start: no run begins in it. The log may be cut off.")
    took = stop - start if _is_number(stop) else None
    names = {
        "model": "submission_benchmark",
        "device": "submission_platform",
        "submitter": "submission_org",
        "batch": "global_batch_size",
    }
    keys = {name: None if said.get(key) is None else str(said[key]) for name, key in names.items()}
    common = {"tool": "MLPerf training", "level": "model", "run": "1", **keys, "status": status}
    kind = {"quantity": "time to train", "unit": "ms"}
    rows = [{**common, **kind, "measured": None if status else took}]
    if rates:
        rate = {"quantity": "throughput", "unit": "samples/s", "status": None}
        rows.append({**common, **rate, "measured": statistics.median(rates)})
    return output(source.name, "mlperf-training-log", rows)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _record(source: Source, line: int, text: str) -> dict[str, Any]:
    try:
        found = loads(text)
    except ValueError as error:
        raise source.error(
            f"not a record of MLLOG ({error}). The file may be cut off: copy it again.", line=line
        ) from None
    return found if isinstance(found, dict) else {}
