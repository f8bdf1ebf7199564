"""LLMServingSim: simulated requests, the log, and the comparison with vLLM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import (
    Sheet,
    Value,
    as_dropped,
    key,
    keys_of,
    long,
    number_key,
    without,
)
from errcomp.readers.core.values import DAMAGED, digits, loosened, number, whole
from errcomp.system.strict_json import loads_text

if TYPE_CHECKING:
    import polars as pl


# Records of vLLM by LLMServingSim's benchmark: requests, their run, and load over time.

_STAMPS = ("queued_ts", "first_token_ts", "last_token_ts")
#: Requests end within a day: timestamps further apart are from different clocks.
_ONE_CLOCK = 100_000.0
_NAME = re.compile(r"bench-(\d{1,15})")


def is_requests(source: Source) -> bool:
    """Say whether this is ``requests.jsonl``."""
    names = source.json_names
    return all(name in names for name in ("request_id", "output_toks", *_STAMPS[1:]))


def is_meta(source: Source) -> bool:
    """Say whether this is ``meta.json``."""
    names = source.json_names
    return "vllm_version" in names and "engine_kwargs" in names


def _run(source: Source, ending: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the content of ``meta.json`` in the folder, or of the file with the same prefix."""
    name = source.path.name
    beside = source.sibling("meta.json")
    if name.endswith(ending):
        beside = source.sibling(name.removesuffix(ending) + "meta.json") or beside
    if beside is None:
        return {}, ()
    try:
        content = beside.json()
    except InputError as error:
        return {}, (f"Model, device and version are unknown: {error}",)
    if not isinstance(content, dict):
        return {}, (f"Model, device and version are unknown: {beside.name} is not a JSON object.",)
    hardware, engine = content.get("hardware"), content.get("engine_kwargs")
    meta = {
        "model": content.get("model"),
        "version": content.get("vllm_version"),
        "date": content.get("started_at"),
        "device": hardware.get("device_name") if isinstance(hardware, dict) else None,
        "dtype": engine.get("dtype") if isinstance(engine, dict) else None,
    }
    return {name: value for name, value in meta.items() if isinstance(value, str)}, ()


def _stamp(source: Source, line: int, record: dict[str, Any], name: str) -> float | None:
    if record.get(name) is None:
        return None
    value = number(record[name])
    if value is None:
        shown = repr(record[name])[:40]
        raise source.error(f"{name} must be a time in s, got {shown}.", line=line)
    # vLLM leaves unset timestamps at 0.
    return value or None


def _on_other_clock(arrival: float, *stamps: float | None) -> bool:
    return any(stamp is None or abs(arrival - stamp) > _ONE_CLOCK for stamp in stamps)


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin


def _request(value: Any) -> int | str:
    """Return the number of a request, which the simulator uses as well."""
    match = _NAME.fullmatch(str(value))
    return int(match[1]) if match else str(value)


# LLMServingSim's printed output: its log, and the comparison with vLLM.

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TICK = re.compile(
    r"\[(\d+(?:\.\d+)?)s\] Avg prompt throughput: *([\d.]+) tokens/s, "
    r"Avg generation throughput: *([\d.]+) tokens/s"
)
_INSTANCE = re.compile(r"─* *Instance \[(\d+)\] *─*")
_FIGURE = re.compile(r"(Mean|Median|P\d+) (TTFT|TPOT|ITL) \((ms|us|ns|s)\) *: *(\S+)")
_LOOSE = [loosened(one) for one in (_TICK, _FIGURE)]
_LOOSE_INSTANCE = loosened(_INSTANCE)
#: Lines of the results → quantity and unit.
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
#: The same with a damaged statistic or difference.
_LOOSELY_COMPARED = re.compile(r"(TTFT|TPOT|ITL|Latency) \S+ +\S+ +\S+ +\S+%")
_QUANTITY = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "Latency": "time"}
_HEADER = re.compile(r"Metric +vLLM +Sim +Diff%")


def is_log(source: Source) -> bool:
    """Say whether this is the log of a simulation (vLLM's own has throughputs as well)."""
    text = "\n".join(source.head_lines)
    ours = any(mark in text for mark in _OURS)
    return ours and ("Avg prompt throughput" in text or "Total clocks (ns)" in text)


