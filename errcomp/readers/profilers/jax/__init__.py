"""JAX and XLA: kernels and steps from the profiler's ``xplane.pb`` and ``trace.json.gz``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.profilers.jax.xplane import Event, Events, Line, Plane, events_of, planes_of
from errcomp.readers.profilers.spans import around, outermost
from errcomp.system.strict_json import refuse_doubles

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


__all__ = ["FORMATS", "read"]

# Rows from a trace of JAX: kernels of devices, and the steps they belong to.

_DEVICE, _HOST = "/device:", "/host:"
_NO_DEVICE = "/device:CUSTOM:"
_STREAM = re.compile(r"Stream #")
_OPS, _STEPS, _MODULES = "XLA Ops", "Steps", "XLA Modules"
_NO_RUN = "outside of steps"
#: The name of a TPU operation is its whole text: "%fusion.1 = f32[8]{0} fusion(...)".
_HLO = re.compile(r"%?([^\s=]+) = .*", re.DOTALL)
_LAUNCH = re.compile(r"(?:cu|cuda|hip|hsa_?)[A-Z]")
_TEXTS = ("kernel", "kernel_class", "layer", "model", "operation")
#: Statistics of events that `_texts` uses.
_USED = ("hlo_category", "hlo_op", "hlo_module", "name", "tf_op")

Keep = Callable[[Event], bool]
#: The planes of a trace, and notes.
Planes = tuple[list[Plane], list[str]]


def read_planes(source: Source, decode: Callable[[], Planes]) -> Rows:
    """Make rows of a trace; errors of ``decode`` and of events become an InputError."""
    import polars as pl

    try:
        planes, notes = decode()
        devices = [plane for plane in planes if plane.name.startswith(_DEVICE)]
        devices = [plane for plane in devices if not plane.name.startswith(_NO_DEVICE)]
        beginning = min((line.start_ns for plane in planes for line in plane.lines), default=0)
        frames, inner = _of_devices(devices, beginning)
        if not frames:
            hosts = [plane for plane in planes if plane.name.startswith(_HOST)]
            frames, inner = _of_hosts(hosts, beginning)
            notes += ["The operations ran on the CPU: several threads may share an operation."]
    except ValueError as error:
        raise source.error(
            f"not a trace of XLA ({error}). The file may be incomplete: copy it again."
        ) from None
    if not frames:
        raise source.error(
            "the trace has no operations on a device or in XLA. Trace a program that computes, "
            "and wait for its results (block_until_ready) before the trace ends."
        )
    rows = pl.concat(frames, how="diagonal_relaxed")
    return Rows(rows, dropped={"operations that contain other operations": inner}, notes=notes)


def _of_devices(planes: Sequence[Plane], beginning: int) -> tuple[list[pl.DataFrame], int]:
    """Return the kernels and steps of devices, and the number of operations left out."""
    joined: list[pl.DataFrame] = []
    inner = 0
    several = sum(any(line.name == _STEPS for line in plane.lines) for plane in planes) > 1
    for plane in planes:
        # Lines derived from the streams of a GPU repeat the streams.
        streams = [line for line in plane.lines if _STREAM.match(line.name) and len(line)]
        lines = streams or [line for line in plane.lines if line.name == _OPS]
        frames, gone = _kernels(lines, beginning, lambda event: True, nested=not streams)
        inner += gone
        where = plane.name.removeprefix(_DEVICE)
        steps = _steps_of_device(plane, beginning)
        joined += _joined(plane, frames, steps, f" on {where}" if several else "", where)
    return joined, inner


def _of_hosts(planes: Sequence[Plane], beginning: int) -> tuple[list[pl.DataFrame], int]:
    """Return the operations that ran on the host, with the steps marked there."""
    joined: list[pl.DataFrame] = []
    inner = 0
    for plane in planes:
        frames, gone = _kernels(plane.lines, beginning, _is_operation, nested=True)
        inner += gone
        # jax.profiler.StepTraceAnnotation
        steps = [
            (start, start + duration, f"{event.name} {event.stats['step_num']}")
            for line in plane.lines
            for start, duration, event in _some(line, beginning, "step_num")
        ]
        joined += _joined(plane, frames, steps, "", None)
    return joined, inner


def _is_operation(event: Event) -> bool:
    """Say whether an event of the host is an operation of XLA, not the launch of one."""
    return bool(event.stats.get("hlo_op")) and _LAUNCH.match(event.name) is None


def _timed(line: Line, beginning: int, wanted: Collection[str] = ()) -> Events:
    """Return the events of a line, their starts in ps from the beginning of the trace."""
    found = line.columns(wanted)
    offset = (line.start_ns - beginning) * 1000
    start, duration, count = found.start, found.duration, found.count
    if abs(offset) >= _FAR or ((start <= -_FAR) | (start >= _FAR)).any():
        start = start.astype(object)  # whose sums do not overflow
    start = start + offset
    fine = (duration >= 0) & (duration < _MOST) & (start > -_MOST) & (start < _MOST) & (count > 0)
    if not fine.all():
        bad = int(np.argmin(fine.astype(bool)))
        raise ValueError(
            f"invalid event: start {found.start[bad]} ps, duration {duration[bad]} ps, "
            f"count {count[bad]}"
        )
    start, duration, count = (column.astype(np.int64) for column in (start, duration, count))
    return Events(start, duration, count, found.kind, found.kinds)


def _some(line: Line, beginning: int, wanted: str = "") -> Iterator[tuple[int, int, Event]]:
    """Yield start, duration and kind of events, or of those with a statistic."""
    found = _timed(line, beginning, (wanted,))
    with_it = [not wanted or event.stats.get(wanted) is not None for event in found.kinds]
    for i in np.flatnonzero(np.array(with_it, dtype=bool)[found.kind]).tolist():
        yield int(found.start[i]), int(found.duration[i]), found.kinds[found.kind[i]]


def _kernels(
    lines: Sequence[Line], beginning: int, keep: Keep, *, nested: bool
) -> tuple[list[pl.DataFrame], int]:
    """Return a frame for each line with the wanted events."""
    import polars as pl

    frames = []
    inner = 0
    for line in lines:
        found = _timed(line, beginning, _USED)
        kept = np.array([keep(event) for event in found.kinds], dtype=bool)[found.kind]
        if not kept.any():
            continue
        starts, durations = found.start[kept], found.duration[kept]
        counts, kind = found.count[kept], found.kind[kept]
        texts = zip(_TEXTS, zip(*map(_texts, found.kinds), strict=True), strict=True)
        frame = pl.DataFrame(
            {name: pl.Series(values, dtype=pl.String).gather(kind) for name, values in texts}
            | {"start": starts, "count": counts, "measured": durations / counts}
        ).with_columns(level=pl.lit("kernel"), stream=pl.lit(line.name))
        if nested:
            alone = _innermost(starts, starts + durations)
            inner += int((~alone).sum())
            frame = frame.filter(alone)
        frames.append(frame)
    return frames, inner


def _texts(event: Event) -> tuple[str | None, ...]:
    """Return the name of a kernel, its class, its operation, its program and its source line."""
    stats = event.stats
    match = _HLO.fullmatch(event.name)
    name = (match[1] if match else event.name).strip() or "kernel without a name"
    lower = name.lower()
    moved = next((word for word in ("memcpy", "memset") if lower.startswith(word)), None)
    return (
        name,
        moved or _text_or_none(stats.get("hlo_category")) or name,
        _text_or_none(stats.get("hlo_op")),
        _text_or_none(stats.get("hlo_module")),
        _text_or_none(stats.get("name") or stats.get("tf_op")),
    )


def _innermost(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which events contain no other: the time of a loop includes its body."""
    order = np.lexsort((-end, start))
    first, last = start[order], end[order]
    alone = np.ones(len(start), dtype=bool)
    alone[order[:-1]] = ~((first[1:] < last[:-1]) & (last[1:] <= last[:-1]))
    return alone


