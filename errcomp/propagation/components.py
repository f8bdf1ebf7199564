"""How much of the error is shared: variance components from runs that were measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

from errcomp.propagation._residuals import LEVELS, Residuals
from errcomp.propagation.terms import Floats

__all__ = ["Components", "estimate_components"]


_BLOCKS = 40  # so many times at most is everything fitted anew
_NOTHING = 1e-12  # of the largest sum of weights: no pairs, but for rounding


@dataclass(frozen=True, slots=True)
class Components:
    r"""Correlation of the errors of two kernels by what they have in common.

    ``correlation[l]`` is the correlation of two kernels that share level l and no finer one
    (`LEVELS`: device, class within it, run, same kernel, row); ``shares`` are its steps, the share
    of the variance that arises at each level. The last is 1: a row with itself.

    Attributes
    ----------
    correlation, low, high : tuple of float
        Per level; the interval is the jackknife over clusters, limited to [0, 1]. NaN where no
        two kernels share just that level, or where there is one cluster only.
    scale : float
        Factor on the spreads of the classes: the spread as it enters totals, where long kernels
        count more, over the spread as it enters a class.
    confidence : float or None
        Confidence of the intervals; None if there are none.
    n, n_clusters : int
        Rows and independent clusters (devices, or runs).
    cluster : str
        What the clusters are.
    """

    correlation: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    scale: float
    confidence: float | None
    n: int
    n_clusters: int
    cluster: str

    @property
    def shares(self) -> dict[str, float]:
        """Share of the variance that arises at each level; they sum to 1."""
        steps = np.diff(np.concatenate([[0.0], self.correlation]))
        return {name: float(max(step, 0.0)) for name, step in zip(LEVELS, steps, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; None where there is no interval."""
        ends = zip(LEVELS, self.correlation, self.low, self.high, strict=True)
        return {
            "cluster": self.cluster,
            "n_clusters": self.n_clusters,
            "n": self.n,
            "confidence": self.confidence,
            "levels": [
                {
                    "level": name,
                    "correlation": value,
                    "low": None if math.isnan(low) else low,
                    "high": None if math.isnan(high) else high,
                    "share": self.shares[name],
                }
                for name, value, low, high in ends
            ],
        }


def estimate_components(
    found: Residuals,
    fit: Callable[[Residuals], tuple[Floats, Floats, Floats]],
    *,
    cluster: str,
    confidence: float | None = 0.9,
) -> Components:
    r"""Estimate correlations by moments weighted with time.

    With residuals r, shares of the run's time w and spreads s of the class, the correlation of
    kernels whose finest common level is l is

    .. math::
        \hat C_l = \sum_{(i,j) \in l} w_i w_j r_i r_j \Big/ \sum_{(i,j) \in l} w_i w_j s_i s_j

    over all pairs (i, j) of that kind: sums over pairs are differences of squared group sums, so
    that it takes O(n). The variance of a run's total is the same weighted sum, so that what is
    estimated is what is needed: on average over the runs the variance of their totals is met
    exactly (except for truncation). Correlations that decrease from coarse to fine are pooled
    (isotonic regression with the weights of the denominators), negative ones are set to 0.

    Parameters
    ----------
    found : Residuals
        Observed errors with the groups of each row.
    fit : callable
        From residuals to relative residual, share of the run's corrected time and spread of the
        class, each of shape (n,). Called again without each cluster.
    cluster : str
        What the clusters are: ``"device"`` or ``"run"``.
    confidence : float or None
        Confidence of the intervals; None: no intervals.

    Returns
    -------
    Components

    Notes
    -----
    Equals the ANOVA estimator, and REML, where the design is balanced and all weights and spreads
    are equal. Residuals are those of predictions for a device that is new: what devices share
    carries the uncertainty of locations estimated from D devices, a factor of D / (D − 1). The
    intervals are delete-one-cluster jackknives (delete a group of clusters beyond 40), everything
    fitted anew, with t quantiles. In simulations with 4 and 8 devices those at 90 % covered 81 to
    95 %.

    References
    ----------
    Searle, Casella and McCulloch (1992), "Variance Components", Wiley, chapter 5;
    Efron and Stein (1981), "The Jackknife Estimate of Variance", doi:10.1214/aos/1176345462.
    """
    top, base = _ratios(found, *fit(found))
    raw = _isotonic(top, base)
    # Predictions without any error have no correlation to speak of.
    scale = float(raw[-1]) or 1.0
    raw[-1] = scale
    low = high = np.full(len(LEVELS), math.nan)
    if confidence is not None and len(found.clusters) > 1:
        low, high = _jackknife(found, fit, confidence)
    seen = base > _NOTHING * float(base.max())
    return Components(
        tuple(map(float, raw / scale)),
        tuple(map(float, np.where(seen, low, math.nan))),
        tuple(map(float, np.where(seen, high, math.nan))),
        math.sqrt(scale),
        confidence,
        len(found.y),
        len(found.clusters),
        cluster,
    )


def _jackknife(
    found: Residuals,
    fit: Callable[[Residuals], tuple[Floats, Floats, Floats]],
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals per level, shape (L,) each."""

    def correlations(part: Residuals) -> Floats:
        top, base = _ratios(part, *fit(part))
        ratio = top / np.where(base > 0, base, 1.0)
        return ratio / (ratio[-1] or 1.0)

    blocks = min(len(found.clusters), _BLOCKS)
    without = [correlations(found.take(found.cluster % blocks != i)) for i in range(blocks)]
    error = np.sqrt((blocks - 1) / blocks * ((without - np.mean(without, axis=0)) ** 2).sum(axis=0))
    half = float(stats.t.ppf((1 + confidence) / 2, blocks - 1)) * error
    centre = correlations(found)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def _ratios(
    found: Residuals, residual: Floats, weight: Floats, spread: Floats
) -> tuple[Floats, Floats]:
    """Return the sums over pairs, by level, of products of residuals and of spreads."""
    return _squares(found, weight * residual), _squares(found, weight * spread)


def _squares(found: Residuals, x: Floats) -> Floats:
    """Return the sum over pairs of x x' by finest common level, shape (L,)."""
    sums = [float((np.bincount(group, x) ** 2).sum()) for group in found.groups()]
    out: Floats = np.array(sums) - np.array([*sums[1:], 0.0])
    return out


def _isotonic(top: Floats, base: Floats) -> Floats:
    """Return the ratios top / base made increasing, and not negative.

    A level that no two kernels share has the ratio of the level above it.
    """
    known = base > _NOTHING * float(base.max())
    out = np.zeros(len(top))
    if known.any():
        fitted = optimize.isotonic_regression(top[known] / base[known], weights=base[known]).x
        above = np.cumsum(known)
        out[above > 0] = fitted[above[above > 0] - 1]
    return np.maximum(out, 0.0)
