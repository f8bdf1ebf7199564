"""Metrics of the ordered percentage errors: median, quantiles, maximum, share within a limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from errcomp.errors import InputError, offer
from errcomp.metrics._registry import declare
from errcomp.metrics.pointwise import checked, mean, relative_error
from errcomp.tables import Zeros
from errcomp.tables.sums import BUCKET

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Rules of NumPy: the nine of Hyndman and Fan (1996), then others.
QuantileRule = Literal[
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]


@declare(
    "median_ape",
    "median APE",
    unit="fraction",
    kind="quantile",
    order=20,
    definition="Median over pairs of the absolute error, each as a share of its measurement.",
    misleads="Says nothing about the larger half of the errors.",
)
def median_ape(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Median absolute percentage error: half of the pairs have at most this error.

    .. math:: \operatorname{median}_i \big(|p_i - m_i| / m_i\big)

    Definition: one denominator per pair, its measurement; with an even number of pairs, the mean of
    the middle two. Weighted: the error that splits the weight in half, or the mean of the two
    neighbours of an exact split.
    Misleads because it says nothing about the size of the errors in the larger half.

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

    Examples
    --------
    >>> median_ape(predicted=[11.0, 75.0, 9.0], measured=[10.0, 100.0, 10.0])
    0.1
    """
    data = checked(predicted, measured, weights, zeros)
    error = np.abs(relative_error(data))
    if data.weights is not None:
        lower, upper = _weighted_neighbours(error, data.weights, 0.5)
    else:
        middle = (len(error) - 1) // 2, len(error) // 2
        ordered = np.partition(error, middle)
        lower, upper = float(ordered[middle[0]]), float(ordered[middle[1]])
    return lower / 2 + upper / 2


