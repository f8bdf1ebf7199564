"""Runs of BLIS: what it prints, the file of its metrics, and the tables of its own tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from errcomp.readers._strict import loads
from errcomp.readers._values import number, number_at, text, whole
from errcomp.readers._wide import as_dropped
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["is_run", "is_tests", "read_run", "read_tests"]

_TITLE = "=== Simulation Metrics ==="
_NAMES = {"vllm_estimated_duration_s", "e2e_mean_ms"}
_LATENCY = re.compile(r"(e2e|ttft|itl|scheduling_delay)_(mean|median|p\d+)_ms")
_QUANTITY = {"e2e": "time", "ttft": "ttft", "itl": "itl", "scheduling_delay": "queueing delay"}
_TOTALS = {
    "vllm_estimated_duration_s": ("time", "s", "predicted"),
    "responses_per_sec": ("request throughput", "requests/s", "predicted"),
    "tokens_per_sec": ("generation throughput", "tokens/s", "predicted"),
    # What the simulation took, not what it says.
    "simulation_duration_s": ("host time", "s", "measured"),
}
#: What the text of older versions calls them.
_PRINTED = {
    "Completed Requests": "completed_requests",
    "Simulation Duration(s)": "simulation_duration_s",
    "vLLM estimated Duration(s)": "vllm_estimated_duration_s",
}
_LINE = re.compile(r"([A-Za-z][\w ()/]*?) *: *(\S+)")
_REQUEST = {
    "requestID": "request",
    "num_prefill_tokens": "prefill_tokens",
    "num_decode_tokens": "decode_tokens",
    "slo_class": "slo_class",
    "tenant_id": "tenant",
    "handled_by": "instance",
    "model": "model",
}
_TEST = {
    "model": "model",
    "workload": "workload",
    "approach": "approach",
    "rate": "rate",
    "hardware": "device",
    "tp": "tensor_parallel",
    "seed": "seed",
}
_UNLIKE = (
    "itl_ms or scheduling_delay_ms of one request: in µs or ms by the version of BLIS, which the "
    "file does not name"
)


def is_run(source: Source) -> bool:
    """Say whether this is the text or file of one run."""
    if set(source.json_names) >= _NAMES:
        return True
    head = source.head
    ours = b"vllm_estimated_duration_s" in head or b"vLLM estimated Duration(s)" in head
    return ours and any(line.strip() == _TITLE for line in source.head_lines)


def is_tests(source: Source) -> bool:
    """Say whether these are the metrics that the tests of BLIS expect."""
    return "tests" in source.json_names and all(
        f'"{name}"'.encode() in source.head for name in _NAMES
    )


def read_run(source: Source) -> Output:
    """Read the statistics of a run and, where they are there, its requests."""
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    unlike = repeated = 0
    for run in _runs(source):
        requests = run.get("requests")
        requests = requests if isinstance(requests, list) else []
        name = text(run.get("instance_id"))
        for one in requests:
            if not isinstance(one, dict):
                raise source.error(f"a request must be an object, got {str(one)[:40]}.")
            rows += _request(source, one, name)
            unlike += sum(key in one for key in ("itl_ms", "scheduling_delay_ms"))
        found = _statistics(source, run, {"instance": name})
        if requests:
            # They follow from the requests.
            both = ("time", "ttft")
            kept = [r for r in found if r["level"] == "system" or r["quantity"] not in both]
            repeated += len(found) - len(kept)
            found = kept
        rows += found
        notes += _unfinished(run, name)
    if not rows:
        raise source.error("no metrics follow the title: the run was stopped. Run it again.")
    dropped = [
        *as_dropped(_UNLIKE, unlike),
        *as_dropped("statistic of requests that are in the file", repeated),
    ]
    return output(source.name, "blis-run", rows, dropped=dropped, notes=notes)


def read_tests(source: Source) -> Output:
    """Read the metrics of each test, with what was simulated as keys."""
    content = source.json()
    tests = content.get("tests") if isinstance(content, dict) else None
    if not isinstance(tests, list):
        raise source.error("tests is no list. The file may be another version.")
    rows: list[dict[str, Any]] = []
    for index, test in enumerate(tests):
        metrics = test.get("metrics") if isinstance(test, dict) else None
        if not isinstance(metrics, dict):
            raise source.error(f"test {index + 1} has no metrics.")
        rows += _statistics(source, metrics, {"run": str(index + 1), **_keys(test, _TEST)})
    return output(source.name, "blis-tests", rows)


def _runs(source: Source) -> Iterator[Mapping[str, Any]]:
    if set(source.json_names) >= _NAMES:
        content = source.json()
        for one in content if isinstance(content, list) else [content]:
            if not isinstance(one, dict):
                raise source.error(f"a run must be an object, got {str(one)[:40]}.")
            yield one
        return
    yield from _printed(source)


def _printed(source: Source) -> Iterator[Mapping[str, Any]]:
    """Read what follows each title: an object of JSON, or a line for each value."""
    values: dict[str, Any] | None = None
    block: list[str] = []
    began = 0
    for at, line in enumerate(source.lines(), start=1):
        if block:
            block.append(line)
            if line.rstrip() == "}":
                yield _parsed(source, block, began)
                values, block = None, []
        elif line.strip() == _TITLE:
            if values:
                yield values
            values = {}
        elif values is not None and line.strip():
            match = _LINE.fullmatch(line.strip())
            if line.startswith("{") and not values:
                block, began = [line], at
            elif match is not None:
                values |= _value(source, match, at)
            else:
                if values:
                    yield values
                values = None
    if block:
        raise source.error("the metrics are cut off: copy the output again.", line=began)
    if values:
        yield values


def _value(source: Source, match: re.Match[str], at: int) -> dict[str, float]:
    name = _PRINTED.get(match[1], match[1])
    if name in _TOTALS or name == "completed_requests" or _LATENCY.fullmatch(name):
        return {name: number_at(source, match[1], match[2], at)}
    return {}


def _parsed(source: Source, block: list[str], line: int) -> Mapping[str, Any]:
    try:
        found = loads("\n".join(block))
    except ValueError:
        raise source.error("the metrics are not valid JSON: copy it again.", line=line) from None
    return cast("Mapping[str, Any]", found)


def _keys(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, str | float] = {}
    for old, new in names.items():
        value = record.get(old)
        known = [one for one in (text(value), whole(value), number(value)) if one is not None]
        if known:
            found[new] = known[0]
    return found


def _statistics(
    source: Source, run: Mapping[str, Any], keys: Mapping[str, Any]
) -> list[dict[str, Any]]:
    nothing = number(run.get("completed_requests")) == 0
    rows = []
    for name, value in run.items():
        row: dict[str, Any]
        column = "predicted"
        if match := _LATENCY.fullmatch(name):
            row = {"level": "request", "quantity": _QUANTITY[match[1]], "unit": "ms"}
            row["statistic"] = match[2]
        elif name in _TOTALS:
            quantity, unit, column = _TOTALS[name]
            row = {"level": "system", "quantity": quantity, "unit": unit}
        else:
            continue
        found = number(value)
        if found is None:
            raise source.error(f"{name} must be a number, got {str(value)[:40]!r}.")
        # BLIS writes zeros where there is nothing to take a mean of.
        none = nothing and column == "predicted"
        row["status"] = "no request completed" if none else None
        row[column] = None if none else found
        rows.append({"tool": "BLIS", **keys, **row})
    return rows


def _request(
    source: Source, record: Mapping[str, Any], instance: str | None
) -> Iterator[dict[str, Any]]:
    keys = {"instance": instance, **_keys(record, _REQUEST)}
    ended = number(record.get("e2e_ms"))
    for name, quantity in (("e2e_ms", "time"), ("ttft_ms", "ttft")):
        if name not in record:
            continue
        value = number(record[name])
        if value is None or ended is None:
            wrong = record[name] if value is None else record.get("e2e_ms")
            raise source.error(
                f"{'e2e_ms' if value is not None else name} of request "
                f"{keys.get('request', '?')} must be a number, got {str(wrong)[:40]!r}."
            )
        # BLIS writes zero for what did not happen.
        status = None if value else "not finished"
        yield {
            "tool": "BLIS",
            "level": "request",
            "quantity": quantity,
            "unit": "ms",
            **keys,
            "predicted": value or None,
            "status": status,
        }


def _unfinished(run: Mapping[str, Any], name: str | None) -> list[str]:
    left = sum(number(run.get(key)) or 0 for key in ("still_queued", "still_running"))
    if not left:
        return []
    where = f" of {name}" if name else ""
    what = f"1 request{where} was" if left == 1 else f"{left:.0f} requests{where} were"
    return [f"{what} not finished: no statistic has what they took."]
