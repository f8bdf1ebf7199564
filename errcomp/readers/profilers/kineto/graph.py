"""The dependencies in a trace: its kernels as an execution graph for propagating errors."""

from __future__ import annotations

import bisect
import datetime
import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.core.output import prediction
from errcomp.readers.profilers.kineto.classes import class_of
from errcomp.readers.profilers.kineto.columns import MEMCPY, Sync, Trace, launches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from errcomp.readers.core.source import Source


#: Microseconds: old traces have only whole ones.
_TOLERANCE = 1.0
_LONGEST_NAME = 4000
_WAIT_EVENT = "Stream Wait Event"
_WHOLE_DEVICE = ("DeviceSynchronize", "CtxSynchronize", "Context Sync")
_NOTE = (
    "Measured durations. A kernel waits for the previous kernel on its stream, for its launch, and "
    "for events of other streams if the trace names them (cuda_sync). The host launches kernels "
    "in the order of each thread, and waits where it synchronised. Any other time before a kernel "
    "started is a fixed delay, so that the graph with measured durations takes as long as the "
    "trace."
)


@dataclass(slots=True)
class _Graph:
    """Nodes in the order of time, with the time at which a replay finishes each."""

    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)
    finished: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, takes: float, after: Sequence[str], **fields: Any) -> float:
        """Add a node, and return the time when it finishes."""
        begin = max((self.finished[node] for node in after), default=0.0)
        self.nodes.append({"id": name, **fields})
        self.edges += [(node, name) for node in after]
        self.finished[name] = begin + takes
        return begin + takes

    def until(self, name: str, time: float, after: Sequence[str], stream: str = "") -> list[str]:
        """Return nodes that finish at a time: those given, or a fixed wait after them."""
        begin = max((self.finished[node] for node in after), default=0.0)
        if not stream and time <= begin:
            return list(after)
        takes = max(time - begin, 0.0)
        on = {"stream": stream} if stream else {}
        self.add(name, takes, after, duration=takes, **on)
        return [name]


@dataclass(slots=True)
class _Chain:
    """A stream of a device: its kernels so far, and the times of their launches."""

    name: str
    running: list[int] = field(default_factory=list)
    ended: int | None = None
    all: list[int] = field(default_factory=list)


def graph_of(trace: Trace, source: Source, runs: Sequence[str]) -> dict[str, Any]:
    """Return the document ``errcomp-prediction`` of a trace with GPU work.

    Parameters
    ----------
    trace : Trace
    source : Source
    runs : sequence of str
        The run of each piece of GPU work.

    Raises
    ------
    InputError
        All kernels have a duration of 0.
    """
    replay = _Replay(trace, runs)
    if not replay.terms:
        raise InputError(
            f"{source.name}: all kernels have a duration of 0, so there is nothing to propagate."
        )
    graph = replay.graph
    return prediction(
        source.path.name[:_LONGEST_NAME] or "trace",
        replay.terms,
        graph.nodes,
        graph.edges,
        tool="PyTorch profiler",
        tool_version="Kineto",
        created=_created(trace),
        note=_NOTE,
        inputs=_inputs(source),
    )


