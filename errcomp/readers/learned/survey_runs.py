"""Figures behind the survey's tables, derived from the outputs of the tools it ran."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.collectives import astra_sim
from errcomp.readers.core.registry import read_source
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import amount
from errcomp.readers.serving import vidur

__all__ = ["QUANTILE_RULES", "RUN_COLUMNS", "read_runs", "read_text"]

RUN_COLUMNS = ("tool", "run", "quantity", "statistic", "value", "unit")

#: Every rule that numpy.quantile knows, its default first (nine of them are in Hyndman and Fan).
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

#: What the survey calls the quantities and keys of requests.
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
#: A log in which the systems finish twice is read as runs x#1 and x#2.
_AGAIN = re.compile(r"#\d+$")
_Line = tuple[str, ...]
_Table = Mapping[str, list[float]]


def read_runs(tools: Path) -> list[_Line]:
    """Summarise the outputs of VIDUR, ASTRA-sim and Timeloop; no row of theirs is kept.

    Parameters
    ----------
    tools : Path
        Folder with ``vidur/{vllm,sarathi}/request_metrics.csv``,
        ``astra-sim/survey_astra_sim_results.json`` and
        ``timeloop/eyeriss_like/timeloop-mapper.stats.txt``.

    Returns
    -------
    list of tuple of str
        In the order of `RUN_COLUMNS`; numbers with 12 significant digits.

    Raises
    ------
    InputError
        A file is missing or is not what it should be.
    """
    requests = {
        name: _read_requests(tools / "vidur" / name / "request_metrics.csv")
        for name in ("vllm", "sarathi")
    }
    try:
        served = _vidur(requests)
    except (OverflowError, ZeroDivisionError) as error:
        raise InputError(
            f"{tools / 'vidur'}: the latencies are all 0, or too large to be added up. Copy the "
            "files again."
        ) from error
    return [
        *served,
        *_astrasim(tools / "astra-sim" / "survey_astra_sim_results.json"),
        *_timeloop(tools / "timeloop" / "eyeriss_like" / "timeloop-mapper.stats.txt"),
    ]


def read_text(path: Path) -> str:
    """Read a file of the source."""
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
        if name in rows.columns:  # A key: it stands beside every quantity of its request.
            found = rows.filter(rows["quantity"] == _VIDUR["E2E latency"])[name]
        else:
            part = rows.filter(rows["quantity"] == name)
            failed = part.filter(part["status"].is_not_null())
            if len(failed):
                request, status = failed.row(0, named=True)["request"], failed["status"][0]
                raise InputError(f"{path}: {name} of request {request}: {status}. Copy it again.")
            found = part["predicted"]
        if not found.dtype.is_numeric() or found.null_count() or not len(found):
            raise InputError(f"{path}: every request must have a number of {name}. Copy it again.")
        table[name] = [float(value) for value in found.to_list()]
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
    # The schedulers were not given the same load: the requests that both served are the first ones.
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
            raise InputError(f"{path}: a log, of which no run has a name.")
    except InputError as error:
        raise InputError(
            f"{path}: not the survey's collection of ASTRA-sim logs ({error}). Copy it again."
        ) from error
    names = [_AGAIN.sub("", run) for run in rows["run"].to_list()]
    found: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    several = {_AGAIN.sub("", run) for run in rows["run"].to_list() if _AGAIN.search(run)}
    for name, quantity, value in zip(names, rows["quantity"], rows["predicted"], strict=True):
        if value is not None:
            found[name].setdefault(quantity, []).append(value)
    lines: list[_Line] = []
    for run, columns in found.items():
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
        found = re.search(pattern, text, re.MULTILINE)
        if found is None:
            raise InputError(f"{path}: no line like {pattern!r}: not a Timeloop stats file")
        lines.append(
            _line("Timeloop", run, quantity, "total", amount(str(path), quantity, found[1]), unit)
        )
    _, _, shares = text.partition("fJ/Compute")
    parts = re.findall(r"^ +(\w+) += (\S+)$", shares, re.MULTILINE)
    if not parts:
        raise InputError(f"{path}: nothing below fJ/Compute: the file was cut off. Copy it again.")
    for name, value in parts:
        lines.append(
            _line("Timeloop", run, "energy per MAC", name, amount(str(path), name, value), "fJ")
        )
    return lines


def _quantile(ordered: np.ndarray[tuple[int, ...], np.dtype[np.float64]], rule: str) -> float:
    return float(np.quantile(ordered, 0.99, method=rule))  # type: ignore[call-overload]  # a str


def _mean(values: Sequence[float]) -> float:
    # fsum does not depend on the order or the width of vector instructions: same bytes everywhere.
    return math.fsum(values) / len(values)


def _line(tool: str, run: str, quantity: str, statistic: str, value: float, unit: str) -> _Line:
    return (tool, run, quantity, statistic, f"{value:.12g}", unit)
