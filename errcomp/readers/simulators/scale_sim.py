"""SCALE-Sim: its reports with one row per layer, of versions 1, 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet, Value, has, key, keys_of, long

if TYPE_CHECKING:
    import polars as pl


_CYCLES, _PREFETCH = "Total Cycles", "Total Cycles (incl. prefetch)"
_COMPUTE = (
    Value("time", "cycles", predicted=_CYCLES),
    Value("time with prefetch", "cycles", predicted=_PREFETCH),
    Value("stall", "cycles", predicted="Stall Cycles"),
)
#: Version 1: bytes read or written, by memory.
_BYTES = re.compile(r"((?:SRAM|DRAM)_\w+)_bytes")
_COMPUTE_KEYS = {
    "Overall Util %": "overall_util",
    "Mapping Efficiency %": "mapping_efficiency",
    "Compute Util %": "compute_util",
}
_FIRST = (Value("time", "cycles", predicted="Cycles"),)
_FIRST_KEYS = {"% Utilization": "overall_util"}
_TIME = (Value("time", "us", predicted="Time (us)"),)
_OPERATORS = (
    Value("time", "us", predicted="time_us"),
    Value("time with dispatch", "us", predicted="time_with_dispatch_us"),
)


def read(path: AnyPath) -> Output:
    r"""Read the reports of SCALE-Sim.

    Parameters
    ----------
    path : path
        ``COMPUTE_REPORT.csv``, ``BANDWIDTH_REPORT.csv``, ``DETAILED_ACCESS_REPORT.csv``,
        ``TIME_REPORT.csv`` or, of version 1, ``<run>_cycles.csv``, ``<run>_avg_bw.csv``,
        ``<run>_max_bw.csv`` or ``<run>_detail.csv``; or a folder or archive of them.

    Returns
    -------
    Output
        Predictions for each ``layer``, level "kernel": ``time`` and ``stall`` in cycles (version 3
        also ``time with prefetch``, the longest), ``bandwidth`` in words/cycle and ``accesses`` in
        words by ``memory`` (version 1: in bytes), ``time`` in us if a time model was chosen.

    Raises
    ------
    InputError
        A row is cut off, or has text instead of a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "COMPUTE_REPORT.csv"
    >>> _ = path.write_text("LayerID, Total Cycles, Stall Cycles, Overall Util %,\n"
    ...                     "0, 1200, 30, 9,\n")
    >>> read(path).rows.select("kernel", "quantity", "predicted", "unit").rows()
    [('layer 0', 'time', 1200.0, 'cycles'), ('layer 0', 'stall', 30.0, 'cycles')]
    """
    return read_as(path, FORMATS)


def _layers(sheet: Sheet, column: str) -> dict[str, pl.Series]:
    import polars as pl

    layer = key(sheet, column)
    numbered = layer.dtype.is_integer()
    name = pl.lit("layer ") + layer.cast(pl.String) if numbered else layer.cast(pl.String)
    return {"kernel": pl.select(name).to_series(), "layer": layer}


def _frame(
    source: Source, values: Iterable[Value], column: str, keys: Mapping[str, str]
) -> pl.DataFrame:
    sheet = source.sheet((column,))
    columns = {**_layers(sheet, column), **keys_of(sheet, keys)}
    return long(sheet, values, columns, level="kernel")


def _read(source: Source, values: Iterable[Value], column: str, keys: Mapping[str, str]) -> Rows:
    return Rows(_frame(source, values, column, keys))


def _memories(columns: Iterable[str], end: str) -> list[tuple[str, str]]:
    """Return the columns with this ending, and the memory of each."""
    return [
        (column, column.removeprefix("Avg ").removesuffix(end).strip())
        for column in columns
        if column.endswith(end) and ("SRAM" in column or "DRAM" in column)
    ]


def _first_bandwidth_report(source: Source) -> bool:
    names = {name.removeprefix("Max ") for name in source.header}
    layer = {"Conv Layer Num", "Layer"} & names
    return {"IFMAP SRAM Size", "DRAM IFMAP Read BW", "DRAM Filter Read BW"} <= names and bool(layer)


_REPORT = ("LayerID", _CYCLES, "Stall Cycles")
_WORDS_ARE_BYTES = "A word is counted as one byte, as version 1 does."
#: Sample of version 2, whose test has golden traces.
_GOLDEN = "2, golden traces of its test"
_tool = ToolFormats("SCALE-Sim", gives="predictions")

_tool.reads(
    "scale-sim-compute",
    "COMPUTE_REPORT.csv",
    "kernel: time, time with prefetch, stall (cycles)",
    _REPORT,
    limits="Only the topology file has the names of layers.",
    sample=_GOLDEN,
)(lambda source: _read(source, _COMPUTE, "LayerID", _COMPUTE_KEYS))

_tool.reads(
    "scale-sim-cycles",
    "<run>_cycles.csv of version 1",
    "kernel: time (cycles)",
    ("Layer", "Cycles", "% Utilization"),
)(lambda source: _read(source, _FIRST, "Layer", _FIRST_KEYS))


@_tool.reads(
    "scale-sim-first-bandwidth",
    "<run>_avg_bw.csv, <run>_max_bw.csv of version 1",
    "kernel: bandwidth (bytes/cycle)",
    _first_bandwidth_report,
    limits=_WORDS_ARE_BYTES,
)
def _first_bandwidth(source: Source) -> Rows:
    values = [
        Value(
            "bandwidth",
            "bytes/cycle",
            predicted=column,
            fixed={
                "memory": re.sub(r" (?:Read|Write|WRITE)$", "", memory.removeprefix("Max ")),
                "operation": "write" if "write" in column.lower() else "read",
                "statistic": "max" if column.startswith("Max ") else "mean",
            },
        )
        for column, memory in _memories(source.header, " BW")
    ]
    name = "Conv Layer Num" if "Conv Layer Num" in source.header else "Layer"
    return _read(source, values, name, {})


@_tool.reads(
    "scale-sim-first-accesses",
    "<run>_detail.csv of version 1",
    "kernel: accesses (bytes)",
    ("Layer", "DRAM_IFMAP_start", "DRAM_IFMAP_bytes"),
    limits=_WORDS_ARE_BYTES,
)
def _first_accesses(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(("Layer",))
    layers = _layers(sheet, "Layer")
    frames = []
    for column in sheet.columns:
        if match := _BYTES.fullmatch(column):
            span = {f"{match[1]}_start": "start", f"{match[1]}_stop": "stop"}
            operation = "write" if match[1].endswith(("OFMAP", "write")) else "read"
            memory = re.sub(r" (?:read|write)$", "", match[1].replace("_", " "))
            fixed = {"memory": memory, "operation": operation}
            value = Value("accesses", "bytes", predicted=column, fixed=fixed)
            keys = {**layers, **keys_of(sheet, span)}
            frames.append(long(sheet, (value,), keys, level="kernel"))
    if not frames:
        raise source.error(
            "no column of accesses (DRAM_IFMAP_bytes, …). Copy the report again, or name another "
            "format."
        )
    return Rows(pl.concat(frames, how="diagonal_relaxed"))


@_tool.reads(
    "scale-sim-bandwidth",
    "BANDWIDTH_REPORT.csv",
    "kernel: bandwidth (words/cycle)",
    ("LayerID", "Avg IFMAP SRAM BW", "Avg OFMAP DRAM BW"),
    sample=_GOLDEN,
)
def _bandwidth(source: Source) -> Rows:
    values = [
        Value("bandwidth", "words/cycle", predicted=column, fixed={"memory": memory})
        for column, memory in _memories(source.header, " BW")
    ]
    return _read(source, values, "LayerID", {})


@_tool.reads(
    "scale-sim-accesses",
    "DETAILED_ACCESS_REPORT.csv",
    "kernel: accesses (words)",
    ("LayerID", "SRAM IFMAP Reads", "DRAM OFMAP Writes"),
    limits="Counts that energy tools add at the end of the rows are left out.",
    sample=_GOLDEN,
)
def _accesses(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(("LayerID",))
    layers = _layers(sheet, "LayerID")
    frames = []
    for end, operation in ((" Reads", "read"), (" Writes", "write")):
        for column, memory in _memories(sheet.columns, end):
            fixed = {"memory": memory, "operation": operation}
            value = Value("accesses", "words", predicted=column, fixed=fixed)
            span = {f"{memory} Start Cycle": "start", f"{memory} Stop Cycle": "stop"}
            keys = {**layers, **keys_of(sheet, span)}
            frames.append(long(sheet, (value,), keys, level="kernel"))
    if not frames:
        raise source.error("no column of accesses (SRAM IFMAP Reads, …). Copy the report again.")
    return Rows(pl.concat(frames, how="diagonal_relaxed"))


@_tool.reads(
    "scale-sim-time",
    "TIME_REPORT.csv of version 3",
    "kernel: time (us, cycles)",
    lambda source: [name for name in source.header if name] == ["LayerID", "Time (us)"],
    limits="Without a time model, the column Time (us) holds cycles. errcomp notices this only if "
    "COMPUTE_REPORT.csv is in the same folder.",
)
def _times(source: Source) -> Rows:
    rows = _frame(source, _TIME, "LayerID", {})
    sibling = source.sibling("COMPUTE_REPORT.csv")
    if sibling is None or not has(sibling.header, *_REPORT):
        return Rows(rows)
    cycles = sibling.sheet((_CYCLES,)).numbers(_CYCLES)
    fine = (cycles >= 0) & (cycles < np.inf)
    if not fine.all() or cycles.tolist() != rows["predicted"].to_list():
        return Rows(rows)
    note = (
        "The times are equal to the cycles of COMPUTE_REPORT.csv: the run had no time model, so "
        "their unit is cycles."
    )
    import polars as pl

    return Rows(rows.with_columns(unit=pl.lit("cycles")), notes=(note,))


@_tool.reads(
    "scale-sim-operators",
    "TIME_REPORT.csv of SCALE-Sim TPU",
    "kernel, model: time, time with dispatch (us)",
    ("OpID", "time_us", "layer"),
)
def _operators(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(("OpID", "time_us"))
    names = pl.Series([text.upper() for text in sheet.texts("OpID")])
    total = (names == "TOTAL").to_numpy()
    left = sheet.take(~total) if total.any() else sheet
    if not len(left):
        raise source.error("only a total, no operators. The file may be incomplete: copy it again.")
    columns = {"layer": "layer", "stablehlo": "shape", "unit": "engine"}
    operators = _layers(left, "OpID")
    keys = {**keys_of(left, columns), "kernel": operators["kernel"], "operator": operators["layer"]}
    if "stablehlo" in left.columns:
        keys["kernel_class"] = pl.Series([t.split(" ")[0] or None for t in left.texts("stablehlo")])
    frames = [long(left, _OPERATORS, keys, level="kernel", run="model")]
    if total.any():
        whole = long(sheet.take(total), _OPERATORS, {}, level="model")
        frames.append(whole.with_columns(run=pl.lit("model")))
    return Rows(pl.concat(frames, how="diagonal_relaxed"))


_tool.knows(
    "scale-sim-sparse",
    "SPARSE_REPORT.csv",
    ("LayerID", "Sparsity Representation"),
    "The file holds sizes of filters in memory, but no times.",
)

_tool.knows(
    "scale-sim-topology",
    "topology",
    ("Layer name", "IFMAP Height", "Num Filter"),
    "The file describes the layers to simulate; it holds no times.",
)

FORMATS = _tool.formats
