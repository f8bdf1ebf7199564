"""What a total becomes under one assumption, and all assumptions side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from errcomp._showing import Shown
from errcomp.errors import InputError, describe_names
from errcomp.results import Caveat

if TYPE_CHECKING:
    from errcomp.propagation.errors.model import ErrorModel
    from errcomp.propagation.sums import Budget

__all__ = ["Band", "Outcome", "Propagation"]


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
        return {
            "run": self.run,
            "assumption": self.assumption,
            "prediction": self.prediction,
            "mean": self.mean,
            "sd": self.sd,
            "median": _finite(self.median),
            "bias": self.bias,
            "relative_sd": self.relative_sd,
            "kernel_sd": self.kernel_sd,
            "growth": self.growth,
            "effective_number": self.effective_number,
            "bands": [{k: _finite(v) for k, v in asdict(band).items()} for band in self.bands],
            "saturated": self.saturated,
            "method": self.method,
            "by_class": self.by_class.to_dict()["rows"] if self.by_class else None,
            "by_kernel": self.by_kernel.to_dict()["rows"] if self.by_kernel else None,
            "critical": dict(self.critical),
            "measured": self.measured,
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
