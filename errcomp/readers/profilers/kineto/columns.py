"""What is used of the events of a trace, as columns."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.readers.profilers.kineto.events import NO_ARGS, Args, Event, Events
from errcomp.results import Dropped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.readers.core.source import Source

__all__ = ["KERNEL", "MEMCPY", "MEMSET", "Collective", "Sync", "Table", "Trace", "read_trace"]

KERNEL, MEMCPY, MEMSET = range(3)
#: Categories in capitals are those of PyTorch before 1.12.
_GPU = {
    **dict.fromkeys(("kernel", "Kernel", "concurrent_kernel"), KERNEL),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), MEMCPY),
    **dict.fromkeys(("gpu_memset", "Memset"), MEMSET),
}
_RUNTIME = frozenset(
    f"{who}_{what}"
    for who in ("cuda", "hip", "xpu", "mtia", "privateuse1")
    for what in ("runtime", "driver")
) | {"Runtime"}
_KINDS: dict[str | None, str] = {
    **dict.fromkeys(_GPU, "gpu"),
    **dict.fromkeys(_RUNTIME, "runtime"),
    **dict.fromkeys(("cpu_op", "Operator"), "op"),
    "user_annotation": "annotation",
    "cuda_sync": "sync",
    "ac2g": "flow",
}
#: The profiler of PyTorch before Kineto gives no categories, but says whose functions they are.
_OLD_KINDS = {"CPU functions": "op", "CUDA functions": "gpu"}
_STEP, _UNNAMED = "ProfilerStep", "unnamed"
#: Times are microseconds; 10^15 are 30 years.
_LONGEST, _LATEST = 1e15, 1e18
_WHOLE = 1 << 62
_BYTES = {
    **dict.fromkeys(("double", "long", "float64", "int64", "long int"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16"), 2),
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
}


class Names(dict[Any, int]):
    """A number for each thing seen, in order of appearance."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class Table:
    """Columns that grow: ``ts`` and ``dur`` in microseconds, and whole numbers of other names."""

    def __init__(self, *others: str) -> None:
        self._columns: dict[str, array[Any]] = {"ts": array("d"), "dur": array("d")}
        self._columns.update((name, array("q")) for name in others)

    def __len__(self) -> int:
        return len(self._columns["ts"])

    def add(self, events: Sequence[Event], *others: Iterable[int]) -> None:
        """Append events, and for each of the other columns its values."""
        times = ([event.ts or 0.0 for event in events], [event.dur or 0.0 for event in events])
        for column, values in zip(self._columns.values(), (*times, *others), strict=True):
            column.extend(values)

    def put(self, name: str, row: int, value: int) -> None:
        """Change one value."""
        self._columns[name][row] = value

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        # Without a copy: nothing is added any more where columns are asked for.
        return np.frombuffer(column, dtype=column.typecode) if column else np.empty(0, np.int64)


_GPU_COLUMNS = ("name", "kind", "device", "stream", "correlation", "external", "bytes")
_CALL_COLUMNS = ("name", "thread", "correlation", "external")
_OP_COLUMNS = ("name", "thread", "external", "shape")


