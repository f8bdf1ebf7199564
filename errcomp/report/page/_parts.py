"""What a page is made of, before it is HTML: sections with verdicts, advice, figures and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from errcomp.report.tables import Table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["Advice", "Cell", "Grid", "Head", "Picture", "Section", "Tone", "Verdict", "grid_of"]

Tone = Literal["good", "bad", "doubt", "plain"]
_NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence that answers the reader's question; the tone never stands alone for it.

    Attributes
    ----------
    head : str
        The answer in a word or two, e.g. ``"overstated"``.
    text : str
        What it is about and what it rests on.
    tone : {"good", "bad", "doubt", "plain"}
    """

    head: str
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to know before using the figures, and what to do about it."""

    title: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column; ``choice`` columns get a list to filter by."""

    text: str
    right: bool = False
    choice: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes
    ----------
    text : str
        As people read it.
    value : float or None
        What the column is sorted by; None where the text is.
    tone : {"good", "bad", "doubt", "plain"}
    more : sequence of Advice
        What unfolds below the table, for one cell of a row at most.
    about : str
        What that is, and of which row.
    """

    text: str
    value: float | None = None
    tone: Tone = "plain"
    more: Sequence[Advice] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table that can be sorted and filtered."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


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
    >>> from errcomp.report.tables import Column
    >>> table = Table("Errors", [Column("MAPE", lambda r: r["x"], right=True)], [{"x": "8.74 %"}])
    >>> grid_of(table).rows[0][0].value
    8.74
    """
    heads = [
        Head(column.header, column.right, choice=column.key and not column.right)
        for column in table.columns
    ]
    rows = [
        [_cell(column.show(row), column.right) for column in table.columns] for row in table.rows
    ]
    return Grid(table.title, heads, rows, table.notes)


def _cell(text: str, right: bool) -> Cell:
    return Cell(text, number_in(text) if right else None)


def number_in(text: str) -> float | None:
    """Return the first number that a cell shows, to sort by.

    Examples
    --------
    >>> number_in("218,432"), number_in("−1.5 % [−3, 0]"), number_in("—")
    (218432.0, -1.5, None)
    """
    found = _NUMBER.search(text)
    if found is None:
        return None
    return float(found[0].replace(",", "").replace("−", "-"))
