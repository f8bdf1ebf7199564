"""Errors with their sign: of each pair on average, and of the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.metrics._numeric import checked, difference, finite, mean, relative_error
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["bias", "total_error"]


def bias(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Mean signed percentage error: positive if predictions are too high on average.

    .. math:: \sum_i w_i\,(p_i - m_i) / m_i \,\Big/ \sum_i w_i

    Definition: one denominator per pair, its measurement; arithmetic mean with sign.
    Misleads as a measure of accuracy, because errors of opposite sign cancel, and as a measure of
    direction: being twice too high (+100 %) outweighs being twice too low (-50 %). ``gm_ratio``
    treats the two alike.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction: -0.1 is 10 % too low. Rounding is about 1e-15 of the mean absolute error; where
        errors cancel almost completely, the last digits of what remains are rounding.

    Raises
    ------
    InputError
        As for ``mape``.

    References
    ----------
    Morley, Brito and Welling (2018), "Measures of model performance based on the log accuracy
    ratio", Space Weather 16(1), 69-88, doi:10.1002/2017SW001669 (mean percentage error).

    Examples
    --------
    >>> bias(predicted=[12.0, 90.0], measured=[10.0, 100.0])
    0.05
    """
    data = checked(predicted, measured, weights, zeros)
    return mean(relative_error(data), data.weights)


def total_error(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Error of the total: how far the sum of all predictions is from the sum of all measurements.

    .. math:: \sum_i w_i\,(p_i - m_i) \Big/ \sum_i w_i\,m_i

    Definition: one denominator for all pairs, the total measurement, with sign; equal to the
    relative difference of the two means. Its size is at most the WAPE, and far below it where
    errors of both signs cancel.
    Misleads as a measure of accuracy: it is small whenever errors cancel, and another mix of the
    same pairs has another total.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction: -0.1 is 10 % too low. Rounding is about 1e-15 of the WAPE.

    Raises
    ------
    InputError
        As for ``mape``.

    References
    ----------
    Cochran (1977), "Sampling Techniques", 3rd edition, chapter 6 (ratio estimators).

    Examples
    --------
    >>> total_error(predicted=[12.0, 90.0], measured=[10.0, 100.0])
    -0.07272727272727272
    """
    data = checked(predicted, measured, weights, zeros)
    error = mean(difference(data), data.weights)
    return finite(error / mean(data.measured, data.weights), "the error of the total")
