"""Elements of HTML, made so that text can never become markup."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from errcomp.report.model import clean

__all__ = ["el", "figures", "prose", "written"]


def el(tag: str, *children: ET.Element | str, **attributes: str | None) -> ET.Element:
    """Make an element; names of attributes take ``_`` for ``-``, and ``class_`` is the class.

    Examples
    --------
    >>> ET.tostring(el("p", "a <b> ", el("em", "c"), class_="x"), "unicode", "html")
    '<p class="x">a &lt;b&gt; <em>c</em></p>'
    """
    made = ET.Element(
        tag,
        {
            name.rstrip("_").replace("_", "-"): clean(value)
            for name, value in attributes.items()
            if value is not None
        },
    )
    for child in children:
        if isinstance(child, ET.Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + clean(child)
        else:
            made.text = (made.text or "") + clean(child)
    return made


def prose(text: str) -> list[ET.Element | str]:
    """Return text with what stands between backticks as code.

    Examples
    --------
    >>> [part if isinstance(part, str) else part.text for part in prose("run `errcomp` now")]
    ['run ', 'errcomp', ' now']
    """
    # A figure and its per cent sign stay on one line.
    parts = text.replace(" %", "\N{NO-BREAK SPACE}%").split("`")
    if len(parts) % 2 == 0:  # a backtick without its fellow is one
        return ["`".join(parts)]
    return [el("code", part) if i % 2 else part for i, part in enumerate(parts)]


def figures(text: str) -> list[str]:
    """Split the text of a cell with figures where a line may end: before an interval only.

    Examples
    --------
    >>> figures("8.74 % [3.3, 52.0]"), figures("44 of 117")
    (['8.74 %', '[3.3, 52.0]'], ['44 of 117'])
    """
    figure, space, interval = text.partition(" [")
    return [figure, f"[{interval}"] if space else [figure]


def written(element: ET.Element) -> str:
    """Write an element as HTML; characters that the encoding lacks are escaped."""
    return ET.tostring(element, "unicode", "html")
