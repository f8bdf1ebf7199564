"""Forecasts of a model's error as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item
from errcomp.results import format_fraction, format_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from errcomp.halflife.forecast import Answer, GroupOutlook, Outlook
    from errcomp.halflife.panel import Clock

__all__ = ["forecast_tables"]

#: Times ahead that people see; the document has more.
_SHOWN: dict[Clock, tuple[float, ...]] = {
    "releases": (0.0, 1.0, 2.0, 5.0),
    "months": (3.0, 6.0, 12.0),
}
_ONE: dict[Clock, str] = {"releases": "release", "months": "month"}
_UNKNOWN = "cannot be told"


def forecast_tables(found: Outlook) -> list[Table]:
    """Return the outlook in releases and in months, with notes below the last."""
    tables = [_table(found, clock) for clock in found.clocks]
    return [*tables[:-1], _table(found, found.clocks[-1], _notes(found))]


def _table(found: Outlook, clock: Clock, notes: Sequence[Note | str] = ()) -> Table:
    columns = [Column(" / ".join(found.by) or "Group", lambda row: row["group"], key=True)]
    if found.error is None:
        columns.append(Column("Promise", lambda row: row["promise"], form=forms.as_written))
    columns.append(Column("By", lambda row: row["method"], key=True))
    columns += [
        Column(_ahead(time, clock), lambda row, t=time: row[_key(t)], form=forms.as_written)  # type: ignore[misc]
        for time in _SHOWN[clock]
    ]
    header = f"Below {_percent(found.below)}" + (" in" if clock == "months" else " after")
    columns.append(Column(header, lambda row: row["drop"], form=forms.as_written))
    rows = []
    every = [one for group in found.groups for one in group.answers if one.unit == clock]
    # A method that answers nowhere is in the notes alone, unless none does anywhere.
    told = {one.method for one in every if one.forecast is not None} or {"survival"}
    for group in found.groups:
        mine = [one for one in group.answers if one.unit == clock and one.method in told]
        for i, one in enumerate(mine):
            rows.append(
                {
                    "group": _label(group) if i == 0 else "",
                    "promise": _promise(group) if i == 0 else "",
                    "method": one.method + (" *" if one.method == group.method(clock) else ""),
                    "drop": _drop(one),
                    **dict(zip(map(_key, _SHOWN[clock]), _cells(one, clock), strict=True)),
                }
            )
    return Table(f"{_question(found)}, by {clock}", columns, rows, notes or ())


def _question(found: Outlook) -> str:
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


def _key(time: float) -> str:
    return f"{time:g}"


def _ahead(time: float, clock: Clock) -> str:
    if not time:
        return "Now"
    return f"{time:g} {_ONE[clock] if time == 1 else clock} on"


def _label(group: GroupOutlook) -> str:
    return ", ".join(str(value) or "–" for value in group.key.values()) or "all"


def _promise(group: GroupOutlook) -> str:
    return "–" if group.promise is None else format_fraction(math.expm1(group.promise))


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


def _cells(one: Answer, clock: Clock) -> list[str]:
    if one.forecast is None:
        return ["–"] * len(_SHOWN[clock])
    at = one.forecast.ahead.tolist()
    cells = []
    for time in _SHOWN[clock]:
        i = at.index(time)
        value, low, high = (
            float(x[i]) for x in (one.forecast.probability, one.forecast.low, one.forecast.high)
        )
        cells.append(_probability(value, low, high))
    return cells


def _probability(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "–"
    if high - low < 1e-6:
        return f"{_rounded(value)} %"
    return f"{_rounded(value)} % [{_rounded(low)}, {_rounded(high)}]"


def _rounded(value: float) -> str:
    """Write per cent without decimals, but never 100 for what is less."""
    if 0.99 < value < 1:
        return f"{math.floor(1000 * value) / 10:.1f}"
    return f"{100 * value:.0f}"


def _drop(one: Answer) -> str:
    """Write when it drops below, with the interval: releases, or months of the calendar."""
    drop = one.drop
    if drop is None:
        return _UNKNOWN
    times = (drop.time, drop.low, drop.high)
    found = [
        _time(time, day, one.unit, known=any(one.dates))
        for time, day in zip(times, one.dates, strict=True)
    ]
    return f"{found[0]} [{found[1]}, {found[2]}]" if drop.time != 0 or drop.high != 0 else "now"


def _time(time: float | None, day: date | None, unit: Clock, *, known: bool) -> str:
    if time is None:
        return "later"
    if math.isinf(time):
        return "∞"
    if time == 0:
        return "now"
    if unit == "releases":
        return f"{time:.0f}"
    return f"{day:%Y-%m}" if day is not None and known else f"{format_number(time, 2)} months"


def _notes(found: Outlook) -> list[Note | str]:
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


def _said(found: Outlook) -> list[str]:
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
