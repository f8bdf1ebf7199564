"""The report of a held-out evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.calibration.design import LEVELS
from errcomp.calibration.view.model import counted
from errcomp.errors import InputError, describe_names
from errcomp.metrics import figure
from errcomp.report import forms
from errcomp.report.model import (
    Column,
    Figure,
    Note,
    Report,
    Table,
    Verdict,
    heading_of,
    item,
)
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.evaluation import Evaluation, EvaluationRow

__all__ = ["FIGURES", "draw", "evaluation_view"]

#: Figures of an evaluation; the last two need the held-out predictions of each run.
FIGURES: Mapping[str, str] = {
    "coverage": "Points on the dashed line: bands contain as many runs as they should; below it, "
    "fewer.",
    "abstention": "Mean error of the runs with the narrowest bands, for each share of runs kept; "
    'at 80 % it equals the column "Most confident 80 %" of the table.',
    "predicted": "Every held-out run, with its 90 % band.",
    "residuals": "The error of each held-out run, by device and model.",
}
_NEED_RUNS = ("predicted", "residuals")

_SHOWN = 0.9
#: Share of the runs whose error the table shows; the abstention figure marks the same share.
_CONFIDENT = 0.8
_RANDOM = "random"
_NAMED = 3
#: A difference of fractions in percentage points.
_POINTS = forms.interval(1, scale=100, signed=True, ends_signed=True)
_LEGEND = (
    "APE: |predicted − measured| / measured. In 90 % band: per cent of runs inside their band, "
    "with a 95 % interval. Width: width of the 90 % band divided by the prediction. CRPS: "
    "continuous ranked probability score of the predicted time, divided by the run's sum of "
    "kernels; lower is better. Most confident 80 %: MAPE of the 80 % of runs with the narrowest "
    "bands. Runs with equally wide bands each count with the mean of their errors."
)
_GROUPS = {
    "leave-model-out": "model",
    "leave-device-out": "device",
    "leave-model-and-device-out": "device and model",
    "leave-vendor-out": "vendor",
    _RANDOM: "fold",
}


def evaluation_view(result: Evaluation) -> Report:
    """Return the report of an evaluation.

    Parameters
    ----------
    result : Evaluation

    Returns
    -------
    Report
    """
    notes = []
    if not result.held_out:
        notes.append(
            "This document has no predictions of single runs. For plots of single runs, evaluate "
            "again with errcomp calibrate evaluate --figure predicted=FILE or residuals=FILE."
        )
    return Report(
        title=f"Held-out evaluation: {result.task} of {result.source or 'the table'}",
        line=_line(result),
        verdicts=[
            _verdict([row for row in result.rows if row.split == split], result.task)
            for split in dict.fromkeys(row.split for row in result.rows)
        ],
        figures=[
            Figure(f"{name}-{i}", f"{split}. {caption}", partial(draw, name, result, split))
            for i, split in enumerate(dict.fromkeys(row.split for row in result.rows), 1)
            for name, caption in FIGURES.items()
            if result.held_out or name not in _NEED_RUNS
        ],
        tables=_tables(result),
        method=_method(result),
        notes=notes,
        draw=partial(_draw_figure, result),
    )


def _line(result: Evaluation) -> list[str]:
    if not result.rows:
        return ["nothing evaluated"]
    best = min(result.rows, key=lambda row: row.figures["mean_ape"].value)
    figure = best.figures["mean_ape"]
    return [f"{best.split}", f"{best.estimator}: MAPE {figure.format()}", f"n={figure.n:,}"]


def _draw_figure(
    result: Evaluation, figure: str = "coverage", split: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw one split of an evaluation: coverage, abstention, predicted or residuals."""
    splits = list(dict.fromkeys(row.split for row in result.rows))
    if not splits:
        raise InputError("nothing was evaluated, so there is nothing to draw")
    for given, names in ((figure, list(FIGURES)), (split or splits[0], splits)):
        if given not in names:
            raise InputError(f"no figure or split {given!r}. Known: {describe_names(names)}")
    return draw(figure, result, split or splits[0], ax)


