"""Report of leakage: errors by distance to the training table, new values, rows left out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Column, Figure, Report, Table, Verdict
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.measurements.leaking import Leakage
    from errcomp.results import Estimate

_TITLE = "Leakage"
#: Values that a cell shows.
_SHOWN = 3


def leakage_view(found: Leakage) -> Report:
    """Return the report."""
    draw = partial(by_distance, found)
    caption = "MAPE of the evaluated rows by their distance to the training table."
    return Report(
        title=_TITLE,
        line=[f"{found.seen:,} of {found.n:,} seen", f"MAPE {found.mape.format()}"],
        verdicts=[_verdict(found)],
        tables=[_classes(found), *_unseen(found), *_left_out(found)],
        figures=[Figure("distance", caption, draw)],
        method=[
            ("Compared by", ", ".join(found.shared)),
            ("Intervals", "95 %, clustered by model and device where the table has them"),
        ],
        draw=draw,
    )


def _verdict(found: Leakage) -> Verdict:
    if not found.seen:
        text = "no configuration of the pairs is in the training table"
        return Verdict("Nothing seen", text, "plain")
    share = f"{found.seen:,} of {found.n:,} pairs have a configuration of the training table"
    return Verdict("Seen in training", share, "doubt")


def _classes(found: Leakage) -> Table:
    columns = [
        Column("Nearest training row", lambda row: row.name, key=True),
        Column("n", lambda row: row.n, forms.count),
        Column("MAPE [95 %]", lambda row: row.mape, forms.estimate),
        Column("First rows", lambda row: ", ".join(map(str, row.rows)), on="page"),
    ]
    of = f" of {found.tool}" if found.tool else ""
    title = f"Error{of} by distance to the training table: {found.source or 'the given pairs'}"
    return Table(title, columns, found.classes, _notes(found))


def _notes(found: Leakage) -> list[str]:
    notes = [f"All {found.n:,} pairs: MAPE {found.mape.format()}."]
    if found.new is not None and found.seen:
        notes.append(
            f"Without the {found.seen:,} pairs whose configuration is in the training table: "
            f"{found.new.format()}. {_compared(found.mape, found.new)}"
        )
    elif found.seen:
        notes.append("Every configuration is in the training table: nothing is known about others.")
    names = ", ".join(found.shared)
    notes.append(f"Compared with {count(found.trained, 'training row')} by {names}.")
    return notes


def _compared(pooled: Estimate, new: Estimate) -> str:
    if new.low is not None and new.low > pooled.value:
        return "The pairs seen in training make the pooled error look better."
    if new.value > pooled.value:
        return "The pairs seen in training may make the pooled error look better."
    return "The pairs seen in training do not make the pooled error look better."


def _unseen(found: Leakage) -> list[Table]:
    if not found.unseen:
        return []

    def values(row: object) -> str:
        names: tuple[str, ...] = row.values  # type: ignore[attr-defined]
        more = f" (+{len(names) - _SHOWN})" if len(names) > _SHOWN else ""
        return ", ".join(names[:_SHOWN]) + more

    columns = [
        Column("Key", lambda row: row.column, key=True),
        Column("Not in training", values),
        Column("n", lambda row: row.n, forms.count),
        Column("MAPE [95 %]", lambda row: row.mape, forms.estimate),
        Column("Of seen values", lambda row: row.seen_mape, forms.estimate),
    ]
    note = (
        "MAPE: the error of the rows whose value of the key is not in the training table. It is "
        "comparable to the error after a split by this key. Of seen values: the error of the other "
        "rows."
    )
    return [Table("Values that the training table does not have", columns, found.unseen, [note])]


def _left_out(found: Leakage) -> list[Table]:
    if not found.left_out:
        return []
    columns = [
        Column("Left out", lambda row: row.what, key=True),
        Column("n", lambda row: row.n, forms.count),
        Column("MAPE", lambda row: row.mape, forms.percent),
    ]
    notes = [
        "MAPE of a simple predictor (a straight line in logarithms, corrected by its error at the "
        "nearest row of the fit), on the evaluated table alone. A random split is optimistic if "
        "the MAPE with random rows left out is much smaller than with whole values of a key left "
        "out."
    ]
    rows = {one.what: one for one in found.left_out}
    worst = max(found.left_out, key=lambda one: one.mape)
    if "rows" in rows and worst.mape > 2 * rows["rows"].mape:
        random = format_fraction(rows["rows"].mape)
        notes.append(
            f"A split by {worst.what} would report a MAPE of {format_fraction(worst.mape)}, a "
            f"random split only {random}."
        )
    return [Table("What other splits would report", columns, found.left_out, notes)]


def by_distance(found: Leakage, ax: Axes | None = None) -> Axes:
    """Draw the MAPE of each class, with its interval."""
    from errcomp.report.drawing import style as _style

    ax = _style.canvas(ax, 1.4 + 0.5 * len(found.classes))
    rows = found.classes[::-1]
    for y, row in enumerate(rows):
        ax.plot([100 * row.mape.value], [y], "o", color=_style.BLUE, ms=7, zorder=3)
        if row.mape.low is not None and row.mape.high is not None:
            ends = [100 * row.mape.low, 100 * row.mape.high]
            ax.plot(ends, [y, y], color=_style.BLUE, lw=1.6, zorder=2)
    ax.set_yticks(range(len(rows)), [f"{row.name} (n={row.n:,})" for row in rows])
    ax.axvline(100 * found.mape.value, color=_style.INK, lw=1.0, ls=(0, (4, 2)), zorder=1)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlim(left=0)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="MAPE (%)", y="")
    notes = [f"dashed: all pairs, {format_fraction(found.mape.value)}"]
    _style.heading(ax, "Is the error smaller where the predictor was trained?", notes)
    return ax
