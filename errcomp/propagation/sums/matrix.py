"""The sum of terms whose full covariance matrix is given."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError
from errcomp.propagation.sums.laws import Moments
from errcomp.propagation.terms import Floats

__all__ = ["NOT_DEFINITE", "total_from_covariance"]

#: Rounding in a covariance matrix, relative to its largest variance, that is let through.
_ROUNDING = 1e-9
_ALL, _SOME = 256, 32
NOT_DEFINITE = (
    "the matrix is not positive semi-definite: the variance of the sum would be {variance:.6g}. "
    "Correlations estimated pair by pair need not fit together; give a consistent matrix, e.g. the "
    "nearest positive semi-definite one."
)


def total_from_covariance(
    values: ArrayLike, covariance: ArrayLike, *, unit: str | None = None
) -> Moments:
    r"""Sum of terms with a given covariance matrix.

    .. math:: \operatorname{E} S = \sum_i x_i, \qquad
        \operatorname{Var} S = \mathbf 1^{\mathsf T} \Sigma \mathbf 1

    Definition: exact whatever the distribution of the terms; the quantiles are those of a normal.
    One pass over the matrix. It must be symmetric and positive semi-definite; what is checked is
    necessary, not sufficient, for that: finite entries, variances that are not negative, rows equal
    to their columns (all of them up to 256 terms, 32 evenly spaced ones of more), and a variance of
    the sum that is not negative.

    Parameters
    ----------
    values : array_like, shape (n,)
        Predictions, or best estimates, of the terms.
    covariance : array_like, shape (n, n)
        In the square of their unit.
    unit : str, optional

    Returns
    -------
    Moments

    Raises
    ------
    InputError
        Shapes do not fit, there is no term, an entry is not finite, a variance is negative, the
        matrix is not symmetric, or the variance of the sum is negative.

    References
    ----------
    JCGM 100:2008, "Guide to the expression of uncertainty in measurement", clause 5.2.2.

    Examples
    --------
    >>> total = total_from_covariance([10.0, 20.0], [[1.0, 0.5], [0.5, 4.0]])
    >>> total.mean, round(total.sd, 4)
    (30.0, 2.4495)
    """
    x, matrix = _as_floats(values, "values"), _as_floats(covariance, "covariance")
    if x.ndim != 1 or len(x) == 0 or matrix.shape != (len(x), len(x)):
        raise InputError(
            f"values must have shape (n,) and covariance (n, n) with n of at least 1, got "
            f"{x.shape} and {matrix.shape}."
        )
    variances = matrix.diagonal()
    largest = float(variances.max())
    with np.errstate(over="ignore", invalid="ignore"):
        variance, mean = float((matrix @ np.ones(len(x))).sum()), float(x.sum())
    if not (math.isfinite(variance) and math.isfinite(mean)):
        _not_finite(x, matrix)
    if float(variances.min()) < 0:
        at = int(variances.argmin())
        raise InputError(
            f"variances must not be negative, got {variances[at]:.6g} at position ({at}, {at})."
        )
    if not _symmetric(matrix, _ROUNDING * largest):
        _not_symmetric(matrix)
    if variance < -_ROUNDING * len(x) ** 2 * largest:
        raise InputError(NOT_DEFINITE.format(variance=variance))
    sd = math.sqrt(max(variance, 0.0))
    return Moments(
        prediction=mean,
        mean=mean,
        sd=sd,
        law="normal",
        location=mean,
        scale=sd,
        df=math.inf,
        n_terms=len(x),
        n_instances=len(x),
        unit=unit,
    )


def _as_floats(values: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers, got {values!r:.60}.") from None


def _symmetric(matrix: Floats, tolerance: float) -> bool:
    """Whether evenly spaced rows equal their columns; all of them up to a size."""
    step = 1 if len(matrix) <= _ALL else -(-len(matrix) // _SOME)
    return bool((np.abs(matrix[::step] - matrix[:, ::step].T) <= tolerance).all())


def _not_finite(values: Floats, matrix: Floats) -> NoReturn:
    for name, array in (("values", values), ("covariance", matrix)):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            at = tuple(int(i) for i in bad[0])
            where = at[0] if len(at) == 1 else at
            raise InputError(
                f"{name} must be finite, got {array[at]} at position {where} "
                f"({len(bad)} such {'entry' if len(bad) == 1 else 'entries'})."
            )
    raise InputError("the sum exceeds the largest float64. Give the values in a larger unit.")


def _not_symmetric(matrix: Floats) -> NoReturn:
    apart = np.abs(matrix - matrix.T)
    i, j = sorted(int(k) for k in np.unravel_index(int(apart.argmax()), apart.shape))
    raise InputError(
        f"covariance must be symmetric, got {matrix[i, j]:.6g} at position ({i}, {j}) and "
        f"{matrix[j, i]:.6g} at ({j}, {i})."
    )
