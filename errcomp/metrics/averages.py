"""Means of the error over pairs: arithmetic, geometric, weighted by size, signed, symmetric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.metrics._registry import Means, NoSpreadError, declare
from errcomp.metrics.pointwise import (
    Checked,
    checked,
    difference,
    finite,
    geometric_mean_ratio,
    log_ratio,
    mean,
    relative_error,
    require_positive_predictions,
)
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def _ape(data: Checked) -> NDArray[np.float64]:
    return np.abs(relative_error(data))


def _size(data: Checked) -> NDArray[np.float64]:
    return np.abs(difference(data))


def _symmetric(data: Checked) -> NDArray[np.float64]:
    larger = np.maximum(np.abs(data.predicted), data.measured)
    p, m = data.predicted / larger, data.measured / larger
    return np.abs(p - m) / (np.abs(p) + m)


def _log_ape(data: Checked) -> NDArray[np.float64]:
    error = _size(data)
    exact = int(np.count_nonzero(error == 0))
    if exact:
        raise NoSpreadError(
            f"no interval: {exact} prediction{'s are' if exact > 1 else ' is'} exact, which makes "
            "the geometric mean zero whatever the other errors are"
        )
    return np.log(error) - np.log(data.measured)


@declare(
    "mape",
    "MAPE",
    unit="fraction",
    kind="mean",
    order=10,
    definition="Arithmetic mean over pairs of the absolute error, each as a share of its "
    "measurement.",
    misleads="Small quantities that are off by large factors dominate the mean, and predictors "
    "that are too low look better than predictors that are too high.",
    means=Means(_ape, ("ape",)),
)
def mape(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Mean absolute percentage error: the average over pairs of the error as a share of each.

    .. math:: \mathrm{MAPE} = \sum_i w_i\,|p_i - m_i| / m_i \,\Big/ \sum_i w_i

    Definition: one denominator per pair, its measurement; arithmetic mean, every pair counts the
    same however small it is (w = 1 without weights).
    Misleads where small quantities are off by large factors, where few pairs dominate the mean, and
    when predictors are compared: it favours predictions that are too low.

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
        Shapes differ, values or weights cannot be used, a measurement is not positive, or an error
        is beyond the largest float64 (names the first three rows).

    References
    ----------
    Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International
    Journal of Forecasting 22(4), 679-688, doi:10.1016/j.ijforecast.2006.03.001.
    Foss et al. (2003), "A simulation study of the model evaluation criterion MMRE", IEEE
    Transactions on Software Engineering 29(11), 985-995 (on favouring low predictions).

    Examples
    --------
    >>> mape(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    0.1
    >>> mape(predicted=[11.0, 80.0], measured=[10.0, 100.0], weights=[3, 1])
    0.125
    """
    data = checked(predicted, measured, weights, zeros)
    return mean(np.abs(relative_error(data)), data.weights)


