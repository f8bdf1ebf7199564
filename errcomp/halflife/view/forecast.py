"""The report of the forecast of a model's error."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from errcomp.halflife.view.parts import timed
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

#: Times ahead in the report; the document has more.
_SHOWN: dict[Clock, tuple[float, ...]] = {
    "releases": (0.0, 1.0, 2.0, 5.0),
    "months": (3.0, 6.0, 12.0),
}
_ONE: dict[Clock, str] = {"releases": "release", "months": "month"}
_UNKNOWN = "cannot be determined"


class _Row(NamedTuple):
    """One answer for one group; the first answer alone names the group."""

    group: str
    promise: float | str | None
    method: str
    answer: Answer


def forecast_view(forecast: HalfLifeForecast) -> Report:
    """Return the report of a forecast, in releases and in months."""
    from errcomp.halflife.view import curves

    caption = "Probability that the error of a series is within the promise, by time from now."
    draw = partial(curves.forecast, forecast)
    tables = [_table(forecast, clock) for clock in forecast.clocks[:-1]]
    return Report(
        title="How long will the error stay within the promise? "
        f"{forecast.source or 'The given history'}",
        line=[count(len(forecast.groups), "group"), count(len(forecast.versions), "version")],
        verdicts=[_tomorrow(forecast, group) for group in forecast.groups],
        figures=[Figure("forecast", caption, draw)],
        tables=[*tables, _table(forecast, forecast.clocks[-1], _notes(forecast))],
        method=[
            ("Coverage of the intervals", f"{100 * forecast.level:g} %"),
            ("Seed", str(forecast.seed)),
        ],
        draw=draw,
    )


def _tomorrow(forecast: HalfLifeForecast, group: GroupForecast) -> Verdict:
    """Say how long errors of a group stay within the promise, by the method that answers."""
    clock = forecast.clocks[0]
    whose = ", ".join(str(value) or "–" for value in group.key.values()) or "all series"
    method = group.method(clock)
    answers = [answer for answer in group.answers if answer.unit == clock]
    answer = next(answer for answer in answers if method in (None, answer.method))
    if answer.drop is None:
        return Verdict("Cannot be determined", f"— {whose}: {answer.refused}", "doubt")
    time, share = answer.drop.time, f"{100 * forecast.below:g} %"
    within = "the promise" if forecast.error is None else format_fraction(forecast.error)
    likely = f"the error of a series is within {within} with a probability of"
    odds = f"{share} (method: {answer.method})"
    if time == 0:
        return Verdict(f"Below {share} now", f"— {whose}: {likely} less than {odds}.", "doubt")
    if time is None or math.isinf(time):
        head, when = f"Not below {share}", "at all times of the forecast"
    else:
        low, high = _end(answer.drop.low), _end(answer.drop.high)
        head, when = f"Below {share} after {timed(time, clock)} [{low}, {high}]", "until then"
    return Verdict(head, f"— {whose}: {when} {likely} at least {odds}.")


def _end(value: float | None) -> str:
    if value is None:
        return "later"
    return "∞" if math.isinf(value) else f"{value:.0f}"


def _table(forecast: HalfLifeForecast, clock: Clock, notes: Sequence[Note | str] = ()) -> Table:
    columns = [Column(" / ".join(forecast.by) or "Group", lambda row: row.group, key=True)]
    if forecast.error is None:
        promise = forms.words_or(forms.percent)
        columns.append(Column("Promise", lambda row: row.promise, promise))
    columns.append(Column("Method", lambda row: row.method, key=True))
    columns += [
        Column(_ahead(time, clock), partial(_probability, time), _PROBABILITY)
        for time in _SHOWN[clock]
    ]
    header = f"Below {_percent(forecast.below)}" + (" in" if clock == "months" else " after")
    columns.append(Column(header, lambda row: row.answer, _DROP))
    rows = []
    all_answers = [
        answer for group in forecast.groups for answer in group.answers if answer.unit == clock
    ]
    # A method without an answer is in the notes alone, unless no method has one.
    methods = {answer.method for answer in all_answers if answer.forecast is not None} or {
        "survival"
    }
    for group in forecast.groups:
        answers = [
            answer for answer in group.answers if answer.unit == clock and answer.method in methods
        ]
        for i, answer in enumerate(answers):
            best = " *" if answer.method == group.method(clock) else ""
            name, promised = ("", "") if i else (_label(group), _promise(group))
            rows.append(_Row(name, promised, answer.method + best, answer))
    return Table(f"{_question(forecast)}, by {clock}", columns, rows, notes or ())


def _question(forecast: HalfLifeForecast) -> str:
    within = "the promise" if forecast.error is None else format_fraction(forecast.error)
    ends = {(group.calibrated, group.today) for group in forecast.groups}
    if len(ends) > 1:
        when = (
            "the last version" if not forecast.age else f"{_releases(forecast.age)} before the last"
        )
    else:
        calibrated, today = ends.pop()
        when = (
            today
            if not forecast.age
            else f"{calibrated} ({_releases(forecast.age)} before {today})"
        )
    return (
        f"{forecast.source or 'the history'}: probability that the error of a series is within "
        f"{within}, for a model calibrated at {when}"
    )


def _releases(n: int) -> str:
    return f"{n} release{'s' * (n != 1)}"


def _ahead(time: float, clock: Clock) -> str:
    if not time:
        return "Now"
    return f"In {time:g} {_ONE[clock] if time == 1 else clock}"


def _label(group: GroupForecast) -> str:
    return ", ".join(str(value) or "–" for value in group.key.values()) or "all"


def _promise(group: GroupForecast) -> float | None:
    return None if group.promise is None else math.expm1(group.promise)


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


def _probability(time: float, row: _Row) -> tuple[float, float, float] | None:
    """Return the probability at a time with its interval."""
    forecast = row.answer.forecast
    if forecast is None:
        return None
    i = forecast.ahead.tolist().index(time)
    return float(forecast.probability[i]), float(forecast.low[i]), float(forecast.high[i])


def _written_probability(value: tuple[float, float, float] | None) -> Cell:
    if value is None or math.isnan(value[0]):
        return Cell("–")
    likely, low, high = value
    ends = () if high - low < 1e-6 else (_rounded(low), _rounded(high))
    return forms.figure(Written(_rounded(likely), " %", *ends), likely)


def _rounded(value: float) -> str:
    """Write per cent without decimals, but never 100 for a smaller value."""
    if 0.99 < value < 1:
        return f"{math.floor(1000 * value) / 10:.1f}"
    return f"{100 * value:.0f}"


def _written_drop(answer: Answer) -> Cell:
    """Write when it drops below, with the interval: releases, or months of the calendar."""
    drop = answer.drop
    if drop is None:
        return Cell(_UNKNOWN)
    if drop.time == drop.high == 0:
        return Cell("now", 0.0)
    known = any(answer.dates)
    when, low, high = (
        _time(time, day, answer.unit, known=known)
        for time, day in zip((drop.time, drop.low, drop.high), answer.dates, strict=True)
    )
    parts = when._replace(low=low.text, high=high.text)
    if drop.time is None or math.isinf(drop.time):
        return Cell(parts.text)
    cell = forms.figure(parts, drop.time)
    # A table cannot align a month of the calendar as a number.
    return replace(cell, figure=None) if answer.dates[0] is not None else cell


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


def _notes(forecast: HalfLifeForecast) -> list[Note | str]:
    if forecast.error is None:
        within = (
            "Within the promise: an error of less than twice the error at calibration, as in "
            "`errcomp halflife fit`"
        )
    else:
        percent = format_fraction(forecast.error)
        within = (
            f"Within {percent}: the prediction is off by less than a factor of "
            f"{1 + forecast.error:g}"
        )
    notes: list[Note | str] = [
        f"{within}. Each probability applies to a series drawn at random from the group."
    ]
    notes.append(Note("The method to use for this group.", "*"))
    notes.append(
        "Steps and drift: probability that the error is "
        "within the promise at that time, including the error at calibration. Survival: share of "
        "the series within the promise at calibration that have stayed within it ever since (100 % "
        "at first). Survival is shown for comparison, and used where the other methods give no "
        "result."
    )
    now = (
        f"The model was calibrated {_releases(forecast.age)} before the last version and not "
        "since. 'Now' means the last version; whether the model is still valid at that version was "
        "not checked."
        if forecast.age
        else "'Now' means the last version, at which the model is assumed to be calibrated. --age "
        "N forecasts for a model calibrated N releases earlier."
    )
    days = [group.date for group in forecast.groups if group.date is not None]
    if days:
        first, last = min(days), max(days)
        now += f" Dates count from {first}" + (f" to {last}." if last > first else ".")
    notes.insert(0, now)
    notes.append(
        f"[low, high]: {_percent(forecast.level)} interval, if future releases change errors as "
        "past releases did. later: after the end of the forecast; ∞: no upper bound; –: unknown, "
        "beyond the recorded history."
    )
    notes += map(item, _method_notes(forecast))
    notes += map(item, forecast.notes)
    notes += [item(f"{count(d.n, 'validation')} left out: {d.reason}") for d in forecast.dropped]
    return notes


def _method_notes(forecast: HalfLifeForecast) -> list[str]:
    """Collect the remarks on each method: one line for all groups, then lines for some groups."""
    lines = []
    for method in ("survival", "drift", "steps"):
        answers = [
            (_label(group), answer)
            for group in forecast.groups
            for answer in group.answers
            if (answer.method, answer.unit) == (method, forecast.clocks[0])
        ]
        assumed: dict[str, list[str]] = {}
        refused: dict[str, list[str]] = {}
        for label, answer in answers:
            if answer.forecast is None:
                refused.setdefault(answer.refused, []).append(label)
            for text in answer.forecast.assumptions if answer.forecast is not None else ():
                assumed.setdefault(text, []).append(label)
        answered = sum(answer.forecast is not None for _, answer in answers)
        common = " ".join(text for text, labels in assumed.items() if len(labels) == answered)
        lines += [f"{method}: {common}"] if common else []
        lines += [
            f"{method} for {_listed(labels)}: {text}"
            for text, labels in assumed.items()
            if len(labels) < answered
        ]
        for text, labels in refused.items():
            whose = f" for {_listed(labels)}" if len(labels) < len(answers) else ""
            lines.append(f"no forecast by {method}{whose}: {text}")
    notes: dict[str, list[str]] = {}
    for group in forecast.groups:
        for text in group.notes:
            notes.setdefault(text, []).append(_label(group))
    for text, labels in notes.items():
        lines.append(text if len(labels) == len(forecast.groups) else f"{_listed(labels)}: {text}")
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
