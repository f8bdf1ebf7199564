"""The half-lives of a history: groups, estimates, steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import numpy as np

from errcomp.codec import (
    Absent,
    Count,
    Coverage,
    Derived,
    Document,
    Ends,
    Field,
    GroupKeys,
    Meta,
    Names,
    NullAs,
    Part,
    Scalar,
    Share,
    Undefined,
    closed,
    if_known,
    key,
    plain,
    shape_of,
)
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

#: Columns of a result's rows; a key to group by must not have such a name.
RESERVED = (
    *("method", "half_life", "low", "high", "confidence", "unit", "censored_share"),
    *("n_units", "refused", "steps", "error", "threshold", "assumptions", "details"),
)


#: A relative change.
_Change: TypeAlias = Annotated[float, Meta(gt=-1.0)]


_REMEDY = "Draw it from the history: errcomp halflife fit HISTORY --figure NAME=FILE."
#: A larger number is a mistake, and would fill the memory.
_MOST_SERIES = 10_000_000
_COUNTS = shape_of(Mapping[str, Count])


@dataclass(frozen=True, slots=True)
class ReleaseStep(Document):
    """The steps of the series of a group at one release.

    Attributes
    ----------
    version : str
        First release after the step, at its most likely position.
    n_series, n_looked_at : int
        Series with a step there, and searched series that were validated there.
    change : float
        Median relative change of the ratio predicted / measured over the series with a step: 0.1
        is 10 % more.
    largest : str
        The series with the largest change.
    largest_change : float
    false_alarms : float
        Expected number of series with a false step at any release.
    stack : tuple of str or None
        Components of the stack that changed at that release, too; None without such columns.
    """

    KEYS: ClassVar = (
        *("version", "n_series", "n_looked_at", "change", "largest", "largest_change"),
        *("false_alarms", if_known("stack")),
    )

    version: str
    n_series: Count
    n_looked_at: Count
    change: _Change
    largest: str
    largest_change: _Change
    false_alarms: float
    stack: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Row(Document):
    """One estimate of a group, as documents list them."""

    KEYS: ClassVar = (
        *(GroupKeys(), "method", "half_life", Ends(), key("confidence", "level"), "unit"),
        *(key("n_units", "n_series"), "censored_share"),
        Derived("beyond_observed", bool, lambda row: row.half_life == math.inf),
        key("refused", "refused", Annotated[str, NullAs("")]),
        *("error", "threshold", "assumptions", "details", "steps"),
    )

    key: Mapping[str, Any]
    method: str
    half_life: float | None
    low: float | None
    high: float | None
    level: Coverage
    unit: Clock
    n_series: Count
    censored_share: Annotated[Share, Undefined]
    refused: str
    error: Annotated[float, Undefined]
    threshold: float | None
    assumptions: tuple[str, ...]
    details: Mapping[str, Any]
    steps: tuple[ReleaseStep, ...]

    def _agree(self, field: Field) -> None:
        """Refuse a score that is not a finite number."""
        if "held_out_score" in self.details:
            shape_of(float | None).read(field.at("details").at("held_out_score"))

    @classmethod
    def of(cls, group: GroupHalfLife, estimate: HalfLife) -> _Row:
        """Return the row of an estimate."""
        told = {field.name: getattr(estimate, field.name) for field in fields(estimate)}
        threshold = group.threshold
        return cls(
            key=group.key,
            error=threshold.error,
            threshold=threshold.value,
            steps=group.steps,
            **told,
        )

    def estimate(self, *, endless: bool) -> HalfLife:
        """Return the estimate."""
        told = {field.name: getattr(self, field.name) for field in fields(HalfLife)}
        return HalfLife(**{**told, "half_life": math.inf if endless else self.half_life})


class _PanelSize(Part):
    """The number of series; documents do not hold their errors."""

    def write(self, group: GroupHalfLife) -> Mapping[str, Any]:
        return {"n_series": group.panel.n_series}

    def read(self, field: Field) -> Mapping[str, Any]:
        place = field.at("n_series")
        n = shape_of(Count).read(place)
        if not 0 < n <= _MOST_SERIES:
            place.refuse(f"from 1 to {_MOST_SERIES:,}")
        return {
            "panel": Absent("the errors of single series", _REMEDY, n_series=n),
            "trajectory": Absent("errors by release", _REMEDY),
            "variogram": Absent("how far errors drift", _REMEDY),
            # Those of the rows.
            "estimates": (),
            "steps": (),
        }

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"n_series": {"type": "integer", "minimum": 1, "maximum": _MOST_SERIES}}


class _Expired(Part):
    """By clock, the number of series, and when series had clearly expired."""

    def write(self, group: GroupHalfLife) -> Mapping[str, Any]:
        expired = {
            clock: {"n": one.n, "surely": one.right[np.isfinite(one.right)].tolist()}
            for clock, one in group.expiry.items()
        }
        return {"expired": expired}

    def read(self, field: Field) -> Mapping[str, Any]:
        clock = shape_of(Clock)
        place = field.at("expired")
        return {
            "expiry": {
                clock.read(Field(name, f"{place.path}", field.document)): self._of(place.at(name))
                for name in place.object()
            }
        }

    def _of(self, field: Field) -> Absent:
        n = shape_of(Count).read(field.at("n"))
        surely = shape_of(list[float]).read(field.at("surely"))
        if len(surely) > n:
            field.at("surely").refuse(f"at most the {n} series")
        # Of the series that had not expired, only the number is known.
        right = np.array([*surely, *[math.inf] * min(n - len(surely), 1)])
        return Absent("when single series expired", _REMEDY, n=n, right=right)

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        times = {"type": "array", "items": {"type": "number"}}
        clock = closed({"n": {"type": "integer", "minimum": 0}, "surely": times})
        return {"expired": {"type": "object", "additionalProperties": clock}}


class _NotSearched(Part):
    """How many series could not be searched for steps, by reason."""

    def write(self, group: GroupHalfLife) -> Mapping[str, Any]:
        refused = [steps.refused for steps in group.series_steps if steps.refused]
        return {"not_searched": {why: refused.count(why) for why in dict.fromkeys(refused)}}

    def read(self, field: Field) -> Mapping[str, Any]:
        refused = _COUNTS.read(field.at("not_searched"))
        searched = field.at("n_series").value - sum(refused.values())
        if searched < 0:
            field.at("not_searched").refuse("at most the total number of series")
        # Only the reason of a refusal is known: series with the same reason share an entry.
        kinds = {**refused, "": searched}
        steps = {why: Absent("the steps of single series", _REMEDY, refused=why) for why in kinds}
        return {"series_steps": tuple(steps[why] for why, n in kinds.items() for _ in range(n))}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"not_searched": _COUNTS.schema(names)}


@dataclass(frozen=True, slots=True, eq=False)
class GroupHalfLife(Document):
    """The half-life of a group of series, by every method.

    Attributes
    ----------
    key : dict
        Values of the keys; empty if all series are one group.
    panel : Panel
    threshold : Threshold
        The calibrated error, and the error at which it has doubled.
    estimates : tuple of HalfLife
    steps : tuple of ReleaseStep
        By release, in order.
    series_steps : tuple of Steps
        Of each series of the panel.
    expiry : dict of Clock to Expiry
        When each series expired; empty without a threshold.
    trajectory : Trajectory
        Errors by releases since calibration.
    variogram : Variogram or None
    notes : tuple of str
    """

    KEYS: ClassVar = (
        key("key", "key", dict[str, Scalar]),
        _PanelSize(),
        "threshold",
        _Expired(),
        _NotSearched(),
        "notes",
    )

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

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per estimate, with the keys of documents; endless times are inf.

        Examples
        --------
        >>> import errcomp as ec
        >>> versions = [f"1.{i}" for i in range(6)]
        >>> half_lives = ec.half_life({"version": versions, "measured": [4.0] * 3 + [9.0] * 3})
        >>> {row["method"]: row["half_life"] for row in half_lives.groups[0].rows()}["expiry"]
        3.0
        """
        rows = [(_Row.of(self, one).to_dict(), one) for one in self.estimates]
        ends = ("half_life", "low", "high")
        return [row | {name: getattr(one, name) for name in ends} for row, one in rows]

    def estimate(self, method: str, clock: Clock) -> HalfLife | None:
        """Return the estimate by a method on a clock; None without one.

        Examples
        --------
        >>> import errcomp as ec
        >>> versions = [f"1.{i}" for i in range(6)]
        >>> half_lives = ec.half_life({"version": versions, "measured": [4.0] * 3 + [9.0] * 3})
        >>> half_lives.groups[0].estimate("expiry", "releases").half_life
        3.0
        """
        for estimate in self.estimates:
            if (estimate.method, estimate.unit) == (method, clock):
                return estimate
        return None


