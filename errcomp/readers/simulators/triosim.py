"""TrioSim: its input, a measured trace, and its printed output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, keys_of, long
from errcomp.readers.core.values import digits

if TYPE_CHECKING:
    import polars as pl


_NEEDED = ("OperatorID", "OperatorName", "Operator_cudatime")
_TRACE = (
    Value("time", "us", measured="Operator_cudatime"),
    Value("time without overlap", "us", measured="Operator_cudatimenooverlap"),
)
_KEYS = {
    **{"OperatorName": "kernel", "OperatorID": "layer", "gpuid": "rank", "stage": "stage"},
    **{"tpflag": "tensor_parallel", "InputSize": "input_elements", "OutputSize": "output_elements"},
}
_EVENT = re.compile(
    r"([0-9][0-9.e+-]*) , gpu,? ?(\d{1,9}) ?, ?(computing|fetching) (check|start|done) at "
    r"LayerIndex,(\d{1,9})\s*$"
)
_MESSAGE = re.compile(r"[0-9][0-9.e+-]* , gpu ")
_TOTAL = re.compile(
    r"(Estimated execution time|Current time after .*?(?:execution|stage|test)) ms,+ "
    r"([0-9.e+-]+)\s*$"
)


def read(path: AnyPath) -> Output:
    r"""Read ``trace.csv`` (measured operators) or the output of TrioSim (simulated).

    Parameters
    ----------
    path : path
        A trace (with ``tensor.csv`` in its folder), the captured output, or a folder or archive.

    Returns
    -------
    Output
        For a trace, the measured ``time`` on the GPU (us) of each operator (``kernel``, numbered by
        ``layer``), and ``time without overlap``, the input of TrioSim; ``shape`` of its inputs if
        ``tensor.csv`` exists. For the output, the simulated ``time`` (s) of each ``layer`` and
        ``rank``, and the total ``time`` (ms), level "model".

    Raises
    ------
    InputError
        A row is cut off, or has text instead of a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.txt"
    >>> _ = path.write_text("0.001 , gpu 0, computing start at LayerIndex,0\n"
    ...     "0.003 , gpu 0, computing done at LayerIndex,0\n"
    ...     "Estimated execution time ms, 3.0000000000\n")
    >>> read(path).rows.select("level", "layer", "predicted", "unit").rows()
    [('kernel', 0, 0.002, 's'), ('model', None, 3.0, 'ms')]
    """
    return read_as(path, FORMATS)


def _tensors(source: Source) -> bool:
    return {"TensorID", "TensorShape", "TensorEachByte"} <= set(source.header)


_tool = ToolFormats(
    "TrioSim", gives="measurements", reference="hardware", sample="ResNet-50 and VGG-13 on H100"
)


@_tool.reads(
    "triosim-trace",
    "trace.csv",
    "kernel: time, time without overlap (us)",
    _NEEDED,
    limits="Operators were measured one by one; the file has no time of the iteration.",
)
def _read_trace(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_NEEDED)
    keys = keys_of(sheet, _KEYS)
    keys["kernel_class"] = keys["kernel"].cast(pl.String).str.strip_prefix("aten::")
    name = source.path.name
    at = name.rfind("trace")
    beside = source.sibling(f"{name[:at]}tensor{name[at + 5 :]}") if at >= 0 else None
    if beside is not None and _tensors(beside) and "Operator_input" in sheet.columns:
        keys["shape"] = _shapes(beside, sheet.texts("Operator_input"))
    return Rows(long(sheet, _TRACE, keys, level="kernel"))


def _shapes(beside: Source, inputs: list[str]) -> pl.Series:
    """Return the shapes of the inputs of each operator: ``128x3x224x224;64x3x7x7``."""
    import polars as pl

    sheet = beside.sheet(("TensorID", "TensorShape"))
    shapes = {
        tensor: shape.strip("[] ").replace(", ", "x").replace(",", "x")
        for tensor, shape in zip(sheet.texts("TensorID"), sheet.texts("TensorShape"), strict=True)
    }
    texts = []
    for text in inputs:
        names = [part.strip(" '") for part in text.strip("[] ").split(";")]
        known = [shapes[name] or "scalar" for name in names if name in shapes]
        texts.append(";".join(known) or None)
    return pl.Series(texts, dtype=pl.String)


def _is_log(source: Source) -> bool:
    return any(
        _EVENT.match(line) or _TOTAL.match(line) or _MESSAGE.match(line)
        for line in source.head_lines
    )


_tool.knows(
    "triosim-tensors",
    "tensor.csv",
    _tensors,
    "The file holds shapes of tensors, but no times.",
    part_of="triosim-trace",
)


@_tool.reads(
    "triosim-log",
    "log (stdout)",
    "kernel, model: time (s, ms)",
    _is_log,
    gives="predictions",
    reference=None,
    sample="",
    limits="This reader was written from the simulator's source code. Messages between GPUs are "
    "left out.",
)
def _read_log(source: Source) -> Rows:
    started: dict[tuple[str, str], float] = {}
    rows: list[dict[str, Any]] = []
    unread = 0
    for i, line in enumerate(source.lines(), start=1):
        if match := _EVENT.match(line):
            time, rank, activity, step, layer = match.groups()
            if activity == "computing" and step == "start":
                started[rank, layer] = _seconds(source, time, i)
            elif activity == "computing" and step == "done":
                begin = started.pop((rank, layer), None)
                if begin is None:
                    unread += 1
                    continue
                seconds = _seconds(source, time, i) - begin
                rows.append(_layer_row(rank, layer, begin, {"predicted": seconds}))
        elif match := _TOTAL.match(line):
            rows.append({**_WHOLE, "phase": match[1], "predicted": _seconds(source, match[2], i)})
    for (rank, layer), begin in started.items():
        rows.append(_layer_row(rank, layer, begin, {"status": "did not finish"}))
    if not any(row["level"] == "model" for row in rows):
        rows.append({**_WHOLE, "status": "did not finish: no line with the total time"})
    return Rows(rows, dropped={"layers that end without a start": unread})


_WHOLE = {"level": "model", "quantity": "time", "unit": "ms", "run": "run"}


def _layer_row(rank: str, layer: str, start: float, value: dict[str, Any]) -> dict[str, Any]:
    keys = {
        "kernel": f"layer {layer}",
        "layer": digits(layer),
        "rank": digits(rank),
        "start": start,
    }
    common = {"level": "kernel", "quantity": "time", "unit": "s", "run": "run"}
    return {**common, **keys, **value}


def _seconds(source: Source, text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise source.error(
            f"{text[:40]!r} is not a time. The file may be damaged: copy it again.", line=line
        ) from None


FORMATS = _tool.formats
