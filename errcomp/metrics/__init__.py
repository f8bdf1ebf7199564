"""Error metrics from arrays, without tables, tools or files.

Errors of each pair: `ape`, `signed_percentage_error`, `log_accuracy_ratio`, `absolute_error`.
Metrics of all pairs: those of `FIGURES`, each also a function; `pooled` and `macro` over groups.
With intervals: `errcomp.metrics.intervals`. For scikit-learn: `scorer`.

Fractions are fractions, not per cent. Results are within 1e-12 of the exact value for the given
floating-point numbers from 1e-300 to 1e300, if neither inputs nor result are subnormal (below
2.2e-308). For metrics in which errors cancel (`bias`, `total_error`, `r2`, `pearson`, `spearman`),
that is relative to the cancelling terms. A result too large for a float raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_rows
from errcomp.metrics._registry import FIGURES, Figure, figure, find
from errcomp.metrics.agreement import kendall, pearson, r2, spearman, top_k_regret
from errcomp.metrics.averages import exact_predictions, gm_ratio, gmape, mae, mape, smape, wape
from errcomp.metrics.moments import bias, rmse, rmsle, rmspe, total_error
from errcomp.metrics.pointwise import (
    absolute_error,
    ape,
    log_accuracy_ratio,
    mean,
    signed_percentage_error,
)
from errcomp.metrics.ranked import (
    ape_quantile,
    approximate_ape_quantile,
    max_ape,
    median_ape,
    share_within,
)
from errcomp.metrics.scoring import scorer
from errcomp.tables import Zeros, as_pairs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "FIGURES",
    "Figure",
    "Macro",
    "absolute_error",
    "ape",
    "ape_quantile",
    "approximate_ape_quantile",
    "bias",
    "exact_predictions",
    "figure",
    "gm_ratio",
    "gmape",
    "kendall",
    "log_accuracy_ratio",
    "macro",
    "mae",
    "mape",
    "max_ape",
    "median_ape",
    "pearson",
    "pooled",
    "r2",
    "rmse",
    "rmsle",
    "rmspe",
    "scorer",
    "share_within",
    "signed_percentage_error",
    "smape",
    "spearman",
    "top_k_regret",
    "total_error",
    "wape",
]

find(__name__, __path__)


@dataclass(frozen=True, slots=True, eq=False)
class Macro:
    """A macro average and the metric of each group.

    Attributes
    ----------
    value : float
        Unweighted mean of ``values``.
    groups : tuple
        Labels of the groups, in order.
    values : ndarray, shape (len(groups),)
        The metric of each group.
    sizes : ndarray of int, shape (len(groups),)
        Pairs used in each group.
    """

    value: float
    groups: tuple[Any, ...]
    values: NDArray[np.float64]
    sizes: NDArray[np.int64]


def pooled(
    figure_name: str,
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    groups: ArrayLike,
    zeros: Zeros = "raise",
) -> float:
    r"""Compute a metric of all pairs together, so that large groups weigh more.

    .. math:: F\big(\{(p_i, m_i) : i = 1 \dots n\}\big)

    Parameters
    ----------
    figure_name : str
        A name from ``FIGURES``.
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    groups : array_like, shape (n,)
        Label of each pair's group. Checked as in ``macro``, so that both refuse the same input. The
        pooled metric does not depend on it.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        In the unit of the metric.

    Raises
    ------
    InputError
        The metric does not exist or is not defined for these pairs, or a label is missing.

    Notes
    -----
    Misleads where groups differ in size and in error: the metric is then mostly that of the largest
    group. Compare with ``macro``.

    References
    ----------
    Sokolova and Lapalme (2009), "A systematic analysis of performance measures for classification
    tasks", Information Processing & Management 45(4), 427-437 (micro and macro averaging).

    Examples
    --------
    >>> pooled("mape", predicted=[11.0, 12.0, 15.0], measured=[10.0] * 3, groups=["A", "A", "B"])
    0.26666666666666666
    """
    function = figure(figure_name).function
    value = function(predicted=predicted, measured=measured, zeros=zeros)
    _labels(groups, len(np.asarray(measured)))
    return value


def macro(
    figure_name: str,
    *,
    predicted: ArrayLike,
    measured: ArrayLike,
    groups: ArrayLike,
    zeros: Zeros = "raise",
) -> Macro:
    r"""Compute a metric in each group and average it over groups; every group counts the same.

    .. math:: \frac1G \sum_{g=1}^{G} F\big(\{(p_i, m_i) : i \in g\}\big)

    Parameters
    ----------
    figure_name : str
        A name from ``FIGURES``.
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    groups : array_like, shape (n,)
        Label of each pair's group: integers or strings, none missing.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive. A group that loses all its rows raises.

    Returns
    -------
    Macro
        The mean, and the metric and size of each group.

    Raises
    ------
    InputError
        The metric does not exist or is not defined in a group (the message names the group), or a
        label is missing.

    Notes
    -----
    Misleads where groups are small: the metric of a single pair counts as much as that of a group
    of a thousand. Compare with ``pooled``.

    References
    ----------
    Sokolova and Lapalme (2009), "A systematic analysis of performance measures for classification
    tasks", Information Processing & Management 45(4), 427-437 (micro and macro averaging).

    Examples
    --------
    >>> result = macro("mape", predicted=[11.0, 12.0, 14.0], measured=[10.0, 10.0, 10.0],
    ...                groups=["A", "A", "B"])
    >>> round(result.value, 12), result.groups, result.values.round(12).tolist()
    (0.275, ('A', 'B'), [0.15, 0.4])
    """
    function = figure(figure_name).function
    # Checked here so that messages count the rows of the whole table, not of a group.
    as_pairs(predicted=predicted, measured=measured, zeros=zeros)
    p, m = (np.asarray(x, dtype=np.float64) for x in (predicted, measured))
    labels, codes = _labels(groups, len(m))
    values = np.empty(len(labels))
    for code, label in enumerate(labels):
        member = codes == code
        try:
            values[code] = function(predicted=p[member], measured=m[member], zeros=zeros)
        except InputError as error:
            raise InputError(
                f"group {label!r} (row numbers count within this group): {error}"
            ) from error
    sizes = np.bincount(codes[m > 0], minlength=len(labels))
    return Macro(mean(values, None), labels, values, sizes)


def _labels(groups: ArrayLike, n: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """Return the distinct labels in order, and for each row the position of its label."""
    array = np.asarray(groups)
    if array.shape != (n,):
        raise InputError(
            f"groups must have one label per pair, shape ({n},), got shape {array.shape}"
        )
    missing = [i for i, label in enumerate(array.tolist(), 1) if label is None or label != label]
    if missing:
        raise InputError(
            f"groups must not be missing, got no label in {describe_rows(missing)}. "
            "Give these pairs a label or leave them out."
        )
    try:
        labels, codes = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"groups must be labels of one kind, all text or all numbers: {error}"
        ) from error
    return tuple(labels.tolist()), codes
