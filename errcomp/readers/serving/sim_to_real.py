"""Errors of several serving simulators against vLLM on the same experiments (sim-to-real)."""

from __future__ import annotations

import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet, Value, keys_of, long

#: Name of a metric → quantity and statistic over the requests of the experiment.
_METRICS = {
    f"{name}_{statistic}": (quantity, statistic)
    for name, quantity in (("e2e", "time"), ("ttft", "ttft"), ("itl", "itl"))
    for statistic in ("mean", "median", "p50", "p90", "p95", "p99")
}
_KEYS = {
    "simulator": "tool",
    "exp_id": "experiment",
    "model": "model",
    "workload": "workload",
    "hardware": "device",
    "precision": "precision",
    "tp": "tensor_parallel",
    "dp": "data_parallel",
    "cpu_offload": "cpu_offload",
    "gpu_mem_util": "gpu_mem_util",
    "max_num_batched_tokens": "max_batched_tokens",
}
_NEEDED = ("simulator", "metric_name", "predicted", "actual", "mape", "stage_index")
#: Differences of printed errors from recomputed ones that are rounding, in percentage points.
_ROUNDING = 0.005


def read(path: AnyPath) -> Output:
    r"""Read predictions of several simulators for the same experiments.

    Parameters
    ----------
    path : path
        ``error_records.csv`` of sim-to-real-accuracy-validation.

    Returns
    -------
    Output
        For each simulator (key ``tool``), experiment and stage: end-to-end latency, time to first
        token and time between tokens (ms), predicted and measured in vLLM, each as a mean or a
        quantile over requests (key ``statistic``). Stage "whole run" holds all stages.

    Raises
    ------
    InputError
        The file is damaged, or not such a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "error_records.csv"
    >>> _ = path.write_text(
    ...     "simulator,exp_id,stage_index,metric_name,predicted,actual,mape\n"
    ...     "vidur,1,-1,e2e_mean,110,100,10\n")
    >>> read(path).rows.select("tool", "quantity", "statistic", "stage", "predicted").rows()
    [('vidur', 'time', 'mean', 'whole run', 110.0)]
    """
    return read_as(path, FORMATS)


_tool = ToolFormats(
    "sim-to-real",
    gives="both",
    reference="hardware",
    sample="sim-to-real-accuracy-validation dcec3fd (five simulators)",
)


@_tool.reads(
    "sim-to-real-errors",
    "error_records.csv",
    "request: time, ttft, itl (ms)",
    _NEEDED,
    limits="The column tool names the simulator. Simulators ran different numbers of the "
    "experiments: compare them with --keys experiment,workload,stage,statistic.",
)
def _errors(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(list(_NEEDED))
    names = sheet.texts("metric_name")
    if unknown := sorted(set(names) - set(_METRICS)):
        raise source.error(
            f"metric_name {unknown[0]!r} is unknown: expected e2e, ttft or itl with mean or a "
            "quantile, e.g. ttft_p99. The file may be from another version."
        )
    keys = keys_of(sheet, _KEYS)
    stages = sheet.texts("stage_index")
    keys["stage"] = pl.Series("stage", ["whole run" if one == "-1" else one for one in stages])
    keys["statistic"] = pl.Series("statistic", [_METRICS[name][1] for name in names])
    frame = long(sheet, [Value("time", "ms", "predicted", "actual")], keys, level="request")
    frame = frame.with_columns(quantity=pl.Series([_METRICS[name][0] for name in names]))
    return Rows(frame, notes=_notes(sheet))


def _notes(sheet: Sheet) -> list[str]:
    predicted, actual, stated = (sheet.numbers(name) for name in ("predicted", "actual", "mape"))
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(100 * np.abs(predicted / actual - 1) - stated)
    there = np.isfinite(predicted) & np.isfinite(actual) & np.isfinite(stated)
    both, unlike = int(there.sum()), int((there & ~(off <= _ROUNDING)).sum())
    agrees = (
        f"{'The only error' if both == 1 else f'All {both} errors'} printed in the file "
        f"{'follows' if both == 1 else 'follow'} from its predictions and measurements."
        if not unlike
        else f"{unlike} of {both} errors printed in the file do not follow from its predictions "
        "and measurements, which are used."
    )
    return [agrees, *_experiments(sheet)] if "exp_id" in sheet.columns else [agrees]


def _experiments(sheet: Sheet) -> list[str]:
    """Say which simulators ran fewer experiments, and which measurements are repeated."""
    ran: dict[str, set[str]] = {}
    workloads: dict[tuple[str, ...], set[str]] = {}
    named = sheet.texts("workload") if "workload" in sheet.columns else [""] * len(sheet)
    columns = ("simulator", "exp_id", "stage_index", "metric_name", "actual")
    for row, workload in zip(zip(*map(sheet.texts, columns), strict=True), named, strict=True):
        ran.setdefault(row[0], set()).add(row[1])
        workloads.setdefault(row, set()).add(workload)
    notes = []
    if len({len(some) for some in ran.values()}) > 1:
        counts = ", ".join(f"{tool} {len(some)}" for tool, some in sorted(ran.items()))
        notes.append(
            "How many of the "
            f"{len(set().union(*ran.values()))} experiments each simulator ran: {counts}."
        )
    for experiment in sorted({row[1] for row, some in workloads.items() if len(some) > 1}):
        some = set().union(*(w for row, w in workloads.items() if row[1] == experiment))
        notes.append(
            f"Experiment {experiment} is listed under {len(some)} workloads with the same "
            f"measurements, so these count {len(some)} times."
        )
    return notes


FORMATS = _tool.formats
