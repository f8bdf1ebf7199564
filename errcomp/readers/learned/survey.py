"""The survey's tables, transcribed as CSV, as one row per printed cell."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.collectives import astra_sim
from errcomp.readers.core.registry import read_source
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import amount
from errcomp.readers.learned.survey_text import HEADINGS, STATEMENTS, taxonomy
from errcomp.readers.serving import vidur
from errcomp.system.strict_json import is_number, table

# Figures for the survey's tables, derived from the output of the tools that it ran.

RUN_COLUMNS = ("tool", "run", "quantity", "statistic", "value", "unit")

#: All rules of numpy.quantile, its default first (nine are in Hyndman and Fan).
QUANTILE_RULES = (
    "linear",
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
)

#: The survey's names for quantities and keys of requests.
_VIDUR = {
    "E2E latency": "time",
    "TTFT": "ttft",
    "TPOT": "tpot",
    "prefill tokens": "prefill_tokens",
    "decode tokens": "decode_tokens",
}
_PREEMPTION, _RESTARTS = "preemption time", "restarts"
_ASTRA_SIM = {
    "wall time": "time",
    "exposed communication": "exposed communication",
    "compute time": "compute",
}
#: A log in which the systems finish twice holds the runs x#1 and x#2.
_NUMBERED = re.compile(r"#\d+$")
_Line = tuple[str, ...]
_Table = Mapping[str, list[float]]


def read_runs(tools: Path) -> list[_Line]:
    """Summarise the outputs of VIDUR, ASTRA-sim and Timeloop; none of their rows are kept.

    Parameters
    ----------
    tools : Path
        Folder with ``vidur/{vllm,sarathi}/request_metrics.csv``,
        ``astra-sim/survey_astra_sim_results.json`` and
        ``timeloop/eyeriss_like/timeloop-mapper.stats.txt``.

    Returns
    -------
    list of tuple of str
        Lines with the columns of `RUN_COLUMNS`; numbers with 12 significant digits.

    Raises
    ------
    InputError
        A file is missing or invalid.
    """
    requests = {
        name: _read_requests(tools / "vidur" / name / "request_metrics.csv")
        for name in ("vllm", "sarathi")
    }
    try:
        served = _vidur(requests)
    except (OverflowError, ZeroDivisionError) as error:
        raise InputError(
            f"{tools / 'vidur'}: the latencies are all 0, or too large to sum. Copy the "
            "files again."
        ) from error
    return [
        *served,
        *_astrasim(tools / "astra-sim" / "survey_astra_sim_results.json"),
        *_timeloop(tools / "timeloop" / "eyeriss_like" / "timeloop-mapper.stats.txt"),
    ]


def read_text(path: Path) -> str:
    """Read a text file of the source."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}). Give the folder that holds survey/ and tools/."
        ) from error


def _read_requests(path: Path) -> _Table:
    rows = read_source(_source(path), vidur.FORMATS[:1]).rows
    needed = [*_VIDUR.values(), _PREEMPTION, _RESTARTS]
    table: dict[str, list[float]] = {}
    for name in needed:
        if name in rows.columns:  # A key: it is repeated for every quantity of its request.
            column = rows.filter(rows["quantity"] == _VIDUR["E2E latency"])[name]
        else:
            part = rows.filter(rows["quantity"] == name)
            failed = part.filter(part["status"].is_not_null())
            if len(failed):
                request, status = failed.row(0, named=True)["request"], failed["status"][0]
                raise InputError(f"{path}: {name} of request {request}: {status}. Copy it again.")
            column = part["predicted"]
        if not column.dtype.is_numeric() or column.null_count() or not len(column):
            raise InputError(f"{path}: {name} must be a number for every request. Copy it again.")
        table[name] = [float(value) for value in column.to_list()]
    return table


def _source(path: Path) -> Source:
    if not path.is_file():
        raise InputError(
            f"{path}: cannot be read (no such file). Give the folder that holds survey/ and tools/."
        )
    return Source(path)


def _vidur(runs: Mapping[str, _Table]) -> list[_Line]:
    lines: list[_Line] = []
    for name, requests in runs.items():
        lines += _requests(name, requests, requests)
        latency = np.sort(requests[_VIDUR["E2E latency"]])
        lines += [
            _line("VIDUR", name, "P99 E2E latency", rule, _quantile(latency, rule), "s")
            for rule in QUANTILE_RULES
        ]
    vllm, sarathi = (_mean(table[_VIDUR["E2E latency"]]) for table in runs.values())
    lines += [
        _line("VIDUR", "sarathi below vllm", "E2E latency", f"share of {name}", share, "fraction")
        for name, share in (("vllm", 1 - sarathi / vllm), ("sarathi", vllm / sarathi - 1))
    ]
    # The schedulers had different loads; both served the first requests.
    shared = _shared(runs["vllm"], runs["sarathi"])
    first = {key: values[:shared] for key, values in runs["vllm"].items()}
    lines += _requests(f"vllm, its first {shared} requests", first, runs["sarathi"])
    return lines


