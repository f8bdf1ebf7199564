"""What reproduces a published figure, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Cell, Column, Form, Table

if TYPE_CHECKING:
    from errcomp.claims.search import SearchResult

__all__ = ["format_chance", "search_table"]

#: Small numbers of matches are a bound that a reader can hold on to.
_CHANCE = Form(lambda expected: Cell(format_chance(expected), expected), right=True)


def search_table(
    result: SearchResult, source: str = "", in_first: Mapping[str, int] | None = None
) -> Table:
    """Return the matches, the most likely first, and what was concluded from them.

    ``in_first`` says how many rows of each tool, shared or not, are in the first subset.
    """
    tools = list(result.figures)
    columns = [
        Column("Subset and rule", lambda r: r["match"].description),
        Column("n", lambda r: r["match"].n, forms.count),
        *(_figure_column(tool) for tool in tools),
        Column("By chance", lambda r: r["match"].expected_by_chance, _CHANCE),
    ]
    published = ", ".join(f"{t} {f.text}".strip() for t, f in result.figures.items())
    notes = [
        result.conclusion,
        "By chance: how many matches as simple as this unrelated figures would have on average, "
        "drawn as near to those of the whole table as these.",
        *_left_out(result, in_first or {}),
    ]
    rows = [{"match": match} for match in result.matches]
    return Table(f"What reproduces {published} in {source or 'the table'}", columns, rows, notes)


def _left_out(result: SearchResult, in_first: Mapping[str, int]) -> list[str]:
    """Say which rows the search could not use, and what the best subset is with them."""
    left_out = {tool: n for tool, n in result.searched["left_out"].items() if n}
    if not left_out:
        return []
    rows = ", ".join(f"{n} of {tool}" for tool, n in left_out.items())
    notes = [
        f"Only the {result.searched['configurations']} configurations that all of them have were "
        f"searched; left out: {rows}."
    ]
    for tool, n in in_first.items():
        shared = result.matches[0].n
        if n > shared:
            notes.append(
                f"In the first subset {tool} has {n} in all, of which {shared} are shared."
            )
    return notes


def _figure_column(tool: str) -> Column:
    return Column(tool or "Figure", lambda r: r["match"].values[tool], forms.percent)


def format_chance(expected: float) -> str:
    """Write an expected count: small ones as a bound a reader can hold on to.

    Examples
    --------
    >>> format_chance(0.00004), format_chance(0.25), format_chance(1234.5)
    ('< 0.001', '0.25', '1234')
    """
    if expected < 0.001:
        return "< 0.001"
    return f"{expected:.2g}" if expected < 100 else f"{expected:.0f}"
