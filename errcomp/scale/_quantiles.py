"""Quantiles of APE from histograms on a logarithmic scale, which add up over parts of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.metrics.intervals._counts import quantile_needs, ranks_in_clusters
from errcomp.metrics.ranked import BUCKET
from errcomp.scale._totals import Totals
from errcomp.tables.frames import Added, is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Histogram", "bounds_in_clusters", "quantile_bounds", "quantiles"]

#: Stands for the logarithm of an exact prediction's error.
_EXACT = np.iinfo(np.int64).min
#: Stands for that of an error beyond the largest float64.
_BEYOND = 10**6


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many pairs of each group have an APE in each bucket, buckets in ascending order.

    Attributes
    ----------
    bucket, count : sequence of ndarray of int
        For each group the buckets that hold pairs, and how many.
    n : ndarray of int, shape (groups,)
    """

    bucket: Sequence[NDArray[np.int64]]
    count: Sequence[NDArray[np.int64]]
    n: NDArray[np.int64]

    @classmethod
    def of(cls, found: Added, buckets: Sequence[float | None]) -> Histogram:
        """Order what an engine has sent by group and bucket."""
        numbers = np.asarray(
            [_EXACT if is_missing(b) else _number(b) for b in buckets], dtype=np.int64
        )
        group, _ = Totals.of(found).numbered(tuple(found.keys))
        order = np.lexsort((numbers, group))
        starts = np.flatnonzero(np.diff(group[order])) + 1
        bucket = np.split(numbers[order], starts)
        count = np.split(found.n[order], starts)
        return cls(bucket, count, np.asarray([c.sum() for c in count], dtype=np.int64))

    def select(self, index: NDArray[np.int64]) -> Histogram:
        """Return some of the groups."""
        chosen = index.tolist()
        return Histogram(
            [self.bucket[i] for i in chosen], [self.count[i] for i in chosen], self.n[index]
        )

    def merged(self, codes: NDArray[np.int64]) -> Histogram:
        """Put groups together that have the same number, from 0 without gaps."""
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order])) + 1
        parts = [self.select(index).pooled() for index in np.split(order, starts)]
        return Histogram(
            [part.bucket[0] for part in parts],
            [part.count[0] for part in parts],
            np.asarray([part.n[0] for part in parts]),
        )

    def pooled(self) -> Histogram:
        """Return the histogram of all groups together."""
        bucket, where = np.unique(np.concatenate(self.bucket), return_inverse=True)
        count = np.zeros(len(bucket), dtype=np.int64)
        np.add.at(count, where, np.concatenate(self.count))
        return Histogram([bucket], [count], np.asarray([self.n.sum()]))

    def errors(self) -> Floats:
        """Return the errors of the first group in ascending order: the middles of their buckets."""
        return np.repeat(self._middles(), self.count[0])

    def share_of_largest(self, worst: int) -> float:
        """Return the share of so many largest errors of the first group in the sum of them all."""
        middle, down = self._middles(), self.count[0][::-1]
        taken = np.clip(worst - (down.cumsum() - down), 0, down)[::-1]
        return float((taken * middle).sum() / (self.count[0] * middle).sum())

    def _middles(self) -> Floats:
        return np.asarray([_value(bucket, 0.5) for bucket in self.bucket[0].tolist()])

    def at(self, i: int, rank: int) -> int:
        """Return the bucket of the rank-th smallest error of a group, from 1."""
        return int(self.bucket[i][np.searchsorted(np.cumsum(self.count[i]), rank)])


def quantiles(histogram: Histogram, q: float) -> Floats:
    """Return a quantile of each group, as `errcomp.metrics.ranked.approximate_ape_quantile`."""
    found = []
    for i, n in enumerate(histogram.n.tolist()):
        rank = int(q * (n - 1))
        share = q * (n - 1) % 1
        low = _value(histogram.at(i, 1 + rank), 0.5)
        high = _value(histogram.at(i, 2 + rank), 0.5) if share else low
        found.append(low + share * (high - low))
    return np.asarray(found, dtype=np.float64)


def quantile_bounds(histogram: Histogram, q: float, level: float) -> tuple[Floats, Floats, int]:
    """Return the bounds of each group, NaN where it is too small, and the pairs that are needed.

    The ranks are those of `errcomp.metrics.intervals._counts.order_statistics`; the bounds are the
    outer edges of their buckets.
    """
    needed = quantile_needs(q, level)
    low, high = np.full(len(histogram.n), np.nan), np.full(len(histogram.n), np.nan)
    for i, n in enumerate(histogram.n.tolist()):
        if n < needed:
            continue
        first, last = _ranks(n, q, (1 - level) / 2)
        low[i] = _value(histogram.at(i, first), 0.0)
        high[i] = _value(histogram.at(i, last), 1.0)
    return low, high, needed


def bounds_in_clusters(clusters: Histogram, q: float, level: float) -> tuple[float, float] | None:
    """Return the bounds of a quantile of one group from the histograms of its clusters.

    As `errcomp.metrics.intervals._counts.quantile_in_clusters`, to the outer edges of buckets.
    """
    whole = clusters.pooled()
    middle = whole.at(0, 1 + int(q * (int(whole.n[0]) - 1)))
    both = zip(clusters.bucket, clusters.count, strict=True)
    below = np.asarray([count[bucket <= middle].sum() for bucket, count in both], dtype=np.float64)
    ranks = ranks_in_clusters(below, clusters.n.astype(np.float64), q, level)
    if ranks is None:
        return None
    return _value(whole.at(0, ranks[0]), 0.0), _value(whole.at(0, ranks[1]), 1.0)


def _ranks(n: int, q: float, tail: float) -> tuple[int, int]:
    """Return the largest rank below and the smallest above with at most this probability beyond."""
    from scipy import stats

    law = stats.binom
    first = int(law.ppf(tail, n, q))
    return first + int(law.cdf(first, n, q) <= tail), int(law.ppf(1 - tail, n, q)) + 1


def _number(bucket: Any) -> int:
    return int(bucket) if bucket < _BEYOND else _BEYOND


def _value(bucket: int, where: float) -> float:
    if bucket == _BEYOND:
        return np.inf
    return 0.0 if bucket == _EXACT else float(np.exp((bucket + where) * BUCKET))
