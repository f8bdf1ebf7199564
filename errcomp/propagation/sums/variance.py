r"""Exact second moments of a sum of correlated terms, without the matrix of their correlations.

Two log-normal terms of means :math:`m_i, m_j`, spreads :math:`s_i, s_j` and correlation R have the
covariance :math:`m_i m_j (e^{s_i s_j R} - 1)`. R depends only on the finest common group, so the
sum over all pairs, without pairs of an instance with itself, is one sum per level,

.. math::
    \sum_l \sum_g \sum_{i, j \in g} m_i m_j \left(e^{s_i s_j R_l} - e^{s_i s_j R_{l-1}}\right)
    = \sum_k \sum_l \frac{R_l^k - R_{l-1}^k}{k!} \sum_g \Big(\sum_{i \in g} m_i s_i^k\Big)^2,

with :math:`R_l` the correlation at level l and 0 above the coarsest. Every summand is positive:
nothing cancels. If all spreads of a group are equal, the left side is one product per group.
Otherwise the series on the right ends where the rest is below 1e-15 of the value. Relative and
absolute errors have only the summand k = 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation.sums.laws import Moments
from errcomp.propagation.terms import Floats, Integers, Terms, check_terms

_REST = 1e-15
_DISTINCT = 256
_SAMPLE = 4096
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class LogNormals:
    """Log-ratio terms; terms with equal spread in one finest group are merged.

    Attributes
    ----------
    scale : float
        Sum of all instances at Z = 0; the unit of the other attributes.
    first, second : ndarray, shape (rows,)
        Σ n x and Σ n x² of the merged terms, x = p exp(b) / scale, n = count.
    spread : ndarray, shape (rows,)
    codes : tuple of ndarray, shape (rows,)
        Groups, coarse to fine, of the levels that have a share.
    cumulative : ndarray, shape (levels,)
    matrix : ndarray, shape (rows, rows), optional
    """

    scale: float
    first: Floats
    second: Floats
    spread: Floats
    codes: tuple[Integers, ...]
    cumulative: Floats
    matrix: Floats | None

    def moments(self, factor: float = 1.0) -> tuple[float, float]:
        """Return mean / scale and variance / mean² with all spreads times a factor; may be inf."""
        spread = factor * self.spread
        square = spread * spread
        with np.errstate(over="ignore", invalid="ignore"):
            grown = self.first * np.exp(0.5 * square)
            mean = float(grown.sum())
            grown /= mean
            if self.matrix is not None:
                return mean, float(grown @ np.expm1(np.outer(spread, spread) * self.matrix) @ grown)
            common = float(self.cumulative[-1]) if len(self.cumulative) else 0.0
            own = np.exp(square * (1.0 + common)) * np.expm1(square * max(0.0, 1.0 - common))
            shared = _shared(grown, spread, self.codes, self.cumulative)
            return mean, float(self.second @ own) / mean / mean + shared


def finite(total: float) -> float:
    """Return a total; refuse an overflow."""
    if not math.isfinite(total):
        raise InputError("the total exceeds the largest floating-point number. Use a larger unit.")
    return total


def log_normals(terms: Terms) -> LogNormals:
    """Merge log-ratio terms."""
    terms = _without_single_rows(terms)
    # In place, because with a million terms a new array costs as much as the arithmetic on it.
    second: Floats = np.exp(terms.bias)
    second *= terms.value
    first: Floats = terms.count * second
    scale = finite(float(first.sum()))
    first /= scale
    second *= first
    second /= scale
    codes, cumulative = _levels(terms)
    spread = terms.spread
    if terms.matrix is None:
        merge = _merge(codes, spread)
        if merge is not None:
            at, representative = merge
            first, second = _sums(at, first), _sums(at, second)
            spread = spread[representative]
            codes = tuple(c[representative] for c in codes)
    return LogNormals(scale, first, second, spread, codes, cumulative, terms.matrix)


def linear_variance(terms: Terms, loading: Floats) -> float:
    """Variance of the sum of ``count`` × loading × Z for each term, Z of variance 1."""
    terms = _without_single_rows(terms)
    weight = terms.count * loading
    if terms.matrix is not None:
        return float(weight @ (terms.matrix @ weight))
    codes, cumulative = _levels(terms)
    shares = np.diff(cumulative, prepend=0.0)
    variance = terms.own_share * float(weight @ loading)
    for group, share in zip(codes, shares, strict=True):
        sums = _sums(group, weight)
        variance += share * float(sums @ sums)
    return variance


def row_covariances(
    terms: Terms, loading: Floats, labels: Integers | None = None, *, exponential: bool
) -> Floats:
    """Covariance of each term (all its instances) with the sum of the terms of its label.

    Parameters
    ----------
    terms : Terms
    loading : ndarray, shape (n,)
        Mean of one instance if exponential, else its factor of Z.
    labels : ndarray of int, shape (n,), optional
        0 … labels − 1. None: covariance with the sum of all terms.
    exponential : bool
        Log-normal terms, else linear ones.

    Returns
    -------
    ndarray, shape (n,)
    """
    terms = _without_single_rows(terms)
    weight = terms.count * loading
    if terms.matrix is not None:
        spread = terms.spread
        pairs = np.expm1(np.outer(spread, spread) * terms.matrix) if exponential else terms.matrix
        if labels is not None:
            pairs = pairs * (labels[:, None] == labels[None, :])
        return weight * (pairs @ weight)
    codes, cumulative = _levels(terms)
    if labels is not None:
        size = int(labels.max()) + 1
        codes = tuple(np.unique(c * size + labels, return_inverse=True)[1] for c in codes)
    if not exponential:
        out = terms.own_share * weight * loading
        for group, share in zip(codes, np.diff(cumulative, prepend=0.0), strict=True):
            out += share * weight * _sums(group, weight)[group]
        return out
    square = terms.spread**2
    common = float(cumulative[-1]) if len(cumulative) else 0.0
    out = weight * loading * np.exp(square * common) * np.expm1(square * max(0.0, 1.0 - common))
    if len(cumulative):
        series = _Series.of(terms.spread, cumulative)
        term = weight.copy()
        for steps in series.coefficients:
            term *= series.ratio
            for group, step in zip(codes, steps, strict=True):
                out += step * term * _sums(group, term)[group]
    return out


def _sums(codes: Integers, weight: Floats) -> Floats:
    """Sum of each group."""
    return np.bincount(codes, weight).astype(np.float64, copy=False)


def _without_single_rows(terms: Terms) -> Terms:
    """Drop a finest level of one instance per group: its share is each instance's own."""
    finest = terms.levels[-1] if terms.levels else None
    if finest is None or int(finest.codes.max()) + 1 < len(terms) or not (terms.count == 1).all():
        return terms
    return replace(terms, levels=terms.levels[:-1])


