"""Reports of the adaptation of a model to devices, and of the runs to measure for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errcomp.calibration.view.model import counted, unused_notes
from errcomp.report import forms
from errcomp.report.model import Column, Note, Report, Table, item

if TYPE_CHECKING:
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
        f"By {result.estimator}. MAPE before: of these runs, before the adaptation. Predictions, "
        "90 % band: mean over runs like those of the fit, compared with those before.",
        *unused_notes({run.run: run.reason for run in result.left_out}),
        *(item(f"{one.run} was used, though flagged: {one.evidence}.") for one in result.flagged),
        *_few(result),
    ]
    each = [f"{row.device}: {counted(row.runs, 'run')}" for row in result.rows]
    title = "Adapted model"
    return Report(title=title, line=each, tables=[Table(title, columns, result.rows, notes)])


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
        f"Measure these runs, in this order, and pass them to `errcomp calibrate adapt`. The 90 % "
        f"bands of {counted(result.targets, 'target')} are {100 * result.width:.0f} % wide today "
        "(mean, of the prediction). Beside each run: the width to expect once it and those above "
        "it are measured, and that for as many runs chosen at random."
    )
    lacking = result.devices < result.devices_needed
    notes = [
        answer,
        *unused_notes(dict.fromkeys(result.left_out, "no device is given")),
        *(
            [
                f"For a new device a 90 % band is guaranteed from {result.devices_needed} devices "
                f"in the fit on; this fit has {result.devices}."
            ]
            if lacking and not all(row.in_fit for row in result.rows)
            else []
        ),
    ]
    title = "Runs to measure next"
    names = ", ".join(row.run for row in result.rows)
    line = [f"{counted(len(result.rows), 'run')}: {names}", counted(result.targets, "target")]
    return Report(title=title, line=line, tables=[Table(title, columns, result.rows, notes)])
