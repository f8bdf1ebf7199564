"""LLMServingSim: simulated requests, the log, and the comparison with vLLM."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from errcomp.readers import _llmservingsim_log as log
from errcomp.readers import _llmservingsim_vllm as vllm
from errcomp.readers._keys import key, keys_of, number_key
from errcomp.readers._no_times import no_times
from errcomp.readers._strict import loads
from errcomp.readers._values import number
from errcomp.readers._wide import Value, long, without
from errcomp.readers.output import Output, output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

if TYPE_CHECKING:
    from errcomp.readers.sheet import Sheet

__all__ = ["FORMATS", "read"]

_TOOL = "LLMServingSim"
_TIMES = {"latency": "time", "TTFT": "ttft", "TPOT": "tpot", "queuing_delay": "queueing delay"}
_KEYS = {
    "request id": "request",
    "instance id": "instance",
    "model": "model",
    "input": "input_tokens",
    "arrival": "start",
}
_SIDES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "latency": "time"}


def read(path: str | PathLike[str]) -> Output:
    r"""Read the output of LLMServingSim and of its benchmark of vLLM.

    Parameters
    ----------
    path : path
        ``sim.csv`` (ns), ``sim.log``, ``summary.txt``, ``requests.jsonl`` and ``timeseries.csv``
        of vLLM (s; ``meta.json`` beside gives model, device and version), tables that have both
        (columns ``sim_ttft_ms`` and ``vllm_ttft_ms``, …), its history of summaries, profiles of
        layers, or a folder or archive of such files.

    Returns
    -------
    Output
        Requests: time (end to end), ttft, tpot, queueing delay, and the mean itl of the simulated
        ones. Simulated values are predictions; vLLM's are measurements, by the benchmark's own
        definitions: ttft and time from the arrival (or, where that is of another clock, from the
        queue), tpot without the first token. Summaries are pairs with the ``statistic`` as a key.

    Raises
    ------
    InputError
        A file is damaged, or nothing there is of LLMServingSim.

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


