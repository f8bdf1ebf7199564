"""The total of a run under each assumption, with its caveats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from errcomp.codec import (
    Count,
    Coverage,
    Document,
    Endless,
    Field,
    Meta,
    Names,
    Part,
    Positive,
    Share,
    Size,
    key,
    plain,
    shape_of,
)
from errcomp.errors import InputError, describe_names
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.errors.residuals import NOT_MODELLED
from errcomp.propagation.sums import Budget
from errcomp.report.shown import Shown
from errcomp.results import Caveat

if TYPE_CHECKING:
    from errcomp.propagation.graph import Node
    from errcomp.propagation.terms import Terms
    from errcomp.report.model import Report
    from errcomp.tables import Kernels


#: The assumption with bounds only.
BOUNDS = "unknown"
#: Default levels of the bands.
LEVELS_SHOWN = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Band(Document):
    """Central band: contains the time with this probability.

    Attributes
    ----------
    level : float
        Probability; for bounds at least this, under any dependence.
    low, high : float
        In the unit of the outcome; infinite if a queue may be saturated.
    """

    level: Coverage
    low: Annotated[float, Endless]
    high: Annotated[float, Endless]

    def _agree(self, field: Field) -> None:
        """Refuse a band that ends before it begins."""
        if self.high < self.low:
            field.at("high").refuse(f"at least the lower end, {self.low:g}")


_MEDIAN = shape_of(float | None)


class _Median(Part):
    """The median: infinite beyond capacity, unknown for bounds. Both are null."""

    def write(self, outcome: Outcome) -> Mapping[str, Any]:
        return {"median": plain(outcome.median)}

    def read(self, field: Field) -> Mapping[str, Any]:
        median = _MEDIAN.read(field.at("median"))
        bounds = field.at("assumption").value == BOUNDS
        return {"median": math.inf if median is None and not bounds else median}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"median": _MEDIAN.schema(names)}


@dataclass(frozen=True)
class _Budget(Part):
    """The rows of a budget, or null."""

    key: str
    by: str

    def write(self, outcome: Outcome) -> Mapping[str, Any]:
        budget: Budget | None = getattr(outcome, self.key)
        return {self.key: None if budget is None else budget.to_dict()["rows"]}

    def read(self, field: Field) -> Mapping[str, Any]:
        rows = field.at(self.key)
        if rows.value is None:
            return {self.key: None}
        table = {"by": self.by, "rows": rows.value}
        return {self.key: Budget.from_field(Field(table, f"{field.path}.{self.key}", {}))}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        rows = Budget.json_schema(names)["properties"]["rows"]
        return {self.key: {"anyOf": [rows, {"type": "null"}]}}


@dataclass(frozen=True, slots=True)
class Outcome(Document):
    """The time of one run under one assumption.

    Attributes
    ----------
    run, assumption : str
        The run, and the assumption on the correlation.
    prediction : float
        The uncorrected prediction: the sum of its kernels, or its graph without errors.
    mean, sd, median : float or None
        Of the distribution, bias corrected; None if they do not exist or, for bounds, are unknown.
    bias : float or None
        mean / prediction − 1: the correction, a fraction.
    relative_sd : float or None
        sd / mean, a fraction.
    kernel_sd : float
        Time-weighted relative sd of the kernels: the error one level below the run.
    growth : float or None
        relative_sd / kernel_sd: 1 if nothing cancels, 1/√N for N equal independent kernels; above
        1 if the graph amplifies errors.
    effective_number : float or None
        Number of independent kernels of equal error that would cancel as much; for plain sums.
    bands : tuple of Band
        From narrow to wide.
    saturated : float
        Probability that a queue is beyond its capacity.
    method : str
        Method of the bands.
    by_class, by_kernel : Budget or None
        Sources of the error; None for bounds and without error.
    critical : mapping of str to float
        Probability of each event of a DAG to be on the critical path.
    measured : float or None
        Measured total of the run, if known; not used for the bands unless a caveat says so.
    caveats : tuple of Caveat
        Caveats of this run and assumption.
    """

    KEYS: ClassVar = (
        *("run", "assumption", "prediction", "mean", "sd", _Median(), "bias", "relative_sd"),
        *("kernel_sd", "growth", "effective_number", "bands", "saturated", "method"),
        *(_Budget("by_class", "class"), _Budget("by_kernel", "term"), "critical", "measured"),
        "caveats",
    )

    run: str
    assumption: str
    prediction: Annotated[Positive, Endless]
    mean: float | None
    sd: Size | None
    median: float | None
    bias: float | None
    relative_sd: Size | None
    kernel_sd: Size
    growth: Size | None
    effective_number: Size | None
    bands: Annotated[tuple[Band, ...], Meta(min_length=1)]
    saturated: Share
    method: str
    by_class: Budget | None
    by_kernel: Budget | None
    critical: Mapping[str, Share]
    measured: float | None
    caveats: tuple[Caveat, ...]

    def _agree(self, field: Field) -> None:
        """Refuse inconsistent values."""
        from errcomp.propagation.agreement import check_outcome

        check_outcome(field, self)

    def band(self, level: float) -> Band:
        """Return the band of a level.

        Raises
        ------
        InputError
            The band was not computed.

        Examples
        --------
        >>> from errcomp.propagation import given_errors, propagate
        >>> result = propagate({"kernel": ["gemm"], "predicted": [10.0]}, errors=given_errors(0.1))
        >>> band = result.of().band(0.9)
        >>> round(band.low, 2), round(band.high, 2)
        (8.48, 11.79)
        """
        for band in self.bands:
            if band.level == level:
                return band
        levels = ", ".join(str(band.level) for band in self.bands)
        raise InputError(f"no band of level {level}. Levels: {levels}")


@dataclass(frozen=True, slots=True)
class Propagation(Shown, Document):
    """Totals of runs under one or more assumptions.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Run by run, assumptions in the requested order.
    model : ErrorModel
        The errors that were propagated.
    unit : str or None
        Unit of all times.
    seed : int
        Seed of all draws.
    caveats : tuple of Caveat
        Caveats of all outcomes.
    source : str
        Name of the table.
    """

    SCHEMA: ClassVar = "errcomp.propagate/1"
    COMMAND: ClassVar = "propagate"
    KEYS: ClassVar = (
        *("source", "unit", "seed", key("errors", "model"), "caveats", key("rows", "outcomes")),
    )

    outcomes: Annotated[tuple[Outcome, ...], Meta(min_length=1)]
    model: ErrorModel
    unit: str | None
    seed: Count
    caveats: tuple[Caveat, ...]
    source: str = ""

    def _agree(self, field: Field) -> None:
        """Refuse inconsistent rows and counts."""
        from errcomp.propagation.agreement import check_propagation

        check_propagation(field, self)

    def view(self) -> Report:
        """Return the report of the propagation.

        Examples
        --------
        >>> from errcomp.propagation import given_errors, propagate
        >>> result = propagate({"kernel": ["gemm"], "predicted": [10.0]}, errors=given_errors(0.1))
        >>> result.view().title
        'How wrong is the whole run? The given table'
        """
        from errcomp.propagation.view.run import propagation_view

        return propagation_view(self)

    def rows_document(self) -> dict[str, Any]:
        """Return one row per run and assumption, its bands as columns.

        Examples
        --------
        >>> from errcomp.propagation import given_errors, propagate
        >>> result = propagate({"kernel": ["gemm"], "predicted": [10.0]}, errors=given_errors(0.1))
        >>> result.rows_document()["rows"][0]["prediction"]
        10.0
        """
        from errcomp.propagation.view.run import flat_outcomes

        return {"rows": flat_outcomes(self)}

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(dict.fromkeys(outcome.run for outcome in self.outcomes))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Names of the assumptions."""
        return tuple(dict.fromkeys(outcome.assumption for outcome in self.outcomes))

    def of(self, run: str | None = None, assumption: str | None = None) -> Outcome:
        """Return one outcome; by default that of the first run and the first assumption.

        Raises
        ------
        InputError
            No such run or assumption.

        Examples
        --------
        >>> from errcomp.propagation import given_errors, propagate
        >>> result = propagate({"kernel": ["gemm"], "predicted": [10.0]}, errors=given_errors(0.1))
        >>> round(result.of(assumption="comonotonic").relative_sd, 3)
        0.1
        """
        run = self.runs[0] if run is None else run
        assumption = self.assumptions[0] if assumption is None else assumption
        for outcome in self.outcomes:
            if (outcome.run, outcome.assumption) == (run, assumption):
                return outcome
        raise InputError(
            f"no outcome of run {run!r} under {assumption!r}. Runs: "
            f"{describe_names(self.runs, wanted=run)}; assumptions: {', '.join(self.assumptions)}"
        )


