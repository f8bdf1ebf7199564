"""What people see of half-lives by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from errcomp.halflife.panel import Panel
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Cell, Column, Figure, Form, Note, Report, Table, Verdict, item
from errcomp.results import Written, format_change, format_fraction, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.panel import Clock, HalfLife
    from errcomp.halflife.results import GroupHalfLife, HalfLives, ReleaseStep
    from errcomp.halflife.threshold import Threshold

__all__ = ["HALF_LIFE", "half_lives_view", "label_of", "steps_table", "timed", "written"]

#: Steps listed in one table.
_STEPS_SHOWN = 20
_TOO_FEW = "too few series expired."
#: What is asked first stands first.
_ONE = ("expiry", "variogram", "decay")
_MANY = ("trajectory", "turnbull", "variogram")
_HEADERS = {
    "turnbull": "Half of the series expired",
    "trajectory": "RMS error doubled",
    "variogram": "Doubles if drift goes on",
    "expiry": "Error doubled",
    "decay": "By smooth decay",
}
_LAWS = ("exponential", "weibull", "log-normal")
#: What is the same of a single series.
_OF_ALL = ("trajectory", "turnbull")


def half_lives_view(found: HalfLives) -> Report:
    """Return what people see of half-lives by group.

    Parameters
    ----------
    found : HalfLives

    Returns
    -------
    Report
    """
    return Report(
        title=f"Until which release does it hold? {found.source or 'The history given'}",
        line=_line(found),
        verdicts=[_of_group(found, group) for group in found.groups],
        figures=_figures(found),
        tables=_tables(found),
        method=[
            ("Half-life", "The time until the error of a model calibrated at the first version "
             "has doubled: the root mean square over the series of a group (above), or the error "
             "of a single series."),
            ("Expired", "A series is, from the release on at which its error is beyond twice that "
             "at calibration: surely where that is more than noise explains, at face value where "
             "it is so as measured."),
            ("Releases", f"{len(found.versions)}, in the order of {found.order_by}"),
            ("Noise of one validation", _noise(found)),
            ("Coverage of the intervals", f"{100 * found.level:g} %"),
            ("False alarms of steps per series", f"{100 * found.alpha:g} %"),
            ("Seed", str(found.seed)),
        ],
        draw=partial(_drawn, found),
    )  # fmt: skip


def _line(found: HalfLives) -> list[str]:
    first = [count(len(found.groups), "group")]
    if len(found.groups) == 1:
        (group,) = found.groups
        method = "expiry" if group.panel.n_series == 1 else "trajectory"
        clock = found.clocks[0]
        first = [f"half-life in {clock} {written(group.estimate(method, clock))}"]
    return [*first, f"n={sum(group.panel.n_series for group in found.groups)} series"]


def _drawn(found: HalfLives, figure: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw half-lives: the heat map of several groups, or errors, survival, variogram of one."""
    from errcomp.halflife.view.figures import draw

    return draw(found, figure or ("heat" if len(found.groups) > 1 else "errors"), ax)


def _figures(found: HalfLives) -> list[Figure]:
    from errcomp.halflife.view import figures as draw

    if len(found.groups) > 1:
        caption = "Which groups moved at which release."
        return [Figure("heat", caption, partial(draw.draw_releases_heat, found, note=found.source))]
    captions = {
        "errors": "The error of the frozen model, release by release; steps are marked.",
        "survival": "The share of the series whose error has not doubled, at face value.",
        "variogram": "How far errors drift apart with the releases between them.",
    }
    return [Figure(name, text, partial(draw.draw, found, name)) for name, text in captions.items()]


def _noise(found: HalfLives) -> str:
    known = found.noise
    if not math.isfinite(known.sd):
        return "not known"
    return f"{format_fraction(known.sd)} (median series), from {known.source.replace('_', ' ')}"


