r"""Bounds for the sum, or the maximum, of terms under any dependence of their errors.

Only the distribution of each term is used. ``levels`` and ``matrix`` of the terms are ignored, and
the ``count`` repetitions of a term may depend on each other in any way. So all bounds are wide:
they answer "what if the correlation is unknown", and are not a prediction.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.bounds.graphs import (
    BoundsAlgebra,
    Interval,
    frechet_max,
    frechet_max_cdf,
    frechet_max_table,
    graph_band,
)
from errcomp.propagation.bounds.marginals import (
    Marginals,
    columns,
    finite,
    inside,
    locations,
    number,
    open_unit,
    outside,
    refuse,
    standard_isf,
    too_large,
)
from errcomp.propagation.terms import Floats, Terms, check_terms
from errcomp.results import Caveat, format_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


__all__ = [
    "BoundsAlgebra",
    "Interval",
    "QuantileBounds",
    "VarianceBounds",
    "WorstCase",
    "band",
    "comonotonic_quantile",
    "frechet_max",
    "frechet_max_cdf",
    "frechet_max_table",
    "graph_band",
    "quantile_bounds",
    "variance_bounds",
    "worst_case",
]


def variance_bounds(terms: Terms) -> VarianceBounds:
    r"""Return the range of the standard deviation of the sum over all dependences.

    .. math::
        \max(0,\, 2 \max_i \sigma_i - \sum_i \sigma_i) \;\le\; \sigma_S \;\le\;
        \sigma_\text{comonotonic} \;\le\; \sum_i \sigma_i

    Definition: each repetition counts as a term. For relative and absolute errors both ends are
    attained, and the comonotonic standard deviation is the sum. For log-ratio errors, with
    :math:`m_i = p_i e^{b_i + s_i^2/2}`, it is

    .. math:: \sigma_\text{comonotonic}^2 = \sum_{ij} m_i m_j (e^{s_i s_j} - 1)
        = \sum_{k \ge 1} \frac{1}{k!} \Big(\sum_i m_i s_i^k\Big)^2 ,

    attained, and below :math:`\sum_i \sigma_i` if spreads differ; the lower end is not attained,
    because a sum of log-normal terms is never certain.
    Misleads: the range does not show how likely a dependence is.

    Parameters
    ----------
    terms : Terms

    Returns
    -------
    VarianceBounds

    Raises
    ------
    NotDefinedError
        A term has no variance: log-ratio errors with Student t tails, df ≤ 2, or a spread beyond
        floating point.

    References
    ----------
    Dhaene, Denuit, Goovaerts, Kaas and Vyncke (2002), "The concept of comonotonicity in actuarial
    science and finance: theory", Insurance: Mathematics and Economics 31(1), 3-33,
    doi:10.1016/S0167-6687(02)00134-8.

    Examples
    --------
    >>> import numpy as np
    >>> ids, ones = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, np.array([0.1, 0.3]),
    ...               kind="relative")
    >>> bounds = variance_bounds(terms)
    >>> bounds.low, bounds.high
    (2.0, 4.0)
    """
    check_terms(terms)
    center, spread = locations(terms)
    count = terms.count.astype(float)
    log = terms.kind == "log-ratio"
    if not math.isinf(terms.df) and (log or terms.df <= 2) and spread.any():
        reason = (
            "a time with a Student t log-ratio error has no mean"
            if log
            else f"Student t errors with df = {terms.df:g} ≤ 2 have no variance"
        )
        raise NotDefinedError(
            f"the variance of the sum is not defined: {reason}. Use quantile_bounds or band "
            "instead."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if log:
            mean = np.exp(center + spread**2 / 2)
            sd = mean * np.sqrt(np.expm1(spread**2))
        else:
            mean = center
            sd = spread * (math.sqrt(terms.df / (terms.df - 2)) if 2 < terms.df < math.inf else 1.0)
        triangle, total = float(count @ sd), float(count @ mean)
    if not (math.isfinite(triangle) and math.isfinite(total)):
        raise too_large(terms)
    high = min(_comonotonic_sd(count * mean, spread), triangle) if log else triangle
    low = max(0.0, 2 * float(sd.max()) - triangle)
    # A single uncertain term is its own minimum.
    attained = not log or float(count[spread > 0].sum()) <= 1
    return VarianceBounds(total, low, high, attained, triangle, terms.unit)


def _comonotonic_sd(mean: Floats, spread: Floats) -> float:
    """Return the comonotonic variance by a series of positive summands."""
    largest = float(spread.max())
    if largest == 0:
        return 0.0
    ratio, size = spread / largest, float(mean.sum())
    power, total, k = mean / size, 0.0, 0
    while True:
        k += 1
        power = power * ratio
        summand = math.exp(
            2 * math.log(power.sum()) + 2 * k * math.log(largest) - special.gammaln(k + 1)
        )
        total += summand
        if k > largest**2 and summand <= 1e-17 * total:
            return size * math.sqrt(total)


def comonotonic_quantile(terms: Terms, q: float) -> float:
    r"""Return the quantile of the sum if all errors are increasing functions of one cause.

    .. math:: Q_S(q) = \sum_i n_i \, Q_i(q)

    Definition: exact under comonotonicity, where quantiles add; n is the count.
    Misleads if taken as an upper bound: at high q other dependences make the quantile larger
    (`quantile_bounds`). It bounds the variance and the expected shortfall.

    Parameters
    ----------
    terms : Terms
    q : float
        In (0, 1).

    Returns
    -------
    float
        In the unit of the terms.

    Raises
    ------
    InputError
        q is not in (0, 1).
    NotDefinedError
        The quantile is beyond the largest float64.

    References
    ----------
    Dhaene et al. (2002), doi:10.1016/S0167-6687(02)00134-8.

    Examples
    --------
    >>> import numpy as np
    >>> ids, ones = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, np.array([0.1, 0.2]))
    >>> round(comonotonic_quantile(terms, 0.95), 3)
    25.683
    """
    check_terms(terms)
    q = open_unit("q", q)
    m = Marginals.of(terms)
    with np.errstate(over="ignore"):
        value = m.offset + float(m.count @ m.quantile(-standard_isf(np.asarray(q), m.df)))
    return finite(value, terms)


def quantile_bounds(terms: Terms, q: float, *, tolerance: float = 1e-3) -> QuantileBounds:
    r"""Return sharp bounds of a quantile of the sum over all dependences.

    .. math:: \inf_C Q_S(q) \le Q_S(q) \le \sup_C Q_S(q), \qquad C \text{ any copula}

    Definition: each repetition counts as a term. The outer bounds hold for every dependence: for
    any thresholds r and D > 0,

    .. math:: P\Big(S \ge \sum_i r_i + D\Big) \le \frac1D \sum_i \int_{r_i}^{r_i+D} P(X_i > x)\,dx,

    with the best thresholds for the largest terms and D = ∞ in the integrals of the others, whose
    part is then the sum of expected shortfalls. The attained values belong to a dependence built by
    the rearrangement algorithm (of comonotonic blocks beyond 32 instances). The sharp bound lies
    between the two, and the result states the gap. For normal errors it is usually below 0.1 % of
    the distance from the median.

    Valid for any number of terms; 10⁵ take a few seconds. Log-ratio errors with Student t tails
    have no mean. Their bounds stay finite, because the union bound covers terms beyond their
    outermost quantiles, but become very wide for many terms.
    Misleads if taken as likely: only an extreme dependence attains a bound. For the upper bound
    that is not the strongest correlation.

    Parameters
    ----------
    terms : Terms
    q : float
        In (0, 1).
    tolerance : float
        The search for a dependence stops at this distance from the outer bound, relative to that
        bound.

    Returns
    -------
    QuantileBounds

    Raises
    ------
    InputError
        q is not in (0, 1), or the tolerance is not positive.
    NotDefinedError
        A bound is beyond the largest float64.

    References
    ----------
    Puccetti and Rüschendorf (2012), "Computation of sharp bounds on the distribution of a function
    of dependent risks", Journal of Computational and Applied Mathematics 236(7), 1833-1840,
    doi:10.1016/j.cam.2011.10.015; Embrechts, Puccetti and Rüschendorf (2013), "Model uncertainty
    and VaR aggregation", Journal of Banking and Finance 37(8), 2750-2764,
    doi:10.1016/j.jbankfin.2013.03.014 (rearrangement, dual bound); Hofert, Memartoluie, Saunders
    and Wirjanto (2017), "Improved algorithms for computing worst Value-at-Risk", Statistics and
    Risk Modeling 34(1-2), 13-31 (refinement until a tolerance is met).

    Examples
    --------
    Two equal normal errors: the 95 % quantile can be as large as twice the 97.5 % quantile of one.

    >>> import numpy as np
    >>> ids, ones = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, ones, kind="absolute")
    >>> print(quantile_bounds(terms, 0.95))
    95 % quantile within [19.87, 23.92] for any dependence (each bound at most 0.0093 too wide)
    """
    check_terms(terms)
    q = open_unit("q", q)
    if not number(tolerance) > 0:
        raise InputError(f"tolerance: must be positive, got {tolerance!r}")
    m = Marginals.of(terms)
    if not len(m):
        sure = finite(m.offset, terms)
        return QuantileBounds(q, sure, sure, sure, sure, 0.0, (), terms.unit)
    down = m.negated()
    high, low = outside(m, 1 - q), -outside(down, q)
    finite(high, terms), finite(low, terms)
    above = min(inside(m, 1 - q, outer=high, tolerance=tolerance), high)
    below = max(-inside(down, q, outer=-low, tolerance=tolerance), low)
    gap = max(high - above, below - low)
    return QuantileBounds(
        q, low, high, below, above, gap, _caveats(m, gap, high, tolerance), terms.unit
    )


def _caveats(m: Marginals, gap: float, high: float, tolerance: float) -> tuple[Caveat, ...]:
    caveats = []
    if not m.tail_is_finite:
        text = "errors with these Student t tails have no mean: bounds grow fast with more terms"
        caveats.append(Caveat("infinite-mean", text, {"df": m.df, "instances": m.copies}))
    if gap > tolerance * abs(high):
        text = (
            f"the bounds are valid, but each may be {format_number(gap, 2)} (in the unit of the "
            "times) away from the sharpest possible bound"
        )
        caveats.append(Caveat("bounds-not-sharp", text, {"gap": gap, "tolerance": tolerance}))
    return tuple(caveats)


def band(terms: Terms, level: float) -> tuple[float, float]:
    r"""Return a band that contains the sum with at least this probability, for any dependence.

    .. math:: P(S < l) \le (1 - level)/2, \quad P(S > h) \le (1 - level)/2

    Definition: the lower bound of the lower quantile and the upper bound of the upper quantile,
    from `quantile_bounds`. Misleads as a forecast: in real cases it covers far more often than its
    level.

    Parameters
    ----------
    terms : Terms
    level : float
        In (0, 1).

    Returns
    -------
    tuple of float
        Low and high, in the unit of the terms.

    Raises
    ------
    InputError
        The level is not in (0, 1).
    NotDefinedError
        A bound is beyond the largest float64.

    Examples
    --------
    >>> import numpy as np
    >>> ids, count = np.array(["gemm"]), np.array([100])
    >>> terms = Terms(ids, ids, np.ones(1), count, np.zeros(1), np.array([0.1]))
    >>> low, high = band(terms, 0.9)
    >>> round(low, 1), round(high, 1)
    (81.4, 123.0)
    """
    check_terms(terms)
    alpha = (1 - open_unit("level", level)) / 2
    m = Marginals.of(terms)
    if not len(m):
        sure = finite(m.offset, terms)
        return sure, sure
    return finite(-outside(m.negated(), alpha), terms), finite(outside(m, alpha), terms)


def worst_case(value: ArrayLike, error: ArrayLike, *, count: ArrayLike | None = None) -> WorstCase:
    r"""Return the largest relative error of a sum whose terms have bounded errors (triangle bound).

    .. math:: |x_i / v_i - 1| \le e_i \;\Rightarrow\;
        |S / V - 1| \le \sum_i w_i e_i, \qquad w_i = n_i v_i / V, \; V = \sum_i n_i v_i

    Definition: certain, and attained when all errors go the same way. The bounds are relative to
    the values: predictions, or measurements if the bounds are percentage errors.
    Misleads if ``error`` is a mean (MAPE) instead of a bound: then it bounds only the mean.

    Parameters
    ----------
    value : array_like, shape (n,)
        Times of one instance, positive.
    error : array_like, shape () or (n,)
        Fractions, ≥ 0.
    count : array_like of int, shape (n,), optional
        Instances; 1 each by default.

    Returns
    -------
    WorstCase

    Raises
    ------
    InputError
        Shapes differ, a value is not positive, an error negative, or a count is not a positive
        integer (the message names the first three rows).

    Examples
    --------
    >>> worst_case([10.0, 30.0], [0.1, 0.02])
    WorstCase(total=40.0, error=0.04, low=38.4, high=41.6)
    """
    v, e, n = columns(value, error, 1 if count is None else count)
    refuse(v, ~(v > 0), "value", "positive")
    refuse(e, ~(e >= 0), "error", "0 or more")
    refuse(n, ~((n >= 1) & (n == np.floor(n))), "count", "a positive integer")
    total = float(n @ v)
    relative = float((n * v / total) @ e)
    return WorstCase(total, relative, total * (1 - relative), total * (1 + relative))


# Results of bounds for any dependence.


@dataclass(frozen=True, slots=True)
class VarianceBounds:
    """Mean of a sum, which no dependence changes, and the range of its standard deviation.

    Attributes
    ----------
    mean : float
        In the unit of the terms.
    low, high : float
        Standard deviation at least and at most. ``high`` is attained if all errors are increasing
        functions of one cause (comonotonic).
    low_attained : bool
        Whether some dependence has the standard deviation ``low``.
    triangle : float
        Sum of the standard deviations; above ``high`` where log-normal terms have different
        spreads, else equal.
    unit : str or None
    """

    mean: float
    low: float
    high: float
    low_attained: bool
    triangle: float
    unit: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> VarianceBounds(10.0, 1.0, 2.0, True, 2.0, "ms").to_dict()["high"]
        2.0
        """
        return asdict(self)


