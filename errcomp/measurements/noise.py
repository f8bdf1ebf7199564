r"""The noise of repeats: the law of their differences, and how much the noise of groups differs.

Everything is about logarithms of measurements, so that noise is relative. The variance of a group
of :math:`n` repeats follows :math:`s^2 \sim s_0^2 F(n - 1, d_0)`: :math:`d_0` is small where groups
differ in their noise, or where tails are heavy. Few groups with another cause (copies, a hidden
setting) must not decide it, so the largest fiftieth is left out of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_LOG", "Noise", "Repeats", "noise_of", "repeats_of", "share_below"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Degrees of freedom that are tried.
_FREEDOM = (3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0, 50.0, np.inf)
#: The largest variances, left out of the fit.
TRIMMED = 0.02
#: More groups, or differences, add nothing to a fit.
_MOST = 4_000
#: The largest logarithm of a ratio that is written.
MOST_LOG = 600.0
#: A variance of 0 is that of rounding.
_LEAST = 1e-18


@dataclass(frozen=True, eq=False)
class Repeats:
    """Groups of at least two rows with equal keys.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Positions of the rows, sorted by group.
    start : ndarray of int, shape (groups,)
    count : ndarray of int, shape (groups,)
    logs : ndarray, shape (m,)
        Logarithms of the measurements.
    """

    rows: Ints
    start: Ints
    count: Ints
    logs: Floats

    @property
    def n(self) -> int:
        """Number of groups."""
        return len(self.start)

    @cached_property
    def of_row(self) -> Ints:
        """The group of each row."""
        return np.repeat(np.arange(self.n), self.count)

    @cached_property
    def place(self) -> Ints:
        """Place of each row in its group, from 1."""
        return np.arange(len(self.rows)) - self.start[self.of_row] + 1

    @cached_property
    def mean(self) -> Floats:
        """Mean logarithm of each group."""
        return np.add.reduceat(self.logs, self.start) / self.count

    @cached_property
    def residual(self) -> Floats:
        """Logarithm of each row minus the mean of its group."""
        return self.logs - self.mean[self.of_row]

    @cached_property
    def variance(self) -> Floats:
        """Sample variance of each group."""
        return np.add.reduceat(self.residual**2, self.start) / (self.count - 1)

    @cached_property
    def range(self) -> Floats:
        """Largest minus smallest logarithm of each group."""
        return np.maximum.reduceat(self.logs, self.start) - np.minimum.reduceat(
            self.logs, self.start
        )

    @cached_property
    def difference(self) -> Floats:
        r"""Mean absolute difference of two rows of each group.

        With sorted values: :math:`\\frac{2}{n (n - 1)} \\sum_k (2 k - n - 1)\\, x_{(k)}`.
        """
        order = np.lexsort((self.residual, self.of_row))
        place = self.place
        n = self.count[self.of_row]
        weight = (2.0 * place - n - 1) * 2 / (n * (n - 1))
        return np.add.reduceat(weight * self.residual[order], self.start)

    def take(self, groups: NDArray[np.bool_]) -> Repeats:
        """Return some of the groups."""
        kept = groups[self.of_row]
        count = self.count[groups]
        start = np.cumsum(count) - count
        return Repeats(self.rows[kept], start, count, self.logs[kept])


def repeats_of(group: Ints, logs: Floats, use: NDArray[np.bool_]) -> Repeats:
    """Return the groups of at least two rows in use.

    Examples
    --------
    >>> found = repeats_of(np.array([0, 1, 0, 2]), np.zeros(4), np.ones(4, dtype=bool))
    >>> found.rows.tolist(), found.count.tolist()
    ([0, 2], [2])
    """
    at = np.flatnonzero(use)
    size = np.bincount(group[at], minlength=1)
    at = at[size[group[at]] > 1]
    at = at[np.argsort(group[at], kind="stable")]
    if not len(at):
        empty = np.empty(0, dtype=np.int64)
        return Repeats(empty, empty, empty, np.empty(0))
    start = np.flatnonzero(np.r_[True, np.diff(group[at]) != 0])
    return Repeats(at, start, np.diff(np.r_[start, len(at)]), logs[at])


@dataclass(frozen=True, slots=True)
class Noise:
    """The usual noise of repeats.

    Attributes
    ----------
    variance : float
        Of the logarithm of one measurement: :math:`s_0^2`.
    freedom : float
        :math:`d_0`; infinite where all groups have the same normal noise.
    """

    variance: float
    freedom: float

    def p(self, variance: Floats, freedom: Ints) -> Floats:
        """Return the probability of a variance as large as this, or larger."""
        from scipy.special import chdtrc, fdtrc

        ratio = variance / self.variance
        if np.isinf(self.freedom):
            return np.asarray(chdtrc(freedom, ratio * freedom))
        return np.asarray(fdtrc(freedom, self.freedom, ratio))

    def p_of(self, repeats: Repeats) -> Floats:
        """Return the probability of a variance as large as that of each group, or larger."""
        return self.p(repeats.variance, repeats.count - 1)


def noise_of(repeats: Repeats, trimmed: float = TRIMMED) -> Noise:
    """Fit the law of the variances of groups, without the largest of them.

    For each number of degrees of freedom that is tried, the median of the variances sets the
    scale, and the likelihood of those that are not trimmed decides.

    Parameters
    ----------
    repeats : Repeats
    trimmed : float
        Share of the groups that is left out.
    """
    every = max(1, repeats.n // _MOST)
    d = (repeats.count - 1)[::every].astype(float)
    sizes, which = np.unique(d, return_inverse=True)
    s2 = np.maximum(repeats.variance[::every], _LEAST)
    best = (-np.inf, Noise(float(np.median(s2)), np.inf))
    for freedom in _FREEDOM:
        # The median group is where it is expected: at probability 1/2.
        scale = float(np.median(s2 / _median(sizes, freedom)[which]))
        place = _below(s2 / scale, d, freedom)
        limit = np.quantile(place, 1 - trimmed)
        kept = place <= limit
        bound = max(float(limit), 0.5)
        density = _log_density(s2[kept] / scale, d[kept], freedom)
        score = float((density - np.log(scale)).sum()) - kept.sum() * np.log(bound)
        if score > best[0]:
            best = (score, Noise(scale, freedom))
    return best[1]


# The law of variances relative to that of a typical group: F, or chi-square over its degrees of
# freedom. It is made of special functions, as `scipy.stats` takes longer to import than a check.


def _median(d: Floats, freedom: float) -> Floats:
    from scipy.special import fdtri, gammaincinv

    if np.isinf(freedom):
        return np.asarray(gammaincinv(d / 2, 0.5) / (d / 2))
    return np.asarray(fdtri(d, freedom, 0.5))


def _below(x: Floats, d: Floats, freedom: float) -> Floats:
    """Return the probability of a variance below each."""
    from scipy.special import chdtr, fdtr

    return np.asarray(chdtr(d, x * d) if np.isinf(freedom) else fdtr(d, freedom, x))


def _log_density(x: Floats, d: Floats, freedom: float) -> Floats:
    from scipy.special import betaln, gammaln

    half = d / 2
    if np.isinf(freedom):
        return np.asarray(half * np.log(half) + (half - 1) * np.log(x) - half * x - gammaln(half))
    other = freedom / 2
    odds = half / other * x
    near = half * np.log(half / other) + (half - 1) * np.log(x)
    return np.asarray(near - (half + other) * np.log1p(odds) - betaln(half, other))


def share_below(differences: Floats, limit: float) -> float:
    """Return the share of a t law below a limit; the law is fitted to differences beyond it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> d = np.abs(rng.normal(0, 0.05, 5_000))
    >>> round(share_below(d[d > 0.01], 0.01), 2), round(float((d <= 0.01).mean()), 2)
    (0.16, 0.15)
    """
    from scipy.special import gammaln, stdtr

    d = np.sort(differences)[:: max(1, len(differences) // _MOST)]
    best, share = -np.inf, 0.0
    low, high = np.log(max(limit, 1e-12)) - 1, np.log(d[-1]) + 1
    scale = np.exp(np.linspace(low, high, 60))
    for freedom in (2.0, 3.0, 5.0, 10.0, 100.0):
        beyond = 2 * stdtr(freedom, -limit / scale)
        some = beyond > 1e-12
        # All scales at once; the constants of the density are added as a whole.
        squares = (d / scale[some, None]) ** 2 / freedom
        each = -(freedom + 1) / 2 * np.log1p(squares).sum(axis=1)
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(freedom * np.pi) / 2
        score = each + len(d) * (constant - np.log(scale[some]) - np.log(beyond[some]))
        at = int(score.argmax())
        if score[at] > best:
            best, share = float(score[at]), 1 - float(beyond[some][at])
    return share
