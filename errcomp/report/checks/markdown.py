"""Markdown as GitHub and GitLab render it: one heading, one bold sentence, tables, lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from errcomp.report.checks._characters import token
from errcomp.report.tables.markdown import escaped

__all__ = ["head", "items", "line", "paragraph", "table"]

_SHOWN = 20


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
