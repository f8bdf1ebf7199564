r"""The error of a frozen model at each later version: bias, size, and its parts.

All values are by lag since calibration, over the series of a panel, and conditional on the observed
releases. Intervals hold for *these* releases and similar series. They do not cover the effect of
other releases; for that see `errcomp.halflife.drift.variogram`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from errcomp.errors import InputError
from errcomp.halflife.drift import (
    chi_square_bounds,
    difference_bounds,
    group_sums,
    noise_of,
    sampling_df,
)
from errcomp.halflife.panel import (
    Clock,
    HalfLife,
    Panel,
    check_clock,
    check_positive,
    check_steps,
    tails,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

__all__ = ["Trajectory", "error_trajectory", "trajectory_half_life"]


#: Effective number of clusters that an interval needs.
_FEWEST_CLUSTERS = 5
_DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    r"""Errors by lag since calibration; arrays have one entry per lag.

    Attributes
    ----------
    unit : {"releases", "months"}
    lag : ndarray, shape (k,)
        Since the first row of each series; 0 is the calibration itself.
    n, n_clusters : ndarray of int, shape (k,)
        Numbers of series at that lag, and of their clusters.
    bias, bias_low, bias_high : ndarray, shape (k,)
        Mean log error; above 0 the model overestimates.
    size, size_low, size_high : ndarray, shape (k,)
        Mean \|log error\|, noise included.
    rms, rms_low, rms_high : ndarray, shape (k,)
        Root mean square log error, noise subtracted: √(mean e² - mean sd²).
    noise : ndarray, shape (k,)
        Root mean square of the subtracted noise; 0 if unknown.
    below_noise : ndarray of bool, shape (k,)
        Whether noise exceeded the whole mean square, so that ``rms`` was set to 0.
    reference, predictor : ndarray or None, shape (k,)
        Mean changes of the reference and of the predictor, as parts of the error.
    level : float
        Of the intervals; bounds are NaN at lags with fewer than five effective clusters.
    """

    unit: Clock
    lag: Floats
    n: Codes
    n_clusters: Codes
    bias: Floats
    bias_low: Floats
    bias_high: Floats
    size: Floats
    size_low: Floats
    size_high: Floats
    rms: Floats
    rms_low: Floats
    rms_high: Floats
    noise: Floats
    below_noise: NDArray[np.bool_]
    reference: Floats | None
    predictor: Floats | None
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; missing bounds are None.

        Examples
        --------
        >>> import errcomp as ec
        >>> half_lives = ec.half_life({"version": ["1", "2"], "measured": [4.0, 5.0]})
        >>> document = half_lives.groups[0].trajectory.to_dict()
        >>> document["lag"], document["rms_low"]
        ([0.0, 1.0], [None, None])
        """
        document: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value = [None if x != x else x for x in value.tolist()]
            document[name] = value
        return document


