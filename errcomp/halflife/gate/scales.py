"""Robust centres and scales of many series, and the autocorrelation of their noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife.gate.laws import HUBER, HUBER_VARIANCE
from errcomp.halflife.noise import moderated_variances, trigamma_inverse

__all__ = ["EFFICIENCY", "EXACT", "Scales", "autocorrelation", "centres", "medians", "memory"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Efficiency of the clipped variance.
EFFICIENCY = 0.95
#: Values from which a series has a scatter of its own; degrees of freedom of a given noise.
FEWEST_OWN, EXACT = 3, 1e9
#: Free values from which the scatter counts beside repeats: that of fewer is clipped too much.
_FEWEST_BESIDE = 4
#: Degrees of freedom for "the scatter between looks is that of repeats".
_PRIOR_SCALE = 10.0
#: Degrees of freedom of the noise of repeats until looks show how much they miss.
_ALIKE = 6.0
#: Values for which the autocorrelation counts as 0, and its standard errors that are taken off.
_PRIOR_AR, _SOFT_AR, _MOST_AR = 20.0, 0.25, 0.8
#: Values that differ by rounding only.
_EQUAL = 1e-12


class Repeats(NamedTuple):
    """Noise of the repeats of each series, its degrees of freedom, and whether it has repeats."""

    sd: Floats
    df: Floats
    known: Mask


class Scales(NamedTuple):
    """Standard deviation of the values of each series between looks, shape (s,).

    ``df`` are its degrees of freedom, 0 if unknown; ``flat`` says that all values are equal, or all
    repeats; ``of_repeats`` is the scatter between looks over that of repeats.
    """

    sd: Floats
    df: Floats
    flat: Mask
    of_repeats: float


def scales(away: Floats, size: Floats, baselines: Floats, repeats: Repeats) -> Scales:
    """Estimate the scale of each series.

    Parameters
    ----------
    away : ndarray, shape (s, n)
        Values minus the centre of their baseline; NaN where there is none.
    size : ndarray, shape (s,)
        Size of the values, for rounding.
    baselines : ndarray, shape (s,)
        Number of baselines, each of which has a centre.
    repeats : Repeats
    """
    count = np.isfinite(away).sum(axis=1)
    free = np.maximum(count - baselines, 0.0)
    _, variance = _clipped(away)
    variance *= np.maximum(count - 1, 1) / np.maximum(free, 1)
    flat = (count > 1) & (variance <= (_EQUAL * np.maximum(size, 1)) ** 2)
    df = np.where(flat | (free < FEWEST_OWN - 1), 0.0, EFFICIENCY * free)
    moderated = moderated_variances(np.where(df > 0, variance, 1.0), df)
    known = np.isfinite(moderated.variance)
    sd, total = np.sqrt(np.where(known, moderated.variance, np.nan)), moderated.df
    # A few repeats, where nothing else is known.
    few = ~known & (repeats.df > 0) & (repeats.sd > 0)
    sd[few], total[few] = repeats.sd[few], np.minimum(repeats.df[few], EXACT)
    total[flat & ~few] = 0.0
    of_repeats = repeats.known & (repeats.df > 0)
    own = np.where((free >= _FEWEST_BESIDE) & (df > 0) & (repeats.sd > 0) & of_repeats, df, 0.0)
    both = _combined(variance, own, repeats)
    sd = np.where(of_repeats, both[0], sd)
    total = np.where(of_repeats, both[1], np.where(np.isfinite(sd), total, 0.0))
    rounded = (repeats.sd == 0) & np.isfinite(repeats.df)
    flat = np.where(of_repeats, rounded, flat & ~few)
    return Scales(sd, np.where(flat, 0.0, total), flat, both[2])


def _combined(variance: Floats, own: Floats, repeats: Repeats) -> tuple[Floats, Floats, float]:
    """Combine the noise of repeats, as far as looks scatter like repeats, with the scatter."""
    noise = repeats.sd**2
    ratio = np.divide(variance, noise, out=np.ones(len(noise)), where=own > 0)
    factor = float((_PRIOR_SCALE + own @ ratio) / (_PRIOR_SCALE + own.sum()))
    of_noise = np.where(np.isfinite(noise), np.minimum(repeats.df, _alike(ratio, own)), 0.0)
    exact = np.isinf(repeats.df)
    of_noise[exact], own = EXACT, np.where(exact, 0.0, own)
    total = of_noise + own
    squares = of_noise * factor * np.nan_to_num(noise) + own * variance
    unknown = np.full(len(own), np.nan)
    sd = np.sqrt(np.divide(squares, total, out=unknown, where=total > 0))
    return sd, total, float(np.sqrt(factor))


def _alike(ratio: Floats, df: Floats) -> float:
    """Return how alike series are in what their repeats miss, as degrees of freedom.

    That of `errcomp.halflife.noise.moderated_variances`, with a normal prior for its ψ'.
    """
    half = df[df > 0] / 2
    prior = float(special.polygamma(1, _ALIKE / 2))
    if len(half) < 2:
        return _ALIKE
    seen = np.maximum(ratio[df > 0], _EQUAL)
    spread = float((np.log(seen) - special.digamma(half) + np.log(half)).var(ddof=1))
    chance = float(special.polygamma(1, half).mean())
    # The weight of what was seen; that of the prior is 1.
    weight = prior**2 * (len(half) - 1) / (2 * (prior + chance) ** 2)
    return 2 * trigamma_inverse(max((prior + weight * (spread - chance)) / (1 + weight), 1e-3))


def memory(n: Floats | float, ar: float) -> Floats:
    """Return the variance of a mean of n values of an autoregression, times n; 1 without one."""
    n = np.asarray(n, dtype=np.float64)
    return np.asarray(
        (1 + ar) / (1 - ar) - 2 * ar * (1 - ar**n) / (np.maximum(n, 1) * (1 - ar) ** 2)
    )


def typical(sd: Floats, series: Codes, s: int) -> Floats:
    """Return the root mean square of the noise of the rows of each series; NaN without."""
    known = np.isfinite(sd)
    n = np.bincount(series[known], minlength=s)
    squares = np.bincount(series[known], sd[known] ** 2, s)
    return np.asarray(np.sqrt(np.divide(squares, n, out=np.full(s, np.nan), where=n > 0)))


def medians(table: Floats) -> Floats:
    """Return the median of each row without its NaN."""
    ordered = np.sort(table, axis=1)
    n = np.isfinite(table).sum(axis=1)
    rows = np.arange(len(table))
    low, high = np.maximum((n - 1) // 2, 0), np.minimum(n // 2, table.shape[1] - 1)
    return np.where(n > 0, (ordered[rows, low] + ordered[rows, high]) / 2, np.nan)


def _clipped(away: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of each row, clipped so that single values have little weight."""
    known = np.isfinite(away)
    n = np.maximum(known.sum(axis=1), 1)
    x = np.where(known, away, 0.0)
    sd = 1.4826 * medians(np.where(known, np.abs(away), np.nan))
    # Where more than half of the values are equal, their mean distance.
    sd = np.where(sd > 0, sd, 1.2533 * np.abs(x).sum(axis=1) / n)
    mean = np.zeros(len(x))
    for _ in range(6):
        most = HUBER * np.nan_to_num(sd)[:, None]
        off = x - mean[:, None]
        np.clip(off, -most, most, out=off)
        off *= known
        total = off.sum(axis=1)
        mean = mean + total / n
        squares = np.einsum("ij,ij->i", off, off) - total**2 / n
        sd = np.sqrt(np.maximum(squares, 0) / np.maximum(n - 1, 1) / HUBER_VARIANCE)
    return mean, sd**2


