"""Order of a directed acyclic graph and the passes through it, on arrays of draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from errcomp.propagation.terms import Floats, Integers

__all__ = ["Schedule", "cycle_among", "schedule"]

T = TypeVar("T")
#: Draws taken at once: a row of this length stays in the cache between its uses.
_DRAWS = 2048
#: Nodes on critical paths that are counted at once.
_COUNTED = 2**20


@dataclass(frozen=True)
class Schedule:
    """Nodes in an order in which every node comes after those it waits for.

    Attributes
    ----------
    order : list of int
        The nodes, level by level.
    before : list of list of int
        Which nodes each waits for.
    last : list of bool
        Whether nothing waits for it.
    done : list of list of int
        For each node those whose finish time is not needed after it.
    """

    order: list[int]
    before: list[list[int]]
    last: list[bool]
    done: list[list[int]]

    def finish_times(self, durations: Floats) -> Floats:
        """Return the time at which all is done, shape (draws,); see `Dag.finish_times`."""
        makespan = np.full(durations.shape[1], -np.inf)
        for low in range(0, len(makespan), _DRAWS):
            part = slice(low, low + _DRAWS)
            self._forward(durations[:, part], makespan[part])
        return makespan

    def critical(self, durations: Floats) -> tuple[Floats, Integers]:
        """Return the finish times, and in how many draws each node is critical."""
        n, draws = durations.shape
        makespan = np.full(draws, -np.inf)
        counts = np.zeros(n, dtype=np.int64)
        for low in range(0, draws, _DRAWS):
            part = slice(low, low + _DRAWS)
            chosen = np.empty((len(self._joins), len(makespan[part])), self._position)
            end = np.full(chosen.shape[1], self.last.index(True))
            self._forward(durations[:, part], makespan[part], chosen, end)
            counts += self._entries(chosen, end)
        for i in reversed(self.order):  # who waits for one alone takes that one along
            if len(self.before[i]) == 1:
                counts[self.before[i][0]] += counts[i]
        return makespan, counts

    @cached_property
    def _joins(self) -> dict[int, int]:
        """Nodes that wait for several others, numbered."""
        joins = (i for i in self.order if len(self.before[i]) > 1)
        return {i: k for k, i in enumerate(joins)}

    @cached_property
    def _joined(self) -> tuple[Integers, Integers]:
        """What joins wait for, one after the other, and where that of each begins."""
        first = np.cumsum([0, *(len(self.before[i]) for i in self._joins)])
        return first, np.array([j for i in self._joins for j in self.before[i]], dtype=np.int64)

    @cached_property
    def _position(self) -> np.dtype[Any]:
        """Smallest integers that tell which of those that it waited for came last."""
        return np.min_scalar_type(max(map(len, self.before)))

    @cached_property
    def _origin(self) -> Integers:
        """For each node the join from which a chain leads to it (its number), −1 for none."""
        origin = np.full(len(self.order), -1)
        for i in self.order:
            waits = self.before[i]
            if len(waits) == 1:
                origin[i] = origin[waits[0]]
            elif waits:
                origin[i] = self._joins[i]
        return origin

    def _forward(
        self,
        durations: Floats,
        makespan: Floats,
        chosen: NDArray[Any] | None = None,
        end: Integers | None = None,
    ) -> None:
        """Write the finish times into ``makespan``, who came last to joins into ``chosen``.

        ``end`` takes the node that finished last of all.
        """
        nothing = np.empty(0)
        finish = [nothing] * len(self.order)
        spare: list[Floats] = []
        for i in self.order:
            row = durations[i]
            if waits := self.before[i]:
                out = spare.pop() if spare else np.empty_like(makespan)
                start = finish[waits[0]]
                if len(waits) > 1:
                    if chosen is not None:
                        _which(finish, waits, chosen[self._joins[i]])
                    start = np.maximum(start, finish[waits[1]], out=out)
                    for j in waits[2:]:
                        np.maximum(start, finish[j], out=start)
                row = np.add(start, row, out=out)
            if self.last[i]:
                if end is not None:
                    np.copyto(end, i, where=row > makespan)
                np.maximum(makespan, row, out=makespan)
            finish[i] = row
            for j in self.done[i]:
                if self.before[j]:  # else a row of the input, which is not ours to write to
                    spare.append(finish[j])
                finish[j] = nothing

    def _entries(self, chosen: NDArray[Any], end: Integers) -> Integers:
        """Count at which nodes the critical paths, followed backwards, enter a chain."""
        counts = np.zeros(len(self.order), dtype=np.int64)
        first, before = self._joined
        draw = np.arange(len(end))
        seen, size, at = [end], 0, end
        while True:
            join = self._origin[at]
            going = join >= 0
            if not going.all():
                join, draw = join[going], draw[going]
            if size > _COUNTED or not len(join):
                counts += np.bincount(np.concatenate(seen), minlength=len(counts))
                seen, size = [], 0
            if not len(join):
                return counts
            at = before[first[join] + chosen[join, draw]]
            seen.append(at)
            size += len(at)

    def evaluate(
        self,
        duration: Callable[[int], T],
        maximum: Callable[[Sequence[T]], T],
        total: Callable[[Sequence[T]], T],
    ) -> T:
        """Return the time at which all is done, node by node with the operations given."""
        finish: dict[int, T] = {}
        ends: list[T] = []
        for i in self.order:
            waits = self.before[i]
            time = duration(i)
            if len(waits) == 1:
                time = total([finish[waits[0]], time])
            elif waits:
                time = total([maximum([finish[j] for j in waits]), time])
            if self.last[i]:
                ends.append(time)
            finish[i] = time
            for j in self.done[i]:
                del finish[j]
        return ends[0] if len(ends) == 1 else maximum(ends)


def _which(finish: list[Floats], nodes: list[int], out: NDArray[Any]) -> None:
    """Write into ``out`` which of the nodes finished last in each draw, the first of several."""
    np.greater(finish[nodes[1]], finish[nodes[0]], out=out)
    if len(nodes) > 2:
        latest = np.maximum(finish[nodes[0]], finish[nodes[1]])
        for k, j in enumerate(nodes[2:], start=2):
            np.copyto(out, k, where=finish[j] > latest)
            np.maximum(latest, finish[j], out=latest)


def schedule(n: int, edges: Sequence[tuple[int, int]]) -> Schedule | list[int]:
    """Order n nodes by their edges (before, after); the nodes of one cycle where there is one."""
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in dict.fromkeys(edges):
        before[b].append(a)
        after[a].append(b)
    open_ = [len(waits) for waits in before]
    order = [i for i in range(n) if not open_[i]]
    for i in order:  # grows as it goes: Kahn's algorithm
        for j in after[i]:
            open_[j] -= 1
            if not open_[j]:
                order.append(j)
    if len(order) < n:
        return cycle_among(before, {i for i in range(n) if open_[i]})
    done: list[list[int]] = [[] for _ in range(n)]
    place = [0] * n
    for at, i in enumerate(order):
        place[i] = at
    for i in range(n):
        final = max(after[i], key=place.__getitem__, default=i)
        done[final].append(i)
    return Schedule(order, before, [not a for a in after], done)


def cycle_among(before: list[list[int]], waiting: set[int]) -> list[int]:
    """Return the nodes of one cycle; each node waiting waits for another one that is waiting."""
    seen: dict[int, int] = {}
    path: list[int] = []
    i = min(waiting)
    while i not in seen:
        seen[i] = len(path)
        path.append(i)
        i = next(j for j in before[i] if j in waiting)
    circle = path[seen[i] :][::-1]
    first = circle.index(min(circle))
    return circle[first:] + circle[:first]
