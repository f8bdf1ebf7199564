"""Rows in groups: how much of the variance is between them, and errors that allow for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["clustered_least_squares", "variance_ratio"]

_SMALLEST, _LARGEST = 1e-4, 1e6
_PER_DECADE = 6
#: Differences of twice the log-likelihood below this are rounding.
_ROUNDING = 1e-6


def variance_ratio(y: Floats, x: Floats, groups: NDArray[np.int64]) -> float | None:
    r"""Estimate the variance between groups in multiples of the variance within them.

    .. math:: \hat\theta = \arg\min_\theta \; (n - k) \ln \mathrm{RSS}(\theta)
              + \ln |V_\theta| + \ln |X^\top V_\theta^{-1} X|, \quad
              V_\theta = I + \theta Z Z^\top

    Definition: the restricted maximum likelihood estimate of :math:`\theta = \tau^2 / \sigma^2` in
    :math:`y_{gi} = x_{gi}^\top \beta + u_g + \varepsilon_{gi}`, where Z has a column of indicators
    for each group. The likelihood is searched over all ratios from 1e-4 to 1e6, so that the answer
    depends neither on a starting value nor on the rounding of the machine, as that of a gradient
    search does where the likelihood is highest at zero.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Outcome.
    x : ndarray, shape (n, k)
        Linearly independent columns, the constant among them.
    groups : ndarray of int, shape (n,)
        Codes of the groups, from 0.

    Returns
    -------
    float or None
        0 below 1e-4, infinity above 1e6 or where x explains y exactly; None where the likelihood
        is the same for all ratios (no group has two rows, or the columns of x tell all apart).

    References
    ----------
    Patterson and Thompson (1971), "Recovery of inter-block information when block sizes are
    unequal", Biometrika 58, 545-554.

    Examples
    --------
    >>> y = np.array([1.0, 1.2, 2.0, 2.2, 3.0, 3.2])
    >>> round(variance_ratio(y, np.ones((6, 1)), np.array([0, 0, 1, 1, 2, 2])), 3)
    49.5
    """
    from scipy import optimize

    basis, upper = np.linalg.qr(np.column_stack([x, y]))
    if abs(upper[-1, -1]) <= 1e-10 * float(np.linalg.norm(y)):
        return math.inf
    sums = np.zeros((int(groups.max()) + 1, basis.shape[1]))
    np.add.at(sums, groups, basis)
    sizes = np.bincount(groups)
    df = len(y) - x.shape[1]
    grid = np.linspace(
        math.log(_SMALLEST),
        math.log(_LARGEST),
        1 + _PER_DECADE * round(math.log10(_LARGEST / _SMALLEST)),
    )
    found = np.array([_deviance(at, sums, sizes, df) for at in grid])
    best = int(found.argmin())
    if np.abs(found).max() < _ROUNDING:
        return None
    if best == 0 or found[best] > -_ROUNDING:
        return 0.0
    if best == len(grid) - 1:
        return math.inf
    # The root of the slope is known to more digits than the place of the minimum.
    around = (grid[best - 1], grid[best + 1])
    return math.exp(optimize.brentq(_slope, *around, args=(sums, sizes, df), xtol=1e-13))


def _deviance(log_ratio: float, sums: Floats, sizes: NDArray[np.int64], df: int) -> float:
    """Compute minus twice the restricted log-likelihood, less that at ratio 0.

    ``sums`` are those over each group of an orthonormal basis of the columns of x and, last, y.
    """
    ratio = math.exp(log_ratio)
    logs = 2 * np.log(np.diag(np.linalg.cholesky(_products(ratio, sums, sizes))))
    return float(df * logs[-1] + logs[:-1].sum() + np.log1p(sizes * ratio).sum())


def _slope(log_ratio: float, sums: Floats, sizes: NDArray[np.int64], df: int) -> float:
    """Compute the derivative of ``_deviance`` by the logarithm of the ratio."""
    ratio = math.exp(log_ratio)
    products = _products(ratio, sums, sizes)
    change = -(sums.T / (1 + sizes * ratio) ** 2) @ sums
    # The residual sum of squares is the ratio of the determinants with and without y.
    both = np.trace(np.linalg.solve(products, change))
    without = np.trace(np.linalg.solve(products[:-1, :-1], change[:-1, :-1]))
    groups = (sizes / (1 + sizes * ratio)).sum()
    return float(ratio * (df * both - (df - 1) * without + groups))


def _products(ratio: float, sums: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Multiply the basis with itself, weighted by the inverse of the covariance."""
    products: Floats = np.eye(sums.shape[1]) - (sums.T * (ratio / (1 + sizes * ratio))) @ sums
    return products


def clustered_least_squares(
    y: Floats, x: Floats, groups: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    r"""Fit least squares, with standard errors that allow for dependence within groups.

    .. math:: \mathrm{se}_j^2 = \frac{G}{G - 1} \frac{n - 1}{n - k}
              \sum_g \Bigl(\sum_{i \in g} (X^+)_{ji} e_i\Bigr)^2

    Definition: the sandwich estimator for clusters with the usual correction for few of them,
    written as what each group moves a coefficient by. So nothing cancels: where nothing scatters
    the error is zero, not the root of a difference of large products, of either sign.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Outcome.
    x : ndarray, shape (n, k)
        Linearly independent columns, fewer than rows.
    groups : ndarray of int, shape (n,)
        Codes of the groups, from 0, at least two of them.

    Returns
    -------
    coefficients, errors : ndarray, shape (k,)
        Estimates and their standard errors.

    References
    ----------
    Liang and Zeger (1986), "Longitudinal data analysis using generalized linear models",
    Biometrika 73, 13-22.

    Examples
    --------
    >>> y = np.array([1.0, 3.0, 2.0, 6.0])
    >>> mean, error = clustered_least_squares(y, np.ones((4, 1)), np.array([0, 0, 1, 1]))
    >>> mean.round(3), error.round(3)
    (array([3.]), array([1.]))
    """
    basis, upper = np.linalg.qr(x)
    inverse = np.linalg.solve(upper, basis.T)
    coefficients = inverse @ y
    moves = np.zeros((int(groups.max()) + 1, x.shape[1]))
    np.add.at(moves, groups, (inverse * (y - x @ coefficients)).T)
    clusters, (n, k) = len(moves), x.shape
    correction = clusters / (clusters - 1) * (n - 1) / (n - k)
    return coefficients, np.sqrt(correction * (moves**2).sum(axis=0))