def _of_group(found: HalfLives, group: GroupHalfLife) -> Verdict:
    """Say how long the model holds for a group, then what became of its series."""
    whose = label_of(group) if group.key else "all series"
    answers = answers_of(group, found.clocks)
    if not answers:
        refused = dict.fromkeys(one.refused for one in group.estimates if one.refused)
        return Verdict("Cannot be told", f"— {whose}: {next(iter(refused), _TOO_FEW)}", "doubt")
    first = answers[0]
    if first.method == "turnbull":
        head, text = _half(answers)
        return Verdict(head, f"— {whose}: {text}.")
    n = group.panel.n_series
    error = "its error" if n == 1 else f"the error (root mean square over {n:,} series)"
    if _endless(first):
        head = "Not yet doubled"
        text = f"— {whose}: in the record {error} stays below twice that at calibration; "
        text += f"{100 * found.level:g} % interval from {_least(answers)} on."
    else:
        head = _or([_with_interval(one) for one in answers])
        text = f"— {whose}: then {error} has doubled{_at(group, first)}."
    half = [group.estimate("turnbull", clock) for clock in found.clocks] if n > 1 else []
    told = [one for one in half if one is not None and one.half_life is not None]
    if told:
        text += f" {': '.join(_half(told))}."
    return Verdict(head, text)


def _at(group: GroupHalfLife, one: HalfLife) -> str:
    """Name the release, where all series were calibrated at one and the history is there."""
    panel = group.panel
    if not isinstance(panel, Panel) or one.unit != "releases" or one.half_life is None:
        return ""
    first = set(panel.version[panel.starts[:-1]].tolist())
    if len(first) > 1:
        return ""
    start = first.pop()
    doubled = panel.versions[start + int(one.half_life)]
    return f", at {doubled} (calibrated at {panel.versions[start]})"


def _half(answers: Sequence[HalfLife]) -> tuple[str, str]:
    """Say when half of the series have expired, or that they have not in the record."""
    kept = f"({100 * answers[0].censored_share:.0f} % had not surely expired when last seen)"
    if _endless(answers[0]):
        return (
            f"More than {_least(answers)}",
            f"less than half of the series have expired in the record {kept}",
        )
    when = _or([_with_interval(one) for one in answers])
    return when, f"then half of the series have expired {kept}"


def _endless(one: HalfLife) -> bool:
    return one.half_life is not None and math.isinf(one.half_life)


def _least(answers: Sequence[HalfLife]) -> str:
    return _or([timed(one.low or 0.0, one.unit) for one in answers])


def _with_interval(one: HalfLife) -> str:
    """Write a half-life with its unit before its interval."""
    return _parts(one)._replace(number=timed(one.half_life or 0.0, one.unit)).text


def _or(texts: Sequence[str]) -> str:
    return " or ".join(texts)


def _tables(found: HalfLives) -> list[Table]:
    """Return half-lives by group, the laws where a group is alone, steps by release, and notes."""
    tables = [_half_lives(found, clock) for clock in found.clocks]
    if len(found.groups) == 1:
        tables += _methods(found.groups[0])
    tables.append(steps_table(found))
    if found.environment:
        tables.append(_environment(found))
    return tables


def answers_of(group: GroupHalfLife, clocks: Sequence[Clock]) -> list[HalfLife]:
    """Return what answers how long a group holds: on each clock, by the first method that can.

    That is until its error has doubled; else, where too few series differ for that, until half of
    them have expired.
    """
    methods = ("expiry",) if group.panel.n_series == 1 else ("trajectory", "turnbull")
    for method in methods:
        found = [group.estimate(method, clock) for clock in clocks]
        told = [one for one in found if one is not None and one.half_life is not None]
        if told:
            return told
    return []


def written(one: HalfLife | None) -> str:
    """Write a half-life with its interval as people do."""
    return "–" if one is None else _parts(one).text


def _parts(one: HalfLife) -> Written:
    if one.refused or one.half_life is None or one.low is None or one.high is None:
        return Written("cannot be told")
    if math.isinf(one.half_life):
        return Written(f"> {_number(one.low)}")
    high = "∞" if math.isinf(one.high) else _number(one.high)
    return Written(_number(one.half_life), "", _number(one.low), high)


def _half_life(one: HalfLife | None) -> Cell:
    """Return the cell of a half-life; one without end is sorted by where its interval begins."""
    if one is None:
        return Cell(written(one))
    value = one.low if one.half_life == math.inf else one.half_life
    return forms.figure(_parts(one), math.nan if value is None else value)


def timed(value: float, clock: Clock) -> str:
    """Write a time with its unit.

    Examples
    --------
    >>> timed(1.0, "releases"), timed(3.84, "months")
    ('1 release', '3.8 months')
    """
    number = _number(value)
    return f"{number} {clock.removesuffix('s') if number == '1' else clock}"


