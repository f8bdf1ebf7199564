"""Accel-Sim and AccelWattch: the simulator's log, and tables of its scripts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import MISSING, Value, has, other_keys, rows_of
from errcomp.readers.core.values import DAMAGED, number_at
from errcomp.readers.simulators.gpgpu_sim import is_accel_sim, is_log, read_log
from errcomp.system.strict_json import is_number

# The output of the microbenchmarks of Accel-Sim's tuner, and the power report of AccelWattch.

_RUNNING = re.compile(r"^running (?:\./)?(\S+) microbenchmark")
_RULE = re.compile(r"^\s*/{10,}\s*$")
_DEVICE = re.compile(r'^\s*Device(?: 0)?\s*:\s*"([^"]+?)(?: sm_[\d.]+)?"')
_VALUE = re.compile(
    r"^\s*([A-Za-z](?:[\w ./-]*[\w./-])?)\s*=\s*([-+\d.eE]+)(?=[\s(]|cycles|clk|$)\s*"
    r"(?:\(([^)]*)\)|(cycles|clk)\b)?"
)
_UNITS = {"clk": "cycles", "cycles": "cycles"}
#: More cycles than a GPU executes in ten minutes: the difference of clock counters overflowed.
_TOO_MANY = 1e12
_POWER_LINE = re.compile(
    r"^\s*(kernel_name|kernel_launch_uid|kernel_avg_power|kernel_max_power|kernel_min_power|"
    r"gpu_tot_avg_power)\s*=\s*((?:.*\S)?)\s*$"
)
_POWERS = {
    "kernel_avg_power": "power",
    "kernel_max_power": "maximum power",
    "kernel_min_power": "minimum power",
}


#: A value with a unit, whatever stands in its place.
_ANY_VALUE = re.compile(
    r"^\s*([A-Za-z](?:[\w ./-]*[\w./-])?)\s*=\s*([^\s(]+)\s*"
    r"(?:(\([^)/]*/[^)]*\)|\(?(?:cycles|clk)\b)|$)"
)


def _is_damaged(text: str) -> bool:
    match = _ANY_VALUE.match(text)
    if match is None or is_number(match[2]):
        return False
    label = match[1].lower()
    known = label == "total clk number" or any(w in label for w in ("latency", "bandwidth"))
    return known or bool(match[3])


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
            "quantity": quantity,
            "unit": unit,
            "measured": value,
            "kernel": benchmark,
            "label": label,
        }
    ]


def _quantity(label: str, unit: str) -> str:
    """Return the quantity of a line; empty for theoretical limits, versions, shares, ..."""
    if "theor" in label:
        return ""
    if "latency" in label:
        return "latency" if unit == "cycles" else ""
    if "byte" in unit or unit.startswith(("gb/s", "mb/s", "tb/s")):
        return "bandwidth"
    return "throughput" if "/clk" in unit else ""


def is_power_log(source: Source) -> bool:
    """Say whether this is a power report of AccelWattch (or GPUWattch)."""
    names = {match.group(1) for line in source.head_lines if (match := _POWER_LINE.match(line))}
    return {"kernel_name", "kernel_avg_power"} <= names


# Tables of Accel-Sim's scripts: get_stats.py, plot-correlation.py.

_TABLE_RULE = re.compile(r"-{20,},*$")
_CORRELATION = ("Name", "Hardware", "Simulator", "Sim/HW")
#: Known statistics, which are named by the regular expression that finds them.
_KNOWN = (
    (re.compile(r"gpu_(?:tot_)?sim_cycle"), "time", "cycles"),
    (re.compile(r"gpgpu_simulation_time"), "host time", "s"),
    (re.compile(r"kernel_avg_power|gpu_tot_avg_power"), "power", "W"),
)
_KEYS = (
    (re.compile(r"gpu_tot_sim_insn"), "instructions"),
    (re.compile(r"gpu_(?:tot_)?ipc"), "ipc"),
)
_BUILDS = ("Accel-Sim-build", "GPGPU-Sim-build")
_INSTANCE = re.compile(r"(.+)--(\d+)")


def is_stats(source: Source) -> bool:
    """Say whether this is the output of get_stats.py."""
    lines = [line.strip() for line in source.head_lines if line.strip()]
    rules = [i for i, line in enumerate(lines) if _TABLE_RULE.fullmatch(line)]
    return any(
        len(lines) > i + 2 and lines[i + 2].split(",")[0] in ("APPS", "CFG", "CONFIGS")
        for i in rules
    )


def _cells(source: Source) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(source.lines(), start=1):
        if text.strip():
            try:
                cells = next(csv.reader([text], strict=True))
            except csv.Error as error:
                raise source.error(
                    f"not CSV ({error}). The file may be incomplete: copy it again.", line=line
                ) from None
            yield line, [cell.strip() for cell in cells]


class _Stats:
    """The table of get_stats.py, block by block."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.values: dict[tuple[str, str], dict[str, str]] = {}
        self.lines: dict[tuple[str, str, str], int] = {}
        self.stats: list[str] = []
        self._stat, self._columns, self._by_config = "", [""], False
        self._expect = "rule"

    def take(self, line: int, cells: list[str]) -> None:
        if _TABLE_RULE.fullmatch(cells[0]):
            self._expect = "stat"
        elif self._expect == "stat":
            # A regular expression may contain commas.
            self._stat = ",".join(cells).rstrip(", ")
            self.stats.append(self._stat)
            self._expect = "columns"
        elif self._expect == "columns":
            while len(cells) > 2 and not cells[-1]:
                cells.pop()
            self._by_config, self._columns = cells[0] != "APPS", cells[1:]
            self._expect = "values"
        elif self._expect == "values":
            self._row(line, cells)

    def _row(self, line: int, cells: list[str]) -> None:
        while len(cells) - 1 > len(self._columns) and not cells[-1]:
            cells.pop()
        if len(cells) - 1 != len(self._columns):
            raise self.source.error(
                f"{len(cells) - 1} values, but the header has {len(self._columns)} columns. The "
                "file may be incomplete: copy it again.",
                line=line,
            )
        for column, value in zip(self._columns, cells[1:], strict=True):
            key = (column, cells[0]) if self._by_config else (cells[0], column)
            self.values.setdefault(key, {})[self._stat] = value
            self.lines[*key, self._stat] = line