@declare(
    "mae",
    "MAE",
    unit="measured",
    kind="mean",
    order=90,
    definition="Arithmetic mean over pairs of the absolute error, in the unit of the data.",
    misleads="Large quantities dominate; meaningless without the unit. A published MAE in per "
    "cent is a MAPE.",
    means=Means(_size, ("error",)),
)
def mae(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Mean absolute error, in the unit of the data.

    .. math:: \mathrm{MAE} = \sum_i w_i\,|p_i - m_i| \,\Big/ \sum_i w_i

    Definition: no denominator but the number of pairs; arithmetic mean in the unit of the data
    (w = 1 without weights). Divided by the mean measurement it is the ``wape``.
    Misleads because it has a unit: it is not comparable between sets of different sizes, and the
    largest quantities dominate it. A published MAE in per cent is a ``mape``.

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
        In the unit of the data.

    Raises
    ------
    InputError
        As for ``mape``.

    References
    ----------
    Willmott and Matsuura (2005), "Advantages of the mean absolute error (MAE) over the root mean
    square error (RMSE) in assessing average model performance", Climate Research 30, 79-82,
    doi:10.3354/cr030079.

    Examples
    --------
    >>> mae(predicted=[11.0, 93.0], measured=[10.0, 100.0])
    4.0
    """
    data = checked(predicted, measured, weights, zeros)
    return mean(np.abs(difference(data)), data.weights)


@declare(
    "gmape",
    "GMAPE",
    unit="fraction",
    kind="smooth",
    order=30,
    definition="Geometric mean over pairs of the absolute error, each as a share of its "
    "measurement; 0 if any prediction is exact.",
    misleads="Never above the MAPE; a few predictions that are exact by chance pull it down.",
    means=Means(_log_ape, ("log_ape",), log=False),
)
def gmape(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Geometric mean of the absolute percentage errors.

    .. math:: \mathrm{GMAPE} = \exp\Big(\sum_i w_i \ln\big(|p_i - m_i| / m_i\big) \Big/
        \sum_i w_i\Big)

    Definition: one denominator per pair, its measurement; geometric mean.

    Zero rule: an exact prediction has an APE of 0, so a single one makes the geometric mean 0.0,
    whatever the others are. That 0.0 is returned: nothing is added to the errors and no pair is
    left out. ``exact_predictions`` counts these pairs, to explain a 0.0.

    Misleads because it is never above the MAPE and hides large errors: a lucky pair with 1 % of the
    typical error pulls it down as far as an error 100 times the typical one pulls it up.

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
        As for ``mape``.

    References
    ----------
    Hardy, Littlewood and Pólya (1952), "Inequalities", 2nd ed., Cambridge University Press, ch. 2
    (geometric and arithmetic mean).

    Examples
    --------
    >>> round(gmape(predicted=[11.0, 60.0], measured=[10.0, 100.0]), 12)
    0.2
    >>> gmape(predicted=[10.0, 60.0], measured=[10.0, 100.0])
    0.0
    """
    data = checked(predicted, measured, weights, zeros)
    error = np.abs(difference(data))
    if not error.all():
        return 0.0
    return geometric_mean_ratio(error, data.measured, data.weights, "the geometric mean of APE")


def exact_predictions(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> int:
    r"""Count the pairs whose prediction equals the measurement, which make ``gmape`` zero.

    .. math:: \#\{i : p_i = m_i,\ w_i > 0\}

    Definition: equality of the two given numbers, without tolerance.
    Misleads where numbers were rounded before they were stored: equal numbers are then not exact
    predictions.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    weights : array_like, shape (n,), optional
        As for ``gmape``; pairs of weight zero are not counted.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    int

    Raises
    ------
    InputError
        As for ``mape``.

    References
    ----------
    None: a count.

    Examples
    --------
    >>> exact_predictions(predicted=[10.0, 60.0], measured=[10.0, 100.0])
    1
    """
    data = checked(predicted, measured, weights, zeros)
    return int(np.count_nonzero(data.predicted == data.measured))


@declare(
    "gm_ratio",
    "geometric mean of predicted/measured",
    unit="ratio",
    kind="smooth",
    order=40,
    definition="Geometric mean over pairs of the prediction divided by its measurement.",
    misleads="It measures bias, not accuracy: predictions too high and too low by the same factor "
    "cancel.",
    means=Means(log_ratio, ("log_ratio",), log=False),
)
def gm_ratio(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Geometric mean of predicted / measured: the average factor between the two.

    .. math:: \exp\Big(\sum_i w_i \ln (p_i / m_i) \Big/ \sum_i w_i\Big)

    Definition: one denominator per pair, its measurement; geometric mean. 1 is unbiased, 1.1 is
    10 % too high. Dividing all predictions by it removes the bias in the logarithm.
    Misleads as a measure of accuracy: factors of 2 and 1/2 average to 1. It shows the common
    error of the predictions, not the error of each.

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
        A ratio.

    Raises
    ------
    InputError
        As for ``mape``, or a prediction is not positive (names the first three rows).

    References
    ----------
    Fleming and Wallace (1986), "How not to lie with statistics: the correct way to summarize
    benchmark results", Communications of the ACM 29(3), 218-221, doi:10.1145/5666.5673.

    Examples
    --------
    >>> gm_ratio(predicted=[20.0, 800.0], measured=[10.0, 100.0])
    4.0
    """
    data = checked(predicted, measured, weights, zeros)
    require_positive_predictions(data)
    return geometric_mean_ratio(
        data.predicted, data.measured, data.weights, "the geometric mean of predicted / measured"
    )


@declare(
    "wape",
    "WAPE",
    unit="fraction",
    kind="smooth",
    order=50,
    definition="Sum of all absolute errors divided by the sum of all measurements.",
    misleads="Large quantities dominate; small quantities hardly count, however wrong they are.",
    means=Means(_size, ("error",), weighted=True),
)
def wape(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Weighted absolute percentage error: all absolute errors as a share of all measured time.

    .. math:: \mathrm{WAPE} = \sum_i w_i\,|p_i - m_i| \Big/ \sum_i w_i\,m_i

    Definition: one denominator for all pairs, the total measurement. It equals a MAPE weighted by
    the measurements; ``weights`` multiply these (w = 1 without).
    Misleads where small quantities matter, because large quantities dominate. It is only an upper
    bound of the error of the total, in which errors of opposite sign cancel.

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
        As for ``mape``.

    References
    ----------
    Kolassa and Schütz (2007), "Advantages of the MAD/Mean ratio over the MAPE", Foresight 6, 40-43.

    Examples
    --------
    >>> wape(predicted=[11.0, 90.0], measured=[10.0, 100.0])
    0.1
    """
    data = checked(predicted, measured, weights, zeros)
    error = mean(np.abs(difference(data)), data.weights)
    return finite(error / mean(data.measured, data.weights), "the weighted percentage error")


@declare(
    "smape",
    "sMAPE",
    unit="fraction",
    kind="mean",
    order=80,
    definition="Arithmetic mean over pairs of the absolute error, each as a share of half the sum "
    "of the absolute prediction and measurement (0 to 200 %).",
    misleads="Common definitions differ by a factor of two; it cannot exceed 200 %.",
    means=Means(_symmetric, ("symmetric",), largest=2.0),
)
def smape(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Symmetric mean absolute percentage error, with the mean of the two values as denominator.

    .. math:: \mathrm{sMAPE} = \sum_i w_i\,\frac{|p_i - m_i|}{(|p_i| + |m_i|)/2} \Big/ \sum_i w_i

    Definition: the denominator of each pair is half the sum of the absolute values; arithmetic
    mean, between 0 and 2 (200 %). Other definitions leave out the factor 1/2 (0 to 1) or the
    absolute values.
    Misleads because it is symmetric only in swapping the two values: the same absolute error counts
    more when the prediction is too low. Predictions of zero or below all count 200 %.

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
        A fraction between 0 and 2.

    Raises
    ------
    InputError
        As for ``mape``.

    References
    ----------
    Makridakis (1993), "Accuracy measures: theoretical and practical concerns", International
    Journal of Forecasting 9(4), 527-529, doi:10.1016/0169-2070(93)90079-3.
    Goodwin and Lawton (1999), "On the asymmetry of the symmetric MAPE", International Journal of
    Forecasting 15(4), 405-408 (on the remaining asymmetry).

    Examples
    --------
    >>> smape(predicted=[30.0, 100.0], measured=[10.0, 100.0])
    0.5
    """
    data = checked(predicted, measured, weights, zeros)
    size = np.abs(data.predicted)
    large, small = np.maximum(size, data.measured), np.minimum(size, data.measured)
    # Divided by the larger first: the sum of the two may overflow. A p below 0 always gives 2.
    error = np.where(
        data.predicted > 0, 2 * (np.abs(difference(data)) / large) / (1 + small / large), 2.0
    )
    return mean(error, data.weights)
