r"""Intervals and tests for a mean effect over few, unequal, dependent groups of pairs.

Pairs that share a device (or a model) share that device's error, so the independent unit is the
device, not the pair. Each cluster gives one number, the mean over its pairs. The primary analysis
is Student's t on these numbers, for three reasons:

* It needs no equal variances: with independent Gaussian cluster means of *unequal* variance, the
  t test at level alpha <= 8.3 % never rejects a true null too often, for any number of clusters
  (Bakirov and Székely 2006; Ibragimov and Müller 2010). Intervals are therefore offered from a
  level of 91.7 % upwards.
* It is valid for errors near zero. If errors are Gaussian around zero, the log of the ratio of two
  absolute errors follows the hyperbolic secant law, a scale mixture of Gaussians, which the same
  theorem covers: the interval is then conservative, not wrong.
* It gives the interval and the p-value by the same method, even for three clusters.

The robustness check is the exact signed-rank permutation test on the same cluster means. It needs
only symmetry, and no single pair can dominate it. But its p-value cannot fall below 5 % with fewer
than six clusters, so it is not the primary analysis.

A factor with one level per device (whether the tool saw a device in training, its vendor) never
varies within a device, so the configurations of several devices are compared instead. Each
configuration gets its own intercept, because some devices ran harder ones, and the standard error
is clustered by device. With few devices the usual cluster-robust standard error is too small: the
bias-reduced one with Satterthwaite degrees of freedom (CR2, Bell and McCaffrey 2002) is the primary
analysis. With three to ten devices per side, whose spreads differ by at most a factor of two,
simulated 95 % intervals cover in 91 to 98 % of cases. The check permutes the level labels over the
devices.

References
----------
Ibragimov and Müller (2010), "t-Statistic Based Correlation and Heterogeneity Robust Inference",
Journal of Business & Economic Statistics 28(4), 453-468.
Bakirov and Székely (2006), "Student's t-test for Gaussian scale mixtures", Journal of
Mathematical Sciences 139(3), 6497-6505.
Bell and McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage
samples", Survey Methodology 28(2), 169-181.
Imbens and Kolesár (2016), "Robust standard errors in small samples: some practical advice", Review
of Economics and Statistics 98(4), 701-712.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.results import Estimate
from errcomp.stats.significance import (
    benjamini_hochberg,
    holm,
    ranks,
    student_ppf,
    student_sf,
)

#: Fewest independent clusters for an interval: with two, t has one degree of freedom.
MIN_CLUSTERS = 3
#: Below this level the theorem behind the cluster t interval does not hold.
MIN_LEVEL = 0.917
_MAX_ENUMERATED = 2**16
_RANDOM_DRAWS = 9999
_CHUNK = 500
_UNITS = {"ape_ratio": "ratio", "ape_points": "fraction", "signed_log": "log"}


@dataclass(frozen=True, slots=True)
class EffectTest:
    """A mean effect with its interval, its p-value and the p-value of the robustness check."""

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    p_check: float | None
    method: str


def effect_estimate(
    figure: str,
    bounded: tuple[float, float | None, float | None],
    *,
    level: float,
    method: str,
    n: int,
    definition: str,
) -> Estimate:
    """Return an effect (value, low, high) in its unit: an effect on ln APE as a ratio of APEs."""
    value, low, high = bounded
    if figure == "ape_ratio":
        value = math.exp(value)
        low, high = (None if bound is None else math.exp(bound) for bound in (low, high))
    return Estimate(
        figure,
        value,
        low=low,
        high=high,
        level=None if low is None else level,
        method=method,
        n=n,
        unit=_UNITS[figure],
        definition=definition,
    )


def corrected(p_values: Sequence[float | None]) -> list[tuple[float | None, float | None]]:
    """Correct p-values as one family, by Holm and by Benjamini-Hochberg; None is untested."""
    tested = [float(p) for p in p_values if p is not None]
    both = iter(zip(holm(tested), benjamini_hochberg(tested), strict=True))
    return [(None, None) if p is None else next(both) for p in p_values]


def check_level(level: float) -> None:
    """Raise unless the interval is known to cover at this level."""
    if not MIN_LEVEL <= level < 1:
        raise InputError(
            f"level must be at least {MIN_LEVEL} and below 1, got {level}: below {MIN_LEVEL} the "
            "cluster t interval is not known to reach its nominal coverage. Use 0.95 or 0.99."
        )


def cluster_means(values: NDArray[np.float64], clusters: Sequence[Any]) -> NDArray[np.float64]:
    """Return the mean of each cluster, clusters in order of first appearance."""
    _, codes = np.unique(np.asarray([str(c) for c in clusters]), return_inverse=True)
    means: NDArray[np.float64] = np.bincount(codes, weights=values) / np.bincount(codes)
    return means


def mean_test(means: NDArray[np.float64], *, level: float, rng: np.random.Generator) -> EffectTest:
    """Student's t on cluster means, with the exact signed-rank test as the check."""
    q, value = len(means), float(np.mean(means))
    why_none = reason_for_none(q, float(np.ptp(means)), value, side="")
    if why_none:
        return EffectTest(value, None, None, None, None, why_none)
    error = float(np.std(means, ddof=1)) / math.sqrt(q)
    half = student_ppf((1 + level) / 2, q - 1) * error
    p = 2 * float(student_sf(abs(value) / error, q - 1))
    check = signed_rank_p(means, rng=rng)
    method = f"t over clusters, df={q - 1}"
    return EffectTest(value, value - half, value + half, p, check, method)


