"""Tables in the Markdown of GitHub and GitLab."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from errcomp.report.junit import token
from errcomp.report.model import ITEM, Note, Table, clean

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&]")
#: Characters that begin a mention, an issue reference or the name of an emoji. GitHub replaces
#: these after parsing Markdown, so a backslash does not help.
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|:(?=[\w+-]+:)")
#: Characters that begin a heading, a list or a rule at the start of a line.
_LEADING = re.compile(r"([#+=-]|\d+[.)])(?=[\s#+=-]|$)")

_SHOWN = 20


def markdown(tables: Sequence[Table]) -> str:
    r"""Write tables one below the other: title, grid, notes as a list.

    Rendered cells show the same text as in a terminal, whatever characters it contains. Line breaks
    and escape codes in a user's text are shown as escape sequences.

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
    r"""Escape text so that Markdown shows it unchanged on one line and notifies nobody.

    An empty comment splits the characters that GitHub would turn into a mention, a reference or an
    emoji. A dollar sign, which could begin a formula, becomes an element. The start of the text
    never begins a heading, a list or a rule.

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
    parts = [f"**{escaped(title)}**", *([escaped(table.lead)] if table.lead else [])]
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
    r"""Escape text for Markdown on one line, after the same clean-up as in JUnit files.

    Examples
    --------
    >>> print(line("a|b"), line("two\n lines "))
    a\|b two lines
    """
    return escaped(token(text))


def head(title: str, verdict: str) -> list[str]:
    """Write a heading, and below it the verdict as a bold sentence.

    Examples
    --------
    >>> head("Audit", "All is well.")
    ['## Audit', '', '**All is well.**', '']
    """
    return [f"## {line(title)}", "", f"**{line(verdict)}**", ""]


def table(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()
) -> list[str]:
    r"""Write a table of at most 20 rows, the number of further rows, and a blank line.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    rows : iterable of sequence of str
        Text of the cells, not escaped.
    right : iterable of int
        Numbers of the right-aligned columns.

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
    """Write a sentence and a list below it.

    Examples
    --------
    >>> items("What to do:", ["Check the units.", "Run again."])
    ['What to do:', '', '- Check the units.', '- Run again.', '']
    """
    return [line(lead), "", *(f"- {line(text)}" for text in lines), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(line(cell) if cell else "–" for cell in cells) + " |"
