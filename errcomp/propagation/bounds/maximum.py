"""Bounds for the largest of several times whatever the dependence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, NotDefinedError, describe_rows
from errcomp.propagation.bounds.inputs import check_terms, finite, number, open_unit
from errcomp.propagation.bounds.marginals import Marginals, locations, standard_isf
from errcomp.propagation.terms import Floats, Terms

__all__ = ["frechet_max", "frechet_max_cdf", "frechet_max_table"]


def frechet_max_cdf(terms: Terms, x: float) -> tuple[float, float]:
    r"""Range of the probability that no term exceeds x, over all dependences.

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
    >>> ids, one = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * one, one.astype(int), 0 * one, one, kind="absolute")
    >>> low, high = frechet_max_cdf(terms, 11.0)
    >>> round(low, 4), round(high, 4)
    (0.6827, 0.8413)
    """
    check_terms(terms)
    x = number(x)
    if math.isnan(x):
        raise InputError("x: must be a time, a number")
    m, certain = _with_certain(terms)
    if x < certain:
        return 0.0, 0.0
    if not len(m):
        return 1.0, 1.0
    beyond = m.sf(x)
    return max(0.0, 1.0 - float(m.count @ beyond)), 1.0 - float(beyond.max())


def frechet_max(terms: Terms, q: float) -> tuple[float, float]:
    r"""Range of a quantile of the largest term over all dependences.

    .. math:: \max_i Q_i(q) \le Q_{\max}(q) \le x, \qquad \sum_i n_i P(X_i > x) = 1 - q

    Definition: the Fréchet-Hoeffding bounds turned round (`frechet_max_cdf`); both are attained.

    Parameters
    ----------
    terms : Terms
        Branches that are waited for; each repetition counts as one.
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
    >>> ids, one = np.array(["rank"]), np.ones(1)
    >>> terms = Terms(ids, ids, 10 * one, np.array([64]), 0 * one, one, kind="absolute")
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
    for _ in range(80):  # the upper end is always on the safe side
        middle = (start + high) / 2
        enough = float(m.count @ m.sf(middle)) <= 1 - q
        start, high = (start, middle) if enough else (middle, high)
    return max(low, certain), max(high, certain)


def frechet_max_table(
    probability: ArrayLike, quantiles: ArrayLike, q: float
) -> tuple[float, float]:
    r"""Range of a quantile of the largest of several quantities given by tables of quantiles.

    For quantities that are no terms: branches of a graph whose distributions were simulated.
    Definition: as `frechet_max`, with what the tables leave open taken at its worst: between two
    columns the quantile is only known to lie between their values.

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
        Shapes do not fit, or rows decrease or are not finite (names the first three).
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
            f"q = {q:g} is below the first probability of the table, {p[0]:g}: a lower bound "
            "needs a smaller one."
        )
    low = float(x[:, np.searchsorted(p, q, side="right") - 1].max())
    values = np.unique(x)
    known = np.append(0.0, p)
    missing = sum(1.0 - known[np.searchsorted(row, values, side="right")] for row in x)
    reached = np.flatnonzero(missing <= (1 - q) * (1 + 1e-12))
    if not len(reached):
        raise NotDefinedError(
            f"the quantiles of {len(x)} quantities up to probability {p[-1]:g} do not bound the "
            f"{100 * q:g} % quantile of their maximum. Give them up to {1 - (1 - q) / len(x):.6g}."
        )
    return low, float(max(values[reached[0]], low))


def _with_certain(terms: Terms) -> tuple[Marginals, float]:
    """Uncertain laws, and the largest term without spread (−∞: there is none)."""
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