def reason_for_none(clusters: int, spread: float, value: float, *, side: str) -> str:
    """Say why there is no interval; empty if there is one."""
    if clusters < MIN_CLUSTERS:
        plural = "s" if clusters != 1 else ""
        return f"none: {clusters} independent cluster{plural}, {MIN_CLUSTERS} needed{side}"
    # Rounding leaves a tiny spread if all clusters have the same effect.
    return "none: no spread between clusters" if spread <= 1e-12 * max(1.0, abs(value)) else ""


def signed_rank_p(values: NDArray[np.float64], *, rng: np.random.Generator) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test by flipping signs, ties by mid-ranks.

    All sign patterns are enumerated up to 16 values; beyond that 9,999 are drawn at random.
    Zeros have no sign and are left out, as Wilcoxon did.

    Examples
    --------
    >>> signed_rank_p(np.array([1.0, 2.0, 3.0]), rng=np.random.default_rng(0))
    0.25
    """
    x = values[values != 0]
    if len(x) == 0:
        return 1.0
    # Twice the mid-rank is a whole number, so equal sums compare as equal.
    doubled = np.rint(2 * ranks(np.abs(x)))
    observed = abs(float(np.sign(x) @ doubled))
    if 2 ** len(x) <= _MAX_ENUMERATED:
        bits = (np.arange(2 ** len(x))[:, None] >> np.arange(len(x))) & 1
        return float(np.mean(np.abs((2 * bits - 1) @ doubled) >= observed))
    hits = 0
    for start in range(0, _RANDOM_DRAWS, _CHUNK):
        size = (min(_CHUNK, _RANDOM_DRAWS - start), len(x))
        flips = 2 * rng.integers(0, 2, size=size, dtype=np.int8) - 1
        hits += int(np.sum(np.abs(flips @ doubled) >= observed))
    return (1 + hits) / (1 + _RANDOM_DRAWS)


def rank_sum_p(
    a: NDArray[np.float64], b: NDArray[np.float64], *, rng: np.random.Generator
) -> float:
    """Two-sided p-value of the rank-sum test by permuting the group labels, ties by mid-ranks.

    All assignments are enumerated up to 65,536; beyond that 9,999 are drawn at random.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    >>> round(rank_sum_p(a, b, rng=np.random.default_rng(0)), 4)
    0.3333
    """
    doubled = np.rint(2 * ranks(np.concatenate([a, b])))
    n, k = len(doubled), len(b)
    # Four times the deviation from the expected sum, so that all numbers are whole.
    expected = 2 * k * (n + 1)
    observed = abs(2 * doubled[len(a) :].sum() - expected)
    if math.comb(n, k) <= _MAX_ENUMERATED:
        chosen = np.array(list(combinations(range(n), k)))
        return float(np.mean(np.abs(2 * doubled[chosen].sum(axis=1) - expected) >= observed))
    hits = sum(
        abs(2 * rng.permutation(doubled)[:k].sum() - expected) >= observed
        for _ in range(_RANDOM_DRAWS)
    )
    return (1 + int(hits)) / (1 + _RANDOM_DRAWS)


def share_interval(
    hits: NDArray[np.bool_], clusters: Sequence[Any], *, level: float
) -> tuple[float, float, float]:
    r"""Share of pairs with an exact-type interval that allows for clusters.

    .. math:: [B_{\alpha/2}(x^*, n^* - x^* + 1),\; B_{1-\alpha/2}(x^* + 1, n^* - x^*)],
              \quad x^* = \hat p\, n^*

    Definition: Clopper and Pearson's interval at the effective sample size
    :math:`n^* = \hat p (1 - \hat p) / \hat V`, with V the variance of the share between clusters,
    scaled by the squared ratio of t quantiles at n - 1 and q - 1 degrees of freedom, and at most n.
    If every pair is its own cluster, this is Clopper and Pearson's interval. If all pairs agree, V
    is zero and the number of clusters is used.

    Returns
    -------
    value, low, high : float

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413; Korn and Graubard (1998), "Confidence
    intervals for proportions with small expected number of positive counts estimated from survey
    data", Survey Methodology 24, 193-201.

    Examples
    --------
    >>> hits = np.array([True] * 3 + [False] * 7)
    >>> [round(v, 4) for v in share_interval(hits, range(10), level=0.95)]
    [0.3, 0.0667, 0.6525]
    """
    from scipy.special import betaincinv

    n = len(hits)
    labels, codes = np.unique(np.asarray([str(c) for c in clusters]), return_inverse=True)
    q, value = len(labels), float(np.mean(hits))
    n_star = float(n)
    if q < n and 0 < value < 1:
        totals = np.bincount(codes, weights=hits - value)
        variance = q / (q - 1) * float(totals @ totals) / n**2
        tail = 0.5 + level / 2
        scale = (student_ppf(tail, n - 1) / student_ppf(tail, q - 1)) ** 2
        n_star = min(n, scale * value * (1 - value) / variance) if variance > 0 else float(n)
    elif q < n:
        n_star = float(q)
    x, alpha = value * n_star, 1 - level
    low = 0.0 if value == 0 else float(betaincinv(x, n_star - x + 1, alpha / 2))
    high = 1.0 if value == 1 else float(betaincinv(x + 1, n_star - x, 1 - alpha / 2))
    return value, low, high


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """One entry per configuration and device: shape (n,) each.

    Attributes
    ----------
    configuration, unit : ndarray of int
        Codes from 0.
    is_b : ndarray of bool
        Whether the unit is at level b.
    """

    configuration: NDArray[np.int64]
    unit: NDArray[np.int64]
    is_b: NDArray[np.bool_]

    @property
    def n_units(self) -> tuple[int, int]:
        """Number of units at a and at b."""
        return len(np.unique(self.unit[~self.is_b])), len(np.unique(self.unit[self.is_b]))

    def centred(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Subtract the mean of each configuration."""
        sizes = np.bincount(self.configuration)
        means = np.bincount(self.configuration, weights=values) / sizes
        centred: NDArray[np.float64] = values - means[self.configuration]
        return centred


