"""SimAI: the end-to-end report of a simulated training iteration, layer by layer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet, sheet_of

_SUMMARY = ("File name", "Expose DP comm", "total exposed comm")
_LAYERS = ("layer_name", "fwd compute", "fwd exposed comm")
_TOTALS = {
    "total time": "time",
    "total comp": "compute time",
    "total exposed comm": "exposed communication",
}
_PARTS = {
    "Expose DP comm": "DP",
    "Expose DP_EP comm": "DP_EP",
    "Expose TP comm": "TP",
    "Expose_EP_comm": "EP",
    "Expose EP comm": "EP",
    "Expose_PP_comm": "PP",
    "Expose PP comm": "PP",
}
#: Phases of a layer, and the second and third columns of their bandwidths.
_PHASES = (("fwd", ""), ("wg", "_2"), ("ig", "_3"))
_CELL = re.compile(r"(-?[\d.]+(?:[eE][+-]?\d+)?|-?nan|-?inf|NaN or Inf) *(?:\(.*%\))?")
_RATIOS = re.compile(r"Size,\s*1 ?Node\(NVLink", re.IGNORECASE)


def read(path: AnyPath) -> Output:
    r"""Read the end-to-end report of SimAI.

    Parameters
    ----------
    path : path
        ``*EndToEnd.csv``: a summary, a table of layers and a line of totals in one file; or a
        folder or archive of such files.

    Returns
    -------
    Output
        Predictions in µs. Of the iteration (level system) the time, compute time, exposed
        communication (also of each parallel dimension, ``group``) and the bubble. Of each layer
        and phase (fwd, wg: weight gradients, ig: input gradients) the compute time and exposed
        communication (level kernel), and of its collective the time and the algorithm and bus
        bandwidth (GB/s; level collective).

    Raises
    ------
    InputError
        A file is damaged or cut off, or no file is SimAI's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "EndToEnd.csv"
    >>> _ = path.write_text(
    ...     "File name, Expose DP comm, total comp, total exposed comm, Total time\n"
    ...     "run, 20 (20.00%), 80 (80.00%), 20 (20.00%), 100\n")
    >>> read(path).rows.select("quantity", "unit", "predicted").rows()[0]
    ('time', 'us', 100.0)
    """
    return read_as(path, FORMATS)


def _is_report(source: Source) -> bool:
    for line in source.head_lines:
        if all(name in line for name in _SUMMARY) or all(name in line for name in _LAYERS):
            return True
    return False


_tool = ToolFormats("SimAI", gives="predictions", sample="aliyun/SimAI cef83f9")


@_tool.reads(
    "simai-end-to-end",
    "*EndToEnd.csv",
    "system, kernel, collective",
    _is_report,
    quantities=(
        *_TOTALS.values(),
        "bubble time",
        "algorithm bandwidth",
        "bus bandwidth",
    ),
    units=("us", "GB/s"),
    sample="liecn/SimAI 6b6d467 (one run)",
    limits="Layers with the same name differ in the key `layer`, a number. Times of a run with "
    "pipeline stages are from the summary, which is rounded to µs.",
)
def _report(source: Source) -> Rows:
    lines = source.lines()
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    layers: list[str] = []
    first = 0
    summary: dict[str, float | None] = {}
    totals: dict[str, float | None] = {}
    run = None
    for number, line in enumerate(lines, start=1):
        if line.startswith((_SUMMARY[0], _LAYERS[0])) and (totals or (summary and layers)):
            raise source.error(
                "a second report begins here. Give one file per report.", line=number
            )
        if line.startswith(_SUMMARY[0]):
            if number == len(lines):
                raise source.error(
                    "no values below the summary's header. The file may be incomplete: copy it "
                    "again.",
                    line=number,
                )
            run, summary = _summary(source, number, line, lines[number])
        elif line.startswith(_LAYERS[0]):
            layers, first = [line], number
        elif line.startswith("total exposed comm,"):
            totals |= _totals(source, number, line)
        elif layers and line.strip() and not line.startswith(("SUM,", f"{run},")):
            layers.append(line)
    if len(layers) > 1:
        sheet = sheet_of(source.name, layers, first_line=first)
        run = run or _run(sheet)
        of_layers = _layers(source, sheet, run)
        rows += of_layers
        notes += _added_up(of_layers, totals)
    rows = [*_iteration_rows(run, summary, totals), *rows]
    if layers and not totals:
        notes.append("The line of totals is missing: the report may be incomplete.")
    return Rows(rows, notes=notes)


def _summary(
    source: Source, number: int, header: str, values: str
) -> tuple[str, dict[str, float | None]]:
    names = [name.strip() for name in header.split(",")]
    cells = [cell.strip() for cell in values.split(",")]
    if len(cells) != len(names):
        raise source.error(
            f"{len(cells)} values, but the summary's header has {len(names)} names. The file may "
            "be incomplete: copy it again.",
            line=number + 1,
        )
    times = {}
    for name, cell in zip(names[1:], cells[1:], strict=True):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise source.error(
                f"{name} must be a time, got {cell[:40]!r}. Copy the file again.", line=number + 1
            )
        times[name] = _number(match[1])
    return cells[0], times


def _totals(source: Source, number: int, line: str) -> dict[str, float | None]:
    cells = [cell.strip() for cell in line.split(",")]
    times = dict(zip(cells[::2], map(_number, cells[1::2]), strict=False))
    if not all(times.get(name) is not None for name in _TOTALS):
        raise source.error(
            f"expected {', '.join(_TOTALS)}, got {line[:60]!r}. The file may be incomplete.",
            line=number,
        )
    return times


def _iteration_rows(
    run: str | None, summary: dict[str, float | None], totals: dict[str, float | None]
) -> list[dict[str, Any]]:
    """Return the rows of the iteration: the totals, and the parts of the summary."""
    rounded = {"total time": summary.get("Total time")}
    rounded |= {name: summary.get(name) for name in ("total comp", "total exposed comm")}
    # Only the summary includes bubbles and the pipeline, but it is rounded.
    more = sum(summary.get(name) or 0.0 for name in ("bubble time", "Expose_PP_comm"))
    best = totals if totals and not more else {**totals, **rounded} if summary else totals
    parts: list[tuple[str, float | None, str | None]]
    parts = [(quantity, best.get(name), None) for name, quantity in _TOTALS.items() if name in best]
    parts += [("bubble time", summary["bubble time"], None)] if "bubble time" in summary else []
    parts += [
        ("exposed communication", summary[name], group)
        for name, group in _PARTS.items()
        if name in summary
    ]
    return [
        {
            "level": "system",
            "quantity": quantity,
            "unit": "us",
            "predicted": value,
            "run": run,
            "group": group,
        }
        for quantity, value, group in parts
    ]


def _run(sheet: Sheet) -> str | None:
    """Return the name of the run, which is the header of the table's second column."""
    return sheet.columns[1] if len(sheet.columns) > 1 else None