def _known(stat: str) -> tuple[str, str] | None:
    return next(((name, unit) for pattern, name, unit in _KNOWN if pattern.search(stat)), None)


def _rows(
    table: _Stats,
    app: str,
    config: str,
    values: dict[str, str],
    builds: dict[tuple[str, str], dict[str, str]],
) -> list[dict[str, Any]]:
    name, _, kernel = app.partition("--")
    several = len({other for _, other in table.values}) > 1
    run = f"{name} on {config}" if several else name
    keys: dict[str, Any] = {"run": run, "config": config}
    build = builds.get((name, config), {})
    keys["build"] = next((build[stat] for stat in _BUILDS if stat in build), None)
    whole = kernel in ("", "final_kernel")
    if not whole:
        instance = _INSTANCE.fullmatch(kernel)
        keys["kernel"] = instance.group(1) if instance else kernel
        keys["launch"] = instance.group(2) if instance else None
    for stat, text in values.items():
        for pattern, key in _KEYS:
            if pattern.search(stat) and text.lower() not in MISSING:
                keys[key] = _number(table, app, config, stat, text)
    rows = []
    for stat, text in values.items():
        if not (known := _known(stat)):
            continue
        quantity, unit = known
        level = "kernel" if not whole else "system" if quantity == "host time" else "model"
        value = None if text.lower() in MISSING else _number(table, app, config, stat, text)
        column = "measured" if quantity == "host time" else "predicted"
        rows.append({**keys, "level": level, "quantity": quantity, "unit": unit, column: value})
    return rows


def _number(table: _Stats, app: str, config: str, stat: str, text: str) -> float:
    line = table.lines[app, config, stat]
    return number_at(table.source, f"the value of {app}", text, line)


def is_correlation(source: Source) -> bool:
    """Say whether this is a table that plot-correlation.py writes (.raw.csv)."""
    return any(
        tuple(cell.strip() for cell in line.split(",")) == _CORRELATION
        for line in source.head_lines
    )


