"""Report of runs that may not be trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from errcomp.calibration.view.model import counted
from errcomp.report.model import Column, Figure, Note, Report, Table, item

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.plausibility import Plausibility


def plausibility_view(
    result: Plausibility, meanings: Mapping[str, str], firm: Collection[str]
) -> Report:
    """Return a row for each run and rule; `meanings` describes the rules, `firm` names some."""
    columns = [
        Column("Run", lambda row: row.run, key=True),
        Column("Rule", lambda row: row.rule, key=True),
        Column("Evidence", lambda row: row.evidence),
    ]
    used = dict.fromkeys(row.rule for row in result.rows)
    left = len({row.run for row in result.rows if row.rule in firm})
    notes: list[Note | str] = [
        f"{result.flagged:,} of {counted(result.runs, 'run')} flagged. "
        + (
            f"Fits leave out {left:,} of them, with firm evidence. The rules look at kernels and "
            "at phases, not at the time of the run. A flagged run may be right: look at its "
            "measurement."
            if result.flagged
            else "The rules look at kernels and at phases, not at the time of the run."
        ),
        *(
            item(f"{name}: {meanings[name]} ({'firm evidence' if name in firm else 'a hint'}).")
            for name in used
        ),
        *(item(f"rule {one.rule} was not checked: {one.reason}.") for one in result.not_checked),
    ]
    title = "Runs that may not be trusted"
    line = [f"{result.flagged:,} of {counted(result.runs, 'run')} flagged"]
    draw = partial(flagged, result, tuple(meanings))
    return Report(
        title=title,
        line=line,
        tables=[Table(title, columns, result.rows, notes)],
        figures=[Figure("figure", "Flagged runs by rule.", draw)],
        draw=draw,
    )


def flagged(result: Plausibility, rules: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw the number of flagged runs of each rule."""
    from errcomp.report.drawing.forest import Row, forest

    reasons = {one.rule for one in result.not_checked}
    rows = []
    for rule in rules:
        n = sum(row.rule == rule for row in result.rows)
        text = "not checked" if rule in reasons else str(n)
        rows.append(Row(rule, math.nan if rule in reasons else float(n), None, None, text))
    title = f"Flagged runs, of {counted(result.runs, 'run')}"
    notes = ["rules on kernels and phases"]
    return forest(ax, rows, title=title, notes=notes, x="flagged runs", beside="flagged")
