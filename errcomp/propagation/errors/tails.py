"""Distribution of errors of totals: a mixture of observed errors and a Student t."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from errcomp.codec import Count, Document, Endless, Positive
from errcomp.errors import InputError, renamed
from errcomp.propagation.terms import Floats, Integers
from errcomp.stats.significance import student_logpdf, student_sf

__all__ = [
    "NORMAL_TAILS",
    "Observed",
    "Tails",
    "estimate_df",
    "normal_scores",
    "observe",
    "variance_df",
]

_NORMAL = 200.0  # degrees of freedom from which a Student t counts as normal
_LOWEST = 2.5  # the variance must exist, with some margin
_SHAPE, _RATE = 2.0, 0.1
_PRIOR = 4.0  # weight of the Student t, as a number of devices
_KEPT = 400  # number of observed sizes to keep; a band needs no more
_ROUNDING = 1e-9
_HALVINGS = 60  # steps of the bisection for a quantile
_LEAST = 1e-300  # smallest probability in a quotient
_NEAREST = 1e-6  # smallest probability of a band with a factor; at 0 it is 0 / 0


def tail_scale(df: float) -> float:
    """Return the scale of a Student t of standard deviation 1; df must exceed 2."""
    return 1.0 if math.isinf(df) else math.sqrt((df - 2) / df)


@dataclass(frozen=True, slots=True)
class Observed(Document):
    r"""Distribution of the sizes of errors of totals, each relative to the other devices.

    .. math:: B(q) = \frac{n}{n + 1} \, \frac1D \sum_d \frac{1}{n_d}
              \#\{r \in d : |z_r| \le q\}

    linear between the sizes. Each of D devices (or runs) has the same weight, for any number of
    totals. A new error is larger than n others from the same distribution with probability
    1 / (n + 1), so this much lies beyond the largest size.

    Attributes
    ----------
    sizes : tuple of float
        \|z\|, increasing: errors of totals in units of their propagated standard deviation.
    below : tuple of float
        Share of the devices at or below each size; the last is 1.
    number : float
        n, the equivalent number of independent errors: from D, if the totals of a device have the
        same error, up to the number of totals.
    n_clusters : int
        D.

    Raises
    ------
    InputError
        There is no size; sizes or shares do not increase, are not finite or are negative; the
        shares do not end with 1; or the number is not positive.
    """

    sizes: tuple[float, ...]
    below: tuple[float, ...]
    number: float
    n_clusters: Count

    def __post_init__(self) -> None:
        for what in ("sizes", "below"):
            values = np.asarray(getattr(self, what), dtype=float)
            # NaN fails this condition, too.
            if not (len(values) and values[0] >= 0 and (np.diff(values) >= 0).all()):
                raise InputError(f"{what} of observed errors must increase and start at 0 or above")
        if len(self.sizes) != len(self.below) or abs(self.below[-1] - 1) > _ROUNDING:
            raise InputError(
                "each error size needs the share of devices whose error is no larger, and the "
                f"last share must be 1; got {len(self.sizes)} sizes, and {len(self.below)} shares "
                f"that end with {self.below[-1]!r}"
            )
        if not math.isfinite(self.sizes[-1]):
            raise InputError(f"sizes of observed errors must be finite, got {self.sizes[-1]!r}")
        if not (0 < self.number < math.inf and self.n_clusters > 0):
            raise InputError(
                "number and n_clusters of observed errors must be positive, got "
                f"{self.number!r} and {self.n_clusters!r}"
            )

    @property
    def beyond(self) -> float:
        """Probability of an error larger than all observed ones."""
        return 1 / (self.number + 1)

    @property
    def weight(self) -> float:
        """Weight in the mixture with the Student t, which counts as four devices."""
        return self.n_clusters / (self.n_clusters + _PRIOR)

    def share(self, size: Floats) -> Floats:
        """Return B up to the largest size, the probability of an error of at most this size.

        Examples
        --------
        >>> seen = observe(np.array([1.0, -2.0, 3.0]), np.arange(3))
        >>> seen.share(np.array([0.0, 3.0])).round(2).tolist()
        [0.0, 0.75]
        """
        shares = np.concatenate([[0.0], self.below]) * (1 - self.beyond)
        return np.interp(size, np.concatenate([[0.0], self.sizes]), shares)


@dataclass(frozen=True, slots=True)
class Tails(Document):
    r"""Distribution of the error of a total, in units of its propagated standard deviation.

    Without observed errors it is a Student t of standard deviation 1 with ν degrees of freedom. Its
    quantiles have fewer, because the standard deviation was estimated with :math:`\nu_V` degrees of
    freedom (the kurtosis 6/ν of independent causes nearly adds):

    .. math:: Z = \sqrt{(\nu - 2) / \nu} \; T_{\nu'}, \qquad
              1 / \nu' = 1 / \nu + 1 / \nu_V

    If one device in six is off by 2.4 standard deviations, no unimodal distribution of standard
    deviation 1 is wide enough (Gauss: its 90 % band ends at 2.1). So with observed errors of D
    devices the size of an error follows a mixture of G, the Student t, and B, the observed errors
    (`Observed`):

    .. math:: P(|Z| \le q) = \frac{4}{D + 4} G(q) + \frac{D}{D + 4} B(q)

    Beyond the largest observed size M the rest of B falls like G:
    :math:`1 - B(q) = (1 - B(M)) (1 - G(q)) / (1 - G(M))`. All bands come from this one
    distribution, so they are nested.

    Attributes
    ----------
    df : float
        ν, > 2; infinity: normal tails.
    variance_df : float
        Degrees of freedom of the estimated variance; infinity: it is known.
    observed : Observed, optional
        Errors of the totals of the fit.

    References
    ----------
    Dunn, Wasserman and Ramdas (2023), "Distribution-Free Prediction Sets for Two-Layer
    Hierarchical Models", JASA 118(544), doi:10.1080/01621459.2022.2060112 (pooled distribution
    functions of groups).

    Examples
    --------
    >>> [round(float(tails.quantile(0.95)), 3) for tails in (Tails(df=4.0), NORMAL_TAILS)]
    [1.507, 1.645]
    >>> sizes = np.array([0.2, 0.3, 0.5, 0.6, 0.8, 2.4])
    >>> seen = Tails(4.0, observed=observe(sizes, np.arange(6)))
    >>> round(float(seen.quantile(0.95)), 2)
    2.35
    """

    df: Annotated[Positive, Endless] = math.inf
    variance_df: Annotated[Positive, Endless] = math.inf
    observed: Observed | None = None

    @property
    def combined(self) -> float:
        """Degrees of freedom of the Student t, ν'."""
        inverse = 1 / self.df + 1 / self.variance_df
        return 1 / inverse if inverse > 0 else math.inf

    @renamed(level="q")
    def quantile(self, q: ArrayLike) -> Floats:
        """Return the quantile of Z.

        Examples
        --------
        >>> Tails(df=4.0).quantile([0.05, 0.5, 0.95]).round(3).tolist()
        [-1.507, 0.0, 1.507]
        """
        q = np.asarray(q, dtype=float)
        if self.observed is None:
            return np.asarray(tail_scale(self.df) * special.stdtrit(self.combined, q))
        size = self._size(np.atleast_1d(np.abs(2 * q - 1)), self.observed)
        return np.asarray(np.sign(q - 0.5) * size.reshape(q.shape))

    def cdf(self, z: ArrayLike) -> Floats:
        """Return the probability that Z is at most z.

        Examples
        --------
        >>> NORMAL_TAILS.cdf([0.0, 1.645]).round(3).tolist()
        [0.5, 0.95]
        """
        z = np.asarray(z, dtype=float)
        if self.observed is None:
            return np.asarray(special.stdtr(self.combined, z / tail_scale(self.df)))
        return np.asarray(0.5 + np.sign(z) * (0.5 - self._beyond(np.abs(z), self.observed) / 2))

    def stretch(self, n: int) -> Floats:
        """Return the factors that turn n normal deviations, increasing, into those of Z.

        Examples
        --------
        >>> NORMAL_TAILS.stretch(3).tolist()
        [1.0, 1.0, 1.0]
        >>> bool(Tails(df=4.0).stretch(1000)[0] > 1)  # heavier tails
        True
        """
        if self == NORMAL_TAILS:
            return np.ones(n)
        inner = np.maximum(np.abs(2 * (np.arange(n) + 0.5) / n - 1), _NEAREST)
        level = (1 + inner) / 2
        return self.quantile(level) / special.ndtri(level)

    def _student(self, size: ArrayLike) -> Floats:
        """Return the probability that the Student t is larger than this size."""
        return np.asarray(
            2 * special.stdtr(self.combined, -np.asarray(size) / tail_scale(self.df)), dtype=float
        )

    def _at(self, largest: float) -> float:
        """Return the probability of an error above the largest observed size."""
        return max(float(self._student(largest)), _LEAST)

    def _beyond(self, size: Floats, observed: Observed) -> Floats:
        """Return the probability of an error larger than this size."""
        largest = observed.sizes[-1]
        student = self._student(size)
        rest = observed.beyond * student / self._at(largest)
        seen = np.where(size < largest, 1 - observed.share(size), rest)
        return (1 - observed.weight) * student + observed.weight * seen

    def _size(self, inner: Floats, observed: Observed) -> Floats:
        """Return the size of an error that is not exceeded with these probabilities."""
        largest = observed.sizes[-1]
        ends = self._at(largest)
        rest = (1 - observed.weight) * ends + observed.weight * observed.beyond
        # Beyond the largest size both parts fall like the Student t.
        student = np.minimum(1.0, (1 - inner) / rest) * ends / 2
        far = np.maximum(largest, -tail_scale(self.df) * special.stdtrit(self.combined, student))
        low, high = np.zeros_like(inner), np.full_like(inner, largest)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self._beyond(middle, observed) > 1 - inner
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return np.where(1 - inner < rest, far, high)


