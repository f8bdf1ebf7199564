"""Mean and loadings of every term of a graph, before any is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from errcomp.errors import InputError
from errcomp.propagation._sums_scale import check, first_order, log_normal_mean, root
from errcomp.propagation.terms import Floats, Integers, Terms

__all__ = ["Leaves", "leaves_of"]

#: Added to the diagonal of a correlation matrix, so that a singular one can be factorised.
_RIDGE = 1e-10
_LARGEST = 1e140


@dataclass(frozen=True, slots=True)
class Leaves:
    r"""One instance of each term as a linear form.

    The variance of a log-normal term splits exactly among its causes: what it gains when the l-th
    becomes known is :math:`m^2 (e^{s^2 R_l} - e^{s^2 R_{l-1}})`. The loading is the square root.

    Attributes
    ----------
    mean : ndarray, shape (n,)
    loadings : ndarray, shape (n, levels)
        On the factor of the term's group at each level, coarse to fine.
    own : ndarray, shape (n,)
        Variance drawn anew for each repetition.
    codes : tuple of ndarray, shape (n,)
        Group at each level.
    groups : tuple of int
        How many groups each level has.
    rows : ndarray, shape (n, n), optional
        With a matrix: the loadings of each term on n factors, instead of levels.
    """

    mean: Floats
    loadings: Floats
    own: Floats
    codes: tuple[Integers, ...] = ()
    groups: tuple[int, ...] = ()
    rows: Floats | None = None

    @property
    def certain_factors(self) -> int:
        """Factors that are in use from the beginning."""
        return 0 if self.rows is None else len(self.rows)


def leaves_of(terms: Terms) -> Leaves:
    """Return the linear form of every term."""
    check(terms)
    cumulative = terms.cumulative
    if terms.kind == "log-ratio":
        mean, square = log_normal_mean(terms), terms.spread**2
        with np.errstate(over="ignore"):
            root(float(np.expm1(square).max()), terms)
        _check_range(mean)
    else:
        mean, factor = first_order(terms)
        _check_range(np.append(mean, factor))
    if terms.matrix is not None:
        if terms.kind == "log-ratio":
            covariance = np.expm1(np.outer(terms.spread, terms.spread) * terms.matrix)
            sd = np.sqrt(np.expm1(square))
            rows = mean[:, None] * _factorised(covariance, sd)
        else:
            rows = factor[:, None] * _factorised(terms.matrix, np.ones(len(terms)))
        return Leaves(mean, np.zeros((len(terms), 0)), np.zeros(len(terms)), rows=rows)
    if terms.kind == "log-ratio":
        grown = np.expm1(np.outer(square, np.append(0.0, cumulative)))
        loadings = mean[:, None] * np.sqrt(np.diff(grown, axis=1))
        own = mean**2 * np.maximum(0.0, np.expm1(square) - grown[:, -1])
    else:
        loadings = factor[:, None] * np.sqrt(np.diff(cumulative, prepend=0.0))
        own = factor**2 * terms.own_share
    codes = tuple(level.codes for level in terms.levels)
    return Leaves(mean, loadings, own, codes, tuple(int(c.max()) + 1 for c in codes))


def _check_range(values: Floats) -> None:
    """Refuse values whose squares leave the range of floating point."""
    largest = float(np.abs(values).max())
    if not (largest == 0 or 1 / _LARGEST < largest < _LARGEST):
        raise InputError(
            f"times must lie between {1 / _LARGEST:g} and {_LARGEST:g}, got {largest:.6g}: "
            "variances would exceed floating point. Give values in another unit."
        )


def _factorised(covariance: Floats, sd: Floats) -> Floats:
    """Return rows whose products are the covariances."""
    scale = np.where(sd > 0, sd, 1.0)
    correlation = covariance / np.outer(scale, scale)
    correlation[np.diag_indices_from(correlation)] = 1.0 + _RIDGE
    try:
        lower = linalg.cholesky(correlation, lower=True, check_finite=False)
    except linalg.LinAlgError:
        raise InputError(
            "the matrix of correlations is not positive semi-definite: no quantities can be "
            "correlated like that. Give a consistent matrix, e.g. the nearest positive "
            "semi-definite one."
        ) from None
    return np.asarray(sd[:, None] * lower, dtype=np.float64)