def ape_quantile(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    q: float,
    rule: QuantileRule = "linear",
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Quantile of the absolute percentage errors: a share q of the pairs has at most this error.

    .. math:: Q_q\big(|p_i - m_i| / m_i\big)

    Definition: one denominator per pair, its measurement; the quantile by the given rule (a name of
    ``numpy.quantile``). ``"linear"`` interpolates between the two nearest errors;
    ``"inverted_cdf"`` is the smallest error that a share of at least q does not exceed.
    Misleads with few pairs: the 0.99 quantile of fewer than 100 is practically the maximum, and the
    rules then differ as much as the largest two errors.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    q : float
        A fraction from 0 to 1: 0.95 is the 95th percentile.
    rule : str
        Method of ``numpy.quantile``. State it with the figure.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair. Only with
        ``rule="inverted_cdf"``: the rules that interpolate have no agreed weighted form.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction: 0.1 is 10 %.

    Raises
    ------
    InputError
        As for ``median_ape``, or q, the rule or its combination with weights is not defined.

    References
    ----------
    Hyndman and Fan (1996), "Sample quantiles in statistical packages", The American Statistician
    50(4), 361-365, doi:10.1080/00031305.1996.10473566.

    Examples
    --------
    >>> p, m = [11.0, 75.0, 10.5], [10.0, 100.0, 10.0]
    >>> ape_quantile(predicted=p, measured=m, q=0.75)
    0.175
    >>> ape_quantile(predicted=p, measured=m, q=0.75, rule="inverted_cdf")
    0.25
    """
    _check_quantile(q)
    if rule not in get_args(QuantileRule):
        known = offer("Rules", get_args(QuantileRule), wanted=str(rule))
        raise InputError(f"no quantile rule {rule!r}. {known}")
    if weights is not None and rule != "inverted_cdf":
        raise InputError(
            f'weights are not defined for the quantile rule {rule!r}. Give rule="inverted_cdf", or '
            "leave the weights out."
        )
    data = checked(predicted, measured, weights, zeros)
    error = np.abs(relative_error(data))
    if data.weights is not None:
        return _weighted_neighbours(error, data.weights, float(q))[0]
    return float(np.quantile(error, q, method=rule))


def _check_quantile(q: float) -> None:
    if isinstance(q, bool) or not isinstance(q, int | float | np.number) or not 0 <= q <= 1:
        raise InputError(
            f"q must be a fraction from 0 to 1, got {q!r}. The 95th percentile is 0.95."
        )


def approximate_ape_quantile(
    *, predicted: ArrayLike, measured: ArrayLike, q: float, zeros: Zeros = "raise"
) -> float:
    r"""Quantile of the absolute percentage errors, within 0.5 % of its exact value.

    .. math:: Q_q(b(|p_i - m_i| / m_i)), \quad
              b(x) = 1.01^{\lfloor \log_{1.01} x \rfloor + 1/2}, \quad b(0) = 0

    Definition: the quantile (NumPy's default rule, ``"linear"``) of errors that are each replaced
    by the geometric middle of a bucket 1 % wide. Counts of buckets can be added over the parts of a
    table, so an engine can compute it for rows that do not fit in memory. An exact quantile would
    need all rows in one place.
    Misleads like the exact quantile, and where two values closer than 1 % are compared.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    q : float
        A fraction from 0 to 1: 0.95 is the 95th percentile.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction: 0.1 is 10 %.

    Raises
    ------
    InputError
        q is not a fraction, shapes differ, values cannot be used, a measurement is not positive, or
        an error is beyond the largest float64 (names the first three rows).

    References
    ----------
    Masson, Rim and Lee (2019), "DDSketch: a fast and fully-mergeable quantile sketch with
    relative-error guarantees", Proceedings of the VLDB Endowment 12(12), 2195-2205,
    doi:10.14778/3352063.3352135.

    Examples
    --------
    >>> pairs = {"predicted": [11.0, 75.0, 9.1], "measured": [10.0, 100.0, 10.0]}
    >>> round(approximate_ape_quantile(**pairs, q=0.5), 4)
    0.0999
    """
    _check_quantile(q)
    error = np.abs(relative_error(checked(predicted, measured, None, zeros)))
    low, high = (_middle(float(np.quantile(error, q, method=rule))) for rule in ("lower", "higher"))
    return low + q * (len(error) - 1) % 1 * (high - low)


def _middle(error: float) -> float:
    """Return the middle of the bucket of each error."""
    return math.exp((math.floor(math.log(error) / BUCKET) + 0.5) * BUCKET) if error > 0 else 0.0


@declare(
    "max_ape",
    "max APE",
    unit="fraction",
    kind="maximum",
    order=130,
    definition="Largest absolute error of any pair, as a share of that pair's measurement.",
    misleads="Grows with the number of pairs, so it is not comparable between samples of different "
    "size, and does not bound future errors.",
)
def max_ape(*, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise") -> float:
    r"""Largest absolute percentage error of all pairs.

    .. math:: \max_i |p_i - m_i| / m_i

    Definition: one denominator per pair, its measurement; the maximum. Weights would not change it.
    Misleads because it is a property of the sample: it grows with the number of pairs, so maxima
    over different numbers of pairs are not comparable, and it does not bound future errors.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction: 0.1 is 10 %.

    Raises
    ------
    InputError
        As for ``median_ape``.

    References
    ----------
    Wilks (1941), "Determination of sample sizes for setting tolerance limits", Annals of
    Mathematical Statistics 12(1), 91-96 (what the largest of n values does say).

    Examples
    --------
    >>> max_ape(predicted=[11.0, 75.0], measured=[10.0, 100.0])
    0.25
    """
    return float(np.abs(relative_error(checked(predicted, measured, None, zeros))).max())


def share_within(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    threshold: float,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Share of the pairs whose absolute percentage error does not exceed a threshold.

    .. math:: \sum_i w_i\,[\,|p_i - m_i| / m_i \le t\,] \Big/ \sum_i w_i

    Definition: one denominator per pair, its measurement; a pair on the threshold counts as within.
    Decimal numbers are rounded when they become floats: the error of 1.05 against 1.00 is
    0.05000000000000004. An excess of at most 4 (1 + t) machine epsilons is therefore ignored.
    Misleads because it says nothing about the size of the other errors, and because the threshold
    can be chosen after the fact.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    threshold : float
        A fraction, 0 or more: 0.1 is 10 %.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction: 0.9 means that 90 % of the pairs are within the threshold.

    Raises
    ------
    InputError
        As for ``median_ape``, or the threshold is negative or not finite.

    References
    ----------
    Conte, Dunsmore and Shen (1986), "Software Engineering Metrics and Models",
    Benjamin/Cummings (there called PRED).

    Examples
    --------
    >>> share_within(predicted=[1.05, 75.0], measured=[1.0, 100.0], threshold=0.05)
    0.5
    """
    numeric = isinstance(threshold, int | float | np.number) and not isinstance(threshold, bool)
    if not numeric or not math.isfinite(threshold) or threshold < 0:
        raise InputError(
            f"threshold must be a fraction, 0 or more, got {threshold!r}. 0.1 stands for 10 %."
        )
    data = checked(predicted, measured, weights, zeros)
    rounding = 4 * np.finfo(np.float64).eps * (1 + threshold)
    within = np.abs(relative_error(data)) <= threshold + rounding
    return mean(within.astype(np.float64), data.weights)


def _weighted_neighbours(
    values: NDArray[np.float64], weights: NDArray[np.float64], q: float
) -> tuple[float, float]:
    """Return the smallest values at which the cumulative weight reaches, and exceeds, the share q.

    The two differ only if the cumulative weight equals q of the total, up to the rounding of the
    sum.
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    slack = len(values) * np.finfo(np.float64).eps * cumulative[-1]
    target = q * cumulative[-1]
    reached = np.searchsorted(cumulative, target - slack, side="left")
    exceeded = np.searchsorted(cumulative, target + slack, side="right")
    last = len(values) - 1
    lower, upper = values[order[[min(reached, last), min(exceeded, last)]]]
    return float(lower), float(upper)


for _percent in (90, 95, 99):
    declare(
        f"p{_percent}_ape",
        f"P{_percent} APE",
        unit="fraction",
        kind="quantile",
        order=140 + _percent % 10,
        definition=f"The {_percent}th percentile of the absolute errors, each as a share of its "
        "measurement, with linear interpolation between neighbours.",
        misleads=f"With fewer than {1000 // (100 - _percent)} pairs, fewer than ten errors are "
        "above it; with few pairs it is interpolated between the two largest errors.",
        q=_percent / 100,
    )(ape_quantile)

for _percent in (50, 90, 95, 99):
    declare(
        "median_ape_approx" if _percent == 50 else f"p{_percent}_ape_approx",
        f"approx. {'median' if _percent == 50 else f'P{_percent}'} APE",
        unit="fraction",
        kind="quantile",
        order=150 + _percent % 10 + (_percent > 50),
        definition=f"The {'median' if _percent == 50 else f'{_percent}th percentile'} of the "
        "absolute errors, each as a share of its measurement, within 0.5 % of the exact value; "
        "it is computed from counts of errors in buckets 1 % wide, which an engine can add up.",
        misleads="Exact values that differ by less than 1 % may give the same result.",
        q=_percent / 100,
    )(approximate_ape_quantile)

for _percent in (5, 10, 20):
    declare(
        f"within_{_percent}",
        f"share within {_percent} %",
        unit="fraction",
        kind="share",
        order=170 + _percent // 5,
        definition=f"Share of the pairs whose absolute error is at most {_percent} % of their "
        "measurement.",
        misleads="Says nothing about the size of the other errors.",
        threshold=_percent / 100,
    )(share_within)
