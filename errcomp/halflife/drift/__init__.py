r"""How far errors drift with the lag: pairs of versions within series, and V(h) = c·h^β.

The power law is fitted by weighted least squares. Estimates at different lags come from the same
steps, so their errors are correlated. Their covariance is that of squares of a process with
stationary increments of variance V (fractional Brownian motion), observed with noise at every
release. A share ρ of it is common to all clusters:

.. math:: \operatorname{Cov}(\hat V_h, \hat V_k) = \frac{2}{M_h M_k} \sum_{s,t}
          \Big[(\rho\gamma_{st})^2 + \frac{(\gamma_{st} + \nu_{st})^2 - (\rho\gamma_{st})^2}{C}\Big]
          + \text{kurtosis} + \text{differences between clusters}

with M pairs of a series, γ the covariance of the two differences, ν that of their noise and
C clusters. The kurtosis term counts how often a step lies in pairs of both lags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv, ndtri

from errcomp.halflife.panel import Clock, Panel, check_clock, check_steps

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def group_sums(values: Floats, codes: NDArray[Any], n: int) -> Floats:
    """Sum values by code from 0 to n - 1."""
    return np.bincount(codes, weights=values, minlength=n).astype(float, copy=False)


def sampling_df(relative_variance: ArrayLike, most: ArrayLike = np.inf) -> Floats:
    r"""Return the degrees of freedom of a χ² by its relative variance: 2 over it, at most ``most``.

    Satterthwaite (1946), doi:10.2307/3002019. ``most`` bounds the result for a few squares that
    happen to be equal: normal ones have one degree of freedom each.
    """
    relative = np.asarray(relative_variance, float)
    df = np.divide(2.0, relative, out=np.full(relative.shape, np.inf), where=relative > 0)
    return np.asarray(np.minimum(df, most))


def chi_square_bounds(mean_square: ArrayLike, df: ArrayLike, tail: float) -> tuple[Floats, Floats]:
    r"""Bounds of the expectation of a mean square that is distributed like χ²/df.

    .. math:: \Big[\frac{\nu\,m}{\chi^2_{1-\alpha/2,\nu}},
              \ \frac{\nu\,m}{\chi^2_{\alpha/2,\nu}}\Big]
    """
    mean, half = np.asarray(mean_square, float), np.asarray(df, float) / 2
    # Beyond a million degrees of freedom the quantiles are those of their expectation to 0.3 %.
    half = np.minimum(half, 5e5)
    # Below one degree of freedom the lower bound of a χ² stops falling, while that of a log-normal
    # with the same spread continues to fall.
    spread = np.sqrt(1 / np.clip(half, 1e-9, 0.5)) - np.sqrt(2.0)
    half = np.maximum(half, 0.5)
    low = mean * half / gammaincinv(half, 1 - tail) * np.exp(ndtri(tail) * spread)
    scale = half / gammaincinv(half, tail) * np.exp(np.minimum(-ndtri(tail) * spread, 500.0))
    high = np.multiply(mean, scale, out=np.zeros(np.broadcast(mean, scale).shape), where=mean > 0)
    return low, high


def difference_bounds(
    total: tuple[ArrayLike, ArrayLike, ArrayLike], noise: tuple[ArrayLike, ArrayLike, ArrayLike]
) -> tuple[Floats, Floats]:
    """Bounds of total - noise, each given as (value, low, high); never below 0.

    Method of variance estimates recovery: Zou and Donner (2008), doi:10.1002/sim.3095.
    """
    t, t_low, t_high = (np.asarray(x, float) for x in total)
    s, s_low, s_high = (np.asarray(x, float) for x in noise)
    low = t - s - np.sqrt((t - t_low) ** 2 + (s_high - s) ** 2)
    high = t - s + np.sqrt((t_high - t) ** 2 + (s - s_low) ** 2)
    return np.maximum(low, 0.0), np.maximum(high, 0.0)


#: This many pairs of each gap are enough for a median.
_PAIRS_FOR_MEDIAN = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Variance of the noise of each row, its total degrees of freedom, and whether it is known."""

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
        Mean square minus noise, and that noise; the mean over series of their means over pairs.
    median : ndarray
        Median \|Δ\| over pairs.
    n_pairs, n_series : ndarray of int
    clusters : ndarray
        Effective number of clusters.
    in_series, in_all : ndarray of int
        Pairs in a series, and pairs that all releases together would allow.
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
    """Statistics of the steps between neighbouring rows of a series, per release.

    Attributes
    ----------
    common : float
        Share of their variance that is common to all clusters (upper end of its interval).
    kurtosis : (float, float)
        Excess kurtosis of the common steps and of all steps; never below 0.
    between : float
        Relative variance between clusters beyond chance; never below 0.
    releases : int
        Different pairs of versions with a step between them.
    """

    common: float
    kurtosis: tuple[float, float]
    between: float
    releases: int


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
    # Every gap up to 24 rows, then about eight per octave: longer gaps carry the same information.
    gaps, k = [], 1
    while k <= most:
        gaps.append(k)
        k += max(1, k // 12)
    return gaps


def pairs_of(panel: Panel, clock: Clock, noise: Noise) -> Pairs:
    """Sum squares of differences over pairs of versions within series, by classes of lags."""
    s, series, time = panel.n_series, panel.series, panel.times(clock)
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
            group_sums(column, panel.clusters, int(panel.clusters.max()) + 1)
            for column in has.T.astype(float)
        ]
    )
    # With series of different length, variances depend on the mean of 1 / n.
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
    """Compare the steps between neighbouring rows over releases, over clusters and by size."""
    series = panel.series
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
    # The mean product of steps of different clusters at one release is the common variance,
    # whatever the noise.
    k = int(cluster.max()) + 1
    cell, inverse = np.unique(place * k + cluster, return_inverse=True)
    mean = group_sums(d, inverse, len(cell)) / np.bincount(inverse)
    at = cell // k
    n = np.bincount(at).astype(float)
    sums, squares = group_sums(mean, at, len(n)), group_sums(mean**2, at, len(n))
    many = n > 1
    if not many.any():
        # One cluster, or never two at one release: independence cannot be shown.
        return None
    n, sums, squares = n[many], sums[many], squares[many]
    gamma = float(((sums**2 - squares) / n).sum() / (n - 1).sum())
    # One standard error on the safe side: the fewer independent steps, the wider the interval.
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
    # Squares of neighbouring steps share the noise of a value: a correlation of 1/4 at most.
    chance = 1.25 * float((within / n[some]).mean())
    return kurtosis, max(0.0, float(mean[some].var(ddof=1)) - chance) / v**2


