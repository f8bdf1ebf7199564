"""The moments engine for graphs: times as linear forms in their causes.

The first-order canonical form of statistical timing analysis: a time is a mean, its loadings on
independent standard normal factors, and a variance of its own. Sums are exact, maxima closed-form
two at a time. See `MomentsAlgebra` for what that costs in accuracy.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from errcomp.propagation.graph.canonical_algebra import FACTORS, Canonical, MomentsAlgebra
from errcomp.propagation.sums.laws import Law, Moments, log_normal_parameters, mixture
from errcomp.propagation.terms import Terms
from errcomp.results import Caveat

__all__ = ["Canonical", "MomentsAlgebra", "graph_moments"]

#: Given the mixing variable of a t, terms of larger spread are not evaluated: they are not normal.
_LARGEST_SPREAD = 1.0
_MIXTURE_NODES = 33


def graph_moments(terms: Terms, evaluate: Callable[[MomentsAlgebra], Canonical]) -> Moments:
    r"""Mean, standard deviation and distribution of the time of an execution graph.

    Definition: `MomentsAlgebra` says how, and how accurately. The quantiles are those of a
    log-normal (log-ratio errors) or a normal with that mean and standard deviation. Student t
    errors are normal given their mixing variable: the graph is evaluated at 33 values of it, and
    the laws are averaged; with log-ratio errors there is then no mean.
    Misleads where a maximum of few, unequal times is skewed, and where the law has a bound.

    Parameters
    ----------
    terms : Terms
        Kernels and quantities of the graph.
    evaluate : callable
        Computes the graph with the algebra it is given, e.g. ``graph.evaluate``.

    Returns
    -------
    Moments
        With the prediction that the graph has without bias and error.

    Raises
    ------
    NotDefinedError, InputError
        As for `MomentsAlgebra` and its methods.

    Examples
    --------
    >>> terms = Terms(
    ...     ids=np.array(["a", "b"]), classes=np.array(["a", "b"]), value=np.full(2, 10.0),
    ...     count=np.ones(2, dtype=np.int64), bias=np.zeros(2), spread=np.full(2, 0.1))
    >>> both = graph_moments(terms, lambda on: on.maximum([on.leaf("a"), on.leaf("b")]))
    >>> round(both.prediction, 3), round(both.mean, 3), round(both.sd, 3)
    (10.0, 10.617, 0.883)
    """
    graph = _Graph(terms, evaluate)
    prediction, _ = graph.at(0.0, biased=False)
    mean, sd = graph.at(1.0)
    logarithmic = terms.kind == "log-ratio" and mean > 0
    law: Law = "lognormal" if logarithmic else "normal"
    location, scale = log_normal_parameters(mean, sd / mean) if logarithmic else (mean, sd)
    result = Moments(
        prediction=prediction,
        mean=mean,
        sd=sd,
        law=law,
        location=location,
        scale=scale,
        df=math.inf,
        n_terms=len(terms),
        n_instances=None,
        unit=terms.unit,
    )
    if not math.isinf(terms.df) and sd > 0:
        result = _heavy_tailed(result, graph, logarithmic=logarithmic)
    if graph.untracked:
        result = dataclasses.replace(result, caveats=(_untracked(graph.untracked),))
    return result


class _Graph:
    """A graph whose errors can be scaled."""

    def __init__(self, terms: Terms, evaluate: Callable[[MomentsAlgebra], Canonical]) -> None:
        self.terms, self.evaluate, self.untracked = terms, evaluate, 0

    def at(self, factor: float, *, biased: bool = True) -> tuple[float, float]:
        """Mean and standard deviation with all spreads times a factor."""
        terms = self.terms
        bias = terms.bias if biased else np.zeros(len(terms))
        algebra = MomentsAlgebra(
            dataclasses.replace(terms, spread=factor * terms.spread, bias=bias, df=math.inf)
        )
        time = self.evaluate(algebra)
        self.untracked = max(self.untracked, algebra.untracked)
        return time.mean, time.sd


def _heavy_tailed(normal: Moments, graph: _Graph, *, logarithmic: bool) -> Moments:
    terms, mean, sd, largest = graph.terms, None, None, math.inf
    if terms.kind == "log-ratio":
        largest = max(1.0, _LARGEST_SPREAD / float(terms.spread.max()))
    laws = mixture(
        graph.at, terms.df, logarithmic=logarithmic, largest_factor=largest, nodes=_MIXTURE_NODES
    )
    if terms.kind != "log-ratio":
        centre, _ = graph.at(0.0)
        mean, sd = laws.moments(terms.df, centre)
    law: Law = "lognormal mixture" if logarithmic else "normal mixture"
    return dataclasses.replace(normal, law=law, mean=mean, sd=sd, df=terms.df, laws=laws)


def _untracked(n: int) -> Caveat:
    return Caveat(
        "untracked-causes",
        f"{n:,} causes came after the {FACTORS:,} that are followed and count as independent: the "
        "standard deviation may be several times too small. Use Monte Carlo.",
        {"untracked": n, "followed": FACTORS},
    )