def _number(value: float) -> str:
    return format_number(value, 2) if value < 100 else f"{value:.0f}"


def label_of(group: GroupHalfLife) -> str:
    """Return the name of a group: the values of its keys."""
    return ", ".join(str(value) or "–" for value in group.key.values()) or "all"


def _half_lives(found: HalfLives, clock: Clock) -> Table:
    single = all(group.panel.n_series == 1 for group in found.groups)
    columns = [
        Column(" / ".join(found.by) or "Group", label_of, key=True),
        Column("Series", lambda group: group.panel.n_series, forms.count),
        Column("Error at calibration", lambda group: group.threshold, _THRESHOLD),
        *(
            Column(_HEADERS[name], partial(_shown, name, clock), forms.words_or(HALF_LIFE))
            for name in (_ONE if single else _MANY)
        ),
    ]
    # Beside the half-life that counts the series.
    counted, at = ("expiry", 4) if single else ("turnbull", 5)
    columns.insert(at, Column("Not surely expired", partial(_kept, counted, clock), forms.share))
    title = f"Half-life in {clock} of {found.source or 'the history'}: the time until the error of "
    title += "a model calibrated at the first version has doubled"
    notes = _notes(found) if clock == found.clocks[-1] else ()
    return Table(title, columns, found.groups, notes)


def _shown(method: str, clock: Clock, group: GroupHalfLife) -> HalfLife | str | None:
    """Return a half-life of a group, or how many of its series expired where that is too few."""
    alone = group.estimate("expiry", clock)
    # Of one series the error is that of all, and half of it has expired when it has.
    if alone is not None and method in _OF_ALL:
        return alone
    if method == "turnbull" and _too_few(group, clock):
        return _counted(group, clock)
    return group.estimate(method, clock)


def _kept(method: str, clock: Clock, group: GroupHalfLife) -> float | None:
    """Return the share of the series that have not surely expired."""
    told = [group.estimate("expiry", clock), group.estimate(method, clock)]
    return next((one.censored_share for one in told if one and not one.refused), None)


def _too_few(group: GroupHalfLife, clock: Clock) -> bool:
    """Say whether some of several series expired, and that tells no interval."""
    half = group.estimate("turnbull", clock)
    return half is not None and bool(half.refused) and clock in group.expiry


def _counted(group: GroupHalfLife, clock: Clock) -> str:
    """Say how many have surely expired, and when, where that is too few for an interval."""
    expiry = group.expiry[clock]
    when = expiry.right[np.isfinite(expiry.right)]
    told = f"{len(when)} of {expiry.n}"
    if not len(when):
        return told
    ends = dict.fromkeys((_number(when.min()), _number(when.max())))
    return f"{told}, after {' to '.join(ends)}"


def _threshold(threshold: Threshold) -> Cell:
    """Return the cell of an error at calibration, with a word where nobody measured it."""
    cell = forms.percent.write(math.expm1(threshold.error))
    mark = {"given": " (given)", "assumed": " (assumed)"}.get(threshold.source)
    return Cell(cell.text + mark, cell.value) if mark else cell


#: A `HalfLife` with its interval.
HALF_LIFE = Form(_half_life, right=True)
_THRESHOLD = Form(_threshold, right=True)


