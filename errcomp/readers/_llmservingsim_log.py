"""What LLMServingSim prints: its log, and the comparison with vLLM."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["TOTALS", "is_log", "is_summary", "read_log", "read_summary"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TICK = re.compile(
    r"\[(\d+(?:\.\d+)?)s\] Avg prompt throughput: *([\d.]+) tokens/s, "
    r"Avg generation throughput: *([\d.]+) tokens/s"
)
_INSTANCE = re.compile(r"─* *Instance \[(\d+)\] *─*")
_FIGURE = re.compile(r"(Mean|Median|P\d+) (TTFT|TPOT|ITL) \((ms|us|ns|s)\) *: *(\S+)")
#: Lines of the results, and what they are.
TOTALS = {
    "Total clocks (ns)": ("time", "ns"),
    "Request throughput (req/s)": ("request throughput", "requests/s"),
    "Average prompt throughput (tok/s)": ("prompt throughput", "tokens/s"),
    "Average generation throughput (tok/s)": ("generation throughput", "tokens/s"),
    "Total token throughput (tok/s)": ("token throughput", "tokens/s"),
}
_OURS = ("LLMServingSim", "Total clocks (ns)", "├─Running Instance[")
_COMPARED = re.compile(
    r"(TTFT|TPOT|ITL|Latency) (Mean|Median|P\d+(?:\.\d+)?) +(\S+) +(\S+)"
    r" +([+-]?(?:\d+(?:\.\d+)?|nan|inf))%"
)
_QUANTITY = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "Latency": "time"}
_HEADER = re.compile(r"Metric +vLLM +Sim +Diff%")


def is_log(source: Source) -> bool:
    """Say whether this is the log of a simulation (vLLM's own has throughputs as well)."""
    text = "\n".join(source.head_lines)
    ours = any(mark in text for mark in _OURS)
    return ours and ("Avg prompt throughput" in text or "Total clocks (ns)" in text)


def read_log(source: Source) -> Output:
    """Read the totals, the statistics of the requests, and the throughputs over time."""
    rows: list[dict[str, Any]] = []
    instance = None
    finished = False
    for raw in source.lines():
        line = _COLOUR.sub("", raw).strip()
        if tick := _TICK.search(line):
            for what, text in zip(("prompt", "generation"), tick.groups()[1:], strict=True):
                found = {"quantity": f"{what} throughput", "unit": "tokens/s", "t": float(tick[1])}
                rows.append({**found, "level": "system", "predicted": _number(text)})
        elif header := _INSTANCE.fullmatch(line):
            instance = int(header[1])
        elif figure := _FIGURE.fullmatch(line):
            statistic, name, unit, text = figure.groups()
            found = {"quantity": _QUANTITY[name], "unit": unit, "statistic": statistic.lower()}
            value = _number(text)
            rows.append({**found, "level": "request", "instance": instance, "predicted": value})
        elif (name := line.partition(":")[0].strip()) in TOTALS:
            quantity, unit = TOTALS[name]
            value = _number(line.partition(":")[2].strip())
            finished = finished or quantity == "time"
            rows.append({"quantity": quantity, "unit": unit, "level": "system", "predicted": value})
    notes = (
        ()
        if finished
        else ("The log ends before the results: the simulation was stopped, or still runs.",)
    )
    for row in rows:
        row["tool"] = "LLMServingSim"
    return output(source.name, "llmservingsim-log", rows, notes=notes)


def is_summary(source: Source) -> bool:
    """Say whether this is ``summary.txt``."""
    return any(_HEADER.match(line.strip()) for line in source.head_lines[:5])


def read_summary(source: Source) -> Output:
    """Read the statistics of vLLM and the simulator as pairs, and check the differences stated."""
    rows: list[dict[str, Any]] = []
    unlike = []
    for number, line in enumerate(source.lines(), start=1):
        match = _COMPARED.fullmatch(line.strip())
        if match is None:
            continue
        name, statistic, measured, predicted, stated = match.groups()
        values = (_number(measured), _number(predicted))
        if None in values:
            raise source.error(
                f"two numbers expected, got {measured!r} and {predicted!r}.", line=number
            )
        sides = dict(zip(("measured", "predicted"), values, strict=True))
        rows.append(
            {
                "tool": "LLMServingSim",
                "level": "request",
                "quantity": _QUANTITY[name],
                "unit": "ms",
                "statistic": statistic.lower(),
                **sides,
            }
        )
        if not _same(values[0], values[1], float(stated)):
            unlike.append(f"{name} {statistic}")
    notes = []
    if unlike:
        notes.append(f"The difference stated does not follow from the values: {', '.join(unlike)}.")
    return output(source.name, "llmservingsim-summary", rows, notes=notes)


def _same(measured: float | None, predicted: float | None, stated: float) -> bool:
    """Say whether values rounded to 0.1 can have a difference that is rounded to 0.1 %."""
    if not measured or predicted is None or not abs(stated) < 1e9:
        return True
    found = 100 * (predicted - measured) / measured
    return abs(found - stated) <= 0.05 + 100 * 0.05 * (1 + predicted / measured) / measured + 1e-9


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
