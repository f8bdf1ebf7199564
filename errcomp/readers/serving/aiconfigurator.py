"""NVIDIA aiconfigurator: its measured performance, measured serving runs, and its estimates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from errcomp.errors import describe_names
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet, Value, has, other_keys, rows_of, with_repeats

if TYPE_CHECKING:
    import polars as pl


_TOOL = "aiconfigurator"
_MESSAGES = ("op_name", "num_gpus", "message_size")
_SERVING = ("silicon_ttft_ms", "silicon_tpot_ms", "backend", "backend_version")
_ESTIMATE = ("isl", "osl", "ttft", "tpot", "tokens/s/gpu")
#: Names in the footer of a Parquet file, as bytes.
_LOOKED_FOR = (
    *("framework", "version", "device", "system", "kernel_source", "latency", "latency_ms"),
    *("op_name", "num_gpus", "message_size", "nccl_dtype", "allreduce_dtype"),
)
_PARQUET, _TAIL = b"PAR1", 1 << 16
_SIZES = {"half": 2, "float16": 2, "bfloat16": 2, "int8": 1, "fp8": 1, "float": 4, "float32": 4}
_ESTIMATED = (
    Value("ttft", "ms", "ttft"),
    Value("tpot", "ms", "tpot"),
    Value("time", "ms", "request_latency"),
    Value("throughput", "tokens/s", "tokens/s"),
    Value("throughput per GPU", "tokens/s", "tokens/s/gpu"),
    Value("throughput per user", "tokens/s", "tokens/s/user"),
    Value("request throughput", "requests/s", "seq/s"),
)
_KEYS = {"batch_size": "batch", "bs": "batch", "model_path": "model", "backend_version": "version"}


def read(path: AnyPath) -> Output:
    r"""Read tables of aiconfigurator.

    Parameters
    ----------
    path : path
        A table of its measured performance (``gemm_perf``, ``nccl_perf``, …; Parquet, or the CSV of
        the collector), of measured serving runs (``silicon_ttft_ms``), of its estimates (``ttft``,
        ``tpot``, ``tokens/s/gpu``), or a folder or archive of them.

    Returns
    -------
    Output
        Performance: the measured ``time`` of each kernel or collective in ms, with ``version`` (of
        the framework, or of NCCL); ``size_bytes`` from the message size, which the tables have in
        elements. Serving runs: measured ``ttft`` and ``tpot``, with ``version`` and ``date``.
        Estimates: predictions of the same quantities, and throughputs.

    Raises
    ------
    InputError
        A value is not a number, or a column is missing.

    Notes
    -----
    The source of a kernel changes with the version, so it is a part of the stack
    (``stack_kernel_source``). Serving runs are identified only by their configuration, of which the
    table may lack settings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nccl_perf.txt"
    >>> _ = path.write_text(
    ...     "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,"
    ...     "latency\nTRTLLM,2.27.3,H100,all_gather,NCCL,half,8,512,0.009\n")
    >>> read(path).rows.select("collective", "size_bytes", "ranks", "unit", "measured").rows()
    [('all_gather', 1024, 8, 'ms', 0.009)]
    """
    return read_as(path, FORMATS)


def _names(source: Source) -> tuple[str, ...]:
    """Return the columns of a table; for Parquet only those that matter here."""
    if not source.head.startswith(_PARQUET):
        return source.header
    try:
        with source.path.open("rb") as file:
            file.seek(max(0, source.path.stat().st_size - _TAIL))
            tail = file.read()
    except OSError:
        return ()
    return tuple(name for name in _LOOKED_FOR if name.encode() in tail)


def _latency(names: Collection[str]) -> str:
    return next((name for name in ("latency", "latency_ms") if name in names), "")


def _has_messages(names: Collection[str]) -> bool:
    typed = any(name in ("nccl_dtype", "allreduce_dtype") for name in names)
    return has(names, *_MESSAGES) and typed and bool(_latency(names))


def _is_performance(source: Source) -> bool:
    names = _names(source)
    return (
        has(names, "framework", "version", "kernel_source")
        and ("device" in names or "system" in names)
        and bool(_latency(names))
        and not _has_messages(names)
    )


def _sheet(source: Source, needed: Sequence[str]) -> Sheet:
    if not source.head.startswith(_PARQUET):
        return source.sheet(needed)
    import numpy as np
    import polars as pl

    from errcomp.readers.core.sheet import Sheet
    from errcomp.readers.plain import read_frame

    frame, _ = read_frame(source.path, {}, frozenset(), ())
    for name in needed:
        if name not in frame.columns:
            raise source.error(f"missing column {name!r}. Columns: {describe_names(frame.columns)}")
    text = frame.select(pl.all().cast(pl.String).fill_null(""))
    return Sheet(source.name, text, np.arange(1, len(text) + 1))


_tool = ToolFormats(
    _TOOL,
    gives="measurements",
    reference="hardware",
    sample="aiconfigurator 095f58a, 90 shapes of gemm_perf",
)


@_tool.reads(
    "aiconfigurator-performance",
    "<operation>_perf (Parquet, or CSV in .txt)",
    "kernel: time, power (ms, W)",
    _is_performance,
)
def _read_performance(source: Source) -> Rows:
    import polars as pl

    sheet = _sheet(source, ["framework", "version", "kernel_source"])
    latency = _latency(sheet.columns) or "latency"
    keys = {"stack_kernel_source": "kernel_source"}
    keys |= _renamed(sheet, {latency, "kernel_source", "power"})
    rows = rows_of(sheet, _measures(sheet, latency), keys, tool=f"{_TOOL} collector")
    if "op_name" in rows.columns:
        rows = rows.rename({"op_name": "kernel"})
    else:
        kind = next((name for name in sheet.columns if name.endswith("_dtype")), "")
        rows = rows.with_columns(kernel=pl.lit(kind.removesuffix("_dtype") or None))
    return Rows(with_repeats(rows))


def _measures(sheet: Sheet, latency: str) -> list[Value]:
    values = [Value("time", "ms", measured=latency)]
    return [*values, Value("power", "W", measured="power")] if "power" in sheet.columns else values


def _renamed(sheet: Sheet, used: set[str]) -> dict[str, str]:
    """Name the other columns as keys, by the names that errcomp uses, if any."""
    return {_KEYS.get(key, key): column for key, column in other_keys(sheet, used).items()}


@_tool.reads(
    "aiconfigurator-messages",
    "nccl_perf, custom_allreduce_perf (Parquet, or CSV in .txt)",
    "collective: time, power (ms, W)",
    lambda source: _has_messages(_names(source)),
    sample="aiconfigurator 095f58a, nccl_perf by version",
)
def _read_messages(source: Source) -> Rows:
    import polars as pl

    sheet = _sheet(source, _MESSAGES)
    latency = _latency(sheet.columns) or "latency"
    kind = "nccl_dtype" if "nccl_dtype" in sheet.columns else "allreduce_dtype"
    names = {
        "collective": "op_name",
        "ranks": "num_gpus",
        "elements": "message_size",
        "dtype": kind,
    }
    stated = "nccl_version_from_path"
    if stated in sheet.columns:
        names["version"] = stated
    if "kernel_source" in sheet.columns:
        names["stack_kernel_source"] = "kernel_source"
    used = {*names.values(), latency, "version_column", "power"}
    keys = names | {
        key: column for key, column in _renamed(sheet, used).items() if key not in names
    }
    if doubtful := stated in sheet.columns and "version_column" in sheet.columns:
        keys["provenance"] = "version_column"
    rows = rows_of(sheet, _measures(sheet, latency), keys, tool=f"{_TOOL} collector")
    data_type = pl.col("dtype").cast(pl.String)  # a column of numbers in a damaged table
    width = data_type.replace_strict(_SIZES, default=None, return_dtype=pl.Int64)
    elements = pl.col("elements").cast(pl.Int64, strict=False)
    rows = rows.with_columns(size_bytes=elements * width)
    notes = ["The table has message sizes in elements; size_bytes is computed from the data type."]
    if doubtful:
        rows, note = _doubtful(rows)
        notes += note
    return Rows(with_repeats(rows), notes=notes)


def _doubtful(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Mark rows whose two versions disagree, so that they do not count as repeats."""
    import polars as pl

    stated = pl.col("provenance")
    # Null if they agree: a key must not separate equal rows.
    differs = stated.is_not_null() & (stated.cast(pl.String) != pl.col("version").cast(pl.String))
    marked = rows.with_columns(
        provenance=pl.when(differs).then(pl.lit("the table itself says ") + stated.cast(pl.String))
    )
    n = marked["provenance"].is_not_null().sum()
    if not n:
        return marked, []
    return marked, [
        f"In {n} row{'s' * (n > 1)}, the folder and the column 'version' state different versions: "
        "see the key 'provenance'. It is unknown which version is right."
    ]


