"""The JSON export of Nsight Systems: one event a line."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from errcomp.errors import InputError
from errcomp.readers._nsys_sqlite import COPIES
from errcomp.readers.output import Output, output
from errcomp.readers.source import Source
from errcomp.results import Dropped

__all__ = ["is_lines", "read_lines"]

_TEXTS = re.compile(rb'\s*\{\s*"data"\s*:\s*\[\s*"')
_EVENT = b'"CudaEvent"'
#: How far the first event may stand behind the texts.
_MOST_TEXTS = 1 << 23
_COPY, _SET, _KERNEL = 1, 2, 3


class _Cuda(msgspec.Struct, gc=False):
    """What is used of an event of a GPU; numbers may be text."""

    start: Any = msgspec.field(default=None, name="startNs")
    end: Any = msgspec.field(default=None, name="endNs")
    device: Any = msgspec.field(default=None, name="deviceId")
    stream: Any = msgspec.field(default=None, name="streamId")
    kind: Any = msgspec.field(default=None, name="eventClass")
    kernel: Any = None
    memcpy: Any = None
    memset: Any = None


class _Line(msgspec.Struct, gc=False):
    data: Any = None
    cuda: _Cuda | None = msgspec.field(default=None, name="CudaEvent")


def is_lines(source: Source) -> bool:
    """Say whether this is an export of nsys in which each line is an event."""
    if _EVENT in source.head:
        return source.head.lstrip()[:1] == b"{" and b'"eventClass"' in source.head
    if _TEXTS.match(source.head) is None or b"\n" in source.head.strip():
        return False
    try:
        with source.open() as file:
            return _EVENT in file.read(_MOST_TEXTS)
    except InputError:
        return False


def read_lines(source: Source) -> Output:
    """Read kernels, copies and sets of memory."""
    decoder = msgspec.json.Decoder(_Line)
    texts: list[Any] = []
    rows: list[dict[str, Any]] = []
    bad = 0
    for number, text in enumerate(source.lines(), start=1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except msgspec.ValidationError:
            bad += _EVENT.decode() in text
            continue
        except (msgspec.DecodeError, RecursionError) as error:
            raise source.error(
                f"not valid JSON ({error}). The file may be cut off: export it again.", line=number
            ) from None
        if isinstance(line.data, list) and not texts:
            texts = line.data
        if line.cuda is None or line.cuda.kind not in (_COPY, _SET, _KERNEL):
            continue
        row = _row(line.cuda, texts)
        if row is None:
            bad += 1
        else:
            rows.append(row)
    if not rows:
        raise source.error(f"no work of a GPU in it ({bad} events without times). Trace CUDA.")
    dropped = [Dropped("events without times", bad)] if bad else []
    return output(source.name, "nsys-lines", rows, dropped=dropped)


def _row(event: _Cuda, texts: list[Any]) -> dict[str, Any] | None:
    start, end = _whole(event.start), _whole(event.end)
    if start is None or end is None or end < start:
        return None
    kernel = _dict(event.kernel)
    moved = _dict(event.memcpy if event.kind == _COPY else event.memset)
    if event.kind == _KERNEL:
        name = _name(kernel, texts)
        found: dict[str, Any] = {"kernel": name, "kernel_class": name}
        for shape in ("grid", "block"):
            axes = [_whole(kernel.get(f"{shape}{axis}")) for axis in "XYZ"]
            found[shape] = None if None in axes else "x".join(map(str, axes))
    elif event.kind == _COPY:
        way = _whole(moved.get("copyKind"))
        what = COPIES[way] if way is not None and way < len(COPIES) else ""
        found = {"kernel": f"[CUDA memcpy {what}]".replace(" ]", "]"), "kernel_class": "memcpy"}
    else:
        found = {"kernel": "[CUDA memset]", "kernel_class": "memset"}
    device, stream = _whole(event.device), _whole(event.stream)
    return {
        "tool": "Nsight Systems",
        "level": "kernel",
        "quantity": "time",
        "unit": "ns",
        "measured": float(end - start),
        "start": start,
        **found,
        "device_id": device,
        "stream": stream,
        "bytes": _whole(moved.get("sizebytes")),
    }


def _name(kernel: dict[str, Any], texts: list[Any]) -> str:
    for key in ("demangledName", "shortName"):
        number = _whole(kernel.get(key))
        if number is not None and number < len(texts) and texts[number]:
            return str(texts[number])
    return "kernel without a name"


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if fine else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