def _method(result: Evaluation) -> list[tuple[str, str]]:
    return [
        ("MAPE", "Mean of |predicted − measured| / measured over the held-out runs."),
        (
            "In 90 % band",
            "Per cent of the runs with a measured time inside their band. For each held-out "
            "group, bands are fitted and calibrated from scratch without it.",
        ),
        ("Width", "Width of the 90 % band divided by the prediction, mean over the runs."),
        (
            "CRPS",
            "Continuous ranked probability score (the distance of the predicted distribution from "
            "the measured time), divided by the sum of kernels; lower is better.",
        ),
        *_intervals(result),
        ("Unit of times", result.unit or "not stated"),
        ("Seed", str(result.seed)),
    ]


def _intervals(result: Evaluation) -> list[tuple[str, str]]:
    """Explain the intervals: the groups they are for, and their method."""
    named = []
    for split in dict.fromkeys(row.split for row in result.rows):
        first = next(row for row in result.rows if row.split == split)
        how = f"{len(first.groups)} {group_of(split)}s ({first.figures['mean_ape'].method})"
        named.append(f"{split}: {how}")
    return [
        ("[low, high]", "95 % interval for other groups (models, devices, …) like those held out. "
         "Runs of one group are treated as correlated, so with few groups the interval is wide, "
         "however many runs they have."),
        ("Groups, and interval method of the MAPE", "; ".join(named)),
    ]  # fmt: skip


#: What `sum` is, and the advice where nothing is better, by task.
_PLAIN = {"composition": "the sum of kernels", "prediction": "the uncorrected predictions"}
_ADVICE = {"composition": "Add the kernels up", "prediction": "Use the predictions as they are"}


def _verdict(rows: list[EvaluationRow], task: str) -> Verdict:
    best = best_of(rows)
    error = best.figures["mean_ape"].format()
    text = f"— {best.split}: the estimator {best.estimator} has the lowest mean error, {error}"
    if best.estimator == "sum":
        return Verdict(_ADVICE[task], f"{text}.", "doubt")
    if best.beats_sum:
        return Verdict("Better than the sum", f"{text}; it beats {_PLAIN[task]}.", "good")
    return Verdict(
        "Undecided", f"{text}, but it is not significantly better than {_PLAIN[task]}.", "doubt"
    )


def draw(name: str, result: Evaluation, split: str, ax: Axes | None = None) -> Axes:
    """Draw one split; figures of single runs show the estimator with the lowest error."""
    from errcomp.calibration.view import figures

    rows = [row for row in result.rows if row.split == split]
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
        drawn = f"{groups} {group_of(split)}{'' if groups == 1 else 's'}"
        return figures.coverage(
            points, n=max(row.n for row in rows), drawn=drawn, note=split, ax=ax
        )
    if name == "abstention":
        curves = {row.estimator: row.abstention for row in rows if row.abstention is not None}
        return figures.abstention(curves, note=split, ax=ax)
    best = best_of(rows).estimator
    held = result.held_out[split, best]
    note = f"{split}, {best} ({result.task})"
    if name == "residuals":
        error = held.predicted / held.measured - 1
        return figures.residuals(
            error=error, device=held.device, model=held.model, note=note, ax=ax
        )
    at = LEVELS.index(0.9)
    bounded = np.isfinite(held.low[:, at]) & np.isfinite(held.high[:, at])
    return figures.predicted(
        measured=held.measured[bounded],
        predicted=held.predicted[bounded],
        low=held.low[bounded, at],
        high=held.high[bounded, at],
        unit=result.unit,
        note=note,
        ax=ax,
    )


def group_of(split: str) -> str:
    """Return the kind of group that a split holds out.

    Examples
    --------
    >>> group_of("leave-device-out")
    'device'
    """
    return _GROUPS[split]


def _tables(result: Evaluation) -> list[Table]:
    """Tables of each split: every estimator, then the largest errors of the best one.

    Parameters
    ----------
    result : Evaluation
    """
    tables: list[Table] = []
    for split in dict.fromkeys(row.split for row in result.rows):
        rows = [row for row in result.rows if row.split == split]
        best = best_of(rows)
        tables += [
            _split(result, rows, best, legend=not tables),
            *_not_flagged(result, rows),
            _worst(best, result),
        ]
    if result.transfer:
        tables.append(_transfer(result))
    if not tables:
        title = f"Nothing was evaluated: {result.task} of {result.source or 'the table'}"
        return [Table(title, (), (), _not_done_notes(result))]
    last = tables[-1]
    tables[-1] = Table(last.title, last.columns, last.rows, [*last.notes, *_not_done_notes(result)])
    return tables


