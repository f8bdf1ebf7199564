r"""The power law V(h) = c·h^β fitted to a variogram by generalised least squares.

Estimates at different lags come from the same steps, so that they err together. Their covariance is
that of squares of a process with stationary increments of variance V (fractional Brownian motion),
observed with noise at every release, of which a share ρ is common to all clusters:

.. math:: \operatorname{Cov}(\hat V_h, \hat V_k) = \frac{2}{M_h M_k} \sum_{s,t}
          \Big[(\rho\gamma_{st})^2 + \frac{(\gamma_{st} + \nu_{st})^2 - (\rho\gamma_{st})^2}{C}\Big]
          + \text{kurtosis} + \text{differences between clusters}

with M pairs of a series, γ the covariance of the two differences, ν that of their noise and
C clusters. The kurtosis term counts how often a step lies in pairs of both lags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincinv, ndtri

from errcomp.halflife.drift.moments import chi_square_bounds, sampling_df

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "Design",
    "Law",
    "drift_on_its_own",
    "fit_law",
    "has_drift",
    "law_bounds",
    "sampling_covariance",
]

_BETA = (0.05, 2.0)
_ITERATIONS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """What the sampling errors of a variogram depend on.

    Attributes
    ----------
    lag : ndarray, shape (b,)
        Mean number of releases between the versions of a pair, of each class of lags.
    time : ndarray, shape (b,)
        Their mean lag on the clock of the law.
    pairs : ndarray of int, shape (b,)
        Pairs of versions of each class in one series.
    pairs_common : ndarray of int, shape (b,)
        The same over all releases that any series saw.
    clusters : ndarray of float, shape (b,)
        Number of clusters with such pairs, in effect.
    common : float
        Share of the drift's variance that all clusters have in common, 0 to 1.
    noise : float
        Variance of the noise of one error.
    noise_df : float
        Degrees of freedom behind it.
    kurtosis : (float, float)
        Excess kurtosis of steps: common ones, and those of the clusters.
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
        return replace(
            self,
            lag=self.lag[classes],
            time=self.time[classes],
            pairs=self.pairs[classes],
            pairs_common=self.pairs_common[classes],
            clusters=self.clusters[classes],
        )


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
    # A cluster counts in both classes of lags only where it has both.
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
    # A class of several lags errs like its mean lag: variances grow with the cube of the lag.
    f = (design.lag / h) ** 1.5
    return np.asarray(covariance * np.outer(f, f))


def _offsets(pairs: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    # How many pairs of each two classes start j releases apart, over the numbers of pairs.
    one, other = pairs[:, None, None], pairs[None, :, None]
    count = np.minimum(one, other - j) - np.maximum(0, -j)
    return np.asarray(np.maximum(count, 0) / (one * other))


def _shared_steps(h: NDArray[np.int64], pairs: NDArray[np.int64]) -> Floats:
    # In how many pairs of a class does each step lie, as a share of the pairs.
    m = pairs[:, None]
    steps = np.arange(1, int((h + pairs).max()))[None, :]
    inside = np.minimum(np.minimum(h[:, None], m), np.minimum(steps, h[:, None] + m - steps))
    share = np.maximum(inside, 0) / m
    return np.asarray(share @ share.T)


def has_drift(design: Design, v: Floats, z: float) -> bool:
    """Whether V, linear in the lag, is above 0 by z standard errors of noise alone."""
    rate, error = _line(design, v)
    return rate > z * error


def drift_on_its_own(design: Design, v: Floats, tail: float) -> float:
    """Return the upper bound of V per unit of lag where noise alone is seen."""
    rate, error = _line(design, v)
    return max(rate, 0.0) + float(-ndtri(tail)) * error


def _line(design: Design, v: Floats) -> tuple[float, float]:
    sigma = sampling_covariance(design, 0.0, 1.0)
    h = design.time
    weights = h / np.diag(sigma) if sigma.any() else h / design.lag**3
    of = weights @ h
    return float(weights @ v / of), float(np.sqrt(weights @ sigma @ weights) / of)


def fit_law(design: Design, v: Floats) -> Law:
    """Fit the law to V by least squares, weighted by numbers of independent pairs over V².

    Not by the inverse of the whole covariance: it is near-singular, and its small eigenvalues would
    turn small errors of the model of it into large ones of the law. The covariance of the law is
    that of these weights under the whole covariance.
    """
    h, logs = design.time, np.log(design.time)
    scale, beta = max(float((v / h).mean()), float(np.abs(v / h).max()) * 1e-3), 1.0
    for _ in range(_ITERATIONS):
        slope, weighted = _weighted(design, scale, beta)
        move = np.linalg.solve(weighted.T @ slope, weighted.T @ (v - slope[:, 0]))
        move = np.clip(move, -1.0, 1.0)
        new = float(np.clip(beta + move[1], *_BETA))
        if new != beta + move[1]:
            # At the border of beta: the best scale for that one.
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
    law: Law, lag: Floats, tail: float, *, counts: bool
) -> tuple[Floats, Floats, Floats]:
    """Return pointwise bounds of V at lags by the law, and their degrees of freedom.

    Where ``counts``, V goes by the number of rare steps; its lower bound is then that of a Poisson
    count (Garwood 1936, doi:10.1093/biomet/28.3-4.437) if that is lower.
    """
    x = np.stack([np.ones_like(lag), np.log(lag)])
    df = sampling_df(np.einsum("ib,ij,jb->b", x, law.covariance, x))
    low, high = chi_square_bounds(law.at(lag), df, tail)
    if counts:
        half = np.clip(df / 2, 0.5, 5e5)
        low = np.minimum(low, law.at(lag) * gammaincinv(half, tail) / half)
    return low, high, df
