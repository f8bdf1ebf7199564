"""What a gate found, as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item
from errcomp.results import format_change, format_fraction, format_number

if TYPE_CHECKING:
    from errcomp.halflife.gate.checking import Checked
    from errcomp.halflife.gate.recalibration import Recalibration
    from errcomp.halflife.gate.result import GateResult

__all__ = ["check_tables"]

#: Series listed in one table.
_SHOWN = 20


def check_tables(found: Checked) -> list[Table]:
    """Return the series that moved, and old against new factors where they were fitted."""
    tables = [_moved(found.result, found.notes)]
    if found.recalibration is not None:
        tables.append(_recalibrated(found.recalibration))
    return tables


def _moved(result: GateResult, notes: tuple[str, ...]) -> Table:
    at = np.flatnonzero(result.p_adjusted <= result.level)
    at = at[np.argsort(-np.abs(result.shift[at]), kind="stable")]
    rows = [_row(result, int(i)) for i in at[:_SHOWN]]
    columns = [
        Column("Series", lambda row: row["name"], key=True),
        Column("Verdict", lambda row: row["verdict"]),
        Column("Error before", lambda row: row["before"], form=forms.as_written),
        Column("Error now", lambda row: row["now"], form=forms.as_written),
        Column("Shift", lambda row: row["shift"], form=forms.as_written),
        Column("Between", lambda row: row["between"]),
        Column("What moved", lambda row: row["moved"]),
    ]
    counts = {name: int((result.verdict == name).sum()) for name in dict.fromkeys(result.verdict)}
    told = ", ".join(f"{n} {name}" for name, n in counts.items())
    worst = [x for x in result.detectable.tolist() if math.isfinite(x)]
    said: list[Note | str] = [
        f"{result.outcome.upper()}. {len(result.names)} series: {told}.",
        f"Look {result.look} of this gate: alarms at p ≤ {format_number(result.level, 2)}, "
        "corrected for the number of series, so that all looks together raise a false one in at "
        f"most {100 * result.alpha:g} % of cases.",
    ]
    if worst:
        said.append(
            f"A shift {_size(float(np.median(worst)))} (median series) would have been found with "
            "probability 1/2: a pass says no more."
        )
    if len(at) > len(rows):
        said.append(f"{len(at) - len(rows)} more moved (--json has all).")
    said += [item(text) for text in dict.fromkeys([*filter(None, result.why.tolist()), *notes])]
    return Table(f"Version {result.version} against those before", columns, rows, said)


def _row(result: GateResult, i: int) -> dict[str, Any]:
    shift = [math.expm1(x[i]) for x in (result.shift, result.low, result.high)]
    return {
        "name": result.names[i],
        "verdict": str(result.verdict[i]),
        "before": format_change(math.expm1(result.baseline[i])),
        "now": format_change(math.expm1(result.new[i])),
        "shift": format_change(*shift),
        "between": result.releases(i),
        "moved": {"reference": "the measured", "predictor": "the prediction"}.get(
            str(result.moved_by[i]), str(result.moved_by[i])
        ),
    }


def _size(shift: float) -> str:
    """Write a shift on the log scale; of few degrees of freedom it may be beyond any number."""
    if shift < math.log(2):
        return f"of {format_fraction(math.expm1(shift))}"
    factor = math.exp(min(shift, 700.0))
    return f"by a factor of {f'{factor:,.0f}' if 10 <= factor < 1e6 else f'{factor:.2g}'}"


def _recalibrated(found: Recalibration) -> Table:
    rows = [
        {
            "group": name,
            "factor": found.factor[g],
            "low": found.low[g],
            "high": found.high[g],
            "old": found.old_error[g],
            "new": found.new_error[g],
            "by": str(found.judged_by[g]),
            "n": int(found.n_series[g]),
        }
        for g, name in enumerate(found.groups)
    ]
    columns = [
        Column("Group", lambda row: row["group"], key=True),
        Column("Series", lambda row: row["n"], forms.count),
        Column("Multiply predictions by", _factor, form=forms.as_written),
        Column("RMS error, old", lambda row: _error(row["old"]), form=forms.as_written),
        Column("RMS error, new", lambda row: _error(row["new"]), form=forms.as_written),
        Column("Judged on", lambda row: row["by"]),
    ]
    notes = [
        "Factors since the last step of each series; the new error is that of series (or versions) "
        "that the factor was not fitted to.",
    ]
    if math.isfinite(found.new_total):
        notes.append(
            f"All groups that could be judged: {_error(found.old_total)} before, "
            f"{_error(found.new_total)} with new factors."
        )
    return Table("Recalibrated: old against new", columns, rows, notes)


def _factor(row: Any) -> str:
    if not math.isfinite(row["low"]):
        return f"{row['factor']:.3f}"
    return f"{row['factor']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def _error(value: float) -> str:
    return format_fraction(math.expm1(value)) if math.isfinite(value) else "–"
