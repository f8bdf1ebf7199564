"""Error figures by group as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Table, heading_of, key_text
from errcomp.results import Estimate

if TYPE_CHECKING:
    from errcomp.summary import Summary

__all__ = ["plain_summary", "summary_table"]


def plain_summary(found: Summary) -> Table:
    """Return the table of a summary of which no more is known."""
    figures = found.pooled.figures
    level = next((one.level for one in figures.values() if one.level is not None), 0.95)
    return summary_table(found, tuple(figures), level, "Error figures", False)


def summary_table(
    summary: Summary, figures: tuple[str, ...], level: float, title: str, apart: bool
) -> Table:
    """Return figures by group; those of all pairs too, unless groups are told ``apart``."""
    from errcomp.metrics import figure
    from errcomp.summary import why_none

    together = bool(summary.by) and not apart
    rows = [*summary.rows, summary.pooled] if together else [*summary.rows]
    shown = [{"key": r.key, "n": r.n, "figures": r.figures} for r in rows]

    def key_column(name: str) -> Column:
        return Column(
            heading_of(name), lambda row: key_text(row["key"].get(name, "all pairs")), key=True
        )

    def figure_column(name: str) -> Column:
        return Column(
            heading_of(figure(name).label), lambda row: row["figures"][name], forms.estimate
        )

    columns = [
        *(key_column(name) for name in summary.by),
        Column("n", lambda row: row["n"], forms.count, key=True),
        *(figure_column(name) for name in figures),
    ]
    notes = [f"Intervals: {100 * level:g} %. No interval where none has been shown to hold."]
    if together:
        macro = ", ".join(
            f"{figure(n).label} {_format(n, value)}" for n, value in summary.macro.items()
        )
        notes.append(f"Mean over the {len(summary.rows)} groups (each weighs the same): {macro}")
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, found in row.figures.items():
            if why_none(found.value, found.low, found.method):
                reasons.setdefault(found.method, {})[heading_of(figure(name).label)] = None
    notes += sorted(f"{', '.join(labels)}: {reason}" for reason, labels in reasons.items())
    notes += [f"{d.n} row{'' if d.n == 1 else 's'} not used: {d.reason}" for d in summary.dropped]
    return Table(title, columns, shown, notes)


def _format(name: str, value: float) -> str:
    from errcomp.metrics import figure

    return Estimate(name, value, unit=figure(name).unit).format()