#: With fewer clusters variance components and their bands are uncertain.
_FEW_CLUSTERS = 5


def caveats_of_terms(terms: Terms, kernels: Kernels, errors: ErrorModel) -> list[Caveat]:
    """Return caveats on kernels that the error model does not cover well."""
    time = kernels.count * kernels.predicted
    total = float(time.sum())
    caveats = []
    known = np.isin(terms.classes, list(errors.classes))
    strangers = sorted(set(terms.classes[~known].tolist()) - {NOT_MODELLED})
    # In a given model the error of other classes is intended; in a fitted model it is a fallback.
    if strangers and errors.components is not None:
        share = float(time[np.isin(terms.classes, strangers)].sum()) / total if total else 0.0
        text = (
            f"no error was measured for {describe_names(strangers)} ({100 * share:.1f} % of the "
            "predicted time): the error of all classes together is used instead"
        )
        caveats.append(Caveat("unknown-class", text, {"classes": strangers, "share": share}))
    unmodelled = (terms.classes == NOT_MODELLED) & (NOT_MODELLED not in errors.classes)
    if unmodelled.any():
        n = int(terms.count[unmodelled].sum())
        text = (
            f"{n} kernel{'s are' if n > 1 else ' is'} predicted to take no time and counted as 0, "
            "because no measurement shows how long such kernels take"
        )
        caveats.append(Caveat("not-modelled", text, {"n": n}))
    return caveats


