"""Is a matrix a correlation matrix, and which one is the nearest if it is not?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from errcomp.errors import ErrcompError, InputError
from errcomp.propagation.terms import Floats

#: Entries may differ by as much from symmetry, from the unit diagonal and from [−1, 1].
ROUNDING = 1e-10
#: The smallest eigenvalue may be this far below zero, an effect of rounding to 8 decimals.
NEGATIVE = 1e-8
_CONVERGED = 1e-10
_ITERATIONS = 20_000


def check_correlation(
    matrix: ArrayLike, *, n: int | None = None, names: Sequence[str] | None = None
) -> Floats:
    r"""Return the matrix as numbers if some variables can have these correlations.

    Definition: square, finite, symmetric (to 1e-10), 1 on the diagonal, entries in [−1, 1], and
    positive semi-definite: the smallest eigenvalue is at least −1e-8. Smaller deviations are
    corrected: the returned matrix is exactly symmetric, with an exact diagonal.
    Correlations that are possible pair by pair can be impossible together: if A and B both
    correlate strongly with C, they cannot be anticorrelated. Such matrices arise if entries come
    from different data, or were set by hand.

    Parameters
    ----------
    matrix : array_like, shape (n, n)
    n : int, optional
        Expected number of rows.
    names : sequence of str, optional
        Names of rows and columns in messages; by default numbers from 1.

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    InputError
        Not a correlation matrix. The message names up to three entries and, if it is not positive
        semi-definite, the smallest eigenvalue and `nearest_correlation`.

    References
    ----------
    Higham (2002), "Computing the nearest correlation matrix: a problem from finance", IMA Journal
    of Numerical Analysis 22(3), 329-343, doi:10.1093/imanum/22.3.329.

    Examples
    --------
    >>> check_correlation([[1, 0.5], [0.5, 1]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> check_correlation([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: correlation: these correlations cannot all hold ...
    """
    r = _symmetric(matrix, n, names)
    off = np.abs(np.diagonal(r) - 1.0) > ROUNDING
    if off.any():
        at = np.flatnonzero(off)
        raise InputError(
            f"correlation: must be 1 on the diagonal, got {_entries(r, at, at, names)}. Divide a "
            "covariance by the standard deviations of its row and its column."
        )
    _refuse(r, np.abs(r) > 1.0 + ROUNDING, "must be in [-1, 1]", names)
    r = np.clip(r, -1.0, 1.0)
    np.fill_diagonal(r, 1.0)
    try:
        linalg.cholesky(r, lower=True, check_finite=False)
    except linalg.LinAlgError:
        _refuse_indefinite(r, names)
    return r


def nearest_correlation(matrix: ArrayLike) -> Floats:
    r"""Return the nearest correlation matrix in the Frobenius norm.

    .. math:: \min_X \sum_{ij} (a_{ij} - x_{ij})^2, \qquad X \succeq 0, \; x_{ii} = 1

    Definition: alternating projections onto the positive semi-definite matrices and the matrices
    with unit diagonal, with Dykstra's correction, until nothing changes by more than 1e-10 of the
    norm. The result has an exact unit diagonal and passes `check_correlation`.
    Misleads if some entries are less certain than others: all are changed equally, and the result
    is usually singular. Better data for the conflicting entries is preferable.
    Each step takes one eigendecomposition (n = 1000: some tenths of a second), and there are tens
    to hundreds of steps.

    Parameters
    ----------
    matrix : array_like, shape (n, n)
        Symmetric and finite.

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    InputError
        It is not square, finite or symmetric.
    ErrcompError
        No convergence within 20,000 steps.

    References
    ----------
    Higham (2002), doi:10.1093/imanum/22.3.329.

    Examples
    --------
    >>> nearest_correlation([[1, 1, 0], [1, 1, 1], [0, 1, 1]]).round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])
    """
    y = _symmetric(matrix, None, None)
    x, correction = y, np.zeros_like(y)
    for _ in range(_ITERATIONS):
        shifted = y - correction
        semidefinite = _semidefinite(shifted)
        correction = semidefinite - shifted
        unit = semidefinite.copy()
        np.fill_diagonal(unit, 1.0)
        change = max(_relative(semidefinite, x), _relative(unit, y), _relative(unit, semidefinite))
        x, y = semidefinite, unit
        if change <= _CONVERGED:
            break
    else:
        raise ErrcompError(
            f"nearest_correlation: no convergence in {_ITERATIONS} steps (last change {change:.1e})"
        )
    scale = 1.0 / np.sqrt(np.diagonal(x))
    out = np.clip(x * scale[:, None] * scale[None, :], -1.0, 1.0)
    np.fill_diagonal(out, 1.0)
    return np.asarray((out + out.T) / 2)


def _semidefinite(a: Floats) -> Floats:
    """Nearest positive semi-definite matrix: negative eigenvalues become 0."""
    values, vectors = linalg.eigh(a, check_finite=False)
    positive = values > 0
    root = vectors[:, positive] * np.sqrt(values[positive])
    return np.asarray(root @ root.T)


def _relative(new: Floats, old: Floats) -> float:
    return float(linalg.norm(new - old) / max(linalg.norm(new), 1.0))


def _symmetric(matrix: ArrayLike, n: int | None, names: Sequence[str] | None) -> Floats:
    try:
        r = np.array(matrix, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"correlation: must be a matrix of numbers ({error})") from error
    expected = "" if n is None else f" with {n} rows"
    if r.ndim != 2 or r.shape[0] != r.shape[1] or not r.size or n not in (None, len(r)):
        raise InputError(f"correlation: must be a square matrix{expected}, got shape {r.shape}")
    if names is not None and len(names) != len(r):
        raise InputError(f"names: must be one per row, got {len(names)} for {len(r)} rows")
    _refuse(r, ~np.isfinite(r), "must be finite", names, upper=False)
    apart = np.abs(r - r.T) > ROUNDING
    if apart.any():
        i, j = np.nonzero(np.triu(apart))
        pairs = ", ".join(
            f"{_entry_name(a, b, names)} = {r[a, b]:g} but {_entry_name(b, a, names)} = {r[b, a]:g}"
            for a, b in zip(i[:3], j[:3], strict=True)
        )
        raise InputError(f"correlation: must be symmetric, got {pairs}{_more(len(i))}")
    return np.asarray((r + r.T) / 2)


def _refuse_indefinite(r: Floats, names: Sequence[str] | None) -> None:
    smallest = float(linalg.eigh(r, eigvals_only=True, subset_by_index=[0, 0])[0])
    if smallest >= -NEGATIVE:
        return
    vector = linalg.eigh(r, subset_by_index=[0, 0])[1][:, 0]
    # Contribution of each pair to vᵀ R v, the negative eigenvalue.
    share = np.triu(r * np.outer(vector, vector), k=1)
    worst = np.argsort(share, axis=None, kind="stable")
    i, j = np.unravel_index(worst[share.ravel()[worst] < 0], r.shape)
    raise InputError(
        "correlation: these correlations cannot all hold (the matrix is not positive "
        f"semi-definite: its smallest eigenvalue is {smallest:.3g}, below {-NEGATIVE:g}). "
        f"In conflict with the other correlations: {_entries(r, i, j, names)}. "
        "Use nearest_correlation(matrix)."
    )


def _refuse(
    r: Floats,
    bad: NDArray[np.bool_],
    wanted: str,
    names: Sequence[str] | None,
    *,
    upper: bool = True,
) -> None:
    if bad.any():
        i, j = np.nonzero(np.triu(bad) if upper else bad)
        raise InputError(f"correlation: {wanted}, got {_entries(r, i, j, names)}{_more(len(i))}")


def _entries(
    r: Floats, i: NDArray[np.intp], j: NDArray[np.intp], names: Sequence[str] | None
) -> str:
    shown = zip(i[:3], j[:3], strict=True)
    return ", ".join(f"{_entry_name(a, b, names)} = {r[a, b]:g}" for a, b in shown)


def _entry_name(i: int, j: int, names: Sequence[str] | None) -> str:
    return f"({i + 1}, {j + 1})" if names is None else f"({names[i]}, {names[j]})"


def _more(n: int) -> str:
    return f" (and {n - 3} more)" if n > 3 else ""
