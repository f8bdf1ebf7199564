"""Tables in Markdown as GitHub and GitLab render it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from errcomp.report.junit import token
from errcomp.report.model import ITEM, Note, Table, clean

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&]")
#: What is linked or replaced after Markdown has been read, so that a backslash does not help: a
#: mention, a reference to an issue, the name of an emoji.
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|:(?=[\w+-]+:)")
#: What begins a heading, a list or a rule where it begins a line.
_LEADING = re.compile(r"([#+=-]|\d+[.)])(?=[\s#+=-]|$)")

_SHOWN = 20


def markdown(tables: Sequence[Table]) -> str:
    r"""Write tables one below the other: title, grid, notes as a list.

    Cells come out of a renderer as they are in a terminal, whatever characters they hold; a line
    break or an escape code in a user's value is shown as what it is.

    Examples
    --------
    >>> from errcomp.report import forms
    >>> from errcomp.report.model import Column, Note
    >>> columns = [Column("GPU", lambda r: r[0]), Column("n", lambda r: r[1], forms.count)]
    >>> print(markdown([Table("Pairs", columns, [("A|B", 3)], [Note("Few pairs", "a")])]))
    **Pairs**
    <BLANKLINE>
    | GPU | n |
    | --- | ---: |
    | A\|B | 3 |
    <BLANKLINE>
    - **a** Few pairs
    """
    return "\n\n".join(_table(table) for table in tables)


def escaped(text: str) -> str:
    r"""Write text on one line so that Markdown shows it as it is and notifies nobody.

    An empty comment parts the signs that GitHub would turn into a mention, a reference or an
    emoji, and a dollar sign that would begin a formula stands in an element of its own. Nothing at
    the beginning makes a heading, a list or a rule of it.

    Examples
    --------
    >>> print(escaped("a|b_<c>"), escaped("@team #12"), escaped("5 $"), escaped("1. a"))
    a\|b\_\<c\> @<!-- -->team #<!-- -->12 5 <span>$</span> 1\. a
    """
    out = []
    cleaned = clean(text)
    linked = {match.start() for match in _LINKED.finditer(cleaned)}
    leading = _LEADING.match(cleaned)
    for i, sign in enumerate(cleaned):
        if leading and i == leading.end() - 1:
            out.append(f"\\{sign}")
        elif i in linked:
            out.append(f"{sign}<!-- -->")
        elif sign == "$":
            out.append("<span>$</span>")
        else:
            out.append(f"\\{sign}" if _SPECIAL.match(sign) else sign)
    return "".join(out)


def _table(table: Table) -> str:
    title = table.title.strip(" ")
    parts = [f"**{escaped(title)}**"]
    if table.rows:
        lines = [[column.header for column in table.columns]]
        lines += [[column.cell(row).text for column in table.columns] for row in table.rows]
        head, *rows = ("| " + " | ".join(map(escaped, line)) + " |" for line in lines)
        rule = "| " + " | ".join("---:" if c.right else "---" for c in table.columns) + " |"
        parts.append("\n".join([head, rule, *rows]))
    notes = [_item(note) for note in table.remarks()]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def _item(note: Note) -> str:
    indent = "  " if note.below else ""
    mark = "" if note.mark in ("", ITEM) else f"**{escaped(note.mark)}** "
    return f"{indent}- {mark}{escaped(note.text.strip(' '))}"


def line(text: str) -> str:
    r"""Write text so that Markdown shows it as it is, on one line, with names as JUnit has them.

    Examples
    --------
    >>> print(line("a|b"), line("two\n lines "))
    a\|b two lines
    """
    return escaped(token(text))


def head(title: str, verdict: str) -> list[str]:
    """Write the heading and the verdict in one bold sentence.

    Examples
    --------
    >>> head("Audit", "All is well.")
    ['## Audit', '', '**All is well.**', '']
    """
    return [f"## {line(title)}", "", f"**{line(verdict)}**", ""]


def table(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()
) -> list[str]:
    r"""Write a table and a blank line; beyond 20 rows the number of those left out.

    Parameters
    ----------
    names : sequence of str
        Of the columns.
    rows : iterable of sequence of str
        Cells as they are to be read; they are escaped here.
    right : iterable of int
        Columns set to the right.

    Examples
    --------
    >>> print("\n".join(table(["device", "n"], [["A|B", "3"]], right=[1])))
    | device | n |
    |---|---:|
    | A\|B | 3 |
    <BLANKLINE>
    """
    everything, at_right = list(rows), set(right)
    signs = ("---:" if i in at_right else "---" for i in range(len(names)))
    lines = [_row(names), f"|{'|'.join(signs)}|"]
    lines += [_row(cells) for cells in everything[:_SHOWN]]
    if len(everything) > _SHOWN:
        lines += ["", f"and {len(everything) - _SHOWN} more."]
    return [*lines, ""]


def paragraph(text: str) -> list[str]:
    """Write a paragraph.

    Examples
    --------
    >>> paragraph("What to do: nothing.")
    ['What to do: nothing.', '']
    """
    return [line(text), ""]


def items(lead: str, lines: Sequence[str]) -> list[str]:
    """Write a list below what leads to it.

    Examples
    --------
    >>> items("What to do:", ["Look.", "Mend."])
    ['What to do:', '', '- Look.', '- Mend.', '']
    """
    return [line(lead), "", *(f"- {line(text)}" for text in lines), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(line(cell) if cell else "–" for cell in cells) + " |"
