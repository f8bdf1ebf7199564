"""Figures of an audit and of its pairs: each takes axes and returns them.

`claimed` draws claimed and recomputed errors; `predicted_against_measured` every pair; `ecdf` the
distribution of errors; `bland_altman` whether the error depends on size; `by_group` the errors of
each group; `coverage_map` which workloads have predictions. The functions do not open a window, use
pyplot or change Matplotlib's settings. They need Matplotlib (``pip install 'errcomp[figures]'``).
`errcomp.report.drawing.saving.save` writes a file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import parse_printed
from errcomp.claims.view import parts
from errcomp.claims.view.agreement import bland_altman
from errcomp.claims.view.coverage import coverage_map
from errcomp.claims.view.pairs import by_group, ecdf, predicted_against_measured
from errcomp.errors import NotDefinedError
from errcomp.report.drawing import axes
from errcomp.report.drawing import style as _style
from errcomp.report.drawing import words as _text
from errcomp.report.drawing.hover import tell
from errcomp.results import format_fraction

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from errcomp.claims.auditing import Audit, AuditRow
    from errcomp.claims.registry import Claim

__all__ = [
    "bland_altman",
    "by_group",
    "claimed",
    "coverage_map",
    "ecdf",
    "predicted_against_measured",
]

#: Most groups that are drawn; the others are counted.
_MOST_ROWS = 30
#: Intervals and largest errors extend the axis to at most this multiple of the largest mean.
_MOST_FOR_INTERVALS, _MOST_FOR_LARGEST = 2.5, 7.0
#: The axis is logarithmic if the largest mean or claim is more than this multiple of the median.
_WIDE = 12.0
_TINTS = {"overstated": _style.ORANGE, "understated": _style.BLUE, "consistent": _style.INK}


def claimed(audit: Audit, ax: Axes | None = None) -> Axes:
    r"""Draw claimed against recomputed errors, group by group, the largest error first.

    A filled circle is the mean absolute percentage error of a group, with its interval:

    .. math:: \mathrm{MAPE} = \frac{1}{n} \sum_i \frac{|p_i - m_i|}{m_i}

    A small tick is the largest error of a single pair. An open diamond is the figure claimed for
    the group, an open bar a claimed bound or range. Only claims that these pairs can decide are
    drawn; all are written beside the axes. A claim about another metric than the mean is compared
    with that metric, drawn as an open circle. Below the line are all pairs of a tool together.
    Intervals and ticks far beyond the means are cut and end in an arrow; the interval is written
    beside. The verdict is that of `errcomp.audit`, with "maybe" where it is not significant after
    correcting for the number of claims.

    Misleads where a diamond inside an interval is taken as a confirmed claim: a wide interval holds
    many figures.

    Parameters
    ----------
    audit : Audit
        From `errcomp.audit`.
    ax : matplotlib.axes.Axes, optional
        Where to draw, on a light ground; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        The audit has no rows.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> import errcomp as ec
    >>> axes = claimed(ec.audit(ec.datasets.load("neusight"), by=["device", "mode"]))
    >>> axes.get_yticklabels()[0].get_text()
    'P4, inference  n=3'
    """
    groups, overall, left_out = _rows(audit)
    rows = [*groups, *overall]
    several = len({row.tool for row in audit.by_tool}) > 1
    names = [_name(row, several) for row in rows]
    ax = _style.canvas(ax, 2.0 + 0.235 * len(rows))
    _limits(ax, rows)
    for y, row in enumerate(rows):
        _row(ax, y, row)
    if groups and overall:
        ax.axhline(len(groups) - 0.5, color=_style.MUTED, lw=0.8, zorder=1)
    axes.label_rows(ax, names, [row.n for row in rows], above=0.6)
    words, claims = [_word(row) for row in rows], [_claim_text(row.verdict.claim) for row in rows]
    ink = [_style.INK] * len(rows)
    estimates = [row.figures["mape"].format() for row in rows]
    columns = [(f"MAPE [{100 * audit.level:g} %]", estimates, ink)]
    if any(words):
        tints = [_TINTS.get(row.verdict.word, _style.MUTED) for row in rows]
        columns += [("claimed", claims, ink), ("verdict", words, tints)]
    axes.columns_beside(ax, columns)
    _tell(ax, rows, names)
    ax.grid(axis="x", color=_style.GRID)
    _style.name_axes(ax, x="absolute error (% of measured)")
    tools = {row.tool for row in audit.by_tool}
    whose = f" of {_text.shorten(next(iter(tools)))}" if len(tools) == 1 and any(tools) else ""
    n = sum(row.n for row in audit.by_tool)
    kinds = "Claimed and recomputed" if any(words) else "Recomputed"
    _style.heading(
        ax,
        f"{kinds} error{whose}, n={_text.count(n, 'pair')}",
        _notes(audit, words, left_out),
        room=_keys(ax, audit, rows),
    )
    return ax


def _mape(row: AuditRow) -> float:
    return row.figures["mape"].value


def _rows(audit: Audit) -> tuple[list[AuditRow], list[AuditRow], list[AuditRow]]:
    """Return the groups to draw, worst first, the tools as a whole, and groups left out."""
    if not audit.by_tool and not audit.rows:
        raise NotDefinedError("nothing to draw: the audit has no rows")
    groups = sorted(audit.rows if audit.by else (), key=lambda row: -_mape(row))
    overall = sorted(audit.by_tool, key=lambda row: -_mape(row))[:_MOST_ROWS]
    return groups[:_MOST_ROWS], overall, groups[_MOST_ROWS:]


def _name(row: AuditRow, several: bool) -> str:
    values = [parts.value_text(value) for value in row.key.values()]
    tool = [row.tool or "(no tool)"] if several else []
    return ", ".join([*tool, *values] if values else [*tool, "all"])


def _claim_text(claim: Claim | None) -> str:
    if claim is None or not claim.printed:
        return ""
    right = claim.metric in ("accuracy", "alignment")
    return f"{claim.shown} right" if right else claim.shown


def _word(row: AuditRow) -> str:
    """Return the verdict, with "maybe" after correction; empty without a claim."""
    if row.verdict.word == "no claim":
        return ""
    return row.verdict.shown


def _drawable(row: AuditRow) -> tuple[float, float] | None:
    """Return the claimed interval where it is an error that these pairs decide."""
    verdict = row.verdict
    if verdict.claim is None or verdict.recomputed is None or verdict.claim.kind != "error":
        return None
    return verdict.claim.interval


def _is_value(row: AuditRow) -> bool:
    return row.verdict.claim is not None and (
        parse_printed(row.verdict.claim.printed).kind == "value"
    )


def _limits(ax: Axes, rows: Sequence[AuditRow]) -> None:
    """Set limits around means and claims; include intervals and largest errors up to a multiple."""
    core = [100 * _mape(row) for row in rows]
    for row in rows:
        core += [100 * end for end in _drawable(row) or () if math.isfinite(end)]
    positive = [value for value in core if value > 0] or [1.0]
    top = max(positive)
    intervals = max((100 * (row.figures["mape"].high or 0.0) for row in rows), default=0.0)
    largest = max(100 * row.figures["max_ape"].value for row in rows)
    high = max(
        top, min(intervals, _MOST_FOR_INTERVALS * top), min(largest, _MOST_FOR_LARGEST * top)
    )
    if top <= _WIDE * float(np.median(positive)):
        ax.set_xlim(0.0, 1.04 * high)
        ax.xaxis.set_major_formatter(lambda value, _: f"{_text.number(value)} %")
        return
    lows = [100 * row.figures["mape"].low for row in rows if row.figures["mape"].low]
    low = max(min([*positive, *lows]), float(np.median(positive)) / 100)
    ax.set_xscale("log")
    ax.set_xlim(low / 1.3, high * 1.2)
    axes.log_ticks(ax.xaxis, " %", apart=0.16)


def _row(ax: Axes, y: int, row: AuditRow) -> None:
    left, right = ax.get_xlim()
    mape, largest = row.figures["mape"], 100 * row.figures["max_ape"].value
    if mape.low is not None and mape.high is not None:
        low, high = 100 * mape.low, 100 * mape.high
        ends = [max(low, left), min(high, right)]
        ax.plot(ends, [y, y], color=_style.interval(_style.BLUE), lw=2.4,
                solid_capstyle="butt", zorder=2)  # fmt: skip
        _arrow(ax, y, low < left, high > right, _style.BLUE, 5.5)
    if largest <= right:
        ax.plot([max(largest, left)], [y], "|", color=_style.MUTED, ms=9, mew=1.3, zorder=2.5)
    elif mape.high is None or 100 * mape.high <= right:
        _arrow(ax, y, False, True, _style.MUTED, 4.0)
    ax.plot([max(100 * mape.value, left)], [y], "o", color=_style.BLUE, ms=5.5, zorder=4)
    judged = row.verdict.recomputed
    claim = _drawable(row)
    if claim is None or judged is None:
        return
    if judged.figure != "mape":
        ax.plot([max(100 * judged.value, left)], [y], "o", mfc="white", color=_style.BLUE, ms=5.5,
                mew=1.3, zorder=4)  # fmt: skip
    _claim(ax, y, row, (100 * claim[0], 100 * claim[1]))


def _claim(ax: Axes, y: int, row: AuditRow, ends: tuple[float, float]) -> None:
    left, right = ax.get_xlim()
    if _is_value(row):
        middle = max((ends[0] + ends[1]) / 2, left)
        ax.plot([middle], [y], "D", mfc="white", color=_style.ORANGE, ms=5, mew=1.5, zorder=5)
        return
    low, high = max(ends[0], left), min(ends[1], right)
    ax.barh([y], [high - low], left=low, height=0.55, facecolor="none", edgecolor=_style.ORANGE,
            linewidth=1.3, zorder=3)  # fmt: skip
    _arrow(ax, y, False, ends[1] > right, _style.ORANGE, 5.5)


def _arrow(ax: Axes, y: float, below: bool, above: bool, colour: str, size: float) -> None:
    """Mark that something continues beyond an edge."""
    for beyond, edge, mark in ((below, 0, "<"), (above, 1, ">")):
        if beyond:
            ax.plot([edge], [y], mark, color=colour, ms=size, clip_on=False, zorder=5,
                    transform=ax.get_yaxis_transform())  # fmt: skip


def _tell(ax: Axes, rows: Sequence[AuditRow], names: Sequence[str]) -> None:
    left, right = ax.get_xlim()
    x, y, texts = [], [], []
    for at, (row, name) in enumerate(zip(rows, names, strict=True)):
        head = f"{name}, n={row.n:,}"
        mape, largest = row.figures["mape"], row.figures["max_ape"].value
        spots = [(mape.value, f"MAPE {mape.format()}")]
        spots.append((largest, f"largest error {format_fraction(largest)}"))
        claim = _drawable(row)
        if claim is not None:
            middle = (claim[0] + claim[1]) / 2 if _is_value(row) else min(claim[1], right / 100)
            told = f"claimed {_claim_text(row.verdict.claim)}: {row.verdict.word}"
            spots.append((middle, told))
        for value, told in spots:
            x.append(min(max(100 * value, left), right))
            y.append(float(at))
            texts.append(f"{head}\n{told}")
    tell(ax, x, y, texts)


def _notes(audit: Audit, words: Sequence[str], left_out: Sequence[AuditRow]) -> list[str]:
    notes = []
    if audit.by:
        notes.append(f"by {' and '.join(map(_text.shorten, audit.by))}, largest error first")
    if left_out:
        claims = [row for row in left_out if row.verdict.claim is not None]
        over = sum(row.verdict.word == "overstated" for row in claims)
        told = f" ({_text.count(len(claims), 'claim')} among them, {over} overstated)"
        notes.append(
            f"not drawn: {_text.count(len(left_out), 'group')}, MAPE up to "
            f"{format_fraction(_mape(left_out[0]))}{told if claims else ''}"
        )
    for word, side in (("overstated", "above"), ("understated", "below")):
        if any(word in shown for shown in words):
            notes.append(f"{word}: the whole interval lies {side} the claim")
    if any(word.startswith("maybe") for word in words):
        notes.append(f"maybe: not significant after correcting for {audit.judged_together} claims")
    if len(audit.by_tool) > _MOST_ROWS:
        notes.append(f"not drawn: {_text.count(len(audit.by_tool) - _MOST_ROWS, 'tool')}")
    return notes


def _keys(ax: Axes, audit: Audit, rows: Sequence[AuditRow]) -> float:
    """Explain the marks that occur, and return the height of the key in points."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn = [row for row in rows if _drawable(row) is not None]
    marks: list[Artist] = []
    if any(map(_is_value, drawn)):
        marks.append(Line2D([], [], ls="", marker="D", ms=5, mfc="white", mew=1.5,
                            color=_style.ORANGE, label="claimed"))  # fmt: skip
    if not all(map(_is_value, drawn)):
        marks.append(Patch(facecolor="none", edgecolor=_style.ORANGE, label="claimed range"))
    if any(row.verdict.recomputed and row.verdict.recomputed.figure != "mape" for row in drawn):
        marks.append(Line2D([], [], ls="", marker="o", ms=5.5, mfc="white", mew=1.3,
                            color=_style.BLUE, label="the claim's metric"))  # fmt: skip
    marks.append(Line2D([], [], color=_style.BLUE, marker="o", ms=5.5, lw=1.6,
                        label=f"mean (MAPE), {100 * audit.level:g} % interval"))  # fmt: skip
    marks.append(Line2D([], [], ls="", marker="|", ms=9, mew=1.3, color=_style.MUTED,
                        label="largest error"))  # fmt: skip
    return _style.keys(ax, [marks])
