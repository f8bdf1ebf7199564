"""What the microbenchmarks of Accel-Sim's tuner print, and the power report of AccelWattch."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers._strict import is_number, number
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source

__all__ = ["is_benchmarks", "is_power_log", "read_benchmarks", "read_power_log"]

_RUNNING = re.compile(r"^running (?:\./)?(\S+) microbenchmark")
_RULE = re.compile(r"^\s*/{10,}\s*$")
_DEVICE = re.compile(r'^\s*Device(?: 0)?\s*:\s*"([^"]+?)(?: sm_[\d.]+)?"')
_VALUE = re.compile(
    r"^\s*([A-Za-z][\w ./-]*?)\s*=\s*([-+\d.eE]+)\s*(?:\(([^)]*)\)|(cycles|clk)\b)?"
)
_UNITS = {"clk": "cycles", "cycles": "cycles"}
#: More cycles than a GPU does in ten minutes: an overflow of a difference of clock counters.
_TOO_MANY = 1e12
_POWER_LINE = re.compile(
    r"^\s*(kernel_name|kernel_launch_uid|kernel_avg_power|kernel_max_power|kernel_min_power|"
    r"gpu_tot_avg_power)\s*=\s*(.*?)\s*$"
)
_POWERS = {
    "kernel_avg_power": "power",
    "kernel_max_power": "maximum power",
    "kernel_min_power": "minimum power",
}


def is_benchmarks(source: Source) -> bool:
    """Say whether this is the output of the microbenchmarks."""
    return any(_RUNNING.match(line) for line in source.head_lines)


def read_benchmarks(source: Source) -> Output:
    """Read latencies, bandwidths and cycles of the microbenchmarks.

    Raises
    ------
    InputError
        There is none.
    """
    rows: list[dict[str, Any]] = []
    device: str | None = None
    benchmark: str | None = None
    bad: set[str] = set()
    for text in source.lines():
        if match := _RUNNING.match(text):
            benchmark = match.group(1)
        elif match := _DEVICE.match(text):
            device = device or match.group(1)
        elif benchmark and not _RULE.match(text) and not text.startswith("-"):
            rows += _values(text, benchmark, bad)
    for row in rows:
        row["device"] = device
        if row["kernel"] in bad:
            row["status"] = "implausible: a clock counter overflowed"
            row["measured"] = None
    notes = []
    if device:
        notes.append(f"{device} is the first device that the file lists: they ran on that.")
    if bad:
        notes.append(f"{', '.join(sorted(bad))}: more than 10^12 cycles, which no run takes.")
    return output(source.name, "accel-sim-microbenchmarks", rows, notes=notes)


def _values(text: str, benchmark: str, bad: set[str]) -> list[dict[str, Any]]:
    match = _VALUE.match(text)
    if match is None or not is_number(match.group(2)):
        return []
    label, value = " ".join(match.group(1).split()), float(match.group(2))
    written = (match.group(3) or match.group(4) or "").strip()
    unit = _UNITS.get(written.lower(), written)
    if label.lower() == "total clk number":
        quantity, unit = "time", "cycles"
        if value > _TOO_MANY:
            bad.add(benchmark)
    else:
        quantity = _quantity(label.lower(), unit.lower())
    if not unit or not quantity:
        return []
    return [
        {
            "tool": "Accel-Sim microbenchmarks",
            "level": "kernel",
            "quantity": quantity,
            "unit": unit,
            "measured": value,
            "kernel": benchmark,
            "label": label,
        }
    ]


def _quantity(label: str, unit: str) -> str:
    """Say what a line is about; empty for a limit by theory, a version, a share, ..."""
    if "theor" in label:
        return ""
    if "latency" in label:
        return "latency" if unit == "cycles" else ""
    if "byte" in unit or unit.startswith(("gb/s", "mb/s", "tb/s")):
        return "bandwidth"
    return "throughput" if "/clk" in unit else ""


def is_power_log(source: Source) -> bool:
    """Say whether this is a power report of AccelWattch (or GPUWattch)."""
    found = {match.group(1) for line in source.head_lines if (match := _POWER_LINE.match(line))}
    return {"kernel_name", "kernel_avg_power"} <= found


def read_power_log(source: Source) -> Output:
    """Read the power of each launch of a kernel.

    Raises
    ------
    InputError
        There is none, or a power is no number.
    """
    rows: list[dict[str, Any]] = []
    kernel, launch = None, None
    for line, text in enumerate(source.lines(), start=1):
        match = _POWER_LINE.match(text)
        if match is None:
            continue
        name, value = match.groups()
        if name == "kernel_name":
            kernel, launch = value, None
        elif name == "kernel_launch_uid":
            launch = value
        elif name in _POWERS:
            try:
                power = number(value)
            except ValueError:
                raise source.error(
                    f"{name} must be a number, got {value[:40]!r}. The file may be damaged: copy "
                    "it again.",
                    line=line,
                ) from None
            keys = {"run": "1", "kernel": kernel, "launch": launch}
            kind = {"level": "kernel", "quantity": _POWERS[name], "unit": "W", "predicted": power}
            rows.append({"tool": "AccelWattch", **keys, **kind})
    return output(source.name, "accel-sim-power-log", rows)