def _requests(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(["request id", *_TIMES])
    values = [Value(what, "ns", predicted=column) for column, what in _TIMES.items()]
    keys = keys_of(sheet, _KEYS)
    if "ITL" not in sheet.columns:
        frame = long(sheet, values, keys, tool=_TOOL, level="request")
        notes = ("How many tokens a request got is not known: there are no times between them.",)
        return output(source.name, "llmservingsim-requests", frame, notes=notes)
    # The column output counts the input too in some releases; the gaps do not.
    means, tokens = _gaps(source, sheet)
    keys["output_tokens"] = pl.Series(tokens, dtype=pl.Int64)
    frame = long(sheet, values, keys, tool=_TOOL, level="request")
    gaps = pl.DataFrame({**keys, "predicted": pl.Series(means, dtype=pl.Float64)}).with_columns(
        tool=pl.lit(_TOOL),
        level=pl.lit("request"),
        quantity=pl.lit("itl"),
        unit=pl.lit("ns"),
        statistic=pl.lit("mean"),
    )
    frame = pl.concat(
        [frame, gaps.filter(pl.col("predicted").is_not_null())], how="diagonal_relaxed"
    )
    none = (pl.col("quantity") == "tpot") & (pl.col("output_tokens") <= 1)
    frame, dropped = without(frame, none, "tpot of one output token, which has none")
    return output(source.name, "llmservingsim-requests", frame, dropped=dropped)


def _gaps(source: Source, sheet: Sheet) -> tuple[list[float | None], list[int]]:
    """Return the mean time between the tokens of each request, and how many tokens there are."""
    means: list[float | None] = []
    tokens: list[int] = []
    for line, text in zip(sheet.lines.tolist(), sheet.texts("ITL"), strict=True):
        try:
            given = loads(text) if text else []
        except ValueError:
            given = None
        gaps = [number(one) for one in given] if isinstance(given, list) else [None]
        if None in gaps:
            raise source.error(
                f"ITL must be a list of numbers, got {text[:40]!r}. The file may be cut off.",
                line=line,
            )
        means.append(sum(one for one in gaps if one is not None) / len(gaps) if gaps else None)
        tokens.append(len(gaps) + 1)
    return means, tokens


def _sides(source: Source) -> dict[str, str]:
    """Return the quantities of a table that has both sides in ms, by the name in its columns."""
    names = set(source.header)
    return {
        name: what
        for name, what in _SIDES.items()
        if {f"sim_{name}_ms", f"vllm_{name}_ms"} <= names
    }


def _both(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet()
    values = [
        Value(what, "ms", f"sim_{name}_ms", f"vllm_{name}_ms")
        for name, what in _sides(source).items()
    ]
    names = {"hardware": "device", "model": "model", "request_id": "request"}
    names |= {"measured_input_toks": "input_tokens", "measured_output_toks": "output_tokens"}
    keys = keys_of(sheet, names)
    if "output_tokens" in keys:
        keys["output_tokens"] = number_key(sheet, "measured_output_toks", "output_tokens")
    frame = long(sheet, values, keys, tool=_TOOL, level="request")
    notes = []
    for what in ("input", "output"):
        pair = [f"{side}_{what}_toks" for side in ("measured", "sim")]
        if set(pair) <= set(sheet.columns):
            measured, simulated = (number_key(sheet, column) for column in pair)
            unlike = int((measured != simulated).sum())
            if unlike:
                notes.append(f"{unlike} requests have other {what} lengths in the simulation.")
    dropped: tuple[Any, ...] = ()
    if "output_tokens" in keys:
        none = (pl.col("quantity") == "tpot") & (pl.col("output_tokens") <= 1)
        frame, dropped = without(frame, none, "tpot of one output token, which has none")
    return output(source.name, "llmservingsim-pairs", frame, dropped=dropped, notes=notes)


def _is_history(source: Source) -> bool:
    return {"commit", "metric", "vllm_ms", "sim_ms"} <= set(source.header)


def _history(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(["commit", "metric", "vllm_ms", "sim_ms"])
    parts = [text.rpartition(" ") for text in sheet.texts("metric")]
    unknown = [i for i, (name, _, _) in enumerate(parts) if name.lower() not in _SIDES]
    if unknown:
        raise source.error(
            f"metric must be TTFT, TPOT, ITL or Latency and a statistic, got "
            f"{sheet.texts('metric')[unknown[0]][:40]!r}.",
            line=int(sheet.lines[unknown[0]]),
        )
    names = {"commit": "version", "commit_date": "date", "config": "configuration"}
    keys = keys_of(sheet, names)
    keys["version"] = pl.Series(sheet.texts("commit"))  # A commit of digits only is no number.
    keys["statistic"] = pl.Series([statistic.lower() for _, _, statistic in parts])
    keys["what"] = pl.Series([_SIDES[name.lower()] for name, _, _ in parts])
    frame = long(sheet, [Value("time", "ms", "sim_ms", "vllm_ms")], keys, tool=_TOOL)
    frame = frame.with_columns(quantity=pl.col("what"), level=pl.lit("request")).drop("what")
    return output(source.name, "llmservingsim-history", frame)


def _is_layers(source: Source) -> bool:
    return {"layer_name", "kv_cache", "tp_size", "latency(ns)"} <= set(source.header)


def _layers(source: Source) -> Output:
    sheet = source.sheet(["layer_name", "latency(ns)"])
    keys = keys_of(sheet, {"input": "input_tokens", "kv_cache": "kv_cache"})
    keys |= keys_of(sheet, {"tp_size": "tensor_parallel"})
    keys["kernel"] = keys["kernel_class"] = key(sheet, "layer_name")
    values = [Value("time", "ns", measured="latency(ns)")]
    frame = long(sheet, values, keys, tool=_TOOL, level="kernel")
    return output(source.name, "llmservingsim-layers", frame)


FORMATS = (
    Format(
        name="llmservingsim-requests",
        tool=_TOOL,
        files="sim.csv",
        levels=("request",),
        quantities=("time", "ttft", "tpot", "queueing delay", "itl"),
        units=("ns",),
        gives="predictions",
        sample="5daddb2 (2.0, first 20 requests)",
        recognise=_is_requests,
        read=_requests,
        limits="Of the times between tokens the mean of each request. The device is not in the "
        "file; tpot of requests with one output token is left out.",
    ),
    Format(
        name="llmservingsim-vllm-requests",
        tool=_TOOL,
        files="requests.jsonl (vLLM)",
        levels=("request",),
        quantities=("time", "ttft", "tpot", "queueing delay"),
        units=("s",),
        gives="measurements",
        reference="hardware",
        sample="5daddb2 (vLLM 0.19)",
        recognise=vllm.is_requests,
        read=vllm.read_requests,
        limits="tpot of requests with one output token is left out.",
    ),
    no_times(
        "llmservingsim-vllm-meta",
        _TOOL,
        "meta.json (vLLM)",
        vllm.is_meta,
        "Holds the configuration of the benchmark, no times.",
        sample="5daddb2",
        part_of="llmservingsim-vllm-requests",
    ),
    Format(
        name="llmservingsim-vllm-series",
        tool=_TOOL,
        files="timeseries.csv (vLLM)",
        levels=("system",),
        quantities=("prompt throughput", "generation throughput"),
        units=("tokens/s",),
        gives="measurements",
        reference="hardware",
        sample="5daddb2 (vLLM 0.19)",
        recognise=vllm.is_series,
        read=vllm.read_series,
        limits="Requests running and waiting, and the cache, are keys.",
    ),
    Format(
        name="llmservingsim-log",
        tool=_TOOL,
        files="sim.log (stdout)",
        levels=("request", "system"),
        quantities=tuple(
            dict.fromkeys((*_SIDES.values(), *(what for what, _ in log.TOTALS.values())))
        ),
        units=("ns", "ms", "tokens/s", "requests/s"),
        gives="predictions",
        sample="5daddb2 (2.0)",
        recognise=log.is_log,
        read=log.read_log,
        limits="Memory and cache are left out. A run that was stopped has its throughputs over "
        "time, and a note.",
    ),
    Format(
        name="llmservingsim-summary",
        tool=_TOOL,
        files="summary.txt",
        levels=("request",),
        quantities=("time", "ttft", "tpot"),
        units=("ms",),
        gives="both",
        reference="hardware",
        sample="5daddb2",
        recognise=log.is_summary,
        read=log.read_summary,
        limits="Pairs of means and quantiles, not of requests: what cancels between requests is "
        "not in them. Tests printed below the table are left out.",
    ),
    Format(
        name="llmservingsim-pairs",
        tool=_TOOL,
        files="table with sim_*_ms and vllm_*_ms",
        levels=("request",),
        quantities=("time", "ttft", "tpot", "itl"),
        units=("ms",),
        gives="both",
        reference="hardware",
        sample="derived from 5daddb2, no file of the tool",
        recognise=lambda source: bool(_sides(source)),
        read=_both,
        limits="tpot of requests with one output token is left out.",
    ),
    Format(
        name="llmservingsim-history",
        tool=_TOOL,
        files="table of summaries by commit",
        levels=("request",),
        quantities=("time", "ttft", "tpot"),
        units=("ms",),
        gives="both",
        reference="hardware",
        sample="derived from six commits of summary.txt, no file of the tool",
        recognise=_is_history,
        read=_history,
        limits="Means and quantiles, not requests.",
    ),
    Format(
        name="llmservingsim-layers",
        tool=_TOOL,
        files="layers.csv (profile)",
        levels=("kernel",),
        quantities=("time",),
        units=("ns",),
        gives="measurements",
        reference="hardware",
        sample="",
        recognise=_is_layers,
        read=_layers,
        limits="Device and model are in the folder's name, not in the file.",
    ),
)