def _layers(source: Source, sheet: Sheet, run: str | None) -> list[dict[str, Any]]:
    names = [name or None for name in sheet.texts("layer_name")]
    rows: list[dict[str, Any]] = []
    for phase, ending in _PHASES:
        columns = {
            name: _column(sheet, name)
            for name in (
                f"{phase} compute",
                f"{phase} exposed comm",
                f"{phase} total comm",
                f"algbw{ending}",
                f"busbw{ending}",
            )
            if name in sheet.columns
        }
        for name, values in columns.items():
            quantity, level, unit = _meaning(name)
            issued = columns.get(f"{phase} total comm")
            for i, value in enumerate(values.tolist()):
                # A phase without communication has a time of 0 µs and no bandwidth.
                if level == "collective" and issued is not None and not issued[i] > 0:
                    continue
                rows.append(
                    {
                        "level": level,
                        "quantity": quantity,
                        "unit": unit,
                        "predicted": None if np.isnan(value) else value,
                        "run": run,
                        "kernel": names[i],
                        "kernel_class": names[i],
                        "layer": i,
                        "phase": phase,
                    }
                )
    if not rows:
        raise source.error(
            "the table of layers has no column with times. Copy the file again.", line=1
        )
    return rows


def _meaning(column: str) -> tuple[str, str, str]:
    """Return quantity, level and unit of a column."""
    if column.startswith("algbw"):
        return "algorithm bandwidth", "collective", "GB/s"
    if column.startswith("busbw"):
        return "bus bandwidth", "collective", "GB/s"
    if column.endswith("total comm"):
        return "time", "collective", "us"
    if column.endswith("exposed comm"):
        return "exposed communication", "kernel", "us"
    return "time", "kernel", "us"


def _column(sheet: Sheet, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    import polars as pl

    text = sheet.frame[name].replace("NaN or Inf", "")
    return Sheet(sheet.name, pl.DataFrame([text.alias(name)]), sheet.lines).numbers(name)


def _added_up(rows: list[dict[str, Any]], totals: dict[str, float | None]) -> list[str]:
    """Compare the layers with the line of totals."""
    stated = totals.get("total comp")
    if stated is None:
        return []
    parts = [
        row["predicted"] or 0.0
        for row in rows
        if row["level"] == "kernel" and row["quantity"] == "time"
    ]
    if abs(sum(parts) - stated) <= 1e-3 * max(stated, 1e-3):
        return []
    return [
        f"The compute times of the layers sum to {sum(parts):g} µs, but the report's total is "
        f"{stated:g} µs."
    ]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _is_bandwidths(source: Source) -> bool:
    lines = {line.strip() for line in source.head_lines[:40]}
    return {"TP:", "DP:"} <= lines and any(line.startswith("allreduce,:") for line in lines)


def _is_workload(source: Source) -> bool:
    first = next(iter(source.head_lines), "")
    return "model_parallel_NPU_group:" in first and "all_gpus:" in first


_tool.knows(
    "simai-ratios",
    "nic_ratio.csv, nvlink_ratio.csv, ata_ratio.csv",
    lambda source: any(_RATIOS.match(line) for line in source.head_lines[:1]),
    "The file is an input of the simulation: shares of the link's bandwidth by message size.",
)
_tool.knows(
    "simai-bandwidths",
    "busbw.yaml",
    _is_bandwidths,
    "The file is an input of the simulation: bus bandwidths by collective.",
)
_tool.knows(
    "simai-workload",
    "workload (*.txt)",
    _is_workload,
    "The file is an input of the simulation: layers with their compute times.",
)

FORMATS = _tool.formats
