"""Distribution of a total from its moments, and its quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import optimize, special

from errcomp.errors import InputError, renamed
from errcomp.propagation.terms import Floats
from errcomp.results import Caveat

Law = Literal["normal", "student-t", "log-normal", "normal mixture", "log-normal mixture"]

_METHODS: dict[Law, str] = {
    "normal": "normal with the mean and variance of the total",
    "student-t": "Student t with the location and scale of the total",
    "log-normal": "log-normal with the mean and variance of the total (Fenton-Wilkinson)",
    "normal mixture": "mixture of normals (Student t errors are normal errors with a random scale; "
    "for each value of that scale, the total is taken as normal)",
    "log-normal mixture": "mixture of log-normals (Student t errors are normal errors with a "
    "random scale; for each value of that scale, the total is taken as log-normal)",
}
#: Probability that is cut off at each end of the mixing variable.
_REST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Normal or log-normal distributions, one for each value of a mixing variable.

    Attributes
    ----------
    weight, factor, location, scale : ndarray, shape (nodes,)
        Probability of the value; its factor of the spreads; parameters of its distribution.
    logarithmic : bool
        Location and scale are those of the logarithm.
    """

    weight: Floats
    factor: Floats
    location: Floats
    scale: Floats
    logarithmic: bool

    def cdf(self, value: float) -> float:
        """Return the probability up to a value; for log-normals pass its logarithm."""
        return float(self.weight @ special.ndtr((value - self.location) / self.scale))

    def quantile(self, q: float) -> float:
        """Return the quantile, which lies between those of all the distributions."""
        each = self.location + self.scale * special.ndtri(q)
        low, high = float(each.min()), float(each.max())
        # If all agree, rounding may put the root just outside.
        margin = float(self.scale.min())
        value = float(
            optimize.brentq(
                lambda y: self.cdf(y) - q,
                low - margin,
                high + margin,
                xtol=1e-12 * margin,
                rtol=1e-14,
            )
        )
        return math.exp(value) if self.logarithmic else value

    def moments(self, df: float, centre: float) -> tuple[float | None, float | None]:
        """Return mean and standard deviation of normal distributions; None if they do not exist.

        Parameters
        ----------
        df : float
            Degrees of freedom.
        centre : float
            Location at the factor 0. What lies beyond the last node is continued: the distance from
            it is proportional to the factor.
        """
        if df <= 1:
            return None, None
        away, largest = self.location - centre, self.factor[0]
        mean_factor = math.sqrt(df / 2) * math.exp(
            float(special.gammaln((df - 1) / 2) - special.gammaln(df / 2))
        )
        beyond = mean_factor - float(self.weight @ self.factor)
        shift = float(self.weight @ away) + float(away[0]) / largest * beyond
        if df <= 2:
            return centre + shift, None
        square = away**2 + self.scale**2
        beyond = df / (df - 2) - float(self.weight @ self.factor**2)
        second = float(self.weight @ square) + float(square[0]) / largest**2 * beyond
        return centre + shift, math.sqrt(max(0.0, second - shift**2))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Mean, standard deviation and approximate distribution of a total.

    Attributes
    ----------
    prediction : float
        The total without correction of bias.
    mean, sd : float or None
        None if they do not exist: a log-ratio error with Student t tails has no mean (like the
        exponential of a t variable), a t variable with df ≤ 1 has no mean, and with df ≤ 2 no
        variance. Quantiles always exist.
    law : {"normal", "student-t", "log-normal", "normal mixture", "log-normal mixture"}
        Distribution of the quantiles; `method` names it in words.
    location, scale : float
        Parameters of that distribution: mean and sd (normal), location and scale (Student t), mean
        and sd of the logarithm (log-normal). For a mixture those at the mixing variable 1.
    df : float
        Degrees of freedom; infinity for normal and log-normal.
    n_terms : int
    n_instances : int or None
        Repetitions of all terms; None for a graph, which has its own.
    unit : str or None
    laws : Mixture or None
        The distributions that are averaged.
    caveats : tuple of Caveat
    """

    prediction: float
    mean: float | None
    sd: float | None
    law: Law
    location: float
    scale: float
    df: float
    n_terms: int
    n_instances: int | None
    unit: str | None = None
    laws: Mixture | None = None
    caveats: tuple[Caveat, ...] = ()

    @property
    def method(self) -> str:
        """Method of the quantiles, in words."""
        return _METHODS[self.law]

    @property
    def relative_sd(self) -> float | None:
        """Standard deviation over mean, a fraction; None if undefined or the mean is 0."""
        if self.sd is None or not self.mean:
            return None
        return self.sd / abs(self.mean)

    @renamed(level="q")
    def quantile(self, q: float) -> float:
        """Return the value below which the total stays with this probability.

        Parameters
        ----------
        q : float
            In (0, 1).

        Raises
        ------
        InputError
            q is not in (0, 1).

        Examples
        --------
        >>> total = Moments(100.0, 100.0, 10.0, "normal", 100.0, 10.0, math.inf, 1, 1, "ms")
        >>> round(total.quantile(0.95), 2)
        116.45
        """
        _check_fraction("q", q)
        if self.laws is not None:
            return self.laws.quantile(q)
        if self.law == "student-t":
            return self.location + self.scale * float(special.stdtrit(self.df, q))
        value = self.location + self.scale * float(special.ndtri(q))
        return math.exp(value) if self.law == "log-normal" else value

    def band(self, level: float) -> tuple[float, float]:
        """Return the central band that contains the total with this probability.

        Parameters
        ----------
        level : float
            In (0, 1), e.g. 0.9: from the 5 % to the 95 % quantile.

        Raises
        ------
        InputError
            The level is not in (0, 1).

        Examples
        --------
        >>> total = Moments(100.0, 100.0, 10.0, "normal", 100.0, 10.0, math.inf, 1, 1, "ms")
        >>> [round(end, 2) for end in total.band(0.9)]
        [83.55, 116.45]
        """
        _check_fraction("level", level)
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> total = Moments(100.0, 100.0, 10.0, "normal", 100.0, 10.0, math.inf, 1, 1, "ms")
        >>> total.to_dict()["relative_sd"]
        0.1
        """
        names = (
            "prediction mean sd relative_sd law method location scale df n_terms n_instances unit"
        )
        return {name: getattr(self, name) for name in names.split()} | {
            "df": None if math.isinf(self.df) else self.df,
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def _check_fraction(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(
            f"{name} must be between 0 and 1, got {value}. Give a fraction: 0.95 is 95 %."
        )


def log_normal_parameters(mean: float, relative_sd: float) -> tuple[float, float]:
    """Return mean and standard deviation of the logarithm of a log-normal variable."""
    square = math.log1p(relative_sd**2)
    return math.log(mean) - square / 2, math.sqrt(square)


def mixture(
    moments: Callable[[float], tuple[float, float]],
    df: float,
    *,
    logarithmic: bool,
    largest_factor: float = math.inf,
    nodes: int = 65,
) -> Mixture:
    r"""Return distributions of a function of multivariate t variables, by mixing variable.

    A multivariate t is a normal divided by :math:`\sqrt W`, :math:`W \sim \chi^2_\nu / \nu`: given
    W the variables are normal with their spreads times the factor :math:`1/\sqrt W`. W is
    integrated over by the trapezoidal rule on ln W.

    Parameters
    ----------
    moments : callable
        Mean and standard deviation at a factor.
    df : float
    logarithmic : bool
        Match log-normal distributions, else normal ones.
    largest_factor : float
        Beyond it the distribution continues with a scale proportional to the factor.
    nodes : int
        65 keep the relative error of tail probabilities below 1e-7 for df ≥ 2 (1e-4 for df = 1),
        33 below 1e-5 for df ≥ 3.
    """
    # Chi-square is below the first and above the second with this probability.
    low, high = 2 * special.gammaincinv(df / 2, _REST) / df, special.chdtri(df, _REST) / df
    y = np.linspace(math.log(low), math.log(high), nodes)
    exponent = df / 2 * (y - np.exp(y))
    weight = np.exp(exponent - exponent.max())
    factor = np.exp(-y / 2)
    location, scale = np.empty(nodes), np.empty(nodes)
    inside = np.flatnonzero(factor <= largest_factor)
    for i in inside:
        mean, sd = moments(float(factor[i]))
        law = log_normal_parameters(mean, sd / mean) if logarithmic else (mean, sd)
        location[i], scale[i] = law
    first = inside[0]
    location[:first], scale[:first] = location[first], scale[first] / factor[first] * factor[:first]
    return Mixture(weight / weight.sum(), factor, location, scale, logarithmic)