def is_summary(source: Source) -> bool:
    """Say whether this is ``summary.txt``."""
    return any(_HEADER.match(line.strip()) for line in source.head_lines[:5])


def _agrees(measured: float | None, predicted: float | None, stated: float) -> bool:
    """Say whether values rounded to 0.1 agree with a difference rounded to 0.1 %."""
    if not measured or predicted is None or not abs(stated) < 1e9:
        return True
    error = 100 * (predicted - measured) / measured
    return abs(error - stated) <= 0.05 + 100 * 0.05 * (1 + predicted / measured) / measured + 1e-9


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


_TIMES = {"latency": "time", "TTFT": "ttft", "TPOT": "tpot", "queuing_delay": "queueing delay"}
_KEYS = {
    "request id": "request",
    "instance id": "instance",
    "model": "model",
    "input": "input_tokens",
    "arrival": "start",
}
_SIDES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "latency": "time"}


def read(path: AnyPath) -> Output:
    r"""Read the output of LLMServingSim and of its benchmark of vLLM.

    Parameters
    ----------
    path : path
        ``sim.csv`` (ns), ``sim.log``, ``summary.txt``, ``requests.jsonl`` and ``timeseries.csv`` of
        vLLM (s; ``meta.json`` in the folder gives model, device and version), tables that have both
        (columns ``sim_ttft_ms`` and ``vllm_ttft_ms``, …), its history of summaries, profiles of
        layers, or a folder or archive of such files.

    Returns
    -------
    Output
        Requests: end-to-end time, ttft, tpot, queueing delay, and for simulated requests the mean
        itl. Simulated values are predictions; vLLM's are measurements by the benchmark's own
        definitions: ttft and time count from the arrival (or from queueing, if the arrival is on
        another clock), tpot is without the first token. Summaries are pairs with the key
        ``statistic``.

    Raises
    ------
    InputError
        A file is damaged, or no file is LLMServingSim's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sim.csv"
    >>> _ = path.write_text(
    ...     "request id,model,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT\n"
    ...     "0,m,10,3,100,1100,1000,0,400,300\n")
    >>> read(path).rows.select("quantity", "unit", "predicted").rows()[:2]
    [('time', 'ns', 1000.0), ('ttft', 'ns', 400.0)]
    """
    return read_as(path, FORMATS)


def _is_requests(source: Source) -> bool:
    needed = {"request id", "arrival", "end_time", "latency", "queuing_delay", "TTFT", "TPOT"}
    return needed <= set(source.header)


def _gaps(source: Source, sheet: Sheet) -> tuple[list[float | None], list[int]]:
    """Return the mean time between the tokens of each request, and the number of tokens."""
    means: list[float | None] = []
    tokens: list[int] = []
    for line, text in zip(sheet.lines.tolist(), sheet.texts("ITL"), strict=True):
        try:
            given = loads_text(text) if text else []
        except ValueError:
            given = None
        gaps = [number(gap) for gap in given] if isinstance(given, list) else [None]
        if None in gaps:
            raise source.error(
                f"ITL must be a list of numbers, got {text[:40]!r}. The file may be incomplete.",
                line=line,
            )
        means.append(sum(gap for gap in gaps if gap is not None) / len(gaps) if gaps else None)
        tokens.append(len(gaps) + 1)
    return means, tokens


def _sides(source: Source) -> dict[str, str]:
    """Return the quantities of a table with both sides in ms, by the names of its columns."""
    names = set(source.header)
    return {
        name: quantity
        for name, quantity in _SIDES.items()
        if {f"sim_{name}_ms", f"vllm_{name}_ms"} <= names
    }


_tool = ToolFormats(
    "LLMServingSim",
    gives="measurements",
    reference="hardware",
    sample="5daddb2 (vLLM 0.19)",
    limits="tpot of requests with one output token is left out.",
)


