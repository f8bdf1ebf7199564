r"""Half-life of a group from the rate and the sizes of its steps.

Errors that stay as they are until a release moves them follow a compound Poisson process: steps
come at a rate, with the sizes that were seen. The half-life is the time by which half of the series
have passed the threshold for the first time. All steps from an error within the threshold count for
it, also those of series that have not expired, so it is known more precisely than the median of the
times of expiry, and noise matters only for whether steps are found.

The error moves on a grid within the threshold, on both sides of 0, and a series is out once it has
left it. With p the shares of series on the grid, K the law of a step and λ the rate of a series,

.. math:: p(t) = p(0)\, e^{\lambda t (K - I)}, \qquad S(t) = E_\lambda \sum p(t)

Series differ: some never step, others do often. Their rates have a gamma law, whose spread follows
from how much the numbers of their steps differ beyond chance.

The interval is that of draws in which clusters of series have random weights (Rubin, 1981). The
weights vary the more, the more the numbers of steps at releases differ beyond chance, and the fewer
clusters and steps there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, gammaln, ndtri, stdtrit

from errcomp.halflife.drift import Fit
from errcomp.halflife.panel import Clock, HalfLife, Panel, check_level
from errcomp.halflife.steps import Steps
from errcomp.halflife.steps.rates import Rates, why_no_rates

__all__ = ["steps_half_life"]

Floats = NDArray[np.float64]

#: Draws behind the interval.
_DRAWS = 200
#: Grid points from 0 to the threshold, for the half-life and for draws of it.
_FINE, _COARSE = 64, 16
#: Fewest steps, fewest releases with a step, and fewest clusters with one.
_FEWEST_STEPS, _FEWEST_RELEASES, _FEWEST_CLUSTERS = 8, 4, 3
#: How far beyond the record a half-life may be, as a multiple of it.
_BEYOND = 4.0
#: Times, and mean numbers of steps of a series, at which shares are computed.
_TIMES, _STEPS = 200, 200
#: Rates of series that stand for their law; means, and squared coefficients of variation, to try.
_RATES, _MEANS = 32, 120
_VARIATIONS = (0.001, 0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 0.9, 1.2, 1.6, 2.2, 3.0, 4.5, 7.0, 12.0)
#: A series with more steps than this is out, if it ever is.
_MOST_STEPS = 100.0


def steps_half_life(
    panel: Panel,
    threshold: float,
    clock: Clock,
    steps: Sequence[Steps],
    fit: Fit,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> HalfLife:
    """Return the half-life of a group by the rate and the sizes of its steps.

    Definition: the time by which half of the series have an error beyond the threshold for the
    first time, for series like those that were within it at their first version. On the clock of
    releases it is a whole number. Beyond four times the record it is inf, and its interval starts
    there at the latest.

    Valid where drift is a few steps per series, and steps as large as the threshold are detected;
    refused otherwise, and with fewer than eight steps, four releases with one, or three clusters.
    Misleads if the rate of steps changes: a rewrite has more of them. Small steps that the noise
    hides are left out, so that the half-life is too long where many of them add up.

    Simulated at 95 %, with 30 series of 24 releases and a noise of a tenth or a quarter of the
    threshold: 94 to 100 % of intervals cover where steps are normal, heavy-tailed, of two sizes or
    one way only, where the rates of series differ, and where clusters step together or many series
    at the same releases; 91 to 98 % where steps are undone soon (``docs/half-life.md`` has the
    table). Misleads where half of the series never step and the others do so often: the true
    half-life may then be endless, which up to one in three intervals do not say.

    Parameters
    ----------
    panel : Panel
    threshold : float
        On the log scale.
    clock : {"releases", "months"}
    steps : sequence of Steps
        Of each series of the panel, from `errcomp.halflife.steps.find_steps_of`.
    fit : Fit
        Variogram of the panel, from ``errcomp.halflife.drift.fit_variogram``.
    level : float
    seed : int
        Of the draws.

    Returns
    -------
    HalfLife

    Raises
    ------
    InputError
        The level is not between 0 and 1.

    References
    ----------
    Rubin (1981), "The Bayesian Bootstrap", doi:10.1214/aos/1176345338.

    Examples
    --------
    >>> from errcomp.halflife.drift import fit_variogram
    >>> from errcomp.halflife.steps import find_steps_of
    >>> rng = np.random.default_rng(0)
    >>> moved = np.where(rng.random((40, 24)) < 0.1, rng.normal(0, 0.3, (40, 24)), 0).cumsum(axis=1)
    >>> error = moved - moved[:, :1] + 0.01 * rng.standard_normal((40, 24))
    >>> panel = Panel(
    ...     versions=tuple(map(str, range(24))), months=np.arange(24.0),
    ...     names=tuple(map(str, range(40))), clusters=np.arange(40), starts=24 * np.arange(41),
    ...     version=np.tile(np.arange(24), 40), error=error.ravel(), sd=np.full(960, 0.01),
    ...     noise_df=np.full(40, np.inf), frozen_at_first=True)
    >>> found = steps_half_life(
    ...     panel, 0.1, "releases", find_steps_of(panel), fit_variogram(panel, "releases"))
    >>> found.half_life, found.low, found.high
    (11, 8, 16)
    """
    check_level(level)
    refused = why_no_rates(steps, threshold, fit, "threshold")
    rates = Rates.of(panel, clock, steps, threshold, inside=True)
    n, releases = len(rates.sizes), len(np.unique(rates.at))
    first = panel.error[panel.starts[:-1]][rates.series]
    within = np.abs(first) < threshold
    if not refused and not within.any():
        refused = "no series was within its threshold at its first version."
    if not refused and (n < _FEWEST_STEPS or releases < _FEWEST_RELEASES):
        refused = (
            f"too few steps begin within the limit: {_FEWEST_STEPS} at {_FEWEST_RELEASES} releases "
            f"are needed, the history has {n} at {releases}."
        )
    clusters = len(np.unique(rates.cluster))
    if not refused and clusters < _FEWEST_CLUSTERS:
        refused = (
            f"too few series, or clusters of series, have a step: {clusters} (at least "
            f"{_FEWEST_CLUSTERS})."
        )
    half_life = low = high = None
    if not refused:
        end = _BEYOND * float(np.ptp(panel.times(clock)))
        start = first[within] / threshold
        half_life, low, high = _half_lives(rates, threshold, start, end, level, seed)
        if clock == "releases":
            half_life, low, high = (
                time if math.isinf(time) else math.ceil(time) for time in (half_life, low, high)
            )
    return HalfLife(
        method="steps",
        half_life=half_life,
        low=low,
        high=high,
        level=level,
        unit=clock,
        n_series=len(rates.series),
        censored_share=_censored(panel, rates, threshold),
        refused=refused,
        assumptions=(
            "Steps come independently at a constant rate, with the sizes that were seen.",
            "Changes too small to be detected as steps are ignored.",
        ),
        details={"n_steps": n, "releases": releases, "left_out": len(steps) - len(rates.series)},
    )


def _censored(panel: Panel, rates: Rates, threshold: float) -> float:
    """Return the share of the series whose measured error never exceeded the threshold."""
    if not len(rates.series):
        return math.nan
    largest = np.maximum.reduceat(np.abs(panel.error), panel.starts[:-1])
    return float((largest[rates.series] < threshold).mean())


def _half_lives(
    rates: Rates, threshold: float, start: Floats, end: float, level: float, seed: int
) -> tuple[float, float, float]:
    """Return the half-life and its interval; sizes and errors are relative to the threshold."""
    sizes, k = rates.sizes / threshold, rates.n_clusters
    half_life = float(_crossing(rates, sizes, start, end, _FINE, np.ones((1, k)))[0])
    rng = np.random.default_rng(seed)
    # Where series step at the same releases, fewer independent clusters say as much; draws from
    # few clusters or steps vary too little, as a normal law does beside Student t.
    few = min(k, len(sizes))
    tail = (1 + level) / 2
    repeated = _repeated(rates, sizes) * (stdtrit(few - 1, tail) / ndtri(tail)) ** 2
    repeated *= few / (few - 1)
    cluster = repeated * rng.gamma(1 / repeated, size=(_DRAWS, k))
    cluster = cluster[cluster[:, rates.cluster].any(axis=1)]
    drawn = _crossing(rates, sizes, start, end, _COARSE, cluster)
    # Quantiles between finite and infinite draws are infinite.
    low = np.quantile(drawn, (1 - level) / 2, method="lower")
    high = np.quantile(drawn, (1 + level) / 2, method="higher")
    return half_life, min(float(low), half_life, end), max(float(high), half_life)


def _repeated(rates: Rates, sizes: Floats) -> float:
    """Return by how much steps at the same releases make the number of steps vary more.

    It is the variance over releases over that of independent clusters: the larger of that of the
    number of steps, and of steps by how much of the threshold each takes.
    """
    shares = rates.exposure.sum(axis=0)
    used = shares > 0
    most = 1.0
    for counted in (np.ones(len(sizes)), np.minimum(sizes**2, 1.0)):
        found = np.bincount(rates.at, counted, len(shares))
        off = (found - counted.sum() * shares / shares.sum())[used]
        # Steps of a cluster at a release are one.
        cells = rates.cluster * len(shares) + rates.at
        alone = np.bincount(np.unique(cells, return_inverse=True)[1], counted)
        ratio = (off**2).sum() / (alone**2).sum() * used.sum() / max(used.sum() - 1, 1)
        most = max(most, float(ratio))
    return most


def _crossing(
    rates: Rates, sizes: Floats, start: Floats, end: float, fine: int, cluster: Floats
) -> Floats:
    """Return when half of the series are out, for each row of weights; inf after ``end``.

    Parameters
    ----------
    rates : Rates
    sizes, start : ndarray
        Steps, and errors at time 0, over the threshold.
    end : float
    fine : int
        Grid points from 0 to the threshold.
    cluster : ndarray, shape (b, clusters)
        Weights.
    """
    rate, spread = _law_of_rates(rates, cluster[:, rates.cluster_of])
    # Series have rates of their own: those at equal shares of a gamma law, over its mean.
    shares = (np.arange(_RATES) + 0.5) / _RATES
    own = gammaincinv(1 / spread[:, None], shares) * spread[:, None]
    own /= own.mean(axis=1, keepdims=True)
    most = np.minimum(rate * end * own[:, -1], _MOST_STEPS)
    weights = cluster[:, rates.cluster]
    weights = weights / weights.sum(axis=1, keepdims=True)
    inside = _inside(sizes, weights, most, start, fine)
    time = np.full(len(weights), np.inf)
    at = np.linspace(0, end, _TIMES + 1)
    for b in range(len(weights)):
        passed = rate[b] * own[b] * at[:, None]
        left = np.interp(passed, np.linspace(0, most[b], _STEPS + 1), inside[b]).mean(axis=1)
        if left[-1] <= 0.5:
            k = int(np.argmax(left <= 0.5))
            gone = (left[k - 1] - 0.5) / (left[k - 1] - left[k])
            time[b] = at[k - 1] + (at[k] - at[k - 1]) * gone
    return time


def _law_of_rates(rates: Rates, weight: Floats) -> tuple[Floats, Floats]:
    """Return mean and squared coefficient of variation of the rates of series, most likely.

    The number of steps of a series that was watched for a time has a negative binomial law. It
    holds although a series is watched only until it leaves: frequent steps end its time early.

    Parameters
    ----------
    rates : Rates
    weight : ndarray, shape (b, s)
        Of series.
    """
    n = np.bincount(rates.series_of, minlength=len(rates.spans))
    known = np.unique(np.column_stack([n, rates.spans]), axis=0, return_inverse=True)
    (n, time), pair = known[0].T, known[1].ravel()
    of_pair = np.zeros((len(weight), len(n)))
    np.add.at(of_pair.T, pair, weight.T)
    mean = len(rates.sizes) / rates.spans.sum() * np.geomspace(0.1, 10, _MEANS)
    shape = 1 / np.array(_VARIATIONS)[:, None, None]
    each = gammaln(shape + n) - gammaln(shape) + shape * np.log(shape)
    each = each + n * np.log(mean)[:, None]
    each = each - (shape + n) * np.log(shape + mean[:, None] * time)
    total = np.einsum("bp,vmp->bvm", of_pair, each)
    best = total.reshape(len(weight), -1).argmax(axis=1)
    variation, at = np.unravel_index(best, total.shape[1:])
    return mean[at], np.array(_VARIATIONS)[variation]


def _inside(sizes: Floats, weights: Floats, most: Floats, start: Floats, fine: int) -> Floats:
    """Return the share of series that have never been out, after 0 to ``most`` steps each.

    ``most`` is the mean number of steps; shape (b, steps + 1), at equal distances.
    """
    from scipy.linalg import expm

    points = 2 * fine - 1
    # A step over the whole grid leaves it from anywhere.
    offset, share = _on_grid(np.clip(sizes, -2, 2), fine)
    law = np.zeros((len(weights), 4 * fine + 2))
    for k, part in ((0, 1 - share), (1, share)):
        np.add.at(law.T, offset + 2 * fine + k, (weights * part).T)
    i = np.arange(points)
    kernel = law[:, i[None, :] - i[:, None] + 2 * fine]
    moved = expm(most[:, None, None] / _STEPS * (kernel - np.eye(points)))
    at, share = _on_grid(start, fine)
    first = np.zeros(points + 2)
    np.add.at(first, at + fine, 1 - share)
    np.add.at(first, np.minimum(at + fine + 1, points + 1), share)
    p = np.tile(first[1:-1] / first[1:-1].sum(), (len(weights), 1))
    inside = np.ones((len(weights), _STEPS + 1))
    for k in range(1, _STEPS + 1):
        p = np.einsum("bi,bij->bj", p, moved)
        inside[:, k] = p.sum(axis=1)
    return inside


def _on_grid(x: Floats, fine: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the grid point below each value, and how far the value is above it."""
    below = np.floor(x * fine).astype(np.int64)
    return below, x * fine - below