def centres(x: Floats) -> Floats:
    """Return the clipped mean of each row without its NaN."""
    middle = medians(x)
    return middle + np.where(np.isfinite(middle), _clipped(x - middle[:, None])[0], np.nan)


def autocorrelation(scores: Floats, count: Codes) -> float:
    """Return the correlation of neighbouring scores over all series, shrunken to 0."""
    clipped = np.clip(scores, -HUBER, HUBER)
    known = np.isfinite(clipped)
    sums = np.where(known, clipped, 0.0).sum(axis=1)
    mean = (sums / np.maximum(known.sum(axis=1), 1))[:, None]
    x = np.where(known, clipped - mean, 0.0)
    total, pairs = float((x**2).sum()), float((x[:, 1:] * x[:, :-1]).sum())
    n = float(known.sum())
    if total == 0:
        return 0.0
    ar = pairs / total
    # The mean of a series follows its values: its correlations are too low.
    typical = n / max(int((count >= 3).sum()), 1)
    ar += (1 + 3 * max(ar, 0.0)) / typical - _SOFT_AR / np.sqrt(n)
    return float(np.clip(ar, 0.0, _MOST_AR)) * n / (n + _PRIOR_AR)


def _shares() -> tuple[Floats, Floats]:
    """Return probabilities of the scale at which others are evaluated, and their weights.

    The mixture of normal laws that they make is Student's t to 6 %, and larger.
    """
    edges = np.concatenate([[0.0], np.geomspace(1e-12, 0.1, 23), np.linspace(0.2, 1, 9)])
    small = np.sqrt(edges[1:23] * edges[2:24])
    at = np.concatenate([[edges[1] / 2], small, (edges[23:-1] + edges[24:]) / 2])
    return at, np.diff(edges)


#: Probabilities of a scale, and their weights.
SHARES = _shares()