class _GroupsWithRows(Part):
    """The groups, and a row for each of their estimates."""

    def write(self, result: HalfLives) -> Mapping[str, Any]:
        groups = [group.to_dict() for group in result.groups]
        return {"groups": groups, "rows": plain(result.rows())}

    def read(self, field: Field) -> Mapping[str, Any]:
        by = field.document["by"]
        groups = [GroupHalfLife.from_field(group) for group in field.at("groups").items(fewest=1)]
        for group, place in zip(groups, field.at("groups").items(), strict=True):
            for name in set(by) - set(group.key):
                place.at("key").at(name)
        rows = []
        for place in field.at("rows").items():
            for name in by:
                place.at(name)
            endless = place.at("beyond_observed").value is True
            row = _Row.from_field(place)
            rows.append((row, row.estimate(endless=endless)))
        whole = []
        for group in groups:
            mine = [(row, estimate) for row, estimate in rows if row.key == group.key]
            if not mine:
                field.at("rows").refuse(f"rows of every group, including {group.key}")
            estimates = tuple(estimate for _, estimate in mine)
            whole.append(replace(group, estimates=estimates, steps=mine[0][0].steps))
        return {"groups": tuple(whole)}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        groups = shape_of(tuple[GroupHalfLife, ...]).schema(names)
        return {"groups": groups, "rows": shape_of(tuple[_Row, ...]).schema(names)}


