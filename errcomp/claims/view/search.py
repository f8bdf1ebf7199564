"""Report of a search: which subsets and rules reproduce a published figure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.report import forms
from errcomp.report.drawing.words import shorten
from errcomp.report.model import Cell, Column, Figure, Form, Report, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.claims.search import SearchResult

__all__ = ["format_chance", "matches", "search_view"]

#: Characters of a description beside its row.
_DESCRIBED = 64
#: From this number of matches expected for an unrelated figure, a match may be a coincidence.
_RARE = 0.05

#: Smaller expected numbers are printed as a bound.
_CHANCE = Form(lambda expected: Cell(format_chance(expected), expected), right=True)


def search_view(result: SearchResult) -> Report:
    """Return the matches, the least likely by chance first, and the conclusion."""
    table = _table(result)
    caption = (
        "For each match: number of matches at least as simple that an unrelated figure would have "
        "by chance."
    )
    draw = partial(matches, result)
    first = [match.description for match in result.matches[:1]]
    return Report(
        title=table.title,
        line=[*first, f"first of {len(result.matches)}"] if first else ["no match"],
        tables=[table],
        figures=[Figure("figure", caption, draw)],
        draw=draw,
    )


def _table(result: SearchResult) -> Table:
    tools = list(result.figures)
    columns = [
        Column("Subset and rule", lambda r: r.description),
        Column("n", lambda r: r.n, forms.count),
        *(_figure_column(tool) for tool in tools),
        Column("By chance", lambda r: r.expected_by_chance, _CHANCE),
    ]
    published = ", ".join(f"{t} {f.text}".strip() for t, f in result.figures.items())
    notes = [
        result.conclusion,
        "By chance: how many simpler or equally simple combinations of subset and rule would "
        "match random figures, on average. The random figures are about as far from the "
        "values of the whole table as the published figures are.",
        *_left_out(result),
    ]
    return Table(
        f"Subsets and rules that reproduce {published} in {result.source or 'the table'}",
        columns,
        result.matches,
        notes,
    )


def _left_out(result: SearchResult) -> list[str]:
    """Say which rows the search could not use, and the size of the first subset with them."""
    left_out = {tool: n for tool, n in result.searched["left_out"].items() if n}
    if not left_out:
        return []
    rows = ", ".join(f"{n} of {tool}" for tool, n in left_out.items())
    notes = [
        f"Only the {result.searched['configurations']} configurations common to all tools were "
        f"searched; rows left out: {rows}."
    ]
    for tool, n in result.in_first_subset.items():
        shared = result.matches[0].n
        if n > shared:
            notes.append(
                f"In the subset of the first match, {tool} has {n} rows; {shared} of them are "
                "common to all tools."
            )
    return notes


def _figure_column(tool: str) -> Column:
    return Column(tool or "Figure", lambda r: r.values[tool], forms.percent)


def format_chance(expected: float) -> str:
    """Write an expected number; small ones as a bound.

    Examples
    --------
    >>> format_chance(0.00004), format_chance(0.25), format_chance(1234.5)
    ('< 0.001', '0.25', '1234')
    """
    if expected < 0.001:
        return "< 0.001"
    return f"{expected:.2g}" if expected < 100 else f"{expected:.0f}"


def matches(found: SearchResult, ax: Axes | None = None) -> Axes:
    """Draw how many equally simple matches an unrelated figure would have by chance.

    Parameters
    ----------
    found : SearchResult
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes in a figure of their own by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        Nothing reproduces the figure.
    MissingExtraError
        Matplotlib is not installed.
    """
    if not found.matches:
        raise InputError(f"nothing to draw: {found.conclusion}")
    from errcomp.report.drawing.forest import Row, forest

    rows = [
        Row(
            f"{rank}",
            match.expected_by_chance,
            None,
            None,
            shorten(match.description, _DESCRIBED),
            strong=match.expected_by_chance < _RARE,
        )
        for rank, match in enumerate(found.matches, 1)
    ]
    published = ", ".join(f"{t} {f.text}".strip() for t, f in found.figures.items())
    return forest(
        ax,
        rows,
        title=f"Subsets and rules that reproduce {published}",
        notes=["filled: a coincidence is unlikely"],
        x="matches expected by chance",
        beside="subset and rule",
        reference=(_RARE, "below: a coincidence is unlikely"),
        log=True,
    )
