"""Quantiles of a mixture of Student t distributions with equal weights, for many rows at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import stdtr, stdtrit

from errcomp.calibration.design import Floats

__all__ = ["StudentMixture"]

#: Of the table of each component's distribution function; its error is then below 3e-6.
_KNOTS = 513
#: A quantile is found when its probability is this close.
_TOLERANCE = 1e-7
_MOST_STEPS = 60
#: Numbers held at once while quantiles are sought.
_BLOCK = 2**19
_GOLDEN = 0.6180339887498949


class StudentMixture:
    r"""Components with scales σ and degrees of freedom ν; each row has locations of its own.

    .. math:: F_i(y) = \frac1S \sum_{s=1}^S T_{\nu_s}\!\left(\frac{y - \mu_{is}}{\sigma_s}\right)

    The distribution function of each component is tabulated once: exact values take a second per
    two million.

    Parameters
    ----------
    sigma, nu : ndarray, shape (S,)
        Positive.

    Examples
    --------
    >>> mixture = StudentMixture(sigma=np.array([1.0, 1.0]), nu=np.array([5.0, 5.0]))
    >>> mixture.quantiles(np.array([[-9.0, 9.0], [2.0, 2.0]]), np.array([0.25, 0.75])).round(3)
    array([[-9.   ,  9.   ],
           [ 1.273,  2.727]])
    """

    def __init__(self, sigma: Floats, nu: Floats) -> None:
        self.sigma, self.nu = sigma, nu

    def quantiles(self, mu: Floats, q: Floats) -> Floats:
        """Return the quantiles of each row.

        Parameters
        ----------
        mu : ndarray, shape (n, S)
            Locations of the components.
        q : ndarray, shape (m,)
            Ascending probabilities.

        Returns
        -------
        ndarray, shape (n, m)
            Ascending in every row, to 1e-5 of probability.
        """
        rows = max(1, _BLOCK // (len(self.sigma) * len(q)))
        found = np.empty((len(mu), len(q)))
        for start in range(0, len(mu), rows):
            found[start : start + rows] = self._solve(mu[start : start + rows], q)
        # Neighbouring quantiles may be equal to the tolerance.
        return np.maximum.accumulate(found, axis=1)

    @cached_property
    def _table(self) -> Floats:
        """Distribution function of each component at z = t / (1 - t), t from 0 to 1."""
        t = np.linspace(0.0, 1.0, _KNOTS)[:-1]
        values = stdtr(self.nu[:, None], t / (1 - t))
        # One column more than knots, so that the last cell has an upper end too.
        return np.concatenate([values, np.ones((len(self.nu), 2))], axis=1)

    def _cdf(self, y: Floats, mu: Floats) -> tuple[Floats, Floats]:
        """Return the distribution function of the mixture and its density at y, (b, q) each."""
        z = (y[:, :, None] - mu[:, None, :]) / self.sigma
        size = np.abs(z)
        t = size / (1 + size)
        at = t * (_KNOTS - 1)
        cell = at.astype(np.intp)
        flat = cell + np.arange(len(self.sigma)) * self._table.shape[1]
        lower = self._table.ravel()[flat]
        rise = self._table.ravel()[flat + 1] - lower
        upper = lower + (at - cell) * rise
        cdf = np.where(z < 0, 1 - upper, upper).mean(axis=2)
        density = (rise * (_KNOTS - 1) * (1 - t) ** 2 / self.sigma).mean(axis=2)
        return cdf, density

    def _solve(self, mu: Floats, q: Floats) -> Floats:
        """Return the quantiles of a block of rows, shape (b, len(q))."""
        # The quantile of a mixture lies between those of its components.
        low, high = np.empty((2, len(mu), len(q)))
        for j, p in enumerate(q):
            each = mu + self.sigma * stdtrit(self.nu, p)
            low[:, j], high[:, j] = each.min(axis=1), each.max(axis=1)
        # Start at the quantiles of one value from each component, evenly spread.
        spread = self.sigma * stdtrit(self.nu, (0.5 + np.arange(len(self.sigma))) * _GOLDEN % 1)
        y = np.clip(np.quantile(mu + spread, q, axis=1).T, low, high)
        for _ in range(_MOST_STEPS):
            cdf, density = self._cdf(y, mu)
            off = cdf - q
            if (np.abs(off) < _TOLERANCE).all():
                break
            high, low = np.where(off > 0, y, high), np.where(off > 0, low, y)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = y - off / density
            inside = (step > low) & (step < high)
            y = np.where(inside, step, (low + high) / 2)
        return y
