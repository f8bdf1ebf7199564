"""The JSON file of rocprofv3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.results import Dropped

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_json"]

#: Kinds of copies, where the file does not name them.
_COPIES = ("NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE")


class _Record(msgspec.Struct, gc=False):
    """A dispatch of a kernel or a copy, with what is used of it; anything may stand there."""

    start_timestamp: Any = None
    end_timestamp: Any = None
    operation: Any = None
    dispatch_info: Any = None
    stream_id: Any = None
    src_agent_id: Any = None
    dst_agent_id: Any = None
    bytes: Any = None


class _Records(msgspec.Struct):
    kernel_dispatch: list[_Record] = []
    memory_copy: list[_Record] = []


class _Process(msgspec.Struct):
    """One process; the calls of the host, which may be most of the file, are passed over."""

    metadata: Any = None
    agents: Any = None
    strings: Any = None
    kernel_symbols: Any = None
    buffer_records: _Records = msgspec.field(default_factory=_Records)


class _File(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


def read_json(source: Source) -> Output:
    """Read the dispatches and copies of all processes of a file."""
    import polars as pl

    try:
        found = msgspec.json.decode(source.text, type=_File)
    except msgspec.ValidationError as error:
        raise source.error(f"not as rocprofv3 writes it ({error}). Copy it again.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise source.error(f"not valid JSON ({error}). It may be cut off: copy it again.") from None
    rows: list[dict[str, Any]] = []
    bad = 0
    for process in found.processes:
        names, devices = _kernels(process), _devices(process)
        pid = _whole(_dict(process.metadata).get("pid"))
        copies = _operations(process, "MEMORY_COPY")
        records = process.buffer_records
        made = [_dispatch(one, names, devices) for one in records.kernel_dispatch]
        made += [_copy(one, copies, devices) for one in records.memory_copy]
        fine = [{**row, "process": pid} for row in made if row is not None]
        bad += len(made) - len(fine)
        rows += fine
    if not rows:
        raise source.error(
            f"no kernel that ran in it ({bad} records without times). Profile with --kernel-trace."
        )
    frame = _frame(rows).with_columns(
        tool=pl.lit("rocprof"), level=pl.lit("kernel"), quantity=pl.lit("time"), unit=pl.lit("ns")
    )
    dropped = [Dropped("records without times", bad)] if bad else []
    return output(source.name, "rocprof-json", frame, dropped=dropped)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    columns = list(dict.fromkeys(key for row in rows for key in row))
    return pl.DataFrame(
        {column: [row.get(column) for row in rows] for column in columns}, strict=False
    )


def _dispatch(
    record: _Record, names: dict[int, str], devices: dict[int, str]
) -> dict[str, Any] | None:
    times = _times(record)
    if times is None:
        return None
    info = _dict(record.dispatch_info)
    kernel = _whole(info.get("kernel_id"))
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
        "dispatch": _whole(info.get("dispatch_id")),
        "stream": stream if stream is not None else _handle(info.get("queue_id")),
        "grid": _shape(info.get("grid_size")),
        "block": _shape(info.get("workgroup_size")),
    }


def _copy(record: _Record, kinds: list[str], devices: dict[int, str]) -> dict[str, Any] | None:
    times = _times(record)
    if times is None:
        return None
    kind = _whole(record.operation)
    known = kinds or list(_COPIES)
    name = known[kind] if kind is not None and 0 <= kind < len(known) else ""
    agents = [_handle(one) for one in (record.dst_agent_id, record.src_agent_id)]
    device = next((devices[one] for one in agents if one in devices), None)
    return {
        **times,
        "kernel": f"copy {name.removeprefix('MEMORY_COPY_')}".strip(),
        "kernel_class": "memcpy",
        "device": device,
        "stream": _handle(record.stream_id),
        "bytes": _whole(record.bytes),
    }


def _times(record: _Record) -> dict[str, Any] | None:
    start, end = _whole(record.start_timestamp), _whole(record.end_timestamp)
    if start is None or end is None or end < start:
        return None
    return {"measured": float(end - start), "start": start}


def _kernels(process: _Process) -> dict[int, str]:
    """Return the names of kernels; the demangled one, as the other profilers write it."""
    names = ("formatted_kernel_name", "kernel_name")
    return _named(process.kernel_symbols, "kernel_id", names)


def _devices(process: _Process) -> dict[int, str]:
    return _named(process.agents, "id", ("product_name", "name"))


def _named(records: Any, key: str, names: Sequence[str]) -> dict[int, str]:
    """Return the first name that each record has, by its number."""
    found = {}
    for record in _dicts(records):
        number = _handle(record.get(key))
        texts = (record.get(one) for one in names)
        name = next((one for one in texts if isinstance(one, str) and one), None)
        if number is not None and name is not None:
            found[number] = name
    return found


def _operations(process: _Process, kind: str) -> list[str]:
    strings = _dict(process.strings)
    for record in _dicts(strings.get("buffer_records")):
        if record.get("kind") == kind:
            return [str(one) for one in _list(record.get("operations"))]
    return []


def _shape(value: Any) -> str | None:
    axes = [_whole(_dict(value).get(axis)) for axis in "xyz"]
    return None if None in axes else "x".join(map(str, axes))


def _handle(value: Any) -> int | None:
    """Return a number that newer versions put into an object."""
    return _whole(value.get("handle") if isinstance(value, dict) else value)


def _whole(value: Any) -> int | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if fine else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]
