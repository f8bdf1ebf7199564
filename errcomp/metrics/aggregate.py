"""A figure over groups: pooled (all pairs together) and macro (mean of the groups' figures)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_rows
from errcomp.metrics._numeric import mean
from errcomp.metrics._registry import figure
from errcomp.tables import Zeros, as_pairs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Macro", "macro", "pooled"]


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
