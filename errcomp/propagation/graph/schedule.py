"""Order of a directed acyclic graph, and passes through it, on arrays of draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.propagation.graph._node import T
from errcomp.propagation.terms import Floats, Integers

#: Draws at once: a row of this length stays in the cache between its uses.
_DRAWS = 2048
#: Up to _SHORT draws, calls for each node take longer than the work: levels of at least _WIDE
#: nodes, on average, are faster as a whole.
_SHORT, _WIDE = 1024, 8
#: Nodes on critical paths that are counted at once.
_COUNTED = 2**20


@dataclass(frozen=True)
class _Level:
    """Nodes that wait only for nodes of the levels before.

    Attributes
    ----------
    nodes : ndarray of int
        Those with the most predecessors come first.
    waits : list of ndarray of int
        The k-th predecessor of the nodes that have more than k, which come first.
    joins : slice
        The numbers of those with several predecessors.
    """

    nodes: Integers
    waits: list[Integers]
    joins: slice


@dataclass(frozen=True)
class Schedule:
    """Nodes in topological order: every node comes after its predecessors.

    Attributes
    ----------
    order : list of int
        The nodes, level by level.
    before : list of list of int
        Predecessors of each node.
    last : list of bool
        Whether no node waits for it.
    done : list of list of int
        For each node, the nodes whose finish time is not needed after it.
    """

    order: list[int]
    before: list[list[int]]
    last: list[bool]
    done: list[list[int]]

    def finish_times(self, durations: Floats, *, overwrite: bool = False) -> Floats:
        """Return the time at which all nodes are done, shape (draws,); see `Dag.finish_times`.

        With `overwrite`, the durations may become the finish times of the nodes.
        """
        draws = durations.shape[1]
        if self._in_levels(draws):
            return self._by_level(durations if overwrite else durations.copy())
        makespan = np.full(draws, -np.inf)
        for low in range(0, draws, _DRAWS):
            part = slice(low, low + _DRAWS)
            self._by_node(durations[:, part], makespan[part])
        return makespan

    def critical(self, durations: Floats) -> tuple[Floats, Integers]:
        """Return the finish times, and in how many draws each node is critical."""
        n, draws = durations.shape
        makespan = np.full(draws, -np.inf)
        counts = np.zeros(n, dtype=np.int64)
        for low in range(0, draws, _DRAWS):
            part = slice(low, low + _DRAWS)
            chosen = np.empty((len(self._joins), len(makespan[part])), self._position)
            end = np.full(chosen.shape[1], self._ends[0])
            if self._in_levels(draws):
                makespan = self._by_level(durations.copy(), chosen, end)
            else:
                self._by_node(durations[:, part], makespan[part], chosen, end)
            counts += self._entries(chosen, end)
        for i in reversed(self.order):  # a node with one predecessor passes its count on
            if len(self.before[i]) == 1:
                counts[self.before[i][0]] += counts[i]
        return makespan, counts

    def _in_levels(self, draws: int) -> bool:
        return draws <= _SHORT and len(self.order) >= _WIDE * len(self._levels)

    @cached_property
    def _ends(self) -> list[int]:
        """Nodes that no other waits for, in order."""
        return [i for i in self.order if self.last[i]]

    @cached_property
    def _levels(self) -> list[_Level]:
        """All levels but the first, whose nodes wait for none."""
        depth = [0] * len(self.order)
        for i in self.order:
            depth[i] = max((depth[j] + 1 for j in self.before[i]), default=0)
        levels, joins = [], 0
        by_depth = sorted(self.order, key=lambda i: (depth[i], -len(self.before[i])))
        for level, nodes in groupby(by_depth, key=depth.__getitem__):
            if level == 0:
                continue
            own = list(nodes)
            waits = [
                np.array([self.before[i][k] for i in own if len(self.before[i]) > k])
                for k in range(len(self.before[own[0]]))
            ]
            several = len(waits[1]) if len(waits) > 1 else 0
            levels.append(_Level(np.array(own), waits, slice(joins, joins + several)))
            joins += several
        return levels

    @cached_property
    def _joins(self) -> dict[int, int]:
        """Nodes that wait for several others, numbered."""
        nodes = (i for level in self._levels for i in level.nodes.tolist())
        joins = (i for i in nodes if len(self.before[i]) > 1)
        return {i: k for k, i in enumerate(joins)}

    @cached_property
    def _joined(self) -> tuple[Integers, Integers]:
        """Predecessors of all joins, concatenated, and the first position of each join."""
        first = np.cumsum([0, *(len(self.before[i]) for i in self._joins)])
        return first, np.array([j for i in self._joins for j in self.before[i]], dtype=np.int64)

    @cached_property
    def _position(self) -> np.dtype[Any]:
        """Smallest integer type for the position of the last predecessor."""
        return np.min_scalar_type(max(map(len, self.before)))

    @cached_property
    def _origin(self) -> Integers:
        """Number of the join from which a chain leads to each node, or −1."""
        origin = np.full(len(self.order), -1)
        for i in self.order:
            waits = self.before[i]
            if len(waits) == 1:
                origin[i] = origin[waits[0]]
            elif waits:
                origin[i] = self._joins[i]
        return origin

    def _by_level(
        self, finish: Floats, chosen: NDArray[Any] | None = None, end: Integers | None = None
    ) -> Floats:
        """Turn durations into finish times, all nodes of a level at once; return the last.

        ``chosen`` gets the last predecessors, and ``end`` the node that finished last.
        """
        for level in self._levels:
            start = finish.take(level.waits[0], axis=0)
            if chosen is not None:
                chosen[level.joins] = 0
            for k, waits in enumerate(level.waits[1:], start=1):
                other, so_far = finish.take(waits, axis=0), start[: len(waits)]
                if chosen is not None:  # the first of equals
                    np.copyto(chosen[level.joins][: len(waits)], k, where=other > so_far)
                np.maximum(so_far, other, out=so_far)
            start += finish.take(level.nodes, axis=0)
            finish[level.nodes] = start
        ends = finish[self._ends]
        if end is not None:
            np.take(self._ends, ends.argmax(axis=0), out=end)
        return np.asarray(ends.max(axis=0))

    def _by_node(
        self,
        durations: Floats,
        makespan: Floats,
        chosen: NDArray[Any] | None = None,
        end: Integers | None = None,
    ) -> None:
        """Write the finish times into ``makespan``, one node after the other."""
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
                        _mark_last(finish, waits, chosen[self._joins[i]])
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
                if self.before[j]:  # otherwise it is a row of the input, which must not change
                    spare.append(finish[j])
                finish[j] = nothing

    def _entries(self, chosen: NDArray[Any], end: Integers) -> Integers:
        """Count the nodes at which the critical paths, followed backwards, enter a chain."""
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
        """Return the time at which all nodes are done, with the given operations."""
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


def _mark_last(finish: list[Floats], nodes: list[int], out: NDArray[Any]) -> None:
    """Write into ``out`` the node that finished last in each draw (the first of equals)."""
    np.greater(finish[nodes[1]], finish[nodes[0]], out=out)
    if len(nodes) > 2:
        latest = np.maximum(finish[nodes[0]], finish[nodes[1]])
        for k, j in enumerate(nodes[2:], start=2):
            np.copyto(out, k, where=finish[j] > latest)
            np.maximum(latest, finish[j], out=latest)


def schedule(n: int, edges: Sequence[tuple[int, int]]) -> Schedule | list[int]:
    """Order n nodes by their edges (before, after); if there is a cycle, return its nodes."""
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in dict.fromkeys(edges):
        before[b].append(a)
        after[a].append(b)
    open_ = [len(waits) for waits in before]
    order = [i for i in range(n) if not open_[i]]
    for i in order:  # grows during the loop: Kahn's algorithm
        for j in after[i]:
            open_[j] -= 1
            if not open_[j]:
                order.append(j)
    if len(order) < n:
        return cycle_among(before, {i for i in range(n) if open_[i]})
    done: list[list[int]] = [[] for _ in range(n)]
    place = {i: at for at, i in enumerate(order)}
    for i in range(n):
        final = max(after[i], key=place.__getitem__, default=i)
        done[final].append(i)
    return Schedule(order, before, [not a for a in after], done)


def cycle_among(before: list[list[int]], waiting: set[int]) -> list[int]:
    """Return the nodes of a cycle among waiting nodes."""
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
