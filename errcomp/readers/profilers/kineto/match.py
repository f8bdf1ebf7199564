"""Who launched a kernel, in which step, and which operators stand within which."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.readers.profilers.kineto.columns import Table, Trace

__all__ = ["gaps", "launches", "launching_ops", "parents", "steps_of"]


def launches(trace: Trace) -> NDArray[np.int64]:
    """Return for each piece of work on a GPU the call that launched it, -1 where none is known."""
    calls, work = trace.runtime["correlation"], trace.gpu["correlation"]
    return _found(calls, work)


def _found(known: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each wanted number first stands among the known ones; -1: nowhere."""
    found = np.full(len(wanted), -1, dtype=np.int64)
    there = np.flatnonzero(known >= 0)
    if len(there):
        there = there[np.argsort(known[there], kind="stable")]
        place = np.searchsorted(known[there], wanted).clip(max=len(there) - 1)
        same = known[there[place]] == wanted
        found[same] = there[place[same]]
    return found


def launching_ops(trace: Trace, calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each piece of work on a GPU the innermost operator that launched it, or -1.

    The External id says it, unless it only repeats the correlation (PyTorch before 2.0); then it is
    the innermost operator on the thread of the launch that was running at that time.

    Parameters
    ----------
    trace : Trace
    calls : ndarray
        As `launches` returns.
    """
    gpu, runtime, ops = trace.gpu, trace.runtime, trace.ops
    external = np.where(gpu["external"] != gpu["correlation"], gpu["external"], -1)
    found = _found(ops["external"], external) if len(ops) else np.full(len(gpu), -1)
    rest = np.flatnonzero((found < 0) & (calls >= 0))
    if len(rest) and len(ops):
        call = calls[rest]
        found[rest] = _innermost(ops, runtime["ts"][call], runtime["thread"][call])
    return found


def parents(ops: Table) -> NDArray[np.int64]:
    """Return for each operator the one directly around it on its thread, -1 for none."""
    found = np.full(len(ops), -1, dtype=np.int64)
    for nested in _threads(ops, np.arange(len(ops))).values():
        for outer, inner in itertools.pairwise(nested.levels):
            place = np.searchsorted(outer, inner) - 1
            candidate = outer[np.maximum(place, 0)]
            holds = (place >= 0) & (nested.end[candidate] >= nested.start[inner])
            found[nested.rows[inner[holds]]] = nested.rows[candidate[holds]]
    return found


def _innermost(ops: Table, at: NDArray[Any], thread: NDArray[Any]) -> NDArray[np.int64]:
    """Return the innermost operator that was running on a thread at a time, -1 for none."""
    found = np.full(len(at), -1, dtype=np.int64)
    # In traces in whole microseconds some have no length: they launched nothing.
    for number, nested in _threads(ops, np.flatnonzero(ops["dur"] > 0)).items():
        mine = np.flatnonzero(thread == number)
        if len(mine):
            found[mine] = nested.innermost(at[mine])
    return found


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
    """The operators of one thread in the order of their starts, and at which depth each stands."""

    def __init__(self, rows: NDArray[np.int64], ops: Table) -> None:
        self.rows = rows
        self._origin = ops["ts"][rows[0]]
        self.start = ops["ts"][rows] - self._origin
        # An operator of no length ends after it starts, too.
        self.end = self.start + np.maximum(ops["dur"][rows], 1e-4)
        self._ends = np.sort(self.end)
        ended = np.searchsorted(self._ends, self.start, side="right")
        depth = np.maximum(np.arange(len(rows)) - ended, 0)
        by_depth = np.argsort(depth, kind="stable")
        #: Positions of the operators of each depth.
        self.levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)

    def innermost(self, times: NDArray[Any]) -> NDArray[np.int64]:
        at = times - self._origin
        found = np.full(len(at), -1, dtype=np.int64)
        started = np.searchsorted(self.start, at, side="right")
        # At a time at which one ends and the next begins it is the next.
        for side in ("right", "left"):
            depth = started - np.searchsorted(self._ends, at, side=side) - 1
            for level, positions in enumerate(self.levels):
                mine = np.flatnonzero((depth == level) & (found < 0))
                place = np.searchsorted(positions, started[mine]) - 1
                candidate = positions[np.maximum(place, 0)]
                holds = (place >= 0) & (self.end[candidate] >= at[mine])
                found[mine[holds]] = self.rows[candidate[holds]]
        return found


def steps_of(
    steps: list[tuple[str, float, float]], at: NDArray[Any]
) -> tuple[list[tuple[str, float, float]], NDArray[np.int64]]:
    """Return the steps in order of time, and in which of them each time is; -1 for none.

    A step that several threads recorded is taken as the longest of those.
    """
    longest: dict[str, tuple[str, float, float]] = {}
    for step in steps:
        known = longest.setdefault(step[0], step)
        if step[2] - step[1] > known[2] - known[1]:
            longest[step[0]] = step
    found = sorted(longest.values(), key=lambda step: step[1:])
    if not found:
        return found, np.full(len(at), -1, dtype=np.int64)
    place = np.searchsorted([start for _, start, _ in found], at, side="right") - 1
    ends = np.array([end for _, _, end in found])
    inside = (place >= 0) & (at <= ends[np.maximum(place, 0)])
    return found, np.where(inside, place, -1)


def gaps(gpu: Table) -> NDArray[np.float64]:
    """Return how long each stream did nothing before each piece of work; NaN before its first."""
    start, order = gpu["ts"], np.lexsort((gpu["ts"], gpu["stream"], gpu["device"]))
    chain = np.stack([gpu["device"], gpu["stream"]])[:, order]
    found = np.full(len(start), np.nan)
    same = (chain[:, 1:] == chain[:, :-1]).all(axis=0)
    between = start[order][1:] - (start + gpu["dur"])[order][:-1]
    found[order[1:][same]] = between[same]
    return found
