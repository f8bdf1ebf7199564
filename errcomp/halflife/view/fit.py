"""The report of half-lives by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from errcomp.halflife.panel import Panel
from errcomp.halflife.view.parts import number, timed
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Cell, Column, Figure, Form, Note, Report, Table, Verdict, item
from errcomp.results import Written, format_change, format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.panel import Clock, HalfLife
    from errcomp.halflife.results import GroupHalfLife, HalfLives, ReleaseStep
    from errcomp.halflife.threshold import Threshold

__all__ = [
    "HALF_LIFE",
    "half_lives_view",
    "label_of",
    "steps_table",
    "written",
]

#: Steps listed in one table.
_STEPS_SHOWN = 20
_TOO_FEW = "too few series expired."
#: Methods in the order of the columns: the most asked question first.
_ONE = ("expiry", "variogram", "decay")
_MANY = ("trajectory", "turnbull", "steps", "variogram")
_HEADERS = {
    "turnbull": "Median survival",
    "steps": "Median survival by steps",
    "trajectory": "RMS error doubled",
    "variogram": "Doubled if drift continues",
    "expiry": "Error doubled",
    "decay": "Smooth decay",
}
_LAWS = ("exponential", "weibull", "log-normal")
#: Words of documents that the report shows in other words.
_CAUSES = {"cannot be told": "undetermined"}
#: Methods that give a single series the half-life of its expiry.
_OF_ALL = ("trajectory", "turnbull")


def half_lives_view(half_lives: HalfLives) -> Report:
    """Return the report of half-lives by group.

    Parameters
    ----------
    half_lives : HalfLives

    Returns
    -------
    Report
    """
    return Report(
        title=f"How long does the calibration hold? {half_lives.source or 'The given history'}",
        line=_line(half_lives),
        verdicts=[_of_group(half_lives, group) for group in half_lives.groups],
        figures=_figures(half_lives),
        tables=_tables(half_lives),
        method=[
            ("Half-life", "The time until the error of a model calibrated at the first version "
             "has doubled. The error of a group is the root mean square over its series."),
            ("Expired", "A series has expired when its error exceeds twice the error at "
             "calibration. It has clearly expired when noise does not explain the excess. "
             "Errors as measured include noise."),
            ("Releases", f"{len(half_lives.versions)}, {_ordered(half_lives)}"),
            ("Noise of one validation", _noise(half_lives)),
            ("Coverage of the intervals", f"{100 * half_lives.level:g} %"),
            ("False steps, per series", f"{100 * half_lives.alpha:g} %"),
            ("Seed", str(half_lives.seed)),
        ],
        draw=partial(_drawn, half_lives),
    )  # fmt: skip


def _line(half_lives: HalfLives) -> list[str]:
    first = [count(len(half_lives.groups), "group")]
    if len(half_lives.groups) == 1:
        (group,) = half_lives.groups
        method = "expiry" if group.panel.n_series == 1 else "trajectory"
        clock = half_lives.clocks[0]
        first = [f"half-life in {clock} {written(group.estimate(method, clock))}"]
    return [*first, f"n={sum(group.panel.n_series for group in half_lives.groups):,} series"]


def _drawn(half_lives: HalfLives, figure: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw half-lives: the heat map of several groups, or errors, survival, variogram of one."""
    from errcomp.halflife.view.figures import draw

    return draw(half_lives, figure or ("heat" if len(half_lives.groups) > 1 else "errors"), ax)


def _figures(half_lives: HalfLives) -> list[Figure]:
    from errcomp.halflife.view import figures as draw

    if len(half_lives.groups) > 1:
        caption = "Which groups changed at which release."
        return [
            Figure(
                "heat",
                caption,
                partial(draw.draw_releases_heat, half_lives, note=half_lives.source),
            )
        ]
    captions = {
        "errors": "The error of the frozen model, release by release, with steps marked.",
        "survival": "The share of series whose error has not doubled, as measured.",
        "variogram": "How far the error drifts, by the number of releases between two versions.",
    }
    return [
        Figure(name, text, partial(draw.draw, half_lives, name)) for name, text in captions.items()
    ]