def error_trajectory(
    panel: Panel,
    *,
    reference: ArrayLike | None = None,
    predictor: ArrayLike | None = None,
    clock: Clock = "releases",
    level: float = 0.95,
) -> Trajectory:
    r"""Return bias, mean size and RMS of the log error of the frozen model, by lag.

    .. math:: \mathrm{rms}_h = \sqrt{\frac1{n_h} \sum_i (e_{ih}^2 - \sigma_{ih}^2)}

    over the n series validated h releases (or months, rounded) after their first version. If noise
    exceeds the mean square, the root is set to 0 and the lag is marked in ``below_noise``. If the
    prediction is the first measurement, its noise counts, too.

    The intervals of bias and size are Student t over clusters. That of the mean square is a χ²
    whose degrees of freedom follow from its variance over clusters, at most one per cluster; noise
    is subtracted by the recovery of variance estimates, and is treated as known. Series leave and
    join between lags: compare ``n`` before reading a trend.

    Parameters
    ----------
    panel : Panel
    reference, predictor : array_like, shape (n,), optional
        Changes of the measurement and of the prediction since the first row, for each row of the
        panel: log(measured_first / measured) and log(predicted / predicted_first). They add up to
        the change of the error.
    clock : {"releases", "months"}
    level : float

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        No series has two versions, a part does not have one value per row, versions have no dates
        and the clock is months, or ``level`` is not between 0 and 1.

    References
    ----------
    Satterthwaite (1946), "An Approximate Distribution of Estimates of Variance Components",
    doi:10.2307/3002019.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2"),
    ...     months=np.full(3, np.nan),
    ...     names=("gemm", "softmax"),
    ...     clusters=np.array([0, 1]),
    ...     starts=np.array([0, 3, 6]),
    ...     version=np.array([0, 1, 2, 0, 1, 2]),
    ...     error=np.array([0.03, 0.03, 0.04, -0.04, 0.1, 0.2]),
    ...     sd=np.full(6, 0.01),
    ...     noise_df=np.full(2, np.inf),
    ...     frozen_at_first=False,
    ... )
    >>> trajectory = error_trajectory(panel)
    >>> trajectory.bias.round(3).tolist(), trajectory.rms.round(3).tolist()
    ([-0.005, 0.065, 0.12], [0.034, 0.073, 0.144])
    """
    tail = tails(level)
    lags = rows_by_lag(panel, clock)
    n = lags.sums(np.ones(len(lags.of)))
    enough = effective(n) >= _FEWEST_CLUSTERS
    bias, size = (mean_bounds(lags.sums(x), n, tail) for x in (panel.error, np.abs(panel.error)))
    square, noise = lags.sums(panel.error**2), lags.sums(lags.noise).sum(1) / n.sum(1)
    total = square.sum(1) / n.sum(1)
    low, high = square_bounds(square, n, noise, tail)

    def part(values: ArrayLike | None, name: str) -> Floats | None:
        if values is None:
            return None
        given = np.asarray(values, float)
        if given.shape != panel.error.shape:
            raise InputError(
                f"{name} must have one value per row ({len(panel.error):,}), got shape "
                f"{given.shape}."
            )
        return np.asarray(lags.sums(given).sum(1) / n.sum(1))

    def shown(bound: Floats) -> Floats:
        return np.where(enough, bound, np.nan)

    return Trajectory(
        unit=clock,
        lag=lags.lag,
        n=n.sum(1).astype(int),
        n_clusters=(n > 0).sum(1),
        bias=bias[0],
        bias_low=shown(bias[1]),
        bias_high=shown(bias[2]),
        size=size[0],
        size_low=shown(np.maximum(size[1], 0.0)),
        size_high=shown(size[2]),
        rms=np.sqrt(np.maximum(total - noise, 0.0)),
        rms_low=shown(np.sqrt(low)),
        rms_high=shown(np.sqrt(high)),
        noise=np.sqrt(noise),
        below_noise=(total <= noise) & (noise > 0),
        reference=part(reference, "reference"),
        predictor=part(predictor, "predictor"),
        level=float(level),
    )