def best_of(rows: Sequence[EvaluationRow]) -> EvaluationRow:
    """Return the row with the lowest mean error."""
    return min(rows, key=lambda row: row.figures["mean_ape"].value)


def _split(
    result: Evaluation,
    rows: Sequence[EvaluationRow],
    best: EvaluationRow,
    *,
    legend: bool,
) -> Table:
    """Show one split, one estimator per line, the sum of kernels first."""
    ordered = sorted(rows, key=lambda row: row.estimator != "sum")
    columns = [
        Column("Estimator", lambda row: row.estimator, key=True),
        Column("MAPE", lambda row: row.figures["mean_ape"], forms.estimate),
        *(_figure(name) for name in ("median", "p90", "max")),
        Column("In 90 % band", _coverage, forms.interval(0, scale=100)),
        Column("Width", lambda row: row.band(_SHOWN).mean_width, forms.finite_percent),
        Column("CRPS", lambda row: row.crps, forms.finite_percent),
        Column("Most confident 80 %", _confident, forms.finite_percent),
    ]
    group = group_of(best.split)
    groups = max(len(row.groups) for row in rows)
    how = f"{groups} random folds" if best.split == _RANDOM else f"each {group} held out in turn"
    title = (
        f"{best.split}: {result.task} of {result.source or 'the table'}, "
        f"{counted(max(row.n for row in rows), 'run')}, {how}"
    )
    notes: list[Note | str] = [
        _conclusion(best, groups, result.task),
        *([_LEGEND] if legend else []),
        *(item(f"The estimator {row.estimator} {row.verdict}.") for row in ordered if row.verdict),
        *_uncalibrated(ordered),
        *_weak(ordered, group),
        *_flattery(result, best),
    ]
    return Table(title, columns, ordered, notes)


def _not_flagged(result: Evaluation, rows: Sequence[EvaluationRow]) -> list[Table]:
    """Show the errors without the flagged runs beside those of all runs."""
    split = rows[0].split
    others = {row.estimator: row for row in result.not_flagged if row.split == split}
    shown = [row for row in rows if row.estimator in others]
    if not shown or not result.flagged:
        return []
    columns = [
        Column("Estimator", lambda row: row.estimator, key=True),
        *(
            column
            for name in ("mean", "median", "p90")
            for column in _both(name, lambda row: others[row.estimator])
        ),
    ]
    n, names = len(result.flagged), describe_names(list(result.flagged))
    note = (
        f"Flagged by their kernels (errcomp calibrate check): {names}. These runs are in the fits."
    )
    title = f"{split}: all runs, and without {counted(n, 'flagged run')}"
    return [Table(title, columns, shown, [note])]


def _both(name: str, other: Callable[[EvaluationRow], EvaluationRow]) -> list[Column]:
    word = {"mean": "MAPE", "median": "Median APE", "p90": "P90 APE"}[name]
    key = f"{name}_ape"
    return [
        Column(word, lambda row: row.figures[key].value, forms.finite_percent),
        Column("without", lambda row: other(row).figures[key].value, forms.finite_percent),
    ]


def _conclusion(best: EvaluationRow, groups: int, task: str) -> str:
    """Return the conclusion in a sentence."""
    if best.estimator == "sum":
        return f"{_ADVICE[task]}: no estimator has a lower mean error than {_PLAIN[task]}."
    sentence = f"Best: the estimator {best.estimator} has the lowest mean error"
    if best.beats_sum:
        return f"{sentence}; it beats {_PLAIN[task]}."
    few = f"{groups} {group_of(best.split)}s"
    return f"{sentence}, but with {few} it is not significantly better than {_PLAIN[task]}."


def _figure(name: str) -> Column:
    return Column(
        heading_of(figure(f"{name}_ape").label),
        lambda row: row.figures[f"{name}_ape"].value,
        forms.finite_percent,
    )


def _confident(row: EvaluationRow) -> float | None:
    return None if row.abstention is None else row.abstention.at(_CONFIDENT)


def _coverage(row: EvaluationRow) -> forms.Ends | None:
    band = row.band(_SHOWN)
    return (band.coverage, band.coverage_low, band.coverage_high) if band.n else None


def _uncalibrated(rows: Sequence[EvaluationRow]) -> list[Note]:
    """Name the estimators with uncalibrated bands."""
    by_number: dict[int, list[str]] = {}
    for row in rows:
        by_number.setdefault(row.uncalibrated, []).append(row.estimator)
    return [
        item(
            f"{', '.join(names)}: the bands of {counted(n, 'run')} are not calibrated, because "
            "fewer than 3 groups were left for calibration."
        )
        for n, names in by_number.items()
        if n
    ]