def _noise(half_lives: HalfLives) -> str:
    known = half_lives.noise
    if not math.isfinite(known.sd):
        return "unknown"
    return f"{format_fraction(known.sd)} (median series), from {known.source.replace('_', ' ')}"


def _ordered(half_lives: HalfLives) -> str:
    """Say what the versions are ordered by."""
    order = {
        "order": "in the given order",
        "columns": "by the given columns",
        "rows": "as in the table",
        "released": "by release date",
        "number": "by version number",
        "date": "by date of their first validation",
    }
    return order.get(half_lives.order_by, f"by {half_lives.order_by}")


def _of_group(half_lives: HalfLives, group: GroupHalfLife) -> Verdict:
    """Say how long the model holds for a group, then when half of its series expire."""
    whose = label_of(group) if group.key else "all series"
    answers = answers_of(group, half_lives.clocks)
    if not answers:
        refused = dict.fromkeys(fit.refused for fit in group.estimates if fit.refused)
        why = next(iter(refused), _TOO_FEW)
        return Verdict("Cannot be determined", f"— {whose}: {why}", "doubt")
    first = answers[0]
    if first.method == "turnbull":
        head, text = _half(answers)
        return Verdict(head.capitalize(), f"— {whose}: {text}.")
    n = group.panel.n_series
    error = "its error" if n == 1 else f"the error (root mean square over {n:,} series)"
    if _endless(first):
        head = "Not yet doubled"
        text = f"— {whose}: at every recorded release {error} is below twice its value at "
        text += f"calibration. The {100 * half_lives.level:g} % interval of the half-life starts "
        text += f"at {_least(answers)}."
    else:
        head = _or([_with_interval(answer) for answer in answers])
        text = f"— {whose}: the time until {error} has doubled{_at(group, first)}."
    half = [group.estimate("turnbull", clock) for clock in half_lives.clocks] if n > 1 else []
    medians = [fit for fit in half if fit is not None and fit.half_life is not None]
    if medians:
        because = ", because " if _endless(medians[0]) else ", "
        text += f" Median survival: {because.join(_half(medians))}."
    by_steps = [group.estimate("steps", clock) for clock in half_lives.clocks] if n > 1 else []
    known = [fit for fit in by_steps if fit and fit.half_life and math.isfinite(fit.half_life)]
    if known:
        text += f" Median survival by steps: {_or([_with_interval(fit) for fit in known])}."
    return Verdict(head, text)


def _at(group: GroupHalfLife, fit: HalfLife) -> str:
    """Name the release if all series were calibrated at one release and the history is known."""
    panel = group.panel
    if not isinstance(panel, Panel) or fit.unit != "releases" or fit.half_life is None:
        return ""
    first = set(panel.version[panel.starts[:-1]].tolist())
    if len(first) > 1:
        return ""
    start = first.pop()
    doubled = panel.versions[start + int(fit.half_life)]
    return f" (calibrated at {panel.versions[start]}, doubled at {doubled})"


def _half(answers: Sequence[HalfLife]) -> tuple[str, str]:
    """Say when half of the series have expired, or that fewer than half have."""
    censored = f"({100 * answers[0].censored_share:.0f} % are possibly still valid)"
    if _endless(answers[0]):
        return (
            f"more than {_least(answers)}",
            f"fewer than half of the series have expired so far {censored}",
        )
    when = _or([_with_interval(answer) for answer in answers])
    return when, f"the time until half of the series have expired {censored}"


def _endless(fit: HalfLife) -> bool:
    return fit.half_life is not None and math.isinf(fit.half_life)


def _least(answers: Sequence[HalfLife]) -> str:
    return _or([timed(answer.low or 0.0, answer.unit) for answer in answers])


def _with_interval(fit: HalfLife) -> str:
    """Write a half-life with its unit before its interval."""
    return _parts(fit)._replace(number=timed(fit.half_life or 0.0, fit.unit)).text


def _or(texts: Sequence[str]) -> str:
    return " or ".join(texts)


