"""The events of a trace, as columns of the fields that are used."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.readers.profilers.kineto.events import NO_ARGS, Args, Event, Events
from errcomp.readers.profilers.phases import phase_of
from errcomp.results import Dropped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.readers.core.source import Source


KERNEL, MEMCPY, MEMSET = range(3)
#: Capitalised categories are from PyTorch before 1.12.
_GPU = {
    **dict.fromkeys(("kernel", "Kernel", "concurrent_kernel"), KERNEL),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), MEMCPY),
    **dict.fromkeys(("gpu_memset", "Memset"), MEMSET),
}
_RUNTIME = frozenset(
    f"{vendor}_{layer}"
    for vendor in ("cuda", "hip", "xpu", "mtia", "privateuse1")
    for layer in ("runtime", "driver")
) | {"Runtime"}
_KINDS: dict[str | None, str] = {
    **dict.fromkeys(_GPU, "gpu"),
    **dict.fromkeys(_RUNTIME, "runtime"),
    **dict.fromkeys(("cpu_op", "Operator"), "op"),
    "user_annotation": "annotation",
    "cuda_sync": "sync",
    "ac2g": "flow",
}
#: PyTorch's profiler before Kineto writes no categories, but names the functions' owner.
_OLD_KINDS = {"CPU functions": "op", "CUDA functions": "gpu"}
_STEP, _UNNAMED = "ProfilerStep", "unnamed"
#: Times are microseconds; 10^15 is about 30 years.
_LONGEST, _LATEST = 1e15, 1e18
_WHOLE = 1 << 62
_BYTES = {
    **dict.fromkeys(("double", "long", "float64", "int64", "long int"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16"), 2),
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
}


class Names(dict[Any, int]):
    """Numbers distinct values in order of appearance."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class Table:
    """Columns that grow: ``ts`` and ``dur`` in microseconds, and columns of whole numbers."""

    def __init__(self, *others: str) -> None:
        self._columns: dict[str, array[Any]] = {"ts": array("d"), "dur": array("d")}
        self._columns.update((name, array("q")) for name in others)

    def __len__(self) -> int:
        return len(self._columns["ts"])

    def add(self, events: Sequence[Event], *others: Iterable[int]) -> None:
        """Append events, and the values of the other columns."""
        times = ([event.ts or 0.0 for event in events], [event.dur or 0.0 for event in events])
        for column, values in zip(self._columns.values(), (*times, *others), strict=True):
            column.extend(values)

    def put(self, name: str, row: int, value: int) -> None:
        """Change one value."""
        self._columns[name][row] = value

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        # Without a copy: nothing is added after columns are read.
        return np.frombuffer(column, dtype=column.typecode) if column else np.empty(0, np.int64)


_GPU_COLUMNS = ("name", "kind", "device", "stream", "correlation", "external", "bytes")
_CALL_COLUMNS = ("name", "thread", "correlation", "external")
_OP_COLUMNS = ("name", "thread", "external", "shape")


