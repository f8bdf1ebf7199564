"""Values on the edge of a printed figure, which the last bit of a sum must not decide on.

Means of rounded errors, shares and errors of round numbers often lie exactly on an edge. Computed
in another order, or on another processor, the same sum is a bit smaller or larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import Printed, tolerance

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["contains", "tolerance"]


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
    for edge in figure.ends:
        values = np.where(np.abs(values - edge) <= slack, edge, values)
    found: NDArray[np.bool_] = (figure.low <= values) & (values < figure.high)
    return found | (values == figure.high) if figure.closed else found
