"""Find the steps of many series at once: the test first, all of a length together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife._step_fit import Found
from errcomp.halflife._step_null import p_values
from errcomp.halflife._step_scan import evidence, locate, winsorised

__all__ = ["Batch", "search"]

Floats = NDArray[Any]


class Batch(NamedTuple):
    """Series of one length, with relative weights and what is known of the noise of each."""

    x: Floats
    weight: Floats
    given: Floats
    df: Floats

    def part(self, rows: NDArray[Any], start: int, length: int) -> Batch:
        """Return a stretch of some rows."""
        columns = slice(start, start + length)
        weight = self.weight[:, columns]
        return Batch(
            self.x[rows, columns],
            weight if len(weight) == 1 else weight[rows],
            self.given[rows],
            self.df[rows],
        )


class _Tested(NamedTuple):
    """A p-value of each series, whether an interval stands out, and the values tested."""

    p: Floats
    interval: NDArray[Any]
    x: Floats


def _tested(batch: Batch, min_segment: int) -> _Tested:
    n = batch.x.shape[1]
    x = winsorised(batch.x, 1 / np.sqrt(batch.weight))
    split, interval = evidence(x, batch.weight, batch.given, batch.df, min_segment)
    share = (n - 2) / (n - 2 + batch.df)
    best = np.maximum(split, interval)
    return _Tested(p_values(best, n, share, min_segment), interval > split, x)


def search(batch: Batch, alpha: float, min_segment: int) -> tuple[Floats, dict[int, list[Found]]]:
    """Cut series where a step stands out, then their parts, until nothing does.

    A part is tested at the share of alpha that its length has: less than alpha on the whole.

    Returns
    -------
    ndarray, shape (r,)
        The p-value of each whole series.
    dict
        The cuts of the series that have any, by row; their p-values are for the whole series.
    """
    n = batch.x.shape[1]
    p = np.ones(len(batch.x))
    cuts: dict[int, list[Found]] = {}
    queue = {(0, n): np.arange(len(batch.x))}
    while queue:
        (start, length), rows = queue.popitem()
        part = batch.part(rows, start, length)
        found = _tested(part, min_segment)
        if length == n:
            p = found.p
        later: dict[tuple[int, int], list[int]] = {}
        for i in np.flatnonzero(found.p <= alpha * length / n):
            weight = part.weight[0 if len(part.weight) == 1 else i]
            places = locate(found.x[i], weight, min_segment, interval=bool(found.interval[i]))
            row = int(rows[i])
            corrected = min(float(found.p[i]) * n / length, 1.0)
            cuts.setdefault(row, []).extend(Found(start + k, corrected) for k in places)
            edges = [0, *places, length]
            for a, b in pairwise(edges):
                if b - a >= 2 * min_segment:
                    later.setdefault((start + a, b - a), []).append(row)
        for where, more in later.items():
            queue[where] = (
                np.concatenate([queue[where], more]) if where in queue else np.array(more)
            )
    return p, cuts
