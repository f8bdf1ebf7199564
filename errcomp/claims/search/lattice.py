"""Every distinct subset of the rows that a conjunction of unions of key values selects, once.

One key, the *indicator*, is treated apart: a subset is a set of cells (combinations of values of
all other keys) crossed with a set of indicator values. Different descriptions often select the same
rows, so subsets are enumerated by the selected rows: a set ``D`` of indicator values that all
occur, and a set ``r`` of cells in which ``D`` occurs. This pair is unique for each set of rows.
Sets ``D`` that occur in the same cells share the list of distinct ``r``. Together they form blocks,
which are matrices of subsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.claims.search.keys import MOST_COMPLETE, Factor, Naming

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

NEVER = 20_000  # the cost without a description; twice this still fits 16 bits
_MOST_OPTIONS = 4_096  # unions of one key
_MOST_CROSSED = 2_000_000  # words, for restrictions before equal ones are merged
_MOST_MERGED = 20_000_000  # words, for restrictions cut down to sets of cells
_MOST_WORK = 800_000_000  # multiplications for one sum over all subsets
_MOST_COSTS = 50_000_000  # costs of restrictions to keep


@dataclass(frozen=True, slots=True)
class Block:
    """A matrix of subsets: sets of cells (rows) by sets of indicator values (columns).

    Attributes
    ----------
    rows : ndarray of int, shape (r,)
        Sets of cells, as positions in ``Lattice.restrictions``, ascending. A restriction may hold
        further cells, without any of the indicator values.
    values : ndarray of int, shape (c,)
        Sets of indicator values, as bit masks.
    cell_costs, value_costs : ndarray, shape (r, kinds) and (kinds, c)
        Cost of naming the cells, and of naming the indicator values, for each kind of restriction.
        The kind is the set of indicator values that occur: if only two devices occur, naming both
        is naming any device.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.int64]
    cell_costs: NDArray[np.uint16]
    value_costs: NDArray[np.uint16]

    @property
    def size(self) -> int:
        """Number of subsets."""
        return len(self.rows) * len(self.values)

    def costs(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Cost of the simplest description of each subset, for some of the rows.

        At least ``NEVER`` for subsets without a description, which exist if the number of values in
        a union is bounded.
        """
        least = np.full((stop - start, len(self.values)), 2 * NEVER, dtype=np.uint16)
        for kind in range(len(self.value_costs)):
            rows = self.cell_costs[start:stop, kind, None]
            np.minimum(least, rows + self.value_costs[kind], out=least)
        return least


class Lattice:
    """The distinct subsets of a table, with the simplest description of each.

    Parameters
    ----------
    factors : list of Factor
        The keys; the first with few enough values becomes the indicator.
    n : int
        Number of configurations.

    Attributes
    ----------
    cell_of, value_of : ndarray of int, shape (n,)
        Cell and indicator value of each configuration.
    n_cells, n_values : int
        The number of cells and of indicator values.
    restrictions : ndarray of uint64, shape (restrictions, words)
        Distinct sets of cells, packed; made by ``build``.
    blocks : list of Block
        The subsets; made by ``build``.
    """

    def __init__(self, factors: list[Factor], n: int) -> None:
        indicator, others = _split(factors, n)
        self.n_values = len(indicator.values)
        self.value_of = indicator.codes
        codes = [f.codes for f in others] or [np.zeros(n, dtype=np.int64)]
        cells, cell_of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        self.cell_of = cell_of.reshape(-1).astype(np.int64)
        self.n_cells = len(cells)
        occurs = np.zeros((self.n_values, self.n_cells), dtype=bool)
        occurs[self.value_of, self.cell_of] = True
        self._occurs = pack(occurs)
        self._value_namings = indicator.namings()
        self._namings = [list(f.namings().items()) for f in others]
        self._masks = [
            pack(as_matrix([mask for mask, _ in namings], len(f.values))[:, cells[:, j]])
            for j, (f, namings) in enumerate(zip(others, self._namings, strict=True))
        ]
        self.blocks: list[Block] = []

    @property
    def descriptions(self) -> int:
        """Number of conjunctions of unions of values that name these subsets."""
        total = len(self._value_namings)
        for masks in self._masks:
            total *= len(masks)
        return total

    def build(self) -> bool:
        """Make the blocks. Return False, without blocks, if the search would take too long."""
        words = self._occurs.shape[1]
        if self.descriptions // len(self._value_namings) * words > _MOST_CROSSED:
            return False
        self._restrict()
        masks = np.asarray(list(self._value_namings), dtype=np.int64)
        named = np.asarray([n.cost for n in self._value_namings.values()], dtype=np.uint16)
        occurs = np.zeros(1 << self.n_values, dtype=bool)
        for present in self._kinds:
            occurs[masks & present] = True
        seen = np.flatnonzero(occurs[1:]) + 1
        spans = self._cells_of(seen)
        first, group = distinct(spans, np.zeros(len(seen), dtype=np.int64))
        if len(self.restrictions) * max(len(first) * words, len(self._kinds)) > _MOST_MERGED:
            return False
        costs = np.full((len(self._kinds), len(seen)), NEVER, dtype=np.uint16)
        for kind, present in enumerate(self._kinds):
            left = np.flatnonzero(masks & present)
            np.minimum.at(costs[kind], np.searchsorted(seen, masks[left] & present), named[left])
        blocks, held, work = [], 0, len(self.restrictions) * self.n_cells * self.n_values
        for index, leader in enumerate(first):
            columns = np.flatnonzero(group == index)
            for block in self._cut(spans[leader], seen[columns], costs[:, columns]):
                blocks.append(block)
                work += block.size * (self.n_values + len(block.value_costs))
                held += block.cell_costs.size
            if work > _MOST_WORK or held > _MOST_COSTS:
                return False
        # Simple subsets first: the search then knows early which subsets are too complex to keep.
        blocks.sort(key=lambda b: int(b.cell_costs.min()) + int(b.value_costs.min()))
        self.blocks = blocks
        return True

    def _restrict(self) -> None:
        """Cross the unions of all keys but the indicator; merge those of the same cells."""
        cells = pack(np.ones((1, self.n_cells), dtype=bool))
        costs = np.zeros(1, dtype=np.int64)
        times = np.ones(1, dtype=np.int64)
        recipe = np.zeros((1, 0), dtype=np.int32)
        for masks, namings in zip(self._masks, self._namings, strict=True):
            own = np.asarray([naming.cost for _, naming in namings])
            a, b = np.divmod(np.arange(len(cells) * len(masks)), len(masks))
            crossed, total = cells[a] & masks[b], costs[a] + own[b]
            first, group = distinct(crossed, total)
            keep = crossed[first].any(axis=1)
            times = np.bincount(group, weights=times[a])[keep].astype(np.int64)
            first = first[keep]
            cells, costs = crossed[first], total[first]
            recipe = np.column_stack([recipe[a[first]], b[first].astype(np.int32)])
        self.restrictions, self._costs = cells, costs
        self._times, self._recipe = times, recipe
        self._present = self._values_in(cells)
        self._kinds, self._kind = np.unique(self._present, return_inverse=True)

    def _cut(
        self, span: NDArray[np.uint64], values: NDArray[np.int64], costs: NDArray[np.uint16]
    ) -> Iterator[Block]:
        """Reduce the restrictions to the cells in which these sets of indicator values occur."""
        cut = self.restrictions & span
        nonempty = np.flatnonzero(cut.any(axis=1))
        first, group = distinct(cut[nonempty], self._costs[nonempty])
        leaders = nonempty[first]
        present = self._values_in(cut[leaders]) & np.bitwise_or.reduce(values)
        naming = np.full((len(first), len(self._kinds)), NEVER, dtype=np.uint16)
        own = self._costs[nonempty].astype(np.uint16)
        np.minimum.at(naming, (group, self._kind[nonempty]), own)
        for occurring in np.unique(present):
            rows = np.flatnonzero(present == occurring)
            rows = rows[np.argsort(leaders[rows])]
            kinds = np.flatnonzero((naming[rows] < NEVER).any(axis=0))
            # Only sets of values that all occur have a cost for one of these kinds.
            columns = np.flatnonzero((costs[kinds] < NEVER).any(axis=0))
            if len(columns):
                yield Block(
                    leaders[rows],
                    values[columns],
                    np.ascontiguousarray(naming[np.ix_(rows, kinds)]),
                    np.ascontiguousarray(costs[np.ix_(kinds, columns)]),
                )

    def _values_in(self, cells: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find the indicator values that occur in each set of cells, as bit masks."""
        values = np.zeros(len(cells), dtype=np.int64)
        for i, own in enumerate(self._occurs):
            values |= (cells & own).any(axis=1).astype(np.int64) << i
        return values

    def _cells_of(self, values: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Find the cells in which any of the indicator values occurs, for each set of values."""
        cells = np.zeros((len(values), self._occurs.shape[1]), dtype=np.uint64)
        for i, own in enumerate(self._occurs):
            cells[values >> i & 1 == 1] |= own
        return cells

    def sets_of_cells(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Unpack restrictions, shape (m, cells)."""
        return unpack(self.restrictions[rows], self.n_cells)

    def sets_of_values(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Unpack sets of indicator values, shape (m, values)."""
        chosen: NDArray[np.bool_] = (values[:, None] >> np.arange(self.n_values)) & 1 == 1
        return chosen

    def describe(self, row: int, values: int) -> tuple[Naming, int]:
        """Return the simplest description of a subset, and how many descriptions there are."""
        span = self._cells_of(np.asarray([values], dtype=np.int64))
        same = np.flatnonzero(
            (self.restrictions & span == self.restrictions[row] & span).all(axis=1)
        )
        masks = np.asarray(list(self._value_namings), dtype=np.int64)
        named = np.asarray([naming.cost for naming in self._value_namings.values()])
        best, chosen, count = 2 * NEVER, (0, 0), 0
        for kind in np.unique(self._present[same]):
            fitting = np.flatnonzero(masks & kind == values)
            rows = same[self._present[same] == kind]
            count += int(self._times[rows].sum()) * len(fitting)
            if len(fitting):
                r, v = rows[self._costs[rows].argmin()], fitting[named[fitting].argmin()]
                if self._costs[r] + named[v] < best:
                    best, chosen = int(self._costs[r] + named[v]), (int(r), int(v))
        where: list[tuple[str, tuple[Any, ...]]] = []
        where += list(self._value_namings.values())[chosen[1]].where
        for namings, i in zip(self._namings, self._recipe[chosen[0]], strict=True):
            where += namings[i][1].where
        return Naming(best, tuple(where)), count


def build_lattice(factors: list[Factor], n: int) -> Lattice:
    """Build the largest feasible lattice: complete if possible, else with bounds.

    The bound is the number of values in a union (or left out of it). It is lowered first for the
    key with the most unions. A key is given up only if not even single values are feasible.
    """
    for factor in factors:
        while factor.count() > _MOST_OPTIONS:
            factor.listed -= 1
    while True:
        lattice = Lattice([f for f in factors if f.listed], n)
        if lattice.build():
            return lattice
        largest = max(factors, key=lambda f: (f.listed > 1, f.count()))
        largest.listed -= 1


def _split(factors: list[Factor], n: int) -> tuple[Factor, list[Factor]]:
    """Choose the indicator: the key with the most values whose unions can all be searched."""
    for i, factor in enumerate(factors):
        if len(factor.values) <= MOST_COMPLETE:
            return factor, factors[:i] + factors[i + 1 :]
    return Factor("", [None], np.zeros(n, dtype=np.int64), 1), factors


# Many sets of small numbers at once, as bits in 64-bit words.


def as_matrix(masks: Sequence[int], size: int) -> NDArray[np.bool_]:
    """Turn bit masks of any length into a boolean matrix with ``size`` columns.

    Examples
    --------
    >>> as_matrix([0b01, 0b10], 2).astype(int).tolist()
    [[1, 0], [0, 1]]
    """
    width = -(-size // 8)
    raw = b"".join(mask.to_bytes(width, "little") for mask in masks)
    octets = np.frombuffer(raw, dtype=np.uint8).reshape(len(masks), width)
    return np.unpackbits(octets, axis=1, count=size, bitorder="little").astype(bool)


def pack(sets: NDArray[np.bool_]) -> Words:
    """Pack the rows of a boolean matrix into words, shape (rows, words)."""
    octets = np.packbits(sets, axis=1)
    wide = np.zeros((len(sets), -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    wide[:, : octets.shape[1]] = octets
    return wide.view(np.uint64)


def unpack(words: Words, size: int) -> NDArray[np.bool_]:
    """Undo ``pack``."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=size).astype(bool)


def distinct(words: Words, costs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the cheapest of each group of equal rows, and the group that each row is in.

    Examples
    --------
    >>> words = np.array([[7], [5], [7]], dtype=np.uint64)
    >>> [part.tolist() for part in distinct(words, np.array([3, 1, 2]))]
    [[1, 2], [1, 0, 1]]
    """
    order = np.lexsort((costs, *words.T))
    ordered = words[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return order[new], group
