"""Predictions of runs as tables for people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item
from errcomp.report.tables.calibration import REGIMES, SHOWN, counted, in_words, unused_notes
from errcomp.results import format_number

if TYPE_CHECKING:
    from errcomp.calibration.fitted import CompositionModel
    from errcomp.calibration.predictions import Predictions

__all__ = ["flat_predictions", "plain_predictions", "prediction_tables"]

#: Of warnings that differ in the value of a feature only, the value.
_VALUE = re.compile(r"^(\w+) \S+(?= .*is outside the fit's)")


def plain_predictions(found: Predictions) -> list[Table]:
    """Return the runs, one line each, without what only the model knows."""
    unit = f" ({found.unit})" if found.unit else ""
    low, high = found.band(SHOWN)
    columns = [
        Column("Run", lambda r: r["run"], key=True),
        Column(f"Predicted{unit}", lambda r: r["predicted"], forms.number),
        Column(f"{100 * SHOWN:g} % band{unit}", lambda r: r["band"], form=forms.as_written),
        Column("Sum of kernels", lambda r: r["total"], forms.number),
    ]
    rows = [
        {
            "run": str(run),
            "predicted": float(found.predicted[i]),
            "band": f"{format_number(float(low[i]))} … {format_number(float(high[i]))}",
            "total": float(found.total[i]),
        }
        for i, run in enumerate(found.run.tolist())
    ]
    return [Table(f"Predicted runs, by {found.estimator}", columns, rows, found.notes)]


def prediction_tables(
    found: Predictions, model: CompositionModel, source: str, unused: Mapping[str, str]
) -> list[Table]:
    """One run in detail, several runs one line each."""
    unit = f" {found.unit}" if found.unit else ""
    of = f"of {source}" if source else "of the table"
    training = model.training
    basis: list[Note | str] = [
        f'By "{found.estimator}", {model.preparation.state.task}, fitted to '
        f"{counted(len(training), 'run')} on {counted(len(training.devices), 'device')}.",
        *unused_notes(unused),
        *map(item, found.notes),
        *_band_notes(found, model),
        *_warning_notes(found),
    ]
    if len(found) > 1:
        return [_many(found, f"End-to-end time {of}, {counted(len(found), 'run')}", unit, basis)]
    tables = [_one(found, f"End-to-end time of run {found.run[0]} {of}", unit, basis)]
    return [*tables, _parts(found, unit)]


def _many(found: Predictions, title: str, unit: str, notes: Sequence[Note | str]) -> Table:
    low, high = found.band(SHOWN)
    rows = [
        {"run": str(run), "total": t, "predicted": p, "low": a, "high": b, "from": f, "n": len(w)}
        for run, t, p, a, b, f, w in zip(
            found.run, found.total, found.predicted, low, high, found.fallback, found.warnings,
            strict=True,
        )
    ]  # fmt: skip
    columns = [
        Column("Run", lambda row: row["run"], key=True),
        Column("Sum of kernels", lambda row: row["total"], forms.number),
        Column("Predicted", lambda row: row["predicted"], forms.number),
        Column("90 % band", _ends, forms.band),
        Column("Answered from", lambda row: _fallback(row["from"])),
        Column("Warnings", lambda row: str(row["n"] or "–"), form=forms.as_written),
    ]
    return Table(title, columns, rows, [f"Median and band in{unit or ' the unit given'}.", *notes])


def _one(found: Predictions, title: str, unit: str, notes: Sequence[Note | str]) -> Table:
    rows = [
        {"level": level, "low": found.low[0, i], "high": found.high[0, i]}
        for i, level in enumerate(found.levels)
    ]
    columns = [
        Column("Band", lambda row: f"{100 * row['level']:g} %", key=True),
        Column(f"Time{unit and f' ({unit.strip()})'}", _ends, forms.band),
        Column("Below", lambda row: row["low"] / found.predicted[0] - 1, forms.change),
        Column("Above", lambda row: row["high"] / found.predicted[0] - 1, forms.change),
    ]
    said = (
        f"Predicted: {format_number(float(found.predicted[0]))}{unit} (median). Sum of kernels: "
        f"{format_number(float(found.total[0]))}{unit}. Answered from: "
        f"{_fallback(str(found.fallback[0]))}."
    )
    return Table(title, columns, rows, [said, *notes])


def _parts(found: Predictions, unit: str) -> Table:
    """Show what leads from the sum of kernels to the prediction."""
    total = float(found.total[0])
    parts = {name: float(values[0]) for name, values in found.parts.items()}
    if len(parts) == 1:
        # What is other than nothing has no other name.
        parts = dict(zip(["correction"], parts.values(), strict=True))
    steps = {"sum of kernels": total, **parts, "predicted": float(found.predicted[0])}
    rows = [{"name": name, "time": time} for name, time in steps.items()]
    columns = [
        Column("Part", lambda row: row["name"].replace("_", " "), key=True),
        Column(f"Time{unit and f' ({unit.strip()})'}", _signed, form=forms.as_written),
        Column("Of the sum", lambda row: row["time"] / total, forms.percent),
    ]
    return Table("From the sum of kernels to the run", columns, rows)


def _signed(row: Mapping[str, Any]) -> str:
    sign = "+" if row["time"] > 0 and row["name"] not in ("sum of kernels", "predicted") else ""
    return sign + format_number(row["time"])


def _ends(row: Mapping[str, Any]) -> tuple[float, float]:
    return float(row["low"]), float(row["high"])


def _fallback(name: str) -> str:
    return "all devices" if name == "global" else "its device"


def _band_notes(found: Predictions, model: CompositionModel) -> list[str]:
    """Say for each regime that was used what its band rests on."""
    notes = []
    for regime in dict.fromkeys(map(str, found.fallback)):
        bands = model.bands.get((found.estimator, regime))
        what, group = REGIMES[regime]
        if bands is None:
            notes.append(
                f"Band of {what}: the model's own, not calibrated; too few {group}s to leave out."
            )
            continue
        info = bands.info_[bands.levels.index(SHOWN)]
        own = f" Calibrated apart: {', '.join(bands.categories_)}." if bands.categories_ else ""
        notes.append(
            f"Band of {what}: calibrated on {counted(info.n, 'run')}, each {group} left out in "
            f"turn ({info.groups}). Guarantee: {in_words(info.guarantee, group)}.{own}"
        )
    return notes


def _warning_notes(found: Predictions) -> list[Note]:
    """Every warning once: the first run that has it, and how many more."""
    by_kind: dict[str, list[tuple[str, str]]] = {}
    for run, warnings in zip(found.run, found.warnings, strict=True):
        for warning in warnings:
            by_kind.setdefault(_VALUE.sub(r"\1", warning), []).append((str(run), warning))
    notes = []
    for same in by_kind.values():
        run, warning = same[0]
        more = f"; likewise {len(same) - 1} more" if len(same) > 1 else ""
        of = f" (run {run}{more})" if len(found) > 1 else ""
        notes.append(item(f"{warning}{of}."))
    return notes


def flat_predictions(found: Predictions) -> list[dict[str, Any]]:
    """Return one row of plain values for each run: parts as columns, warnings as one text."""
    rows = []
    for row in found.rows():
        parts, warnings = row.pop("parts"), row.pop("warnings")
        row |= {f"part_{name}": value for name, value in parts.items()}
        rows.append({**row, "unit": found.unit, "warnings": "; ".join(warnings)})
    return rows
