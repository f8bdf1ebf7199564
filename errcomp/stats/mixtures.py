"""Quantiles of many mixtures of Student t distributions at once.

`central_intervals` solves mixtures of any sizes and weights to a millionth. `StudentMixture` solves
many rows of equally weighted components that differ in location only, from a table, to 1e-5.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Floats = NDArray[Any]

# Steps from the first guess; then exact steps; then halving, down to a millionth of the bracket.
_FIRST_STEPS, _STEPS, _HALVINGS = 2, 12, 20
# No further step is needed after a step this small, in standard deviations.
_SMALL = 5e-3

_TINY = float(np.finfo(float).tiny)
# Only slopes take more degrees of freedom for these.
_LIKE_NORMAL = 1e6


class StudentMixtures(NamedTuple):
    """Components one mixture after the other.

    Attributes
    ----------
    size, error, chance : ndarray, shape (c,)
        Centre, scale and probability of each component.
    first : ndarray of int, shape (k,)
        First component of each mixture; there is at least one.
    freedom : ndarray, shape (k,)
        Degrees of freedom of each mixture, above 0; inf for normal components.
    """

    size: Floats
    error: Floats
    chance: Floats
    first: NDArray[Any]
    freedom: Floats

    @classmethod
    def of(
        cls, parts: Sequence[tuple[NDArray[Any], Floats, Floats, Floats]], freedom: Floats
    ) -> StudentMixtures:
        """Sort components by their mixture; the probabilities of each mixture add up to 1."""
        empty = (np.zeros(0, dtype=int), np.zeros(0), np.zeros(0), np.zeros(0))
        mixture, size, error, chance = (
            np.concatenate(column) for column in zip(empty, *parts, strict=True)
        )
        order = np.argsort(mixture, kind="stable")
        first = np.searchsorted(mixture[order], np.arange(len(freedom)))
        chance = chance[order] / np.bincount(mixture, chance, len(freedom))[mixture[order]]
        return cls(size[order], np.maximum(error[order], _TINY), chance, first, freedom)

    @property
    def mixture(self) -> NDArray[Any]:
        """The mixture of each component."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.size)))

    def take(self, mask: NDArray[Any]) -> StudentMixtures:
        """Return some of the mixtures, by a mask."""
        count = np.diff(self.first, append=len(self.size))[mask]
        which = mask[self.mixture]
        first = np.cumsum(count) - count
        return StudentMixtures(
            self.size[which], self.error[which], self.chance[which], first, self.freedom[mask]
        )

    def sums(self, values: Floats) -> Floats:
        """Sum values of the components, weighted by their probability."""
        return np.asarray(np.add.reduceat(self.chance * values, self.first))


def central_intervals(mixtures: StudentMixtures, level: float) -> tuple[Floats, Floats]:
    """Return the central interval of each mixture, to a millionth of its width or better."""
    share = (1 - level) / 2
    mirrored = mixtures._replace(size=-mixtures.size)
    return _quantile(mixtures, share), -_quantile(mirrored, share)


def _quantile(mixtures: StudentMixtures, share: float) -> Floats:
    """Return a lower quantile: between those of the components, by Halley's steps."""
    freedom, place = np.unique(mixtures.freedom, return_inverse=True)
    t = special.stdtrit(freedom, share)[place]
    ends = mixtures.size + t[mixtures.mixture] * mixtures.error
    low = np.minimum.reduceat(ends, mixtures.first)
    high = np.maximum.reduceat(ends, mixtures.first)
    middle = (low + high) / 2
    wide = high > low
    if wide.any():
        some = mixtures.take(wide)
        middle[wide] = _bracketed(some, share, low[wide], high[wide], t[wide])
    return np.asarray(middle)


def _bracketed(
    mixtures: StudentMixtures, share: float, low: Floats, high: Floats, t: Floats
) -> Floats:
    roots = np.zeros(len(low))
    places = np.arange(len(low))
    x = _guess(mixtures, share, low, high, t)
    # The density is nearly linear over such a short step: the remaining error is of third order.
    small = _SMALL * np.minimum.reduceat(mixtures.error, mixtures.first)
    for turn in range(_STEPS + _HALVINGS):
        below, step = _step(mixtures, share, x, special.stdtr)
        low, high = np.where(below, x, low), np.where(below, high, x)
        x = x + step
        inside = (low <= x) & (x <= high)
        last = inside & (np.abs(step) < small)
        x = np.where(last | (inside & (turn < _STEPS)), x, (low + high) / 2)
        roots[places] = x
        if last.all():
            break
        mixtures, places, small = mixtures.take(~last), places[~last], small[~last]
        low, high, x = low[~last], high[~last], x[~last]
    return roots


