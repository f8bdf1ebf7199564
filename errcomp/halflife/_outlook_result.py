"""What an outlook says: by method, by group, in all."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from errcomp._showing import Shown
from errcomp.results import Dropped

if TYPE_CHECKING:
    from datetime import date

    from errcomp.halflife.design import Clock
    from errcomp.halflife.forecast import Drop, Forecast

__all__ = ["Answer", "GroupOutlook", "Method", "Outlook"]

Method: TypeAlias = Literal["survival", "drift", "steps"]

#: Whose answer counts, the first that there is.
_FIRST: tuple[Method, ...] = ("drift", "steps", "survival")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The outlook by one method on one clock, or why there is none.

    Attributes
    ----------
    method : {"survival", "drift", "steps"}
    unit : {"releases", "months"}
    forecast : Forecast or None
        At the times of `AHEAD`; None where refused.
    drop : Drop or None
        When it drops below the probability that was asked for; in whole releases.
    dates : tuple of date or None
        Of the drop, its low and its high, on the clock of months; None where there is none.
    refused : str
    """

    method: Method
    unit: Clock
    forecast: Forecast | None
    drop: Drop | None
    dates: tuple[date | None, date | None, date | None]
    refused: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        found: dict[str, Any] = {"method": self.method, "unit": self.unit}
        if self.forecast is None or self.drop is None:
            return {**found, "within": [], "drop": None, "refused": self.refused, "assumptions": []}
        plain = self.forecast.to_dict()
        columns = ("ahead", "probability", "low", "high")
        values = zip(*(plain[name] for name in columns), strict=True)
        when, first, last = (None if day is None else day.isoformat() for day in self.dates)
        return {
            **found,
            "within": [dict(zip(columns, one, strict=True)) for one in values],
            "drop": {
                "time": self.drop.time,
                "low": self.drop.low,
                "high": self.drop.high,
                "date": when,
                "date_low": first,
                "date_high": last,
                "not_reached": self.drop.refused or None,
                "endless": [
                    name for name in ("time", "low", "high") if getattr(self.drop, name) == inf
                ],
            },
            "refused": None,
            "assumptions": plain["assumptions"],
        }


@dataclass(frozen=True, slots=True, eq=False)
class GroupOutlook:
    """The outlook of a group of series.

    Attributes
    ----------
    key : dict
    n_series : int
    promise : float or None
        On the log scale: errors beyond it are out of the promise. None where it is not known.
    calibrated_error : float
        Standard deviation of the error at calibration, log scale.
    calibrated, today : str
        Version at which the model was calibrated, and the last one.
    date : date or None
        Of the last version.
    answers : tuple of Answer
    notes : tuple of str
    """

    key: dict[str, Any]
    n_series: int
    promise: float | None
    calibrated_error: float
    calibrated: str
    today: str
    date: date | None
    answers: tuple[Answer, ...]
    notes: tuple[str, ...]

    def method(self, clock: Clock) -> Method | None:
        """Return the method that answers what is asked; None where none can.

        Drift and steps say how likely the error is within the promise then, and exclude each other.
        Survival is for those that were within it when calibrated, and stands in where neither can.
        """
        told = {one.method for one in self.answers if one.unit == clock and one.forecast}
        return next((name for name in _FIRST if name in told), None)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per method and clock."""
        common = {
            **self.key,
            "n_units": self.n_series,
            "promise": self.promise,
            "calibrated_error": self.calibrated_error,
            "calibrated": self.calibrated,
            "today": self.today,
            "date": None if self.date is None else self.date.isoformat(),
        }
        return [
            {**common, **one.to_dict(), "answers": one.method == self.method(one.unit)}
            for one in self.answers
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Outlook(Shown):
    """The outlook of the groups of a history.

    Attributes
    ----------
    groups : tuple of GroupOutlook
    by : tuple of str
    clocks : tuple of {"releases", "months"}
    error : float or None
        The promised error as it was given; None: twice that at calibration.
    age : int
        Releases since calibration.
    below : float
        The probability whose undercutting is looked for.
    versions : tuple of str
    dropped : tuple of Dropped
    notes : tuple of str
    """

    source: str
    groups: tuple[GroupOutlook, ...]
    by: tuple[str, ...]
    clocks: tuple[Clock, ...]
    error: float | None
    age: int
    below: float
    versions: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    level: float
    seed: int

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all groups."""
        return [row for group in self.groups for row in group.rows()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "by": list(self.by),
            "error": self.error,
            "age": self.age,
            "below": self.below,
            "versions": list(self.versions),
            "confidence": self.level,
            "seed": self.seed,
            "dropped": [one.to_dict() for one in self.dropped],
            "notes": list(self.notes),
            "groups": [{"key": one.key, "notes": list(one.notes)} for one in self.groups],
            "rows": self.rows(),
        }
