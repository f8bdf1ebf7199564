"""The distribution of a total, from moments or from draws, with estimated tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy import special

from errcomp.propagation.errors.tails import NORMAL_TAILS, Tails
from errcomp.propagation.sums import Moments
from errcomp.propagation.terms import Floats, Kind

__all__ = [
    "Distribution",
    "FromDraws",
    "FromMoments",
]

_LARGEST_LOG = 700.0  # of a number in floating point


class Distribution(Protocol):
    """Distribution of a predicted time, as results use it."""

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

    def quantile(self, q: float) -> float:
        """Time that is not exceeded with this probability.

        Examples
        --------
        >>> draws = FromDraws(np.array([1.0, 2.0, 3.0]), 2.0, 1.0, "three draws")
        >>> draws.quantile(0.5)
        2.0
        """
        ...

    def cdf(self, time: float) -> float:
        """Probability that the time is at most this.

        Examples
        --------
        >>> draws = FromDraws(np.array([1.0, 2.0, 3.0, 4.0]), 2.5, 1.3, "four draws")
        >>> draws.cdf(1.5)
        0.25
        """
        ...


@lru_cache(maxsize=1000)
def _standard_quantile(tails: Tails, q: float) -> float:
    """Return a quantile of errors in units of their sd, computed once for all runs of a table."""
    return float(tails.quantile(q))


@dataclass(frozen=True, slots=True, eq=False)
class FromMoments:
    """Distribution matched to the exact mean and variance of a sum.

    Attributes
    ----------
    moments : Moments
        Moments of the sum.
    tails : Tails
        Shape of its error, instead of a normal.
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
        """Method of the quantiles, in words."""
        if self.tails == NORMAL_TAILS:
            return self.moments.method
        student = f"Student t tails with {self.tails.combined:.1f} df"
        if self.tails.observed is None:
            return f"{self.moments.method}; {student}"
        return f"{self.moments.method}; tails from observed errors of totals, mixed with {student}"

    def quantile(self, q: float) -> float:
        """Return the time that is not exceeded with this probability.

        Raises
        ------
        InputError
            q is not in (0, 1).

        Examples
        --------
        >>> from errcomp.propagation.sums import Moments
        >>> total = Moments(100.0, 100.0, 10.0, "normal", 100.0, 10.0, math.inf, 1, 1, "ms")
        >>> round(FromMoments(total).quantile(0.95), 2)
        116.45
        """
        plain = self.moments.quantile(q)
        if self.tails == NORMAL_TAILS:
            return plain
        value = self.moments.location + self.moments.scale * _standard_quantile(self.tails, q)
        return math.exp(value) if self.moments.law == "log-normal" else value

    def cdf(self, time: float) -> float:
        """Probability that the time is at most this.

        Examples
        --------
        >>> from errcomp.propagation.sums import Moments
        >>> total = Moments(100.0, 100.0, 10.0, "normal", 100.0, 10.0, math.inf, 1, 1, "ms")
        >>> round(FromMoments(total).cdf(110.0), 4)
        0.8413
        """
        law = self.moments.law
        if time <= 0 and law.startswith("log-normal"):
            return 0.0
        if self.moments.laws is not None:
            return float(self.moments.laws.cdf(math.log(time)))
        value = math.log(time) if law == "log-normal" else time
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
        In increasing order; infinite draws at the end.
    mean, sd : float or None
        Of the draws before tails were added; None if a draw is infinite.
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

    def quantile(self, q: float) -> float:
        """Return the time that is not exceeded with this probability; infinite if saturated.

        Examples
        --------
        >>> FromDraws(np.array([1.0, 2.0, 3.0]), 2.0, 1.0, "three draws").quantile(0.5)
        2.0
        """
        position = q * (len(self.draws) - 1)
        low, high = self.draws[math.floor(position)], self.draws[math.ceil(position)]
        if math.isinf(high):  # no interpolation towards an infinite time
            return float(high)
        return float(low + (high - low) * (position - math.floor(position)))

    def cdf(self, time: float) -> float:
        """Probability that the time is at most this.

        Examples
        --------
        >>> FromDraws(np.array([1.0, 2.0, 3.0, 4.0]), 2.5, 1.3, "four draws").cdf(1.5)
        0.25
        """
        return float(np.searchsorted(self.draws, time, side="right") / len(self.draws))


def stretched(draws: Floats, tails: Tails, kind: Kind) -> Floats:
    """Give draws other tails: stretch deviations from the median by their rank.

    On the logarithmic scale for log-ratio errors. Tails of whole runs were estimated from totals
    and are not drawn per kernel. Infinite draws stay unchanged and do not count in the median; on
    the logarithmic scale times of 0 stay unchanged, too.
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
    # Infinite means saturated: other values stay finite.
    out[moved] = np.exp(np.minimum(centre + factor * (logs - centre), _LARGEST_LOG))
    return np.sort(out)
