"""Reports of the adaptation of a model to devices, and of the runs to measure for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from errcomp.calibration.view.model import counted, unused_notes
from errcomp.report import forms
from errcomp.report.model import Column, Figure, Note, Report, Table, item

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.calibration.transfer.adaptation import Adaptation, AdaptedDevice
    from errcomp.calibration.transfer.choosing import RunPlan


def adaptation_view(result: Adaptation) -> Report:
    """Return a row for each device."""
    columns = [
        Column("Device", lambda row: row.device, key=True),
        Column("In the fit", lambda row: "yes" if row.in_fit else "no"),
        Column("Runs", lambda row: row.runs, forms.number),
        Column("MAPE before", lambda row: row.error_before, forms.percent),
        Column("Predictions move", lambda row: row.shift, forms.change),
        Column("Band (× before)", lambda row: row.width, forms.significant(2)),
        Column("Learnt from", _learnt_from),
    ]
    notes: list[Note | str] = [
        f"Estimator: {result.estimator}. MAPE before: error on these runs before the adaptation. "
        "Predictions move: mean change of the predictions. Band: mean factor by which the width of "
        "the 90 % bands changes. Both are means over all runs of the original fit.",
        *unused_notes({run.run: run.reason for run in result.left_out}),
        *(item(f"{one.run} was used, though flagged: {one.evidence}.") for one in result.flagged),
        *_few(result),
    ]
    each = [f"{row.device}: {counted(row.runs, 'run')}" for row in result.rows]
    title = "Adapted model"
    draw = partial(moved, result)
    return Report(
        title=title,
        line=each,
        tables=[Table(title, columns, result.rows, notes)],
        figures=[Figure("figure", "Mean change of the predictions for each device.", draw)],
        draw=draw,
    )


def moved(result: Adaptation, ax: Axes | None = None) -> Axes:
    """Draw the mean change of the predictions for each device."""
    from errcomp.report.drawing.forest import Row, forest

    rows = [
        Row(
            row.device,
            100 * row.shift,
            None,
            None,
            f"{100 * row.shift:+.1f} %, band × {row.width:.2f}",
            n=row.runs,
        )
        for row in result.rows
    ]
    title = f"Adapted to {counted(len(rows), 'device')}"
    x = "mean change of predictions (%)"
    notes = [f"by {result.estimator}; n: measured runs"]
    reference = (0.0, "as before")
    return forest(ax, rows, title=title, notes=notes, x=x, beside="change", reference=reference)


def _learnt_from(row: AdaptedDevice) -> str:
    kind = "model" if row.in_fit else "device"
    return f"{counted(row.groups, f'held-out {kind}')}" if row.groups else "nothing: too few"


def _few(result: Adaptation) -> list[str]:
    """Say what a promise needs, where the fit had too little for it."""
    if all(row.groups for row in result.rows):
        return []
    return [
        "With fewer than three devices (models, for a device of the fit) that have several runs, a "
        "fit does not show how much devices differ. They are then taken to differ by 10 %, and the "
        "band is not calibrated. Fit the model to more devices."
    ]


def plan_view(result: RunPlan) -> Report:
    """Return the runs to measure, in order."""
    columns = [
        Column("Run", lambda row: row.run, key=True),
        Column("Device", lambda row: row.device),
        Column("Width of 90 % bands", lambda row: row.width, forms.percent),
        Column("Of random runs", lambda row: row.width_random, forms.percent),
    ]
    answer = (
        "Measure these runs, in this order, and pass them to `errcomp calibrate adapt`. Today the "
        f"mean width of the 90 % bands of {counted(result.targets, 'target run')} is "
        f"{100 * result.width:.0f} % of the prediction. Width of 90 % bands: the mean width to "
        "expect after measuring the run of this row and all runs above it. Of random runs: the "
        "mean width to expect after measuring as many runs chosen at random."
    )
    lacking = result.devices < result.devices_needed
    notes = [
        answer,
        *unused_notes(dict.fromkeys(result.left_out, "no device is given")),
        *(
            [
                "A 90 % band is guaranteed for a new device only with at least "
                f"{result.devices_needed} devices in the fit; this fit has {result.devices}."
            ]
            if lacking and not all(row.in_fit for row in result.rows)
            else []
        ),
    ]
    title = "Runs to measure next"
    after = result.rows[-1].width
    line = [
        counted(len(result.rows), "run"),
        f"90 % bands {100 * result.width:.0f} → {100 * after:.0f} % wide",
        counted(result.targets, "target"),
    ]
    draw = partial(planned, result)
    return Report(
        title=title,
        line=line,
        tables=[Table(title, columns, result.rows, notes)],
        figures=[Figure("figure", "Expected width of the bands; ticks: of random runs.", draw)],
        draw=draw,
    )


def planned(result: RunPlan, ax: Axes | None = None) -> Axes:
    """Draw the expected width of the bands after each run, and that after random runs."""
    from errcomp.report.drawing.forest import Row, forest

    rows = [
        Row(f"{i}. {row.run}", 100 * row.width, None, None, f"{100 * row.width:.0f} %")
        for i, row in enumerate(result.rows, start=1)
    ]
    return forest(
        ax,
        rows,
        title=f"Expected width of 90 % bands, {counted(result.targets, 'target')}",
        notes=[f"by {result.estimator}; each row: after this run and those above it"],
        x="mean width of the 90 % bands (% of the prediction)",
        beside="width",
        reference=(100 * result.width, "today"),
        ticks=([100 * row.width_random for row in result.rows], "runs chosen at random"),
    )
