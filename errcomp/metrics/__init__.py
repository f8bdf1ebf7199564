"""Error figures from arrays. Knows no table, no tool and no file.

Errors of each pair: `ape`, `signed_percentage_error`, `log_accuracy_ratio`, `absolute_error`.
Figures of all pairs: those of `FIGURES`, each also a function of its own; `pooled` and `macro` over
groups. With intervals: `errcomp.metrics.intervals`.

All fractions are fractions, not percent. Results are within 1e-12 of the exact value of the
floating-point numbers given, from 1e-300 to 1e300, as long as neither inputs nor result are
subnormal (below 2.2e-308); for figures in which errors cancel (`bias`, `total_error`, `r2`,
`pearson`, `spearman`), relative to what cancels. A result too large for a float raises; none is
infinite.
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
    """A macro average with what it was made of.

    Attributes
    ----------
    value : float
        Unweighted mean of ``values``.
    groups : tuple
        Labels of the groups, in order.
    values : ndarray, shape (len(groups),)
        The figure of each group.
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
    r"""Compute a figure of all pairs together: every pair counts, so large groups weigh more.

    .. math:: F\big(\{(p_i, m_i) : i = 1 \dots n\}\big)

    Parameters
    ----------
    figure_name : str
        A name from ``FIGURES``.
    predicted, measured : array_like, shape (n,)
        Same unit, finite, measured > 0.
    groups : array_like, shape (n,)
        Label of each pair's group. Checked as in ``macro``, so that both refuse the same input;
        the pooled figure does not depend on it.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.

    Returns
    -------
    float
        In the unit of the figure.

    Raises
    ------
    InputError
        There is no such figure, it is not defined for these pairs, or a label is missing.

    Notes
    -----
    Misleads where groups differ in size and in error: the figure is then mostly that of the largest
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
    r"""Compute a figure in each group and average it over groups: every group counts the same.

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
        The mean, and the figure and size of each group.

    Raises
    ------
    InputError
        There is no such figure, it is not defined in a group (names the group), or a label is
        missing.

    Notes
    -----
    Misleads where groups are small: the figure of a group of one pair counts as much as that of a
    group of a thousand. Compare with ``pooled``.

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
    as_pairs(predicted, measured, zeros=zeros)  # refuses with the rows of the whole, not of a group
    p, m = (np.asarray(x, dtype=np.float64) for x in (predicted, measured))
    labels, codes = _labels(groups, len(m))
    values = np.empty(len(labels))
    for code, label in enumerate(labels):
        member = codes == code
        try:
            values[code] = function(predicted=p[member], measured=m[member], zeros=zeros)
        except InputError as error:
            raise InputError(f"group {label!r} (rows counted within it): {error}") from error
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
            f"groups must not be missing, got none in {describe_rows(missing)}. "
            "Give these pairs a label of their own or leave them out."
        )
    try:
        labels, codes = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"groups must be labels of one kind, all text or all numbers: {error}"
        ) from error
    return tuple(labels.tolist()), codes
