"""PyTorchSim: measured references for a TPU, and the log of its simulator."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, keys_of, long

_REFERENCE = (
    Value("time", "ns", measured="latency_ns"),
    Value("cycles", "cycles", measured="cycles"),
)
_MEASURE = (
    Value("time", "us", measured="device_us"),
    Value("host time", "us", measured="avg_us"),
    Value("cycles", "cycles", measured="total_cycles"),
)
_REFERENCE_KEYS = {"workload": "kernel", "dtype": "dtype", "source": "source", "n_units": "n_units"}
_MEASURE_KEYS = {
    **{"mode": "mode", "gqa": "gqa", "B": "batch", "Hq": "query_heads", "Hkv": "kv_heads"},
    **{"S": "seq_len", "D": "head_dim", "fused": "fused", "flops": "flops", "bytes": "bytes"},
}
_CYCLES = re.compile(r"(?:\[info\] |^)Total execution cycles?: (\d+)\s*$")
_FREQUENCY = re.compile(r"core_freq_mhz: ([0-9.]+)")
_FAILED = re.compile(r"\[(?:error|critical)\] (.*\S)")
_TOGSIM = ("[TOGSim]", "[Config/Core]", "======Start Simulation=====")


def read(path: AnyPath) -> Output:
    r"""Read tables of measured references, or the log of TOGSim.

    Parameters
    ----------
    path : path
        ``ref_*.csv`` (workload, cycles, latency_ns), ``*_measure.csv`` (device_us, avg_us), a log,
        or a folder or archive of them.

    Returns
    -------
    Output
        For each ``kernel``, the measured ``time`` and ``cycles`` (one derived from the other). For
        attention, ``time`` (us on the device) and ``host time`` (average on the host, with launch
        and transfer: up to 26 times as long). For a log, the simulated ``time`` in cycles, level
        "model", with its clock as ``clock_hz``.

    Raises
    ------
    InputError
        A row is cut off, or has text instead of a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ref.csv"
    >>> _ = path.write_text("workload,dtype,cycles,latency_ns,source,n_units\n"
    ...                     "gemm_1x64x64,float16,700,200,net/out,1\n")
    >>> read(path).rows.select("kernel_class", "shape", "quantity", "measured", "unit").rows()
    [('gemm', '1x64x64', 'time', 200.0, 'ns'), ('gemm', '1x64x64', 'cycles', 700.0, 'cycles')]
    """
    return read_as(path, FORMATS)


_tool = ToolFormats(
    "PyTorchSim", gives="measurements", reference="hardware", sample="first 45 rows, TPU v6e"
)


@_tool.reads(
    "pytorchsim-reference",
    "ref_v6e.csv",
    "kernel: time, cycles (ns, cycles)",
    ("workload", "cycles", "latency_ns"),
    limits="Cycles are always 3.50 times the nanoseconds, so one is derived from the other.",
)
def _read_reference(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(("workload", "cycles", "latency_ns"))
    keys = keys_of(sheet, _REFERENCE_KEYS)
    keys["kernel"] = sheet.frame["workload"]
    frame = pl.DataFrame({"workload": keys["kernel"]}).select(
        kernel_class=pl.col("workload").str.extract(r"^(.*)_[0-9x]+$"),
        shape=pl.col("workload").str.extract(r"_([0-9]+(?:x[0-9]+)*)$"),
    )
    keys |= {name: frame[name] for name in frame.columns}
    return Rows(long(sheet, _REFERENCE, keys, level="kernel"))


@_tool.reads(
    "pytorchsim-measure",
    "v6e_tpu_measure.csv",
    "kernel: time, host time, cycles (us, cycles)",
    ("device_us", "avg_us", "Hq", "Hkv"),
    sample="first 10 rows, TPU v6e",
    limits="Utilisation and bandwidth are left out: they are derived values.",
)
def _read_measure(source: Source) -> Rows:
    import polars as pl

    needed = ("device_us", "avg_us", "B", "Hq", "Hkv", "S", "D")
    sheet = source.sheet(needed)
    keys = keys_of(sheet, _MEASURE_KEYS)
    sizes = [pl.lit(name) + pl.col(name) for name in needed[2:]]
    keys["shape"] = sheet.frame.select(pl.concat_str(sizes, separator=" ")).to_series()
    if "error" in sheet.columns:
        errors = [text or None for text in sheet.texts("error")]
        keys["status"] = pl.Series(errors, dtype=pl.String)
    return Rows(long(sheet, _MEASURE, keys, kernel="sdpa", kernel_class="attention"))


def _log(source: Source) -> bool:
    marks = {mark for line in source.head_lines for mark in _TOGSIM if mark in line}
    return "[TOGSim]" in marks or len(marks) > 1


@_tool.reads(
    "pytorchsim-log",
    "log of TOGSim",
    "model: time (cycles)",
    _log,
    gives="predictions",
    reference=None,
    sample="",
    limits="This reader was written from the simulator's source code. Statistics of cores and "
    "memory are left out.",
)
def _read_log(source: Source) -> Rows:
    clock, failed = None, ""
    rows: list[dict[str, Any]] = []
    for line in source.lines():
        if (match := _FREQUENCY.search(line)) and match[1].count(".") < 2 and match[1] != ".":
            clock = float(match[1]) * 1e6
        elif match := _FAILED.search(line):
            failed = match[1]
        elif match := _CYCLES.search(line):
            rows.append({"predicted": float(match[1]), "clock_hz": clock})
    if len(rows) > 1:
        rows = [{**row, "run": f"run {i}"} for i, row in enumerate(rows, start=1)]
    if not rows:
        status = failed or "did not finish: no total of execution cycles"
        rows.append({"clock_hz": clock, "status": status})
    return Rows(rows)


FORMATS = _tool.formats
