"""The JSON file of rocprof 1.x, which is a Chrome trace."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.results import Dropped

__all__ = ["is_chrome", "read_chrome"]

_TIMES = re.compile(rb'"BeginNs"\s*:\s*"?\d+"?\s*,\s*"EndNs"\s*:')
#: What the processes of a trace are called whose events ran on a device.
_DEVICE = re.compile(r"\d*\s*(?:GPU\s*(?P<device>\d*)|COPY\w*)", re.IGNORECASE)
_COPY = re.compile(r"Copy(?:Host|Device|Peer)|hcMemcpy|MEMORY_COPY")


class _Event(msgspec.Struct, gc=False):
    """What is used of an event; the times may be numbers or text."""

    ph: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    args: Any = None


class _File(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents")


def is_chrome(source: Source) -> bool:
    """Say whether this is a trace that rocprof 1.x wrote."""
    return source.json_names[:1] == ("traceEvents",) and _TIMES.search(source.head) is not None


def read_chrome(source: Source) -> Output:
    """Read the kernels and copies; calls of the host are left out."""
    try:
        events = msgspec.json.decode(source.text, type=_File).events
    except msgspec.ValidationError as error:
        raise source.error(f"not as rocprof writes it ({error}). Copy it again.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise source.error(f"not valid JSON ({error}). It may be cut off: copy it again.") from None
    devices = _devices(events)
    rows: list[dict[str, Any]] = []
    host = bad = 0
    for event in events:
        if event.ph != "X":
            continue
        process = str(event.pid)
        if process not in devices:
            host += 1
            continue
        args = event.args if isinstance(event.args, dict) else {}
        start, end = _whole(args.get("BeginNs")), _whole(args.get("EndNs"))
        if start is None or end is None or end < start:
            bad += 1
            continue
        name = str(event.name or "kernel without a name")
        stream = next((args[one] for one in ("stream-id", "queue-id") if one in args), event.tid)
        rows.append(
            {
                "tool": "rocprof",
                "level": "kernel",
                "quantity": "time",
                "unit": "ns",
                "kernel": name,
                "kernel_class": "memcpy" if _COPY.match(name) else name,
                "measured": float(end - start),
                "start": start,
                "device_id": devices[process],
                "stream": None if stream is None else str(stream),
            }
        )
    if not rows:
        raise source.error(
            f"no kernel in it ({host} calls of the host, {bad} events without times). Profile with "
            "--hip-trace or --hsa-trace, and with --timestamp on."
        )
    counted = (("calls of the host", host), ("events without times", bad))
    dropped = [Dropped(why, n) for why, n in counted if n]
    return output(source.name, "rocprof-chrome", rows, dropped=dropped)


def _devices(events: list[_Event]) -> dict[str, str | None]:
    """Return the processes that stand for devices, and the numbers of those."""
    found: dict[str, str | None] = {}
    for event in events:
        if event.ph == "M" and event.name == "process_name" and isinstance(event.args, dict):
            match = _DEVICE.fullmatch(str(event.args.get("name", "")).strip())
            if match is not None:
                found[str(event.pid)] = match["device"] or None
    return found


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if fine else None
