"""Tables as text that fits the terminal, at most 100 characters wide."""

from __future__ import annotations

import io
import math
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from errcomp.report.model import ITEM, Column, Note, Table, clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


#: Largest width of a table in characters; the width in a file or a pipe.
WIDTH = 100
#: Smallest width; a narrower terminal breaks the lines itself.
_NARROWEST = 60
_GAP = 2
#: Rows of a table that Rich draws alone.
_MANY = 200
#: Notes of more than one line that a table shows without --explain.
_LONG_NOTES = 2
#: Characters at which textwrap breaks lines, and placeholders for places where it must not.
_HELD = {ord(" "): "\N{NO-BREAK SPACE}", ord("-"): "\ue000"}
_RELEASED = {ord(held): chr(code) for code, held in _HELD.items()}


def render(table: Table) -> str:
    """Return a table as text that fits the width and is readable without colour."""
    from rich.console import Console
    from rich.text import Text

    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = max(_NARROWEST, min(WIDTH, get_terminal_size().columns)) if terminal else WIDTH
    colour = terminal and not os.environ.get("NO_COLOR")
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colour, highlight=False, emoji=False)
    console.print(Text(table.title, style="bold"))
    if table.lead:
        console.print()
        console.print(_wrap(Note(table.lead), width))
    cells = _Cells(table.rows)
    for columns in fitting(table, width, cells) if table.rows else ():
        console.print()
        if len(table.rows) > _MANY and any(column.header for column in columns):
            _print_long(console, columns, cells, width)
        else:
            console.print(_grid(columns, cells, width))
    drawn = re.sub(r"\n\n+", "\n\n", re.sub(r" +$", "", stream.getvalue(), flags=re.M))
    lines = drawn.rstrip("\n").splitlines()
    if table.rows and table.notes:
        lines.append("")
    text = "\n".join([*lines, *(_wrap(note, width) for note in table.remarks())])
    # The first note may bring a blank line of its own.
    return re.sub(r"\n\n\n+", "\n\n", text)


def briefly(table: Table) -> Table:
    """Leave out notes that fill more than a line, except the first two, and say how to read them.

    Notes with a mark, such as caveats and signs in cells, and notes that begin a list stay.

    Examples
    --------
    >>> long = "Errors of runs on new devices are larger than these, by an unknown amount. " * 2
    >>> table = Table("Errors", [], [], ["n is small.", long, long.upper(), long])
    >>> [note.text[:30] for note in briefly(table).remarks()]
    ['n is small.', 'Errors of runs on new devices ', 'ERRORS OF RUNS ON NEW DEVICES ', \
'1 more note: add --explain.']
    """
    notes = table.remarks()
    begins_list = [*(after.below for after in notes[1:]), False][: len(notes)]
    long = [
        i
        for i, (note, begins) in enumerate(zip(notes, begins_list, strict=True))
        if len(note.text) > WIDTH and not note.mark and not note.below and not begins
    ]
    hidden = set(long[_LONG_NOTES:])
    if not hidden:
        return table
    kept = [note for i, note in enumerate(notes) if i not in hidden]
    more = f"{len(hidden)} more note{'s'[: len(hidden) > 1]}: add --explain."
    return replace(table, notes=[*kept, Note(more)])