def _tables(half_lives: HalfLives) -> list[Table]:
    """Return half-lives by group, the distributions of a single group, and steps by release."""
    tables = [_half_lives(half_lives, clock) for clock in half_lives.clocks]
    if len(half_lives.groups) == 1:
        tables += _methods(half_lives.groups[0])
    tables.append(steps_table(half_lives))
    if half_lives.environment:
        tables.append(_environment(half_lives))
    return tables


def answers_of(group: GroupHalfLife, clocks: Sequence[Clock]) -> list[HalfLife]:
    """Return the half-lives to report for a group: on each clock, by the first method that answers.

    The first choice is the time until the error has doubled. With too few series for that, it is
    the time until half of the series have expired.
    """
    methods = ("expiry",) if group.panel.n_series == 1 else ("trajectory", "turnbull")
    for method in methods:
        fits = [group.estimate(method, clock) for clock in clocks]
        answers = [fit for fit in fits if fit is not None and fit.half_life is not None]
        if answers:
            return answers
    return []


def written(fit: HalfLife | None) -> str:
    """Write a half-life with its interval."""
    return "–" if fit is None else _parts(fit).text


def _parts(fit: HalfLife) -> Written:
    if fit.refused or fit.half_life is None or fit.low is None or fit.high is None:
        return Written("cannot be determined")
    if math.isinf(fit.half_life):
        return Written(f"> {number(fit.low)}")
    high = "∞" if math.isinf(fit.high) else number(fit.high)
    return Written(number(fit.half_life), "", number(fit.low), high)


def _half_life(fit: HalfLife | None) -> Cell:
    """Return the cell of a half-life; an endless one is sorted by the start of its interval."""
    if fit is None:
        return Cell(written(fit))
    value = fit.low if fit.half_life == math.inf else fit.half_life
    return forms.figure(_parts(fit), math.nan if value is None else value)


def label_of(group: GroupHalfLife) -> str:
    """Return the name of a group: the values of its keys."""
    return ", ".join(str(value) or "–" for value in group.key.values()) or "all"


def _half_lives(half_lives: HalfLives, clock: Clock) -> Table:
    single = all(group.panel.n_series == 1 for group in half_lives.groups)
    columns = [
        Column(" / ".join(half_lives.by) or "Group", label_of, key=True),
        Column("Series", lambda group: group.panel.n_series, forms.count),
        Column("Error at calibration", lambda group: group.threshold, _THRESHOLD),
        *(
            Column(_HEADERS[name], partial(_shown, name, clock), forms.words_or(HALF_LIFE))
            for name in (_ONE if single else _MANY)
        ),
    ]
    # Beside the half-life that counts the series.
    counted, at = ("expiry", 4) if single else ("turnbull", 5)
    unexpired = partial(_unexpired, counted, clock)
    columns.insert(at, Column("Possibly still valid", unexpired, forms.share))
    title = (
        f"Half-life in {clock} of {half_lives.source or 'the history'}: the time until the error "
    )
    title += "of a model calibrated at the first version has doubled"
    notes = _notes(half_lives) if clock == half_lives.clocks[-1] else ()
    return Table(title, columns, half_lives.groups, notes)


def _shown(method: str, clock: Clock, group: GroupHalfLife) -> HalfLife | str | None:
    """Return a half-life of a group, or how many of its series expired if that is too few."""
    alone = group.estimate("expiry", clock)
    # For a single series, the RMS error and the median survival are those of the series itself.
    if alone is not None and method in _OF_ALL:
        return alone
    if method == "turnbull" and _too_few(group, clock):
        return _counted(group, clock)
    return group.estimate(method, clock)


def _unexpired(method: str, clock: Clock, group: GroupHalfLife) -> float | None:
    """Return the share of the series that have not clearly expired."""
    fits = [group.estimate("expiry", clock), group.estimate(method, clock)]
    return next((fit.censored_share for fit in fits if fit and not fit.refused), None)


