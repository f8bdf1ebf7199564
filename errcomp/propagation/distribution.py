"""The distribution of a total, from moments or from draws, with the tails that were found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from errcomp.propagation.errors.tails import NORMAL_TAILS, Tails
from errcomp.propagation.sums import Moments
from errcomp.propagation.terms import Floats, Kind

__all__ = ["Distribution", "FromDraws", "FromMoments", "stretched"]

_LARGEST_LOG = 700.0  # of a number in floating point


class Distribution(Protocol):
    """What a result asks of the distribution of a predicted time."""

    @property
    def mean(self) -> float | None:
        """Mean; None where there is none."""
        ...

    @property
    def sd(self) -> float | None:
        """Standard deviation; None where there is none."""
        ...

    @property
    def saturated(self) -> float:
        """Probability of an infinite time: a queue beyond its capacity."""
        ...

    @property
    def method(self) -> str:
        """How the quantiles come about, in words."""
        ...

    def quantile(self, level: float) -> float:
        """Time that is not exceeded with this probability."""
        ...

    def cdf(self, time: float) -> float:
        """Probability that the time is at most this."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FromMoments:
    """Distribution matched to the exact mean and variance of a sum.

    Attributes
    ----------
    moments : Moments
        Of the sum.
    tails : Tails
        Shape of its error in place of the normal.
    """

    moments: Moments
    tails: Tails = NORMAL_TAILS

    @property
    def mean(self) -> float | None:
        """Mean; None for log-ratio errors with Student t tails given per kernel."""
        return self.moments.mean

    @property
    def sd(self) -> float | None:
        """Standard deviation; None as for the mean."""
        return self.moments.sd

    @property
    def saturated(self) -> float:
        """0: a sum of finite times is finite."""
        return 0.0

    @property
    def method(self) -> str:
        """How the quantiles come about, in words."""
        if self.tails == NORMAL_TAILS:
            return self.moments.method
        student = f"Student t tails with {self.tails.combined:.1f} df"
        if self.tails.observed is None:
            return f"{self.moments.method}; {student}"
        return f"{self.moments.method}; observed errors of totals, and {student}"

    def quantile(self, level: float) -> float:
        """Time that is not exceeded with this probability.

        Raises
        ------
        InputError
            The level is not in (0, 1).
        """
        plain = self.moments.quantile(level)
        if self.tails == NORMAL_TAILS:
            return plain
        value = self.moments.location + self.moments.scale * float(self.tails.quantile(level))
        return math.exp(value) if self.moments.law == "lognormal" else value

    def cdf(self, time: float) -> float:
        """Probability that the time is at most this."""
        law = self.moments.law
        if time <= 0 and law.startswith("lognormal"):
            return 0.0
        if self.moments.laws is not None:
            return float(self.moments.laws.cdf(math.log(time)))
        value = math.log(time) if law == "lognormal" else time
        if self.moments.scale == 0:
            return float(value >= self.moments.location)
        z = (value - self.moments.location) / self.moments.scale
        if law == "student-t":
            return float(special.stdtr(self.moments.df, z))
        return float(self.tails.cdf(z))


@dataclass(frozen=True, slots=True, eq=False)
class FromDraws:
    """Distribution of simulated times.

    Attributes
    ----------
    draws : ndarray, shape (n,)
        In increasing order; infinite ones at the end.
    mean, sd : float or None
        As known of the draws before tails were added; None where a draw is infinite.
    method : str
        How the draws were made.
    """

    draws: Floats
    mean: float | None
    sd: float | None
    method: str

    @property
    def saturated(self) -> float:
        """Share of infinite draws."""
        return float(np.isinf(self.draws).mean())

    def quantile(self, level: float) -> float:
        """Time that is not exceeded with this probability; infinite if saturated."""
        position = level * (len(self.draws) - 1)
        low, high = self.draws[math.floor(position)], self.draws[math.ceil(position)]
        if math.isinf(high):  # nothing lies between a time and an infinite one
            return float(high)
        return float(low + (high - low) * (position - math.floor(position)))

    def cdf(self, time: float) -> float:
        """Probability that the time is at most this."""
        return float(np.searchsorted(self.draws, time, side="right") / len(self.draws))


def stretched(draws: Floats, tails: Tails, kind: Kind) -> Floats:
    """Give draws other tails: deviations from the median are stretched by where they stand.

    On the logarithmic scale for log-ratio errors. What a run as a whole does oddly is not drawn
    per kernel: its law was estimated from totals. Infinite draws stay, and are no part of the
    median; times of 0 stay as well where there is a logarithm.
    """
    out = np.sort(draws)
    moved = np.isfinite(out)
    if kind == "log-ratio":
        moved &= out > 0
    if tails == NORMAL_TAILS or not moved.any():
        return out
    values = out[moved]
    factor = tails.stretch(len(values))
    if kind != "log-ratio":
        centre = float(np.median(values))
        out[moved] = centre + factor * (values - centre)
        return np.sort(out)
    logs = np.log(values)
    centre = float(np.median(logs))
    # Infinite means saturated: what is only far out stays a number.
    out[moved] = np.exp(np.minimum(centre + factor * (logs - centre), _LARGEST_LOG))
    return np.sort(out)
