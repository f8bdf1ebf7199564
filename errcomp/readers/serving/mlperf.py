"""MLPerf: results of inference and training rounds, and their logs."""

from __future__ import annotations

import re
import statistics
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, has, other_keys, rows_of
from errcomp.readers.core.values import dict_of, loosened, number_at
from errcomp.system.strict_json import loads_text

if TYPE_CHECKING:
    from collections.abc import Iterator


# Logs of MLPerf: the summary that LoadGen writes, and the lines of training runs.

_TITLE = re.compile(r"^\s*MLPerf Results Summary\s*$")
_PAIR = re.compile(r"^\s*([^\s:](?:[^:]*[^\s:])?)\s*:\s*((?:.*\S)?)\s*$")
_PERCENTILE = re.compile(
    r"(?P<p>\d+(?:\.\d+)?)(?:th)? (?:(?P<first>first token )percentile |"
    r"percentile (?P<what>first token |"
    r"time to output token)?)\s*(?:latency )?\(ns\)"
)
_LOOSE = loosened(_PERCENTILE)
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
#: Round v0.6: seconds, key and the rest. Round v0.5: benchmark, seconds, place, key and value.
_SECOND_LINE = re.compile(r":::MLL\s+(\d{1,12}(?:\.\d{1,12})?)\s+(\w+):\s*(\{.*\})")
_FIRST_LINE = re.compile(
    r":::MLPv0\.\d+\.\d+\s+(\w+)\s+(\d{1,12}(?:\.\d{1,12})?)\s+\([^)]*\)\s+(\w+)(?::\s*(.*\S))?"
)
_DETAIL = re.compile(r'"namespace": "mlperf::logging"|^"pid": \d+, "tid": \d+, "ts": \d+ns :')


def is_summary(source: Source) -> bool:
    """Say whether this is mlperf_log_summary.txt."""
    return any(_TITLE.match(line) for line in source.head_lines)


