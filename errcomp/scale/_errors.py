"""Histograms of errors by group, and within groups by cluster where there are not too many."""

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
    by_cluster : list of Histogram, optional
        For each group, those of its clusters.
    cluster : ndarray of int, optional
        Number of the cluster of each of these histograms, in the order of the groups.
    """

    whole: Histogram
    by_cluster: list[Histogram] | None = None
    cluster: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        pairs: PairRows | PairTotals,
        fine: Totals,
        by: Sequence[str],
        outer: Sequence[str],
    ) -> Errors:
        """Fetch histograms of rows whose sums by these keys are known.

        Parameters
        ----------
        pairs : PairRows or PairTotals
        fine : Totals
            Sums by group and cluster.
        by, outer : sequence of str
            Keys of the groups, and of the clusters that are drawn: none for pairs by themselves.
        """
        keys = list(dict.fromkeys((*by, *outer)))
        if not outer or not pairs.has_histogram(keys):
            return cls(pairs.histogram(by))
        cells = fine.merged(keys)
        if len(cells) > MOST_HISTOGRAMS:
            return cls(pairs.histogram(by))
        found = pairs.histogram(keys)
        group, _ = cells.numbered(by)
        starts = np.flatnonzero(np.diff(group)) + 1
        parts = [found.select(index) for index in np.split(np.arange(len(group)), starts)]
        return cls(found.merged(group), parts, cells.numbered(outer)[0])

    def pooled(self) -> Errors:
        """Return the errors of all groups together; a cluster of several groups is one there."""
        if self.by_cluster is None or self.cluster is None:
            return Errors(self.whole.pooled())
        every = Histogram(
            [bucket for part in self.by_cluster for bucket in part.bucket],
            [count for part in self.by_cluster for count in part.count],
            np.concatenate([part.n for part in self.by_cluster]),
        )
        return Errors(self.whole.pooled(), [every.merged(self.cluster)])
