"""Pairs added up by their keys: a table whose rows are groups of pairs, with sums over each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from errcomp.scale._errors import MOST_HISTOGRAMS
from errcomp.scale._quantiles import Histogram
from errcomp.scale._totals import Totals
from errcomp.tables.frames import Sum
from errcomp.tables.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.scale.pairs import PairRows

__all__ = ["PairTotals"]


class PairTotals(Table):
    """Sums over pairs that stay in an engine, one row for each combination of keys.

    What `errcomp.tables.Pairs` offers to group and select, it offers as well; what needs single
    pairs it does not.

    Parameters
    ----------
    pairs : PairRows
    by : sequence of str
        Keys that parts are chosen by. Quantiles are known of parts that are unions of their groups.
    clusters : sequence of str
        Keys that quantiles are known by as well, unless there are too many.
    within : sequence of str
        Keys that split these groups further; sums are known of every combination.
    sums : sequence of Sum

    Attributes
    ----------
    engine : str
        Where the pairs are.

    Raises
    ------
    InputError
        A key does not exist, or a row cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> from errcomp.scale.pairs import PairRows
    >>> rows = PairRows(pl.LazyFrame({"predicted": [11.0, 9.0], "measured": [10.0, 10.0],
    ...                               "device": ["A", "A"]}))
    >>> totals = PairTotals(rows, by=["device"], within=[], sums=[Sum(("ape",))])
    >>> len(totals), totals.n, totals.histogram().n.tolist()
    (1, 2, [2])
    """

    def __init__(
        self,
        pairs: PairRows,
        *,
        by: Sequence[str],
        within: Sequence[str],
        sums: Sequence[Sum],
        clusters: Sequence[str] = (),
    ) -> None:
        keys = tuple(dict.fromkeys((*by, *clusters, *within)))
        pairs.check_columns(keys)
        self._totals = pairs.totals(keys, sums)
        known = tuple(dict.fromkeys((*by, *clusters)))
        if self._totals.numbered(known)[1] > MOST_HISTOGRAMS:
            known = tuple(by)
        self._histogram = pairs.histogram(known)
        self._of_histogram = self._totals.merged(known)
        self._group = self._totals.numbered(known)[0]
        self.source, self.subject, self.selection = pairs.source, None, dict(pairs.selection)
        self.unit, self.dropped, self.engine = pairs.unit, pairs.dropped, pairs.engine
        self.rows = np.arange(len(self._totals))
        self._native = pairs.native
        self._columns = {name: _objects(self._totals.keys[name]) for name in keys}

    @property
    def n(self) -> int:
        """Number of pairs."""
        return int(self.counts.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of pairs in each row, shape (rows,)."""
        return self._totals.n

    def take(self, index: NDArray[Any]) -> Self:
        """Return the rows at these positions (or under this mask) as a table of their own."""
        part = object.__new__(type(self))
        part.source, part.subject, part.unit = self.source, self.subject, self.unit
        part.dropped, part.selection, part.engine = (), self.selection, self.engine
        part.rows, part._native, part._histogram = self.rows[index], self._native, self._histogram
        part._totals, part._group = self._totals.select(index), self._group[index]
        part._of_histogram = self._of_histogram
        part._columns = {name: values[index] for name, values in self._columns.items()}
        return part

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise if there is no such key."""
        for name in names:
            self.column(name)

    def sums(self, one: Sum) -> NDArray[np.float64]:
        """Return a sum over the pairs of each row, shape (rows,)."""
        return self._totals.sums[one]

    def totals(self, by: Sequence[str], sums: Sequence[Sum] = ()) -> Totals:
        """Add up by group, ordered by key, as `PairRows.totals`: all sums that there are."""
        return self._totals.merged(by)

    def has_histogram(self, by: Sequence[str]) -> bool:
        """Say whether `histogram` knows these keys."""
        return set(by) <= self._of_histogram.keys.keys()

    def histogram(self, by: Sequence[str] = ()) -> Histogram:
        """Return the histograms of the groups, ordered by key."""
        there = np.unique(self._group)
        found = self._histogram.select(there)
        return found.merged(self._of_histogram.select(there).numbered(by)[0])


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
