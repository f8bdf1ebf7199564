"""Report of the board of tools: a table for each level and quantity."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from errcomp.errors import NotDefinedError
from errcomp.report import forms
from errcomp.report.drawing.words import count, shorten
from errcomp.report.model import Cell, Column, Figure, Form, Report, Table, item
from errcomp.results import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from errcomp.claims.board import Board, BoardRow

__all__ = ["board_view", "errors_of_tools"]

_CAPTION = "MAPE of each tool with its interval. Only tools of one source can be compared."
#: Characters of a name beside its row.
_DESCRIBED = 44
_UNITS = {"model": "models", "device": "devices", "case": "cases"}


def board_view(result: Board) -> Report:
    """Return a table for each level and quantity, with the command behind each row."""
    kinds = dict.fromkeys((row.level, row.quantity) for row in result.rows)
    numbers = {source: i for i, source in enumerate(dict.fromkeys(_of(result)), start=1)}
    tables = [table for kind in kinds for table in _tables(result, *kind, numbers)]
    tools = {row.tool for row in result.rows}
    draw = partial(errors_of_tools, result)
    return Report(
        title="Board of tools: errors recomputed from pairs",
        line=[count(result.sources, "source"), count(len(tools), "tool"), *_results(result)],
        tables=[*tables, _sources(result, numbers)],
        figures=[Figure("figure", _CAPTION, draw)],
        draw=draw,
    )


def _results(result: Board) -> list[str]:
    """Return how many comparisons ended in each result, or nothing where none was made."""
    counts = Counter(row.compared for row in result.rows if row.against)
    if not counts:
        return []
    found = ", ".join(f"{n} {word}" for word, n in counts.most_common())
    return [f"{count(sum(counts.values()), 'comparison')}: {found}"]


def _of(result: Board) -> list[str]:
    return [row.source for row in result.rows]


def _tables(
    result: Board, level: str, quantity: str, numbers: Mapping[str, int]
) -> Iterator[Table]:
    """Yield the errors of one level and quantity, then the comparisons of tools."""
    rows = [row for row in result.rows if (row.level, row.quantity) == (level, quantity)]
    name = quantity.upper() if quantity in _SHORT else quantity.capitalize() or "Errors"
    title = f"{name}{f', {level} level' if level else ''}"
    place = Column("From", lambda row: f"[{numbers[row.source]}]", key=True)
    tool = Column("Tool", lambda row: row.tool, key=True)
    columns = [
        place,
        *([tool] if any(row.tool for row in rows) else []),
        Column("Cases", lambda row: row, _CASES),
        Column("MAPE", lambda row: row, _MAPE),
    ]
    if any(row.claim for row in rows):
        columns.append(Column("Claim", lambda row: row, _CLAIM))
    several = len({row.source for row in rows}) > 1
    notes = [_NO_INTERVAL] if any(row.low is None and row.high is None for row in rows) else []
    yield Table(title, columns, rows, [*notes, *([_NOT_RANKED] if several else [])])
    compared = [row for row in rows if row.against]
    if compared:
        columns = [
            place,
            tool,
            Column("Compared with", lambda row: row.against),
            Column("Cases", lambda row: row.common, forms.count),
            Column("Difference", lambda row: row, _DIFFERENCE),
            Column("Lower in", lambda row: row, _LOWER),
            Column("Result", lambda row: row.compared, choice=True),
        ]
        yield Table(f"{title}: tools of one source compared", columns, compared, [_OF_RESULTS])


_SHORT = ("ttft", "tpot", "itl")
_NOT_RANKED = "Rows of different sources are about different cases: do not rank them."
_NO_INTERVAL = "Where a MAPE has no interval, the command listed for its source says why."
_OF_RESULTS = (
    "Difference: MAPE of the tool minus that of the other, in percentage points, on the cases that "
    "both predict. Lower in: where its mean error is the lower one. Tools differ if the interval "
    "excludes 0, or if more units agree than by chance; all results of a source hold together."
)


def _sources(result: Board, numbers: Mapping[str, int]) -> Table:
    """Return the commands that recompute the rows, by the number of their source."""
    rows = list({row.command: row for row in result.rows}.values())
    columns = [
        Column("", lambda row: f"[{numbers[row.source]}]", key=True),
        Column("Measured on", lambda row: row.reference),
        Column("Command", lambda row: row.command),
    ]
    notes = [item(f"Left out: {one.source}: {one.reason}") for one in result.left_out]
    return Table("Sources", columns, rows, notes)


def short_names(sources: Sequence[str]) -> dict[str, str]:
    """Return each source without the folders that all of them share.

    Examples
    --------
    >>> short_names(["/data/a/x.csv", "/data/b/y.csv"])
    {'/data/a/x.csv': 'a/x.csv', '/data/b/y.csv': 'b/y.csv'}
    >>> short_names(["/data/a/x.csv", "neusight"])
    {'/data/a/x.csv': 'a/x.csv', 'neusight': 'neusight'}
    """
    paths = sorted({source for source in sources if os.sep in source})
    if len(paths) > 1:
        shared = os.path.commonpath(paths)
        return {s: os.path.relpath(s, shared) if s in paths else s for s in sources}
    return {s: str(PurePath(*PurePath(s).parts[-2:])) for s in sources}


def _cases(row: BoardRow) -> Cell:
    text = f"{row.n:,}" if row.n == row.cases else f"{row.n:,} of {row.cases:,}"
    return Cell(text, float(row.n))


def _mape(row: BoardRow) -> Cell:
    return forms.estimate.write(Estimate("mape", row.mape, low=row.low, high=row.high))


def _claim(row: BoardRow) -> Cell:
    return Cell(f"{row.claim}: {row.verdict}" if row.claim else "")


def _difference(row: BoardRow) -> Cell:
    if row.difference is None:
        return Cell("")
    ends = (row.difference, row.difference_low, row.difference_high)
    return forms.changes("").write(ends)


def _lower(row: BoardRow) -> Cell:
    if not row.units:
        return Cell("")
    unit = _UNITS.get(row.unit, f"values of {row.unit}")
    return Cell(f"{row.lower_in} of {row.units} {unit}", row.lower_in / row.units)


_CASES, _MAPE, _CLAIM = Form(_cases, right=True), Form(_mape, right=True), Form(_claim)
_DIFFERENCE, _LOWER = Form(_difference, right=True), Form(_lower)


def errors_of_tools(result: Board, ax: Axes | None = None) -> Axes:
    """Draw the MAPE of each tool with its interval, on a logarithmic axis.

    Parameters
    ----------
    result : Board
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotDefinedError
        No tool has an error above 0.
    MissingExtraError
        Matplotlib is not installed.
    """
    from errcomp.report.drawing.forest import Row, forest

    found = [row for row in result.rows if row.mape > 0]
    if not found:
        raise NotDefinedError("nothing to draw: no tool has an error above 0")
    names = short_names([row.source for row in found])
    return forest(
        ax,
        [
            Row(
                shorten(f"{row.tool or names[row.source]}, {row.quantity}", _DESCRIBED),
                100 * row.mape,
                None if row.low is None else 100 * row.low,
                None if row.high is None else 100 * row.high,
                row.compared,
                n=row.n,
                strong=not row.against,
            )
            for row in found
        ],
        title="Errors of tools, by source",
        notes=["only tools of one source can be compared; filled: compared with no other"],
        x="MAPE (%)",
        beside="result",
        log=True,
    )