class _Cells:
    """The texts of the cells of each column, written once."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self._of: dict[int, list[str]] = {}

    def __call__(self, column: Column) -> list[str]:
        texts = self._of.get(id(column))
        if texts is None:
            texts = self._of[id(column)] = [clean(column.cell(row).text) for row in self.rows]
        return texts

    def some(self, rows: Sequence[int]) -> _Cells:
        """Return the cells of some rows."""
        chosen = _Cells([self.rows[i] for i in rows])
        chosen._of = {key: [texts[i] for i in rows] for key, texts in self._of.items()}
        return chosen


def _grid(
    columns: Sequence[Column], cells: _Cells, width: int, places: Sequence[int] | None = None
) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
        show_header=any(column.header for column in columns),
    )
    whole = [] if places else _unbroken(columns, cells, width)
    for i, column in enumerate(columns):
        place = places[i] if places else None
        if place is None and (column.right or column in whole):
            # Without a fixed width, Rich narrows columns of numbers to fit a long header.
            place = _width(column, cells) - _GAP
        drawn.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            width=place,
            overflow="fold",
        )
    for row in zip(*map(cells, columns), strict=True):
        drawn.add_row(*map(Text, row))
    return drawn


def _print_long(console: Console, columns: Sequence[Column], cells: _Cells, width: int) -> None:
    """Print a long table: of its rows, Rich draws only those that need several lines.

    Rich takes a millisecond for each row.
    """
    places = _places(columns, cells, width)
    rows = list(zip(*map(cells, columns), strict=True))
    wrap = [i for i, row in enumerate(rows) if not _is_line(row, places)]
    head = _drawn(console, _grid(columns, cells.some([0]), width, places))
    end = next(i for i, line in enumerate(head) if line.startswith("─")) + 1
    lines = head[:end]
    pads = [str.rjust if column.right else str.ljust for column in columns]
    gap, done = " " * _GAP, 0
    for i in [*wrap, len(rows)]:
        lines += [
            gap.join(pad(text, place) for pad, text, place in zip(pads, row, places, strict=True))
            for row in rows[done:i]
        ]
        if i < len(rows):
            lines += _drawn(console, _grid(columns, cells.some([i]), width, places))[end:]
        done = i + 1
    console.file.write("\n".join(lines) + "\n")


def _drawn(console: Console, grid: RichTable) -> list[str]:
    with console.capture() as drawn:
        console.print(grid)
    return drawn.get().splitlines()


def _is_line(row: Sequence[str], places: Sequence[int]) -> bool:
    """Say whether a row is one line, in which each letter takes one place."""
    from rich.cells import cell_len

    fits = all(len(text) <= place for text, place in zip(row, places, strict=True))
    return fits and all(text.isascii() or cell_len(text) == len(text) for text in row)


def _places(columns: Sequence[Column], cells: _Cells, width: int) -> list[int]:
    """Return the width of each column: the widest texts share what numbers and names leave."""
    held = _unbroken(columns, cells, width)
    free = [column for column in columns if not column.right and column not in held]
    room = width + _GAP
    room -= sum(_width(column, cells) for column in columns if column not in free)
    level = _level([_natural(column, cells) for column in free], room)
    return [
        int(min(_natural(c, cells), level) if c in free else _width(c, cells)) - _GAP
        for c in columns
    ]


def fitting(table: Table, width: int = WIDTH, cells: _Cells | None = None) -> list[list[Column]]:
    """Split the columns into several grids, each with the key columns, so that numbers fit."""
    cells = _Cells(table.rows) if cells is None else cells
    keys = [column for column in table.columns if column.key]
    grids, used = [list(keys)], 0
    # The last column has no gap after it.
    room = width + _GAP - sum(_width(column, cells) for column in keys)
    for column in table.columns:
        if column.key:
            continue
        needed = _width(column, cells)
        if keys and used + needed > room and len(grids[-1]) > len(keys):
            grids.append(list(keys))
            used = 0
        grids[-1].append(column)
        used += needed
    return grids


def _width(column: Column, cells: _Cells) -> int:
    """Return the smallest width of a column with its gap; text can wrap, numbers cannot."""
    words = column.header.split() or [""]
    texts = cells(column)
    if not column.right:
        words += [word for text in texts for word in text.split()]
        texts = []
    return max(map(len, [*words, *texts])) + _GAP


def _natural(column: Column, cells: _Cells) -> int:
    """Return the width of a column of text, with its gap, where nothing wraps."""
    return _GAP + max(len(column.header), *map(len, cells(column)))


def _unbroken(columns: Sequence[Column], cells: _Cells, width: int) -> list[Column]:
    """Return the text columns in which words would be broken although other columns have room.

    Rich narrows the widest columns to one common width, however long their words are. A broken name
    cannot be copied.
    """
    texts = [column for column in columns if not column.right]
    least = {id(column): _width(column, cells) for column in texts}
    room = width + _GAP - sum(_width(column, cells) for column in columns if column.right)
    if sum(least.values()) > room:
        return []
    natural = {id(column): _natural(column, cells) for column in texts}
    held: list[Column] = []
    while texts:
        level = _level([natural[id(column)] for column in texts], room)
        tight = [column for column in texts if least[id(column)] > level]
        if not tight:
            break
        held += tight
        room -= sum(least[id(column)] for column in tight)
        texts = [column for column in texts if column not in tight]
    return held


def _level(widths: Sequence[int], room: int) -> float:
    """Return the common width of the widest columns with which all columns fit.

    Examples
    --------
    >>> _level([10, 30, 50], 70), _level([10, 20], 70)
    (30.0, inf)
    """
    if sum(widths) <= room:
        return math.inf
    left, share = float(room), math.inf
    for i, width in enumerate(sorted(widths)):
        share = left / (len(widths) - i)
        if width > share:
            break
        left -= width
    return share


def _wrap(note: Note, width: int) -> str:
    """Wrap a note at the width; indent the further lines of a note with a mark."""
    mark = f" {note.mark} " if note.mark == ITEM else f" {note.mark}  " if note.mark else ""
    if note.mark.startswith("["):
        mark = f"{note.mark} "
    # Keep a number and its % sign together: textwrap does not break at this space.
    text = clean(note.text).replace(" %", "\N{NO-BREAK SPACE}%")
    # Do not break code either, so that it can be pasted.
    text = re.sub(r"`[^`]+`", lambda code: code[0].translate(_HELD), text)
    lines = textwrap.wrap(
        text, width, initial_indent=mark, subsequent_indent=" " * len(mark), break_long_words=False
    )
    return "\n".join([*([""] if note.apart else []), *lines]).translate(_RELEASED)