def _notes(found: HalfLives) -> list[Note | str]:
    level = f"{100 * found.level:g} %"
    notes: list[Note | str] = [
        f"[low, high]: {level} interval. > 12: more than 12, where that interval begins; in the "
        "record the error has not doubled, or less than half of the series have expired."
    ]
    if any(group.panel.n_series > 1 for group in found.groups):
        notes.append(
            "RMS error doubled: until the root mean square error over all series has, which a few "
            "that jump far can do. Half of the series expired: until half of them are beyond twice "
            "the error at calibration, at face value. Not surely expired: share of the series "
            f"that were at no version beyond it by more than noise explains ({level})."
        )
    if any(_too_few(group, found.clocks[0]) for group in found.groups):
        notes.append("3 of 8, after 2 to 5: so many surely have, too few for an interval.")
    notes.append(
        "Doubles if drift goes on: for a model calibrated at any release, if errors drift as they "
        "did on average."
    )
    notes.append(
        f"{len(found.versions)} versions, {found.versions[0]} to {found.versions[-1]}, ordered by "
        + {
            "order": "what was given",
            "released": "their release dates",
            "number": "their numbers",
            "date": "the dates of their first validation",
        }.get(found.order_by, found.order_by)
        + "."
    )
    if any(group.threshold.source == "measured" for group in found.groups):
        notes.append(
            "Error at calibration: RMS over the series at their first version; noise of the "
            "measurement is subtracted where it is known."
        )
    noise = found.noise
    if math.isfinite(noise.sd):
        notes.append(f"Noise of one validation: {format_fraction(noise.sd)} (median series).")
    refusals: dict[str, list[str]] = {}
    for group in found.groups:
        for text in group.notes:
            refusals.setdefault(text, []).append(label_of(group))
        for one in group.estimates:
            if one.refused and one.method in (*_MANY, *_ONE) and one.unit == found.clocks[0]:
                refusals.setdefault(f"{_HEADERS[one.method].lower()}: {one.refused}", []).append(
                    label_of(group)
                )
    several = len(found.groups) > 1
    for text, groups in refusals.items():
        shown = ", ".join(groups[:3]) + (f" and {len(groups) - 3} more" if len(groups) > 3 else "")
        notes.append(item(f"{shown}: {text}" if several else text))
    notes += map(item, found.notes)
    notes += [item(f"{d.n:,} validations left out: {d.reason}") for d in found.dropped]
    return notes


def _methods(group: GroupHalfLife) -> list[Table]:
    """Show the laws side by side where there is one group."""
    rows = [one for one in group.estimates if one.method in _LAWS and not one.refused]
    if not rows:
        return []
    columns = [
        Column("Law of the times", lambda one: one.method, key=True),
        Column("Clock", lambda one: one.unit),
        Column("Half of the series expired", lambda one: one, HALF_LIFE),
        Column("Held-out log score", lambda one: one.details.get("held_out_score"), forms.fixed(3)),
    ]
    return [Table("With a form assumed for the times", columns, rows, ())]


def steps_table(found: HalfLives) -> Table:
    """Return what each release did to each group, largest first."""
    rows = [(group, step) for group in found.groups for step in group.steps]
    rows.sort(key=lambda row: abs(math.log1p(row[1].change)) * row[1].n_series ** 0.5, reverse=True)
    shown = rows[:_STEPS_SHOWN]
    columns = [
        Column("From version", lambda row: row[1].version, key=True),
        *_group_column(found),
        Column("Series that stepped", lambda row: f"{row[1].n_series} of {row[1].n_looked_at}"),
        Column("Predicted / measured", lambda row: row[1].change, forms.change),
        Column("Largest", lambda row: _largest(row[1])),
    ]
    notes = [
        f"Searched at a false-alarm rate of {100 * found.alpha:g} % per series. The change is the "
        "median of the series that stepped: above 0 the measured value fell (a time: faster). "
        "Sorted by the change (its logarithm) times the root of the number of series that stepped."
    ]
    searched = [one for group in found.groups for one in group.series_steps]
    if all(one.refused for one in searched):
        notes = [f"No series could be searched for steps: {searched[0].refused}."]
    elif not rows:
        notes = ["No step was found in any series. " + notes[0]]
    if len(rows) > len(shown):
        notes.append(f"{len(rows) - len(shown)} smaller ones are not shown (--json has all).")
    return Table("Steps: which release, how many series, how much", columns, shown, notes)


def _largest(step: ReleaseStep) -> str:
    return f"{step.largest} ({format_change(step.largest_change)})"


def _group_column(found: HalfLives) -> Sequence[Column]:
    if len(found.groups) == 1:
        return ()
    return (Column(" / ".join(found.by), lambda row: label_of(row[0])),)


def _environment(found: HalfLives) -> Table:
    rows = sorted(found.environment, key=lambda one: abs(one.step.size), reverse=True)
    shown = rows[:_STEPS_SHOWN]
    columns = [
        Column("Series", lambda one: one.series, key=True),
        Column("Between", lambda one: f"{one.since[:10]} and {one.until[:10]}"),
        Column("Predicted / measured", lambda one: one.step.change[0], forms.change),
        Column("Put down to", lambda one: one.verdict),
        Column("Because", lambda one: one.reason),
    ]
    notes = []
    if len(rows) > len(shown):
        notes.append(f"{len(rows) - len(shown)} smaller ones are not shown (--json has all).")
    return Table("Steps over the dates of validation: software or machine?", columns, shown, notes)
