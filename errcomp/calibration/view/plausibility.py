"""Report of runs that may not be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.calibration.view.model import counted
from errcomp.report.model import Column, Note, Report, Table, item

if TYPE_CHECKING:
    from errcomp.calibration.plausibility import Plausibility


def plausibility_view(result: Plausibility) -> Report:
    """Return a row for each run and rule."""
    from errcomp.calibration.plausibility import RULES

    meanings = {rule.name: rule.meaning for rule in RULES}
    columns = [
        Column("Run", lambda row: row.run, key=True),
        Column("Rule", lambda row: row.rule, key=True),
        Column("Evidence", lambda row: row.evidence),
    ]
    used = dict.fromkeys(row.rule for row in result.rows)
    notes: list[Note | str] = [
        f"{result.flagged:,} of {counted(result.runs, 'run')} flagged. The rules look at kernels "
        "alone, not at the time of the run. A flagged run may be right: look at its measurement.",
        *(item(f"{name}: {meanings[name]}.") for name in used),
        *(item(f"{one.rule} was not checked: {one.reason}.") for one in result.not_checked),
    ]
    title = "Runs that may not be trusted"
    line = [f"{result.flagged:,} of {counted(result.runs, 'run')} flagged"]
    return Report(title=title, line=line, tables=[Table(title, columns, result.rows, notes)])