@_tool.reads(
    "llmservingsim-requests",
    "sim.csv",
    "request: time, ttft, tpot, queueing delay, itl (ns)",
    _is_requests,
    gives="predictions",
    reference=None,
    sample="5daddb2 (2.0, first 20 requests)",
    limits="errcomp reads the mean of each request's times between tokens. The file does not name "
    "the device; "
    "tpot of requests with one output token is left out.",
)
def _requests(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["request id", *_TIMES])
    values = [Value(quantity, "ns", predicted=column) for column, quantity in _TIMES.items()]
    keys = keys_of(sheet, _KEYS)
    if "ITL" not in sheet.columns:
        frame = long(sheet, values, keys, level="request")
        notes = (
            "The number of tokens of a request is unknown: the file has no times between tokens.",
        )
        return Rows(frame, notes=notes)
    # In some releases, the column output also counts the input; the gaps do not.
    means, tokens = _gaps(source, sheet)
    keys["output_tokens"] = pl.Series(tokens, dtype=pl.Int64)
    frame = long(sheet, values, keys, level="request")
    gaps = pl.DataFrame({**keys, "predicted": pl.Series(means, dtype=pl.Float64)}).with_columns(
        quantity=pl.lit("itl"), statistic=pl.lit("mean")
    )
    frame = pl.concat(
        [frame, gaps.filter(pl.col("predicted").is_not_null())], how="diagonal_relaxed"
    )
    none = (pl.col("quantity") == "tpot") & (pl.col("output_tokens") <= 1)
    frame, dropped = without(
        frame, none, "tpot of requests with one output token, which is undefined"
    )
    return Rows(frame, dropped=dropped)


@_tool.reads(
    "llmservingsim-vllm-requests",
    "requests.jsonl (vLLM)",
    "request: time, ttft, tpot, queueing delay (s)",
    is_requests,
)
def read_requests(source: Source) -> Rows:
    """Read time, ttft, tpot and queueing delay of each request, by the benchmark's definitions."""
    keys, notes = _run(source, "requests.jsonl")
    rows: list[dict[str, Any]] = []
    single = other_clock = 0
    for line, record in source.json_lines():
        if not isinstance(record, dict) or "request_id" not in record:
            raise source.error("a record must be a JSON object with a request_id.", line=line)
        queued, first, last = (_stamp(source, line, record, name) for name in _STAMPS)
        arrival = _stamp(source, line, record, "arrival_time")
        begin = arrival
        if queued is not None and (arrival is None or _on_other_clock(arrival, first, last)):
            begin = queued
            other_clock += arrival is not None
        tokens = number(record.get("output_toks"))
        common = {
            **keys,
            "tool": "vLLM",
            "request": _request(record["request_id"]),
            "input_tokens": whole(record.get("input_toks")),
            "output_tokens": whole(record.get("output_toks")),
        }
        times = {
            "time": _between(begin, last),
            "ttft": _between(begin, first),
            "queueing delay": _between(queued, _stamp(source, line, record, "scheduled_ts")),
        }
        if tokens is not None and tokens > 1:
            decode = _between(first, last)
            times["tpot"] = None if decode is None else decode / (tokens - 1)
        else:
            single += 1
        rows += [
            {
                **common,
                "quantity": quantity,
                "measured": value,
                "status": "not finished" if value is None else None,
            }
            for quantity, value in times.items()
        ]
    if other_clock:
        notes = (
            *notes,
            f"In {other_clock} request{'s' * (other_clock > 1)}, arrival_time is from another "
            "clock than the other timestamps: their arrival is read as the time when they were "
            "queued, as in the benchmark.",
        )
    dropped = as_dropped("tpot of requests with one output token, which is undefined", single)
    return Rows(rows, dropped=dropped, notes=notes)


_tool.knows(
    "llmservingsim-vllm-meta",
    "meta.json (vLLM)",
    is_meta,
    "The file holds the configuration of the benchmark, but no times.",
    sample="5daddb2",
    part_of="llmservingsim-vllm-requests",
)


