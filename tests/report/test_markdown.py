"""What a renderer makes of a table is what a terminal shows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from errcomp.report.markdown import escaped, markdown
from errcomp.report.model import Cell, Column, Form, Note, Table, clean, item, listing

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(token: Token) -> str:
    """Return the text of a cell as a reader sees it; anything but text and HTML is a failure."""
    parts = []
    for child in token.children or []:
        assert child.type in ("text", "text_special", "html_inline", "strong_open", "strong_close")
        assert child.type != "html_inline" or child.content in ("<!-- -->", "<span>", "</span>")
        parts.append("" if child.type == "html_inline" else child.content)
    return "".join(parts)


def cells(text: str) -> list[list[str]]:
    """Return the cells of the only table, row by row."""
    rows: list[list[str]] = []
    tokens = RENDERER.parse(text)
    assert sum(token.type == "table_open" for token in tokens) == 1
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("th_open", "td_open"):
            rows[-1].append(shown(token))
    return rows


def items(text: str) -> list[tuple[int, str]]:
    """Return the items of lists with their depth."""
    tokens = RENDERER.parse(text)
    return [
        (token.level, shown(token))
        for i, token in enumerate(tokens)
        if token.type == "inline" and tokens[i - 2].type == "list_item_open"
    ]


def one(value: str, *, notes: list[Note | str] | None = None, title: str = "T") -> Table:
    columns: list[Any] = [
        Column("Name", lambda r: r["name"]),
        Column("x", lambda r: "1", form=Form(Cell, right=True)),
    ]
    return Table(title, columns, [{"name": value}, {"name": "last"}], notes or [])


NASTY = st.text(
    st.one_of(st.sampled_from("|\\`*_[]<>~&#@$:!+-=.()1a \n\r\t\x1b"), st.characters()),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(NASTY)
@example("a|b\\|c\\\\|`d`|")
@example("<!-- --> <b>x</b> &amp; <https://a.b> [a](b) ![c](d)")
@example("**a** _b_ ~~c~~ `d` @team #12 :tada: $x$ GH-1")
@example("\\")
def test_a_cell_comes_out_as_it_went_in(value: str) -> None:
    found = cells(markdown([one(value)]))
    assert found == [["Name", "x"], [clean(value).strip(), "1"], ["last", "1"]]


@settings(max_examples=100, deadline=None)
@given(NASTY.filter(lambda text: text.strip() and not text.startswith((" ", "["))))
@example("- a")
@example("1. a")
@example("# a")
@example("===")
@example("***")
def test_a_note_stays_one_item_of_one_list(note: str) -> None:
    text = markdown([one("a", notes=[Note("legend", "a"), note, item("last")])])
    expected = clean(note.strip(" ")).strip()
    assert items(text) == [(3, "a legend"), (3, expected), (3, "last")]


@pytest.mark.parametrize("title", ["(a)", "*a*", "a_", "`b`", "50 % of | <x>", "ends\n"])
def test_a_title_is_bold_whatever_it_holds(title: str) -> None:
    tokens = RENDERER.parse(markdown([one("a", title=title)]))
    children = tokens[1].children or []
    assert shown(tokens[1]) == clean(title)
    bold = [c.type for c in children if c.content or not c.type.startswith("text")]
    assert (bold[0], bold[-1]) == ("strong_open", "strong_close")


def test_nobody_is_notified_and_nothing_is_linked_or_replaced() -> None:
    text = escaped("@team of #12 and a#12, :+1: $a$ $b$, a@b.c")
    assert "@team" not in text
    assert "#12" not in text
    assert ":+1:" not in text
    assert "$a$" not in text
    assert "@b" not in text
    assert escaped("12:30, # of @ all") == "12:30, # of @ all"


def test_legends_numbers_and_items_are_kept() -> None:
    notes = [
        *(Note("Few pairs", "a"), Note("If so", "*"), Note("mean APE", "[1]")),
        *listing("What it hides:", ["one", "two"]),
    ]
    text = markdown([one("a", notes=notes)])
    assert text.split("\n\n")[-1].splitlines() == [
        "- **a** Few pairs",
        "- **\\*** If so",
        "- **\\[1\\]** mean APE",
        "- What it hides:",
        "  - one",
        "  - two",
    ]
    depths = [depth for depth, _ in items(text)]
    assert depths == [3, 3, 3, 3, 5, 5]


def test_figures_stand_at_the_right_and_a_table_without_rows_has_no_grid() -> None:
    assert "| --- | ---: |" in markdown([one("a")])
    assert markdown([Table("Only words", [Column("A", str)], [], ["a note"])]) == (
        "**Only words**\n\n- a note"
    )


@pytest.mark.parametrize("text", ["- a", "+ a", "1. a", "2) a", "# a", "===", "---", "-"])
def test_text_that_begins_a_line_begins_neither_list_nor_heading(text: str) -> None:
    (_, found, _) = RENDERER.parse(escaped(text))
    assert shown(found) == text