def failed_kernels(kernels: Kernels) -> list[Caveat]:
    """Return a caveat on kernels without a prediction, which the time does not include."""
    n = sum(dropped.n for dropped in kernels.dropped)
    text = (
        f"{n} kernel{'s' if n > 1 else ''} of the run could not be predicted (status): the time "
        "includes only the other kernels"
    )
    return [Caveat("failed-kernels", text, {"n": n})] if n else []


def lost_runs(kernels: Kernels) -> list[Caveat]:
    """Return a caveat on runs without any predicted kernel, which are missing."""
    there = set(kernels.runs)
    names = [name for name in kernels.incomplete if name not in there]
    if not names:
        return []
    text = (
        f"{len(names)} run{'s have' if len(names) > 1 else ' has'} no predicted kernel (status) "
        f"and {'are' if len(names) > 1 else 'is'} left out: {describe_names(names)}"
    )
    return [Caveat("lost-runs", text, {"runs": names})]


def left_out_of_graph(terms: Terms, kernels: Kernels, graph: Node) -> list[Caveat]:
    """Return a caveat on kernels of the table that are not in the graph."""
    ids, used = map(str, terms.ids[: len(kernels)]), set(graph.leaves())
    names = [name for name in ids if name not in used]
    if not names:
        return []
    text = f"the graph leaves out {len(names)} of {len(kernels)} kernels: {describe_names(names)}"
    return [Caveat("not-in-graph", text, {"n": len(names)})]


def caveats_of_model(errors: ErrorModel) -> list[Caveat]:
    """Return the caveats of an error model."""
    if errors.components is None or errors.components.n_clusters >= _FEW_CLUSTERS:
        return []
    n, word = errors.components.n_clusters, errors.components.cluster
    consequence = "may be too narrow" if n > 1 else "are too narrow for other runs"
    text = (
        f"the errors were estimated from only {n} {word}{'s' if n > 1 else ''}: the bands under "
        f'"estimated" {consequence}'
    )
    return [Caveat("few-clusters", text, {"n_clusters": n, "cluster": word})]


def other_devices(errors: ErrorModel, kernels: Kernels) -> list[Caveat]:
    """Return a caveat if errors of one device are used for another."""
    if errors.components is None or errors.components.cluster != "run":
        return []
    known = ", ".join(name or "no name" for name in errors.devices)
    others = sorted({str(name) for name in kernels.device} - set(errors.devices))
    if not others:
        return []
    text = (
        f"the errors were estimated on one device ({known}), so the difference between devices is "
        f"unknown: bands for {describe_names(others)} are too narrow"
    )
    return [Caveat("other-device", text, {"known": list(errors.devices), "others": others})]


def in_sample(errors: ErrorModel) -> Caveat:
    """Return the caveat of errors fitted to the runs that they are applied to."""
    runs = f"{errors.n_runs} measured run{'s' if errors.n_runs > 1 else ''}"
    text = (
        f"the errors were estimated from the {runs} of this table, so these runs do not show how "
        "well the bands cover other runs (use propagate validate for that)"
    )
    return Caveat("in-sample", text, {"n_runs": errors.n_runs})
