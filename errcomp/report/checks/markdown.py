"""Markdown as GitHub and GitLab render it: one heading, one bold sentence, tables, lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from errcomp.report.checks._characters import token

__all__ = ["escaped", "head", "items", "paragraph", "table"]

#: What means something in Markdown or to the HTML in it.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$@!])")
#: Turned into a mention or a reference after Markdown has been read, escaped or not.
_LINKED = re.compile(r"([@#])(?=\w)")
_SHOWN = 20


def escaped(text: str) -> str:
    r"""Write text so that Markdown shows it as it is, on one line, and notifies nobody.

    A sign of width 0 stands behind an @ or # that would otherwise become a mention or a reference.

    Examples
    --------
    >>> print(escaped("a|b_<script>"), escaped("@team"))
    a\|b\_\<script\> \@&#8203;team
    """
    parts = _LINKED.split(token(text))
    # Every second part is a sign that was split at.
    return "".join(
        f"\\{part}&#8203;" if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts)
    )


def head(title: str, verdict: str) -> list[str]:
    """Write the heading and the verdict in one bold sentence.

    Examples
    --------
    >>> head("Audit", "All is well.")
    ['## Audit', '', '**All is well.**', '']
    """
    return [f"## {escaped(title)}", "", f"**{escaped(verdict)}**", ""]


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
    return [escaped(text), ""]


def items(lead: str, lines: Sequence[str]) -> list[str]:
    """Write a list below what leads to it.

    Examples
    --------
    >>> items("What to do:", ["Look.", "Mend."])
    ['What to do:', '', '- Look.', '- Mend.', '']
    """
    return [escaped(lead), "", *(f"- {escaped(line)}" for line in lines), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escaped(cell) if cell else "–" for cell in cells) + " |"
