"""Find the steps of many series at once: the test first, all parts of a length together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife._step_batch import Batch, Cuts, by_length
from errcomp.halflife._step_null import p_values
from errcomp.halflife._step_scan import evidence, locate, winsorised

__all__ = ["search"]

Floats = NDArray[Any]
Ints = NDArray[Any]


class _Part(NamedTuple):
    """Parts of one length: of which series, and from where."""

    series: Ints
    start: Ints


def search(batch: Batch, alpha: float, min_segment: int) -> tuple[Floats, Cuts]:
    """Cut series where a step stands out, then their parts, until nothing does.

    A part is tested at the share of alpha that its length has: less than alpha on the whole.

    Returns
    -------
    ndarray, shape (s,)
        The p-value of each whole series.
    Cuts
        Their p-values are for the whole series.
    """
    sizes = batch.sizes
    p = np.ones(len(sizes))
    waiting = {
        length: [_Part(series, np.zeros(len(series), dtype=int))]
        for length, series in by_length(sizes)
    }
    cuts: list[Cuts] = []
    # Parts are shorter than what they are part of: those of a length are complete when it is their
    # turn.
    for length in range(max(waiting, default=0), 2 * min_segment - 1, -1):
        if length not in waiting:
            continue
        series, start = (np.concatenate(column) for column in zip(*waiting[length], strict=True))
        size = sizes[series]
        part = _tested(batch, series, start, length, min_segment)
        whole = size == length
        p[series[whole]] = part.p[whole]
        for interval in (False, True):
            hit = np.flatnonzero((part.p <= alpha * length / size) & (part.interval == interval))
            if not len(hit):
                continue
            weight = part.weight if len(part.weight) == 1 else part.weight[hit]
            places = locate(part.x[hit], weight, min_segment, interval=interval)
            corrected = np.minimum(part.p[hit] * size[hit] / length, 1.0)
            edges = np.pad(places, ((0, 0), (1, 1)), constant_values=(0, length))
            for i in range(edges.shape[1] - 1):
                begin, long = start[hit] + edges[:, i], edges[:, i + 1] - edges[:, i]
                if i:
                    cuts.append(Cuts(series[hit], begin, corrected))
                for shorter, which in by_length(long):
                    waiting.setdefault(shorter, []).append(_Part(series[hit][which], begin[which]))
    return p, Cuts.joined(cuts)


class _Tested(NamedTuple):
    """A p-value of each part, whether an interval stands out, and the values tested."""

    p: Floats
    interval: NDArray[Any]
    x: Floats
    weight: Floats


def _tested(batch: Batch, series: Ints, start: Ints, n: int, min_segment: int) -> _Tested:
    x, weight = batch.stretches(series, start, n)
    x = winsorised(x, 1 / np.sqrt(weight))
    given, df = batch.given[series], batch.df[series]
    split, interval = evidence(x, weight, given, df, min_segment)
    share = (n - 2) / (n - 2 + df)
    p = p_values(np.maximum(split, interval), n, share, min_segment)
    return _Tested(p, interval > split, x, weight)
