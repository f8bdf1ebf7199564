"""Echo: kernels slowed down by communication that runs at the same time, predicted and measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet, Value, keys_of, long

if TYPE_CHECKING:
    import polars as pl


_PREDICTED = "calculated duration with overlap"
_MEASURED = "ground truth duration with overlap"
_ALONE = "ground_truth duration without overlap"
_CONSTANT = "comparison using slowdown="
_KEYS = {
    "id": "kernel_id",
    "kShortName": "kernel",
    "kShortName_x": "kernel",
    "overlap_ratio": "overlap_ratio",
    "overlap_ratio_x": "overlap_ratio",
}
_SUM = re.compile(r"^Sum of (calculated|comparison)[^:\n]*: *([\d.eE+]+)", re.MULTILINE)
_WITHIN = re.compile(r"^(Our|Baseline) (0\.\d+) error: *([\d.eE-]+)", re.MULTILINE)


def read(path: AnyPath) -> Output:
    r"""Read durations of kernels under overlap, from Echo's slowdown model.

    Parameters
    ----------
    path : path
        ``slowdown_output_*df_merged_features.csv`` (predictions and measurements),
        ``merged_features.csv`` (measurements), or a folder or archive of such files.

    Returns
    -------
    Output
        For each kernel, the time under overlap (ns): as predicted by Echo, and by a baseline with
        the same slowdown for every kernel (tool "Echo's constant slowdown"); and the slowdown
        itself (ratio). Both tools have the same measurements.

    Raises
    ------
    InputError
        A file is damaged, or no file is Echo's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "slowdown_output_df.csv"
    >>> _ = path.write_text(
    ...     "id,kShortName,calculated duration with overlap,comparison using slowdown=0.3,"
    ...     "ground truth duration with overlap\n1,gemm,110,130,100\n")
    >>> read(path).rows.select("tool", "unit", "predicted", "measured").rows()
    [('Echo', 'ns', 110.0, 100.0), ("Echo's constant slowdown", 'ns', 130.0, 100.0)]
    """
    return read_as(path, FORMATS)


def _is_overlap(source: Source) -> bool:
    return {_PREDICTED, _MEASURED} <= set(source.header)


def _short_table(source: Source) -> Source | None:
    """Return the table without the features of the kernels, if it is in the same folder."""
    if "Kernel Name" not in source.header:
        return None
    name = source.path.name.replace("_full_df", "_df")
    beside = None if name == source.path.name else source.sibling(name)
    return beside if beside is not None and _is_overlap(beside) else None


_tool = ToolFormats("Echo", gives="both", reference="hardware", sample="Echo-slowdown 7d698a7")


@_tool.reads(
    "echo-overlap",
    "slowdown_output_*df_merged_features.csv",
    "kernel: time, slowdown (ns, ratio)",
    lambda source: _is_overlap(source) and _short_table(source) is None,
    limits="The file states neither the unit (read as ns, as in Nsight Systems) nor the kernels of "
    "the training set. Slowdowns below 0, for kernels that ran faster under overlap, have the "
    "status 'negative'.",
)
def _overlap(source: Source) -> Rows:
    sheet = source.sheet([_PREDICTED, _MEASURED])
    constant = next((column for column in sheet.columns if column.startswith(_CONSTANT)), "")
    values = [Value("time", "ns", _PREDICTED, _MEASURED)]
    if constant:
        other = {"tool": "Echo's constant slowdown"}
        values.append(Value("time", "ns", constant, _MEASURED, other))
    slowdown = ("slowdown predictions", "ground truth slowdown")
    values.append(Value("slowdown", "ratio", *slowdown))
    frame = long(sheet, values, _keys(sheet))
    notes = [
        "The file does not state the unit: durations are read as ns, as in Nsight Systems.",
        "The file does not say which kernels the model was trained on; errors on those are smaller "
        "than on new kernels.",
        *_stated(source, sheet, constant),
    ]
    return Rows(frame, notes=notes)


def _keys(sheet: Sheet) -> dict[str, pl.Series]:
    keys = keys_of(sheet, {**_KEYS, _ALONE: "duration_alone_ns"})
    if "kernel" in keys:
        keys["kernel_class"] = keys["kernel"]
    return keys


def _stated(source: Source, sheet: Sheet, constant: str) -> list[str]:
    """Compare the authors' own metrics with these kernels, if their file is in the folder."""
    try:
        beside = source.sibling(re.sub(r"_(full_)?df_.*$|\.csv$", "_metrics.txt", source.path.name))
        if beside is None or not _is_metrics(beside):
            return []
        text = beside.text
    except InputError:
        return []
    measured = sheet.numbers(_MEASURED)
    sides = {"calculated": sheet.numbers(_PREDICTED), "Our": sheet.numbers(_PREDICTED)}
    if constant:
        sides |= dict.fromkeys(("comparison", "Baseline"), sheet.numbers(constant))
    unlike = []
    for side, total in _SUM.findall(text):
        if side in sides and not _is_near(float(np.nansum(sides[side])), total):
            unlike.append(f"sum of {side}")
    for side, limit, share in _WITHIN.findall(text):
        if side in sides:
            inside = np.abs(sides[side] / measured - 1) <= float(limit)
            if not _is_near(float(inside.mean()), share):
                unlike.append(f"{side} {limit} error")
    if unlike:
        return [
            f"{beside.path.name} states different metrics for these kernels: {', '.join(unlike)}."
        ]
    return [f"The sums and shares in {beside.path.name} agree with these kernels."]


