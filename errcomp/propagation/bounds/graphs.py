"""Bounds for the maximum of several times, and for whole graphs, under any dependence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, NotDefinedError, describe_names, describe_rows
from errcomp.propagation.bounds.marginals import (
    Marginals,
    finite,
    locations,
    number,
    open_unit,
    standard_isf,
)
from errcomp.propagation.graph import Algebra
from errcomp.propagation.terms import Floats, Terms, check_terms


def frechet_max_cdf(terms: Terms, x: float) -> tuple[float, float]:
    r"""Return the range, over all dependences, of the probability that no term exceeds x.

    .. math:: \max\Big(0,\, 1 - \sum_i n_i P(X_i > x)\Big) \le P(\max_i X_i \le x)
        \le \min_i P(X_i \le x)

    Definition: the Fréchet-Hoeffding bounds; each repetition counts as a term. Both are attained:
    the upper one if all errors are increasing functions of one cause, the lower one if no two terms
    exceed x together.

    Parameters
    ----------
    terms : Terms
    x : float
        A time, in the unit of the terms.

    Returns
    -------
    tuple of float
        Probabilities, at least and at most.

    Raises
    ------
    InputError
        x is not a number.

    References
    ----------
    Lai and Robbins (1976), "Maximally dependent random variables", Proceedings of the National
    Academy of Sciences 73(2), 286-288.

    Examples
    --------
    >>> import numpy as np
    >>> ids, ones = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, ones, kind="absolute")
    >>> low, high = frechet_max_cdf(terms, 11.0)
    >>> round(low, 4), round(high, 4)
    (0.6827, 0.8413)
    """
    check_terms(terms)
    x = number(x)
    if math.isnan(x):
        raise InputError("x: must be a number (a time)")
    m, certain = _with_certain(terms)
    if x < certain:
        return 0.0, 0.0
    if not len(m):
        return 1.0, 1.0
    beyond = m.sf(x)
    return max(0.0, 1.0 - float(m.count @ beyond)), 1.0 - float(beyond.max())


def frechet_max(terms: Terms, q: float) -> tuple[float, float]:
    r"""Return the range of a quantile of the largest term over all dependences.

    .. math:: \max_i Q_i(q) \le Q_{\max}(q) \le x, \qquad \sum_i n_i P(X_i > x) = 1 - q

    Definition: the inverse of the Fréchet-Hoeffding bounds (`frechet_max_cdf`); both are attained.

    Parameters
    ----------
    terms : Terms
        Branches to wait for; each repetition counts as a branch.
    q : float
        In (0, 1).

    Returns
    -------
    tuple of float
        Low and high, in the unit of the terms.

    Raises
    ------
    InputError
        q is not in (0, 1).
    NotDefinedError
        A bound is beyond the largest float64.

    References
    ----------
    Lai and Robbins (1976), as for `frechet_max_cdf`.

    Examples
    --------
    >>> import numpy as np
    >>> ids, ones = np.array(["rank"]), np.ones(1)
    >>> terms = Terms(ids, ids, 10 * ones, np.array([64]), 0 * ones, ones, kind="absolute")
    >>> low, high = frechet_max(terms, 0.5)
    >>> round(low, 3), round(high, 3)
    (10.0, 12.418)
    """
    check_terms(terms)
    q = open_unit("q", q)
    m, certain = _with_certain(terms)
    if not len(m):
        return certain, certain
    near, far = standard_isf(np.asarray([1 - q, (1 - q) / m.copies]), m.df)
    low, high = float(m.quantile(near).max()), finite(float(m.quantile(far).max()), terms)
    start = low
    for _ in range(80):  # the upper end always is a valid bound
        middle = (start + high) / 2
        enough = float(m.count @ m.sf(middle)) <= 1 - q
        start, high = (start, middle) if enough else (middle, high)
    return max(low, certain), max(high, certain)


def frechet_max_table(
    probability: ArrayLike, quantiles: ArrayLike, q: float
) -> tuple[float, float]:
    r"""Return the range of a quantile of the maximum, from tables of quantiles.

    For quantities other than terms: branches of a graph with simulated distributions.
    Definition: as `frechet_max`, with the worst case where the tables have gaps: between two
    columns a quantile may lie anywhere between their values.

    Parameters
    ----------
    probability : array_like, shape (k,)
        Increasing, in (0, 1).
    quantiles : array_like, shape (n, k)
        Row i: the quantiles of quantity i at these probabilities, not decreasing.
    q : float
        In (0, 1), not below the first probability.

    Returns
    -------
    tuple of float
        Low and high.

    Raises
    ------
    InputError
        Shapes do not match, or rows decrease or are not finite (the message names the first three).
    NotDefinedError
        The tables do not reach far enough: they must go beyond 1 − (1 − q) / n.

    Examples
    --------
    >>> p = [0.5, 0.9, 0.95, 0.99]
    >>> frechet_max_table(p, [[1.0, 2.0, 3.0, 4.0], [1.5, 1.6, 1.7, 1.8]], 0.9)
    (2.0, 3.0)
    """
    q = open_unit("q", q)
    p, x = _table(probability, quantiles)
    if q < p[0]:
        raise NotDefinedError(
            f"q = {q:g} is below the first probability of the table, {p[0]:g}. Add smaller "
            "probabilities to the table."
        )
    low = float(x[:, np.searchsorted(p, q, side="right") - 1].max())
    values = np.unique(x)
    known = np.append(0.0, p)
    missing = sum(1.0 - known[np.searchsorted(row, values, side="right")] for row in x)
    reached = np.flatnonzero(missing <= (1 - q) * (1 + 1e-12))
    if not len(reached):
        raise NotDefinedError(
            f"the quantiles of {len(x)} quantities up to probability {p[-1]:g} do not bound the "
            f"{100 * q:g} % quantile of their maximum. Give quantiles "
            f"up to probability {1 - (1 - q) / len(x):.6g}."
        )
    return low, float(max(values[reached[0]], low))


def _with_certain(terms: Terms) -> tuple[Marginals, float]:
    """Return the uncertain terms, and the largest term without spread (−∞ if there is none)."""
    center, spread = locations(terms)
    sure = center[spread == 0]
    largest = float(sure.max()) if len(sure) else -math.inf
    if terms.kind == "log-ratio" and len(sure):
        with np.errstate(over="ignore"):
            largest = finite(float(np.exp(largest)), terms)
    return Marginals.of(terms), largest


def _table(probability: ArrayLike, quantiles: ArrayLike) -> tuple[Floats, Floats]:
    try:
        p, x = np.asarray(probability, dtype=float), np.asarray(quantiles, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"probability and quantiles: must be numbers ({error})") from error
    if p.ndim != 1 or x.ndim != 2 or x.shape[1] != len(p) or not x.size:
        raise InputError(
            f"quantiles: must have one row per quantity and one column per probability, got shape "
            f"{x.shape} for {p.size} probabilities"
        )
    if not (np.all((p > 0) & (p < 1)) and np.all(np.diff(p) > 0)):
        raise InputError(f"probability: must increase between 0 and 1, got {p[:3]} …")
    wrong = ~np.isfinite(x).all(axis=1) | (np.diff(x, axis=1) < 0).any(axis=1)
    if wrong.any():
        rows = np.flatnonzero(wrong)
        raise InputError(
            f"quantiles: must be finite and not decrease along a row, wrong in "
            f"{describe_rows((rows + 1).tolist())}. Row {rows[0] + 1} has {x[rows[0]][:4]} …"
        )
    return p, x


@dataclass(frozen=True, slots=True)
class Interval:
    """Range of a time; infinite bounds are allowed."""

    low: float
    high: float


class BoundsAlgebra(Algebra[Interval]):
    r"""Operations of an execution graph on intervals; an ``Algebra``.

    Each leaf gets the central interval that contains it with probability
    :math:`1 - (1 - level)/u`, u being the number of uses. By Bonferroni's inequality all intervals
    are valid together with probability ``level``, and so is every sum, maximum and increasing
    function of them. A name that ``leaf`` returns is one quantity with one interval. Every call of
    ``repeated`` is a separate use, and bounds its sum as a whole (by expected shortfalls).

    Wide: errors do not cancel, and with more leaves each interval becomes wider. For a plain sum
    `band` is sharp. `graph_band` counts the uses.

    Attributes
    ----------
    used : int
        Uses so far.
    confidence : float
        Probability that all intervals returned so far are valid together. It falls below
        ``level`` if there are more uses than announced.

    Parameters
    ----------
    terms : Terms
        Every name in the graph.
    level : float
        In (0, 1).
    uses : int, optional
        Number of leaves and repetitions in the graph; by default the number of terms.

    Raises
    ------
    InputError
        The level is not in (0, 1), uses is not positive, or a name is not among the terms.

    Examples
    --------
    >>> ids, ones = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, ones, kind="absolute")
    >>> algebra = BoundsAlgebra(terms, 0.9)
    >>> total = algebra.total([algebra.leaf("a"), algebra.leaf("b")])
    >>> round(total.low, 2), round(total.high, 2), algebra.used
    (16.08, 23.92, 2)
    """

    def __init__(self, terms: Terms, level: float, *, uses: int | None = None) -> None:
        check_terms(terms)
        self._terms = terms
        announced = len(terms) if uses is None else uses
        if announced < 1:
            raise InputError(f"uses: must be a positive integer, got {uses!r}")
        self._share = (1 - open_unit("level", level)) / announced
        self._index = {str(name): i for i, name in enumerate(terms.ids)}
        self._leaves: dict[str, Interval] = {}
        self.used = 0

    @property
    def confidence(self) -> float:
        """Probability that all intervals so far are valid together."""
        return max(0.0, 1.0 - self.used * self._share)

    def leaf(self, name: str) -> Interval:
        if name not in self._leaves:
            self._leaves[name] = self.repeated(name, 1)
        return self._leaves[name]

    def repeated(self, name: str, count: int) -> Interval:
        if name not in self._index:
            known = describe_names(list(self._index), wanted=name)
            raise InputError(f"no term is named {name!r}. Terms: {known}.")
        self.used += 1
        term = self._terms.take([self._index[name]])
        m = Marginals.of(term)
        if not len(m):
            sure = m.offset / float(term.count[0]) * count
            return Interval(sure, sure)
        high = _upper(m, count, self._share / 2)
        low = -_upper(m.negated(), count, self._share / 2)
        return Interval(finite(low, term), finite(high, term))

    def constant(self, value: float) -> Interval:
        return Interval(value, value)

    def total(self, parts: Sequence[Interval]) -> Interval:
        return Interval(sum(p.low for p in parts), sum(p.high for p in parts))

    def scaled(self, x: Interval, factor: float) -> Interval:
        return self.product(x, Interval(factor, factor))

    def maximum(self, parts: Sequence[Interval]) -> Interval:
        if not parts:
            raise InputError("a maximum needs at least one branch, got none.")
        return Interval(max(p.low for p in parts), max(p.high for p in parts))

    def product(self, x: Interval, y: Interval) -> Interval:
        corners = [
            a * b if a != 0 and b != 0 else 0.0 for a in (x.low, x.high) for b in (y.low, y.high)
        ]
        return Interval(min(corners), max(corners))

    def apply(self, x: Interval, function: Callable[[Floats], Floats]) -> Interval:
        low, high = function(np.array([x.low, x.high]))
        return Interval(float(low), float(high))


def _upper(m: Marginals, count: int, alpha: float) -> float:
    """Return a value that the sum of ``count`` copies exceeds with at most probability alpha."""
    t = standard_isf(np.asarray([alpha / count, alpha]), m.df)
    bound = count * float(m.quantile(t[:1])[0])
    if count > 1 and m.tail_is_finite:
        shortfall = m.quantile(t[1:]) + m.stop_loss(t[1:]) / alpha
        bound = min(bound, count * float(shortfall[0]))
    return bound


def graph_band(
    terms: Terms, evaluate: Callable[[BoundsAlgebra], Interval], level: float
) -> Interval:
    r"""Return an interval that contains the result of a graph with at least this probability.

    Definition: interval arithmetic over leaves that are valid together with probability ``level``
    (`BoundsAlgebra`). The graph is evaluated twice: first to count its leaves.
    Misleads as a forecast: it is valid for any dependence and therefore wide.

    Parameters
    ----------
    terms : Terms
        Every name in the graph (`errcomp.propagation.graph.attach` adds a graph's quantities).
    evaluate : callable
        The graph: takes an algebra and returns its time, as ``graph.evaluate`` does.
    level : float
        In (0, 1).

    Returns
    -------
    Interval

    Raises
    ------
    InputError
        The level is not in (0, 1), or a name is not among the terms.
    NotDefinedError
        A bound is beyond the largest float64.

    Examples
    --------
    >>> ids, ones = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * ones, ones.astype(int), 0 * ones, ones, kind="absolute")
    >>> interval = graph_band(terms, lambda t: t.maximum([t.leaf("a"), t.leaf("b")]), 0.9)
    >>> round(interval.low, 2), round(interval.high, 2)
    (8.04, 11.96)
    """
    survey = BoundsAlgebra(terms, level)
    interval = evaluate(survey)
    if survey.used in (0, len(terms)):
        return interval
    return evaluate(BoundsAlgebra(terms, level, uses=survey.used))
