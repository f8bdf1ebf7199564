"""From a table of kernels to the time of each run, under each assumption."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, NotDefinedError
from errcomp.propagation import bounds
from errcomp.propagation.distribution import Distribution, FromDraws, FromMoments, stretched
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.errors.components import Correlation, correlation, correlations
from errcomp.propagation.errors.fitting import fit_errors
from errcomp.propagation.errors.residuals import by_run
from errcomp.propagation.errors.tails import NORMAL_TAILS, Tails
from errcomp.propagation.graph import Dag, Node, attach, time_at
from errcomp.propagation.montecarlo import SamplingAlgebra, simulate
from errcomp.propagation.outcome import (
    LEVELS_SHOWN,
    Band,
    Outcome,
    Propagation,
    caveats_of_model,
    caveats_of_terms,
    failed_kernels,
    in_sample,
    left_out_of_graph,
    lost_runs,
    other_devices,
)
from errcomp.propagation.sums import Budget, effective_number, error_budget, total_moments
from errcomp.propagation.terms import Floats, Kind, Terms, check_levels
from errcomp.results import Caveat
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.tables import Kernels

_CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class _Options:
    levels: Sequence[float]
    graph: Node | None
    draws: int
    precision: float | None
    seed: int
    n_jobs: int | None


def propagate(
    kernels: Kernels | Any,
    *,
    correlation: str | Correlation | Sequence[str | Correlation] | None = None,
    errors: ErrorModel | None = None,
    kind: Kind = "log-ratio",
    graph: Node | None = None,
    levels: Sequence[float] = LEVELS_SHOWN,
    draws: int = 16_384,
    precision: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Propagation:
    r"""Propagate errors of kernels to the time of each run.

    The time of a run is the sum of its kernels, or the result of its execution graph:

    .. math:: S = \sum_i \sum_{k \le c_i} X_{ik} \quad\text{or}\quad S = g(X_1, \dots, X_n)

    Sums are propagated by exact moments, graphs by Monte Carlo, "unknown" by bounds for any
    dependence.

    Parameters
    ----------
    kernels : Kernels, dataframe or mapping of columns
        Predictions (see `errcomp.tables.Kernels`); each run is propagated separately.
    correlation : str, Correlation or sequence of them, optional
        Assumptions, the main one first (see `errcomp.propagation.correlation`). By default
        "estimated" if the errors were fitted, "repeats" if they were given; then, for comparison,
        "independent", "comonotonic" and, for a single run, "unknown".
    errors : ErrorModel, optional
        Errors of the predictor. By default fitted to the measured runs of the table, with a
        caveat.
    kind : {"log-ratio", "relative", "absolute"}
        Scale of the errors, if they are fitted here.
    graph : Node, optional
        Execution graph; its kernels have names of the column ``kernel`` (or ``run/kernel``).
    levels : sequence of float
        Levels of the bands.
    draws : int
        Draws per run and assumption with a graph.
    precision : float, optional
        With a graph: draw until the 5, 50 and 95 % quantiles are precise to this fraction; a caveat
        says if this precision was not reached.
    seed : int
        Seed of the draws.
    n_jobs : int, optional
        Number of processes that draw; see `errcomp.summarize`.
    progress : callable, optional
        Called with the number of finished outcomes and of all outcomes.

    Returns
    -------
    Propagation

    Raises
    ------
    InputError
        The table cannot be used with the error model, an assumption is unknown, a level is not in
        (0, 1), or the graph names a kernel that the table lacks.

    Examples
    --------
    >>> from errcomp.propagation import ClassError, ErrorModel
    >>> kernels = {"kernel": ["gemm", "softmax"], "count": [32, 32], "predicted": [1.0, 0.2]}
    >>> known = ErrorModel({"gemm": ClassError(0.0, 0.1), "softmax": ClassError(0.0, 0.3)})
    >>> result = propagate(kernels, errors=known)
    >>> for outcome in result.outcomes[:3]:
    ...     band = outcome.band(0.9)
    ...     print(f"{outcome.assumption:12s} {outcome.mean:.1f} [{band.low:.1f}, {band.high:.1f}]")
    repeats      38.9 [32.9, 45.4]
    independent  38.9 [37.8, 40.0]
    comonotonic  38.9 [30.8, 48.1]
    """
    kernels = kernels_in_memory(kernels)
    levels = check_levels(levels)
    if errors is not None and not isinstance(errors, ErrorModel):
        raise InputError(
            f"errors must be an ErrorModel, got {type(errors).__name__}. Make one with "
            "given_errors, read_errors or fit_errors."
        )
    if graph is not None and not isinstance(graph, Node):
        raise InputError(
            f"graph must be a node of errcomp.propagation.graph, got {type(graph).__name__}. "
            "Read a file with read_graph."
        )
    caveats: list[Caveat] = []
    if errors is None:
        errors = fit_errors(kernels, kind=kind)
        caveats.append(in_sample(errors))
    caveats += caveats_of_model(errors) + other_devices(errors, kernels)
    caveats += lost_runs(kernels)
    assumptions = _assumptions(correlation, errors, kernels.n_runs)
    totals = kernels.totals()
    measured = dict(zip(map(str, totals.run), map(float, totals.measured), strict=True))
    options = _Options(levels, graph, draws, precision, seed, n_jobs)
    outcomes: list[Outcome] = []
    for part in by_run(kernels):
        run = part.runs[0]
        for assumption in assumptions:
            known = measured[run] if graph is None else math.nan
            outcomes.append(_outcome(run, part, errors, assumption, options, known))
            if progress is not None:
                progress(len(outcomes), len(kernels.runs) * len(assumptions))
    return Propagation(tuple(outcomes), errors, kernels.unit, seed, tuple(caveats), kernels.source)


def _assumptions(
    wanted: str | Correlation | Sequence[str | Correlation] | None, errors: ErrorModel, runs: int
) -> list[Correlation]:
    if wanted is None:
        first = "repeats" if errors.components is None else "estimated"
        # Bounds take most of the time, and are not needed for many runs.
        wanted = (first, "independent", "comonotonic", *(("unknown",) if runs == 1 else ()))
    return correlations(wanted)


def _outcome(
    run: str,
    kernels: Kernels,
    errors: ErrorModel,
    assumption: Correlation,
    options: _Options,
    measured: float,
) -> Outcome:
    terms = errors.terms(kernels, assumption)
    caveats = [*failed_kernels(kernels), *caveats_of_terms(terms, kernels, errors)]
    # The error one level below, where nothing cancels.
    together = errors.terms(kernels, correlation("comonotonic"))
    if options.graph is not None:
        together = _graph_terms(_named_for(together, kernels, options.graph), options.graph)
        terms = attach(_named_for(terms, kernels, options.graph), options.graph)
        caveats += left_out_of_graph(terms, kernels, options.graph)
    prediction = _prediction(terms, kernels, options.graph)
    kernel_sd = (total_moments(together).relative_sd or 0.0) if len(together) else 0.0
    mean = sd = median = None
    saturated = 0.0
    critical: Mapping[str, float] = {}
    by_class = by_kernel = None
    if assumption.name == "unknown":
        bands, method = _bounds(terms, options)
    else:
        tails = errors.tails if assumption.name == "estimated" else NORMAL_TAILS
        total: Distribution
        if options.graph is None:
            total = FromMoments(total_moments(terms), tails)
            by_class, by_kernel = _budgets(terms)
        else:
            total, critical, of_draws = _simulated(terms, options, tails)
            caveats += of_draws
        mean, sd, median = total.mean, total.sd, total.quantile(0.5)
        saturated, method = total.saturated, total.method
        bands = tuple(
            Band(level, total.quantile(0.5 - level / 2), total.quantile(0.5 + level / 2))
            for level in options.levels
        )
    relative_sd = sd / abs(mean) if sd is not None and mean else None
    return Outcome(
        run=run,
        assumption=assumption.name,
        prediction=prediction,
        mean=mean,
        sd=sd,
        median=median,
        bias=None if mean is None or not prediction else mean / prediction - 1,
        relative_sd=relative_sd,
        kernel_sd=kernel_sd,
        growth=relative_sd / kernel_sd if relative_sd is not None and kernel_sd else None,
        effective_number=effective_number(terms) if by_class is not None else None,
        bands=bands,
        saturated=saturated,
        method=method,
        by_class=by_class,
        by_kernel=by_kernel,
        critical=critical,
        measured=None if math.isnan(measured) else measured,
        caveats=tuple(caveats),
    )


def _named_for(terms: Terms, kernels: Kernels, graph: Node) -> Terms:
    """Name the terms as the graph does: by kernel if those names are unique in the run."""
    names = np.array([str(name) for name in kernels.kernel])
    used = set(graph.leaves())
    if used <= set(terms.ids.tolist()) or len(set(names.tolist())) < len(names):
        return terms
    return replace(terms, ids=names)


def _graph_terms(terms: Terms, graph: Node) -> Terms:
    """Return the kernels of the graph, with their counts in it."""
    often = graph.multiplicity()
    used = np.flatnonzero([str(name) in often for name in terms.ids])
    used_terms = terms.take(used)
    count = np.array([often[str(name)] for name in used_terms.ids], dtype=np.int64)
    return replace(used_terms, count=count)


def _prediction(terms: Terms, kernels: Kernels, graph: Node | None) -> float:
    """Return the prediction; the graph's own quantities come after the kernels."""
    if graph is None:
        return float(kernels.count @ kernels.predicted)
    names = terms.ids[: len(kernels)].tolist()
    return float(time_at(graph, dict(zip(names, kernels.predicted, strict=True))))


