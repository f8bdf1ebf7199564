"""Accel-Sim and AccelWattch: the simulator's log, and tables of the scripts around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from errcomp.readers.core.keys import has, other_keys
from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.wide import Value, rows_of
from errcomp.readers.simulators.accel_sim.stats import (
    is_correlation,
    is_stats,
    read_correlation,
    read_stats,
)
from errcomp.readers.simulators.gpgpu_log import is_accel_sim, is_log, read_log
from errcomp.system.strict_json import is_number, number

if TYPE_CHECKING:
    from os import PathLike

    from errcomp.readers.core.source import Source

__all__ = ["FORMATS", "read"]


# What the microbenchmarks of Accel-Sim's tuner print, and the power report of AccelWattch.

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


_PAIRS = ("sheet_variant", "kernel", "sim_total_watts", "hw_total_watts")
_MEASURED = ("mean HW_power", "st_dev", "#samples")
_COUNTERS = ("Benchmark", "Kernel", "Elapsed_Cycles")
_SUMMARY = ("app", "config", "cycles", "avg_power_W", "Accel-Sim-build")


def read(path: str | PathLike[str]) -> Output:
    r"""Read files of Accel-Sim and AccelWattch.

    Parameters
    ----------
    path : path
        A log (stdout) of ``accel-sim.out``, what ``get_stats.py`` printed, a table of
        ``plot-correlation.py``, a power report or table of AccelWattch, measured powers or
        counters of its hardware profiler, the output of the tuner's microbenchmarks, or a folder
        or archive of them.

    Returns
    -------
    Output
        Simulated cycles of kernels and runs, with the ``host time`` that the simulator took;
        simulated and measured power (``W``), with ``measured_spread`` and ``n_repeats`` where the
        file has them; measured cycles, latencies and bandwidths.

    Raises
    ------
    InputError
        The file is none of these, or what it holds cannot be used.

    Notes
    -----
    A kernel that did not finish is a row with a status. The sheets of Pascal hold two tables of
    the same kernels (``table``): choose one before pairing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "hw_power.csv"
    >>> _ = path.write_text(",mean HW_power,st_dev,var,#samples\ngemm_k1,200.0,2.0,4.0,5\n")
    >>> read(path).rows.select("kernel", "unit", "measured", "measured_spread").rows()
    [('gemm_k1', 'W', 200.0, 0.01)]
    """
    return read_as(path, FORMATS)


def _is_log(source: Source) -> bool:
    return is_log(source) and is_accel_sim(source)


def _read_log(source: Source) -> Output:
    return read_log(source, "Accel-Sim", "accel-sim-log")


def _is_pairs(source: Source) -> bool:
    return has(source.header, *_PAIRS)


def _read_pairs(source: Source) -> Output:
    sheet = source.sheet(_PAIRS)
    power = Value("power", "W", "sim_total_watts", "hw_total_watts")
    keys = {"variant": "sheet_variant", "kernel": "kernel"}
    used = {*keys.values(), power.predicted, power.measured}
    rows = rows_of(sheet, "AccelWattch", "kernel", [power], {**keys, **other_keys(sheet, used)})
    notes = []
    if "table" in rows.columns and rows["table"].drop_nulls().n_unique() > 1:
        notes.append(
            "Some variants have several tables of the same kernels (key table): do not mix them."
        )
    return output(source.name, "accel-sim-power-pairs", rows, notes=notes)


def _is_measured(source: Source) -> bool:
    return has(source.header, *_MEASURED)


def _read_measured(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(_MEASURED)
    first = sheet.columns[0]
    rows = rows_of(
        sheet,
        "AccelWattch hardware profiler",
        "kernel",
        [Value("power", "W", measured="mean HW_power")],
        {"kernel": first},
    )
    mean, deviation = sheet.numbers("mean HW_power"), sheet.numbers("st_dev")
    rows = rows.with_columns(
        measured_spread=pl.Series(deviation) / pl.Series(mean),
        n_repeats=pl.Series(sheet.numbers("#samples"), nan_to_null=True).cast(
            pl.Int64, strict=False
        ),
    ).with_columns(pl.col("measured_spread").fill_nan(None))
    note = "The standard deviation is that of numpy (divided by n, not by n - 1)."
    return output(source.name, "accel-sim-hw-power", rows, notes=[note])


def _is_counters(source: Source) -> bool:
    return has(source.header, *_COUNTERS)


def _read_counters(source: Source) -> Output:
    sheet = source.sheet(_COUNTERS)
    rows = rows_of(
        sheet,
        "AccelWattch hardware profiler",
        "kernel",
        [Value("time", "cycles", measured="Elapsed_Cycles")],
        {"run": "Benchmark", "kernel": "Kernel"},
    )
    return output(source.name, "accel-sim-hw-counters", rows)


def _is_powers(source: Source) -> bool:
    # The names of the components are quoted, with a comma in each.
    head = next((line for line in source.head_lines if line.strip()), "")
    return has(source.header, "kernel_avg_power") and "IBP" in head and "DRAMP" in head


def _read_powers(source: Source) -> Output:
    sheet = source.sheet(["kernel_avg_power"])
    rows = rows_of(
        sheet,
        "AccelWattch",
        "kernel",
        [Value("power", "W", predicted="kernel_avg_power")],
        {"kernel": sheet.columns[0]},
    )
    return output(source.name, "accel-sim-power-table", rows)


def _is_summary(source: Source) -> bool:
    return has(source.header, *_SUMMARY)


def _read_summary(source: Source) -> Output:
    sheet = source.sheet(_SUMMARY)
    measures = [
        Value("time", "cycles", "cycles"),
        Value("power", "W", "avg_power_W"),
        Value("maximum power", "W", "max_power_W"),
        Value("host time", "s", measured="sim_time_s", fixed={"level": "system"}),
    ]
    measures = [one for one in measures if (one.predicted or one.measured) in sheet.columns]
    used = {one.predicted or one.measured for one in measures}
    keys = {"run": "app", "config": "config", **other_keys(sheet, {*used, "app", "config"})}
    rows = rows_of(sheet, "Accel-Sim", "model", measures, keys)
    return output(source.name, "accel-sim-summary", rows)


def _is_regexes(source: Source) -> bool:
    starts = {line.partition(":")[0] for line in source.head_lines if not line.startswith("#")}
    return len(starts & {"collect_aggregate", "collect_abs", "collect_rates"}) >= 2


_TOOL = "Accel-Sim"
FORMATS = (
    Format(
        name="accel-sim-log",
        tool=_TOOL,
        files="log (stdout)",
        levels=("kernel", "model", "system"),
        quantities=("time", "host time"),
        units=("cycles", "s"),
        gives="predictions",
        sample="",
        recognise=_is_log,
        read=_read_log,
        limits="Cycles and instructions only; caches, DRAM and network are not read.",
    ),
    Format(
        name="accel-sim-stats",
        tool=_TOOL,
        files="output of get_stats.py",
        levels=("kernel", "model", "system"),
        quantities=("time", "power", "host time"),
        units=("cycles", "W", "s"),
        gives="predictions",
        sample="excerpt of accelsim-llm-perf-power",
        recognise=is_stats,
        read=read_stats,
        limits="Statistics that are no cycles, times or powers are left out.",
    ),
    Format(
        name="accel-sim-correlation",
        tool=_TOOL,
        files="*.raw.csv of plot-correlation.py",
        levels=("kernel", "model"),
        quantities=("compared statistic",),
        units=("of the statistic",),
        gives="both",
        reference="hardware",
        sample="",
        recognise=is_correlation,
        read=read_correlation,
        limits="Which statistic is compared stands in the name of the file only.",
    ),
    Format(
        name="accel-sim-power-pairs",
        tool=_TOOL,
        files="AccelWattch_graphs.xlsx as CSV (Sim_Total, HW_Total)",
        levels=("kernel",),
        quantities=("power",),
        units=("W",),
        gives="both",
        reference="hardware",
        sample="accel-sim-framework 2260456, extracted",
        recognise=_is_pairs,
        read=_read_pairs,
    ),
    Format(
        name="accel-sim-power-table",
        tool=_TOOL,
        files="accelwattch_<config>.csv of gen_sim_power_csv.py",
        levels=("kernel",),
        quantities=("power",),
        units=("W",),
        gives="predictions",
        sample="",
        recognise=_is_powers,
        read=_read_powers,
        limits="The total only, not the power of components.",
    ),
    Format(
        name="accel-sim-power-log",
        tool=_TOOL,
        files="accelwattch_power_report.log",
        levels=("kernel",),
        quantities=("power", "maximum power", "minimum power"),
        units=("W",),
        gives="predictions",
        sample="",
        recognise=is_power_log,
        read=read_power_log,
        limits="The total only, not the power of components.",
    ),
    Format(
        name="accel-sim-hw-power",
        tool=_TOOL,
        files="hw_power_validation_<gpu>.csv",
        levels=("kernel",),
        quantities=("power",),
        units=("W",),
        gives="measurements",
        reference="hardware",
        sample="accel-sim-framework 2260456",
        recognise=_is_measured,
        read=_read_measured,
    ),
    Format(
        name="accel-sim-hw-counters",
        tool=_TOOL,
        files="hw_perf.csv of the hardware profiler",
        levels=("kernel",),
        quantities=("time",),
        units=("cycles",),
        gives="measurements",
        reference="hardware",
        sample="accel-sim-framework 2260456",
        recognise=_is_counters,
        read=_read_counters,
        limits="Of the counters only the elapsed cycles.",
    ),
    Format(
        name="accel-sim-microbenchmarks",
        tool=_TOOL,
        files="output of the tuner's GPU_Microbenchmark",
        levels=("kernel",),
        quantities=("time", "latency", "bandwidth", "throughput"),
        units=("cycles", "byte/clk", "byte/clk/SM", "flop/clk/SM"),
        gives="measurements",
        reference="hardware",
        sample="accel-sim-framework 2260456",
        recognise=is_benchmarks,
        read=read_benchmarks,
        limits="Configurations that it suggests are not read.",
    ),
    Format(
        name="accel-sim-summary",
        tool=_TOOL,
        files="summary.csv of a run with power",
        levels=("model", "system"),
        quantities=("time", "power", "maximum power", "host time"),
        units=("cycles", "W", "s"),
        gives="predictions",
        sample="accelsim-llm-perf-power 9bbb9d0",
        recognise=_is_summary,
        read=_read_summary,
    ),
    no_times(
        "accel-sim-regexes",
        _TOOL,
        "statistics of get_stats.py (example_stats.yml)",
        _is_regexes,
        "It holds the regular expressions that find statistics, not their values.",
        sample="accel-sim-framework 2260456",
    ),
)
