"""What people see of new validations held against a history."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing import words
from errcomp.report.model import Column, Note, Report, Table, Tone, Verdict, item
from errcomp.results import format_fraction, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.gate import GateResult
    from errcomp.halflife.gate.checking import Recalibration, ValidationCheck

__all__ = ["check_view", "shifts"]

#: Series listed in one table.
_SHOWN = 20
_OUTCOMES: Mapping[str, Tone] = {"pass": "good", "regression": "bad"}
_MOVED = {"reference": "the measured", "predictor": "the prediction"}


def check_view(check: ValidationCheck) -> Report:
    """Return the series that moved, and old against new factors where they were fitted."""
    result = check.result
    counts = [f"{n} series {name}" for name, n in result.counts().items() if n]
    tables = [_moved(result, check.notes)]
    if check.recalibration is not None:
        tables.append(_recalibrated(check.recalibration))
    return Report(
        title=f"Is it still valid at {result.version}?",
        line=[result.outcome, f"n={len(result.names)} series"],
        verdicts=[
            Verdict(
                result.outcome.capitalize(),
                f"— {', '.join(counts) or 'no series'}.",
                _OUTCOMES.get(result.outcome, "doubt"),
            )
        ],
        tables=tables,
        method=[
            ("Look", str(result.look)),
            ("Level of this look", f"{result.level:.3g} of {result.alpha:g} over all looks"),
            ("Margin", "none" if math.isnan(result.margin) else f"{result.margin:g} (log scale)"),
        ],
        notes=list(check.notes),
        draw=partial(shifts, check),
    )


def _moved(result: GateResult, notes: tuple[str, ...]) -> Table:
    at = np.flatnonzero(result.p_adjusted <= result.level)
    at = at[np.argsort(-np.abs(result.shift[at]), kind="stable")]
    rows = at[:_SHOWN].tolist()

    def shift(i: int) -> forms.Ends:
        return _error(result.shift[i]), _error(result.low[i]), _error(result.high[i])

    columns = [
        Column("Series", lambda i: result.names[i], key=True),
        Column("Verdict", lambda i: result.verdict[i]),
        Column("Error before", lambda i: _error(result.baseline[i]), forms.change),
        Column("Error now", lambda i: _error(result.new[i]), forms.change),
        Column("Shift", shift, forms.changes()),
        Column("Between", result.releases),
        Column("What moved", lambda i: _MOVED.get(result.moved_by[i], result.moved_by[i])),
    ]
    counts = {name: int((result.verdict == name).sum()) for name in dict.fromkeys(result.verdict)}
    tally = ", ".join(f"{n} {name}" for name, n in counts.items())
    worst = [x for x in result.detectable.tolist() if math.isfinite(x)]
    lines: list[Note | str] = [
        f"{result.outcome.upper()}. {len(result.names)} series: {tally}.",
        f"Look {result.look} of this gate: alarms at p ≤ {format_number(result.level, 2)}, "
        "corrected for the number of series, so that all looks together raise a false one in at "
        f"most {100 * result.alpha:g} % of cases.",
    ]
    if worst:
        lines.append(
            f"A shift {_size(float(np.median(worst)))} (median series) would have been found with "
            "probability 1/2: a pass says no more."
        )
    if len(at) > len(rows):
        lines.append(f"{len(at) - len(rows)} more moved (--json has all).")
    lines += [item(text) for text in dict.fromkeys([*filter(None, result.why.tolist()), *notes])]
    return Table(f"Version {result.version} against those before", columns, rows, lines)


def _size(shift: float) -> str:
    """Write a shift on the log scale; of few degrees of freedom it may be beyond any number."""
    if shift < math.log(2):
        return f"of {format_fraction(math.expm1(shift))}"
    factor = math.exp(min(shift, 700.0))
    return f"by a factor of {f'{factor:,.0f}' if 10 <= factor < 1e6 else f'{factor:.2g}'}"


def _recalibrated(factors: Recalibration) -> Table:
    columns = [
        Column("Group", lambda g: factors.groups[g], key=True),
        Column("Series", lambda g: int(factors.n_series[g]), forms.count),
        Column("Multiply predictions by", partial(_factor, factors), forms.interval(3)),
        Column("RMS error, old", lambda g: _error(factors.old_error[g]), forms.finite_percent),
        Column("RMS error, new", lambda g: _error(factors.new_error[g]), forms.finite_percent),
        Column("Judged on", lambda g: factors.judged_by[g]),
    ]
    notes = [
        "Factors since the last step of each series; the new error is that of series (or versions) "
        "that the factor was not fitted to.",
    ]
    if math.isfinite(factors.new_total):
        old, new = (format_fraction(_error(x)) for x in (factors.old_total, factors.new_total))
        notes.append(f"All groups that could be judged: {old} before, {new} with new factors.")
    rows = range(len(factors.groups))
    return Table("Recalibrated: old against new", columns, rows, notes)


def _factor(factors: Recalibration, g: int) -> forms.Ends:
    factor, low, high = (float(x[g]) for x in (factors.factor, factors.low, factors.high))
    return (factor, low, high) if math.isfinite(low) else (factor, None, None)


def _error(value: float) -> float:
    """Return an error on the log scale as a fraction."""
    return math.expm1(value)


def shifts(found: ValidationCheck, ax: Axes | None = None) -> Axes:
    """Draw how far the error of each series moved at the version checked, the largest first.

    Filled rows are those whose error grew; hollow ones moved without that, or did not move.

    Parameters
    ----------
    found : ValidationCheck
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No series has a value before and after.
    MissingExtraError
        Matplotlib is not installed.
    """
    from errcomp.report.drawing.forest import Row, forest

    result = found.result
    at = np.flatnonzero(np.isfinite(result.shift))
    if not len(at):
        raise InputError(f"no series was validated both before {result.version} and with it")
    at = at[np.argsort(-np.abs(result.shift[at]), kind="stable")]
    grew = set(result.blamed().tolist())
    rows = []
    for i in map(int, at):
        low, value, high = (100 * math.expm1(x[i]) for x in (result.low, result.shift, result.high))
        known = math.isfinite(low)
        rows.append(
            Row(
                result.names[i],
                value,
                low if known else None,
                high if known else None,
                words.signed(value / 100, words.exact),
                int(result.n_baseline[i]),
                strong=i in grew,
            )
        )
    return forest(
        ax,
        rows,
        title=f"How errors moved at {words.shorten(result.version)}, "
        f"n={words.count(len(rows), 'series')}",
        notes=[
            "change of predicted / measured with 95 % interval, each by itself",
            "filled: the error grew; n: versions in its baseline",
        ],
        x="change of predicted / measured (%)",
        beside="change",
        reference=(0.0, "as before"),
    )
