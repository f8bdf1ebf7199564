"""The report of predicted runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from errcomp.calibration.view.model import REGIMES, SHOWN, counted, in_words, unused_notes
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Cell, Column, Figure, Form, Note, Report, Table, item
from errcomp.results import Written, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.fitted import CompositionModel
    from errcomp.calibration.predictions import Predictions

__all__ = ["predictions", "predictions_view"]

#: The value in warnings that differ only in the value of a feature.
_VALUE = re.compile(r"^(feature \w+) = .*?(?= is outside the fit's)")


def predictions_view(
    found: Predictions,
    model: CompositionModel | None = None,
    source: str = "",
    unused: Mapping[str, str] | None = None,
) -> Report:
    """Return the report of predicted runs.

    Parameters
    ----------
    found : Predictions
    model : CompositionModel, optional
        The model that predicted them; without it the report does not describe the fit.
    source : str
        Name of the table.
    unused : mapping of str to str, optional
        Runs without a prediction, and the reasons.

    Returns
    -------
    Report
    """
    tables = [_plain(found)] if model is None else _tables(found, model, source, unused or {})
    draw = partial(predictions, found)
    return Report(
        title=tables[0].title,
        line=_line(found),
        tables=tables,
        figures=[
            Figure("figure", "Predicted times with 90 % bands; sums of kernels (ticks).", draw)
        ],
        draw=draw,
    )


def _line(result: Predictions) -> list[str]:
    unit = f" {result.unit}" if result.unit else ""
    if len(result) != 1:
        return [result.estimator, f"n={len(result):,} runs"]
    low, high = (format_number(float(end[0])) for end in result.band(SHOWN))
    predicted = format_number(float(result.predicted[0]))
    return [f"{predicted}{unit}", f"{100 * SHOWN:g} % band {low} … {high}", "n=1 run"]


def _plain(result: Predictions) -> Table:
    """Return the runs, one per line, without details of the model."""
    unit = f" ({result.unit})" if result.unit else ""
    low, high = result.band(SHOWN)
    columns = [
        Column("Run", lambda i: str(result.run[i]), key=True),
        Column(f"Predicted{unit}", lambda i: float(result.predicted[i]), forms.number),
        Column(
            f"{100 * SHOWN:g} % band{unit}",
            lambda i: (float(low[i]), float(high[i])),
            forms.band,
        ),
        Column("Sum of kernels", lambda i: float(result.total[i]), forms.number),
    ]
    rows = range(len(result))
    return Table(f"Predicted runs, by {result.estimator}", columns, rows, result.notes)


def _tables(
    result: Predictions, model: CompositionModel, source: str, unused: Mapping[str, str]
) -> list[Table]:
    """Show a single run in detail, several runs one per line."""
    unit = f" {result.unit}" if result.unit else ""
    of = f"of {source}" if source else "of the table"
    training = model.training
    basis: list[Note | str] = [
        f'Predicted by "{result.estimator}" (task: {model.preparation.state.task}), fitted to '
        f"{counted(len(training), 'run')} on {counted(len(training.devices), 'device')}.",
        *unused_notes(unused),
        *map(item, result.notes),
        *_band_notes(result, model),
        *_warning_notes(result),
    ]
    if len(result) > 1:
        return [_runs(result, f"End-to-end time {of}, {counted(len(result), 'run')}", unit, basis)]
    tables = [_run(result, f"End-to-end time of run {result.run[0]} {of}", unit, basis)]
    return [*tables, _parts(result, unit)]


def _runs(result: Predictions, title: str, unit: str, notes: Sequence[Note | str]) -> Table:
    low, high = result.band(SHOWN)
    columns = [
        Column("Run", lambda i: str(result.run[i]), key=True),
        Column("Sum of kernels", lambda i: result.total[i], forms.number),
        Column("Predicted", lambda i: result.predicted[i], forms.number),
        Column("90 % band", lambda i: (low[i], high[i]), forms.band),
        Column("Predicted from", lambda i: _fallback(result.fallback[i])),
        Column("Warnings", lambda i: len(result.warnings[i]), forms.number_or("–")),
    ]
    basis = [f"Unit:{unit or ' that of the table'}. Predicted: the median.", *notes]
    return Table(title, columns, range(len(result)), basis)


def _run(result: Predictions, title: str, unit: str, notes: Sequence[Note | str]) -> Table:
    low, high, predicted = result.low[0], result.high[0], result.predicted[0]
    columns = [
        Column("Band", lambda i: f"{100 * result.levels[i]:g} %", key=True),
        Column(f"Time{unit and f' ({unit.strip()})'}", lambda i: (low[i], high[i]), forms.band),
        Column("Below", lambda i: low[i] / predicted - 1, forms.change),
        Column("Above", lambda i: high[i] / predicted - 1, forms.change),
    ]
    answer = (
        f"Predicted: {format_number(float(predicted))}{unit} (median). Sum of kernels: "
        f"{format_number(float(result.total[0]))}{unit}. Predicted from: "
        f"{_fallback(str(result.fallback[0]))}."
    )
    return Table(title, columns, range(len(result.levels)), [answer, *notes])


def _parts(result: Predictions, unit: str) -> Table:
    """Show the parts between the sum of kernels and the prediction."""
    total = float(result.total[0])
    parts = {name: float(values[0]) for name, values in result.parts.items()}
    if len(parts) == 1:
        # A single part is the whole correction.
        parts = dict(zip(["correction"], parts.values(), strict=True))
    ends = ("sum of kernels", "predicted")
    rows = [(ends[0], total), *parts.items(), (ends[1], float(result.predicted[0]))]
    columns = [
        Column("Part", lambda row: row[0].replace("_", " "), key=True),
        Column(
            f"Time{unit and f' ({unit.strip()})'}", lambda row: (row[1], row[0] not in ends), _STEP
        ),
        Column("Share of sum", lambda row: row[1] / total, forms.percent),
    ]
    return Table("From the sum of kernels to the time of the run", columns, rows)


def _step(value: tuple[float, bool]) -> Cell:
    time, added = value
    sign = "+" if added and time > 0 else ""
    return forms.figure(Written(sign + format_number(time)), time)


#: A time, and whether it is added to another.
_STEP = Form(_step, right=True)


_FROM = {
    "device": "its device",
    "global": "all devices",
    "adapted": "all devices and its own runs",
}


def _fallback(name: str) -> str:
    return _FROM[name]


def _band_notes(result: Predictions, model: CompositionModel) -> list[str]:
    """Return a note on the basis of the bands of each regime."""
    notes = []
    for regime in dict.fromkeys(map(str, result.fallback)):
        if regime == "adapted":
            notes += _adapted_notes(result, model)
            continue
        bands = model.bands.get((result.estimator, regime))
        runs, group = REGIMES[regime]
        if bands is None:
            notes.append(
                f"Band of {runs}: the estimator's own, not calibrated, because the fit had too few "
                f"{group}s."
            )
            continue
        info = bands.info_[bands.levels.index(SHOWN)]
        own = f" Separate bands: {', '.join(bands.categories_)}." if bands.categories_ else ""
        notes.append(
            f"Band of {runs}: calibrated on {counted(info.n, 'run')}, each of the "
            f"{counted(info.groups, group)} held out in turn. Guarantee: "
            f"{in_words(info.guarantee, group)}.{own}"
        )
    return notes


def _adapted_notes(result: Predictions, model: CompositionModel) -> list[str]:
    """Return a note on the basis of the bands of each adapted device."""
    notes = []
    for device, adapted in model.adapted.items():
        learnt, similar = adapted.learnt[result.estimator], REGIMES[adapted.regime][1]
        basis = (
            f"calibrated on {counted(learnt.groups, f'held-out {similar}')}, each adapted to "
            f"{counted(len(adapted), 'run')} in the same way. Guarantee: none; it covers about "
            "what it states in simulations"
            if learnt.calibrated
            else f"not calibrated, because the fit had too few {similar}s"
        )
        notes.append(f"Band of runs on {device}, by {counted(len(adapted), 'run')}: {basis}.")
    return notes


def _warning_notes(result: Predictions) -> list[Note]:
    """Each warning once: the first run with it, and the number of others."""
    by_kind: dict[str, list[tuple[str, str]]] = {}
    for run, warnings in zip(result.run, result.warnings, strict=True):
        for warning in warnings:
            by_kind.setdefault(_VALUE.sub(r"\1", warning), []).append((str(run), warning))
    notes = []
    for same in by_kind.values():
        run, warning = same[0]
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        of = f" (run {run}{more})" if len(result) > 1 else ""
        notes.append(item(f"{warning}{of}."))
    return notes


def predictions(found: Predictions, ax: Axes | None = None) -> Axes:
    """Draw the predicted time of each run with its 90 % band, the longest first.

    Ticks are the uncorrected sums of kernels; hollow rows have an uncalibrated band. The axis is
    logarithmic where the times differ more than threefold.

    Parameters
    ----------
    found : Predictions
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    """
    from errcomp.report.drawing.forest import Row, forest

    low, high = found.band(SHOWN)
    order = [int(i) for i in np.argsort(-found.predicted, kind="stable")]
    unit = f" {found.unit}" if found.unit else ""
    rows = [
        Row(
            str(found.run[i]),
            float(found.predicted[i]),
            float(low[i]),
            float(high[i]),
            f"{format_number(float(found.predicted[i]))}{unit} [{format_number(float(low[i]))}, "
            f"{format_number(float(high[i]))}]",
            strong=bool(found.calibrated[i]),
        )
        for i in order
    ]
    shortest, longest = found.predicted.min(), found.predicted.max()
    return forest(
        ax,
        rows,
        title=f"Predicted times, n={count(len(rows), 'run')}",
        notes=[f"by {found.estimator}; {100 * SHOWN:g} % band; hollow: not calibrated"],
        x=f"predicted time ({found.unit or 'without a unit'})",
        beside="predicted",
        ticks=([float(found.total[i]) for i in order], "sum of kernels, uncorrected"),
        log=bool(shortest > 0 and longest > 3 * shortest),
    )
