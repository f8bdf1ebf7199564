"""JSON files of ROCm: of rocprofv3, and the Chrome trace of rocprof 1.x."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from errcomp.readers.core import Rows, Source
from errcomp.readers.core.values import count_of, dict_of, dicts_of, list_of
from errcomp.results import Dropped
from errcomp.system.strict_json import DoubledNameError, refuse_doubles

#: Kinds of copies, if the file does not name them.
_COPIES = ("NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE")


class _Record(msgspec.Struct, gc=False):
    """The fields of a dispatch or a copy that are used; they may have any type."""

    start_timestamp: Any = None
    end_timestamp: Any = None
    operation: Any = None
    dispatch_info: Any = None
    stream_id: Any = None
    src_agent_id: Any = None
    dst_agent_id: Any = None
    bytes: Any = None


class _Records(msgspec.Struct):
    #: Undecoded, as the records of the host have the same names.
    kernel_dispatch: msgspec.Raw = msgspec.Raw(b"[]")
    memory_copy: msgspec.Raw = msgspec.Raw(b"[]")


class _Process(msgspec.Struct):
    """A process; the calls of the host, often most of the file, are skipped."""

    metadata: Any = None
    agents: Any = None
    strings: Any = None
    kernel_symbols: Any = None
    buffer_records: _Records = msgspec.field(default_factory=_Records)


class _File(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


def read_json(source: Source) -> Rows:
    """Read the dispatches and copies of all processes of a file."""
    whole = ("metadata", "agents", "strings", "kernel_symbols", "buffer_records")
    processes = source.json_as(
        _File, "rocprofv3", lambda file: dict.fromkeys(whole, len(file.processes))
    ).processes
    rows: list[dict[str, Any]] = []
    bad = 0
    for process in processes:
        names, devices = _kernels(process), _devices(process)
        pid = count_of(dict_of(process.metadata).get("pid"))
        copies = _operations(process, "MEMORY_COPY")
        records = process.buffer_records
        kernels = _records(source, records.kernel_dispatch)
        made = [_dispatch(record, names, devices) for record in kernels]
        made += [_copy(record, copies, devices) for record in _records(source, records.memory_copy)]
        fine = [{**row, "process": pid} for row in made if row is not None]
        bad += len(made) - len(fine)
        rows += fine
    if not rows:
        raise source.error(
            f"no kernel has times ({bad} records without times). Profile with --kernel-trace."
        )
    columns = dict.fromkeys(key for row in rows for key in row)
    table = {column: [row.get(column) for row in rows] for column in columns}
    return Rows(table, dropped={"records without times": bad})


def _records(source: Source, given: msgspec.Raw) -> list[_Record]:
    try:
        records = msgspec.json.decode(given, type=list[_Record])
        names = ("start_timestamp", "end_timestamp", "operation", "dispatch_info")
        refuse_doubles(
            bytes(given),
            {name: sum(getattr(record, name) is not None for record in records) for name in names},
        )
    except DoubledNameError as error:
        raise source.error(f"{error}. Copy the file again.") from None
    except msgspec.ValidationError as error:
        raise source.error(
            f"not in the form that rocprofv3 writes ({error}). Copy the file again."
        ) from None
    return records


def _dispatch(
    record: _Record, names: dict[int, str], devices: dict[int, str]
) -> dict[str, Any] | None:
    times = _times(record)
    if times is None:
        return None
    info = dict_of(record.dispatch_info)
    kernel = count_of(info.get("kernel_id"))
    stream = _handle(record.stream_id)
    name = names.get(kernel) if kernel is not None else None
    if name is None:
        name = "kernel without a name" if kernel is None else f"kernel {kernel}"
    agent = _handle(info.get("agent_id"))
    return {
        **times,
        "kernel": name,
        "kernel_class": name,
        "device": devices.get(agent) if agent is not None else None,
        "dispatch": count_of(info.get("dispatch_id")),
        "stream": stream if stream is not None else _handle(info.get("queue_id")),
        "grid": _shape(info.get("grid_size")),
        "block": _shape(info.get("workgroup_size")),
    }


def _copy(record: _Record, kinds: list[str], devices: dict[int, str]) -> dict[str, Any] | None:
    times = _times(record)
    if times is None:
        return None
    kind = count_of(record.operation)
    known = kinds or list(_COPIES)
    name = known[kind] if kind is not None and 0 <= kind < len(known) else ""
    agents = [_handle(agent) for agent in (record.dst_agent_id, record.src_agent_id)]
    device = next((devices[agent] for agent in agents if agent in devices), None)
    return {
        **times,
        "kernel": f"copy {name.removeprefix('MEMORY_COPY_')}".strip(),
        "kernel_class": "memcpy",
        "device": device,
        "stream": _handle(record.stream_id),
        "bytes": count_of(record.bytes),
    }


def _times(record: _Record) -> dict[str, Any] | None:
    start, end = count_of(record.start_timestamp), count_of(record.end_timestamp)
    if start is None or end is None or end < start:
        return None
    return {"measured": float(end - start), "start": start}


def _kernels(process: _Process) -> dict[int, str]:
    """Return the names of kernels; demangled, as in other profilers."""
    names = ("formatted_kernel_name", "kernel_name")
    return _named(process.kernel_symbols, "kernel_id", names)


def _devices(process: _Process) -> dict[int, str]:
    return _named(process.agents, "id", ("product_name", "name"))


def _named(records: Any, key: str, names: Sequence[str]) -> dict[int, str]:
    """Return the first name of each record, by its number."""
    named = {}
    for record in dicts_of(records):
        number = _handle(record.get(key))
        texts = (record.get(name) for name in names)
        name = next((text for text in texts if isinstance(text, str) and text), None)
        if number is not None and name is not None:
            named[number] = name
    return named


def _operations(process: _Process, kind: str) -> list[str]:
    strings = dict_of(process.strings)
    for record in dicts_of(strings.get("buffer_records")):
        if record.get("kind") == kind:
            return [str(operation) for operation in list_of(record.get("operations"))]
    return []


def _shape(value: Any) -> str | None:
    axes = [count_of(dict_of(value).get(axis)) for axis in "xyz"]
    return None if None in axes else "x".join(map(str, axes))


def _handle(value: Any) -> int | None:
    """Return a number that newer versions wrap in an object."""
    return count_of(value.get("handle") if isinstance(value, dict) else value)


# The JSON file of rocprof 1.x, which is a Chrome trace.

_TIMES = re.compile(rb'"BeginNs"\s*:\s*"?\d+"?\s*,\s*"EndNs"\s*:')
#: Names of processes in a trace whose events ran on a device.
_DEVICE = re.compile(r"\d*\s*(?:GPU\s*(?P<device>\d*)|COPY\w*)", re.IGNORECASE)
_COPY_NAME = re.compile(r"Copy(?:Host|Device|Peer)|hcMemcpy|MEMORY_COPY")


class _ChromeEvent(msgspec.Struct, gc=False):
    """The fields of an event that are used; times may be numbers or text."""

    ph: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    args: Any = None


class _ChromeFile(msgspec.Struct):
    events: list[_ChromeEvent] = msgspec.field(name="traceEvents")


def is_chrome(source: Source) -> bool:
    """Say whether this is a trace that rocprof 1.x wrote."""
    return source.json_names[:1] == ("traceEvents",) and _TIMES.search(source.head) is not None


def read_chrome(source: Source) -> Rows:
    """Read the kernels and copies; calls of the host are left out."""
    events = source.json_as(_ChromeFile, "rocprof", _decoded).events
    devices = _chrome_devices(events)
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
        start, end = (count_of(args.get(key), or_text=True) for key in ("BeginNs", "EndNs"))
        if start is None or end is None or end < start:
            bad += 1
            continue
        name = str(event.name or "kernel without a name")
        stream = next((args[key] for key in ("stream-id", "queue-id") if key in args), event.tid)
        rows.append(
            {
                "kernel": name,
                "kernel_class": "memcpy" if _COPY_NAME.match(name) else name,
                "measured": float(end - start),
                "start": start,
                "device_id": devices[process],
                "stream": None if stream is None else str(stream),
            }
        )
    if not rows:
        raise source.error(
            f"the file lists no kernel ({host} calls on the host, {bad} events without times). "
            "Profile with --hip-trace or --hsa-trace, and with --timestamp on."
        )
    counted = (("calls on the host", host), ("events without times", bad))
    return Rows(rows, dropped=[Dropped(why, n) for why, n in counted if n])


def _decoded(file: _ChromeFile) -> dict[str, int]:
    every = [dict_of(event.args) for event in file.events]
    counts = {name: sum(name in args for args in every) for name in ("BeginNs", "EndNs")}
    return counts | {"ph": sum(event.ph is not None for event in file.events)}


def _chrome_devices(events: list[_ChromeEvent]) -> dict[str, str | None]:
    """Return the processes that are devices, with the devices' numbers."""
    devices: dict[str, str | None] = {}
    for event in events:
        if event.ph == "M" and event.name == "process_name" and isinstance(event.args, dict):
            match = _DEVICE.fullmatch(str(event.args.get("name", "")).strip())
            if match is not None:
                devices[str(event.pid)] = match["device"] or None
    return devices
