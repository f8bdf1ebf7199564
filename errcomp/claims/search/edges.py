"""Values on the edge of a printed figure, which the last bit of a sum must not decide on.

Means of rounded errors, shares and errors of round numbers often lie exactly on an edge. Computed
in another order, or on another processor, the same sum is a bit smaller or larger.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import Printed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["contains", "tolerance"]

_ROUNDING = 1e-12
_SHARE_OF_WIDTH = 1e-3


def tolerance(figure: Printed) -> float:
    """How far from an edge of the figure a value still counts as on it.

    Well above the rounding error of a sum, and well below the width of the figure.

    Examples
    --------
    >>> from errcomp.claims.printed import parse_printed
    >>> tolerance(parse_printed("2.3%"))
    1e-12
    """
    size = max(1.0, *(abs(end) for end in (figure.low, figure.high) if math.isfinite(end)))
    width = figure.high - figure.low
    return min(_ROUNDING * size, _SHARE_OF_WIDTH * width if width > 0 else math.inf)


def contains(figure: Printed, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which values would be printed like the figure, or lie in its range.

    Like ``Printed.contains``, for values with a rounding error.

    Parameters
    ----------
    figure : Printed
        The published figure.
    values : ndarray
        Fractions.

    Returns
    -------
    ndarray of bool
        Of the same shape.

    Examples
    --------
    >>> from errcomp.claims.printed import parse_printed
    >>> contains(parse_printed("0.3"), np.array([0.25, np.nextafter(0.25, 0), 0.2499]))
    array([ True,  True, False])
    """
    slack = tolerance(figure)
    for end in (figure.low, figure.high):
        edge = _printed(end)
        values = np.where(np.abs(values - edge) <= slack, edge, values)
    found: NDArray[np.bool_] = (figure.low <= values) & (values < figure.high)
    return found | (values == figure.high) if figure.closed else found


def _printed(end: float) -> float:
    """Return the number that was printed: an interval that excludes it starts one bit above."""
    return float(f"{end:.15g}") if abs(end) > np.finfo(float).tiny else 0.0
