"""The report of a history that was gone through as the gate would have."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing import style
from errcomp.report.drawing.hover import tell
from errcomp.report.drawing.words import count
from errcomp.report.model import Column, Figure, Note, Report, Table, Verdict, item
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.gate.dry_run import DryRun, KnownStep, Rate
    from errcomp.halflife.steps.stability import ReportedStep

__all__ = ["delays", "dry_run_view"]

#: Rows of the tables; the document has all.
_SHOWN = 20
_SOON = 5
#: Steps below this p-value are rarely withdrawn.
_CLEAR = 0.005
#: Those of errcomp.halflife.steps.stability.
_REASONS = ("later values came back", "found at another version", "less evidence")


def dry_run_view(done: DryRun) -> Report:
    """Return how often the gate fires, on what, and how soon it finds each step."""
    return Report(
        title="What would the gate have done?",
        line=[
            count(done.n_series, "series"),
            count(len(done.versions), "version"),
            f"{done.versions[0]} to {done.versions[-1]}",
        ],
        verdicts=[_quiet(done), _finds(done)],
        tables=[_rates(done), _alarms(done), _steps(done), *_stability(done)],
        method=[
            ("Promise", f"{100 * done.alpha:g} % over the first 1,000 checks"),
            ("Margin", format_fraction(math.expm1(done.margin)) if done.margin else "none"),
        ],
        notes=list(done.notes),
        figures=[
            Figure(
                "delays",
                "Steps that the gate has found, by the validations of the series since the step.",
                partial(delays, done),
            )
        ]
        if done.steps
        else [],
        draw=partial(delays, done),
    )


def _quiet(done: DryRun) -> Verdict:
    """Compare false alarms with the promise."""
    rate = done.rates[-1]
    if not rate.looks:
        return Verdict("Cannot tell yet", "— too few validations to know the noise.", "doubt")
    text = (
        f"— in random order and without its steps, {rate.fired} of {count(rate.gates, 'gate')} "
        f"raised an alarm; the promise is {100 * done.promised:.2g} % of gates."
    )
    # Orders of the same values are alike, so chance alone gives no more than this, or fewer.
    if rate.fired == 0 or bdtr(rate.fired - 1, rate.gates, done.promised) < 0.99:
        return Verdict("Few false alarms", text, "good")
    return Verdict(
        "More false alarms than promised",
        f"{text} A margin (--margin) leaves out small shifts.",
        "bad",
    )


def _finds(done: DryRun) -> Verdict:
    if not done.steps:
        return Verdict("No steps to find", "— the errors have no step upwards.", "doubt")
    found = [step for step in done.steps if step.delay]
    soon = sum(step.delay <= _SOON for step in found)
    those = "all" if soon == len(found) else f"{soon}"
    text = (
        f"— {those} of them within {_SOON} validations. The others are found only by the search "
        "over the whole history, which sees what came after."
    )
    return Verdict(f"{len(found)} of {count(len(done.steps), 'step')} found", text, "plain")


def _rates(done: DryRun) -> Table:
    def share(n: int, rate: Rate) -> float:
        return 1000 * n / rate.looks if rate.looks else math.nan

    columns = [
        Column("Versions", lambda rate: rate.order, key=True),
        Column("Gates", lambda rate: rate.gates, forms.count),
        Column("With an alarm", lambda rate: rate.fired, forms.count),
        Column("Looks", lambda rate: rate.looks, forms.count),
        Column("Alarms per 1,000 looks", lambda rate: share(rate.alarms, rate), _PER_1000),
        Column("Repeats per 1,000 looks", lambda rate: share(rate.repeats, rate), _PER_1000),
    ]
    notes: list[Note | str] = [
        # A page has them above.
        *(
            Note(f"{one.head.upper()} {one.text}", on="text")
            for one in (_quiet(done), _finds(done))
        ),
        "A look is a version at which something can be tested; an alarm is a look at which the "
        "error of a series has grown. In random order there is nothing to find but steps that "
        "stayed in, so alarms are false.",
    ]
    return Table("How often the gate fires", columns, list(done.rates), notes)


_PER_1000 = forms.words_or(forms.fixed(1))


def _alarms(done: DryRun) -> Table:
    columns = [
        Column("Reported at", lambda alarm: alarm.version, key=True),
        Column("Series", lambda alarm: alarm.series, key=True),
        Column("Since", lambda alarm: alarm.first_version),
        Column("Shift", lambda alarm: math.expm1(alarm.shift), forms.change),
        Column("p", lambda alarm: alarm.p, forms.p_value),
        Column("Step there", lambda alarm: "yes" if alarm.step else "no"),
    ]
    rows = sorted(done.alarms, key=lambda alarm: -abs(alarm.shift))[:_SHOWN]
    rows.sort(key=lambda alarm: done.versions.index(alarm.version))
    without = sum(not alarm.step for alarm in done.alarms)
    notes: list[Note | str] = [
        f"{count(len(done.alarms), 'series alarm')}; for {without} of them the search over the "
        "whole history finds no step there.",
    ]
    if len(done.alarms) > len(rows):
        notes.append(f"The {len(rows)} largest are shown; --json lists all.")
    return Table("On what", columns, rows, notes)


def _steps(done: DryRun) -> Table:
    def found(step: KnownStep) -> str:
        return step.found_at or "never"

    columns = [
        Column("Step at", lambda step: step.version, key=True),
        Column("Series", lambda step: step.series, key=True),
        Column("Size", lambda step: math.expm1(step.size), forms.change),
        Column("Found at", found),
        Column("After validations", lambda step: step.delay or None, forms.count),
    ]
    rows = sorted(done.steps, key=lambda step: -abs(step.size))[:_SHOWN]
    rows.sort(key=lambda step: done.versions.index(step.version))
    notes: list[Note | str] = []
    if len(done.steps) > len(rows):
        notes.append(f"The {len(rows)} largest of {len(done.steps)} are shown; --json lists all.")
    notes += [item(text) for text in done.notes]
    return Table("How soon each step is found", columns, rows, notes)


def _stability(done: DryRun) -> list[Table]:
    """Count the steps of `errcomp halflife fit` that later versions took back."""
    if not done.reported:
        return []
    clear = [step for step in done.reported if step.p <= _CLEAR]
    others = [step for step in done.reported if step.p > _CLEAR]

    def withdrawn(row: tuple[str, list[ReportedStep]], reason: str) -> int:
        return sum(step.reason == reason for step in row[1])

    columns = [
        Column("p when reported", lambda row: row[0], key=True),
        Column("Steps", lambda row: len(row[1]), forms.count),
        Column("Stayed", lambda row: withdrawn(row, ""), forms.count),
        *(
            Column(f"Withdrawn: {reason}", partial(withdrawn, reason=reason), forms.count)
            for reason in _REASONS
        ),
    ]
    rows = [(f"at most {_CLEAR:g}", clear), (f"above {_CLEAR:g}", others)]
    notes: list[Note | str] = [
        "The steps of errcomp halflife fit, in both directions, if it had been run after every "
        "version. Each run looks at the whole history again, so later versions may take a step "
        "back.",
    ]
    return [Table("Do steps stay once later versions are known?", columns, rows, notes)]


def delays(done: DryRun, ax: Axes | None = None) -> Axes:
    """Draw the share of steps that the gate has found, by validations since the step.

    Parameters
    ----------
    done : DryRun
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        The history has no step.
    MissingExtraError
        Matplotlib is not installed.
    """
    from matplotlib.ticker import MaxNLocator

    if not done.steps:
        raise InputError(
            "nothing to draw: the figure shows how late steps are found, and the history has no "
            "step."
        )
    taken = np.array([step.delay for step in done.steps])
    at = np.arange(1.0, max(int(taken.max()), _SOON) + 1)
    share = np.array([100 * np.mean((taken > 0) & (taken <= k)) for k in at])
    ax = style.canvas(ax, 3.2)
    ax.plot(at, share, drawstyle="steps-post", marker="o", color=style.INK, lw=1.4, ms=4)
    tell(
        ax,
        at,
        share,
        [
            f"within {count(int(k), 'validation')}: {y:.0f} %"
            for k, y in zip(at, share, strict=True)
        ],
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(-2, 102)
    ax.grid(axis="y", color=style.GRID)
    style.name_axes(ax, x="validations since the step", y="steps found (%)")
    never = int((taken == 0).sum())
    notes = ["1: the first validation after the step"]
    if never:
        notes.append(f"not found before the next step: {count(never, 'step')}")
    style.heading(ax, f"How soon does the gate find steps? n={count(len(taken), 'step')}", notes)
    return ax
