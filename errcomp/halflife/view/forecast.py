"""What people see of the forecast of a model's error."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from errcomp.halflife.view.fit import timed
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Cell, Column, Figure, Form, Note, Report, Table, Verdict, item
from errcomp.results import Written, format_fraction, format_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from errcomp.halflife.forecast import Answer, GroupForecast, HalfLifeForecast
    from errcomp.halflife.panel import Clock

__all__ = ["forecast_view"]

#: Times ahead that people see; the document has more.
_SHOWN: dict[Clock, tuple[float, ...]] = {
    "releases": (0.0, 1.0, 2.0, 5.0),
    "months": (3.0, 6.0, 12.0),
}
_ONE: dict[Clock, str] = {"releases": "release", "months": "month"}
_UNKNOWN = "cannot be told"


class _Row(NamedTuple):
    """One answer for one group, whose name stands beside its first answer only."""

    group: str
    promise: float | str | None
    method: str
    answer: Answer


def forecast_view(found: HalfLifeForecast) -> Report:
    """Return what people see of a forecast: in releases and in months."""
    from errcomp.halflife.view.curves import forecast

    caption = "How likely the error of a series is within the promise, from now on."
    draw = partial(forecast, found)
    tables = [_table(found, clock) for clock in found.clocks[:-1]]
    return Report(
        title=f"Does the promise hold tomorrow? {found.source or 'The history given'}",
        line=[count(len(found.groups), "group"), count(len(found.versions), "version")],
        verdicts=[_tomorrow(found, group) for group in found.groups],
        figures=[Figure("forecast", caption, draw)],
        tables=[*tables, _table(found, found.clocks[-1], _notes(found))],
        method=[
            ("Coverage of the intervals", f"{100 * found.level:g} %"),
            ("Seed", str(found.seed)),
        ],
        draw=draw,
    )


def _tomorrow(found: HalfLifeForecast, group: GroupForecast) -> Verdict:
    """Say how long errors of a group stay within the promise, by the method that answers."""
    clock = found.clocks[0]
    whose = ", ".join(str(value) or "–" for value in group.key.values()) or "all series"
    method = group.method(clock)
    one = next(one for one in group.answers if one.unit == clock and method in (None, one.method))
    if one.drop is None:
        return Verdict("Cannot be told", f"— {whose}: {one.refused}", "doubt")
    time, share = one.drop.time, f"{100 * found.below:g} %"
    within = "the promise" if found.error is None else format_fraction(found.error)
    likely = f"the error of a series is within {within} with a probability of"
    told = f"{share} (by {one.method})"
    if time == 0:
        return Verdict(f"Below {share} now", f"— {whose}: {likely} less than {told}.", "doubt")
    if time is None or math.isinf(time):
        head, when = f"Not below {share}", "as far as was looked ahead"
    else:
        low, high = _end(one.drop.low), _end(one.drop.high)
        head, when = f"Below {share} after {timed(time, clock)} [{low}, {high}]", "until then"
    return Verdict(head, f"— {whose}: {when} {likely} at least {told}.")


def _end(value: float | None) -> str:
    if value is None:
        return "later"
    return "∞" if math.isinf(value) else f"{value:.0f}"


def _table(found: HalfLifeForecast, clock: Clock, notes: Sequence[Note | str] = ()) -> Table:
    columns = [Column(" / ".join(found.by) or "Group", lambda row: row.group, key=True)]
    if found.error is None:
        promise = forms.words_or(forms.percent)
        columns.append(Column("Promise", lambda row: row.promise, promise))
    columns.append(Column("By", lambda row: row.method, key=True))
    columns += [
        Column(_ahead(time, clock), partial(_probability, time), _PROBABILITY)
        for time in _SHOWN[clock]
    ]
    header = f"Below {_percent(found.below)}" + (" in" if clock == "months" else " after")
    columns.append(Column(header, lambda row: row.answer, _DROP))
    rows = []
    every = [one for group in found.groups for one in group.answers if one.unit == clock]
    # A method that answers nowhere is in the notes alone, unless none does anywhere.
    told = {one.method for one in every if one.forecast is not None} or {"survival"}
    for group in found.groups:
        mine = [one for one in group.answers if one.unit == clock and one.method in told]
        for i, one in enumerate(mine):
            best = " *" if one.method == group.method(clock) else ""
            name, promised = ("", "") if i else (_label(group), _promise(group))
            rows.append(_Row(name, promised, one.method + best, one))
    return Table(f"{_question(found)}, by {clock}", columns, rows, notes or ())


def _question(found: HalfLifeForecast) -> str:
    within = "the promise" if found.error is None else format_fraction(found.error)
    ends = {(group.calibrated, group.today) for group in found.groups}
    if len(ends) > 1:
        when = "the last version" if not found.age else f"{_releases(found.age)} before the last"
    else:
        calibrated, today = ends.pop()
        when = today if not found.age else f"{calibrated} ({_releases(found.age)} before {today})"
    return (
        f"{found.source or 'the history'}: probability that the error of a series is within "
        f"{within}, of a model calibrated at {when}"
    )


def _releases(n: int) -> str:
    return f"{n} release{'s' * (n != 1)}"


def _ahead(time: float, clock: Clock) -> str:
    if not time:
        return "Now"
    return f"{time:g} {_ONE[clock] if time == 1 else clock} on"


def _label(group: GroupForecast) -> str:
    return ", ".join(str(value) or "–" for value in group.key.values()) or "all"


def _promise(group: GroupForecast) -> float | None:
    return None if group.promise is None else math.expm1(group.promise)


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


def _probability(time: float, row: _Row) -> tuple[float, float, float] | None:
    """Return the probability at a time with its interval."""
    found = row.answer.forecast
    if found is None:
        return None
    i = found.ahead.tolist().index(time)
    return float(found.probability[i]), float(found.low[i]), float(found.high[i])


def _written_probability(value: tuple[float, float, float] | None) -> Cell:
    if value is None or math.isnan(value[0]):
        return Cell("–")
    likely, low, high = value
    ends = () if high - low < 1e-6 else (_rounded(low), _rounded(high))
    return forms.figure(Written(_rounded(likely), " %", *ends), likely)


def _rounded(value: float) -> str:
    """Write per cent without decimals, but never 100 for what is less."""
    if 0.99 < value < 1:
        return f"{math.floor(1000 * value) / 10:.1f}"
    return f"{100 * value:.0f}"


def _written_drop(one: Answer) -> Cell:
    """Write when it drops below, with the interval: releases, or months of the calendar."""
    drop = one.drop
    if drop is None:
        return Cell(_UNKNOWN)
    if drop.time == drop.high == 0:
        return Cell("now", 0.0)
    known = any(one.dates)
    when, low, high = (
        _time(time, day, one.unit, known=known)
        for time, day in zip((drop.time, drop.low, drop.high), one.dates, strict=True)
    )
    parts = when._replace(low=low.text, high=high.text)
    if drop.time is None or math.isinf(drop.time):
        return Cell(parts.text)
    cell = forms.figure(parts, drop.time)
    # A month of the calendar is no number that a paper could align.
    return replace(cell, figure=None) if one.dates[0] is not None else cell


def _time(time: float | None, day: date | None, unit: Clock, *, known: bool) -> Written:
    if time is None:
        return Written("later")
    if math.isinf(time):
        return Written("∞")
    if time == 0:
        return Written("now")
    if unit == "releases":
        return Written(f"{time:.0f}")
    if day is not None and known:
        return Written(f"{day:%Y-%m}")
    return Written(format_number(time, 2), " months")


_PROBABILITY = Form(_written_probability, right=True)
#: An `Answer`; sorted by the time at which it drops.
_DROP = Form(_written_drop, right=True)


def _notes(found: HalfLifeForecast) -> list[Note | str]:
    if found.error is None:
        within = "the promise: that the error at calibration has not doubled, as in halflife fit"
    else:
        within = f"{format_fraction(found.error)} (a factor of {1 + found.error:g}), as promised"
    notes: list[Note | str] = [
        f"Within: the prediction for a series drawn from the group errs by less than {within}."
    ]
    notes.append(
        "*: the line to read. Steps and drift: how likely the error is within it at that time, the "
        "error at calibration included. Survival: of the series within it when calibrated (100 % "
        "at first), those that never left it; to compare, and the answer where the others refuse."
    )
    now = (
        f"The model was calibrated {_releases(found.age)} before the last version and not since; "
        "now is that last version, and whether the model still holds was not looked at."
        if found.age
        else "Now is the last version, at which the model is calibrated anew; --age N asks for one "
        "that was calibrated N releases before it and not since."
    )
    days = [group.date for group in found.groups if group.date is not None]
    if days:
        first, last = min(days), max(days)
        now += f" Dates count from {first}" + (f" to {last}." if last > first else ".")
    notes.append(now)
    notes.append(
        f"[low, high]: {_percent(found.level)} interval, given releases like those seen. later: "
        "not within what was looked at; ∞: no bound there; –: beyond what was observed."
    )
    notes += map(item, _said(found))
    notes += map(item, found.notes)
    notes += [item(f"{d.n:,} validations left out: {d.reason}") for d in found.dropped]
    return notes


def _said(found: HalfLifeForecast) -> list[str]:
    """Collect what is said of each method: of all groups in one line, then of some."""
    lines = []
    for method in ("survival", "drift", "steps"):
        answers = [
            (_label(group), one)
            for group in found.groups
            for one in group.answers
            if (one.method, one.unit) == (method, found.clocks[0])
        ]
        assumed: dict[str, list[str]] = {}
        refused: dict[str, list[str]] = {}
        for label, one in answers:
            if one.forecast is None:
                refused.setdefault(one.refused, []).append(label)
            for text in one.forecast.assumptions if one.forecast is not None else ():
                assumed.setdefault(text, []).append(label)
        answered = sum(one.forecast is not None for _, one in answers)
        common = " ".join(text for text, mine in assumed.items() if len(mine) == answered)
        lines += [f"{method}: {common}"] if common else []
        for texts, whole in ((assumed, answered), (refused, len(answers))):
            for text, mine in texts.items():
                if len(mine) < whole:
                    lines.append(f"{method}, {_listed(mine)}: {text}")
                elif texts is refused:
                    lines.append(f"{method}: {text}")
    notes: dict[str, list[str]] = {}
    for group in found.groups:
        for text in group.notes:
            notes.setdefault(text, []).append(_label(group))
    for text, mine in notes.items():
        lines.append(text if len(mine) == len(found.groups) else f"{_listed(mine)}: {text}")
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