def _guess(mixtures: StudentMixtures, share: float, low: Floats, high: Floats, t: Floats) -> Floats:
    """Guess a quantile from a t of the same mean and variance, on an approximate distribution."""
    mean = mixtures.sums(mixtures.size)
    square = mixtures.sums(mixtures.error**2 + (mixtures.size - mean[mixtures.mixture]) ** 2)
    x = np.clip(mean + t * np.sqrt(square), low, high)
    for _ in range(_FIRST_STEPS):
        _, step = _step(mixtures, share, x, _near_stdtr)
        x = np.where(np.isfinite(step), np.clip(x + step, low, high), x)
    return np.asarray(x)


def _step(
    mixtures: StudentMixtures, share: float, x: Floats, stdtr: Callable[[Floats, Floats], Floats]
) -> tuple[NDArray[Any], Floats]:
    """Return whether x is below the quantile, and Halley's step towards it."""
    each = mixtures.mixture
    freedom = mixtures.freedom[each]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        t = (x[each] - mixtures.size) / mixtures.error
        excess = mixtures.sums(stdtr(freedom, t)) - share
        like = np.minimum(mixtures.freedom, _LIKE_NORMAL)
        peak = special.gammaln((like + 1) / 2) - special.gammaln(like / 2)
        peak = np.exp(peak) / np.sqrt(math.pi * like)
        like = like[each]
        square = t * t
        slope = np.exp(-(like + 1) / 2 * np.log1p(square / like)) / mixtures.error
        bend = -slope * (like + 1) * t / ((like + square) * mixtures.error)
        slope, bend = peak * mixtures.sums(slope), peak * mixtures.sums(bend)
        step = -2 * excess * slope / (2 * slope**2 - excess * bend)
    return excess < 0, step


def _near_stdtr(freedom: Floats, t: Floats) -> Floats:
    """Approximate Student t's distribution to three digits, ten times as fast (Wallace 1959)."""
    like = np.minimum(freedom, _LIKE_NORMAL)
    z = np.sqrt(like * np.log1p(t * t / like)) * (8 * like + 1) / (8 * like + 3)
    return np.asarray(special.ndtr(np.copysign(z, t)))


# One distribution for all rows, at different locations --------------------------------------------

#: Size of the table of each component's distribution function; its error is then below 3e-6.
_KNOTS = 513
#: A quantile is found when its probability is this close.
_TOLERANCE = 1e-7
_MOST_STEPS = 60
#: Numbers in memory while quantiles are computed.
_BLOCK = 2**19
_GOLDEN = 0.6180339887498949


class StudentMixture:
    r"""Components with scales σ and degrees of freedom ν; each row has its own locations.

    .. math:: F_i(y) = \frac1S \sum_{s=1}^S T_{\nu_s}\!\left(\frac{y - \mu_{is}}{\sigma_s}\right)

    The distribution function of each component is tabulated once, because exact values take a
    second per two million.

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
        solved = np.empty((len(mu), len(q)))
        for start in range(0, len(mu), rows):
            solved[start : start + rows] = self._solve(mu[start : start + rows], q)
        # Neighbouring quantiles may be equal to the tolerance.
        return np.maximum.accumulate(solved, axis=1)

    @cached_property
    def _table(self) -> Floats:
        """Distribution function of each component at z = t / (1 - t), t from 0 to 1."""
        t = np.linspace(0.0, 1.0, _KNOTS)[:-1]
        values = special.stdtr(self.nu[:, None], t / (1 - t))
        # One column more than knots, so that the last cell has an upper end, too.
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
            each = mu + self.sigma * special.stdtrit(self.nu, p)
            low[:, j], high[:, j] = each.min(axis=1), each.max(axis=1)
        # Start at the quantiles of one value from each component, evenly spread.
        spread = self.sigma * special.stdtrit(
            self.nu, (0.5 + np.arange(len(self.sigma))) * _GOLDEN % 1
        )
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
        return np.asarray(y)