@_tool.reads(
    "llmservingsim-vllm-series",
    "timeseries.csv (vLLM)",
    "system: prompt throughput, generation throughput (tokens/s)",
    ("t", "prompt_throughput", "gen_throughput", "running", "waiting"),
    limits="The numbers of running and waiting requests, and the cache usage, are read as keys.",
)
def read_series(source: Source) -> Rows:
    """Read the throughputs over time."""
    keys, notes = _run(source, "timeseries.csv")
    sheet = source.sheet(["prompt_throughput", "gen_throughput"])
    values = [
        Value("prompt throughput", "tokens/s", "", "prompt_throughput"),
        Value("generation throughput", "tokens/s", "", "gen_throughput"),
    ]
    names = {"t": "t", "running": "running", "waiting": "waiting", "kv_cache_pct": "kv_cache_pct"}
    of_rows: dict[str, pl.Series] = keys_of(sheet, names)
    return Rows(long(sheet, values, of_rows, tool="vLLM", level="system", **keys), notes=notes)


@_tool.reads(
    "llmservingsim-log",
    "sim.log (stdout)",
    "request, system",
    is_log,
    quantities=tuple(dict.fromkeys((*_SIDES.values(), *(name for name, _ in TOTALS.values())))),
    units=("ns", "ms", "tokens/s", "requests/s"),
    gives="predictions",
    reference=None,
    sample="5daddb2 (2.0)",
    limits="Memory and cache usage are left out. Of a stopped run, errcomp reads only the "
    "throughputs over time, and says so.",
)
def read_log(source: Source) -> Rows:
    """Read the totals, the statistics of the requests, and the throughputs over time."""
    rows: list[dict[str, Any]] = []
    instance = None
    finished, damaged = False, 0
    for raw in source.lines():
        line = _COLOUR.sub("", raw).strip()
        if tick := _TICK.search(line):
            for part, text in zip(("prompt", "generation"), tick.groups()[1:], strict=True):
                fields = {"quantity": f"{part} throughput", "unit": "tokens/s", "t": float(tick[1])}
                rows.append({**fields, "level": "system", "predicted": _number(text)})
        elif header := _INSTANCE.fullmatch(line):
            instance = digits(header[1])
        elif figure := _FIGURE.fullmatch(line):
            statistic, name, unit, text = figure.groups()
            fields = {"quantity": _QUANTITY[name], "unit": unit, "statistic": statistic.lower()}
            value = _number(text)
            rows.append({**fields, "level": "request", "instance": instance, "predicted": value})
        elif (name := line.partition(":")[0].strip()) in TOTALS:
            quantity, unit = TOTALS[name]
            value = _number(line.partition(":")[2].strip())
            finished = finished or quantity == "time"
            rows.append({"quantity": quantity, "unit": unit, "level": "system", "predicted": value})
        else:
            damaged += any(loose.search(line) is not None for loose in _LOOSE)
            damaged += _LOOSE_INSTANCE.fullmatch(line) is not None
    notes = (
        ()
        if finished
        else ("The log ends before the results: the simulation was stopped, or is still running.",)
    )
    return Rows(rows, dropped={DAMAGED: damaged}, notes=notes)


@_tool.reads(
    "llmservingsim-summary",
    "summary.txt",
    "request: time, ttft, tpot (ms)",
    is_summary,
    gives="both",
    sample="5daddb2",
    limits="A pair compares means or quantiles, not single requests, so it hides errors that "
    "cancel between requests. Tests printed below the table are left out.",
)
def read_summary(source: Source) -> Rows:
    """Read the statistics of vLLM and the simulator as pairs, and check the stated differences."""
    rows: list[dict[str, Any]] = []
    unlike, damaged = [], 0
    for line_number, line in enumerate(source.lines(), start=1):
        match = _COMPARED.fullmatch(line.strip())
        if match is None:
            damaged += _LOOSELY_COMPARED.fullmatch(line.strip()) is not None
            continue
        name, statistic, measured, predicted, stated = match.groups()
        values = (_number(measured), _number(predicted))
        if None in values:
            raise source.error(
                f"the measured and the predicted value must be numbers, got {measured!r} and "
                f"{predicted!r}.",
                line=line_number,
            )
        sides = dict(zip(("measured", "predicted"), values, strict=True))
        rows.append(
            {
                "quantity": _QUANTITY[name],
                "statistic": statistic.lower(),
                **sides,
            }
        )
        if not _agrees(values[0], values[1], float(stated)):
            unlike.append(f"{name} {statistic}")
    notes = []
    if unlike:
        notes.append(
            f"The differences that the file states contradict its values: {', '.join(unlike)}."
        )
    return Rows(rows, dropped={DAMAGED: damaged}, notes=notes)


