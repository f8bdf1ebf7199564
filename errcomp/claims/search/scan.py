"""The screen: which subsets and rules of the whole lattice can reproduce the figures.

Every family but the median is a ratio of sums (for some, of logarithms or squares), so a block of
subsets needs a matrix product and two comparisons. A median lies in ``[a, b)`` only if at most half
of the errors are below ``a`` and at least half are below ``b``. The two counts are sums as well.
For an even number of errors the condition is necessary, not sufficient. The limits are widened by
the rounding error of the sums. Candidates that pass are computed again by ``Table.evaluate``, and
reported ones from their definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import Printed, tolerance
from errcomp.claims.search.keys import Configurations
from errcomp.claims.search.lattice import Block, Lattice
from errcomp.claims.search.rules import FAMILIES, RULES, Family, Rule, Sums, errors, rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    _Part = tuple[int, int, int]  # block, first row, row after the last
    _Places = tuple[NDArray[np.int64], NDArray[np.int64]]  # positions and rules
    _Kept = tuple[NDArray[np.int64], NDArray[np.int64]]  # number that passed, and the kept ones

#: Multiplications in one matrix product. The BLAS spreads larger products over threads, which wait
#: for each other if the cores are busy.
SMALL_PRODUCT = 240_000
_MOST_ELEMENTS = 4_000_000  # of one intermediate array


@dataclass(frozen=True, slots=True)
class Subsets:
    """Some subsets of the lattice, by their cells and indicator values.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Sets of cells, as positions in ``Lattice.restrictions``.
    values : ndarray of int, shape (m,)
        Sets of indicator values, as bit masks.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def part(self, index: NDArray[np.int64] | slice) -> Subsets:
        """Return some of them."""
        return Subsets(self.rows[index], self.values[index])


class SumsByName:
    """Sums by name, and results computed from them that several families share."""

    def __init__(self, terms: dict[str, int], at: Callable[[int], Floats]) -> None:
        self.at, self._terms = at, terms
        self._made: dict[str, Floats] = {}

    def __call__(self, name: str) -> Floats:
        """Return the sums."""
        return self.at(self._terms[name])

    def inverse(self, name: str) -> Floats:
        """Return one over the sum."""
        return self.once(f"inverse {name}", lambda sums: 1 / sums(name))

    def once(self, name: str, make: Callable[[Sums], Floats]) -> Floats:
        """Return a result computed from sums, only once for all families that need it."""
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]


