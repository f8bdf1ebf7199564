"""Report of the forensics of printed figures."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing.words import count, shorten
from errcomp.report.model import Column, Figure, Report, Table, Verdict, item

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.claims.forensics import Answer, Finding, Forensics
    from errcomp.report.model import Note, Tone

__all__ = ["allowed", "forensics_view"]

_CAPTION = "Printed figures (points) and the intervals that the other figures allow (lines)."
#: Characters of a name beside its row.
_DESCRIBED = 40
_ORDER: tuple[Answer, ...] = ("impossible", "possible only if", "possible")
_TONES: dict[Answer, Tone] = {"impossible": "bad", "possible only if": "doubt", "possible": "plain"}


def forensics_view(result: Forensics) -> Report:
    """Return the findings, the impossible ones first, each with its proof below."""
    rows = sorted(result.rows, key=lambda row: _ORDER.index(row.verdict))
    counts = Counter(row.verdict for row in rows)
    line = [f"{counts[word]:,} {word}" for word in _ORDER[:2] if counts[word]]
    told = [row for row in rows if row.proof]
    columns = [
        *([Column("Table", lambda r: r.group, key=True)] if any(r.group for r in rows) else []),
        *([Column("Part", lambda r: r.part, key=True)] if any(r.part for r in rows) else []),
        Column("n", lambda r: r.n, forms.count),
        Column("Figures", lambda r: ", ".join(r.figures)),
        Column("Verdict", lambda r: r.verdict, choice=True),
    ]
    notes: list[Note | str] = [item(f"{_place(row)}{_sentence(row)}", on="text") for row in told]
    if counts["impossible"]:
        notes.append(
            "Impossible: no set of errors has all these figures, each rounded as printed. A "
            "misprint, another definition or other cases than stated may explain it."
        )
    draw = partial(allowed, result)
    title = f"Can these figures be true? {result.source}".rstrip()
    return Report(
        title=title,
        line=[*line, f"{count(len(rows), 'set')} of figures"],
        verdicts=[
            Verdict(row.verdict.capitalize(), f"— {_place(row)}{_why(row)}", _TONES[row.verdict])
            for row in told
        ],
        tables=[Table(title, columns, rows, notes)],
        figures=[Figure("figure", _CAPTION, draw)] if any(map(_drawable, rows)) else [],
        draw=draw,
    )


def allowed(result: Forensics, ax: Axes | None = None) -> Axes:
    """Draw figures that others exclude, each with the interval that the others allow.

    Parameters
    ----------
    result : Forensics
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No figure is excluded, or none has such an interval.
    MissingExtraError
        Matplotlib is not installed.
    """
    found = [row for row in result.rows if _drawable(row)]
    if not found:
        raise InputError(
            "nothing to draw: every figure lies within the interval that the other figures allow"
        )
    from errcomp.report.drawing.forest import Row, forest

    rows = [
        Row(
            shorten(f"{_place(row)}{row.figures[0]}", _DESCRIBED),
            100 * (row.value or 0.0),
            -math.inf if row.low is None else 100 * row.low,
            math.inf if row.high is None else 100 * row.high,
            row.verdict,
            strong=row.verdict == "impossible",
        )
        for row in found
    ]
    return forest(
        ax,
        rows,
        title="Printed figures, and what the others allow",
        notes=["points: as printed; lines: allowed by the other figures; filled: impossible"],
        x="printed figure (%)",
        beside="verdict",
    )


def _drawable(row: Finding) -> bool:
    return row.value is not None and (row.low is not None or row.high is not None)


def _place(row: Finding) -> str:
    named = " ".join(name for name in (row.group, row.part) if name)
    return f"{named}: " if named else ""


def _sentence(row: Finding) -> str:
    return f"possible only if {_why(row)}" if row.condition else row.proof


def _why(row: Finding) -> str:
    return f"{row.condition}. {row.proof}" if row.condition else row.proof
