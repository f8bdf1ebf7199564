"""Held-out evaluations as tables for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.metrics import figure
from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, heading_of, item
from errcomp.report.tables.calibration import counted
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from errcomp.calibration.design import Task
    from errcomp.calibration.evaluation import Evaluation, EvaluationRow
    from errcomp.tables import Kernels

__all__ = ["best_of", "evaluation_tables", "group_of", "known_of"]

_SHOWN = 0.9
#: The share of the runs whose error is told; the figure of abstention marks the same.
_SUREST = 0.8
_RANDOM = "random"
_NAMED = 3
#: Launches of this share of the kernels' time are worth a word: hidden or not, it is an error.
_LAUNCHES_FROM = 0.05
_LEGEND = (
    "APE: |predicted − measured| / measured. In 90 % band: per cent of runs, with a 95 % interval. "
    "Width: of that band over the prediction. CRPS: over the sum of kernels, lower is better. "
    "Surest 80 %: MAPE of the 80 % of runs with the narrowest bands, as the figure of "
    "abstention draws it; runs with bands of one width count with the mean of their errors."
)
_GROUPS = {
    "leave-model-out": "model",
    "leave-device-out": "device",
    "leave-model-and-device-out": "device and model",
    "leave-vendor-out": "vendor",
    _RANDOM: "fold",
}


def group_of(split: str) -> str:
    """Return what a split leaves out.

    Examples
    --------
    >>> group_of("leave-device-out")
    'device'
    """
    return _GROUPS[split]


def evaluation_tables(found: Evaluation, source: str, reasons: Mapping[str, str]) -> list[Table]:
    """Tables of each split: every estimator, then the runs that the best one errs most on.

    Parameters
    ----------
    found : Evaluation
    source : str
    reasons : mapping of str to str
        What is known to be wrong with a run.
    """
    tables: list[Table] = []
    for split in dict.fromkeys(row.split for row in found.rows):
        rows = [row for row in found.rows if row.split == split]
        best = best_of(rows)
        tables += [
            _split(found, rows, best, source, legend=not tables),
            _worst(best, reasons, found.unit),
        ]
    if found.transfer:
        tables.append(_transfer(found))
    last = tables[-1]
    tables[-1] = Table(last.title, last.columns, last.rows, [*last.notes, *_left_over(found)])
    return tables


def best_of(rows: Sequence[EvaluationRow]) -> EvaluationRow:
    """Return the row with the lowest mean error."""
    return min(rows, key=lambda row: row.figures["mean_ape"].value)


def _split(
    found: Evaluation,
    rows: Sequence[EvaluationRow],
    best: EvaluationRow,
    source: str,
    *,
    legend: bool,
) -> Table:
    """Show one split, an estimator a line, the sum of kernels first."""
    ordered = sorted(rows, key=lambda row: row.estimator != "sum")
    columns = [
        Column("Estimator", lambda r: r["row"].estimator, key=True),
        Column("MAPE", lambda r: r["row"].figures["mean_ape"], forms.estimate),
        *(_figure(name) for name in ("median", "p90", "max")),
        Column("In 90 % band", lambda r: _coverage(r["row"]), form=forms.as_written),
        Column("Width", lambda r: r["row"].band(_SHOWN).mean_width, forms.finite_percent),
        Column("CRPS", lambda r: r["row"].crps, forms.finite_percent),
        Column("Surest 80 %", lambda r: _surest(r["row"]), form=forms.as_written),
    ]
    group = group_of(best.split)
    groups = max(len(row.groups) for row in rows)
    how = f"{groups} random folds" if best.split == _RANDOM else f"each {group} left out in turn"
    title = (
        f"{best.split}: {found.task} of {source or 'the table'}, "
        f"{counted(max(row.n for row in rows), 'run')}, {how}"
    )
    notes: list[Note | str] = [
        _conclusion(best, groups),
        *([_LEGEND] if legend else []),
        *(item(f"{row.estimator}: {row.verdict}.") for row in ordered if row.verdict),
        *_uncalibrated(ordered),
        *_weak(ordered, group),
        *_flattery(found, best),
    ]
    return Table(title, columns, [{"row": row} for row in ordered], notes)


def _conclusion(best: EvaluationRow, groups: int) -> str:
    """Say in a sentence what to do."""
    if best.estimator == "sum":
        return "Add the kernels up: nothing has a lower mean error."
    said = f"Best: {best.estimator} has the lowest mean error"
    if best.beats_sum:
        return f"{said}; it beats the sum of kernels."
    few = f"{groups} {group_of(best.split)}s"
    return f"{said}; whether it beats the sum of kernels, {few} cannot tell."


def _figure(name: str) -> Column:
    return Column(
        heading_of(figure(f"{name}_ape").label),
        lambda r: r["row"].figures[f"{name}_ape"].value,
        forms.finite_percent,
    )


def _surest(row: EvaluationRow) -> str:
    return "–" if row.abstention is None else _fraction(row.abstention.at(_SUREST))


def _coverage(row: EvaluationRow) -> str:
    band = row.band(_SHOWN)
    if not band.n:
        return "–"
    return (
        f"{100 * band.coverage:.0f} [{100 * band.coverage_low:.0f}, {100 * band.coverage_high:.0f}]"
    )


def _uncalibrated(rows: Sequence[EvaluationRow]) -> list[Note]:
    """Say whose bands nobody has checked."""
    by_number: dict[int, list[str]] = {}
    for row in rows:
        by_number.setdefault(row.uncalibrated, []).append(row.estimator)
    return [
        item(
            f"Not calibrated: the bands of {counted(n, 'run')} by {', '.join(names)}. Fewer than 3 "
            "groups were left to calibrate them on."
        )
        for n, names in by_number.items()
        if n
    ]


def _weak(rows: Sequence[EvaluationRow], group: str) -> list[Note]:
    """Name the groups that the 90 % bands hardly cover."""
    notes = []
    for row in rows:
        if not row.weak_groups:
            continue
        named = ", ".join(
            f"{g.group} ({100 * g.coverage[_SHOWN]:.0f} % of {g.n} runs)" for g in row.weak_groups
        )
        notes.append(item(f"{row.estimator}: the 90 % band fails in {group} {named}."))
    return notes


def _flattery(found: Evaluation, best: EvaluationRow) -> list[Note]:
    """Say what a random split would have shown instead."""
    return [
        item(
            f"A random split would have shown {best.estimator} with a mean of "
            f"{format_fraction(one.mean_ape_against)} instead of {format_fraction(one.mean_ape)} "
            f"on the same runs: it flatters by {100 * one.difference.value:+.1f} points."
        )
        for one in found.flattery
        if (one.split, one.estimator) == (best.split, best.estimator)
    ]


def _worst(row: EvaluationRow, reasons: Mapping[str, str], unit: str | None) -> Table:
    of = f" ({unit})" if unit else ""
    columns = [
        Column("Run", lambda r: r["run"].run, key=True),
        Column(f"Measured{of}", lambda r: r["run"].measured, forms.number),
        Column(f"Predicted{of}", lambda r: r["run"].predicted, forms.number),
        Column("Error", lambda r: r["run"].predicted / r["run"].measured - 1, forms.change),
        Column("Known of it", lambda r: reasons.get(r["run"].run, "–")),
    ]
    title = f"{row.split}: runs that {row.estimator} errs most on"
    return Table(title, columns, [{"run": run} for run in row.worst])


def known_of(kernels: Kernels, task: Task) -> dict[str, str]:
    """Return by run what its kernels show: too slow ones, many launches, more memory than is."""
    from errcomp.calibration.features import KERNEL_LAUNCHES, design
    from errcomp.calibration.preparing import usable_runs

    runs = design(usable_runs(kernels, task)[0], task=task)
    slow = runs.x[:, runs.names.index("slow_kernels")]
    launches = runs.x[:, [runs.names.index(n) for n in KERNEL_LAUNCHES]].sum(axis=1)
    memory = runs.x[:, runs.names.index("memory_share")]
    found = {}
    for i, run in enumerate(runs.run.tolist()):
        words = []
        if slow[i] < 0:
            words.append(f"kernels {100 * math.expm1(-slow[i]):.0f} % slower than in other runs")
        if launches[i] > _LAUNCHES_FROM:
            words.append(f"launches: {100 * launches[i]:.1f} % of kernel time")
        if memory[i] > 1:
            words.append("outputs exceed device memory")
        if words:
            found[run] = "; ".join(words)
    return found


def _transfer(found: Evaluation) -> Table:
    columns = [
        Column("Estimator", lambda r: r["one"].estimator, key=True),
        Column("Vendor", lambda r: f"{r['one'].vendor} ({r['one'].n_unseen})", key=True),
        Column("Unseen", lambda r: r["one"].unseen, forms.percent),
        Column("Others", lambda r: r["one"].seen, forms.percent),
        Column("Gap (points)", lambda r: f"{100 * r['one'].gap:+.1f}", form=forms.as_written),
        Column("Cost (points)", lambda r: _points(r["one"].cost.difference), form=forms.as_written),
    ]
    notes = [
        "Unseen: MAPE of the vendor's runs, all its devices left out. Others: of the other "
        "vendors' runs, each device left out alone. Gap: the one less the other. Cost: unseen less "
        "the same runs with their own device left out alone.",
    ]
    rows = [{"one": one} for one in found.transfer]
    return Table(
        "leave-vendor-out: transfer to a vendor that was not in the fit", columns, rows, notes
    )


def _points(difference: Any) -> str:
    text = f"{100 * difference.value:+.1f}"
    if difference.low is None:
        return text
    return f"{text} [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"


def _left_over(found: Evaluation) -> list[str]:
    """Say what was not done, not judged, not answered, and why."""
    notes = [f"Not done: {reason}" for reason in found.not_done.values()]
    if found.not_judged:
        n = len(found.not_judged)
        named = ", ".join(found.not_judged[:_NAMED]) + (", …" if n > _NAMED else "")
        notes.append(
            f"Not judged: {counted(n, 'run')} without an end-to-end time, or without the time of "
            f"all kernels ({named})."
        )
    same: dict[tuple[str, str, str], list[Any]] = {}
    for one in found.refused:
        same.setdefault((one.split, one.estimator, one.reason), []).append(one)
    for (split, estimator, reason), those in same.items():
        who = f"{estimator} did not answer" if estimator else "no estimator answered"
        n = sum(one.n for one in those)
        held = ", ".join(one.held_out for one in those[:_NAMED])
        held += ", …" if len(those) > _NAMED else ""
        notes.append(f"{split}: {who} {counted(n, 'run')} ({held}): {reason.rstrip('.')}.")
    return notes


def _fraction(value: float) -> str:
    return format_fraction(value) if math.isfinite(value) else "–"