class _Replay:
    """Replays a trace in the order of time, and finds the dependencies of each node."""

    def __init__(self, trace: Trace, runs: Sequence[str]) -> None:
        self._trace = trace
        self.graph = _Graph()
        gpu, calls = trace.gpu, trace.runtime
        self._call = launches(trace).tolist()
        launched = [float(calls["ts"][call]) for call in self._call if call >= 0]
        origin = min([float(gpu["ts"].min()), *launched])
        self._start = (gpu["ts"] - origin).tolist()
        self._end = (gpu["ts"] + gpu["dur"] - origin).tolist()
        self._call_start = (calls["ts"] - origin).tolist()
        self._call_end = (calls["ts"] + calls["dur"] - origin).tolist()
        self._thread = calls["thread"].tolist()
        self._chains: dict[tuple[int, int], _Chain] = {}
        for device, stream in zip(gpu["device"].tolist(), gpu["stream"].tolist(), strict=True):
            name = f"device {trace.devices[device]} stream {trace.streams[stream]}"
            self._chains.setdefault((device, stream), _Chain(name))
        self._key = list(zip(gpu["device"].tolist(), gpu["stream"].tolist(), strict=True))
        names = [trace.names[code] for code in gpu["name"].tolist()]
        self._ids = _unique([f"{run}/{name}" for run, name in zip(runs, names, strict=True)])
        dur = gpu["dur"].tolist()
        self.terms = [
            {"id": node_id, "class": class_of(name), "value": takes}
            for node_id, name, takes in zip(self._ids, names, dur, strict=True)
            if takes > 0
        ]
        self._dur = dur
        #: Copies that ended before their launching call returned: the host waited for them.
        self._own: dict[int, int] = {}
        self._host: dict[int, str] = {}
        self._launch_node: dict[int, str] = {}
        self._waits = self._event_waits()
        self._overlapping = self._overlaps()
        self._run()

    def _run(self) -> None:
        kinds = {0: self._launch, 1: self._kernel, 2: self._synchronise}
        for _, kind, index in sorted([*self._host_items(), *self._kernel_items()]):
            kinds[kind](index)

    def _kernel_items(self) -> list[tuple[float, int, int]]:
        return [(start, 1, i) for i, start in enumerate(self._start)]

    def _host_items(self) -> list[tuple[float, int, int]]:
        """Return launching calls with their starts, and waiting calls with their ends."""
        names = [self._trace.names[code] for code in self._trace.runtime["name"].tolist()]
        # A kernel did not wait for a launch after its start.
        launching = {
            call
            for i, call in enumerate(self._call)
            if call >= 0 and self._call_start[call] <= self._start[i] + _TOLERANCE
        }
        launches = [(self._call_start[call], 0, call) for call in launching]
        kind = self._trace.gpu["kind"].tolist()
        self._own = {
            call: i
            for i, call in enumerate(self._call)
            if call >= 0 and kind[i] >= MEMCPY and self._end[i] <= self._call_end[call]
        }
        waiting = {i for i, name in enumerate(names) if "Synchronize" in name}
        last: dict[int, float] = {}
        for start, _, call in launches:
            last[self._thread[call]] = max(last.get(self._thread[call], 0.0), start)
        # Only waits that delayed a launch are part of the graph.
        return launches + [
            (self._call_end[call], 2, call)
            for call in waiting | set(self._own)
            if 0 <= self._call_end[call] <= last.get(self._thread[call], -1.0)
        ]

    def _host_before(self, call: int) -> list[str]:
        host = self._host.get(self._thread[call])
        return [host] if host else []

    def _launch(self, call: int) -> None:
        name, thread = f"launch {call}", self._thread[call]
        self.graph.until(name, self._call_start[call], self._host_before(call), f"thread {thread}")
        self._host[thread] = self._launch_node[call] = name

    def _kernel(self, i: int) -> None:
        chain, start = self._chains[self._key[i]], self._start[i]
        done = [k for k in chain.running if self._end[k] <= start + _TOLERANCE]
        chain.running = [k for k in chain.running if k not in done]
        if done:
            chain.ended = max(done, key=lambda k: self._end[k])
        elif chain.ended is not None:
            done = [chain.ended]
        after = [self._ids[k] for k in done]
        launch = self._launch_node.get(self._call[i])
        if launch and self.graph.finished[launch] <= start + _TOLERANCE:
            after.append(launch)
        after += [
            self._ids[k] for k in self._waits.get(i, ()) if self._end[k] <= start + _TOLERANCE
        ]
        after = self.graph.until(f"before {self._ids[i]}", start, list(dict.fromkeys(after)))
        takes = self._dur[i]
        fields = {"kernel": self._ids[i]} if takes > 0 else {"duration": 0.0}
        on = {} if self._key[i] in self._overlapping else {"stream": chain.name}
        self.graph.add(self._ids[i], takes, after, **fields, **on)
        chain.running.append(i)
        chain.all.append(i)

    def _synchronise(self, call: int) -> None:
        """Let the host wait for the work launched before the call that ended during it."""
        thread, end = self._thread[call], self._call_end[call]
        waited = [self._own[call]] if call in self._own else self._waited_for(call)
        after = [*self._host_before(call), *(self._ids[k] for k in waited)]
        name = f"wait {call}"
        self.graph.until(name, end, list(dict.fromkeys(after)), f"thread {thread}")
        self._host[thread] = name

    def _waited_for(self, call: int) -> list[int]:
        sync = self._syncs.get(int(self._trace.runtime["correlation"][call]))
        name = self._trace.names[int(self._trace.runtime["name"][call])]
        whole = any(part in name for part in _WHOLE_DEVICE)
        chains = self._chains.items()
        if sync is not None and not whole:
            chosen = [chain for (_, s), chain in chains if self._trace.streams[s] == sync.stream]
        else:
            chosen = [chain for _, chain in chains]
        last = [k for k in (self._last_before(chain, call) for chain in chosen) if k is not None]
        if whole or (sync is not None and sync.kind == "Stream Sync"):
            return last
        # The stream or event is unknown: take the work whose end released the host.
        last = [k for k in last if self._end[k] > self._call_start[call]]
        return [max(last, key=lambda k: self._end[k])] if last else []

    def _last_before(self, chain: _Chain, call: int) -> int | None:
        """Return the last kernel of a stream launched before a call and ended by its end."""
        begin, end = self._call_start[call], self._call_end[call]
        for k in reversed(chain.all):
            launched = self._call_start[self._call[k]] if self._call[k] >= 0 else self._start[k]
            if launched <= begin:
                return k if self._end[k] <= end + _TOLERANCE else None
        return None

    def _overlaps(self) -> set[tuple[int, int]]:
        """Streams with overlapping kernels: their order implies no waits."""
        reached: dict[tuple[int, int], float] = {}
        overlapping = set()
        for i in np.argsort(self._start, kind="stable").tolist():
            key = self._key[i]
            if self._start[i] < reached.get(key, -math.inf) - _TOLERANCE:
                overlapping.add(key)
            reached[key] = max(reached.get(key, -math.inf), self._end[i])
        return overlapping

    def _event_waits(self) -> dict[int, list[int]]:
        """Kernels that waited for an event of another stream, and the kernels before it."""
        trace = self._trace
        self._syncs: dict[int, Sync] = {sync.correlation: sync for sync in trace.syncs}
        waits = [sync for sync in trace.syncs if sync.kind == _WAIT_EVENT and sync.wait_on >= 0]
        if not waits:
            return {}
        at = {
            number: self._call_start[i]
            for i, number in enumerate(trace.runtime["correlation"].tolist())
        }
        queues: dict[Any, list[tuple[float, int]]] = {}
        for i, (_, stream) in enumerate(self._key):
            if self._call[i] >= 0:
                launched = self._call_start[self._call[i]]
                queues.setdefault(trace.streams[stream], []).append((launched, i))
        for queue in queues.values():
            queue.sort()
        kernels_before: dict[int, list[int]] = {}
        for wait in waits:
            recorded, waited = at.get(wait.wait_on), at.get(wait.correlation)
            if recorded is None or waited is None:
                continue
            before, after = queues.get(wait.wait_on_stream, []), queues.get(wait.stream, [])
            place = bisect.bisect_right(before, (recorded, math.inf)) - 1
            following = bisect.bisect_left(after, (waited, -1))
            if place >= 0 and following < len(after):
                kernels_before.setdefault(after[following][1], []).append(before[place][1])
        return kernels_before


def _unique(names: Sequence[str]) -> list[str]:
    """Make names unique, as `errcomp.Kernels.ids` does, by appending ``#2`` and so on."""
    plain = [name[:_LONGEST_NAME].replace("\0", " ") for name in names]
    taken = set(plain)
    times: dict[str, int] = {}
    unique = []
    for name in plain:
        times[name] = times.get(name, 0) + 1
        if times[name] > 1:
            while f"{name}#{times[name]}" in taken:
                times[name] += 1
            name = f"{name}#{times[name]}"
            taken.add(name)
        unique.append(name)
    return unique


def _created(trace: Trace) -> str:
    base = trace.meta.get("baseTimeNanoseconds")
    try:
        seconds = trace.span[0] / 1e6 + (base / 1e9 if type(base) is int else 0.0)
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC)
    return moment.isoformat(timespec="seconds")


def _inputs(source: Source) -> list[dict[str, str]]:
    """Digest of the file; empty if it came from an archive."""
    if not source.path.is_file():
        return []
    with source.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [{"name": source.path.name, "sha256": digest}]
