"""The results of a forecast: by method, by group, and for all groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from errcomp.codec import (
    Count,
    Coverage,
    Document,
    Field,
    GroupKeys,
    Inline,
    Log,
    Meta,
    Names,
    Part,
    Rows,
    Scalar,
    Share,
    Undefined,
    closed,
    key,
    plain,
    shape_of,
)
from errcomp.halflife.forecast.probabilities import Drop, Forecast
from errcomp.halflife.panel import Clock
from errcomp.report.shown import Shown
from errcomp.results import Dropped

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["AHEAD", "Answer", "GroupForecast", "HalfLifeForecast", "Method"]

#: Times since today at which probabilities are reported.
AHEAD: dict[Clock, tuple[float, ...]] = {
    "releases": (0.0, 1.0, 2.0, 5.0, 10.0),
    "months": (0.0, 3.0, 6.0, 12.0, 24.0),
}

Method: TypeAlias = Literal["survival", "drift", "steps"]

#: The first available of these methods answers for a group.
_FIRST: tuple[Method, ...] = ("drift", "steps", "survival")


_ENDS = ("time", "low", "high")
_DATES = ("date", "date_low", "date_high")
_PART = Annotated[Share, Undefined]
_WITHIN = Rows(
    "within",
    {
        "ahead": ("ahead", float, np.array),
        **{name: (name, _PART, np.array) for name in ("probability", "low", "high")},
    },
)
_DAY, _TEXTS = shape_of(date | None), shape_of(tuple[str, ...])
_OPEN = shape_of(Coverage)
_END_NAMES = shape_of(tuple[Literal["time", "low", "high"], ...])


class _Probabilities(Part):
    """The probabilities ahead and when they drop; if refused, only the reason."""

    def write(self, answer: Answer) -> Mapping[str, Any]:
        forecast, drop = answer.forecast, answer.drop
        if forecast is None or drop is None:
            return {"within": [], "drop": None, "refused": answer.refused, "assumptions": []}
        times = {name: getattr(drop, name) for name in _ENDS}
        return {
            **_WITHIN.write(forecast),
            "drop": {
                **plain(times),
                **dict(zip(_DATES, map(_DAY.write, answer.dates), strict=True)),
                "not_reached": drop.refused or None,
                "endless": [name for name, time in times.items() if time == inf],
            },
            "refused": None,
            "assumptions": list(forecast.assumptions),
        }

    def read(self, field: Field) -> Mapping[str, Any]:
        place = field.at("drop")
        if place.value is None:
            refused = shape_of(str).read(field.at("refused"))
            return {"forecast": None, "drop": None, "dates": (None,) * 3, "refused": refused}
        method, unit = field.at("method").value, field.at("unit").value
        columns = _WITHIN.read(field)
        if missing := set(AHEAD[unit]) - set(columns["ahead"].tolist()):
            times = ", ".join(f"{time:g}" for time in sorted(missing))
            field.at("within").refuse(f"the times ahead {times} too")
        endless, number = _END_NAMES.read(place.at("endless")), shape_of(float | None)
        level, below = (_OPEN.read(_root(field, name)) for name in ("confidence", "below"))
        ends = {n: inf if n in endless else number.read(place.at(n)) for n in _ENDS}
        not_reached = shape_of(str | None).read(place.at("not_reached")) or ""
        assumptions = _TEXTS.read(field.at("assumptions"))
        return {
            "forecast": Forecast(method, unit, **columns, level=level, assumptions=assumptions),
            "drop": Drop(below, **ends, unit=unit, refused=not_reached),
            "dates": tuple(_DAY.read(place.at(name)) for name in _DATES),
            "refused": "",
        }

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        number, text = shape_of(float | None).schema(names), shape_of(str | None).schema(names)
        drop = closed(
            {
                **dict.fromkeys(_ENDS, number),
                **dict.fromkeys(_DATES, _DAY.schema(names)),
                "not_reached": text,
                "endless": _END_NAMES.schema(names),
            }
        )
        return {
            **_WITHIN.schema(names),
            "drop": {"anyOf": [drop, {"type": "null"}]},
            "refused": text,
            "assumptions": _TEXTS.schema(names),
        }


def _root(field: Field, name: str) -> Field:
    """Return a key of the whole document."""
    return Field(field.document, "", field.document).at(name)


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Document):
    """The forecast by one method on one clock, or why it was refused.

    Attributes
    ----------
    method : {"survival", "drift", "steps"}
    unit : {"releases", "months"}
    forecast : Forecast or None
        At the times of `AHEAD`; None if refused.
    drop : Drop or None
        When it drops below the requested probability; in whole releases.
    dates : tuple of date or None
        Of the drop, its low and its high, on the clock of months; None without a date.
    refused : str
    """

    KEYS: ClassVar = ("method", "unit", _Probabilities())

    method: Method
    unit: Clock
    forecast: Forecast | None
    drop: Drop | None
    dates: tuple[date | None, date | None, date | None]
    refused: str


@dataclass(frozen=True, slots=True, eq=False)
class _Row(Document):
    """One answer of a group, as documents list them."""

    KEYS: ClassVar = (
        *(GroupKeys(), key("n_units", "n_series"), "promise", "calibrated_error", "calibrated"),
        *("today", "date", Inline("answer", Answer), "answers"),
    )

    key: dict[str, Any]
    n_series: Count
    promise: Log | None
    calibrated_error: Annotated[Log, Undefined]
    calibrated: str
    today: str
    date: date | None
    answer: Answer
    answers: bool

    @classmethod
    def of(cls, group: GroupForecast, answer: Answer) -> _Row:
        """Return the row of an answer; it ``answers`` if no better method does."""
        told = {name: getattr(group, name) for name in _OF_GROUP}
        return cls(**told, answer=answer, answers=answer.method == group.method(answer.unit))


#: Columns that are equal in all rows of a group.
_OF_GROUP = ("key", "n_series", "promise", "calibrated_error", "calibrated", "today", "date")


class _GroupsWithRows(Part):
    """The groups with their notes, and a row for each of their answers."""

    def write(self, result: HalfLifeForecast) -> Mapping[str, Any]:
        groups = [{"key": plain(one.key), "notes": list(one.notes)} for one in result.groups]
        return {"groups": groups, "rows": result.rows()}

    def read(self, field: Field) -> Mapping[str, Any]:
        rows = [_Row.from_field(row) for row in field.at("rows").items(fewest=1)]
        keys, groups = shape_of(dict[str, Scalar]), []
        for place in field.at("groups").items(fewest=1):
            of_group = keys.read(place.at("key"))
            for name in set(field.document["by"]) - set(of_group):
                place.at("key").at(name)
            mine = [row for row in rows if row.key == of_group]
            if not mine:
                field.at("rows").refuse(f"rows of every group, including {of_group}")
            told = {name: getattr(mine[0], name) for name in _OF_GROUP}
            answers, notes = tuple(row.answer for row in mine), _TEXTS.read(place.at("notes"))
            groups.append(GroupForecast(**told, answers=answers, notes=notes))
        clocks = tuple(dict.fromkeys(row.answer.unit for row in rows))
        return {"groups": tuple(groups), "clocks": clocks}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        keys = shape_of(dict[str, Scalar]).schema(names)
        group = closed({"key": keys, "notes": _TEXTS.schema(names)})
        rows = shape_of(tuple[_Row, ...]).schema(names)
        return {"groups": {"type": "array", "items": group}, "rows": rows}


@dataclass(frozen=True, slots=True, eq=False)
class GroupForecast:
    """The forecast of a group of series.

    Attributes
    ----------
    key : dict
    n_series : int
    promise : float or None
        On the log scale: errors beyond it are out of the promise. None if unknown.
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
        """Return the method whose answer to use; None if no method has one.

        Drift and steps give the probability that the error is within the promise then, and exclude
        each other. Survival is the answer if both refuse; it holds for series that were within the
        promise when calibrated.

        Examples
        --------
        >>> from errcomp.halflife.forecast import forecast_half_life
        >>> history = {"version": ["1", "2", "3"] * 2, "op": ["a"] * 3 + ["b"] * 3,
        ...            "measured": [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]}
        >>> forecast_half_life(history, error=0.1).groups[0].method("releases")
        'survival'
        """
        answering = {
            answer.method for answer in self.answers if answer.unit == clock and answer.forecast
        }
        return next((name for name in _FIRST if name in answering), None)


