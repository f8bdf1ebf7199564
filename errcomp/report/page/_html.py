"""Sections as one HTML file that needs nothing else: no network, no server, and no script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from importlib.resources import files
from xml.etree.ElementTree import Element

from errcomp.report.model import ITEM
from errcomp.report.page._elements import el, figures, prose, written
from errcomp.report.page._parts import Advice, Cell, Grid, Head, Picture, Section, Tone

__all__ = ["fragment", "page"]

_REFERENCE = re.compile(r"url\(#([^)]+)\)")
#: Characters across an upright sheet of paper, at the size that tables are printed in.
_UPRIGHT = 100
#: Characters of a word that is not broken on paper, and of the space between two columns.
_WORD, _BETWEEN = 16, 2
#: A sign for each tone, so that colour is not all that tells them apart.
_SIGNS: dict[Tone, str] = {"good": "✓", "bad": "✗", "doubt": "?", "plain": "·"}


def page(sections: Sequence[Section], *, title: str, made_by: str) -> str:
    """Write sections as an HTML page.

    All text is escaped, the policy in its head forbids every request and every script but its own,
    and what the script adds (sorting, filters, answers to the pointer) is not needed to read it.

    Parameters
    ----------
    sections : sequence of Section
    title : str
        Of the page.
    made_by : str
        Name and version of what made it.

    Returns
    -------
    str
        The same sections give the same text.
    """
    names = [f"result-{i}" for i in range(1, len(sections) + 1)]
    alone = len(sections) == 1 and sections[0].title == title
    main = el("main", id="main", tabindex="-1")
    main.extend(
        _section(one, name, titled=not alone) for one, name in zip(sections, names, strict=True)
    )
    body = el(
        "body",
        el("a", "Skip to the results", class_="skip", href="#main"),
        el("header", el("h1", title, id="title"), _contents(sections, names)),
        main,
        el("footer", el("p", f"Made by {made_by}. It needs no network and no server.")),
        el("div", id="told", role="status", aria_live="polite"),
        _script(),
    )
    return "<!doctype html>\n" + written(el("html", _head(title), body, lang="en")) + "\n"


def fragment(section: Section) -> str:
    """Write one section for a notebook, with its style and without a script."""
    style = el("style")
    style.text = f"@scope {{\n{_asset('page.css')}\n}}"
    plain = replace(section, pictures=[replace(one, spots=()) for one in section.pictures])
    # Cells of a notebook are one page: ids differ where results do.
    name = "r" + hashlib.sha256(written(_section(plain, "")).encode()).hexdigest()[:12]
    return written(el("div", style, _section(plain, name), class_="errcomp"))


def _head(title: str) -> Element:
    style = el("style")
    style.text = _asset("page.css")
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    policy += f"script-src 'sha256-{digest}'"
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        style,
    )


def _script() -> Element:
    script = el("script")
    script.text = _asset("page.js")
    return script


@cache
def _asset(name: str) -> str:
    return (files("errcomp.report.page") / "assets" / name).read_text(encoding="utf-8")


def _contents(sections: Sequence[Section], names: Sequence[str]) -> Element:
    links = [
        el("li", el("a", section.title, href=f"#{name}"))
        for section, name in zip(sections, names, strict=True)
    ]
    if len(links) < 2:
        return el("span")
    return el("nav", el("ul", *links), aria_label="Results on this page")


def _section(section: Section, name: str, *, titled: bool = True) -> Element:
    """Write a section; the only one of a page is titled by the page."""
    parts = [el("h2", section.title, id=f"{name}-title")] if titled else []
    below = "h3" if titled else "h2"
    if section.verdicts:
        parts.append(_verdicts(section))
    parts += [el("p", *prose(note)) for note in section.notes]
    if section.advice:
        parts.append(
            el(
                "div",
                el(below, "What to know, and what to do", class_="below"),
                _advice(section.advice),
                class_="know",
            )
        )
    if section.pictures:
        drawn = [_picture(one, name) for one in section.pictures]
        parts.append(el("div", *drawn, class_="pictures"))
    parts += [_grid(grid, f"{name}-table-{i}", below) for i, grid in enumerate(section.grids, 1)]
    if section.method:
        parts.append(_method(section.method, below))
    labelled = f"{name}-title" if titled else "title"
    return el("section", *parts, id=name, aria_labelledby=labelled)


def _verdicts(section: Section) -> Element:
    items = [
        el(
            "li",
            el("span", _SIGNS[one.tone], class_="sign", aria_hidden="true"),
            el("strong", one.head),
            " ",
            el("span", *prose(one.text)),
            class_=f"verdict {one.tone}",
        )
        for one in section.verdicts
    ]
    return el("ul", *items, class_="verdicts")


def _advice(advice: Sequence[Advice]) -> Element:
    items = []
    for one in advice:
        item = el("li", el("strong", f"{one.title}."), " ", *prose(one.text))
        if one.remedy:
            item.append(el("span", el("b", "What to do: "), *prose(one.remedy), class_="remedy"))
        items.append(item)
    return el("ul", *items, class_="advice")


def _picture(one: Picture, section: str) -> Element:
    name = f"{section}-{one.name}"
    svg = _renamed(one.svg, name)
    svg.set("role", "img")
    svg.set("aria-label", one.alt)
    frame = el("div", svg, class_="frame", tabindex="0", role="group", aria_label="Figure")
    figure = el("figure", frame, class_="picture", id=name)
    if one.spots:
        # Inside a data block nothing is markup but what would end it.
        data = el("script", type="application/json", class_="spots")
        data.text = json.dumps(one.spots, ensure_ascii=False).replace("<", "\\u003c")
        figure.append(data)
    figure.append(el("figcaption", one.caption))
    return figure


def _renamed(drawn: Element, name: str) -> Element:
    """Keep only ids that something refers to, and begin them with the name of the figure."""
    svg = deepcopy(drawn)
    used = set()
    for element in svg.iter():
        for value in element.attrib.values():
            used.update(_REFERENCE.findall(value))
        used.add(element.get("href", "").removeprefix("#"))
    for element in svg.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                del element.attrib["id"]
                if value in used:
                    element.set("id", f"{name}-{value}")
            elif key == "href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
    return svg


def _grid(grid: Grid, name: str, heading: str) -> Element:
    head = el("tr", *(_head_cell(head) for head in grid.heads))
    body = el("tbody", *(_row(row, grid.heads, f"{name}-{i}") for i, row in enumerate(grid.rows)))
    table = el("table", el("thead", head), body, class_="grid", aria_labelledby=name)
    parts = [
        el(heading, grid.title, id=name, class_="below"),
        el("div", table, class_="wide", tabindex="0", role="group", aria_labelledby=name),
    ]
    if grid.notes:
        notes = [
            el("li", *prose(note.text if note.mark in ("", ITEM) else f"{note.mark}  {note.text}"))
            for note in grid.notes
        ]
        parts.append(el("ul", *notes, class_="notes"))
    parts += [
        _fold(cell, f"{name}-{i}") for i, row in enumerate(grid.rows) for cell in row if cell.more
    ]
    characters = _characters(grid)
    if characters <= _UPRIGHT:
        return el("div", *parts, class_="table")
    return el("div", *parts, class_="table broad", style=f"--characters: {characters}")


def _characters(grid: Grid) -> int:
    """Return how many characters its rows have at least beside each other, on paper."""
    columns = [[row[i] for row in grid.rows] for i in range(len(grid.heads))]
    return sum(
        _BETWEEN + max(_longest(head.text.split()), *(_least(cell, head) for cell in column), 1)
        for head, column in zip(grid.heads, columns, strict=True)
    )


def _least(cell: Cell, head: Head) -> int:
    if cell.tone != "plain":  # a word of a verdict, with its sign
        return len(cell.text) + _BETWEEN
    if head.right:
        return _longest(figures(cell.text))
    return min(_longest(cell.text.split()), _WORD)


def _longest(parts: Sequence[str]) -> int:
    return max(map(len, parts), default=0)


def _fold(cell: Cell, name: str) -> Element:
    """Write what unfolds of a row: below the table, where there is room for sentences."""
    return el("details", el("summary", cell.about), _advice(cell.more), class_="fold", id=name)


def _head_cell(head: Head) -> Element:
    return el(
        "th",
        head.text,
        scope="col",
        class_="figure" if head.right else None,
        data_choice="yes" if head.choice else None,
        title=head.about or None,
    )


def _row(row: Sequence[Cell], heads: Sequence[Head], name: str) -> Element:
    cells = []
    for i, (cell, head) in enumerate(zip(row, heads, strict=True)):
        shown = el("span", *_whole(cell.text)) if head.right else el("span", cell.text)
        if cell.tone != "plain":
            sign = el("span", f"{_SIGNS[cell.tone]} ", class_="sign", aria_hidden="true")
            shown = el("span", sign, el("span", cell.text), class_=f"word {cell.tone}")
        if cell.more:
            shown = el("a", shown, href=f"#{name}", aria_label=f"{cell.text}, {cell.about}")
        cells.append(
            el(
                "th" if i == 0 else "td",
                shown,
                scope="row" if i == 0 else None,
                class_=_class_of(cell, head),
                data_value=None if cell.value is None else repr(cell.value),
            )
        )
    return el("tr", *cells)


def _whole(text: str) -> list[Element | str]:
    """Write figures so that no line ends within one."""
    first, *rest = (el("span", part, class_="whole") for part in figures(text))
    return [first, *(one for part in rest for one in (" ", part))]


def _class_of(cell: Cell, head: Head) -> str | None:
    if head.right:
        return "figure"
    return "long" if _longest(cell.text.split()) > _WORD else None


def _method(method: Sequence[tuple[str, str]], heading: str) -> Element:
    terms: list[Element] = []
    for term, text in method:
        terms += [el("dt", term), el("dd", text)]
    return el(
        "details",
        el("summary", el(heading, "How this was computed", class_="below")),
        el("dl", *terms),
        class_="method",
    )