def _is_near(value: float, stated: str) -> bool:
    try:
        return abs(value - float(stated)) <= 1e-6 * max(abs(value), 1e-6)
    except ValueError:
        return False


def _is_metrics(source: Source) -> bool:
    text = "\n".join(source.head_lines[:12])
    return "Our MAE of slowdown" in text and "Baseline MAE of slowdown" in text


def _is_features(source: Source) -> bool:
    needed = {"kShortName", "ground_truth", "duration", "overlap_ratio", "slowdown"}
    return needed <= set(source.header)


_tool.knows(
    "echo-overlap-features",
    "slowdown_output_full_df_merged_features.csv",
    lambda source: _is_overlap(source) and _short_table(source) is not None,
    "The file repeats the kernels of slowdown_output_df_merged_features.csv, which errcomp reads "
    "instead, and adds features.",
    part_of="echo-overlap",
)

_tool.knows(
    "echo-metrics",
    "slowdown_output_metrics.txt",
    _is_metrics,
    "The file holds the authors' error metrics; errcomp checks them against the kernels.",
    part_of="echo-overlap",
)


@_tool.reads(
    "echo-features",
    "merged_features.csv",
    "kernel: time, time without overlap, slowdown (ns, ratio)",
    lambda source: _is_features(source) and not _is_overlap(source),
    gives="measurements",
    sample="",
    limits="Features of the kernels are left out.",
)
def _features(source: Source) -> Rows:
    sheet = source.sheet(["kShortName", "duration", "ground_truth"])
    names = {"id": "kernel_id", "kShortName": "kernel", "overlap_ratio": "overlap_ratio"}
    keys = keys_of(sheet, names)
    keys["kernel_class"] = keys["kernel"]
    values = [
        Value("time", "ns", measured="duration"),
        Value("time without overlap", "ns", measured="ground_truth"),
        Value("slowdown", "ratio", measured="slowdown"),
    ]
    return Rows(long(sheet, values, keys))


def _is_metric_table(source: Source) -> bool:
    needed = {"Kernel Name", "Compute throughput", "DRAM throughput", "Achieved occupancy"}
    return needed <= set(source.header) and not _is_overlap(source) and not _is_features(source)


_tool.knows(
    "echo-kernel-metrics",
    "kernel_metric_output.csv",
    _is_metric_table,
    "The file holds throughputs and occupancies of kernels (in %), but no times.",
)

FORMATS = _tool.formats
