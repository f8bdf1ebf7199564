"""Report of error metrics by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.metrics import figure
from errcomp.metrics import figure as figure_named
from errcomp.metrics.scoring import NEUTRAL
from errcomp.report import forms
from errcomp.report.drawing import words
from errcomp.report.model import Column, Figure, Report, Table, heading_of, key_heading, key_text
from errcomp.results import Estimate, why_none

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.summary import Summary, SummaryRow

__all__ = ["summary_figure", "summary_view"]

#: The axis is logarithmic if the largest value is more than this multiple of the median.
_WIDE = 12.0
#: Coverage that is stated if no metric has an interval.
_USUAL = 0.95


@runtime_checkable
class Bare(Protocol):
    """Rows that are stored as columns."""

    figures: Sequence[Any]

    def bare(self) -> list[SummaryRow]: ...


def summary_view(summary: Summary) -> Report:
    """Return the report of error metrics by group.

    Parameters
    ----------
    summary : Summary

    Returns
    -------
    Report
    """
    tool = f", tool {summary.tool}" if summary.tool else ""
    title = f"Error metrics of {summary.source or 'the table'}{tool}"
    # Of sums, each row is made when it is read.
    rows = summary.rows.bare() if isinstance(summary.rows, Bare) else [*summary.rows]
    table = _table(summary, rows, title)
    if summary.not_used:
        unused = f"ignored: {words.count(summary.not_used, 'pair')} from other tools"
        table = replace(table, notes=[*table.notes, unused])
    draw = partial(summary_figure, summary)
    pooled = {} if summary.pooled is None else summary.pooled.figures
    first = [f"{figure(n).label} {e.format()}" for n, e in [*pooled.items()][:1]]
    groups = [words.count(len(summary.rows), "group")] if summary.by else []
    caption = "The first metric of each group, with its interval."
    return Report(
        title=title,
        line=[*first, *groups, f"n={sum(row.n for row in rows):,}"],
        tables=[table],
        figures=[Figure("figure", caption, draw)],
        draw=draw,
    )


def _table(summary: Summary, groups: Sequence[SummaryRow], title: str) -> Table:
    """Return metrics by group, and those of all pairs if available."""
    rows = [*groups]
    if summary.by and summary.pooled is not None:
        rows.append(summary.pooled)

    def key_column(name: str) -> Column:
        return Column(
            key_heading(name), lambda row: key_text(row.key.get(name, "all pairs")), key=True
        )

    def figure_column(name: str) -> Column:
        return Column(heading_of(figure(name).label), lambda row: row.figures[name], forms.estimate)

    columns = [
        *(key_column(name) for name in summary.by),
        Column("n", lambda row: row.n, forms.count, key=True),
        *(figure_column(name) for name in summary.figures),
    ]
    level = 100 * (summary.level or _USUAL)
    notes = [
        f"Intervals: {level:g} %. Metrics without a validated interval method have no interval."
    ]
    if summary.by and summary.macro is not None:
        macro = ", ".join(
            f"{figure(n).label} {_format(n, value)}" for n, value in summary.macro.items()
        )
        notes.append(f"Mean over the {len(summary.rows)} groups (with equal weights): {macro}")
    reasons = _reasons(summary)
    notes += sorted(f"{', '.join(labels)}: {reason}" for reason, labels in reasons.items())
    notes += [f"{d.n} row{'' if d.n == 1 else 's'} not used: {d.reason}" for d in summary.dropped]
    return Table(title, columns, rows, notes)


def _reasons(summary: Summary) -> dict[str, list[str]]:
    """Return the headings of the metrics for each reason why there is no valid interval."""
    rows = [] if summary.pooled is None or not summary.by else [summary.pooled]
    found: dict[str, set[str]] = {}
    if isinstance(summary.rows, Bare):
        for one in summary.rows.figures:
            for _, reason in one.reasons():
                found.setdefault(reason, set()).add(one.name)
    else:
        rows += summary.rows
    for row in rows:
        for name, estimate in row.figures.items():
            if why_none(estimate.value, estimate.low, estimate.method):
                found.setdefault(estimate.method, set()).add(name)
    return {
        reason: [heading_of(figure(name).label) for name in summary.figures if name in names]
        for reason, names in found.items()
    }


def _format(name: str, value: float) -> str:
    return Estimate(name, value, unit=figure(name).unit).format()


def summary_figure(summary: Summary, figure: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw one error metric of each group with its interval, the largest first.

    Parameters
    ----------
    summary : Summary
    figure : str, optional
        The metric; by default the first of the summary.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        The metric was not computed.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from errcomp import summarize
    >>> summary = summarize({"predicted": [11.0, 21.0, 52.0], "measured": [10.0, 20.0, 40.0],
    ...                    "device": ["A", "A", "B"]}, by="device")
    >>> [label.get_text() for label in summary_figure(summary).get_yticklabels()]
    ['B  n=1', 'A  n=2', 'all pairs  n=3']
    """
    known = list(summary.figures)
    name = known[0] if figure is None else figure
    if name not in known:
        raise InputError(f"{name} was not computed. Computed: {describe_names(known)}")
    from errcomp.report.drawing.forest import Row, forest

    spec = figure_named(name)
    scale = 100.0 if spec.unit == "fraction" else 1.0
    groups = sorted(
        summary.rows if summary.by else (),
        key=lambda row: -np.nan_to_num(row.figures[name].value, nan=-math.inf),
    )
    labelled = [(row, ", ".join(map(str, row.key.values()))) for row in groups]
    if summary.pooled is not None:
        labelled.append((summary.pooled, "all pairs"))
    rows = []
    for row, label in labelled:
        estimate = row.figures[name]
        ends = [None if end is None else scale * end for end in (estimate.low, estimate.high)]
        text = estimate.format().replace("-", "−")
        rows.append(Row(label, scale * estimate.value, ends[0], ends[1], text, row.n))
    levels = {row.figures[name].level for row, _ in labelled} - {None}
    intervals = [f"{100 * level:g} % interval" for level in levels if level is not None]
    by = [f"by {' and '.join(map(words.shorten, summary.by))}, largest first"] if summary.by else []
    neutral, n = NEUTRAL.get(name), sum(row.n for row in summary.rows)
    return forest(
        ax,
        rows,
        title=f"{_sentence(spec.label)}, n={words.count(n, 'pair')}",
        notes=[*by, *intervals],
        x=_axis(spec.label, spec.unit, summary.figures[name].unit),
        beside=spec.label,
        reference=None if neutral is None else (neutral, "neither too high nor too low"),
        log=neutral is None and _far_apart([row.value for row in rows]),
    )


def _axis(label: str, kind: str, unit: str | None) -> str:
    """Name the axis of a metric, with its unit if it has one."""
    if kind == "measured":
        return words.with_unit(label, None if unit == kind else unit)
    return f"{label} (%)" if kind == "fraction" else label


def _far_apart(values: Sequence[float]) -> bool:
    """Say whether the values are positive and the largest would hide the others."""
    finite = [value for value in values if math.isfinite(value)]
    return min(finite, default=0.0) > 0 and max(finite) > _WIDE * float(np.median(finite))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