@_tool.reads(
    "aiconfigurator-serving",
    "silicon_refs.csv",
    "request: ttft, tpot (ms)",
    _SERVING,
    sample="aiconfigurator 095f58a",
    limits="The rows have no id: their configuration identifies them.",
)
def _read_serving(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_SERVING)
    measures = [
        Value("ttft", "ms", measured="silicon_ttft_ms"),
        Value("tpot", "ms", measured="silicon_tpot_ms"),
    ]
    used = {"silicon_ttft_ms", "silicon_tpot_ms", "id", "system", "silicon_data_source"}
    keys = {**_renamed(sheet, used), **({"device": "system"} if "system" in sheet.columns else {})}
    column = "silicon_data_source"
    if column in sheet.columns:
        keys["_source"] = column
    rows = rows_of(sheet, measures, keys, tool="measured servings")
    if column in sheet.columns:
        text = pl.col("_source").cast(pl.String)
        rows = rows.with_columns(
            # Some dates have a time of day, others do not.
            date=text.str.extract(r"measured=([0-9]{4}-[0-9]{2}-[0-9]{2})"),
            concurrency=text.str.extract(r"silicon_concurrency=([0-9]{1,18})\b").cast(pl.Int64),
        ).drop("_source")
    notes = [
        "Times are means over the requests of a serving run. The table may lack some settings, so "
        "rows that look alike may have different configurations. Look at the outliers."
    ]
    return Rows(with_repeats(rows), notes=notes)


@_tool.reads(
    "aiconfigurator-estimates",
    "best_config_topn.csv, pareto.csv",
    "request: ttft, tpot, time, throughput, throughput per GPU, throughput per user, "
    "request throughput (ms, tokens/s, requests/s)",
    _ESTIMATE,
    gives="predictions",
    reference=None,
    sample="",
)
def _read_estimate(source: Source) -> Rows:
    sheet = source.sheet(_ESTIMATE)
    measures = [measure for measure in _ESTIMATED if measure.predicted in sheet.columns]
    used = {measure.predicted for measure in measures} | {"system", "seq/s/gpu"}
    keys = {**_renamed(sheet, used), **({"device": "system"} if "system" in sheet.columns else {})}
    return Rows(rows_of(sheet, measures, keys))


FORMATS = _tool.formats
