"""Logs of MLPerf: the summary that LoadGen writes, and the lines of training runs."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from errcomp.readers._strict import loads
from errcomp.readers._values import number_at
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["is_detail", "is_summary", "is_training", "read_summary", "read_training"]

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
    "Tokens per second (inferred)": "tokens/s",
    "Completed tokens per second (inferred)": "tokens/s",
    "QPS w/ loadgen overhead": "queries/s",
    "QPS w/o loadgen overhead": "queries/s",
    "TPS w/ loadgen overhead": "tokens/s",
    "TPS w/o loadgen overhead": "tokens/s",
}
_LINE = re.compile(r":::MLLOG\s*(\{.*\})")
#: Of round v0.6: seconds, key and the rest. Of v0.5: benchmark, seconds, place, key and value.
_SECOND_LINE = re.compile(r":::MLL\s+(\d{1,12}(?:\.\d{1,12})?)\s+(\w+):\s*(\{.*\})")
_FIRST_LINE = re.compile(
    r":::MLPv0\.\d+\.\d+\s+(\w+)\s+(\d{1,12}(?:\.\d{1,12})?)\s+\([^)]*\)\s+(\w+)(?::\s*(.*\S))?"
)
_DETAIL = re.compile(r'"namespace": "mlperf::logging"|^"pid": \d+, "tid": \d+, "ts": \d+ns :')


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
    runs: list[tuple[dict[str, str], list[tuple[int, str, str]]]] = []
    within = False
    for line, text in enumerate(source.lines(), start=1):
        if _TITLE.match(text):
            within = True
            runs.append(({}, []))
        elif within and text.strip() == "Test Parameters Used":
            within = False
        elif within and (match := _PAIR.match(text)):
            runs[-1][0].setdefault(match.group(1), match.group(2))
            runs[-1][1].append((line, match.group(1), match.group(2)))
    rows = [
        row for i, (said, pairs) in enumerate(runs, 1) for row in _rows(source, str(i), said, pairs)
    ]
    unknown = any("Result is" not in said for said, _ in runs)
    notes = ["The summary does not say whether the result is valid."] if unknown else []
    return output(source.name, "mlperf-summary", rows, notes=notes)


def _rows(
    source: Source, run: str, said: dict[str, str], pairs: list[tuple[int, str, str]]
) -> list[dict[str, Any]]:
    """Return the rows of one summary; a value that it states twice is given once."""
    valid = said.get("Result is")
    keys = {
        "tool": "MLPerf LoadGen",
        "run": run,
        "sut": said.get("SUT name"),
        "scenario": said.get("Scenario", "").replace(" ", "") or None,
        "mode": said.get("Mode"),
        "valid": valid,
        "status": None if valid in ("VALID", None) else f"result is {valid}",
    }
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line, name, text in pairs:
        if (kind := _kind(name)) and tuple(kind.items()) not in rows:
            value = number_at(source, name, text, line)
            rows[tuple(kind.items())] = {
                **keys,
                **kind,
                "measured": None if keys["status"] else value,
            }
    return list(rows.values())


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


def is_detail(source: Source) -> bool:
    """Say whether this is mlperf_log_detail.txt, which LoadGen writes beside its summary."""
    return any(_DETAIL.search(line) for line in source.head_lines)


def is_training(source: Source) -> bool:
    """Say whether this is the log of an MLPerf training run, of any round."""
    lines = (_LINE, _SECOND_LINE, _FIRST_LINE)
    found = any(line.search(text) for text in source.head_lines for line in lines)
    return found and not is_detail(source)


def read_training(source: Source) -> Output:
    """Read the time to train of a run, and its throughput.

    Raises
    ------
    InputError
        No run begins, or a line is no record.
    """
    said: dict[str, Any] = {}
    rates: list[float] = []
    start: Decimal | None = None
    stop: Decimal | None = None
    unit = "ms"
    status: str | None = "the run did not end"
    for record in _records(source):
        key, value, unit = record["key"], record.get("value"), record["unit"]
        about = record.get("metadata")
        about = about if isinstance(about, dict) else {}
        if key == "run_start" and start is None:
            start = record["at"]
        elif key == "run_stop":
            stop = record["at"]
            ended = str(about.get("status", "success"))
            status = None if ended == "success" else f"the run ended with {ended}"
        elif key == "tracked_stats" and isinstance(value, dict):
            rates += [v for n, v in value.items() if n == "throughput" and _is_number(v)]
        else:
            said.setdefault(key, value)
    if start is None:
        raise source.error("no run_start: no run begins in it. The log may be cut off.")
    took = None if stop is None else float(stop - start)
    names = {
        "model": "submission_benchmark",
        "device": "submission_platform",
        "submitter": "submission_org",
        "batch": "global_batch_size",
    }
    keys = {name: None if said.get(key) is None else str(said[key]) for name, key in names.items()}
    common = {"tool": "MLPerf training", "level": "model", "run": "1", **keys, "status": status}
    kind = {"quantity": "time to train", "unit": unit}
    rows = [{**common, **kind, "measured": None if status else took}]
    if rates:
        rate = {"quantity": "throughput", "unit": "samples/s", "status": None}
        rows.append({**common, **rate, "measured": statistics.median(rates)})
    return output(source.name, "mlperf-training-log", rows)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _records(source: Source) -> Iterator[dict[str, Any]]:
    """Yield key, value, metadata, time and its unit of each record, in the dialect of each round.

    Times are decimals: the difference of two stamps in seconds is exact.
    """
    for line, text in enumerate(source.lines(), start=1):
        if match := _LINE.search(text):
            found = _record(source, line, match.group(1))
            at = found.get("time_ms")
            if isinstance(found.get("key"), str):
                yield {**found, "at": Decimal(str(at)) if _is_number(at) else None, "unit": "ms"}
        elif match := _SECOND_LINE.search(text):
            found = _record(source, line, match.group(3))
            yield {**found, "key": match.group(2), "at": Decimal(match.group(1)), "unit": "s"}
        elif match := _FIRST_LINE.search(text):
            model, at, key, value = match.groups()
            yield {"key": "submission_benchmark", "value": model, "at": None, "unit": "s"}
            # The line may go on after the value; only of the end of a run it matters.
            ended = "success" if re.search(r'"success": true', value or "") else "no success"
            about = {"status": ended} if key == "run_stop" and value else {}
            yield {"key": key, "value": value, "at": Decimal(at), "metadata": about, "unit": "s"}


def _record(source: Source, line: int, text: str) -> dict[str, Any]:
    try:
        found = loads(text)
    except ValueError as error:
        raise source.error(
            f"not a record of MLLOG ({error}). The file may be cut off: copy it again.", line=line
        ) from None
    return found if isinstance(found, dict) else {}
