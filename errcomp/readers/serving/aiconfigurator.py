"""NVIDIA aiconfigurator: its measured tables, measured servings, and its estimates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from errcomp.errors import describe_names
from errcomp.readers.core.keys import has, other_keys
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.core.wide import Value, rows_of, with_repeats

if TYPE_CHECKING:
    import polars as pl

    from errcomp.readers.core.sheet import Sheet

__all__ = ["FORMATS", "read"]

_TOOL = "aiconfigurator"
_MESSAGES = ("op_name", "num_gpus", "message_size")
_SERVING = ("silicon_ttft_ms", "silicon_tpot_ms", "backend", "backend_version")
_ESTIMATE = ("isl", "osl", "ttft", "tpot", "tokens/s/gpu")
#: Names that a Parquet file has at its end, as they stand there.
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


def read(path: str | PathLike[str]) -> Output:
    r"""Read tables of aiconfigurator.

    Parameters
    ----------
    path : path
        A table of its measured performance (``gemm_perf``, ``nccl_perf``, …; Parquet, or the CSV
        of the collector), of measured servings (``silicon_ttft_ms``), of its estimates (``ttft``,
        ``tpot``, ``tokens/s/gpu``), or a folder or archive of them.

    Returns
    -------
    Output
        Performance: the measured ``time`` of each kernel or collective in ms, with ``version``
        (of the framework, or of NCCL); ``size_bytes`` from the message size, which the tables
        have in elements. Servings: measured ``ttft`` and ``tpot``, with ``version`` and ``date``.
        Estimates: predictions of the same, and throughputs.

    Raises
    ------
    InputError
        A value is no number, or a column is missing.

    Notes
    -----
    The source of a kernel is kept as a part of the stack (``stack_kernel_source``): it changes
    with the version. Servings have no key but their configuration, which may not be all of it.

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
    """Return the columns of a table; of Parquet those that are looked for."""
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


def _is_messages(source: Source) -> bool:
    return _has_messages(_names(source))


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


def _read_performance(source: Source) -> Output:
    import polars as pl

    sheet = _sheet(source, ["framework", "version", "kernel_source"])
    latency = _latency(sheet.columns) or "latency"
    keys = {"stack_kernel_source": "kernel_source"}
    keys |= _renamed(sheet, {latency, "kernel_source", *_powers(sheet)})
    rows = rows_of(sheet, f"{_TOOL} collector", "kernel", _measures(sheet, latency), keys)
    if "op_name" in rows.columns:
        rows = rows.rename({"op_name": "kernel"})
    else:
        kind = next((name for name in sheet.columns if name.endswith("_dtype")), "")
        rows = rows.with_columns(kernel=pl.lit(kind.removesuffix("_dtype") or None))
    return output(source.name, "aiconfigurator-performance", with_repeats(rows))


def _powers(sheet: Sheet) -> list[str]:
    return [name for name in ("power",) if name in sheet.columns]


def _measures(sheet: Sheet, latency: str) -> list[Value]:
    found = [Value("time", "ms", measured=latency)]
    return found + [Value("power", "W", measured=name) for name in _powers(sheet)]


def _renamed(sheet: Sheet, used: set[str]) -> dict[str, str]:
    """Name the other columns as keys, by the names of the project where it has one."""
    return {_KEYS.get(key, key): column for key, column in other_keys(sheet, used).items()}


def _read_messages(source: Source) -> Output:
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
    used = {*names.values(), latency, "version_column", *_powers(sheet)}
    keys = names | {
        key: column for key, column in _renamed(sheet, used).items() if key not in names
    }
    if doubtful := stated in sheet.columns and "version_column" in sheet.columns:
        keys["provenance"] = "version_column"
    rows = rows_of(sheet, f"{_TOOL} collector", "collective", _measures(sheet, latency), keys)
    width = pl.col("dtype").replace_strict(_SIZES, default=None, return_dtype=pl.Int64)
    elements = pl.col("elements").cast(pl.Int64, strict=False)
    rows = rows.with_columns(size_bytes=elements * width)
    notes = ["Message sizes are elements in the table; size_bytes is computed from the data type."]
    if doubtful:
        rows, note = _doubtful(rows)
        notes += note
    return output(source.name, "aiconfigurator-messages", with_repeats(rows), notes=notes)