_BETA = (0.05, 2.0)
_ITERATIONS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The quantities that determine the sampling errors of a variogram.

    Attributes
    ----------
    lag : ndarray, shape (b,)
        Mean number of releases between the versions of a pair, for each class of lags.
    time : ndarray, shape (b,)
        Their mean lag in the unit of the power law.
    pairs : ndarray of int, shape (b,)
        Pairs of versions of each class in one series.
    pairs_common : ndarray of int, shape (b,)
        The same over all releases that any series saw.
    clusters : ndarray of float, shape (b,)
        Effective number of clusters with such pairs.
    common : float
        Share of the drift's variance that is common to all clusters, 0 to 1.
    noise : float
        Variance of the noise of one error.
    noise_df : float
        Its degrees of freedom.
    kurtosis : (float, float)
        Excess kurtosis of the common steps and of the clusters' own.
    between : float
        Relative variance of V between clusters beyond chance.
    """

    lag: Floats
    time: Floats
    pairs: NDArray[np.int64]
    pairs_common: NDArray[np.int64]
    clusters: Floats
    common: float
    noise: float
    noise_df: float
    kurtosis: tuple[float, float]
    between: float

    def at(self, classes: NDArray[np.bool_]) -> Design:
        """Return the design of some of the classes."""
        columns = ("lag", "time", "pairs", "pairs_common", "clusters")
        return replace(self, **{name: getattr(self, name)[classes] for name in columns})


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """V(h) = scale·h^beta, with the covariance of (log scale, beta)."""

    scale: float
    beta: float
    covariance: Floats

    def at(self, lag: Floats) -> Floats:
        """Return V at lags."""
        return self.scale * np.asarray(lag, float) ** self.beta


def sampling_covariance(design: Design, scale: float, beta: float) -> Floats:
    """Return the covariance of V at the design's lags if V = scale·h^beta, h in releases."""
    h = np.maximum(1, np.rint(design.lag)).astype(int)
    n = int((h + np.maximum(design.pairs, design.pairs_common)).max())
    left, right, j = h[:, None, None], h[None, :, None], np.arange(-n, n + 1)
    v = scale * np.arange(2 * n + 1, dtype=float) ** beta
    v[0] = 0.0
    drift = 0.5 * (
        v[np.abs(j + right)] + v[np.abs(j - left)] - v[np.abs(j)] - v[np.abs(j + right - left)]
    )
    noise = design.noise * (
        (j == left - right).astype(float) - (j == left) - (j == -right) + (j == 0)
    )
    shared = (design.common * drift) ** 2
    own = (drift + noise) ** 2 - shared
    # A cluster counts for a pair of classes only if it has both.
    clusters = np.maximum(design.clusters[:, None], design.clusters[None, :])
    covariance = 2 * (_offsets(design.pairs_common, j) * shared).sum(axis=2)
    covariance += 2 * (_offsets(design.pairs, j) * own).sum(axis=2) / clusters
    k_common, k_own = design.kurtosis
    rho = design.common**2
    covariance += k_common * rho * scale**2 * _shared_steps(h, design.pairs_common)
    covariance += k_own * (1 - rho) * scale**2 * _shared_steps(h, design.pairs) / clusters
    covariance += design.between / clusters * np.outer(v[h], v[h])
    if 0 < design.noise_df < np.inf:
        covariance += 2 * (2 * design.noise) ** 2 / design.noise_df
    # A class of several lags has the error of its mean lag: variances grow with its cube.
    f = (design.lag / h) ** 1.5
    return np.asarray(covariance * np.outer(f, f))


