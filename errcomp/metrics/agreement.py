"""Agreement of predictions with measurements: correlations, R², regret of a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from errcomp.errors import InputError
from errcomp.metrics._registry import declare
from errcomp.metrics.pointwise import (
    Checked,
    checked,
    difference,
    finite,
    mean,
    root_mean_square,
    scale,
)
from errcomp.tables import Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_INSTEAD = "Report an error metric (mape, bias) instead, or add pairs that differ."


@declare(
    "r2",
    "R²",
    unit="correlation",
    kind="smooth",
    order=180,
    definition="One minus the sum of squared errors divided by the sum of squared deviations of "
    "the measurements from their mean.",
    misleads="Near 1 whenever the measurements span orders of magnitude, even if predictions of "
    "small values are off by large factors.",
)
def r2(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Coefficient of determination of the predictions as they are, without a fitted line.

    .. math:: R^2 = 1 - \sum_i w_i\,(p_i - m_i)^2 \Big/ \sum_i w_i\,(m_i - \bar m)^2

    Definition: squared error as a share of the squared deviation of the measurements from their
    (weighted) mean. 1 is perfect, 0 is as good as predicting that mean, and a negative value is
    worse. It is not the square of ``pearson``, which ignores a wrong scale and offset.
    Misleads because it grows with the spread of the measurements: over several orders of magnitude
    it is near 1 even when small quantities are off by large factors.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0 and not all equal.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        At most 1. Rounding is about 1e-15 of ``max(1, |R²|)``.

    Raises
    ------
    InputError
        Shapes differ, values or weights cannot be used, a measurement is not positive, all
        measurements are equal, or the result is beyond the largest float64.

    References
    ----------
    Kvålseth (1985), "Cautionary note about R²", The American Statistician 39(4), 279-285,
    doi:10.1080/00031305.1985.10479448 (of the eight there, the first).

    Examples
    --------
    >>> r2(predicted=[11.0, 19.0, 30.0], measured=[10.0, 20.0, 30.0])
    0.99
    """
    data = checked(predicted, measured, weights, zeros)
    _require_variation("R²", "measured", data.measured)
    spread = root_mean_square(_centred(data.measured, data.weights), data.weights)
    ratio = root_mean_square(difference(data), data.weights) / spread
    return finite(1.0 - ratio * ratio, "R²")


@declare(
    "pearson",
    "Pearson correlation",
    unit="correlation",
    kind="smooth",
    order=190,
    definition="Covariance of predictions and measurements divided by the product of their "
    "standard deviations.",
    misleads="Does not measure error: predictions ten times too high can correlate perfectly.",
)
def pearson(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    weights: ArrayLike | None = None,
    zeros: Zeros = "raise",
) -> float:
    r"""Pearson's correlation of predictions and measurements.

    .. math:: r = \frac{\sum_i w_i\,(p_i - \bar p)(m_i - \bar m)}
        {\sqrt{\sum_i w_i\,(p_i - \bar p)^2 \, \sum_i w_i\,(m_i - \bar m)^2}}

    Definition: linear association; deviations from the (weighted) means. No denominator in the unit
    of the data: it does not change when all predictions are doubled.
    Misleads in place of an error: predictions ten times too high can correlate perfectly, and one
    pair far from the others can determine it.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Finite, neither all equal, measured > 0.
    weights : array_like, shape (n,), optional
        Finite, not negative, not all zero. An integer weight is a repetition of the pair.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        From -1 to 1. Rounding is about 1e-15 in absolute terms.

    Raises
    ------
    InputError
        Shapes differ, values or weights cannot be used, a measurement is not positive, or all
        predictions or all measurements are equal.

    References
    ----------
    Bland and Altman (1986), "Statistical methods for assessing agreement between two methods of
    clinical measurement", The Lancet 327(8476), 307-310 (why a correlation is not agreement).

    Examples
    --------
    >>> round(pearson(predicted=[100.0, 200.0, 300.0], measured=[10.0, 20.0, 30.0]), 12)
    1.0
    """
    data = checked(predicted, measured, weights, zeros)
    _require_both_vary("Pearson's correlation", data)
    return _pearson(data.predicted, data.measured, data.weights)


