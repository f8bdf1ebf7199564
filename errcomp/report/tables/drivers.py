"""What moves an error, as tables: statements judged, contrasts, regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Note, Table, item
from errcomp.results import format_change

if TYPE_CHECKING:
    from errcomp.drivers import Contrast, DriversResult, Regression

__all__ = ["drivers_tables"]


def drivers_tables(result: DriversResult) -> list[Table]:
    """Return what has been said of the error, then contrasts, then the regressions."""
    tables = [_statements(result), _contrasts(result)]
    return tables + [_regression(regression) for regression in result.regressions]


def _statements(result: DriversResult) -> Table:
    columns = [
        Column("Statement", lambda r: r["s"].statement.text),
        Column("Verdict", lambda r: r["s"].verdict),
        Column("Why", lambda r: r["s"].why),
    ]
    rows = [{"s": statement} for statement in result.statements]
    return Table("What has been said of this error", columns, rows)


def _contrasts(result: DriversResult) -> Table:
    notes = _numbered([c.note for c in result.contrasts])
    columns = [
        Column("Contrast", lambda r: r["c"].name, key=True),
        Column("Pairs", lambda r: r["c"].n_pairs, forms.count),
        Column("Clusters", lambda r: _clusters(r["c"]), form=forms.as_written),
        Column("Ratio of APE", lambda r: r["c"].effect, forms.estimate),
        Column("Points", lambda r: _points(r["c"]), form=forms.as_written),
        Column("p (Holm)", lambda r: r["c"].p_holm, forms.p_value),
        Column("Signed", lambda r: _signed(r["c"]), form=forms.as_written),
        Column("p (Holm)", lambda r: r["c"].p_signed_holm, forms.p_value),
        Column("Note", lambda r: notes.get(r["c"].note, "")),
    ]
    below: list[Note | str] = [
        f"Matched pairs; intervals {100 * result.level:g} %, by cluster. Ratio 2: the error "
        "doubles. Points: difference of MAPE in percentage points. Signed: difference of "
        "ln(predicted / measured); +0.1 is 10 % more time predicted. p: of no effect (Holm).",
        *(Note(note, number) for note, number in notes.items()),
    ]
    title = f"What moves the error of {result.tool or 'the tool'} ({result.n} pairs)"
    return Table(title, columns, [{"c": contrast} for contrast in result.contrasts], below)


def _regression(regression: Regression) -> Table:
    question = {
        "absolute": "All factors at once, ratio of APE",
        "signed": "All factors at once, difference of ln(predicted / measured)",
    }[regression.outcome]
    adjusted = ", ".join(regression.adjusted_for) or "nothing else"
    columns = [
        Column("Factor", lambda r: r["t"].name),
        Column("Effect", lambda r: r["t"].effect, forms.estimate),
        Column("p (Holm)", lambda r: r["t"].p_holm, forms.p_value),
    ]
    notes: list[Note | str] = [
        f"{regression.method}, {regression.n} pairs, {regression.clusters} clusters "
        f"({regression.cluster_key}); adjusted for: {adjusted}.",
        *(item(caveat.message) for caveat in regression.caveats),
        *(item(f"{aliased}.") for aliased in regression.aliased),
    ]
    return Table(question, columns, [{"t": term} for term in regression.terms], notes)


def _numbered(notes: Sequence[str]) -> dict[str, str]:
    kept = list(dict.fromkeys(note for note in notes if note))
    return {note: f"[{i}]" for i, note in enumerate(kept, start=1)}


def _clusters(contrast: Contrast) -> str:
    return f"{contrast.clusters} {contrast.cluster_key}"


def _points(contrast: Contrast) -> str:
    points = contrast.effect_points
    return format_change(points.value, points.low, points.high, unit="")


def _signed(contrast: Contrast) -> str:
    signed = contrast.effect_signed
    text = f"{signed.value:+.3f}"
    if signed.low is not None and signed.high is not None:
        text += f" [{signed.low:.3f}, {signed.high:.3f}]"
    return text
