"""Values of all families of rules for many subsets at once, from sums over cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.search.configurations import Configurations
from errcomp.claims.search.lattice import Lattice
from errcomp.claims.search.rules import FAMILIES, RULES, Family, Rule, Sums, errors, rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["SMALL_PRODUCT", "Subsets", "SumsByName", "Table"]

#: Multiplications in one matrix product. Larger ones are spread over threads by the BLAS, which
#: then wait for each other wherever the cores are busy.
SMALL_PRODUCT = 240_000
_MOST_ELEMENTS = 4_000_000  # of one intermediate array


@dataclass(frozen=True, slots=True)
class Subsets:
    """Some subsets of the lattice, as what they select.

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
    """Sums by name, and what many families share of that which is made of them."""

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
        """Return what is made of sums, made once for all families that need it."""
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]


class Table:
    """Sums of what each pair adds, per cell and indicator value, and what follows from them.

    Parameters
    ----------
    configurations : Configurations
        The rows.
    lattice : Lattice
        Where each row is.
    rules : sequence of Rule
        What to search, with what it costs.

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
        found: NDArray[np.int64] = self._sums(self.cubes[0][at : at + 1], subsets)[0].astype(int)
        return found

    def evaluate(
        self, tool: int, subsets: Subsets, families: Sequence[Family] | None = None
    ) -> dict[Family, Floats]:
        """Compute families (all, if not given) for one tool, shape (m,) each."""
        families = self.families if families is None else families
        needed = [t for t in self.terms if any(t in f.terms for f in families)]
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
        found = np.empty((len(cube), len(rows), cube.shape[2]))
        # A product for each term, small enough that the BLAS does it in the thread it is called in.
        step = max(1, SMALL_PRODUCT // cube[0].size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            cells = self.lattice.sets_of_cells(rows[part]).astype(np.float64)
            np.matmul(cells, cube, out=found[:, part])
        return found

    def _sums(self, cube: Floats, subsets: Subsets) -> Floats:
        """Sum each term over each subset, shape (terms, m)."""
        sums = np.empty((len(cube), len(subsets)))
        step = max(1, _MOST_ELEMENTS // (len(cube) * cube.shape[2]))
        for start in range(0, len(subsets), step):
            part = subsets.part(slice(start, start + step))
            columns = self.lattice.sets_of_values(part.values).astype(np.float64)
            by_value = self.by_value(cube, part.rows)
            np.einsum("tmv,mv->tm", by_value, columns, out=sums[:, start : start + step])
        return sums

    def _median(self, tool: int, family: Family, subsets: Subsets) -> Floats:
        """Compute the median error of each subset, shape (m,)."""
        c, lattice = self.configurations, self.lattice
        error = errors(c.predicted[tool], c.measured[tool], family.denominator)
        order = np.argsort(error)
        error = error[order]
        cell_of, value_of = lattice.cell_of[order], lattice.value_of[order]
        found = np.empty(len(subsets))
        step = max(1, _MOST_ELEMENTS // len(error))
        for start in range(0, len(subsets), step):
            part = slice(start, start + step)
            cells = lattice.sets_of_cells(subsets.rows[part])
            inside = cells[:, cell_of] & lattice.sets_of_values(subsets.values[part])[:, value_of]
            below = np.cumsum(inside, axis=1, dtype=np.int32)
            n = below[:, -1:]
            lower = np.argmax(below >= (n + 1) // 2, axis=1)
            upper = np.argmax(below >= n // 2 + 1, axis=1)
            found[part] = (error[lower] + error[upper]) / 2
        return found