def _pair(source: Source, line: int, cells: list[str], title: str) -> dict[str, Any]:
    values = [number_at(source, "a value", cell, line) for cell in cells[1:3]]
    app, _, kernel = cells[0].partition("--")
    instance = _INSTANCE.fullmatch(kernel)
    return {
        "level": "kernel" if kernel else "model",
        "quantity": "compared statistic",
        "unit": "of the statistic",
        "measured": values[0],
        "predicted": values[1],
        "run": app,
        "kernel": (instance.group(1) if instance else kernel) or None,
        "launch": instance.group(2) if instance else None,
        "config": title.partition(" (")[0] or None,
    }


_PAIRS = ("sheet_variant", "kernel", "sim_total_watts", "hw_total_watts")
_MEASURED = ("mean HW_power", "st_dev", "#samples")
_COUNTERS = ("Benchmark", "Kernel", "Elapsed_Cycles")
_SUMMARY = ("app", "config", "cycles", "avg_power_W", "Accel-Sim-build")


def read(path: AnyPath) -> Output:
    r"""Read files of Accel-Sim and AccelWattch.

    Parameters
    ----------
    path : path
        A log (stdout) of ``accel-sim.out``, output of ``get_stats.py``, a table of
        ``plot-correlation.py``, a power report or table of AccelWattch, measured powers or
        counters of its hardware profiler, the output of the tuner's microbenchmarks, or a folder
        or archive of them.

    Returns
    -------
    Output
        Simulated cycles of kernels and runs, with the ``host time`` of the simulator;
        simulated and measured power (``W``), with ``measured_spread`` and ``n_repeats`` if the
        file has them; measured cycles, latencies and bandwidths.

    Raises
    ------
    InputError
        The file is none of these, or its content cannot be used.

    Notes
    -----
    Kernels that did not finish have a status. The sheets of Pascal hold two tables of
    the same kernels (``table``): select one before pairing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "hw_power.csv"
    >>> _ = path.write_text(",mean HW_power,st_dev,var,#samples\ngemm_k1,200.0,2.0,4.0,5\n")
    >>> read(path).rows.select("kernel", "unit", "measured", "measured_spread").rows()
    [('gemm_k1', 'W', 200.0, 0.01)]
    """
    return read_as(path, FORMATS)


def _is_powers(source: Source) -> bool:
    # The names of components are quoted and contain a comma.
    head = next((line for line in source.head_lines if line.strip()), "")
    return has(source.header, "kernel_avg_power") and "IBP" in head and "DRAMP" in head


def _is_regexes(source: Source) -> bool:
    starts = {line.partition(":")[0] for line in source.head_lines if not line.startswith("#")}
    return len(starts & {"collect_aggregate", "collect_abs", "collect_rates"}) >= 2


_TOOL, _PROFILER = "Accel-Sim", "AccelWattch hardware profiler"
_tool = ToolFormats(_TOOL, gives="predictions")
_SAMPLE = "accel-sim-framework 2260456"
_MEASUREMENTS = {"gives": "measurements", "reference": "hardware", "sample": _SAMPLE}


_tool.reads(
    "accel-sim-log",
    "log (stdout)",
    "kernel, model, system: time, host time (cycles, s)",
    lambda source: is_log(source) and is_accel_sim(source),
    limits="errcomp reads only cycles and instructions, not caches, DRAM and network.",
)(read_log)


@_tool.reads(
    "accel-sim-stats",
    "output of get_stats.py",
    "kernel, model, system: time, power, host time (cycles, W, s)",
    is_stats,
    sample="excerpt of accelsim-llm-perf-power",
    limits="Statistics other than cycles, times and powers are left out.",
)
def read_stats(source: Source) -> Rows:
    """Read the output of get_stats.py."""
    table = _Stats(source)
    for line, cells in _cells(source):
        table.take(line, cells)
    rows: list[dict[str, Any]] = []
    builds = {
        (app.partition("--")[0], config): values
        for (app, config), values in table.values.items()
        if app.endswith("--all_kernels")
    }
    for (app, config), values in table.values.items():
        if not app.endswith("--all_kernels"):
            rows += _rows(table, app, config, values, builds)
    sums = any(row["level"] == "kernel" and row.get("launch") is None for row in rows)
    notes = []
    if sums:
        notes.append(
            "Without -K, get_stats.py sums all launches of a kernel, and the file lacks the number "
            "of launches."
        )
    other = [stat for stat in table.stats if not _known(stat) and stat not in _BUILDS]
    left = [stat for stat in other if not any(pattern.search(stat) for pattern, _ in _KEYS)]
    if left:
        notes.append(f"Statistics other than times, energies and powers are left out: {len(left)}.")
    return Rows(rows, notes=notes)


