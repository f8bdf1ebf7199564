"""The report of new validations that were compared with a history."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing import words
from errcomp.report.model import (
    Cell,
    Column,
    Figure,
    Form,
    Note,
    Report,
    Table,
    Tone,
    Verdict,
    item,
)
from errcomp.results import format_fraction, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.gate import GateResult
    from errcomp.halflife.gate.checking import Recalibration, ValidationCheck

__all__ = ["about_noise", "check_view", "shifts", "within"]

_REPEAT = "repeat"
#: From where the noise is worth a sentence: scale, degrees of freedom of its tail, correlation; and
#: the values that it takes to know the tail.
_MORE, _HEAVY, _SLOW, _MANY = 1.2, 8, 0.1, 50
#: Series listed in one table.
_SHOWN = 20
_OUTCOMES: Mapping[str, Tone] = {"pass": "good", "regression": "bad"}
#: Words of documents that reports show in other words.
_SHOWN_AS = {
    "moved within the promise": "changed within the promise",
    "error no larger": "changed, error no larger",
    "as before": "unchanged",
    "cannot be told": "cannot tell yet",
    "repeat": "repeat needed",
    "reference": "measurement",
    "predictor": "prediction",
    "not judged": "not evaluated",
}


def check_view(check: ValidationCheck) -> Report:
    """Return the series that changed, and old against new factors where they were fitted."""
    result = check.result
    tables = [_moved(result, check.notes)]
    if check.recalibration is not None:
        tables.append(_recalibrated(check.recalibration))
    return Report(
        title=f"Is the model still valid at {result.version}?",
        line=[_shown(result.outcome), f"n={len(result.names):,} series"],
        verdicts=[
            Verdict(
                _shown(result.outcome).capitalize(),
                f"— {_tally(result)}.",
                _OUTCOMES.get(result.outcome, "doubt"),
            )
        ],
        tables=tables,
        method=[
            ("Number of this check", str(result.look)),
            (
                "False-alarm rate of this check",
                f"{result.level:.2g}, out of {result.alpha:g} for the first 1,000 checks together",
            ),
            ("Margin", format_fraction(_error(result.margin)) if result.margin else "none"),
        ],
        notes=list(check.notes),
        figures=[
            Figure(
                "shifts",
                "How far the error of each series changed, the largest first. The error grew in "
                "the filled rows.",
                partial(shifts, check),
            )
        ],
        draw=partial(shifts, check),
    )


def _shown(word: str) -> str:
    return _SHOWN_AS.get(word, word)


def _tally(result: GateResult) -> str:
    counts = [f"{_shown(name)}: {n}" for name, n in result.counts().items() if n]
    return f"{len(result.names)} series; {', '.join(counts)}"


def _moved(result: GateResult, notes: tuple[str, ...]) -> Table:
    at = np.flatnonzero((result.p_adjusted <= result.level) | (result.verdict == _REPEAT))
    at = at[np.argsort(-np.abs(result.shift[at]), kind="stable")]
    rows = at[:_SHOWN].tolist()

    def shift(i: int) -> forms.Ends:
        return _error(result.shift[i]), _error(result.low[i]), _error(result.high[i])

    columns = [
        Column("Series", lambda i: result.names[i], key=True),
        Column("Verdict", lambda i: _shown(result.verdict[i])),
        Column("Error before", lambda i: _error(result.baseline[i]), forms.change),
        Column("Error now", lambda i: _error(result.new[i]), forms.change),
        Column("Shift", shift, forms.changes()),
        Column("Between", result.releases),
        Column("What changed", lambda i: _shown(result.moved_by[i])),
    ]
    if (result.verdict == _REPEAT).any():
        columns.insert(2, Column("Runs to decide", lambda i: _runs(result, i)))
    worst = [x for x in result.detectable.tolist() if math.isfinite(x)]
    lines: list[Note | str] = [
        f"{_shown(result.outcome).upper()}. {_tally(result)}.",
        f"This is check number {result.look} of this history. A series raises an alarm if its "
        "p-value, corrected for the number of series, is at most "
        f"{format_number(result.level, 2)}. Over the first 1,000 checks together, the probability "
        f"of a false alarm is at most {100 * result.alpha:g} %.",
        *about_noise(result),
    ]
    if worst:
        lines.append(
            f"In the median series, a shift {_size(float(np.median(worst)))} would be detected "
            f"half of the time{within(result)}. A pass does not rule out smaller shifts."
        )
    if len(at) > len(rows):
        lines.append(f"{len(at) - len(rows)} more series changed; --json lists all.")
    lines += [item(text) for text in dict.fromkeys([*filter(None, result.why.tolist()), *notes])]
    return Table(f"Version {result.version} compared with earlier versions", columns, rows, lines)


def about_noise(result: GateResult) -> list[str]:
    """Say how the noise between checks differs from normal noise of the size of repeats."""
    lines = []
    if result.law.scale >= _MORE:
        lines.append(
            f"Validations of successive versions scatter {result.law.scale:.2g} times as much as "
            "repeats. The test allows for this."
        )
    if result.law.df < _HEAVY and result.law.n >= _MANY:
        lines.append(
            "The noise has single values far off, as often as a Student t distribution of "
            f"{result.law.df:.2g} degrees of freedom. The test allows for this."
        )
    if result.autocorrelation is not None and result.autocorrelation >= _SLOW:
        lines.append(
            f"The noise of successive checks is correlated ({result.autocorrelation:.2f}). The "
            "test allows for this, but a slow swing that this correlation does not explain counts "
            "as a shift."
        )
    return lines


def within(result: GateResult) -> str:
    """Say how long a shift must last to be found as often as the table says."""
    return "" if "repeats" in result.noise.tolist() else " within five checks"


def _runs(result: GateResult, i: int) -> str:
    if result.verdict[i] != _REPEAT or result.repeats_needed is None:
        return "–"
    return str(result.repeats_needed[i] or "over 20")


def _size(shift: float) -> str:
    """Write a shift on the log scale; with few degrees of freedom it may exceed any number."""
    if shift < math.log(2):
        return f"of {format_fraction(math.expm1(shift))}"
    factor = math.exp(min(shift, 700.0))
    return f"by a factor of {f'{factor:,.0f}' if 10 <= factor < 1e6 else f'{factor:.2g}'}"


def _recalibrated(factors: Recalibration) -> Table:
    columns = [
        Column("Group", lambda g: factors.groups[g], key=True),
        Column("Series", lambda g: int(factors.n_series[g]), forms.count),
        Column("Multiply predictions by", partial(_factor, factors), _FACTOR),
        Column("RMS error, old", lambda g: _error(factors.old_error[g]), forms.finite_percent),
        Column("RMS error, new", lambda g: _error(factors.new_error[g]), forms.finite_percent),
        Column("Evaluated on", lambda g: _shown(factors.judged_by[g])),
    ]
    notes = [
        "Factors are fitted to the errors since the last step of each series (a step is a lasting "
        "change of the error). The new error is computed on held-out series, or on held-out "
        "versions if the group has one series.",
    ]
    if math.isfinite(factors.new_total):
        old, new = (format_fraction(_error(x)) for x in (factors.old_total, factors.new_total))
        notes.append(
            f"RMS error over all groups that could be evaluated: {old} before, {new} with "
            "new factors."
        )
    rows = range(len(factors.groups))
    return Table("Recalibrated: old against new", columns, rows, notes)


def _factor(factors: Recalibration, g: int) -> forms.Ends:
    factor, low, high = (float(x[g]) for x in (factors.factor, factors.low, factors.high))
    return (factor, low, high) if math.isfinite(low) else (factor, None, None)


def _written_factor(ends: forms.Ends) -> Cell:
    """Write a factor with as many decimals as its interval supports."""
    _, low, high = ends
    width = None if low is None or high is None else (high - low) / 2
    decimals = 2 if width is None else 3 if width < 1e-3 else -math.floor(math.log10(width))
    return forms.interval(min(max(decimals, 1), 3)).write(ends)


_FACTOR = Form(_written_factor, right=True)


def _error(value: float) -> float:
    """Return an error on the log scale as a fraction."""
    return math.expm1(value)


def shifts(check: ValidationCheck, ax: Axes | None = None) -> Axes:
    """Draw how far the error of each series shifted at the checked version, the largest first.

    The error grew in the filled rows. It did not grow in the hollow ones.

    Parameters
    ----------
    check : ValidationCheck
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

    result = check.result
    at = np.flatnonzero(np.isfinite(result.shift))
    if not len(at):
        raise InputError(
            f"no series was validated both under version {result.version} and before it. Add "
            "validations of the same series under an earlier version."
        )
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
        title=f"Shift of errors at {words.shorten(result.version)}, "
        f"n={words.count(len(rows), 'series')}",
        notes=[
            "change of predicted / measured, with a separate 95 % interval for each series",
            "filled: the error grew; n: earlier versions compared",
        ],
        x="change of predicted / measured (%)",
        beside="change",
        reference=(0.0, "unchanged"),
    )