def trajectory_half_life(
    panel: Panel,
    *,
    threshold: float,
    clock: Clock = "releases",
    level: float = 0.95,
    seed: int = 0,
) -> HalfLife:
    r"""Return the first lag at which the RMS error of the series reaches a threshold.

    .. math:: h^* = \min \{h > 0 : \mathrm{rms}_h \ge \mathrm{threshold}\}

    ``low`` is the first lag at which the upper bound of the RMS reaches the threshold; only the
    bound at h* has to hold. ``high`` is the first lag at which the lower bound reaches it. These
    lower bounds are simultaneous over lags, because noise makes the first crossing too early, the
    more so with many lags. ``high`` and ``half_life`` are inf if the threshold was not reached.

    Conditional on the observed releases: the lag at which these releases made the model expire, for
    series like these. The estimate is the crossing of the curve made non-decreasing (isotonic
    regression of the mean squares). A lag is a whole number of releases or months, so the interval
    covers more often than its level.

    Parameters
    ----------
    panel : Panel
    threshold : float
        On the log scale: twice the calibrated error, or √3 times if errors start from 0.
    clock : {"releases", "months"}
    level : float
    seed : int
        Of the draws behind the simultaneous bounds.

    Returns
    -------
    HalfLife
        Refused if no lag has five effective clusters, or if the error exceeded the threshold at
        calibration. ``details`` holds lag, rms, low and high by lag.

    Raises
    ------
    InputError
        As `error_trajectory`, or ``threshold`` is not positive and finite.

    References
    ----------
    Hothorn, Bretz and Westfall (2008), "Simultaneous Inference in General Parametric Models",
    doi:10.1002/bimj.200810425.

    Examples
    --------
    >>> from errcomp.halflife.panel import Panel
    >>> rng = np.random.default_rng(0)
    >>> error = rng.normal(0, [0.03, 0.03, 0.04, 0.09, 0.09], (40, 5))
    >>> panel = Panel(
    ...     versions=("1", "2", "3", "4", "5"),
    ...     months=np.full(5, np.nan),
    ...     names=tuple(str(i) for i in range(40)),
    ...     clusters=np.arange(40),
    ...     starts=np.arange(0, 201, 5),
    ...     version=np.tile(np.arange(5), 40),
    ...     error=error.ravel(),
    ...     sd=np.full(200, 0.01),
    ...     noise_df=np.full(40, np.inf),
    ...     frozen_at_first=False,
    ... )
    >>> half_life = trajectory_half_life(panel, threshold=0.06)
    >>> half_life.half_life, half_life.low, half_life.high
    (3.0, 3.0, 3.0)
    """
    tail = tails(level)
    check_positive(threshold, "threshold")
    lags = rows_by_lag(panel, clock)
    n, square = lags.sums(np.ones(len(lags.of))), lags.sums(panel.error**2)
    noise = lags.sums(lags.noise).sum(1) / n.sum(1)
    rms = np.sqrt(np.maximum(square.sum(1) / n.sum(1) - noise, 0.0))
    high_rms = np.sqrt(square_bounds(square, n, noise, tail)[1])
    low_rms = np.sqrt(square_bounds(square, n, noise, _simultaneous(square, n, tail, seed))[0])
    enough = effective(n) >= _FEWEST_CLUSTERS
    use = enough & (lags.lag > 0)
    half = low = high = None
    refused = ""
    if not use.any():
        refused = (
            f"no release after calibration has at least {_FEWEST_CLUSTERS} effective clusters of "
            f"series (the most is {effective(n)[lags.lag > 0].max(initial=0.0):.1f}), so the "
            "spread between series is unknown."
        )
    elif enough[0] and low_rms[0] >= threshold:
        refused = (
            f"the RMS error at calibration, {rms[0]:.3g} (lower bound {low_rms[0]:.3g}), was "
            f"already above the threshold of {threshold:.3g}."
        )
    else:
        lag = lags.lag[use]
        high = _first(lag, low_rms[use] >= threshold, np.inf)
        low = _first(lag, high_rms[use] >= threshold, float(lag[-1]))
        half = _first(lag, _rising(rms[use], n.sum(1)[use]) >= threshold, np.inf)
        half = min(max(half, low), high)
    return HalfLife(
        method="trajectory",
        half_life=half,
        low=low,
        high=high,
        level=float(level),
        unit=clock,
        n_series=int((np.diff(panel.starts) > 1).sum()),
        censored_share=_censored(panel, threshold),
        refused=refused,
        assumptions=(
            "The result holds for the observed releases: other releases may change errors "
            "differently.",
            "Apart from effects of the releases, clusters of series are independent.",
            *(() if lags.known else ("Without repeats, noise counts as error.",)),
        ),
        details={
            "lag": lags.lag.tolist(),
            "rms": rms.tolist(),
            "low": low_rms.tolist(),
            "high": [x if np.isfinite(x) else None for x in high_rms.tolist()],
        },
    )


def _first(lag: Floats, reached: NDArray[np.bool_], otherwise: float) -> float:
    return float(lag[np.argmax(reached)]) if reached.any() else otherwise


def _rising(rms: Floats, weights: Floats) -> Floats:
    # A curve that goes up and down by chance has its first crossing too early.
    from scipy.optimize import isotonic_regression

    return np.sqrt(isotonic_regression(rms**2, weights=weights).x)