#: Normal tails, with a known variance.
NORMAL_TAILS = Tails()


def estimate_df(z: Floats) -> float:
    r"""Estimate the degrees of freedom of Student's t from errors in units of their own sd.

    .. math:: \hat\nu = \arg\max_\nu \; \log p(\nu) + \sum_r \log t_\nu\!\left(z_r \middle/
              \sqrt{(\nu - 2) / \nu}\right) - \tfrac12 \log\frac{\nu - 2}{\nu}

    the mode under the prior Gamma(2, rate 0.1), which matters only with few runs. The variance is
    fixed to 1, because it comes from the variance components; only the shape is fitted.

    Parameters
    ----------
    z : ndarray, shape (n,)
        Errors of the totals of n runs, each divided by its estimated standard deviation.

    Returns
    -------
    float
        Between 2.5 and 200; infinity at 200 or more.

    References
    ----------
    Juárez and Steel (2010), "Model-Based Clustering of Non-Gaussian Panel Data Based on Skew-t
    Distributions", Journal of Business & Economic Statistics 28(1), doi:10.1198/jbes.2009.07145
    (the prior).

    Examples
    --------
    >>> z = np.random.default_rng(1).standard_t(4, size=2000) / math.sqrt(2)
    >>> 3 < estimate_df(z) < 5
    True
    """

    def cost(log_df: float) -> float:
        df = math.exp(log_df)
        scale = tail_scale(df)
        prior = (_SHAPE - 1) * log_df - _RATE * df
        return -prior - float((student_logpdf(z / scale, df) - math.log(scale)).sum())

    best = optimize.minimize_scalar(
        cost, bounds=(math.log(_LOWEST), math.log(_NORMAL)), method="bounded"
    )
    df = math.exp(float(best.x))
    return df if df < 0.95 * _NORMAL else math.inf


