"""What checks need of groups of pairs: moments of their errors, sums, errors as factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = [
    "ROUNDING",
    "Moments",
    "Ratio",
    "Totals",
    "added",
    "factor_errors",
    "grouped_means",
    "log_ratio",
    "out_of_sample_factor",
]

#: Errors that differ by less, relative to their mean, are equal.
ROUNDING = 1e-12


class Moments(NamedTuple):
    """Absolute percentage errors of groups, as shares of the largest.

    Attributes
    ----------
    means, squares : ndarray, shape (groups,)
        Mean of each group, and the sum of squares around it.
    sizes : ndarray of int, shape (groups,)
    """

    means: Floats
    squares: Floats
    sizes: Ints

    @property
    def mean(self) -> float:
        """Mean over all pairs."""
        return float((self.means * self.sizes).sum() / self.sizes.sum())

    @property
    def between(self) -> float:
        """Sum of squares of the groups' means around that of all."""
        return float((self.sizes * (self.means - self.mean) ** 2).sum())

    @property
    def within(self) -> float:
        """Sum of squares within the groups."""
        return float(self.squares.sum())

    @property
    def differ(self) -> bool:
        """Whether the errors differ by more than rounding."""
        least = float(self.sizes.sum()) * (ROUNDING * self.mean) ** 2
        return self.within + self.between > least


class Totals(NamedTuple):
    """Sums of groups.

    Attributes
    ----------
    measured : ndarray, shape (groups,)
        In a unit that all groups share.
    off : ndarray, shape (groups,)
        Error of the sum of predictions, relative to that of measurements.
    scatter : ndarray, shape (groups,)
        Root of the sum of squares of each error less ``off`` times its measurement.
    """

    measured: Floats
    off: Floats
    scatter: Floats


class Ratio(NamedTuple):
    """Logarithm of prediction over measurement.

    Attributes
    ----------
    middle : float
        Its median (its mean, where only sums are known).
    reach : float
        Nine of ten pairs are within this of it; infinite where more than one of ten predictions is
        not positive.
    """

    middle: float
    reach: float


def log_ratio(predicted: Floats, measured: Floats) -> Ratio:
    """Return the middle and the reach of ln(p / m).

    Examples
    --------
    >>> found = log_ratio(np.array([20.0, 20.0, 40.0]), np.ones(3))
    >>> round(np.exp(found.middle)), round(np.exp(found.reach))
    (20, 2)
    """
    some = predicted > 0
    if not some.any():
        return Ratio(0.0, math.inf)
    logs = np.log(predicted[some]) - np.log(measured[some])
    middle = float(np.median(logs))
    off = np.full(len(predicted), math.inf)
    off[some] = np.abs(logs - middle)
    return Ratio(middle, float(np.quantile(off, 0.9, method="inverted_cdf")))


def added(codes: Ints, values: Floats) -> Floats:
    """Add the values of each group up."""
    return np.bincount(codes, weights=values).astype(np.float64, copy=False)


def grouped_means(values: Floats, codes: Ints, groups: int) -> tuple[Floats, Ints]:
    """Return the mean and the size of each group; each row of a matrix of values on its own."""
    sizes = np.bincount(codes, minlength=groups)
    if values.ndim == 1:
        return np.bincount(codes, weights=values, minlength=groups) / sizes, sizes
    member = np.zeros((len(codes), groups))
    member[np.arange(len(codes)), codes] = 1.0
    return (values @ member) / sizes, sizes


def factor_errors(predicted: Floats, measured: Floats) -> Floats:
    """Return exp(abs(ln(p / m))) - 1: twice too high and twice too low are both 1.

    Infinite where a prediction is not positive, or so small that no float is its factor.
    """
    with np.errstate(over="ignore", divide="ignore"):
        factors = np.maximum(predicted / measured, measured / predicted) - 1
    result: Floats = np.where(predicted > 0, factors, np.inf)
    return result


def out_of_sample_factor(
    predicted: Floats, measured: Floats
) -> tuple[float, float] | tuple[None, None]:
    """Fit one factor to all pairs but one and apply it to that one, for each pair in turn.

    The factor is one over the median of predicted / measured. Returns the factor of all pairs and
    the MAPE of the pairs left out; None where there is only one pair or a median is not positive.
    """
    # Predictions of next to nothing, or of next to everything, have a factor no float can hold.
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = predicted / measured
        middle = float(np.median(ratio))
        if len(ratio) < 2 or not 0 < middle < math.inf:
            return None, None
        medians = _medians_without_each(ratio)
        if (medians <= 0).any():
            return None, None
        after = float(np.abs(ratio / medians - 1).mean())
        return (1 / middle, after) if math.isfinite(after + 1 / middle) else (None, None)


def _medians_without_each(ratio: Floats) -> Floats:
    n = len(ratio)
    order = np.argsort(ratio, kind="stable")
    ranks = np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n)
    ascending = ratio[order]

    def without(position: int) -> Floats:
        """Value at a position of the sorted ratios once each pair in turn is left out."""
        above = ascending[min(position + 1, n - 1)]
        result: Floats = np.where(position < ranks, ascending[position], above)
        return result

    return (without((n - 2) // 2) + without((n - 1) // 2)) / 2
