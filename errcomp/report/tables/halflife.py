"""Half-lives as tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item
from errcomp.results import format_change, format_fraction, format_number

if TYPE_CHECKING:
    from errcomp.halflife.panel import Clock, HalfLife
    from errcomp.halflife.results import GroupHalfLife, HalfLives

__all__ = ["answers_of", "fit_tables", "label_of", "steps_table", "timed", "written"]

#: Steps listed in one table.
_STEPS_SHOWN = 20
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


def fit_tables(found: HalfLives) -> list[Table]:
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
    if one is None:
        return "–"
    if one.refused or one.half_life is None or one.low is None or one.high is None:
        return "cannot be told"
    if math.isinf(one.half_life):
        return f"> {_number(one.low)}"
    high = "∞" if math.isinf(one.high) else _number(one.high)
    return f"{_number(one.half_life)} [{_number(one.low)}, {high}]"


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
    methods = _ONE if single else _MANY
    columns = [
        Column(" / ".join(found.by) or "Group", lambda row: row["group"], key=True),
        Column("Series", lambda row: row["n"], forms.count),
        Column("Error at calibration", lambda row: row["error"], form=forms.as_written),
        *(
            Column(_HEADERS[name], lambda row, name=name: row[name], form=forms.as_written)  # type: ignore[misc]
            for name in methods
        ),
    ]
    # Beside the half-life that counts the series.
    columns.insert(
        4 if single else 5,
        Column("Not surely expired", lambda row: row["censored"], form=forms.as_written),
    )
    rows = []
    for group in found.groups:
        estimates = {name: group.estimate(name, clock) for name in methods}
        first = estimates["expiry" if single else "turnbull"]
        rows.append(
            {
                "group": label_of(group),
                "n": group.panel.n_series,
                "error": _error(group),
                "censored": "–"
                if first is None or first.refused
                else f"{100 * first.censored_share:.0f} %",
                **{name: written(one) for name, one in estimates.items()},
            }
        )
        alone = group.estimate("expiry", clock)
        if not single and alone is not None:
            # Of one series the error is that of all, and half of it has expired when it has.
            rows[-1]["trajectory"] = rows[-1]["turnbull"] = written(alone)
            if not alone.refused:
                rows[-1]["censored"] = f"{100 * alone.censored_share:.0f} %"
        elif _too_few(group, clock):
            rows[-1]["turnbull"] = _counted(group, clock)
    title = f"Half-life in {clock} of {found.source or 'the history'}: the time until the error of "
    title += "a model calibrated at the first version has doubled"
    return Table(title, columns, rows, _notes(found) if clock == found.clocks[-1] else ())


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


def _error(group: GroupHalfLife) -> str:
    mark = {"given": " (given)", "assumed": " (assumed)"}.get(group.threshold.source, "")
    return f"{format_fraction(math.expm1(group.threshold.error))}{mark}"


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
    rows = [
        {"method": one.method, "unit": one.unit, "text": written(one), "score": _score(one)}
        for one in group.estimates
        if one.method in _LAWS and not one.refused
    ]
    if not rows:
        return []
    columns = [
        Column("Law of the times", lambda row: row["method"], key=True),
        Column("Clock", lambda row: row["unit"]),
        Column("Half of the series expired", lambda row: row["text"], form=forms.as_written),
        Column("Held-out log score", lambda row: row["score"], form=forms.as_written),
    ]
    return [Table("With a form assumed for the times", columns, rows, ())]


def _score(one: HalfLife) -> str:
    score = one.details.get("held_out_score")
    return "–" if score is None else f"{score:.3f}"


def steps_table(found: HalfLives) -> Table:
    """Return what each release did to each group, largest first."""
    rows: list[dict[str, Any]] = [
        {"group": label_of(group), **step.to_dict()}
        for group in found.groups
        for step in group.steps
    ]
    rows.sort(key=lambda row: abs(math.log1p(row["change"])) * row["n_series"] ** 0.5, reverse=True)
    shown = rows[:_STEPS_SHOWN]
    columns = [
        Column("From version", lambda row: row["version"], key=True),
        *_group_column(found),
        Column("Series that stepped", lambda row: f"{row['n_series']} of {row['n_looked_at']}"),
        Column("Predicted / measured", lambda row: row["change"], forms.change),
        Column("Largest", lambda row: f"{row['largest']} ({format_change(row['largest_change'])})"),
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


def _group_column(found: HalfLives) -> Sequence[Column]:
    if len(found.groups) == 1:
        return ()
    return (Column(" / ".join(found.by), lambda row: row["group"]),)


def _environment(found: HalfLives) -> Table:
    rows = [one.to_dict() for one in found.environment]
    rows.sort(key=lambda row: abs(row["step"]["size"]), reverse=True)
    shown = rows[:_STEPS_SHOWN]
    columns = [
        Column("Series", lambda row: row["series"], key=True),
        Column("Between", lambda row: f"{row['since'][:10]} and {row['until'][:10]}"),
        Column("Predicted / measured", lambda row: row["step"]["change"], forms.change),
        Column("Put down to", lambda row: row["verdict"]),
        Column("Because", lambda row: row["reason"]),
    ]
    notes = []
    if len(rows) > len(shown):
        notes.append(f"{len(rows) - len(shown)} smaller ones are not shown (--json has all).")
    return Table("Steps over the dates of validation: software or machine?", columns, shown, notes)
