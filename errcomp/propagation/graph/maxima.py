"""The maximum of correlated normal variables, in closed form: times that wait for each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real

import numpy as np
from scipy import special

from errcomp.errors import InputError
from errcomp.propagation.terms import Floats

__all__ = [
    "Maximum",
    "largest_log_normal",
    "largest_standard_normal",
    "maximum_of_ranks",
    "maximum_of_two",
]

#: Standard deviations of the difference beyond which the smaller mean never wins (1e-350).
_FAR = 40.0
#: Variance of a difference, relative to the sum of the variances, that counts as rounding.
_ROUNDING = 1e-15
#: Relative variance below which log-normal and normal formulas differ by less than rounding.
_SMALL = 1e-8
_ROOT_2 = math.sqrt(2.0)
_ROOT_2_PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class Maximum:
    """Mean and standard deviation of a maximum.

    Attributes
    ----------
    mean, sd : float
        In the unit of the variables.
    tightness : float
        Probability that the first variable is the largest.
    """

    mean: float
    sd: float
    tightness: float


def clark(
    mean1: float, variance1: float, mean2: float, variance2: float, covariance: float
) -> tuple[float, float, float, float]:
    """Return mean and variance of the larger of two normals, and the probability of each.

    The formula of `maximum_of_two` without its checks. If both differ only by a constant, the
    larger mean wins; if they are equal, each counts half. The covariance of the maximum with any
    other normal variable is the sum of those of each, times its probability.
    """
    spread2 = variance1 + variance2 - 2 * covariance
    gap = mean1 - mean2
    if spread2 <= _ROUNDING * (variance1 + variance2):
        if gap == 0:
            return mean1, min(variance1, variance2), 0.5, 0.5
        return _winner(mean1, variance1, mean2, variance2)
    spread = math.sqrt(spread2)
    alpha = gap / spread
    if abs(alpha) > _FAR:
        return _winner(mean1, variance1, mean2, variance2)
    first, second = _probability(alpha), _probability(-alpha)
    density = spread * math.exp(-0.5 * alpha * alpha) / _ROOT_2_PI
    # Moments of the excess over the larger mean, so that no large squares are subtracted.
    if gap >= 0:
        base, excess = mean1, density - gap * second
        square = variance1 * first + (variance2 + gap * gap) * second - gap * density
    else:
        base, excess = mean2, density + gap * first
        square = (variance1 + gap * gap) * first + variance2 * second + gap * density
    return base + excess, max(0.0, square - excess * excess), first, second


def clark_log_normal(
    mean1: float, variance1: float, mean2: float, variance2: float, covariance: float
) -> tuple[float, float, float, float]:
    r"""Return mean and variance of the larger of two joint log-normal variables, and weights.

    .. math::
        \operatorname{E} \max(X, Y) = m_1 \Phi(d_1) + m_2 \Phi(d_2), \qquad
        d_{1, 2} = \pm \frac{\ln (m_1 / m_2)}{\theta} + \frac{\theta}{2}

    with :math:`\theta^2` the variance of :math:`\ln X - \ln Y`; the second moment likewise with the
    squares of X and Y, which are also log-normal. Exact. The loadings of the maximum are those of X
    times :math:`\Phi(d_1)` plus those of Y times :math:`\Phi(d_2)`. These weights sum to more than
    1, because a common factor multiplies the whole maximum. Means must be positive. The normal
    formula is used if variances are so small that rounding dominates their squares, or if the
    covariance is impossible for log-normals.

    References
    ----------
    Margrabe (1978), "The value of an option to exchange one asset for another", The Journal of
    Finance 33(1), 177-186, doi:10.1111/j.1540-6261.1978.tb03397.x.
    """
    v1, v2 = variance1 / mean1 / mean1, variance2 / mean2 / mean2
    relative = covariance / mean1 / mean2
    if max(v1, v2) < _SMALL or relative <= -1:
        return clark(mean1, variance1, mean2, variance2, covariance)
    log1, log2 = math.log1p(v1), math.log1p(v2)
    theta2 = log1 + log2 - 2 * math.log1p(relative)
    gap = math.log(mean1) - math.log(mean2)
    if theta2 <= _ROUNDING * (log1 + log2):
        return clark(mean1, variance1, mean2, variance2, (variance1 + variance2) / 2)
    theta = math.sqrt(theta2)
    first, second = _probability(gap / theta + theta / 2), _probability(theta / 2 - gap / theta)
    mean = mean1 * first + mean2 * second
    # Over the larger mean squared, so that no square overflows.
    unit = max(mean1, mean2)
    tilt = (2 * gap + log1 - log2) / (2 * theta)
    square = (mean1 / unit) ** 2 * (1 + v1) * _probability(tilt + theta) + (mean2 / unit) ** 2 * (
        1 + v2
    ) * _probability(theta - tilt)
    return mean, max(0.0, square - (mean / unit) ** 2) * unit**2, first, second


def _winner(
    mean1: float, variance1: float, mean2: float, variance2: float
) -> tuple[float, float, float, float]:
    """Return the variable with the larger mean, if the other never exceeds it."""
    return (mean1, variance1, 1.0, 0.0) if mean1 > mean2 else (mean2, variance2, 0.0, 1.0)


def _probability(z: float) -> float:
    return 0.5 * math.erfc(-z / _ROOT_2)


def maximum_of_two(
    mean1: float, sd1: float, mean2: float, sd2: float, *, correlation: float = 0.0
) -> Maximum:
    r"""Return mean and standard deviation of the larger of two jointly normal variables.

    .. math::
        \theta^2 = \sigma_1^2 + \sigma_2^2 - 2 \rho \sigma_1 \sigma_2, \quad
        \alpha = \frac{\mu_1 - \mu_2}{\theta}, \quad
        \operatorname{E} M = \mu_1 \Phi(\alpha) + \mu_2 \Phi(-\alpha) + \theta \varphi(\alpha)

    .. math::
        \operatorname{E} M^2 = (\mu_1^2 + \sigma_1^2) \Phi(\alpha)
        + (\mu_2^2 + \sigma_2^2) \Phi(-\alpha) + (\mu_1 + \mu_2) \theta \varphi(\alpha)

    Definition: exact for two normals. The maximum of uncertain values exceeds the larger mean, and
    is less uncertain: ``max(10 ± 1, 10 ± 1)`` is ``10.564 ± 0.826``. First-order rules (a
    derivative times a deviation) give 10 ± 1.
    Misleads if the result is treated as normal: it is skewed to the right, most where the means are
    equal and the standard deviations differ.

    Parameters
    ----------
    mean1, mean2 : float
    sd1, sd2 : float
        In the unit of the means, ≥ 0.
    correlation : float
        In [-1, 1].

    Returns
    -------
    Maximum

    Raises
    ------
    InputError
        A value is not finite, a standard deviation is negative, or the correlation is outside
        [-1, 1].

    References
    ----------
    Clark (1961), "The greatest of a finite set of random variables", Operations Research 9(2),
    145-162, doi:10.1287/opre.9.2.145. Nadarajah and Kotz (2008), "Exact distribution of the
    max/min of two Gaussian random variables", IEEE Transactions on VLSI Systems 16(2), 210-212,
    doi:10.1109/TVLSI.2007.912191.

    Examples
    --------
    >>> m = maximum_of_two(10.0, 1.0, 10.0, 1.0)
    >>> round(m.mean, 3), round(m.sd, 3), m.tightness
    (10.564, 0.826, 0.5)
    """
    _check_finite({"mean1": mean1, "mean2": mean2})
    _check_deviations({"sd1": sd1, "sd2": sd2})
    _check_correlation(correlation, -1.0)
    # In units of the larger deviation: squares of very large or small ones leave the float range.
    unit = max(sd1, sd2) or 1.0
    s, t = sd1 / unit, sd2 / unit
    larger = max(mean1, mean2)
    mean, variance, tightness, _ = clark(
        (mean1 - larger) / unit, s * s, (mean2 - larger) / unit, t * t, correlation * s * t
    )
    return Maximum(larger + unit * mean, unit * math.sqrt(variance), tightness)


def maximum_of_ranks(n: int, mean: float, sd: float, *, correlation: float = 0.0) -> Maximum:
    r"""Return mean and sd of the largest of n identically distributed, equally correlated normals.

    .. math::
        \operatorname{E} M = \mu + \sigma \sqrt{1 - \rho} \, e_n, \qquad
        \operatorname{Var} M = \sigma^2 \left(\rho + (1 - \rho) v_n\right)

    Definition: :math:`e_n` and :math:`v_n` are mean and variance of the largest of n independent
    standard normals. Exact: the common part :math:`\sigma \sqrt \rho F` shifts all ranks, and the
    maximum is over the rest. (The formulas are also valid for negative ρ.) For stragglers: the
    slowest of n ranks that wait for each other.
    Misleads for errors with heavy tails: their maximum grows much faster with n.

    Parameters
    ----------
    n : int
        Number of ranks, ≥ 1.
    mean, sd : float
        Mean and standard deviation of one rank; sd ≥ 0.
    correlation : float
        Between any two ranks, in [-1/(n-1), 1].

    Returns
    -------
    Maximum

    Raises
    ------
    InputError
        n is not a positive integer, a value is not finite, the standard deviation is negative, or
        the correlation is impossible for n ranks.

    References
    ----------
    David and Nagaraja (2003), "Order Statistics", 3rd edition, Wiley, sections 3.1 and 5.3.

    Examples
    --------
    >>> m = maximum_of_ranks(64, 10.0, 1.0)
    >>> round(m.mean, 3), round(m.sd, 3)
    (12.344, 0.451)
    >>> m = maximum_of_ranks(64, 10.0, 1.0, correlation=0.9)
    >>> round(m.mean, 3), round(m.sd, 3)
    (10.741, 0.959)
    """
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise InputError(f"the number of ranks must be a positive integer, got {n!r}.")
    _check_finite({"mean": mean})
    _check_deviations({"sd": sd})
    _check_correlation(correlation, -1.0 if n == 1 else -1.0 / (int(n) - 1))
    expected, variance = largest_standard_normal(int(n))
    own = 1.0 - correlation
    return Maximum(
        mean + sd * math.sqrt(own) * expected,
        sd * math.sqrt(max(0.0, correlation + own * variance)),
        1.0 / n,
    )


@lru_cache(maxsize=1024)
def largest_standard_normal(n: int) -> tuple[float, float]:
    r"""Return mean and variance of the largest of n independent standard normal variables.

    .. math:: \operatorname{E} M^k = \int z^k \, n \varphi(z) \Phi(z)^{n-1} \, dz

    By the trapezoidal rule, which is exact to rounding for a smooth density that vanishes at both
    ends.

    Parameters
    ----------
    n : int
        At least 1.

    Examples
    --------
    >>> [round(x, 6) for x in largest_standard_normal(2)]
    [0.56419, 0.68169]
    """
    z, weight = _largest(n, 12.0)
    mean = float(weight @ z)
    return mean, float(weight @ (z - mean) ** 2)


@lru_cache(maxsize=1024)
def largest_log_normal(n: int, spread: float) -> tuple[float, float]:
    r"""Return mean and variance of :math:`e^{s M}`, M the largest of n standard normals.

    Parameters
    ----------
    n : int
        At least 1.
    spread : float
        s, not negative.

    Examples
    --------
    >>> [round(x, 6) for x in largest_log_normal(1, 0.5)]  # exp(1/8), and of the variance
    [1.133148, 0.364696]
    """
    z, weight = _largest(n, 12.0 + 2 * spread)
    grown = np.exp(spread * z)
    mean = float(weight @ grown)
    return mean, float(weight @ (grown - mean) ** 2)


def _largest(n: int, beyond: float) -> tuple[Floats, Floats]:
    """Return nodes and weights for the largest of n standard normals."""
    z = np.linspace(-12.0, math.sqrt(2 * math.log(n)) + beyond, 4001)
    weight = np.exp(math.log(n) - z**2 / 2 + (n - 1) * special.log_ndtr(z))
    return z, weight / weight.sum()


def _check_finite(values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if not (isinstance(value, Real) and math.isfinite(value)):
            raise InputError(f"{name} must be a finite number, got {value!r}.")


def _check_deviations(values: Mapping[str, float]) -> None:
    _check_finite(values)
    for name, value in values.items():
        if value < 0:
            raise InputError(
                f"{name} is a standard deviation and must not be negative, got {value:g}."
            )


def _check_correlation(value: float, lowest: float) -> None:
    _check_finite({"correlation": value})
    if not lowest <= value <= 1:
        raise InputError(f"correlation must be between {lowest:.4g} and 1, got {value:g}.")
