"""Results of propagation as tables for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errcomp.propagation.errors.residuals import LEVELS, NOT_MODELLED
from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item
from errcomp.results import format_fraction, format_number

if TYPE_CHECKING:
    from errcomp.propagation import Outcome, Propagation, Validation

__all__ = ["flat_outcomes", "propagation_tables", "validation_tables"]

_SHOWN = 0.9
_TOP = 8
_NAMED = 2
_FLAT = (
    "run",
    "assumption",
    "prediction",
    "measured",
    "mean",
    "sd",
    "median",
    "bias",
    "relative_sd",
    "kernel_sd",
    "growth",
    "effective_number",
    "saturated",
)


def propagation_tables(found: Propagation, source: str) -> list[Table]:
    """One run in detail, several runs one line each."""
    first = found.of()
    # Only sums have budgets; without one it may be the time of a graph.
    sums = any(outcome.by_class is not None for outcome in found.outcomes)
    what, of = "Sum of kernel times" if sums else "Total time", source or "the table"
    if len(found.runs) > 1:
        return [_many(found, f"{what} of {len(found.runs)} runs of {of}")]
    # A table without runs is one run without a name.
    named = "" if found.runs[0] == "run" else f"of {found.runs[0]} "
    tables = [_one(found, f"{what} {named}of {of}")]
    if first.by_class is not None:
        tables.append(_budget(first))
    if first.critical:
        tables.append(_critical(first))
    if first.assumption == "estimated" and found.model.components is not None:
        tables.append(_shared(found))
    return [table for table in tables if table.rows]


def _one(found: Propagation, title: str) -> Table:
    unit = f" {found.unit}" if found.unit else ""
    rows = [{"outcome": outcome} for outcome in found.outcomes]
    columns = [
        Column("Assumption", lambda row: row["outcome"].assumption, key=True),
        Column("Mean", lambda row: row["outcome"].mean, forms.number),
        Column("sd", lambda row: row["outcome"].relative_sd, forms.percent),
        Column("Growth", lambda row: row["outcome"].growth, forms.significant(2)),
        *(_band_column(level) for level in (0.5, 0.9, 0.95)),
    ]
    if any(outcome.effective_number is not None for outcome in found.outcomes):
        number = Column("Effective number", _effective, forms.significant(3))
        columns.insert(4, number)
    first = found.of()
    notes: list[Note | str] = [
        f"Predicted: {format_number(first.prediction)}{unit}."
        + (f" Measured: {format_number(first.measured)}{unit}." if first.measured else "")
        + f" Error of the kernels, weighted with time: {format_fraction(first.kernel_sd)} sd.",
        *_outside(first),
        *_says(first),
        *_basis(found),
        # How often there is no finite time has been said.
        *_caveats(found, without="infinite" if first.saturated else ""),
    ]
    return Table(title, columns, rows, notes)


def _effective(row: Mapping[str, Any]) -> float | None:
    outcome: Outcome = row["outcome"]
    return outcome.effective_number


def _band_column(level: float) -> Column:
    def band(row: Mapping[str, Any]) -> tuple[float, float]:
        found = row["outcome"].band(level)
        return found.low, found.high

    return Column(f"{100 * level:g} % band", band, forms.band)


def _says(outcome: Outcome) -> list[str]:
    """Say in words what the first assumption makes of the error, and why."""
    notes = []
    if outcome.growth is not None and outcome.relative_sd is not None:
        sd, kernel = format_fraction(outcome.relative_sd), format_fraction(outcome.kernel_sd)
        notes.append(f'Under "{outcome.assumption}" {kernel} become {sd}: {_why(outcome)}.')
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


def _outside(outcome: Outcome) -> list[str]:
    """Say that the measured total is where the widest band does not reach."""
    widest = outcome.bands[-1]
    if outcome.measured is None or widest.low <= outcome.measured <= widest.high:
        return []
    side = "above" if outcome.measured > widest.high else "below"
    level = f"{100 * widest.level:g} %"
    return [f'The measured time lies {side} the {level} band under "{outcome.assumption}".']


def _basis(found: Propagation) -> list[str]:
    """Say whose errors these are, and for what the bands hold."""
    model = found.model
    if model.components is None:
        return []
    devices = len(model.devices)
    runs = f"Errors of {model.n_runs} measured run{'s' if model.n_runs > 1 else ''}"
    where = f"on {devices} device{'s' if devices > 1 else ''}"
    new = "a device that is new" if model.components.cluster == "device" else "another run on it"
    notes = [f"{runs} {where}; bands are those for {new}."]
    df, observed = model.tails.combined, model.tails.observed
    if "estimated" in found.assumptions and not math.isinf(df):
        seen = ""
        if observed is not None:
            of = "of" if model.components.cluster == "run" else "on"
            seen = f"the errors {of} these {observed.n_clusters} {model.components.cluster}s and "
        notes.append(
            f'Bands under "estimated" have the tails of {seen}a Student t with {df:.1f} degrees '
            "of freedom; sd is that of the propagated moments."
        )
    return notes


def _why(outcome: Outcome) -> str:
    assert outcome.growth is not None  # the caller asks where there is one
    if outcome.growth > 1.02:
        return "the graph amplifies them"
    if outcome.growth > 0.95:
        return "almost nothing cancels: the errors share their causes"
    if outcome.effective_number is None:
        return "errors cancel in part"
    number = format_number(outcome.effective_number, 3)
    return f"errors cancel as if {number} kernels of equal error were independent"


def _shared(found: Propagation) -> Table:
    """Show the estimated correlation of two kernels by what they have in common."""
    model = found.model
    assert model.components is not None  # the caller asks where they were estimated
    parts = model.components
    of_run = dict(zip(LEVELS, parts.levels, strict=True))
    shown = {
        "the run": of_run["run"],
        "the run and the class": of_run["class"],
        "the run, class, shape and prediction": of_run["kernel"],
        "the device, in two runs": parts.device,
        "the device and the class, in two runs": parts.device_class,
    }
    alone, word = parts.n_clusters == 1, parts.cluster
    rows = [
        {"what": what, "found": interval}
        for what, interval in shown.items()
        # Where no kernels share just this there is nothing to be estimated.
        if not math.isnan(interval.value if alone else interval.low)
    ]

    def ends(row: Mapping[str, Any]) -> str:
        return f"{row['found'].low:.2f} … {row['found'].high:.2f}"

    columns = [
        Column("Two kernels that share", lambda row: row["what"], key=True),
        Column("Correlation", lambda row: row["found"].value, forms.fixed(2)),
    ]
    notes = []
    if not alone and parts.confidence is not None:
        columns.append(Column("Interval", ends, form=forms.as_written))
        notes.append(
            f"Intervals: {100 * parts.confidence:g} %, by leaving out each {word} in turn."
        )
    title = f"What errors share, estimated from {_counted(model.n_runs, 'run')}"
    if word == "device":
        title += f" on {_counted(parts.n_clusters, 'device')}"
    return Table(title, columns, rows, notes)


def _counted(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


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
        Column("Share of time", lambda row: row["time"], forms.percent),
        Column("Share of variance", lambda row: row["first"], forms.percent),
        Column("sd saved", lambda row: _bought(row["total"]), forms.percent),
    ]
    rest = len(rows) - _TOP
    remaining = format_fraction(float(budget.first_order[_TOP:].sum()))
    more = f"{rest} more class{'es' if rest > 1 else ''} with {remaining} of the variance."
    notes = [
        *([more] if rest > 0 else []),
        "sd saved: by how much the standard deviation of the run would shrink if the class had no "
        "error.",
    ]
    if NOT_MODELLED in [row["name"] for row in rows[:_TOP]]:
        notes.append(
            f"{NOT_MODELLED}: kernels that are predicted to take no time, or too little to measure."
        )
    return Table(
        f'Where the error comes from, under "{outcome.assumption}"',
        columns,
        rows[:_TOP],
        notes,
    )


def _bought(total: float) -> float:
    """How much smaller the standard deviation would be, a fraction."""
    return 1 - math.sqrt(max(0.0, 1 - total))


def _critical(outcome: Outcome) -> Table:
    ranked = sorted(outcome.critical.items(), key=lambda item: -item[1])
    rows = [{"name": name, "p": p} for name, p in ranked]
    columns = [
        Column("Event", lambda row: row["name"], key=True),
        Column("Probability", lambda row: row["p"], forms.percent),
    ]
    rest = len(rows) - _TOP
    notes = [f"{_counted(rest, 'more event')}."] if rest > 0 else []
    return Table("How often an event is on the critical path", columns, rows[:_TOP], notes)


def _many(found: Propagation, title: str) -> Table:
    first, *others = found.assumptions
    of_run: dict[str, dict[str, Outcome]] = {}
    for outcome in found.outcomes:
        of_run.setdefault(outcome.run, {})[outcome.assumption] = outcome
    rows = [{"outcomes": outcomes} for outcomes in of_run.values()]

    def of(row: Mapping[str, Any]) -> Outcome:
        outcome: Outcome = row["outcomes"][first]
        return outcome

    def width(name: str) -> Column:
        def show(row: Mapping[str, Any]) -> str:
            outcome, band = of(row), row["outcomes"][name].band(_SHOWN)
            centre = outcome.median or outcome.prediction
            return f"{100 * (band.low / centre - 1):+.0f}/{100 * (band.high / centre - 1):+.0f} %"

        return Column(name.capitalize(), show, form=forms.as_written)

    columns = [
        Column("Run", lambda row: of(row).run, key=True),
        Column("Predicted", lambda row: of(row).prediction, forms.number),
        Column("Median", lambda row: of(row).median, forms.number),
        Column("90 % band", lambda row: _ends(of(row)), forms.band),
        *(width(name) for name in others),
    ]
    if any(outcome.measured for outcome in found.outcomes):
        columns.insert(4, Column("Measured", lambda row: of(row).measured, forms.number))
    unit = f" in {found.unit}" if found.unit else ""
    notes: list[Note | str] = [
        f'Times{unit}. Median and band under "{first}"; other columns: 90 % band around that '
        "median under other assumptions.",
        *_caveats(found),
    ]
    return Table(title, columns, rows, notes)


def _ends(outcome: Outcome) -> tuple[float, float]:
    band = outcome.band(_SHOWN)
    return band.low, band.high


def _caveats(found: Propagation, *, without: str = "") -> list[Note]:
    """Every caveat once: of those that runs share the first, and in how many runs it holds."""
    notes = [item(f"{caveat.message}.") for caveat in found.caveats]
    by_code: dict[str, dict[str, str]] = {}
    for outcome in found.outcomes:
        for caveat in outcome.caveats:
            if caveat.code == without:
                continue
            by_code.setdefault(caveat.code, {}).setdefault(outcome.run, caveat.message)
    for messages in by_code.values():
        run, message = next(iter(messages.items()))
        more = f" (run {run}; likewise {len(messages) - 1} more)" if len(messages) > 1 else ""
        notes.append(item(f"{message}{more}."))
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

        return Column(f"{100 * level:g} % band", show, form=forms.as_written)

    columns = [
        Column("Assumption", lambda row: row["name"], key=True),
        *(coverage(level) for level in levels),
        Column(
            "Width (90 %)",
            lambda row: found.row(row["name"], _SHOWN).mean_width,
            forms.percent,
        ),
        Column(
            "Score (90 %)",
            lambda row: found.row(row["name"], _SHOWN).interval_score,
            forms.percent,
        ),
    ]
    first = found.rows[0]
    how = f"leaving each {found.left_out} out" if found.left_out else "errors from another table"
    notes: list[Note | str] = [
        f"Per cent of {_counted(first.n, 'total')} ({found.total}) inside the band, with 95 % "
        f"intervals that take totals of one {found.cluster} as alike "
        f"({_counted(first.n_clusters, found.cluster)}).",
        *_without_total(found),
        "Width: of the band over the prediction. Score: interval score over the prediction; lower "
        "is better.",
        *(item(f"{caveat.message}.") for caveat in found.caveats),
    ]
    return [Table(f"Do the bands hold? {source or 'the table'}, {how}", columns, rows, notes)]


def _without_total(found: Validation) -> list[str]:
    if not found.not_judged:
        return []
    n = len(found.not_judged)
    names = ", ".join(found.not_judged[:_NAMED]) + (", …" if n > _NAMED else "")
    return [f"Not judged: {_counted(n, 'run')} without measured and predicted total ({names})."]


def flat_outcomes(found: Propagation) -> list[dict[str, Any]]:
    """Return one row of plain values for each run and assumption; bands as columns."""
    rows = []
    for outcome in found.outcomes:
        plain = outcome.to_dict()
        row = {name: plain[name] for name in _FLAT}
        for band in plain["bands"]:
            percent = f"{100 * band['level']:g}"
            row |= {f"low_{percent}": band["low"], f"high_{percent}": band["high"]}
        caveats = "; ".join(caveat.code for caveat in (*found.caveats, *outcome.caveats))
        rows.append({**row, "unit": found.unit, "method": outcome.method, "caveats": caveats})
    return rows


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else format_number(value, digits)


def _fraction(value: float | None) -> str:
    return "–" if value is None else format_fraction(value)
