"""What stands below a table, taken apart: legends, numbered remarks, items and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["ITEM", "Note", "parsed"]

#: The mark of an item; others are letters and signs of a legend, or numbers.
ITEM = "·"
_MARK = re.compile(r" (?:(·)|([a-z†‡*]) ) |(\[\d+\]) ")


@dataclass(frozen=True, slots=True)
class Note:
    """One note.

    Attributes
    ----------
    mark : str
        ``"·"`` of an item, a letter or sign of a legend, ``"[1]"``, or nothing.
    text : str
        What it says, without the mark.
    below : bool
        Whether it is an item of the sentence above it that ends with a colon.
    """

    mark: str
    text: str
    below: bool = False


def parsed(notes: Sequence[str]) -> Iterator[Note]:
    """Take notes apart; empty ones, which only leave a gap in a terminal, are left out.

    Examples
    --------
    >>> [(n.mark, n.text, n.below) for n in parsed([" a  Few pairs", "", "Why:", " · so"])]
    [('a', 'Few pairs', False), ('', 'Why:', False), ('·', 'so', True)]
    """
    under = False
    for note in filter(None, notes):
        found = _MARK.match(note)
        mark = next(filter(None, found.groups())) if found else ""
        text = note[found.end() :] if found else note.strip(" ")
        under = text.endswith(":") if not mark else under and mark == ITEM
        yield Note(mark, text, below=under and mark == ITEM)
