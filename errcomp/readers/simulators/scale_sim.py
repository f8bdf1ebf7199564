"""SCALE-Sim: its reports with a row for each layer, of versions 1, 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from errcomp.readers.core.keys import key, keys_of
from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.sheet import Sheet
from errcomp.readers.core.source import Source
from errcomp.readers.core.wide import Value, long

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "read"]

_CYCLES, _PREFETCH = "Total Cycles", "Total Cycles (incl. prefetch)"
_COMPUTE = (
    Value("time", "cycles", predicted=_CYCLES),
    Value("time with prefetch", "cycles", predicted=_PREFETCH),
    Value("stall", "cycles", predicted="Stall Cycles"),
)
#: Of version 1: what was read or written, by memory.
_BYTES = re.compile(r"((?:SRAM|DRAM)_\w+)_bytes")
_COMPUTE_KEYS = {
    "Overall Util %": "overall_util",
    "Mapping Efficiency %": "mapping_efficiency",
    "Compute Util %": "compute_util",
}
_FIRST = (Value("time", "cycles", predicted="Cycles"),)
_TIME = (Value("time", "us", predicted="Time (us)"),)
_OPERATORS = (
    Value("time", "us", predicted="time_us"),
    Value("time with dispatch", "us", predicted="time_with_dispatch_us"),
)


def read(path: str | PathLike[str]) -> Output:
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
        words by ``memory`` (version 1: in bytes), ``time`` in us where a time model was chosen.

    Raises
    ------
    InputError
        A row is cut off, or has text where a number should be.

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


def _read(
    source: Source, name: str, values: Iterable[Value], column: str, keys: Mapping[str, str]
) -> Output:
    sheet = source.sheet((column,))
    found = {**_layers(sheet, column), **keys_of(sheet, keys)}
    rows = long(sheet, values, found, tool="SCALE-Sim", level="kernel")
    return output(source.name, name, rows)


def _memories(columns: Iterable[str], end: str) -> list[tuple[str, str]]:
    """Return the columns that end so, and the memory that each is of."""
    return [
        (column, column.removeprefix("Avg ").removesuffix(end).strip())
        for column in columns
        if column.endswith(end) and ("SRAM" in column or "DRAM" in column)
    ]


def _bandwidth(source: Source) -> Output:
    values = [
        Value("bandwidth", "words/cycle", predicted=column, fixed={"memory": memory})
        for column, memory in _memories(source.header, " BW")
    ]
    return _read(source, "scale-sim-bandwidth", values, "LayerID", {})


def _accesses(source: Source) -> Output:
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
            frames.append(long(sheet, (value,), keys, tool="SCALE-Sim", level="kernel"))
    if not frames:
        raise source.error("no column of accesses (SRAM IFMAP Reads, …). Copy the report again.")
    return output(source.name, "scale-sim-accesses", pl.concat(frames, how="diagonal_relaxed"))


def _first_bandwidth(source: Source) -> Output:
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
    return _read(source, "scale-sim-first-bandwidth", values, name, {})


def _first_accesses(source: Source) -> Output:
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
            frames.append(long(sheet, (value,), keys, tool="SCALE-Sim", level="kernel"))
    if not frames:
        raise source.error(
            "no column of accesses (DRAM_IFMAP_bytes, …). Copy the report again, or name no format."
        )
    rows = pl.concat(frames, how="diagonal_relaxed")
    return output(source.name, "scale-sim-first-accesses", rows)


def _times(source: Source) -> Output:
    found = _read(source, "scale-sim-time", _TIME, "LayerID", {})
    sibling = source.sibling("COMPUTE_REPORT.csv")
    if sibling is None or not _compute_report(sibling):
        return found
    cycles = sibling.sheet((_CYCLES,)).numbers(_CYCLES).tolist()
    if cycles != found.rows["predicted"].to_list():
        return found
    note = (
        "The times are the cycles of COMPUTE_REPORT.csv: the run had no time model, and they are "
        "given as cycles."
    )
    import polars as pl

    rows = found.rows.with_columns(unit=pl.lit("cycles"))
    return output(source.name, "scale-sim-time", rows, notes=(note,))


def _operators(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(("OpID", "time_us"))
    names = pl.Series([text.upper() for text in sheet.texts("OpID")])
    total = (names == "TOTAL").to_numpy()
    left = sheet.take(~total) if total.any() else sheet
    if not len(left):
        raise source.error("no operator, only the total. The file may be cut off: copy it again.")
    columns = {"layer": "layer", "stablehlo": "shape", "unit": "engine"}
    operators = _layers(left, "OpID")
    keys = {**keys_of(left, columns), "kernel": operators["kernel"], "operator": operators["layer"]}
    if "stablehlo" in left.columns:
        keys["kernel_class"] = pl.Series([t.split(" ")[0] or None for t in left.texts("stablehlo")])
    frames = [long(left, _OPERATORS, keys, tool="SCALE-Sim", level="kernel", run="model")]
    if total.any():
        whole = long(sheet.take(total), _OPERATORS, {}, tool="SCALE-Sim", level="model")
        frames.append(whole.with_columns(run=pl.lit("model")))
    rows = pl.concat(frames, how="diagonal_relaxed")
    return output(source.name, "scale-sim-operators", rows)


def _compute_report(source: Source) -> bool:
    return {"LayerID", _CYCLES, "Stall Cycles"} <= set(source.header)


def _first_report(source: Source) -> bool:
    return {"Layer", "Cycles", "% Utilization"} <= set(source.header)


def _first_bandwidth_report(source: Source) -> bool:
    names = {name.removeprefix("Max ") for name in source.header}
    layer = {"Conv Layer Num", "Layer"} & names
    return {"IFMAP SRAM Size", "DRAM IFMAP Read BW", "DRAM Filter Read BW"} <= names and bool(layer)


def _first_access_report(source: Source) -> bool:
    return {"Layer", "DRAM_IFMAP_start", "DRAM_IFMAP_bytes"} <= set(source.header)


def _bandwidth_report(source: Source) -> bool:
    return {"LayerID", "Avg IFMAP SRAM BW", "Avg OFMAP DRAM BW"} <= set(source.header)


def _access_report(source: Source) -> bool:
    return {"LayerID", "SRAM IFMAP Reads", "DRAM OFMAP Writes"} <= set(source.header)


def _time_report(source: Source) -> bool:
    return [name for name in source.header if name] == ["LayerID", "Time (us)"]


def _operator_report(source: Source) -> bool:
    return {"OpID", "time_us", "layer"} <= set(source.header)


def _sparse_report(source: Source) -> bool:
    return {"LayerID", "Sparsity Representation"} <= set(source.header)


def _topology(source: Source) -> bool:
    header = set(source.header)
    return {"Layer name", "IFMAP Height", "Num Filter"} <= header


def _report(
    name: str, files: str, quantities: tuple[str, ...], units: tuple[str, ...], **others: Any
) -> Format:
    fields: dict[str, Any] = {"gives": "predictions", "levels": ("kernel",), "sample": "", **others}
    return Format(
        name=name, tool="SCALE-Sim", files=files, quantities=quantities, units=units, **fields
    )


_SAMPLE = "2, golden traces of its test"
FORMATS = (
    _report(
        "scale-sim-compute",
        "COMPUTE_REPORT.csv",
        tuple(value.quantity for value in _COMPUTE),
        ("cycles",),
        sample=_SAMPLE,
        recognise=_compute_report,
        read=lambda source: _read(source, "scale-sim-compute", _COMPUTE, "LayerID", _COMPUTE_KEYS),
        limits="The names of the layers are in the topology file.",
    ),
    _report(
        "scale-sim-cycles",
        "<run>_cycles.csv of version 1",
        ("time",),
        ("cycles",),
        recognise=_first_report,
        read=lambda source: _read(
            source, "scale-sim-cycles", _FIRST, "Layer", {"% Utilization": "overall_util"}
        ),
    ),
    _report(
        "scale-sim-first-bandwidth",
        "<run>_avg_bw.csv, <run>_max_bw.csv of version 1",
        ("bandwidth",),
        ("bytes/cycle",),
        recognise=_first_bandwidth_report,
        read=_first_bandwidth,
        limits="Words are taken for bytes, as version 1 does.",
    ),
    _report(
        "scale-sim-first-accesses",
        "<run>_detail.csv of version 1",
        ("accesses",),
        ("bytes",),
        recognise=_first_access_report,
        read=_first_accesses,
        limits="Words are taken for bytes, as version 1 does.",
    ),
    _report(
        "scale-sim-bandwidth",
        "BANDWIDTH_REPORT.csv",
        ("bandwidth",),
        ("words/cycle",),
        sample=_SAMPLE,
        recognise=_bandwidth_report,
        read=_bandwidth,
    ),
    _report(
        "scale-sim-accesses",
        "DETAILED_ACCESS_REPORT.csv",
        ("accesses",),
        ("words",),
        sample=_SAMPLE,
        recognise=_access_report,
        read=_accesses,
        limits="Counts that energy tools add at the end of the rows are left out.",
    ),
    _report(
        "scale-sim-time",
        "TIME_REPORT.csv of version 3",
        ("time",),
        ("us", "cycles"),
        recognise=_time_report,
        read=_times,
        limits="Without a time model the column headed Time (us) holds cycles: that is seen only "
        "where COMPUTE_REPORT.csv is beside it.",
    ),
    _report(
        "scale-sim-operators",
        "TIME_REPORT.csv of SCALE-Sim TPU",
        tuple(value.quantity for value in _OPERATORS),
        ("us",),
        levels=("kernel", "model"),
        recognise=_operator_report,
        read=_operators,
    ),
    no_times(
        "scale-sim-sparse",
        "SCALE-Sim",
        "SPARSE_REPORT.csv",
        _sparse_report,
        "It holds sizes of filters in memory, and no times.",
    ),
    no_times(
        "scale-sim-topology",
        "SCALE-Sim",
        "topology",
        _topology,
        "It describes the layers to simulate, and holds no times.",
    ),
)
