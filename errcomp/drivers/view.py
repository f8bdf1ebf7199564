"""Report of the drivers of an error: statements about it, contrasts, regressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Cell, Column, Figure, Form, Note, Report, Table, item
from errcomp.results import Written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.drivers import DriversResult, Regression

__all__ = ["contrasts", "drivers_view"]


def drivers_view(result: DriversResult) -> Report:
    """Return published statements about the tool, then contrasts, then the regressions."""
    title = f"Drivers of the error of {result.tool or 'the tool'} ({result.n:,} pairs)"
    statements = [_statements(result)] if result.statements else []
    caption = "Effect of each factor on the error, with intervals; 1 means no effect."
    draw = partial(contrasts, result)
    return Report(
        title=title,
        line=[count(len(result.contrasts), "contrast"), f"n={result.n:,}"],
        tables=[
            *statements,
            _contrasts(result, title),
            *map(_regression, result.regressions),
        ],
        figures=[Figure("figure", caption, draw)],
        draw=draw,
    )


def _statements(result: DriversResult) -> Table:
    columns = [
        Column("Statement", lambda r: r.statement.text),
        Column("Verdict", lambda r: r.verdict),
        Column("Why", lambda r: r.why),
    ]
    return Table("Published statements about this error", columns, result.statements)


def _contrasts(result: DriversResult, title: str) -> Table:
    notes = _numbered([c.note for c in result.contrasts])
    columns = [
        Column("Contrast", lambda r: r.name, key=True),
        Column("Pairs", lambda r: r.n_pairs, forms.count),
        Column("Clusters", lambda r: (r.clusters, r.cluster_key), _CLUSTERS),
        Column("Ratio of APE", lambda r: r.effect, forms.estimate),
        Column("Points", lambda r: r.effect_points, forms.changes(unit="")),
        Column("p (Holm)", lambda r: r.p_holm, forms.p_value),
        Column("Signed", lambda r: r.effect_signed, forms.interval(3, signed=True)),
        Column("p (Holm)", lambda r: r.p_signed_holm, forms.p_value),
        Column("Note", lambda r: notes.get(r.note, "")),
    ]
    below: list[Note | str] = [
        f"Effects are computed from matched pairs; {100 * result.level:g} % intervals allow for "
        "clusters. Ratio 2: the error doubles. Points: difference of MAPE in percentage points. "
        "Signed: difference of ln(predicted / measured); +0.1 is about 10 % more predicted time. "
        "p: probability of an effect this large by chance, corrected (Holm).",
        *(Note(note, number) for note, number in notes.items()),
    ]
    return Table(title, columns, result.contrasts, below)


def _regression(regression: Regression) -> Table:
    question = {
        "absolute": "All factors at once, ratio of APE",
        "signed": "All factors at once, difference of ln(predicted / measured)",
    }[regression.outcome]
    adjusted = ", ".join(regression.adjusted_for) or "nothing else"
    columns = [
        Column("Factor", lambda r: r.name),
        Column("Effect", lambda r: r.effect, forms.estimate),
        Column("p (Holm)", lambda r: r.p_holm, forms.p_value),
    ]
    notes: list[Note | str] = [
        f"{regression.method}; {regression.n} pairs in {regression.clusters} clusters by "
        f"{regression.cluster_key}; adjusted for: {adjusted}.",
        *(item(caveat.message) for caveat in regression.caveats),
        *(item(f"{aliased}.") for aliased in regression.aliased),
    ]
    return Table(question, columns, regression.terms, notes)


def _numbered(notes: Sequence[str]) -> dict[str, str]:
    distinct = list(dict.fromkeys(note for note in notes if note))
    return {note: f"[{i}]" for i, note in enumerate(distinct, start=1)}


def _clusters(clusters: tuple[int, str]) -> Cell:
    n, key = clusters
    return forms.figure(Written(str(n), f" {key}"), n)


#: Number of independent units, and their key.
_CLUSTERS = Form(_clusters, right=True)


def contrasts(found: DriversResult, ax: Axes | None = None) -> Axes:
    """Draw the effect of each factor: the ratio of the error at one level to that at another.

    Hollow rows may be chance: their interval contains 1 or does not exist.

    Parameters
    ----------
    found : DriversResult
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No contrast could be computed.
    MissingExtraError
        Matplotlib is not installed.
    """
    if not found.contrasts:
        raise InputError("nothing to draw: no two configurations differ in only one factor")
    from errcomp.report.drawing.forest import Row, forest

    rows = [
        Row(
            contrast.name,
            contrast.effect.value,
            contrast.effect.low,
            contrast.effect.high,
            contrast.effect.format(),
            contrast.n_pairs,
            strong=contrast.effect.low is not None
            and contrast.effect.high is not None
            and not contrast.effect.low <= 1 <= contrast.effect.high,
        )
        for contrast in found.contrasts
    ]
    return forest(
        ax,
        rows,
        title=f"Drivers of the error, {count(len(rows), 'contrast')}",
        notes=[
            "error at first level / error at second; ×2: at double the value / at the value",
            "n: matched configurations; hollow: may be due to chance",
        ],
        x="ratio of errors",
        beside="times",
        reference=(1.0, "no effect"),
        log=True,
    )
