"""Report of choices of every kind."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Figure, Report, Table, key_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.decisions.kinds import DecisionKinds, Kind


def kinds_view(found: DecisionKinds) -> Report:
    """Return the report: a row for each kind."""
    title = "Choices" + (f" by {found.tool}" if found.tool else "")
    columns = [
        Column("Between", lambda row: key_text(row.between), key=True),
        Column("n", lambda row: row.n, forms.count),
        Column("Right [95 %]", lambda row: row.right, forms.estimate),
        Column("9 in 10 from [95 %]", _needed, forms.interval(0, scale=100, unit=" %")),
        Column("Choices", lambda row: row.choices, forms.count),
        Column("Took the best", lambda row: row.best.value, forms.percent),
        Column("Mean regret [95 %]", lambda row: row.regret, forms.estimate),
        Column("Largest", lambda row: row.regret_max, forms.percent),
    ]
    per = [row.per for row in found.rows if row.per]
    notes = [
        "Right: share of comparisons of two alternatives in which the one predicted to be faster "
        "was faster. 9 in 10 from: smallest predicted difference whose order is right 9 times in "
        "10.",
        "Regret: measured time of the chosen alternative / measured time of the best, minus 1.",
        *[f"{name}: times are divided by it." for name in per],
        f"Details of one kind: errcomp compare … --evaluate --between {found.rows[0].between}",
    ]
    draw = partial(shares, found)
    return Report(
        title=title,
        line=[f"{row.between} {100 * row.right.value:.0f} % right" for row in found.rows],
        tables=[Table(title, columns, found.rows, notes)],
        figures=[Figure("figure", "Share of comparisons that were right, by kind.", draw)],
        draw=draw,
    )


def _needed(row: Kind) -> tuple[float, float, float] | None:
    """Return the difference that is right 9 times in 10 and its interval, if there is one."""
    return None if math.isinf(row.needed) else (row.needed, row.needed_low, row.needed_high)


def shares(found: DecisionKinds, ax: Axes | None = None) -> Axes:
    """Draw the share of right comparisons of each kind."""
    from errcomp.report.drawing.forest import Row, forest

    rows = []
    for row in found.rows:
        right = row.right
        low, high = (None if end is None else 100 * end for end in (right.low, right.high))
        rows.append(Row(row.between, 100 * right.value, low, high, right.format(), row.n))
    return forest(
        ax,
        rows,
        title="How often is the predicted faster one the faster?",
        notes=["95 % interval"],
        x="comparisons that are right (%)",
        beside="right",
        reference=(50.0, "chance"),
    )