def _too_few(group: GroupHalfLife, clock: Clock) -> bool:
    """Say whether some of several series expired, but too few for an interval."""
    half = group.estimate("turnbull", clock)
    return half is not None and bool(half.refused) and clock in group.expiry


def _counted(group: GroupHalfLife, clock: Clock) -> str:
    """Say how many have clearly expired, and when, if that is too few for an interval."""
    expiry = group.expiry[clock]
    when = expiry.right[np.isfinite(expiry.right)]
    text = f"{len(when)} of {expiry.n}"
    if not len(when):
        return text
    ends = dict.fromkeys((number(when.min()), number(when.max())))
    return f"{text}, after {' to '.join(ends)}"


def _threshold(threshold: Threshold) -> Cell:
    """Return the cell of an error at calibration, marked if it was not measured."""
    cell = forms.percent.write(math.expm1(threshold.error))
    mark = {"given": " (given)", "assumed": " (assumed)"}.get(threshold.source)
    return Cell(cell.text + mark, cell.value) if mark else cell


#: A `HalfLife` with its interval.
HALF_LIFE = Form(_half_life, right=True)
_THRESHOLD = Form(_threshold, right=True)


def _notes(half_lives: HalfLives) -> list[Note | str]:
    level = f"{100 * half_lives.level:g} %"
    notes: list[Note | str] = [
        f"[low, high]: {level} interval. > 12: the half-life is beyond the end of the record; its "
        "interval starts at 12."
    ]
    if any(group.panel.n_series > 1 for group in half_lives.groups):
        notes.append(
            "RMS error doubled: time until the root mean square error over all series has doubled; "
            "a few series with large errors can be enough. Median survival: time until half of the "
            "series have expired, that is, until their measured error exceeds twice the error at "
            "calibration. Possibly still valid: share of series that never clearly exceeded that "
            f"limit (at a confidence of {level})."
        )
    if any(fit.method == "steps" and not fit.refused for group in half_lives.groups
           for fit in group.estimates):  # fmt: skip
        notes.append(
            "Median survival by steps: median survival if errors had no noise, computed from the "
            "rate and the sizes of the steps of all series; changes too small to be found are "
            "ignored."
        )
    if any(_too_few(group, half_lives.clocks[0]) for group in half_lives.groups):
        notes.append(
            "'3 of 8, after 2 to 5' means that 3 of 8 series have clearly expired, after 2 to 5 "
            "releases or months; this is too few for an interval."
        )
    notes.append(
        "Doubled if drift continues: time until the error of a model calibrated at any release has "
        "doubled, if errors keep drifting at their average rate."
    )
    notes.append(
        f"{len(half_lives.versions)} versions, {half_lives.versions[0]} to "
        f"{half_lives.versions[-1]}, ordered {_ordered(half_lives)}."
    )
    if any(group.threshold.source == "measured" for group in half_lives.groups):
        notes.append(
            "Error at calibration: RMS error over the series at their first version, minus "
            "measurement noise where the noise is known."
        )
    noise = half_lives.noise
    if math.isfinite(noise.sd):
        notes.append(
            "Noise of one validation (scatter of repeated measurements of one version): "
            f"{format_fraction(noise.sd)} (median series)."
        )
    refusals: dict[tuple[str, str], list[str]] = {}
    for group in half_lives.groups:
        for text in group.notes:
            refusals.setdefault(("", text), []).append(label_of(group))
        for fit in group.estimates:
            if fit.refused and fit.method in (*_MANY, *_ONE) and fit.unit == half_lives.clocks[0]:
                of = (f"no estimate of '{_HEADERS[fit.method]}'", fit.refused)
                refusals.setdefault(of, []).append(label_of(group))
    several = len(half_lives.groups) > 1
    for (what, text), groups in refusals.items():
        shown = ", ".join(groups[:3]) + (f" and {len(groups) - 3} more" if len(groups) > 3 else "")
        of_whom = " for ".join(filter(None, (what, shown if several else "")))
        notes.append(item(f"{of_whom}: {text}" if of_whom else text))
    notes += map(item, half_lives.notes)
    notes += [item(f"{count(d.n, 'validation')} left out: {d.reason}") for d in half_lives.dropped]
    return notes