@_tool.reads(
    "accel-sim-correlation",
    "*.raw.csv of plot-correlation.py",
    "kernel, model: compared statistic (of the statistic)",
    is_correlation,
    gives="both",
    reference="hardware",
    limits="Only the file name states which statistic the file compares.",
)
def read_correlation(source: Source) -> Rows:
    """Read pairs of plot-correlation.py: each table has a title line above its header."""
    rows: list[dict[str, Any]] = []
    title, before, short = "", "", 0
    within = False
    for line, text in enumerate(source.lines(), start=1):
        cells = [cell.strip() for cell in text.rsplit(",", 3)]
        if tuple(cells) == _CORRELATION:
            title, within = before, True
        elif not text.strip():
            within = False
        elif within and len(cells) == 4:
            rows.append(_pair(source, line, cells, title))
        else:
            short += within
            before = text.strip()
    note = (
        "Only the file name states which statistic the file compares, and thus its unit. Numbers "
        "are rounded to two decimals."
    )
    return Rows(rows, dropped={"not a name with three numbers": short}, notes=[note])


@_tool.reads(
    "accel-sim-power-pairs",
    "AccelWattch_graphs.xlsx as CSV (Sim_Total, HW_Total)",
    "kernel: power (W)",
    _PAIRS,
    gives="both",
    reference="hardware",
    sample="accel-sim-framework 2260456, extracted",
)
def _read_pairs(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_PAIRS)
    power = Value("power", "W", "sim_total_watts", "hw_total_watts")
    keys = {"variant": "sheet_variant", "kernel": "kernel"}
    used = {*keys.values(), power.predicted, power.measured}
    rows = rows_of(sheet, [power], keys | other_keys(sheet, used), tool="AccelWattch")
    # One GPU has several models of its power, and some of these several tables: each predicts the
    # same kernels again, so that it is a tool of its own.
    parts = pl.col("variant").cast(pl.String).str.splitn("_", 2).struct
    device, model = parts.field("field_0"), parts.field("field_1")
    name = pl.lit("AccelWattch ") + model.str.replace_all("_", " ")
    if "table" in rows.columns:
        table = pl.col("table").cast(pl.String).str.to_lowercase().str.replace_all("_", " ")
        name += pl.when(table.is_null()).then(pl.lit("")).otherwise(pl.lit(", ") + table)
    named = pl.when(model.is_null()).then(pl.lit("AccelWattch")).otherwise(name)
    rows = rows.with_columns(tool=named, device=device)
    return Rows(rows.drop("variant", "table", strict=False))


@_tool.reads(
    "accel-sim-power-table",
    "accelwattch_<config>.csv of gen_sim_power_csv.py",
    "kernel: power (W)",
    _is_powers,
    limits="errcomp reads only the total power, not the power of components.",
)
def _read_powers(source: Source) -> Rows:
    sheet = source.sheet(["kernel_avg_power"])
    power = Value("power", "W", predicted="kernel_avg_power")
    return Rows(rows_of(sheet, [power], {"kernel": sheet.columns[0]}, tool="AccelWattch"))


@_tool.reads(
    "accel-sim-power-log",
    "accelwattch_power_report.log",
    "kernel: power, maximum power, minimum power (W)",
    is_power_log,
    limits="errcomp reads only the total power, not the power of components.",
)
def read_power_log(source: Source) -> Rows:
    """Read the power of each launch of a kernel."""
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
            power = number_at(source, name, value, line, missing=False)
            keys = {"tool": "AccelWattch", "run": "1", "kernel": kernel, "launch": launch}
            rows.append({**keys, "quantity": _POWERS[name], "predicted": power})
    return Rows(rows)


