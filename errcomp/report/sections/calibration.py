"""A section about a calibrated model judged on what it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from errcomp.calibration.design import LEVELS
from errcomp.report.page import Section, Verdict, grid_of
from errcomp.report.sections._common import Drawing, pictures
from errcomp.report.tables.evaluation import best_of, evaluation_tables, group_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.evaluation import Evaluation, EvaluationRow

__all__ = ["FIGURES", "draw", "evaluation_section"]

#: What can be drawn of an evaluation; the last two need the held-out predictions themselves.
FIGURES: Mapping[str, str] = {
    "coverage": "On the line a band holds as often as it says; below it, less often.",
    "abstention": "The error of those runs that the estimator is surest of; at 80 % it is the "
    'column "Surest 80 %" of the table.',
    "predicted": "Every run that was left out, with its 90 % band.",
    "residuals": "The error of each run that was left out, by device and model.",
}
_NEED_RUNS = ("predicted", "residuals")


def evaluation_section(
    found: Evaluation, source: str = "", reasons: Mapping[str, str] | None = None
) -> Section:
    """Return the section of an evaluation; ``reasons`` say what is known of single runs."""
    drawings: list[Drawing] = [
        (f"{name}-{i}", f"{split}. {caption}", partial(draw, name, found, split))
        for i, split in enumerate(dict.fromkeys(row.split for row in found.rows), 1)
        for name, caption in FIGURES.items()
        if found.held_out or name not in _NEED_RUNS
    ]
    drawn, notes = pictures(drawings)
    if not found.held_out:
        notes.append("Figures of single runs need the evaluation itself, not its document.")
    return Section(
        title=f"What is a correction worth? {found.task} of {source or 'the table'}",
        verdicts=[
            _verdict([row for row in found.rows if row.split == split])
            for split in dict.fromkeys(row.split for row in found.rows)
        ],
        pictures=drawn,
        grids=[grid_of(table) for table in evaluation_tables(found, source, reasons or {})],
        method=[
            ("MAPE", "Mean of |predicted − measured| / measured over the runs left out."),
            (
                "In 90 % band",
                "Per cent of the runs whose measured time is inside their band. Bands "
                "are fitted and calibrated anew without each group that is left out.",
            ),
            ("Width", "Of the 90 % band over the prediction, mean over the runs."),
            (
                "CRPS",
                "Continuous ranked probability score over the sum of kernels: how far the "
                "whole distribution predicted is from what was measured; lower is better.",
            ),
            *_intervals(found),
            ("Unit of times", found.unit or "not stated"),
            ("Seed", str(found.seed)),
        ],
        notes=notes,
    )


def _intervals(found: Evaluation) -> list[tuple[str, str]]:
    """Say what stands in brackets: of which others it speaks, and how it was made."""
    named = []
    for split in dict.fromkeys(row.split for row in found.rows):
        first = next(row for row in found.rows if row.split == split)
        how = f"{len(first.groups)} {group_of(split)}s ({first.figures['mean_ape'].method})"
        named.append(f"{split}: {how}")
    return [
        ("[low, high]", "95 % interval: where the figure may lie for other groups (models, "
         "devices, …) like those left out. Runs of one group are taken as alike, so that few "
         "groups make it wide, however many runs they have."),
        ("Groups, and how the interval of the MAPE was made", "; ".join(named)),
    ]  # fmt: skip


def _verdict(rows: list[EvaluationRow]) -> Verdict:
    best = best_of(rows)
    error = best.figures["mean_ape"].format()
    text = f"— {best.split}: {best.estimator} has the lowest mean error, {error}"
    if best.estimator == "sum":
        return Verdict("Add the kernels up", f"{text}.", "doubt")
    if best.beats_sum:
        return Verdict("Better than the sum", f"{text}; it beats the sum of kernels.", "good")
    return Verdict(
        "Cannot be told", f"{text}; whether it beats the sum of kernels may be chance.", "doubt"
    )


def draw(name: str, found: Evaluation, split: str, ax: Axes | None = None) -> Axes:
    """Draw one split: of single runs those that the estimator with the lowest error says."""
    from errcomp.report import calibration_figures

    rows = [row for row in found.rows if row.split == split]
    if name == "coverage":
        points = {
            row.estimator: [
                (band.level, band.coverage, band.coverage_low, band.coverage_high)
                for band in row.bands
                if band.n
            ]
            for row in rows
        }
        groups = len(rows[0].groups)
        clusters = f"{groups} {group_of(split)}{'' if groups == 1 else 's'}"
        return calibration_figures.coverage(
            points, n=max(row.n for row in rows), clusters=clusters, note=split, ax=ax
        )
    if name == "abstention":
        curves = {row.estimator: row.abstention for row in rows if row.abstention is not None}
        return calibration_figures.abstention(curves, note=split, ax=ax)
    best = best_of(rows).estimator
    held = found.held_out[split, best]
    note = f"{split}, {best} ({found.task})"
    if name == "residuals":
        error = held.predicted / held.measured - 1
        return calibration_figures.residuals(
            error=error, device=held.device, model=held.model, note=note, ax=ax
        )
    at = LEVELS.index(0.9)
    there = np.isfinite(held.low[:, at]) & np.isfinite(held.high[:, at])
    return calibration_figures.predicted(
        measured=held.measured[there],
        predicted=held.predicted[there],
        low=held.low[there, at],
        high=held.high[there, at],
        unit=found.unit,
        note=note,
        ax=ax,
    )
