r"""Noise without repeats: how far measurements lie from a smooth curve through their neighbours.

Along one numeric key, with all other keys equal, the middle of three neighbours is compared with
the straight line, in logarithms, between the other two. With :math:`x_1 < x_2 < x_3` and
:math:`a = (x_3 - x_2) / (x_3 - x_1)`, noise of variance :math:`\sigma^2` gives the difference a
variance of :math:`\sigma^2 (1 + a^2 + (1 - a)^2)`. A curve that bends adds to it: the figure is an
upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errcomp.tables.memory.measurements import Measurements, numbered

__all__ = ["Neighbours", "neighbours_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Fewest triples of neighbours.
_LEAST = 10
#: Triples whose ends are further apart than this factor say little about noise.
_FACTOR = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Differences of measurements from the line between their neighbours.

    Attributes
    ----------
    along : str
        The numeric key.
    line : ndarray of int, shape (m,)
        The curve that each lies on.
    error : ndarray, shape (m,)
        Differences of logarithms, divided so that noise of variance 1 gives variance 1.
    """

    along: str
    line: Ints
    error: Floats

    @property
    def absolute(self) -> float:
        """Return E|e| of normal noise, by the median: a curve bends in some places only."""
        return float(np.median(np.abs(self.error))) / 0.6745 * math.sqrt(2 / math.pi)


def neighbours_of(table: Measurements, use: NDArray[np.bool_]) -> Neighbours | None:
    """Return the neighbours along the numeric key that shows the least noise; None without any."""
    found = []
    at = np.flatnonzero(use)
    x = np.log(table.values[at, 0])
    for name in table.keys:
        column = table.frame[name]
        if not column.dtype.is_numeric():
            continue
        key = column.cast(float).fill_null(float("nan")).to_numpy()[at]
        if not (key > 0).all() or len(np.unique(key)) < 3:
            continue
        others = [codes[at] for other, codes in table.keys.items() if other != name]
        one = _along(name, numbered(others, len(at)), np.log(key), x)
        if one is not None:
            found.append(one)
    return min(found, key=lambda one: one.absolute, default=None)


def _along(name: str, line: Ints, key: Floats, x: Floats) -> Neighbours | None:
    order = np.lexsort((key, line))
    line, key, x = line[order], key[order], x[order]
    first, last = slice(None, -2), slice(2, None)
    fine = (line[first] == line[last]) & (key[first] < key[1:-1]) & (key[1:-1] < key[last])
    fine &= key[last] - key[first] <= math.log(_FACTOR)
    if int(fine.sum()) < _LEAST:
        return None
    a = ((key[last] - key[1:-1]) / np.where(fine, key[last] - key[first], 1.0))[fine]
    error = x[1:-1][fine] - a * x[first][fine] - (1 - a) * x[last][fine]
    return Neighbours(name, line[1:-1][fine], error / np.sqrt(1 + a**2 + (1 - a) ** 2))
