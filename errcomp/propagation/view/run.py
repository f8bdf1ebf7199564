"""The report of propagated errors: the band of each run, and the sources of its width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from errcomp.propagation.errors.residuals import LEVELS, NOT_MODELLED
from errcomp.propagation.terms import first_level
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import (
    Advice,
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
from errcomp.tables.units import kind_of

if TYPE_CHECKING:
    from errcomp.propagation import Band, ErrorModel, Outcome, Propagation
    from errcomp.results import Caveat

__all__ = ["advice_of", "flat_outcomes", "propagation_view"]

#: Levels of the table of one run; the first ones that were computed, if none of these was.
_SHOWN = (0.5, 0.9, 0.95)
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
#: Number of runs with a figure of their bands.
_DRAWN = 6


def propagation_view(result: Propagation) -> Report:
    """Return the report of kernel errors in whole runs.

    Parameters
    ----------
    result : Propagation

    Returns
    -------
    Report
    """
    from errcomp.propagation.view import figures as drawing

    first = result.of()
    figures = [
        Figure(
            f"bands-{i}",
            "Bands under each assumption, with the predicted (line) and measured (diamond) time.",
            partial(drawing.bands, result, run),
        )
        for i, run in enumerate(result.runs[:_DRAWN], 1)
    ]
    if first.by_class is not None:
        caption = f"Sources of the error of {first.run}."
        figures.append(Figure("budget", caption, partial(drawing.budget, first)))
    notes = []
    if len(result.runs) > _DRAWN:
        notes.append(f"The plots show {_DRAWN} of {len(result.runs)} runs; the table has all runs.")
    caveats = {(c.code, c.message): c for c in result.caveats}
    for outcome in result.outcomes:
        for caveat in outcome.caveats:
            caveats.setdefault((caveat.code, caveat.message), caveat)
    return Report(
        title=f"How wrong is the whole run? {result.source or 'The given table'}",
        line=_line(result),
        verdicts=[_of_run(result.of(run), result.unit) for run in result.runs[:_DRAWN]],
        advice=[advice_of(caveat) for caveat in caveats.values()],
        figures=figures,
        tables=_tables(result),
        method=[
            *(
                (f"Bands under {outcome.assumption}", outcome.method)
                for outcome in result.outcomes
                if outcome.run == first.run
            ),
            ("Errors", _errors(result.model)),
            ("Unit of times", result.unit or "not stated"),
            ("Seed", str(result.seed)),
        ],
        notes=notes,
        draw=partial(drawing.bands, result),
    )


def _errors(model: ErrorModel) -> str:
    fitted = f"fitted to {count(model.n_runs, 'run')}" if model.n_runs else "given, not fitted"
    return f"{model.kind}, {fitted}"


def _line(result: Propagation) -> list[str]:
    if len(result.runs) != 1:
        return [", ".join(result.assumptions), f"n={len(result.runs):,} runs"]
    outcome, unit = result.of(), f" {result.unit}" if result.unit else ""
    band = _first(outcome)
    low, high = format_number(band.low), format_number(band.high)
    return [f"{outcome.assumption}: {100 * band.level:g} % band {low} … {high}{unit}", "n=1 run"]


def _of_run(outcome: Outcome, unit: str | None) -> Verdict:
    band = _first(outcome)
    times = f"{format_number(band.low)} … {format_number(band.high)}{f' {unit}' if unit else ''}"
    text = (
        f"— {outcome.run}: {100 * band.level:g} % band under the assumption "
        f'"{outcome.assumption}"; predicted {format_number(outcome.prediction)}'
    )
    tone: Tone = "plain"
    if outcome.measured is not None:
        inside = band.low <= outcome.measured <= band.high
        text += f", measured {format_number(outcome.measured)}, "
        text += "inside the band" if inside else "outside the band"
        tone = "good" if inside else "doubt"
    if outcome.relative_sd is not None:
        text += (
            f". Error (sd): kernels {format_fraction(outcome.kernel_sd)}, run "
            f"{format_fraction(outcome.relative_sd)}"
        )
    return Verdict(times, f"{text}.", tone)


def advice_of(caveat: Caveat) -> Advice:
    """Return a caveat as advice."""
    name = caveat.code.replace("-", " ").capitalize()
    return Advice(name, f"{caveat.message[:1].upper()}{caveat.message[1:].rstrip('.')}.")


def _tables(result: Propagation) -> list[Table]:
    """Show a single run in detail, several runs one per line."""
    first = result.of()
    # Only sums have budgets; without one it may be the time of a graph.
    sums = any(outcome.by_class is not None for outcome in result.outcomes)
    what = ("energies", "energy") if kind_of(result.unit or "") == "energy" else ("times", "time")
    total = f"Sum of kernel {what[0]}" if sums else f"Total {what[1]}"
    of = result.source or "the table"
    if len(result.runs) > 1:
        return [_runs(result, f"{total} of {len(result.runs)} runs of {of}")]
    # A table without runs is one run without a name.
    named = "" if result.runs[0] == "run" else f"of {result.runs[0]} "
    tables = [_run(result, f"{total} {named}of {of}")]
    if first.by_class is not None:
        tables.append(_budget(first))
    if first.critical:
        tables.append(_critical(first))
    if first.assumption == "estimated" and result.model.components is not None:
        tables.append(_shared(result))
    return [table for table in tables if table.rows]


def _run(result: Propagation, title: str) -> Table:
    unit = f" {result.unit}" if result.unit else ""
    levels = [band.level for band in result.of().bands]
    columns = [
        Column("Assumption", lambda outcome: outcome.assumption, key=True),
        Column("Mean", lambda outcome: outcome.mean, forms.number),
        Column("sd", lambda outcome: outcome.relative_sd, forms.percent),
        Column("Growth", lambda outcome: outcome.growth, forms.significant(2)),
        *map(_band_column, [level for level in _SHOWN if level in levels] or levels[:3]),
    ]
    if any(outcome.effective_number is not None for outcome in result.outcomes):
        number = forms.significant(2)
        columns.insert(4, Column("Effective number", lambda row: row.effective_number, number))
    first = result.of()
    notes: list[Note | str] = [
        f"Predicted: {format_number(first.prediction)}{unit}."
        + (f" Measured: {format_number(first.measured)}{unit}." if first.measured else "")
        + f" Kernel errors (sd, weighted by time): {format_fraction(first.kernel_sd)}.",
        *_outside_note(first),
        *_growth_notes(first),
        " ".join(_terms(result)),
        *_basis(result),
        # The notes above already have the probability of saturation.
        *_caveats(result, without="infinite" if first.saturated else ""),
    ]
    return Table(title, columns, result.outcomes, notes)


def _terms(result: Propagation) -> list[str]:
    """Explain the terms of the table, one sentence each."""
    terms = ["Growth: error (sd) of the run / error of its kernels; at 1, nothing cancels."]
    if any(outcome.effective_number is not None for outcome in result.outcomes):
        terms.append(
            "Effective number: errors cancel as much as in a run of this many independent kernels "
            "with equal errors."
        )
    explained = {
        "comonotonic": "comonotonic: all errors have one cause and go the same way.",
        "unknown": "unknown: the band holds for any correlation.",
    }
    return [*terms, *(text for name, text in explained.items() if name in result.assumptions)]


def _band_column(level: float) -> Column:
    return Column(f"{100 * level:g} % band", partial(_ends, level=level), forms.band)


def _growth_notes(outcome: Outcome) -> list[str]:
    """Return notes on the effect of the first assumption on the error, and its reason."""
    notes = []
    if outcome.growth is not None and outcome.relative_sd is not None:
        sd, kernel = format_fraction(outcome.relative_sd), format_fraction(outcome.kernel_sd)
        verb = "falls" if outcome.growth < 1 else "grows"
        change = f"{verb} from {kernel} (kernels) to {sd} (run)"
        if sd == kernel:
            change = f"is {sd} for the kernels and for the run"
        notes.append(f'Under "{outcome.assumption}" the error {change}: {_reason(outcome)}.')
    if outcome.bias is not None and abs(outcome.bias) >= 0.0005:
        side = "above" if outcome.bias > 0 else "below"
        amount = f"{100 * abs(outcome.bias):.1f} %"
        notes.append(f"Bias: the expected time of the run is {amount} {side} the prediction.")
    if outcome.saturated:
        notes.append(
            f"A queue is saturated with probability {format_fraction(outcome.saturated)}: more "
            "work arrives than can be served, so no finite time exists."
        )
    return notes


def _outside_note(outcome: Outcome) -> list[str]:
    """Return a note if the measured total is outside the widest band."""
    widest = outcome.bands[-1]
    if outcome.measured is None or widest.low <= outcome.measured <= widest.high:
        return []
    side = "above" if outcome.measured > widest.high else "below"
    level = f"{100 * widest.level:g} %"
    return [f'The measured time is {side} the {level} band under "{outcome.assumption}".']


def _basis(result: Propagation) -> list[str]:
    """Return notes on the data of the error model, and the use of the bands."""
    model = result.model
    if model.components is None:
        return []
    devices = len(model.devices)
    runs = f"Errors fitted to {model.n_runs} measured run{'s' if model.n_runs > 1 else ''}"
    where = f"on {devices} device{'s' if devices > 1 else ''}"
    new = "a new device" if model.components.cluster == "device" else "another run on this device"
    notes = [f"{runs} {where}. The bands are for {new}."]
    df, observed = model.tails.combined, model.tails.observed
    if "estimated" in result.assumptions and not math.isinf(df):
        seen = ""
        if observed is not None:
            of = "of" if model.components.cluster == "run" else "on"
            seen = f"the errors {of} these {observed.n_clusters} {model.components.cluster}s and "
        notes.append(
            f'Under the assumption "estimated", the tails of the bands come from {seen}a Student t '
            f"distribution with {df:.1f} degrees of freedom. The sd does not depend on these tails."
        )
    return notes


def _reason(outcome: Outcome) -> str:
    assert outcome.growth is not None  # called only with a growth
    if outcome.growth > 1.02:
        return "the graph amplifies errors"
    if outcome.growth > 0.95:
        return "almost nothing cancels, because the errors share their causes"
    if outcome.effective_number is None:
        return "errors cancel in part"
    number = format_number(outcome.effective_number, 2)
    return f"errors cancel as much as among {number} independent kernels of equal error"


def _shared(result: Propagation) -> Table:
    """Show the estimated correlation of two kernels by their common level."""
    model = result.model
    assert model.components is not None  # called only with estimated ones
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
        (shared, interval)
        for shared, interval in shown.items()
        # Without pairs of kernels that share just this there is no estimate.
        if not math.isnan(interval.value if alone else interval.low)
    ]
    columns = [
        Column("Two kernels that share", lambda row: row[0], key=True),
        Column("Correlation", lambda row: row[1].value, forms.fixed(2)),
    ]
    notes = []
    if not alone and parts.confidence is not None:
        columns.append(Column("Interval", lambda row: (row[1].low, row[1].high), _CORRELATIONS))
        notes.append(
            f"Intervals: {100 * parts.confidence:g} %, by leaving out each {word} in turn."
        )
    title = f"Correlation of kernel errors, estimated from {count(model.n_runs, 'run')}"
    if word == "device":
        title += f" on {count(parts.n_clusters, 'device')}"
    return Table(title, columns, rows, notes)


def _budget(outcome: Outcome) -> Table:
    assert outcome.by_class is not None
    budget = outcome.by_class
    names = list(map(str, budget.names))
    columns = [
        Column("Kernel class", lambda i: names[i], key=True),
        Column("Share of time", lambda i: float(budget.share_of_time[i]), forms.percent),
        Column("Share of variance", lambda i: float(budget.first_order[i]), forms.percent),
        Column("sd saved", lambda i: _gain(float(budget.total[i])), forms.percent),
    ]
    rest = len(names) - _TOP
    remaining = format_fraction(float(budget.first_order[_TOP:].sum()))
    more = f"{rest} more class{'es' if rest > 1 else ''} with {remaining} of the variance."
    notes = [
        *([more] if rest > 0 else []),
        "sd saved: decrease of the run's standard deviation if the class had no error.",
    ]
    if NOT_MODELLED in names[:_TOP]:
        notes.append(
            f"{NOT_MODELLED}: kernels that are predicted as 0, or as too short to measure."
        )
    return Table(
        f'Sources of the error under "{outcome.assumption}"',
        columns,
        range(len(names))[:_TOP],
        notes,
    )


def _gain(total: float) -> float:
    """Return the relative decrease of the standard deviation."""
    return 1 - math.sqrt(max(0.0, 1 - total))


def _critical(outcome: Outcome) -> Table:
    ranked = sorted(outcome.critical.items(), key=lambda item: -item[1])
    columns = [
        Column("Event", lambda row: row[0], key=True),
        Column("Probability", lambda row: row[1], forms.percent),
    ]
    rest = len(ranked) - _TOP
    notes = [f"{count(rest, 'more event')}."] if rest > 0 else []
    return Table("How often an event is on the critical path", columns, ranked[:_TOP], notes)


def _runs(result: Propagation, title: str) -> Table:
    first, *others = result.assumptions
    level = f"{100 * _first(result.of()).level:g} %"
    of_run: dict[str, dict[str, Outcome]] = {}
    for outcome in result.outcomes:
        of_run.setdefault(outcome.run, {})[outcome.assumption] = outcome

    def around(name: str) -> Column:
        def ends(row: Mapping[str, Outcome]) -> tuple[float, float]:
            band, centre = _first(row[name]), row[first].median or row[first].prediction
            return band.low / centre - 1, band.high / centre - 1

        return Column(name.capitalize(), ends, _AROUND)

    columns = [
        Column("Run", lambda row: row[first].run, key=True),
        Column("Predicted", lambda row: row[first].prediction, forms.number),
        Column("Median", lambda row: row[first].median, forms.number),
        Column(f"{level} band", lambda row: _ends(row[first]), forms.band),
        *(around(name) for name in others),
    ]
    if any(outcome.measured for outcome in result.outcomes):
        columns.insert(4, Column("Measured", lambda row: row[first].measured, forms.number))
    unit = f" in {result.unit}" if result.unit else ""
    noun = "Energies" if kind_of(result.unit or "") == "energy" else "Times"
    notes: list[Note | str] = [
        f'{noun}{unit}. Median and band under "{first}". Other columns: {level} bands under other '
        "assumptions, relative to that median.",
        *_caveats(result),
    ]
    return Table(title, columns, [*of_run.values()], notes)


def _first(outcome: Outcome) -> Band:
    """Return the band that is shown where there is room for one."""
    return outcome.band(first_level([band.level for band in outcome.bands]))


def _ends(outcome: Outcome, level: float | None = None) -> tuple[float, float]:
    band = _first(outcome) if level is None else outcome.band(level)
    return band.low, band.high


def _written_around(ends: tuple[float, float]) -> Cell:
    low, high = ends
    return Cell(f"{100 * low:+.0f}/{100 * high:+.0f} %", float(low))


def _written_correlations(ends: tuple[float, float]) -> Cell:
    low, high = ends
    return Cell(f"{low:.2f} … {high:.2f}", float(low))


#: Ends of a band, changes of the median; sorted by the lower one.
_AROUND = Form(_written_around, right=True)
#: Ends of an interval of correlations; sorted by the lower one.
_CORRELATIONS = Form(_written_correlations, right=True)


def _caveats(result: Propagation, *, without: str = "") -> list[Note]:
    """Each caveat once, with the first run that has it and the number of other runs."""
    notes = [item(f"{caveat.message}.", on="text") for caveat in result.caveats]
    by_code: dict[str, dict[str, str]] = {}
    for outcome in result.outcomes:
        for caveat in outcome.caveats:
            if caveat.code == without:
                continue
            by_code.setdefault(caveat.code, {}).setdefault(outcome.run, caveat.message)
    for messages in by_code.values():
        run, message = next(iter(messages.items()))
        more = f" (run {run} and {len(messages) - 1} more)" if len(messages) > 1 else ""
        notes.append(item(f"{message}{more}.", on="text"))
    return notes


def flat_outcomes(result: Propagation) -> list[dict[str, Any]]:
    """Return one row of plain values for each run and assumption; bands as columns."""
    rows = []
    for outcome in result.outcomes:
        plain = outcome.to_dict()
        row = {name: plain[name] for name in _FLAT}
        for band in plain["bands"]:
            percent = f"{100 * band['level']:g}"
            row |= {f"low_{percent}": band["low"], f"high_{percent}": band["high"]}
        caveats = "; ".join(caveat.code for caveat in (*result.caveats, *outcome.caveats))
        rows.append({**row, "unit": result.unit, "method": outcome.method, "caveats": caveats})
    return rows