@declare(
    "spearman",
    "Spearman rank correlation",
    unit="correlation",
    kind="rank",
    order=200,
    definition="Pearson's correlation of the ranks of predictions and measurements; ties have "
    "their mean rank.",
    misleads="Does not measure error: only the order counts.",
)
def spearman(*, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise") -> float:
    r"""Spearman's rank correlation of predictions and measurements.

    .. math:: \rho = r\big(\operatorname{rank}(p), \operatorname{rank}(m)\big)

    Definition: Pearson's correlation of the ranks; equal values share the mean of their ranks.
    Misleads in place of an error: only the order counts, which is easy to get right over quantities
    of very different size.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Finite, neither all equal, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        From -1 to 1.

    Raises
    ------
    InputError
        As for ``pearson``.

    References
    ----------
    Spearman (1904), "The proof and measurement of association between two things", American Journal
    of Psychology 15(1), 72-101, doi:10.2307/1412159.

    Examples
    --------
    >>> round(spearman(predicted=[1.0, 4.0, 9.0, 8.0], measured=[10.0, 20.0, 30.0, 40.0]), 12)
    0.8
    """
    from errcomp.stats.significance import ranks

    data = checked(predicted, measured, None, zeros)
    _require_both_vary("Spearman's correlation", data)
    return _pearson(ranks(data.predicted), ranks(data.measured), None)


@declare(
    "kendall",
    "Kendall tau-b",
    unit="correlation",
    kind="rank",
    order=210,
    definition="Number of row pairs that predictions and measurements put in the same order "
    "minus the number that they put in opposite orders, divided by the geometric mean "
    "of two numbers: row pairs not tied in the predictions, and row pairs not tied in "
    "the measurements.",
    misleads="Does not measure error: only the order counts.",
)
def kendall(*, predicted: ArrayLike, measured: ArrayLike, zeros: Zeros = "raise") -> float:
    r"""Kendall's rank correlation, tau-b: how often two pairs are in the same order.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(C + D + T_p)(C + D + T_m)}}

    Definition: C and D count the pairs of pairs in the same and in the opposite order, T_p and T_m
    those tied in the predictions only and in the measurements only. Without ties, (1 + tau)/2 is
    the share of comparisons that the predictor decides correctly.
    Misleads in place of an error, like ``spearman``.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Finite, neither all equal, measured > 0.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        From -1 to 1.

    Raises
    ------
    InputError
        As for ``pearson``.

    References
    ----------
    Kendall (1945), "The treatment of ties in ranking problems", Biometrika 33(3), 239-251,
    doi:10.1093/biomet/33.3.239.

    Examples
    --------
    >>> round(kendall(predicted=[1.0, 4.0, 9.0, 8.0], measured=[10.0, 20.0, 30.0, 40.0]), 12)
    0.666666666667
    """
    from scipy.stats import kendalltau

    data = checked(predicted, measured, None, zeros)
    _require_both_vary("Kendall's correlation", data)
    return float(kendalltau(data.predicted, data.measured, variant="b").statistic)


@declare(
    "top_1_regret",
    "top-1 regret",
    unit="fraction",
    kind="rank",
    order=220,
    definition="How far the measurement of the candidate with the lowest prediction is above the "
    "lowest measurement, divided by the lowest measurement.",
    misleads="Meaningful only if the rows are alternatives to choose from, and lower is better.",
    k=1,
)
def top_k_regret(
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    k: int,
    best: Literal["lowest", "highest"] = "lowest",
    zeros: Zeros = "raise",
) -> float:
    r"""Cost of choosing by prediction: regret of the best of the k top-predicted candidates.

    .. math:: \frac{\min_{i \in T_k} m_i - \min_i m_i}{\min_i m_i}, \qquad
        \frac{\max_i m_i - \max_{i \in T_k} m_i}{\max_i m_i}

    Definition: T_k are the k candidates predicted best. The metric is the difference between the
    best measurement among them and the best of all, as a share of the best of all (left for
    ``best="lowest"``, right for ``"highest"``). Of equal predictions at the limit, those measured
    worst are taken, because a predictor that cannot distinguish them should not profit from luck.
    Misleads where rows are not alternatives to each other (several models, several devices):
    compute it within each set of candidates. It falls with k and with the number of good
    candidates.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        One row per candidate. Finite, measured > 0.
    k : int
        Number of candidates that would be measured, 1 to n.
    best : {"lowest", "highest"}
        Whether low values are good (latency) or high ones (throughput).
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        A fraction, 0 or more: 0.1 means the choice is 10 % worse than the best.

    Raises
    ------
    InputError
        Shapes differ, values are not finite, a measurement is not positive, k is not an integer
        from 1 to n, or ``best`` is neither of the two.

    References
    ----------
    Zheng et al. (2021), "TenSet: a large-scale program performance dataset for learned tensor
    compilers", NeurIPS Datasets and Benchmarks. Their top-k score of a single task is
    1 / (1 + regret) for ``best="lowest"``.

    Examples
    --------
    >>> p, m = [1.0, 2.0, 3.0], [12.0, 10.0, 20.0]
    >>> top_k_regret(predicted=p, measured=m, k=1), top_k_regret(predicted=p, measured=m, k=2)
    (0.2, 0.0)
    """
    if best not in ("lowest", "highest"):
        raise InputError(f'best must be "lowest" or "highest", got {best!r}')
    data = checked(predicted, measured, None, zeros)
    n = len(data.measured)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n:
        raise InputError(f"k must be an integer from 1 to the number of candidates, {n}, got {k!r}")
    sign = 1.0 if best == "lowest" else -1.0
    order = np.lexsort((-sign * data.measured, sign * data.predicted))
    optimum = sign * float((sign * data.measured).min())
    chosen = sign * float((sign * data.measured[order[:k]]).min())
    return finite(abs(chosen - optimum) / optimum, "the regret")


def _pearson(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> float:
    x, y = _standardised(x, weights), _standardised(y, weights)
    # Rounding may exceed the bounds by a unit in the last place.
    return min(1.0, max(-1.0, mean(x * y, weights)))


def _standardised(
    x: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    scaled, _ = scale(x)  # or a deviation from the mean could overflow
    centred = _centred(scaled, weights)
    with np.errstate(under="ignore"):
        return centred / root_mean_square(centred, weights)


def _centred(x: NDArray[np.float64], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Subtract the mean, then the mean of the rest."""
    centred = x - mean(x, weights)
    # If x is nearly constant, the rounding of the mean is not small beside the deviations.
    return centred - mean(centred, weights)


def _require_variation(label: str, name: str, values: NDArray[np.float64]) -> None:
    if (values == values[0]).all():
        raise InputError(
            f"{label} is not defined: {name} has the same value, {values[0]}, in "
            f"{'the only pair' if len(values) == 1 else f'all {len(values)} pairs'}. {_INSTEAD}"
        )


def _require_both_vary(label: str, data: Checked) -> None:
    _require_variation(label, "predicted", data.predicted)
    _require_variation(label, "measured", data.measured)