@dataclass(frozen=True, slots=True)
class Collective:
    """The collective of a communication kernel; -1 for unknown numbers."""

    name: str
    ranks: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A wait with a known reason: of a stream for an event, or of the host."""

    kind: str
    stream: Any
    device: Any
    wait_on_stream: Any
    wait_on: int
    correlation: int


@dataclass(slots=True)
class Trace:
    """A trace as columns; names, streams and the like are indices into lists."""

    meta: dict[str, Any] = field(default_factory=dict)
    gpu: Table = field(default_factory=lambda: Table(*_GPU_COLUMNS))
    runtime: Table = field(default_factory=lambda: Table(*_CALL_COLUMNS))
    ops: Table = field(default_factory=lambda: Table(*_OP_COLUMNS))
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    #: Annotations that name a phase.
    phases: list[tuple[str, float, float]] = field(default_factory=list)
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
        It is cut off, or not JSON.
    """
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._events = Events(source)
        self._trace = Trace()
        self._names, self._shapes = Names(), Names()
        self._streams, self._devices, self._threads = Names(), Names(), Names()
        # Flows repeat correlations, and replace them in traces without.
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
        usable = [
            event
            for event in events
            if event.ph == "X"
            and event.ts is not None
            and event.dur is not None
            and 0 <= event.dur <= _LONGEST
            and -_LATEST <= event.ts <= _LATEST
        ]
        if len(usable) < len(events):
            complete = [event for event in events if event.ph == "X"]
            timed = [e for e in complete if e.ts is not None and e.dur is not None]
            self._unfinished += len(complete) - len(timed)
            self._impossible += len(timed) - len(usable)
        return usable

    def _add_gpu(self, events: list[Event]) -> None:
        args = [event.args or NO_ARGS for event in events]
        correlations = _numbers([arg.correlation for arg in args])
        if self._with_flows and max(correlations) >= 0:
            self._with_flows = False
        first = len(self._trace.gpu)
        self._without(self._trace.gpu, events, correlations, "f")
        for i, arg in enumerate(args):
            if arg.collective is not None:
                self._trace.collectives[first + i] = _collective(arg)
        pairs = list(zip(events, args, strict=True))
        self._trace.gpu.add(
            events,
            [self._names[event.name or _UNNAMED] for event in events],
            [_GPU.get(event.cat or "", KERNEL) for event in events],
            [self._devices[_lookup_key(a.device, _device_of(e.pid, e.tid))] for e, a in pairs],
            [self._streams[_lookup_key(a.stream, e.tid)] for e, a in pairs],
            correlations,
            _externals(args),
            _numbers([arg.bytes for arg in args]),
        )

    def _add_runtime(self, events: list[Event]) -> None:
        args = [event.args or NO_ARGS for event in events]
        correlations = _numbers([arg.correlation for arg in args])
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
            [self._shapes[bytes(arg.dims)] for arg in args],
        )

    def _add_annotations(self, events: list[Event]) -> None:
        for event in events:
            name, ts, dur = event.name or "", event.ts or 0.0, event.dur or 0.0
            if name.startswith(_STEP):
                self._trace.steps.append((name, ts, ts + dur))
            elif (phase := phase_of(name)) is not None:
                self._trace.phases.append((phase, ts, ts + dur))
            low, high = self._trace.span
            self._trace.span = min(low, ts), max(high, ts + dur)

    def _add_syncs(self, events: list[Event]) -> None:
        for event in events:
            args = event.args or NO_ARGS
            self._trace.syncs.append(
                Sync(
                    str(args.sync or event.name),
                    _lookup_key(args.stream, event.tid),
                    _lookup_key(args.device, event.pid),
                    _lookup_key(args.wait_on_stream, None),
                    _whole_number(args.wait_on),
                    _whole_number(args.correlation),
                )
            )

    def _add_flows(self, events: list[Event]) -> None:
        events = [event for event in events if event.ts is not None]
        for event, thread in zip(events, self._of_threads(events), strict=True):
            self._flows[thread, event.ts or 0.0, event.ph or ""] = _whole_number(event.id)

    def _without(
        self, table: Table, events: list[Event], correlations: Sequence[int], end: str
    ) -> None:
        """Record the events without a correlation: a flow may hold it."""
        if self._with_flows and min(correlations) < 0:
            first, threads = len(table), self._of_threads(events)
            for i, (event, thread) in enumerate(zip(events, threads, strict=True)):
                if correlations[i] < 0:
                    self._lonely[thread, event.ts or 0.0, end] = table, first + i

    def _of_threads(self, events: list[Event]) -> list[int]:
        threads = self._threads
        try:
            return [threads[event.pid, event.tid] for event in events]
        except TypeError:  # lists or objects, which are not hashable
            return [threads[_lookup_key(event.pid), _lookup_key(event.tid)] for event in events]

    def _finish(self) -> Trace:
        trace = self._trace
        for at, (table, row) in self._lonely.items():
            if at in self._flows:
                table.put("correlation", row, self._flows[at])
        trace.meta = self._events.meta
        trace.names, trace.shapes = list(self._names), list(self._shapes)
        trace.streams, trace.devices = list(self._streams), list(self._devices)
        counted = (
            ("an event with a field of the wrong type", self._events.bad),
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
        return array("q", [_whole_number(value) for value in values])


def _externals(args: list[Args]) -> array[int]:
    return _numbers(
        [arg.external if arg.external is not None else arg.old_external for arg in args]
    )


def _whole_number(value: Any) -> int:
    """Return a whole number, -1 for anything else."""
    return value if type(value) is int and 0 <= value < _WHOLE else -1


def _lookup_key(value: Any, otherwise: Any = None) -> Any:
    """Return a hashable value: a number or text."""
    if value is None:
        value = otherwise
    if value is None or type(value) is str or (type(value) is int and abs(value) < _WHOLE):
        return value
    return str(value)


def _device_of(pid: Any, tid: Any) -> Any:
    return tid if isinstance(pid, str) and pid in _OLD_KINDS else pid


def _collective(args: Args) -> Collective:
    elements, width = _whole_number(args.elements), _BYTES.get(str(args.dtype).lower(), 0)
    size = _whole_number(elements * width) if width else -1
    return Collective(str(args.collective), _whole_number(args.group_size), size)


# The launch and the step of each kernel, and the nesting of operators.


def launches(trace: Trace) -> NDArray[np.int64]:
    """Return the call that launched each piece of GPU work, -1 if unknown."""
    calls, work = trace.runtime["correlation"], trace.gpu["correlation"]
    return _positions(calls, work)


def _positions(known: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first position of each wanted number among the known ones; -1 if missing."""
    positions = np.full(len(wanted), -1, dtype=np.int64)
    valid = np.flatnonzero(known >= 0)
    if len(valid):
        valid = valid[np.argsort(known[valid], kind="stable")]
        place = np.searchsorted(known[valid], wanted).clip(max=len(valid) - 1)
        same = known[valid[place]] == wanted
        positions[same] = valid[place[same]]
    return positions


def launching_ops(trace: Trace, calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the innermost operator that launched each piece of GPU work, or -1.

    The External id names it, unless it only repeats the correlation (PyTorch before 2.0). Then it
    is the innermost operator that was running on the launching thread at that time.

    Parameters
    ----------
    trace : Trace
    calls : ndarray
        The result of `launches`.
    """
    gpu, runtime, ops = trace.gpu, trace.runtime, trace.ops
    external = np.where(gpu["external"] != gpu["correlation"], gpu["external"], -1)
    launching = _positions(ops["external"], external) if len(ops) else np.full(len(gpu), -1)
    rest = np.flatnonzero((launching < 0) & (calls >= 0))
    if len(rest) and len(ops):
        call = calls[rest]
        launching[rest] = _innermost(ops, runtime["ts"][call], runtime["thread"][call])
    return launching


def parents(ops: Table) -> NDArray[np.int64]:
    """Return the enclosing operator of each operator on its thread, -1 for none."""
    parent = np.full(len(ops), -1, dtype=np.int64)
    for nested in _threads(ops, np.arange(len(ops))).values():
        for outer, inner in itertools.pairwise(nested.levels):
            place = np.searchsorted(outer, inner) - 1
            candidate = outer[np.maximum(place, 0)]
            holds = (place >= 0) & (nested.end[candidate] >= nested.start[inner])
            parent[nested.rows[inner[holds]]] = nested.rows[candidate[holds]]
    return parent


def _innermost(ops: Table, at: NDArray[Any], thread: NDArray[Any]) -> NDArray[np.int64]:
    """Return the innermost operator that was running on a thread at a time, -1 for none."""
    innermost = np.full(len(at), -1, dtype=np.int64)
    # In traces with whole microseconds some operators have length 0: they launched nothing.
    for number, nested in _threads(ops, np.flatnonzero(ops["dur"] > 0)).items():
        on_thread = np.flatnonzero(thread == number)
        if len(on_thread):
            innermost[on_thread] = nested.innermost(at[on_thread])
    return innermost


def _threads(ops: Table, rows: NDArray[np.int64]) -> dict[int, _Nested]:
    order = rows[np.lexsort((-ops["dur"][rows], ops["ts"][rows], ops["thread"][rows]))]
    thread = ops["thread"][order]
    cuts = np.flatnonzero(np.diff(thread)) + 1
    return {
        int(ops["thread"][rows[0]]): _Nested(rows, ops)
        for rows in np.split(order, cuts)
        if len(rows)
    }


class _Nested:
    """The operators of a thread in the order of their starts, with their depths."""

    def __init__(self, rows: NDArray[np.int64], ops: Table) -> None:
        self.rows = rows
        self._origin = ops["ts"][rows[0]]
        self.start = ops["ts"][rows] - self._origin
        # An operator of length 0 must also end after it starts.
        self.end = self.start + np.maximum(ops["dur"][rows], 1e-4)
        self._ends = np.sort(self.end)
        ended = np.searchsorted(self._ends, self.start, side="right")
        depth = np.maximum(np.arange(len(rows)) - ended, 0)
        by_depth = np.argsort(depth, kind="stable")
        #: Positions of the operators of each depth.
        self.levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)

    def innermost(self, times: NDArray[Any]) -> NDArray[np.int64]:
        at = times - self._origin
        innermost = np.full(len(at), -1, dtype=np.int64)
        started = np.searchsorted(self.start, at, side="right")
        # If one ends when the next begins, take the next.
        for side in ("right", "left"):
            depth = started - np.searchsorted(self._ends, at, side=side) - 1
            for level, positions in enumerate(self.levels):
                at_level = np.flatnonzero((depth == level) & (innermost < 0))
                place = np.searchsorted(positions, started[at_level]) - 1
                candidate = positions[np.maximum(place, 0)]
                holds = (place >= 0) & (self.end[candidate] >= at[at_level])
                innermost[at_level[holds]] = self.rows[candidate[holds]]
        return innermost


def steps_of(
    steps: list[tuple[str, float, float]], at: NDArray[Any]
) -> tuple[list[tuple[str, float, float]], NDArray[np.int64]]:
    """Return the steps in order of time, and the step of each time; -1 for none.

    If several threads recorded a step, the longest record counts.
    """
    longest: dict[str, tuple[str, float, float]] = {}
    for step in steps:
        known = longest.setdefault(step[0], step)
        if step[2] - step[1] > known[2] - known[1]:
            longest[step[0]] = step
    ordered = sorted(longest.values(), key=lambda step: step[1:])
    if not ordered:
        return ordered, np.full(len(at), -1, dtype=np.int64)
    place = np.searchsorted([start for _, start, _ in ordered], at, side="right") - 1
    ends = np.array([end for _, _, end in ordered])
    inside = (place >= 0) & (at <= ends[np.maximum(place, 0)])
    return ordered, np.where(inside, place, -1)


def phase_ranges(trace: Trace) -> list[tuple[str, float, float]]:
    """Return phase, start and end of the ranges of a trace that name a phase."""
    ops = trace.ops
    known = {i: phase for i, name in enumerate(trace.names) if (phase := phase_of(name))}
    which = np.flatnonzero(np.isin(ops["name"], [*known]))
    start, names = ops["ts"][which], ops["name"][which].tolist()
    ends = (start + ops["dur"][which]).tolist()
    of_ops = [(known[n], a, b) for n, a, b in zip(names, start.tolist(), ends, strict=True)]
    return trace.phases + of_ops


def gaps(gpu: Table) -> NDArray[np.float64]:
    """Return the idle time of the stream before each piece of work; NaN before its first."""
    start, order = gpu["ts"], np.lexsort((gpu["ts"], gpu["stream"], gpu["device"]))
    chain = np.stack([gpu["device"], gpu["stream"]])[:, order]
    idle = np.full(len(start), np.nan)
    same = (chain[:, 1:] == chain[:, :-1]).all(axis=0)
    between = start[order][1:] - (start + gpu["dur"])[order][:-1]
    idle[order[1:][same]] = between[same]
    return idle
