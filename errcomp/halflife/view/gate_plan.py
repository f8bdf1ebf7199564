"""Report of how many repeats a look at the gate needs."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Column, Figure, Note, Report, Table, Verdict, item
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.gate.planning import GatePlan

__all__ = ["chances", "plan_view"]


def plan_view(plan: GatePlan) -> Report:
    """Return a row for each number of repeats that was tried."""
    change = _change(plan)
    where = "a series" if plan.series == 1 else f"one of {count(plan.series, 'series')}"
    columns = [
        Column("Repeats", lambda row: row.repeats, forms.count, key=True),
        Column("Noise", lambda row: row.noise, forms.percent),
        Column("At once", lambda row: row.at_once, forms.percent),
        Column(f"Within {count(plan.within, 'look')}", lambda row: row.within, forms.percent),
    ]
    notes: list[Note | str] = [
        _answer(plan),
        f"Chance that `errcomp halflife check` reports a change of {change} that occurs in {where} "
        f"after the first {plan.looks} looks (validations). Simulated with normally distributed "
        f"noise: {format_fraction(plan.noise)} between repeats of a look, which averages out, and "
        f"{_between(plan)}. The column Noise is the standard deviation of the mean of the repeats.",
        *(item(text) for text in plan.notes),
    ]
    title = f"Repeats that find a change of {change}"
    draw = partial(chances, plan)
    return Report(
        title=title,
        line=[
            f"{change} in {count(plan.series, 'series')}",
            count(plan.repeats, "repeat") if plan.repeats else "more than 20 repeats",
        ],
        verdicts=[_verdict(plan)],
        tables=[Table(title, columns, plan.rows, notes)],
        method=[
            ("False alarms", f"{100 * plan.alpha:g} % over the first 1,000 looks"),
            ("Seed", str(plan.seed)),
        ],
        figures=[Figure("chances", "Chance that the gate reports the change, by repeats.", draw)],
        draw=draw,
    )


def _change(plan: GatePlan) -> str:
    return f"{100 * math.expm1(plan.change):.3g} %"


def _between(plan: GatePlan) -> str:
    if not plan.between:
        return "none between looks"
    return f"{format_fraction(plan.between)} between looks, which does not"


def _verdict(plan: GatePlan) -> Verdict:
    if plan.repeats is None:
        return Verdict("More than 20 repeats", _why_not(plan), "doubt")
    return Verdict(count(plan.repeats, "repeat"), _reached(plan), "good")


def _answer(plan: GatePlan) -> str:
    verdict = _verdict(plan)
    return f"{verdict.head.upper()} {verdict.text}"


def _reached(plan: GatePlan) -> str:
    row = next(row for row in plan.rows if row.repeats == plan.repeats)
    find = "finds" if plan.repeats == 1 else "find"
    return (
        f"of each series at each look (validation of a version) {find} a change of {_change(plan)} "
        f"within {count(plan.within, 'look')} in {100 * row.within:.0f} % of cases."
    )


def _why_not(plan: GatePlan) -> str:
    text = (
        f"would be needed to find a change of {_change(plan)} within "
        f"{count(plan.within, 'look')} in {100 * plan.power:g} % of cases."
    )
    if plan.between**2 > plan.noise**2 / 20:
        return (
            f"{text} Most noise is between looks: spread the repeats over days or machines, or "
            "wait more looks."
        )
    return f"{text} Wait more looks, or make single runs less noisy."


def chances(plan: GatePlan, ax: Axes | None = None) -> Axes:
    """Draw the chance to find the change, by number of repeats.

    Parameters
    ----------
    plan : GatePlan
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    """
    from matplotlib.ticker import MaxNLocator

    from errcomp.report.drawing import style
    from errcomp.report.drawing.hover import tell

    x = [float(row.repeats) for row in plan.rows]
    lines = (
        ("at once", [100 * row.at_once for row in plan.rows]),
        (f"within {count(plan.within, 'look')}", [100 * row.within for row in plan.rows]),
    )
    ax = style.canvas(ax, 3.2)
    tints = style.colours([name for name, _ in lines])
    for (name, y), tint, mark in zip(
        lines, tints, style.markers([n for n, _ in lines]), strict=True
    ):
        ax.plot(x, y, marker=mark, color=tint, lw=1.4, ms=5)
        tell(ax, x, y, [f"{k:.0f} repeats, {name}: {at:.0f} %" for k, at in zip(x, y, strict=True)])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(-2, 102)
    ax.grid(axis="y", color=style.GRID)
    style.name_axes(ax, x="repeats at each look", y="changes found (%)")
    style.side_labels(ax, [x[-1]] * 2, [y[-1] for _, y in lines], [n for n, _ in lines], tints)
    style.heading(
        ax,
        f"Repeats that find a change of {_change(plan)}",
        [f"one of {count(plan.series, 'series')}, after {plan.looks} looks"],
    )
    return ax
