"""Quantiles of many mixtures of Student t at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["Mixtures", "interval"]

Floats = NDArray[Any]
# Steps from the first guess; exact steps before halving takes over, which leaves a millionth of the
# bracket.
_FIRST_STEPS, _STEPS, _HALVINGS = 2, 12, 20
# No other step is needed after one so small, in standard deviations.
_SMALL = 5e-3
_TINY = float(np.finfo(float).tiny)
# Only slopes take more degrees of freedom for these.
_LIKE_NORMAL = 1e6


class Mixtures(NamedTuple):
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
    ) -> Mixtures:
        """Put components in order, each with the mixture that it belongs to; they add to 1."""
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

    def take(self, kept: NDArray[Any]) -> Mixtures:
        """Return some of the mixtures, by a mask."""
        count = np.diff(self.first, append=len(self.size))[kept]
        which = kept[self.mixture]
        first = np.cumsum(count) - count
        return Mixtures(
            self.size[which], self.error[which], self.chance[which], first, self.freedom[kept]
        )

    def sums(self, values: Floats) -> Floats:
        """Add what components have, weighted by their probability."""
        return np.asarray(np.add.reduceat(self.chance * values, self.first))


def interval(mixtures: Mixtures, level: float) -> tuple[Floats, Floats]:
    """Return the central interval of each mixture, to a millionth of its width or better."""
    share = (1 - level) / 2
    mirrored = mixtures._replace(size=-mixtures.size)
    return _quantile(mixtures, share), -_quantile(mirrored, share)


def _quantile(mixtures: Mixtures, share: float) -> Floats:
    """Return a lower quantile: between those of the components, by Halley's steps."""
    freedom, place = np.unique(mixtures.freedom, return_inverse=True)
    t = special.stdtrit(freedom, share)[place]
    ends = mixtures.size + t[mixtures.mixture] * mixtures.error
    low = np.minimum.reduceat(ends, mixtures.first)
    high = np.maximum.reduceat(ends, mixtures.first)
    found = (low + high) / 2
    wide = high > low
    if wide.any():
        some = mixtures.take(wide)
        found[wide] = _bracketed(some, share, low[wide], high[wide], t[wide])
    return np.asarray(found)


def _bracketed(mixtures: Mixtures, share: float, low: Floats, high: Floats, t: Floats) -> Floats:
    found = np.zeros(len(low))
    places = np.arange(len(low))
    x = _first(mixtures, share, low, high, t)
    # The density hardly bends over so little: what is left goes with the third power.
    small = _SMALL * np.minimum.reduceat(mixtures.error, mixtures.first)
    for turn in range(_STEPS + _HALVINGS):
        below, step = _step(mixtures, share, x, special.stdtr)
        low, high = np.where(below, x, low), np.where(below, high, x)
        x = x + step
        inside = (low <= x) & (x <= high)
        last = inside & (np.abs(step) < small)
        x = np.where(last | (inside & (turn < _STEPS)), x, (low + high) / 2)
        found[places] = x
        if last.all():
            break
        mixtures, places, small = mixtures.take(~last), places[~last], small[~last]
        low, high, x = low[~last], high[~last], x[~last]
    return found


def _first(mixtures: Mixtures, share: float, low: Floats, high: Floats, t: Floats) -> Floats:
    """Guess a quantile: from one t of the same mean and variance, on a near distribution."""
    mean = mixtures.sums(mixtures.size)
    square = mixtures.sums(mixtures.error**2 + (mixtures.size - mean[mixtures.mixture]) ** 2)
    x = np.clip(mean + t * np.sqrt(square), low, high)
    for _ in range(_FIRST_STEPS):
        _, step = _step(mixtures, share, x, _near_stdtr)
        x = np.where(np.isfinite(step), np.clip(x + step, low, high), x)
    return np.asarray(x)


def _step(
    mixtures: Mixtures, share: float, x: Floats, stdtr: Callable[[Floats, Floats], Floats]
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
    """Distribution of Student t after Wallace (1959): a tenth of the time for three digits."""
    like = np.minimum(freedom, _LIKE_NORMAL)
    z = np.sqrt(like * np.log1p(t * t / like)) * (8 * like + 1) / (8 * like + 3)
    return np.asarray(special.ndtr(np.copysign(z, t)))
