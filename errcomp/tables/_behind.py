"""How many measurements stand behind each row of a table, and how far they scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Behind"]


class Behind(NamedTuple):
    """What stands behind rows; arrays of shape (n,).

    Attributes
    ----------
    n : ndarray of int
        Measurements.
    scatter : ndarray
        Sum of squares of their logarithms about the mean, which is that of the row.
    alike : ndarray of bool
        All of them have the values of the row, which are then those that were written.
    """

    n: NDArray[np.int64]
    scatter: NDArray[np.float64]
    alike: NDArray[np.bool_]

    @classmethod
    def single(cls, n: int) -> Behind:
        """Return what stands behind n rows that are a measurement each."""
        return cls(np.ones(n, dtype=np.int64), np.zeros(n), np.ones(n, dtype=bool))

    def at(self, index: NDArray[Any]) -> Behind:
        """Return what stands behind the rows at these positions, or under this mask."""
        return Behind(*(values[index] for values in self))