def bias_reduced(cells: Cells, values: NDArray[np.float64]) -> tuple[float, float, float]:
    r"""Difference b minus a with configuration intercepts, its CR2 standard error and its df.

    .. math:: \hat\beta = \frac{\tilde x^\top y}{\tilde x^\top \tilde x}, \quad
              \hat V = \frac{\sum_g (\tilde x_g^\top A_g e_g)^2}{(\tilde x^\top \tilde x)^2}, \quad
              A_g = (I - H)_{gg}^{-1/2}

    with x the indicator of b after centring in each configuration, e the residuals and H the hat
    matrix. The degrees of freedom match the first two moments of V under independent errors.
    """
    x = cells.centred(cells.is_b.astype(np.float64))
    s = float(x @ x)
    beta = float(x @ values) / s
    residuals = cells.centred(values) - beta * x
    sizes = np.bincount(cells.configuration)[cells.configuration]
    variance, influence = 0.0, []
    for unit in np.unique(cells.unit):
        rows = np.flatnonzero(cells.unit == unit)
        weight = _adjusted(1 - 1 / sizes[rows], x[rows], s)
        variance += float(weight @ residuals[rows]) ** 2 / s**2
        spread = np.zeros_like(x)
        spread[rows] = weight
        influence.append((cells.centred(spread) - x * float(x[rows] @ weight) / s) / s)
    p = np.array(influence)
    gram = p @ p.T
    squares = float(np.sum(gram * gram))
    df = float(np.trace(gram)) ** 2 / squares if squares > 0 else 0.0
    return beta, math.sqrt(variance), df


def _adjusted(
    diagonal: NDArray[np.float64], x: NDArray[np.float64], s: float
) -> NDArray[np.float64]:
    """Return B^(-1/2) x for B = diag(diagonal) - x x' / s: the block of I - H of one unit.

    A unit has one entry per configuration, so its block is diagonal plus rank one. Entries with
    the same diagonal and the same x get the same weight: each such set is one dimension, and a
    unit with thousands of configurations costs no more than one with a few. Directions in which
    the fit leaves no residual are dropped.
    """
    sets, codes, sizes = np.unique(
        np.round(np.column_stack([diagonal, x]), 12),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    root_sizes = np.sqrt(sizes)
    short = sets[:, 1] * root_sizes
    values, vectors = np.linalg.eigh(np.diag(sets[:, 0]) - np.outer(short, short) / s)
    scale = np.zeros_like(values)
    scale[values > 1e-10] = 1 / np.sqrt(values[values > 1e-10])
    weights: NDArray[np.float64] = (vectors * scale) @ (vectors.T @ short) / root_sizes
    return weights[codes.ravel()]


def between_test(
    cells: Cells, values: NDArray[np.float64], *, level: float, rng: np.random.Generator
) -> EffectTest:
    """Test b against a with the bias-reduced standard error; rank-sum over devices as the check."""
    beta, se, df = bias_reduced(cells, values)
    why_none = reason_for_none(min(cells.n_units), se, beta, side=" on each side")
    if why_none:
        return EffectTest(beta, None, None, None, None, why_none)
    half = student_ppf(0.5 + level / 2, df) * se
    p = 2 * float(student_sf(abs(beta) / se, df))
    centred = cells.centred(values)
    sides = (
        (centred[~cells.is_b], cells.unit[~cells.is_b]),
        (centred[cells.is_b], cells.unit[cells.is_b]),
    )
    a, b = (cluster_means(v, u.tolist()) for v, u in sides)
    method = f"bias-reduced cluster t, df={df:.1f}"
    return EffectTest(beta, beta - half, beta + half, p, rank_sum_p(a, b, rng=rng), method)