def _requests(run: str, table: _Table, other: _Table) -> list[_Line]:
    lines = [_line("VIDUR", run, "requests", "count", len(table[_VIDUR["E2E latency"]]), "count")]
    for quantity, column in _VIDUR.items():
        unit = "tokens" if "tokens" in quantity else "s"
        lines.append(_line("VIDUR", run, quantity, "mean", _mean(table[column]), unit))
    preempted = sum(seconds > 0 for seconds in table[_PREEMPTION])
    lines.append(
        _line("VIDUR", run, "requests with preemption time above 0", "count", preempted, "count")
    )
    restarted = sum(times > 0 for times in table[_RESTARTS])
    lines.append(_line("VIDUR", run, "requests restarted", "count", restarted, "count"))
    if table is not other:
        tokens = [_VIDUR["prefill tokens"], _VIDUR["decode tokens"]]
        same = sum(
            all(table[t][i] == other[t][i] for t in tokens) for i in range(len(table[tokens[0]]))
        )
        lines.append(
            _line("VIDUR", run, "requests as long as those of sarathi", "count", same, "count")
        )
    return lines


def _shared(a: _Table, b: _Table) -> int:
    return min(len(a[_VIDUR["E2E latency"]]), len(b[_VIDUR["E2E latency"]]))


def _astrasim(path: Path) -> list[_Line]:
    try:
        rows = read_source(_source(path), astra_sim.FORMATS).rows
        if "run" not in rows.columns:
            raise InputError(f"{path}: no run in the log has a name.")
    except InputError as error:
        raise InputError(
            f"{path}: not the survey's collection of ASTRA-sim logs ({error}). Copy it again."
        ) from error
    names = [_NUMBERED.sub("", run) for run in rows["run"].to_list()]
    runs: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    several = {_NUMBERED.sub("", run) for run in rows["run"].to_list() if _NUMBERED.search(run)}
    for name, quantity, value in zip(names, rows["quantity"], rows["predicted"], strict=True):
        if value is not None:
            runs[name].setdefault(quantity, []).append(value)
    lines: list[_Line] = []
    for run, columns in runs.items():
        finished = columns.get("time", [])
        lines.append(_line("ASTRA-sim", run, "NPUs finished", "count", len(finished), "count"))
        for quantity, column in _ASTRA_SIM.items():
            if column in columns and finished and run not in several:
                lines += _spread("ASTRA-sim", run, quantity, columns[column], "cycles")
    return lines


def _spread(tool: str, run: str, quantity: str, values: Sequence[float], unit: str) -> list[_Line]:
    return [
        _line(tool, run, quantity, "mean", _mean(values), unit),
        _line(tool, run, quantity, "standard deviation", float(np.std(values)), unit),
    ]


def _timeloop(path: Path) -> list[_Line]:
    run, text = "eyeriss_like, reference output of the example", read_text(path)
    single = {
        ("energy", "uJ"): r"^Energy: (\S+) uJ",
        ("MACs", "count"): r"^Computes = (\d+)",
        ("cycles", "cycles"): r"^Cycles: (\d+)",
        ("utilisation", "%"): r"^Utilization: (\S+)%",
        ("processing elements", "count"): r"Instances\s+: (\d+)",
    }
    lines: list[_Line] = []
    for (quantity, unit), pattern in single.items():
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise InputError(f"{path}: no line like {pattern!r}: not a Timeloop stats file")
        lines.append(
            _line("Timeloop", run, quantity, "total", amount(str(path), quantity, match[1]), unit)
        )
    _, _, shares = text.partition("fJ/Compute")
    parts = re.findall(r"^ +(\w+) += (\S+)$", shares, re.MULTILINE)
    if not parts:
        raise InputError(f"{path}: nothing below fJ/Compute: the file is cut off. Copy it again.")
    for name, value in parts:
        lines.append(
            _line("Timeloop", run, "energy per MAC", name, amount(str(path), name, value), "fJ")
        )
    return lines


def _quantile(ordered: np.ndarray[tuple[int, ...], np.dtype[np.float64]], rule: str) -> float:
    return float(np.quantile(ordered, 0.99, method=rule))  # type: ignore[call-overload]  # a str


def _mean(values: Sequence[float]) -> float:
    # fsum does not depend on the width of vector instructions: same bytes everywhere.
    return math.fsum(values) / len(values)


def _line(tool: str, run: str, quantity: str, statistic: str, value: float, unit: str) -> _Line:
    return (tool, run, quantity, statistic, f"{value:.12g}", unit)


