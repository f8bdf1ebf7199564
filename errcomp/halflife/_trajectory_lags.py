"""Rows by lag since calibration, summed over clusters, and intervals of means over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from errcomp.halflife._drift_pairs import noise_of, rows_of
from errcomp.halflife._moments import (
    chi_square_bounds,
    difference_bounds,
    group_sums,
    sampling_df,
)
from errcomp.halflife._panel_checks import check_clock, check_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.halflife.design import Clock, Panel

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["Lags", "effective", "mean_bounds", "rows_by_lag", "square_bounds"]


@dataclass(frozen=True, slots=True, eq=False)
class Lags:
    """Rows by lag: each with its class of lags, its cluster and its noise."""

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
    """Class the rows of a panel by lag, with the noise that is in their errors."""
    check_clock(panel, clock)
    check_steps(panel)
    series = rows_of(panel)
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
    """Return the number of clusters in effect at each lag: (Σn)² / Σn²."""
    return np.asarray(n.sum(1) ** 2 / (n**2).sum(1))


def _variance(sums: Floats, n: Floats) -> Floats:
    # Of a mean over rows in clusters; clusters of unequal size count by their number in effect.
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
    """Return bounds by lag of the mean square less noise."""
    mean = square.sum(1) / n.sum(1)
    variance = _variance(square, n)
    relative = np.divide(variance, mean**2, out=np.zeros_like(mean), where=mean > 0)
    low, high = chi_square_bounds(mean, sampling_df(relative, effective(n)), tail)
    return difference_bounds((mean, low, high), (noise, noise, noise))
