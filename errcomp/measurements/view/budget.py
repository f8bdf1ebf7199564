"""Report of an error budget: what each cause adds to the MAPE, the largest first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Figure, Report, Table, Verdict
from errcomp.results import Estimate, format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.measurements.results import BudgetPart, ErrorBudget

_TITLE = "Error budget"


def budget_view(found: ErrorBudget) -> Report:
    """Return the report of a budget."""
    draw = partial(bars, found)
    caption = "What each cause adds to the MAPE, with its interval."
    return Report(
        title=_TITLE,
        line=[f"MAPE {format_fraction(found.mape)}", *_largest_part(found), f"n={found.n:,}"],
        verdicts=[_verdict(found)],
        tables=[_table(found)],
        figures=[Figure("budget", caption, draw)],
        method=[
            ("Shares", "Shapley values of the parts of log(predicted / measured)"),
            ("Intervals", f"{100 * found.level:g} %, from drawing whole models or configurations"),
            ("Seed", str(found.seed)),
        ],
        draw=draw,
    )


def _largest_part(found: ErrorBudget) -> list[str]:
    return [found.largest] if found.largest is not None else []


def _verdict(found: ErrorBudget) -> Verdict:
    first, *others = found.parts
    if found.largest is not None or not others:
        text = f"{first.meaning}; this adds {_points(first)} to the MAPE"
        return Verdict(f"Largest cause: {first.cause}", text, "plain")
    text = f"{first.cause} ({_points(first)}) or {others[0].cause} ({_points(others[0])})"
    return Verdict("The largest cause cannot be determined", text, "doubt")


def _points(part: BudgetPart) -> str:
    return f"{100 * part.added:.2g} points"


def _estimate(found: ErrorBudget, part: BudgetPart) -> Estimate:
    return Estimate("added", part.added, part.low, part.high, found.level, n=found.n)


def _table(found: ErrorBudget) -> Table:
    columns = [
        Column("Cause", lambda row: row.cause, key=True),
        Column(f"Adds [{100 * found.level:g} %]", partial(_estimate, found), forms.estimate),
        Column("Share", lambda row: row.added / found.mape if found.mape else None, forms.share),
        Column("What it is", lambda row: row.meaning),
    ]
    of = f" of {found.tool}" if found.tool else ""
    title = f"{_TITLE}{of}: {found.source or 'the given table'}"
    lead = f"MAPE {format_fraction(found.mape)} of {found.n:,} pairs."
    return Table(title, columns, found.parts, _notes(found), lead=lead)


def _notes(found: ErrorBudget) -> list[str]:
    notes = []
    if found.largest is None and len(found.parts) > 1:
        first, second = (part.cause for part in found.parts[:2])
        notes.append(
            f"Whether '{first}' or '{second}' adds more to the MAPE cannot be determined: "
            f"'{first}' is the largest cause in {100 * found.sure:.0f} % of resampled tables."
        )
    notes.append(
        "The same errors by other averages: "
        + ", ".join(
            f"{name} {format_fraction(error)}"
            for name, error in found.averages.items()
            if name != "mean"
        )
        + "."
    )
    notes += [f"Not attributed: {one.cause} ({one.why})." for one in found.not_looked_for]
    if found.left_out:
        notes.append(
            f"{found.left_out:,} pairs left out: a prediction, or a sum of kernels, is missing or "
            "not above 0."
        )
    return notes


def bars(found: ErrorBudget, ax: Axes | None = None) -> Axes:
    """Draw what each cause adds, with its interval."""
    from errcomp.report.drawing import style as _style

    ax = _style.canvas(ax, 1.4 + 0.45 * len(found.parts))
    parts = found.parts[::-1]
    for y, part in enumerate(parts):
        ax.barh(y, 100 * part.added, height=0.6, color=_style.BLUE, alpha=0.75, zorder=2)
        ends = [100 * part.low, 100 * part.high]
        ax.plot(ends, [y, y], color=_style.INK, lw=1.4, zorder=3)
    ax.set_yticks(range(len(parts)), [part.cause for part in parts])
    ax.axvline(0, color=_style.INK, lw=0.8)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="adds to the MAPE (percentage points)", y="")
    _style.heading(ax, f"Where the MAPE of {format_fraction(found.mape)} comes from", [])
    return ax
