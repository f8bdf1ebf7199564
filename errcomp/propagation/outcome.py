"""What a total becomes under each assumption, and what a reader of it must know."""

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


#: The assumption of which there are bounds only.
BOUNDS = "unknown"
#: Nominal coverage of the bands that are made where none is named.
LEVELS_SHOWN = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Band(Document):
    """Central band: what the time lies in with this probability.

    Attributes
    ----------
    level : float
        Probability; of bounds: at least this, whatever the dependence.
    low, high : float
        In the unit of the outcome; infinite where a queue may be saturated.
    """

    level: Coverage
    low: Annotated[float, Endless]
    high: Annotated[float, Endless]

    def agree(self, field: Field) -> None:
        """Refuse a band that ends before it begins."""
        if self.high < self.low:
            field.at("high").refuse(f"at least the lower end, {self.low:g}")


class _Median(Part):
    """The median: beyond capacity it is endless, of bounds it is not known. Both are null."""

    def write(self, outcome: Outcome) -> Mapping[str, Any]:
        return {"median": plain(outcome.median)}

    def read(self, field: Field) -> Mapping[str, Any]:
        median = shape_of(float | None).read(field.at("median"))
        bounds = field.at("assumption").value == BOUNDS
        return {"median": math.inf if median is None and not bounds else median}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"median": shape_of(float | None).schema(names)}


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
        Which run, and what was assumed of the correlation.
    prediction : float
        What the predictor says, uncorrected: the sum of its kernels, or its graph without errors.
    mean, sd, median : float or None
        Of the distribution, bias corrected; None where they do not exist or, for bounds, are not
        known.
    bias : float or None
        mean / prediction − 1: what the correction adds, a fraction.
    relative_sd : float or None
        sd / mean, a fraction.
    kernel_sd : float
        Relative sd of the kernels, weighted with their time: the error one level below.
    growth : float or None
        relative_sd / kernel_sd: 1 if nothing cancels, 1/√N for N equal independent kernels; above
        1 if the graph amplifies errors.
    effective_number : float or None
        Independent kernels of equal error that would cancel as much; for plain sums.
    bands : tuple of Band
        From narrow to wide.
    saturated : float
        Probability that a queue is beyond its capacity.
    method : str
        How the bands were made.
    by_class, by_kernel : Budget or None
        Where the error comes from; None for bounds and where there is no error.
    critical : mapping of str to float
        Probability of each event of a DAG to be on the critical path.
    measured : float or None
        Measured total of the run, where known; it had no part in the bands unless a caveat says so.
    caveats : tuple of Caveat
        What a reader must know.
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

    def agree(self, field: Field) -> None:
        """Refuse figures that contradict each other."""
        from errcomp.propagation.agreement import check_outcome

        check_outcome(field, self)

    def band(self, level: float) -> Band:
        """Return the band of a level.

        Raises
        ------
        InputError
            It was not computed.
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
        Run by run, assumptions in the order asked for.
    model : ErrorModel
        The errors that were propagated.
    unit : str or None
        Unit of all times.
    seed : int
        Behind all draws.
    caveats : tuple of Caveat
        What holds of all outcomes.
    source : str
        The table.
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

    def agree(self, field: Field) -> None:
        """Refuse rows that do not go together, and counts that contradict each other."""
        from errcomp.propagation.agreement import check_propagation

        check_propagation(field, self)

    def view(self) -> Report:
        """Return what people see of it."""
        from errcomp.propagation.view.run import propagation_view

        return propagation_view(self)

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(dict.fromkeys(outcome.run for outcome in self.outcomes))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Names of the assumptions."""
        return tuple(dict.fromkeys(outcome.assumption for outcome in self.outcomes))

    def of(self, run: str | None = None, assumption: str | None = None) -> Outcome:
        """Return one outcome; the first run and the first assumption by default.

        Raises
        ------
        InputError
            There is no such run or assumption.
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


#: Few clusters: variance components and their bands say little.
_FEW_CLUSTERS = 5


def caveats_of_terms(terms: Terms, kernels: Kernels, errors: ErrorModel) -> list[Caveat]:
    """Say which kernels the error model does not really know."""
    time = kernels.count * kernels.predicted
    total = float(time.sum())
    caveats = []
    known = np.isin(terms.classes, list(errors.classes))
    strangers = sorted(set(terms.classes[~known].tolist()) - {NOT_MODELLED})
    # A model that was given may say one thing of all classes; a fitted one falls back to it.
    if strangers and errors.components is not None:
        share = float(time[np.isin(terms.classes, strangers)].sum()) / total if total else 0.0
        text = (
            f"no error was measured of {describe_names(strangers)} ({share:.1%} of the predicted "
            "time): the error of all classes together stands in"
        )
        caveats.append(Caveat("unknown-class", text, {"classes": strangers, "share": share}))
    unmodelled = (terms.classes == NOT_MODELLED) & (NOT_MODELLED not in errors.classes)
    if unmodelled.any():
        n = int(terms.count[unmodelled].sum())
        text = (
            f"{n} kernels are predicted to take no time, and nothing is known of how long such "
            "kernels take: they count as 0"
        )
        caveats.append(Caveat("not-modelled", text, {"n": n}))
    return caveats


def failed_kernels(kernels: Kernels) -> list[Caveat]:
    """Say how many kernels of the run could not be predicted: they are no part of its time."""
    n = sum(dropped.n for dropped in kernels.dropped)
    text = (
        f"{n} kernel{'s' if n > 1 else ''} of the run could not be predicted (status): the time "
        "is that of the others"
    )
    return [Caveat("failed-kernels", text, {"n": n})] if n else []


def lost_runs(kernels: Kernels) -> list[Caveat]:
    """Say which runs are not there because none of their kernels could be predicted."""
    there = set(kernels.runs)
    names = [name for name in kernels.incomplete if name not in there]
    if not names:
        return []
    text = (
        f"of {len(names)} run{'s' if len(names) > 1 else ''} no kernel could be predicted "
        f"(status): {describe_names(names)}"
    )
    return [Caveat("lost-runs", text, {"runs": names})]


def left_out_of_graph(terms: Terms, kernels: Kernels, graph: Node) -> list[Caveat]:
    """Say which kernels of the table the graph leaves out."""
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
    consequence = "may be too narrow" if n > 1 else "are too narrow, other runs are not known"
    text = (
        f"the errors were estimated from {n} {word}{'s' if n > 1 else ''} only: the bands under "
        f'"estimated" {consequence}'
    )
    return [Caveat("few-clusters", text, {"n_clusters": n, "cluster": word})]


def other_devices(errors: ErrorModel, kernels: Kernels) -> list[Caveat]:
    """Say where errors of one device are taken for those of another."""
    if errors.components is None or errors.components.cluster != "run":
        return []
    known = ", ".join(name or "no name" for name in errors.devices)
    others = sorted({str(name) for name in kernels.device} - set(errors.devices))
    if not others:
        return []
    text = (
        f"the errors were estimated on one device ({known}): how errors differ between devices is "
        f"not known, and bands for {describe_names(others)} are too narrow"
    )
    return [Caveat("other-device", text, {"known": list(errors.devices), "others": others})]


def in_sample(errors: ErrorModel) -> Caveat:
    """Return the caveat of errors fitted to the runs that they are applied to."""
    runs = f"{errors.n_runs} measured run{'s' if errors.n_runs > 1 else ''}"
    text = (
        f"the errors were estimated from the {runs} of this table; bands of these very runs say "
        "nothing of how well bands do on others (see: propagate validate)"
    )
    return Caveat("in-sample", text, {"n_runs": errors.n_runs})
