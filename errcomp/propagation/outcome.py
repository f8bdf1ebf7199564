"""What a total becomes under each assumption, and what a reader of it must know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.propagation.errors.residuals import NOT_MODELLED
from errcomp.report.shown import Shown
from errcomp.results import Caveat

if TYPE_CHECKING:
    from errcomp.propagation.errors import ErrorModel
    from errcomp.propagation.graph import Node
    from errcomp.propagation.sums import Budget
    from errcomp.propagation.terms import Terms
    from errcomp.report.model import Report
    from errcomp.tables import Kernels


#: Nominal coverage of the bands that are made where none is named.
LEVELS_SHOWN = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Band:
    """Central band: what the time lies in with this probability.

    Attributes
    ----------
    level : float
        Probability; of bounds: at least this, whatever the dependence.
    low, high : float
        In the unit of the outcome; infinite where a queue may be saturated.
    """

    level: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Outcome:
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

    run: str
    assumption: str
    prediction: float
    mean: float | None
    sd: float | None
    median: float | None
    bias: float | None
    relative_sd: float | None
    kernel_sd: float
    growth: float | None
    effective_number: float | None
    bands: tuple[Band, ...]
    saturated: float
    method: str
    by_class: Budget | None
    by_kernel: Budget | None
    critical: Mapping[str, float]
    measured: float | None
    caveats: tuple[Caveat, ...]

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinite times become None with ``saturated`` > 0."""
        bands = [{k: _finite(v) for k, v in asdict(band).items()} for band in self.bands]
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "median": _finite(self.median),
            "bands": bands,
            "by_class": self.by_class.to_dict()["rows"] if self.by_class else None,
            "by_kernel": self.by_kernel.to_dict()["rows"] if self.by_kernel else None,
            "critical": dict(self.critical),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


@dataclass(frozen=True, slots=True)
class Propagation(Shown):
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
    """

    outcomes: tuple[Outcome, ...]
    model: ErrorModel
    unit: str | None
    seed: int
    caveats: tuple[Caveat, ...]

    def view(self, source: str = "") -> Report:
        """Return what people see of it; ``source`` names the table."""
        from errcomp.propagation.view.run import propagation_view

        return propagation_view(self, source)

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "unit": self.unit,
            "seed": self.seed,
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "errors": self.model.to_dict(),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


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