@_tool.reads(
    "accel-sim-hw-power",
    "hw_power_validation_<gpu>.csv",
    "kernel: power (W)",
    _MEASURED,
    **_MEASUREMENTS,
)
def _read_measured(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_MEASURED)
    power = Value("power", "W", measured="mean HW_power")
    rows = rows_of(sheet, [power], {"kernel": sheet.columns[0]}, tool=_PROFILER)
    mean, deviation = sheet.numbers("mean HW_power"), sheet.numbers("st_dev")
    rows = rows.with_columns(
        measured_spread=pl.Series(deviation) / pl.Series(mean),
        n_repeats=pl.Series(sheet.numbers("#samples"), nan_to_null=True).cast(
            pl.Int64, strict=False
        ),
    ).with_columns(pl.col("measured_spread").fill_nan(None))
    note = "The standard deviation in the file was computed with n, as in NumPy, not with n - 1."
    return Rows(rows, notes=[note])


@_tool.reads(
    "accel-sim-hw-counters",
    "hw_perf.csv of the hardware profiler",
    "kernel: time (cycles)",
    _COUNTERS,
    limits="Of the counters, errcomp reads only the elapsed cycles.",
    **_MEASUREMENTS,
)
def _read_counters(source: Source) -> Rows:
    sheet = source.sheet(_COUNTERS)
    cycles = Value("time", "cycles", measured="Elapsed_Cycles")
    keys = {"run": "Benchmark", "kernel": "Kernel"}
    return Rows(rows_of(sheet, [cycles], keys, tool=_PROFILER))


@_tool.reads(
    "accel-sim-microbenchmarks",
    "output of the tuner's GPU_Microbenchmark",
    "kernel: time, latency, bandwidth, throughput (cycles, byte/clk, byte/clk/SM, flop/clk/SM)",
    lambda source: any(_RUNNING.match(line) for line in source.head_lines),
    limits="Suggested configurations are not read.",
    **_MEASUREMENTS,
)
def read_benchmarks(source: Source) -> Rows:
    """Read latencies, bandwidths and cycles of the microbenchmarks."""
    rows: list[dict[str, Any]] = []
    device: str | None = None
    benchmark: str | None = None
    bad: set[str] = set()
    damaged = 0
    for text in source.lines():
        if match := _RUNNING.match(text):
            benchmark = match.group(1)
        elif match := _DEVICE.match(text):
            device = device or match.group(1)
        elif benchmark and not _RULE.match(text) and not text.startswith("-"):
            found = _values(text, benchmark, bad)
            damaged += not found and _is_damaged(text)
            rows += found
    for row in rows:
        row["device"] = device
        if row["kernel"] in bad:
            row["status"] = "implausible: a clock counter overflowed"
            row["measured"] = None
    notes = []
    if device:
        notes.append(f"The benchmarks are read as run on {device}, the first device in the file.")
    if bad:
        notes.append(
            f"{', '.join(sorted(bad))}: more than 10^12 cycles, which is implausible, so these "
            "values are read as missing."
        )
    return Rows(rows, dropped={DAMAGED: damaged}, notes=notes)


@_tool.reads(
    "accel-sim-summary",
    "summary.csv of a run with power",
    "model, system: time, power, maximum power, host time (cycles, W, s)",
    _SUMMARY,
    sample="accelsim-llm-perf-power 9bbb9d0",
)
def _read_summary(source: Source) -> Rows:
    sheet = source.sheet(_SUMMARY)
    measures = [
        Value("time", "cycles", "cycles"),
        Value("power", "W", "avg_power_W"),
        Value("maximum power", "W", "max_power_W"),
        Value("host time", "s", measured="sim_time_s", fixed={"level": "system"}),
    ]
    measures = [value for value in measures if (value.predicted or value.measured) in sheet.columns]
    used = {value.predicted or value.measured for value in measures}
    keys = {"run": "app", "config": "config", **other_keys(sheet, {*used, "app", "config"})}
    return Rows(rows_of(sheet, measures, keys, level="model"))


_tool.knows(
    "accel-sim-regexes",
    "statistics of get_stats.py (example_stats.yml)",
    _is_regexes,
    "The file holds the regular expressions that find statistics, not their values.",
    sample=_SAMPLE,
)

FORMATS = _tool.formats
