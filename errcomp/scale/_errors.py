"""Histograms of errors by group, and by what shares all clusters where that is not too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.scale._quantiles import Histogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.scale._totals import Totals
    from errcomp.scale.pair_totals import PairTotals
    from errcomp.scale.pairs import PairRows

__all__ = ["MOST_HISTOGRAMS", "Errors"]

#: Clusters of groups that have a histogram each, at most: each fetches up to some hundred buckets.
MOST_HISTOGRAMS = 20_000


class Errors(NamedTuple):
    """What quantiles are read off.

    Attributes
    ----------
    whole : Histogram
        Of each group.
    by_cell : list of Histogram, optional
        For each group, those of its cells: pairs that share all clusters.
    cell : ndarray of int, optional
        Number of the cell of each of these histograms, in the order of the groups.
    """

    whole: Histogram
    by_cell: list[Histogram] | None = None
    cell: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        pairs: PairRows | PairTotals,
        fine: Totals,
        by: Sequence[str],
        clusters: Sequence[str],
    ) -> Errors:
        """Fetch histograms of rows whose sums by these keys are known.

        Parameters
        ----------
        pairs : PairRows or PairTotals
        fine : Totals
            Sums by group and cluster.
        by, clusters : sequence of str
            Keys of the groups, and those that may carry a dependence: none for pairs by themselves.
        """
        keys = list(dict.fromkeys((*by, *clusters)))
        if not clusters or not pairs.has_histogram(keys):
            return cls(pairs.histogram(by))
        cells = fine.merged(keys)
        if len(cells) > MOST_HISTOGRAMS:
            return cls(pairs.histogram(by))
        found = pairs.histogram(keys)
        group, _ = cells.numbered(by)
        starts = np.flatnonzero(np.diff(group)) + 1
        parts = [found.select(index) for index in np.split(np.arange(len(group)), starts)]
        return cls(found.merged(group), parts, cells.numbered(clusters)[0])

    def pooled(self) -> Errors:
        """Return the errors of all groups together; a cell of several groups is one there."""
        if self.by_cell is None or self.cell is None:
            return Errors(self.whole.pooled())
        every = Histogram(
            [bucket for part in self.by_cell for bucket in part.bucket],
            [count for part in self.by_cell for count in part.count],
            np.concatenate([part.n for part in self.by_cell]),
        )
        return Errors(self.whole.pooled(), [every.merged(self.cell)])