@dataclass(frozen=True, slots=True, eq=False)
class HalfLifeForecast(Shown, Document):
    """The forecast of the groups of a history.

    Attributes
    ----------
    groups : tuple of GroupForecast
    by : tuple of str
    clocks : tuple of {"releases", "months"}
    error : float or None
        The given promised error; None is twice the error at calibration.
    age : int
        Releases since calibration.
    below : float
        The requested probability: the forecast reports when it drops below it.
    versions : tuple of str
    dropped : tuple of Dropped
    notes : tuple of str
    """

    SCHEMA: ClassVar = "errcomp.half-life-forecast/1"
    COMMAND: ClassVar = "halflife forecast"
    KEYS: ClassVar = (
        *("source", "by", "error", "age", "below", "versions", key("confidence", "level"), "seed"),
        *("dropped", "notes", _GroupsWithRows()),
    )

    source: str
    groups: tuple[GroupForecast, ...]
    by: tuple[str, ...]
    clocks: tuple[Clock, ...]
    error: Annotated[float, Meta(gt=-1.0)] | None
    age: Count
    below: Coverage
    versions: Annotated[tuple[str, ...], Meta(min_length=1)]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    level: Coverage
    seed: Count

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per group, method and clock.

        Examples
        --------
        >>> from errcomp.halflife.forecast import forecast_half_life
        >>> history = {"version": ["1", "2", "3"] * 2, "op": ["a"] * 3 + ["b"] * 3,
        ...            "measured": [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]}
        >>> row = forecast_half_life(history, error=0.1).rows()[0]
        >>> row["method"], row["within"][0]["probability"]
        ('survival', 1.0)
        """
        return [
            _Row.of(group, answer).to_dict() for group in self.groups for answer in group.answers
        ]

    def view(self) -> Report:
        """Return the report of the forecast.

        Examples
        --------
        >>> from errcomp.halflife.forecast import forecast_half_life
        >>> history = {"version": ["1", "2", "3"] * 2, "op": ["a"] * 3 + ["b"] * 3,
        ...            "measured": [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]}
        >>> forecast_half_life(history, error=0.1).view().verdicts[0].head
        'Below 90 % after 2 releases [1, ∞]'
        """
        from errcomp.halflife.view.forecast import forecast_view

        return forecast_view(self)