class Table:
    """Sums of the terms of each pair, per cell and indicator value, and metrics from them.

    Parameters
    ----------
    configurations : Configurations
        The rows.
    lattice : Lattice
        Where each row is.
    rules : sequence of Rule
        The rules to search, with their costs.

    Attributes
    ----------
    families, rules : list
        Those that can be computed for every tool.
    cubes : list of ndarray, shape (terms, cells, values)
        Sums for each tool.
    terms : dict of str to int
        Position of each term in the cubes.
    """

    def __init__(
        self, configurations: Configurations, lattice: Lattice, rules: Sequence[Rule] = RULES
    ) -> None:
        self.configurations, self.lattice = configurations, lattice
        p, m = configurations.predicted, configurations.measured
        rows = [rows_for(p[t], m[t]) for t in range(len(p))]
        shared = [name for name in rows[0] if all(name in other for other in rows[1:])]
        self.terms = {name: i for i, name in enumerate(shared)}
        self.cubes = [self.cube([tool[name] for name in shared]) for tool in rows]
        self._rows = rows
        self.families: list[Family] = [
            f for f in FAMILIES if all(term in self.terms for term in f.terms)
        ]
        self.rules: list[Rule] = [r for r in rules if r.family in self.families]

    def reaches(self, tool: int, family: Family, low: float, high: float) -> bool:
        """Whether any set of rows can have a value in this interval.

        An average, weighted or not, lies between the smallest and the largest of its terms. Totals
        cancel, so they start at 0; a correlation is at most 1.
        """
        if family.kind == "agreement":
            return low <= 1
        rows = self._rows[tool]
        name = f"error {family.denominator}" if family.kind != "mean" else family.term
        least = 0.0 if family.kind == "totals" else rows[name].min()
        return bool(high > least and low <= rows[name].max())

    def cube(self, rows: Sequence[Floats]) -> Floats:
        """Sum vectors over the rows of each cell and indicator value."""
        lattice = self.lattice
        size = lattice.n_cells * lattice.n_values
        at = lattice.cell_of * lattice.n_values + lattice.value_of
        sums = np.empty((len(rows), size))
        for i, row in enumerate(rows):
            sums[i] = np.bincount(at, weights=row, minlength=size)
        return sums.reshape(len(rows), lattice.n_cells, lattice.n_values)

    def count(self, subsets: Subsets) -> NDArray[np.int64]:
        """Count the configurations in each subset."""
        at = self.terms["one"]
        counts: NDArray[np.int64] = self._sums(self.cubes[0][at : at + 1], subsets)[0].astype(int)
        return counts

    def evaluate(
        self, tool: int, subsets: Subsets, families: Sequence[Family] | None = None
    ) -> dict[Family, Floats]:
        """Compute families (by default all) for one tool, shape (m,) each."""
        families = self.families if families is None else families
        wanted = {term for family in families for term in family.terms}
        needed = [t for t in self.terms if t in wanted]
        sums = self._sums(self.cubes[tool][[self.terms[t] for t in needed]], subsets)
        total = SumsByName({t: i for i, t in enumerate(needed)}, sums.__getitem__)
        return {
            family: self._median(tool, family, subsets)
            if family.kind == "median"
            else family.unscale(family.combine(total))
            for family in families
        }

    def by_value(self, cube: Floats, rows: NDArray[np.int64]) -> Floats:
        """Sum each term over each restriction, for every indicator value: (terms, m, values)."""
        sums = np.empty((len(cube), len(rows), cube.shape[2]))
        # A product per term, small enough for the BLAS to compute in the calling thread.
        step = max(1, SMALL_PRODUCT // cube[0].size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            cells = self.lattice.sets_of_cells(rows[part]).astype(np.float64)
            np.matmul(cells, cube, out=sums[:, part])
        return sums

    def _sums(self, cube: Floats, subsets: Subsets) -> Floats:
        """Sum each term over each subset, shape (terms, m)."""
        sums = np.empty((len(cube), len(subsets)))
        step = max(1, _MOST_ELEMENTS // (len(cube) * cube.shape[2]))
        for start in range(0, len(subsets), step):
            part = subsets.part(slice(start, start + step))
            columns = self.lattice.sets_of_values(part.values).astype(np.float64)
            # Many subsets share a set of cells, over which each term is summed once.
            rows, which = np.unique(part.rows, return_inverse=True)
            for own, by_value in zip(sums, self.by_value(cube, rows), strict=True):
                np.einsum("mv,mv->m", by_value[which], columns, out=own[start : start + step])
        return sums

    def _median(self, tool: int, family: Family, subsets: Subsets) -> Floats:
        """Compute the median error of each subset, shape (m,)."""
        c, lattice = self.configurations, self.lattice
        error = errors(c.predicted[tool], c.measured[tool], family.denominator)
        order = np.argsort(error)
        error = error[order]
        cell_of, value_of = lattice.cell_of[order], lattice.value_of[order]
        medians = np.empty(len(subsets))
        step = max(1, _MOST_ELEMENTS // len(error))
        for start in range(0, len(subsets), step):
            part = slice(start, start + step)
            cells = lattice.sets_of_cells(subsets.rows[part])
            inside = cells[:, cell_of] & lattice.sets_of_values(subsets.values[part])[:, value_of]
            # Where the errors inside are: subset after subset, each from small to large.
            place = np.flatnonzero(inside) % len(error)
            n = np.count_nonzero(inside, axis=1)
            first = np.cumsum(n) - n
            lower, upper = place[first + (n - 1) // 2], place[first + n // 2]
            medians[part] = (error[lower] + error[upper]) / 2
        return medians


_CHUNK = 20_000  # subsets at a time, so that their results stay in the cache
_LEAST = 50  # sets of values to allow for: a part has at most 1/50 as many rows as subsets
_SLAB = 8_000_000  # sums per indicator value that are kept at a time
_LEVELS = 4_096  # different costs, in tenths of a bit
_THREADS = 2
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of subset and rule that passed the screen, as parallel arrays.

    Attributes
    ----------
    subsets : Subsets
        The selected rows.
    rule : ndarray of int
        Position in ``Table.rules``.
    complexity : ndarray of int
        Of the subset and the rule together, in tenths of a bit.
    passed : ndarray of int
        Number that passed, by complexity, including those not kept.
    kept_up_to : int
        Up to this complexity, all that passed were kept.
    """

    subsets: Subsets
    rule: NDArray[np.int64]
    complexity: NDArray[np.int64]
    passed: NDArray[np.int64]
    kept_up_to: int


@dataclass(slots=True)
class _Test:
    """One rule: limits on the scale of its family, for each tool; for medians, terms to sum."""

    index: int
    limits: list[tuple[float, float]] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)


class _Screen:
    """The tests of all rules, grouped by family, and the sums they need."""

    def __init__(self, table: Table, figures: Sequence[Printed]) -> None:
        self.table = table
        # The figure with the most digits excludes the most candidates, so it is tried first.
        self.order = sorted(range(len(figures)), key=lambda t: _relative_width(figures[t]))
        self.tests: dict[Family, list[_Test]] = {}
        extra: list[list[Floats]] = [[] for _ in figures]
        for index, rule in enumerate(table.rules):
            limits = [_limits(rule, figure) for figure in figures]
            if not all(table.reaches(t, rule.family, *both) for t, both in enumerate(limits)):
                continue
            test = _Test(index)
            for t, (low, high) in enumerate(limits):
                if rule.family.kind == "median":
                    at = len(table.terms) + len(extra[t])
                    extra[t] += self._half_below(t, rule.family, low, high)
                    test.counts.append((at, at + 1))
                else:
                    scaled = rule.family.scale(np.array([low, high]))
                    test.limits.append((float(scaled[0]), float(scaled[1])))
            self.tests.setdefault(rule.family, []).append(test)
        self.cubes = [
            np.concatenate([cube, table.cube(rows)]) if rows else cube
            for cube, rows in zip(table.cubes, extra, strict=True)
        ]

    def _half_below(self, tool: int, family: Family, low: float, high: float) -> list[Floats]:
        c = self.table.configurations
        error = errors(c.predicted[tool], c.measured[tool], family.denominator)
        return [np.where(error < limit, 0.5, -0.5) for limit in (low, high)]

    def run(self, by_value: Sequence[Floats], columns: NDArray[np.bool_]) -> _Places:
        """Return the positions in a matrix of subsets that pass, and the rules that they pass.

        Parameters
        ----------
        by_value : sequence of ndarray, shape (terms, r, values)
            For each tool, sums over sets of cells for each indicator value.
        columns : ndarray of bool, shape (c, values)
            Sets of indicator values.
        """
        chosen = np.ascontiguousarray(columns.T.astype(np.float64))
        first, *others = self.order
        sums = SumsByName(self.table.terms, lambda i: by_value[first][i] @ chosen)
        places, rules = [], []
        for family, tests in self.tests.items():
            values = None if family.kind == "median" else family.combine(sums)
            for test in tests:
                at = _pass(test, first, values, sums.at).reshape(-1).nonzero()[0]
                for tool in others:
                    if len(at):
                        at = at[self._pass_at(family, test, tool, by_value[tool], chosen, at)]
                if len(at):
                    places.append(at)
                    rules.append(np.full(len(at), test.index))
        if not places:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        return np.concatenate(places), np.concatenate(rules)

    def _pass_at(
        self,
        family: Family,
        test: _Test,
        tool: int,
        by_value: Floats,
        chosen: Floats,
        at: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        rows, cols = np.divmod(at, chosen.shape[1])
        columns = chosen.T[cols]
        sums = SumsByName(
            self.table.terms, lambda i: np.einsum("mv,mv->m", by_value[i][rows], columns)
        )
        values = None if family.kind == "median" else family.combine(sums)
        return _pass(test, tool, values, sums.at)


def scan(
    table: Table,
    figures: Sequence[Printed],
    *,
    keep: int,
    progress: Callable[[int, int], None] | None = None,
) -> Candidates:
    """Screen all subsets under all rules, and keep the simplest that pass.

    Parameters
    ----------
    table : Table
        Sums over the rows, with the lattice of subsets.
    figures : sequence of Printed
        One for each tool of the table; all must be met.
    keep : int
        Keep at least this many of those that pass, and all others of the same complexity.
    progress : callable, optional
        Called with the number of subsets done and their total.

    Returns
    -------
    Candidates
    """
    screen = _Screen(table, figures)
    store = _Store(table, keep)
    blocks = table.lattice.blocks
    total, done = sum(block.size for block in blocks), 0
    rows = len(table.lattice.restrictions)
    slab = max(1, _SLAB // sum(len(cube) * cube.shape[2] for cube in screen.cubes))
    with ThreadPoolExecutor(_THREADS) as pool:
        for first in range(0, rows, slab):
            own = np.arange(first, min(first + slab, rows))
            sums = [table.by_value(cube, own) for cube in screen.cubes]

            def work(part: _Part, sums: list[Floats] = sums, first: int = first) -> _Kept:
                block = blocks[part[0]]
                at = block.rows[part[1] : part[2]] - first
                columns = table.lattice.sets_of_values(block.values)
                return store.simple(part, *screen.run([s.take(at, axis=1) for s in sums], columns))

            parts = list(_parts(blocks, first, first + slab))
            for part, candidates in zip(parts, pool.map(work, parts), strict=True):
                store.add(*candidates)
                done += (part[2] - part[1]) * len(blocks[part[0]].values)
                if progress is not None:
                    progress(done, total)
    return store.result()


def _parts(blocks: Sequence[Block], first: int, stop: int) -> Iterator[_Part]:
    """Cut the subsets of some restrictions into parts that fit the cache."""
    for b, block in enumerate(blocks):
        start, end = np.searchsorted(block.rows, [first, stop]).tolist()
        step = max(1, _CHUNK // max(len(block.values), _LEAST))
        for row in range(start, end, step):
            yield b, row, min(row + step, end)


class _Store:
    """The simplest candidates that passed, in bounded memory."""

    def __init__(self, table: Table, keep: int) -> None:
        self._blocks = table.lattice.blocks
        self._rule_costs = np.asarray([rule.cost for rule in table.rules])
        self._keep, self._limit = keep, _LEVELS - 1
        self._passed = np.zeros(_LEVELS, dtype=np.int64)
        self._kept: list[NDArray[np.int64]] = []
        self._size, self._compact_at = 0, 10 * keep

    def simple(self, part: _Part, at: NDArray[np.int64], rules: NDArray[np.int64]) -> _Kept:
        """Return the number that passed, by complexity, and those to keep; may run in a thread."""
        block, start, stop = part
        costs = self._blocks[block].costs(start, stop).reshape(-1)
        complexity = costs[at] + self._rule_costs[rules]
        # If unions are bounded, subsets without a description are not searched.
        passed = np.bincount(complexity[complexity < _LEVELS], minlength=_LEVELS)
        good = np.flatnonzero(complexity <= self._limit)
        rows, cols = np.divmod(at[good], len(self._blocks[block].values))
        blocks = np.full(len(good), block)
        return passed, np.stack([blocks, start + rows, cols, rules[good], complexity[good]])

    def add(self, passed: NDArray[np.int64], candidates: NDArray[np.int64]) -> None:
        """Add the candidates that passed in a part of the lattice."""
        self._passed += passed
        self._limit = min(self._limit, int(np.searchsorted(np.cumsum(self._passed), self._keep)))
        self._kept.append(candidates)
        self._size += candidates.shape[1]
        if self._size > self._compact_at:
            self._compact()

    def _compact(self) -> NDArray[np.int64]:
        candidates = np.concatenate([np.empty((5, 0), dtype=np.int64), *self._kept], axis=1)
        candidates = candidates[:, candidates[4] <= self._limit]
        self._kept, self._size = [candidates], candidates.shape[1]
        self._compact_at = max(self._compact_at, 2 * self._size)
        return candidates

    def result(self) -> Candidates:
        """Return the kept candidates."""
        block, row, col, rule, complexity = self._compact()
        rows, values = np.zeros(len(block), dtype=np.int64), np.zeros(len(block), dtype=np.int64)
        for b in np.unique(block):
            at = np.flatnonzero(block == b)
            rows[at] = self._blocks[b].rows[row[at]]
            values[at] = self._blocks[b].values[col[at]]
        return Candidates(Subsets(rows, values), rule, complexity, self._passed, self._limit)


def _pass(
    test: _Test, tool: int, values: Floats | None, sums: Callable[[int], Floats]
) -> NDArray[np.bool_]:
    if values is None:
        below_low, below_high = test.counts[tool]
        return (sums(below_low) <= 0) & (sums(below_high) >= 0)
    low, high = test.limits[tool]
    passed: NDArray[np.bool_] = values >= low
    passed &= values < high
    return passed


def _limits(rule: Rule, figure: Printed) -> tuple[float, float]:
    """Limits of the family's value, widened by the rounding error of sums."""
    low, high, slack = figure.low, figure.high, tolerance(figure)
    if rule.reading == "100 - error":
        low, high = 1 - high, 1 - low
    return max(0.0, low * (1 - _ROUNDING) - slack), high * (1 + _ROUNDING) + slack


def _relative_width(figure: Printed) -> float:
    return (figure.high - figure.low) / figure.high if figure.high < math.inf else 1.0
