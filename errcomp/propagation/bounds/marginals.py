r"""The distribution of each term, and the largest quantile of their sum under any dependence.

Every term is an increasing function of a standard variable T (normal or Student t): exp(c + s T) or
c + s T. A lower bound for a sum is an upper bound for the sum of the negatives, so a set of
marginals can be negated (``sign`` −1); T is symmetric, so −X is an increasing function of −T.

The largest quantile of a sum of given marginals is approached from both sides.

From inside: build a dependence that attains the value. The tail of every summand is cut into cells
of equal probability, each represented by its smallest value. Columns are rearranged until each is
oppositely ordered to the sum of the others, so that all rows have nearly the same sum. The smallest
row sum is a quantile that some dependence exceeds.

From outside: for any thresholds r and any D > 0 the functions min((x − r_i)⁺ / D, 1) sum to at
least 1 wherever the sum of the x_i reaches Σ r_i + D, so that

.. math:: P(S \ge \sum_i r_i + D) \le \frac1D \sum_i \int_{r_i}^{r_i + D} P(X_i > x) \, dx

for any dependence. D → 0 is the union bound, D → ∞ the sum of the expected shortfalls. At the best
thresholds P(X_i > r_i) − P(X_i > r_i + D) is the same for all i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from errcomp.errors import InputError, NotDefinedError, describe_rows
from errcomp.propagation.terms import Floats, Terms

_SMALL = 1e-6  # spread of a logarithm
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 1e100  # of T: its square is a number


def standard_isf(probability: Floats, df: float) -> Floats:
    """Value that T exceeds with this probability; T is normal for infinite degrees of freedom."""
    p = np.asarray(probability, dtype=float)
    return np.asarray(-special.ndtri(p) if math.isinf(df) else -special.stdtrit(df, p))


def standard_sf(t: Floats, df: float) -> Floats:
    """Probability that T exceeds t."""
    return np.asarray(special.ndtr(-t) if math.isinf(df) else special.stdtr(df, -t))


def _standard_stop_loss(t: Floats, df: float) -> Floats:
    """E (T − t)⁺, for df > 1."""
    t = np.minimum(t, _FAR)
    if math.isinf(df):
        weighted = np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    else:
        scale = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * math.log(df * np.pi)
        # (df + t²) f(t) / (df − 1)
        weighted = df / (df - 1) * np.exp(scale - (df - 1) / 2 * np.log1p(t * t / df))
    return np.asarray(np.maximum(weighted - t * standard_sf(t, df), 0.0))


@dataclass(frozen=True, slots=True)
class Marginals:
    """Distinct distributions with their counts, and the sum of the certain terms.

    Attributes
    ----------
    center, spread : ndarray, shape (m,)
        c and s; s > 0.
    count : ndarray, shape (m,)
        Copies of each law.
    offset : float
        Sum of all terms without spread.
    log : bool
        exp(c + s T), else c + s T.
    df : float
        Degrees of freedom of T.
    sign : int
        1, or −1 for the negatives.
    """

    center: Floats
    spread: Floats
    count: Floats
    offset: float
    log: bool
    df: float
    sign: int = 1

    @classmethod
    def of(cls, terms: Terms) -> Marginals:
        """Collect the distributions of the terms; equal ones are merged, with more copies."""
        log = terms.kind == "log-ratio"
        center, spread = locations(terms)
        laws, at = np.unique(np.column_stack([center, spread]), axis=0, return_inverse=True)
        count = np.bincount(at.ravel(), weights=terms.count, minlength=len(laws))
        sure = laws[:, 1] == 0
        with np.errstate(over="ignore"):
            fixed = np.exp(laws[sure, 0]) if log else laws[sure, 0]
            offset = float(count[sure] @ fixed)
        rest = ~sure
        return cls(laws[rest, 0], laws[rest, 1], count[rest], offset, log, terms.df)

    def __len__(self) -> int:
        return len(self.center)

    @property
    def copies(self) -> float:
        """Number of uncertain summands."""
        return float(self.count.sum())

    @property
    def tail_is_finite(self) -> bool:
        """Whether the mean of the upper tail has a closed form here, and is finite."""
        return math.isinf(self.df) or (not self.log and self.df > 1)

    def negated(self) -> Marginals:
        """Return the distributions of the negatives."""
        return replace(self, offset=-self.offset, sign=-self.sign)

    def quantile(self, t: Floats) -> Floats:
        """Value of each term where T (of the sign's direction) is t."""
        x = self.center + self.spread * (self.sign * t)
        if self.log:
            with np.errstate(over="ignore"):
                x = np.exp(x)
        return np.asarray(self.sign * x)

    def shift(self, t: Floats, d: Floats) -> Floats:
        """T at which each term is larger by d ≥ 0 than at t; infinity beyond its largest value."""
        if not self.log:
            return np.asarray(t + d / self.spread)
        with np.errstate(over="ignore", divide="ignore"):
            ratio = self.sign * d / np.exp(self.center + self.sign * self.spread * t)
            return np.asarray(t + self.sign * np.log1p(np.maximum(ratio, -1.0)) / self.spread)

    def stop_loss(self, t: Floats) -> Floats:
        """E (X − x)⁺ of each term, x its value at t; only where ``tail_is_finite``."""
        first_order = self.spread * _standard_stop_loss(t, self.df)
        if not self.log:
            return first_order
        s = self.sign * self.spread
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.exp(self.center + s * t)
            tail = np.exp(s * s / 2 - s * t + special.log_ndtr(s - t)) - special.ndtr(-t)
            # With small spreads the two cancel, and exp is linear to the same precision.
            out = x * np.where(self.spread < _SMALL, first_order, self.sign * tail)
        return np.asarray(np.where(np.isposinf(t), 0.0, np.maximum(out, 0.0)))

    def excess(self, t: Floats, d: Floats) -> Floats:
        """E min((X − x)⁺, d) of each term, x its value at t, shape (m,)."""
        end = self.shift(t, d)
        if self.tail_is_finite:
            return self.stop_loss(t) - self.stop_loss(end)
        rate = self.sign * self.spread if self.log else np.zeros(len(self))
        if self.sign < 0:  # beyond, the time is 0
            end = np.minimum(end, t + 40 / np.maximum(-rate, 1e-300))
        # ∫ P(T > τ) dx(τ) with τ = sinh v, which makes a tail of any weight short.
        half = (np.arcsinh(end) - np.arcsinh(t)) / 2
        v = np.arcsinh(t)[..., None] + half[..., None] * (1 + _NODES)
        tau = np.sinh(v)
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.exp((self.log * self.center)[:, None] + rate[:, None] * tau)
            integral = (standard_sf(tau, self.df) * growth * np.cosh(v)) @ _WEIGHTS
            return np.asarray(half * self.spread * integral)

    def sf(self, x: float) -> Floats:
        """Probability that each term exceeds x."""
        v = np.asarray(self.sign * x)
        if self.log:
            with np.errstate(divide="ignore"):
                v = np.log(np.maximum(v, 0.0))
        return standard_sf(self.sign * (v - self.center) / self.spread, self.df)

    def take(self, index: NDArray[np.integer[Any]]) -> Marginals:
        """Return some of the distributions, without the certain terms."""
        return replace(
            self,
            center=self.center[index],
            spread=self.spread[index],
            count=self.count[index],
            offset=0.0,
        )


def locations(terms: Terms) -> tuple[Floats, Floats]:
    """Location and scale of each term: of its logarithm for log-ratio errors, else of itself."""
    if terms.kind == "log-ratio":
        return np.log(terms.value) + terms.bias, np.asarray(terms.spread, dtype=float)
    scale = np.abs(terms.value) if terms.kind == "relative" else 1.0
    return terms.centre(), np.asarray(scale * terms.spread, dtype=float)


# Checks of the input of bounds, and of bounds that overflow.


def number(value: object) -> float:
    """Return a value as a number, or NaN."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def open_unit(name: str, value: object) -> float:
    """Return a number between 0 and 1, both excluded."""
    x = number(value)
    if not 0 < x < 1:
        raise InputError(f"{name}: must be a number between 0 and 1, both excluded, got {value!r}")
    return x


def finite(value: float, terms: Terms) -> float:
    """Return a bound; refuse an overflow."""
    if not math.isfinite(value):
        raise too_large(terms)
    return value


def too_large(terms: Terms) -> NotDefinedError:
    """Return the error for terms so wide that a bound overflows."""
    at = int(np.argmax(terms.spread))
    return NotDefinedError(
        f"a bound is beyond the largest floating-point number. The largest spread is "
        f"{terms.spread[at]:g} (term {terms.ids[at]}, df = {terms.df:g}). Check the error model of "
        "this term's class, and the number of terms with Student t tails, which widen the bounds."
    )


def columns(*values: ArrayLike) -> list[Floats]:
    """Return arrays of equal length as columns of floats."""
    try:
        arrays = [np.atleast_1d(np.asarray(c, dtype=float)) for c in values]
        out = np.broadcast_arrays(*arrays)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"value, error and count: must be numbers, one of each per term ({problem})"
        ) from problem
    if out[0].ndim != 1 or out[0].size == 0:
        raise InputError(
            f"value, error and count: must be columns of at least one row, got shape {out[0].shape}"
        )
    return [np.asarray(column, dtype=float) for column in out]


def refuse(x: Floats, bad: NDArray[np.bool_], name: str, wanted: str) -> None:
    """Raise for the first rows that are marked or not finite."""
    bad = bad | ~np.isfinite(x)
    if bad.any():
        rows = np.flatnonzero(bad)
        raise InputError(
            f"{name}: must be {wanted} and finite, got {x[rows[0]]:g} in "
            f"{describe_rows((rows + 1).tolist())}"
        )


_BLOCKS = 32  # columns to rearrange; more summands are joined, which also is a dependence
_SWEEPS = 100  # over all columns, at most
_CELLS = 1 << 13  # at most, of the tail of a summand
_MOST = 1e280  # cap of larger values, where less is a valid bound
_EFFORT = 50_000_000  # values of quantile functions at a time
_ROUNDING = 1e-12  # of a difference of sums, against their summands
_POINTS = 20  # values of u to try, densest where it is nearly alpha
_CAPPED = 24  # summands with a capped dual function; the tails of the others are small against D


def rearrange(values: Floats) -> Floats:
    """Permute the columns of a matrix so that its smallest row sum becomes large.

    Parameters
    ----------
    values : ndarray, shape (k, d)
        Columns in any order.

    Returns
    -------
    ndarray, shape (k,)
        Row sums of the rearranged matrix.
    """
    x = values.copy()
    falling = -np.sort(-x, axis=0)
    row: Floats = x.sum(axis=1)
    best, smallest = row, float(row.min())
    for _ in range(_SWEEPS):
        for j in range(x.shape[1]):
            row = row - x[:, j]
            order = np.argsort(row, kind="stable")
            x[order, j] = falling[:, j]
            row = row + x[:, j]
        row = x.sum(axis=1)
        now = float(row.min())
        if now <= smallest + 1e-9 * abs(smallest):
            break
        best, smallest = row, now
    return best


def _blocks(m: Marginals, size: Floats) -> Floats:
    """Return the copies of each law in each column, (m, columns); columns of about one size."""
    columns = int(min(m.copies, _BLOCKS))
    weights = np.repeat((m.count // columns)[:, None], columns, axis=1)
    load = np.zeros(columns)
    left = (m.count % columns).astype(np.int64)
    for i in np.argsort(-size, kind="stable"):
        lightest = np.argsort(load, kind="stable")[: left[i]]
        weights[i, lightest] += 1
        load[lightest] += size[i]
    return weights


def _tail_sums(m: Marginals, t: Floats, weights: Floats, most: float = math.inf) -> Floats:
    """Weighted sums of the quantiles at each t, each at most ``most``, (len(t), columns)."""
    out = np.empty((len(t), weights.shape[1]))
    step = max(1, _EFFORT // (16 * len(m)))
    for k in range(0, len(t), step):
        with np.errstate(over="ignore", invalid="ignore"):
            out[k : k + step] = np.minimum(m.quantile(t[k : k + step, None]), most) @ weights
    return out


def inside(m: Marginals, alpha: float, *, outer: float, tolerance: float) -> float:
    """Return a value that the sum exceeds with probability alpha under some dependence.

    Parameters
    ----------
    m : Marginals
        At least one.
    alpha : float
        Probability of the upper tail.
    outer : float
        No dependence goes beyond this value.
    tolerance : float
        The cells become finer until the result is within this share of ``outer``, or the effort
        is spent.

    Returns
    -------
    float
    """
    weights = _blocks(m, _tail_size(m, alpha))
    best = -math.inf
    cells = 1 << 8
    while cells <= _CELLS:
        exceedance = alpha * (cells - np.arange(cells)) / cells
        x = _tail_sums(m, standard_isf(exceedance, m.df), weights, _MOST)
        best = max(best, m.offset + float(rearrange(x).min()))
        if outer - best <= tolerance * abs(outer) or cells * 4 * len(m) > _EFFORT:
            break
        cells *= 4
    return best


def outside(m: Marginals, alpha: float) -> float:
    """Return a value that the sum exceeds with at most probability alpha, for any dependence.

    Parameters
    ----------
    m : Marginals
        At least one.
    alpha : float
        Probability of the upper tail.

    Returns
    -------
    float
        Infinite where every bound is beyond the largest float64.
    """
    if not np.all(np.isfinite(m.quantile(_isf(alpha, m)))):
        return math.inf
    order = np.argsort(-m.count * _tail_size(m, alpha), kind="stable")
    m = replace(m.take(order), offset=m.offset)
    if m.copies == 1:
        return m.offset + float(m.quantile(_isf(alpha, m))[0])
    # A bound that overflows is useless and skipped.
    with np.errstate(over="ignore", invalid="ignore"):
        return m.offset + min(_dual(m, alpha), _one_against_the_rest(m, alpha))


def _isf(probability: float, m: Marginals) -> Floats:
    return np.full(len(m), float(standard_isf(np.asarray(probability), m.df)))


def _tail_size(m: Marginals, alpha: float) -> Floats:
    """Return the reach of each tail, limited so that sums do not overflow."""
    reach = m.quantile(_isf(alpha / 8, m)) - m.quantile(_isf(alpha, m))
    return np.asarray(np.minimum(reach, _MOST))


def _one_against_the_rest(m: Marginals, alpha: float) -> float:
    """Union bound of one copy of the first term and the others, for each share of alpha.

    Sharper than the dual functions where one term dominates and alpha is large.
    """
    count = m.count.copy()
    count[0] -= 1
    rest = replace(m, count=count)
    share = np.geomspace(1e-9, 0.5, 40)
    epsilon = alpha * share
    own = m.take(np.array([0])).quantile(standard_isf(alpha * (1 - share), m.df)[:, None])[:, 0]
    others = m.quantile(standard_isf(epsilon / rest.copies, m.df)[:, None]) @ count
    if m.tail_is_finite:
        t = np.broadcast_to(standard_isf(epsilon, m.df)[:, None], (len(share), len(m)))
        shortfalls = m.quantile(t) + m.stop_loss(t) / epsilon[:, None]
        others = np.minimum(others, shortfalls @ count)
    if m.log and m.sign < 0:
        others = np.minimum(others, 0.0)
    return float(np.nanmin(own + others, initial=math.inf))


def _dual(m: Marginals, alpha: float) -> float:
    """Smallest dual bound over the common value u of P(X > r) − P(X > r + D)."""
    capped = _CAPPED if m.tail_is_finite else 3 * _CAPPED
    large, rest = m.take(np.arange(min(capped, len(m)))), m.take(np.arange(capped, len(m)))
    others = _SmallTerms(rest, alpha)
    grid, best = math.log(1e-6) * np.linspace(1.0, 0.0, _POINTS) ** 2, math.inf
    for _ in range(2):
        values = _with_thresholds(large, others, alpha * np.exp(grid))
        k = int(np.argmin(values))
        best = min(best, float(values[k]))
        grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)], 10)[1:-1]
    return best


class _SmallTerms:
    """Many smaller summands, each with the uncapped dual function (x − r)⁺ / D.

    Without a finite mean each is cut off at its β-quantile. The probability that any exceeds it is
    taken from alpha; ``alpha`` is the rest. The bound then depends only on their comonotonic sum C;
    its integral is that of a step function above the true one.
    """

    def __init__(self, m: Marginals, alpha: float) -> None:
        self.m, self.alpha = m, alpha
        if m.tail_is_finite or not len(m):
            return
        cells = 1 << 12 if len(m) <= 10_000 else 1 << 10
        least = math.log(max(1e-9 / m.copies, 1e-280))
        beta = alpha * np.exp(np.linspace(0.0, least, cells))
        c = _tail_sums(m, standard_isf(beta, m.df), m.count[:, None])[:, 0]
        known = max(int(np.isfinite(c).sum()), 1)
        self.beta, self.c = beta[:known], c[:known]
        self.integral = np.append(0.0, np.cumsum(self.beta[:-1] * np.diff(self.c)))
        left = alpha - m.copies * self.beta
        ends = np.flatnonzero(left > 0)
        start = np.minimum(np.searchsorted(-self.beta, -left[ends]), ends)
        gain = self.c[start] + (self.integral[ends] - self.integral[start]) / left[ends]
        self.end = int(ends[np.argmin(gain)])
        self.alpha = float(left[self.end])

    def at(self, u: float) -> tuple[float, float]:
        """Σ r and Σ E (X − r)⁺ with r exceeded with probability u."""
        m = self.m
        if not len(m):
            return 0.0, 0.0
        if m.tail_is_finite:
            t = _isf(u, m)
            return float(m.count @ m.quantile(t)), float(m.count @ m.stop_loss(t))
        k = min(int(np.searchsorted(-self.beta, -u)), self.end)
        return float(self.c[k]), float(self.integral[self.end] - self.integral[k])


def _with_thresholds(m: Marginals, rest: _SmallTerms, u: Floats) -> Floats:
    """Σ r + D with the thresholds that belong to each u and the smallest D for them."""
    alpha = rest.alpha
    total, excess = np.array([rest.at(float(v)) for v in u]).T

    def surplus(t: Floats, d: Floats) -> Floats:
        return np.asarray(m.excess(t, d[:, None]) @ m.count + excess - alpha * d)

    # D at which its best thresholds spend all of alpha, by bisection.
    scale = np.log(np.maximum(m.count @ _tail_size(m, alpha) + excess, 1e-300))
    low, high = scale - 14, scale + 10
    above = np.broadcast_to(standard_isf(u, m.df)[:, None], (len(u), len(m)))
    below = np.minimum(above, 0.0) - 8.0
    # With normal tails thresholds rise with D: its range limits them, and few steps are enough.
    nested = math.isinf(m.df)
    for _ in range(11):
        log_d = (low + high) / 2
        d = np.exp(log_d)
        lower, upper = _thresholds(m, u, d, below, above, 5 if nested else 15)
        spent = surplus(upper, d) > 0
        low, high = np.where(spent, log_d, low), np.where(spent, high, log_d)
        if nested:
            rising = spent[:, None]
            below, above = np.where(rising, lower, below), np.where(rising, above, upper)
    d = np.exp(high)
    t = _thresholds(m, u, d, below, above, 8 if nested else 15)[1]
    # With wide spreads thresholds are so far out that the surplus is only rounding.
    valid = surplus(t, d) <= -_ROUNDING * (np.abs(m.quantile(t)) @ m.count)
    # Newton from the right: the surplus is concave in D, so every step stays on the valid side.
    for _ in range(3):
        slope = standard_sf(m.shift(t, d[:, None]), m.df) @ m.count - alpha
        d = d - np.where(valid, np.maximum(surplus(t, d) / slope, 0.0), 0.0)
    bound = m.quantile(t) @ m.count + total + d
    return np.where(valid & np.isfinite(bound), bound, math.inf)


def _thresholds(
    m: Marginals, u: Floats, d: Floats, low: Floats, high: Floats, steps: int
) -> tuple[Floats, Floats]:
    """T of r with P(X > r) − P(X > r + d) = u on the falling branch, between two values, (u, m)."""
    for _ in range(steps):
        middle = (low + high) / 2
        within = standard_sf(middle, m.df) - standard_sf(m.shift(middle, d[:, None]), m.df)
        above = within > u[:, None]
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low, high
