"""What a page is made of, before it is HTML: sections with verdicts, advice, figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.report.model import Advice, Cell, Note, Table, Tone, Verdict

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["Advice", "Cell", "Grid", "Head", "Picture", "Section", "Tone", "Verdict", "grid_of"]


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column; ``choice`` columns get a list to filter by."""

    text: str
    right: bool = False
    choice: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table that can be sorted and filtered."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[Note] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that is drawn already.

    Attributes
    ----------
    name : str
        Unique on its page.
    caption : str
        How to read it.
    alt : str
        What it shows, for those who do not see it.
    svg : Element
        Without ids of its own beyond its name.
    spots : sequence of (float, float, str)
        Points in units of the SVG, with what a reader is told there.
    """

    name: str
    caption: str
    alt: str
    svg: Element
    spots: Sequence[tuple[float, float, str]] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One result on a page."""

    title: str
    verdicts: Sequence[Verdict] = ()
    advice: Sequence[Advice] = ()
    pictures: Sequence[Picture] = ()
    grids: Sequence[Grid] = ()
    method: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()


def grid_of(table: Table) -> Grid:
    """Turn a table of the terminal into one that can be sorted and filtered.

    Examples
    --------
    >>> from errcomp.report.forms import percent
    >>> from errcomp.report.model import Column
    >>> table = Table("Errors", [Column("MAPE", lambda row: row, percent)], [0.0874])
    >>> grid_of(table).rows[0][0].text, grid_of(table).rows[0][0].value
    ('8.74 %', 0.0874)
    """
    heads = [
        Head(column.header, column.right, choice=column.key and not column.right)
        for column in table.columns
    ]
    rows = [[column.cell(row) for column in table.columns] for row in table.rows]
    return Grid(table.title, heads, rows, table.remarks())