@dataclass(frozen=True, slots=True)
class Collective:
    """What a communication kernel says of its collective; -1 for what it does not."""

    name: str
    ranks: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A wait that the trace explains: of a stream for an event, or of the host."""

    kind: str
    stream: Any
    device: Any
    wait_on_stream: Any
    wait_on: int
    correlation: int


@dataclass(slots=True)
class Trace:
    """A trace as columns; names, streams and the like are numbers of a list."""

    meta: dict[str, Any] = field(default_factory=dict)
    gpu: Table = field(default_factory=lambda: Table(*_GPU_COLUMNS))
    runtime: Table = field(default_factory=lambda: Table(*_CALL_COLUMNS))
    ops: Table = field(default_factory=lambda: Table(*_OP_COLUMNS))
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    collectives: dict[int, Collective] = field(default_factory=dict)
    span: tuple[float, float] = (math.inf, -math.inf)
    names: list[str] = field(default_factory=list)
    shapes: list[bytes] = field(default_factory=list)
    streams: list[Any] = field(default_factory=list)
    devices: list[Any] = field(default_factory=list)
    dropped: tuple[Dropped, ...] = ()


def read_trace(source: Source) -> Trace:
    """Read a trace.

    Raises
    ------
    InputError
        It is cut off, or no JSON.
    """
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._events = Events(source)
        self._trace = Trace()
        self._names, self._shapes = Names(), Names()
        self._streams, self._devices, self._threads = Names(), Names(), Names()
        # Flows say what correlations say too: they are for traces without.
        self._with_flows = True
        self._flows: dict[tuple[int, float, str], int] = {}
        self._lonely: dict[tuple[int, float, str], tuple[Table, int]] = {}
        self._impossible = self._unfinished = 0

    def read(self) -> Trace:
        """Read all blocks."""
        add = {
            "gpu": self._add_gpu,
            "runtime": self._add_runtime,
            "op": self._add_ops,
            "annotation": self._add_annotations,
            "sync": self._add_syncs,
            "flow": self._add_flows,
        }
        kinds = dict(_KINDS)
        for block in self._events:
            groups: dict[str, list[Event]] = {kind: [] for kind in add}
            for event in block:
                kind = kinds.get(event.cat)
                if kind is not None:
                    groups[kind].append(event)
                elif event.cat is None and isinstance(event.pid, str) and event.pid in _OLD_KINDS:
                    groups[_OLD_KINDS[event.pid]].append(event)
            for kind, events in groups.items():
                usable = self._usable(events) if kind != "flow" else events
                if usable:
                    add[kind](usable)
            if not self._with_flows:
                kinds.pop("ac2g", None)
        return self._finish()

    def _usable(self, events: list[Event]) -> list[Event]:
        found = [
            event
            for event in events
            if event.ph == "X"
            and event.ts is not None
            and event.dur is not None
            and 0 <= event.dur <= _LONGEST
            and -_LATEST <= event.ts <= _LATEST
        ]
        if len(found) < len(events):
            complete = [event for event in events if event.ph == "X"]
            timed = [e for e in complete if e.ts is not None and e.dur is not None]
            self._unfinished += len(complete) - len(timed)
            self._impossible += len(timed) - len(found)
        return found

    def _add_gpu(self, events: list[Event]) -> None:
        args = [event.args or NO_ARGS for event in events]
        correlations = _numbers([one.correlation for one in args])
        if self._with_flows and max(correlations) >= 0:
            self._with_flows = False
        first = len(self._trace.gpu)
        self._without(self._trace.gpu, events, correlations, "f")
        for i, one in enumerate(args):
            if one.collective is not None:
                self._trace.collectives[first + i] = _collective(one)
        pairs = list(zip(events, args, strict=True))
        self._trace.gpu.add(
            events,
            [self._names[event.name or _UNNAMED] for event in events],
            [_GPU.get(event.cat or "", KERNEL) for event in events],
            [self._devices[_plain(a.device, _of_pid(e.pid, e.tid))] for e, a in pairs],
            [self._streams[_plain(a.stream, e.tid)] for e, a in pairs],
            correlations,
            _externals(args),
            _numbers([one.bytes for one in args]),
        )

    def _add_runtime(self, events: list[Event]) -> None:
        args = [event.args or NO_ARGS for event in events]
        correlations = _numbers([one.correlation for one in args])
        self._without(self._trace.runtime, events, correlations, "s")
        self._trace.runtime.add(
            events,
            [self._names[event.name or _UNNAMED] for event in events],
            self._of_threads(events),
            correlations,
            _externals(args),
        )

    def _add_ops(self, events: list[Event]) -> None:
        steps = [event for event in events if (event.name or "").startswith(_STEP)]
        if steps:
            self._add_annotations(steps)
            events = [event for event in events if not (event.name or "").startswith(_STEP)]
        args = [event.args or NO_ARGS for event in events]
        self._trace.ops.add(
            events,
            [self._names[event.name or _UNNAMED] for event in events],
            self._of_threads(events),
            _externals(args),
            [self._shapes[bytes(one.dims)] for one in args],
        )

    def _add_annotations(self, events: list[Event]) -> None:
        for event in events:
            name, ts, dur = event.name or "", event.ts or 0.0, event.dur or 0.0
            if name.startswith(_STEP):
                self._trace.steps.append((name, ts, ts + dur))
            low, high = self._trace.span
            self._trace.span = min(low, ts), max(high, ts + dur)

    def _add_syncs(self, events: list[Event]) -> None:
        for event in events:
            one = event.args or NO_ARGS
            self._trace.syncs.append(
                Sync(
                    str(one.sync or event.name),
                    _plain(one.stream, event.tid),
                    _plain(one.device, event.pid),
                    _plain(one.wait_on_stream, None),
                    _whole(one.wait_on),
                    _whole(one.correlation),
                )
            )

    def _add_flows(self, events: list[Event]) -> None:
        events = [event for event in events if event.ts is not None]
        for event, thread in zip(events, self._of_threads(events), strict=True):
            self._flows[thread, event.ts or 0.0, event.ph or ""] = _whole(event.id)

    def _without(
        self, table: Table, events: list[Event], correlations: Sequence[int], end: str
    ) -> None:
        """Remember which events have no correlation: a flow may say it."""
        if self._with_flows and min(correlations) < 0:
            first, threads = len(table), self._of_threads(events)
            for i, (event, thread) in enumerate(zip(events, threads, strict=True)):
                if correlations[i] < 0:
                    self._lonely[thread, event.ts or 0.0, end] = table, first + i

    def _of_threads(self, events: list[Event]) -> list[int]:
        threads = self._threads
        try:
            return [threads[event.pid, event.tid] for event in events]
        except TypeError:  # lists or objects, which cannot be looked up
            return [threads[_plain(event.pid), _plain(event.tid)] for event in events]

    def _finish(self) -> Trace:
        trace = self._trace
        for at, (table, row) in self._lonely.items():
            if at in self._flows:
                table.put("correlation", row, self._flows[at])
        trace.meta = self._events.meta
        trace.names, trace.shapes = list(self._names), list(self._shapes)
        trace.streams, trace.devices = list(self._streams), list(self._devices)
        counted = (
            ("an event with text where a number belongs, or the like", self._events.bad),
            ("an event without a duration", self._unfinished),
            ("an event with an impossible time", self._impossible),
        )
        trace.dropped = tuple(Dropped(why, n) for why, n in counted if n)
        low, high = trace.span
        for table in (trace.gpu, trace.runtime, trace.ops):
            if len(table):
                low = min(low, float(table["ts"].min()))
                high = max(high, float((table["ts"] + table["dur"]).max()))
        trace.span = low, high
        return trace


def _numbers(values: list[Any]) -> array[int]:
    """Return whole numbers; -1 for anything else."""
    try:
        return array("q", values)
    except (TypeError, OverflowError):
        return array("q", [_whole(value) for value in values])


def _externals(args: list[Args]) -> array[int]:
    return _numbers(
        [one.external if one.external is not None else one.old_external for one in args]
    )


def _whole(value: Any) -> int:
    """Return a whole number, -1 for anything else."""
    return value if type(value) is int and 0 <= value < _WHOLE else -1


def _plain(value: Any, otherwise: Any = None) -> Any:
    """Return something that can be looked up: a number or text."""
    if value is None:
        value = otherwise
    if value is None or type(value) is str or (type(value) is int and abs(value) < _WHOLE):
        return value
    return str(value)


def _of_pid(pid: Any, tid: Any) -> Any:
    return tid if isinstance(pid, str) and pid in _OLD_KINDS else pid


def _collective(args: Args) -> Collective:
    elements, width = _whole(args.elements), _BYTES.get(str(args.dtype).lower(), 0)
    size = _whole(elements * width) if width else -1
    return Collective(str(args.collective), _whole(args.group_size), size)
