"""Intervals of time on one thread: their nesting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def outermost(start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which intervals are inside no other interval.

    Of equal intervals, the first is the outermost.

    Examples
    --------
    >>> outermost(np.array([0, 1, 5]), np.array([4, 2, 6])).tolist()
    [True, False, True]
    """
    order = np.lexsort((-end, start))
    before = np.maximum.accumulate(end[order])
    is_outer = np.ones(len(start), dtype=bool)
    is_outer[order[1:]] = end[order][1:] > before[:-1]
    return is_outer


def around(start: NDArray[Any], end: NDArray[Any], at: NDArray[Any]) -> NDArray[np.int64]:
    """Return the interval of each point, -1 for none; intervals must not overlap.

    Examples
    --------
    >>> around(np.array([10, 20]), np.array([15, 25]), np.array([9, 10, 15, 17, 22])).tolist()
    [-1, 0, 0, -1, 1]
    """
    order = np.argsort(start, kind="stable")
    place = np.searchsorted(start[order], at, side="right") - 1
    index = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (at <= end[index]), index, -1)


def containing(
    start: Sequence[int], end: Sequence[int], at: Sequence[int]
) -> list[tuple[int, ...]]:
    """Return the intervals around each point, from the outermost to the innermost.

    Examples
    --------
    >>> containing([0, 2, 2], [9, 8, 5], [1, 3, 6, 10])
    [(0,), (0, 1, 2), (0, 1), ()]
    """
    opening = sorted(range(len(start)), key=lambda i: (start[i], -end[i]))
    inside: list[tuple[int, ...]] = [()] * len(at)
    active: tuple[int, ...] = ()
    following = 0
    for point in sorted(range(len(at)), key=lambda i: at[i]):
        time = at[point]
        while following < len(opening) and start[opening[following]] <= time:
            # Remove ended intervals before nesting the next.
            new = opening[following]
            active = (*(i for i in active if end[i] >= start[new]), new)
            following += 1
        if any(end[i] < time for i in active):
            active = tuple(i for i in active if end[i] >= time)
        inside[point] = active
    return inside
