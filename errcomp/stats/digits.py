"""How many digits numbers are written with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIGITS", "MOST_DECIMALS", "decimals", "enough_digits"]

#: Values with fewer significant digits may be equal by chance.
DIGITS = 4
MOST_DECIMALS = 12


def decimals(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the decimals of each number as it is written, 12 at most.

    Examples
    --------
    >>> decimals(np.array([3.0, 0.25, 1 / 3])).tolist()
    [0, 2, 12]
    """
    places = np.full(values.shape, MOST_DECIMALS)
    with np.errstate(over="ignore", invalid="ignore"):  # huge numbers have no decimals
        for k in range(MOST_DECIMALS - 1, -1, -1):
            places[np.round(values, k) == values] = k
    return places


def enough_digits(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which positive numbers have four or more significant digits, not counting final zeros.

    Examples
    --------
    >>> enough_digits(np.array([3.0, 1200.0, 0.0123, 1234.0, 26.44])).tolist()
    [False, False, False, True, True]
    """
    unit = 10.0 ** (np.floor(np.log10(values)) - (DIGITS - 2))
    ratio = values / unit
    return np.asarray(np.abs(ratio - np.rint(ratio)) > 1e-9 * ratio)