def _simulated(
    terms: Terms, options: _Options, tails: Tails
) -> tuple[FromDraws, Mapping[str, float], list[Caveat]]:
    assert options.graph is not None  # called only with a graph
    graph = options.graph
    simulated = simulate(
        terms,
        _observing(graph),
        draws=options.draws,
        precision=options.precision,
        seed=options.seed,
        n_jobs=options.n_jobs,
    )
    # The exponential of a Student t has no mean, for any number of draws.
    has_moments = not np.isinf(simulated.draws).any() and (
        math.isinf(terms.df) or terms.kind != "log-ratio"
    )
    distribution = FromDraws(
        stretched(simulated.draws, tails, terms.kind),
        simulated.mean if has_moments else None,
        simulated.sd if has_moments else None,
        f"Monte Carlo, {len(simulated.draws)} draws ({simulated.method})",
    )
    critical = {}
    if isinstance(graph, Dag):
        shares = simulated.observed[_CRITICAL] / len(simulated.draws)
        critical = dict(zip(map(str, graph.durations), map(float, shares), strict=True))
    return distribution, critical, list(simulated.caveats)


def _observing(graph: Node) -> Callable[[SamplingAlgebra], Floats]:
    """Let a DAG also count how often each event is on the critical path."""
    return partial(_critical_paths, graph) if isinstance(graph, Dag) else graph.evaluate


def _critical_paths(graph: Dag, algebra: SamplingAlgebra) -> Floats:
    times, counts = graph.critical_paths(graph.duration_block(algebra))
    algebra.observe(_CRITICAL, counts)
    return times


def _budgets(terms: Terms) -> tuple[Budget | None, Budget | None]:
    try:
        return error_budget(terms, by="class"), error_budget(terms, by="term")
    except NotDefinedError:  # no errors
        return None, None


def _bounds(terms: Terms, options: _Options) -> tuple[tuple[Band, ...], str]:
    """Return bands for any dependence, and their method."""
    if options.graph is None:
        bands = tuple(Band(level, *bounds.band(terms, level)) for level in options.levels)
        return bands, "bounds for any dependence of kernels with known distributions"
    within = [
        (level, bounds.graph_band(terms, options.graph.evaluate, level)) for level in options.levels
    ]
    bands = tuple(Band(level, interval.low, interval.high) for level, interval in within)
    return bands, "bounds that hold if every kernel is within its own band (Bonferroni)"