def _weak(rows: Sequence[EvaluationRow], group: str) -> list[Note]:
    """Name the groups with low coverage of the 90 % bands."""
    notes = []
    for row in rows:
        if not row.weak_groups:
            continue
        named = ", ".join(
            f"{g.group} ({100 * g.coverage[_SHOWN]:.0f} % of {g.n} runs)" for g in row.weak_groups
        )
        notes.append(
            item(f"{row.estimator}: the 90 % bands cover too few runs of {group} {named}.")
        )
    return notes


def _flattery(result: Evaluation, best: EvaluationRow) -> list[Note]:
    """Return what a random split would have shown instead."""
    return [
        item(
            f"A random split would have shown {best.estimator} with a mean error of "
            f"{format_fraction(gap.mean_ape_against)} instead of {format_fraction(gap.mean_ape)} "
            f"on the same runs: {100 * abs(gap.difference.value):.1f} percentage points too "
            f"{'low' if gap.difference.value >= 0 else 'high'} for a new {group_of(best.split)}."
        )
        for gap in result.flattery
        if (gap.split, gap.estimator) == (best.split, best.estimator)
    ]


def _worst(row: EvaluationRow, result: Evaluation) -> Table:
    of = f" ({result.unit})" if result.unit else ""
    columns = [
        Column("Run", lambda run: run.run, key=True),
        Column(f"Measured{of}", lambda run: run.measured, forms.number),
        Column(f"Predicted{of}", lambda run: run.predicted, forms.number),
        Column("Error", lambda run: run.predicted / run.measured - 1, forms.change),
        Column("Notes", lambda run: _of_run(result, run.run)),
    ]
    title = f"{row.split}: largest errors of {row.estimator}"
    return Table(title, columns, row.worst)


def _of_run(result: Evaluation, run: str) -> str:
    """Return what is unusual about a run, and the rule that flags it."""
    # After the name of the rule comes the evidence, which `calibrate check` shows.
    flag = (result.flagged or {}).get(run, "").partition(":")[0]
    return "; ".join(filter(None, (result.known.get(run, ""), flag))) or "–"


def _transfer(result: Evaluation) -> Table:
    columns = [
        Column("Estimator", lambda row: row.estimator, key=True),
        Column("Vendor", lambda row: f"{row.vendor} ({row.n_unseen})", key=True),
        Column("Unseen", lambda row: row.unseen, forms.percent),
        Column("Others", lambda row: row.seen, forms.percent),
        Column("Gap (points)", lambda row: (row.gap, None, None), _POINTS),
        Column("Cost (points)", lambda row: row.cost.difference, _POINTS),
    ]
    notes = [
        "Unseen: MAPE of the vendor's runs, with all its devices held out. Others: MAPE of the "
        "other vendors' runs, with each device held out alone. Gap: unseen minus others. Cost: "
        "unseen minus the MAPE of the same runs with only their own device held out.",
    ]
    title = "leave-vendor-out: transfer to a vendor that was not in the fit"
    return Table(title, columns, result.transfer, notes)


def _not_done_notes(result: Evaluation) -> list[str]:
    """Return notes on splits, runs and predictions that are missing, with the reasons."""
    notes = [f"Not done: {reason}" for reason in result.not_done.values()]
    if result.not_judged:
        n = len(result.not_judged)
        named = ", ".join(result.not_judged[:_NAMED]) + (", …" if n > _NAMED else "")
        notes.append(
            f"Not evaluated: {counted(n, 'run')} without an end-to-end time, or without the times "
            f"of all kernels ({named})."
        )
    same: dict[tuple[str, str, str], list[Any]] = {}
    for refusal in result.refused:
        same.setdefault((refusal.split, refusal.estimator, refusal.reason), []).append(refusal)
    for (split, estimator, reason), those in same.items():
        who = f"{estimator} did not predict" if estimator else "no estimator predicted"
        n = sum(refusal.n for refusal in those)
        held = ", ".join(refusal.held_out for refusal in those[:_NAMED])
        held += ", …" if len(those) > _NAMED else ""
        notes.append(f"{split}: {who} {counted(n, 'run')} ({held} held out): {reason.rstrip('.')}.")
    return notes
