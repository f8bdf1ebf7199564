"""Reports as one self-contained HTML file that works without network, server and scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from importlib.resources import files
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from errcomp.report.html.svg import Picture, pictures
from errcomp.report.model import ITEM, Advice, Cell, Column, Report, Table, Tone, clean
from errcomp.report.terms import term_of, terms_in

_REFERENCE = re.compile(r"url\(#([^)]+)\)")
#: Characters per line of a table on a portrait page, at the print size of tables.
_UPRIGHT = 100
#: Longest word in characters that is not broken on paper, and the gap between two columns.
_WORD, _BETWEEN = 16, 2
#: Verdicts that are not folded, and results of a page up to which the contents list their parts.
_VERDICTS, _DETAILED = 3, 4
#: A sign for each tone, so that tones differ without colour.
_SIGNS: dict[Tone, str] = {"good": "✓", "bad": "✗", "doubt": "?", "plain": "·"}


def page(reports: Sequence[Report], *, title: str, made_by: str) -> str:
    """Write reports as an HTML page.

    All text is escaped. The policy in the head forbids every request and every script but the
    page's own. The page is readable without that script, which adds sorting, filters and texts on
    hover.

    Parameters
    ----------
    reports : sequence of Report
    title : str
        Title of the page.
    made_by : str
        Name and version of the program.

    Returns
    -------
    str
        Deterministic: the same reports give the same text.
    """
    names = [f"result-{i}" for i in range(1, len(reports) + 1)]
    alone = len(reports) == 1 and reports[0].title == title
    main = el("main", id="main", tabindex="-1")
    # From a generator, an element would turn Ctrl-C into an error of its own.
    for report, name in zip(reports, names, strict=True):
        main.append(_section(report, name, titled=not alone))
    body = el(
        "body",
        el("a", "Skip to the results", class_="skip", href="#main"),
        el("header", el("h1", title, id="title")),
        el("div", _contents(reports, main), main, class_="columns"),
        el("footer", el("p", f"Made by {made_by}. This page needs no network and no server.")),
        el("div", id="told", role="status", aria_live="polite"),
        _script(),
    )
    return "<!doctype html>\n" + written(el("html", _head(title), body, lang="en")) + "\n"


def fragment(report: Report) -> str:
    """Write one report as HTML for a notebook, with its style and without a script.

    All pictures but the first are folded: below a cell, a result should not take ten screens.
    """
    style = el("style")
    style.text = f"@scope {{\n{_asset('page.css')}\n}}"
    drawn, notes = pictures(report.figures)
    plain = [replace(picture, spots=()) for picture in drawn]
    shown = replace(report, notes=[*report.notes, *notes])
    # All cells of a notebook are one page: different results need different ids.
    content = written(_part(shown, plain, "", folded=True))
    name = "r" + hashlib.sha256(content.encode()).hexdigest()[:12]
    return written(el("div", style, _part(shown, plain, name, folded=True), class_="errcomp"))


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
    return (files("errcomp.report.html") / "assets" / name).read_text(encoding="utf-8")


def _contents(reports: Sequence[Report], main: Element) -> Element:
    """List the results of a page, and the parts of each where they are few."""
    links = []
    for report, section in zip(reports, main, strict=True):
        parts = [
            el("li", el("a", heading.text or "", href=f"#{heading.get('id')}"))
            for heading in section.iter()
            if heading.get("class") == "below" and heading.get("id")
        ]
        if len(reports) == 1:
            links = [el("li", el("a", "Answer", href=f"#{section.get('id')}")), *parts]
        else:
            link = el("li", el("a", report.title, href=f"#{section.get('id')}"))
            if parts and len(reports) <= _DETAILED:
                link.append(el("ul", *parts))
            links.append(link)
    return el("nav", el("ul", *links), aria_label="On this page")


def _section(report: Report, name: str, *, titled: bool = True) -> Element:
    drawn, notes = pictures(report.figures)
    return _part(replace(report, notes=[*report.notes, *notes]), drawn, name, titled=titled)


def _part(
    report: Report,
    drawn: Sequence[Picture],
    name: str,
    *,
    titled: bool = True,
    folded: bool = False,
) -> Element:
    """Write a report as a section; a single report has only the title of the page.

    `folded` folds the pictures after the first.
    """
    parts = [el("h2", report.title, id=f"{name}-title")] if titled else []
    below = "h3" if titled else "h2"
    parts += _answer(report, drawn[:1], name)
    if report.advice:
        parts.append(
            el(
                "div",
                el(below, "What to know, and what to do", class_="below", id=f"{name}-know"),
                _advice(report.advice),
                class_="know",
            )
        )
    tables = report.tables_for("page")
    parts += [_table(table, f"{name}-table-{i}", below) for i, table in enumerate(tables, 1)]
    if others := drawn[1:]:
        heading = el(below, "Pictures", class_="below", id=f"{name}-pictures")
        shown = el("div", *(_picture(one, name) for one in others), class_="pictures")
        parts += [_folded(heading, shown)] if folded else [heading, shown]
    if report.method:
        parts.append(_folded_list("How this was computed", report.method, below, f"{name}-method"))
    terms = [(term.name, term.text) for term in terms_in(tables)]
    if terms:
        parts.append(_folded_list("Terms in these tables", terms, below, f"{name}-terms"))
    labelled = f"{name}-title" if titled else "title"
    return el("section", *parts, id=name, aria_labelledby=labelled)


def _answer(report: Report, drawn: Sequence[Picture], name: str) -> list[Element]:
    """Write the result in a line and the verdicts, with the main picture beside them."""
    words = []
    if report.line:
        items = (el("li", *_unbroken_figures(part)) for part in report.line)
        words.append(el("ul", *items, class_="headline"))
    if report.verdicts:
        words += _verdicts(report)
    words += [el("p", *prose(note)) for note in report.notes]
    shown = [el("div", *words, class_="words")] if words else []
    shown += [_picture(picture, name) for picture in drawn]
    return [el("div", *shown, class_="answer")] if shown else []


def _verdicts(report: Report) -> list[Element]:
    """List the verdicts; those after the first ones are folded."""
    items = [
        el(
            "li",
            el("span", _SIGNS[verdict.tone], class_="sign", aria_hidden="true"),
            el("strong", verdict.head),
            " ",
            el("span", *prose(verdict.text)),
            class_=f"verdict {verdict.tone}",
        )
        for verdict in report.verdicts
    ]
    first, more = items[:_VERDICTS], items[_VERDICTS:]
    if len(more) < 2:  # a fold takes as much room as a verdict
        return [el("ul", *items, class_="verdicts")]
    return [
        el("ul", *first, class_="verdicts"),
        el(
            "details",
            el("summary", f"{len(more)} more verdicts"),
            el("ul", *more, class_="verdicts"),
        ),
    ]


def _advice(advice: Sequence[Advice]) -> Element:
    items = []
    for entry in advice:
        item = el("li", el("strong", f"{entry.title}."), " ", *prose(entry.text))
        if entry.remedy:
            item.append(el("span", el("b", "What to do: "), *prose(entry.remedy), class_="remedy"))
        items.append(item)
    return el("ul", *items, class_="advice")


def _picture(picture: Picture, section: str) -> Element:
    name = f"{section}-{picture.name}"
    svg = _renamed(picture.svg, name)
    svg.set("role", "img")
    svg.set("aria-label", picture.alt)
    frame = el("div", svg, class_="frame", tabindex="0", role="group", aria_label="Figure")
    figure = el("figure", frame, class_="picture", id=name)
    if len(picture.series) > 1:
        figure.set("data-series", json.dumps(picture.series, ensure_ascii=False))
    if picture.spots:
        # In a data block, only its end tag is markup.
        data = el("script", type="application/json", class_="spots")
        data.text = json.dumps(picture.spots, ensure_ascii=False).replace("<", "\\u003c")
        figure.append(data)
    figure.append(el("figcaption", picture.caption))
    return figure


def _renamed(drawn: Element, name: str) -> Element:
    """Keep only ids that are referred to, and prefix them with the name of the figure."""
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


def _table(table: Table, name: str, heading: str) -> Element:
    cells = [[column.cell(row) for column in table.columns] for row in table.rows]
    head = el("tr", *(_head_cell(column) for column in table.columns))
    body = el("tbody", *(_row(row, table.columns, f"{name}-{i}") for i, row in enumerate(cells)))
    drawn = el("table", el("thead", head), body, class_="grid", aria_labelledby=name)
    parts = [
        el(heading, table.title, id=name, class_="below"),
        el("div", drawn, class_="wide", tabindex="0", role="group", aria_labelledby=name),
    ]
    if table.notes:
        notes = [
            el("li", *prose(note.text if note.mark in ("", ITEM) else f"{note.mark}  {note.text}"))
            for note in table.remarks()
        ]
        parts.append(el("ul", *notes, class_="notes"))
    folds = [_fold(cell, f"{name}-{i}") for i, row in enumerate(cells) for cell in row if cell.more]
    if folds:
        parts.append(el("div", *folds, class_="folds"))
    characters = _characters(table.columns, cells)
    if characters <= _UPRIGHT:
        return el("div", *parts, class_="table")
    return el("div", *parts, class_="table broad", style=f"--characters: {characters}")


def _characters(columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> int:
    """Return the smallest width of a table on paper, in characters."""
    return sum(
        _BETWEEN
        + max(_longest(column.header.split()), *(_least(row[i], column) for row in cells), 1)
        for i, column in enumerate(columns)
    )


def _least(cell: Cell, column: Column) -> int:
    if cell.tone != "plain":  # a verdict, with its sign
        return len(cell.text) + _BETWEEN
    if column.right:
        return _longest(figures(cell.text))
    return min(_longest(cell.text.split()), _WORD)


def _longest(parts: Sequence[str]) -> int:
    return max(map(len, parts), default=0)


def _fold(cell: Cell, name: str) -> Element:
    """Write the folded details of a row, which are below the table."""
    return el("details", el("summary", cell.about), _advice(cell.more), class_="fold", id=name)


def _head_cell(column: Column) -> Element:
    choice = column.choice or (column.key and not column.right)
    term = term_of(column.header)
    about = column.about or (term.text if term else "")
    return el(
        "th",
        *prose(column.header),
        scope="col",
        class_="figure" if column.right else None,
        data_choice="yes" if choice else None,
        title=about or None,
    )


def _row(row: Sequence[Cell], columns: Sequence[Column], name: str) -> Element:
    cells = []
    for i, (cell, column) in enumerate(zip(row, columns, strict=True)):
        shown = el("span", *_unbroken_figures(cell.text)) if column.right else el("span", cell.text)
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
                class_=_class_of(cell, column),
                data_value=_sorted_by(cell.value),
            )
        )
    return el("tr", *cells)


def _sorted_by(value: float | None) -> str | None:
    """Write a number as JavaScript reads it; missing values (None) sort last."""
    if value is None or math.isnan(value):
        return None
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _unbroken_figures(text: str) -> list[Element | str]:
    """Write numbers so that no line breaks within a number."""
    first, *rest = (el("span", part, class_="whole") for part in figures(text))
    return [first, *(piece for part in rest for piece in (" ", part))]


def _class_of(cell: Cell, column: Column) -> str | None:
    if column.right:
        return "figure"
    return "long" if _longest(cell.text.split()) > _WORD else None


def _folded_list(title: str, pairs: Sequence[tuple[str, str]], heading: str, name: str) -> Element:
    entries: list[Element] = []
    for term, text in pairs:
        entries += [el("dt", term), el("dd", *prose(text))]
    return _folded(el(heading, title, class_="below", id=name), el("dl", *entries))


def _folded(heading: Element, content: Element) -> Element:
    return el("details", el("summary", heading), content, class_="method")


def el(tag: str, *children: ET.Element | str, **attributes: str | None) -> ET.Element:
    """Return an element; attribute names have ``_`` instead of ``-``, and ``class_`` is ``class``.

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
    """Return text in which the parts between backticks are code elements.

    Examples
    --------
    >>> [part if isinstance(part, str) else part.text for part in prose("run `errcomp` now")]
    ['run ', 'errcomp', ' now']
    """
    # Keep a number and its % sign on one line.
    parts = text.replace(" %", "\N{NO-BREAK SPACE}%").split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is text
        return ["`".join(parts)]
    return [el("code", part) if i % 2 else part for i, part in enumerate(parts)]


def figures(text: str) -> list[str]:
    """Split the text of a cell where a line may break: only before an interval.

    Examples
    --------
    >>> figures("8.74 % [3.3, 52.0]"), figures("44 of 117")
    (['8.74 %', '[3.3, 52.0]'], ['44 of 117'])
    """
    figure, space, interval = text.partition(" [")
    return [figure, f"[{interval}"] if space else [figure]


def written(element: ET.Element) -> str:
    """Return an element as HTML."""
    return ET.tostring(element, "unicode", "html")
