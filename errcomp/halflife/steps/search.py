"""Search many series at once: test all parts of one length together, and cut where a step is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.steps.null import independent, p_values
from errcomp.halflife.steps.scan import Batch, Cuts, by_length, evidence, locate, winsorised

Floats = NDArray[Any]
Ints = NDArray[Any]


def search(batch: Batch, alpha: float, min_segment: int) -> tuple[Floats, Floats, Cuts]:
    """Cut series at significant steps, then their parts, until no step is significant.

    A part is tested with a share of alpha proportional to its length: at most alpha in total.

    Returns
    -------
    p, p_independent : ndarray, shape (s,)
        The p-value of each whole series, with its correlation of neighbours and without.
    Cuts
        Their p-values are for the whole series.
    """
    sizes = batch.sizes
    p, p_independent = np.ones((2, len(sizes)))
    # Parts by their length: series and start of each.
    waiting = {
        length: [(series, np.zeros(len(series), dtype=int))] for length, series in by_length(sizes)
    }
    cuts: list[Cuts] = []
    # A part is shorter than its whole, so all parts of a length exist before they are tested.
    for length in range(max(waiting, default=0), 2 * min_segment - 1, -1):
        if length not in waiting:
            continue
        series, start = (np.concatenate(column) for column in zip(*waiting[length], strict=True))
        size = sizes[series]
        part = _tested(batch, series, start, length, min_segment)
        whole = size == length
        p[series[whole]] = part.p[whole]
        p_independent[series[whole]] = part.p_independent[whole]
        for interval in (False, True):
            hit = np.flatnonzero((part.p <= alpha * length / size) & (part.interval == interval))
            if not len(hit):
                continue
            weight = part.weight if len(part.weight) == 1 else part.weight[hit]
            places = locate(part.x[hit], weight, min_segment, interval=interval)
            corrected = [
                np.minimum(column[hit] * size[hit] / length, 1.0)
                for column in (part.p, part.p_independent)
            ]
            edges = np.pad(places, ((0, 0), (1, 1)), constant_values=(0, length))
            for i in range(edges.shape[1] - 1):
                begin, long = start[hit] + edges[:, i], edges[:, i + 1] - edges[:, i]
                if i:
                    cuts.append(Cuts(series[hit], begin, *corrected))
                for shorter, which in by_length(long):
                    waiting.setdefault(shorter, []).append((series[hit][which], begin[which]))
    return p, p_independent, Cuts.joined(cuts)


class _Tested(NamedTuple):
    """The p-values of each part, whether an interval is its best contrast, and tested values."""

    p: Floats
    p_independent: Floats
    interval: NDArray[Any]
    x: Floats
    weight: Floats


def _tested(batch: Batch, series: Ints, start: Ints, n: int, min_segment: int) -> _Tested:
    x, weight = batch.stretches(series, start, n)
    x = winsorised(x, 1 / np.sqrt(weight), batch.runs[series])
    given, df = batch.given[series], batch.df[series]
    split, interval = evidence(x, weight, given, df, min_segment)
    share = (n - 2) / (n - 2 + df)
    best, correlated = np.maximum(split, interval), batch.correlated[series]
    alone = independent(len(best))
    p_independent = p_values(best, n, share, min_segment, alone)
    # A first search takes all neighbours as independent.
    same = np.array_equal(correlated, alone)
    p = p_independent if same else p_values(best, n, share, min_segment, correlated)
    return _Tested(p, p_independent, interval > split, x, weight)