def normal_scores(z: Floats, df: float) -> Floats:
    """Return normal quantiles at the probabilities of z in a Student t of standard deviation 1.

    Examples
    --------
    >>> normal_scores(np.array([0.0, 3.0]), 4.0).round(2).tolist()
    [0.0, 2.48]
    """
    if math.isinf(df):
        return z
    # The small tail, not the probability beside it, keeps scores finite far out.
    return np.sign(z) * (0.0 - special.ndtri(student_sf(np.abs(z) / tail_scale(df), df)))


@renamed(cluster="clusters")
def variance_df(z: Floats, clusters: Integers) -> float:
    r"""Return the degrees of freedom of the variance of z, with correlated z in a cluster.

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
    clusters : ndarray of int, shape (n,)
        Cluster of each error.

    Returns
    -------
    float
        At least 1: about n if all are independent, D − 1 if clusters of equal size each repeat one
        error. If no cluster has two errors, full correlation is assumed.

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
    n, alike = _alike(z, clusters)
    d = len(n)
    effective = float(n.sum() ** 2 / (n + (n**2 - n) * alike**2).sum())
    return max(1.0, effective * (d - 1) / d)


@renamed(cluster="clusters")
def observe(z: Floats, clusters: Integers) -> Observed:
    r"""Return the distribution of the sizes of errors of totals, correlated within clusters.

    Each of D clusters has the same weight. With :math:`n_c` errors in cluster c and their
    correlation :math:`\hat\rho` as in `variance_df`, they are equivalent to

    .. math:: n = D^2 \Big/ \sum_c \left[\frac{1}{n_c}
              + \left(1 - \frac{1}{n_c}\right) \hat\rho^2\right]

    independent errors.

    Parameters
    ----------
    z : ndarray, shape (n,)
        Errors of totals, each relative to the other clusters, in units of their propagated sd.
    clusters : ndarray of int, shape (n,)
        Cluster of each error.

    Returns
    -------
    Observed
        Beyond 400 errors it has 400 quantiles and the largest.

    Examples
    --------
    >>> found = observe(np.array([1.0, -1.0, 2.0]), np.array([0, 1, 1]))
    >>> found.sizes, found.below, round(found.number, 2)
    ((1.0, 1.0, 2.0), (0.5, 0.75, 1.0), 2.67)
    """
    n, alike = _alike(z, clusters)
    size = np.abs(z)
    order = np.argsort(size, kind="stable")
    weight = 1 / np.bincount(clusters)[clusters[order]] / len(n)
    size, below = size[order], np.cumsum(weight)
    if len(size) > _KEPT:
        kept = np.searchsorted(below, np.arange(1, _KEPT) / _KEPT)
        kept = np.unique(np.append(kept, len(size) - 1))
        size, below = size[kept], below[kept]
    below[-1] = 1.0
    number = len(n) ** 2 / float((1 / n + (1 - 1 / n) * alike**2).sum())
    return Observed(tuple(size.tolist()), tuple(below.tolist()), number, len(n))


def _alike(z: Floats, clusters: Integers) -> tuple[Floats, float]:
    """Return the number of errors of each cluster, and their correlation within clusters."""
    counts = np.bincount(clusters)
    present = counts > 0
    n: Floats = counts[present].astype(float)
    sums, squares = np.bincount(clusters, z)[present], np.bincount(clusters, z**2)[present]
    mean = float((z**2).mean())
    weight = np.divide(1.0, n - 1, out=np.zeros(len(n)), where=n > 1)
    pairs = float((weight * (n**2 - n)).sum())
    if pairs == 0 or mean == 0:
        return n, 1.0
    products = float((weight * (sums**2 - squares)).sum())
    return n, float(np.clip(products / pairs / mean, 0.0, 1.0))