@dataclass(frozen=True, slots=True, eq=False)
class HalfLives(Shown, Document):
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
        Steps by date of validation, and whether software or environment caused them; empty if no
        version was validated again on another date.
    dropped : tuple of Dropped
    notes : tuple of str
    """

    SCHEMA: ClassVar = "errcomp.half-lives/1"
    COMMAND: ClassVar = "halflife fit"
    KEYS: ClassVar = (
        *("source", "by", "clocks", "versions", "order_by", key("confidence", "level"), "alpha"),
        *("seed", "noise", "environment", "dropped", "notes", _GroupsWithRows()),
    )

    source: str
    groups: tuple[GroupHalfLife, ...]
    by: tuple[str, ...]
    clocks: Annotated[tuple[Clock, ...], Meta(min_length=1)]
    versions: Annotated[tuple[str, ...], Meta(min_length=1)]
    order_by: str
    noise: NoiseFloor
    environment: tuple[Attribution, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    level: Coverage
    alpha: Share
    seed: Count

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per estimate, with the keys of ``errcomp halflife fit --json``.

        Examples
        --------
        >>> import errcomp as ec
        >>> versions = [f"1.{i}" for i in range(6)]
        >>> half_lives = ec.half_life({"version": versions, "measured": [4.0] * 3 + [9.0] * 3})
        >>> half_lives.rows()[0]["unit"]
        'releases'
        """
        return [row for group in self.groups for row in group.rows()]

    def view(self) -> Report:
        """Return the report of the half-lives.

        Examples
        --------
        >>> import errcomp as ec
        >>> versions = [f"1.{i}" for i in range(6)]
        >>> half_lives = ec.half_life({"version": versions, "measured": [4.0] * 3 + [9.0] * 3})
        >>> half_lives.view().verdicts[0].head
        '3 releases [3, 3]'
        """
        from errcomp.halflife.view.fit import half_lives_view

        return half_lives_view(self)
