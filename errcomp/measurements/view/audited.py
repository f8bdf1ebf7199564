"""The section of an audit about its measured side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.drawing.words import count
from errcomp.report.model import Column, Note, Table, listing
from errcomp.results import Estimate, format_fraction

if TYPE_CHECKING:
    from errcomp.measurements.results import MeasuredSide, TooClose, WithoutNoise

__all__ = ["side_notes", "side_table"]

_HEAD = "The measured side (errcomp measurements check TABLE):"
#: Lines about tools; a page has all.
_SHOWN = 3


def side_notes(side: MeasuredSide | None) -> list[Note]:
    """Return what an audit prints about its measurements: nothing where none were checked."""
    if side is None:
        return []
    lines = list(_lines(side))
    if len(lines) == 1:
        return [Note(lines[0], apart=True, on="text")]
    return listing(_HEAD, lines, on="text")


def _lines(side: MeasuredSide) -> Iterator[str]:
    if side.copies:
        yield f"{side.copies:,} of {side.n:,} measurements are copies of others."
    if side.explained_by:
        yield (
            f"Measurements with equal keys differ with {', '.join(side.explained_by)}, "
            f"{'which' if len(side.explained_by) == 1 else 'the first of which'} explains "
            f"{100 * side.explained:.0f} % of their variance."
        )
    if side.differ:
        yield (
            f"{side.differ:,} measurements with equal keys differ by more than noise, and no "
            "column says why."
        )
    yield noise_line(side)
    shown = side.tools[:_SHOWN]
    for tool in shown:
        yield _remaining(tool, several=len(side.tools) > 1)
    if len(side.tools) > len(shown):
        yield f"{count(len(side.tools) - len(shown), 'more tool')}: --json"
    for close in side.too_close[:_SHOWN]:
        yield _close(close)


def noise_line(side: MeasuredSide) -> str:
    """Say what noise the measurements have."""
    floor = side.floor
    if floor.method == "none":
        why = "No measurement was repeated, so the noise"
        if side.repeated:
            why = "Repeats are equal, or differ by more than noise can explain, so the noise"
        return f"{why} is unknown (errcomp measurements check TABLE says more)."
    shown = format_fraction(floor.mape)
    if not math.isnan(floor.low):
        shown = forms.estimate.write(
            Estimate("floor", floor.mape, floor.low, floor.high, 0.95, n=floor.n)
        ).text
    return (
        f"A perfect predictor would show a MAPE of {shown} here: repeats of "
        f"{count(floor.groups, 'configuration')} differ by that much."
    )


def _remaining(tool: WithoutNoise, *, several: bool) -> str:
    of = f" of {tool.tool}" if several and tool.tool else ""
    left = forms.estimate.write(_estimate(tool)).text
    mape = format_fraction(tool.mape)
    return f"Without this noise, the MAPE{of} would be about {left} instead of {mape}."


def _estimate(tool: WithoutNoise) -> Estimate:
    return Estimate("remaining", tool.remaining, tool.low, tool.high, 0.95)


def _close(close: TooClose) -> str:
    return (
        f"Noise of the measurements could explain why {close.first} has a smaller MAPE than "
        f"{close.second}: by {_points(close.difference)}, and noise alone gives up to "
        f"{_points(close.smallest)}."
    )


def _points(fraction: float) -> str:
    return f"{100 * fraction:.2g} points"


def side_table(side: MeasuredSide | None) -> list[Table]:
    """Return the table of a page: what remains of each tool's error without noise."""
    if side is None or not side.tools:
        return []
    columns = [
        *([Column("Tool", lambda row: row.tool, key=True)] if len(side.tools) > 1 else []),
        Column("MAPE", lambda row: row.mape, forms.percent),
        Column("Without noise [95 %]", _estimate, forms.estimate),
    ]
    notes = [noise_line(side), *map(_close, side.too_close)]
    return [Table("Error without the noise of measurements", columns, side.tools, notes, on="page")]
