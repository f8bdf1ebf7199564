"""Root mean squares of the error: absolute, relative and logarithmic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.metrics._numeric import (
    checked,
    difference,
    log_ratio,
    relative_error,
    root_mean_square,
)
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["rmse", "rmsle", "rmspe"]


def rmse(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Root mean square error, in the unit of the data.

    .. math:: \mathrm{RMSE} = \sqrt{\sum_i w_i\,(p_i - m_i)^2 \Big/ \sum_i w_i}

    Definition: no denominator; root of the mean of the squares over n pairs, not n minus a number
    of parameters. The unit is that of the data.
    Misleads where quantities of different size are pooled: the largest dominate, by their square.

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
        Unit of the data.

    Raises
    ------
    InputError
        Shapes differ, values or weights cannot be used, a measurement is not positive, or an error
        is beyond the largest float64 (names the first three rows).

    References
    ----------
    Chai and Draxler (2014), "Root mean square error (RMSE) or mean absolute error (MAE)?",
    Geoscientific Model Development 7, 1247-1250, doi:10.5194/gmd-7-1247-2014.

    Examples
    --------
    >>> rmse(predicted=[11.0, 93.0], measured=[10.0, 100.0])
    5.0
    """
    data = checked(predicted, measured, weights, zeros)
    return root_mean_square(difference(data), data.weights)


def rmspe(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Root mean square percentage error.

    .. math:: \mathrm{RMSPE} = \sqrt{\sum_i w_i\,\big((p_i - m_i)/m_i\big)^2 \Big/ \sum_i w_i}

    Definition: one denominator per pair, its measurement; root of the mean of the squares. A
    fraction; never below the MAPE.
    Misleads because one pair that is far off sets it. ``statsmodels.tools.eval_measures.rmspe``
    multiplies the mean of the squares by 100 before the root: its figure is 10 times this one.

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
        A fraction: 0.1 is 10 %.

    Raises
    ------
    InputError
        As for ``rmse``.

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001.

    Examples
    --------
    >>> round(rmspe(predicted=[11.0, 30.0], measured=[10.0, 100.0]), 12)
    0.5
    """
    data = checked(predicted, measured, weights, zeros)
    return root_mean_square(relative_error(data), data.weights)


def rmsle(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Root mean square logarithmic error, of ln(predicted / measured).

    .. math:: \mathrm{RMSLE} = \sqrt{\sum_i w_i\,\ln^2 (p_i / m_i) \Big/ \sum_i w_i}

    Definition: natural logarithm of the ratio; root of the mean of the squares. Without the "+ 1"
    of Kaggle and scikit-learn, ln((1 + p)/(1 + m)): that one admits zeros, but it depends on the
    unit (seconds or milliseconds give different figures) and for values far below 1 it measures
    absolute errors.
    Misleads readers who take it for a percentage (0.5 is a factor of 1.65), and one pair that is
    far off sets it.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, both > 0.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive. Predictions that are not always raise.

    Returns
    -------
    float
        A natural logarithm: 0.1 is a factor of about 1.105.

    Raises
    ------
    InputError
        As for ``rmse``, or a prediction is not positive (names the first three rows).

    References
    ----------
    Tofallis (2015), "A better measure of relative prediction accuracy for model selection and model
    estimation", Journal of the Operational Research Society 66(8), 1352-1362,
    doi:10.1057/jors.2014.103 (sum of squares of the log of the accuracy ratio).

    Examples
    --------
    >>> round(rmsle(predicted=[20.0, 50.0], measured=[10.0, 100.0]), 6)
    0.693147
    """
    data = checked(predicted, measured, weights, zeros)
    return root_mean_square(log_ratio(data), data.weights)