def _methods(group: GroupHalfLife) -> list[Table]:
    """Compare the parametric distributions if there is a single group."""
    rows = [fit for fit in group.estimates if fit.method in _LAWS and not fit.refused]
    if not rows:
        return []
    columns = [
        Column("Distribution", lambda row: row.method, key=True),
        Column("Clock", lambda row: row.unit),
        Column("Median survival", lambda row: row, HALF_LIFE),
        Column("Held-out log score", lambda row: row.details.get("held_out_score"), forms.fixed(2)),
    ]
    notes = [
        "Held-out log score: mean log-likelihood of series that the distribution was not fitted "
        "to. Higher is better."
    ]
    return [Table("Median survival if the times follow a distribution", columns, rows, notes)]


def steps_table(half_lives: HalfLives) -> Table:
    """Return the steps of each group at each release, the largest first."""
    rows = [(group, step) for group in half_lives.groups for step in group.steps]
    rows.sort(key=lambda row: abs(math.log1p(row[1].change)) * row[1].n_series ** 0.5, reverse=True)
    shown = rows[:_STEPS_SHOWN]
    columns = [
        Column("From version", lambda row: row[1].version, key=True),
        *_group_column(half_lives),
        Column("Series with a step", lambda row: f"{row[1].n_series} of {row[1].n_looked_at}"),
        Column("Predicted / measured", lambda row: row[1].change, forms.change),
        # The name of a series may be as long as a line.
        Column("Largest", lambda row: row[1].largest_change, forms.change, on="text"),
        Column("Largest", lambda row: _largest(row[1]), on="page"),
    ]
    if any(step.stack for _, step in shown):
        columns.append(Column("Also changed", lambda row: ", ".join(row[1].stack or ()) or "–"))
    what = (
        "A step is a lasting change of the error from one version to the next. The search raises "
        f"false alarms in {100 * half_lives.alpha:g} % of series without a step."
    )
    notes: list[Note | str] = [
        f"{what} Predicted / measured: median change of this ratio over the series with a step. If "
        "it is above 0, measured values fell (times became shorter) or predictions rose. Sorted by "
        "|log change| times the square root of the number of series.",
        Note("--json names the series of the largest steps.", on="text"),
    ]
    searched = [steps for group in half_lives.groups for steps in group.series_steps]
    if all(steps.refused for steps in searched):
        notes = [f"No series could be searched for steps: {searched[0].refused}."]
    elif not rows:
        notes = [f"No step was found in any series. {what}"]
    if len(rows) > len(shown):
        notes.append(f"{len(rows) - len(shown)} smaller steps are not shown; --json lists all.")
    return Table("Steps: which release, how many series, how large", columns, shown, notes)


def _largest(step: ReleaseStep) -> str:
    return f"{step.largest} ({format_change(step.largest_change)})"


def _group_column(half_lives: HalfLives) -> Sequence[Column]:
    if len(half_lives.groups) == 1:
        return ()
    return (Column(" / ".join(half_lives.by), lambda row: label_of(row[0])),)


def _environment(half_lives: HalfLives) -> Table:
    rows = sorted(half_lives.environment, key=lambda row: abs(row.step.size), reverse=True)
    shown = rows[:_STEPS_SHOWN]
    columns = [
        Column("Series", lambda row: row.series, key=True),
        Column("Between", lambda row: f"{row.since[:10]} and {row.until[:10]}"),
        Column("Predicted / measured", lambda row: row.step.change[0], forms.change),
        Column("Attributed to", lambda row: _CAUSES.get(row.verdict, row.verdict)),
        Column("Reason", lambda row: row.reason),
    ]
    notes = [
        "Environment: everything that has no version in the table (machine, settings, drivers)."
    ]
    if len(rows) > len(shown):
        notes.append(f"{len(rows) - len(shown)} smaller steps are not shown; --json lists all.")
    title = "Steps by date of validation: caused by software or environment?"
    return Table(title, columns, shown, notes)
