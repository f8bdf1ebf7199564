"""Pairs of versions within series: mean squares by lag, and how alike the steps of series are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.halflife.drift.moments import group_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.halflife.panel import Clock, Panel

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Noise", "Pairs", "Steps", "noise_of", "pairs_of", "rows_of", "steps_of"]

#: A median of this many pairs of each gap is sure enough.
_PAIRS_FOR_MEDIAN = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Variance of the noise of each row, its degrees of freedom in all, and whether it is known."""

    variance: Floats
    df: float
    known: bool


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    r"""Pairs of versions by classes of lags; all arrays have one entry per class.

    Attributes
    ----------
    lag, time : ndarray
        Mean lag in releases and on the clock.
    v, noise : ndarray
        Mean square less noise, and that noise; the mean over series of their means over pairs.
    median : ndarray
        Median \|Δ\| over pairs.
    n_pairs, n_series : ndarray of int
    clusters : ndarray
        Number of clusters, in effect.
    in_series, in_all : ndarray of int
        Pairs that a series has, and that all releases together would allow.
    """

    lag: Floats
    time: Floats
    v: Floats
    noise: Floats
    median: Floats
    n_pairs: Codes
    n_series: Codes
    clusters: Floats
    in_series: Codes
    in_all: Codes


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What the steps between neighbouring rows of a series show, per release.

    Attributes
    ----------
    common : float
        Share of their variance that all clusters have in common (upper end of its interval).
    kurtosis : (float, float)
        Excess kurtosis of the common steps and of all; never below 0.
    between : float
        Relative variance between clusters beyond chance; never below 0.
    releases : int
        Different pairs of versions that steps lie between.
    """

    common: float
    kurtosis: tuple[float, float]
    between: float
    releases: int


def rows_of(panel: Panel) -> Codes:
    """Return the series of each row."""
    return np.repeat(np.arange(panel.n_series), np.diff(panel.starts))


def noise_of(panel: Panel) -> Noise:
    """Take the noise of the panel; rows without repeats get the mean variance of the others."""
    known = ~np.isnan(panel.sd)
    if not known.any():
        return Noise(np.zeros(len(panel.sd)), 0.0, False)
    square = panel.sd**2
    return Noise(np.where(known, square, square[known].mean()), float(panel.noise_df.sum()), True)


def _edges(longest: int) -> Codes:
    edges = [1, 2, 3, 4]
    while edges[-1] <= longest:
        edges += [edges[-1] * 3 // 2, edges[-1] * 2]
    return np.asarray(edges)


def _row_gaps(most: int) -> list[int]:
    # Every gap up to 24 rows, then about every eighth part of an octave: longer ones tell the same.
    gaps, k = [], 1
    while k <= most:
        gaps.append(k)
        k += max(1, k // 12)
    return gaps


def pairs_of(panel: Panel, clock: Clock, noise: Noise) -> Pairs:
    """Sum squares of differences over pairs of versions within series, by classes of lags."""
    s, series, time = panel.n_series, rows_of(panel), panel.times(clock)
    span = panel.version[panel.starts[1:] - 1] - panel.version[panel.starts[:-1]]
    edges = _edges(int(span.max()))
    b = len(edges)
    sums = np.zeros((5, s * b))
    drifts: list[list[Floats]] = [[] for _ in edges]
    for k in _row_gaps(int(np.diff(panel.starts).max()) - 1):
        i = np.flatnonzero(series[k:] == series[:-k])
        lag = panel.version[i + k] - panel.version[i]
        d = panel.error[i + k] - panel.error[i]
        kind = np.searchsorted(edges, lag, side="right") - 1
        key = series[i] * b + kind
        noisy = noise.variance[i + k] + noise.variance[i]
        for total, x in zip(
            sums, (np.ones(len(i)), d * d, noisy, lag, time[i + k] - time[i]), strict=True
        ):
            total += group_sums(x, key, s * b)
        every = -(-len(i) // _PAIRS_FOR_MEDIAN)
        thin, kind = np.abs(d[::every]), kind[::every]
        for c in np.unique(kind):
            drifts[c].append(thin[kind == c])
    tables = sums.reshape(5, s, b)
    has = tables[0] > 0
    seen = np.flatnonzero(has.any(axis=0))
    tables, has = tables[:, :, seen], has[:, seen]
    n_series = has.sum(axis=0)
    means = np.divide(tables[1:], tables[0], out=np.zeros_like(tables[1:]), where=has)
    square, noisy, lag, times = means.sum(axis=1) / n_series
    in_clusters = np.stack(
        [
            group_sums(one, panel.clusters, int(panel.clusters.max()) + 1)
            for one in has.T.astype(float)
        ]
    )
    # Series of different length: the mean of 1 / n is what variances go by.
    length = n_series / (has / (span[:, None] + 1.0)).sum(axis=0)
    in_series = np.maximum(1, np.rint(length - lag)).astype(int)
    whole = int(panel.version.max() - panel.version.min()) + 1
    return Pairs(
        lag=lag,
        time=times,
        v=square - noisy,
        noise=noisy,
        median=np.array([np.median(np.concatenate(drifts[c])) for c in seen]),
        n_pairs=tables[0].sum(axis=0).astype(int),
        n_series=n_series,
        clusters=in_clusters.sum(axis=1) ** 2 / (in_clusters**2).sum(axis=1),
        in_series=in_series,
        in_all=np.maximum(in_series, np.rint(whole - lag).astype(int)),
    )


def steps_of(panel: Panel, noise: Noise) -> Steps:
    """Compare the steps between neighbouring rows: over releases, over clusters, in size."""
    series = rows_of(panel)
    i = np.flatnonzero(series[1:] == series[:-1])
    gap = (panel.version[i + 1] - panel.version[i]).astype(float)
    d = (panel.error[i + 1] - panel.error[i]) / np.sqrt(gap)
    noisy = (noise.variance[i + 1] + noise.variance[i]) / gap
    cluster = panel.clusters[series[i]]
    release = panel.version[i] * len(panel.versions) + panel.version[i + 1]
    place = np.unique(release, return_inverse=True)[1]
    total = float((d * d).mean())
    v = total - float(noisy.mean())
    releases = int(place.max()) + 1
    if v <= 0:
        return Steps(1.0, (0.0, 0.0), 0.0, releases)
    k_own, between = _own(d * d - noisy, cluster, v, total)
    common, k_common = _common(d, place, cluster, v, total) or (1.0, k_own)
    return Steps(common, (k_common, k_own), between, releases)


def _common(
    d: Floats, place: Codes, cluster: Codes, v: float, total: float
) -> tuple[float, float] | None:
    # Products of steps of different clusters at one release have the common variance as their mean,
    # whatever the noise.
    k = int(cluster.max()) + 1
    cell, inverse = np.unique(place * k + cluster, return_inverse=True)
    mean = group_sums(d, inverse, len(cell)) / np.bincount(inverse)
    at = cell // k
    n = np.bincount(at).astype(float)
    sums, squares = group_sums(mean, at, len(n)), group_sums(mean**2, at, len(n))
    many = n > 1
    if not many.any():
        # One cluster, or never two at one release: nothing shows that they are independent.
        return None
    n, sums, squares = n[many], sums[many], squares[many]
    gamma = float(((sums**2 - squares) / n).sum() / (n - 1).sum())
    # One standard error on the safe side: the fewer independent steps the wider the interval.
    error = total * float(np.sqrt((2 * (n - 1) / n).sum()) / (n - 1).sum())
    q = (sums / n) ** 2
    kurtosis = float(q.var(ddof=1) / q.mean() ** 2) - 2 if len(q) > 1 and q.any() else 0.0
    return float(np.clip((gamma + error) / v, 0.0, 1.0)), max(0.0, kurtosis)


def _own(q: Floats, cluster: Codes, v: float, total: float) -> tuple[float, float]:
    n = np.bincount(cluster).astype(float)
    mean = group_sums(q, cluster, len(n)) / np.maximum(n, 1)
    some = n > 1
    if not some.any():
        return 0.0, 0.0
    within = group_sums((q - mean[cluster]) ** 2, cluster, len(n))[some] / (n[some] - 1)
    kurtosis = max(0.0, float(within.mean()) - 2 * total**2) / v**2
    if some.sum() < 4:
        return kurtosis, 0.0
    # Squares of neighbouring steps share a value's noise: a correlation of 1/4 at most.
    chance = 1.25 * float((within / n[some]).mean())
    return kurtosis, max(0.0, float(mean[some].var(ddof=1)) - chance) / v**2