def _levels(terms: Terms) -> tuple[tuple[Integers, ...], Floats]:
    """Return groups and cumulative correlations of the levels with a share of the variance."""
    used = [level.share > 0 for level in terms.levels]
    codes = tuple(v.codes for v, use in zip(terms.levels, used, strict=True) if use)
    return codes, terms.cumulative[used] if codes else np.zeros(0)


def _members(codes: Integers) -> Integers:
    """Return one row of each group."""
    rows = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def _representatives(codes: Integers, spread: Floats) -> Integers | None:
    """Return one row of each group if the spreads within every group are equal."""
    members = _members(codes)
    of_group = spread[members]
    for begin in range(0, len(codes), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        if not bool((of_group[codes[rows]] == spread[rows]).all()):
            return None
    return members


def _merge(codes: tuple[Integers, ...], spread: Floats) -> tuple[Integers, Integers] | None:
    """Return a number for each (finest group, spread) and a row of each; None if they are many."""
    finest = codes[-1] if codes else np.zeros(len(spread), dtype=np.int64)
    representative = _representatives(finest, spread)
    if representative is not None:
        return finest, representative
    table = np.unique(spread[:: max(1, len(spread) // _SAMPLE)])
    if len(table) > _DISTINCT or len(table) * (int(finest.max()) + 1) > len(spread):
        return None
    at = np.minimum(np.searchsorted(table, spread), len(table) - 1)
    if not bool((table[at] == spread).all()):
        return None
    at += finest * len(table)
    return at, _members(at)


def _shared(weight: Floats, spread: Floats, codes: Sequence[Integers], cumulative: Floats) -> float:
    """Sum of the covariances through common groups, repetitions of one term included."""
    total = 0.0
    for level in range(len(codes) - 1, -1, -1):
        representative = _representatives(codes[level], spread)
        if representative is None:
            return total + _series(weight, spread, codes[: level + 1], cumulative[: level + 1])
        weight = _sums(codes[level], weight)
        spread = spread[representative]
        codes = [c[representative] for c in codes[:level]]
        square, above = spread**2, float(cumulative[level - 1]) if level else 0.0
        step = np.exp(square * above) * np.expm1(square * (float(cumulative[level]) - above))
        total += float(weight**2 @ step)
    return total


@dataclass(frozen=True, slots=True)
class _Series:
    """Power series of the exponential: steps[k] of each level and spread / largest spread."""

    ratio: Floats
    coefficients: Floats

    @classmethod
    def of(cls, spread: Floats, cumulative: Floats) -> _Series:
        # The relative rest beyond K is largest for the largest exponent x. There it is at most the
        # probability that a Poisson variable of mean x is K or more.
        largest = float(spread.max())
        x = largest**2 * float(cumulative[-1])
        if x == 0:
            return cls(spread, np.zeros((0, len(cumulative))))
        k = np.arange(1.0, 20.0 + x + 12.0 * np.sqrt(x))
        k = k[: int(np.argmax(special.gammainc(k, x) <= _REST)) + 1]
        power = np.exp(k * np.log(x) - special.gammaln(k + 1))
        within = (cumulative / cumulative[-1])[None, :] ** k[:, None]
        return cls(spread / largest, power[:, None] * np.diff(within, axis=1, prepend=0.0))


def _series(weight: Floats, spread: Floats, codes: Sequence[Integers], cumulative: Floats) -> float:
    series = _Series.of(spread, cumulative)
    members = _members(codes[-1])
    parents = [c[members] for c in codes[:-1]]
    total = 0.0
    powers = _powers(weight, series, codes[-1], len(members))
    for steps, sums in zip(series.coefficients, powers, strict=True):
        total += float(steps[-1]) * float(sums @ sums)
        for parent, step in zip(parents, steps[:-1], strict=True):
            above = _sums(parent, sums)
            total += float(step) * float(above @ above)
    return total


def _powers(weight: Floats, series: _Series, codes: Integers, groups: int) -> Iterator[Floats]:
    """Yield the sums over each group of weight times ratio, times its square, and so on."""
    n, k = len(weight), len(series.coefficients)
    if k * groups > n:
        term = weight.copy()
        for _ in range(k):
            term *= series.ratio
            yield _sums(codes, term)
        return
    sums = np.zeros((k, groups))
    for begin in range(0, n, _CHUNK):  # pieces that stay in the cache
        rows = slice(begin, begin + _CHUNK)
        term, ratio, at = weight[rows].copy(), series.ratio[rows], codes[rows]
        for out in sums:
            term *= ratio
            out += np.bincount(at, term, minlength=groups)
    yield from sums


#: Allowed rounding in a covariance matrix, relative to its largest variance.
_ROUNDING = 1e-9
_ALL, _SOME = 256, 64
NOT_DEFINITE = (
    "the matrix is not positive semi-definite: the variance of the sum would be {variance:.6g}. "
    "Correlations estimated pair by pair may be inconsistent. Give a consistent matrix, e.g. the "
    "nearest positive semi-definite one."
)


def total_from_covariance(
    values: ArrayLike, covariance: ArrayLike, *, unit: str | None = None
) -> Moments:
    r"""Return the sum of terms with a given covariance matrix.

    .. math:: \operatorname{E} S = \sum_i x_i, \qquad
        \operatorname{Var} S = \mathbf 1^{\mathsf T} \Sigma \mathbf 1

    Definition: exact for any distribution of the terms; the quantiles are those of a normal. One
    pass over the matrix. It must be symmetric and positive semi-definite. The checks are necessary
    but not sufficient: finite entries, variances that are not negative, symmetry (of all entries up
    to 256 terms, else of those between 64 evenly spaced terms), and a variance of the sum that is
    not negative.

    Parameters
    ----------
    values : array_like, shape (n,)
        Predictions, or best estimates, of the terms.
    covariance : array_like, shape (n, n)
        In the square of their unit.
    unit : str, optional

    Returns
    -------
    Moments

    Raises
    ------
    InputError
        Shapes do not fit, there is no term, an entry is not finite, a variance is negative, the
        matrix is not symmetric, or the variance of the sum is negative.

    References
    ----------
    JCGM 100:2008, "Guide to the expression of uncertainty in measurement", clause 5.2.2.

    Examples
    --------
    >>> total = total_from_covariance([10.0, 20.0], [[1.0, 0.5], [0.5, 4.0]])
    >>> total.mean, round(total.sd, 4)
    (30.0, 2.4495)
    """
    x, matrix = _as_floats(values, "values"), _as_floats(covariance, "covariance")
    if x.ndim != 1 or len(x) == 0 or matrix.shape != (len(x), len(x)):
        raise InputError(
            f"values must have shape (n,) and covariance (n, n) with n of at least 1, got "
            f"{x.shape} and {matrix.shape}."
        )
    variances = matrix.diagonal()
    largest = float(variances.max())
    with np.errstate(over="ignore", invalid="ignore"):
        variance, mean = float((matrix @ np.ones(len(x))).sum()), float(x.sum())
    if not (math.isfinite(variance) and math.isfinite(mean)):
        _not_finite(x, matrix)
    if float(variances.min()) < 0:
        at = int(variances.argmin())
        raise InputError(
            f"variances must not be negative, got {variances[at]:.6g} at position ({at}, {at})."
        )
    _check_symmetric(matrix, _ROUNDING * largest)
    if variance < -_ROUNDING * len(x) ** 2 * largest:
        raise InputError(NOT_DEFINITE.format(variance=variance))
    sd = math.sqrt(max(variance, 0.0))
    return Moments(
        prediction=mean,
        mean=mean,
        sd=sd,
        law="normal",
        location=mean,
        scale=sd,
        df=math.inf,
        n_terms=len(x),
        n_instances=len(x),
        unit=unit,
    )


def _as_floats(values: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers, got {values!r:.60}.") from None


def _not_finite(values: Floats, matrix: Floats) -> NoReturn:
    for name, array in (("values", values), ("covariance", matrix)):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            at = tuple(int(i) for i in bad[0])
            where = at[0] if len(at) == 1 else at
            raise InputError(
                f"{name} must be finite, got {array[at]} at position {where} "
                f"({len(bad)} such {'entry' if len(bad) == 1 else 'entries'})."
            )
    raise InputError("the sum exceeds the largest floating-point number. Use a larger unit.")


def _check_symmetric(matrix: Floats, tolerance: float) -> None:
    """Refuse a matrix that is not symmetric; of large ones, only some terms are compared."""
    step = 1 if len(matrix) <= _ALL else -(-len(matrix) // _SOME)
    some = matrix[::step, ::step].copy()  # few lines of the cache: entries of a row are close
    if (np.abs(some - some.T) <= tolerance).all():
        return
    apart = np.abs(matrix - matrix.T)
    i, j = sorted(int(k) for k in np.unravel_index(int(apart.argmax()), apart.shape))
    raise InputError(
        f"covariance must be symmetric, got {matrix[i, j]:.6g} at position ({i}, {j}) and "
        f"{matrix[j, i]:.6g} at ({j}, {i})."
    )


@dataclass(frozen=True, slots=True)
class Widths:
    """Inputs of second-order results.

    Attributes
    ----------
    sd : ndarray, shape (n,)
        Standard deviation of one instance, over the sum of those of all instances.
    loading : ndarray, shape (n,)
        On the same scale: mean of one instance (log-normal) or its factor of Z (linear).
    mean : ndarray, shape (n,)
        Mean time of all instances of a term (log-ratio t: at Z = 0), in the unit of the terms.
    variance : float
        Variance of the sum on that scale: 1 if all errors are the same, 1 / N for N equal and
        independent ones.
    exponential : bool
        Whether the covariances are those of log-normal variables.
    """

    sd: Floats
    loading: Floats
    mean: Floats
    variance: float
    exponential: bool


def log_normal_mean(terms: Terms) -> Floats:
    """Mean of one instance of each term with normal log-ratio errors."""
    with np.errstate(over="ignore"):
        return terms.value * np.exp(terms.bias + 0.5 * terms.spread**2)


def first_order(terms: Terms) -> tuple[Floats, Floats]:
    """Centre of one instance of each term and its factor of Z: exact but for log-ratio errors."""
    centre = terms.centre()
    if terms.kind == "absolute":
        return centre, terms.spread
    return centre, (centre if terms.kind == "log-ratio" else terms.value) * terms.spread


def root(variance: float, terms: Terms) -> float:
    """Return the root of a variance relative to a sum of positive parts; refuse invalid ones."""
    if not math.isfinite(variance):
        at = int(np.argmax(terms.spread))
        raise InputError(
            "a spread is so large that the variance overflows, got "
            f"{terms.spread[at]:.6g} for {terms.ids[at]}. A log-ratio spread of 1 is already a "
            "factor of 2.7 either way. Check the error of that kernel."
        )
    if variance < -1e-9:
        raise InputError(NOT_DEFINITE.format(variance=variance))
    return math.sqrt(max(0.0, variance))


def widths(terms: Terms) -> Widths:
    """Return the widths of terms of which at least one is uncertain.

    Log-ratio errors with Student t tails have no variance; theirs are of first order, on the scale
    of the logarithm: p exp(b) s for one instance.
    """
    check_terms(terms)
    if not terms.spread.any():
        raise NotDefinedError("all spreads are 0, so the total has no error to divide among terms.")
    if terms.kind == "log-ratio" and math.isinf(terms.df):
        return _log_normal_widths(terms)
    centre, loading = first_order(terms)
    loading = loading / finite(float(terms.count @ np.abs(loading)))
    variance = root(linear_variance(terms, loading), terms) ** 2
    return Widths(np.abs(loading), loading, terms.count * centre, variance, exponential=False)


def _log_normal_widths(terms: Terms) -> Widths:
    per_kernel = log_normal_mean(terms)
    _, relative = log_normals(terms).moments()
    relative = root(relative, terms) ** 2
    mean = terms.count * per_kernel
    sd = per_kernel * np.sqrt(np.expm1(terms.spread**2))
    scale = float(terms.count @ sd)
    variance = relative * (float(mean.sum()) / scale) ** 2
    return Widths(sd / scale, per_kernel / scale, mean, variance, exponential=True)
