"""Sections about half-lives, forecasts and checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from errcomp.report.page import Section, Verdict, grid_of
from errcomp.report.page._parts import Tone
from errcomp.report.sections._common import Drawing, pictures
from errcomp.report.tables.check import check_tables
from errcomp.report.tables.forecast import forecast_tables
from errcomp.report.tables.halflife import answers_of, fit_tables, label_of, timed, written
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from errcomp.halflife.forecast import GroupOutlook, Outlook
    from errcomp.halflife.gate.checking import Checked
    from errcomp.halflife.panel import HalfLife
    from errcomp.halflife.results import GroupHalfLife, HalfLives

__all__ = ["check_section", "forecast_section", "half_lives_section"]

#: Groups of which each is drawn.
_DRAWN = 6
_TOO_FEW = "too few series expired."
_OUTCOMES: dict[str, Tone] = {"pass": "good", "regression": "bad"}


def half_lives_section(found: HalfLives) -> Section:
    """Return the section of half-lives by group."""
    drawn, notes = pictures(_drawings(found))
    return Section(
        title=f"Until which release does it hold? {found.source or 'The history given'}",
        verdicts=[_of_group(found, group) for group in found.groups],
        pictures=drawn,
        grids=[grid_of(table) for table in fit_tables(found)],
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
        notes=notes,
    )  # fmt: skip


def _drawings(found: HalfLives) -> list[Drawing]:
    from errcomp.report import halflife_figures as draw

    if len(found.groups) > 1:
        caption = "Which groups moved at which release."
        return [("heat", caption, partial(draw.draw_releases_heat, found, note=found.source))]
    captions = {
        "errors": "The error of the frozen model, release by release; steps are marked.",
        "survival": "The share of the series whose error has not doubled, at face value.",
        "variogram": "How far errors drift apart with the releases between them.",
    }
    return [(name, text, partial(draw.draw, found, name)) for name, text in captions.items()]


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
    from errcomp.halflife.panel import Panel

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
    _, bracket, interval = written(one).partition(" [")
    return f"{timed(one.half_life or 0.0, one.unit)}{bracket}{interval}"


def _or(texts: Sequence[str]) -> str:
    return " or ".join(texts)


def forecast_section(found: Outlook) -> Section:
    """Return the section of a forecast."""
    from errcomp.report import result_figures

    caption = "How likely the error of a series is within the promise, from now on."
    drawn, notes = pictures([("forecast", caption, partial(result_figures.forecast, found))])
    return Section(
        title=f"Does the promise hold tomorrow? {found.source or 'The history given'}",
        verdicts=[_tomorrow(found, group) for group in found.groups],
        pictures=drawn,
        notes=notes,
        grids=[grid_of(table) for table in forecast_tables(found)],
        method=[("Coverage of the intervals", f"{100 * found.level:g} %"),
                ("Seed", str(found.seed))],
    )  # fmt: skip


def _tomorrow(found: Outlook, group: GroupOutlook) -> Verdict:
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


def check_section(found: Checked) -> Section:
    """Return the section of a check of new validations."""
    result = found.result
    counts = {name: n for name, n in result.counts().items() if n}
    return Section(
        title=f"Is it still valid at {result.version}?",
        verdicts=[
            Verdict(
                result.outcome.capitalize(),
                f"— {_listed([f'{n} series {name}' for name, n in counts.items()])}.",
                _OUTCOMES.get(result.outcome, "doubt"),
            )
        ],
        grids=[grid_of(table) for table in check_tables(found)],
        method=[
            ("Look", str(result.look)),
            ("Level of this look", f"{result.level:.3g} of {result.alpha:g} over all looks"),
            ("Margin", "none" if math.isnan(result.margin) else f"{result.margin:g} (log scale)"),
        ],
        notes=list(found.notes),
    )


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts) or "no series"