def _rows(
    source: Source, run: str, stated: dict[str, str], pairs: list[tuple[int, str, str]]
) -> list[dict[str, Any]]:
    """Return the rows of one summary; repeated values are given once."""
    valid = stated.get("Result is")
    keys = {
        "tool": "MLPerf LoadGen",
        "run": run,
        "sut": stated.get("SUT name"),
        "scenario": stated.get("Scenario", "").replace(" ", "") or None,
        "mode": stated.get("Mode"),
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
        elif kind is None and _LOOSE.fullmatch(name):
            raise source.error(f"{name!r}: not a valid percentile. Copy the file again.", line=line)
    return list(rows.values())


def _kind(name: str) -> dict[str, Any] | None:
    """Return level, quantity, unit and statistic of a line."""
    if unit := _RATES.get(name):
        return {"level": "system", "quantity": "throughput", "unit": unit, "statistic": name}
    if match := _PERCENTILE.fullmatch(name):
        subject = f"{match['first'] or ''}{match['what'] or ''}"
        statistic = f"p{float(match['p']):g}"
    elif match := _WORD.fullmatch(name):
        subject = f"{match.group(2) or ''}{match.group(3)}"
        statistic = match.group(1).lower()
    else:
        return None
    lower = subject.lower()
    quantity = "ttft" if "first" in lower else "tpot" if "output" in lower else "time"
    return {"level": "request", "quantity": quantity, "unit": "ns", "statistic": statistic}


def is_detail(source: Source) -> bool:
    """Say whether this is mlperf_log_detail.txt, which LoadGen writes with its summary."""
    return any(_DETAIL.search(line) for line in source.head_lines)


def is_training(source: Source) -> bool:
    """Say whether this is the log of an MLPerf training run, of any round."""
    lines = (_LINE, _SECOND_LINE, _FIRST_LINE)
    logged = any(line.search(text) for text in source.head_lines for line in lines)
    return logged and not is_detail(source)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _records(source: Source) -> Iterator[dict[str, Any]]:
    """Yield key, value, metadata, time and its unit of each record, in the dialect of each round.

    Times are decimals, so that differences of timestamps in seconds are exact.
    """
    for line, text in enumerate(source.lines(), start=1):
        if match := _LINE.search(text):
            record = _record(source, line, match.group(1))
            at = record.get("time_ms")
            if isinstance(record.get("key"), str):
                yield {**record, "at": Decimal(str(at)) if _is_number(at) else None, "unit": "ms"}
        elif match := _SECOND_LINE.search(text):
            record = _record(source, line, match.group(3))
            yield {**record, "key": match.group(2), "at": Decimal(match.group(1)), "unit": "s"}
        elif match := _FIRST_LINE.search(text):
            model, at, key, value = match.groups()
            yield {"key": "submission_benchmark", "value": model, "at": None, "unit": "s"}
            # The line may continue after the value, which matters only at the end of a run.
            ended = "success" if re.search(r'"success": true', value or "") else "no success"
            about = {"status": ended} if key == "run_stop" and value else {}
            yield {"key": key, "value": value, "at": Decimal(at), "metadata": about, "unit": "s"}


def _record(source: Source, line: int, text: str) -> dict[str, Any]:
    try:
        record = loads_text(text)
    except ValueError as error:
        raise source.error(
            f"not a record of MLLOG ({error}). The file may be incomplete: copy it again.",
            line=line,
        ) from None
    return dict_of(record)


_INFERENCE = ("round", "submitter", "system_name", "bench_def", "scenario", "metric", "unit")
_TRAINING = ("round", "submitter", "accelerators_total", "benchmark", "ttt_min")
_RESULTS = ("Submitter", "Scenario", "Performance_Result")
_OLD_RESULTS = ("Submitter", "Scenario", "Result")
#: Columns with the software stack.
_STACK = {"trt": "stack_trt", "cuda": "stack_cuda", "cudnn": "stack_cudnn", "ngc": "stack_ngc"}
_NAMES = {
    "round": "version",
    "series_id": "series",
    "accelerator": "device",
    "n_accel": "ranks",
    "accelerators_total": "ranks",
    "bench_def": "model",
    "global_batch": "batch",
    "n_success": "n_repeats",
    "throughput_cv": "measured_spread",
}
#: Other results, or results of the whole series: they do not identify a row.
_NOT_KEYS = frozenset(("n_rounds", "n_runs", "src"))
_JSON_KEYS = {
    "version": ("version", "Round", "round"),
    "submitter": ("Submitter", "submitter"),
    "model": ("Model", "MlperfModel", "UsedModel"),
    "scenario": ("Scenario",),
    "system": ("System", "SystemName"),
    "device": ("Accelerator",),
    "ranks": ("a#", "Total Accelerators"),
    "nodes": ("Nodes",),
    "platform": ("Platform",),
    "suite": ("Suite",),
    "division": ("Category", "Division"),
    "availability": ("Availability",),
    "software": ("Software",),
    "power": ("has_power",),
}


def read(path: AnyPath) -> Output:
    r"""Read results and logs of MLPerf.

    Parameters
    ----------
    path : path
        A table of results over rounds (CSV), ``summary_results.json``, ``mlperf_log_summary.txt``
        of LoadGen, a log of a training run (``:::MLLOG``), or a folder or archive of them.

    Returns
    -------
    Output
        Measured ``throughput`` and latencies (``time``, ``ttft``, ``tpot``), with ``version`` (the
        round), ``date``, ``model`` (the benchmark), ``device``, ``scenario``, and ``series`` if
        the table has it: a history. Training: ``time to train`` and ``throughput`` with
        ``measured_spread`` and ``n_repeats``.

    Raises
    ------
    InputError
        A value is not a number, or a log holds no result.

    Notes
    -----
    Results that LoadGen calls invalid have a status. Results carried over from
    an earlier round (``carried_over``) are kept: leave them out of a history. The throughput of
    the scenario Server is a target chosen by the submitter.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mlperf_log_summary.txt"
    >>> _ = path.write_text(
    ...     "MLPerf Results Summary\nScenario : Offline\nMode     : PerformanceOnly\n"
    ...     "Samples per second: 1234.5\nResult is : VALID\n"
    ...     "Mean latency (ns)               : 1200\n")
    >>> read(path).rows.select("quantity", "unit", "measured", "scenario").rows()
    [('throughput', 'samples/s', 1234.5, 'Offline'), ('time', 'ns', 1200.0, 'Offline')]
    """
    return read_as(path, FORMATS)


def _keys(columns: dict[str, str]) -> dict[str, str]:
    names = {**_NAMES, **_STACK}
    return {names.get(key, key): column for key, column in columns.items()}


def _with_carried(rows: Any, notes: list[str]) -> Rows:
    if "carried_over" in rows.columns:
        carried = int((rows["carried_over"] == 1).sum())
        if carried:
            notes.append(
                "Results carried over from an earlier round (carried_over=1), which are not new "
                f"measurements: {carried}."
            )
    return Rows(rows, notes=notes)


def _is_results(source: Source) -> bool:
    names = source.json_names
    return has(names, *_RESULTS) or (has(names, *_OLD_RESULTS) and "Result_Units" in names)


def _result(result: dict[str, Any]) -> dict[str, Any]:
    unit = str(result.get("Performance_Units") or result.get("Result_Units") or "unknown")
    words = unit.lower()
    latency = "latency" in words or "millisec" in words or words.strip("() ") in ("ms", "s", "ns")
    row: dict[str, Any] = {
        "tool": "MLPerf inference",
        "level": "request" if latency else "system",
        "quantity": "time" if latency else "throughput",
        "unit": "ms" if latency and ("ms" in words or "millisec" in words) else words,
        "measured": None,
        "status": None,
    }
    for name, options in _JSON_KEYS.items():
        value = next((result[key] for key in options if result.get(key) not in (None, "")), None)
        row[name] = None if value is None else str(value)
    value = result.get("Performance_Result", result.get("Result"))
    try:
        row["measured"] = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        row["status"] = "no result" if value in (None, "") else f"not a number: {str(value)[:40]}"
    if str(result.get("errors", 0)) not in ("0", "0.0", "", "None"):
        row |= {"status": f"{result['errors']} errors", "measured": None}
    return row


_tool = ToolFormats("MLPerf", gives="measurements", reference="hardware")


@_tool.reads(
    "mlperf-summary",
    "mlperf_log_summary.txt of LoadGen",
    "system, request: throughput, time, ttft, tpot (samples/s, tokens/s, queries/s, ns)",
    is_summary,
    limits="The file does not state the round, the model or the device.",
)
def read_summary(source: Source) -> Rows:
    """Read rates and latencies of a run of LoadGen.

    Raises
    ------
    InputError
        There is none, or a value is not a number.
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
    rows = [row for i, run in enumerate(runs, 1) for row in _rows(source, str(i), *run)]
    unknown = any("Result is" not in stated for stated, _ in runs)
    notes = ["The summary does not state whether the result is valid."] if unknown else []
    return Rows(rows, notes=notes)


_tool.knows(
    "mlperf-detail",
    "mlperf_log_detail.txt of LoadGen",
    is_detail,
    "mlperf_log_summary.txt holds the same results.",
    part_of="mlperf-summary",
)


@_tool.reads(
    "mlperf-results",
    "summary_results.json",
    "system, request: throughput, time (samples/s, tokens/s, queries/s, ms, unknown)",
    _is_results,
)
def _read_results(source: Source) -> Rows:
    results = source.json()
    if not isinstance(results, list):
        raise source.error("expected a list of results. Give the original summary_results.json.")
    rows = [_result(result) for result in results if isinstance(result, dict)]
    short = len(results) - len(rows)
    return Rows(rows, dropped={"no result": short})


@_tool.reads(
    "mlperf-inference-table",
    "inference results over rounds (CSV)",
    "system, request: throughput, time, samples per query (samples/s, queries/s, "
    "tokens/s, ms, samples)",
    (*_INFERENCE, "value"),
    sample="rounds v0.7 to v6.0",
)
def _read_inference(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_INFERENCE)
    keys = _keys(other_keys(sheet, {*_NOT_KEYS, "value", "unit", "metric"}))
    measure = Value("throughput", "", measured="value")
    rows = rows_of(sheet, [measure], keys, tool="MLPerf inference")
    metric = pl.Series("metric", sheet.texts("metric"))
    latency = pl.col("metric").str.contains("latency")
    rows = rows.with_columns(metric, unit=pl.Series(sheet.texts("unit"))).with_columns(
        unit=pl.col("unit").replace(
            {"Samples/s": "samples/s", "Queries/s": "queries/s", "Tokens/s": "tokens/s"}
        ),
        level=pl.when(latency).then(pl.lit("request")).otherwise(pl.lit("system")),
        quantity=pl.when(latency)
        .then(pl.lit("time"))
        .when(pl.col("metric") == "throughput")
        .then(pl.lit("throughput"))
        .otherwise(pl.col("metric").str.replace_all("_", " ")),
        statistic=pl.when(latency).then(pl.col("metric").str.extract(r"^(p\d+|mean|median)")),
    )
    notes = []
    if rows["scenario"].str.to_lowercase().str.contains("server").any():
        notes.append("In the scenario Server, the throughput is a target that the submitter chose.")
    return _with_carried(rows.drop("metric"), notes)


@_tool.reads(
    "mlperf-training-table",
    "training results over rounds (CSV)",
    "model: time to train, throughput (min, samples/s)",
    _TRAINING,
    sample="rounds v1.0 to v5.1",
    limits="Times are kept in minutes; the table does not state what the throughput counts.",
)
def _read_training_table(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_TRAINING)
    measures = [Value("time to train", "min", measured="ttt_min")]
    if "throughput" in sheet.columns:
        measures.append(Value("throughput", "samples/s", measured="throughput"))
    used = {*_NOT_KEYS, "ttt_min", "throughput", "benchmark"}
    keys = {**_keys(other_keys(sheet, used)), "model": "benchmark"}
    rows = rows_of(sheet, measures, keys, tool="MLPerf training")
    rate = pl.col("quantity") == "throughput"
    if "measured_spread" in rows.columns:
        # The spread is from throughputs.
        spread = pl.col("measured_spread").cast(pl.Float64, strict=False)
        rows = rows.with_columns(measured_spread=pl.when(rate).then(spread))
    return _with_carried(rows, [])


@_tool.reads(
    "mlperf-training-log",
    "result_<n>.txt of a training run",
    "model: time to train, throughput (ms, s, samples/s)",
    is_training,
    limits="The throughput is the median of tracked_stats, if the run logs them.",
)
def read_training(source: Source) -> Rows:
    """Read the time to train of a run, and its throughput.

    Raises
    ------
    InputError
        The log has no run, or a line is not a record.
    """
    log: dict[str, Any] = {}
    rates: list[float] = []
    start: Decimal | None = None
    stop: Decimal | None = None
    unit = "ms"
    status: str | None = "the run did not end"
    for record in _records(source):
        key, value, unit = record["key"], record.get("value"), record["unit"]
        about = dict_of(record.get("metadata"))
        if key == "run_start" and start is None:
            start = record["at"]
        elif key == "run_stop":
            stop = record["at"]
            ended = str(about.get("status", "success"))
            status = None if ended == "success" else f"the run ended with {ended}"
        elif key == "tracked_stats" and isinstance(value, dict):
            rates += [v for n, v in value.items() if n == "throughput" and _is_number(v)]
        else:
            log.setdefault(key, value)
    if start is None:
        raise source.error("no run_start. The log may be incomplete.")
    took = None if stop is None else float(stop - start)
    names = {
        "model": "submission_benchmark",
        "device": "submission_platform",
        "submitter": "submission_org",
        "batch": "global_batch_size",
    }
    keys = {name: None if log.get(key) is None else str(log[key]) for name, key in names.items()}
    common = {"tool": "MLPerf training", "level": "model", "run": "1", **keys, "status": status}
    kind = {"quantity": "time to train", "unit": unit}
    rows = [{**common, **kind, "measured": None if status else took}]
    if rates:
        rate = {"quantity": "throughput", "unit": "samples/s", "status": None}
        rows.append({**common, **rate, "measured": statistics.median(rates)})
    return Rows(rows)


FORMATS = _tool.formats
