"""Signed errors, averaged over pairs and of the total; and root mean squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.metrics._registry import Means, declare
from errcomp.metrics.pointwise import (
    Checked,
    checked,
    difference,
    finite,
    log_ratio,
    mean,
    relative_error,
    root_mean_square,
)
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def _ratio(data: Checked) -> NDArray[np.float64]:
    return data.predicted / data.measured


def _square(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squares as shares of the largest: squares of large values would overflow."""
    largest = float(np.abs(values).max())
    return (values / largest) ** 2 if largest > 0 else values


@declare(
    "bias",
    "mean signed error",
    unit="fraction",
    kind="mean",
    order=70,
    definition="Arithmetic mean over pairs of predicted minus measured, each as a share of its "
    "measurement.",
    misleads="It measures direction, not accuracy: errors of opposite sign cancel.",
    means=Means(_ratio, ("signed_ape",), shift=1.0),
)
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
        A fraction: -0.1 is 10 % too low. Rounding is about 1e-15 of the mean absolute error; if
        errors cancel almost completely, the last digits of the result are rounding.

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


@declare(
    "total_error",
    "error of the total",
    unit="fraction",
    kind="smooth",
    order=60,
    definition="Sum of all predictions minus the sum of all measurements, divided by the sum of "
    "all measurements; the relative difference of the two means.",
    misleads="Errors of opposite sign cancel: a small error of the sum says nothing about single "
    "pairs, or about another mix of pairs.",
    means=Means(lambda data: data.predicted, ("signed",), weighted=True, shift=1.0),
)
def total_error(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Error of the total: relative difference of the sums of predictions and measurements.

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


@declare(
    "rmse",
    "RMSE",
    unit="measured",
    kind="smooth",
    order=100,
    definition="Square root of the mean over pairs of the squared error, in the unit of the data.",
    misleads="The largest quantities dominate, because their errors are squared; meaningless "
    "without the unit.",
    means=Means(lambda data: _square(difference(data)), ("error", "error"), root=0.5),
)
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
    Misleads where quantities of different size are pooled: the largest dominate by their square.

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


@declare(
    "rmspe",
    "RMSPE",
    unit="fraction",
    kind="smooth",
    order=110,
    definition="Square root of the mean over pairs of the squared error, each error as a share of "
    "its measurement.",
    misleads="A single large error dominates it.",
    means=Means(lambda data: _square(relative_error(data)), ("ape", "ape"), root=0.5),
)
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
    Misleads because a single large error dominates it. ``statsmodels.tools.eval_measures.rmspe``
    multiplies the mean of the squares by 100 before the root: its result is 10 times this one.

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


@declare(
    "rmsle",
    "RMSLE",
    unit="log",
    kind="smooth",
    order=120,
    definition="Square root of the mean over pairs of the squared natural logarithm of "
    "predicted/measured (nothing added to either).",
    misleads="Not a percentage. Some libraries add 1 to both values under the same name; errcomp "
    "does not.",
    means=Means(lambda data: _square(log_ratio(data)), ("log_ratio", "log_ratio"), root=0.5),
)
def rmsle(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Root mean square logarithmic error, of ln(predicted / measured).

    .. math:: \mathrm{RMSLE} = \sqrt{\sum_i w_i\,\ln^2 (p_i / m_i) \Big/ \sum_i w_i}

    Definition: natural logarithm of the ratio; root of the mean of the squares. It does not add 1
    like Kaggle and scikit-learn, ln((1 + p)/(1 + m)). Their version allows zeros, but depends on
    the unit (seconds and milliseconds give different results), and for values far below 1 it
    measures absolute errors.
    Misleads if taken as a percentage (0.5 is a factor of 1.65), and a single large error dominates
    it.

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
