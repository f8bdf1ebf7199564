"""Sections about propagated errors: the band of each run, and whether such bands hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from errcomp.report.model import ITEM
from errcomp.report.page import Advice, Grid, Section, Verdict, grid_of
from errcomp.report.page._parts import Tone
from errcomp.report.sections._common import Drawing, pictures
from errcomp.report.tables.propagation import propagation_tables, validation_tables
from errcomp.results import format_fraction, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.propagation import Outcome, Propagation, Validation
    from errcomp.propagation.validation import ValidationRow
    from errcomp.report.model import Table
    from errcomp.results import Caveat

__all__ = ["propagation_section", "validation_section"]

_SHOWN = 0.9
#: Runs whose bands are drawn, one figure each.
_DRAWN = 6


def propagation_section(found: Propagation, source: str = "") -> Section:
    """Return the section of what kernel errors become in runs."""
    first = found.of()
    drawings: list[Drawing] = [
        (
            f"bands-{i}",
            "Bands under each assumption, with what was predicted (line) and measured (diamond).",
            partial(_bands, found, run),
        )
        for i, run in enumerate(found.runs[:_DRAWN], 1)
    ]
    if first.by_class is not None:
        drawings.append(
            ("budget", f"Where the error of {first.run} comes from.", partial(_budget, first))
        )
    drawn, notes = pictures(drawings)
    if len(found.runs) > _DRAWN:
        notes.append(f"Drawn are the first {_DRAWN} of {len(found.runs)} runs; the table has all.")
    caveats = {(c.code, c.message): c for c in found.caveats}
    for outcome in found.outcomes:
        for caveat in outcome.caveats:
            caveats.setdefault((caveat.code, caveat.message), caveat)
    return Section(
        title=f"How wrong is the whole run? {source or 'The table given'}",
        verdicts=[_of_run(found.of(run), found.unit) for run in found.runs[:_DRAWN]],
        advice=[_advice(caveat) for caveat in caveats.values()],
        pictures=drawn,
        grids=_grids(propagation_tables(found, source)),
        method=[
            *(
                (f"Bands under {outcome.assumption}", outcome.method)
                for outcome in found.outcomes
                if outcome.run == first.run
            ),
            ("Errors", f"{found.model.kind}, fitted to {found.model.n_runs} runs"),
            ("Unit of times", found.unit or "not stated"),
            ("Seed", str(found.seed)),
        ],
        notes=notes,
    )


def _bands(found: Propagation, run: str) -> Axes:
    from errcomp.report.figures import bands

    return bands(found, run)


def _budget(outcome: Outcome) -> Axes:
    from errcomp.report.figures import budget

    return budget(outcome)


def _of_run(outcome: Outcome, unit: str | None) -> Verdict:
    band = outcome.band(_SHOWN)
    times = f"{format_number(band.low)} … {format_number(band.high)}{f' {unit}' if unit else ''}"
    text = (
        f'— {outcome.run} with probability {100 * _SHOWN:g} % under "{outcome.assumption}"; '
        f"predicted {format_number(outcome.prediction)}"
    )
    tone: Tone = "plain"
    if outcome.measured is not None:
        inside = band.low <= outcome.measured <= band.high
        text += f", measured {format_number(outcome.measured)}, "
        text += "inside the band" if inside else "outside the band"
        tone = "good" if inside else "doubt"
    if outcome.relative_sd is not None:
        text += (
            f". Kernels err by {format_fraction(outcome.kernel_sd)} (sd), the run by "
            f"{format_fraction(outcome.relative_sd)}"
        )
    return Verdict(times, f"{text}.", tone)


def _advice(caveat: Caveat) -> Advice:
    name = caveat.code.replace("-", " ").capitalize()
    return Advice(name, f"{caveat.message[:1].upper()}{caveat.message[1:].rstrip('.')}.")


def _grids(tables: Sequence[Table]) -> list[Grid]:
    """Return tables without the caveats below them, which the page has in a place of their own."""
    return [
        grid_of(replace(one, notes=[note for note in one.remarks() if note.mark != ITEM]))
        for one in tables
    ]


def validation_section(found: Validation, source: str = "") -> Section:
    """Return the section of bands held against measured totals."""
    from errcomp.report import figures

    drawings: list[Drawing] = [
        (
            "coverage",
            "On the line a band holds as often as it says; below it, less often.",
            partial(figures.calibration, found),
        ),
        *(
            (
                f"pit-{i}",
                "Where the totals stand in their distributions: level if those are right. The grey "
                "band takes totals as independent.",
                partial(figures.pit, found, name),
            )
            for i, name in enumerate(found.pit, 1)
        ),
    ]
    drawn, notes = pictures(drawings)
    shown = [row for row in found.rows if row.level == _SHOWN] or list(found.rows)
    return Section(
        title=f"Do the bands hold? {source or 'The table given'}",
        verdicts=[_of_assumption(row) for row in shown],
        advice=[_advice(caveat) for caveat in found.caveats],
        pictures=drawn,
        grids=_grids(validation_tables(found, source)),
        method=[
            ("Totals", found.total),
            ("Left out", f"each {found.left_out} in turn" if found.left_out else "another table"),
            ("Coverage", "Share of the totals inside the band."),
            ("Intervals", f"95 %, with totals of one {found.cluster} taken as alike."),
        ],
        notes=notes,
    )


def _of_assumption(row: ValidationRow) -> Verdict:
    said = f"— {row.assumption}: a {100 * row.level:g} % band holds {100 * row.coverage:.0f} % "
    # Three digits, so that an end next to the level does not look like it.
    said += f"[{100 * row.coverage_low:.3g}, {100 * row.coverage_high:.3g}] of {row.n} totals."
    if row.coverage_high < row.level:
        return Verdict("Too narrow", said, "bad")
    if row.coverage_low > row.level:
        return Verdict("Too wide", said, "doubt")
    return Verdict("Not refuted", said, "good")
