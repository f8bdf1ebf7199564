r"""Exact second moments of a sum of correlated terms, without the matrix of their correlations.

Two log-normal terms of means :math:`m_i, m_j`, spreads :math:`s_i, s_j` and correlation R have the
covariance :math:`m_i m_j (e^{s_i s_j R} - 1)`. R depends on the finest common group alone, so that
the sum over all pairs, instance with itself left out, is one sum per level,

.. math::
    \sum_l \sum_g \sum_{i, j \in g} m_i m_j \left(e^{s_i s_j R_l} - e^{s_i s_j R_{l-1}}\right)
    = \sum_k \sum_l \frac{R_l^k - R_{l-1}^k}{k!} \sum_g \Big(\sum_{i \in g} m_i s_i^k\Big)^2,

with :math:`R_l` the correlation at level l and 0 above the coarsest. Every summand is positive:
nothing cancels. Where all spreads of a group are equal the left side is one product per group;
else the series on the right ends where the rest is below 1e-15 of the value. Relative and absolute
errors are the summand k = 1 alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from errcomp.errors import InputError
from errcomp.propagation.terms import Floats, Integers, Terms

__all__ = ["LogNormals", "finite", "linear_variance", "log_normals", "row_covariances"]

_REST = 1e-15
_DISTINCT = 256
_SAMPLE = 4096
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class LogNormals:
    """Log-ratio terms; those of equal spread in one finest group are merged into one row.

    Attributes
    ----------
    scale : float
        Sum of all instances at Z = 0; the unit of what follows.
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
    """Return a total that fits floating point; refuse another."""
    if not math.isfinite(total):
        raise InputError(
            "the total exceeds the largest number in floating point. Give values in a larger unit."
        )
    return total


def log_normals(terms: Terms) -> LogNormals:
    """Merge log-ratio terms."""
    terms = _without_single_rows(terms)
    # In place: at a million terms a fresh array costs as much as the arithmetic on it.
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
            first = _sums(at, first)
            second = _sums(at, second)
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
    """Return groups and cumulative correlations of the levels that explain something."""
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
        # The rest beyond K relative to the value is largest for the largest exponent x and is there
        # at most the probability that a Poisson variable of mean x is K or more.
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
