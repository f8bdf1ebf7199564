"""Draws of the times of several runs at once: causes that runs share move them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.propagation.distribution import stretched
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.errors.components import Correlation, correlations
from errcomp.propagation.errors.tails import NORMAL_TAILS, Tails
from errcomp.propagation.graph import Node
from errcomp.propagation.graph.nodes import Serial, attach, quantities
from errcomp.propagation.montecarlo import SamplingAlgebra, simulate
from errcomp.propagation.terms import Floats, Integers, Kind, Terms
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

__all__ = ["draw_runs"]


def draw_runs(
    kernels: Kernels | Any,
    errors: ErrorModel,
    *,
    graphs: Mapping[str, Node] | None = None,
    correlation: str | Correlation | None = None,
    draws: int = 4_096,
    seed: int = 0,
) -> dict[str, Floats]:
    """Draw the times of all runs of a table, each draw with the same errors for all of them.

    Errors that runs share, by the device, the class or the kernel, move their times together, so
    that they cancel where runs are compared (`errcomp.decisions.compare_draws`). Runs that
    `propagate` takes one by one have no common draws.

    Parameters
    ----------
    kernels : Kernels, dataframe or mapping of columns
        Predicted kernels.
    errors : ErrorModel
        Errors of the predictor: fitted, or given.
    graphs : mapping of str to Node, optional
        By run, its execution graph, whose kernels have names of the column ``kernel``. The time of
        other runs is the sum of their kernels. Quantities of the same name are the same in all.
    correlation : str or Correlation, optional
        See `errcomp.propagation.propagate`.
    draws : int
        At least; rounded up as in `simulate`.
    seed : int

    Returns
    -------
    dict of str to ndarray, shape (draws,)
        By run, in the order of the table.

    Raises
    ------
    InputError
        A graph is of an unknown run or refers to a kernel that its run lacks, two kernels of a run
        with a graph have the same name, or the errors do not fit the table.

    Examples
    --------
    Two runs on one device: its error is in both, so their ratio is known better than either.

    >>> from errcomp.propagation import correlation, given_errors
    >>> kernels = {"run": ["a", "b"], "kernel": ["x", "y"], "predicted": [1.0, 1.2],
    ...            "device": ["L4", "L4"]}
    >>> found = draw_runs(kernels, given_errors(0.2), correlation=correlation("devices", 0.9))
    >>> float(np.log(found["a"]).std()) > 2 * float(np.log(found["b"] / found["a"]).std())
    True
    """
    table = kernels_in_memory(kernels)
    graphs = {} if graphs is None else dict(graphs)
    if unknown := [run for run in graphs if run not in table.runs]:
        raise InputError(
            f"a graph is given for {unknown[0]!r}, which is not a run. Runs: "
            f"{describe_names(table.runs, wanted=unknown[0])}"
        )
    if correlation is None:
        correlation = "repeats" if errors.components is None else "estimated"
    (assumed,) = correlations((correlation,))
    terms = errors.terms(table, assumed)
    codes = table.codes("run")
    order = np.argsort(codes, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    each = [
        _Run(table, terms, str(table.run[at[0]]), at, graphs)
        for at in sorted(places, key=lambda at: int(at[0]))
    ]
    if graphs:
        shared = quantities(Serial(tuple(graphs.values())))
        terms = attach(terms, Serial(shared)) if shared else terms
    found: list[Floats] = []

    def evaluate(algebra: SamplingAlgebra) -> Floats:
        times = np.array([run.time(algebra) for run in each])
        found.append(times)
        total: Floats = times.sum(axis=0)
        return total

    # In this process, so that the times can be kept; the first call only asks what is used.
    simulate(terms, evaluate, draws=draws, seed=seed, n_jobs=1)
    every = np.concatenate(found[1:], axis=1)
    tails = errors.tails if assumed.name == "estimated" else NORMAL_TAILS
    return {
        run.name: _with_tails(times, tails, terms.kind)
        for run, times in zip(each, every, strict=True)
    }


def _with_tails(times: Floats, tails: Tails, kind: Kind) -> Floats:
    """Give the draws the tails of the totals; their order, which runs share, stays."""
    found = np.empty_like(times)
    found[np.argsort(times)] = np.sort(stretched(times, tails, kind))
    return found


class _Run:
    """One run: which terms it is made of, and how."""

    def __init__(
        self, table: Kernels, terms: Terms, name: str, at: Integers, graphs: Mapping[str, Node]
    ) -> None:
        self.name, self.graph = name, graphs.get(name)
        graph = self.graph
        self.ids = [str(terms.ids[i]) for i in at]
        self.count = table.count[at].tolist()
        self.known: dict[str, str] = {}
        if graph is None:
            return
        names = [str(kernel) for kernel in table.kernel[at]]
        used = set(graph.leaves())
        if used & set(names) and len(set(names)) < len(names):
            raise InputError(
                f"run {name!r} has several kernels of the same name, so its graph is ambiguous. "
                "Give each kernel of the run its own name."
            )
        self.known = dict(zip(names, self.ids, strict=True))
        lacking = sorted(used - set(names) - {q.name for q in quantities(graph)})
        if lacking:
            raise InputError(
                f"the graph of run {name!r} refers to {lacking[0]!r}, and the run has no such "
                f"kernel. Kernels: {describe_names(names, wanted=lacking[0])}"
            )

    def time(self, algebra: SamplingAlgebra) -> Floats:
        """Return the time of the run in the draws of an algebra."""
        if self.graph is not None:
            return self.graph.evaluate(algebra.renamed(self.known))
        parts = zip(self.ids, self.count, strict=True)
        return algebra.total([algebra.repeated(name, count) for name, count in parts])
