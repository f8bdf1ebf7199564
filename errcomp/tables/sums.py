"""Sums over groups of rows: queries to an engine, and their results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from errcomp.tables.frames import is_missing
from errcomp.tables.table import numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


#: Width of a bucket of a histogram, as a natural logarithm.
BUCKET = math.log(1.01)
#: Largest number of groups with a histogram: each group fetches up to a few hundred buckets.
MOST_HISTOGRAMS = 20_000
#: Bucket of values that are exactly 0.
_EXACT = np.iinfo(np.int64).min
#: Bucket of values above the largest float64.
_BEYOND = 10**6


class Sum(NamedTuple):
    """A sum, maximum or count over the rows of a group.

    Attributes
    ----------
    terms : tuple of str
        Factors of the product to sum (see `errcomp.tables.engine`); ``p`` is
        the prediction, ``m`` the measurement.
    how : {"sum", "max", "count", "within"}
        ``"count"``: number of rows with the term; ``"within"``: number of rows where it is at
        most ``limit``.
    limit : float
    """

    terms: tuple[str, ...]
    how: str = "sum"
    limit: float = 0.0

    @property
    def is_product(self) -> bool:
        """Whether it needs a column of products, not only a single term."""
        return len(self.terms) > 1 or self.how == "within"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums by group.

    Attributes
    ----------
    keys : mapping of str to list
        Values of each key, one per group; None where missing.
    n : ndarray of int, shape (groups,)
        Number of rows in each group.
    sums : mapping of Sum to ndarray, shape (groups,)
    """

    keys: Mapping[str, list[Any]]
    n: Ints
    sums: Mapping[Sum, Floats]

    def __len__(self) -> int:
        return len(self.n)

    def key(self, i: int) -> dict[str, Any]:
        """Return the key of one group."""
        return {name: values[i] for name, values in self.keys.items()}

    def merged(self, by: Sequence[str]) -> Totals:
        """Add up groups with the same values of these keys, and order the result by these keys."""
        numbers, count = self.numbered(by)
        if count == len(self):  # no two groups have the same values
            first = np.argsort(numbers)
        else:
            first = np.full(count, len(self), dtype=np.int64)
            np.minimum.at(first, numbers, np.arange(len(self)))
        order = first.tolist()
        keys = {name: [self.keys[name][i] for i in order] for name in by}
        known = {total: _known(total, values) for total, values in self.sums.items()}
        if count == len(self):
            return Totals(keys, self.n[first], {total: v[first] for total, v in known.items()})
        return Totals(
            keys,
            np.bincount(numbers, weights=self.n, minlength=count).astype(np.int64),
            {total: _added(total, values, numbers, count) for total, values in known.items()},
        )

    def numbered(self, by: Sequence[str]) -> tuple[Ints, int]:
        """Return the number of each group in the order of these keys, and the count of numbers.

        Groups with equal keys have the same number.
        """
        return numbered({name: self.keys[name] for name in by}, len(self))

    def parts(self, by: Sequence[str]) -> list[Ints]:
        """Return the positions of groups with equal keys; groups must be ordered by these keys."""
        starts = np.flatnonzero(np.diff(self.numbered(by)[0])) + 1
        return np.split(np.arange(len(self)), starts)

    def select(self, index: Ints | NDArray[np.bool_]) -> Totals:
        """Return some of the groups."""
        chosen = (np.flatnonzero(index) if index.dtype == bool else index).tolist()
        return Totals(
            {name: [values[i] for i in chosen] for name, values in self.keys.items()},
            self.n[index],
            {total: values[index] for total, values in self.sums.items()},
        )


def _known(total: Sum, values: Floats) -> Floats:
    """Replace NaN, the result for zero rows: −∞ for a maximum, 0 for a count."""
    if total.how == "sum":
        return values
    return np.where(np.isnan(values), -np.inf if total.how == "max" else 0.0, values)


def _added(total: Sum, values: Floats, numbers: Ints, count: int) -> Floats:
    if total.how == "max":
        out = np.full(count, -np.inf)
        np.maximum.at(out, numbers, values)
        return out
    return np.bincount(numbers, weights=values, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Number of rows per group and bucket of a value, buckets in ascending order.

    Attributes
    ----------
    bucket, count : sequence of ndarray of int
        The buckets with rows, and their number of rows, for each group.
    n : ndarray of int, shape (groups,)
    """

    bucket: Sequence[Ints]
    count: Sequence[Ints]
    n: Ints

    @classmethod
    def of(cls, counts: Totals, buckets: Sequence[Any]) -> Histogram:
        """Order counts by group and bucket; the value of rows without a bucket is exactly 0."""
        numbers = np.asarray(
            [_EXACT if is_missing(b) else int(min(b, _BEYOND)) for b in buckets], dtype=np.int64
        )
        group, _ = counts.numbered(tuple(counts.keys))
        order = np.lexsort((numbers, group))
        starts = np.flatnonzero(np.diff(group[order])) + 1
        bucket = np.split(numbers[order], starts)
        count = np.split(counts.n[order], starts)
        n = np.bincount(group, weights=counts.n, minlength=len(count)).astype(np.int64)
        return cls(bucket, count, n)

    def select(self, index: Ints) -> Histogram:
        """Return some of the groups."""
        chosen = index.tolist()
        return Histogram(
            [self.bucket[i] for i in chosen], [self.count[i] for i in chosen], self.n[index]
        )

    def merged(self, codes: Ints) -> Histogram:
        """Merge groups with the same code; codes are 0, 1, … without gaps."""
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

    def values(self) -> Floats:
        """Return the values of the first group in ascending order, as the middles of buckets."""
        return np.repeat(self._middles(), self.count[0])

    def share_of_largest(self, worst: int) -> float:
        """Return the share of the first group's sum that its `worst` largest values make up."""
        middle, down = self._middles(), self.count[0][::-1]
        taken = np.clip(worst - (down.cumsum() - down), 0, down)[::-1]
        return float((taken * middle).sum() / (self.count[0] * middle).sum())

    def _middles(self) -> Floats:
        return self.value(self.bucket[0], 0.5)

    def at(self, ranks: Ints) -> Ints:
        """Return the bucket of the value of each group with this rank; ranks start at 1."""
        before = np.cumsum(self.n) - self.n
        places = np.searchsorted(np.cumsum(np.concatenate(self.count)), before + ranks)
        return np.asarray(np.concatenate(self.bucket)[places])

    @staticmethod
    def value(bucket: Ints, where: float) -> Floats:
        """Return the values at a position in buckets: 0 is the lower edge, 1 the upper edge."""
        with np.errstate(over="ignore"):  # beyond the largest float64 is ∞, exact is 0
            return np.asarray(np.exp((bucket + where) * BUCKET))