@_tool.reads(
    "llmservingsim-pairs",
    "table with sim_*_ms and vllm_*_ms",
    "request: time, ttft, tpot, itl (ms)",
    lambda source: bool(_sides(source)),
    gives="both",
    sample="derived from 5daddb2, not a file of the tool",
)
def _read_both_sides(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet()
    values = [
        Value(quantity, "ms", f"sim_{name}_ms", f"vllm_{name}_ms")
        for name, quantity in _sides(source).items()
    ]
    names = {"hardware": "device", "model": "model", "request_id": "request"}
    names |= {"measured_input_toks": "input_tokens", "measured_output_toks": "output_tokens"}
    keys = keys_of(sheet, names)
    if "output_tokens" in keys:
        keys["output_tokens"] = number_key(sheet, "measured_output_toks", "output_tokens")
    frame = long(sheet, values, keys, level="request")
    notes = []
    for part in ("input", "output"):
        pair = [f"{side}_{part}_toks" for side in ("measured", "sim")]
        if set(pair) <= set(sheet.columns):
            measured, simulated = (number_key(sheet, column) for column in pair)
            unlike = int((measured != simulated).sum())
            if unlike:
                notes.append(
                    f"Requests with a simulated {part} length unlike the measured one: {unlike}."
                )
    dropped: tuple[Any, ...] = ()
    if "output_tokens" in keys:
        none = (pl.col("quantity") == "tpot") & (pl.col("output_tokens") <= 1)
        frame, dropped = without(
            frame, none, "tpot of requests with one output token, which is undefined"
        )
    return Rows(frame, dropped=dropped, notes=notes)


@_tool.reads(
    "llmservingsim-history",
    "table of summaries by commit",
    "request: time, ttft, tpot (ms)",
    ("commit", "metric", "vllm_ms", "sim_ms"),
    gives="both",
    sample="derived from six commits of summary.txt, not a file of the tool",
    limits="The values are means and quantiles over requests.",
)
def _history(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["commit", "metric", "vllm_ms", "sim_ms"])
    parts = [text.rpartition(" ") for text in sheet.texts("metric")]
    unknown = [i for i, (name, _, _) in enumerate(parts) if name.lower() not in _SIDES]
    if unknown:
        raise source.error(
            "metric must be TTFT, TPOT, ITL or Latency, followed by a statistic, got "
            f"{sheet.texts('metric')[unknown[0]][:40]!r}.",
            line=int(sheet.lines[unknown[0]]),
        )
    names = {"commit": "version", "commit_date": "date", "config": "configuration"}
    keys = keys_of(sheet, names)
    keys["version"] = pl.Series(sheet.texts("commit"))  # A commit of only digits is not a number.
    keys["statistic"] = pl.Series([statistic.lower() for _, _, statistic in parts])
    keys["what"] = pl.Series([_SIDES[name.lower()] for name, _, _ in parts])
    frame = long(sheet, [Value("time", "ms", "sim_ms", "vllm_ms")], keys)
    frame = frame.with_columns(quantity=pl.col("what"), level=pl.lit("request")).drop("what")
    return Rows(frame)


@_tool.reads(
    "llmservingsim-layers",
    "layers.csv (profile)",
    "kernel: time (ns)",
    ("layer_name", "kv_cache", "tp_size", "latency(ns)"),
    sample="",
    limits="The folder's name states device and model; the file does not.",
)
def _layers(source: Source) -> Rows:
    sheet = source.sheet(["layer_name", "latency(ns)"])
    keys = keys_of(sheet, {"input": "input_tokens", "kv_cache": "kv_cache"})
    keys |= keys_of(sheet, {"tp_size": "tensor_parallel"})
    keys["kernel"] = keys["kernel_class"] = key(sheet, "layer_name")
    values = [Value("time", "ns", measured="latency(ns)")]
    return Rows(long(sheet, values, keys, level="kernel"))


FORMATS = _tool.formats