@dataclass(frozen=True, slots=True)
class QuantileBounds:
    """Bounds of a quantile of a sum over all dependences of its terms.

    The sharp bounds lie in [low, low_attained] and [high_attained, high].

    Attributes
    ----------
    q : float
        The quantile.
    low, high : float
        No dependence goes beyond these.
    low_attained, high_attained : float
        Some dependence goes as far as these.
    gap : float
        The larger of low_attained − low and high − high_attained: the bounds could be at most
        this much sharper.
    caveats : tuple of Caveat
        Whether the gap exceeds the tolerance, and whether a term has no mean.
    unit : str or None
    """

    q: float
    low: float
    high: float
    low_attained: float
    high_attained: float
    gap: float
    caveats: tuple[Caveat, ...]
    unit: str | None

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{100 * self.q:g} % quantile within [{format_number(self.low)}, "
            f"{format_number(self.high)}]{unit} for any dependence "
            f"(each bound at most {format_number(self.gap, 2)}{unit} too wide)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> ids, ones = np.array(["a", "b"]), np.ones(2)
        >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, ones, kind="absolute")
        >>> quantile_bounds(terms, 0.95).to_dict()["q"]
        0.95
        """
        caveats = [caveat.to_dict() for caveat in self.caveats]
        return {**asdict(self), "caveats": caveats}


@dataclass(frozen=True, slots=True)
class WorstCase:
    """Largest error of a sum whose terms have bounded errors.

    Attributes
    ----------
    total : float
        Sum of the values.
    error : float
        Largest relative error of the sum, a fraction.
    low, high : float
        total · (1 − error) and total · (1 + error).
    """

    total: float
    error: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> worst_case([10.0, 30.0], 0.1).to_dict()["error"]
        0.1
        """
        return asdict(self)