def _steps_of_device(plane: Plane, beginning: int) -> list[tuple[int, int, str]]:
    """Return the steps of a device, or else of the executions of programs: start, end and name."""
    steps: list[tuple[int, int, str]] = []
    for wanted, prefix in ((_STEPS, "step "), (_MODULES, "")):
        steps = steps or [
            (start, start + duration, prefix + event.name)
            for line in plane.lines
            if line.name == wanted
            for start, duration, event in _some(line, beginning)
        ]
    return steps


def _joined(
    plane: Plane,
    frames: Sequence[pl.DataFrame],
    candidates: list[tuple[int, int, str]],
    suffix: str,
    where: str | None,
) -> list[pl.DataFrame]:
    """Assign the kernels of a plane to its steps, and add rows for the steps."""
    import polars as pl

    if not frames:
        return []
    texts = (plane.stats.get(key) for key in ("device_type_string", "device_vendor"))
    device = next((text for text in texts if isinstance(text, str) and text), None)
    common = {"device": pl.lit(device, pl.String), "device_id": pl.lit(where, pl.String)}
    if not candidates:
        return [frame.with_columns(**common) for frame in frames]
    spans = np.array([step[:2] for step in candidates], dtype=np.int64)
    outer = outermost(spans[:, 0], spans[:, 1])
    steps = sorted(step for step, is_outer in zip(candidates, outer, strict=True) if is_outer)
    names = [name + suffix for name in _numbered([name for _, _, name in steps])]
    starts, ends = np.array([step[:2] for step in steps], dtype=np.int64).T
    rows = pl.DataFrame(
        {
            "run": names,
            "repeat": np.arange(1, len(steps) + 1),
            "start": starts,
            "measured": (ends - starts).astype(np.float64),
        }
    ).with_columns(level=pl.lit("model"), **common)
    runs = pl.Series([*names, _NO_RUN], dtype=pl.String)
    kernels = []
    for frame in frames:
        inside = around(starts, ends, frame["start"].to_numpy())
        run = runs.gather(np.where(inside < 0, len(names), inside))
        kernels.append(frame.with_columns(run=run, **common))
    return [*kernels, rows]