def _doubtful(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Mark rows whose two versions disagree, so that they are no repeats of the others."""
    import polars as pl

    said = pl.col("provenance")
    # Null where they agree: a key must not divide rows that are the same.
    differs = said.is_not_null() & (said.cast(pl.String) != pl.col("version"))
    marked = rows.with_columns(
        provenance=pl.when(differs).then(pl.lit("the table itself says ") + said.cast(pl.String))
    )
    n = marked["provenance"].is_not_null().sum()
    if not n:
        return marked, []
    return marked, [
        f"{n} rows are in the folder of one version while their column version says another (key "
        "provenance): which is right is not known."
    ]


def _is_serving(source: Source) -> bool:
    return has(source.header, *_SERVING)


def _read_serving(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(_SERVING)
    measures = [
        Value("ttft", "ms", measured="silicon_ttft_ms"),
        Value("tpot", "ms", measured="silicon_tpot_ms"),
    ]
    used = {"silicon_ttft_ms", "silicon_tpot_ms", "id", "system", "silicon_data_source"}
    keys = {**_renamed(sheet, used), **({"device": "system"} if "system" in sheet.columns else {})}
    said = "silicon_data_source"
    if said in sheet.columns:
        keys["_source"] = said
    rows = rows_of(sheet, "measured servings", "request", measures, keys)
    if said in sheet.columns:
        text = pl.col("_source").cast(pl.String)
        rows = rows.with_columns(
            # Some have a time of day as well, and some do not.
            date=text.str.extract(r"measured=(\d{4}-\d\d-\d\d)"),
            concurrency=text.str.extract(r"silicon_concurrency=(\d+)").cast(pl.Int64),
        ).drop("_source")
    notes = [
        "Times are means over the requests of a serving run. A configuration may have settings "
        "that are not in the table: judge outliers before using them."
    ]
    return output(source.name, "aiconfigurator-serving", with_repeats(rows), notes=notes)


def _is_estimate(source: Source) -> bool:
    return has(source.header, *_ESTIMATE)


def _read_estimate(source: Source) -> Output:
    sheet = source.sheet(_ESTIMATE)
    measures = [one for one in _ESTIMATED if one.predicted in sheet.columns]
    used = {one.predicted for one in measures} | {"system", "seq/s/gpu"}
    keys = {**_renamed(sheet, used), **({"device": "system"} if "system" in sheet.columns else {})}
    rows = rows_of(sheet, _TOOL, "request", measures, keys)
    return output(source.name, "aiconfigurator-estimates", rows)


FORMATS = (
    Format(
        name="aiconfigurator-performance",
        tool=_TOOL,
        files="<operation>_perf (Parquet, or CSV in .txt)",
        levels=("kernel",),
        quantities=("time", "power"),
        units=("ms", "W"),
        gives="measurements",
        reference="hardware",
        sample="aiconfigurator 095f58a, 90 shapes of gemm_perf",
        recognise=_is_performance,
        read=_read_performance,
    ),
    Format(
        name="aiconfigurator-messages",
        tool=_TOOL,
        files="nccl_perf, custom_allreduce_perf (Parquet, or CSV in .txt)",
        levels=("collective",),
        quantities=("time", "power"),
        units=("ms", "W"),
        gives="measurements",
        reference="hardware",
        sample="aiconfigurator 095f58a, nccl_perf by version",
        recognise=_is_messages,
        read=_read_messages,
    ),
    Format(
        name="aiconfigurator-serving",
        tool=_TOOL,
        files="silicon_refs.csv",
        levels=("request",),
        quantities=("ttft", "tpot"),
        units=("ms",),
        gives="measurements",
        reference="hardware",
        sample="aiconfigurator 095f58a",
        recognise=_is_serving,
        read=_read_serving,
        limits="The rows have no id: what identifies them is their configuration.",
    ),
    Format(
        name="aiconfigurator-estimates",
        tool=_TOOL,
        files="best_config_topn.csv, pareto.csv",
        levels=("request",),
        quantities=(
            "ttft",
            "tpot",
            "time",
            "throughput",
            "throughput per GPU",
            "throughput per user",
            "request throughput",
        ),
        units=("ms", "tokens/s", "requests/s"),
        gives="predictions",
        sample="",
        recognise=_is_estimate,
        read=_read_estimate,
    ),
)
