"""Results of propagation as tables for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errcomp.cli._output import Column, Table
from errcomp.results import format_fraction, format_number

if TYPE_CHECKING:
    from errcomp.propagation import Outcome, Propagation, Validation

__all__ = ["propagation_tables", "validation_tables"]

_SHOWN = 0.9
_TOP = 8


def propagation_tables(found: Propagation, source: str) -> list[Table]:
    """One run in detail, several runs one line each."""
    title = f"Time of {{}} of {source or 'the table'}"
    if len(found.runs) > 1:
        return [_many(found, title.format(f"{len(found.runs)} runs"))]
    tables = [_one(found, title.format(f"run {found.runs[0]}"))]
    first = found.of()
    if first.by_class is not None:
        tables.append(_budget(first))
    if first.critical:
        tables.append(_critical(first))
    return tables


def _one(found: Propagation, title: str) -> Table:
    unit = f" {found.unit}" if found.unit else ""
    rows = [{"outcome": outcome} for outcome in found.outcomes]
    columns = [
        Column("Assumption", lambda row: row["outcome"].assumption, key=True),
        Column("Mean", lambda row: _number(row["outcome"].mean), right=True),
        Column("± sd", lambda row: _fraction(row["outcome"].relative_sd), right=True),
        Column("Growth", lambda row: _number(row["outcome"].growth, 2), right=True),
        Column("N eff", lambda row: _number(row["outcome"].effective_number, 3), right=True),
        *(_band_column(level) for level in (0.5, 0.9, 0.95)),
    ]
    first = found.of()
    notes = [
        f"Predicted: {format_number(first.prediction)}{unit}."
        + (f" Measured: {format_number(first.measured)}{unit}." if first.measured else "")
        + f" Error of the kernels, weighted with time: {format_fraction(first.kernel_sd)} sd.",
        *_says(first),
        *_caveats(found),
    ]
    return Table(title, columns, rows, notes)


def _band_column(level: float) -> Column:
    def show(row: Mapping[str, Any]) -> str:
        band = row["outcome"].band(level)
        return f"{_number(band.low)} … {_number(band.high)}"

    return Column(f"{100 * level:g} % band", show, right=True)


def _says(outcome: Outcome) -> list[str]:
    """Say in words what the first assumption makes of the error, and why."""
    if outcome.growth is None or outcome.relative_sd is None:
        return []
    sd, kernel = format_fraction(outcome.relative_sd), format_fraction(outcome.kernel_sd)
    number = outcome.effective_number
    if outcome.growth > 1.02:
        why = "the graph amplifies them"
    elif outcome.growth > 0.95:
        why = "almost nothing cancels: the errors share their causes"
    elif number is not None:
        why = f"errors cancel as if {number:.1f} kernels of equal error were independent"
    else:
        why = "errors cancel in part"
    notes = [f'Under "{outcome.assumption}" {kernel} become {sd}: {why}.']
    if outcome.bias is not None and abs(outcome.bias) >= 0.0005:
        direction = "longer" if outcome.bias > 0 else "shorter"
        amount = format_fraction(abs(outcome.bias))
        notes.append(f"Bias: the run is expected to take {amount} {direction} than predicted.")
    if outcome.saturated:
        notes.append(
            f"Saturated with probability {format_fraction(outcome.saturated)}: in those draws more "
            "work arrives than can be served, and no finite time exists."
        )
    return notes


def _budget(outcome: Outcome) -> Table:
    assert outcome.by_class is not None
    budget = outcome.by_class
    rows = [
        {"name": str(n), "time": float(t), "first": float(f), "total": float(g)}
        for n, t, f, g in zip(
            budget.names, budget.share_of_time, budget.first_order, budget.total, strict=True
        )
    ]
    columns = [
        Column("Kernel class", lambda row: row["name"], key=True),
        Column("Share of time", lambda row: _fraction(row["time"]), right=True),
        Column("Share of variance", lambda row: _fraction(row["first"]), right=True),
        Column("Without its error, sd", lambda row: _fraction(-_bought(row["total"])), right=True),
    ]
    rest = len(rows) - _TOP
    remaining = format_fraction(float(budget.first_order[_TOP:].sum()))
    notes = [f"{rest} more classes with {remaining} of the variance."]
    return Table(
        f'Where the error comes from, under "{outcome.assumption}"',
        columns,
        rows[:_TOP],
        notes if rest > 0 else [],
    )


def _bought(total: float) -> float:
    """How much smaller the standard deviation would be, a fraction."""
    return 1 - math.sqrt(max(0.0, 1 - total))


def _critical(outcome: Outcome) -> Table:
    ranked = sorted(outcome.critical.items(), key=lambda item: -item[1])
    rows = [{"name": name, "p": p} for name, p in ranked]
    columns = [
        Column("Event", lambda row: row["name"], key=True),
        Column("On the critical path", lambda row: _fraction(row["p"]), right=True),
    ]
    rest = len(rows) - _TOP
    notes = [f"{rest} more events."] if rest > 0 else []
    return Table("Critical path", columns, rows[:_TOP], notes)


def _many(found: Propagation, title: str) -> Table:
    first, *others = found.assumptions
    rows = [{"outcomes": {a: found.of(run, a) for a in found.assumptions}} for run in found.runs]

    def of(row: Mapping[str, Any]) -> Outcome:
        outcome: Outcome = row["outcomes"][first]
        return outcome

    def width(name: str) -> Column:
        def show(row: Mapping[str, Any]) -> str:
            outcome, band = of(row), row["outcomes"][name].band(_SHOWN)
            centre = outcome.median or outcome.prediction
            return f"{100 * (band.low / centre - 1):+.0f}/{100 * (band.high / centre - 1):+.0f} %"

        return Column(name.capitalize(), show, right=True)

    columns = [
        Column("Run", lambda row: of(row).run, key=True),
        Column("Predicted", lambda row: _number(of(row).prediction), right=True),
        Column("Median", lambda row: _number(of(row).median), right=True),
        Column("90 % band", lambda row: _ends(of(row)), right=True),
        *(width(name) for name in others),
    ]
    if any(outcome.measured for outcome in found.outcomes):
        columns.insert(4, Column("Measured", lambda row: _number(of(row).measured), right=True))
    unit = f" in {found.unit}" if found.unit else ""
    notes = [
        f'Times{unit}. Median and band under "{first}"; other columns: 90 % band around that '
        "median under other assumptions.",
        *_caveats(found),
    ]
    return Table(title, columns, rows, notes)


def _ends(outcome: Outcome) -> str:
    band = outcome.band(_SHOWN)
    return f"{_number(band.low)} … {_number(band.high)}"


def _caveats(found: Propagation) -> list[str]:
    """Every caveat once: of those that runs share the first, and in how many runs it holds."""
    notes = [f" · {caveat.message}." for caveat in found.caveats]
    by_code: dict[str, dict[str, str]] = {}
    for outcome in found.outcomes:
        for caveat in outcome.caveats:
            by_code.setdefault(caveat.code, {}).setdefault(outcome.run, caveat.message)
    for messages in by_code.values():
        run, message = next(iter(messages.items()))
        more = f" (run {run}; likewise {len(messages) - 1} more)" if len(messages) > 1 else ""
        notes.append(f" · {message}{more}.")
    return notes


def validation_tables(found: Validation, source: str) -> list[Table]:
    """Coverage per assumption, with what it costs in width."""
    assumptions = list(dict.fromkeys(row.assumption for row in found.rows))
    levels = list(dict.fromkeys(row.level for row in found.rows))
    rows = [{"name": name} for name in assumptions]

    def coverage(level: float) -> Column:
        def show(row: Mapping[str, Any]) -> str:
            r = found.row(row["name"], level)
            low, high = 100 * r.coverage_low, 100 * r.coverage_high
            return f"{100 * r.coverage:.0f} [{low:.0f}, {high:.0f}]"

        return Column(f"in {100 * level:g} % band", show, right=True)

    columns = [
        Column("Assumption", lambda row: row["name"], key=True),
        *(coverage(level) for level in levels),
        Column(
            "Width (90 %)",
            lambda row: _fraction(found.row(row["name"], _SHOWN).mean_width),
            right=True,
        ),
        Column(
            "Score (90 %)",
            lambda row: _fraction(found.row(row["name"], _SHOWN).interval_score),
            right=True,
        ),
    ]
    first = found.rows[0]
    how = f"leaving each {found.left_out} out" if found.left_out else "errors from another table"
    clusters = f"{first.n_clusters} {found.left_out or 'cluster'}s"
    notes = [
        f"Per cent of {first.n} totals ({found.total}) inside the band, with 95 % intervals that "
        f"take totals of one {found.left_out or 'cluster'} as alike ({clusters}).",
        "Width: of the band over the corrected prediction. Score: interval score over the measured "
        "total; lower is better.",
    ]
    return [Table(f"Do the bands hold? {source or 'the table'}, {how}", columns, rows, notes)]


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return "–"
    return "∞" if math.isinf(value) else format_number(value, digits)


def _fraction(value: float | None) -> str:
    return "–" if value is None else format_fraction(value)