def _simultaneous(square: Floats, n: Floats, tail: float, seed: int) -> float:
    """Return the tail at which pointwise bounds hold at all lags at once."""
    mean = square.sum(1) / n.sum(1)
    residual = square - mean[:, None] * n
    scale = np.sqrt((residual**2).sum(1))
    residual = np.divide(residual, scale[:, None], where=scale[:, None] > 0, out=residual * 0)
    values, vectors = np.linalg.eigh(residual @ residual.T)
    draws = np.random.default_rng(seed).standard_normal((_DRAWS, len(values)))
    largest = (draws * np.sqrt(np.maximum(values, 0.0)) @ vectors.T).max(axis=1)
    return float(min(ndtr(-np.quantile(largest, 1 - tail)), tail))


def _censored(panel: Panel, threshold: float) -> float:
    beyond = np.maximum.reduceat(np.abs(panel.error), panel.starts[:-1]) >= threshold
    return float((~beyond)[np.diff(panel.starts) > 1].mean())


# Rows by lag since calibration, summed over clusters, and intervals of means over them.


@dataclass(frozen=True, slots=True, eq=False)
class Lags:
    """Rows with their class of lags, their cluster and their noise."""

    lag: Floats
    of: Codes
    cluster: Codes
    n_clusters: int
    noise: Floats
    known: bool

    def sums(self, values: Floats) -> Floats:
        """Return sums by lag and cluster, shape (k, c)."""
        shape = len(self.lag), self.n_clusters
        return group_sums(values, self.of * shape[1] + self.cluster, shape[0] * shape[1]).reshape(
            shape
        )


def rows_by_lag(panel: Panel, clock: Clock) -> Lags:
    """Class the rows of a panel by lag, with the noise of their errors."""
    check_clock(panel, clock)
    check_steps(panel)
    series = panel.series
    first = panel.starts[:-1]
    time = panel.times(clock)
    since = time - time[first][series]
    if clock == "months":
        # Series that start at different versions have lags that differ by days: classes of a month.
        since = np.rint(since)
    lag, of = np.unique(since, return_inverse=True)
    cluster = np.unique(panel.clusters, return_inverse=True)[1][series]
    noise = noise_of(panel)
    variance = noise.variance
    if panel.frozen_at_first:
        # The prediction is the first measurement: its noise is in all later errors, its own is 0.
        later = np.ones(len(series), bool)
        later[first] = False
        variance = np.where(later, variance + variance[first][series], 0.0)
    return Lags(lag, of, cluster, int(cluster.max()) + 1, variance, noise.known)


def effective(n: Floats) -> Floats:
    """Return the effective number of clusters at each lag: (Σn)² / Σn²."""
    return np.asarray(n.sum(1) ** 2 / (n**2).sum(1))


def _variance(sums: Floats, n: Floats) -> Floats:
    # Of a mean over rows in clusters; unequal clusters count by their effective number.
    k = np.maximum(effective(n), 1 + 1e-9)
    mean = sums.sum(1) / n.sum(1)
    residual = sums - mean[:, None] * n
    return np.asarray((residual**2).sum(1) * k / (k - 1) / n.sum(1) ** 2)


def mean_bounds(sums: Floats, n: Floats, tail: float) -> tuple[Floats, Floats, Floats]:
    """Return mean, low and high by lag, by Student's t over clusters."""
    mean = sums.sum(1) / n.sum(1)
    quantile = stdtrit(np.maximum(effective(n) - 1, 1e-3), 1 - tail)
    margin = quantile * np.sqrt(_variance(sums, n))
    return mean, mean - margin, mean + margin


def square_bounds(square: Floats, n: Floats, noise: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return bounds by lag of the mean square minus noise."""
    mean = square.sum(1) / n.sum(1)
    variance = _variance(square, n)
    relative = np.divide(variance, mean**2, out=np.zeros_like(mean), where=mean > 0)
    low, high = chi_square_bounds(mean, sampling_df(relative, effective(n)), tail)
    return difference_bounds((mean, low, high), (noise, noise, noise))
