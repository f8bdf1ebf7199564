"""How heavy the tails of the totals' errors are: degrees of freedom of Student's t."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from errcomp.propagation.terms import Floats, Integers

__all__ = ["NORMAL_TAILS", "Tails", "estimate_df", "normal_scores", "tail_scale", "variance_df"]

_NORMAL = 200.0  # degrees of freedom from which Student's t and the normal are not told apart
_LOWEST = 2.5  # the variance must exist, with something to spare
_SHAPE, _RATE = 2.0, 0.1


def tail_scale(df: float) -> float:
    """Return the scale of a Student t of standard deviation 1; df must exceed 2."""
    return 1.0 if math.isinf(df) else math.sqrt((df - 2) / df)


@dataclass(frozen=True, slots=True)
class Tails:
    r"""Shape of the error of a total, in units of its propagated standard deviation.

    .. math:: Z = \sqrt{(\nu - 2) / \nu} \; T_{\nu'}, \qquad
              1 / \nu' = 1 / \nu + 1 / \nu_V

    A Student t of standard deviation 1 with ν degrees of freedom has the tails; those of its
    quantiles are lowered by :math:`\nu_V`, with which the standard deviation itself was estimated
    (kurtosis 6/ν of independent causes nearly adds).

    Attributes
    ----------
    df : float
        ν, > 2; infinity: normal tails.
    variance_df : float
        Degrees of freedom of the estimated variance; infinity: it is known.

    Examples
    --------
    >>> [round(float(tails.quantile(0.95)), 3) for tails in (Tails(df=4.0), NORMAL_TAILS)]
    [1.507, 1.645]
    """

    df: float = math.inf
    variance_df: float = math.inf

    @property
    def combined(self) -> float:
        """Degrees of freedom of the quantiles, ν'."""
        inverse = 1 / self.df + 1 / self.variance_df
        return 1 / inverse if inverse > 0 else math.inf

    def quantile(self, level: ArrayLike) -> Floats:
        """Return the quantile of Z."""
        return tail_scale(self.df) * np.asarray(stats.t.ppf(np.asarray(level), self.combined))

    def cdf(self, z: ArrayLike) -> Floats:
        """Return the probability that Z is at most z."""
        return np.asarray(stats.t.cdf(np.asarray(z) / tail_scale(self.df), self.combined))

    def stretch(self, n: int, rng: np.random.Generator) -> Floats:
        """Return random factors that turn n normal deviations into draws of Z."""
        if math.isinf(self.combined):
            return np.ones(n)
        mixing = rng.chisquare(self.combined, n) / self.combined
        return tail_scale(self.df) / np.sqrt(mixing)

    def to_dict(self) -> dict[str, float | None]:
        """Return plain numbers; None for infinity."""
        return {
            "df": None if math.isinf(self.df) else self.df,
            "variance_df": None if math.isinf(self.variance_df) else self.variance_df,
        }


#: Normal tails of a variance that is known.
NORMAL_TAILS = Tails()


def estimate_df(z: Floats) -> float:
    r"""Estimate the degrees of freedom of Student's t from errors in units of their own sd.

    .. math:: \hat\nu = \arg\max_\nu \; \log p(\nu) + \sum_r \log t_\nu\!\left(z_r \middle/
              \sqrt{(\nu - 2) / \nu}\right) - \tfrac12 \log\frac{\nu - 2}{\nu}

    the mode under the prior Gamma(2, rate 0.1), whose weight is felt with few runs only. The
    variance is fixed to 1: it comes from the variance components, only the shape is fitted.

    Parameters
    ----------
    z : ndarray, shape (n,)
        Errors of the totals of n runs, each divided by its estimated standard deviation.

    Returns
    -------
    float
        Between 2.5 and 200; infinity from 200 on.

    References
    ----------
    Juárez and Steel (2010), "Model-Based Clustering of Non-Gaussian Panel Data Based on Skew-t
    Distributions", Journal of Business & Economic Statistics 28(1), doi:10.1198/jbes.2009.07145
    (the prior).

    Examples
    --------
    >>> z = stats.t.rvs(4, size=2000, random_state=1) / math.sqrt(2)
    >>> 3 < estimate_df(z) < 5
    True
    """

    def cost(log_df: float) -> float:
        df = math.exp(log_df)
        scale = math.sqrt((df - 2) / df)
        prior = (_SHAPE - 1) * log_df - _RATE * df
        return -prior - float((stats.t.logpdf(z / scale, df) - math.log(scale)).sum())

    found = optimize.minimize_scalar(
        cost, bounds=(math.log(_LOWEST), math.log(_NORMAL)), method="bounded"
    )
    df = math.exp(float(found.x))
    return df if df < 0.95 * _NORMAL else math.inf


def normal_scores(z: Floats, df: float) -> Floats:
    """Return the normal quantiles of where z stands in a Student t of standard deviation 1.

    Examples
    --------
    >>> normal_scores(np.array([0.0, 3.0]), 4.0).round(2).tolist()
    [0.0, 2.48]
    """
    if math.isinf(df):
        return z
    scale = math.sqrt((df - 2) / df)
    # The tail that z is in, by its logarithm: scores stay finite far out.
    tail = stats.t.sf(np.abs(z) / scale, df)
    return np.sign(z) * stats.norm.isf(tail)


def variance_df(z: Floats, cluster: Integers) -> float:
    r"""Return how many degrees of freedom the variance of z has, z of one cluster being alike.

    .. math::
        \nu_V = \frac{\left(\sum_c n_c\right)^2}
                     {\sum_c \left[n_c + n_c (n_c - 1) \hat\rho^2\right]} \cdot \frac{D - 1}{D}

    with :math:`n_c` errors in cluster c of D, and :math:`\hat\rho` the mean product of two errors
    of one cluster (each cluster weighted with :math:`n_c`), over the mean square: squares of
    normal errors correlate by ρ². The factor is for locations estimated from the D clusters.

    Parameters
    ----------
    z : ndarray, shape (n,)
        Standardised errors of totals.
    cluster : ndarray of int, shape (n,)
        Which of them are not independent.

    Returns
    -------
    float
        At least 1: about n if all are independent, D − 1 if clusters of one size are each one
        error repeated. Alike is assumed where no cluster has two errors.

    References
    ----------
    Kish (1965), "Survey Sampling", Wiley (effective sample size); Satterthwaite (1946), "An
    Approximate Distribution of Estimates of Variance Components", Biometrics Bulletin 2(6),
    doi:10.2307/3002019.

    Examples
    --------
    >>> variance_df(np.array([1.0, 1.0, -2.0, -2.0, 1.0, 1.0]), np.array([0, 0, 1, 1, 2, 2]))
    2.0
    """
    sums, squares, n = np.bincount(cluster, z), np.bincount(cluster, z**2), np.bincount(cluster)
    present = n > 0
    sums, squares, n = sums[present], squares[present], n[present].astype(float)
    d, mean = len(n), float((z**2).mean())
    weight = np.divide(1.0, n - 1, out=np.zeros(d), where=n > 1)
    pairs = float((weight * (n**2 - n)).sum())
    alike = 1.0
    if pairs > 0 and mean > 0:
        alike = float(np.clip((weight * (sums**2 - squares)).sum() / pairs / mean, 0.0, 1.0))
    effective = float(n.sum() ** 2 / (n + (n**2 - n) * alike**2).sum())
    return max(1.0, effective * (d - 1) / d)
