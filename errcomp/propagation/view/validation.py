"""The report of a validation: coverage and width of bands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from errcomp.propagation.terms import first_level
from errcomp.propagation.view.run import advice_of
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import (
    Column,
    Figure,
    Note,
    Report,
    Table,
    Verdict,
    item,
)

if TYPE_CHECKING:
    from errcomp.propagation import Validation
    from errcomp.propagation.validation import ValidationRow

__all__ = ["validation_view"]

_NAMED = 2


def validation_view(result: Validation) -> Report:
    """Return the report of a validation.

    Parameters
    ----------
    result : Validation

    Returns
    -------
    Report
    """
    from errcomp.propagation.view import figures as drawing

    figures = [
        Figure(
            "coverage",
            "Points on the dashed line: bands contain as many totals as they should; below it, "
            "fewer.",
            partial(drawing.calibration, result),
        ),
        *(
            Figure(
                f"pit-{i}",
                "Positions of the totals in their predicted distributions; bars are level if the "
                "distributions are right. The grey band assumes independent totals.",
                partial(drawing.pit, result, name),
            )
            for i, name in enumerate(result.pit, 1)
        ),
    ]
    level = first_level([row.level for row in result.rows])
    shown = [row for row in result.rows if row.level == level]
    return Report(
        title=f"Do the bands hold? {result.source or 'The given table'}",
        line=_line(result),
        verdicts=[_of_assumption(row) for row in shown],
        advice=[advice_of(caveat) for caveat in result.caveats],
        figures=figures,
        tables=[_table(result)],
        method=[
            ("Totals", result.total),
            (
                "Held out",
                f"each {result.left_out} in turn"
                if result.left_out
                else "none: errors of another table",
            ),
            ("Coverage", "Share of the totals inside the band."),
            ("Intervals", f"95 %, with totals of one {result.cluster} treated as correlated."),
        ],
        draw=partial(drawing.calibration, result),
    )


def _line(result: Validation) -> list[str]:
    level = first_level([row.level for row in result.rows])
    row = next(row for row in result.rows if row.level == level)
    holds = f"{100 * row.level:g} % band contains {100 * row.coverage:.0f} %"
    return [f"{row.assumption}: {holds}", f"n={row.n:,}"]


def _of_assumption(row: ValidationRow) -> Verdict:
    covered = f"{100 * row.coverage:.0f} %"
    text = f"— {row.assumption}: the {100 * row.level:g} % band contains {covered} "
    # Three digits, so that an end close to the level does not look equal to it.
    text += f"[{100 * row.coverage_low:.3g}, {100 * row.coverage_high:.3g}] of {row.n} totals."
    if row.coverage_high < row.level:
        return Verdict("Too narrow", text, "bad")
    if row.coverage_low > row.level:
        return Verdict("Too wide", text, "doubt")
    return Verdict("Not refuted", text, "good")


def _table(result: Validation) -> Table:
    """Show coverage and width per assumption."""
    assumptions = list(dict.fromkeys(row.assumption for row in result.rows))
    levels = list(dict.fromkeys(row.level for row in result.rows))
    first = first_level(levels)
    of = f"{100 * first:g} %"

    def coverage(level: float) -> Column:
        def values(name: str) -> tuple[float, float, float]:
            row = result.row(name, level)
            return row.coverage, row.coverage_low, row.coverage_high

        return Column(f"{100 * level:g} % band", values, forms.interval(0, scale=100))

    columns = [
        Column("Assumption", lambda name: name, key=True),
        *(coverage(level) for level in levels),
        Column(f"Width ({of})", lambda name: result.row(name, first).mean_width, forms.percent),
        Column(f"Score ({of})", lambda name: result.row(name, first).interval_score, forms.percent),
    ]
    row = result.rows[0]
    how = f"each {result.left_out} held out" if result.left_out else "errors from another table"
    notes: list[Note | str] = [
        f"Per cent of {count(row.n, 'total')} ({result.total}) inside the band, with 95 % "
        f"intervals that treat totals of one {result.cluster} as correlated "
        f"({count(row.n_clusters, result.cluster)}).",
        *_without_total(result),
        "Width: width of the band / prediction. Score: interval score / prediction; lower is "
        "better.",
        *(item(f"{caveat.message}.", on="text") for caveat in result.caveats),
    ]
    title = f"Do the bands hold? {result.source or 'the table'}, {how}"
    return Table(title, columns, assumptions, notes)


def _without_total(result: Validation) -> list[str]:
    if not result.not_judged:
        return []
    n = len(result.not_judged)
    names = ", ".join(result.not_judged[:_NAMED]) + (", …" if n > _NAMED else "")
    return [f"Not evaluated: {count(n, 'run')} without a measured or a predicted total ({names})."]
