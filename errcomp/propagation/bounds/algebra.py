"""Execution graphs evaluated with intervals that hold together, whatever the dependence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.propagation.bounds.inputs import check_terms, finite, open_unit
from errcomp.propagation.bounds.marginals import Marginals, standard_isf
from errcomp.propagation.terms import Floats, Terms

__all__ = ["BoundsAlgebra", "Interval", "graph_band"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Range of a time; infinite bounds are allowed."""

    low: float
    high: float


class BoundsAlgebra:
    r"""Operations of an execution graph on intervals; an ``Algebra``.

    Each leaf gets the central interval that holds it with probability
    :math:`1 - (1 - level)/u`, u the number of uses; by Bonferroni's inequality all of them hold
    together with probability ``level``, and with them every sum, maximum and increasing function.
    A name asked for by ``leaf`` is one quantity with one interval; every call of ``repeated`` is a
    use of its own, and bounds its sum as a whole (by expected shortfalls).

    Wide: no error cancels another, and the more leaves there are the wider each becomes. For a
    plain sum `band` is sharp. `graph_band` counts the uses for you.

    Attributes
    ----------
    used : int
        Uses so far.
    confidence : float
        Probability with which all intervals handed out so far hold together. It falls below
        ``level`` if there are more uses than announced.

    Parameters
    ----------
    terms : Terms
        Every name in the graph.
    level : float
        In (0, 1).
    uses : int, optional
        How many leaves and repetitions the graph will ask for; as many as there are terms if not
        given.

    Raises
    ------
    InputError
        The level is not in (0, 1), uses is not positive, or a name is not among the terms.
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
        """Probability with which all intervals so far hold together."""
        return max(0.0, 1.0 - self.used * self._share)

    def leaf(self, name: str) -> Interval:
        """Return the interval of one quantity; the same at every call."""
        if name not in self._leaves:
            self._leaves[name] = self.repeated(name, 1)
        return self._leaves[name]

    def repeated(self, name: str, count: int) -> Interval:
        """Return the interval of the sum of ``count`` further instances."""
        if name not in self._index:
            known = describe_names(list(self._index), wanted=name)
            raise InputError(f"no term is called {name!r}. Terms: {known}.")
        self.used += 1
        one = self._terms.take([self._index[name]])
        m = Marginals.of(one)
        if not len(m):
            sure = m.offset / float(one.count[0]) * count
            return Interval(sure, sure)
        high = _upper(m, count, self._share / 2)
        low = -_upper(m.negated(), count, self._share / 2)
        return Interval(finite(low, one), finite(high, one))

    def constant(self, value: float) -> Interval:
        """Return a time that is certain."""
        return Interval(value, value)

    def total(self, parts: Sequence[Interval]) -> Interval:
        """Return the interval of the sum."""
        return Interval(sum(p.low for p in parts), sum(p.high for p in parts))

    def scaled(self, x: Interval, factor: float) -> Interval:
        """Return the interval of x times a certain number."""
        return self.product(x, Interval(factor, factor))

    def maximum(self, parts: Sequence[Interval]) -> Interval:
        """Return the interval of the larger."""
        if not parts:
            raise InputError("the maximum of nothing is not defined. Give at least one branch.")
        return Interval(max(p.low for p in parts), max(p.high for p in parts))

    def product(self, x: Interval, y: Interval) -> Interval:
        """Return the interval of the product; 0 times infinity is 0."""
        corners = [
            a * b if a != 0 and b != 0 else 0.0 for a in (x.low, x.high) for b in (y.low, y.high)
        ]
        return Interval(min(corners), max(corners))

    def apply(self, x: Interval, function: Callable[[Floats], Floats]) -> Interval:
        """Return the interval of an increasing function of x."""
        low, high = function(np.array([x.low, x.high]))
        return Interval(float(low), float(high))


def _upper(m: Marginals, count: int, alpha: float) -> float:
    """Value that the sum of ``count`` copies of one law exceeds with at most this probability."""
    t = standard_isf(np.asarray([alpha / count, alpha]), m.df)
    bound = count * float(m.quantile(t[:1])[0])
    if count > 1 and m.tail_is_finite:
        shortfall = m.quantile(t[1:]) + m.stop_loss(t[1:]) / alpha
        bound = min(bound, count * float(shortfall[0]))
    return bound


def graph_band(
    terms: Terms, evaluate: Callable[[BoundsAlgebra], Interval], level: float
) -> Interval:
    r"""Interval that holds the result of a graph with at least this probability.

    Definition: interval arithmetic over leaves that hold together with probability ``level``
    (`BoundsAlgebra`). The graph is evaluated twice: first to count its leaves.
    Misleads as a forecast: it holds whatever the dependence and is wide.

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
    >>> ids, one = np.array(["a", "b"]), np.ones(2)
    >>> terms = Terms(ids, ids, 10 * one, one.astype(int), 0 * one, one, kind="absolute")
    >>> found = graph_band(terms, lambda t: t.maximum([t.leaf("a"), t.leaf("b")]), 0.9)
    >>> round(found.low, 2), round(found.high, 2)
    (8.04, 11.96)
    """
    survey = BoundsAlgebra(terms, level)
    found = evaluate(survey)
    if survey.used in (0, len(terms)):
        return found
    return evaluate(BoundsAlgebra(terms, level, uses=survey.used))
