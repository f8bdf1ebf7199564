"""TraceLens: the tables of its reports on traces of PyTorch and JAX."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet
from errcomp.readers.profilers.kineto.classes import class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


_RUN, _NO_OPERATOR = "trace", "without an operator"
#: Largest share of the time of a run that its kernels may take, in %, with rounding.
_TOO_MUCH = 100.5
#: The standard library's CSV reader refuses longer fields; lists of kernels may be that long.
_LONGEST_FIELD = 1 << 17
#: Kind of table → its columns, in the order of checking.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "gpu-timeline": ("type", "time ms"),
    "short-kernels": ("Short Kernel count",),
    "kernel-summary": ("Kernel name", "Kernel duration (µs)_sum", "Kernel duration (µs)_count"),
    "op-metrics": ("name", "Kernel Time (µs)_mean"),
    "ops-unique-args": ("name", "total_direct_kernel_time_mean", "operation_count"),
    "ops-summary": ("name", "total_direct_kernel_time_sum", "Count"),
    "ops": ("name", "UID", "total_direct_kernel_time", "direct_kernel_count"),
    "diff": ("name", "cpu_op_name", "source", "kernel_time", "lowest_common_ancestor_id"),
    "categories": ("op category", "Count", "total_direct_kernel_time_ms"),
    "collectives": ("Collective name", "Group size", "dur_mean", "operation_count"),
    "collectives-synced": ("Collective name", "comm_latency_mean", "bus bw (GB/s)_mean", "count"),
}
_TIMELINE = {
    "exposed_comm_time": "exposed communication",
    "total_comm_time": "communication time",
    "exposed_memcpy_time": "exposed memcpy",
    "total_memcpy_time": "memcpy time",
}
#: Columns kept as keys, under these names.
_OP_KEYS = {
    "op category": "op_category",
    "Categories": "op_category",
    "cpu_op_name": "op",
    "Input Dims": "shape",
    "Input Dims_first": "shape",
    "Input type": "input_types",
    "Input type_first": "input_types",
    "Compute Spec": "compute_spec",
    "GFLOPS": "gflops",
    "GFLOPS_first": "gflops",
    "Data Moved (MB)": "data_moved_mb",
    "Data Moved (MB)_first": "data_moved_mb",
    "is_recompute": "is_recompute",
    "gpu_pid": "gpu_pid",
}
_SIZES = ("In msg size (MB)_first", "In msg size (MB)")
_COLLECTIVE_KEYS = {
    "Process Group Name": "process_group",
    "Collective name": "collective",
    "dtype": "dtype",
    "stream": "stream",
}


def read(path: AnyPath) -> Output:
    r"""Read tables of TraceLens reports (CSV), made from traces of PyTorch or JAX.

    Parameters
    ----------
    path : path
        A table, or a folder or archive of tables.

    Returns
    -------
    Output
        Measured times, with units as TraceLens states them (us; the timeline in ms):

        * gpu_timeline: the ``time`` of the run (level model, its ``total_time``) and, level system,
          busy, idle, computation and communication time, exposed communication, …;
        * kernel_summary: kernels by name, operator and stream: the mean ``time`` of ``count``
          instances, and the ``time`` of the run that their percentages refer to;
        * ops_summary, ops_unique_args, kernel_launchers_summary, xla_summary, unified_perf_summary
          and the tables of one kind of operator (GEMM, CONV_fwd, SDPA_fwd, op_conv, …): operators,
          with the ``time`` on the GPU of one call, its ``shape`` and its parameters
          (``param_m``, …) if the table has them;
        * ops, df_xla_perf: the same per call; diff_stats: kernels of two traces per
          call, with the trace in ``run``;
        * coll_analysis and the collective reports of several ranks: collectives with
          ``size_bytes`` and ``ranks``; the latter also with bandwidths.

    Raises
    ------
    InputError
        A column is missing, or a number is text.

    Notes
    -----
    Each table lists all work again: sum kernels within a table, never over tables. MB of
    TraceLens are 2^20 bytes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ops_summary.csv"
    >>> _ = path.write_text("name,total_direct_kernel_time_sum,Count\naten::mm,600.0,3\n")
    >>> read(path).rows.select("kernel", "kernel_class", "count", "measured", "unit").rows()
    [('aten::mm', 'gemm', 3, 200.0, 'us')]
    """
    return read_as(path, FORMATS)


def _kind(source: Source) -> str:
    names = {_micro(name) for name in source.header}
    return next((kind for kind, needed in _KINDS.items() if names.issuperset(needed)), "")


def _micro(name: str) -> str:
    """Replace the Greek letter mu by the sign µ, which looks the same."""
    return name.replace("\N{GREEK SMALL LETTER MU}", "µ")


def _sheet(source: Source) -> Sheet:
    """Read the whole table."""
    import polars as pl

    text = source.text
    if len(text) < _LONGEST_FIELD:
        sheet = source.sheet()
    else:
        try:
            frame = pl.read_csv(io.BytesIO(text.encode()), infer_schema=False)
        except pl.exceptions.PolarsError as error:
            reason = str(error).partition("\n")[0]
            raise source.error(f"not valid CSV ({reason}). Copy the file again.") from None
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        frame = frame.with_columns(pl.all().fill_null("").str.strip_chars())
        if frame.is_empty():
            raise source.error("a header without rows. Copy the file again.")
        sheet = Sheet(source.name, frame, np.arange(2, len(frame) + 2))
    return Sheet(source.name, sheet.frame.rename(_micro), sheet.lines)


def _common(level: str, unit: str = "us", **more: Any) -> dict[str, Any]:
    return {"level": level, "quantity": "time", "unit": unit, **more}


def _operators(source: Source) -> Rows:
    """Read any of the tables of operators."""
    sheet, kind = _sheet(source), _kind(source)
    if kind == "ops-summary":
        total, count = sheet.numbers("total_direct_kernel_time_sum"), sheet.numbers("Count")
        mean, counts = _per_instance(total, count)
    elif kind in ("ops", "diff"):
        field = "kernel_time" if kind == "diff" else "total_direct_kernel_time"
        mean, counts = sheet.numbers(field).tolist(), [1] * len(sheet)
    else:
        field = "Kernel Time (µs)_mean" if kind == "op-metrics" else "total_direct_kernel_time_mean"
        often = next((c for c in ("name_count", "operation_count") if c in sheet.columns), "")
        number = sheet.numbers(often) if often else np.ones(len(sheet))
        mean, counts = sheet.numbers(field).tolist(), _whole_numbers(number)
    keys = dict(_OP_KEYS)
    keys |= {c: _snake(c) for c in sheet.columns if c.startswith("param: ")}
    present = {new: old for old, new in keys.items() if old in sheet.columns}
    runs = sheet.texts("source") if kind == "diff" else [_RUN] * len(sheet)
    rows = [
        _common("kernel", run=run, kernel=name, kernel_class=class_of(name), **more)
        | {"measured": time, "count": n}
        for run, name, time, n, more in zip(
            runs, sheet.texts("name"), mean, counts, _keys(sheet, present), strict=True
        )
    ]
    return Rows(rows)


def _collectives(source: Source) -> Rows:
    sheet, kind = _sheet(source), _kind(source)
    synced = kind == "collectives-synced"
    quantities = {"time": ("comm_latency_mean" if synced else "dur_mean", "us")}
    if synced:
        quantities["bus bandwidth"] = ("bus bw (GB/s)_mean", "GB/s")
        if "algo bw (GB/s)_mean" in sheet.columns:
            quantities["algorithm bandwidth"] = ("algo bw (GB/s)_mean", "GB/s")
    values = {name: sheet.numbers(column).tolist() for name, (column, _) in quantities.items()}
    whole = {
        "count": "count" if synced else "operation_count",
        "ranks": "Group size",
        "rank": "rank",
    }
    numbers = {
        key: _whole_numbers(sheet.numbers(column))
        for key, column in whole.items()
        if column in sheet.columns
    }
    size = next((c for c in _SIZES if c in sheet.columns), "")
    if size:
        numbers["size_bytes"] = _whole_numbers(np.round(sheet.numbers(size) * (1 << 20)))
    keys = {new: old for old, new in _COLLECTIVE_KEYS.items() if old in sheet.columns}
    rows = [
        _common("collective", unit, run=_RUN, **more)
        | {"quantity": quantity, "measured": values[quantity][i]}
        | {key: column[i] for key, column in numbers.items()}
        for i, more in enumerate(_keys(sheet, keys))
        for quantity, (_, unit) in quantities.items()
    ]
    return Rows(rows)


def _per_instance(
    total: NDArray[np.float64], count: NDArray[np.float64]
) -> tuple[list[float], list[int | None]]:
    """Return the mean of each sum; None without a count."""
    some = count > 0
    mean = np.divide(total, count, out=np.full(len(total), np.nan), where=some)
    return mean.tolist(), _whole_numbers(np.where(some, count, np.nan))


def _whole_numbers(numbers: NDArray[np.float64]) -> list[int | None]:
    fine = np.isfinite(numbers) & (np.abs(numbers) < 2**53)
    return [int(n) if ok else None for n, ok in zip(numbers.tolist(), fine.tolist(), strict=True)]


def _keys(sheet: Sheet, keys: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the keys of each row; None if empty."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(sheet))]
    for new, old in keys.items():
        if old in sheet.columns:
            for row, text in zip(rows, sheet.texts(old), strict=True):
                row[new] = text or None
    return rows


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _is_kind(kind: str) -> Callable[[Source], bool]:
    return lambda source: _kind(source) == kind


_tool = ToolFormats(
    "TraceLens",
    gives="measurements",
    reference="hardware",
    sample="reports on H100, MI300 (PyTorch) and MI300 (JAX)",
    limits="Other tables of the report list the same work: read only one of them.",
)


@_tool.reads(
    "tracelens-gpu-timeline",
    "gpu_timeline or gpu_events_averages (CSV)",
    "model, system: time, busy time, idle time, computation time, communication time, "
    "exposed communication, memcpy time, exposed memcpy (ms)",
    _is_kind("gpu-timeline"),
    limits="Averages over GPUs and the timeline of a single GPU have the same form.",
)
def _timeline(source: Source) -> Rows:
    sheet = _sheet(source)
    pids = sheet.texts("gpu_pid") if "gpu_pid" in sheet.columns else [""] * len(sheet)
    rows = []
    for kind, time, pid in zip(sheet.texts("type"), sheet.numbers("time ms"), pids, strict=True):
        run = f"gpu {pid}" if pid else _RUN
        row = _common("model", "ms", run=run, measured=float(time), gpu_pid=pid or None)
        if kind != "total_time":
            row |= {"level": "system", "quantity": _TIMELINE.get(kind, kind.replace("_", " "))}
        rows.append(row)
    return Rows(rows)


@_tool.reads(
    "tracelens-kernel-summary",
    "kernel_summary (CSV)",
    "kernel, model: time (us)",
    _is_kind("kernel-summary"),
)
def _kernel_summary(source: Source) -> Rows:
    sheet = _sheet(source)
    name = "Kernel duration (µs)"
    total, count = sheet.numbers(f"{name}_sum"), sheet.numbers(f"{name}_count")
    mean, counts = _per_instance(total, count)
    names = sheet.texts("Kernel name")
    keys = {
        "op_category": "Parent op category",
        "op": "Parent cpu_op",
        "stream": "Kernel stream",
    }
    percent = "Percent of total time (%)"
    shares = np.nan_to_num(sheet.numbers(percent)) if percent in sheet.columns else np.zeros(1)
    too_much = float(shares.sum()) > _TOO_MUCH
    rows = []
    for kernel, time, n, more in zip(names, mean, counts, _keys(sheet, keys), strict=True):
        run = _NO_OPERATOR if too_much and not more.get("op") else _RUN
        row = _common("kernel", run=run, kernel=kernel, kernel_class=class_of(kernel), **more)
        rows.append(row | {"measured": time, "count": n})
    notes = []
    if shares.max() > 0:
        largest = int(np.argmax(shares))
        time = float(total[largest] / shares[largest] * 100)
        rows.append(_common("model", run=_RUN, measured=time))
        notes.append(f"the time of the run is computed from {percent!r}.")
    if too_much:
        notes.append(
            f"all kernels together take {shares.sum():.0f} % of the time of the run, so kernels "
            f"that no operator launched are read as a separate run, {_NO_OPERATOR!r}."
        )
    return Rows(rows, notes=notes)


_tool.reads(
    "tracelens-ops-summary",
    "ops_summary, kernel_launchers_summary or xla_summary (CSV)",
    "kernel: time (us)",
    _is_kind("ops-summary"),
)(_operators)

_tool.reads(
    "tracelens-ops-unique-args",
    "ops_unique_args (CSV)",
    "kernel: time (us)",
    _is_kind("ops-unique-args"),
    sample="",
)(_operators)

_tool.reads(
    "tracelens-op-metrics",
    "unified_perf_summary, GEMM, CONV_fwd, SDPA_fwd, op_conv, … (CSV)",
    "kernel: time (us)",
    _is_kind("op-metrics"),
)(_operators)

_tool.reads(
    "tracelens-ops",
    "ops or df_xla_perf (CSV)",
    "kernel: time (us)",
    _is_kind("ops"),
)(_operators)

_tool.reads(
    "tracelens-diff",
    "diff_stats (CSV)",
    "kernel: time (us)",
    _is_kind("diff"),
    sample="",
)(_operators)

_tool.reads(
    "tracelens-collectives",
    "coll_analysis (CSV)",
    "collective: time (us)",
    _is_kind("collectives"),
    sample="report of one rank of 8",
    limits="Times of a rank include waiting for other ranks.",
)(_collectives)

_tool.reads(
    "tracelens-collectives-synced",
    "nccl_summary_implicit_sync (CSV)",
    "collective: time, algorithm bandwidth, bus bandwidth (us, GB/s)",
    _is_kind("collectives-synced"),
    sample="",
    limits="",
)(_collectives)

_tool.knows(
    "tracelens-categories",
    "ops_summary_by_category (CSV)",
    _is_kind("categories"),
    "The file holds totals of categories, not times of operators. Give ops_summary.",
    sample="",
)

_tool.knows(
    "tracelens-short-kernels",
    "short_kernels_summary (CSV)",
    _is_kind("short-kernels"),
    "The file holds only the shortest kernels. Give kernel_summary.",
    sample="",
)

FORMATS = _tool.formats
