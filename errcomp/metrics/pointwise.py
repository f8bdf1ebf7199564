"""One error per pair: absolute, percentage (with and without sign) and logarithmic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.metrics._numeric import checked, difference, log_ratio, relative_error
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["absolute_error", "ape", "log_accuracy_ratio", "signed_percentage_error"]


def ape(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Absolute percentage error of each pair: how far off, as a fraction of the measurement.

    .. math:: \mathrm{APE}_i = |p_i - m_i| \,/\, m_i

    Definition: the denominator is the measurement of the same pair.
    Misleads because it treats the two directions unequally: a positive prediction that is too low
    errs by less than 100 %, one that is too high by any amount. ``log_accuracy_ratio`` does not.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    ndarray, shape (n,)
        Fractions: 0.1 is 10 %. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, a measurement is not positive, or an error is beyond
        the largest float64 (names the first three rows).

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001.

    Examples
    --------
    >>> ape(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    array([0.1, 0.1])
    """
    return np.abs(relative_error(checked(predicted, measured, None, zeros)))


def signed_percentage_error(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Percentage error of each pair with its sign: positive where the prediction is too high.

    .. math:: e_i = (p_i - m_i) \,/\, m_i

    Definition: the denominator is the measurement of the same pair; predicted minus measured.
    Misleads where it is averaged: errors of opposite sign cancel (see ``bias``).

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    ndarray, shape (n,)
        Fractions: -0.1 is 10 % too low. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        As for ``ape``.

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001. They define the
    percentage error as measured minus predicted; here the sign is that of the prediction's fault.

    Examples
    --------
    >>> signed_percentage_error(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    array([ 0.1, -0.1])
    """
    return relative_error(checked(predicted, measured, None, zeros))


def log_accuracy_ratio(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Natural logarithm of predicted / measured: a factor too high counts like the same too low.

    .. math:: q_i = \ln (p_i \,/\, m_i)

    Definition: for small errors q is the signed percentage error (0.01 is about 1 %); a factor of
    two is +0.693 or -0.693. Swapping predicted and measured changes the sign and nothing else.
    Misleads readers who take it for a percentage: 0.5 is +65 %, -0.5 is -39 %.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, both > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive. Predictions that are not always raise.

    Returns
    -------
    ndarray, shape (n,)
        Natural logarithms. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, or a measurement or a prediction is not positive
        (names the first three rows).

    References
    ----------
    Tofallis (2015), "A better measure of relative prediction accuracy for model selection and model
    estimation", Journal of the Operational Research Society 66(8), 1352-1362,
    doi:10.1057/jors.2014.103.

    Examples
    --------
    >>> log_accuracy_ratio(predicted=[20.0, 50.0], measured=[10.0, 100.0])
    array([ 0.69314718, -0.69314718])
    """
    return log_ratio(checked(predicted, measured, None, zeros))


def absolute_error(
    *, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise"
) -> NDArray[np.float64]:
    r"""Absolute error of each pair, in the unit of the data.

    .. math:: a_i = |p_i - m_i|

    Definition: no denominator. The unit is that of the data.
    Misleads where quantities of different size are pooled: the largest ones dominate.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    ndarray, shape (n,)
        Unit of the data. Fewer than n values if rows were excluded.

    Raises
    ------
    InputError
        As for ``ape``.

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001.

    Examples
    --------
    >>> absolute_error(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    array([ 1., 10.])
    """
    return np.abs(difference(checked(predicted, measured, None, zeros)))