def _offsets(pairs: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    # Share of the pairs of two classes that start j releases apart.
    n_first, n_second = pairs[:, None, None], pairs[None, :, None]
    count = np.minimum(n_first, n_second - j) - np.maximum(0, -j)
    return np.asarray(np.maximum(count, 0) / (n_first * n_second))


def _shared_steps(h: NDArray[np.int64], pairs: NDArray[np.int64]) -> Floats:
    # Share of the pairs of a class that contain each step.
    m = pairs[:, None]
    steps = np.arange(1, int((h + pairs).max()))[None, :]
    inside = np.minimum(np.minimum(h[:, None], m), np.minimum(steps, h[:, None] + m - steps))
    share = np.maximum(inside, 0) / m
    return np.asarray(share @ share.T)


def has_drift(design: Design, v: Floats, z: float) -> bool:
    """Say whether V, linear in the lag, is above 0 by z standard errors of noise alone."""
    rate, error = _linear_rate(design, v)
    return rate > z * error


def rate_upper_bound(design: Design, v: Floats, tail: float) -> float:
    """Return the upper bound of V per unit of lag if noise alone is seen."""
    rate, error = _linear_rate(design, v)
    return max(rate, 0.0) + float(-ndtri(tail)) * error


def _linear_rate(design: Design, v: Floats) -> tuple[float, float]:
    sigma = sampling_covariance(design, 0.0, 1.0)
    h = design.time
    weights = h / np.diag(sigma) if sigma.any() else h / design.lag**3
    of = weights @ h
    return float(weights @ v / of), float(np.sqrt(weights @ sigma @ weights) / of)


def fit_law(design: Design, v: Floats) -> Law:
    """Fit the power law to V by least squares, weighted by numbers of independent pairs over V².

    The inverse of the whole covariance is not used: it is near-singular, and its small eigenvalues
    would amplify small errors of the covariance model. The covariance of the power law follows from
    these weights and the whole covariance.
    """
    h, logs = design.time, np.log(design.time)
    scale, beta = max(float((v / h).mean()), float(np.abs(v / h).max()) * 1e-3), 1.0
    for _ in range(_ITERATIONS):
        slope, weighted = _weighted(design, scale, beta)
        move = np.linalg.solve(weighted.T @ slope, weighted.T @ (v - slope[:, 0]))
        move = np.clip(move, -1.0, 1.0)
        new = float(np.clip(beta + move[1], *_BETA))
        if new != beta + move[1]:
            # At the limit of beta: the best scale for that value.
            rest = v - slope[:, 0] * (1 + (new - beta) * logs)
            move[1] = new - beta
            move[0] = np.clip(weighted[:, 0] @ rest / (weighted[:, 0] @ slope[:, 0]), -1.0, 1.0)
        scale, beta = scale * float(np.exp(move[0])), new
        if np.abs(move).max() < 1e-6:
            break
    slope, weighted = _weighted(design, scale, beta)
    sigma = sampling_covariance(design, scale * float((h / design.lag).mean()) ** beta, beta)
    bread = np.linalg.inv(weighted.T @ slope)
    return Law(scale, beta, bread @ weighted.T @ sigma @ weighted @ bread)


def _weighted(design: Design, scale: float, beta: float) -> tuple[Floats, Floats]:
    fitted = scale * design.time**beta
    slope = np.stack([fitted, fitted * np.log(design.time)], axis=1)
    independent = design.pairs / design.lag
    return slope, slope * (independent / (fitted + 2 * design.noise) ** 2)[:, None]


def law_bounds(
    law: Law, lag: Floats, tail: float, *, rare_steps: bool
) -> tuple[Floats, Floats, Floats]:
    """Return pointwise bounds of V at lags by the power law, and their degrees of freedom.

    With ``rare_steps``, V depends on their number. Its lower bound is then that of a Poisson count
    (Garwood 1936, doi:10.1093/biomet/28.3-4.437), if that is lower.
    """
    x = np.stack([np.ones_like(lag), np.log(lag)])
    df = sampling_df(np.einsum("ib,ij,jb->b", x, law.covariance, x))
    low, high = chi_square_bounds(law.at(lag), df, tail)
    if rare_steps:
        half = np.clip(df / 2, 0.5, 5e5)
        low = np.minimum(low, law.at(lag) * gammaincinv(half, tail) / half)
    return low, high, df


#: Drift must exceed the noise by this many standard errors.
_Z_DRIFT = 2.5
#: False-alarm rate of the test for a misfit of the power law.
_MISFIT = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Pairs and steps of a panel, the classes of lags that the power law is fitted to, and the law.

    The law is None if no drift exceeds the noise.
    """

    panel: Panel
    noise: Noise
    pairs: Pairs
    steps: Steps
    design: Design
    fitted: NDArray[np.bool_]
    law: Law | None

    def bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Return pointwise bounds of V, never below 0."""
        p, per = self.pairs, float((self.pairs.time / self.pairs.lag).mean())
        scale, beta = (
            (self.law.scale * per**self.law.beta, self.law.beta) if self.law else (0.0, 1.0)
        )
        variance = np.diag(sampling_covariance(self.design, scale, beta))
        expected = p.noise + (self.law.at(p.time) if self.law else 0.0)
        relative = np.divide(variance, expected**2, out=np.zeros_like(variance), where=expected > 0)
        low, high = chi_square_bounds(np.maximum(p.v + p.noise, 0.0), sampling_df(relative), tail)
        return np.maximum(low - p.noise, 0.0), np.maximum(high - p.noise, 0.0)


def fit_variogram(panel: Panel, clock: Clock) -> Fit:
    """Sum pairs and steps, and fit the power law if there is drift."""
    check_clock(panel, clock)
    check_steps(panel)
    clusters = np.unique(panel.clusters, return_inverse=True)[1]
    panel = replace(panel, clusters=clusters)
    noise = noise_of(panel)
    pairs, steps = pairs_of(panel, clock, noise), steps_of(panel, noise)
    design = Design(
        lag=pairs.lag,
        time=pairs.time,
        pairs=pairs.in_series,
        pairs_common=pairs.in_all,
        clusters=pairs.clusters,
        common=steps.common,
        noise=float(pairs.noise.mean()) / 2,
        noise_df=noise.df,
        kurtosis=steps.kurtosis,
        between=steps.between,
    )
    # Nearly all pairs at more than half of the longest lag overlap: they add little information.
    longest = float((pairs.in_all + pairs.lag).max()) - 1
    fitted = (pairs.lag <= max(3.0, longest / 2)) & (pairs.time > 0)
    chosen = design.at(fitted)
    law = None
    if fitted.sum() > 1 and has_drift(chosen, pairs.v[fitted], _Z_DRIFT):
        law = fit_law(chosen, pairs.v[fitted])
    return Fit(panel, noise, pairs, steps, design, fitted, law)


def has_rare_steps(fit: Fit) -> bool:
    """Say whether a few large steps dominate many small ones: V is then mainly their count."""
    common, own = fit.steps.kurtosis
    rho = fit.steps.common**2
    return rho * common + (1 - rho) * own > 3.0


def misfits(fit: Fit, law: Law) -> bool:
    """Say whether the power law lies outside the bounds of the curve that it was fitted to."""
    use = fit.fitted
    low, high = fit.bounds(_MISFIT / 2 / use.sum())
    expected = law.at(fit.pairs.time)
    return bool(((expected < low) | (expected > high))[use].any())
