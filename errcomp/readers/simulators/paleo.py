"""Paleo: the output of its command line."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number_at

_SCALING = ("workers", "batch_size", "iter", "time_fwd", "time_bwd", "time_apply", "time_comp")
_HYBRID = ("workers", "batch_size", "fwd_time", "bwd_time", "apply_time", "sync_time(tree)")
_MODEL = ("Pass", "Lowerbound, Upperbound")
_PROFILE = ("layer", "ours", "cudnn", "tensorflow")
_PARTS = {
    "time_fwd": "forward time",
    "fwd_time": "forward time",
    "time_bwd": "backward time",
    "bwd_time": "backward time",
    "time_apply": "update time",
    "apply_time": "update time",
    "time_comp": "compute time",
}
_DEVICE = re.compile(r"^Profiling for device (.+) and (.+) \(([\d.]+) GB/s\)")
_SCALED = re.compile(r"^(weak|strong) scaling$")
_NETWORK = re.compile(r"^Network: (.+)$")
_DIRECTION = re.compile(r"^Direction: (\w+)")
_FULL = re.compile(r"^(Forward|Backward|Softmax) time\t\s*(\S+)")
_NET_FILE = re.compile(r"^(\S+\.json)$")
_SEPARATORS = ("\t", ";", "|", ",")


def read(path: AnyPath) -> Output:
    r"""Read the output of ``paleo simulate``, ``paleo profile`` and ``paleo fullpass``.

    Parameters
    ----------
    path : path
        The output of a command, or a folder or archive of them.

    Returns
    -------
    Output
        Times in ms. A simulation has, for each number of ``workers``, ``compute time`` and its
        parts, and the ``time`` of each communication scheme (``collective``); with model
        parallelism, the bounds of a pass. A profile has the predicted ``time`` of each layer
        (``kernel``), the measured one of cuDNN or TensorFlow (``executor``) if it was run, and
        their sum. A full pass has its measured parts.

    Raises
    ------
    InputError
        There is no table, or a time is not a number.

    Notes
    -----
    Written from the source code: no output is published. Paleo states neither the communication
    scheme of a run nor how much of it is hidden, so there is no time of a whole iteration.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "profile.txt"
    >>> _ = path.write_text(
    ...     "Network: nets/alexnet.json\nDirection: forward\n"
    ...     "layer\tours\tcudnn\ttensorflow\tours_alg\tcu_alg\nconv1\t2.5\t3.0\t0\tGEMM\tFFT\n")
    >>> read(path).rows.select("kernel", "executor", "predicted", "measured").rows()
    [('conv1', 'cudnn', 2.5, 3.0)]
    """
    return read_as(path, FORMATS)


def _table(line: str) -> tuple[str, tuple[str, ...]]:
    """Return the separator and the header, if a line is the header of a table of Paleo."""
    for separator in _SEPARATORS:
        cells = tuple(line.strip("\n").split(separator))
        for known in (_SCALING, _HYBRID, _PROFILE, _MODEL):
            if cells[: len(known)] == known:
                return separator, cells
    return "", ()


def _recognise(source: Source) -> bool:
    lines = source.head_lines
    return any(_table(line)[1] for line in lines) or any(
        line.startswith("Fullpass profiling with Tensorflow") for line in lines
    )


class _Output:
    """State while reading the lines."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rows: list[dict[str, Any]] = []
        self.keys: dict[str, Any] = {}
        self.separator = ""
        self.header: tuple[str, ...] = ("",)
        self.cut = 0

    def take(self, line: int, text: str) -> None:
        if self._take_setting(text) or text.startswith("====="):
            self.header = ("",)
            return
        separator, header = _table(text)
        if header:
            self.separator, self.header = separator, header
        elif match := _FULL.match(text):
            value = number_at(self.source, "a time", match.group(2), line)
            quantity = f"{match.group(1).lower()} time"
            self._row("model", quantity, "measured", value)
        elif self.header[0] and text.strip():
            cells = [cell.strip() for cell in text.split(self.separator)]
            self._cells(line, cells)
        else:
            self.header = ("",)

    def _take_setting(self, text: str) -> bool:
        for pattern, name in ((_SCALED, "scaling"), (_NETWORK, "model"), (_DIRECTION, "direction")):
            if match := pattern.match(text):
                self.keys[name] = match.group(1)
                return True
        if match := _DEVICE.match(text):
            self.keys |= {"device": match.group(1), "network": match.group(2)}
            return True
        if match := _NET_FILE.match(text):
            self.keys = {"model": match.group(1)}
            return True
        return False

    def _row(
        self, level: str, quantity: str, column: str, value: float | None, **keys: Any
    ) -> None:
        kind = {"level": level, "quantity": quantity, column: value}
        self.rows.append({**self.keys, **kind, **keys})

    def _cells(self, line: int, cells: list[str]) -> None:
        first = self.header[0]
        if first == "workers" and len(cells) == len(self.header):
            self._simulated(line, cells)
        elif first == "Pass" and len(cells) == 3:
            for name, text in zip(("lower bound", "upper bound"), cells[1:], strict=True):
                part = {"Fwd": "forward", "Bwd": "backward"}.get(cells[0], cells[0])
                value = number_at(self.source, "a time", text, line)
                self._row("model", f"{part} time", "predicted", value, variant=name)
        elif first == "layer" and len(cells) >= 4:
            self._layer(line, cells)
        else:
            self.cut += 1

    def _simulated(self, line: int, cells: list[str]) -> None:
        values = dict(zip(self.header, cells, strict=True))
        keys = {"workers": values.pop("workers"), "batch": values.pop("batch_size")}
        values.pop("iter", None)
        for name, text in values.items():
            value = number_at(self.source, "a time", text, line)
            if name in _PARTS:
                self._row("model", _PARTS[name], "predicted", value, **keys)
            else:
                self._row("collective", "time", "predicted", value, collective=name, **keys)

    def _layer(self, line: int, cells: list[str]) -> None:
        ours, *measured = (number_at(self.source, "a time", text, line) for text in cells[1:4])
        whole = cells[0] == "Sum"
        keys: dict[str, Any] = {} if whole else {"kernel": cells[0]}
        # An executor that did not run has a time of 0.
        ran: list[tuple[str | None, float | None]]
        ran = [(n, t) for n, t in zip(("cudnn", "tensorflow"), measured, strict=True) if t > 0]
        for name, time in ran or [(None, None)]:
            fields = {"measured": time, "executor": name, "run": self.keys.get("model"), **keys}
            self._row("model" if whole else "kernel", "time", "predicted", ours, **fields)


_tool = ToolFormats("Paleo", gives="both", reference="hardware")


@_tool.reads(
    "paleo-output",
    "output of the command line",
    "kernel, model, collective: time, compute time, forward time, backward time, update time (ms)",
    _recognise,
    limits="The time of a whole iteration with communication is not in the output.",
)
def _read(source: Source) -> Rows:
    output = _Output(source)
    for line, text in enumerate(source.lines(), start=1):
        output.take(line, text)
    return Rows(output.rows, dropped={"row of a table that is cut off": output.cut})


def _is_network(source: Source) -> bool:
    names = source.json_names
    return "layers" in names and b'"parents"' in source.head and b'"type"' in source.head


_tool.knows(
    "paleo-network",
    "description of a network (nets/*.json)",
    _is_network,
    "The file holds layers and their shapes, but no times.",
)

FORMATS = _tool.formats