def _numbered(names: Sequence[str]) -> list[str]:
    """Return a unique name for each step."""
    times, seen = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if times[name] == 1 else f"{name} #{seen[name]}")
    return numbered


def _text_or_none(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


# The Chrome trace that JAX writes with ``xplane.pb``, as planes, lines and events.

_PROCESS = re.compile(rb'"name"\s*:\s*"(?:[\w.-]+ )?/(?:device:[A-Z]\w*:\d|host:CPU)')
#: The name of a process may begin with the machine's name.
_MACHINE = re.compile(r"([\w.-]+) (/(?:device|host):.*)", re.DOTALL)
_PS_IN_US = 1e6
#: Largest picoseconds that fit into 64 bits; sums of two smaller ones do, too.
_MOST, _FAR = 1 << 62, 1 << 61
#: The profiler drops events above this number.
_MOST_EVENTS = 1_000_000


class _Event(msgspec.Struct, gc=False):
    """The fields of an event that are used; they may have any type."""

    ph: Any = None
    pid: Any = None
    tid: Any = None
    name: Any = None
    ts: Any = None
    dur: Any = None
    args: Any = None


class _File(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents")


class _Line(Line):
    """A thread whose events are already decoded."""

    def __init__(self, name: str, given: Sequence[Event]) -> None:
        none = np.zeros(0, np.int64)
        super().__init__(name, 0, b"", none, none, Plane())
        self._given = given

    def columns(self, wanted: Collection[str]) -> Events:
        return events_of(self._given)

    def __len__(self) -> int:
        return len(self._given)


def is_trace(source: Source) -> bool:
    """Say whether this is a trace of the profiler of XLA."""
    names = source.json_names
    return "traceEvents" in names and _PROCESS.search(source.head) is not None


def _planes(source: Source) -> tuple[list[Plane], list[str]]:
    """Return the processes of a trace as planes.

    Raises
    ------
    ValueError
        It is not a trace, or an event has no time.
    """
    try:
        events = msgspec.json.decode(source.text, type=_File).events
        fields = ("ph", "pid", "tid", "name", "ts", "dur", "args")
        refuse_doubles(
            source.text,
            {name: sum(getattr(event, name) is not None for event in events) for name in fields},
        )
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    names: dict[tuple[str, str], str] = {}
    by_process: dict[str, dict[str, list[Event]]] = {}
    number = 0
    for event in events:
        process, thread = str(event.pid), str(event.tid)
        if event.ph == "M" and isinstance(event.args, dict):
            if event.name in ("process_name", "thread_name"):
                key = (process, thread if event.name == "thread_name" else "")
                names[key] = str(event.args.get("name", ""))
        elif event.ph == "X":
            by_process.setdefault(process, {}).setdefault(thread, []).append(_event(event))
            number += 1
    processes = _processes({process: names.get((process, ""), process) for process in by_process})
    planes = [
        Plane(
            processes[process],
            [_Line(names.get((process, tid), tid), given) for tid, given in threads.items()],
        )
        for process, threads in by_process.items()
    ]
    notes = []
    if number >= _MOST_EVENTS:
        notes.append(
            f"The trace has {number:,} events: the profiler drops events above a million. The file "
            "xplane.pb has all events."
        )
    return planes, notes


def _processes(names: dict[str, str]) -> dict[str, str]:
    """Return the names, followed by the machine's name if there are several machines."""
    split = {process: _MACHINE.fullmatch(name) for process, name in names.items()}
    several = len({match[1] for match in split.values() if match}) > 1
    return {
        process: name if match is None else match[2] + (f" on {match[1]}" if several else "")
        for (process, name), match in zip(names.items(), split.values(), strict=True)
    }


def _event(event: _Event) -> Event:
    name = str(event.name or "event without a name")
    times = []
    for key, value in (("ts", event.ts), ("dur", event.dur)):
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"{key} of {name[:40]!r} must be a number, got {str(value)[:40]!r}")
        if not abs(value) < _MOST / _PS_IN_US:
            raise ValueError(f"{key} of {name[:40]!r} is out of range: {value}")
        times.append(round(value * _PS_IN_US))
    stats = event.args if isinstance(event.args, dict) else {}
    return Event(name, times[0], times[1], 1, stats)


def read(path: AnyPath) -> Output:
    r"""Read traces of the profiler of JAX and TensorFlow (``*.xplane.pb``, ``*.trace.json.gz``).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files. The schema (XSpace) is built in: no protobuf
        library is needed. A trace as JSON is read only without an ``xplane.pb`` in its folder,
        which has the same events.

    Returns
    -------
    Output
        Measured times in ps: the ``time`` of all work on each stream of a GPU or, on other devices,
        of each operation of XLA; without work on a device, of the operations of XLA on the CPU.
        ``layer`` is the operation of the compiled program, ``model`` the program. Steps marked in
        the trace, or else executions of programs, are runs (level model). ``start`` counts from the
        beginning of the trace.

    Raises
    ------
    InputError
        A file is damaged, or holds only events of the host.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> def message(number, content):
    ...     return bytes([number << 3 | 2, len(content)]) + content
    >>> kernel = message(4, b"\x08\x01" + message(2, b"\x08\x01" + message(2, b"fusion.1")))
    >>> event = message(4, b"\x08\x01\x10\x05\x18\x64")  # offset 5, duration 100
    >>> plane = message(2, b"/device:GPU:0") + message(3, message(2, b"Stream #1") + event) + kernel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "host.xplane.pb"
    >>> _ = path.write_bytes(message(1, plane))
    >>> read(path).rows.select("kernel", "measured", "unit", "stream").rows()
    [('fusion.1', 100.0, 'ps', 'Stream #1')]
    """
    return read_as(path, FORMATS)


#: A plane, its length, perhaps a number, and its name.
_PLANE = re.compile(
    rb"\n[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?\x12[\x01-\x7f]"
    rb"(?:/host:|/device:|Task Environment|#Chip)",
    re.DOTALL,
)


_tool = ToolFormats(
    "JAX",
    gives="measurements",
    reference="hardware",
    limits="Operations that contain others (while, conditional) are left out if their parts are "
    "in the trace. Times of the host are left out.",
)


@_tool.reads(
    "jax-xplane",
    "*.xplane.pb",
    "kernel, model: time (ps)",
    lambda source: _PLANE.match(source.head) is not None,
    sample="2026 (AMD GPU)",
)
def read_xplane(source: Source) -> Rows:
    """Read the planes of the devices; or of the host if no device did any work."""
    return read_planes(source, lambda: planes_of(source.content()))


@_tool.reads("jax-trace", "*.trace.json.gz", "kernel, model: time (ps)", is_trace)
def read_trace(source: Source) -> Rows:
    """Read the planes of the devices; or of the host if no device did any work."""
    beside = next(source.path.parent.glob("*.xplane.pb"), None)
    if beside is not None:
        raise source.error(
            f"the file repeats the events of {beside.name} in the same folder. Give {beside.name}."
        )
    return read_planes(source, lambda: _planes(source))


FORMATS = _tool.formats
