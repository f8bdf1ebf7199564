"""How long devices were busy, communicated and idled: lengths of unions of intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["device_times", "union"]


def union(start: NDArray[Any], end: NDArray[Any]) -> float:
    """Return for how long at least one of the intervals lasts.

    Examples
    --------
    >>> union(np.array([5.0, 0.0, 1.0]), np.array([7.0, 2.0, 3.0]))
    5.0
    """
    if not len(start):
        return 0.0
    order = np.argsort(start, kind="stable")
    start, reached = start[order], np.maximum.accumulate(end[order])
    gap = np.maximum(start[1:] - reached[:-1], 0.0).sum()
    return float(reached[-1] - start[0] - gap)


def device_times(
    start: NDArray[Any],
    end: NDArray[Any],
    group: NDArray[np.int64],
    communicates: NDArray[np.bool_],
    computes: NDArray[np.bool_],
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield for each group (a device in a run) its times by quantity.

    Parameters
    ----------
    start, end : ndarray, shape (n,)
    group : ndarray of int
    communicates, computes : ndarray of bool
        What is neither copies memory.

    Yields
    ------
    group : int
    times : dict
        ``busy time``: at least one thing runs; ``computation time``, ``communication time``: at
        least one such kernel runs; ``overlap``: both at once; ``exposed communication``: the
        communication time less the overlap; ``idle time``: nothing runs between the first start
        and the last end.
    """
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if not len(rows):
            return
        first, last = start[rows], end[rows]
        busy = union(first, last)
        found = {"busy time": busy, "idle time": max(float(last.max() - first.min()) - busy, 0.0)}
        talks, works = rows[communicates[rows]], rows[computes[rows]]
        talking, working = union(start[talks], end[talks]), union(start[works], end[works])
        both = np.concatenate([talks, works])
        overlap = max(talking + working - union(start[both], end[both]), 0.0)
        found["computation time"] = working
        found["communication time"] = talking
        found["overlap"] = overlap
        found["exposed communication"] = max(talking - overlap, 0.0)
        yield int(group[rows[0]]), found
