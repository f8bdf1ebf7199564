"""What is found of the half-lives of a history: groups, estimates, steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.halflife.drift.trajectory import Trajectory
from errcomp.halflife.drift.variogram import Variogram
from errcomp.halflife.estimators.expiry import Expiry
from errcomp.halflife.noise import NoiseFloor
from errcomp.halflife.panel import Clock, HalfLife, Panel
from errcomp.halflife.steps import Steps
from errcomp.halflife.steps.environment import Attribution
from errcomp.halflife.threshold import Threshold
from errcomp.report.shown import Shown
from errcomp.results import Dropped

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["RESERVED", "GroupHalfLife", "HalfLives", "ReleaseStep"]

#: Columns of a result's rows, which a key to group by would overwrite.
RESERVED = (
    *("method", "half_life", "low", "high", "confidence", "unit", "censored_share"),
    *("n_units", "refused", "steps", "error", "threshold", "assumptions", "details"),
)


@dataclass(frozen=True, slots=True)
class ReleaseStep:
    """What one release did to the series of a group.

    Attributes
    ----------
    version : str
        First release after the step, at its most likely place.
    n_series, n_looked_at : int
        Series with a step there, and those that were searched and have it.
    change : float
        Median relative change of the error ratio predicted / measured of those that stepped: 0.1
        is 10 % more.
    largest : str
        The series that moved most.
    largest_change : float
    false_alarms : float
        Series with a step anywhere that are expected where there is none.
    """

    version: str
    n_series: int
    n_looked_at: int
    change: float
    largest: str
    largest_change: float
    false_alarms: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, eq=False)
class GroupHalfLife:
    """The half-life of a group of series, by every method.

    Attributes
    ----------
    key : dict
        Values of the keys; empty where all series are one group.
    panel : Panel
    threshold : Threshold
        The calibrated error, and the error at which it has doubled.
    estimates : tuple of HalfLife
    steps : tuple of ReleaseStep
        By release, in their order.
    series_steps : tuple of Steps
        Of each series of the panel.
    expiry : dict of Clock to Expiry
        When each series expired; empty where there is no threshold.
    trajectory : Trajectory
        Errors by releases since calibration.
    variogram : Variogram or None
    notes : tuple of str
    """

    key: dict[str, Any]
    panel: Panel
    threshold: Threshold
    estimates: tuple[HalfLife, ...]
    steps: tuple[ReleaseStep, ...]
    series_steps: tuple[Steps, ...]
    expiry: Mapping[Clock, Expiry]
    trajectory: Trajectory
    variogram: Variogram | None
    notes: tuple[str, ...]

    def estimate(self, method: str, clock: Clock) -> HalfLife | None:
        """Return the estimate by one method on one clock, if there is one."""
        for estimate in self.estimates:
            if (estimate.method, estimate.unit) == (method, clock):
                return estimate
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return what holds of the group by whatever method; plain values for JSON."""
        refused = [steps.refused for steps in self.series_steps if steps.refused]
        return {
            "key": dict(self.key),
            "n_series": self.panel.n_series,
            "threshold": self.threshold.to_dict(),
            "expired": {
                clock: {"n": expiry.n, "surely": expiry.right[np.isfinite(expiry.right)].tolist()}
                for clock, expiry in self.expiry.items()
            },
            "not_searched": {reason: refused.count(reason) for reason in dict.fromkeys(refused)},
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per estimate, as ``errcomp halflife fit --json`` prints them."""
        return [
            {
                **self.key,
                "method": estimate.method,
                "half_life": estimate.half_life,
                "low": estimate.low,
                "high": estimate.high,
                "confidence": estimate.level,
                "unit": estimate.unit,
                "n_units": estimate.n_series,
                "censored_share": estimate.censored_share,
                "beyond_observed": estimate.half_life == np.inf,
                "refused": estimate.refused or None,
                "error": self.threshold.error,
                "threshold": self.threshold.value,
                "assumptions": list(estimate.assumptions),
                "details": dict(estimate.details),
                "steps": [step.to_dict() for step in self.steps],
            }
            for estimate in self.estimates
        ]


@dataclass(frozen=True, slots=True, eq=False)
class HalfLives(Shown):
    """Half-lives of the groups of a history.

    Attributes
    ----------
    groups : tuple of GroupHalfLife
    by : tuple of str
    versions : tuple of str
        In order; ``order_by`` says what ordered them.
    noise : NoiseFloor
        Of the measurements of the whole history.
    environment : tuple of Attribution
        Steps over the dates of validation, and whether software or machine is behind them; empty
        where no version was validated again on another date.
    dropped : tuple of Dropped
    notes : tuple of str
    """

    source: str
    groups: tuple[GroupHalfLife, ...]
    by: tuple[str, ...]
    clocks: tuple[Clock, ...]
    versions: tuple[str, ...]
    order_by: str
    noise: NoiseFloor
    environment: tuple[Attribution, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    level: float
    alpha: float
    seed: int

    def view(self) -> Report:
        """Return what people see of it."""
        from errcomp.halflife.view.fit import half_lives_view

        return half_lives_view(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all groups."""
        return [row for group in self.groups for row in group.rows()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "by": list(self.by),
            "clocks": list(self.clocks),
            "versions": list(self.versions),
            "order_by": self.order_by,
            "confidence": self.level,
            "alpha": self.alpha,
            "seed": self.seed,
            "noise": self.noise.to_dict(),
            "environment": [attribution.to_dict() for attribution in self.environment],
            "dropped": [dropped.to_dict() for dropped in self.dropped],
            "notes": list(self.notes),
            "groups": [group.to_dict() for group in self.groups],
            "rows": self.rows(),
        }
