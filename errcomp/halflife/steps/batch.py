"""Many series, their cuts and the levels between these: flat arrays, one series after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "Cuts", "Levels", "by_length", "levels_of", "variance"]

Floats = NDArray[Any]
Ints = NDArray[Any]


class Batch(NamedTuple):
    """Series end to end, with relative weights and what is known of the noise of each.

    Attributes
    ----------
    x, weight : ndarray, shape (n,)
        Values; each has the variance ``given / weight`` where ``df > 0``, else an unknown one that
        goes with 1 / weight.
    starts : ndarray of int, shape (s + 1,)
        Values of series i are ``starts[i]:starts[i + 1]``; there is at least one of each.
    given, df : ndarray, shape (s,)
        Variance at weight 1 and its degrees of freedom: 0 where unknown, inf where exact.
    """

    x: Floats
    weight: Floats
    starts: Ints
    given: Floats
    df: Floats

    @classmethod
    def of(cls, x: Floats, sd: Floats, starts: Ints, df: Floats) -> Batch:
        """Weigh values by their noise; of a series without degrees of freedom ``sd`` is relative.

        Weights are 1 in the mean of a series: exactly 1 each where it has one ``sd``.
        """
        sizes, first = np.diff(starts), sd[starts[:-1]]
        precision = (np.repeat(first, sizes) / sd) ** 2
        mean = np.add.reduceat(precision, starts[:-1]) / sizes
        given = np.where(df > 0, first**2 / mean, 0.0)
        return cls(x, precision / np.repeat(mean, sizes), starts, given, df)

    @property
    def sizes(self) -> Ints:
        """Number of values of each series."""
        return np.asarray(np.diff(self.starts))

    def take(self, series: Ints) -> Batch:
        """Return some of the series."""
        sizes = self.sizes[series]
        starts = np.append(0, np.cumsum(sizes))
        rows = np.repeat(self.starts[series] - starts[:-1], sizes) + np.arange(starts[-1])
        return Batch(self.x[rows], self.weight[rows], starts, self.given[series], self.df[series])

    def stretches(self, series: Ints, start: Ints, length: int) -> tuple[Floats, Floats]:
        """Return stretches of one length as rows; the weights are one row where all are alike."""
        rows = (self.starts[series] + start)[:, None] + np.arange(length)
        weight = self.weight[rows]
        alike = bool((weight == weight[:1]).all())
        return self.x[rows], weight[:1] if alike else weight


class Cuts(NamedTuple):
    """Cuts before the value at ``at`` of a series; ``p`` is that of the test that found it.

    In order of series, and of place within a series.
    """

    series: Ints
    at: Ints
    p: Floats

    def take(self, which: NDArray[Any]) -> Cuts:
        """Return some of the cuts."""
        return Cuts(self.series[which], self.at[which], self.p[which])

    @staticmethod
    def joined(parts: list[Cuts]) -> Cuts:
        """Put cuts together and in order."""
        empty = Cuts(np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))
        whole = Cuts(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))
        return whole.take(np.lexsort((whole.at, whole.series)))


class Levels(NamedTuple):
    """What lies between the cuts of a batch, segment after segment.

    Attributes
    ----------
    edges : ndarray of int, shape (k + 1,)
        Segment j is the values ``edges[j]:edges[j + 1]`` of the batch.
    weight, mean, squares : ndarray, shape (k,)
        Total weight, level and weighted squares about it, of each segment.
    segments : ndarray of int, shape (s,)
        How many each series has.
    left : ndarray of int, shape (c,)
        The segment before each cut; that after it is the next.
    total : ndarray, shape (s,)
        Weighted squares about the levels of each series.
    """

    edges: Ints
    weight: Floats
    mean: Floats
    squares: Floats
    segments: Ints
    left: Ints
    total: Floats


def levels_of(batch: Batch, cuts: Cuts) -> Levels:
    """Return the levels of every series of a batch, cut or not."""
    segments = np.bincount(cuts.series, minlength=len(batch.given)) + 1
    edges = np.sort(np.concatenate([batch.starts, batch.starts[cuts.series] + cuts.at]))
    starts = edges[:-1]
    weight = np.add.reduceat(batch.weight, starts)
    mean = np.add.reduceat(batch.weight * batch.x, starts) / weight
    left_over = batch.weight * (batch.x - np.repeat(mean, np.diff(edges))) ** 2
    squares = np.add.reduceat(left_over, starts)
    total = np.add.reduceat(squares, np.cumsum(segments) - segments)
    left = np.arange(len(cuts.at)) + cuts.series
    return Levels(edges, weight, mean, squares, segments, left, total)


def variance(given: Floats, df: Floats, squares: Floats, freedom: Ints) -> tuple[Floats, Floats]:
    """Return the variance at weight 1 and its degrees of freedom: what was given and the rest.

    Parameters
    ----------
    given, df : ndarray
        What was given.
    squares, freedom : ndarray
        Weighted squares about the levels, and their degrees of freedom.
    """
    exact = np.isinf(df)
    known = np.where(exact, 0.0, df)
    pooled = (known * given + squares) / (known + freedom)
    return np.where(exact, given, pooled), np.asarray(df + freedom)


def by_length(lengths: Ints) -> Iterator[tuple[int, Ints]]:
    """Return each length that there is, with the positions that have it."""
    order = np.argsort(lengths, kind="stable")
    values, starts = np.unique(lengths[order], return_index=True)
    parts = np.split(order, starts[1:])
    return zip(values.tolist(), parts, strict=False)