PLATFORM_COLUMNS = ("tool", "platform", "method", "listed")
CELL_COLUMNS = ("table", "where", "edition", "row", "column", "printed", "value", "unit")
_Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of a transcribed table, for splitting it into cells.

    ``rows``: columns that name a row. ``values``: columns with cells → their unit, or a function
    that returns the unit (``""`` for text). ``align``: cells for which the transcription dropped
    printed zeros (6.6 for 6.60): the cells of a column, or of a row, have the same decimals.
    """

    where: str | Callable[[_Row], str]
    rows: tuple[str, ...]
    values: Mapping[str, str | Callable[[_Row], str]]
    align: str = ""
    column: Callable[[_Row, str], str] | None = None


@dataclass(frozen=True, slots=True)
class _Cell:
    table: str
    where: str
    edition: str
    row: str
    column: str
    printed: str
    value: str
    unit: str


#: Source of quantities that the survey itself does not print.
_BY_NEUSIGHT = "published by the NeuSight authors"


def _unit_of_total(row: _Row) -> str:
    return "%" if "%" in row["quantity"] else "count"


def _unit_of_level(row: _Row) -> str:
    return "us" if row["level"].endswith(", us") else "%"


def _section(row: _Row) -> str:
    if row["quantity"].startswith(_BY_NEUSIGHT):
        return "NeuSight (ASPLOS 2025)"
    place = row["where"]
    return f"section {place}" if place[0].isdigit() else place


def _unit_of_ratio(row: _Row) -> str:
    return "%" if "%" in row["printed_meaning"] else "ratio"


def _ratio_name(row: _Row, column: str) -> str:
    return row["printed_meaning"] if column == "printed" else column


#: New names of rows that the transcription names by a quotation.
_RENAMED = {'"50% of modern LLM workloads lack any tool"': "workloads said to lack any tool, %"}

_TOOLS = ("neusight", "astrasim", "vidur", "timeloop", "nnmeter")

#: Files of the transcription, in the order of the survey.
LAYOUTS: Mapping[str, _Layout] = {
    "tools": _Layout("Table 2 and text", ("tool",), {"claimed_accuracy_as_printed": ""}),
    "table3_suite": _Layout("Table 3", ("category",), {"scenarios": "count"}),
    "table4_accuracy": _Layout(
        "Table 4", ("tool",), {"published": "", "survey_result": "", "survey_verdict": ""}
    ),
    "table6_neusight": _Layout(
        "Table 6",
        ("device", "mode"),
        {"claimed_pct": "%", "survey_pct": "%", "survey_verdict": ""},
        align="column",
    ),
    "table7_astrasim": _Layout(
        "Table 7 and section 7.2",
        ("experiment", "system"),
        {"cycles": "cycles", "printed": _unit_of_ratio},
        align="column",
        column=_ratio_name,
    ),
    "table8_vidur": _Layout(
        "Table 8 and section 7.3",
        ("metric",),
        dict.fromkeys(("vllm", "sarathi"), lambda row: row["unit"] or "count"),
        align="row",
    ),
    "table9_coverage": _Layout(
        "Table 9", ("category",), {"scenarios": "count", **dict.fromkeys(_TOOLS, "")}
    ),
    "table9_totals": _Layout(
        "Table 9 and section 7.6",
        ("quantity",),
        dict.fromkeys((*_TOOLS, "suite"), _unit_of_total),
    ),
    "table10_cross_tool": _Layout(
        "Table 10",
        ("tool",),
        {
            "accuracy_as_printed": "",
            "scope": "",
            "portability": "",
            "coverage_of_36": "count",
            "maintenance": "",
        },
    ),
    "table11_12_deployment": _Layout(
        lambda row: f"Table {row['table']}",
        ("tool",),
        dict.fromkeys(
            (
                "docker",
                "time_to_first_output",
                "deterministic",
                "installs",
                "runs",
                "failure_mode",
            ),
            "",
        ),
    ),
    "error_by_level": _Layout(
        lambda row: row["source"].removeprefix("survey ").split(",")[0],
        ("level",),
        {"low_pct": _unit_of_level, "high_pct": _unit_of_level},
    ),
    "text_neusight": _Layout(
        _section, ("quantity",), {"value": lambda row: row["unit"] or "count"}
    ),
    "timeloop_resnet50_conv1": _Layout(
        "section 7.4", ("quantity",), {"value": lambda row: row["unit"] or "count"}
    ),
}


def build(source: Path) -> dict[str, bytes]:
    """Build the derived tables from the transcribed tables and the output of the tools.

    Parameters
    ----------
    source : Path
        A folder with ``survey/*.csv`` and ``tools/{vidur,astra-sim,timeloop}/``.

    Returns
    -------
    dict of str to bytes
        File name → content: a CSV of cells for each table, and ``runs.csv`` with figures derived
        from the output of the tools. The same source gives the same bytes.

    Raises
    ------
    InputError
        A file or a column is missing, or a number cannot be read; the message names file and line.
    """
    contents = {}
    for stem, layout in LAYOUTS.items():
        cells = _aligned(list(_cells(source / "survey" / f"{stem}.csv", layout)), layout.align)
        lines = [[getattr(cell, name) for name in CELL_COLUMNS] for cell in cells]
        contents[f"{stem}.csv"] = _as_csv(CELL_COLUMNS, lines)
    for stem, cells in (("table1_taxonomy", _taxonomy()), ("statements", _statements())):
        lines = [[getattr(cell, name) for name in CELL_COLUMNS] for cell in cells]
        contents[f"{stem}.csv"] = _as_csv(CELL_COLUMNS, lines)
    contents["platforms.csv"] = _as_csv(PLATFORM_COLUMNS, _platforms(source / "survey/tools.csv"))
    contents["runs.csv"] = _as_csv(RUN_COLUMNS, read_runs(source / "tools"))
    return contents


def _taxonomy() -> list[_Cell]:
    return [
        _Cell("table1_taxonomy", "Table 1", "second", method, platform, str(n), str(n), "count")
        for method, platform, n in taxonomy()
    ]


def _statements() -> list[_Cell]:
    return [
        _Cell("statements", where, edition, row, "stated", printed, printed if unit else "", unit)
        for edition, where, row, printed, unit in STATEMENTS
    ]


#: Names of platforms in Table 2, as Table 1 calls them.
_PLATFORMS = {
    **{"NPU": "accelerators", "GPU": "GPU", "edge": "edge", "CPU": "CPU"},
    **dict.fromkeys(("distributed", "GPU cluster", "multi-GPU"), "distributed"),
}
_METHODS = {"simulation": "cycle-accurate"}


def _platforms(path: Path) -> list[_Line]:
    """Return each tool with its platform and type as Table 1 names them, and where it is listed."""
    lines: list[_Line] = []
    for line, row in _rows(path, ("tool", "platform", "method", "survey_table")):
        platform = HEADINGS.get(row["tool"]) or _PLATFORMS.get(row["platform"])
        if platform is None:
            raise InputError(
                f"{path}: line {line}: platform {row['platform'][:40]!r} is not one of "
                f"{', '.join(_PLATFORMS)}. Copy the file again."
            )
        method = _METHODS.get(row["method"], row["method"])
        listed = "Table 2" if "2" in row["survey_table"].split(",") else "text"
        lines.append((row["tool"], platform, method, listed))
    return lines


def _cells(path: Path, layout: _Layout) -> Iterator[_Cell]:
    needed = [*layout.rows, *layout.values]
    for line, row in _rows(path, needed):
        label = ", ".join(row[name] for name in layout.rows if row[name])
        label = _RENAMED.get(label, label)
        where = layout.where if isinstance(layout.where, str) else layout.where(row)
        for name, unit in layout.values.items():
            printed = row[name]
            if not printed:
                continue
            unit_text = unit if isinstance(unit, str) else unit(row)
            if unit_text:
                _check_number(printed, path, line, name)
            yield _Cell(
                table=path.stem,
                where=where,
                edition=_edition(row, label),
                row=label,
                column=layout.column(row, name) if layout.column else _readable(name),
                printed=printed,
                value=printed if unit_text else "",
                unit=unit_text,
            )


def _readable(name: str) -> str:
    return name.removesuffix("_pct").removesuffix("_as_printed").replace("_", " ")


def _edition(row: _Row, label: str) -> str:
    if label.startswith(_BY_NEUSIGHT):
        return "not in the survey"
    return "first" if "first edition" in " ".join(row.values()) else "second"


def _rows(path: Path, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    rows = table(path, read_text(path), needed)
    if not rows:
        raise InputError(f"{path}: a header without rows. Copy the file again.")
    return rows


def _check_number(text: str, path: Path, line: int, column: str) -> None:
    if not (is_number(text) and math.isfinite(float(text))):
        raise InputError(
            f"{path}: line {line}: {column} must be a number, got {text[:40]!r}. Fix the file."
        )


def _aligned(cells: list[_Cell], by: str) -> list[_Cell]:
    """Restore the printed decimals of the numbers in a column (or row)."""
    if not by:
        return cells
    decimals: dict[str, int] = {}
    for cell in cells:
        if cell.value:
            key = getattr(cell, by)
            decimals[key] = max(decimals.get(key, 0), len(cell.printed.partition(".")[2]))
    return [
        replace(cell, printed=f"{float(cell.value):.{decimals[getattr(cell, by)]}f}")
        if cell.value
        else cell
        for cell in cells
    ]


def _as_csv(header: Sequence[str], lines: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue().encode()
