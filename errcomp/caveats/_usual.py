"""The usual shapes of errors, which alone are no reason for a caveat: their limits for many pairs.

Errors of a predictor without any problem may be uniform, normal, log-normal, logistic, Laplace or
Student t. What sets off a test of their shape has to be rare under each. Laplace errors make the
most of their worst tenth and of the choice of average; the largest of all is set by Laplace errors
in small samples and by Student t with 5 degrees of freedom in large ones. The tests refer to these
two, and so hold for lighter shapes as well.
"""

from __future__ import annotations

import math

__all__ = [
    "STUDENT",
    "largest_over_mean",
    "p_of_averages",
    "p_of_largest",
    "p_of_weighted_mean",
    "p_of_worst",
    "share_of_worst",
]

#: Degrees of freedom of the heaviest usual shape.
STUDENT = 5
#: Mean of absolute Student t errors: 2 sqrt(5) Gamma(3) / (4 sqrt(pi) Gamma(5 / 2)).
_STUDENT_MEAN = math.sqrt(5) * math.gamma(3) / (2 * math.sqrt(math.pi) * math.gamma(2.5))


def largest_over_mean(n: int) -> float:
    """Return the median of the largest error over the mean, the larger of the two shapes'.

    Examples
    --------
    >>> round(largest_over_mean(1000), 1)
    7.8
    """
    from scipy.stats import t

    beyond = -math.expm1(math.log(0.5) / n)
    return max(-math.log(beyond), float(t.isf(beyond / 2, STUDENT)) / _STUDENT_MEAN)


def p_of_largest(ratio: float, n: int) -> float:
    """Return the chance of a largest error of so many means, the larger of the two shapes'.

    The mean of many errors counts as known.

    Examples
    --------
    >>> round(p_of_largest(13.3, 1000), 2)
    0.05
    """
    from scipy.stats import t

    beyond = max(math.exp(-ratio), 2 * float(t.sf(ratio * _STUDENT_MEAN, STUDENT)))
    return -math.expm1(n * math.log1p(-beyond)) if beyond < 1 else 1.0


def share_of_worst(fraction: float) -> float:
    """Return the share of the worst of many Laplace errors in their sum: f (1 - ln f).

    Examples
    --------
    >>> round(share_of_worst(0.1), 2)
    0.33
    """
    return fraction * (1 - math.log(fraction))


def p_of_worst(share: float, fraction: float, n: int) -> float:
    r"""Return the chance that the worst fraction of n Laplace errors has this share or more.

    The share :math:`s` of the errors above the quantile :math:`q = -\ln f` is asymptotically
    normal; its influence function is :math:`(x - q)_+ + f q - s x`, whose variance under the
    exponential law is :math:`f (2 - f) - s^2`.

    Examples
    --------
    >>> p_of_worst(share_of_worst(0.1), 0.1, 1000), round(p_of_worst(0.345, 0.1, 1000), 2)
    (0.5, 0.05)
    """
    usual = share_of_worst(fraction)
    variance = fraction * (2 - fraction) - usual**2
    return 0.5 * math.erfc((share - usual) / math.sqrt(2 * variance / n))


def p_of_averages(factor: float, n: int) -> float:
    r"""Return the chance that mean over geometric mean of n Laplace errors is this or larger.

    The logarithm of the ratio is asymptotically normal around Euler's constant, with variance
    :math:`(\pi^2 / 6 - 1) / n`; no other ratio of mean, median and geometric mean is as large.

    Examples
    --------
    >>> round(p_of_averages(1.86, 1000), 2)
    0.04
    """
    euler = 0.5772156649015329
    return 0.5 * math.erfc((math.log(factor) - euler) / math.sqrt((math.pi**2 / 3 - 2) / n))


def p_of_weighted_mean(ratio: float, spread: float) -> float:
    """Return the two-sided chance of this ratio of a weighted mean of Laplace errors to their mean.

    A sum of exponential errors with weights has nearly a gamma law with its mean and variance
    (Satterthwaite 1946); it is one where all weights are equal or there is one alone.

    Parameters
    ----------
    ratio : float
    spread : float
        Sum of the squares of the weights, less 1/n each.

    Examples
    --------
    >>> p_of_weighted_mean(1.0, 0.0), round(p_of_weighted_mean(1.5, 0.01), 5)
    (1.0, 1e-05)
    """
    from scipy.stats import gamma

    if spread <= 0:
        return 1.0
    law = gamma(1 / spread, scale=spread)
    return min(1.0, 2 * float(min(law.cdf(ratio), law.sf(ratio))))
